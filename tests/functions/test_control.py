"""cond, loops, checkpoint, vmap, stop_gradient: values and derivatives of every kind against JAX and against plain Python control flow."""

import itertools
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(0)


def close(a, b, tolerance=1e-12):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.linalg.norm(a - b) <= tolerance * max(np.linalg.norm(a), np.linalg.norm(b), 1e-300), (a, b)


def on_jax(g):
    """The function on JAX arrays: NumPy arrays cannot be indexed by traced integers."""
    return lambda *args: g(*[jnp.asarray(x) for x in args])


def every_derivative(f, g, *args, tolerance=1e-12):
    """Value, vjp, jvp, Hessian and the gradient of a gradient of f (riesz) equal those of g (JAX), in all arguments."""
    every = tuple(range(len(args)))
    g = on_jax(g)
    close(rz.function(f)(*args), g(*args), tolerance)
    for mine, its in zip(rz.grad(f, every)(*args), jax.grad(g, every)(*args), strict=True):
        close(mine, its, tolerance)
    moves = tuple(RNG.normal(size=np.shape(a)) for a in args)
    close(rz.jvp(f, args, moves)[1], jax.jvp(g, args, moves)[1], tolerance)
    close(rz.hvp(f, args, moves)[0] if len(args) > 1 else rz.hvp(f, args, moves), _hvp(g, args, moves)[0], tolerance)
    twice = lambda np, grad, h: lambda *a: np.sum(grad(h)(*a) ** 2)  # noqa: E731
    close(rz.grad(twice(np, rz.grad, f))(*args), jax.grad(twice(jnp, jax.grad, g))(*args), tolerance)


def _hvp(g, args, moves):
    every = tuple(range(len(args)))
    return jax.jvp(jax.grad(g, every), args, moves)[1]


# -- loops -----------------------------------------------------------------------------------------------------------


def recurrence(np, loop, **options):
    def f(W, c0, us):
        def body(c, u):
            c = np.tanh(W @ c + u)
            return c, np.sum(c * c)

        c, ys = loop(body, c0, us, **options)
        return np.sum(c) + np.sum(ys * np.arange(1.0, ys.shape[0] + 1.0))

    return f


POINT = RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=(7, 3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", [None, False, True, 2, 3, 4, 7])
def test_loop(reverse, checkpoint):
    f = recurrence(np, rz.loop, reverse=reverse, checkpoint=checkpoint)
    g = recurrence(jnp, jax.lax.scan, reverse=reverse)
    every_derivative(f, g, *POINT)


def test_a_loop_is_the_python_loop_in_one_step():
    def unrolled(body, c, xs):
        ys = []
        for x in xs:
            c, y = body(c, x)
            ys.append(y)
        return c, np.stack(ys)

    f, g = recurrence(np, rz.loop), recurrence(np, unrolled)
    for a, b in zip(rz.grad(f, (0, 1, 2))(*POINT), rz.grad(g, (0, 1, 2))(*POINT), strict=True):
        close(a, b)
    spaces = [rz.space_of(x) for x in POINT]
    assert rz.derive(f, *spaces).size < rz.derive(g, *spaces).size / 3


def test_a_loop_outside_a_trace_runs_as_it_is():
    f = recurrence(np, rz.loop)
    close(f(*POINT), rz.function(f)(*POINT))
    last, ys = rz.loop(lambda c, x: (c + x, {"sum": c}), 0.0, np.arange(4.0))
    assert last == 6.0 and ys["sum"].tolist() == [0.0, 0.0, 1.0, 3.0]


def test_trees_in_carry_inputs_and_outputs():
    def make(np, loop):
        def f(p, xs):
            def body(c, x):
                h = np.sin(c["h"] * x["a"]) + p["w"] * c["n"]
                return {"h": h, "n": c["n"] + 1.0}, (h, x["b"] * h)

            last, (hs, bs) = loop(body, {"h": p["h"], "n": 0.0}, xs)
            return last["h"] + np.sum(hs**2) + np.sum(bs) * last["n"]

        return f

    p, xs = {"w": 0.3, "h": 0.7}, {"a": RNG.normal(size=5), "b": RNG.normal(size=5)}
    mine, its = rz.grad(make(np, rz.loop), (0, 1))(p, xs), jax.grad(make(jnp, jax.lax.scan), (0, 1))(p, xs)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(its), strict=True):
        close(a, b)


