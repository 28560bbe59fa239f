"""Relational reduction on every backend: the same numbers as the matrix of multiplicities, the same bits for any number of threads   (§2.2.3)."""

import gc
import importlib.util
import math
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples
from test_relations import CASES

from riesz import RelationError, relations, seg
from riesz.relations import Beside, Both, Pairs, Place, Relation, Spanned, Through, Triangular, Union, spanned
from riesz.relations.cpu import pair_sums as running
from riesz.relations.cpu.groups import Groups
from riesz.relations.index_sets import unit
from riesz.relations.jax import gpu_rows as rows_on_gpu
from riesz.relations.jax import reduction_in_jax as in_jax
from riesz.runtime import buffers, tuning
from riesz.runtime import pool as threads

jax.config.update("jax_enable_x64", True)

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
NUMBA = pytest.param("numba", marks=needs_numba)
every_backend = pytest.mark.parametrize("backend", ["numpy", NUMBA, "jax"])
on_the_processor = pytest.mark.parametrize("backend", ["numpy", NUMBA])


# -- what is expected, and of what -------------------------------------------------------------------------


def axes_of(index) -> tuple[int, ...]:
    return (index.size,) if index.box is None else index.box


def whole(rng, shape, dtype=np.float64) -> np.ndarray:
    """Small whole numbers: their sums are exact in any order."""
    return rng.integers(-4, 5, shape).astype(dtype)


