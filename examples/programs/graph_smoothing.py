"""Smoothing a surface on a graph: a quadratic energy, whose Hessian is the graph Laplacian, and one that keeps edges sharp."""

import numpy as np
from scipy.sparse.linalg import cg

import riesz as rz


def energy(x, edges, weights, measured, fidelity=1.0):
    """Squared differences along edges, and the distance to what was measured."""
    i, j = edges.T
    along = x[i] - x[j]
    return 0.5 * np.sum(weights[:, None] * along**2) + 0.5 * fidelity * np.sum((x - measured) ** 2)


def robust_energy(x, edges, weights, measured, fidelity=1.0, scale=0.1):
    """The same with lengths of differences that grow linearly when large (Charbonnier)."""
    along = x[edges[:, 0]] - x[edges[:, 1]]
    lengths = np.sqrt(scale**2 + np.sum(along**2, axis=1)) - scale
    return weights @ lengths + 0.5 * fidelity * np.sum((x - measured) ** 2)


def grid(n):
    """The edges of a grid of n × n vertices."""
    number = np.arange(n * n).reshape(n, n)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def data(rng, n=5):
    """A noisy surface over a grid, with edges of different weight."""
    place = np.linspace(-1, 1, n)
    surface = np.stack([*np.meshgrid(place, place), np.sign(place)[:, None] * np.ones(n)], axis=-1).reshape(-1, 3)
    edges = grid(n)
    measured = surface + 0.1 * rng.normal(size=surface.shape)
    return measured + 0.05 * rng.normal(size=surface.shape), edges, rng.uniform(0.5, 1.5, size=len(edges)), measured


def main():
    """The quadratic energy by one solve with its Hessian, the robust one by Newton's method with conjugate gradients."""
    x, edges, weights, measured = data(np.random.default_rng(0), n=20)
    H = rz.hessian(energy)(x, edges, weights, measured)
    step, _ = cg(H.as_operator(), -rz.grad(energy)(x, edges, weights, measured).ravel(), rtol=1e-12)
    smooth = x + step.reshape(x.shape)
    print(f"H : {H.domain} ⊸ {H.codomain} in {len(H.program)} steps")
    print(
        f"energy {energy(x, edges, weights, measured):.4f} → {energy(smooth, edges, weights, measured):.4f} by one solve; ",
        end="",
    )
    print(f"gradient there {np.linalg.norm(rz.grad(energy)(smooth, edges, weights, measured)):.1e}")
    for i in range(20):
        value, slope = rz.value_and_grad(robust_energy)(x, edges, weights, measured)
        if i % 3 == 0:
            print(f"robust, step {i:2d}   energy {value:.6f}   gradient {np.linalg.norm(slope):.2e}")
        if np.linalg.norm(slope) < 1e-10:
            break
        H = rz.hessian(robust_energy)(x, edges, weights, measured)
        step, length = cg(H.as_operator(), -slope.ravel(), rtol=1e-6)[0].reshape(x.shape), 1.0
        while robust_energy(x + length * step, edges, weights, measured) > value and length > 1e-6:
            length /= 2
        x = x + length * step


if __name__ == "__main__":
    main()
