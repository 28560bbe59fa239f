"""Run by tests/backends/test_many_processes.py in two processes, of which the last one fails in a loop of sums."""

import os
import signal
import sys
import time

import jax
import numpy as np

import riesz as rz

me = rz.distributed(silence=30.0)
mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
x = np.ones(8, np.float32)
g = rz.compile(lambda x: np.sum(x), x, mesh=mesh, place={0: "data"})
there = g.load(x)
for k in range(1_000_000):
    if me.rank == 1 and k == 5:
        if sys.argv[1] == "raise":
            raise ValueError("row 17 is not a number")
        os.kill(os.getpid(), signal.SIGKILL)
    if me.rank == 0 and k == 5 and sys.argv[1] == "kill":
        time.sleep(10_000)  # no sum tells that the other is gone
    assert float(g(*there)) == 8.0
