"""Functions of riesz in JAX: jit, vmap, grad, of any order."""

import numpy as np
import pytest

import riesz as rz

jax = pytest.importorskip("jax")
x = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda x: np.sum(np.sin(x) ** 2), lambda x: jax.numpy.sum(jax.numpy.sin(x) ** 2)),
        (rz.total @ rz.power(3) ** rz.seg(3), lambda x: jax.numpy.sum(x**3)),
        ("x -> sum(exp(x) * x)", lambda x: jax.numpy.sum(jax.numpy.exp(x) * x)),
    ],
)
def test_transformations_of_jax_have_riesz_derivatives(mine, theirs):
    with jax.enable_x64(True):
        f = rz.to_jax(mine)
        for make in (lambda h: h, jax.grad, jax.hessian, lambda h: jax.jit(jax.grad(h)), jax.jacfwd):
            np.testing.assert_allclose(make(f)(x), make(theirs)(x), rtol=1e-12, atol=1e-12)
        batch = np.stack([x, 2 * x])
        np.testing.assert_allclose(jax.vmap(jax.grad(f))(batch), jax.vmap(jax.grad(theirs))(batch), rtol=1e-12)
        assert isinstance(f(x), jax.Array)


def test_gradients_compiled_functions_and_trees():
    with jax.enable_x64(True):
        g = rz.to_jax(rz.compile(rz.grad(lambda p: np.sum(p["w"] * p["b"] ** 2)), {"w": x, "b": x}))
        found = jax.jit(g)({"w": x, "b": x})
        np.testing.assert_allclose(found["b"], 2 * x * x)
        there_and_back = rz.to_jax(rz.from_jax(lambda x: jax.numpy.sum(jax.nn.relu(x) ** 2)))
        np.testing.assert_allclose(jax.grad(there_and_back)(x), 2 * np.maximum(x, 0))
