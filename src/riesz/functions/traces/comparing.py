"""Whether a trace computes what plain Python computes: both are run at the numbers it was made at, and compared.

A traced array cannot answer every question as its value would (`type(x) is float`, `hasattr(x, "shape")` of a number,
`id(x)`), and code that asks takes another way then. Small functions are compared when they are first traced at
arguments of a kind; `rz.check` compares at any size.
"""

from __future__ import annotations

import math
import os
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import numpy as np

from ...errors import RieszError, TraceError
from ...ops.number_domains import NUMBERS
from ...ops.opaque import Declared, Ruled
from ...programs.program import Program, outputs
from ...programs.sub_programs import Block, Loop
from ...runtime import tuning
from ...spaces.formal_vectors import TensorValue, dense
from ...tracing.argument_trees import ONE_LEAF, Tree, flatten, numbers_of
from ...tracing.mistakes import sample
from ...tracing.surroundings.watching import codes_of, mentioned, spoken
from ...tracing.traced import Traced
from ..remade import DerivedFunction
from .given import Given
from .records import Aval, Record, presented

_QUESTIONS = "type id hasattr getattr dir vars repr str format base ctypes is_integer hash"
_ASKS = set(_QUESTIONS.split())
"""Names in code that may take another way when it is traced."""
_DEEDS = """print input open next write time perf_counter monotonic sleep now random warn warning error info debug
logger logging"""
_TELLTALE = set(_DEEDS.split())
"""Names in code that does or depends on more than its arguments say."""
_HERE = os.path.dirname(os.path.dirname(__file__))


_wanted: ContextVar[bool] = ContextVar("compared", default=True)


@contextmanager
def uncompared() -> Generator[None]:
    """For the time of a check, which compares by itself."""
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)


def comparable(function: Any, things: Sequence[Any], given: Given, record: Record) -> bool:
    """Whether a function that reaches some things can be run once more unnoticed: small code of a user's own."""
    code = _code(function)
    most = tuning.COMPARED_STEPS * tuning.COMPARED_TYPE_QUESTIONS
    if code is None or not _wanted.get() or len(record.program.ops) > most or code.co_filename.startswith(_HERE):
        return False
    if record.guards is not None and not all(
        [_known(x, a) is x for x, a in zip(given.arrays, given.avals, strict=True)]
    ):
        return False  # it holds at these arguments only
    names = {*mentioned(code), *spoken(things)}
    asks = not _ASKS.isdisjoint(names)
    times = tuning.COMPARED_TYPE_QUESTIONS if asks else 1
    return (
        _TELLTALE.isdisjoint(names)
        and all([isinstance(x, np.ndarray) for x in record.captured])
        and (asks or not record.transforms)
        and record.seconds <= tuning.COMPARED_SECONDS * times
        and all([type(x) in (float, np.ndarray, Traced) or isinstance(x, np.generic) for x in given.arrays])
        and _small(record.program, times)
    )


_WRAPPED = {partial: "func", types.MethodType: "__func__", DerivedFunction: "function"}


def _code(function: Any) -> types.CodeType | None:
    while names := [name for kind, name in _WRAPPED.items() if isinstance(function, kind)]:
        function = getattr(function, names[0])
    return getattr(function, "__code__", None) or getattr(cast(Any, type(function)).__call__, "__code__", None)


def _catches(function: Any) -> bool:
    """Whether the code of a function, or of one inside it, may catch an error."""
    code = _code(function)
    return code is not None and any([c.co_exceptiontable for c in codes_of(code)])


def _small(program: Program, times: int) -> bool:
    """Whether a run costs little, or so many times that, by its shapes; users' own functions may cost anything."""
    numbers, parts = 0, [(program, 1)]
    for part, rounds in parts:
        for op, shape in zip(part.ops, part.shapes, strict=True):
            if isinstance(op, Block):
                parts.extend([(inside, rounds * (op.length if isinstance(op, Loop) else 1)) for inside in op.programs])
            elif isinstance(op, Declared) or (isinstance(op, Ruled) and not op.smooth.ours):
                return False
            elif shape and type(shape[0]) is not tuple:
                numbers += rounds * math.prod(shape)
        if rounds * len(part.ops) > tuning.COMPARED_STEPS * times or numbers > tuning.COMPARED_NUMBERS * times:
            return False
    return True


