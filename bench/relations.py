"""Relational reduction, forward and adjoint, against what it replaces: SciPy CSR, np.bincount, np.add.reduceat, torch index_add, JAX segment_sum.

Every contestant gets the same arrays in the same process; results are compared; medians in milliseconds, best rival ÷ riesz behind them. "riesz" is
Numba where it is installed, "core" NumPy and SciPy alone. Run: make bench, or python bench/relations.py [--pairs 1000000] [--gpu]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import threading
import time
from functools import partial

import numpy as np
import scipy.sparse as sparse
from timing import timed

import riesz as rz
from riesz import relations, seg
from riesz.runtime import pool as threads


def installed(name):
    """Whether a peer can be asked."""
    return importlib.util.find_spec(name) is not None


def bandwidth():
    """Bytes a second that a plain copy moves, read and written; the best any reduction can hope for."""
    a = np.ones(1 << 24)
    b = np.empty_like(a)
    np.copyto(b, a)
    seconds, _ = timed(lambda: np.copyto(b, a))
    return 2 * a.nbytes / seconds


def settled(work, repeat):
    """Median seconds once threads of the one before have stopped spinning, caches and cores are warm; short runs go on for a third of a second."""
    work()
    time.sleep(0.2)
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        work()
    once, _ = timed(work, 3, collect=False)
    return timed(work, max(repeat, int(0.3 / once)), collect=False)


def targets(kind, count, size, rng):
    """The target of each pair: uniform, sorted, or a power law (a few targets have most of the pairs)."""
    if kind == "power law":
        return (size * rng.random(count) ** 4).astype(np.intp)
    found = rng.integers(0, size, count)
    return np.sort(found) if kind == "sorted" else found


def contest(title, ours, rivals, moved, rate, repeat):
    """One line: riesz, its rivals, and the share of the measured bandwidth."""
    times, results = {}, {}
    for name, work in {**ours, **rivals}.items():
        times[name], results[name] = settled(work, repeat)
    reference = np.asarray(next(iter(rivals.values()))())
    for name, found in results.items():
        assert np.allclose(np.asarray(found).reshape(reference.shape), reference, rtol=1e-9, atol=1e-9), (
            f"{title}: {name} differs"
        )
    mine = times[next(iter(ours))]
    best = min(times[name] for name in rivals)
    cells = "  ".join(f"{name} {1e3 * t:8.2f}" for name, t in times.items())
    print(f"{title:<50} {best / mine:6.2f}×  {100 * moved / mine / rate:4.0f}%   {cells}", flush=True)


def rivals_of(rows, cols, n, m, v):
    """Everybody else's way of y[cols[e]] += v[rows[e]]; rows is None for a function, whose pairs are its sources."""
    width = v.shape[1]
    at = np.arange(len(cols)) if rows is None else rows
    kind = np.int32
    csr = sparse.coo_array((np.ones(len(cols)), (cols.astype(kind), at.astype(kind))), shape=(m, n)).tocsr()
    found = {"CSR": lambda: csr @ v}
    if rows is None and width == 1:
        found["bincount"] = lambda: np.bincount(cols, v[:, 0], m)
    if rows is None and bool((np.diff(cols) >= 0).all()):
        used, starts = np.unique(cols, return_index=True)

        def reduceat():
            y = np.zeros((m, width))
            y[used] = np.add.reduceat(v, starts, axis=0)
            return y

        if width == 1:
            found["reduceat"] = reduceat
    if installed("torch"):
        import torch

        tv, tc, tr = torch.from_numpy(v), torch.from_numpy(cols), torch.from_numpy(at)
        found["torch"] = lambda: (
            torch.zeros(m, width, dtype=tv.dtype).index_add_(0, tc, tv if rows is None else tv[tr]).numpy()
        )
    if installed("jax"):
        import jax
        import jax.numpy as jnp

        jv, jc, jr = jnp.asarray(v), jnp.asarray(cols), jnp.asarray(at)
        segment = jax.jit(lambda v, c, r: jax.ops.segment_sum(v if rows is None else v[r], c, m))
        found["JAX"] = lambda: segment(jv, jc, jr).block_until_ready()
    return found


def takers(index, v):
    """Everybody's gather."""
    found = {"np.take": lambda: np.take(v, index, axis=0)}
    if installed("torch"):
        import torch

        tv, ti = torch.from_numpy(v), torch.from_numpy(index)
        found["torch"] = lambda: torch.index_select(tv, 0, ti).numpy()
    if installed("jax"):
        import jax
        import jax.numpy as jnp

        jv, ji = jnp.asarray(v), jnp.asarray(index)
        take = jax.jit(lambda v, i: v[i])
        found["JAX"] = lambda: take(jv, ji).block_until_ready()
    return found


