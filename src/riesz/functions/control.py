"""Control flow on traced values: cond, loops with a carry, recomputation, maps over an axis, constants.

Outside a trace these run the Python functions they are given as they are. Inside one, a body is traced apart; what it
uses of the world around it becomes arguments of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, cast

import numpy as np

from ..calculus.batching import lifted, mapped
from ..calculus.domain_check import guard
from ..errors import SpaceError, TraceError
from ..ops.number_domains import NUMBERS
from ..ops.op import Cast
from ..ops.opaque import ANYWHERE, Discrete, Get
from ..programs.program import Program, outputs
from ..programs.sub_programs import Call, Loop
from ..runtime import tuning
from ..spaces.formal_vectors import dense
from ..spaces.layout import container
from ..tracing.argument_trees import LEAF, Container, Tree, first_part, flatten, numbers_of, unflatten
from ..tracing.rules.elementwise import discrete
from ..tracing.rules.rearranging import concatenate, moveaxis, reshape
from ..tracing.trace import Trace, current_level, refuse
from ..tracing.traced import BOOL, FLOAT, INT, Traced, innermost, slot_of, tidy
from .function import Aval, Given, Record, Static, as_function, home_of, owned, trace_function
from .function_types import V
from .remade import DerivedFunction

P = ParamSpec("P")


def stop_gradient(x: V) -> V:
    """x as a constant: its derivative is zero. Any tree of arrays.

    >>> import riesz as rz
    >>> rz.grad(lambda x: x * rz.stop_gradient(x))(3.0)
    3.0
    """
    leaves, tree = flatten(x)
    for i, v in enumerate(leaves):
        if type(v) is Traced:
            leaves[i] = Traced(v.home, v.home.step(Discrete(_same), (v.slot,)), v.dtype, v.weak)
    return unflatten(tree, leaves)


def _same(x: Any) -> Any:
    return x


# -- bodies -----------------------------------------------------------------------------------------------


class Body:
    """A Python function traced apart: a program from (captured arrays, arguments) to results."""

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], name: str, branch: bool = False, always: bool = False
    ) -> None:
        self.given = Given(args, {}, frozenset())
        self.given.point = always  # it runs once, at these arguments
        self.record: Record = trace_function(f, self.given, name, whole_numbers=True, branch=branch)
        statics = [r.value for r in self.record.results if isinstance(r, Static)]
        if statics:
            raise TraceError(f"{name} returns {statics[0]!r}, which is no array; return arrays and numbers only")
        self.record.holds(self.given.arrays)
        self.results: list[Aval] = self.record.outputs
        self.tree: Tree = self.record.tree

    def program(self, captured: Sequence[Traced]) -> Program:
        """The program with the captured arrays first, in the given order (a superset of its own)."""
        own = self.record.program
        whole = Program()
        outside = [whole.input(x.shape) for x in captured]
        inside = [whole.input(a.shape) for a in self.given.avals]
        places = {(x.home, x.slot): i for i, x in enumerate(captured)}
        mine = [outside[places[x.home, x.slot]] for x in self.record.captured]
        whole.outputs = outputs(own, whole, [*inside, *mine])
        return whole


def _union(*bodies: Body) -> list[Traced]:
    return list({(x.home, x.slot): x for body in bodies for x in body.record.captured}.values())


def _slot(home: Trace, x: Any) -> int:
    x = tidy(x)
    return slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT)


def _gets(program: Program, slot: int, count: int) -> list[int]:
    """All results of a step that has several."""
    return [program.step(Get(i), (slot,)) for i in range(count)]


def _call(home: Trace, bodies: Sequence[Body], kinds: Sequence[Any], which: Sequence[int] = ()) -> Any:
    """A step that runs one of some bodies on their arguments, and gives results of some types."""
    first, captured = bodies[0], _union(*bodies)
    programs = tuple([_cast(b.program(captured), b.results, kinds) for b in bodies])
    given = zip(first.given.arrays, first.given.avals, strict=True)
    slots = [*[slot_of(home, x, x.dtype) for x in captured], *[slot_of(home, tidy(x), a.dtype) for x, a in given]]
    found = _gets(home, home.step(Call(programs), [*which, *slots]), len(kinds))
    return unflatten(first.tree, [Traced(home, s, kind) for s, kind in zip(found, kinds, strict=True)])


def _cast(program: Program, results: Sequence[Aval], kinds: Sequence[Any]) -> Program:
    for i, (a, kind) in enumerate(zip(results, kinds, strict=True)):
        if a.dtype.kind == kind.kind == "f" and a.dtype != kind and not a.weak:
            program.outputs[i] = program.step(Cast(a.dtype, kind), (program.outputs[i],))
    return program


# -- branches ---------------------------------------------------------------------------------------------


def cond(pred: Any, true_fun: Callable[..., V], false_fun: Callable[..., V], *operands: Any) -> V:
    """true_fun(*operands) where pred holds, false_fun(*operands) otherwise; only one of the two is computed.

    >>> import numpy as np, riesz as rz
    >>> f = lambda x: rz.cond(x > 1.0, lambda x: x * x, lambda x: 3.0 * x, x)
    >>> rz.grad(f)(2.0), rz.grad(f)(0.5)
    (4.0, 3.0)
    """
    if type(pred) is not Traced:
        return (true_fun if pred else false_fun)(*operands)
    if pred.shape:
        choice = "To choose element by element write np.where(c, a, b)"
        raise refuse(f"rz.cond needs one truth value; got an array of shape {pred.shape}. {choice}")
    truth = pred if pred.dtype.kind == "b" else discrete(np.not_equal, pred, 0.0)
    index = Traced(pred.home, pred.home.step(Discrete(_number), (truth.slot,)), INT)
    return switch(index, (true_fun, false_fun), *operands)


def _number(pred: Any) -> Any:
    return np.where(pred, 0, 1)


def switch(index: Any, branches: Sequence[Callable[..., V]], *operands: Any) -> V:
    """branches[index](*operands), for an index that may be traced; only one is computed. An index outside counts as the
    nearest inside.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x, i: rz.switch(i, [lambda x: x, lambda x: x**2], x))(3.0, np.array(1))
    6.0
    """
    if type(index) is not Traced:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    bodies = [Body(f, operands, f"branch {i}", branch=True) for i, f in enumerate(branches)]
    first = bodies[0]
    for body in bodies[1:]:
        if body.tree != first.tree or [a.shape for a in body.results] != [a.shape for a in first.results]:
            shapes = [[a.shape for a in b.results] for b in (first, body)]
            different = f"arrays of shapes {shapes[0]} and {shapes[1]}; both must give the same structure"
            raise refuse(f"the branches of rz.cond give different things: {different}")
    kinds = [np.result_type(*[b.results[i].dtype for b in bodies]) for i in range(len(first.results))]
    home = innermost((index, *first.given.arrays, *_union(*bodies)))
    assert home is not None
    at = discrete(np.clip, index, 0, len(branches) - 1, dtype=INT) if len(branches) != 2 else index
    return _call(home, bodies, kinds, (slot_of(home, at, INT),))


def checkpoint(f: Callable[P, V]) -> Callable[P, V]:
    """The same function, whose derivative keeps the arguments only and computes what is inside again: less memory for
    more time.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x: np.sum(rz.checkpoint(np.sin)(x)))(np.array([0.0]))
    array([1.])
    """
    return Again(f)


class Again(DerivedFunction):
    """What `checkpoint` gives."""

    what = "checkpoint"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        f = self.function
        if not current_level():
            return f(*args, **kwargs)
        body = Body(lambda args, kwargs: f(*args, **kwargs), (args, kwargs), getattr(f, "__name__", "f"), always=True)
        home = innermost((*body.given.arrays, *_union(body)))
        return f(*args, **kwargs) if home is None else _call(home, [body], [a.dtype for a in body.results])


# -- loops ------------------------------------------------------------------------------------------------


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
    row = unflatten(tree, [_element(x) for x in leaves]) if leaves else None
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
    m, captured = len(start), _union(body)
    home = innermost((*start, *leaves, *captured))
    if home is None:
        return plain()
    outer = [slot_of(home, x, x.dtype) for x in captured]
    carry = [slot_of(home, x, a.dtype) for x, a in zip(start, body.results, strict=False)]
    slots = write(home, body.program(captured), outer, carry, [_slot(home, x) for x in leaves])
    found: list[Any] = [Traced(home, s, a.dtype) for s, a in zip(slots, body.results, strict=True)]
    return unflatten(carry_tree, found[:m]), unflatten(body.tree[first_part(body.tree) : -1], found[m:])


def _element(x: Any) -> Any:
    """What stands for one round's input while the body is traced: the first, where there is one."""
    dtype = x.dtype
    if len(x):
        return x.copy()[0] if type(x) is Traced else np.asarray(x[0]) if dtype.kind != "f" else x[0]
    return np.zeros(x.shape[1:], dtype) if np.ndim(x) > 1 or dtype.kind != "f" else dtype.type(0.0)


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
    program.outputs = _gets(program, program.step(op, [program.input(shape) for shape in shapes]), count)
    return program


