"""Memory for large results, used again once nobody holds the result: fresh memory costs more than most reductions do
with it.

A buffer belongs to whoever holds an array made from it, and every view, tensor or memoryview of that array holds the
buffer too; it is free when its reference count says that only this module knows it.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tuning

if TYPE_CHECKING:
    from numpy.typing import NDArray

_kept: list[tuple[NDArray[np.uint8], int]] = []
"""Buffers, each with where in it arrays begin."""
_bytes = 0
_lock = threading.Lock()
_counts = not hasattr(sys, "_is_gil_enabled") or sys._is_gil_enabled()  # pyright: ignore # reference counts are exact
if hasattr(os, "register_at_fork"):  # a lock held by another thread stays held in a child
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def _holders(buffers: list[Any], i: int) -> int:
    return sys.getrefcount(buffers[i][0])


_FREE = _holders([(np.empty(0), 0)], 0)


def sole(array: Any) -> bool:
    """Whether an array has its memory to itself: its own, or all in rows that of an array not twice as large which only
    it is a view of.

    >>> a = np.zeros(6)
    >>> sole(a), sole(a.reshape(2, 3)), sole(np.zeros(6).reshape(2, 3)), sole(np.zeros((2, 3)).T)
    (True, False, True, False)
    """
    root = array.base
    if root is None:
        return True
    if not _counts or type(root) is not np.ndarray or not root.flags.owndata or not array.flags.c_contiguous:
        return False
    if root.nbytes > 2 * (array.nbytes + tuning.CACHE_LINE_BYTES):
        return False
    latest = _kept[: -tuning.KEPT_BUFFERS_SEARCHED - 1 : -1]
    return sys.getrefcount(root) <= _SOLE + any([b is root for b, _ in latest])


def handed(array: Any, shared: bool) -> Any:
    """An array for a caller who may keep it and write to it: itself, or a copy where somebody else has it too.

    >>> a = np.zeros(6)
    >>> handed(a, False) is a, handed(a, True) is a, handed(a.reshape(2, 3), False).base is None
    (True, False, True)
    """
    return array if not shared and array.flags.writeable and sole(array) else array.copy()


def _held(array: Any) -> int:
    root = array.base
    return sys.getrefcount(root)


_SOLE = _held(np.empty(1).reshape(1, 1))


def reused(size: int) -> bool:
    """Whether an array of so many bytes takes over memory of earlier ones."""
    return tuning.REUSED_ARRAY_BYTES <= size <= tuning.KEPT_MEMORY_BYTES


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of a shape, its numbers not set.

    >>> forget()
    >>> a = empty((1 << 20,), np.dtype(float))
    >>> first = a.ctypes.data
    >>> del a
    >>> empty((1 << 20,), np.dtype(float)).ctypes.data == first
    True
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if not reused(size) or not _counts or kind.hasobject:
        return np.empty(shape, kind)
    global _bytes
    line = tuning.CACHE_LINE_BYTES
    with _lock:
        count = len(_kept)
        for i in range(count - 1, max(count - 1 - tuning.KEPT_BUFFERS_SEARCHED, -1), -1):
            if size + line <= _kept[i][0].nbytes <= 2 * (size + line) and _holders(_kept, i) == _FREE:
                buffer, start = found = _kept.pop(i)
                break
        else:
            buffer = np.empty(size + line, np.uint8)
            start = -buffer.ctypes.data % line
            found = buffer, start
            _bytes += buffer.nbytes
        _kept.append(found)
        while _bytes > tuning.KEPT_MEMORY_BYTES:
            _bytes -= _kept.pop(0)[0].nbytes
    return np.ndarray(shape, kind, buffer, start)


def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of zeros.

    >>> float(zeros((3,), float).sum())
    0.0
    """
    kind = np.dtype(dtype)
    if not reused(math.prod(shape) * kind.itemsize) or kind.hasobject:
        return np.zeros(shape, kind)
    found = empty(shape, kind)
    found.fill(0)
    return found


def forget() -> None:
    """Give kept memory back."""
    global _bytes
    with _lock:
        _kept.clear()
        _bytes = 0
