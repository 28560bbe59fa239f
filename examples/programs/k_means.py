"""The objective of k-means: its Hessian is diagonal where it exists, and Newton's step on it is Lloyd's algorithm."""

import numpy as np

import riesz as rz


def cost(centres, points):
    """Sum of squared distances to the nearest centre."""
    distances = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
    return np.sum(np.min(distances, axis=1))


def cost_by_labels(centres, points):
    """The same, with the nearest centre looked up."""
    distances = np.sum(points**2, axis=1)[:, None] - 2 * points @ centres.T + np.sum(centres**2, axis=1)
    labels = np.argmin(distances, axis=1)
    return np.sum((points - centres[labels]) ** 2)


def data(rng, n=80, d=2, k=4):
    """Points around k places, and k of the points as centres."""
    places = 3.0 * rng.normal(size=(k, d))
    points = places[rng.integers(k, size=n)] + 0.6 * rng.normal(size=(n, d))
    return points[rng.choice(n, k, replace=False)] + 0.01, points


def main():
    """Newton's method: centres − ∇²f⁻¹ ∇f."""
    centres, points = data(np.random.default_rng(3))
    for i in range(12):
        value, slope = rz.value_and_grad(cost)(centres, points)
        print(f"step {i:2d}   cost {value:9.4f}   gradient {np.linalg.norm(slope):.2e}")
        if np.linalg.norm(slope) < 1e-9:
            break
        curvature = rz.hessian(cost)(centres, points)(np.ones_like(centres))  # all of a diagonal Hessian
        centres = centres - slope / np.maximum(curvature, 1.0)
    H = rz.hessian(cost)(centres, points).to_dense()
    print(
        f"the Hessian of the last step is diagonal: {np.array_equal(H, np.diag(np.diag(H)))}; half of it counts the points: {np.diag(H)[::2] / 2}"
    )


if __name__ == "__main__":
    main()
