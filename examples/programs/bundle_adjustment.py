"""Bundle adjustment in the form of ADBench: cameras, points and weights from observations of points by cameras, by Levenberg-Marquardt."""

import numpy as np

import riesz as rz


def rotate(rotation, X):
    """Rodrigues' formula: X turned about the axis `rotation`, by its length."""
    squared = np.sum(rotation**2, axis=-1, keepdims=True)
    angle = np.sqrt(squared)
    axis = rotation / angle
    turned = (
        np.cos(angle) * X
        + np.sin(angle) * np.cross(axis, X)
        + (1 - np.cos(angle)) * np.sum(axis * X, axis=-1, keepdims=True) * axis
    )
    return np.where(squared > 0, turned, X + np.cross(rotation, X))


def project(cameras, X):
    """Pixels of points X, each seen by its own camera: rotation, centre, focal length, principal point, two radial distortion coefficients."""
    rotation, centre, focal, principal, radial = (
        cameras[:, :3],
        cameras[:, 3:6],
        cameras[:, 6:7],
        cameras[:, 7:9],
        cameras[:, 9:],
    )
    seen = rotate(rotation, X - centre)
    plane = seen[:, :2] / seen[:, 2:]
    r2 = np.sum(plane**2, axis=1, keepdims=True)
    distorted = plane * (1 + radial[:, :1] * r2 + radial[:, 1:] * r2**2)
    return distorted * focal + principal


def residuals(cameras, X, weights, observations, features):
    """Weighted errors of reprojection, and 1 − w² for each weight."""
    camera, point = observations[:, 0], observations[:, 1]
    reprojection = weights[:, None] * (project(cameras[camera], X[point]) - features)
    return reprojection, 1 - weights**2


def cost(cameras, X, weights, observations, features):
    """Half the sum of squares."""
    reprojection, regularisation = residuals(cameras, X, weights, observations, features)
    return 0.5 * np.sum(reprojection**2) + 0.5 * np.sum(regularisation**2)


def data(rng, n=4, m=20, p=50):
    """n cameras around m points, p observations with noise."""
    pose = np.concatenate([0.2 * rng.normal(size=(n, 3)), rng.normal(size=(n, 3)) - [0, 0, 8]], axis=1)
    lens = np.concatenate([np.full((n, 1), 300.0), np.full((n, 2), 50.0), 0.01 * rng.normal(size=(n, 2))], axis=1)
    cameras = np.concatenate([pose, lens], axis=1)
    X = rng.normal(size=(m, 3))
    observations = np.stack([rng.integers(n, size=p), np.arange(p) % m], axis=1)
    features = project(cameras[observations[:, 0]], X[observations[:, 1]]) + 0.5 * rng.normal(size=(p, 2))
    return (
        cameras + 0.01 * rng.normal(size=cameras.shape),
        X + 0.02 * rng.normal(size=X.shape),
        np.ones(p),
        observations,
        features,
    )


def main():
    """Levenberg-Marquardt: each step solves with J*J and more of its diagonal."""
    *parameters, observations, features = data(np.random.default_rng(0), n=6, m=20, p=120)
    derivative = rz.jacobian(residuals, (0, 1, 2))
    damping = 1e-2
    for i in range(10):
        L = derivative(*parameters, observations, features)
        r = L.codomain.flatten(residuals(*parameters, observations, features))
        J = L.to_dense()
        if i == 0:
            print(f"J : {L.domain} ⊸ {L.codomain}, {np.mean(J != 0):.1%} of the matrix is not zero")
        print(
            f"step {i}   cost {0.5 * r @ r:12.5f}   gradient {np.linalg.norm(L.T.matvec(r)):10.3e}   damping {damping:.0e}"
        )
        normal = J.T @ J
        step = L.domain.unflatten(np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -J.T @ r))
        tried = [a + b for a, b in zip(parameters, step, strict=True)]
        better = cost(*tried, observations, features) < 0.5 * r @ r
        parameters, damping = (tried, damping / 10) if better else (parameters, damping * 10)


if __name__ == "__main__":
    main()
