"""red_R on a mesh of eight virtual devices: the same sums, few rows on the way, the adjoint along the same lists."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import riesz as rz
from riesz import relations, seg
from riesz.errors import RelationError
from riesz.relations.jax.exchange_lists import exchange_lists

RNG = np.random.default_rng(0)
CODE = Path(__file__).parent.parent / "support" / "on_eight_devices.py"


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_eight_devices_compute_what_one_does(kind):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, CODE, kind], capture_output=True, text=True, env={**os.environ, **flags})
    assert not done.returncode, done.stderr[-3000:]


def _applied(lists, x):
    """What devices with these lists do, in NumPy; rows that are read from places left free would be nan."""
    D = lists.devices
    blocks = np.full((D, lists.sources), np.nan)
    blocks.reshape(-1)[: len(x)] = x
    blocks = np.concatenate([blocks, np.zeros((D, 1))], axis=1)
    sent = np.take_along_axis(blocks, lists.send, 1)
    came, begin = np.zeros((D, lists.room + 1)), 0
    if lists.shifts is None:
        wide = lists.room // D
        for p in range(D):
            for q in range(D):
                came[q, p * wide : (p + 1) * wide] = sent[p, q * wide : (q + 1) * wide]
    for k, room in lists.shifts or ():
        for p in range(D):
            came[(p + k) % D, begin : begin + room] = sent[p, begin : begin + room]
        begin += room
    y = np.zeros((D, lists.targets + 1))
    for rows, sums in ((blocks, lists.here), (came, lists.away)):
        for d in range(D):
            np.add.at(y[d], sums.at[d], rows[d][sums.rows[d]] * (1.0 if sums.times is None else sums.times[d]))
    return y[:, :-1].reshape(-1)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
@pytest.mark.parametrize(("n", "m", "count"), [(40, 32, 200), (37, 5, 100), (3, 60, 90), (50, 50, 0), (1, 1, 3)])
def test_lists_of_random_pairs(n, m, count, devices):
    matrix = np.zeros((m, n), dtype=int)
    np.add.at(matrix, (RNG.integers(0, m, count), RNG.integers(0, n, count)), 1)
    groups = rz.relation(seg(n), seg(m), matrix.T).groups
    lists = exchange_lists(groups.size, groups.offsets, groups.index, groups.times, devices)
    x = RNG.normal(size=n)
    assert np.allclose(_applied(lists, x)[:m], matrix @ x)
    needed = {(i // lists.targets, j) for i, j in np.argwhere(matrix) if i // lists.targets != j // lists.sources}
    assert lists.sent == len(needed) <= lists.moved or not needed
    assert devices > 1 or lists.moved == 0


def test_neighbours_exchange_what_they_share_only():
    n, D = 800, 8
    sources = (np.arange(n)[:, None] + np.arange(-3, 4)).clip(0, n - 1).ravel()
    lists = exchange_lists(n, 7 * np.arange(n + 1), sources, None, D)
    assert lists.shifts == ((1, 3), (7, 3)) and lists.sent == 2 * 3 * (D - 1) and lists.moved == 2 * 3 * D


def test_what_does_not_fit_is_refused():
    jax = pytest.importorskip("jax")
    mesh, R = jax.make_mesh((1,), ("data",)), relations.segments([0, 2, 5])
    plan = R.plan(mesh=mesh)
    assert plan.axis == "data" and "no row travels" in plan.explain()
    with pytest.raises(RelationError, match="axis='model' names no axis of the mesh, which has 'data'"):
        R.plan(mesh=mesh, axis="model")
    with pytest.raises(RelationError, match="owner is one of"):
        R.plan(mesh=mesh, owner="me")
    with pytest.raises(RelationError, match="reduces values over"):
        plan(np.ones(4))