def compare(function: Callable[..., Any], given: Given, record: Record) -> None:
    """An error where a trace and plain Python compute different things."""
    arrays = [_known(x, a) for x, a in zip(given.arrays, given.avals, strict=True)]

    def plain(change: float = 0.0) -> Any:
        args, kwargs = given.rebuilt([_changed(x, change) for x in arrays])
        return function(*args, **kwargs)

    with np.errstate(all="ignore"):
        try:
            value = plain()
        except Exception:  # then there is nothing to compare with
            return
        try:
            found = [dense(x) for x in outputs(record.program, NUMBERS, numbers_of([*arrays, *record.captured]))]
        except RieszError:  # the function's own call will say it
            return
        except Exception as problem:
            if not _catches(function):  # plain Python has another algorithm; the function's own call will say it
                return
            said = f"it gives a result in plain Python, but {type(problem).__name__} ({problem}) traced"
        else:
            floats = [x for x in map(np.asarray, arrays) if x.dtype.kind == "f"]
            size = max([np.max(np.abs(x), where=np.isfinite(x), initial=0.0) for x in floats], default=0.0)
            said = difference(value, record, found, size)
        if said and not _unsteady(plain, value):
            raise TraceError(
                f"{record.name} does not compute the same when it is traced: {said}. It depends on something that a "
                "traced array cannot answer as its number would: type(x) is …, hasattr(x, 'shape') of a number, id(x), "
                "an error it catches, a value remembered from another call. Write isinstance(x, np.ndarray), "
                "np.ndim(x) or np.where instead, or give the part that needs numbers to rz.custom_derivative"
            )


def unlike_plain(problem: Exception, function: Callable[..., Any], given: Given, name: str) -> Exception:
    """The error to raise where a function that was traced raised `problem`: a sentence where plain Python gives a
    result."""
    code = _code(function)
    if not isinstance(problem, RieszError) and asks_jax(problem):
        return TraceError(
            f"{name} calls JAX, which does not take the arrays of a trace: write rz.from_jax({name}), or, for one call "
            "inside NumPy code, rz.from_jax(that function)"
        )
    if (
        isinstance(problem, RieszError)
        or code is None
        or code.co_filename.startswith(_HERE)
        or not _TELLTALE.isdisjoint(mentioned(code))
    ):
        return problem
    arrays = [_at_point(x, a) for x, a in zip(given.arrays, given.avals, strict=True)]
    args, kwargs = given.rebuilt([_changed(x, 0.0) for x in arrays])
    try:
        with np.errstate(all="ignore"):
            function(*args, **kwargs)
    except Exception:
        return problem
    return TraceError(
        f"{name} gives a result in plain Python, but {type(problem).__name__} ({problem}) when it is traced: it asks "
        "for something that a traced array cannot answer as its number would (hasattr(x, '__iter__') of a number), or "
        "riesz does not know what it computes. Write np.ndim(x) for such questions, or give the part to "
        "rz.custom_derivative"
    )


def asks_jax(problem: BaseException | None) -> bool:
    """Whether it was JAX that was given a traced array and refused it."""
    seen: set[int] = set()
    while problem is not None and id(problem) not in seen:  # an error raised from one that it caused goes in a circle
        seen.add(id(problem))
        said = str(problem).lower() if isinstance(problem, TypeError) else ""
        if "valid jax type" in said or ("traced" in said and _inside_jax(problem)):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _inside_jax(problem: BaseException) -> bool:
    place = problem.__traceback__
    while place is not None:
        if str(place.tb_frame.f_globals.get("__name__", "")).startswith("jax."):
            return True
        place = place.tb_next
    return False


def _known(x: Any, a: Aval) -> Any:
    """An argument with numbers: in a trace, or at a space, it has none, and any will do."""
    if type(x) is not Traced and (type(x) is not np.ndarray or any(x.strides) or not x.size):
        return x
    return a.given(sample(a.shape, a.dtype))


def _at_point(x: Any, a: Aval) -> Any:
    """An argument with its numbers, where they are known."""
    try:
        return a.given(np.asarray(x.home.number(x.slot), a.dtype)) if type(x) is Traced else _known(x, a)
    except LookupError:
        return _known(x, a)


