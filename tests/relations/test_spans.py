"""Index maps and spans: composition against matrices of multiplicities, on random spans of every form; algebra and makers of relations."""

import copyreg

import numpy as np
import pytest

from riesz import RelationError, relations, seg
from riesz.relations import Diagonal, Empty, Full, Function, Gather, Range, Spanned
from riesz.relations.index_algebra import Affine, IndexTable
from riesz.relations.spans import Listed, NotSymbolic, bounds, composed, positions, tidied


def matrix(span, X, Y):
    """Multiplicities by definition."""
    found = np.zeros((int(np.prod(X)), int(np.prod(Y))), int)
    np.add.at(found, (positions(span, span.left, X), positions(span, span.right, Y)), span.times)
    return found


def random_map(rng, n, sizes):
    for _ in range(50):
        kind = rng.integers(4)
        if kind == 0 or not sizes:
            m = Affine(int(rng.integers(n)))
        elif kind == 3:
            k = int(rng.integers(len(sizes)))
            m = IndexTable(rng.integers(0, n, sizes[k]), (k,))
        else:
            labels = sorted(set(rng.integers(0, len(sizes), rng.integers(1, 3)).tolist()))
            m = Affine(
                int(rng.integers(-2, n + 2)), tuple((int(k), int(rng.choice([-2, -1, 1, 1, 1, 2, 3]))) for k in labels)
            )
        low, high = bounds(m, dict(enumerate(sizes)))
        if low >= 0 and high < n:
            return m
    return Affine(0)


def random_span(rng, X, Y):
    sizes = tuple(int(v) for v in rng.integers(1, 5, rng.integers(0, 4)))
    maps = [tuple(random_map(rng, n, sizes) for n in box) for box in (X, Y)]
    return tidied(dict(enumerate(sizes)), *maps, int(rng.integers(1, 3)))


@pytest.mark.parametrize("seed", range(8))
def test_composition_of_random_spans(seed):
    rng = np.random.default_rng(seed)
    solved = 0
    for _ in range(400):
        X, Y, Z = [tuple(int(v) for v in rng.integers(1, 6, rng.integers(0, 3))) for _ in range(3)]
        a, b = random_span(rng, X, Y), random_span(rng, Y, Z)
        want = matrix(a, X, Y) @ matrix(b, Y, Z)
        try:
            c = composed(a, b, lambda x: x)
        except NotSymbolic:
            continue
        solved += 1
        assert (matrix(c, X, Z) if c is not None else 0 * want).tolist() == want.tolist()
    assert solved > 280  # most have a closed form


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (relations.shift(seg(9), 2).then(relations.shift(seg(9), 3)), Spanned),
        (relations.shift(seg(9), 2).converse, Spanned),
        (relations.sliced(seg(20), slice(2, 18, 2)).then(relations.sliced(seg(8), slice(None, None, -3))), Range),
        (relations.segments([0, 2, 2, 5]).then(relations.full(seg(3), seg(1))), Full),
        (relations.full(seg(3), seg(9)).then(relations.window(seg(9), 3)), Full),
        (relations.window(seg(9), 3).then(relations.window(seg(7), 2)), Spanned),
        (
            relations.function(seg(4), seg(3), [0, 2, 2, 1]).then(relations.function(seg(3), seg(2), [1, 0, 1])),
            Function,
        ),
        (relations.gather(seg(5), seg(3), [4, 0, 4]).then(relations.sliced(seg(3), slice(2))), Gather),
        (relations.diagonal(seg(2)) * relations.diagonal(seg(3)), Diagonal),
        (relations.full(seg(2), seg(1)) * relations.full(seg(3), seg(4)), Full),
        (relations.shift(seg(4), 3).then(relations.shift(seg(4), 3)), Empty),
    ],
)
def test_compositions_stay_symbolic(made, kind):
    assert type(made) is kind


def test_compact_relations_store_no_pairs():
    n = 10**8
    X = seg(n)
    both = relations.shift(X, 5).then(relations.window(X, 3)).then(relations.sliced(seg(n - 2), slice(10, None, 2)))
    assert sum([r.count for r in both.members]) == 3 * len(range(10, n - 2, 2)) and len(both.members) == 3
    assert relations.full(seg(4), X).then(relations.full(X, seg(2))).times == n


