"""np.bincount and histograms, with fixed and with computed places."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riesz as rz

RNG = np.random.default_rng(0)
X, W, AT = RNG.normal(size=20), RNG.normal(size=20), RNG.integers(0, 5, 20)
EDGES = np.array([-1.0, 0.0, 0.5, 2.0])


def same(f, *args):
    """Value, shapes and types are NumPy's."""
    ours, theirs = rz.function(f)(*args), f(*args)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        assert_allclose(a, b, atol=1e-14)


def test_bincount_of_arguments():
    same(lambda w, i: np.bincount(i, w), W, AT)
    same(lambda i: np.bincount(i), AT)
    same(lambda w, i: np.bincount(i, minlength=9, weights=w), W, AT)
    same(lambda x: np.bincount((x**2).astype(int), x), X)  # another length at other numbers
    same(lambda x: np.bincount((x**2).astype(int), x), 2 * X)
    same(lambda i: np.bincount(i), AT[:0])
    J = rz.jacobian(lambda w: np.bincount(AT, w))(W)
    assert_allclose(rz.jacobian(lambda w, i: np.bincount(i, w))(W, AT).to_dense(), J.to_dense())
    with pytest.raises(ValueError, match="negative"):
        rz.function(lambda i: np.bincount(i))(AT - 3)


@pytest.mark.parametrize(
    ("bins", "span", "density", "weights"),
    itertools.product([5, EDGES, EDGES.tolist()], [None, (-1.5, 1.0)], [None, True], [None, W]),
)
def test_histogram(bins, span, density, weights):
    same(lambda x: np.histogram(x, bins, span, density, weights), X)
    same(lambda x: np.histogram(x.reshape(4, 5), bins, span, density), X)
    same(lambda x, w: np.histogram(x, bins, span, density, w), X, W)
    same(lambda w: np.histogram(X, bins, span, density, weights=w), W)


def test_histograms_in_more_dimensions():
    same(lambda x, w: np.histogram2d(x, w, 4), X, W)
    same(lambda x, w: np.histogram2d(x, w, [3, 4], density=True, weights=x), X, W)
    same(lambda w: np.histogram2d(X, X, [EDGES, EDGES], weights=w), W)
    points = lambda x: np.stack([x, x**2, x**3], axis=1)  # noqa: E731
    f = lambda x, w: np.histogramdd(points(x), (2, 3, 2), weights=w)[0]  # noqa: E731
    assert_allclose(rz.function(f)(X, W), f(X, W))


def test_derivatives_of_histograms():
    total = lambda w: np.histogram(X, EDGES, weights=w)[0]  # noqa: E731
    J = rz.jacobian(total)(W)
    assert_allclose(J.to_dense(), np.stack([total(e) for e in np.eye(20)], axis=1))
    assert J.to_sparse().nnz == np.sum((X >= -1) & (X <= 2))
    ends = rz.grad(lambda x: np.histogram(x, 4)[1] @ np.arange(5.0))(X)  # the edges move with the ends
    expected = np.zeros(20)
    expected[np.argmin(X)], expected[np.argmax(X)] = 2.5, 7.5
    assert_allclose(ends, expected)
    weighed = rz.grad(lambda w: np.sum(np.histogram(X, 4, weights=w, density=True)[0] ** 2))
    f = lambda w: np.sum(np.histogram(X, 4, weights=w, density=True)[0] ** 2)  # noqa: E731
    h = 1e-6 * W
    assert_allclose(weighed(2 + W) @ h, (f(2 + W + h) - f(2 + W - h)) / 2, rtol=1e-6)