def red(matrix: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(red_R v)_y = Σ_x R(x, y)·v_x, for flat sets in front of the axes of the values, added in double precision."""
    wide = np.complex128 if np.asarray(v).dtype.kind == "c" else np.float64
    return np.tensordot(matrix.T.astype(wide), np.asarray(v).astype(wide), 1)


def dense(source: int, target: int, rows, cols, times=None) -> np.ndarray:
    """A matrix of multiplicities from pairs in any order."""
    found = np.zeros((source, target), int)
    np.add.at(found, (np.asarray(rows, int), np.asarray(cols, int)), 1 if times is None else times)
    return found


def window_matrix(n: int, size: int, step: int = 1, dilation: int = 1) -> np.ndarray:
    """{(step·j + dilation·k, j) | k < size} by definition."""
    count = (n - dilation * (size - 1) - 1) // step + 1
    j, k = np.divmod(np.arange(count * size), size)
    return dense(n, count, step * j + dilation * k, j)


def same_bits(one, other) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def fresh_pairs(rng, n: int, m: int, count: int, most: int = 1) -> tuple[Relation, np.ndarray]:
    """Pairs no other test has seen, with multiplicities up to `most`."""
    matrix = np.zeros(n * m, int)
    matrix[rng.choice(n * m, count, replace=False)] = rng.integers(1, most + 1, count)
    matrix = matrix.reshape(n, m)
    rows, cols = np.nonzero(matrix)
    return Pairs(seg(n), seg(m), *[relations.freeze(a) for a in (rows, cols, matrix[rows, cols])]), matrix


def skewed(rng, n: int, m: int) -> np.ndarray:
    """The image of a function that few targets have most of: a power law, with targets that nothing goes to."""
    return np.minimum(rng.zipf(1.3, n) - 1, m - 1) * 7 % m


ONE, NONE = seg(1), seg(0)
HUB = np.array([3] * 150 + [0, 5, 3, 3, 5])
MORE = {
    "scan of nothing": (relations.triangular(NONE), np.zeros((0, 0), int)),
    "strict scan of nothing": (relations.triangular_strict(NONE), np.zeros((0, 0), int)),
    "scan of one": (relations.triangular(ONE), np.ones((1, 1), int)),
    "strict scan of one": (relations.triangular_strict(ONE), np.zeros((1, 1), int)),
    "function of one": (relations.function(ONE, ONE, [0]), np.ones((1, 1), int)),
    "function on nothing into nothing": (relations.function(NONE, NONE, []), np.zeros((0, 0), int)),
    "one pair": (Pairs(ONE, ONE, *[relations.freeze(np.array([k])) for k in (0, 0, 3)]), np.full((1, 1), 3)),
    "one segment": (relations.segments([0, 1]), np.ones((1, 1), int)),
    "diagonal of nothing": (relations.diagonal(NONE), np.zeros((0, 0), int)),
    "window of one": (relations.window(ONE, 1), np.ones((1, 1), int)),
    "product with nothing": (relations.window(seg(9), 3) * relations.diagonal(NONE), np.zeros((0, 0), int)),
    "edges": (relations.edges(seg(4), seg(3), [3, 0, 3, 1], [2, 2, 2, 0]), dense(4, 3, [3, 0, 3, 1], [2, 2, 2, 0])),
    "edges between grids": (
        relations.edges(seg(2) * seg(2), seg(3), np.array([3, 0, 3]), [2, 2, 2]),
        dense(4, 3, [3, 0, 3], [2, 2, 2]),
    ),
    "long segment": (relations.segments([0, 0, 20, 25, 25]), dense(25, 4, np.arange(25), [1] * 20 + [2] * 5)),
    "hub": (relations.function(seg(155), seg(6), HUB), dense(155, 6, np.arange(155), HUB)),
    "window in stages": (relations.window(seg(40), 12), window_matrix(40, 12)),
    "window in stages, strided": (relations.window(seg(60), 16, 2, 3), window_matrix(60, 16, 2, 3)),
    "window of prime size": (relations.window(seg(40), 13), window_matrix(40, 13)),
    "window of two axes": (
        relations.window(seg(12), 4) * relations.window(seg(15), 6),
        np.kron(window_matrix(12, 4), window_matrix(15, 6)),
    ),
    "twice a window": (
        relations.window(seg(30), 9) | relations.window(seg(30), 9),
        2 * window_matrix(30, 9),
    ),
    "sum and window": (
        relations.full(seg(5), unit) * relations.window(seg(9), 3),
        np.kron(np.ones((5, 1), int), window_matrix(9, 3)),
    ),
    "rows to rows": (
        relations.function(seg(5), seg(3), [0, 2, 1, 1, 1]) * relations.diagonal(seg(4)),
        np.kron(dense(5, 3, range(5), [0, 2, 1, 1, 1]), np.eye(4, dtype=int)),
    ),
}
BOTH_WAYS = {name: (R, matrix) for name, (R, matrix) in (CASES | MORE).items()}
BOTH_WAYS |= {f"{name}, turned": (R.converse, matrix.T) for name, (R, matrix) in (CASES | MORE).items()}
every_relation = pytest.mark.parametrize(("R", "matrix"), BOTH_WAYS.values(), ids=BOTH_WAYS)


@every_backend
@every_relation
def test_plan_is_the_definition(R: Relation, matrix, backend):
    rng = np.random.default_rng(1)
    plan = R.plan(backend)
    few = [((), np.float64), ((2, 3), np.float32)]  # JAX compiles for each
    for values, dtype in (
        few if backend == "jax" else [*few, ((), np.float32), ((2, 3), np.float64), ((0,), np.float64)]
    ):
        v = rng.standard_normal((*axes_of(R.source), *values)).astype(dtype)
        y = plan(v)
        want = red(matrix, v.reshape(R.source.size, *values))
        close = 1e-13 if dtype is np.float64 else 1e-5
        assert y.dtype == dtype and np.shape(y)[len(np.shape(y)) - len(values) :] == values
        assert isinstance(y, jax.Array if backend == "jax" else np.ndarray)
        assert np.allclose(np.asarray(y).reshape(want.shape), want, rtol=close, atol=close * 20)


@every_backend
@pytest.mark.parametrize(("R", "matrix"), (CASES | MORE).values(), ids=CASES | MORE)
def test_the_plans_adjoint_is_the_adjoint(R: Relation, matrix, backend):
    """⟨red v, w⟩ = ⟨v, red* w⟩, exactly."""
    rng = np.random.default_rng(2)
    plan = R.plan(backend)
    v, w = [whole(rng, (*axes_of(s), 2, 3), np.float32) for s in (R.source, R.target)]
    y, x = np.asarray(plan(v)), np.asarray(plan.adjoint(w))
    assert np.vdot(y, w.reshape(y.shape)) == np.vdot(v, x.reshape(v.shape))
    assert plan.adjoint.backend == backend and plan.adjoint.adjoint.relation is R
    assert np.array_equal(x.reshape(-1, 2, 3), red(matrix.T, w.reshape(-1, 2, 3)))


@every_relation
def test_plan_takes_flat_arrays_and_views_and_leaves_them_alone(R: Relation, matrix):
    rng = np.random.default_rng(3)
    v = whole(rng, (3, 2, R.source.size)).transpose(2, 0, 1)[:, ::-1]
    kept = v.copy()
    v.flags.writeable = False
    for backend in ("auto", "numpy", *(["numba"] if running.numba_installed() else [])):
        y = R.plan(backend)(v)
        assert np.array_equal(y.reshape(-1, 3, 2), red(matrix, kept)) and np.array_equal(v, kept)


@on_the_processor
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64, np.float16, np.longdouble])
@pytest.mark.parametrize(
    "name", ["function", "gather", "pairs", "segments", "scan", "window in stages", "side by side"]
)
def test_other_numbers_keep_their_type(name, dtype, backend):
    R, matrix = BOTH_WAYS[name]
    v = whole(np.random.default_rng(4), (R.source.size, 2)).astype(dtype)
    v = v * (1 + 2j) if v.dtype.kind == "c" else v
    y = R.plan(backend)(v.astype(dtype))
    assert y.dtype == dtype and np.array_equal(y, red(matrix, v).astype(dtype))


# -- the same bits -----------------------------------------------------------------------------------------

KINDS = [
    "function",
    "gather",
    "pairs",
    "pairs, several times",
    "segments",
    "segments repeated",
    "scan",
    "suffix",
    "strict scan",
    "strict suffix",
]


def random_relation(kind: str, rng, n: int, m: int) -> Relation:
    X, Y = seg(n), seg(m)
    if kind in ("function", "gather"):
        R = relations.function(X, Y, skewed(rng, n, m))
        return R if kind == "function" else R.converse
    if kind.startswith("pairs"):
        return fresh_pairs(rng, n, m, int(rng.integers(0, n * m + 1)), 5 if "," in kind else 1)[0]
    if kind.startswith("segments"):
        R = relations.segments([0, *np.sort(rng.integers(0, n + 1, m - 1)).tolist(), n])
        return R.converse if "repeated" in kind else R
    return Triangular(X, X, "scan" in kind, "strict" in kind)


@needs_numba
@given(
    st.sampled_from(KINDS),
    st.integers(0, 40),
    st.integers(1, 30),
    st.sampled_from([(), (1,), (3,), (17,)]),
    st.sampled_from("fd"),
    st.integers(0),
)
@examples(3.0)
def test_numpy_and_numba_give_the_same_bits(kind, n, m, values, dtype, seed):
    rng = np.random.default_rng(seed)
    R = random_relation(kind, rng, n, m)
    v = rng.standard_normal((R.source.size, *values)).astype(dtype)
    assert same_bits(R.plan("numpy")(v), R.plan("numba")(v))


@needs_numba
@pytest.mark.parametrize("values", [(), (3,)])
@pytest.mark.parametrize("kind", KINDS)
def test_numpy_and_numba_give_the_same_zeros(kind, values):
    """Sums of -0.0 are 0.0 or -0.0 on both."""
    R = random_relation(kind, np.random.default_rng(5), 12, 5)
    v = np.full((R.source.size, *values), -0.0)
    assert same_bits(R.plan("numpy")(v), R.plan("numba")(v))


@needs_numba
@pytest.mark.parametrize("values", [(), (3,)])
@pytest.mark.parametrize("order", ["by source", "by target", "any", "any, some twice", "by target, some twice"])
def test_numpy_and_numba_give_the_same_bits_on_edge_lists(order, values):
    """Each sum runs in the order of the source, however the edges were listed."""
    rng = np.random.default_rng(6)
    _, matrix = fresh_pairs(rng, 60, 7, 200, 3 if "twice" in order else 1)
    rows, cols = np.nonzero(matrix)
    rows, cols = np.repeat(rows, matrix[rows, cols]), np.repeat(cols, matrix[rows, cols])
    mixed = rng.permutation(len(rows)) if "source" not in order else np.arange(len(rows))
    mixed = mixed[np.argsort(cols[mixed], kind="stable")] if "target" in order else mixed
    R = relations.edges(seg(60), seg(7), rows[mixed], cols[mixed])
    v, w = rng.standard_normal((60, *values)), rng.standard_normal((7, *values))
    assert np.allclose(R.plan("numpy")(v), red(matrix, v)) and np.allclose(R.plan("numba")(v), red(matrix, v))
    assert same_bits(R.plan("numpy")(v), R.plan("numba")(v))
    assert same_bits(R.plan("numpy").adjoint(w), R.plan("numba").adjoint(w))


@needs_numba
@pytest.mark.parametrize("values", [(), (5,)])
def test_added_in_place_or_grouped_the_same_bits(values, monkeypatch):
    """A function whose result fits the caches is scattered; far and long rows are grouped."""
    rng = np.random.default_rng(7)
    ways = []
    for name in ("scattered", "summed"):
        name = name if name == "scattered" else name + ("" if values else "_numbers")
        from riesz.relations.cpu import numba_loops as compiled

        original = getattr(compiled, name)
        monkeypatch.setattr(
            compiled, name, lambda *args, original=original, name=name: (ways.append(name), original(*args))
        )
    image = skewed(rng, 500, 40)
    v = rng.standard_normal((500, *values))
    near = relations.function(seg(500), seg(40), image).plan("numba")(v)
    monkeypatch.setattr(tuning, "SHARED_CACHE_BYTES", 0)
    monkeypatch.setattr(tuning, "STRIP_ROW_BYTES", 0)
    far = relations.function(seg(500), seg(40), image).plan("numba")(v)
    assert [way.partition("_")[0] for way in ways] == ["scattered", "summed"]
    assert same_bits(near, far) and same_bits(near, relations.function(seg(500), seg(40), image).plan("numpy")(v))


def in_parts(monkeypatch) -> list[int]:
    """Make small arrays worth many threads; the list says into how many parts each piece of work was cut."""
    used: list[int] = []
    spread = threads.spread
    monkeypatch.setattr(threads, "spread", lambda work, parts: (used.append(len(parts)), spread(work, parts))[1])
    monkeypatch.setattr(tuning, "PAIR_NUMBERS_PER_THREAD", 1)
    monkeypatch.setattr(tuning, "ONE_THREAD_TARGET_BYTES", 0)
    monkeypatch.setattr(tuning, "SLICE_TILE_NUMBERS", 4)
    return used


def threaded(kind: str) -> Relation:
    """Relations whose work can be cut: along the targets, or along an axis in front."""
    rng = np.random.default_rng(8)
    five = relations.diagonal(seg(5))
    match kind:
        case "function over an axis":
            return five * random_relation("function", rng, 300, 20)
        case "scan over an axis":
            return five * relations.triangular(seg(300))
        case "strict suffix over an axis":
            return five * Triangular(seg(300), seg(300), False, True)
        case "function to many":
            return relations.function(seg(900), seg(700), np.sort(rng.integers(0, 700, 900)))
        case "window":
            return relations.window(seg(900), 7)
        case "window in stages":
            return relations.window(seg(900), 24)
        case "sum and window":
            return relations.full(seg(40), unit) * relations.window(seg(300), 3)
        case "hub":
            return relations.segments([0, 10, 10, 690, 691, 700])
        case _:
            return random_relation(kind, rng, 90, 70)


@pytest.mark.parametrize("values", [(), (3,)])
@pytest.mark.parametrize(
    "kind",
    [
        *[pytest.param(k, marks=needs_numba) for k in KINDS[:6]],
        *[pytest.param(f"{k} over an axis", marks=needs_numba) for k in ("function", "scan", "strict suffix")],
        *[pytest.param(k, marks=needs_numba) for k in ("function to many", "hub")],
        *["window", "window in stages", "sum and window"],
    ],
)
def test_any_number_of_threads_gives_the_same_bits(kind, values, monkeypatch):
    used = in_parts(monkeypatch)
    R = threaded(kind)
    backend = "numba" if running.numba_installed() else "numpy"
    v = np.random.default_rng(9).standard_normal((*axes_of(R.source), *values))
    alone = R.plan("numpy")(v)
    for count in (1, 2, 3, 7):
        monkeypatch.setenv("RIESZ_THREADS", str(count))
        used.clear()
        results = [R.plan(backend)(v) for _ in range(3)]
        worth = 1 + math.isqrt(math.prod(R.target.box) * math.prod(values) // (4 * tuning.SLICE_TILE_NUMBERS))
        most = worth if kind == "sum and window" else 5 if "x over an axis" in kind or "scan over" in kind else count
        assert max(used) == min(count, most)  # really in parts
        assert all(same_bits(y, alone) for y in results)


@pytest.mark.parametrize("name", ["function", "pairs", "segments", "scan", "hub", "window in stages"])
def test_jax_gives_the_same_bits_every_run(name):
    R, _ = BOTH_WAYS[name]
    v = jnp.asarray(np.random.default_rng(10).standard_normal((R.source.size, 4)))
    first = R.plan("jax")(v)
    assert all(same_bits(R.plan("jax")(v), first) for _ in range(5))


# -- windows in stages -------------------------------------------------------------------------------------

STEPS = [(1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 3), (5, 2)]


def check_both_ways(R: Relation, matrix: np.ndarray, backend: str = "numpy", values: tuple[int, ...] = ()) -> None:
    """Forward and back, exactly, on whole numbers."""
    rng = np.random.default_rng(11)
    plan = R.plan(backend)
    v, w = [whole(rng, (s.size, *values)) for s in (R.source, R.target)]
    assert np.array_equal(np.asarray(plan(v)).reshape(-1, *values), red(matrix, v))
    assert np.array_equal(np.asarray(plan.adjoint(w)).reshape(-1, *values), red(matrix.T, w))


@pytest.mark.parametrize("size", range(2, 41))
def test_windows_of_every_size(size):
    for step, dilation in STEPS:
        for n in (dilation * (size - 1) + 1, dilation * (size - 1) + 4, 200):
            for values in ((), (2,)):
                check_both_ways(
                    relations.window(seg(n), size, step, dilation),
                    window_matrix(n, size, step, dilation),
                    values=values,
                )


@pytest.mark.parametrize("size", [2, 11, 12, 37])
def test_windows_in_jax(size):
    check_both_ways(relations.window(seg(150), size), window_matrix(150, size), "jax")
    check_both_ways(relations.window(seg(150), size, 2, 3), window_matrix(150, size, 2, 3), "jax")


def slices(R) -> int:
    """How many slices are added to reduce once."""
    match R:
        case Spanned(stages=None):
            return len(R.pieces)
        case Spanned(stages=stages):
            return slices(stages)
        case Union(members=members) | Through(members=members):
            return sum([slices(r) for r in members])
        case _:
            return 1


@pytest.mark.parametrize(
    ("size", "most"), [(7, 7), (9, 6), (12, 7), (13, 8), (16, 8), (23, 14), (36, 12), (37, 13), (64, 16)]
)
def test_long_windows_run_in_stages_with_fewer_slices(size, most):
    R = relations.window(seg(1000), size)
    assert isinstance(R, Spanned) and slices(R) <= most and slices(R.converse) <= most
    assert R.stages is None or np.array_equal(R.stages.matrix().toarray(), window_matrix(1000, size))


@pytest.mark.parametrize(
    ("first", "second"),
    [((9, 4), (20, 12)), ((30, 11), (8, 2)), ((13, 13), (13, 13)), ((12, 3, 2), (40, 8, 3, 2)), ((16, 8), (16, 8))],
)
def test_windows_of_two_axes(first, second):
    R = relations.window(seg(first[0]), *first[1:]) * relations.window(seg(second[0]), *second[1:])
    matrix = np.kron(window_matrix(*first), window_matrix(*second))
    for values in ((), (3,)):
        check_both_ways(R, matrix, values=values)
    check_both_ways(R, matrix, "jax")


@given(st.data())
def test_unions_of_slices(data):
    """Strides, shifts and windows between segments, put together."""
    n, m = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 25))
    R, matrix = None, np.zeros((n, m), int)
    for _ in range(data.draw(st.integers(1, 4))):
        start, begin = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, m - 1))
        step, jump = [data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in range(2)]
        one = relations.stride(seg(n), seg(m), start, step, begin, jump)
        pairs = [(start + step * t, begin + jump * t) for t in range(n + m)]
        stop = next(t for t, (x, y) in enumerate(pairs) if not (0 <= x < n and 0 <= y < m))
        matrix += dense(n, m, *np.array(pairs[:stop]).T)
        R = one if R is None else R | one
    assert R is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "SLICE_TILE_NUMBERS", data.draw(st.sampled_from([1, 7, 1 << 16])))
        check_both_ways(R, matrix, values=data.draw(st.sampled_from([(), (2,)])))


def test_unions_of_slices_in_jax():
    shifted = relations.shift(seg(9), 3).then(relations.window(seg(9), 3))
    R = relations.stride(seg(9), seg(7), 8, -2, 1, 1) | shifted | relations.sliced(seg(9), slice(1, 8))
    matrix = (
        dense(9, 7, [8, 6, 4, 2, 0], [1, 2, 3, 4, 5])
        + np.eye(9, k=3, dtype=int) @ window_matrix(9, 3)
        + np.eye(9, 7, k=-1, dtype=int)
    )
    check_both_ways(R, matrix, "jax")


TILED = {
    "window": lambda: relations.window(seg(300), 7),
    "window in stages": lambda: relations.window(seg(300), 24),
    "window of prime size": lambda: relations.window(seg(300), 23),
    "window, strided": lambda: relations.window(seg(300), 5, 3, 2),
    "window of two axes": lambda: relations.window(seg(30), 3) * relations.window(seg(40), 2),
    "union": lambda: relations.shift(seg(300), 1) | relations.shift(seg(300), -1) | relations.diagonal(seg(300)),
    "sum and window": lambda: relations.full(seg(40), unit) * relations.window(seg(300), 3),
    "window and sum": lambda: relations.window(seg(300), 3) * relations.full(seg(40), unit),
    "sum before and behind a window": lambda: (
        relations.full(seg(9), unit) * relations.window(seg(100), 3) * relations.full(seg(9), unit)
    ),
}


@pytest.mark.parametrize("values", [(), (3,)])
@pytest.mark.parametrize("name", TILED)
def test_tiles_do_not_change_the_bits(name, values, monkeypatch):
    R = TILED[name]()
    rng = np.random.default_rng(12)
    v, w = [rng.standard_normal((s.size, *values)) for s in (R.source, R.target)]
    plan = R.plan("numpy")
    monkeypatch.setenv("RIESZ_THREADS", "1")
    wanted = plan(v), plan.adjoint(w)
    tiles = set()
    add = spanned.Piece.add
    monkeypatch.setattr(
        spanned.Piece,
        "add",
        lambda self, total, v, low, high, fresh: (tiles.add((low, high)), add(self, total, v, low, high, fresh))[1],
    )
    for tile in (1, 5, 64, 1000):
        monkeypatch.setattr(tuning, "SLICE_TILE_NUMBERS", tile)
        tiles.clear()
        assert same_bits(plan(v), wanted[0]), f"tiles of {tile}"
        assert len(tiles) > 1 or tile == 1000
        assert same_bits(plan.adjoint(w), wanted[1]), f"adjoint, tiles of {tile}"


# -- pairs by target ---------------------------------------------------------------------------------------


def listed(groups: Groups) -> np.ndarray:
    """The matrix of grouped pairs."""
    index = np.arange(groups.count) if groups.index is None else groups.index
    return dense(
        groups.size, groups.targets, index, np.repeat(np.arange(groups.targets), np.diff(groups.offsets)), groups.times
    )


@st.composite
def pair_lists(draw):
    n, m = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    count = draw(st.integers(0, 60)) if n and m else 0
    rng = np.random.default_rng(draw(st.integers(0)))
    rows, cols = rng.integers(0, max(n, 1), count), rng.integers(0, max(m, 1), count)
    cols = np.minimum(rng.zipf(1.5, count) - 1, max(m - 1, 0)) if draw(st.booleans()) else cols
    by = draw(st.sampled_from(["any", "rows", "cols", "rows then cols", "cols then rows"]))
    keys = {
        "any": None,
        "rows": (rows,),
        "cols": (cols,),
        "rows then cols": (cols, rows),
        "cols then rows": (rows, cols),
    }[by]
    order = np.arange(count) if keys is None else np.lexsort(keys)
    return n, m, rows[order], cols[order], rng.integers(1, 6, count) if draw(st.booleans()) else None


@given(pair_lists())
@examples(3.0)
def test_groups_hold_the_pairs(given_pairs):
    n, m, rows, cols, times = given_pairs
    groups = Groups.of_pairs(n, m, rows, cols, times)
    matrix = dense(n, m, rows, cols, times)
    assert (groups.size, groups.targets, groups.count) == (n, m, len(rows))
    assert groups.offsets[0] == 0 and (np.diff(groups.offsets) >= 0).all()
    assert np.array_equal(listed(groups), matrix)
    assert groups.longest == np.bincount(cols, minlength=1).max(initial=0)
    assert all(a.dtype == np.int32 for a in (groups.offsets, groups.index) if a is not None)
    turned = groups.turned()
    assert np.array_equal(listed(turned), matrix.T)
    assert np.array_equal(listed(turned.turned()), matrix)
    assert turned.offsets.dtype == turned.index.dtype == np.int32
    assert groups.bytes == sum(a.nbytes for a in (groups.offsets, groups.index, groups.times) if a is not None)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2), (2, 7)])
@pytest.mark.parametrize("backend", ["numpy", NUMBA, "jax"])
def test_pairs_that_come_again_are_counted(n, m, backend):
    rng = np.random.default_rng(n)
    rows, cols = rng.integers(0, n, 60), rng.integers(0, m, 60)
    R = relations.edges(seg(n), seg(m), rows, cols)
    assert R.count == 60 and R.groups.count <= n * m and len(R.pairs()[0]) <= n * m
    matrix = np.zeros((n, m))
    np.add.at(matrix, (rows, cols), 1.0)
    assert np.array_equal(R.plan(backend)(np.eye(n)).T, matrix) and np.array_equal(
        R.plan(backend).adjoint(np.eye(m)), matrix
    )


@given(pair_lists())
def test_groups_of_pairs_by_source_are_in_the_order_of_the_source(given_pairs):
    n, m, rows, cols, times = given_pairs
    order = np.argsort(rows, kind="stable")
    groups = Groups.of_pairs(n, m, rows[order], cols[order], None if times is None else times[order])
    index = np.arange(groups.count) if groups.index is None else groups.index
    for low, high in zip(groups.offsets[:-1], groups.offsets[1:], strict=True):
        assert (np.diff(index[low:high]) >= 0).all()


def test_a_sorted_function_needs_no_index():
    assert Groups.of_pairs(5, 3, np.arange(5), np.array([0, 0, 2, 2, 2])).index is None
    assert Groups.of_pairs(5, 3, np.arange(4), np.array([0, 0, 2, 2])).index is not None  # the last source is not there
    assert relations.segments([0, 2, 5]).groups.index is None


def test_pairs_have_a_converse_made_of_the_same_groups():
    R, matrix = fresh_pairs(np.random.default_rng(13), 30, 20, 200, 4)
    assert np.array_equal(R.converse.matrix().toarray(), matrix.T)
    assert R.converse.converse is R


@pytest.mark.parametrize("kind", ["function", "gather", "segments", "pairs, several times", "edges"])
def test_a_converse_is_kept_with_what_was_prepared_for_it(kind):
    """As long as the relation, and without a cycle: what nobody holds is gone at once."""
    rng = np.random.default_rng(16)
    edges = relations.edges(seg(30), seg(30), rng.integers(0, 30, 40), rng.integers(0, 30, 40))
    R = (
        edges
        if kind == "edges"
        else fresh_pairs(rng, 30, 20, 200, 4)[0]
        if "pairs" in kind
        else random_relation(kind, rng, 30, 30)
    )
    del edges
    plan, turned = R.plan(), weakref.ref(R.converse)
    assert plan.adjoint is plan.adjoint and plan.adjoint.relation is R.converse is turned() and R.converse.converse is R
    held, there = R.converse, weakref.ref(R)
    gc.disable()
    try:
        del R, plan
        assert there() is None and held is turned()
        again = held.converse
        assert again.converse is held
        del held, again
        assert turned() is None
    finally:
        gc.enable()


@needs_numba
def test_the_adjoint_of_a_plan_is_prepared_once(monkeypatch):
    from riesz.relations.cpu import numba_loops as compiled

    monkeypatch.setenv("RIESZ_THREADS", "2")
    for name, value in {"PAIR_NUMBERS_PER_THREAD": 1, "GROUPED_TARGET_BYTES": 0}.items():
        monkeypatch.setattr(tuning, name, value)
    used: list[str] = []
    for name in ("scattered", "scattered_strip"):
        loop = getattr(compiled, name)
        monkeypatch.setattr(compiled, name, lambda *args, loop=loop, name=name: (used.append(name), loop(*args))[1])
    plan = relations.gather(seg(5), seg(80), np.random.default_rng(1).integers(0, 5, 80)).plan("numba")
    for _ in range(2):
        plan.adjoint(np.ones(80))
    assert used == ["scattered", "scattered_strip", "scattered_strip"]


# -- in JAX ------------------------------------------------------------------------------------------------

JAX_CASES = {
    "function": lambda rng: random_relation("function", rng, 30, 12),
    "gather": lambda rng: random_relation("gather", rng, 30, 12),
    "pairs, several times": lambda rng: fresh_pairs(rng, 12, 9, 30, 4)[0],
    "segments": lambda rng: random_relation("segments", rng, 30, 9),
    "strict suffix": lambda rng: Triangular(seg(20), seg(20), False, True),
    "window in stages": lambda rng: relations.window(seg(40), 12),
    "side by side": lambda rng: CASES["side by side"][0],
    "through a hub": lambda rng: CASES["through a hub"][0],
    "product": lambda rng: relations.triangular(seg(4)) * random_relation("function", rng, 6, 5),
}
jax_cases = pytest.mark.parametrize("name", JAX_CASES)


@jax_cases
def test_jax_transformations(name):
    """Under jit, vmap, jvp and grad; the derivative is the matrix, its transpose the converse, the second derivative its square."""
    rng = np.random.default_rng(14)
    R = JAX_CASES[name](rng)
    matrix, plan = R.matrix().toarray(), R.plan("jax")
    v, w = jnp.asarray(whole(rng, matrix.shape[0])), jnp.asarray(whole(rng, matrix.shape[1]))
    plan(v)

    @jax.jit
    def every(v, w):
        flat = lambda v: plan(v).reshape(-1)  # noqa: E731
        there = flat(v), jax.jvp(flat, (v,), (2 * v,))[1], jax.jacfwd(flat)(v), jax.jacrev(flat)(v)
        back = jax.grad(lambda v: flat(v) @ w)(v), jax.linear_transpose(flat, v)(w)[0]
        return *there, *back, jax.hessian(lambda v: flat(v) @ flat(v))(v)

    wanted = (
        red(matrix, v),
        red(matrix, 2 * v),
        matrix.T,
        matrix.T,
        red(matrix.T, w),
        red(matrix.T, w),
        2 * matrix @ matrix.T,
    )
    assert [np.array_equal(got, want) for got, want in zip(every(v, w), wanted, strict=True)] == [True] * 7


FIRST = [(name, jax.jit) for name in ("function", "gather", "pairs, several times", "segments", "side by side")]


@pytest.mark.parametrize(("name", "transformed"), [*FIRST, ("gather", jax.vmap), ("gather", jax.jacrev)])
def test_what_is_prepared_under_a_transformation_can_be_used_outside(name, transformed):
    """The first use may be inside of compiled code; the arrays kept for later are arrays."""
    R = JAX_CASES[name](np.random.default_rng(33))
    if name == "side by side":
        f = relations.function(seg(4), seg(3), np.array([2, 0, 2, 2]))
        R = Beside(seg(4) + seg(3), seg(3), (f, relations.full(seg(3), seg(3))), False)
    plan, n = R.plan("jax"), R.source.size
    transformed(plan)(np.ones((2, n)) if transformed is jax.vmap else np.ones(n))
    assert np.array_equal(plan(np.ones(n)), R.in_degrees)
    assert np.array_equal(plan.adjoint(np.ones(R.target.size)), R.out_degrees)


@jax_cases
def test_jax_vmap_is_another_axis(name):
    rng = np.random.default_rng(15)
    R = JAX_CASES[name](rng)
    matrix, plan = R.matrix().toarray(), R.plan("jax")
    many = whole(rng, (matrix.shape[0], 3, 2))
    want = red(matrix, many)
    plan(many)

    @jax.jit
    def every(many):
        flat = lambda v: plan(v).reshape(-1, *v.shape[1:])  # noqa: E731
        once = jax.vmap(flat, in_axes=1, out_axes=1)
        back = jax.vmap(jax.grad(lambda v: (flat(v) ** 2).sum() / 2), in_axes=2, out_axes=2)
        return once(many), jax.vmap(once, in_axes=2, out_axes=2)(many), back(many)

    assert [np.array_equal(got, x) for got, x in zip(every(many), (want, want, red(matrix.T, want)), strict=True)] == [
        True
    ] * 3


def test_jax_takes_what_does_not_move():
    R = JAX_CASES["function"](np.random.default_rng(16))
    plan, n = R.plan("jax"), R.source.size
    fixed = lambda v: (plan(jax.lax.stop_gradient(v)) * plan(v)).sum()  # noqa: E731
    v = jnp.asarray(whole(np.random.default_rng(17), n))
    matrix = R.matrix().toarray()
    assert np.array_equal(jax.grad(fixed)(v), red(matrix.T, red(matrix, v)))
    assert np.array_equal(jax.grad(lambda v: plan(jax.lax.stop_gradient(v)).sum())(v), np.zeros(n))


def test_jax_arrays_of_a_relation_cannot_be_mapped_over():
    R = relations.gather(seg(4), seg(3), [2, 0, 0])
    codes, (there, back), _ = in_jax._both(R)
    with pytest.raises(RelationError, match="only the values it reduces"):
        jax.vmap(lambda index: in_jax._apply(*codes, None, None, index, back, jnp.ones((1, 4, 1))))(
            jnp.stack([there, there])
        )


def test_single_precision_stays_in_jax():
    R = JAX_CASES["segments"](np.random.default_rng(18))
    v = jnp.ones(R.source.size, jnp.float32)
    assert R.plan("jax")(v).dtype == jax.grad(lambda v: R.plan("jax")(v).sum())(v).dtype == jnp.float32


def test_auto_goes_where_the_array_is():
    R = relations.segments([0, 2, 5])
    assert isinstance(R.plan()(jnp.ones(5)), jax.Array)
    assert isinstance(R.plan()(np.ones(5)), np.ndarray)
    assert isinstance(jax.jit(R.plan())(np.ones(5)), jax.Array)
    assert R.plan()(jnp.ones(5)).tolist() == R.plan()([1.0] * 5).tolist() == [2.0, 3.0]


def with_long_groups(rng, kind: str, lengths: list[int]) -> tuple[Relation, np.ndarray]:
    """A relation whose targets have so many pairs."""
    cols = np.repeat(np.arange(len(lengths)), lengths)
    n, m = len(cols), len(lengths)
    if kind == "segments":
        return relations.segments(np.concatenate([[0], np.cumsum(lengths)])), dense(n, m, np.arange(n), cols)
    cols = rng.permutation(cols)
    if kind == "function":
        return relations.function(seg(n), seg(m), cols), dense(n, m, np.arange(n), cols)
    times = rng.integers(1, 4, n) if kind == "pairs, several times" else np.ones(n, int)
    return Pairs(seg(n), seg(m), *[relations.freeze(a) for a in (np.arange(n), cols, times)]), dense(
        n, m, np.arange(n), cols, times
    )


LONG_KINDS = ["segments", "function", "pairs", "pairs, several times"]


@pytest.fixture
def short_pieces(monkeypatch):
    """Groups are cut already after four pairs: many levels of pieces in little code. Gives the lengths of groups around every cut."""
    monkeypatch.setattr(in_jax, "LONG", 4)
    monkeypatch.setattr(tuning, "JAX_TABLE_SIZES", (1, 2, 3, 4))
    return [0, 1, 3, 4, 5, 8, 0, 15, 16, 17, 65, 2, 0]


@pytest.mark.parametrize("kind", LONG_KINDS)
@pytest.mark.parametrize("values", [(), (3,)])
def test_long_groups_are_summed_in_pieces(kind, values, short_pieces):
    rng = np.random.default_rng(19)
    R, matrix = with_long_groups(rng, kind, short_pieces)
    v, w = whole(rng, (R.source.size, *values)), whole(rng, (R.target.size, *values))
    assert np.array_equal(R.plan("jax")(v), red(matrix, v))
    assert np.array_equal(R.plan("jax").adjoint(w), red(matrix.T, w))
    assert np.array_equal(jax.grad(lambda v: (R.plan("jax")(v) * w).sum())(jnp.asarray(v)), red(matrix.T, w))


def test_a_group_of_ten_thousand():
    rng = np.random.default_rng(34)
    R, matrix = with_long_groups(rng, "pairs, several times", [3, 10_000, in_jax.LONG, in_jax.LONG + 1])
    v = whole(rng, R.source.size)
    assert np.array_equal(R.plan("jax")(v), red(matrix, v))


def test_many_groups_of_one_length_are_not_cut(monkeypatch):
    monkeypatch.setattr(in_jax, "MANY", 5)
    even, uneven = [2 * in_jax.LONG] * 5, [in_jax.LONG, in_jax.LONG, in_jax.LONG, in_jax.LONG, 5 * in_jax.LONG]
    for lengths, cut in ((even, False), (even[:4], True), (uneven, True)):
        plan = in_jax.rows(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        assert (plan.long is not None) == cut and (plan.here[1].tolist() == lengths) == (not cut)


def test_tables_have_pieces_of_pieces():
    long = in_jax.LONG
    lengths = [0, 1, long - 1, long, long + 1, 2 * long, 0, 5, 10_000, long**2, long**2 + 1]
    groups = with_long_groups(np.random.default_rng(20), "pairs", lengths)[0].groups
    here, pieces, which, (_, inner, outer, last) = in_jax.tables(groups.offsets, groups.index, None, groups.size)
    assert which.tolist() == [k for k, n in enumerate(lengths) if n > long]
    assert outer.tolist() == [k for k, i in enumerate(which) if lengths[i] > long**2]
    assert pieces is not None and inner is not None and last[1:] == (None, None, None)
    assert max(t.sources.shape[0] for t in (*here[0], *pieces[0], *inner[0])) <= long
    stored = sum(t.sources.size for t in (*here[0], *pieces[0]))
    assert groups.count <= stored <= 1.1 * groups.count  # little room for pairs that are not there


def test_missing_pairs_are_masked_not_multiplied():
    """A group's table has room for pairs it does not have; what stands there may be infinite."""
    R = relations.pairs(seg(7), seg(2), [(i, 0) for i in range(5)] + [(6, 1)])
    v = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan, np.inf])
    assert R.plan("jax")(v).tolist() == [15.0, np.inf]


