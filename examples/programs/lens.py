"""Rays through a lens: spheres, Snell's law, and curvatures that make the smallest spot."""

import numpy as np
from scipy.optimize import minimize

import riesz as rz


def refract(direction, normal, ratio):
    """Snell's law in vectors; ratio is n before / n after."""
    cosine = -np.sum(direction * normal, axis=-1, keepdims=True)
    return ratio * direction + (ratio * cosine - np.sqrt(1 - ratio**2 * (1 - cosine**2))) * normal


def to_sphere(origin, direction, vertex, curvature):
    """Where rays meet a sphere with its vertex on the z axis, and its normal there; curvature 0 is a plane."""
    start = origin - np.array([0.0, 0.0, 1.0]) * vertex
    F = curvature * np.sum(start**2, axis=-1) - 2 * start[:, 2]
    G = direction[:, 2] - curvature * np.sum(direction * start, axis=-1)
    length = F / (G + np.sqrt(G**2 - curvature * F))
    point = start + length[:, None] * direction
    normal = curvature * point - np.array([0.0, 0.0, 1.0])
    return origin + length[:, None] * direction, normal


def trace(curvatures, thicknesses, indices, origin, direction):
    """Rays through all surfaces to the screen."""
    z, before = 0.0, 1.0
    for curvature, thickness, after in zip(curvatures, thicknesses, indices):  # noqa: B905
        origin, normal = to_sphere(origin, direction, z, curvature)
        direction = refract(direction, normal, before / after)
        z, before = z + thickness, after
    return origin + ((z - origin[:, 2]) / direction[:, 2])[:, None] * direction


def spot(curvatures, thicknesses, indices, origin, direction):
    """Mean squared distance of the rays on the screen from their centre."""
    hits = trace(curvatures, thicknesses, indices, origin, direction)[:, :2]
    return np.mean(np.sum((hits - np.mean(hits, axis=0)) ** 2, axis=-1))


def data(rng, rays=20):
    """A doublet, and a beam that comes in at a small angle."""
    radius, angle = np.sqrt(rng.random(rays)), 2 * np.pi * rng.random(rays)
    origin = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(rays, -2.0)], axis=-1)
    direction = np.tile([0.0, np.sin(0.02), np.cos(0.02)], (rays, 1))
    return np.array([0.08, -0.06, -0.02]), np.array([0.6, 0.3, 14.0]), np.array([1.52, 1.67, 1.0]), origin, direction


def main():
    """The curvatures with the smallest spot, by a trust region with the exact Hessian."""
    curvatures, thicknesses, indices, origin, direction = data(np.random.default_rng(0), rays=200)
    rest = (thicknesses, indices, origin, direction)
    both, second = rz.value_and_grad(spot), rz.hessian(spot)
    found = minimize(
        lambda c: both(c, *rest),
        curvatures,
        jac=True,
        hess=lambda c: second(c, *rest).to_dense(),
        method="trust-exact",
        options={"initial_trust_radius": 0.01},
    )
    print(f"spot radius {np.sqrt(spot(curvatures, *rest)):.5f} → {np.sqrt(found.fun):.5f} in {found.nit} iterations")
    print(f"curvatures {np.array2string(curvatures, precision=4)} → {np.array2string(found.x, precision=4)}")
    S = rz.hessian(spot, (0, 1))(found.x, *rest)
    print(
        f"tolerances: curvature of the spot in (curvatures, thicknesses) {np.array2string(np.diag(S.to_dense()), precision=4)}"
    )


if __name__ == "__main__":
    main()
