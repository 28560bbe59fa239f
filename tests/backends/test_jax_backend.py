"""The JAX backend computes what the interpreter computes, and compiled functions are at home in JAX and PyTorch."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import random_function
from relation_kinds import KINDS
from sampling import examples
from test_compile import agree, total

import riesz as rz
from riesz import relations, seg
from riesz.backends.entry import compile as compiled
from riesz.backends.jax import jax_backend as jax_code
from riesz.backends.jax import jax_functions, jax_steps
from riesz.backends.jax import repeated_steps as rolled
from riesz.errors import SpaceError, VectorError
from riesz.runtime import tuning
from riesz.terms.primitives import RULES, Primitive
from riesz.tracing.argument_trees import flatten
from riesz.tracing.rules.special import SPECIAL

jax.config.update("jax_enable_x64", True)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(0)


def compare(f, args, tolerance=1e-9):
    """NumPy arrays through XLA, against the interpreter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = rz.function(f)(*args)
        g = rz.compile(f, *args, backend="jax")
        agree(g(*args), wanted, tolerance)
    assert g.backend == "jax" and "XLA" in g.explain() and g.source.startswith("def f_")
    return g


def close(found, wanted, tolerance=1e-9):
    """Trees of JAX arrays with the same numbers."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert isinstance(a, jax.Array) and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


# -- random programs --------------------------------------------------------------------------------------


@examples(0.14)
@given(st.integers(0, 10**6))
def test_random_programs_and_their_gradients(seed):
    f, args = random_function(seed, inputs=1 + seed % 2, single=True)
    compare(lambda *xs: (f(*xs), rz.grad(total(f))(*xs)), args)


@examples(0.05)
@given(st.integers(0, 10**6))
def test_random_programs_in_single_precision(seed):
    f, args = random_function(seed, single=True, without=("segments", "fourier", "sort"))
    args = [np.asarray(a, np.float32) if np.ndim(a) else np.float32(a) for a in args]
    compare(f, args, 1e-4)
    compare(rz.grad(total(f)), args, 1e-4)


@examples(0.03)
@given(st.integers(0, 10**6))
def test_random_programs_inside_jax(seed):
    """Tangents and cotangents by JAX of a compiled function are those of riesz, also of a batch."""
    f, args = random_function(seed, single=True)
    g, h = rz.compile(f), total(f)
    x = jnp.asarray(args[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(jax.jit(lambda x: jax.jvp(g, (x,), (x,)))(x), rz.jvp(f, (args[0],), (args[0],)))
        wanted = rz.grad(h)(args[0])
        close(jax.jit(jax.vmap(jax.grad(rz.compile(h))))(jnp.stack([x, x])), np.stack([wanted, wanted]))


# -- every op -----------------------------------------------------------------------------------------------

DOMAINS = {
    "arccosh": (1.1, 3.0),
    "arcsin": (-0.9, 0.9),
    "arccos": (-0.9, 0.9),
    "arctanh": (-0.9, 0.9),
    "erfinv": (-0.9, 0.9),
    "logit": (0.1, 0.9),
}
DOMAINS |= {
    "ndtri": (0.1, 0.9),
    "betainc": (0.1, 0.9),
    "erfcinv": (0.2, 1.8),
    "betaincc": (0.1, 0.9),
    "betainc_in_ab": (0.1, 0.9),
    "expm1": (-2.0, 2.0),
}


def primitives(rules):
    """All primitives at once: (functions of arrays, arguments)."""
    found = [
        Primitive(rule, 3.0 if rule.name == "power" else 1.0 if re.search("_derivative$|_in_", rule.name) else None)
        for rule in rules.values()
    ]
    ranges = [DOMAINS.get(p.name, (0.2, 2.5)) for p in found]
    return found, [
        [
            np.rint(x) if i == 0 and p.name.startswith("eval_hermite") else x  # SciPy has whole degrees only
            for i, x in enumerate([np.linspace(*(ends if i % 2 == 0 else ends[::-1]), 7) for i in range(p.rule.arity)])
        ]
        for p, ends in zip(found, ranges, strict=True)
    ]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_every_primitive(kind):
    found, args = primitives(RULES)
    args = [[x.astype(kind) for x in xs] for xs in args]
    assert all([jax_functions.primitive(p) is not None for p in found if p.name != "power"])
    compare(
        lambda args: [_applied(p, xs) for p, xs in zip(found, args, strict=True)],
        (args,),
        1e-12 if kind is np.float64 else 1e-5,
    )


def _applied(p, xs):
    from riesz.tracing.traced import primitive_step

    return primitive_step(p, *xs)


def test_primitives_at_kinks_and_outside_their_domains():
    x = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 1e300, 1e-300])
    found = [
        Primitive(rule, 2.0 if name == "power" else 1.0 if name.endswith("_derivative") else None)
        for name, rule in RULES.items()
    ]
    found = [p for p in found if p.name not in ("sinc_derivative", "fmod", "remainder")]
    pairs = np.meshgrid(x, x)
    compare(lambda x, a, b: [_applied(p, (x,) if p.rule.arity == 1 else (a, b)) for p in found], (x, *pairs), 1e-12)


def test_special_functions_of_jax_and_of_the_host():
    found, args = primitives(SPECIAL)
    native = [jax_functions.primitive(p) is not None for p in found]
    assert sum(native) > 25
    mine = [i for i, n in enumerate(native) if n]
    compare(lambda args: [_applied(found[i], args[i]) for i in mine], (args,), 1e-8)
    others = [i for i, n in enumerate(native) if not n]
    g = compare(lambda args: [_applied(found[i], args[i]) for i in others], (args,), 1e-12)
    assert "Called back on the host" in g.explain()
    h = rz.compile(lambda x: scipy.special.erfcx(x) * x)
    close(
        jax.vmap(h)(jnp.linspace(0.0, 1.0, 6).reshape(2, 3)),
        rz.function(h.function)(np.linspace(0.0, 1.0, 6).reshape(2, 3)),
    )


def test_relations_of_every_kind():
    rng = np.random.default_rng(1)
    kinds = [make(rng) for _, make in KINDS.values()]
    kinds += [
        relations.triangular(seg(5)),
        relations.shift(seg(6), 2),
        relations.full(seg(3), seg(4)),
        relations.diagonal(seg(3)),
    ]
    kinds = [R for R in kinds if R.source.box is not None and R.target.box is not None]
    assert len(kinds) >= 12

    def f(xs):
        return [rz.red(R)(x) for R, x in zip(kinds, xs, strict=True)]

    args = ([rng.normal(size=(*R.source.box, 2)) for R in kinds],)
    compare(f, args)
    compare(rz.grad(lambda xs: sum([np.sum(y * y) for y in f(xs)])), args)


def steps(x, a, i):
    """Discrete functions, positions that are computed, selections, transforms, convolutions, cumulative sums."""
    order = np.argsort(x)
    mask = x > 0.2
    return {
        "sort": np.sort(x)[::-1],
        "order": order,
        "take": a[order[:3]] * np.take(x, i, axis=0)[0],
        "where": np.where(mask, np.log(x), x) + np.count_nonzero(mask),
        "extrema": (np.max(a, axis=0), np.min(x), np.argmax(x), np.ptp(a)),
        "median": np.median(a, axis=1),
        "search": np.searchsorted(np.sort(x), a[0]),
        "interp": np.interp(a[1], np.linspace(-3.0, 3.0, 5), np.linspace(0.0, 1.0, 5) ** 2),
        "fft": np.abs(np.fft.rfft(x)),
        "back": np.fft.irfft(np.fft.fft(x)[:3], 5),
        "fft2": np.fft.fft2(a).real,
        "convolve": (np.convolve(x, a[0]), np.convolve(x, a[0], "valid"), np.correlate(a[1], x[:2])),
        "cumulative": (np.cumsum(a, axis=1), np.cumprod(x)),
        "round": (np.floor(x), np.round(a, 1), x // 0.3, x % 0.7),
        "diag": (np.diag(x), np.trace(a), np.diagonal(a, 1)),
        "einsum": (np.einsum("ii->i", a), np.einsum("ij,ij,j->i", a, a, x), np.outer(x, x), a @ a @ x),
        "casts": (x.astype(np.float32), (x > 0).astype(float), np.isfinite(x)),
        "logsumexp": scipy.special.logsumexp(a, axis=1),
    }


def test_steps_and_their_gradients():
    x, a, i = RNG.normal(size=5), RNG.normal(size=(5, 5)), np.array([3, 1, -1, 1])
    g = compare(steps, (x, a, i))
    assert "Called back" not in g.explain()

    def weighed(x, a, i):
        leaves = [y for y in flatten(steps(x, a, i))[0] if y.dtype.kind == "f"]
        return sum([np.sum(np.cos(np.arange(np.size(y)).reshape(np.shape(y))) * y) for y in leaves])

    compare(rz.grad(weighed, argnums=(0, 1)), (x, a, i))


def test_functions_of_matrices():
    m = RNG.normal(size=(2, 4, 4))
    s = m @ np.swapaxes(m, -1, -2) + 4.0 * np.eye(4)

    def f(m, s, b):
        w, _ = np.linalg.eigh(s)
        u, sv, vh = np.linalg.svd(m)
        q, r = np.linalg.qr(m[0])
        parts = (
            np.linalg.solve(m, b),
            np.linalg.inv(m),
            np.linalg.cholesky(s),
            w,
            sv,
            (u * sv[..., None, :]) @ vh,
            q @ r,
            np.linalg.det(m),
        )
        return (
            *parts,
            np.linalg.slogdet(m)[1],
            np.linalg.pinv(m[0]),
            np.linalg.norm(m[0], "nuc"),
            np.linalg.matrix_power(m[0], 3),
        )

    args = (m, s, RNG.normal(size=(2, 4, 2)))
    compare(f, args)
    compare(rz.grad(lambda *xs: sum([np.sum(np.sin(y)) for y in f(*xs)]), argnums=(0, 1, 2)), args, 1e-7)


def controlled(x, w, k):
    """A loop with per-round inputs and a nested one, a branch, a switch, a while loop, recomputation."""
    carry, ys = rz.loop(lambda c, t: (np.tanh(w @ c) + t, np.sum(c) * t), x, np.linspace(0.0, 1.0, 4))
    inner, _ = rz.loop(
        lambda c, t: (rz.loop(lambda d, s: (d * s + t, None), c, np.ones(2))[0], None), carry, np.arange(3.0)
    )
    chosen = rz.cond(np.sum(x) > 0.0, lambda u: (np.sin(u), np.sum(u)), lambda u: (0.5 * u, np.max(u)), x)
    switched = rz.switch(k, [lambda u: u, lambda u: u * u, np.exp], x)
    return carry, ys, inner, chosen, switched


def test_loops_and_branches():
    x, w = RNG.normal(size=3), RNG.normal(size=(3, 3))
    for k in (0, 2):
        g = compare(controlled, (x, w, np.array(k)))
    assert "loop(round_" in g.source and "choose(" in g.source
    compare(
        rz.grad(lambda x, w, k: sum([np.sum(y) for y in flatten(controlled(x, w, k))[0]]), argnums=(0, 1)),
        (x, w, np.array(1)),
    )
    half = [a.astype(np.float32) for a in (x, w)]
    compare(lambda x, w: rz.loop(lambda c, t: (np.tanh(w @ c) * t, np.sum(c)), x, np.ones(3, np.float32)), half, 1e-5)


def test_sizes_0_and_1():
    for n in (0, 1):
        x = RNG.normal(size=(n, 3))
        compare(
            lambda x: (
                np.sum(np.tanh(x), axis=0),
                x.T @ x,
                x[:, 0] * 2.0,
                np.concatenate([x, x]),
                np.cumsum(x, axis=0),
                x[::-1],
            ),
            (x,),
        )
        compare(rz.grad(lambda x: np.sum(np.exp(x @ np.ones((3, 2))) * 2.0)), (x,))
        compare(lambda x: rz.loop(lambda c, t: (c + t, c), np.ones(3), x), (x,))


def test_numbers_strings_and_containers():
    compare(lambda x, y: {"a": x * y, "b": (x, 3, None, np.float32(2.0) * x)}, (1.5, np.float64(2.5)))
    compare(lambda x: (x, np.ones(3), 1.0), (np.float32(2.0),), 1e-6)


def test_an_op_without_a_form_says_so_and_auto_goes_on():
    f = lambda x: scipy.linalg.lu_factor(x)[0]  # noqa: E731
    x = RNG.normal(size=(3, 3))
    with pytest.raises(VectorError, match="lu has no form in JAX"):
        rz.compile(f, x, backend="jax")
    assert np.allclose(rz.compile(f, x)(x), scipy.linalg.lu_factor(x)[0])


def test_without_jax_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr(jax_code, "find_spec", lambda name: None)
    with pytest.raises(VectorError, match=r"JAX is not installed \(pip install 'riesz\[jax\]'\)"):
        rz.compile(np.sin, 1.0, backend="jax")


# -- source and what is compiled ----------------------------------------------------------------------------


def test_arrays_are_arguments_and_numbers_literals():
    a, index = RNG.normal(size=(40, 30)), RNG.integers(0, 30, 50)
    f = lambda x: np.sum((a @ x)[:20] ** 2) * 3.5 + np.sum(np.bincount(index, weights=x[index], minlength=30))  # noqa: E731
    g = compare(rz.grad(f), (RNG.normal(size=30),))
    assert "3.5" in g.source or "7.0" in g.source
    found = g.function.record(g.function.given((np.ones(30),), {})).settled()
    from riesz.backends.jax.jax_primitive import Citizen

    citizen = Citizen(found.program, [float], [float], "f")
    jaxpr = jax.make_jaxpr(citizen.code.plain)(*[np.ones(30)], *citizen.code.arrays())
    assert not [c for c in jaxpr.consts if np.size(c) > 1] and len(citizen.code.arrays()) >= 2
    assert "precision=(Precision.HIGHEST" in str(jaxpr) and "dot_general" in str(jaxpr)


def layers(n, how, rng=RNG):
    ws, b = rng.normal(size=(n, 4, 4)) / 2.0, rng.normal(size=(n, 4))
    if how == "arrays of their own":
        return lambda ws, x: np.sum(functools.reduce(lambda x, w: np.tanh(w @ x), ws, x)), (list(ws), np.ones(4))
    if how == "rows of one":

        def rows(ws, x):
            for i in range(n):
                x = np.tanh(ws[i] @ x)
            return np.sum(x)

        return rows, (ws, np.ones(4))
    if how == "constants":
        return lambda x: np.sum(functools.reduce(lambda x, w: np.tanh(w @ x), list(ws), x)), (np.ones(4),)

    def residual(ws, x):
        for i in range(n):
            x = x + (0.5 / (i + 1)) * np.tanh(ws[i] @ x + b[i])
        return np.sum(x * x)

    return residual, (ws, np.ones(4))


@pytest.mark.parametrize("how", ["arrays of their own", "rows of one", "constants", "residual"])
def test_repeated_layers_are_a_loop(how):
    f, args = layers(40, how)
    short = compare(rz.value_and_grad(f), args)
    assert "loop(layer_" in short.source
    f, args = layers(1000, how)
    long = rz.compile(rz.value_and_grad(f), *args, backend="jax")
    assert len(long.source.splitlines()) <= len(short.source.splitlines()) + 2 < 120
    assert len(long.source) < 12_000 + 20 * len(args[0])


def test_a_thousand_layers_give_the_right_gradient():
    f, args = layers(1000, "residual")
    agree(rz.compile(rz.grad(f), *args, backend="jax")(*args), rz.grad(f)(*args), 1e-9)


def test_skips_and_two_alternating_layers_are_found_too():
    ws = RNG.normal(size=(60, 4, 4)) / 2.0

    def f(x):
        before, total = x, 0.0
        for i in range(0, 60, 2):
            y = np.sin(ws[i] @ x) + before
            before, x = x, np.tanh(ws[i + 1] @ y) * y
            total = total + np.sum(x[1:] * x[0])
        return total

    g = compare(rz.grad(f), (np.ones(4),))
    assert "loop(layer_" in g.source


@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 9), st.integers(6, 12))
def test_stretches_repeat(noise, period, rounds):
    """Every stretch found does repeat, and a long one that was put there is found."""
    core = [("a", i) for i in range(period)] * max(rounds, -(-tuning.REPEATED_STEPS_SAVED // period) + 1)
    kinds = [*noise, *core, *reversed(noise)]
    found = rolled.stretches(kinds)
    for s in found:
        assert all([kinds[i] == kinds[i + s.period] for i in range(s.start, s.start + (s.rounds - 1) * s.period)])
    assert any([s.period == period and s.rounds >= len(core) // period - 1 for s in found])


def _diffused(u):
    for _ in range(9):
        u = u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 2, 1) - 3 * u)
    return np.sum(u * u)


@pytest.mark.parametrize("shape", [(6, 5), (300, 300)])
def test_shifts_are_joined_or_padded_and_numbers_are_no_arrays(shape):
    u = RNG.normal(size=shape)
    g = rz.compile(rz.grad(_diffused), u, backend="jax")
    agree(g(u), rz.grad(_diffused)(u), 1e-12)
    assert ".at[" not in g.source and "loop(layer_" in g.source and "0 arrays are arguments" in g.explain()


def test_numbers_that_differ_from_round_to_round_are_of_any_type():
    factors = [0.55 + 0.1 * k for k in range(12)]
    code = """
