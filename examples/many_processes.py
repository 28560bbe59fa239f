"""A nonlinear fit whose rows are on many devices in many processes: python many_processes.py FOLDER.

The same file runs alone, in processes started by hand, under Slurm and on a Cloud TPU. FOLDER has the rows, `X.npy` and
the column y of `rows.parquet`; each process reads its part. The fit is kept in `fit.rz` after each step, so it goes on
where it was stopped; `w.npy` is the result.
"""

import sys
from pathlib import Path

import jax
import numpy as np

import riesz as rz

me = rz.distributed()  # first of all: nothing of JAX may run before
jax.config.update("jax_enable_x64", True)
folder = Path(sys.argv[1])
n, d = np.load(folder / "X.npy", mmap_mode="r").shape
mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def residual(w, X, y):
    return np.tanh(X @ w) - y


like = [np.broadcast_to(0.0, shape) for shape in ((d,), (n, d), (n,))]  # shapes and types: no memory
place = {rz.seg(n): "data"}
r = rz.compile(residual, *like, mesh=mesh, place=place)
J = rz.compile(rz.jacobian(residual), *like, mesh=mesh, place=place)
w, X, y = r.load(np.zeros(d), folder / "X.npy", (folder / "rows.parquet", "y"))


def step(k, w):
    """A step of Gauss–Newton."""
    at = J(w, X, y)
    return w - at.gram().solve(at.T(r(w, X, y)))


w = rz.resumed_loop(6, step, w, checkpoint=folder / "fit.rz")
if me.rank == 0:
    np.save(folder / "w.npy", np.asarray(w))
    print(f"{n:,} rows on {len(jax.devices())} devices in {me.count} processes: w = {np.asarray(w).round(6)}")
