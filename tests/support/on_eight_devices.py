"""Run by tests/relations/test_mesh_plans.py in a process of its own: JAX takes the number of devices when it starts."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import riesz as rz
from riesz import relations, seg

jax.config.update("jax_enable_x64", True)
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType[sys.argv[1]],))
cut = NamedSharding(mesh, PartitionSpec("data"))
rng = np.random.default_rng(0)


def bytes_moved(function, *args):
    """By kind of communication, in the code that XLA made."""
    found = {}
    for line in function.lower(*args).compile().as_text().splitlines():
        m = re.search(
            r"= (.*?) (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(", line
        )
        if m:
            shapes = re.findall(r"(?:f64|f32|s32)\[([\d,]*)\]", m.group(1))
            size = 8 * sum([int(np.prod([int(k) for k in s.split(",") if k] or [1])) for s in shapes])
            found[m.group(2)] = found.get(m.group(2), 0) + size
    return found


def checked(R, owner, width):
    x, w = rng.normal(size=(R.source.size, *width)), rng.normal(size=(R.target.size, *width))
    plan, alone = R.plan(mesh=mesh, axis="data", owner=owner), R.plan()
    assert plan.adjoint.adjoint is plan and plan.adjoint.moved() == plan.moved()

    @jax.jit
    def all_of_it(x, w):
        y, dy = jax.jvp(plan, (x,), (2.0 * x,))
        return y, dy, plan.adjoint(w), jax.grad(lambda x: jnp.sum(jnp.sin(plan(x)) * w))(x)

    y = alone(x)
    wanted = y, 2.0 * y, alone.adjoint(w), alone.adjoint(np.cos(y) * w)
    found = all_of_it(x, w)
    assert all([np.allclose(a, b) for a, b in zip(found, wanted, strict=True)])
    assert all([bool((a == b).all()) for a, b in zip(found, all_of_it(x, w), strict=True)])


for (n, m, count, width), owner in zip(
    [(80, 64, 300, (2,)), (77, 61, 300, ()), (5, 90, 40, (3, 2))], ("auto", "target", "source"), strict=True
):
    checked(
        rz.relation(seg(n), seg(m), np.stack([rng.integers(0, n, count), rng.integers(0, m, count)], 1)), owner, width
    )
checked(rz.relation(seg(70), seg(64), np.stack([rng.integers(0, 70, 300), rng.integers(0, 64, 300)], 1)), "both", (2,))
for R in (
    relations.window(seg(80), 9),
    relations.window(seg(64), 2, step=2),
    relations.shift(seg(61), -5) | relations.diagonal(seg(61)),
    relations.shift(seg(16), 1) * relations.diagonal(seg(3)),
    relations.triangular(seg(61)),
    relations.triangular_strict(seg(64)).converse,
):
    plan = R.plan(mesh=mesh)
    assert not plan.arrays and ("without lists" in plan.explain() or not plan.moved()), plan.explain()
    checked(R, "auto", (2,))
grid = rz.relation(seg(8) * seg(6), seg(16), rng.integers(0, 2, (48, 16)))
x = rng.normal(size=(8, 6)).astype(np.float32)
y = grid.plan(mesh=mesh)(x)
assert np.allclose(y, grid.plan()(x), 1e-5) and y.dtype == np.float32

n = 8000
ends = (np.arange(n)[:, None] + np.arange(-3, 4)).clip(0, n - 1)
plan = rz.relation(seg(n), seg(n), np.stack([ends.ravel(), np.repeat(np.arange(n), 7)], 1)).plan(mesh=mesh)
x = jax.device_put(rng.normal(size=(n, 4)), cut)
both = plan @ relations.shift(seg(n), 1).plan(mesh=mesh)
assert np.allclose(both(x), plan.relation.plan()(relations.shift(seg(n), 1).plan()(np.asarray(x))))
assert both.moved() == 8 * 2 * 3 * 7 and "pairs owned by" in both.explain()
step = jax.jit(lambda x: plan(x))
assert step(x).sharding.spec[0] == "data"
moved = bytes_moved(step, x)
assert set(moved) == {"collective-permute"} and moved["collective-permute"] <= 2 * 3 * 4 * 8, moved

R = rz.relation(seg(90), seg(37), np.stack([rng.integers(0, 90, 700), rng.integers(0, 37, 700)], 1))
v, w = rng.normal(size=(90, 2)) * 10.0 ** rng.integers(-8, 8, (90, 1)), rng.normal(size=(37, 2))
found = []
for count in (1, 3, 8):
    some = Mesh(np.array(jax.devices()[:count]), ("data",), axis_types=(AxisType[sys.argv[1]],))
    same = R.plan(mesh=some, deterministic="any")
    y, back = jax.jit(lambda v, w, same=same: (same(v), jax.grad(lambda v: jnp.sum(same(v) * w))(v)))(v, w)
    found.append((np.asarray(y), np.asarray(back)))
assert np.allclose(found[0][0], R.plan()(v)) and np.allclose(found[0][1], R.plan().adjoint(w))
assert all([(a == b).all() for one in found[1:] for a, b in zip(found[0], one, strict=True)])