def test_loop_without_inputs_and_with_integer_carry():
    f = lambda x: rz.loop(lambda c, _: ((c[0] * x, c[1] + 1), c[1] * c[0]), (1.0, 0), length=4)  # noqa: E731
    (last, count), ys = rz.function(f)(2.0)
    assert last == 16.0 and count == 4 and ys.tolist() == [0.0, 2.0, 8.0, 24.0]
    assert rz.grad(lambda x: np.sum(f(x)[1]))(2.0) == 0 + 1 + 2 * 2 * 2 + 3 * 3 * 4


@pytest.mark.parametrize("n", [0, 1, 2])
def test_short_loops(n):
    xs = np.arange(1.0, n + 1.0)
    f = lambda c, xs: rz.loop(lambda c, x: (c * x, c), c, xs)  # noqa: E731
    last, ys = rz.function(f)(2.0, xs)
    close(last, 2.0 * np.prod(xs))
    assert ys.shape == (n,)
    assert f(2.0, xs)[1].shape == (n,)
    close(rz.grad(lambda c: f(c, xs)[0])(2.0), np.prod(xs))


def test_fori_loop():
    f = lambda np, fori: lambda x: fori(0, 4, lambda i, y: y * x[i] + np.sin(y), 1.0)  # noqa: E731
    every_derivative(f(np, rz.fori_loop), f(jnp, _scanned), RNG.normal(size=4))
    assert rz.fori_loop(2, 5, lambda i, v: v + i, 0) == 9


def _scanned(low, high, body, init):
    return jax.lax.scan(lambda v, i: (body(i, v), None), init, jnp.arange(low, high))[0]


def test_nested_loops():
    def make(np, loop):
        inner = lambda y, x: loop(lambda c, t: (np.sin(c * t) + x, c), y, np.arange(1.0, 4.0))[0]  # noqa: E731
        return lambda x0, xs: loop(lambda y, x: (inner(y, x), y), x0, xs)[0]

    every_derivative(make(np, rz.loop), make(jnp, jax.lax.scan), 0.4, RNG.normal(size=3))


def test_checkpointing_keeps_less():
    n, width = 900, 2000

    def f(x, checkpoint):
        last, _ = rz.loop(lambda c, _: (np.sin(c), ()), x, length=n, checkpoint=checkpoint)
        return np.sum(last)

    peak, found = [], []
    with rz.settings(plain="steps"):  # generated code keeps large memory for the next call, which is not seen here
        for checkpoint in (False, True):
            g = rz.grad(lambda x, k=checkpoint: f(x, k))
            g(np.ones(width))
            tracemalloc.start()
            found.append(g(np.ones(width)))
            peak.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    close(found[0], found[1])
    assert peak[1] < peak[0] / 5, peak


def test_bad_loops_are_refused():
    with pytest.raises(rz.TraceError, match=r"shape \(3,\) at first and \(2,\)"):
        rz.grad(lambda x: np.sum(rz.loop(lambda c, _: (c[1:], c), x, length=2)[0]))(np.ones(3))
    with pytest.raises(rz.TraceError, match="pair"):
        rz.grad(lambda x: rz.loop(lambda c, _: c, x, length=2))(1.0)
    with pytest.raises(rz.SpaceError, match="one leading axis"):
        rz.loop(lambda c, x: (c, c), 1.0, (np.ones(2), np.ones(3)))


# -- branches --------------------------------------------------------------------------------------------------------


def test_cond():
    f = lambda np, cond: lambda x, y: cond(np.sum(x) > y, lambda x: np.sum(x**3) * y, lambda x: np.sum(np.sin(x)), x)  # noqa: E731
    x = RNG.normal(size=3)
    for y in (-5.0, 5.0):
        every_derivative(f(np, rz.cond), f(jnp, jax.lax.cond), x, y)


