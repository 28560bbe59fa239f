"""What writes: x[key] = v, out=…, np.add.at, np.put and their kin, for arrays of a trace and arrays it made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..registry import FUNCTIONS, NOTES, WRITERS, by_name
from ..sharing import VIEWS, places_of, rearranges, writable
from ..surroundings.contents import owner
from ..trace import inmost, name_of, refuse
from ..traced import TRACED, Traced, lifted, slot_of, stacked
from .masked import MaskedPart, put_masked, truth
from .noted_sums import added_in_place, allowed, written_back
from .positions import at_positions, places_in, put_places
from .written import WrittenArray, at_home, bare, bare_all, copied, is_traced, made, settled

# -- assignment -------------------------------------------------------------------------------------------


@by_name
def assign(x: Any, key: Any, value: Any) -> None:
    """x[key] = value."""
    if written_back(x, key, value):
        return None
    value = settled(value)
    if type(value) in (list, tuple) or (isinstance(value, np.ndarray) and cast(Any, value).dtype == object):
        value = stacked(value.tolist() if isinstance(value, np.ndarray) else value)
    if is_traced(key):
        return _assign_computed(x, settled(key), value)
    key = bare(key)
    if type(x) is not WrittenArray:
        trace, memory = writable(x), x.look.memory
        return memory.write(places_of(x), key, slot_of(trace, value, x.dtype))
    trace = allowed(x, type(value) in TRACED)
    if type(value) not in TRACED:
        return x.put_numbers(key, value)
    if type(value) is not Traced and x.dtype.kind != "c":
        raise TypeError(
            f"complex numbers cannot be written into an array of {x.dtype}; take z.real, or np.zeros(n, complex)"
        )
    x.put_traced(key, value, trace)


def _assign_computed(x: Any, key: Any, value: Any) -> None:
    """x[key] = value with a mask or an integer that depends on the numbers."""
    k = key[0] if type(key) is tuple and len(cast(Any, key)) == 1 else key
    if any([type(part) is MaskedPart for part in (k if type(k) is tuple else (k,))]):
        return put_masked(x, k, value)
    if type(k) is tuple:
        at = [i for i, part in enumerate(cast(Any, k)) if type(part) is Traced and part.ndim < 2]
        others = [part for i, part in enumerate(cast(Any, k)) if i not in at]
        if len(at) == 1 and all([isinstance(part, (int, np.integer, slice)) for part in others]):
            view = x[(*k[: at[0]], slice(None), *k[at[0] + 1 :])]
            axis = len([part for part in k[: at[0]] if isinstance(part, slice)])
            if axis and k[at[0]].dtype.kind == "b":
                value = _moved(value, k[at[0]], axis, view.shape)
            elif axis and k[at[0]].ndim:  # the axis of the value is not in front
                return put_places(x, places_in(x, k), value)
            return _assign_computed(np.moveaxis(view, axis, 0), k[at[0]], value)
    now = settled(x)
    if type(k) is Traced and k.dtype.kind == "b":
        if type(value) is MaskedPart:
            value = value.beside(k, 0, x.ndim - k.ndim, "x[mask] = a[other]")
        elif np.ndim(value) > x.ndim - k.ndim and np.shape(value) != (1,):
            raise refuse(_COUNT)
        mask = np.reshape(cast(Any, k), (*k.shape, *(1,) * (x.ndim - k.ndim)))
    elif type(k) is Traced and not k.shape:
        n = x.shape[0]
        at = np.where(cast(Any, k < 0), k + n, k)
        mask = np.reshape(cast(Any, np.arange(n) == at), (n, *(1,) * (x.ndim - 1)))
    else:
        return put_places(x, places_in(x, k), value)
    x[...] = np.where(mask, value, now)


_COUNT = (
    "x[mask] = values with a mask that depends on the numbers: how many values are taken is not known; write x[mask] = "
    "values[mask] with an array of the shape of x"
)


def _moved(value: Any, mask: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """What is written to x[:, mask]: the axis of the mask is in front, and plain values have none."""
    if type(value) is MaskedPart:
        return MaskedPart(value.beside(mask, axis, len(shape) - 1, "x[…, mask] = a[other]"), mask)
    at = np.ndim(value) - len(shape) + axis  # where the value has that axis
    if at < 0:
        return value
    if np.shape(value)[at] != 1:
        raise refuse(_COUNT)
    return np.squeeze(value, at)


@by_name
class Flat:
    """x.flat: the elements in one axis, by rows, which may be written to."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def _key(self, key: Any) -> Any:
        return np.unravel_index(np.arange(self.array.size)[key], self.array.shape)

    def __getitem__(self, key: Any) -> Any:
        return np.ravel(self.array)[key] if is_traced(key) else self.array[self._key(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if is_traced(key):
            at = lifted(np.arange(self.array.size), cast(Any, inmost()))[settled(key)]
            return put_places(self.array, at, _repeated(settled(value), at.shape))
        at = self._key(key)
        self.array[at] = _repeated(settled(value), np.shape(at[0]))

    def __iter__(self) -> Any:
        return iter(np.ravel(self.array))

    def __len__(self) -> int:
        return self.array.size

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(np.ravel(self.array), dtype)

    def copy(self) -> Any:
        """The elements on their own."""
        return np.ravel(self.array).copy()


def _repeated(value: Any, shape: Any) -> Any:
    """Values again and again until there are enough."""
    return value if not np.ndim(value) or np.shape(value) == shape else np.resize(value, shape)


# -- ufuncs -----------------------------------------------------------------------------------------------


@by_name
def ufunc_on(ufunc: Any, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A ufunc some of whose arguments or results may be written to."""
    if method == "at":
        return at_positions(ufunc, *args)
    out = named.pop("out", None) or ()
    call: Callable[..., Any] = getattr(ufunc, method)
    traced = is_traced((*args, *out, *named.values()))
    if not any([o is not None for o in out]):
        args = settled(args) if traced else bare_all(args)
        result = call(*args, **{k: settled(v) for k, v in named.items()})
        return result if traced else made(result, args)
    if not all([o is None or isinstance(o, (np.ndarray, Traced)) for o in out]):
        raise TypeError("return arrays must be of ArrayType")
    where = settled(named.pop("where", True))
    if len(out) == 1 and out[0] is args[0] and added_in_place(ufunc, method, out[0], args[1:], where, named):
        return out[0]
    args = settled(args) if traced else bare_all(args)
    result = call(*args, **named)
    for target, value in zip(out, result if type(result) is tuple else (result,), strict=True):
        if target is not None:
            _store(ufunc, target, value, where)
    return out[0] if len(out) == 1 else out


def _store(ufunc: Any, target: Any, value: Any, where: Any) -> None:
    """What a ufunc computed goes into the array given as out=…"""
    name, shape = ufunc.__name__, np.shape(value)
    if np.broadcast_shapes(shape, target.shape) != target.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape {shape}"
        )
    if not np.can_cast(value.dtype, target.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc '{name}' output from {value.dtype!r} to {target.dtype!r} with casting rule 'same_kind'"
        )
    if where is not True:
        value = np.where(where, value, settled(target))
    if type(target) not in (WrittenArray, Traced) and is_traced(value):
        theirs = name_of(lambda v: isinstance(v, np.ndarray) and owner(v) is owner(target), "a")
        raise refuse(
            f"np.{name} writes traced numbers into an array that is from outside the function (out=…, or a += b); "
            f"write into a copy: own = {theirs}.copy(), or use the result: own = {theirs} + b"
        )
    target[...] = value


# -- functions --------------------------------------------------------------------------------------------


_SHAPES: dict[Any, Any] = {np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}
"""What is known without reading."""


@by_name
def function_on(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A function of NumPy's some of whose arguments may be written to."""
    if function in WRITERS:
        return WRITERS[function](*args, **named)
    if function in _SHAPES and not named and tuple(map(type, args)) == (WrittenArray,):
        return _SHAPES[function](args[0])
    out = named.get("out")
    if function is np.einsum and rearranges(args) and type(args[1]) is WrittenArray:
        return at_home(np.einsum(args[0], args[1].known), args[1])
    if not is_traced((*args, *named.values())):
        if function in VIEWS and args and type(args[0]) is WrittenArray:
            found = cast(Any, np.ndarray).__array_function__(args[0], function, (WrittenArray,), args, named)
            if isinstance(found, (list, tuple)):
                return type(found)([at_home(x, args[0]) for x in cast("list[Any]", found)])  # pyright: ignore
            return at_home(found, args[0])
        plain = bare_all(args)
        plainly = {k: bare_all(v) for k, v in named.items()}
        result = function(*plain, **plainly)
        return out if out is not None else made(result, (*plain, *plainly.values()))
    like: Any = None
    if function in VIEWS and args and type(args[0]) is WrittenArray:
        result = cast(Any, np.ndarray).__array_function__(args[0], function, (WrittenArray,), args, named)
        several = isinstance(result, (list, tuple))
        parts = [at_home(p, args[0]) for p in cast("list[Any]", result if several else [result])]
        if all([type(p) is WrittenArray and p.home is args[0].home for p in parts]):
            return cast(Any, type(result))(parts) if several else parts[0]
        like = None if several else parts[0]
    if function not in FUNCTIONS:
        return lifted(settled(first_traced((*args, *named.values())))).__array_function__(function, (), args, named)
    result = function(*settled(args), **{k: settled(v) for k, v in named.items() if k != "out"})
    if out is None:
        return result if like is None else copied(result, like)
    target = cast(Any, out[0] if type(out) is tuple else out)
    target[...] = result
    return target


def first_traced(xs: Sequence[Any]) -> Any:
    """The first traced array among values, and in lists and tuples of them."""
    for x in xs:
        if type(x) in (list, tuple):
            if (found := first_traced(cast("list[Any]", x))) is not None:
                return found
        elif is_traced(x):
            return x
    return None


def _values(x: Any) -> Any:
    """What is to be written, as it is now: lists, in which something may be traced, as one array."""
    x = settled(x)
    return stacked(x) if type(x) in (list, tuple) else x


def _writes(function: Any, what: str) -> Any:
    def enter(rule: Callable[..., None]) -> Callable[..., None]:
        WRITERS[function] = rule
        NOTES[function] = what, "that of what is written; 0 for what is overwritten"
        return rule

    return enter


@_writes(np.copyto, "x[...] = v")
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    dst[...] = src if where is True else np.where(settled(where), _values(src), settled(dst))


@_writes(np.fill_diagonal, "x[i, i] = v")
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    shape = np.shape(a)
    places = np.zeros(shape, np.int8)
    np.fill_diagonal(places, 1, wrap)
    at = np.nonzero(places)
    if np.size(values := _values(val)):
        a[at] = _repeated(values, np.shape(at[0]))


@_writes(np.put, "x.flat[k] = v")
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    at = settled(ind) if is_traced(ind) else np.asarray(bare_all(ind))
    if mode != "raise":
        at = np.clip(at, 0, a.size - 1) if mode == "clip" else at % a.size
    if np.size(values := _values(v)):
        Flat(a)[at.ravel()] = values


@_writes(np.putmask, "x = np.where(mask, v, x)")
def _putmask(a: Any, mask: Any, values: Any) -> None:
    if np.size(values := _values(values)):
        a[...] = np.where(settled(mask), _repeated(values, np.shape(a)), settled(a))


@_writes(np.place, "x[mask] = v")
def _place(arr: Any, mask: Any, vals: Any) -> None:
    vals = _values(vals)
    if is_traced(mask):
        mask = truth(mask)
        if type(vals) is MaskedPart:  # as np.extract gives it, of the elements in one row
            found = vals.beside(np.ravel(mask), 0, 0, "np.place")
            arr[...] = np.where(mask, np.reshape(found, np.shape(arr)), settled(arr))
            return
        if np.size(vals) != 1:
            raise refuse(
                "np.place with a mask that depends on the numbers takes one value: the number of others is not known; "
                "write x[mask] = values[mask]"
            )
        arr[mask] = np.reshape(vals, ())
        return
    at = np.nonzero(np.asarray(bare_all(mask)))
    if len(at[0]) and not np.size(vals):
        raise ValueError("Cannot insert from an empty array!")
    arr[at] = _repeated(vals, np.shape(at[0]))


@_writes(np.put_along_axis, "x[i, k[i, j]] = v[i, j]")
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    numbered = np.arange(arr.size).reshape(arr.shape)
    if is_traced(indices):
        return put_places(arr, np.take_along_axis(numbered, settled(indices), axis), _values(values))
    at = np.take_along_axis(numbered, np.asarray(bare_all(indices)), axis)
    Flat(arr)[at] = np.broadcast_to(_values(values), at.shape)
