"""The backend "numba" against the interpreter: what is grouped, what loops compute, and that threads change nothing.

Most random programs run their loops as plain Python, so that many can be tried; some are compiled.
"""

import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples

import riesz as rz
from riesz.backends.numba import grouping
from riesz.backends.numba import loop_op as loops
from riesz.backends.numba import numba_backend as numba_code
from riesz.errors import VectorError
from riesz.runtime import tuning
from riesz.terms.primitives import RULES

numba = pytest.importorskip("numba")

FUNCTIONS = {
    "log": "log",
    "exp": "exp",
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": "arctan2",
}
PLAIN = (
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "expm1",
    "sqrt",
    "log1p",
    "log2",
    "log10",
    "isnan",
    "isinf",
    "isfinite",
    "hypot",
)


def in_python(source, exact=False):
    """Loops as they stand, without a compiler."""
    math = types.SimpleNamespace(**{n: getattr(np, m) for n, m in [*FUNCTIONS.items(), *[(n, n) for n in PLAIN]]})
    space = {
        n: getattr(np, n)
        for n in (
            "exp",
            "expm1",
            "log",
            "log1p",
            "tanh",
            "sin",
            "cos",
            "logaddexp",
            "bool_",
            "float32",
            "float64",
            "int64",
        )
    }
    space |= {
        "np": np,
        "math": math,
        "at": int,
        "plus": np.add,
        "larger": np.maximum,
        "smaller": np.minimum,
        "sigmoid": RULES["sigmoid"].array,
    }
    exec(source, space)
    return lambda *args: in_silence(space["loops"], *args)


def in_silence(function, *args):
    with np.errstate(all="ignore"):
        return function(*args)


def everything_is_worth_a_loop(patch):
    for name in ["NEST_NUMBERS", "NEST_SCATTER_RATIO", "NUMBA_SINGLE_STEP_NUMBERS", "NUMBA_GROUP_OPERATIONS"]:
        patch.setattr(tuning, name, 0)
    for name in ["NEST_CHUNK_NUMBERS", "NEST_OPERATIONS_PER_THREAD"]:
        patch.setattr(tuning, name, 1)


def in_python_too(patch, long=tuning.NEST_LONG_AXIS_RATIO):
    """`long`: 1 writes out all short axes, as is done beside long ones."""
    everything_is_worth_a_loop(patch)
    patch.setattr(loops, "compiled", in_python)
    patch.setattr(tuning, "NEST_LONG_AXIS_RATIO", long)


@pytest.fixture
def small(monkeypatch):
    everything_is_worth_a_loop(monkeypatch)


@pytest.fixture
def interpreted(monkeypatch):
    in_python_too(monkeypatch)


def leaves(result):
    if isinstance(result, dict):
        result = list(result.values())
    return [y for r in result for y in leaves(r)] if isinstance(result, (tuple, list)) else [np.asarray(result)]


