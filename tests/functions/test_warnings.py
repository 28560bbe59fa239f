"""Who is warned: NumPy's warnings are for what a function computes, not for derivatives nor for branches not taken."""

import warnings

import numpy as np
import pytest

import riesz as rz

X = np.array([0.0, 1.0, 2.0])

QUIET = {
    "a root at 0": lambda x: np.sum(np.sqrt(x)),
    "a power at 0": lambda x: np.sum(x**0.5),
    "a selection": lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)),
    "a selection in a loop": lambda x: np.sum(rz.fori_loop(0, 2, lambda i, v: np.where(v > 0, v * x, np.inf * v), x)),
    "a selection in a loop in a loop": lambda x: np.sum(
        rz.fori_loop(0, 2, lambda i, v: rz.fori_loop(0, 2, lambda j, u: np.where(x > 0, u / x, u), v), x)
    ),
    "a selection in a branch": lambda x: np.sum(
        rz.cond(x[1] > 0, lambda v: np.where(v > 0, 1 / v, 0.0), lambda v: v, x)
    ),
    "a branch not taken": lambda x: np.sum(rz.cond(x[1] > 0, lambda v: v * v, np.log, x)),
}
WAYS = {
    "value": lambda f: f,
    "gradient": rz.grad,
    "value and gradient": rz.value_and_grad,
    "product with the Hessian": lambda f: lambda x: rz.hvp(f, (x,), (x,)),
    "derivative": lambda f: lambda x: rz.jvp(f, (x,), (x,))[1],
    "gradient in a loop": lambda f: lambda x: rz.fori_loop(0, 2, lambda i, v: v + rz.grad(f)(x), x),
}


@pytest.mark.parametrize("run", ["interpreted", "mapped", "numpy", "numba", "long"])
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("name", list(QUIET))
def test_derivatives_and_branches_not_taken_give_no_warning(name, way, run):
    f = WAYS[way](QUIET[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):  # the second time traces are known
            if run == "interpreted":
                rz.function(f)(X)
            elif run == "mapped":
                rz.vmap(f)(np.stack([X, X]))
            else:
                rz.compile(f, backend="numpy" if run == "long" else run)(np.tile(X, 20_000 if run == "long" else 1))


@pytest.mark.parametrize(
    "run",
    [rz.function, rz.vmap, lambda f: rz.compile(f, backend="numpy"), lambda f: rz.compile(rz.vmap(f), backend="numpy")],
)
def test_what_a_function_computes_outside_a_domain_is_warned_of(run):
    with pytest.warns(RuntimeWarning, match="invalid value"):
        run(lambda x: np.log(x) + 1.0)(np.array([-1.0, 2.0]))


@pytest.mark.parametrize("name", list(QUIET))
def test_maps_that_derive_gives_are_made_without_warnings(name):
    D = rz.derive(lambda x: QUIET[name](x) * np.where(x > 0, np.sqrt(x - 1.0), 0.0), rz.R ** rz.seg(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        D.derivative(X).to_dense()
        D.derivative(X)(X)
        D.adjoint(X)(X)


def test_a_product_that_a_selection_multiplies_out_gives_no_warning():
    k = np.array([1.0, np.inf, np.nan])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L = rz.jacobian(lambda x: np.where(np.eye(3) > 0, np.outer(x, x), np.outer(k * x, x))[0])(X)
        np.testing.assert_array_equal(L.to_dense(), [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
