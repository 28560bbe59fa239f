"""What writes: x[key] = v, out=…, np.add.at, np.put and their kin, for arrays of a trace and arrays it made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ...ops.op import Reduction
from ...ops.opaque import Put
from ...relations import Function, freeze
from ...relations.index_sets import Seg
from ..registry import FUNCTIONS, NOTES, WRITERS, WRITING, writing
from ..rules.relational.folds import fold
from ..sharing import VIEWS, places_of, rearranges, writable
from ..trace import inmost, refuse
from ..traced import TRACED, Traced, convert, lifted, slot_of, stacked, tidy, trace_of
from .masked import MaskedPart, put_masked
from .written import WrittenArray, at_home, bare, bare_all, copied, is_traced, made, settled

# -- assignment -------------------------------------------------------------------------------------------


@writing
def assign(x: Any, key: Any, value: Any) -> None:
    """x[key] = value."""
    value = settled(value)
    if type(value) in (list, tuple) or (isinstance(value, np.ndarray) and cast(Any, value).dtype == object):
        value = stacked(value.tolist() if isinstance(value, np.ndarray) else value)
    if is_traced(key):
        return _assign_computed(x, settled(key), value)
    key = bare(key)
    if type(x) is not WrittenArray:
        trace, memory = writable(x), x.look.memory
        return memory.write(places_of(x), key, slot_of(trace, value, x.dtype))
    trace = inmost()
    if x.home.trace is None or x.home.trace is not trace:
        _not_ours(x, type(value) in TRACED)
    if type(value) not in TRACED:
        return x.put_numbers(key, value)
    if type(value) is not Traced and x.dtype.kind != "c":
        raise TypeError(
            f"complex numbers cannot be written into an array of {x.dtype}; take z.real, or np.zeros(n, complex)"
        )
    x.put_traced(key, value, cast(Any, trace))


def _not_ours(x: WrittenArray, traced: bool) -> None:
    home = x.home
    if home.trace is not None and not home.trace.open:  # it was kept by the function, and is from outside now
        home.trace = None
    if home.trace is None and traced:
        raise refuse(
            f"a traced value is written into an array of shape {x.shape} from outside the function, which would keep "
            "it; write into a copy: a = a.copy()"
        )
    if home.trace is not None and inmost() is not None:
        raise refuse(
            "an array of an outer function is written to inside another one that is traced (a loop's body, a branch, "
            "an inner derivative): it would happen once, not at each call; return the new array instead, "
            "or copy the array there: a = a.copy()"
        )


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
        return _put_places(x, _places(x, k), value)
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


def _places(x: Any, key: Any) -> Any:
    """The places in x, by rows, of x[key] with positions that depend on the numbers."""
    parts = settled(key if type(key) is tuple else (key,))
    if any([type(k) is Traced and k.dtype.kind == "b" for k in parts]):
        raise refuse("x[key] = … with a mask that depends on the numbers beside positions is not known; use np.where")
    numbered = np.arange(x.size).reshape(x.shape)
    return lifted(numbered, cast(Any, inmost()))[parts if type(key) is tuple else parts[0]]


def _put_places(x: Any, at: Any, value: Any) -> None:
    """x.flat[at] = value at computed places; where one comes up twice, the last counts."""
    flat, shape, at = np.ravel(settled(x)), at.shape, np.ravel(at)
    if np.ndim(value):
        value = np.ravel(np.broadcast_to(tidy(value), shape))
        order = np.argsort(at, kind="stable")
        at, value = at[order], value[order]
        last = np.concatenate([at[1:] != at[:-1], np.ones(min(1, at.size), bool)])
        value = _added(np.where(last, value, np.zeros((), x.dtype)), at, x.size)
    touched = _added(np.ones(at.shape), at, x.size) > 0
    x[...] = np.reshape(np.where(touched, value, flat), x.shape)


def _added(values: Any, at: Any, n: int) -> Any:
    """Values added up at computed places."""
    trace = trace_of(values, at)
    kind = values.dtype
    slots = slot_of(trace, values, kind), slot_of(trace, at, at.dtype)
    return Traced(trace, trace.step(Put(0, 0, 1, n), slots), kind)


@writing
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
            return _put_places(self.array, at, _repeated(settled(value), at.shape))
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
    value = stacked(value) if type(value) in (list, tuple) else value
    return value if not np.ndim(value) or np.shape(value) == shape else np.resize(value, shape)


# -- ufuncs -----------------------------------------------------------------------------------------------


@writing
def ufunc_on(ufunc: Any, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A ufunc some of whose arguments or results may be written to."""
    if method == "at":
        return _at(ufunc, *args)
    out = named.pop("out", None) or ()
    call: Callable[..., Any] = getattr(ufunc, method)
    traced = is_traced((*args, *out, *named.values()))
    args = settled(args) if traced else bare_all(args)
    if not any([o is not None for o in out]):
        result = call(*args, **{k: settled(v) for k, v in named.items()})
        return result if traced else made(result, args)
    if not all([o is None or isinstance(o, (np.ndarray, Traced)) for o in out]):
        raise TypeError("return arrays must be of ArrayType")
    where = settled(named.pop("where", True))
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
        raise refuse(
            f"np.{name} writes traced numbers into an array that is from outside the function (out=…, or a += b); "
            "write into a copy of it, or use the result: a = a + b"
        )
    target[...] = value


