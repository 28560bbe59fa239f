"""f^X as a value domain: a leaf is a base leaf, with or without one leading axis of length n. This is vmap, and how
matrices of linear maps are made.

Each op says what it is under a leading axis; arguments that have none are shared, which is the paper's replication of
free variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np

from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.domain import Domain, Leaf
from ..ops.op import Combination, Contraction, Elementwise, Op, Reduction, Reshape, Single, contraction
from ..ops.op_rules import OpRules
from ..ops.opaque import ANYWHERE, Declared, Discrete, Get, Put, Ruled, Select, Smooth, Strongly, Take
from ..programs.program import Program, outputs, run, several
from ..programs.sub_programs import Call, Loop, OwnDerivative, entry
from ..runtime import later
from ..spaces.formal_vectors import dense

Shape = tuple[int, ...]


BATCHED = OpRules[Callable[["Mapped[Any]", Any, Sequence["Lane[Any]"]], "Lane[Any]"]]("calculus.batching.BATCHED")
"""What an op is under one more leading axis, where at least one argument has it."""


class Lane(NamedTuple, Generic[Leaf]):
    """A leaf; `moving` says whether it has the leading axis."""

    value: Leaf
    moving: bool


class Mapped(Generic[Leaf]):
    """The domain of leaves with a leading axis of length n, over a base domain."""

    def __init__(self, base: Domain[Leaf], n: int) -> None:
        self.base = base
        self.hushes = base.hushes
        self.n = n

    def const(self, value: Any) -> Lane[Leaf]:
        """The same vector at every index."""
        return Lane(self.base.const(value), False)

    def zeros(self, shape: Shape) -> Lane[Leaf]:
        """Zeros."""
        return Lane(self.base.zeros(shape), False)

    def shape(self, lane: Lane[Leaf]) -> Any:
        """The shape at one index."""
        shape = self.base.shape(lane.value)
        return shape[1:] if lane.moving else shape

    def scale(self, k: float, lane: Lane[Leaf]) -> Lane[Leaf]:
        """k · x."""
        return Lane(self.base.scale(k, lane.value), lane.moving)

    def spread(self, lane: Lane[Leaf]) -> Leaf:
        """The value with the leading axis, repeated where it had none."""
        if lane.moving:
            return lane.value
        shape = self.base.shape(lane.value)
        labels = tuple(range(1, len(shape) + 1))
        return self.base.step(contraction((labels,), (0, *labels), {0: self.n}), (lane.value,))

    def step(self, op: Op, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        """One operation at every index."""
        if not any([a.moving for a in args]):
            return Lane(self.base.step(op, [a.value for a in args]), False)
        return BATCHED[type(op)](self, op, args)

    @BATCHED("a label more", Contraction)
    def _contraction(self, op: Contraction, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        labels = tuple([(-1, *ls) if a.moving else ls for ls, a in zip(op.labels, args, strict=True)])
        return self._run(contraction(labels, (-1, *op.out), dict(op.extra), op.strong, op.guarded), args)

    def _run(self, op: Op, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        return Lane(self.base.step(op, [a.value for a in args]), True)

    BATCHED("the same on the tuple", Get)(_run)

    @BATCHED("the same, axes aligned", Elementwise, Combination, Select)
    def _broadcast(self, op: Op, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        return Lane(self.base.step(op, self._aligned(args)), True)

    @BATCHED("the same: it takes leading axes", Convolution, ExchangedLeg, Declared)
    def _spread(self, op: Op, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        return Lane(self.base.step(op, [self.spread(a) for a in args]), True)

    BATCHED("the axis after", Reduction)(
        lambda self, op, args: self._spread(Reduction(op.relations, op.axis + 1), args)
    )
    BATCHED("`lifted`", Single)(lambda self, op, args: self._run(op.lifted(self.n), args))

    BATCHED("the same, `Mapped.scale`", float)(lambda self, op, args: self.scale(op, args[0]))

    @BATCHED("the same, axes aligned or leading", Discrete)
    def _discrete(self, op: Discrete, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        if op is ANYWHERE:
            return Lane(self.base.step(op, [a.value for a in args]), False)
        return self._broadcast(op, args) if op.shaped is None else self._spread(op, args)

    @BATCHED("more columns of one matrix; the same if it takes leading axes, else one by one", Ruled)
    def _ruled(self, op: Ruled, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        alone = not any([a.moving for a in args[:-1]])  # one matrix, many right-hand sides
        if op.smooth.mixes == (-2,) and alone and len(self.shape(args[-1])) == 2:
            rows, k = self.shape(args[-1])
            b = self.base.step(Reshape((rows, self.n * k)), (_swapped(self.base, args[-1].value),))
            x = self.base.step(op, [*[a.value for a in args[:-1]], b])
            found = self.base.step(Reshape((self.base.shape(x)[0], self.n, k)), (x,))
            return Lane(_swapped(self.base, found), True)
        return self._spread(op if op.smooth.batched else one_by_one(op, self.n), args)

    @BATCHED("as the op inside", Strongly)
    def _strongly(self, op: Strongly, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        alone = isinstance(op.op, Ruled) and not op.op.smooth.batched
        return self._spread(Strongly(one_by_one(op.op, self.n), op.k) if alone else op, args)

    def _aligned(self, args: Sequence[Lane[Leaf]]) -> list[Leaf]:
        """Axes put where broadcasting expects them: behind the leading one."""
        shapes = [self.shape(a) for a in args]
        found, rank = [a.value for a in args], max(map(len, shapes))
        for i, (a, shape) in enumerate(zip(args, shapes, strict=True)):
            if a.moving and len(shape) < rank:
                found[i] = self.base.step(Reshape((self.n, *(1,) * (rank - len(shape)), *shape)), (a.value,))
        return found

    @BATCHED("a batch axis more", Take, Put)
    def _taken(self, op: Take | Put, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        x, index = args
        together = index.moving or op.batch > 0
        held = [self.spread(x), self.spread(index) if together else index.value]
        place = op.batch + together, op.axis + 1
        wide = Take(*place) if isinstance(op, Take) else Put(*place, op.rank, op.size)
        return Lane(self.base.step(wide, held), True)

    @BATCHED("the call of mapped programs; branches chosen by index are all computed", Call)
    def _call(self, op: Call, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        """A branch chosen alike everywhere is a call; chosen index by index, all are computed and selected from."""
        moving = [a.moving for a in args[op.fixed :]]
        branches = [lifted(b, moving, self.n) for b in op.branches]
        if op.fixed and args[0].moving:
            branches = [self._selected(branches)]
        rule = None if (own := op.rule) is None else OwnDerivative(lambda: lifted(own.program, moving * 2, self.n))
        return Lane(self.base.step(Call(tuple(branches), op.adjoint, rule), [a.value for a in args]), True)

    def _selected(self, branches: Sequence[Program]) -> Program:
        """A program of the number of a branch at each index, and of what the branches take."""
        whole = Program()
        chosen = whole.input((self.n,))
        slots = whole.like(branches[0].inputs, branches[0])
        *found, result = [outputs(p, whole, slots) for p in branches]
        for which in range(len(found) - 1, -1, -1):
            at = whole.step(Discrete(np.equal), (chosen, whole.const(which)))
            for i, slot in enumerate(found[which]):
                mask = whole.step(Reshape((self.n, *(1,) * (len(whole.shapes[slot]) - 1))), (at,))
                result[i] = whole.step(Select(), (mask, slot, result[i]))
        whole.outputs = result
        return whole

    @BATCHED("the loop of the mapped body", Loop)
    def _loop(self, op: Loop, args: Sequence[Lane[Leaf]]) -> Lane[Leaf]:
        """Carries and outputs have the leading axis, per-round inputs have it behind the axis of rounds."""
        c, m = op.consts, op.carries
        flags = [*[a.moving for a in args[:c]], *[True] * m, *[a.moving for a in args[c + m :]]]
        body = _mapped_body(op.body, tuple(flags), self.n)
        given = [a.value for a in args[:c]] + [self.spread(a) for a in args[c : c + m]]
        given += [_swapped(self.base, a.value) if a.moving else a.value for a in args[c + m :]]
        loop, whole = op.replaced(body=body), Program()
        result, shapes = self.base.step(loop, given), loop.result(())
        slots = [whole.input(s) for s in shapes]
        whole.outputs = [*slots[:m], *[_swapped(whole, s) for s in slots[m:]]]
        gets = [self.base.step(Get(i), (result,)) for i in range(len(shapes))]
        return Lane(self.base.step(Call((whole,)), gets), True)


def _mapped_body(body: Program, flags: tuple[bool, ...], n: int) -> Program:
    """The body of a loop at all indices, once for each way: code for it is kept on it. `_one` says what it was at one
    index (backends/native/rounds.py)."""
    known: dict[Any, Program] = body.__dict__.setdefault("_mapped", {})
    if (flags, n) not in known:
        found = known[flags, n] = lifted(body, flags, n)
        found.__dict__["_one"] = body, flags, n
    return known[flags, n]


def one_by_one(op: Ruled, n: int) -> Ruled:
    """A function that takes no leading axes, at each index of one; its differential is mapped."""
    key = ("each", n)
    if key in op.rules:
        return op.rules[key]
    inner = op.smooth

    def array(*xs: Any, **named: Any) -> Any:
        if not n:
            shapes = op.result(tuple([np.shape(x)[1:] for x in xs]))
            return tuple([np.zeros((0, *s)) for s in shapes]) if several(shapes) else np.zeros((0, *shapes))
        rows = [op.run(*[entry(dense(x), j) for x in xs]) for j in range(n)]
        return tuple([np.stack(part) for part in zip(*rows, strict=True)]) if type(rows[0]) is tuple else np.stack(rows)

    def shapes(*given: Shape, **named: Any) -> Any:
        found = op.result(tuple([s[1:] for s in given]))
        return tuple([(n, *s) for s in found]) if several(found) else (n, *found)

    def differential(dxs: Sequence[Any], y: Any, *xs: Any, **named: Any) -> Any:
        return later.mapped_rule(op, n, dxs, y, xs)

    def transpose(k: int, **named: Any) -> Op:
        turned = op.transpose(k, ())
        assert isinstance(turned, Ruled)
        return one_by_one(turned, n)

    turned = transpose if inner.transpose else None
    facts: dict[str, Any] = {"batched": False, "ours": False, "mixes": inner.mixes, "lead": inner.lead + 1}
    smooth = Smooth(inner.name, array, shapes, differential, turned, **facts)
    op.rules[key] = Ruled(smooth, op.parameters)
    return op.rules[key]


def _swapped(domain: Domain[Leaf], value: Leaf) -> Leaf:
    """The first two axes exchanged."""
    rest = tuple(range(2, len(domain.shape(value))))
    return domain.step(contraction(((0, 1, *rest),), (1, 0, *rest)), (value,))


def lifted(program: Program, moving: Sequence[bool], n: int) -> Program:
    """The program mapped over a leading axis of some of its inputs; all outputs have the axis."""
    whole, shapes = Program(), [program.shapes[s] for s in program.inputs]
    inputs = [whole.input((n, *s) if f else s) for s, f in zip(shapes, moving, strict=True)]
    whole.outputs = mapped(program, whole, inputs, moving, n)
    return whole


def mapped(program: Program, base: Domain[Leaf], inputs: Sequence[Leaf], moving: Sequence[bool], n: int) -> list[Leaf]:
    """The outputs of a program at every index of a leading axis, over any value domain; all outputs have the axis."""
    domain = Mapped(base, n)
    slots = run(program, domain, [Lane(v, f) for v, f in zip(inputs, moving, strict=True)])
    return [domain.spread(slots[s]) for s in program.outputs]
