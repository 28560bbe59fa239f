"""Python functions as programs: traced once per tree, shapes, types and static arguments, and kept."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, update_wrapper
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import TraceError
from ..ops.number_domains import OTHER
from ..runtime import later, tuning
from ..runtime.stackless import quiet
from ..spaces.layout import build
from ..spaces.space import Space
from ..tracing.argument_trees import flatten
from ..tracing.classes import held_in
from ..tracing.mistakes import foreign
from ..tracing.registry import MASKED, PARTS
from ..tracing.sharing import ARGUMENT, rooted
from ..tracing.surroundings.outside import Outside
from ..tracing.surroundings.watching import KEPT, MISSING, Effects, Wrapper, changed, meant, place, reached
from ..tracing.trace import derivatives_here, forgive, inmost, refused
from ..tracing.traced import TRACED, Trace, Traced, holds_traced, lifted, slot_of, tidy
from .remade import DerivedFunction, Remade
from .traces.comparing import comparable, compare, unlike_plain
from .traces.given import Given
from .traces.recognised import recall, remember
from .traces.records import Aval, Record, Static, evaluated, home_of, presented


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
        self.quick: Callable[[tuple[Any, ...]], Any] = other
        self.directed: dict[Any, Any] = {}  # derivatives in one direction, of small functions

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = OTHER if kwargs else self.quick(args)
        if found is not OTHER:
            return found
        given = Given(args, kwargs, self.static)
        record = self.record(given)
        if home_of(record, given.arrays) is None and "called" not in record.derived:
            record.derived["called"] = later.called(self, given, record)
        run = record.derived.get("called")
        if run is not None and (found := run(args)) is not OTHER:
            if self.keeps(given):
                self.quick = self._while_current(run, given)
            return found
        return record.wrap(evaluated(record, given.arrays))

    def _while_current(self, run: Callable[[tuple[Any, ...]], Any], given: Given) -> Callable[[tuple[Any, ...]], Any]:
        """Generated code that gives OTHER once a name this function closes over means something else."""
        watched, era = self.watched(given), self.era

        def quick(args: tuple[Any, ...]) -> Any:
            for holder, name, value in watched:
                if holder.get(name, MISSING) is not value:
                    return OTHER
            return run(args) if self.era is era else OTHER

        return quick

    @property
    def slots(self) -> int:
        """Programs of at most so many slots run as generated code."""
        return tuning.SMALL_PROGRAM_SLOTS

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
        if known is None and self.recalls(given):
            return self._records[given.key][0]
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
            if steady and outer is None and not self.static:
                remember(self.function, given.key, record, rows)
        return record.noted()

    def recalls(self, given: Given) -> bool:
        """Whether a function that did the same was traced for arguments of this kind; its trace is taken over."""
        again = None if self.static or inmost() is not None else recall(self.function, given.key)
        if again is not None:
            self._records[given.key] = again
        return again is not None

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

    def keeps_some(self, given: Given, record: Record) -> bool:
        """Whether a trace is kept for the arguments of this kind at which its conditions hold."""
        return any([kept is record for kept, _ in self._guarded.get(given.key, ())])

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
        self.directed.clear()
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
    from ..tracing.rules import all_rules as all_rules  # enters them
    from .versions.answering import answering

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
