"""Derivatives of extrema in sparse products: rows that are mostly zero, ties and nan included; extrema along short axes; products with ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import riesz as rz
from riesz import relations, seg
from riesz.backends.numpy.array_code import Arrays, ArrayValue
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Combination, Elementwise, contraction, product
from riesz.programs.passes.folding import folded
from riesz.programs.passes.fusing import SparseProduct
from riesz.programs.program import Program, outputs
from riesz.relations.cpu import pair_sums as running
from riesz.spaces.contraction import column_sums, single
from riesz.spaces.formal_vectors import dense
from riesz.tracing.rules import reductions
from riesz.tracing.rules.reductions import shares

RNG = np.random.default_rng(11)
needs_numba = pytest.mark.skipif(not running.numba_installed(), reason="needs Numba")


# -- sparse products of thin rows -------------------------------------------------------------------------


def rows_with(count: int, n: int, b: int, dtype: type) -> np.ndarray:
    """Rows with so many numbers that are not zero."""
    v = np.zeros((n, b), dtype)
    for i in range(n):
        v[i, RNG.permutation(b)[:count]] = RNG.normal(size=count)
    return v


def both_ways(
    op: SparseProduct, v: np.ndarray, w: np.ndarray, monkeypatch, count="2"
) -> tuple[np.ndarray, np.ndarray, list[bool]]:
    """The product in compiled loops, the same without thin rows, and whether thin rows were used."""
    used: list[bool] = []
    monkeypatch.setenv("RIESZ_THREADS", count)
    thin = running._thin_sum
    monkeypatch.setattr(running, "_thin_sum", lambda *args: (found := thin(*args), used.append(found is not None))[0])
    token = running.backend.set("numba")
    try:
        found = op.run(v, w)
        monkeypatch.setattr(running, "_thin_sum", lambda *args: None)
        return found, op.run(v, w), used
    finally:
        running.backend.reset(token)
        monkeypatch.setattr(running, "_thin_sum", thin)


def random_product(pairs: int, n: int, m: int) -> SparseProduct:
    gather = relations.gather(seg(n), seg(pairs), RNG.integers(0, n, pairs))
    return SparseProduct(gather, relations.function(seg(pairs), seg(m), RNG.integers(0, m, pairs)))  # pyright: ignore


@needs_numba
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("count", "b", "thin"),
    [(0, 9, True), (1, 8, True), (1, 9, True), (2, 40, True), (5, 40, True), (6, 40, False), (1, 7, False)],
)
def test_thin_rows_give_the_same_bits(count, b, thin, dtype, monkeypatch):
    op, v = random_product(300, 30, 12), rows_with(count, 30, b, dtype)
    found, wanted, used = both_ways(op, v, RNG.normal(size=300).astype(dtype), monkeypatch)
    assert used == [thin] and found.dtype == dtype
    assert np.array_equal(found, wanted)  # only the sign of a zero may differ


@needs_numba
@pytest.mark.parametrize(("count", "thin"), [("1", True), ("4", True), ("6", False)])
def test_many_threads_take_whole_rows(count, thin, monkeypatch):
    found, wanted, used = both_ways(
        random_product(300, 30, 12), rows_with(1, 30, 20, np.float64), RNG.normal(size=300), monkeypatch, count
    )
    assert used == [thin] and np.array_equal(found, wanted)


@needs_numba
def test_numbers_that_are_not_finite(monkeypatch):
    """nan and inf in a row stay in their column; in the weights they reach every column, so rows count whole."""
    op, v, w = random_product(300, 30, 12), rows_with(1, 30, 16, np.float64), RNG.normal(size=300)
    v[3, 5], v[4, 2] = np.nan, np.inf
    found, wanted, used = both_ways(op, v, w, monkeypatch)
    assert used == [True] and np.array_equal(found, wanted, equal_nan=True) and np.isnan(found).any()
    for wrong in (np.nan, np.inf, -np.inf):
        w[7] = wrong
        found, wanted, used = both_ways(op, v, w, monkeypatch)
        assert used == [False] and np.array_equal(found, wanted, equal_nan=True)


@needs_numba
@pytest.mark.parametrize(("pairs", "n", "m"), [(0, 0, 3), (0, 2, 0), (4, 1, 1), (300, 1, 1)])
def test_few_rows_or_none(pairs, n, m, monkeypatch):
    op = (
        random_product(pairs, n, m)
        if n and m
        else SparseProduct(
            relations.gather(seg(n), seg(0), np.zeros(0, int)),  # pyright: ignore
            relations.function(seg(0), seg(m), np.zeros(0, int)),  # pyright: ignore
        )
    )
    found, wanted, _ = both_ways(op, rows_with(1, n, 8, np.float64), RNG.normal(size=pairs), monkeypatch)
    assert found.shape == (m, 8) and np.array_equal(found, wanted)


# -- functions with an extremum before, or after, a sparse matrix -------------------------------------------


def points(n: int, d: int, each: int, dtype: type) -> scipy.sparse.csr_array:
    values = RNG.normal(size=n * each).astype(dtype)
    return scipy.sparse.csr_array((values, RNG.integers(0, d, n * each), each * np.arange(n + 1)), shape=(n, d))


def nearest(X, norms, axis):
    """k-means; by rows or by columns."""
    if axis:
        return lambda c: np.sum(np.min(norms[:, None] - 2.0 * (X @ c.T) + np.sum(c**2, axis=1), axis=1))
    return lambda c: np.sum(np.min(norms - 2.0 * (c @ X.T) + np.sum(c**2, axis=1)[:, None], axis=0))


def assigned(X, norms):
    """The distance at computed positions."""

    def f(c):
        distances = norms[:, None] - 2.0 * (X @ c.T) + np.sum(c**2, axis=1)
        return np.sum(np.take_along_axis(distances, np.argmin(distances, axis=1)[:, None], 1) ** 2)

    return f


def robust(X, norms):
    """Huber's function of the smallest distance: masks, selections."""

    def f(c):
        m = np.min(norms[:, None] - 2.0 * (X @ c.T) + np.sum(c**2, axis=1), axis=1)
        return np.sum(np.where(m < 3.0, m, 2.0 * np.sqrt(3.0 * np.abs(m)) - 3.0))

    return f


