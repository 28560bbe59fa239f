"""Linear algebra against NumPy and SciPy (values), JAX (derivatives of first and second order) and finite differences where JAX has no answer."""

from __future__ import annotations

import itertools
import os
from functools import cache
from typing import Any

os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0"
)  # many small programs: compiling them is what takes time

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jax_linalg
import numpy as np
import pytest
import scipy.linalg
from sampling import sampled
from scipy.linalg import expm, solve_triangular

import riesz as rz
from riesz.ops.op import Contraction
from riesz.ops.opaque import Ruled
from riesz.tracing.rules.linalg.matrix_ops import SOLVE
from riesz.tracing.rules.linalg.numpy_linalg import SLOGDET

jax.config.update("jax_enable_x64", True)
pytestmark = [pytest.mark.filterwarnings("ignore")]

rng = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    """Random numbers."""
    return rng.normal(size=shape)


def regular(*lead: int, n: int = 3) -> Any:
    """Matrices far from singular."""
    return normal(*lead, n, n) + 3.0 * np.eye(n)


def positive(*lead: int, n: int = 3) -> Any:
    """Symmetric matrices with distinct positive eigenvalues."""
    a = normal(*lead, n, n)
    s = a @ a.mT + np.diag(np.arange(1.0, n + 1.0))
    return (s + s.mT) / 2


class Case:
    """An expression in np and sl (scipy.linalg), the same for JAX if it differs there, and inputs. `jax=None`: finite differences."""

    def __init__(self, text: str, *inputs: Any, jax: str | None = "", single: bool = True) -> None:
        self.text = text
        self.jax = text if jax == "" else jax
        self.inputs = inputs
        self.single = single  # its numbers are also compared in float32
        names = "xyzu"[: len(inputs)]
        scope = {"onp": np, "dense_band": dense_band}
        self.function = eval(f"lambda np, sl, {', '.join(names)}: {text}", scope)
        self.reference = None if jax is None else eval(f"lambda np, sl, {', '.join(names)}: {jax or text}", scope)

    def __repr__(self) -> str:
        return f"{self.text}  {' '.join([str(x.shape) for x in self.inputs])}"


def dense_band(ab: Any, below: int, above: int) -> Any:
    """The matrix with these diagonals."""
    n = ab.shape[1]
    return sum([jnp.diag(ab[above - k, max(0, k) : n + min(0, k)], k) for k in range(-below, above + 1)])


