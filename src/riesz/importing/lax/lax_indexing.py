"""Gathers, scatters and dynamic slices: NumPy's indexing on traced arrays.

A gather takes, at each of some positions, a window of the operand. Axes whose windows are whole are slices; along the
others there is an array of indices. A scatter writes to the same places.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...tracing.trace import refuse
from ...tracing.traced import lifted
from .lax_registry import beside, is_traced, lax, real
from .lax_shapes import along


class Windows(NamedTuple):
    """What a gather or a scatter says of its operand's axes."""

    shape: tuple[int, ...]  # of the operand
    sizes: tuple[int, ...]  # of a window
    starts: dict[int, Any]  # by axis: an array over the positions
    dropped: tuple[int, ...]  # axes that the windows do not have
    positions: tuple[int, ...]  # the shape of the positions
    batches: dict[int, int]  # by axis of the operand: the axis of the positions that runs along with it
    places: tuple[int, ...]  # where the axes of a window are in the result
    mask: Any  # which positions are inside; None: all

    @property
    def kept(self) -> list[int]:
        """The axes of the operand that windows have."""
        return [d for d in range(len(self.shape)) if d not in self.dropped and d not in self.batches]

    @property
    def whole(self) -> list[int]:
        """Axes along which each window is all there is."""
        return [d for d in self.kept if d not in self.starts]

    def index(self) -> dict[int, Any]:
        """Arrays of indices for the other axes, over positions and then over windows along these axes."""
        moved = [d for d in self.kept if d in self.starts]
        rank, more = len(self.positions), len(moved)
        found: dict[int, Any] = {}
        for d in range(len(self.shape)):
            if d in self.batches:
                at = np.arange(self.shape[d]).reshape([-1 if i == self.batches[d] else 1 for i in range(rank + more)])
            elif d in self.starts:
                at = np.reshape(self.starts[d], (*self.positions, *(1,) * more))
                if d in moved:
                    row = [1] * (rank + more)
                    row[rank + moved.index(d)] = self.sizes[d]
                    at = at + np.arange(self.sizes[d]).reshape(row)
            elif d in self.dropped:
                at = np.zeros((1,) * (rank + more), np.intp)
            else:
                continue
            found[d] = at
        return found

    def plain(self) -> tuple[slice, ...] | None:
        """The index as slices, where there is one position and its numbers are known."""
        if self.positions or self.batches or any(map(is_traced, self.starts.values())):
            return None
        at = {d: int(s) for d, s in self.starts.items()}
        slices = [slice(at.get(d, 0), at.get(d, 0) + n) for d, n in enumerate(self.sizes)]
        return tuple([slice(None) if s == slice(0, n) else s for s, n in zip(slices, self.shape, strict=True)])


def windows(
    shape: Sequence[int],
    sizes: Sequence[int],
    indices: Any,
    axes: Sequence[int],
    dropped: Sequence[int],
    batches: dict[int, int],
    places: Sequence[int],
    mode: Any,
) -> Windows:
    """The windows, with positions kept inside, or a mask of those that are."""
    name, mask, starts = str(mode), None, dict[int, Any]()
    for k, d in enumerate(axes):
        at, most = indices[..., k], shape[d] - sizes[d]
        if "FILL" in name:
            inside = np.logical_and(at >= 0, at <= most)
            mask = inside if mask is None else np.logical_and(mask, inside)
        if "PROMISE" not in name or not is_traced(at):
            at = np.minimum(np.maximum(at, 0), most)
        if sizes[d] < shape[d] or d in dropped:
            starts[d] = at if is_traced(at) else np.asarray(at, np.intp)
    if mask is not None and not is_traced(mask) and np.all(mask):
        mask = None
    positions = tuple(indices.shape[:-1])
    return Windows(tuple(shape), tuple(sizes), starts, tuple(dropped), positions, batches, tuple(places), mask)


def _spread(positions: Any, w: Windows, rank: int) -> Any:
    """An array over positions, aligned with a result."""
    shape, rest = [1] * rank, iter(w.positions)
    for i in range(rank):
        if i not in w.places:
            shape[i] = next(rest)
    return np.reshape(positions, tuple(shape))


