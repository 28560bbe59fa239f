"""The heat equation with a conductivity that varies in space, by Crank-Nicolson: a linear system per step, and its adjoint backwards in time."""

import numpy as np

import riesz as rz


def stiffness(log_k, dx):
    """−(k u')' on a rod with cold ends; k at the edges between cells is the harmonic mean."""
    k = np.exp(log_k)
    edges = 2 / (1 / k[:-1] + 1 / k[1:])
    edges = np.concatenate([k[:1], edges, k[-1:]])
    return (np.diag(edges[:-1] + edges[1:]) - np.diag(edges[1:-1], 1) - np.diag(edges[1:-1], -1)) / dx**2


def simulate(log_k, u, steps, dt, dx):
    """The temperatures after each step."""
    A = stiffness(log_k, dx)
    eye = np.eye(len(u))
    implicit, explicit = eye + 0.5 * dt * A, eye - 0.5 * dt * A

    def advance(u, _):
        u = np.linalg.solve(implicit, explicit @ u)
        return u, u

    return rz.loop(advance, u, length=steps)[1]


def misfit(log_k, u0, observed, sensors, dt=0.02, dx=0.1, smoothness=1e-4):
    """Squared error at the sensors, with a penalty on rough conductivities."""
    history = simulate(log_k, u0, len(observed), dt, dx)
    return np.sum((history[:, sensors] - observed) ** 2) + smoothness * np.sum(np.diff(log_k) ** 2)


def data(rng, n=10, steps=6):
    """Conductivity to start with, a warm middle, and what sensors see."""
    x = np.linspace(0, 1, n)
    u0 = np.exp(-20 * (x - 0.4) ** 2)
    sensors = np.arange(0, n, 2)
    observed = simulate(-2.0 + np.sin(5 * x), u0, steps, 0.02, 0.1)[:, sensors]
    return -2.0 + 0.3 * rng.normal(size=n), u0, observed, sensors


def main():
    """Levenberg-Marquardt for the conductivity."""
    rng = np.random.default_rng(0)
    n, steps = 24, 40
    x = np.linspace(0, 1, n)
    u0, sensors = np.exp(-20 * (x - 0.4) ** 2), np.arange(0, n, 3)
    truth = -2.0 + np.sin(5 * x)
    observed = simulate(truth, u0, steps, 0.02, 0.1)[:, sensors]
    log_k = np.full(n, -2.0) + 0.01 * rng.normal(size=n)
    damping = 1e-2
    for i in range(12):
        value, slope = rz.value_and_grad(misfit)(log_k, u0, observed, sensors, smoothness=1e-9)
        print(
            f"step {i:2d}   misfit {value:.3e}   gradient {np.linalg.norm(slope):.2e}   error of ln k {np.max(np.abs(log_k - truth)):.4f}"
        )
        J = rz.jacobian(lambda q: simulate(q, u0, steps, 0.02, 0.1)[:, sensors])(log_k).to_dense()
        tried = log_k - np.linalg.solve(2 * J.T @ J + damping * np.eye(n), slope)
        better = misfit(tried, u0, observed, sensors, smoothness=1e-9) < value
        log_k, damping = (tried, damping / 10) if better else (log_k, damping * 10)


if __name__ == "__main__":
    main()
