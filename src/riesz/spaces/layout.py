"""Every space is a tree of arrays: the walk that finds it, and the way values go in and out (docs/design.md,
"Values")."""

from __future__ import annotations

import math
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import SpaceError, VectorError
from ..relations.index_sets import Array, Plus, Product, Seg
from ..runtime.interning import Node
from .contraction import number
from .formal_vectors import Formal, TensorValue

if TYPE_CHECKING:
    from .space import Space, Tensor


class Form(Node):
    """How the value of a direct sum is written: as a list, a dict, a dataclass or a named tuple (None: a tuple).

    `fixed` is what the container holds beside its components, as (name, type, value): words, counts and functions in a
    dataclass.
    """

    kind: Any
    names: tuple[Any, ...] | None
    fixed: tuple[tuple[str, Any, Any], ...] = ()

    def make(self, parts: list[Any]) -> Any:
        """Components → container. Dataclasses are filled field by field: what `__init__` would compute again is in the
        fields already."""
        if self.kind is list:
            return parts
        named = dict(zip(self.names or (), parts, strict=True))
        kind: Any = self.kind
        if kind is dict:
            return named
        if hasattr(kind, "_make"):
            return kind._make(parts)
        if self.is_mapping and dict not in kind.__mro__:
            return kind(named)
        made = kind.__new__(kind)
        if self.is_mapping:
            store: Any = OrderedDict if OrderedDict in kind.__mro__ else dict
            for key, part in named.items():
                store.__setitem__(made, key, part)
            named = {}
        for name, value in (*named.items(), *[(name, _released(value)) for name, _, value in self.fixed]):
            object.__setattr__(made, name, value)  # frozen ones too
        return made

    @property
    def is_mapping(self) -> bool:
        """Whether this is a dict of some kind."""
        return issubclass(self.kind, Mapping)

    def take(self, value: Any) -> list[tuple[Any, Any]] | None:
        """Container → (key, component) pairs, or None if it is another kind of thing."""
        if self.is_mapping:
            if not isinstance(value, Mapping) or set(cast("Mapping[str, Any]", value)) != set(self.names or ()):
                return None
            return [(n, value[n]) for n in self.names or ()]
        if not isinstance(value, self.kind):
            return None
        if self.kind is list:
            return list(enumerate(cast("list[Any]", value)))
        return [(n, getattr(value, n)) for n in self.names or ()]


def container(v: Any) -> tuple[Form | None, list[Any]] | None:
    """The form and the parts of a tuple, list, dict, named tuple or dataclass; None for anything else."""
    if isinstance(v, tuple):
        names = getattr(cast(Any, v), "_fields", None)
        parts = list(cast("tuple[Any, ...]", v))
        return (Form(type(cast(Any, v)), tuple(names), ()) if names is not None else None), parts
    if isinstance(v, list):
        return Form(list, None, ()), list(cast("list[Any]", v))
    if isinstance(v, dict):
        table = cast("dict[Any, Any]", v)
        kind = cast(Any, type(table))
        beside = () if kind is dict or kind is OrderedDict else _beside(table, ())
        return Form(kind, tuple(table), beside), list(table.values())
    if hasattr(cast(Any, type(v)), "__dataclass_fields__"):
        return _fields(v)
    return _table(v) if hasattr(cast(Any, type(v)), "columns") else None


_TABLES = ("pandas", "polars", "pyarrow")


class TableColumns(dict[Any, Any]):
    """A table (a DataFrame of pandas or Polars, a table of Arrow) as a function that is differentiated sees it, and its
    gradient: columns by name."""

    __slots__ = ()

    def _refuse(self, *args: Any, **named: Any) -> Any:
        raise VectorError(
            f"a table (DataFrame) is taken by its columns, {list(self)}: name one, t[{next(iter(self), '')!r}], or "
            "pass one array, df.to_numpy(), for all of them"
        )

    __array__ = __array_ufunc__ = __array_function__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __matmul__ = __neg__ = __abs__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rmatmul__ = _refuse


def _table(v: Any) -> tuple[Form | None, list[Any]] | None:
    """A table as its columns."""
    if type(v).__module__.partition(".")[0] not in _TABLES:
        return None
    from ..relations.tables import columns_of

    names, columns = tuple(getattr(v, "column_names", None) or v.columns), columns_of(v)
    if columns is None or len(set(names)) < len(names):
        raise VectorError(f"the columns of a table need names of their own; got {list(names)}")
    return Form(TableColumns, names, ()), [held(c) for c in columns]


