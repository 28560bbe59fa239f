"""Denoising by total variation: smooth regions and sharp edges, by Newton's method with conjugate gradients."""

import numpy as np
from scipy.sparse.linalg import cg

import riesz as rz


def total_variation(image, eps=0.05):
    """Sum of the lengths of the gradient, rounded at zero."""
    down = np.diff(image, axis=0, append=image[-1:])
    across = np.diff(image, axis=1, append=image[:, -1:])
    return np.sum(np.sqrt(down**2 + across**2 + eps**2) - eps)


def loss(image, noisy, weight=0.1):
    """Distance to the noisy image, and the total variation."""
    return 0.5 * np.sum((image - noisy) ** 2) + weight * total_variation(image)


def anisotropic_loss(image, noisy, weight=0.1):
    """The same with |differences| along each axis, not rounded: differentiable only where no neighbours are equal."""
    padded = np.pad(image, 1, mode="edge")
    return 0.5 * np.linalg.norm(image - noisy) ** 2 + weight * (
        np.abs(padded[1:, :] - padded[:-1, :]).sum() + np.abs(padded[:, 1:] - padded[:, :-1]).sum()
    )


def data(rng, n=8):
    """A bright square in noise."""
    image = np.zeros((n, n))
    image[n // 4 : n // 2, n // 3 : -n // 4] = 1.0
    noisy = image + 0.2 * rng.normal(size=(n, n))
    return noisy + 0.01 * rng.normal(size=(n, n)), noisy


def main():
    """Newton's method; each step is a solve with the Hessian as an operator."""
    image, noisy = data(np.random.default_rng(0), n=48)
    clean = data(np.random.default_rng(0), n=48)[1] * 0.0
    clean[12:24, 16:-12] = 1.0
    for i in range(25):
        value, slope = rz.value_and_grad(loss)(image, noisy, 0.3)
        if i % 4 == 0:
            print(
                f"step {i:2d}   loss {value:9.5f}   gradient {np.linalg.norm(slope):.2e}   error {np.linalg.norm(image - clean):.3f}"
            )
        if np.linalg.norm(slope) < 1e-8:
            break
        H = rz.hessian(loss)(image, noisy, 0.3)
        step = cg(H.as_operator(), -slope.ravel(), rtol=1e-3)[0].reshape(image.shape)
        length = 1.0
        while loss(image + length * step, noisy, 0.3) > value - 1e-4 * length * -np.sum(slope * step) and length > 1e-6:
            length /= 2
        image = image + length * step
    print(
        f"H : {H.domain} ⊸ {H.codomain}; the noise was {np.linalg.norm(noisy - clean):.3f}, what is left {np.linalg.norm(image - clean):.3f}"
    )


if __name__ == "__main__":
    main()
