"""Conditions on values: decided at the point, and a guard of the trace; refused where there is no point."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz


def guarded(x: Any) -> Any:
    if np.any(x < 0):
        raise ValueError("negative")
    return np.sum(np.sqrt(x))


def kinked(x: Any) -> Any:
    if x > 0:
        return x**3
    return -3.0 * x


def heron(a: Any) -> Any:
    x = 1.0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def test_a_guard_lets_pass_or_raises_as_plain_python_does() -> None:
    g = rz.grad(guarded)
    for _ in range(2):
        np.testing.assert_array_equal(g(np.array([1.0, 4.0])), [0.5, 0.25])
        with pytest.raises(ValueError, match="negative"):
            g(np.array([1.0, -4.0]))
    assert rz.function(guarded).traces == 1


USES: dict[str, Any] = {
    "grad": lambda f: rz.grad(f),
    "value_and_grad": lambda f: lambda x: rz.value_and_grad(f)(x)[1],
    "jacobian": lambda f: lambda x: float(rz.jacobian(f)(x).to_dense()[0, 0]),
    "jvp": lambda f: lambda x: rz.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: rz.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: rz.linearize(f, x)[1](1.0),
    "compiled": lambda f: rz.compile(rz.grad(f)),
    "inside": lambda f: rz.grad(lambda x: f(x) + 0.0 * x),
    "inside a function": lambda f: rz.grad(rz.function(lambda x: rz.function(f)(x))),
    "checkpoint": lambda f: rz.grad(rz.checkpoint(f)),
    "inner derivative": lambda f: lambda x: rz.jacobian(lambda y: rz.jvp(f, (y,), (1.0,))[0])(x)(1.0),
}


@pytest.mark.parametrize("use", USES)
def test_each_point_has_the_branch_it_has_in_plain_python(use: str) -> None:
    derivative = USES[use](kinked)
    for _ in range(2):
        for x in (2.0, -1.0, 5.0, 0.0):
            assert derivative(x) == (3.0 * x**2 if x > 0 else -3.0), x


def test_second_order_and_values() -> None:
    f, again = rz.function(kinked), rz.compile(kinked)
    for x in (2.0, -1.0, 3.0, -5.0):
        assert f(x) == again(x) == kinked(x)
        second = 6.0 * x if x > 0 else 0.0
        assert rz.hessian(kinked)(x).to_dense()[0, 0] == second
        assert rz.grad(rz.grad(kinked))(x) == second
    assert f.traces == 2
    assert again(jnp.array(2.0)) == 8.0
    assert again(jnp.array(-2.0)) == 6.0


def test_python_loops_on_values() -> None:
    for a in (4.0, 2.0, 300.0, 4.0):
        np.testing.assert_allclose(rz.grad(heron)(a), 0.5 / np.sqrt(a), rtol=1e-9)
    np.testing.assert_allclose(rz.grad(rz.grad(heron))(4.0), -0.25 * 4.0**-1.5, rtol=1e-9)


def test_pythons_own_functions_that_compare() -> None:
    x = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(rz.grad(lambda x: max(x))(x), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(rz.grad(lambda x: max(x))(x[::-1].copy()), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(rz.grad(lambda x: sorted(x)[1] ** 2)(x), [0.0, 0.0, 4.0])
    np.testing.assert_array_equal(rz.grad(lambda x: np.sum(x) if x[0] > 0 and not x[1] > 5 else x[0])(x), np.ones(3))
    np.testing.assert_array_equal(rz.grad(lambda x: x[0] if bool(np.fft.fft(x)[0]) else x[1])(x), [1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="ambiguous"):
        rz.grad(lambda x: np.sum(x) if x > 0 else 0.0)(x)


def test_integers_that_are_computed() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(np.argmax(x) + 1):
            total = total + x[i] ** 2
        return total

    np.testing.assert_array_equal(rz.grad(f)(np.array([1.0, 3.0, 2.0])), [2.0, 6.0, 0.0])
    np.testing.assert_array_equal(rz.grad(f)(np.array([3.0, 1.0, 2.0])), [6.0, 0.0, 0.0])
    g = lambda x: [x[0], 2.0 * x[1], 3.0 * x[2]][int(np.argmax(x))]  # noqa: E731
    np.testing.assert_array_equal(rz.grad(g)(np.array([1.0, 2.0, 3.0])), [0.0, 0.0, 3.0])
    with pytest.raises(rz.TraceError, match="fori_loop"):
        rz.compile(f, np.ones(3))


def test_written_arrays_decide() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3)
        y[0], y[1] = x[0], 2.0 * x[1]
        return np.sum(y) if y[0] > 0 and (y > -1.0).all() else -np.sum(y)

    np.testing.assert_array_equal(rz.grad(f)(np.array([1.0, 2.0])), [1.0, 2.0])
    np.testing.assert_array_equal(rz.grad(f)(np.array([-1.0, 2.0])), [-1.0, -2.0])


def test_under_vmap_all_indices_must_agree() -> None:
    np.testing.assert_array_equal(rz.vmap(kinked)(np.array([1.0, 2.0])), [1.0, 8.0])
    np.testing.assert_array_equal(rz.vmap(rz.grad(kinked))(np.array([-1.0, -2.0])), [-3.0, -3.0])
    np.testing.assert_array_equal(rz.grad(lambda x: np.sum(rz.vmap(kinked)(x)))(np.array([1.0, 2.0])), [3.0, 12.0])
    for use in (rz.vmap(kinked), rz.vmap(rz.grad(kinked)), rz.grad(lambda x: np.sum(rz.vmap(kinked)(x)))):
        with pytest.raises(rz.TraceError, match=r"some indices.*rz\.cond"):
            use(np.array([1.0, -2.0]))


PLACES: dict[str, Any] = {
    "spaces": lambda f: rz.derive(f, rz.R),
    "examples": lambda f: rz.derive(f, 2.0),
    "code": lambda f: rz.compile(f, 2.0),
    "code for a space": lambda f: rz.compile(rz.grad(f), rz.R),
    "a loop": lambda f: rz.grad(lambda x: rz.fori_loop(0, 2, lambda i, y: f(y), x))(2.0),
    "a branch": lambda f: rz.grad(lambda x: rz.cond(x > 1.0, f, f, x))(2.0),
    "a derivative in a loop": lambda f: rz.grad(lambda x: rz.fori_loop(0, 2, lambda i, y: rz.grad(f)(y), x))(2.0),
}


@pytest.mark.parametrize("place", PLACES)
def test_where_no_point_is_known_the_error_shows_the_code_to_write(place: str) -> None:
    with pytest.raises(rz.TraceError) as caught:
        PLACES[place](kinked)
    assert "return rz.cond(x > 0, lambda: x ** 3, lambda: -3.0 * x)" in str(caught.value)
    assert "in kinked)" in str(caught.value)


def pasted(message: str) -> str:
    """The code after "write" in a message."""
    lines = message.split("\nwrite\n")[1].split("\nhere")[0].splitlines()
    return "\n".join([line.removeprefix("    ") for line in lines])


def test_the_advice_can_be_pasted() -> None:
    with pytest.raises(rz.TraceError) as caught:
        rz.compile(heron, 2.0)
    names: dict[str, Any] = {"rz": rz, "np": np}
    code = pasted(str(caught.value)).replace("\n", "\n    ")
    exec(f"def f(a):\n    x = 1.0\n    {code}\n    return x", names)
    np.testing.assert_allclose(rz.compile(rz.grad(names["f"]), 4.0)(9.0), 1.0 / 6.0, rtol=1e-9)

    def several(a: Any) -> Any:
        n, x = 0.0, a
        while x > 1.0 and n < 50.0:
            x = x / 2.0
            n = n + x
        return n

    with pytest.raises(rz.TraceError) as caught:
        rz.compile(several, 2.0)
    code = pasted(str(caught.value)).replace("\n", "\n    ")
    exec(f"def f(a):\n    n, x = 0.0, a\n    {code}\n    return n", names)
    assert rz.compile(rz.grad(names["f"]), 4.0)(9.0) == rz.grad(several)(9.0)

    def chosen(x: Any) -> Any:
        if not x > 1.0 or x > 5.0:  # noqa: SIM108
            y = x * 2.0
        else:
            y = x**2
        return y

    with pytest.raises(rz.TraceError) as caught:
        rz.compile(chosen, 2.0)
    exec(f"def f(x):\n    {pasted(str(caught.value))}\n    return y", names)
    for x in (0.0, 2.0, 7.0):
        assert rz.compile(rz.grad(names["f"]), 1.0)(x) == rz.grad(chosen)(x)


def test_traces_that_decide_are_few() -> None:
    def f(x: Any) -> Any:
        k = 0
        while k < x:
            k += 1
        return k * x

    function = rz.function(f)
    for n in range(40):
        assert function(n + 0.5) == (n + 1) * (n + 0.5)
        assert rz.grad(f)(n + 0.5) == n + 1
    assert function.traces <= 16


def test_names_from_outside_still_count() -> None:
    box = {"k": 2.0}

    def f(x: Any) -> Any:
        return box["k"] * x if x > 0 else x

    assert rz.grad(f)(1.0) == 2.0
    box["k"] = 3.0
    assert rz.grad(f)(1.0) == 3.0
    assert rz.grad(f)(-1.0) == 1.0


@pytest.mark.parametrize("backend", ["auto", "numpy", "numba", "jax"])
def test_compiled_code_is_kept_for_each_set_of_answers(backend, monkeypatch):
    calls = []

    def f(x):
        calls.append(1)
        if np.any(x < -15):
            raise ValueError("too small")
        y = np.tanh(x) * x[::-1]
        return np.sum(y**2) if np.sum(y) > 0 else np.sum(np.sin(y))

    x = np.array([0.3, -0.7, 1.1, 0.4])
    g = rz.grad(f)
    wanted = [g(z) for z in (x, x[::-1] - 0.6, 2 * x)]
    compiled = rz.compile(g, backend=backend)
    for _ in range(2):
        for z, w in zip((x, x[::-1] - 0.6, 2 * x), wanted, strict=True):
            np.testing.assert_allclose(compiled(z), w, rtol=1e-12)
    before = len(calls)
    monkeypatch.setattr(rz.backends.entry, "evaluated", None)  # nothing runs step by step from here on
    for z, w in zip((x, x[::-1] - 0.6, 2 * x), wanted, strict=True):
        np.testing.assert_allclose(compiled(z), w, rtol=1e-12)
    assert len(calls) == before
    with pytest.raises(ValueError, match="too small"):
        compiled(x - 20.0)
    np.testing.assert_allclose(compiled(x), wanted[0], rtol=1e-12)


def test_numbers_that_decide_compiled():
    h = rz.compile(rz.value_and_grad(lambda x: x**3 if x > 0 else -x))
    assert [h(2.0), h(-2.0), h(3.0)] == [(8.0, 12.0), (2.0, -1.0), (27.0, 27.0)] and h.backend == "python"
