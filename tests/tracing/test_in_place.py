"""In-place operators: what shares memory in NumPy changes together or is refused, what is a copy there is one here."""

import numpy as np
import pytest

import riesz as rz
from riesz.errors import TraceError
from riesz.tracing.rules.all_rules import load_rules
from riesz.tracing.traced import FUNCTIONS, UFUNCS

load_rules()
A = np.array([[0.2, 0.7, 0.4], [0.9, 0.3, 0.6], [0.5, 0.8, 0.1]])

GIVEN = {
    "np.array": lambda x: np.array(x),
    "np.array, same type": lambda x: np.array(x, dtype=float),
    "np.array, copy=None": lambda x: np.array(x, copy=None),
    "np.asarray": lambda x: np.asarray(x),
    "np.asarray, same type": lambda x: np.asarray(x, dtype=float),
    "np.asanyarray": lambda x: np.asanyarray(x),
    "np.ascontiguousarray": lambda x: np.ascontiguousarray(x),
    "astype": lambda x: x.astype(float),
    "astype float32": lambda x: x.astype(np.float32),
    "astype, copy=False": lambda x: x.astype(float, copy=False),
    "flatten": lambda x: x.flatten(),
    "flatten F": lambda x: x.flatten("F"),
    "copy": lambda x: x.copy(),
    "np.copy": np.copy,
    "ravel": lambda x: x.ravel(),
    "np.ravel": np.ravel,
    "reshape": lambda x: x.reshape(9),
    "reshape to itself": lambda x: x.reshape(3, 3),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "real": lambda x: x.real,
    "conj": lambda x: x.conj(),
    "+x": lambda x: +x,
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "x[0]": lambda x: x[0],
    "x[::2]": lambda x: x[::2],
    "x[None]": lambda x: x[None],
    "x[[0, 2]]": lambda x: x[[0, 2]],
    "x[mask]": lambda x: x[np.array([True, False, True])],
    "row of many": lambda x: list(x)[1],
    "x * 1": lambda x: x * 1.0,
    "x + 0": lambda x: x + 0.0,
    "x ** 1": lambda x: x**1,
    "squeeze": np.squeeze,
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "split": lambda x: np.split(x, 3)[0],
    "array_split": lambda x: np.array_split(x, 2)[1],
    "concatenate one": lambda x: np.concatenate([x]),
    "stack": lambda x: np.stack([x])[0],
    "vstack one": lambda x: np.vstack([x]),
    "tile": lambda x: np.tile(x, 1),
    "repeat": lambda x: np.repeat(x, 1),
    "roll": lambda x: np.roll(x, 0),
    "take": lambda x: np.take(x, [0, 1, 2], axis=0),
    "where": lambda x: np.where(True, x, x),
    "clip": lambda x: np.clip(x, None, 2.0),
    "einsum": lambda x: np.einsum("ij->ij", x),
    "einsum transpose": lambda x: np.einsum("ij->ji", x),
    "einsum diagonal": lambda x: np.einsum("ii->i", x),
    "sum over nothing": lambda x: np.sum(x, axis=()),
    "sort": np.sort,
    "flip": np.flip,
    "rot90 by nothing": lambda x: np.rot90(x, 0),
    "atleast_1d": np.atleast_1d,
    "nan_to_num": np.nan_to_num,
    "tril": np.tril,
    "diagonal of": lambda x: np.diag(np.diag(x)),
    "pad": lambda x: np.pad(x, 0),
    "delete nothing": lambda x: np.delete(x, [], axis=0),
    "matrix_transpose": lambda x: np.linalg.matrix_transpose(x),
    "positive": np.positive,
    "ufunc with a type": lambda x: np.positive(x, dtype=float),
    "maximum": lambda x: np.maximum(x, x),
    "resize": lambda x: np.resize(x, (3, 3)),
    "append nothing": lambda x: np.append(x, np.zeros((0, 3)), axis=0),
    "trim_zeros": lambda x: np.trim_zeros(x[0]),
    "round": lambda x: np.round(x, 8),
    "mean over nothing": lambda x: np.mean(x, axis=(), keepdims=True),
    "einsum, a sum": lambda x: np.einsum("ij->i", x),
    "einsum, no arrow": lambda x: np.einsum("ij", x),
}


def named(f) -> str:
    return f"{getattr(f, '__module__', 'np')}.{f.__name__}"