@pytest.mark.parametrize("kind", ["function", "gather", "segments", "pairs, several times", "edges"])
def test_the_arrays_of_a_plan_are_arguments_of_compiled_code(kind):
    """Nothing that grows with the pairs stands in the code, for any way of summing them."""
    rng, n = np.random.default_rng(22), 800
    edges = relations.edges(seg(n), seg(n), rng.integers(0, n, n), rng.integers(0, n, n))
    R = (
        edges
        if kind == "edges"
        else fresh_pairs(rng, n, 50, n, 3)[0]
        if "pairs" in kind
        else random_relation(kind, rng, n, n)
    )
    codes, (there, back), _ = in_jax._both(R)
    assert sum([a.size for a in jax.tree.leaves((there, back))]) >= n
    v = jnp.ones((1, R.source.size, 1))
    traced = jax.make_jaxpr(lambda there, back, v: in_jax._apply(*codes, None, None, there, back, v))(there, back, v)
    assert not traced.consts
    assert len(traced.jaxpr.invars) == 1 + len(jax.tree.leaves((there, back)))
    code = in_jax._apply.lower(*codes, None, None, there, back, v).as_text()
    assert max([len(line) for line in code.splitlines() if "stablehlo.constant" in line], default=0) < 300


def test_jax_prepares_a_relation_once():
    R, _ = fresh_pairs(np.random.default_rng(23), 9, 8, 20, 4)
    first = in_jax._both(R)
    R.plan("jax")(np.ones(R.source.size))
    R.plan("jax").adjoint(np.ones(R.target.size))
    assert in_jax._both(R) is first and in_jax._both(R.converse)[1][0] is first[1][1]
    assert all(isinstance(a, jax.Array) for a in jax.tree.leaves(first[1]))


