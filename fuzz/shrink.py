"""A failing program made short: without the lines, arguments and numbers it does not need."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .checks import CHECKS, Failure, Point, Report, made
from .libraries import leaves, mapped
from .programs import Body, Line, Program, is_float, replayed


def fails(program: Program, check: str, signature: str) -> Failure | None:
    """The failure, where the program still fails in the same way."""
    try:
        replayed(program)
        p = Point(program, np.random.default_rng(0), Report())
        if program.mode not in ("not finite",) and not all(
            [np.isfinite(np.asarray(x, float)).all() for x in leaves(p.value)]
        ):
            return None
        if not all([is_float(y) for y in leaves(p.value)]) or not p.moving:
            return None
        found = made(p, check, CHECKS[check][1])
    except Exception:
        return None
    return found if found is not None and found.signature == signature else None


def reads(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w']){re.escape(name)}(?!\w)", text) is not None


def without_unused(program: Program) -> Program:
    """No lines, no arguments that nothing reads."""
    lines = list(program.lines)
    wanted = str(program.result)
    for i in reversed(range(len(lines))):
        rest = "\n".join([line.code() for line in lines[i + 1 :]]) + wanted
        if not reads(rest, lines[i].name):
            del lines[i]
    text = "\n".join([line.code() for line in lines]) + wanted
    kept = {k: v for k, v in program.args.items() if reads(text, k)}
    return replace(program, lines=tuple(lines), args=kept or dict(list(program.args.items())[:1]))


def renamed(program: Program, name: str, by: str) -> Program:
    """Another name for what a line gives, in all lines."""

    def in_line(line: Line) -> Line:
        bodies = tuple([in_body(b) for b in line.bodies])
        return replace(line, args=tuple([by if a == name else a for a in line.args]), bodies=bodies)

    def in_body(b: Body) -> Body:
        return replace(
            b, lines=tuple([in_line(x) for x in b.lines]), args=tuple([by if a == name else a for a in b.args])
        )

    result = mapped(lambda r: by if r == name else r, program.result)
    return replace(program, lines=tuple([in_line(x) for x in program.lines]), result=result)


def simpler(program: Program) -> Iterator[Program]:
    """Programs that are shorter or plainer by one step."""
    if isinstance(program.result, (tuple, list, dict)):
        for name in dict.fromkeys(leaves(program.result)):
            yield replace(program, result=name)
    plain = [a for a, v in program.args.items() if not isinstance(v, (dict, tuple, list))]
    for name in (*[line.name for line in program.lines], *plain):
        if program.result != name:
            yield replace(program, result=name)
    if program.layout:
        yield replace(program, layout="")
    for i in reversed(range(len(program.lines))):
        line = program.lines[i]
        rest = replace(program, lines=program.lines[:i] + program.lines[i + 1 :])
        yield rest
        for by in dict.fromkeys(
            [
                *line.args,
                *[x.name for x in program.lines[:i]],
                *[a for a, v in program.args.items() if not isinstance(v, (dict, tuple, list))],
            ]
        ):
            yield renamed(rest, line.name, by)
        for j in range(len(line.after)):
            fewer = replace(line, after=line.after[:j] + line.after[j + 1 :])
            yield replace(program, lines=(*program.lines[:i], fewer, *program.lines[i + 1 :]))
        for j, b in enumerate(line.bodies):
            for cut in shorter_bodies(b):
                bodies = (*line.bodies[:j], cut, *line.bodies[j + 1 :])
                yield replace(
                    program, lines=(*program.lines[:i], replace(line, bodies=bodies), *program.lines[i + 1 :])
                )
    for name, value in program.args.items():
        for other in plainer(value):
            yield replace(program, args={**program.args, name: other})


def shorter_bodies(b: Body) -> Iterator[Body]:
    for i in reversed(range(len(b.lines))):
        rest = replace(b, lines=b.lines[:i] + b.lines[i + 1 :])
        yield rest
        for by in dict.fromkeys([*b.lines[i].args, *b.params, *[x.name for x in b.lines[:i]]]):
            whole = renamed(Program({}, (Line("_", "0", (), "", bodies=(rest,)),), "_"), b.lines[i].name, by)
            yield whole.lines[0].bodies[0]


def plainer(value: Any) -> Iterator[Any]:
    """Simpler values of an argument: smaller shapes, rounder numbers."""
    if isinstance(value, (dict, tuple, list)):
        keys = value if isinstance(value, dict) else range(len(value))
        for k in keys:
            for other in plainer(value[k]):
                copy = dict(value) if isinstance(value, dict) else list(value)
                copy[k] = other
                yield tuple(copy) if isinstance(value, tuple) else copy
        return
    x = np.asarray(value)
    if x.ndim:
        for axis in range(x.ndim):
            for n in (1, 2, x.shape[axis] - 1):
                if n < x.shape[axis]:
                    yield np.take(x, range(n), axis)
        for axis in range(x.ndim):
            if x.ndim > 1 and x.shape[axis]:
                yield np.take(x, 0, axis)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not x.ndim and x.dtype == float):
        yield value.item()
    if x.dtype.kind == "f" and x.size:
        for other in (
            np.ones(x.shape),
            np.zeros(x.shape),
            np.arange(1.0, 1.0 + x.size).reshape(x.shape),
            np.round(x, 1),
        ):
            if not np.array_equal(other, x, equal_nan=True) and weight(other) < weight(x):
                found = other.astype(x.dtype)
                yield found if isinstance(value, np.ndarray) else type(value)(found)


def weight(x: Any) -> float:
    return sum([len(repr(float(v))) for v in np.ravel(x)]) + (not isinstance(x, float))


def size(program: Program) -> tuple[int, float]:
    """What gets smaller."""
    numbers = sum([weight(x) for a in program.args.values() for x in leaves(a)])
    return len(program.source()) + 20 * len(list(program.all_lines())) + 10 * len(str(program.result)) + (
        5 if program.layout else 0
    ), numbers


def shrunk(program: Program, failure: Failure, seconds: float = 20.0) -> tuple[Program, Failure]:
    """The shortest program found that fails in the same way, within some seconds."""
    end = time.monotonic() + seconds
    best, found = program, failure
    cleaned = without_unused(best)
    if (again := fails(cleaned, failure.check, failure.signature)) is not None:
        best, found = cleaned, again
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in simpler(best):
            if time.monotonic() > end:
                break
            for short in (without_unused(candidate), candidate):  # a line that nothing reads may be the one that fails
                if size(short) < size(best) and (again := fails(short, failure.check, failure.signature)) is not None:
                    best, found, progress = short, again, True
                    break
            if progress:
                break
    return best, found
