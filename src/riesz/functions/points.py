"""A combinator at a value and a Python function at arguments, as points: see `point_protocol.AnyPoint`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ..calculus.derive import derive_program, lower, transpose_linear
from ..calculus.domain_check import guard
from ..calculus.interpretation.interpret import interpret
from ..calculus.interpretation.value_trees import leaves_of
from ..errors import SpaceError, VectorError
from ..maps.instances import Instance
from ..maps.leaves import any_traced, fixed, of_types, opened, present, traced_space
from ..maps.leaves import written as written_at
from ..maps.linear_map import LinearMap, as_element
from ..ops.number_domains import NUMBERS
from ..programs.program import Constant, Program
from ..runtime import later
from ..spaces.layout import describe, hint
from ..spaces.space import Copower, DirectSum, Space, Weighted, direct_sum, real_space, space_of
from ..terms.open import fit
from ..terms.term import Arrow, Term
from ..tracing.argument_trees import LEAF, Container, Tree, first_part, flatten, numbers_of, tree_space, unflatten
from ..tracing.surroundings.watching import Cell
from ..tracing.trace import Trace, derivatives_here
from ..tracing.traced import FLOAT, innermost
from .function import TracedFunction, as_function, in_containers
from .point_protocol import EACH, AnyPoint, argument_numbers, in_turn
from .traces import records
from .traces.given import Given
from .traces.records import Aval, Record, owned


class TermPoint(AnyPoint):
    """A combinator at a value: an element of its domain. Several arguments are the components of one, and it is
    differentiated in those numbered by `argnums` (None, or EACH: in all together). With `has_aux` it ends in a direct
    sum of two spaces, and the second component is auxiliary."""

    def __init__(
        self, f: Arrow, args: tuple[Any, ...], argnums: Any = None, space: Space | None = None, has_aux: bool = False
    ) -> None:
        value = args[0] if len(args) == 1 else tuple(args)
        traced = any_traced(value)
        if space is None:
            space = f.domain if isinstance(f, Term) else traced_space(value) if traced else space_of(value)
        self.term = _fitted(f, space)
        self.domain, self._results = self.term.domain, (self.term.codomain,)
        if has_aux:
            if not isinstance(self.term.codomain, DirectSum) or len(self.term.codomain.summands) != 2:
                raise SpaceError(f"has_aux=True: {f} must end in a pair (value, aux); it ends in {self.term.codomain}")
            self._results = self.term.codomain.summands
        self.codomain = self._results[0]
        self.main = len(self.codomain.leaves)
        element = as_element(args, self.domain)
        if traced:
            kinds = [(x, getattr(getattr(x, "dtype", None), "kind", "")) for x in opened(self.domain, element)]
            self.leaves = [x if isinstance(x, float) or kind == "f" else x * 1.0 for x, kind in kinds]
        else:
            self.leaves = self.domain.open(element)
        self.home = innermost(self.leaves) if traced else None
        self.moving = [True] * len(self.leaves)
        self._order = tuple(range(len(self.leaves)))
        if argnums is not None and argnums is not EACH:
            self._choose(argnums, len(args))

    def _choose(self, argnums: Any, count: int) -> None:
        """Differentiate in some of several arguments."""
        if count == 1 and type(argnums) is int and argnums == 0:
            return
        chosen = argument_numbers(argnums, count, self.term)
        parts = (self.domain,) if count == 1 else components(self.domain, count)
        ends = np.cumsum([0, *[len(V.leaves) for V in parts]]).tolist()
        places = [k for i in chosen for k in range(ends[i], ends[i + 1])]
        several = isinstance(argnums, (tuple, list))
        self.domain = direct_sum(*[parts[i] for i in chosen]) if several else parts[chosen[0]]
        self._order = in_turn(places, len(self.leaves))
        self.leaves = [self.leaves[k] for k in self._order]
        self.moving = [k in places for k in range(len(self.leaves))]

    @property
    def name(self) -> str:
        return str(self.term)

    @property
    def derived(self) -> dict[Any, Any]:
        return cast("dict[str, Any]", self.term.__dict__).setdefault("derived", {}).setdefault(self._order, {})

    def program(self) -> Program:
        known = self.derived
        if "program" not in known:
            found = lower(self.term)
            known["program"] = found.prune([found.inputs[k] for k in self._order], found.outputs)
        return known["program"]

    @property
    def inputs(self) -> list[Any]:
        return self.leaves

    @property
    def held(self) -> set[int]:
        return {id(x) for x in self.leaves}

    @property
    def gradient_dtype(self) -> Any:
        """float32 where all of the point is, or less."""
        kinds = [getattr(x, "dtype", FLOAT) for x in self.leaves]
        return np.result_type(*kinds) if kinds else FLOAT

    @property
    def gradient_dtypes(self) -> list[Any]:
        return [self.dtype] * len(self.domain.leaves)

    @property
    def dtype(self) -> Any:
        """float32 where all of the point and of the constants is."""
        if self.gradient_dtype.itemsize == 8:
            return FLOAT
        constants = [op.value for op in self.program().ops if type(op) is Constant]
        return np.result_type(np.float32, *[x.dtype for x in constants if isinstance(x, np.ndarray)])

    def value(self) -> list[Any]:
        if self.home is not None:
            return written_at(self.program(), self.leaves, [], self.dtype)
        places = sorted(range(len(self._order)), key=self._order.__getitem__)
        result = leaves_of(interpret(self.term, self.term.domain.tree([self.leaves[k] for k in places]), NUMBERS))
        guard(self.program, self.leaves, result)
        return result

    def gradient_value(self) -> Any:
        return present(self.domain, written_at(self.gradient(), self.leaves, [], self.gradient_dtype))

    def wrap(self, values: list[Any], held: set[int] | None = None) -> Any:
        taken = self.held if held is None else held
        found: list[Any] = []
        for W in self._results:
            mine, values = values[: len(W.leaves)], values[len(W.leaves) :]
            found.append(W.wrap(mine, taken) if self.home is None else present(W, mine))
            taken = taken | {id(x) for x in mine}
        return found[0] if len(found) == 1 else tuple(found)

    def main_value(self, leaves: Sequence[Any]) -> Any:
        return in_containers(self.codomain, leaves)

    def presented(self, leaves: Sequence[Any]) -> Any:
        return in_containers(self.domain, leaves)

    def vector(self, leaves: list[Any], held: set[int]) -> Any:
        return self.domain.wrap(leaves, held)

    def pushed(self, L: LinearMap, tangents: tuple[Any, ...], arguments: bool = False) -> Any:
        return L(*tangents)

    def pullback(self, L: LinearMap) -> Callable[[Any], Any]:
        return L.H

    def at(self, program: Program) -> Instance:
        return Instance(program, tuple(self.leaves) if self.home is None else fixed(self.leaves))


def _fitted(f: Arrow, space: Space) -> Term:
    """A combinator at a space; what it was last fitted to is kept with it."""
    if isinstance(f, Term) and f.domain is space:
        return f
    kept = cast("dict[str, Any]", f.__dict__)
    known = kept.get("fitted")
    if known is None or known[0] is not space:
        known = kept["fitted"] = space, fit(f, space)
    return known[1]


def components(space: Space, count: int) -> tuple[Space, ...]:
    """The spaces of the components of a direct sum, of a copower of one, or of one with another inner product."""
    inner, around = space, list[Space]()
    while isinstance(inner, (Weighted, Copower)):
        around.append(inner)
        inner = inner.base
    if not isinstance(inner, DirectSum) or len(inner.summands) != count:
        due = f"{count} arguments are the components of a direct sum of {count} spaces"
        raise SpaceError(f"{due}, but the domain is {space}")
    parts = inner.summands
    for outer in reversed(around):
        if isinstance(outer, Copower):
            parts = tuple([V**outer.index for V in parts])
        else:
            weights = iter(cast(Weighted, outer).weights)
            parts = tuple([Weighted(V, tuple([next(weights) for _ in V.leaves]), False) for V in parts])
    return parts


class FunctionPoint(AnyPoint):
    """A Python function at arguments: differentiated in those numbered by `argnums` (None: all that hold floats)."""

    def __init__(
        self,
        f: TracedFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Any,
        space: Space | None = None,
        has_aux: bool = False,
        what: str = "a derivative",
    ) -> None:
        self.function, self.given = f, f.given(args, kwargs)
        given = self.given
        argnums = tuple(range(len(args))) if argnums is EACH else argnums
        chosen = _chosen(given, argnums, len(args), f.name)
        for i in chosen:
            _differentiable(given, i, f.name)
        derivatives_here()
        self.record: Record = f.record(given)
        self.leaves: list[Any] = given.arrays
        self.owners: list[list[int]] = given.owners
        self.single = not isinstance(argnums, (tuple, list)) and (argnums is not None or len(chosen) == 1)
        self.trees = [given.trees[i] for i in chosen]
        self.avals = [given.avals[k] for i in chosen for k in given.owners[i]]
        self._order: Sequence[int] = range(len(self.leaves))
        if len(chosen) > 1 and any([i > j for i, j in pairwise(chosen)]):
            self._reorder([k for i in chosen for k in given.owners[i]])
        self.owned = [self.owners[i] for i in chosen]
        self.moving = [False] * (len(self.leaves) + len(self.record.captured))
        spaces: list[Space] = []
        for tree, mine in zip(self.trees, self.owned, strict=True):
            spaces.append(tree_space(tree, [real_space(self.record.avals[k].shape) for k in mine]))
            for k in mine:
                self.moving[k] = True
        self.domain = _fitting(spaces[0] if self.single else direct_sum(*spaces), space)
        self.main, self.main_tree, self.aux_tree = _aux(self.record, has_aux)
        self.has_aux = has_aux
        self.codomain = records.result_space(f.name, self.record.results[: self.main], self.main_tree, what)
        self.home: Trace | None = records.home_of(self.record, self.leaves)

    def _reorder(self, moving: list[int]) -> None:
        """argnums=(1, 0): the leaves differentiated in come in the order asked for."""
        self._order = order = in_turn(moving, len(self.leaves))
        self.record = self.record.reordered(order)
        self.leaves = [self.leaves[k] for k in order]
        where = {k: at for at, k in enumerate(order)}
        self.owners = [[where[k] for k in owned] for owned in self.owners]

    @property
    def order(self) -> Sequence[int]:
        """The leaves of the arguments in the order of the program's inputs."""
        return self._order

    @property
    def reordered(self) -> bool:
        """Whether that is another order."""
        return type(self._order) is not range

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def derived(self) -> dict[Any, Any]:
        return self.record.derived

    def program(self) -> Program:
        return self.record.program

    def settle(self, keep: bool = True) -> None:
        if self.home is None:
            self.leaves = numbers_of(self.leaves)
            if self.record.captured:
                self.record, self.moving = self.record.settled(), self.moving[: len(self.leaves)]
            super().settle(keep)

    @property
    def inputs(self) -> list[Any]:
        return numbers_of([*self.leaves, *self.record.captured])

    @property
    def held(self) -> set[int]:
        return self.record.held | {id(x) for x in (*self.leaves, *self.record.captured)}

    def at(self, program: Program) -> Instance:
        """With the names of its arrays, for print: the arguments, and what the function closes over."""
        captured = self.record.captured
        outside = [x if isinstance(x, np.ndarray) else fixed((x,))[0] for x in captured]  # read by the trace around
        point = tuple(self.leaves) if self.home is None else (*fixed(self.leaves), *outside)
        names = named_arrays(self.function.function, self.owners, point, self.record)
        return Instance(program, point, names)

    def gradient_value(self) -> Any:
        assert self.home is not None
        return self.presented(records.written(self.gradient(), self.record, self.leaves, self.home, self.avals))

    def value(self) -> list[Any]:
        return records.evaluated(self.record, self.leaves)

    def wrap(self, values: list[Any], held: set[int] | None = None) -> Any:
        if self.home is None:
            values = owned(values, self.record.outputs, self.held if held is None else held)
        main = self.main_value(values)
        if not self.has_aux:
            return main
        return main, unflatten(self.aux_tree, records.filled(self.record.results[self.main :], values[self.main :]))

    def main_value(self, leaves: Sequence[Any]) -> Any:
        return unflatten(self.main_tree, list(leaves[: self.main]))

    @property
    def dtype(self) -> Any:
        """float32 where all arguments and results are, or less: SciPy's sparse matrices know no float16."""
        found = _common(self.avals, self.record.outputs[: self.main])
        return found if found is FLOAT else np.result_type(np.float32, found)

    @property
    def gradient_dtype(self) -> Any:
        return _common(self.avals)

    @property
    def gradient_dtypes(self) -> list[Any]:
        return [a.dtype for a in self.avals]

    @property
    def _arguments(self) -> Callable[[Sequence[Any]], Any]:
        return partial(_in_arguments, self.trees, [len(mine) for mine in self.owned], self.single)

    def presented(self, leaves: Sequence[Any]) -> Any:
        return self._arguments(leaves)

    def vector(self, leaves: list[Any], held: set[int]) -> Any:
        return self.presented(owned(leaves, self.avals, held))

    def pushed(self, L: LinearMap, tangents: tuple[Any, ...], arguments: bool = False) -> Any:
        v = as_element(tangents, self.domain) if self.single else tangents
        avals = self.avals if arguments else [a.moving for a in self.record.outputs[: self.main]]
        return _applied(L, v, avals, self.presented if arguments else self.main_value)

    def pullback(self, L: LinearMap) -> Callable[[Any], Any]:
        return partial(_pulled, L, self.avals, self._arguments)

    def code(self) -> Any:
        """Of a small function, once for each trace: generated code, the rows it depends on, as `watched` has them, the
        era it belongs to, and the function that says which era it is."""
        if self.has_aux or self.home is not None or not self.leaves:
            return None
        f = self.function
        make = lambda: later.graded(f, self.given, self.record, self._both)  # noqa: E731
        run = self.known(("code", self.single, self.domain), make)
        return None if run is None else (run, f.watched(self.given), f.era, f)

    def pulled(self, cotangents: Sequence[Aval]) -> Record:
        """(x, w) ↦ f'(x)*(w) as a trace, of leaves."""
        inner = transpose_linear(
            self.known("f'", lambda: derive_program(self.plain, self.moving).derivative), len(self.leaves)
        )
        leaves, tree = flatten(self.presented(self.avals))
        avals = [*[self.record.avals[k] for k in self._order], *cotangents]
        return Record(f"vjp({self.name})", inner, [], avals, leaves, tree)

    def _both(self) -> Record:
        """Value and gradient as one trace, of the arguments as they were given."""
        program, given, count = self.both(), self.given, len(self.leaves)
        inputs = [program.inputs[k] for k in np.argsort(self._order)]
        program = program.prune([*inputs, *program.inputs[count:]], program.outputs)
        program.calm = self.record.program.calm
        avals = [*self.record.outputs, *self.avals]
        results = [a if a.shape or a.dtype is not FLOAT else Aval((), FLOAT, True) for a in avals]
        leaves, tree = flatten((self.main_value(results), self.presented(results[self.main :])))
        return Record(f"value_and_grad({self.name})", program, self.record.captured, given.avals, leaves, tree)


