"""`check_domain`: where a nan in a result came from. Off by default; nothing is looked at until a result holds one.

The program is run once more with all its values kept. A nan is born in a step whose arguments hold none; only births
whose nan reaches the result count, so a branch not taken is no error. If a product of 0 and ∞ was the birth, the
primitive that made the ∞ is named.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import numpy as np

from ..errors import DomainError
from ..ops.number_domains import NUMBERS
from ..ops.op import Elementwise
from ..programs.program import Program, run
from ..programs.sub_programs import Block, Call, Loop
from ..spaces.formal_vectors import dense

_checking: ContextVar[bool] = ContextVar("checking", default=False)


checking = _checking.get
"""Whether results are checked."""
checked: list[bool] = []
"""Empty until something is checked for the first time: generated code looks here first, which takes no call."""


@contextmanager
def check_domain(on: bool = True) -> Generator[None]:
    """Inside, a nan in a value or derivative is a `DomainError` that names the primitive and the number it was given.

    >>> import numpy as np, riesz as rz
    >>> with rz.check_domain():
    ...     rz.grad(lambda x: np.log(x - 3.0))(1.0)
    Traceback (most recent call last):
    ...
    riesz.errors.DomainError: ln is defined for x > 0; it was evaluated at -2.0, and the result is nan
    """
    if on and not checked:
        checked.append(True)
    token = _checking.set(on)
    try:
        yield
    finally:
        _checking.reset(token)


def guard(program: Any, leaves: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise if checking is on and a result holds a nan; `program` gives the program when it is needed."""
    if not _checking.get() or not any([_some(x, np.isnan) for x in results]):
        return
    if any([_some(x, np.isnan) for x in leaves]):
        raise DomainError("an argument holds nan already, and so does the result")
    with np.errstate(all="ignore"):
        raise DomainError(_culprit(program(), leaves))


def _some(x: Any, test: Any) -> bool:
    if type(x) is tuple:
        return any([_some(part, test) for part in cast("tuple[Any, ...]", x)])
    value = np.asarray(dense(x))
    return value.dtype.kind == "f" and bool(test(value).any())


def _culprit(program: Program, leaves: Sequence[Any]) -> str:
    slots = run(program, NUMBERS, leaves)
    live = {s for s in program.outputs if _some(slots[s], np.isnan)}
    for slot in range(len(program.ops) - 1, -1, -1):  # backwards along nans, to the first birth
        if slot in live:
            live.update([a for a in program.args[slot] if _some(slots[a], np.isnan)])
    args = program.args
    births = [s for s in sorted(live) if args[s] and not any([_some(slots[a], np.isnan) for a in args[s]])]
    for slot in births:
        if isinstance(program.ops[slot], Elementwise):
            return _named(program, slots, slot, np.isnan)
    for slot in births:
        source = _infinity(program, slots, slot)
        if source is not None:
            return _named(program, slots, source, np.isinf)
    for slot in births:
        if isinstance(program.ops[slot], Block):
            return _inside(program.ops[slot], [slots[a] for a in program.args[slot]])
    if births:
        op: Any = program.ops[births[0]]
        return f"a nan arises in {getattr(op, 'title', 'a scaling')}, from numbers without one"
    return _derivative(program, slots)


def _inside(block: Block, values: list[Any]) -> str:
    """The culprit in the branch that ran, or in the first round of a loop that made a nan."""
    if isinstance(block, Call):
        return _culprit(block.branches[int(values[0])] if block.fixed else block.branches[0], values[block.fixed :])
    assert isinstance(block, Loop)
    for t, given, found in block.rounds(values):
        if any([_some(x, np.isnan) for x in found]):
            return f"in round {t} of a loop: {_culprit(block.body, given)}"
    return "a nan arises in a loop"


def _infinity(program: Program, slots: list[Any], slot: int) -> int | None:
    """The primitive upstream that made an infinity."""
    stack, seen = [slot], {slot}
    while stack:
        at = stack.pop()
        for a in program.args[at]:
            if a not in seen and _some(slots[a], np.isinf):
                from_finite = not any([_some(slots[b], np.isinf) for b in program.args[a]])
                if from_finite and isinstance(program.ops[a], Elementwise):
                    return a
                seen.add(a)
                stack.append(a)
    return None


def _named(program: Program, slots: list[Any], slot: int, test: Any) -> str:
    """The primitive, its domain, and the first numbers it was given there."""
    primitive = program.ops[slot].primitive
    values = np.broadcast_arrays(*[np.asarray(dense(slots[a])) for a in (*program.args[slot], slot)])
    at = np.unravel_index(int(np.argmax(test(values[-1]))), values[-1].shape)
    given = ", ".join([repr(float(v[at])) for v in values[:-1]])
    where = f" (at index {', '.join(str(int(i)) for i in at)})" if at else ""
    rule = f"{primitive.name} is defined for {primitive.rule.domain}; it" if primitive.rule.domain else primitive.name
    return f"{rule} was evaluated at {given}{where}, and the result is {'nan' if test is np.isnan else 'infinite'}"


def _derivative(program: Program, slots: list[Any]) -> str:
    """The values are fine; a derivative is not."""
    for slot, op in enumerate(program.ops):
        if isinstance(op, Elementwise):
            xs = [dense(slots[a]) for a in program.args[slot]]
            for slope in op.primitive.partials(tuple(xs), dense(slots[slot])):
                known = isinstance(slope, (float, np.ndarray, np.floating))
                bad = ~np.isfinite(cast(Any, slope)) if known else np.False_
                if np.any(bad):
                    value = float(np.broadcast_to(np.asarray(xs[0]), bad.shape)[bad].ravel()[0] if bad.ndim else xs[0])
                    return f"the derivative of {op.primitive.name} at {value!r} is not finite, and the result is nan"
    return "the derivative holds nan"
