"""Bytes and time on eight virtual devices: placed functions beside XLA's own partitioning of the same code in JAX.

    python bench/many_devices.py [part of a row's name …]

Bytes are those that come to each device in one run, counted in XLA's code; times are the best of several runs on this
machine's processors, so only ratios count.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import re
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

import riesz as rz
from riesz.relations.jax.exchange_lists import exchange_lists

jax.config.update("jax_enable_x64", True)
SIZES = {"f64": 8, "s64": 8, "f32": 4, "s32": 4, "u32": 4, "pred": 1}
COLLECTIVES = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"
line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
square = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
rng = np.random.default_rng(0)


def moved(code):
    total = 0
    for row in code.splitlines():
        m = re.search(rf"= (.*?) ({COLLECTIVES})(?:-start)?\(", row)
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", m.group(1)) if m else []:
            total += SIZES[kind] * int(np.prod([int(k) for k in shape.split(",") if k]))
    return total


def timed(f, args):
    jax.block_until_ready(f(*args))
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def mixture(xp, a, m, s, X):
    t = a - 0.5 * xp.sum(((X[:, None, :] - m) * xp.exp(s)) ** 2, -1) + xp.sum(s, -1)
    top = xp.max(t, 1, keepdims=True)
    return xp.sum(xp.log(xp.sum(xp.exp(t - top), 1)) + top[:, 0])


def network(xp, V, W, X, Y):
    return xp.mean((xp.tanh(X @ V) @ W - Y) ** 2)


def attention(xp, Q, K, V, O, x):  # noqa: E741
    q, k, v = [(x @ W).reshape(*x.shape[:2], 8, -1) for W in (Q, K, V)]
    s = xp.einsum("bthe,bshe->bhts", q, k) / q.shape[-1] ** 0.5
    a = xp.exp(s - xp.max(s, -1, keepdims=True))
    a = a / xp.sum(a, -1, keepdims=True)
    return xp.sum(xp.sin(xp.einsum("bhts,bshe->bthe", a, v).reshape(x.shape) @ O))


def logistic(xp, w, X, y):
    return xp.sum(xp.log1p(xp.exp(X @ w)) - y * (X @ w))


def graph_network(total, xp, W, U, v):
    h = xp.tanh(total(v) @ W)
    return xp.sum(xp.tanh(total(h) @ U) ** 2)


def reprojection(xp, camera, point, cameras, points, seen):
    w, t = cameras[camera, :3], cameras[camera, 3:]
    X = points[point]
    turned = xp.stack([w[:, i] * X[:, j] - w[:, j] * X[:, i] for i, j in ((1, 2), (2, 0), (0, 1))], 1)
    Y = X + turned + t
    return Y[:, :2] / (5.0 + Y[:, 2:]) - seen


def conjugate_gradients(product, b, steps):
    x, r, p = 0.0 * b, b, b
    for _ in range(steps):
        Ap = product(p)
        a = (r @ r) / (p @ Ap)
        new = r - a * Ap
        x, p, r = x + a * p, new + (new @ new) / (r @ r) * p, new
    return x


def edges(n, count, near):
    to = np.sort(rng.integers(0, n, count))
    return (to + rng.integers(-50, 51, count)) % n if near else rng.integers(0, n, count), to


def fewest(R):
    """Rows that must come to the device that most rows come to, if each travels once."""
    return exchange_lists(R.groups, 8).busiest


def rows():
    """Name, function by riesz, the same by JAX, arguments, placement, mesh, and the bytes that must come to a device
    where arrays are cut so."""
    n, d, k, h = 16_000, 16, 32, 512
    X, Y, y, w = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)

    def pair(f, *which):
        own = rz.grad(lambda *xs: f(np, *xs), argnums=which)
        return own, jax.grad(lambda *xs: f(jnp, *xs), argnums=which)

    given = rng.normal(size=k), rng.normal(size=(k, d)), 0.1 * rng.normal(size=(k, d)), X
    yield "mixture", *pair(mixture, 0, 1, 2), given, {rz.seg(n): "data"}, line, 8 * (k + 2 * k * d)
    given = 0.1 * rng.normal(size=(d, h)), 0.1 * rng.normal(size=(h, d)), X, Y
    yield "MLP, data", *pair(network, 0, 1), given, {rz.seg(n): "data"}, line, 8 * 2 * d * h
    yield "MLP, model", *pair(network, 0, 1), given, {rz.seg(h): "data"}, line, 8 * n * d
    least = 8 * (n // 4 * d + d * h)
    yield "MLP, both", *pair(network, 0, 1), given, {rz.seg(n): "data", rz.seg(h): "model"}, square, least
    given = (*[0.1 * rng.normal(size=(64, 64)) for _ in range(4)], rng.normal(size=(32, 48, 64)))
    yield "attention, data", *pair(attention, 0, 1, 2, 3), given, {4: "data"}, line, 8 * 4 * 64 * 64
    cut = dict.fromkeys(range(3), (None, "model")) | {3: "model", 4: "data"}
    least = 8 * (32 // 4 * 48 * 64 + 4 * 64 * 32)
    yield "attention, both", *pair(attention, 0, 1, 2, 3), given, cut, square, least

    def hvp(w, v, X, y):
        return jax.jvp(jax.grad(lambda w: logistic(jnp, w, X, y)), (w,), (v,))[1]

    own = lambda w, v, X, y: rz.hvp(lambda w: logistic(np, w, X, y))(w, v)  # noqa: E731
    yield "logistic Hessian product", own, hvp, (w, w + 1.0, X, y), {rz.seg(n): "data"}, line, 8 * d

    def newton(w, X, y, xp, product):
        residual = lambda w: xp.tanh(X @ w) - y  # noqa: E731
        return conjugate_gradients(lambda v: product(residual, w, v) + 0.1 * v, w, 3)

    own = lambda *xs: newton(*xs, np, lambda f, w, v: rz.vjp(f, w)[1](rz.jvp(f, (w,), (v,))[1])[0])  # noqa: E731
    its = lambda *xs: newton(*xs, jnp, lambda f, w, v: jax.vjp(f, w)[1](jax.jvp(f, (w,), (v,))[1])[0])  # noqa: E731
    yield "Gauss-Newton, 3 steps of CG", own, its, (w, X, y), {rz.seg(n): "data"}, line, 3 * 8 * d

    def stencil(xp, u):
        return xp.sum((u[2:] - 2.0 * u[1:-1] + u[:-2]) ** 2)

    yield "stencil", *pair(stencil, 0), (np.tile(y, 16),), {rz.seg(16 * n): "data"}, line, 8 * 4
    for near in (True, False):
        source, target = edges(n, 8 * n, near)
        R = rz.relation(rz.seg(n), rz.seg(n), np.stack([source, target], 1))
        own = lambda v, R=R: np.tanh(rz.red(R)(v))  # noqa: E731
        its = lambda v, s=source, t=target: jnp.tanh(jax.ops.segment_sum(v[s], t, num_segments=n))  # noqa: E731
        kind = "local" if near else "random"
        yield f"red_R, {kind}", own, its, (X,), {rz.seg(n): "data"}, line, 8 * d * fewest(R)
        total = lambda v, s=source, t=target: jax.ops.segment_sum(v[s], t, num_segments=n)  # noqa: E731
        own = rz.grad(lambda W, U, v, R=R: graph_network(rz.red(R), np, W, U, v), argnums=(0, 1))
        its = jax.grad(lambda W, U, v, total=total: graph_network(total, jnp, W, U, v), argnums=(0, 1))
        given = 0.1 * rng.normal(size=(d, d)), 0.1 * rng.normal(size=(d, d)), X
        yield f"GNN, {kind}", own, its, given, {rz.seg(n): "data"}, line, 8 * d * (3 * fewest(R) + 2 * d)

    m, count = 40, 4
    camera, point = rng.integers(0, m, n * count), np.repeat(np.arange(n), count)
    given = 0.1 * rng.normal(size=(m, 6)), rng.normal(size=(n, 3)), rng.normal(size=(n * count, 2))

    def bundle(xp):
        return lambda *xs: xp.sum(reprojection(xp, camera, point, *xs) ** 2)

    own, its = rz.grad(bundle(np), argnums=(0, 1)), jax.grad(bundle(jnp), argnums=(0, 1))
    yield "bundle adjustment", own, its, given, {rz.seg(n): "data", rz.seg(n * count): "data"}, line, 8 * m * 6


def main():
    wanted = sys.argv[1:]
    print(f"{'':28}{'riesz B':>12}{'least B':>12}{'XLA B':>12}{'ratio':>8}{'riesz ms':>10}{'XLA ms':>10}")
    for name, own, its, args, place, mesh, least in rows():
        if wanted and not any([word in name for word in wanted]):
            continue
        g = rz.compile(own, *args, mesh=mesh, place=place)
        there = [jax.device_put(x, s) for x, s in zip(args, g.shardings, strict=True)]
        found = g(*there)
        other = jax.jit(its, out_shardings=jax.tree.map(lambda x: x.sharding, found))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7), found, other(*there))
        mine = moved(jax.jit(lambda *xs, g=g: g(*xs)).lower(*there).compile().as_text())
        its_bytes = moved(other.lower(*there).compile().as_text())
        assert mine == g.cost.moved, (name, mine, g.explain())
        ratio = f"{its_bytes / max(mine, 1):.1f}"
        times = f"{timed(g, there):10.1f}{timed(other, there):10.1f}"
        print(f"{name:28}{mine:12,}{least:12,}{its_bytes:12,}{ratio:>8}{times}", flush=True)


if __name__ == "__main__":
    main()
