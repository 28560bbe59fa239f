"""CUTEst problems in JAX (the package sif2jax) through rz.from_jax, compared with JAX.

    python bench/sif2jax_check.py --log sif2jax.jsonl [--most 1000] [--seconds 90] [name …]

Every problem with at most `--most` variables: objective, gradient, Hessian, constraints and their Jacobian, at the
problem's starting point and at a random point near it. Values agree to 1e-12, derivatives to 1e-10, relative to the
largest number of each row, where JAX is finite; no number that JAX has may be missing from a pattern. One line of JSON
for each problem; problems that are in the log are not run again. A process runs problems one after the other; one that
takes too long is ended and its problem noted.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import numpy as np

VALUES, DERIVATIVES = 1e-12, 1e-10


def worst(mine, theirs):
    """The largest difference, relative to the largest finite number of JAX's in the row (and 1); where JAX is finite."""
    mine, theirs = [np.atleast_1d(np.asarray(v, float)) for v in (mine, theirs)]
    if mine.shape != theirs.shape:
        return float("inf")
    finite = np.isfinite(theirs)
    if not finite.any():
        return 0.0
    size = np.max(np.where(finite, np.abs(theirs), 0.0), axis=-1, keepdims=True)
    off = np.where(finite, np.abs(mine - np.where(finite, theirs, 0.0)), 0.0) / np.maximum(size, 1.0)
    return float("inf") if np.isnan(off).any() else float(off.max())


def missed(S, dense):
    """Numbers of JAX's, beyond rounding, at places that a pattern does not have."""
    there = np.zeros(dense.shape, bool)
    rows, columns = S.tocoo().coords
    there[rows, columns] = True
    size = np.max(np.abs(np.where(np.isfinite(dense), dense, 0.0)), axis=-1, keepdims=True, initial=0.0)
    return int(np.sum(~there & np.isfinite(dense) & (np.abs(dense) > 1e-13 * np.maximum(size, 1e-300))))


def check(problem):
    """What there is to say of a problem."""
    import jax
    from jax.flatten_util import ravel_pytree

    import riesz as rz

    clock = time.perf_counter
    y0, unravel = ravel_pytree(problem.y0)
    y0 = np.asarray(y0, float)
    row = {"n": int(y0.size), "m": 0}
    args = problem.args

    def objective(y):
        return jax.numpy.asarray(problem.objective(unravel(y), args), float).reshape(())

    def constraint(y):
        return ravel_pytree(problem.constraint(unravel(y)))[0]

    rng = np.random.default_rng(0)
    points = [y0, y0 + 0.1 * rng.standard_normal(y0.shape) * np.maximum(np.abs(y0), 0.1)]

    def columns(f):
        """All derivatives at a direction each, in one small piece of code."""
        return jax.jit(lambda y: jax.lax.map(lambda v: jax.jvp(f, (y,), (v,))[1], np.eye(y0.size), batch_size=64))

    theirs = {"value": jax.jit(objective), "gradient": jax.jit(jax.grad(objective))}
    theirs["hessian"] = columns(jax.grad(objective))
    begin = clock()
    f = rz.from_jax(objective, y0)
    mine = {"value": f, "gradient": rz.grad(f), "hessian": rz.hessian(f)}
    if hasattr(problem, "constraint"):
        theirs |= {"constraint": jax.jit(constraint), "jacobian": columns(constraint)}
        c = rz.from_jax(constraint, y0)
        mine |= {"constraint": c, "jacobian": rz.jacobian(c)}
    taken = {"import": clock() - begin}
    for what, g in mine.items():
        begin = clock()
        found = [g(y) for y in points]
        if what in ("hessian", "jacobian"):
            found = [L.to_sparse() for L in found]
            row[f"nnz_{what}"] = int(found[0].nnz)
        taken[what] = clock() - begin
        begin = clock()
        due = [np.asarray(theirs[what](y)) for y in points]
        taken["jax"] = taken.get("jax", 0.0) + clock() - begin
        if what in ("hessian", "jacobian"):
            due = [d.T for d in due]
            row[f"missed_{what}"] = max([missed(S, d) for S, d in zip(found, due, strict=True)])
            found = [S.toarray() for S in found]
        if what == "constraint":
            row["m"] = int(due[0].size)
        row[what] = max([worst(a, b) for a, b in zip(found, due, strict=True)])
        row[f"finite_{what}"] = bool(all([np.isfinite(d).all() for d in due]))
    return row | {"seconds": {k: round(v, 3) for k, v in taken.items()}}


