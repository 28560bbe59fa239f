"""Functions that convert their arguments to plain arrays answer for traced ones wherever the traced code has them from."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.special
from scipy.special import logsumexp

import riesz as rz

X = np.array([0.3, 0.7, -0.4])
SOFTMAX = np.exp(X) / np.sum(np.exp(X))
FUNCTIONS = (np.array, logsumexp)
BY_NAME = {"logsumexp": logsumexp}
APPLIED = partial(logsumexp, axis=0)
JOIN = np.r_


class Both(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Frozen:
    f: Any


class Slotted:
    __slots__ = ("f",)

    def __init__(self, f: Any) -> None:
        self.f = f


class Shared:
    f = staticmethod(logsumexp)


def closing(f: Any) -> Any:
    return lambda x: f(x)


def by_default(x: Any, f: Any = logsumexp) -> Any:
    return f(x)


def by_name_only(x: Any, *, f: Any = logsumexp) -> Any:
    return f(x)


PLACES = {
    "a closure": closing(logsumexp),
    "a closure of a closure": closing(closing(logsumexp)),
    "a default": by_default,
    "a default by name": by_name_only,
    "a partial application in a closure": closing(partial(logsumexp, axis=0)),
    "a partial application of a function that takes one": partial(lambda f, x: f(x), logsumexp),
    "an argument by name of a partial application": partial(lambda x, f: f(x), f=logsumexp),
    "a global partial application": lambda x: APPLIED(x),
    "a global tuple": lambda x: FUNCTIONS[1](x),
    "a global dictionary": lambda x: BY_NAME["logsumexp"](x),
    "a list in a closure": (lambda fs: lambda x: fs[0](x))([logsumexp]),
    "a list in a dictionary": (lambda fs: lambda x: fs["a"][0](x))({"a": [logsumexp]}),
    "a tuple in a tuple": (lambda fs: lambda x: fs[0][0](x))(((logsumexp,),)),
    "a named tuple": (lambda both: lambda x: both.second(x))(Both(1, logsumexp)),
    "an attribute": (lambda held: lambda x: held.f(x))(Frozen(logsumexp)),
    "a slot": (lambda held: lambda x: held.f(x))(Slotted(logsumexp)),
    "an attribute of a class": (lambda held: lambda x: held.f(x))(Shared()),
    "a class": lambda x: Shared.f(x),
    "a list that is joined": closing(lambda x: logsumexp(JOIN[x[:1], x[1:]])),
    "np.array in a closure": (lambda make: lambda x: logsumexp(make([x[0], x[1], x[2]])))(np.array),
}


@pytest.mark.parametrize("place", PLACES)
def test_functions_held_in(place: str) -> None:
    f = PLACES[place]
    for _ in range(2):
        np.testing.assert_allclose(rz.grad(f)(X), SOFTMAX, rtol=1e-12)
    np.testing.assert_allclose(rz.hessian(f)(X).to_dense(), np.diag(SOFTMAX) - np.outer(SOFTMAX, SOFTMAX), atol=1e-12)


def test_functions_among_the_arguments() -> None:
    np.testing.assert_allclose(rz.grad(lambda x, f: f(x))(X, logsumexp), SOFTMAX)
    np.testing.assert_allclose(rz.grad(lambda x, fs: fs[0]["f"](x))(X, [{"f": logsumexp}]), SOFTMAX)
    np.testing.assert_allclose(rz.grad(lambda x, f: f(x))(X, f=partial(logsumexp, axis=0)), SOFTMAX)
    chosen = rz.function(lambda x, fs: fs[1](x), static_argnums=1)
    np.testing.assert_allclose(rz.grad(chosen)(X, (np.sum, logsumexp)), SOFTMAX)


def test_everything_is_as_it_was_afterwards() -> None:
    before = dict(vars(np)), dict(vars(np.linalg)), dict(vars(scipy.special)), dict(vars(scipy.linalg))
    fs, named, held, slotted = [logsumexp, (logsumexp,)], {"f": logsumexp}, Frozen(logsumexp), Slotted(logsumexp)
    inner = fs[1]

    def f(x: Any, fail: bool = False, g: Any = logsumexp) -> Any:
        nested = rz.grad(lambda y: fs[0](y) + fs[1][0](y))(x)  # pyright: ignore
        total = np.sum(nested) + fs[0](x) + named["f"](x) + held.f(x) + slotted.f(x) + g(x)  # pyright: ignore
        if fail:
            raise KeyError("on purpose")
        return total

    rz.grad(f)(X)
    with pytest.raises(KeyError):
        rz.grad(lambda x: f(x, True))(X)
    assert all(
        [
            now is then
            for now, then in ((fs[0], logsumexp), (fs[1], inner), (named["f"], logsumexp), (held.f, logsumexp))
        ]
    )
    assert slotted.f is logsumexp
    assert f.__defaults__ == (False, logsumexp) and f.__defaults__[1] is logsumexp
    assert vars(Shared)["f"].__func__ is logsumexp
    for names, then in zip((vars(np), vars(np.linalg), vars(scipy.special), vars(scipy.linalg)), before, strict=True):
        assert [k for k in then if names[k] is not then[k]] == []


def test_a_held_function_is_found_in_tables_by_function() -> None:
    scale = {logsumexp: 3.0, np.sum: 2.0, np.array: 1.0}
    scaled = {f: partial(lambda f, x: scale[f] * f(x), f) for f in (logsumexp, np.sum)}
    np.testing.assert_allclose(rz.grad(scaled[logsumexp])(X), 3.0 * SOFTMAX)
    np.testing.assert_allclose(rz.grad(scaled[np.sum])(X), 2.0 * np.ones(3))
    assert rz.grad(lambda x, f: np.sum(x) if f is np.array and f in scale else 0.0 * np.sum(x))(X, np.array)[0] == 1.0


def test_a_list_that_the_function_changes_keeps_its_change() -> None:
    fs: list[Any] = [logsumexp]

    def f(x: Any) -> Any:
        value = fs[0](x)
        fs.insert(0, np.sum)
        return value

    rz.grad(f)(X)
    assert fs[0] == np.sum and fs[-1] is logsumexp


def test_another_function_in_the_same_place_is_noticed() -> None:
    held = [logsumexp]
    g = rz.grad(lambda x: held[0](x))
    np.testing.assert_allclose(g(X), SOFTMAX)
    held[0] = np.sum
    np.testing.assert_allclose(g(X), np.ones(3))
    held[0] = logsumexp
    np.testing.assert_allclose(g(X), SOFTMAX)


def test_in_a_trace_within_a_trace_another_function_is_noticed() -> None:
    held = (partial(logsumexp, axis=0),)

    def inner(y: Any) -> Any:
        return held[0](y)

    g = rz.grad(inner)
    outer = rz.function(lambda x: g(x) * 2.0)
    np.testing.assert_allclose(outer(X), 2.0 * SOFTMAX)
    np.testing.assert_allclose(g(X), SOFTMAX)
    held = (np.sum,)
    np.testing.assert_allclose(g(X), np.ones(3))


def test_in_several_threads_at_once() -> None:
    shared = [logsumexp]
    found: list[Any] = []

    def work() -> None:
        for _ in range(20):
            f = closing(shared[0])
            found.append(rz.grad(lambda x, f=f: f(x) + shared[0](x))(X))
            found.append(rz.grad(lambda x: 2.0 * BY_NAME["logsumexp"](x))(X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 160
    np.testing.assert_allclose(found, [2.0 * SOFTMAX] * 160)
    assert shared == [logsumexp] and BY_NAME["logsumexp"] is logsumexp


LISTS = {
    "mean": lambda x, y: np.mean([x, y]),
    "std": lambda x, y: np.std([x, 2.0 * y, 1.0]),
    "var": lambda x, y: np.var([x, y]),
    "norm": lambda x, y: np.linalg.norm([x, y]),
    "append": lambda x, y: np.append(np.array([[1.0, 2.0]]), [[x, y]], axis=0),
    "append to a list": lambda x, y: np.append([[x, 2.0]], [[x, y]], axis=0),
    "cumsum": lambda x, y: np.cumsum([x, y, x * y]),
    "cumprod": lambda x, y: np.cumprod([x, y, x * y]),
    "sort": lambda x, y: np.sort([y, x]),
    "stack": lambda x, y: np.stack([[x, y], [y, y]]),
    "concatenate": lambda x, y: np.concatenate([[x, y], [y]]),
    "an alias": lambda x, y: np.concat([[x, y], [y]]),
    "hstack": lambda x, y: np.hstack(([x, y], [1.0])),
    "array": lambda x, y: np.array([[x, y], [y, 1.0]]),
    "diff": lambda x, y: np.diff([x, y, x]),
    "dot": lambda x, y: np.dot([x, y], [y, 3.0]),
    "outer": lambda x, y: np.outer([x, y], [y, 3.0]),
    "einsum": lambda x, y: np.einsum("i,j->ij", [x, y], [y, 3.0]),
    "where": lambda x, y: np.where([True, False], [x, y], [y, x]),
    "clip": lambda x, y: np.clip([x, y], 0.0, 1.0),
    "reshape": lambda x, y: np.reshape([x, y], (2, 1)),
    "transpose": lambda x, y: np.transpose([[x, y], [1.0, 2.0]]),
    "flip": lambda x, y: np.flip([x, y]),
    "roll": lambda x, y: np.roll([x, y, 1.0], 1),
    "tile": lambda x, y: np.tile([x, y], 2),
    "diag": lambda x, y: np.diag([x, y]),
    "trace": lambda x, y: np.trace([[x, y], [y, x]]),
    "det": lambda x, y: np.linalg.det([[x, y], [y, 3.0]]),
    "solve": lambda x, y: np.linalg.solve([[x, y], [y, 3.0]], [x, 1.0]),
    "cross": lambda x, y: np.cross([x, y, 1.0], [y, 1.0, x]),
    "kron": lambda x, y: np.kron([x, y], [1.0, y]),
    "convolve": lambda x, y: np.convolve([x, y], [1.0, y, x]),
    "interp": lambda x, y: np.interp([0.2, 0.4], [0.0, 1.0], [x, y]),
    "by name": lambda x, y: np.mean(a=[x, y]),
    "max": lambda x, y: np.max([x, y]),
    "fft": lambda x, y: np.abs(np.fft.fft([x, y, 1.0])),
    "take": lambda x, y: np.take([x, y], [1, 1, 0]),
    "broadcast_to": lambda x, y: np.broadcast_to([x, y], (3, 2)),
    "select": lambda x, y: np.select([[True, False], [False, True]], [[x, y], [y, x]]),
    "trapezoid": lambda x, y: np.trapezoid(np.stack([x, y]), [y, 2.0]),
    "weights": lambda x, y: np.average(np.stack([x, y]), weights=[y, 2.0]),
    "insert": lambda x, y: np.insert(np.stack([x, y]), 1, [y, 2.0]),
    "choose": lambda x, y: np.choose([0, 1], [[x, 1.0], [2.0, y]]),
    "full": lambda x, y: np.full((2, 2), [x, y]),
    "several axes": lambda x, y: np.concatenate([[[x, y]], [[y, x]]], axis=1),
    "isreal": lambda x, y: np.where(np.isreal([x, y]), x, y),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_traced_numbers_are_arrays(name: str) -> None:
    f = LISTS[name]
    x, y, h = 0.3, 0.7, 1e-6
    np.testing.assert_allclose(rz.function(f)(x, y), f(x, y), rtol=1e-12)
    for i, (dx, dy) in enumerate(((h, 0.0), (0.0, h))):
        moved = (np.asarray(f(x + dx, y + dy)) - np.asarray(f(x - dx, y - dy))) / (2 * h)
        np.testing.assert_allclose(np.reshape(rz.jacobian(f, i)(x, y).to_dense(), moved.shape), moved, atol=1e-7)


def test_whether_real_numbers_are_complex_is_known() -> None:
    assert rz.grad(lambda x: x**2 if np.iscomplex(x) else 3.0 * x)(2.0) == 3.0
    assert rz.grad(lambda x: x**2 if np.isreal(x) else 3.0 * x)(2.0) == 4.0
    assert rz.grad(lambda x: 3.0 * x if np.iscomplexobj(x) or not np.isrealobj(x) else x)(2.0) == 1.0
    np.testing.assert_array_equal(rz.function(lambda x: x[np.isreal(x)])(X), X)
    np.testing.assert_array_equal(rz.function(lambda x: x[np.iscomplex(x)])(X), X[:0])
    assert rz.function(lambda x: np.isreal(x))(X).dtype == bool


def test_programs_hold_numpys_own_functions() -> None:
    for f in (
        lambda x: np.where(x > 0, 1, 2),
        lambda x: np.round(x, 1),
        lambda x: np.clip(np.argsort(x), 0, 1),
        lambda x: np.cumsum(np.argsort(x)),
    ):
        record = rz.function(f).at((X,))[0]
        held = [op.function for op in record.program.ops if hasattr(op, "function")]
        assert held and all([pickle.loads(pickle.dumps(g)) is g for g in held])


def test_types_of_whole_numbers_are_called_on_traced_arrays() -> None:
    W = np.array([[0.5, 0.25, 1.0], [2.0, 3.0, 0.0], [4.0, 7.0, 1.0]])

    def f(W: Any) -> Any:
        rows = np.int64(W[:, -1])
        assert (
            rows.dtype == np.int64 and isinstance(np.arange(2)[0], np.int64) and np.zeros(2, np.int64).dtype == np.int64
        )
        return np.sum(W[:, :-1][rows])

    np.testing.assert_array_equal(rz.grad(f)(W), [[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    assert rz.function(lambda x: np.int32(x))(2.7) == 2
    assert rz.function(lambda x: np.int32(x))(X).dtype == np.int32
    assert rz.function(lambda x, kind: kind(x) + kind(3))(2.7, np.int64) == 5
    with pytest.raises(rz.TraceError, match=r"x\.astype\(np\.float32\)"):
        rz.function(lambda x: np.float32(x))(X)
    assert np.int64 is np.dtype("int64").type


class Layer:
    def value(self, x: Any) -> Any:
        return logsumexp(x) + np.max(np.cumsum([x[0], x[1]])) * 0.0


def test_methods_of_objects_use_functions_that_answer() -> None:
    layer = Layer()
    np.testing.assert_allclose(rz.grad(lambda x: layer.value(x))(X), SOFTMAX)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5,), (3,)),
        ((3,), (5,)),
        ((4,), (2,)),
        ((4, 3), (2, 2)),
        ((6, 7), (4, 1)),
        ((2, 2), (4, 5)),
        ((3, 4, 2), (2, 2, 2)),
        ((), ()),
    ],
)
def test_convolutions_in_any_number_of_axes(left: Any, right: Any, mode: str) -> None:
    rng = np.random.default_rng(0)
    a, v, da, dv = [rng.standard_normal(s) for s in (left, right, left, right)]
    names = ["convolve", "correlate", "fftconvolve", "oaconvolve", *(["convolve2d"] if len(left) == 2 else [])]
    for f in [getattr(scipy.signal, name) for name in names]:
        value, moved = rz.jvp(lambda a, v, f=f: f(a, v, mode), (a, v), (da, dv))
        np.testing.assert_allclose(value, f(a, v, mode), atol=1e-12)
        np.testing.assert_allclose(moved, f(da, v, mode) + f(a, dv, mode), atol=1e-12)
        w = rng.standard_normal(np.shape(value))
        back = rz.vjp(lambda a, v, f=f: f(a, v, mode), a, v)[1](w)
        np.testing.assert_allclose(np.sum(back[0] * da) + np.sum(back[1] * dv), np.sum(w * moved))


def test_convolutions_that_are_wrong_or_not_known() -> None:
    a, v = np.ones((3, 4)), np.ones((4, 3))
    for f, problem in (
        (lambda a: scipy.signal.convolve(a, v, "valid"), ValueError),
        (lambda a: scipy.signal.convolve(a, v, "half"), ValueError),
        (lambda a: scipy.signal.convolve(a, v[0]), ValueError),
        (lambda a: scipy.signal.convolve2d(a, v, boundary="wrap"), rz.TraceError),
        (lambda a: scipy.signal.fftconvolve(a, v, axes=0), rz.TraceError),
    ):
        with pytest.raises(problem):
            rz.function(f)(a)


UPRIGHT = np.ones((3, 2))


class Linear:
    def __init__(self):
        self.A = np.arange(6.0).reshape(2, 3)

    def loss(self, x, B=UPRIGHT):
        return np.sum((B.dot(self.A.dot(x)) - self.A.T.dot(np.ones(2))) ** 2)


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_the_method_dot_of_plain_arrays(shape):
    A, model = np.arange(6.0).reshape(2, 3), Linear()
    x = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape)
    np.testing.assert_allclose(rz.grad(lambda x: np.sum(A.dot(x) ** 2))(x), 2 * A.T @ (A @ x), rtol=1e-12)
    np.testing.assert_allclose(
        rz.grad(lambda x: np.sum(A[:1].dot(x) * 3))(x), rz.grad(lambda x: np.sum(3 * A[:1] @ x))(x)
    )
    if x.ndim == 1:
        B, c = np.ones((3, 2)), A.T @ np.ones(2)
        expected = rz.grad(lambda x: np.sum((B @ (A @ x) - c) ** 2))(x)
        np.testing.assert_allclose(rz.grad(model.loss)(x), expected, rtol=1e-12)
