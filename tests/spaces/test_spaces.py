"""Spaces 0 | ℝ | ⊕ | V^X | ⊗ with their vectors, inner products and refusals   (§2.2)."""

import copy
import dataclasses
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import riesz as rz
from riesz import R, Space, SpaceError, VectorError, Zero, direct_sum, seg, space_of
from riesz.relations.index_sets import unit
from riesz.spaces.space import Copower, DirectSum, Form, Tensor, Weighted, real_space

RNG = np.random.default_rng(3)
TWO, THREE = seg(2), seg(3)
MASS = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 3.0]])


class Point(NamedTuple):
    x: float
    y: np.ndarray


@dataclasses.dataclass
class Layer:
    W: np.ndarray
    b: float


SPACES = {
    "0": (Zero, 0),
    "R": (R, 1),
    "R^3": (R**THREE, 3),
    "R^0": (R ** seg(0), 0),
    "R^(2x3)": (R ** (TWO * THREE), 6),
    "R^(2+3)": (R ** (TWO + THREE), 5),
    "R^((2+3)x2)": (R ** ((TWO + THREE) * TWO), 10),
    "(R^2)^3": ((R**TWO) ** THREE, 6),
    "sum": (R * R**TWO * R ** (TWO * TWO), 7),
    "nested sum": (direct_sum(R * R, direct_sum(R**TWO, Zero)), 4),
    "empty sum": (direct_sum(), 0),
    "sum over a union": (direct_sum(R, R**TWO, Zero, index=seg(1) + TWO), 3),
    "named": (direct_sum(W=R ** (TWO * THREE), b=R), 7),
    "copower of a sum": ((R * R**TWO) ** THREE, 9),
    "copower of a sum over a union": ((R * R**TWO) ** (TWO + seg(1)), 9),
    "0^3": (Zero**THREE, 0),
    "tensor": (R**TWO @ R**THREE, 6),
    "R ⊗ R": (R @ R, 1),
    "tensor of sums": ((R * R**TWO) @ (R**TWO * R), 9),
    "tensor of tensors": ((R**TWO @ R**TWO) @ R**TWO, 8),
    "copower of a tensor": ((R**TWO @ R**TWO) ** THREE, 12),
    "0 ⊗ V": (Zero @ R**THREE, 0),
    "weighted": ((R**THREE).weighted(np.array([1.0, 2.0, 4.0])), 3),
    "mass": ((R**THREE).weighted(MASS), 3),
    "weighted sum": ((R * R**TWO).weighted((3.0, np.array([1.0, 5.0]))), 3),
    "sum of weighted": (direct_sum((R**THREE).weighted(MASS), R.weighted(2.0)), 4),
    "copower of weighted": ((R**THREE).weighted(MASS) ** TWO, 6),
    "tensor of weighted": ((R**THREE).weighted(MASS) @ (R**TWO).weighted(np.array([1.0, 9.0])), 6),
    "weighted copower of a sum": (((R * R) ** TWO).weighted(7.0), 4),
    "list": (space_of([1.0, np.zeros(2)]), 3),
    "named tuple": (space_of(Point(1.0, np.zeros(2))), 3),
    "dataclass": (space_of(Layer(np.zeros((2, 2)), 1.0)), 5),
}
every_space = pytest.mark.parametrize("V", [V for V, _ in SPACES.values()], ids=SPACES)


# -- what every space has ----------------------------------------


@pytest.mark.parametrize(("V", "dim"), SPACES.values(), ids=SPACES)
def test_dimension(V: Space, dim: int):
    assert V.dim == dim == sum(math.prod(leaf.shape) for leaf in V.leaves) == len(list(V.basis()))


@every_space
def test_zero_random_and_basis_are_members(V: Space):
    for v in (V.zero(), V.random(0), *V.basis()):
        assert v in V
    assert V.norm(V.zero()) == 0.0
    assert not V.flatten(V.zero()).any()
    assert np.array_equal(V.flatten(V.random(5)), V.flatten(V.random(5)))
    assert V.dim == 0 or not np.array_equal(V.flatten(V.random(5)), V.flatten(V.random(6)))
    assert V.random() in V and V.random(np.random.default_rng(1)) in V


