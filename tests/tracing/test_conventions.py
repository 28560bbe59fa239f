"""docs/conventions.md, row by row: values at kinks, forward and backward, and at second order no nan."""

import warnings
from pathlib import Path

import cases_pointwise  # noqa: F401  (the tables enter themselves)
import cases_structure  # noqa: F401
import numpy as np
import pytest
import scipy.interpolate
import scipy.spatial
import scipy.stats
from cases import CASES

import riesz as rz

INF = np.inf
TWICE = rz.relations.pairs(rz.seg(3), rz.seg(2), [(0, 0), (0, 0), (1, 0)])
Z = np.zeros(2)

# function, point, gradient there
ROWS = [
    (lambda k: scipy.stats.poisson.logpmf(k, 2.5), 3.0, 0.0),
    (lambda k: scipy.stats.binom.cdf(k, 5, 0.3), 2.0, 0.0),
    (lambda x: scipy.stats.expon.pdf(x), -1.0, 0.0),
    (lambda x: scipy.stats.beta.cdf(x, 2.0, 3.0), 1.5, 0.0),
    (lambda x: scipy.spatial.distance.euclidean(x, [1.0, 2.0]), np.array([1.0, 2.0]), [0.0, 0.0]),
    (lambda x: scipy.interpolate.interp1d([0.0, 1.0], [1.0, 3.0])(x), 2.0, 0.0),
    (lambda x: np.abs(x), 0.0, 0.0),
    (lambda x: int(x) * x, 2.5, 2.0),
    (lambda x: np.fabs(x), 0.0, 0.0),
    *[
        (lambda x, f=f: f(x), 0.5, 0.0)
        for f in (np.sign, np.floor, np.ceil, np.round, np.trunc, lambda x: x // 0.3, lambda x: np.heaviside(x, 0.5))
    ],
    (lambda x: x * (x > 0.5), 0.5, 0.0),
    (lambda x: np.maximum(x, 2.0), 2.0, 0.5),
    (lambda x: np.minimum(2.0, x), 2.0, 0.5),
    (lambda x: np.fmax(x, 2.0), 2.0, 0.5),
    (lambda x: np.fmin(x, 2.0), 2.0, 0.5),
    (lambda x: np.maximum(x, x), 2.0, 1.0),
    (lambda x: np.fmax(x[0], x[1]), np.array([np.nan, 1.0]), [0.0, 1.0]),
    (lambda x: np.fmin(x[0], x[1]), np.array([1.0, np.nan]), [1.0, 0.0]),
    (lambda x: np.fmax(x[0], x[1]), np.array([-INF, np.nan]), [1.0, 0.0]),
    (lambda x: np.fmax(x[0], x[1]), np.array([np.nan, np.nan]), [0.0, 0.0]),
    (lambda x: np.maximum(x[0], x[1]), np.array([np.nan, 1.0]), [0.0, 0.0]),
    (lambda x: np.max(x), np.array([np.nan, 1.0]), [0.0, 0.0]),
    (lambda x: np.nanmax(x), np.array([np.nan, 1.0, 2.0]), [0.0, 0.0, 1.0]),
    (lambda x: np.nanmin(x), np.array([np.nan, 1.0, 2.0]), [0.0, 1.0, 0.0]),
    (lambda x: np.nansum(x**2), np.array([np.nan, 1.0, 2.0]), [0.0, 2.0, 4.0]),
    (lambda x: np.nanmean(x), np.array([np.nan, 1.0, 2.0]), [0.0, 0.5, 0.5]),
    (lambda x: np.nanprod(x), np.array([np.nan, 3.0, 2.0]), [0.0, 2.0, 3.0]),
    (lambda x: np.nansum(x, where=np.array([True, False, True])), np.array([np.nan, 1.0, 2.0]), [0.0, 0.0, 1.0]),
    (lambda x: np.median(x), np.array([-INF, 1.0]), [0.5, 0.5]),
    (lambda x: rz.relu(np.inf * x), -1.0, 0.0),
    (lambda x: np.clip(np.inf * x, -1.0, 1.0), 2.0, 0.0),
    (lambda x: np.clip(x, 0.0, 1.0), 0.0, 0.5),
    (lambda x: np.clip(x, 0.0, 1.0), 1.0, 0.5),
    (lambda x: np.max(x), np.array([3.0, 1.0, 3.0]), [0.5, 0.0, 0.5]),
    (lambda x: np.min(x), np.array([1.0, 1.0, 1.0, 3.0]), [1 / 3, 1 / 3, 1 / 3, 0.0]),
    (lambda x: np.sum(np.max(x, axis=0)), np.array([[1.0, 2.0], [1.0, 0.0]]), [[0.5, 1.0], [0.5, 0.0]]),
    (lambda x: np.sum(rz.red(TWICE, "max")(x)[:1]), np.array([3.0, 3.0, 1.0]), [2 / 3, 1 / 3, 0.0]),
    (lambda x: np.sum(rz.red(TWICE, "min")(x)), np.array([3.0, 3.0, 1.0]), [2 / 3, 1 / 3, 0.0]),
    (lambda x: np.sum(rz.red(TWICE, "logsumexp")(x)), np.array([-INF, -INF, 1.0]), [0.0, 0.0, 0.0]),
    (lambda x: np.sum(rz.red(TWICE, "prod")(x)), np.array([0.0, 5.0, 1.0]), [0.0, 0.0, 0.0]),
    (lambda x: np.sum(np.maximum.reduceat(x, [0, 2])), np.array([3.0, 3.0, 1.0]), [0.5, 0.5, 1.0]),
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
    (lambda x: np.where(x > 0, x**2, np.inf * x), 1.0, 2.0),
    (lambda x: np.where(x > 0, x**2, x / 0.0), 1.0, 2.0),
    (lambda x: np.where(x > 0, x**2, np.nan * x), 3.0, 2.0),
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


UNREACHED = [
    (lambda x: np.sqrt(x)[1:], [0.0, 4.0], [[0.0, 0.25]]),
    (lambda x: np.sqrt(x)[np.array([1, 1])], [0.0, 4.0], [[0.0, 0.25], [0.0, 0.25]]),
    (lambda x: np.sqrt(x)[::-2], [0.0, 4.0], [[0.0, 0.25]]),
    (
        lambda x: np.diagonal(np.sqrt(x.reshape(2, 2))),
        [1.0, 0.0, 0.0, 4.0],
        [[0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.25]],
    ),
    (lambda x: np.sqrt(np.diag(x)).ravel(), [1.0, 4.0], [[0.5, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.25]]),
    (lambda x: np.tril(np.sqrt(x.reshape(2, 2))).ravel(), [1.0, 0.0, 1.0, 4.0], np.diag([0.5, 0.0, 0.5, 0.25])),
    (lambda x: np.sqrt(np.tril(x.reshape(2, 2))).ravel(), [1.0, 1.0, 1.0, 4.0], np.diag([0.5, 0.0, 0.5, 0.25])),
    (lambda x: np.sqrt(np.pad(x, 1)), [1.0, 4.0], [[0.0, 0.0], [0.5, 0.0], [0.0, 0.25], [0.0, 0.0]]),
    (lambda x: np.sqrt(np.concatenate([x, np.zeros(1)])), [1.0, 4.0], [[0.5, 0.0], [0.0, 0.25], [0.0, 0.0]]),
    (lambda x: np.sqrt(np.where(x > 0, x, 0.0)), [0.0, 4.0], np.diag([0.0, 0.25])),
    (lambda x: np.take_along_axis(np.log(x), np.argsort(x)[1:], 0), [0.0, 4.0], [[0.0, 0.25]]),
    (lambda x: np.sort(np.sqrt(x))[1:], [0.0, 4.0], [[0.0, 0.25]]),
    (lambda x: 0.0 * np.sqrt(x), [0.0, 4.0], np.diag([np.nan, 0.0])),
    (lambda x: np.array([0.0, 1.0]) * np.sqrt(x), [0.0, 4.0], np.diag([np.nan, 0.25])),
    (lambda x: (np.array([0.0, 0.0, 1.0]) * np.sqrt(x))[1:], [0.0, 0.0, 4.0], [[0.0, np.nan, 0.0], [0.0, 0.0, 0.25]]),
    (lambda x: np.where(x >= 0, (x**0.25) ** 2, 0.0), [0.0, 1.0], np.diag([np.nan, 0.5])),
    (lambda x: np.array([[0.0, 1.0]]) @ np.sqrt(x), [0.0, 4.0], [[np.nan, 0.25]]),
    (lambda x: np.where(x > 0, x, np.inf * x), [1.0, -2.0], np.diag([1.0, INF])),
    (lambda x: np.where(x > 0, x, np.array([INF, 1.0]) * x), [1.0, 2.0], np.eye(2)),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "x", "J"), UNREACHED)
def test_places_that_nothing_reaches_are_zero_and_numbers_that_are_zero_are_not(f, x, J):
    x, J = np.array(x), np.array(J)
    L = rz.jacobian(f)(x)
    S = L.simplify()
    total = lambda x: np.sum(f(x))  # noqa: E731
    found = {
        "to_dense": (L.to_dense(), J),
        "to_sparse": (L.to_sparse().toarray(), J),
        "simplify": (S.to_dense(), J),
        "components": (np.array([rz.grad(lambda x, i=i: f(x)[i])(x) for i in range(len(J))]), J),
        "grad": (rz.grad(total)(x), J.sum(0)),
        "a program": (rz.function(lambda x: rz.grad(total)(x) * 1.0)(x), J.sum(0)),
        "transpose": (L.T(np.ones(len(J))), J.sum(0)),
        "simplify, transpose": (S.T(np.ones(len(J))), J.sum(0)),
        "jvp": (rz.jvp(f, (x,), (np.ones(len(x)),))[1], J.sum(1)),
        "compiled": (rz.compile(rz.grad(total))(x), J.sum(0)),
        "compiled jvp": (rz.compile(lambda x: rz.jvp(f, (x,), (np.ones(len(x)),))[1], backend="numpy")(x), J.sum(1)),
        "gram": (np.diag(L.gram().to_dense()), np.where(J == 0, 0.0, J**2).sum(0)),
    }
    wrong = {k: a for k, (a, b) in found.items() if not np.allclose(a, b, equal_nan=True)}
    assert not wrong, wrong


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-10])
def test_a_rounding_error_does_not_change_the_derivative_of_a_symmetric_matrix(noise, lower):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A = A @ A.T + 4 * np.eye(4)
    A = A + noise * rng.normal(size=(4, 4))
    letter = "L" if lower else "U"
    for f in (
        lambda A: np.sum(np.linalg.eigvalsh(A, letter) ** 2),
        lambda A: np.linalg.eigh(A, letter)[0][1],
        lambda A: np.sum(np.log(np.diagonal(np.linalg.cholesky(A, upper=not lower)))),
    ):
        G = rz.grad(f)(A)
        assert np.allclose(G, G.T, atol=1e-6)
        assert rz.value_and_grad(f)(A)[0] == pytest.approx(
            f(A), rel=1e-14
        )  # what NumPy reads, not the mean of both triangles
        assert np.allclose(rz.compile(rz.grad(f))(A), G, atol=1e-8)
    stack = np.stack([A, np.tril(A)])
    both = rz.grad(lambda A: np.sum(np.linalg.eigvalsh(A) ** 2))(stack)  # each matrix for itself
    assert np.allclose(both[0], both[0].T, atol=1e-6) and not np.triu(both[1], 1).any()


