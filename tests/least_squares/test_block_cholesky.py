"""Jacobians as blocks: patterns, the order of elimination, factors and selected inverses against dense linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import riesz as rz
from riesz.errors import SolveError
from riesz.least_squares.factor_blocks import FactorBlocks
from riesz.least_squares.node_blocks import diagonal_blocks
from riesz.runtime import tuning

cholesky = pytest.importorskip("riesz.least_squares.block_cholesky")


@st.composite
def jacobians(draw):
    """Sparse matrices made of small dense blocks, rows in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(st.lists(st.sampled_from([(4, 3), (7,), (5, 1), (3, 2, 2), (1,), ()]), min_size=1, max_size=3))
    n = sum([int(np.prod(s)) for s in shapes])
    dense = np.zeros((draw(st.integers(1, 40)), n))
    at = 0
    while at < len(dense):
        some = rng.choice(n, int(rng.integers(0, min(n, 6) + 1)), replace=False)
        more = int(rng.integers(1, 4))
        dense[at : at + more, some] = rng.standard_normal((min(more, len(dense) - at), len(some)))
        at += more
    return sp.csr_array(dense[rng.permutation(len(dense))]), shapes, rng


@given(jacobians())
def test_normal_equations_by_blocks(given):
    A, shapes, rng = given
    blocks = FactorBlocks(A, shapes)
    n = A.shape[1]
    assert sorted(blocks.rows) == list(np.flatnonzero(np.diff(A.indptr)))
    added = rng.uniform(0.5, 2.0, n)
    dense = (A.T @ A).toarray() + np.diag(added)
    plan = cholesky.BlockCholesky(blocks)
    factor = plan.factored(A.data, added)
    b = rng.standard_normal(n)
    np.testing.assert_allclose(dense @ factor.solve(b), b, atol=1e-9)
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(factor.blocks(np.arange(n)[:, None])[:, 0, 0], np.diag(inverse), rtol=1e-8, atol=1e-12)
    for i, j in zip(blocks.node_first, blocks.node_first[1:], strict=False):
        own = np.arange(i, j)[None]
        np.testing.assert_allclose(factor.blocks(own)[0], inverse[i:j, i:j], rtol=1e-8, atol=1e-12)
    apply = diagonal_blocks(blocks, A.data, added)
    same = blocks.node_of[:, None] == blocks.node_of
    np.testing.assert_allclose(np.where(same, dense, 0.0) @ apply(b), b, atol=1e-9)