def agree(f, args, tolerance=1e-9, groups=True):
    """Both run f to the same numbers; the compiled function."""
    with np.errstate(all="ignore"):
        expected = leaves(rz.compile(f, backend="steps")(*args))
        g = rz.compile(f, backend="numba")
        found = leaves(g(*args))
    assert g.backend == "numba" and ("def loops" in g.source or not groups)
    for a, b in zip(expected, found, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
    return g


def single(args):
    return [np.asarray(x, np.float32) if np.ndim(x) else x for x in args]


# -- random programs --------------------------------------------------------------------------------------------------


@examples(0.6)
@given(seed=st.integers(0, 10**6))
def test_random_programs(seed):
    with pytest.MonkeyPatch.context() as patch:
        in_python_too(patch, 1 + seed % 3)
        f, args = random_function(seed, inputs=1 + seed % 2)
        agree(f, args, groups=False)
        agree(f, single(args), 5e-3, groups=False)


@examples(0.4)
@given(seed=st.integers(0, 10**6))
def test_gradients_of_random_programs(seed):
    with pytest.MonkeyPatch.context() as patch:
        in_python_too(patch, 1 + seed % 3)
        f, args = random_function(seed, inputs=1 + seed % 2, single=True)
        agree(rz.value_and_grad(lambda *xs: np.sum(np.sin(f(*xs)))), args, groups=False)


@pytest.mark.parametrize("seed", range(12))
def test_compiled_random_programs(small, seed):
    f, args = random_function(seed, depth=5, single=True, without=("loop", "cond", "fourier", "sort"))
    agree(rz.grad(lambda *xs: np.sum(np.sin(f(*xs)))), args, groups=False)


# -- groups -----------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
x, y, m = rng.normal(size=40), rng.normal(size=40), rng.normal(size=(6, 7))


def nests(g):
    return g.source.count("def loops")


PLACES = rz.relations.function(rz.seg(40), rz.seg(4), rng.integers(0, 4, size=40))
BACK = rng.integers(0, 5, size=40)
CASES = {
    "chain": (lambda x: np.sin(x) * np.exp(-x * x) + np.tanh(x), (x,), 1),
    "total": (lambda x: np.sum(np.sin(x) * x), (x,), 1),
    "value and sum": (lambda x: (np.sin(x), np.sum(np.sin(x))), (x,), 1),
    "square of a sum": (lambda x: np.sum(np.sin(x)) ** 2 * np.cos(x), (x,), None),
    "reversed": (lambda x: np.exp(x) * np.exp(x)[::-1], (x,), None),
    "reversed steps": (lambda x: np.exp(x[::-2]) - x[1::2], (x,), 1),
    "reversed output": (lambda x: (np.tanh(x), np.tanh(x)[::-1] * x), (x,), None),
    "part of an output": (lambda x: (np.sin(x), np.sin(x)[:20] * 2.0), (x,), None),
    "parts of two lengths": (lambda x: (np.exp(x)[:20] * 2.0, np.exp(x)[:30] * x[:30]), (x,), None),
    "gather": (lambda x: np.sin(x)[np.array([3, 3, 0, -1])] * np.arange(4.0), (x,), None),
    "gather of rows": (lambda m: np.sum(np.sin(m)[np.array([1, 1, 5])] ** 2, axis=0), (m,), None),
    "leading": (lambda m: np.sum(np.sin(m) * m, axis=0), (m,), 1),
    "trailing": (lambda m: np.sum(np.sin(m) * m, axis=1), (m,), 1),
    "middle": (lambda a: np.sum(np.sin(a) * a, axis=1), (rng.normal(size=(3, 4, 5)),), 1),
    "outer two": (lambda a: np.sum(np.sin(a) * a, axis=(0, 2)), (rng.normal(size=(3, 4, 5)),), 1),
    "both sums": (lambda m: (np.sum(np.sin(m), axis=0), np.sum(np.sin(m), axis=1), np.sin(m).sum()), (m,), 1),
    "broadcast": (lambda x, y: np.sum(np.sin(x[:, None] - y) * x[:, None], axis=1), (x, y), 1),
    "transposed": (lambda m: np.sin(m.T) + np.cos(m).T, (m,), 1),
    "reshaped": (lambda m: np.sin(m.reshape(2, 3, 7)) * 2.0 + np.cos(m).reshape(2, 3, 7), (m,), None),
    "flattened": (lambda m: np.sin(m).reshape(-1) * np.arange(42.0), (m,), None),
    "row softmax": (lambda m: np.exp(m) / np.sum(np.exp(m), axis=1, keepdims=True), (m,), None),
    "normalised rows": (lambda m: m / np.sqrt(np.sum(m * m, axis=1, keepdims=True)), (m,), None),
    "differences": (lambda x: np.sum(np.abs(x[1:] - x[:-1])), (x,), 1),
    "concatenated": (lambda x: np.concatenate([np.sin(x), x * x, np.zeros(3)]), (x,), None),
    "diagonal": (lambda m: np.diagonal(np.sin(m)) * 2.0, (m,), None),
    "matrix product between": (lambda m: np.tanh(np.sin(m) @ np.cos(m).T) * 2.0, (m,), None),
    "sum inside a product": (lambda x, y: np.einsum("i,j,i->j", np.sin(x), np.cos(y), x), (x, y), None),
    "scalars": (lambda x, s: s * np.sin(x) + s**2, (x, 0.7), 1),
    "constants": (lambda x: 0.1 * x + np.arange(40.0) * np.sin(x) - 3.0, (x,), 1),
    "where": (lambda x: np.where(x > 0.3, np.log(x), np.exp(x)), (x,), 1),
    "maxima": (lambda x, y: np.maximum(x, y) * np.clip(x, -0.5, 0.5) + np.minimum(x, 0.1), (x, y), 1),
    "maximum of rows": (lambda m: np.exp(m - np.max(m, axis=1, keepdims=True)), (m,), None),
    "minimum of columns": (lambda m: np.min(np.sin(m) * 3.0, axis=0), (m,), 1),
    "largest of all": (lambda m: np.max(np.sin(m) * m) * m, (m,), None),
    "added at places": (lambda x: rz.red(PLACES)(np.sin(x) * x), (x,), 1),
    "rows added at places": (lambda a: rz.red(PLACES)(np.sin(a) * a) * 2.0, (rng.normal(size=(40, 3)),), None),
    "gathered and added": (lambda a: rz.red(PLACES)(np.sin(a[BACK]) * x[:, None]), (rng.normal(size=(5, 3)),), None),
    "windows": (lambda x: np.sum(np.sin(np.lib.stride_tricks.sliding_window_view(x, 16)) ** 2, axis=1), (x,), None),
    "ones": (lambda a: np.sin(a) * np.sum(a * a, axis=0), (rng.normal(size=(1, 5, 1)),), None),
    "nothing": (lambda a: np.sum(np.sin(a) * a, axis=0), (np.zeros((0, 4)),), None),
    "no rows": (lambda a: np.sum(np.sin(a) * a, axis=1), (np.zeros((4, 0)),), None),
    "one number": (lambda a: np.sin(a) * a, (np.ones(1),), None),
}


@pytest.mark.parametrize("long", [1, 64])
@pytest.mark.parametrize("name", CASES)
def test_groups(monkeypatch, name, long):
    in_python_too(monkeypatch, long)
    f, args, count = CASES[name]
    g = agree(f, args)
    assert count is None or long == 1 or nests(g) == count
    agree(f, single(args), 1e-4)
    if all([np.size(a) for a in args]):
        agree(rz.grad(lambda *xs: sum([np.sum(np.sin(r)) for r in leaves_of(f(*xs))])), args)


def leaves_of(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", CASES)
def test_groups_compiled(small, name):
    f, args, _ = CASES[name]
    agree(f, args)


def test_values_of_pairs_are_never_stored(interpreted):
    """Distances of all pairs, their energy and its gradient: one loop nest over the pairs, nothing as large as them."""

    def energy(x):
        d = x[:, None] - x[None]
        return np.sum(1.0 / np.sqrt(np.sum(d * d, axis=2) + 0.1))

    g = agree(rz.grad(energy), (rng.normal(size=(30, 3)),))
    units = grouping.StepGroups(g.code.program).ordered()
    written = [slot for u in units for slot, _ in getattr(u, "stores", ())]
    assert written and max([np.prod(g.code.program.shapes[s]) for s in written]) < 30 * 30


def test_short_axes_are_written_out(interpreted):
    """Coordinates, cross products and concatenations beside a long axis: one loop nest, with sums over who sees what inside."""
    at = rng.integers(0, 4, size=900)

    def f(a, v):
        turned = np.cross(a[at], v)
        near = np.concatenate(
            [turned[:, :2] / (2.0 + turned[:, 2:] ** 2), np.sum(turned, axis=1, keepdims=True)], axis=1
        )
        return np.sum(np.sin(near) * v)

    args = rng.normal(size=(4, 3)), rng.normal(size=(900, 3))
    g = agree(rz.grad(f, argnums=(0, 1)), args)
    assert nests(g) == 1 and "for k" not in g.source and "for i1" not in g.source


def test_expensive_values_are_not_computed_again(interpreted):
    """exp at many pairs of positions: computed once for each, then read."""
    g = agree(
        lambda x, y: np.sum(np.exp(np.sin(x))[:, None] * np.exp(np.sin(y)) * np.cos(x[:, None] - y), axis=0), (x, y)
    )
    inside = [line for line in g.source.splitlines() if line.startswith("            ") and " exp(" in line]
    assert not inside


def test_no_group_depends_on_itself(interpreted):
    """A sum that goes around a call comes back to its terms later: two groups."""

    def f(m):
        s = np.sin(m)
        t = np.linalg.inv(np.eye(7) * 9.0 + np.sum(s, axis=0)[:, None] * 0.01)
        return s * np.sum(t), s.sum(axis=0)

    g = agree(f, (m,))
    assert nests(g) >= 2


# -- numbers ----------------------------------------------------------------------------------------------------------

UNARY = [n for n, r in RULES.items() if r.arity == 1 and n not in ("power", "sinc_derivative")]
BINARY = [n for n, r in RULES.items() if r.arity == 2]
ODD = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -3.0,
        1e-320,
        1e-10,
        30.0,
        -30.0,
        720.0,
        -760.0,
        1e300,
        np.inf,
        -np.inf,
        np.nan,
    ]
)


