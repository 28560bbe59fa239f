"""Python functions as programs: traced once per tree, shapes, types and static arguments, and kept.

A `Record` is one trace: a program from all array leaves of the arguments (and what it captured of outer traces) to all
array leaves of the result.
"""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, update_wrapper
from time import perf_counter
from typing import Any, cast

import numpy as np

from ..calculus.domain_check import guard
from ..errors import SpaceError, TraceError, VectorError
from ..ops.number_domains import MULTIPLIED, NUMBERS, OTHER
from ..programs.passes.fusing import runnable
from ..programs.program import Program, outputs
from ..relations.base import freeze, frozen
from ..runtime import buffers, later, tuning
from ..runtime.stackless import quiet
from ..spaces.formal_vectors import dense
from ..spaces.layout import build, describe, held, hint, own_arithmetic
from ..spaces.space import Space, real_space
from ..tracing.argument_trees import LEAF, Tree, flatten, numbers_of, tree_space, unflatten
from ..tracing.classes import INTEGER, held_in
from ..tracing.mistakes import foreign
from ..tracing.registry import MASKED, PARTS
from ..tracing.sharing import ARGUMENT, rooted
from ..tracing.surroundings.contents import contents_of
from ..tracing.surroundings.outside import OUTSIDE, Outside
from ..tracing.surroundings.watching import KEPT, MISSING, Effects, Wrapper, changed, meant, place, reached
from ..tracing.trace import derivatives_here, forgive, inmost, refused
from ..tracing.traced import BOOL, FLOAT, TRACED, Trace, Traced, holds_traced, innermost, lifted, slot_of, tidy, typed
from .comparing import comparable, compare, unlike_plain
from .remade import DerivedFunction, Remade


class Aval:
    """What is known of an array leaf before its numbers are: shape, type, whether it is a Python float (None: an array
    without axes). A leaf itself, so no dataclass."""

    __slots__ = ("dtype", "shape", "weak")

    def __init__(self, shape: tuple[int, ...], dtype: Any, weak: int | None) -> None:
        self.shape, self.dtype, self.weak = shape, dtype, weak

    def given(self, array: Any) -> Any:
        """An array of this kind as it would be given: a number may be one of Python's or of NumPy's."""
        return array if self.shape or self.weak is None else float(array) if self.weak else array[()]

    @property
    def moving(self) -> Aval:
        """What is known of a differential: that of an integer is a float."""
        return Aval((), FLOAT, True) if self.weak == INTEGER else self


