"""Arguments of placed functions from arrays, files and functions: each process reads what its devices have, no more."""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from ...errors import SpaceError, VectorError
from ...functions.traces.given import Given
from ...functions.traces.records import Aval
from ...spaces.layout import container
from .on_mesh import put

Part = Callable[[tuple[slice, ...]], Any]
"""A part of an array, by a slice of each axis."""
PARQUET = (".parquet", ".pq")


def loaded(given: Given, sources: Sequence[Any], places: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Arguments like those that are given, as JAX arrays on a mesh. `places`: the sharding of each array."""
    if len(sources) != len(given.owners):
        due = ", ".join(names)
        raise SpaceError(f"load takes a source for each argument: {due}; got {len(sources)} instead of {len(names)}")
    args, kwargs = given.rebuilt([_Slot(k) for k in range(len(given.avals))])
    found: list[Any] = [None] * len(given.avals)
    for like, source, name in zip([*args, *kwargs.values()], sources, names, strict=True):
        for slot, part in _pairs(like, source, name):
            found[slot.place] = _placed(part, given.avals[slot.place], places[slot.place], name)
    args, kwargs = given.rebuilt(found)
    return (*args, *kwargs.values())


class _Slot:
    """Where an array of an argument is due."""

    def __init__(self, place: int) -> None:
        self.place = place


def _pairs(like: Any, source: Any, name: str) -> list[tuple[_Slot, Any]]:
    """The places for arrays in an argument, each with its source."""
    found: list[tuple[_Slot, Any]] = []
    waiting = [(like, source)]
    while waiting:
        here, there = waiting.pop()
        if isinstance(here, _Slot):
            found.append((here, there))
            continue
        mine = None if here is None else container(here)
        if mine is None:  # a number or a word that the function was compiled for
            if type(here) is not type(there) or here != there:
                raise SpaceError(f"the function was compiled for {here!r} in argument {name}; got {there!r}")
            continue
        if isinstance(here, dict) and isinstance(there, dict) and here.keys() == there.keys():
            waiting += [(here[key], there[key]) for key in here]
            continue
        yours = None if there is None or isinstance(here, dict) else container(there)
        if yours is None or len(yours[1]) != len(mine[1]):
            what = f"a dict with {', '.join(map(repr, here))}" if isinstance(here, dict) else f"{len(mine[1])} parts"
            raise SpaceError(f"the source of argument {name} has {what}, as it does; got {there!r}")
        waiting += zip(mine[1], yours[1], strict=True)
    return found


def _placed(source: Any, aval: Aval, place: Any, name: str) -> Any:
    """One array on the mesh."""
    if aval.dtype == np.float64 and not jax.config.jax_enable_x64:
        how = "write jax.config.update('jax_enable_x64', True), or compile for arrays of float32"
        raise VectorError(f"argument {name} is of float64, which is off in JAX: {how}")
    what, shape, kind, part = _opened(source, name)
    if shape is not None and shape != aval.shape:
        raise SpaceError(f"argument {name} has shape {aval.shape}; {what} has {shape}: compile the function for that")
    if kind is not None:
        _fits(what, kind, aval, name)
    if isinstance(source, jax.Array):
        return put(source.astype(aval.dtype), place)
    known: dict[Any, Any] = {}

    def read(index: Any) -> Any:
        slices = tuple([slice(*s.indices(n)) for s, n in zip(index, aval.shape, strict=True)])
        key = tuple([(s.start, s.stop) for s in slices])
        if key not in known:  # several devices of a process may have the same part
            found, due = np.asarray(part(slices)), tuple([stop - start for start, stop in key])
            if found.shape != due:
                raise SpaceError(f"{what} gives shape {found.shape} for {slices} of argument {name}; {due} is due")
            _fits(what, found.dtype, aval, name)
            known[key] = found.astype(aval.dtype, copy=False)
        return known[key]

    return jax.make_array_from_callback(aval.shape, place, read)


def _fits(what: str, kind: Any, aval: Aval, name: str) -> None:
    if not np.can_cast(kind, aval.dtype, "same_kind"):
        raise VectorError(f"argument {name} is of {aval.dtype}; {what} has {kind}: compile the function for that")


def _opened(source: Any, name: str) -> tuple[str, tuple[int, ...] | None, Any, Part]:
    """What a source is called, its shape and type where they are known, and its parts."""
    path: Any = source
    columns: Any = None
    if type(source) is tuple and len(source) == 2:
        path, columns = source
    paths: list[Any] = path if isinstance(path, list) else [path]
    if paths and all([isinstance(p, (str, Path)) for p in paths]):
        files = [Path(p) for p in paths]
        files = [f for p in files for f in (sorted(p.glob("*.parquet")) if p.is_dir() else [p])]
        if columns is not None and files and all([f.suffix in PARQUET for f in files]):
            return _columns(files, columns)
        if len(files) == 1 and files[0].suffix == ".npy" and columns is None:
            mapped: Any = np.load(files[0], mmap_mode="r")
            return str(path), mapped.shape, mapped.dtype, mapped.__getitem__
        how = "a .npy file, or Parquet files with the columns to read, ('rows.parquet', ['a', 'b'])"
        raise VectorError(f"a file for argument {name} is {how}; got {source!r}")
    if hasattr(source, "shape") and hasattr(source, "dtype"):
        array = cast("Any", source)
        return f"the {type(source).__name__}", tuple(array.shape), np.dtype(array.dtype), array.__getitem__
    if callable(source):
        return f"the function {getattr(source, '__name__', '')}".strip(), None, None, source
    if isinstance(source, (float, int)):
        return "the number", (), np.asarray(source).dtype, lambda index: source
    how = "an array, a file, or a function that gets a slice of each axis and gives that part"
    raise VectorError(f"a source for argument {name} is {how}; got {source!r}")


def _columns(files: list[Path], columns: Any) -> tuple[str, tuple[int, ...], Any, Part]:
    """Columns of Parquet files, one file after the other; of a list of names, side by side."""
    try:
        from pyarrow import parquet
    except ImportError:
        how = "pip install 'riesz[tables]'"
        raise VectorError(f"Parquet files are read by Arrow, which is not installed: {how}") from None
    one = isinstance(columns, str)
    names, what = [columns] if one else list(columns), str(files[0])
    opened = [parquet.ParquetFile(file) for file in files]
    schema = opened[0].schema_arrow
    if missing := [n for n in names if n not in schema.names]:
        raise VectorError(f"{what} has no column {missing[0]!r}: it has {', '.join(schema.names)}")
    kind = np.result_type(*[np.dtype(schema.field(n).type.to_pandas_dtype()) for n in names])
    if kind.kind not in "fiub":
        raise VectorError(f"columns {', '.join(names)} of {what} are of {kind}: numbers are due")
    groups = [(f, g) for f in opened for g in range(f.num_row_groups)]
    ends = np.cumsum([0, *[f.metadata.row_group(g).num_rows for f, g in groups]])

    def part(index: tuple[slice, ...]) -> Any:
        rows, most = index[0], int(ends[-1])
        start, stop, _ = rows.indices(most)
        found = np.empty((stop - start, len(names)), kind)
        for (file, group), first, last in zip(groups, ends[:-1], ends[1:], strict=True):
            if first >= stop or last <= start:
                continue
            table = file.read_row_group(group, columns=names)
            a, b = max(start, first), min(stop, last)
            for k, n in enumerate(names):
                column = table.column(n).slice(a - first, b - a)
                if column.null_count:
                    raise VectorError(f"column {n!r} of {what} has missing values between rows {a} and {b}")
                found[a - start : b - start, k] = column.to_numpy()
        return found[:, 0] if one else found[:, index[1]]

    return what, (int(ends[-1]),) if one else (int(ends[-1]), len(names)), kind, part
