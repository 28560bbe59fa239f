"""Loops on traced values: with a carry, while a condition holds, a fixed number of times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ...errors import SpaceError
from ...ops.opaque import ANYWHERE
from ...programs.program import Program, outputs
from ...programs.sub_programs import Call, Loop
from ...runtime import tuning
from ...tracing.argument_trees import Tree, first_part, flatten, unflatten
from ...tracing.rules.elementwise import discrete
from ...tracing.rules.rearranging import concatenate, reshape
from ...tracing.trace import Trace, current_level, refuse
from ...tracing.traced import INT, Traced, innermost, slot_of, tidy
from ..function_types import V
from .bodies import Body, element, gets, union, value_slot
from .branches import cond, switch


def loop(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    checkpoint: bool | int | None = None,
    until: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:
    """carry, y = f(carry, x) for each x along the leading axis of xs; gives the last carry and the ys stacked, as JAX's
    `lax.scan`.

    The derivative needs the carry of every round. `checkpoint` keeps only every k-th of them (True: about √n of them)
    and computes the others again; by default that happens when they would take more than half a gigabyte.

    With `until`, the loop ends early: no round runs once until(carry) holds, and the rows of y that are left are zeros.

    >>> import numpy as np, riesz as rz
    >>> decay = lambda k: rz.loop(lambda y, t: (y - 0.1 * k * y, y), 1.0, length=10)[0]
    >>> round(rz.grad(decay)(1.0), 6)
    -0.38742
    """
    leaves, tree = flatten(xs)
    sizes = {np.shape(tidy(x))[0] if np.ndim(tidy(x)) else None for x in leaves}
    sizes |= set() if length is None else {length}
    if len(sizes) != 1 or None in sizes:
        asked = f"{sorted(map(str, sizes))}{'' if length is None else f' and length={length}'}"
        axes = f"rz.loop runs along one leading axis: xs has leading axes {asked}"
        raise SpaceError(f"{axes}; give xs of one length, or length=…")
    n = int(cast(int, sizes.pop()))
    if until is not None:
        (_, carry), ys = loop(
            _ending(f, until), (_not(until(init)), init), xs, n, reverse=reverse, checkpoint=checkpoint
        )
        return carry, ys
    plain = lambda: _plain_loop(f, init, leaves, tree, n, reverse)  # noqa: E731
    if not current_level():
        return plain()

    def write(home: Trace, body: Program, outer: list[int], carry: list[int], xs: list[int]) -> list[int]:
        every = _interval(checkpoint, n, sum([math.prod(home.shapes[s]) for s in carry]))
        return _run(home, body, outer, carry, xs, n, reverse, every)

    return _traced_loop(f, init, [tidy(x) for x in leaves], tree, plain, write)


def _ending(f: Any, until: Any) -> Any:
    """The function of a loop that ends early: a round that is not due changes nothing and gives zeros."""

    def round_(state: Any, x: Any) -> Any:
        active, carry = state

        def still(carry: Any, x: Any) -> Any:
            body = Body(f, (carry, x), "the body of a loop")
            zeros = [np.zeros(a.shape, a.dtype) for a in body.results[len(flatten(carry)[0]) :]]
            return np.asarray(False), carry, unflatten(body.tree[first_part(body.tree) : -1], zeros)

        def live(carry: Any, x: Any) -> Any:
            after, y = f(carry, x)
            return _not(until(after)), after, y

        active, carry, y = _while_active(active, live, still, carry, x)
        return (active, carry), y

    return round_


def _truth(c: Any, what: str = "the condition of rz.while_loop") -> Any:
    """One truth value, traced or not."""
    if np.size(tidy(c)) != 1:
        raise refuse(
            f"{what} must be one truth value; got an array of shape {np.shape(tidy(c))}: write np.any or np.all"
        )
    if type(c) is not Traced:
        return np.asarray(bool(c))
    flag = c if c.dtype.kind == "b" else discrete(np.not_equal, c, 0.0)
    return flag if not flag.shape else flag.reshape(())


def _not(c: Any) -> Any:
    """Its contrary."""
    return np.logical_not(_truth(c, "what until gives in rz.loop"))


def _while_active(active: Any, live: Callable[..., V], still: Callable[..., V], *operands: Any) -> V:
    """live(*operands) where a flag is set, still(*operands) otherwise. Under vmap, where the flag differs from index to
    index, nothing of `live` is computed once no flag is set (`anywhere`)."""
    if type(active) is not Traced:
        return cond(bool(active), live, still, *operands)
    some = Traced(active.home, active.home.step(ANYWHERE, (active.slot,)), INT)
    return switch(
        some, (lambda active, *xs: cond(active, live, still, *xs), lambda _, *xs: still(*xs)), active, *operands
    )


def _plain_loop(f: Any, init: Any, leaves: list[Any], tree: Tree, n: int, reverse: bool) -> tuple[Any, Any]:
    carry, rows = init, []
    shape: Any = None
    for t in range(n - 1, -1, -1) if reverse else range(n):
        carry, y = f(carry, unflatten(tree, [np.asarray(x)[t] for x in leaves]) if leaves else None)
        parts, shape = flatten(y)
        rows.append(parts)
    if reverse:
        rows.reverse()
    if not n:
        row = unflatten(tree, [np.zeros(np.shape(x)[1:], np.asarray(x).dtype) for x in leaves]) if leaves else None
        body = Body(f, (init, row), "the body of a loop")
        stacked = [np.zeros((0, *a.shape), a.dtype) for a in body.results[len(flatten(init)[0]) :]]
        return init, unflatten(body.tree[first_part(body.tree) : -1], stacked)
    return carry, unflatten(shape, [np.stack(column) for column in zip(*rows, strict=True)])


def _traced_loop(f: Any, init: Any, leaves: list[Any], tree: Tree, plain: Any, write: Any) -> tuple[Any, Any]:
    """A loop inside a trace: its body traced with the types that the carry ends with; `write` writes its steps, `plain`
    runs it where nothing is traced."""
    row = unflatten(tree, [element(x) for x in leaves]) if leaves else None
    start, carry_tree = flatten(init)
    whole = (int, np.integer, np.bool_)  # and truth values: these are not static here
    start = [np.asarray(x) if isinstance(x, whole) else tidy(x) for x in start]
    for _ in range(3):
        body = Body(f, (unflatten(carry_tree, start), row), "the body of a loop")
        wrong, start = _matched(body, start, carry_tree)
        if not wrong:
            break
    else:
        raise refuse("the carry of a loop changes its type from round to round; start with the type it ends with")
    m, captured = len(start), union(body)
    home = innermost((*start, *leaves, *captured))
    if home is None:
        return plain()
    outer = [slot_of(home, x, x.dtype) for x in captured]
    carry = [slot_of(home, x, a.dtype) for x, a in zip(start, body.results, strict=False)]
    slots = write(home, body.program(captured), outer, carry, [value_slot(home, x) for x in leaves])
    found: list[Any] = [Traced(home, s, a.dtype) for s, a in zip(slots, body.results, strict=True)]
    return unflatten(carry_tree, found[:m]), unflatten(body.tree[first_part(body.tree) : -1], found[m:])


def _matched(body: Body, start: list[Any], tree: Tree) -> tuple[bool, list[Any]]:
    """Whether the carry comes out as it went in; types that grow are grown at the start."""
    inner = body.tree[: first_part(body.tree)] if len(body.tree) > 1 else ()
    if inner != tree:
        raise refuse("the function of a loop must return a pair (carry, y) with a carry of the structure it was given")
    changed = False
    grown: list[Any] = []
    for x, a in zip(start, body.results, strict=False):
        if np.shape(x) != a.shape:
            shapes = f"{np.shape(x)} at first and {a.shape} after one round"
            raise refuse(f"the carry of a loop has shape {shapes}; it must stay the same")
        given = x.dtype if hasattr(x, "dtype") else np.dtype(type(x))
        if isinstance(x, float) and not isinstance(x, np.generic):
            x = np.asarray(x, a.dtype)[()]
            changed = changed or given.kind != a.dtype.kind
        elif given != a.dtype and not (type(x) is Traced and x.weak):
            x, changed = (x.astype(a.dtype) if type(x) is Traced else np.asarray(x, a.dtype)), True
        grown.append(x)
    return changed, grown


def _interval(checkpoint: Any, n: int, numbers: int) -> int:
    if checkpoint is None:
        checkpoint = n * numbers > tuning.CHECKPOINTED_NUMBERS
    flag = checkpoint is True or checkpoint is False
    if not flag and (not isinstance(checkpoint, (int, np.integer)) or checkpoint < 1):
        raise SpaceError(f"checkpoint={checkpoint!r}: True, False or a number of rounds from 1 on is due")
    if checkpoint is False or n < 4:
        return 0
    return math.isqrt(n) if checkpoint is True else int(checkpoint)


def _alone(op: Any, shapes: Sequence[Any], count: int) -> Program:
    """A step as a program."""
    program = Program()
    program.outputs = gets(program, program.step(op, [program.input(shape) for shape in shapes]), count)
    return program


def _run(
    home: Trace, body: Program, outer: list[int], carry: list[int], xs: list[int], n: int, reverse: bool, every: int
) -> list[int]:
    """The steps of a loop: one Loop, or a loop of recomputed loops of `every` rounds and the rest."""
    c, m, count = len(outer), len(carry), len(body.outputs)
    if not every:
        return gets(home, home.step(Loop(body, c, m, n, reverse), [*outer, *carry, *xs]), count)
    chunks, rest = divmod(n, every)
    shapes = [home.shapes[s] for s in (*outer, *carry)] + [(every, *home.shapes[s][1:]) for s in xs]
    again = _alone(Call((_alone(Loop(body, c, m, every, reverse), shapes, count),)), shapes, count)
    arrays = [Traced(home, s) for s in xs]
    split = chunks * every
    low, high = (rest, n) if reverse else (0, split)  # the rounds that come first are those in chunks
    main = [reshape(x[low:high], (chunks, every, *x.shape[1:])).slot for x in arrays]
    found = gets(home, home.step(Loop(again, c, m, chunks, reverse), [*outer, *carry, *main]), count)
    rows = [body.shapes[s] for s in body.outputs[m:]]
    stacked = [reshape(Traced(home, s), (split, *row)) for s, row in zip(found[m:], rows, strict=True)]
    if not rest:
        return [*found[:m], *[y.slot for y in stacked]]
    left = [x[:low].slot if reverse else x[high:].slot for x in arrays]
    tail = _run(home, body, outer, found[:m], left, rest, reverse, 0)
    pieces = [(Traced(home, t), y) if reverse else (y, Traced(home, t)) for t, y in zip(tail[m:], stacked, strict=True)]
    return [*tail[:m], *[concatenate(list(pair), 0).slot for pair in pieces]]


def fori_loop(
    lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any, *, checkpoint: bool | int | None = None
) -> Any:
    """value = body(i, value) for i from lower to upper − 1, as one step of the program. Bounds may be traced integers.

    >>> import riesz as rz
    >>> rz.grad(lambda x: rz.fori_loop(0, 3, lambda i, y: y * x, 1.0))(2.0)
    12.0
    """
    if type(lower) is Traced or type(upper) is Traced:
        start = lower if type(lower) is Traced else np.asarray(int(lower))
        return while_loop(lambda s: s[0] < upper, lambda s: (s[0] + 1, body(s[0], s[1])), (start, init))[1]
    rounds = np.arange(int(lower), int(upper))
    last, _ = loop(lambda value, i: (body(i, value), ()), init, rounds, checkpoint=checkpoint)
    return last


# Note [Stages]: how often a while_loop runs is not known when the program is written. A round that is not due any more
# changes nothing. Rounds come in stages: 32 of them; if that was not enough, 32 · 32; then 32 · 32 · 32 and so on. Each
# is a loop whose rounds are skipped once the condition fails. A short loop costs what its rounds cost. A long one keeps
# 32 states for each level, and computes the others again from these when it is differentiated. Derivatives, transposes,
# batches, patterns and generated code are those of `Loop` and `Call`.
_WIDTH, _LEVELS = 32, 7  # up to 3·10¹⁰ rounds


def while_loop(condition: Callable[[V], Any], body: Callable[[V], V], start: V, max_steps: int | None = None) -> V:
    """value = body(value), from `start` on, as long as condition(value) holds: the last value, any tree of arrays.

    Differentiable forward and backward, to any order, as if the rounds that ran were written out. The loop also ends
    after `max_steps` rounds, where that is given; a small bound makes compiled code short, above all for JAX. Under
    vmap each index has its own number of rounds.

    >>> import numpy as np, riesz as rz
    >>> def root(a):
    ...     return rz.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0)
    >>> round(rz.grad(root)(4.0), 6)
    0.25
    """
    if max_steps is not None and (not isinstance(cast(Any, max_steps), (int, np.integer)) or max_steps < 0):
        raise SpaceError(f"max_steps={max_steps!r}: a number of rounds is due, or None for no bound")
    plain = lambda: _plain_while(condition, body, start, max_steps)  # noqa: E731
    if not current_level() or max_steps == 0:
        return plain()
    most = 0 if max_steps is None or max_steps <= _WIDTH else max_steps  # otherwise the first stage is the bound

    def due(value: Any, count: Any) -> Any:
        flag = _truth(condition(value))
        return np.logical_and(flag, count < most) if most else flag

    def live(value: Any, count: Any) -> Any:
        after, more = body(value), count + 1 if most else count
        return due(after, more), after, more

    def still(value: Any, count: Any) -> Any:
        return np.asarray(False), value, count

    def write(home: Trace, body: Program, outer: list[int], carry: list[int], xs: list[int]) -> list[int]:
        return _stages(home, body, outer, carry, max_steps)

    none = np.asarray(0)
    state = due(start, none), start, none
    round_ = lambda state, _: (_while_active(state[0], live, still, *state[1:]), ())  # noqa: E731
    return _traced_loop(round_, state, [], (), lambda: ((None, plain()), ()), write)[0][1]


def _plain_while(condition: Any, body: Any, value: Any, max_steps: int | None) -> Any:
    count = 0
    while (max_steps is None or count < max_steps) and _truth(condition(value)):
        value, count = body(value), count + 1
    return value


def _stages(home: Trace, body: Program, outer: list[int], carry: list[int], most: int | None) -> list[int]:
    """The steps of a loop of up to `most` rounds, whose first carry says whether to go on: see Note [Stages]."""
    c, m, width = len(outer), len(carry), _WIDTH if most is None else min(_WIDTH, most)
    shapes, rounds = [home.shapes[s] for s in (*outer, *carry)], 0
    for level in range(1, _LEVELS + 1):
        stage = _alone(Loop(body, c, m, width), shapes, m)
        body = _skipped(stage, c, m)
        carry = outputs(stage if level == 1 else body, home, [*outer, *carry])
        rounds += width**level
        if most is not None and rounds >= most:
            break
    return carry


def _skipped(stage: Program, c: int, m: int) -> Program:
    """A stage if the flag is set; else the carries as they are."""
    whole, same = Program(), Program()
    slots, same.outputs = whole.like(stage.inputs, stage), same.like(stage.inputs, stage)[c:]
    chosen = whole.step(Call((stage, same)), [whole.step(ANYWHERE, (slots[c],)), *slots])
    whole.outputs = gets(whole, chosen, m)
    return whole
