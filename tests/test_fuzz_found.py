"""What random programs have brought to light: each a class of programs that was wrong, or failed without a word."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import riesz as rz
from riesz.errors import TraceError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

X = np.array([[-2.0, 1.5, 0.5], [3.0, -0.5, 2.0]])
M = np.array([[True, False, True], [True, True, False]])
HOLES = np.where(M, X, np.nan)


def agree(f: Any, *xs: Any) -> None:
    """The value, its type and shape are NumPy's, and the derivative that of differences."""
    found, expected = rz.function(f)(*xs), f(*xs)
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if np.asarray(expected).dtype == float:
        d = [np.cos(np.arange(np.size(x))).reshape(np.shape(x)) for x in xs]
        h = 1e-6
        ahead, behind = [f(*[x + s * h * v for x, v in zip(xs, d, strict=True)]) for s in (1, -1)]
        moved = rz.jvp(f, tuple(map(np.asarray, xs)), tuple(d))[1]
        np.testing.assert_allclose(moved, np.nan_to_num((ahead - behind) / (2 * h)), rtol=1e-5, atol=1e-7)


OPTIONS = {
    "nansum, where": lambda x: np.nansum(x, where=M),
    "nansum, initial": lambda x: np.nansum(x, axis=0, initial=3.0),
    "nansum, dtype": lambda x: np.nansum(x, axis=0, dtype=np.float32),
    "nanprod, where": lambda x: np.nanprod(x, axis=1, where=M),
    "nanprod, initial": lambda x: np.nanprod(x, initial=2.0),
    "nanmax, where": lambda x: np.nanmax(x, where=M, initial=-9.0),
    "nanmax, initial": lambda x: np.nanmax(x, initial=100.0),
    "nanmin, initial": lambda x: np.nanmin(x, axis=0, initial=-50.0),
    "nanmean, where": lambda x: np.nanmean(x, axis=0, where=M),
    "nanmean, dtype": lambda x: np.nanmean(x, dtype=np.float32),
    "any, where": lambda x: np.any(x > 1.0, axis=1, where=M),
    "all, where": lambda x: np.all(x > -1.0, axis=0, where=M, keepdims=True),
    "add.reduce, where": lambda x: np.add.reduce(x, where=M),
    "add.reduce, initial": lambda x: np.add.reduce(x, axis=1, initial=2.0),
    "add.reduce, dtype by position": lambda x: np.add.reduce(x, 0, np.float32),
    "multiply.reduce, where": lambda x: np.multiply.reduce(x, where=M),
    "maximum.reduce, initial": lambda x: np.maximum.reduce(x, initial=1.0),
    "minimum.reduce, where": lambda x: np.minimum.reduce(x, axis=None, initial=1.0, where=M),
    "logaddexp.reduce, initial": lambda x: np.logaddexp.reduce(x, axis=1, initial=0.5, keepdims=True),
    "logical_or.reduce, where": lambda x: np.logical_or.reduce(x > 0, where=M),
    "add.accumulate, dtype": lambda x: np.add.accumulate(x, axis=1, dtype=np.float32),
    "cumulative_sum, dtype": lambda x: np.cumulative_sum(x, axis=0, dtype=np.float32),
    "stack, dtype": lambda x: np.stack([x, x], dtype=np.float32),
    "hstack, dtype": lambda x: np.hstack([x, x], dtype=np.float32),
    "vstack, dtype": lambda x: np.vstack([x, x], dtype=np.float32),
    "trace, dtype": lambda x: np.trace(x, dtype=np.float32),
    "average, returned": lambda x: np.average(x, axis=0, returned=True)[1],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_reductions_are_heard(name):
    if not name.startswith(("cumulative", "average")) or hasattr(np, "cumulative_sum"):
        agree(OPTIONS[name], X)
        if name.startswith("nan"):
            np.testing.assert_allclose(rz.function(OPTIONS[name])(HOLES), OPTIONS[name](HOLES), rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.clip(x, -1.0, 1.0, where=M),
        lambda x: np.maximum.reduce(x, dtype=np.float32),
        lambda x: np.logaddexp.reduce(x, where=M, initial=0.0),
        lambda x: np.logaddexp.accumulate(x, dtype=np.float32),
    ],
    ids=["clip", "maximum.reduce", "logaddexp.reduce", "accumulate"],
)
def test_options_that_are_not_known_are_refused(f):
    with pytest.raises(TraceError, match="know"):
        rz.function(f)(X)


NUMBERS = """
    np.sum(x, axis=0); np.sum(x, axis=-1, keepdims=True); np.sum(x > 0, axis=0); np.prod(x, axis=-1); np.max(x, axis=0); np.max(x, initial=5.0);
    np.min(x, axis=-1, initial=-5.0); np.argmax(x, axis=0); np.argmin(x, axis=-1, keepdims=True); np.cumsum(x, axis=0); np.cumprod(x, axis=-1);
    np.argsort(x); np.argpartition(x, 0, axis=0); np.any(x > 0, axis=0); np.count_nonzero(x, axis=-1); np.nansum(x, axis=0); np.nanmean(x, axis=-1);
    np.nanmax(x, axis=0); np.ptp(x, axis=0); np.take(x, 0, axis=0); np.repeat(x, 2, axis=-1); np.squeeze(x, 0); np.compress([True], x, axis=0);
    np.add.reduce(x); np.logaddexp.reduce(x, axis=-1); np.lexsort((x,)); np.prod(x > 0, axis=0); np.max(x > 0, axis=0)
"""


@pytest.mark.parametrize("text", [" ".join(t.split()) for t in NUMBERS.split(";")])
def test_the_axis_of_a_number_may_be_named_where_numpy_lets_it(text):
    agree(eval(f"lambda x: {text}", {"np": np}), np.array(2.0))


@pytest.mark.parametrize("f", [np.mean, np.var, np.median, np.flip, np.sort], ids=lambda f: f.__name__)
def test_and_is_an_error_where_numpy_has_one(f):
    with pytest.raises(np.exceptions.AxisError):
        rz.function(lambda x: f(x, axis=0))(np.array(2.0))


