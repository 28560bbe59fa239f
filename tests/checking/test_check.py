"""rz.check: right derivatives pass, whatever their scale; wrong ones are found, and the report says where."""

import os
import subprocess
import sys
import textwrap
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import riesz as rz
from riesz.checking.taylor import slopes
from riesz.testing import check_adjoint, check_derivative, check_derivatives, check_taylor, functions

rng = np.random.default_rng(0)
X, A = rng.normal(size=4), rng.normal(size=(4, 4))


def rows(report, what):
    return [r for r in report.rows if r.what == what]


def failed(report):
    """What failed, by name."""
    return {r.what for r in report.failures}


def custom(function, derivative, adjoint=None):
    return rz.custom_derivative(function, derivative, adjoint)


# -- what is right passes -------------------------------------------------------------------------------


Pair = namedtuple("Pair", "left right")


@dataclass
class Layer:
    W: np.ndarray
    b: np.ndarray


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: np.sum(np.sin(x)), (X,)),
        (lambda x: x**3, (2.0,)),
        (lambda x, n: x**n, (2.0, 3)),
        (lambda W, x: np.tanh(W @ x), (A, X)),
        (lambda x: (x[0] * x[1], {"a": np.exp(x)}), (X,)),
        (lambda p: p["W"] @ p["b"], ({"W": A, "b": X},)),
        (lambda p: p.left * p.right**2, (Pair(X, 3.0),)),
        (lambda layer, x: np.tanh(layer.W @ x + layer.b), (Layer(A, X), X)),
        (lambda x: 3.0 * x + 1.0, (X,)),
        (lambda x: 0.0 * x + 3.0, (X,)),
        (lambda x: np.exp(x) * x**2, (0.0 * X,)),
        (lambda x: np.sin(1e6 * x), (X,)),
        (lambda x: np.sin(1e8 * x), (1e-8 * X,)),
        (lambda x: 1e-30 * np.sin(x), (X,)),
        (lambda x: 1e10 * np.log(x), (1e12 * np.abs(X),)),
        (lambda x: np.log(x[1]) + x[0], (np.array([1e6, 1e-3]),)),
        (lambda x: np.log(x), (np.abs(X) + 1e-3,)),
        (lambda x: np.sqrt(x), (np.float64(2.0),)),
        (lambda x: np.maximum(A @ x, 0.0) @ x, (X,)),
        (lambda x: np.abs(x - 1e-7), (0.0,)),  # a kink close by
        (lambda x: np.sum(np.maximum(x, 0.0)), (np.array([1e-5, -1e-9, 3.0]),)),
        (lambda x: np.sort(x) * np.arange(4), (X,)),
        (lambda x: np.clip(x, -0.5, 0.5), (X,)),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), (X,)),
        (lambda x: (x + 1e6) - 1e6, (X,)),  # half of its digits are lost
        (lambda x: np.zeros(0) + x, (np.zeros(0),)),
        (lambda x: np.sum(x) * np.ones((0, 3)), (X,)),
        (lambda x: np.sum(np.sin(x)), (rng.normal(size=5000),)),
        ("x, y -> norm(x) * y", (X, 2.0)),
        (rz.function(lambda x: np.prod(x)), (X,)),
        (rz.ln @ rz.sin, (1.0,)),
        (rz.proj(0) * rz.proj(1) - rz.sin @ rz.proj(0), ((1.0, 2.0),)),
        (rz.proj(0) * rz.proj(1), (1.0, 2.0)),
        (rz.total @ rz.tanh ** rz.seg(4), (X,)),
        (rz.matvec, (A, X)),
        (rz.outer, (X, X)),
        (rz.inner.at(rz.direct_sum(*[(rz.R ** rz.seg(4)).weighted(np.abs(X) + 0.5)] * 2)), (X, 2.0 * X)),
        (custom(np.sin, lambda x: lambda dx: np.cos(x) * dx), (X,)),
        (custom(np.sin, lambda x: lambda dx: np.cos(x) * dx, lambda x: lambda w: np.cos(x) * w), (X,)),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_right_passes(f, args, seed):
    report = rz.check(f, *args, seed=seed)
    assert report, report
    assert not report.failures and "passed" in str(report)
    check_derivatives(f, *args, seed=seed)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.exp(x) * x),
        lambda x: np.tanh(A.astype(np.float32) @ x),
        lambda x: np.sin(20 * x),
        lambda x: np.maximum(x, 0) ** 2,
    ],
)
def test_float32_has_a_looser_tolerance(f):
    for seed in range(5):
        report = rz.check(f, X.astype(np.float32), seed=seed)
        assert report, report
        assert {r.expected for r in rows(report, "adjoint")} == {"≤ 1e-03"}
    assert rz.check(lambda x, y: x * y, np.float32(2.0), X.astype(np.float32))


