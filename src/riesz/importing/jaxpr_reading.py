"""A jaxpr, equation by equation, as NumPy code on traced arrays.

What depends on no argument is computed by JAX or NumPy while it is read. Calls of the same jaxpr that would be long
when written out stay blocks.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ..errors import TraceError
from ..functions.control.bodies import Body, gets
from ..programs.sub_programs import Call, OwnDerivative
from ..runtime import tuning
from ..tracing.rules.elementwise import unmoving
from ..tracing.traced import Traced, innermost, slot_of
from .lax.lax_registry import OWN, REFUSED, LaxRule, is_traced, load


def array_of(x: Any) -> Any:
    """A constant of JAX's as an array of NumPy's; keys of random numbers stay what they are."""
    import jax

    if isinstance(x, jax.Array) and not isinstance(x.dtype, np.dtype):
        return x
    return x if is_traced(x) else np.asarray(x)


@contextmanager
def precision(kinds: Sequence[Any]) -> Iterator[None]:
    """JAX computes in 64 bits where an argument has them, and with numbers, not with what is traced around."""
    import jax

    with ExitStack() as stack:
        stack.enter_context(jax.ensure_compile_time_eval())
        if not jax.config.jax_enable_x64 and any([k[1].itemsize == 8 and k[1].kind == "f" for k in kinds]):
            stack.enter_context(jax.enable_x64(True) if hasattr(jax, "enable_x64") else _enabled())
        yield


def _enabled() -> Any:
    from jax.experimental import enable_x64

    return enable_x64()


def source_line(equation: Any) -> str:
    """Where in the user's code an equation comes from."""
    try:
        from jax._src import source_info_util

        return source_info_util.summarize(equation.source_info) or INSIDE
    except Exception:  # a private name of JAX's, good for messages only
        return INSIDE


INSIDE = "a line of JAX's own"


def sub_jaxprs(params: dict[str, Any]) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    found: list[Any] = []
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(part, "jaxpr", part)
            if hasattr(inner, "eqns"):
                found.append(inner)
    return found


