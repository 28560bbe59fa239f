"""Relations with multiplicities against their definition, the matrix of multiplicities   (§2.2.3)."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from riesz import IndexSetError, RelationError, relation, relations, seg
from riesz.relations import (
    Beside,
    Both,
    Diagonal,
    Empty,
    Full,
    Function,
    Gather,
    Pairs,
    Place,
    Point,
    Range,
    Relation,
    Segments,
    Spanned,
    Sum,
    Through,
    Triangular,
    Union,
    blocks,
)
from riesz.relations.counts import Counted
from riesz.relations.index_sets import Plus, unit

X, Y = seg(3), seg(4)
GRID, UNION = seg(2) * seg(3), seg(2) + seg(2)
BESIDE = Beside(Y + X, X, (relations.function(Y, X, [2, 0, 2, 2]), relations.full(X, X)), False)
LISTED = [((1, 0), (0, 1)), ((0, 2), (1, 1))]
RNG = np.random.default_rng(0)


def by_rule(source, target, holds) -> np.ndarray:
    """The matrix of a relation from its defining property."""
    return np.array([[int(holds(x, y)) for y in target] for x in source]).reshape(len(source), len(target))


# One row per kind: the relation, and its matrix by definition.
CASES = {
    "empty": (relations.empty(X, Y), np.zeros((3, 4), int)),
    "diagonal": (relations.diagonal(X), np.eye(3, dtype=int)),
    "renaming": (Diagonal(Y, UNION), np.eye(4, dtype=int)),
    "full": (relations.full(X, Y), np.ones((3, 4), int)),
    "full, five times": (Full(X, Y, 5), np.full((3, 4), 5)),
    "full on the empty set": (relations.full(seg(0), Y), np.zeros((0, 4), int)),
    "full into the empty set": (relations.full(X, seg(0)), np.zeros((3, 0), int)),
    "function": (relations.function(Y, X, [2, 0, 2, 2]), by_rule(Y, X, lambda x, y: y == [2, 0, 2, 2][x])),
    "function by rule": (relations.function(GRID, X, lambda ij: ij[1]), by_rule(GRID, X, lambda x, y: x[1] == y)),
    "function into a product": (relations.function(X, GRID, [(1, 2), (0, 0), (1, 2)]), np.eye(6, dtype=int)[[5, 0, 5]]),
    "function into a union": (relations.function(X, UNION, [(1, 0), (0, 1), (1, 1)]), np.eye(4, dtype=int)[[2, 1, 3]]),
    "function from nothing": (relations.function(seg(0), X, []), np.zeros((0, 3), int)),
    "gather": (relations.gather(X, Y, [2, 2, 0, 1]), by_rule(X, Y, lambda x, y: x == [2, 2, 0, 1][y])),
    "segments": (relations.segments([0, 2, 2, 5]), np.eye(3, dtype=int)[[0, 0, 2, 2, 2]]),
    "segments repeated": (relations.segments([0, 2, 2, 5]).converse, np.eye(3, dtype=int)[[0, 0, 2, 2, 2]].T),
    "no segments": (relations.segments([0]), np.zeros((0, 0), int)),
    "segments of nothing": (relations.segments([0, 0, 0]), np.zeros((0, 2), int)),
    "through a hub": (
        relations.join([7] * 5 + [8], [7, 7, 8, 7, 9]),
        np.array([[1, 1, 0, 1, 0]] * 5 + [[0, 0, 1, 0, 0]]),
    ),
    "in turn": (
        Through(Y, X, (relations.triangular(Y), relations.function(Y, X, [2, 0, 2, 2]))),
        np.triu(np.ones((4, 4), int)) @ np.eye(3, dtype=int)[[2, 0, 2, 2]],
    ),
    "scan": (relations.triangular(Y), by_rule(Y, Y, lambda i, j: i <= j)),
    "strict scan": (Triangular(Y, Y, True, True), by_rule(Y, Y, lambda i, j: i < j)),
    "strict suffix": (Triangular(Y, Y, False, True), by_rule(Y, Y, lambda i, j: i > j)),
    "suffix": (Triangular(Y, Y, False), by_rule(Y, Y, lambda i, j: i >= j)),
    "pairs": (
        relations.pairs(X, Y, [(2, 0), (0, 1), (0, 1), (1, 3), (2, 0), (2, 0)]),
        np.array([[0, 2, 0, 0], [0, 0, 0, 1], [3, 0, 0, 0]]),
    ),
    "pairs of elements": (relations.pairs(GRID, UNION, LISTED), by_rule(GRID, UNION, lambda x, y: (x, y) in LISTED)),
    "no pairs": (relations.pairs(X, Y, []), np.zeros((3, 4), int)),
    "point": (relations.point(Y, 2), np.eye(4, 1, -2, int)),
    "place": (Place(unit, Y, 2), np.eye(4, 1, -2, int).T),
    "slice": (Range(Y, seg(2), 1, 2), np.eye(4, dtype=int)[:, [1, 3]]),
    "slice backwards": (Range(Y, X, 3, -1), np.eye(4, dtype=int)[:, [3, 2, 1]]),
    "slice put back": (Range(seg(2), Y, 3, -2, True), np.eye(4, dtype=int)[[3, 1]]),
    "empty slice": (Range(Y, seg(0), 0, 1), np.zeros((4, 0), int)),
    "shift": (relations.shift(Y, 1), np.eye(4, k=1, dtype=int)),
    "shift back": (relations.shift(Y, -2), np.eye(4, k=-2, dtype=int)),
    "stride to stride": (
        relations.stride(seg(7), seg(5), 5, -2, 0, 2),
        by_rule(seg(7), seg(5), lambda x, y: (x, y) in [(5, 0), (3, 2), (1, 4)]),
    ),
    "window": (relations.window(seg(6), 3), by_rule(seg(6), seg(4), lambda x, y: 0 <= x - y < 3)),
    "window, strided and dilated": (
        relations.window(seg(9), 3, 2, 2),
        by_rule(seg(9), seg(3), lambda x, y: x - 2 * y in (0, 2, 4)),
    ),
    "stencil of two axes": (
        relations.window(seg(3), 2) * relations.window(seg(4), 2),
        np.kron(
            by_rule(seg(3), seg(2), lambda x, y: 0 <= x - y < 2), by_rule(seg(4), seg(3), lambda x, y: 0 <= x - y < 2)
        ),
    ),
    "broadcast of one axis": (
        relations.diagonal(seg(2)) * relations.full(seg(1), X),
        np.kron(np.eye(2, dtype=int), np.ones((1, 3), int)),
    ),
    "sum over one axis": (
        relations.full(seg(2), seg(1)) * relations.diagonal(X),
        np.kron(np.ones((2, 1), int), np.eye(3, dtype=int)),
    ),
    "product with an order": (
        relations.triangular(X) * relations.function(Y, X, [2, 0, 2, 2]),
        np.kron(np.triu(np.ones((3, 3), int)), np.eye(3, dtype=int)[[2, 0, 2, 2]]),
    ),
    "sum of relations": (
        relations.full(X, Y) + relations.triangular(X),
        np.block(
            [[np.ones((3, 4), int), np.zeros((3, 3), int)], [np.zeros((3, 4), int), np.triu(np.ones((3, 3), int))]]
        ),
    ),
    "union": (
        relations.diagonal(X) | relations.triangular(X) | relations.diagonal(X),
        2 * np.eye(3, dtype=int) + np.triu(np.ones((3, 3), int)),
    ),
    "side by side": (BESIDE, np.concatenate([np.eye(3, dtype=int)[[2, 0, 2, 2]], np.ones((3, 3), int)])),
    "one above the other": (
        BESIDE.converse,
        np.concatenate([np.eye(3, dtype=int)[[2, 0, 2, 2]], np.ones((3, 3), int)]).T,
    ),
    "none side by side": (Beside(Plus(()), X, (), False), np.zeros((0, 3), int)),
    "none above the other": (Beside(X, Plus(()), (), True), np.zeros((3, 0), int)),
}
every_relation = pytest.mark.parametrize(("R", "matrix"), CASES.values(), ids=CASES)


def red(matrix: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(red_R v)_y = Σ_x R(x, y)·v_x, along the middle axis."""
    return np.einsum("xy,axb->ayb", matrix, v)