CASES = [
    Case("np.linalg.solve(x, y)", regular(), normal(3)),
    Case("np.linalg.solve(x, y)", regular(), normal(3, 2)),
    Case("np.linalg.solve(x, y)", regular(2), normal(2, 3, 2)),
    Case(
        "np.linalg.solve(x, y)",
        regular(2),
        normal(3),
        jax="np.linalg.solve(x, np.broadcast_to(y, (2, 3))[..., None])[..., 0]",
    ),
    Case("np.linalg.solve(x, y)", regular(), normal(2, 3, 2), jax="np.linalg.solve(np.broadcast_to(x, (2, 3, 3)), y)"),
    Case("np.linalg.solve(x, onp.arange(3.0))", regular()),
    Case("np.linalg.solve(onp.diag([1.0, 2.0, 3.0]), x)", normal(3, 2)),
    Case("np.linalg.inv(x)", regular()),
    Case("np.linalg.inv(x)", regular(2)),
    Case("np.linalg.det(x)", regular()),
    Case("np.linalg.det(x)", regular(2)),
    Case("np.linalg.slogdet(x)[1]", regular(2)),
    Case("np.linalg.slogdet(x).logabsdet * np.linalg.slogdet(x).sign", -regular()),
    Case("np.linalg.cholesky(x)", positive()),
    Case("np.linalg.cholesky(x)", positive(2)),
    Case("np.linalg.cholesky(x, upper=True)", positive()),
    Case("tuple(np.linalg.eigh(x))", positive()),
    Case("tuple(np.linalg.eigh(x))", positive(2)),
    Case("np.linalg.eigh(x, 'U').eigenvalues", positive()),
    Case("np.linalg.eigvalsh(x)", positive()),
    Case("np.linalg.eigvalsh(x, UPLO='U')", positive(2)),
    Case("tuple(np.linalg.svd(x, full_matrices=False))", normal(3, 3)),
    Case("tuple(np.linalg.svd(x, full_matrices=False))", normal(4, 3)),
    Case("tuple(np.linalg.svd(x, full_matrices=False))", normal(2, 2, 3)),
    Case("tuple(np.linalg.svd(x))", normal(3, 3), jax="tuple(np.linalg.svd(x, full_matrices=False))"),
    Case("np.linalg.svd(x, compute_uv=False)", normal(3, 4)),
    Case("np.linalg.svdvals(x)", normal(2, 3, 2)),
    Case(
        "np.linalg.svd(x, hermitian=True)[1]",
        positive() - 4.0 * np.eye(3),
        jax="np.sort(np.abs(np.linalg.eigvalsh(x)))[::-1]",
    ),
    Case("np.linalg.pinv(x)", normal(4, 3)),
    Case("np.linalg.pinv(x)", normal(2, 3, 4)),
    Case("np.linalg.pinv(x, hermitian=True)", positive(), jax="np.linalg.inv((x + x.T) / 2)"),
    Case(
        "np.linalg.pinv(y @ x, rcond=1e-10)",
        normal(2, 3),
        normal(4, 2),
        jax="np.linalg.pinv(y @ x, rtol=1e-10)",
        single=False,
    ),
    Case("tuple(np.linalg.qr(x))", normal(4, 3)),
    Case("tuple(np.linalg.qr(x))", normal(2, 3, 3)),
    Case("np.linalg.qr(x, mode='r')", normal(4, 2)),
    Case("np.linalg.lstsq(x, y)[0]", normal(4, 3), normal(4, 2)),
    Case(
        "np.linalg.lstsq(x, y)[1]",
        normal(4, 3),
        normal(4),
        jax="np.sum((y - x @ np.linalg.pinv(x) @ y) ** 2, keepdims=True)",
    ),
    Case("np.linalg.lstsq(x, y)[0]", normal(2, 3), normal(2)),
    Case("np.linalg.tensorsolve(x, y)", regular(n=4).reshape(2, 2, 4), normal(2, 2)),
    Case(
        "np.linalg.tensorsolve(x, y, axes=(1,))",
        regular(n=4).reshape(2, 4, 2),
        normal(2, 2),
        jax="np.linalg.tensorsolve(np.moveaxis(x, 1, -1), y)",
    ),
    Case("np.linalg.tensorinv(x)", regular(n=4).reshape(2, 2, 4)),
    Case("np.linalg.tensorinv(x, ind=1)", regular(n=4).reshape(4, 2, 2)),
    *[Case(f"np.linalg.matrix_power(x, {k})", regular()) for k in (1, 2, 3, 5, -1, -2)],
    Case("np.linalg.matrix_power(x, 3)", regular(2)),
    *[
        Case(f"np.linalg.norm(x, {k})", normal(3, 4))
        for k in ("None", "'fro'", "2", "-2", "1", "-1", "np.inf", "-np.inf", "'nuc'")
    ],
    *[Case(f"np.linalg.norm(x, {k})", normal(4)) for k in ("None", "2", "1", "np.inf", "-np.inf", "3", "2.5", "-2")],
    *[Case(f"np.linalg.norm(x, {k}, axis=1, keepdims=True)", normal(2, 3)) for k in ("None", "1", "np.inf", "3")],
    Case("np.linalg.norm(x)", normal(2, 3, 2)),
    Case("np.linalg.norm(x, keepdims=True)", normal(2, 3)),
    *[
        Case(f"np.linalg.norm(x, {k}, axis=(0, 2), keepdims=True)", normal(2, 3, 4))
        for k in ("None", "1", "np.inf", "2", "'nuc'")
    ],
    Case("np.linalg.vector_norm(x, ord=3)", normal(2, 3)),
    Case("np.linalg.vector_norm(x, axis=0, keepdims=True)", normal(2, 3)),
    Case("np.linalg.matrix_norm(x, ord='nuc', keepdims=True)", normal(2, 3, 2)),
    Case("np.linalg.matrix_norm(x)", normal(2, 3, 2)),
    *[Case(f"np.linalg.cond(x, {k})", regular()) for k in ("None", "-2", "1", "np.inf", "'fro'")],
    Case("np.linalg.cond(x)", normal(4, 3)),
    Case("sl.solve(x, y)", regular(), normal(3)),
    Case("sl.solve(x, y, transposed=True)", regular(), normal(3, 2), jax="sl.solve(x.T, y)"),
    Case("sl.solve(x, y, assume_a='pos')", positive(), normal(3), jax="np.linalg.solve((x + x.T) / 2, y)"),
    Case("sl.inv(x)", regular()),
    Case("sl.det(x)", regular()),
    Case("sl.cholesky(x)", positive(), jax="np.linalg.cholesky(x).T"),
    Case("sl.cholesky(x, lower=True)", positive(), jax="np.linalg.cholesky(x)"),
    Case("sl.cho_solve(sl.cho_factor(x), y)", positive(), normal(3), jax="np.linalg.solve((x + x.T) / 2, y)"),
    Case(
        "sl.cho_solve(sl.cho_factor(x, lower=True), y)",
        positive(),
        normal(3, 2),
        jax="np.linalg.solve((x + x.T) / 2, y)",
    ),
    Case("sl.cho_solve((x, True), y)", regular(), normal(3)),
    Case("sl.solve_triangular(x, y, lower=True)", regular(), normal(3)),
    Case("sl.solve_triangular(x, y)", regular(), normal(3, 2)),
    Case("sl.solve_triangular(x, y, trans='T', unit_diagonal=True)", regular(), normal(3, 2)),
    Case("sl.solve_triangular(x, y, trans=1, lower=True)", regular(), normal(3)),
    Case("sl.lu(x)[1:]", normal(3, 3)),
    Case("sl.lu(x, permute_l=True)", normal(3, 3)),
    Case("sl.lu_solve(sl.lu_factor(x), y)", normal(3, 3), normal(3)),
    Case("sl.lu_solve(sl.lu_factor(x), y, trans=1)", normal(3, 3), normal(3, 2)),
    Case(
        "sl.solve_banded((2, 1), x, y)",
        normal(4, 5) + 4.0 * np.eye(4)[1][:, None],
        normal(5),
        jax="np.linalg.solve(dense_band(x, 2, 1), y)",
    ),
    Case(
        "sl.solve_banded((0, 1), x, y)", normal(2, 4) + 4.0, normal(4, 2), jax="np.linalg.solve(dense_band(x, 0, 1), y)"
    ),
    Case("sl.eigh(x)[1] ** 2", positive(), jax="np.linalg.eigh(x)[1] ** 2"),
    Case(
        "sl.eigh(x, y)[0]",
        positive(),
        positive(),
        jax="(lambda l: np.linalg.eigvalsh(np.linalg.solve(l, np.linalg.solve(l, (x + x.T) / 2).T)))(np.linalg.cholesky(y))",
    ),
    Case("(sl.eigh(x, y)[0], sl.eigh(x, y)[1] ** 2)", positive(), positive(), jax=None),
    Case("sl.eigh(x, subset_by_index=[1, 2], eigvals_only=True)", positive(), jax="np.linalg.eigvalsh(x)[1:]"),
    Case("sl.eigvalsh(x)", positive(), jax="np.linalg.eigvalsh(x)"),
    Case("sl.svd(x, full_matrices=False)", normal(3, 4)),
    Case("sl.svdvals(x)", normal(3, 4), jax="np.linalg.svdvals(x)"),
    Case("sl.qr(x, mode='economic')", normal(4, 3)),
    Case("sl.polar(x)", normal(3, 3), jax="(lambda w: (w, w.T @ x))(np.linalg.svd(x)[0] @ np.linalg.svd(x)[2])"),
    Case("sl.polar(x)[0]", normal(4, 2), jax="(lambda u, s, v: u @ v)(*np.linalg.svd(x, full_matrices=False))"),
    Case(
        "sl.polar(x, side='left')",
        normal(2, 2),
        jax="(lambda w: (w, x @ w.T))(np.linalg.svd(x)[0] @ np.linalg.svd(x)[2])",
    ),
    Case("sl.pinv(x)", normal(3, 4), jax="np.linalg.pinv(x)"),
    Case(
        "sl.lstsq(x, y)[:2]",
        normal(4, 3),
        normal(4),
        jax="(lambda s: (s, np.sum((y - x @ s) ** 2)))(np.linalg.pinv(x) @ y)",
    ),
    Case("sl.norm(x, 1)", normal(3, 4), jax="np.linalg.norm(x, 1)"),
    Case("sl.expm(x)", normal(3, 3)),
    Case("sl.expm(x)", normal(2, 2, 2)),
    *[
        Case(f"sl.{name}(x)", regular() / 3.0, jax=None)
        for name in ("logm", "sqrtm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")
    ],
    Case(
        "sl.solve_sylvester(x, y, z)",
        *(regular(), regular(n=2), normal(3, 2)),
        jax="np.linalg.solve(np.kron(x, np.eye(2)) + np.kron(np.eye(3), y.T), z.ravel()).reshape(3, 2)",
    ),
    Case(
        "sl.solve_continuous_lyapunov(x, y)",
        *(regular(), normal(3, 3)),
        jax="np.linalg.solve(np.kron(x, np.eye(3)) + np.kron(np.eye(3), x), y.ravel()).reshape(3, 3)",
    ),
    Case(
        "sl.solve_discrete_lyapunov(x, y)",
        0.2 * regular(),
        normal(3, 3),
        jax="np.linalg.solve(np.eye(9) - np.kron(x, x), y.ravel()).reshape(3, 3)",
    ),
    Case(
        "sl.block_diag(x, y, [[1.0, 2.0]])", normal(2, 2), normal(3), jax="sl.block_diag(x, y, np.array([[1.0, 2.0]]))"
    ),
    Case("sl.toeplitz(x)", normal(3)),
    Case("sl.toeplitz(x, y)", normal(3), normal(4)),
    Case(
        "sl.hankel(x, y)",
        normal(3),
        normal(2),
        jax="np.concatenate([x, y[1:]])[onp.add.outer(onp.arange(3), onp.arange(2))]",
    ),
    Case(
        "sl.hankel(x)", normal(3), jax="np.concatenate([x, np.zeros(2)])[onp.add.outer(onp.arange(3), onp.arange(3))]"
    ),
    Case("sl.circulant(x)", normal(3), jax="x[onp.subtract.outer(onp.arange(3), onp.arange(3)) % 3]"),
    Case(
        "sl.solve_toeplitz((x, y), z)",
        normal(3) + 4.0 * np.eye(3)[0],
        normal(3),
        normal(3),
        jax="np.linalg.solve(sl.toeplitz(x, y), z)",
    ),
]
SOME = sampled(CASES, 3)
every = pytest.mark.parametrize("c", SOME, ids=repr)