@every_space
def test_flatten_and_unflatten_are_inverse(V: Space):
    x = RNG.standard_normal(V.dim)
    assert np.array_equal(V.flatten(V.unflatten(x)), x)
    assert [V.flatten(e).tolist() for e in V.basis()] == np.eye(V.dim).tolist()


@every_space
def test_addition_and_scaling_are_those_of_coordinates(V: Space):
    u, v = V.random(0), V.random(1)
    assert np.allclose(V.flatten(V.add(u, v)), V.flatten(u) + V.flatten(v))
    assert np.allclose(V.flatten(V.scale(-2.5, u)), -2.5 * V.flatten(u))
    assert V.add(u, v) in V and V.scale(2.0, u) in V


@every_space
def test_inner_product_is_bilinear_symmetric_positive(V: Space):
    """The Gram matrix of the basis determines it."""
    basis = list(V.basis())
    gram = np.array([[V.inner(a, b) for b in basis] for a in basis]).reshape(V.dim, V.dim)
    assert np.allclose(gram, gram.T) and (np.linalg.eigvalsh(gram) > 0).all()
    u, v = V.random(0), V.random(1)
    assert V.inner(u, v) == pytest.approx(V.flatten(u) @ gram @ V.flatten(v), rel=1e-12, abs=1e-12)
    assert V.inner(u, v) == pytest.approx(V.inner(v, u), rel=1e-12)
    assert V.norm(u) == pytest.approx(math.sqrt(V.inner(u, u)), rel=1e-12)
    assert not V.plain or np.array_equal(gram, np.eye(V.dim))


@every_space
def test_metric_is_the_riesz_map(V: Space):
    """u ⊙ v = Σ u · metric(v), and its inverse undoes it."""
    u, v = V.open(V.random(0)), V.open(V.random(1))
    pairing = sum([float(np.vdot(a, b)) for a, b in zip(u, V.metric(v), strict=True)])
    assert pairing == pytest.approx(V.inner(V.wrap(u), V.wrap(v)), rel=1e-12, abs=1e-12)
    for a, b in zip(V.metric(V.metric(v), inverse=True), v, strict=True):
        assert np.allclose(a, b, rtol=1e-12)


@every_space
def test_equality_is_up_to_rounding(V: Space):
    u = V.random(0)
    assert V.equal(u, u) and V.equal(V.scale(3.0, u), V.add(u, V.add(u, u)))
    assert V.dim == 0 or not V.equal(u, V.scale(1.0 + 1e-9, u))
    assert V.dim == 0 or not V.equal(u, V.zero())


@every_space
def test_spaces_are_interned_immutable_and_survive_copies(V: Space):
    assert copy.copy(V) is copy.deepcopy(V) is V
    with pytest.raises(AttributeError, match="immutable"):
        V.dim = 3  # pyright: ignore
    held = pickle.loads(pickle.dumps(V))
    assert held.inner(V.random(0), V.random(1)) == V.inner(V.random(0), V.random(1))
    assert held is V


@every_space
def test_wrap_and_open_are_inverse(V: Space):
    leaves = V.open(V.random(0))
    assert all([a is b or np.array_equal(a, b) for a, b in zip(V.open(V.wrap(leaves)), leaves, strict=True)])


def test_threads_that_build_one_space_get_one_object():
    gate = threading.Barrier(8)

    def build(n: int) -> Space:
        gate.wait()
        return direct_sum(R ** seg(n), R ** (seg(n) + seg(2))) @ R ** seg(n + 1)

    with ThreadPoolExecutor(8) as pool:
        for n in range(1000, 1050):
            assert len({id(V) for V in [f.result() for f in [pool.submit(build, n) for _ in range(8)]]}) == 1


# -- building ----------------------------------------


