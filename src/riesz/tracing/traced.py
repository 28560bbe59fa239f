"""Traced arrays: NumPy code run once on them writes a program.

A `Traced` array is a slot of a `Trace` with a shape and a dtype. NumPy hands every function on it to us
(`__array_ufunc__`, `__array_function__`); the rules in the other files of this room say which steps that is. Promotion
of types is decided here, at trace time.
"""

from __future__ import annotations

import operator as operator_module
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..errors import TraceError
from ..ops.op import Cast
from ..ops.opaque import Discrete
from ..spaces.layout import own_arithmetic
from .array_methods import ArrayMethods
from .classes import (
    INTEGER,
    Described,
    Kind,
    asks_as_author,
    class_of,
    closed_for,
    held_in,
    is_integer,
    of_python,
)
from .deciding import decided, one_number, whole_number, whole_part
from .layouts import Made
from .mistakes import no_number, raise_explained
from .operators import ChangesItself, Operators
from .registry import BY_NAME, FUNCTIONS, MASKED, UFUNCS, WRITERS, by_name
from .registry import NOTES as NOTES
from .registry import answers as answers
from .sharing import (
    SUMS,
    base_of,
    current_slot,
    fresh,
    moved,
    rooted,
)
from .surroundings.outside import PLAIN
from .surroundings.watching import Standing
from .trace import Trace, converting, inmost, leaked, refuse
from .trace import current_level as current_level

Shape = tuple[int, ...]
FLOAT = np.dtype(float)
INT = np.dtype(np.intp)
BOOL = np.dtype(bool)
_PYTHON = (bool, int, float)


