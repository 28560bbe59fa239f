"""Arrays that a traced function makes for itself: plain NumPy arrays until something traced is written into them.

np.zeros and its kin give `WrittenArray`s to the code of a function that is traced. A WrittenArray is an array: its
memory has the numbers that are known, so branches, indices and libraries meet what they always met. When a traced value
is written, a `Memory` says which elements are traced. Views need no code: NumPy makes them, and the same view of the
table of sources is found from address and strides.

Traced elements hold a nan of a certain pattern (for integers, a certain number). Code that reads memory without asking
NumPy's protocols meets it, and a step that is given it refuses it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from operator import is_
from typing import Any, cast
from weakref import ref

import numpy as np

from ..registry import BY_NAME, MASKED, by_name
from ..sharing import moved, rooted
from ..surroundings.contents import owner
from ..surroundings.outside import note
from ..trace import Trace, inmost, leaked, refuse
from ..traced import FLOAT, TRACED, WRITTEN, Traced, lifted, slot_of
from .memory import KNOWN, Memory
from .waiting import waiting

_PLAIN: Any = np.ndarray
_MARK = 0x7269657A  # "riez"
_MARK_32 = 0x7FC0_0000 | 0x1C9 << 13  # of a nan in 32 bits
_serial = itertools.count()


class Home:
    """The array that owns some memory, the trace it was made in (None: it is from outside), and what was written; of a
    complex array, the imaginary parts that were (`imaginary`) beside the real ones."""

    __slots__ = ("face", "imaginary", "memory", "owner", "trace")

    def __init__(self, whole: Any, trace: Trace | None) -> None:
        self.owner, self.trace = whole, trace
        self.face: Any = None  # what the function was given, by a weak reference: to it, the array that views look into
        self.memory: Memory | None = None
        self.imaginary: Memory | None = None

    def opened(self, trace: Trace) -> None:
        """From now on some of its elements are traced."""
        if self.memory is None:
            whole, dtype = self.owner, self.owner.real.dtype
            size = whole.shape if whole.flags.c_contiguous else (whole.size,)
            self.memory = Memory(trace, size, dtype, None)
            self.memory.opened()
            if self.owner.dtype.kind == "c":
                self.imaginary = Memory(trace, size, dtype, None)
                self.imaginary.opened()
            trace.marked = True

    def closed(self) -> None:
        """A buffer that outlived its trace is a plain one again when no traced number is left in it."""
        halves = [half for half in (self.memory, self.imaginary) if half is not None]
        if not halves[0].trace.open and not any([(half.source != KNOWN).any() for half in halves]):
            self.memory = self.imaginary = self.trace = None


class WrittenArray(np.ndarray):
    """An array that a traced function made, or one that it found, which it may copy but not write to."""

    _home: Any = None
    origin: Any = None
    """Of a copy of some elements: the array, the index, how often it was written to then, and what was added since."""

    def __array_finalize__(self, obj: Any) -> None:
        self._home = getattr(obj, "_home", None)

    @property
    def home(self) -> Home:
        """Who owns the memory this looks into."""
        whole = owner(self)
        if self._home is None or self._home.owner is not whole:  # made by code that asks nobody: nobody writes to it
            self._home = Home(whole, None)
        return self._home

    @property
    def base(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """The array it is a view of; None for one that the function was given as its own."""
        whole, face = self.home.owner, None if self.home.face is None else self.home.face()
        return None if face is self or whole is self else whole if face is None else face

    @property
    def memory(self) -> Memory | None:
        """What was written; None while all numbers are known."""
        return self.home.memory

    @property
    def known(self) -> Any:
        """The same memory as a plain array."""
        whole = self.home.owner
        same = whole.shape == self.shape and whole.strides == self.strides and type(whole) is np.ndarray
        same = same and whole.dtype == self.dtype
        return whole if same else _PLAIN.view(self, _PLAIN)

    def places(self, table: Any) -> Any:
        """A table with an entry for each element of the memory, looked at as this array looks at the memory."""
        whole, size = self.home.owner, self.home.owner.itemsize
        offset = (_address(self) - _address(whole)) // size * table.itemsize
        return _PLAIN(self.shape, table.dtype, table, offset, tuple([s // size * table.itemsize for s in self.strides]))

    def now(self) -> Any:
        """What it is at this moment: a traced array, or a plain one."""
        memory, whole = self.memory, self.home.owner
        if memory is None:
            return self.known
        if self.dtype != whole.dtype and self.dtype != whole.real.dtype:
            raise refuse("an array with traced numbers cannot be looked at in another type; write x.astype(…)")
        found = self.read(None, self.known)
        if found is None:
            return self.known.copy() if memory.trace.open else self.known
        if moved(self) and type(found) is Traced:
            rooted(found, odd=np.empty_like(self.known, np.float32))
        return found

    def read(self, key: Any, known: Any) -> Any:
        """What is at self[key], or all of it (None), as a traced array; None where all numbers are known, as `known`
        has them."""
        found: list[Any] = []
        halves = self.halves()
        for half, numbers in zip(halves, (known,) if len(halves) == 1 else (known.real, known.imag), strict=True):
            places = self.places(half.source)
            places = places if key is None else np.asarray(places[key])
            if not half.trace.open and (places >= 0).any():
                raise leaked(half.trace)
            slot = half.read(places, numbers)
            found.append(numbers if slot is None else _traced(half.trace, slot, half.dtype, places.shape))
        if not any([type(x) is Traced for x in found]):
            return None
        return found[0] if len(found) == 1 else BY_NAME["joined"](*found)

    def halves(self) -> list[Memory]:
        """The memory it looks into: of a complex array both parts, of z.real and z.imag one."""
        home, whole = self.home, self.home.owner
        if home.imaginary is None:
            return [cast(Memory, home.memory)]
        both = [cast(Memory, home.memory), home.imaginary]
        if self.dtype.kind == "c":
            return both
        return [both[(_address(self) - _address(whole)) % whole.itemsize // self.itemsize]]

    # -- reading ------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if is_traced(key):
            return _lifted(self)[settled(key)]
        part = super().__getitem__(bare(key))
        memory = self.memory
        if isinstance(part, WrittenArray) and owner(part) is self.home.owner:
            return at_home(part, self)
        if memory is None:
            return self._copied(part, key)
        if np.size(part) > self.size:  # elements come up several times: all of them are read first
            found = self.now()
            return at_home(part, self) if isinstance(found, np.ndarray) else found[bare(key)]
        if self.home.imaginary is not None:
            found = self.read(bare(key), part)
            return at_home(part, self) if found is None else found
        places = self.places(memory.numbers())[bare(key)]
        if not (memory.source[places] != KNOWN).any():
            return self._copied(part, key)
        if not memory.trace.open:
            raise leaked(memory.trace)
        if np.ndim(part) > 1 and moved(part):
            found = self.read(bare(key), part)
            rooted(found, odd=np.empty_like(_PLAIN.view(part, _PLAIN), np.float32))
            return found
        return waiting(memory, places, np.array(part))

    def _copied(self, part: Any, key: Any) -> Any:
        """Elements whose numbers are known, on their own; sums that are written back are noted."""
        part = at_home(part, self)
        if type(part) is WrittenArray and self.dtype.kind == "f" and self.home.trace is inmost():
            part.origin = self, key, self.version, None
        return part

    @property
    def version(self) -> int:
        """How often traced numbers were written."""
        return -1 if self.memory is None else self.memory.version

    @property
    def real(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """The real part, a view."""
        return _PLAIN.real.__get__(self)

    @real.setter
    def real(self, value: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        self.real[...] = value

    @property
    def imag(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """The imaginary part, a view; of a real array zeros."""
        return _PLAIN.imag.__get__(self)

    @imag.setter
    def imag(self, value: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    @property
    def flat(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """The elements in one axis; it may be written to."""
        return BY_NAME["Flat"](self)

    @flat.setter
    def flat(self, value: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        self.flat[:] = value

    # -- writing ------------------------------------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        BY_NAME["assign"](self, key, value)

    def fill(self, value: Any) -> None:
        """All elements become one number."""
        self[...] = value

    def sort(self, axis: Any = -1, *args: Any, **named: Any) -> None:
        """Sorted in place."""
        self[...] = np.sort(self.now(), axis, *args, **named)

    def partition(self, kth: Any, axis: Any = -1, *args: Any, **named: Any) -> None:
        """Smaller numbers before the kth, others after it."""
        self[...] = np.partition(self.now(), kth, axis, *args, **named)

    def __imatmul__(self, other: Any) -> Any:
        self[...] = self @ other
        return self

    def put(self, *args: Any, **named: Any) -> None:
        """As np.put."""
        np.put(self, *args, **named)

    def put_traced(self, key: Any, value: Any, trace: Trace) -> None:
        """A traced array becomes what is at self[key]."""
        self.home.opened(trace)
        halves, known = self.halves(), self.known
        if len(halves) == 1:
            halves[0].write(self.places(halves[0].source), key, slot_of(trace, value, self.dtype))
            known[key] = mark_of(self.dtype)
            return
        parts = BY_NAME["parts_of"](value)
        for half, numbers, part in zip(halves, (known.real, known.imag), parts, strict=True):
            if type(part) is Traced:
                half.write(self.places(half.source), key, slot_of(trace, part, half.dtype))
                numbers[key] = mark_of(half.dtype)
            else:
                numbers[key] = 0.0 if part is None else part
                half.forget(self.places(half.source), key)

    def add_traced(self, key: Any, slot: int, trace: Trace) -> None:
        """A slot is added to what is at self[key], each element as often as it comes up."""
        self.home.opened(trace)
        memory, known = cast(Memory, self.memory), self.known
        places, numbers = self.places(memory.numbers())[key], known[key]
        nonzero = (memory.source[places] == KNOWN) & (numbers != 0)
        if nonzero.any():  # numbers so far are a part as well
            constant = trace.const(np.asarray(numbers[nonzero], self.dtype))
            memory.write(memory.source, np.asarray(places)[nonzero], constant)
        memory.add(places, slot)
        known[key] = mark_of(self.dtype)

    def put_numbers(self, key: Any, value: Any) -> None:
        """Known numbers become what is at self[key]."""
        note((value,), True)
        super().__setitem__(key, value)
        if self.memory is not None:
            for half in self.halves():
                half.forget(self.places(half.source), key)
            self.home.closed()

    # -- NumPy's hooks ------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        if not MASKED.isdisjoint(map(type, args)):
            return NotImplemented
        return BY_NAME["ufunc_on"](ufunc, method, args, named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if not MASKED.isdisjoint(types):
            return NotImplemented
        return BY_NAME["function_on"](function, args, named)

    def __array_wrap__(self, array: Any, *more: Any) -> Any:
        return at_home(array, self)

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        if self.home.trace is None:  # one from outside stands in code, as a constant
            return id(self)
        raise TypeError("unhashable type: 'numpy.ndarray'")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.array(self.now()).__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self.now())

    def __str__(self) -> str:
        return str(self.now())


_VIEWS = {"reshape", "transpose", "swapaxes", "squeeze", "ravel", "diagonal", "view", "__getattribute__"}


def _method(name: str) -> Callable[..., Any]:
    inner = getattr(_PLAIN, name)

    def method(self: WrittenArray, *args: Any, **named: Any) -> Any:
        if self.memory is None and not is_traced(args) and not is_traced(tuple(named.values())):
            return at_home(inner(self, *bare_all(args), **named), self)
        if name in _VIEWS:
            part = at_home(inner(self, *args, **named), self)
            if owner(part) is self.home.owner:
                return part
            return copied(getattr(_lifted(self), name)(*args, **named), part)
        return getattr(_lifted(self), name)(*args, **named)

    method.__name__ = name
    method.__doc__ = f"As for an array of NumPy's, on traced elements too: {name}."
    return method


_NAMES = """reshape transpose swapaxes squeeze ravel diagonal view sum mean prod max min var std any all argmax argmin
argsort cumsum cumprod repeat take clip round trace searchsorted dot astype flatten copy item tolist compress conj
conjugate nonzero choose argpartition __float__ __int__ __bool__ __complex__ __index__ __contains__
__copy__ __deepcopy__"""
for _name in _NAMES.split():
    setattr(WrittenArray, _name, _method(_name))


def copied(x: Any, like: Any) -> Any:
    """What NumPy copied where it could not give a view, on its own; `like`: it lies in memory as this."""
    return x.copy("F" if moved(like) else "C") if type(x) is Traced else x


def at_home(x: Any, of: WrittenArray) -> Any:
    """What NumPy made of an array: a view, or one that owns its memory, or looks into memory that it owns."""
    if type(x) is _PLAIN and x.base is not None and owner(x) is of.home.owner:  # np.broadcast_to and its kin
        x = x.view(WrittenArray)
        x._home = of.home
    if type(x) is WrittenArray and owner(x) is not of.home.owner:
        if of.home.trace is None:
            note((of,), True)
        x._home = Home(owner(x), inmost())  # pyright: ignore[reportPrivateUsage]
    return x


WRITTEN.add(WrittenArray)


def _address(array: Any) -> int:
    return cast(int, array.__array_interface__["data"][0])


def _traced(trace: Trace, slot: int, dtype: Any, shape: Any) -> Any:
    found = Traced(trace, slot, FLOAT if dtype == FLOAT else dtype)
    assert found.shape == tuple(shape)
    return found


def _lifted(x: WrittenArray) -> Any:
    """As a traced array, in the trace that is open, also where all numbers are known."""
    found = x.now()
    if isinstance(found, np.ndarray) and found.dtype.kind == "c":
        return BY_NAME["joined"](*[lifted(part.copy(), inmost()) for part in (found.real, found.imag)])
    return found if not isinstance(found, np.ndarray) else lifted(found, cast(Any, inmost()))


def bare(key: Any) -> Any:
    """An index without WrittenArrays in it."""
    if type(key) is tuple:
        return tuple([bare(k) for k in cast("tuple[Any, ...]", key)])
    return key.known if type(key) is WrittenArray else key


def mark_of(dtype: Any) -> Any:
    """What stands in memory for elements of one write; nothing can for a truth value. Each write has another mark, so
    whoever compares memory sees that something was written."""
    serial = next(_serial)
    if dtype == np.float64:
        return np.uint64(0x7FF8_0000_0000_0000 | (serial % 2**19) << 32 | _MARK).view(np.float64)
    if dtype.kind == "f":
        return np.uint32(_MARK_32 | serial % 2**13).view(np.float32)
    return False if dtype.kind == "b" else np.iinfo(dtype).max - serial % 97 - _below(dtype)


def _below(dtype: Any) -> int:
    """How far below the largest integer marks are: not where a program has numbers of its own."""
    return _MARK if dtype.itemsize == 8 else _MARK >> 4 if dtype.itemsize == 4 else 0


def marked(array: Any) -> bool:
    """Whether an array has memory in it that stands for traced numbers."""
    if array.dtype == np.float64:
        array = np.atleast_1d(array)
        return bool((array[np.isnan(array)].view(np.uint64) & np.uint64(0xFFFF_FFFF) == np.uint64(_MARK)).any())
    if array.dtype == np.float32:
        bits = np.atleast_1d(array).view(np.uint32)
        return bool((bits & np.uint32(0xFFFF_E000) == np.uint32(_MARK_32)).any())
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        return False
    high = np.iinfo(array.dtype).max - _below(array.dtype)
    return bool(((array > high - 97) & (array <= high)).any())


@by_name
def refuse_marked(array: Any) -> None:
    """An error if somebody read memory that stands for traced numbers."""
    if marked(array):
        raise refuse(
            "an array that traced numbers were written to was read by code that does not ask NumPy's protocols (a "
            "buffer, compiled code); read it with functions of NumPy's"
        )


@by_name
def refuse_number(x: Any) -> None:
    """The same for a number of Python's."""
    if x != x or (type(x) is int and 2**27 < x < 2**64):
        refuse_marked(np.asarray(x, None if type(x) is float or x >= 2**31 else np.int32))


