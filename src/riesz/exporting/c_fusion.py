"""Loops of C that follow each other and run over the same indices become one; what only it reads is a local variable.

This reads lines as `CProgram` writes them: `for (…) {`, one statement, `}`. A statement joins those before it if it
reads what they write at its own index only, and writes an array that they do not mention.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

_HEAD = re.compile(r"( *)for \(int (\w+) = 0; \2 < (\d+); \2\+\+\) \{$")
_WRITES = re.compile(r"(a\d+)\[(.*?)\] (\+?=) (.*)$")
_ARRAY = re.compile(r"\ba\d+\b")


class JoinedLoops(NamedTuple):
    """A loop over several statements."""

    indent: str
    place: str
    size: str
    statements: list[str]
    written: set[str]  # at the index itself
    touched: set[str]  # at any place
    mentioned: set[str]

    def joined(self, other: JoinedLoops) -> bool:
        """Take the statement of another loop in, where it can be."""
        if (self.indent, self.size) != (other.indent, other.size):
            return False
        (statement,) = other.statements
        found = _WRITES.match(statement)
        if found is None or found[1] in self.mentioned:
            return False
        own = f"[{other.place}]"
        if any([m[0] in self.touched and not statement.startswith(own, m.end()) for m in _ARRAY.finditer(statement)]):
            return False
        if any([m[0] in self.touched - self.written for m in _ARRAY.finditer(statement)]):
            return False
        self.statements.append(re.sub(rf"\b{other.place}\b", self.place, statement))
        for mine, more in zip(self[4:], other[4:], strict=True):
            mine.update(more)
        return True


def _opened(lines: Sequence[str], at: int) -> JoinedLoops | None:
    """The loop of one statement that begins at a line."""
    head = _HEAD.match(lines[at])
    if head is None or at + 2 >= len(lines) or lines[at + 2] != f"{head[1]}}}":
        return None
    statement = lines[at + 1].strip()
    found = _WRITES.match(statement)
    if found is None or not statement.endswith(";"):
        return None
    own = {found[1]} if found[2] == head[2] and found[3] == "=" else set[str]()
    names = set(_ARRAY.findall(statement))
    return JoinedLoops(head[1], head[2], head[3], [statement], own, {found[1]}, names)


def read(statements: Sequence[str], local: Collection[str]) -> list[str]:
    """The statements without those for local numbers that nothing reads."""
    wanted: set[str] = set()
    found: list[str] = []
    for statement in reversed(statements):
        names = _ARRAY.findall(statement)
        if names[0] not in local or names[0] in wanted:
            wanted.update(names[1:])
            found.append(statement)
    return found[::-1]


def fused(lines: Sequence[str], keep: Collection[str] = ()) -> list[str]:
    """The lines with loops joined; the arrays to keep are read elsewhere."""
    total = Counter([name for line in lines for name in _ARRAY.findall(line)])
    out: list[str] = []
    held: JoinedLoops | None = None

    def closed() -> None:
        if held is None:
            return
        here = Counter([name for line in held.statements for name in _ARRAY.findall(line)])
        local = {k for k in held.written if here[k] == total[k] and k not in keep}
        out.append(f"{held.indent}for (int {held.place} = 0; {held.place} < {held.size}; {held.place}++) {{")
        for statement in read(held.statements, local):
            name = statement.partition("[")[0]
            text = _ARRAY.sub(lambda m: f"v{m[0][1:]}" if m[0] in local else m[0], statement)
            text = re.sub(rf"\b(v\d+)\[{held.place}\]", r"\1", text)
            out.append(f"{held.indent}    {'real ' if name in local else ''}{text}")
        out.append(f"{held.indent}}}")

    at = 0
    while at < len(lines):
        loop = _opened(lines, at)
        if loop is None:
            closed()
            held = None
            out.append(lines[at])
            at += 1
            continue
        if held is None or not held.joined(loop):
            closed()
            held = loop
        at += 3
    closed()
    return out
