"""Sorting, order statistics, interpolation and gathers, against NumPy (values) and JAX (derivatives); finite differences where JAX has no answer."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import sampled

import riesz as rz
from riesz.errors import TraceError
from riesz.ops.op import Combination, Reduction, Reshape
from riesz.ops.opaque import Put, Take
from riesz.tracing import traced
from riesz.tracing.rules.all_rules import load_rules

jax.config.update("jax_enable_x64", True)
pytestmark = [pytest.mark.filterwarnings("ignore")]

INDEX = np.array([[2, 0, 0], [1, -1, 2]])
NAN = np.array([[0.0, np.nan, 0.0, 0.0], [np.nan, 0.0, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0]])
KNOTS = np.array([-2.0, -1.0, 0.5, 2.0])

# An expression in np, the shapes of its arguments; "steps": central differences, JAX has no such function or another convention.
LINES: list[Any] = [
    ("np.sort(x)", (5,)),
    ("np.sort(x, axis=0)", (4, 3)),
    ("np.sort(x, axis=None)", (2, 3)),
    ("np.sort(x, axis=1)", (2, 3, 2)),
    ("np.sort(x, kind='stable')", (2, 3), "steps"),
    ("np.sort(x, stable=True)", (2, 3)),
    ("np.partition(x, 2)", (5,), "steps"),
    ("np.partition(x, (1, 2), axis=0)", (4, 2), "steps"),
    ("x[np.argsort(x)]", (5,)),
    ("x[np.argsort(x, kind='stable')]", (5,), "steps"),
    ("np.take_along_axis(x, np.argsort(x, axis=0), 0)", (4, 2)),
    ("np.take_along_axis(x, np.argsort(x, axis=None), None)", (2, 3)),
    ("np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), 1)", (3, 4)),
    ("np.take_along_axis(x, onp.array([[2, 0, 0], [1, -1, 2]]), 1)", (2, 4)),
    ("np.take_along_axis(x, onp.array([[2, 0, 0]]), 1)", (2, 4)),
    ("np.take_along_axis(x, np.argsort(x[:1], axis=1), 1)", (2, 4)),
    ("np.take_along_axis(x[:1], np.argsort(x, axis=1), 1)", (3, 4)),
    ("np.take_along_axis(onp.arange(12.0).reshape(3, 4) ** 2, np.argsort(x, axis=1), 1) * x", (3, 4)),
    ("x[np.lexsort((x, x > 0))]", (5,)),
    ("x[np.argpartition(x, 2)[:3]].sum()", (5,)),
    ("np.median(x)", (5,)),
    ("np.median(x)", (2, 3)),
    ("np.median(x, axis=0)", (4, 3)),
    ("np.median(x, axis=1, keepdims=True)", (2, 5)),
    ("np.median(x, axis=(0, 2))", (2, 3, 2)),
    ("np.quantile(x, 0.3)", (6,)),
    ("np.quantile(x, onp.array([0.0, 0.3, 1.0]), axis=0)", (4, 3)),
    ("np.quantile(x, onp.array([[0.1, 0.3], [0.5, 0.9]]), axis=1, keepdims=True)", (2, 4), "steps"),
    ("np.quantile(x, 0.3, axis=(0, 1), keepdims=True)", (2, 3)),
    *[
        (f"np.quantile(x, onp.array([0.2, 0.55]), method='{m}')", (7,))
        for m in ("lower", "higher", "midpoint", "nearest")
    ],
    *[
        (f"np.quantile(x, onp.array([0.2, 0.55, 0.9]), method='{m}')", (7,), "steps")
        for m in (
            "inverted_cdf",
            "averaged_inverted_cdf",
            "closest_observation",
            "interpolated_inverted_cdf",
            "hazen",
            "weibull",
        )
    ],
    *[
        (f"np.quantile(x, onp.array([0.0, 0.2, 1.0]), method='{m}')", (7,), "steps")
        for m in ("median_unbiased", "normal_unbiased")
    ],
    ("np.percentile(x, 30)", (6,)),
    ("np.percentile(x, [25, 75], axis=1)", (2, 5), "steps"),
    ("np.percentile(x, onp.array([25, 75]), axis=1)", (2, 5)),
    ("np.quantile(x, 0.1 + 0.05 * y)", (6,), ()),
    ("np.quantile(x, 0.5 + 0.1 * y, axis=1)", (2, 4), (3,)),
    ("np.percentile(x, 50.0 + 10.0 * y)", (6,), ()),
    ("np.nanmedian(x + NAN)", (3, 4)),
    ("np.nanmedian(x + NAN, axis=0)", (3, 4)),
    ("np.nanquantile(x + NAN, onp.array([0.2, 0.7]), axis=1)", (3, 4)),
    ("np.nanquantile(x + NAN, 0.4, axis=0, keepdims=True)", (3, 4)),
    ("np.nanpercentile(x + NAN, 40, axis=1)", (3, 4)),
    ("x * np.searchsorted(KNOTS, x)", (5,)),
    ("x * np.searchsorted(np.sort(x), 0.3, side='right')", (5,)),
    ("x * np.searchsorted(x, 0.3, sorter=onp.arange(5))", (5,), "steps"),
    ("x * np.digitize(x, KNOTS)", (2, 3)),
    ("x * np.digitize(x, KNOTS[::-1], right=True)", (5,)),
    ("np.interp(x, KNOTS, KNOTS**2)", (5,)),
    ("np.interp(1.4 * x, KNOTS, KNOTS**2)", (2, 3)),
    ("np.interp(1.4 * x, KNOTS, y)", (5,), (4,)),
    ("np.interp(0.3, np.sort(x), y)", (4,), (4,)),
    ("np.interp(x, np.sort(y), z)", (3,), (4,), (4,)),
    ("np.interp(1.4 * x, KNOTS, KNOTS**2, left=-1.0, right=7.0)", (5,)),
    ("np.interp(1.4 * x, KNOTS, y, period=5.0)", (5,), (4,), "steps"),
    ("np.interp(x, onp.array([0.3]), y)", (4,), (1,)),
    ("np.choose(onp.array([1, 0, 1]), [x, y])", (3,), (3,)),
    ("np.choose(onp.array([[1], [0]]), [x, 2.0])", (3,)),
    ("np.choose(onp.array([1, 5, -1]), [x, y], mode='clip')", (3,), (3,)),
    ("np.choose(onp.array([1, 5, -1]), [x, y], mode='wrap')", (3,), (3,)),
    ("np.choose(np.argsort(x), [x, 2.0 * x, x**2])", (3,)),
    ("np.choose(np.argsort(x) + 4, [x, 2.0 * x, x**2], mode='wrap')", (2, 3)),
    ("np.bincount(onp.array([2, 0, 2, 1]), x, minlength=5)", (4,), "steps"),
    ("x[np.nanargmax(x)] ** 2", (5,)),
    ("np.take_along_axis(x, np.nanargmax(x + NAN, axis=1, keepdims=True), 1)", (3, 4)),
    ("x[np.nanargmin(x + NAN, axis=0), onp.arange(4)] ** 2", (3, 4)),
    ("x[np.unravel_index(np.argmax(x), x.shape)] ** 2", (2, 3)),
    ("x[np.unravel_index(np.argsort(x, axis=None), x.shape)]", (2, 3)),
    ("np.ravel(x)[np.ravel_multi_index((np.argmax(x, 0), onp.arange(3)), x.shape)]", (2, 3), "steps"),
    ("x[np.diag_indices_from(x)] ** 2", (3, 3)),
    ("x[np.tril_indices_from(x, k=1)]", (3, 4)),
    ("x[np.triu_indices_from(x, k=-1)]", (4, 3)),
]


class Line:
    """An expression, the shapes of its arguments, and who knows the derivative."""

    def __init__(self, text: str, *rest: Any) -> None:
        self.text = text
        self.jax = rest[-1] != "steps"
        self.shapes = [s for s in rest if s != "steps"]
        names = ", ".join("xyz"[: len(self.shapes)])
        self.code = eval(f"lambda np, {names}: {text}", {"onp": np, "NAN": NAN, "KNOTS": KNOTS, "__name__": __name__})

    def __repr__(self) -> str:
        return f"{self.text} {self.shapes}"

    def f(self, *xs: Any) -> Any:
        """With NumPy."""
        return self.code(np, *xs)

    def points(self) -> list[Any]:
        """Numbers no two of which are close."""
        rng = np.random.default_rng(4)
        sizes = [int(np.prod(s)) for s in self.shapes]
        return [
            (4.0 * (rng.permutation(n) + rng.uniform(0.3, 0.7, n)) / n - 2.0).reshape(s)[()]
            for n, s in zip(sizes, self.shapes, strict=True)
        ]


LINED = [Line(*line) for line in LINES]
every = pytest.mark.parametrize("line", sampled(LINED, 3), ids=repr)


def functional(code: Any, module: Any, w: Any, v: Any) -> Any:
    """Σ w·y + ½ v·y², curved even where y is linear."""

    def total(*xs: Any) -> Any:
        y = code(module, *xs)
        return module.sum(w * y) + 0.5 * module.sum(v * y * y)

    return total


def steps(f: Any, xs: list[Any], dxs: list[Any], h: float = 1e-3) -> Any:
    """d/dt f(x + t·dx), by central differences of fourth order."""
    parts = [(k, np.asarray(f(*[x + k * h * d for x, d in zip(xs, dxs, strict=True)]))) for k in (1, -1, 2, -2)]
    return sum([{1: 8.0, -1: -8.0, 2: -1.0, -2: 1.0}[k] / (12.0 * h) * y for k, y in parts])


@cache
def drawn(line: Line) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    xs = line.points()
    y = line.f(*xs)
    return xs, [rng.normal(size=np.shape(x)) for x in xs], rng.normal(size=np.shape(y)), rng.normal(size=np.shape(y))


@cache
def reference(line: Line) -> tuple[Any, Any, Any]:
    """jvp, gradient of the functional and its Hessian on dx."""
    xs, dxs, w, v = drawn(line)
    argnums = tuple(range(len(xs)))
    if line.jax:
        given, moves = tuple([jnp.asarray(x) for x in xs]), tuple([jnp.asarray(d) for d in dxs])
        gradient = jax.grad(functional(line.code, jnp, w, v), argnums)
        first, second = jax.jvp(gradient, given, moves)
        return jax.jvp(lambda *u: line.code(jnp, *u), given, moves)[1], first, second
    total = functional(line.code, np, w, v)
    gradient = []
    for i, x in enumerate(xs):
        units = np.eye(np.size(x)).reshape((np.size(x), *np.shape(x)))
        rest = [np.zeros(np.shape(z)) for z in xs]
        gradient.append(np.reshape([steps(total, xs, [*rest[:i], u, *rest[i + 1 :]]) for u in units], np.shape(x)))
    own = rz.grad(total, argnums)
    return steps(line.f, xs, dxs), gradient, [steps(lambda *u, i=i: own(*u)[i], xs, dxs) for i in argnums]


def close(found: Any, wanted: Any, line: Line) -> None:
    tolerance = 1e-12 if line.jax else 1e-8
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(
        found, wanted, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    )


@every
def test_value_shape_and_type_are_those_of_numpy(line: Line) -> None:
    xs = drawn(line)[0]
    found, wanted = rz.function(line.f)(*xs), line.f(*xs)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


@every
def test_derivatives_of_first_and_second_order(line: Line) -> None:
    xs, dxs, w, v = drawn(line)
    total, argnums = functional(line.code, np, w, v), tuple(range(len(xs)))
    forward, gradient, second = reference(line)
    close(rz.jvp(line.f, tuple(xs), tuple(dxs))[1], forward, line)
    back = rz.vjp(line.f, *xs)[1](w)
    paired = sum([np.sum(b * d) for b, d in zip(back, dxs, strict=True)])
    assert paired == pytest.approx(float(np.sum(w * np.asarray(forward))), rel=1e-7, abs=1e-7)
    found, again = rz.grad(total, argnums)(*xs), rz.hvp(total, tuple(xs), tuple(dxs))
    nested = rz.jvp(rz.grad(total, argnums), tuple(xs), tuple(dxs))[1]
    for i in argnums:
        close(found[i], gradient[i], line)
        close(again if len(xs) == 1 else again[i], second[i], line)
        close(nested[i], second[i], line)


@every
def test_single_precision_stays(line: Line) -> None:
    xs, _, w, _ = drawn(line)
    small = [np.float32(x) for x in xs]
    value, back = rz.vjp(line.f, *small)
    if np.asarray(value).dtype == np.float32:
        w = np.float32(w)
    assert np.asarray(value).dtype in (np.asarray(line.f(*small)).dtype, np.float32)
    for b, x, wanted in zip(back(w), small, rz.vjp(line.f, *xs)[1](drawn(line)[2]), strict=True):
        assert b.dtype == x.dtype
        np.testing.assert_allclose(b, wanted, rtol=1e-3, atol=1e-3)


@every
def test_mapped_over_an_axis(line: Line) -> None:
    xs, dxs, w, v = drawn(line)
    rows = [
        np.stack([np.asarray(x), 1.1 * np.asarray(x) + 0.01 * d, -0.9 * np.asarray(x)])
        for x, d in zip(xs, dxs, strict=True)
    ]
    if "np.searchsorted(x" in line.text:
        rows = [np.sort(r, axis=-1) for r in rows]
    total = functional(line.code, np, w, v)
    both = lambda *u: (line.f(*u), rz.grad(total, tuple(range(len(u))))(*u))  # noqa: E731
    value, gradient = rz.vmap(both)(*rows)
    each = [both(*[r[k] for r in rows]) for k in range(3)]
    np.testing.assert_allclose(value, [e[0] for e in each], rtol=1e-13, atol=1e-13)
    for i in range(len(xs)):
        np.testing.assert_allclose(gradient[i], [e[1][i] for e in each], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize(
    "text",
    [
        *(
            "np.sort(x)",
            "np.sort(x, axis=0)",
            "np.sort(x, axis=None)",
            "np.median(x)",
            "np.median(x, axis=-1)",
            "np.quantile(x, [0.2, 0.8], axis=-1)",
        ),
        *(
            "np.nanmedian(x, axis=-1)",
            "np.take_along_axis(x, np.argsort(x), -1)",
            "np.take_along_axis(x, onp.argsort(onp.ones(x.shape)), -1)",
        ),
        *(
            "np.interp(x, KNOTS, KNOTS**2)",
            "np.partition(x, 0)",
            "x * np.argsort(x, axis=0)",
            "x * np.searchsorted(KNOTS, x)",
        ),
    ],
)
def test_empty_arrays_and_axes_of_length_one(text: str, shape: tuple[int, ...]) -> None:
    f = eval(f"lambda x: {text}", {"np": np, "onp": np, "KNOTS": KNOTS, "__name__": __name__})
    x = np.arange(float(np.prod(shape))).reshape(shape)
    try:
        wanted = f(x)
    except (ValueError, IndexError) as problem:
        with pytest.raises(type(problem)):
            rz.function(f)(x)
        return
    value, back = rz.vjp(f, x)
    assert np.shape(value) == np.shape(wanted)
    np.testing.assert_allclose(value, wanted, rtol=1e-14)
    (found,) = back(np.ones(np.shape(wanted)))
    assert found.shape == x.shape


# -- what is where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.argsort(x, axis=0),
        lambda x: np.argsort(x, axis=None),
        lambda x: np.argsort(x, kind="stable"),
        lambda x: x.argsort(),
        lambda x: np.lexsort((x[0], x[1])),
        lambda x: np.lexsort(x, axis=0),
        lambda x: np.searchsorted(np.ravel(x), [0.5, 3.0]),
        lambda x: np.digitize(x, [0.5, 1.5]),
        lambda x: np.argpartition(x, 1, axis=1),
    ],
)
def test_positions_are_integers_of_numpy(f: Any) -> None:
    x = np.array([[0.3, 1.2, 0.3], [2.0, 2.0, 2.5]])
    found = rz.function(f)(x)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(found, f(x))


def test_sorting_is_a_gather() -> None:
    one = rz.jacobian(np.sort)(np.array([3.0, 1.0, 2.0]))
    assert [type(op) for op in one.program.ops[1:]] == [Reduction]
    np.testing.assert_array_equal(one.to_dense(), np.eye(3)[[1, 2, 0]])
    rows = rz.jacobian(np.sort)(np.random.default_rng(0).normal(size=(4, 3)))
    assert any([isinstance(op, Take) for op in rows.program.ops])
    assert any([isinstance(op, Put) for op in rows.H.program.ops])


def test_a_median_is_a_combination_of_two_points() -> None:
    middle = rz.jacobian(np.median)(np.array([3.0, 1.0, 2.0, 4.0]))
    np.testing.assert_allclose(middle.to_dense(), [[0.5, 0.0, 0.5, 0.0]], rtol=1e-15)
    assert {type(op) for op in middle.program.ops[1:]} <= {Reduction, Combination, Reshape, float}


def test_equal_elements_keep_their_places() -> None:
    x = np.array([1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(rz.jacobian(np.sort)(x).to_dense(), np.eye(4)[[1, 3, 0, 2]])


def test_nan_is_sorted_to_the_end_and_makes_a_median_nan() -> None:
    x = np.array([[2.0, np.nan, 1.0], [5.0, 3.0, 4.0]])
    np.testing.assert_array_equal(rz.function(np.sort)(x), np.sort(x))
    np.testing.assert_array_equal(rz.function(lambda x: np.median(x, axis=1))(x), [np.nan, 4.0])
    np.testing.assert_array_equal(
        rz.function(lambda x: np.quantile(x, [0.0, 0.5], axis=1))(x), np.quantile(x, [0.0, 0.5], axis=1)
    )


def test_nanmedian_of_nothing_is_nan() -> None:
    x = np.array([[np.nan, np.nan], [1.0, np.nan]])
    np.testing.assert_array_equal(rz.function(lambda x: np.nanmedian(x, axis=1))(x), [np.nan, 1.0])
    np.testing.assert_array_equal(rz.grad(lambda x: np.nansum(np.nanmedian(x, axis=1)))(x)[1], [1.0, 0.0])


def test_partition_has_the_kth_in_place() -> None:
    x = np.random.default_rng(0).normal(size=(3, 9))
    found = rz.function(lambda x: np.partition(x, (2, 5), axis=1))(x)
    np.testing.assert_array_equal(found[:, [2, 5]], np.sort(x, axis=1)[:, [2, 5]])
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(x, axis=1))


def test_interpolation_outside_and_at_knots() -> None:
    f = lambda x: np.interp(x, KNOTS, KNOTS**2)  # noqa: E731
    x = np.array([-5.0, -1.0, 2.0, 9.0])
    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-15)
    np.testing.assert_allclose(rz.grad(lambda x: np.sum(f(x)))(x), [0.0, -0.5, 2.5, 0.0], rtol=1e-14)
    twice = rz.grad(lambda p: np.interp(2.0, p, np.array([1.0, 3.0, 4.0])))(np.array([0.0, 2.0, 2.0]))
    assert np.isfinite(twice).all()


def test_an_argument_written_to_itself_stays_as_it_is() -> None:
    def f(x: Any) -> Any:
        np.copyto(x, x)
        x[1:] = x[1:]
        return x * x

    x = np.array([0.5, 0.2, 0.7])
    np.testing.assert_array_equal(rz.function(f)(x), x * x)
    np.testing.assert_array_equal(rz.grad(lambda x: np.sum(f(x)))(x), 2.0 * x)
    np.testing.assert_array_equal(x, [0.5, 0.2, 0.7])


def test_choice_out_of_range() -> None:
    with pytest.raises(ValueError, match="invalid entry"):
        rz.function(lambda x: np.choose(np.array([0, 3, 1]), [x, x]))(np.ones(3))
    with pytest.raises(ValueError, match="invalid entry"):
        rz.function(lambda x: np.choose(np.argsort(x), [x, x]))(np.ones(3))


# -- what cannot be ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.unique(x), "length depends"),
        (lambda x: np.argwhere(x), "length depends"),
        (lambda x: np.union1d(x, x), "length depends"),
        (lambda x: np.trim_zeros(x), "length depends"),
        (lambda x: np.put_along_axis(x, np.array([0]), 1.0, 0), "caller's array"),
        (lambda x: np.place(x, x > 0, [1.0]), "caller's array"),
        (lambda x: np.put(x, [0], 1.0), "caller's array"),
        (lambda x: np.copyto(x, 2.0 * x), "caller's array"),
        (lambda x: np.copyto(x, x[::-1]), "caller's array"),
        (lambda x: np.sort_complex(x), "complex"),
        (lambda x: np.histogram(x, "auto"), "number of bins"),
        (lambda x: np.quantile(x, 0.3, weights=np.ones(3), method="inverted_cdf"), "weights"),
        (lambda x: np.quantile(x, 0.3, method="mode"), "method"),
        (lambda x: np.quantile(x, x[0], method="lower"), "linear"),
        (lambda x: np.nanquantile(x, x[0]), "traced q"),
        (lambda x: np.partition(x, np.argmax(x)), "fixed position"),
        (lambda x: np.sort(x, order="a"), "order"),
        (lambda x: np.choose(x, [x, x]), "integers"),
        (lambda x: x.sort(), "caller's array"),
    ],
)
def test_refusals_say_what_to_write(f: Any, words: str) -> None:
    with pytest.raises(TraceError, match=words) as problem:
        rz.function(f)(np.array([0.5, 0.2, 0.7]))
    assert "test_sorting.py" in str(problem.value)


@pytest.mark.parametrize("f", [np.nonzero, np.flatnonzero, lambda x: np.extract(x > 0, x)])
def test_places_that_depend_on_numbers_are_not_returned(f: Any) -> None:
    with pytest.raises(TraceError, match="length is not known"):
        rz.function(lambda x: f(x))(np.array([0.5, 0.2, 0.7]))


def test_quantiles_outside_the_range() -> None:
    with pytest.raises(ValueError, match="range"):
        rz.function(lambda x: np.quantile(x, 1.5))(np.ones(3))


def test_every_function_with_a_rule_has_a_line() -> None:
    load_rules()
    rules = {f: traced.FUNCTIONS.get(f) for f in traced.NOTES}
    files = ("riesz.tracing.rules.sorting", "riesz.tracing.rules.quantiles")
    mine = [
        f for f, rule in rules.items() if getattr(rule, "__module__", "") in files and traced.NOTES[f][0] != "refused"
    ]
    missing = [f.__name__ for f in mine if not any([f"np.{f.__name__}(" in line.text for line in LINED])]
    assert len(mine) > 15
    assert not missing
