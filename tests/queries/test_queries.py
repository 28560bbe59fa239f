"""Functions of the rows of a table: the same numbers as in memory, by batches and by SQL, to any order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import riesz as rz
from riesz.errors import RelationError, RieszError, TraceError
from riesz.queries import sources

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("polars")

ENGINES = ["stream", "duckdb", "polars"]

SHOPS, PRODUCTS, ROWS = 4, 5, 37


class InMemory:
    """Rows as arrays, with the same `sum`: what a query is compared with."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.__dict__.update(columns)

    def sum(self, values: Any, by: str, size: int | None = None) -> Any:
        groups = getattr(self, by)
        total = np.zeros((int(groups.max()) + 1 if size is None else size, *np.shape(values)[1:]))
        np.add.at(total, groups, values)
        return total


def columns(seed: int = 0, rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "shop": rng.permutation(np.arange(rows) % SHOPS),
        "product": rng.integers(0, PRODUCTS, rows),
        "units": rng.normal(size=rows),
        "age": rng.random(rows) * 3,
        "bought": rng.integers(0, 2, rows),
    }


def revenue(row: Any, price: Any, rate: Any) -> Any:
    return row.sum(row.units * price[row.product] * np.exp(-rate * row.age), by="shop")


def added_at(row: Any, price: Any, rate: Any) -> Any:
    total = np.zeros(SHOPS)
    np.add.at(total, row.shop, np.where(row.age > rate, price[row.product] ** 2, row.units))
    return total


def standardized(row: Any, price: Any, rate: Any) -> Any:
    x = row.units * price[row.product]
    centred = x - np.mean(x)
    return np.sum(np.tanh(centred / np.sqrt(np.mean(centred**2) + rate))), row.sum(centred**2, by="shop")


def logistic(row: Any, price: Any, rate: Any) -> Any:
    s = price[row.product] * row.units + rate
    return {"loss": np.sum(np.logaddexp(0.0, s) - row.bought * s), "clipped": np.mean(np.clip(s, -1, 1))}


def counted(row: Any, price: Any, rate: Any) -> Any:
    means = row.sum(price[row.product], by="shop") / row.sum(1.0, by="shop")
    return row.sum((price[row.product] - means[row.shop]) ** 2 * rate, by="product", size=PRODUCTS)


def no_rows_at_all(row: Any, price: Any, rate: Any) -> Any:
    return np.sum(price) * rate


def several_numbers(row: Any, price: Any, rate: Any) -> Any:
    features = np.stack([row.units, row.age, row.units * row.age], axis=1)
    weights = np.stack([price, price**2, rate * price], axis=1)
    return row.sum(features * weights[row.product], by="shop"), features.T @ (features @ price[:3])


IN_SQL = [revenue, added_at, standardized, counted]
CASES = [*IN_SQL, logistic, no_rows_at_all, several_numbers]


def point(seed: int = 5) -> tuple[Any, float]:
    return np.random.default_rng(seed).random(PRODUCTS) + 0.5, 0.7


def close(found: Any, wanted: Any, tolerance: float = 1e-11) -> None:
    a, b = [np.concatenate([np.ravel(x) for x in leaves(y)]) for y in (found, wanted)]
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max(initial=0.0)))


