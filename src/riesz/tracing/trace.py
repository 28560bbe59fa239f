"""The trace: a program being written while Python code runs, and errors that name the line of that code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TraceError
from ..ops.number_domains import NUMBERS
from ..programs.program import INPUT, Program, applied
from ..relations.base import freeze, frozen
from ..runtime import tuning
from ..spaces.formal_vectors import dense
from .registry import STRANGERS, public_name
from .surroundings.contents import equal
from .surroundings.outside import OUTSIDE, Outside

if TYPE_CHECKING:
    from .traced import Traced

_inmost: ContextVar[Trace | None] = ContextVar("inmost", default=None)
inmost: Callable[[], Trace | None] = _inmost.get
"""The innermost trace that is being written."""


class Trace(Program):
    """A program being written from Python code. Arrays of an outer trace that turn up inside are captured: inputs of
    their own.

    So are large arrays from outside, where that is known (`outside`): the program reads them when it runs. All other
    arrays are constants, copied when they are used.
    """

    def __init__(self, name: str = "f", outside: Outside | None = None, branch: bool = False) -> None:
        super().__init__()
        self.name = name
        self._reads = outside is not None  # not inside loops and branches
        self.outside = outside or OUTSIDE.get() or Outside()
        self.outer = _inmost.get()
        self.level = self.outer.level + 1 if self.outer is not None else 1
        around = None if self.outer is None else self.outer.branch
        self.branch: Trace | None = self if branch else around  # the innermost branch it is in, or is
        self.open = True
        self.marked: bool = self.outer is not None and self.outer.marked  # whether arrays were written to
        # the numbers, or arrays of outer traces, that the first inputs stand for; none where they are not known
        self.given: list[Any] = []
        self._numbers: dict[int, Any] = {}
        self.decides = False  # whether that is the point where the program will be used: conditions may be asked there
        self.guards: dict[int, bool] = {}  # the slots that were asked, and the answers
        self.transforms = False  # whether the function takes derivatives or maps of others
        self.refusals: list[str] = []  # what could not be traced; an error in the end, also if the function caught it
        # Traced, as they were then: theirs is the trace, and the slot, of that moment; and arrays from outside
        self.captured: list[Any] = []
        self.handles: dict[Any, Traced] = {}  # arrays that points of linear maps hold, by slot and type
        self._places: dict[Any, int] = {}  # captured arrays, by their trace and their slot there, or by their memory
        self.copies: dict[int, tuple[Any, Any]] = {}  # arrays that may be written to and their copies, by identity
        self._converted: dict[Any, tuple[Any, Any]] = {}  # constants in another type, by identity

    def capture(self, x: Traced) -> int:
        """The input slot of an array of an outer trace."""
        key = (x.home, x.slot)
        if key not in self._places:
            self._places[key] = self.input(x.shape)
            self.captured.append(x.as_it_is())
        return self._places[key]

    def inside(self, other: Trace) -> bool:
        """Whether this trace is written inside another one."""
        outer = self.outer
        while outer is not None and outer.level > other.level:
            outer = outer.outer
        return outer is other

    @property
    def captured_slots(self) -> list[int]:
        """The input slots of captured arrays."""
        return list(self._places.values())

    def const(self, value: Any) -> int:
        """The slot of a number, or of an array as it is now."""
        if isinstance(value, np.ndarray):
            large = self._reads and value.dtype.kind == "f" and value.size > tuning.WATCHED_ARRAY_NUMBERS
            if large and not frozen(value) and self.outside.has(value):
                return self._read(np.asarray(value))
            value = self.fixed(value) if value.ndim else value[()]
        return super().const(value)

    def _read(self, array: Any) -> int:
        """The input slot of a large array from outside."""
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
        if key not in self._places:
            self._places[key] = self.input(array.shape)
            self.captured.append(array)
        self.outside.take(array, baked=False)
        return self._places[key]

    def fixed(self, array: Any) -> Any:
        """An array with the numbers it has now; the same one as long as nobody writes to it."""
        if frozen(array):
            return array
        known = self.copies.get(id(array))
        if known is None or not equal(array, known[1]):
            if self.outside.has(array):
                self.outside.take(array, baked=True)
            known = self.copies[id(array)] = array, freeze(array)
        return known[1]

    def converted(self, array: Any, dtype: Any) -> Any:
        """A constant array in another type, converted once."""
        array = self.fixed(array)
        key = (id(array), dtype)
        if key not in self._converted:
            found = array.astype(dtype)
            found.flags.writeable = False
            self._converted[key] = array, found
        return self._converted[key][1]

    def __enter__(self) -> Trace:
        self._token = _inmost.set(self)
        self._before = OUTSIDE.set(self.outside)
        return self

    def __exit__(self, *problem: object) -> None:
        _inmost.reset(self._token)
        OUTSIDE.reset(self._before)
        self.open = False
        if self.outer is not None and self.refusals:  # whoever catches this error is in the outer function
            self.outer.refusals.extend(self.refusals)
        self.outer = self.branch = None
        self.given = []
        self._numbers = {}

    def decide(self, slot: int) -> bool:
        """The truth of a slot at the point; a LookupError where that is not known."""
        if slot not in self.guards:
            if not self.decides:
                raise KeyError(slot)
            with np.errstate(all="ignore"):
                self.guards[slot] = bool(self.number(slot, True))
        return self.guards[slot]

    def number(self, slot: int, deciding: bool = False) -> Any:
        """The value of a slot at the numbers the function is traced at: users' own functions are asked there for the
        shapes they give.

        A KeyError where the numbers are not known, or are not those of the point where some trace around will be used.
        What was computed is kept until the trace ends.
        """
        if deciding and not self.decides:
            raise KeyError(slot)
        known = self._numbers
        inputs = dict(zip(self.inputs, self.given, strict=False))
        inputs |= dict(zip(self.captured_slots, self.captured, strict=True))
        for s in self.ancestors([slot], known):
            if self.ops[s] is INPUT:
                x: Any = inputs[s]
                traced = hasattr(x, "home")
                known[s] = x.home.number(x.slot, deciding) if traced else x if type(x) is float else _numbers(x)
            else:
                known[s] = applied(NUMBERS, self.ops[s], [known[a] for a in self.args[s]])
        return dense(known[slot])

    def no_refusals(self) -> None:
        """An error if the function went on although something could not be traced: its result is wrong then."""
        if self.refusals:
            first, *more = self.refusals
            others = f"; and {len(more)} more" if more else ""
            raise TraceError(
                f"{self.name} caught an error of riesz and went on, so its result is not what it computes with "
                f"numbers. The error was: {first}{others}. Catch narrower errors around it (except ValueError, "
                "LinAlgError, …), or give the function that catches it to rz.custom_derivative: it is then called "
                "with numbers"
            )


def _numbers(x: Any) -> Any:
    try:
        return np.asarray(x)[()]
    except Exception as problem:  # somebody else is tracing
        raise KeyError(type(x)) from problem


def derivatives_here() -> None:
    """What is being traced takes derivatives: nobody is warned of what is infinite in them."""
    trace = _inmost.get()
    while trace is not None and not trace.calm:
        trace.calm, trace = True, trace.outer


def current_level() -> int:
    """How many traces are being written, one inside the other."""
    trace = _inmost.get()
    return 0 if trace is None else trace.level


def refused() -> tuple[Trace | None, int]:
    """How many refusals there are by now, for `forgive`."""
    trace = _inmost.get()
    return trace, 0 if trace is None else len(trace.refusals)


def forgive(before: tuple[Trace | None, int]) -> None:
    """Forget later refusals: riesz itself tried something, and does without it."""
    trace, count = before
    if trace is not None:
        del trace.refusals[count:]


def _users() -> tuple[Any, Any]:
    """The frame of the user's code, and the function of a library's that it called: itself where riesz answers
    for it, else the frame it runs in; or None."""
    here = os.path.dirname(os.path.dirname(__file__))
    loaded = [sys.modules[name] for name in ("numpy", "scipy", *STRANGERS) if name in sys.modules]
    homes = tuple([os.path.dirname(module.__file__) + os.sep for module in loaded if module.__file__])
    frame, called = sys._getframe(1), None  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        library = file.startswith(homes)
        if not library and not file.startswith((here, "<frozen", "<__array_function__")):
            break
        if not file.endswith("mixins.py"):  # the operators of NumPy's mixin are the user's own
            called = frame if library else _asked(frame) or called
        frame = frame.f_back
    return frame, called


_ASKED = {"__call__": ("self", "cls"), "__array_function__": ("function",), "__array_ufunc__": ("ufunc",)}
"""Functions of ours that answer for one of a library: which of their names says which."""


def _asked(frame: Any) -> Any:
    """The function of a library that a frame of riesz's own answers for, or None."""
    for name in _ASKED.get(frame.f_code.co_name, ()):
        found = frame.f_locals.get(name)
        found = getattr(found, "original", None) if name in ("self", "cls") else found
        if found is not None:
            return found
    return None


