"""Maxima, minima, products, ln Σ exp and means along relations: loops of NumPy, JAX's segments and finite differences."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import riesz as rz
from riesz import RelationError, SpaceError, relations
from riesz.relations import Relation
from riesz.relations.index_sets import seg
from riesz.spaces.space import Copower
from riesz.terms.open import fit

HOW = ("max", "min", "prod", "logsumexp", "mean")
RELATIONS: dict[str, Relation] = {
    "function": relations.function(seg(6), seg(4), [0, 2, 0, 3, 3, 3]),
    "segments": relations.segments([0, 3, 3, 4]),
    "long segments": relations.segments([0, 0, 25, 40]),
    "pairs twice": relations.pairs(seg(4), seg(3), [(0, 0), (0, 0), (1, 0), (2, 2), (0, 2), (3, 2)]),
    "full": relations.full(seg(3), seg(2)),
    "full to one": relations.full(seg(3), seg(1)),
    "triangular": relations.triangular(seg(4)),
    "window": relations.window(seg(5), 2),
    "repetition": relations.segments([0, 2, 4]).converse,
    "first axis": relations.function(seg(3), seg(2), [0, 0, 1]) * relations.diagonal(seg(2)),
    "second axis": relations.diagonal(seg(2)) * relations.segments([0, 1, 3]),
    "both axes": relations.pairs(seg(2), seg(2), [(0, 0), (1, 0), (1, 1)]) * relations.triangular(seg(2)),
    "empty": relations.empty(seg(3), seg(2)),
    "nothing": relations.function(seg(0), seg(2), []),
}


def expected(R: Relation, x, how: str):
    """Target by target, each source as often as it counts."""
    times = R.matrix().toarray().astype(int)
    rows = x.reshape(R.source.size, int(np.prod(x.shape[len(R.source.box) :])))
    found = np.empty((R.target.size, rows.shape[1]))
    for y in range(R.target.size):
        v = np.repeat(rows, times[:, y], axis=0)
        match how:
            case "max":
                found[y] = v.max(0, initial=-np.inf)
            case "min":
                found[y] = v.min(0, initial=np.inf)
            case "prod":
                found[y] = v.prod(0)
            case "mean":
                found[y] = v.mean(0) if len(v) else np.nan
            case _:
                with np.errstate(divide="ignore"):
                    found[y] = np.log(np.exp(v).sum(0))
    return found.reshape(*R.target.box, *x.shape[len(R.source.box) :])


def numbers(R: Relation, behind, seed=0):
    x = np.random.default_rng(seed).normal(size=(*R.source.box, *behind))
    if x.size > 1:
        x.flat[1] = 0.0
    return x


def differences(f, x, e=1e-6):
    steps = e * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + d) - f(x - d)) / (2 * e) for d in steps])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", RELATIONS)
def test_values_and_two_derivatives(name: str, how: str):
    R = RELATIONS[name]
    f = rz.red(R, how)
    for behind in ((), (2,)):
        x = numbers(R, behind)
        y = expected(R, x, how)
        np.testing.assert_allclose(f(x), y, rtol=1e-13, atol=1e-14)
        weight = np.random.default_rng(1).normal(size=y.shape)

        def loss(x):
            z = f(x)
            return np.sum(weight * np.where(np.isfinite(z), z, 0.0) ** 2)  # noqa: B023

        G = rz.grad(loss)
        np.testing.assert_allclose(G(x).ravel(), differences(loss, x), atol=1e-6)
        if x.size <= 12:
            H = rz.hessian(loss)(x).to_dense().reshape(x.size, x.size)
            np.testing.assert_allclose(H, differences(G, x).reshape(x.size, x.size), atol=1e-5)
        xs = np.stack([x, 2 * x, x - 1])
        np.testing.assert_allclose(rz.vmap(G)(xs), [G(v) for v in xs], atol=1e-12)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["function", "pairs twice"])
@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_backends(name: str, how: str, backend: str):
    pytest.importorskip(backend)
    R = RELATIONS[name]
    f = rz.red(R, how)
    x = numbers(R, (2,))

    def loss(x):
        z = f(x)
        return np.sum(np.where(np.isfinite(z), z, 0.0) ** 3)

    np.testing.assert_allclose(rz.compile(loss, backend=backend)(x), loss(x), rtol=1e-12)
    np.testing.assert_allclose(rz.compile(rz.grad(loss), backend=backend)(x), rz.grad(loss)(x), atol=1e-12)
    hvp = lambda x: rz.grad(lambda y: np.sum(rz.grad(loss)(y) ** 2))(x)  # noqa: E731
    np.testing.assert_allclose(rz.compile(hvp, backend=backend)(x), hvp(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("how", ["max", "min", "prod", "logsumexp"])
def test_against_segments_of_jax(how: str):
    jax = pytest.importorskip("jax")
    ids, x = np.array([0, 2, 0, 3, 3, 3]), numbers(RELATIONS["function"], ())
    ops = {"max": jax.ops.segment_max, "min": jax.ops.segment_min, "prod": jax.ops.segment_prod}

    def theirs(x):
        if how == "logsumexp":
            return jax.numpy.log(jax.ops.segment_sum(jax.numpy.exp(x), ids, 4))[np.array([0, 2, 3])]
        return ops[how](x, ids, 4)[np.array([0, 2, 3])]

    f = lambda x: rz.red(RELATIONS["function"], how)(x)[np.array([0, 2, 3])]  # noqa: E731
    with jax.enable_x64(True):
        np.testing.assert_allclose(f(x), theirs(x), rtol=1e-12)
        if how != "prod":  # JAX divides by the factors
            np.testing.assert_allclose(rz.jacobian(f)(x).to_dense(), jax.jacobian(theirs)(x), atol=1e-12)


@pytest.mark.parametrize("how", ["max", "min"])
def test_ties_share_equally_pair_by_pair(how: str):
    f = rz.red(RELATIONS["function"], how)
    J = rz.jacobian(f)(np.array([1.0, 5.0, 1.0, 2.0, 2.0, 2.0]))
    assert J.to_dense()[0].tolist() == [0.5, 0, 0.5, 0, 0, 0] and J.to_dense()[3, 3:].tolist() == [1 / 3] * 3
    twice = relations.pairs(seg(2), seg(1), [(0, 0), (0, 0), (1, 0)])
    np.testing.assert_allclose(rz.jacobian(rz.red(twice, how))(np.ones(2)).to_dense(), [[2 / 3, 1 / 3]])
    assert rz.grad(rz.total @ f)(np.array([np.nan, 5.0, 1.0, 2.0, 3.0, 4.0]))[:3].tolist() == [0.0, 1.0, 0.0]


def test_products_with_zeros_to_third_order():
    R = relations.full(seg(4), seg(1))
    f = lambda x: rz.red(R, "prod")(x)[0]  # noqa: E731
    x = np.array([0.0, 2.0, 0.0, 3.0])
    assert rz.grad(f)(x).tolist() == [0.0] * 4
    assert rz.hessian(f)(x).to_dense()[0].tolist() == [0.0, 0.0, 6.0, 0.0]
    third = rz.grad(lambda x: rz.hessian(f)(x)(np.eye(4)[0])[2])(x)
    assert third.tolist() == [0.0, 3.0, 0.0, 2.0]


def test_log_sums_neither_overflow_nor_leave_nan():
    f = rz.red(RELATIONS["function"], "logsumexp")
    x = np.array([1000.0, -1000.0, 999.0, -np.inf, -np.inf, -np.inf])
    np.testing.assert_allclose(f(x), [1000 + np.log1p(np.exp(-1)), -np.inf, -1000.0, -np.inf])
    share = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(rz.jacobian(f)(x).to_dense()[0], [share, 0, 1 - share, 0, 0, 0])
    assert not rz.jacobian(f)(x).to_dense()[3].any()


@pytest.mark.parametrize("how", HOW)
def test_the_pattern_is_that_of_all_points(how: str):
    rng, R = np.random.default_rng(0), relations.function(seg(1000), seg(100), np.arange(1000) % 90)
    J = rz.jacobian(rz.red(R, how))(rng.normal(size=1000))
    assert J.to_sparse().nnz == 1000 and J.to_sparse().shape == (100, 1000)
    v, w = rng.normal(size=1000), rng.normal(size=100)
    np.testing.assert_allclose(J(v) @ w, v @ J.H(w))


@pytest.mark.parametrize("how", HOW)
def test_types_and_sums_of_sets(how: str):
    R = RELATIONS["function"]
    x = np.abs(numbers(R, ())).astype(np.float32)
    assert rz.grad(lambda x: np.sum(rz.red(R, how)(x)[:1]))(x).dtype == np.float32
    if how != "mean":
        assert rz.red(R, how)(x).dtype == np.float32
    side = relations.function(seg(2), seg(2), [0, 0]) + relations.function(seg(3), seg(1), [0, 0, 0])
    a, b = np.array([1.0, 2.0]), np.array([3.0, 1.0, 2.0])
    found = fit(rz.red(side, how), Copower(rz.R, side.source))((a, b))
    np.testing.assert_allclose(np.concatenate(found), expected_flat(side, np.concatenate([a, b]), how))


def expected_flat(R: Relation, x, how: str):
    rows, cols, _ = R.pairs()
    return expected(relations.edges(seg(R.source.size), seg(R.target.size), rows, cols), x, how)


def test_they_print_and_pickle():
    import pickle

    R = RELATIONS["function"]
    f = rz.red(R, "max")
    assert str(f) == "max_{f:6→4}"
    D = rz.derive(f, rz.space_of(np.zeros(6)))
    assert str(D.derivative) == "red_{f:6→4} • Δ(shares(x, max_{f:6→4}(x)) ·)"
    assert f.latex() == r"\mathrm{max}_{f:\mathbf{6}\to\mathbf{4}}"
    assert pickle.loads(pickle.dumps(f))(np.arange(6.0)).tolist() == f(np.arange(6.0)).tolist()
    assert "max_{f:6→4}'(v) = red_{f:6→4} • Δ(shares(v) ·)" in str(rz.explain(f, rz.space_of(np.zeros(6))))
    assert str(fit(f, rz.space_of(np.zeros(6)))) == str(f)
    mean = fit(rz.red(relations.segments([0, 2, 3]), "mean"), rz.space_of(np.zeros(3)))
    assert mean.linear and mean.H(np.array([1.0, 2.0])).tolist() == [0.5, 0.5, 2.0]


def test_refusals():
    with pytest.raises(SpaceError, match="takes one of 'sum', 'mean', 'max'"):
        rz.red(RELATIONS["function"], "median")
    with pytest.raises(RelationError, match=r"np\.maximum\.accumulate"):
        rz.red(relations.triangular(seg(10**6)), "max")(np.zeros(10**6))


# -- NumPy's own ------------------------------------------------------------------------------------------

AT = (np.maximum, np.minimum, np.multiply, np.logaddexp, np.divide, np.add, np.subtract)
POINT = np.random.default_rng(3).normal(size=6)


@pytest.mark.parametrize("ufunc", AT, ids=lambda u: u.__name__)
def test_ufunc_at_repeated_positions(ufunc):
    index = np.array([0, 2, 2, 4, 0, 2])

    def fresh(v):
        y = np.full(5, 0.3)
        ufunc.at(y, index, v * 2.0)
        return y

    def copied(v):
        y = v.copy()
        ufunc.at(y, (np.array([1, 1, 3]),), v[:3] * v[3:])
        return y

    def rows(v):
        A = np.ones((3, 4))
        A[0, 0] = v[0]
        ufunc.at(A, (np.array([0, 0, 2]), slice(None)), np.outer(v[:3], v[2:6]))
        return A.ravel()

    for f in (fresh, copied, rows):
        np.testing.assert_allclose(rz.function(f)(POINT), f(POINT), rtol=1e-13)
        np.testing.assert_allclose(rz.jacobian(f)(POINT).to_dense(), differences(f, POINT).T, atol=1e-6)


@pytest.mark.parametrize("ufunc", (np.maximum, np.minimum, np.multiply, np.logaddexp, np.add), ids=lambda u: u.__name__)
def test_reduceat(ufunc):
    index = [0, 2, 1, 4, 4]
    for axis, made in ((0, lambda v: v), (1, lambda v: np.outer(v, v)), (-2, lambda v: np.outer(v, v))):
        f = lambda v: ufunc.reduceat(made(v), index, axis=axis).ravel()  # noqa: B023, E731
        np.testing.assert_allclose(rz.function(f)(POINT), f(POINT), rtol=1e-13)
        np.testing.assert_allclose(rz.jacobian(f)(POINT).to_dense(), differences(f, POINT).T, atol=1e-6)
        g = lambda v: ufunc.reduceat(np.floor(made(v)).astype(int), index, axis=axis) * 1.0  # noqa: B023, E731
        if ufunc is not np.logaddexp:
            np.testing.assert_array_equal(rz.function(g)(POINT), g(POINT))
    with pytest.raises(IndexError, match="out-of-bounds"):
        rz.function(lambda v: ufunc.reduceat(v, [0, 6]))(POINT)


def test_reduceat_as_the_first_call_of_a_process():
    code = "import numpy as np, riesz as rz; print(rz.grad(lambda v: np.add.reduceat(v, [0, 1])[1])(np.ones(3)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[0. 1. 1.]"


def test_what_is_there_and_what_comes_share_a_tie():
    def f(v):
        y = v[:1].copy()
        np.maximum.at(y, [0, 0], v[1:])
        return y[0]

    np.testing.assert_allclose(rz.grad(f)(np.ones(3)), [1 / 3] * 3)

    def g(v):
        y = v.copy()
        np.fmax.at(y, [0, 0], 2.0 * v[:2])
        return y[0]

    np.testing.assert_allclose(rz.grad(g)(np.ones(3)), [1.0, 1.0, 0.0])
