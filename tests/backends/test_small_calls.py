"""Small maps and functions as generated code: the numbers of the interpreter, the same bits at every call, one code for all points."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function

import riesz as rz
from riesz.backends import small_maps as applied
from riesz.ops.number_domains import NUMBERS, OTHER
from riesz.programs.program import outputs
from riesz.relations.index_sets import unit
from riesz.runtime import tuning
from riesz.terms.sums import Inject, Project

RNG = np.random.default_rng(11)


def interpreted(L, v):
    with np.errstate(all="ignore"):
        return L.codomain.wrap(outputs(L.program, NUMBERS, L.domain.open(v)))


@given(st.integers(0, 10**6), st.integers(1, 2))
def test_maps_of_random_functions(seed, inputs):
    f, args = random_function(seed, inputs, single=True)
    L = rz.linearize(f, *args)[1]
    for M in (L, L.T):
        v = M.domain.random(np.random.default_rng(seed))
        wanted, found = [
            np.concatenate([np.ravel(x) for x in V.open(y)])
            for V, y in ((M.codomain, interpreted(M, v)), (M.codomain, M(v)))
        ]
        assert np.allclose(
            wanted, found, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max(initial=0.0)), equal_nan=True
        )


def test_maps_between_direct_sums_are_generated_too():
    def f(p, c):
        return {"a": np.outer(p["u"], p["v"]) @ p["v"], "b": [c * p["u"], np.sum(p["v"]) * c, p["u"]]}

    at = {"u": RNG.normal(size=3), "v": RNG.normal(size=4)}, 1.5
    L = rz.linearize(f, *at)[1]
    for M in (L, L.T, L.H):
        v = M.domain.random(RNG)
        leaves = tuple(M.domain.open(v))
        assert M._of_leaves(leaves) is not OTHER
        before = [np.copy(x) for x in leaves]
        found, again = M(v), M(v)
        for x, y, z in zip(
            M.codomain.open(found), M.codomain.open(again), M.codomain.open(interpreted(M, v)), strict=True
        ):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_allclose(x, z, rtol=1e-12)
        for x in M.codomain.open(found):
            if np.ndim(x):
                x += 1.0  # nobody else's
        for x, y in zip(leaves, before, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(M.codomain.open(M(v))[0], M.codomain.open(again)[0])


CASES = {
    "chain": lambda B: (B @ B.T) @ np.arange(1.0, 4.0),
    "outer": lambda B: np.outer(B[0], B[1]) * np.sin(B),
    "quotient": lambda B: B / np.sum(B**2),
    "where": lambda B: np.where(B > 0, np.sqrt(np.abs(B)), 0.0),
    "gather": lambda B: B[[2, 0, 0]] * B[:, ::-1],
    "number": lambda B: np.sum(np.exp(B)),
    "zero": lambda B: np.zeros(2) * B[0, 0],
    "identity": lambda B: B,
    "transposed": lambda B: B.T,
}


@pytest.mark.parametrize("name", CASES)
def test_points_share_code_and_results_belong_to_the_caller(name):
    jacobian = rz.jacobian(CASES[name])
    points = RNG.normal(size=(4, 3, 3))
    jacobian(points[0])(points[1])
    kinds = len(applied._known)
    for p in points:
        L = jacobian(p)
        for M in (L, L.T):
            v = M.domain.random(RNG)
            assert M._small((v,)) is not OTHER
            wanted, found = interpreted(M, v), M(v)
            assert np.allclose(wanted, found, rtol=1e-12, atol=1e-12) and np.array_equal(found, M(v))
            if isinstance(found, np.ndarray):
                found += 1.0
                assert np.allclose(M(v), wanted) and not np.shares_memory(found, v)
    assert len(applied._known) <= kinds + 1  # the transpose came later


def test_other_vectors_take_the_ordinary_way():
    L = rz.jacobian(lambda x: np.sin(x) * 2.0)(np.zeros(3))
    assert L(np.ones(3, np.float32)).tolist() == [2.0] * 3
    with pytest.raises(rz.errors.VectorError):
        L(np.ones(4))
    assert L._small((np.ones(3), np.ones(3))) is OTHER
    assert rz.grad(lambda v: np.sum(L(v) ** 2))(np.ones(3)).tolist() == [8.0] * 3


def test_branches_not_taken_and_warnings():
    L = rz.jacobian(lambda x: np.where(x > 0, np.log(x), x))(np.array([0.0, 1.0, -1.0]))
    with np.errstate(all="raise"):
        assert L(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_calls_of_functions():
    scale = [2.0]

    @rz.function
    def f(x):
        return scale[0] * np.sin(x) @ x

    x = RNG.normal(size=5)
    first = f(x)
    assert all([f(x) == first for _ in range(5)]) and np.isclose(first, 2.0 * np.sin(x) @ x)
    scale[0] = 3.0
    assert np.isclose(f(x), 3.0 * np.sin(x) @ x)
    assert (
        np.isclose(f(x[:3]), 3.0 * np.sin(x[:3]) @ x[:3])
        and f(np.float32(1.0) * x.astype(np.float32)).dtype == np.float32
    )
    assert np.isclose(rz.grad(lambda a: f(a * x))(1.0), 3.0 * np.sum(np.cos(x) * x * x + np.sin(x) * x))


def test_long_functions_are_interpreted():
    def f(x):
        for _ in range(tuning.SMALL_PROGRAM_SLOTS):
            x = np.sin(x)
        return x

    g = rz.function(f)
    assert g(0.5) == g(0.5) and g.quick((0.5,)) is OTHER


@pytest.mark.parametrize("base", [rz.R, rz.R ** rz.seg(3), rz.R ** (rz.seg(2) * rz.seg(3)), rz.R * rz.R])
def test_a_set_of_one_point_has_no_axis(base):
    V = base**unit
    for t in (Inject(V, 0), Project(V, 0), rz.id.at(V) @ Inject(V, 0), Inject(V, 0) @ Project(V, 0)):
        L, v, w = rz.LinearMap.of(t), t.domain.random(1), t.codomain.random(2)
        np.testing.assert_array_equal(t.codomain.flatten(L(v)), t.domain.flatten(v))
        np.testing.assert_array_equal(t.domain.flatten(L.H(w)), t.codomain.flatten(w))


TIMES = np.linspace(0.0, 2.0, 50)
MATRICES = [
    (lambda p: p[0] * np.exp(-p[1] * TIMES) + np.sin(p[2] * TIMES), 3),
    (lambda x: np.exp(x[1:] * x[:-1]) + np.tanh(x[1:]), 30),
    (lambda x: np.sin(x[1:] * x[:-1]) * np.log(1.5 + x[1:] ** 2), 9_000),
]


@pytest.mark.parametrize(("f", "n"), MATRICES)
def test_matrices_have_the_same_bits_at_every_call(f, n):
    """From the first point on, of one function or of one written anew at each call."""
    x = 0.5 + 0.4 * np.sin(np.arange(float(n)))
    for made in (lambda: rz.jacobian(lambda x: f(x)), lambda: rz.hessian(lambda x: np.sum(f(x) ** 2))):
        kept = made()
        for take in (lambda L: L.to_sparse().data, *([lambda L: L.to_dense()] if n < 100 else [])):
            assert len({take(kept(x)).tobytes() for _ in range(5)}) == 1
            assert len({take(made()(x)).tobytes() for _ in range(5)}) == 1


def test_jacobians_written_anew_see_what_they_capture():
    """Numbers that change, arrays that are written to, other arrays."""
    x, w, k = np.array([1.2, 0.7, -0.3]), np.array([1.0, 2.0, 3.0]), 1.0
    for _ in range(4):
        w[1] += 1.0
        k *= 2.0
        v = w * k
        L = rz.jacobian(lambda y, k=k, v=v: k * w * y**2 + v * y)(x)
        np.testing.assert_allclose(L.to_dense(), np.diag(2.0 * k * w * x + v), rtol=1e-15)
        H = rz.hessian(lambda y, k=k: np.sum(w * y**3) * k)(x)
        np.testing.assert_allclose(H.to_dense(), np.diag(6.0 * k * w * x), rtol=1e-15)


@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_arrays_of_pickles_run_through_the_code(backend, monkeypatch):
    """They have a dtype object of their own."""
    x = np.array([0.5, -1.0, 2.0])
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype is not x.dtype
    g = rz.compile(lambda x: np.tanh(x) * x, x, backend=backend)
    wanted = g(x)
    monkeypatch.setattr(type(g), "otherwise", lambda *args: pytest.fail("it was not run"))
    np.testing.assert_array_equal(g(again), wanted)
