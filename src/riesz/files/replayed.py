"""A function as its traces: what `rz.load` gives for a function that was saved."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ..errors import FileError, SpaceError
from ..functions.traces.given import Given
from ..functions.traces.records import Aval, Record, Static, evaluated


class Replayed:
    """A function that computes what it was saved for: arguments of some shapes."""

    def __init__(self, name: str, names: Any, records: Sequence[Record]) -> None:
        self.__name__ = self.__qualname__ = name
        self.names, self.records = names, list(records)
        if names:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            self.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])

    def __call__(self, *args: Any) -> Any:
        given = Given(args, {}, frozenset())
        for record in self.records:
            if [a.shape for a in record.avals] == [a.shape for a in given.avals]:
                return record.wrap(evaluated(record, given.arrays))
        wanted = " or ".join([str([a.shape for a in r.avals]) for r in self.records])
        got = [a.shape for a in given.avals]
        raise SpaceError(f"{self.__name__} was saved for arrays of shapes {wanted}; got {got}")


def replayed(name: str, names: Any, records: Any) -> Replayed:
    """The function, where its parts fit together."""
    for record in records:
        if not isinstance(record, Record) or not all([isinstance(a, Aval) for a in record.avals]):
            raise FileError("a function is made of its traces")
        program = record.program
        results = [r for r in record.results if isinstance(r, Aval)]
        have = [program.shapes[s] for s in (*program.inputs, *program.outputs)]
        if have != [a.shape for a in (*record.avals, *results)]:
            raise FileError(f"the trace of {name} does not have the shapes it says")
        if len(results) + sum([isinstance(r, Static) for r in record.results]) != len(record.results):
            raise FileError(f"the trace of {name} has results of an unknown kind")
        record.wrap([0.0] * len(results))
    if names is not None and not all([isinstance(n, str) and n.isidentifier() for n in names]):
        raise FileError(f"the names of the arguments of {name} are {names!r}")
    return Replayed(name, tuple(names) if names else None, records)
