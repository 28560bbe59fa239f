"""The file: a zip archive without compression, with riesz.json and one .npy file for each array.

Nothing is compressed, so no array takes more memory than the file has bytes. Arrays are mapped into memory where they
stand.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import io
import json
import math
import mmap
import os
import re
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..errors import FileError

NAME, VERSION = "riesz.json", 1
MOST_TEXT = 1 << 28
"""bytes: a longer description is not read."""
MOST_ARRAYS = 1 << 16
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][fiubc]\d+)', 'fortran_order': False, 'shape': \(([\d, ]{0,600})\), \} *\n",
    re.DOTALL,
)
"""The head of an array, as NumPy writes it."""


def write(path: Any, content: dict[str, Any], arrays: Sequence[Any]) -> None:
    """Write a file, in the place of one that is there once all is written."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    text = json.dumps({"format": "riesz", "version": VERSION, **content}, separators=(",", ":"), allow_nan=False)
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            _put(archive, NAME, text.encode())
            for i, array in enumerate(arrays):
                out = io.BytesIO()
                npy.write_array_header_1_0(out, npy.header_data_from_array_1_0(array))
                _put(archive, f"a{i}.npy", out.getvalue(), array)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def _put(archive: zipfile.ZipFile, name: str, head: bytes, array: Any = None) -> None:
    """One member; the numbers of an array begin at a multiple of 64."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    assert archive.fp is not None
    with archive.open(info, "w", force_zip64=True) as out:
        out.write(head)
        if array is not None and array.size:
            out.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


class FileReader:
    """A file that is read: its description, and its arrays mapped into memory."""

    def __init__(self, path: Any) -> None:
        self.path = str(path)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 22:
                raise FileError(f"{self.path} is no file of riesz: it has {size} bytes")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            with zipfile.ZipFile(file) as archive:
                self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) > MOST_ARRAYS + 1 or NAME not in self._members:
            raise FileError(f"{self.path} is no file of riesz: it has no {NAME}, or more than {MOST_ARRAYS:,} arrays")
        start, end = self._place(NAME)
        if end - start > MOST_TEXT:
            raise FileError(f"{self.path}: {NAME} has {end - start:,} bytes; at most {MOST_TEXT:,} are read")
        self.content: Any = json.loads(self._bytes[start:end])
        if not isinstance(self.content, dict) or self.content.get("format") != "riesz":
            raise FileError(f"{self.path} is no file of riesz")
        if self.content.get("version") != VERSION:
            found = self.content.get("version")
            raise FileError(f"{self.path} is of version {found!r}; this riesz reads version {VERSION}")

    def _place(self, name: str) -> tuple[int, int]:
        """Where the bytes of a member are."""
        info = self._members[name]
        at, whole = info.header_offset, len(self._bytes)
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or not 0 <= at <= whole - 30:
            raise FileError(f"{self.path}: {name} is compressed, encrypted or out of place")
        if self._bytes[at : at + 4] != b"PK\x03\x04":
            raise FileError(f"{self.path}: {name} is out of place")
        names, extra = struct.unpack("<HH", self._bytes[at + 26 : at + 30])
        start = at + 30 + names + extra
        if info.file_size < 0 or start + info.file_size > whole:
            raise FileError(f"{self.path}: {name} ends behind the end of the file")
        return start, start + info.file_size

    def array(self, i: int) -> Any:
        """An array of numbers, read-only."""
        name = f"a{i}.npy"
        if name not in self._members:
            raise FileError(f"{self.path}: there is no {name}")
        start, end = self._place(name)
        head = HEADER.match(self._bytes[start : min(end, start + 5_000)])
        if head is None or len(head[1]) > 3:
            raise FileError(f"{self.path}: {name} does not hold numbers in row-major order, in NumPy's format 1.0")
        dtype, shape = np.dtype(head[1].decode()), tuple([int(n) for n in head[2].split(b",") if n.strip()])
        count, begin = math.prod(shape), start + head.end()
        if len(shape) > 32 or begin + count * dtype.itemsize != end:
            raise FileError(f"{self.path}: {name} has shape {shape} of {dtype}, but {end - begin} bytes")
        return np.frombuffer(self._bytes, dtype, count, begin).reshape(shape) if count else np.zeros(shape, dtype)