def _run(
    home: Trace, body: Program, outer: list[int], carry: list[int], xs: list[int], n: int, reverse: bool, every: int
) -> list[int]:
    """The steps of a loop: one Loop, or a loop of recomputed loops of `every` rounds and the rest."""
    c, m, count = len(outer), len(carry), len(body.outputs)
    if not every:
        return _gets(home, home.step(Loop(body, c, m, n, reverse), [*outer, *carry, *xs]), count)
    chunks, rest = divmod(n, every)
    shapes = [home.shapes[s] for s in (*outer, *carry)] + [(every, *home.shapes[s][1:]) for s in xs]
    again = _alone(Call((_alone(Loop(body, c, m, every, reverse), shapes, count),)), shapes, count)
    arrays = [Traced(home, s) for s in xs]
    split = chunks * every
    low, high = (rest, n) if reverse else (0, split)  # the rounds that come first are those in chunks
    main = [reshape(x[low:high], (chunks, every, *x.shape[1:])).slot for x in arrays]
    found = _gets(home, home.step(Loop(again, c, m, chunks, reverse), [*outer, *carry, *main]), count)
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
    whole.outputs = _gets(whole, chosen, m)
    return whole


# -- maps over an axis ------------------------------------------------------------------------------------


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """f^X: f at every index of an axis of its arguments, as array operations over that axis; what f closes over is the
    same everywhere.

    `in_axes` is the axis of each argument (None: not mapped), one number for all or one per argument, or a tree of
    them; `out_axes` that of the results.

    >>> import numpy as np, riesz as rz
    >>> rz.vmap(lambda x: x @ x)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([ 5., 25.])
    """
    return MappedFunction(f, in_axes, out_axes)


