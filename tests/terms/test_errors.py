"""Errors come when the term is built (or the value given), and name both sides."""

import numpy as np
import pytest

import riesz as rz
from riesz import (
    IndexSetError,
    LinearityError,
    R,
    RelationError,
    RieszError,
    SpaceError,
    VectorError,
    direct_sum,
    relations,
    seg,
)

R2, R3, R23 = R ** seg(2), R ** seg(3), R ** (seg(2) * seg(3))
x, y = rz.proj(0), rz.proj(1)
MATRIX = np.arange(6.0).reshape(2, 3)
to_two = rz.contract_left(MATRIX).at(R3)  # ℝ^3 ⊸ ℝ^2
L = to_two.as_map()
smooth = rz.total @ rz.sin ** seg(3)  # ℝ^3 → ℝ


def refused(build, error, *parts):
    """The error names each part."""
    with pytest.raises(error) as caught:
        build()
    message = str(caught.value)
    assert isinstance(caught.value, RieszError)
    for part in parts:
        assert part in message, message


def cases(*rows):
    return pytest.mark.parametrize(
        ("build", "error", "parts"), [(build, error, parts) for build, error, *parts in rows]
    )


# -- composing mismatched spaces ----------------------------------------


@cases(
    (lambda: to_two @ to_two, SpaceError, "f ends in ℝ^2", "g starts at ℝ^3"),
    (lambda: rz.sin @ to_two, SpaceError, "f ends in ℝ^2", "g starts at ℝ", "g ** X"),
    (lambda: smooth.at(R2), SpaceError, "ℝ^3", "ℝ^2"),
    (lambda: smooth @ to_two, SpaceError, "ℝ^3", "ℝ^2"),
    (lambda: rz.proj(5) @ to_two, SpaceError, "no component 5", "ℝ^2"),
    (lambda: rz.red(relations.full(seg(3), seg(1))) @ to_two, SpaceError, "V^(3)", "ℝ^2"),
    (lambda: rz.scan @ rz.sin, SpaceError, "scan", "ℝ"),
    (lambda: rz.total @ rz.sin, SpaceError, "total", "ℝ"),
    (lambda: rz.add @ to_two.at(R3) @ rz.sin, SpaceError, "ℝ^3", "ℝ"),
    (lambda: rz.fork(to_two, rz.id.at(R2)), SpaceError, "f starts at ℝ^3", "g starts at ℝ^2"),
    (lambda: rz.join(to_two, rz.id.at(R3)), SpaceError, "f ends in ℝ^2", "g ends in ℝ^3"),
    (lambda: to_two + rz.id.at(R3), SpaceError, "ℝ^3 → ℝ^2", "ℝ^3 → ℝ^3"),
    (lambda: to_two - rz.id.at(R3), SpaceError, "ℝ^3 → ℝ^2", "ℝ^3 → ℝ^3"),
    (lambda: to_two * rz.id.at(R3), SpaceError, "ℝ^2", "ℝ^3"),
    (lambda: to_two / rz.id.at(R3), SpaceError, "ℝ^2", "ℝ^3"),
    (lambda: rz.par(to_two, rz.sin).at(R3 * R3), SpaceError, "ℝ", "ℝ^3"),
    (lambda: rz.par(rz.sin, rz.sin).at(R * R * R), SpaceError, "at ℝ ⊕ ℝ ⊕ ℝ", "f starts at ℝ ⊕ ℝ"),
    (lambda: rz.add.at(R * R2), SpaceError, "ℝ ⊕ ℝ^2"),
    (lambda: rz.inner.at(direct_sum(R2, R3)), SpaceError, "ℝ^2", "ℝ^3"),
    (lambda: rz.hadamard.at(direct_sum(R2, R3)), SpaceError, "ℝ^2", "ℝ^3"),
    (lambda: rz.scalar_mul.at(direct_sum(R2, R3)), SpaceError, "ℝ^2", "ℝ^3"),
    (lambda: rz.matvec.at(direct_sum(R23, R2)), SpaceError, "ℝ^(2×3)", "ℝ^2"),
    (lambda: rz.matmul.at(direct_sum(R23, R23)), SpaceError, "ℝ^(2×3)"),
    (lambda: rz.contract.at(direct_sum(R2 @ R3, R2 @ R3)), SpaceError, "ℝ^2 ⊗ ℝ^3"),
    (lambda: rz.contract_left(MATRIX).at(R2), SpaceError, "ℝ^(2×3)", "ℝ^2"),
    (lambda: rz.transpose.at(R2), SpaceError, "transpose", "ℝ^2"),
    (lambda: rz.assoc.at(R2 @ R3), SpaceError, "assoc", "ℝ^2"),
    (lambda: rz.unbra.at(R2 @ R3), SpaceError, "ℝ ⊗ V", "ℝ^2 ⊗ ℝ^3"),
    (lambda: rz.unket.at(R2 @ R3), SpaceError, "V ⊗ ℝ", "ℝ^2 ⊗ ℝ^3"),
    (lambda: rz.distrib.at(R @ R2), SpaceError, "distrib", "ℝ ⊗ ℝ^2"),
    (lambda: rz.undistrib.at(R * R), SpaceError, "undistrib", "ℝ ⊕ ℝ"),
    (lambda: rz.zip.at(R2 * R3), SpaceError, "zip", "ℝ^2 ⊕ ℝ^3"),
    (lambda: rz.unzip.at(R2), SpaceError, "unzip", "ℝ^2"),
    (lambda: L @ L, SpaceError, "M ends in ℝ^2", "L starts at ℝ^3"),
    (lambda: L + L.H, SpaceError, "ℝ^3 ⊸ ℝ^2", "ℝ^2 ⊸ ℝ^3"),
    (lambda: rz.grad(to_two)(np.ones(3)), SpaceError, "into ℝ", "ℝ^2"),
    (lambda: rz.derive(rz.add, R * R2), SpaceError, "ℝ ⊕ ℝ^2"),
)
def test_mismatched_spaces(build, error, parts):
    refused(build, error, *parts)


