"""String diagrams: well-formed, the right wires, the adjoint mirrored, repetition folded, bounded, and in words."""

import itertools
import json
import re
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import riesz as rz
from riesz.errors import SpaceError
from riesz.show.diagrams.layered import text_width
from riesz.spaces.contraction_order import path

rng = np.random.default_rng(0)
SVG = "{http://www.w3.org/2000/svg}"


def normal(*shape):
    return rng.normal(size=shape)


A, B, C, X = normal(30, 40), normal(40, 50), normal(50, 8), normal(60, 5)
P, Q, u, v = normal(6, 5), normal(7, 4), normal(20), normal(30)
idx = np.array([0, 2, 2, 1, 5])
src, dst = rng.integers(0, 20, (2, 50))
W = normal(5, 5)


def attention(q, k, w):
    p = np.exp(q @ k.T / 2.0)
    return (p / p.sum(1, keepdims=True)) @ w


def message(h):
    found = np.zeros((20, 8))
    np.add.at(found, dst, h[src])
    return np.tanh(found @ np.ones((8, 8)))


def recurrent(x):
    return rz.loop(lambda h, t: (np.tanh(W @ h + t), h), np.zeros(5), x)[1]


MAPS = {
    "chain": lambda: rz.jacobian(lambda x: A @ np.tanh(B @ np.tanh(C @ x)))(normal(8)),
    "diagonal": lambda: rz.jacobian(np.tanh)(normal(100)),
    "kronecker": lambda: rz.jacobian(lambda M: P @ M @ Q.T)(normal(5, 4)),
    "low rank": lambda: rz.jacobian(lambda x: u * np.sin(v @ x))(normal(30)),
    "logistic": lambda: rz.hessian(lambda w: np.sum(np.logaddexp(0, X @ w)))(np.zeros(5)),
    "quadratic form": lambda: rz.jacobian(lambda x: x @ (A @ A.T) @ x)(normal(30)),
    "batch": lambda: rz.jacobian(lambda M: np.einsum("bij,bj->bi", np.ones((3, 4, 5)), M) ** 2)(normal(3, 5)),
    "weighted trace": lambda: rz.jacobian(lambda M: np.trace(M @ P @ P.T))(normal(6, 6)),
    "sum of all": lambda: rz.jacobian(np.sum)(normal(3, 4)),
    "spread": lambda: rz.jacobian(lambda x: np.ones((3, 4)) * x)(2.0),
    "number": lambda: rz.jacobian(np.sin)(2.0),
    "gather and scatter": lambda: rz.jacobian(lambda x: np.bincount(idx, x[idx] ** 2, 9))(normal(9)),
    "stencil": lambda: rz.jacobian(lambda x: x[2:] - 2 * x[1:-1] + x[:-2])(normal(100)),
    "plane stencil": lambda: rz.jacobian(lambda x: (x[1:, :-1] - x[:-1, 1:]) ** 2)(normal(10, 12)),
    "scan": lambda: rz.jacobian(lambda x: np.cumsum(np.sin(x)))(normal(100)),
    "blocks": lambda: rz.linearize(lambda a, b: (A @ b[:40] + a, b * 2), normal(30), normal(60))[1],
    "attention": lambda: rz.linearize(attention, normal(7, 4), normal(6, 4), normal(6, 3))[1],
    "messages": lambda: rz.jacobian(message)(normal(20, 8)),
    "loop": lambda: rz.linearize(recurrent, normal(10, 5))[1],
    "names": lambda: rz.linearize(lambda d: {"r": np.sum(d["a"]) * d["b"]}, {"a": normal(4), "b": normal(6)})[1],
    "Fourier": lambda: rz.jacobian(lambda x: np.fft.rfft(x).real)(normal(8)),
    "solve": lambda: rz.jacobian(lambda b: np.linalg.solve(W, b))(normal(5)),
    "nothing": lambda: rz.jacobian(lambda x: 0.0 * x[:0])(normal(3)),
    "zero": lambda: rz.jacobian(lambda x: np.zeros(3) * np.floor(x))(normal(3)),
}


