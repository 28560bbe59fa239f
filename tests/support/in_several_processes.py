"""Run by tests/backends/test_many_processes.py in several processes: the example, then what else works across them."""

import contextlib
import re
import runpy
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import NamedSharding, PartitionSpec

import riesz as rz
from riesz.errors import FileError, SpaceError, VectorError

FOLDER = Path(sys.argv[1])
fit = runpy.run_path(str(Path(__file__).parent.parent.parent / "examples" / "many_processes.py"))

mesh, me, n, d = fit["mesh"], fit["me"], fit["n"], fit["d"]
assert jax.device_count() == 4 and me.count == jax.process_count() == int(sys.argv[2])
rng = np.random.default_rng(3)
X, y = np.load(FOLDER / "X.npy"), np.load(FOLDER / "y.npy")


def whole(x):
    return np.asarray(process_allgather(x, tiled=True))


def close(found, wanted):
    np.testing.assert_allclose(whole(found), wanted, rtol=1e-10, atol=1e-10)


# what each process has read: rows of its own devices, each once
there = fit["X"].addressable_shards
assert sum([len(s.data) for s in there]) == n // me.count
asked = []


def rows(index):
    asked.append(index[0])
    return X[index]


ends = (np.arange(n)[:, None] + np.array([-2, -1, 3])).clip(0, n - 1)
R = rz.relation(rz.seg(n), rz.seg(n), np.stack([ends.ravel(), np.repeat(np.arange(n), 3)], axis=1))
plan, alone, v, k = R.plan(mesh=mesh, axis="data"), R.plan(), rng.normal(size=(n, 2)), rng.normal(size=n)
cut = NamedSharding(mesh, PartitionSpec("data"))
here = jax.make_array_from_callback(v.shape, cut, lambda index: v[index])


def functions_and_relations():
    """Loading by parts; functions, relations and fixed arrays in and out of jit."""
    loss = lambda p, X: np.sum(np.log1p(np.exp(X @ p["w"] + p["b"])))  # noqa: E731
    p = {"w": rng.normal(size=d), "b": 0.5}
    g = rz.compile(rz.grad(loss), p, X, mesh=mesh, place={1: "data"})
    given = g.load(p, rows)
    assert len(asked) == 4 // me.count and sum([s.stop - s.start for s in asked]) == n // me.count
    assert f"4 along 'data' devices, {4 // me.count} in each of {me.count} processes" in g.explain()
    want = rz.grad(loss)(p, X)
    for found in (g(*given), g(p, jnp.asarray(X))):
        close(found["w"], want["w"])
        close(found["b"], want["b"])
    columns = g.load(p, ([FOLDER / "rows.parquet"], [f"x{k}" for k in range(d)]))[1]
    np.testing.assert_array_equal(whole(columns), X)
    for source, error, says in [
        (X[:-4], SpaceError, r"argument X has shape \(.*\); the ndarray has"),
        (lambda index: X[:3], SpaceError, "is due"),
        (("rows.csv", "y"), VectorError, "a .npy file, or Parquet files"),
        ((FOLDER / "rows.parquet", "z"), VectorError, "has no column 'z': it has y, x0"),
        (X.astype(complex), VectorError, "complex128"),
    ]:
        try:
            g.load(p, source)
        except error as problem:
            assert re.search(says, str(problem)), problem
        else:
            raise AssertionError(f"{says}: nothing was refused")

    close(plan(here), alone(v))
    close(jax.jit(lambda v: plan(v))(here), alone(v))
    close(jax.jit(jax.grad(lambda v: jnp.sum(jnp.sin(plan(v)))))(here), alone.adjoint(np.cos(alone(v))))

    def bent(v):
        return np.sum(k * np.sin(rz.red(R)(v))[:, 0])

    slope = rz.compile(rz.grad(bent), v, mesh=mesh, place={rz.seg(n): "data"})
    close(slope(here), rz.grad(bent)(v))
    close(jax.jit(lambda v: slope(v))(here), rz.grad(bent)(v))


def checkpoints():
    """Solves and loops go on to the same bits, from the last round that all have; other work is refused."""
    J, one = fit["J"](fit["w"], fit["X"], fit["y"]), rz.jacobian(fit["residual"])(np.asarray(fit["w"]), X, y)
    A, b = J.gram(), np.arange(1.0, d + 1)
    once = np.asarray(A.solve(b, method="cg", checkpoint=FOLDER / "whole.rz", every=2))
    np.testing.assert_allclose(once, np.linalg.solve(one.gram().to_dense(), b), rtol=1e-7)
    kept = FOLDER / "part.rz"
    with contextlib.suppress(rz.SolveError):
        A.solve(b, method="cg", checkpoint=kept, every=2, max_iterations=4)
    assert np.array_equal(np.asarray(A.solve(b, method="cg", checkpoint=kept, every=2)), once)
    tall = jax.make_array_from_callback((n,), cut, lambda index: y[index])

    def halved(k, state):
        u, t = state
        return plan(u[:, None])[:, 0] / 3.0 + tall, t + 1

    first = (tall, 0)
    full = rz.resumed_loop(7, halved, first, checkpoint=FOLDER / "loop.rz", every=2)
    calls = []
    again = rz.resumed_loop(7, lambda k, s: (calls.append(k), halved(k, s))[1], first, checkpoint=FOLDER / "loop.rz")
    assert calls == [6] and again[1] == 7 and np.array_equal(whole(again[0]), whole(full[0]))
    assert again[0].sharding.spec == full[0].sharding.spec == PartitionSpec("data")
    own = FOLDER / f"loop.rz.{me.rank}-of-{me.count}"
    assert own.exists() and (FOLDER / f"{own.name}.before").exists()
    if me.rank == 1:  # this process is a round behind: all begin there
        (FOLDER / f"{own.name}.before").replace(own)
    calls = []
    again = rz.resumed_loop(
        7, lambda k, s: (calls.append(k), halved(k, s))[1], first, checkpoint=FOLDER / "loop.rz", every=9
    )
    assert calls == [6] and np.array_equal(whole(again[0]), whole(full[0])), calls
    other = jax.make_array_from_callback((n,), cut, lambda index: y[index] * (1.0 if me.rank else 2.0))
    try:
        rz.resumed_loop(7, halved, (other, 0), checkpoint=FOLDER / "loop.rz")
    except FileError as problem:
        said = "other work" if me.rank == 0 else "another process cannot go on"
        assert said in str(problem), problem
    else:
        raise AssertionError("another state was not refused")


(functions_and_relations if me.count == 2 else checkpoints)()
print("all of it holds")