def held(x: Any) -> Any:
    """The array that a column of a table holds (pandas, Polars, Arrow), nan where a number is missing, or what an array
    that a traced function made is now; anything else as it is."""
    kind = cast(Any, type(x))
    if kind is np.ndarray:
        return x
    if hasattr(kind, "now") and issubclass(kind, np.ndarray):
        return x.now()
    if kind.__module__.partition(".")[0] not in _TABLES or not hasattr(x, "to_numpy"):
        return x
    found: Any = np.asarray(x)
    numbers = found.dtype == object and getattr(getattr(x, "dtype", None), "kind", "") in ("i", "u", "f", "b")
    return x.to_numpy(dtype=float, na_value=np.nan) if numbers else found


def _fields(v: Any) -> tuple[Form, list[Any]]:
    """A dataclass: words, functions and fields declared as whole numbers are part of its form, others components."""
    names: list[str] = []
    parts: list[Any] = []
    fixed: list[tuple[str, Any, Any]] = []
    counts = _field_names(cast(Any, type(v)))
    for name, counted in counts.items():
        value: Any = getattr(v, name, _MISSING)
        if counted is None or (callable(value) and not hasattr(cast(Any, type(value)), "__dataclass_fields__")):
            fixed.append((name, cast(Any, type(value)), _held(value)))
        elif isinstance(value, (*_STEERING, *_WHOLE) if counted else _STEERING):
            fixed.append((name, cast(Any, type(value)), value))
        elif value is not _MISSING:  # with init=False, one that was never set
            names.append(name)
            parts.append(value)
    return Form(type(v), tuple(names), (*fixed, *_beside(v, counts))), parts


_MISSING = object()
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)
_STEERING: tuple[Any, ...] = (str, bytes, bool, Enum, type, *_FUNCTIONS)
_WHOLE: tuple[Any, ...] = (int, np.integer)


@lru_cache(maxsize=1024)
def _field_names(kind: type) -> dict[str, bool | None]:
    """The fields of a dataclass, and which of them are declared as whole numbers; None for those that are declared to
    be no data (`static=True` of Equinox, `pytree_node=False` of Flax)."""
    from dataclasses import fields

    found: dict[str, bool | None] = {}
    for f in fields(cast(Any, kind)):
        t: Any = f.type
        found[f.name] = "int" in (t if isinstance(t, str) else getattr(t, "__name__", str(t)))
        if f.metadata.get("static") or f.metadata.get("pytree_node") is False:
            found[f.name] = None
    return found


def _beside(v: Any, fields: Any) -> tuple[tuple[str, Any, Any], ...]:
    """The attributes of a container that are no components: kept as they are, so they must not hold numbers."""
    kind = cast(Any, type(v))
    held: dict[str, Any] = {**getattr(v, "__dict__", {})}
    if isinstance(v, defaultdict):
        held["default_factory"] = cast(Any, v).default_factory
    found: list[tuple[str, Any, Any]] = []
    for name, value in held.items():
        again = isinstance(getattr(kind, name, None), cached_property)  # computed from the components
        if name in fields or again:
            continue
        if isinstance(value, (float, np.ndarray, np.floating)) or hasattr(cast(Any, type(value)), "__array__"):
            declare = f"declare it as a field ({name}: float = dataclasses.field(init=False))"
            raise VectorError(
                f"{kind.__name__} has the attribute {name} with numbers beside its fields, which no derivative would "
                f"see; {declare}, or compute it where it is used (@property)"
            )
        found.append((name, cast(Any, type(value)), _held(value)))
    return tuple(found)


def _held(value: Any) -> Any:
    """A value that can be compared: by identity, where it has no hash."""
    try:
        hash(value)
    except TypeError:
        return _Held(value)
    return value


