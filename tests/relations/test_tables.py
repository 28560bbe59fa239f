"""Columns of tables: group_by and join mean what SQL means, from every library's columns, and their reductions have adjoints."""

from __future__ import annotations

import sys

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
        (lambda: relations.group_by(np.zeros(2, "i,i")), "give a tuple of columns"),
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


# -- keys -------------------------------------------------------------------------------------------------

N = 20_000
RNG = np.random.default_rng(0)
WORDS = np.array([f"key{i}" for i in range(300)], object)[RNG.integers(0, 300, N)]
LONG = np.array([f"a longer key, number {i}" for i in range(300)], object)[RNG.integers(0, 300, N)]
ACCENTS = np.array([f"clé {i}" for i in range(300)], object)[RNG.integers(0, 300, N)]
MANY: dict[str, np.ndarray] = {
    "small integers": RNG.integers(-100, 300, N),
    "unsigned": RNG.integers(0, 300, N).astype(np.uint64) + np.uint64(2**63),
    "wide integers": RNG.integers(-(2**62), 2**62, 300)[RNG.integers(0, 300, N)],
    "different integers": RNG.permutation(N) * 10**12,
    "truth": RNG.random(N) < 0.5,
    "bytes": RNG.integers(0, 200, N).astype(np.uint8),
    "floats": RNG.normal(size=300)[RNG.integers(0, 300, N)],
    "signed zeros": np.where(RNG.random(N) < 0.5, 0.0, -0.0),
    "halves": RNG.integers(0, 300, N).astype(np.float16),
    "dates": np.datetime64("2020-01-01") + RNG.integers(0, 300, N).astype("m8[D]"),
    "complex": RNG.integers(0, 3, N) + 1j * RNG.integers(0, 3, N),
    "words": WORDS,
    "fixed words": WORDS.astype(str),
    "byte words": WORDS.astype("S"),
    "words of any length": WORDS.astype(np.dtypes.StringDType()),
    "long words": LONG.astype(str),
    "long objects": LONG,
    "accents": ACCENTS.astype(str),
    "accented objects": ACCENTS,
    "different words": np.array([f"w{i}" for i in RNG.permutation(N)], object),
    "different accents": np.array([f"ß{i}" for i in RNG.permutation(N)], object),
    "tuples": np.fromiter([(i, str(i)) for i in RNG.integers(0, 30, N)], object, N),
}


@pytest.mark.parametrize("engine", ["with pandas", "without"])
@pytest.mark.parametrize("kind", MANY)
def test_keys_are_those_of_a_sort(kind: str, engine: str, monkeypatch: pytest.MonkeyPatch):
    if engine == "without":
        monkeypatch.delitem(sys.modules, "pandas")
    values = MANY[kind]
    R, keys = relations.group_by(values)
    plain = values.tolist()
    assert keys.tolist() == sorted(set(plain)) if kind != "complex" else len(keys) == 9
    assert keys.dtype == values.dtype
    assert [keys.tolist()[i] for i in R.index[:200]] == plain[:200]
    assert bool((keys[R.index] == values).all())


def test_two_strings_with_one_hash(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("riesz.relations.keys._ODD", np.uint64(0))  # everything has one hash
    R, keys = relations.group_by(LONG.astype(str))
    assert keys.tolist() == sorted(set(LONG)) and bool((keys[R.index] == LONG).all())


def test_objects_that_cannot_be_compared_come_as_they_appear():
    R, keys = relations.group_by(np.array(["b", 3, "a", None, 3], object))
    assert keys.tolist() == ["b", 3, "a", None] and R.index.tolist() == [0, 1, 2, 3, 1]


def test_several_columns_with_missing_values():
    R, (a, b) = relations.group_by((np.array([1.0, np.nan, 1.0, 0.0]), pd.Series(["x", "y", None, "x"])))
    assert a[:2].tolist() == [0.0, 1.0] and b[:2].tolist() == ["x", "x"] and R.index.tolist() == [1, 2, 2, 0]


@pytest.mark.parametrize("table", [FRAME, pl.DataFrame(FRAME.to_dict("list")), duckdb.from_df(FRAME)], ids=type)
def test_tables_are_several_columns(table):
    names, numbers = relations.group_by(table).keys
    assert list(zip(names, numbers, strict=True)) == [("a", 1), ("b", 1), ("b", 2), ("c", 1)]
    assert relations.join(table, FRAME).matrix().toarray().trace() == 5


class ArrowLike:
    """As a column of Arrow is: a dictionary of keys and places in it."""

    def __init__(self, keys, indices):
        self.dictionary, self.indices = Plain(keys), Plain(indices)

    def dictionary_encode(self):
        return self


class Plain:
    def __init__(self, values):
        self.values = np.asarray(values)

    def fill_null(self, value):
        return Plain(np.where(self.values < 0, value, self.values))

    def to_numpy(self, zero_copy_only=True):
        return self.values


def test_columns_of_arrow():
    R, keys = relations.group_by(ArrowLike(np.array(["b", "a", "b"], object), [0, 1, -1, 2]))
    assert keys.tolist() == ["a", "b", None] and R.index.tolist() == [1, 0, 2, 1]
    pa = pytest.importorskip("pyarrow")
    for column in (pa.array(["b", None, "a"]), pa.chunked_array([["b"], [None, "a"]])):
        assert relations.group_by(column).keys.tolist() == ["a", "b", None]


@pytest.mark.parametrize("missing", [False, True])
def test_a_join_with_keys_that_come_once_is_a_function(missing):
    keys = np.array([3, 1, 3, 7 if missing else 1])
    R = relations.join(keys, np.array([1, 2, 3]))
    assert R.count == (3 if missing else 4) and R.is_function != missing
    assert np.array_equal(relations.join(np.array([1, 2, 3]), keys).matrix().toarray(), R.matrix().toarray().T)
    assert np.array_equal(R.matrix().toarray(), keys[:, None] == np.array([1, 2, 3]))


# -- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [pd.Series, pl.Series, lambda v: pd.Series(v, dtype="Float64")], ids=["pandas", "polars", "nullable"]
)
def test_columns_as_values(made):
    grouping, column = relations.group_by(KEYS), made(VALUES)
    assert grouping.sum(column).tolist() == [18.0, 5.0, 8.0] and grouping.max(column).tolist() == [16.0, 4.0, 8.0]
    assert grouping.min(column).tolist() == [2.0, 1.0, 8.0] and grouping.prod(column).tolist() == [32.0, 4.0, 8.0]
    assert grouping.mean(column).tolist() == [9.0, 2.5, 8.0]
    np.testing.assert_allclose(grouping.logsumexp(column)[1], np.logaddexp(1.0, 4.0))
    found = rz.grad(lambda v: np.sum(grouping.max(v) ** 2))(column)
    assert found.tolist() == [0.0, 0.0, 8.0, 16.0, 32.0]