def test_every_primitive_of_one_number(small):
    from riesz.terms.primitives import Primitive

    some = [Primitive(RULES[n]) for n in UNARY] + [rz.power(k) for k in (2, 3, 4, -1, -2, 0.5, 1.5, -0.5)]

    def f(x):
        return tuple([p(x) for p in some[:25]])

    def g(x):
        return tuple([p(x) for p in some[25:]])

    for values in (ODD, np.random.default_rng(1).normal(size=200) * 3.0):
        for function in (f, g):
            agree(function, (values,), 1e-13)


def test_every_primitive_of_two_numbers(small):
    from riesz.terms.primitives import Primitive

    some = [Primitive(RULES[n]) for n in BINARY]
    a, b = np.meshgrid(np.delete(ODD, [8]), np.delete(ODD, [8]))
    agree(lambda a, b: tuple([p(a, b) for p in some]), (a.reshape(-1).copy(), b.reshape(-1).copy()), 1e-12)


def test_functions_of_our_own_are_right_to_a_few_units_in_the_last_place():
    from riesz.backends.numba.vector_math import FUNCTIONS

    r = np.random.default_rng(2)
    wide = np.concatenate([r.normal(size=4000) * s for s in (1e-9, 1e-3, 0.3, 1.0, 5.0, 100.0)])
    for name in ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos"):
        values = np.abs(wide) if name.startswith("log") else wide
        found = np.array([FUNCTIONS[name](v) for v in values])
        expected = getattr(np, name)(values.astype(np.longdouble))
        assert np.max(np.abs(found - expected) / np.spacing(np.abs(expected.astype(float)))) < 4.0, name


