"""A derivation as a film: after each rule the whole derivative stands there, and the last state is the derivative."""

from itertools import pairwise
from xml.etree import ElementTree

import katex
import numpy as np
import pytest

import riesz as rz
from riesz.show.derivation_steps import NODES, STEPS, unfolded
from riesz.show.latex_alphabet import LATEX
from riesz.show.mathml_alphabet import MathML, typeset
from riesz.show.notation import UNICODE

R = rz.R
LAST = {
    "x -> x ** 2": ([R], "2 · (x ·) • id"),
    "x, y -> x * y": ([R, R], "(y ·) • π₀ + (x ·) • π₁"),
    "X -> X @ X": ([R ** (2, 2)], "(⋆ X) • id + (X ⋆) • id"),
    "x -> outer(x, x)": ([R**2], "(⊗ x) • id + (x ⊗) • id"),
    "x, A -> x @ A": ([R**2, R ** (2, 3)], "(Aᵀ ⋆) • π₀ + (⋆ x) • (_)ᵀ • π₁"),
    "x, k -> k * x": ([R**2, R], "(k ·) • π₀ + (· x) • π₁"),
    "x, y -> dot(x, y)": ([R**2, R**2], "(⊙ y) • π₀ + (x ⊙) • π₁"),
    "x -> sin(exp(x))": ([R], "(cos (exp x) ·) • (exp x ·)"),
    "x, W -> tanh(W @ x)": ([R**3, R ** (2, 3)], "Δ((1 − (tanh (W ⋆ x))²) ·) • ((W ⋆) • π₀ + (⋆ x) • π₁)"),
    "x -> x[1:] * x[:-1]": ([R**4], "Δ((red_{0:3} x) ·) • red_{1:4} + Δ((red_{1:4} x) ·) • red_{0:3}"),
    "x -> 2 * x": ([R**2], "2 · id"),
    "x, y -> x / y": ([R, R], "((y⁻¹ ·) • π₀ + (((−x / y) / y) ·) • π₁) • ⟨π₀, π₁⟩"),
}


@pytest.mark.parametrize("text", LAST)
def test_the_last_state_is_the_derivative(text):
    spaces, last = LAST[text]
    D = rz.derive(text, *spaces)
    found = unfolded(D, UNICODE)
    assert found[-1].state == last
    assert "′" not in last
    assert [step.part for step in found] == list(range(len(found)))
    for step in unfolded(D, LATEX):
        katex.parse(step.state), katex.parse(step.equation)
    for step in unfolded(D, MathML(True)):
        tree = ElementTree.fromstring(typeset(step.state))
        assert str(step.part) in {e.get("data-id") for e in tree.iter()}


def test_each_rule_changes_one_part():
    found = unfolded(rz.derive("x, y -> sin(x) * y + exp(y)", R, R), UNICODE)
    for before, after in pairwise(found):
        left, right = after.equation.split(" = ", 1)
        assert left in before.state and right in after.state


def test_functions_with_derivatives_of_their_own_stay_as_they_are():
    assert unfolded(rz.derive("X -> log(det(X))", R ** (2, 2)), UNICODE)[-1].state == "((det X)⁻¹ ·) • det′(X)"


def test_large_terms_are_left_out_and_long_ones_end():
    deep = rz.id
    for _ in range(2 * NODES):
        deep = rz.sin @ deep
    assert unfolded(rz.derive(deep, R), UNICODE) == []
    several = rz.derive(lambda x: np.stack([np.sin(x[i]) for i in range(40)]), R**40)
    assert len(unfolded(several, UNICODE)) <= STEPS