def test_pandas_says_the_same():
    table = pd.DataFrame({"k": KEYS, "v": VALUES})
    for how in ("sum", "mean", "max", "min", "prod"):
        theirs = getattr(table.groupby("k")["v"], how)()
        np.testing.assert_allclose(getattr(relations.group_by(table["k"]), how)(table["v"]), theirs)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame])
def test_tables_as_arguments(made):
    table, grouping = made({"price": VALUES, "size": VALUES + 1}), relations.group_by(KEYS)
    found = rz.grad(lambda t: np.sum(grouping.max(t["price"] * t["size"])))(table)
    assert dict(found)["price"].tolist() == [0.0, 0.0, 5.0, 9.0, 17.0] and list(found) == ["price", "size"]
    for f in (lambda t: np.sum(t), lambda t: np.sum(t * 2.0), lambda t: np.sum(np.exp(t))):
        with pytest.raises(rz.VectorError, match=r"by its columns, \['price', 'size'\]"):
            rz.grad(f)(table)


def test_a_missing_number_is_nan():
    assert np.isnan(rz.grad(lambda v: np.sum(v**2))(pd.Series([1, None], dtype="Float64"))).tolist() == [False, True]


@pytest.mark.parametrize("n", [0, 5, 9000])
@pytest.mark.parametrize("kind", ["category", "numbers", "Int64", "UInt8", "boolean", "float", "Float64", "index"])
def test_codes_of_pandas_columns_that_may_miss_some(kind, n):
    rng = np.random.default_rng(n)
    gone = pd.Series(rng.integers(0, 3, n) == 0)
    whole = pd.Series(rng.integers(0, 9, n))
    column = {
        "category": lambda: pd.Series(pd.Categorical(rng.choice(list("dcab"), n), categories=list("zdbca"))).mask(gone),
        "numbers": lambda: pd.Series(pd.Categorical(rng.choice([3, 1, 2], n))),
        "Int64": lambda: whole.astype("Int64").mask(gone),
        "UInt8": lambda: whole.astype("UInt8"),
        "boolean": lambda: (whole > 4).astype("boolean").mask(gone),
        "float": lambda: (whole * 0.5 - 1).mask(gone) * -1.0,
        "Float64": lambda: whole.astype("Float64").mask(gone),
        "index": lambda: pd.CategoricalIndex(rng.choice(list("ba"), n)),
    }[kind]()
    (R, keys), values = relations.group_by(column), rng.normal(size=n)
    given = pd.Series(values).groupby(np.asarray(column.astype(object)), dropna=False).sum()
    assert len(given) == len(keys)
    present = [k for k in keys.tolist() if k is not None and k == k]
    assert present == sorted(present)
    sums = dict(zip(present, np.bincount(R.index, values, len(keys)), strict=False))
    for key, total in given.items():
        if key in sums:
            np.testing.assert_allclose(sums[key], total, atol=1e-12)


def test_red_takes_what_group_by_gives():
    g = relations.group_by(["b", "a", "b"])
    np.testing.assert_array_equal(rz.red(g, "max")(np.array([1.0, 2.0, 3.0])), [2.0, 3.0])
    np.testing.assert_array_equal(rz.red(g)(np.array([1.0, 2.0, 3.0])), [2.0, 4.0])
