"""Index sets n | X × Y | X + Y   (§2.1)."""

import copy
import pickle

import numpy as np
import pytest

from riesz import IndexSetError, Set, seg
from riesz.relations.index_sets import Plus, Product, boxes, unit

ONE, TWO, THREE = seg(1), seg(2), seg(3)
SETS = [
    seg(0),
    ONE,
    THREE,
    TWO * THREE,
    TWO + THREE,
    unit,
    Plus(()),
    seg(0) * THREE,
    (TWO + ONE) * THREE,
    TWO * (THREE + ONE) * TWO,
    (TWO + (ONE + TWO) * TWO) * (ONE + seg(0)),
    TWO * (TWO * THREE),
]


@pytest.mark.parametrize("X", SETS, ids=repr)
def test_enumeration_and_position_are_inverse(X: Set):
    elements = list(X)
    assert len(elements) == len(X) == X.size
    assert len(set(elements)) == len(X)
    assert [X.position(x) for x in elements] == list(range(len(X)))
    assert [X.element(i) for i in range(len(X))] == elements
    assert all(x in X for x in elements)


@pytest.mark.parametrize("X", SETS, ids=repr)
def test_positions_outside_are_refused(X: Set):
    for outside in (-1, X.size):
        with pytest.raises(IndexSetError, match=f"position {outside} is outside the index set .* of {X.size} elements"):
            X.element(outside)


def test_elements_by_hand():
    assert list(TWO * THREE) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert list(TWO + THREE) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert list((ONE + ONE) * TWO) == [((0, 0), 0), ((0, 0), 1), ((1, 0), 0), ((1, 0), 1)]
    assert list(unit) == [()]
    assert list(seg(0)) == []


def test_sizes_multiply_and_add():
    assert len(TWO * THREE * seg(4)) == 24
    assert len(TWO + THREE + seg(4)) == 9
    assert len(unit) == 1
    assert len(seg(10**6) * seg(10**6)) == 10**12


def test_products_and_sums_of_three_are_one():
    assert TWO * THREE * ONE is Product((TWO, THREE, ONE))
    assert TWO * (THREE * ONE) is not TWO * THREE * ONE
    assert TWO + THREE + ONE is Plus((TWO, THREE, ONE))
    assert TWO + (THREE + ONE) is not TWO + THREE + ONE


def test_equality_is_identity():
    assert seg(3) is seg(3)
    assert seg(2) * seg(3) is seg(2) * seg(3)
    assert seg(2) * seg(3) is not seg(3) * seg(2)


def test_a_segment_of_a_numpy_integer_is_the_segment():
    assert seg(np.int64(3)) is seg(3)


@pytest.mark.parametrize("X", SETS, ids=repr)
def test_copies_and_pickles_are_the_same_set(X: Set):
    assert copy.copy(X) is copy.deepcopy(X) is pickle.loads(pickle.dumps(X)) is X


def test_sets_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        THREE.n = 4  # pyright: ignore


@pytest.mark.parametrize("n", [-1, 1.5, True, "3", None])
def test_segments_need_a_natural_number(n: object):
    with pytest.raises(IndexSetError, match="integer ≥ 0"):
        seg(n)  # pyright: ignore


@pytest.mark.parametrize(
    ("X", "outsider"),
    [
        (THREE, 3),
        (THREE, -1),
        (THREE, True),
        (THREE, 0.0),
        (THREE, (0,)),
        (seg(0), 0),
        (TWO * THREE, 0),
        (TWO * THREE, (0, 3)),
        (TWO * THREE, (0, 0, 0)),
        (TWO + THREE, 0),
        (TWO + THREE, (2, 0)),
        (TWO + THREE, (-1, 0)),
        (TWO + THREE, (0, 2)),
        (TWO + THREE, (False, 0)),
    ],
)
def test_outsiders_are_refused_by_name(X: Set, outsider: object):
    assert outsider not in X
    with pytest.raises(IndexSetError, match="is not an element of the index set"):
        X.position(outsider)


@pytest.mark.parametrize(("X", "element"), [(THREE, 2), (TWO * THREE, (1, 2)), (TWO + THREE, (1, 2))])
def test_numpy_integers_are_elements(X: Set, element):
    held = tuple(map(np.int64, element)) if isinstance(element, tuple) else np.int64(element)
    assert X.position(held) == X.position(element)


def test_a_refusal_names_the_element_and_the_set():
    with pytest.raises(IndexSetError, match=r"5 is not an element of the index set 3: .*0 to 2"):
        THREE.position(5)


@pytest.mark.parametrize("combine", [lambda X: X * 3, lambda X: X + 3])
def test_numbers_are_not_sets(combine):
    with pytest.raises(TypeError, match=r"seg\(n\)"):
        combine(TWO)


@pytest.mark.parametrize("X", SETS, ids=repr)
def test_boxes_partition_the_positions(X: Set):
    """V^X has one array per box: the boxes' elements, in their own order, are all elements of X once."""
    parts = boxes(X)
    assert all(box.box is not None for box, _ in parts)
    positions = [np.arange(box.size) if at is None else at for box, at in parts]
    assert [len(p) for p in positions] == [box.size for box, _ in parts]
    assert sorted(np.concatenate([np.zeros(0, int), *positions])) == list(range(X.size))


def test_boxes_of_a_product_of_sums_by_hand():
    parts = boxes((TWO + ONE) * TWO)
    assert [(box.box, list(at)) for box, at in parts] == [((2, 2), [0, 1, 2, 3]), ((1, 2), [4, 5])]
    parts = boxes(TWO * (ONE + ONE))
    assert [(box.box, list(at)) for box, at in parts] == [((2, 1), [0, 2]), ((2, 1), [1, 3])]


def test_deep_sets_do_not_recurse():
    X = ONE
    for _ in range(5_000):
        X = Product((X, ONE))
    assert len(X) == 1 and X.box == (1,) * 5_001
    Y = ONE
    for _ in range(2_000):
        Y = Plus((Y,))
    assert len(boxes(Y)) == 1
    assert pickle.loads(pickle.dumps(Y)) is Y
