"""x[key] as relational reduction, axis by axis: an integer is a point, a slice a range, an index array a gather;
computed indices are Take."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...ops.op import Reduction, Reshape
from ...ops.opaque import Discrete, Take
from ...relations import Gather, Point, Range, Relation, freeze
from ...relations.index_sets import Seg, box_set, unit
from ..classes import INTEGER
from ..registry import by_name
from ..sharing import viewed
from ..surroundings.outside import note
from ..traced import INT, Traced, convert, holds_traced, refuse, several, slot_of, step, tidy, trace_of
from .rearranging import moveaxis, reshape


def everywhere(x: Traced, positions: Any) -> Traced:
    """x gathered from all its positions, flat."""
    at = np.asarray(positions, np.intp)
    flat = Gather(box_set(x.shape), box_set(at.shape), freeze(np.ascontiguousarray(at).ravel()))
    return step(Reduction((flat,), 0), x)


@by_name
def index(x: Traced, key: Any) -> Traced:
    """x[key] for basic and integer-array indexing, masks that are known, and integers that are computed."""
    given = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    note(given, True)
    if any([_is_truth(k) for k in given]):
        return _gathered(x, given)
    keys, apart = _expanded(given, x.shape)
    if any([type(k) is Traced for k in keys]):
        return _computed(x, keys, apart)
    if apart:
        return _gathered(x, given)
    arrays = [isinstance(k, np.ndarray) for k in keys]
    mixed = any(arrays) and any([isinstance(k, (int, np.integer)) for k in keys])
    if sum(arrays) > 1 or mixed:  # NumPy counts integers beside an index array as index arrays too
        return _by_position(x, tuple(keys))
    whole, axis = x, 0
    for k in keys:
        n = x.shape[axis] if axis < x.ndim else 0
        if k is None:
            x = step(Reshape((*x.shape[:axis], 1, *x.shape[axis:])), x)
            axis += 1
        elif isinstance(k, slice):
            start, stop, stride = k.indices(n)
            count = len(range(start, stop, stride))
            if (start, count, stride) != (0, n, 1):
                x = _reduce(x, Range(Seg(n), Seg(count), start if count else 0, stride, False), axis)
            axis += 1
        elif isinstance(k, np.ndarray):
            at = cast("np.ndarray[Any, Any]", k)
            x = _reduce(x, Gather(Seg(n), box_set(at.shape), freeze(_within(at, n, axis).ravel())), axis)
            axis += at.ndim
        else:
            if not -n <= k < n:
                raise IndexError(f"index {k} is out of bounds for axis {axis} with size {n}")
            x = _reduce(x, Point(Seg(n), unit, int(k) % n), axis)
    if any(arrays):
        return x
    if x is not whole and not x.shape and Ellipsis in given:
        x = Traced(x.home, x.slot, x.dtype, None)  # an array without axes, which looks into x
    return viewed(whole, x, lambda p: p[key])


def _is_truth(k: Any) -> bool:
    return isinstance(k, (bool, np.bool_)) or (isinstance(k, np.ndarray) and k.shape == () and k.dtype == bool)


def _within(at: Any, n: int, axis: int) -> Any:
    if at.size and not (at.min() >= -n and at.max() < n):
        wrong = at[(at < -n) | (at >= n)].ravel()[0]
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {n}")
    return np.where(at < 0, at + n, at).astype(np.intp)


def _reduce(x: Traced, relation: Relation, axis: int) -> Traced:
    return step(Reduction((relation,), axis), x)


def _expanded(keys: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[list[Any], bool]:
    """One key per axis, masks as index arrays; and whether an … that stands for no axis separates indices for NumPy."""
    found: list[Any] = []
    masks: list[tuple[int, tuple[int, ...]]] = []
    for k in keys:
        if type(k) is Traced:
            if k.dtype.kind == "b":
                raise refuse(
                    "x[mask] with a mask that depends on the numbers has a result of unknown length; write "
                    "np.where(mask, x, 0) and reduce that, or compute the mask outside (an argument that is a mask "
                    "can be static: rz.function(f, static_argnums=…))"
                )
            if k.weak == INTEGER:
                k = convert(k, INT)
            if k.dtype.kind == "f":
                raise refuse(
                    "indices are integers; this one is a traced float. Convert it with .astype(int), which has no "
                    "derivative"
                )
        elif isinstance(k, (list, tuple, range, np.ndarray)) or (
            hasattr(k, "__array__") and not isinstance(k, np.generic)
        ):
            array: Any = tidy(k) if holds_traced(k) else np.asarray(k)  # NumPy's error where its rows differ in length
            if type(array) is Traced:
                found.append(array)
                continue
            if array.dtype.kind == "b":
                masks.append((len(found), array.shape))
                found.extend(np.nonzero(array))
                continue
            if array.dtype.kind not in "iu" and array.size:
                raise IndexError(f"indices are integers; got an array of {array.dtype}")
            k = array.astype(np.intp) if array.ndim else int(array)
        elif k is not None and k is not Ellipsis and not isinstance(k, (int, np.integer, slice)):
            if not hasattr(k, "__index__"):
                raise IndexError(
                    f"only integers, slices, ..., None and integer or boolean arrays are indices; got {k!r}"
                )
            k = int(cast(Any, k).__index__())
        found.append(k)
    used = sum([k is not None and k is not Ellipsis for k in found])
    if used > len(shape):
        raise IndexError(f"too many indices: {used} for an array of shape {shape}")
    fill = [slice(None)] * (len(shape) - used)
    dots = [i for i, k in enumerate(found) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    for place, size in masks:
        hidden = len(fill) if dots and dots[0] < place else 0
        axis = sum([k is not None and k is not Ellipsis for k in found[:place]]) + hidden
        if shape[axis : axis + len(size)] != size:
            raise IndexError(
                f"a mask of shape {size} does not fit the axes {shape[axis : axis + len(size)]} it is for (axis "
                f"{axis} of {shape})"
            )
    if not dots:
        return [*found, *fill], False
    before, after = found[: dots[0]], found[dots[0] + 1 :]
    indices = [[k for k in part if k is not None and not isinstance(k, slice)] for part in (before, after)]
    several = any([not isinstance(k, (int, np.integer)) for k in (*indices[0], *indices[1])])
    apart = not fill and all(indices) and several
    return [*before, *fill, *after], apart


def _by_position(x: Traced, keys: tuple[Any, ...]) -> Traced:
    """Several index arrays at once; on neighbouring axes they are one gather from the product of those axes."""
    spots = [i for i, k in enumerate(keys) if isinstance(k, (np.ndarray, int, np.integer))]
    plain = all([isinstance(k, slice) and k == slice(None) for i, k in enumerate(keys) if i not in spots])
    if plain and spots == list(range(spots[0], spots[-1] + 1)):
        first = spots[0]
        sizes = x.shape[first : spots[-1] + 1]
        arrays = np.broadcast_arrays(*[_within(np.asarray(keys[i]), n, i) for i, n in zip(spots, sizes, strict=True)])
        flat: Any = np.zeros(arrays[0].shape, np.intp)
        if flat.size:
            flat = np.asarray(np.ravel_multi_index(tuple([np.asarray(a, np.intp) for a in arrays]), sizes), np.intp)
        merged = Gather(box_set(sizes), box_set(flat.shape), freeze(flat.ravel()))
        return step(Reduction((merged,), first), x)
    return _gathered(x, keys)


def _gathered(x: Traced, keys: tuple[Any, ...]) -> Traced:
    """As NumPy indexes the positions of x."""
    return everywhere(x, np.arange(x.size).reshape(x.shape)[keys])


def _computed(x: Traced, keys: list[Any], apart: bool) -> Traced:
    """Some indices are traced integers: fixed slices first, then one Take along the indexed axes merged into one."""
    arrays = [i for i, k in enumerate(keys) if not isinstance(k, slice) and k is not None]
    calm = tuple([k if i not in arrays else slice(None) for i, k in enumerate(keys)])
    x = index(x, calm)
    together = not apart and arrays == list(range(arrays[0], arrays[-1] + 1))
    sizes = tuple([x.shape[i] for i in arrays])
    first = arrays[0] if together else 0
    if len(arrays) > 1 or not together:
        x = moveaxis(x, tuple(arrays), tuple(range(first, first + len(arrays))))
        x = reshape(x, (*x.shape[:first], int(np.prod(sizes)), *x.shape[first + len(arrays) :]))
    at: Any = wrapped(keys[arrays[0]], sizes[0])
    for i, n in zip(arrays[1:], sizes[1:], strict=True):
        at = at * n + wrapped(keys[i], n)
    trace = trace_of(x, at)
    slots = (slot_of(trace, x, x.dtype), slot_of(trace, at, at.dtype if hasattr(at, "dtype") else INT))
    return Traced(trace, trace.step(Take(0, first), slots), x.dtype)


def wrapped(at: Any, n: int) -> Any:
    """Positions with negative ones counted from the end."""
    if type(at) is Traced:
        return several(Discrete(_wrap, (("n", n),)), INT, at)
    return _within(np.asarray(at), n, 0)


def _wrap(at: Any, n: int) -> Any:
    return np.where(np.less(at, 0), np.add(at, n), at)
