"""What a text takes at given shapes: counted step by step while it is traced, before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ExpressionError
from ..programs.cost import cost, result_bytes
from ..tracing.traced import TRACED, Trace


class Limit(NamedTuple):
    """What a text may ask for, one evaluation with all intermediate results: operations on numbers, and bytes of arrays
    besides the arguments."""

    operations: float = 1e9
    bytes: float = 2.0**28


LIMIT = Limit()
"""About a second, and 256 MB: what a page that takes texts from strangers can live with."""

MOST_AXES = 64
"""As many as an array of NumPy has at most."""


class TextMeter:
    """Counts the steps that a text writes into traces."""

    def __init__(self, limit: Limit, values: Sequence[Any]) -> None:
        self.limit = limit
        self.operations = self.bytes = 0
        self._seen: dict[Trace, int] = {}  # how many steps of a trace were counted
        for x in values:
            self._new(x)

    def _new(self, x: Any) -> list[tuple[Trace, int]]:
        """The traces a value is in, and from where on their steps are new."""
        found: list[tuple[Trace, int]] = []
        for part in x if isinstance(x, (list, tuple)) else (x,):
            home = getattr(part, "home", None) if type(part) in TRACED else None
            if isinstance(home, Trace) and self._seen.get(home) != len(home.ops):
                found.append((home, self._seen.get(home, len(home.ops))))
                self._seen[home] = len(home.ops)
        return found

    def excess(self, value: Any) -> str:
        """What is too much about the step that gave this value; nothing if it may stand."""
        if len(np.shape(value) if type(value) in TRACED else ()) > MOST_AXES:
            return f"this array has more than {MOST_AXES} axes"
        for home, first in self._new(value):
            self.operations += cost(home, first).flops
            self.bytes += result_bytes(home, first)
        for what, spent, most in zip(("operations", "bytes"), (self.operations, self.bytes), self.limit, strict=True):
            if spent > most:
                taken = f"up to here the text takes {float(min(spent, 10**300)):.2g} {what}; the limit is {most:.2g}."
                return f"{taken} If you trust it: rz.function(text, limit=None), or limit=(operations, bytes)"
        return ""


def as_limit(limit: Any) -> Limit | None:
    """A limit as people give it: None, one number for operations and bytes alike, or a pair."""
    if limit is None:
        return None
    pair = limit if isinstance(limit, tuple) else (limit, limit)
    if len(pair) != 2 or not all([isinstance(n, (int, float)) and not isinstance(n, bool) and n >= 0 for n in pair]):
        kinds = "None (no limit), a number, or (operations, bytes) such as (1e9, 2**28)"
        raise ExpressionError(f"limit=… takes {kinds}; got {limit!r}")
    return Limit(*pair)
