"""The NumPy front end against NumPy (values) and JAX (derivatives): every case of the tables, and every function the rules know."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any, NamedTuple

os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0"
)  # hundreds of tiny programs: compiling them is what takes time

import cases_pointwise  # noqa: F401  (the tables enter themselves)
import cases_structure  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import CASES, Case
from sampling import sampled

import riesz as rz
import riesz.tracing.rules.all_rules
from riesz.tracing import traced

jax.config.update("jax_enable_x64", True)

MODULES = {
    f"riesz.tracing.rules.{file}"
    for file in ("elementwise", "array_products", "reductions", "rearranging", "gathering")
}
SOME = sampled(CASES, 6)
every = pytest.mark.parametrize("c", SOME, ids=repr)
pytestmark = [pytest.mark.filterwarnings("ignore")]


def leaves(value: Any) -> list[Any]:
    """The arrays of a result, in order."""
    if isinstance(value, dict):
        return [leaf for k in value for leaf in leaves(value[k])]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [value]


def is_float(x: Any) -> bool:
    """Whether an array can move."""
    return np.dtype(getattr(x, "dtype", type(x))).kind == "f"


def plain(c: Case, xs: list[Any]) -> list[Any]:
    """NumPy's answer."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return leaves(c.function(np, *xs))


@cache
def inputs(c: Case) -> list[Any]:
    """The point a case is tested at."""
    return c.sample()


@cache
def moving(c: Case) -> tuple[int, ...]:
    """Which leaves of the result are floats."""
    return tuple([i for i, y in enumerate(plain(c, inputs(c))) if is_float(y)])


def floats(c: Case, np_: Any) -> Any:
    """The case as a function from its inputs to the floats of its result, as a tuple; all of numpy's attributes are looked up in np_."""

    def code(*xs: Any) -> Any:
        found = leaves(c.function(np_, *xs))
        return tuple([found[i] for i in moving(c)])

    code.__name__ = c.text
    return code


@cache
def directions(c: Case) -> tuple[list[Any], list[Any], list[Any]]:
    """Differentials of the inputs, and two sets of weights of the results."""
    rng = np.random.default_rng(7)
    results = [plain(c, inputs(c))[i] for i in moving(c)]
    return (
        [rng.normal(size=np.shape(x)) for x in inputs(c)],
        *[[rng.normal(size=np.shape(y)) for y in results] for _ in range(2)],
    )


@cache
def cotangents(c: Case) -> list[Any]:
    """The gradient of the functional below in the results: w + v·y."""
    _, w, v = directions(c)
    ys = plain(c, inputs(c))
    return [a + b * ys[i] for a, b, i in zip(w, v, moving(c), strict=True)]


def functional(c: Case) -> Any:
    """A number made of a case's result, curved even where the case is linear: Σ w·y + ½ v·y²."""
    _, w, v = directions(c)
    f = floats(c, np)

    def code(*xs: Any) -> Any:
        total = 0.0
        for a, b, y in zip(w, v, f(*xs), strict=True):
            total = total + np.sum(a * y) + np.sum(0.5 * b * y * y)
        return total

    return code


class Answer(NamedTuple):
    """What a case's derivatives should be: f'(x)dx; the gradient of the functional; its Hessian applied to dx."""

    forward: Any
    gradient: Any
    hessian: Any


def by_jax(c: Case, xs: Any, dxs: Any, w: Any, v: Any) -> Answer:
    """All of them from one forward pass over one backward pass."""
    f = floats(c, jnp)

    def both(*xs: Any) -> Any:
        y, back = jax.vjp(f, *xs)
        return y, back(tuple([a + b * k for a, b, k in zip(w, v, y, strict=True)]))

    (_, gradient), (dy, hessian) = jax.jvp(both, tuple(xs), tuple(dxs))
    return Answer(dy, gradient, hessian)


BATCH = 40
WITH_JAX = [c for c in SOME if not c.differences]


@cache
def batch_answers(k: int) -> list[Any]:
    """Cases compiled together: one at a time, compiling would take ten times as long. Where that fails, the problem of each case."""
    batch = WITH_JAX[BATCH * k : BATCH * (k + 1)]
    live = [c for c in batch if moving(c)]
    given = [(inputs(c), *directions(c)) for c in live]
    try:
        found: list[Any] = jax.jit(lambda given: [by_jax(c, *g) for c, g in zip(live, given, strict=True)])(given)
    except Exception:
        found = [_alone(c, g) for c, g in zip(live, given, strict=True)]
    by_case = dict(zip(live, found, strict=True))
    return [by_case.get(c) for c in batch]