def _in_arguments(trees: Sequence[Tree], counts: Sequence[int], single: bool, leaves: Sequence[Any]) -> Any:
    """Leaves of the domain in the containers of the arguments."""
    rest = iter(leaves)
    found = [unflatten(t, [next(rest) for _ in range(n)]) for t, n in zip(trees, counts, strict=True)]
    return found[0] if single else tuple(found)


def _pulled(L: LinearMap, avals: Sequence[Aval], contained: Callable[[Sequence[Any]], Any], w: Any) -> Any:
    return _applied(L.H, w, avals, contained)


def _applied(L: LinearMap, v: Any, avals: Sequence[Aval], contained: Callable[[Sequence[Any]], Any]) -> Any:
    """L(v) in the types of arguments or results, and in their containers."""
    if L.leaves is not None or any_traced(v):
        return of_types(L(v), avals)
    given = L.domain.open(v)
    return contained(owned(L.apply(given), avals, L.held, given))


_FLOATS = {FLOAT}


def _common(given: Sequence[Aval], results: Sequence[Aval] = ()) -> Any:
    """The type of arguments and results together; that of Python's floats where one of the arguments is one."""
    kinds = {a.dtype for a in (*given, *results)}
    if kinds == _FLOATS or not kinds or any([a.weak for a in given]):
        return FLOAT
    return np.result_type(*kinds)


