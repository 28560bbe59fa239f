"""docs/conventions.md, row by row: values at kinks, forward and backward, and at second order no nan."""

from pathlib import Path

import numpy as np
import pytest

import riesz as rz

INF = np.inf
Z = np.zeros(2)

# function, point, gradient there
ROWS = [
    (lambda x: np.abs(x), 0.0, 0.0),
    (lambda x: np.fabs(x), 0.0, 0.0),
    *[(lambda x, f=f: f(x), 0.5, 0.0) for f in (np.sign, np.floor, np.ceil, np.round, np.trunc, lambda x: x // 0.3, lambda x: np.heaviside(x, 0.5))],
    (lambda x: x * (x > 0.5), 0.5, 0.0),
    (lambda x: np.maximum(x, 2.0), 2.0, 0.5),
    (lambda x: np.minimum(2.0, x), 2.0, 0.5),
    (lambda x: np.fmax(x, 2.0), 2.0, 0.5),
    (lambda x: np.fmin(x, 2.0), 2.0, 0.5),
    (lambda x: np.maximum(x, x), 2.0, 1.0),
    (lambda x: np.clip(x, 0.0, 1.0), 0.0, 0.5),
    (lambda x: np.clip(x, 0.0, 1.0), 1.0, 0.5),
    (lambda x: np.max(x), np.array([3.0, 1.0, 3.0]), [0.5, 0.0, 0.5]),
    (lambda x: np.min(x), np.array([1.0, 1.0, 1.0, 3.0]), [1 / 3, 1 / 3, 1 / 3, 0.0]),
    (lambda x: np.sum(np.max(x, axis=0)), np.array([[1.0, 2.0], [1.0, 0.0]]), [[0.5, 1.0], [0.5, 0.0]]),
    (lambda x: rz.relu(x), 0.0, 0.0),
    (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
    (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
    (lambda x: np.where(x > 0, np.log(x), x), 0.0, 1.0),
    (lambda x: np.where(x == 0, 1.0, np.sin(x) / x), 0.0, 0.0),
    (lambda x: np.where(x > 0, x**0.5, 0.0) * 3.0, -1.0, 0.0),
    (lambda x: np.sum(np.where(x > 0, 1.0 / x, 2.0 * x)), np.array([0.0, 2.0]), [2.0, -0.25]),
    (lambda x: np.select([x > 1, x > 0], [np.log(x - 1), x * 2], -x), 0.5, 2.0),
    (lambda x: np.piecewise(x, [x > 0], [np.sqrt, lambda t: t * 5.0]), -1.0, 5.0),
    (lambda x: np.sort(x)[0] + 2 * np.sort(x)[1], np.array([1.0, 1.0]), [1.0, 2.0]),
    (lambda x: np.sqrt(x), 0.0, INF),
    (lambda x: x**2, 0.0, 0.0),
    (lambda x: x**1.5, 0.0, 0.0),
    (lambda x: x**1, 0.0, 1.0),
    (lambda x: x**0, 0.0, 0.0),
    (lambda x: x**0.5, 0.0, INF),
    (lambda y: 0.0**y, 2.0, 0.0),
    (lambda x: np.linalg.norm(x), Z, Z),
    (lambda x: np.hypot(x[0], x[1]), Z, Z),
    (lambda x: np.std(x), np.ones(3), np.zeros(3)),
    (lambda x: np.arctan2(x[0], x[1]), Z, Z),
    (lambda x: np.prod(x), np.array([0.0, 2.0, 3.0]), [6.0, 0.0, 0.0]),
    (lambda x: np.prod(x), np.array([0.0, 2.0, 0.0]), [0.0, 0.0, 0.0]),
    (lambda x: np.sum(np.cumprod(x)), np.array([2.0, 0.0, 3.0]), [1.0, 2.0 + 6.0, 0.0]),
    (lambda x: x % 2.0, 4.0, 1.0),
    (lambda y: 7.0 % y, 2.0, -3.0),
    (lambda x: np.sum(np.nan_to_num(x)), np.array([np.nan, np.inf, 1.0]), [0.0, 0.0, 1.0]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "x", "wanted"), ROWS)
def test_convention(f, x, wanted):
    got = rz.grad(f)(x)
    assert np.array_equal(got, wanted) or np.allclose(got, wanted, rtol=1e-15), got
    ones = np.eye(np.size(x)).reshape(np.size(x), *np.shape(x))
    forward = np.array([rz.jvp(f, (x,), (v if np.ndim(x) else 1.0,))[1] for v in ones]).reshape(np.shape(x))
    assert np.allclose(forward, wanted, rtol=1e-15, equal_nan=False), forward
    symbolic = rz.function(lambda x: rz.grad(f)(x) * 1.0)(x)  # the adjoint program, not the numeric one
    assert np.allclose(symbolic, wanted, rtol=1e-15), symbolic


SELECTIONS = [
    (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
    (lambda x: np.where(x > 0, np.sqrt(x), x**2), -1.0, 2.0),
    (lambda x: np.where(x > 0, np.log(x), x**3), 0.0, 0.0),
    (lambda x: np.where(x > 0, np.where(x > 1, np.log(x - 1), np.sqrt(1 - x)), x**2), -2.0, 2.0),
    (lambda x: np.exp(np.where(x < 100, x, 0.0)) * np.where(x < 100, 1.0, np.exp(x)), 1000.0, INF),
    (lambda x: np.maximum(np.where(x > 0, np.sqrt(x), 0.0), -1.0), -1.0, 0.0),
    (lambda x: np.linalg.norm(np.stack([x, x * 0.0])) * np.linalg.norm(np.stack([x, 0.0 * x])), 0.0, 0.0),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "x", "second"), SELECTIONS)
def test_second_derivatives_of_selections_in_every_mode(f, x, second):
    if second == INF:
        assert rz.grad(f)(x) == np.exp(x)
        return
    over = {
        "forward over reverse": rz.hvp(f, (x,), (1.0,)),
        "reverse over reverse": rz.grad(rz.grad(f))(x),
        "forward over forward": rz.jvp(lambda x: rz.jvp(f, (x,), (1.0,))[1], (x,), (1.0,))[1],
        "reverse over forward": rz.grad(lambda x: rz.jvp(f, (x,), (1.0,))[1])(x),
        "hessian": rz.hessian(f)(x).to_dense()[0, 0],
    }
    assert all(v == second for v in over.values()), over


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_branch_not_taken_leaves_no_trace_in_sums_and_products():
    rows = lambda x: np.sum(np.where((x[:, 0] > 0)[:, None], np.log(x), x)[:, 0] @ np.ones(3))  # noqa: E731
    x = np.array([[1.0, 2.0], [0.0, 1.0], [-1.0, 3.0]])
    assert rz.grad(rows)(x)[:, 0].tolist() == [1.0, 1.0, 1.0]
    matrix = lambda x: np.sum(np.where(x > 0, np.outer(np.sqrt(x), 1.0 / x) @ np.ones(2), x))  # noqa: E731
    assert np.isfinite(rz.grad(matrix)(np.array([-1.0, -2.0]))).all()
    inside = lambda x: rz.loop(lambda c, t: (np.where(t > 0, c * np.sqrt(t), c), c), 1.0, x)[0]  # noqa: E731
    assert rz.grad(inside)(np.array([0.0, 4.0, 0.0])).tolist() == [0.0, 0.25, 0.0]
    masked = rz.vmap(lambda x: np.where(x > 0, np.sqrt(x), 0.0))
    assert rz.grad(lambda x: np.sum(masked(x)))(np.array([0.0, 4.0])).tolist() == [0.0, 0.25]


def test_the_page_and_the_rows_agree():
    page = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text()
    for word in (
        "abs",
        "np.maximum",
        "np.clip",
        "np.max",
        "rz.relu",
        "np.where",
        "np.sort",
        "np.sqrt",
        "x ** p",
        "norm",
        "np.std",
        "np.arctan2",
        "np.prod",
    ):
        assert word in page


def test_check_domain_names_primitive_and_value():
    with np.errstate(all="ignore"):
        for f, x, words in [
            (lambda x: np.sum(np.log(x)), np.array([1.0, -2.0]), ("ln", "-2.0", "index 1", "x > 0")),
            (lambda x: np.sum(x * np.log(x)), np.array([0.0, 1.0]), ("ln", "0.0")),
            (lambda x: np.arcsin(x), 2.0, ("arcsin", "2.0")),
            (lambda x: 0.0 * x / (x - 1.0), 1.0, ("divide", "0.0")),
            (lambda x: np.sqrt(np.sum(x**2)), np.zeros(2), ("sqrt", "0.0")),
        ]:
            rz.grad(f)(x)  # silent as NumPy is
            with pytest.raises(rz.DomainError) as problem, rz.check_domain():
                rz.grad(f)(x)
            assert all(w in str(problem.value) for w in words), problem.value
        with rz.check_domain():
            rz.grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)))(np.array([0.0, -1.0]))  # not taken: no error
            assert rz.function(np.sqrt)(4.0) == 2.0
        with pytest.raises(rz.DomainError, match="nan already"), rz.check_domain():
            rz.function(np.sin)(np.nan)
