"""Relations from columns of tables: rows with equal keys grouped or joined, as in SQL. NumPy, pandas, Polars, Arrow and
DuckDB columns, and lists."""

# pyright: basic, reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import RelationError
from .base import Relation, freeze
from .index_sets import Array, Seg
from .kinds import Function, Gather


class Column(NamedTuple):
    """The values of a column, and which of them are missing (NULL, None, nan, NaT)."""

    values: Any
    missing: Any


def column(given: Any) -> Column:
    """A column as arrays.

    >>> column([1.0, float("nan")]).missing.tolist()
    [False, True]
    """
    if hasattr(given, "fetchnumpy"):  # DuckDB
        found = given.fetchnumpy()
        if len(found) != 1:
            got = f"got a table with {list(found)}"
            raise RelationError(f"a key is one column; {got}: choose one, or give a tuple of columns")
        given = next(iter(found.values()))
    null = getattr(given, "isna", None) or getattr(given, "is_null", None)
    values: Any = np.ma.asanyarray(np.asarray(given.to_numpy()) if hasattr(given, "to_numpy") else given)
    if values.ndim != 1:
        raise RelationError(f"a column has one axis; got an array of shape {values.shape}")
    missing, values = np.ma.getmaskarray(values), np.ma.getdata(values)
    if callable(null):
        missing = missing | np.asarray(cast(Any, null)(), bool)
    if values.dtype.kind == "O":
        missing = missing | np.equal(values, None).astype(bool)
    odd = np.flatnonzero(~missing)[_unequal(values[~missing])]
    return Column(values, missing | np.isin(np.arange(len(values)), odd))


def _unequal(values: Array) -> Array:
    """Which values do not equal themselves."""
    match values.dtype.kind:
        case "f" | "c":
            return np.isnan(values)
        case "m" | "M":
            return np.isnat(values)
        case "O":
            return np.not_equal(values, values).astype(bool)
        case _:
            return np.zeros(len(values), bool)


def _columns(keys: Any) -> list[Column]:
    found = [column(k) for k in cast("tuple[Any, ...]", keys)] if isinstance(keys, tuple) else [column(keys)]
    lengths = {len(c.values) for c in found}
    if not found:
        raise RelationError("a key needs at least one column")
    if len(lengths) != 1:
        raise RelationError(f"the columns of a key have one length; got {sorted(lengths)}")
    return found


def _codes(columns: list[Column]) -> tuple[Array, Array]:
    """A number for each row's key, in the order of keys, and which rows have one."""
    present = ~np.logical_or.reduce([c.missing for c in columns])
    flat = np.zeros(int(present.sum()), np.intp)
    for c in columns:
        distinct, part = np.unique(c.values[present], return_inverse=True)
        flat = np.unique(flat * max(len(distinct), 1) + part, return_inverse=True)[1]
    codes = np.full(len(present), -1, np.intp)
    codes[present] = flat
    return codes, present


class Grouping(NamedTuple):
    """What `group_by` gives: the relation from rows to groups, and the key of each group."""

    relation: Relation
    keys: Any


def group_by(keys: Any) -> Grouping:
    """Rows with equal keys: red of the relation is SELECT key, SUM(v) … GROUP BY key, with an adjoint. Keys are sorted;
    rows without one come last.

    Several columns are given as a tuple, and their keys come back as one.

    >>> R, keys = group_by(["b", "a", "b"])
    >>> keys.tolist(), R.in_degrees.tolist()
    (['a', 'b'], [1, 2])
    """
    columns = _columns(keys)
    codes, present = _codes(columns)
    first = np.unique(codes[present], return_index=True)[1]
    shown = [c.values[present][first] for c in columns]
    some = not present.all()
    shown = [_with_missing(s) for s in shown] if some else shown
    image = np.where(present, codes, len(first))
    relation = Function(Seg(len(codes)), Seg(len(first) + some), freeze(image))
    return Grouping(relation, tuple(shown) if isinstance(keys, tuple) else shown[0])


def _with_missing(keys: Array) -> Array:
    """Keys followed by one that is missing: nan, NaT or None."""
    blank: Any = np.nan if keys.dtype.kind in "fc" else np.array("NaT", keys.dtype) if keys.dtype.kind in "mM" else None
    return np.append(keys.astype(object) if blank is None else keys, [blank])


def join(left: Any, right: Any) -> Relation:
    """Rows of two tables with equal keys: {(i, j) | left[i] = right[j]}; red carries a column of the one to the other,
    summed.

    A missing key equals nothing, as in SQL. Several columns are given as tuples. Many equal keys cost no more than the
    rows.

    >>> join(["a", "b", "a"], ["a", "c"]).matrix().toarray().tolist()
    [[1, 0], [0, 0], [1, 0]]
    """
    a, b = _columns(left), _columns(right)
    if len(a) != len(b):
        raise RelationError(f"a join compares as many columns on both sides; got {len(a)} and {len(b)}")
    n = len(a[0].values)
    values = [_together(x.values, y.values) for x, y in zip(a, b, strict=True)]
    missing = [np.concatenate([x.missing, y.missing]) for x, y in zip(a, b, strict=True)]
    codes, present = _codes(list(map(Column, values, missing)))
    count = int(codes.max(initial=-1)) + 1
    nothing = np.where(np.arange(len(codes)) < n, count, count + 1)  # here it is not what is missing there
    image = np.where(present, codes, nothing)
    middle = Seg(count + (0 if present.all() else 2))
    to, fro = Function(Seg(n), middle, freeze(image[:n])), Gather(middle, Seg(len(codes) - n), freeze(image[n:]))
    return to.then(fro)


def _together(a: Array, b: Array) -> Array:
    numbers = [x.dtype.kind in "biufc" for x in (a, b)]
    if len(a) and len(b) and numbers[0] != numbers[1]:
        raise RelationError(f"a join compares keys of one kind; got {a.dtype} and {b.dtype}")
    kind = np.result_type(a, b) if all(numbers) else None
    whole = [x for x in (a, b) if x.dtype.kind in "iu"]
    exact = kind is None or all([np.array_equal(x.astype(kind).astype(x.dtype), x) for x in whole])
    return np.concatenate([a, b]) if exact else np.concatenate([a.astype(object), b.astype(object)])
