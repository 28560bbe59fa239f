"""Placed functions in several processes of this machine, and what happens when one of them fails."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import riesz as rz
from riesz.errors import SpaceError

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

import several_processes

pytest.importorskip("jax")
pyarrow = pytest.importorskip("pyarrow")
SUPPORT = Path(__file__).parent.parent / "support"


def data(folder):
    """Files of a fit, and its solution by NumPy."""
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    n, d = 200, 6
    X = rng.normal(size=(n, d))
    y = np.tanh(X @ np.linspace(-0.5, 0.8, d)) + 0.01 * rng.normal(size=n)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    columns = {"y": y} | {f"x{k}": X[:, k] for k in range(d)}
    parquet.write_table(pyarrow.table(columns), folder / "rows.parquet", row_group_size=33)
    w = np.zeros(d)
    for _ in range(8):
        t = np.tanh(X @ w)
        w -= np.linalg.lstsq((1 - t**2)[:, None] * X, t - y)[0]
    return w


@pytest.mark.parametrize(("count", "slurm"), [(2, False), (4, True)])
def test_four_devices_in_processes_compute_what_one_does(tmp_path, count, slurm):
    w = data(tmp_path)
    script = SUPPORT / "in_several_processes.py"
    ends = several_processes.run(script, [str(tmp_path), str(count)], count, 4 // count, tmp_path, slurm)
    assert [e.code for e in ends] == [0] * count, "\n".join(
        [f"-- process {k}: {e}"[-2500:] for k, e in enumerate(ends)]
    )
    assert all(["all of it holds" in e.said for e in ends])
    assert f"200 rows on 4 devices in {count} processes" in ends[0].said
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), w, rtol=1e-9)


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_process_that_fails_ends_the_others(tmp_path, how):
    first, last = several_processes.run(SUPPORT / "failing_process.py", [how], 2, 1, tmp_path)
    assert first.code not in (0, None) and last.code not in (0, None), (first, last)
    if how == "raise":
        assert "riesz: process 1 of 2 ends: ValueError: row 17 is not a number. The others end too" in last.said
        assert "riesz: process 0 of 2 ends" in first.said and "another process ended first" in first.said, first.said
    else:
        assert re.search(r"another task died(.|\n)*stopped sending heartbeats\):\s*1", first.said), first.said


def test_a_process_that_the_others_do_not_join_ends(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text("import os, riesz as rz\nrz.distributed(os.environ['JAX_COORDINATOR_ADDRESS'], 2, 0, wait=3.0)\n")
    (found,) = several_processes.run(script, [], 1, 1, tmp_path)
    assert found.code == 1 and "ends: the others were not there after 3 seconds" in found.said, found


def test_what_cannot_be_is_refused():
    with pytest.raises(SpaceError, match="address, count and rank belong together"):
        rz.distributed("127.0.0.1:1234", 2)
    with pytest.raises(SpaceError, match="rank is one of 0 to count − 1; got rank=2, count=2"):
        rz.distributed("127.0.0.1:1234", 2, 2)
