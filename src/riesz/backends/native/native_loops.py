"""Which loops run as functions of numbers, and when: `Loop.run` asks here first, and generated code does.

What is made of a loop is kept on its body, which outlives the step: steps are made anew at every plain call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ...calculus.batching import lifted
from ...calculus.domain_check import checked, checking
from ...calculus.loop_splitting import kept_over
from ...ops.opaque import Get
from ...programs.passes.hoisting import hoisted
from ...programs.program import Program
from ...programs.rewriting import rewritten
from ...programs.sub_programs import Block, Call, Loop
from ...runtime import tuning
from ...runtime.settings import settings
from ...runtime.stackless import quiet
from ...spaces.formal_vectors import dense
from ..python.unrolled import kinds
from .native_function import DTYPES, NativeFunction, Run, letter, machine_code_here
from .statements import Blocked, For, If, Invoke, Lanes, Statements


def native_rounds(loop: Loop, xs: Sequence[Any]) -> tuple[Any, ...] | None:
    """The results of a loop; None where the ordinary way is to be taken."""
    if loop.length < tuning.NATIVE_ROUNDS:
        return None
    found = _kept(loop.body, (_kind(loop),), [dense(x) for x in xs], lambda: _alone(loop))
    return None if found is None else tuple(found)


def native_mapped(program: Program, moving: Sequence[bool], n: int, given: Sequence[Any]) -> list[Any] | None:
    """The results of a program with loops at every index of a leading axis; None as for `native_rounds`."""
    if not any([isinstance(op, Loop) for op in program.ops]):
        return None
    return _kept(program, ("mapped", *moving, n), given, lambda: lifted(prepared(program), moving, n))


def native_program(program: Program, given: Sequence[Any]) -> list[Any] | None:
    """The results of a program with loops; None as for `native_rounds`."""
    return _kept(program, ("whole",), given, lambda: prepared(program))


def _kept(keeper: Program, key: tuple[Any, ...], given: Sequence[Any], make: Callable[[], Program]) -> list[Any] | None:
    """What the function of a program gives, kept on a program that lives as long."""
    if not _wanted() or (checked and checking()):
        return None
    try:
        letters = [letter(x) for x in given]
    except Blocked:
        return None
    run = _run(keeper, (*key, *letters), make, letters)
    return None if run is None else run(given)


def _run(keeper: Program, key: tuple[Any, ...], make: Callable[[], Program], letters: Sequence[str]) -> Run | None:
    known: dict[Any, Run | None] = keeper.__dict__.setdefault("_native", {})
    if key not in known:
        known[key] = made(make(), letters)
    return known[key]


def _wanted() -> bool:
    """Whether loops run so at all; otherwise they are left to the interpreter and to array code."""
    return settings.loops and bool(tuning.NATIVE_LOOPS)


def prepared(program: Program) -> Program:
    """A program whose loops backward are given what is dear in the loops forward; mapped loops stay as they are."""
    if any([isinstance(op, Loop) and "_one" in op.body.__dict__ for op in program.ops]):
        return program
    return kept_over(hoisted(program))


def by_themselves(program: Program, dtypes: Sequence[Any]) -> Program:
    """A program for array code, in which loops that run as functions of numbers say so: `known["alone"]` has the types
    of their results. The program itself where there are none."""
    program = prepared(program)
    found = kinds(program, dtypes)
    names = {dtype: name for name, dtype in DTYPES.items()}

    def rule(whole: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
        if not isinstance(op, Loop) or op.length < tuning.NATIVE_ROUNDS or not _wanted():
            return None
        letters = [names.get(np.dtype(found[a] or float), "f") for a in program.args[slot]]
        run = _run(op.body, (_kind(op), *letters), lambda: _alone(op), letters)
        if run is None:
            return None
        loop = op.replaced()
        loop.known["alone"] = [DTYPES[name] for name in cast(Any, run).letters]
        return whole.step(loop, given)

    return rewritten(program, rule)


def _kind(loop: Loop) -> tuple[Any, ...]:
    return loop.consts, loop.carries, loop.length, loop.reverse, loop.keep


def _alone(loop: Loop) -> Program:
    """A loop as a program."""
    program = Program()
    consts, carries = loop.consts, loop.carries
    shapes = [loop.body.shapes[s] for s in loop.body.inputs]
    rows = [(loop.length, *s) for s in shapes[consts + carries :]]
    step = program.step(loop, [program.input(s) for s in (*shapes[: consts + carries], *rows)])
    program.outputs = [program.step(Get(i), (step,)) for i in range(len(loop.result(())))]
    return program


@quiet
def made(program: Program, letters: Sequence[str]) -> Run | None:
    """The function of a program; None where there is none, or where it does not pay."""
    steps = work(program, longest=True)
    try:
        return None if not worth(program, steps) else chosen(NativeFunction(program, letters), steps)[0]
    except Blocked:
        return None


# Note [When]: what is decided is decided at the first call and from the program alone, so that equal arguments give
# equal bits at every call. The interpreter takes some 4 µs a step, array code 1.5, floats 0.04 µs an operation. To
# write statements takes 0.1 ms a slot, and 0.1 ms a statement to make machine code of them: it pays if it saves that
# much in a few dozen calls.
def worth(program: Program, steps: int) -> bool:
    """Whether a program that the interpreter runs in so many steps is worth writing."""
    if not _wanted():
        return False
    slots, stack = 0, [program]
    while stack:
        inner = stack.pop()
        slots += len(inner.ops)
        stack.extend([p for op in inner.ops if isinstance(op, Block) for p in op.programs])
        if steps < tuning.NATIVE_STEPS_PER_SLOT * slots:
            return False
    return True


def chosen(function: NativeFunction, steps: int) -> tuple[Run | None, bool]:
    """A function as machine code or as floats, and which it is; None where arrays are faster."""
    written = function.written
    runs = operations(written)
    if runs > tuning.NATIVE_OPERATIONS_PER_STEP * steps:
        return None, False
    if steps + runs // 2000 >= max(tuning.NATIVE_MACHINE_STEPS, written.count) and machine_code_here():
        return function.machine(), True
    return function.floats() if runs <= tuning.NATIVE_FLOATS_PER_STEP * steps else None, False


def operations(written: Statements) -> int:
    """How many statements a function runs, those of loops as often as they go round; those inside branches a thousand
    times at most."""
    total, stack = 0, [(written.body, 1, 1 << 60)]
    while stack:
        body, times, limit = stack.pop()
        for s in body:
            if type(s) is For:
                rounds = max(s.stop.offset - s.start.offset, 1)
                stack.append((s.body, min(times * rounds, max(limit, times)), limit))
            elif type(s) is Lanes:
                stack.append((s.body, times * s.times, limit))
            elif type(s) is If:
                stack += [(s.yes, times, min(limit, 1000)), (s.no, times, min(limit, 1000))]
            elif type(s) is Invoke:
                stack.append((written.helpers[s.helper].body, times, limit))
            else:
                total += times
    return total


def work(program: Program, longest: bool = False) -> int:
    """How many steps the interpreter runs for a program, those of loops as often as they go round. Of branches the
    shortest is counted, or the longest, with a thousand rounds inside at most: nobody knows how many will run."""
    total, stack = 0, [(program, 1, 1 << 60)]
    while stack:
        inner, times, limit = stack.pop()
        total += times * len(inner)
        for op in inner.ops:
            if isinstance(op, Loop):
                stack.append((op.body, min(times * op.length, max(limit, times)), limit))
            elif isinstance(op, Call) and op.fixed:
                chosen = (max if longest else min)(op.branches, key=lambda p: len(p.ops))
                stack.append((chosen, times, min(limit, 1000)))
            elif isinstance(op, Block):
                stack.append((op.programs[0], times, limit))
    return total
