"""Relations from columns of tables: rows with equal keys grouped or joined, as in SQL. NumPy, pandas, Polars, Arrow and
DuckDB columns and tables, and lists."""

# pyright: basic, reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import RelationError
from ..runtime import later
from .base import Relation, freeze, seal
from .index_sets import Array, Seg
from .keys import Coded, coded, combined
from .kinds import Function, Gather, Pairs, ones


def _columns(keys: Any) -> tuple[list[Coded], bool]:
    """The columns of a key as codes, and whether there may be several: a tuple or a table was given."""
    given = keys if isinstance(keys, tuple) else columns_of(keys)
    found = [coded(k) for k in ((keys,) if given is None else given)]
    lengths = {len(c.codes) for c in found}
    if not found:
        raise RelationError("a key needs at least one column")
    if len(lengths) != 1:
        raise RelationError(f"the columns of a key have one length; got {sorted(lengths)}")
    return found, given is not None


def columns_of(table: Any) -> tuple[Any, ...] | None:
    """The columns of a table; None for a column."""
    if hasattr(table, "fetchnumpy"):  # DuckDB: a relation of one column is that column
        return tuple(table.fetchnumpy().values()) if len(table.columns) > 1 else None
    if hasattr(table, "get_columns"):  # Polars
        return tuple(table.get_columns())
    if hasattr(table, "iloc") and getattr(table, "ndim", 1) == 2:  # pandas
        return tuple([table.iloc[:, i] for i in range(table.shape[1])])
    columns = getattr(table, "columns", None)
    return tuple(columns) if hasattr(table, "column_names") and columns is not None else None  # Arrow


class Grouping(NamedTuple):
    """What `group_by` gives: the relation from rows to groups, and the key of each group. Its methods reduce a column,
    of numbers or of numbers that are differentiated.

    >>> import numpy as np, riesz as rz
    >>> g = rz.relations.group_by(["b", "a", "b"])
    >>> g.max(np.array([1.0, 2.0, 3.0])), rz.grad(lambda v: np.sum(g.mean(v) ** 2))(np.array([1.0, 2.0, 3.0]))
    (array([2., 3.]), array([2., 4., 2.]))
    """

    relation: Relation
    keys: Any

    def sum(self, values: Any) -> Any:
        """Σ of each group."""
        return later.red(self.relation)(values)

    def mean(self, values: Any) -> Any:
        """The mean of each group."""
        return later.red(self.relation, "mean")(values)

    def max(self, values: Any) -> Any:
        """The largest of each group; rows that attain it share its derivative equally."""
        return later.red(self.relation, "max")(values)

    def min(self, values: Any) -> Any:
        """The smallest of each group."""
        return later.red(self.relation, "min")(values)

    def prod(self, values: Any) -> Any:
        """The product of each group."""
        return later.red(self.relation, "prod")(values)

    def logsumexp(self, values: Any) -> Any:
        """ln Σ exp of each group."""
        return later.red(self.relation, "logsumexp")(values)


def group_by(keys: Any) -> Grouping:
    """Rows with equal keys: red of the relation is SELECT key, SUM(v) … GROUP BY key, with an adjoint. Keys are sorted;
    rows without one (NULL, None, nan, NaT) are one group and come last.

    A key is a column: an array, a list, or a column of pandas, Polars, Arrow or DuckDB. Several columns are given as a
    tuple or as a table, and their keys come back as a tuple. Objects that cannot be compared with each other come in
    the order in which they first appear.

    >>> R, keys = group_by(["b", "a", "b"])
    >>> keys.tolist(), R.in_degrees.tolist()
    (['a', 'b'], [1, 2])
    """
    columns, several = _columns(keys)
    if len(columns) == 1:
        codes, shown = columns[0].codes, [columns[0].keys]
    else:
        codes, rows = combined(columns)
        shown = [c.keys[c.codes[rows]] for c in columns]
    count = len(shown[0])
    some = bool(codes.min(initial=0) < 0)
    codes = np.where(codes < 0, count, codes) if some else codes
    shown = [_with_missing(s) for s in shown] if some else shown
    relation = Function(Seg(len(codes)), Seg(count + some), seal(codes))
    return Grouping(relation, tuple(shown) if several else shown[0])