class JaxprReader:
    """Reads a jaxpr and those inside."""

    def __init__(self, jaxpr: Any) -> None:
        self.rules: dict[str, LaxRule] = load()
        self.uses, self.sizes = _counted(jaxpr)
        self._blocks: dict[Any, Any] = {}  # bodies traced once, by jaxpr and types of arguments
        self.entry_by_entry = False  # a jaxpr of numbers is read at arrays
        self.factored: dict[Any, Any] = {}  # the matrices that packed LU factors belong to

    def closed(self, jaxpr: Any, args: Sequence[Any]) -> list[Any]:
        """A jaxpr with or without its constants."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        return self.read(inner, [array_of(c) for c in getattr(jaxpr, "consts", ())], args)

    def called(self, jaxpr: Any, args: Sequence[Any]) -> list[Any]:
        """A jaxpr that is called: written out, or a block where that would be long."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        uses = self.uses[id(inner)]
        long = uses >= tuning.JAX_BLOCK_USES and uses * self.sizes[id(inner)] >= tuning.JAX_BLOCK_STEPS
        if not long or not args or not all([type(x) is Traced or isinstance(x, np.ndarray) for x in args]):
            return self.closed(jaxpr, args)
        home = innermost(args)
        return self.closed(jaxpr, args) if home is None else self._block(jaxpr, args, home)

    def _block(self, jaxpr: Any, args: Sequence[Any], home: Any) -> list[Any]:
        """The call of a program that is traced once for all such calls."""
        key = (id(jaxpr), tuple([(np.shape(x), x.dtype) for x in args]))
        if key not in self._blocks:
            body = Body(lambda *xs: tuple(self.closed(jaxpr, xs)), tuple(args), "a function of JAX's")
            if body.record.captured:
                return self.closed(jaxpr, args)
            self._blocks[key] = Call((body.program(()),)), body.results, jaxpr
        op, results, _ = self._blocks[key]
        slot = home.step(op, [slot_of(home, x, x.dtype) for x in args])
        return [Traced(home, s, a.dtype) for s, a in zip(gets(home, slot, len(results)), results, strict=True)]

    def read(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr."""
        from jax.extend.core import Literal as literal

        known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        known |= dict(zip(jaxpr.invars, args, strict=True))
        last = {v: i for i, e in enumerate(jaxpr.eqns) for v in e.invars if type(v) is not literal}
        keep = {v for v in jaxpr.outvars if type(v) is not literal}

        def value(v: Any) -> Any:
            return np.asarray(v.val, v.aval.dtype)[()] if type(v) is literal else known[v]

        for i, e in enumerate(jaxpr.eqns):
            found = self.equation(e, [value(v) for v in e.invars])
            known.update(zip(e.outvars, found, strict=True))
            for v in e.invars:
                if type(v) is not literal and last[v] == i and v not in keep:
                    known.pop(v, None)
        return [value(v) for v in jaxpr.outvars]

    def equation(self, e: Any, args: list[Any]) -> list[Any]:
        """The results of one equation."""
        name = e.primitive.name
        if name in OWN:
            found = OWN[name](*args, **e.params)
            return list(found) if e.primitive.multiple_results else [found]
        entry = self.rules.get(name)
        if not any(map(is_traced, args)) and not (entry and e.primitive.name in _THROUGH):
            return computed(e, args)
        if name in REFUSED:
            raise TraceError(f"JAX's primitive {name} ({source_line(e)}) is not taken by rz.from_jax: {REFUSED[name]}")
        keys = any([_is_key(v.aval) for v in (*e.invars, *e.outvars)]) and not sub_jaxprs(e.params)
        if keys and len(e.outvars) == 1:
            return [between_whole_numbers(e, args)]
        if entry is None:
            return [typed(x, v.aval) for x, v in zip(self._unknown(e, args), e.outvars, strict=True)]
        try:
            found = entry.rule(self, e, *args)
        except TraceError as problem:
            said, line = str(problem), source_line(e)
            if INSIDE in said and line != INSIDE:  # the innermost line of the user's
                raise TraceError(said.replace(INSIDE, line)) from None
            raise problem if " of JAX's" in said else TraceError(f"{said}; in {name} of JAX's at {line}") from None
        found = list(found) if e.primitive.multiple_results else [found]
        wrong = [not _is_key(v.aval) and np.shape(x) != v.aval.shape for x, v in zip(found, e.outvars, strict=False)]
        if len(found) != len(e.outvars) or (any(wrong) and not self.entry_by_entry):
            due = ", ".join([str(v.aval) for v in e.outvars])
            raise TraceError(
                f"JAX's primitive {name} ({source_line(e)}) gives {due}, which the rule of rz.from_jax does not: one "
                f"of its options ({', '.join(e.params)}) is not known"
            )
        return [typed(x, v.aval) for x, v in zip(found, e.outvars, strict=True)]

    def _unknown(self, e: Any, args: list[Any]) -> list[Any]:
        """A primitive without a rule: between whole numbers JAX computes it; others are refused."""
        inner = sparse_code(e)
        if inner is not None:
            return self.closed(inner, args)
        results = [v.aval for v in e.outvars]
        still = [*results, *[v.aval for v in e.invars]]
        if all([np.dtype(a.dtype).kind in "iub" for a in still if isinstance(a.dtype, np.dtype)]) and len(results) == 1:
            return [between_whole_numbers(e, args)]
        raise TraceError(
            f"rz.from_jax does not know JAX's primitive {e.primitive.name}, used at {source_line(e)}. Say what it "
            f"is in NumPy code: @rz.jax_rule('{e.primitive.name}') above a function of its arrays and parameters "
            f"({', '.join(e.params) or 'it has none'}); docs/jax.md lists what is known"
        )


_THROUGH = {"pjit", "jit", "closed_call", "core_call", "iota"}
"""Read even where nothing is traced."""


def computed(e: Any, args: Sequence[Any]) -> list[Any]:
    """An equation of numbers, by JAX itself."""
    found = bound(e, args)
    return [array_of(x) for x in (found if e.primitive.multiple_results else [found])]


def bound(e: Any, args: Sequence[Any]) -> Any:
    """The primitive of an equation applied to arrays of JAX's."""
    import jax

    given = [
        x if isinstance(x, jax.Array) else jax.numpy.asarray(x, v.aval.dtype)
        for x, v in zip(args, e.invars, strict=True)
    ]
    params = e.primitive.get_bind_params(e.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # JAX before 0.9 gives both
    return e.primitive.bind(*functions, *given, **params)


def typed(x: Any, aval: Any) -> Any:
    """A result in the type that JAX gives it."""
    if type(x) is Traced:
        dtype = np.dtype(aval.dtype)
        if x.dtype != dtype and (x.dtype.kind == "f" or dtype.kind in "fb"):
            return x.astype(dtype)
        return x
    if is_traced(x) or not isinstance(aval.dtype, np.dtype):
        return x
    return np.asarray(x, aval.dtype)


def _is_key(aval: Any) -> bool:
    """Whether something is a key of random numbers. A traced one is the array of its whole numbers."""
    return not isinstance(aval.dtype, np.dtype)


def between_whole_numbers(e: Any, args: list[Any]) -> Any:
    """A step without a derivative that JAX computes (keys and bits of random numbers, counts of bits)."""
    import jax

    aval, avals = e.outvars[0].aval, [v.aval for v in e.invars]
    places = [i for i, x in enumerate(args) if is_traced(x)]
    ranks = [args[i].ndim for i in places]
    probe = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype)) if _is_key(aval) else aval

    def by_jax(*xs: Any) -> Any:
        def one(*given: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, given, strict=True):
                numbers = jax.numpy.asarray(x, np.uint32 if _is_key(avals[i]) else avals[i].dtype)
                key = _is_key(avals[i])
                whole[i] = jax.random.wrap_key_data(numbers, impl=avals[i].dtype._impl.name) if key else numbers
            found = bound(e, whole)
            return jax.random.key_data(found) if _is_key(aval) else found

        many = one
        for _ in range(np.ndim(xs[0]) - ranks[0]):
            many = jax.vmap(many)
        return np.asarray(many(*xs))

    def shaped(shapes: Any, named: Any) -> Any:
        return (*shapes[0][: len(shapes[0]) - ranks[0]], *probe.shape)

    by_jax.__name__ = e.primitive.name
    return unmoving(by_jax, np.dtype(probe.dtype), *[args[i] for i in places], shaped=shaped)