def test_operators_build_the_spaces():
    assert R * R * R is direct_sum(R, R, R)
    assert direct_sum(R * R, R) is not R * R * R
    assert R**TWO is Copower(R, TWO) and R @ R is Tensor(R, R)
    assert (R**TWO) ** THREE is not R ** (THREE * TWO)
    assert direct_sum(W=R, b=R) * R is DirectSum(TWO, (direct_sum(W=R, b=R), R), None)
    assert direct_sum(R, R, index=TWO) is R * R
    assert real_space(()) is R and real_space((2, 3)) is R ** (TWO * THREE)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: R * 3, r"cannot form ℝ ⊕ 3"),
        (lambda: R**3.0, r"exponents are index sets, lengths or shapes; write ℝ \*\* 3"),
        (lambda: R ** (2, -1), "lengths or shapes"),
        (lambda: R**True, "lengths or shapes"),
        (lambda: R @ np.ones(2), r"cannot form ℝ ⊗"),
        (lambda: direct_sum(R, 3), r"direct_sum takes spaces; got 3"),
        (lambda: direct_sum(R, b=R), r"by position or by name"),
        (lambda: direct_sum(R, R, index=THREE), r"over 3 needs 3 spaces, got 2"),
    ],
)
def test_what_is_not_a_space_is_refused(build, message):
    with pytest.raises(SpaceError, match=message):
        build()


def test_values_follow_the_layout():
    assert Zero.zero() == () and direct_sum().zero() == ()
    assert R.zero() == 0.0 and isinstance(R.zero(), float)
    assert ((R * R**TWO) ** THREE).zero()[1].shape == (3, 2)
    assert [a.shape for a in (R ** (TWO + THREE)).zero()] == [(2,), (3,)]
    assert [a.shape for a in (R ** ((TWO + THREE) * TWO)).zero()] == [(2, 2), (3, 2)]
    assert [a.shape for a in ((R**TWO) ** (TWO + THREE)).zero()] == [(2, 2), (3, 2)]
    assert ((R**TWO @ R) ** THREE).zero().dense().shape == (3, 2)
    assert isinstance(direct_sum(R, R**TWO, Zero, index=seg(1) + TWO).zero(), tuple)


# -- containers ----------------------------------------


def test_forms_of_direct_sums():
    """dict, list, named tuple and dataclass values come back as what they were."""
    table, sequence, point, layer = (
        {"W": np.ones(2), "b": 3.0},
        [1.0, np.ones(2)],
        Point(1.0, np.ones(2)),
        Layer(np.ones((2, 2)), 3.0),
    )
    for value, kind in [(table, dict), (sequence, list), (point, Point), (layer, Layer)]:
        V = space_of(value)
        assert value in V and type(V.zero()) is kind and type(V.random(0)) is kind
        assert isinstance(V, DirectSum) and isinstance(V.form, Form)
        assert np.array_equal(V.flatten(V.add(value, value)), 2.0 * V.flatten(value))
    assert space_of(table) is direct_sum(W=R**TWO, b=R)
    assert set(direct_sum(W=R, b=R).random(0)) == {"W", "b"}
    assert {"b": 1.0, "W": 2.0} in direct_sum(W=R, b=R)
    assert direct_sum(W=R, b=R).flatten({"b": 1.0, "W": 2.0}).tolist() == [2.0, 1.0]


def test_a_copower_of_a_form_has_leading_axes():
    V = direct_sum(W=R**TWO, b=R) ** THREE
    assert V.zero()["W"].shape == (3, 2) and V.zero()["b"].shape == (3,)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"W": 1.0}, "expected a dict with W, b, got the dict"),
        ({"W": 1.0, "b": 1.0, "c": 1.0}, "expected a dict with W, b"),
        ((1.0, 1.0), "expected a dict with W, b, got a tuple of 2"),
        ({"W": 1.0, "b": np.ones(2)}, r"\(component 'b'\): expected a float, got an array of float64 of shape \(2,\)"),
    ],
)
def test_forms_refuse_other_containers(value, message):
    with pytest.raises(VectorError, match=message):
        direct_sum(W=R, b=R).open(value)


def test_named_tuples_and_dataclasses_are_not_mixed_up():
    assert (1.0, np.ones(2)) not in space_of(Point(1.0, np.ones(2)))
    assert Point(1.0, np.ones(2)) not in space_of(Layer(np.ones(2), 1.0))
    assert [1.0, 1.0] not in R * R and (1.0, 1.0) not in space_of([1.0, 1.0])
    assert [1.0, 1.0, 1.0] not in space_of([1.0, 1.0])