def test_a_mismatch_is_found_while_building_not_while_running():
    """A typed inner part types the whole composition at once."""
    typed = rz.fork(x, y).at(R * R)
    with pytest.raises(SpaceError, match="no component 2"):
        _ = rz.sin @ (rz.proj(2) @ typed)


def test_open_functions_are_checked_when_they_meet_a_space():
    f = rz.proj(2) @ rz.fork(x, y)
    for use in (lambda: f.at(R * R), lambda: f((1.0, 2.0)), lambda: rz.derive(f, R, R), lambda: rz.grad(f)(1.0, 2.0)):
        refused(use, SpaceError, "no component 2", "ℝ ⊕ ℝ")


def test_messages_about_long_terms_stay_short():
    chain = rz.sin
    for _ in range(10_000):
        chain = rz.sin @ chain
    with pytest.raises(SpaceError, match="f ends in ℝ, g starts at ℝ\\^3") as caught:
        _ = to_two @ chain
    assert len(str(caught.value)) < 2_000


# -- wrong vectors ----------------------------------------


@cases(
    (lambda: to_two(np.ones(2)), VectorError, "ℝ^3", "shape (3,)", "shape (2,)"),
    (lambda: L(np.ones(2)), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: L.H(np.ones(3)), VectorError, "ℝ^2", "shape (3,)"),
    (lambda: L @ np.ones(2), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: L.matmat(np.ones((2, 2))), VectorError, "(2, 3)", "(2, 2)"),
    (lambda: L.matvec(np.ones(2)), VectorError, "3", "(2,)"),
    (lambda: rz.linearize(to_two, np.ones((3, 1))), VectorError, "ℝ^3", "shape (3, 1)"),
    (lambda: rz.jvp(to_two, (np.ones(3),), (np.ones(2),)), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: rz.jvp(to_two, np.ones(3), np.ones(3)), VectorError, "jvp(f, (x,), (dx,))"),
    (lambda: rz.derive(to_two).derivative(np.ones(2)), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: rz.derive(to_two).value(np.ones(2)), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: rz.vjp(to_two, np.ones(3))[1](np.ones(3)), VectorError, "ℝ^2", "shape (3,)"),
    (lambda: (x * y).at(R * R)((1.0, 2.0, 3.0)), VectorError, "ℝ ⊕ ℝ", "tuple of 2", "tuple of 3"),
    (lambda: (x * y).at(R * R)(1.0), VectorError, "ℝ ⊕ ℝ", "tuple of 2", "the float 1.0"),
    (lambda: rz.sin.at(R)(), VectorError, "argument"),
    (lambda: to_two + np.ones(3), SpaceError, "ℝ^2", "ℝ^3"),
    (lambda: to_two([1.0, 2.0, 3.0]), VectorError, "ℝ^3", "a list of 3"),
    (lambda: rz.const(np.ones(2), space=R3), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: rz.left(rz.inner, np.ones(2), space=R3), VectorError, "ℝ^3", "shape (2,)"),
    (lambda: rz.dual(np.ones(2), space=R3), VectorError, "ℝ^3", "shape (2,)"),
)
def test_wrong_vectors(build, error, parts):
    refused(build, error, *parts)


# -- projections and injections out of range ----------------------------------------