def first_array(y):
    while isinstance(y, (list, tuple)) and len(y):
        y = y[0]
    return y


def gives_array(g) -> bool:
    """Whether a function takes one matrix and gives an array of floats that can be written to."""
    try:
        with np.errstate(all="ignore"):
            y = first_array(g(A.copy()))
    except Exception:
        return False
    return isinstance(y, np.ndarray) and y.dtype.kind == "f" and y.flags.writeable and y.ndim > 0


GIVEN |= {named(g): g for g in (*FUNCTIONS, *UFUNCS) if g is not np.empty_like and gives_array(g)}


def changed_result(g, own):
    def f(a):
        x = a * 1.0 if own else a
        y = first_array(g(x))
        y += 1.0
        return x * 1.0, y * 1.0

    return f


def changed_original(g):
    def f(a):
        x = a * 1.0
        y = first_array(g(x))
        x += 1.0
        return x * 1.0, y * 1.0

    return f


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", GIVEN)
def test_changing_one_of_two_arrays_is_as_in_numpy_or_refused(name):
    g = GIVEN[name]
    try:
        rz.function(lambda a: first_array(g(a * 1.0)) * 1.0)(A)
    except TraceError:
        pytest.skip("not for traced arrays")
    mine = A.copy()
    shares = np.shares_memory(mine, first_array(g(mine)))
    for f in (changed_result(g, True), changed_original(g), changed_result(g, False)):
        given = A.copy()
        wanted = f(given)
        try:
            found = rz.function(f)(A.copy())
        except TraceError as problem:
            assert "in place" in str(problem) or "in-place" in str(problem), problem
            assert shares or name in MAYBE, f"{name} is a copy in NumPy"
            continue
        assert np.array_equal(given, A), f"{name}: NumPy would have changed the caller's array"
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=name)


ITERATED = {f"numpy.{name}" for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")}
MAYBE = {"stack", *ITERATED}
"""Of these NumPy, or the test, makes views on the way."""


@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/=", "**=", "//=", "%=", "@="])
def test_operators_in_place_on_an_argument_are_refused_with_the_way_out(operator):
    space: dict = {}
    exec(f"def f(x):\n    x {operator} 2.0 * x\n    return x", space)
    with pytest.raises(TraceError, match=r"caller's array.*x = x"):
        rz.function(space["f"])(A.copy())
    exec(f"def g(p):\n    p['a'] {operator} 2.0 * p['a']\n    return p['a']", space)
    with pytest.raises(TraceError, match="caller's array"):
        rz.function(space["g"])({"a": A.copy()})
    for part in ("x[:]", "x.T", "np.asarray(x)", "x.reshape(3, 3)"):
        exec(f"import numpy as np\ndef h(x):\n    y = {part}\n    y {operator} 2.0 * y\n    return y", space)
        with pytest.raises(TraceError, match="in-place"):
            rz.function(space["h"])(A.copy())


def test_numbers_are_bound_anew():
    def f(x):
        y = x
        y += 1.0
        return x * y

    assert rz.function(f)(2.0) == 6.0 and rz.grad(f)(2.0) == 5.0
    assert rz.function(f)(np.float64(2.0)) == 6.0


def test_copies_of_arguments_may_change():
    def f(x):
        y = x.copy()
        y += 1.0
        y *= x
        return np.sum(y)

    np.testing.assert_allclose(rz.grad(f)(A), 2 * A + 1)


COMPLEX = {
    "the same": lambda z: z,
    "copy": lambda z: z.copy(),
    "np.array": lambda z: np.array(z),
    "conj": lambda z: z.conj(),
    "flatten": lambda z: z.flatten(),
    "astype": lambda z: z.astype(complex),
    "+z": lambda z: +z,
    "real": lambda z: z.real,
    "T": lambda z: z.T,
    "z[1:]": lambda z: z[1:],
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_arrays_change_as_in_numpy_or_are_refused(name):
    def first(x):
        y = x * 1.0
        z = y + 1j * y
        w = COMPLEX[name](z)
        w += 2.0
        y += 5.0
        return z.real, w.real

    def second(x):
        z = np.fft.fft(x)
        w = COMPLEX[name](z)
        z *= 2.0
        return z.real, np.abs(w)

    for f in (first, second):
        try:
            found = rz.function(f)(A)
        except TraceError as problem:
            assert "in-place" in str(problem) and name in ("real", "T", "z[1:]")
            continue
        for a, b in zip(found, f(A), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
