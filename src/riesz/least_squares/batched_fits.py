"""Fits over an axis: `rz.vmap(rz.levenberg_marquardt)`, and one fit that falls apart into many."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import SpaceError, VectorError
from ..functions.control import vmap
from ..functions.jacobians import jacobian
from ..maps.matrices.separate_blocks import separate_blocks
from ..runtime.displayed import Displayed
from ..tracing.argument_trees import flatten, unflatten
from .fit_loop import Damping, Fit, pulled_back, start_of
from .fit_result import LeastSquaresResult
from .separate_fits import SeparateFits, Stops, picked
from .unknowns import Unknowns
from .whitening import whitened

FEWEST = 16
"""A fit that falls apart into fewer parts is solved as a whole."""
START = 0.1
"""The damping of many fits at first: from poor starts more of them find their minimum than with less or with more."""
TAKEN = ("max_iterations", "tolerance", "cost_tolerance", "damping", "manifold", "weights", "information")


class _Moves:
    """Steps (N, k) along the tangent spaces of a tree of arrays with a first axis of N."""

    def __init__(self, tree: Any, manifolds: list[Any], shapes: list[tuple[int, ...]]) -> None:
        self.tree, self.manifolds, self.shapes = tree, manifolds, shapes
        self.ends = np.cumsum([0, *[int(np.prod(s)) for s in shapes]])

    def __call__(self, x: Any, step: Any) -> Any:
        found: list[Any] = []
        parts = zip(self.manifolds, flatten(x)[0], self.shapes, self.ends, self.ends[1:], strict=False)
        for M, a, shape, i, j in parts:
            v = step[:, i:j].reshape(len(step), *shape)
            found.append(np.asarray(a + v if M is None else M.retract(a, v), a.dtype))
        return unflatten(self.tree, found)

    def chosen(self, taken: Any, x: Any, y: Any) -> Any:
        """x where it was taken, else y."""
        pairs = zip(flatten(x)[0], flatten(y)[0], strict=True)
        return unflatten(self.tree, [np.where(taken.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs])

    def coordinates(self, x: Any) -> Any:
        """Those of flat parts, 1 on manifolds."""
        parts = zip(self.manifolds, flatten(x)[0], self.shapes, strict=True)
        flat = [a.reshape(len(a), -1) if M is None else np.ones((len(a), int(np.prod(s)))) for M, a, s in parts]
        return np.concatenate(flat, axis=1)


class SeparateResults(Displayed):
    """What many fits found: `x`, a tree with a first axis over them, `residual` (N, m), `costs`, `converged` and
    `iterations` of each. `covariance()` has a matrix for each, `standard_errors` is a tree like x; `determined` says
    whether there is only one."""

    def __init__(self, fits: SeparateFits, moves: _Moves, absolute: bool) -> None:
        self.x, self.residual, self.costs = fits.x, fits.r, fits.costs
        self.converged, self.iterations = fits.good, fits.iterations
        self._normal, self._moves, self._absolute = fits.normal, moves, absolute

    @property
    def cost(self) -> float:
        """The sum of all costs."""
        return float(np.sum(self.costs))

    def __len__(self) -> int:
        return len(self.costs)

    @cached_property
    def _correlated(self) -> tuple[Any, Any, Any]:
        """JᵀJ with every column scaled to 1, these scales, and the fits that determine all their unknowns."""
        (m, k), eps = (self.residual.shape[1], self._normal.shape[1]), np.finfo(float).eps
        D = np.sqrt(np.einsum("ijj->ij", self._normal))
        by = np.where(D > 0, D, 1.0)
        scaled = self._normal / by[:, :, None] / by[:, None, :]
        # an unknown that, all of it, changes the residual less than rounding does is not determined either
        moved, rounding = np.abs(self._moves.coordinates(self.x)) * D, eps * np.sqrt(2.0 * self.costs)
        sound = np.isfinite(scaled).all(axis=(1, 2)) & ~((moved > 0) & (moved < rounding[:, None])).any(axis=1)
        sound[sound] = np.linalg.eigvalsh(scaled[sound])[:, 0] > 4 * max(m, k) * eps if k else True
        return scaled, D, sound

    @property
    def determined(self) -> Any:
        """Of each fit, whether its residual determines every unknown there: no direction in which nothing changes."""
        return self._correlated[2]

    def covariance(self) -> Any:
        """The covariance matrices (N, k, k) of the unknowns of each fit; nan where they are not determined."""
        (m, k), found = (self.residual.shape[1], self._normal.shape[1]), np.full_like(self._normal, np.nan)
        scaled, D, sound = self._correlated
        found[sound] = np.linalg.inv(scaled[sound]) / D[sound][:, :, None] / D[sound][:, None, :]
        scale = 1.0 if self._absolute else 2.0 * self.costs / (m - k) if m > k else np.full(len(self), np.nan)
        return found * np.broadcast_to(scale, len(self))[:, None, None]

    @cached_property
    def standard_errors(self) -> Any:
        """The square roots of the variances."""
        errors = np.sqrt(np.einsum("ijj->ij", self.covariance()))
        cuts = zip(self._moves.shapes, self._moves.ends, self._moves.ends[1:], strict=False)
        return unflatten(self._moves.tree, [errors[:, i:j].reshape(len(self), *s) for s, i, j in cuts])

    def __repr__(self) -> str:
        done, n = int(np.count_nonzero(self.converged)), len(self)
        head = f"{done:,} of {n:,} fits converged after {int(self.iterations.max(initial=0))} iterations at most"
        free = n - int(np.count_nonzero(self.determined))
        told = f"\n  {free:,} of them do not determine all their unknowns" if free else ""
        return f"{head}\n  cost {self.cost:.6g} in all, {float(self.costs.max(initial=0.0)):.6g} at most{told}"

    def displayed(self) -> Any:
        """What a notebook shows."""
        from ..show.display.display_objects import FactTable

        head, *rest = repr(self).split("\n")
        return FactTable("fits", repr(self), [("costs", "; ".join([line.strip() for line in rest]))], title=head)


class FitsOverAnAxis:
    """What `rz.vmap` makes of a fit: `rz.vmap(rz.levenberg_marquardt, in_axes=(None, 0, 0))(residual, x0, y)`."""

    def __init__(self, damped: bool, in_axes: Any, out_axes: Any) -> None:
        if out_axes != 0:
            raise SpaceError(f"rz.vmap of a fit: out_axes={out_axes!r}; results have their first axis over the fits")
        self.damped, self.in_axes = damped, in_axes

    def __call__(
        self, residual: Any, x0: Any, *args: Any, max_iterations: int = 100, tolerance: float = 1e-10,
        cost_tolerance: float = 1e-14, damping: float = START, manifold: Any = None, weights: Any = None,
        information: Any = None, **others: Any,
    ) -> SeparateResults:  # fmt: skip
        if others:
            raise VectorError(f"rz.vmap of a fit takes no {', '.join(others)}: {', '.join(TAKEN)}")
        axes = self.in_axes if isinstance(self.in_axes, (tuple, list)) else [self.in_axes] * (1 + len(args))
        axes = list(axes)[1:] if len(axes) == 2 + len(args) else list(axes)
        if len(axes) != 1 + len(args):
            due = f"{2 + len(args)} are due, for residual, x0 and args"
            raise SpaceError(f"rz.vmap: in_axes={self.in_axes!r} names {len(axes)} arguments; {due}")
        x, given = _first(start_of(x0), axes[0]), [_first(a, axis) for a, axis in zip(args, axes[1:], strict=True)]
        N = {len(leaf) for leaf in flatten(x)[0]}
        if axes[0] is None or len(N) != 1:
            raise SpaceError("rz.vmap of a fit: x0 needs an axis over the fits, the same for all its arrays")
        element = unflatten(flatten(x)[1], [leaf[0] for leaf in flatten(x)[0]])
        unknowns = Unknowns(element, manifold, None, None, None)
        if weights is not None or information is not None:
            residual = whitened(residual, weights, information)
        flags = [None if axis is None else 0 for axis in axes[1:]]
        look = _Look(residual, tuple(unknowns.manifolds), (0, *flags), tuple(given))
        moves = _Moves(unknowns.tree, unknowns.manifolds, unknowns.shapes_of(element))
        stops = Stops(max_iterations, tolerance, cost_tolerance)
        fits = SeparateFits(x, look, moves, moves.coordinates, damping if self.damped else 0.0, stops)
        fits.run()
        return SeparateResults(fits, moves, weights is not None or information is not None)


def _first(a: Any, axis: Any) -> Any:
    """A tree of arrays with the axis over the fits first."""
    if axis is None:
        return a
    leaves, tree = flatten(a)
    return unflatten(tree, [np.moveaxis(np.asarray(x), axis, 0) for x in leaves])


class _Look:
    """Residuals (N, m) and Jacobians (N, m, k) as a function of x; `part` is that of some of the fits."""

    def __init__(self, residual: Any, manifolds: tuple[Any, ...], axes: Any, args: tuple[Any, ...]) -> None:
        curved = any([M is not None for M in manifolds])

        def flat(*given: Any) -> Any:
            parts = [np.ravel(y) for y in flatten(residual(*given))[0]]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)

        inner = pulled_back(flat, manifolds) if curved else flat

        def dense(x: Any, *rest: Any) -> Any:
            given = (unflatten(flatten(x)[1], _zeros(manifolds, x)), x, *rest) if curved else (x, *rest)
            return jacobian(inner, 0)(*given).to_dense()

        self.values, self.dense, self.axes, self.args = vmap(flat, axes), vmap(dense, axes), axes, args
        self.slopes = None if curved else jacobian(self.values, 0)

    def __call__(self, x: Any) -> tuple[Any, Any]:
        blocks = None if self.slopes is None else separate_blocks(self.slopes(x, *self.args))
        return self.values(x, *self.args), self.dense(x, *self.args) if blocks is None else blocks

    def part(self, rows: Any) -> _Look:
        """That of some of the fits."""
        found = copy(self)
        pairs = zip(self.args, self.axes[1:], strict=True)
        found.args = tuple([a if axis is None else picked(a, rows) for a, axis in pairs])
        return found


def _zeros(manifolds: tuple[Any, ...], x: Any) -> list[Any]:
    return [np.zeros(np.shape(a)) if M is None else M.tangent(a) for M, a in zip(manifolds, flatten(x)[0], strict=True)]


# -- one fit that falls apart ------------------------------------------------------------------------------------


def apart(fit: Fit) -> LeastSquaresResult | None:
    """The result of a fit whose Jacobian is block-diagonal along the first axis of all its arrays; None for others."""
    s, u, J = fit.settings, fit.unknowns, fit.jacobian
    special = (s.callback, s.report, u.free, u.lower, u.scale, fit.robust)
    if not isinstance(fit.policy, Damping) or s.method != "auto" or u.curved or any([x is not None for x in special]):
        return None
    leaves = flatten(fit.at.x)[0]
    if not J.codomain.plain or not leaves or not all([np.ndim(x) for x in leaves]) or len(leaves[0]) < FEWEST:
        return None
    first = separate_blocks(J)
    if first is None:
        return None
    N, last = len(first), fit.at
    moves = _Moves(u.tree, u.manifolds, [np.shape(x)[1:] for x in leaves])

    def look(x: Any) -> tuple[Any, Any]:
        nonlocal last
        if x is not fit.at.x:
            last = fit.f.at(x, fit.at.args)
        values = [np.asarray(y, float).reshape(N, -1) for y in flatten(last.y)[0]]
        blocks = first if last is fit.at else separate_blocks(last.derivative())
        return (values[0] if len(values) == 1 else np.concatenate(values, axis=1)), blocks

    stops = Stops(s.most, s.tolerance, s.cost_tolerance)
    damping = START if fit.policy.usual else fit.policy.value
    fits = SeparateFits(fit.at.x, look, moves, moves.coordinates, damping, stops)
    history = [float(np.sqrt(2.0 * np.sum(fits.costs)))]
    fits.run()
    fit.at = fit.f.at(fits.x, fit.at.args)
    fit.jacobian, fit.cost = fit.at.derivative(), float(np.sum(fits.costs))
    done, (m, k) = int(np.count_nonzero(fits.good)), first.shape[1:]
    name = f"{N:,} separate problems of {k} unknowns and {m} residuals, damped and stopped each by itself"
    message = "each of the separate problems converged" if done == N else f"{N - done:,} of {N:,} did not converge"
    found = LeastSquaresResult(
        fit.at.x, fit.at.y, fit.cost, fit.jacobian, [*history, float(np.sqrt(2.0 * fit.cost))],
        int(fits.iterations.max(initial=0)), done == N, message, name, fit.policy.value,
        s.weights is not None or s.information is not None, u, fit.look_again,
    )  # fmt: skip
    found.converged_each, found.costs = fits.good, fits.costs
    return found