@pytest.fixture(scope="module")
def maps():
    return {name: make() for name, make in MAPS.items()}


def well_formed(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.tag == SVG + "svg" and root[0].tag == SVG + "title" and root[1].tag == SVG + "desc"
    assert root[0].text and root[1].text
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r"<(title|desc|text).*?</\1>", "", svg))
    assert not re.search('[:"]#', svg), "inherits its colours"
    return root


@pytest.mark.parametrize("name", MAPS)
def test_every_kind_of_map_has_a_diagram(maps, name):
    d = maps[name].diagram()
    well_formed(d.svg())
    assert "NaN" not in json.dumps(d.json())
    (panel,) = d.json()["panels"]
    kinds = [n["kind"] for n in panel["nodes"]]
    assert kinds.count("input") == len(maps[name].domain.leaves)
    assert kinds.count("output") == len(maps[name].codomain.leaves)
    well_formed(maps[name].diagram(form="steps").svg())
    for n in panel["nodes"]:  # inside the picture, and apart within a layer
        assert n["x"] - n["w"] / 2 >= 0 and n["x"] + n["w"] / 2 <= panel["width"] + 0.1
        assert n["y"] - n["h"] / 2 >= -0.1 and n["y"] + n["h"] / 2 <= panel["height"] + 0.1
    boxes = [(n["x"], n["y"], n["w"], n["h"]) for n in panel["nodes"]]
    for i, (x, y, w, h) in enumerate(boxes):
        for p, q, r, s in boxes[:i]:
            assert abs(x - p) >= (w + r) / 2 - 0.1 or abs(y - q) >= (h + s) / 2 - 0.1


@pytest.mark.parametrize("name", MAPS)
def test_the_adjoint_is_the_mirror_image(maps, name):
    L = maps[name]
    if L.H is L:
        pytest.skip("symmetric")
    there, back = [M.diagram().json()["panels"][0] for M in (L, L.H)]
    width = there["width"]
    assert back["width"] == width and back["height"] == there["height"]
    turned = {"input": "output", "output": "input", "copy": "sum", "sum": "copy"}
    for a, b in zip(there["nodes"], back["nodes"], strict=True):
        assert (a["label"], a["data"], a["y"], a["w"]) == (b["label"], b["data"], b["y"], b["w"])
        assert b["x"] == pytest.approx(width - a["x"]) and b["kind"] == turned.get(a["kind"], a["kind"])
    for a, b in zip(there["wires"], back["wires"], strict=True):
        assert (a["from"], a["to"], a["name"]) == (b["to"], b["from"], b["name"])
        np.testing.assert_allclose([(width - x, y) for x, y in a["points"]], b["points"][::-1])
    assert L.H.H.diagram().svg() == L.diagram().svg()


def contracted(L):
    """The matrix of a diagram without sums, copies and relations: its wires summed over by einsum."""
    (panel,) = L.diagram().json()["panels"]
    nodes, wires = panel["nodes"], panel["wires"]
    at = {n["id"]: {} for n in nodes}
    for k, w in enumerate(wires):
        at[w["from"]].setdefault(w["axes"][0], []).append(k)
        at[w["to"]].setdefault(w["axes"][1], []).append(k)
    name = list(range(len(wires)))
    for n in nodes:
        if n["kind"] in ("dot", "scale"):  # all wires of it are one index
            mine = [k for ks in at[n["id"]].values() for k in ks if wires[k]["size"] > 1]
            name = [
                name[mine[0]] if mine and name[k] in [name[m] for m in mine] else name[k] for k in range(len(wires))
            ]
    operands, ends, factor = [], {"input": [], "output": []}, 1.0
    for n in nodes:
        mine = [name[k] for axis in sorted(at[n["id"]]) for k in at[n["id"]][axis]]
        if n["kind"] in ends:
            ends[n["kind"]] += mine
        elif n["kind"] == "scale":
            number = n["label"].replace("−", "-")
            known = re.fullmatch(r"-?[\d.]+", number)
            factor *= float(number) if known else float(L.values.slots[int(n["data"])])
        elif n["kind"] == "array":
            value = np.asarray(L.values.slots[int(n["data"])])
            operands += [
                value.reshape([wires[k]["size"] for axis in sorted(at[n["id"]]) for k in at[n["id"]][axis]]),
                mine,
            ]
        else:
            assert n["kind"] == "dot"
    out = [*ends["output"], *ends["input"]]
    free = list(dict.fromkeys(out))
    have = [k for k in free if any([k in ks for ks in operands[1::2]])]
    found = factor * np.einsum(*operands, have, optimize=True)
    found = found.reshape([wires[k]["size"] if k in have else 1 for k in free])
    matrix = np.zeros([wires[k]["size"] for k in out])
    where = np.indices([wires[k]["size"] for k in free], sparse=True)
    matrix[tuple([where[free.index(k)] for k in out])] = found
    return matrix.reshape(L.shape)