def floats(value: Any) -> list[Any]:
    """The arrays of a result, in order."""
    return [leaf for part in value for leaf in floats(part)] if isinstance(value, (tuple, list)) else [value]


def flat(*values: Any) -> Any:
    """All numbers of a result in one axis."""
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in floats(values)])


def written(c: Case) -> Any:
    """The case in NumPy."""

    def code(*xs: Any) -> Any:
        return tuple(floats(c.function(np, scipy.linalg, *xs)))

    return code


@cache
def directions(c: Case) -> tuple[Any, Any]:
    """Differentials of the inputs, and weights of the results."""
    own = np.random.default_rng(5)
    ys = written(c)(*c.inputs)
    return tuple([own.normal(size=x.shape) for x in c.inputs]), tuple([own.normal(size=np.shape(y)) for y in ys])


def curved(f: Any, w: Any, np_: Any) -> Any:
    """A number made of the results, with a second derivative of its own."""
    return lambda *xs: sum([np_.sum(k * np_.sin(y)) for k, y in zip(w, f(*xs), strict=True)])


def by_jax(c: Case, xs: Any, dxs: Any, w: Any) -> Any:
    """Value, f'(x)dx, f'(x)*w and the Hessian of the functional on dx."""

    def f(*xs: Any) -> Any:
        return tuple(floats(c.reference(jnp, jax_linalg, *xs)))

    y, dy = jax.jvp(f, xs, dxs)
    back = jax.vjp(f, *xs)[1](w)
    return y, dy, back, jax.jvp(jax.grad(curved(f, w, jnp), tuple(range(len(xs)))), xs, dxs)[1]


