"""A thread that has just worked stays awake for a moment: waking it takes longer than many a part of work.

Both sides look at a number in memory without the interpreter's lock: a worker at the bell, for new work; a caller at the number of parts that are
over. After a while they give up and sleep, as threads do.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
from __future__ import annotations

import atexit
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from .unlocked import compiled

LOOKS = 1 << 16
"""How often a number is looked at: about a tenth of a millisecond."""
BEFORE = 1 << 12
"""How many looks a worker waits when the bell has rung: the caller, who has the interpreter's lock, first begins its own part."""


@intrinsic
def look(_: Any, number: Any) -> Any:
    """number[0] as other threads have left it."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(context.make_array(number)(context, builder, args[0]).data, "acquire", 8)

    return types.int64(number), write


@intrinsic
def count(_: Any, number: Any) -> Any:
    """One more at number[0], whoever else counts there."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.atomic_rmw("add", context.make_array(number)(context, builder, args[0]).data, ir.IntType(64)(1), "seq_cst")
        return context.get_dummy_value()

    return types.void(number), write


@register_jitable
def after(looks: int, found: int) -> int:
    """A number that depends on all that was seen: each look waits for the one before, so that looks take time whatever a compiler does with loops."""
    return looks * 0x5851F42D4C957F2D + found


@compiled
def rest(over: Any, bell: Any, last: int) -> int:
    """Say that a part is over; then wait, a while, until the bell is not at `last` any more; not if that is negative."""
    count(over)
    looks = 0
    for _ in range(LOOKS if last >= 0 else 0):
        now = look(bell)
        looks = after(looks, now)
        if now != last:
            for _ in range(BEFORE):
                looks = after(looks, look(bell))
            break
    return looks


@compiled
def finish(over: Any, parts: int) -> int:
    """Wait, a while, until so many parts are over."""
    looks = 0
    for _ in range(LOOKS):
        now = look(over)
        looks = after(looks, now)
        if now == parts:
            break
    return looks


def number() -> Any:
    """Zero, for threads to count with."""
    return np.zeros(1, np.int64)


def ring() -> None:
    """Threads that listen go and look for work."""
    bell[0] += 1


bell = number()
rest(number(), bell, -1)  # compiled here, before threads depend on it
finish(number(), 0)
atexit.register(ring)  # nobody is in compiled code when that is unloaded
