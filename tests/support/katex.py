"""LaTeX read by KaTeX itself, in its strict mode."""

from __future__ import annotations

import pykatex

_read: set[str] = set()


def problem(latex: str) -> str | None:
    """Why KaTeX does not take a formula; None if it does."""
    if latex in _read:
        return None
    try:
        pykatex.renderToString(latex, displayMode=True, strict="error", throwOnError=True, output="mathml")
    except (
        pykatex.ParseError,
        UnicodeError,
        ValueError,
    ) as why:  # what KaTeX does not know may come back as broken UTF-8
        return f"{why} in {latex}"
    _read.add(latex)
    return None


def parse(latex: str) -> None:
    """KaTeX takes a formula."""
    assert problem(latex) is None, problem(latex)
