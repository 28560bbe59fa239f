"""Optimal control as nonlinear programs, beside CasADi with its Ipopt: a cart-pole by trapezoids, a rocket that lands by
Hermite–Simpson collocation, a quadrotor by Runge–Kutta shooting. Rows of `bench/solve.py`.

The motions are written once, on columns of states: arrays here, SX there. Both get the same start, order of unknowns
and tolerance. `cold` is from the functions to the first solution."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import riesz as rz

clock = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
"""BENCH_CLOCK=cpu counts the time of this process alone, for machines that others use too."""

SIZES = (100, 1_000, 10_000)


@dataclass
class Control:
    """min Σ cost(x, u) over steps x(t+h) = step(x, u, …), from one state to another, within bounds."""

    name: str
    seconds: float
    start: Any
    end: Any  # None where it is free
    motion: Any  # (columns of x, columns of u, functions) → columns of dx/dt
    cost: Any  # the same → what is integrated
    u_low: Any
    u_high: Any
    u0: Any
    x_low: Any
    x_high: Any
    limit: Any = None  # the same → what is ≥ 0 at every time
    method: str = "trapezoids"


def cart_pole(x, u, f):
    """Cart of 1 kg, pole of 0.3 kg and half a metre."""
    _p, a, v, w = x
    s, c = f.sin(a), f.cos(a)
    whole = 1.0 + 0.3 * s * s
    return [
        v,
        w,
        (0.15 * s * w * w + u[0] + 0.3 * 9.81 * c * s) / whole,
        -(0.15 * c * s * w * w + u[0] * c + 1.3 * 9.81 * s) / (0.5 * whole),
    ]


def rocket(x, u, f):
    """Height, drift, their speeds, mass; thrust along two axes burns fuel; the air slows it."""
    _x, _y, vx, vy, m = x
    speed = f.sqrt(vx * vx + vy * vy + 1e-4)
    drag = 0.02 * speed
    push = f.sqrt(u[0] * u[0] + u[1] * u[1] + 1e-4)
    return [vx, vy, (u[0] - drag * vx) / m, (u[1] - drag * vy) / m - 1.62, -0.02 * push]


def quadrotor(x, u, f):
    """Place, speed, attitude as a quaternion (x, y, z, w), turning rates; four rotors."""
    v, (a, b, c, d), (p, q, r) = x[3:6], x[6:10], x[10:13]
    lift = u[0] + u[1] + u[2] + u[3]
    return [
        *v,
        2.0 * (a * c + b * d) * lift,
        2.0 * (b * c - a * d) * lift,
        (1.0 - 2.0 * (a * a + b * b)) * lift - 9.81,
        0.5 * (d * p + b * r - c * q),
        0.5 * (d * q + c * p - a * r),
        0.5 * (d * r + a * q - b * p),
        -0.5 * (a * p + b * q + c * r),
        (0.2 * (u[1] - u[3]) - (0.04 - 0.02) * q * r) / 0.02,
        (0.2 * (u[2] - u[0]) - (0.02 - 0.04) * p * r) / 0.02,
        0.02 * (u[0] - u[1] + u[2] - u[3]) / 0.04,
    ]


BIG = 1e19  # Ipopt's infinity
HOVER = [0.0] * 9 + [1.0] + [0.0] * 3
PROBLEMS = {
    "cart-pole": Control(
        "cart-pole", 2.0, [0.0] * 4, [1.0, np.pi, 0.0, 0.0], cart_pole, lambda x, u, f: u[0] * u[0],
        [-20.0], [20.0], [0.0], [-2.0, -BIG, -BIG, -BIG], [2.0, BIG, BIG, BIG],
    ),
    "rocket": Control(
        "rocket", 20.0, [40.0, 120.0, -4.0, -6.0, 2.0], [0.0, 0.0, 0.0, 0.0, None], rocket,
        lambda x, u, f: f.sqrt(u[0] * u[0] + u[1] * u[1] + 1e-4) + 0.01 * (u[0] * u[0] + u[1] * u[1]),
        [-8.0, 0.0], [8.0, 12.0], [0.0, 3.0], [-BIG, 0.0, -BIG, -BIG, 0.5], [BIG, BIG, BIG, BIG, 2.0],
        limit=lambda x, u, f: 100.0 - u[0] * u[0] - u[1] * u[1], method="Hermite–Simpson",
    ),
    "quadrotor": Control(
        "quadrotor", 3.0, HOVER, [2.0, -1.0, 1.0, *HOVER[3:9], None, *HOVER[10:]], quadrotor,
        lambda x, u, f: sum((a - 9.81 / 4) * (a - 9.81 / 4) for a in u) + 0.1 * sum(a * a for a in x[10:13]),
        [0.0] * 4, [6.0] * 4, [9.81 / 4] * 4, [-BIG] * 13, [BIG] * 13, method="Runge–Kutta",
    ),
}  # fmt: skip


def defects(c, h, before, after, u, v, f):
    """What is 0 where x moves from `before` to `after` under u (and v at the end of the step)."""
    along = lambda x, k, t: [a + t * b for a, b in zip(x, k, strict=True)]  # noqa: E731
    k1 = c.motion(before, u, f)
    if c.method == "Runge–Kutta":
        k2 = c.motion(along(before, k1, h / 2), u, f)
        k3 = c.motion(along(before, k2, h / 2), u, f)
        k4 = c.motion(along(before, k3, h), u, f)
        slopes = zip(k1, k2, k3, k4, strict=True)
        moved = [h / 6 * (p + 2.0 * q + 2.0 * r + s) for p, q, r, s in slopes]
    else:
        k2 = c.motion(after, v, f)
        if c.method == "trapezoids":
            moved = [h / 2 * (p + q) for p, q in zip(k1, k2, strict=True)]
        else:
            both = zip(before, after, k1, k2, strict=True)
            middle = [0.5 * (a + b) + h / 8 * (p - q) for a, b, p, q in both]
            km = c.motion(middle, [0.5 * (a + b) for a, b in zip(u, v, strict=True)], f)
            moved = [h / 6 * (p + 4.0 * m + q) for p, m, q in zip(k1, km, k2, strict=True)]
    return [b - a - d for a, b, d in zip(before, after, moved, strict=True)]


def first(c, n):
    """A start: states on a line, controls at rest."""
    end = [s if e is None else e for s, e in zip(c.start, c.end, strict=True)]
    x = np.linspace(c.start, end, n + 1)
    return {"u": np.tile(np.array(c.u0, float), (n + (c.method != "Runge–Kutta"), 1)), "x": x}


def bounds_of(c, n):
    """Lower and upper bounds as trees; the ends are fixed by them."""
    z = first(c, n)
    sides = []
    for u, x, at_end in ((c.u_low, c.x_low, -BIG), (c.u_high, c.x_high, BIG)):
        sides.append({"u": np.broadcast_to(u, z["u"].shape).copy(), "x": np.broadcast_to(x, z["x"].shape).copy()})
        sides[-1]["x"][0] = c.start
        sides[-1]["x"][-1] = [
            s if e is None and abs(s) < BIG else at_end if e is None else e for s, e in zip(x, c.end, strict=True)
        ]
    return tuple(sides)


def in_riesz(c, n):
    """`rz.nlp` of a problem."""
    h = c.seconds / n
    columns = lambda a: [a[:, k] for k in range(a.shape[1])]  # noqa: E731

    def objective(z):
        x, u = z["x"][: len(z["u"])], z["u"]
        return h * np.sum(c.cost(columns(x), columns(u), np))

    def equality(z):
        x, u = z["x"], z["u"]
        ends = (u, u) if c.method == "Runge–Kutta" else (u[:-1], u[1:])
        return np.stack(defects(c, h, columns(x[:-1]), columns(x[1:]), *map(columns, ends), np), axis=1)

    limit = None if c.limit is None else lambda z: c.limit(columns(z["x"]), columns(z["u"]), np)
    return rz.nlp(objective, first(c, n), equality=equality, inequality=limit, bounds=bounds_of(c, n))


def in_casadi(c, n):
    """(solve, functions of values) of the same problem."""
    import casadi as ca

    h, z0 = c.seconds / n, first(c, n)
    U, X = ca.SX.sym("u", z0["u"].shape[1], len(z0["u"])), ca.SX.sym("x", z0["x"].shape[1], n + 1)
    columns = lambda A, some=slice(None): [A[k, some].T for k in range(A.shape[0])]  # noqa: E731
    whole, most = slice(None), slice(None, -1)
    ends = (columns(U), columns(U)) if c.method == "Runge–Kutta" else (columns(U, most), columns(U, slice(1, None)))
    z = ca.vertcat(ca.vec(U), ca.vec(X))
    f = h * ca.sum1(c.cost(columns(X, most if len(z0["u"]) == n else whole), columns(U), ca))
    g = ca.vec(ca.horzcat(*defects(c, h, columns(X, most), columns(X, slice(1, None)), *ends, ca)).T)
    equations = g.shape[0]
    if c.limit is not None:
        g = ca.vertcat(g, c.limit(columns(X), columns(U), ca))
    flat = lambda t: np.concatenate([t["u"].ravel(), t["x"].ravel()])  # noqa: E731
    low, high = map(flat, bounds_of(c, n))
    options = {"ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-8}, "print_time": False}
    solver = ca.nlpsol("solver", "ipopt", {"x": z, "f": f, "g": g}, options)
    above = np.where(np.arange(g.shape[0]) < equations, 0.0, np.inf)

    def solve():
        found = solver(x0=flat(z0), lbx=low, ubx=high, lbg=0.0, ubg=above)
        return float(found["f"]), solver.stats()["iter_count"]

    m, sigma = ca.SX.sym("m", g.shape[0]), ca.SX.sym("s")
    H = ca.tril(ca.hessian(sigma * f + ca.dot(m, g), z)[0])
    J = ca.jacobian(g, z)
    return solve, ca.Function("J", [z], [J]), ca.Function("H", [z, sigma, m], [H])


def control(name, sizes, rounds):
    """Seconds of whole solutions."""
    c = PROBLEMS[name]
    for n in sizes:
        begun = clock()
        problem = in_riesz(c, n)
        problem.solve("ipopt")
        cold = clock() - begun
        begun = clock()
        solve = in_casadi(c, n)[0]
        solve()
        theirs = clock() - begun
        pairs = []
        for _ in range(rounds):
            t = [clock()]
            found = problem.solve("ipopt")
            t.append(clock())
            value, steps = solve()
            t.append(clock())
            pairs.append((t[1] - t[0], t[2] - t[1]))
        ratio = statistics.median([a / b for a, b in pairs])
        mine, other = [statistics.median([p[k] for p in pairs]) for k in (0, 1)]
        same = "same cost" if abs(found.value - value) <= 1e-6 * abs(value) else f"COSTS {found.value:.9g}, {value:.9g}"
        line = f"{f'{name}, {c.method}, N = {n:,}, s':<46} riesz {mine:9.3f}  CasADi {other:9.3f}  ratio {ratio:5.2f}"
        print(
            f"{line}  aim {'1.2' if n >= 1000 else '2.0'}  {found.iterations} and {steps} iterations, {same}; "
            f"riesz's derivatives {found.evaluating:.3f}; cold {cold:.1f} and {theirs:.1f} s",
            flush=True,
        )


def numbers(name, n, rounds):
    """Milliseconds of the numbers of the Jacobian and of the Lagrangian's Hessian, patterns compared."""
    c = PROBLEMS[name]
    F = in_riesz(c, n).functions
    _solve, J, H = in_casadi(c, n)
    rng = np.random.default_rng(0)
    v = F.form.flat(first(c, n)) + 0.1 * rng.normal(size=F.form.size)
    m = rng.normal(size=F.constraints.size)
    rows = {
        "Jacobian": (lambda: F.jacobian(v), J, (v,), F.J.pattern, J.sparsity_out(0)),
        "Hessian": (lambda: F.hessian(v, m, 0.7), H, (v, 0.7, m), F.hessian_numbers.pattern, H.sparsity_out(0)),
    }
    for what, (mine, theirs, args, pattern, theirs_pattern) in rows.items():
        buffer, given = theirs.buffer()
        kept = [np.ascontiguousarray(a, float) if np.ndim(a) else np.array([a]) for a in args]
        result = np.zeros(theirs_pattern.nnz())
        for k, a in enumerate(kept):
            buffer.set_arg(k, memoryview(a))
        buffer.set_res(0, memoryview(result))
        times = [[], []]
        for _ in range(max(rounds, 3) * 20):
            v[0] += 1e-9
            start = clock()
            found = mine()
            middle = clock()
            given()
            times[1].append(clock() - middle)
            times[0].append(middle - start)
        a, b = [1e3 * statistics.median(t) for t in times]
        order = np.lexsort((np.array(theirs_pattern.get_col()), np.array(theirs_pattern.row())))
        same = pattern.nnz == len(order) and all(
            np.array_equal(p, np.array(q)[order])
            for p, q in zip(pattern, (theirs_pattern.row(), theirs_pattern.get_col()), strict=True)
        )
        kept[0][:] = v
        given()
        pattern_said = "same pattern" if same else f"PATTERNS {pattern.nnz:,}, {len(order):,}"
        far = ""
        if same:
            far = f", numbers within {np.abs(result[order] - found).max() / np.abs(result).max():.0e}"
        line = f"{f'{name}, N = {n:,}, {what}, ms':<46} riesz {a:9.3f}  CasADi {b:9.3f}  ratio {a / b:5.2f}"
        print(f"{line}  {a - b:+.3f} ms  aim +0.1 at N = 100  {pattern_said}{far}", flush=True)


def cart(rounds):
    """Whole solutions of the cart-pole."""
    control("cart-pole", SIZES, rounds)


def landing(rounds):
    """Whole solutions of the rocket."""
    control("rocket", SIZES, rounds)


def shooting(rounds):
    """Whole solutions of the quadrotor."""
    control("quadrotor", (50, 200), rounds)


def derivatives(rounds):
    """Numbers of derivatives."""
    for name, n in (("cart-pole", 100), ("cart-pole", 1_000), ("rocket", 100), ("quadrotor", 50)):
        numbers(name, n, rounds)