def stored(count, size, widths, rate, repeat):
    """Functions (scatter and gather) and lists of pairs, both ways."""
    rng = np.random.default_rng(0)
    for kind in ("uniform", "sorted", "power law"):
        cols = targets(kind, count, size, rng)
        rows = rng.integers(0, size, count)
        start = time.perf_counter()
        F = relations.function(seg(count), seg(size), cols)
        R = relations.edges(seg(size), seg(size), rows, cols)
        made = time.perf_counter() - start
        _ = F.groups, F.converse.short, R.groups, R.converse.groups
        planned = time.perf_counter() - start - made
        print(
            f"\n{count:,} pairs, {size:,} targets, {kind}: built in {made:.2f} s, planned in {planned:.2f} s (both directions, both relations)"
        )
        first_uses(F, rng.normal(size=count))
        for width in widths:
            small, large = (
                rng.normal(size=(size, width)),
                rng.normal(size=(count, width)) if count * width <= 7e7 else None,
            )
            if large is not None:
                moved = large.nbytes + 4 * count + small.nbytes
                both(f"scatter {width:>3}", F, large, rivals_of(None, cols, count, size, large), moved, rate, repeat)
                both(f"gather  {width:>3}", F.converse, small, takers(cols, small), moved, rate, repeat)
            moved = (8 * width + 4) * count + 2 * small.nbytes
            both(f"pairs   {width:>3}", R, small, rivals_of(rows, cols, size, size, small), moved, rate, repeat)
            both(
                f"pairsᵀ  {width:>3}", R.converse, small, rivals_of(cols, rows, size, size, small), moved, rate, repeat
            )


def first_uses(F, v):
    """What a new function costs: nothing is prepared for the first sum, strips or groups for the second."""
    plan = F.plan()
    times = [1e3 * timed(lambda: plan(v), 1)[0] for _ in range(3)]
    print("  one sum after the other: " + ", ".join([f"{t:.1f} ms" for t in times]))


def both(title, relation, v, rivals, moved, rate, repeat):
    """Numba if it is there, and the core alone."""
    red = rz.LinearMap.of(rz.red(relation).at(rz.space_of(v)))
    core = relation.plan("numpy")
    contest("  " + title, {"riesz": lambda: red(v), "core": lambda: core(v)}, rivals, moved, rate, repeat)


def sparse_products(count, size, widths, rate, repeat):
    """Gather, product with a number for each pair, and scatter, written as three maps and run as one; SciPy's product of a matrix made beforehand."""
    rng = np.random.default_rng(0)
    rows, cols, weights = rng.integers(0, size, count), rng.integers(0, size, count), rng.normal(size=count)
    matrix = sparse.coo_array((weights, (cols, rows)), shape=(size, size)).tocsr()
    print(f"\nred ∘ (w ⊙) ∘ red, {count:,} pairs")
    for width in widths:
        x = rng.normal(size=(size, width))
        S = rz.LinearMap.of(
            rz.red(relations.function(seg(count), seg(size), cols)).at(rz.space_of(np.zeros((count, width))))
        )
        L = S @ rz.linearize(lambda x: x[rows] * weights[:, None], x)[1]
        moved = (8 * width + 16) * count + 2 * x.nbytes
        contest(
            f"  width {width}", {"riesz": lambda L=L, x=x: L(x)}, {"CSR": lambda x=x: matrix @ x}, moved, rate, repeat
        )


