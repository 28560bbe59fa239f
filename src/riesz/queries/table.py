"""`rz.relations.table`: rows that need not fit into memory, and functions of arrays that go through them.

A query is a function f(row, *arrays) in NumPy: `row.units` is the number of each row, `price[row.product]` looks up an
array, and rows are summed by np.sum, np.mean or `row.sum(values, by="shop")`. It is traced once, as any function. Its
gradient goes through the rows as it does, the other way: what was looked up is summed, what was summed is looked up.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import RelationError
from ..ops.op import broadcast
from ..ops.opaque import Put
from ..runtime.displayed import Displayed
from ..tracing.traced import Traced, slot_of, trace_of
from .queries import Query
from .sources import Source, quoted


class RowTable(Displayed):
    """Rows and columns, made by `rz.relations.table`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return self._source.count

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._source.kinds)

    def __repr__(self) -> str:
        kinds = ", ".join([f"{name} {kind.lower()}" for name, kind in self._source.kinds.items()])
        return f"table of {self._source.count:,} rows: {kinds}"

    def coded(self, *columns: str) -> RowTable:
        """The same table, whose columns of these names are read as codes: the place of each value among the distinct
        ones, which are `keys(column)`. Text always is."""
        for column in columns:
            self._source.coded(column)
        return self

    def keys(self, column: str) -> Any:
        """The distinct values of a column, sorted; from now on it is read as codes."""
        self._source.coded(column)
        return self._source.keys[column]

    def join(self, other: RowTable, on: str | Sequence[str]) -> RowTable:
        """The pairs of rows that agree in some columns, as a table with the columns of both.

        >>> import riesz as rz
        >>> left = rz.relations.table({"k": [0, 1, 1], "x": [1.0, 2.0, 3.0]})
        >>> left.join(rz.relations.table({"k": [1, 0], "y": [5.0, 7.0]}), on="k")
        table of 3 rows: k bigint, x double, y double
        """
        names = [on] if isinstance(on, str) else list(on)
        mine, theirs = self._source, other._source
        for name in names:
            mine.kind(name)
            theirs.kind(name)
        twice = [c for c in theirs.kinds if c in mine.kinds and c not in names]
        if twice:
            raise RelationError(
                f"both tables have a column {twice[0]!r}: join on it too, on={[*names, twice[0]]!r}, or give it "
                f"another name, table(connection.sql('SELECT {twice[0]} AS other, …'), connection=connection)"
            )
        mine.meets(theirs)
        using = ", ".join(map(quoted, names))
        sql = f"(SELECT * FROM {mine.rows_of} AS a JOIN {theirs.rows_of} AS b USING ({using}))"
        return RowTable(Source.of_sql(mine.connection, sql, [*mine.keep, *theirs.keep]))

    def window(self, order: str, by: str | None = None, preceding: int = 1) -> RowTable:
        """The same rows, each of which knows those before it in the order of a column, among those that agree in the
        column `by`: in a query `row.before(k)` is the row k before, for k up to `preceding`, and
        `row.before(k).there` is 1 where there is one, else 0.

        >>> import numpy as np, riesz as rz
        >>> days = rz.relations.table({"day": [0, 1, 2], "x": [1.0, 10.0, 100.0]}).window("day")
        >>> moved = days.query(lambda row, w: row.sum(w[0] * row.x + w[1] * row.before(1).x, by="day"), np.ones(2))
        >>> moved(np.array([1.0, 2.0]))
        array([  1.,  12., 120.])
        """
        source = self._source
        source.kind(order)
        parts = f"PARTITION BY {quoted(by)} " if by is not None and source.kind(by) else ""
        shown, over = ["*"], f"OVER ({parts}ORDER BY {quoted(order)})"
        for k in range(1, preceding + 1):
            shown.append(f"lag(1.0, {k}, 0.0) {over} AS {quoted(before('there', k))}")
            for column in source.kinds:
                none = {"whole": ", 0", "real": ", 0", "text": ""}[source.kind(column)]
                shown.append(f"lag({quoted(column)}, {k}{none}) {over} AS {quoted(before(column, k))}")
        found = Source.of_sql(source.connection, f"(SELECT {', '.join(shown)} FROM {source.rows_of})", source.keep)
        return RowTable(found)

    def query(self, f: Callable[..., Any], *arrays: Any, engine: str = "stream") -> Query:
        """f(row, *arrays), a function of the arrays that goes through all rows; the arrays given are examples of their
        shapes. `engine`: "stream" reads batches of rows, "duckdb" runs SQL, "polars" runs SQL by Polars' streaming
        engine."""
        return Query(self._source, f, arrays, engine, lambda given, seen: TableRow(self._source, given, seen))

    def relation(
        self,
        source: str,
        target: str,
        sizes: tuple[int, int] | None = None,
        weight: str | None = None,
        engine: str = "stream",
    ) -> TableRelation:
        """The pairs (row.source, row.target) of all rows as a relation: `R(v)` is red_R v, `R.adjoint(w)` its adjoint,
        each pair times the number of the column `weight` where it is given. `sizes`: of the two index sets; the largest
        number and one where they are not given.

        >>> import numpy as np, riesz as rz
        >>> edges = rz.relations.table({"a": [0, 1, 2, 2], "b": [1, 1, 0, 1]})
        >>> R = edges.relation("a", "b", sizes=(3, 2))
        >>> R(np.array([1.0, 10.0, 100.0])), R.adjoint(np.array([1.0, 2.0]))
        (array([100., 111.]), array([2., 2., 3.]))
        """
        return TableRelation(self, source, target, sizes, weight, engine)


