"""float32 stays float32: a value has NumPy's type, a gradient the type of the argument it is the gradient in, on every backend."""

from __future__ import annotations

from typing import Any

import cases_pointwise  # noqa: F401  (the tables enter themselves)
import cases_structure  # noqa: F401
import numpy as np
import pytest
from cases import CASES, Case

import riesz as rz

pytestmark = [pytest.mark.filterwarnings("ignore")]
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
x = np.array([0.5, 1.0, 1.5], np.float32)
X = np.outer(x, x) + 3 * np.eye(3, dtype=np.float32)


def kind(y: Any) -> Any:
    return np.dtype(getattr(y, "dtype", type(y)))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (dict, list, tuple)):
        return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in leaves(part)]
    return [] if value is None else [value]


def kinds(value: Any) -> list[Any]:
    return [kind(y) for y in leaves(value)]


def check(f: Any, xs: list[Any], backends: tuple[str, ...] = ("numpy",), second: bool = True) -> None:
    """All that riesz makes of a function of arrays has the types it should have."""
    every, given = tuple(range(len(xs))), [kind(v) for v in xs]
    with np.errstate(all="ignore"):
        value = f(*xs)
        results = kinds(value)

        def number(*args: Any) -> Any:
            parts = [np.sum(np.sin(y)) for y in leaves(f(*args))]
            return sum(parts[1:], parts[0])

        assert kinds(rz.function(f)(*xs)) == results, "value"
        found, slope = rz.value_and_grad(number, every)(*xs)
        assert [kind(found), *kinds(slope)] == [kind(number(*xs)), *given], "value and gradient"
        assert kinds(rz.grad(number, every, factored=True)(*xs)) == given, "factored gradient"
        for backend in backends:
            assert kinds(rz.compile(f, backend=backend)(*xs)) == results, f"value, {backend}"
            assert kinds(rz.compile(rz.grad(number, every), backend=backend)(*xs)) == given, f"gradient, {backend}"
        y, back = rz.vjp(f, *xs)
        assert kinds(y) == results and kinds(back(y)) == given, "vjp"
        y, dy = rz.jvp(f, tuple(xs), tuple(xs))
        assert kinds(y) == kinds(dy) == results, "jvp"
        L, wide = (
            rz.jacobian(f, every)(*xs),
            np.result_type(np.float32, *given, *results),
        )  # SciPy's sparse matrices know no float16
        assert L.dtype == L.to_dense().dtype == L.to_sparse().dtype == wide, "matrices of a map"
        assert set(kinds(L(tuple(xs)))) <= {wide} and set(kinds(L.H(value))) <= {wide}, "a map applied"
        if not second:
            return
        assert rz.hessian(number, every)(*xs).to_dense().dtype == np.result_type(np.float32, *given), "Hessian"
        assert kinds(rz.hvp(number, tuple(xs), tuple(xs))) == given, "Hessian applied"


PARTS = 12


@pytest.mark.parametrize("part", range(PARTS))
def test_every_function_of_the_tables_in_float32_and_mixed(part: int):
    wrong: list[str] = []
    for i, c in enumerate(CASES[part::PARTS]):
        found = problem(c, i)
        if found:
            wrong.append(f"{c!r}: {found}")
    assert not wrong, "\n".join(wrong)


def problem(c: Case, i: int, half: bool = False) -> str:
    given = c.sample()
    mixed = [["f"] * len(given), ["f", "d", "f", "d"][: len(given)], ["d", "f", "d", "f"][: len(given)]][
        i % (3 if len(given) > 1 else 1)
    ]
    xs = [v.astype("e" if half else k)[()] for v, k in zip(given, mixed, strict=True)]
    try:
        with np.errstate(all="ignore"):
            moving = [k for k, y in enumerate(leaves(c.function(np, *xs))) if kind(y).kind == "f"]
    except TypeError:  # NumPy's linear algebra does not know float16
        if not half:
            raise
        return ""
    if not moving:
        return ""
    try:
        check(
            lambda *args: [leaves(c.function(np, *args))[k] for k in moving],
            xs,
            ("numpy",) if i % 4 == 1 else (),
            i % 4 == 3,
        )
    except Exception as found:
        return f"{mixed} {found!r:.200}"
    return ""