@given(functions(), st.integers(0, 1000))
def test_random_combinators_pass(f, seed):
    report = rz.check(f, f.domain.random(seed), orders=1, seed=seed)
    assert report, report


def test_every_argument_is_a_line():
    report = rz.check(lambda W, x, *, b=1.0: W @ x + b, A, X)
    assert [r.where for r in rows(report, "derivative")] == ["argument 0 (W)", "argument 1 (x)"]
    report = rz.check(lambda p, q: p["W"] @ p["b"] * q[0] * q[1].left, {"W": A, "b": X}, (2.0, Pair(3.0, 1.0)))
    assert [r.where for r in rows(report, "adjoint")] == [
        *("argument 0 (p)['W']", "argument 0 (p)['b']"),
        *("argument 1 (q)[0]", "argument 1 (q)[1].left", "argument 1 (q)[1].right"),
    ]


def test_argnums_choose_arguments():
    f = lambda x, y, n: x * np.abs(y) ** n  # noqa: E731
    assert failed(rz.check(f, 2.0, 0.0, 1.0)) == {"derivative", "second derivative"}
    assert rz.check(f, 2.0, 0.0, 1.0, argnums=0)
    assert rz.check(f, 2.0, 1.0, 1.0, argnums=(0, -2))
    assert [r.where for r in rows(rz.check(f, 2.0, 1.0, 1.0, argnums=(0, -2)), "adjoint")] == [
        "argument 0 (x)",
        "argument 1 (y)",
    ]
    with pytest.raises(rz.SpaceError):
        rz.check(f, 2.0, 1.0, 1.0, argnums=3)


def test_orders():
    f = lambda x: np.sum(x**3)  # noqa: E731
    assert not rows(rz.check(f, X, orders=1), "second derivative")
    for orders in (None, 2):
        assert (
            len(rows(rz.check(f, X, orders=orders), "second derivative"))
            == len(rows(rz.check(f, X, orders=orders), "symmetry"))
            == 1
        )
    for orders in (0, 3, 1.5):
        with pytest.raises(ValueError, match="orders"):
            rz.check(f, X, orders=orders)
    with pytest.raises(ValueError, match="draws"):
        rz.check(f, X, draws=0)


def test_a_second_derivative_that_is_not_there_is_an_error_only_when_asked_for():
    f = custom(np.sin, lambda x: lambda dx: np.cos(x) * dx, lambda x: lambda w: np.cos(x) * w)
    (line,) = rows(rz.check(f, X), "second derivative")
    assert line.ok and line.observed == "none" and "no further derivative" in line.note
    report = rz.check(f, X, orders=2)
    assert not report and "orders=1 leaves it out" in str(report)


def test_errors_of_the_function_itself_are_not_hidden():
    with pytest.raises(rz.TraceError):
        rz.check(lambda x: float(x), 1.0)
    with pytest.raises(rz.VectorError, match="no argument to differentiate"):
        rz.check(lambda n: n + 1, 2)
    with pytest.raises(rz.ExpressionError):
        rz.check("x -> sine(x)", 1.0)


