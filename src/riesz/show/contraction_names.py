"""Contractions by the names people use for them."""

from __future__ import annotations

from typing import Any, NamedTuple

Labels = tuple[int, ...]


class ProductName(NamedTuple):
    """A product of two arguments: its symbol, which argument is written first, and which of the two are transposed."""

    symbol: str
    first: int
    turned: tuple[bool, bool]


def two(c: Any) -> ProductName | None:
    """The name of a contraction of two arguments, if it has one."""
    if len(c.labels) != 2 or c.extra:
        return None
    (la, lb), out, plain = c.labels, c.out, (False, False)
    if la == lb == out:
        return ProductName("∗" if out else "·", 0, plain)
    if not la and lb == out:
        return ProductName("·", 0, plain)
    if not lb and la == out:
        return ProductName("·", 1, plain)
    if la == lb and not out:
        return ProductName("⊙", 0, plain)
    if not set(la) & set(lb):
        return ProductName("⊗", 0, plain) if out == la + lb else ProductName("⊗", 1, plain) if out == lb + la else None
    found = [p for p in (_matrix(la, lb, out, 0), _matrix(lb, la, out, 1)) if p is not None]
    # A matrix before a vector, then as few transposes as possible.
    return min(found, key=lambda p: (len((la, lb)[p.first]) < len((la, lb)[1 - p.first]), sum(p.turned)), default=None)


def _matrix(la: Labels, lb: Labels, out: Labels, first: int) -> ProductName | None:
    """A ⋆ B, with either transposed."""
    shared = tuple([x for x in la if x in lb and x not in out])
    rows, cols = tuple([x for x in la if x not in shared]), tuple([x for x in lb if x not in shared])
    if not shared or out != rows + cols or len(set(out)) < len(out):
        return None
    for inner in {shared, tuple([x for x in lb if x in shared])}:
        a = None if not rows and la != inner else False if la == rows + inner else True if la == inner + rows else None
        b = False if lb == inner + cols else True if lb == cols + inner else None
        if a is not None and b is not None and (rows or cols):
            turned = (a, b) if first == 0 else (b, a)
            return ProductName("⋆", first, turned)
    return None


def one(c: Any) -> str | None:
    """The name of a contraction of one argument, if it has one: Σ, rep or a transpose."""
    (labels,), out = c.labels, c.out
    if c.extra:
        return "rep" if labels == tuple([x for x in out if x in labels]) and len(set(out)) == len(out) else None
    if len(set(labels)) < len(labels):
        return None
    return "ᵀ" if sorted(labels) == sorted(out) else "Σ" if out == tuple([x for x in labels if x in out]) else None
