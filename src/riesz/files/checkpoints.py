"""Checkpoints: long work in a file every so often, from where it goes on to the same bits.

A file holds marks of what the work is of, how far it is, and its state. It is written beside and then put in place.
Where arrays are on devices of several processes, each process writes a file of its own parts and keeps the one before
it, since others may not have come as far: all go on from the last round that every one has.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, VectorError
from ..spaces.layout import container
from ..tracing.argument_trees import flatten, unflatten
from .loading import load
from .saving import save


class Checkpoint:
    """The file of some work. `of` says by name what it depends on: numbers, words, trees of arrays."""

    def __init__(self, path: Any, of: Mapping[str, Any], every: int = 1) -> None:
        if not isinstance(every, int) or every < 1:
            raise VectorError(f"every={every!r}: how many rounds lie between two checkpoints is due, 1 or more")
        self.every, leaves = every, [x for part in of.values() for x in flatten(part)[0]]
        self.shared = any([not getattr(x, "is_fully_addressable", True) for x in leaves])
        self.rank, self.count = _process() if self.shared else (0, 1)
        of = {**of, "devices": " and ".join(sorted({f"{len(x.sharding.device_set)}" for x in leaves if _placed(x)}))}
        self.marks = {name: _mark(part) for name, part in of.items()}
        path = Path(os.fspath(path))
        self.path = path.with_name(f"{path.name}.{self.rank}-of-{self.count}") if self.shared else path
        self.before = self.path.with_name(f"{self.path.name}.before")

    def found(self, like: Any) -> tuple[int, Any] | None:
        """How far the work was and its state, a tree like `like`; None where nothing is kept yet."""
        files, problem, there = [self.path, *[self.before] * self.shared], None, dict[int, Any]()
        for file in files:
            try:
                kept = load(file) if file.exists() else None
                if kept is not None:
                    there[self._number(kept, file)] = kept
            except FileError as error:
                problem = problem or error
        if self.shared:
            there = self._agreed(there, problem)
        elif problem is not None:
            raise problem
        if not there:
            return None
        number = max(there)
        of, state = _named(like), there[number]["state"]
        if of.keys() != state.keys():
            what = f"the parts {', '.join(state)}; the state of this work has {', '.join(of)}"
            raise FileError(f"{self.path} holds {what}")
        mesh = next((x.sharding.mesh for x in of.values() if _placed(x)), None)
        return number, unflatten(flatten(like)[1], [_restored(state[name], mesh, self.path) for name in of])

    def _number(self, kept: Any, file: Path) -> int:
        """The round of a file, if it is of this work."""
        if not isinstance(kept, dict) or kept.get("kind") != "checkpoint":
            raise FileError(f"{file} is no checkpoint: give another path")
        marks = kept["marks"]
        if wrong := [name for name in {**self.marks, **marks} if marks.get(name) != self.marks.get(name)]:
            was = f"{wrong[0]}: there {_said(marks, wrong[0])}, here {_said(self.marks, wrong[0])}"
            raise FileError(
                f"{file} is the checkpoint of other work: it differs in {', '.join(wrong)} ({was}). Delete the file to "
                "begin anew, or give another path"
            )
        return int(kept["number"])

    def _agreed(self, there: dict[int, Any], problem: FileError | None) -> dict[int, Any]:
        """What all processes have; an error in one is an error in all."""
        from jax.experimental.multihost_utils import process_allgather

        mine = np.full(3, -1, np.int32)
        mine[: len(there)] = list(there)
        mine[2] = problem is not None
        every = np.asarray(process_allgather(mine)).reshape(self.count, 3)
        if problem is not None and not there:
            raise problem
        if every[:, 2].any() and (every[:, :2] < 0).all(axis=1).any():
            raise FileError(f"{self.path}: another process cannot go on from its file; its output says why")
        common = set.intersection(*[{int(k) for k in row[:2] if k >= 0} for row in every])
        if not common and (every[:, :2] >= 0).any():
            far = ", ".join([f"process {k}: {int(row[:2].max())}" for k, row in enumerate(every)])
            raise FileError(f"{self.path}: the files of the processes have no round in common ({far}); delete them")
        return {k: kept for k, kept in there.items() if k in common}

    def keep(self, number: int, state: Any) -> None:
        """Write the state after a round, if it is one of those that are kept."""
        if number % self.every:
            return
        leaves = _named(state)
        if not self.shared and not all([getattr(x, "is_fully_addressable", True) for x in leaves.values()]):
            raise FileError(f"{self.path} is to hold arrays of several processes: put the first state on the mesh too")
        kept = {"kind": "checkpoint", "marks": self.marks, "number": number}
        new = self.path.with_name(f"{self.path.name}.new")
        save(new, {**kept, "state": {name: _parts(x) for name, x in leaves.items()}})
        with open(new, "rb") as file:
            os.fsync(file.fileno())
        if self.shared:
            from jax.experimental.multihost_utils import sync_global_devices

            sync_global_devices("checkpoint")  # nobody is two rounds ahead
            if self.path.exists():
                os.replace(self.path, self.before)
        os.replace(new, self.path)


def resumed_loop(rounds: int, step: Callable[[int, Any], Any], state: Any, *, checkpoint: Any, every: int = 1) -> Any:
    """The state after so many rounds of `state = step(k, state)`, kept in a file after every so many of them. Called
    again, it goes on from the file, to the same bits.

    The state is a tree of numbers and arrays, of NumPy or JAX, on one device or on those of several processes. A file
    that began from another state is refused.

    >>> import os, tempfile, numpy as np, riesz as rz
    >>> path = os.path.join(tempfile.mkdtemp(), "descent.rz")
    >>> slope = rz.grad(lambda x: np.sum((x - 3.0) ** 2))
    >>> step = lambda k, x: x - 0.25 * slope(x)
    >>> x = rz.resumed_loop(20, step, np.zeros(2), checkpoint=path, every=5)
    >>> rz.resumed_loop(40, step, np.zeros(2), checkpoint=path, every=5)  # begins with round 20
    array([3., 3.])
    """
    file = Checkpoint(checkpoint, {"the state at first": state}, every)
    number, state = file.found(state) or (0, state)
    if number > rounds:
        raise FileError(f"{file.path} is at round {number} already; {rounds} are asked for: delete it to begin anew")
    for k in range(number, rounds):
        state = step(k, state)
        file.keep(k + 1, state)
    return state


def _named(state: Any) -> dict[str, Any]:
    """The numbers and arrays of a tree in its order, by where they are: dicts may have any order."""
    found, waiting = dict[str, Any](), [("state", state)]
    while waiting:
        name, value = waiting.pop()
        parts = None if value is None else container(value)
        if parts is not None:
            form, inside = parts
            keys = range(len(inside)) if form is None or form.names is None else form.names
            waiting += reversed([(f"{name}[{key!r}]", part) for key, part in zip(keys, inside, strict=True)])
        elif value is not None:
            found[name] = value
    return found


def _process() -> tuple[int, int]:
    jax = sys.modules["jax"]
    return jax.process_index(), jax.process_count()


def _placed(x: Any) -> bool:
    """Whether an array is cut among devices by the axes of a mesh."""
    return hasattr(getattr(x, "sharding", None), "spec")


def _mark(x: Any) -> str:
    """What a value is known by: a short text itself, else a digest of its numbers."""
    if isinstance(x, (str, int)):
        return str(x)
    leaves, tree = flatten(x)
    forms = [(e.arity, e.form.kind.__name__, e.form.names) if getattr(e, "form", None) else repr(e) for e in tree]
    digest, shapes = hashlib.sha256(repr(forms).encode()), list[str]()
    for leaf in leaves:
        for part in [s.data for s in leaf.addressable_shards] if hasattr(leaf, "addressable_shards") else [leaf]:
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(array.tobytes())
        shapes.append(f"{getattr(leaf, 'dtype', type(leaf).__name__)}{list(np.shape(leaf))}")
    return f"{', '.join(shapes[:4])} {digest.hexdigest()[:16]}"


def _said(marks: Any, name: str) -> str:
    return marks.get(name) or "nothing"


def _parts(x: Any) -> Any:
    """An array or number as a file has it; of an array on a mesh the parts that are here."""
    if not _placed(x):
        return {"value": np.asarray(x) if hasattr(x, "addressable_shards") else x, "jax": hasattr(x, "sharding")}
    spec = [s if s is None or isinstance(s, str) else tuple(s) for s in x.sharding.spec]
    parts = {_begin(s.index): np.asarray(s.data) for s in x.addressable_shards}
    return {"spec": spec, "shape": tuple(x.shape), "at": list(parts), "parts": list(parts.values())}


def _begin(index: Any) -> tuple[int, ...]:
    return tuple([s.start or 0 for s in index])


def _restored(kept: Any, mesh: Any, path: Path) -> Any:
    if "value" in kept:
        value = np.array(kept["value"]) if isinstance(kept["value"], np.ndarray) else kept["value"]
        return sys.modules["jax"].numpy.asarray(value) if kept["jax"] else value
    if mesh is None:
        raise FileError(f"{path} holds arrays on a mesh: put the first state there too, by jax.device_put")
    from jax import make_array_from_callback
    from jax.sharding import NamedSharding, PartitionSpec

    parts = dict(zip(map(tuple, kept["at"]), kept["parts"], strict=True))
    place = NamedSharding(mesh, PartitionSpec(*kept["spec"]))
    if any([_begin(index) not in parts for index in place.addressable_devices_indices_map(kept["shape"]).values()]):
        raise FileError(f"{path} holds the parts of other devices than those of this process; delete it to begin anew")
    return make_array_from_callback(kept["shape"], place, lambda index: np.array(parts[_begin(index)]))