def test_every_kind_has_a_case():
    kinds = {type(R) for R, _ in CASES.values()}
    every = {
        Beside,
        Both,
        Empty,
        Diagonal,
        Full,
        Function,
        Gather,
        Triangular,
        Pairs,
        Point,
        Place,
        Range,
        Segments,
        Spanned,
        Sum,
        Through,
        Union,
    }
    every_one = set(Relation.__subclasses__()) - {Counted}  # that has no pairs
    families = {k for k in Relation.__subclasses__() if k.__subclasses__()}
    members = {k for family in families for k in family.__subclasses__()}
    assert kinds == every == every_one - families | members


@every_relation
def test_matrix_is_the_definition(R: Relation, matrix):
    assert (len(R.source), len(R.target)) == matrix.shape
    assert np.array_equal(R.matrix().toarray(), matrix)


@every_relation
def test_pairs_list_the_definition(R: Relation, matrix):
    rows, cols, times = R.pairs()
    found = np.zeros_like(matrix)
    np.add.at(found, (rows, cols), times)
    assert np.array_equal(found, matrix)


@every_relation
@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reduce_is_the_definition_and_keeps_the_type(R: Relation, matrix, shape, dtype):
    a, b = shape
    v = RNG.standard_normal((a, len(R.source), b)).astype(dtype)
    got = R.reduce(v)
    assert got.dtype == dtype and got.shape == (a, len(R.target), b)
    assert np.allclose(
        got, red(matrix, v), rtol=1e-13 if dtype is np.float64 else 1e-5, atol=1e-13 if dtype is np.float64 else 1e-5
    )


