"""Products in the order of least work: A ⋆ B ⋆ C ⋆ x from the right, its adjoints as outer products.

A contraction of contractions is one network: labels of the inner result are those of the outer argument, scalings (k·)
are a factor. Each network is written again as pairs along its best path where that is less work. Values that several
networks read, and sums inside products, keep networks apart; they are written into their readers, N(Σ kᵢ·xᵢ) = Σ
kᵢ·N(xᵢ), where all of these together then are less work than before. Selections (Note [Strong] in ops/op.py) stay where
they are. Each step is looked at a bounded number of times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple

from ...ops.op import Combination, Contraction, contraction
from ...ops.opaque import Discrete
from ...runtime import tuning
from ...runtime.stackless import quiet
from ...spaces.contraction_order import Labels, Path, path, results
from ...spaces.formal_vectors import Formal
from ..cost import flops
from ..program import Constant, Program
from ..rewriting import rewritten


@quiet
def ordered(program: Program, runs: int = 1) -> Program:
    """The same function with its products in the order of least work; the program itself where that is what it has
    already.

    With `runs`, products of constants alone count once and all else so many times: for programs whose constant steps
    are carried out beforehand.
    """
    networks = _Networks(program, runs)
    networks.widen()
    return networks.written()


@quiet
def paired(program: Program) -> Program:
    """The same function with products of three and more arrays written as pairs: array code has a line for each."""

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op, args = program.ops[slot], program.args[slot]
        if type(op) is not Contraction or len(args) < 3 or op.strong or op.extra:
            return None
        if any([len(set(ls)) < len(ls) for ls in (*op.labels, op.out)]):
            return None
        factors = [program.ops[a] for a in args]
        if not all([_floating(f) and type(getattr(f, "value", None)) is not Formal for f in factors]):
            return None
        sizes = op.sizes(tuple([program.shapes[a] for a in args]))
        best = path(op.labels, op.out, sizes)
        network = ProductNetwork(list(range(len(args))), list(op.labels), op.out, sizes, 1.0, best)
        return _write(small, network, 1.0, given)

    return rewritten(program, rule)


class ProductNetwork(NamedTuple):
    """scale · Σ over labels of a product of slots, and its best path."""

    slots: list[int]
    labels: list[Labels]
    out: Labels
    sizes: dict[int, int]
    scale: float
    path: Path

    @property
    def held(self) -> list[Labels]:
        """The labels of all arrays along the path."""
        return results(self.labels, self.out, self.path.pairs)

    @property
    def smallest(self) -> int:
        """Which of them is the smallest: there the scale goes."""
        held = self.held
        return min(range(len(held)), key=lambda k: self.volume(held[k]))

    def volume(self, labels: Iterable[int]) -> int:
        """The number of indices of some labels."""
        return math.prod([self.sizes[k] for k in set(labels)])

    @property
    def numbers(self) -> int:
        """How many numbers go in and come out."""
        return sum([self.volume(ls) for ls in (*self.labels, self.out)])


class OrderedStep(NamedTuple):
    """A step as a sum of networks, with the work of these and that of the steps as they were written."""

    networks: list[ProductNetwork]
    work: float
    before: float  # ∞ where something else was written into it: its own steps are no more

    @property
    def price(self) -> float:
        """The work, one way or the other."""
        return min(self.work, self.before)

    @property
    def small(self) -> bool:
        """Whether no network has too many factors."""
        return all([len(n.slots) <= tuning.ORDERED_FACTORS for n in self.networks])

    @property
    def heavy(self) -> bool:
        """Whether it works more than a few times on each of its numbers: otherwise there is nothing to gain."""
        return self.price > 4 * sum([n.numbers for n in self.networks])

    @property
    def expands(self) -> bool:
        """Whether it has many more numbers than its factors: an outer product, better never formed."""
        return any([n.volume(n.out) > 4 * sum([n.volume(ls) for ls in n.labels]) > 0 for n in self.networks])


class _Networks:
    """The networks of a program: which steps are inside others (`inner`), and what each of them costs."""

    def __init__(self, program: Program, runs: int) -> None:
        self.program = program
        self.runs = runs
        self.moving = program.dependent(program.inputs) if runs > 1 else bytearray(b"\1") * len(program.ops)
        self.readers = program.readers()
        self.shown = set(program.outputs)
        slots = range(len(program.ops))
        self.inner = bytearray([self._single(s) and self._is_product(self.readers[s][0]) for s in slots])
        self.pointwise = bytearray(len(program.ops))  # networks of pointwise products and scalings: nothing to order
        for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
            product = type(op) is Contraction and not op.extra and all([ls == op.out for ls in op.labels])
            if type(op) is float or product:
                self.pointwise[slot] = all([self.pointwise[a] for a in args if self.inner[a]])
        self.plans: dict[int, OrderedStep | None] = {}

    def _is_product(self, slot: int) -> bool:
        op = self.program.ops[slot]
        return type(op) is float or (type(op) is Contraction and not op.strong)

    def _is_sum(self, slot: int) -> bool:
        ops, args, shapes = self.program.ops, self.program.args, self.program.shapes
        return type(ops[slot]) is Combination and all([shapes[a] == shapes[slot] for a in args[slot]])

    def _single(self, slot: int) -> bool:
        return self._is_product(slot) and len(self.readers[slot]) == 1 and slot not in self.shown

    def roots(self, slot: int) -> list[int]:
        """The steps whose networks a step is in."""
        seen: dict[int, None] = {}
        stack = [slot]
        while stack:
            at = stack.pop()
            if at not in seen:
                seen[at] = None
                stack.extend(self.readers[at] if self.inner[at] else ())
        return [at for at in seen if not self.inner[at]]

    # -- what a network costs ----------------------------------------------------------------------------

    def plan(self, root: int) -> OrderedStep | None:
        """A step as a sum of networks, remembered; None where it is not one."""
        if root not in self.plans:
            self.plans[root] = self._plan(root)
        return self.plans[root]

    def _plan(self, root: int) -> OrderedStep | None:
        networks = self._networks(root)
        if networks is None:
            return None
        added = (len(networks) - 1) * math.prod(self.program.shapes[root])
        scaled = sum([n.volume(n.held[n.smallest]) for n in networks if n.scale != 1.0])
        work = sum([n.path.flops for n in networks]) + self.runs * (added + scaled)
        return OrderedStep(networks, work, self._before(root))

    def _before(self, root: int) -> float:
        total, stack = 0.0, [root]
        while stack:
            slot = stack.pop()
            if slot != root and not self._single(slot):
                return math.inf
            total += self._work(slot)
            stack.extend([a for a in self.program.args[slot] if self.inner[a]])
        return total

    def _work(self, slot: int) -> int:
        """The work of a step as it was written."""
        ops, args, shapes = self.program.ops, self.program.args, self.program.shapes
        return (self.runs if self.moving[slot] else 1) * flops(ops[slot], [shapes[a] for a in args[slot]], shapes[slot])

    def _networks(self, root: int) -> list[ProductNetwork] | None:
        """The networks that a step is the sum of; None where some of it has to stay as it is."""
        drafts, done = [_Draft(root, len(self.program.shapes[root]))], list[ProductNetwork]()
        while drafts:
            draft = drafts.pop()
            summands = draft.grow(self, root)
            drafts.extend(reversed(summands or ()))
            if summands is None or len(drafts) + len(done) > tuning.ORDERED_SUMMANDS:
                return None
            if not summands:
                found = draft.network(self)
                if found is None:
                    return None
                done.append(found)
        return done

    # -- writing values and sums into their readers ---------------------------------------------------------

    def widen(self) -> None:
        """Write shared values and sums into the networks that read them, where that is less work."""
        left = [s for s in range(len(self.program.ops) - 1, -1, -1) if self._candidate(s)]
        for _ in range(tuning.ORDERED_SWEEPS):
            tried, left = left, [slot for slot in left if not self._widened(slot)]
            if len(left) == len(tried):
                break

    def _candidate(self, slot: int) -> bool:
        readers = self.readers[slot]
        if self.inner[slot] or slot in self.shown or not 0 < len(readers) <= tuning.ORDERED_READERS:
            return False
        if (self.pointwise[slot] or self._is_sum(slot)) and all([self.pointwise[r] for r in readers]):
            return False
        return all([self._is_product(s) or self._is_sum(s) for s in (slot, *readers)])

    def _widened(self, slot: int) -> bool:
        if self.inner[slot]:  # it went along with a sum
            return True
        if not all([self.inner[r] or self._is_product(r) for r in self.readers[slot]]):
            return False
        roots = list(dict.fromkeys([root for r in self.readers[slot] for root in self.roots(r)]))
        is_sum = self._is_sum(slot)
        summands = [a for a in dict.fromkeys(self.program.args[slot]) if self._single(a)] if is_sum else []
        products = [*roots, *(summands if is_sum else [slot])]
        old = [p for p in map(self.plan, products) if p is not None]
        if len(roots) > tuning.ORDERED_READERS or len(old) < len(products):
            return False
        if not any([p.heavy or p.expands for p in old]):
            return False
        before = sum([p.price for p in old]) + (self._work(slot) if is_sum else 0)
        for a in (slot, *summands):
            self.inner[a] = 1
        new = [p for p in map(self._plan, roots) if p is not None and p.small]
        if len(new) == len(roots) and sum([p.work for p in new]) < before:
            self.plans.update(zip(roots, new, strict=True))
            return True
        for a in (slot, *summands):
            self.inner[a] = 0
        return False

    # -- the result ----------------------------------------------------------------------------------------

    def written(self) -> Program:
        """The program with each network along its path; the program itself where none gets better."""
        program, inner = self.program, self.inner
        gone = bytearray(len(program.ops))  # steps inside a network that is written anew
        anew: dict[int, OrderedStep] = {}
        for slot in range(len(program.ops) - 1, -1, -1):
            if inner[slot]:
                gone[slot] = any([gone[r] if inner[r] else r in anew for r in self.readers[slot]])
            elif any([inner[a] for a in program.args[slot]]) and (slot in self.plans or not self.pointwise[slot]):
                plan = self.plan(slot)
                if plan is not None and plan.work < plan.before:
                    anew[slot] = plan
        if not anew:
            return program
        place: list[int] = []

        def rule(small: Program, slot: int, _: list[int]) -> int | None:
            return -1 if gone[slot] else _sum(small, anew[slot].networks, place) if slot in anew else None

        return rewritten(program, rule, place=place).pruned


class _Draft:
    """A network while it is read: its factors so far, and steps still to be opened with their readers' labels."""

    def __init__(self, root: int, rank: int) -> None:
        self.stack: list[tuple[int, Labels]] = [(root, tuple(range(rank)))]
        self.rank = self.fresh = rank
        self.factors: list[tuple[int, Labels]] = []
        self.sizes: dict[int, int] = {}
        self.same: dict[int, int] = {}  # labels that turned out to be one
        self.scale = 1.0

    def with_summand(self, k: float, slot: int, labels: Labels) -> _Draft:
        """A copy in which a sum is one of its summands."""
        found = copy(self)
        found.stack, found.factors = [*self.stack, (slot, labels)], list(self.factors)
        found.sizes, found.same, found.scale = dict(self.sizes), dict(self.same), self.scale * k
        return found

    def grow(self, networks: _Networks, root: int) -> list[_Draft] | None:
        """Open steps until none is left, or until a sum: then its summands. None where a factor must not be moved."""
        program = networks.program
        while self.stack:
            slot, given = self.stack.pop()
            op, args = program.ops[slot], program.args[slot]
            self.sizes.update(zip(given, program.shapes[slot], strict=True))
            if slot != root and not networks.inner[slot]:
                if not _floating(op):
                    return None
                self.factors.append((slot, given))
            elif type(op) is float:
                self.scale *= op
                self.stack.append((args[0], given))
            elif type(op) is Combination:
                return [self.with_summand(k, a, given) for k, a in zip(op.coefficients, args, strict=True)]
            else:
                self._open(op, args, given)
        return []

    def _open(self, op: Contraction, args: tuple[int, ...], given: Labels) -> None:
        own: dict[int, int] = {}
        for k, name in zip(op.out, given, strict=True):
            name, known = self.find(name), self.find(own.setdefault(k, name))
            if name != known:  # a diagonal: two labels of the reader are one
                self.same[max(name, known)] = min(name, known)
        for a, ls in zip(reversed(args), reversed(op.labels), strict=True):
            for k in ls:
                if k not in own:
                    own[k], self.fresh = self.fresh, self.fresh + 1
            self.stack.append((a, tuple([own[k] for k in ls])))

    def find(self, k: int) -> int:
        """The one name of a label."""
        same = self.same
        while k in same:
            same[k] = same.get(same[k], same[k])  # shorter the next time
            k = same[k]
        return k

    def network(self, networks: _Networks) -> ProductNetwork | None:
        """The finished network; None where its scale is out of range, or 0 because an axis is empty."""
        labels = [tuple([self.find(k) for k in ls]) for _, ls in self.factors]
        out, slots = tuple([self.find(k) for k in range(self.rank)]), [slot for slot, _ in self.factors]
        seen = {*out, *[k for ls in labels for k in ls]}
        summed = {self.find(k) for k in self.sizes} - seen  # repeated and summed again
        scale = self.scale * math.prod([float(self.sizes[k]) for k in summed])
        if not 1e-150 < abs(scale) < 1e150:
            return None
        fixed = [i for i, slot in enumerate(slots) if not networks.moving[slot]]
        best = path(labels, out, self.sizes, fixed, networks.runs)
        return ProductNetwork(slots, labels, out, self.sizes, scale, best)


