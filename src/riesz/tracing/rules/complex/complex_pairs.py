"""Complex arrays inside traced code: a real and an imaginary part, both arrays of the trace; ℂ ≅ ℝ².

Arguments and results of functions are real; in between, np.fft and NumPy's complex constants bring complex numbers in.
Everything here is written with the rules for real arrays, so derivatives of any order come from those. A part that is
zero by construction is None and costs nothing: x, 1j·x and exp(1j·x) have no more steps than they need.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast
from weakref import ref

import numpy as np

from ....ops.op import Reduction
from ....relations import Place
from ....relations.index_sets import Seg, unit
from ... import traced as t
from ...array_methods import ArrayMethods
from ...classes import Described, Kind, asks_as_author, class_of, closed_for
from ...deciding import decided
from ...registry import COMPLEX, by_name
from ...sharing import VIEWS, rooted
from ...surroundings.outside import note
from ...surroundings.watching import Standing
from ...trace import converting, refuse
from ...traced import (
    FLOAT,
    TRACED,
    WRITTEN,
    Shape,
    Traced,
    convert,
    holds_traced,
    is_complex,
    lifted,
    settle,
    slot_of,
    tidy,
    trace_of,
)


def complex_answers(*functions: Any) -> Callable[[Callable[..., Any]], Any]:
    """Enter a rule for NumPy functions of complex arguments."""

    def enter(code: Callable[..., Any]) -> Any:
        COMPLEX.update(dict.fromkeys(functions, code))
        return code

    return enter


class ComplexTraced(ArrayMethods, Described, metaclass=Kind):
    """A complex array of a trace: re + i·im. It behaves like a NumPy array whose numbers are not known yet."""

    __slots__ = ("__weakref__", "_fixed", "_group", "_pairs", "_place", "dtype", "im", "re", "shape")
    __array_priority__ = 1000.0

    def __init__(self, re: Any, im: Any, shape: Shape, dtype: Any, pairs: Traced | None = None) -> None:
        self.re = re.copy() if type(re) is Traced else re  # a traced or a fixed array; None: zero
        self.im = im.copy() if type(im) is Traced else im
        self._fixed = False  # its parts were handed out
        self._group: list[Any] = [ref(self)]  # arrays that share its numbers in NumPy: views, and what they look into
        self._place: Any = None  # of a view, the array and the key it was taken with
        self.shape = shape
        self.dtype = dtype
        self._pairs = pairs

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        """What the value would be (Note [Class] in traced.py)."""
        return ComplexTraced if asks_as_author(sys._getframe(1)) else class_of(self)  # pyright: ignore[reportPrivateUsage]

    @property
    def weak(self) -> bool:
        """Whether it is a Python number."""
        return all([x.weak if type(x) is Traced else type(x) is float for x in (self.re, self.im) if x is not None])

    real: Any = property(
        lambda self: self._part(self.re), lambda self, v: self._put(0, v), doc="The real part, a view."
    )
    imag: Any = property(lambda self: self._part(self.im), lambda self, v: self._put(1, v), doc="The imaginary part.")
    flat: Any = property(lambda self: iter(call_complex(np.ravel, (self,))), doc="The elements one by one.")

    def _part(self, x: Any) -> Any:
        if type(x) is not Traced:
            return np.zeros(self.shape, real_type(self.dtype)) if x is None else x
        found = x.copy()
        self._fixed = True
        rooted(found, "it is a part of a complex array")
        return found

    def _put(self, which: int, value: Any) -> None:
        """z.real = value and z.imag = value."""
        if self._fixed or self._sharers():
            raise refuse(
                "a part of a complex array is written to, and a view of the array or of a part is still in use; make a "
                "new array: z = re + 1j * im"
            )
        value = np.broadcast_to(t.tidy(settle(value)), self.shape)
        other = (self.im, self.re)[which]
        other = np.zeros(self.shape, real_type(self.dtype)) if other is None else other
        self._written(..., joined(*((value, other) if which == 0 else (other, value))))

    def pairs(self) -> Traced:
        """Both parts in one array, along a last axis of length 2."""
        if self._pairs is None:
            trace = trace_of(self.re, self.im)
            parts = [np.zeros(self.shape) if x is None else x for x in (self.re, self.im)]
            slots = [slot_of(trace, x, real_type(self.dtype)) for x in parts]
            place = Reduction((Place(unit, Seg(2), 0), Place(unit, Seg(2), 1)), self.ndim)
            self._pairs = Traced(trace, trace.step(place, slots), real_type(self.dtype))
        return self._pairs

    # -- NumPy's hooks ------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        if method == "__call__":
            return call_complex_ufunc(ufunc, args, named)
        if (ufunc, method) == (np.add, "reduce"):
            given = {k: v for k, v in named.items() if k == "keepdims" or (k == "axis" and len(args) < 2)}
            return call_complex(np.sum, args[:2] if len(args) > 1 or "axis" in given else (*args, 0), given)
        if method == "outer":
            a, b = map(t.as_array, args)
            return call_complex_ufunc(ufunc, (np.reshape(a, (*np.shape(a), *(1,) * np.ndim(b))), b), named)
        raise refuse(
            f"np.{ufunc.__name__}.{method} is not known to riesz for complex traced arrays; write it with np.sum and "
            "products"
        )

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        return call_complex(function, args, named)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        return Standing.numpy

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if (closed := closed_for(self, sys._getframe(1))) is not None:  # pyright: ignore[reportPrivateUsage]
            return closed
        said = f"{called} converts its arguments, which are traced: a" if (called := converting()) else "a"
        raise refuse(
            f"{said} complex traced array of shape {self.shape} cannot become a plain NumPy array: its numbers are not "
            "known yet. Functions that convert their arguments need real and imaginary part, z.real and z.imag, one by "
            "one"
        )

    # -- operators ----------------------------------------------------------------------------------------

    def __neg__(self) -> Any:
        return COMPLEX[np.negative](self)

    def __pos__(self) -> Any:
        return self.copy()

    def __abs__(self) -> Any:
        return COMPLEX[np.absolute](self)

    def __eq__(self, other: Any) -> Any:
        return _operator(np.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return _operator(np.not_equal, self, other)

    def _unordered(self, other: Any) -> Any:
        raise refuse("complex numbers have no order; compare np.abs(z), z.real or z.imag")

    __lt__ = __le__ = __gt__ = __ge__ = _unordered
    __hash__ = Described.__hash__

    # -- as a sequence ------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if holds_traced(key):
            trace = trace_of(self.re, self.im, key)
            return each(lambda x: lifted(x, trace)[key], self)
        part, keys = each(lambda x: x[key], self), key if type(key) is tuple else (key,)
        plain = all([k is None or k is ... or isinstance(k, (int, np.integer, slice)) for k in keys])
        return self._viewed(part, key) if plain else part

    def unshare(self) -> None:
        """It is on its own."""
        self._fixed, self._group, self._place = False, [ref(self)], None

    def _viewed(self, part: Any, key: Any = None) -> Any:
        """A view of this array: while both live, neither changes in place but by z[key] += …"""
        if type(part) is ComplexTraced and part is not self and part.shape:
            self._group.append(ref(part))
            part._group, part._fixed, part._place = self._group, self._fixed, None if key is None else (self, key)
        return part

    def _sharers(self) -> list[Any]:
        """Other arrays that share its numbers."""
        self._group[:] = [r for r in self._group if r() is not None]
        return [r() for r in self._group if r() is not self]

    def _written(self, key: Any, value: Any) -> None:
        new, trace = parts_of(settle(value)), trace_of(self.re, self.im, value)
        for name, v in zip(("re", "im"), new, strict=True):
            now = getattr(self, name)
            part = lifted(np.zeros(self.shape, real_type(self.dtype)) if now is None else now, trace).copy()
            part[key] = 0.0 if v is None else v
            setattr(self, name, part.as_it_is())
        self._pairs = None

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    # -- what cannot be -----------------------------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        place, others = getattr(value, "_place", None), self._sharers()
        if place is not None and place[0] is self and place[1] == key and all([x is value for x in others]):
            return  # z[key] += …, which `_change` has written
        if self._fixed or others:
            raise refuse("a complex array is written to, and a view of it is still in use; write into z = z.copy()")
        self._written(key, value)

    def __bool__(self) -> bool:
        return decided(np.logical_or(self.real != 0, self.imag != 0))

    def _no_number(self, *args: Any) -> Any:
        raise refuse(
            "this is a complex traced value: it cannot become a Python number while the function is traced; leave "
            "the conversion out, or take z.real"
        )

    __float__ = __int__ = __complex__ = __index__ = item = tolist = _no_number

    def __repr__(self) -> str:
        return f"traced{list(self.shape) if self.shape else ''}, {self.dtype}"

    def __format__(self, spec: str) -> str:
        return repr(self)

    # -- methods of arrays --------------------------------------------------------------------------------

    def conj(self) -> Any:
        """re − i·im."""
        return COMPLEX[np.conjugate](self)

    conjugate = conj

    def _call(self, function: Any, *args: Any, **named: Any) -> Any:
        return call_complex(function, (self, *args), named)

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """In another complex type."""
        return complex_convert(self, np.dtype(dtype))

    def copy(self, order: str | None = "C") -> ComplexTraced:
        """The same numbers, on their own."""
        return ComplexTraced(self.re, self.im, self.shape, self.dtype, self._pairs)

    def _change(self, ufunc: Any, other: Any) -> Any:
        """z += other and its kin: of a number, a new number; an array changes for all who hold it, unless views of it
        are about."""
        found = call_complex_ufunc(ufunc, (self, other), {})
        if not self.shape or type(found) is not ComplexTraced:
            return found
        others = self._sharers()
        place: Any = self._place
        of = bool(place) and all([x is place[0] for x in others])
        if self._fixed or found.shape != self.shape or (others and not of):
            raise refuse(
                f"an in-place operator ({ufunc.__name__}) on a complex array that shares its numbers with a view of "
                "it; write z = z + …"
            )
        if others:
            place[0]._written(place[1], found)
        self.re, self.im, self._pairs = found.re, found.im, None
        return self


TRACED.add(ComplexTraced)


def _operators(name: str, ufunc: Any, in_place: bool = True) -> None:
    """z + w, w + z and z += w."""

    def before(self: ComplexTraced, other: Any, modulus: Any = None) -> Any:
        return _operator(ufunc, self, other)

    def behind(self: ComplexTraced, other: Any) -> Any:
        return _operator(ufunc, other, self)

    def change(self: ComplexTraced, other: Any) -> Any:
        return self._change(ufunc, other)  # pyright: ignore[reportPrivateUsage]

    for kind, code in (("", before), ("r", behind), ("i", change))[: 3 if in_place else 2]:
        setattr(ComplexTraced, f"__{kind}{name}__", code)


_operators("matmul", np.matmul, in_place=False)
_operators("add", np.add)
_operators("sub", np.subtract)
_operators("mul", np.multiply)
_operators("truediv", np.divide)
_operators("pow", np.power)


# -- parts ------------------------------------------------------------------------------------------------


def real_type(dtype: Any) -> Any:
    """The type of the parts."""
    return np.dtype(np.float32) if dtype == np.complex64 else FLOAT


@by_name
def joined(re: Any, im: Any) -> Any:
    """re + i·im of arrays that broadcast; None is zero, not both. A plain array where nothing is traced."""
    parts = [tidy(x) for x in (re, im) if x is not None]
    if not any([type(x) is Traced for x in parts]):
        return (0.0 if re is None else np.asarray(re)) + 1j * (0.0 if im is None else np.asarray(im))
    dtype, weak = t.result_dtype(parts)
    dtype = np.result_type(dtype, np.float32) if dtype.kind == "f" else FLOAT  # there are no halves of complex64
    shape = np.broadcast_shapes(*[np.shape(x) for x in parts])
    a, b = [None if x is None else _placed(tidy(x), shape, dtype, weak) for x in (re, im)]
    return ComplexTraced(a, b, shape, np.dtype(np.complex64 if dtype == np.float32 else np.complex128))


def _placed(x: Any, shape: Shape, dtype: Any, weak: bool) -> Any:
    """A part in the common shape and type."""
    if type(x) is not Traced:
        return x if weak and not shape else np.broadcast_to(np.asarray(x, dtype), shape)
    same = x if weak or (x.dtype == dtype and not x.weak) else convert(x, dtype)
    return same if same.shape == shape else np.broadcast_to(same, shape)


def paired(pairs: Traced) -> ComplexTraced:
    """The complex array whose parts are the two entries along the last axis."""
    dtype = np.dtype(np.complex64 if pairs.dtype == np.float32 else np.complex128)
    return ComplexTraced(pairs[..., 0], pairs[..., 1], pairs.shape[:-1], dtype, pairs)


@by_name
def parts_of(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part of anything; None for a part that is zero, never both."""
    x = tidy(x) if type(x) in WRITTEN else x
    if type(x) is ComplexTraced:
        return x.re, x.im
    if isinstance(x, (list, tuple)):
        return parts_of(tidy(x))
    if not is_complex(x):
        return x, None
    re, im = (x.real, x.imag) if not np.ndim(x) else (np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag))
    return (None if not np.any(re) and np.any(im) else re), (None if not np.any(im) else im)