@every_relation
def test_reduce_takes_views(R: Relation, matrix):
    v = RNG.standard_normal((5, len(R.source), 2)).transpose(2, 1, 0)[::-1]
    assert np.allclose(R.reduce(v), red(matrix, v))


@every_relation
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reduce_into_adds(R: Relation, matrix, dtype):
    v = RNG.standard_normal((2, len(R.source), 3)).astype(dtype)
    start = RNG.standard_normal((2, len(R.target), 3)).astype(dtype)
    total = start.copy()
    R.reduce_into(total, v)
    assert total.dtype == dtype
    assert np.allclose(total, start + red(matrix, v), atol=1e-6)


@every_relation
def test_reduce_leaves_its_argument_alone(R: Relation, matrix):
    v = RNG.standard_normal((2, len(R.source), 3))
    kept = v.copy()
    R.reduce(v)
    R.reduce_into(np.zeros((2, len(R.target), 3)), v)
    assert np.array_equal(v, kept)


@every_relation
def test_converse_is_the_transpose_and_an_involution(R: Relation, matrix):
    assert R.converse.source is R.target and R.converse.target is R.source
    assert np.array_equal(R.converse.matrix().toarray(), matrix.T)
    assert R.converse.converse is R
    w = RNG.standard_normal((2, len(R.target), 3))
    assert np.allclose(R.converse.reduce(w), red(matrix.T, w))


@every_relation
def test_the_converse_is_the_adjoint(R: Relation, matrix):
    v, w = RNG.standard_normal((2, len(R.source), 3)), RNG.standard_normal((2, len(R.target), 3))
    assert np.isclose(np.vdot(R.reduce(v), w), np.vdot(v, R.converse.reduce(w)), rtol=1e-12, atol=1e-12)