@lax("indexing: `x[i]`, `x[i, j]`, slices at positions", "gather")
def _gather(reader: Any, e: Any, x: Any, indices: Any) -> Any:
    d, shape = e.params["dimension_numbers"], e.outvars[0].aval.shape
    batches = dict(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
    sizes, dropped = e.params["slice_sizes"], d.collapsed_slice_dims
    operand = e.invars[0].aval.shape
    w = windows(operand, sizes, indices, d.start_index_map, dropped, batches, d.offset_dims, e.params["mode"])
    found = gathered(x, w)
    if w.mask is None:
        return found
    fill = e.params.get("fill_value")
    if fill is None:
        dtype = np.dtype(e.outvars[0].aval.dtype)
        least = {"i": lambda: np.iinfo(dtype).min, "u": lambda: np.iinfo(dtype).max, "b": lambda: True}
        fill = np.nan if dtype.kind == "f" else least[dtype.kind]()
    return np.where(np.broadcast_to(_spread(w.mask, w, len(shape)), shape), found, fill)


def gathered(x: Any, w: Windows) -> Any:
    """The windows, with their axes where the result has them."""
    plain = w.plain()
    if plain is not None:
        found = x[plain]
        return np.reshape(found, [n for d, n in enumerate(w.sizes) if d not in w.dropped])
    index, rank = w.index(), len(w.positions)
    moved = [d for d in w.kept if d in w.starts]
    if len(index) == 1:  # one axis: positions stand in its place
        ((axis, at),) = index.items()
        found = np.take(beside(x, at), at, axis=axis)
        order = [*range(axis, axis + np.ndim(at)), *range(axis), *range(axis + np.ndim(at), found.ndim)]
    else:
        axes = [*index, *w.whole]
        x = beside(x, *index.values())
        found = (x if axes == sorted(axes) else np.transpose(x, axes))[tuple(index.values())]
        order = list(range(found.ndim))
    # the axes of `found` in `order`: positions, windows along indexed axes, whole axes
    inner = {d: order[rank + k] for k, d in enumerate([*moved, *w.whole])}
    due, rest = [0] * found.ndim, iter(order[:rank])
    for place, d in zip(w.places, w.kept, strict=True):
        due[place] = inner[d]
    for i in range(found.ndim):
        if i not in w.places:
            due[i] = next(rest)
    return found if due == list(range(found.ndim)) else np.transpose(found, due)


_INTO: dict[str, Any] = {
    **{"scatter-add": np.add, "scatter_add": np.add, "scatter_mul": np.multiply, "scatter-mul": np.multiply},
    **{"scatter_max": np.maximum, "scatter-max": np.maximum, "scatter_min": np.minimum, "scatter-min": np.minimum},
    **{"scatter_sub": np.subtract, "scatter-sub": np.subtract},
}


@lax("`y[i] = u`, `np.add.at`, `np.multiply.at`, `np.maximum.at`, `np.minimum.at`", "scatter", *_INTO)
def _scatter(reader: Any, e: Any, x: Any, indices: Any, u: Any) -> Any:
    d, shape, given = e.params["dimension_numbers"], e.invars[0].aval.shape, e.invars[2].aval.shape
    batches = dict(zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True))
    dropped, sizes = d.inserted_window_dims, [1] * len(shape)
    kept = [k for k in range(len(shape)) if k not in dropped and k not in batches]
    for place, k in zip(d.update_window_dims, kept, strict=True):
        sizes[k] = given[place]
    axes, places = d.scatter_dims_to_operand_dims, d.update_window_dims
    w = windows(shape, sizes, indices, axes, dropped, batches, places, e.params["mode"])
    if not all([sizes[k] == shape[k] for k in w.whole]):
        w = w._replace(starts=w.starts | {k: np.zeros(w.positions, np.intp) for k in w.whole if sizes[k] < shape[k]})
    into, code = _INTO.get(e.primitive.name), e.params.get("update_jaxpr")
    if into is None and code is not None:
        into = WindowUpdate(reader, code, e.params["update_consts"])
    if np.dtype(e.outvars[0].aval.dtype).kind != "c":
        return written(into, x, u, w)
    parts = np.real(u), np.imag(u)
    if into is np.multiply and not is_traced(parts[1]) and not np.any(parts[1]):
        parts = parts[0], parts[0]
    elif into not in (None, np.add, np.subtract):
        raise refuse("complex numbers at positions are set, added, subtracted, or multiplied with real ones")
    return written(into, np.real(x), parts[0], w) + 1j * written(into, np.imag(x), parts[1], w)


class WindowUpdate:
    """What `x.at[i].apply(f)` writes, in the form of a ufunc. Places are not written to twice."""

    def __init__(self, reader: Any, code: Any, consts: Any) -> None:
        self.reader, self.code, self.consts = reader, code, consts

    def __call__(self, a: Any, b: Any) -> Any:
        outer, self.reader.entry_by_entry = self.reader.entry_by_entry, True
        try:
            return self.reader.read(self.code, self.consts, [a, b])[0]
        finally:
            self.reader.entry_by_entry = outer

    def at(self, y: Any, index: Any, u: Any) -> None:
        """y[index] = f(y[index], u)"""
        y[index] = self(y[index], u)