class Traced(ChangesItself, ArrayMethods, Described, Operators, metaclass=Kind):
    """An array of a trace. It behaves like a NumPy array whose numbers are not known yet."""

    __slots__ = ("_shape", "dtype", "home", "look", "maker", "own_slot", "weak")
    __array_priority__ = 1000.0

    def __init__(
        self, trace: Trace, slot: int, dtype: Any = FLOAT, weak: int | None = False, shape: Any = None
    ) -> None:
        self.home = trace
        self.own_slot = slot
        self._shape: Shape = trace.shapes[slot] if shape is None else shape  # given where nobody has read it yet
        self.dtype = dtype
        self.weak = weak  # a Python float: it takes the type of what it meets; None: an array without axes, no number
        self.look: Any = None  # the memory it shares with others (sharing.py)
        self.maker = inmost()  # who may write to it

    @property
    def slot(self) -> int:
        """Where it is in its trace, now."""
        return self.own_slot if self.look is None else current_slot(self)

    def unshare(self) -> None:
        """It is on its own."""
        self.own_slot, self.look = self.slot, None

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        """What the value would be, for isinstance in the users' code (Note [Class])."""
        return Traced if asks_as_author(sys._getframe(1)) else class_of(self)  # pyright: ignore[reportPrivateUsage]

    def _no_shape(self, shape: Any) -> None:
        raise refuse(f"x.shape = … changes an array in place; write x = x.reshape({shape})")

    shape: Any = property(operator_module.attrgetter("_shape"), _no_shape, doc="The lengths of the axes.")

    base: Any = property(base_of, doc="The array it is a view of, or None.")
    real: Any = property(lambda self: self, lambda self, x: self.__setitem__(..., x), doc="The array itself.")
    imag: Any = property(lambda self: lifted(np.zeros(self.shape, self.dtype), self.home), doc="Zeros.")

    @property
    def flat(self) -> Any:
        """The elements in one axis; it may be written to."""
        return BY_NAME["Flat"](self)

    def _call(self, function: Any, *args: Any, **named: Any) -> Any:
        return BY_NAME["call_function"](function, (self, *args), named)

    # -- NumPy's hooks ------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        if not MASKED.isdisjoint(map(type, args)):
            return NotImplemented
        if method == "at" or (named and any([x is not None for x in named.get("out") or ()])):
            return BY_NAME["ufunc_on"](ufunc, method, args, named)
        if method != "__call__":
            return BY_NAME["ufunc_method"](ufunc, method, args, named)
        return typed(BY_NAME["call_ufunc"](ufunc, BY_NAME["integers"](args), named), False)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if not MASKED.isdisjoint(types):
            return NotImplemented
        if is_complex(args) or (named and is_complex(tuple(named.values()))):
            return BY_NAME["call_complex"](function, args, named)
        if function not in FUNCTIONS or named.get("out") is not None:
            if function in WRITERS or function in FUNCTIONS:
                return BY_NAME["function_on"](function, args, named)
            name = f"{getattr(function, '__module__', 'numpy')}.{getattr(function, '__name__', function)}"
            advice = "docs/coverage.md lists what is, and rz.custom_derivative adds your own"
            raise refuse(f"{name} is not known to riesz for traced arrays; {advice}")
        return BY_NAME["call_function"](function, args, named)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        return Standing.numpy

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if (closed := closed_for(self, sys._getframe(1))) is not None:  # pyright: ignore[reportPrivateUsage]
            return closed
        method = "dot" in sys._getframe(1).f_code.co_names  # A.dot(x) of a plain array asks nobody  # pyright: ignore[reportPrivateUsage]
        if (method or self.dtype.kind != "f") and (home := inmost()) is not None:
            home.outside.indexed = True
        if self.dtype.kind == "b":
            mask = "a mask that depends on the numbers cannot select from a NumPy array"
            raise refuse(f"{mask}: the result's length is not known; write np.where(mask, a, 0)")
        if self.dtype.kind != "f":
            raise refuse("a traced integer cannot index a NumPy array by a[i]; write np.take(a, i)")
        if dtype is not None and np.dtype(dtype).kind == "c":
            raise refuse("traced numbers cannot be written into a complex array; build it from them: z = x + 1j * y")
        astype = "" if dtype is None else f"For another type write x.astype(np.{np.dtype(dtype).name}). "
        called = converting()
        said = f"{called} converts its arguments, which are traced: a" if called else "a"
        raise refuse(
            f"{said} traced array of shape {self.shape} cannot become a plain NumPy array: its numbers are not "
            f"known yet. {astype}To build an array of traced numbers write np.stack([…]) or np.concatenate; to write "
            "into an array that an object of a library's made (a[i] = x), copy that first: a = np.array(a); a "
            "function that makes plain arrays of its arguments can be given a derivative of its own with "
            "rz.custom_derivative (docs/coverage.md lists those that are known)"
        )

    def apply_primitive(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        """p(args), for riesz's own primitives."""
        return primitive_step(primitive, *args)

    def operate(self, ufunc: Any, left: Any, right: Any) -> Any:
        """An operator's ufunc."""
        if self.weak == INTEGER and all([type(x) is int or is_integer(x) for x in (left, right)]):
            return BY_NAME["of_integers"](ufunc, left, right)
        waits = self.look is not None and self.look.waits and self is left and ufunc in SUMS
        if waits and (later := BY_NAME["plus"](ufunc, self, right)) is not None:
            return later
        if type(left) is not Traced or type(right) is not Traced:
            if type(right) in HOLDERS:
                return NotImplemented
            result = BY_NAME["operator"](ufunc, left, right)
        else:
            result = UFUNCS[ufunc](left, right)
            if (left.look is not None and left.look.moved) or (right.look is not None and right.look.moved):
                result = fresh(result, ufunc, (left, right), {})
        return typed(result, True) if self.weak and of_python(left) and of_python(right) else result

    def operate_alone(self, ufunc: Any) -> Any:
        """The ufunc of an operator with one operand."""
        found = BY_NAME["call_ufunc"](ufunc, (typed(self, True) if self.weak == INTEGER else self,), {})
        return typed(found, self.weak or False)

    def change(self, ufunc: Any, other: Any) -> Any:
        """An in-place operator's ufunc."""
        return BY_NAME["in_place"](ufunc, self, other)

    # -- as a sequence ------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Traced:
        try:
            if type(key) is not int and any([_masks(k) for k in (key if type(key) is tuple else (key,))]):
                return BY_NAME["masked"](self, key)
            look = self.look
            stale = look is not None and not look.waits and look.seen != look.memory.version
            if stale and (part := BY_NAME["part"](self, key)) is not None:
                return part
            found = BY_NAME["index"](self, key)
            if len(found.shape) > 1 and found.look is None and found is not self:
                rooted(found, odd=Made(operator_module.getitem, (self, key)))  # index arrays may lay it out otherwise
            whole = not found.shape and (key is ... or (type(key) is tuple and any([k is ... for k in key])))
            return typed(found, None) if whole else found
        except Exception as problem:
            if self.weak and not self.shape and isinstance(problem, IndexError):
                raise TypeError(f"'{class_of(self).__name__}' object is not subscriptable") from None
            raise_explained(problem, operator_module.getitem, (self, key), name="x[…]")

    def __iter__(self) -> Iterator[Traced]:
        return iter([self[i] for i in range(len(self))])

    # -- what cannot be -----------------------------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            BY_NAME["assign"](self, key, value)
        except Exception as problem:
            raise_explained(problem, operator_module.setitem, (self, key, value), name="x[…] = …")

    def __bool__(self) -> bool:
        return decided(self)

    def __index__(self) -> int:
        if (home := inmost()) is not None and not home.outside.indexed:
            home.outside.indexed = True  # the function is traced once more, and A[i] of a plain array is a step then
            raise refuse("a traced integer cannot index a NumPy array by a[i]; write np.take(a, i)")
        return whole_number(self)

    def __int__(self) -> int:
        if self.dtype.kind in "iub" and not self.shape:
            return whole_number(self)
        found = whole_part(self)
        return no_number("int")(self) if found is None else found

    __float__, __complex__ = no_number("float"), no_number("complex")

    def item(self, *at: Any) -> Any:
        """A number of Python's: of the array of one, or at a place."""
        found = one_number(self, at)
        return typed(convert(found, FLOAT), True) if type(found) is Traced else found

    def tolist(self) -> Any:
        """Lists in lists of numbers of Python's."""
        return [self[i].tolist() for i in range(len(self))] if self.shape else self.item()

    def view(self, *kinds: Any, **named: Any) -> Any:
        """The same array; not in another type."""
        if all([k is None or k is np.ndarray or k == self.dtype for k in (*kinds, *named.values())]):
            return self[...]
        raise refuse(
            "x.view() looks at an array as another kind of array, which a traced one cannot become (masked arrays are "
            "such: use np.where)"
        )

    def __repr__(self) -> str:
        kind = "" if self.dtype == FLOAT else f", {self.dtype}"
        return f"traced{list(self.shape) if self.shape else ''}{kind}"

    def __format__(self, spec: str) -> str:
        return repr(self)

    # -- in another type, as a copy, rounded ---------------------------------------------------------------

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """In another type; a copy, unless copy=False and the type stays."""
        found = convert(self, np.dtype(dtype))
        if found is self and named.get("copy", True) is False:
            return self
        return found.copy(args[0] if args else named.get("order", "K")) if found is self or moved(self) else found

    def as_it_is(self) -> Traced:
        """The slot of this moment, in its own trace."""
        return Traced(self.home, self.slot, self.dtype, self.weak)

    def copy(self, order: str | None = "C") -> Traced:
        """The same numbers, on their own."""
        now = inmost()
        home = self.home if now is None else now  # the copy belongs to the function that makes it
        found = Traced(home, self.slot if home is self.home else slot_of(home, self, self.dtype), self.dtype, self.weak)
        if len(self._shape) > 1 and (order == "F" or (order != "C" and moved(self))):
            rooted(found, odd=Made(np.array, (self,), {"order": order or "K"}))
        return found

    def __round__(self, digits: int | None = None) -> Any:
        rounded = self._call(np.round, digits or 0)
        return self.whole(rounded) if digits is None else typed(rounded, bool(self.weak))

    def whole(self, found: Any) -> Any:
        """A number without a fraction as Python's integer; of NumPy's integers those of NumPy."""
        if self.shape:
            raise TypeError(f"only 0-dimensional arrays can be converted to Python scalars, not shape {self.shape}")
        return typed(found, INTEGER if self.dtype.kind == "f" else False)


WRITTEN: set[Any] = set()
"""The class of arrays that a trace made and may write to; writing/written.py enters it."""
TRACED: set[Any] = {Traced}
"""The classes of traced arrays; complexes.py adds the complex one."""
HOLDERS: set[Any] = set()
"""Classes of what is made of traced arrays and has operators of its own: sparse matrices."""


PLAIN.add(Traced)


def _masks(key: Any) -> bool:  # that depends on the numbers, or has positions of one
    return type(key) in MASKED or (type(key) is Traced and key.dtype.kind == "b")


def typed(x: Any, weak: int | None) -> Any:
    """A traced number as one of Python (of its operators), of NumPy (of ufuncs), or (None) an array without axes."""
    if type(x) is not Traced or x.weak is weak or x.shape or (weak and x.dtype is not FLOAT and weak != INTEGER):
        return x
    if weak == INTEGER and x.dtype is not FLOAT:
        x = convert(x, FLOAT)
    elif weak is None and x.weak == INTEGER:
        x = convert(x, INT)
    return Traced(x.home, x.slot, x.dtype, weak)


def innermost(xs: Sequence[Any]) -> Trace | None:
    """The innermost trace among arrays, and lists of them; None where none is traced."""
    found: Trace | None = None
    stack = [x for x in xs if type(x) is not float and not (type(x) is np.ndarray and x.dtype is FLOAT)]
    while stack:
        x = stack.pop()
        if type(x) is Traced:
            if found is None or x.home.level > found.level:
                found = x.home
        elif isinstance(x, (list, tuple)):
            stack.extend(cast("list[Any]", x))
        elif isinstance(x, np.ndarray) and cast(Any, x).dtype.hasobject:
            stack.extend(cast(Any, x).ravel().tolist())
    if found is not None and not found.open:
        raise leaked(found)
    return found


def trace_of(*xs: Any) -> Trace:
    """The innermost trace; in a branch, the branch: what it computes may fail where it is not taken."""
    found, now = innermost(xs), inmost()
    if found is None:
        raise AssertionError("no traced argument")
    branch = None if now is None else now.branch
    return found if branch is None or branch.level <= found.level else branch


def settle(x: Any) -> Any:
    """As it is now: arrays that were written to as traced ones, in lists and tuples too."""
    return BY_NAME["settled"](x)


def tidy(x: Any) -> Any:
    """Lists, object arrays and the like as something with a shape; numbers and arrays as they are."""
    if type(x) in TRACED:
        return x
    if type(x) in WRITTEN:
        return x.now()
    if isinstance(x, (float, int, np.ndarray, np.generic)):
        if isinstance(x, np.ndarray) and cast(Any, x).dtype == object:
            return stacked(cast(Any, x).tolist())
        if (problem := own_arithmetic(x)) is not None:
            raise refuse(f"cannot compute with {problem}")
        return x
    if isinstance(x, (list, tuple)):
        return stacked(cast(Any, x))
    if hasattr(x, "__array__"):
        return np.asarray(x) if (held := held_in(x)) is None else held
    hint = "; write float(c)" if hasattr(cast(Any, type(x)), "__float__") else ""
    hint = "; a sparse matrix is multiplied with @" if hasattr(x, "tocoo") else hint
    raise refuse(f"cannot compute with {type(x).__name__} and a traced array: {x!r}{hint}")


def as_array(x: Any) -> Any:
    """An array, traced or not, from anything like one."""
    x = tidy(x)
    return (typed(x, None) if type(x) is Traced and x.weak else x) if type(x) in TRACED else np.asarray(x)


def of_types(*xs: Any) -> list[Any]:
    """Arguments of a function that makes arrays of them: beside others Python's numbers are of float64 there."""
    given = [tidy(x) for x in xs]
    return given if all([getattr(x, "dtype", FLOAT) == FLOAT for x in given]) else [as_array(x) for x in given]


def stacked(xs: Any) -> Any:
    """A nested list as one array, traced where something inside is."""
    if not holds_traced(xs):
        return np.asarray(xs)
    if isinstance(xs, (list, tuple)):
        return np.stack([stacked(x) for x in cast("list[Any]", xs)])
    return xs


def holds_traced(x: Any) -> bool:
    """Whether something inside is traced."""
    if type(x) in TRACED:
        return True
    if type(x) in WRITTEN:
        return x.memory is not None
    if type(x) in HOLDERS:
        return True
    if isinstance(x, (list, tuple)):
        return any([holds_traced(part) for part in cast("list[Any]", x)])
    objects = isinstance(x, np.ndarray) and cast(Any, x).dtype == object
    return objects and any([type(part) in TRACED for part in cast(Any, x).ravel()])


def is_complex(x: Any) -> bool:
    """Whether something inside is complex: those calls are complexes.py's."""
    if type(x) not in TRACED and isinstance(x, (list, tuple)):
        return any([type(part) is not Traced and is_complex(part) for part in cast("list[Any]", x)])
    return type(x) is complex or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def witness(x: Any) -> Any:
    """What NumPy's promotion needs to know: a dtype, or a Python number for weak ones."""
    if type(x) is Traced:
        return (0 if x.weak == INTEGER else 0.0) if x.weak else x.dtype
    return x if isinstance(x, _PYTHON) else x.dtype


def result_dtype(xs: Sequence[Any]) -> tuple[Any, bool]:
    """The dtype NumPy would give, and whether it is still weak."""
    first = xs[0]
    if type(first) is Traced and len(xs) <= 2 and first.dtype is FLOAT and not first.weak:  # the usual cases, fast
        other = xs[-1]
        if type(other) is float or (type(other) is Traced and other.dtype is FLOAT) or type(other) is int:
            return FLOAT, False
    if all([x.weak if type(x) is Traced else isinstance(x, _PYTHON) and type(x) is not np.float64 for x in xs]):
        return FLOAT, True
    dtype = np.result_type(*[witness(x) for x in xs])
    if dtype.kind not in "fiub":
        raise _unsupported(dtype)
    if dtype.itemsize not in (2, 4, 8) and dtype.kind == "f":
        raise refuse(f"floating-point arrays are float64, float32 or float16 here; got {dtype}")
    return (FLOAT if dtype == FLOAT else dtype), False


def _unsupported(dtype: Any) -> TraceError:
    real = "use real floating-point arrays (float64, float32 or float16)"
    return refuse(f"arrays of {dtype} are not supported in traced code; {real}")


def slot_of(trace: Trace, x: Any, dtype: Any) -> int:
    """A value as a slot of a trace, in a type."""
    if type(x) is Traced:
        slot = x.slot if x.home is trace else _outer(trace, x)
        if x.dtype is dtype or x.dtype == dtype or (x.weak and dtype.kind == "f"):
            return slot
        if x.dtype.kind == "f" and dtype.kind == "f":
            return trace.step(Cast(x.dtype, dtype), (slot,))
        return trace.step(Discrete(as_type, (("dtype", dtype),)), (slot,))
    if type(x) in WRITTEN:
        found = x.now()
        if type(found) is Traced:
            return slot_of(trace, found, dtype)
        x = found
    if isinstance(x, _PYTHON) and not isinstance(x, np.generic):
        if trace.marked:
            BY_NAME["refuse_number"](x)
        return trace.const(float(x) if dtype.kind == "f" else dtype.type(x))
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise _unsupported(array.dtype)
    if trace.marked:
        BY_NAME["refuse_marked"](array)
    if not array.ndim:
        value = dtype.type(array[()])
        return trace.const(float(value) if dtype == FLOAT else value)
    return trace.const(array if array.dtype == dtype else trace.converted(array, dtype))


def _outer(trace: Trace, x: Traced) -> int:
    if not x.home.open:
        raise leaked(x.home)
    if not trace.inside(x.home):
        where = "an inner function" if x.home.level > trace.level else "another function that is being traced"
        raise refuse(f"a traced array of {where}, {x.home.name}, is used outside it; return it instead")
    return trace.capture(x)


@by_name
def as_type(x: Any, dtype: Any) -> Any:
    """An array in another type."""
    return np.asarray(x).astype(dtype)[()]


def operands(*xs: Any, floating: bool = True) -> tuple[Trace, list[int], Any, bool]:
    """Trace, slots in the common type, that type and whether it is weak. `floating`: integers become floats."""
    first = xs[0]
    usual = type(first) is Traced and first.dtype is FLOAT and not first.weak and first.home is inmost()
    if usual:  # fast
        slots = [x.slot for x in xs if type(x) is Traced and x.dtype is FLOAT and x.home is first.home]
        if len(slots) == len(xs):
            return first.home, slots, FLOAT, False
    given = [tidy(x) for x in xs]
    trace = trace_of(*given)
    dtype, weak = result_dtype(given)
    if floating and dtype.kind != "f":
        dtype = FLOAT
    return trace, [slot_of(trace, x, dtype) for x in given], dtype, weak


def lifted(x: Any, trace: Trace | None = None) -> Traced:
    """A value as a traced array in its own type."""
    if type(x) is Traced and (trace is None or x.home is trace):
        return x
    x = tidy(x)
    home = trace_of(x) if trace is None else trace
    dtype, weak = result_dtype([x])
    if type(x) in (bool, int):
        dtype, weak = FLOAT, True
    return Traced(home, slot_of(home, x, dtype), dtype, weak)


def convert(x: Any, dtype: Any) -> Any:
    """x.astype(dtype): to another float type, to integers (no derivative)."""
    if dtype.kind == "c" or (type(x) is not Traced and type(x) in TRACED):
        return BY_NAME["complex_convert"](x, dtype)
    if type(x) is not Traced:
        return np.asarray(x).astype(dtype)
    if dtype.kind not in "fiub" or (dtype.kind == "f" and dtype.itemsize not in (2, 4, 8)):
        known = "float64, float32, float16, integers and booleans are known"
        raise refuse(f"a traced array cannot become {dtype}; {known}")
    if x.dtype == dtype and not x.weak:
        return x
    weak = Traced(x.home, x.slot, x.dtype, False)
    return Traced(x.home, slot_of(x.home, weak, dtype), FLOAT if dtype == FLOAT else dtype)


def primitive_step(primitive: Any, *xs: Any) -> Traced:
    """p^X of arguments, broadcast."""
    trace, slots, dtype, _ = operands(*xs)
    return Traced(trace, trace.step(primitive.op, slots), dtype)


def step(op: Any, x: Traced, dtype: Any = None) -> Traced:
    """An op on one traced array; the type stays unless said otherwise."""
    trace = trace_of(x)
    return Traced(trace, trace.step(op, (slot_of(trace, x, x.dtype),)), x.dtype if dtype is None else dtype)


def several(op: Any, dtype: Any, *xs: Any) -> Traced:
    """An op on several arrays, each in its own type."""
    given = [tidy(x) for x in xs]
    trace = trace_of(*given)
    slots = [slot_of(trace, x, result_dtype([x])[0] if type(x) is not bool else BOOL) for x in given]
    return Traced(trace, trace.step(op, slots), dtype)
