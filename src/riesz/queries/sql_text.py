"""A pass over rows as SQL: for each sum one query. Arrays that are looked up are joined as tables (i, v).

    SELECT t."shop" AS i, sum(t."units" * price.v) AS v
    FROM sales AS t LEFT JOIN price ON price.i = t."product" GROUP BY 1

What is read more than once has a name in a query inside. Numbers of the function that are not arrays are parameters.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportArgumentType=false
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import TraceError
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reshape
from ..ops.opaque import Discrete, Put, Select, Strongly, Take
from ..programs.program import Constant
from ..spaces.formal_vectors import dense
from .polars_rows import polars_answer, polars_rows
from .scans import RowPass, RowPasses, constant
from .sources import quoted
from .sql_dialects import DIALECTS, LOGIC, TRUTHS, SqlDialect

_WORDS = """
t i v k all and any as asc both by case cast check column create desc distinct do else end except false fetch
for from grant group having in initially intersect into is join lambda leading left limit not null offset on only or
order placing primary references returning right select show some symmetric table then to trailing true union unique
using variadic when where window with"""
RESERVED = frozenset(_WORDS.split())
"""Names that SQL, or a query of ours, has for something else."""


class Text(NamedTuple):
    """An expression for one row, and whether it is a truth value."""

    sql: str
    truth: bool = False

    @property
    def number(self) -> str:
        """As a number."""
        return f"CAST({self.sql} AS DOUBLE)" if self.truth else self.sql

    @property
    def condition(self) -> str:
        """As a truth value."""
        return self.sql if self.truth else f"({self.sql} <> 0)"


class Statement(NamedTuple):
    """A query for one result of a pass: its text, the arrays it joins, the numbers it is given, the result's length."""

    sql: str
    arrays: dict[str, int]
    numbers: dict[str, int]
    size: int | None


