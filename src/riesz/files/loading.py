"""`rz.load`: a table of entries as things. Nothing in a file is executed, and what is not known is refused."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np

from ..errors import FileError, RieszError
from ..ops.op import Op, Reduction
from ..programs.program import INPUT, Constant, Program, several
from ..programs.sub_programs import Call, Loop
from ..relations.base import seal
from ..relations.index_sets import Set
from ..runtime.interning import children
from ..spaces.space import Space
from .container import FileReader
from .kinds_of_things import BY_NAME, named, nodes

MOST_DEPTH = 50
MOST_NUMBERS = 1 << 62
MOST_PARTS = 1 << 16
"""A set or a space that is written as `(2×2) + (2×2)` has this many parts at most; shared ones count each time."""


def load(path: Any) -> Any:
    """What `rz.save` wrote. Arrays are mapped into memory, not read.

    A file of an unknown version, with unknown names, or whose parts do not fit together is a FileError. Loading runs no
    code from the file, and takes no more memory than the file's size and a small multiple of its description.

    >>> import os, tempfile, riesz as rz
    >>> path = os.path.join(tempfile.mkdtemp(), "f.rz")
    >>> rz.save(path, rz.sin @ rz.exp)
    >>> rz.load(path)
    sin ∘ exp
    """
    try:
        reader = FileReader(path)
        return Table(reader).root()
    except (FileError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except zipfile.BadZipFile as problem:
        raise FileError(f"{path} is no file of riesz: {problem}") from None
    except RieszError as problem:
        raise FileError(f"{path} holds something that does not fit together: {problem}") from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RecursionError) as problem:
        raise _broken(path, problem) from None
    except (RuntimeError, TypeError, ValueError, MemoryError, NotImplementedError, StopIteration) as problem:
        raise _broken(path, problem) from None


def _broken(path: Any, problem: Exception) -> FileError:
    said = str(problem)[:200]
    return FileError(f"{path} is broken: {type(problem).__name__}{f' ({said})' if said else ''}")


class Table:
    """The table while it is read."""

    def __init__(self, reader: FileReader) -> None:
        self.reader = reader
        self.things: list[Any] = []
        self._arrays: dict[int, Any] = {}
        self._names: dict[int, object] = {}
        self._parts: dict[Any, int] = {}  # how many parts sets and spaces have when written out
        entries = reader.content.get("entries")
        if not isinstance(entries, list):
            raise FileError("the entries of a file are a list")
        for entry in entries:
            self.things.append(self._entry(entry))

    def root(self) -> Any:
        """What was saved."""
        return self.value(self.reader.content.get("root"))

    def _entry(self, entry: Any) -> Any:
        if not isinstance(entry, dict) or not isinstance(entry.get("k"), str):
            raise FileError("an entry has a kind")
        name = entry["k"]
        if name == "Program":
            return self._program(entry)
        parts = [self.value(v) for v in entry["v"]]
        if name in BY_NAME:
            return BY_NAME[name].made(*parts)
        kind: Any = nodes().get(name)
        if kind is None:
            raise FileError(f"{name!r} is nothing that a file of riesz may hold")
        if len(parts) > len(kind.fields):
            raise FileError(f"{name} has {len(kind.fields)} parts; the file has {len(parts)}")
        found = kind(*parts)
        for part in (found, *[getattr(found, end, None) for end in _ENDS]):
            if isinstance(part, (Set, Space)):
                self._sized(part)
        return found

    def _sized(self, whole: Any) -> None:
        """Refuse a set or a space that is too large when written out: a short file may share parts many times."""
        known, waiting = self._parts, [whole]
        while waiting:
            this = waiting[-1]
            inside = children(this) if this not in known else []
            new = [c for c in inside if c not in known]
            waiting += new
            if not new:
                waiting.pop()
                known.setdefault(this, 1 + sum([known[c] for c in inside]))
        what, size = ("set", whole.size) if isinstance(whole, Set) else ("space", whole.dim)
        if known[whole] > MOST_PARTS or size > MOST_NUMBERS:
            raise FileError(f"a {what} has more than {MOST_PARTS:,} parts, or more than 2⁶² numbers")

    def value(self, x: Any, depth: int = 0) -> Any:
        """A value from JSON."""
        if x is None or isinstance(x, (bool, str)):
            return x
        if isinstance(x, int):
            return x
        if not isinstance(x, dict) or not x or depth > MOST_DEPTH:
            raise FileError(f"unknown value {str(x)[:50]!r}")
        kind = next(iter(x))
        inside = x[kind]
        deeper = depth + 1
        match kind:
            case "r":
                return self._at(self.things, inside)
            case "t":
                return tuple([self.value(v, deeper) for v in inside])
            case "l":
                return [self.value(v, deeper) for v in inside]
            case "d":
                return {self.value(k, deeper): self.value(v, deeper) for k, v in inside}
            case "u":
                return frozenset([self.value(v, deeper) for v in inside])
            case "f":
                return float.fromhex(inside)
            case "i":
                if len(inside) > 40:
                    raise FileError("a whole number has at most 40 digits")
                return int(inside)
            case "s":
                return slice(*[self.value(v, deeper) for v in inside])
            case "e":
                return Ellipsis
            case "o" if type(inside) is int:
                return self._names.setdefault(inside, object())
            case "y":
                return self._dtype(inside)
            case "a":
                return self.array(inside)
            case "n":
                return self.array(inside)[()]
            case "b" if inside in _PLAIN:
                return _PLAIN[inside]
            case "c":
                return named(inside)
            case "m":
                return self._sparse(inside, x["z"])
            case _:
                raise FileError(f"unknown value of kind {kind!r}")

    def _dtype(self, text: Any) -> Any:
        dtype = np.dtype(text) if isinstance(text, str) and len(text) < 6 else None
        if dtype is None or dtype.kind not in "fiubc":
            raise FileError(f"{text!r} is no type of numbers")
        return np.dtype(float) if dtype.str == "<f8" else dtype

    def _at(self, things: list[Any], at: Any) -> Any:
        if type(at) is not int or not 0 <= at < len(things):
            raise FileError(f"entry {at!r} does not come before what it is part of")
        return things[at]

    def array(self, at: Any) -> Any:
        """An array, mapped once."""
        if type(at) is not int or at < 0:
            raise FileError(f"{at!r} is no number of an array")
        if at not in self._arrays:
            self._arrays[at] = seal(self.reader.array(at))
        return self._arrays[at]

    def _sparse(self, parts: Any, shape: Any) -> Any:
        import scipy.sparse as sparse

        data, indices, indptr = [self.array(p) for p in parts]
        m, n = [int(k) for k in shape]
        if m < 0 or n < 0 or len(indptr) != m + 1:
            raise FileError("a sparse matrix has one offset for each row, and one")
        found: Any = sparse.csr_array((data, indices, indptr), shape=(m, n))
        found.check_format(full_check=True)
        return found

    def _program(self, entry: Any) -> Program:
        """The program of some columns; shapes are computed again, step by step."""
        which, counts, flat = [self.array(c) for c in entry["columns"]]
        if which.ndim != 1 or which.shape != counts.shape or flat.ndim != 1:
            raise FileError("the columns of a program have one length")
        if not all([c.dtype.kind == "i" for c in (which, counts, flat)]):
            raise FileError("the columns of a program hold whole numbers")
        ops = [self._op(op) for op in entry["ops"]]
        program = Program()
        if len(which) and (which.min() < 0 or which.max() >= len(ops) or counts.min() < 0):
            raise FileError("a step of a program has an op")
        ends = np.cumsum(counts, dtype=np.int64)
        if (int(ends[-1]) if len(ends) else 0) != len(flat):
            raise FileError("the arguments of a program's steps are as many as they say")
        if len(flat) and (flat.min() < 0 or (flat >= np.repeat(np.arange(len(which)), counts)).any()):
            raise FileError("a step of a program reads earlier ones")
        arguments, at, shapes, known = flat.tolist(), 0, program.shapes, dict[Any, Any]()
        for k, end in zip(which.tolist(), ends.tolist(), strict=True):
            args = tuple(arguments[at:end])
            at = end
            key = (k, *[shapes[a] for a in args])
            if key not in known:
                known[key] = _shape(*ops[k], key[1:])
            program.args.append(args)
            shapes.append(known[key])
        program.ops = [ops[k][0] for k in which.tolist()]
        for name, ends_ in (("in", program.inputs), ("out", program.outputs)):
            ends_.extend([self._slot(s, len(shapes)) for s in entry[name]])
        inputs = [s for s, op in enumerate(program.ops) if op is INPUT]
        if sorted(program.inputs) != inputs:
            raise FileError("the inputs of a program are its slots that are given")
        program.calm = bool(entry.get("calm"))
        return program

    def _slot(self, slot: Any, count: int) -> int:
        if type(slot) is not int or not 0 <= slot < count:
            raise FileError(f"a program has no slot {slot!r}")
        return slot

    def _op(self, x: Any) -> tuple[Any, Any]:
        """An op and its shape; None where that follows from the arguments."""
        if isinstance(x, dict) and "x" in x:
            shape = tuple(x["x"])
            if not all([type(n) is int and 0 <= n < MOST_NUMBERS for n in shape]):
                raise FileError(f"an input has the shape {shape}")
            return INPUT, shape
        if isinstance(x, dict) and "k" in x:
            value = self.value(x["k"])
            if not hasattr(value, "shape") and type(value) not in (float, int, bool):
                raise FileError("a constant is an array or a number")
            return Constant(value), tuple(np.shape(value)) if not hasattr(value, "shape") else tuple(value.shape)
        op = self.value(x)
        if not isinstance(op, Op) and type(op) is not float:
            raise FileError("a step of a program is an op or a scaling")
        return op, None


def _shape(op: Any, shape: Any, given: tuple[Any, ...]) -> Any:
    """The shape of a step, from those of its arguments."""
    if shape is not None:
        if given:
            raise FileError("inputs and constants have no arguments")
        return shape
    if type(op) is float:
        if len(given) != 1 or several(given[0]):
            raise FileError("a scaling has one argument")
        return given[0]
    _fits(op, given)
    found = op.shape_of(given)
    for one in found if several(found) else (found,):
        if not all([isinstance(n, (int, np.integer)) and n >= 0 for n in one]) or np.prod([1.0, *one]) > MOST_NUMBERS:
            raise FileError(f"a step has the shape {one}")
    return found


def _fits(op: Any, given: tuple[Any, ...]) -> None:
    """Refuse arguments of other shapes than those that relations and programs inside an op are made for."""
    if isinstance(op, Reduction):
        boxes = [r.source.box for r in op.relations]
        have = [s[op.axis : op.axis + len(box or ())] for s, box in zip(given, boxes, strict=True)]
        if have != boxes or type(op.axis) is not int or op.axis < 0:
            raise FileError(f"a reduction is of arrays with axes {boxes}; got {have}")
    if isinstance(op, Call):
        for p in op.branches:
            have = [p.shapes[s] for s in p.inputs]
            ends = [p.shapes[s] for s in p.outputs]
            if list(given[op.fixed :]) != have or ends != [op.branches[0].shapes[s] for s in op.branches[0].outputs]:
                raise FileError(f"a program inside takes arrays of shapes {have}; got {given[op.fixed :]}")
    if isinstance(op, Loop):
        body, c, m = op.body, op.consts, op.carries
        if not all([type(n) is int and n >= 0 for n in (c, m, op.length)]) or c + m > len(given) != len(body.inputs):
            raise FileError("a loop has carries, a length, and arguments for its body")
        have = [body.shapes[s] for s in body.inputs]
        rest = [(op.length, *s) for s in have[c + m :]]
        if [*have[: c + m], *rest] != list(given) or have[c : c + m] != [body.shapes[s] for s in body.outputs[:m]]:
            raise FileError(f"the body of a loop takes arrays of shapes {have}; got {given}")


_ENDS = ("source", "target", "domain", "codomain", "left", "right")
_PLAIN = {"float": float, "int": int, "bool": bool, "list": list, "dict": dict, "tuple": tuple}