def test_a_map_through_a_step_with_several_results_can_be_solved_with_and_made_a_matrix():
    A = 2.0 * np.eye(3) + np.arange(9.0).reshape(3, 3) % 2
    f = lambda x: rz.loop(lambda c, a: (np.sin(c), a @ c), x, A)[1]  # noqa: E731
    L = rz.jacobian(f)(np.array([1.0, 2.0, 0.5]))
    b = np.array([1.0, -1.0, 2.0])
    np.testing.assert_allclose(L.to_dense() @ L.solve(b), b, atol=1e-9)
    g = lambda x, y: x @ rz.checkpoint(lambda u: u)(rz.grad(lambda u: np.sum(np.sin(x)))(y))  # noqa: E731
    assert rz.linearize(g, np.ones(3), np.zeros((3, 0)))[1].to_dense().shape == (0, 3)


def test_generated_code_for_jax_means_its_own_float():
    """A step called float, and an array of zeros, which is written with the type float."""
    f = lambda p: np.sum((p["w"] / (1 + np.abs(np.sum(p["w"] > 0, axis=0)))) ** 2)  # noqa: E731
    p = {"w": X.astype(np.float32), "b": np.ones(3, np.float32)}
    found, expected = rz.compile(rz.grad(f), p, backend="jax")(p), rz.grad(f)(p)
    np.testing.assert_allclose(found["w"], expected["w"], rtol=1e-5)
    np.testing.assert_array_equal(found["b"], np.zeros(3))


@pytest.mark.parametrize("name", ["fftn", "ifftn"])
def test_transforms_along_no_axis(name):
    f = getattr(np.fft, name)
    agree(lambda x: np.real(f(x)) + np.imag(f(1j * x)), np.array(2.0))
    agree(lambda x: np.imag(f(x * (1 + 2j), axes=())), X)


@pytest.mark.parametrize("q", [0.3, [0.3], np.array([0.3, 0.6]), np.float64(0.3), np.float32(0.3)], ids=repr)
@pytest.mark.parametrize("method", ["linear", "lower", "hazen", "midpoint"])
def test_quantiles_have_the_type_numpy_gives_them(q, method):
    x = X.astype(np.float32)
    for f in (np.quantile, np.nanquantile, np.percentile):
        found, expected = rz.function(lambda x: f(x, q, method=method))(x), f(x, q, method=method)  # noqa: B023
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert rz.grad(lambda x: np.sum(f(x, q, method=method)))(x).dtype == np.float32  # noqa: B023


KINDS = """
    np.cov(x); np.cov(x, x ** 2, dtype=np.float32); np.corrcoef(x, x ** 2); np.corrcoef(x, x ** 2, dtype=np.float32); np.polyval(x, x);
    np.polyval([1.0, 2.0], x); np.polyval(np.ones(2, np.float32), x); np.polyval(x, 2.0); np.logspace(x[0], x[1], 3, dtype=np.float32);
    np.geomspace(x[0], x[1], 3, dtype=np.float64); np.interp(x, np.arange(3.0), np.arange(3.0)); np.interp(x, np.sort(x), x)
"""


@pytest.mark.parametrize("text", [" ".join(t.split()) for t in KINDS.split(";")])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_statistics_and_polynomials_have_the_types_numpy_gives_them(text, kind):
    f = eval(f"lambda x: {text}", {"np": np})
    x = np.array([0.5, 1.5, 2.0], kind)
    found, expected = rz.function(f)(x), f(x)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert rz.grad(lambda x: np.sum(f(x)))(x).dtype == kind


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        (((5,), (2, 4)), 0),
        (((3, 4), (4,)), -1),
        (((3, 4), (3,)), 0),
        (((2, 3, 4), (3,)), 1),
        (((4, 5), (2, 3, 5)), 0),
        (((4,), (4,)), -1),
    ],
)
def test_the_trapezoidal_rule_takes_points_of_any_shape_that_numpy_takes(shapes, axis):
    y, x = [np.sin(1.0 + np.arange(np.prod(s))).reshape(s) for s in shapes]
    agree(lambda y, x: np.trapezoid(y, x, axis=axis), y, x)


def test_the_adjoint_of_a_map_with_an_argument_that_nothing_reads_is_a_matrix():
    def f(x, z):
        v = np.resize(np.nanmax(x, axis=-1), (3,))
        return np.nansum(np.resize(np.kron(v, v), (2, 3, 4)), axis=(0, -1))

    L = rz.linearize(f, X[:1], np.ones(4))[1]
    for A in (L, L.H, L.H @ L, L @ L.H, L.simplify().H):
        np.testing.assert_allclose(A.to_dense(), A.matmat(np.eye(A.shape[1])), atol=1e-12)
        np.testing.assert_allclose(A.to_sparse().toarray(), A.to_dense(), atol=1e-12)
        assert A.structure.nonzeros >= np.count_nonzero(A.to_dense())


def test_a_mask_of_many_steps_is_computed_with_all_that_it_is_made_of():
    def f(x):
        a = np.tanh(np.linalg.norm(x)) + 3.0 * np.eye(3)
        y = np.linalg.solve(a, a)
        return np.sum(np.choose(np.argsort(y, axis=-1) % 2, [y, y**2]))

    for x in (np.zeros((3, 0)), np.array([0.5, -1.0])):
        assert rz.hvp(f, (x,), (np.ones_like(x),)).shape == x.shape
        assert rz.compile(rz.grad(lambda x: np.sum(rz.grad(f)(x) ** 2)), x, backend="numpy")(x).shape == x.shape


# -- large runs -----------------------------------------------------------------------------------------------------------