def leaves(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [v for k in sorted(x) for v in leaves(x[k])]
    return [v for part in x for v in leaves(part)] if isinstance(x, (tuple, list)) else [x]


class Twin(NamedTuple):
    query: Any
    plain: Callable[..., Any]


def twin(f: Any, engine: str, seed: int = 0, rows: int = ROWS) -> Twin:
    given = columns(seed, rows)
    return Twin(rz.relations.table(given).query(f, *point(), engine=engine), lambda *xs: f(InMemory(given), *xs))


BOTH = [*[(f, "stream") for f in CASES], *[(f, "duckdb") for f in IN_SQL]]
BOTH += [(f, "polars") for f in IN_SQL if f is not standardized]  # Polars' SQL has no tanh


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH", 10)  # 37 rows: four batches, the last one shorter


@pytest.mark.parametrize(("f", "engine"), BOTH, ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_as_in_memory(f: Any, engine: str) -> None:
    q, plain = twin(f, engine)
    price, rate = point()
    close(q(price, rate), plain(price, rate))
    moved = np.random.default_rng(1).normal(size=PRODUCTS), 0.3
    h = 1e-6
    ends = [leaves(plain(price + s * h * moved[0], rate + s * h * moved[1])) for s in (1, -1)]
    difference = [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)]
    y, dy = rz.jvp(q, (price, rate), moved)
    close(y, plain(price, rate))
    close(dy, difference, 1e-7)
    y, back = rz.vjp(q, price, rate)
    rng = np.random.default_rng(2)
    w = [rng.normal(size=np.shape(v)) for v in leaves(y)]
    shaped = dict(zip(sorted(y), w, strict=True)) if isinstance(y, dict) else tuple(w) if isinstance(y, tuple) else w[0]
    bar = back(shaped)
    left = sum([np.vdot(a, b) for a, b in zip(w, leaves(dy), strict=True)])
    close(np.vdot(bar[0], moved[0]) + bar[1] * moved[1], left)


@pytest.mark.parametrize("engine", ENGINES)
def test_second_order(engine: str) -> None:
    q, plain = twin(revenue, engine)
    price, rate = point()
    loss, same = (lambda p: np.sum(q(p, rate) ** 2) + p[0]), (lambda p: np.sum(plain(p, rate) ** 2) + p[0])
    close(rz.grad(loss)(price), rz.grad(same)(price))
    close(rz.hessian(loss)(price).to_dense(), rz.hessian(same)(price).to_dense())
    close(rz.compile(rz.grad(loss))(price), rz.grad(same)(price))
    nonlinear = lambda r: np.sum(q(price, r) ** 2)  # noqa: E731
    close(rz.hvp(nonlinear)(rate, 1.0), rz.hvp(lambda r: np.sum(plain(price, r) ** 2))(rate, 1.0))


@pytest.mark.parametrize("seed", range(6))
def test_random_rows(seed: int) -> None:
    rows = [1, 9, 10, 11, 40, 64][seed]
    given = columns(seed, rows)
    price, rate = point(seed)

    def f(row: Any, price: Any, rate: Any) -> Any:
        return row.sum(np.sin(row.units * price[row.product]) + rate * row.age, by="shop", size=SHOPS)

    q = rz.relations.table(given).query(f, price, rate)
    close(
        rz.grad(lambda p: np.sum(q(p, rate) ** 3))(price),
        rz.grad(lambda p: np.sum(f(InMemory(given), p, rate) ** 3))(price),
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_relations(engine: str) -> None:
    rng = np.random.default_rng(3)
    n, m, pairs = 6, 8, 50
    a, b, w = rng.integers(0, n, pairs), rng.integers(0, m, pairs), rng.normal(size=pairs)
    t = rz.relations.table({"a": a, "b": b, "w": w})
    R = t.relation("a", "b", sizes=(n, m), weight="w", engine=engine)
    dense = np.zeros((m, n))
    np.add.at(dense, (b, a), w)
    v, u = rng.normal(size=n), rng.normal(size=m)
    close(R(v), dense @ v)
    close(R.adjoint(u), dense.T @ u)
    close(rz.jacobian(R)(v).to_dense(), dense)
    plain = t.relation("a", "b", sizes=(n, m), engine=engine)
    close(plain(v), rz.red(rz.relations.edges(rz.seg(n), rz.seg(m), a, b))(v))
    if engine == "stream":
        V = rng.normal(size=(n, 3))
        close(R(V), dense @ V)
    with pytest.raises(RelationError, match="6 rows"):
        R(np.ones(5))


def test_columns_that_move(tmp_path: Path) -> None:
    given = columns()
    price, rate = point()
    q = rz.relations.table({**given, "du": given["age"]}).query(revenue, price, rate)
    w = np.array([1.0, -2.0, 3.0, 0.5])

    def of_units(units: Any) -> Any:
        return revenue(InMemory({**given, "units": units}), price, rate)

    wanted = rz.vjp(of_units, given["units"])[1](w)
    close(q.column_gradient("units", w, price, rate), wanted)
    path = tmp_path / "gradient.parquet"
    assert q.column_gradient("units", w, price, rate, to=path) == path
    close(parquet.read_table(path)["units"].to_numpy(), wanted)
    close(q.column_derivative("units", "du", price, rate), rz.jvp(of_units, (given["units"],), (given["age"],))[1])
    with pytest.raises(RelationError, match="'product' has no fractions"):
        q.column_gradient("product", w, price, rate)
    with pytest.raises(RelationError, match="does not read 'bought'"):
        q.column_gradient("bought", w, price, rate)


@pytest.mark.parametrize("engine", ENGINES)
def test_three_tables_joined(engine: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    orders = {"order": np.arange(20), "customer": rng.integers(0, 6, 20)}
    lines = {"order": rng.integers(0, 20, 60), "item": rng.integers(0, 9, 60), "count": rng.random(60)}
    people = {"customer": np.arange(6), "region": np.array(["n", "s", "e", "n", "s", "n"])}
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    for path, rows in zip(paths, (lines, orders), strict=True):
        parquet.write_table(pyarrow.table(rows), path)
    t = rz.relations.table(paths[0]).join(rz.relations.table(paths[1]), on="order")
    t = t.join(rz.relations.table(people), on="customer")
    price = rng.random(9)
    q = t.query(lambda row, p: row.sum(row["count"] * p[row.item] ** 2, by="region"), price, engine=engine)
    regions = np.searchsorted(["e", "n", "s"], people["region"])[orders["customer"][lines["order"]]]

    def plain(p: Any) -> Any:
        total = np.zeros(3)
        np.add.at(total, regions, lines["count"] * p[lines["item"]] ** 2)
        return total

    close(q(price), plain(price))
    close(rz.grad(lambda p: np.sum(np.sin(q(p))))(price), rz.grad(lambda p: np.sum(np.sin(plain(p))))(price))
    assert t.keys("region").tolist() == ["e", "n", "s"]


@pytest.mark.parametrize("engine", ENGINES)
def test_windows(engine: str) -> None:
    rng = np.random.default_rng(6)
    n = 30
    given = {
        "day": rng.permutation(n),
        "shop": rng.integers(0, 3, n),
        "x": rng.random(n),
        "kind": rng.integers(0, 4, n),
    }
    weights, value = rng.random(3), rng.random(4)

    def smoothed(row: Any, w: Any, v: Any) -> Any:
        terms = [w[k] * np.where(r.there > 0, r.x * v[r.kind], 0.0) for k in (1, 2) for r in (row.before(k),)]
        return row.sum((w[0] * row.x * v[row.kind] + terms[0] + terms[1]) ** 2, by="shop", size=3)

    def plain(w: Any, v: Any) -> Any:
        total = [0.0, 0.0, 0.0]
        for shop in range(3):
            at = [i for i in np.argsort(given["day"]) if given["shop"][i] == shop]
            for place in range(len(at)):
                inside = [at[place - k] for k in range(3) if place >= k]
                total[shop] = (
                    total[shop] + sum([w[k] * given["x"][i] * v[given["kind"][i]] for k, i in enumerate(inside)]) ** 2
                )
        return np.stack(total)

    q = rz.relations.table(given).window("day", by="shop", preceding=2).query(smoothed, weights, value, engine=engine)
    close(q(weights, value), plain(weights, value))
    for k in (0, 1):
        found, wanted = (
            rz.grad(lambda w, v, g=g: np.sum(np.cos(g(w, v))), argnums=k)(weights, value) for g in (q, plain)
        )
        close(found, wanted)


def test_where_rows_come_from(tmp_path: Path) -> None:
    import pandas
    import polars

    data = {"g": [0, 1, 1, 0], "x": [1.0, 2.0, 3.0, 4.0]}
    path, csv = tmp_path / "it's.parquet", tmp_path / "rows.csv"
    parquet.write_table(pyarrow.table(data), path)
    csv.write_text("g,x\n0,1\n1,2\n1,3\n0,4\n")
    con = duckdb.connect()
    con.execute("CREATE TABLE rows AS SELECT * FROM (VALUES (0, 1.0), (1, 2.0), (1, 3.0), (0, 4.0)) AS t(g, x)")
    given: list[Any] = [data, path, str(path), [path], csv, pandas.DataFrame(data), polars.DataFrame(data)]
    given += [polars.LazyFrame(data), pyarrow.table(data), str(tmp_path / "*.parquet")]
    tables = [*map(rz.relations.table, given), rz.relations.table(con.sql("SELECT * FROM rows"), connection=con)]
    for t in tables:
        q = t.query(lambda row, k: row.sum(row.x**k, by="g"), 2.0)
        close(q(2.0), [17.0, 13.0])
        assert len(t) == 4 and t.columns == ["g", "x"]


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_names(engine: str) -> None:
    name = 'x"; DROP TABLE a; --'
    t = rz.relations.table({"g'; DROP": [0, 1], name: [2.0, 3.0]})
    q = t.query(lambda row, k: row.sum(k * row[name], by="g'; DROP"), 1.0, engine=engine)
    close(q(2.0), [4.0, 6.0])


def small_types(row: Any, p: Any) -> Any:
    return row.sum(p * (row.n * row.n + row.x * row.x) + row.b * p**2, by="g")


def whole_parts(row: Any, p: Any) -> Any:
    return np.sum(p * row.v.astype(int) + np.where(row.v.astype(bool), p**2, 0.0) + (row.v > 0).astype(float))


def rounded(row: Any, p: Any) -> Any:
    return np.sum(p * row.v.astype(np.float32).astype(float))


def tiny(row: Any, p: Any) -> Any:
    return row.sum(np.log1p(1e-12 * p * row.x) + np.expm1(1e-12 * p**2 * row.x), by="g") * 1e12


def grown(row: Any, p: Any) -> Any:
    return np.sum(np.cosh(row.v) * 2.0 ** (p * row.v) + row.g**p * np.maximum(row.v, p) - (-1.5 - row.v) / p)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("f", [small_types, whole_parts, rounded, tiny, grown])
def test_numbers_as_numpy_has_them(f: Any, engine: str) -> None:
    given = {
        "g": np.array([2, 1, 1, 2, 0], np.uint8),
        "n": np.array([100, -100, 3, 4, 5], np.int8),
        "x": np.array([0.1, 0.2, 0.3, -0.4, 0.7], np.float32),
        "b": np.array([True, False, True, True, False]),
        "v": np.array([0.6, -1.7, 2.2, 0.0, -0.3]),
    }
    q = rz.relations.table(given).query(f, 1.3, engine=engine)
    wide = {k: v.astype(int if v.dtype.kind in "iu" else float) for k, v in given.items()}
    plain = lambda p: f(InMemory(wide), p)  # noqa: E731
    if engine == "polars" and f is tiny:
        with pytest.raises(TraceError, match=r"log1p cannot be written in SQL of Polars.*engine='stream'"):
            q(1.3)
        return
    close(q(1.3), plain(1.3))
    slope = (plain(1.3 + 1e-5) - plain(1.3 - 1e-5)) / 2e-5
    close(rz.grad(lambda p: np.sum(q(p)))(1.3), np.sum(slope), 1e-6)


def test_polars_reads_parquet_files(tmp_path: Path) -> None:
    given = columns()
    towns = np.array(["Å", 'b"c', "d'e", "f"])
    path = tmp_path / "rows [1].parquet"
    parquet.write_table(pyarrow.table({**given, "town": towns[given["shop"]], "v": given["age"]}), path)

    def f(row: Any, price: Any, rate: Any) -> Any:
        return row.sum(row.units * price[row.product - PRODUCTS] * np.cos(rate * row.v), by="town")

    price, rate = point()
    q = rz.relations.table(tmp_path / "*.parquet").query(f, price, rate, engine="polars")
    order = np.argsort(np.argsort(towns))
    plain = lambda p, r: f(InMemory({**given, "v": given["age"], "town": order[given["shop"]]}), p, r)  # noqa: E731
    close(q(price, rate), plain(price, rate))
    losses = [lambda p, r, g=g: np.sum(np.sin(g(p, r))) for g in (q, plain)]
    for k in (0, 1):
        close(*[rz.grad(loss, argnums=k)(price, rate) for loss in losses])
    forward, gradient = q.explain().split("\ngradient")
    for text in (forward, gradient):
        assert "polars.scan_parquet of" in text and "FROM rows AS t" in text
    assert 't."town" AS i' in forward and "GROUP BY 1" in forward and "$rate" in forward
    assert 'cotangent.i = t."town"' in gradient


def test_what_polars_cannot_say() -> None:
    t = rz.relations.table(columns())
    with pytest.raises(TraceError, match=r"tanh cannot be written in SQL of Polars.*engine='stream'"):
        t.query(lambda row, p: np.sum(np.tanh(p * row.units)), 1.0, engine="polars")(1.0)

    def deep(row: Any, p: Any) -> Any:
        x = row.units
        for _ in range(100):
            x = np.sin(p * x)
        return np.sum(x)

    with pytest.raises(TraceError, match=r"Polars does not read this query.*recursion.*engine='stream'"):
        t.query(deep, 1.0, engine="polars")(1.0)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("holes", "column"), [({"g": [0, None], "x": [1.0, 2.0]}, "g"), ({"g": [0, 1], "x": [1.0, None]}, "x")]
)
def test_rows_without_numbers_are_refused_in_sql(holes: Any, column: str, engine: str) -> None:
    t = rz.relations.table(pyarrow.table(holes))
    with pytest.raises(RelationError, match=f"1 rows have no number in '{column}'"):
        t.query(lambda row, p: row.sum(p * row.x, by="g", size=2), 1.0, engine=engine)(1.0)
    nan = rz.relations.table({"g": [0, 0], "x": [1.0, np.nan]})
    with pytest.raises(RelationError, match="1 rows have no number in 'x'"):
        nan.query(lambda row, p: np.sum(np.where(row.x > p, p, 0.0)), 1.0, engine=engine)(1.0)


def test_explained_in_both_directions() -> None:
    text = twin(revenue, "stream").query.explain()
    forward, gradient = text.split("\ngradient")
    assert 'price.i = t."product"' in forward and 't."shop" AS i' in forward and "$rate" in forward
    assert 'cotangent.i = t."shop"' in gradient and 't."product" AS i' in gradient
    assert "-- no SQL" in twin(several_numbers, "stream").query.explain()


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda row, p: np.cumsum(row.units * p), "one row after another"),
        (lambda row, p: np.sort(row.units) * p, "one row after another"),
        (lambda row, p: np.sum(row.units[:, None] * row.age[None, :]) + p, r"pair of rows|one row after"),
        (lambda row, p: row.units * p, "a number for each row"),
        (lambda row, p: row.sum(row.age * p, by="units"), "fractions"),
        (lambda row, p: np.sum(row.unit) * p, "no column 'unit'; there are"),
        (lambda row, p: np.sum(row.before(1).units) * p, "preceding=1"),
    ],
)
def test_what_is_refused(f: Any, words: str) -> None:
    with pytest.raises(RieszError, match=words):
        rz.relations.table(columns()).query(f, 1.0)


