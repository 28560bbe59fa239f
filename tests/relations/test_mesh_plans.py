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
from riesz.relations.cpu.groups import Groups
from riesz.relations.jax.exchange_lists import Sums, exchange_lists
from riesz.relations.jax.fixed_trees import fixed_trees

RNG = np.random.default_rng(0)
CODE = Path(__file__).parent.parent / "support" / "on_eight_devices.py"


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_eight_devices_compute_what_one_does(kind):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, CODE, kind], capture_output=True, text=True, env={**os.environ, **flags})
    assert not done.returncode, done.stderr[-3000:]


def _given(lists, sent):
    """What devices get of what they send, in NumPy."""
    D, came, begin = lists.devices, np.zeros_like(sent), 0
    if lists.rounds is None:
        wide = lists.room // D
        for p in range(D):
            for q in range(D):
                came[q, p * wide : (p + 1) * wide] = sent[p, q * wide : (q + 1) * wide]
    for one in lists.rounds or ():
        assert len({p for p, _ in one.pairs}) == len({q for _, q in one.pairs}) == len(one.pairs)
        for p, q in one.pairs:
            came[q, begin : begin + one.room] = sent[p, begin : begin + one.room]
        begin += one.room
    return came


def _summed(blocks, sums, size):
    """Sums on each device, in NumPy."""
    filled = np.concatenate([blocks, np.zeros((len(blocks), 1))], axis=1)
    y = np.zeros((len(blocks), size + 1))
    for d in range(len(blocks)):
        times = 1.0 if sums.times is None else sums.times[d]
        at = np.arange(size) if sums.at is None else sums.at[d]
        np.add.at(y[d], at, filled[d][sums.rows[d]] * times)
    return y[:, :-1]


def _applied(lists, x):
    """What devices with these lists do, in NumPy; rows that are read where blocks are filled up would be nan."""
    blocks = np.full((lists.devices, lists.sources), np.nan)
    blocks.reshape(-1)[: len(x)] = x
    send, here, away = lists.sums
    came = _given(lists, _summed(blocks, send, lists.room))
    return (_summed(blocks, here, lists.targets) + _summed(came, away, lists.targets)).reshape(-1)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
