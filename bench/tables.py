"""Sums along the rows of a Parquet file that does not fit into the memory allowed: riesz by batches and by SQL of
DuckDB and Polars, against the same query as one writes it for DuckDB. In one run; results compared.

    python bench/tables.py [ROWS]       100,000,000 rows unless said otherwise; the file is made once, in bench/.data
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import riesz as rz

NODES = 1_000_000
MEMORY = "500MB"


def made(rows: int) -> Path:
    """A random graph with weights."""
    path = Path(__file__).parent / ".data" / f"edges_{rows}.parquet"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        rng, part = np.random.default_rng(0), path.with_suffix(".part")
        schema = pa.schema([("source", pa.int32()), ("target", pa.int32()), ("weight", pa.float64())])
        with pq.ParquetWriter(part, schema) as file:
            for start in range(0, rows, 1 << 20):
                n = min(1 << 20, rows - start)
                ends = [rng.integers(0, NODES, n, dtype=np.int32) for _ in range(2)]
                file.write_table(pa.table([*ends, rng.random(n)], schema=schema))
        part.rename(path)
    return path


def memory() -> int:
    """The most this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def timed(words: str, run: Callable[[], Any]) -> Any:
    """The result of a run, whose time and memory are printed."""
    start = time.perf_counter()
    found = run()
    print(f"{words:28} {time.perf_counter() - start:8.2f} s   {memory():6,} MB", flush=True)
    return found


def main(rows: int) -> None:
    path, rng = made(rows), np.random.default_rng(1)
    v, w = rng.random(NODES), rng.random(NODES)
    table = rz.relations.table(path, memory=MEMORY)
    print(f"{table}; {path.stat().st_size >> 20:,} MB on disk, DuckDB's memory {MEMORY}")
    R, S, P = (
        table.relation("source", "target", sizes=(NODES, NODES), weight="weight", engine=engine)
        for engine in ("stream", "duckdb", "polars")
    )
    y = timed("riesz, batches, forward", lambda: R(v))
    x = timed("riesz, batches, adjoint", lambda: R.adjoint(w))
    np.testing.assert_allclose(y @ w, x @ v, rtol=1e-12)
    np.testing.assert_allclose(timed("riesz, SQL, forward", lambda: S(v)), y, rtol=1e-9)
    np.testing.assert_allclose(timed("riesz, SQL, adjoint", lambda: S.adjoint(w)), x, rtol=1e-9)
    np.testing.assert_allclose(timed("riesz, Polars, forward", lambda: P(v)), y, rtol=1e-9)
    np.testing.assert_allclose(timed("riesz, Polars, adjoint", lambda: P.adjoint(w)), x, rtol=1e-9)

    import duckdb

    con = duckdb.connect()
    con.execute(f"SET memory_limit = '{MEMORY}'")
    con.register("v", pa.table({"i": np.arange(NODES), "x": v}))
    sql = f"SELECT target, sum(weight * x) AS y FROM read_parquet('{path}') JOIN v ON source = i GROUP BY target"
    found = timed("DuckDB, as one writes it", lambda: con.execute(sql).fetchnumpy())
    hand = np.zeros(NODES)
    hand[found["target"]] = found["y"]
    np.testing.assert_allclose(hand, y, rtol=1e-9)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8)
