"""What a mask that depends on the numbers selects: x[mask], an array whose length is not known.

    y[y < 0] *= 2          whole   y₀ y₁ y₂ y₃        mask   T F F T
                           whole  2y₀ 2y₁ 2y₂ 2y₃     y = where(mask, whole, y)

It is kept as an array of which only the places of the mask count, until it is written back or reduced. What is computed
at other places leaves no trace, as with np.where.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..registry import MASKED, WRITERS, answer_rows, by_name
from ..trace import Trace, refuse
from ..traced import FLOAT, Traced, convert, lifted, slot_of, trace_of
from .written import settled

_WAY_OUT = "write it back (x[mask] = …) or reduce it (np.sum, np.mean, np.max); or write np.where(mask, x, 0)"


class MaskedPart(np.lib.mixins.NDArrayOperatorsMixin):
    """x[mask]; `whole`: x, whose first axes are those of the mask; further axes stay. `behind`: how many axes come
    before them in x[:, mask], where x has them first only here."""

    __slots__ = ("behind", "mask", "whole")
    __array_priority__ = 2000.0

    def __init__(self, whole: Any, mask: Any, behind: int = 0) -> None:
        self.whole, self.mask, self.behind = whole, mask, behind

    def again(self, whole: Any) -> MaskedPart:
        """Other numbers at the same places."""
        return MaskedPart(whole, self.mask, self.behind)

    dtype: Any = property(lambda self: self.whole.dtype, doc="The type of its numbers.")
    ndim: Any = property(lambda self: 1 + self.more, doc="The number of axes.")
    more: Any = property(lambda self: np.ndim(self.whole) - self.mask.ndim, doc="The number of axes but the first.")
    real: Any = property(lambda self: self.again(np.real(self.whole)), doc="The real part.")

    __class__: Any = property(lambda self: np.ndarray)  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def size(self) -> Any:
        """How many numbers there are, a traced one."""
        return np.sum(self.mask) * int(np.prod(self.whole.shape[self.mask.ndim :]))

    @property
    def shape(self) -> Any:
        """Not known."""
        raise _unknown("its shape")

    def __len__(self) -> int:
        raise _unknown("its length")

    def __iter__(self) -> Any:
        raise _unknown("each of its elements")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise _unknown("all of its numbers")

    def __repr__(self) -> str:
        return f"traced part of {list(self.whole.shape)} chosen by a mask"

    # -- computing ----------------------------------------------------------------------------------------

    def alike(self, x: Any, what: str) -> Any:
        """An operand at every place of the mask."""
        x = settled(x)
        if type(x) is MaskedPart:
            return x.beside(self.mask, self.behind, self.more, what)
        if np.ndim(x) > (0 if self.behind else self.more):
            raise refuse(
                f"{what}: an array of shape {np.shape(x)} and x[mask], of which it is not known how many numbers it "
                "has; take the same part of it: a[mask]"
            )
        return x

    def beside(self, mask: Any, behind: int, more: int, what: str) -> Any:
        """Its whole beside one with the same mask, so many axes before those of the mask, and so many more in all."""
        before = 0 if self.behind == behind else behind
        if self.more + before != more or self.behind not in (0, behind) or not same_mask(self.mask, mask):
            raise refuse(
                f"{what}: parts that are chosen by different masks, or have other axes; write a[mask], or "
                "np.where(mask, x, 0)"
            )
        n = self.mask.ndim
        return np.reshape(self.whole, (*np.shape(self.whole)[:n], *(1,) * before, *np.shape(self.whole)[n:]))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        name, out = f"np.{ufunc.__name__}", named.pop("out", None) or ()
        if method != "__call__" or named:
            raise refuse(f"{name}.{method} of x[mask] with a mask that depends on the numbers is not known; {_WAY_OUT}")
        if ufunc is np.matmul:
            return np.sum(args[0] * args[1])
        part = cast(Any, max([x for x in (*args, *out) if type(x) is MaskedPart], key=lambda x: x.more))
        found = ufunc(*[part.alike(x, name) for x in args])
        if not out:
            return part.again(found)
        (target,) = out
        part.alike(target, f"{name}(…, out=…)")
        if not np.can_cast(found.dtype, target.dtype, "same_kind"):
            raise TypeError(f"Cannot cast ufunc '{ufunc.__name__}' output from {found.dtype!r} to {target.dtype!r}")
        target.whole = convert(found, target.dtype)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function in _EACH:
            part = cast(Any, next(x for x in args if type(x) is MaskedPart))
            name = f"np.{function.__name__}"
            given = {k: part.alike(v, name) for k, v in named.items()}
            return part.again(function(*[part.alike(x, name) for x in args], **given))
        if function not in _RULES:
            raise refuse(
                f"np.{function.__name__} of x[mask] with a mask that depends on the numbers is not known; {_WAY_OUT}"
            )
        return _RULES[function](*args, **named)

    def filled(self, value: Any) -> Any:
        """The whole, with a number at the other places."""
        return np.where(_wide(self.mask, self.whole), self.whole, value)

    def along(self, function: Any, axis: Any, value: Any) -> Any:
        """A reduction of everything (axis None), of the first axis, or of another one."""
        if axis is None:
            return function(self.filled(value))
        if self.behind:
            raise refuse(f"np.{function.__name__} of x[…, mask] along one axis is not known; write np.moveaxis first")
        at = np.arange(self.ndim)[axis]
        if np.ndim(at):
            raise refuse(f"np.{function.__name__} of x[mask] along several axes is not known; take one after another")
        if not at:
            return function(self.filled(value), axis=tuple(range(self.mask.ndim)))
        return MaskedPart(function(self.whole, axis=int(at) + self.mask.ndim - 1), self.mask)

    # -- parts of it --------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple and key and key[0] == slice(None):  # x[mask][:, 0]
            return MaskedPart(self.whole[((slice(None),) * self.mask.ndim) + key[1:]], self.mask)
        if type(key) is MaskedPart and key.dtype.kind == "b":
            return MaskedPart(self.whole, self.mask & self.alike(key, "x[mask]"))
        if key is ... or key == slice(None):
            return self
        raise _unknown("elements at other places than a mask says")

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        value = part.alike(value, "x[mask] = …")
        self.whole = convert(np.where(_wide(part.mask, self.whole), value, self.whole), self.dtype)

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """In another type."""
        return self.again(self.whole.astype(dtype))

    def copy(self, *args: Any) -> Any:
        """The same numbers, on their own."""
        return self.again(self.whole)

    def ravel(self, *args: Any) -> Any:
        """In one axis."""
        if self.more:
            raise _unknown("all of them in one axis")
        return self.again(self.whole)

    flatten = ravel

    def dot(self, other: Any) -> Any:
        """As np.dot."""
        return np.dot(cast(Any, self), other)


MASKED.add(MaskedPart)


def _unknown(what: str) -> Exception:
    return refuse(
        f"x[mask] with a mask that depends on the numbers has a length that is not known yet, and this asks for "
        f"{what}; {_WAY_OUT}"
    )


def _wide(mask: Any, whole: Any) -> Any:
    return np.reshape(mask, (*mask.shape, *(1,) * (np.ndim(whole) - mask.ndim)))


def same_mask(a: Any, b: Any) -> bool:
    """Whether two masks are computed in the same way from the same slots."""
    if a.shape != b.shape or a.home is not b.home:
        return False
    return _same(a.home, a.slot, b.slot, 12)


def _same(trace: Trace, a: int, b: int, deep: int) -> bool:
    if a == b or not deep:
        return a == b
    ops, args = trace.ops, trace.args
    alike = ops[a] == ops[b] and len(args[a]) == len(args[b]) > 0
    number = not args[a] and not trace.shapes[a] and repr(ops[a]) == repr(ops[b]) and a not in trace.inputs
    return number or (alike and all([_same(trace, *pair, deep - 1) for pair in zip(args[a], args[b], strict=True)]))


# -- where parts come from --------------------------------------------------------------------------------


@by_name
def masked(x: Any, key: Any) -> Any:
    """x[key] with a mask that depends on the numbers, or with positions that such a mask gave."""
    keys = key if type(key) is tuple else (key,)
    parts = [k for k in keys if type(k) is MaskedPart]
    if parts:  # x[np.nonzero(mask)]
        at = tuple([parts[0].alike(k, "x[…]") for k in keys])
        return MaskedPart(x[at], parts[0].mask)
    at = [i for i, k in enumerate(keys) if type(k) is Traced and k.dtype.kind == "b"]
    mask, axis = cast(Any, keys[at[0]]), 0
    if len(keys) > 1:
        others = [k for i, k in enumerate(keys) if i not in at]
        if len(at) > 1 or mask.ndim > 1 or not all([isinstance(k, (int, np.integer, slice)) for k in others]):
            raise refuse("x[key] with a mask that depends on the numbers beside this key is not known; " + _WAY_OUT)
        axis = sum([isinstance(k, slice) for k in keys[: at[0]]])
        x = x[(*keys[: at[0]], slice(None), *keys[at[0] + 1 :])]
        x = np.moveaxis(x, axis, 0)
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(f"boolean index of shape {mask.shape} did not match an array of shape {x.shape}")
    now = lifted(x, trace_of(x, mask))
    trace = now.home
    return MaskedPart(now.as_it_is(), Traced(trace, slot_of(trace, mask, mask.dtype), mask.dtype), axis)


def put_masked(x: Any, key: Any, value: Any) -> None:
    """x[key] = value at positions that a mask gave."""
    keys = key if type(key) is tuple else (key,)
    part = cast(Any, next(k for k in keys if type(k) is MaskedPart))
    at = tuple([part.alike(k, "x[…] = …") for k in keys])
    if not all([isinstance(k, np.ndarray) for k in at]):
        raise refuse("x[i] = … at computed positions that a mask has chosen is not known; write np.where(mask, new, x)")
    places = np.arange(x.size).reshape(x.shape)[at]
    if len(np.unique(places)) < places.size:
        raise refuse("x[i] = … at positions that come up twice, some of which a mask has chosen, is not known")
    now = MaskedPart(x[at], part.mask)
    x[at] = np.where(_wide(part.mask, now.whole), now.alike(value, "x[…] = …"), now.whole)


def _nonzero(mask: Any) -> tuple[Any, ...]:
    truth = mask if mask.dtype.kind == "b" else mask != 0
    return tuple([MaskedPart(at, truth) for at in np.indices(mask.shape)])


# -- reductions -------------------------------------------------------------------------------------------


def _folded(function: Any, value: Any) -> Any:
    def rule(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **named: Any) -> Any:
        if out is not None or any([v is not np._NoValue and v is not False for v in named.values()]):  # type: ignore[attr-defined]  # pyright: ignore
            raise refuse(f"np.{function.__name__} of x[mask] takes an axis and nothing else here")
        a = a if dtype is None else a.astype(dtype)
        found = a.along(function, axis, value(a.dtype) if callable(value) else value)
        if (
            callable(value) and a.dtype.kind == "f" and type(found) is not MaskedPart
        ):  # NumPy has no extremum of nothing
            found = np.where(np.any(a.mask), found, np.nan)
        return found if axis is not None else found[()]

    return rule


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _largest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **named: Any) -> Any:
    total = np.sum(a if dtype is None else a.astype(dtype), axis=axis, out=out, **named)
    if type(total) is MaskedPart:
        return total / a.whole.shape[np.arange(a.ndim)[axis] + a.mask.ndim - 1]
    count = a.size if axis is None else np.sum(a.mask)
    return total / convert(count, a.dtype if a.dtype.kind == "f" else FLOAT)


def _var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, **named: Any) -> Any:
    if axis not in (None, 0) or named.get("keepdims") or out is not None:
        raise refuse("np.var and np.std of x[mask] take axis=0 and ddof here; " + _WAY_OUT)
    count = a.size if axis is None else np.sum(a.mask)
    return np.sum(abs(a - np.mean(a, axis=axis)) ** 2, axis=axis) / (count - ddof)


def _average(a: Any, axis: Any = None, weights: Any = None, **named: Any) -> Any:
    return np.mean(a, axis=axis) if weights is None else np.sum(a * weights, axis=axis) / np.sum(weights, axis=axis)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if x.ndim > 1 or keepdims or ord not in (None, 2, 1, np.inf):
        raise refuse("np.linalg.norm of x[mask] is known for vectors and the orders 1, 2 and inf; " + _WAY_OUT)
    size = abs(x)
    return np.sum(size) if ord == 1 else np.max(size) if ord == np.inf else np.linalg.norm(size.filled(0.0))


def truth(x: Any) -> Any:
    """A mask of truth values; of numbers, where they are not 0."""
    x = settled(x)
    return x if x.dtype.kind == "b" else np.not_equal(x, 0)


def _extract(condition: Any, arr: Any) -> Any:
    mask: Any = np.ravel(condition)
    return np.ravel(arr)[truth(mask) if type(mask) is Traced else mask.astype(bool)]


def _type_of(*xs: Any) -> Any:
    return np.result_type(*[x.dtype if type(x) is MaskedPart else x for x in xs])


_RULES: dict[Any, Any] = {
    np.place: lambda *args, **named: WRITERS[np.place](*args, **named),
    np.result_type: _type_of,
    np.sum: _folded(np.sum, 0),
    np.prod: _folded(np.prod, 1),
    np.any: _folded(np.any, False),
    np.all: _folded(np.all, True),
    np.max: _folded(np.max, _least),
    np.min: _folded(np.min, _largest),
    np.amax: _folded(np.max, _least),
    np.amin: _folded(np.min, _largest),
    np.mean: _mean,
    np.average: _average,
    np.var: _var,
    np.std: lambda *args, **named: np.sqrt(_var(*args, **named)),
    np.linalg.norm: _norm,
    np.size: lambda a, axis=None: a.size if axis is None else np.sum(a.mask),
    np.count_nonzero: lambda a, axis=None, **named: np.sum(a != 0, axis=axis),
    **dict.fromkeys((np.dot, np.vdot, np.inner), lambda a, b, out=None: np.sum(a * b)),
}
_EACH = {
    np.where,
    np.clip,
    np.round,
    np.around,
    np.nan_to_num,
    np.real,
    np.copy,
    np.zeros_like,
    np.ones_like,
    np.full_like,
}


def _method(name: str) -> Any:
    function = getattr(np, name)
    return lambda self, *args, **named: function(self, *args, **named)


for _name in ["sum", "prod", "any", "all", "max", "min", "mean", "var", "std", "nonzero"]:
    setattr(MaskedPart, _name, _method(_name))
_POSITIONS = "positions of a mask, kept for x[i] and x[i] = …"
answer_rows(
    (np.nonzero, _POSITIONS, "no derivative", _nonzero),
    (np.flatnonzero, _POSITIONS, "no derivative", lambda a: _nonzero(np.ravel(a))[0]),
    (np.extract, "x[mask]", "the same of dx", _extract),
)
