"""Where rows come from: Parquet and CSV files, tables of DuckDB, Arrow, Polars, pandas and NumPy, all read by DuckDB.

Names of columns and of files are quoted, never pasted. Text columns, and those asked for, are read as codes: the places
of their values among the distinct ones.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RelationError

BATCH = 1 << 20
"""Rows that are read at a time."""

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
_REAL = ("FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
_READERS = {".parquet": "read_parquet", ".pq": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv"}
_count = itertools.count()


def quoted(name: str) -> str:
    """A name as SQL reads it."""
    return '"' + str(name).replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL reads it."""
    return "'" + str(text).replace("'", "''") + "'"


class Source:
    """Rows of a table: what stands behind FROM, and the columns."""

    def __init__(self, given: Any, connection: Any, memory: str | None, threads: int | None) -> None:
        try:
            import duckdb
            import pyarrow  # noqa: F401
        except ImportError as problem:
            raise RelationError(
                f"tables larger than memory are read by DuckDB and Arrow, and {problem.name} is not installed: "
                "pip install 'riesz[tables]'; columns that fit into memory go to rz.relations.group_by as they are"
            ) from None
        self.connection = duckdb.connect() if connection is None else connection
        for setting, value in (("memory_limit", memory), ("threads", threads)):
            if value is not None:
                self.connection.execute(f"SET {setting} = {literal(value) if isinstance(value, str) else int(value)}")
        self.keep: list[Any] = []
        self._paths: list[str] = []
        self.rows_of = self._opened(given)
        self._described()

    @classmethod
    def of_sql(cls, connection: Any, rows_of: str, keep: Sequence[Any]) -> Source:
        """Rows that SQL gives."""
        found = cls.__new__(cls)
        found.connection, found.rows_of, found.keep = connection, rows_of, list(keep)
        found._paths = []
        found._described()
        return found

    def meets(self, other: Source) -> None:
        """Make the rows of another source known to this connection."""
        if self.connection is other.connection or (not other.keep and other.rows_of.startswith("read_")):
            return  # files are the same in every connection
        if len(other.keep) != 1 or hasattr(other.keep[0], "sql_query"):
            raise RelationError("tables of two connections cannot be joined: make both with the same connection=")
        self.connection.register(other.rows_of, other.keep[0])

    def _described(self) -> None:
        rows = self.connection.sql(f"DESCRIBE SELECT * FROM {self.rows_of}").fetchall()
        self.kinds: dict[str, str] = {row[0]: row[1].partition("(")[0] for row in rows}
        self.count = int(self.one(f"SELECT count(*) FROM {self.rows_of}"))
        self.keys: dict[str, Any] = {}  # distinct values of the columns that are read as codes
        self._tables: dict[str, str] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._complete: set[str] = set()  # columns that have a number in each row

    def _opened(self, given: Any) -> str:
        """What stands behind FROM, for whatever was given."""
        paths = [given] if isinstance(given, (str, os.PathLike)) else given
        if isinstance(paths, (list, tuple)) and paths and all([isinstance(p, (str, os.PathLike)) for p in paths]):
            return self._files([os.fspath(p) for p in paths])
        if hasattr(given, "sql_query"):  # a relation of DuckDB, which knows its connection
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {(name := self.name())} AS {given.sql_query()}")
            self.keep.append(given)
            return name
        if isinstance(given, Mapping):
            import pyarrow

            given = pyarrow.table({k: np.ascontiguousarray(v) for k, v in given.items()})
        elif hasattr(given, "collect") and hasattr(given, "lazy"):  # Polars' lazy frames
            given = given.collect()
        name = self.name()
        try:
            self.connection.register(name, given)
        except Exception:
            raise RelationError(
                f"rows come from a path of Parquet or CSV files, a relation of DuckDB, a table or dataset of Arrow, a "
                f"frame of Polars or pandas, or a dict of arrays; got {type(given).__name__}"
            ) from None
        self.keep.append(given)
        return name

    def _files(self, paths: list[str]) -> str:
        readers = {_READERS.get(Path(p).suffix.lower()) for p in paths}
        if len(readers) != 1 or None in readers:
            raise RelationError(
                f"files of one kind are read, {', '.join(_READERS)}; got {', '.join(map(repr, paths[:3]))}: "
                'for others pass what DuckDB reads, as connection.sql("SELECT …") with connection=connection'
            )
        missing = [p for p in paths if not any(c in p for c in "*?[") and not Path(p).exists()]
        if missing:
            raise RelationError(f"there is no file {missing[0]!r}")
        reader = readers.pop()
        self._paths = paths if reader == "read_parquet" else []
        return f"{reader}([{', '.join(map(literal, paths))}])"

    def parquet_files(self) -> list[str]:
        """The files, where rows are those of Parquet files."""
        found = [self.connection.sql(f"SELECT file FROM glob({literal(p)})").fetchall() for p in self._paths]
        return [file for rows in found for (file,) in rows]

    # -- asking --------------------------------------------------------------------------------------------

    def name(self) -> str:
        """A name that nobody has."""
        return f"riesz_{next(_count)}"

    def one(self, sql: str) -> Any:
        """The only number of an answer."""
        return self.connection.sql(sql).fetchall()[0][0]

    def kind(self, column: str) -> str:
        """Whether a column is "whole", "real" or "text"; an error that names the columns where there is none."""
        if column not in self.kinds:
            raise RelationError(f"there is no column {column!r}; there are {', '.join(map(repr, self.kinds))}")
        return kind_of(self.kinds[column])

    def coded(self, column: str) -> None:
        """Read a column as the places of its values among the distinct ones."""
        self.kind(column)
        if column not in self.keys:
            name, table = quoted(column), self.name()
            some = f"FROM {self.rows_of} WHERE {name} IS NOT NULL"
            ranked = f"SELECT {name} AS key, row_number() OVER (ORDER BY {name}) - 1 AS i"
            self.connection.execute(f"CREATE TEMP TABLE {table} AS {ranked} FROM (SELECT DISTINCT {name} {some})")
            found = self.connection.sql(f"SELECT key FROM {table} ORDER BY i").fetchnumpy()["key"]
            self._tables[column], self.keys[column] = table, np.asarray(found)

    def rows(self, columns: Sequence[str]) -> str:
        """A query of some columns, codes for those that have them."""
        shown, joins = list[str](), ""
        for k, column in enumerate(columns):
            name = quoted(column)
            if column in self.keys:
                joins += f" LEFT JOIN {self._tables[column]} AS k{k} ON k{k}.key = t.{name}"
                shown.append(f"k{k}.i AS {name}")
            else:
                shown.append(f"t.{name}")
        return f"SELECT {', '.join(shown) or '1'} FROM {self.rows_of} AS t{joins}"

    def name_for(self, columns: Sequence[str]) -> str:
        """What stands behind FROM for some columns: the table itself, or a query that gives their codes."""
        return f"({self.rows(columns)})" if any([c in self.keys for c in columns]) else self.rows_of

    def batches(self, columns: Sequence[str], size: int = BATCH) -> Iterator[list[Any]]:
        """The columns as arrays, so many rows at a time, in the order of the table."""
        found = self.connection.sql(self.rows(columns))
        reader = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
        for batch in reader(size):
            if batch.num_rows:
                yield [self._array(batch.column(i), column) for i, column in enumerate(columns)]

    def _array(self, values: Any, column: str) -> Any:
        whole = column in self.keys or self.kind(column) == "whole"
        if values.null_count and whole:
            raise RelationError(
                f"{values.null_count:,} rows have no {column!r} (NULL), and belong nowhere: leave them out, "
                f'rz.relations.table(connection.sql("SELECT … WHERE {column} IS NOT NULL"), connection=connection)'
            )
        if not whole and str(values.type).startswith("decimal"):
            values = values.cast("float64")
        return np.asarray(values.to_numpy(zero_copy_only=False), np.intp if whole else float)

    def complete(self, columns: Sequence[str]) -> None:
        """An error where a row has no number in one of these columns: what SQL makes of NULL and NaN is not what NumPy
        does (it leaves NULL out of sums, and NaN is the largest number). Each column is looked through once."""
        asked, shown = [c for c in columns if c not in self._complete], list[str]()
        for column in asked:
            name = quoted(column)
            real = column not in self.keys and self.kind(column) == "real"
            gap = f"{name} IS NULL" + (f" OR isnan(CAST({name} AS DOUBLE))" if real else "")
            shown.append(f"count(*) FILTER (WHERE {gap})")
        if not asked:
            return
        found = self.connection.sql(f"SELECT {', '.join(shown)} FROM {self.rows_of}").fetchall()[0]
        for column, lost in zip(asked, found, strict=True):
            if lost:
                raise RelationError(
                    f"{lost:,} rows have no number in {column!r} (NULL or NaN), of which SQL makes something else than "
                    "NumPy: go through the rows with engine='stream', or leave them out, "
                    f'rz.relations.table(connection.sql("SELECT … WHERE {column} IS NOT NULL"), connection=connection)'
                )
        self._complete.update(asked)

    def largest(self, column: str) -> int:
        """The largest number of a column of whole numbers, or of codes; −1 where there are no rows."""
        low, high = self.ends(column)
        if low < 0:
            raise RelationError(
                f"groups are numbered from 0; {column!r} has {low}: read it as codes, .coded({column!r})"
            )
        return high

    def ends(self, column: str) -> tuple[int, int]:
        """The smallest and the largest number of a column of whole numbers, or of codes."""
        if column in self.keys:
            return 0, len(self.keys[column]) - 1
        if column not in self._ends:
            name = quoted(column)
            found = self.connection.sql(f"SELECT min({name}), max({name}) FROM {self.rows_of}").fetchall()[0]
            self._ends[column] = (0, -1) if found[0] is None else (int(found[0]), int(found[1]))
        return self._ends[column]


def kind_of(kind: str) -> str:
    """What numbers a type of SQL has."""
    return "whole" if kind in _WHOLE else "real" if kind in _REAL else "text"
