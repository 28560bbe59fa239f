"""The numbers of arrays at some moment: whether they still are the same, and a read-only copy of them."""

from __future__ import annotations

from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np

from ...relations.base import freeze
from ...runtime import tuning


class Contents:
    """The numbers in an array at the moment this was made; as a mapping of one, itself while they are the same."""

    __slots__ = ("__weakref__", "_bytes", "_copy", "_few", "_flat", "_shape", "array")

    def __init__(self, array: Any) -> None:
        self.array = array = getattr(array, "known", array)  # of one that was written to: its memory
        self._shape = array.shape
        self._few = array.nbytes <= 4096
        self._flat = _in_rows(array) if not self._few and array.nbytes <= tuning.KEPT_TWICE_BYTES else None
        self._bytes = array.tobytes() if self._few else b"" if self._flat is None else bytearray(self._flat)
        self._copy: Any = freeze(array) if self._flat is None and not self._few else None

    def get(self, name: Any = None, default: Any = None) -> Any:
        """This itself, while the numbers are the same."""
        if self._few:
            return self if self.array.tobytes() == self._bytes else default
        if self._flat is None:
            return self if equal(self.array, self._copy) else default
        return self if _same_bytes(cast(Any, self._bytes), self._flat) and self.array.shape == self._shape else default

    @property
    def same(self) -> bool:
        """Whether nobody wrote anything else into the array since."""
        return self.get() is self

    @property
    def frozen(self) -> Any:
        """The numbers as an array that nobody can write to, each time the same; asked for while they are the same."""
        if self._copy is None:
            self._copy = freeze(self.array)
        return self._copy


_same_bytes = bytearray.__eq__  # of anything with memory: one memcmp


def _in_rows(array: Any) -> Any:
    """An array as one stretch of memory, where it is one of plain numbers; its transpose may be."""
    if type(array) is not np.ndarray or array.dtype.kind not in "fiubc" or not array.size:
        return None
    return array if array.flags.c_contiguous else array.T if array.flags.f_contiguous else None


def equal(a: Any, b: Any) -> bool:
    """Whether two arrays have the same bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.nbytes > 4096 and a.dtype.kind in "fiub" and a.dtype.itemsize <= 8:
        bits = np.dtype(f"u{a.dtype.itemsize}")
        return bool((a.view(bits) == b.view(bits)).all())
    return a.tobytes() == b.tobytes()


_shared: WeakValueDictionary[Any, Contents] = WeakValueDictionary()


def contents_of(array: Any) -> Contents:
    """The numbers in an array now; all who ask get the same while nobody writes."""
    key = (id(array), array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
    known = _shared.get(key)
    if known is None or known.array is not array or not known.same:
        known = _shared[key] = Contents(array)
    return known


def owner(array: Any) -> Any:
    """The array whose memory an array looks into: the same for all its views."""
    while isinstance(base := _base(array), np.ndarray):
        array = base
    return array


_base = cast(Any, np.ndarray).base.__get__  # also where a subclass says something else
