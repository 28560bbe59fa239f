"""A cluster of atoms: Lennard-Jones energy, forces, relaxation, and normal modes from the Hessian."""

import numpy as np
from scipy.optimize import minimize

import riesz as rz


def energy(x, depth=1.0, size=1.0):
    """The sum over pairs of 4ε((σ/r)¹² − (σ/r)⁶)."""
    i, j = np.triu_indices(len(x), 1)
    r = np.linalg.norm(x[i] - x[j], axis=1)
    s6 = (size / r) ** 6
    return np.sum(4 * depth * (s6**2 - s6))


def data(rng, n=6):
    """Atoms near the corners of a lattice."""
    corners = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3)
    return (1.2 * corners[rng.permutation(27)[:n]] + 0.05 * rng.normal(size=(n, 3)),)


def main():
    """Relaxes seven atoms and looks at how they vibrate."""
    (x,) = data(np.random.default_rng(5), n=7)
    both = rz.value_and_grad(lambda v: energy(v.reshape(-1, 3)))
    found = minimize(both, x.ravel(), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 500})
    x = found.x.reshape(-1, 3)
    forces = -rz.grad(energy)(x)
    modes = np.linalg.eigvalsh(rz.hessian(energy)(x).to_dense())
    print(
        f"energy {both(data(np.random.default_rng(5), n=7)[0].ravel())[0]:.4f} → {found.fun:.6f} (the best of seven atoms has −16.505384)"
    )
    print(f"largest force {np.max(np.abs(forces)):.1e}; they sum to {np.max(np.abs(forces.sum(axis=0))):.1e}")
    print(
        f"{np.sum(np.abs(modes) < 1e-5)} modes cost nothing: 3 shifts and 3 rotations; the others {np.array2string(modes[6:], precision=1)}"
    )


if __name__ == "__main__":
    main()