def _alone(c: Case, given: Any) -> Any:
    try:
        return jax.jit(lambda given: by_jax(c, *given))(given)
    except Exception as problem:
        return problem


@cache
def difference_answer(c: Case) -> Answer:
    """The same by central differences of NumPy's values, and of riesz's own gradient."""
    xs, dxs = inputs(c), directions(c)[0]
    f, g = floats(c, np), functional(c)
    gradient = [
        np.reshape([_slope(lambda *v: (g(*v),), xs, _unit(xs, i, k))[0] for k in range(x.size)], x.shape)
        for i, x in enumerate(xs)
    ]
    return Answer(_slope(f, xs, dxs), gradient, _slope(rz.grad(g, tuple(range(len(xs)))), xs, dxs))


def _unit(xs: list[Any], i: int, k: int) -> list[Any]:
    found = [np.zeros(x.shape) for x in xs]
    found[i].ravel()[k] = 1.0
    return found


def _slope(f: Any, xs: list[Any], dxs: list[Any], h: float = 1e-3) -> list[Any]:
    """d/dt f(x + t·dx) by central differences of sixth order."""
    total: list[Any] = []
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        for sign in (1, -1):
            with np.errstate(all="ignore"):
                found = f(*[x + sign * k * h * d for x, d in zip(xs, dxs, strict=True)])
            part = [sign * weight / h * np.asarray(y) for y in found]
            total = part if not total else [a + b for a, b in zip(total, part, strict=True)]
    return total


