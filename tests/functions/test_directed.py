"""jvp and hvp of small functions run as generated code, and are what maps give; other arguments go the ordinary way."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz
from riesz.functions.function import as_function
from riesz.ops.number_domains import OTHER

A = np.random.default_rng(0).normal(size=(4, 3))
x, v = np.array([0.3, -1.2, 2.0]), np.array([1.0, 0.5, -2.0])


def loss(x):
    return np.sum(np.tanh(A @ x) ** 2) + np.prod(x)


def test_both_are_what_the_maps_and_jax_give():
    jloss = lambda x: jnp.sum(jnp.tanh(A @ x) ** 2) + jnp.prod(x)  # noqa: E731
    with jax.enable_x64(True):
        value, moved = jax.jvp(jloss, (x,), (v,))
        second = jax.jvp(jax.grad(jloss), (x,), (v,))[1]
    for _ in range(3):
        found = rz.jvp(loss, (x,), (v,))
        assert np.allclose(found, (value, moved), rtol=1e-13, atol=0)
        assert np.allclose(rz.hvp(loss, (x,), (v,)), second, rtol=1e-12, atol=1e-13)
    assert as_function(loss).directed[rz.hvp, 1].quick((x, v)) is not OTHER
    assert np.allclose(rz.hessian(loss)(x)(v), second, rtol=1e-12, atol=1e-13)


def test_trees_several_arguments_and_floats():
    f = lambda d, k: {"u": d["a"] * k, "w": np.sin(d["b"])}  # noqa: E731
    for _ in range(2):
        _, dy = rz.jvp(f, ({"a": x, "b": 0.5}, 2.0), ({"a": v, "b": 1.0}, 3.0))
        assert (
            np.allclose(dy["u"], v * 2.0 + x * 3.0) and np.isclose(dy["w"], np.cos(0.5)) and isinstance(dy["w"], float)
        )
        assert rz.hvp(lambda a, b: a**2 * b, (2.0, 3.0), (1.0, 1.0)) == (10.0, 4.0)


@pytest.mark.parametrize("what", [rz.jvp, rz.hvp])
def test_differentials_of_other_kinds_are_refused_as_before(what):
    what(loss, (x,), (v,))
    for wrong in (np.ones(4), np.array([1, 2, 3]), np.ones((3, 1)), [1.0, 2.0, 3.0], "v"):
        with pytest.raises(rz.VectorError):
            what(loss, (x,), (wrong,))
    with pytest.raises(rz.VectorError, match=r"shape \(4,\)$"):
        what(loss, (x,), (np.ones(4),))


def test_float32_stays_and_names_that_change_are_seen():
    assert rz.jvp(np.tanh, (x.astype(np.float32),), (v.astype(np.float32),))[1].dtype == np.float32
    k = 2.0
    f = lambda x: k * np.sum(x**3)  # noqa: E731
    first = rz.hvp(f, (x,), (v,))
    k = 4.0
    assert np.allclose(rz.hvp(f, (x,), (v,)), 2 * first)
    rz.function(f).clear()
    assert np.allclose(rz.hvp(f, (x,), (v,)), 2 * first)


def test_results_are_the_callers_own():
    for what in (rz.jvp, rz.hvp):
        first = what(loss, (x,), (v,)) if what is rz.hvp else what(lambda x: x * 1.0, (x,), (v,))[1]
        again = first.copy()
        first[:] = 0.0
        other = what(loss, (x,), (v,)) if what is rz.hvp else what(lambda x: x * 1.0, (x,), (v,))[1]
        assert np.array_equal(other, again)
    y, dy = rz.jvp(lambda x: x, (x,), (v,))
    dy[:] = 7.0
    y[:] = 7.0
    assert v[0] == 1.0 and x[0] == 0.3


def test_derivatives_of_them_and_maps_over_them():
    third = rz.grad(lambda x: np.sum(rz.hvp(loss, (x,), (v,))))(x)
    steps = [1e-5 * e for e in np.eye(3)]
    differences = [np.sum(rz.hvp(loss, (x + h,), (v,)) - rz.hvp(loss, (x - h,), (v,))) / 2e-5 for h in steps]
    assert np.allclose(third, differences, atol=1e-6)
    rows = rz.vmap(lambda v: rz.hvp(loss, (x,), (v,)))(np.eye(3))
    assert np.allclose(rows, rz.hessian(loss)(x).to_dense())
    assert np.allclose(rz.compile(lambda x: rz.vmap(lambda v: rz.hvp(loss, (x,), (v,)))(np.eye(3)))(x), rows)


def test_kinks_infinities_and_conditions_on_values():
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0))  # noqa: E731
    with np.errstate(all="ignore"):
        assert np.isfinite(rz.jvp(f, (np.array([-1.0, 4.0]),), (np.ones(2),))[1])
    g = lambda x: x * x if x > 0 else -x  # noqa: E731
    assert [rz.jvp(g, (a,), (1.0,)) for a in (2.0, -2.0, 3.0)] == [(4.0, 4.0), (2.0, -1.0), (9.0, 6.0)]
    assert [rz.hvp(g, (a,), (1.0,)) for a in (2.0, -2.0)] == [2.0, 0.0]


def test_pullbacks_are_those_of_their_point():
    """Arguments, and what the function closes over, may change before w ↦ f'(x)*(w) is called."""
    W, x = np.random.default_rng(0).normal(size=(3, 4)), np.linspace(0.1, 0.4, 4)

    def f(x, s):
        return {"a": np.tanh(W @ x) * s, "b": np.sum(x**2)}

    w = {"a": np.array([1.0, -2.0, 0.5]), "b": 0.3}
    slope = 1 - np.tanh(W @ x) ** 2
    wanted = W.T @ (w["a"] * 2.0 * slope) + 0.6 * x, float(w["a"] @ np.tanh(W @ x))
    for _ in range(3):
        given = x.copy()
        y, back = rz.vjp(f, given, 2.0)
        assert np.allclose(y["a"], 2 * np.tanh(W @ x)) and np.isclose(y["b"], x @ x)
        given[:] = 7.0
        dx, ds = back(w)
        np.testing.assert_allclose(dx, wanted[0], rtol=1e-12)
        assert type(ds) is float and np.isclose(ds, wanted[1], rtol=1e-12)
        assert [a.tobytes() for a in back(w)[:1]] == [dx.tobytes()]
    kept, W[:] = W.copy(), 0.0
    np.testing.assert_allclose(back(w)[0], wanted[0], rtol=1e-12)
    W[:] = kept
    with pytest.raises(rz.VectorError):
        back({"a": np.ones(4), "b": 0.3})
    (dx,) = rz.vjp(lambda x: np.float32(2.0) * x, np.ones(2, np.float32))[1](np.ones(2, np.float32))
    assert dx.dtype == np.float32


def test_pullbacks_of_functions_that_cannot_be_pickled_can():
    W = np.random.default_rng(0).normal(size=(3, 4))
    rows = [
        (lambda x: np.tanh(W @ x), (np.linspace(0.1, 0.4, 4),), np.array([1.0, -2.0, 0.5])),
        (lambda d, s: {"a": d["a"] * s, "b": np.sum(W)}, ({"a": x}, 2.0), {"a": v, "b": 1.0}),
        (lambda x: x**2 * W[0, 0], (3.0,), 1.0),
        (lambda x: np.float32(2.0) * x, (np.ones(2, np.float32),), np.ones(2, np.float32)),
    ]
    made = [(rz.vjp(f, *given)[1], w) for f, given, w in rows]
    wanted = [back(w) for back, w in made]
    W[:] = 0.0
    for (back, w), due in zip(made, wanted, strict=True):
        for again in (pickle.loads(pickle.dumps(back)), copy.copy(back), copy.deepcopy(back)):
            found = again(w)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), found, due)
            kinds = [[getattr(a, "dtype", float) for a in jax.tree.leaves(t)] for t in (found, due)]
            assert kinds[0] == kinds[1]
