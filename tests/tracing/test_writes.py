"""Writes in place, as people write them: the numbers of plain NumPy, derivatives of the functional form, its structure."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from sampling import LEVEL

import riesz as rz
from riesz.errors import TraceError
from riesz.tracing.writing.rows import lattice

X = np.array([0.3, -1.2, 0.7, 1.9])
U0 = np.arange(6.0)
FREE = np.array([1, 2, 4, 5])
TRI = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0]])

PROGRAMS: dict[str, tuple[Any, Any]] = {}
"""A function that writes, and one that computes the same without, or None."""


def twin(functional: Any = None) -> Any:
    def enter(f: Any) -> Any:
        PROGRAMS[f.__name__] = f, functional
        return f

    return enter


@twin(lambda x: x * x)
def elements(x: Any) -> Any:
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[i] * x[i]
    return y


@twin(lambda x: np.concatenate([x[:1], 2.0 * x[1:]]))
def tail_scaled(x: Any) -> Any:
    y = x.copy()
    y[1:] *= 2
    return y


@twin(lambda x: np.bincount(FREE, x, 6) + np.array([0.0, 0.0, 0.0, 3.0, 0.0, 0.0]))
def boundary_values(x: Any) -> Any:
    u = U0.copy()
    u[FREE] = x
    return u


@twin(lambda x: np.bincount(FREE, x, 6))
def free_unknowns(x: Any) -> Any:
    u = np.zeros(6)
    u[FREE] = x
    return u


@twin(lambda x: np.eye(4) + np.diag(x))
def diagonal_added(x: Any) -> Any:
    a = np.eye(4)
    a[np.diag_indices(4)] += x
    return a


@twin(lambda x: np.bincount(TRI.ravel(), (x[:, None] ** 2 * np.ones(3)).ravel(), 5))
def assembled_at_once(x: Any) -> Any:
    r = np.zeros(5)
    np.add.at(r, TRI, x[:, None] ** 2 * np.ones(3))
    return r


@twin(lambda x: np.bincount(TRI.ravel(), (x[:, None] ** 2 * np.ones(3)).ravel(), 5))
def assembled_by_element(x: Any) -> Any:
    r = np.zeros(5)
    for e in range(4):
        r[TRI[e]] += x[e] ** 2
    return r


@twin(lambda x: -np.bincount([0, 1, 1, 2], x, 3))
def subtracted_at(x: Any) -> Any:
    r = np.zeros(3)
    np.subtract.at(r, [0, 1, 1, 2], x)
    return r


@twin()
def views_of_views(x: Any) -> Any:
    a = np.outer(x, x)
    row = a[1]
    row += 1.0
    a.T[0] = 5.0
    a[1:][::2] = x
    a[::-1][0, 1:3] *= x[0]
    return a, row


@twin()
def runge_kutta(x: Any) -> Any:
    k = np.zeros((4, 4))
    for i in range(4):
        k[i] = np.sin(x + 0.1 * (k[i - 1] if i else 0.0))
    return np.array([1.0, 2.0, 2.0, 1.0]) @ k


@twin(lambda x: np.cumsum(x))
def recurrence(x: Any) -> Any:
    y = np.empty(4)
    y[0] = x[0]
    for i in range(1, 4):
        y[i] = y[i - 1] + x[i]
    return y


@twin()
def matrix_by_entries(x: Any) -> Any:
    a = np.zeros((2, 2))
    a[0, 0], a[0, 1], a[1, 0], a[1, 1] = x[0], x[1], x[2], x[3]
    return np.linalg.inv(a), scipy.linalg.expm(a), np.sum(a, axis=0), a.T @ a


@twin(lambda x: np.stack([x[2], x[3], 2.0 * x[2], 2.0 * x[3]]))
def out_and_copyto(x: Any) -> Any:
    y = np.empty_like(x)
    np.multiply(x, 2.0, out=y)
    np.copyto(y[:2], x[2:])
    return y


@twin()
def functions_that_write(x: Any) -> Any:
    y, z = np.ones(5), np.zeros((3, 3))
    np.put(y, [0, 3], x[:2])
    np.fill_diagonal(z, x[0])
    np.putmask(y, np.array([True, False, False, False, True]), 2.0 * np.concatenate([x, x[:1]]))
    np.place(y, np.array([False, True, False, False, False]), [x[3]])
    np.put_along_axis(z, np.array([[1], [2], [0]]), x[:3, None], 1)
    w = x * 1.0
    np.put(w, [1], x[0])
    np.copyto(w[2:], x[:2])
    return y, z, w


@twin()
def lists_that_are_written(x: Any) -> Any:
    mask, grid = [True, False, True, False], np.ones((4, 3))
    written = [x * 1.0, *[np.zeros(4) for _ in range(4)]]
    np.place(written[0], mask, [x[1], 5.0])
    np.place(written[1], x > x[0] - 1.0, [x[2]])
    np.put(written[2], [0, 1, 2], [x[1], x[0]])
    np.putmask(written[3], mask, [x[0], 3.0])
    np.copyto(written[4], [x[0], x[1], 3.0, x[2]], where=mask)
    np.fill_diagonal(grid, [x[0], x[1], 3.0])
    np.put_along_axis(grid, np.array([[1], [0], [2], [0]]), [[x[0]], [x[1]], [2.0], [x[3]]], 1)
    return *written, grid


@twin()
def masks(x: Any) -> Any:
    y = np.full(4, 0.5)
    y[np.array([True, False, True, False])] = x[:2]
    y[x > 1.0] = 7.0
    y[x < 0.0] = x[3]
    return y


@twin()
def known_numbers_decide(x: Any) -> Any:
    y = np.zeros(4)
    y[0] = x[0]
    if y[1] == 0.0:
        y[1] = 3.0 * x[1]
    y[2] = float(y[3]) + 1.0
    return y, y.sum(), y.mean(), y @ y, [2.0 * v for v in y]


@twin()
def flat_and_sorted(x: Any) -> Any:
    y = x.copy()
    y.flat[::2] = 7.0
    z = x.copy()
    z.sort()
    w = np.zeros((2, 2))
    w.flat = x
    w.fill(x[0])
    return y, z, w


@twin()
def last_of_equal_positions_wins(x: Any) -> Any:
    y = np.zeros(3)
    y[[0, 0, 2]] = x[:3]
    return y


@twin()
def overlapping(x: Any) -> Any:
    y = x.copy()
    y[1:] = y[:-1]
    y[:] += y[::-1]
    return y


@twin()
def in_an_inner_function(x: Any) -> Any:
    w = np.zeros(4)
    w[1:] = x[:3]

    def energy(z: Any) -> Any:
        v = np.zeros(4)
        v[:] = z * z
        v[0] = w[1]
        return np.sum(v * w)

    return rz.grad(energy)(x), rz.fori_loop(0, 3, lambda i, s: s * w + x, w), rz.vmap(lambda r: r * r)(np.outer(w, w))


@twin()
def integers_and_small_floats(x: Any) -> Any:
    k, y = np.zeros(3, int), np.zeros(3, np.float32)
    k[1], y[1] = 2, x[0]
    return y[k], y


@twin()
def einsum_is_a_view(x: Any) -> Any:
    a = np.outer(x, x)
    np.einsum("ii->i", a)[...] = x
    return a


@twin()
def dictionaries(x: Any) -> Any:
    d = {"a": np.zeros(3), "b": np.zeros(2)}
    d["a"][1:] = x[:2]
    d["b"] += x[2]
    return d


@twin()
def names_for_the_same_array(x: Any) -> Any:
    a = np.zeros((2, 4))
    np.asarray(a)[0] = x
    np.squeeze(a[:1])[1] = x[3]
    shown = np.broadcast_to(a[0], (3, 4))
    np.asarray(a, dtype=float)[1, 1:] = x[1:]
    a.view(np.ndarray)[1, 0] = 2.0 * x[2]
    np.array(a, copy=None)[0, 3] = 8.0  # pyright: ignore
    a[0, 2] = x[0] * x[1]
    apart = np.asarray(a, dtype=np.float32).astype(float)
    apart[0] = 1.0
    return a, shown, apart[0]


@twin()
def arrays_of_libraries(x: Any) -> Any:
    made = [np.linspace(0.0, 1.0, 4), np.tile(U0, 2), np.roll(U0, 1), np.kron(U0, U0[:2]), np.asarray([1.0, 2.0, 3.0])]
    made += [
        np.fromiter(range(4), float),
        np.hanning(4),
        np.broadcast_to(U0, (2, 6)).copy(),
        np.linalg.eigh(np.eye(4))[1],
    ]
    made += [scipy.linalg.toeplitz(U0), scipy.linalg.block_diag(np.eye(2), np.eye(2)), np.r_[0.0:1.0:4j]]
    for a in made:
        a[0] = x[0]
        a[-1] += x[1]
    return tuple(made)


@twin()
def methods_that_write(x: Any) -> Any:
    a, b, c = np.zeros(4), x * 1.0, np.zeros(4)
    a.put([0, 3], x[:2])
    b.put([1], x[0])
    c[:] = x
    c.partition(2)
    d, e = x.copy(), np.outer(x, x)
    d.partition(1)
    e @= np.diag(x)
    w = np.ones(6)
    w[[0, 3]] = x[:2]
    w[np.array([5, 4])] *= x[0]
    np.add.at(w, [0, 0], [1.0, x[2]])
    w2 = np.ones((2, 2))
    w2[0] = x[:2]
    w2 @= w2
    return a, b, c, d, e, w, w2


@twin()
def results_given_by_position(x: Any) -> Any:
    a, s, w = np.zeros((12, 4)), np.zeros(4), np.zeros(4)
    w[:] = x
    np.cumsum(x, 0, None, a[0])
    x.cumsum(out=a[1])
    np.clip(x, -1.0, 1.0, a[2])
    w.clip(-1.0, 1.0, out=a[3])
    np.dot(x, np.outer(x, x), a[4])
    np.outer(x, x).sum(1, out=a[5])
    np.take(x, [0, 1, 0, 3], 0, a[6])
    x.max(0, a[7, :1].reshape(()))
    w.sum(out=s[:1].reshape(()))
    np.concatenate([x[:2], w[:2]], 0, a[8])
    np.stack([x, w], 0, a[9:11])
    return a, s


@twin()
def columns_first(x: Any) -> Any:
    a = np.zeros((2, 3), order="F")
    a[0, 1:] = x[:2]
    b, c, d = a.ravel(), a.T.reshape(-1), np.ravel(a)
    b[0], c[0], d[1] = 5.0, x[0] * 7.0, x[3]
    return a, b, c, d


@twin()
def truth_values_and_small_integers(x: Any) -> Any:
    m, k = np.ones(6, bool), np.zeros(6, np.int8)
    m[[5, 0, 2]] = x[:3] > 0.0
    m[1] = False
    k[[5, 0, 2]] = np.argsort(x[:3])
    return np.where(m, x[0], 1.0), np.where(~m, x[1], 2.0), k * x[0]


@twin()
def copies_inside(x: Any) -> Any:
    w = np.zeros(4)
    w[:2] = x[:2]

    def energy(z: Any) -> Any:
        a, b, c, d = x.copy(), w.copy(), np.array(x), U0.copy()
        a[0], b[1], d[2] = z[1], z[0], z[3]
        c *= z
        return np.sum(a * b * c) * np.sum(d)

    def body(i: Any, s: Any) -> Any:
        v = x.copy()
        v[0] = s[1]
        return v * 0.5 + s

    return rz.grad(energy)(x), rz.fori_loop(0, 3, body, x), rz.cond(x[0] > 0.0, lambda z: body(0, z), body_of_one, x)


def body_of_one(z: Any) -> Any:
    return z


@twin()
def computed_rows_and_columns(x: Any) -> Any:
    found: list[Any] = []
    for a in (np.outer(x, x), np.zeros((4, 4))):
        a[x > 1.0, :] = 2.0
        a[:, x < 0.0] = x[0]
        a[np.argmax(x), 0] = x[1]
        a[1, np.argmin(x)] = 7.0
        a[1:, np.argmax(x)] = x[:3]
        a[np.argmax(x), ::2] += 1.0
        found.append(a)
    return tuple(found)


def flat(y: Any) -> Any:
    if isinstance(y, dict):
        y = tuple(y.values())
    return np.concatenate([flat(part) for part in y]) if isinstance(y, (tuple, list)) else np.ravel(y)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_derivatives_and_code(name: str):
    f, functional = PROGRAMS[name]
    wanted, found = f(X), rz.function(f)(X)
    np.testing.assert_allclose(flat(found), flat(wanted), 1e-13, 1e-13)
    assert flat(found).dtype == flat(wanted).dtype

    def g(x: Any) -> Any:
        return flat(f(x))

    jacobian, tolerance = rz.jacobian(g)(X), 1e-6 if flat(wanted).dtype == float else 1e-2
    step = 1e-6 if flat(wanted).dtype == float else 1e-3
    by_differences = np.stack([(g(X + step * e) - g(X - step * e)) / (2 * step) for e in np.eye(4)], 1)
    np.testing.assert_allclose(jacobian.to_dense(), by_differences, tolerance, tolerance)
    np.testing.assert_allclose(jacobian.to_sparse().toarray(), jacobian.to_dense(), 1e-13, 1e-13)
    w = np.linspace(-1.0, 1.0, len(by_differences))
    np.testing.assert_allclose(jacobian.T(w), by_differences.T @ w, tolerance, tolerance)
    for backend in ("numpy", "jax") if LEVEL != "core" else ("numpy",):
        code = rz.compile(g, X, backend=backend)
        np.testing.assert_allclose(code(X), flat(wanted), 1e-6, 1e-6)
    if functional is not None:
        other = rz.jacobian(lambda x: flat(functional(x)))(X)
        np.testing.assert_allclose(jacobian.to_dense(), other.to_dense(), 1e-13, 1e-13)
        assert jacobian.to_sparse().nnz <= other.to_sparse().nnz


def test_many_numbers_written_one_by_one_are_one_step():
    def f(x: Any) -> Any:
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = np.sin(x[i]) * x[i] + 2.0 * x[i]
        return y

    def steps(n: int) -> int:
        return len(rz.jacobian(f)(np.ones(n)).program.ops)

    assert steps(2000) == steps(50) < 40
    x = np.linspace(0.0, 1.0, 500)
    np.testing.assert_allclose(rz.jacobian(f)(x).diagonal(), np.sin(x) + x * np.cos(x) + 2.0, 1e-13)


def given(x: Any) -> Any:
    x[0] = 1.0
    return x


def part_of_given(x: Any) -> Any:
    y = x[1:]
    y *= 2.0
    return x


def outside(x: Any) -> Any:
    U0[1] = x[0]
    return U0 * x[0]


def outer_array(x: Any) -> Any:
    y = np.zeros(4)

    def body(i: Any, s: Any) -> Any:
        y[0] = s[0]
        return s + y

    return rz.fori_loop(0, 3, body, x)


def unknown_count(x: Any) -> Any:
    y = np.zeros(4)
    y[x > 0.0] = x[:3]
    return y


def buffer(x: Any) -> Any:
    y = np.zeros(4)
    y[1] = x[0]
    return np.frombuffer(memoryview(y)) * x  # pyright: ignore


REFUSED = {
    given: "x = x.copy",
    part_of_given: "x = x.copy",
    outside: r"own = U0.copy\(\)",
    outer_array: "return the new array",
    unknown_count: r"values\[mask\]",
    buffer: "functions of NumPy",
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_cannot_be_written_is_refused_with_the_way_out(f: Any):
    with pytest.raises(TraceError, match=REFUSED[f]) as caught:
        rz.function(f)(X)
    assert f"in {f.__name__}" in str(caught.value) or f is outer_array


def test_wrong_writes_are_wrong_in_numpys_words():
    def shapes(x: Any) -> Any:
        y = np.zeros(3)
        y[:] = x
        return y

    def bounds(x: Any) -> Any:
        y = np.zeros(3)
        y[7] = x[0]
        return y

    def read_only(x: Any) -> Any:
        y = np.broadcast_to(x * 1.0, (2, 4))
        y[0] = 1.0
        return y

    for f, kind in ((shapes, ValueError), (bounds, IndexError), (read_only, ValueError)):
        with pytest.raises(kind):
            f(X)
        with pytest.raises((kind, TraceError)):
            rz.function(f)(X)


def test_other_threads_get_plain_arrays():
    kinds: set[type] = set()
    stop = threading.Event()

    def elsewhere() -> None:
        while not stop.is_set():
            kinds.update([type(np.zeros(3)), type(np.array([1.0])), type(U0.copy()), type(np.zeros(3) + 1.0)])

    other = threading.Thread(target=elsewhere)
    other.start()
    for n in range(5, 25):
        rz.function(lambda x: boundary_values(x) * 1.0)(X + n)
    stop.set()
    other.join()
    assert kinds == {np.ndarray}


def test_what_is_written_between_two_calls_is_seen_by_the_second():
    def f(x: Any) -> Any:
        w = np.zeros(2)
        g = rz.grad(lambda z: np.sum(w * z * z))
        w[0] = x[0]
        first = g(x[:2])
        w[0] = x[1]
        return first, g(x[:2])

    np.testing.assert_allclose(flat(rz.function(f)(X)), flat(f(X)), 1e-14)


def test_numbers_from_outside_are_seen_as_they_are_at_each_call():
    large, zeros = np.arange(300.0), np.zeros(300)

    def f(x: Any) -> Any:
        u, v, w = large.copy(), np.zeros(300), zeros.copy()
        u[1], v[:4], w[2] = x[0], x, x[1]
        v[4:] = large[4:]
        return u.sum() + v @ v, w

    g = rz.function(f)
    for i in range(4):
        np.testing.assert_allclose(flat(g(X)), flat(f(X)), 1e-13)
        (zeros if i % 2 else large)[7 + i] += 100.0


def test_a_table_that_an_object_keeps_is_from_outside_the_next_time():
    class Model:
        table: Any = None

        def __call__(self, x: Any) -> Any:
            if self.table is None:
                self.table = np.zeros(4)
            self.table[:] = 2.0
            return self.table * x

    model = Model()
    for n in range(1, 4):
        np.testing.assert_allclose(rz.function(lambda x: model(x) * 1.0)(n * X), 2.0 * n * X, 1e-15)


def test_what_was_written_does_not_outlive_its_trace():
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = np.zeros(2)
        y[0] = x[0]
        kept.append(y)
        return y * x[:2]

    rz.function(f)(X)
    traced = [y for y in kept if type(y) is not np.ndarray]
    with pytest.raises(TraceError, match="after its trace has ended"):
        _ = traced[0] * 2.0


# -- random programs of views and writes ------------------------------------------------------------------

MAKERS = [
    "np.zeros({s})",
    "np.full({s}, 2.5)",
    "np.arange({n}.).reshape({s})",
    "np.outer(x[:{r}], x[:{c}])",
    "(np.outer(x[:{c}], x[:{r}]) + 1.0).T.copy()",
    "K[:{r}, :{c}].copy()",
    "K[:{r}, :{c}] * 2.0",
    "np.outer(x[:{c}], x[:{r}]).T + 0.5",
    "np.asarray(np.outer(x[:{r}], x[:{c}]), order='F') * 1.0",
    "np.array(np.outer(x[:{c}], x[:{r}]).T)",
]
NUMBERS = ["x[{i}]", "x[{i}] * x[{j}]", "2.5", "np.sin(x[{i}])", "x[{i}] + 1.0"]
CHANGES = [  # a line, and the shape of the value it takes, if any
    ("{a}[{i}] = {v}", "row"),
    ("{a}[...] = {v}", "all"),
    ("{a} {op}= {v}", "all"),
    ("{a}[{i}] {op}= {v}", "row"),
    ("{a}[{at}] = {v}", "rows"),
    ("np.add.at({a}, {at}, {v})", "rows"),
    ("{a}[np.array({mask})] = {v}", "number"),
    ("np.multiply({a}, 2.0, out={a})", "number"),
]


class RandomWrites:
    """A random program of views and writes, as text."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines = ["def f(x):"]
        self.names: list[tuple[str, tuple[int, ...]]] = []
        for _ in range(self.rng.integers(1, 3)):
            r, c = self.rng.integers(2, 5, 2).tolist()
            self.new((r, c), self.one(MAKERS).format(s=(r, c), n=r * c, r=r, c=c))
        for _ in range(self.rng.integers(3, 12)):
            self.line(*self.names[self.rng.integers(len(self.names))])
        self.lines.append(
            f"    return np.concatenate([np.ravel(v) for v in ({', '.join([n for n, _ in self.names])},)])"
        )
        self.text = "\n".join(self.lines)

    def one(self, of: list[Any]) -> Any:
        return of[self.rng.integers(len(of))]

    def new(self, shape: tuple[int, ...], text: str) -> None:
        self.lines.append(f"    v{len(self.names)} = {text}")
        self.names.append((f"v{len(self.names)}", shape))

    def number(self) -> str:
        i, j = self.rng.integers(0, 5, 2)
        return self.one(NUMBERS).format(i=i, j=j)

    def value(self, shape: tuple[int, ...]) -> str:
        same = [n for n, s in self.names if s == shape]
        kind = self.rng.integers(4) if shape else 0
        if kind == 1:
            return f"np.resize(x * {self.rng.integers(1, 4)}.0, {shape})"
        if kind == 2:
            return f"np.linspace(0.0, 1.0, {np.prod(shape)}).reshape({shape})"
        return f"{self.one(same)} * 0.5" if kind == 3 and same else self.number()

    def line(self, a: str, s: tuple[int, ...]) -> None:
        r, size = s[0], int(np.prod(s))
        start, jump, i = (int(n) for n in self.rng.integers([0, 1, 0], [max(r - 1, 1), 3, r]))
        views: list[Any] = [
            (s[::-1], f"{a}.T"),
            ((len(range(start, r, jump)), *s[1:]), f"{a}[{start}::{jump}]"),
            ((size,), f"{a}.reshape(-1)"),
            ((size,), f"{a}.ravel()"),
            (s, f"{a}[::-1]"),
            (s, f"{a}.copy()"),
            (s, f"{a} + {self.number()}"),
            *[(s[1:], f"{a}[{i}]"), ((r,), f"{a}[:, {self.rng.integers(s[-1])}]")] * (len(s) > 1),
        ]
        if self.rng.random() < 0.5:
            return self.new(*self.one(views))
        text, kind = self.one(CHANGES)
        at = self.rng.integers(0, r, self.rng.integers(1, 4)).tolist()
        shape = {"row": s[1:], "all": s, "rows": (len(at), *s[1:]), "number": ()}[kind]
        mask = self.rng.integers(0, 2, r).astype(bool).tolist()
        self.lines.append(
            "    " + text.format(a=a, i=i, at=at, mask=mask, op=self.one(["+", "*", "-"]), v=self.value(shape))
        )


