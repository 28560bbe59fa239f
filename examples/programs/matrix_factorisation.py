"""Matrix completion: A ≈ U Vᵀ on the entries that were observed, by Levenberg-Marquardt with conjugate gradients."""

import numpy as np
from scipy.sparse.linalg import cg

import riesz as rz


def residual(U, V, A, mask):
    """What is left to explain, on the entries observed."""
    return mask * (A - U @ V.T)


def loss(U, V, A, mask, ridge=1e-3):
    """‖M ∘ (A − U Vᵀ)‖² with a small ridge."""
    return np.linalg.norm(residual(U, V, A, mask)) ** 2 + ridge * (np.sum(U * U) + np.sum(V * V))


def data(rng, m=12, n=9, rank=2, observed=0.6):
    """A matrix of low rank, a mask, and factors to start with."""
    A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    mask = (rng.random((m, n)) < observed).astype(float)
    return rng.normal(size=(m, rank)), rng.normal(size=(n, rank)), A, mask


def main():
    """Levenberg-Marquardt: conjugate gradients on J*J + damping, which is never formed."""
    rng = np.random.default_rng(0)
    _, _, A, mask = data(rng, m=40, n=30, rank=3)
    left, s, right = np.linalg.svd(mask * A)
    U, V = left[:, :3] * np.sqrt(s[:3]), right[:3].T * np.sqrt(s[:3])
    J = rz.jacobian(residual, (0, 1))
    damping = 10.0
    for i in range(17):
        value, slope = rz.value_and_grad(loss, (0, 1))(U, V, A, mask)
        L = J(U, V, A, mask)
        g = L.domain.flatten(slope)
        if i % 4 == 0:
            print(f"step {i:2d}   loss {value:12.6f}   gradient {np.linalg.norm(g):.2e}")
        normal = 2 * (L.H @ L) + damping * rz.LinearMap.of(rz.id(L.domain))
        dU, dV = L.domain.unflatten(cg(normal.as_operator(), -g, rtol=1e-8)[0])
        better = loss(U + dU, V + dV, A, mask) < value
        U, V, damping = (U + dU, V + dV, damping / 3) if better else (U, V, damping * 5)
    unseen = np.linalg.norm((1 - mask) * (A - U @ V.T)) / np.linalg.norm((1 - mask) * A)
    print(f"relative error on the {np.sum(mask == 0):.0f} entries that were never seen: {unseen:.1e}")
    print("\nthe derivative of the residual:", L, sep="\n")


if __name__ == "__main__":
    main()