def test_no_warning_from_a_branch_not_taken_and_one_from_leaving_a_domain():
    x = np.array([0.0, -1.0, 4.0])
    quiet = [
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)),
        lambda x: np.sum(np.where(x > 0, np.log(x), np.inf * x)),
        lambda x: np.sum(np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 0.0, x))),
        lambda x: np.sum(np.select([x > 1, x > 0], [np.log(x - 1), 1 / x], -x)),
        lambda x: np.sum(np.sqrt(np.where(x > 0, x, 0.0))),
        lambda x: np.sum(np.sqrt(np.abs(x))[1:]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in quiet:
            (
                rz.function(f)(x),
                rz.value_and_grad(f)(x),
                rz.jvp(f, (x,), (x,)),
                rz.hessian(f)(x).to_dense(),
                rz.jacobian(f)(x).simplify()(x),
            )
            for backend in ("auto", "numpy", "steps"):
                rz.compile(f, backend=backend)(x), rz.compile(rz.value_and_grad(f), backend=backend)(x)
    mixed = lambda x: np.log(x) + np.where(x > 0, np.sqrt(x), 0.0)  # noqa: E731
    for f in (np.log, mixed):
        for g in (rz.function(f), rz.compile(f, backend="numpy"), rz.compile(f, backend="steps")):
            with pytest.warns(RuntimeWarning, match="log"):
                g(x)


SPECIAL = np.array([0.0, -0.0, INF, -INF, np.nan, 1.0, -1.0, 2.0])
ORDER = ("einsum(", "x @ onp.ones((3, 2)) @ y")  # sums of products in another order make nan of inf, or inf of nan
WEIGHTS = ("reflect_type='odd'", "cross(")  # a product with a fixed array that has zeros


def leaves_of(value):
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves_of(part)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [] if value is None else [value]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_values_at_special_points_are_those_of_numpy(part):
    wrong = []
    for c in [c for c in CASES[part::4] if not any(w in c.text for w in (*ORDER, *WEIGHTS))]:
        rng = np.random.default_rng(1)
        xs = c.sample(part)
        for x in xs:
            at = rng.choice(x.size, max(1, x.size // 3), replace=False) if x.size else []
            x.reshape(-1)[at] = rng.choice(SPECIAL, len(at))
        f = lambda *args, c=c: c.function(np, *args)  # noqa: E731
        with np.errstate(all="ignore"):
            try:
                wanted = f(*[x.copy() for x in xs])
            except (ValueError, np.linalg.LinAlgError):  # NumPy refuses this point
                continue
            found = rz.function(f)(*xs)
        a, b = leaves_of(wanted), leaves_of(found)
        same = len(a) == len(b) and all(
            np.allclose(p, q, rtol=1e-9, atol=1e-12, equal_nan=True) for p, q in zip(a, b, strict=True)
        )
        if not same:
            wrong.append((c.text, xs, wanted, found))
    assert not wrong, wrong


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
