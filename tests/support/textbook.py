"""The table of textbook derivatives, and how closed forms are compared with it. `python tests/support/textbook.py`
prints those that are longer than the book's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import textbook_fields
import textbook_hands
import textbook_loops
import textbook_losses
import textbook_matrices
import textbook_practice
import textbook_styles
from matrix_notation import computed, symbols

import riesz as rz

MACHINERY = re.compile(r"←|contract|reshape|∈|\brep\b|⋆|•|\blet\b|\bc\d+\b")
"""What no textbook has: raw entries, arrays without a name, steps of programs."""
LONGER = 1.25
"""A form is like the book's if it has at most this many times its symbols."""


@dataclass
class Row:
    """A function, where it is differentiated, and the book's formula."""

    kind: str
    book: str
    function: Any
    at: tuple[Any, ...]
    values: dict[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        self.form = getattr(rz.derive(self.function, *self.at), self.kind)
        self.names = self.form.written().function.names
        self.text = str(self.form)

    @property
    def arguments(self) -> list[Any]:
        """Numbers for all that the form's code takes."""
        written = self.form.written()
        return [*self.at, *[v for _, v in written.given()]]

    @property
    def ratio(self) -> float:
        """Symbols of the form for one of the book's."""
        if self.form.written().problem:
            return np.inf
        words = {*self.names, *self.values}
        return symbols(self.text, words) / symbols(self.book, words)

    @property
    def like_the_book(self) -> bool:
        return self.ratio <= LONGER and not MACHINERY.search(self.text)

    def expected(self) -> list[Any]:
        """The derivative as dense matrices, by riesz's numbers."""
        if self.kind == "gradient":
            found = rz.grad(self.function, tuple(range(len(self.at))))(*self.at)
            return [np.asarray(v, float) for v in found]
        found = getattr(rz, self.kind)(self.function)(*self.at)
        return [np.asarray(found.to_dense() if hasattr(found, "to_dense") else found, float)]

    def said(self, text: str) -> list[Any]:
        """What a formula says, by the reader of matrix notation."""
        shapes = [_two(v) for v in self.expected()]
        known = dict(
            zip([*self.names[: len(self.at)], *dict(self.form.written().given())], self.arguments, strict=True)
        )
        commuting = np.shape(self.at[0]) if np.ndim(self.at[0]) == 2 else None
        return computed(text, {**self.values, **known}, shapes, commuting)


def _two(v: Any) -> tuple[int, int]:
    return (*v.shape, 1, 1)[:2] if v.ndim < 2 else v.shape


TABLES = (textbook_matrices, textbook_losses, textbook_styles, textbook_hands, textbook_loops)
TABLES += (textbook_fields, textbook_practice)


def rows(tables: Any = TABLES) -> list[tuple[Any, ...]]:
    """Every row, with the numbers of its table."""
    found = []
    for table in tables:
        values = {k: v for k, v in vars(table).items() if isinstance(v, (float, np.ndarray)) and not k.startswith("_")}
        for kind, book, f, *at in table.ROWS:
            book = book if isinstance(book, str) else _joined(book)
            found.append((kind, book, f, tuple(at), values))
    return found


def _joined(books: tuple[str, ...]) -> str:
    """One formula for each argument; definitions at the end."""
    heads = "\n".join([b.partition("\n  where ")[0] for b in books])
    tail = [b.partition("\n  where ")[2] for b in books if "\n  where " in b]
    return heads + ("\n  where " + tail[0] if tail else "")


if __name__ == "__main__":
    table = rows()
    others = wrong = 0
    for given in table:
        try:
            row = Row(*given)
        except Exception as problem:
            print(f"FAILED {given[0]} {given[1]!r}: {type(problem).__name__}: {problem}")
            others += 1
            continue
        if not row.like_the_book:
            others += 1
            print(f"{row.ratio:.2f}  {row.kind}\n    {row.book!r}\n    {row.text!r}  {row.form.written().problem}")
        for what, text in (("book", row.book), ("form", row.text)):
            if what == "form" and row.form.written().problem:
                continue
            try:
                for one, other in zip(row.said(text), row.expected(), strict=True):
                    np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-9, atol=1e-9)
            except Exception as problem:
                wrong += 1
                print(f"WRONG {what} {row.kind} {text!r}: {type(problem).__name__} {str(problem)[:150]}")
    print(f"{len(table)} rows, {others} not like the book ({100 * (1 - others / len(table)):.1f} % are), {wrong} wrong")
