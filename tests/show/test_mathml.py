"""MathML: well-formed, the same symbols as in Unicode, parts with numbers. Every test that writes LaTeX reads MathML
too (conftest.py)."""

from __future__ import annotations

import re
import unicodedata

import mathml
import numpy as np
import pytest
from test_show import LAYER, PARAMETERS, R3

import riesz as rz
from riesz import R, seg
from riesz.runtime.interning import postorder

A, b, lam = np.arange(15.0).reshape(5, 3) / 7, np.ones(5), 0.1
x, y = rz.proj(0), rz.proj(1)
FORMS = {
    "least squares": lambda x: np.sum((A @ x - b) ** 2) + lam * np.sum(x**2),
    "norm": lambda x: np.linalg.norm(A @ x - b),
    "logistic": lambda x: np.sum(np.logaddexp(0.0, A @ x)),
    "quotient": lambda x: (x @ A.T @ A @ x) / (x @ x),
    "absolute": lambda x: np.sum(np.log(np.abs(x))),
    "root": lambda x: np.sum(np.sqrt(x)),
    "power": lambda x: np.sum(np.abs(x) ** 2.5),
}


def plain(text: str) -> str:
    """Letters, digits and signs alone: superscripts and subscripts are read on the line."""
    text = unicodedata.normalize("NFKC", text.replace("ᵀ", "⊤").replace("Σ", "∑").replace("½", "12"))
    return re.sub(r"[\s\u2061\u2062\u2009(){}^_/]", "", text).replace("-", "−")


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("kind", ["gradient", "hessian"])
def test_closed_forms_have_the_symbols_they_have_in_unicode(name, kind):
    form = getattr(rz.derive(FORMS[name], R3), kind)
    seen = plain(mathml.symbols(form.mathml()))
    assert seen == plain(str(form)).replace("sqrt", "")
    assert mathml.symbols(form.mathml(ids=True)) == mathml.symbols(form.mathml())


@pytest.mark.parametrize(
    "thing",
    [
        R**7,
        (R * R) ** (seg(2) * seg(3)),
        R3 @ (R * R),
        PARAMETERS,
        LAYER.at(PARAMETERS),
        -2.0 * (x + y),
        x / (x * y),
        rz.scan(R3).H,
        rz.rep(seg(3)),
        rz.power(-1) @ rz.sin,
        rz.red(rz.relations.full(seg(3), seg(2))),
        rz.derive(rz.ln @ x + x * y - rz.sin @ y, R * R).derivative,
        rz.derive(LAYER, PARAMETERS).adjoint,
        rz.jacobian(lambda x: A @ np.sin(x))(np.ones(3)).simplify(),
        rz.hessian(FORMS["logistic"])(np.ones(3)).simplify(),
    ],
    ids=str,
)
def test_terms_maps_and_spaces_have_the_symbols_they_have_in_unicode(thing):
    assert plain(mathml.symbols(thing.mathml())) == plain(str(thing)).replace("\n", "")


def test_structure_is_there():
    form = rz.derive(FORMS["least squares"], R3).gradient
    assert str(form) == "2(lam x + Aᵀ(Ax − b))"
    text = form.mathml()
    assert (
        "<msup><mi>A</mi><mo>⊤</mo></msup>" in text
        and '<mi>lam</mi><mo>\u2062</mo><mspace width="0.17em"/><mi>x</mi>' in text
    )
    inverse = rz.derive(lambda X: np.linalg.slogdet(X)[1], R ** (seg(3) * seg(3))).gradient.mathml()
    assert "<msup><mi>X</mi><mrow><mo>−</mo><mo>⊤</mo></mrow></msup>" in inverse


def test_numbers_of_parts_are_those_of_the_term():
    f = (rz.ln @ x + x * y).at(R * R)
    found = [int(e.attrib["data-id"]) for e in mathml.parse(f.mathml(ids=True)).iter() if "data-id" in e.attrib]
    nodes = list(postorder(f))
    assert {str(nodes[k]) for k in found} >= {"ln", "π₀", "π₁", "π₀ · π₁", str(f)}
    assert "data-id" not in f.mathml()


def test_numbers_of_parts_are_the_slots_of_a_program():
    D = rz.derive(np.tanh, R)
    found = {int(e.attrib["data-id"]) for e in mathml.parse(D.value.mathml(ids=True)).iter() if "data-id" in e.attrib}
    assert found == set(range(len(D.value.program.ops)))


@pytest.mark.parametrize("name", ["a<b", "&amp;", "x\ue000y", "\udc80", "'", "", "](", "α₁", "f'*", "</math>", "\x00"])
def test_names_from_outside_stay_names(name):
    V = rz.direct_sum(**{name: R, "other": R3})
    for thing in (V, rz.proj(name), rz.proj(name).at(V), rz.derive(rz.sin @ rz.proj(name), V)):
        for ids in (False, True):
            seen = mathml.symbols(thing.mathml(ids))
            assert thing.latex() and (not name.isalnum() or name[0] in seen)


def test_unbalanced_brackets_are_signs():
    from riesz.show.mathml_alphabet import typeset

    assert mathml.symbols(typeset("(a, [b) + c")) == "(a,[b)+c"
    assert mathml.symbols(typeset(")(")) == ")("
    mathml.parse(typeset("(" * 50_000 + ")" * 50_000).replace("<mrow>", "").replace("</mrow>", ""))


def test_long_things_are_clipped_and_deep_ones_do_not_overflow():
    f = rz.sin
    for _ in range(20_000):
        f = rz.sin @ f
    assert len(f.mathml()) < 100_000
    assert len(rz.derive(f).mathml(ids=True)) < 200_000
