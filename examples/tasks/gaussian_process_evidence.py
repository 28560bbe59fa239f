"""A Gaussian process: the marginal likelihood, its Hessian, Laplace's approximation of the evidence."""

import numpy as np
from scipy import linalg, optimize, stats
from scipy.spatial.distance import cdist

import riesz as rz


def kernel(p, X, Y):
    """Matérn 5/2 with a length for each direction, ln amplitude and lengths given."""
    r = np.sqrt(5) * cdist(X / np.exp(p[1:3]), Y / np.exp(p[1:3]))
    return np.exp(2 * p[0]) * (1 + r + r**2 / 3) * np.exp(-r)


def negative_log_evidence(p, X, y):
    """−ln p(y | X, p), by Cholesky; the last parameter is ln of the noise."""
    K = kernel(p, X, X)
    K[np.diag_indices(len(X))] += np.exp(2 * p[3]) + 1e-8
    L = linalg.cho_factor(K, lower=True)
    return 0.5 * y @ linalg.cho_solve(L, y) + np.sum(np.log(np.diag(L[0]))) + 0.5 * len(y) * np.log(2 * np.pi)


def by_scipy(p, X, y):
    """The same by scipy.stats."""
    K = kernel(p, X, X) + (np.exp(2 * p[3]) + 1e-8) * np.eye(len(X))
    return -stats.multivariate_normal.logpdf(y, np.zeros(len(y)), K)


def posterior(p, X, y):
    """−ln p(y, p): log-normal priors on all parameters."""
    return negative_log_evidence(p, X, y) - np.sum(stats.norm.logpdf(p, [0.0, 0.0, 0.0, -2.0], 1.0))


def laplace(X, y, start):
    """The mode, the Hessian there, and ln of the evidence by Laplace's approximation."""
    found = optimize.minimize(rz.value_and_grad(posterior), start, args=(X, y), jac=True, method="BFGS")
    H = rz.hessian(posterior)(found.x, X, y)
    return found.x, H, -found.fun + 0.5 * len(start) * np.log(2 * np.pi) - 0.5 * H.logdet()


def data(rng, n=25):
    """A surface with noise."""
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(X[:, 0]) * np.cos(0.5 * X[:, 1]) + 0.1 * rng.normal(size=n)


def main():
    """The evidence of one data set."""
    X, y = data(np.random.default_rng(0), 60)
    p, H, evidence = laplace(X, y, np.zeros(4))
    print("mode", np.round(p, 3), "  standard deviations", np.round(np.sqrt(np.diag(H.inv().to_dense())), 3))
    print(f"ln evidence {evidence:.3f}")


if __name__ == "__main__":
    main()