WITH_JAX = [c for c in SOME if c.reference is not None]


@cache
def batch(k: int) -> Any:
    """Cases compiled together."""
    chosen = WITH_JAX[30 * k : 30 * (k + 1)]
    return jax.jit(lambda given: [by_jax(c, *g) for c, g in zip(chosen, given, strict=True)])(
        [(c.inputs, *directions(c)) for c in chosen]
    )


def slope(f: Any, xs: Any, dxs: Any, h: float = 1e-3) -> Any:
    """d/dt f(x + t·dx) by central differences of sixth order."""
    parts = [
        (k, sign * weight / h)
        for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
        for sign in (1, -1)
        for k in (sign * k,)
    ]
    return sum([weight * flat(f(*[x + k * h * d for x, d in zip(xs, dxs, strict=True)])) for k, weight in parts])


def symmetric(c: Case) -> Any:
    """The case's directions, made symmetric where differences are taken of a function of symmetric matrices."""
    dxs, w = directions(c)
    return tuple([d + d.mT if "eigh" in c.text else d for d in dxs]), w


def close(found: Any, wanted: Any, tolerance: float) -> None:
    """The same numbers relative to the largest."""
    a, b = flat(found), flat(wanted)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max(initial=0.0)))


@every
def test_values_are_those_of_numpy(c: Case) -> None:
    found = rz.function(written(c))(*c.inputs)
    wanted = written(c)(*c.inputs)
    assert [np.shape(y) for y in found] == [np.shape(y) for y in wanted]
    close(found, wanted, 1e-12)


