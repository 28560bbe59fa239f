"""Interned nodes: build the same thing twice, get the same object, so equality is `is` and hashing is free.

Plain frozen dataclasses hash and compare by walking, which is exponential on shared terms. A node's key holds
its children as objects (their hash is their identity), numbers with type and bits, and arrays by identity.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast, dataclass_transform

import numpy as np


def _atom(value: Any) -> Any:
    kind = cast(Any, type(value))
    if kind is tuple:
        return tuple([_atom(v) for v in value])
    if isinstance(value, tuple):  # a named one
        return (kind, *[_atom(v) for v in cast("tuple[Any, ...]", value)])
    if kind is float:
        return (float, value.hex())  # keeps 0.0 and -0.0, and every nan, apart
    if kind in (int, bool):
        return (kind, value)
    if isinstance(value, np.ndarray):
        return (np.ndarray, id(cast(Any, value)))
    return value


_assign = object.__setattr__


def derived(*, init: Literal[False] = False) -> Any:
    """Marks an attribute that `check` computes from the fields."""
    return derived


_table: dict[Any, weakref.KeyedRef[Any, Any]] = {}
"""The nodes there are. A reference knows its key, so that a node nobody holds leaves the table."""
_lock = threading.Lock()


def _forget(entry: weakref.KeyedRef[Any, Any]) -> None:
    if _table is not None and _table.get(entry.key) is entry:  # pyright: ignore  (None: Python is about to end)
        del _table[entry.key]


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(derived,))
class Interned(type):
    """Metaclass: annotated fields become constructor arguments; equal arguments give the same object."""

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> None:
        super().__init__(name, bases, space)
        inherited = next((b.fields for b in bases if hasattr(b, "fields")), ())  # pyright: ignore
        notes = {n: str(note) for n, note in space.get("__annotations__", {}).items() if n not in inherited}
        own = [n for n, note in notes.items() if "ClassVar" not in note and space.get(n) is not derived]
        cls.fields: tuple[str, ...] = (*inherited, *own)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if named or len(args) != len(cls.fields):
            args = cls._complete(args, named)
        key = (cls, *[a if isinstance(type(a), Interned) else _atom(a) for a in args])
        entry = _table.get(key)
        found = None if entry is None else entry()
        if found is not None:
            return found
        node: Any = cast(Any, cls).__new__(cls)
        for field, value in zip(cls.fields, args, strict=True):  # one by one: Python then stores a node without a dict
            _assign(node, field, value)
        node.check()
        with _lock:  # two threads may have built the same node: the first one counts
            entry = _table.get(key)
            found = None if entry is None else entry()
            if found is None:
                found = node
                _table[key] = weakref.KeyedRef(node, _forget, key)
                node.adopt()
        return found

    def _complete(cls, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        rest = cls.fields[len(args) :]
        missing = [f for f in rest if f not in named and not hasattr(cls, f)]
        extra = [n for n in named if n not in rest]
        if missing or extra or len(args) > len(cls.fields):
            wanted = ", ".join(cls.fields)
            raise TypeError(f"{cls.__name__} takes ({wanted}); missing {missing}, unexpected {extra}")
        return (*args, *[named[f] if f in named else getattr(cls, f) for f in rest])


NodeT = TypeVar("NodeT")


def documented(node: NodeT, text: str | None) -> NodeT:
    """A node with a docstring of its own, which `help(node)` shows instead of that of its class."""
    if text is not None:
        _assign(node, "__doc__", text)
    return node


class Node(metaclass=Interned):
    """An immutable, interned node. `check` validates the fields and may set derived attributes with `_set`."""

    fields: ClassVar[tuple[str, ...]]

    def check(self) -> None:
        """Validate the fields; called once, when the node is first built."""

    def adopt(self) -> None:
        """Called once, when the node has become the one of its kind."""

    def _set(self, **derived: Any) -> None:
        for name, value in derived.items():
            _assign(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}; build a new one instead")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return rebuild, (flat(self),)

    def parts(self) -> tuple[Any, ...]:
        """The values of the fields, in order."""
        return tuple([getattr(self, f) for f in self.fields])


class _Ref(NamedTuple):
    """Stands for an earlier node in a flattened list."""

    at: int


def postorder(root: Node) -> list[Node]:
    """Every node reachable from root once, children before parents; no recursion."""
    seen: set[Node] = set()
    order: list[Node] = []
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if type(node) is tuple:  # a visited node, wrapped: its children are done
            order.append(cast(Any, node)[0])
        elif node not in seen:
            seen.add(node)
            stack.append((node,))
            stack.extend([c for c in reversed(children(node)) if c not in seen])
    return order


def children(node: Node) -> list[Node]:
    """The nodes among a node's fields, tuples included, in order."""
    found: list[Node] = []
    pending: list[Any] = list(reversed(node.parts()))
    while pending:
        part = pending.pop()
        if isinstance(part, Node):
            found.append(part)
        elif type(part) is tuple:
            pending.extend(reversed(cast("tuple[Any, ...]", part)))
    return found


def flat(root: Node) -> list[tuple[Any, tuple[Any, ...]]]:
    """A node as a list of (class, fields) with references backwards: what is pickled, at any depth."""
    nodes = postorder(root)
    place = {node: i for i, node in enumerate(nodes)}
    return [(type(n), each(n.parts(), lambda p: _Ref(place[p]) if isinstance(p, Node) else p)) for n in nodes]


def rebuild(rows: list[tuple[Any, tuple[Any, ...]]]) -> Any:
    """The node that `flat` took apart."""
    built: list[Any] = []
    for kind, parts in rows:
        found = each(parts, lambda p: built[p.at] if isinstance(p, _Ref) else p)
        built.append(getattr(kind, "rebuilt", kind)(*found))
    return built[-1]


def each(parts: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Parts changed one by one, also those in tuples."""
    return tuple([each(cast(Any, p), change) if type(p) is tuple else change(p) for p in parts])
