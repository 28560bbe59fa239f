"""What somebody who comes from JAX writes in the first minutes."""

import numpy as np
import pytest

import riesz as rz

X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("jac", [rz.jacfwd, rz.jacrev, rz.jacobian])
def test_jacobians_by_their_names_in_jax(jac):
    f = lambda x, y: x[1:] * x[:-1] * y  # noqa: E731
    np.testing.assert_array_equal(jac(f)(X, 2.0).to_dense(), [[4.0, 2.0, 0.0], [0.0, 6.0, 4.0]])
    np.testing.assert_array_equal(jac(f, argnums=1)(X, 2.0).to_dense(), [[2.0], [6.0]])
    np.testing.assert_array_equal(jac(f, (1, 0))(X, 2.0)(1.0, np.zeros(3)), [2.0, 6.0])
    L, aux = jac(lambda x: (x**2, {"x": x}), has_aux=True)(X)
    np.testing.assert_array_equal(np.diag(L.to_dense()), 2 * X)
    np.testing.assert_array_equal(aux["x"], X)
    assert rz.compile(jac(f))(X, 2.0).shape == (2, 3)


@pytest.mark.parametrize("in_axes", [(0, None), [0, None], (-1, None)])
@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_vmap_as_in_jax(in_axes, out_axes):
    jax = pytest.importorskip("jax")
    A = np.arange(12.0).reshape(3, 4) if in_axes[0] == 0 else np.arange(12.0).reshape(4, 3)
    f = lambda a, k: a * k  # noqa: E731
    wanted = jax.vmap(f, in_axes=tuple(in_axes), out_axes=out_axes)(A, 2.0)
    np.testing.assert_allclose(rz.vmap(f, in_axes=in_axes, out_axes=out_axes)(A, 2.0), wanted)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("jit", "rz.compile(f)"),
        ("custom_vjp", "rz.custom_derivative"),
        ("value_and_jacobian", "rz.linearize(f, x)"),
        ("jacobain", "did you mean rz.jacobian?"),
        ("hesian", "did you mean rz.hessian?"),
        ("numpy", "import numpy as np"),
    ],
)
def test_names_that_are_not_there_say_which_is(name, advice):
    with pytest.raises(AttributeError) as caught:
        getattr(rz, name)
    assert advice in str(caught.value)
    assert not hasattr(rz, "quite_another_thing")