def sparse_code(e: Any) -> Any:
    """What a primitive of jax.experimental.sparse does, as a jaxpr; None for others."""
    name = e.primitive.name
    if not name.startswith(("bcoo_", "bcsr_", "coo_", "csr_")):
        return None
    import importlib

    import jax

    module = importlib.import_module(f"jax.experimental.sparse.{name.split('_')[0]}")
    code = getattr(module, f"_{name}_impl", None)
    if code is None:
        return None
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in e.invars]
    return jax.make_jaxpr(lambda *xs: code(*xs, **e.params))(*shapes)


def _counted(jaxpr: Any) -> tuple[Counter[int], dict[int, int]]:
    """How often each jaxpr inside is called, and its size with those inside written out."""
    sizes: dict[int, int] = {}
    order: list[Any] = []
    stack: list[tuple[Any, bool]] = [(jaxpr, False)]
    while stack:
        this, done = stack.pop()
        if done:
            sizes[id(this)] = sum([1 + sum([sizes.get(id(j), 0) for j in sub_jaxprs(e.params)]) for e in this.eqns])
            order.append(this)
        elif id(this) not in sizes:
            sizes[id(this)] = 0
            stack.append((this, True))
            stack.extend([(j, False) for e in this.eqns for j in sub_jaxprs(e.params)])
    uses = Counter({id(jaxpr): 1})
    for this in reversed(order):
        for e in this.eqns:
            for j in sub_jaxprs(e.params):
                uses[id(j)] += uses[id(this)]
    return uses, sizes


def call_with_rule(home: Any, inside: Body, rule: OwnDerivative, args: Sequence[Any]) -> list[Any]:
    """A step whose derivative is given."""
    slot = home.step(Call((inside.program(()),), False, rule), [slot_of(home, x, x.dtype) for x in args])
    return [
        Traced(home, s, a.dtype) for s, a in zip(gets(home, slot, len(inside.results)), inside.results, strict=True)
    ]
