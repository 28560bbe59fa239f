"""What is said to calls that are wrong, or that no traced array can answer. A rule that fails asks NumPy itself, on
numbers of the same shapes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np

from ..errors import RieszError, TraceError
from ..runtime import tuning
from .registry import STRANGERS
from .trace import converter, refuse

_LIBRARIES = {"riesz", "numpy", "scipy", *STRANGERS}


def raise_explained(problem: Exception, function: Any, args: Any, named: Any = None, name: str = "") -> NoReturn:
    """Raise what explains the error of a rule; to be called where it was caught."""
    found = explained(problem, function, args, named, name)
    if found is problem:
        raise
    raise found from None


def explained(problem: Exception, function: Any, args: Any, named: Any, name: str) -> Exception:
    """What a problem of a NumPy function's rule is: NumPy's own error, or one that says what riesz does not know."""
    if isinstance(problem, (RieszError, np.exceptions.AxisError)) or _any((args, named), _not_numpys):
        return problem
    called = name or f"np.{getattr(function, '__name__', function)}"
    if _any((args, named), _large):
        known = isinstance(problem, (ValueError, IndexError))
        return problem if known else refuse(f"{called}: {type(problem).__name__}: {problem}")
    try:
        with np.errstate(all="ignore"):
            function(*_standing_in(args), **_standing_in(named or {}))
    except Exception as own:
        named_it = isinstance(problem, TypeError) and str(problem).startswith("scipy.")  # SciPy's may name _parse_args
        return problem if named_it or isinstance(own, AssertionError) else own
    if isinstance(problem, TypeError) and ("'Traced'" in str(problem) or "traced[" in str(problem)):
        return refuse(
            f"{called} is compiled code, which needs numbers that are not known yet; docs/coverage.md lists what riesz "
            "knows, and rz.custom_derivative gives a function a derivative of your own"
        )
    if isinstance(problem, TypeError) and "argument" in str(problem):
        unknown = f"arguments that riesz does not know for traced arrays ({problem})"
        return refuse(f"{called} was called with {unknown}; see docs/coverage.md")
    what = f"{type(problem).__name__}: {problem}"
    return refuse(f"{called} on traced arrays of these shapes is not known to riesz ({what})")


def foreign(problem: Exception, name: str) -> Exception | None:
    """What to say where another library stumbled over a traced array, and where plain Python has another word."""
    if isinstance(problem, RieszError):
        return None
    steps = _steps(problem)
    frames = [step.tb_frame for step in steps]
    rooms = [frame.f_globals.get("__name__", "").split(".") for frame in frames]
    said = "it never ends" if isinstance(problem, RecursionError) else (str(problem).splitlines() or [""])[0]
    room = next((r[0] for r in reversed(rooms) if r[0] in STRANGERS), None)
    theirs, called = type(problem).__module__.split(".")[0] in STRANGERS, ""
    mine = [step for step, r in zip(steps, rooms, strict=True) if r[0] not in _LIBRARIES]
    if mine:
        from .call_sites import called_at

        called, library = called_at(mine[-1].tb_frame, mine[-1].tb_lasti)
        if library in STRANGERS:  # compiled code has no frame
            room, theirs = library, True
    if room is not None and (theirs or "Traced" in str(problem) or isinstance(problem, RecursionError)):
        at = f"{_place(mine[-1])}, " if mine else ""
        return TraceError(f"{outside(room, said, called)} ({at}in {name})")
    last = [f for f, r in zip(frames[-2:], rooms[-2:], strict=True) if r[0] != "riesz"]  # ours may ask with numbers
    compiled = rooms[-1][0] in ("scipy", "numpy") and any([_any(dict(f.f_locals), _traced) for f in last])
    attribute = compiled and isinstance(problem, AttributeError)
    if attribute or (isinstance(problem, TypeError) and (compiled or "'Traced'" in said)):
        room = ".".join([part for part in rooms[-1] if not part.startswith("_")]) if compiled else "Python"
        return TraceError(
            f"a function of {room} needs numbers, which are not known while {name} is traced ({said}); "
            "docs/coverage.md lists what riesz knows, and rz.custom_derivative adds your own"
        )
    if isinstance(problem, AttributeError) and _traced(problem.obj) and type(problem.obj).__name__ in said:
        from .classes import class_of

        return AttributeError(said.replace(type(problem.obj).__name__, class_of(problem.obj).__name__))
    return None


def _steps(problem: Exception) -> list[Any]:
    found, step = [], problem.__traceback__
    while step is not None:
        found.append(step)
        step = step.tb_next
    return found


def _place(step: Any) -> str:
    return f"at {os.path.basename(step.tb_frame.f_code.co_filename)}:{step.tb_lineno}"


def raised_at(problem: Exception) -> tuple[str, str]:
    """The user's line that an error came from, and the function that is called there, as its author wrote it."""
    from .call_sites import called_at

    mine = [s for s in _steps(problem) if s.tb_frame.f_globals.get("__name__", "").split(".")[0] not in _LIBRARIES]
    return (_place(mine[-1]), called_at(mine[-1].tb_frame, mine[-1].tb_lasti)[0]) if mine else ("", "")