def test_an_unknown_that_is_not_determined_is_named():
    A = sp.csr_array(np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    plan = cholesky.BlockCholesky(FactorBlocks(A, [(3,)]))
    with pytest.raises(SolveError, match=r"unknown [01] is not determined"):
        plan.factored(A.data)


rng = np.random.default_rng(0)
CAMERAS, POINTS = 12, 80
SEEN = rng.random((CAMERAS, POINTS)) < 0.15
SEEN[:6] = True
CAMERA, POINT = np.nonzero(SEEN)
WHERE = rng.standard_normal((CAMERAS, 6)) * 0.1 + [0, 0, 0, 0, 0, 6.0]
SCENE = rng.standard_normal((POINTS, 3))


def project(camera, point):
    w, X = camera[:, :3], point
    s = np.sum(w * w, axis=1, keepdims=True) + 1e-16
    a = np.sqrt(s)
    Y = X * np.cos(a) + np.cross(w, X) * np.sin(a) / a + w * np.sum(w * X, axis=1, keepdims=True) * (1 - np.cos(a)) / s
    Y = Y + camera[:, 3:]
    return Y[:, :2] / Y[:, 2:]


PIXELS = project(WHERE[CAMERA], SCENE[POINT]) + 1e-3 * rng.standard_normal((len(CAMERA), 2))


def reprojection(x):
    return project(x["cameras"][CAMERA], x["points"][POINT]) - PIXELS, 1e-2 * (x["cameras"] - WHERE)


@pytest.fixture(scope="module")
def bundle():
    start = {
        "cameras": WHERE + 0.01 * rng.standard_normal(WHERE.shape),
        "points": SCENE + 0.05 * rng.standard_normal(SCENE.shape),
    }
    with tuning.override(BLOCK_CHOLESKY_PRODUCTS=1):
        return start, rz.levenberg_marquardt(reprojection, start)


def test_bundle_adjustment_by_the_schur_complement(bundle):
    start, found = bundle
    assert found.converged and found.iterations <= 8, found
    assert "Schur complement of 80 blocks; the other 72 unknowns" in found.method
    slow = rz.levenberg_marquardt(reprojection, start, method="dense")
    np.testing.assert_allclose(found.cost, slow.cost, rtol=1e-9)
    np.testing.assert_allclose(found.x["points"], slow.x["points"], atol=1e-6)


def test_marginal_covariances_by_selected_inversion(bundle):
    found = bundle[1]
    A = rz.jacobian(reprojection)(found.x).to_dense()
    whole = 2.0 * found.cost / (len(A) - A.shape[1]) * np.linalg.inv(A.T @ A)
    points = found.covariance("points")
    assert points.shape == (80, 3, 3)
    for k in (0, 7, 79):
        own = slice(72 + 3 * k, 75 + 3 * k)
        np.testing.assert_allclose(points[k], whole[own, own], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.covariance("cameras")[3], whole[18:24, 18:24], rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors["points"].ravel(), np.sqrt(np.diag(whole)[72:]), rtol=1e-6)


@pytest.mark.parametrize("method", ["cg", "iterative"])
def test_bundle_adjustment_by_iterations(bundle, method):
    start, exact = bundle
    found = rz.levenberg_marquardt(reprojection, start, method=method, cost_tolerance=1e-10)
    np.testing.assert_allclose(found.cost, exact.cost, rtol=1e-6)
    assert ("conjugate gradients" if method == "cg" else "LSMR") in found.method


def test_a_gauge_that_is_free_is_told(bundle):
    start, _ = bundle
    with tuning.override(BLOCK_CHOLESKY_PRODUCTS=1):
        found = rz.levenberg_marquardt(lambda x: reprojection(x)[0], start)
    assert found.converged
    assert "is not determined" in found.undetermined and "x['" in found.undetermined
    assert "not determined" in repr(found)
    with pytest.raises(SolveError, match="not determined"):
        found.covariance("points")


def test_fixed_cameras_fix_the_gauge(bundle):
    start, _ = bundle
    mask = np.arange(CAMERAS) < 2
    with tuning.override(BLOCK_CHOLESKY_PRODUCTS=1):
        found = rz.levenberg_marquardt(lambda x: reprojection(x)[0], start, fixed={"cameras": mask})
    assert found.converged and not found.undetermined
    np.testing.assert_array_equal(found.x["cameras"][:2], start["cameras"][:2])
    assert not found.covariance("cameras")[:2].any()


def grid(side, rng):
    at = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [np.stack([at[1:].ravel(), at[:-1].ravel()], 1), np.stack([at[:, 1:].ravel(), at[:, :-1].ravel()], 1)]
    )
    return edges[:, 0], edges[:, 1], rng.standard_normal((len(edges), 2))


@pytest.mark.parametrize("flat", [False, True])
def test_a_network_in_any_layout(flat):
    """Unknowns as rows, or all in one line: the same solution."""
    i, j, d = grid(12, np.random.default_rng(1))

    def r(x):
        p = x.reshape(-1, 2)
        return np.sinh(0.3 * (p[i] - p[j] - d)), 0.1 * p

    with tuning.override(BLOCK_CHOLESKY_PRODUCTS=1):
        found = rz.levenberg_marquardt(r, np.zeros(288) if flat else np.zeros((144, 2)))
    exact = rz.levenberg_marquardt(r, np.zeros(288), method="dense")
    assert found.converged and "block Cholesky, minimum degree" in found.method
    np.testing.assert_allclose(np.ravel(found.x), exact.x, atol=1e-7)


def test_the_order_is_found_once_for_a_function(monkeypatch):
    i, j, d = grid(10, np.random.default_rng(1))
    r = rz.function(lambda x, d: (np.sin(x[i] - x[j]) - 0.1 * d, x - 0.5))
    made = []
    plan = cholesky.BlockCholesky.__init__
    monkeypatch.setattr(cholesky.BlockCholesky, "__init__", lambda self, *a: (made.append(1), plan(self, *a))[1])
    with tuning.override(BLOCK_CHOLESKY_PRODUCTS=1):
        for k in range(3):
            assert rz.levenberg_marquardt(r, np.zeros((200, 2))[:100], d * (1.0 + k)).converged
    assert len(made) <= 1