def user_frame() -> Any:
    """The frame of the user's code."""
    return _users()[0]


def name_of(asked: Callable[[Any], bool], usual: str) -> str:
    """The name by which the user's code knows an array, for advice; the usual one where it has none."""
    frame = user_frame()
    return next((name for name, x in [*frame.f_locals.items(), *frame.f_globals.items()] if asked(x)), usual)


def asked_for(function: Any) -> bool:
    """Whether it is this function of a library's that the user's code called, not one that another one calls."""
    return _users()[1] is function


def user_line(said: str = "") -> str:
    """Where the user's code is, for error messages; and what it calls there, if that is not said yet."""
    frame, _ = _users()
    theirs = library_function()
    inside = f", which calls {theirs}" if theirs and theirs.rsplit(".", 1)[-1] not in said else ""
    return f" (at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}, in {frame.f_code.co_name}{inside})"


def library_function() -> str:
    """The name of the function of NumPy's or SciPy's that the user's code called, as far as that is known."""
    _, called = _users()
    if called is None:
        return ""
    if not hasattr(called, "f_code"):
        return public_name(called)
    words = [word for word in called.f_globals.get("__name__", "").split(".") if word[0] != "_"]
    return ".".join([*words, called.f_code.co_qualname.removesuffix(".__init__")])


def converting() -> str:
    """The name of the function that wants plain numbers: of compiled code there is no frame, but the user's line."""
    if (found := library_function()) and "<locals>" not in found:
        return found
    from .call_sites import called_at

    frame = user_frame()
    return called_at(frame, frame.f_lasti)[0] or found


def converter() -> str:
    """Which function of a library wants plain numbers, for error messages; nothing if none is known."""
    return f", which {found} asks for" if (found := library_function()) else ""


def refuse(message: str) -> TraceError:
    """An error that names the user's line. The trace keeps it, in case the user's code catches it."""
    problem = message + user_line(message)
    trace = _inmost.get()
    if trace is not None:
        trace.refusals.append(problem)
    return TraceError(problem)


def leaked(trace: Trace) -> TraceError:
    """The error of an array that outlived its trace."""
    return refuse(
        f"a traced array of {trace.name} is used after its trace has ended: it was kept in a variable outside the "
        "function, by itself, in a linear map or in a rule of rz.custom_derivative; return it instead, or pass it as "
        "an argument"
    )