class _Writer:
    """The expressions of a pass."""

    def __init__(
        self,
        scans: RowPasses,
        result: int,
        rows: Any,
        names: dict[int, str],
        dialect: SqlDialect,
        known: dict[int, Any],
    ) -> None:
        columns, self.source, self.dialect, self.known = rows.columns, rows.source, dialect, known
        self.scans, self.program, self.names = scans, scans.program, names
        self.columns = {slot: columns[i] for slot, i in scans.columns.items()}
        self.joins: dict[tuple[int, str], str] = {}
        self.arrays: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.inner: list[str] = []  # expressions that have a name
        self.texts: dict[int, Text] = {}
        self.plain: dict[int, Text] = {}  # without names: for conditions of joins
        inside = self._inside(result)
        uses = dict.fromkeys(inside, 0)
        for slot in (*inside, result):
            for a in self.program.args[slot]:
                if a in uses:
                    uses[a] += 1
        for slot in inside:
            self._write(slot, uses[slot] > 1)

    def _inside(self, result: int) -> list[int]:
        found, stack = set[int](), list(self.program.args[result])
        while stack:
            slot = stack.pop()
            if slot not in found and self.scans.axis[slot] is not None:
                found.add(slot)
                stack.extend(self.program.args[slot])
        return sorted(found)

    def _write(self, slot: int, named: bool) -> None:
        if len(self.program.shapes[slot]) != 1:
            raise _refused("arrays with several numbers for each row")
        if slot in self.columns:
            self.texts[slot] = self.plain[slot] = Text(self._column(self.columns[slot]))
            return
        text = self._expression(slot, self.texts)
        self.plain[slot] = self._expression(slot, self.plain)
        if max(len(text.sql), len(self.plain[slot].sql)) > 100_000:
            raise _refused("expressions of more than 100,000 letters")
        if named and self.dialect.names and not text.sql.replace("_", "").replace(".", "").replace('"', "").isalnum():
            self.inner.append(f"{text.sql} AS v{slot}")
            text = Text(f"v{slot}", text.truth)
        self.texts[slot] = text

    def _column(self, column: str) -> str:
        """A column, with numbers of 64 bits."""
        kind, text = self.source.kinds[column], f"t.{quoted(column)}"
        if column in self.source.keys or kind in ("BIGINT", "DOUBLE") or not self.dialect.names:
            return text
        return f"CAST({text} AS {'DOUBLE' if self.source.kind(column) == 'real' else 'BIGINT'})"

    def _given(self, slot: int, texts: dict[int, Text]) -> Text:
        """An argument: of a row, or a number."""
        if slot in texts:
            return texts[slot]
        op, shape = self.program.ops[slot], self.program.shapes[slot]
        if type(op) is Constant:
            return self._constant(constant(op, self.program.shapes[slot]))
        if math.prod(shape) != 1:
            raise _refused("an array that is not looked up by a column")
        if type(op) is float:
            return Text(f"({self.dialect.number(op)} * {self._given(self.program.args[slot][0], texts).number})")
        name = self.names.get(slot, f"c{slot}")
        if not self.dialect.names and slot in self.known:
            return Text(self.dialect.number(np.reshape(self.known[slot], -1)[0]))
        self.numbers[name] = slot
        return Text(f"${name}")

    def _expression(self, slot: int, texts: dict[int, Text]) -> Text:
        op, args = self.program.ops[slot], self.program.args[slot]
        if isinstance(op, Strongly):
            op = op.op
        if type(op) is Constant:
            return self._constant(constant(op, self.program.shapes[slot]))
        if isinstance(op, Take):
            return self._looked_up(args[0], args[1])
        xs = [self._given(a, texts) for a in args]
        match op:
            case float():
                return Text(f"({self.dialect.number(op)} * {xs[0].number})")
            case Combination():
                return Text("(" + _sum(op.coefficients, [x.number for x in xs], self.dialect) + ")")
            case Elementwise():
                return Text(self._primitive(op, [x.number for x in xs]))
            case Select():
                if xs[1].truth and xs[2].truth:
                    return Text(f"CASE WHEN {xs[0].condition} THEN {xs[1].sql} ELSE {xs[2].sql} END", True)
                return Text(f"CASE WHEN {xs[0].condition} THEN {xs[1].number} ELSE {xs[2].number} END")
            case Cast():
                return _converted(np.dtype(op.target), xs[0])
            case Reshape():
                return xs[0]
            case Discrete():
                return xs[0] if self._counts(op, args) else self._discrete(op, xs)
            case Contraction():
                return Text(product(op, xs))
            case _:
                raise _refused(op.title)

    def _counts(self, op: Discrete, args: tuple[int, ...]) -> bool:
        """Whether this makes positions from the end positive, of a column that has none."""
        column = self.columns.get(args[0])
        return op.function.__name__ == "_wrap" and column is not None and self.source.ends(column)[0] >= 0

    def _primitive(self, op: Elementwise, xs: list[str]) -> str:
        name, k = op.primitive.name, op.primitive.parameter
        if name == "power" and k is not None:
            short = {2.0: f"({xs[0]} * {xs[0]})", 1.0: xs[0], -1.0: f"(1 / {xs[0]})"}
            return short[k] if k in short and len(xs[0]) < 40 else f"power({xs[0]}, {self.dialect.number(k)})"
        if name not in self.dialect.formulas or k is not None:
            raise _refused(f"the function {name}", self.dialect)
        return self.dialect.formulas[name].format(*xs)

    def _discrete(self, op: Discrete, xs: list[Text]) -> Text:
        name, named = op.function.__name__, dict(op.parameters)
        if name == "_wrap":  # positions from the end
            return Text(f"CASE WHEN {xs[0].number} < 0 THEN {xs[0].number} + {named['n']} ELSE {xs[0].number} END")
        if name in LOGIC and all([x.truth for x in xs]):
            return Text(LOGIC[name].format(*[x.sql for x in xs]), True)
        if name == "_number":  # whether something is 0, as a number
            return Text(f"CASE WHEN {xs[0].condition} THEN 0 ELSE 1 END")
        if name in LOGIC and name.startswith("logical"):
            return Text(LOGIC[name].format(*[x.condition for x in xs]), True)
        if name == "as_type":
            return _converted(np.dtype(named["dtype"]), xs[0])
        if name in ("isnan", "isfinite") and self.dialect.names:
            return Text(f"{name}({xs[0].number})", True)
        if name not in self.dialect.discrete or op.shaped is not None:
            raise _refused(f"the function {name.strip('_')}", self.dialect)
        return Text(self.dialect.discrete[name].format(*[x.number for x in xs]), name in TRUTHS)

    def _looked_up(self, array: int, index: int) -> Text:
        """An entry of an array at the number of a row; of 0, 1, 2, … the number itself."""
        op, shape = self.program.ops[array], self.program.shapes[array]
        if len(shape) != 1 or self.scans.axis[array] is not None:
            raise _refused("rows of an array with several axes")
        if type(op) is Constant and np.array_equal(dense(op.value), np.arange(shape[0])):
            return self.plain[index]
        at = self.plain[index].number
        if not self.dialect.names and index not in self.columns:
            at = f"CAST({at} AS BIGINT)"
        if (array, at) not in self.joins:
            name = self.names.get(array, f"a{array}")
            while name in self.arrays or name.lower() in RESERVED:
                name += "_"
            self.joins[array, at], self.arrays[name] = name, array
        return Text(f"{self.joins[array, at]}.v")

    def _constant(self, value: Any) -> Text:
        """A constant, or an array of one number for all rows."""
        array = np.asarray(value)
        if array.size != 1 and any(array.strides):
            raise _refused("an array with a number for each row")
        first = array.reshape(-1)[0] if array.size else 0.0
        truth = array.dtype.kind == "b"
        return Text("TRUE" if first else "FALSE", True) if truth else Text(self.dialect.number(first))


