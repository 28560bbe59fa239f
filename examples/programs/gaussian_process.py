"""Marginal likelihood of a Gaussian process: a kernel with a length per dimension, Cholesky, triangular solves."""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

import riesz as rz


def kernel(log_lengths, log_amplitude, A, B):
    """Squared exponential, with its own length in each direction."""
    scaled = (A[:, None, :] - B[None, :, :]) / np.exp(log_lengths)
    return np.exp(2 * log_amplitude - 0.5 * np.sum(scaled**2, axis=-1))


def negative_log_likelihood(params, X, y):
    """−ln p(y | X, params)."""
    n = len(y)
    K = kernel(params["lengths"], params["amplitude"], X, X) + np.exp(2 * params["noise"]) * np.eye(n)
    L = np.linalg.cholesky(K)
    white = solve_triangular(L, y, lower=True)
    return 0.5 * white @ white + np.sum(np.log(np.diag(L))) + 0.5 * n * np.log(2 * np.pi)


def posterior_mean(params, X, y, new):
    """What the process expects at new places."""
    K = kernel(params["lengths"], params["amplitude"], X, X) + np.exp(2 * params["noise"]) * np.eye(len(y))
    L = np.linalg.cholesky(K)
    weights = solve_triangular(L, solve_triangular(L, y, lower=True), lower=True, trans="T")
    return kernel(params["lengths"], params["amplitude"], new, X) @ weights


def data(rng, n=12, d=2):
    """A smooth function of the first coordinate, seen in noise."""
    X = rng.uniform(-2, 2, size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
    return {"lengths": 0.1 * rng.normal(size=d), "amplitude": 0.1, "noise": -1.0}, X, y


def main():
    """Fits the hyperparameters; directions that do not matter get long lengths."""
    params, X, y = data(np.random.default_rng(0), n=60, d=3)
    V = rz.space_of(params)
    both = rz.value_and_grad(negative_log_likelihood)

    def flat(v):
        value, slope = both(V.unflatten(v), X, y)
        return value, V.flatten(slope)

    found = minimize(flat, V.flatten(params), jac=True, method="BFGS")
    best = V.unflatten(found.x)
    print(
        f"−ln p {flat(V.flatten(params))[0]:.3f} → {found.fun:.3f} in {found.nit} iterations, gradient {np.linalg.norm(found.jac):.1e}"
    )
    print(
        f"lengths {np.array2string(np.exp(best['lengths']), precision=2)}, noise {np.exp(best['noise']):.3f} (truth 0.2)"
    )
    slope = rz.jacobian(posterior_mean, 3)(best, X, y, np.zeros((1, 3)))
    print(f"the slope of the mean at 0 is {np.array2string(slope.to_dense()[0], precision=3)} (truth [2 0 0])")


if __name__ == "__main__":
    main()
