"""Sums written element by element, writes in bodies, and which arrays are views: against NumPy, differences, twins."""

import numpy as np
import pytest

import riesz as rz

n = 12
rng = np.random.default_rng(3)
x = rng.normal(size=n) + 0.1
tri = np.stack([np.roll(rng.permutation(n), k) for k in range(3)], 1)
tri = np.array([t if len(set(t)) == 3 else [0, 1, 2] for t in tri])
G = rng.normal(size=(n, 3, 3))


def by_index_arrays(x):
    r = np.zeros(n)
    for e in range(n):
        r[tri[e]] += G[e] @ x[tri[e]] ** 2
    return r


def by_numbers(x):
    r = np.zeros(n)
    for i in range(n - 1):
        a = x[i] * x[i + 1]
        r[i] += a
        r[i + 1] = r[i + 1] - a
    return r


def by_slices(x):
    r = np.ones(n)
    for i in range(n - 3):
        r[i : i + 3] += x[i : i + 3] * x[i + 1]
    return r


def by_add_at(x):
    r = np.zeros(n)
    for e in range(n):
        np.add.at(r, tri[e], x[tri[e]] ** 2)
        np.subtract.at(r, [0, 0, 1], x[e])
    return r


def matrix(x):
    K = np.zeros((n, n))
    for e in range(n):
        K[np.ix_(tri[e], tri[e])] += np.outer(x[tri[e]], x[tri[e]]) * G[e]
    return K @ x


def matrix_entries(x):
    K = np.zeros((n, n))
    for e in range(n):
        for a in range(3):
            for b in range(3):
                K[tri[e, a], tri[e, b]] += x[tri[e, a]] * G[e, a, b]
    return K @ x


def on_a_computed_array(x):
    r = x * 1.0
    for i in range(n - 1):
        r[i + 1] += np.sin(x[i])
    return r


def read_between(x):
    r = np.zeros(n)
    total = 0.0
    for i in range(n - 1):
        before = r[i]
        r[i] += x[i]
        r[i + 1] -= x[i] ** 2
        total = total + before * r[i]
    r[3] += total
    return r


def kept_copies(x):
    r = np.zeros(n)
    r[:] = x
    a = r[[1, 2]]
    a += x[:2]
    b = r[[1, 2]]
    r[[1, 2]] = a
    a += 1.0
    r[1] = 7.0
    return np.concatenate([r, a, b])


def last_wins(x):
    r = np.zeros(n)
    r[0] = x[0]
    r[[0, 0, 1]] += x[:3]
    return r


def views(x):
    K = np.zeros((3, 4))
    for i in range(3):
        row = K[i]
        row += x[i : i + 4]
        row[1:] -= x[0]
        K.T[2] += x[:3]
    return K.ravel()


PROGRAMS = [
    by_index_arrays,
    by_numbers,
    by_slices,
    by_add_at,
    matrix,
    matrix_entries,
    on_a_computed_array,
    read_between,
    kept_copies,
    last_wins,
    views,
]