def product(op: Contraction, xs: list[Text]) -> str:
    """A product of numbers of one row; zeros that annihilate whatever they meet do so (Note [Strong] in ops/op.py)."""
    masks = list(op.strong)
    factors = [x.number for i, x in enumerate(xs) if not (i in masks and x.truth)]
    plain = " * ".join(factors) or "1"
    plain = f"({plain})" if len(factors) > 1 else plain
    wanted = [xs[i].condition for i in masks]
    return f"CASE WHEN {' AND '.join(wanted)} THEN {plain} ELSE 0 END" if wanted else plain


def _sum(coefficients: Sequence[float], xs: Sequence[str], dialect: SqlDialect) -> str:
    text = ""
    for k, x in zip(coefficients, xs, strict=True):
        size = x if abs(k) == 1 else f"{dialect.number(abs(k))} * {x}"
        text += (f" - {size}" if k < 0 else f" + {size}") if text else (f"-{size}" if k < 0 else size)
    return text


def _converted(dtype: np.dtype[Any], x: Text) -> Text:
    """x.astype(dtype)."""
    match dtype.kind, dtype.itemsize:
        case "b", _:
            return Text(x.condition, True)
        case "i", 4 | 8:
            return Text(f"trunc({x.number})")
        case "f", 8:
            return Text(x.number)
        case "f", 4:
            return Text(f"CAST(CAST({x.number} AS REAL) AS DOUBLE)")
        case _:
            raise _refused(f"astype({dtype})")


def _refused(what: str, dialect: SqlDialect | None = None) -> TraceError:
    whose = "" if dialect is None or dialect.names else f" of {dialect.engine}"
    return TraceError(f"{what} cannot be written in SQL{whose}; go through the rows with engine='stream'")


def statement(
    scans: RowPasses, result: int, rows: Any, names: dict[int, str], known: dict[int, Any] | None = None
) -> Statement:
    """The query for one result of a pass, for the engine of the rows; by batches there is none, and DuckDB's is shown.
    Numbers that are known stand in it where there are no parameters."""
    dialect = DIALECTS.get(rows.engine, DIALECTS["duckdb"])
    op, args, shapes = scans.program.ops[result], scans.program.args[result], scans.program.shapes
    if scans.axis[result] is not None:
        raise _refused("a result for each row")
    writer = _Writer(scans, result, rows, names, dialect, known or {})
    if isinstance(op, Put):
        value, index = (writer._given(a, writer.texts) for a in args)
        head, size = f"{index.number} AS i, sum({value.number}) AS v", shapes[result][0]
        if len(shapes[result]) != 1:
            raise _refused("sums with several numbers for each group")
    elif isinstance(op, Contraction) and not shapes[result]:
        value = product(op, [writer._given(a, writer.texts) for a in args])
        head, size = f"sum({value}) AS v", None
    else:
        raise _refused("a sum with axes")
    table, joins = rows.source.name_for(rows.columns) if dialect.names else "rows", ""
    for (_, at), name in writer.joins.items():
        joins += f"\nLEFT JOIN {quoted(name)} AS {name} ON {name}.i = {at}"
    lost = [f"sum(CASE WHEN {name}.i IS NULL THEN 1 ELSE 0 END) AS lost_{name}" for name in writer.joins.values()]
    body = f"{table} AS t{joins}"
    if writer.inner:
        outside = sorted(writer.arrays)
        shown = ",\n    ".join(["t.*", *[f"{n}.i AS i_{n}, {n}.v AS v_{n}" for n in outside], *writer.inner])
        for n in outside:  # outside the query inside, entries have other names
            head = re.sub(rf'(?<![\w"]){n}\.v\b', f"v_{n}", head)
        lost = [f"sum(CASE WHEN i_{n} IS NULL THEN 1 ELSE 0 END) AS lost_{n}" for n in outside]
        body = f"(SELECT {shown}\n  FROM {body}) AS t"
    sql = f"SELECT {', '.join([head, *lost])}\nFROM {body}" + ("" if size is None else "\nGROUP BY 1")
    return Statement(sql, writer.arrays, writer.numbers, size)