PURE = ["chain", "diagonal", "kronecker", "low rank", "logistic", "batch", "quadratic form"]


@pytest.mark.parametrize("name", PURE)
def test_the_wires_say_what_the_matrix_is(maps, name):
    np.testing.assert_allclose(contracted(maps[name]), maps[name].to_dense(), atol=1e-12)


def kinds(d):
    return [n["kind"] for p in d.json()["panels"] for n in p["nodes"]]


def test_kinds_of_nodes(maps):
    assert kinds(maps["diagonal"].diagram()).count("dot") == 1
    assert kinds(maps["kronecker"].diagram()) == ["input", "array", "array", "output"]
    assert kinds(maps["gather and scatter"].diagram()).count("relation") == 2
    assert kinds(maps["stencil"].diagram()).count("relation") == 3
    assert {"copy", "sum"} <= set(kinds(maps["stencil"].diagram()))
    labels = [n["label"] for n in maps["gather and scatter"].diagram().json()["panels"][0]["nodes"]]
    assert "[idx]" in labels and "idx ↦" in labels
    assert "linear" in kinds(maps["Fourier"].diagram())


def test_wires_are_wide_by_the_logarithm_of_their_size():
    from riesz.show.diagrams.svg_drawing import thickness

    steps = np.diff([thickness(2**k) for k in range(8)])
    np.testing.assert_allclose(steps, steps[0])
    assert thickness(10**30) < 10


def test_hostile_names_are_text():
    name = '</title><script>alert("x")</script>&\x00\ud800'
    d = rz.linearize(lambda x: {name: x[name] ** 2}, {name: np.ones(3)})[1].diagram()
    root = well_formed(d.svg())
    assert not list(root.iter(SVG + "script")) and "<script" not in d.svg()


def layers(n):
    weights = [normal(5, 5) for _ in range(n)]

    def f(x):
        for w in weights:
            x = np.tanh(w @ x)
        return x

    return f


def test_repetition_is_drawn_once():
    D = rz.derive(layers(1000), rz.R**5)
    for d in (D.value.diagram(), D.derivative.diagram()):
        (panel,) = d.json()["panels"]
        (frame,) = panel["frames"]
        assert frame["times"] == 1000 and "each on what the one before gave" in frame["words"]
        assert len(panel["nodes"]) <= 6 and "×1,000" in d.svg()
    assert any([n["label"].endswith(", …") for n in panel["nodes"]])  # another array each time
    back = rz.derive(lambda x: np.sum(layers(50)(x)), rz.R**5).adjoint.diagram()
    assert len(back.json()["panels"][0]["frames"]) == 1


def test_what_is_done_side_by_side_is_drawn_once_too():
    D = rz.derive(lambda x: np.stack([np.sin(x[i]) * x[i] for i in range(300)]), rz.R**300)
    (panel,) = D.value.diagram().json()["panels"]
    assert [(f["times"], "side by side" in f["words"]) for f in panel["frames"]] == [(300, True)]
    assert len(panel["nodes"]) < 12


