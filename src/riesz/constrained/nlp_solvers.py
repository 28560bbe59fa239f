"""Ipopt, and SciPy's trust-constr and SLSQP, on the functions of a nonlinear program."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .ipopt_library import Problem, library
from .nlp_result import FlatSolution, NlpIteration, NlpResult

if TYPE_CHECKING:
    from .nonlinear_program import NonlinearProgram
    from .program_functions import ProgramFunctions


class SolverTask(NamedTuple):
    """A problem, where to begin, and what the caller wants."""

    problem: NonlinearProgram
    x0: Any
    start: FlatSolution | None
    tolerance: float
    max_iterations: int
    told: Callable[[NlpIteration], None] | None
    options: dict[str, Any]


class _Log:
    """Iterations as they come."""

    def __init__(self, told: Callable[[NlpIteration], None] | None) -> None:
        self.history: list[NlpIteration] = []
        self._told, self.began = told, time.perf_counter()

    def add(self, number: int, value: float, violation: float, stationarity: float) -> None:
        self.history.append(NlpIteration(number, float(value), float(violation), float(stationarity)))
        if self._told is not None:
            self._told(self.history[-1])

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began


class _Callbacks:
    """What cyipopt asks for."""

    def __init__(self, F: ProgramFunctions, log: _Log) -> None:
        self._functions, self._log = F, log
        self.objective, self.constraints, self.gradient = F.objective, F.held, F.gradient
        self.jacobian, self.hessian = F.jacobian, F.hessian

    def jacobianstructure(self) -> Any:
        return tuple(self._functions.J.pattern) if self._functions.constraints.size else (np.zeros(0, int),) * 2

    def hessianstructure(self) -> Any:
        return tuple(self._functions.hessian_numbers.pattern)

    def intermediate(self, _: int, number: int, value: float, violation: float, slope: float, *more: Any) -> bool:
        self._log.add(number, value, violation, slope)
        return True


def ipopt_problem() -> Any:
    """The class of Ipopt's problems: that of CasADi's or the system's library, else that of cyipopt; None without."""
    if library() is not None:
        return Problem
    return None if find_spec("cyipopt") is None else cast(Any, import_module("cyipopt")).Problem


def ipopt(task: SolverTask) -> NlpResult:
    """Ipopt."""
    problem, F = task.problem, task.problem.functions
    F.begin()
    log = _Log(task.told)
    m = F.constraints.size
    above = np.where(np.arange(m) < F.equations, 0.0, np.inf)
    calls = _Callbacks(F, log)
    if not m:
        calls.constraints, calls.jacobian = lambda v: np.zeros(0), lambda v: np.zeros(0)  # pyright: ignore
    solver = ipopt_problem()(
        n=F.form.size, m=m, problem_obj=calls, lb=problem.lower, ub=problem.upper, cl=np.zeros(m), cu=above
    )
    options = {"print_level": 0, "sb": "yes", "tol": task.tolerance, "max_iter": task.max_iterations, **task.options}
    given: dict[str, Any] = {}
    if task.start is not None:
        warm = {"warm_start_init_point": "yes", "mu_init": 1e-6}
        pushes = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push")
        warm |= {f"warm_start_{name}": 1e-6 for name in pushes}
        options = {**warm, **options}
        given = {"lagrange": task.start.constraints, "zl": task.start.lower, "zu": task.start.upper}
    for name, value in options.items():
        solver.add_option(name, value)
    x, info = solver.solve(task.x0, **given)
    said = info["status_msg"]
    message = (said.decode() if isinstance(said, bytes) else str(said)).strip()
    flat = FlatSolution(x, np.asarray(info["mult_g"]), np.asarray(info["mult_x_L"]), np.asarray(info["mult_x_U"]))
    number = log.history[-1].number if log.history else 0
    return NlpResult(problem, flat, info["status"] in (0, 1), message, "ipopt", number, log.history, log.seconds)


