"""SciPy's functions that are given a function, inside a trace: brentq, fsolve, minimize, quad, solve_ivp and their kin.

SciPy solves with numbers, by the options it was given; derivatives are those of implicit functions, of integrals and of
differential equations. Where neither the function nor its arguments use anything traced, SciPy is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, cast

import numpy as np

from ...errors import SolveError
from ...tracing.argument_trees import flatten
from ...tracing.trace import forgive, refuse, refused
from ...tracing.traced import Traced, holds_traced, tidy
from ..gradients import grad
from .equation_solvers import Equation, polished
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
        given = _tuple(args)
        value = (lambda x, *a: fun(x, *a)[0]) if jac is True else fun
        one = lambda x, *a: np.sum(tidy(value(x, *a)))  # noqa: E731
        conditions = _equality(options.pop("constraints", ()))
        start = np.atleast_1d(_array(x0))
        for name in ("hess", "hessp", "callback"):
            options.pop(name, None)
        if (bounds := options.pop("bounds", None)) is not None:
            if conditions is not None:
                raise refuse("scipy.optimize.minimize: bounds and constraints together are not known in a trace")
            x = _bounded(original, one, start, given, bounds, method, options)
            return _result(x=x, fun=one(x, *given), jac=grad(one, 0)(x, *given))
        x = argmin(
            one, start, *given, equality=conditions, solver=method or ("SLSQP" if conditions else "BFGS"), **options
        )
        return _result(x=x, fun=one(x, *given), jac=grad(one, 0)(x, *given))

    return own


def _bounded(original: Any, f: Any, start: Any, args: Any, bounds: Any, method: Any, options: Any) -> Any:
    """The minimum between bounds: x = clip(x − ∇f(x)), which a bound that is reached makes x = bound."""
    pairs = list(zip(bounds.lb, bounds.ub, strict=True)) if hasattr(bounds, "lb") else [tuple(b) for b in bounds]
    ends = [
        np.stack([tidy(infinite if b is None else b) * 1.0 for b in side])
        for side, infinite in zip(zip(*pairs, strict=True), (-np.inf, np.inf), strict=True)
    ]
    sides = [np.broadcast_to(end, start.shape) for end in ends]

    def projected(f: Any) -> Any:
        slope = grad(f, 0)
        return lambda x, lower, upper, *a: x - np.clip(x - slope(x, lower, upper, *a), lower, upper)

    def solve(F: Any, functions: Any, x: Any, rest: Any) -> Any:
        eq, slope = Equation("scipy.optimize.minimize", F, x, rest), grad(functions[0], 0)
        value = lambda v: float(functions[0](v, *rest))  # noqa: E731
        more: dict[str, Any] = {"jac": lambda v: np.asarray(slope(v, *rest))}
        if method is not None and method.lower() in ("nelder-mead", "powell", "cobyla", "cobyqa"):
            more = {}
        limits = list(zip(rest[0], rest[1], strict=True))
        found = original(value, np.asarray(x), method=method, bounds=limits, **more, **options)
        return eq.tree(polished(eq, np.asarray(found.x), "scipy.optimize.minimize"))

    g = lambda x, lower, upper, *a: f(x, *a)  # noqa: E731
    return implicit("scipy.optimize.minimize", (g,), start, (*sides, *args), projected, solve)


def _equality(constraints: Any) -> Any:
    every = [constraints] if isinstance(constraints, dict) else list(constraints)
    if any([not isinstance(c, dict) or c["type"] != "eq" for c in every]):
        raise refuse(
            "scipy.optimize.minimize: constraints of traced parameters must be equations, {'type': 'eq', 'fun': h}; an "
            "inequality that holds with equality is one, others can be left out"
        )
    if not every:
        return None
    rows = lambda x, *a: [np.ravel(_row(c["fun"](x, *c.get("args", ())))) for c in every]  # noqa: E731
    return lambda x, *a: np.concatenate(rows(x, *a))


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
    def own(
        fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: Any = False,
        events: Any = None, vectorized: Any = False, args: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if events is not None or dense_output:
            raise refuse("scipy.integrate.solve_ivp with events or dense_output is not known for traced parameters")
        begin, end = _number(t_span[0]), _number(t_span[1])
        stop = None if holds_traced(end) else end
        options = {k: v for k, v in options.items() if k != "jac"}

        def run(g: Any, y: Any, ts: Any, t0: Any = None) -> Any:
            last = float(ts[-1]) if stop is None else stop
            found = original(g, (float(t0), last), y, method=method, t_eval=np.asarray(ts), **options)
            if not found.success:
                raise SolveError(f"scipy.integrate.solve_ivp: {found.message}")
            return found.y.T

        f = lambda t, y, *p: _row(fun(t, y, *p))  # noqa: E731
        given, start = () if args is None else _tuple(args), np.atleast_1d(_array(y0))
        if t_eval is None:
            chosen = lambda g, y, t0, t1: original(g, (t0, t1), y, method=method, **options).t  # noqa: E731
            inner = times_at("scipy.integrate.solve_ivp", f, start, begin, end, given, chosen)
            times = np.concatenate([np.reshape(begin, 1), inner, np.reshape(end, 1)])
        else:
            times = _array(t_eval)
        y = flow("scipy.integrate.solve_ivp", f, start, begin, times, given, run, method)
        from scipy.integrate._ivp.ivp import OdeResult  # pyright: ignore[reportMissingTypeStubs]

        return cast(Any, OdeResult)(t=times, y=np.transpose(y), sol=None, t_events=None, y_events=None, status=0,
                                    success=True, message="The solver successfully reached the end of the integration "
                                    "interval.")  # fmt: skip

    return own


_MAKERS: dict[str, Callable[[Any], Own]] = {
    **dict.fromkeys(["bisect", "brentq", "brenth", "ridder", "toms748"], _bracketed),
    **{"newton": _newton, "fsolve": _fsolve, "root": _root, "root_scalar": _root_scalar, "fixed_point": _fixed_point},
    **{"minimize": _minimize, "minimize_scalar": _minimize_scalar, "quad": _quad, "odeint": _odeint},
    "solve_ivp": _solve_ivp,
}


def solver_called(original: Any, args: Any, named: Any) -> Any:
    """A call of such a function inside a trace: our own where something traced is met, else the original."""
    met: list[bool] = [True for a in (*args, *named.values()) if holds_traced(a)]
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


class _Met(Exception):
    """Something traced came out of a function given to SciPy."""


def _watched(x: Any, met: list[bool]) -> Any:
    """A function that stops the solver when it gives something traced."""
    if isinstance(x, dict):
        return {k: _watched(v, met) for k, v in x.items()}
    if not callable(x) or isinstance(x, type):
        return x

    def f(*args: Any, **named: Any) -> Any:
        found = x(*args, **named)
        if any([type(y) is Traced or holds_traced(y) for y in flatten(found)[0]]):
            met.append(True)
            raise _Met
        return found

    return f