@pytest.mark.parametrize(("n", "m", "count"), [(40, 32, 200), (37, 5, 100), (3, 60, 90), (50, 50, 0), (1, 1, 3)])
def test_lists_of_random_pairs(n, m, count, devices):
    matrix = np.zeros((m, n), dtype=int)
    np.add.at(matrix, (RNG.integers(0, m, count), RNG.integers(0, n, count)), 1)
    groups, x, w = rz.relation(seg(n), seg(m), matrix.T).groups, RNG.normal(size=n), RNG.normal(size=m)
    found = {}
    for owner in ("target", "source", "both", "auto"):
        lists = exchange_lists(groups, devices, owner)
        assert np.allclose(_applied(lists, x)[:m], matrix @ x)
        assert np.allclose(_applied(lists.turned, w)[:n], matrix.T @ w)
        assert lists.turned.turned == lists or devices > 1
        assert devices > 1 or lists.moved == 0
        found[owner] = lists.sent
    block, place = -(-n // devices), -(-m // devices)
    far = [(i, j) for i, j in np.argwhere(matrix) if i // place != j // block]
    assert found["target"] == len({(i // place, j) for i, j in far})
    assert found["source"] == len({(i, j // block) for i, j in far})
    assert found["both"] <= found["auto"] <= min(found["target"], found["source"])


def test_hubs_on_both_sides_are_split_between_owners():
    n, D = 80, 8  # 0 gives to all, all give to 41
    pairs = [*[(0, i) for i in range(n)], *[(i, 41) for i in range(1, n)]]
    groups = rz.relation(seg(n), seg(n), pairs).groups
    by = {owner: exchange_lists(groups, D, owner) for owner in ("target", "source", "auto")}
    assert by["auto"].owner == "both" and by["auto"].sent == 2 * (D - 1)
    assert min(by["target"].sent, by["source"].sent) > 60
    x = RNG.normal(size=n)
    assert np.allclose(_applied(by["auto"], x), rz.relation(seg(n), seg(n), pairs).plan()(x))


def test_neighbours_exchange_what_they_share_only():
    n, D = 800, 8
    sources = (np.arange(n)[:, None] + np.arange(-3, 4)).clip(0, n - 1).ravel()
    lists = exchange_lists(Groups(n, 7 * np.arange(n + 1), sources), D)
    assert [one.room for one in lists.rounds] == [3, 3] and lists.sent == lists.moved == 2 * 3 * (D - 1)


def test_lists_of_unequal_length_leave_little_room_free():
    n, D = 640, 8
    likely = 1.0 / np.arange(1, n + 1)
    source, target = RNG.choice(n, (2, 6 * n), p=likely / likely.sum())
    for kind in ("contiguous", "degree"):
        groups = rz.relation(seg(n), seg(n), np.stack([source, target], 1)).arranged(D, kind).relation.groups
        lists = exchange_lists(groups, D)
        assert lists.rounds is None or lists.room <= 2 * lists.busiest
        held = sum(
            [(sums.rows < most).sum(1) for sums, most in zip(lists.sums[1:], (lists.sources, lists.room), strict=True)]
        )
        assert held.max() < (1.25 if kind == "degree" else 8) * held.mean()


@pytest.mark.parametrize("by", ["contiguous", "degree", "vector"])
def test_arranged_relations_are_the_same_sums_in_another_order(by):
    graph = rz.relation(seg(30), seg(30), RNG.integers(0, 2, (30, 30)))
    between = rz.relation(seg(25), seg(14), RNG.integers(0, 3, (25, 14)))
    one = by if by != "vector" else RNG.integers(0, 4, 30)
    two = by if by != "vector" else (RNG.integers(0, 4, 25), RNG.integers(0, 4, 14))
    for R, given in ((graph, one), (between, two)):
        parts, v = R.arranged(4, given), RNG.normal(size=(R.source.size, 2))
        assert np.allclose(parts.back(parts.relation.plan()(parts.placed(v))), R.plan()(v))
        assert parts.relation.source.size % 4 == parts.relation.target.size % 4 == 0
        assert parts.relation.count == R.count
    parts = graph.arranged(4, one)
    assert parts.sources is parts.targets


def test_few_pairs_are_between_parts_made_by_metis():
    pytest.importorskip("pymetis")
    at, new = np.arange(144).reshape(12, 12), RNG.permutation(144)
    ends = [np.stack([a.ravel(), b.ravel()], 1) for a, b in ((at[1:], at[:-1]), (at[:, 1:], at[:, :-1]))]
    mesh = rz.relation(seg(144), seg(144), new[np.concatenate(ends)])
    sent = {by: exchange_lists(mesh.arranged(4, by).relation.groups, 4).sent for by in ("contiguous", "metis")}
    assert 3 * sent["metis"] < sent["contiguous"]


def test_without_metis_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(RelationError, match="pip install pymetis, or take by='degree'"):
        relations.diagonal(seg(6)).arranged(2, "metis")


def test_arrangements_that_cannot_be_are_refused():
    graph, between = relations.diagonal(seg(6)), relations.full(seg(6), seg(2))
    for R, by, says in [
        (graph, "random", "by is 'contiguous', 'degree', 'metis'"),
        (graph, [0, 1], "a device for each of 6 elements"),
        (graph, [0.0] * 6, "type float64"),
        (graph, [0, 1, 2, 3, 4, 5], "devices are 0 to 3; by has 0 to 5"),
        (between, [0] * 6, "give the devices of both"),
    ]:
        with pytest.raises(RelationError, match=says):
            R.arranged(4, by)
    with pytest.raises(RelationError, match="devices is how many there are"):
        graph.arranged(0)


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_trees_of_sums_do_not_depend_on_the_number_of_devices(devices):
    n, m = 60, 41
    R = rz.relation(seg(n), seg(m), RNG.integers(0, 4, (n, m)) // 2)
    x = RNG.normal(size=n) * 10.0 ** RNG.integers(-8, 8, n)
    found = []
    for D in (1, devices):
        form = fixed_trees(R, D)
        rows = _applied(form.leaves, x).reshape(D, -1)
        for first, second in form.levels:
            rows = np.concatenate([rows, np.zeros((D, 1))], 1)
            rows = np.take_along_axis(rows, first, 1) + np.take_along_axis(rows, second, 1)
        found.append(_summed(rows, Sums(form.ends, None, None), form.targets).reshape(-1)[:m])
    assert (found[0] == found[1]).all() and np.allclose(found[0], R.plan()(x))


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
    with pytest.raises(RelationError, match="deterministic is 'fixed'"):
        R.plan(mesh=mesh, deterministic="all")
    with pytest.raises(RelationError, match="the first ends in 2, the second starts at 5"):
        plan @ plan
