"""Loops on small states as functions of numbers: the same results as the interpreter, the same errors, no more."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz.backends.native import native_loops
from riesz.backends.native.native_function import NativeFunction, letter, machine_code_here
from riesz.functions.function import as_function
from riesz.runtime import tuning
from riesz.tracing.argument_trees import flatten

needs_machine_code = pytest.mark.skipif(not machine_code_here(), reason="llvmlite is not installed")


def interpreted(f, *args):
    """What the interpreter gives, its loops round by round."""
    with tuning.override(NATIVE_LOOPS=False):
        return rz.compile(f, backend="steps")(*args)


def traced_program(f, *args):
    function = as_function(f)
    return function.record(function.given(args, {})).settled().program


def on_numbers(f, *args, machine=True):
    """The leaves of a function's result by statements: as floats, and as machine code where there is some."""
    leaves = flatten(args)[0]
    made = NativeFunction(traced_program(f, *args), [letter(x if type(x) is float else np.asarray(x)) for x in leaves])
    runs = [made.floats(), *([made.machine()] if machine and machine_code_here() else [])]
    return [run(leaves) for run in runs]


def agree(f, *args, tolerance=1e-12, always=True, machine=True):
    """Statements and the interpreter give the same numbers, types and shapes. Unless `always`, nan and what floats raise
    at may be left to the interpreter."""
    with np.errstate(all="ignore"):
        wanted = [np.asarray(x) for x in flatten(interpreted(f, *args))[0]]
    for k, found in enumerate(on_numbers(f, *args, machine=machine)):
        if found is None:
            assert not always and (k == 0 or any([np.isnan(x).any() for x in wanted]))
            continue
        for a, b in zip(wanted, found, strict=True):
            b = np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(a).max())))


# -- loops people write -------------------------------------------------------------------------------------


def lotka(p, y):
    return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def rk4(p, rounds=30):
    def step(y, _):
        k1 = lotka(p, y)
        k2 = lotka(p, y + 0.05 * k1)
        k3 = lotka(p, y + 0.05 * k2)
        k4 = lotka(p, y + 0.1 * k3)
        y = y + (k1 + 2 * k2 + 2 * k3 + k4) / 60
        return y, np.sum(y * y)

    return np.sum(rz.loop(step, np.array([1.0, 0.5]), length=rounds)[1])


OBSERVED = np.random.default_rng(3).normal(size=(12, 2))


def kalman(p):
    move, look = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4)
    noise, spread = np.exp(p[0]) * np.eye(4), np.exp(p[1]) * np.eye(2)

    def step(state, y):
        m, P = state
        m, P = move @ m, move @ P @ move.T + noise
        S, e = look @ P @ look.T + spread, y - look @ m
        K = np.linalg.solve(S, look @ P).T
        fit = -0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(S)[1])
        return (m + K @ e, P - K @ S @ K.T), fit

    return np.sum(rz.loop(step, (np.zeros(4), np.eye(4)), OBSERVED)[1])


def forward(p):
    logs = p.reshape(3, 3)
    logs = logs - np.log(np.sum(np.exp(logs), axis=1, keepdims=True))

    def step(a, e):
        s = a[:, None] + logs
        top = np.max(s, axis=0)
        return top + np.log(np.sum(np.exp(s - top), axis=0)) + e, None

    a, _ = rz.loop(step, np.zeros(3), np.sin(np.arange(60.0)).reshape(20, 3))
    return np.sum(np.logaddexp(a, 0.3))


def cart(w):
    def step(s, _):
        x, v, t, o = s
        force = 10 * np.tanh(w[0] * x + w[1] * v + w[2] * t + w[3] * o)
        sine, cosine = np.sin(t), np.cos(t)
        push = (force + 0.05 * o * o * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        s = np.stack([x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cosine / 1.1), t + 0.02 * o, o + 0.02 * turn])
        return s, np.clip(np.sum(s * s), 0.0, 9.0) + np.abs(s[0])

    return np.sum(rz.loop(step, np.array([0.1, 0.0, 0.05, 0.0]), length=25)[1])