def answer(c: Case) -> Answer:
    """What derivatives should be."""
    if c.differences:
        return difference_answer(c)
    place = WITH_JAX.index(c)
    found = batch_answers(place // BATCH)[place % BATCH]
    if isinstance(found, Exception):
        raise found
    return found


def agree(found: Any, wanted: Any, c: Case, what: str, tolerance: float | None = None) -> None:
    """The same shapes, and the same numbers relative to the largest of them."""
    tolerance = (1e-8 if c.differences else 1e-12) if tolerance is None else tolerance
    assert len(found) == len(wanted), f"{what}: {len(found)} arrays, {len(wanted)} expected"
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"{what}: shape {a.shape}, {b.shape} expected"
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def types(ys: list[Any]) -> list[Any]:
    """Shapes and types."""
    return [(np.shape(y), np.asarray(y).dtype) for y in ys]


# -- each case --------------------------------------------------------------------------------------------


@every
def test_value_shape_and_type_are_those_of_numpy(c: Case) -> None:
    wanted = plain(c, inputs(c))
    found = leaves(rz.function(lambda *xs: c.function(np, *xs))(*inputs(c)))
    assert types(found) == types(wanted)
    agree(found, wanted, c, "value", 1e-14)


@every
def test_derivative_forward(c: Case) -> None:
    if moving(c):
        _, found = rz.jvp(floats(c, np), tuple(inputs(c)), tuple(directions(c)[0]))
        agree(found, answer(c).forward, c, "jvp")


@every
def test_derivative_backward(c: Case) -> None:
    if moving(c):
        _, back = rz.vjp(floats(c, np), *inputs(c))
        agree(back(tuple(cotangents(c))), answer(c).gradient, c, "vjp")


@every
def test_gradient_and_hessian(c: Case) -> None:
    if not moving(c):
        return
    f, xs, dxs = functional(c), inputs(c), directions(c)[0]
    gradient = rz.grad(f, tuple(range(len(xs))))
    agree(gradient(*xs), answer(c).gradient, c, "gradient")
    again = rz.hvp(f, tuple(xs), tuple(dxs))
    agree(again if len(xs) > 1 else [again], answer(c).hessian, c, "Hessian")
    agree(rz.jvp(gradient, tuple(xs), tuple(dxs))[1], answer(c).hessian, c, "derivative of the gradient")


@pytest.mark.parametrize("c", [c for c in SOME if c.single], ids=repr)
def test_single_precision_stays(c: Case) -> None:
    xs = [x.astype(np.float32)[()] for x in inputs(c)]
    wanted = plain(c, xs)
    found = leaves(rz.function(lambda *xs: c.function(np, *xs))(*xs))
    assert types(found) == types(wanted)
    agree(found, wanted, c, "value", 2e-5)
    if moving(c):
        values, back = rz.vjp(floats(c, np), *xs)
        assert types(list(values)) == types([wanted[i] for i in moving(c)])
        turned = back(
            tuple([np.asarray(a, np.asarray(y).dtype)[()] for a, y in zip(cotangents(c), values, strict=True)])
        )
        assert types(turned) == types(xs)
        agree(turned, answer(c).gradient, c, "vjp", 2e-3)
        gradient = rz.grad(functional(c), tuple(range(len(xs))))(*xs)
        assert types(gradient) == types(xs)


SHAPES = [(c, shapes) for c in SOME for shapes in c.shapes]


@pytest.mark.parametrize(("c", "shapes"), SHAPES, ids=[f"{c.text} {s}" for c, s in SHAPES])
def test_empty_arrays_and_axes_of_length_one(c: Case, shapes: Any) -> None:
    rng = np.random.default_rng(3)
    xs = [d.at(s).sample(rng) for d, s in zip(c.inputs, shapes, strict=True)]
    try:
        wanted = plain(c, xs)
    except (ValueError, IndexError, TypeError) as problem:
        with pytest.raises(type(problem)):
            rz.function(lambda *xs: c.function(np, *xs))(*xs)
        return
    with np.errstate(all="ignore"):
        found = leaves(rz.function(lambda *xs: c.function(np, *xs))(*xs))
        assert types(found) == types(wanted)
        agree(found, wanted, c, "value", 1e-13)
        move = [i for i, y in enumerate(wanted) if is_float(y)]
        if not move:
            return
        f = lambda *xs: tuple([leaves(c.function(np, *xs))[i] for i in move])  # noqa: E731
        ws = [rng.normal(size=np.shape(wanted[i])) for i in move]
        _, back = rz.vjp(f, *xs)
        turned = back(tuple(ws))
        assert types(turned) == types(xs)
        if all([np.isfinite(wanted[i]).all() for i in move]):
            forward = rz.jvp(f, tuple(xs), tuple(xs))[1]
            agree(forward, _slope(f, xs, xs), c, "jvp", 1e-8)
            there, here = [
                sum([float(np.sum(a * b)) for a, b in zip(*pair, strict=True)])
                for pair in ((ws, forward), (turned, xs))
            ]
            assert abs(there - here) <= 1e-12 * max(1.0, abs(there)), "not an adjoint"


def test_a_cast_is_linear_and_casts_back() -> None:
    x = np.array([1.0, 2.0, 3.0])
    y, back = rz.vjp(lambda x: (x * x).astype(np.float32) * 2.0, x)
    assert y.dtype == np.float32
    (turned,) = back(np.ones(3, np.float32))
    assert turned.dtype == np.float64
    np.testing.assert_array_equal(turned, 4.0 * x)
    up = rz.grad(lambda x: np.sum(x.astype(np.float64) ** 2))(x.astype(np.float32))
    assert up.dtype == np.float32
    np.testing.assert_array_equal(up, 2.0 * x)


@pytest.mark.parametrize("x", [0.0, -1.0])
@pytest.mark.parametrize(
    "f", [np.log, np.sqrt, np.reciprocal, lambda v: v**-1.5, lambda v: v**0.5, lambda v: 1.0 / v], ids=range(6)
)
def test_the_branch_not_taken_leaves_no_trace(f: Any, x: float) -> None:
    at = np.array([x, 2.0])
    g = lambda v: np.sum(np.where(v > 0, f(v), 3.0 * v) ** 2)  # noqa: E731
    with np.errstate(all="ignore"):
        gradient, hessian = rz.grad(g)(at), rz.hessian(g)(at).to_dense()
        _, forward = rz.jvp(rz.grad(g), (at,), (np.array([1.0, 0.0]),))
    np.testing.assert_allclose(gradient[0], 18.0 * x, rtol=1e-15)
    np.testing.assert_allclose(hessian[0], [18.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(forward[0] if isinstance(forward, tuple) else forward, [18.0, 0.0], rtol=1e-15)
    assert np.isfinite(hessian).all()


# -- the tables themselves --------------------------------------------------------------------------------


class Recorder:
    """numpy that remembers which of its functions were asked for."""

    def __init__(self, module: Any, seen: set[Any]) -> None:
        self._module = module
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name in ("linalg", "lib", "stride_tricks"):
            return Recorder(found, self._seen)
        self._seen.add(id(found))
        return found


def test_every_function_with_a_rule_has_a_case() -> None:
    riesz.tracing.rules.all_rules.load_rules()
    seen: set[Any] = set()
    for c in CASES:
        plain_np = Recorder(np, seen)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            c.function(plain_np, *inputs(c))
    known = [(f, (traced.UFUNCS if isinstance(f, np.ufunc) else traced.FUNCTIONS).get(f)) for f in traced.NOTES]
    missing = [f for f, rule in known if rule is not None and rule.__module__ in MODULES and id(f) not in seen]
    assert not missing
