"""Rows of bench/gpu.py that are models: stencils, networks, bodies, cameras. Each gives inputs, riesz, JAX, by hand in JAX (or None), torch (or None)."""

from __future__ import annotations

import numpy as np

import riesz as rz


def stencil(n, steps):
    """Gradient of some steps of diffusion on a torus, by shifted copies."""
    import jax
    import jax.numpy as jnp

    def step(xp, u):
        return u + 0.1 * (xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1) - 4.0 * u)

    def energy(xp, u):
        for _ in range(steps):
            u = step(xp, u)
        return xp.sum(u * u)

    def by_hand(u):
        """A step is symmetric: the gradient is 2 A²ᵏ u."""
        return 2.0 * jax.lax.fori_loop(0, 2 * steps, lambda _, u: step(jnp, u), u)

    def in_torch(t, u):
        for _ in range(2 * steps):
            u = u + 0.1 * (t.roll(u, 1, 0) + t.roll(u, -1, 0) + t.roll(u, 1, 1) + t.roll(u, -1, 1) - 4.0 * u)
        return 2.0 * u

    given = (np.random.default_rng(0).normal(size=(n, n)),)
    return given, rz.grad(lambda u: energy(np, u)), jax.grad(lambda u: energy(jnp, u)), by_hand, in_torch


def elementwise(n):
    """A function of one number at every index."""
    import jax.numpy as jnp
    from rows.elementwise import f

    given = (np.random.default_rng(0).normal(size=n),)
    return given, lambda x: f(np, x), lambda x: f(jnp, x), None, f


def bodies(n):
    """Forces of n bodies, as the gradient of their energy."""
    import jax
    import jax.numpy as jnp

    def energy(xp, m, x):
        apart = x[:, None, :] - x[None, :, :]
        return -0.5 * xp.sum(m[:, None] * m[None, :] / xp.sqrt(xp.sum(apart * apart, -1) + 0.01))

    def by_hand(m, x):
        apart = x[:, None, :] - x[None, :, :]
        w = m[:, None] * m[None, :] * (jnp.sum(apart * apart, -1) + 0.01) ** -1.5
        return jnp.sum(w[..., None] * apart, 1)

    rng = np.random.default_rng(0)
    given = rng.uniform(0.5, 1.0, n), rng.normal(size=(n, 3))
    ours, theirs = rz.grad(lambda m, x: energy(np, m, x), 1), jax.grad(lambda m, x: energy(jnp, m, x), 1)
    return given, ours, theirs, by_hand, None


def mlp(width, batch, layers):
    """Gradient of a wide network in all its weights."""
    import jax
    import jax.numpy as jnp

    def loss(xp, weights, biases, x, y):
        for k in range(layers - 1):
            x = xp.tanh(x @ weights[k] + biases[k])
        return xp.mean((x @ weights[-1] + biases[-1] - y) ** 2)

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(layers, width, width)) / np.sqrt(width)
    x, y = rng.normal(size=(2, batch, width))
    given = weights, 0.1 * rng.normal(size=(layers, width)), x, y
    return given, rz.grad(lambda *a: loss(np, *a), (0, 1)), jax.grad(lambda *a: loss(jnp, *a), (0, 1)), None, None