def test_an_index_of_fewer_axes_than_the_choices_is_broadcast_as_numpy_does():
    v = np.linspace(-1.0, 1.0, 24).reshape(2, 3, 4)

    def f(v):
        return np.choose(np.sum(v > 0.0, axis=0) % 2, [v, v**2])

    np.testing.assert_array_equal(rz.function(f)(v), f(v))
    batch = np.stack([v, -v, 2.0 * v])
    np.testing.assert_array_equal(rz.vmap(f)(batch), np.stack([f(b) for b in batch]))


@pytest.mark.parametrize("operation", [np.remainder, np.fmod, lambda a, b: divmod(a, b)[1]])
def test_the_slope_of_a_remainder_has_the_whole_number_that_the_remainder_has(operation):
    rng = np.random.default_rng(0)
    b = rng.normal(size=200)
    k = np.round(5.0 * rng.normal(size=200)) + 0.5
    k[:100] = np.round(k[:100])
    a = k * b
    for x, y in ((b, b), (a, b), (np.nextafter(a, 0.0), b), (np.nextafter(a, 9e9), b)):
        whole = np.round((x - operation(x, y)) / y)
        found = rz.grad(lambda x, y: np.sum(operation(x, y)), (0, 1))(x, y)
        np.testing.assert_array_equal(found[0], np.ones(200))
        np.testing.assert_array_equal(found[1], -whole)
    np.testing.assert_array_equal(rz.jacobian(lambda x: operation(x, x))(b).to_dense(), np.zeros((200, 200)))


def test_a_power_with_exponent_0_is_constant_in_all_derivatives():
    x = np.array([0.0, 0.0, 0.0, 0.0, -1.5])
    k = np.array([0, 1, 2, 3, 0])

    def f(x):
        return np.sum(x ** (k + np.sum(x > 100.0)))

    np.testing.assert_array_equal(rz.grad(f)(x), [0.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(rz.hvp(f, (x,), (np.ones(5),)), [0.0, 0.0, 2.0, 0.0, 0.0])
    third = rz.jvp(lambda x: rz.hvp(f, (x,), (np.ones(5),)), (x,), (np.ones(5),))[1]
    np.testing.assert_array_equal(third, [0.0, 0.0, 0.0, 6.0, 0.0])


def test_interpolation_at_equal_knots_at_the_end_gives_the_last_value():
    for knots in ([1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 2.0], [0.0, 0.0, 1.0, 2.0]):
        xp, fp, x = np.array(knots), np.array([1.0, 2.0, 1.5, 7.0]), np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
        np.testing.assert_allclose(rz.function(lambda x, xp, fp: np.interp(x, xp, fp))(x, xp, fp), np.interp(x, xp, fp))
        np.testing.assert_allclose(
            rz.function(lambda x, fp, knots=knots: np.interp(x, knots, fp))(x, fp), np.interp(x, xp, fp)
        )


def test_numpy_functions_of_python_numbers_give_numbers_of_numpy():
    y = np.ones(2, np.float32)
    for g in (
        np.max,
        np.min,
        np.sum,
        np.mean,
        np.ptp,
        np.var,
        np.squeeze,
        np.transpose,
        np.flip,
        np.sort,
        np.real,
        np.copy,
        np.prod,
        np.median,
    ):
        f = partial(lambda g, x: g(x) + y, g)
        try:
            expected = f(1.0).dtype
        except np.exceptions.AxisError:
            continue
        assert rz.function(f)(1.0).dtype == expected, g


def test_derivatives_inside_traces_have_the_types_of_what_they_belong_to():
    def wide(u):
        return np.float64(0.5) + u

    for n in (0, 2):
        x = np.ones((n, 2), np.float32)
        assert rz.function(lambda x: rz.vjp(wide, x)[1](np.ones(x.shape))[0])(x).dtype == np.float32
        assert rz.function(lambda x: rz.jvp(wide, (x,), (x,))[1])(x).dtype == np.float64
        assert (
            rz.function(lambda x: rz.jvp(lambda u: x, (x.astype(float),), (x.astype(float),))[1])(x).dtype == np.float32
        )
        assert (
            rz.function(lambda x: rz.hvp(lambda u: np.sum(np.sin(wide(u))), (x,), (x.astype(float),)))(x).dtype
            == np.float32
        )


def test_what_cancels_may_be_rounded_differently():
    x = np.array([-1.7])

    def f(x):
        return np.cross(np.resize(x, (4, 3)), np.resize(x, (3,)))

    np.testing.assert_allclose(rz.function(f)(x), np.zeros((4, 3)), atol=1e-15)
    with pytest.raises(rz.TraceError, match="does not compute the same"):
        rz.function(lambda x: x * (1.0 if type(x) is np.ndarray else 1.0001) * 1e-6)(x)


def test_compiled_gradients_read_what_loops_leave_behind_also_after_selections():
    def chained(x):
        c = np.clip(rz.loop(lambda c, _: (np.tanh(c) + 0.5 * c, np.sum(c)), x, length=3)[0], -0.5, 0.5 + x**2)
        return np.sum(np.sin(rz.fori_loop(0, 3, lambda _, u: np.tanh(c) + 0.5 * u, c) ** 3))

    def stacked(x):
        rows = rz.loop(lambda u, w: (np.tanh(np.zeros(2) + u[0]) + 0.5 * u, np.zeros(2) + u[0]), x, x)[1]
        slope = rz.grad(lambda u: np.sum(np.sin(1.5 * u)))(rows)
        return np.sum(np.sin(np.where(slope > 0, np.log(slope), 0.0)))

    for f, x in ((chained, np.linspace(-1.0, 1.0, 12).reshape(3, 4)), (stacked, np.array([0.3, 0.7]))):
        for backend in ("numpy", "auto"):
            np.testing.assert_allclose(rz.compile(rz.grad(f), x, backend=backend)(x), rz.grad(f)(x), atol=1e-14)


def test_a_number_of_which_nothing_is_taken_has_a_map():
    def f(x):
        return (np.sum(np.sin(x)) - x.mean())[False]

    for n in (0, 2):
        L = rz.linearize(f, np.zeros(n))[1]
        assert L.to_dense().shape == (0, n)
        np.testing.assert_array_equal(L.H(np.zeros(0)), np.zeros(n))


def test_singular_matrices_in_derivatives_are_refused_with_a_sentence_that_numpy_code_catches_too():
    x = np.array([[[0.0, -1.0]]])
    with pytest.raises(rz.SolveError, match="full rank") as caught:
        rz.jvp(lambda x: np.linalg.qr(x)[0], (x,), (np.ones((1, 1, 2)),))
    assert isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0, 0), (3, 0, 2)])
