"""The loop of a fit: a point, a step that is tried, the next point; and the damping of steps."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..calculus.interpretation.product_rules import metric
from ..checking.taylor import largest_eps
from ..errors import SolveError, VectorError
from ..functions.calling import function
from ..functions.jacobians import jacobian
from ..manifolds.prefix_trees import spread
from ..maps.linear_map import LinearMap
from ..ops.number_domains import NUMBERS
from ..programs.program import Program, outputs
from ..spaces.layout import ROOT
from ..tracing.argument_trees import flatten, unflatten
from .fit_result import Iteration, LeastSquaresResult
from .fit_steps import METHODS, LinearProblem, Ways, norm
from .robust_losses import Loss, Robust, loss_of
from .unknowns import Unknowns
from .whitening import whitened

Callback = Callable[[Iteration], Any]


class Settings:
    """The options of a fit."""

    def __init__(
        self, max_iterations: int, tolerance: float, progress: Any, method: str, *, loss: Any = None,
        loss_scale: float = 1.0, loss_axis: int | None = None, weights: Any = None, information: Any = None,
        bounds: Any = None, fixed: Any = None, x_scale: Any = None, equality: Any = None, manifold: Any = None,
        callback: Callback | None = None, cost_tolerance: float = 1e-14, checkpoint: Any = None, every: int = 1,
    ) -> None:  # fmt: skip
        if method not in METHODS:
            raise VectorError(f"method={method!r}: expected one of {', '.join(METHODS)}")
        if not loss_scale > 0:
            raise VectorError(f"loss_scale={loss_scale!r}: a positive number is due")
        if loss_axis not in (None, -1):
            raise VectorError(f"loss_axis={loss_axis!r}: None (each number by itself) or -1 (the last axis) is due")
        if isinstance(x_scale, str) and x_scale != "jac":
            raise VectorError(f"x_scale={x_scale!r}: 'jac', a positive number, or a tree like x0 is due")
        self.most, self.tolerance, self.method, self.callback = max_iterations, tolerance, method, callback
        self.report: Any = print if progress is True else progress or None
        self.loss, self.loss_scale, self.loss_axis = loss, float(loss_scale), loss_axis
        self.weights, self.information, self.equality = weights, information, equality
        self.bounds, self.fixed, self.x_scale, self.manifold = bounds, fixed, x_scale, manifold
        self.cost_tolerance, self.checkpoint, self.every = cost_tolerance, checkpoint, every
        if checkpoint is not None and equality is not None:
            instead = "keep the state of your own loop by rz.resumed_loop, or leave checkpoint out"
            raise VectorError(f"checkpoint= is not kept of fits with equality=: {instead}")


# -- the residual ------------------------------------------------------------------------------------------


class Residual:
    """r as a function of the unknowns and further arguments, its norm weighed, its derivative in the tangent space."""

    def __init__(self, residual: Any, unknowns: Unknowns, settings: Settings) -> None:
        if isinstance(residual, str):
            residual = function(residual)
        weighed = settings.weights is not None or settings.information is not None
        self.value = whitened(residual, settings.weights, settings.information) if weighed else residual
        self.unknowns, own = unknowns, self.value
        self.derivative = jacobian(pulled_back(own, tuple(unknowns.manifolds)) if unknowns.curved else own)

    def at(self, x: Any, args: tuple[Any, ...]) -> FitPoint:
        """The value at x."""
        with np.errstate(all="ignore"):
            return FitPoint(self, x, self.value(x, *args), args)


def pulled_back(residual: Any, manifolds: tuple[Any, ...]) -> Any:
    """The residual as a function of a tangent vector at x. It captures nothing made anew: its trace is found again."""

    def pulled(v: Any, x: Any, *args: Any) -> Any:
        leaves, tree = flatten(x)
        pairs = zip(manifolds, leaves, flatten(v)[0], strict=True)
        return residual(unflatten(tree, [a + s if M is None else M.retract(a, s) for M, a, s in pairs]), *args)

    return pulled


class FitPoint:
    """x with r(x), and r'(x) when it is asked for."""

    def __init__(self, residual: Residual, x: Any, y: Any, args: tuple[Any, ...]) -> None:
        self.x, self.y, self.args, self._of = x, y, args, residual
        parts = [np.asarray(leaf, float).reshape(-1) for leaf in flatten(y)[0]]
        self.flat = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])

    def derivative(self) -> LinearMap:
        """r'(x), from the tangent space at x."""
        of = self._of
        given = (of.unknowns.tangent(self.x), self.x) if of.unknowns.curved else (self.x,)
        with np.errstate(all="ignore"):
            return of.derivative(*given, *self.args)