def test_only_the_chosen_branch_is_computed():
    seen = []

    def spy(x):
        seen.append(x)
        return x

    noisy = rz.primitive("noisy", spy, None, lambda x, y: 1.0)
    f = rz.function(lambda x: rz.cond(x > 0.0, lambda x: x, lambda x: noisy(x), x))
    assert f(1.0) == 1.0 and not seen
    assert f(-1.0) == -1.0 and seen


def test_cond_on_a_known_value_is_python():
    assert rz.grad(lambda x: rz.cond(True, lambda x: x**2, lambda x: x["no"], x))(3.0) == 6.0


def test_switch():
    branches = (lambda x: x, lambda x: x**2, lambda x: x**3)
    f = lambda x, i: rz.switch(i, branches, x)  # noqa: E731
    for i, slope in enumerate((1.0, 4.0, 12.0)):
        assert rz.grad(f)(2.0, np.array(i)) == slope
    assert rz.grad(f)(2.0, np.array(7)) == 12.0


def test_cond_refuses_arrays_and_unequal_branches():
    with pytest.raises(rz.TraceError, match=r"np\.where"):
        rz.grad(lambda x: np.sum(rz.cond(x > 0.0, np.sin, np.cos, x)))(np.ones(2))
    with pytest.raises(rz.TraceError, match="different things"):
        rz.grad(lambda x: np.sum(rz.cond(x[0] > 0.0, lambda x: x, lambda x: x[:1], x)))(np.ones(2))


# -- checkpoint and stop_gradient ------------------------------------------------------------------------------------


def test_checkpoint():
    def f(np, checkpoint):
        def g(x, y):
            block = checkpoint(lambda a, b: {"s": np.sin(a) * b, "t": a * y})
            out = block(x, b=y) if np is not jnp else block(x, y)
            return np.sum(out["s"] ** 2) + np.sum(out["t"])

        return g

    every_derivative(f(np, rz.checkpoint), f(jnp, jax.checkpoint), RNG.normal(size=3), RNG.normal(size=3))
    assert rz.checkpoint(np.sin)(1.0) == np.sin(1.0)


def test_stop_gradient():
    f = lambda np, stop: lambda x: np.sum(np.sin(x) * stop({"c": np.cos(x)})["c"])  # noqa: E731
    x = RNG.normal(size=3)
    close(rz.grad(f(np, rz.stop_gradient))(x), jax.grad(f(jnp, jax.lax.stop_gradient))(x))
    assert rz.stop_gradient(2.0) == 2.0


# -- vmap ------------------------------------------------------------------------------------------------------------

