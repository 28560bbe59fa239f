"""Objects of other libraries beside traced arrays and as arguments: taken as the arrays they hold, or refused with what to write instead."""

from __future__ import annotations

import copy
import operator
import statistics
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.sparse

import riesz as rz
from riesz.errors import RieszError

pytestmark = [pytest.mark.filterwarnings("ignore")]
x = np.array([1.0, 2.0, 3.0])


class Labelled:
    """As xarray's arrays are: an array with names, whose operators are NumPy's."""

    __array_priority__ = 50

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        if any([not isinstance(a, (Labelled, np.ndarray, float, int)) for a in args]):
            return NotImplemented
        return Labelled(getattr(ufunc, method)(*[a.values if isinstance(a, Labelled) else a for a in args], **named))

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __add__(self, other: Any) -> Any:
        return np.add(self, other)


class Symbolic:
    """As SymPy's numbers are: they ask others to become symbols."""

    def __float__(self) -> float:
        return 2.0

    def __mul__(self, other: Any) -> Any:
        return other._sympy_() if hasattr(other, "_sympy_") else NotImplemented

    __add__ = __mul__


class Tensor:
    """As PyTorch's tensors are: they can become arrays."""

    shape = (3,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return x

    def __mul__(self, other: Any) -> Any:
        return NotImplemented


class Quantity(np.ndarray):
    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        return NotImplemented


def objects() -> dict[str, Any]:
    found: dict[str, Any] = {
        "labelled array": Labelled(x),
        "symbolic number": Symbolic(),
        "tensor": Tensor(),
        "Decimal": Decimal("1.5"),
        "Fraction": Fraction(1, 2),
        "masked array": np.ma.array(x, mask=[False, True, False]),
        "matrix": np.matrix(np.eye(3)),
        "sparse array": scipy.sparse.csr_array(np.eye(3)),
        "sparse matrix": scipy.sparse.csr_matrix(np.eye(3)),
        "quantity": x.view(Quantity),
        "int8 array": np.array([1, 2, 3], np.int8),
        "object": object(),
        "complex number": 1j,
    }
    try:
        import pandas as pd
    except ImportError:
        pass
    else:
        found |= {
            "Series": pd.Series(x),
            "Series of integers": pd.Series([1, 2, 3]),
            "nullable Series": pd.Series(x, dtype="Float64"),
            "Series of words": pd.Series(["a", "b", "c"]),
            "DataFrame": pd.DataFrame({"a": x, "b": x, "c": x}),
            "Index": pd.Index(x),
            "Timestamp": pd.Timestamp("2020"),
        }
    try:
        import polars as pl
    except ImportError:
        pass
    else:
        found |= {"polars Series": pl.Series(x), "polars DataFrame": pl.DataFrame({"a": x, "b": x, "c": x})}
    return found


OBJECTS = objects()
OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "lt",
    "le",
    "eq",
    "ne",
    "gt",
    "ge",
    "iadd",
    "imul",
]
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(operator, name) for name in OPERATORS},
    **{
        name: getattr(np, name)
        for name in ("multiply", "dot", "maximum", "outer", "arctan2", "hypot", "append", "convolve", "inner")
    },
    "where": lambda a, b: np.where(x > 1, a, b),
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "stack": lambda a, b: np.stack([a, b]),
    "array": lambda a, b: np.array([a, b]),
    "einsum": lambda a, b: np.einsum("i,i->", a, b),
    "clip": lambda a, b: np.clip(a, 0, b),
    "interp": lambda a, b: np.interp(a, np.arange(3.0), b),
}


def outcome(f: Any, *args: Any) -> Any:
    try:
        return f(*args)
    except Exception as problem:
        return problem


@pytest.mark.parametrize("kind", OBJECTS)
def test_either_side_of_an_operator_and_in_numpys_functions(kind: str):
    other = OBJECTS[kind]
    for name, f in FUNCTIONS.items():
        for side, g in (("left", lambda t: f(copy.copy(other), t)), ("right", lambda t: f(t, copy.copy(other)))):  # noqa: B023
            wanted, found = outcome(g, x.copy()), outcome(rz.function(g), x)
            where = f"{kind} on the {side} of {name}: NumPy {wanted!r:.80}, riesz {found!r:.160}"
            assert not isinstance(found, RecursionError), where
            if isinstance(found, RieszError) or (isinstance(wanted, Exception) and isinstance(wanted, type(found))):
                continue
            assert not isinstance(found, Exception), where
            if not isinstance(wanted, (Exception, complex)) and kind != "complex number":
                np.testing.assert_allclose(
                    np.asarray(found, float), np.asarray(wanted, float), rtol=1e-12, err_msg=where
                )


@pytest.mark.parametrize("kind", [k for k in OBJECTS if "Series" in k or "DataFrame" in k or k == "Index"])
def test_columns_multiply_traced_arrays_from_either_side(kind: str):
    other = OBJECTS[kind]
    if "words" in kind or "polars" in kind:
        with pytest.raises((RieszError, TypeError)):
            rz.grad(lambda t: np.sum(other * t))(x)
        return
    wanted = np.asarray(other, float)
    wanted = wanted.sum(axis=0) if wanted.ndim == 2 else wanted
    for f in (lambda t: np.sum(other * t), lambda t: np.sum(t * other), lambda t: np.sum(np.multiply(t, other))):
        np.testing.assert_allclose(rz.grad(f)(x), wanted)