def named_arrays(
    f: Any, owners: Sequence[Sequence[int]], leaves: Sequence[Any], record: Record
) -> tuple[tuple[str, Any], ...]:
    """The arrays a function closes over, as a trace of it has them, and those of its arguments, with their names."""
    known = record.derived
    if "names" not in known:  # a trace is made anew when one of them means something else
        copies = [(name, record.copy_of(x)) for name, x in closed_over(f)]
        known["names"] = [row for row in copies if row[1] is not None], argument_names(f, len(owners))
    closed, labels = known["names"]
    found = list(closed)
    for label, mine in zip(labels, owners, strict=False):
        found += [(label if len(mine) == 1 else f"{label}_{i}", leaves[k]) for i, k in enumerate(mine)]
    return tuple(found)


def closed_over(f: Any) -> list[tuple[str, Any]]:
    """The arrays a function can see by name: of its closure, and of the globals its code names."""
    code = getattr(f, "__code__", None)
    if code is None:
        return []
    cells = {name: Cell(cell).get() for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True)}
    seen = {name: f.__globals__[name] for name in code.co_names if name in f.__globals__} | cells
    return [(name, x) for name, x in seen.items() if type(x) is np.ndarray]


def parameter_names(f: Any) -> tuple[str, ...] | None:
    """The names of a Python function's arguments, where they can be known."""
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    return tuple([p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])


