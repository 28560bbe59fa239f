"""SciPy's functions that are given a function, inside a trace: brentq, fsolve, minimize, quad, solve_ivp and their kin.

SciPy solves with numbers, by the options it was given; derivatives are those of implicit functions, of integrals and of
differential equations. Where neither the function nor its arguments use anything traced, SciPy is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import Parameter, signature
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ...errors import SolveError
from ...tracing.argument_trees import flatten
from ...tracing.trace import forgive, refuse, refused
from ...tracing.traced import Traced, holds_traced, tidy
from ..gradients import grad
from ..jacobians import jacobian
from .constrained_minima import conditions_of, constrained, sides_of
from .equation_solvers import Equation, polished
from .flow_events import Trajectory, event_times
from .implicit_functions import argmin, implicit
from .integrals import flow, integral, times_at

Own = Callable[..., Any]


def _tuple(args: Any) -> tuple[Any, ...]:
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def _row(y: Any) -> Any:
    """What a function gives to SciPy, as an array: lists of numbers are one."""
    return np.stack([tidy(part) for part in y]) if isinstance(y, (list, tuple)) else tidy(y)


def _solved(original: Any, f: Any, x0: Any, args: Any, run: Any, between: tuple[Any, ...] = ()) -> Any:
    """x with f(x, *args) = 0, where `run(f, x0, *between)` finds it with numbers."""
    name, k = f"scipy.optimize.{original.__name__}", len(between)

    def solve(F: Any, functions: Any, x: Any, rest: Any) -> Any:
        eq = Equation(name, F, x, rest)
        number = not np.ndim(x)
        own = lambda v: (lambda y: float(y[0]) if number else y)(eq(np.ravel(v)))  # noqa: E731
        found = run(own, float(x) if number else np.asarray(x), *rest[:k])
        return eq.tree(polished(eq, np.ravel(np.asarray(found, float)), name))

    return implicit(name, (lambda x, *given: _row(f(x, *given[k:])),), x0, (*between, *args), lambda f: f, solve)


def _bracketed(original: Any) -> Own:
    def own(f: Any, a: Any, b: Any, args: Any = (), **options: Any) -> Any:
        full = options.pop("full_output", False)
        run = lambda g, x, a, b: original(g, float(a), float(b), **options)  # noqa: E731
        x = _solved(original, f, 0.5 * (a + b), _tuple(args), run, (_number(a), _number(b)))
        return (x, _found_root(x, original.__name__)) if full else x

    return own


def _number(x: Any) -> Any:
    return x if holds_traced(x) else float(x)


def _found_root(x: Any, method: str) -> Any:
    from scipy.optimize import RootResults

    return RootResults(x, -1, -1, 0, method)


def _newton(original: Any) -> Own:
    def own(func: Any, x0: Any, fprime: Any = None, args: Any = (), **options: Any) -> Any:
        if options.pop("full_output", False):
            raise refuse("scipy.optimize.newton with full_output=True is not known in a trace; write rz.root(f, x0, …)")
        options.pop("fprime2", None)  # derivatives of the user's may be traced: SciPy's differences serve
        return _solved(original, func, x0, _tuple(args), lambda g, x: original(g, x, **options))

    return own


def _fsolve(original: Any) -> Own:
    def own(func: Any, x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0, **options: Any) -> Any:
        if full_output:
            raise refuse("scipy.optimize.fsolve with full_output is not known in a trace; write rz.root(f, x0, …)")
        run = lambda g, x: original(g, x, **options)  # noqa: E731
        return _solved(original, func, np.atleast_1d(_array(x0)), _tuple(args), run)

    return own


def _array(x: Any) -> Any:
    """A start as an array of floats."""
    return _row(x) if holds_traced(x) else np.asarray(x, float)


def _root(original: Any) -> Own:
    def own(fun: Any, x0: Any, args: Any = (), method: Any = "hybr", jac: Any = None, **options: Any) -> Any:
        f = (lambda x, *a: fun(x, *a)[0]) if jac is True else fun
        run = lambda g, x: original(g, x, method=method, **options).x  # noqa: E731
        x = _solved(original, f, np.atleast_1d(_array(x0)), _tuple(args), run)
        return _result(x=x, fun=_row(f(x, *_tuple(args))), method=method)

    return own


def _result(**parts: Any) -> Any:
    from scipy.optimize import OptimizeResult

    return OptimizeResult(success=True, status=0, message="found (a failure is an error inside a trace)", **parts)


def _root_scalar(original: Any) -> Own:
    def own(
        f: Any, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None, fprime2: Any = None,
        x0: Any = None, x1: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        given = _tuple(args)
        first = (lambda x, *a: f(x, *a)[0]) if fprime is True else f
        if bracket is not None:
            how = None if method in (None, "newton", "halley", "secant") else method
            run = lambda g, x, a, b: original(g, method=how, bracket=(float(a), float(b)), **options).root  # noqa: E731
            ends = tuple([_number(e) for e in bracket])
            x = _solved(original, first, 0.5 * (ends[0] + ends[1]), given, run, ends)
        else:
            run = lambda g, x: original(g, method="secant", x0=x, x1=x1, **options).root  # noqa: E731
            x = _solved(original, first, _number(x0), given, run)
        return _found_root(x, method or "")

    return own


def _fixed_point(original: Any) -> Own:
    def own(func: Any, x0: Any, args: Any = (), **options: Any) -> Any:
        run = lambda g, x: original(lambda v: v - g(v), x, **options)  # noqa: E731
        return _solved(original, lambda x, *a: x - func(x, *a), x0, _tuple(args), run)

    return own


def _minimize(original: Any) -> Own:
    def own(fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, **options: Any) -> Any:
        given, start = _tuple(args), np.atleast_1d(_array(x0))
        value = (lambda x, *a: fun(x, *a)[0]) if jac is True else fun
        one = lambda x, *a: np.sum(tidy(value(x, *a)))  # noqa: E731
        for name in ("hess", "hessp", "callback"):
            options.pop(name, None)
        zero, positive = conditions_of(options.pop("constraints", ()), start, _row)
        bounds = options.pop("bounds", None)
        if bounds is None and positive is None:
            how = method or ("SLSQP" if zero else "BFGS")
            x = argmin(one, start, *given, equality=zero, solver=how, **options)
        else:

            def run(f: Any, h: Any, g: Any, x: Any, lower: Any, upper: Any) -> Any:
                kinds = [("eq", h), ("ineq", g)]
                rows = [{"type": k, "fun": c, "jac": _dense_slopes(c)} for k, c in kinds if c is not None]
                more: dict[str, Any] = {"constraints": rows} if rows else {}
                if np.any(np.isfinite(lower) | np.isfinite(upper)):
                    more["bounds"] = list(zip(lower, upper, strict=True))
                if method is None or method.lower() not in ("nelder-mead", "powell", "cobyla", "cobyqa"):
                    more["jac"] = lambda v: np.asarray(grad(f)(v))
                return original(lambda v: float(f(v)), x, method=method, **more, **options).x

            x = _least(original, one, start, given, sides_of(bounds, start), run, zero, positive)
        return _result(x=x, fun=one(x, *given), jac=grad(one, 0)(x, *given))

    return own


def _least(
    original: Any, f: Any, start: Any, args: Any, sides: Any, run: Any, zero: Any = None, positive: Any = None
) -> Any:
    return constrained(f"scipy.optimize.{original.__name__}", f, start, args, sides, zero, positive, run)


def _dense_slopes(c: Any) -> Any:
    slopes = jacobian(c)
    return lambda v: slopes(v).to_dense()


def _fmin(original: Any) -> Own:
    """fmin, fmin_bfgs, fmin_cg, …: the point alone."""
    method = _METHODS[original.__name__]

    def own(x0: Any, args: Any = (), full_output: Any = 0, retall: Any = 0, disp: Any = 0, **options: Any) -> Any:
        f = options.pop("func", None) or options.pop("f")
        if full_output or retall:
            raise refuse(
                f"scipy.optimize.{original.__name__} with full_output or retall is not known in a trace; write "
                f"scipy.optimize.minimize(f, x0, method={method!r})"
            )
        x = _minimize(minimizer())(f, x0, args, method, bounds=options.get("bounds")).x
        return (x, f(x, *_tuple(args)), {"warnflag": 0}) if method == "L-BFGS-B" else x

    return own


def minimizer() -> Any:
    """scipy.optimize.minimize."""
    from scipy.optimize import minimize

    return minimize


_METHODS = {
    **{"fmin": "Nelder-Mead", "fmin_bfgs": "BFGS", "fmin_cg": "CG", "fmin_powell": "Powell"},
    **{"fmin_ncg": "BFGS", "fmin_l_bfgs_b": "L-BFGS-B"},
}


def _global(original: Any) -> Own:
    """differential_evolution, dual_annealing and their kin: a global minimum between bounds."""

    def own(func: Any, bounds: Any, args: Any = (), **options: Any) -> Any:
        given = _tuple(args)
        pairs = list(zip(bounds.lb, bounds.ub, strict=True)) if hasattr(bounds, "lb") else list(bounds)
        start = np.asarray([0.5 * (float(a) + float(b)) for a, b in pairs])
        one = lambda x, *a: np.sum(tidy(func(x, *a)))  # noqa: E731

        def run(f: Any, h: Any, g: Any, x: Any, lower: Any, upper: Any) -> Any:
            return original(lambda v: float(f(np.asarray(v))), list(zip(lower, upper, strict=True)), **options).x

        x = _least(original, one, start, given, sides_of(bounds, start), run)
        return _result(x=x, fun=one(x, *given))

    return own


def _fitting(original: Any) -> Own:
    """least_squares, curve_fit and their kin."""
    from . import least_squares_fits as fits

    return getattr(fits, original.__name__)(original)


def _minimize_scalar(original: Any) -> Own:
    def own(fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), **options: Any) -> Any:
        given, ends = _tuple(args), tuple([_number(e) for e in (bounds or bracket or ())])
        kind = "bounds" if bounds is not None else "bracket"

        def run(g: Any, x: Any, *ends: Any) -> Any:
            return original(g, **({kind: tuple(map(float, ends))} if ends else {}), **options).x

        k, slope = len(ends), lambda f: lambda x, *a: grad(f, 0)(x, *a)

        def solve(F: Any, functions: Any, x: Any, rest: Any) -> Any:
            eq = Equation("scipy.optimize.minimize_scalar", F, x, rest)
            found = run(lambda v: float(functions[0](float(v), *rest)), x, *rest[:k])
            try:
                return eq.tree(polished(eq, np.array([float(found)]), "scipy.optimize.minimize_scalar"))
            except SolveError as problem:
                said = "the minimum is at a bound or a kink, where it has no derivative by ∇f = 0"
                raise SolveError(f"scipy.optimize.minimize_scalar: {said} ({problem})") from problem

        start = 0.5 * (ends[0] + ends[1]) if ends else 0.0
        f = lambda x, *a: fun(x, *a[k:])  # noqa: E731
        x = implicit("scipy.optimize.minimize_scalar", (f,), start, (*ends, *given), slope, solve)
        return _result(x=x, fun=fun(x, *given))

    return own


def _fminbound(original: Any) -> Own:
    def own(func: Any, x1: Any, x2: Any, args: Any = (), xtol: Any = 1e-9, **options: Any) -> Any:
        return _scalar_minimum(func, args, method="bounded", bounds=(x1, x2), options={"xatol": xtol})

    return own


def _brent(original: Any) -> Own:
    def own(func: Any, args: Any = (), brack: Any = None, full_output: Any = 0, **options: Any) -> Any:
        if full_output:
            raise refuse(f"scipy.optimize.{original.__name__} with full_output is not known; write minimize_scalar(f)")
        return _scalar_minimum(func, args, method=original.__name__, bracket=brack)

    return own


def _scalar_minimum(func: Any, args: Any, **options: Any) -> Any:
    from scipy.optimize import minimize_scalar

    return _minimize_scalar(minimize_scalar)(func, args=args, **options).x


def _iteration(original: Any) -> Own:
    """broyden1, newton_krylov and their kin."""

    def own(F: Any, xin: Any, **options: Any) -> Any:
        run = lambda g, x: original(g, x, **options)  # noqa: E731
        return _solved(original, F, _array(xin), (), run)

    return own


def _quad(original: Any) -> Own:
    def own(func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
        if full_output or options.get("complex_func") or options.get("weight"):
            raise refuse(
                "scipy.integrate.quad with full_output, complex_func or weight is not known for traced parameters"
            )
        given = _tuple(args)
        run = lambda g, a, b: original(g, a, b, **options)[:2]  # noqa: E731
        return integral("scipy.integrate.quad", lambda t, *p: tidy(func(t, *p)), _number(a), _number(b), given, run)

    return own


def _quad_vec(original: Any) -> Own:
    def own(f: Any, a: Any, b: Any, *, args: Any = (), full_output: Any = False, **options: Any) -> Any:
        if full_output:
            raise refuse("scipy.integrate.quad_vec with full_output is not known for traced parameters; leave it out")
        run = lambda g, a, b: original(g, a, b, **options)[:2]  # noqa: E731
        name = "scipy.integrate.quad_vec"
        return integral(name, lambda t, *p: _row(f(t, *p)), _number(a), _number(b), _tuple(args), run)

    return own


def _nested(name: str, f: Any, ranges: list[Any], args: tuple[Any, ...], options: Any) -> Any:
    """∫…∫ f(x₀, …, xₙ), x₀ innermost; a range is a pair or a function of the variables outside of it."""
    from scipy.integrate import quad

    def inner(k: int, outer: tuple[Any, ...]) -> Any:
        if k < 0:
            return tidy(f(*outer, *args)), 0.0
        span = ranges[k](*outer, *args) if callable(ranges[k]) else ranges[k]
        a, b = [e(*outer) if callable(e) else e for e in span]
        run = lambda g, a, b: quad(g, a, b, **options)[:2]  # noqa: E731
        return integral(name, lambda t: inner(k - 1, (t, *outer))[0], _number(a), _number(b), (), run)

    return inner(len(ranges) - 1, ())


def _dblquad(original: Any) -> Own:
    def own(func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), **options: Any) -> Any:
        return _nested("scipy.integrate.dblquad", func, [(gfun, hfun), (a, b)], _tuple(args), options)

    return own


def _tplquad(original: Any) -> Own:
    def own(
        func: Any, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (), **options: Any
    ) -> Any:
        low, high = [(lambda y, x, q=q: q(x, y)) if callable(q) else q for q in (qfun, rfun)]
        return _nested("scipy.integrate.tplquad", func, [(low, high), (gfun, hfun), (a, b)], _tuple(args), options)

    return own


def _nquad(original: Any) -> Own:
    def own(func: Any, ranges: Any, args: Any = None, opts: Any = None, full_output: Any = False) -> Any:
        if full_output or not (opts is None or isinstance(opts, dict)):
            raise refuse("scipy.integrate.nquad with full_output or a list of options is not known in a trace")
        given = () if args is None else _tuple(args)
        return _nested("scipy.integrate.nquad", func, list(ranges), given, opts or {})

    return own


def _odeint(original: Any) -> Own:
    def own(func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, **options: Any) -> Any:
        if options.pop("full_output", False):
            raise refuse("scipy.integrate.odeint with full_output is not known for traced parameters; leave it out")
        first, start = options.pop("tfirst", False), np.atleast_1d(_array(y0))
        times = _array(t)
        f = (lambda t, y, *p: _row(func(t, y, *p))) if first else (lambda t, y, *p: _row(func(y, t, *p)))
        run = lambda g, y, ts, t0: original(g, y, ts, tfirst=True, **options)  # noqa: E731
        return flow("scipy.integrate.odeint", f, start, times[0], times, _tuple(args), run, "LSODA")

    return own


def _solve_ivp(original: Any) -> Own:
    name = "scipy.integrate.solve_ivp"

    def own(
        fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: Any = False,
        events: Any = None, vectorized: Any = False, args: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        begin, end = _number(t_span[0]), _number(t_span[1])
        stop = None if holds_traced(end) else end
        options = {k: v for k, v in options.items() if k != "jac"}
        given, start = () if args is None else _tuple(args), np.atleast_1d(_array(y0))
        happen = [] if events is None else [events] if callable(events) else list(events)
        f = lambda t, y, *p: _row(fun(t, y, *p))  # noqa: E731

        def solve(g: Any, events: Any, y: Any, t0: Any, t1: Any, ts: Any = None) -> Any:
            found = original(g, (t0, t1), y, method=method, t_eval=ts, events=events or None, **options)
            if not found.success:
                raise SolveError(f"{name}: {found.message}")
            return found

        def run(g: Any, y: Any, ts: Any, t0: Any = None) -> Any:
            last = float(ts[-1]) if stop is None or happen else stop
            return solve(g, None, y, float(t0), last, np.asarray(ts)).y.T if len(ts) else np.zeros((0, len(y)))

        flowing = lambda y, t0, ts, *p: flow(name, f, y, t0, ts, p, run, method)  # noqa: E731
        over: dict[str, Any] = {"t_events": None, "y_events": None, "status": 0}
        if happen:
            times, known = event_times(f, happen, start, begin, end, given, solve, flowing)
            bounds = np.cumsum([0, *known.counts])
            over["t_events"] = [times[i:j] for i, j in pairwise(bounds)]
            over["y_events"] = [flowing(start, begin, ts, *given) for ts in over["t_events"]]
            if known.end >= 0:
                end, over["status"] = times[known.end], 1
        if t_eval is None:
            chosen = lambda g, y, t0, t1: solve(g, None, y, t0, t1).t  # noqa: E731
            inner = times_at(name, f, start, begin, end, given, chosen)
            times = np.concatenate([np.reshape(begin, 1), inner, np.reshape(end, 1)])
        else:
            times = _array(t_eval)
            if over["status"]:  # what comes after the end is left out; how many are is decided at the point
                forward = bool(t_span[1] >= t_span[0])
                times = times[: sum([bool((t <= end) if forward else (t >= end)) for t in times])]
        y = flowing(start, begin, times, *given)
        sol = Trajectory(lambda ts: flowing(start, begin, ts, *given), begin, end) if dense_output else None
        from scipy.integrate._ivp.ivp import MESSAGES, OdeResult  # pyright: ignore[reportMissingTypeStubs]

        return cast(Any, OdeResult)(t=times, y=np.transpose(y), sol=sol, success=True, message=MESSAGES[over["status"]],
                                    **over)  # fmt: skip

    return own


_MAKERS: dict[str, Callable[[Any], Own]] = {
    **dict.fromkeys(["bisect", "brentq", "brenth", "ridder", "toms748"], _bracketed),
    **{"newton": _newton, "fsolve": _fsolve, "root": _root, "root_scalar": _root_scalar, "fixed_point": _fixed_point},
    **{"minimize": _minimize, "minimize_scalar": _minimize_scalar, "quad": _quad, "odeint": _odeint},
    "solve_ivp": _solve_ivp,
    **dict.fromkeys(["broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing"], _iteration),
    "newton_krylov": _iteration,
    **dict.fromkeys(_METHODS, _fmin),
    **dict.fromkeys(["differential_evolution", "dual_annealing", "shgo", "direct"], _global),
    **dict.fromkeys(["least_squares", "leastsq", "curve_fit", "nnls", "lsq_linear"], _fitting),
    **{"fminbound": _fminbound, "brent": _brent, "golden": _brent, "quad_vec": _quad_vec},
    **{"dblquad": _dblquad, "tplquad": _tplquad, "nquad": _nquad},
}


def solver_called(original: Any, args: Any, named: Any) -> Any:
    """A call of such a function inside a trace: our own where something traced is met, else the original."""
    met: list[bool] = [True for a in (*args, *named.values()) if holds_traced(a) or _limited(a)]
    if not met:
        before = refused()
        try:
            return original(*[_watched(a, met) for a in args], **{k: _watched(v, met) for k, v in named.items()})
        except Exception:
            if not met:
                raise
            forgive(before)
    called = signature(original)
    given = called.bind(*args, **named).arguments  # by name, also what was given by position
    rest = [k for k, p in called.parameters.items() if p.kind is Parameter.VAR_KEYWORD]
    more = given.pop(rest[0], {}) if rest else {}
    return _MAKERS[original.__name__](original)(**given, **more)


def _limited(x: Any) -> bool:
    """Whether bounds or constraints have traced limits."""
    parts = x if type(x) in (list, tuple) else [x]
    return any([holds_traced([part.lb, part.ub]) for part in parts if hasattr(part, "lb")])


class _Met(Exception):
    """Something traced came out of a function given to SciPy."""


def _watched(x: Any, met: list[bool]) -> Any:
    """A function that stops the solver when it gives something traced."""
    if isinstance(x, dict):
        return {k: _watched(v, met) for k, v in x.items()}
    if type(x) in (list, tuple) and any([isinstance(part, dict) or hasattr(part, "fun") for part in x]):
        return type(x)([_watched(part, met) for part in x])
    if callable(fun := getattr(x, "fun", None)) and not callable(x):  # a NonlinearConstraint
        seen = copy(x)
        seen.fun = _watched(fun, met)
        return seen
    if not callable(x) or isinstance(x, type):
        return x

    def f(*args: Any, **named: Any) -> Any:
        found = x(*args, **named)
        if any([type(y) is Traced or holds_traced(y) for y in flatten(found)[0]]):
            met.append(True)
            raise _Met
        return found

    return f