class MappedFunction(DerivedFunction):
    """What `vmap` gives."""

    what = "vmap"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        in_axes, out_axes = self.options
        names = sorted(kwargs)
        axes = [*_axes(in_axes, args), *[_spread(0, flatten(kwargs[k])[1]) for k in names]]
        elements: list[Any] = []
        arrays: list[Any] = []
        flags: list[bool] = []
        sizes: set[int] = set()
        for value, wanted in zip((*args, *[kwargs[k] for k in names]), axes, strict=True):
            leaves, tree = flatten(value)
            for i, (x, axis) in enumerate(zip(leaves, wanted, strict=True)):
                moves = axis is not None and _is_array(x)
                if moves:
                    x = np.moveaxis(tidy(x), axis, 0) if axis else tidy(x)
                    sizes.add(x.shape[0])
                    leaves[i] = _element(x)
                if moves or _is_array(x) or isinstance(x, (float, np.floating)):
                    arrays.append(x)
                    flags.append(moves)
            elements.append(unflatten(tree, leaves))
        if not sizes:
            raise SpaceError("rz.vmap: no argument is mapped; give in_axes")
        if len(sizes) > 1:
            raise SpaceError(f"rz.vmap maps over one axis; the arguments have axes of lengths {sorted(sizes)}")
        function = as_function(self.function)
        given = function.given(tuple(elements[: len(args)]), dict(zip(names, elements[len(args) :], strict=True)))
        return _mapped(function.record(given), arrays, flags, sizes.pop(), out_axes)


