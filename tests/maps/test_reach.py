"""Patterns of maps with steps that are no entries: every position some point reaches, and no more than the step itself says."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import riesz as rz

RNG = np.random.default_rng(7)
ROUNDS = 5


def recurrence(c, t):
    """A carry and an output."""
    return 0.5 * c + np.sin(t), c * t


def lanes(c, t):
    """Lanes that do not mix."""
    return np.tanh(c * t), c


def rotated(c, t):
    """Lanes that mix with their neighbour."""
    return np.roll(c, 1) * t, c


def branches(x):
    """A condition that is known at run time only."""
    return rz.cond(x[0] > 0, lambda x: np.cumsum(x), lambda x: x[::-1] * 1.0, x)


CASES = {
    "running sums": (np.cumsum, (6,), 21),
    "running sums of rows": (lambda x: np.cumsum(np.sin(x), axis=1), (3, 4), 30),
    "running sums down": (lambda x: np.cumsum(np.sin(x), axis=0), (3, 4), 24),
    "from the other end": (lambda x: np.cumsum(x[::-1] ** 2)[::-1], (6,), 21),
    "part of running sums": (lambda x: np.cumsum(np.cumsum(x)[:3]), (6,), 6),
    "where": (lambda x: np.where(x > 0, np.cumsum(x), x), (6,), 21),
    "spectrum": (lambda x: np.abs(np.fft.rfft(x)) ** 2, (6,), 24),
    "spectra of columns": (lambda x: np.abs(np.fft.rfft(x, axis=0)) ** 2, (4, 3), 36),
    "filtered": (lambda x: np.fft.irfft(np.fft.rfft(x, axis=1) * np.arange(3.0), axis=1), (2, 4), 32),
    "two axes": (lambda x: np.real(np.fft.fft2(x, axes=(0, 2))) ** 2, (2, 3, 2), 48),
    "linear algebra": (lambda x: np.linalg.solve(x[:3] + 5 * np.eye(3), x[3]) ** 2, (4, 3), 36),
    "loop": (lambda x: rz.loop(recurrence, 0.3, x)[1], (6,), 21),
    "last carry": (lambda x: rz.loop(recurrence, 0.3, x)[0], (6,), 6),
    "lanes": (lambda x: rz.loop(lanes, np.ones(3), x)[0], (ROUNDS, 3), 15),
    "lanes, all rounds": (lambda x: rz.loop(lanes, np.ones(3), x)[1], (ROUNDS, 3), 30),
    "rotated": (lambda x: rz.loop(rotated, x, np.arange(1.0, 4.0))[0], (6,), 6),
    "condition": (branches, (6,), None),
}


def matrices(f, shape, points=4):
    return [rz.jacobian(f)(p) for p in RNG.normal(size=(points, *shape))]


@pytest.mark.parametrize("name", CASES)
def test_every_position_and_no_more(name):
    f, shape, count = CASES[name]
    maps = matrices(f, shape)
    patterns = [
        scipy.sparse.csr_array((np.ones(S.nnz), S.indices, S.indptr), S.shape).toarray()
        for S in [L.to_sparse() for L in maps]
    ]
    for L, pattern in itertools.product(maps, patterns):
        assert not np.any(L.to_dense()[pattern == 0])
    for L in maps:
        S = L.to_sparse()
        assert np.allclose(S.toarray(), L.matmat(np.eye(L.shape[1])))
        assert np.allclose(L.T.to_sparse().toarray(), S.toarray().T)
        assert L.sparsity().positions == S.nnz and L.sparsity().derived
        assert count is None or S.nnz == count


def test_zeros_of_a_point_are_kept():
    L = rz.jacobian(lambda x: np.cumsum(x**2))(np.zeros(4))
    assert L.to_sparse().nnz == 10 and L.sparsity().surplus == 10


def test_positions_computed_from_the_point_are_said():
    L = rz.jacobian(np.sort)(RNG.normal(size=5))
    assert L.to_sparse().nnz == 5 and not L.sparsity().derived
    assert "computed from the point" in repr(L.sparsity())


def test_several_leaves_and_sizes_of_zero():
    f = lambda a, b: {"sum": np.cumsum(a) * b, "rest": b[1:]}  # noqa: E731
    L = rz.jacobian(f, (0, 1))(RNG.normal(size=4), RNG.normal(size=4))
    S = L.to_sparse()
    assert S.shape == (7, 8) and S.nnz == 10 + 4 + 3 and np.allclose(S.toarray(), L.to_dense())
    empty = rz.jacobian(lambda x: np.cumsum(x) * 2.0)(np.zeros(0))
    assert empty.to_sparse().shape == (0, 0)
