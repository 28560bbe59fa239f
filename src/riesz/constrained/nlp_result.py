"""What a solver of a nonlinear program found, and how good it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..least_squares.unknowns import names_of
from ..runtime.displayed import Displayed

if TYPE_CHECKING:
    from .nonlinear_program import NonlinearProgram


class NlpIteration(NamedTuple):
    """One iteration: the value, how far constraints are violated, how far ∇L is from 0 (nan where not told)."""

    number: int
    value: float
    violation: float
    stationarity: float

    def __str__(self) -> str:
        return f"{self.number:4d}  value {self.value:.8e}  violation {self.violation:.1e}  ∇L {self.stationarity:.1e}"


class FlatSolution(NamedTuple):
    """Coordinates, and multipliers of all constraints (of L = f + λ·c), of lower and of upper bounds."""

    x: Any
    constraints: Any
    lower: Any
    upper: Any


class NlpResult(Displayed):
    """`x`, `value`, `converged` (also the truth of the result), `message`, `method`, `iterations`, `history`,
    `seconds`, `evaluations`; `violation`, the largest of any constraint or bound, `stationarity`, the largest
    component of ∇L; `complementarity`, the largest product of a multiplier and the distance from its constraint;
    `multipliers`, trees under "equality", "inequality", "lower" and "upper".

    The Lagrangian is L = f + λ·equality − μ·inequality − z·(x − lower) − w·(upper − x) with μ, z, w ≥ 0."""

    def __init__(
        self, problem: NonlinearProgram, flat: FlatSolution, converged: bool, message: str, method: str,
        iterations: int, history: list[NlpIteration], seconds: float,
    ) -> None:  # fmt: skip
        F = problem.functions
        self.flat, self.converged, self.message, self.method = flat, bool(converged), message, method
        self.iterations, self.history, self.seconds = iterations, history, seconds
        self.x, self.value = F.form.tree_of(np.array(flat.x)), F.objective(flat.x)
        self.evaluations = dict(F.counts)
        self.evaluating = F.seconds
        self.problem = problem
        c, equations = F.held(flat.x), F.equations
        held = F.constraints.tree_of(np.concatenate([flat.constraints[:equations], -flat.constraints[equations:]]))
        self.multipliers: dict[str, Any] = dict(zip(F.kinds, held, strict=True))
        self.multipliers |= {"lower": F.form.tree_of(flat.lower), "upper": F.form.tree_of(flat.upper)}
        self._gaps = np.concatenate([np.abs(c[:equations]), np.maximum(-c[equations:], 0.0)])
        outside = np.maximum(np.maximum(problem.lower - flat.x, flat.x - problem.upper), 0.0)
        self._outside = outside
        self.violation = float(np.max(np.concatenate([self._gaps, outside]), initial=0.0))
        slope = F.gradient(flat.x) - flat.lower + flat.upper
        if F.constraints.size:
            slope = slope + F.jacobian_matrix(flat.x).T @ flat.constraints
        self._slope = slope
        self.stationarity = float(np.max(np.abs(slope), initial=0.0))
        sizes = np.concatenate([F.gradient(flat.x), flat.constraints, flat.lower, flat.upper])
        pairs = ((flat.constraints[equations:], c[equations:]), (flat.lower, flat.x - problem.lower))
        pairs = (*pairs, (flat.upper, problem.upper - flat.x))
        with np.errstate(all="ignore"):
            products = [np.where(np.isfinite(gap), np.abs(u * gap), 0.0) for u, gap in pairs]
            self.complementarity = max([float(np.max(u, initial=0.0)) for u in products])
            largest = float(np.max(np.abs(sizes), initial=0.0))
        self.finite = bool(np.isfinite([self.value, self.stationarity, self.violation, largest]).all())
        self.converged &= self.finite and self.stationarity <= 1e-3 * (1.0 + largest)
        self.converged &= self.complementarity <= 1e-4 * (1.0 + abs(self.value))

    def __bool__(self) -> bool:
        return self.converged

    @property
    def active(self) -> dict[str, int]:
        """How many inequalities and bounds hold with equality, within 10⁻⁶."""
        F, x, P = self.problem.functions, self.flat.x, self.problem
        near = {"inequality": F.held(x)[F.equations :], "lower": x - P.lower, "upper": P.upper - x}
        return {k: int(np.count_nonzero(np.abs(gap) <= 1e-6)) for k, gap in near.items()}

    @property
    def worst(self) -> str:
        """The constraint that is violated most, by name; "" where none is."""
        F = self.problem.functions
        if not self.violation > 0:
            return ""
        if self._outside.max(initial=0.0) >= self._gaps.max(initial=0.0):
            return f"a bound of x{_place(F.form, self.x, int(np.argmax(self._outside)))}"
        at = int(np.argmax(self._gaps))
        tree = F.constraints.tree_of(np.zeros(F.constraints.size))
        kinds = list(F.kinds)
        place = _place(F.constraints, tree, at)
        for i, kind in enumerate(kinds):
            place = place.replace(f"[{i}]", kind, 1) if place.startswith(f"[{i}]") else place
        return place

    @property
    def explanation(self) -> str:
        """Why it ended as it did, in a sentence or two."""
        if self.converged:
            held = ", ".join([f"{n:,} {k}" for k, n in self.active.items() if n])
            return f"a point where ∇L = 0 and all constraints hold{f'; active: {held}' if held else ''}"
        if self.violation <= 1e-6 and self.value < -1e15:
            return f"the objective is {self.value:.1e}, and falls without end as it seems: bounds can keep it from that"
        if not self.finite:
            return "the objective or a derivative is not finite there: bounds can keep x where they are defined"
        if self.violation > 1e-6:
            return f"constraints do not hold: {self.worst} is off by {self.violation:.1e}; another start, or none do"
        if self.complementarity > 1e-4 * (1.0 + abs(self.value)):
            return f"constraints that are not active have multipliers, by {self.complementarity:.1e}: more iterations"
        where = _place(self.problem.functions.form, self.x, int(np.argmax(np.abs(self._slope))))
        return f"constraints hold, but ∇L is {self.stationarity:.1e} at x{where}: more iterations, or other scales"

    def __repr__(self) -> str:
        head = (
            f"{'converged' if self.converged else 'NOT converged'} after {self.iterations} iterations of {self.method}"
        )
        x = f"  x = {self.x!r}\n" if self.problem.functions.form.size <= 20 else ""
        sizes = f"  value {self.value:.10g}, violation {self.violation:.1e}, ∇L {self.stationarity:.1e}"
        return f"{head}: {self.message}\n{x}{sizes}\n  {self.explanation}"

    def displayed(self) -> Any:
        """What a notebook shows."""
        from ..show.display.display_objects import FactTable

        rows = [
            ("value", f"{self.value:.10g}"),
            ("violation", f"{self.violation:.1e}"),
            ("∇L", f"{self.stationarity:.1e}"),
            ("iterations", f"{self.iterations:,}"),
            ("seconds", f"{self.seconds:.3f}, {self.evaluating:.3f} of them in functions and derivatives"),
            ("why", self.explanation),
        ]
        said = f"{'converged' if self.converged else 'NOT converged'}: {self.message}"
        found = [("x", repr(self.x))] if self.problem.functions.form.size <= 1000 else []
        lines = "\n".join([str(step) for step in self.history[:500]])
        return FactTable("nlp", repr(self), rows, title=said, code=[*found, ("iterations", lines)])


def _place(form: Any, tree: Any, at: int) -> str:
    """A coordinate as one would write it after the name of the tree: "['u'][3, 1]"."""
    leaf = int(np.searchsorted(form.ends, at, side="right")) - 1
    shape = form.shapes[leaf]
    inner = ", ".join([str(int(k)) for k in np.unravel_index(at - int(form.ends[leaf]), shape)]) if shape else ""
    return names_of(tree)[leaf] + (f"[{inner}]" if inner else "")