def test_norms_of_matrices_without_elements_are_0(shape):
    for k in (None, "fro", "nuc", 1, 2, np.inf):
        f = partial(np.linalg.norm, ord=k, axis=(-2, -1))
        np.testing.assert_array_equal(rz.function(f)(np.zeros(shape)), np.zeros(shape[:-2]))
        assert rz.jacobian(f)(np.zeros(shape)).to_dense().shape == (int(np.prod(shape[:-2])), 0)
    assert rz.function(lambda x: np.linalg.norm(x, np.inf))(np.zeros(0)) == 0.0


def test_functions_of_numbers_and_of_nothing_as_numpy_has_them():
    assert rz.function(lambda x: np.diff(x, n=0))(np.array(2.0)) == 2.0
    np.testing.assert_array_equal(rz.function(lambda x: np.cumulative_sum(x))(np.array(2.0)), [2.0])
    np.testing.assert_array_equal(
        rz.function(lambda x: np.cumulative_prod(x, include_initial=True))(np.array(2.0)), [1.0, 2.0]
    )

    def f(x):
        return np.nanquantile(x, [0.2, 0.7], axis=1)

    assert rz.function(f)(np.zeros((0, 3, 4))).shape == (0, 4)


def test_windows_may_slide_along_an_axis_twice():
    x = np.arange(6.0)
    agree(lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(0, -1)), x)
    agree(lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 1, 2), axis=(1, 0, 1)), x.reshape(2, 3))


@pytest.mark.parametrize("choice", [np.fmax, np.minimum, np.logaddexp2, np.hypot])
def test_one_number_in_every_component_keeps_its_shape_beside_another_shape(choice):
    column, x = np.array([[1.5], [0.5]]), np.array([1.0, 2.0, 0.5])
    for part in (
        lambda x: np.broadcast_to(rz.cond(x[0] > 0.0, np.sin, np.cos, x[1]), 3),
        lambda x: np.broadcast_to(rz.fori_loop(0, 2, lambda _, c: np.sin(c), x[1]), 3),
        lambda x: rz.vmap(rz.grad(lambda u: np.sum(np.sin(x))))(x),
    ):
        found = rz.function(lambda x, part=part: choice(part(x), column))(x)
        np.testing.assert_allclose(found, choice(part(x), column))
        assert found.shape == (2, 3)


@pytest.mark.parametrize(
    "f, x",
    [
        (lambda x: np.full(3, x), [[2.0]]),
        (lambda x: np.full((2, 3), x), [[[2.0, 1.0, 3.0]]]),
        (lambda x: np.full_like(np.zeros(3), x), [[2.0]]),
        (lambda x: np.insert(np.arange(3.0), 1, x), [[2.0]]),
        (lambda x: np.insert(x, 1, np.ones((1, 1, 1))), [1.0, 2.0]),
        (lambda x: np.insert(np.ones((3, 2)), [1, 2], x, axis=0), [[[2.0, 3.0]]]),
    ],
    ids=["full", "full of rows", "full_like", "insert", "insert a constant", "insert rows"],
)
def test_what_is_written_may_have_further_axes_of_length_1(f, x):
    agree(f, np.array(x))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_maps_between_empty_arrays_of_several_axes_are_simplified(shape):
    L = rz.jacobian(np.cumsum)(np.zeros(shape))
    assert L.simplify().to_dense().shape == L.gram().simplify().to_dense().shape == (0, 0)


AFAR = {
    "an index": lambda x: np.take(x, (10.0 * x[0]).astype(int)),
    "an inverse": lambda x: np.linalg.inv(np.outer(x, x))[0, 0],
    "a factor": lambda x: np.linalg.cholesky(-np.outer(x, x))[0, 0],
}


@pytest.mark.parametrize("name", AFAR)
def test_a_branch_not_taken_computes_nothing_from_what_it_closes_over(name):
    far, x = AFAR[name], np.array([3.0, 1.0])
    f = lambda x: rz.cond(x[0] > 0.0, lambda: x[0] * x[1], lambda: far(x))  # noqa: E731
    agree(f, x)
    for gradient in (rz.grad(f)(x), rz.compile(rz.grad(f))(x)):
        np.testing.assert_allclose(gradient, [1.0, 3.0])
    inner = lambda x: rz.cond(x[0] > 0.0, lambda: rz.grad(lambda t: t * np.sum(np.sin(x)))(1.0), lambda: far(x))  # noqa: E731
    np.testing.assert_allclose(rz.grad(inner)(x), np.cos(x))


def test_an_index_outside_its_axis_in_a_branch_that_vmap_computes_is_named():
    f = lambda x: rz.cond(x[0] > 0.0, lambda x: x[1], lambda x: np.take(x, (10.0 * x[0]).astype(int)), x)  # noqa: E731
    with pytest.raises(IndexError, match=r"a computed index is 30, outside an axis of length 2.*np.clip"):
        rz.vmap(f)(np.array([[3.0, 1.0], [3.0, 1.0]]))


def second_by_steps(f: Any, x: Any, u: Any, v: Any, h: float = 1e-4) -> Any:
    """The slope along v of the slope along u, which is exact."""
    ahead, behind = [rz.jvp(f, (x + s * h * v,), (u,))[1] for s in (1, -1)]
    return (ahead - behind) / (2 * h)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("side", ["right", "left"])