def _at(ufunc: Any, x: Any, key: Any, values: Any = None) -> None:
    """np.add.at and its kin: each position as often as it comes up."""
    if not is_traced((x, key, values)):
        ufunc.at(bare_all(x), bare(key), *(() if values is None else (settled(values),)))
        return
    if is_traced(key):
        return _at_computed(ufunc, x, key, values)
    positions = np.arange(x.size).reshape(x.shape)[bare(key)]
    touched, group = np.unique(positions, return_inverse=True)
    group = group.reshape(-1)
    at = np.unravel_index(touched, x.shape)
    if values is None:
        if len(touched) < positions.size:
            raise refuse(f"np.{ufunc.__name__}.at at a position that comes up twice is not known for traced arrays")
        x[at] = ufunc(x[at])
        return
    given = np.ravel(np.broadcast_to(tidy(settled(values)), positions.shape))
    if len(touched) == positions.size:  # each position once
        x[at] = ufunc(x[at], given[np.argsort(group)])
    elif ufunc is np.add or ufunc is np.subtract:
        most = 4 * len(touched) >= 3 * x.size  # then all of x, in one step
        where, size = (positions.ravel(), x.size) if most else (group, len(touched))
        total = _summed(convert(given, x.dtype), where, size)
        old = np.ravel(settled(x)) if most else x[at]
        new = total if ufunc is np.add and _zero(old) else ufunc(old, total)
        x[... if most else at] = np.reshape(new, x.shape) if most else new
    elif ufunc is np.divide:
        x[at] = x[at] / _folded("prod", given, group, len(touched))
    elif ufunc in _FOLDS:  # what is there and what comes are one group: ties share equally
        both = np.concatenate([x[at], convert(given, x.dtype)])
        x[at] = _folded(_FOLDS[ufunc], both, np.concatenate([np.arange(len(touched)), group]), len(touched))
    else:
        known = ", ".join([f"np.{f.__name__}.at" for f in (np.add, np.subtract, np.divide, *_FOLDS)])
        raise refuse(
            f"np.{ufunc.__name__}.at at a position that comes up twice is not known for traced arrays; {known} are"
        )


def _zero(x: Any) -> bool:
    """Whether numbers are known to be 0."""
    known = bare_all(x)
    return isinstance(known, np.ndarray) and not is_traced(x) and not cast(Any, known).any()


