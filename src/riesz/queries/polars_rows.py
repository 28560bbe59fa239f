"""Polars as an engine: its streaming engine runs the SQL of a pass.

Parquet files are read by Polars itself. Rows of other kinds (joins, windows, tables of databases, CSV files) come from
DuckDB, batch by batch.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import RelationError, TraceError
from .sources import BATCH, Source


def _polars() -> Any:
    try:
        import polars
        from polars.io.plugins import register_io_source  # noqa: F401
    except ImportError:
        raise RelationError(
            "engine='polars' takes Polars 1.23 or newer: pip install -U polars; engine='stream' and engine='duckdb' "
            "do without"
        ) from None
    return polars


def polars_rows(rows: Any) -> tuple[Any, str]:
    """The columns of a query as a lazy frame, and in words where they come from."""
    pl, source, columns = _polars(), rows.source, rows.columns
    files = source.parquet_files()
    if files and not any(["=" in f for f in files]):  # not folders that are columns
        frame = pl.scan_parquet(files, glob=False)
        kinds = frame.collect_schema()
        if all([c in kinds and (c not in source.keys or kinds[c] == pl.String) for c in columns]):
            return _scanned(frame, source, columns), f"polars.scan_parquet of {', '.join(map(repr, files))}"
    return _streamed(source, columns), f"batches of DuckDB, {source.rows(columns)}"


def _kind(source: Source, column: str) -> Any:
    pl = _polars()
    return pl.Int64 if column in source.keys or source.kind(column) == "whole" else pl.Float64


def _scanned(frame: Any, source: Source, columns: list[str]) -> Any:
    """Columns of Parquet files; text as codes."""
    pl = _polars()
    shown = frame.select([pl.col(c) if c in source.keys else pl.col(c).cast(_kind(source, c)) for c in columns])
    for c in columns:
        if c in source.keys:
            keys = pl.Series(list(source.keys[c]), dtype=pl.String)
            shown = shown.with_columns(pl.col(c).replace_strict(keys, np.arange(len(keys)), return_dtype=pl.Int64))
    return shown


def _streamed(source: Source, columns: list[str]) -> Any:
    """Columns that DuckDB reads, as a lazy frame."""
    from polars.io.plugins import register_io_source

    pl = _polars()
    schema = {c: _kind(source, c) for c in columns}

    def batches(wanted: Any, predicate: Any, n: int | None, size: int | None) -> Iterator[Any]:
        for arrays in source.batches(columns, size or BATCH):
            frame = pl.DataFrame(dict(zip(columns, arrays, strict=True)), schema=schema)
            frame = frame if predicate is None else frame.filter(predicate)
            yield frame if wanted is None else frame.select(wanted)

    return register_io_source(batches, schema=schema)


def polars_answer(rows: Any, made: Any, arrays: dict[str, Any], known: dict[int, Any]) -> dict[str, Any]:
    """What Polars answers, column by column."""
    pl = _polars()
    frames = {name: pl.LazyFrame({"i": np.arange(len(v), dtype=np.int64), "v": v}) for name, v in arrays.items()}
    e = pl.exceptions
    try:
        asked = pl.SQLContext({**frames, "rows": polars_rows(rows)[0]}).execute(made.sql)
        found = asked.collect(engine="streaming")
    except (e.SQLInterfaceError, e.SQLSyntaxError, e.SchemaError, e.InvalidOperationError) as problem:
        raise TraceError(
            f"Polars does not read this query ({str(problem).splitlines()[0]}): go through the rows with "
            f"engine='stream' or engine='duckdb'\n{made.sql}"
        ) from None
    return {name: found[name].fill_null(0).to_numpy() for name in found.columns}
