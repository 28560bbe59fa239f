"""Compiled JAX code belongs to the kinds and sizes of relations: others of the same kind use it again, and it keeps no relation alive   (§2.2.3)."""

import gc
import importlib
import pkgutil
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from relation_kinds import KINDS, function
from sampling import examples

import riesz
from riesz import relations, seg
from riesz.backends.jax.jax_functions import OURS
from riesz.relations import Relation
from riesz.relations.jax import reduction_in_jax as in_jax

jax.config.update("jax_enable_x64", True)
every_kind = pytest.mark.parametrize("kind", KINDS)


def numbers(rng, n: int) -> jax.Array:
    return jnp.asarray(rng.integers(-4, 5, (n, 2)).astype(float))


USES = {
    "values": lambda plan, v, w: plan(v),
    "adjoint": lambda plan, v, w: plan.adjoint(w),
    "gradient": lambda plan, v, w: jax.grad(lambda v: (plan(v) * w).sum())(v),
    "tangent": lambda plan, v, w: jax.jvp(plan, (v,), (v,))[1],
    "transpose": lambda plan, v, w: jax.linear_transpose(plan, v)(w)[0],
    "batch": lambda plan, v, w: jax.vmap(plan, in_axes=1, out_axes=1)(v),
    "gradients of a batch": lambda plan, v, w: jax.vmap(
        jax.grad(lambda v, w: (plan(v) * w).sum()), in_axes=1, out_axes=1
    )(v, w),
    "compiled": lambda plan, v, w: jax.jit(plan)(v),
}
BACKWARDS = ("adjoint", "gradient", "transpose", "gradients of a batch")


def used(R: Relation, rng) -> list[bool]:
    """Whether every use of a relation gives what its matrix gives."""
    matrix, plan = R.matrix().toarray(), R.plan("jax")
    v, w = numbers(rng, R.source.size), numbers(rng, R.target.size)
    return [
        np.array_equal(use(plan, v, w), matrix @ w if name in BACKWARDS else matrix.T @ v) for name, use in USES.items()
    ]


@pytest.fixture
def traced(monkeypatch) -> list[str]:
    """How each reduction runs that JAX writes code for."""
    found: list[str] = []
    reduce = in_jax.reduce
    monkeypatch.setattr(in_jax, "reduce", lambda code, *rest: (found.append(code.how), reduce(code, *rest))[1])
    jax.clear_caches()
    return found


@every_kind
def test_relations_of_one_kind_and_size_share_compiled_code(kind, traced):
    wanted, build = KINDS[kind]
    rng = np.random.default_rng(1)
    first, second = build(rng), build(rng)
    assert type(first) is type(second) is wanted and first is not second
    assert (first.matrix() != second.matrix()).nnz
    assert in_jax._both(first)[0] == in_jax._both(second)[0]
    assert all(used(first, rng)) and traced
    traced.clear()
    eager = [name for name in USES if name != "compiled"]  # what a user compiles is his own
    matrix, plan = second.matrix().toarray(), second.plan("jax")
    v, w = numbers(rng, second.source.size), numbers(rng, second.target.size)
    for name in eager:
        assert np.array_equal(USES[name](plan, v, w), matrix @ w if name in BACKWARDS else matrix.T @ v), name
    assert not traced