def lstm(p):
    W, U, b = p[:80].reshape(20, 4), p[80:180].reshape(20, 5), p[180:]
    gate = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731

    def step(state, x):
        h, c = state
        z = W @ x + U @ h + b
        c = gate(z[5:10]) * c + gate(z[:5]) * np.tanh(z[10:15])
        return (gate(z[15:]) * np.tanh(c), c), None

    return np.sum(rz.loop(step, (np.zeros(5), np.zeros(5)), np.sin(np.arange(48.0)).reshape(12, 4))[0][0] ** 2)


def rnn(p):
    W = p.reshape(9, 9)
    h, ys = rz.loop(lambda h, x: (np.tanh(W @ h + x), W.T @ h), np.zeros(9), np.cos(np.arange(90.0)).reshape(10, 9))
    return np.sum(h**2) + np.sum(ys[2:-1])


def roots(p):
    def step(L, x):
        A = L @ L.T + np.eye(4) * p[0] + np.outer(x, x)
        C = np.linalg.cholesky(A)
        y = np.linalg.solve(A + 0.1 * np.eye(4, k=1), x) + p[1:5]
        return 0.3 * np.linalg.inv(C) + 0.1 * C, np.sum(y**2) + 0.1 * np.linalg.det(A[:3, :3] / 5)

    last, ys = rz.loop(step, 0.2 * np.eye(4), np.sin(np.arange(40.0)).reshape(10, 4))
    return np.sum(last**2) + np.sum(ys)


def switching(p):
    def step(i, y):
        y = rz.cond(np.sum(y) > 0.3, lambda y: y * p[0] - 0.1 * i, lambda y: np.where(y > 0, y, -p[1] * y) + 0.2, y)
        return rz.checkpoint(lambda y: np.sin(y + p[2]))(y)

    return np.sum(rz.fori_loop(0, 15, step, np.array([0.4, -0.2])))


def searching(p):
    close = lambda s: np.abs(s[0] * s[0] - p[0]) > 1e-6  # noqa: E731
    x, _ = rz.while_loop(close, lambda s: (0.5 * (s[0] + p[0] / s[0]) + 0.0 * p[1], s[1] + 1), (1.0, 0))
    y, _ = rz.loop(lambda y, x: (y + np.cos(y) * p[1], None), x, np.arange(20.0), until=lambda y: y > 1.4)
    return y + x


def nested(p):
    def step(y, x):
        inner = rz.fori_loop(0, 3, lambda i, z: np.tanh(z * p[0] + x + 0.1 * i), y)
        return 0.5 * inner + 0.1 * p[1], inner[0]

    y, ys = rz.loop(step, np.zeros(2), np.linspace(0.0, 1.0, 9), reverse=True)
    return np.sum(y) + np.sum(ys**2)


LOOPS = {
    "rk4": (rk4, 4),
    "kalman": (kalman, 2),
    "forward": (forward, 9),
    "cart": (cart, 4),
    "lstm": (lstm, 200),
    "rnn": (rnn, 81),
    "roots": (roots, 5),
    "switching": (switching, 3),
    "searching": (searching, 2),
    "nested": (nested, 2),
}


def point_of(name):
    return 0.4 + 0.2 * np.sin(1.0 + np.arange(float(LOOPS[name][1])))


@pytest.mark.parametrize("name", LOOPS)
def test_values_and_gradients(name):
    loss, x = LOOPS[name][0], point_of(name)
    agree(loss, x)
    agree(rz.grad(loss), x, tolerance=1e-11)


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in ("roots", "searching")])
def test_second_derivatives(name):
    loss, x = LOOPS[name][0], point_of(name)
    few = name in ("rk4", "cart", "nested")  # machine code takes its time
    agree(lambda x: rz.hvp(loss, (x,), (np.cos(x),)), x, tolerance=1e-10, machine=few)
    agree(lambda x: rz.jvp(loss, (x,), (np.sin(x),)), x, tolerance=1e-11, machine=few)


