"""What a user says about placement, as the placement of each array: by index set, or by argument and axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple, Protocol, cast

from ...errors import IndexSetError, SpaceError
from ...functions.function import TracedFunction
from ...functions.points import argument_names
from ...relations.index_sets import Set, seg
from .communication import Names
from .partition import Shape, Spec, by_sets, whole

Candidate = tuple[dict[str, int], dict[Set, str]]
"""Axes of a mesh with how many devices lie along them, and a placement."""


class Kinds(Protocol):
    """What is known of arguments: shapes and types of their arrays, and which arrays belong to which argument."""

    @property
    def avals(self) -> Sequence[Any]: ...
    @property
    def owners(self) -> Sequence[Sequence[int]]: ...


class Seen(NamedTuple):
    """Arguments that are not there any more."""

    avals: Sequence[Any]
    owners: Sequence[Sequence[int]]


class Placing(NamedTuple):
    """A mesh, and who has what: of each array leaf of the arguments, and by index set (the lengths of its axes)."""

    mesh: Any
    specs: tuple[Spec, ...]
    sets: dict[Shape, Names]

    def moving(self, which: Sequence[bool]) -> Placing:
        """The placement of arguments and the tangents of some."""
        more = [spec for spec, moves in zip(self.specs, which, strict=True) if moves]
        return self._replace(specs=(*self.specs, *more))

    def turned(self, fixed: int | None, ends: Sequence[Spec]) -> Placing:
        """The placement of the first arguments and cotangents of results."""
        return self._replace(specs=(*self.specs[:fixed], *ends))


def checked_mesh(mesh: Any) -> dict[str, int]:
    """The axes of a mesh and how many devices lie along them."""
    try:
        sizes = cast("Mapping[Any, Any]", mesh if isinstance(mesh, Mapping) else mesh.shape)
        return {str(k): int(n) for k, n in dict(sizes).items()}
    except (AttributeError, TypeError, ValueError):
        make = "jax.make_mesh((8,), ('data',))"
        raise SpaceError(f"mesh is a mesh of JAX devices, as {make} makes; got {mesh!r}") from None


def names_in(function: TracedFunction, given: Kinds) -> list[str]:
    """What the arguments of a function are called."""
    known = argument_names(function.function, len(given.owners))
    return [known[i] if i < len(known) else f"x{i}" for i in range(len(given.owners))]


def placed(place: Any, given: Kinds, names: Sequence[str], mesh: Any) -> Placing:
    """The placement of arguments of a kind. `names`: of the arguments."""
    sizes = checked_mesh(mesh)
    if not isinstance(place, Mapping):
        how = "{rz.seg(1000): 'data'} by index set, or {1: ('data', None)} by argument and axes"
        raise SpaceError(f"place is a dict, {how}; got {place!r}")
    sets: dict[Shape, Names] = {}
    by_argument: dict[int, Any] = {}
    for key, value in cast("Mapping[Any, Any]", place).items():
        if isinstance(key, Set):
            sets[_box(key)] = _names(value, sizes, f"the index set {key}")
        else:
            by_argument[_argument(key, names)] = value
    shapes = [a.shape for a in given.avals]
    for box in sets:
        if not any([shape[k : k + len(box)] == box for shape in shapes for k in range(len(shape))]):
            there = sorted({n for shape in shapes for n in shape})
            found = ", ".join(map(str, there)) or "no axes"
            there = f"arguments are {', '.join(map(str, shapes))}, over sets of {found} elements"
            raise IndexSetError(f"no argument has an axis over {_set_text(box)}: {there}")
    specs = [by_sets(shape, sets) for shape in shapes]
    for i, value in by_argument.items():
        for k in given.owners[i]:
            specs[k] = _spec(value, shapes[k], sizes, names[i])
    for i, owned in enumerate(given.owners):
        for k in owned:
            _check(specs[k], shapes[k], sizes, names[i])
    return Placing(mesh, tuple(specs), sets)


def _set_text(box: Shape) -> str:
    return " * ".join([f"seg({n})" for n in box])


def _box(key: Set) -> Shape:
    if not key.box:
        raise IndexSetError(f"the index set {key} is no product of segments, so no axes of arrays are over it")
    return key.box


def _argument(key: Any, names: Sequence[str]) -> int:
    if isinstance(key, str) and key in names:
        return list(names).index(key)
    if isinstance(key, int) and -len(names) <= key < len(names):
        return key % len(names)
    known = ", ".join([f"{i} ({name})" for i, name in enumerate(names)])
    what = "index sets, or arguments by number or name"
    raise SpaceError(f"the keys of place are {what}; got {key!r}, and the arguments are {known}")


def _names(value: Any, sizes: Mapping[str, int], where: str) -> Names:
    """Axes of the mesh, as one name, several, or None."""
    found = () if value is None else (value,) if isinstance(value, str) else tuple(value)
    for name in found:
        if name not in sizes:
            known = ", ".join(map(repr, sizes))
            raise SpaceError(f"{where} is placed along {name!r}, which is no axis of the mesh: it has {known}")
    if len(set(found)) < len(found):
        raise SpaceError(f"{where} is placed along {value!r}: each axis of the mesh may come once")
    return found


def _spec(value: Any, shape: Shape, sizes: Mapping[str, int], name: str) -> Spec:
    """The placement of one array, from a name for its first axis, or names for its axes, or a PartitionSpec."""
    axes = (value,) if value is None or isinstance(value, str) else tuple(value)
    if len(axes) > len(shape):
        raise SpaceError(f"argument {name} has shape {shape}; place has {len(axes)} axes for it: {value!r}")
    found = tuple([_names(axis, sizes, f"axis {k} of argument {name}") for k, axis in enumerate(axes)])
    return (*found, *whole(shape[len(found) :]))


def _check(spec: Spec, shape: Shape, sizes: Mapping[str, int], name: str) -> None:
    used = [n for names in spec for n in names]
    if len(set(used)) < len(used):
        raise SpaceError(f"argument {name} of shape {shape}: an axis of the mesh cuts one axis of an array only")
    for k, (n, names) in enumerate(zip(shape, spec, strict=True)):
        count = 1
        for one in names:
            count *= sizes[one]
        if n % count:
            along = " and ".join(map(repr, names))
            more = -n % count
            out = f"fill it up by {more} to {n + more} (with weights of zero for them), or leave the axis whole"
            raise SpaceError(f"axis {k} of argument {name} has {n} elements, and {count} devices along {along}: {out}")


def candidates(shapes: Sequence[Shape], devices: int) -> list[Candidate]:
    """Placements to compare: each index set of the arguments that the devices divide, and pairs of them on a mesh of
    two axes."""
    lengths = sorted({n for shape in shapes for n in shape if n > 1}, reverse=True)[:8]
    found: list[Candidate] = [({"a": devices}, {})]
    for n in [n for n in lengths if not n % devices]:
        found.append(({"a": devices}, {seg(n): "a"}))
    for a in [k for k in range(2, devices) if not devices % k]:
        b = devices // a
        for m, n in permutations(lengths, 2):
            if not m % a and not n % b:
                found.append(({"a": a, "b": b}, {seg(m): "a", seg(n): "b"}))
    return found