def masked(X, norms):
    def f(c):
        distances = norms[:, None] - 2.0 * (X @ c.T) + np.sum(c**2, axis=1)
        return np.sum(np.where(np.argmin(distances, axis=1)[:, None] == np.arange(c.shape[0]), distances, 0.0))

    return f


FUNCTIONS = {
    "nearest": lambda X, norms: nearest(X, norms, 1),
    "nearest, by columns": lambda X, norms: nearest(X, norms, 0),
    "largest score": lambda X, norms: lambda c: np.sum(np.max(X @ c.T, axis=1) ** 2),
    "assigned": assigned,
    "robust": robust,
    "masked": masked,
    "rectified": lambda X, norms: lambda c: np.sum(np.maximum(X @ c.T - 0.3, 0.0)),
}
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loops", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_interpreter(name, dtype, loops, backend):
    """Centres 0 and 1 are one: all of their points are ties."""
    X = points(700, 60, 5, dtype)
    f = FUNCTIONS[name](X, np.asarray((X * X).sum(axis=1)))
    c = (0.1 * RNG.normal(size=(9, 60))).astype(dtype)
    c[1] = c[0]
    token = running.backend.set(loops)
    try:
        found = rz.compile(rz.grad(f), backend=backend)(c)
    finally:
        running.backend.reset(token)
    wanted = rz.compile(rz.grad(f), backend="steps")(c)
    rtol, atol = (1e-4, 1e-3) if dtype is np.float32 else (1e-10, 1e-9)
    assert found.dtype == dtype and np.allclose(found, wanted, rtol=rtol, atol=atol)
    assert np.array_equal(found[0], found[1]) == (
        name not in ("assigned", "masked")
    )  # equal shares, or the first alone


def test_gradient_and_hessian_diagonal_of_k_means():
    """Against the formula, at a size that takes every shortcut: 2(counts · centres − sums) and 2 counts."""
    X = points(6000, 300, 20, np.float64)
    norms = np.asarray((X * X).sum(axis=1))
    c = RNG.normal(size=(12, 300)) / 17.0
    gradient, diagonal = rz.compile(lambda c: rz.jvp(rz.grad(nearest(X, norms, 1)), (c,), (np.ones_like(c),)))(c)
    labels = np.argmin(norms[:, None] - 2.0 * (X @ c.T) + np.sum(c**2, axis=1), axis=1)
    one = scipy.sparse.csr_array((np.ones(6000), labels, np.arange(6001)), shape=(6000, 12))
    counts = np.bincount(labels, minlength=12)
    assert np.allclose(gradient, 2.0 * (counts[:, None] * c - (one.T @ X).toarray()), rtol=1e-10, atol=1e-10)
    assert np.array_equal(diagonal, np.repeat(2.0 * counts[:, None], 300, axis=1))


# -- extrema along short axes, and who attains them -----------------------------------------------------------