A, B, C = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5))
FUNCTIONS = {
    "elementwise": lambda np: lambda x, y: np.sin(x) * y + 2.0,
    "scalar with array": lambda np: lambda x, y: x[0] * y + np.sum(y) * x,
    "matmul": lambda np: lambda x, y: np.outer(x, y) @ x,
    "shared matrix": lambda np: lambda x, y: x @ np.asarray(C) * y[0],
    "reductions": lambda np: lambda x, y: np.max(x) + np.prod(y) + np.cumsum(x)[::-1] * np.var(y),
    "where": lambda np: lambda x, y: np.where(x > y, x, y**2),
    "indexing": lambda np: lambda x, y: x[np.array([2, 0])] * y[1:] + x[np.argmax(y)],
    "sort": lambda np: lambda x, y: np.sort(x) * np.sort(y)[::-1],
    "concatenate": lambda np: lambda x, y: np.concatenate([x, y[:1], np.ones(2)]),
    "reshape": lambda np: lambda x, y: np.reshape(np.concatenate([x, y]), (2, 3)).T,
    "linalg": lambda np: lambda x, y: np.linalg.solve(np.eye(3) * 3.0 + np.outer(x, y), y),
    "einsum": lambda np: lambda x, y: np.einsum("i,j,ij->j", x, y, np.ones((3, 3))),
    "broadcast": lambda np: lambda x, y: x[:, None] - y[None, :],
    "constant": lambda np: lambda x, y: np.ones(2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap(name):
    f, g = FUNCTIONS[name](np), on_jax(FUNCTIONS[name](jnp))
    for axes in (0, (0, None), (None, 0), (1, 1)):
        x = A[0] if axes == (None, 0) else A.T if axes == (1, 1) else A
        y = B[0] if axes == (0, None) else B.T if axes == (1, 1) else B
        close(rz.vmap(f, axes)(x, y), jax.vmap(g, axes)(x, y))
        mine = rz.grad(lambda x, y, axes=axes: np.sum(np.sin(rz.vmap(f, axes)(x, y))), (0, 1))(x, y)
        its = jax.grad(lambda x, y, axes=axes: jnp.sum(jnp.sin(jax.vmap(g, axes)(x, y))), (0, 1))(x, y)
        for a, b in zip(mine, its, strict=True):
            close(a, b)
    mine = rz.vmap(lambda x, y: rz.grad(lambda x: np.sum(f(x, y)))(x))(A, B)
    close(mine, jax.vmap(lambda x, y: jax.grad(lambda x: jnp.sum(g(x, y)))(x))(A, B))


def test_vmap_is_the_stack_of_its_values():
    for name, make in FUNCTIONS.items():
        f = make(np)
        rows = np.stack([np.asarray(rz.function(f)(a, b)) for a, b in zip(A, B, strict=True)])
        close(rz.vmap(f)(A, B), rows)
        assert name


def test_vmap_of_vmap_of_loops_and_branches():
    def make(np, loop, cond, vmap):
        step = lambda c, x: (cond(np.sum(c) > 0.0, lambda c: np.sin(c) * x, lambda c: c - x, c), np.sum(c))  # noqa: E731
        f = lambda c, xs: loop(step, c, xs)  # noqa: E731
        return vmap(vmap(f, (0, None)), (None, 0))

    c, xs = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 5))
    mine, its = make(np, rz.loop, rz.cond, rz.vmap)(c, xs), make(jnp, jax.lax.scan, jax.lax.cond, jax.vmap)(c, xs)
    for a, b in zip(mine, its, strict=True):
        close(a, b)
    f = lambda np, m: lambda c: np.sum(m(c, xs)[0] ** 2)  # noqa: E731
    close(
        rz.grad(f(np, make(np, rz.loop, rz.cond, rz.vmap)))(c),
        jax.grad(f(jnp, make(jnp, jax.lax.scan, jax.lax.cond, jax.vmap)))(c),
    )


def test_vmap_axes_of_results_trees_and_keywords():
    f = lambda t, scale=1.0: {"a": t["x"] * scale, "b": (t["x"] @ t["y"], t["y"])}  # noqa: E731
    tree = {"x": A, "y": B}
    out = rz.vmap(f, out_axes={"a": 1, "b": (0, 1)})(tree)
    assert out["a"].shape == (3, 4) and out["b"][0].shape == (4,) and out["b"][1].shape == (3, 4)
    close(rz.vmap(f, in_axes=({"x": 0, "y": None},))({"x": A, "y": B[0]})["b"][0], A @ B[0])
    with pytest.raises(rz.SpaceError, match="lengths"):
        rz.vmap(lambda x, y: x)(np.ones(2), np.ones(3))
    with pytest.raises(rz.SpaceError, match="no argument is mapped"):
        rz.vmap(lambda x: x, in_axes=(None,))(np.ones(2))


def test_vmap_over_an_empty_axis():
    assert rz.vmap(lambda x: np.sin(x) * 2.0)(np.zeros((0, 3))).shape == (0, 3)


def test_per_example_gradients():
    W, X = RNG.normal(size=(3, 2)), RNG.normal(size=(5, 3))
    loss = lambda np: lambda W, x: np.sum(np.tanh(x @ W) ** 2)  # noqa: E731
    close(rz.vmap(rz.grad(loss(np)), (None, 0))(W, X), jax.vmap(jax.grad(loss(jnp)), (None, 0))(W, X))


def test_derivatives_do_not_grow_with_the_length_of_a_loop():
    sizes = []
    for n, order in itertools.product((5, 50), (1, 2)):
        f = lambda x, n=n: rz.loop(lambda c, _: (np.sin(c) * x, c), x, length=n)[0]  # noqa: E731
        g = rz.grad(f) if order == 2 else f
        sizes.append(rz.derive(g, rz.R).size)
    assert sizes[0] == sizes[2] and sizes[1] == sizes[3]
