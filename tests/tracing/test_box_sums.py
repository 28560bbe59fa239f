"""Sums into large boxes of an array, r[1:] += v: against NumPy, and against sums of vectors that matrices spread."""

from typing import Any

import numpy as np
import pytest

import riesz as rz

SHAPES = [(9,), (5, 6), (3, 4, 3)]
MADE = {
    "computed": lambda x: x**3,
    "zeros": lambda x: np.zeros(x.shape),
    "ones": lambda x: np.ones(x.shape),
    "by columns": lambda x: np.zeros(x.shape, order="F"),
    "transposed": lambda x: np.sin(x.T).T,
    "a copy": lambda x: x.copy(),
}


def part(rng: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """A box: ends cut off, every second place, turned round, one place, or all of an axis."""
    kinds = [slice(1, None), slice(None, -1), slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, 2)]
    return tuple([kinds[k] for k in rng.choice(6, len(shape), p=[0.3, 0.25, 0.25, 0.1, 0.05, 0.05])])


def program(seed: int, make: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A function that adds to boxes of an array, and the same with a matrix for each sum."""
    rng = np.random.default_rng(seed)
    places = np.arange(int(np.prod(shape))).reshape(shape)
    sums: list[Any] = []
    for _ in range(6):
        at = part(rng, shape)
        P = np.eye(places.size)[:, places[at].ravel()]
        sums.append((at, P, rng.choice([-1, 1]), rng.random() < 0.25, rng.choice(["own", "other", "number", "row"])))

    def summand(x: Any, r: Any, at: Any, kind: str) -> Any:
        if kind == "number":
            return 0.5
        if kind == "row":
            return np.cos(x[at][..., :1])
        return r[at] * 0.5 if kind == "own" else np.sin(x[at])

    def written(x: Any) -> Any:
        r, seen = make(x), 0.0
        for at, _, sign, read, kind in sums:
            v = summand(x, r, at, kind)
            if sign > 0:
                r[at] += v
            else:
                r[at] -= v
            if read:
                seen = seen + r[at].sum() ** 2
                r[0] *= 2.0
        return r * x + seen

    def spread(x: Any) -> Any:
        r, seen = make(x), 0.0
        for at, P, sign, read, kind in sums:
            v = summand(x, r, at, kind) * np.ones(places[at].shape)
            r = r + sign * (P @ v.reshape(-1)).reshape(shape)
            if read:
                seen = seen + r[at].sum() ** 2
                r = r * np.where(places < places[0].size, 2.0, 1.0)
        return r * x + seen

    return written, spread


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("made", MADE)
def test_random_sums_into_boxes(made: str, shape: tuple[int, ...]):
    x, w = np.random.default_rng(1).normal(size=(2, *shape))
    for seed in range(5):
        written, spread = program(seed, MADE[made], shape)
        np.testing.assert_allclose(rz.function(written)(x), written(x), rtol=1e-12, atol=1e-12)
        found, wanted = [rz.grad(lambda x, f=f: (w * f(x)).sum())(x) for f in (written, spread)]
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-11)


def test_sums_into_boxes_are_padded_sums():
    def written(u: Any) -> Any:
        r = u**3
        d0, d1 = u[1:] - u[:-1], u[:, 1:] - u[:, :-1]
        r[1:] += d0
        r[:-1] -= d0
        r[:, 1:] += d1
        r[:, :-1] -= d1
        return r

    def padded(u: Any) -> Any:
        d0, d1 = u[1:] - u[:-1], u[:, 1:] - u[:, :-1]
        r = u**3 + np.pad(d0, ((1, 0), (0, 0))) - np.pad(d0, ((0, 1), (0, 0)))
        return r + np.pad(d1, ((0, 0), (1, 0))) - np.pad(d1, ((0, 0), (0, 1)))

    u = np.random.default_rng(2).normal(size=(7, 5))
    np.testing.assert_allclose(rz.function(written)(u), written(u), rtol=1e-14)
    assert len(rz.jacobian(written)(u).instance.program) <= len(rz.jacobian(padded)(u).instance.program)
    one, other = [rz.jacobian(f)(u).to_sparse() for f in (written, padded)]
    assert (one != other).nnz == 0 and one.nnz == other.nnz