class TableRelation(Displayed):
    """red_R for a relation whose pairs are the rows of a table, made by `table(…).relation(…)`: a function of arrays
    (numbers for each source, with axes behind), which is differentiated like any other."""

    def __init__(
        self, table: RowTable, source: str, target: str, sizes: tuple[int, int] | None, weight: str | None, engine: str
    ) -> None:
        largest = table._source.largest
        self._table, self.columns, self._engine = table, (source, target), engine
        self.weight = weight
        self.shape: tuple[int, int] = (largest(source) + 1, largest(target) + 1) if sizes is None else sizes
        self._queries: dict[Any, Query] = {}

    @property
    def adjoint(self) -> TableRelation:
        """The same along the converse."""
        (source, target), (n, m) = self.columns, self.shape
        return TableRelation(self._table, target, source, (m, n), self.weight, self._engine)

    def query(self, *behind: int) -> Query:
        """What runs, for arrays with axes behind those of the sources."""
        if behind not in self._queries:
            source, target, weight = *self.columns, self.weight

            def red(row: Any, v: Any) -> Any:
                x = v[row[source]]
                if weight is not None:
                    x = x * np.reshape(row[weight], (-1, *(1,) * len(behind)))
                return row.sum(x, by=target, size=self.shape[1])

            self._queries[behind] = self._table.query(
                red, np.broadcast_to(0.0, (self.shape[0], *behind)), engine=self._engine
            )
        return self._queries[behind]

    def __call__(self, v: Any) -> Any:
        """red_R v."""
        shape = np.shape(v)
        if shape[:1] != self.shape[:1]:
            raise RelationError(f"this relation takes an array of {self.shape[0]:,} rows; got the shape {shape}")
        return self.query(*shape[1:])(v)

    def explain(self) -> str:
        """What runs, in both directions, with its SQL."""
        return self.query().explain()

    def __repr__(self) -> str:
        times = "" if self.weight is None else f", times {self.weight}"
        source, target = self.columns
        return f"red of {len(self._table):,} pairs ({source}, {target}) ⊆ {self.shape[0]} × {self.shape[1]}{times}"


def before(column: str, k: int) -> str:
    """The name of a column of the row k before."""
    return f"{column}, {k} before"


class TableRow:
    """The columns of a table while a query is traced: `row.units`, `row["units"]`."""

    def __init__(self, source: Source, given: dict[str, Any], seen: dict[str, None], back: int = 0) -> None:
        self._source, self._given, self._seen, self._back = source, given, seen, back

    def before(self, k: int) -> TableRow:
        """The row k before this one, of a table that has a `window`."""
        return TableRow(self._source, self._given, self._seen, self._back + k)

    def __getitem__(self, column: str) -> Any:
        if self._back:
            if column != "there":
                self._source.kind(column)
            column = before(column, self._back)
            if column not in self._given:
                raise RelationError(
                    f"rows know no row {self._back} before them: table.window(order, by, preceding={self._back})"
                )
        if self._source.kind(column) == "text":
            self._source.coded(column)
        self._seen[column] = None
        return self._given[column]

    def __getattr__(self, column: str) -> Any:
        if column.startswith("__"):
            raise AttributeError(column)
        return self[column]

    def sum(self, values: Any, by: str, size: int | None = None) -> Any:
        """The values of the rows, summed for each number (or code) of a column: SELECT sum(values) … GROUP BY column.
        `size`: of the result; the largest number and one where it is not given."""
        groups = self[by]
        if groups.dtype.kind == "f":
            raise RelationError(
                f"groups have whole numbers, and {by!r} holds fractions: read it as codes, table.coded({by!r})"
            )
        count = self._source.largest(by) + 1 if size is None else int(size)
        shape, home = np.shape(values), trace_of(values, groups)
        x, at = slot_of(home, values, np.dtype(float)), slot_of(home, groups, groups.dtype)
        if shape[:1] != groups.shape:  # the same for each row
            x = home.step(broadcast(shape, (*groups.shape, *shape)), (x,))
        return Traced(home, home.step(Put(0, 0, 1, count), (x, at)))