@every_relation
def test_then_multiplies_multiplicities(R: Relation, matrix):
    for name, (S, other) in CASES.items():
        if R.target is not S.source:
            with pytest.raises(RelationError, match=r"the first ends in .*, the second starts at"):
                R.then(S)
            continue
        both = R.then(S)
        assert both.source is R.source and both.target is S.target, name
        assert np.array_equal(both.matrix().toarray(), matrix @ other), name
        v = RNG.standard_normal((2, len(R.source), 3))
        assert np.allclose(both.reduce(v), S.reduce(R.reduce(v))), name


def test_then_keeps_compact_kinds():
    f, g = relations.function(X, Y, [3, 3, 1]), relations.function(Y, GRID, np.array([5, 0, 0, 1]))
    assert isinstance(f.then(g), Function)
    assert isinstance(g.converse.then(f.converse), Gather)
    assert relations.full(X, Y).then(relations.full(Y, X)) is Full(X, X, 4)
    assert relations.diagonal(X).then(f) is f is f.then(relations.diagonal(Y))
    assert f.then(relations.empty(Y, X)) is relations.empty(X, X)


def test_many_paths_are_counted_exactly():
    """Two ways at each of sixty steps are 2^60 ways."""
    both = relations.pairs(seg(1), seg(1), [(0, 0), (0, 0)])
    ways = both
    for _ in range(59):
        ways = ways.then(both)
    assert ways.matrix().toarray().tolist() == [[2**60]]
    assert ways.reduce(np.ones((1, 1, 1))).item() == 2.0**60


def test_too_many_paths_are_never_wrapped_around():
    both = relations.pairs(seg(1), seg(1), [(0, 0), (0, 0)])
    ways = both
    for _ in range(69):
        ways = ways.then(both)
    assert ways.reduce(np.ones((1, 1, 1))).item() == 2.0**70


@every_relation
def test_blocks_put_together_are_the_relation(R: Relation, matrix):
    from riesz.relations.index_sets import boxes

    found = np.zeros_like(matrix)
    for row, (_, to) in zip(blocks(R), boxes(R.target), strict=True):
        for block, (_, at) in zip(row, boxes(R.source), strict=True):
            rows = np.arange(len(R.source)) if at is None else at
            cols = np.arange(len(R.target)) if to is None else to
            found[np.ix_(rows, cols)] += block.matrix().toarray()
    assert np.array_equal(found, matrix)


def test_blocks_between_sums_by_hand():
    R = relations.function(UNION, UNION, [(1, 0), (0, 0), (0, 1), (0, 1)])
    (a, b), (c, d) = [[block.matrix().toarray().tolist() for block in row] for row in blocks(R)]
    assert a == [[0, 0], [1, 0]] and b == [[0, 1], [0, 1]]  # into the first summand
    assert c == [[1, 0], [0, 0]] and d == [[0, 0], [0, 0]]
    assert isinstance(blocks(R)[1][1], Empty)
    assert [[type(r) for r in row] for row in blocks(relations.full(UNION, X))] == [[Full, Full]]


def test_a_box_to_a_box_is_one_block():
    R = relations.function(GRID, X, lambda ij: ij[1])
    assert blocks(R) == [[R]]


@every_relation
def test_relations_are_immutable_and_survive_copies(R: Relation, matrix):
    assert copy.deepcopy(R) is R
    assert np.array_equal(pickle.loads(pickle.dumps(R)).matrix().toarray(), matrix)
    with pytest.raises(AttributeError, match="immutable"):
        R.source = X  # pyright: ignore