def test_space_of():
    assert space_of(1.0) is space_of(np.float64(1.0)) is space_of(np.float32(1.0)) is R
    assert space_of(np.zeros(3)) is R**THREE and space_of(np.zeros((2, 3), np.float32)) is R ** (TWO * THREE)
    assert space_of(np.array(1.0)) is R
    assert space_of(()) is Zero
    assert space_of((1.0, (np.zeros(2), 1.0))) is direct_sum(R, direct_sum(R**TWO, R))
    assert space_of([]) is DirectSum(seg(0), (), Form(list, None)) and space_of({}) is DirectSum(
        seg(0), (), Form(dict, ())
    )
    assert space_of({"a": [1.0, (2.0,)]}).dim == 2
    assert space_of(rz.outer(np.ones(2), np.ones(3))) is R**TWO @ R**THREE


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, r"got the int 1; integers have no derivatives: convert with float\(x\)"),
        (True, r"integers have no derivatives"),
        (
            np.zeros(3, int),
            r"got an array of int64 of shape \(3,\); integers have no derivatives: .*x\.astype\(float\)",
        ),
        (np.zeros(3, bool), r"integers have no derivatives"),
        (1j, r"complex numbers are not supported"),
        (np.zeros(3, complex), r"got an array of complex128 of shape \(3,\); complex numbers are not supported"),
        ("text", r"got the str 'text'"),
        (None, r"got the NoneType None"),
        (np.array(["a"]), r"got an array of <U1"),
        ((1.0, [2]), r"integers have no derivatives"),
    ],
    ids=repr,
)
def test_space_of_refuses(value, message):
    with pytest.raises(VectorError, match=message):
        space_of(value)


# -- membership ----------------------------------------


@pytest.mark.parametrize(
    ("V", "value", "message"),
    [
        (
            R**THREE,
            np.zeros(2),
            r"not an element of ℝ\^3: expected an array of floats of shape \(3,\), got an array of float64 of shape \(2,\)",
        ),
        (R**THREE, np.zeros((3, 1)), r"got an array of float64 of shape \(3, 1\)"),
        (R**THREE, [0.0, 0.0, 0.0], r"got a list of 3; write np\.array"),
        (R**THREE, np.zeros(3, int), r"got an array of int64 .* integers have no derivatives"),
        (R**THREE, np.zeros(3, complex), r"got an array of complex128 .* complex numbers are not supported"),
        (R**THREE, 1.0, r"got the float 1\.0"),
        (R, np.zeros(1), r"not an element of ℝ: expected a float, got an array of float64 of shape \(1,\)"),
        (R, 1, r"expected a float, got the int 1; integers"),
        (R, 1j, r"expected a float, got the complex 1j; complex"),
        (R * R, (1.0,), r"not an element of ℝ ⊕ ℝ: expected a tuple of 2, got a tuple of 1"),
        (R * R, np.zeros(2), r"expected a tuple of 2, got an array of float64 of shape \(2,\)"),
        (
            R * R**TWO,
            (1.0, np.zeros(3)),
            r"not an element of ℝ ⊕ ℝ\^2 \(component 1\): expected an array of floats of shape \(2,\)",
        ),
        (direct_sum(R * R, R), ((1.0, 2), 1.0), r"\(component 0, 1\): expected a float, got the int 2"),
        (R**TWO @ R**THREE, np.zeros((3, 2)), r"expected an array of floats of shape \(2, 3\)"),
        (Zero, 0.0, r"not an element of 0: expected a tuple of 0"),
    ],
)
def test_membership_refuses_naming_both_sides(V: Space, value, message):
    assert value not in V
    with pytest.raises(VectorError, match=message):
        V.open(value)
    with pytest.raises(VectorError, match=message):
        V.norm(value)