# -- what is wrong is found -----------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1.0, -2.0, 1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
def test_a_wrong_derivative_is_found(delta, scale):
    f = custom(np.sin, lambda x: lambda dx: (1.0 + delta) * np.cos(x) * dx)
    for seed in range(3):
        report = rz.check(lambda x: scale * f(x) * x, X, seed=seed, orders=1)
        assert failed(report) == {"derivative"}
        (line,) = report.failures
        assert line.where.startswith("argument 0 (x), direction ") and line.observed.startswith("order 1.")
        assert "f'(x)dx at [" in line.note and "but differences give" in line.note
        with pytest.raises(AssertionError, match=r"1 of 3 FAILED"):
            report.raise_if_failed()


def test_a_wrong_derivative_in_float32_is_found():
    f = custom(np.sin, lambda x: lambda dx: 1.1 * np.cos(x) * dx)
    for seed in range(5):
        assert failed(rz.check(lambda x: f(x) * x, X.astype(np.float32), seed=seed, orders=1)) == {"derivative"}


def test_a_wrong_primitive_is_found_as_combinator_and_in_numpy_code():
    wrong = rz.primitive("wrong_sine", np.sin, None, lambda x, y: rz.sin(x))
    assert "derivative" in failed(rz.check(wrong, 1.0))
    assert "derivative" in failed(rz.check(lambda x: np.sum(wrong(x)), X))
    with pytest.raises(AssertionError, match="FAILED"):
        check_derivative(wrong, 1.0)
    with pytest.raises(AssertionError, match="FAILED"):
        check_derivatives(wrong, 1.0)


def test_a_derivative_that_is_zero_and_should_not_be_or_the_other_way_round():
    assert failed(rz.check(lambda x: rz.stop_gradient(x) * 2.0, X, orders=1)) == {"derivative"}
    assert failed(rz.check(custom(lambda x: 0.0 * x, lambda x: lambda dx: dx), X, orders=1)) == {"derivative"}


def test_the_numbers_in_the_note_are_the_ones():
    f = custom(lambda x: 3.0 * x, lambda x: lambda dx: 2.0 * dx)
    (line,) = rz.check(f, 1.0, orders=1).failures
    said, found = [float(s.split()[-1]) for s in line.note.split(", but")]
    assert found == pytest.approx(1.5 * said, rel=1e-4)


def test_a_wrong_adjoint_is_found():
    flip = rz.linear(lambda v: v[::-1], lambda w: 2.0 * w[::-1], name="flip")
    for f in (
        flip,
        lambda x: flip(np.sin(x)),
        custom(lambda x: x[::-1], lambda x: lambda dx: dx[::-1], lambda x: lambda w: w),
    ):
        report = rz.check(f, X, orders=1)
        assert failed(report) == {"adjoint"}, report
        assert "⟨f'(x)v, w⟩ = " in report.failures[0].note
    with pytest.raises(AssertionError, match="not an adjoint"):
        check_adjoint(flip.at(rz.R ** rz.seg(4)))


def test_a_slightly_wrong_adjoint_is_found():
    scaled = rz.linear(lambda v: v, lambda w: (1.0 + 1e-7) * w)
    assert failed(rz.check(scaled, X, orders=1)) == {"adjoint"}
    assert rz.check(scaled, X, orders=1, tolerance=1e-5)


def test_a_wrong_second_derivative_is_found():
    wrong_cosine = rz.primitive("wrong_cosine", np.cos, None, lambda x, y: rz.sin(x))
    sine = rz.primitive("own_sine", np.sin, None, lambda x, y: wrong_cosine(x))
    for f in (rz.total @ sine ** rz.seg(4), lambda x: np.sum(sine(x)), lambda x: sine(x)):
        assert rz.check(f, X, orders=1)
        report = rz.check(f, X)
        assert failed(report) == {"second derivative"}
        assert "f''(x)dx" in report.failures[0].note