class Record:
    """One trace of a function."""

    def __init__(
        self, name: str, program: Program, captured: list[Any], avals: list[Aval], results: list[Any], tree: Tree
    ) -> None:
        self.name, self.program = name, program
        self.captured = captured  # further inputs: Traced arrays of outer traces, large arrays from outside
        self.avals = avals  # of the array leaves of the arguments
        self.results, self.tree = results, tree  # per leaf of the result, an Aval or a `Static`; its tree
        self._outside: Outside | None = None  # what its steps were computed from besides
        self._copies: dict[int, tuple[Any, Any]] = {}  # what stands for arrays from outside, by their identity
        self.transforms = False  # whether derivatives or maps of other functions were taken inside
        self.seconds = 0.0  # how long the function ran
        self.derived: dict[Any, Any] = {}  # programs made from this one
        self.guards: Program | None = None  # the conditions that were asked, and the answers: Note [Guards]
        self.answers: tuple[bool, ...] = ()

    def depending(self, outside: Outside | None, copies: dict[int, tuple[Any, Any]]) -> Record:
        """Itself; what it depends on besides its arguments."""
        self._outside, self._copies = outside, copies
        return self

    def wrap(self, leaves: Sequence[Any]) -> Any:
        """Leaves of the outputs → the function's result."""
        return unflatten(self.tree, filled(self.results, leaves))

    @cached_property
    def held(self) -> set[int]:
        """The identities of the arrays the program keeps."""
        return self.program.held

    @property
    def outputs(self) -> list[Aval]:
        """The array leaves of the result."""
        return [r for r in self.results if isinstance(r, Aval)]

    def noted(self) -> Record:
        """Itself; used while another function is traced it passes on what it depends on."""
        around = OUTSIDE.get()
        if around is not None and self._outside is not None:
            around.include(self._outside)
        return self

    # Note [Guards]: `if x > 0:` in a function that is traced at a point gets the answer it has there. The trace holds
    # where all such conditions have the same answers, and for each set of answers there is another. They are computed
    # whenever a trace is looked up, and a trace that does not hold is passed over. In a trace around, a guard becomes
    # one of its own. Where there is no point (spaces, code for a kind of arguments, bodies of loops) none is decided.
    def holds(self, arrays: Sequence[Any]) -> bool:
        """Whether all that was decided while the function was traced is decided alike at some arguments."""
        if self.guards is None:
            return True
        home = home_of(self, arrays)
        if home is None:
            with np.errstate(all="ignore"):
                try:
                    found = outputs(self.guards, NUMBERS, numbers_of([*arrays, *self.captured]))
                except Exception:  # the function itself will say it
                    return False
            return all([bool(dense(x)) == wanted for x, wanted in zip(found, self.answers, strict=True)])
        slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in (*arrays, *self.captured)]
        found = outputs(self.guards, home, slots)
        answers = zip(found, self.answers, strict=True)
        return all(bool(Traced(home, s, BOOL)) == wanted for s, wanted in answers)  # in turn: each may need the others

    def copy_of(self, x: Any) -> Any:
        """What stands in the program for an array from outside, or for an index array; None for others."""
        if x.dtype.kind in "iub" and not frozen(x) and id(x) not in self._copies:
            self._copies[id(x)] = x, freeze(x)
        return x if frozen(x) else self._copies.get(id(x), (None, None))[1]

    def reordered(self, order: tuple[int, ...]) -> Record:
        """The same with its arguments' leaves in another order."""
        key = ("reordered", order)
        if key not in self.derived:
            inputs, count = self.program.inputs, len(order)
            program = self.program.prune([*[inputs[k] for k in order], *inputs[count:]], self.program.outputs)
            avals = [self.avals[k] for k in order]
            found = Record(self.name, program, self.captured, avals, self.results, self.tree)
            self.derived[key] = found.depending(self._outside, self._copies)
        return self.derived[key]

    def settled(self) -> Record:
        """The same with the numbers that arrays from outside have now; the same one while nobody writes to them."""
        if not self.captured:
            return self
        known = self.derived.get("settled")
        compared = self._outside is not None and self._outside.made  # when this trace was looked up
        if known is None or not (compared or all([c.get() is c for c in known[1]])):
            contents = [contents_of(x) for x in self.captured]
            program = Program()
            given = [program.input(a.shape) for a in self.avals]
            program.outputs = outputs(self.program, program, [*given, *[program.const(c.frozen) for c in contents]])
            found = Record(self.name, program, [], self.avals, self.results, self.tree)
            found.depending(None, self._copies | {id(c.array): (c.array, c.frozen) for c in contents})
            known = self.derived["settled"] = found, contents
        return known[0]


class Static:
    """A leaf of a result that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def filled(results: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The leaves of a result, given those that are arrays."""
    rest = iter(values)
    return [r.value if isinstance(r, Static) else next(rest) for r in results]


def _array_leaf(x: Any) -> Aval | None:
    """What is known of a leaf that is an array or a float; None for static leaves."""
    kind = cast(Any, type(x))
    if kind is np.ndarray and x.dtype is FLOAT:
        return Aval(x.shape, FLOAT, False if x.shape else None)
    if kind is float:
        return _PYTHON_FLOAT
    if kind is Traced:
        return Aval(x.shape, x.dtype, x.weak)
    if kind is np.float64 or kind is np.float32 or kind is np.float16:
        return Aval((), x.dtype, False)
    x = held(x)
    kind = cast(Any, type(x))
    like_array = hasattr(kind, "__array__") and hasattr(x, "shape") and not isinstance(x, (np.generic, type))
    if isinstance(x, np.ndarray) or like_array:
        if (problem := own_arithmetic(x)) is not None:
            raise VectorError(f"an argument is {problem}")
        dtype = getattr(x, "dtype", None)
        dtype = dtype if isinstance(dtype, np.dtype) else np.asarray(x).dtype
        if dtype.kind not in "fiub" or (dtype.kind == "f" and dtype.itemsize not in (2, 4, 8)):
            complex_parts = "complex arrays are not supported: pass real and imaginary parts"
            advice = complex_parts if dtype.kind == "c" else "use float64, float32 or float16"
            advice += "" if isinstance(x, np.ndarray) else f", as x.to_numpy(dtype=float) gives of a {kind.__name__}"
            raise VectorError(f"an argument is an array of {dtype}; {advice}")
        shape = tuple(cast(Any, x).shape)
        return Aval(shape, FLOAT if dtype == FLOAT else dtype, False if shape else None)
    return None


