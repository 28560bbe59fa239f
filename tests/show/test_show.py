"""What people see: terms, spaces, programs with their lets, LaTeX, explanations. Golden texts."""

from __future__ import annotations

import numpy as np
import pytest

import riesz as rz
from riesz import R, relations, seg

x, y = rz.proj(0), rz.proj(1)
R3 = R ** seg(3)
MATRIX = np.arange(6.0).reshape(2, 3)
LAYER = rz.tanh ** seg(3) @ (rz.matvec @ rz.fork(rz.proj("W"), rz.proj("v")) + rz.proj("b"))
PARAMETERS = rz.direct_sum(W=R ** (seg(3) * seg(4)), b=R3, v=R ** seg(4))


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (seg(3) * seg(4), "3×4"),
        (seg(2) + seg(3) * seg(4), "2+3×4"),
        ((seg(2) + seg(3)) * seg(4), "(2+3)×4"),
        (R, "ℝ"),
        (rz.Zero, "0"),
        (R * R3, "ℝ ⊕ ℝ^3"),
        (rz.direct_sum(R * R, R), "(ℝ ⊕ ℝ) ⊕ ℝ"),
        ((R * R) ** (seg(2) * seg(3)), "(ℝ ⊕ ℝ)^(2×3)"),
        (R3 @ (R * R), "ℝ^3 ⊗ (ℝ ⊕ ℝ)"),
        (PARAMETERS, "{W: ℝ^(3×4), b: ℝ^3, v: ℝ^4}"),
        (R3.weighted(2.0), "(ℝ^3)_w"),
        (rz.ln @ rz.sin, "ln ∘ sin"),
        (rz.ln @ x + x * y - rz.sin @ y, "ln ∘ π₀ + π₀ · π₁ − sin ∘ π₁"),
        ((rz.ln @ x + x * y - rz.sin @ y).at(R * R), "ln ∘ π₀ + π₀ · π₁ − sin ∘ π₁"),
        (LAYER, "tanh^3 ∘ ((⋆) ∘ ⟨π_W, π_v⟩ + π_b)"),
        (LAYER.at(PARAMETERS), "tanh^3 ∘ (π_W ⋆ π_v + π_b)"),
        (x - (y - x), "π₀ − (π₁ − π₀)"),
        (-2.0 * (x + y), "−2 · (π₀ + π₁)"),
        (x / (x * y), "π₀ / (π₀ · π₁)"),
        ((x + y) ** 2, "(π₀ + π₁)²"),
        (rz.power(-1) @ rz.sin, "(_)⁻¹ ∘ sin"),
        (rz.par(rz.sin, rz.cos @ rz.exp), "sin × cos ∘ exp"),
        (rz.join(rz.id, rz.zero), "[id, 0]"),
        (rz.block_diag([rz.id, rz.id]), "Δ(id, id)"),
        (rz.contract_left(MATRIX), "(⟦2×3⟧ ⊛)"),
        (rz.contract_left(MATRIX).at(R3).H, "(⟦3×2⟧ ⋆)"),
        (rz.left(rz.inner, np.array([1.0, -2.5])), "([1, −2.5] ⊙)"),
        (rz.const(np.zeros(9)), "K(⟦9⟧)"),
        (rz.scan(R3).H, "scan₃*"),
        (rz.red(relations.full(seg(3), seg(2))), "red_{3×2}"),
        (rz.rep(seg(3)), "rep₃"),
        (rz.total(R3), "Σ₃"),
        (rz.outer(np.ones(2), np.ones(7)) * 2.5, "2.5 · ([1, 1] ⊗ ⟦7⟧)"),
    ],
)
def test_text(thing, text):
    assert str(thing) == text


