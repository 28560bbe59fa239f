"""A function of arrays that goes through the rows of a table: called, differentiated, explained."""

# pyright: basic, reportPrivateUsage=false, reportMissingImports=false, reportMissingTypeStubs=false
from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calculus.derive import derive_program
from ..errors import RelationError, TraceError
from ..functions.control.bodies import Body
from ..functions.versions.answering import answering
from ..runtime.displayed import Displayed
from ..tracing.argument_trees import flatten, unflatten
from ..tracing.traced import Traced, slot_of, trace_of
from .forms import Rows, TableForm, through
from .scans import RowPasses
from .sources import Source
from .sql_text import described

ENGINES = ("stream", "duckdb", "polars")


class Query(Displayed):
    """A function of arrays that goes through the rows of a table, made by `table(…).query(f, *arrays)`: call it, use it
    in functions and take their derivatives, `explain()` it."""

    def __init__(
        self,
        source: Source,
        f: Callable[..., Any],
        arrays: tuple[Any, ...],
        engine: str,
        row: Callable[[dict[str, Any], dict[str, None]], Any],
    ) -> None:
        if engine not in ENGINES:
            raise RelationError(f"rows are gone through by one of {', '.join(ENGINES)}; got engine={engine!r}")
        self._source, self.name = source, getattr(f, "__name__", "f")
        leaves, self._tree = flatten(arrays)
        self._shapes = [np.shape(x) for x in leaves]
        self._names = _names(f, arrays)
        whole = {name: kind != "real" or name in source.keys for name in source.kinds if (kind := source.kind(name))}
        given = {n: np.broadcast_to(np.zeros((), int if w else float), (source.count,)) for n, w in whole.items()}
        seen: dict[str, None] = {}
        self._result: Any = None  # the tree of the result, and the shapes of its arrays
        self._result_shapes: list[Any] = []

        def flat(columns: dict[str, Any], theta: Any) -> Any:
            found = version(row(columns, seen), *self._unpacked(theta))
            leaves, self._result = flatten(found)
            self._result_shapes = [np.shape(x) for x in leaves]
            return np.concatenate([np.zeros(0), *[np.reshape(x, -1) for x in leaves]])

        with answering(f) as answered:
            version = answered(f)
            body = Body(flat, (given, np.zeros(sum([math.prod(s) for s in self._shapes]))), self.name)
        if body.record.captured:
            raise TraceError("a query uses the rows and its own arguments only: pass the traced array as an argument")
        program = body.record.program
        order = [next(n for n, x in given.items() if x is leaf) for leaf in flatten(given)[0]]
        slots = dict(zip(order, program.inputs, strict=False))
        rows = Rows(source, list(seen), engine)
        inputs = [program.inputs[len(given)], *[slots[n] for n in rows.columns]]
        self._form = TableForm(rows, program.prune(inputs, program.outputs), 1)
        if self._form.scans.axis[self._form.scans.program.outputs[0]] is not None:
            raise RelationError("a query gives sums over rows, and this one gives a number for each row")

    def _unpacked(self, theta: Any) -> list[Any]:
        """The arguments from one vector."""
        return unflatten(self._tree, _parts(theta, self._shapes))

    def _packed(self, arrays: tuple[Any, ...]) -> Any:
        """One vector from the arguments."""
        leaves, tree = flatten(arrays)
        shapes = [np.shape(x) for x in leaves]
        if tree != self._tree or shapes != self._shapes:
            raise RelationError(
                f"{self.name} was made for arrays of the shapes {self._shapes}; got {shapes}: make a query for these, "
                "table.query(f, *arrays)"
            )
        return np.concatenate([np.zeros(0), *[np.reshape(x, -1) for x in leaves]])

    def __call__(self, *arrays: Any) -> Any:
        theta = self._packed(arrays)
        if isinstance(theta, Traced):
            home = trace_of(theta)
            y = through(home, self._form, [slot_of(home, theta, theta.dtype)])
        else:
            y = self._form.run(theta)
        return self._unpacked_result(y)

    def _unpacked_result(self, y: Any) -> Any:
        """The result from one vector."""
        return unflatten(self._result, [x if np.ndim(x) else x[()] for x in _parts(y, self._result_shapes)])

    # -- with respect to columns -----------------------------------------------------------------------------

    def column_gradient(self, column: str, cotangent: Any, *arrays: Any, to: Any = None) -> Any:
        """The adjoint in a column: for each row, what the cotangent makes of the derivative in its number. An array;
        with `to`, the path of a Parquet file to be written.

        >>> import numpy as np, riesz as rz
        >>> t = rz.relations.table({"g": [0, 1, 1], "v": [1.0, 2.0, 3.0]})
        >>> squares = t.query(lambda row: row.sum(row.v ** 2, by="g"))
        >>> squares.column_gradient("v", np.array([1.0, 10.0]))
        array([ 2., 40., 60.])
        """
        form, k = self._form, self._column(column)
        own = form.program
        found = derive_program(own, [s == k for s in own.inputs]).adjoint
        inputs = [found.inputs[0], found.inputs[-1], *found.inputs[1:-1]]
        scans = RowPasses(found.prune(inputs, found.outputs), len(form.rows.columns), form.rows.count)
        given = [self._packed(arrays), self._packed_result(cotangent)]
        if to is None:
            return scans.run(given, lambda scan, known: scans.by_batches(scan, known, form.rows.batches))[0]
        return _written(scans, given, form.rows, to, column)

    def column_derivative(self, column: str, direction: str, *arrays: Any) -> Any:
        """The derivative in a column, in the direction that another column has."""
        form, k = self._form, self._column(column)
        own = form.program
        found = derive_program(own, [s == k for s in own.inputs]).derivative
        self._source.kind(direction)
        rows = Rows(self._source, [*form.rows.columns, direction], form.rows.engine)
        return self._unpacked_result(TableForm(rows, found, 1).run(self._packed(arrays)))

    def _column(self, column: str) -> int:
        columns = self._form.rows.columns
        if column not in columns:
            raise RelationError(f"{self.name} does not read {column!r}; it reads {', '.join(map(repr, columns))}")
        if self._source.kind(column) != "real" or column in self._source.keys:
            raise RelationError(f"the column {column!r} has no fractions, so nothing has a derivative in it")
        return self._form.program.inputs[1 + columns.index(column)]

    def _packed_result(self, cotangent: Any) -> Any:
        leaves, _ = flatten(cotangent)
        shapes = [np.shape(x) for x in leaves]
        if shapes != self._result_shapes:
            raise RelationError(f"a cotangent of {self.name} has the shapes {self._result_shapes}; got {shapes}")
        return np.concatenate([np.zeros(0), *[np.reshape(np.asarray(x, float), -1) for x in leaves]])

    # -- in words --------------------------------------------------------------------------------------------

    def explain(self) -> str:
        """How the rows are gone through, forward and for the gradient, with the SQL of both directions."""
        form, back = self._form, self._form.moved(0).turned(1)
        lines = [f"{self.name}: {form.rows.count:,} rows; columns {', '.join(form.rows.columns) or 'none'}"]
        for words, this in (("forward", form), ("gradient", back)):
            lines += ["", *described(words, this, self._names, self._shapes)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        passes = len(self._form.scans.scans)
        return f"{self.name}: {passes} {'pass' if passes == 1 else 'passes'} over {self._form.rows.count:,} rows"


def _parts(flat: Any, shapes: Sequence[Any]) -> list[Any]:
    """Arrays of some shapes, one after the other in a vector."""
    ends = np.cumsum([0, *[math.prod(s) for s in shapes]]).tolist()
    return [np.reshape(flat[a:b], shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]


def _names(f: Callable[..., Any], arrays: Sequence[Any]) -> list[str]:
    """A name for each array of the arguments, as far as f has names for them."""
    try:
        named = list(inspect.signature(f).parameters)[1:]
    except (TypeError, ValueError):
        named = []
    found = list[str]()
    for i, x in enumerate(arrays):
        name, leaves = named[i] if i < len(named) else f"x{i}", len(flatten(x)[0])
        found += [name] if leaves == 1 else [f"{name}_{j}" for j in range(leaves)]
    return found


def _written(scans: RowPasses, given: Sequence[Any], rows: Rows, path: Any, name: str) -> Any:
    """Results that have rows, written to a Parquet file batch by batch."""
    import pyarrow
    import pyarrow.parquet as parquet

    schema = pyarrow.schema([(name, pyarrow.float64())])
    with parquet.ParquetWriter(path, schema) as file:

        def emit(found: list[Any]) -> None:
            file.write_table(pyarrow.table({name: found[0]}, schema))

        def through(scan: Any, known: Any) -> Any:
            last = scan is scans.scans[-1]
            found = scans.by_batches(scan, known, rows.batches, emit if last else None)
            return [None] * len(found) if last else found

        scans.run(given, through)
    return path