def dense(n, rate, repeat):
    """Stencils, scans, windows and sums: array operations, against the NumPy and JAX one would write."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    side = int(n**0.5)
    g = rng.normal(size=(side, side))
    X, G = seg(n), seg(side)
    inner = [slice(0, side - 2), slice(1, side - 1), slice(2, side)]

    def at(i, j):
        return relations.sliced(G, inner[i]) * relations.sliced(G, inner[j])

    def scatter():
        y = np.zeros(n)
        y[:-2] += x[:-2]
        y[1:-1] += x[:-2]
        y[2:] += x[:-2]
        return y

    print(f"\n{n:,} numbers, compact relations (nothing stored)")
    rows = [
        ("window 3", relations.window(X, 3), x, lambda np, x: x[:-2] + x[1:-1] + x[2:]),
        ("window 3, adjoint", relations.window(X, 3).converse, x[:-2], lambda _, x: scatter()),
        ("window 64", relations.window(X, 64), x, lambda np, x: np.convolve(x, np.ones(64), "valid")),
        ("prefix sums", relations.triangular(X), x, lambda np, x: np.cumsum(x)),
        ("prefix sums, adjoint", relations.triangular(X).converse, x, lambda np, x: np.cumsum(x[::-1])[::-1]),
        (
            "5-point stencil",
            at(0, 1) | at(2, 1) | at(1, 0) | at(1, 2),
            g,
            lambda np, g: g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:],
        ),
        ("sum of rows", relations.full(G, seg(1)) * relations.diagonal(G), g, lambda np, g: g.sum(0)[None]),
        (
            "every other",
            relations.sliced(X, slice(0, None, 2)).converse,
            x[: -(-n // 2)],
            lambda np, x: _spaced(np, x, n),
        ),
    ]
    for title, relation, v, hand in rows:
        plan = relation.plan()
        rivals = {"NumPy": lambda hand=hand, v=v: hand(np, v)}
        ours = {"riesz": lambda plan=plan, v=v: plan(v)}
        if installed("jax") and "adjoint" not in title and "64" not in title:
            import jax
            import jax.numpy as jnp

            jitted, jv = jax.jit(lambda v, hand=hand: hand(jnp, v)), jnp.asarray(v)
            compiled = jax.jit(relation.plan("jax"))
            rivals["JAX"] = lambda f=jitted, jv=jv: f(jv).block_until_ready()
            ours["in JAX"] = lambda f=compiled, jv=jv: f(jv).block_until_ready()
        contest("  " + title, ours, rivals, v.nbytes + 8 * relation.target.size, rate, repeat)


def _spaced(np, x, n):
    if hasattr(np.zeros(1), "at"):
        return np.zeros(n).at[::2].set(x)
    y = np.zeros(n)
    y[::2] = x
    return y


def waking():
    """What threads cost, to be run with and without RIESZ_SPIN=1: giving another thread nothing to do and hearing that it
    is done, at once after the last time and when it sleeps; then sums and a compiled gradient, on one thread and on all.
    """

    def both():  # each part waits for the other one, so that the caller does not do both
        here = [threading.Lock(), threading.Lock()]
        for lock in here:
            lock.acquire()
        threads.spread(lambda k: (here[k].release(), here[1 - k].acquire()), [(0,), (1,)])

    awake = timed(both, 1001, collect=False)[0]
    asleep = [(time.sleep(0.002), timed(both, 1, collect=False)[0])[1] for _ in range(101)]
    print(f"\na thread begins and ends in {1e6 * awake:.0f} µs, in {1e6 * np.median(asleep):.0f} µs when it sleeps")
    rng = np.random.default_rng(0)
    works = {}
    for count in (10**5, 10**6, 10**7):
        plan = relations.function(seg(count), seg(count // 10), rng.integers(0, count // 10, count)).plan("numba")
        works[f"a sum of {count:,} numbers at random"] = partial(plan, rng.normal(size=count))
    gradient = rz.compile(rz.grad(lambda x: np.sum(np.exp(-x * x) * np.sin(x))), backend="numba")
    works["a gradient of 100,000 numbers"] = partial(gradient, rng.normal(size=10**5))
    cores = os.environ.get("RIESZ_THREADS")
    for title, work in works.items():
        times = {"1": [], cores or "": []}
        for _ in range(15):  # in turn, for other work on the machine slows both
            for number, found in times.items():
                os.environ["RIESZ_THREADS"] = number
                work(), work()
                start = time.perf_counter()
                while time.perf_counter() - start < 0.05:
                    before = time.perf_counter()
                    work()
                    found.append(time.perf_counter() - before)
        one, all_ = [[1e3 * np.quantile(found, q) for q in (0.1, 0.5)] for found in times.values()]
        text = f"one thread {one[0]:7.3f} ({one[1]:7.3f})   {threads.count()} threads {all_[0]:7.3f} ({all_[1]:7.3f})"
        print(f"  {title:<42} {text}   ms, fastest tenth (median)", flush=True)
    os.environ.pop("RIESZ_THREADS")
    os.environ.update({} if cores is None else {"RIESZ_THREADS": cores})


def gather_adjoint(count, size, widths, repeat):
    """The adjoint of x[index] as JAX derives it, as the converse of a relation, and by the plan of that relation, asked for again each time."""
    if not installed("jax"):
        return
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    index = rng.integers(0, size, count)
    print(f"\nthe adjoint of x[index], {count:,} indices into {size:,} rows: JAX's ÷ riesz's")
    for width in widths:
        x, y = rng.normal(size=(size, width)), rng.normal(size=(count, width))
        R = relations.gather(seg(size), seg(count), index)
        L, plan = rz.LinearMap.of(rz.red(R).at(rz.space_of(x))).H, R.plan()
        pull = jax.jit(lambda x, i, y: jax.vjp(lambda x: x[i], x)[1](y)[0])
        args = jnp.asarray(x), jnp.asarray(index), jnp.asarray(y)
        assert np.allclose(L(y), pull(*args)) and np.array_equal(L(y), plan.adjoint(y))
        works = (
            lambda L=L, y=y: L(y),
            lambda pull=pull, args=args: pull(*args).block_until_ready(),
            lambda plan=plan, y=y: plan.adjoint(y),
        )
        rounds = [[settled(work, repeat)[0] for work in works] for _ in range(5)]
        mine, theirs, planned = np.median(rounds, 0)  # in turn, for other work on the machine slows all
        print(
            f"  width {width:>3}   {theirs / mine:6.2f}×   riesz {1e3 * mine:8.2f}   plan.adjoint {1e3 * planned:8.2f}   JAX {1e3 * theirs:8.2f}",
            flush=True,
        )


def segment_maxima(count, size, rate, repeat):
    """The largest number of each group, and its gradient, against NumPy, pandas and JAX."""
    rng = np.random.default_rng(0)
    index, v = rng.integers(0, size, count), rng.normal(size=count)
    f = rz.red(relations.function(seg(count), seg(size), index), "max")

    def at():
        y = np.full(size, -np.inf)
        np.maximum.at(y, index, v)
        return y

    rivals, gradients = {"ufunc.at": at}, {}
    if installed("pandas"):
        import pandas as pd

        table = pd.Series(v).groupby(index)
        rivals["pandas"] = lambda: table.max().reindex(range(size), fill_value=-np.inf)
    if installed("jax"):
        import jax

        theirs = jax.jit(lambda v: jax.ops.segment_max(v, index, size))
        slope = jax.jit(jax.grad(lambda v: jax.ops.segment_max(v, index, size).sum()))
        rivals["jax"], gradients["jax"] = lambda: theirs(v).block_until_ready(), lambda: slope(v).block_until_ready()
    contest(f"segment max, {count:,} to {size:,}", {"riesz": lambda: f(v)}, rivals, 8 * count, rate, repeat)
    if gradients:
        g = rz.grad(rz.total @ f)
        contest(
            f"segment max, {count:,} to {size:,}, gradient",
            {"riesz": lambda: g(v)},
            gradients,
            16 * count,
            rate,
            repeat,
        )


def keys(count):
    """group_by and join against pd.factorize and pd.merge, the best of three each, one after the other."""
    import pandas as pd

    rng = np.random.default_rng(0)
    some = rng.integers(0, 3000, count)
    words = np.array([f"key{i}" for i in range(3000)], object)[some]
    columns = {
        "integers": some,
        "wide integers": rng.integers(-(2**62), 2**62, 3000)[some],
        "different integers": rng.permutation(count) * 10**9,
        "floats": rng.normal(size=3000)[some],
        "words": words,
        "words of NumPy": words.astype(str),
        "different words": np.array([f"w{i}" for i in rng.permutation(count)], object),
    }
    for name, column in columns.items():
        works = {"riesz": lambda c=column: relations.group_by(c), "pandas": lambda c=column: pd.factorize(c)}
        _keys_line(f"keys, {count:,} {name}", works)
    left, right = pd.DataFrame({"k": some}), pd.DataFrame({"k": np.arange(3000), "v": 1.0})
    works = {
        "riesz": lambda: relations.join(some, right["k"]),
        "pandas": lambda: left.merge(right, on="k", how="left"),
    }
    _keys_line(f"join, {count:,} with 3,000", works)


def _keys_line(title, works):
    times = {name: min(timed(work, 1)[0] for _ in range(3)) for name, work in works.items()}
    cells = "  ".join(f"{name} {1e3 * t:8.1f}" for name, t in times.items())
    print(f"{title:<50} {times['pandas'] / times['riesz']:6.2f}×         {cells}", flush=True)


def main():
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--widths", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", action="store_true", help="only what threads cost; compare with RIESZ_SPIN=1")
    parser.add_argument("--keys", action="store_true", help="only keys of tables, and maxima of groups")
    given = parser.parse_args()
    if given.threads:
        waking()
        return
    if installed("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
    rate = bandwidth()
    print(
        f"memory moves {rate / 1e9:.1f} GB/s (copy, read and written); the second column is the share of it that riesz reached"
    )
    segment_maxima(given.pairs, given.pairs // 20, rate, given.repeat)
    if installed("pandas"):
        keys(2 * given.pairs)
    if given.keys:
        return
    stored(given.pairs, given.pairs // 10, given.widths, rate, given.repeat)
    for size in (max(given.pairs // 1000, 1), given.pairs):  # many pairs for a target, and one
        stored(given.pairs, size, [width for width in given.widths if width <= 16], rate, given.repeat)
    waking()
    gather_adjoint(given.pairs, given.pairs // 10, given.widths, given.repeat)
    sparse_products(given.pairs, given.pairs // 10, given.widths, rate, given.repeat)
    dense(10 * given.pairs, rate, given.repeat)


if __name__ == "__main__":
    main()
