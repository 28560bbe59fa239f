"""Burgers' equation u_t + u u_x = ν u_xx by an explicit scheme; the adjoint over time finds where the flow began."""

import numpy as np
from scipy.optimize import minimize

import riesz as rz


def step(u, viscosity, dt, dx):
    """One step of Lax-Friedrichs with diffusion, on a periodic line."""
    left, right = np.roll(u, 1), np.roll(u, -1)
    flux = 0.5 * u**2
    speed = np.maximum(np.abs(u), np.abs(right))
    between = 0.5 * (flux + np.roll(flux, -1)) - 0.5 * speed * (
        right - u
    )  # Rusanov's flux at the right edge of each cell
    return u - dt / dx * (between - np.roll(between, 1)) + viscosity * dt / dx**2 * (left - 2 * u + right)


def simulate(u, viscosity, steps, dt, dx):
    """Many steps."""
    for _ in range(steps):
        u = step(u, viscosity, dt, dx)
    return u


def misfit(u0, viscosity, observed, steps=10, dt=0.01, dx=0.1):
    """Half the squared distance between the flow at the end and what was observed."""
    return 0.5 * dx * np.sum((simulate(u0, viscosity, steps, dt, dx) - observed) ** 2)


def data(rng, n=24):
    """A guess of the beginning, the viscosity and an observation of the end."""
    x = np.linspace(0, 2 * np.pi, n, endpoint=False)
    truth = 1.0 + np.sin(x) + 0.3 * np.cos(2 * x)
    observed = simulate(truth, 0.05, 10, 0.01, 0.1)
    return truth + 0.2 * rng.normal(size=n), 0.03, observed


def main():
    """Recovers the initial state from the final one."""
    n, steps = 64, 30
    x = np.linspace(0, 2 * np.pi, n, endpoint=False)
    dx, dt = x[1], 0.01
    truth = 1.0 + np.sin(x)
    observed = simulate(truth, 0.05, steps, dt, dx)
    both = rz.value_and_grad(misfit)
    start = np.ones(n)
    found = minimize(
        lambda u: both(u, 0.05, observed, steps, dt, dx),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 25, "ftol": 0, "gtol": 1e-10},
    )
    print(
        f"misfit {misfit(start, 0.05, observed, steps, dt, dx):.2e} → {found.fun:.2e} after {found.nit} iterations of {steps} steps"
    )
    print(f"error of the initial state {np.linalg.norm(start - truth):.2f} → {np.linalg.norm(found.x - truth):.2e}")
    slope = rz.grad(misfit, 1)(truth, 0.06, observed, steps, dt, dx)
    print(f"d misfit / d viscosity at 0.06, where 0.05 is right: {slope:.6f}")


if __name__ == "__main__":
    main()