def _at_computed(ufunc: Any, x: Any, key: Any, values: Any) -> None:
    if ufunc is not np.add and ufunc is not np.subtract:
        raise refuse(
            f"np.{ufunc.__name__}.at at positions that depend on the numbers is not known; np.add.at and "
            "np.subtract.at are"
        )
    k = settled(key)
    if type(k) is MaskedPart or (type(k) is Traced and k.dtype.kind == "b"):  # each position once
        x[k] = ufunc(x[k], settled(values))
        return
    at = _places(x, key)
    given = np.ravel(np.broadcast_to(tidy(settled(values)), at.shape))
    total = _added(convert(lifted(given, cast(Any, inmost())), x.dtype), np.ravel(at), x.size)
    x[...] = ufunc(settled(x), np.reshape(total, x.shape))


_FOLDS = {np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logaddexp: "logsumexp"}


def _folded(how: str, values: Any, group: Any, n: int) -> Any:
    relation = Function(Seg(len(group)), Seg(n), freeze(np.asarray(group, np.intp)))
    return fold(lifted(values), relation, how, 0)


def _summed(values: Any, group: Any, n: int) -> Any:
    """Sums of values by group."""
    if type(values) is not Traced:
        if type(values) not in TRACED:
            return np.bincount(group, values, n)
        return WRITING["joined"](*[None if v is None else _summed(v, group, n) for v in WRITING["parts_of"](values)])
    relation = Function(Seg(len(group)), Seg(n), freeze(np.asarray(group, np.intp)))
    trace = values.home
    return Traced(trace, trace.step(Reduction((relation,), 0), (values.slot,)), values.dtype)


# -- functions --------------------------------------------------------------------------------------------


@writing
def function_on(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A function of NumPy's some of whose arguments may be written to."""
    if function in WRITERS:
        return WRITERS[function](*args, **named)
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


def _writes(function: Any, what: str) -> Any:
    def enter(rule: Callable[..., None]) -> Callable[..., None]:
        WRITERS[function] = rule
        NOTES[function] = what, "that of what is written; 0 for what is overwritten"
        return rule

    return enter


@_writes(np.copyto, "x[...] = v")
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    dst[...] = src if where is True else np.where(settled(where), settled(src), settled(dst))


@_writes(np.fill_diagonal, "x[i, i] = v")
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    shape = np.shape(a)
    places = np.zeros(shape, np.int8)
    np.fill_diagonal(places, 1, wrap)
    at = np.nonzero(places)
    a[at] = _repeated(settled(val), np.shape(at[0]))


@_writes(np.put, "x.flat[k] = v")
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    at = settled(ind) if is_traced(ind) else np.asarray(bare_all(ind))
    if mode != "raise":
        at = np.clip(at, 0, a.size - 1) if mode == "clip" else at % a.size
    Flat(a)[at.ravel()] = v


@_writes(np.putmask, "x = np.where(mask, v, x)")
def _putmask(a: Any, mask: Any, values: Any) -> None:
    a[...] = np.where(settled(mask), _repeated(settled(values), np.shape(a)), settled(a))


@_writes(np.place, "x[mask] = v")
def _place(arr: Any, mask: Any, vals: Any) -> None:
    if is_traced(mask):
        if np.size(vals) != 1:
            raise refuse(
                "np.place with a mask that depends on the numbers takes one value: the number of others is not known; "
                "write x[mask] = values[mask]"
            )
        arr[settled(mask)] = np.reshape(settled(vals), ())
        return
    at = np.nonzero(np.asarray(bare_all(mask)))
    arr[at] = _repeated(settled(vals), np.shape(at[0]))


@_writes(np.put_along_axis, "x[i, k[i, j]] = v[i, j]")
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    numbered = np.arange(arr.size).reshape(arr.shape)
    if is_traced(indices):
        return _put_places(arr, np.take_along_axis(numbered, settled(indices), axis), settled(values))
    at = np.take_along_axis(numbered, np.asarray(bare_all(indices)), axis)
    Flat(arr)[at] = np.broadcast_to(settled(values), at.shape)