def each(f: Callable[[Any], Any], z: Any) -> Any:
    """A real-linear function of each part; several results stay several."""
    re, im = [None if x is None else f(x) for x in parts_of(z)]
    first: Any = im if re is None else re
    if not isinstance(first, (list, tuple)):
        return joined(re, im)
    count = len(cast("list[Any]", first))
    pairs: Any = zip(re or [None] * count, im or [None] * count, strict=True)
    return cast(Any, type(first))([joined(*pair) for pair in pairs])


@by_name
def complex_convert(x: Any, dtype: Any) -> Any:
    """x.astype of a complex type."""
    if dtype.kind != "c":
        raise refuse(f"a complex traced array cannot become {dtype}; take z.real, z.imag or np.abs(z)")
    if dtype.itemsize not in (8, 16):
        raise refuse(f"complex arrays are complex128 or complex64 here; got {dtype}")
    return joined(*[None if part is None else convert(part, real_type(dtype)) for part in parts_of(x)])


# -- calls ------------------------------------------------------------------------------------------------


def _rule(function: Any, name: str) -> Any:
    rule = COMPLEX.find(function) or COMPLEX.find(getattr(function, "__name__", ""))
    if rule is None:
        raise refuse(
            f"{name} is not known to riesz for complex traced arrays; write it with real and imaginary part, z.real "
            "and z.imag"
        )
    return rule