import jax.numpy as jnp, numpy as np, riesz as rz
def f(u):
    for k in FACTORS:
        u = np.roll(u, 1) * k + np.sin(u) - u * u * k
    return np.sum(u)
u = np.linspace(0, 1, 7, dtype=np.float32)
g = rz.compile(rz.grad(f), u, backend="jax")
y = g(jnp.asarray(u))
assert "loop(layer_" in g.source and y.dtype == np.float32, g.source
assert np.allclose(y, rz.grad(f)(u.astype(float)), 1e-4)
"""
    text = code.replace("FACTORS", repr(factors))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("reverse", [False, True])
def test_rounds_taken_several_at_once_are_the_same(monkeypatch, reverse):
    def body(carry, xs):
        return (jnp.sin(carry[0]) + xs[0],), (carry[0] * xs[0],)

    given = (jnp.float64(0.5),), (jnp.arange(7.0),)
    wanted = jax_steps.loop(body, *given, 7, reverse)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for at_once in (0, 3, 100):
        close(jax_steps.loop(body, *given, 7, reverse, at_once=at_once), wanted, 1e-15)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=6), st.booleans()
)
def test_sums_of_slices_that_go_to_slices(parts, before):
    """Pieces of x put to slices of zeros, added up: joined where they follow one another."""

    def f(x):
        y = np.zeros((2, 10, 3))
        for a, b, step in parts:
            n = min(10 - a, (10 - b + step - 1) // step)
            y[:, b : b + step * n : step] += x[:, a : a + n]
        return y * 2.0 if before else y

    x = RNG.normal(size=(2, 10, 3))
    agree(rz.compile(f, x, backend="jax")(x), rz.function(f)(x), 1e-14)


def test_many_slices_are_added_one_by_one():
    x = RNG.normal(size=40)
    f = rz.grad(lambda x: sum([np.sum(np.sin(x[k : k + 3]) * (k + 1.0) ** 2) for k in range(0, 37, 2)]))
    g = rz.compile(f, x, backend="jax")
    agree(g(x), f(x), 1e-12)


def test_long_programs_that_do_not_repeat_fall_back_with_a_word(monkeypatch):
    monkeypatch.setattr(tuning, "JAX_LINES", 30)

    def f(x):
        for i in range(60):
            x = np.sin(x) if i * i % 7 in (1, 2) else x * np.cos(x)[::-1] if i % 3 else x + x[0]
        return x

    g = rz.compile(f, np.ones(3), backend="jax")
    assert g.backend == "steps" and "more than 30 lines that do not repeat" in g.explain()
    assert np.array_equal(g(np.ones(3)), rz.function(f)(np.ones(3)))
    with pytest.raises(VectorError, match="more than 30 lines"):
        g(jnp.ones(3))


def test_threads_may_call_at_once():
    w = RNG.normal(size=(6, 6))
    g = rz.compile(rz.grad(lambda x: np.sum(np.tanh(w @ x) ** 2)), backend="jax")
    xs = RNG.normal(size=(8, 6))
    found = [None] * 8

    def work(i):
        found[i] = [g(xs[i]), np.asarray(g(jnp.asarray(xs[i])))]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    plain = rz.grad(lambda x: np.sum(np.tanh(w @ x) ** 2))
    assert all([np.allclose(y, plain(x)) for pair, x in zip(found, xs, strict=True) for y in pair])


def test_calls_go_on_while_another_thread_imports_jax(monkeypatch):
    g = rz.compile(lambda x: np.sin(x) * x)
    h = rz.compile(rz.jacobian(np.sin))
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    assert g(1.0) == np.sin(1.0) and h(0.0)(1.0) == 1.0


OFF = """
import jax, numpy as np, scipy.special, riesz as rz
x = np.linspace(0.0, 2.0, 5000) + 1e-12
f = lambda x: scipy.special.erfcx(x) * x
y = rz.compile(f, backend="jax")(x)
assert not jax.config.jax_enable_x64 and y.dtype == np.float64 and np.array_equal(y, f(x))
"""


def test_calls_to_the_host_keep_float64_where_jax_has_it_off():
    subprocess.run([sys.executable, "-c", OFF], check=True)


def test_float64_stays_where_jax_has_it_off():
    a = RNG.normal(size=(3, 3))
    g = rz.compile(lambda x: a @ x, backend="jax")
    with jax.enable_x64(False):
        y = g(np.ones(3))
        assert y.dtype == np.float64 and np.allclose(y, a.sum(axis=1), rtol=1e-14)
        with pytest.raises(VectorError, match="computes in float64, which is off in JAX"):
            g(jnp.ones(3))
        h = rz.compile(lambda x, k: np.sum(np.sin(x) * k))
        assert h(jnp.ones(3), 2.0).dtype == jnp.float32
        assert jax.grad(h)(jnp.ones(3), 2.0).dtype == jnp.float32
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sums = rz.compile(rz.grad(lambda x: np.sum(np.sort(x) * np.float32(2.0)) + np.max(x)))
            assert sums(jnp.arange(3.0)).dtype == jnp.float32 and sums(jnp.arange(3.0)).tolist() == [2.0, 2.0, 3.0]


def test_numbers_of_float32_fill_their_shapes():
    """A cotangent that is one float32 number at every index."""
    k, x = np.float32(2.0), RNG.normal(size=4).astype(np.float32)
    for f in (lambda x: np.sum(np.sort(x) * k), lambda x: np.sum(np.convolve(x, x) * k)):
        assert np.allclose(rz.compile(rz.grad(f))(jnp.asarray(x)), rz.grad(f)(x))


# -- inside JAX -----------------------------------------------------------------------------------------------

A = RNG.normal(size=(3, 4))


def mixed(x, w):
    """With a branch that is nan where it is not taken."""
    y = np.tanh(A @ x) * w
    return np.sum(np.where(y > 0, np.sqrt(y), y * y)) + np.sum(np.where(x > 0.1, np.log(x), x))


def mixed_jax(x, w):
    y = jnp.tanh(A @ x) * w
    roots = jnp.where(y > 0, jnp.sqrt(jnp.where(y > 0, y, 1.0)), y * y)
    return jnp.sum(roots) + jnp.sum(jnp.where(x > 0.1, jnp.log(jnp.where(x > 0.1, x, 1.0)), x))


X, W = jnp.asarray(RNG.normal(size=4)), jnp.asarray(RNG.normal(size=3))
XS, WS = jnp.asarray(RNG.normal(size=(5, 4))), jnp.asarray(RNG.normal(size=(2, 3)))
USES = {
    "first derivatives": {
        "value": lambda f: f(X, W),
        "grad": lambda f: jax.grad(f, (0, 1))(X, W),
        "jvp": lambda f: jax.jvp(f, (X, W), (X, W)),
        "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(X, W),
        "scan": lambda f: jax.lax.scan(lambda c, x: (c + f(x, W), f(x, c * W)), jnp.asarray(0.5), XS),
    },
    "batches": {
        "vjp of vmap": lambda f: jax.vjp(jax.vmap(f, (0, None)), XS, W)[1](jnp.arange(5.0)),
        "vmap of grad": lambda f: jax.vmap(jax.grad(f, (0, 1)), (0, None))(XS, W),
        "grad of vmap of vmap": lambda f: jax.grad(
            lambda x, w: jnp.sum(jax.vmap(jax.vmap(f, (0, None)), (None, 0))(x, w) ** 2), (0, 1)
        )(XS, WS),
    },
    "second derivatives": {
        "forward over reverse": lambda f: jax.hessian(f, (0, 1))(X, W),
        "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f))(X, W),
        "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f))(X, W),
    },
    "third derivatives": {
        "grad of grad of grad": lambda f: jax.grad(lambda x: jax.grad(lambda x: jax.grad(f)(x, W).sum())(x).sum())(X)
    },
}


@pytest.mark.parametrize("order", USES)
def test_a_compiled_function_is_a_citizen_of_jax(order):
    found, wanted = [
        jax.jit(lambda f=f: {name: use(f) for name, use in USES[order].items()})()
        for f in (CITIZENS["auto"], mixed_jax)
    ]
    for name in wanted:
        close(found[name], wanted[name])


def test_outside_of_jit_too():
    for use in (USES["first derivatives"]["grad"], USES["batches"]["vmap of grad"]):
        close(use(CITIZENS["auto"]), jax.jit(lambda use=use: use(mixed_jax))())


CITIZENS = {backend: rz.compile(mixed, backend=backend) for backend in ("auto", "jax")}


def test_jax_arrays_in_jax_arrays_out_numpy_arrays_in_numpy_arrays_out():
    for g in CITIZENS.values():
        assert isinstance(g(X, W), jax.Array)
        assert type(g(np.asarray(X), np.asarray(W))) is float
    g = rz.compile(lambda t, k: {"a": t["x"] * k, "b": (t["n"], 2.0)}, backend="auto")
    found = g({"x": X, "n": 3}, 2.0)
    assert isinstance(found["a"], jax.Array) and found["b"][0] == 3
    gradient = rz.compile(rz.grad(mixed))
    close(gradient(X, W), jax.jit(jax.grad(mixed_jax))(X, W))
    close(jax.jit(jax.jacobian(gradient))(X, W), jax.jit(jax.hessian(mixed_jax))(X, W))


def test_no_nan_from_a_branch_not_taken_where_jax_has_one():
    f = lambda xp: lambda x: xp.sum(xp.where(x > 0, xp.sqrt(x), 0.0))  # noqa: E731
    x = jnp.array([-1.0, 4.0])
    assert np.isnan(jax.grad(f(jnp))(x)[0])
    assert np.array_equal(jax.grad(rz.compile(f(np)))(x), [0.0, 0.25])
    assert np.array_equal(jax.jit(jax.hessian(rz.compile(f(np))))(x), [[0.0, 0.0], [0.0, -0.03125]])


def test_integers_and_arrays_beside_do_not_move():
    g = rz.compile(lambda x, i: x[i] * 2.0)
    x, i = jnp.arange(4.0), jnp.array([2, 0, 2])
    close(g(x, i), np.array([4.0, 0.0, 4.0]))
    close(jax.grad(lambda x: g(x, i).sum())(x), np.array([2.0, 0.0, 4.0, 0.0]))
    close(jax.vmap(g, (None, 0))(x, jnp.stack([i, i])), np.array([[4.0, 0.0, 4.0]] * 2))


def test_relations_and_loops_inside_jax():
    index = RNG.integers(0, 3, 6)

    def f(x):
        sums = np.bincount(index, weights=x, minlength=3)
        return rz.loop(lambda c, t: (np.tanh(c) + t, c), sums, np.arange(3.0))[1]

    g = rz.compile(f)
    xs = jnp.asarray(RNG.normal(size=(2, 6)))
    close(
        jax.jit(jax.vmap(jax.jacrev(g)))(xs),
        np.stack([rz.jacobian(f)(np.asarray(x)).to_dense().reshape(3, 3, 6) for x in xs]),
    )
    close(jax.jit(jax.vmap(jax.jacfwd(g)))(xs), jax.jit(jax.vmap(jax.jacrev(g)))(xs))


def test_random_numbers_are_drawn_anew():
    rng = np.random.default_rng(0)
    g = rz.compile(lambda x: x + rng.normal())
    assert not np.array_equal(g(X), g(X))


# -- linear maps ------------------------------------------------------------------------------------------------

DATA, SIGNS, TABLE = RNG.normal(size=(20, 5)), np.sign(RNG.normal(size=20)), RNG.normal(size=(4, 3))
MAPS = {
    "dense": (rz.hessian(lambda w: np.sum(np.logaddexp(0.0, -SIGNS * (DATA @ w)))), (RNG.normal(size=5),)),
    "two arguments": (
        rz.hessian(lambda u, v: np.sum((TABLE - u @ v.T) ** 2), argnums=(0, 1)),
        (RNG.normal(size=(4, 2)), RNG.normal(size=(3, 2))),
    ),
    "banded": (rz.hessian(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2)), (RNG.normal(size=6),)),
    "wide": (rz.jacobian(lambda x: np.tanh(DATA[:3] @ x) * x[0]), (RNG.normal(size=5),)),
    "gathers": (rz.jacobian(lambda x: np.sin(x[[0, 3, 3, 4]]) * x[1:]), (RNG.normal(size=5),)),
    "without entries": (
        rz.jacobian(lambda x: rz.loop(lambda c, t: (np.tanh(c) * t, None), x, np.arange(3.0))[0]),
        (RNG.normal(size=4),),
    ),
    "positions that depend on the point": (rz.jacobian(lambda x: np.sort(x) * x), (RNG.normal(size=4),)),
    "single precision": (rz.jacobian(lambda x: np.tanh(x) * x[0]), (RNG.normal(size=4).astype(np.float32),)),
}


@pytest.mark.parametrize("case", MAPS)
def test_linear_maps_in_jax(case):
    f, args = MAPS[case]
    L, g = f(*args), rz.compile(f, backend="jax")
    v = L.domain.random(np.random.default_rng(2))
    v = jax.tree.map(lambda x: np.asarray(x, L.dtype), v)
    dense, rough = L.to_dense(), 1e-5 if L.dtype == np.float32 else 1e-10
    for kind in (np.asarray, jnp.asarray):
        M = g(*[kind(a) for a in args])
        found = [
            M.to_dense(),
            M.T.to_dense().T,
            M.H.to_dense().T,
            jax.tree.leaves(M(jax.tree.map(kind, v))),
            jax.tree.leaves(M @ jax.tree.map(kind, v)),
        ]
        assert all(
            [
                isinstance(x, np.ndarray if kind is np.asarray else jax.Array) and x.dtype == L.dtype
                for x in jax.tree.leaves(found)
            ]
        )
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves([dense, dense, dense, [L(v)], [L(v)]]), strict=True):
            assert np.allclose(x, y, rtol=rough, atol=rough)
        if M.shape[0] == M.shape[1]:
            assert np.allclose(M.diagonal(), np.diag(dense), rtol=rough, atol=rough)
    assert M.shape == L.shape and repr(M)
    assert np.allclose(
        jax.jit(lambda *xs: g(*xs).to_dense())(*[jnp.asarray(a) for a in args]), dense, rtol=rough, atol=rough
    )


def test_linear_maps_refuse_what_does_not_fit():
    f, args = MAPS["wide"]
    M = rz.compile(f)(*[jnp.asarray(a) for a in args])
    with pytest.raises(SpaceError, match="as many rows as columns"):
        M.diagonal()
    with pytest.raises(SpaceError, match="not an element"):
        M(jnp.ones(3))


def test_a_weighted_space_has_its_own_adjoint_in_jax():
    V = (rz.R ** seg(3)).weighted(np.array([1.0, 2.0, 4.0]))
    f = rz.jacobian(lambda x: np.array([[1.0, 2.0, 3.0]]) @ np.sin(x), space=V)
    x = np.array([0.1, 0.2, 0.3])
    assert np.allclose(compiled(f, backend="jax")(jnp.asarray(x)).H.to_dense(), f(x).H.to_dense())


def test_whole_numbers_among_results_have_no_tangents():
    g, x = rz.compile(lambda x: (x * x, np.argsort(x))), jnp.array([3.0, 1.0, 2.0])
    (squares, order), (d, none) = jax.jvp(g, (x,), (jnp.ones(3),))
    assert np.allclose(squares, x * x) and np.array_equal(order, [1, 2, 0])
    assert np.allclose(d, 2 * x) and none.dtype == jax.dtypes.float0
    assert np.allclose(jax.grad(lambda x: g(x)[0].sum())(x), 2 * x)


# -- PyTorch ----------------------------------------------------------------------------------------------------


def test_a_compiled_function_on_tensors():
    torch = pytest.importorskip("torch")
    a = np.random.default_rng(0).normal(size=(3, 4))
    g = rz.compile(
        lambda x, w: {"a": np.tanh(a @ x) * w, "b": np.sum(np.where(x > 0, np.sqrt(x), x * x)), "n": 3}
    ).to_torch()
    torch.manual_seed(0)
    x, w = [torch.randn(n, dtype=torch.float64, requires_grad=True) for n in (4, 3)]
    assert g(x, w)["n"] == 3
    assert torch.autograd.gradcheck(lambda x, w: (g(x, w)["a"], g(x, w)["b"]), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: (g(x, w)["a"], g(x, w)["b"]), (x, w))
    g(x, 2.0)["b"].backward()
    assert torch.isfinite(x.grad).all()
    h = rz.compile(lambda x: np.sum(np.sin(x) ** 2)).to_torch()
    y = torch.ones(3, dtype=torch.float32, requires_grad=True)
    h(y).backward()
    assert h(y).dtype == torch.float32 == y.grad.dtype and torch.allclose(y.grad, torch.sin(2 * y))


def test_without_torch_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(VectorError, match=r"to_torch needs PyTorch.*riesz\[torch\]"):
        rz.compile(np.sin).to_torch()


@pytest.mark.parametrize(("file", "name"), sorted(jax_functions.OURS))
def test_functions_of_our_own_are_where_their_forms_in_jax_say(file: str, name: str) -> None:
    root = Path(rz.__file__).parent
    (path,) = root.rglob(f"{file}.py")
    module = importlib.import_module(".".join(("riesz", *path.relative_to(root).with_suffix("").parts)))
    assert callable(getattr(module, name))