def test_windows_run_as_slices_in_both_directions():
    v = np.random.default_rng(0).normal(size=(2, 12, 3))
    R = relations.window(seg(12), 3, 2)
    want = np.stack([v[:, 2 * j : 2 * j + 3].sum(1) for j in range(5)], axis=1)
    np.testing.assert_allclose(R.reduce(v), want, rtol=1e-14)
    w = np.random.default_rng(1).normal(size=(2, 5, 3))
    np.testing.assert_allclose(np.vdot(R.reduce(v), w), np.vdot(v, R.converse.reduce(w)), rtol=1e-13)
    assert R.reduce(v.astype(np.float32)).dtype == np.float32


def test_questions():
    R = relations.function(seg(4), seg(3), [2, 0, 2, 2])
    assert R.is_function and not R.is_injective and not R.converse.is_function
    assert R.image().tolist() == [0, 2] and R.image([1]).tolist() == [0] and R.count == 4
    assert relations.permutation(seg(3), [1, 2, 0]).is_injective
    assert relations.full(seg(2), seg(3)).out_degrees.tolist() == [3, 3]
    assert not relations.shift(seg(3), 1).is_function and relations.shift(seg(3), 1).is_injective
    assert relations.window(seg(5), 2).in_degrees.tolist() == [2, 2, 2, 2]


def test_restriction():
    R = relations.full(seg(3), seg(4))
    assert R.restrict(source=slice(1, None)).matrix().toarray().tolist() == [[0] * 4, [1] * 4, [1] * 4]
    assert R.restrict([0], np.array([True, False, False, True])).matrix().toarray().tolist() == [
        [1, 0, 0, 1],
        [0] * 4,
        [0] * 4,
    ]
    assert type(R.restrict(source=[])) is Empty
    for bad in ([7], [-1], np.array([True])):
        with pytest.raises(RelationError):
            R.restrict(source=bad)


def test_group_by_and_join():
    values = np.array([[[1.0], [10.0], [100.0], [1000.0]]])
    R, keys = relations.group_by(np.array(["b", "a", "b", "c"]))
    assert keys.tolist() == ["a", "b", "c"] and R.reduce(values)[0, :, 0].tolist() == [10.0, 101.0, 1000.0]
    R, (first, second) = relations.group_by((np.array([1, 1, 2, 1]), np.array(["x", "y", "x", "x"])))
    assert (
        first.tolist() == [1, 1, 2]
        and second.tolist() == ["x", "y", "x"]
        and R.reduce(values)[0, :, 0].tolist() == [1001.0, 10.0, 100.0]
    )

    class Column:
        """As pandas, Polars and Arrow columns are."""

        def __init__(self, values):
            self.values = values

        def to_numpy(self):
            return np.array(self.values)

    J = relations.join(Column([3, 1, 3, 2]), [3, 1, 4, 3])
    assert J.matrix().toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]


def test_edges_and_segments():
    assert relations.edges(seg(3), seg(2), [0, 2, 2], [1, 1, 1]).matrix().toarray().tolist() == [[0, 1], [0, 0], [0, 2]]
    assert relations.segments([0, 0, 3]).reduce(np.ones((1, 3, 1)))[0, :, 0].tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    "bad",
    [
        lambda: relations.permutation(seg(3), [0, 0, 1]),
        lambda: relations.window(seg(3), 4),
        lambda: relations.window(seg(3), 2, target=seg(5)),
        lambda: relations.segments([0, 2, 1]),
        lambda: relations.segments([1, 2]),
        lambda: relations.stride(seg(3), seg(3), count=5),
        lambda: relations.stride(seg(3), seg(3), step=0),
        lambda: relations.shift(seg(2) * seg(2), 1),
        lambda: relations.edges(seg(3), seg(2), [0, 3], [0, 0]),
        lambda: relations.edges(seg(3), seg(2), [0], [0, 0]),
        lambda: relations.diagonal(seg(2)) | relations.diagonal(seg(3)),
        lambda: Spanned(seg(3), seg(3), (4,), (Affine(0, ((0, 1),)),), (Affine(0),)),
    ],
)
def test_bad_relations_are_refused(bad):
    with pytest.raises(RelationError):
        bad()


def test_spans_in_print():
    assert str(relations.window(seg(8), 3)) == "i+j↦i" and str(relations.shift(seg(5), 2)) == "i↦i+2"
    assert str(relations.window(seg(8), 2, 2) * relations.shift(seg(3), 1)) == "2i+j,k↦i,k+1"


def test_tables_of_older_pickles_are_read():
    array = np.array([2, 0, 1])
    assert copyreg.__newobj__(Listed, array, 1) == IndexTable(array, (1,))  # what unpickling calls; arrays by identity