def test_extrema_keep_nan(small):
    values = np.array([[1.0, np.nan, 3.0], [2.0, 1.0, 0.0]])
    agree(lambda a: (np.max(a * 1.0 + 0.0 * a, axis=1), np.min(a * 2.0 + a, axis=0), np.max(np.sin(a))), (values,))


def test_sines_of_large_numbers(small):
    agree(
        lambda x: (np.sin(x) * np.exp(-x * x), np.sum(np.cos(x)), np.sum(np.sin(x) * x)),
        (np.array([1.0, 1e7, -3e15, 1e300, 0.0]),),
        1e-13,
    )


def test_branches_not_taken_leave_no_trace(small):
    values = np.array([-1.0, 0.0, 2.0, 0.5])

    def f(x):
        return np.sum(np.where(x > 0.0, np.log(x), 0.0) + np.where(x > 0.0, np.sqrt(x), x) * np.maximum(x, 0.2))

    assert np.isfinite(agree(rz.grad(f), (values,))(values)).all()


@pytest.mark.parametrize("kind", [np.float32, np.int64, bool, np.int32])
def test_kinds(small, kind):
    """What Numba does not compute as NumPy does is run step by step."""
    given = rng.integers(0, 3, size=40).astype(kind)
    agree(lambda a, x: (np.where(a > 0, x, 0.0) * a, a * 2, -x), (given, x), 1e-6)


