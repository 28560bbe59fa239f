"""Two notations and one switch; long lines are broken in every alphabet."""

from __future__ import annotations

import katex
import mathml
import numpy as np
import pytest

import riesz as rz
from riesz.show.latex_alphabet import LATEX
from riesz.show.notation import UNICODE

A, b = np.arange(15.0).reshape(5, 3), np.ones(5)
x = np.array([0.1, 0.2, 0.3])


def loss(x):
    return np.sum((A @ x - b) ** 2)


def test_the_switch_is_for_the_process_and_for_a_block():
    D, L = rz.derive(loss, x), rz.jacobian(lambda x: A @ np.sin(x))(x)
    paper, combinators = str(D), str(L)
    with rz.notation("matrix"):
        assert str(D) == str(D.gradient) == "2Aᵀ(Ax − b)"
        assert D.latex() == D.gradient.latex() and "<msup>" in D.mathml()
        assert D._repr_latex_() == f"$${D.gradient.latex()}$$"
        assert str(L) == str(L.simplify()) == "A · diag(a)\n  where a = cos x"
        with rz.notation("paper"):
            assert str(D) == paper and str(L) == combinators
            assert "⋆" in str(D.gradient) and "⋆" in str(D.hessian)
        assert str(D) == "2Aᵀ(Ax − b)"
    assert str(D) == paper and str(L) == combinators
    try:
        rz.notation("matrix")
        assert str(D) == "2Aᵀ(Ax − b)"
    finally:
        rz.notation()
    assert str(D) == paper


def test_one_thing_in_a_notation():
    D = rz.derive(loss, x)
    assert str(D.show()) == str(D.show("matrix")) == str(D.show("paper").show("matrix")) == str(D.gradient)
    assert str(D.show("paper")) == str(D) and D.show("paper").latex() == D.latex()
    assert str(D.gradient.show("matrix")) == str(D.gradient)
    assert str(D.jacobian.show("paper")) == str(D.derivative)
    assert str(rz.derive(lambda x: A @ x, x).show("matrix")) == "A"
    for wrong in ("roman", ""):
        with pytest.raises(rz.SpaceError, match="'matrix' and 'paper'"):
            D.show(wrong)
        with pytest.raises(rz.SpaceError, match="'matrix' and 'paper'"):
            rz.notation(wrong)


def test_a_hessian_in_the_papers_notation_is_the_hessian():
    D = rz.derive(lambda x: np.sum(np.sin(x)), x)
    assert str(D.hessian.show("paper")) == "Δ(rep 1 ·) • Δ((−sin x) ·)"


def long(x):
    y = A @ x
    return np.sum(np.sin(y)) * np.sum(np.cos(x)) + np.sum(np.exp(x) * x**2) + np.sum(np.log(1 + x**2)) + x @ x


@pytest.mark.parametrize("kind", ["gradient", "hessian", "derivative", "adjoint"])
@pytest.mark.parametrize("width", [20, 40, 60])
def test_long_lines_are_broken(kind, width):
    thing = getattr(rz.derive(long, x), kind)
    whole, seen = str(thing), mathml.symbols(thing.mathml()).replace("\u2003", "")
    with rz.notation(width=width):
        text, formula = str(thing), thing.latex()
        katex.parse(formula)
        rows = mathml.symbols(thing.mathml(ids=True))
    assert text.split() == whole.split() and rows == seen
    assert max(map(len, text.splitlines())) < max(map(len, whole.splitlines()))
    assert "aligned" in formula


def test_brackets_that_a_line_break_parts_do_not_grow():
    with rz.notation(width=12):
        text = LATEX.fold(r"2 \left(a + b + c + \left(d + e\right) + f + g\right) h")
        assert r"\bigl(a" in text and r"g\bigr) h" in text and r"\left(d + e\right)" in text
        katex.parse(text)
        assert UNICODE.fold("a + b + c − d, e + f") == "a + b + c\n  − d, e + f"
    assert LATEX.fold("a" * 5) == "a" * 5
