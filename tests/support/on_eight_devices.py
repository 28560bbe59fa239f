"""Run by tests/relations/test_mesh_plans.py in a process of its own: JAX takes the number of devices when it starts."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

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
checked(relations.window(seg(80), 9), "auto", ())
grid = rz.relation(seg(8) * seg(6), seg(16), rng.integers(0, 2, (48, 16)))
x = rng.normal(size=(8, 6)).astype(np.float32)
y = grid.plan(mesh=mesh)(x)
assert np.allclose(y, grid.plan()(x), 1e-5) and y.dtype == np.float32

n = 8000
ends = (np.arange(n)[:, None] + np.arange(-3, 4)).clip(0, n - 1)
plan = rz.relation(seg(n), seg(n), np.stack([ends.ravel(), np.repeat(np.arange(n), 7)], 1)).plan(mesh=mesh)
x = jax.device_put(rng.normal(size=(n, 4)), cut)
step = jax.jit(lambda x: plan(x))
assert step(x).sharding.spec[0] == "data"
moved = bytes_moved(step, x)
assert set(moved) == {"collective-permute"} and moved["collective-permute"] <= 2 * 3 * 4 * 8, moved