@every
def test_derivatives_of_first_and_second_order(c: Case) -> None:
    f = written(c)
    if c.reference is None:
        dxs, w = symmetric(c)
        h = curved(f, w, np)
        everything = tuple(range(len(c.inputs)))
        close(rz.jvp(f, c.inputs, dxs)[1], slope(f, c.inputs, dxs), 1e-8)
        assert flat(rz.vjp(f, *c.inputs)[1](w)) @ flat(dxs) == pytest.approx(
            flat(w) @ slope(f, c.inputs, dxs), rel=1e-8
        )
        close(rz.hvp(h, c.inputs, dxs), slope(rz.grad(h, everything), c.inputs, dxs), 1e-7)
        return
    dxs, w = directions(c)
    place = WITH_JAX.index(c)
    y, dy, back, bent = batch(place // 30)[place % 30]
    close(f(*c.inputs), y, 1e-11)  # the same function, before anything is said about derivatives
    close(rz.jvp(f, c.inputs, dxs)[1], dy, 1e-12)
    close(rz.vjp(f, *c.inputs)[1](w), back, 1e-12)
    close(rz.linearize(f, *c.inputs)[1].H(w), back, 1e-12)
    close(rz.hvp(curved(f, w, np), c.inputs, dxs), bent, 2e-12)


@every
def test_hessians_are_symmetric_matrices(c: Case) -> None:
    h = curved(written(c), directions(c)[1], np)
    rest = c.inputs[1:]
    found = rz.hessian(lambda x: h(x, *rest))(c.inputs[0]).to_dense()
    close(found, found.T, 1e-8)  # up to the condition of the second derivatives, which cancel more than the first
    d = directions(c)[0][0]
    close(found @ d.ravel(), rz.hvp(lambda x: h(x, *rest), (c.inputs[0],), (d,)), 1e-11)


@every
def test_float32_stays_float32(c: Case) -> None:
    xs = tuple([x.astype(np.float32) for x in c.inputs])
    plain = written(c)(*xs)
    ys = rz.function(written(c))(*xs)
    assert [np.asarray(y).dtype for y in ys] == [
        np.asarray(p).real.dtype for p in plain
    ]  # SciPy leaves single precision here and there
    w = tuple([k.astype(np.asarray(y).dtype) for k, y in zip(directions(c)[1], ys, strict=True)])
    assert all([np.asarray(g).dtype == np.float32 for g in rz.vjp(written(c), *xs)[1](w)])
    if c.single:
        close(ys, plain, 5e-3)


NUMPY = ["inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "svd", "svdvals", "pinv", "qr"]


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 0, 0), (0, 3, 3), (2, 1, 1)])
@pytest.mark.parametrize("name", NUMPY)
def test_empty_and_small_matrices(name: str, shape: tuple[int, ...]) -> None:
    x = np.full(shape, 1.7)
    f = getattr(np.linalg, name)
    h = lambda x: sum([np.sum(np.sin(y)) for y in floats(f(x))], 0.0)  # noqa: E731
    assert [np.shape(y) for y in floats(rz.function(f)(x))] == [np.shape(y) for y in floats(f(x))]
    close(rz.function(f)(x), f(x), 1e-14)
    assert rz.grad(h)(x).shape == shape
    assert rz.hessian(h)(x).to_dense().shape == (x.size, x.size)
    if x.size:
        d = np.ones(shape)
        assert np.sum(rz.grad(h)(x)) == pytest.approx(slope(h, (x,), (d,))[0], abs=1e-9)


