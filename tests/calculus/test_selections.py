"""Selections and 0 · ∞: every way to a derivative gives the same numbers, whatever a branch not taken, or a place that nothing reaches, holds.

The reference is a small forward mode of its own that keeps, beside each Jacobian, the mask of the places that some path reaches.
"""

import warnings

import numpy as np
import pytest

import riesz as rz

INF, NAN = np.inf, np.nan
N = 4


class Known:
    """A vector, its Jacobian and the places of the Jacobian that something reaches."""

    def __init__(self, value, jacobian, reached):
        self.value, self.jacobian, self.reached = value, jacobian, reached

    @classmethod
    def constant(cls, value):
        return cls(value, np.zeros((len(value), N)), np.zeros((len(value), N), bool))

    def times(self, slope):
        return np.where(self.reached, np.asarray(slope)[:, None] * self.jacobian, 0.0)


def unary(f, slope):
    return (lambda u: f(u)), (lambda u: Known(f(u.value), u.times(slope(u.value)), u.reached))


def selected(c, u, v):
    return Known(
        np.where(c, u.value, v.value),
        np.where(c[:, None], u.jacobian, v.jacobian),
        np.where(c[:, None], u.reached, v.reached),
    )


def larger(a, b):
    return np.where(a == b, 0.5, np.where(a > b, 1.0, 0.0))


def chosen(value, u, v, p, q):
    keep = [(k != 0)[:, None] & x.reached for k, x in ((p, u), (q, v))]
    return Known(
        value,
        sum([np.where(m, k[:, None] * x.jacobian, 0.0) for m, k, x in zip(keep, (p, q), (u, v), strict=True)]),
        keep[0] | keep[1],
    )


