"""scipy.integrate.solve_ivp with events and dense output in traced code, against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import riesz as rz
from riesz.errors import TraceError

TIGHT = {"rtol": 1e-10, "atol": 1e-10}
P = np.array([0.7, 1.3, 0.4])


def ground(t, y):
    return y[0]


ground.terminal, ground.direction = True, -1


def top(t, y):
    return y[1]


def thrown(p, **options):
    return solve_ivp(lambda t, y: [y[1], -9.8 * p[0]], (0, 10), [p[1], p[2]], **TIGHT, **options)


def swing(t, y, a):
    return [y[1], -a * y[0]]


def crossed(p):
    found = solve_ivp(swing, (0, 4), p[1:], args=(p[0],), events=lambda t, y, a: y[0] - 0.1 * a, **TIGHT)
    return found.t_events[0]


CASES = {
    "time": lambda p: thrown(p, events=ground).t_events[0],
    "state": lambda p: thrown(p, events=ground).y[:, -1],
    "two": lambda p: np.concatenate([(s := thrown(p, events=[ground, top])).y_events[1][0], s.t_events[1], s.t[-1:]]),
    "times asked for": lambda p: thrown(p, events=ground, t_eval=np.linspace(0.0, 1.0, 8)).y[0],
    "of parameters": crossed,
    "none": lambda p: thrown(p, events=lambda t, y: y[0] - 1e3, t_eval=[0.5]).y[0],
    "dense": lambda p: solve_ivp(swing, (0, 1), p[1:], args=(p[0],), dense_output=True, **TIGHT).sol([0.2, 0.9])[0],
    "dense, one": lambda p: solve_ivp(swing, (0, 1), p[1:], args=(p[0],), dense_output=True, **TIGHT).sol(0.4),
}


def slope(f, x, v, h=1e-3):
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / (12 * h)


@pytest.mark.parametrize("name", CASES)
def test_events_and_dense_output(name):
    f, v = CASES[name], np.array([0.3, -0.5, 0.8])
    np.testing.assert_allclose(rz.function(f)(P), f(P), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(rz.jvp(f, (P,), (v,))[1], slope(f, P, v), rtol=1e-5, atol=1e-7)
    loss = lambda p: np.sum(f(p) ** 2)  # noqa: E731
    np.testing.assert_allclose(np.sum(rz.grad(loss)(P) * v), slope(loss, P, v), rtol=1e-5, atol=1e-7)


def test_second_derivative_of_an_event():
    loss = lambda p: np.sum(CASES["time"](p) ** 2)  # noqa: E731
    v = np.array([0.3, -0.5, 0.8])
    np.testing.assert_allclose(rz.hvp(loss, (P,), (v,)), slope(rz.grad(loss), P, v), rtol=1e-4, atol=1e-5)


def test_another_number_of_events_traces_again():
    f = rz.function(
        lambda a: np.sum(solve_ivp(swing, (0, 4), [1.0, 0.0], args=(a,), events=lambda t, y, a: y[0]).t_events[0])
    )
    plain = lambda a: solve_ivp(swing, (0, 4), [1.0, 0.0], args=(a,), events=lambda t, y, a: y[0]).t_events[0].sum()  # noqa: E731
    for a in (1.0, 9.0, 1.1, 0.1):
        np.testing.assert_allclose(f(a), plain(a), rtol=1e-6)


def test_without_a_point_the_error_says_what_to_write():
    with pytest.raises(TraceError, match=r"rz\.root"):
        rz.derive(lambda p: np.sum(thrown(p, events=ground).t_events[0]), P)
