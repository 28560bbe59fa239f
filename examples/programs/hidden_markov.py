"""A hidden Markov model: the forward algorithm in logs; its gradient is what the backward algorithm computes."""

import numpy as np
from scipy.special import logsumexp

import riesz as rz


def log_likelihood(start, transition, means, log_sigma, y):
    """ln p(y) with unnormalised log probabilities of start and transition, and Gaussian observations."""
    log_start = start - logsumexp(start)
    log_transition = transition - logsumexp(transition, axis=1, keepdims=True)
    emission = -0.5 * ((y[:, None] - means) / np.exp(log_sigma)) ** 2 - log_sigma - 0.5 * np.log(2 * np.pi)
    alpha = log_start + emission[0]
    for e in emission[1:]:
        alpha = logsumexp(alpha[:, None] + log_transition, axis=0) + e
    return logsumexp(alpha)


def data(rng, steps=8, k=3):
    """A chain that likes to stay, and what it emits."""
    states = [0]
    for _ in range(steps - 1):
        states.append(states[-1] if rng.random() < 0.8 else int(rng.integers(k)))
    y = 2.0 * np.array(states) + 0.5 * rng.normal(size=steps)
    return (
        np.zeros(k),
        np.eye(k) + 0.1 * rng.normal(size=(k, k)),
        2.0 * np.arange(k) + 0.3 * rng.normal(size=k),
        np.zeros(k),
        y,
    )


def main():
    """The gradient in the emissions is the smoothed distribution of the states; ascent on the rest."""
    *params, y = data(np.random.default_rng(0), steps=40)
    climb = rz.value_and_grad(log_likelihood, (0, 1, 2, 3))
    for t in range(121):
        value, slope = climb(*params, y)
        if t % 30 == 0:
            print(
                f"step {t:3d}   log-likelihood {value:9.4f}   gradient {np.sqrt(sum(np.sum(g**2) for g in slope)):.4f}"
            )
        params = [p + 0.02 * g for p, g in zip(params, slope, strict=True)]
    print(
        f"means {np.array2string(params[2], precision=2)}, deviations {np.array2string(np.exp(params[3]), precision=2)}  (truth [0 2 4], 0.5)"
    )


if __name__ == "__main__":
    main()