_PYTHON_FLOAT = Aval((), FLOAT, True)


def _static_key(x: Any) -> Any:
    """A static value by what it is: arrays and containers by their contents, numbers with their bits."""
    if isinstance(x, np.ndarray):
        return (np.ndarray, x.shape, x.dtype.str, x.tobytes()) if x.dtype != object else (object(),)
    if isinstance(x, float):
        return (type(x), x.hex())
    if isinstance(x, (list, tuple)):
        return (type(x), *[_static_key(v) for v in cast("list[Any]", x)])
    if isinstance(x, dict):
        return (dict, *[(_static_key(k), _static_key(v)) for k, v in cast("dict[Any, Any]", x).items()])
    try:
        hash(x)
    except Exception:  # a TypeError as a rule, but a memoryview has a ValueError
        return (object(),)  # nothing to know it by: traced each time
    return (type(x), x)


class Given:
    """Arguments taken apart: array leaves, trees, static leaves, and which array leaves belong to which argument."""

    __slots__ = ("arrays", "avals", "key", "kwargs", "leaves", "owners", "point", "trees")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], static: frozenset[Any]) -> None:
        self.leaves: list[list[Any]] = []  # all leaves, argument by argument
        self.trees: list[Tree] = []
        self.arrays: list[Any] = []
        self.avals: list[Aval] = []
        self.owners: list[list[int]] = []  # positions among the array leaves, argument by argument
        self.point = True  # whether this is where the function is wanted, not an example of such arguments
        self.kwargs = tuple(sorted(kwargs))
        key: list[Any] = [self.kwargs]
        for name, value in (*enumerate(args), *[(k, kwargs[k]) for k in self.kwargs]):
            owned: list[int] = []
            if name in static or (isinstance(name, int) and name - len(args) in static):
                leaves, tree = [value], (LEAF,)
                key.append(_static_key(value))
            else:
                leaves, tree = ([value], (LEAF,)) if type(value) in _SIMPLE else flatten(value)
                key.append(tree)
                for i, x in enumerate(leaves):
                    aval = _array_leaf(x)
                    if aval is None:
                        key.append(_static_key(x))
                        continue
                    key.append((aval.shape, aval.dtype, aval.weak))
                    owned.append(len(self.arrays))
                    self.arrays.append(x)
                    self.avals.append(aval)
                    leaves[i] = aval
            self.owners.append(owned)
            self.leaves.append(leaves)
            self.trees.append(tree)
        self.key = tuple(key)

    @property
    def statics(self) -> list[Any]:
        """The leaves that are no arrays."""
        return [x for leaves in self.leaves for x in leaves if type(x) is not Aval]

    @property
    def decides(self) -> bool:
        """Whether conditions on the arguments can be decided: Note [Guards]."""
        return self.point and all([x.home.decides for x in self.arrays if type(x) is Traced])

    def rebuilt(self, arrays: Sequence[Any], answered: Any = lambda x: x) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with other array leaves; the others as `answered` gives them."""
        rest = iter(arrays)
        filled = [[next(rest) if type(x) is Aval else answered(x) for x in leaves] for leaves in self.leaves]
        values = list(map(unflatten, self.trees, filled))
        count = len(values) - len(self.kwargs)
        return values[:count], dict(zip(self.kwargs, values[count:], strict=True))


_SIMPLE = {float, np.ndarray, np.float64, np.float32, np.float16, Traced}


def other(args: tuple[Any, ...]) -> Any:
    """Stands for generated code where there is none yet."""
    return OTHER


class TracedFunction(Remade, Wrapper):
    """A Python function that riesz can look into. Called like the function; `grad`, `jacobian`, … take it as they take
    the function itself."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Any = (), static_argnames: Any = (), name: str | None = None
    ) -> None:
        update_wrapper(self, function, updated=())
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums or ())
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames or ())
        self.static = frozenset((*nums, *names))
        self._records: OrderedDict[Any, tuple[Record, list[Any]]] = OrderedDict()
        self._guarded: dict[Any, list[tuple[Record, list[Any]]]] = {}  # those that hold at some points only
        self._written: set[Any] = set()
        self._compared: set[Any] = set()  # the kinds of arguments at which it computed what plain Python does
        self.era = object()  # another one after `clear`
        # generated code for the kind of arguments it was last written for
        self._quick: Callable[[tuple[Any, ...]], Any] = other

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = OTHER if kwargs else self._quick(args)
        if found is not OTHER:
            return found
        given = Given(args, kwargs, self.static)
        record = self.record(given)
        if home_of(record, given.arrays) is None and "called" not in record.derived:
            record.derived["called"] = later.called(self, given, record)
        run = record.derived.get("called")
        if run is not None and (found := run(args)) is not OTHER:
            self._quick = run
            return found
        return record.wrap(evaluated(record, given.arrays))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def recipe(self) -> Any:
        return remade, (self.function, self.static, self.name)

    def __repr__(self) -> str:
        return f"rz.function({self.name})"

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """The arguments taken apart."""
        return Given(args, kwargs, self.static)

    def at(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> tuple[Record, list[Any]]:
        """The trace for these arguments, and their array leaves."""
        given = Given(args, kwargs or {}, self.static)
        return self.record(given), given.arrays

    def record(self, given: Given) -> Record:
        """The trace for arguments of this kind; made where there is none, or where something it depends on changed."""
        record = self._record(given)
        if record.program.calm:
            derivatives_here()
        return record

    def _record(self, given: Given) -> Record:
        if (outer := inmost()) is not None:
            outer.transforms = True
        known = self._records.get(given.key)
        if known is not None and self._current(known[1]):
            return known[0].noted()
        if given.decides and (some := self._guarded.get(given.key)):
            some[:] = [pair for pair in some if self._current(pair[1])]
            for pair in some:
                if pair[0].holds(given.arrays):
                    return pair[0].noted()
        things = list(reached(self.function, *given.statics))
        outside = Outside(things)
        effects = Effects(outside.before)
        record = trace_function(self.function, given, self.name, outside=outside)
        written, rolled = changed(outside.before), outside.rolled
        self._written |= written  # what the function writes to itself (a counter, a log) says nothing about its results
        steady = not (written or effects.found or outside.wrote)
        new = steady and not rolled and given.key not in self._compared
        if new and comparable(self.function, things, given, record):
            compare(self.function, given, record)
            self._compared.add(given.key)
        kept = not any([type(x) is Traced for x in record.captured]) and not rolled
        rows = outside.rows(None if steady else list(reached(self.function, *given.statics))) if kept else []
        if record.guards is not None:
            if home_of(record, given.arrays) is not None:
                record.holds(given.arrays)  # so that the trace around knows
            if kept:
                some = self._guarded.setdefault(given.key, [])
                some.insert(0, (record, rows))
                del some[tuning.GUARDED_TRACES_KEPT :]
                if len(self._guarded) > tuning.TRACES_KEPT:
                    del self._guarded[next(iter(self._guarded))]
        elif kept:
            self._records[given.key] = record, rows
            self._records.move_to_end(given.key)
            if len(self._records) > tuning.TRACES_KEPT:
                self._compared.discard(self._records.popitem(last=False)[0])
        return record.noted()

    def _current(self, watched: list[Any]) -> bool:
        """Whether nothing that a trace depends on has changed."""
        for holder, name, value in watched:
            now = holder.get(name, MISSING)
            if now is not value and meant(now) is not value and place(holder, name) not in self._written:
                return False
        return True

    def keeps(self, given: Given) -> bool:
        """Whether there is a trace for all arguments of this kind: functions that draw random numbers, or decide by
        numbers, have none."""
        return given.key in self._records

    def watched(self, given: Given) -> list[Any]:
        """What a kept trace depends on: it is out of date once `holder.get(name)` is another object."""
        return self._records[given.key][1]

    @property
    def traces(self) -> int:
        """How many traces are kept."""
        return len(self._records) + sum(map(len, self._guarded.values()))

    def clear(self) -> None:
        """Forget all traces."""
        self._records.clear()
        self._guarded.clear()
        self._compared.clear()
        self.era = object()

    def record_at(self, spaces: Sequence[Space]) -> tuple[Record, Given]:
        """The trace at spaces instead of values."""
        given = self.given(tuple([stand_in(s) for s in spaces]), {})
        given.point = False
        return self.record(given), given


def in_containers(space: Space, leaves: Sequence[Any]) -> Any:
    """Leaves in the containers of a space."""
    return build(space.code, list(leaves), lambda branch, parts: branch.make(parts))


def stand_in(space: Space) -> Any:
    """A value of a space without memory."""
    return in_containers(space, [np.broadcast_to(0.0, V.shape) if V.shape else 0.0 for V in space.leaves])


@quiet
def trace_function(*what: Any, **how: Any) -> Record:
    """Run a function on traced arrays: see `_traced`.

    A function that is the first to load a part of SciPy met its own functions there, not those that answer for traced
    arrays: it runs once more. So does one that writes, or indexes plain arrays by traced ones, with arrays from outside
    whose copies may be written to.
    """
    before, refusals = [part in sys.modules for part in PARTS], refused()
    try:
        return _traced(*what, **how)
    except Exception as problem:
        around = None if how.get("arrays") else how.get("outside")
        writes = around is not None and (around.careful or around.indexed)
        if [part in sys.modules for part in PARTS] == before and not writes:
            said = unlike_plain(problem, *what[:3])
            if said is problem:
                raise
            forgive(refusals)
            raise said from problem
        forgive(refusals)
    return trace_function(*what, **how, arrays=True) if writes else _traced(*what, **how)


def _traced(
    function: Callable[..., Any],
    given: Given,
    name: str,
    whole_numbers: bool = False,
    outside: Outside | None = None,
    branch: bool = False,
    arrays: bool = False,
) -> Record:
    """`whole_numbers`: integers in its result are arrays, no structure. `outside`: what it can reach. `arrays`: what it
    makes of arrays from outside may be written to."""
    from ..tracing.rules.all_rules import load_rules
    from .versions.answering import answering

    load_rules()
    with Trace(name, outside, branch) as trace:
        slots, trace.given, trace.decides = [trace.input(a.shape) for a in given.avals], given.arrays, given.decides
        traced = [Traced(trace, s, a.dtype, a.weak) for s, a in zip(slots, given.avals, strict=True)]
        for x in traced:
            rooted(x, ARGUMENT)
        with answering(function, None if outside is None else outside.things, arrays) as answered:
            args, kwargs = given.rebuilt(traced, answered)
            version = answered(function)
            start = perf_counter()
            try:
                result = version(*args, **kwargs)
            except Exception as problem:
                if isinstance(problem, ValueError) and isinstance(problem.__cause__, TraceError):
                    raise problem.__cause__ from None  # out[0] = x: NumPy hides why x is no number
                said = foreign(problem, name)
                if said is None:
                    raise
                raise said from problem
            seconds = perf_counter() - start
        leaves, tree = flatten(presented(result))
        found = [_result_leaf(np.asarray(x) if whole_numbers and isinstance(x, int) else x, trace) for x in leaves]
        results = [Aval(x.shape, x.dtype, x.weak) if type(x) is Traced else x for x in found]
        trace.no_refusals()
        trace.outside.finish()
    program = trace.prune([*slots, *trace.captured_slots], [x.slot for x in found if type(x) is Traced])
    program.calm = trace.calm
    record = Record(name, program, list(trace.captured), given.avals, results, tree)
    record.transforms, record.seconds = trace.transforms, seconds
    if trace.guards:
        record.guards = trace.prune([*slots, *trace.captured_slots], list(trace.guards))
        record.answers = tuple(trace.guards.values())
    return record.depending(trace.outside, trace.copies)


def presented(result: Any) -> Any:
    """Linear maps in a result stand for their matrices."""
    return result.to_dense() if hasattr(result, "to_dense") and hasattr(result, "codomain") else result


def _result_leaf(x: Any, trace: Trace) -> Any:
    x = presented(x)
    if type(x) in MASKED:
        part = "x[mask] with a mask that depends on the numbers, whose length is not known"
        raise TraceError(f"{trace.name} returns {part}; return np.where(mask, x, 0), or a sum of it")
    x = x if (held := held_in(x)) is None else held
    if type(x) in TRACED and type(x) is not Traced:
        advice = "but results are real; return real and imaginary part, z.real and z.imag"
        raise TraceError(f"{trace.name} returns complex numbers, {advice}")
    if type(x) is Traced or holds_traced(x):
        x = tidy(x)
        if type(x) is Traced:  # of an array that was written to all numbers may be known again
            return Traced(trace, slot_of(trace, x, x.dtype), x.dtype, x.weak)
    if isinstance(x, (float, np.ndarray, np.floating)):
        trace.outside.take(x, baked=False)
        array = np.asarray(x)
        if array.dtype.kind == "c":
            raise TraceError(f"{trace.name} returns a complex array; return its real and imaginary parts")
        if array.dtype.kind in "fiub":
            return lifted(x, trace)
    return Static(x)


def evaluated(record: Record, leaves: Sequence[Any]) -> list[Any]:
    """The outputs of a trace at array leaves, traced where an argument or something captured is."""
    home = home_of(record, leaves)
    if home is None:
        given = numbers_of([*leaves, *record.captured])
        found = outputs(runnable(record.program), MULTIPLIED, given)
        guard(lambda: record.program, given, found)
        return owned(found, record.outputs, record.held, [*leaves, *given])
    return written(record.program, record, leaves, home, record.outputs)


def own(x: Any, aval: Aval, shared: bool = False) -> Any:
    """A result in its type, which the caller may keep and write to; `shared` says that somebody else holds it."""
    value = dense(x)
    if not aval.shape:
        scalar = np.asarray(value, aval.dtype)[()]
        if aval.weak == INTEGER:
            return int(scalar)
        return float(scalar) if aval.weak or aval.dtype is FLOAT else scalar
    return buffers.handed(np.asarray(value, aval.dtype), shared)


def owned(values: Sequence[Any], avals: Sequence[Aval], held: set[int], given: Sequence[Any] = ()) -> list[Any]:
    """Results for the caller: what an argument, a constant, a coefficient or another result is too is copied."""
    taken = held | {id(x if isinstance(x, (np.ndarray, float)) else np.asarray(x)) for x in given}
    found: list[Any] = []
    for x, a in zip(values, avals, strict=True):
        value = dense(x)
        found.append(own(value, a, id(value) in taken))
        taken.add(id(found[-1]))
    return found


def home_of(record: Record, leaves: Sequence[Any]) -> Trace | None:
    """The trace that a computation belongs to, if any."""
    return innermost((*leaves, *record.captured))


def written(program: Program, record: Record, leaves: Sequence[Any], home: Trace, avals: Sequence[Aval]) -> list[Any]:
    """A program written into a trace: its outputs as traced arrays. See Note [Numbers] in symbolic.py."""
    slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in (*leaves, *record.captured)]
    found = outputs(program, home, slots)
    kinds = [a.weak if a.weak == INTEGER else True for a in avals]
    return [typed(Traced(home, s, a.dtype, a.weak), k) for s, a, k in zip(found, avals, kinds, strict=True)]


