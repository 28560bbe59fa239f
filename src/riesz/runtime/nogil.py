"""Loops that Numba compiles, for threads: they run without the interpreter's lock."""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false
from __future__ import annotations

from typing import Any

import numba


def compiled(loop: Any) -> Any:
    """Compiled on first use for each kind of array, kept on disk if possible; runs without the interpreter's lock."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # nowhere to keep it
        return numba.njit(nogil=True)(loop)
