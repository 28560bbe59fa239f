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


WRITERS: dict[Any, Callable[..., None]] = {}
"""Functions of NumPy's that write into their first argument."""
WRITING: dict[str, Callable[..., Any]] = {}
"""What writes into arrays, by name; entered by writing/writers.py, which is loaded with the rules."""


def writing(code: Any) -> Any:
    """Enter a function under its name in WRITING."""
    WRITING[code.__name__] = code
    return code


def answers(*functions: Any, what: str, rule: str) -> Callable[[Any], Any]:
    """Enter a rule for NumPy functions: the code below writes the steps; `what` and `rule` say it in the coverage
    table."""

    def enter(code: Any) -> Any:
        for f in functions:
            (UFUNCS if isinstance(f, np.ufunc) else FUNCTIONS)[f] = code
            NOTES[f] = (what, rule)
        return code

    return enter