def test_mixed_kinds(small):
    agree(lambda a, b: (a * b, np.sin(a) + b, np.sum(np.sin(a)) * b), (x.astype(np.float32), y), 1e-5)


def test_arrays_with_gaps(small):
    wide = rng.normal(size=(12, 21))
    g = rz.compile(lambda a: np.sin(a) * np.sum(a * a, axis=0), np.ones((6, 7)), backend="numba")
    for view in (wide[::2, ::3], wide[::-2, ::-3], np.asfortranarray(wide[:6, :7])):
        np.testing.assert_allclose(g(view), np.sin(view) * np.sum(view * view, axis=0))


# -- threads ----------------------------------------------------------------------------------------------------------


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(tuning, "NEST_OPERATIONS_PER_THREAD", 1)
    monkeypatch.setattr(tuning, "NEST_CHUNK_NUMBERS", 64)
    a = rng.normal(size=(1000, 30))
    f = rz.value_and_grad(lambda a: np.sum(np.tanh(a) * np.sum(np.exp(a), axis=0)))
    results = []
    for n in (1, 2, 3, 8):
        monkeypatch.setenv("RIESZ_THREADS", str(n))
        value, slope = rz.compile(f, backend="numba")(a)
        results.append((np.float64(value).tobytes(), slope.tobytes()))
    assert len(set(results)) == 1


def test_threads_may_call_at_once():
    g = rz.compile(lambda a: np.sum(np.sin(a) * a, axis=0), backend="numba")
    arrays = [rng.normal(size=(50, 100)) for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(g, arrays))
    for a, r in zip(arrays, found, strict=True):
        np.testing.assert_allclose(r, np.sum(np.sin(a) * a, axis=0))


# -- what is chosen ---------------------------------------------------------------------------------------------------


def test_equal_loops_are_compiled_once(small):
    loops.compiled.cache_clear()

    def f(x):
        for _ in range(6):
            x = np.cumsum(np.tanh(x) * x)
        return x

    g = agree(f, (x,))
    assert loops.compiled.cache_info().currsize <= 2 and nests(g) <= 2


def test_long_programs_are_cut_and_the_rest_is_left_to_array_code(interpreted, monkeypatch):
    monkeypatch.setattr(tuning, "NUMBA_COMPILED_OPERATIONS", 700)

    def f(x):
        for i in range(1000):
            x = np.sin(x) + float(i % 7)
        return x

    g = agree(f, (x,), 1e-6)
    assert "left to array code" in g.explain()


def test_a_missing_numba_is_named(monkeypatch):
    monkeypatch.setattr(numba_code, "numba_installed", lambda: False)
    with pytest.raises(VectorError, match=r"pip install 'riesz\[numba\]'"):
        rz.compile(np.sin, x, backend="numba")
    assert rz.compile(np.sin, x).backend == "numpy"


def test_a_numba_that_refuses_this_numpy_is_none():
    code = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            raise ImportError("Numba needs NumPy 1.0 or less")
sys.meta_path.insert(0, Broken())
import numpy as np, riesz as rz
g = rz.compile(lambda x: np.sum(np.sin(x) * np.exp(-x) * np.tanh(x)), np.ones(1 << 22))
assert g.backend == "numpy" and "riesz[numba]" in g.explain(), g.explain()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_auto_compiles_what_is_large():
    f = lambda x: np.sum(np.tanh(x) * np.exp(-x) + x * np.sin(x))  # noqa: E731
    assert rz.compile(f, np.ones(1000)).backend == "numpy"
    g = rz.compile(f, rz.R ** rz.seg(1 << 23))
    assert g.backend == "numba" and "loop nest" in g.explain()