def trust_constr(task: SolverTask) -> NlpResult:
    """SciPy's trust-constr: a trust-region method, with barriers for inequalities."""
    scipy_optimize: Any = import_module("scipy.optimize")
    problem, F = task.problem, task.problem.functions
    F.begin()
    log, m = _Log(task.told), F.constraints.size
    zero, above = np.zeros(m), np.where(np.arange(m) < F.equations, 0.0, np.inf)
    options = {"gtol": task.tolerance, "xtol": 1e-12, "barrier_tol": task.tolerance, "maxiter": task.max_iterations}
    extra: list[Any] = []
    if m:
        hess = lambda v, weights: F.hessian_matrix(v, weights, 0.0)  # noqa: E731
        extra.append(scipy_optimize.NonlinearConstraint(F.held, zero, above, jac=F.jacobian_matrix, hess=hess))
    bounded = np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any()
    options, over = {**options, **task.options}, False
    ends = options["gtol"], options["barrier_tol"]
    if F.inequalities or bounded:
        options["gtol"] = 0.0  # SciPy would stop at the solution of a problem with a barrier, however high that is

    def seen(v: Any, state: Any) -> bool:
        nonlocal over
        log.add(state.nit, state.fun, getattr(state, "constr_violation", 0.0), getattr(state, "optimality", np.nan))
        barrier = getattr(state, "barrier_parameter", np.inf)
        over = barrier <= ends[1] and max(state.optimality, state.constr_violation) < ends[0]
        return over

    found = scipy_optimize.minimize(
        F.objective, task.x0, jac=F.gradient, hess=lambda v: F.hessian_matrix(v, zero, 1.0), method="trust-constr",
        constraints=extra, bounds=scipy_optimize.Bounds(problem.lower, problem.upper) if bounded else None,
        callback=seen, options=options,
    )  # fmt: skip
    multipliers = list(cast("list[Any]", found.v))
    held = np.asarray(multipliers[0]) if m else zero
    on_bounds = np.asarray(multipliers[-1]) if bounded else np.zeros(F.form.size)
    flat = FlatSolution(found.x, held, np.maximum(-on_bounds, 0.0), np.maximum(on_bounds, 0.0))
    fine = (over or found.status in (1, 2)) and found.constr_violation <= max(1e-6, task.tolerance)
    message = "`gtol` and `barrier_tol` are reached" if over else found.message
    return NlpResult(problem, flat, fine, message, "trust-constr", found.nit, log.history, log.seconds)


def slsqp(task: SolverTask) -> NlpResult:
    """SciPy's SLSQP: dense matrices, quick for a few dozen unknowns; no second derivatives."""
    scipy_optimize: Any = import_module("scipy.optimize")
    problem, F = task.problem, task.problem.functions
    F.begin()
    log, e = _Log(task.told), F.equations
    parts: list[Any] = []
    for kind, rows, count in (("eq", slice(None, e), e), ("ineq", slice(e, None), F.inequalities)):
        if count:
            fun = lambda v, rows=rows: F.held(v)[rows]  # noqa: E731
            jac = lambda v, rows=rows: F.jacobian_matrix(v).toarray()[rows]  # noqa: E731
            parts.append({"type": kind, "fun": fun, "jac": jac})

    def seen(v: Any) -> None:
        c = F.held(v)
        off = np.max(np.concatenate([np.abs(c[:e]), -c[e:]]), initial=0.0)
        log.add(len(log.history) + 1, F.objective(v), off, np.nan)

    options = {"ftol": task.tolerance**1.25, "maxiter": task.max_iterations, **task.options}
    bounds = scipy_optimize.Bounds(problem.lower, problem.upper)
    found = scipy_optimize.minimize(
        F.objective, task.x0, jac=F.gradient, method="SLSQP", constraints=parts, bounds=bounds, callback=seen,
        options=options,
    )  # fmt: skip
    flat = _estimated(problem, found.x)
    result = NlpResult(problem, flat, bool(found.success), found.message, "slsqp", found.nit, log.history, log.seconds)
    slope = 1e-6 * (1.0 + float(np.max(np.abs(F.gradient(found.x)), initial=0.0)))
    near = result.violation <= 1e-7 and result.stationarity <= slope  # it cannot get closer
    result.converged |= bool(near and result.finite)
    return result


def _estimated(problem: NonlinearProgram, x: Any) -> FlatSolution:
    """Multipliers of what is active: those with the smallest ∇L."""
    scipy_optimize: Any = import_module("scipy.optimize")
    F, n = problem.functions, len(x)
    c, e = F.held(x), F.equations
    rows = F.jacobian_matrix(x).toarray() if F.constraints.size else np.zeros((0, n))
    scale = 1e-6 * (1.0 + np.abs(x))
    active = [np.flatnonzero(x - problem.lower <= scale), np.flatnonzero(problem.upper - x <= scale)]
    some = np.append(np.arange(e), e + np.flatnonzero(c[e:] <= 1e-6))
    sides = [rows[some].T, -np.eye(n)[:, active[0]], np.eye(n)[:, active[1]]]
    matrix = np.concatenate(sides, axis=1)
    found = [np.zeros(len(c)), np.zeros(n), np.zeros(n)]
    if matrix.shape[1]:
        free = np.arange(len(some)) < e
        both = len(active[0]) + len(active[1])
        low = np.append(np.full(len(some), -np.inf), np.zeros(both))
        high = np.concatenate([np.where(free, np.inf, 1e-300), np.full(both, np.inf)])
        best = scipy_optimize.lsq_linear(matrix, -F.gradient(x), bounds=(low, high), tol=1e-14).x
        ends = np.cumsum([len(some), len(active[0])])
        for target, at, part in zip(found, (some, *active), np.split(best, ends), strict=True):
            target[at] = part
    return FlatSolution(x, *found)
