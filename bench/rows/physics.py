"""Gradients of energies and of steps in time: molecules, bodies under gravity, a fluid, a layer of convolutions."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax

import riesz as rz
from rows.small_loops import ours


def played(loss, by_hand, *args) -> Contestants:
    """The gradient of loss(xp, x, …) in x. Plain calls are NumPy's functions one after the other, compiled ones loops."""
    gradient = rz.grad(lambda *xs: loss(np, *xs))
    found = {name: call for name, call in ours(gradient, *args).items() if name != "riesz, without Numba"}
    found["hand"] = lambda: by_hand(*args)
    if j := jax():
        found["JAX"] = in_jax(j.grad(lambda *xs: loss(j.numpy, *xs)), *args)
    return found


def lattice(atoms):
    """Places near those of a crystal."""
    side = int(np.ceil(atoms ** (1 / 3)))
    places = 1.1 * np.stack(np.meshgrid(*[np.arange(side)] * 3), axis=-1).reshape(-1, 3)[:atoms]
    return places + 0.05 * np.random.default_rng(0).normal(size=(atoms, 3))


def molecule(atoms) -> Contestants:
    """The forces of Lennard-Jones, pair by pair."""
    first, second = np.triu_indices(atoms, 1)

    def energy(xp, x):
        d = x[first] - x[second]
        s = 1.0 / xp.sum(d * d, axis=1) ** 3
        return 4.0 * xp.sum(s * s - s)

    def by_hand(x):
        d = x[first] - x[second]
        r = 1.0 / np.einsum("ij,ij->i", d, d)
        s = r**3
        g = (-24.0 * r * (2.0 * s * s - s))[:, None] * d
        return np.stack([np.bincount(first, g[:, k], atoms) - np.bincount(second, g[:, k], atoms) for k in range(3)], 1)

    return played(energy, by_hand, lattice(atoms))


def bodies(count) -> Contestants:
    """The forces of gravity, softened, of all on all."""
    rng = np.random.default_rng(0)
    x, masses = rng.normal(size=(count, 3)), rng.uniform(0.5, 1.5, count)

    def energy(xp, x):
        d = x[:, None] - x[None]
        return -0.5 * xp.sum(masses[:, None] * masses / xp.sqrt(xp.sum(d * d, axis=-1) + 0.01))

    def by_hand(x):
        squares = np.sum(x * x, axis=1)
        r = squares[:, None] + squares - 2.0 * x @ x.T + 0.01
        w = masses[:, None] * masses / (r * np.sqrt(r))
        return w.sum(axis=1)[:, None] * x - w @ x

    return played(energy, by_hand, x)


def fluid(side, steps) -> Contestants:
    """Vorticity on a periodic grid, its flow from a Poisson equation by Fourier transforms: the gradient of the energy
    after some steps in the vorticity before them."""
    k = np.fft.fftfreq(side, 1.0 / side)
    minus = k[:, None] ** 2 + k**2
    inverse = 1.0 / np.where(minus > 0, minus, 1.0) * (minus > 0)
    h, viscosity, width = 0.01, 1e-3, 2.0 * np.pi / side

    def across(xp, a, axis):
        return (xp.roll(a, -1, axis) - xp.roll(a, 1, axis)) / (2.0 * width)

    def flow(xp, w):
        return xp.fft.ifft2(inverse * xp.fft.fft2(w)).real

    def step(xp, w):
        p = flow(xp, w)
        carried = across(xp, p, 1) * across(xp, w, 0) - across(xp, p, 0) * across(xp, w, 1)
        around = sum([xp.roll(w, by, axis) for by in (1, -1) for axis in (0, 1)]) - 4.0 * w
        return w + h * (viscosity / width**2 * around - carried)

    def loss(xp, w):
        for _ in range(steps):
            w = step(xp, w)
        return 0.5 * xp.sum(w * flow(xp, w))

    def by_hand(w):
        kept = []
        for _ in range(steps):
            kept.append(w)
            w = step(np, w)
        g = flow(np, w)
        for w in reversed(kept):
            p = flow(np, w)
            px, py, wx, wy = across(np, p, 0), across(np, p, 1), across(np, w, 0), across(np, w, 1)
            to_flow = h * (across(np, g * wx, 1) - across(np, g * wy, 0))
            to_w = h * (across(np, g * py, 0) - across(np, g * px, 1))
            around = sum([np.roll(g, by, axis) for by in (1, -1) for axis in (0, 1)]) - 4.0 * g
            g = g + h * viscosity / width**2 * around + to_w + flow(np, to_flow)
        return g

    return played(loss, by_hand, np.random.default_rng(0).normal(size=(side, side)))


def convolutions(batch, side, before, after) -> Contestants:
    """A layer of 3 × 3 filters and a rectifier, as windows times a matrix: the gradient in the filters."""
    rng = np.random.default_rng(0)
    images, filters = rng.normal(size=(batch, side, side, before)), rng.normal(size=(3, 3, before, after)) / 5.0
    wanted, inner = rng.normal(size=(batch, side - 2, side - 2, after)), side - 2

    def loss(xp, W):
        y = 0.0
        for a in range(3):
            for b in range(3):
                y = y + images[:, a : a + inner, b : b + inner] @ W[a, b]
        return xp.sum((xp.maximum(y, 0.0) - wanted) ** 2)

    def by_hand(W):
        seen = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
        seen = seen.reshape(-1, 9 * before)
        y = seen @ W.reshape(9 * before, after)
        g = 2.0 * np.where(y > 0, y - wanted.reshape(y.shape), 0.0)
        return (seen.T @ g).reshape(W.shape)

    found = played(loss, by_hand, filters)
    if j := jax():

        def in_one(W):
            y = j.lax.conv_general_dilated(images, W, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return j.numpy.sum((j.numpy.maximum(y, 0.0) - wanted) ** 2)

        found["JAX, its convolution"] = in_jax(j.grad(in_one), filters)
    return found


def aims(compiled: float, plain: float) -> dict[str, float]:
    return {"riesz, compiled": compiled, "riesz, plain": plain}


ROWS = [
    Row("Lennard-Jones, forces on {atoms} atoms", molecule, aims(1, 0.8), {"atoms": 100}, {"atoms": 8},
        limits="sums over pairs of so few atoms are read and written twice, where XLA has one loop."),
    Row("gravity, forces on {count:,} bodies", bodies, aims(1.4, 1), {"count": 1000}, {"count": 12},
        limits="plain calls are NumPy's functions one after the other; `rz.compile` or `rz.settings.plain = \"auto\"` fuses them."),
    Row("Navier–Stokes, {steps} steps on {side} × {side}, gradient", fluid, aims(1, 0.8),
        {"side": 128, "steps": 4}, {"side": 8, "steps": 2}),
    Row("convolution layer, {batch} images {side} × {side}, {before} to {after} channels", convolutions, aims(1, 0.8),
        {"batch": 16, "side": 28, "before": 8, "after": 16}, {"batch": 2, "side": 6, "before": 2, "after": 3}),
]  # fmt: skip