def argument_names(f: Any, count: int) -> list[str]:
    """The names of a function's arguments, as far as they are known."""
    code = getattr(inspect.unwrap(f), "__code__", None) if not inspect.ismethod(f) else None
    known = list(code.co_varnames[: code.co_argcount]) if code is not None else list(parameter_names(f) or ())
    return known if len(known) >= count else ["x", "y", "z"][:count] if count <= 3 else [f"x{i}" for i in range(count)]


def _chosen(given: Given, argnums: Any, count: int, name: str) -> list[int]:
    if argnums is None:
        found = [i for i in range(count) if any([given.avals[k].dtype.kind == "f" for k in given.owners[i]])]
        if not found:
            none = f"none of {count} holds floats; write 2.0 instead of 2"
            raise VectorError(f"{name} has no argument to differentiate in: {none}")
        return found
    return argument_numbers(argnums, count, name)


def _differentiable(given: Given, i: int, name: str) -> None:
    for leaf in given.leaves[i]:
        if type(leaf) is not Aval:
            raise VectorError(f"argument {i} of {name} is differentiated, but holds {describe(leaf)}{hint(leaf)}")
        if leaf.dtype.kind != "f":
            wrong = f"an array of {leaf.dtype}: use floats (x.astype(float)), or choose other arguments with argnums"
            raise VectorError(f"argument {i} of {name} is differentiated, but holds {wrong}")