class _Held:
    """A value that is compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _released(value: Any) -> Any:
    return value.value if type(value) is _Held else value


class Branch(NamedTuple):
    """A branch of a layout: how many components, and in which container. A tensor is a branch of one, for show only."""

    arity: int
    form: Form | None = None
    tensor: tuple[Tensor, tuple[int, ...]] | None = None
    inside: bool = False  # inside a tensor: kept as a plain tuple

    def make(self, parts: list[Any]) -> Any:
        """Components → container."""
        if self.tensor is not None:
            return TensorValue(*self.tensor, parts[0])
        return tuple(parts) if self.inside else self.contain(parts)

    def contain(self, parts: list[Any]) -> Any:
        """Components → the container of the form."""
        return tuple(parts) if self.form is None else self.form.make(parts)

    def nest(self, parts: list[Any]) -> Any:
        """Components → plain tuple; tensors leave no trace."""
        return parts[0] if self.tensor is not None else tuple(parts)

    def take(self, value: Any, space: Space, path: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        """Container → its (key, component) pairs, checked."""
        if self.tensor is not None:
            return [("⊗", _tensor_content(value, self.tensor, space, path))]
        if self.form is None or (self.inside and type(value) is tuple):
            given: Any = () if value is None else cast(Any, value)
            found = list(enumerate(cast("tuple[Any, ...]", given))) if isinstance(given, tuple) else None
            wanted = f"a tuple of {self.arity}"
        else:
            found, names = self.form.take(value), self.form.names
            parts = f"with {', '.join(map(str, names))}" if names else f"of {self.arity}"
            wanted = f"a {self.form.kind.__name__} {parts}"
        if found is None or len(found) != self.arity:
            raise VectorError(f"not an element of {space}{_at(path)}: expected {wanted}, got {describe(value)}")
        return found


METRIC, INVERSE, ROOT = range(3)
"""Which of a weight's arrays: M, M⁻¹, or a root R with RᵀR = M."""


class Weight(NamedTuple):
    """A weighted inner product on some axes: the first, how many, the three arrays, and whether they are matrices."""

    first: int
    arity: int
    arrays: tuple[Any, Any, Any]
    matrix: bool


class Leaf(NamedTuple):
    """An array of a layout: its shape, and the weights on ranges of its axes."""

    shape: tuple[int, ...]
    weights: tuple[Weight, ...] = ()
    formal: bool = False  # inside a tensor: shown unevaluated

    @property
    def size(self) -> int:
        """How many numbers."""
        return math.prod(self.shape)


def layout(space: Space) -> list[Leaf | Branch]:
    """The tree of arrays a space is made of, as postfix code (docs/design.md, "Values").

    A state of the walk is the axes met so far and a linked list of the sets and spaces still to come.
    """
    return _layout((), space, False)


def tensor_code(space: Tensor, lead: tuple[int, ...]) -> list[Leaf | Branch]:
    """The layout of V ⊗ W under leading axes, without the mark of the tensor itself."""
    return _layout(lead, space, True)


def _layout(lead: tuple[int, ...], space: Space, formal: bool) -> list[Leaf | Branch]:
    from .space import Copower, DirectSum, Real, Tensor, Weighted, Zero

    code: list[Leaf | Branch] = []
    stack: list[Any] = [(lead, (), (space, None), formal)]
    while stack:
        state = stack.pop()
        if isinstance(state, Branch):
            code.append(state)
            continue
        shape, weights, rest, formal = state
        branches: list[Any] | None = None
        form: Form | None = None
        while rest is not None:
            first, rest = rest
            match first:
                case Seg(n=n):
                    shape = (*shape, n)
                case Real():
                    pass
                case Copower(base=base, index=index):
                    rest = (index, (base, rest))
                case Tensor(left=left, right=right):
                    rest = (left, (right, rest))
                    if not formal:
                        stack.append(Branch(1, None, (first, shape)))
                        formal = True
                case Product(factors=factors):
                    for factor in reversed(factors):
                        rest = (factor, rest)
                case Plus(summands=parts):
                    branches = [(part, rest) for part in parts]
                case DirectSum(summands=parts):
                    branches, form = [(part, rest) for part in parts], first.form
                case Zero():
                    branches = []
                case Weighted():
                    rest = (first.base, (_Weighing(len(shape), iter(first.arrays), first.matrix), rest))
                case _Weighing(axis=axis, arrays=arrays, matrix=matrix):
                    weights = (*weights, Weight(axis, len(shape) - axis, next(arrays), matrix))
                case _:
                    raise TypeError(f"not a space: {first!r}")
            if branches is not None:
                stack.append(Branch(len(branches), form, None, formal))
                stack.extend([(shape, weights, b, formal) for b in reversed(branches)])
                break
        else:
            if len(shape) > 64:
                raise SpaceError(f"{space} needs an array with {len(shape)} axes; NumPy's arrays have at most 64")
            code.append(Leaf(shape, weights, formal))
    return code


class _Weighing(NamedTuple):
    """The end of a weighted space in the walk, which began at an axis: each leaf of it gets the next arrays."""

    axis: int
    arrays: Iterator[tuple[Any, Any, Any]]
    matrix: bool


def build(code: list[Leaf | Branch], leaves: list[Any], make: Callable[[Branch, list[Any]], Any]) -> Any:
    """Run postfix code: leaves in, containers out."""
    stack: list[Any] = []
    source = iter(leaves)
    for step in code:
        if isinstance(step, Leaf):
            stack.append(next(source))
        else:
            first = len(stack) - step.arity
            parts = stack[first:]
            del stack[first:]
            stack.append(make(step, parts))
    return stack[0]