def test_the_culprit_among_arguments_and_results():
    wrong = custom(np.sin, lambda x: lambda dx: 2.0 * np.cos(x) * dx)
    report = rz.check(lambda x, y, z: {"a": x * z, "b": wrong(y) + x}, X, 2.0 * X, 3.0, orders=1)
    (line,) = report.failures
    assert line.where.startswith("argument 1 (y), direction") and line.where.endswith("result['b']")


def test_the_culprit_among_many_arrays():
    wrong = custom(np.sin, lambda x: lambda dx: 2.0 * np.cos(x) * dx)
    good, bad = list(rng.normal(size=(15, 3))), list(rng.normal(size=(15, 3)))
    report = rz.check(
        lambda a, b: sum([np.sin(x) for x in a]) + sum(b[:-2]) + wrong(b[-2]) + b[-1], good, bad, orders=1
    )
    assert [r.where for r in rows(report, "derivative") if r.ok] == ["argument 0 (a)"]
    (line,) = report.failures
    assert line.where.startswith("argument 1 (b)[13], direction")


def test_a_small_result_beside_a_large_one_is_checked_too():
    wrong = custom(np.sin, lambda x: lambda dx: 1.01 * np.cos(x) * dx)
    report = rz.check(lambda x: (1e12 * np.exp(x), 1e-12 * wrong(x)), X, orders=1)
    assert report.failures[0].where.endswith("result[1]")


def test_a_value_that_is_not_the_derived_one_is_found():
    report = rz.check(lambda x: 2.0 * x if type(x) is np.ndarray else 3.0 * x, X, orders=1)
    assert "value" in failed(report) and "where it is derived" in str(report)


# -- where there is no derivative -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x", "note"),
    [
        (np.abs, 0.0, "f has a kink here: its slope is"),
        (lambda x: np.maximum(x, 0.0), np.array([1.0, 0.0]), "f has a kink here: its slope at [1] is"),
        (lambda x: np.linalg.norm(x), np.zeros(3), "kink"),
        (lambda x: np.where(x >= 0, 1.0, 0.0) + x, 0.0, "does not tend to f(x)"),
        (lambda x: np.sqrt(x), 0.0, "f'(x)dx is not finite"),
        (lambda x: np.log(x), -1.0, "f(x) is not finite"),
        (lambda x: x / 0.0, 1.0, "f(x) is not finite"),
        (lambda x: np.sin(x), np.nan, "f(x) is not finite"),
        (
            custom(lambda x: np.where(x == 1.0, 0.0, np.nan), lambda x: lambda dx: dx),
            1.0,
            "is not finite, however small h",
        ),
        (
            custom(lambda x: np.where(x >= 1.0, np.sqrt(np.maximum(x, 1.0) - 1.0), np.nan), lambda x: lambda dx: dx),
            1.0,
            "not finite",
        ),
    ],
)
def test_points_without_a_derivative_are_reported(f, x, note):
    report = rz.check(f, x, orders=1)
    assert "derivative" in failed(report)
    assert any(note in r.note for r in report.failures), report
    assert not rz.check(f, x)


def test_a_function_with_chance_inside_is_reported():
    noise = np.random.default_rng(0)
    f = custom(lambda x: x + noise.normal(), lambda x: lambda dx: dx)
    assert "chance inside it" in str(rz.check(f, 1.0, orders=1))


def test_a_function_that_raises_everywhere_but_at_x_says_what():
    def picky(x):
        if x != 1.0:
            raise ArithmeticError("only one")
        return x

    report = rz.check(custom(picky, lambda x: lambda dx: dx), 1.0, orders=1)
    assert "ArithmeticError: only one" in str(report)


# -- the report -----------------------------------------------------------------------------------------


