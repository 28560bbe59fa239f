"""`rz.from_jax`: a function of JAX's as a function of riesz. Its jaxpr is read as NumPy code on traced arrays."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import functools
import inspect
import keyword
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from ..functions.function import TracedFunction
from ..runtime import tuning
from ..runtime.generated_source import defined
from ..tracing.surroundings.watching import mentioned
from ..tracing.traced import Traced
from .jaxpr_reading import JaxprReader, array_of, precision
from .lax.lax_registry import is_traced


def from_jax(f: Any = None, /, *examples: Any) -> Any:
    """A function of JAX's as a function of riesz: it prints, is differentiated, solved with and compiled like NumPy
    code. Also a decorator.

    Arguments and results are the pytrees of the function (modules of Equinox and Flax's parameters among them). With
    examples of the arguments it is read at once, so that what cannot be taken is said here; otherwise at its first
    call. Rules of `jax.custom_jvp` and `custom_vjp` are kept as derivatives. Arguments of 64 bits are read in 64 bits,
    also where JAX's own switch is off.

    >>> import jax.numpy as jnp, numpy as np, riesz as rz
    >>> f = rz.from_jax(lambda x: jnp.sum((x[1:] - x[:-1]) ** 2), np.ones(3))
    >>> print(rz.hessian(f)(np.ones(3)).to_dense())
    [[ 2. -2.  0.]
     [-2.  4. -2.]
     [ 0. -2.  2.]]
    """
    if f is None:
        return from_jax
    if not callable(f):
        raise TraceError(f"rz.from_jax takes a function of JAX's; got {f!r}")
    source = JaxSource(f)
    if examples:
        source.jaxpr(*source.opened(examples, {})[1:])
    function = TracedFunction(written(source), name=getattr(f, "__name__", type(f).__name__))
    return function


class JaxSource:
    """A function of JAX's, its jaxprs by kinds of arguments, and the arrays it reads, by name."""

    def __init__(self, function: Any) -> None:
        self.original = function
        self.arrays: dict[str, Any] = named_arrays(function)
        self._jaxprs: OrderedDict[Any, tuple[Any, Any, Any]] = OrderedDict()

    def opened(self, args: Sequence[Any], named: dict[str, Any]) -> tuple[list[Any], list[Any], Any, list[Any]]:
        """The arrays among the leaves of arguments; what is known of each; the tree; the leaves that are no arrays."""
        import jax

        leaves, tree = jax.tree_util.tree_flatten((tuple(args), named))
        arrays: list[Any] = []
        kinds: list[Any] = []
        rest: list[Any] = []
        for x in leaves:
            kind = kind_of_leaf(x)
            rest.append(HERE if kind is not None else x)
            if kind is not None:
                arrays.append(x)
                kinds.append(kind)
        return arrays, kinds, tree, rest

    def jaxpr(self, kinds: Sequence[Any], tree: Any, rest: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The jaxpr for such arguments, the tree of its results, and the reader of it."""
        import jax

        key = (tuple(kinds), tree, tuple([x if x is HERE else static_key(x) for x in rest]))
        if key in self._jaxprs:
            return self._jaxprs[key]

        def flat(*arrays: Any) -> Any:
            given = iter(arrays)
            args, named = jax.tree_util.tree_unflatten(tree, [next(given) if x is HERE else x for x in rest])
            return self.original(*args, **named)

        with precision(kinds):
            shapes = [_struct(*kind) for kind in kinds]
            closed, out = jax.make_jaxpr(flat, return_shape=True)(*shapes)
        found = closed, jax.tree_util.tree_structure(out), JaxprReader(closed.jaxpr)
        self._jaxprs[key] = found
        if len(self._jaxprs) > tuning.TRACES_KEPT:
            self._jaxprs.popitem(last=False)
        return found

    def __call__(self, args: tuple[Any, ...], named: dict[str, Any], values: tuple[Any, ...]) -> Any:
        """The function at traced arrays or numbers; `values` stand for the arrays it reads."""
        import jax

        arrays, kinds, tree, rest = self.opened(args, named)
        closed, out, reader = self.jaxpr(kinds, tree, rest)
        known = [(x, v) for x, v in zip(self.arrays.values(), values, strict=True)]
        with precision(kinds):
            consts = [array_of(standing(c, known)) for c in closed.consts]
            given = [x if is_traced(x) else np.asarray(x, k[1]) for x, k in zip(arrays, kinds, strict=True)]
            found = reader.read(closed.jaxpr, consts, given)
        found = [x if is_traced(x) or np.ndim(x) else np.asarray(x)[()] for x in found]
        return jax.tree_util.tree_unflatten(out, found)


HERE = object()
"""Stands for an array among the leaves of arguments."""


def kind_of_leaf(x: Any) -> Any:
    """(shape, type, whether it is a Python float) of an array; None for other leaves."""
    if is_traced(x):
        return (tuple(x.shape), np.dtype(x.dtype), bool(type(x) is Traced and x.weak))
    if isinstance(x, float) and not isinstance(x, np.generic):
        return ((), np.dtype(float), True)
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype) and hasattr(x, "shape"):
        return (tuple(x.shape), dtype, False) if dtype.kind in "fiubc" else None
    return None


def _struct(shape: Any, dtype: Any, weak: bool) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, dtype, weak_type=weak)


def static_key(x: Any) -> Any:
    """What a leaf that is no array is known by."""
    try:
        hash(x)
    except TypeError:
        return id(x)
    return (type(x), x)


def standing(constant: Any, known: Sequence[tuple[Any, Any]]) -> Any:
    """What stands for a constant: the array that the function reads, if it is one of these."""
    for original, value in known:
        if constant is original:
            return value
    shape, dtype = getattr(constant, "shape", None), getattr(constant, "dtype", None)
    for original, value in known:
        like = shape and shape == original.shape and dtype == original.dtype
        if like and np.array_equal(np.asarray(constant), np.asarray(original), equal_nan=True):
            return value
    return constant


def _is_float_array(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "f" and getattr(x, "shape", ()) != ()


def named_arrays(f: Any, wanted: Callable[[Any], bool] = _is_float_array) -> dict[str, Any]:
    """The float arrays that a function reads by a name: closures, globals, attributes of its object, defaults."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    stack: list[Any] = [f]
    while stack and len(seen) < tuning.WATCHED_THINGS:
        g = stack.pop()
        if id(g) in seen:
            continue
        seen.add(id(g))
        if isinstance(g, functools.partial):
            stack += [g.func, *[x for x in (*g.args, *g.keywords.values()) if callable(x)]]
            _note(found, g.keywords, wanted)
        elif isinstance(g, types.MethodType):
            stack.append(g.__func__)
            _note(found, getattr(g.__self__, "__dict__", {}), wanted)
        elif isinstance(g, types.FunctionType):
            names = mentioned(g.__code__)
            cells = g.__closure__ or ()
            inside = {k: c.cell_contents for k, c in zip(g.__code__.co_freevars, cells, strict=True) if _full(c)}
            space = inside | {k: g.__globals__[k] for k in names if k in g.__globals__}
            _note(found, space, wanted)
            stack += [x for x in space.values() if isinstance(x, (types.FunctionType, functools.partial))]
            stack += [x.__wrapped__ for x in space.values() if callable(x) and hasattr(x, "__wrapped__")]
        elif hasattr(g, "__wrapped__"):
            stack.append(g.__wrapped__)
    return found


def _full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _note(found: dict[str, Any], space: Any, wanted: Callable[[Any], bool]) -> None:
    for name, x in dict(space).items():
        if wanted(x) and name not in found and name.isidentifier() and not keyword.iskeyword(name):
            found[name] = x


def written(source: Any, first: tuple[str, ...] = ()) -> Callable[..., Any]:
    """The function as Python sees it: its arguments by name, `first` before them, and its arrays as variables around
    it."""
    f = source.original
    while len(source.arrays) > 64:
        source.arrays.popitem()
    params = _parameters(f)
    names = list(source.arrays)
    given = [f"{n}_" if n in (*source.arrays, *first) else n for n in params] if params is not None else None
    given = [*first, *given] if given is not None else None
    title = getattr(f, "__name__", "f")
    title = title if title.isidentifier() and not keyword.iskeyword(title) and title not in names else "f"
    head = "*args, **named" if given is None else ", ".join(given)
    call = "args, named" if given is None else f"({''.join(f'{n}, ' for n in given)}), {{}}"
    lines = [
        f"def _around(_read{''.join(f', {n}' for n in names)}):",
        f"    def {title}({head}):",
        f"        return _read({call}, ({''.join(f'{n}, ' for n in names)}))",
        f"    return {title}",
    ]
    arrays = [np.asarray(x) for x in source.arrays.values()]
    function = defined("\n".join(lines) + "\n", "_around", {})(source, *arrays)
    function.__doc__ = getattr(f, "__doc__", None)
    function.__module__ = "__main__"
    return function


def _parameters(f: Any) -> list[str] | None:
    """The names of a function's arguments, where all go by position and must be given."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = all([p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters])
    return [p.name for p in parameters] if plain else None
