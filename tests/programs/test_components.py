"""Component code along a long axis: the same numbers as step by step, on both backends, and None where a step mixes positions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz.calculus.derive import derive_program, lower
from riesz.errors import VectorError
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Contraction, Reduction, contraction
from riesz.programs.axis import component_code as tiles
from riesz.programs.axis.components import components
from riesz.programs.program import Program, outputs, run
from riesz.relations import diagonal, function, gather, triangular, window
from riesz.relations.index_sets import seg
from riesz.spaces.formal_vectors import dense
from riesz.terms.primitives import RULES, Primitive
from riesz.testing import functions

BACKENDS = ("numpy", "numba")
RNG = np.random.default_rng(5)


def traced(f, *values):
    """The program of a NumPy function, and its inputs."""
    record, leaves = rz.function(f).at(values)
    return record.settled().program, leaves


def plain(program, slots, inputs):
    """Slots of a program, step by step."""
    with np.errstate(all="ignore"):
        found = run(program, NUMBERS, inputs)
    return [np.asarray(dense(found[s])) for s in slots]


def same(program, inputs, slots=None, backends=BACKENDS, axis=None, tolerance=1e-9):
    """Component code of a program exists and computes what its steps compute."""
    wanted = list(program.outputs if slots is None else slots)
    code = components(program, wanted, axis)
    assert code is not None
    for backend in backends:
        for a, b, s in zip(code.run(inputs, backend=backend), plain(program, wanted, inputs), wanted, strict=True):
            assert a.shape == program.shapes[s] and a.dtype == b.dtype
            assert np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return code


# -- random programs --------------------------------------------------------------------------------------

N = 41


def step(pick, values):
    """One more array from arrays of shape (N, …): random NumPy code, pointwise along the first axis."""
    x = pick(values)
    y = pick([v for v in values if v.shape[1:] == x.shape[1:]])
    functions = [
        np.sin,
        np.tanh,
        np.exp,
        lambda v: np.sqrt(1 + v * v),
        np.abs,
        np.arctan,
        lambda v: v**2,
        lambda v: (2 + np.cos(v)) ** -1.5,
    ]
    made = [
        lambda: pick([x + y, x - y, x * y, x / (2 + y * y), -x, 3 * x - 0.5 * y, 1 - x]),
        lambda: pick(functions)(0.1 * x),
        lambda: pick([np.where(x > y, x, 2 * y), np.maximum(x, y), np.clip(x, -0.5, 0.5)]),
        lambda: x[..., None] if x.ndim < 3 else x.reshape(N, -1),
    ]
    if x.ndim > 1:
        made += [
            lambda: x * np.linspace(-1, 1, x.shape[-1]).astype(x.dtype),
            lambda: pick(
                [x[:, 0], x[:, ::-1], x[:, 1:], x[:, [0, -1, 0]], np.roll(x, 1, axis=1), np.cumsum(x, axis=1)]
            ),
            lambda: pick(
                [
                    x.sum(axis=-1),
                    x.mean(axis=1),
                    np.concatenate([x, y], axis=1),
                    np.stack([x, y], axis=1),
                    np.swapaxes(x, 1, -1),
                ]
            ),
        ]
    if x.ndim == 2:
        constant = np.arange(2.0 * x.shape[1]).reshape(x.shape[1], 2).astype(x.dtype)
        made += [lambda: pick([x[:, :, None] * y[:, None, :], np.einsum("pi,pi->p", x, y), x @ constant])]
    return pick(made)()


@st.composite
def pointwise(draw):
    """A NumPy function of (N, 3), (7, 3) and (3,) whose choices are drawn beforehand, so that it is the same at each call."""
    tape, count = draw(st.lists(st.integers(0, 10**6), min_size=50, max_size=50)), draw(st.integers(1, 9))
    index = np.array(draw(st.lists(st.integers(0, 6), min_size=N, max_size=N)))

    def f(x, table, small):
        choices = iter(tape)
        values = [x, table[index], x * small + 0.1]
        for _ in range(count):
            made = step(lambda options: options[next(choices) % len(options)], values)
            if made.ndim <= 3 and 0 < np.prod(made.shape[1:]) <= 12:
                values.append(made)
        return values[-1], values[len(values) // 2]

    return f


def values(rng, dtype=float):
    return [rng.normal(size=shape).astype(dtype) for shape in ((N, 3), (7, 3), (3,))]


@examples(0.6)
@given(pointwise(), st.integers(0, 2**32 - 1))
def test_pointwise_programs_in_tiles(f, seed):
    program, inputs = traced(f, *values(np.random.default_rng(seed)))
    same(program, inputs, backends=("numpy",), axis=0)


@examples(0.12)
@given(pointwise(), st.integers(0, 2**32 - 1))
def test_pointwise_programs_compiled(f, seed):
    program, inputs = traced(f, *values(np.random.default_rng(seed)))
    same(program, inputs, backends=("numba",), axis=0)


@examples(0.4)
@given(pointwise(), st.integers(0, 2**32 - 1))
def test_float32_stays(f, seed):
    program, inputs = traced(f, *values(np.random.default_rng(seed), np.float32))
    code = same(program, inputs, backends=("numpy",), axis=0, tolerance=1e-3)
    assert all([x.dtype == np.float32 for x in code.run(inputs)])


@examples(0.4)
@given(pointwise(), st.integers(0, 2**32 - 1))
def test_derivatives_along_the_axis(f, seed):
    rng = np.random.default_rng(seed)
    program, inputs = traced(f, *values(rng))
    derived = derive_program(program)
    same(derived.affine, [*inputs, *values(rng)], backends=("numpy",), axis=0, tolerance=1e-8)


@examples(1.5)
@given(functions(weighted=False), st.integers(0, 2**32 - 1))
def test_whatever_fits_computes_the_same(t, seed):
    """Programs of any kind, their derivatives and adjoints: short axes, several of them, other things than pointwise."""
    rng = np.random.default_rng(seed)
    program = lower(t)
    derived = derive_program(program)
    for p in (program, derived.affine, derived.reverse):
        inputs = [rng.normal(size=p.shapes[s]) if p.shapes[s] else float(rng.normal()) for s in p.inputs]
        code = components(p)
        if code is not None:
            for a, b in zip(code.run(inputs, backend="numpy"), plain(p, p.outputs, inputs), strict=True):
                assert a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)


# -- bundle adjustment ------------------------------------------------------------------------------------


def residual(cameras, X, weights, features):
    rotation, centre, focal, principal, radial = (
        cameras[:, :3],
        cameras[:, 3:6],
        cameras[:, 6:7],
        cameras[:, 7:9],
        cameras[:, 9:],
    )
    squared = np.sum(rotation**2, axis=1, keepdims=True)
    angle = np.sqrt(squared)
    axis, moved = rotation / angle, X - centre
    turned = (
        np.cos(angle) * moved
        + np.sin(angle) * np.cross(axis, moved)
        + (1 - np.cos(angle)) * np.sum(axis * moved, axis=1, keepdims=True) * axis
    )
    seen = np.where(squared > 0, turned, moved + np.cross(rotation, moved))
    plane = seen[:, :2] / seen[:, 2:]
    r2 = np.sum(plane**2, axis=1, keepdims=True)
    return weights[:, None] * (plane * (1 + radial[:, :1] * r2 + radial[:, 1:] * r2**2) * focal + principal - features)


def adjustment(p, seed=0):
    """A residual with gathers, and a point: one camera does not turn."""
    rng = np.random.default_rng(seed)
    at, to, features = rng.integers(0, 4, p), rng.integers(0, 9, p), rng.normal(size=(p, 2))
    cameras = np.concatenate([rng.normal(size=(4, 6)), 1 + rng.random((4, 5))], axis=1)
    cameras[0, :3] = 0
    point = [cameras, rng.normal(size=(9, 3)) + np.array([0, 0, 9]), rng.random(p)]
    return (lambda c, x, w: (residual(c[at], x[to], w, features), 1 - w**2)), point


@pytest.mark.parametrize("p", [0, 1, 2, 60])
def test_bundle_adjustment_and_its_coefficients(p):
    f, point = adjustment(p)
    program, inputs = traced(f, *point)
    same(program, inputs, axis=0)
    affine = derive_program(program).affine
    moving = affine.dependent(affine.inputs[3:])
    coefficients = {
        a
        for s in range(len(affine.ops))
        if moving[s]
        for a in affine.args[s]
        if not moving[a] and p in affine.shapes[a][:1]
    }
    slots = sorted(coefficients)
    assert len(slots) > 15
    directions = [np.ones(x.shape) for x in inputs]
    same(affine, [*inputs, *directions], slots, axis=0)
    same(affine, [*inputs, *directions], axis=0)


def test_unit_vectors_leave_only_the_structure_of_the_jacobian():
    """Zeros of unit vectors are structure: the program of 14 derivatives has far fewer operations than 14 programs, and writes CSR data."""
    p = 50
    _, point = adjustment(p)
    rows = [np.ascontiguousarray(point[0][[1, 2] * 25]), point[1][[3, 4] * 25], point[2]]
    features = RNG.normal(size=(p, 2))
    program, inputs = traced(lambda c, x, w: residual(c, x, w, features), *rows)
    derivative = derive_program(program, [True, False, False]).derivative
    whole = Program()
    xs = [whole.input(x.shape) for x in inputs]
    units = [outputs(derivative, whole, [*xs, whole.const(np.broadcast_to(e, (p, 11)))])[0] for e in np.eye(11)]
    blocks = whole.prune(xs, units)
    code = same(blocks, inputs)
    alone = components(derivative)
    assert code.size < 3 * alone.size
    columns = [np.array([j, 11 + j]) for j in range(11)]
    columns[4] = np.array([-1, -1])
    for backend in BACKENDS:
        data = np.full((p, 23), 7.0)
        code.write(inputs, data[:, :22], columns, backend)
        J = np.stack(plain(blocks, blocks.outputs, inputs), axis=2).reshape(p, 22)
        J[:, [4, 15]] = 7.0
        assert np.allclose(data[:, :22], J) and (data[:, 22] == 7.0).all()


# -- steps ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted([n for n, r in RULES.items() if r.scalar is not None]))
def test_floats_and_arrays_have_the_same_values_at_the_edges(name):
    rule = RULES[name]
    for xs in itertools.product(
        [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e308, 1e-320, -2.5, 3.0],
        repeat=max(rule.arity, 2 if name == "power" else 1),
    ):
        try:
            found = rule.scalar(*xs)
        except (ValueError, OverflowError, ZeroDivisionError):  # then the array's is taken
            continue
        with np.errstate(all="ignore"):
            wanted = rule.array(*[np.array([x]) for x in xs])[0]
        assert np.isclose(found, wanted, rtol=1e-13, atol=0.0, equal_nan=True), (xs, found, wanted)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_primitive_on_both_backends(name):
    rule = RULES[name]
    xs = np.concatenate([RNG.normal(size=200) * 2, [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, 0.5]])
    pairs = np.stack(np.meshgrid(xs, xs), axis=-1).reshape(-1, 2)
    parameters = {"power": [-1.5, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 7.0], "sinc_derivative": [2.0]}.get(
        name, [None]
    )
    for parameter in parameters:
        for dtype in (np.float64, np.float32):
            program = Program()
            given = [xs] if rule.arity == 1 else [pairs[:, 0].copy(), pairs[:, 1].copy()]
            with np.errstate(over="ignore"):
                given = [x.astype(dtype) for x in given]
            program.outputs = [program.step(Primitive(rule, parameter).op, [program.input(x.shape) for x in given])]
            backends = (
                BACKENDS
                if tiles.FORMS.get(rule.array) or name in ("relu", "sigmoid", "inverse", "log0", "power")
                else ("numpy",)
            )
            same(program, given, backends=backends, tolerance=1e-12 if dtype is np.float64 else 2e-5)


def test_integers_truth_values_and_numbers_without_a_type():
    x, n = RNG.normal(size=(60, 2)), RNG.integers(0, 9, 60)
    for kind in (np.int32, np.int64):
        program, inputs = traced(
            lambda x, n, k: (x * k + n[:, None] * (n > 4)[:, None], (n + n) * 2, x > k), x, n.astype(kind), 0.5
        )
        same(program, inputs, backends=BACKENDS if kind is np.int64 else ("numpy",))
    program, inputs = traced(lambda x, k: x * k + 1, x.astype(np.float32), 0.5)
    same(program, inputs, tolerance=1e-6)


def test_what_has_no_form_for_numba_runs_in_tiles():
    program, inputs = traced(lambda x: np.sinc(x) + np.round(x, 2), RNG.normal(size=(90, 2)))
    code = same(program, inputs, backends=("numpy", "auto"))
    with pytest.raises(VectorError, match="no form that Numba compiles"):
        code.run(inputs, backend="numba")


def test_relations_on_small_axes():
    x = RNG.normal(size=(30, 6))
    S = seg(6)
    for relation in (
        triangular(S),
        window(S, 3),
        function(S, seg(2), [0, 1, 0, 1, 1, 0]),
        gather(S, seg(3), [5, 5, 0]),
        triangular(S) | diagonal(S),
    ):
        program = Program()
        program.outputs = [program.step(Reduction((relation,), 1), [program.input(x.shape)])]
        same(program, [x], axis=0)


def test_reading_along_the_axis():
    """Gathers, slices, steps backwards, two index arrays at once and windows read another array along the axis."""
    table, n = RNG.normal(size=(9, 5, 2)), 20
    i, j = RNG.integers(0, 9, n), RNG.integers(0, 5, n)
    x = RNG.normal(size=(2 * n + 1, 3))
    for f, args in [
        (lambda t: np.sin(t[i, j]) * t[i, 2], (table,)),
        (lambda t: t[:, j] - 1, (table[0].T.copy(),)),
        (lambda v: v[1:] * v[:-1] - v[::-1][1:], (x,)),
        (lambda v: np.cos(v[1::2]) + v[-2::-2], (x,)),
        (lambda v: v - v.mean(axis=0), (x,)),
        (lambda v: np.exp(v)[2:] - np.exp(v)[:-2], (x,)),
        (lambda t: np.broadcast_to(t[3, 2], (n, 2)) * 2.0, (table,)),
        (lambda t: t[i][:, 1] + np.arange(n)[:, None] * t[i, j], (table,)),
    ]:
        program, inputs = traced(f, *args)
        same(program, inputs)


def test_a_long_axis_that_is_not_the_first():
    x, y = RNG.normal(size=(3, 50)), RNG.normal(size=50)
    program, inputs = traced(lambda x, y: (np.cross(x, 2 * x + y, axis=0), y * x[0], x.T * x[1][:, None]), x, y)
    code = same(program, inputs)
    assert code.length == 50


def test_numbers_that_are_not_finite():
    x = np.array([[0.0, 1.0], [np.inf, 0.0], [np.nan, 2.0], [-np.inf, np.inf], [1e308, 1e308]])
    program, inputs = traced(
        lambda x: (x[:, 0] / x[:, 1], x * 0.0, np.where(x > 0, np.log(x), x), x @ np.array([[2.0, 0.0], [0.0, 3.0]])), x
    )
    for backend in BACKENDS:
        code = components(program, axis=0)
        for a, b in zip(code.run(inputs, backend=backend), plain(program, program.outputs, inputs), strict=True):
            np.testing.assert_array_equal(a, b)


def test_zeros_of_a_selection_are_strong():
    """The derivative of a branch not taken leaves no trace, infinite or not."""
    x = np.stack([np.array([0.0, 1.0, 4.0, -1.0])] * 2, axis=1)
    program, inputs = traced(lambda x: np.where(x > 0, np.sqrt(x), x) + np.maximum(x, 1.0), x)
    affine = derive_program(program).affine
    code = same(affine, [*inputs, np.ones_like(x)], axis=0)
    assert np.isfinite(code.run([*inputs, np.ones_like(x)])[1]).all()


# -- results ----------------------------------------------------------------------------------------------


def test_results_in_given_arrays():
    x = RNG.normal(size=(300, 3))
    program, inputs = traced(lambda x: (np.sin(x), x[:, 0] * 2), x)
    code = components(program)
    for backend in BACKENDS:
        wide = np.zeros((300, 8), np.float32)
        result = code.run(inputs, [wide[:, 1:7:2], None], backend)
        assert result[0].base is wide and np.allclose(wide[:, 1:7:2], np.sin(x), atol=1e-6) and not wide[:, 0:7:2].any()
        own = x.copy()
        code.run([own], [own, None], backend)  # in place
        assert np.allclose(own, np.sin(x))


def test_threads_and_tiles_do_not_change_a_bit(monkeypatch):
    f, point = adjustment(20_000)
    program, inputs = traced(f, *point)
    monkeypatch.setenv("RIESZ_THREADS", "1")
    one = [components(program).run(inputs, backend=b) for b in BACKENDS]
    monkeypatch.setenv("RIESZ_THREADS", "3")
    three = [components(program).run(inputs, backend=b) for b in BACKENDS]
    for a, b in zip([x for xs in one for x in xs], [x for xs in three for x in xs], strict=True):
        np.testing.assert_array_equal(a, b)
    assert components(program).length == 20_000


def test_small_outputs_come_along():
    x = RNG.normal(size=(40, 3))
    program, inputs = traced(lambda x, k: (x * k, k.sum(), k + 1), x, np.arange(3.0))
    same(program, inputs, axis=0)


def test_the_same_text_is_compiled_once():
    programs = [traced(lambda x: np.sin(x) * 2.5, RNG.normal(size=(70, 2)))[0] for _ in range(2)]
    loops = [components(p, axis=0).loop for p in programs]
    assert loops[0] == loops[1] and tiles.compiled_loop(loops[0]) is tiles.compiled_loop(loops[1])
    assert "math.sin" in loops[0] and "sin(" in components(programs[0]).source


def test_common_expressions_are_written_once():
    program, _ = traced(
        lambda x: (np.sin(x[:, 0]) * np.sin(x[:, 0]), np.negative(-x), 1.0 * x, 2 * (3 * x[:, 1])),
        RNG.normal(size=(50, 2)),
    )
    code = components(program)
    assert code.size == 2 + 1 + 1 + 1  # two loads, a sine, its square, 6·x
    assert code.source.count("sin(") == 1


# -- what does not fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: np.cumsum(x, axis=0),
        lambda x: np.concatenate([x, x], axis=0),
        lambda x: x.reshape(-1, 6),
        lambda x: np.sort(x, axis=0),
        lambda x: np.linalg.inv(x[:, :, None] * x[:, None, :] + np.eye(3)),
        lambda x: x[:, None, 0] * x[None, :, 0],
        lambda x: x @ x.T,
    ],
)
def test_steps_that_mix_positions_do_not_fit(f):
    program, _ = traced(f, RNG.normal(size=(6000, 3)) if f(np.eye(6, 3)).size < 36 else RNG.normal(size=(60, 3)))
    found = components(program, axis=0) if program.shapes[program.outputs[0]] else components(program)
    assert found is None


def test_a_diagonal_along_the_axis_does_not_fit():
    program = Program()
    program.outputs = [program.step(contraction(((0,),), (0, 0)), [program.input((50,))])]
    assert isinstance(program.ops[-1], Contraction) and components(program) is None


def test_scattering_along_the_axis_does_not_fit():
    program = Program()
    program.outputs = [
        program.step(Reduction((function(seg(9), seg(4), [0, 1, 2, 3, 0, 1, 2, 3, 0]),), 0), [program.input((9, 2))])
    ]
    assert components(program, axis=0) is None
    same(program, [RNG.normal(size=(9, 2))], axis=1)


def test_too_many_operations_are_refused():
    program, inputs = traced(lambda x: np.sin(x) @ np.linspace(2, 3, 900).reshape(30, 30), RNG.normal(size=(100, 30)))
    assert components(program, axis=0, most=500) is None
    same(program, inputs, backends=("numpy",), axis=0)


def test_long_programs():
    """Ten thousand steps in sequence: nothing is deep."""
    program = Program()
    x = slot = program.input((64,))
    for _ in range(5000):
        slot = program.step(Primitive(RULES["sin"]).op, [program.step(contraction(((0,), (0,)), (0,)), [slot, x])])
    program.outputs = [slot]
    same(program, [RNG.normal(size=64)], backends=("numpy",))


def test_bad_arguments_are_named():
    program, inputs = traced(lambda x: 2 * x, RNG.normal(size=(50, 2)))
    code = components(program)
    with pytest.raises(VectorError, match=r"inputs have the shapes \[\(50, 2\)\]; got \[\(3,\)\]"):
        code.run([np.zeros(3)])
    with pytest.raises(VectorError, match="cannot be written"):
        code.run(inputs, [np.zeros((2, 50))])
    with pytest.raises(VectorError, match="1 outputs need as many"):
        code.run(inputs, [])
    with pytest.raises(VectorError, match="backend"):
        code.run(inputs, backend="cuda")
    with pytest.raises(VectorError, match=r"columns up to 3 cannot have shape \(50, 2\)"):
        code.write(inputs, np.zeros((50, 2)), [[2, 3]])
    with pytest.raises(VectorError, match="columns are arrays"):
        code.write(inputs, np.zeros((50, 2)), [[0]])