c32, c64, whole = np.float32(1.5), np.float64(1.5), np.arange(1, 4)
CHAINS: dict[str, Any] = {
    "constants broadcast": lambda x: np.sum(np.tanh(np.ones((4, 3), np.float32) + np.tanh(x))),
    "broadcast_to": lambda x: np.sum(np.sin(np.broadcast_to(x * x, (2, 3)))),
    "Python floats": lambda x: 1.0 / (1.0 + 0.5 * np.exp(-x)) - 2.0**x,
    "whole numbers": lambda x: 3 * x**2 - x / 2 + x**-1,
    "integer arrays": lambda x: np.sum(whole.astype(np.int16) * x),
    "wide integer arrays": lambda x: whole * x,
    "float64 scalar": lambda x: np.sum(x * c64),
    "float32 scalar": lambda x: np.mean(x * c32),
    "a selection": lambda x: np.where(x > 0.7, x, 0.0),
    "a selection of a number": lambda x: np.where(np.linalg.norm(x) > 0.9, np.linalg.norm(x), 0.9),
    "masks": lambda x: np.sum((x > 0.7) * x) + np.sum(np.where(x > 0.7, 1.0, x)),
    "reductions": lambda x: np.max(x) + np.prod(x) + np.mean(x) * np.var(x) + np.sum(np.cumsum(x)),
    "integer powers": lambda x: x**3 + x**2.0 + np.power(x, 4),
    "there and back": lambda x: np.sin(x.astype(np.float64) ** 2).astype(np.float32),
    "wider inside": lambda x: np.sum(x.astype(np.float64)) * x[0],
    "products": lambda x: X @ x + np.outer(x, x) @ x + np.einsum("i,j->", x, x),
    "linear algebra": lambda x: np.linalg.solve(X + np.diag(x), x) + np.linalg.det(X * x),
    "decompositions": lambda x: np.linalg.eigh(X * (x + x[:, None]))[0] + np.linalg.cholesky(X + np.diag(x)).sum(),
    "transforms": lambda x: np.abs(np.fft.fft(x)) + np.fft.irfft(np.fft.rfft(x), 3),
    "indices": lambda x: np.concatenate([x[::-1], x[[0, 0]], [1.0]]),
    "stacked": lambda x: np.stack([x, x * c32, np.zeros(3, np.float32)]),
    "a loop": lambda x: rz.fori_loop(0, 3, lambda i, c: c * np.sum(x), np.float32(1.0)),
    "a loop from a Python float": lambda x: rz.fori_loop(0, 3, lambda i, c: c * x[0], 1.0),
    "a branch": lambda x: rz.cond(x[0] > 0, lambda v: v * v, lambda v: v, x),
    "every row": lambda x: rz.vmap(rz.grad(lambda v: np.sum(np.sin(v) * 2.0)))(np.outer(x, x)),
    "a gradient inside": lambda x: rz.grad(lambda v: np.sum(v**3))(x) * 2.0,
    "nothing": lambda x: np.ones(3, np.float32) * 0.0 * x,
    "another argument's": lambda x: np.float32(2.0) * x[:1],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_chains(chain: str):
    check(
        CHAINS[chain],
        [x],
        ("numpy", "numba") if chain in ("constants broadcast", "masks", "reductions") else ("numpy", "auto"),
    )


@pytest.mark.parametrize("chain", ["constants broadcast", "masks", "float64 scalar", "linear algebra"])
def test_chains_in_jax(chain: str):
    pytest.importorskip("jax")
    check(CHAINS[chain], [x], ("jax",))


def test_each_argument_has_its_own_type():
    f = lambda a, b, c: np.sum(np.sin(a) * b) + c**2  # noqa: E731
    for given in ([x, x.astype(float), np.float32(2.0)], [x.astype(float), x, np.float64(2.0)], [x, x, 2.0]):
        check(f, [np.asarray(v)[()] if type(v) is float else v for v in given])
    assert [
        kind(g)
        for g in rz.grad(lambda p: np.sum(p["a"]) * p["b"] * p["c"])({"a": x, "b": 2.0, "c": np.float32(1.0)}).values()
    ] == [
        SINGLE,
        DOUBLE,
        SINGLE,
    ]


def test_wide_numbers_are_not_rounded():
    wide = np.array([1.0 + 1e-12, 2.0, 3.0])
    assert rz.function(lambda a, b: a * b)(wide, np.ones(3, np.float32))[0] == wide[0]
    np.testing.assert_array_equal(
        rz.grad(lambda a, b: np.sum(a * b), 0)(np.ones(3), np.ones(3, np.float32) / 3), np.ones(3, np.float32) / 3
    )
    assert rz.grad(lambda b: np.sum(wide * b))(np.ones(3)).tolist() == wide.tolist()
    assert rz.jacobian(lambda b: wide * b)(x).to_dense()[0, 0] == wide[0]
    assert rz.function(lambda a: np.sum(a, dtype=float))(np.array([1e8, 1.0, -1e8], np.float32)) == 1.0


def test_combinators_keep_float32():
    f = rz.sin ** rz.seg(3)
    g = rz.total @ f
    for found in (
        f(x),
        rz.grad(g)(x),
        rz.jacobian(f)(x)(x),
        rz.jacobian(f)(x).to_dense(),
        rz.vjp(f, x)[1](x),
        rz.hessian(g)(x)(x),
        *rz.jvp(f, (x,), (x,)),
    ):
        assert kind(found) == SINGLE


def test_solutions_and_fits_keep_float32():
    assert kind(rz.jacobian(lambda v: v**2)(x).solve(x)) == kind(rz.jacobian(lambda v: X @ v)(x).solve(x)) == SINGLE
    for fit in (rz.gauss_newton, rz.levenberg_marquardt):
        found = fit(lambda p: p**2 - np.array([1, 2, 3], np.float32), x)
        assert kind(getattr(found, "x", found)) == SINGLE


def test_other_floating_point_types_are_refused():
    narrow = np.longdouble
    for f in (
        rz.grad(lambda v: np.sum(v * 2.0)),
        rz.function(lambda v: v * 2.0),
        rz.compile(lambda v: v * 2.0),
        rz.jacobian(lambda v: v * 2.0),
    ):
        with pytest.raises((rz.VectorError, rz.TraceError), match="float64, float32 or float16"):
            f(np.ones(3, narrow))
        with pytest.raises((rz.VectorError, rz.TraceError), match="float"):
            f(narrow(1.0))
    with pytest.raises(rz.TraceError, match="float64, float32, float16"):
        rz.grad(lambda v: np.sum(v.astype(narrow)))(x)


def test_float16_stays_float16():
    """Everything is computed in the types NumPy computes in; gradients have the type of the argument."""
    wrong = {repr(c): found for i, c in enumerate(CASES[::12]) if (found := problem(c, i, half=True))}
    assert not wrong
    g = rz.grad(lambda v: np.real(np.sum(v**2)))(x.astype(np.float16))
    assert g.dtype == np.float16 and g.tolist() == [1.0, 2.0, 3.0]


def test_small_integers_and_truth_values_become_the_floats_they_are_in_numpy():
    for given in (
        np.array([True, False]),
        np.array([1, 2], np.int8),
        np.array([1, 2], np.uint16),
        np.array([1, 2], np.int32),
    ):
        for f in (np.sin, np.exp, np.sqrt, lambda v: np.arctan2(v, v), lambda v: np.logaddexp(v, v)):
            assert rz.function(f)(given).dtype == f(given).dtype


@pytest.mark.parametrize("part", range(4))
def test_integers_stay_integers_where_they_do_in_numpy(part: int):
    wrong: list[str] = []
    for c in CASES[part::4]:
        xs = [np.ceil(v).astype(int)[()] for v in c.sample()]
        with np.errstate(all="ignore"):
            try:
                expected = leaves(c.function(np, *xs))
            except (ValueError, TypeError):  # negative powers, and what NumPy does not know of integers
                continue
            found = leaves(rz.function(lambda *args, c=c: leaves(c.function(np, *args)))(*xs))
        if kinds(found) != kinds(expected) or not all(
            [np.allclose(a, b, equal_nan=True) for a, b in zip(found, expected, strict=True)]
        ):
            wrong.append(f"{c!r}: {kinds(found)}, not {kinds(expected)}")
    assert not wrong, "\n".join(wrong)
