"""Pictures of linear maps: what is marked is what the matrix has, as text, with Matplotlib and in a notebook."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function

import riesz as rz
from riesz.show import spy
from riesz.show.display import displays, map_picture

matplotlib.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def reached(L: rz.LinearMap) -> Any:
    """1 at every position of the exact pattern."""
    S = L.to_sparse()
    S.data[:] = 1.0
    return S.toarray()


def binned(mask: Any, rows: list[spy.LeafCells], columns: list[spy.LeafCells]) -> Any:
    """The counts of a mask in the cells, number by number."""
    counts = np.zeros((sum(p.cells for p in rows), sum(p.cells for p in columns)))
    for r in rows:
        for c in columns:
            for i in range(r.size):
                for j in range(c.size):
                    counts[r.first + i * r.cells // r.size, c.first + j * c.cells // c.size] += mask[
                        r.start + i, c.start + j
                    ]
    return counts


def room(rows: list[spy.LeafCells], columns: list[spy.LeafCells]) -> Any:
    return np.outer(
        np.concatenate([[], *[p.capacity for p in rows]]), np.concatenate([[], *[p.capacity for p in columns]])
    )


def random_map(seed: int, inputs: int) -> rz.LinearMap:
    f, args = random_function(seed, inputs)
    return rz.jacobian(f, tuple(range(inputs)))(*args)


# -- counting ------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(3, 40), st.integers(3, 40))
def test_the_counts_in_cells_are_those_of_the_matrix(seed: int, inputs: int, high: int, wide: int):
    L = random_map(seed, inputs)
    rows, columns = spy.parts(L.codomain, high), spy.parts(L.domain, wide)
    seen = spy.picture(L, rows, columns)
    assert sum(p.cells for p in rows) <= high and sum(p.cells for p in columns) <= wide
    assert sum(p.size for p in rows) == L.shape[0] and sum(p.size for p in columns) == L.shape[1]
    if seen.known:
        assert np.allclose(seen.share * room(rows, columns), binned(reached(L), rows, columns))
    assert not np.any((seen.share == 0) & (binned(L.to_dense() != 0, rows, columns) > 0))


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_sampling_marks_nothing_that_is_not_there(seed: int, inputs: int):
    """With hardly any work allowed, cells that are marked are cells with numbers; with enough, all of them are."""
    L = random_map(seed, inputs)
    rows, columns = spy.parts(L.codomain, 12), spy.parts(L.domain, 12)
    exact = spy.picture(L, rows, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spy, "EXACT", -1)
        assert np.array_equal(spy.picture(L, rows, columns).share > 0, exact.share > 0)
        patch.setattr(spy, "WORK", 16)
        assert not np.any((spy.picture(L, rows, columns).share > 0) & (exact.share == 0))


def test_huge_maps_are_seen_without_a_list_of_their_positions(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spy, "WORK", 1 << 19)
    n = 10**7
    u = np.broadcast_to(0.5, (n,))
    looked: list[int] = []
    draw = spy._chosen  # pyright: ignore[reportPrivateUsage]

    def watched(*args: Any) -> Any:
        found = draw(*args)
        looked.append(sum(len(at) for at in found[0]))
        return found

    monkeypatch.setattr(spy, "_chosen", watched)
    seen = spy.picture(L := rz.jacobian(lambda u: u[1:] - u[:-1])(u), *spy.cells(L, 50))
    assert np.all(np.diag(seen.share) > 0) and np.array_equal(seen.share > 0, np.triu(np.tril(seen.share > 0, 1)))
    seen = spy.picture(L := rz.jacobian(lambda u: u + u.sum())(u), *spy.cells(L, 50))
    assert np.allclose(seen.share, 1.0, atol=0.1)
    assert 0 < sum(looked) < 1 << 22


def test_leaves_keep_a_cell_of_their_own_however_small():
    V = rz.direct_sum(rz.R ** rz.seg(10**6), rz.R, rz.R ** rz.seg(0), rz.R ** rz.seg(5))
    found = spy.parts(V, 40)
    assert [(p.name, p.size) for p in found] == [("0", 10**6), ("1", 1), ("3", 5)]
    assert [p.cells for p in found][1:] == [1, 1] and 30 < found[0].cells <= 38


@dataclass
class Pair:
    left: Any
    right: Any


def test_leaves_are_named_by_the_way_to_them():
    value = {"camera": Pair(np.ones(3), [np.ones(2), 1.0]), "points": np.ones((4, 3))}
    assert spy.names(rz.space_of(value)) == ["camera.left", "camera.right.0", "camera.right.1", "points"]
    assert spy.names(rz.R) == [""]
    deep: Any = 1.0
    for _ in range(500):
        deep = (deep, 1.0)
    assert len(spy.names(rz.space_of(deep))) == 501


def test_many_leaves_are_one_part():
    L = rz.jacobian(lambda xs: sum(xs[1:], start=xs[0]))([np.ones(3) for _ in range(200)])
    (part,) = spy.parts(L.domain, 60)
    assert (part.size, part.cells, part.name) == (600, 60, "")
    assert np.array_equal(spy.picture(L, spy.parts(L.codomain, 3), [part]).share > 0, np.ones((3, 60), bool))


# -- as text -------------------------------------------------------------------------------------------------


def picture(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def test_a_tridiagonal_map():
    L = rz.hessian(lambda u: np.sum(np.cosh(u[1:] - u[:-1])))(np.arange(5.0))
    assert L.spy(text=True) == picture("""
        5 × 5, tridiagonal
        ┌───────────┐
        │ ■ ■ · · · │
        │ ■ ■ ■ · · │
        │ · ■ ■ ■ · │
        │ · · ■ ■ ■ │
        │ · · · ■ ■ │
        └───────────┘
    """)
    assert repr(L.spy(text=True)) == str(L.spy(text=True))


def test_a_direct_sum_with_names():
    L = rz.jacobian(lambda p: {"y": p["slope"] * np.array([1.0, 2.0]) + p["shift"], "cost": p["shift"] @ p["shift"]})(
        {"slope": 1.0, "shift": np.ones(2)}
    )
    assert str(L.spy(text=True)).splitlines()[1:] == [
        "      slo shift",
        "     ┌───┬─────┐",
        "   y │ ■ │ ■ · │",
        "     │ ■ │ · ■ │",
        "     ├───┼─────┤",
        "cost │ · │ ■ ■ │",
        "     └───┴─────┘",
    ]


def test_more_numbers_than_squares_are_braille_dots():
    L = rz.jacobian(np.sin)(np.ones(40))
    lines = str(L.spy(text=True)).splitlines()
    assert lines[0] == "40 × 40, diagonal" and lines[1] == "┌" + "─" * 20 + "┐"
    assert lines[2] == "│⠑⢄" + "⠀" * 18 + "│" and lines[-2] == "│" + "⠀" * 18 + "⠑⢄│"


def test_what_is_not_known_is_said():
    L = rz.jacobian(np.cumsum)(np.ones(3))
    assert L.flat is None
    lines = str(L.spy(text=True)).splitlines()
    assert lines[0].endswith("dense or unknown") and lines[2:5] == ["│ ░ ░ ░ │"] * 3


def test_nothing_and_zero():
    assert "no rows or no columns" in rz.jacobian(lambda x: x[:0])(np.ones(3)).spy(text=True)
    for f in (lambda x: x[:0], lambda x: x[:0] * 1.0, lambda x: np.zeros(0)):
        L = rz.jacobian(f)(np.ones(3))
        assert L.spy().get_title().startswith("0 × 3") and ET.fromstring(L._repr_html_()) is not None
    empty = rz.jacobian(lambda x: x)(np.ones(0))
    assert empty.spy() and empty._repr_html_()
    L = rz.jacobian(lambda x, y: (x, y, x[:0]), (0, 1))(np.ones(2), np.ones(0))
    assert str(L.spy(text=True)).splitlines()[3:5] == ["0 │ ■ · │", "  │ · ■ │"]
    assert str(rz.jacobian(lambda x: 0 * x)(np.ones(2)).spy(text=True)).splitlines()[2:4] == ["│ · · │"] * 2


def dots(lines: list[str], kind: str) -> Any:
    """The numbers of a text picture, leaf boundaries left out."""
    rows: list[list[bool]] = []
    for line in lines:
        inside = "".join(line.split("│")[1:-1])
        if kind == "squares":
            rows.append([c == "■" for c in inside if c in "■·"])
        else:
            codes = [ord(c) - 0x2800 for c in inside]
            rows.extend(
                [[bool(c & bit) for c in codes for bit in pair] for pair in ((1, 8), (2, 16), (4, 32), (64, 128))]
            )
    return np.array(rows)


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_a_text_picture_fits_and_shows_the_matrix(seed: int, inputs: int):
    L = random_map(seed, inputs)
    if L.flat is None or not all(L.shape):
        return
    lines = str(L.spy(text=True)).splitlines()
    body = [line for line in lines if line.endswith("│")]
    inner = [line[line.index("│") + 1 : -1] for line in body]
    assert len(lines) <= 30 + 4 and max(len(line) for line in inner) <= 60 and len({len(line) for line in inner}) == 1
    if "■" in "".join(body) or "·" in "".join(body):
        assert np.array_equal(dots(body, "squares"), reached(L) > 0)
    elif len(L.domain.leaves) == len(L.codomain.leaves) == 1 and L.shape[0] <= 120 and L.shape[1] <= 120:
        assert np.array_equal(dots(body, "braille")[: L.shape[0], : L.shape[1]], reached(L) > 0)


# -- with Matplotlib -----------------------------------------------------------------------------------------


def test_axes_show_cells_names_and_lines():
    L = rz.jacobian(lambda d: (d["a"] * 2.0, d["a"].sum() * d["b"]))({"a": np.ones(3), "b": np.ones(2)})
    ax = L.spy()
    shown = ax.images[0].get_array().filled(np.nan)
    assert np.array_equal(np.nan_to_num(shown) > 0, reached(L) > 0)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b"] and [
        t.get_text() for t in ax.get_yticklabels()
    ] == ["0", "1"]
    assert sorted(line.get_xdata()[0] for line in ax.lines if line.get_xdata()[0] == line.get_xdata()[1]) == [2.5]
    assert "5 × 5, 2×2 blocks" in ax.get_title().replace("\n", " ")
    ax.figure.canvas.draw()


def test_axes_of_ones_own_markers_and_title():
    mine = plt.subplots()[1]
    L = rz.jacobian(lambda x: x[::-1])(np.ones(4))
    assert L.spy(ax=mine, markersize=3, title="reversed") is mine
    (line,) = mine.lines
    assert sorted(zip(line.get_ydata(), line.get_xdata(), strict=True)) == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert mine.get_title() == "reversed"
    mine.figure.canvas.draw()


def test_large_maps_have_few_cells():
    ax = rz.jacobian(lambda u: u[1:] * u[:-1])(np.ones(10**6)).spy()
    assert max(ax.images[0].get_array().shape) <= 400
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert labels[0] == "0" and len(labels[-1]) == 7


def test_without_matplotlib_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(rz.errors.RieszError, match=r"pip install 'riesz\[plot\]'"):
        rz.jacobian(np.sin)(np.ones(3)).spy()


# -- in a notebook -------------------------------------------------------------------------------------------


def cells_of(drawing: str) -> Any:
    """The matrix an SVG shows, from its paths."""
    root = ET.fromstring(drawing)
    (width, height) = [int(root.findall("{*}rect")[0].get(k) or 0) for k in ("width", "height")]
    mask = np.zeros((height, width), bool)
    for path in root.findall("{*}g/{*}path"):
        for a, y, w in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path.get("d") or ""):
            mask[int(y), int(a) : int(a) + int(w)] = True
    return mask


@given(st.integers(0, 10**6), st.integers(1, 2))
def test_the_drawing_is_the_picture(seed: int, inputs: int):
    L = random_map(seed, inputs)
    if L.flat is not None and all(L.shape):
        assert np.array_equal(cells_of(L.picture().svg()), spy.picture(L, *spy.cells(L, map_picture.CELLS)).share > 0)


def test_notebook_display():
    X = rng.normal(size=(300, 40))
    shown = rz.hessian(lambda w: np.sum(np.logaddexp(0, X @ w)))(np.zeros(40))._repr_html_()
    assert "<mi>X</mi>" in shown and "40 × 40 · symmetric · dense" in shown and "12,300 numbers stored" in shown
    ET.fromstring(shown)
    blocks = rz.jacobian(lambda x, y: (x * y, x - y), (0, 1))(np.ones(3), np.ones(3))
    shown = blocks._repr_html_()
    ET.fromstring(shown)
    assert blocks._repr_latex_().startswith("$$")


def test_names_are_escaped():
    L = rz.jacobian(lambda d: d["<b>"] * d["&"])({"<b>": np.ones(2), "&": np.ones(2)})
    shown = L._repr_html_()
    assert "<b>" not in shown
    ET.fromstring(shown)


def test_long_programs_show_the_formula_alone():
    def f(x: Any) -> Any:
        for _ in range(displays.STEPS):
            x = np.sin(x)
        return x

    L = rz.jacobian(f)(np.ones(3))
    assert "<math" in L._repr_html_() and "diagonal" not in L._repr_html_()
    assert L.structure.kind == "diagonal"  # now the normal form is there
    assert "diagonal" in L._repr_html_()