def check_leaf(value: Any, shape: tuple[int, ...], space: Space, path: tuple[Any, ...] = ()) -> Any:
    """One leaf of a user's value: a float for (), otherwise a float array (or formal vector) of the shape."""
    if type(value) is float and not shape:
        return value
    value = held(value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = cast(Array, value)
        if (problem := own_arithmetic(array)) is not None:
            raise VectorError(f"not an element of {space}{_at(path)}: got {problem}")
        if array.dtype.kind == "f" and array.shape == shape:
            return array if shape else number(array)
    elif isinstance(value, Formal) and cast(Any, value).shape == shape:
        return cast(Any, value)
    wanted = f"an array of floats of shape {shape}" if shape else "a float"
    raise VectorError(f"not an element of {space}{_at(path)}: expected {wanted}, got {describe(value)}{hint(value)}")


def leaf_axes(value: Any) -> tuple[int, ...]:
    """The shape of a float, a float array or a formal vector; anything else is refused."""
    if isinstance(value, (float, np.floating)):
        return ()
    value = held(value)
    if (problem := own_arithmetic(value)) is not None:
        raise VectorError(f"a vector is made of floats and plain arrays; got {problem}")
    if isinstance(value, Formal) or (isinstance(value, np.ndarray) and cast(Array, value).dtype.kind == "f"):
        return cast(Any, value).shape
    due = "a vector is a float, a float array or a tuple, list, dict or dataclass of vectors"
    raise VectorError(f"{due}; got {describe(value)}{hint(value)}")


def _tensor_content(value: Any, wanted: tuple[Tensor, tuple[int, ...]], space: Space, path: tuple[Any, ...]) -> Any:
    """What is inside a tensor given as a TensorValue; anything else is taken as multiplied out."""
    if not isinstance(value, TensorValue):
        return value
    if (value.space, value.lead) != wanted:
        due = f"expected an element of {wanted[0]}, got one of {value.space}"
        raise VectorError(f"not an element of {space}{_at(path)}: {due}")
    return value.content


def own_arithmetic(x: Any) -> str | None:
    """What to say of an array whose arithmetic is not that of plain arrays; None for all others."""
    kind = cast(Any, type(x))
    if kind is np.ndarray or not isinstance(x, np.ndarray):
        return None
    if isinstance(x, np.ma.MaskedArray):
        return "a masked array, whose arithmetic is its own; use its plain array, x.data, and np.where(mask, …)"
    if isinstance(x, np.matrix):
        return "an np.matrix, whose arithmetic is its own; use the plain array, np.asarray(x), and the operator @"
    plain: Any = np.ndarray
    same = kind.__array_ufunc__ is plain.__array_ufunc__ and kind.__array_function__ is plain.__array_function__
    if not same:
        return f"a {kind.__name__}, an array with arithmetic of its own; use np.asarray(x)"
    return None


def describe(value: Any) -> str:
    if hasattr(cast(Any, type(value)), "home"):
        return f"a traced array of shape {value.shape}"
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
        return f"an array of {array.dtype} of shape {array.shape}"
    if isinstance(value, (tuple, list)):
        return f"a {type(cast(Any, value)).__name__} of {len(cast('tuple[Any, ...]', value))}"
    text = repr(value)
    return f"the {type(value).__name__} {text if len(text) < 40 else text[:37] + '…'}"


def hint(value: Any) -> str:
    kind = np.asarray(value).dtype.kind if isinstance(value, (int, complex, np.ndarray, np.generic)) else ""
    if kind in "iub" and kind:
        return "; integers have no derivatives: convert with float(x) or x.astype(float)"
    if kind == "c":
        return "; complex numbers are not supported: use the real and imaginary parts as two components"
    if isinstance(value, list):
        return "; write np.array([...]) for a vector"
    given = cast(Any, value)
    if hasattr(cast(Any, type(given)), "home"):
        return ""
    if type(given).__module__ == f"{__package__}.space":
        return "; a space has no point: write np.ones(3), or rz.derive(f, rz.R ** 3)"
    if hasattr(given, "to_numpy"):
        return "; write x.to_numpy()"
    one = hasattr(given, "__float__") and not isinstance(given, float) and getattr(given, "size", 1) == 1
    return "; write float(x)" if one else ""


def _at(path: tuple[Any, ...]) -> str:
    return f" (component {', '.join(map(repr, path))})" if path else ""