def by_sql(rows: Any, scans: RowPasses, scan: RowPass, known: dict[int, Any]) -> list[Any]:
    """What comes out of a pass, by a query for each result."""
    from ..errors import PositionError

    asked, found = polars_answer if rows.engine == "polars" else _answer, list[Any]()
    rows.source.complete(rows.columns)
    for slot in scan.results:
        made = statement(scans, slot, rows, {}, known)
        answer = asked(rows, made, {name: np.asarray(known[a], float) for name, a in made.arrays.items()}, known)
        columns = {k: np.ma.filled(v, 0) if isinstance(v, np.ma.MaskedArray) else v for k, v in answer.items()}
        for name in made.arrays:
            if (lost := int(np.sum(columns[f"lost_{name}"]))) > 0:
                raise PositionError(
                    f"{lost:,} rows look up an entry that is not there: of {len(known[made.arrays[name]]):,}"
                )
        if made.size is None:
            found.append(float(columns["v"][0]) if len(columns["v"]) else 0.0)
            continue
        at = columns["i"].astype(np.intp)
        if at.size and (at.min() < 0 or at.max() >= made.size):
            raise PositionError(f"a row belongs to group {at.max() if at.min() >= 0 else at.min()}, of {made.size:,}")
        found.append(np.bincount(at, columns["v"], made.size))  # 0.0 and -0.0 may have been two groups
    return found


def _answer(rows: Any, made: Statement, arrays: dict[str, Any], known: dict[int, Any]) -> dict[str, Any]:
    """What DuckDB answers, column by column."""
    import pyarrow

    con, registered = rows.source.connection, list[str]()
    try:
        for name, v in arrays.items():
            con.register(name, pyarrow.table({"i": np.arange(len(v)), "v": v}))
            registered.append(name)
        given = {name: float(np.reshape(known[s], -1)[0]) for name, s in made.numbers.items()}
        return (con.execute(made.sql, given) if given else con.execute(made.sql)).fetchnumpy()
    finally:
        for name in registered:
            con.unregister(name)


def described(words: str, form: Any, names: Sequence[str], shapes: Sequence[Any]) -> list[str]:
    """A direction in words: passes, what they keep, and their SQL."""
    scans, rows = form.scans, form.rows
    called, lines = _called(form, names, shapes), list[str]()
    lines.append(f"{words}: {len(scans.scans)} {'pass' if len(scans.scans) == 1 else 'passes'} over the rows")
    if rows.engine == "polars" and scans.scans:
        lines.append(f"  rows: {polars_rows(rows)[1]}")
    for scan in scans.scans:
        for slot in scan.results:
            shape = scans.program.shapes[slot]
            lines.append(f"  {' × '.join(map(str, shape)) or 'one'} number{'s' if shape else ''} kept:")
            try:
                text = statement(scans, slot, rows, called).sql
            except TraceError as problem:
                text = f"-- no SQL: {problem}"
            lines += ["    " + line for line in text.splitlines()]
    return lines


def _called(form: Any, names: Sequence[str], shapes: Sequence[Any]) -> dict[int, str]:
    """Names for the slots that are a part of the packed arguments: found by packing 0, 1, 2, …"""
    scans, program = form.scans, form.scans.program
    ends = np.cumsum([0, *[math.prod(s) for s in shapes]]).tolist()
    parts = {(a, b - a): name for a, b, name in zip(ends[:-1], ends[1:], names, strict=True)}
    known: dict[int, Any] = {program.inputs[0]: np.arange(float(ends[-1]))}
    found = {program.inputs[0]: names[0]} if len(names) == 1 else {}
    for i, slot in enumerate(program.inputs[1 : form.count], 1):
        found[slot] = "cotangent" if form.count == 2 else f"given{i}"
    for slot in scans.small:
        args = program.args[slot]
        if len(args) == 1 and args[0] in known and type(program.ops[slot]).__name__ in ("Reduction", "Reshape"):
            known[slot] = value = np.asarray(program.ops[slot].run(known[args[0]]))
            flat = value.reshape(-1)
            name = parts.get((int(flat[0]), flat.size)) if flat.size else None
            if name is not None and np.array_equal(flat, flat[0] + np.arange(flat.size)):
                found[slot] = name
    return found