def _rooted(J: LinearMap, y: Any) -> tuple[LinearMap, Any]:
    """J and y followed by the root of the codomain's inner product."""
    W, plain = J.codomain, J.codomain.unweighted
    r = plain.flatten(plain.wrap(metric(W.open(y), W, ROOT, NUMBERS))).astype(float)
    whole = Program()
    given = [whole.input(leaf.shape) for leaf in J.domain.leaves]
    whole.outputs = metric(outputs(J.program, whole, given), W, ROOT, whole)
    return LinearMap(J.domain, plain, whole, J.dtype), r


def _robust(settings: Settings, y: Any, free_rows: int) -> Robust | None:
    """The losses of the parts of a residual; the last `free_rows` numbers have none."""
    if settings.loss is None or settings.loss == "linear":
        return None
    leaves, tree = flatten(y)
    given = spread(settings.loss, tree, len(leaves), "loss") if isinstance(settings.loss, (dict, tuple, list)) else None
    losses: list[Loss | None] = [loss_of(settings.loss if given is None else g) for g in given or leaves]
    sizes = [int(np.size(leaf)) for leaf in leaves]
    ends = np.cumsum([0, *sizes])
    ranges = [slice(int(i), int(j)) for i, j in itertools.pairwise(ends)]
    widths = [np.shape(leaf)[-1] if settings.loss_axis == -1 and np.ndim(leaf) else 1 for leaf in leaves]
    return Robust(losses, ranges, widths, settings.loss_scale)


HALVINGS = 1
"""How often a damped step is halved before it is damped more."""

# -- how far to go -----------------------------------------------------------------------------------------


class Damping:
    """λ falls to a tenth where the linear model foretold the cost well, to a third where it did so roughly. A step that
    fails is halved, since that costs no factorisation; after `HALVINGS` of them λ grows, ever faster."""

    title = "Levenberg–Marquardt"

    def __init__(self, value: float, usual: bool = False) -> None:
        """`usual`: nobody asked for this value."""
        self.value, self.growth, self.length, self.halvings, self.usual = value, 2.0, 1.0, HALVINGS, usual
        self.last: tuple[LinearProblem | None, Any] = (None, None)

    def step(self, problem: LinearProblem) -> Any:
        """The step to try."""
        if self.length == 1.0 or self.last[0] is not problem:
            self.last = (problem, problem.step(self.value))
        return self.length * self.last[1]

    def accepted(self, ratio: float) -> None:
        """A step was taken, and its cost fell by `ratio` of what was foretold."""
        if self.length == 1.0:
            self.value = max(self.value * (0.1 if ratio > 0.75 else 1.0 / 3.0 if ratio > 0.25 else 1.0), 1e-16)
        self.growth, self.length, self.last = 2.0, 1.0, (None, None)

    def rejected(self) -> bool:
        """Whether to go on."""
        if self.length > 0.5**self.halvings:
            self.length /= 2.0
            return True
        self.value, self.length = self.value * self.growth, 1.0
        self.growth *= 2.0
        return self.value < 1e20


class Halving:
    """The undamped step, halved until the cost falls; `value` is what stands for the damping, 0."""

    title = "Gauss–Newton"

    def __init__(self) -> None:
        self.value, self.length = 0.0, 1.0
        self.last: tuple[LinearProblem | None, Any] = (None, None)

    def step(self, problem: LinearProblem) -> Any:
        """The step to try."""
        if self.last[0] is not problem:
            self.last = (problem, problem.step(0.0))
        return self.length * self.last[1]

    def accepted(self, ratio: float) -> None:
        """A step was taken."""
        self.length, self.last = 1.0, (None, None)

    def rejected(self) -> bool:
        """Whether to go on."""
        self.length /= 2.0
        return self.length > 1e-12


# -- the fit -------------------------------------------------------------------------------------------------


def start_of(x0: Any) -> Any:
    """Where a fit begins: numbers as floats; of another fit, where that ended."""
    x0 = x0.x if isinstance(x0, LeastSquaresResult) else x0
    leaves, tree = flatten(x0)
    kinds = [np.asarray(x) for x in leaves]
    if bad := [x for x, a in zip(leaves, kinds, strict=True) if a.dtype.kind not in "fiub"]:
        raise VectorError(f"the unknowns are numbers; x0 holds {bad[0]!r}")
    given = [
        x if a.dtype.kind == "f" else float(a) if not a.ndim else a.astype(float)
        for x, a in zip(leaves, kinds, strict=True)
    ]
    return unflatten(tree, given)