def test_a_given_array_is_copied_and_frozen():
    image = np.array([0, 1, 0])
    R = relations.function(X, Y, image)
    image[0] = 3
    assert R.matrix().toarray()[0].tolist() == [1, 0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        R.index[0] = 2


def test_what_has_no_closed_form_stays_in_steps_if_its_pairs_are_more():
    n = 10**5
    R = relations.triangular(seg(n)).then(relations.sliced(seg(n), slice(5, None, 3)))  # billions of pairs, n additions
    v = np.arange(n, dtype=float)
    assert np.array_equal(R.reduce(v[None, :, None])[0, :, 0], np.cumsum(v)[5::3])
    assert R.count == sum(range(6, n + 1, 3))
    assert np.array_equal(
        relations.triangular(seg(n)).restrict(source=slice(0, 10)).in_degrees, np.minimum(np.arange(n) + 1, 10)
    )


@pytest.mark.long
def test_long_chains_of_compositions():
    n = 50
    turn, order = relations.permutation(seg(n), np.roll(np.arange(n), 1)), relations.triangular(seg(n))
    R = order
    for _ in range(1500):
        R = R.then(turn).then(order)
    assert isinstance(R, Through) and R.reduce(np.zeros((1, n, 1))).shape == (1, n, 1)
    assert R.converse.converse is R and len(repr(R)) < 1000


def test_compact_kinds_store_no_pairs():
    n = 10**6
    v = np.ones((1, n, 1))
    compact = [
        relations.triangular(seg(n)),
        relations.full(seg(n), seg(n)),
        relations.diagonal(seg(n)),
        relations.point(seg(n), 5),
    ]
    compact[0].reduce(v)  # what is loaded on first use is not counted
    tracemalloc.start()
    for R in (*compact, *[R.converse for R in compact[:3]]):
        R.reduce(v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * v.nbytes


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: relations.function(X, Y, [0, 1, 4]), r"holds 4, which is outside 4: its positions are 0 to 3"),
        (lambda: relations.function(X, Y, [0, 1, -1]), r"holds -1, which is outside 4"),
        (lambda: relations.function(X, Y, [0, 1]), r"a function on 3 needs 3 values, got .* \(2,\)"),
        (lambda: relations.function(X, Y, [0.0, 1.0, 2.0]), r"not a relation on 4"),
        (lambda: relations.function(X, Y, [True, False, True]), r"not a relation on 4"),
        (lambda: relations.function(X, GRID, [(0, 0), (1, 1), (2, 0)]), r"not a relation on 2×3.*2 is not an element"),
        (lambda: relations.function(GRID, X, lambda ij: ij[0] + ij[1]), r"holds 3, which is outside 3"),
        (lambda: relations.gather(X, Y, [0, 1, 2, 3]), r"holds 3, which is outside 3"),
        (lambda: relations.gather(X, Y, [0, 1, 2]), r"needs 4 values|needs 4 indices"),
        (lambda: relations.pairs(X, Y, [(0, 0), (3, 0)]), r"the first of the pairs holds 3, which is outside 3"),
        (lambda: relations.pairs(X, Y, [(0, 0), (0, 4)]), r"the second of the pairs holds 4, which is outside 4"),
        (lambda: relations.pairs(X, Y, [(0, 0, 0)]), r"made of pairs .*got \(0, 0, 0\)"),
        (lambda: relations.pairs(X, Y, [3]), r"made of pairs .*got 3"),
        (lambda: relations.triangular(GRID), r"orders one segment; got 2×3"),
        (lambda: Diagonal(X, Y), r"3 has 3, 4 has 4"),
        (lambda: relations.point(X, 3), r"outside 3"),
        (lambda: relations.point(X, -1), r"outside 3"),
        (lambda: Place(unit, X, 3), r"outside 3"),
        (lambda: Beside(X + X, X, (relations.full(X, X), relations.full(Y, X)), False), r"side by side .* 3\+3 to 3"),
        (lambda: Beside(X + X, Y, (relations.full(X, X), relations.full(X, X)), False), r"side by side .* 3\+3 to 4"),
        (lambda: relations.full(X, Y).then(relations.full(X, Y)), r"the first ends in 4, the second starts at 3"),
    ],
)
def test_relations_outside_their_sets_are_refused(build, message):
    with pytest.raises((RelationError, IndexSetError), match=message):
        build()


