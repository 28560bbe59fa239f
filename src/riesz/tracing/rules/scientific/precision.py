"""Which type SciPy computes in: mostly double precision, sometimes that of the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...traced import FLOAT, as_array, convert, holds_traced, tidy
from ..elementwise import floating


def double(x: Any) -> Any:
    """A number or an array in double precision, traced or not."""
    x = tidy(x)
    if not holds_traced(x):
        return np.asarray(x, float)[()]
    x = floating(x)
    return x if x.dtype == FLOAT else convert(x, FLOAT)


def as_given(found: Any, *given: Any, least: Any = np.float16) -> Any:
    """A result in the type that the arguments have together, or `least`; whole numbers become double precision."""
    kind = np.result_type(*[as_array(x).dtype for x in given if x is not None])
    kind = np.promote_types(kind, least) if kind.kind == "f" else kind
    return convert(found, kind) if kind.kind == "f" and found.dtype != kind else found