def bad(row):
    """Why a row is an exception; an empty text where it is none."""
    if "error" in row:
        return row["error"]
    said = [f"{k} differs by {row[k]:.1e}" for k in ("value", "constraint") if row.get(k, 0.0) > VALUES]
    said += [f"{k} differs by {row[k]:.1e}" for k in ("gradient", "hessian", "jacobian") if row.get(k, 0) > DERIVATIVES]
    said += [f"{row[k]} numbers missing in the {k[7:]}" for k in ("missed_hessian", "missed_jacobian") if row.get(k)]
    return ", ".join(said)


def work(names, log):
    """Check problems one after the other."""
    import jax

    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    import sif2jax

    by_name = {p.name: p for p in sif2jax.problems}
    for name in names:
        with open(log, "a") as out:
            out.write(json.dumps({"name": name, "begun": 1}) + "\n")
        try:
            row = check(by_name[name])
        except Exception as problem:
            row = {"error": f"{type(problem).__name__}: {problem}"[:600]}
        with open(log, "a") as out:
            out.write(json.dumps({"name": name, **row}) + "\n")
        jax.clear_caches()


def rows_of(log):
    """The last line of each problem in a log."""
    found = {}
    for line in Path(log).read_text().splitlines() if Path(log).exists() else []:
        row = json.loads(line)
        found[row["name"]] = row
    return found


def sizes(log):
    """The number of variables of every problem, counted once."""
    path = Path(log).with_suffix(".sizes.json")
    if not path.exists():
        import jax

        jax.config.update("jax_enable_x64", True)
        import sif2jax

        found = {}
        for p in sif2jax.problems:
            try:
                found[p.name] = int(sum([np.size(x) for x in jax.tree_util.tree_leaves(p.y0)]))
            except Exception as problem:
                found[p.name] = f"{type(problem).__name__}: {problem}"[:200]
        path.write_text(json.dumps(found))
    return json.loads(path.read_text())


def run(names, log, seconds):
    """Processes, each until it is done or takes too long."""
    while todo := [n for n in names if "begun" in rows_of(log).get(n, {"begun": 1})]:
        worker = subprocess.Popen([sys.executable, __file__, "--log", log, "--work", *todo])
        while worker.poll() is None:
            time.sleep(1.0)
            now = list(rows_of(log).values())
            last = now[-1] if now else {}
            if "begun" in last and time.time() - os.stat(log).st_mtime > seconds + (60 if len(now) == 1 else 0):
                worker.kill()
                worker.wait()
        begun = [n for n, r in rows_of(log).items() if "begun" in r and n in todo]
        if not begun and worker.returncode:
            raise SystemExit(f"a worker ended with {worker.returncode}")
        with open(log, "a") as out:
            for n in begun:
                said = f"not done in {seconds:g} s" if worker.returncode == -9 else f"ended with {worker.returncode}"
                out.write(json.dumps({"name": n, "error": said}) + "\n")


def main():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--log", default="sif2jax.jsonl")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--work", action="store_true")
    parser.add_argument("--part", default="0/1", help="k/n: every n-th problem from the k-th on")
    given = parser.parse_args()
    if given.work:
        work(given.names, given.log)
        return
    known = sizes(given.log)
    k, n = map(int, given.part.split("/"))
    names = [x for x, size in sorted(known.items(), key=lambda p: str(p[1]).zfill(9)) if isinstance(size, int)]
    names = given.names or [x for x in names if known[x] <= given.most][k::n]
    run(names, given.log, given.seconds)
    rows = [r for r in rows_of(given.log).values() if "begun" not in r]
    wrong = {r["name"]: said for r in rows if (said := bad(r))}
    print(f"{len(rows)} problems, {len(rows) - len(wrong)} agree")
    for name, said in sorted(wrong.items()):
        print(f"  {name}: {said}")


if __name__ == "__main__":
    main()
