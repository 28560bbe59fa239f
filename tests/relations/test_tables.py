"""Columns of tables: group_by and join mean what SQL means, from every library's columns, and their reductions have adjoints."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import riesz as rz
from riesz import RelationError, relations
from riesz.relations import Through

KEYS = ["b", "a", "b", "c", "a"]
VALUES = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
FRAME = pd.DataFrame({"k": KEYS, "n": [1, 1, 2, 1, 1]})
COLUMNS = {
    "list": KEYS,
    "numpy": np.array(KEYS),
    "objects": np.array(KEYS, object),
    "pandas": FRAME["k"],
    "pandas strings": FRAME["k"].astype("string"),
    "pandas categories": FRAME["k"].astype("category"),
    "pandas index": pd.Index(KEYS),
    "polars": pl.Series(KEYS),
    "polars categories": pl.Series(KEYS).cast(pl.Categorical),
    "duckdb": lambda: duckdb.from_df(FRAME).project("k"),
    "duckdb arrays": lambda: duckdb.from_df(FRAME).fetchnumpy()["k"],
}
MISSING = {
    "pandas": pd.Series(["x", None, "x", None]),
    "pandas integers": pd.Series([7, None, 7, None], dtype="Int64"),
    "floats": np.array([7.0, np.nan, 7.0, np.nan]),
    "objects": np.array(["x", None, "x", float("nan")], object),
    "polars": pl.Series(["x", None, "x", None]),
    "polars integers": pl.Series([7, None, 7, None]),
    "dates": np.array(["2020-01-01", "NaT", "2020-01-01", "NaT"], "M8[D]"),
    "masked": np.ma.array([7, 0, 7, 0], mask=[0, 1, 0, 1]),
}


@pytest.mark.parametrize("keys", COLUMNS.values(), ids=COLUMNS)
def test_group_by_sums_by_key_and_its_adjoint_hands_back(keys):
    R, found = relations.group_by(keys() if callable(keys) else keys)
    query = "SELECT k, SUM(v) FROM (SELECT unnest($k) AS k, unnest($v) AS v) GROUP BY k ORDER BY k"
    expected = duckdb.sql(query, params={"k": KEYS, "v": list(VALUES)})
    names, sums = zip(*expected.fetchall(), strict=True)
    assert tuple(found) == names
    assert np.array_equal(rz.red(R)(VALUES), sums)
    groups = np.array([10.0, 20.0, 30.0])
    assert np.array_equal(R.plan().adjoint(groups), groups[[1, 0, 1, 2, 0]])


def test_group_by_of_several_columns():
    R, (names, numbers) = relations.group_by((FRAME["k"], FRAME["n"]))
    assert list(zip(names, numbers, strict=True)) == [("a", 1), ("b", 1), ("b", 2), ("c", 1)]
    assert np.array_equal(R.plan()(VALUES), [18.0, 1.0, 4.0, 8.0])


@pytest.mark.parametrize("keys", MISSING.values(), ids=MISSING)
def test_missing_keys_are_one_group_and_join_nothing(keys):
    R, found = relations.group_by(keys)
    assert R.in_degrees.tolist() == [2, 2] and len(found) == 2
    assert found[1] is None or found[1] != found[1]
    assert relations.join(keys, keys).matrix().toarray().tolist() == [
        [1, 0, 1, 0],
        [0, 0, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize("keys", COLUMNS.values(), ids=COLUMNS)
def test_join_pairs_equal_keys(keys):
    keys, other = keys() if callable(keys) else keys, ["a", "d", "b", "a"]
    expected = np.array([[int(x == y) for y in other] for x in KEYS])
    assert np.array_equal(relations.join(keys, other).matrix().toarray(), expected)
    assert np.array_equal(relations.join(other, keys).matrix().toarray(), expected.T)


def test_join_of_several_columns():
    R = relations.join((FRAME["k"], FRAME["n"]), (["b", "b"], [2, 3]))
    assert R.matrix().toarray().tolist() == [[0, 0], [0, 0], [1, 0], [0, 0], [0, 0]]


def test_a_join_on_one_key_does_not_explode():
    n = 200_000
    R = relations.join(np.zeros(n, int), np.zeros(n, int))
    assert isinstance(R, Through) and R.count == n * n
    assert np.array_equal(R.plan()(np.ones(n)), np.full(n, float(n)))


def test_empty_columns():
    R, found = relations.group_by(np.zeros(0))
    assert (len(R.source), len(R.target), len(found)) == (0, 0, 0)
    assert relations.join(np.zeros(0), np.array([1.0])).matrix().shape == (0, 1)


def test_edges_from_columns():
    R = relations.edges(rz.seg(3), rz.seg(2), pd.Series([0, 2, 2]), pl.Series([1, 1, 1]))
    assert R.matrix().toarray().tolist() == [[0, 1], [0, 0], [0, 2]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: relations.group_by(np.zeros((2, 2))), r"a column has one axis; got an array of shape \(2, 2\)"),
        (lambda: relations.group_by(([1, 2], [1])), r"one length; got \[1, 2\]"),
        (lambda: relations.group_by(()), "at least one column"),
        (lambda: relations.join(([1], [2]), [1]), "as many columns on both sides; got 2 and 1"),
        (lambda: relations.join([1], ["a"]), "keys of one kind; got int64 and <U1"),
        (lambda: relations.group_by(np.array([[1], [2, 3]], object)), "keys are values with a hash"),
    ],
)
def test_errors(build, message):
    with pytest.raises(RelationError, match=message):
        build()


def test_large_whole_numbers_are_compared_exactly():
    assert relations.join(np.array([2**60 + 1]), np.array([2**60], np.uint64)).count == 0
    assert relations.join(np.array([2**53 + 1]), np.array([2.0**53])).count == 0
    assert relations.join(np.array([3]), np.array([3.0])).count == 1