def written(into: Any, x: Any, u: Any, w: Windows) -> Any:
    """x with u written to the windows, or added, multiplied, compared there."""
    if not (is_traced(x) or is_traced(u)) and not any(map(is_traced, (*w.starts.values(), w.mask))):
        y, home = np.array(x), None
    else:
        home = next(v.home for v in (x, u, *w.starts.values(), w.mask) if real(v) is not None)
        y = lifted(x if is_traced(x) else np.asarray(x), home)
    if not math.prod(np.shape(u)):
        return y
    plain = w.plain()
    if plain is not None and w.mask is None:
        y = y.copy()
        target = list(w.sizes)
        order = np.argsort(np.asarray(w.places, int))
        u = np.transpose(u, order) if np.ndim(u) > 1 and list(order) != list(range(np.ndim(u))) else u
        u = np.reshape(u, target)
        y[plain] = u if into is None else into(y[plain], u)
        return y
    index, rank = w.index(), len(w.positions)
    moved = [d for d in w.kept if d in w.starts]
    spots = [i for i in range(np.ndim(u)) if i not in w.places]
    places = dict(zip(w.kept, w.places, strict=True))
    due = [*spots, *[places[d] for d in moved], *[places[d] for d in w.whole]]
    u = u if due == list(range(np.ndim(u))) else np.transpose(u, due)
    axes = [*index, *w.whole]
    straight = axes == sorted(axes)
    y = y if straight else np.transpose(y, axes)
    y = _put(into, y, list(index.values()), u, w.mask, rank + len(moved))
    return y if straight else np.transpose(y, np.argsort(axes).tolist())


def _put(into: Any, y: Any, index: list[Any], u: Any, mask: Any, rank: int) -> Any:
    """y with u at some places of its first axes; those under the mask only."""
    if mask is not None and is_traced(mask):  # what is outside goes into a row behind, which is cut off
        n, rest = math.prod(y.shape[: len(index)]), y.shape[len(index) :]
        strides = [math.prod(y.shape[k + 1 : len(index)]) for k in range(len(index))]
        flat: Any = 0
        for at, stride in zip(index, strides, strict=True):
            flat = flat + at * stride
        wide = np.reshape(mask, (*np.shape(mask), *(1,) * (rank - np.ndim(mask))))
        place = np.where(wide, flat, n)
        rows = np.concatenate([np.reshape(y, (n, *rest)), np.zeros((1, *rest), y.dtype)], 0)
        return np.reshape(_put(into, rows, [place], u, None, rank)[:n], y.shape)
    y = y.copy()
    if mask is not None:
        wide = np.broadcast_to(np.reshape(mask, (*np.shape(mask), *(1,) * (rank - np.ndim(mask)))), u.shape[:rank])
        index = [np.broadcast_to(at, u.shape[:rank])[wide] for at in index]
        chosen = np.flatnonzero(wide.ravel())
        u = np.reshape(u, (-1, *u.shape[rank:]))[chosen]
        if not len(chosen):
            return y
    if len(index) == 1:
        (at,) = index
        if into is None:
            y[at] = u
        else:
            into.at(y, at, u)
    elif into is None:
        y[tuple(index)] = u
    else:
        into.at(y, tuple(index), u)
    return y


def _inside(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> list[Any]:
    return [np.minimum(np.maximum(s, 0), n - k) for s, n, k in zip(starts, shape, sizes, strict=True)]


@lax("a slice at a computed place", "dynamic_slice")
def _dynamic_slice(reader: Any, e: Any, x: Any, *starts: Any) -> Any:
    sizes, shape = e.params["slice_sizes"], e.invars[0].aval.shape
    x = beside(x, *starts)
    for axis, (s, k) in enumerate(zip(_inside(starts, shape, sizes), sizes, strict=True)):
        if k == shape[axis]:
            continue
        where = s + np.arange(k) if is_traced(s) else slice(int(s), int(s) + k)
        x = np.take(x, where, axis=axis) if is_traced(s) else x[along(np.ndim(x), axis, where)]
    return x


@lax("writing to a slice at a computed place", "dynamic_update_slice")
def _dynamic_update_slice(reader: Any, e: Any, x: Any, u: Any, *starts: Any) -> Any:
    shape, sizes = e.invars[0].aval.shape, e.invars[1].aval.shape
    at = {k: s for k, s in enumerate(_inside(starts, shape, sizes)) if sizes[k] < shape[k]}
    at = {k: s if is_traced(s) else np.asarray(s, np.intp) for k, s in at.items()}
    w = Windows(tuple(shape), tuple(sizes), at, (), (), {}, tuple(range(len(shape))), None)
    return written(None, x, u, w)
