"""Placed functions in several processes of this machine, and what happens when one of them fails."""

from __future__ import annotations

import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import riesz as rz
from riesz.errors import SpaceError, VectorError

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
    for _ in range(6):
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


def test_what_cannot_be_is_refused(monkeypatch):
    with pytest.raises(SpaceError, match="address, count and rank belong together"):
        rz.distributed("127.0.0.1:1234", 2)
    with pytest.raises(SpaceError, match="rank is one of 0 to count − 1; got rank=2, count=2"):
        rz.distributed("127.0.0.1:1234", 2, 2)
    monkeypatch.setenv("JAX_NUM_PROCESSES", "2")
    with pytest.raises(SpaceError, match="JAX_PROCESS_ID belong together; there is JAX_NUM_PROCESSES only"):
        rz.distributed()


def test_maps_at_arrays_that_are_shapes_only_take_no_memory():
    n, d = 2_000_000, 4
    J = rz.jacobian(lambda w, X: np.tanh(X @ w))
    tracemalloc.start()
    L = J(np.ones(d), np.broadcast_to(0.5, (n, d)))
    L._instance()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4 * n, most  # half of one column
    np.testing.assert_allclose(L(np.arange(4.0))[::1000], 3.0 * (1 - np.tanh(2.0) ** 2))


def test_parts_of_parquet_files_read_their_row_groups_only(tmp_path, monkeypatch):
    from pyarrow import parquet

    from riesz.backends.devices.loading_parts import _columns

    a, b = np.arange(50.0), np.arange(50, dtype=np.float32) ** 2
    for k, rows in enumerate((slice(0, 30), slice(30, 50))):
        table = pyarrow.table({"a": a[rows], "b": b[rows], "word": ["x"] * len(a[rows])})
        parquet.write_table(table, tmp_path / f"{k}.parquet", row_group_size=7)
    read, plain = [], parquet.ParquetFile.read_row_group
    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", lambda f, g, **k: (read.append(g), plain(f, g, **k))[1])
    files = sorted(tmp_path.glob("*.parquet"))
    _, shape, kind, part = _columns(files, ["b", "a"])
    assert shape == (50, 2) and kind == np.float64
    found = part((slice(26, 40), slice(0, 2)))
    np.testing.assert_array_equal(found, np.stack([b, a], 1)[26:40])
    assert read == [3, 4, 0, 1]  # rows 21 to 27, 28 and 29 of one file, 0 to 6, 7 to 13 of the other
    np.testing.assert_array_equal(part((slice(3, 4), slice(1, 2))), a[3:4, None])
    np.testing.assert_array_equal(_columns(files, "a")[3]((slice(10, 45),)), a[10:45])
    with pytest.raises(VectorError, match="has no column 'c': it has a, b, word"):
        _columns(files, "c")
    with pytest.raises(VectorError, match="numbers are due"):
        _columns(files, "word")
    parquet.write_table(pyarrow.table({"a": [1.0, None, 3.0]}), tmp_path / "gaps.parquet")
    with pytest.raises(VectorError, match=r"column 'a' of .* has missing values between rows 0 and 2"):
        _columns([tmp_path / "gaps.parquet"], "a")[3]((slice(0, 2),))
