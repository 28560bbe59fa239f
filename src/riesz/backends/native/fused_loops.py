"""Loops of one length, one after the other, become one loop: what one writes and the next reads at the same place stays
in a variable.

A program on arrays is a loop for each array that several others read. Joined, every number is read once, and arrays
that nothing reads any more are not written.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from .statements import (
    Assign,
    Blocked,
    Buffer,
    Fail,
    For,
    Lanes,
    Pick,
    Position,
    Read,
    SetNumber,
    Statements,
    Update,
    Value,
)

LOOKED_BACK, UNROLLED, WRITTEN_OUT = 24, 16, 8_000
"""A loop is joined with one of so many before it; inner loops of up to so many rounds are written out, as long as that
adds no more than so many statements in all."""


def fuse(written: Statements) -> None:
    """Join the loops of a function, and forget the memory that nothing reads."""
    body = _forwarded(_flat(written.body, 0, [WRITTEN_OUT]))
    written.body[:] = _forwarded(_joined(body))
    _without_stores(written)


def _flat(body: list[Any], depth: int, room: list[int]) -> list[Any]:
    """Without loops of one round, and without short ones inside others while there is room for their statements."""
    out: list[Any] = []
    for s in body:
        if type(s) is not For:
            out.append(s)
            continue
        inner = _flat(s.body, depth + 1, room)
        rounds = s.stop.offset - s.start.offset
        more = (rounds - 1) * len(inner)
        long = rounds > (UNROLLED if depth else 1) or more > room[0]
        if s.reverse or s.start.terms or s.stop.terms or long:
            out.append(s._replace(body=inner))
            continue
        room[0] -= more
        own = _defined(inner)
        for k in range(rounds):
            out.extend(_at_round(inner, s.name, s.start.offset + k, own, f"x{depth}_{k}" if k else ""))
    return out


def _defined(body: list[Any]) -> set[str]:
    """The variables that are set once in some statements; those that change keep their names."""
    found = set[str]()
    stack = list(body)
    while stack:
        s = stack.pop()
        if type(s) is For:
            found.add(s.name)
            stack.extend(s.body)
        elif type(s) in (Assign, Read, Pick):
            found.add(s.name)
    return found


def _at_round(body: list[Any], counter: str, at: int, own: set[str], suffix: str) -> list[Any]:
    """Statements of one round of a loop, their variables with names of their own."""

    def name(n: str) -> str:
        return n + suffix if n in own else n

    def value(v: Value) -> Value:
        return name(v) if isinstance(v, str) else v

    def place(p: Position) -> Position:
        found = Position(p.offset)
        for n, k in p.terms:
            found = found.moved(k * at) if n == counter else found.plus(Position(0, ((name(n), 1),)), k)
        return found

    def changed(s: Any) -> Any:
        match s:
            case Assign():
                return s._replace(name=name(s.name), args=tuple(map(value, s.args)))
            case Read() | Pick():
                return s._replace(name=name(s.name), at=place(s.at))
            case SetNumber():
                return s._replace(at=place(s.at), value=value(s.value))
            case Update():
                return s._replace(values=tuple(map(value, s.values)))
            case For():
                inner = [changed(x) for x in s.body]
                return For(name(s.name), place(s.start), place(s.stop), s.reverse, inner)
            case Fail():
                return Fail(value(s.condition))
            case _:
                raise Blocked("a statement that is not written out")

    return [changed(s) for s in body]


class _Touched(NamedTuple):
    """What a statement does to memory: for each buffer the places read and written; None for places: unknown ones."""

    reads: dict[Buffer, set[Position] | None]
    writes: dict[Buffer, set[Position] | None]


def _joined(body: list[Any]) -> list[Any]:
    out: list[tuple[Any, _Touched | None]] = []
    for s in body:
        mine = _touched(s)
        target = _target(out, s, mine)
        if target is None:
            out.append((s, mine))
            continue
        first, before = out[target]
        other = _renamed(s, first.name)
        first.body.extend(other.body)
        assert before is not None
        out[target] = first, _union(before, _touched(other))
    return [s for s, _ in out]


def _target(out: list[tuple[Any, _Touched | None]], s: Any, mine: _Touched | None) -> int | None:
    """Which of the last statements a loop can be joined with."""
    if type(s) is not For or mine is None or s.reverse:
        return None
    found, names = None, _used(s)
    for k in range(len(out) - 1, max(len(out) - 1 - LOOKED_BACK, -1), -1):
        other, its = out[k]
        if its is None:
            break
        alike = type(other) is For and not other.reverse and (other.start, other.stop) == (s.start, s.stop)
        if alike and _compatible(other, its, s, mine):
            found = k
        if _depends(other, its, mine, names):
            break
    return found


def _compatible(first: For, its: _Touched, second: For, mine: _Touched) -> bool:
    """Whether all that one writes and the other touches is at the same place of the same round."""
    for written, other, turned in (
        (its.writes, mine.reads, 0),
        (its.writes, mine.writes, 0),
        (mine.writes, its.reads, 1),
    ):
        for buffer, places in written.items():
            if buffer not in other:
                continue
            theirs = other[buffer]
            if places is None or theirs is None:
                return False
            a, b = (theirs, places) if turned else (places, theirs)
            every = a | {_moved(p, second.name, first.name) for p in b}
            if len(every) != 1 and not _apart(every, first.name, first.stop.offset - first.start.offset):
                return False
            if any([not dict(p.terms).get(first.name) for p in every]):
                return False
    return True


def _apart(places: set[Position], name: str, rounds: int) -> bool:
    """Whether different places are never the same in different rounds: they lie within one step, or beyond all of
    them."""
    steps = {dict(p.terms).get(name, 0) for p in places}
    offsets = sorted([p.offset for p in places])
    if len(steps) != 1 or any([len(p.terms) != 1 for p in places]):
        return False
    step = abs(next(iter(steps)))
    return offsets[-1] - offsets[0] < step or all([b - a >= step * rounds for a, b in pairwise(offsets)])


def _depends(other: Any, its: _Touched, mine: _Touched, names: set[str]) -> bool:
    """Whether a later statement needs what this one does, or changes what it reads."""
    memory = its.writes.keys() & (mine.reads.keys() | mine.writes.keys()) or its.reads.keys() & mine.writes.keys()
    return bool(memory) or (isinstance(other, (Assign, Read, Pick)) and other.name in names)


def _used(s: For) -> set[str]:
    """The names that a loop takes from outside."""
    found, stack = set[str](), list(s.body)
    while stack:
        one = stack.pop()
        values: tuple[Value, ...] = ()
        places: list[Position] = []
        if type(one) is Assign:
            values = one.args
        elif type(one) is SetNumber:
            values, places = (one.value,), [one.at]
        elif type(one) in (Read, Pick):
            places = [one.at]
        elif type(one) is For:
            stack.extend(one.body)
        found.update([v for v in values if isinstance(v, str)], [n for p in places for n, _ in p.terms])
    return found


def _touched(s: Any) -> _Touched | None:
    """None for what is not looked into."""
    reads: dict[Buffer, set[Position] | None] = {}
    writes: dict[Buffer, set[Position] | None] = {}
    stack = [s]
    while stack:
        one = stack.pop()
        match one:
            case Assign():
                pass
            case For(reverse=False):
                stack.extend(one.body)
            case Read():
                _note(reads, one.buffer, one.at)
            case Pick():
                _note(reads, one.table, one.at)
            case SetNumber():
                _note(writes, one.buffer, one.at)
                if one.adds:
                    _note(reads, one.buffer, one.at)
            case _:
                return None
    return _Touched(reads, writes)


def _note(known: dict[Buffer, set[Position] | None], buffer: Buffer, at: Position) -> None:
    places = known.setdefault(buffer, set())
    if any([name[0] == "n" for name, _ in at.terms]):  # from a table
        known[buffer] = None
    elif places is not None:
        places.add(at)


def _union(a: _Touched, b: _Touched | None) -> _Touched:
    assert b is not None
    for mine, its in ((a.reads, b.reads), (a.writes, b.writes)):
        for buffer, places in its.items():
            have = mine.get(buffer, set())
            mine[buffer] = None if have is None or places is None else have | places
    return a


def _moved(at: Position, old: str, new: str) -> Position:
    """A position with a counter renamed."""
    return Position(at.offset, tuple(sorted([(new if n == old else n, k) for n, k in at.terms])))


def _renamed(s: For, name: str) -> For:
    """A loop with the counter of another one."""

    def move(at: Position) -> Position:
        return _moved(at, s.name, name)

    def changed(one: Any) -> Any:
        if type(one) in (Read, SetNumber, Pick):
            return one._replace(at=move(one.at))
        if type(one) is For:
            return one._replace(start=move(one.start), stop=move(one.stop), body=[changed(x) for x in one.body])
        return one

    return For(name, s.start, s.stop, s.reverse, [changed(x) for x in s.body])


def _forwarded(body: list[Any]) -> list[Any]:
    """Each loop with the numbers it has just written, or read, in variables."""
    names: dict[str, Value] = {}
    alone = _changed_in_one_block(body)

    def value(v: Value) -> Value:
        return names.get(v, v) if isinstance(v, str) else v

    def block(statements: list[Any], inside: bool) -> list[Any]:
        known: dict[tuple[Buffer, Position], Value] = {}
        made: dict[Any, str] = {}
        out: list[Any] = []
        for s in statements:
            if type(s) is Read:
                key = s.buffer, _moved(s.at, "", "")
                if inside and key in known:
                    names[s.name] = known[key]
                    continue
                known[key] = s.name
            elif type(s) is Assign:
                s = s._replace(args=tuple([value(v) for v in s.args]))
                if (s.op, s.args) in made:
                    names[s.name] = made[s.op, s.args]
                    continue
                made[s.op, s.args] = s.name
            elif type(s) is SetNumber:
                s = s._replace(value=value(s.value))
                key = s.buffer, _moved(s.at, "", "")
                for other in [k for k in known if k[0] is s.buffer and k != key]:
                    if s.adds or not _disjoint(other[1], s.at):
                        del known[other]
                known.pop(key, None)
                if not s.adds:
                    known[key] = s.value
            elif type(s) is Update:
                values = tuple([value(v) for v in s.values])
                if alone.issuperset(s.names):
                    names.update(zip(s.names, values, strict=True))
                    continue
                s = s._replace(values=values)
            elif type(s) is Fail:
                s = s._replace(condition=value(s.condition))
            elif type(s) is For:
                s = s._replace(body=block(s.body, True))
                touched = _touched(s)
                for other in list(known):
                    if touched is None or other[0] in touched.writes:
                        del known[other]
            else:
                known.clear()
            out.append(s)
        return out

    return block(body, False)


def _changed_in_one_block(body: list[Any]) -> set[str]:
    """Variables that change in one list of statements only: there each value has a name."""
    where: dict[str, set[int]] = {}
    stack = [body]
    while stack:
        block = stack.pop()
        for s in block:
            if type(s) is Update:
                for name in s.names:
                    where.setdefault(name, set()).add(id(block))
            elif isinstance(s, (For, Lanes)):
                stack.append(s.body)
    return {name for name, blocks in where.items() if len(blocks) == 1}


def _disjoint(a: Position, b: Position) -> bool:
    """Whether two places in the same round are different."""
    return tuple(sorted(a.terms)) == tuple(sorted(b.terms)) and a.offset != b.offset


def _without_stores(written: Statements) -> None:
    """Leave out memory of the function's own that nothing reads, and loops without a body."""
    read = set[Buffer]()
    stack = list(written.body)
    while stack:
        s = stack.pop()
        if type(s) in (For, Lanes):
            stack.extend(s.body)
        elif type(s) in (Read, Pick):
            read.add(s.buffer if type(s) is Read else s.table)
        elif type(s) not in (Assign, SetNumber, Fail, Update):
            return
    own = {b for b in written.own if b not in read}

    def kept(body: list[Any]) -> list[Any]:
        found = [s._replace(body=kept(s.body)) if type(s) is For else s for s in body]
        return [
            s for s in found if not (type(s) is SetNumber and s.buffer in own) and not (type(s) is For and not s.body)
        ]

    written.body[:] = kept(written.body)
    written.own[:] = [b for b in written.own if b in read]