def transformer(batch, length, width, heads, blocks):
    """Gradient of a few transformer blocks in their weights."""
    import jax
    import jax.numpy as jnp

    def normed(xp, x):
        x = x - xp.mean(x, -1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, -1, keepdims=True) + 1e-5)

    def loss(xp, attend, out, up, down, x, y):
        for k in range(blocks):
            z = (normed(xp, x) @ attend[k]).reshape(batch, length, 3, heads, width // heads)
            scores = xp.einsum("bihd,bjhd->bhij", z[:, :, 0], z[:, :, 1]) / (width // heads) ** 0.5
            e = xp.exp(scores - xp.max(scores, -1, keepdims=True))
            seen = xp.einsum("bhij,bjhd->bihd", e / xp.sum(e, -1, keepdims=True), z[:, :, 2])
            x = x + seen.reshape(batch, length, width) @ out[k]
            x = x + xp.tanh(normed(xp, x) @ up[k]) @ down[k]
        return xp.mean((x - y) ** 2)

    rng = np.random.default_rng(0)
    shapes = (blocks, width, 3 * width), (blocks, width, width), (blocks, width, 4 * width), (blocks, 4 * width, width)
    weights = [rng.normal(size=s) / np.sqrt(s[1]) for s in shapes]
    given = *weights, *rng.normal(size=(2, batch, length, width))
    ours, theirs = rz.grad(lambda *a: loss(np, *a), (0, 1, 2, 3)), jax.grad(lambda *a: loss(jnp, *a), (0, 1, 2, 3))
    return given, ours, theirs, None, None


def recurrent(steps, batch, width):
    """Gradient of a recurrent network written as a loop."""
    import jax
    import jax.numpy as jnp

    def ours(W, U, xs, y):
        h = rz.loop(lambda h, x: (np.tanh(h @ W + x @ U), None), np.zeros((batch, width), np.float32), xs)[0]
        return np.mean((h - y) ** 2)

    def theirs(W, U, xs, y):
        h = jax.lax.scan(lambda h, x: (jnp.tanh(h @ W + x @ U), None), jnp.zeros((batch, width), jnp.float32), xs)[0]
        return jnp.mean((h - y) ** 2)

    rng = np.random.default_rng(0)
    W, U = rng.normal(size=(2, width, width)) / np.sqrt(2 * width)
    given = W, U, rng.normal(size=(steps, batch, width)), rng.normal(size=(batch, width))
    return given, rz.grad(ours, (0, 1)), jax.grad(theirs, (0, 1)), None, None


def cameras(observations):
    """Gradient of the sum of squared residuals of a bundle adjustment, in all unknowns."""
    import jax
    import jax.numpy as jnp
    from rows.bundle_adjustment import Problem

    problem = Problem(observations)
    problem.seen = problem.seen.astype(np.float32)
    ours = rz.grad(lambda *a: np.sum(problem.residual(np, *a) ** 2), (0, 1, 2))
    theirs = jax.grad(lambda *a: jnp.sum(problem.residual(jnp, *a) ** 2), (0, 1, 2))
    return problem.at, ours, theirs, None, None


ROWS = {
    "stencil": (
        "stencil by shifts, {n}×{n}, {steps} steps",
        stencil,
        1.0,
        {"n": 2048, "steps": 20},
        {"n": 32, "steps": 8},
    ),
    "elementwise": ("elementwise f^X, {n:,} numbers", elementwise, 1.0, {"n": 10**8}, {"n": 1000}),
    "bodies": ("forces of {n:,} bodies", bodies, 1.0, {"n": 8000}, {"n": 40}),
    "mlp": (
        "MLP gradient, {layers} layers of width {width}, batch {batch}",
        mlp,
        1.0,
        {"width": 4096, "batch": 2048, "layers": 4},
        {"width": 16, "batch": 8, "layers": 4},
    ),
    "transformer": (
        "transformer gradient, {blocks} blocks, {batch}×{length}×{width}",
        transformer,
        1.0,
        {"batch": 8, "length": 512, "width": 512, "heads": 8, "blocks": 4},
        {"batch": 2, "length": 8, "width": 16, "heads": 2, "blocks": 3},
    ),
    "recurrent": (
        "recurrent network, {steps} steps, batch {batch}, width {width}",
        recurrent,
        1.0,
        {"steps": 200, "batch": 64, "width": 512},
        {"steps": 10, "batch": 4, "width": 8},
    ),
    "cameras": (
        "bundle adjustment gradient, {observations:,} observations",
        cameras,
        1.0,
        {"observations": 2 * 10**6},
        {"observations": 500},
    ),
}
