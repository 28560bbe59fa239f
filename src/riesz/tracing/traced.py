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
from .deciding import decided, whole_number
from .mistakes import no_number, raise_explained, refusing
from .operators import Operators
from .registry import FUNCTIONS, MASKED, UFUNCS, WRITERS, WRITING, writing
from .registry import NOTES as NOTES
from .registry import answers as answers
from .sharing import (
    OPERANDS,
    VIEWS,
    Look,
    base_of,
    current_slot,
    fresh,
    in_place,
    moved,
    rearranges,
    rooted,
    traced_in,
    views,
    without_out,
)
from .surroundings.outside import PLAIN, note
from .surroundings.watching import Standing
from .trace import Trace, inmost, leaked, library_function, refuse
from .trace import current_level as current_level

Shape = tuple[int, ...]
FLOAT = np.dtype(float)
INT = np.dtype(np.intp)
BOOL = np.dtype(bool)
_PYTHON = (bool, int, float)


class Traced(Described, Operators, metaclass=Kind):
    """An array of a trace. It behaves like a NumPy array whose numbers are not known yet."""

    __slots__ = ("_shape", "dtype", "home", "look", "own_slot", "weak")
    __array_priority__ = 1000.0

    def __init__(self, trace: Trace, slot: int, dtype: Any = FLOAT, weak: int | None = False) -> None:
        self.home = trace
        self.own_slot = slot
        self._shape: Shape = trace.shapes[slot]
        self.dtype = dtype
        self.weak = weak  # a Python float: it takes the type of what it meets; None: an array without axes, no number
        self.look: Look | None = None  # the memory it shares with others (sharing.py)

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

    T: Any = property(lambda self: self._call(np.transpose), doc="The transpose.")
    mT: Any = property(lambda self: self._call(np.swapaxes, -1, -2), doc="The transpose of the last two axes.")
    base: Any = property(base_of, doc="The array it is a view of, or None.")
    real: Any = property(lambda self: self, lambda self, x: self.__setitem__(..., x), doc="The array itself.")
    imag: Any = property(lambda self: lifted(np.zeros(self.shape, self.dtype), self.home), doc="Zeros.")

    @property
    def flat(self) -> Any:
        """The elements in one axis; it may be written to."""
        return WRITING["Flat"](self)

    def _call(self, function: Any, *args: Any, **named: Any) -> Any:
        return call_function(function, (self, *args), named)

    # -- NumPy's hooks ------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        if not MASKED.isdisjoint(map(type, args)):
            return NotImplemented
        if method == "at" or (named and any([x is not None for x in named.get("out") or ()])):
            return WRITING["ufunc_on"](ufunc, method, args, named)
        if method != "__call__":
            from .rules.elementwise import ufunc_method

            return ufunc_method(ufunc, method, args, named)
        return typed(call_ufunc(ufunc, integers(args), named), False)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if not MASKED.isdisjoint(types):
            return NotImplemented
        if is_complex(args) or (named and is_complex(tuple(named.values()))):
            from .rules.complex.complex_pairs import call

            return call(function, args, named)
        if function not in FUNCTIONS or named.get("out") is not None:
            if function in WRITERS or function in FUNCTIONS:
                return WRITING["function_on"](function, args, named)
            name = f"{getattr(function, '__module__', 'numpy')}.{getattr(function, '__name__', function)}"
            advice = "docs/coverage.md lists what is, and rz.custom_derivative adds your own"
            raise refuse(f"{name} is not known to riesz for traced arrays; {advice}")
        return call_function(function, args, named)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        return Standing.numpy

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if (closed := closed_for(self, sys._getframe(1))) is not None:  # pyright: ignore[reportPrivateUsage]
            return closed
        if self.dtype.kind != "f" and (home := inmost()) is not None:
            home.outside.indexed = True
        if self.dtype.kind == "b":
            mask = "a mask that depends on the numbers cannot select from a NumPy array"
            raise refuse(f"{mask}: the result's length is not known; write np.where(mask, a, 0)")
        if self.dtype.kind != "f":
            raise refuse("a traced integer cannot index a NumPy array by a[i]; write np.take(a, i)")
        if dtype is not None and np.dtype(dtype).kind == "c":
            raise refuse("traced numbers cannot be written into a complex array; build it from them: z = x + 1j * y")
        astype = "" if dtype is None else f"For another type write x.astype(np.{np.dtype(dtype).name}). "
        called = library_function()
        said = f"{called} converts its arguments, which are traced: a" if called else "a"
        raise refuse(
            f"{said} traced array of shape {self.shape} cannot become a plain NumPy array: its numbers are not "
            f"known yet. {astype}To build an array of traced numbers write np.stack([…]) or np.concatenate; a "
            "function that makes plain arrays of its arguments can be given a derivative of its own with "
            "rz.custom_derivative (docs/coverage.md lists those that are known)"
        )

    def apply_primitive(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        """p(args), for riesz's own primitives."""
        return primitive_step(primitive, *args)

    def operate(self, ufunc: Any, left: Any, right: Any) -> Any:
        """An operator's ufunc."""
        if self.weak == INTEGER and all([type(x) is int or is_integer(x) for x in (left, right)]):
            return _of_integers(ufunc, left, right)
        if type(left) is not Traced or type(right) is not Traced:
            if type(right) in HOLDERS:
                return NotImplemented
            result = operator(ufunc, left, right)
        else:
            result = UFUNCS[ufunc](left, right)
            if (left.look is not None and left.look.moved) or (right.look is not None and right.look.moved):
                result = fresh(result, (left, right))
        return typed(result, True) if self.weak and of_python(left) and of_python(right) else result

    def operate_alone(self, ufunc: Any) -> Any:
        """The ufunc of an operator with one operand."""
        found = call_ufunc(ufunc, (typed(self, True) if self.weak == INTEGER else self,), {})
        return typed(found, self.weak or False)

    def change(self, ufunc: Any, other: Any) -> Any:
        """An in-place operator's ufunc."""
        return in_place(ufunc, self, other)

    # -- as a sequence ------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Traced:
        from .rules.indexing import index

        try:
            if type(key) is not int and any([_masks(k) for k in (key if type(key) is tuple else (key,))]):
                return WRITING["masked"](self, key)
            found = index(self, key)
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
            WRITING["assign"](self, key, value)
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
        return whole_number(self) if self.dtype.kind in "iub" and not self.shape else no_number("int")(self)

    __float__, __complex__ = no_number("float"), no_number("complex")
    item = refusing("x.item() gives a Python number, which is not known while tracing; use x itself, or x.reshape(())")
    tolist = refusing("x.tolist() gives Python numbers, which are not known while tracing; write list(x)")
    view = refusing(
        "x.view() looks at an array as another kind of array, which a traced one cannot become (masked arrays are "
        "such: use np.where)"
    )

    def __repr__(self) -> str:
        kind = "" if self.dtype == FLOAT else f", {self.dtype}"
        return f"traced{list(self.shape) if self.shape else ''}{kind}"

    def __format__(self, spec: str) -> str:
        return repr(self)

    # -- methods of arrays --------------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, **named: Any) -> Any:
        """Σ over axes."""
        return self._call(np.sum, axis, dtype, out, **named)

    def reshape(self, *shape: Any, order: str = "C", **named: Any) -> Any:
        """The same numbers under another shape."""
        return self._call(np.reshape, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Axes permuted."""
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return self._call(np.transpose, given)

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
            rooted(found, odd=True)
        return found

    def flatten(self, order: str = "C") -> Any:
        """In one axis, on their own."""
        return self.copy()._call(np.ravel, order).copy()

    def dot(self, other: Any, out: Any = None) -> Any:
        """As np.dot."""
        return np.dot(cast(Any, self), other, out=out)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """As np.compress."""
        return FUNCTIONS[np.compress](condition, self, axis)

    def conj(self) -> Traced:
        """The array itself."""
        return self

    conjugate = conj

    def sort(self, axis: int = -1, **named: Any) -> None:
        """Sorted in place."""
        self[...] = np.sort(cast(Any, self), axis, **named)

    def partition(self, kth: Any, axis: int = -1, **named: Any) -> None:
        """Smaller numbers before the kth, others after it."""
        self[...] = np.partition(cast(Any, self), kth, axis, **named)

    def put(self, *args: Any, **named: Any) -> None:
        """As np.put."""
        np.put(cast(Any, self), *args, **named)

    def fill(self, value: Any) -> None:
        """All elements become one number."""
        self[...] = value

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


def _method(name: str) -> Any:
    function = getattr(np, name)

    def method(self: Traced, *args: Any, **named: Any) -> Any:
        return call_function(function, (self, *args), named)

    method.__name__, method.__doc__ = name, f"As np.{name}."
    return method


_METHODS = """mean prod max min var std any all argmax argmin argsort cumsum cumprod ravel swapaxes squeeze repeat take
clip round trace diagonal searchsorted"""
for _name in _METHODS.split():
    setattr(Traced, _name, _method(_name))


PLAIN.add(Traced)

# -- from values to slots ---------------------------------------------------------------------------------


_OPERATING = {np.where, np.clip, np.round, np.around}  # to these Python's numbers are what they are to operators
KINDS: dict[Any, Any] = {
    **dict.fromkeys((np.tensordot, np.linalg.tensordot, np.full, np.piecewise, np.i0, np.cross, np.roll), None),
    **dict.fromkeys((np.interp, np.nan_to_num), False),
}
"""What a result without axes is: an array (None), or a number (False). Others keep what their rules make."""


def call_function(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The rule of a NumPy function."""
    if len(args) > 2 or "out" in named:
        args, named, target = without_out(function, args, named)
        if target is not None:
            target[...] = call_function(function, args, named)
            return target
    if (home := inmost()) is not None and home.marked:
        args, named = settle(args), {k: settle(v) for k, v in named.items()}
    if any([is_integer(x) for x in args]) and function not in _OPERATING:
        args = tuple([convert(x, INT) if is_integer(x) else x for x in args])
    given = traced_in(args)
    note((*args, *named.values()), function not in OPERANDS)
    try:
        result = FUNCTIONS[function](*args, **named)
    except Exception as problem:
        raise_explained(problem, function, args, named)
    if function in VIEWS or (function == np.einsum and rearranges(args)):
        return views(function, result, args, named, given)
    result = fresh(result, (*given, *args))  # of a Python number too it is one of NumPy, but for its parts
    if function in KINDS and type(result) is Traced:
        return typed(result, KINDS[function])
    return typed(result, False) if type(result) is Traced and result.weak and function is not np.imag else result


_INTEGRAL = {np.add, np.subtract, np.multiply, np.floor_divide, np.remainder}
_BITWISE = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.invert}


def integers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integers of Python's among arguments of NumPy's functions: integers of NumPy's, where no array gives the type."""
    if not any([is_integer(x) for x in args]) or not all([of_python(x) for x in args]):
        return args
    return tuple([convert(x, INT) if is_integer(x) else x for x in args])


def _of_integers(ufunc: Any, left: Any, right: Any) -> Any:
    """An operator of two integers of Python's."""
    if ufunc in _BITWISE:
        return call_ufunc(ufunc, integers((left, right)), {})
    whole = ufunc in _INTEGRAL or (ufunc is np.power and type(right) is int and right >= 0)
    return typed(call_ufunc(ufunc, (typed(left, True), typed(right, True)), {}), INTEGER if whole else True)


def _masks(key: Any) -> bool:  # that depends on the numbers, or has positions of one
    return type(key) in MASKED or (type(key) is Traced and key.dtype.kind == "b")


def operator(ufunc: Any, left: Any, right: Any) -> Any:
    """An operator's ufunc; what refuses ufuncs gets its own turn."""
    for other in (left, right):
        kind: Any = type(other)
        if kind is not Traced and (kind in MASKED or getattr(kind, "__array_ufunc__", 0) is None):
            return NotImplemented
        if hasattr(kind, "tocoo") and ufunc is not np.matmul:
            return WRITING["with_numbers"](ufunc, left, right)
    second = ufunc is np.power and type(right) is int and right == 2
    if second and left.dtype.kind == "b" and (left.shape or left.weak is None):
        return call_ufunc(np.square, (left,), {})  # so does NumPy, and it matters for the type
    return call_ufunc(ufunc, (left, right), {})


def typed(x: Any, weak: int | None) -> Any:
    """A traced number as one of Python (of its operators), of NumPy (of ufuncs), or (None) an array without axes."""
    if type(x) is not Traced or x.weak is weak or x.shape or (weak and x.dtype is not FLOAT and weak != INTEGER):
        return x
    if weak == INTEGER and x.dtype is not FLOAT:
        x = convert(x, FLOAT)
    elif weak is None and x.weak == INTEGER:
        x = convert(x, INT)
    return Traced(x.home, x.slot, x.dtype, weak)


def call_ufunc(ufunc: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A ufunc on arguments some of which are traced."""
    if (home := inmost()) is not None and home.marked:
        args = settle(args)
    usual = True  # traced floats, no others
    for x in args:
        if type(x) is Traced:
            usual = usual and x.dtype is FLOAT
        else:
            usual = False
            if type(x) is not float and is_complex(x):
                from .rules.complex.complex_pairs import call_complex_ufunc

                return call_complex_ufunc(ufunc, args, named)
    if not usual:
        note(args, False)
    rule = UFUNCS.get(ufunc)
    if rule is None:
        from .rules.special import special_rule

        rule = special_rule(ufunc)
        if rule is None:
            adds = "rz.primitive or rz.custom_derivative adds it"
            raise refuse(f"the ufunc {ufunc.__name__} is not known to riesz for traced arrays; {adds}")
    if named:
        name = f"np.{ufunc.__name__}"
        if named.get("where", True) is not True:
            raise refuse(f"{name}(…, where=…) is not known to riesz; write np.where(mask, {name}(…), other)")
        for k in named:
            if k in ("axis", "axes", "keepdims", "signature"):
                axes = "np.moveaxis and np.einsum say which axes"
                raise refuse(f"{name}(…, {k}=…) is not known to riesz for traced arrays; {axes}")
    try:
        found = rule(*args) if usual else rule(*_in_small_types(ufunc, args))
    except Exception as problem:
        raise_explained(problem, ufunc, args)
    return fresh(convert(found, np.dtype(named["dtype"])) if named and named.get("dtype") is not None else found, args)


def _in_small_types(ufunc: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a ufunc: booleans and integers of 8 and 16 bits in the small float type they give."""
    small = any([type(x) is Traced and x.dtype.kind != "f" and x.dtype.itemsize < 4 for x in args])
    if not small or not all([hasattr(x, "dtype") or type(x) in (int, float) for x in args]):
        return args
    kinds = [x.dtype if hasattr(x, "dtype") else type(x) for x in args]
    dtype = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))[-1]
    small = dtype.kind == "f" and dtype != FLOAT
    return tuple([convert(x, dtype) if hasattr(x, "dtype") else x for x in args]) if small else args


def innermost(xs: Sequence[Any]) -> Trace | None:
    """The innermost trace among arrays, and lists of them; None where none is traced."""
    found: Trace | None = None
    stack = [x for x in xs if type(x) is not float]
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
    return WRITING["settled"](x)


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
            WRITING["refuse_number"](x)
        return trace.const(float(x) if dtype.kind == "f" else dtype.type(x))
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise _unsupported(array.dtype)
    if trace.marked:
        WRITING["refuse_marked"](array)
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


@writing
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
        from .rules.complex.complex_pairs import complex_convert

        return complex_convert(x, dtype)
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