@pytest.mark.parametrize("part", range(4))
def test_random_views_and_writes(part: int):
    same = 0
    for seed in range(part, {"core": 40, "some": 240, "all": 1000}[LEVEL], 4):
        program = RandomWrites(seed)
        space: dict[str, Any] = {"np": np, "K": np.arange(25.0).reshape(5, 5)}
        exec(program.text, space)
        f, x = space["f"], np.random.default_rng(seed).normal(size=5)
        try:
            wanted = f(x.copy())
        except ValueError:
            continue
        try:
            found = rz.function(f)(x)
        except TraceError as problem:
            raise AssertionError(program.text) from problem
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-12, err_msg=program.text)
        same += 1
        if seed % 8 == 0:
            v = np.random.default_rng(seed + 1).normal(size=5)
            slope = (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6
            jacobian = rz.jacobian(f)(x)
            np.testing.assert_allclose(jacobian(v), slope, 1e-4, 1e-4, err_msg=program.text)
            np.testing.assert_allclose(jacobian.to_sparse() @ v, jacobian(v), 1e-9, 1e-9, err_msg=program.text)
    assert same > 5


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_parts_are_read_without_lists(seed: int):
    rng = np.random.default_rng(seed)
    source, target = [rng.integers(3, 6, 3) for _ in range(2)]
    many = rng.integers(1, 3, 3)
    steps = [rng.integers(1, (n - 1) // np.maximum(many - 1, 1) + 1) for n in (source, target)]
    at, where = [
        np.arange(n.prod()).reshape(n)[tuple([slice(0, s * k, s) for s, k in zip(step, many, strict=True)])].ravel()
        for n, step in zip((source, target), steps, strict=True)
    ]
    found = lattice(at, where, int(source.prod()), int(target.prod()))
    rng.shuffle(scrambled := np.arange(20))
    assert lattice(scrambled, np.arange(20), 20, 20) is None
    if found is None:
        assert sum(many > 1) < 2 or all([len(set(np.diff(p))) == 1 for p in (at, where)])
        return
    rows, columns, times = [np.asarray(p) for p in found.pairs()]
    order = np.argsort(columns)
    np.testing.assert_array_equal(rows[order], at)
    np.testing.assert_array_equal(columns[order], where)
    assert (times == 1).all()
    v = rng.normal(size=(2, source.prod(), 3))
    wanted = np.zeros((2, target.prod(), 3))
    wanted[:, where] = v[:, at]
    np.testing.assert_array_equal(found.reduce(v), wanted)
    np.testing.assert_array_equal(found.reduce(v[:, :, ::2]), wanted[:, :, ::2])  # not in one piece of memory
    total = np.ones_like(wanted)
    found.reduce_into(total, v)
    np.testing.assert_array_equal(total, 1.0 + wanted)


def test_what_is_read_of_two_parts_is_joined_in_generated_code():
    def diffused(x: Any) -> Any:
        y = x.copy()
        for _ in range(2):
            y[1:-1] += 0.1 * (y[2:] - 2.0 * y[1:-1] + y[:-2])
        return y

    x = np.sin(np.arange(9.0))
    code = rz.compile(diffused, backend="numpy")
    np.testing.assert_allclose(code(x), diffused(x), rtol=1e-14)
    assert code.source.count("concatenate((") == 2
