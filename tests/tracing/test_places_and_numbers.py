"""Numbers of Python's out of traced arrays, indices from shapes and places, statistics without nan, polynomials."""

from __future__ import annotations

import numpy as np
import pytest

import riesz as rz
from riesz.errors import TraceError

RNG = np.random.default_rng(0)
V, A = RNG.uniform(0.3, 0.9, 8), RNG.normal(size=(4, 5))
HOLES = np.where(RNG.random((4, 5)) < 0.25, np.nan, A)


def steps(T):
    """As many steps as a length asks for."""
    n = int(np.ceil(T[0] / 0.1))
    y = 1.0
    for _ in range(n):
        y = y - T[0] / n * y * y
    return y


CASES = {
    "item": (lambda x: x.sum().item() ** 2 + x.item(2) * x[3:4].item() + x.reshape(2, 4).item(1, 2), V),
    "tolist": (lambda x: sum(row[0] * row[1] for row in x.reshape(4, 2).tolist()), V),
    "int": (lambda x: x ** int(10.0 * x[0]) + int(x.sum()) * x, V),
    "steps": (steps, np.array([1.23])),
    "view": (lambda x: x.view() * x.view(np.ndarray), V),
    "fromiter": (lambda x: np.fromiter((t * t for t in x), float, count=5), V),
    "unravel_index": (lambda x: x[np.unravel_index(np.argmax(x), x.shape)] ** 2, A),
    "unravel_index, F": (lambda x: x.T[np.unravel_index(np.argmax(x.ravel("K")), x.T.shape, order="F")] ** 2, A),
    "ravel_multi_index": (lambda x: x.ravel()[np.ravel_multi_index((np.argmax(x, 0), np.arange(5)), x.shape)] ** 2, A),
    "triangles": (lambda x: np.concatenate([x[np.tril_indices_from(x, -1)], x[np.triu_indices_from(x)] ** 2]), A),
    "diagonal": (lambda x: x[:, :4][np.diag_indices_from(x[:, :4])] ** 2, A),
    "nanargmax": (
        lambda x: x[1, np.nanargmax(x[1])] ** 2 + np.sum(np.take_along_axis(x, np.nanargmin(x, 1)[:, None], 1)),
        A,
    ),
    "nanstd": (lambda x: np.nanstd(np.where(np.isnan(HOLES), np.nan, x), axis=0, ddof=1), A),
    "nanvar": (lambda x: np.nanvar(np.where(np.isnan(HOLES), np.nan, x), axis=1, keepdims=True), A),
    "nancumsum": (lambda x: np.nancumsum(np.where(np.isnan(HOLES), np.nan, x), axis=1) ** 2, A),
    "nancumprod": (lambda x: np.nancumprod(np.where(np.isnan(HOLES), np.nan, x)), A),
    "roots": (lambda p: np.sort(np.abs(np.roots(p))), np.array([1.0, -6.1, 11.2, -6.3])),
    "roots, complex": (lambda p: np.abs(np.roots(p)) ** 2, np.array([1.0, 0.3, 2.2, 0.7])),
    "polyder": (lambda p: np.polyval(np.polyder(p, 2), p[:3]), V),
    "ldexp": (lambda x: np.ldexp(x, np.arange(8) - 4) ** 2, V),
    "array_equal": (lambda x: x if np.array_equal(x, np.sort(x)) else x**2, V),
    "vecdot": (lambda x: np.vecdot(x, x**2, axis=0), A),
    "extract and place": (lambda x: placed(x), V),
}


def placed(x):
    y, mask = np.zeros(8), x > 0.6
    np.place(y, mask, np.extract(mask, x) ** 2)
    np.place(y, (1 - mask) & (x < 0.5), 3.0)
    return y * x


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    f, x = CASES[name]
    v, h = np.random.default_rng(1).normal(size=x.shape), 1e-5
    wanted = f(x)
    found = rz.function(f)(x)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    slope = (f(x + h * v) - f(x - h * v)) / (2 * h)
    np.testing.assert_allclose(rz.jvp(f, (x,), (v,))[1], slope, rtol=1e-6, atol=1e-7)
    loss = lambda x: np.sum(np.sin(f(x)))  # noqa: E731
    np.testing.assert_allclose(np.sum(rz.grad(loss)(x) * v), np.sum(np.cos(wanted) * slope), rtol=1e-6, atol=1e-7)
    bent = (rz.grad(loss)(x + h * v) - rz.grad(loss)(x - h * v)) / (2 * h)
    np.testing.assert_allclose(rz.hvp(loss, (x,), (v,)), bent, rtol=1e-5, atol=1e-5)
    small = x.astype(np.float32)
    assert np.asarray(rz.function(f)(small)).dtype == np.asarray(f(small)).dtype


def test_another_whole_part_traces_again():
    g = rz.grad(lambda x: x ** int(x))
    assert [g(x) for x in (2.5, 3.5, 2.75, 1.5)] == pytest.approx([2 * 2.5, 3 * 3.5**2, 2 * 2.75, 1.0])


def test_where_no_point_is_known_int_is_refused():
    with pytest.raises(TraceError, match=r"int\(\) needs a number"):
        rz.derive(lambda x: x ** int(x), rz.R)


def test_what_python_refuses():
    for f in (lambda x: x.item(), lambda x: x.item(0, 0), lambda x: x[:, None].item(9)):
        with pytest.raises((ValueError, IndexError)):
            f(V)
        with pytest.raises((ValueError, IndexError)):
            rz.grad(lambda x, f=f: f(x))(V)
