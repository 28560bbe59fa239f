"""`rz.nlp`: min f(x) with c(x) = 0, d(x) ≥ 0 and bounds, over trees of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import SolveError, VectorError
from ..least_squares.unknowns import Unknowns
from ..runtime.displayed import Displayed
from ..runtime.progress import working
from .nlp_result import NlpIteration, NlpResult
from .program_functions import ProgramFunctions

METHODS = ("auto", "ipopt", "trust-constr", "slsqp")
SMALL = 50
"""Unknowns: up to so many slsqp is taken where Ipopt is not installed."""


def nlp(
    objective: Any,
    x0: Any,
    *,
    equality: Any = None,
    inequality: Any = None,
    bounds: Any = None,
    parameters: Any = None,
) -> NonlinearProgram:
    """Minimise a function under constraints: equality(x) = 0, inequality(x) ≥ 0, and bounds.

    All are NumPy code of one argument, a tree of floats and arrays like x0; results may be trees. `bounds` is a pair,
    lower and upper, of numbers or trees like x0, where None and missing keys are free. With `parameters`, a tree, the
    functions take it as their second argument, and `solve` may be given others without tracing again.

    >>> import numpy as np, riesz as rz
    >>> problem = rz.nlp(lambda x: np.sum((x - 2.0) ** 2), np.zeros(2), equality=lambda x: x[0] + x[1] - 1.0)
    >>> found = problem.solve("slsqp")
    >>> bool(found), np.round(found.x, 6), round(float(found.multipliers["equality"]), 6)
    (True, array([0.5, 0.5]), 3.0)
    """
    return NonlinearProgram(objective, x0, equality, inequality, bounds, parameters)


class NonlinearProgram(Displayed):
    """What `nlp` gives. Functions are traced and patterns derived once; `solve` may be called again and again."""

    def __init__(self, objective: Any, x0: Any, equality: Any, inequality: Any, bounds: Any, parameters: Any) -> None:
        for name, f in (("objective", objective), ("equality", equality), ("inequality", inequality)):
            if not callable(f) and not (f is None and name != "objective"):
                raise VectorError(f"{name}: a function of x is due; got {f!r}")
        unknowns = Unknowns(x0, None, None, bounds, None)
        if not all(unknowns.moving):
            raise VectorError(
                "x0 holds numbers that are no floats: write 2.0 instead of 2, x.astype(float); or take parameters"
            )
        self.x0 = x0
        self.functions = ProgramFunctions(objective, equality, inequality, x0, parameters)
        n = self.functions.form.size
        free = np.full(n, np.inf)
        self.lower: Any = -free if unknowns.lower is None else unknowns.lower
        self.upper: Any = free if unknowns.upper is None else unknowns.upper
        self.parameters = parameters

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many unknowns, equations and inequalities there are."""
        return self.functions.form.size, self.functions.equations, self.functions.inequalities

    def solve(
        self,
        method: str = "auto",
        *,
        x0: Any = None,
        start: NlpResult | None = None,
        parameters: Any = None,
        tolerance: float = 1e-8,
        max_iterations: int = 3000,
        progress: bool | Callable[[NlpIteration], None] = False,
        **options: Any,
    ) -> NlpResult:
        """Solve it, from x0 or from where it was made, or with `start` from another result and its multipliers.

        `method`: "ipopt" (an interior-point method for large sparse problems; needs `riesz[ipopt]`), "trust-constr" or
        "slsqp" (SciPy's), or "auto": Ipopt if it is installed. All get the exact sparse derivatives. `options` are the
        solver's own. `progress=True` prints a line per iteration; a function gets the `NlpIteration`.

        >>> import numpy as np, riesz as rz
        >>> P = rz.nlp(lambda x, p: np.sum((x - p) ** 2), np.zeros(2), inequality=lambda x, p: 1.0 - x, parameters=3.0)
        >>> P.solve('slsqp').x.round(6), P.solve('slsqp', parameters=0.5).x.round(6)
        (array([1., 1.]), array([0.5, 0.5]))
        """
        if method not in METHODS:
            raise VectorError(f"method={method!r}: expected one of {', '.join(METHODS)}")
        from . import nlp_solvers

        if method == "auto":
            near = "slsqp" if self.functions.form.size <= SMALL else "trust-constr"
            method = "ipopt" if nlp_solvers.ipopt_problem() is not None else near
        if method == "ipopt" and nlp_solvers.ipopt_problem() is None:
            raise SolveError(
                "method='ipopt' needs Ipopt: pip install 'riesz[ipopt]' brings CasADi's wheel, which holds one; "
                "cyipopt or a libipopt of the system will do as well; 'trust-constr' and 'slsqp' need nothing"
            )
        functions = self.functions
        if parameters is not None:
            if self.parameters is None:
                raise VectorError("this problem was made without parameters: give rz.nlp(…, parameters=…) an example")
            functions.use(parameters)
        v0 = functions.form.flat(self.x0 if x0 is None else x0) if start is None or x0 is not None else start.flat.x
        run = {"ipopt": nlp_solvers.ipopt, "trust-constr": nlp_solvers.trust_constr, "slsqp": nlp_solvers.slsqp}[method]
        task = nlp_solvers.SolverTask(
            self, v0, None if start is None else start.flat, tolerance, max_iterations, _shown(progress), options
        )
        with working(f"solving a problem of {functions.form.size:,} unknowns by {method}"):
            return run(task)

    def __repr__(self) -> str:
        n, equations, inequalities = self.shape
        parts = [f"{n:,} unknowns"]
        parts += [f"{k:,} {what}{'s' * (k != 1)}" for k, what in ((equations, "equation"),) if k]
        parts += [f"{inequalities:,} {'inequalities' if inequalities != 1 else 'inequality'}"] if inequalities else []
        bounds = int(np.isfinite(self.lower).sum() + np.isfinite(self.upper).sum())
        parts += [f"{bounds:,} bounds"] if bounds else []
        return f"rz.nlp: {', '.join(parts)}"

    def displayed(self) -> Any:
        """What a notebook shows: sizes, and how many numbers the derivatives have."""
        from ..show.display.display_objects import FactTable

        F, rows = self.functions, list[tuple[str, str]]()
        if F.constraints.size:
            rows.append(("Jacobian", repr(F.J.pattern)))
        rows.append(("Hessian, lower half", repr(F.hessian_numbers.pattern)))
        return FactTable("nonlinear program", repr(self), rows, title=repr(self))


def _shown(progress: bool | Callable[[NlpIteration], None]) -> Callable[[NlpIteration], None] | None:
    return print if progress is True else progress or None
