"""Bundle adjustment along its observations: plain steps, NumPy tiles, a compiled loop, and jitted JAX, in double precision.

Medians of several runs on the same input in the same process; results compared. Run: python bench/components.py
"""

from __future__ import annotations

import numpy as np
from timing import row, timed

import riesz as rz
from riesz.calculus.derive import derive_program
from riesz.programs.components import components
from riesz.programs.program import Program, outputs

OBSERVATIONS, CAMERAS, POINTS = 204_472, 100, 20_000


def project(np, cameras, X):
    """Pixels of points, each seen by its own camera: Rodrigues' rotation, centre, focal length, principal point, two radial coefficients."""
    rotation, centre, focal, principal, radial = cameras[:, :3], cameras[:, 3:6], cameras[:, 6:7], cameras[:, 7:9], cameras[:, 9:]
    angle = np.sqrt(np.sum(rotation**2, axis=1, keepdims=True))
    axis, moved = rotation / angle, X - centre
    turned = np.cos(angle) * moved + np.sin(angle) * np.cross(axis, moved) + (1 - np.cos(angle)) * np.sum(axis * moved, axis=1, keepdims=True) * axis
    plane = turned[:, :2] / turned[:, 2:]
    r2 = np.sum(plane**2, axis=1, keepdims=True)
    return plane * (1 + radial[:, :1] * r2 + radial[:, 1:] * r2**2) * focal + principal


def residual(np, cameras, X, weights, features):
    """Weighted errors of reprojection, one row for each observation."""
    return weights[:, None] * (project(np, cameras, X) - features)


def data(rng):
    """Cameras around points, and who sees what."""
    pose = np.concatenate([0.2 * rng.normal(size=(CAMERAS, 3)), rng.normal(size=(CAMERAS, 3)) - [0, 0, 8]], axis=1)
    lens = np.concatenate([np.full((CAMERAS, 1), 300.0), np.full((CAMERAS, 2), 50.0), 0.01 * rng.normal(size=(CAMERAS, 2))], axis=1)
    at, to = rng.integers(CAMERAS, size=OBSERVATIONS), rng.integers(POINTS, size=OBSERVATIONS)
    values = np.concatenate([pose, lens], axis=1), rng.normal(size=(POINTS, 3)), rng.uniform(0.5, 1.5, OBSERVATIONS)
    return values, at, to, rng.normal(size=(OBSERVATIONS, 2))


def primal(values, at, to, features):
    """The residual, with gathers of cameras and points."""
    f = rz.function(lambda cameras, X, weights: residual(np, cameras[at], X[to], weights, features))
    record, leaves = f.at(values)
    code = components(record.program)
    seconds, expected = timed(lambda: f(*values))
    row("residual: plain steps", seconds)
    for backend in ("numpy", "numba"):
        code.run(leaves, backend=backend)
        seconds, (found,) = timed(lambda backend=backend: code.run(leaves, backend=backend), 15)
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)
        row(f"residual: {backend}, {code.size} operations", seconds)
    return expected


def jacobian_blocks(rows: Program, program: Program) -> Program:
    """∂y/∂r at each position for rows r = rows(x): the derivative of the program at all unit vectors, one output for each."""
    whole = Program()
    xs = [whole.input(rows.shapes[s]) for s in rows.inputs]
    given = outputs(rows, whole, xs)
    shapes = [program.shapes[s] for s in program.inputs]
    derivative = derive_program(program).derivative
    found: list[int] = []
    for j, shape in enumerate(shapes):
        for unit in np.eye(int(np.prod(shape[1:]))).reshape(-1, *shape[1:]):
            directions = [whole.const(np.broadcast_to(unit, shape)) if k == j else whole.zeros(other) for k, other in enumerate(shapes)]
            found += outputs(derivative, whole, [*given, *directions])
    return whole.prune(xs, found)


def jacobian(values, at, to, features):
    """The numbers of the sparse Jacobian, 2 × 15 for each observation, written where CSR keeps them."""
    gathers, leaves = rz.function(lambda cameras, X, weights: (cameras[at], X[to], weights)).at(values)
    rows = [values[0][at], values[1][to], values[2]]
    f, _ = rz.function(lambda c, x, w: residual(np, c, x, w, features)).at(tuple(rows))
    code = components(jacobian_blocks(gathers.program, f.program))
    columns = [np.array([j, j + 15]) for j in range(15)]
    found = np.empty((OBSERVATIONS, 30))
    results = []
    for backend in ("numpy", "numba"):
        code.write(leaves, found, columns, backend)
        seconds, _ = timed(lambda backend=backend: code.write(leaves, found, columns, backend))
        row(f"Jacobian blocks: {backend}, {code.size} operations", seconds)
        results.append(found.reshape(-1, 2, 15).copy())
    assert np.allclose(*results, rtol=1e-9, atol=1e-9)
    return results[0]


def in_jax(values, at, to, features, expected, blocks):
    """The same by JAX: jitted; blocks by jacfwd under vmap."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    given = [jnp.asarray(x) for x in values]
    f = jax.jit(lambda c, x, w: residual(jnp, c[at], x[to], w, features))
    f(*given).block_until_ready()
    seconds, found = timed(lambda: f(*given).block_until_ready(), 15)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)
    row("residual: JAX", seconds)

    def single(z, feature):
        return residual(jnp, z[None, :11], z[None, 11:14], z[14:], feature[None])[0]

    for name, derivative in (("jacfwd", jax.jacfwd), ("jacrev", jax.jacrev)):
        J = jax.jit(lambda c, x, w, d=derivative: jax.vmap(d(single))(jnp.concatenate([c[at], x[to], w[:, None]], axis=1), features))
        J(*given).block_until_ready()
        seconds, found = timed(lambda J=J: J(*given).block_until_ready())
        assert np.allclose(found, blocks, rtol=1e-8, atol=1e-8)
        row(f"Jacobian blocks: JAX, vmap of {name}", seconds)


def main():
    values, at, to, features = data(np.random.default_rng(0))
    expected = primal(values, at, to, features)
    blocks = jacobian(values, at, to, features)
    in_jax(values, at, to, features, expected, blocks)


if __name__ == "__main__":
    main()
