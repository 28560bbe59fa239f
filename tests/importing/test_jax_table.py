"""A few hundred calls of JAX's library: values, gradients and Hessians are JAX's."""

import numpy as np
import pytest
from cases_jax import CASES
from sampling import sampled

import riesz as rz

jax = pytest.importorskip("jax")


def argument(text, rng):
    """An argument from its text: a shape, and what its numbers are like."""
    kind = "".join([c for c in text if c in "+us"])
    shape = tuple([int(n) for n in text.split("+")[0].strip("us").split(",") if n])
    if kind == "+":
        return rng.uniform(1.1, 2.0, shape) if text.endswith("+2") else rng.uniform(0.5, 1.5, shape)
    if kind == "u":
        return rng.uniform(0.1, 0.9, shape)
    if kind == "s" and shape:
        a = rng.normal(size=shape)
        return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])
    return rng.normal(size=shape) * 1.0 if shape else np.float64(rng.normal())


def function(code, count):
    import jax.flatten_util
    import jax.scipy.cluster.vq
    from jax import lax, nn, scipy
    from jax import numpy as jnp

    names = {"jax": jax, "jnp": jnp, "lax": lax, "jnn": nn, "jss": scipy.special, "jst": scipy.stats}
    return eval(f"lambda {', '.join('xyz'[:count])}: {code}", names | {"jsl": scipy.linalg})


def agree(found, wanted, tolerance, what):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, what
    scale = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def checked(code, kinds, second=True):
    rng = np.random.default_rng(len(code))
    args = [argument(k, rng) for k in kinds]
    f = function(code, len(args))
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in args]
        wanted = f(*given)
        g = rz.from_jax(f, *args)
        agree(g(*args), wanted, 1e-12, f"value of {code}")
        w = rng.normal(size=np.shape(wanted))
        loss = lambda *xs: jax.numpy.sum(w * f(*xs))  # noqa: E731
        mine = rz.from_jax(loss)
        for i in range(len(args)):
            try:
                gradient = jax.grad(loss, i)(*given)
            except ValueError:  # JAX has no reverse mode for loops that end by a condition
                gradient, second = jax.jacfwd(loss, i)(*given), False
            agree(rz.grad(mine, i)(*args), gradient, 1e-10, f"gradient of {code} in {'xyz'[i]}")
            if second and np.size(args[i]) <= 12:
                hessian = jax.hessian(loss, i)(*given)
                n = np.size(args[i])
                found = rz.hessian(mine, i)(*args).to_dense()
                if np.isfinite(hessian).all():
                    agree(found, np.reshape(hessian, (n, n)), 1e-9, f"Hessian of {code} in {'xyz'[i]}")
        _, L = rz.linearize(g, *args)
        moves = [rng.normal(size=np.shape(x)) for x in args]
        tangent = (
            jax.jvp(f, given, [jax.numpy.asarray(m) for m in moves])[1]
            if np.asarray(wanted).dtype.kind == "f"
            else None
        )
        if tangent is not None and len(args) == 1:
            agree(L(*moves), tangent, 1e-10, f"directional derivative of {code}")


@pytest.mark.parametrize(("code", "kinds"), sampled(CASES, 40), ids=str)
def test_calls_of_jax_have_its_values_and_derivatives(code, kinds):
    checked(code, kinds)
