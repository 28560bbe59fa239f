"""Rows added up at their targets: every width, any number of threads, the same bits as adding one after the other   (§2.2.3)."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples

from riesz import relations, seg
from riesz.programs.passes.fusing import SparseProduct
from riesz.relations.cpu import pair_sums as running
from riesz.runtime import pool as threads
from riesz.runtime import tuning

pytest.importorskip("numba")
from riesz.relations.cpu import numba_loops as compiled
from riesz.relations.cpu.groups import Groups
from riesz.relations.cpu.strips import Strips

WIDTHS = [0, 1, 2, 3, 4, 5, 8, 11, 15, 16, 17, 24, 30, 64]


def added(index: np.ndarray, m: int, v: np.ndarray) -> np.ndarray:
    """By definition, row after row."""
    y = np.zeros((m, *v.shape[1:]), v.dtype)
    np.add.at(y, index, v)
    return y


@pytest.mark.parametrize(
    ("width", "targets", "way"),
    [(1, 8, "summed_numbers"), (1, 9, "scattered_strip"), (2, 4, "scattered"), (2, 5, "scattered_strip")],
)
def test_few_targets_are_grouped_or_left_to_one_thread(width, targets, way, looped, monkeypatch):
    monkeypatch.setattr(tuning, "GROUPED_TARGET_BYTES", 64)
    monkeypatch.setattr(tuning, "ONE_THREAD_TARGET_BYTES", 64)
    rng = np.random.default_rng(targets)
    index, v = rng.integers(0, targets, 300), rng.standard_normal((300, width))
    plan = relations.function(seg(300), seg(targets), index).plan("numba")
    assert plan(v).tobytes() == plan(v).tobytes() == added(index, targets, v).tobytes()
    assert looped[0] == "scattered" and set(looped[1:]) == {way}


def placed(v: np.ndarray, start: int) -> np.ndarray:
    """The same numbers so many bytes behind the begin of a cache line."""
    memory = np.empty(v.nbytes + 128, np.uint8)
    found = np.ndarray(v.shape, v.dtype, memory, -memory.ctypes.data % 64 + start)
    found[...] = v
    return found


@pytest.fixture
def looped(monkeypatch) -> list[str]:
    """Which compiled loops were used, on two threads."""
    monkeypatch.setenv("RIESZ_THREADS", "2")
    for name, value in {"PAIR_NUMBERS_PER_THREAD": 1, "GROUPED_TARGET_BYTES": 0, "ONE_THREAD_TARGET_BYTES": 0}.items():
        monkeypatch.setattr(tuning, name, value)
    ways: list[str] = []
    for name in (
        "scattered",
        "scattered_wide",
        "scattered_strip",
        "summed",
        "summed_numbers",
        "chained",
        "gathered",
        "gathered_short",
    ):
        loop = getattr(compiled, name)
        monkeypatch.setattr(compiled, name, lambda *args, loop=loop, name=name: (ways.append(name), loop(*args))[1])
    return ways


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
def test_rows_of_every_width(width, dtype, looped):
    rng = np.random.default_rng(width)
    index = rng.integers(0, 7, 90)
    v = (
        rng.standard_normal((90, width, 2)).view(np.complex128)[..., 0]
        if np.dtype(dtype).kind == "c"
        else rng.standard_normal((90, width))
    )
    v = placed(v.astype(dtype), 16)
    plan = relations.function(seg(90), seg(7), index).plan("numba")
    numbers = width * (2 if v.dtype.kind == "c" else 1)
    once = {"scattered"} if numbers <= tuning.UNROLLED_ROW_NUMBERS else {"scattered_wide"}
    again = {"scattered_strip"} if numbers <= tuning.UNROLLED_ROW_NUMBERS else {"summed"}
    for ways in (once, again):
        looped.clear()
        y = plan(v)
        assert y.dtype == dtype and y.tobytes() == added(index, 7, v).tobytes()
        assert set(looped) == (ways if numbers else set())


@given(st.integers(0, 60), st.integers(1, 9), st.sampled_from(WIDTHS[:-1]), st.integers(1, 3), st.integers(0))
@examples(1.5)
def test_rows_are_added_in_their_order(count, m, width, lead, seed):
    """Also behind a leading axis, and with fewer rows than are fetched ahead."""
    rng = np.random.default_rng(seed)
    index = rng.integers(0, m, count)
    R = relations.diagonal(seg(lead)) * relations.function(seg(count), seg(m), index)
    v = rng.standard_normal((lead, count, width))
    want = np.stack([added(index, m, x) for x in v])
    for _ in range(2):
        assert R.plan("numba")(v).tobytes() == want.tobytes()


@pytest.mark.parametrize(("width", "lead"), [(1, 1), (3, 1), (3, 5), (12, 5), (40, 5)])
def test_any_number_of_threads_adds_the_same(width, lead, monkeypatch):
    used: list[int] = []
    spread = threads.spread
    for name, value in {"PAIR_NUMBERS_PER_THREAD": 1, "GROUPED_TARGET_BYTES": 0, "ONE_THREAD_TARGET_BYTES": 0}.items():
        monkeypatch.setattr(tuning, name, value)
    monkeypatch.setattr(threads, "spread", lambda work, parts: (used.append(len(parts)), spread(work, parts))[1])
    rng = np.random.default_rng(1)
    index = rng.integers(0, 6, 80)
    R = relations.diagonal(seg(lead)) * relations.function(seg(80), seg(6), index)
    v = rng.standard_normal((lead, 80, width))
    want = np.stack([added(index, 6, x) for x in v])
    assert R.plan("numba")(v).tobytes() == want.tobytes()  # the first time nothing is prepared
    for count in (1, 2, 3, 7):
        monkeypatch.setenv("RIESZ_THREADS", str(count))
        used.clear()
        assert R.plan("numba")(v).tobytes() == want.tobytes()
        assert max(used) == count


FAR, NEAR = 0, 1 << 24
CHOICES = [
    *[(2, NEAR, 1, "scattered"), (2, FAR, 1, "scattered"), (20, NEAR, 1, "scattered_wide"), (20, FAR, 1, "summed")],
    *[
        (128, NEAR, 1, "scattered_wide"),
        (129, NEAR, 1, "summed"),
        (1, NEAR, 8, "scattered_strip"),
        (1, FAR, 2, "scattered_strip"),
    ],
    *[
        (16, NEAR, 2, "scattered_strip"),
        (17, NEAR, 2, "summed"),
        (8, FAR, 3, "scattered_strip"),
        (9, FAR, 3, "summed"),
        (20, NEAR, 2, "summed"),
    ],
]


@pytest.mark.parametrize(("width", "near", "count", "way"), CHOICES)
def test_rows_are_scattered_or_grouped(width, near, count, way, looped, monkeypatch):
    monkeypatch.setattr(tuning, "SHARED_CACHE_BYTES", near)
    monkeypatch.setenv("RIESZ_THREADS", str(count))
    rng = np.random.default_rng(2)
    index, v = rng.integers(0, 6, 50), rng.standard_normal((50, width))
    plan = relations.function(seg(50), seg(6), index).plan("numba")
    for _ in range(2):
        looped.clear()
        assert plan(placed(v, 16)).tobytes() == added(index, 6, v).tobytes()
    assert set(looped) == {way}


@pytest.mark.parametrize(
    ("width", "start", "way"),
    [(8, 0, "strip"), (15, 0, "strip"), (16, 0, "groups"), (16, 8, "strip"), (16, 32, "strip")],
)
def test_rows_of_whole_cache_lines_are_grouped(width, start, way, looped):
    rng = np.random.default_rng(3)
    index, v = rng.integers(0, 6, 50), placed(rng.standard_normal((50, width)), start)
    plan = relations.function(seg(50), seg(6), index).plan("numba")
    assert plan(v).tobytes() == plan(v).tobytes() == added(index, 6, v).tobytes()
    assert looped[1:] == [{"strip": "scattered_strip", "groups": "summed"}[way]] * 2


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("pairs", "m"), [(0, 5), (1, 1), (70_000, 3), (65_536, 400), (65_537, 70_000), (140_000, 300_000)]
)
def test_strips(pairs, m, count):
    """Every pair is in the strip of its target, in order; more sources than a chunk has, and more targets than two bytes count."""
    rng = np.random.default_rng(pairs)
    index = (m * rng.random(pairs) ** 3).astype(np.int32)
    strips = Strips(compiled, index, m, count)
    assert (
        strips.lows[0] == 0 and strips.lows[-1] == m and (np.diff(strips.lows) >= 0).all() and strips.bytes >= 4 * pairs
    )
    order, bounds = strips.order[:pairs], [*strips.starts[:, 0], pairs]
    assert np.array_equal(np.sort(order), np.arange(pairs))
    for s in range(count):
        mine = order[bounds[s] : bounds[s + 1]]
        assert (np.diff(mine) > 0).all()
        assert np.array_equal(index[mine], strips.lows[s] + strips.far[bounds[s] : bounds[s + 1]])


@pytest.mark.parametrize("cache", [0, 1 << 30])
@pytest.mark.parametrize(("m", "width"), [(5, 1), (200_000, 1), (200_000, 3), (70_000, 16)])
def test_strips_over_several_chunks(m, width, cache, looped, monkeypatch):
    monkeypatch.setattr(tuning, "CORE_CACHE_BYTES", cache)
    rng = np.random.default_rng(m)
    index, v = rng.integers(0, m, 150_000), placed(rng.standard_normal((150_000, width)), 16)
    plan = relations.function(seg(150_000), seg(m), index).plan("numba")
    assert plan(v).tobytes() == plan(v).tobytes() == added(index, m, v).tobytes()
    assert looped == ["scattered", "scattered_strip", "scattered_strip"]


def test_computed_positions_go_the_same_way(looped):
    rng = np.random.default_rng(3)
    index, v = rng.integers(0, 6, 50), rng.standard_normal((50, 3))
    token = running.backend.set("numba")
    try:
        assert running.add_rows(index, 6, v).tobytes() == added(index, 6, v).tobytes()
        with pytest.raises(IndexError, match="outside 0 to 5"):
            running.add_rows(index + 1, 6, v)
    finally:
        running.backend.reset(token)
    assert looped == ["scattered"]


@pytest.mark.parametrize("width", [1, 2, 10, 16, 17, 40, 130])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["sorted by target", "in any order", "on threads"])
def test_weighed_sums_are_those_of_three_steps(width, dtype, order, looped, monkeypatch):
    """A gather, a product and a sum as one: sorted pairs by groups, others in place, the second time on threads, with the same bits."""
    rng = np.random.default_rng(width)
    monkeypatch.setenv("RIESZ_THREADS", "1" if order == "in any order" else "2")
    index, source, weights = rng.integers(0, 7, 90), rng.integers(0, 11, 90), rng.standard_normal(90).astype(dtype)
    index = np.sort(index) if "sorted" in order else index
    op = SparseProduct(relations.gather(seg(11), seg(90), source), relations.function(seg(90), seg(7), index))
    v = rng.standard_normal((11, width)).astype(dtype)
    token = running.backend.set("numba")
    try:
        y = op.run(v, weights)
        looped.clear()
        again = op.run(v, weights)
        running.backend.set("numpy")
        plain = op.run(v, weights)
    finally:
        running.backend.reset(token)
    assert (
        y.dtype == dtype and y.tobytes() == again.tobytes() == added(index, 7, weights[:, None] * v[source]).tobytes()
    )
    assert np.allclose(plain, y, rtol=1e-5)
    (way,) = set(looped)
    place = {
        "in any order": v[0].nbytes <= tuning.SCATTERED_ROW_BYTES,
        "on threads": v[0].nbytes <= 64,
        "sorted by target": False,
    }[order]
    assert way.startswith("scattered" if place else "summed") and (way == "scattered_strip") == (
        place and order == "on threads"
    )


def test_callers_with_different_numbers_of_threads(monkeypatch):
    """Strips for two threads never meet the sources of three, whoever made what in between."""
    rng = np.random.default_rng(5)
    index, source, weights, v = (
        rng.integers(0, 50, 700),
        rng.integers(0, 40, 700),
        rng.standard_normal(700),
        rng.standard_normal((40, 2)),
    )
    op = SparseProduct(relations.gather(seg(40), seg(700), source), relations.function(seg(700), seg(50), index))
    want = added(index, 50, weights[:, None] * v[source]).tobytes()
    mine = threading.local()
    monkeypatch.setattr(threads, "count", lambda: getattr(mine, "count", 2))

    def call(k: int) -> bool:
        mine.count = 2 + k % 3
        token = running.backend.set("numba")
        try:
            return op.run(v, weights).tobytes() == want
        finally:
            running.backend.reset(token)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(200)))


@pytest.mark.parametrize(("count", "width"), [(0, 3), (1, 3), (5, 0), (0, 0)])
def test_weighed_sums_of_nothing(count, width):
    op = SparseProduct(
        relations.gather(seg(4), seg(count), np.zeros(count, int)),
        relations.function(seg(count), seg(3), np.full(count, 2)),
    )
    token = running.backend.set("numba")
    try:
        y = op.run(np.ones((4, width)), np.full(count, 2.0))
    finally:
        running.backend.reset(token)
    assert y.tobytes() == added(np.full(count, 2), 3, np.full((count, width), 2.0)).tobytes()


GROUPED = [
    (1, 0, "summed_numbers"),
    (1, 99, "chained"),
    (2, 99, "chained"),
    (3, 0, "summed"),
    (4, 99, "chained"),
    (5, 99, "summed"),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize(("width", "few", "way"), GROUPED)
def test_short_and_long_groups_are_added_in_their_order(width, few, way, dtype, looped, monkeypatch):
    """Empty groups, groups of one pair, several times, with weights, behind a leading axis, in any number of parts."""
    monkeypatch.setattr(tuning, "CHAINED_PAIRS_PER_TARGET", few)
    rng = np.random.default_rng(width)
    owners = np.repeat(np.arange(23), rng.choice([0, 0, 1, 1, 2, 3, 40], 23))
    count, n = len(owners), 31
    offsets = np.searchsorted(owners, np.arange(24)).astype(np.int32)
    times, weights, order = rng.integers(1, 4, count), rng.standard_normal(count).astype(dtype), rng.permutation(count)
    if dtype is np.complex128 and (
        way == "summed_numbers" or 2 * width > tuning.CHAINED_ROW_NUMBERS
    ):  # two numbers each
        way = "summed"
    for index in (None, rng.integers(0, n, count).astype(np.int32)):
        v = rng.standard_normal((2, count if index is None else n, width)).astype(dtype)
        if dtype is np.complex128:
            v = v * (1 + 2j)
        else:
            v[0, 3], v[0, 7], v[1, 5], v[1, 2] = np.nan, -np.inf, -0.0, 0.0
        once = Groups(v.shape[1], offsets, index)
        cases = [((once,), np.ones(count)), ((Groups(v.shape[1], offsets, index, times),), times)]
        if dtype is not np.complex128:  # weights are real
            cases += [((once, weights), weights), ((once, weights, order), weights[order])]
        for (groups, *weighed), each in cases:
            want = np.zeros((2, 23, width), dtype)
            with np.errstate(invalid="ignore"):
                np.add.at(
                    want, (slice(None), owners), (v if index is None else v[:, index]) * each.astype(dtype)[:, None]
                )
            for some in "123":
                monkeypatch.setenv("RIESZ_THREADS", some)
                looped.clear()
                y = running.group_sum(compiled, groups, v, *weighed)
                assert (
                    np.array_equal(np.isnan(y), np.isnan(want))
                    and np.where(np.isnan(y), 0, y).tobytes() == np.where(np.isnan(want), 0, want).tobytes()
                )
                assert set(looped) == {way}


@pytest.mark.parametrize("cache", [0, 1 << 30])
@pytest.mark.parametrize(
    ("dtype", "width"),
    [(np.float64, 1), (np.float32, 1), (np.float64, 3), (np.float64, 8), (np.float64, 9), (np.complex128, 1)],
)
def test_gathers_from_near_and_far(dtype, width, cache, looped, monkeypatch):
    monkeypatch.setattr(tuning, "CORE_CACHE_BYTES", cache)
    rng = np.random.default_rng(5)
    v = rng.standard_normal((40, width)).astype(dtype)
    v = v * (1 + 2j) if dtype is np.complex128 else v
    fetched: list[bool] = []
    short = compiled.gathered_short
    monkeypatch.setattr(
        compiled, "gathered_short", lambda *args: (fetched.append(args[4] is not None), short(*args))[1]
    )
    for index, far in (
        (rng.integers(0, 40, 300), True),
        (np.sort(rng.integers(0, 40, 300)), False),
        (rng.integers(0, 40, 7), True),
    ):
        looped.clear()
        fetched.clear()
        assert np.array_equal(relations.gather(seg(40), seg(len(index)), index).plan("numba")(v), v[index])
        assert set(looped) == {"gathered" if width == 9 else "gathered_short"}
        assert set(fetched) == (set() if width == 9 else {far and not cache})