TAKEN = {
    "labelled array",
    "tensor",
    "int8 array",
    "Series",
    "Series of integers",
    "nullable Series",
    "Index",
    "polars Series",
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_as_arguments(kind: str):
    other = OBJECTS[kind]
    whole = kind in ("int8 array", "Series of integers")
    for what, f in {
        "grad": rz.grad(lambda t: np.sum(t * 2.0)),
        "jacobian": rz.jacobian(lambda t: t * 2.0),
        "hessian": rz.hessian(lambda t: np.sum(t * t)),
        "compiled grad": rz.compile(rz.grad(lambda t: np.sum(t * 2.0))),
    }.items():
        found = outcome(f, other)
        if kind in TAKEN and not whole:
            assert not isinstance(found, Exception), (what, found)
        else:
            assert isinstance(found, RieszError), (what, found)
    for what in (
        rz.function(lambda t: 2.0 if np.ndim(t) > 5 else 1.0),
        rz.compile(lambda t: 1.0),
        rz.vmap(lambda t: t),
        rz.space_of,
        rz.jacobian(lambda t: t)(x),
    ):
        found = outcome(what, other)
        assert not isinstance(found, (RecursionError, AttributeError)), (what, found)


def test_the_sentence_says_what_to_write():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"price": x, "size": x})
    with pytest.raises(rz.VectorError, match=r"DataFrame.*to_numpy\(\)"):
        rz.grad(lambda t: np.sum(t))(table)
    with pytest.raises(rz.TraceError, match="pandas"):
        rz.function(lambda t: table["price"] @ t)(x)
    with pytest.raises(rz.TraceError, match="in place"):
        rz.function(lambda t: operator.iadd(table["price"].copy(), t))(x)
    with pytest.raises(rz.TraceError, match="masked"):
        rz.function(lambda t: t * np.ma.array(x, mask=[True, False, False]))(x)
    with pytest.raises(rz.TraceError, match="@"):
        rz.function(lambda t: t * np.matrix(np.eye(3)))(x)
    with pytest.raises(rz.TraceError, match="SymPy"):
        rz.function(lambda t: Symbolic() * t)(x)
    with pytest.raises(rz.TraceError, match=r"float\(c\)"):
        rz.function(lambda t: Fraction(1, 2) * t)(x)
    columns = {name: table[name].to_numpy() for name in table.columns}
    np.testing.assert_array_equal(rz.grad(lambda c: np.sum(c["price"] * c["size"]))(columns)["price"], x)


@pytest.mark.parametrize("left", [7, 7.0, np.float32(7.0), np.array([7.0, 8.0, 9.0]), [7.0, 8.0, 9.0]])
def test_divmod_from_either_side(left: Any):
    def f(t: Any) -> Any:
        return divmod(left, t)

    np.testing.assert_allclose(rz.function(f)(x), f(x))
    np.testing.assert_allclose(
        rz.jacobian(lambda t: divmod(left, t)[1])(x).diagonal(), -np.floor_divide(np.asarray(left, float), x)
    )


def test_powers_of_a_modulus_are_refused_as_by_numpy():
    with pytest.raises(RieszError, match=r"pow\(\)"):
        rz.function(lambda t: pow(t, 2, 3))(x)


SCIPYS = {
    "compiled code": lambda t: scipy.fft.fht(t, 0.1, 1.0),
    "compiled code inside": lambda t: scipy.signal.czt(t * 2.0),
    "copies if needed": lambda t: scipy.linalg.ldl(np.outer(t, t))[0],
    "decorated for stacks": lambda t: scipy.linalg.hessenberg(np.outer(t, t)),
    "memory": lambda t: np.lib.stride_tricks.as_strided(t, (2,), (8,)),
    "a buffer": lambda t: np.frombuffer(t),
    "a view of memory": memoryview,
    "Python's own": lambda t: statistics.mean(t),
}


@pytest.mark.parametrize("name", SCIPYS)
def test_functions_that_take_numbers_only_are_refused_with_a_sentence(name: str):
    with pytest.raises(RieszError, match=r"traced|not known|depends on the numbers|different masks"):
        rz.function(SCIPYS[name])(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: scipy.fft.dct(t),
        lambda t: scipy.fft.idstn(t * 2.0),
        lambda t: scipy.linalg.pinvh(np.outer(t, t))[0],
    ],
)
def test_functions_of_compiled_code_that_are_known_are_scipys(f: Any):
    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-12, atol=1e-14)
    steps = [(f(x + d) - f(x - d)) / 2e-5 for d in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(rz.jacobian(f)(x), np.stack(steps, 1), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: np.interp([1.0, 2j], t, t),
        lambda t: np.interp(t, [1j, 2j], [1.0, 2.0]),
        lambda t: np.interp(t + 1j, x, x),
        lambda t: np.interp(t, x, x, left=1j).real,
    ],
)
def test_points_of_interp_are_real(f: Any):
    with pytest.raises(TypeError):
        f(x)
    with pytest.raises(TypeError):
        rz.function(f)(x)


@pytest.mark.parametrize(
    "f", [lambda t: t * scipy.fft.dct(x, type=7)[0], lambda t: t * scipy.linalg.inv("a"), lambda t: t.foo]
)
def test_mistakes_that_have_nothing_to_do_with_tracing_keep_their_errors(f: Any):
    try:
        f(x)
    except Exception as own:
        with pytest.raises(type(own)):
            rz.function(f)(x)


@pytest.mark.parametrize("wrap", [memoryview, lambda a: bytearray(a.tobytes())])
def test_arguments_without_a_hash_are_taken_or_refused_with_a_sentence(wrap: Any):
    assert rz.grad(lambda t, other: np.sum(t * t) * len(other))(x, wrap(x))[0] > 0
    with pytest.raises(RieszError):
        rz.grad(lambda t: np.sum(np.asarray(t)))(wrap(x))
