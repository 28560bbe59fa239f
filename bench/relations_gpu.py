"""Relational reduction on a GPU, forward and adjoint: JAX segment_sum and cuSPARSE (through torch) beside it, float32. Run where JAX sees a GPU."""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from riesz import relations, seg


def timed(work, calls=20, rounds=7):
    """Median seconds of a call, many calls in flight."""
    jax.block_until_ready([work() for _ in range(3)])
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready([work() for _ in range(calls)])
        found.append((time.perf_counter() - start) / calls)
    return statistics.median(found)


def sparse_in_torch(cols, rows, n, m, v):
    """Seconds of cuSPARSE's product, if torch is there; it takes no more pairs than a matrix has entries."""
    if not importlib.util.find_spec("torch") or len(rows) > n * m:
        return None
    import torch

    order = np.argsort(cols, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(cols, minlength=m))])
    places, sources = [torch.from_numpy(a.astype(np.int32)).cuda() for a in (offsets, rows[order])]
    matrix = torch.sparse_csr_tensor(places, sources, torch.ones(len(rows), device="cuda"), size=(m, n))
    given = torch.from_numpy(np.asarray(v)).cuda()

    def run():
        for _ in range(20):
            matrix @ given
        torch.cuda.synchronize()

    run()
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) / 20


def contest(title, relation, rows, cols, v):
    """One line: riesz, segment_sum, cuSPARSE; the same bits twice."""
    n, m = relation.source.size, relation.target.size
    start = time.perf_counter()
    plan = relation.plan("jax")
    first = jax.block_until_ready(plan(v))
    prepared = time.perf_counter() - start
    places, sources = jnp.asarray(cols.astype(np.int32)), jnp.asarray(rows.astype(np.int32))
    whole = len(rows) == n and bool((rows == np.arange(n)).all())
    segment = jax.jit(lambda v, c, r: jax.ops.segment_sum(v if whole else v[r], c, m))
    for column in {0, v.shape[1] - 1}:  # in 64 bits
        exact = np.bincount(cols, np.asarray(v[:, column], float)[rows], m)
        assert np.abs(np.asarray(first[:, column]) - exact).max() < 1e-5 * np.abs(exact).max(), title
    same = all(bool((plan(v) == first).all()) for _ in range(3))
    del first
    mine, theirs = timed(lambda: plan(v)), timed(lambda: segment(v, places, sources))
    sparse = sparse_in_torch(cols, rows, n, m, v)
    moved = (4 * v.shape[1] + 4) * len(rows) + 4 * m * v.shape[1]
    other = "" if sparse is None else f"cuSPARSE {1e3 * sparse:7.3f} ms ({sparse / mine:5.2f}×)"
    print(
        f"{title:<34} riesz {1e3 * mine:7.3f} ms  {moved / mine / 1e12:5.2f} TB/s   segment_sum {1e3 * theirs:7.3f} ms ({theirs / mine:5.2f}×)   "
        f"{other}   same bits: {same}   first call {prepared:.2f} s",
        flush=True,
    )


def main():
    """Functions and pairs, three distributions, widths 1, 16, 64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--targets", type=int, help="how many; a tenth of the pairs unless given")
    parser.add_argument("--widths", type=int, nargs="*", default=[1, 16, 64])
    given = parser.parse_args()
    count, size = given.pairs, given.targets or given.pairs // 10
    rng = np.random.default_rng(0)
    print(jax.devices()[0])
    for kind in ("uniform", "sorted", "power law"):
        cols = (size * rng.random(count) ** 4).astype(np.intp) if kind == "power law" else rng.integers(0, size, count)
        cols = np.sort(cols) if kind == "sorted" else cols
        rows = rng.integers(0, size, count)
        F = relations.function(seg(count), seg(size), cols)
        start = time.perf_counter()
        R = relations.edges(seg(size), seg(size), rows, cols)
        _ = R.groups
        print(f"{kind}: {count:,} pairs built and grouped in {time.perf_counter() - start:.2f} s")
        for width in given.widths:
            small = jnp.asarray(rng.normal(size=(size, width)), jnp.float32)
            large = jax.random.normal(jax.random.key(0), (count, width), jnp.float32)
            contest(f"  {kind}, scatter {width}", F, np.arange(count), cols, large)
            contest(f"  {kind}, gather {width}", F.converse, cols, np.arange(count), small)
            contest(f"  {kind}, pairs {width}", R, rows, cols, small)
            contest(f"  {kind}, pairsᵀ {width}", R.converse, cols, rows, small)


if __name__ == "__main__":
    main()