@cases(
    (lambda: x.at(R), SpaceError, "component 0", "ℝ", "not a direct sum"),
    (lambda: rz.proj(2).at(R * R), SpaceError, "component 2", "ℝ ⊕ ℝ", "0 to 1"),
    (lambda: rz.proj(-3).at(R * R), SpaceError, "component -3", "ℝ ⊕ ℝ"),
    (lambda: rz.proj("c").at(direct_sum(W=R, b=R)), SpaceError, "'c'", "W, b"),
    (lambda: rz.proj(3).at(R3), SpaceError, "component 3", "ℝ^3"),
    (lambda: rz.proj(-4).at(R3), SpaceError, "component -4", "ℝ^3"),
    (lambda: rz.proj((0, 3)).at(R23), SpaceError, "(0, 3)", "ℝ^(2×3)"),
    (lambda: rz.proj(1.0).at(R3), SpaceError, "1.0", "ℝ^3"),
    (lambda: rz.inj(3, 3), SpaceError, "component 3", "0 to 2"),
    (lambda: rz.inj(3, seg(3)).at(R), (SpaceError, IndexSetError), "3"),
    (lambda: rz.inj(0, R * R2).at(R2), SpaceError, "ℝ^2", "component 0", "ℝ ⊕ ℝ^2"),
    (lambda: rz.inj(2, R * R2).at(R), SpaceError, "component 2", "ℝ ⊕ ℝ^2"),
    (lambda: rz.inj(0, "two").at(R), SpaceError, "'two'"),
    (lambda: rz.grad(x * y, argnums=2)(1.0, 2.0), SpaceError, "argnums=2", "2 arguments"),
    (lambda: rz.jacobian(x * y, argnums=2)(1.0, 2.0), SpaceError, "argnums=2", "2 arguments"),
)
def test_projections_out_of_range(build, error, parts):
    refused(build, error, *parts)


# -- relations outside their sets ----------------------------------------


@cases(
    (lambda: relations.function(seg(3), seg(2), [0, 1, 2]), RelationError, "2", "outside 2", "0 to 1"),
    (lambda: relations.pairs(seg(3), seg(2), [(0, 0), (3, 1)]), RelationError, "3", "outside 3"),
    (lambda: relations.gather(seg(3), seg(2), [0, 3]), RelationError, "3", "outside 3"),
    (lambda: rz.red(relations.triangular(seg(3))).at(R2), SpaceError, "3 × 3", "ℝ^2"),
    (lambda: rz.red(np.eye(3)), SpaceError, "relation"),
    (lambda: rz.rep(3), SpaceError, "index set", "seg(3)"),
    (lambda: rz.rep(seg(3), only=[3]), (RelationError, IndexSetError), "3"),
    (lambda: rz.total_over([3]).at(R3), (RelationError, IndexSetError), "3"),
)
def test_relations_outside_their_sets(build, error, parts):
    refused(build, error, *parts)


# -- linearity ----------------------------------------


@cases(
    (lambda: rz.sin.H, LinearityError, "sin", "ℝ → ℝ", "not linear"),
    (lambda: smooth.at(R3).H, LinearityError, "ℝ^3 → ℝ", "not linear"),
    (lambda: rz.sin.as_map(), LinearityError, "sin", "not linear"),
    (lambda: rz.LinearMap.of(rz.sin), LinearityError, "sin", "not linear"),
    (lambda: rz.LinearMap.of(rz.id), LinearityError, ".at(V)"),
    (lambda: rz.LinearMap.of(3.0), LinearityError, "3.0"),
    (lambda: rz.join(rz.id.at(R), rz.sin), LinearityError, "join", "sin"),
    (lambda: rz.block_diag([rz.id.at(R), rz.sin]), LinearityError, "block_diag", "sin"),
    (lambda: rz.join(rz.id, rz.sin).at(R * R), LinearityError, "join", "sin"),
    (lambda: rz.block_diag([rz.id, rz.sin]).at(R * R), LinearityError, "block_diag", "sin"),
    (lambda: rz.const(1.0).at(R).H, LinearityError, "ℝ → ℝ", "not linear"),
    (lambda: rz.inner.at(direct_sum(R2, R2)).H, LinearityError, "not linear"),
    (lambda: (rz.id + 1.0).at(R).H, LinearityError, "not linear"),
    (lambda: L * L, LinearityError, "L @ M"),
    (lambda: L * rz.sin, LinearityError, "not linear"),
    (lambda: L + 1.0, LinearityError, "1.0"),
    (lambda: L + rz.sin, LinearityError, "sin"),
    (lambda: L * "2", LinearityError, "'2'"),
    (lambda: L @ rz.sin, LinearityError, "sin"),
)
def test_what_is_not_linear_is_refused(build, error, parts):
    refused(build, error, *parts)


def test_a_linear_map_cannot_be_made_of_a_program_that_is_not_linear():
    from riesz.calculus.derive import lower

    for f in (rz.sin.at(R), (x * y).at(R * R), (rz.id + 1.0).at(R), rz.const(1.0).at(R), (rz.id * rz.id).at(R)):
        with pytest.raises(LinearityError, match="not a linear map"):
            rz.LinearMap(f.domain, f.codomain, lower(f))