def _fitting(natural: Space, space: Space | None) -> Space:
    if space is None:
        return natural
    if not isinstance(cast(Any, space), Space):
        raise SpaceError(f"space=… takes a space, such as V.weighted(w); got {space!r}")
    if [leaf.shape for leaf in space.leaves] != [leaf.shape for leaf in natural.leaves]:
        raise SpaceError(f"space={space}, but the argument lies in {natural}")
    return space


def _aux(record: Record, has_aux: bool) -> tuple[int, Tree, Tree]:
    """How many leaves belong to the value, and the trees of it and of the rest."""
    if not has_aux:
        return len(record.results), record.tree, ()
    last = record.tree[-1]
    if type(last) is not Container or last.arity != 2 or last.form is not None:
        raise SpaceError(f"has_aux=True: {record.name} must return a pair (value, aux)")
    cut = first_part(record.tree)
    return record.tree[:cut].count(LEAF), record.tree[:cut], record.tree[cut:-1]


def point(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any, space: Space | None, has_aux: bool, what: str
) -> AnyPoint:
    """A function at a point: a combinator at a value, or a Python function at arguments."""
    if isinstance(f, Arrow):
        if kwargs:
            raise SpaceError(f"a combinator takes its arguments by position; got {', '.join(kwargs)}=…")
        return TermPoint(f, args, argnums, space, has_aux)
    return FunctionPoint(as_function(f), args, kwargs, argnums, space, has_aux, what)