# -- the kernel for GPUs, interpreted ----------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch):
    """JAX plans as on a GPU, their kernel run by an interpreter; the list holds the number of targets of each kernel."""
    launched: list[int] = []
    kernel = rows_on_gpu.row_sums

    def row_sums(starts, lengths, *rest):
        launched.append(len(lengths))
        return kernel(starts, lengths, *rest, interpret=True)

    jax.clear_caches()  # a kernel that is compiled already is not launched again
    monkeypatch.setattr(in_jax, "_on_gpu", lambda: True)
    monkeypatch.setattr(rows_on_gpu, "row_sums", row_sums)
    return launched


@pytest.mark.parametrize("kind", ["function", "pairs", "pairs, several times", "segments"])
@pytest.mark.parametrize(("width", "dtype"), [(1, np.float64), (3, np.float32), (16, np.float64), (70, np.float32)])
def test_gpu_kernel_is_the_definition(gpu, kind, width, dtype):
    rng = np.random.default_rng(24)
    R = random_relation(kind, rng, 40, 37)
    v = whole(rng, (40, width), dtype)
    y = R.plan("jax")(v)
    assert gpu == [37] and y.dtype == dtype
    assert np.array_equal(y, red(R.matrix().toarray(), v))


@pytest.mark.parametrize("kind", LONG_KINDS)
def test_gpu_kernel_sums_long_groups_in_pieces(gpu, kind, short_pieces):
    rng = np.random.default_rng(25)
    R, matrix = with_long_groups(rng, kind, short_pieces)
    v = whole(rng, (R.source.size, 3))
    assert np.array_equal(R.plan("jax")(v), red(matrix, v))
    assert (
        gpu[:2] == [len(short_pieces), sum([-(-n // 4) for n in short_pieces if n > 4])] and len(gpu) > 6
    )  # groups, pieces, pieces of those, …


def test_gpu_kernel_on_a_group_of_ten_thousand(gpu):
    rng = np.random.default_rng(35)
    R, matrix = with_long_groups(rng, "pairs, several times", [3, 10_000, in_jax.LONG, in_jax.LONG + 1])
    v = whole(rng, (R.source.size, 2))
    assert np.array_equal(R.plan("jax")(v), red(matrix, v))
    assert gpu == [4, 157 + 2, 2, 3, 1]


def test_gpu_kernel_takes_batches(gpu):
    rng = np.random.default_rng(26)
    R = fresh_pairs(rng, 40, 35, 300, 3)[0]
    matrix = R.matrix().toarray()
    v = whole(rng, (2, 40, 5))
    want = np.stack([red(matrix, x) for x in v])
    assert np.array_equal(in_jax.apply(R, v), want)
    assert np.array_equal(jax.vmap(R.plan("jax"))(v), want)
    assert np.array_equal(
        jax.vmap(jax.grad(lambda x: (R.plan("jax")(x) ** 2).sum() / 2))(v), np.stack([red(matrix.T, y) for y in want])
    )
    assert gpu


def test_gpu_kernel_in_products_and_its_adjoint(gpu):
    rng = np.random.default_rng(27)
    R = random_relation("function", rng, 9, 6) * fresh_pairs(rng, 7, 5, 20, 2)[0]
    assert isinstance(R, Both)
    check_both_ways(R, R.matrix().toarray(), "jax")
    assert gpu


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (lambda: fresh_pairs(np.random.default_rng(28), 5, 4, 9)[0], (0,)),
        (lambda: relations.function(seg(3), seg(4), np.array([0, 3, 3])), (0, 2)),
        (lambda: relations.segments(np.array([0])), ()),
        (lambda: relations.segments(np.array([0, 0, 0])), ()),
        (lambda: relations.segments(np.array([0, 0, 0])), (2,)),
        (lambda: relations.function(seg(0), seg(4), np.zeros(0, int)), (2,)),
        (lambda: fresh_pairs(np.random.default_rng(28), 5, 4, 0)[0], ()),
    ],
    ids=[
        "no values",
        "no values of two axes",
        "no segments",
        "empty segments",
        "empty segments of rows",
        "function from nothing",
        "no pairs",
    ],
)
def test_gpu_kernel_on_nothing(gpu, build, values):
    R = build()
    v = np.ones((R.source.size, *values))
    assert np.array_equal(R.plan("jax")(v), red(R.matrix().toarray(), v))


# -- what plans refuse, and the shapes of what they give ----------------------------------------------------


def test_an_unknown_backend_is_refused():
    with pytest.raises(RelationError, match=r"one of auto, numpy, numba, jax; got 'torch'"):
        relations.full(seg(2), seg(3)).plan("torch")


def test_numba_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(running, "numba_installed", lambda: False)
    with pytest.raises(RelationError, match=r"pip install 'riesz\[numba\]'"):
        relations.full(seg(2), seg(3)).plan("numba")
    R = relations.function(seg(4), seg(2), [0, 1, 1, 1])
    assert "riesz[numba]" in R.plan().explain()
    monkeypatch.setattr(tuning, "COMPILED_PAIR_LOOPS_FROM", 0)
    assert R.plan()(np.ones(4)).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("backend", ["auto", "numpy", NUMBA, "jax"])
@pytest.mark.parametrize(
    ("source", "shape", "wanted"),
    [
        (seg(3), (4,), r"\(3,\)"),
        (seg(3), (), r"\(3,\)"),
        (seg(3), (2, 3), r"\(3,\)"),
        (seg(2) * seg(3), (3, 2), r"\(2, 3\)"),
        (seg(2) * seg(3), (2,), r"\(2, 3\)"),
        (seg(2) + seg(3), (2, 3), r"\(5,\)"),
    ],
)
def test_arrays_of_other_sets_are_refused(source, shape, wanted, backend):
    plan = relations.full(source, seg(2)).plan(backend)
    message = (
        rf"over {source!r}; got an array of shape \({', '.join(map(str, shape))},?\), not {wanted} followed by".replace(
            "+", r"\+"
        )
    )
    with pytest.raises(RelationError, match=message):
        plan(np.ones(shape))


@every_backend
@pytest.mark.parametrize(
    "name", ["full", "function", "gather", "segments", "pairs", "scan", "window", "slice", "side by side"]
)
def test_whole_numbers_become_floats(name, backend):
    R, matrix = CASES[name]
    v = np.arange(R.source.size)
    for given_v in (v, v.astype(np.int8), v > 1):
        y = R.plan(backend)(given_v)
        assert y.dtype.kind == "f" and np.array_equal(y, red(matrix, given_v))


@every_backend
def test_lists_are_arrays(backend):
    assert relations.segments([0, 2, 5]).plan(backend)([1.0, 2.0, 3.0, 4.0, 5.0]).tolist() == [3.0, 12.0]


@every_backend
def test_results_have_the_axes_of_the_target_and_of_the_values(backend):
    X, Y, G, H = seg(6), seg(4), seg(2) * seg(3), seg(2) * seg(2)
    full = lambda source, target: relations.full(source, target).plan(backend)  # noqa: E731
    assert full(X, H)(np.ones(6)).shape == (2, 2)
    assert full(X, H)(np.ones((6, 5))).shape == (2, 2, 5)
    assert full(G, Y)(np.ones((2, 3))).shape == (4,)
    assert full(G, H)(np.ones((2, 3, 7, 1))).shape == (2, 2, 7, 1)
    assert full(G, H)(np.ones((6, 5))).shape == (4, 5)  # flat in, flat out
    assert full(G, Y)(np.ones(6)).shape == (4,)
    assert full(X, Y + Y)(np.ones((6, 2))).shape == (8, 2)
    assert full(Y + Y, X)(np.ones((8, 2))).shape == (6, 2)
    assert full(G, unit)(np.ones((2, 3))).shape == ()
    assert full(G, unit)(np.ones((2, 3, 5))).shape == (5,)
    assert Place(unit, X, 2).plan(backend)(np.ones(())).shape == (6,)
    assert full(unit, G)(np.ones(5)).shape == (2, 3, 5)
    R = relations.function(X, G, [(1, 2), (0, 0), (1, 2), (0, 1), (0, 1), (1, 0)]).plan(backend)
    assert np.array_equal(R(np.arange(6.0)), [[1.0, 7.0, 0.0], [5.0, 0.0, 2.0]])
    assert np.array_equal(R.adjoint(np.arange(6.0).reshape(2, 3)), [5.0, 0.0, 5.0, 1.0, 1.0, 3.0])


# -- what plans say ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "forward", "adjoint"),
    [
        (lambda: relations.function(seg(4), seg(2), [0, 1, 1, 0]), "segmented sum", "gather"),
        (lambda: relations.segments([0, 2, 5]), "segmented sum", "repetition"),
        (lambda: relations.triangular(seg(5)), "running sum", "running sum from the end"),
        (lambda: relations.full(seg(5), seg(1)), "one sum", "one sum, repeated"),
        (lambda: relations.empty(seg(5), seg(1)), "zeros", "zeros"),
        (lambda: relations.diagonal(seg(5)), "nothing to do", "nothing to do"),
        (lambda: relations.point(seg(5), 1), "a slice", "a slice put into zeros"),
        (lambda: relations.sliced(seg(5), slice(1, 3)), "a slice", "a slice put into zeros"),
        (lambda: relations.pairs(seg(3), seg(3), [(0, 1), (0, 1), (2, 0)]), "sparse product", "sparse product"),
        (lambda: relations.edges(seg(3), seg(3), [2, 0, 2], [0, 1, 0]), "sparse product", "sparse product"),
        (lambda: relations.window(seg(9), 3), "3 slices in tiles", "3 slices in tiles"),
        (
            lambda: relations.window(seg(100), 12),
            "a window in stages: (3 slices in tiles) then (4 slices in tiles)",
            "a window in stages: (4 slices in tiles) then (3 slices in tiles)",
        ),
        (
            lambda: relations.triangular(seg(2)) * relations.function(seg(2), seg(2), [1, 1]),
            "(running sum) along the first axes, (segmented sum) along the others",
            "(running sum from the end) along the first axes, (gather) along the others",
        ),
        (
            lambda: CASES["side by side"][0],
            "segmented sum and one sum, repeated",
            "segmented sum and one sum, repeated",
        ),
    ],
)
def test_plans_say_what_runs(build, forward, adjoint):
    R = build()
    assert repr(R.plan()) == f"red_{{{R!r}}}: {forward}, its adjoint: {adjoint}"
    first, *lines = R.plan("numpy").explain().splitlines()
    assert first.startswith(f"red : V^{R.source!r} ⊸ V^{R.target!r}, {int(R.matrix().sum()):,} pairs, ")
    assert lines == [f"forward: {forward}", f"adjoint: {adjoint}", "on: NumPy"]


@needs_numba
def test_plans_say_where():
    R, W = relations.function(seg(4), seg(2), [0, 1, 1, 0]), relations.window(seg(9), 3)
    where = lambda R, backend: R.plan(backend).explain().splitlines()[-1]  # noqa: E731
    assert [where(R, b) for b in ("numpy", "numba", "jax")] == ["on: NumPy", "on: Numba", "on: JAX"]
    assert where(R, "auto").startswith("on: Numba; NumPy below")
    assert [where(W, b) for b in ("numpy", "numba", "jax", "auto")] == [
        "on: NumPy",
        "on: NumPy",
        "on: JAX",
        "on: NumPy",
    ]  # slices need no loops


@needs_numba
def test_auto_uses_compiled_loops_from_the_size_on_that_it_says(monkeypatch):
    from riesz.relations.cpu import numba_loops as compiled

    calls = []
    original = compiled.gathered_short
    monkeypatch.setattr(compiled, "gathered_short", lambda *args: (calls.append(len(args)), original(*args)))
    R = relations.gather(seg(4), seg(10), np.arange(10) % 4)
    v = np.arange(4.0)
    for worth, used in ((11, 0), (10, 1)):
        monkeypatch.setattr(tuning, "COMPILED_PAIR_LOOPS_FROM", worth)
        assert R.plan()(v).tolist() == (np.arange(10) % 4).tolist() and len(calls) == used
    R.plan("numpy")(v)
    assert len(calls) == 1


def bytes_stored(R: Relation) -> int:
    return int(R.plan().explain().splitlines()[0].split(" pairs, ")[1].removesuffix(" bytes stored").replace(",", ""))


@pytest.mark.parametrize(
    "build",
    [
        lambda n: relations.full(seg(n), seg(n)),
        lambda n: relations.empty(seg(n), seg(n)),
        lambda n: relations.diagonal(seg(n)),
        lambda n: relations.triangular(seg(n)),
        lambda n: relations.triangular_strict(seg(n)),
        lambda n: relations.sliced(seg(n), slice(None, None, -2)),
        lambda n: relations.shift(seg(n), 3),
        lambda n: relations.window(seg(n), 30, 2, 5),
        lambda n: relations.point(seg(n), 4),
        lambda n: relations.window(seg(n), 3) * relations.full(seg(n), unit),
        lambda n: relations.window(seg(n), 3) | relations.window(seg(n), 3),
    ],
    ids=["full", "empty", "diagonal", "scan", "strict scan", "slice", "shift", "window", "point", "product", "union"],
)
def test_compact_relations_store_nothing_and_are_planned_without_memory(build):
    """Up to 10⁷ elements: not even one array of that size is made to say what will run."""
    small = build(200)
    small.plan()(np.ones(small.source.size))
    assert bytes_stored(small) == 0  # imports what the first use needs
    tracemalloc.start()
    try:
        R = build(10**7)
        text = repr(R.plan()) + repr(R.plan().adjoint) + R.plan().explain()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text and peak < 10**6


def test_a_scan_of_a_hundred_million_is_planned_without_memory():
    repr(relations.triangular(seg(10)).plan())
    tracemalloc.start()
    try:
        plan = relations.triangular(seg(10**8)).plan()
        assert "running sum from the end" in repr(plan) and plan.adjoint.adjoint.relation is plan.relation
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10**6


def test_stored_pairs_are_counted():
    rng = np.random.default_rng(29)
    n = 1000
    image = rng.integers(0, 7, n)
    R = relations.function(seg(n), seg(7), image)
    assert bytes_stored(R) == image.nbytes
    assert bytes_stored(relations.segments([0, 10, n])) == 3 * 8
    assert bytes_stored(relations.edges(seg(n), seg(7), np.arange(n)[::-1], image)) >= 2 * image.nbytes
    P, _ = fresh_pairs(rng, 50, 40, 300, 3)
    before = bytes_stored(P)
    assert before >= 3 * 300 * 8
    assert P.groups.bytes > 300 * 4 and bytes_stored(P) >= 3 * 300 * 8 + P.groups.bytes
    assert bytes_stored(R * relations.diagonal(seg(3))) >= image.nbytes


# -- memory that is used again -------------------------------------------------------------------------------

LARGE = tuning.REUSED_ARRAY_BYTES // 8  # numbers


def address(a) -> int:
    return np.asarray(a).__array_interface__["data"][0]


def aligned(a: np.ndarray) -> np.ndarray:
    """The part of an array that JAX takes without a copy."""
    return a[-address(a) % 64 // 8 :]


@pytest.fixture
def no_buffers():
    buffers.forget()
    yield
    buffers.forget()


@pytest.mark.parametrize(
    "hold",
    [
        lambda a: a,
        lambda a: a[3:7],
        lambda a: a.reshape(-1, 2).T,
        lambda a: a.view(np.uint8),
        lambda a: memoryview(a),
        lambda a: memoryview(a)[4:8],
        lambda a: np.asarray(memoryview(a)),
        lambda a: np.frombuffer(a, np.uint8),
        lambda a: np.from_dlpack(a),
        lambda a: a[None, 5:6].squeeze(),
        lambda a: np.broadcast_to(a, (2, len(a))),
        lambda a: np.lib.stride_tricks.as_strided(a, (3,), (8,)),
        lambda a: np.ma.masked_array(a, copy=False),
        lambda a: jax.dlpack.from_dlpack(aligned(a)),
        lambda a: a.flat,
        lambda a: a.base,
        lambda a: iter(a),
    ],
    ids=[
        *[
            "itself",
            "slice",
            "reshaped",
            "bytes",
            "memoryview",
            "part of a memoryview",
            "array of a memoryview",
            "frombuffer",
            "dlpack",
            "point",
        ],
        *["broadcast", "strided", "masked", "dlpack in JAX", "flat", "base", "iterator"],
    ],
)
def test_memory_is_not_used_again_while_anyone_holds_it(hold, no_buffers):
    a = buffers.empty((LARGE,), np.dtype(float))
    a.fill(7.0)
    first = address(a)
    held = hold(a)
    if isinstance(held, jax.Array) and held.unsafe_buffer_pointer() != address(aligned(a)):
        pytest.skip("this JAX made a copy")
    del a
    others = [buffers.empty((LARGE,), np.dtype(float)) for _ in range(3)]
    for other in others:
        other.fill(1.0)
    assert first not in [address(o) for o in others]
    if not hasattr(held, "__next__"):
        start = (
            first - address(held) if isinstance(held, np.ndarray) and held.base is None else 0
        )  # the whole buffer begins a little earlier
        assert (np.frombuffer(np.asarray(held).tobytes()[start:][: 8 * LARGE], float) == 7.0).all()
    del held
    gc.collect()
    assert first in [
        address(o) for o in [buffers.empty((LARGE,), np.dtype(float)) for _ in range(4)]
    ]  # one of them, now that it is free


def test_jax_keeps_the_numbers_it_was_given(no_buffers):
    """An array made from a result stays as it is when the result is gone and its memory is used again."""
    plan = relations.triangular(seg(LARGE)).plan("numpy")
    kept = [jnp.asarray(plan(np.full(LARGE, float(k)))) for k in range(1, 5)]
    for k, a in enumerate(kept, 1):
        assert float(a[0]) == k and float(a[-1]) == k * LARGE


def test_memory_of_other_sizes_and_types(no_buffers):
    a = buffers.empty((LARGE * 2,), np.dtype(float))
    first = address(a)
    del a
    small = buffers.empty((LARGE, 2), np.dtype(np.float32))  # half of it
    assert (
        address(small) == first
        and small.shape == (LARGE, 2)
        and small.dtype == np.float32
        and small.flags.c_contiguous
        and small.flags.writeable
    )
    del small
    assert address(buffers.empty((LARGE * 4,), np.dtype(float))) != first  # too small
    tiny = buffers.empty((3,), np.dtype(float))
    assert tiny.base is None  # nothing is kept of small arrays
    assert (
        buffers.empty((LARGE,), object).base is None and buffers.zeros((LARGE,), object)[0] == 0
    )  # numbers are no objects


@pytest.mark.parametrize("count", [LARGE, LARGE + 1, 3 * LARGE + 5])
def test_large_arrays_begin_at_a_cache_line(count, no_buffers):
    held = [buffers.empty((count,), np.dtype(kind)) for kind in (float, np.complex64, float)]
    assert [address(a) % 64 for a in held] == [0, 0, 0]


def test_no_more_is_kept_than_is_said(no_buffers, monkeypatch):
    monkeypatch.setattr(tuning, "KEPT_MEMORY_BYTES", 4 * tuning.REUSED_ARRAY_BYTES)
    held = [buffers.empty((LARGE,), np.dtype(float)) for _ in range(10)]
    for k, a in enumerate(held):
        a.fill(k)
    assert sum(b.nbytes for b, _ in buffers._kept) <= tuning.KEPT_MEMORY_BYTES
    assert all((a == k).all() for k, a in enumerate(held))
    assert buffers.empty((5 * LARGE,), np.dtype(float)).base is None


def test_zeros_are_zeros_in_memory_that_was_used(no_buffers):
    a = buffers.empty((LARGE,), np.dtype(float))
    a.fill(np.nan)
    first = address(a)
    del a
    again = buffers.zeros((LARGE // 2, 2), np.dtype(float))
    assert address(again) == first and not again.any()


def test_results_held_at_the_same_time_do_not_overlap(no_buffers):
    n = LARGE + 40
    for R in (
        relations.window(seg(n), 12),
        relations.triangular(seg(n)),
        relations.shift(seg(n), 1) | relations.shift(seg(n), -1),
    ):
        plan = R.plan("numpy")
        results = [plan(np.full(n, float(k))) for k in range(1, 6)]
        assert all(not np.shares_memory(a, b) for i, a in enumerate(results) for b in results[:i])
        assert all(np.array_equal(y, k * results[0]) for k, y in enumerate(results, 1))


@on_the_processor
def test_results_are_right_in_dirty_memory(backend, no_buffers, monkeypatch):
    """Every kind, with all memory full of what is not a number: nothing that was not written shows."""
    monkeypatch.setattr(tuning, "REUSED_ARRAY_BYTES", 1)
    rng = np.random.default_rng(30)
    for R, matrix in BOTH_WAYS.values():
        v = whole(rng, (R.source.size, 3))
        for shape in {(R.target.size, 3), (R.source.size, 3)}:
            for size in (1, 2, 3):
                buffers.empty((*shape, size), np.dtype(float)).fill(np.nan)
        assert np.array_equal(R.plan(backend)(v).reshape(-1, 3), red(matrix, v)), R


def test_a_result_given_back_to_its_plan(no_buffers):
    """v ← red v: the memory of v is not written while it is read."""
    n = LARGE
    plan = (relations.shift(seg(n), 1) | relations.diagonal(seg(n))).plan("numpy")
    v, want = plan(np.eye(1, n)[0]), np.eye(1, n)[0]
    for _ in range(3):
        v = plan(v)
    assert v[:6].tolist() == [1.0, 4.0, 6.0, 4.0, 1.0, 0.0] and v.sum() == 16 and want[0] == 1


@pytest.mark.parametrize("backend", ["numpy", NUMBA])
def test_many_threads_at_once(backend, no_buffers, monkeypatch):
    """Plans called from many threads, each holding results for a while, all from the same memory."""
    monkeypatch.setattr(tuning, "REUSED_ARRAY_BYTES", 1)
    in_parts(monkeypatch)
    monkeypatch.setenv("RIESZ_THREADS", "3")
    rng = np.random.default_rng(31)
    kinds = ["function", "gather", "pairs, several times", "segments", "scan"]
    made = [random_relation(k, rng, 60, 50) for k in kinds] + [
        relations.window(seg(60), 12),
        relations.shift(seg(60), 1) | relations.shift(seg(60), -2),
    ]
    work = [(R.plan(backend), R.matrix().toarray()) for R in made]
    start = threading.Barrier(8)

    def caller(k: int) -> int:
        mine = np.random.default_rng(k)
        held = []
        start.wait()
        for turn in range(60):
            plan, matrix = work[(turn + k) % len(work)]
            v = whole(mine, (60 if matrix.shape[0] == 60 else matrix.shape[0], 2))
            held.append((plan(v), red(matrix, v)))
            if len(held) > 5:
                held.pop(int(mine.integers(5)))
            if not all(np.array_equal(y, want) for y, want in held):
                return 1
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(caller, range(8))) == [0] * 8


def test_first_use_in_many_threads_at_once():
    """What a relation prepares on first use is prepared right, whoever comes first."""
    rng = np.random.default_rng(32)
    for _ in range(10):
        R, matrix = fresh_pairs(rng, 50, 40, 500, 3)
        v = whole(rng, 50)
        start = threading.Barrier(6)
        call = lambda k, R=R, v=v, start=start: (start.wait(), R.plan("numpy").adjoint.adjoint(v))[1]  # noqa: E731
        with ThreadPoolExecutor(6) as pool:
            assert all(np.array_equal(y, red(matrix, v)) for y in pool.map(call, range(6)))