def _changed(x: Any, change: float) -> Any:
    """A number or an array of the function's own: it may write to it. With a change, moved by so much."""
    if not change or np.asarray(x).dtype.kind != "f":
        return x.copy() if type(x) is np.ndarray else x
    moved = x + change * {8: 1.0, 4: 1e7, 2: 1e10}[np.asarray(x).dtype.itemsize] * (1.0 + abs(x))
    kind = float if type(x) is float else x.dtype.type
    return np.array(moved, x.dtype) if type(x) is np.ndarray else kind(moved)


_NUMBERS = {float, np.float64}


def difference(value: Any, record: Record, found: Sequence[Any], size: float = 0.0) -> str:
    """What a plain and a traced result differ in; nothing up to rounding, also of numbers of a size."""
    one = len(record.results) == len(found) == 1 and record.tree == ONE_LEAF
    numbers = one and type(value) in _NUMBERS and type(found[0]) in _NUMBERS
    if numbers and abs(value - found[0]) <= 1e-7 * abs(value):
        return ""  # the usual case, fast
    leaves, tree = flatten(presented(value))
    if any([isinstance(a, TensorValue) for a in leaves]):
        return ""  # combinators give formal tensors, which are several arrays in a trace
    if tree != record.tree:
        return f"its result has another structure: {_form(tree)} in plain Python, {_form(record.tree)} traced"
    rest = iter(found)
    for i, (a, r) in enumerate(zip(leaves, record.results, strict=True)):
        which = "its result" if len(leaves) == 1 else f"array {i} of its result"
        if not isinstance(r, Aval):
            if type(a) in (int, bool, str) and a != r.value:
                return f"{which} is {a!r} in plain Python, {r.value!r} traced"
            continue
        b = next(rest)
        a = presented(a)
        if np.shape(a) != r.shape:
            return f"{which} has shape {np.shape(a)} in plain Python, {r.shape} traced"
        at = _apart(np.asarray(a), np.asarray(b), size)
        if at is not None:
            entry = f" at {[int(k) for k in at]}" if at else ""
            return f"{which}{entry} is {np.asarray(a)[at]:.9g} in plain Python, {np.asarray(b)[at]:.9g} traced"
    return ""


def _form(tree: Tree) -> str:
    several = f"a container of {tree[-1].arity}" if hasattr(tree[-1], "arity") else str(tree)
    return "one value" if len(tree) == 1 else several


def _apart(a: Any, b: Any, size: float) -> tuple[int, ...] | None:
    """Where two arrays differ by more than rounding of their largest number; numbers of a size may have cancelled."""
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub" or (a == b).all():
        return None
    x, y = a.astype(float), b.astype(float)
    known = np.isfinite(x) & np.isfinite(y)
    scale = max(np.max(np.abs(x[known]), initial=0.0), np.max(np.abs(y[known]), initial=0.0))
    close = {8: 1e-6, 4: 1e-3, 2: 0.1}[min([k.dtype.itemsize for k in (a, b) if k.dtype.kind == "f"], default=8)]
    far = np.where(known, np.abs(x - y) > close * max(scale, 1e-7 * size), ~((x == y) | (np.isnan(x) & np.isnan(y))))
    return tuple(np.argwhere(far)[0]) if far.any() else None


def _unsteady(plain: Callable[..., Any], value: Any) -> bool:
    """Whether a function's values differ from run to run, or with tiny changes of its arguments."""
    steps = [sign * size for size in (1e-12, 3.7e-13, 2.3e-12, 7.1e-13) for sign in (1.0, -1.0)]
    try:
        runs = [flatten(plain(change))[0] for change in (0.0, *steps)]
    except Exception:
        return True
    first = flatten(value)[0]
    return any([len(run) != len(first) or not all(map(_near, first, run)) for run in runs])


def _near(a: Any, b: Any) -> bool:
    """Whether two values are close to each other, far closer than a difference that is reported."""
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind not in "fiub":
        return True
    rtol = {2: 1e-2, 4: 1e-4}.get(x.dtype.itemsize, 1e-8)
    equal = x.shape == y.shape and bool((x == y).all())
    return equal or (x.shape == y.shape and np.allclose(x, y, rtol=rtol, atol=0.0, equal_nan=True))
