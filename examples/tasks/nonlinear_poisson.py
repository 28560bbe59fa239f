"""A nonlinear Poisson problem on a triangulated square, −div((1 + u²) ∇u) = f, assembled by gather and scatter."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

import riesz as rz


def mesh(n):
    """Points and triangles of an n × n grid of squares, each cut in two."""
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    k = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = k[:-1, :-1].ravel(), k[1:, :-1].ravel(), k[1:, 1:].ravel(), k[:-1, 1:].ravel()
    return np.stack([x.ravel(), y.ravel()], axis=1), np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def geometry(points, tri):
    """Areas of triangles and gradients of their three hat functions."""
    edges = points[tri][:, [2, 0, 1]] - points[tri][:, [1, 2, 0]]
    area = 0.5 * np.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
    return area, np.stack([-edges[..., 1], edges[..., 0]], axis=2) / (2 * area[:, None, None])


def residual(uf, free, tri, area, gradients, load, nodes):
    """What is left over at the free nodes. Element by element, as finite-element codes do it."""
    u = np.zeros(nodes)
    u[free] = uf
    ue = u[tri]
    flux = (1 + np.mean(ue, axis=1) ** 2)[:, None] * np.einsum("ea,eaj->ej", ue, gradients)
    re = area[:, None] * (np.einsum("ej,eaj->ea", flux, gradients) - load[tri] / 3)
    r = np.zeros(nodes)
    np.add.at(r, tri, re)
    return r[free]


def problem(n=12):
    """The mesh, the free nodes and a load."""
    points, tri = mesh(n)
    free = np.flatnonzero(np.all((points > 1e-9) & (points < 1 - 1e-9), axis=1))
    load = 20 * np.sin(np.pi * points[:, 0]) * np.sin(2 * np.pi * points[:, 1])
    return free, tri, *geometry(points, tri), load, len(points)


def newton(*setting, steps=20):
    """Newton's method with the sparse tangent."""
    tangent, uf = rz.jacobian(residual), np.zeros(len(setting[0]))
    for _ in range(steps):
        r = residual(uf, *setting)
        if np.max(np.abs(r)) < 1e-12:
            break
        uf = uf - spsolve(tangent(uf, *setting).to_sparse().tocsc(), r)
    return uf


def mass_matrix(free, tri, area, nodes):
    """∫ φᵢφⱼ at the free nodes."""
    local = (np.ones((3, 3)) + np.eye(3)) / 12
    values = area[:, None, None] * local
    rows, columns = np.broadcast_arrays(tri[:, :, None], tri[:, None, :])
    return coo_array((values.ravel(), (rows.ravel(), columns.ravel())), (nodes, nodes)).tocsr()[free][:, free]


def energy(uf, M):
    """∫ u⁴/4, by the mass matrix."""
    return 0.25 * (uf**2) @ (M @ uf**2)


def main():
    """The solution, and the gradient of a functional in L² of the square."""
    setting = problem(24)
    uf = newton(*setting)
    free, tri, area, _, _, nodes = setting
    print(f"{len(uf)} unknowns, max u {uf.max():.5f}, residual {np.abs(residual(uf, *setting)).max():.1e}")
    J = rz.jacobian(residual)(uf, *setting)
    print(f"tangent: {J.to_sparse().nnz} numbers of {len(uf) ** 2}")
    M = mass_matrix(free, tri, area, nodes)
    g = rz.grad(lambda u: energy(u, M), space=(rz.R ** len(uf)).weighted(M))(uf)
    print(f"the gradient in L² is near u³: {np.abs(g - uf**3).max():.1e} of {np.abs(uf**3).max():.1e}")


if __name__ == "__main__":
    main()