def test_membership_accepts():
    assert 1.0 in R and np.float64(1.0) in R and np.float32(1.0) in R and np.array(1.0) in R
    assert np.zeros(3, np.float32) in R**THREE and np.zeros(6)[::2] in R**THREE
    assert np.array([np.nan, np.inf, 0.0]) in R**THREE
    assert np.zeros((2, 3)) in R**TWO @ R**THREE
    assert () in Zero


@pytest.mark.parametrize("x", [np.zeros(4), np.zeros((3, 1)), 1.0])
def test_unflatten_checks_its_length(x):
    with pytest.raises(VectorError, match=r"ℝ\^3 has dimension 3; got coordinates of shape"):
        (R**THREE).unflatten(x)


def test_float32_is_kept_by_the_operations():
    V = R * R**THREE
    v = (np.float32(1.0), np.ones(3, np.float32))
    total = V.add(v, V.scale(2.0, v))
    assert total[0].dtype == total[1].dtype == np.float32
    assert V.flatten(v).dtype == np.float32


# -- weights ----------------------------------------


def test_weights_by_hand():
    u, v = RNG.standard_normal(3), RNG.standard_normal(3)
    w = np.array([1.0, 2.0, 4.0])
    assert (R**THREE).weighted(3.0).inner(u, v) == pytest.approx(3.0 * u @ v)
    assert (R**THREE).weighted(3).inner(u, v) == pytest.approx(3.0 * u @ v)
    assert (R**THREE).weighted(w).inner(u, v) == pytest.approx(u @ (w * v))
    assert (R**THREE).weighted(MASS).inner(u, v) == pytest.approx(u @ MASS @ v)
    assert R.weighted(4.0).norm(3.0) == 6.0
    grid = RNG.standard_normal((2, 3))
    big = np.diag(np.arange(1.0, 7.0))
    assert (R ** (TWO * THREE)).weighted(big).inner(grid, grid) == pytest.approx(
        (np.arange(1.0, 7.0) * grid.ravel() ** 2).sum()
    )
    assert (R * R**TWO).weighted((3.0, np.array([1.0, 5.0]))).inner((1.0, np.ones(2)), (2.0, np.ones(2))) == 12.0
    assert direct_sum(a=R, b=R).weighted({"a": 2.0, "b": 3.0}).norm({"a": 1.0, "b": 1.0}) == pytest.approx(
        math.sqrt(5.0)
    )


def test_weights_of_parts_follow_the_construction():
    """(u₁ ⊗ v₁) ⊙ (u₂ ⊗ v₂) = (u₁ ⊙ u₂)(v₁ ⊙ v₂) and sums over X, with the parts' own inner products."""
    V, W = (R**THREE).weighted(MASS), (R**TWO).weighted(np.array([1.0, 9.0]))
    u1, u2, v1, v2 = V.random(0), V.random(1), W.random(2), W.random(3)
    T = V @ W
    assert T.inner(np.outer(u1, v1), np.outer(u2, v2)) == pytest.approx(V.inner(u1, u2) * W.inner(v1, v2))
    assert (V**TWO).inner(np.stack([u1, u2]), np.stack([u2, u2])) == pytest.approx(V.inner(u1, u2) + V.inner(u2, u2))
    assert direct_sum(V, W).inner((u1, v1), (u2, v2)) == pytest.approx(V.inner(u1, u2) + W.inner(v1, v2))


