"""The rows of the scoreboard on a GPU, float32: riesz by its JAX backend, JAX as one writes it, PyTorch on CUDA where it is, and by hand in JAX.

All matrix products in full float32 precision; results are compared; medians with several calls in flight.
Run where JAX sees a GPU: python bench/gpu.py [rows …]; --first measures first calls, each in a process of its own;
python bench/gpu.py --cpu --small tries it out without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time

import gpu_models
import numpy as np

import riesz as rz


def timed(contestants, wait, calls, rounds):
    """Median seconds of a call of each, taking turns."""
    times = {name: [] for name in contestants}
    for work in contestants.values():
        wait([work() for _ in range(3)])
    for _ in range(rounds):
        for name, work in contestants.items():
            start = time.perf_counter()
            wait([work() for _ in range(calls)])
            times[name].append((time.perf_counter() - start) / calls)
    return {name: statistics.median(found) for name, found in times.items()}


def torch_on(device):
    """PyTorch where it can use the device, or None."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch if device == "cpu" or torch.cuda.is_available() else None


# -- the rows: (inputs, riesz, JAX, by hand, torch) -------------------------------------------------------


def gmm(n, d, k):
    """Gradient of a Gaussian mixture."""
    import jax
    import jax.numpy as jnp
    import scipy.special
    from rows.gmm import in_torch, log_likelihood

    rng = np.random.default_rng(0)
    x, alphas, means, icf = (
        rng.normal(size=(n, d)),
        rng.normal(size=k),
        rng.normal(size=(k, d)),
        0.1 * rng.normal(size=(k, d * (d + 1) // 2)),
    )
    upper = np.triu(np.ones((d, d), dtype=int), 1)
    at = (np.cumsum(upper).reshape(d, d) * upper).T

    def by_hand(alphas, means, icf, x):
        """Two products of matrices for each component; the third taken out of the sum over points."""
        scale = jnp.exp(icf[:, :d])
        Q = (
            jnp.concatenate([jnp.zeros((k, 1), x.dtype), icf[:, d:]], axis=1)[:, at]
            + jnp.eye(d, dtype=x.dtype) * scale[:, :, None]
        )
        centred = x[None] - means[:, None]
        turned = jnp.einsum("kij,knj->kni", Q, centred)
        r = jax.nn.softmax((alphas + icf[:, :d].sum(1))[:, None] - 0.5 * (turned**2).sum(2), axis=0)
        weighted, count = turned * r[:, :, None], r.sum(1)
        outer = jnp.einsum("kni,knj->kij", weighted, centred)
        rows, columns = np.tril_indices(d, -1)
        slope = jnp.zeros_like(icf).at[:, d + at[rows, columns] - 1].set(-outer[:, rows, columns])
        slope = slope.at[:, :d].set(count[:, None] - jnp.einsum("kii->ki", outer) * scale)
        return count - n * jax.nn.softmax(alphas), jnp.einsum("ki,kij->kj", weighted.sum(1), Q), slope

    ours = rz.grad(lambda a, m, q, x: log_likelihood(np, scipy.special.logsumexp, a, m, q, x, at), (0, 1, 2))
    theirs = jax.grad(lambda a, m, q, x: log_likelihood(jnp, jax.scipy.special.logsumexp, a, m, q, x, at), (0, 1, 2))
    return (
        (alphas, means, icf, x),
        ours,
        theirs,
        by_hand,
        lambda t, a, m, q, x: in_torch(t, a, m, q, x, t.from_numpy(at).to(x.device)),
    )


def relations(pairs, width):
    """red_R along random pairs, forward and adjoint."""
    import jax

    rng = np.random.default_rng(0)
    size = pairs // 10
    rows, columns = rng.integers(0, size, (2, pairs))
    v, w = rng.normal(size=(2, size, width))
    red = rz.red(rz.relations.edges(rz.seg(size), rz.seg(size), rows, columns))

    def ours(v, w):
        y, pull = rz.vjp(lambda v: red(v), v)
        return y, pull(w)

    def theirs(v, w, r, c):
        y, pull = jax.vjp(lambda v: jax.ops.segment_sum(v[r], c, size), v)
        return y, pull(w)[0]

    index = [a.astype(np.int32) for a in (rows, columns)]
    forward, back = (np.argsort(a, kind="stable").astype(np.int32) for a in (columns, rows))
    sorted_ = [index[0][forward], index[1][forward], index[1][back], index[0][back]]

    def by_hand(v, w, r, c, s, d):
        return (
            jax.ops.segment_sum(v[r], c, size, indices_are_sorted=True),
            jax.ops.segment_sum(w[s], d, size, indices_are_sorted=True),
        )

    def in_torch(t, v, w):
        r, c = [t.from_numpy(a).to(v.device) for a in index]
        return lambda: (t.zeros_like(v).index_add(0, c, v[r]), t.zeros_like(v).index_add(0, r, w[c]))

    return (v, w), ours, (theirs, index), (by_hand, sorted_), in_torch


def logistic(n):
    """The Hessian of logistic regression as a matrix."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(2 * n, n)), rng.normal(size=n) / np.sqrt(n)

    def by_hand(w, X):
        s = jax.nn.sigmoid(X @ w)
        return X.T @ ((s * (1 - s))[:, None] * X)

    def in_torch(t, w, X):
        from torch.func import hessian

        return hessian(lambda w: t.nn.functional.softplus(X @ w).sum())(w)

    return (
        (w, X),
        lambda w, X: rz.hessian(lambda w: np.sum(np.logaddexp(0.0, X @ w)))(w).to_dense(),
        lambda w, X: jax.hessian(lambda w: jnp.sum(jnp.logaddexp(0.0, X @ w)))(w),
        by_hand,
        in_torch,
    )


def matfact(n, k):
    """The Hessian of ‖T − UVᵀ‖² in U as a matrix: I ⊗ 2VᵀV."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    T, (U, V) = rng.normal(size=(n, n)), rng.normal(size=(2, n, k))

    def in_torch(t, U, V, T):
        from torch.func import hessian

        return hessian(lambda U: ((T - U @ V.T) ** 2).sum())(U)

    return (
        (U, V, T),
        lambda U, V, T: rz.hessian(lambda U: np.sum((T - U @ V.T) ** 2))(U).to_dense(),
        lambda U, V, T: jax.hessian(lambda U: jnp.sum((T - U @ V.T) ** 2))(U).reshape(n * k, n * k),
        lambda U, V, T: jnp.kron(jnp.eye(n, dtype=V.dtype), 2.0 * (V.T @ V)),
        in_torch,
    )


def product(n, k):
    """The same Hessian times a vector."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    T, (U, V, D) = rng.normal(size=(n, n)), rng.normal(size=(3, n, k))

    def in_torch(t, U, V, D, T):
        from torch.func import grad, jvp

        return jvp(grad(lambda U: ((T - U @ V.T) ** 2).sum()), (U,), (D,))[1]

    return (
        (U, V, D, T),
        lambda U, V, D, T: rz.hvp(lambda U: np.sum((T - U @ V.T) ** 2), (U,), (D,)),
        lambda U, V, D, T: jax.jvp(jax.grad(lambda U: jnp.sum((T - U @ V.T) ** 2)), (U,), (D,))[1],
        lambda U, V, D, T: 2.0 * (D @ (V.T @ V)),
        in_torch,
    )


ROWS = {
    "gmm": (
        "GMM gradient, n = {n:,}, d = {d}, K = {k}",
        gmm,
        1.4,
        {"n": 10_000, "d": 128, "k": 200},
        {"n": 200, "d": 8, "k": 5},
    ),
    "relations": (
        "red_R and adjoint, {pairs:,} pairs, width {width}",
        relations,
        2.5,
        {"pairs": 10**7, "width": 16},
        {"pairs": 10**4, "width": 4},
    ),
    "logistic": ("logistic Hessian, n = {n:,}", logistic, 1.9, {"n": 4000}, {"n": 40}),
    "matfact": (
        "Hessian of ‖T − UVᵀ‖² as a matrix, n = {n:,}, k = {k}",
        matfact,
        100.0,
        {"n": 1000, "k": 5},
        {"n": 60, "k": 5},
    ),
    "product": (
        "Hessian of ‖T − UVᵀ‖² times vector, n = {n:,}, k = {k}",
        product,
        0.0,
        {"n": 4000, "k": 5},
        {"n": 60, "k": 5},
    ),
} | gpu_models.ROWS


def bound(f, there):
    """A JAX function with its arguments, compiled at its first call."""
    import jax
    import jax.numpy as jnp

    f, more = f if isinstance(f, tuple) else (f, ())
    jitted, further = jax.jit(f), [jnp.asarray(a) for a in more]
    return lambda: jitted(*there, *further)


def first(name, small, who):
    """Seconds of a first call in this process; tracing and compiling included, starting JAX not."""
    import jax
    import jax.numpy as jnp

    _, make, _, full, little = ROWS[name]
    given, ours, theirs, _, _ = make(**(little if small else full))
    there = [jnp.asarray(a, jnp.float32) for a in given]
    jax.block_until_ready(jax.jit(lambda a: a + 1)(there[-1]))
    start = time.perf_counter()
    work = bound(theirs, there) if who == "JAX" else lambda: rz.compile(ours, backend="jax")(*there)
    jax.block_until_ready(work())
    print(time.perf_counter() - start)


def first_calls(name, given):
    """First calls of riesz and JAX, each in a process of its own, in turns."""
    flags = ["--cpu"] * given.cpu + ["--small"] * given.small
    taken = {}
    for _ in range(1 if given.small else 2):
        for who in ("riesz", "JAX"):
            command = [sys.executable, __file__, name, "--first-of", who, *flags]
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
            taken.setdefault(who, []).append(float(found))
    mine, theirs = (min(taken[who]) for who in ("riesz", "JAX"))
    print(f"{name}: first call riesz {mine:.2f} s, JAX {theirs:.2f} s, JAX ÷ riesz {theirs / mine:.2f}", flush=True)


def contest(name, small, device, calls, rounds):
    """One line."""
    import jax
    import jax.numpy as jnp

    title, make, aim, full, little = ROWS[name]
    size = little if small else full
    given, ours, theirs, hand, other = make(**size)
    there = [jnp.asarray(a, jnp.float32) for a in given]

    compiled = rz.compile(ours, backend="jax")
    contestants = {"riesz": lambda: compiled(*there), "JAX": bound(theirs, there)}
    if hand is not None:
        contestants["hand"] = bound(hand, there)
    wanted = [np.asarray(a) for a in jax.tree.leaves(contestants["JAX" if hand is None else "hand"]())]
    for who, work in contestants.items():
        start = time.perf_counter()
        found = [np.asarray(a) for a in jax.tree.leaves(work())]
        print(f"  {who}: first call {time.perf_counter() - start:.2f} s", flush=True)
        for a, b in zip(found, wanted, strict=True):
            gap = np.abs(a - b).max() / np.abs(b).max()
            assert gap < 2e-3, f"{title.format(**size)}: {who} differs by {gap:.2g}"
    first = jax.tree.leaves(compiled(*there))
    same = all(bool((a == b).all()) for a, b in zip(first, jax.tree.leaves(compiled(*there)), strict=True))
    times = timed(contestants, jax.block_until_ready, calls, rounds)
    if other is not None and (t := torch_on(device)):
        args = [t.from_numpy(np.asarray(a, np.float32)).to(device) for a in given]
        if name == "gmm":
            args = [*[a.requires_grad_() for a in args[:3]], args[3]]
        work = other(t, *args) if name == "relations" else lambda: other(t, *args)
        try:
            times |= timed({"torch": work}, lambda _: t.cuda.synchronize() if device == "cuda" else None, calls, rounds)
        except t.OutOfMemoryError:
            print("  torch: out of memory", flush=True)
    mine = times["riesz"]
    cells = "   ".join(f"{who} {1e3 * seconds:9.3f} ms ({seconds / mine:7.2f}×)" for who, seconds in times.items())
    met = "met" if times["JAX"] / mine >= aim else "not met"
    print(
        f"{title.format(**size)}\n  {cells}\n  JAX ÷ riesz {times['JAX'] / mine:.2f}, aim ≥ {aim:g}: {met}; same bits twice: {same}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--first", action="store_true", help="first calls, each in a process of its own")
    parser.add_argument("--first-of", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    if given.first_of:
        return first(given.rows[0], given.small, given.first_of)
    print(jax.devices()[0], "float32")
    for name in given.rows or ROWS:
        try:
            if given.first:
                first_calls(name, given)
                continue
            contest(
                name, given.small, "cpu" if given.cpu else "cuda", 3 if given.small else 10, 3 if given.small else 7
            )
        except Exception as e:  # the other rows still count
            print(f"{name}: {type(e).__name__}: {e}", flush=True)


if __name__ == "__main__":
    main()
