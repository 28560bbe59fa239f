"""From the definition to the closed form: every line is true, the last one is the closed form."""

from __future__ import annotations

import warnings

import katex
import mathml
import numpy as np
import pytest
import scipy.linalg
from sampling import sampled
from textbook import rows

import riesz as rz
from riesz.forms.languages.dialects import DIALECTS
from riesz.forms.laws.form_laws import LAWS
from riesz.forms.laws.sum_laws import SUM_LAWS
from riesz.show.explain import Explanation
from riesz.show.latex_alphabet import LATEX
from riesz.show.mathml_alphabet import MATHML, typeset
from riesz.show.notation import UNICODE

TABLE = [row for row in rows() if row[0] in ("gradient", "jacobian")]
RNG = np.random.default_rng(1)


HELPERS: dict = {"np": np, "scipy": scipy}
for code in DIALECTS["numpy"].helpers.values():
    exec(code, HELPERS)


def checked(D, arguments) -> int:
    """How many steps there are; each holds at these numbers."""
    steps = Explanation(D).steps
    written = (D.gradient if D.function.codomain.dim == 1 else D.jacobian).written()
    known = HELPERS | dict(zip(written.arguments, arguments, strict=True))
    known |= {f"d{name}": RNG.normal(size=np.shape(v)) for name, v in zip(written.arguments, arguments, strict=True)}
    known |= dict(written.given())
    for step in steps:
        before, after = [np.asarray(eval(side, known), float) for side in step.sides()]
        known[step.where] = after
        np.testing.assert_allclose(before.reshape(after.shape), after, rtol=1e-8, atol=1e-8, err_msg=step.text(UNICODE))
    return len(steps)


@pytest.mark.parametrize("k", sampled(range(len(TABLE)), 6), ids=lambda k: TABLE[k][1].replace("\n", " ")[:60])
def test_every_line_is_true(k):
    _, _, f, at, *_ = TABLE[k]
    at = at if isinstance(at, tuple) else (at,)
    D = rz.derive(f, *at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            checked(D, at)
        except (NameError, rz.ExpressionError) as problem:  # eigenvectors and rows of identities have their own names
            pytest.skip(str(problem))


A, b, y = RNG.normal(size=(5, 4)), RNG.normal(size=5), RNG.normal(size=5)
x = RNG.uniform(0.5, 1.5, 4)


def test_the_last_line_is_the_closed_form():
    e = rz.explain(lambda x: np.sum(np.log(1 + np.exp(-y * (A @ x)))), x)
    rules = [step.rule for step in e.steps]
    assert rules[0] == "definition" and any(["σ(z)" in rule for rule in rules])
    assert e.steps[-1].text(UNICODE).endswith(" = −Aᵀ(y ∘ σ(−y ∘ Ax))")
    assert str(e).endswith("−Aᵀ(y ∘ σ(−y ∘ Ax))") and str(e.derivation) in str(e)
    assert checked(e.derivation, [x]) == len(e.steps) > 8
    katex.parse(e.latex())
    mathml.parse(e.mathml())


def test_steps_of_a_derivative_with_lets_and_of_several_arguments():
    e = rz.explain(lambda W, x: np.sum((W @ x - b) ** 2), A, x)
    assert str(e).endswith("where e = Wx − b")
    assert checked(e.derivation, [A, x]) > 5
    e = rz.explain(lambda x: np.tanh(A @ x), x)
    assert str(e).endswith("f′ = diag(1 − tanh(Ax)²) A")


def test_the_function_has_another_name_than_its_argument():
    e = rz.explain(lambda f: np.sum((A @ f - b) ** 2) + f @ f, x)
    assert e.steps[0].where == "g" and e.steps[-1].where == "∇g"
    assert checked(e.derivation, [x]) == len(e.steps) > 5


def test_what_has_no_closed_form_is_explained_by_rules():
    e = rz.explain(lambda x: np.sort(x)[0] + np.sum(np.fft.rfft(x).real), x)
    assert e.steps == [] and str(e).endswith(str(e.derivation)) and e.latex() == e.derivation.latex()


def test_what_laws_say_can_be_set_in_every_alphabet():
    for law in (*LAWS, *SUM_LAWS):
        said = law.__doc__.strip().splitlines()[0]
        katex.parse(LATEX.prose(said))
        mathml.parse(typeset(MATHML.prose(said)))
        assert "U+" not in LATEX.prose(said), said