def test_few_steps_are_drawn_as_they_are():
    (panel,) = rz.derive(layers(4), rz.R**5).value.diagram().json()["panels"]
    assert not panel["frames"] and len(panel["nodes"]) == 10


def test_the_middle_of_long_programs_is_left_out():
    def f(x):
        for k in range(400):
            kind = (k * k * 7919 + k) % 11
            x = [np.sin, np.cos, np.tanh, np.exp, np.abs, np.sqrt, np.arctan, np.square, np.cbrt, np.sinh, np.log1p][
                kind
            ](x) + float(k % 3) * x
        return x

    D = rz.derive(f, rz.R**3)
    d = D.value.diagram(limit=30)
    (panel,) = d.json()["panels"]
    assert sum([n["kind"] not in ("copy", "input", "output", "scale") for n in panel["nodes"]]) <= 31
    (rest,) = [n for n in panel["nodes"] if n["kind"] == "rest"]
    assert "more steps" in rest["label"]
    well_formed(d.svg())


def test_long_programs_take_linear_time():
    def chain(n):
        f = rz.sin
        for k in range(n):
            f = (rz.cos if k % 7 in (0, 3) else rz.tanh) @ f
        return f.at(rz.R)

    spent = []
    for n in (2_000, 8_000):
        term = chain(n)
        start = time.perf_counter()
        well_formed(term.diagram().svg())
        spent.append(time.perf_counter() - start)
    assert spent[1] < 16 * max(spent[0], 0.02)


def test_layout_of_many_nodes_without_folding():
    (panel,) = rz.derive(layers(300), rz.R**5).value.diagram(limit=10_000).json()["panels"]
    assert panel["frames"]  # repetition is folded whatever the limit


@pytest.mark.parametrize("columns", [1, 1000])
def test_hulls_are_the_order_of_contraction(maps, columns):
    L = maps["chain"]
    d = L.diagram(columns=columns)
    hulls = d.json()["panels"][0]["hulls"]
    assert [h["number"] for h in hulls] == [1, 2, 3, 4, 5]  # five factors and a vector
    for small, large in itertools.pairwise(hulls):
        assert set(small["nodes"]) <= set(large["nodes"]) and small["level"] < large["level"]
    total = sum([int(h["cost"].replace(",", "")) for h in hulls])
    labels, sizes = [(0, 1), (1,), (1, 2), (2,), (2, 3)], {0: 30, 1: 40, 2: 50, 3: 8}
    if columns == 1:
        assert total == path([*labels, (3,)], (0,), sizes).flops
    else:
        assert total == path(labels, (0, 3), sizes).flops + 1000 * 2 * 30 * 8
    assert f"{columns:,} right-hand side" in d.title and " operations" in d.title
    well_formed(d.svg())


def test_a_derivation_shows_derivative_and_adjoint():
    D = rz.derive(lambda W, x: np.tanh(W @ x), rz.R ** (rz.seg(2) * rz.seg(3)), rz.R**3)
    d = D.diagram()
    first, second = d.json()["panels"]
    assert (first["heading"], second["heading"]) == ("f′", "f′*")
    assert [a["y"] for a in first["nodes"]] == [b["y"] for b in second["nodes"]]
    assert {"dW", "dx", "W", "x"} <= {n["label"] for n in first["nodes"]}
    assert any(["a = 1 − y²" in line for line in first["where"]])
    assert D.adjoint.diagram().json()["panels"][0]["nodes"] == second["nodes"]
    weighted = rz.derive(rz.total, (rz.R**3).weighted(np.array([1.0, 2.0, 4.0]))).diagram()
    assert len(weighted.panels) == 2
    well_formed(d.svg())


def test_nodes_carry_the_ids_of_their_slots(maps):
    L = maps["logistic"]
    found = [n for n in L.diagram().json()["panels"][0]["nodes"] if n["kind"] == "array"]
    assert len({n["data"] for n in found if n["label"] == "X"}) == 1  # X and its transpose are one array
    formula = ET.fromstring(L.simplify().mathml(ids=True))
    assert {x.get("data-id") for x in formula.iter() if x.get("data-id")} == {n["data"] for n in found}
    root = ET.fromstring(L.diagram().svg())
    ids = {g.get("data-id") for g in root.iter(SVG + "g") if g.get("class") == "rz-array"}
    assert ids == {n["data"] for n in found}


