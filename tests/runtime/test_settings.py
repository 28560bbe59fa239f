"""rz.settings: how plain calls run."""

import numpy as np
import pytest

import riesz as rz

A = np.random.default_rng(0).normal(size=(4, 4))


def decayed(x):
    return np.sum(rz.fori_loop(0, 40, lambda i, y: 0.9 * y + 0.1 * np.sin(A @ y), x) ** 2)


def test_values_hold_until_the_end_of_a_with():
    assert rz.settings.plain == "numpy" and rz.settings.loops
    with rz.settings(plain="steps", loops=False) as chosen:
        assert chosen is rz.settings and (chosen.plain, chosen.loops) == ("steps", False)
        with pytest.raises(ZeroDivisionError), rz.settings(plain="auto"):
            raise ZeroDivisionError
        assert chosen.plain == "steps"
    assert rz.settings.plain == "numpy" and rz.settings.loops


def test_what_is_not_known_is_named():
    with pytest.raises(ValueError, match="'numpy', 'auto', 'steps'; got 'jax'"):
        rz.settings.plain = "jax"
    with pytest.raises(TypeError, match="no speed; it has plain, loops"), rz.settings(speed=1):
        pass
    with pytest.raises(ValueError, match="True or False"), rz.settings(loops=1):
        pass
    assert repr(rz.settings) == "rz.settings(plain='numpy', loops=True)"


@pytest.mark.parametrize("plain", ["numpy", "auto", "steps"])
@pytest.mark.parametrize("loops", [True, False])
def test_each_way_gives_the_same_gradient(plain, loops):
    x = np.linspace(0.1, 0.4, 4)
    for f in (lambda x: decayed(x), lambda x: np.sum(np.cumsum(np.sin(A @ x)) ** 2)):
        wanted = rz.compile(rz.grad(f), backend="steps")(x)
        with rz.settings(plain=plain, loops=loops):
            gradient = rz.grad(f)
            found = [gradient(x) for _ in range(3)]
        np.testing.assert_allclose(found[0], wanted, rtol=1e-12)
        assert {y.tobytes() for y in found} == {found[0].tobytes()}


def test_loops_can_be_left_to_arrays():
    with rz.settings(loops=False):
        assert rz.compile(rz.grad(decayed), np.ones(4)).backend != "native"
    assert rz.compile(rz.grad(decayed), np.ones(4)).backend == "native"