def test_polar_factors_are_smooth_at_equal_singular_values(shape, part, side):
    sl = pytest.importorskip("scipy.linalg")
    f = lambda x: sl.polar(x, side)[part]  # noqa: E731
    x = 2.0 * np.eye(*shape)
    u, v = [np.random.default_rng(k).normal(size=shape) for k in (1, 2)]
    found = rz.jvp(lambda x: rz.jvp(f, (x,), (u,))[1], (x,), (v,))[1]
    np.testing.assert_allclose(found, second_by_steps(f, x, u, v), atol=1e-6)
    H = rz.hessian(lambda x: np.sum(np.sin(f(x))))(x).to_dense()
    assert np.isfinite(H).all()
    np.testing.assert_allclose(H, H.T, atol=1e-12)


def test_the_polar_factor_of_a_singular_matrix_has_its_value_and_no_derivative():
    sl = pytest.importorskip("scipy.linalg")
    x = np.array([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(rz.function(lambda x: sl.polar(x)[0])(x), sl.polar(x)[0])
    assert not np.isfinite(rz.jacobian(lambda x: sl.polar(x)[0])(x).to_dense()).any()


@pytest.mark.parametrize("x", [0.0, -1.0, -2.0, -3.0, -1.3, 0.5, 0.7, 2.5])
def test_derivatives_of_rgamma_of_every_order_at_its_zeros(x):
    """Against Cauchy's formula, of an entire function."""
    s = pytest.importorskip("scipy.special")
    circle = np.exp(2j * np.pi * np.arange(64) / 64)
    f, factorial = rz.function(lambda x: s.rgamma(x)), 1.0
    for n in range(1, 5):
        f, factorial = rz.grad(f), factorial * n
        wanted = factorial * np.mean(s.rgamma(x + 0.4 * circle) * circle**-n).real / 0.4**n
        np.testing.assert_allclose(f(x), wanted, rtol=1e-9, atol=1e-9)


def test_eigenvalues_equal_up_to_rounding_count_as_equal():
    """A quotient with a difference that is rounding would be a number without meaning."""
    sl = pytest.importorskip("scipy.linalg")
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    x = q @ np.diag([2.0, 2.0, 5.0]) @ q.T
    x = (x + x.T) / 2
    b = np.diag([1.0, 2.0, 3.0])
    for f, at in (
        (lambda x: np.sum(np.linalg.eigvalsh(x)), x),
        (lambda x: np.sum(np.linalg.svdvals(x)), x),
        (lambda x: np.sum(sl.eigh(x, b)[0]), 1.3 * b),
        (lambda x: np.sum(sl.eigh(b, x)[0]), b),
    ):
        assert np.isfinite(rz.grad(f)(at)).all()
        assert np.isnan(rz.hvp(f, (at,), (np.ones((3, 3)),))).any()


NUMBER = {
    "value": lambda f, x: rz.function(f)(x),
    "grad": lambda f, x: rz.grad(f)(x),
    "value_and_grad": lambda f, x: rz.value_and_grad(f)(x)[0],
    "vjp": lambda f, x: rz.vjp(f, x)[1](x)[0],
    "jvp": lambda f, x: rz.jvp(f, (x,), (x,))[1],
    "hvp": lambda f, x: rz.hvp(f, (x,), (x,)),
    "a map": lambda f, x: rz.jacobian(f)(x)(x),
    "its adjoint": lambda f, x: rz.jacobian(f)(x).H(x),
    "its solution": lambda f, x: rz.jacobian(f)(x).solve(x),
    "linearize": lambda f, x: rz.linearize(f, x)[1](x),
}


@pytest.mark.parametrize(
    "x", [2.0, np.float64(2.0), np.array(2.0), np.float32(2.0), np.array(2.0, np.float32)], ids=repr
)
@pytest.mark.parametrize("name", NUMBER)
def test_one_number_takes_the_type_of_what_it_meets_in_traces_as_outside(name, x):
    single = np.ones(2, np.float32)
    f = lambda x: NUMBER[name](lambda t: t**2 + np.sin(t), x) * single  # noqa: E731
    assert rz.function(f)(x).dtype == f(x).dtype == np.float32


# -- infinities and nan ---------------------------------------------------------------------------------------------------

INF, NAN = np.inf, np.nan
ODD = np.array([0.0, 1.0, 1.0, -1.0, 0.5, 2.0, INF, -INF, NAN])


def odd(rng: Any, *shape: int) -> Any:
    """Numbers with infinities and nan among them."""
    return np.where(rng.random(shape) < 0.4, rng.choice(ODD, shape), rng.normal(size=shape))


def same_value(f: Any, *xs: Any) -> None:
    """nan and infinities are where NumPy has them."""
    found, expected = rz.function(f)(*xs), f(*xs)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


METHODS = [
    "linear",
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
]


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_have_nan_where_numpy_has_it(method):
    rng = np.random.default_rng(0)
    for q in (0.5, 0.25, 1.0, [0.1, 0.5, 0.9], [0.0, 1.0], [0, 1], 0.3):
        for _ in range(6):
            x = odd(rng, 2, int(rng.integers(1, 8)))
            for g in (np.quantile, np.nanquantile):
                same_value(partial(g, q=q, axis=-1, method=method), x)
                same_value(partial(g, q=q, method=method), np.where(np.isnan(x), INF, x))


def test_quantiles_at_any_number_do_not_fail_in_a_branch_that_is_not_taken():
    x = np.array([0.5, 0.8, INF, NAN, -3.0])

    def f(t):
        return rz.cond(t > 0.2, np.tanh, lambda w: np.percentile(np.array([1.0, 2.0, 4.0]), 50.0 + 10.0 * w), t)

    found = rz.vmap(f)(x[:3])
    np.testing.assert_allclose(found, np.tanh(x[:3]))
    np.testing.assert_allclose(
        rz.function(lambda q: np.percentile(np.array([1.0, 2.0, 4.0]), q))(np.array([0.0, 50.0, 100.0])),
        [1.0, 2.0, 4.0],
    )


def test_medians_and_partitions_have_nan_where_numpy_has_it():
    rng = np.random.default_rng(1)
    for _ in range(40):
        x = odd(rng, 3, int(rng.integers(1, 8)))
        for g in (np.median, np.nanmedian):
            same_value(partial(g, axis=-1), x)
            same_value(g, x)
        same_value(partial(np.partition, kth=int(rng.integers(x.shape[1]))), x)


def test_interpolation_has_nan_where_numpy_has_it():
    rng = np.random.default_rng(2)
    for _ in range(60):
        knots = odd(rng, int(rng.integers(1, 7)))
        knots = np.sort(np.where(np.isnan(knots), 0.25, knots))
        heights, at = odd(rng, len(knots)), np.concatenate([odd(rng, 5), knots])
        same_value(np.interp, at, knots, heights)
        same_value(partial(np.interp, left=3.0, right=INF), at, knots, heights)
        same_value(lambda x, xp=knots, fp=heights: np.interp(x, xp, fp), at)
        same_value(lambda fp, x=at, xp=knots: np.interp(x, xp, fp), heights)
    slope = rz.grad(lambda x: np.interp(x, np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, INF])))
    assert slope(0.5) == slope(0.0) == 2.0
    assert slope(1.0) == 0.0  # the value is that of the knot


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_odd_borders_have_nan_where_numpy_has_it(mode):
    rng = np.random.default_rng(3)
    for _ in range(40):
        x = odd(rng, 2, int(rng.integers(1, 6)))
        widths = rng.integers(0, 12, (2, 2)).tolist()
        same_value(partial(np.pad, pad_width=widths, mode=mode, reflect_type="odd"), x)
    x = rng.normal(size=(2, 3))
    agree(lambda x: np.pad(x, ((1, 0), (7, 5)), mode=mode, reflect_type="odd"), x)


