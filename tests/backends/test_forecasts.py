"""What is told of machines that are not here: communications as in code for 256 devices, relations of which only counts
are known beside real ones, times of collectives, memory as XLA counts it."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

import riesz as rz
from riesz import seg
from riesz.backends.devices.communication import Exchange
from riesz.backends.devices.forecasts import sized, timed
from riesz.backends.devices.machines import MACHINES, Link, Machine
from riesz.errors import RelationError, SpaceError
from riesz.relations import Lattice, Near, Uniform, counted

jax = pytest.importorskip("jax")
H100 = MACHINES["H100"]
COLLECTIVE = r'"stablehlo\.(all_reduce|all_gather|all_to_all|collective_permute|reduce_scatter)"'


def zeros(*shape):
    return np.broadcast_to(np.float32(0), shape)


def pairs_of(law, nodes, degree=16):
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(nodes), degree)
    if type(law) is Near:
        return np.stack([(target + rng.integers(-law.reach, law.reach + 1, target.size)).clip(0, nodes - 1), target], 1)
    if type(law) is Lattice:
        side = round(nodes ** (1 / 3))
        x = np.arange(side)
        spread = sum([((x >> k) & 1) << (3 * k) for k in range(side.bit_length() - 1)])
        at = spread[:, None, None] << 2 | spread[:, None] << 1 | spread
        near = [np.roll(at, way, axis) for axis in range(3) for way in (1, -1)]
        return np.concatenate([np.stack([v.ravel(), at.ravel()], 1) for v in near])
    chance = np.ones(nodes)
    if law.degrees:
        chance = rng.choice([d for d, _ in law.degrees], nodes, p=[share for _, share in law.degrees]).astype(float)
    return np.stack([rng.choice(nodes, target.size, p=chance / chance.sum()), target], 1)


def in_code(text):
    """Bytes that come to each device, from the types of the results of collectives in StableHLO."""
    total, lines = 0, text.splitlines()
    for k, line in enumerate(lines):
        if re.search(COLLECTIVE, line):
            ends = next(m[1] for row in lines[k:] if (m := re.search(r": \(tensor[^)]*\) -> (.*)$", row)))
            for shape, kind in re.findall(r"tensor<((?:\d+x)*)(\w+)>", ends):
                total += {"f32": 4}[kind] * int(np.prod([int(n) for n in shape.split("x") if n]))
    return total


def local_sums(v):
    R = rz.relation(seg(4096), seg(4096), pairs_of(Near(7), 4096))
    return np.sum(np.tanh(rz.red(R)(v)) ** 2)


def network(V, W, X):
    return np.mean((np.tanh(X @ V) @ W) ** 2)


@pytest.mark.parametrize(
    ("f", "shapes", "axes", "place"),
    [
        (rz.grad(local_sums), [(4096, 3)], {"data": 256}, {seg(4096): "data"}),
        (
            rz.grad(network, argnums=(0, 1)),
            [(8, 64), (64, 4), (256, 8)],
            {"d": 32, "m": 8},
            {seg(256): "d", seg(64): "m"},
        ),
    ],
)
def test_code_for_256_devices_moves_what_is_told(f, shapes, axes, place):
    given = [zeros(*s) for s in shapes]
    mesh = jax.sharding.AbstractMesh(tuple(axes.values()), tuple(axes))
    g = rz.compile(f, *given, mesh=mesh, place=place)
    there = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s) for x, s in zip(given, g.shardings, strict=True)]
    code = jax.jit(lambda *xs: g(*xs)).trace(*there).lower(lowering_platforms=("cpu",)).as_text()
    assert in_code(code) == g.cost.moved > 0
    told = g.forecast("H100")
    assert told == rz.compile(f, *given, backend="steps").forecast("H100", axes, place)
    assert told.moving > 0 and told.seconds == told.computing + told.moving
    with pytest.raises(SpaceError, match="the mesh is abstract, it has no devices"):
        g(*given)


HUBS = Uniform(((4, 0.9), (40, 0.09), (400, 0.01)))


@pytest.mark.parametrize("devices", [8, 64])
@pytest.mark.parametrize("law", [Near(20), Uniform(), HUBS, Lattice(3)], ids=["near", "uniform", "hubs", "lattice"])
def test_counted_relations_exchange_as_many_rows_as_real_ones(law, devices):
    N = seg(4096)
    real = rz.relation(N, N, pairs_of(law, 4096))
    R = counted(N, N, real.count, law)
    told, rows = [Exchange("exchange", r, 0, ("d",), devices).room for r in (R, real)]
    assert 0.9 * rows <= told <= 1.35 * rows
    assert R.traffic(devices) == R.converse.traffic(devices) and R.converse.converse is R
    assert R.traffic(1).rows == 0


def test_a_forecast_from_counts_is_that_from_pairs():
    N, law = seg(4096), Near(20)
    real = rz.relation(N, N, pairs_of(law, 4096))
    given = zeros(4096, 4)
    told = [
        rz.compile(rz.grad(lambda v, R=R: np.sum(np.sin(rz.red(R)(v)))), given, backend="steps").forecast(
            "H100", {"d": 16}, {N: "d"}
        )
        for R in (real, counted(N, N, real.count, law))
    ]
    for a, b in zip(*told, strict=True):  # real pairs may belong to either side, which saves an eighth of the rows
        assert a == pytest.approx(b, rel=0.15)


def test_rims_of_stencils_are_told():
    n = 2**20

    def rough(u):
        return np.sum((u[2:] - 2.0 * u[1:-1] + u[:-2]) ** 2)

    g = rz.compile(rz.grad(rough), zeros(n, 4), backend="steps")
    told = g.forecast("H100", {"d": 64}, {seg(n): "d"})
    assert 0 < told.moved <= 4 * 2 * 4 * 4 and told.moving > 0  # two rows of four numbers on either side
    assert told.memory < 8 * (n * 16 / 64)


def test_nothing_is_made_for_a_million_million_pairs():
    n = 2**36
    N = seg(n)
    R = counted(N, N, 16 * n, Uniform())

    def rounds(V, x):
        top = np.max(x, 1, keepdims=True)
        return np.sum(np.tanh(rz.red(R)(np.exp(x - top) @ V)) ** 2) + np.sum(top)

    tracemalloc.start()
    g = rz.compile(rz.grad(rounds, argnums=(0, 1)), zeros(16, 16), zeros(n, 16), backend="steps")
    told = [g.forecast("TPU v5p", {"d": d}, {N: "d"}) for d in (8, 512, 4096)]
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert [one.fits for one in told] == [False, False, True]
    assert told[0].computing > 60 * told[1].computing > 420 * told[2].computing
    with pytest.raises(RelationError, match="only the number of pairs is known: it can be derived and placed"):
        rz.red(R)(zeros(n))


def test_laws_are_checked():
    with pytest.raises(RelationError, match=r"where partners lie is said by relations\.Uniform\(\)"):
        counted(seg(3), seg(3), 5, "random")
    with pytest.raises(RelationError, match=r"the number of pairs is a whole number; got 2\.5"):
        counted(seg(3), seg(3), 2.5, Uniform())


# -- machines ------------------------------------------------------------------------------------------------------

NEAR = Link(1e9, 1e-6)
FLAT = Machine("flat", 1e12, 1e12, 1e11, 1e10, NEAR, NEAR, 8)


def passed_on(count, size):
    """Seconds to gather parts by doubling, message by message: everybody sends all it has to a partner."""
    held, seconds = size / count, 0.0
    while held < size:
        seconds += NEAR.latency + held / NEAR.bandwidth
        held *= 2
    return seconds


@pytest.mark.parametrize("count", [2, 8, 64, 1024])
def test_collectives_take_what_their_messages_take(count):
    size = 1 << 20
    for inside in (1, 4, 8, 4096):  # links are alike: groups change nothing
        gathered = FLAT.collective("all-gather", size, count, inside)
        assert gathered == pytest.approx(passed_on(count, size))
        assert FLAT.collective("reduce-scatter", size // count, count, inside) == pytest.approx(gathered)
        assert FLAT.collective("all-reduce", size, count, inside) == pytest.approx(2 * gathered)
    each = FLAT.collective("all-to-all", size, count, 8)
    direct = (count - 1) * (NEAR.latency + size / count / NEAR.bandwidth)
    assert each <= direct * (1 + 1e-12) and FLAT.collective("all-to-all", 1 << 30, 8, 8) == pytest.approx(
        7 * (NEAR.latency + (1 << 27) / NEAR.bandwidth)
    )
    assert FLAT.collective("exchange", size, 64, 8, messages=2) == pytest.approx(2e-6 + size / 1e9)


def test_far_devices_take_longer():
    slow = FLAT._replace(far=Link(1e8, 1e-5))
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
        times = [slow.collective(kind, 1 << 20, 64, inside) for inside in (64, 8, 1)]
        assert times == sorted(times) and times[0] < times[1]
        assert slow.collective(kind, 1 << 20, 1, 1) == 0.0


def test_axes_of_a_mesh_that_are_near_are_faster():
    given = [zeros(64, 1024), zeros(1024, 64), zeros(2**20, 64)]
    g = rz.compile(rz.grad(network, argnums=(0, 1)), *given, backend="steps")
    place = {seg(2**20): "d", seg(1024): "m"}
    near, far = [g.forecast("H100", axes, place) for axes in ({"d": 64, "m": 8}, {"m": 8, "d": 64})]
    assert near.moving < far.moving and near.computing == far.computing


def test_memory_is_about_what_xla_counts():
    given = [np.ones((16, 64), np.float32), np.ones((64, 4), np.float32), np.ones((4096, 16), np.float32)]
    g = rz.compile(rz.grad(network, argnums=(0, 1)), *given, mesh=jax.make_mesh((1,), ("d",)), place={seg(4096): "d"})
    found = jax.jit(lambda *xs: g(*xs)).lower(*given).compile().memory_analysis()
    whole = found.argument_size_in_bytes + found.output_size_in_bytes
    assert 0 <= whole - 4 * (2 * (16 * 64 + 64 * 4) + 4096 * 16) <= 64  # and pointers to several results
    assert 0.5 < g.forecast("H100").memory / (whole + found.temp_size_in_bytes) < 2.0


def test_loops_count_each_round():
    def steps(count):
        def f(x, A):
            return np.sum(rz.fori_loop(0, count, lambda _, x: np.tanh(x @ A), x))

        g = rz.compile(f, zeros(4096, 64), zeros(64, 64), backend="steps")
        return g.forecast("H100", {"d": 4}, {seg(4096): "d"})

    assert steps(80).computing > 3.5 * steps(20).computing
    assert steps(80).memory < 1.5 * steps(20).memory


def test_plans_for_a_machine_put_first_what_fits_and_is_fastest():
    n = 2**28
    g = rz.compile(rz.grad(lambda w, X: np.sum(np.tanh(X @ w))), zeros(256), zeros(n, 256), backend="steps")
    plan = g.plan(64, "H100")
    assert [one.fits for one in plan.forecasts] == sorted([one.fits for one in plan.forecasts], reverse=True)
    assert plan.forecasts[0] == g.forecast("H100", plan.axes, plan.place) and not plan.forecasts[-1].fits
    fast = [one.seconds for one in plan.forecasts if one.fits]
    assert fast == sorted(fast) and "too much" in str(plan) and "memory" in str(plan)
    assert sorted(map(str, plan.rows)) == sorted(map(str, g.plan(64).rows)) and not g.plan(64).forecasts


def test_what_is_wrong_is_said():
    g = rz.compile(lambda x: np.sum(x), zeros(8), backend="steps")
    with pytest.raises(SpaceError, match="machine is one of 'H100', 'H200', 'TPU v5p', or a Machine; got 'H1000'"):
        g.forecast("H1000", {"d": 8}, {seg(8): "d"})
    with pytest.raises(SpaceError, match="is placed along 'e', which is no axis of the mesh: it has 'd'"):
        g.forecast("H100", {"d": 8}, {seg(8): "e"})
    with pytest.raises(SpaceError, match="mesh is a mesh of JAX devices"):
        g.forecast("H100", 8, {seg(8): "d"})


def test_words():
    assert [timed(x) for x in (2.5, 0.0031, 2e-7, 0.0)] == ["2.5 s", "3.1 ms", "0.2 µs", "0 s"]
    assert [sized(x) for x in (12, 2.4e9, 3e15)] == ["12 B", "2.4 GB", "3 PB"]
    half = H100.scaled(0.5)
    assert half.near == Link(225e9, H100.near.latency) and half.memory == H100.memory
