"""A pose graph in the plane: poses from noisy relative measurements with robust losses, some of which are wrong."""

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import spsolve

import riesz as rz


def relative(a, b):
    """Poses b seen from poses a; each row is x, y, angle."""
    c, s = np.cos(a[:, 2]), np.sin(a[:, 2])
    d = b - a
    seen = np.empty_like(d)
    seen[:, 0] = c * d[:, 0] + s * d[:, 1]
    seen[:, 1] = -s * d[:, 0] + c * d[:, 1]
    seen[:, 2] = d[:, 2]
    return seen


def residuals(free, edges, measured, weight=10.0):
    """Differences of measured and computed relative poses; the first pose is the origin."""
    poses = np.zeros((len(free) // 3 + 1, 3))
    poses[1:] = free.reshape(-1, 3)
    r = relative(poses[edges[:, 0]], poses[edges[:, 1]]) - measured
    r[:, 2] = np.arctan2(np.sin(r[:, 2]), np.cos(r[:, 2]))
    return (weight * r).ravel()


def cost(free, edges, measured, scale=1.0):
    """Geman and McClure's loss of the length of each residual: wrong edges do not count."""
    e = np.sum(residuals(free, edges, measured).reshape(-1, 3) ** 2, axis=1)
    return 0.5 * np.sum(e / (e / scale**2 + 1))


def data(rng, n=30, loops=12, wrong=2):
    """A walk in a circle with loop closures, a few of them wrong."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    truth = np.stack([np.sin(angle), 1 - np.cos(angle), angle], axis=1)
    odometry = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    closures = np.sort(np.stack([rng.permutation(n)[:loops], rng.permutation(n)[:loops]], axis=1), axis=1)
    closures = closures[closures[:, 0] != closures[:, 1]]
    edges = np.concatenate([odometry, closures])
    measured = relative(truth[edges[:, 0]], truth[edges[:, 1]]) + 0.01 * rng.normal(size=(len(edges), 3))
    measured[-wrong:] += [1.0, -0.5, 0.3]
    return truth[1:].ravel() + 0.05 * rng.normal(size=3 * n - 3), edges, measured, truth


def gauss_newton(free, edges, measured, steps=10):
    """Steps by the sparse normal equations, each residual weighted by what the robust loss makes of it."""
    J = rz.jacobian(lambda u: residuals(u, edges, measured))
    for _ in range(steps):
        r, L = residuals(free, edges, measured), J(free).to_sparse()
        w = np.repeat(1 / (np.sum(r.reshape(-1, 3) ** 2, axis=1) + 1) ** 2, 3)
        free = free - spsolve((L.T @ L.multiply(w[:, None])).tocsc(), L.T @ (w * r))
    return free


def main():
    """The robust fit, by Gauss-Newton and by a trust region with products with the Hessian."""
    start, edges, measured, truth = data(np.random.default_rng(1))
    found = gauss_newton(start, edges, measured)
    print(f"cost {cost(start, edges, measured):.3f} → {cost(found, edges, measured):.5f}")
    f = lambda u: cost(u, edges, measured)  # noqa: E731
    newton = optimize.minimize(rz.value_and_grad(f), found, jac=True, hessp=rz.hvp(f), method="trust-ncg")
    print(f"Newton: {newton.fun:.5f}, error {np.abs(newton.x.reshape(-1, 3) - truth[1:]).max():.4f}")


if __name__ == "__main__":
    main()