def test_zero_in_every_guise_is_linear():
    for f in (rz.zero(R2, R3), rz.zero.at(R2), 0.0 * rz.id.at(R2), (rz.id - rz.id).at(R2)):
        assert not f.as_map().to_dense().any()


# -- integers and complex numbers ----------------------------------------


@cases(
    (lambda: rz.sin(1), VectorError, "int 1", "float(x)"),
    (lambda: rz.sin(True), VectorError, "bool True", "float(x)"),
    (lambda: rz.sin(1j), VectorError, "complex 1j", "complex numbers are not supported"),
    (lambda: rz.sin(np.array([1, 2])), VectorError, "int64", "x.astype(float)"),
    (lambda: rz.sin(np.array([1j])), VectorError, "complex128", "complex numbers are not supported"),
    (lambda: rz.grad(rz.sin)(1), VectorError, "int 1", "float(x)"),
    (lambda: rz.grad(rz.sin)(1j), VectorError, "complex 1j"),
    (lambda: rz.grad(smooth)(np.array([1, 2, 3])), VectorError, "int64", "(3,)"),
    (lambda: rz.grad(smooth)(np.ones(3, complex)), VectorError, "complex128", "(3,)"),
    (lambda: rz.linearize(x * y, 1.0, 2), VectorError, "int 2"),
    (lambda: rz.linearize((x * y).at(R * R), 1.0, 2), VectorError, "ℝ ⊕ ℝ", "component 1", "int 2"),
    (lambda: rz.jvp(rz.sin, (1.0,), (1,)), VectorError, "ℝ", "int 1"),
    (lambda: L(np.array([1, 2, 3])), VectorError, "ℝ^3", "int64"),
    (lambda: L(np.ones(3, complex)), VectorError, "ℝ^3", "complex128"),
    (lambda: L.H(np.array([1, 2])), VectorError, "ℝ^2", "int64"),
    (lambda: L.matvec(np.ones(3, complex)), VectorError, "complex"),
    (lambda: L.matmat(np.ones((3, 2), complex)), VectorError, "complex"),
    (lambda: rz.const(1), VectorError, "int 1"),
    (lambda: rz.const(1j), VectorError, "complex 1j"),
    (lambda: rz.left(rz.inner, np.array([1, 2])), VectorError, "int64"),
    (lambda: rz.contract_left(np.eye(2, dtype=int)), VectorError, "int64"),
    (lambda: rz.sin * 1j, (SpaceError, VectorError), "1j"),
    (lambda: rz.sin + 1j, (SpaceError, VectorError), "1j"),
    (lambda: to_two + np.array([1, 2]), VectorError, "int64"),
    (lambda: to_two + np.array([1j, 2]), VectorError, "complex128"),
    (lambda: rz.power(1j), SpaceError, "1j"),
    (lambda: rz.power("2"), SpaceError, "'2'"),
    (lambda: rz.sin ** "2", SpaceError, "'2'"),
    (lambda: L * 1j, LinearityError, "1j"),
)
def test_integers_and_complex_numbers(build, error, parts):
    refused(build, error, *parts)


# -- other misuse ----------------------------------------


@cases(
    (lambda: rz.sin @ 3.0, SpaceError, "3.0", "g(v)"),
    (lambda: rz.fork(), SpaceError, "at least one"),
    (lambda: rz.par(), SpaceError, "at least one"),
    (lambda: rz.fork(rz.sin, 3.0), SpaceError, "3.0"),
    (lambda: rz.derive(rz.add), SpaceError, "fits many spaces"),
    (lambda: rz.derive(rz.sin, 3), SpaceError, "expected a space", "3"),
    (lambda: rz.grad(3.0), SpaceError, "expected a function", "3.0"),
    (lambda: rz.id(R, R), SpaceError, "id", "2"),
    (lambda: L @ rz.id, SpaceError, "no spaces yet", ".at(V)"),
    (lambda: rz.left(rz.add, 1.0).at(R), SpaceError, "not bilinear"),
    (lambda: rz.primitive("sin", np.sin, None, lambda x, y: y), SpaceError, "'sin'", "another name"),
)
def test_misuse(build, error, parts):
    refused(build, error, *parts)


def test_errors_are_python_errors_too():
    assert (
        issubclass(SpaceError, TypeError)
        and issubclass(VectorError, TypeError)
        and issubclass(LinearityError, TypeError)
    )
    assert issubclass(RelationError, ValueError) and issubclass(IndexSetError, ValueError)
    for error in (SpaceError, VectorError, LinearityError, RelationError, IndexSetError):
        assert issubclass(error, RieszError) and getattr(rz, error.__name__) is error
