"""Loop nests inside loops over tiles: the same numbers as step by step, without the arrays that nests over whole arrays write."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples
from test_numba_backend import agree, in_python_too, single

import riesz as rz
from riesz.backends.numba import numba_backend as numba_code
from riesz.programs.axis.tiling import tiled
from riesz.runtime import buffers

pytest.importorskip("numba")


def everywhere(patch: pytest.MonkeyPatch, tile: int) -> list[int]:
    """Every axis that can be is tiled, whatever that saves; the list says how many loops over tiles each program has."""
    found: list[int] = []

    def on_tiles(program, whole):
        apart = tiled(program, tile=tile, worth=-1)
        for slot, op in enumerate(apart.ops):
            if isinstance(op, numba_code.Tiled):
                apart.ops[slot] = numba_code._Nested(op.body, op.length, op.axes, op.tile)
        made = numba_code._Made(apart)
        found.append(len(made._tiles))
        return made

    patch.setattr(numba_code, "_on_tiles", on_tiles)
    return found


@examples(0.4)
@given(seed=st.integers(0, 10**6), tile=st.sampled_from([1, 2, 3]))
def test_random_programs(seed, tile):
    with pytest.MonkeyPatch.context() as patch:
        in_python_too(patch, 1 + seed % 3)
        everywhere(patch, tile)
        f, args = random_function(seed, inputs=1 + seed % 2, single=True)
        agree(f, args, groups=False)
        agree(f, single(args), 5e-3, groups=False)
        agree(rz.value_and_grad(lambda *xs: np.sum(np.sin(f(*xs)))), args, groups=False)


def test_random_programs_do_have_tiles():
    with pytest.MonkeyPatch.context() as patch:
        in_python_too(patch, 1)
        found = everywhere(patch, 2)
        for seed in range(12):
            f, args = random_function(seed, single=True)
            agree(f, args, groups=False)
        assert sum(found) > 5


def mixture(n: int, d: int, k: int, dtype: type = np.float64):
    """The log-likelihood of a mixture of Gaussians with diagonal covariances, and where it is looked at."""
    rng = np.random.default_rng(n)
    points = rng.normal(size=(n, d)).astype(dtype)

    def f(weights, means, logs):
        turned = (points[:, None, :] - means) * np.exp(logs)
        e = weights + np.sum(logs, axis=1) - 0.5 * np.sum(turned**2, axis=2)
        most = np.max(e, axis=1, keepdims=True)
        return np.sum(most[:, 0] + np.log(np.sum(np.exp(e - most), axis=1))) - n * np.log(np.sum(np.exp(weights)))

    at = (rng.normal(size=k), rng.normal(size=(k, d)), 0.1 * rng.normal(size=(k, d)))
    return rz.grad(f, argnums=(0, 1, 2)), [x.astype(dtype) for x in at]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_mixture_in_little_memory(dtype):
    """n × k × d numbers take 82 MB (41 in single precision); they are never there at once."""
    g, args = mixture(4000, 64, 40, dtype)
    compiled = rz.compile(g)
    found = compiled(*args)
    assert compiled.backend == "numba" and "tiles" in compiled.explain() and "def loops" in compiled.source
    wanted = rz.compile(g, backend="steps")(*args)
    tolerance = 1e-10 if dtype is np.float64 else 2e-3
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == dtype and np.allclose(x, y, rtol=tolerance, atol=tolerance * np.abs(y).max())
    buffers.forget()
    tracemalloc.start()
    compiled(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


def test_what_nests_keep_in_registers_is_not_tiled():
    """One nest from the argument to the result writes nothing between."""
    x = np.random.default_rng(0).normal(size=3_000_000)
    g = rz.compile(lambda x: np.sin(x) * np.exp(-x * x) + np.tanh(x) / (2.0 + np.cos(x)), backend="numba")
    assert (
        np.allclose(g(x)[:9], np.sin(x[:9]) * np.exp(-(x[:9] ** 2)) + np.tanh(x[:9]) / (2.0 + np.cos(x[:9])))
        and "tiles" not in g.explain()
    )


def test_the_number_of_threads_does_not_matter(monkeypatch):
    g, args = mixture(2000, 64, 50)
    results = []
    for count in ("1", "2", "3"):
        monkeypatch.setenv("RIESZ_THREADS", count)
        compiled = rz.compile(g, *args, backend="numba")
        results.append([x.tobytes() for x in compiled(*args)])
        assert "tiles" in compiled.explain()
    assert results[0] == results[1] == results[2]