@given(
    st.sampled_from([(0, 3), (1, 1), (7, 2), (5, 16), (5, 17), (2, 3, 4), (3, 0, 2)]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_extrema_along_a_short_axis_are_those_of_numpy(shape, largest, keepdims, seed):
    before, reductions.MANY = reductions.MANY, 0
    try:
        rng = np.random.default_rng(seed)
        x = rng.integers(-2, 3, shape).astype(rng.choice([np.float32, np.float64]))
        x[rng.uniform(size=shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
        f = np.max if largest else np.min
        found = reductions._extremum_array(x, axis=(-1,), keepdims=keepdims, title="max" if largest else "min")
        wanted = f(x, axis=-1, keepdims=keepdims)
        assert found.dtype == x.dtype and found.shape == wanted.shape and np.array_equal(found, wanted, equal_nan=True)
        assert found.base is None or not np.shares_memory(found, x)
    finally:
        reductions.MANY = before


@given(
    st.sampled_from(
        [((4, 3), (-1,)), ((4, 3), (-2,)), ((2, 3, 4), (-2, -1)), ((2, 3, 4), (-1,)), ((0, 2), (-1,)), ((5,), (-1,))]
    ),
    st.integers(0, 2**32 - 1),
)
def test_shares_add_up_to_one(case, seed):
    (shape, axis), rng = case, np.random.default_rng(seed)
    x = rng.integers(0, 3, shape).astype(rng.choice([np.float32, np.float64]))
    peak = x.max(axis=axis, keepdims=True)
    found = shares(x, peak, axis=axis)
    at = x == peak
    assert found.dtype == x.dtype and np.array_equal(found, (at / at.sum(axis=axis, keepdims=True)).astype(x.dtype))


def test_a_row_with_nan_has_no_shares():
    x = np.array([[1.0, np.nan, 0.0], [1.0, 2.0, 0.0]])
    with np.errstate(invalid="ignore"):
        found = shares(x, x.max(axis=1, keepdims=True), axis=(-1,))
    assert found[0].tolist() == [0.0, 0.0, 0.0] and found[1].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(512, 1), (600, 2), (600, 10), (9000, 128), (511, 3), (600, 129), (600, 0)])
def test_sums_of_short_rows_have_the_same_bits(shape, dtype):
    x = RNG.normal(size=shape).astype(dtype)
    assert single(x, (0, 1), (1,), {0: shape[0], 1: shape[1]}).tobytes() == x.sum(axis=0).tobytes()
    assert (
        column_sums(x[::2]).tobytes() == x[::2].sum(axis=0).tobytes()
        and column_sums(x.T).tobytes() == x.T.sum(axis=0).tobytes()
    )
    assert column_sums(np.asfortranarray(x)).tobytes() == np.asfortranarray(x).sum(axis=0).tobytes()
    assert rz.compile(lambda x: np.sum(x, axis=0), backend="numpy")(x).tobytes() == x.sum(axis=0).tobytes()


# -- products with a number that is repeated --------------------------------------------------------------------


def strong_product(k: float, n: int = 6000) -> Program:
    """x · k with strong zeros in x, and k repeated along all of x."""
    p = Program()
    x = p.input((n,))
    many = p.step(contraction(((),), (0,), {0: n}), [p.const(k)])
    p.outputs = [p.step(product((n,), (n,), (0,)), [x, many])]
    return p


@pytest.mark.parametrize(("k", "plain"), [(1.0, True), (-2.5, True), (0.0, False), (np.inf, False), (np.nan, False)])
def test_zeros_need_no_rule_beside_a_finite_number(k, plain):
    small = folded(strong_product(k))
    (op,) = [op for op in small.ops if hasattr(op, "strong")]
    assert (op.strong == ()) == plain
    x = np.where(np.arange(6000) % 2, RNG.normal(size=6000), 0.0)
    with np.errstate(invalid="ignore"):
        (found,) = outputs(small, NUMBERS, [x])
        assert np.array_equal(dense(found), np.where(x == 0, 0.0, x * k), equal_nan=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_times_one_is_a_number(backend):
    """The gradient of Σ where(x > 0, x, 0) is the mask as numbers, an array of its own."""
    x = RNG.normal(size=9000)
    g = rz.compile(rz.grad(lambda x: np.sum(np.where(x > 0.0, x, 0.0))), backend=backend)
    assert g(x).dtype == float and np.array_equal(g(x), (x > 0.0).astype(float))


def test_a_product_with_one_is_not_written_over():
    """y · 1 is y itself in generated code, so 2 · (y · 1) leaves y alone."""
    p = Program()
    x = p.input((9000,))
    y = p.step(Elementwise(rz.exp), [x])
    one = p.step(contraction(((),), (0,), {0: 9000}), [p.const(1.0)])
    same = p.step(product((9000,), (9000,), (0,)), [y, one])
    twice = p.scale(2.0, same)
    p.outputs = [p.step(Combination((1.0, 1.0)), [twice, y]), same]
    code = Arrays(folded(p), [ArrayValue("x", (9000,), np.dtype(float))])
    assert not any(["1.0" in line for line in code.lines])
    names = {**code.names, "x": RNG.normal(size=9000)}
    exec("\n".join(code.lines), names)
    first, second = [names[v.text] for v in code.outputs]
    assert np.allclose(first, 3.0 * np.exp(names["x"])) and np.allclose(second, np.exp(names["x"]))