@pytest.mark.parametrize(
    "shapes",
    [((0, 0), (0,)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((1, 1), (1,)), ((0, 2, 2), (2,)), ((2, 2), (0, 2, 1))],
    ids=str,
)
def test_solving_empty_systems(shapes: Any) -> None:
    a = np.broadcast_to(np.eye(shapes[0][-1]) * 2.0, shapes[0]).copy()
    b = np.ones(shapes[1])
    wanted = np.linalg.solve(a, b)
    assert rz.function(np.linalg.solve)(a, b).shape == wanted.shape
    _, back = rz.vjp(np.linalg.solve, a, b)
    da, db = back(np.ones_like(wanted))
    assert da.shape == a.shape and db.shape == b.shape
    if shapes[0] == (1, 1):
        close((da, db), (-0.25, 0.5), 1e-14)


# -- determinants -----------------------------------------------------------------------------------------


def mixed(x: Any, directions: list[Any]) -> float:
    """Dᵏ det(x)[m₁, …]: one row of each direction, in all ways."""
    total = 0.0
    for rows in itertools.permutations(range(len(x)), len(directions)):
        y = x.copy()
        for row, d in zip(rows, directions, strict=True):
            y[row] = d[row]
        total += float(np.linalg.det(y))
    return total


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_derivatives_of_det_at_every_rank_and_order(rank: int, order: int) -> None:
    own = np.random.default_rng(rank)
    x = own.normal(size=(4, rank)) @ own.normal(size=(rank, 4))
    ds = [own.normal(size=(4, 4)) for _ in range(order)]
    f: Any = np.linalg.det
    for d in ds[:-1]:
        f = lambda x, f=f, d=d: rz.jvp(f, (x,), (d,))[1]  # noqa: E731
    wanted = mixed(x, ds)
    assert rz.jvp(f, (x,), (ds[-1],))[1] == pytest.approx(wanted, rel=1e-11, abs=1e-11)
    assert np.sum(rz.grad(f)(x) * ds[-1]) == pytest.approx(wanted, rel=1e-11, abs=1e-11)


def test_the_gradient_of_det_at_a_singular_matrix_is_its_cofactors() -> None:
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    close(rz.grad(np.linalg.det)(x), [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]], 1e-13)


def test_reverse_over_reverse_of_det_and_expm() -> None:
    own = np.random.default_rng(8)
    x, e, d = own.normal(size=(3, 3, 3))
    for f in (np.linalg.det, lambda x: np.sum(np.sin(scipy.linalg.expm(x)))):
        g = lambda x, f=f: np.sum(rz.grad(f)(x) * e)  # noqa: E731
        h = lambda x, g=g: np.sum(np.sin(rz.grad(g)(x)) * d)  # noqa: E731
        close(rz.grad(h)(x).ravel() @ d.ravel(), slope(h, (x,), (d,)), 1e-8)
        close(rz.grad(h)(x).ravel() @ d.ravel(), rz.jvp(h, (x,), (d,))[1], 1e-12)


# -- conventions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, 2, np.inf])
def test_the_derivative_of_a_matrix_norm_at_zero_is_zero(order: Any) -> None:
    f = lambda x: np.linalg.norm(x, order)  # noqa: E731
    assert np.all(rz.grad(f)(np.zeros((2, 3))) == 0.0)
    assert np.all(rz.hessian(f)(np.zeros((2, 3))).to_dense() == 0.0)


@pytest.mark.parametrize("order", [None, 0, 1, 1.5, 2, 3, np.inf])
def test_the_derivative_of_a_vector_norm_at_zero_is_zero(order: Any) -> None:
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    found = rz.grad(lambda x: np.sum(np.linalg.norm(x, order, axis=1)))(x)
    assert np.all(found[0] == 0.0) and np.all(np.isfinite(found))


def test_norm_of_order_zero_counts() -> None:
    x = np.array([1.0, 0.0, 2.0])
    assert rz.function(lambda x: np.linalg.norm(x, 0))(x) == 2.0
    assert np.all(rz.grad(lambda x: np.linalg.norm(x, 0) + np.sum(x))(x) == 1.0)


def test_the_gradient_at_a_symmetric_matrix_is_symmetric() -> None:
    s = positive()
    close(rz.grad(lambda s: np.sum(np.log(np.diag(np.linalg.cholesky(s)))))(s), np.linalg.inv(s) / 2, 1e-12)
    close(rz.grad(lambda s: np.sum(np.log(np.linalg.eigvalsh(s))))(s), np.linalg.inv(s), 1e-12)


@pytest.mark.parametrize("side", ["L", "U"])
def test_where_a_matrix_is_not_symmetric_the_triangle_that_is_read_counts(side: str) -> None:
    own = np.random.default_rng(2)
    x, d = own.normal(size=(2, 3, 3))
    f = lambda x: np.sum(np.linalg.eigvalsh(x, side) ** 3)  # noqa: E731
    g = lambda x: np.sum(np.linalg.cholesky(x + 9.0 * np.eye(3), upper=side == "U") ** 3)  # noqa: E731
    for h in (f, g):
        close(rz.function(h)(x), h(x), 1e-12)
        close(rz.jvp(h, (x,), (d,))[1], slope(h, (x,), (d,)), 1e-8)
        assert np.all((np.triu(rz.grad(h)(x), 1) if side == "L" else np.tril(rz.grad(h)(x), -1)) == 0.0)