def result_space(name: str, results: Sequence[Any], tree: Tree, what: str) -> Space:
    """The space of a function's result; integers and the like have none."""
    for r in results:
        if isinstance(r, Static):
            aux = f"{what} needs real numbers (has_aux=True lets f return more)"
            raise SpaceError(f"{name} returns {describe(r.value)}, which is not a vector; {aux}")
        if r.dtype.kind != "f":
            real = f"{what} needs real numbers{hint(np.zeros(1, r.dtype))}"
            raise SpaceError(f"{name} returns an array of {r.dtype}; {real}")
    return tree_space(tree, [real_space(r.shape) for r in results])


@lru_cache(maxsize=1024)
def _of_builtin(f: Any) -> TracedFunction:
    return TracedFunction(f)


def remade(f: Any, static: frozenset[Any], name: str) -> TracedFunction:
    """A Function from what it is of."""
    if not static and getattr(f, "__name__", None) == name:
        return as_function(f)
    return TracedFunction(f, [k for k in static if isinstance(k, int)], [k for k in static if isinstance(k, str)], name)


def as_function(f: Any) -> TracedFunction:
    """The Function of a callable; of a Python function, a ufunc or a builtin the same each time.

    It is kept on the Python function itself, so that both go when nobody holds them.
    """
    if isinstance(f, TracedFunction):
        return f
    if isinstance(f, (types.FunctionType, DerivedFunction)):
        known = f.__dict__.get(KEPT)
        if known is None or known.function is not f:  # functools.wraps copies attributes
            known = f.__dict__[KEPT] = TracedFunction(f)
        return known
    if isinstance(f, (np.ufunc, types.BuiltinFunctionType)):
        return _of_builtin(f)
    return TracedFunction(f)
