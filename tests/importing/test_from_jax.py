"""JAX functions as functions of riesz: rules of their own, loops, names, modules, errors."""

import re

import numpy as np
import pytest

import riesz as rz
from riesz.errors import TraceError

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
x = np.array([0.5, -1.0, 2.0, 0.25])


@pytest.fixture(autouse=True)
def _in_64_bits():
    with jax.enable_x64(True):
        yield


@jax.custom_jvp
def wave(x, k):
    return jnp.sin(x) * k


@wave.defjvp
def _(primals, tangents):
    x, k = primals
    return wave(x, k), k * wave(x + jnp.pi / 2, 1.0) * tangents[0] + jnp.sin(x) * tangents[1]


@jax.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda r, g: (r * g + g * r,))


@jax.custom_jvp
def tripled(x):
    return x * x


tripled.defjvp(lambda p, t: (tripled(p[0]), jnp.where(p[0] > 0, 3.0 * t[0], 0.0)))


@jax.custom_vjp
def kinked(x):
    return x * x


kinked.defvjp(lambda x: (x * x, x), lambda r, g: (jnp.where(r > 0, 5.0 * r * g, 0.0),))


@pytest.mark.parametrize("rule", [lambda x: wave(x, 2.0) * x, squared, lambda x: squared(wave(x, x)) * squared(x)])
def test_rules_of_custom_derivatives_win(rule):
    f = lambda x: jnp.sum(rule(x))  # noqa: E731
    g = rz.from_jax(f)
    np.testing.assert_allclose(rz.grad(g)(x), jax.grad(f)(x), rtol=1e-13)
    np.testing.assert_allclose(rz.hessian(g)(x).to_dense(), jax.hessian(f)(x), atol=1e-12)
    assert "diagonal" in str(rz.hessian(g)(x).structure) or rule is squared
    for backend in ("numpy", "jax"):
        np.testing.assert_allclose(rz.compile(rz.grad(g), x, backend=backend)(x), jax.grad(f)(x), rtol=1e-13)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(rz.vmap(rz.grad(g))(batch), jax.vmap(jax.grad(f))(batch), rtol=1e-13)


@pytest.mark.parametrize("rule", [tripled, kinked, lambda x: tripled(x) + kinked(jnp.sin(x))])
def test_rules_that_are_no_derivatives_win_too(rule):
    f = lambda x: jnp.sum(rule(x))  # noqa: E731
    np.testing.assert_allclose(rz.grad(rz.from_jax(f))(x), jax.grad(f)(x), rtol=1e-13)


def test_a_rule_inside_a_loop_and_a_rule_that_calls_its_function():
    f = lambda x: lax.scan(lambda c, v: (wave(c + v, 2.0), jax.nn.relu(c)), 0.3, x)[1].sum()  # noqa: E731
    g = rz.from_jax(f)
    np.testing.assert_allclose(rz.grad(g)(x), jax.grad(f)(x), rtol=1e-12)
    np.testing.assert_allclose(rz.hessian(g)(x).to_dense(), jax.hessian(f)(x), atol=1e-12)


def test_a_backward_rule_that_is_not_linear_is_refused():
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
    with pytest.raises(TraceError, match="not linear in the cotangents"):
        rz.grad(rz.from_jax(lambda x: jnp.sum(clipped(x) ** 2)))(x)


@jax.custom_vjp
def weighed(x, y):
    return x * y


def _back(known, g):
    """With a loop whose carries are a factor, which does not depend on g, and a sum that is linear in g."""
    x, y = known
    start = (jnp.ones(()), jnp.zeros_like(g))
    (_, total), _ = lax.scan(lambda c, v: ((0.9 * c[0], c[1] * c[0] + g * v), None), start, jnp.arange(3.0))
    return total * y, g * x


weighed.defvjp(lambda x, y: (x * y, (x, y)), _back)


def test_a_backward_rule_with_a_loop_is_transposed_and_one_that_is_not_linear_in_it_is_refused():
    f = lambda x: jnp.sum(jnp.sin(weighed(x, 2 * x)))  # noqa: E731
    np.testing.assert_allclose(rz.grad(rz.from_jax(f))(x), jax.grad(f)(x), rtol=1e-13)

    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (lax.fori_loop(0, 2, lambda i, c: jnp.clip(2 * c, -1, 1), g),))
    with pytest.raises(TraceError, match="not linear in the cotangents"):
        rz.grad(rz.from_jax(lambda x: jnp.sum(clipped(x) ** 2)))(x)


def test_each_lane_of_a_mapped_while_loop_goes_on_as_long_as_its_own_condition_holds():
    grow = lambda v: lax.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + v**2 + 0.5, c[1] * 1.1), (0.0, v))  # noqa: E731
    for f, at in ((jax.vmap(grow), x), (jax.vmap(jax.vmap(grow)), np.outer(x, x))):
        g = lambda v, f=f: sum([jnp.sum(jnp.sin(u)) for u in f(v)])  # noqa: E731
        np.testing.assert_allclose(rz.from_jax(f)(at), f(at), rtol=1e-14)
        np.testing.assert_allclose(rz.grad(rz.from_jax(g))(at), jax.jacfwd(g)(at), rtol=1e-12)


