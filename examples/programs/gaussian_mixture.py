"""Log-likelihood of a Gaussian mixture in the form of ADBench: log weights, means, inverse covariances by their factors, a Wishart prior."""

import numpy as np
from scipy.special import logsumexp, multigammaln

import riesz as rz


def lower_triangles(icf, d):
    """Strictly lower triangular matrices from their entries, column by column."""
    upper = np.triu(np.ones((d, d), dtype=int), 1)
    position = (np.cumsum(upper).reshape(d, d) * upper).T
    padded = np.concatenate([np.zeros((icf.shape[0], 1)), icf[:, d:]], axis=1)
    return padded[:, position]


def log_wishart_prior(icf, d, gamma, m):
    """The prior's log-density, summed over the components."""
    k, n = icf.shape[0], d + m + 1
    log_diagonal, below = icf[:, :d], icf[:, d:]
    frobenius = np.sum(np.exp(log_diagonal) ** 2) + np.sum(below**2)
    constant = n * d * np.log(gamma / np.sqrt(2)) - multigammaln(0.5 * n, d)
    return k * constant + m * np.sum(log_diagonal) - 0.5 * gamma**2 * frobenius


def log_likelihood(alphas, means, icf, x):
    """ln p(x | alphas, means, icf); icf[k] holds the log diagonal of Q_k, a factor of the inverse covariance, and then what is below it."""
    n, d = x.shape
    centred = x[:, None, :] - means
    Q_centred = np.exp(icf[:, :d]) * centred + np.einsum("kij,nkj->nki", lower_triangles(icf, d), centred)
    exponents = alphas + np.sum(icf[:, :d], axis=1) - 0.5 * np.sum(Q_centred**2, axis=2)
    return -0.5 * n * d * np.log(2 * np.pi) + np.sum(logsumexp(exponents, axis=1)) - n * logsumexp(alphas)


def log_posterior(alphas, means, icf, x, gamma=1.0, m=0):
    """The likelihood times the prior, in logs."""
    return log_likelihood(alphas, means, icf, x) + log_wishart_prior(icf, x.shape[1], gamma, m)


def adbench_objective(alphas, means, icf, x, gamma=1.0, m=0):
    """The function whose gradient ADBench times; it takes the prior with the other sign."""
    return log_likelihood(alphas, means, icf, x) - log_wishart_prior(icf, x.shape[1], gamma, m)


def data(rng, n=60, d=3, k=4):
    """Points around k centres, and parameters nearby."""
    centres = 2.0 * rng.normal(size=(k, d))
    x = centres[rng.integers(k, size=n)] + 0.5 * rng.normal(size=(n, d))
    alphas = rng.normal(size=k)
    means = centres + 0.3 * rng.normal(size=(k, d))
    icf = 0.3 * rng.normal(size=(k, d * (d + 1) // 2))
    return alphas, means, icf, x


def main():
    """Climbs the posterior with Adam and watches the gradient."""
    *parameters, x = data(np.random.default_rng(0), n=200)
    climb = rz.value_and_grad(log_posterior, (0, 1, 2))
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    for t in range(1, 202):
        value, slope = climb(*parameters, x)
        first = [0.9 * a + 0.1 * g for a, g in zip(first, slope, strict=True)]
        second = [0.99 * a + 0.01 * g**2 for a, g in zip(second, slope, strict=True)]
        if t % 50 == 1:
            print(
                f"step {t - 1:4d}   log-posterior {value:10.3f}   gradient {np.sqrt(sum(np.sum(g**2) for g in slope)):9.4f}"
            )
        steps = [a / (1 - 0.9**t) / (np.sqrt(b / (1 - 0.99**t)) + 1e-8) for a, b in zip(first, second, strict=True)]
        parameters = [p + 0.03 * s for p, s in zip(parameters, steps, strict=True)]
    H = rz.hessian(log_posterior, (0, 1, 2))(*parameters, x)
    print(f"the Hessian maps {H.domain} to itself; largest eigenvalue {np.linalg.eigvalsh(H.to_dense())[-1]:.3g}")


if __name__ == "__main__":
    main()