def test_index_arrays_cannot_be_changed_from_outside():
    base = np.array([0, 1, 1])
    view = base.view()
    view.flags.writeable = False
    R = relations.function(seg(3), seg(2), view)
    base[0] = 1
    assert R.index.tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        R.in_degrees[0] = 7


def test_matrices_given_stay_as_they_are():
    given = scipy.sparse.csr_array((np.array([1, 0, 2]), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 3))
    R = relations.relation(seg(2), seg(3), given)
    assert given.nnz == 3 and R.count == 3


def test_nothing_goes_through_an_empty_set():
    R = relations.full(seg(2), seg(0)).then(relations.full(seg(0), seg(3)))
    assert isinstance(R, Empty) and R.plan()(np.array([np.inf, 1.0])).tolist() == [0.0, 0.0, 0.0]


def test_equal_members_of_a_union_are_one():
    step = relations.shift(seg(100), 1) | relations.shift(seg(100), -1)
    R = step
    for _ in range(11):
        R = R.then(step)
    assert len(R.members) < 200
    assert np.array_equal(R.matrix().toarray(), np.linalg.matrix_power(step.matrix().toarray(), 12))


def test_sets_of_products_and_sums_are_the_products_and_sums_of_sets():
    R, S, T = relations.full(X, Y), relations.diagonal(Y), relations.triangular(X)
    assert (R * (S * T)).source is X * (Y * X) and (R + (S + T)).target is Y + (Y + X)
    both = relations.diagonal(X + Y) + relations.diagonal(X)
    assert both.source is (X + Y) + X and np.array_equal(both.matrix().toarray(), np.eye(10, dtype=int))


def test_compact_relations_answer_without_pairs():
    n = 10**7
    order, window, back = relations.triangular(seg(n)), relations.window(seg(n), 40), relations.shift(seg(n), 1)
    cut = window.restrict(slice(3, n - 3))
    tracemalloc.start()
    assert (
        order.then(relations.point(seg(n), 5)).plan()
        and order.restrict(slice(5, 50), slice(5, 50)).plan()
        and cut.plan()
    )
    assert relations.diagonal(seg(n)).is_function and relations.sliced(seg(n), slice(3, None)).is_injective
    assert back.image([1, 2]).tolist() == [2, 3]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: relations.full(X, Y) * 3, "with relations; got 3"),
        (lambda: relations.full(X, Y).then(3), "with relations; got 3"),
        (lambda: relation(6, 3, [(0, 1)]), r"index sets; got 6: write seg\(6\)"),
        (lambda: relations.diagonal(5), r"index sets; got 5: write seg\(5\)"),
        (lambda: relations.window(5, 3), r"write seg\(5\)"),
        (lambda: relations.sliced(seg(5), 3), "takes a slice; got 3"),
        (lambda: relations.full(X, Y).restrict([0.7, 1.9]), r"a slice, positions or a mask; got \[0.7, 1.9\]"),
        (lambda: relations.point(seg(5), 1.5), "whole number; got 1.5"),
        (lambda: relations.stride(seg(5), seg(3), start=0.5), "whole number; got 0.5"),
        (lambda: relations.segments(np.array([0, 200, 2], np.uint8)), "do not decrease; got 2 at 2"),
        (lambda: relations.segments([1, 2]), "begin with 0 .*; got 1 at 0"),
        (lambda: relations.edges(X, X, np.ma.array([0, 1, 2], mask=[0, 0, 1]), [0, 1, 2]), "the one at 2 is missing"),
        (lambda: relations.function(seg(1), X, np.array([2**63], np.uint64)), "holds 9223372036854775808"),
    ],
)
def test_wrong_arguments_are_named(build, message):
    with pytest.raises(RelationError, match=message):
        build()