def test_wrong_numbers_are_told() -> None:
    t = rz.relations.table({"g": [0, 5], "x": [1.0, 2.0]})
    for engine in ENGINES:
        with pytest.raises(RieszError, match=r"outside an axis|not there"):
            t.query(lambda row, p: np.sum(p[row.g]), np.ones(3), engine=engine)(np.ones(3))
        with pytest.raises((RieszError, IndexError)):
            t.query(lambda row, p: row.sum(p * row.x, by="g", size=3), 1.0, engine=engine)(1.0)
    holes = rz.relations.table(pyarrow.table({"g": [0, None], "x": [1.0, 2.0]}))
    with pytest.raises(RelationError, match="WHERE g IS NOT NULL"):
        holes.query(lambda row, p: row.sum(p * row.x, by="g"), 1.0)(1.0)
    with pytest.raises(RelationError, match="there is no file"):
        rz.relations.table("nothing.parquet")
    with pytest.raises(RelationError, match="a path of Parquet"):
        rz.relations.table(3)
    with pytest.raises(RelationError, match="engine='spark'"):
        t.query(lambda row, p: np.sum(row.x) * p, 1.0, engine="spark")
    with pytest.raises(RelationError, match="shapes"):
        t.query(lambda row, p: np.sum(row.x) * p, 1.0)(np.ones(2))
    with pytest.raises(TraceError, match="engine='stream'"):
        t.query(lambda row, p: np.sum(np.arcsinh(np.sinc(row.x))) * p, 1.0, engine="duckdb")(1.0)
