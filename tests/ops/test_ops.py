"""The operations of programs: contraction against its definition, combinations, reductions, declared functions, and their transposes."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz import RelationError, relations, seg
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Combination, Contraction, Elementwise, Reduction, contraction, product
from riesz.ops.opaque import Declared, DeclaredForm, Get
from riesz.programs.program import Program, outputs
from riesz.relations import Place
from riesz.relations.index_sets import unit
from riesz.spaces.contraction import metered, network, pair, single
from riesz.spaces.formal_vectors import Formal, FormalProduct, dense

RNG = np.random.default_rng(1)


def by_definition(operands, labels, out, sizes):
    """Σ over all labels of the product of the operands, one assignment of the labels at a time."""
    names = sorted(sizes)
    total = np.zeros([sizes[label] for label in out])
    for assignment in np.ndindex(*[sizes[label] for label in names]):
        at = dict(zip(names, assignment, strict=True))
        factors = [np.asarray(a)[tuple([at[label] for label in ls])] for a, ls in zip(operands, labels, strict=True)]
        total[tuple([at[label] for label in out])] += math.prod([float(f) for f in factors])
    return total


@st.composite
def patterns(draw, most=3):
    """Sizes, the labels of each operand and of the output (with repetitions), and the sizes of labels that only the output has."""
    sizes = {label: draw(st.sampled_from([0, 1, 2, 2, 3, 3])) for label in range(5)}
    labels = draw(st.lists(st.lists(st.integers(0, 4), max_size=3).map(tuple), min_size=1, max_size=most).map(tuple))
    out = draw(st.lists(st.integers(0, 4), max_size=3).map(tuple))
    held = {label for ls in labels for label in ls}
    lonely = {label for label in range(5) if label not in held and label in out}
    return (
        {label: n for label, n in sizes.items() if label in held | lonely},
        labels,
        out,
        {label: sizes[label] for label in lonely},
    )


def numbers(shape, seed=0, dtype=float):
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return drawn if shape else drawn[()] if dtype is not float else float(drawn)


@st.composite
def formals(draw, shape):
    """A formal array: up to three products, each of factors on any axes in any order (also overlapping, also none)."""
    terms = []
    for i in range(draw(st.integers(0, 3))):
        axes = (
            draw(st.lists(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1).map(tuple), max_size=3))
            if shape
            else []
        )
        factors = tuple([(numbers([shape[a] for a in on], 10 * i + j), on) for j, on in enumerate(axes)])
        terms.append(FormalProduct(draw(st.sampled_from([1.0, -1.0, 2.5])), factors))
    return Formal(shape, tuple(terms))


def multiplied_out(formal: Formal) -> np.ndarray:
    sizes, axes = dict(enumerate(formal.shape)), tuple(range(formal.ndim))
    products = [
        t.scale * by_definition([f for f, _ in t.factors], [on for _, on in t.factors], axes, sizes)
        for t in formal.terms
    ]
    return sum(products, np.zeros(formal.shape))


def close(a, b, tolerance=1e-12):
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance)


# -- contraction ----------------------------------------


@examples(4.0)
@given(patterns(), st.sampled_from([np.float64, np.float32]))
def test_contraction_is_its_definition(pattern, dtype):
    sizes, labels, out, extra = pattern
    operands = [numbers([sizes[label] for label in ls], i, dtype) for i, ls in enumerate(labels)]
    shapes = tuple([np.shape(a) for a in operands])
    for op in (Contraction(labels, out, tuple(sorted(extra.items()))), contraction(labels, out, extra)):
        result = op.run(*operands)
        assert op.result(shapes) == op.shape_of(shapes) == np.shape(dense(result))
        assert np.asarray(dense(result)).dtype == dtype
        assert close(dense(result), by_definition(operands, labels, out, sizes), 1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize(
    ("labels", "out"),
    [
        (((0, 0),), (0, 0)),
        (((0, 0), (0, 0)), (0, 0)),
        (((0, 0), (0, 0)), (0,)),
        (((0, 0), (0, 0)), ()),
        (((0, 1), (0, 1)), (0, 0)),
        (((0, 1, 1), (1, 0)), (1, 0, 1)),
        (((), (0,)), ()),
        (((0,), ()), ()),
        (((0, 1), ()), (1, 1)),
        (((0,), (1,)), ()),
    ],
)
def test_repeated_and_lonely_labels(labels, out):
    """Diagonals in, diagonals out, and sums that only one operand sees; alone, and as a step of a program."""
    operands = [numbers((3,) * len(ls), i) for i, ls in enumerate(labels)]
    op = contraction(labels, out)
    expected = by_definition(operands, labels, out, {0: 3, 1: 3})
    if not any(1 in ls for ls in labels):
        expected = by_definition(operands, labels, out, {0: 3})
    assert close(dense(op.run(*operands)), expected)
    program = Program()
    program.outputs = [program.step(op, [program.input(np.shape(a)) for a in operands])]
    assert close(dense(outputs(program, NUMBERS, operands)[0]), expected)


@examples(3.0)
@given(patterns(), st.data())
def test_contraction_of_formal_operands(pattern, data):
    sizes, labels, out, extra = pattern
    shapes = [tuple([sizes[label] for label in ls]) for ls in labels]
    operands = [
        data.draw(formals(shape)) if shape and (i == 0 or data.draw(st.booleans())) else numbers(shape, i)
        for i, shape in enumerate(shapes)
    ]
    plain = [multiplied_out(a) if isinstance(a, Formal) else a for a in operands]
    assert close(dense(contraction(labels, out, extra).run(*operands)), by_definition(plain, labels, out, sizes))


@examples(2.0)
@given(patterns(), st.data())
def test_transpose_is_the_adjoint_in_one_argument(pattern, data):
    sizes, labels, out, extra = pattern
    operands = [numbers([sizes[label] for label in ls], i) for i, ls in enumerate(labels)]
    shapes = tuple([np.shape(a) for a in operands])
    op = contraction(labels, out, extra)
    k = data.draw(st.integers(0, len(labels) - 1))
    w = numbers(op.result(shapes), 99)
    turned = op.transpose(k, shapes)
    assert turned.result((*shapes[:k], np.shape(w), *shapes[k + 1 :])) == shapes[k]
    back = dense(turned.run(*operands[:k], w, *operands[k + 1 :]))
    assert np.isclose(np.vdot(dense(op.run(*operands)), w), np.vdot(operands[k], back), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,kj->ik", [(2, 3), (4, 3)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("bij,bj->bi", [(5, 2, 3), (5, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,j->ji", [(2,), (3,)]),
        ("i,i->", [(4,), (4,)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]),
        ("ijk,ji->k", [(2, 3, 4), (3, 2)]),
        ("ij,k->k", [(2, 3), (4,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii->", [(3, 3)]),
        ("iji->j", [(3, 2, 3)]),
        ("ii,ij->j", [(3, 3), (3, 2)]),
        (",i->i", [(), (3,)]),
        (",->", [(), ()]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
    ],
)
def test_contraction_agrees_with_einsum(subscripts, shapes):
    given_labels, result = subscripts.split("->")
    labels = tuple([tuple([ord(c) for c in ls]) for ls in given_labels.split(",")])
    operands = [numbers(shape, i) for i, shape in enumerate(shapes)]
    op = contraction(labels, tuple([ord(c) for c in result]))
    assert close(dense(op.run(*operands)), np.einsum(subscripts, *operands))


def test_labels_are_renamed_so_equal_patterns_are_one_op():
    assert (
        contraction(((7, 9), (9,)), (7,)) is contraction(((0, 1), (1,)), (0,)) is Contraction(((0, 1), (1,)), (0,), ())
    )
    same = product((2, 3), (2, 3))
    assert same is contraction(((3, 5), (3, 5)), (3, 5))
    assert pickle.loads(pickle.dumps(same)) is same


def test_sizes_that_disagree_are_refused():
    with pytest.raises(ValueError, match="label 1 has sizes 3 and 4"):
        contraction(((0, 1), (1, 2)), (0, 2)).result(((2, 3), (4, 5)))


@pytest.mark.parametrize("labels", [((0,),), ((0,), (0,)), ((0,), (0,), (0,))])
def test_a_label_that_nobody_has_is_refused_or_counted(labels):
    """Σ over a label of size 7 that occurs nowhere multiplies by 7; losing that factor is not an option, nor in the transpose."""
    x = np.array([1.0, 2.0])
    try:
        op = contraction(labels, (0,), {5: 7})
    except ValueError:
        return
    assert close(dense(op.run(*[x] * len(labels))), 7 * x ** len(labels))
    assert close(dense(op.transpose(0, ((2,),) * len(labels)).run(*[x] * len(labels))), 7 * x ** len(labels))


def test_scalars_stay_scalars():
    assert isinstance(contraction(((), ()), ()).run(2.0, 3.0), float)
    assert np.ndim(contraction(((0,), (0,)), ()).run(np.ones(3), np.ones(3))) == 0


def test_the_kernels_behind():
    a, b = numbers((2, 3), 0), numbers((3, 4), 1)
    assert close(single(a, (0, 1), (1, 0, 2), {0: 2, 1: 3, 2: 5}), np.broadcast_to(a.T[:, :, None], (3, 2, 5)))
    assert close(single(a, (0, 1), (1, 1), {0: 2, 1: 3}), np.diag(a.sum(0)))
    assert close(pair(a, (0, 1), b, (1, 2), (2, 0)), (a @ b).T)
    scale, rest = network([(a, (0, 1)), (b, (1, 2)), (np.ones(5), (3,))], (0, 2), {0: 2, 1: 3, 2: 4, 3: 5, 4: 7})
    assert scale == 5.0 * 7.0 and len(rest) == 1 and close(rest[0][0], a @ b)


def test_outer_products_are_not_carried_out():
    u, v = numbers((1000,), 0), numbers((1000,), 1)
    product = contraction(((0,), (1,)), (0, 1)).run(u, v)
    assert isinstance(product, Formal) and product.numbers == 2000
    with metered() as meter:
        applied = contraction(((0, 1), (1,)), (0,)).run(product, v)
    assert isinstance(applied, Formal) and applied.numbers == 1000
    assert meter.multiplications == 1000
    assert close(dense(applied), u * (v @ v), 1e-10)


# -- the other ops ----------------------------------------


@examples(1.0)
@given(st.lists(st.sampled_from([1.0, -1.0, 0.0, 2.5]), min_size=1, max_size=4), st.data())
def test_combination_is_the_weighted_sum(coefficients, data):
    shape = data.draw(st.sampled_from([(), (3,), (2, 3), (0, 2)]))
    xs = [
        data.draw(formals(shape)) if shape and data.draw(st.booleans()) else numbers(shape, i)
        for i in range(len(coefficients))
    ]
    plain = [multiplied_out(x) if isinstance(x, Formal) else x for x in xs]
    op = Combination(tuple(coefficients))
    assert close(dense(op.run(*xs)), sum([k * x for k, x in zip(coefficients, plain, strict=True)]))
    assert op.result(tuple([shape] * len(xs))) == shape
    some = tuple(data.draw(st.sets(st.sampled_from(range(len(xs))), min_size=1)))
    expected = sum([coefficients[i] * plain[i] for i in some])
    assert close(dense(op.only(some).run(*[xs[i] for i in some])), expected)


def test_combination_broadcasts_and_keeps_float32():
    a, b = numbers((2, 3), 0, np.float32), numbers((3,), 1, np.float32)
    total = Combination((2.0, -1.0)).run(a, b)
    assert total.dtype == np.float32 and close(total, 2 * a - b, 1e-6)
    assert Combination((2.0, -1.0)).result(((2, 3), (3,))) == (2, 3)


def test_combination_leaves_its_arguments_alone():
    a, b = numbers((3,), 0), numbers((3,), 1)
    kept = a.copy(), b.copy()
    for coefficients in [(1.0, 1.0), (-1.0, 1.0), (2.0, 3.0)]:
        Combination(coefficients).run(a, b)
    assert np.array_equal(a, kept[0]) and np.array_equal(b, kept[1])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reduction_joins_relations_along_an_axis(axis, dtype):
    """[red_R, red_S, …] on arrays with axes before and after."""
    target = seg(2) * seg(2)
    joined = [
        relations.function(seg(3), target, np.array([3, 0, 3])),
        relations.full(seg(2), target),
        relations.gather(seg(5), target, [4, 4, 1, 0]),
        Place(unit, target, 2),
        relations.empty(seg(1), target),
    ]
    around = (5, 6)
    xs = [numbers((*around[:axis], *(R.source.box or ()), *around[axis:]), i, dtype) for i, R in enumerate(joined)]
    op = Reduction(tuple(joined), axis)

    def one(R, x):
        wide = x.reshape((math.prod(around[:axis]), len(R.source), math.prod(around[axis:])))
        return np.einsum("xy,axb->ayb", R.matrix().toarray(), wide).reshape((*around[:axis], 2, 2, *around[axis:]))

    result = op.run(*xs)
    assert result.dtype == dtype and result.shape == op.result(tuple([x.shape for x in xs]))
    assert close(result, sum([one(R, x) for R, x in zip(joined, xs, strict=True)]), 1e-5)
    assert close(op.only((0, 3)).run(xs[0], xs[3]), one(joined[0], xs[0]) + one(joined[3], xs[3]), 1e-5)
    assert close(op.only((2,)).run(xs[2]), one(joined[2], xs[2]), 1e-5)


def test_reduction_of_a_formal_vector():
    u, v = numbers((3,), 0), numbers((4,), 1)
    outer = Formal((3, 4), (FormalProduct(2.0, ((u, (0,)), (v, (1,)))),))
    assert close(
        dense(Reduction((relations.triangular(seg(3)),), 0).run(outer)), 2.0 * np.cumsum(np.outer(u, v), axis=0)
    )


def test_a_projection_to_a_number_is_a_number():
    assert Reduction((relations.point(seg(3), 1),), 0).run(np.array([1.0, 2.0, 3.0])) == 2.0
    assert np.ndim(Reduction((relations.point(seg(3), 1),), 0).run(np.ones(3))) == 0


def test_python_floats_are_weak_in_reductions():
    rest = relations.stride(seg(2), seg(3), begin=1)
    y = Reduction((Place(unit, seg(3), 0), rest), 0).run(1.0, np.full(2, 2.0, np.float32))
    assert y.dtype == np.float32 and y.tolist() == [1.0, 2.0, 2.0]

    def f(w):
        z = np.sin(w) * np.float32(1.1)
        return z[0] + np.sum(z[1:] ** 2)

    assert rz.grad(f)(np.linspace(0.1, 1, 5).astype(np.float32)).dtype == np.float32


def test_reductions_join_into_one_target():
    with pytest.raises(RelationError, match="into one target"):
        Reduction((relations.full(seg(2), seg(3)), relations.full(seg(2), seg(4))), 0)
    with pytest.raises(RelationError, match="between boxes"):
        Reduction((relations.diagonal(seg(2) + seg(3)),), 0)


def test_elementwise_is_the_primitive_everywhere():
    x = numbers((2, 3), 0)
    assert close(Elementwise(rz.sin).run(x), np.sin(x))
    assert Elementwise(rz.sin).run(0.5) == math.sin(0.5) and type(Elementwise(rz.sin).run(0.5)) is float
    assert close(Elementwise(rz.divide).run(x, np.float64(2.0)), x / 2)
    u, v = numbers((2,), 0), numbers((3,), 1)
    assert close(
        Elementwise(rz.exp).run(Formal((2, 3), (FormalProduct(1.0, ((u, (0,)), (v, (1,)))),))), np.exp(np.outer(u, v))
    )
    assert Elementwise(rz.divide).result(((2, 3), (3,))) == (2, 3)


def test_declared_forms_and_their_legs():
    """⟨u ⋄ v, w⟩ for the cross product: each leg from the two others."""
    V = rz.R ** seg(3)
    cross = DeclaredForm(
        "cross", (V, V, V), (lambda v, w: np.cross(v, w), lambda u, w: np.cross(w, u), np.cross), False
    )
    u, v, w = [numbers((3,), i) for i in range(3)]
    assert Declared(cross, 2).sources == (0, 1) and Declared(cross, 0).sources == (1, 2)
    (value,), (left,), (right,) = (
        Declared(cross, 2).run(u, v),
        Declared(cross, 0).run(v, w),
        Declared(cross, 1).run(u, w),
    )
    assert close(value, np.cross(u, v))
    assert np.isclose(value @ w, left @ u) and np.isclose(value @ w, right @ v)
    assert Declared(cross, 2).result(((3,), (3,))) == ((3,),)
    assert close(Get(0).run((u, v)), u) and Get(1).result((((3,), (4,)),)) == (4,)


def test_a_missing_adjoint_is_named():
    V = rz.R ** seg(3)
    half = DeclaredForm("half", (V, V), (None, lambda v: v / 2), False)
    with pytest.raises(TypeError, match="half was declared without"):
        Declared(half, 0).run(np.ones(3))


def test_a_declared_result_is_checked():
    wrong = DeclaredForm("wrong", (rz.R ** seg(3), rz.R ** seg(3)), (None, lambda v: v[:2]), False)
    with pytest.raises(rz.VectorError, match=r"expected an array of floats of shape \(3,\), got .* \(2,\)"):
        Declared(wrong, 1).run(np.ones(3))
