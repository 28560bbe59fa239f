"""Where the numbers of a matrix can be, for maps whose steps are not all entries: running sums, transforms, loops,
linear algebra.

Every node of a network gets a matrix of truth values: which inputs reach which of its components. Entries, relations,
transforms and loops (round by round) say so exactly; what is known to depend on its arguments, and nothing more, is
full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform, mixed_axes
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...programs.program import Program, outputs
from ...programs.sub_programs import Block, Call, Loop
from ...relations.base import seal
from ...runtime import tuning
from ..matrices.matrix_patterns import between
from .entries import costs
from .network import Network, derived

Shape = tuple[int, ...]


class Reached(NamedTuple):
    """The positions of a matrix in CSR form."""

    indptr: Any
    indices: Any
    shape: tuple[int, int]

    @property
    def rows(self) -> Any:
        """The row of each position."""
        counts: Any = np.diff(self.indptr)
        return np.repeat(np.arange(self.shape[0], dtype=np.intp), counts)

    def with_data(self, data: Any) -> Any:
        """The sparse matrix with these numbers, which shares the index arrays."""
        return _sparse().csr_array((data, self.indices, self.indptr), shape=self.shape)


def reached(net: Network) -> Reached:
    """The pattern of the whole matrix, once for all points."""

    def make() -> Reached:
        sizes = [math.prod(net.shapes[s]) for s in net.inputs]
        given = [_eye(n, sum(sizes), sum(sizes[:i])) for i, n in enumerate(sizes)]
        found = _sparse().vstack([_none(0, sum(sizes)), *reach(net, given)], format="csr")
        found.sort_indices()
        return seal(Reached(found.indptr, found.indices, found.shape))

    return net.known("reached", make)


def reaching(net: Network) -> Any:
    """The same as a sparse matrix of truth values."""
    pattern = reached(net)
    return pattern.with_data(np.ones(len(pattern.indices), bool))


def few(net: Network) -> int | None:
    """How many positions a product of sparse matrices has; None where it is no such product, or hardly sparse."""
    every = math.prod([sum([math.prod(net.shapes[s]) for s in side]) for side in (net.inputs, net.outputs)])
    if net.kept or (8 * costs(net.c, net.entries).positions > every and not net.listed):
        return None
    paths = net.known("paths", lambda: _paths(net))
    return len(reached(net).indices) if 4 * paths <= every else None


def _paths(net: Network) -> float:
    """In how many ways inputs reach outputs: no less than the positions, and what it takes to find them."""
    found: dict[int, Any] = {s: np.ones(math.prod(net.shapes[s])) for s in net.inputs}
    for to in net.order:
        none = np.zeros(math.prod(net.shapes[to]))
        found[to] = sum([_edge(net, to, a, float) @ found[a] for a in net.blocks[to]], none)
    return float(sum([found[o].sum() for o in net.outputs]))


def filled(pattern: Reached, matrix: Any) -> Any:
    """A matrix as CSR with the positions of a pattern, whose index arrays it shares; all others must be 0."""
    if isinstance(matrix, np.ndarray):
        return pattern.with_data(cast(Any, matrix)[pattern.rows, pattern.indices])
    if matrix.nnz == len(pattern.indices):
        matrix.sort_indices()
        return pattern.with_data(matrix.data)
    width, found = pattern.shape[1], matrix.tocoo()
    data = np.zeros(len(pattern.indices), matrix.dtype)
    there = pattern.rows * width + pattern.indices
    data[np.searchsorted(there, found.row.astype(np.intp) * width + found.col)] = found.data
    return pattern.with_data(data)


def apart(net: Network) -> Any:
    """A number for each column of the matrix, such that columns of one number share no row: they go through the map
    together. None where that would hardly be fewer numbers than columns. Once for all points."""
    return net.known("apart", lambda: _apart(reached(net)))


def _apart(pattern: Reached) -> Any:
    """Group after group: of columns that meet, the one with the highest of some random numbers comes first."""
    height, width = pattern.shape
    if width < tuning.COLUMN_BY_COLUMN or 8 * int(np.diff(pattern.indptr).max(initial=0)) > width:
        return None
    found = np.full(width, -1)
    high = np.random.default_rng(0).permutation(width)
    rows, columns = pattern.rows, pattern.indices
    group = 0
    while len(columns):
        down, across = rows, columns
        while len(across):
            best = np.full(height, -1)
            np.maximum.at(best, down, high[across])
            beaten = np.zeros(width, bool)
            beaten[across[best[down] > high[across]]] = True
            won = across[~beaten[across]]
            found[won] = group
            met = np.zeros(height, bool)
            met[down[~beaten[across]]] = True
            out = np.zeros(width, bool)
            out[won] = True
            out[across[met[down]]] = True
            down, across = down[~out[across]], across[~out[across]]
        left = found[columns] < 0
        rows, columns, group = rows[left], columns[left], group + 1
    return np.maximum(found, 0)


def together(pattern: Reached, groups: Any, on_coordinates: Any, dtype: Any) -> Any:
    """A matrix as CSR with a known pattern, from the map applied to sums of columns that share no row."""
    given = np.zeros((pattern.shape[1], int(groups.max()) + 1), dtype)
    given[np.arange(len(groups)), groups] = 1.0
    return pattern.with_data(on_coordinates(given)[pattern.rows, groups[pattern.indices]])


def reach(net: Network, given: Sequence[Any]) -> list[Any]:
    """What reaches the outputs of a network, from what reaches its inputs."""
    found: dict[int, Any] = dict(zip(net.inputs, given, strict=True))
    width = given[0].shape[1] if given else 0
    for to in net.order:
        if to in net.kept:
            op, args = net.kept[to]
            arrays: list[Any] = [found[a] if moves else None for moves, a in args]
            shapes = [net.shapes[a] if moves else net.c.program.shapes[a] for moves, a in args]
            found[to] = PATTERNS[type(op)](op, KeptStep(arrays, shapes, net.shapes[to], width))
        else:
            parts = [_edge(net, to, a, bool) @ found[a] for a in net.blocks[to]]
            found[to] = _any(parts, math.prod(net.shapes[to]), width)
    return [found[o] for o in net.outputs]


class KeptStep(NamedTuple):
    """What reaches each argument of a step, None for those that do not move; shapes; the number of inputs."""

    given: list[Any]
    shapes: list[Any]
    shape: Any
    width: int

    def reached(self, step: Callable[[int], Any]) -> Any:
        """What reaches the result: `step` says which components of an argument do."""
        return _any([step(i) @ x for i, x in enumerate(self.given) if x is not None], math.prod(self.shape), self.width)

    def full(self, lead: int = 0) -> Any:
        """All to all at each index of some leading axes; of each result, where there are several."""
        if not self.shape or type(self.shape[0]) is not tuple:
            n, rows = math.prod(self.shape[:lead]), math.prod(self.shape)
            return self.reached(lambda i: _each(n, rows, math.prod(self.shapes[i])))
        n = math.prod(self.shape[0][:lead])
        rows = _any([_each(n, n, x.shape[0]) @ x for x in self.given if x is not None], n, self.width)
        return [_each(n, math.prod(s), n) @ rows for s in self.shape]


PATTERNS = OpRules[Callable[[Any, KeptStep], Any]]("maps.normal_form.sparsity.PATTERNS")
"""Which inputs reach which components of the result of a step that is not entries; a list for several results."""
PATTERNS("that of its entries", float, Combination, Contraction, Cast, Reshape)(lambda op, s: s.full())
PATTERNS("full, where it is not entries", Single, Take, Put, Convolution, ExchangedLeg)(lambda op, s: s.full())
PATTERNS("none: not linear", Elementwise, Select, Discrete)(lambda op, s: s.full())
PATTERNS("full at each leading index", Declared)(lambda op, s: s.full(len(op.lead(tuple(s.shapes)))))
PATTERNS("full along its axes", Transform)(lambda op, s: s.reached(lambda i: _transform(op, s.shapes[i], s.shape)))
PATTERNS("as the op inside", Strongly)(lambda op, s: PATTERNS[type(op.op)](op.op, s))
PATTERNS("that of one result", Get)(lambda op, s: s.given[0][op.at])
PATTERNS("round by round", Loop)(lambda op, s: _loop(op, s.given, s.width))


@PATTERNS("that of all branches", Call)
def _call(op: Call, s: KeptStep) -> list[Any]:
    several = [_body(op, i, p, s.given[op.fixed :], s.width) for i, p in enumerate(op.branches)]
    return [_any(list(parts), parts[0].shape[0], s.width) for parts in zip(*several, strict=True)]


@PATTERNS("the pairs of the relations", Reduction)
def _reduction(op: Reduction, s: KeptStep) -> Any:
    def step(i: int) -> Any:
        relation, lead = op.relations[i], math.prod(s.shapes[i][: op.axis])
        rows, cols, _ = relation.pairs()
        shape = relation.target.size, relation.source.size
        core = _sparse().csr_array((np.ones(len(rows), bool), (cols, rows)), shape=shape)
        core.sum_duplicates()
        return _kron(_kron(_eye(lead), core), _eye(math.prod(s.shapes[i]) // max(lead * relation.source.size, 1)))

    return s.reached(step)


@PATTERNS("full along the axes it mixes", Ruled)
def _ruled(op: Ruled, s: KeptStep) -> Any:
    mixes = op.smooth.mixes
    if mixes is None or (s.shape and type(s.shape[0]) is tuple):
        return s.full(op.smooth.lead)
    return s.reached(lambda i: _along(s.shape, s.shapes[i], {a % len(s.shape) for a in mixes}))


def _each(n: int, rows: int, columns: int) -> Any:
    """All to all at every index of some leading axes, n in all."""
    return _kron(_eye(n), _full(rows // max(n, 1), columns // max(n, 1)))


def _along(target: Shape, source: Shape, mixed: set[int]) -> Any:
    """All to all along some axes, nothing along others."""
    total = _eye(1)
    for k, (m, n) in enumerate(zip(target, source, strict=True)):
        total = _kron(total, _full(m, n) if k in mixed else _eye(n))
    return total


def _transform(op: Any, source: Shape, target: Shape) -> Any:
    """All along the axes of the transform and between the parts of a number, nothing along others."""
    rank, moved = mixed_axes(op, source, target)
    total = _along(target[:rank], source[:rank], moved)
    parts = [math.prod(s[rank:]) for s in (target, source)]
    return _kron(total, _full(*parts))


def _loop(op: Loop, given: list[Any], width: int) -> list[Any]:
    """A loop, round by round."""
    sizes = [math.prod(op.body.shapes[s]) for s in op.body.inputs]
    first, last = op.consts, op.consts + op.carries
    consts, carry, stacked = given[:first], given[first:last], given[last:]
    rounds: list[list[Any]] = []

    def carried() -> list[Any]:
        return [_none(n, width) if x is None else x for x, n in zip(carry, sizes[first:last], strict=True)]

    for t in reversed(range(op.length)) if op.reverse else range(op.length):
        here = [None if x is None else x[t * n : (t + 1) * n] for x, n in zip(stacked, sizes[last:], strict=True)]
        found = _body(op, 0, op.body, [*consts, *carry, *here], width)
        rounds.append([*found[op.carries :], *(carried() if op.keep else [])])
        steady = all([x is None for x in stacked]) and _alike(carried(), found[: op.carries])
        carry = found[: op.carries]
        if steady:  # and so in all rounds that follow
            rounds += [rounds[-1]] * (op.length - len(rounds))
            break
    columns: Any = zip(*(rounds[::-1] if op.reverse else rounds), strict=True)
    columns = columns if rounds else [() for _ in op.result(())[op.carries :]]
    return [*carried(), *[_sparse().vstack([_none(0, width), *column], format="csr") for column in columns]]


def _alike(some: list[Any], others: list[Any]) -> bool:
    """Whether patterns are the same."""
    return all([a.nnz == b.nnz and not (a != b).nnz for a, b in zip(some, others, strict=True)])


def _body(op: Block, number: int, program: Program, given: Sequence[Any], width: int) -> list[Any]:
    """What reaches the outputs of a program inside a step."""
    still = tuple([i for i, x in enumerate(given) if x is None])
    moves = [i for i, x in enumerate(given) if x is not None]
    key = ("reach", number, still)
    if key not in op.known:
        turned = Program()
        slots = {i: turned.input(program.shapes[program.inputs[i]]) for i in (*still, *moves)}
        turned.outputs = outputs(program, turned, [slots[i] for i in range(len(given))])
        op.known[key] = derived(turned, len(still))
    if moves:
        return reach(op.known[key], [given[i] for i in moves])
    return [_none(math.prod(program.shapes[s]), width) for s in program.outputs]


def _edge(net: Network, to: int, a: int, kind: Any) -> Any:
    """Ones where a node reaches another."""
    p, shape = between(net, to, a), (math.prod(net.shapes[to]), math.prod(net.shapes[a]))
    return Reached(p.indptr, p.indices, shape).with_data(np.ones(p.size, kind))


# -- matrices of truth values ----------------------------------------------------------------------------


def _sparse() -> Any:
    import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

    return cast(Any, scipy_sparse)


def _eye(n: int, width: int | None = None, start: int = 0) -> Any:
    return _sparse().eye_array(n, n if width is None else width, k=start, format="csr", dtype=bool)


def _full(rows: int, columns: int) -> Any:
    return _sparse().csr_array(np.ones((rows, columns), bool))


def _none(rows: int, columns: int) -> Any:
    return _sparse().csr_array((rows, columns), dtype=bool)


def _kron(a: Any, b: Any) -> Any:
    return _sparse().kron(a, b, format="csr").astype(bool)


def _any(parts: list[Any], rows: int, width: int) -> Any:
    """What reaches one of several."""
    return sum(parts, _none(rows, width))