def test_what_code_depends_on_is_in_it():
    """Slices, shifts, directions and multiplicities are compiled in: relations that differ in them have codes of their own."""
    X, rng = seg(12), np.random.default_rng(2)
    different = [
        *[relations.sliced(X, s) for s in (slice(0, 6), slice(1, 7), slice(0, 12, 2), slice(11, None, -2))],
        *[relations.sliced(X, s).converse for s in (slice(0, 6), slice(1, 7), slice(0, 12, 2))],
        *[relations.shift(X, k) for k in (-1, 1, 2)],
        *[relations.point(X, k) for k in (0, 5)],
        *[relations.point(X, k).converse for k in (0, 5)],
        *[relations.window(X, 3, *steps) for steps in ((1, 1), (2, 1), (1, 2))],
        *[
            relations.triangular(X),
            relations.triangular(X).converse,
            relations.triangular_strict(X),
            relations.triangular_strict(X).converse,
        ],
        *[
            relations.full(X, X),
            relations.full(X, X) | relations.full(X, X),
            relations.diagonal(X),
            relations.empty(X, X),
        ],
        *[function(rng, 12, 12), function(rng, 12, 12).converse],
        *[
            relations.window(seg(12), 3) * relations.window(seg(15), 4),
            relations.window(seg(15), 4) * relations.window(seg(12), 3),
        ],
    ]
    codes = [in_jax.prepared(R)[0] for R in different]
    assert len(set(codes)) == len(codes)
    for R in different:
        v = rng.integers(-4, 5, R.source.size).astype(float)
        assert np.array_equal(R.plan("jax")(v).reshape(-1), R.matrix().T @ v)


@given(st.data())
@examples(0.3)
def test_shared_code_gives_each_relation_its_own_numbers(data):
    """Many relations of few sizes, one after the other through the same code, against their matrices."""
    n, m = data.draw(st.sampled_from([(5, 3), (3, 5)]))
    index = np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=n, max_size=n)))
    R = relations.function(seg(n), seg(m), index)
    R = R.converse if data.draw(st.booleans()) else R
    R = R * relations.diagonal(seg(2)) if data.draw(st.booleans()) else R
    v = np.arange(1.0, R.source.size + 1)
    plan, matrix = R.plan("jax"), R.matrix().toarray()
    assert np.array_equal(plan(v).reshape(-1), matrix.T @ v)
    assert np.array_equal(
        jax.grad(lambda v: (plan(v) ** 2).sum() / 2)(jnp.asarray(v)).reshape(-1), matrix @ (matrix.T @ v)
    )


@every_kind
def test_compiled_code_keeps_no_relation(kind):
    """Neither a relation nor its converse nor their arrays outlive the last who holds them."""
    rng = np.random.default_rng(3)
    R = KINDS[kind][1](rng)
    assert all(used(R, rng))
    leaves = jax.tree.leaves(in_jax._both(R)[1])
    gone = [weakref.ref(x) for x in (R, R.converse, *leaves)]
    del R, leaves
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


@pytest.mark.parametrize(
    "build",
    [
        lambda: relations.window(seg(917), 3),
        lambda: relations.triangular(seg(917)),
        lambda: relations.shift(seg(917), 2),
    ],
)
def test_compiled_code_keeps_no_compact_relation(build):
    R = build()
    assert all(used(R, np.random.default_rng(4)))
    gone = weakref.ref(R)
    del R
    gc.collect()
    assert gone() is None


def test_a_code_is_printed_in_words():
    text = str(jax.make_jaxpr(relations.gather(seg(4), seg(3), [2, 0, 0]).plan("jax"))(np.ones(4)))
    assert "gather 4→3" in text and "scatter 3→4" in text


@pytest.mark.parametrize(("there", "how"), [(True, "rows"), (False, "tables")])
def test_a_gpu_without_the_kernel_has_tables(monkeypatch, there, how):
    monkeypatch.setattr(in_jax, "_on_gpu", lambda: True)
    monkeypatch.setattr(in_jax, "_has_kernel", lambda: there)
    R = relations.function(seg(5), seg(3), np.array([0, 2, 0, 1, 2]))
    code, arrays = in_jax.prepared(R)
    assert code.how == how
    if not there:
        found = in_jax.reduce(code, arrays, jnp.arange(5.0).reshape(1, 5, 1))
        np.testing.assert_array_equal(np.asarray(found).ravel(), [2.0, 3.0, 5.0])


@pytest.mark.parametrize("key", sorted(OURS), ids=".".join)
def test_discrete_functions_known_to_jax_are_there(key):
    """The table is by file and name: a row for something that moved would never be used."""
    file, name = key
    (module,) = [m for m in pkgutil.walk_packages(riesz.__path__, "riesz.") if m.name.rpartition(".")[2] == file]
    assert callable(getattr(importlib.import_module(module.name), name))
