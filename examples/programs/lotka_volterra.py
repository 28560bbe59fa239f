"""Predators and prey by the classical Runge-Kutta method; sensitivities of the orbit and a fit of the rates."""

import numpy as np

import riesz as rz


def rates(state, theta):
    """Growth of prey and predators."""
    prey, predators = state
    a, b, c, d = theta
    return np.array([a * prey - b * prey * predators, d * prey * predators - c * predators])


def rk4(state, theta, dt):
    """One step of order four."""
    k1 = rates(state, theta)
    k2 = rates(state + 0.5 * dt * k1, theta)
    k3 = rates(state + 0.5 * dt * k2, theta)
    k4 = rates(state + dt * k3, theta)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def orbit(theta, state, steps=8, dt=0.1):
    """The states after each step, with a Python loop."""
    states = []
    for _ in range(steps):
        state = rk4(state, theta, dt)
        states.append(state)
    return np.array(states)


def final(theta, state, steps=8, dt=0.1):
    """The last state only, with rz.fori_loop."""
    return rz.fori_loop(0, steps, lambda i, s: rk4(s, theta, dt), state)


def data(rng):
    """Rates and a first state."""
    return np.array([1.1, 0.4, 0.4, 0.1]) * (1 + 0.1 * rng.normal(size=4)), np.array([10.0, 5.0])


def main():
    """Sensitivities, and Gauss-Newton on noisy observations."""
    rng = np.random.default_rng(0)
    truth, state = np.array([1.1, 0.4, 0.4, 0.1]), np.array([10.0, 5.0])
    observed = orbit(truth, state, 100)[9::10] * (1 + 0.02 * rng.normal(size=(10, 2)))
    S = rz.jacobian(final, (0, 1))(truth, state, 100)
    print("d(prey, predators at t = 10) / d(a, b, c, d, prey₀, predators₀):")
    print(np.array2string(S.to_dense(), precision=3, suppress_small=True))
    theta = np.array([1.0, 0.35, 0.45, 0.12])
    for i in range(5):
        r = (orbit(theta, state, 100)[9::10] - observed).ravel()
        print(f"step {i}   ‖residual‖ {np.linalg.norm(r):9.5f}   rates {np.array2string(theta, precision=4)}")
        J = rz.jacobian(lambda q: orbit(q, state, 100)[9::10])(theta).to_dense()
        theta = theta - np.linalg.lstsq(J, r)[0]


if __name__ == "__main__":
    main()
