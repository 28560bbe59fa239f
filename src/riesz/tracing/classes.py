"""What a traced array is said to be: the class its value would have, and what comes with it."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Any, cast

import numpy as np

from .mistakes import outside
from .operators import Operators
from .registry import OTHERS
from .trace import refuse

# Note [Class]: a function may ask what it was given (isinstance, match, singledispatch, np.isscalar) and must hear what
# it would hear with numbers; Python takes the answer from `__class__`, while type(x) stays Traced. We ourselves, and
# libraries with arrays of their own when they choose who computes, ask whether an array is traced at all: to us
# `__class__` is the truth, and no isinstance in this library has to know of the others.
_AUTHORS = ("riesz.", "scipy.sparse", "numpy.ma", "jax.", *[f"{name}." for name in sorted(OTHERS)])


INTEGER: int = 2
"""As `weak` of a traced number: an integer of Python's, held as a float. True stands for a float of Python's."""


def asks_as_author(frame: Any) -> bool:
    """Whether the code that asks for a class is one of those that handle traced arrays themselves."""
    home = _home(frame)
    asks = frame.f_back if home == "abc" else frame
    if asks.f_code.co_name == "isscalar" and _home(asks).startswith("numpy."):  # np.isscalar asks for somebody
        return _home(asks.f_back).startswith("scipy.sparse")
    return home.startswith(_AUTHORS)


def _home(frame: Any) -> str:
    """The module of some running code."""
    return frame.f_globals.get("__name__", "")


def class_of(x: Any) -> Any:
    """The class of the value a traced array stands for: an array, a number of Python's, a NumPy number."""
    if x.weak == INTEGER:
        return int
    return np.ndarray if x.shape or x.weak is None else type(x.dtype.type(0).item()) if x.weak else x.dtype.type


def closed_for(x: Any, frame: Any) -> Any:
    """What library code gets that makes a plain array of a traced one and only multiplies it: an array without axes
    that holds the traced one.

    A sparse matrix finds that it cannot multiply it, and our own @ gets its turn. None for other code; libraries with
    arrays of their own are refused."""
    home = _home(frame)
    polynomial = home == "numpy.polynomial.polyutils" and frame.f_code.co_name == "mapdomain"
    if polynomial or home.startswith("scipy.sparse._"):
        while _home(frame.f_back).startswith("scipy.sparse"):
            frame = frame.f_back
        if frame.f_code.co_name == "multiply":
            raise refuse(
                "A.multiply(x) of a sparse matrix of numbers and a traced x: write scipy.sparse.csr_array(A) * x"
            )
        closed = np.empty((), object)
        closed[()] = x
        return closed
    library = "numpy.ma" if home.startswith("numpy.ma.") else home.split(".")[0]
    if library == "numpy.ma" or library in OTHERS:
        raise refuse(outside(library, "it needs numbers, which are not known yet"))
    return None


class Kind(type):
    """The class of classes of traced arrays: `__class__` alone says what values can do, so no Iterable is found."""

    @property
    def __mro__(cls) -> tuple[type, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (Operators, object)


class NoAxes(AttributeError, TypeError):
    """A number has no length: len(x) is a TypeError, x.__len__ is missing."""


class Length:
    """The method `__len__` of arrays, which numbers do not have."""

    def __get__(self, x: Any, owner: Any = None) -> Any:
        if x is None:
            return self
        if not x.shape and x.weak is not None:
            raise NoAxes(f"object of type '{class_of(x).__name__}' has no len()")
        return partial(_length, x)


def _length(x: Any) -> int:
    if not x.shape:
        raise TypeError("len() of unsized object")
    return x.shape[0]


class Refused:
    """An attribute that values have and traced arrays have not."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, owner: Any = None) -> Any:
        if x is None:
            raise AttributeError(self.name)
        kind = class_of(x)
        if not hasattr(kind, self.name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{self.name}'")
        what = f"x.{self.name} of a traced {'array' if kind is np.ndarray else 'number'}"
        raise refuse(f"{what} is not known to riesz: it needs the numbers, or their memory")


class Described:
    """What follows from the shape and the type of an array."""

    __slots__ = ()
    shape: Any
    dtype: Any
    __len__: Any = Length()

    def __hash__(self) -> int:
        kind = class_of(self)
        if kind is np.ndarray or asks_as_author(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            raise TypeError(f"unhashable type: '{kind.__name__}'")
        key = "a key of a dictionary, a member of a set or an argument of a cached function"
        raise refuse(f"a traced number cannot be {key}: its value is not known yet")

    def whole(self, found: Any) -> Any:
        """A number without a fraction, as Python's integer."""
        raise TypeError(f"must be real number, not {class_of(self).__name__}")

    __floor__: Any = lambda self: self.whole(np.floor(self))
    __ceil__: Any = lambda self: self.whole(np.ceil(self))
    __trunc__: Any = lambda self: self.whole(np.trunc(self))

    def __deepcopy__(self, memo: Any = None) -> Any:
        return cast(Any, self).copy()

    __copy__ = __deepcopy__

    ndim: Any = property(lambda self: len(self.shape), doc="The number of axes.")
    size: Any = property(lambda self: math.prod(self.shape), doc="The number of elements.")
    itemsize: Any = property(lambda self: self.dtype.itemsize, doc="Bytes of one number.")
    nbytes: Any = property(lambda self: self.size * self.itemsize, doc="Bytes of all numbers.")
    flags: Any = property(lambda self: np.empty((2,) * self.ndim).flags, doc="Those of a new array.")
    base: Any = property(lambda self: None, doc="None: no array that it is a view of is known.")
    device: Any = property(lambda self: "cpu", doc="Where the numbers will be.")

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, in NumPy's usual order."""
        return tuple([self.itemsize * math.prod(self.shape[i + 1 :]) for i in range(self.ndim)])


def held_in(x: Any) -> Any:
    """The traced array that somebody's own array is made of (its class took one for a NumPy array), or None."""
    kind = type(x)
    own = hasattr(kind, "__array__") and not isinstance(kind, Kind) and not isinstance(x, (np.ndarray, np.generic))
    own = own and not kind.__module__.startswith("riesz")
    held = x.__array__() if own else None
    return held if isinstance(type(held), Kind) else None


def of_python(x: Any) -> bool:
    """Whether a number is Python's own, not NumPy's."""
    return bool(x.weak) if isinstance(type(x), Kind) else type(x) in (float, int, bool)


def is_integer(x: Any) -> bool:
    """Whether something is traced, and an integer of Python's."""
    return isinstance(type(x), Kind) and x.weak == INTEGER


_KINDS = (np.ndarray, np.generic, np.float64, np.int64, float, int, complex)
for _name in {k for kind in _KINDS for k in vars(kind) if k[0] != "_"}:
    if not hasattr(Described, _name) and not hasattr(
        Operators, _name
    ):  # one by one: `__getattr__` slows all attributes
        setattr(Described, _name, Refused(_name))
