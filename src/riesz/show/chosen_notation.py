"""Which notation things are shown in: `rz.notation`."""

from __future__ import annotations

from typing import Any

from ..errors import SpaceError

KINDS = ("matrix", "paper")
WIDTH = 110


class Choice:
    """What was chosen for this process: a notation, or None where each thing has its own; characters in a line."""

    kind: str | None = None
    width: int = WIDTH


CHOICE = Choice()


class notation:
    """Chooses how derivations, closed forms and maps are shown in this process, in notebooks too, until it is called
    again; in a `with`, until its end. "matrix" is what a textbook writes, "paper" the paper's combinators, None what
    each thing has by itself. Lines longer than `width` are broken. `x.show("matrix")` is for one thing.

    >>> import numpy as np, riesz as rz
    >>> D = rz.derive(lambda x: np.sum(x**2), rz.R**3)
    >>> with rz.notation("matrix"):
    ...     print(D)
    2x
    >>> with rz.notation("paper"):
    ...     print(D.gradient)
    x ∗ (2 · rep 1)
    """

    def __init__(self, kind: str | None = None, width: int = WIDTH) -> None:
        if kind is not None:
            known(kind)
        self.kind, self.width = kind, width
        self._before = CHOICE.kind, CHOICE.width
        CHOICE.kind, CHOICE.width = kind, width

    def __enter__(self) -> notation:
        return self

    def __exit__(self, *_: Any) -> None:
        CHOICE.kind, CHOICE.width = self._before

    def __repr__(self) -> str:
        return f"rz.notation({self.kind!r}, width={self.width})"


def known(kind: str) -> str:
    """A notation that there is."""
    if kind not in KINDS:
        raise SpaceError(f"show({kind!r}): the notations are 'matrix' and 'paper'")
    return kind