def _with_missing(keys: Array) -> Array:
    """Keys followed by one that is missing: nan, NaT or None."""
    blank: Any = np.nan if keys.dtype.kind in "fc" else np.array("NaT", keys.dtype) if keys.dtype.kind in "mM" else None
    return np.append(keys.astype(object) if blank is None else keys, [blank])


def join(left: Any, right: Any) -> Relation:
    """Rows of two tables with equal keys: {(i, j) | left[i] = right[j]}; red carries a column of the one to the other,
    summed.

    A missing key equals nothing, as in SQL. Several columns are given as tuples or tables. Many equal keys cost no more
    than the rows.

    >>> join(["a", "b", "a"], ["a", "c"]).matrix().toarray().tolist()
    [[1, 0], [0, 0], [1, 0]]
    """
    (a, _), (b, _) = _columns(left), _columns(right)
    if len(a) != len(b):
        raise RelationError(f"a join compares as many columns on both sides; got {len(a)} and {len(b)}")
    both = [_together(x, y) for x, y in zip(a, b, strict=True)]
    codes = (both[0] if len(both) == 1 else combined(both)).codes
    n, count = len(a[0].codes), int(codes.max(initial=-1)) + 1
    return _matched(codes[:n], codes[n:], count)


def _together(a: Coded, b: Coded) -> Coded:
    """Codes of two columns, one after the other, from those of each."""
    keys = _joined(a.keys, b.keys)
    codes, found = coded(keys)
    places = [np.append(part, -1) for part in np.split(codes, [len(a.keys)])]
    return Coded(np.concatenate([p[c.codes] for p, c in zip(places, (a, b), strict=True)]), found)


def _joined(a: Array, b: Array) -> Array:
    numbers = [x.dtype.kind in "biufc" for x in (a, b)]
    if len(a) and len(b) and numbers[0] != numbers[1]:
        raise RelationError(f"a join compares keys of one kind; got {a.dtype} and {b.dtype}")
    kind = np.result_type(a, b) if all(numbers) else None
    whole = [x for x in (a, b) if x.dtype.kind in "iu"]
    exact = kind is None or all([np.array_equal(x.astype(kind).astype(x.dtype), x) for x in whole])
    return np.concatenate([a, b]) if exact else np.concatenate([a.astype(object), b.astype(object)])


def _matched(left: Array, right: Array, count: int) -> Relation:
    """The pairs with equal codes."""
    n, m = Seg(len(left)), Seg(len(right))
    for here, there, turned in ((left, right, False), (right, left, True)):
        present = np.flatnonzero(there >= 0)
        place = np.full(count + 1, -1)
        place[there[present]] = present
        if len(present) > np.count_nonzero(place >= 0):
            continue  # a key comes up twice there
        to, sets = place[here], (m, n) if turned else (n, m)
        rows = np.flatnonzero(to >= 0)
        if len(rows) == len(here):
            found: Relation = Function(*sets, seal(to))
        else:
            found = Pairs(*sets, *[freeze(x) for x in (rows, to[rows], ones(len(rows)))])
        return found.converse if turned else found
    middle = Seg(count + 2)  # what is missing here is not what is missing there
    to = Function(n, middle, seal(np.where(left < 0, count, left)))
    return to.then(Gather(middle, m, seal(np.where(right < 0, count + 1, right))))


def table(rows: Any, *, connection: Any = None, memory: str | None = None, threads: int | None = None) -> Any:
    """Rows of a table that need not fit into memory: paths of Parquet or CSV files, a relation of DuckDB (with its
    `connection`), a table or dataset of Arrow, a frame of Polars or pandas, or a dict of arrays. `memory` and `threads`
    are those of DuckDB, `memory="1GB"`. Needs `pip install 'riesz[tables]'`.

    >>> import numpy as np, riesz as rz
    >>> sales = rz.relations.table({"shop": ["b", "a", "b"], "product": [0, 1, 1], "units": [3.0, 1.0, 2.0]})
    >>> revenue = sales.query(lambda row, price: row.sum(row.units * price[row.product], by="shop"), np.ones(2))
    >>> revenue(np.array([10.0, 5.0])), sales.keys("shop").tolist()
    (array([ 5., 40.]), ['a', 'b'])
    >>> rz.grad(lambda price: np.sum(revenue(price) ** 2))(np.array([10.0, 5.0]))
    array([240., 170.])
    """
    return later.RowTable(later.Source(rows, connection, memory, threads))