def outside(room: str, said: str, called: str = "") -> str:
    """The sentence for a library that knows numbers only."""
    way = "take the numbers out of its object first, as s.to_numpy() does, and use NumPy's functions on them"
    if room == "jax":
        way = "use NumPy's functions, or give a function of JAX to rz.from_jax(f, x)"
    return f"{called or room} cannot compute with a traced array ({said}); {way}"


def _not_numpys(x: Any) -> bool:
    """A user's function has its own errors, and of sparse matrices NumPy knows nothing."""
    return callable(x) or hasattr(x, "tocoo")


def _traced(x: Any) -> bool:
    from .traced import TRACED

    return type(x) in TRACED


def _large(x: Any) -> bool:
    return abs(x) > tuning.NUMPY_ASKED_NUMBERS if type(x) is int else getattr(x, "size", 0) > tuning.NUMPY_ASKED_NUMBERS


def _any(values: Any, test: Callable[[Any], bool]) -> bool:
    stack: list[Any] = [values]
    while stack:
        x = stack.pop()
        if isinstance(x, (list, tuple)):
            stack.extend(cast("list[Any]", x))
        elif isinstance(x, dict):
            stack.extend(cast("dict[Any, Any]", x).values())
        elif test(x) and not isinstance(x, (type, np.dtype)):
            return True
    return False


def _standing_in(x: Any) -> Any:
    """A value with numbers in the place of traced arrays."""
    if _traced(x):
        return sample(x.shape, np.dtype(x.dtype))
    if type(x) in (list, tuple):
        return type(x)([_standing_in(part) for part in x])
    if type(x) is dict:
        return {k: _standing_in(v) for k, v in cast("dict[Any, Any]", x).items()}
    return x


def sample(shape: tuple[int, ...], dtype: Any) -> Any:
    """Well-behaved numbers: matrices far from singular, positive, no two alike."""
    size = math.prod(shape)
    if size > tuning.STAND_IN_NUMBERS:
        return np.broadcast_to(np.ones((), dtype), shape)
    found = np.linspace(0.25, 0.75, size).reshape(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        found = found + found.swapaxes(-1, -2) + 2 * shape[-1] * np.eye(shape[-1])
    return found.astype(dtype)


def no_number(kind: str) -> Any:
    """A conversion to a number of Python's."""

    def method(self: Any) -> Any:
        what = f"array of shape {self.shape}" if self.shape else "number"
        raise refuse(
            f"{kind}() needs a number{converter()}, but this is a traced {what}; leave {kind}() out, write np.sin(x) "
            "for math.sin(x); to write it into an array of a library's (a[i] = x), copy that: a = np.array(a); to fill "
            "a sparse matrix, write its entries as arrays: scipy.sparse.coo_array((values, (rows, columns)), shape)"
        )

    return method