def test_words_and_files(maps, tmp_path):
    d = maps["chain"].diagram()
    assert "Array C: in" in d.words and d.words in ET.fromstring(d.svg())[1].text
    maps["chain"].diagram().save(tmp_path / "chain.svg")
    text = (tmp_path / "chain.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text and ET.fromstring(text).tag == SVG + "svg"


def test_mistakes_are_named(maps):
    with pytest.raises(SpaceError, match="'normal'"):
        maps["chain"].diagram(form="other")
    with pytest.raises(SpaceError, match="at least 3"):
        maps["chain"].diagram(limit=1)
    with pytest.raises(SpaceError, match=r"\.at\(V\)"):
        rz.sin.diagram() if not hasattr(rz.sin, "domain") else rz.total.diagram()


def test_maps_at_traced_points_have_diagrams():
    seen = []

    def f(x):
        L = rz.jacobian(lambda y: np.sin(y) * A[0, :3])(x)
        seen.append(L.diagram().svg())
        return np.sum(L(x))

    rz.function(f)(np.ones(3))
    rz.grad(f)(np.ones(3))
    for svg in seen:
        well_formed(svg)


def boxes(d):
    """What takes room in a panel: shapes of nodes, and what is written on wires."""
    for p in d.panels:
        shapes = {n: (a.x - a.w / 2, a.y - a.h / 2, a.x + a.w / 2, a.y + a.h / 2) for n, a in enumerate(p.layout.nodes)}
        yield p, {n: box for n, box in shapes.items() if p.graph.nodes[n].kind not in ("input", "output", "next")}


def meet(a, b):
    return min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1])


@pytest.mark.parametrize("name", [*MAPS, "repeated"])
def test_nothing_is_on_top_of_something_else(maps, name):
    """No two boxes, no word on a wire and a box; each word is above a straight piece of its wire; a frame cuts no box;
    what is written is at least 10 pixels high."""
    L = rz.jacobian(layers(1000))(normal(5)) if name == "repeated" else maps[name]
    for d in (L.diagram(), L.H.diagram()):
        for p, found in boxes(d):
            words = {}
            for k, label in p.labels.items():
                points = p.layout.wires[k][:: -1 if p.mirrored else 1]
                wide = text_width(label, 11.0) * (-1 if p.mirrored else 1)
                assert points[0][1] == points[1][1] and abs(points[1][0] - points[0][0]) >= abs(wide) + 3.0
                ends = sorted([points[1][0], points[1][0] - wide])
                words[k] = (ends[0], points[0][1] - 12.0, ends[1], points[0][1] - 2.0)
            things = [*found.items(), *[(f"wire {k}", box) for k, box in words.items()]]
            assert [(a, b) for (a, x), (b, y) in itertools.combinations(things, 2) if meet(x, y)] == []
            for f in p.graph.frames:
                inside = [found[n] for n in f.nodes if n in found]
                frame = (
                    *[min(c) - 5 for c in list(zip(*inside, strict=True))[:2]],
                    *[max(c) + 5 for c in list(zip(*inside, strict=True))[2:]],
                )
                assert [n for n, box in found.items() if n not in f.nodes and meet(box, frame)] == []
        assert min([float(s) for s in re.findall(r'font-size="([\d.]+)"', d.svg())]) >= 10.0


def test_inputs_keep_their_order_where_that_costs_no_crossing():
    d = rz.derive(lambda x, W, b: np.tanh(W @ x + b), rz.R**3, rz.R ** (2, 3), rz.R**2).derivative.diagram()
    nodes = [n for n in d.json()["panels"][0]["nodes"] if n["kind"] == "input"]
    assert [n["label"] for n in sorted(nodes, key=lambda n: n["y"])] == ["dx", "dW", "db"]