@pytest.mark.parametrize("name", ["rk4", "kalman", "cart", "switching"])
def test_plain_and_compiled_calls(name):
    """Both are functions of numbers, with the same bits at every call; finite differences agree."""
    loss, x = LOOPS[name][0], point_of(name)
    plain, compiled = rz.grad(loss), rz.compile(rz.grad(loss))
    first = plain(x)
    assert compiled(x).tobytes() == compiled(x).tobytes() and first.tobytes() == plain(x).tobytes()
    assert compiled.backend == "native" and "numbers" in compiled.explain()
    np.testing.assert_allclose(first, compiled(x), rtol=1e-11, atol=1e-12)
    h = 1e-6 * np.cos(np.arange(x.size))
    with tuning.override(NATIVE_LOOPS=False):
        slope = (loss(x + h) - loss(x - h)) / 2e-6
    assert np.isclose(slope, first @ (h / 1e-6), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["rk4", "kalman", "cart", "forward"])
@pytest.mark.parametrize("count", [3, 11])
def test_mapped_loops(name, count):
    """Index by index, in lanes or one by one: as each on its own. Plain and compiled."""
    loss, x = LOOPS[name][0], point_of(name)
    points = x + 0.05 * np.sin(np.arange(float(count * x.size))).reshape(count, -1)
    mapped = rz.vmap(rz.grad(loss))
    wanted = np.stack([interpreted(rz.grad(loss), p) for p in points])
    for found in (mapped(points), rz.compile(mapped)(points)):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


def test_mapped_arguments_of_every_kind():
    """Constants, carries and rows that are mapped or shared; stacked results; derivatives behind the map."""
    rows, p = np.sin(np.arange(54.0)).reshape(9, 3, 2), np.array([0.3, 0.8])

    def run(y, xs, k):
        last, ys = rz.loop(lambda y, x: (np.tanh(k * y + x), y * p), y, xs, reverse=True)
        return last, ys

    for axes in ((0, 1, 0), (0, None, None), (None, 1, None), (None, None, 0)):
        given = [np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.1]]), rows, np.array([0.2, 0.5, 0.9])]
        given = [
            x if a is not None else (x[:, 0] if i == 1 else x[0])
            for i, (x, a) in enumerate(zip(given, axes, strict=True))
        ]
        mapped = rz.vmap(run, in_axes=axes)
        agree(mapped, *given)
        agree(rz.grad(lambda *xs, mapped=mapped: sum([np.sum(np.cos(v)) for v in mapped(*xs)]), (0, 1, 2)), *given)