def _sum(program: Program, networks: list[ProductNetwork], place: list[int]) -> int:
    """The steps of a sum of networks; a sign is a matter of the sum."""
    if len(networks) == 1:
        return _write(program, networks[0], networks[0].scale, place)
    slots = [_write(program, n, abs(n.scale), place) for n in networks]
    return program.step(Combination(tuple([math.copysign(1.0, n.scale) for n in networks])), slots)


def _write(program: Program, network: ProductNetwork, scale: float, place: list[int]) -> int:
    """The steps of a network along its path."""
    labels, out, pairs = network.labels, network.out, network.path.pairs
    held = [tuple(dict.fromkeys(ls)) for ls in network.held]
    if pairs and len(set(out)) == len(out) == len(held[-1]) and set(out) == set(held[-1]):
        held[-1] = out
    scaled = network.smallest if scale != 1.0 else -1
    made: list[int] = []
    for k, mine in enumerate(held):
        if k < len(labels):
            slot = place[network.slots[k]]
            slot = slot if mine == labels[k] else program.step(contraction((labels[k],), mine), (slot,))
        else:
            i, j = pairs[k - len(labels)]
            slot = program.step(contraction((held[i], held[j]), mine), (made[i], made[j]))
        made.append(program.scale(scale, slot) if k == scaled else slot)
    extra = {k: network.sizes[k] for k in out if k not in held[-1]}
    return made[-1] if held[-1] == out else program.step(contraction((held[-1],), out, extra), (made[-1],))


def _floating(op: Any) -> bool:
    """Whether a step holds floating-point numbers, which may be multiplied in any order; truth values may not."""
    if type(op) is Constant:
        return type(op.value) in (float, Formal) or op.value.dtype.kind == "f"
    return type(op) is not Discrete or getattr(dict(op.parameters).get("dtype"), "kind", "") == "f"