def test_the_report_is_a_table():
    report = rz.check(lambda x: np.sum(x**2), X, orders=1)
    lines = str(report).splitlines()
    assert repr(report) == str(report) and lines[0] == "rz.check of <lambda>: all 3 passed"
    assert len(lines) == 4 and len({len(line) for line in lines[1:]}) == 1
    assert lines[2].split() == ["derivative", "argument", "0", "(x)", "order", "2.00", "order", "2", "ok"]
    assert report.raise_if_failed() is None and report.failures == () and len(report.rows) == 3
    bad = str(rz.check(np.abs, 0.0, orders=1))
    assert "1 of 3 FAILED" in bad and bad.count("FAILED") == 2


def test_the_same_seed_gives_the_same_report():
    f = lambda x: np.sin(x) * x  # noqa: E731
    assert str(rz.check(f, X, seed=3)) == str(rz.check(f, X, seed=3))


def test_nothing_given_is_changed():
    x = X.copy()
    rz.check(lambda x: x**2, x)
    np.testing.assert_array_equal(x, X)


def test_pytest_shows_the_table(tmp_path):
    test = """
        import numpy as np, riesz as rz
        from riesz.testing import check_derivatives

        wrong = rz.custom_derivative(np.sin, lambda x: lambda dx: 2.0 * np.cos(x) * dx)

        def test_assert():
            assert rz.check(wrong, 1.0)

        def test_raise():
            check_derivatives(wrong, 1.0)

        def test_right():
            assert rz.check(np.sin, 1.0)
    """
    (tmp_path / "test_it.py").write_text(textwrap.dedent(test))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
    )
    assert "2 failed, 1 passed" in run.stdout, run.stdout
    asserted, raised = run.stdout.split("__ test_raise __")
    for part in (asserted, raised):
        assert "but differences give" in part and "order 1.00" in part, run.stdout


# -- the Taylor test by itself --------------------------------------------------------------------------


EPS = float(np.finfo(float).eps)


def slope(f, dy):
    (found,) = slopes(lambda h: [np.asarray(f(h))], [np.asarray(f(0.0))], [np.asarray(dy)], EPS)
    return found


def test_orders_are_observed():
    assert slope(lambda h: h**2, 0.0).order == pytest.approx(2.0, abs=0.01)
    assert slope(lambda h: h**3 + 1.0, 0.0).order == pytest.approx(3.0, abs=0.01)
    assert slope(lambda h: 2.0 * h, 2.0).order == np.inf
    assert slope(lambda h: 2.0 * h, 1.0).order == pytest.approx(1.0, abs=0.01)
    assert slope(np.exp, 1.0).order == pytest.approx(2.0, abs=0.05)
    assert slope(np.exp, 1.0 + 1e-5).order == pytest.approx(1.0, abs=0.3)
    assert [slope(f, d).ok for f, d in ((np.exp, 1.0), (np.exp, 1.1), (np.sin, 1.0), (np.sin, 0.0))] == [
        True,
        False,
        True,
        False,
    ]


@given(st.floats(-3, 3), st.floats(-3, 3), st.integers(-12, 12), st.integers(-3, 6))
def test_polynomials_of_any_scale_are_told_right_from_wrong(a, b, scale, curve):
    """a·h + b·h², scaled: the derivative a is right, a ± 1% is wrong."""
    k, c = 10.0**scale, 10.0**curve
    a = 1.0 + abs(a)
    assert slope(lambda h: k * (a * h + c * b * h**2), k * a).ok
    assert not slope(lambda h: k * (a * h + c * b * h**2), 1.01 * k * a).ok
    assert not slope(lambda h: k * (a * h + c * b * h**2), 0.0).ok


def test_check_taylor_says_the_order():
    check_taylor(lambda h: np.sin(1.0 + h), float(np.sin(1.0)), float(np.cos(1.0)), rz.R)
    with pytest.raises(AssertionError, match=r"order 1\.00, not of order 2"):
        check_taylor(lambda h: np.sin(1.0 + h), float(np.sin(1.0)), 1.0, rz.R)
