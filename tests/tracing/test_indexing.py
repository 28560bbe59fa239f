"""x[key] of traced arrays is what NumPy gives: random keys of every kind, wrong ones too."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import riesz as rz
from riesz.errors import RieszError

SHAPES = [(3,), (3, 4), (2, 3, 4), (0, 3), (2, 0), (1,), (1, 1), (), (2, 1, 3, 2)]
WRONG = [99, (0, 1), [[0, 1], [0]], 1.5, "a", [1.5], (True,), np.array(["a"]), [0]]


def nested(a: Any) -> Any:
    return a.tolist() if a.ndim == 0 else tuple([nested(row) for row in a])


def array(rng: random.Random, a: Any) -> Any:
    """An index array as an array, a list, tuples, or of another type."""
    return rng.choice(
        [lambda: a, a.tolist, lambda: nested(a), lambda: a.astype(np.int8) if a.dtype.kind == "i" else a]
    )()


def key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    found: list[Any] = []
    box = rng.choice([(), (2,), (3,), (2, 3), (1, 3), (0,)])
    axis, dots = 0, False
    while axis < len(shape):
        n, kind = shape[axis], rng.randrange(12)
        if kind == 0 and n:
            found.append(rng.choice([int, np.int64])(rng.randrange(-n, n)))
        elif kind in (1, 2):
            ends = [rng.choice([None, rng.randrange(-n - 1, n + 2)]) for _ in range(2)]
            found.append(slice(*ends, rng.choice([None, 1, -1, 2, -2])))
        elif kind == 3 and not dots:
            found.append(Ellipsis)
            dots = True
            axis -= rng.randrange(2)
        elif kind == 4:
            found.append(None)
            continue
        elif kind in (5, 6, 7) and n:
            size = rng.choice([box, (1,) * len(box), box[1:]])
            found.append(
                array(rng, np.array([rng.randrange(-n, n) for _ in range(int(np.prod(size)))], int).reshape(size))
            )
        elif kind == 8:
            covered = shape[axis : axis + rng.randrange(1, 3)]
            found.append(
                array(rng, np.array([rng.random() < 0.5 for _ in range(int(np.prod(covered)))], bool).reshape(covered))
            )
            axis += len(covered) - 1
        elif kind == 9 and rng.random() < 0.3:
            found.append(rng.choice([True, False, np.True_, np.array(True)]))
            continue
        elif kind == 10:
            found.append(range(0, n, 2))
        elif kind == 11 and rng.random() < 0.5:
            break
        else:
            continue
        axis += 1
    if rng.random() < 0.1:
        found.append(rng.choice(WRONG))
    return found[0] if len(found) == 1 and not isinstance(found[0], tuple) and rng.random() < 0.7 else tuple(found)


def outcome(f: Any, x: Any) -> Any:
    try:
        return f(x)
    except Exception as problem:
        return problem


@pytest.mark.parametrize("seed", range(4))
def test_any_key_gives_what_numpy_gives(seed: int):
    rng = random.Random(seed)
    for _ in range(400):
        shape = rng.choice(SHAPES)
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        k = key(rng, shape)
        wanted, found = outcome(lambda x: x[k], x), outcome(rz.function(lambda x: x[k] * 1.0), x)  # noqa: B023
        if isinstance(wanted, Exception):
            assert isinstance(found, (type(wanted), RieszError)), (shape, k, wanted, found)
        else:
            assert not isinstance(found, Exception) and np.shape(found) == np.shape(wanted), (
                shape,
                k,
                np.shape(wanted),
                found,
            )
            np.testing.assert_array_equal(found, wanted, err_msg=str((shape, k)))


@pytest.mark.parametrize("seed", range(2))
def test_computed_positions_give_what_numpy_gives(seed: int):
    rng = random.Random(seed)
    for _ in range(150):
        shape = rng.choice([(3,), (3, 4), (2, 3, 4), (2, 1, 3, 2)])
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        box = rng.choice([(), (2,), (2, 3)])
        keys: list[Any] = []
        for n in shape:
            at = np.array([rng.randrange(-n, n) for _ in range(int(np.prod(box)))]).reshape(box)
            dots = any([k is Ellipsis for k in keys])
            keys += rng.choice(
                [
                    [slice(None, None, -1)],
                    [rng.randrange(-n, n)],
                    [None, slice(None)],
                    [] if dots else [Ellipsis],
                    [at],
                    [at],
                    [at],
                ]
            )
        places = [k for k in keys if isinstance(k, np.ndarray)]
        wanted = outcome(lambda x: x[tuple(keys)], x)  # noqa: B023
        if not places or isinstance(wanted, Exception):
            continue

        def f(x: Any, *given: Any) -> Any:
            rest = iter(given)
            return x[tuple([next(rest) if isinstance(k, np.ndarray) else k for k in keys])] * 1.0  # noqa: B023

        found = rz.function(f)(x, *places)
        assert np.shape(found) == np.shape(wanted), (shape, keys)
        np.testing.assert_array_equal(found, wanted)


def test_tuples_inside_a_key_are_index_arrays():
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(
        rz.grad(lambda x: np.sum(x[(0, 1, 0), (3, 3, 2)] ** 2))(x),
        np.bincount([3, 7, 2], 2 * x.ravel()[[3, 7, 2]], 12).reshape(3, 4),
    )
    np.testing.assert_array_equal(rz.function(lambda x: x[np.ix_([0, 2], [1, 3])])(x), x[np.ix_([0, 2], [1, 3])])
    np.testing.assert_array_equal(rz.function(lambda x, i: x[[i, i + 1], [0, 1]])(x, np.array(1)), x[[1, 2], [0, 1]])