def test_derivation_keeps_the_let_around_value_and_derivative():
    assert str(rz.derive(rz.ln @ rz.sin)) == (
        "f = ln ∘ sin\n  : ℝ → ℝ\n"
        "f^[1](x) =\n  let y = sin x\n  in  (ln y,\n       (y⁻¹ ·) • (cos x ·))\n"
        "f^[1r](x) =\n  let y = sin x\n  in  (ln y,\n       (cos x ·) • (y⁻¹ ·))"
    )


def test_derivative_of_the_layer_reads_as_in_the_paper():
    D = rz.derive(LAYER, PARAMETERS)
    assert "Δ((1 − y²) ·) • ((⋆ v) • π_W + (W ⋆) • π_v + π_b)" in str(D)
    assert "⟨(⊗ v) • d, d, (Wᵀ ⋆) • d⟩" in str(D)


def test_signs_come_out_in_front_and_equal_summands_meet():
    loss = rz.inner @ rz.dup @ (x - y)
    assert "⟨d, −d⟩" in str(rz.derive(loss, R3, R3).adjoint)
    assert str(rz.derive(loss, R3, R3).derivative) == "(2 ·) • ((x₀ − x₁) ⊙) • (π₀ − π₁)"


def test_linear_map_shows_numbers_and_large_arrays_by_space():
    f = rz.right(rz.scalar_mul, np.ones(9)) @ rz.sin @ rz.left(rz.inner, np.full(7, 2.0))
    _, L = rz.linearize(f, np.full(7, 0.5))
    assert str(L) == "(· b) • (0.7539 ·) • (a ⊙)\n  where a ∈ ℝ^7\n        b ∈ ℝ^9"


@pytest.mark.parametrize("depth", [100, 20_000])
def test_long_things_are_clipped(depth):
    f = rz.sin
    for _ in range(depth):
        f = rz.sin @ f
    assert (len(str(f)) < 1500 and "…" in str(f)) or depth == 100
    assert len(str(rz.derive(f))) < 12_000
    assert len(f.latex()) < 10_000


def test_shared_terms_do_not_print_exponentially():
    f = rz.id(R)
    for _ in range(200):
        f = f * f + f
    assert len(str(f)) < 1500


def test_latex_is_balanced_and_has_no_unicode():
    things = [
        rz.derive(LAYER, PARAMETERS),
        LAYER,
        PARAMETERS,
        rz.linearize(rz.exp @ rz.sin, 1.0)[1],
        rz.scan(R3).H,
        rz.derive(rz.exp).adjoint,
    ]
    for thing in things:
        text = thing.latex()
        assert text.isascii(), text
        assert text.count("{") == text.count("}") and text.count("\\left") == text.count("\\right")
        assert text.count("\\begin{aligned}") == text.count("\\end{aligned}")
        assert thing._repr_latex_().startswith("$")


def test_explain_names_every_rule_it_uses():
    e = rz.explain(rz.ln @ x + x * y - rz.sin @ y + 1.0, R * R)
    reasons = " ".join([reason for _, reason in e.rules])
    for rule in (
        "chain rule (1)",
        "constant function, rule (2)",
        "rule (3)",
        "bilinear function, rule (4)",
        "primitive function",
    ):
        assert rule in reasons
    assert ("sin'(v) = (cos v ·)", "primitive function") in e.rules
    assert ("(f + g)* = f* + g*", "sum; a value used twice gets both cotangents") in e.adjoints
    assert "parallel composition, rule (5)" in str(rz.explain(LAYER, PARAMETERS))
    assert str(e.derivation) in str(e)


def test_explain_takes_a_derivation_too():
    D = rz.derive(lambda x: np.sum(np.sin(x) ** 2), np.ones(3))
    assert str(rz.explain(D)) == str(rz.explain(D.function))


def test_explain_of_a_linear_function_is_itself():
    assert rz.explain(rz.dup, R).rules == [("dup'(v) = dup", "linear function, rule (3): its own derivative")]


def test_a_map_into_the_space_without_components_is_0():
    L = rz.zero(rz.R, rz.Zero).as_map().simplify()
    assert str(L) == L.latex() == "0"