def test_functions_of_machine_code():
    """exp, tanh, log, sine and cosine to the last places, at all sizes."""
    x = np.concatenate(
        [np.linspace(-760.0, 720.0, 500), np.linspace(-1.0, 1.0, 101), 10.0 ** np.arange(-300.0, 3.0, 9)]
    )
    x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf]])
    with np.errstate(all="ignore"):
        for f in (np.exp, np.tanh):
            found = NativeFunction(traced_program(f, x), ["f"])
            found = found.machine()([x])[0] if machine_code_here() else f(x)
            np.testing.assert_allclose(found, f(x), rtol=5e-16, atol=5e-324)
            assert (np.signbit(found) == np.signbit(f(x))).all()
        angles = np.concatenate([0.5 * np.pi * np.arange(-40, 41), 1e6 * np.sin(np.arange(300.0)), [1e7, -1e22, 3e300]])
        angles = np.concatenate([angles, np.linspace(-4.0, 4.0, 400), 10.0 ** np.arange(-300.0, 6.0, 9), [0.0, -0.0]])
        positive = np.concatenate(
            [np.abs(angles), 1.0 + 1e-9 * np.sin(angles), [5e-324, 1e-310, 0.5**0.5, 2.0**0.5, np.inf]]
        )
        for f, x in ((np.sin, angles), (np.cos, angles), (np.log, positive)):
            for part in np.array_split(x, len(x) // 900 + 1):
                found = NativeFunction(traced_program(f, part), ["f"])
                found = found.machine()([part])[0] if machine_code_here() else f(part)
                wanted = f(part.astype(np.longdouble))
                np.testing.assert_allclose(found, wanted.astype(float), rtol=4e-16, atol=5e-324)
                assert (np.signbit(found) == np.signbit(wanted)).all()


@pytest.mark.parametrize("far", [0.0, 3e6])
def test_angles_and_logarithms_in_lanes(far):
    """Some lanes too far for arithmetic: then the library is called for all."""

    def run(p):
        start = p + far * (p > 0.5)
        step = lambda c, _: (np.sin(c) + p * np.cos(2.0 * c) + np.log(1.5 + c * c), c)  # noqa: E731
        return np.sum(rz.loop(step, start, None, length=12)[1])

    points = np.linspace(0.0, 1.0, 11)
    agree(rz.vmap(run), points)
    agree(rz.vmap(rz.grad(run)), points, tolerance=1e-11)


def test_a_mapped_product_with_a_hessian():
    cubes = lambda y: np.sum(y**3)  # noqa: E731
    f = rz.compile(lambda x: rz.vmap(lambda v: rz.hvp(cubes, (x,), (v,)))(np.eye(4)))
    np.testing.assert_allclose(f(np.arange(4.0)), np.diag(6.0 * np.arange(4.0)))


# -- random bodies ------------------------------------------------------------------------------------------

ONE = [
    *(np.sin, np.tanh, np.arctan, np.exp, lambda a: np.log(1.5 + a), lambda a: np.sqrt(1.2 + a), np.abs, np.sign),
    *(
        lambda a: a[::-1],
        lambda a: a - np.mean(a),
        lambda a: np.where(a > 0.1, a, 0.3 * a),
        lambda a: np.clip(a, -0.5, 0.5),
    ),
    *(lambda a: np.maximum(a, 0.2), lambda a: a * np.max(a), lambda a: np.cumsum(a), lambda a: np.linalg.norm(a) * a),
    *(
        lambda a: np.outer(a, a) @ a,
        lambda a: a**3,
        lambda a: np.concatenate([a[1:], a[:1]]),
        lambda a: a.sum() * np.ones(3),
    ),
    lambda a: rz.cond(a[0] > 0, lambda a: a * a, lambda a: -a, a),
    lambda a: np.linalg.solve(3.0 * np.eye(3) + np.outer(a, a), a),
    lambda a: np.linalg.inv(2.0 * np.eye(3) + np.diag(a))[1],
    lambda a: np.linalg.cholesky(2.0 * np.eye(3) + np.outer(a, a))[:, 0],
    lambda a: np.linalg.det(np.eye(3) + 0.3 * np.outer(a, a[::-1])) * a,
    lambda a: rz.checkpoint(lambda a: np.cos(a) * a)(a),
    lambda a: rz.stop_gradient(a) * a,
]
TWO = [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.hypot, np.arctan2, np.logaddexp,
       lambda a, b: a / (1.5 + b * b), lambda a, b: np.where(a > b, a, b), lambda a, b: np.stack([a, b])[1],
       lambda a, b: (a @ b) * a]  # fmt: skip


@examples(0.5)
@given(st.integers(0, 10**6), st.booleans())
def test_random_bodies(seed, reverse):
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, 10**6, size=60).tolist()

    def step(p, state, x):
        (a, b), values, at = state, list[object](), iter(picks)
        values += [a, b, x, p[:3], p[3] * x]
        for _ in range(6):
            k, i, j = next(at), next(at), next(at)
            u, v = values[i % len(values)], values[j % len(values)]
            values.append(np.tanh(ONE[k % len(ONE)](u) if k % 2 else TWO[k // 2 % len(TWO)](u, v)))
        return (np.tanh(values[-1] + 0.2 * a), 0.7 * b + 0.2 * values[-2]), values[next(at) % len(values)]

    def loss(p):
        start = (p[1:4], np.array([0.3, -0.2, 0.1]))
        (a, b), out = rz.loop(lambda s, x: step(p, s, x), start, rng_rows, reverse=reverse)
        return np.sum(a * b) + np.sum(np.cos(out))

    rng_rows = rng.normal(size=(6, 3))
    x = 0.5 * rng.normal(size=4)
    agree(loss, x, always=False)
    agree(rz.grad(loss), x, tolerance=1e-10, always=False)


# -- what it leaves to the interpreter ----------------------------------------------------------------------


def same_error(f, *args):
    """The same error as the interpreter's, plain and compiled."""
    with pytest.raises(Exception) as wanted:
        interpreted(f, *args)
    for g in (f, rz.compile(f)):
        with pytest.raises(type(wanted.value)) as found:
            g(*args)
        assert str(found.value) == str(wanted.value)


def test_singular_matrices():
    def loss(p):
        step = lambda y, x: (np.linalg.solve(np.diag(np.array([1.0, 2.0]) * p) * x, y + 1.0), None)  # noqa: E731
        return np.sum(rz.loop(step, np.ones(2), np.linspace(1.0, 2.0, 20))[0])

    agree(rz.grad(loss), 0.7)
    same_error(rz.grad(loss), 0.0)


def test_matrices_that_are_not_positive():
    def loss(p):
        step = lambda y, x: (np.linalg.cholesky(np.eye(2) * p + 0.01 * y @ y.T), None)  # noqa: E731
        return np.sum(rz.loop(step, np.ones((2, 2)), np.arange(20.0))[0])

    agree(rz.grad(loss), 0.7)
    same_error(rz.grad(loss), -0.5)


def test_domains_are_checked():
    loss = rz.grad(lambda p: np.sum(rz.loop(lambda y, x: (np.log(y - p * x), y), 5.0, np.arange(20.0))[1]))
    with np.errstate(all="ignore"):
        assert np.isnan(loss(3.0)) and np.isnan(rz.compile(loss)(3.0))
        for f in (loss, rz.compile(loss)):
            with rz.check_domain(), pytest.raises(rz.DomainError, match="ln is defined for x > 0"):
                f(3.0)


def test_infinities_pass():
    """A log of zero is -inf, as in NumPy."""

    def total(a):
        step = lambda s, e: (np.logaddexp(s, e), None)  # noqa: E731
        return rz.loop(step, a, np.full(20, -np.inf))[0]

    with np.errstate(all="ignore"):
        assert rz.compile(total)(-np.inf) == -np.inf and rz.compile(total)(1.5) == 1.5


def test_what_has_no_form_runs_as_before():
    def loss(p):
        step = lambda y, x: (np.linalg.eigvalsh(np.diag(np.sin(y * p + x)) + 0.1 * np.tri(3)), None)  # noqa: E731
        return np.sum(rz.loop(step, np.array([0.1, 0.5, 0.3]), np.arange(20.0))[0] ** 2)

    np.testing.assert_allclose(rz.grad(loss)(0.8), interpreted(rz.grad(loss), 0.8), rtol=1e-12)
    with pytest.raises(rz.VectorError, match="native"):
        rz.compile(loss, backend="native")(0.8)


def test_other_types():
    """Numbers of 32 bits are left to arrays; whole numbers and truth values keep their types."""
    f = lambda x: rz.loop(lambda y, _: (np.sin(y) * x, y), x, length=20)  # noqa: E731
    assert rz.function(f)(np.float32(0.5))[1].dtype == np.float32

    def counted(x):
        return rz.fori_loop(0, 20, lambda i, s: (s[0] + i, s[1] * x, s[1] > 0.5), (0, x, False))

    agree(counted, 0.98)
    count, value, flag = rz.compile(counted)(0.98)
    assert (int(count), bool(flag)) == (190, True) and np.isclose(value, 0.98**21)


# -- computed positions -------------------------------------------------------------------------------------

PLACES = np.random.default_rng(8).integers(-4, 4, 20)
TABLE = np.random.default_rng(9).normal(size=(40, 3))


def looked_up(u):
    return np.sum(rz.loop(lambda c, t: (0.9 * c + np.sin(u[t]) * u[t - 3], c), 0.3 * u[0], PLACES)[1] ** 2)


def rows_looked_up(E):
    step = lambda c, t: (np.tanh(0.9 * c + E[3 * t % 40] * E[t // 2]), c)  # noqa: E731
    return np.sum(rz.loop(step, np.zeros(3), np.arange(20))[1] ** 2)


def columns_looked_up(B):
    return rz.fori_loop(0, 12, lambda i, a: a @ B[:, :3] * B[:, PLACES[i] % 4][:3] + a[i % 3], np.ones(3))


def places(x):
    def step(c, t):
        low, at = np.sort(np.sin(t * c)), np.argmax(c)
        return 0.5 * low + 0.1 * c[at] + c[np.argmin(c)] * x + c[np.argsort(c)][::-1] * 0.1, low[1]

    return rz.loop(step, x, np.linspace(1.0, 2.0, 15))


def between(p):
    knots = np.array([0.0, 0.3, 1.0, 1.1, 2.0, 5.0, 5.5])
    return rz.fori_loop(
        0,
        30,
        lambda i, y: (
            0.9 * y + np.interp(0.25 * i + 0.1 * p[0] - 0.3, knots, p) + 0.1 * knots[np.searchsorted(knots, y)]
        ),
        0.1,
    )


@pytest.mark.parametrize("f, x", [
    (looked_up, np.linspace(0.2, 1.0, 8)), (looked_up, np.linspace(0.2, 1.0, 90)), (rows_looked_up, TABLE),
    (columns_looked_up, np.cos(np.arange(12.0)).reshape(3, 4) / 3), (places, np.array([0.3, -0.2, 0.9])),
    (between, np.array([1.0, 0.2, -0.4, 0.5, 0.1, 0.3, 0.2]) / 10)])  # fmt: skip
def test_computed_positions(f, x):
    total = lambda x: sum([np.sum(y) for y in flatten(f(x))[0]])  # noqa: E731
    for g in (f, rz.grad(total), lambda x: rz.hvp(total, (x,), (np.cos(x),))):
        agree(g, x)
    agree(rz.vmap(rz.grad(total)), np.stack([x, 0.9 * x, x + 0.01]))


def test_gradients_of_tables_are_collected_where_they_are():
    program = traced_program(rz.grad(lambda E: np.sum(rz.loop(lambda c, t: (np.tanh(c + E[t]), c), E[0], np.arange(400))[1])),
                             np.ones((400, 3)))  # fmt: skip
    assert native_loops.operations(NativeFunction(program, ["f"]).written) < 400 * 200


def test_positions_outside_are_errors():
    f = rz.compile(lambda u, n: rz.loop(lambda c, t: (c + u[t + n], None), 0.0, np.arange(20))[0])
    assert f(np.ones(30), 5) == 20.0
    with pytest.raises(rz.errors.PositionError, match="30"):
        f(np.ones(30), 11)


def test_whole_numbers_stay_exact():
    state = lambda s: rz.fori_loop(0, 20, lambda i, s: (s * 1103515245 + 12345) % 2147483648, s)  # noqa: E731
    wanted = 42
    for _ in range(20):
        wanted = (wanted * 1103515245 + 12345) % 2147483648
    assert int(rz.compile(state)(42)) == wanted


@pytest.mark.parametrize("following, rounds", [(lambda a, b: a + b, 85), (lambda a, b: 3 * b - a, 40)])
def test_whole_numbers_that_floats_do_not_hold_are_left_to_the_interpreter(following, rounds):
    """Fibonacci's numbers pass 2⁵³ before they pass 2⁶³."""
    turned = lambda c, t: ((np.sin(c[0] + t), c[2], following(c[1], c[2])), None)  # noqa: E731

    def f(x, rounds):
        return rz.loop(turned, (x, 0, 1), np.linspace(0.0, 1.0, rounds))[0][2] % 1009

    a, b = 0, 1
    for _ in range(rounds):
        a, b = b, following(a, b)
    assert 2**53 < b < 2**63
    assert int(rz.compile(lambda x: f(x, rounds))(0.3)) == b % 1009
    assert on_numbers(lambda x: f(x, rounds), 0.3)[0] is None
    agree(lambda x: f(x, 5), 0.3)


def test_large_whole_arguments_and_constants():
    """2⁵³ + 1 is no float."""
    step = lambda c, t: ((np.cos(c[0]) * t, (c[1] + 2) % 10), None)  # noqa: E731
    f = lambda x, n: rz.loop(step, (x, n), np.linspace(0.0, 1.0, 20))[0][1]  # noqa: E731
    n = np.array([2**53 + 1, -(2**53) - 3])
    np.testing.assert_array_equal(rz.compile(f)(0.3, n), (n + 40) % 10)
    assert on_numbers(f, 0.3, n)[0] is None
    np.testing.assert_array_equal(rz.compile(lambda x: f(x, n))(0.3), (n + 40) % 10)
    agree(f, 0.3, n // 2**20)


ROWS = np.random.default_rng(5).normal(size=(40, 3))
COUNTED = {
    "truths added up": lambda c, u: 0.5 * c + 0.1 * np.sum(c > u) + 0.1 * ((c > 0.0) + (u > 0.0)),
    "along an axis": lambda c, u: 0.5 * c + 0.1 * np.sum(c[:, None] > u, axis=0) + u * np.sum(c[:, None] > u, axis=1),
    "not zero": lambda c, u: 0.5 * c + 0.1 * np.count_nonzero(np.maximum(u, 0.0)) + 0.1 * np.count_nonzero(u > c),
    "whole parts": lambda c, u: 0.5 * c + 0.1 * (4.0 * c + u).astype(int) * (u > 0).astype(int),
    "a place computed": lambda c, u: 0.5 * c + 0.1 * ROWS[(10.0 * np.abs(np.sin(c[0]))).astype(int) % 40],
    "an angle in its period": lambda c, u: np.mod(0.9 * c + u + np.pi, 2.0 * np.pi) - np.pi,
    "rests of both signs": lambda c, u: (
        0.2 * np.mod(c + u, 9.3 + c * c) + 0.1 * ((u - 0.1 * c) % -1.1) + np.fmod(u, 0.7)
    ),
    "quotients": lambda c, u: 0.5 * c + 0.1 * ROWS[((np.round(u[0]) * 0.3) // 0.1).astype(int) % 40] + 0.1 * (u // 0.3),
    "whole quotients": lambda c, u: 0.5 * c + 0.1 * ((9 * u).astype(int) // 4) - 0.1 * ((9 * u).astype(int) % -4),
    "whole powers": lambda c, u: 0.5 * c + 0.01 * ((9 * u).astype(int) ** 3 + np.square((4 * np.sin(c)).astype(int))),
    "rounded": lambda c, u: 0.5 * c + 0.1 * (np.round(u) + np.rint(2.0 * u) + np.ceil(u - 0.2 * c)),
    "middle of three": lambda c, u: 0.5 * c + np.median(c + u) + 0.1 * np.percentile(u * c, 30),
    "signs": lambda c, u: 0.5 * c + np.heaviside(u, 0.5) + np.copysign(c, u) + np.where(np.signbit(c - u), u, c),
    "the known one": lambda c, u: 0.5 * np.fmax(c, u) + 0.3 * np.fmin(u, c * c),
    "near enough": lambda c, u: np.where(np.isclose(c, u, atol=0.4), c, 0.5 * u + 0.2 * c),
    "all near": lambda c, u: np.where(np.allclose(c, u, atol=1.5), 0.9 * c, 0.5 * u),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_rests_and_rounding(name):
    body, x = COUNTED[name], np.array([0.3, -0.5, 0.8])
    last = lambda x: rz.loop(lambda c, u: (body(c, u), None), x, ROWS)[0]  # noqa: E731
    for f in (last, rz.grad(lambda x: np.sum(last(x) ** 2))):
        agree(f, x, tolerance=1e-10)
    agree(rz.vmap(last), x + 0.01 * np.arange(9.0)[:, None], tolerance=1e-10)


def test_a_carry_is_collected_before_others_change():
    """dW ← dW + dh hᵀ reads dh, which this round changes too."""
    X = np.random.default_rng(4).normal(size=(10, 70))
    W = np.random.default_rng(5).normal(size=(70, 70)) / 9
    agree(rz.grad(lambda W: np.sum(rz.loop(lambda h, x: (W @ h + x, None), np.zeros(70), X)[0] ** 2)), W)


# -- programs that cannot be written as a whole -------------------------------------------------------------


def peaked(p):
    ys = rz.loop(lambda y, _: (y + 0.05 * p[0] * y * (1 - y / p[1]), y), 0.1, length=300)[1]
    return ys[-1] + np.max(ys * p[0]) + np.sum(np.linalg.eigvalsh(np.outer(p, p)))


@needs_machine_code
def test_loops_run_on_numbers_where_the_rest_cannot():
    f = rz.compile(rz.grad(peaked), P := np.array([0.3, 1.5]))
    assert "but 2 of 2 loops do by themselves" in f.explain() and "has no form on numbers" in f.explain()
    np.testing.assert_allclose(f(P), interpreted(rz.grad(peaked), P), rtol=1e-12)
    assert f(P).tobytes() == f(P).tobytes()
    np.testing.assert_allclose(rz.grad(peaked)(P), f(P), rtol=1e-15)


@pytest.mark.parametrize("f", [rk4, looked_up, peaked])
def test_maps_of_loops_are_applied_on_numbers(f):
    x = np.linspace(0.2, 1.0, 4 if f is rk4 else 2 if f is peaked else 8)
    v = np.cos(np.arange(float(x.size)))
    with tuning.override(NATIVE_LOOPS=False):
        second = rz.compile(lambda x: rz.hessian(f)(x).to_dense(), backend="steps")(x)
        first = rz.compile(rz.grad(f), backend="steps")(x)
    assert np.allclose(rz.hessian(f)(x).to_dense(), second, rtol=1e-11, atol=1e-11)
    assert np.allclose(rz.hessian(f)(x)(v), second @ v, rtol=1e-11, atol=1e-11)
    assert np.allclose(rz.hvp(f, (x,), (v,)), second @ v, rtol=1e-11, atol=1e-11)
    assert np.allclose(rz.jacobian(f)(x).to_dense(), first, rtol=1e-12, atol=1e-12)
    y, L = rz.linearize(f, x)
    assert np.isclose(y, f(x)) and np.isclose(L(v), first @ v) and np.allclose(L.T(1.0), first)
    assert np.allclose(rz.vjp(f, x)[1](1.0)[0], first) and np.isclose(rz.jvp(f, (x,), (v,))[1], first @ v)


def test_threads_share_nothing():
    x, found = point_of("kalman"), {}
    f = rz.compile(rz.grad(kalman))
    points = [x + 0.01 * i for i in range(8)]
    wanted = [f(p).tobytes() for p in points]

    def work(i):
        found[i] = [f(points[(i + j) % 8]).tobytes() == wanted[(i + j) % 8] for j in range(40)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(all(f) for f in found.values()) and len(found) == 4


def test_checkpoints_take_less_memory():
    def memory(checkpoint):
        end = lambda x: rz.loop(lambda c, _: (np.tanh(c), None), x, length=400, checkpoint=checkpoint)[0]  # noqa: E731
        program = traced_program(rz.grad(lambda x: np.sum(end(x))), np.ones(80))
        return sum([b.size for b in NativeFunction(program, ["f"]).written.own])

    assert memory(True) < memory(False) / 4


def test_large_states_are_left_to_arrays():
    f = rz.compile(rz.grad(lambda x: np.sum(rz.loop(lambda c, _: (np.sin(c), None), x, length=20)[0])))
    f(np.ones(3000))
    assert f.backend != "native"


def test_it_can_be_turned_off():
    with tuning.override(NATIVE_LOOPS=False):
        assert rz.compile(rz.grad(rk4), point_of("rk4")).backend != "native"


@needs_machine_code
def test_long_loops_are_machine_code_and_short_ones_floats():
    x = point_of("rk4")
    assert "machine code" in rz.compile(lambda p: rk4(p, 2000), x).explain()
    assert "floats" in rz.compile(lambda p: rk4(p, 5), x).explain()


def test_code_is_kept_on_the_body():
    made = []

    class Counted(NativeFunction):
        def __init__(self, *args):
            made.append(1)
            super().__init__(*args)

    kept, native_loops.NativeFunction = native_loops.NativeFunction, Counted
    try:
        push = rz.linearize(rk4, point_of("rk4"))[1]
        first = push(point_of("rk4"))
        count = len(made)
        assert push(point_of("rk4")) == first and len(made) == count
    finally:
        native_loops.NativeFunction = kept
