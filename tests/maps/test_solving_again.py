"""Solving at many points: what depends on the structure alone is done once, the numbers are those of each point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function

import riesz as rz
from riesz.errors import SolveError
from riesz.maps.solvers import choice as solving
from riesz.maps.solvers.composite import LowRankPlus
from riesz.maps.solvers.factorised import Banded, Dense, DiagonalSolver

rng = np.random.default_rng(5)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def low_rank(n: int, k: int, kind: str, dtype: Any = float) -> Any:
    """A function whose derivative is a matrix that is easy to solve with plus one of rank k."""
    U, V, W = (
        rng.normal(size=(n, k)).astype(dtype),
        (rng.normal(size=(k, n)) / n).astype(dtype),
        rng.normal(size=(k, k)).astype(dtype),
    )
    through = {
        "identity": lambda x: x,
        "diagonal": lambda x: np.sinh(x) + 2 * x,
        "constant": lambda x: 3 * x + np.concatenate([x[1:], 0 * x[:1]]),
        "banded": lambda x: 4 * x - np.concatenate([x[1:], 0 * x[:1]]) * np.tanh(x),
        "chain": lambda x: x + U @ np.tanh(W @ np.tanh(V @ x)),
        "mean": lambda x: np.exp(x) - 0.3 * np.mean(x),
    }[kind]
    return through if kind in ("chain", "mean") else lambda x: through(x) + U @ np.tanh(V @ x)


@pytest.mark.parametrize("kind", ["identity", "diagonal", "constant", "banded", "chain", "mean"])
@pytest.mark.parametrize(("n", "k"), [(5, 1), (40, 3), (600, 10)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_points_one_after_the_other(kind, n, k, dtype):
    jacobian = rz.jacobian(low_rank(n, k, kind, dtype))
    for _ in range(3):
        x, b = rng.normal(size=(2, n)).astype(dtype)
        L = jacobian(x)
        A, several = L.matmat(np.eye(n, dtype=dtype)), rng.normal(size=(n, 3)).astype(dtype)
        close = 1e-11 if dtype == np.float64 else 2e-3
        assert "Woodbury" in L.solver().name and L.solve(b).dtype == dtype
        assert np.allclose(L.solve(b), np.linalg.solve(A, b), rtol=close, atol=close)
        assert np.allclose(L.solve(several), np.linalg.solve(A, several), rtol=close, atol=close)
        assert np.allclose(L.T.solve(b), np.linalg.solve(A.T, b), rtol=close, atol=close)
        assert np.allclose(L.solver().solve(b, transposed=True), np.linalg.solve(A.T, b), rtol=close, atol=close)


@pytest.mark.parametrize("kind", ["identity", "diagonal", "banded", "chain"])
def test_newton(kind):
    f = low_rank(30, 2, kind)
    x, wanted = np.zeros(30), rng.normal(size=30)
    b, jacobian = f(wanted), rz.jacobian(f)
    for _ in range(40):
        x = x - jacobian(x).solve(f(x) - b)
    assert np.allclose(f(x), b)


def test_the_choice_is_made_once(monkeypatch):
    made: list[Any] = []
    choose = solving._by_structure
    monkeypatch.setattr(solving, "_by_structure", lambda *given: made.append(given) or choose(*given))
    jacobian = rz.jacobian(lambda x: np.exp(x) + np.sum(x))
    for _ in range(3):
        jacobian(rng.normal(size=20)).solve(np.ones(20))
    assert len(made) == 2  # the map, and the diagonal without the sum


def test_constant_parts_are_factorised_once():
    U, V = rng.normal(size=(40, 2)), rng.normal(size=(2, 40)) / 40
    jacobian = rz.jacobian(lambda x: 3 * x + np.concatenate([x[1:], x[:1] * 0]) + U @ np.tanh(V @ x))
    one, two = [jacobian(rng.normal(size=40)).solver() for _ in range(2)]
    assert isinstance(one, LowRankPlus) and isinstance(one.base, Banded) and one.base is two.base and one is not two
    single = rz.jacobian(lambda x: 3 * x + np.concatenate([x[1:], x[:1] * 0]))
    kinds = [single(np.ones(9, t)).solver().dtype for t in (np.float32, np.float64, np.float32)]
    assert kinds == [np.float32, np.float64, np.float32]


def test_a_base_that_is_singular_at_one_point_only():
    jacobian = rz.jacobian(lambda x: x**2 + np.sum(x))
    for x, name in ((np.ones(8), "Woodbury"), (np.arange(8.0), "dense"), (np.arange(1.0, 9.0), "Woodbury")):
        L = jacobian(x)
        assert name in L.solver().name
        assert np.allclose(L(L.solve(np.ones(8))), 1.0)
    with pytest.raises(SolveError, match="singular"):
        jacobian(np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).solve(np.ones(8))


@given(st.integers(0, 10**6))
def test_matrices_of_random_functions_at_two_points(seed):
    f, args = random_function(seed, 1, single=True)
    jacobian = rz.jacobian(f)
    for x in (args[0], args[0] * 0.5 + 0.1):
        L = jacobian(x)
        wanted = L.matmat(np.eye(L.shape[1]))
        found = L.to_dense()
        assert np.allclose(
            found, wanted, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max(initial=0.0)), equal_nan=True
        )
        assert found.flags.writeable and found.shape == L.shape
        found += 1.0  # his own
        assert np.allclose(
            L.to_dense(), wanted, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max(initial=0.0)), equal_nan=True
        )


def test_blocks_belong_to_the_caller():
    W = rng.normal(size=(5, 2, 2))
    L = rz.jacobian(lambda X: np.einsum("nij,nj->ni", W, X))(np.ones((5, 2)))
    found = L.blocks().values
    assert np.array_equal(found, W)
    found += 1.0
    assert np.array_equal(L.blocks().values, W) and np.allclose(L(np.ones((5, 2))), W.sum(axis=2))


# -- Woodbury's formula ---------------------------------------------------------------------------------------


def backward(S: Any, x: Any, b: Any) -> float:
    """The smallest relative change of the numbers of A, U, V and b, one by one, that makes x exact (in longer floats)."""
    d, U, V, x, b = [np.asarray(a, np.longdouble) for a in (S.base.d, S.U, S.V, x, b)]
    sizes = np.abs(d * x) + np.abs(U) @ (np.abs(V).T @ np.abs(x)) + np.abs(b)
    return float((np.abs(b - d * x - U @ (V.T @ x)) / sizes).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("small", range(-9, 4, 3))
def test_one_refinement_is_enough_where_one_is_made(small, dtype):
    """Bases smaller and larger than what is added to them, unknowns of different units."""
    counts: list[int] = []
    for seed in range(150):
        r = np.random.default_rng(seed)
        n, k = int(r.integers(4, 60)), int(r.integers(1, 4))
        d = (10.0 ** (small + r.uniform(-1, 1, size=n) * (seed % 3)) * r.normal(size=n)).astype(dtype)
        U, V, b = [r.normal(size=s).astype(dtype) for s in ((n, k), (n, k), (n,))]
        try:
            S = LowRankPlus(DiagonalSolver(d), U, V)
        except SolveError:
            continue
        counts.append(S.refinements)
        found = {}
        for S.refinements in (1, 2):
            found[S.refinements] = backward(S, S.solve(b), b)
        wanted = 2.0 * found[2] + 2.0 * float(np.finfo(dtype).eps)
        assert found[min(counts[-1], 2)] <= wanted  # where more are made, as long as they help
    assert dtype == np.float32 or small != -9 or max(counts) > 1
    assert small < 0 or 1 in counts


def test_norms_are_only_a_bound_for_what_cancels():
    n = 40
    U, V = np.zeros((n, 2)), np.zeros((n, 2))
    U[:20], V[20:] = 1e10 * rng.normal(size=(20, 2)), 1e10 * rng.normal(size=(20, 2))  # VᵀU = 0: nothing cancels
    b = rng.normal(size=n)
    S = LowRankPlus(DiagonalSolver(np.ones(n)), U, V)
    wanted = b - U @ (V.T @ b)
    assert np.allclose(S.solve(b), wanted, rtol=1e-12) and S.rcond > 0.1
    v = rng.normal(size=(n, 1))
    v *= 1e8 / np.linalg.norm(v)
    with pytest.raises(SolveError, match="singular"):
        LowRankPlus(DiagonalSolver(np.ones(n)), -v / 1e16, v)  # 1 − 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named(bad):
    for which in ("U", "V"):
        given = {"U": rng.normal(size=(20, 2)), "V": rng.normal(size=(20, 2))}
        given[which][3, 1] = bad
        with pytest.raises(SolveError, match=f"^{which} has the entry .* at \\[3, 1\\]"):
            LowRankPlus(DiagonalSolver(np.ones(20)), **given)
    with pytest.raises(SolveError, match="too large"):
        LowRankPlus(DiagonalSolver(np.full(20, 1e-300)), np.full((20, 1), 1e200), np.ones((20, 1)))


def test_solutions_with_the_identity_are_new_arrays():
    S, b = DiagonalSolver(np.ones(4)), np.arange(4.0)
    for b in (np.arange(4.0), np.arange(8.0).reshape(4, 2)):
        for found in (S.solve(b), S.apply(b), S.solve(b, transposed=True)):
            assert np.array_equal(found, b) and not np.shares_memory(found, b)


def test_symmetric_matrices_of_any_scale():
    for scale in (1e-310, 1e-150, 1.0, 1e150, 1e300):
        A = scale * (np.diag([4.0, 2.0, 1.0]) + 0.5)
        assert np.allclose(Dense(A).solve(A @ np.ones(3)), 1.0, rtol=1e-4 if scale < 1e-300 else 1e-12)
    assert np.allclose(Dense(np.diag([1.0, 1e-30, 1e30])).solve(np.array([1.0, 1e-30, 1e30])), 1.0)