@pytest.mark.parametrize(
    ("shapes", "named"),
    [
        (((3,), (3,)), {}),
        (((2,), (3,)), {}),
        (((3,), (2,)), {}),
        (((2,), (2,)), {}),
        (((4, 3), (5, 4, 2)), {}),
        (((3, 4), (4, 3)), {"axisa": 0, "axisc": 0}),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_vector_products_multiply_no_more_than_numpy_does(shapes, named):
    rng = np.random.default_rng(4)
    for _ in range(20):
        same_value(partial(np.cross, **named), *[odd(rng, *s) for s in shapes])
    agree(partial(np.cross, **named), *[rng.normal(size=s) for s in shapes])


def test_derivatives_by_hypergeometric_functions_come_back_from_infinity():
    special = pytest.importorskip("scipy.special")
    x = np.array([-INF, INF, -1.0, 0.0, NAN])
    near = np.exp(-1.0)
    np.testing.assert_allclose(rz.jvp(special.exprel, (x,), (np.ones(5),))[1], [0.0, INF, 1.0 - 2.0 * near, 0.5, NAN])
    np.testing.assert_allclose(rz.hvp(lambda x: np.sum(special.exprel(x)), (x[:2],), (np.ones(2),)), [0.0, INF])
    assert rz.grad(lambda x: special.hyp1f1(2.0, 3.0, x))(-INF) == 0.0


def all_forms(f: Any, *xs: Any, wanted: Any = None) -> None:
    """Applied, transposed, dense, sparse, simplified and multiplied the map is the same, and finite."""
    L = rz.linearize(f, *xs)[1]
    D = L.to_dense()
    assert np.isfinite(D).all()
    if wanted is not None:
        np.testing.assert_allclose(D, wanted, atol=1e-12)
    S = L.simplify()
    for found in (L.H.to_dense().T, L.to_sparse().toarray(), S.to_dense(), S.H.to_dense().T, S.to_sparse().toarray()):
        np.testing.assert_allclose(found, D, atol=1e-12)
    np.testing.assert_allclose(L.gram().to_dense(), D.T @ D, atol=1e-12)
    np.testing.assert_allclose((L @ L.H).to_dense(), D @ D.T, atol=1e-12)
    np.testing.assert_allclose(L.column_norms(), np.linalg.norm(D, axis=0), atol=1e-12)
    np.testing.assert_allclose(L.row_norms(), np.linalg.norm(D, axis=1), atol=1e-12)
    v = np.cos(np.arange(D.shape[1]))
    for M in (L, S):
        np.testing.assert_allclose(M.matvec(v), D @ v, atol=1e-12)
    rows = np.arange(D.shape[0])

    def component(i: int, *ys: Any) -> Any:
        return np.ravel(f(*ys))[i]

    grads = [rz.grad(partial(component, i), tuple(range(len(xs))))(*xs) for i in rows]
    np.testing.assert_allclose([np.concatenate([np.ravel(g) for g in row]) for row in grads], D, atol=1e-12)


ROWS = np.array([[-INF, 2.0], [0.3, 0.5], [INF, 0.1]])
UNTAKEN = {
    "cond": lambda x: rz.vmap(lambda t: rz.cond(t[1] > 0.0, lambda u: u[1] ** 2, lambda w: np.sum(w * w), t))(x),
    "cond, closure": lambda x: rz.vmap(
        lambda t: rz.cond(t[1] > 0.0, lambda u: u[1] ** 2, lambda w: np.sum(np.sin(x)), t)
    )(x),
    "cond, finite where it is taken": lambda x: rz.vmap(
        lambda t: rz.cond(np.sum(t) > 0.2, np.tanh, lambda w: 0.5 * np.tanh(w), t)
    )(x),
    "switch": lambda x: rz.vmap(
        lambda t: rz.switch(
            (t[1] > 0.0).astype(int) * 2, [lambda w: np.sum(w * w), lambda w: w[0] * w[0], lambda u: u[1] ** 2], t
        )
    )(x),
    "in a loop": lambda x: rz.vmap(
        lambda t: rz.fori_loop(0, 2, lambda _, u: rz.cond(t[1] > 0.0, lambda u: 0.5 * u, lambda w: w * t[0], u), t[1])
    )(x),
}


@pytest.mark.parametrize("name", UNTAKEN)
def test_a_branch_not_taken_leaves_no_trace_under_vmap(name):
    f = UNTAKEN[name]
    all_forms(f, ROWS)
    expected = rz.grad(lambda x: np.sum(f(x)))(ROWS)
    np.testing.assert_allclose(rz.compile(rz.grad(lambda x: np.sum(f(x))), ROWS, backend="numpy")(ROWS), expected)
    y, back = rz.vjp(f, ROWS)
    np.testing.assert_allclose(back(np.ones_like(y))[0], expected)


BLOCKS = {
    "a result of a loop that is not read": (
        lambda x: rz.loop(
            lambda u, w: (np.tanh(u) + 0.5 * u, np.sum(np.sin(u))), np.resize(x, (2, 3)), np.resize(x, (2, 3))
        )[0],
        np.array([INF]),
    ),
    "a carry that is not read": (
        lambda x: rz.loop(lambda u, w: (0.5 * u + 0.1 * np.sum(np.sin(w)), w), x, x)[1],
        np.array([[-INF]]),
    ),
    "a constant that is not read": (
        lambda x: np.tanh(
            rz.loop(lambda c, _: (np.tanh(x) + 0.5 * c + 0.0 * len([np.sum(np.sin(x))]), np.sum(c)), x, length=3)[0]
        ),
        np.array([0.5, -INF]),
    ),
    "a selection before a call": (
        lambda x: np.tanh(rz.checkpoint(lambda u: u**-1)(np.maximum(x, 0.0))),
        np.array([1.1, -1.1]),
    ),
    "a selection before a loop": (
        lambda x: rz.fori_loop(0, 3, lambda _, u: np.tanh(np.maximum(x, 0.0) ** -1) + 0.5 * u, np.zeros(2)),
        np.array([1.1, -1.1]),
    ),
    "a selection before a call and a loop": (
        lambda x: (lambda v: rz.fori_loop(0, 3, lambda _, u: np.tanh(v[np.argsort(v)]) + 0.5 * u, np.zeros(2)))(
            rz.checkpoint(lambda u: np.maximum(x, 0.0) ** -1)(np.maximum(x, 0.0))
        ),
        np.array([1.1, -1.1]),
    ),
    "an extremum that is nan": (
        lambda x: (lambda v: rz.fori_loop(0, 3, lambda _, u: np.tanh(v) + 0.5 * u, v))(
            np.amax(rz.loop(lambda c, _: (np.tanh(x) + 0.5 * c, np.sum(c)), x, length=3)[1])
        ),
        np.array([[-0.4, -INF], [INF, 0.1]]),
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_infinite_coefficients_in_and_around_blocks_meet_no_place_that_nothing_reaches(name):
    f, x = BLOCKS[name]
    all_forms(f, x)


def test_the_matrix_of_a_map_with_blocks_has_nan_only_where_a_number_meets_it():
    def f(x):
        return rz.vmap(lambda t: rz.cond(t > 1.0, np.tanh, lambda u: u * u, t))(x)

    x = np.array([INF, 0.5, -INF])
    L = rz.jacobian(f)(x)
    for M in (L.to_dense(), L.H.to_dense().T, L.to_sparse().toarray(), L.simplify().to_dense()):
        np.testing.assert_array_equal(M, np.diag([0.0, 1.0, -INF]))

    def g(x):
        return rz.fori_loop(0, 2, lambda _, u: 0.5 * u + 0.0 * x, np.mod(x, 1.3 + np.tanh(x)))

    L = rz.jacobian(g)(np.array([0.5, -INF]))  # at −∞ a number that is 0 meets nan
    assert np.isnan(L.to_dense()[1, 1]) and np.isnan(L(np.ones(2))[1])
    assert np.isfinite(L.to_dense().ravel()[:3]).all()


def test_an_extremum_that_is_nan_has_no_shares_in_compiled_loops():
    pytest.importorskip("numba")

    def f(x):
        return np.min(rz.fori_loop(0, 3, lambda _, u: 0.5 * u + 0.1 * np.sum(np.sin(x)), x))

    x = np.array([1.0, INF])
    np.testing.assert_array_equal(rz.compile(rz.grad(f), x, backend="numba")(x), np.zeros(2))


BITS = np.array([True, False, True])
SMALL = np.array([[3, 1, 2], [0, 7, 5]], np.uint8)
KINDS_OF_NUMBERS = {
    "square of truth values": (np.square, BITS),
    "their second power": (lambda x: x**2, BITS),
    "their second power by np.power": (lambda x: np.power(x, 2), BITS),
    "their conjugates": (np.conj, BITS),
    "rounded truth values": (np.round, BITS),
    "their differences": (lambda x: np.diff(x, n=2, prepend=True), BITS),
    "differences with a number": (lambda x: np.diff(x, prepend=1), BITS),
    "linspace of truth values": (lambda x: np.linspace(0, x, 3), BITS),
    "logaddexp.reduce of truth values": (np.logaddexp.reduce, BITS),
    "logaddexp.accumulate of small integers": (np.logaddexp.accumulate, SMALL),
    "trapezoid at truth values": (lambda x: np.trapezoid(np.arange(3.0), x), BITS),
    "sum of unsigned": (np.sum, SMALL),
    "sum of unsigned over an axis, masked": (lambda x: np.sum(x, axis=0, where=[[True], [False]]), SMALL),
    "product of unsigned": (lambda x: np.prod(x, axis=1), SMALL),
    "cumsum of unsigned": (np.cumsum, SMALL),
    "cumprod of unsigned": (lambda x: np.cumprod(x, axis=1), SMALL),
    "trace of unsigned": (np.trace, SMALL),
    "linspace of unsigned, downwards": (lambda x: np.linspace(x[0], x[1], 4), SMALL),
    "power of an integer matrix": (lambda x: np.linalg.matrix_power(x[:, :2], 3), SMALL),
    "power of a matrix of truth values": (lambda x: np.linalg.matrix_power(x[:, :2] > 0, 2), SMALL),
    "zeroth power of an integer matrix": (lambda x: np.linalg.matrix_power(x[:, :2], 0), SMALL),
    "an element as a quantile": (lambda x: np.quantile(x, [0.2, 0.7], method="lower"), SMALL),
    "a nearest percentile": (lambda x: np.percentile(x, 40, axis=1, method="nearest"), SMALL),
    "copysign with a number": (lambda x: np.copysign(x, -1), SMALL),
    "arctan2 with a number": (lambda x: np.arctan2(x, 1), SMALL.astype(np.int16)),
    "angle": (np.angle, SMALL.astype(np.int8)),
    "geomspace": (lambda x: np.geomspace(x, 4 * x, 3), np.float32(1.5)),
    "count of an average": (lambda x: np.average(x, axis=0, returned=True)[1], SMALL.astype(np.float32)),
}


@pytest.mark.parametrize("name", KINDS_OF_NUMBERS)
def test_types_of_functions_of_integers_and_truth_values(name):
    f, x = KINDS_OF_NUMBERS[name]
    found, expected = rz.function(f)(x), f(x)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3 if np.asarray(expected).dtype == np.float16 else 1e-6)


WITHOUT_AXES = {
    "x[..., 0]": lambda x: x[0][..., 0],
    "x[0, ..., 0]": lambda x: x[0, ..., 0],
    "interp": lambda x: np.interp(x[0, 0], [0.0, 1.0], [0.0, 1.0]),
    "nan_to_num": lambda x: np.nan_to_num(x[0, 0]),
    "broadcast_to": lambda x: np.broadcast_to(x[0, 0], ()),
    "full": lambda x: np.full((), x[0, 0]),
    "piecewise": lambda x: np.piecewise(x[0, 0], [x[0, 0] > 0], [2.0, 3.0]),
    "i0": lambda x: np.i0(x[0, 0]),
    "roll": lambda x: np.roll(x[0, 0], 1),
    "tensordot": lambda x: np.tensordot(x, x, 2),
    "dot": lambda x: np.dot(x[0], x[0]),
}


@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_what_has_no_axes_is_an_array_or_a_number_as_in_numpy(name):
    f, asked = WITHOUT_AXES[name], []

    def g(x):
        y = f(x)
        asked.append((isinstance(y, np.ndarray), isinstance(y, np.floating), np.isscalar(y), hasattr(y, "__len__")))
        return y

    g(np.abs(X))
    rz.function(g)(np.abs(X))
    assert asked[0] == asked[1]


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_with_a_traced_step(order):
    agree(lambda x, h: np.gradient(x, h, axis=1, edge_order=order), X, np.array(0.5))
    with pytest.raises(TraceError, match=r"np.gradient at traced points"):
        rz.function(lambda x: np.gradient(x, x**2))(np.arange(1.0, 6.0))


S = np.array([1.0, 2.0, 4.0], np.float32)
BESIDE = {
    "dot": lambda x, k: np.dot(k, x),
    "inner": lambda x, k: np.inner(x, k),
    "tensordot": lambda x, k: np.tensordot(k, x, 0),
    "einsum": lambda x, k: np.einsum("i,->i", x, k),
    "multiply.outer": lambda x, k: np.multiply.outer(x, k),
    "clip of a number": lambda x, k: np.clip(k, x, None),
    "clip by a number": lambda x, k: np.clip(x, k, None),
    "copysign": lambda x, k: np.copysign(x, k),
    "heaviside": lambda x, k: np.heaviside(x, k),
    "quantile": lambda x, k: np.quantile(x, k / 10),
    "percentile": lambda x, k: np.percentile(x, k),
    "//": lambda x, k: k // x,
    "divmod": lambda x, k: divmod(k, x[0])[0],
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_number_of_python_beside_float32(name):
    f, k = BESIDE[name], 1.5
    expected = np.asarray(f(S, k))
    for g, xs in ((f, (S, k)), (lambda x: f(x, k), (S,)), (lambda k: f(S, k), (k,))):
        found = np.asarray(rz.function(g)(*xs))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_fourier_transforms_of_float16_go_back_in_float16():
    x = np.array([1.0, 2.25, 4.0], np.float16)
    back = rz.vjp(lambda x: np.sum(np.fft.rfft(x).real * np.arange(2, dtype=np.float16)), x)[1]
    (found,) = back(np.float16(1.0))
    np.testing.assert_allclose(found, [1.0, -0.5, -0.5], rtol=1e-2)


def test_a_guard_that_only_other_guards_read_is_part_of_their_masks():
    def f(x):
        v = np.average(x["w"], weights=x["w"])
        u = np.sum(np.where(x["b"] > 0, np.sqrt(x["b"]) * np.log(x["b"]), 0.0))
        chosen = rz.hvp(lambda z: np.sum(np.sin(np.where(z > 0, z, z))), (u,), (np.sin(u),)) > 0.2
        return np.where(chosen & (v > 0), v, 1.0)

    x = {"w": np.array([1.0]), "b": np.array([1.0])}
    y, dy = rz.jvp(f, (x,), (x,))
    assert (y, dy) == (1.0, 0.0)


@pytest.mark.parametrize("function", [np.max, np.min])
@pytest.mark.parametrize("axis", [None, 1])
def test_extrema_of_nothing_keep_float32(function, axis):
    x = np.zeros((3, 0), np.float32)
    found = rz.function(lambda x: function(x, axis=axis, initial=0.5))(x)
    assert np.asarray(found).dtype == np.float32
    np.testing.assert_array_equal(found, function(x, axis=axis, initial=0.5))


def test_gathers_of_nothing_at_computed_positions_in_jax():
    x = np.zeros((0, 3))
    f = lambda x: x[np.argsort(x)]  # noqa: E731
    assert rz.compile(f, x, backend="jax")(x).shape == f(x).shape == (0, 3, 3)