def _is_array(x: Any) -> bool:
    return type(x) is Traced or isinstance(x, np.ndarray) or (hasattr(type(x), "__array__") and np.ndim(x) > 0)


def _axes(in_axes: Any, args: tuple[Any, ...]) -> list[list[Any]]:
    given = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    if len(given) != len(args):
        raise SpaceError(f"rz.vmap: in_axes={in_axes!r} names {len(given)} arguments, but {len(args)} were given")
    return [_spread(axis, flatten(a)[1], a) for axis, a in zip(given, args, strict=True)]


def _spread(axis: Any, tree: Tree, value: Any = None) -> list[Any]:
    """An axis for each leaf of an argument, from one axis or a tree of them."""
    if axis is None or isinstance(axis, int):
        return [axis] * tree.count(LEAF)
    parts, others = container(axis), container(value)
    if parts is None or others is None or len(parts[1]) != len(others[1]):
        raise SpaceError(f"rz.vmap: in_axes {axis!r} does not fit the structure of its argument")
    return [a for part, x in zip(parts[1], others[1], strict=True) for a in _spread(part, flatten(x)[1], x)]


def _mapped(record: Record, arrays: list[Any], flags: list[bool], n: int, out_axes: Any) -> Any:
    home, program = home_of(record, arrays), record.program
    if record.guards is not None:
        _same_everywhere(record, arrays, flags, n)
    every = [*flags, *[False] * len(record.captured)]
    if home is None:
        given = numbers_of([*arrays, *record.captured])
        found: list[Any] = [np.asarray(dense(x)) for x in mapped(program, NUMBERS, given, every, n)]
        guard(lambda: lifted(program, every, n), given, found)
        rows = [Aval((n, *a.shape), a.dtype, False) for a in record.outputs]
        found = owned(found, rows, record.held, [*arrays, *given])
    else:
        slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in (*arrays, *record.captured)]
        results = zip(mapped(program, home, slots, every, n), record.outputs, strict=True)
        found = [Traced(home, s, a.dtype) for s, a in results]
    if out_axes is None:
        moving = program.dependent([s for s, moves in zip(program.inputs, every, strict=True) if moves])
        if any([moving[s] for s in program.outputs]):
            raise SpaceError("rz.vmap: out_axes=None is for results that are the same at every index; this one is not")
        return record.wrap([x[0] for x in found])
    result = record.wrap(found)
    leaves, tree = flatten(result)
    one = isinstance(out_axes, tuple) and not isinstance(result, tuple)
    wanted = _spread(cast(Any, out_axes)[0] if one else out_axes, tree, result)
    return unflatten(tree, [_back(x, axis) for x, axis in zip(leaves, wanted, strict=True)])


def _same_everywhere(record: Record, arrays: list[Any], flags: list[bool], n: int) -> None:
    """An error where a condition that the function decides by has other answers at other indices."""
    again = Record(record.name, cast(Program, record.guards), record.captured, record.avals, [], record.tree)
    again.results = [Aval((), BOOL, False)] * len(record.answers)
    again.tree = (*(LEAF,) * len(record.answers), Container(len(record.answers), None))
    for found, wanted in zip(_mapped(again, arrays, flags, n, 0), record.answers, strict=True):
        if not np.all(found == wanted):
            raise refuse(
                f"rz.vmap: a condition in {record.name} holds at some indices and not at others, so if and while "
                "cannot decide by it; write rz.cond(c, lambda: a, lambda: b), np.where(c, a, b) or rz.while_loop there"
            )


def _back(x: Any, axis: Any) -> Any:
    """A result with its first axis in another place."""
    if not axis or not _is_array(x):
        return x
    return moveaxis(x, 0, axis) if type(x) is Traced else np.moveaxis(x, 0, axis)
