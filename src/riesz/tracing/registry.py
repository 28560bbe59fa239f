"""The rules: which code answers for which function of NumPy and SciPy, and what the coverage table says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PARTS = ("scipy.special", "scipy.linalg", "scipy.fft", "scipy.signal")
"""The parts of SciPy that there are rules for."""
UFUNCS: dict[Any, Callable[..., Any]] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
NOTES: dict[Any, tuple[str, str]] = {}
"""What each supported function becomes, and its derivative rule: the coverage table."""


def answers(*functions: Any, what: str, rule: str) -> Callable[[Any], Any]:
    """Enter a rule for NumPy functions: the code below writes the steps; the rest is for the coverage table."""

    def enter(code: Any) -> Any:
        for f in functions:
            (UFUNCS if isinstance(f, np.ufunc) else FUNCTIONS)[f] = code
            NOTES[f] = (what, rule)
        return code

    return enter