@pytest.mark.parametrize("solver", ["cg", "gmres"])
def test_iterative_solves_have_the_derivative_of_the_solution(solver):
    A = np.diag([2.0, 3.0, 4.0, 5.0]) + 0.1
    run = getattr(jax.scipy.sparse.linalg, solver)

    def f(a, b):
        found, _ = run(lambda v: {"u": (a + a.T) @ v["u"] + v["w"][0], "w": 9 * v["w"] + jnp.sum(v["u"])}, b, tol=1e-14)
        return jnp.sum(jnp.sin(found["u"])) + found["w"][0]

    b = {"u": x, "w": x[:1]}
    np.testing.assert_allclose(rz.from_jax(f)(A, b), f(A, b), rtol=1e-12)
    mine, theirs = rz.grad(rz.from_jax(f), (0, 1))(A, b), jax.grad(f, (0, 1))(A, b)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine[1]["u"], theirs[1]["u"], rtol=1e-9)


def test_rules_of_vmap_and_complex_numbers_at_positions():
    @jax.custom_batching.custom_vmap
    def own(v):
        return jnp.sin(v)

    own.def_vmap(lambda size, batched, v: (jnp.sin(v), batched[0]))
    np.testing.assert_allclose(rz.grad(rz.from_jax(lambda v: jnp.sum(own(v))))(x), np.cos(x), rtol=1e-14)
    at = jnp.array([1, 1, 3, 0])
    for f in (
        lambda v: jnp.abs(jnp.zeros(5, complex).at[at].add(v * (1 + 2j))),
        lambda v: jnp.abs(jnp.fft.fft(v).at[1:].set(2 * v[1:])),
        lambda v: jnp.abs(jnp.fft.fft(v).at[1:3].multiply(2)),
    ):
        g = lambda v, f=f: jnp.sum(jnp.sin(f(v)))  # noqa: E731
        np.testing.assert_allclose(rz.grad(rz.from_jax(g))(x), jax.grad(g)(x), rtol=1e-12, atol=1e-13)


def test_structure_and_closed_forms_are_those_of_numpy_code():
    A, b = np.arange(15.0).reshape(5, 3), np.ones(5)
    lam = jnp.array([1.0, 2.0, 3.0])
    f = rz.from_jax(lambda w: jnp.sum((A @ w - b) ** 2) + jnp.sum(lam * w**2), np.ones(3))
    lamn = np.asarray(lam)
    g = lambda w: np.sum((A @ w - b) ** 2) + np.sum(lamn * w**2)  # noqa: E731
    one, other = [rz.derive(h, rz.R**3).gradient for h in (f, g)]
    assert str(one) == str(other).replace("lamn", "lam")
    pairs = [
        (lambda x, np=np: np.sum((x[1:] - x[:-1]) ** 2)),
        (lambda x, np=np: np.sum(np.exp(x) * np.roll(x, 1))),
        (lambda x, np=np: np.sum(np.where(x > 0, x**3, np.sin(x)))),
        (lambda x, np=np: np.sum(np.cumsum(x) ** 2)),
        (lambda x, np=np: np.sum(x[np.array([0, 2, 2])] ** 3)),
        (lambda x, np=np: np.sum(np.logaddexp(x[0], x[1:]))),
        (lambda x, np=np: np.sum(np.outer(x, x) @ x)),
    ]
    for h in pairs:
        mine, plain = [rz.hessian(k)(x) for k in (rz.from_jax(lambda x, h=h: h(x, jnp)), lambda x, h=h: h(x, np))]
        np.testing.assert_allclose(mine.to_dense(), plain.to_dense(), atol=1e-12)
        assert mine.to_sparse().nnz == plain.to_sparse().nnz
        assert str(mine.structure) == str(plain.structure)


def test_a_scan_of_a_thousand_layers_is_a_loop_and_repeated_functions_are_blocks():
    W = np.random.default_rng(0).normal(size=(1000, 4, 4)) * 0.1
    f = lambda x: lax.scan(lambda c, w: (jnp.tanh(w @ c) + c, None), x, W)[0].sum()  # noqa: E731
    g = rz.from_jax(f, x)
    np.testing.assert_allclose(rz.grad(g)(x), jax.grad(f)(x), rtol=1e-9)
    assert len(g.at((x,))[0].program) < 10

    @jax.jit
    def layer(w, c):
        for _ in range(12):
            c = jnp.tanh(w @ c) + c * jnp.sin(c)
        return c

    def deep(x):
        for k in range(50):
            x = layer(W[k], x)
        return x.sum()

    g = rz.from_jax(deep, x)
    np.testing.assert_allclose(rz.grad(g)(x), jax.grad(deep)(x), rtol=1e-10)
    assert len(g.at((x,))[0].program) < 150  # written out: 50 · 12 · 4