@by_name
def call_complex(function: Any, args: Sequence[Any], named: dict[str, Any] | None = None) -> Any:
    """A NumPy function where something is complex."""
    rule = _rule(function, f"{getattr(function, '__module__', 'numpy')}.{getattr(function, '__name__', function)}")
    if named and named.get("out") is not None:
        raise refuse(f"np.{function.__name__} with out=… writes into an array; use the result instead")
    note((*args, *(named or {}).values()), True)
    return _alone(lambda: rule(*args, **(named or {})), args, function in VIEWS)


def _alone(run: Callable[[], Any], args: Sequence[Any], view: bool) -> Any:
    """What a rule gives: a view of its arguments, or an array on its own; whatever views the rule used inside."""
    given = [x for x in args if type(x) is ComplexTraced]
    before = [x._fixed for x in given]  # pyright: ignore[reportPrivateUsage]
    found = run()
    for x, fixed in zip(given, before, strict=True):
        x._fixed = fixed  # pyright: ignore[reportPrivateUsage]
    if type(found) is ComplexTraced:
        if not view:
            if any([found is x for x in given]):
                return found.copy()
            found.unshare()
            return found
        for x in given:
            x._viewed(found)  # pyright: ignore[reportPrivateUsage]
    return found


@by_name
def call_complex_ufunc(ufunc: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A ufunc where an argument is complex."""
    rule = _rule(ufunc, f"np.{ufunc.__name__}")
    if named.get("out") not in (None, (None,)):
        raise refuse(
            f"{ufunc.__name__} into an existing array (out=…, or an in-place operator such as +=) is not possible "
            "while tracing; use the result"
        )
    if named.get("where", True) is not True:
        raise refuse(
            f"np.{ufunc.__name__}(…, where=…) is not known to riesz; write np.where(mask, np.{ufunc.__name__}(…), "
            "other)"
        )
    dtype = named.get("dtype")
    note(args, False)
    return _alone(lambda: rule(*args) if dtype is None else complex_convert(rule(*args), np.dtype(dtype)), args, False)


def _operator(ufunc: Any, left: Any, right: Any) -> Any:
    for other in (left, right):
        if getattr(cast(Any, type(other)), "__array_ufunc__", 0) is None:
            return NotImplemented
    return call_complex_ufunc(ufunc, (left, right), {})