def test_weighting_twice_alike_gives_one_space():
    w = np.array([1.0, 2.0, 4.0])
    V = (R**THREE).weighted(w)
    assert (R**THREE).weighted(w.copy()) is V and (R**THREE).weighted(2 * w) is not V
    assert (R**THREE).weighted(MASS) is (R**THREE).weighted(MASS.copy())
    w[0] = 5.0  # the weight was copied
    assert V.norm(np.array([1.0, 0.0, 0.0])) == 1.0
    assert isinstance(V, Weighted) and V.base is R**THREE and not V.plain and (R**THREE).plain


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: R.weighted(0.0), SpaceError, "must be positive"),
        (lambda: R.weighted(-1.0), SpaceError, "must be positive"),
        (lambda: R.weighted(math.nan), SpaceError, "must be positive"),
        (lambda: R.weighted(math.inf), SpaceError, "must be positive"),
        (lambda: (R**THREE).weighted(np.array([1.0, 0.0, 2.0])), SpaceError, r"the weight of ℝ\^3 must be positive"),
        (lambda: (R**THREE).weighted(np.triu(MASS)), SpaceError, r"must be symmetric"),
        (lambda: (R**THREE).weighted(-MASS), SpaceError, r"must be positive definite"),
        (lambda: (R**THREE).weighted(np.ones((3, 3))), SpaceError, r"must be positive definite"),
        (lambda: (R**THREE).weighted(np.full((3, 3), np.nan)), SpaceError, r"symmetric|positive"),
        (lambda: (R**THREE).weighted(np.ones(2)), VectorError, r"not an element of ℝ\^3"),
        (lambda: (R**THREE).weighted(True), (SpaceError, VectorError), r"ℝ\^3"),
        (
            lambda: (R**THREE).weighted(2.0).weighted(2.0),
            SpaceError,
            "weighted inner product already; weight the plain space",
        ),
        (lambda: direct_sum(R.weighted(2.0), R).weighted(2.0), SpaceError, "weighted inner product already"),
        (lambda: (R**THREE).weighted(np.eye(3, dtype=complex)), (SpaceError, VectorError), "complex"),
    ],
)
def test_weights_are_checked(build, error, message):
    with pytest.raises(error, match=message):
        build()


# -- components ----------------------------------------


def test_positions_of_components():
    V, N, U = R * R**TWO * R, direct_sum(W=R, b=R), direct_sum(R, R**TWO, Zero, index=seg(1) + TWO)
    assert [V.position(i) for i in (0, 1, 2, -1, -3)] == [0, 1, 2, 2, 0]
    assert N.position("b") == N.position(1) == 1
    assert U.position((1, 0)) == 1


@pytest.mark.parametrize(
    ("V", "which", "message"),
    [
        (R * R, 2, r"no component 2 in ℝ ⊕ ℝ: it has components 0 to 1"),
        (R * R, -3, r"no component -3 in ℝ ⊕ ℝ"),
        (R * R, "b", r"no component 'b'"),
        (R * R, True, r"no component True"),
        (direct_sum(W=R, b=R), "c", r"no component 'c' in .*: it has the names W, b"),
        (direct_sum(R, R, index=seg(1) + seg(1)), 0, r"no component 0"),
        (direct_sum(), 0, r"it has components none"),
    ],
)
def test_missing_components_are_refused(V: DirectSum, which, message):
    with pytest.raises(SpaceError, match=message):
        V.position(which)


# -- depth ----------------------------------------

DEEP = {
    "sums": lambda V: direct_sum(V),
    "copowers": lambda V: V**unit,  # no axis: NumPy allows 64
    "tensors": lambda V: V @ R,
    "tensors on the right": lambda V: R @ V,
    "mixed": lambda V: direct_sum(V) ** unit @ R,
}


@pytest.mark.parametrize("wrap", DEEP.values(), ids=DEEP)
def test_spaces_nested_5000_deep(wrap):
    V = R**TWO
    for _ in range(5_000):
        V = wrap(V)
    assert V.dim == 2 and V.plain and len(V.leaves) == 1
    v = V.unflatten(np.array([3.0, 4.0]))
    assert v in V and V.norm(v) == 5.0 and V.inner(v, v) == 25.0
    assert V.flatten(V.add(v, V.scale(2.0, v))).tolist() == [9.0, 12.0]
    assert pickle.loads(pickle.dumps(V)) is V
    assert rz.id.at(V).H is rz.id.at(V)


def test_space_of_deep_values():
    value = np.zeros(2)
    for _ in range(5_000):
        value = (value,)
    V = space_of(value)
    assert V.dim == 2 and value in V
    wrong = np.zeros(3)
    for _ in range(5_000):
        wrong = (wrong,)
    assert wrong not in V


def test_deep_spaces_can_be_named_in_errors():
    V = R
    for _ in range(5_000):
        V = direct_sum(V)
    with pytest.raises(VectorError):
        V.open(1.0)
    assert len(repr(V)) > 0