class Ended(NamedTuple):
    """Why a fit is over."""

    converged: bool
    message: str


def begun(residual: Any, x0: Any, args: Any, policy: Any, settings: Settings, work: Any) -> Fit:
    """A fit without equations, at its start."""
    start = start_of(x0)
    unknowns = Unknowns(start, settings.manifold, settings.fixed, settings.bounds, settings.x_scale)
    if unknowns.lower is not None:
        start = unknowns.moved(start, np.zeros(unknowns.n))
    f = Residual(residual, unknowns, settings)
    return Fit(f, f.at(start, args), policy, settings, work)


class Fit:
    """One fit: a point, and the way from it to the next."""

    def __init__(self, f: Residual, at: FitPoint, policy: Any, settings: Settings, work: Any) -> None:
        self.f, self.at, self.policy, self.settings, self.work = f, at, policy, settings, work
        self.unknowns, self.ways = f.unknowns, Ways()
        self.robust = _robust(settings, at.y, 0)
        kinds = [np.asarray(a).dtype for a in flatten(at.x)[0]]
        self.eps = max([largest_eps([kind]) for kind in kinds], default=float(np.finfo(float).eps))
        self.number, self.begun, self.name, self.scale = 0, time.perf_counter(), "none was needed", None
        self.jacobian = at.derivative()
        self.cost = self._cost(at, self.jacobian)
        if not math.isfinite(self.cost):
            where = int(np.argmin(np.isfinite(at.flat)))
            bad = f"the residual at x0 is {at.flat[where]} in component {where} of {len(at.flat)}"
            raise SolveError(f"least squares: {bad}; start where it is finite")
        self.history = [math.sqrt(2.0 * max(self.cost, 0.0))]

    @cached_property
    def problem(self) -> LinearProblem:
        """The linear problem at the point."""
        return self.look_again()

    def _cost(self, at: FitPoint, J: LinearMap) -> float:
        r = at.flat if J.codomain.plain else _rooted(J, at.y)[1]
        if not np.isfinite(r).all():
            return math.inf
        return 0.5 * float(r @ r) if self.robust is None else self.robust.cost(r)

    def look_again(self) -> LinearProblem:
        """The same, made anew."""
        plain, rows = self.jacobian.codomain.plain, None
        J, r = (self.jacobian, self.at.flat) if plain else _rooted(self.jacobian, self.at.y)
        if self.robust is not None:
            r, rows = self.robust.weighed(r)
        u = self.unknowns
        fixed_scale = None if u.scale is None else 1.0 / u.scale
        return LinearProblem(J, r, self.settings.method, self.scale, self.ways, rows, u.free, fixed_scale)

    def _held(self) -> Any:
        """Unknowns at a bound that the cost pushes against."""
        u = self.unknowns
        if u.lower is None:
            return None
        x, g = u.coordinates(self.at.x), self.problem.gradient
        held = ((x <= u.lower) & (g > 0)) | ((x >= u.upper) & (g < 0))
        return held if held.any() else None

    def run(self) -> LeastSquaresResult:
        """The result."""
        file = None if self.settings.checkpoint is None else self._from_checkpoint()
        end = self._look()
        while end is None:
            end = self._move()
            if end is None:
                if file is not None:
                    file.keep(len(self.history) - 1, self._state())
                end = self._look()
        absolute = self.settings.weights is not None or self.settings.information is not None
        at = self.at
        return LeastSquaresResult(
            at.x, at.y, self.cost, self.jacobian, self.history, self.number, end.converged, end.message, self.name,
            self.policy.value, absolute, self.unknowns, lambda: self.problem,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        policy, history = self.policy, np.array(self.history)
        how = {"damping": policy.value, "growth": getattr(policy, "growth", 0.0), "number": self.number}
        return {"x": self.at.x, "scale": self.scale, "history": history, **how}

    def _from_checkpoint(self) -> Any:
        """The file; the fit is where that says."""
        from ..files.checkpoints import Checkpoint

        u, policy, settings = self.unknowns, self.policy, self.settings
        of = {"the method": f"{policy.title} {settings.method}", "the first point": self.at.x, "damping": policy.value}
        of |= {"the residual there": self.at.flat, "its gradient": self.problem.gradient, "what is fixed": u.free}
        file = Checkpoint(settings.checkpoint, {**of, "bounds": (u.lower, u.upper)}, settings.every)
        found = file.found({**self._state(), "scale": 0.0})
        if found is not None:
            state = found[1]
            self.at, self.number = self.f.at(state["x"], self.at.args), state["number"]
            self.jacobian, self.scale = self.at.derivative(), state["scale"]
            self.cost, self.history = self._cost(self.at, self.jacobian), state["history"].tolist()
            policy.value = state["damping"]
            policy.__dict__.update({"growth": state["growth"]} if hasattr(policy, "growth") else {})
            self.problem = self.look_again()
        return file

    def _look(self) -> Ended | None:
        """Whether x is a minimum already."""
        self.scale = self.problem.scale
        if not self.problem.finite:
            return Ended(False, "the derivative of the residual is not finite at x")
        held = self._held()
        if self.problem.cosine(held) <= max(self.settings.tolerance, 4.0 * self.eps):
            if held is not None:
                return Ended(True, "the gradient is 0 but for unknowns at their bounds")
            return Ended(True, "the gradient is 0" + ("" if self.cost else ", and so is the residual"))
        self.linear = self.problem if held is None else self.problem.without(held)
        return None

    def _step(self, linear: LinearProblem) -> Any:
        """The step to try; nan where there is none, 0 for what does not move."""
        try:
            step = self.policy.step(linear)
        except SolveError:
            return np.full(self.unknowns.n, np.nan)
        return step if linear.free is None else np.where(linear.free, step, 0.0)

    def _outward(self, step: Any, coordinates: Any) -> Any:
        """Unknowns at a bound that a step would leave."""
        u = self.unknowns
        return ((coordinates <= u.lower) & (step < 0)) | ((coordinates >= u.upper) & (step > 0))

    def _move(self) -> Ended | None:
        """Try steps until one lowers the cost."""
        linear, u, policy, settings = self.linear, self.unknowns, self.policy, self.settings
        coordinates = u.coordinates(self.at.x)
        here, bad, small, foreseen = norm(self.scale * coordinates), False, False, math.nan
        while True:
            if self.number >= settings.most:
                return Ended(False, f"max_iterations={settings.most} are used up")
            self.number += 1
            step = self._step(linear)
            while u.lower is not None and (out := self._outward(step, coordinates)).any():
                linear = linear.without(out)  # at a bound that the step pushes against, though the gradient does not
                step = self._step(linear)
            self.name = linear.name or self.name
            if u.lower is not None:
                step = np.clip(coordinates + step, u.lower, u.upper) - coordinates
            foretold = -float(linear.gradient @ step) - 0.5 * norm(linear.product(step)) ** 2
            if math.isnan(foreseen) and foretold >= 0:  # less than 0: a step that was cut at bounds
                foreseen = foretold
                small = policy.value <= 1.0 and norm(self.scale * step) <= settings.tolerance * (
                    here + settings.tolerance
                )
            trial = self.f.at(u.moved(self.at.x, step), self.at.args) if np.isfinite(step).all() else None
            cost = math.inf if trial is None else self._cost(trial, self.jacobian)
            bad = bad or not math.isfinite(cost)
            ratio = (self.cost - cost) / foretold if foretold > 0 else -1.0
            good = trial is not None and ratio > 1e-4
            if self.work:
                self.work.say(self.number, f"cost {min(cost, self.cost):.3e}")
            size, seconds = norm(step), time.perf_counter() - self.begun
            x = trial.x if trial is not None and good else self.at.x
            said = Iteration(self.number, cost, size, policy.value, seconds, good, x)
            if settings.report is not None:
                settings.report(said)
            if good and trial is not None:
                fell, light = self.cost - cost, policy.value <= 1e-2
                policy.accepted(ratio)
                self.at, self.cost = trial, cost
                self.jacobian = trial.derivative()
                del linear, self.linear, self.problem  # with its matrix, before there is another one
                self.problem = self.look_again()
                self.history.append(math.sqrt(2.0 * max(cost, 0.0)))
                if settings.callback is not None and settings.callback(said):
                    return Ended(False, "the callback asked to stop")
                if small:
                    return Ended(True, "the step is small")
                if light and max(fell, foretold) <= settings.cost_tolerance * cost:
                    return Ended(True, f"the cost falls by less than {settings.cost_tolerance:g} of itself")
                return None
            level = abs(cost - self.cost) <= 16.0 * self.eps * self.cost
            if small or foreseen <= (0.01 * math.sqrt(self.eps) if level else 16.0 * self.eps) * self.cost:
                return Ended(True, "the cost cannot fall any more but for rounding")
            if not policy.rejected():
                why = ": the residual is not finite nearby" if bad else ""
                return Ended(foreseen <= math.sqrt(self.eps) * self.cost, f"no step lowers the cost{why}")
