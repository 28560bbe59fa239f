"""Patterns: terms with variables in them, to match, to build and to print. The two sides of a law are patterns.

`g @ f` composes, `f ** X` maps; a head with its fields is written `Head(Fork, fs)`. A variable stands for a term, or
for whatever a field holds; a variable for many stands for a family f₁ … fₙ, and `Each(p)` is a family whose members are
all of the form p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..terms.sums import Map
from ..terms.term import Compose, Id, Term

Found = dict[Any, Any]


class Missing(Exception):
    """A part of the right side does not exist for what was matched: the law does not apply."""


class Pattern:
    """What variables, nodes, families and computed parts have in common."""

    def __matmul__(self, other: Pattern) -> Pattern:
        return Head(Compose, self, other)

    def __pow__(self, index: Pattern) -> Pattern:
        return Head(Map, self, index)

    def __getitem__(self, at: Pattern) -> Pattern:
        return Calc("{0}_{1}", lambda family, i: family[i], self, at)

    many: tuple[Var, ...] = ()
    """The variables for families inside."""

    def match(self, value: Any, found: Found) -> bool:
        """Whether a value has this form; `found` gets what the variables stand for."""
        raise NotImplementedError

    def build(self, found: Found, made: list[Term]) -> Any:
        """The value this stands for; `made` collects the nodes made on the way."""
        raise NotImplementedError


class Var(Pattern):
    """A variable: for a term (a linear one) of some classes, for a family, or for anything a field holds."""

    def __init__(self, name: str, kind: Any = object, linear: bool = False, family: bool = False) -> None:
        self.name, self.kind, self.linear, self.family = name, kind, linear, family
        self.many = (self,) if family else ()

    def accepts(self, value: Any) -> bool:
        """Whether one value is of the kind wanted."""
        return isinstance(value, self.kind) and not (self.linear and not cast(Term, value).linear)

    def match(self, value: Any, found: Found) -> bool:
        if self in found:
            known = found[self]
            return known is value or (type(known) is type(value) and not isinstance(value, Term) and known == value)
        whole = self.family and type(value) is tuple
        if not (all([self.accepts(v) for v in cast("tuple[Any, ...]", value)]) if whole else self.accepts(value)):
            return False
        found[self] = value
        return True

    def build(self, found: Found, made: list[Term]) -> Any:
        return found[self]


class Head(Pattern):
    """A node of one class with patterns, or plain values, for its fields."""

    def __init__(self, head: type[Term], *fields: Any) -> None:
        self.head, self.fields = head, fields
        self.named = tuple(zip(head.fields, fields, strict=True))
        self.many = tuple(dict.fromkeys(_many(fields)))

    def match(self, value: Any, found: Found) -> bool:
        return type(value) is self.head and all([_match(p, getattr(value, name), found) for name, p in self.named])

    def build(self, found: Found, made: list[Term]) -> Any:
        parts = [_build(p, found, made) for p in self.fields]
        if self.head is Compose and (type(parts[0]) is Id or type(parts[1]) is Id):
            return parts[1] if type(parts[0]) is Id else parts[0]
        found_node: Term = cast(Any, self.head)(*parts)
        made.append(found_node)
        return found_node


class Each(Pattern):
    """A family whose members all have one form."""

    def __init__(self, member: Pattern) -> None:
        self.member, self.many = member, member.many

    def match(self, value: Any, found: Found) -> bool:
        columns: dict[Var, list[Any]] = {v: [] for v in self.many}
        for element in value:
            if not self.member.match(element, found):
                return False
            for v, column in columns.items():
                column.append(found.pop(v))
        found.update({v: tuple(column) for v, column in columns.items()})
        return True

    def build(self, found: Found, made: list[Term]) -> Any:
        rows = zip(*[found[v] for v in self.many], strict=True)
        return tuple([self.member.build({**found, **dict(zip(self.many, row, strict=True))}, made) for row in rows])


class Calc(Pattern):
    """A part of a right side computed from what was matched; None: there is none. {0}, {1}, … in its text are the
    parts. `new`: a node of the right side, not one that is there already."""

    def __init__(self, text: str, function: Callable[..., Any], *parts: Any, new: bool = False) -> None:
        self.text, self.function, self.parts, self.new = text, function, parts, new
        self.many = _many(parts)

    def build(self, found: Found, made: list[Term]) -> Any:
        value = self.function(*[_build(p, found, []) for p in self.parts])
        if value is None:
            raise Missing
        if self.new:
            made.append(value)
        return value


def _many(p: Any) -> tuple[Var, ...]:
    if type(p) is tuple:
        return tuple([v for q in cast("tuple[Any, ...]", p) for v in _many(q)])
    return p.many if isinstance(p, Pattern) else ()


def _match(p: Any, value: Any, found: Found) -> bool:
    if isinstance(p, Pattern):
        return p.match(value, found)
    if type(p) is tuple:
        if type(value) is not tuple or len(value) != len(cast(Any, p)):
            return False
        return all([_match(q, v, found) for q, v in zip(cast(Any, p), cast(Any, value), strict=True)])
    return type(p) is type(value) and p == value


def _build(p: Any, found: Found, made: list[Term]) -> Any:
    if isinstance(p, Pattern):
        return p.build(found, made)
    return tuple([_build(q, found, made) for q in cast("tuple[Any, ...]", p)]) if type(p) is tuple else p
