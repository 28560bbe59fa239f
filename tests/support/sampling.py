"""How much is tried: `RIESZ_TESTS=core` for `make check`, `some` (unless said otherwise) for `make test`, `all` in CI.

Large tables are sampled by `sampled`, random examples counted by `examples`. CONTRIBUTING.md and docs/notes/tests.md say more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar
from zlib import crc32

from hypothesis import settings

T = TypeVar("T")
LEVELS = ("core", "some", "all")
LEVEL = os.environ.get("RIESZ_TESTS", "some")
if LEVEL not in LEVELS:
    raise ValueError(f"RIESZ_TESTS={LEVEL!r}: expected one of {', '.join(LEVELS)}")


def sampled(cases: Iterable[T], one_in: int, name: Any = repr) -> list[T]:
    """One case in `one_in`, or in ten times as many for `make check`, chosen by its name; every case for RIESZ_TESTS=all.

    The choice does not depend on the other cases: one more changes nothing for those that are there."""
    step = {"core": 10 * one_in, "some": one_in, "all": 1}[LEVEL]
    return [case for case in cases if crc32(name(case).encode()) % step == 0]


def examples(share: float) -> Any:
    """How many random examples a test tries: a share of what the profile in conftest.py allows."""
    return settings(max_examples=max(1, round(share * settings.default.max_examples)))