def test_equal_eigenvalues_do_not_disturb_the_others() -> None:
    own = np.random.default_rng(4)
    d = own.normal(size=(3, 3))
    for f in (
        lambda x: np.linalg.eigvalsh(x)[-1],
        lambda x: np.linalg.norm(x, 2),
        lambda x: np.sum(np.linalg.eigh(x)[1][:, -1] ** 2 * d[0]),
    ):
        x = np.diag([1.0, 1.0, 3.0])
        assert np.all(np.isfinite(rz.grad(f)(x)))
    for f in (lambda x: np.linalg.eigvalsh(x)[-1], lambda x: np.linalg.norm(x, 2)):
        assert rz.hvp(f, (np.diag([1.0, 1.0, 3.0]),), (d + d.T,)).ravel() @ (d + d.T).ravel() == pytest.approx(
            np.sum((d + d.T)[:2, 2] ** 2),
            rel=1e-12,  # 2 Σ m² / (3 − 1)
        )
    assert np.all(
        np.isnan(rz.grad(lambda x: np.sum(np.linalg.eigh(x)[1] * d))(np.eye(3)))
    )  # these vectors have no derivative


def test_the_nuclear_norm_is_smooth_at_equal_singular_values() -> None:
    own = np.random.default_rng(6)
    x, d = np.eye(3), own.normal(size=(3, 3))
    f = lambda x: np.linalg.norm(x, "nuc")  # noqa: E731
    close(rz.grad(f)(x), np.eye(3), 1e-14)
    close(rz.hvp(f, (x,), (d,)), (d - d.T) / 2, 1e-13)


def test_frames_of_full_matrices_stay_orthogonal_and_span_the_same() -> None:
    own = np.random.default_rng(9)
    x, d = own.normal(size=(2, 4, 2))
    for f in (
        lambda x: np.linalg.svd(x)[0],
        lambda x: np.linalg.svd(x.T)[2].T,
        lambda x: np.linalg.qr(x, mode="complete")[0],
        lambda x: scipy.linalg.qr(x)[0],
    ):
        close(rz.jvp(lambda x, f=f: f(x).T @ f(x), (x,), (d,))[1], np.zeros((4, 4)), 1e-13)
        span = lambda x, f=f: f(x)[:, 2:] @ f(x)[:, 2:].T  # noqa: E731
        close(rz.jvp(span, (x,), (d,))[1], slope(span, (x,), (d,)), 1e-8)
        bent = lambda x, span=span: np.sum(span(x) ** 2 * d[:, :1])  # noqa: E731
        close(rz.hvp(bent, (x,), (d,)), slope(rz.grad(bent), (x,), (d,)), 1e-8)
    close(
        rz.jvp(lambda x: np.linalg.qr(x, mode="complete")[1], (x,), (d,))[1][:2],
        rz.jvp(lambda x: np.linalg.qr(x)[1], (x,), (d,))[1],
        1e-13,
    )


def test_wide_qr() -> None:
    own = np.random.default_rng(10)
    x, d = own.normal(size=(2, 2, 4))
    f = lambda x: tuple(np.linalg.qr(x))  # noqa: E731
    close(rz.function(f)(x), f(x), 1e-13)
    close(rz.jvp(f, (x,), (d,))[1], slope(f, (x,), (d,)), 1e-8)


def test_slogdet_of_a_singular_matrix_has_its_value_and_no_derivative() -> None:
    x = np.ones((2, 2))
    assert rz.function(lambda x: np.linalg.slogdet(x)[1])(x) == -np.inf
    assert np.all(np.isnan(rz.grad(lambda x: np.linalg.slogdet(x)[1])(x)))
    safe = rz.grad(lambda x: np.where(np.linalg.det(x) == 0.0, np.sum(x), np.linalg.slogdet(x)[1]))
    assert np.all(safe(x) == 1.0)  # a branch not taken leaves no nan


