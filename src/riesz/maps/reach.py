"""Where the numbers of a matrix can be, for maps whose steps are not all entries: running sums, transforms, loops, linear algebra.

Every node of a network gets a matrix of truth values: which inputs reach which of its components. Entries, relations, transforms and loops (round by
round) say so exactly; what is known to depend on its arguments, and nothing more, is full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..fourier import Fourier, Transform
from ..opaque import Get, Strongly
from ..ops import Reduction
from ..programs.blocks import Block, Call, Loop
from ..programs.program import Program, outputs
from ..relations.core import seal
from .entries import costs
from .network import Kept, Network, derived
from .patterns import between

Shape = tuple[int, ...]
SHORT = 256
"""Up to so many columns a matrix is computed column by column."""


class Reached(NamedTuple):
    """The positions of a matrix in CSR form."""

    indptr: Any
    indices: Any
    shape: tuple[int, int]


def reached(net: Network) -> Reached:
    """The pattern of the whole matrix, once for all points."""
    with net.c.lock:
        if "reached" not in net.made:
            sizes = [_count(net.shapes[s]) for s in net.inputs]
            given = [_eye(n, sum(sizes), sum(sizes[:i])) for i, n in enumerate(sizes)]
            found = _sparse().vstack([_none(0, sum(sizes)), *reach(net, given)], format="csr")
            found.sort_indices()
            net.made["reached"] = seal(Reached(found.indptr, found.indices, found.shape))
    return net.made["reached"]


def few(net: Network) -> int | None:
    """How many positions a matrix has that is a product of sparse ones; None where it is no such product, or hardly sparse."""
    every = math.prod([sum([_count(net.shapes[s]) for s in side]) for side in (net.inputs, net.outputs)])
    if net.kept or (8 * costs(net.c, net.entries).positions > every and not net.listed):
        return None
    with net.c.lock:
        if "paths" not in net.made:
            net.made["paths"] = _paths(net)
    return len(reached(net).indices) if 4 * net.made["paths"] <= every else None


def _paths(net: Network) -> float:
    """In how many ways the inputs reach the outputs: no less than the positions of the matrix, and what it takes to find them."""
    found: dict[int, Any] = {s: np.ones(_count(net.shapes[s])) for s in net.inputs}
    for to in net.order:
        found[to] = sum([_edge(net, to, a, float) @ found[a] for a in net.blocks[to]], np.zeros(_count(net.shapes[to])))
    return float(sum([found[o].sum() for o in net.outputs]))


def filled(pattern: Reached, matrix: Any) -> Any:
    """A dense or sparse matrix as CSR with the positions of a pattern, whose index arrays it shares; all others must be 0."""
    if not isinstance(matrix, np.ndarray) and matrix.nnz == len(pattern.indices):
        matrix.sort_indices()
        return _sparse().csr_array((matrix.data, pattern.indices, pattern.indptr), shape=pattern.shape)
    rows = _rows(pattern)
    if isinstance(matrix, np.ndarray):
        data = cast(Any, matrix)[rows, pattern.indices]
    else:
        width = pattern.shape[1]
        found = matrix.tocoo()
        data = np.zeros(len(rows), matrix.dtype)
        data[np.searchsorted(rows * width + pattern.indices, found.row.astype(np.intp) * width + found.col)] = found.data
    return _sparse().csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)


def apart(net: Network) -> Any:
    """A number for each column of the matrix, such that columns of one number share no row: they go through the map together. None where that
    would hardly be fewer numbers than columns. Once for all points."""
    with net.c.lock:
        if "apart" not in net.made:
            pattern = reached(net)
            most = int(np.diff(pattern.indptr).max(initial=0))
            net.made["apart"] = _apart(pattern) if pattern.shape[1] >= SHORT and 8 * most <= pattern.shape[1] else None
    return net.made["apart"]


def _apart(pattern: Any) -> Any:
    """Group after group, each as large as it can be: of columns that meet, the one with the highest of some random numbers is taken first."""
    height, width = pattern.shape
    found = np.full(width, -1)
    high = np.random.default_rng(0).permutation(width)
    rows, columns = _rows(pattern), pattern.indices
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


def together(pattern: Any, groups: Any, matmat: Any, dtype: Any) -> Any:
    """A matrix as CSR with a known pattern, from the map applied to sums of columns that share no row."""
    given = np.zeros((pattern.shape[1], int(groups.max()) + 1), dtype)
    given[np.arange(len(groups)), groups] = 1.0
    return _sparse().csr_array((matmat(given)[_rows(pattern), groups[pattern.indices]], pattern.indices, pattern.indptr), shape=pattern.shape)


def reach(net: Network, given: Sequence[Any]) -> list[Any]:
    """What reaches the outputs of a network, from what reaches its inputs."""
    found: dict[int, Any] = dict(zip(net.inputs, given, strict=True))
    width = given[0].shape[1] if given else 0
    for to in net.order:
        if to in net.kept:
            found[to] = _kept(net, net.kept[to], to, found, width)
        else:
            parts = [_edge(net, to, a, bool) @ found[a] for a in net.blocks[to]]
            found[to] = _any(parts, _count(net.shapes[to]), width)
    return [found[o] for o in net.outputs]


def _kept(net: Network, kept: Kept, to: int, found: dict[int, Any], width: int) -> Any:
    op = kept.op.op if isinstance(kept.op, Strongly) else kept.op
    given: list[Any] = [found[a] if moves else None for moves, a in kept.args]
    shapes = [net.shapes[a] if moves else net.c.program.shapes[a] for moves, a in kept.args]
    shape: Any = net.shapes[to]
    if isinstance(op, Get):
        return given[0][op.at]
    if isinstance(op, Call):
        several = [_body(op, i, p, given[op.fixed :], width) for i, p in enumerate(op.branches)]
        return [_any(list(parts), parts[0].shape[0], width) for parts in zip(*several, strict=True)]
    if isinstance(op, Loop):
        return _loop(op, given, width)
    if shape and type(shape[0]) is tuple:  # several results
        rows = _any([_full(1, x.shape[0]) @ x for x in given if x is not None], 1, width)
        return [_full(_count(s), 1) @ rows for s in shape]
    return _any([_step(op, i, shapes[i], shape) @ x for i, x in enumerate(given) if x is not None], _count(shape), width)


def _step(op: Any, i: int, source: Shape, target: Shape) -> Any:
    """Which components of argument i reach which of the result."""
    if isinstance(op, Reduction):
        relation = op.relations[i]
        rows, cols, _ = relation.pairs()
        lead = math.prod(source[: op.axis])
        core = _at(cols, rows, (relation.target.size, relation.source.size))
        return _kron(_kron(_eye(lead), core), _eye(_count(source) // max(lead * relation.source.size, 1)))
    if isinstance(op, Transform):
        return _transform(op, source, target)
    return _full(_count(target), _count(source))


def _transform(op: Any, source: Shape, target: Shape) -> Any:
    """All along the axes of the transform and between the parts of a number, nothing along others."""
    axes = op.axes if isinstance(op, Fourier) else (op.axis,)
    rank = max(len(source), len(target)) - 1 if len(source) != len(target) else len(source) - 1
    moved = {a % rank for a in axes}
    total = _eye(1)
    for k in range(rank):
        total = _kron(total, _full(target[k], source[k]) if k in moved else _eye(source[k]))
    parts = [math.prod(s[rank:]) for s in (target, source)]
    return _kron(total, _full(*parts))


def _loop(op: Loop, given: list[Any], width: int) -> list[Any]:
    """A loop, round by round."""
    shapes = [op.body.shapes[s] for s in op.body.inputs]
    consts, carry, stacked = given[: op.consts], given[op.consts : op.consts + op.carries], given[op.consts + op.carries :]
    sizes = [_count(s) for s in shapes[op.consts + op.carries :]]
    rounds: list[list[Any]] = []
    for t in reversed(range(op.length)) if op.reverse else range(op.length):
        here = [None if x is None else x[t * n : (t + 1) * n] for x, n in zip(stacked, sizes, strict=True)]
        found = _body(op, 0, op.body, [*consts, *carry, *here], width)
        kept = [_none(_count(s), width) if x is None else x for x, s in zip(carry, shapes[op.consts :], strict=False)] if op.keep else []
        rounds.append([*found[op.carries :], *kept])
        carry = found[: op.carries]
    ends = [_none(_count(s), width) if x is None else x for x, s in zip(carry, shapes[op.consts :], strict=False)]
    columns = zip(*(reversed(rounds) if op.reverse else rounds), strict=True) if rounds else [() for _ in op.result(())[op.carries :]]
    return [*ends, *[_sparse().vstack([_none(0, width), *column], format="csr") for column in columns]]


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
    return reach(op.known[key], [given[i] for i in moves]) if moves else [_none(_count(program.shapes[s]), width) for s in program.outputs]


def _edge(net: Network, to: int, a: int, kind: Any) -> Any:
    """Ones where a node reaches another."""
    p = between(net, to, a)
    return _sparse().csr_array((np.ones(p.size, kind), p.indices, p.indptr), shape=(_count(net.shapes[to]), _count(net.shapes[a])))


# -- matrices of truth values ----------------------------------------------------------------------------


def _sparse() -> Any:
    import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

    return cast(Any, scipy_sparse)


def _rows(matrix: Any) -> Any:
    """The row of each stored number."""
    counts: Any = np.diff(matrix.indptr)
    return np.repeat(np.arange(matrix.shape[0], dtype=np.intp), counts)


def _count(shape: Any) -> int:
    return math.prod(shape)


def _at(down: Any, across: Any, shape: tuple[int, int]) -> Any:
    if 0 in shape:  # an axis of no length that all entries are the same along has no label
        down = across = np.zeros(0, np.intp)
    found = _sparse().csr_array((np.ones(len(down), bool), (down, across)), shape=shape)
    found.sum_duplicates()
    return found


def _eye(n: int, width: int | None = None, start: int = 0) -> Any:
    at = np.arange(n)
    return _at(at, start + at, (n, n if width is None else width))


def _full(rows: int, columns: int) -> Any:
    return _sparse().csr_array(np.ones((rows, columns), bool))


def _none(rows: int, columns: int) -> Any:
    return _sparse().csr_array((rows, columns), dtype=bool)


def _kron(a: Any, b: Any) -> Any:
    return _sparse().kron(a, b, format="csr").astype(bool)


def _any(parts: list[Any], rows: int, width: int) -> Any:
    """What reaches one of several."""
    total = _none(rows, width)
    for p in parts:
        total = total + p
    return total
