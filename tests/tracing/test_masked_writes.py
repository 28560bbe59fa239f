"""Masks and positions that depend on the numbers, and complex arrays, written to and read as plain NumPy code does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import riesz as rz
from riesz.errors import VectorError

X = np.array([0.3, -1.2, 0.7, 1.9, -0.4])
A, K = np.arange(1.0, 6.0), np.arange(5)
PROGRAMS: dict[str, Any] = {}


def program(f: Any) -> Any:
    PROGRAMS[f.__name__] = f
    return f


def flat(value: Any) -> Any:
    """All numbers of a result in one axis."""
    return np.concatenate([np.ravel(v) * 1.0 for v in (value if isinstance(value, tuple) else (value,))])


# -- masks ------------------------------------------------------------------------------------------------


@program
def scaled_where_negative(x):
    y = x.copy()
    y[y < 0] *= 2
    return y


@program
def raised_where_large(x):
    y = x * 1.0
    large = y > 0.5
    y[large] += 3.0
    y[~large] -= x[~large] ** 2
    return y


@program
def part_of_another(x):
    y = x * 1.0
    m = y > 0.5
    y[m] = (x**2)[m]
    return y


@program
def mask_computed_again(x):
    y = x * 1.0
    y[y < 0] = y[y < 0] ** 2 * 3
    return y


@program
def part_of_an_array_outside(x):
    y = np.zeros(5)
    m = x > 0
    y[m] = A[m] * x[m] + 1
    return y, np.sum(A[x > 0]) * x


@program
def reductions(x):
    z = x[x > 0]
    return (
        np.sum(z**2) + np.mean(x[x < 0]) + z.max() + np.min(x[x > -3]) + np.prod(x[x > 0.5]),
        *(np.var(z), np.std(z, ddof=1), np.linalg.norm(z), np.linalg.norm(z, 1), np.linalg.norm(z, np.inf)),
        *(z @ z, np.dot(z, z), z.size, np.average(z, weights=z**2), np.count_nonzero(z > 1) * x),
    )


@program
def part_of_a_part(x):
    z = x[x > -1]
    z[z > 0.5] = 0.5
    return np.sum(z), np.sum(z[z < 0]), np.any(z > 0.4), np.all(z > 0.4), np.sum(np.clip(z, 0, 0.2))


@program
def positions_of_masks(x):
    y = x.copy()
    y[np.where(y < 0)[0]] = 0.0
    y[np.flatnonzero(y > 1)] *= 3
    y[np.nonzero(x > 0)] += 1
    return y, np.sum(np.extract(x > 0, x)), np.sum(np.compress(x > 0, x))


@program
def branch_outside_its_domain(x):
    y = np.zeros_like(x)
    m = x > 0
    y[m] = np.log(x[m]) + np.sqrt(x[m])
    y[~m] = -1
    return y


@program
def rows_and_columns(x):
    a = np.outer(x, x)
    m = x > 0
    a[m] *= 2
    a[m, 0] = 7.0
    a[:, m] += 1
    a[m] -= x
    a[a > 3] = 3
    a[1, m] *= x[m]
    return a, np.sum(a[m], axis=0), np.sum(np.mean(a[m], axis=1))


@program
def integers_chosen(x):
    y = np.zeros(5, int)
    y[x > 0] = 3
    return y * x


@program
def by_functions(x):
    i = np.argsort(x)
    y, a = np.zeros(5), np.outer(x, x)
    np.put(y, i[:3], x[:3])
    np.put_along_axis(a, np.argsort(a, 1)[:, :2], x[:, None], 1)
    np.place(y, y > 1, 9.0)
    np.putmask(y, y < 0, 2 * x)
    np.copyto(y, x, where=x > 1)
    y.flat[i[0]] = x[1]
    return y, a


# -- positions --------------------------------------------------------------------------------------------


@program
def permuted(x):
    y = np.zeros(5)
    y[np.argsort(x)] = A * x
    return y


@program
def the_last_counts(x):
    y = np.zeros(3)
    y[(x > 0).astype(int)] = x
    return y


@program
def added_at(x):
    y = np.ones(3)
    i = (x > 0).astype(int)
    np.add.at(y, i, x**2)
    np.subtract.at(y, i, 1.0)
    return y


@program
def rows_at(x):
    a, i = np.zeros((5, 5)), np.argsort(x)
    np.add.at(a, (i, 0), x)
    a[i, 1] = x
    a[2, i] += x
    a[i] += x
    return a


@program
def columns_at(x):
    a, b, i = np.zeros((5, 5)), np.ones((2, 5, 3)), np.argsort(x)
    a[:, i] = np.outer(x, A)
    a[1:3, i[:2]] += x[:2]
    b[:, i] = x[:, None]
    b[0, 1:, i[0] % 3] *= x[1:]
    b[:, i, 1] = np.stack([x, A])
    return a, b


@program
def elements_of_an_array_outside(x):
    return A[np.argmax(x)] * x + A[np.argsort(x)] * A[np.floor(x).astype(int)]


# -- complex arrays ---------------------------------------------------------------------------------------


@program
def complex_elements(x):
    z = np.zeros(5, complex)
    for k in range(5):
        z[k] = x[k] + 1j * x[4 - k]
    return z.real * z.imag, np.abs(z)


@program
def complex_views(x):
    z = np.zeros(5, complex)
    z[1:] = x[1:] * (1 + 2j)
    z[0] = 3j
    w = z[::2]
    w *= 2j
    return z.real, z.imag, np.abs(w)


@program
def complex_parts(x):
    z = np.zeros(5, complex)
    z.real = x
    z.imag[2:] = x[2:] ** 2
    z.imag[0] = 1.0
    y = np.ones(5)
    y.real = x**2
    y.real[0] = 3.0
    return np.abs(z) ** 2, z.imag, y


@program
def complex_results_written_to(x):
    z = x + 1j * x[::-1]
    z[0] = 0
    z[2:] *= 3j
    z[1] = x[1] * 1j
    w = z[np.array([0, 3])]
    w *= 2.0
    spectrum = np.fft.fft(x)
    spectrum[2:4] *= 0.5
    spectrum[0] = 0
    return z.real, z.imag, w.imag, np.fft.ifft(spectrum).real


@program
def complex_matrix(x):
    z = np.empty((2, 5), np.complex128)
    z[0] = x
    z[1] = 1j * x
    np.add.at(z, ([0, 0], [1, 1]), x[:2] * 1j)
    return np.sum(z * np.conj(z), 0).real, (z.T @ z).real, np.real(z.reshape(-1)), z.T.imag


BACKENDS = ("python", "numpy", "numba", "jax")


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives_are_those_of_plain_numpy(name: str):
    f = PROGRAMS[name]
    wanted, h = flat(f(X)), 1e-6
    slopes = np.stack([(flat(f(X + h * e)) - flat(f(X - h * e))) / (2 * h) for e in np.eye(5)], 1)
    np.testing.assert_allclose(flat(rz.function(f)(X)), wanted, rtol=1e-14, atol=1e-14)
    g = lambda x: flat(f(x))  # noqa: E731
    L = rz.jacobian(g)(X)
    np.testing.assert_allclose(L.to_dense(), slopes, atol=1e-7)
    np.testing.assert_allclose(L.to_sparse().toarray(), L.to_dense(), atol=1e-14)
    np.testing.assert_allclose(np.stack([L.H(e) for e in np.eye(len(wanted))]), L.to_dense(), atol=1e-13)
    points = np.stack([X, X[::-1], 2 * X])
    np.testing.assert_allclose(rz.vmap(g)(points), np.stack([flat(f(p)) for p in points]), rtol=1e-13, atol=1e-13)
    for p in points:  # the trace holds wherever the masks are others
        np.testing.assert_allclose(rz.function(g)(p), flat(f(p)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled(name: str, backend: str):
    f = PROGRAMS[name]
    loss = lambda x: np.sum(flat(f(x)) ** 2)  # noqa: E731
    try:
        found = rz.compile(rz.value_and_grad(loss), backend=backend)(X)
    except VectorError:
        pytest.skip("no code for single numbers") if backend == "python" else pytest.fail(backend)
    np.testing.assert_allclose(found[0], loss(X), rtol=1e-12)
    np.testing.assert_allclose(found[1], rz.grad(loss)(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["scaled_where_negative", "reductions", "rows_and_columns", "the_last_counts"])
def test_second_order(name: str):
    loss = lambda x: np.sum(np.sin(flat(PROGRAMS[name](x))))  # noqa: E731
    h, g = 1e-5, rz.grad(loss)
    wanted = np.stack([(g(X + h * e) - g(X - h * e)) / (2 * h) for e in np.eye(5)])
    np.testing.assert_allclose(rz.hessian(loss)(X).to_dense(), wanted, atol=1e-6)


def test_float32_stays():
    def f(x):
        y = x.copy()
        y[y < 0] *= 2
        y[np.argsort(x)] = y + y[y > 0].sum()
        return y

    x = X.astype(np.float32)
    assert rz.function(f)(x).dtype == np.float32 and rz.grad(lambda v: np.sum(f(v)))(x).dtype == np.float32
    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-6)


def test_nothing_chosen_and_empty_arrays():
    f = lambda x: (np.sum(x[x > 9]), np.mean(x[x > 9]), np.prod(x[x > 9]), np.any(x[x > 9] > 0))  # noqa: E731
    total, mean, product, some = rz.function(f)(X)
    assert total == 0 and np.isnan(mean) and product == 1 and not some
    assert np.isnan(rz.function(lambda x: np.max(x[x > 9]))(X))  # NumPy raises

    def g(x):
        y = x.copy()
        y[y < 0] *= 2
        y[np.argsort(x)] = x
        return y

    assert rz.function(g)(np.zeros(0)).shape == (0,)


def test_positions_given_as_arguments():
    def f(x, at):
        y = np.zeros(4)
        y[at] = x
        np.add.at(y, at, x)
        return y

    x, at = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2])
    np.testing.assert_array_equal(rz.function(f)(x, at), f(x, at))
    np.testing.assert_array_equal(rz.jacobian(f)(x, at).to_dense(), [[0, 2, 0], [0, 0, 0], [1, 0, 2], [0, 0, 0]])
    np.testing.assert_array_equal(rz.function(f)(x, np.array([3, -1, 1])), f(x, np.array([3, -1, 1])))


def columns_of_rows(x):
    y, z, m = np.zeros((2, 5)), np.zeros((2, 5, 3)), x > 0
    y[:, m] = x[m] ** 2
    y[:, m] *= x[m]
    z[:, m] = x[:3]
    z[:, ~m] = x[:2].reshape(2, 1, 1)
    z[:, m, 1] *= x[m] + y[:, m]
    y[1:, m] = np.array([[2.0]]) * x[0]
    return y, z


def test_columns_take_what_numpy_gives_them():
    x = np.array([0.3, -0.2, 1.0, 0.7, -1.0])
    for found, wanted in zip(rz.function(columns_of_rows)(x), columns_of_rows(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    for k, found in enumerate(rz.jvp(columns_of_rows, (x,), (np.cos(x),))[1]):
        up, down = columns_of_rows(x + 1e-6 * np.cos(x)), columns_of_rows(x - 1e-6 * np.cos(x))
        np.testing.assert_allclose(found, (up[k] - down[k]) / 2e-6, rtol=1e-7, atol=1e-8)


def rows_by_a_part(x):  # NumPy compares the number of True with the number of columns
    y = np.outer(x, x)
    y[x > 0] = x[x > 0]
    return y


def columns_by_a_column(x):
    y = np.zeros((2, 5))
    y[:, x > 0] = x[:2]
    return y


def another_axis(x):
    y = np.zeros((2, 5, 5))
    y[:, x > 0] = np.multiply.outer(np.ones((2, 5)), x)[:, :, x > 0]
    return y


@pytest.mark.parametrize("f", [rows_by_a_part, columns_by_a_column, another_axis])
def test_what_fits_by_chance_is_refused(f):
    with pytest.raises(rz.TraceError, match=r"other axes|how many values"):
        rz.vmap(f)(np.array([[0.3, -0.2, 1.0, 0.7, -1.0]]))


def test_what_differs_is_refused():
    with pytest.raises(rz.TraceError, match="different masks"):
        rz.function(lambda x: np.sum(x[x > 0] * x[x < 0]))(X)
    with pytest.raises(rz.TraceError, match=r"write a\[mask\]"):
        rz.function(other_mask)(X)
    with pytest.raises(rz.TraceError, match="returns x"):
        rz.function(lambda x: x[x > 0])(X)
    with pytest.raises(rz.TraceError, match=r"z = z\.copy\(\)"):
        rz.function(complex_view_in_use)(X)
    with pytest.raises(rz.TraceError, match="nothing else"):
        rz.function(lambda x: np.sum(x[x > 0], keepdims=True))(X)


def other_mask(x):
    y = x.copy()
    y[x > 0] = x[x > 0.5]
    return y


def complex_view_in_use(x):
    z = x * 1j
    w = z[1:]
    z[0] = 1.0
    return w.imag


def test_a_mask_is_that_of_its_moment():
    def f(x):
        y = x.copy()
        m = y > 0
        part = y[m]
        y[m] = -1.0
        y[y < 0] = 5.0
        return y, np.sum(part)

    for found, wanted in zip(rz.function(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


# -- other arrays -----------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


def drawn(x):
    a = np.random.default_rng(3).normal(size=5)
    a[0] = x[0]
    return a


def drawn_by_one_outside(x):
    a = RNG.normal(size=5)
    a[:] = x
    return a


def drawn_by_the_old_kind(x):
    rng = np.random.RandomState(0)
    assert isinstance(rng, np.random.RandomState)
    a = rng.randn(5)
    a[1:] *= x[1:]
    return a


def drawn_by_the_global_one(x):
    a = np.random.uniform(size=5) * 0.0
    a[2] = x[2] ** 2
    return a


@pytest.mark.parametrize("f", [drawn, drawn_by_one_outside, drawn_by_the_old_kind, drawn_by_the_global_one])
def test_arrays_of_random_numbers_may_be_written_to(f: Any):
    np.testing.assert_array_equal(rz.function(f)(X), f(X))


def test_diagonals_by_einsum_are_views():
    def f(x):
        a, b = np.zeros((5, 5)), np.outer(x, x)
        a[0] = x
        np.einsum("ii->i", a)[:] = x**2
        np.einsum("ij->ji", a)[1] = 3.0
        np.einsum("ii->i", b)[1:] = 0.0
        return a, b

    for found, wanted in zip(rz.function(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_views_say_what_they_look_into():
    def f(x):
        a, c = np.zeros((2, 5)), x * 2.0
        b, d = a[0], c[1:]
        return np.array(
            [
                *(a.base is None, b.base is None, b.base is a, b[1:].base is a, a.copy().base is None),
                *(c.base is None, d.base is None, d.base is c, d[1:].base is c, c.copy().base is None),
            ]
        )

    np.testing.assert_array_equal(rz.function(f)(X), f(X))


class Buffered:
    """An object that keeps the memory it works in."""

    def __init__(self) -> None:
        self.buffer: Any = None

    def __call__(self, x: Any) -> Any:
        if self.buffer is None:
            self.buffer = np.zeros(5)
        self.buffer[:] = x * 2
        return self.buffer * x


def test_a_buffer_made_while_tracing_is_plain_again_when_it_is_filled():
    model = Buffered()
    np.testing.assert_array_equal(rz.grad(lambda x: np.sum(model(x)))(X), 4 * X)
    with pytest.raises(rz.TraceError, match="after its trace has ended"):
        model.buffer + 1.0
    model.buffer[1] = 7.0
    assert model.buffer[1] == 7.0
    with pytest.raises(rz.TraceError, match="after its trace has ended"):
        model.buffer[:2] + 1.0
    np.testing.assert_array_equal(model(X), 2 * X**2)
    np.testing.assert_array_equal(model.buffer + 1.0, 2 * X + 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.uint64])
@pytest.mark.parametrize("read", [lambda k: np.frombuffer(k, k.dtype), lambda k: memoryview(k)[0]])
def test_memory_that_stands_for_traced_numbers_is_not_read(dtype: Any, read: Any):
    def f(x):
        k = np.zeros(5, dtype)
        k[:] = np.argsort(x)
        for _ in range(60):  # too long to be compared with plain Python
            x = np.sin(x) + 0.5 * x
        return read(k) * x

    if dtype is np.float32 and not isinstance(read(np.ones(1, dtype)), np.ndarray):
        pytest.skip("a float32 becomes a float of Python's, whose bits are others")
    with pytest.raises(rz.TraceError, match="does not ask NumPy's protocols"):
        rz.function(f)(X)


def test_what_was_traced_may_be_overwritten_with_numbers():
    def f(x):
        y = np.ones((3, 3))
        y[2::2] *= np.sum(x)
        y.fill(0.5)
        return y, x

    np.testing.assert_array_equal(rz.function(f)(X)[0], np.full((3, 3), 0.5))


def test_what_was_written_to_is_an_argument_of_inner_functions():
    def f(x):
        y = np.zeros(5)
        y[1:] = x[1:] ** 2
        slope = rz.grad(lambda v: np.sum(np.sin(v)))(y)
        total, _ = rz.loop(lambda s, r: (s + r, s), 0.0, y)
        return slope, rz.vmap(np.cos)(y), total, rz.jvp(np.sin, (y,), (y,))[1]

    y = np.concatenate([[0.0], X[1:] ** 2])
    for found, wanted in zip(rz.function(f)(X), (np.cos(y), np.cos(y), np.sum(y), np.cos(y) * y), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_the_sum_of_masks_is_a_mask():
    x = np.array([0.2, 0.4, 0.6])
    f = lambda x: ((x > 0.3) + (x > 0.5)) * 1.0 + ((x > 0.1) + np.array([True, False, True])).astype(float) * x  # noqa: E731
    for g in (rz.function(f), rz.compile(f, x), rz.compile(f, x, backend="numpy"), rz.compile(f, x, backend="jax")):
        np.testing.assert_array_equal(g(x), f(x))