def test_rank_has_no_derivative() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert rz.function(np.linalg.matrix_rank)(x) == 1
    close(rz.grad(lambda x: np.linalg.matrix_rank(x) * np.sum(x))(x), np.ones((2, 2)), 1e-14)
    solution, left, rank, s = rz.function(np.linalg.lstsq)(np.eye(3)[:, :2], np.ones(3))
    close((solution, left, s), ([1, 1], [1], [1, 1]), 1e-14)
    assert rank == 2


# -- structure, names, errors -----------------------------------------------------------------------------


def test_the_derivative_of_inv_is_contractions() -> None:
    program = rz.linearize(np.linalg.inv, regular())[1].program
    kinds = {type(op) for op, args in zip(program.ops, program.args, strict=True) if args}
    assert kinds <= {Contraction, float}


def test_the_adjoint_of_solve_is_one_solve_with_the_transpose() -> None:
    a, b = regular(), normal(3)
    program = rz.linearize(lambda b: np.linalg.solve(a, b), b)[1].H.program
    assert [op for op in program.ops if isinstance(op, Ruled)] == [Ruled(SOLVE, (("transposed", True),))]
    assert SLOGDET.transpose is None


def test_one_matrix_is_factorised_once_for_many_right_hand_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    a, calls = regular(), []
    original = np.linalg.solve
    L = rz.linearize(lambda b: np.linalg.solve(a, b), normal(3))[1]
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: calls.append(a.shape) or original(a, b))
    close(L.to_dense(), np.linalg.inv(a), 1e-13)
    assert calls and all([shape == (3, 3) for shape in calls])


def test_names_imported_from_scipy_answer_while_tracing_and_are_themselves_again() -> None:
    before = scipy.linalg.expm, expm
    x = normal(3, 3) + 3.0 * np.eye(3)
    f = lambda x: np.sum(expm(x)) + np.sum(solve_triangular(x, np.ones(3), lower=True)) + np.sum(scipy.linalg.inv(x))  # noqa: E731
    g = lambda x: np.sum(rz.grad(f)(x) ** 2)  # noqa: E731 (a trace inside a trace)
    close(rz.jvp(f, (x,), (x,))[1], slope(f, (x,), (x,)), 1e-8)
    close(rz.jvp(g, (x,), (x,))[1], slope(g, (x,), (x,)), 1e-7)
    assert (scipy.linalg.expm, expm) == before
    assert type(expm(np.eye(2))) is np.ndarray


def test_named_results() -> None:
    f = lambda x: (  # noqa: E731
        np.linalg.eigh(x).eigenvectors @ np.diag(np.linalg.svd(x).S) @ np.linalg.qr(x).Q * np.linalg.slogdet(x).sign
    )  # noqa: E731, RUF100
    x = positive()
    close(rz.function(f)(x), f(x), 1e-12)
    assert type(rz.function(np.linalg.eigh)(x)) is type(np.linalg.eigh(x))


def test_eigenvectors_have_the_signs_of_the_library_that_is_asked() -> None:
    x, y = positive(), positive()
    close(rz.function(lambda x: np.linalg.eigh(x))(x), np.linalg.eigh(x), 1e-12)
    close(rz.function(lambda x: scipy.linalg.eigh(x))(x), scipy.linalg.eigh(x), 1e-12)
    close(rz.function(lambda x, y: scipy.linalg.eigh(x, y))(x, y), scipy.linalg.eigh(x, y), 1e-12)


@pytest.mark.parametrize(
    ("f", "x", "error", "words"),
    [
        (np.linalg.inv, np.ones((2, 3)), np.linalg.LinAlgError, "square"),
        (np.linalg.inv, np.ones(2), np.linalg.LinAlgError, "two-dimensional"),
        (np.linalg.inv, np.ones((2, 2)), np.linalg.LinAlgError, "Singular"),
        (np.linalg.cholesky, -np.eye(2), np.linalg.LinAlgError, "positive definite"),
        (lambda x: np.linalg.norm(x, "max"), np.eye(2), ValueError, "norm order"),
        (lambda x: np.linalg.norm(x, 3), np.eye(2), ValueError, "norm order"),
        (lambda x: np.linalg.norm(x, 2), np.ones((2, 2, 2)), ValueError, "dimensions"),
        (lambda x: np.linalg.qr(x, mode="raw"), np.eye(2), rz.TraceError, "reduced"),
        (lambda x: np.linalg.eigh(x, "X"), np.eye(2), ValueError, "UPLO"),
        (lambda x: scipy.linalg.solve_banded((1, 1), x, np.ones(2)), np.eye(2), ValueError, "diagonals"),
    ],
)
def test_bad_input(f: Any, x: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        rz.function(f)(x)
