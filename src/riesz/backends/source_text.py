"""Pieces of source text that several backends write."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def inside(head: str, lines: Iterable[str]) -> list[str]:
    """A head (`def f(x):`, `for …:`) and the lines inside."""
    return [head, *[f"    {line}" for line in lines]]


def literal(k: Any) -> str:
    """A number, in parentheses if it is negative."""
    text = repr(k)
    return f"({text})" if text[0] == "-" else text


def weighted_sum(coefficients: Iterable[float], texts: Iterable[str], number: Callable[[float], str] = literal) -> str:
    """Σ k·x."""
    text = ""
    for k, x in zip(coefficients, texts, strict=True):
        one = x if abs(k) == 1.0 else f"{number(float(k))} * {x}"
        text = f"{text} {'-' if k == -1.0 else '+'} {one}" if text else f"-{one}" if k == -1.0 else one
    return text


def tupled(texts: Sequence[str]) -> str:
    """A tuple."""
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def slice_text(s: slice) -> str:
    """A slice between brackets."""
    step = f":{s.step}" if s.step not in (None, 1) else ""
    return f"{'' if s.start is None else s.start}:{'' if s.stop is None else s.stop}{step}"


def word(title: str) -> str:
    """A title as an identifier."""
    found = "".join([c for c in title if (c.isalnum() or c == "_") and c.isascii()]).lstrip("0123456789") or "op"
    return f"{found}_" if keyword.iskeyword(found) else found


def placed(text: str, labels: tuple[int, ...], out: tuple[int, ...]) -> str:
    """Axes in the order of `out`, of size 1 where a label is missing."""
    order = [labels.index(k) for k in out if k in labels]
    if order != sorted(order):
        text = f"{text}.transpose({', '.join(map(str, order))})"
    lead = next((i for i, k in enumerate(out) if k in labels), len(out))
    if not labels or all([k in labels for k in out[lead:]]):
        return text  # missing axes in front are added by NumPy itself
    return f"{text}[{', '.join([':' if k in labels else 'None' for k in out[lead:]])}]"


def new_name(names: dict[str, Any], base: str, value: Any) -> str:
    """A name for something the code refers to."""
    if names.setdefault(base, value) is value:
        return base
    name = f"{base}_{len(names)}"
    names[name] = value
    return name