def test_loops_with_counters_keep_slices_apart():
    f = lambda x: lax.fori_loop(0, 4, lambda i, c: c + x[i] ** 2, 0.0)  # noqa: E731
    g = rz.from_jax(f)
    np.testing.assert_allclose(rz.hessian(g)(x).to_dense(), 2 * np.eye(4), atol=1e-14)
    h = rz.from_jax(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * jnp.sin(x), 1.0))
    assert abs(rz.grad(h)(0.5, 3) - 3 * np.sin(0.5) ** 2 * np.cos(0.5)) < 1e-14
    w = rz.from_jax(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x))
    assert rz.grad(w)(3.0) == 4.0


def test_pytrees_modules_and_static_arguments():
    f = lambda p, x, scale=1.0: {"y": p["w"] @ x * scale, "z": (p["b"], x[0])}  # noqa: E731
    p = {"w": np.eye(4), "b": np.ones(2)}
    g = rz.from_jax(f, p, x)
    found = g(p, x)
    np.testing.assert_allclose(found["y"], x)
    assert found["z"][1] == 0.5
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(4, 1, 8, 2, key=jax.random.key(0))
    loss = lambda m, x: jnp.sum(m(x) ** 2)  # noqa: E731
    mine, theirs = rz.grad(rz.from_jax(loss, model, x))(model, x), eqx.filter_grad(loss)(model, x)
    for a, b in zip(mine.layers, theirs.layers, strict=True):
        np.testing.assert_allclose(a.weight, b.weight, atol=1e-12)
        np.testing.assert_allclose(a.bias, b.bias, atol=1e-12)


def test_random_numbers_are_constants():
    f = lambda key, x: jnp.sum(jax.random.normal(jax.random.split(key)[1], (4,)) * x)  # noqa: E731
    for key in (jax.random.PRNGKey(0), jax.random.key(0)):
        np.testing.assert_allclose(rz.grad(rz.from_jax(f), 1)(key, x), jax.grad(f, 1)(key, x), rtol=1e-14)


def test_types_are_jaxs():
    single = x.astype(np.float32)
    found = rz.grad(rz.from_jax(lambda x: jnp.sum(jnp.sin(x) ** 2)))(single)
    assert found.dtype == np.float32
    with jax.enable_x64(False):
        g = rz.from_jax(lambda x: jnp.sum(jnp.sin(x) ** 2))
        np.testing.assert_allclose(rz.grad(g)(x), np.sin(2 * x), rtol=1e-14)


def test_an_unknown_primitive_is_named_with_its_line_and_can_be_registered():
    primitive = jax.extend.core.Primitive("cubed_here")
    primitive.def_abstract_eval(lambda a, **params: a)
    primitive.def_impl(lambda a, **params: a**3)
    f = lambda x: jnp.sum(primitive.bind(x, factor=2.0))  # noqa: E731
    with pytest.raises(TraceError, match=r"primitive cubed_here, used at .*test_from_jax\.py:\d+.*rz\.jax_rule"):
        rz.from_jax(f)(x)
    rz.jax_rule(primitive, lambda x, factor: factor * x**3)
    np.testing.assert_allclose(rz.grad(rz.from_jax(f))(x), 6 * x**2)


def test_what_has_no_meaning_here_is_refused_by_name():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("a",))
    spec = jax.sharding.PartitionSpec()
    f = lambda x: jnp.sum(jax.shard_map(jnp.sin, mesh=mesh, in_specs=spec, out_specs=spec)(x))  # noqa: E731
    with pytest.raises(TraceError, match="shard_map"):
        rz.from_jax(f)(x)
    with pytest.raises(TraceError, match="takes a function"):
        rz.from_jax(3.0)


def test_folds_that_begin_elsewhere_and_folds_of_bits():
    y = x.reshape(2, 2)
    for f in (
        lambda y: lax.reduce_window(y, 5.0, lax.add, (2, 2), (1, 1), "SAME"),
        lambda y: lax.reduce_window(y, 0.7, lax.max, (1, 2), (1, 1), "SAME"),
        lambda y: lax.reduce(y, 2.0, lax.mul, (1,)),
        lambda y: lax.reduce(y, 0.7, lax.max, (0,)),
    ):
        np.testing.assert_allclose(rz.from_jax(f)(y), f(y), rtol=1e-14)
    rounded = rz.from_jax(lambda x: lax.reduce_precision(x, 8, 7))
    np.testing.assert_array_equal(rounded(np.pi * x), lax.reduce_precision(np.pi * x, 8, 7))
    np.testing.assert_array_equal(rz.jacobian(rounded)(x).to_dense(), np.eye(4))
    n = np.array([5, 12, 9, 0], np.uint8)
    for f in (jnp.bitwise_and.reduce, jnp.bitwise_or.reduce, lambda n: lax.top_k(n, 3)[0]):
        np.testing.assert_array_equal(rz.from_jax(lambda n, f=f: f(n | 8) + 0.0)(n), f(n | 8))
    pivoted = rz.from_jax(lambda y: jax.scipy.linalg.qr(y, pivoting=True)[1])
    with pytest.raises(TraceError, match=r"qr .*options"):
        pivoted(y)


def test_the_table_of_primitives_is_up_to_date():
    from pathlib import Path

    from riesz.importing.jax_page import page

    assert (Path(__file__).parents[2] / "docs" / "jax.md").read_text() == page()
    assert re.search(r"`gather`", page())