def differences(f, x, h=1e-6):
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))], 1)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_derivatives(f):
    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-13, atol=1e-13)
    J = rz.jacobian(f)(x)
    np.testing.assert_allclose(J.to_dense(), differences(f, x), atol=1e-7)
    w = np.arange(1.0, len(f(x)) + 1)
    H = rz.hessian(lambda x: w @ np.sin(f(x)))(x).to_dense()
    g = rz.grad(lambda x: w @ np.sin(f(x)))
    np.testing.assert_allclose(H, differences(g, x), atol=2e-5)
    for backend in ("numpy", "jax"):
        np.testing.assert_allclose(rz.compile(g, x, backend=backend)(x), g(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("f", [by_index_arrays, by_numbers, by_slices, by_add_at, matrix, matrix_entries])
def test_many_sums_are_few_steps(f):
    assert len(rz.jacobian(f)(x).instance.program) < 60


def test_the_pattern_is_that_of_one_scatter():
    def twin(x):
        return np.bincount(tri.ravel(), np.einsum("eab,eb->ea", G, x[tri] ** 2).ravel(), n)

    J, K = (rz.jacobian(f)(x).to_sparse().tocsr() for f in (by_index_arrays, twin))
    assert (abs(J - K) > 1e-13).nnz == 0 and J.nnz == K.nnz


def test_in_batches():
    np.testing.assert_allclose(
        rz.vmap(by_index_arrays)(np.stack([x, 2 * x])), [by_index_arrays(x), by_index_arrays(2 * x)]
    )


# -- bodies ---------------------------------------------------------------------------------------------------


def in_a_loop(x):
    a = x * 2

    def body(i, c):
        y = np.sin(a)
        y[0] *= 3.0
        z = a[1:] + a[:-1]
        z[:2] += a[2]
        return y * c / 4 + np.sum(z) / 50

    return rz.fori_loop(0, 3, body, x)


def in_a_while_loop(x):
    a = np.cos(x)

    def body(c):
        y = a + 1.0
        y[::2] = 0.5
        return c * y / 3

    return rz.while_loop(lambda c: np.sum(c**2) > 1e-2, body, x)


def in_vmap(x):
    a = x * 2

    def f(v):
        y = np.sin(a)
        y[0] = v
        y[1:] += a[1:]
        return y

    return np.sum(rz.vmap(f)(x), 0)


def in_an_inner_gradient(x):
    a = np.exp(x)

    def f(v):
        y = a * a
        y[1:] *= v[1:]
        return np.sum(y * v)

    return rz.grad(f)(x)


@pytest.mark.parametrize("f", [in_a_loop, in_a_while_loop, in_vmap, in_an_inner_gradient], ids=lambda f: f.__name__)
def test_arrays_made_in_a_body_of_outer_arrays(f):
    value = f(x)
    np.testing.assert_allclose(rz.function(f)(x), value, atol=1e-13)
    np.testing.assert_allclose(rz.jacobian(f)(x).to_dense(), differences(f, x), atol=1e-6)


def test_outer_arrays_are_still_refused_in_a_body():
    def f(x):
        a = x * 2

        def body(i, c):
            nonlocal a
            a += 1.0
            return c * a

        return rz.fori_loop(0, 3, body, x)

    with pytest.raises(rz.TraceError, match="outer function"):
        rz.function(f)(x)


# -- memory order -----------------------------------------------------------------------------------------------

ORDERS = [
    "a.T + 1.0",
    "np.sin(a.T)",
    "np.sin(a.T) + np.ones((4, 3))",
    "a.T * np.asfortranarray(np.ones((4, 3)))",
    "np.asfortranarray(a * 1.0)",
    "np.asfortranarray(np.asfortranarray(a) * 2).T",
    "np.array(a.T)",
    "np.array(a, order='F')",
    "a.T.copy()",
    "a.T.copy('K')",
    "a.T.copy('A')",
    "a.astype(float, 'F')",
    "np.zeros_like(a.T) + x[0]",
    "np.zeros_like(a, order='F') + x[0]",
    "np.ones_like(np.sin(a.T)) * x[0]",
    "np.full_like(a.T, 2.0) * x[1]",
    "np.einsum('i,j->ji', x[:3], x[3:7])",
    "np.einsum('ij,jk->ki', a, a.T)",
    "a.T @ np.ones((3, 2))",
    "(a @ a.T).T * 2",
    "np.sum(x.reshape(1, 3, 4).T * np.ones((4, 3, 2)), 2)",
    "np.concatenate([a.T, a.T])",
    "np.stack([x[:3], x[3:6]], axis=1)",
    "np.where(a.T > 0, a.T, 1.0)",
    "np.linalg.inv(np.eye(3) + a @ a.T / 9).T * 2",
    "np.take(a.T, [1, 0], 0)",
    "a.T[[1, 0]]",
    "a[:, [1, 0]]",
    "a.T[:, [1, 0]] + 0.0",
    "np.cumsum(a.T, 0)",
    "np.cross(a[:, :3], a[:, 1:], axis=0)",
    "np.delete(a, [1], axis=1)",
    "np.sort(a.T, axis=0)",
    "np.maximum(a.T, 0)",
    "-a.T",
    "a.T ** 2 - a.T / 2",
    "np.moveaxis(x.reshape(2, 2, 3), 0, 2) * 1.0",
    "np.tensordot(a.T, a, 1)",
    "np.outer(x[:3], x[:2]).T + a[:2, :3]",
    "np.broadcast_to(x[:3], (2, 3)) * 1.0",
    "np.broadcast_to(x[:3, None], (3, 2)) * 1.0",
    "np.clip(a.T, -1, 1)",
]
READS = [
    "y.reshape(-1)",
    "y.ravel()",
    "y.ravel('F')",
    "y.ravel('K')",
    "y.reshape(-1, order='A')",
    "y.T.reshape(-1)",
    "y[1:].reshape(-1)",
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("made", ORDERS)
def test_views_and_copies_are_numpys(made, read):
    code = f"""
def f(x):
    a = x.reshape(3, 4)
    y = {made}
    z = {read}
    z[1] = 5.0
    z[2:4] *= x[0]
    return np.concatenate([y.ravel(), z])
"""
    space = {"np": np}
    exec(code, space)
    f = space["f"]
    np.testing.assert_allclose(rz.function(f)(x), f(x))


def test_orders_through_many_operations():
    def f(x):
        y = x.reshape(3, 4).T
        for _ in range(1500):
            y = y + 0.001
        z = y.reshape(-1)
        z[0] = 3.0
        return y.ravel() + 0 * z

    np.testing.assert_allclose(rz.function(f)(x), f(x))


# -- ufunc.at -----------------------------------------------------------------------------------------------------

AT = [0, 0, 1, 2, 2, 0, 3]


@pytest.mark.parametrize(
    "name", ["power", "hypot", "arctan2", "maximum", "minimum", "multiply", "divide", "logaddexp", "fmax"]
)
def test_at_positions_that_come_up_again(name):
    def f(x):
        r = np.abs(x[:4]) + 1.0
        getattr(np, name).at(r, AT, x[:7] ** 2 + 0.5)
        return r

    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(rz.jacobian(f)(x).to_dense(), differences(f, x), atol=1e-6)


def test_functions_of_one_argument_at_positions_that_come_up_again():
    def f(x):
        r = x[:4] * 1.0
        np.sin.at(r, [0, 0, 1])
        np.negative.at(r, [2, 2, 3])
        return r

    np.testing.assert_allclose(rz.function(f)(x), f(x))
    np.testing.assert_allclose(rz.jacobian(f)(x).to_dense(), differences(f, x), atol=1e-6)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum", "logaddexp"])
def test_at_positions_that_are_computed(name):
    def f(x):
        r = np.abs(x[:4]) + 0.5
        getattr(np, name).at(r, np.argsort(x) // 3, x**2 + 0.1)
        return r

    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(rz.jacobian(f)(x).to_dense(), differences(f, x), atol=1e-6)


def test_ties_at_computed_positions_share_equally():
    def f(v):
        r = np.zeros(2)
        np.maximum.at(r, np.argsort(np.array([2.0, 1.0, 3.0, 0.0]) + 0 * v) // 2, v)
        return r

    J = rz.jacobian(f)(np.array([1.0, 2.0, 2.0, 1.0])).to_dense()
    at = np.argsort([2.0, 1.0, 3.0, 0.0]) // 2
    for k in range(2):
        v = np.where(at == k, [1.0, 2.0, 2.0, 1.0], -1)
        np.testing.assert_allclose(J[k], (v == v.max()) / np.sum(v == v.max()))


def test_parts_of_complex_arrays_are_written():
    def f(x):
        z = x * 1j
        z.real = np.cos(x)
        z.imag = x**2
        return np.abs(z) ** 2

    np.testing.assert_allclose(rz.function(f)(x), f(x))
    np.testing.assert_allclose(rz.jacobian(f)(x).to_dense(), differences(f, x), atol=1e-6)


def test_arrays_that_are_read_only_stay_so():
    def f(x):
        a = np.zeros(n)
        a.flags.writeable = False
        a[0] = x[0]
        return a

    with pytest.raises(ValueError, match="read-only"):
        rz.function(f)(x)


def test_the_way_out_for_arrays_of_other_libraries():
    import scipy.sparse

    def f(x):
        a = scipy.sparse.eye_array(3).toarray()
        a[0] = x[:3]
        return a

    with pytest.raises(rz.TraceError, match=r"a = np.array\(a\)"):
        rz.function(f)(x)
