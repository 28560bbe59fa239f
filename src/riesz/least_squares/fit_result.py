"""What a fit gives: the solution, how it was found, how well it is known."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import SolveError, VectorError
from ..runtime.displayed import Displayed
from ..tracing.argument_trees import flatten, unflatten
from .factor_blocks import sparse
from .fit_steps import LinearProblem, Ways
from .unknowns import Unknowns, names_of

if TYPE_CHECKING:
    from ..maps.linear_map import LinearMap


class Iteration(NamedTuple):
    """One step that was tried, and where it led."""

    number: int
    cost: float
    step: float
    damping: float
    seconds: float
    accepted: bool
    x: Any = None

    def __str__(self) -> str:
        found = f"{self.number:4d}  cost {self.cost:.6e}  step {self.step:.2e}  damping {self.damping:.1e}"
        return f"{found}  {self.seconds:.3f} s{'' if self.accepted else '  rejected'}"


class LeastSquaresResult(Displayed):
    """What a least-squares iteration found: `x`, `residual` (r at x), `cost` (½‖r‖², or what the loss makes of it),
    `history` (√(2 · cost) after each accepted step, the start first), `iterations`, `converged`, `message`, `method`
    (how steps were solved for), `damping` at the end, and `jacobian`, the LinearMap at x (on a manifold, from its
    tangent space). `covariance`, `standard_errors`, `undetermined` and `table()` say how well x is known. As a start
    of another fit it passes on x and the damping."""

    multipliers: Any = None
    """Of the equations, where there are some."""
    converged_each: Any = None
    """Whether each of separate problems converged, and their `costs`."""
    costs: Any = None

    def __init__(
        self, x: Any, residual: Any, cost: float, jacobian: LinearMap, history: list[float], iterations: int,
        converged: bool, message: str, method: str, damping: float, absolute: bool,
        unknowns: Unknowns, problem: Callable[[], LinearProblem],
    ) -> None:  # fmt: skip
        self.x, self.residual, self.cost, self.jacobian = x, residual, cost, jacobian
        self.history, self.iterations, self.method, self.damping = history, iterations, method, damping
        self.converged, self.message, self.absolute = converged, message, absolute
        self._unknowns, self._look = unknowns, problem

    @cached_property
    def _problem(self) -> LinearProblem:
        """The linear problem at x."""
        return self._look()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_problem" not in state:  # pickles of version 0.1 have neither damping nor weights
            self.damping, self.absolute = 0.0, False
            self._unknowns = Unknowns(self.x, None, None, None, None)
            r = np.concatenate([np.ravel(leaf) for leaf in flatten(self.residual)[0]])
            self._problem = LinearProblem(self.jacobian, r, "auto", None, Ways())

    def __repr__(self) -> str:
        head = f"{'converged' if self.converged else 'NOT converged'} after {self.iterations} iterations"
        x = f"  x = {self.x!r}\n" if self.jacobian.domain.dim <= 20 else ""
        norms = f"  ‖r‖ from {self.history[0]:.6g} to {self.history[-1]:.6g}"
        told = f"\n  not determined: {self.undetermined}" if self._soon and self.undetermined else ""
        return f"{head}: {self.message}\n{x}{norms}\n  steps: {self.method}{told}"

    @property
    def _small(self) -> bool:
        return self.jacobian.domain.dim <= 200 and self._problem.finite

    @property
    def _soon(self) -> bool:
        """Whether JᵀJ is factorised in a moment."""
        plan = self._problem.ways.plan
        return self._small or (plan is not None and plan.flops < 1e9 and self._problem.finite)

    def displayed(self) -> Any:
        """What a notebook shows."""
        from ..show.display.display_objects import FactTable

        rows = [
            ("iterations", f"{self.iterations:,}"),
            ("‖r‖ at the start", f"{self.history[0]:.6g}"),
            ("‖r‖ at the end", f"{self.history[-1]:.6g}"),
            ("steps", self.method),
        ]
        said = f"{'converged' if self.converged else 'NOT converged'}: {self.message}"
        found = [("x", repr(self.x))] if self.jacobian.domain.dim <= 1000 else []
        norms = "\n".join([f"{k:4d}  {norm:.6e}" for k, norm in enumerate(self.history[:200])])
        if self._small and self.jacobian.domain.dim:
            found.append(("estimates", self.table()))
        return FactTable("fit", repr(self), rows, title=said, code=[*found, ("‖r‖ after each step", norms)])

    # -- how well x is known ---------------------------------------------------------------------------------

    @cached_property
    def variance(self) -> float:
        """What covariances are multiplied by: ‖r‖² / (m − n), or 1 where weights or information matrices are given."""
        free = self._problem.free
        n = self._unknowns.n if free is None else int(np.count_nonzero(free))
        over = len(self._problem.r) - n
        return 1.0 if self.absolute else 2.0 * self.cost / over if over > 0 else math.nan

    @cached_property
    def undetermined(self) -> str:
        """Which unknown the residual does not determine, if there is one; else "". Of small fits, how many directions
        are free."""
        try:
            _ = self._factor
        except SolveError as error:
            return str(error)
        return ""

    @cached_property
    def _factor(self) -> Any:
        """JᵀJ factorised: something with solve, and perhaps blocks of its inverse."""
        problem = self._problem
        if problem.matrix is None:
            raise SolveError("covariances need the matrix of r'; this fit used products only (method='iterative')")
        n, free = self._unknowns.n, problem.free
        moves = np.arange(n) if free is None else np.flatnonzero(free)
        if not sparse.issparse(problem.matrix):
            D = problem.D[moves]
            _, sizes, V = np.linalg.svd(problem.matrix[:, moves] / D, full_matrices=False)
            few = np.zeros(len(moves))
            few[: len(sizes)] = sizes
            small = few <= max(problem.matrix.shape) * np.finfo(float).eps * (few.max(initial=0.0) or 1.0)
            if small.any():
                rank = int(np.count_nonzero(~small))
                least = V[-1] if len(V) == len(moves) else np.linalg.svd(problem.matrix[:, moves] / D)[2][-1]
                where = self.place(int(moves[int(np.argmax(np.abs(least)))]))
                raise SolveError(f"J has rank {rank}, there are {len(moves)} unknowns: {where} is not determined")
            return _DenseInverse((V.T / sizes**2) @ V / np.outer(D, D), moves, n)
        held = None if free is None else np.where(free, 0.0, 1.0)
        plan = problem.ways.cholesky(problem.matrix, problem.J)
        if plan is not None:
            try:
                return plan.factored(problem.matrix.data, held)
            except SolveError as error:
                at = int(str(error).split("unknown ")[1].split(" ")[0])
                raise SolveError(f"JᵀJ is singular: {self.place(at)} is not determined") from None
        from ..maps.solvers.sparse import choose_sparse

        normal = problem.matrix.T @ problem.matrix
        return choose_sparse(normal if held is None else normal + sparse.diags_array(held), True)

    def place(self, coordinate: int) -> str:
        """The name of an unknown by its number."""
        u = self._unknowns
        k = int(np.searchsorted(u.ends, coordinate, side="right")) - 1
        shape = u.shapes_of(self.x)[k]
        inner = np.unravel_index(coordinate - int(u.ends[k]), shape) if shape else ()
        index = f"[{', '.join([str(int(i)) for i in inner])}]" if inner else ""
        return f"x{names_of(self.x)[k]}{index}"

    def _named(self, name: Any) -> list[int]:
        """The leaves of a part of x by its key, field or position."""
        count = len(self._unknowns.sizes)
        labels = unflatten(self._unknowns.tree, list(range(count)))
        try:
            part = labels[name] if not isinstance(name, str) or isinstance(labels, dict) else getattr(labels, name)
        except (KeyError, IndexError, AttributeError, TypeError):
            known = ", ".join([n or "x" for n in names_of(self.x)])
            raise VectorError(f"covariance: x has no part {name!r}; its parts are {known}") from None
        return flatten(part)[0]

    def _coordinates(self, name: Any) -> Any:
        ends = self._unknowns.ends
        return np.concatenate([np.zeros(0, int), *[np.arange(ends[k], ends[k + 1]) for k in self._named(name)]])

    def covariance(self, name: Any = None, other: Any = None) -> Any:
        """The covariance of the estimate, variance · (JᵀJ)⁻¹, by parts of x (keys, fields or positions).

        Of one part: of an array (…, k) the k × k matrix of each row, shape (…, k, k); of one axis, its matrix; of a
        number, a number. Only these blocks of the inverse are computed. Of two parts: the matrix between all their
        coordinates. Of none: the whole matrix. Fixed unknowns have covariance 0; on a manifold coordinates are those of
        the tangent space at x.

        >>> import numpy as np, riesz as rz
        >>> t, y = np.arange(4.0), np.array([0.0, 1.0, 2.0, 4.0])
        >>> fit = rz.levenberg_marquardt(lambda p: p["a"] * t + p["b"] - y, {"a": 1.0, "b": 0.0})
        >>> round(fit.covariance("a"), 3), fit.covariance().shape
        (0.03, (2, 2))
        """
        u = self._unknowns
        if name is None and other is None:
            rows = np.arange(u.n)
            return self.variance * self._masked(self._columns(rows), rows, rows)
        if other is not None:
            rows, columns = self._coordinates(name), self._coordinates(other)
            return self.variance * self._masked(self._columns(columns)[rows], rows, columns)
        parts = self._named(name)
        shapes = [u.shapes_of(self.x)[k] for k in parts]
        if len(parts) != 1:
            rows = self._coordinates(name)
            return self.variance * self._masked(self._columns(rows)[rows], rows, rows)
        rows = np.arange(u.ends[parts[0]], u.ends[parts[0] + 1])
        shape = shapes[0]
        if not shape:
            return float(self.variance * self._blocks(rows[:, None])[0, 0, 0])
        k = shape[-1]
        found = self.variance * self._blocks(rows.reshape(-1, k))
        return found.reshape(*shape[:-1], k, k)

    @cached_property
    def standard_errors(self) -> Any:
        """The square roots of the variances, a tree like x (of tangent vectors on manifolds).

        >>> import numpy as np, riesz as rz
        >>> t = np.arange(4.0)
        >>> fit = rz.levenberg_marquardt(lambda p: p[0] * t + p[1] - t**2, np.zeros(2))
        >>> fit.standard_errors.round(4)
        array([0.6325, 1.1832])
        """
        u = self._unknowns
        variances = self.variance * self._blocks(np.arange(u.n)[:, None])[:, 0, 0]
        parts = zip(u.parts(np.sqrt(variances)), u.shapes_of(self.x), strict=True)
        return unflatten(u.tree, [p.reshape(shape) if shape else float(p[0]) for p, shape in parts])

    def _masked(self, matrix: Any, rows: Any, columns: Any) -> Any:
        free = self._problem.free
        return matrix if free is None else matrix * free[rows][:, None] * free[columns]

    def _columns(self, columns: Any) -> Any:
        """Columns of (JᵀJ)⁻¹."""
        factor, found = self._factor, np.empty((self._unknowns.n, len(columns)))
        for k, j in enumerate(columns):
            e = np.zeros(self._unknowns.n)
            e[j] = 1.0
            found[:, k] = factor.solve(e)
        return found

    def _blocks(self, rows: Any) -> Any:
        """Diagonal blocks of (JᵀJ)⁻¹: those of the factor's pattern by selected inversion, others by solves."""
        factor = self._factor
        blocks = self._problem.ways.blocks
        together = blocks is not None and (blocks.node_of[rows] == blocks.node_of[rows[:, :1]]).all()
        if hasattr(factor, "blocks") and (together or isinstance(factor, _DenseInverse)):
            found = factor.blocks(rows)
        else:
            found = np.empty((*rows.shape, rows.shape[1]))
            for k, own in enumerate(rows):
                found[k] = self._columns(own)[own]
        free = self._problem.free
        return found if free is None else found * free[rows][:, :, None] * free[rows][:, None, :]

    def table(self) -> str:
        """Estimates with their standard errors, one unknown a line.

        >>> import numpy as np, riesz as rz
        >>> t, y = np.arange(4.0), np.array([0.0, 1.0, 2.0, 4.0])
        >>> fit = rz.levenberg_marquardt(lambda p: p["a"] * t + p["b"] - y, {"a": 1.0, "b": 0.0})
        >>> print(fit.table())
        unknown        estimate     std. error
        x['a']              1.3        0.17321
        x['b']             -0.2        0.32404
        """
        u = self._unknowns
        try:
            errors = [np.ravel(e) for e in flatten(self.standard_errors)[0]]
            note = ""
        except SolveError as error:
            errors, note = [np.full(size, np.nan) for size in u.sizes], f"\n{error}"
        lines = [f"{'unknown':<12}{'estimate':>11}{'std. error':>15}"]
        for name, a, e in zip(names_of(self.x), flatten(self.x)[0], errors, strict=True):
            values = np.ravel(a)
            for k in range(max(len(values), len(e))):
                index = (
                    f"[{', '.join(map(str, np.unravel_index(k, np.shape(a))))}]"
                    if np.ndim(a) and k < len(values)
                    else ""
                )
                value = f"{values[k]:>11.6g}" if k < len(values) else " " * 11
                error = f"{e[k]:>15.5g}" if k < len(e) else ""
                lines.append(f"{'x' + name + index:<12}{value}{error}")
        return "\n".join(lines[:1001]) + note


class _DenseInverse:
    """(JᵀJ)⁻¹ as an array, among the unknowns that move."""

    def __init__(self, inverse: Any, moves: Any, n: int) -> None:
        self.whole = np.zeros((n, n))
        self.whole[np.ix_(moves, moves)] = inverse

    def solve(self, b: Any) -> Any:
        """(JᵀJ)⁻¹ b."""
        return self.whole @ b

    def blocks(self, rows: Any) -> Any:
        """Blocks of it."""
        return cast(Any, self.whole[rows[:, :, None], rows[:, None, :]])
