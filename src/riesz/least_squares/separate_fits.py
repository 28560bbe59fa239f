"""Many small fits at once: steps, damping and convergence of each by itself, computed for all of them together."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..tracing.argument_trees import flatten, unflatten

LONGEST_CHOLESKY = 12
"""Up to so many unknowns each, Cholesky factorisations are written out as array operations over all fits."""

FEWEST_APART = 256
"""With fewer fits, those that are over are computed on with the others."""

WEAKEST = 1000.0
"""At first all unknowns of a fit are damped alike, by the largest D², but none by more than so many times its own: one
that moves the residual little would else go astray, to where it moves nothing any more. In thirty rounds that falls to
its own D² alone, so that units do not matter."""


def picked(tree: Any, rows: Any) -> Any:
    """Some rows of all arrays of a tree."""
    leaves, code = flatten(tree)
    return unflatten(code, [np.asarray(a)[rows] for a in leaves])


class Stops(NamedTuple):
    """When a fit is over."""

    most: int
    tolerance: float
    cost_tolerance: float


class SeparateFits:
    """N fits of k unknowns each. `look` gives residuals and Jacobians, `move` goes from x along steps (N, k), and
    `coordinates` gives those of x, to compare steps with."""

    def __init__(self, x: Any, look: Any, move: Any, coordinates: Any, damping: float, stops: Stops) -> None:
        self.x, self.look, self.move, self.coordinates, self.stops = x, look, move, coordinates, stops
        self._see(*look(x))
        N, _k = self.slope.shape
        self.damping, self.growth, self.length = np.full(N, damping), np.full(N, 2.0), np.ones(N)
        self.live, self.good = np.ones(N, bool), np.zeros(N, bool)
        self.iterations, self.scale = np.zeros(N, int), self.norms.copy()

    def _see(self, r: Any, J: Any) -> None:
        self.r = r
        with np.errstate(all="ignore"):
            self.costs = 0.5 * np.einsum("ij,ij->i", r, r)
            turned = np.swapaxes(J, 1, 2)
            self.normal, self.slope = np.matmul(turned, J), np.matmul(turned, r[:, :, None])[:, :, 0]
            self.norms = np.sqrt(np.einsum("ijj->ij", self.normal))

    def run(self) -> None:
        """All of them to their ends."""
        undamped = not self.damping.any()
        with np.errstate(all="ignore"):
            self._settle(np.zeros_like(self.live))
            for done in range(self.stops.most):
                if not self.live.any():
                    break
                few = len(self.live) >= FEWEST_APART and 4 * np.count_nonzero(self.live) <= len(self.live)
                if few and hasattr(self.look, "part"):
                    return self._rest(self.stops.most - done)
                self._round(undamped)

    def _rest(self, most: int) -> None:
        """Those that are not over yet, by themselves: a fourth of all, with others to make up the number, so that sizes
        come again."""
        rows = np.argsort(~self.live, kind="stable")[: len(self.live) // 4]
        some = copy(self)
        some.look, some.stops, some.x = self.look.part(rows), self.stops._replace(most=most), picked(self.x, rows)
        names = [name for name, value in vars(self).items() if isinstance(value, np.ndarray) and name != "x"]
        for name in names:
            setattr(some, name, getattr(self, name)[rows])
        some.run()
        for name in names:
            whole = getattr(self, name).copy()
            whole[rows] = getattr(some, name)
            setattr(self, name, whole)
        leaves, tree = flatten(self.x)
        leaves = [a.copy() for a in leaves]
        for a, b in zip(leaves, flatten(some.x)[0], strict=True):
            a[rows] = b
        self.x = unflatten(tree, leaves)

    def _settle(self, more: Any) -> None:
        """Mark what is over: where the gradient is 0, and `more`."""
        size = np.sqrt(2.0 * self.costs)
        cosines = np.abs(self.slope / np.where(self.norms > 0, self.norms, 1.0)).max(axis=1, initial=0.0)
        zero = cosines <= max(self.stops.tolerance, 1e-15) * size
        finite = np.isfinite(self.costs) & np.isfinite(self.slope).all(axis=1)
        over = self.live & (zero | more | ~finite)
        self.good |= over & finite
        self.live &= ~over

    def _round(self, undamped: bool) -> None:
        stops, D = self.stops, np.where(self.scale > 0, self.scale, 1.0)
        most, times = (D**2).max(axis=1, initial=0.0), np.maximum(WEAKEST * 0.8**self.iterations, 1.0)
        matrix, weights = self.normal.copy(), np.minimum(most[:, None], times[:, None] * D**2)
        np.einsum("ijj->ij", matrix)[...] += self.damping[:, None] * weights
        step = -self.length[:, None] * solved(matrix, self.slope)
        step = np.where(np.isfinite(step).all(axis=1) & self.live, step.T, 0.0).T
        moved = np.einsum("ij,ij->i", step, np.matmul(self.normal, step[:, :, None])[:, :, 0])
        foretold = -np.einsum("ij,ij->i", self.slope, step) - 0.5 * moved
        x, before = self.move(self.x, step), self.__dict__.copy()
        here = np.linalg.norm(D * self.coordinates(self.x), axis=1)
        small = np.linalg.norm(D * step, axis=1) <= stops.tolerance * (here + stops.tolerance)
        small &= (self.damping <= 1.0) & (foretold >= 0)
        self._see(*self.look(x))
        fell, least = before["costs"] - self.costs, 1e-4 if undamped else 0.25
        ratio = np.where(foretold > 0, fell / np.where(foretold > 0, foretold, 1.0), -1.0)
        taken = self.live & np.isfinite(self.costs) & np.isfinite(self.slope).all(axis=1) & (ratio > least)
        for name in ("r", "costs", "normal", "slope", "norms"):
            new = getattr(self, name)
            setattr(self, name, np.where(taken.reshape(-1, *[1] * (new.ndim - 1)), new, before[name]))
        self.x = self.move.chosen(taken, x, self.x)
        level = ~taken & (np.abs(fell) <= 4e-15 * self.costs) & (foretold <= 1e-10 * self.costs)
        slow = taken & (self.damping <= 1e-2) & (np.maximum(fell, foretold) <= stops.cost_tolerance * self.costs)
        if undamped:
            self.length = np.where(taken, 1.0, 0.5 * self.length)
            stuck = self.live & (self.length < 1e-12)
        else:
            factor = np.where(ratio > 0.75, 0.1, 1.0 / 3.0)
            self.damping = np.where(taken, np.maximum(self.damping * factor, 1e-16), self.damping * self.growth)
            self.growth = np.where(taken, 2.0, 2.0 * self.growth)
            stuck = self.live & (self.damping > 1e20)
        self.scale = np.maximum(0.5 * self.scale, self.norms)
        self.iterations += self.live
        self._settle((small & taken) | slow | level)
        self.live &= ~stuck


def solved(A: Any, b: Any) -> Any:
    """x with A x = b for positive definite matrices (N, k, k), nan where one is not."""
    k = b.shape[1]
    if k > LONGEST_CHOLESKY:
        found = np.full(b.shape, np.nan)
        sound = np.isfinite(A).all(axis=(1, 2))
        try:
            np.linalg.cholesky(A[sound])
        except np.linalg.LinAlgError:
            sound[np.flatnonzero(sound)[np.linalg.eigvalsh(A[sound])[:, 0] <= 0]] = False
        found[sound] = np.linalg.solve(A[sound], b[sound][:, :, None])[:, :, 0]
        return found
    a, x = A.transpose(1, 2, 0).copy(), b.T.copy()  # all fits beside each other
    for j in range(k):
        a[j, j] = np.sqrt(a[j, j])
        a[j + 1 :, j] /= a[j, j]
        x[j] /= a[j, j]
        for i in range(j + 1, k):
            a[i, j + 1 : i + 1] -= a[i, j] * a[j + 1 : i + 1, j]
        x[j + 1 :] -= a[j + 1 :, j] * x[j]
    for j in range(k - 1, -1, -1):
        for i in range(j + 1, k):
            x[j] -= a[i, j] * x[i]
        x[j] /= a[j, j]
    return x.T
