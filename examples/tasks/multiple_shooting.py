"""An orbit through observations: a Runge-Kutta integrator of many steps, multiple shooting, block-tridiagonal systems."""

import numpy as np

import riesz as rz


def field(y, p):
    """Van der Pol's oscillator with a spring that hardens."""
    mu, k = p
    return np.stack([y[..., 1], mu * (1 - y[..., 0] ** 2) * y[..., 1] - y[..., 0] - k * y[..., 0] ** 3], axis=-1)


def rk4(y, p, h):
    """One step of Runge and Kutta."""
    a = field(y, p)
    b = field(y + h / 2 * a, p)
    c = field(y + h / 2 * b, p)
    d = field(y + h * c, p)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


def integrate(y, p, h, steps):
    """Many steps."""
    return rz.fori_loop(0, steps, lambda i, y: rk4(y, p, h), y)


def written(y0, p, h, steps):
    """The same with all states kept, in plain Python."""
    ys = np.zeros((steps + 1, 2))
    ys[0] = y0
    for i in range(steps):
        ys[i + 1] = rk4(ys[i], p, h)
    return ys


def residuals(s, p, observed, h, steps):
    """Multiple shooting: states at the starts of segments, which must meet, near what was observed."""
    ends = integrate(s[:-1], p, h, steps)
    return 30.0 * (ends - s[1:]), s[:, 0] - observed


def shoot(s, p, observed, h, steps, rounds=8):
    """Gauss-Newton on states and parameters. The block of the states is block-tridiagonal, two columns border it."""
    J = rz.jacobian(residuals, (0, 1))
    for _ in range(rounds):
        L = J(s, p, observed, h, steps)
        r = residuals(s, p, observed, h, steps)
        normal = L.gram() + 1e-9 * rz.id
        ds, dp = normal.solve(L.H(r))
        s, p = s - ds, p - dp
    return s, p


def data(rng, segments=12, h=0.05, steps=8, p=(1.2, 0.3)):
    """Positions at the starts of segments, with noise."""
    states = [np.array([1.0, 0.5])]
    for _ in range(segments):
        states.append(np.asarray(integrate(states[-1], np.array(p), h, steps)))
    truth = np.array(states)
    return truth, truth[:, 0] + 1e-3 * rng.normal(size=segments + 1)


def main():
    """A gradient through 10,000 steps, and a fit."""
    p = np.array([1.2, 0.3])
    final = lambda p: np.sum(integrate(np.array([1.0, 0.5]), p, 0.002, 10_000) ** 2)  # noqa: E731
    print("gradient through 10,000 steps", rz.grad(final)(p))
    truth, observed = data(np.random.default_rng(0))
    start = np.stack([observed, np.gradient(observed, 0.4)], axis=1)
    s, found = shoot(start, np.array([1.0, 0.0]), observed, 0.05, 8)
    print("parameters", np.round(found, 4), "of", p, "  states within", np.abs(s - truth).max().round(5))


if __name__ == "__main__":
    main()
