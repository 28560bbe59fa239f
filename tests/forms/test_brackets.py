"""Brackets of closed forms: what is printed is read back as the same number, and no pair can be left out."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from matrix_notation import Reader

from riesz.forms.expression_trees import Tree, Trees
from riesz.forms.form_code import DIALECTS, CodeWriter
from riesz.forms.form_text import FormText
from riesz.show.notation import UNICODE

NAMES = [["k", "s"], ["u", "v", "w"], ["A", "B", "C"]]
N = 3


def values(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(0.3, 1.5, size=(N,) * rank) for rank, names in enumerate(NAMES) for name in names}


class Random:
    """Random trees: every kind of node under every other."""

    def __init__(self, seed: int) -> None:
        self.rng, self.trees = np.random.default_rng(seed), Trees()

    def some(self, *given):
        return given[self.rng.integers(len(given))]

    def tree(self, rank: int, depth: int) -> Tree:
        trees, symbol = self.trees, lambda: self.trees.node("symbol", (), self.some(*NAMES[rank]), rank)
        if depth == 0:
            number = rank == 0 and self.rng.random() < 0.3
            return trees.number(self.some(Fraction(2), Fraction(1, 2), Fraction(3, 5))) if number else symbol()
        one = lambda r=rank: self.tree(r, depth - 1)  # noqa: E731
        match self.some("sum", "sum", "chain", "chain", "chain", "hadamard", "quotient", "power", "call", "turned"):
            case "sum":
                parts = [one() for _ in range(self.some(2, 3))]
                if any([t.kind in ("sum", "number") for t in parts]) or len(set(parts)) < len(parts):
                    return symbol()  # these are put together before
                return trees.node("sum", parts, (1, *[self.some(1, -1) for _ in parts[1:]]), rank)
            case "chain" if rank == 0:
                return trees.chain([one(), trees.dot(one(1), one(1))], 0)
            case "chain" if rank == 1:
                return trees.chain([*[one(0) for _ in range(self.some(0, 1))], one(2), one()], 1)
            case "chain":
                outer = [one(1), trees.turned(one(1))] if self.rng.random() < 0.3 else [one(), one()]
                return trees.chain([*[one(0) for _ in range(self.some(0, 1))], *outer], 2)
            case "hadamard" if rank:
                return trees.hadamard([one(), one()], rank)
            case "quotient":
                return trees.node("quotient", (one(), one(self.some(0, rank))), rank=rank)
            case "power" if rank < 2:
                return trees.powered(one(), Fraction(self.some(2, 3)))
            case "turned" if rank == 2:
                return trees.turned(one())
            case "power" if rank == 2:
                return trees.node("inverse", (symbol(),), rank=2)
            case "turned":
                return trees.node("norm", (one(1),)) if rank == 0 else one()
            case _:
                return trees.node("call", (one(),), self.some("exp", "sin"), rank)


def printed(t: Tree) -> str:
    return FormText(UNICODE).text(t)


def computed(t: Tree, given: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(eval(CodeWriter(DIALECTS["numpy"], {}).expression(t), {"np": np, **given}))


def read(text: str, given: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(Reader(given).value(text))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size == b.size and bool(np.allclose(np.ravel(a), np.ravel(b), rtol=1e-8))


@pytest.mark.parametrize("seed", range(200))
def test_a_form_is_read_back_as_the_same_number(seed):
    t = Random(seed).tree(seed % 3, 3)
    with np.errstate(all="ignore"):
        expected, found = computed(t, values(seed)), read(printed(t), values(seed))
    assert same(found, expected), printed(t)


def pairs(text: str) -> list[tuple[int, int]]:
    """Brackets that are not those of a function or an exponent."""
    opened: list[int] = []
    found: list[tuple[int, int]] = []
    for i, c in enumerate(text):
        if c == "(":
            opened.append(i)
        elif c == ")":
            start = opened.pop()
            if not re.search(r"(\^|exp|sin)$", text[:start]):
                found.append((start, i))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_no_pair_of_brackets_can_be_left_out(seed):
    text = printed(Random(seed).tree(seed % 3, 3))
    for start, stop in pairs(text):
        inside = text[start + 1 : stop]
        bare = f"{text[:start]} {inside} {text[stop + 1 :]}"
        if re.match(r"[ᵀ⁻²³]", text[stop + 1 :]) or "/" in inside or "ᵀ" in inside:
            continue  # (X²)ᵀ, x ∘ (y / z), and (uᵀv)A, where a number is among others: for the reader
        with np.errstate(all="ignore"):
            try:
                alike = all([same(read(bare, values(k)), read(text, values(k))) for k in (1, 2)])
            except (ValueError, AttributeError, TypeError, np.linalg.LinAlgError):
                continue
        assert not alike, f"{text}: {inside}"
