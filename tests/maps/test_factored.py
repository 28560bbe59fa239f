"""Factored gradients against dense ones, and norms of single examples against gradients of single examples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples

import riesz as rz
from riesz.spaces.contraction import metered
from riesz.tracing.argument_trees import flatten


def leaves(tree: Any) -> list[Any]:
    return flatten(tree)[0]


def close(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance * (1.0 + np.abs(b).max(initial=0.0)))


def cross_entropy(logits: Any, y: Any) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return -np.sum((shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True)))[np.arange(len(y)), y])


# -- models: a sum over examples, of parameters and data --------------------------------------------------------

RNG = np.random.default_rng(5)
D, H, C, V, T, B = 6, 5, 4, 30, 3, 8
X, Y, WORDS, PAIRS = (
    RNG.normal(size=(B, D)),
    RNG.integers(0, C, B),
    RNG.integers(0, V, (B, T)),
    RNG.integers(0, V, (2, B)),
)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


def mlp(p, x, y):
    h = np.maximum(x @ p["W"] + p["b"], 0.0)
    return cross_entropy(np.tanh(h @ p["V"] + p["c"]) @ p["O"], y)


def scaled(p, x, y):
    h = x @ p["W"]
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-3) * p["g"] + p["b"]
    return cross_entropy(np.tanh(h) @ p["O"], y)


def used_twice(p, x, y):
    return cross_entropy(np.tanh(np.tanh(x @ p["W"]) @ p["W"] + p["b"])[:, :C] + x[:, :C] @ p["W"][:C, 1 : 1 + C], y)


def recurrent(p, x, y):
    h = np.zeros((len(x), H), x.dtype)
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ p["W"] + h @ p["V"] + p["b"])
    return cross_entropy(h @ p["O"], y)


def embedded(p, words, y):
    return cross_entropy(np.tanh(p["E"][words].mean(axis=1) @ p["W"]) @ p["O"], y)


def tied(p, words, y):
    return cross_entropy(np.tanh(p["E"][words].mean(axis=1) @ p["W"]) @ p["E"].T, y)


def tokens(p, words, y):
    return cross_entropy(np.tanh(p["E"][words] @ p["W"] + p["b"]).mean(axis=1) @ p["O"], y)


def attention(p, x, y):
    q, k, v = [np.einsum("btd,dhk->bthk", x, p[n]) for n in "QKV"]
    a = np.exp(np.einsum("bthk,bshk->bhts", q, k))
    a = a / a.sum(-1, keepdims=True)
    return cross_entropy(np.einsum("bhts,bshk,hkd->btd", a, v, p["O"]).mean(1)[:, :C], y)


def factors(p, u, v):
    return np.sum((np.sum(p["U"][u] * p["V"][v], axis=1) + p["b"][v]) ** 2)


def one_table(p, u, v):
    return np.sum(np.tanh(np.sum(p[u] * p[v], axis=1)))


def logistic(w, x, y):
    return np.sum(np.logaddexp(0.0, (1.0 - 2.0 * (y > 1)) * (x @ w)))


def flat(w, x, y):
    return cross_entropy(np.tanh(x @ w[: D * C].reshape(D, C) + w[D * C :]), y)


E, O = normal(V, D), normal(H, C)  # noqa: E741
MODELS = {
    "mlp": (mlp, {"W": normal(D, H), "b": normal(H), "V": normal(H, H), "c": normal(H), "O": O}, X, Y),
    "scaled": (scaled, {"W": normal(D, H), "g": normal(H), "b": normal(H), "O": O}, X, Y),
    "used twice": (used_twice, {"W": normal(D, D), "b": normal(D)}, X, Y),
    "recurrent": (recurrent, {"W": normal(D, H), "V": normal(H, H), "b": normal(H), "O": O}, normal(B, T, D), Y),
    "embedded": (embedded, {"E": E, "W": normal(D, H), "O": O}, WORDS, Y),
    "tied": (tied, {"E": E, "W": normal(D, D)}, WORDS, PAIRS[0]),
    "tokens": (tokens, {"E": E, "W": normal(D, H), "b": normal(H), "O": O}, WORDS, Y),
    "attention": (attention, {n: normal(D, 2, 3) for n in "QKV"} | {"O": normal(2, 3, D)}, normal(B, T, D), Y),
    "factors": (factors, {"U": E, "V": normal(V, D), "b": normal(V)}, *PAIRS),
    "one table": (one_table, E, *PAIRS),
    "logistic": (logistic, normal(D), X, Y),
    "flat": (flat, normal(D * C + C), X, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_dense_gradient(name):
    f, p, *data = MODELS[name]
    value, G = rz.value_and_grad(f, factored=True)(p, *data)
    assert close(value, f(p, *data))
    for A, g in zip(leaves(G), leaves(rz.grad(f)(p, *data)), strict=True):
        assert isinstance(A, rz.Factored) and (A.shape, A.dtype, A.ndim, A.size) == (g.shape, g.dtype, g.ndim, g.size)
        assert close(A, g)


@pytest.mark.parametrize("name", MODELS)
def test_norms_of_examples_are_those_of_their_own_gradients(name):
    f, p, *data = MODELS[name]
    G = leaves(rz.grad(f, factored=True)(p, *data))
    each = [leaves(rz.grad(f)(p, *[d[k : k + 1] for d in data])) for k in range(B)]
    for i, A in enumerate(G):
        assert close(A.example_norms(B), [np.linalg.norm(g[i]) for g in each])
    weights = np.linspace(-1.0, 1.0, B)
    for i, A in enumerate(G):
        assert close(A.reweighted(weights), sum([w * g[i] for w, g in zip(weights, each, strict=True)]))


@pytest.mark.parametrize("name", MODELS)
def test_one_example_has_the_norm_of_the_gradient(name):
    f, p, *data = MODELS[name]
    for A in leaves(rz.grad(f, factored=True)(p, *[d[:1] for d in data])):
        assert close(A.example_norms(1), [A.norm()])
        assert close(A.reweighted([3.0]), 3.0 * np.asarray(A))


@pytest.mark.parametrize("name", ["mlp", "recurrent", "tied", "factors"])
def test_float32_stays(name):
    f, p, *data = MODELS[name]
    p, *data = [
        {k: v.astype(np.float32) for k, v in x.items()}
        if isinstance(x, dict)
        else x.astype(np.float32)
        if x.dtype == float
        else x
        for x in (p, *data)
    ]
    for A, g in zip(leaves(rz.grad(f, factored=True)(p, *data)), leaves(rz.grad(f)(p, *data)), strict=True):
        W = np.ones(g.shape, np.float32)
        assert (
            A.dtype == np.asarray(A).dtype == (0.5 * A).dtype == (W - A).dtype == A.example_norms(B).dtype == np.float32
        )
        assert close(A, g, 1e-4) and close(A.add_to(W, -0.5), 1.0 - 0.5 * g, 1e-4)


# -- random programs ----------------------------------------------------------------------------------------------


@examples(1.5)
@given(st.integers(0, 10**6), st.integers(1, 2))
@example(975, 2)  # sums of labels that no factor has
@example(1026, 1)
@example(1172, 1)
@example(1706, 1)
def test_random_programs(seed, inputs):
    f, args = random_function(seed, inputs, single=True)
    every = tuple(range(inputs))

    def value(*xs: Any) -> Any:
        return np.sum(np.sin(f(*xs)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense = rz.grad(value, every)(*args)
        found = rz.grad(value, every, factored=True)(*args)
    rng = np.random.default_rng(seed)
    for A, g in zip(found, dense, strict=True):
        if not np.isfinite(g).all() or np.abs(g).max(initial=0.0) > 1e6:
            continue
        if not isinstance(A, rz.Factored):
            assert np.ndim(g) == 0 and close(A, g)
            continue
        assert close(A, g)
        assert abs(A.norm() - np.linalg.norm(g)) <= 1e-7 * (1.0 + np.linalg.norm(g))
        for order in "CF":
            W = np.array(rng.normal(size=g.shape), order=order)
            expected = W - 0.5 * g
            assert close(W - 0.5 * A, expected) and A.add_to(W, -0.5) is W and close(W, expected)
        if g.ndim == 2:
            x, y = rng.normal(size=(g.shape[1], 2)), rng.normal(size=(3, g.shape[0]))
            assert (
                close(A @ x, g @ x)
                and close(A @ x[:, 0], g @ x[:, 0])
                and close(y @ A, y @ g)
                and close(y[0] @ A, y[0] @ g)
            )
        if A.is_row_sparse:
            whole = np.zeros(g.shape)
            whole[A.rows] = A.values
            assert close(whole, g) and np.all(np.diff(A.rows) > 0)
        try:
            norms = A.example_norms()
        except rz.VectorError:
            continue
        assert close(A.reweighted(np.ones(len(norms))), g)
        assert close(norms, [np.linalg.norm(A.reweighted(row).to_dense()) for row in np.eye(len(norms))], 1e-6)


# -- matrices -----------------------------------------------------------------------------------------------------


def test_a_matrix_has_an_outer_product_for_each_example():
    f, p, *data = MODELS["mlp"]
    G = rz.grad(f, factored=True)(p, *data)
    ((U, W),) = G["W"].factors
    assert U.shape == (B, D) and W.shape == (B, H) and np.array_equal(U, X) and close(U.T @ W, G["W"])
    assert repr(G["W"]) == f"Factored({D} × {H}: {B} outer products)" and G["W"].rank == H
    assert len(G["W"].terms) == 1 and len(G["W"].terms[0].factors) == 2
    assert "at [i, j]" in repr(G["W"].terms[0])


def test_the_factors_of_weights_used_twice_add_up():
    f, p, *data = MODELS["recurrent"]
    G = rz.grad(f, factored=True)(p, *data)["W"]
    assert len(G.factors) == T and close(sum([U.T @ W for U, W in G.factors]), G)


def test_tensors_have_factors_too():
    f, p, *data = MODELS["attention"]
    ((U, W),) = rz.grad(f, factored=True)(p, *data)["Q"].factors
    assert U.shape == (B * T, D) and W.shape == (B * T, 2, 3)


def test_norms_without_the_matrix(monkeypatch):
    x, w = RNG.normal(size=(4, 50)), RNG.normal(size=(50, 60))
    G = rz.grad(lambda w: np.sum(np.sin(x @ w)), factored=True)(w)
    g = np.asarray(G)
    monkeypatch.setattr(rz.Factored, "to_dense", None)
    assert close(G.norm(), np.linalg.norm(g)) and close(G @ w.T, g @ w.T)
    assert G.rank == 4 and np.linalg.matrix_rank(g) == 4


def test_norms_where_terms_cancel():
    """The sum of squares loses all digits here; the norm does not."""
    x, w = RNG.normal(size=(2, 50)), RNG.normal(size=(50, 60))
    x[1] = -x[0] * (1.0 + 1e-12)
    G = rz.grad(lambda w: np.sum(x @ w), factored=True)(w)
    assert close(G.norm() * 1e12, np.linalg.norm(np.asarray(G)) * 1e12, 1e-6)


def test_examples_cost_what_a_backward_pass_costs():
    """Four matrix products forwards, three backwards, and nothing of their size for the norms of all examples."""
    n, b = 64, 16
    p = [(RNG.normal(size=(n, n)), RNG.normal(size=n)) for _ in range(4)]
    x = RNG.normal(size=(b, n))

    def loss(p, x):
        for W, c in p:
            x = np.tanh(x @ W + c)
        return np.sum(x**2)

    g = rz.grad(loss, factored=True)
    g(p, x)
    with metered() as meter:
        total = sum([G.example_norms() ** 2 for G in leaves(g(p, x))])
    assert meter.multiplications < 8 * b * n * n
    single = leaves(rz.grad(loss)(p, x[3:4]))
    assert close(total[3], sum([np.sum(s**2) for s in single]))


# -- rows ---------------------------------------------------------------------------------------------------------


@examples(0.5)
@given(st.lists(st.integers(-40, 39), min_size=1, max_size=30), st.booleans(), st.integers(0, 100))
def test_gathers_are_row_sparse(positions, closed, seed):
    index, table = np.array(positions), np.random.default_rng(seed).normal(size=(40, 3))
    if closed:
        G = rz.grad(lambda E: np.sum(np.sin(E[index])), factored=True)(table)
    else:
        G = rz.grad(lambda E, i: np.sum(np.sin(E[i])), factored=True)(table, index)
    g = rz.grad(lambda E: np.sum(np.sin(E[index])))(table)
    assert (
        G.is_row_sparse
        and np.array_equal(G.rows, np.unique(index % 40))
        and np.array_equal(G.values, g[G.rows])
        and close(G, g)
    )
    W = np.ones((40, 3))
    W -= 0.25 * G
    assert close(W, 1.0 - 0.25 * g) and np.array_equal(np.delete(W, G.rows, 0), np.ones((40 - len(G.rows), 3)))
    count = "1 row" if len(G.rows) == 1 else f"{len(G.rows)} rows"
    assert repr(G) == f"Factored(40 × 3: row-sparse, {count})"


def test_rows_columns_slices_and_places():
    x, i, j = RNG.normal(size=(7, 9)), np.array([1, 1, 5]), np.array([8, 8, 0])
    for f, sparse in [
        (lambda x: np.sum(np.sin(x[2])), True),
        (lambda x: np.sum(np.sin(x[1:5:2])), True),
        (lambda x: np.sum(np.sin(x[::-1][:3])), True),
        (lambda x: np.sum(np.sin(x[:, j])), False),
        (lambda x: np.sum(np.sin(x[i, j])), True),
        (lambda x: np.sum(np.sin(x[2:, 3]) * np.cos(x[:5, 1])), False),
        (lambda x: np.sum(np.sin(np.diag(x[:, :7]))), False),
        (lambda x: np.sum(np.sin(x.T[j])), False),
        (lambda x: np.sum(np.sin(x[i]) @ x[:3].T), True),
    ]:
        G, g = rz.grad(f, factored=True)(x), rz.grad(f)(x)
        assert close(G, g) and close(G.norm(), np.linalg.norm(g)) and G.is_row_sparse == sparse
        assert close(G @ x.T, g @ x.T) and close(x.T @ G, x.T @ g)


# -- arithmetic ---------------------------------------------------------------------------------------------------


def test_arithmetic_keeps_factors():
    f, p, *data = MODELS["mlp"]
    G = rz.grad(f, factored=True)(p, *data)["W"]
    g = np.asarray(G)
    kept = {
        "2 * G": (2 * G, 2 * g),
        "G * np.float64": (G * np.float64(0.5), 0.5 * g),
        "G / 4": (G / 4, g / 4),
        "-G": (-G, -g),
        "G + G": (G + G, 2 * g),
        "G - G / 2": (G - G / 2, g / 2),
        "sum": (sum([G, G, G]), 3 * g),
    }
    for found, expected in kept.values():
        assert isinstance(found, rz.Factored) and close(found, expected)
    W = RNG.normal(size=g.shape)
    for found, expected in [
        (W - G, W - g),
        (W + G, W + g),
        (G - W, g - W),
        (G + W, g + W),
        (G * G, g * g),
        (np.sqrt(abs(G)), np.sqrt(abs(g))),
        (1 - G, 1 - g),
    ]:
        assert isinstance(found, np.ndarray) and close(found, expected)
    K = G
    K += G
    K -= 0.5 * G
    assert isinstance(K, rz.Factored) and close(K, 1.5 * g)
    K += W
    assert isinstance(K, np.ndarray) and close(K, 1.5 * g + W)
    assert close(np.add(W, G, out=np.empty_like(W)), W + g)
    assert close(np.sum(G), g.sum()) and close(np.linalg.norm(G), G.norm())
    assert close(np.asarray(G, np.float32), g.astype(np.float32), 1e-6)


def test_in_place_updates_touch_no_other_gradient():
    """Factors that are arguments are copied: the gradient of x is made of W, and W is changed first."""
    W, x = RNG.normal(size=(D, H)), RNG.normal(size=(3, D))
    both = rz.grad(lambda W, x: np.sum(np.sin(x @ W)), (0, 1))
    g, h = both(W, x)
    G, K = rz.grad(lambda W, x: np.sum(np.sin(x @ W)), (0, 1), factored=True)(W, x)
    start = W.copy()
    G.add_to(W, -1.0)
    K.add_to(x, -1.0)
    assert close(W, start - g) and close(G, g) and close(K, h)


def test_closed_over_arrays_may_change_afterwards():
    x = RNG.normal(size=(3, D))
    G = rz.grad(lambda W: np.sum(np.sin(x @ W)), factored=True)(RNG.normal(size=(D, H)))
    before = np.asarray(G)
    x[:] = 0.0
    assert np.array_equal(np.asarray(G), before)


def test_numbers_stay_numbers():
    p = {"s": 2.0, "t": np.float32(3.0), "W": normal(D, H)}
    f = lambda p: p["s"] * p["t"] * np.sum(np.sin(X @ p["W"]))  # noqa: E731
    G, g = rz.grad(f, factored=True)(p), rz.grad(f)(p)
    assert (
        type(G["s"]) is type(g["s"])
        and type(G["t"]) is type(g["t"])
        and close(G["s"], g["s"])
        and close(G["t"], g["t"], 1e-5)
        and close(G["W"], g["W"])
    )


def test_auxiliary_values_spaces_and_combinators():
    W = normal(D, H)
    f = lambda W: (np.sum(np.sin(X @ W)), X @ W)  # noqa: E731
    (value, aux), G = rz.value_and_grad(f, has_aux=True, factored=True)(W)
    assert close(value, f(W)[0]) and close(aux, X @ W)
    H2, aux2 = rz.grad(f, has_aux=True, factored=True)(W)
    assert close(H2, G) and close(aux2, aux)
    space = rz.space_of(W).weighted(np.full(W.shape, 2.0))
    one = lambda W: np.sum(np.sin(X @ W))  # noqa: E731
    assert close(rz.grad(one, space=space, factored=True)(W), rz.grad(one, space=space)(W))
    pair = (np.ones(3), np.arange(3.0))
    value, (a, b) = rz.value_and_grad(rz.inner @ rz.fork(rz.proj(0), rz.proj(1)), factored=True)(pair)
    assert value == 3.0 and isinstance(a, rz.Factored) and close(a, pair[1]) and close(b, pair[0])


def test_zero():
    G = rz.grad(lambda x, y: np.sum(y), factored=True)(np.ones((3, 4)), np.ones(2))
    assert repr(G) == "Factored(3 × 4: zero)" and close(G, np.zeros((3, 4))) and G.norm() == 0.0
    assert (
        np.array_equal(G.example_norms(5), np.zeros(5))
        and close(np.ones((3, 4)) - G, np.ones((3, 4)))
        and close(G.reweighted(np.ones(5)), G)
    )


def test_selections_do_not_leak():
    """The branch not taken is inf: where its cotangent is zero it leaves no nan."""
    x, W = np.array([[1.0, 2.0], [np.inf, 1.0]]), np.ones((2, 3))
    f = lambda W: np.sum(np.where(np.array([[True], [False]]), x @ W, 0.0))  # noqa: E731
    with np.errstate(all="ignore"):
        G, g = rz.grad(f, factored=True)(W), rz.grad(f)(W)
    assert np.isfinite(g).all() and close(G, g) and close(G.add_to(np.zeros((2, 3))), g)


def test_a_hundred_uses_of_one_table_and_one_matrix():
    x, index, y = normal(B, 100, D), RNG.integers(0, V, (B, 100)), Y
    p = {"W": normal(D, H), "V": 0.3 * normal(H, H), "b": normal(H), "O": O, "E": E}

    def f(p, x, index, y):
        h = np.zeros((len(x), H))
        for t in range(x.shape[1]):
            h = np.tanh((x[:, t] + p["E"][index[:, t]]) @ p["W"] + h @ p["V"] + p["b"])
        return cross_entropy(h @ p["O"], y)

    G, g = rz.grad(f, factored=True)(p, x, index, y), rz.grad(f)(p, x, index, y)
    one = rz.grad(f)(p, x[2:3], index[2:3], y[2:3])
    for k in p:
        assert (
            close(G[k], g[k])
            and close(G[k].norm(), np.linalg.norm(g[k]))
            and close(G[k].example_norms(B)[2], np.linalg.norm(one[k]))
        )
    assert G["V"].rank == H and sum([len(U) for U, _ in G["V"].factors]) >= 99 * B


def test_many_terms_and_long_programs():
    """Sums that double at each step, and 2,000 uses of one matrix: neither explodes nor recurses."""

    def doubling(x):
        for _ in range(60):
            x = x + np.roll(x, 1)
        return np.sum(np.sin(x * 1e-18))

    x = RNG.normal(size=50)
    assert close(rz.grad(doubling, factored=True)(x), rz.grad(doubling)(x))

    def long(w, h):
        for _ in range(2000):
            h = np.tanh(h * w)
        return np.sum(h)

    assert close(rz.grad(long, factored=True)(x, x), rz.grad(long)(x, x))


# -- errors -------------------------------------------------------------------------------------------------------


def test_errors_say_what_to_do():
    f, p, *data = MODELS["tokens"]
    G = rz.grad(f, factored=True)(p, *data)
    with pytest.raises(rz.VectorError, match=r"lengths \[3, 8\]; choose one with example_norms\(examples=length\)"):
        G["W"].example_norms()
    with pytest.raises(rz.VectorError, match="one axis of length 17"):
        G["W"].example_norms(17)
    with pytest.raises(rz.VectorError, match="one number for each example"):
        G["W"].reweighted(np.ones((2, 2)))
    with pytest.raises(rz.VectorError, match="cannot be told apart"):  # two batches
        (G["W"] + rz.grad(f, factored=True)(p, *data)["W"]).example_norms(B)
    with pytest.raises(rz.VectorError, match="not row-sparse"):
        G["W"].rows  # noqa: B018
    with pytest.raises(rz.VectorError, match="not a sum of outer products"):
        G["b"].factors  # noqa: B018
    with pytest.raises(rz.VectorError, match=r"shape \(6, 5\) in place; got an array of float64 of shape \(2,\)"):
        G["W"].add_to(np.ones(2))
    with pytest.raises(rz.VectorError, match="as many rows is due"):
        G["W"] @ np.ones(3)
    with pytest.raises(rz.SpaceError, match="leave it out"):
        rz.grad(lambda x: np.sum(rz.grad(lambda y: np.sum(y**2), factored=True)(x)))(np.ones(2))
    read_only = np.ones((D, H))
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        G["W"].add_to(read_only)


def test_flipped_examples_are_refused():
    """The second use of W sees the examples in another order: summands do not belong together."""
    f = lambda W: np.sum(np.sin(X @ W)) + np.sum(np.cos(X[::-1] @ W))  # noqa: E731
    G = rz.grad(f, factored=True)(normal(D, H))
    with pytest.raises(rz.VectorError, match="the same for all"):
        G.example_norms()
