"""A language as data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dialect:
    """How a language writes what the languages write differently."""

    name: str
    calls: dict[str, str]
    helpers: dict[str, str] = field(default_factory=dict)
    matmul: str = " @ "
    times: str = " * "  # at every index
    over: str = " / "
    raised: str = " ** "
    turned: str = ".T"
    entry: str = "[{}]"
    header: str = ""
    columns: bool = False  # vectors are columns: outer and inner products are products
    dotted: bool = False  # functions of numbers take a dot at every index
