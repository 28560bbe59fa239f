"""`rz.save`: things as a table of entries, arrays beside it.

Each entry is made of numbers, words, arrays and earlier entries. Programs are columns: which op, which arguments.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import FileError
from ..functions.function import TracedFunction
from ..programs.program import INPUT, Constant, Program
from ..runtime.interning import Node, postorder
from ..tracing.traced import Traced
from . import container
from .kinds_of_things import kind_of, name_of


def save(path: Any, thing: Any, *examples: Any) -> None:
    """Write something to a file, for `rz.load`: terms, spaces, relations, programs, functions at the shapes they were
    called with (or those of examples), gradients and compiled functions as what they are made of, derivations, linear
    maps with their numbers, factored gradients, solvers; numbers, arrays, and tuples, lists and dicts of all these.

    The file has no code. docs/files.md describes it.

    >>> import os, tempfile, numpy as np, riesz as rz
    >>> path = os.path.join(tempfile.mkdtemp(), "energy.rz")
    >>> rz.save(path, rz.function(lambda x: np.sum(x**2)), np.ones(3))
    >>> rz.grad(rz.load(path))(np.arange(3.0))
    array([0., 2., 4.])
    """
    if callable(thing) and not isinstance(thing, Node) and kind_of(thing) is None:
        from ..functions.calling import function

        thing = function(thing)
    if examples:
        inner = thing
        while not isinstance(inner, TracedFunction):
            inner = getattr(inner, "function", None)
            if inner is None:
                raise FileError(f"examples are for functions; got {thing!r}")
        given = inner.given(examples, {})
        given.point = False
        inner.record(given)
    writer = TableWriter()
    content = {"root": writer.value(thing), "entries": writer.entries}
    container.write(path, content, writer.arrays)


class TableWriter:
    """The table while it is written."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.arrays: list[Any] = []
        self._known: dict[Any, int] = {}
        self._keep: list[Any] = []  # alive, so that identities stay

    def value(self, x: Any) -> Any:
        """A value as JSON."""
        kind: Any = type(x)
        if x is None or kind is bool or kind is str:
            return x
        if kind is int:
            return x if abs(x) < 1 << 53 else {"i": str(x)}
        if kind is float:
            return {"f": x.hex()}
        if kind is tuple:
            return {"t": [self.value(v) for v in x]}
        if kind is list:
            return {"l": [self.value(v) for v in x]}
        if kind is dict:
            return {"d": [[self.value(k), self.value(v)] for k, v in x.items()]}
        if kind is slice:
            return {"s": [self.value(v) for v in (x.start, x.stop, x.step)]}
        if x is Ellipsis:
            return {"e": 0}
        if kind is frozenset or kind is set:
            return {"u": [self.value(v) for v in sorted(x, key=repr)]}
        if kind is object:  # a name that is equal to itself only
            self._keep.append(x)
            return {"o": self._known.setdefault(("o", id(x)), len(self._known))}
        if isinstance(x, np.dtype):
            return {"y": x.str}
        if isinstance(x, np.generic):
            return {"n": self._array(np.asarray(x))}
        if isinstance(x, np.ndarray):
            return {"a": self._array(x)}
        if x in (float, int, bool, list, dict, tuple) if isinstance(x, type) else False:
            return {"b": x.__name__}
        if hasattr(x, "tocsr") and hasattr(x, "nnz"):
            made = x.tocsr()
            return {"m": [self._array(v) for v in (made.data, made.indices, made.indptr)], "z": list(made.shape)}
        if isinstance(x, Traced):
            raise FileError("a traced array has no numbers yet, so it cannot be saved")
        if (name := name_of(x)) is not None:
            return {"c": name}
        return {"r": self.place(x)}

    def _array(self, x: Any) -> int:
        if x.dtype.kind not in "fiubc":
            raise FileError(f"an array of {x.dtype} cannot be saved: arrays of numbers can")
        key = ("a", id(x))
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self._keep.append(x)
            self.arrays.append(np.ascontiguousarray(x).reshape(np.shape(x)))
        return self._known[key]

    def place(self, x: Any) -> int:
        """The number of the entry of a thing."""
        if id(x) in self._known:
            return self._known[id(x)]
        if isinstance(x, Node) and kind_of(x) is None:
            for node in postorder(x):
                if id(node) not in self._known and kind_of(node) is None and name_of(node) is None:
                    self._enter(node, {"k": type(node).__name__, "v": [self.value(v) for v in node.parts()]})
            return self._known[id(x)]
        if isinstance(x, Program):
            return self._enter(x, self._program(x))
        found = kind_of(x)
        if found is None:
            raise FileError(f"{_said(x)} cannot be saved: a file holds what riesz computes, and no code of others")
        name, kind = found
        return self._enter(x, {"k": name, "v": [self.value(v) for v in kind.parts(x)]})

    def _enter(self, x: Any, entry: Any) -> int:
        self._keep.append(x)
        self._known[id(x)] = len(self.entries)
        self.entries.append(entry)
        return len(self.entries) - 1

    def _program(self, program: Program) -> Any:
        """Columns: the op of each step by its number in a list, the arguments one after the other."""
        palette: dict[Any, int] = {}
        ops: list[Any] = []
        which = np.zeros(len(program.ops), np.int32)
        for slot, op in enumerate(program.ops):
            if type(op) is float:
                key: Any = op.hex()
            elif type(op) is Constant:
                key = (id(op),)
            elif op is INPUT:
                key = ("x", program.shapes[slot])
            else:
                key = op
            if key not in palette:
                palette[key] = len(ops)
                if type(op) is Constant:
                    ops.append({"k": self.value(op.value)})
                elif op is INPUT:
                    ops.append({"x": list(program.shapes[slot])})
                else:
                    ops.append(self.value(op))
            which[slot] = palette[key]
        counts = np.array([len(a) for a in program.args], np.int32)
        flat = np.array([a for args in program.args for a in args], np.int32)
        columns = [self._array(c) for c in (which, counts, flat)]
        ends = {"in": list(program.inputs), "out": list(program.outputs), "calm": bool(program.calm)}
        return {"k": "Program", "ops": ops, "columns": columns, **ends}


def _said(x: Any) -> str:
    name = getattr(x, "__name__", None) or getattr(x, "name", None)
    return f"the {type(x).__name__} {name}" if isinstance(name, str) else f"a {type(x).__name__}"
