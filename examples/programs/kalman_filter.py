"""Log-likelihood of a linear state-space model by the Kalman filter; noise levels are found by maximum likelihood."""

import numpy as np
from scipy.optimize import minimize

import riesz as rz


def log_likelihood(params, y, dt=1.0):
    """ln p(y) of a position with a drifting velocity, seen in noise; params are the logs of both standard deviations and a damping."""
    q, r, damping = np.exp(params)
    F = np.array([[1.0, dt], [0.0, 1.0 - damping]])
    H = np.array([[1.0, 0.0]])
    Q = q**2 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    R = r**2 * np.eye(1)
    m, P = np.zeros(2), 10.0 * np.eye(2)
    total = 0.0
    for observed in y:
        m, P = F @ m, F @ P @ F.T + Q
        innovation, S = observed - H @ m, H @ P @ H.T + R
        K = np.linalg.solve(S, H @ P).T
        m, P = m + K @ innovation, P - K @ S @ K.T
        total += -0.5 * (innovation @ np.linalg.solve(S, innovation) + np.linalg.slogdet(2 * np.pi * S)[1])
    return total


def data(rng, steps=6):
    """A random path, observed in noise."""
    velocity = np.cumsum(0.3 * rng.normal(size=steps))
    return np.log([0.5, 0.8, 0.05]), (np.cumsum(velocity) + 0.5 * rng.normal(size=steps))[:, None]


def main():
    """Maximum likelihood by BFGS with riesz's gradient; standard errors from its Hessian."""
    params, y = data(np.random.default_rng(0), steps=50)
    both = rz.value_and_grad(lambda p: -log_likelihood(p, y) + 0.5 * (p[2] + 3) ** 2)
    found = minimize(both, params, jac=True, method="BFGS")
    H = rz.hessian(lambda p: -log_likelihood(p, y) + 0.5 * (p[2] + 3) ** 2)(found.x).to_dense()
    errors = np.sqrt(np.diag(np.linalg.inv(H)))
    print(
        f"log-likelihood {log_likelihood(params, y):.3f} → {log_likelihood(found.x, y):.3f} in {found.nit} iterations"
    )
    for name, value, error in zip(("process noise", "observation noise", "damping"), found.x, errors, strict=True):
        print(f"  {name:18s} {np.exp(value):.3f}   (× or ÷ {np.exp(error):.2f})")


if __name__ == "__main__":
    main()
