"""np.array, np.r_ and their kin on traced numbers."""

from __future__ import annotations

from itertools import islice
from typing import Any, cast

import numpy as np

from ...tracing.sharing import moved
from ...tracing.trace import refuse
from ...tracing.traced import (
    TRACED,
    WRITTEN,
    convert,
    holds_traced,
    is_complex,
    tidy,
    typed,
    witness,
)
from ...tracing.writing.written import made
from .version_kinds import Looking, Making, Version


def array_of(a: Any, dtype: Any = None, order: Any = None, *, ndmin: int = 0, **named: Any) -> Any:
    x = tidy(a)
    x = x if hasattr(x, "ndim") else np.asarray(x)
    x = x if dtype is None else convert(x, np.dtype(dtype))
    if type(x) in TRACED and (order == "F" or (order == "C" and moved(x))):
        x = x.copy(order)
    return np.reshape(x, (*(1,) * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else typed(x, None)


AS_ARRAY = Looking(np.asarray, array_of)


def array_copied(a: Any, dtype: Any = None, *, copy: Any = True, **named: Any) -> Any:
    """np.array: a copy, unless copy=False, None or "if needed" and there is nothing to convert."""
    always = getattr(copy, "value", copy) == 1  # SciPy gives members of an enumeration
    if type(a) in WRITTEN and not always and a.ndim:
        return AS_ARRAY(a, dtype, named.get("order"))
    x = array_of(a, dtype, **named)
    return x.copy(named.get("order", "K")) if always and hasattr(x, "copy") else x


def enumerated(a: Any) -> Any:
    """np.ndenumerate: pairs of an index and the number there."""
    x = tidy(a)
    return iter([(i, x[i]) for i in np.ndindex(x.shape)])


def no_iterator(*args: Any, **named: Any) -> Any:
    memory = "np.nditer goes through the memory of an array, which a traced one does not have"
    raise refuse(f"{memory}; write for v in x.ravel(), or np.ndenumerate(x)")


class Iterating(Making):
    """np.fromiter: what comes out of the iterator may be traced."""

    __slots__ = ()

    def __call__(self, iter: Any, dtype: Any, count: int = -1, **named: Any) -> Any:
        items = list(iter) if count < 0 else list(islice(iter, count))
        if not holds_traced(items):
            return super().__call__(items, dtype, count, **named)
        if len(items) < count:
            raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
        return made(array_of(items, dtype))


class Joining(Version):
    """np.r_ and np.c_ on traced arrays, by NumPy's rules; on anything else the originals."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        items = list(cast("tuple[Any, ...]", key)) if isinstance(key, tuple) else [key]
        if not any([holds_traced([k.start, k.stop, k.step] if isinstance(k, slice) else k) for k in items]):
            return made(self.original[key], items)
        axis, ndmin, turned = self.original.axis, self.original.ndmin, self.original.trans1d
        if isinstance(items[0], str):
            axis, ndmin, turned = _directive(items.pop(0), axis, ndmin, turned)
        parts = [_joined(k, ndmin, turned) for k in items]
        dtype = np.result_type(*[witness(p) for p in parts])
        return np.concatenate([array_of(p, None if is_complex(p) else dtype, ndmin=ndmin) for p in parts], axis=axis)


def _directive(text: str, axis: int, ndmin: int, turned: int) -> tuple[int, int, int]:
    """The axis to join along, the least number of axes, where the axes of an array with fewer go: "-1", "0,2,-1"."""
    if text in ("r", "c"):
        matrix = f"np.r_[{text!r}, …] gives a matrix, which riesz does not know for traced arrays"
        raise refuse(f"{matrix}; write np.concatenate or np.stack")
    numbers = [int(n) for n in text.split(",")]
    return (*numbers, *(axis, ndmin, turned)[len(numbers) :])[:3]  # pyright: ignore[reportReturnType]


def _joined(item: Any, ndmin: int, turned: int) -> Any:
    """One entry of np.r_: a range from a slice, a number, or an array with at least so many axes."""
    if isinstance(item, str):
        raise ValueError("special directives must be the first entry.")
    if isinstance(item, slice):
        start, stop, step = item.start or 0, item.stop, 1 if item.step is None else item.step
        counted = isinstance(step, (complex, np.complexfloating))
        x = np.linspace(start, stop, int(abs(step))) if counted else np.arange(start, stop, step)
        if ndmin < 2:
            return x
        return array_of(x, ndmin=ndmin) if turned == -1 else np.swapaxes(array_of(x, ndmin=ndmin), -1, turned)
    if type(item) in np.ScalarType or (type(item) in TRACED and not item.shape and item.weak is not None):
        return item
    x = tidy(item)
    y = array_of(x, ndmin=ndmin)
    if turned == -1 or x.ndim >= ndmin:
        return y
    more = ndmin - x.ndim
    at = turned if turned >= 0 else turned + more + 1
    axes = list(range(ndmin))
    return np.transpose(y, [*axes[:at], *axes[more:], *axes[at:more]])