UNARY = [
    unary(np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    unary(np.log, lambda x: 1.0 / x),
    unary(lambda x: 1.0 / x, lambda x: -((1.0 / x) ** 2)),
    unary(lambda x: x**0.25, lambda x: 0.25 * x ** (-0.75)),
    unary(lambda x: x**2, lambda x: 2.0 * x),
    unary(np.sin, np.cos),
    unary(lambda x: np.inf * x, lambda x: np.full(len(x), INF)),
    unary(lambda x: np.nan * x, lambda x: np.full(len(x), NAN)),
    unary(lambda x: 0.0 * x, lambda x: np.zeros(len(x))),
    unary(lambda x: x / 0.0, lambda x: np.full(len(x), INF)),
    unary(lambda x: 3.0 * x - 1.0, lambda x: np.full(len(x), 3.0)),
]
GATHERS = [[1, 2, 3, 0], [1, 1, 2, 2], [3, 2, 1, 0], [0, 0, 0, 1]]


def draw(rng):
    """A random program: as NumPy code, and on what is known."""
    steps = []
    for _ in range(rng.integers(2, 6)):
        kind = rng.choice(
            [
                "unary",
                "unary",
                "where",
                "where",
                "constant",
                "gather",
                "shift",
                "product",
                "sum",
                "matrix",
                "maximum",
                "relu",
                "slice",
            ]
        )
        which, pick = rng.integers(0, 100, 2), rng.integers(0, 100)
        array = rng.choice([0.0, 1.0, -2.0, INF, 3.0], N)
        matrix = rng.choice([0.0, 0.0, 1.0, -2.0], (N, N))
        steps.append((kind, which, pick, array, matrix, rng.choice([0.0, 0.5, 1.0, -1.0])))

    def plain(x):
        seen = [x]
        for kind, which, pick, array, matrix, at in steps:
            u, v = [seen[-1 - i % len(seen)] for i in which]
            match kind:
                case "unary":
                    seen.append(UNARY[pick % len(UNARY)][0](u))
                case "where":
                    seen.append(np.where(x > at, u, v))
                case "constant":
                    seen.append(np.where(x > at, u, 0.0))
                case "gather":
                    seen.append(u[np.array(GATHERS[pick % 4])])
                case "shift":
                    seen.append(np.concatenate([np.zeros(1), u[:-1]]))
                case "slice":
                    seen.append(np.concatenate([u[1:3], v[:2]]))
                case "product":
                    seen.append(array * u if pick % 2 else u * v)
                case "sum":
                    seen.append(u + 2.0 * v)
                case "matrix":
                    seen.append(matrix @ u)
                case "maximum":
                    seen.append(np.maximum(u, v) if pick % 2 else np.minimum(u, at))
                case "relu":
                    seen.append(rz.relu(u))
        return seen[-1]

    def known(x):
        seen = [Known(x, np.eye(N), np.eye(N, dtype=bool))]
        for kind, which, pick, array, matrix, at in steps:
            u, v = [seen[-1 - i % len(seen)] for i in which]
            match kind:
                case "unary":
                    seen.append(UNARY[pick % len(UNARY)][1](u))
                case "where":
                    seen.append(selected(x > at, u, v))
                case "constant":
                    seen.append(selected(x > at, u, Known.constant(np.zeros(N))))
                case "gather":
                    g = GATHERS[pick % 4]
                    seen.append(Known(u.value[g], u.jacobian[g], u.reached[g]))
                case "shift":
                    parts = Known.constant(np.zeros(1)), u
                    seen.append(
                        Known(
                            *[
                                np.concatenate([a[:1], b[:-1]])
                                for a, b in zip(*[vars(p).values() for p in parts], strict=True)
                            ]
                        )
                    )
                case "slice":
                    seen.append(
                        Known(
                            *[
                                np.concatenate([a[1:3], b[:2]])
                                for a, b in zip(vars(u).values(), vars(v).values(), strict=True)
                            ]
                        )
                    )
                case "product":
                    if pick % 2:
                        seen.append(Known(array * u.value, u.times(array), u.reached))
                    else:
                        seen.append(
                            Known(u.value * v.value, u.times(v.value) + v.times(u.value), u.reached | v.reached)
                        )
                case "sum":
                    seen.append(
                        Known(u.value + 2.0 * v.value, u.jacobian + v.times(np.full(N, 2.0)), u.reached | v.reached)
                    )
                case "matrix":
                    every = np.where(u.reached[None], matrix[:, :, None] * u.jacobian[None], 0.0).sum(1)
                    seen.append(Known(matrix @ u.value, every, np.broadcast_to(u.reached.any(0), (N, N))))
                case "maximum":
                    if pick % 2:
                        seen.append(
                            chosen(
                                np.maximum(u.value, v.value), u, v, larger(u.value, v.value), larger(v.value, u.value)
                            )
                        )
                    else:
                        zero = Known.constant(np.full(N, at))
                        seen.append(
                            chosen(
                                np.minimum(u.value, at),
                                u,
                                zero,
                                larger(zero.value, u.value),
                                larger(u.value, zero.value),
                            )
                        )
                case "relu":
                    slope = np.heaviside(u.value, 0.0)
                    keep = (slope != 0)[:, None] & u.reached
                    seen.append(Known(np.maximum(u.value, 0.0), np.where(keep, slope[:, None] * u.jacobian, 0.0), keep))
        return seen[-1]

    return plain, known


def same(got, wanted):
    """Equal where finite; where the reference is inf or nan, so is the number: sums in another order make one of the other."""
    got, wanted = np.asarray(got, float), np.asarray(wanted)
    fine = np.isfinite(wanted)
    return (
        got.shape == wanted.shape
        and (np.isfinite(got) == fine).all()
        and np.allclose(got[fine], wanted[fine], rtol=1e-9, atol=1e-12)
    )


def ways(f, x, backends):
    ones = np.ones(N)
    J = rz.jacobian(f)(x)
    S = J.simplify()
    yield "to_dense", J.to_dense(), None
    yield "to_sparse", J.to_sparse().toarray(), None
    yield "simplify, to_dense", S.to_dense(), None
    yield "simplify, to_sparse", S.to_sparse().toarray(), None
    yield "transpose, to_dense", J.T.to_dense().T, None
    yield "grad of components", np.array([rz.grad(lambda x, i=i: f(x)[i])(x) for i in range(N)]), None
    yield "L(v)", J(ones), 1
    yield "jvp", rz.jvp(f, (x,), (ones,))[1], 1
    yield "simplify, L(v)", S(ones), 1
    yield "diagonal", J.diagonal(), "diagonal"
    yield "L.T(w)", J.T(ones), 0
    yield "simplify, L.T(w)", S.T(ones), 0
    total = lambda x: np.sum(f(x))  # noqa: E731
    yield "grad", rz.grad(total)(x), 0
    yield "grad as a program", rz.function(lambda x: rz.grad(total)(x) * 1.0)(x), 0
    yield "vmap", rz.vmap(rz.grad(total))(x[None])[0], 0
    for b in backends:
        yield f"grad, {b}", rz.compile(rz.grad(total), backend=b)(x), 0
        yield f"jvp, {b}", rz.compile(lambda x, v: rz.jvp(f, (x,), (v,))[1], backend=b)(x, ones), 1


def wanted_of(J, how):
    return J if how is None else np.diagonal(J) if how == "diagonal" else J.sum(how)


def check(seed, backends):
    rng = np.random.default_rng(seed)
    plain, known = draw(rng)
    x = rng.choice([0.0, 1.0, 4.0, -1.0, 2.0, 0.25], N)
    with np.errstate(all="ignore"):
        reference = known(x).jacobian
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some of these programs leave their domains in earnest
        for name, got, how in ways(plain, x, backends):
            if not same(got, wanted_of(reference, how)):
                wrong.append((name, np.asarray(got).tolist(), wanted_of(reference, how).tolist()))
    assert not wrong, wrong


@pytest.mark.parametrize("seed", range(60))
def test_every_way_to_a_derivative_gives_the_same_numbers(seed):
    check(seed, ["numpy"])


@pytest.mark.parametrize("seed", range(8))
def test_every_backend_gives_the_same_numbers(seed):
    check(seed, ["numba", "jax"])


TAKEN = np.array([True, False, True])
STACK = np.stack([2.0 * np.eye(3), 3.0 * np.eye(3), 4.0 * np.eye(3)])
ROWS = {
    "solve, the right-hand side": lambda x, y: np.linalg.solve(
        STACK * x[:, None, None], y[:, None, None] * np.ones((3, 3, 1))
    )[:, 0, 0],
    "solve, the matrix": lambda x, y: np.linalg.solve(STACK * y[:, None, None], x[:, None, None] * np.ones((3, 3, 1)))[
        :, 0, 0
    ],
    "inv": lambda x, y: np.linalg.inv(STACK * y[:, None, None])[:, 0, 0] * x,
    "det": lambda x, y: np.linalg.det(STACK * y[:, None, None]) * x,
    "product": lambda x, y: np.einsum("eij,ej->ei", STACK * x[:, None, None], y[:, None] * np.ones((3, 3)))[:, 0],
    "running sum": lambda x, y: np.cumsum(y[:, None] * np.ones(3), axis=1)[:, 2] * x,
    "transform": lambda x, y: np.fft.fft(y[:, None] * np.ones(2), axis=1).real[:, 0] * x,
    "transform, half": lambda x, y: np.fft.rfft(y[:, None] * np.arange(1.0, 5.0), axis=1).imag[:, 1] * x,
    "largest": lambda x, y: np.max(y[:, None] * np.arange(1.0, 4.0), axis=1) * x,
    "norm": lambda x, y: np.linalg.norm(y[:, None] * np.ones(4), axis=1) * x,
    "sort": lambda x, y: np.sort(y[:, None] * np.array([1.0, 2.0]), axis=1)[:, 1] * x,
}


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize("name", list(ROWS))
def test_rows_that_are_not_taken_leave_no_trace_on_any_backend(name, backend):
    x = np.array([1.0, 2.0, 3.0])
    pytest.importorskip(backend)
    wanted = rz.grad(lambda x: np.sum(np.where(TAKEN, ROWS[name](x, x), 1.0)))(x)
    f = rz.compile(
        rz.grad(lambda x: np.sum(np.where(TAKEN, ROWS[name](x, np.where(TAKEN, x, NAN * x)), 1.0))), backend=backend
    )
    np.testing.assert_allclose(f(x), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bad", [NAN, INF, np.array([1.0, NAN, 1.0])], ids=["nan", "inf", "array"])
@pytest.mark.parametrize("name", list(ROWS))
def test_rows_that_are_not_taken_leave_no_trace_in_steps_that_act_row_by_row(name, bad):
    x, w = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.5, 2.5])

    def f(x):
        return np.where(TAKEN, ROWS[name](x, np.where(TAKEN, x, bad * x)), 1.0)

    J = rz.jacobian(lambda x: np.where(TAKEN, ROWS[name](x, x), 1.0))(x).to_dense()
    L = rz.jacobian(f)(x)
    for found in (
        L.to_dense(),
        L.to_sparse().toarray(),
        L.simplify().to_dense(),
        L.H.to_dense().T,
        np.stack([L(e) for e in np.eye(3)], 1),
    ):
        np.testing.assert_allclose(found, J, atol=1e-12)
    pulled = [
        rz.grad(lambda x: np.sum(f(x) * w))(x),
        rz.compile(rz.grad(lambda x: np.sum(f(x) * w)), backend="numpy")(x),
        L.H(w),
    ]
    for found in pulled:
        np.testing.assert_allclose(found, J.T @ w, atol=1e-12)


def test_a_loop_without_guards_begins_anew_with_them_where_a_nan_comes_out() -> None:
    def loss(xs):
        def step(c, x):
            safe = np.where(x > 0.0, np.sqrt(x), 0.0)
            c = np.tanh(c + safe * x[::-1])
            return c, safe * c

        last, ys = rz.loop(step, np.zeros(4), xs)
        return np.sum(ys**2) + np.sum(last[1:])

    compiled = rz.compile(rz.grad(loss), backend="numpy")
    xs = np.array([[0.5, 1.0, 4.0, 0.5], [2.0, 3.0, 1.5, 1.0], [1.0, 1.0, 2.0, 3.0]])
    np.testing.assert_allclose(compiled(xs), rz.grad(loss)(xs), rtol=1e-12)
    xs[0, 0] = xs[1, 1:3] = 0.0  # the slope of the root is infinite in a branch not taken
    with np.errstate(all="ignore"):
        found = compiled(xs)
    np.testing.assert_allclose(found, rz.grad(loss)(xs), rtol=1e-12)
    assert np.isfinite(found).all()