def made(result: Any, args: Any = ()) -> Any:
    """What NumPy gives to a traced function: an array of its own may be written to, an argument and a view of one
    stay."""
    if isinstance(result, (list, tuple)):
        parts = [made(r, args) for r in cast("list[Any]", result)]
        return result if all(map(is_, parts, result)) else getattr(result, "_make", type(result))(parts)  # pyright: ignore
    if type(result) is not np.ndarray or result.dtype.kind not in "fiubc":
        return result
    trace, whole = inmost(), owner(result)
    ours = type(whole) is np.ndarray and whole.base is None and whole.dtype == result.dtype
    if trace is None or not ours or _among(whole, args, whole is result):
        return result
    note(args, True)  # its numbers may go into a step without it
    found = result.view(WrittenArray)
    found._home = home = Home(whole, trace)  # pyright: ignore[reportPrivateUsage]
    if whole is result:
        home.face = ref(found)
    return found


def _among(whole: Any, args: Any, fresh: bool) -> bool:
    """Whether arguments may look into the memory of an array; `fresh`: other objects than arrays do not."""
    for x in args:
        if isinstance(x, np.ndarray):
            found = owner(x) is whole
        elif type(x) is list or type(x) is tuple:
            found = _among(whole, x, fresh)
        else:
            found = hasattr(x, "__array__") and not isinstance(x, np.generic) and not fresh
        if found:
            return True
    return False


def found_outside(array: Any) -> Any:
    """An array from outside the function: what is made of it may be written to, itself not."""
    found = array.view(WrittenArray)
    found._home = Home(owner(array), None)  # pyright: ignore[reportPrivateUsage]
    return found


def is_traced(x: Any) -> bool:
    """Whether something inside is traced, or an array that traced values were written to."""
    if type(x) is tuple or type(x) is list:
        return any([is_traced(part) for part in cast("list[Any]", x)])
    return type(x) in TRACED or type(x) in MASKED or (type(x) is WrittenArray and x.memory is not None)


@by_name
def settled(x: Any) -> Any:
    """As it is now: WrittenArrays as traced or plain ones, in lists and tuples too."""
    if type(x) is tuple or type(x) is list:
        return type(x)([settled(part) for part in cast("list[Any]", x)])
    return x.now() if type(x) is WrittenArray else x


def bare_all(x: Any) -> Any:
    """WrittenArrays as plain ones, where no traced value was written."""
    if type(x) is tuple or type(x) is list:
        return type(x)([bare_all(part) for part in cast("list[Any]", x)])
    return x.known if type(x) is WrittenArray else x
