"""Nonlinear fits with scipy.optimize: derivatives from riesz where SciPy asks for jac, hess and constraint Jacobians."""

import numpy as np
from scipy import optimize, stats

import riesz as rz


def curve(p, t):
    """An exponential, a peak and a constant."""
    a, k, b, m, w, c = p
    return a * np.exp(-k * t) + b * np.exp(-0.5 * ((t - m) / w) ** 2) + c


def data(rng, n=60):
    """Noisy samples of an exponential and a peak."""
    t = np.linspace(0, 4, n)
    truth = np.array([2.0, 3.0, 1.0, 2.0, 0.3, 0.2])
    return t, curve(truth, t) + 0.01 * rng.normal(size=n), truth


def fit(t, y, start, loss="linear"):
    """Least squares by SciPy's trust region."""
    return optimize.least_squares(
        lambda p: curve(p, t) - y, start, jac=rz.jacobian(lambda p: curve(p, t) - y), loss=loss
    )


def negative_log_likelihood(q, t, y):
    """Student errors: a fit that outliers do not move. The last two parameters are ln σ and ln ν."""
    *p, log_scale, log_freedom = q
    r = y - curve(p, t)
    return -np.sum(stats.t.logpdf(r, np.exp(log_freedom), scale=np.exp(log_scale)))


def robust_fit(t, y, start, method="BFGS"):
    """Maximum likelihood by BFGS, or by Newton's method with products with the Hessian."""
    f = lambda q: negative_log_likelihood(q, t, y)  # noqa: E731
    more = {"hessp": rz.hvp(f)} if method in ("trust-ncg", "Newton-CG", "trust-krylov") else {}
    return optimize.minimize(rz.value_and_grad(f), start, jac=True, method=method, **more)


def chain_energy(u):
    """A hanging chain of unit weights: the potential energy of positions (x, y) of its joints."""
    return np.sum(u.reshape(-1, 2)[:, 1])


def chain_lengths(u, span, length):
    """Squared lengths of links between joints, with fixed ends: constraints with a sparse Jacobian."""
    joints = np.zeros((len(u) // 2 + 2, 2))
    joints[1:-1] = u.reshape(-1, 2)
    joints[-1, 0] = span
    return np.sum(np.diff(joints, axis=0) ** 2, axis=1) - length**2


def hanging_chain(n=12, span=3.0, length=0.3):
    """trust-constr with the Jacobian of the constraints and the Hessian of the Lagrangian as sparse matrices."""
    x = np.linspace(0, span, n + 2)[1:-1]
    start = np.stack([x, -0.5 * np.sin(np.pi * x / span)], axis=1).ravel()
    lengths = lambda u: chain_lengths(u, span, length)  # noqa: E731
    J = rz.jacobian(lengths)
    links = optimize.NonlinearConstraint(
        lengths,
        0.0,
        0.0,
        jac=lambda u: J(u).to_sparse(),
        hess=lambda u, v: rz.hessian(lambda u: v @ lengths(u))(u).to_sparse(),
    )
    return optimize.minimize(
        chain_energy,
        start,
        jac=rz.grad(chain_energy),
        hess=lambda u: rz.hessian(chain_energy)(u).to_sparse(),
        constraints=links,
        method="trust-constr",
        options={"gtol": 1e-8, "maxiter": 300},
    )


def main():
    """The three fits."""
    t, y, truth = data(np.random.default_rng(0))
    start = np.array([1.0, 2.0, 0.5, 1.8, 0.4, 0.0])
    print("least squares ", np.round(fit(t, y, start).x, 3), "truth", truth)
    y[::9] += 1.0
    found = robust_fit(t, y, np.array([*start, -2.0, 1.0]))
    print("with outliers ", np.round(found.x[:6], 3))
    chain = hanging_chain()
    print("hanging chain  lowest joint at", chain.x.reshape(-1, 2)[:, 1].min().round(4), "in", chain.nit, "iterations")


if __name__ == "__main__":
    main()
