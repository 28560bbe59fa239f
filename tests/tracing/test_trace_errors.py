"""What a traced array cannot do: each error names the user's line and says what to write instead."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import riesz as rz

X = np.array([1.0, 2.0, 3.0])
OUT = np.zeros(3)
CODE: list[tuple[Callable[..., Any], str]] = []


def says(advice: str) -> Callable[[Any], Any]:
    """Enter a function that cannot be traced; its line with `# here` must be named, and the advice given."""

    def enter(f: Any) -> Any:
        CODE.append((f, advice))
        return f

    return enter


def marked_line(f: Any) -> int:
    """The number of the line marked `# here`."""
    lines, first = inspect.getsourcelines(f)
    return first + next(i for i, line in enumerate(lines) if "# here" in line)


# -- writing ----------------------------------------------------------------------------------------------


@says("x = x.copy()")
def assignment(x: Any) -> Any:
    x[0] = 1.0  # here
    return x


@says("x = x.copy()")
def assignment_in_place_of_an_element(x: Any) -> Any:
    x[0] += 1.0  # here
    return x


@says("x = x.copy()")
def assignment_to_a_view(x: Any) -> Any:
    y = x[1:]
    y[:] = 0.0  # here
    return y


@says("own = OUT.copy()")
def number_into_a_numpy_array(x: Any) -> Any:
    OUT[0] = x[0]  # here
    return OUT


@says("own = OUT.copy()")
def array_into_a_numpy_array(x: Any) -> Any:
    OUT[:] = x  # here
    return OUT


@says("write into a copy")
def addition_in_place_to_a_numpy_array(x: Any) -> Any:
    out = OUT
    out += x  # here
    return out


@says("write into a copy")
def ufunc_with_out(x: Any) -> Any:
    np.multiply(x, x, out=OUT)  # here
    return OUT


@says("np.where(mask, np.add(…), other)")
def ufunc_with_where(x: Any) -> Any:
    return np.add(x, 1.0, where=x > 1)  # here


@says("x = x.copy()")
def sort_in_place(x: Any) -> Any:
    x.sort()  # here
    return x


@says("x = x.copy()")
def fill_in_place(x: Any) -> Any:
    x.fill(0.0)  # here
    return x


@says("x = x.reshape((3, 1))")
def shape_in_place(x: Any) -> Any:
    x.shape = (3, 1)  # here
    return x


@says("x = x.copy()")
def ufunc_at(x: Any) -> Any:
    np.add.at(x, [0], 1.0)  # here
    return x


# -- numbers that are not known ---------------------------------------------------------------------------


@says("leave float() out")
def as_float(x: Any) -> Any:
    return float(x[0]) * 2.0  # here


@says("leave complex() out")
def as_complex(x: Any) -> Any:
    return complex(x[0]) * 2.0  # here


@says("np.sin(x) for math.sin(x)")
def function_of_the_math_module(x: Any) -> Any:
    return math.sin(x[0])  # here


@says("np.where(c, a, b)")
def as_bool(x: Any) -> Any:
    return bool(x[0] > 1)  # here


@says("return rz.cond(y[0] > 1, lambda: y, lambda: -y)")
def branch(x: Any) -> Any:
    y = x * 2.0
    if y[0] > 1:  # here
        return y
    return -y


@says("y = rz.while_loop(lambda y: y < 10, body, y)")
def loop(x: Any) -> Any:
    y = x[0]
    while y < 10:  # here
        y = y * 2.0
    return y


@says("rz.cond(np.logical_and(x[0] > 0, x[1] > 0), lambda: x, lambda: -x)")
def conjunction(x: Any) -> Any:
    return x if x[0] > 0 and x[1] > 0 else -x  # here


@says("np.where(c, a, b)")
def largest_by_python(x: Any) -> Any:
    return max(x)  # here


@says("np.where(c, a, b)")
def assertion_on_all(x: Any) -> Any:
    assert np.all(x > 0)  # here
    return x


@says("rz.cond(np.allclose(x, 1.0), lambda: x, lambda: 2.0 * x)")
def branch_on_allclose(x: Any) -> Any:
    return x if np.allclose(x, 1.0) else 2.0 * x  # here


@says("rz.fori_loop")
def loop_over_a_range(x: Any) -> Any:
    total = 0.0
    for i in range(np.argmax(x)):  # here
        total = total + x[i]
    return total


@says("np.take(a, i)")
def index_of_a_list(x: Any) -> Any:
    return [1.0, 2.0, 3.0][np.argmax(x)] * x  # here


@says(".astype(int)")
def float_as_index(x: Any) -> Any:
    return x[x[0]]  # here


@says("np.stack")
def numpy_that_cannot_be_seen(x: Any) -> Any:
    return __import__("numpy").array([x[0], x[1]])  # here


# -- shapes that depend on numbers ------------------------------------------------------------------------


@says("np.where(mask, x, 0)")
def length_of_a_part(x: Any) -> Any:
    return len(x[x > 1]) * x  # here


@says("np.where(mask, x, 0)")
def part_of_a_numpy_array(x: Any) -> Any:
    return np.sort(OUT[x > 1])  # here


@says("a[mask]")
def part_beside_an_array(x: Any) -> Any:
    return np.sum(x[x > 1] + x)  # here


@says("np.where(mask, x, 0)")
def positions_of_a_mask(x: Any) -> Any:
    return np.stack(np.nonzero(x))  # here


@says("np.where(mask, x, 0)")
def shape_of_a_part(x: Any) -> Any:
    return np.zeros(x[np.where(x > 1)].shape)  # here


@says("np.where(mask, x, 0)")
def unique(x: Any) -> Any:
    return np.unique(x)  # here


@says("np.stack")
def length_of_a_range(x: Any) -> Any:
    return np.arange(x[0])  # here


# -- what is not known ------------------------------------------------------------------------------------


@says("docs/coverage.md lists what is, and rz.custom_derivative adds your own")
def unsupported_function(x: Any) -> Any:
    return np.packbits(x)  # here


@says("rz.primitive or rz.custom_derivative adds it")
def unsupported_ufunc(x: Any) -> Any:
    return np.frexp(x)  # here


@says("reduceat of np.add, np.multiply")
def unsupported_method_of_a_ufunc(x: Any) -> Any:
    return np.hypot.reduceat(x, [0, 1])  # here


@says("float64, float32, float16, integers and booleans are known")
def unsupported_type(x: Any) -> Any:
    return x.astype("S4")  # here


@says("use real floating-point arrays (float64, float32 or float16)")
def array_of_objects(x: Any) -> Any:
    return x * np.array([None, 1, 2], object)  # here


@says("cannot compute with str and a traced array")
def text(x: Any) -> Any:
    return x + "a"  # here


DECIDED = [as_bool, branch, loop, conjunction, largest_by_python, assertion_on_all, branch_on_allclose]
DECIDED += [loop_over_a_range, index_of_a_list]


@pytest.mark.parametrize(("f", "advice"), CODE, ids=[f.__name__ for f, _ in CODE])
def test_an_error_names_the_line_and_the_way_out(f: Any, advice: str) -> None:
    with pytest.raises(rz.TraceError) as caught:
        if f in DECIDED:
            rz.compile(f, X)  # at a point these are decided
        else:
            rz.function(f)(X)
    message = str(caught.value)
    assert advice in message
    assert f"(at test_trace_errors.py:{marked_line(f)}, in {f.__name__}" in message


def helper(x: Any) -> Any:
    return float(x) * 2.0  # here


def test_the_line_is_that_of_the_function_it_happens_in() -> None:
    for transform in (rz.grad, rz.jacobian, rz.function, rz.hessian):
        with pytest.raises(rz.TraceError, match=rf"test_trace_errors\.py:{marked_line(helper)}, in helper"):
            transform(lambda x: helper(x[0]))(X)


# -- arrays that left their trace -------------------------------------------------------------------------


def test_a_traced_array_is_refused_after_its_trace_has_ended() -> None:
    kept: list[Any] = []

    def leaky(x: Any) -> Any:
        kept.append(x)
        return x * 2.0

    rz.function(leaky)(X)

    def outside() -> Any:
        return kept[0] + 1.0  # here

    def elsewhere(y: Any) -> Any:
        return y * kept[0]  # here

    def alone(y: Any) -> Any:
        return np.sin(kept[0])  # here

    for f, args in (
        (outside, ()),
        (rz.function(elsewhere), (X,)),
        (rz.function(alone), (X,)),
        (rz.grad(lambda y: np.sum(elsewhere(y))), (X,)),
    ):
        with pytest.raises(
            rz.TraceError, match=r"a traced array of leaky is used after its trace has ended.*return it instead"
        ) as caught:
            f(*args)
        inner = {"outside": outside, "alone": alone}.get(getattr(f, "__name__", ""), elsewhere)
        assert f"test_trace_errors.py:{marked_line(inner)}" in str(caught.value)


def test_a_traced_array_of_an_inner_function_is_refused_outside_it() -> None:
    kept: list[Any] = []

    def inner(y: Any) -> Any:
        kept.append(y * y)
        return np.sum(y * y)

    def outer(x: Any) -> Any:
        g = rz.grad(inner)(x)
        return g + kept[-1]

    with pytest.raises(rz.TraceError, match="return it instead"):
        rz.function(outer)(X)


def test_an_array_of_the_outer_function_may_be_used_inside() -> None:
    def outer(x: Any) -> Any:
        return rz.grad(lambda y: np.sum(x * y * y))(x)

    np.testing.assert_allclose(rz.function(outer)(X), 2.0 * X * X, rtol=1e-14)


# -- arguments --------------------------------------------------------------------------------------------

ARGUMENTS = {
    "integers": (
        np.arange(3),
        r"array of int64: use floats \(x.astype\(float\)\), or choose other arguments with argnums",
    ),
    "booleans": (np.array([True, False]), r"array of bool: use floats"),
    "a Python int": (3, r"holds the int 3; .*float\(x\)"),
    "objects": (np.array([1.0, None]), "array of object; use float64, float32 or float16"),
    "long doubles": (
        np.ones(3, np.longdouble),
        rf"array of {np.dtype(np.longdouble)}; use float64, float32 or float16",
    ),
    "dates": (np.array(["2020-01-01"], "M8[D]"), r"array of datetime64\[D\]; use float64, float32 or float16"),
    "complex numbers": (np.arange(3) + 1j, "complex arrays are not supported: pass real and imaginary parts"),
    "a Python complex": (1j, "real and imaginary parts"),
}


@pytest.mark.parametrize(("value", "message"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_what_cannot_be_differentiated_is_refused_as_an_argument(value: Any, message: str) -> None:
    for transform in (rz.grad, rz.jacobian, rz.hessian):
        with pytest.raises(rz.VectorError, match=message):
            transform(lambda x: np.sum(x * 2.0))(value)


def test_integers_and_booleans_are_fine_beside_what_is_differentiated() -> None:
    gradient = rz.grad(lambda x, i, m: np.sum(np.where(m, x, 0.0)[i]))(
        X, np.array([0, 0, 1]), np.array([True, False, True])
    )
    np.testing.assert_array_equal(gradient, [2.0, 0.0, 0.0])


# -- errors NumPy itself has ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: x[7], IndexError),
        (lambda x: x[0, 0], IndexError),
        (lambda x: x[..., ...], IndexError),
        (lambda x: x["a"], IndexError),
        (lambda x: x[np.array([0.5])], IndexError),
        (lambda x: x[np.array([0, 7])], IndexError),
        (lambda x: x[np.array([True, False])], IndexError),
        (lambda x: x[np.array([True, False, False, False, False])], IndexError),
        (lambda x: x[np.ones((3, 1), bool)], IndexError),
        (lambda x: len(x[0]), TypeError),
        (lambda x: list(x[0]), TypeError),
        (lambda x: x + np.ones(4), ValueError),
        (lambda x: x @ np.ones(4), ValueError),
        (lambda x: x @ 2.0, ValueError),
        (lambda x: np.reshape(x, (2, 2)), ValueError),
        (lambda x: np.sum(x, axis=1), np.exceptions.AxisError),
        (lambda x: np.sum(x, axis=(0, 0)), ValueError),
        (lambda x: np.transpose(x, (0, 1)), ValueError),
        (lambda x: np.concatenate([x, np.ones((1, 3))]), ValueError),
        (lambda x: np.stack([x, np.ones(4)]), ValueError),
        (lambda x: np.split(x, 2), ValueError),
        (lambda x: np.squeeze(x, 0), ValueError),
        (lambda x: np.broadcast_to(x, (2,)), ValueError),
        (lambda x: np.max(x[:0]), ValueError),
        (lambda x: np.einsum("ij", x), ValueError),
        (lambda x: np.einsum("i->j", x), ValueError),
        (lambda x: np.einsum("i,i", x, np.ones(4)), ValueError),
        (lambda x: np.tensordot(x, np.ones(4), 1), ValueError),
        (lambda x: np.convolve(x, x, "half"), ValueError),
        (lambda x: np.diag(np.ones((2, 2, 2)) * x[0]), ValueError),
        (lambda x: np.cross(np.ones(4) * x[0], np.ones(4)), ValueError),
        (lambda x: np.pad(x[:0], 1, mode="edge"), ValueError),
    ],
)
def test_what_numpy_refuses_is_refused_with_the_same_kind_of_error(f: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        f(X)
    with pytest.raises(error):
        rz.function(f)(X)


def test_a_traced_array_has_a_short_text() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.extend([repr(x), f"{x[0]:.3f}", repr(x > 0)])
        return x

    rz.function(f)(X)
    assert seen == ["traced[3]", "traced", "traced[3], bool"]


# -- advice can be pasted ---------------------------------------------------------------------------------

FITTED = rz.custom_derivative(lambda x: np.polyfit(X, x, 1))
FITTED.derivative(lambda x: lambda dx: np.linalg.pinv(np.vander(X, 2)) @ dx)


def _copied(x: Any) -> Any:
    x = x.copy()
    x[0] = 1.0
    x[0] += 1.0
    x.sort()
    np.add.at(x, [0], 1.0)
    x.fill(0.0)
    return x


def _copied_from_outside(x: Any) -> Any:
    a = OUT.copy()
    a[0] = x[0]
    a[:] = x
    a += x
    np.multiply(x, x, out=a)
    return a


def _values_of_a_mask(x: Any) -> Any:
    mask, values, y = x > 1, x**2, x.copy()
    y[mask] = values[mask]
    return y


ADVISED: dict[str, tuple[Any, Any]] = {
    "x = x.copy()": (_copied, np.zeros(3)),
    "own = OUT.copy()": (_copied_from_outside, X**2),
    "own = OUT + b": (lambda x: OUT + x, X),
    "np.where(mask, np.add(…), other)": (lambda x: np.where(x > 1, np.add(x, 1.0), 0.0), [0, 3, 4]),
    "x = x.reshape((3, 1))": (lambda x: x.reshape((3, 1)), X[:, None]),
    "leave float() out": (lambda x: x[0] * 2.0, 2.0),
    "np.sin(x) for math.sin(x)": (lambda x: np.sin(x[0]), math.sin(1.0)),
    "use x itself": (lambda x: x[0] * 1.0, 1.0),
    "x.reshape(())": (lambda x: x[:1].reshape(()), 1.0),
    "list(x)": (lambda x: list(x), [1.0, 2.0, 3.0]),
    "np.where(c, a, b)": (lambda x: np.where(x[0] > 1, x, 2.0 * x), 2 * X),
    "rz.cond(c, f, g, x)": (lambda x: rz.cond(x[0] > 1, lambda x: x, lambda x: 2.0 * x, x), 2 * X),
    "rz.fori_loop": (
        lambda x: rz.fori_loop(0, 3, lambda k, s: np.where(k < np.argmax(x), s + x[k], s), 0.0),
        3.0,
    ),
    "np.take(a, i)": (lambda x: np.take([1.0, 2.0, 3.0], np.argmax(x)) * x, 3 * X),
    ".astype(int)": (lambda x: x[x[0].astype(int)], 2.0),
    "np.stack": (lambda x: np.sin(np.stack([x[0], x[1]])), np.sin(X[:2])),
    "np.where(mask, x, 0)": (lambda x: np.sum(np.where(x > 1, x, 0)), 5.0),
    "a[mask]": (lambda x: np.sum(x[x > 1] + OUT[x > 1]), 5.0),
    "values[mask]": (_values_of_a_mask, [1, 4, 9]),
    "a fixed number of np.sort(x)": (lambda x: np.sort(x)[:2], X[:2]),
    "rz.custom_derivative": (FITTED, [1.0, 0.0]),
    "np.sum, np.cumsum, np.prod or indexing": (lambda x: np.stack([np.sum(x[:1]), np.sum(x[1:])]), [1.0, 5.0]),
    "np.moveaxis": (lambda x: np.sum(np.moveaxis(np.outer(x, x), 1, 0)[x > 1], axis=0), 5 * X),
    "z = z.copy()": (lambda x: _written(x * 1j).imag, [0.0, 2.0, 3.0]),
    "np.minimum, np.max and np.sort": (lambda x: np.minimum(x[0], x[1]) + np.max(x) + np.sort(x)[0], 5.0),
}


def _written(z: Any) -> Any:
    z = z.copy()
    z[0] = 0.0
    return z


@pytest.mark.parametrize("advice", ADVISED)
def test_advice_can_be_pasted(advice: str):
    f, wanted = ADVISED[advice]
    found = rz.function(f)(X)
    np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-12)
    L = rz.jacobian(f)(X)
    v, w = np.ones(3), np.ones(np.shape(wanted)) if np.ndim(wanted) else 1.0
    if advice != "list(x)":
        np.testing.assert_allclose(np.sum(L(v) * w), np.sum(v * L.H(w)))


def test_the_function_that_converts_is_named():
    signal = pytest.importorskip("scipy.signal")
    with pytest.raises(rz.TraceError, match=r"scipy\.signal\.czt converts its arguments"):
        rz.function(lambda x: np.abs(signal.czt(x)))(X)


def test_compiled_functions_that_convert_are_named():
    optimize = pytest.importorskip("scipy.optimize")
    spatial = pytest.importorskip("scipy.spatial")
    assign = optimize.linear_sum_assignment
    named = {
        "scipy.optimize.linear_sum_assignment": lambda x: np.sum(
            optimize.linear_sum_assignment(
                np.outer(x, x),
            )
        ),
        "assign": lambda x: np.sum(x) + assign(np.outer(x, x))[0][0],
        "scipy.spatial.cKDTree": lambda x: spatial.cKDTree(np.outer(x, x)).query(x)[0],
    }
    for name, f in named.items():
        with pytest.raises(rz.TraceError, match=rf"^{name} converts its arguments.* \(at test_trace_errors.py:"):
            rz.function(f)(X)
    with pytest.raises(rz.TraceError, match=r"^scipy.optimize.linear_sum_assignment converts .* complex"):
        rz.function(lambda x: optimize.linear_sum_assignment(np.outer(x, x) * 1j)[0])(X)


@pytest.mark.parametrize(("library", "called", "way"), [("jax.numpy", "sin", "rz.from_jax"), ("torch", "sin", "NumPy")])
def test_functions_of_other_libraries_are_named(library, called, way):
    pytest.importorskip(library)
    import importlib

    theirs = importlib.import_module(library)
    said = rf"^{library}.{called} cannot compute with a traced array.*{way}.*\(at test_trace_errors.py:\d+, in <lambda>"
    with pytest.raises(rz.TraceError, match=said):
        rz.grad(lambda x: np.sum(theirs.sin(x)))(X)


def test_spaces_are_no_points():
    with pytest.raises(rz.VectorError, match=r"write np.ones\(3\), or rz.derive\(f, rz.R \*\* 3\)"):
        rz.grad(np.sum)(rz.R**3)


OUTER = np.zeros((2, 3))


def test_advice_on_writing_has_the_names_of_the_user_and_can_be_pasted():
    near = np.ones(3)

    def argument(weights):
        weights.reshape(3)[1:] *= 2.0
        return weights

    def far(x):
        OUTER[1] = x
        return OUTER

    def closed(x):
        near[0] = x[0]
        return near

    def out(x):
        np.multiply(near, x, out=near)
        return near

    said = [
        (argument, r"write into a copy: weights = weights\.copy\(\)"),
        (far, r"write into a copy: own = OUTER\.copy\(\)"),
        (closed, r"write into a copy: own = near\.copy\(\)"),
        (out, r"write into a copy: own = near\.copy\(\)"),
    ]
    for f, way in said:
        with pytest.raises(rz.TraceError, match=way):
            rz.function(f)(X)

    def pasted(x):
        own = OUTER.copy()
        own[1] = x
        return own

    np.testing.assert_array_equal(rz.function(pasted)(X), pasted(X))


def test_errors_of_compiled_code_name_line_and_function():
    from decimal import Decimal

    from scipy import optimize

    with pytest.raises(rz.TraceError, match=r"\(at test_trace_errors.py:\d+, which calls Decimal\)"):
        rz.function(lambda x: float(Decimal(x[0])) * x)(X)
    with pytest.raises(rz.TraceError, match=r"^scipy.optimize.linprog is compiled code.*rz.custom_derivative"):
        rz.function(lambda x: optimize.linprog(x, A_ub=[[1.0] * 3], b_ub=[1.0]).x)(X)


def test_functions_of_numba_are_told_of_their_python_function():
    numba = pytest.importorskip("numba")
    double = numba.njit(lambda x: 2.0 * x)
    with pytest.raises(rz.TraceError, match=r"which calls double\): functions compiled by Numba.*double\.py_func\("):
        rz.function(lambda x: double(x))(X)
    np.testing.assert_array_equal(rz.function(lambda x: double.py_func(x))(X), 2.0 * X)
