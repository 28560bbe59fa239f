"""SciPy's functions of functions with traced parameters, against formulas and differences of SciPy itself."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so

import riesz as rz

CUBIC = lambda x, a: x**3 + x - a  # noqa: E731


def pair(x: Any, a: Any) -> Any:
    return [x[0] ** 2 + x[1] - a, x[0] - np.sin(x[1])]


ROOTS: dict[str, Any] = {
    "brentq": lambda a: so.brentq(lambda x: CUBIC(x, a), 0, 5),
    "brentq by arguments": lambda a: so.brentq(CUBIC, 0, 5, args=(a,)),
    "brentq, moving ends": lambda a: so.brentq(CUBIC, 0, a, args=(a,)),
    "bisect": lambda a: so.bisect(CUBIC, 0, 5, args=a),
    "ridder": lambda a: so.ridder(CUBIC, 0, 5, args=(a,)),
    "brenth, all": lambda a: so.brenth(CUBIC, 0, 5, args=(a,), full_output=True)[1].root,
    "brentq by position": lambda a: so.brentq(CUBIC, 0, 5, (a,), 1e-13, 1e-13, 200, False),
    "newton by position": lambda a: so.newton(CUBIC, 1.5, None, (a,), 1e-12, 60),
    "minimize by position": lambda a: so.minimize(lambda x, a: np.sum((x - a) ** 2), [0.5], (a,), "CG", None).x[0] ** 2,
    "toms748": lambda a: so.toms748(CUBIC, 0, 5, args=(a,)),
    "newton": lambda a: so.newton(lambda x: CUBIC(x, a), 1.5),
    "newton, slope": lambda a: so.newton(CUBIC, 1.5, lambda x, a: 3 * x**2 + 1, (a,)),
    "fsolve": lambda a: so.fsolve(CUBIC, 1.5, args=(a,))[0],
    "fsolve, two": lambda a: np.sum(so.fsolve(pair, [1.0, 1.0], args=(a,)) ** 2),
    "root": lambda a: np.sum(so.root(pair, np.ones(2), (a,)).x ** 2),
    "root, another": lambda a: np.sum(so.root(lambda x: np.array(pair(x, a)), np.ones(2), method="lm").x ** 2),
    "root_scalar": lambda a: so.root_scalar(lambda x: CUBIC(x, a), bracket=(0, 5)).root,
    "root_scalar, start": lambda a: so.root_scalar(CUBIC, (a,), x0=1.5, x1=2.0).root,
    "fixed_point": lambda a: so.fixed_point(lambda x: np.cos(x / a), 1.0),
    "minimize": lambda a: np.sum(so.minimize(lambda x: np.sum((x - a) ** 2) + np.sum(x**4), np.zeros(2)).x),
    "minimize, value": lambda a: so.minimize(lambda x, a: np.sum((x - a) ** 2 + x**4), np.zeros(2), (a,)).fun,
    "minimize, slope": lambda a: so.minimize(
        lambda x: (np.sum((x - a) ** 2 + x**4), 2 * (x - a) + 4 * x**3), np.zeros(2), jac=True
    ).x[0],
    "minimize, simplex": lambda a: so.minimize(
        lambda x: np.sum((x - a) ** 4 + x**2), [0.5], method="Nelder-Mead", tol=1e-10
    ).x[0],
    "minimize on a surface": lambda a: so.minimize(
        lambda x: np.sum((x - np.array([1.0, 2.0, 3.0])) ** 2),
        np.ones(3),
        constraints={"type": "eq", "fun": lambda x: np.sum(x**2) - a},
    ).x[1],
    "minimize between bounds": lambda a: np.sum(
        np.array([1.0, 2.0, 4.0])
        * so.minimize(lambda x: np.sum((x - np.array([a / 4, a, -a])) ** 2), np.zeros(3), bounds=[(0, 1)] * 3).x
    ),
    "minimize, moving bounds": lambda a: np.sum(
        so.minimize(lambda x: np.sum((x - 9.0) ** 2), np.zeros(2), bounds=[(0, a), (None, None)]).x
    ),
    "minimize_scalar": lambda a: so.minimize_scalar(lambda x: (x - 1) ** 2 + a * x**4).x,
    "minimize_scalar, bounds": lambda a: (
        so.minimize_scalar(lambda x, a: np.cosh(x - a), bounds=(0, 9), args=(a,), method="bounded").x
    ),
    "quad": lambda a: si.quad(lambda t: np.exp(-a * t) * np.cos(t), 0, 1)[0],
    "quad to infinity": lambda a: si.quad(lambda t, a: np.exp(-a * t), 0, np.inf, args=(a,))[0],
    "quad, moving ends": lambda a: si.quad(lambda t: np.sin(a * t), a / 2, a**2)[0],
    "fixed_quad": lambda a: si.fixed_quad(lambda t: np.exp(-a * t), 0, 1, n=5)[0],
    "odeint": lambda a: np.sum(si.odeint(lambda y, t: [y[1], -a * np.sin(y[0])], [1.0, 0.0], [0, 0.5, 1.0])),
    "odeint, time first": lambda a: si.odeint(
        lambda t, y, a: -a * y * t, a, np.linspace(0, 1, 4), args=(a,), tfirst=True
    )[-1, 0],
    "solve_ivp": lambda a: np.sum(
        si.solve_ivp(
            lambda t, y: [y[1], -a * np.sin(y[0])], (0, 1), [1.0, a], t_eval=[0.3, 1.0], rtol=1e-10, atol=1e-12
        ).y
    ),
    "solve_ivp, its own times": lambda a: si.solve_ivp(
        lambda t, y, a: -a * y, (0, 2), [1.0], args=(a,), rtol=1e-10, atol=1e-12
    ).y[0, -1],
    "solve_ivp, moving end": lambda a: si.solve_ivp(
        lambda t, y: -y * t, (0, a), [1.0], rtol=1e-10, atol=1e-12, method="LSODA"
    ).y[0, -1],
    "solve_ivp, moving start": lambda a: si.solve_ivp(
        lambda t, y: -y * t, (a / 2, 2), [1.0], t_eval=[2.0], rtol=1e-10, atol=1e-12, method="DOP853"
    ).y[0, -1],
}


@pytest.mark.parametrize("name", ROOTS)
def test_values_and_derivatives(name: str) -> None:
    f = ROOTS[name]
    for a in (2.0, 2.3):
        np.testing.assert_allclose(rz.function(f)(a), f(a), rtol=1e-5)
        eps = 1e-3  # differences of the step that riesz computes: SciPy's own values are not so exact
        g = rz.function(f)
        ahead, back = [g(a + eps) - g(a - eps), g(a + 2 * eps) - g(a - 2 * eps)]
        np.testing.assert_allclose(rz.grad(f)(a), (8 * ahead - back) / (12 * eps), rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("name", [k for k in ROOTS if "fixed_quad" not in k and "simplex" not in k])
def test_second_order(name: str) -> None:
    f, a, eps = ROOTS[name], 2.1, 1e-4
    g = rz.grad(f)
    second = rz.hessian(f)(a).to_dense()[0, 0]
    np.testing.assert_allclose(second, (g(a + eps) - g(a - eps)) / (2 * eps), rtol=1e-5, atol=1e-6)


def test_exact_formulas() -> None:
    np.testing.assert_allclose(rz.grad(ROOTS["brentq"])(10.0), 1.0 / 13.0, rtol=1e-12)
    np.testing.assert_allclose(rz.grad(ROOTS["quad to infinity"])(2.0), -0.25, rtol=1e-12)
    np.testing.assert_allclose(rz.hessian(ROOTS["quad to infinity"])(2.0).to_dense()[0, 0], 0.25, rtol=1e-10)
    np.testing.assert_allclose(rz.grad(ROOTS["solve_ivp, its own times"])(2.0), -2.0 * np.exp(-4.0), rtol=1e-9)
    f = lambda k: si.quad(lambda t: np.exp(-k[0] * t) * k[1], 0, 1)[0]  # noqa: E731
    e = np.exp(-2.0)
    np.testing.assert_allclose(rz.grad(f)(np.array([2.0, 3.0])), [3 * (3 * e - 1) / 4, (1 - e) / 2], rtol=1e-12)


def test_several_parameters_and_states() -> None:
    A = np.array([[0.0, 1.0], [-2.0, -0.3]])

    def f(p: Any) -> Any:
        found = si.solve_ivp(lambda t, y: p["A"] @ y, (0.0, 1.0), p["y"], t_eval=[0.5, 1.0], rtol=1e-11, atol=1e-13)
        assert found.success and found.t[1] == 1.0
        return np.sum(found.y[:, -1] ** 2) + found.y[0, 0]

    import scipy.linalg

    def exact(p: Any) -> Any:
        return np.sum((scipy.linalg.expm(p["A"]) @ p["y"]) ** 2) + (scipy.linalg.expm(0.5 * p["A"]) @ p["y"])[0]

    p = {"A": A, "y": np.array([1.0, 0.5])}
    found, expected = rz.grad(f)(p), rz.grad(exact)(p)
    for k in p:
        np.testing.assert_allclose(found[k], expected[k], rtol=1e-7, atol=1e-8)


def test_mapped_and_compiled() -> None:
    a = np.array([2.0, 10.0])
    np.testing.assert_allclose(rz.vmap(rz.grad(ROOTS["brentq"]))(a), [0.25, 1.0 / 13.0], rtol=1e-12)
    for backend in ("numpy", "jax"):
        np.testing.assert_allclose(
            rz.compile(rz.grad(ROOTS["quad"]), 2.0, backend=backend)(2.0), rz.grad(ROOTS["quad"])(2.0), rtol=1e-6
        )


def test_what_uses_nothing_traced_is_left_to_scipy() -> None:
    calls: list[Any] = []

    def f(k: Any) -> Any:
        def g(x: Any) -> Any:
            calls.append(type(x))
            return x * x - 2.0 if x > 0 else -2.0

        found = so.root_scalar(g, bracket=(0, 5))
        assert found.converged and isinstance(found.root, float)
        return (
            k * found.root + k * si.quad(np.sin, 0.0, 1.0)[0] + k * so.minimize(lambda x: (x[0] - 1) ** 2, [0.0]).x[0]
        )

    np.testing.assert_allclose(rz.grad(f)(2.0), np.sqrt(2.0) + 1.0 - np.cos(1.0) + 1.0, rtol=1e-6)
    assert set(calls) == {float}


def test_refusals_say_what_to_write() -> None:
    with pytest.raises(rz.TraceError, match=r"t_eval=\[t1\]"):
        rz.compile(ROOTS["solve_ivp, its own times"], 2.0)
    with pytest.raises(rz.TraceError, match="put them into the function"):
        rz.grad(
            lambda a: so.minimize(
                lambda x: np.sum((x - a) ** 2), [0.0], constraints=so.NonlinearConstraint(lambda x: x[0], a, 3.0)
            ).x[0]
        )(1.0)
    with pytest.raises(rz.SolveError, match="bound or a kink"):
        rz.grad(lambda a: so.minimize_scalar(lambda x: a * x, bounds=(0, 1), method="bounded").x)(1.0)
    with pytest.raises(ValueError, match="different signs"):
        rz.grad(lambda a: so.brentq(lambda x: x**2 + a, 0, 1))(1.0)
