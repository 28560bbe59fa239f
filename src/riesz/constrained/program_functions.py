"""The functions of a nonlinear program on flat coordinates, as solvers call them: values once for each point, first
derivatives once for each point, second derivatives of the Lagrangian."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..backends.entry import compile as compiled
from ..backends.sparse_numbers import SparseDerivative, sparse_hessian, sparse_jacobian
from ..errors import VectorError
from ..functions.gradients import grad
from ..tracing.argument_trees import flatten, unflatten

KINDS = ("equality", "inequality")


class TreeForm:
    """A tree of arrays as flat coordinates, and back."""

    def __init__(self, x: Any) -> None:
        leaves, self.tree = flatten(x)
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.ends = np.cumsum([0, *[int(np.size(leaf)) for leaf in leaves]])
        self.size = int(self.ends[-1])

    def tree_of(self, flat: Any) -> Any:
        """Coordinates as a tree; the arrays are views of them."""
        parts = zip(self.shapes, self.ends.tolist(), self.ends[1:].tolist(), strict=False)
        return unflatten(self.tree, [flat[i:j].reshape(s) if s else float(flat[i]) for s, i, j in parts])

    def flat(self, x: Any) -> Any:
        """A tree as coordinates."""
        leaves, tree = flatten(x)
        if tree != self.tree or [np.shape(leaf) for leaf in leaves] != self.shapes:
            raise VectorError(f"a tree of arrays of the shapes {self.shapes} is due; got {x!r}")
        return np.concatenate([np.zeros(0), *[np.asarray(leaf, float).reshape(-1) for leaf in leaves]])


class ProgramFunctions:
    """f, the constraints c (equations first), ∇f, the numbers of c' and of the lower triangle of the Lagrangian's
    Hessian σ∇²f + Σ λ ∇²c, at flat coordinates. Values and derivatives are kept for the last point."""

    def __init__(self, objective: Any, equality: Any, inequality: Any, x0: Any, parameters: Any) -> None:
        self.form = TreeForm(x0)
        self.parameters: tuple[Any, ...] = () if parameters is None else (parameters,)
        self._objective = objective
        self._given = [(k, c) for k, c in zip(KINDS, (equality, inequality), strict=True) if c is not None]
        self._values = compiled(self._together)
        first, held = self._values(x0, *self.parameters)
        if np.ndim(first):
            raise VectorError(f"the objective is one number; got an array of shape {np.shape(first)}: take np.sum")
        self.constraints = TreeForm(held)
        sizes = {k: TreeForm(c).size for (k, _), c in zip(self._given, held, strict=True)}
        self.equations, self.inequalities = sizes.get("equality", 0), sizes.get("inequality", 0)
        self._slopes = compiled(grad(objective))
        self._x0, self._held = x0, held
        self._jacobian: SparseDerivative | None = None
        self._hessian: SparseDerivative | None = None
        self.counts: dict[str, int] = dict.fromkeys(("values", "gradients", "Jacobians", "Hessians"), 0)
        self.seconds = 0.0
        self._points: dict[str, tuple[Any, Any]] = {}
        self.kinds = tuple([k for k, _ in self._given])

    def use(self, parameters: Any) -> None:
        """From now on with other parameters."""
        TreeForm(self.parameters[0]).flat(parameters)
        self.parameters = (parameters,)
        self._points.clear()

    def begin(self) -> None:
        """Count from 0."""
        self.counts, self.seconds = dict.fromkeys(self.counts, 0), 0.0

    def _together(self, x: Any, *p: Any) -> Any:
        return self._objective(x, *p), tuple([c(x, *p) for _, c in self._given])

    def _constraints(self, x: Any, *p: Any) -> Any:
        return tuple([c(x, *p) for _, c in self._given])

    def _lagrangian(self, x: Any, sigma: Any, multipliers: Any, *p: Any) -> Any:
        total = sigma * self._objective(x, *p)
        for weights, held in zip(multipliers, self._constraints(x, *p), strict=True):
            for w, c in zip(flatten(weights)[0], flatten(held)[0], strict=True):
                total = total + np.sum(w * c)
        return total

    @property
    def J(self) -> SparseDerivative:
        """The constraints' Jacobian; its pattern holds everywhere."""
        if self._jacobian is None:
            self._jacobian = sparse_jacobian(self._constraints, self._x0, *self.parameters)
        return self._jacobian

    @property
    def hessian_numbers(self) -> SparseDerivative:
        """The Lagrangian's Hessian, its lower triangle; made when it is first asked for."""
        if self._hessian is None:
            more = self._held, *self.parameters
            self._hessian = sparse_hessian(self._lagrangian, self._x0, 1.0, *more, lower=True)
        return self._hessian

    # -- at a point --------------------------------------------------------------------------------------------

    def _once(self, what: str, v: Any, make: Callable[[Any], Any]) -> Any:
        """What was computed at this point last time, or is computed now."""
        known = self._points.get(what)
        if known is None or not np.array_equal(known[0], v):
            start = time.perf_counter()
            at = np.array(v, float)
            self._points[what] = known = at, make(self.form.tree_of(at))
            self.counts[what] += 1
            self.seconds += time.perf_counter() - start
        return known[1]

    def values(self, v: Any) -> tuple[float, Any]:
        """f and c."""

        def make(x: Any) -> tuple[float, Any]:
            value, held = self._values(x, *self.parameters)
            leaves = [np.asarray(leaf, float).reshape(-1) for leaf in flatten(held)[0]]
            return float(value), np.concatenate(leaves) if leaves else np.zeros(0)

        return self._once("values", v, make)

    def objective(self, v: Any) -> float:
        """f."""
        return self.values(v)[0]

    def held(self, v: Any) -> Any:
        """c."""
        return self.values(v)[1]

    def gradient(self, v: Any) -> Any:
        """∇f."""
        return self._once("gradients", v, lambda x: self.form.flat(self._slopes(x, *self.parameters)))

    def jacobian(self, v: Any) -> Any:
        """The numbers of c', in the order of `J.pattern`."""
        return self._once("Jacobians", v, lambda x: self.J.values(x, *self.parameters))

    def hessian(self, v: Any, multipliers: Any, sigma: float) -> Any:
        """The numbers of the Lagrangian's Hessian, in the order of `hessian_numbers.pattern`."""
        start = time.perf_counter()
        weights = self.constraints.tree_of(np.array(multipliers, float))
        found = self.hessian_numbers.values(
            self.form.tree_of(np.array(v, float)), float(sigma), weights, *self.parameters
        )
        self.counts["Hessians"] += 1
        self.seconds += time.perf_counter() - start
        return found

    def jacobian_matrix(self, v: Any) -> Any:
        """c' as a SciPy matrix."""
        return self.J.pattern.matrix(self.jacobian(v))

    def hessian_matrix(self, v: Any, multipliers: Any, sigma: float) -> Any:
        """The whole of the Lagrangian's Hessian as a SciPy matrix."""
        import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

        lower: Any = self.hessian_numbers.pattern.matrix(self.hessian(v, multipliers, sigma))
        return lower + cast(Any, scipy_sparse).tril(lower, -1).T
