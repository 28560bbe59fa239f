"""What notebooks show: for every object a user holds the right keys, HTML that is well-formed XML with MathML and
without dollar signs, and nothing in a name that gets out."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import riesz as rz
from riesz.show.display.display_objects import Display

A, X = np.arange(6.0).reshape(2, 3), np.random.default_rng(0).normal(size=(20, 4))
idx = np.array([0, 2, 2, 1])
HOSTILE = '</pre></td><script>alert("$$x$$")</script>&\x00\\ud800'
V = rz.R ** (rz.seg(2) * rz.seg(3))
MATH = "{http://www.w3.org/1998/Math/MathML}math"


def layer(W, x):
    return np.tanh(W @ x)


def fit():
    t = np.linspace(0.0, 1.0, 20)
    return rz.gauss_newton(lambda p: p["a"] * np.exp(p["k"] * t) - 2.0 * np.exp(-t), {"a": 1.0, "k": 0.0})


def hessian():
    return rz.hessian(lambda w: np.sum(np.logaddexp(0, X @ w)))(np.zeros(4))


def compiled():
    return rz.compile(rz.grad(lambda x, y: x * y**2), 1.0, 2.0)


def traced():
    seen = []
    rz.function(lambda x: [seen.append(rz.jacobian(np.sin)(x)), x][1])(np.ones(3))
    return seen[0]


OBJECTS = {
    "set": lambda: rz.seg(2) * rz.seg(3) + rz.seg(4),
    "space": lambda: V * rz.R,
    "weighted space": lambda: (rz.R**3).weighted(np.ones(3)),
    "named space": lambda: rz.space_of({HOSTILE: np.ones(3), "$$": 1.0}),
    "relation": lambda: rz.relations.gather(rz.seg(3), rz.seg(4), idx),
    "pairs": lambda: rz.relation(rz.seg(3), rz.seg(4), [(0, 1), (2, 3)]),
    "relation plan": lambda: rz.relations.window(rz.seg(100), 5).plan(),
    "combinator": lambda: rz.sin @ rz.ln,
    "term": lambda: (rz.total @ rz.power(2) ** rz.seg(4)).at(rz.R**4),
    "derivation": lambda: rz.derive(layer, V, rz.R**3),
    "family": lambda: rz.derive(layer, V, rz.R**3).derivative,
    "adjoint": lambda: rz.derive(layer, V, rz.R**3).adjoint,
    "value": lambda: rz.derive(layer, V, rz.R**3).value,
    "program": lambda: rz.derive(layer, V, rz.R**3).value.program,
    "closed form": lambda: rz.derive(lambda x: np.sum((A @ x) ** 2), rz.R**3).gradient,
    "closed Hessian": lambda: rz.derive(lambda x: np.sum((A @ x) ** 2), rz.R**3).hessian,
    "view": lambda: rz.derive(lambda x: np.sum((A @ x) ** 2), rz.R**3).show("paper"),
    "map": lambda: rz.jacobian(lambda x: A @ np.sin(x))(np.ones(3)),
    "blocks": lambda: rz.linearize(lambda a, b: (a * b, np.sum(a)), np.ones(3), np.ones(3))[1],
    "Hessian": hessian,
    "transpose": lambda: rz.jacobian(lambda x: x[idx])(np.ones(3)).H,
    "hostile map": lambda: rz.linearize(lambda d: {HOSTILE: d[HOSTILE] ** 2, "$$a$$": 1.0}, {HOSTILE: np.ones(3)})[1],
    "empty map": lambda: rz.jacobian(lambda x: x[:0])(np.ones(3)),
    "traced map": traced,
    "long map": lambda: rz.jacobian(lambda x: [x := np.sin(x) for _ in range(500)][-1])(np.ones(2)),
    "explanation": lambda: rz.explain(layer, V, rz.R**3),
    "structure": lambda: hessian().structure,
    "sparsity": lambda: rz.jacobian(lambda x: x[1:] - x[:-1])(np.ones(5)).sparsity(),
    "cost": lambda: hessian().cost(1),
    "plan": lambda: hessian().plan(3),
    "solver": lambda: rz.jacobian(lambda x: 2.0 * x + x[0])(np.ones(4)).solver(),
    "factored": lambda: rz.grad(lambda W: np.sum(X @ W), factored=True)(np.ones((4, 2))),
    "compiled": compiled,
    "compiled, not yet": lambda: rz.compile(lambda x: x),
    "compiled map": lambda: rz.compile(rz.jacobian(lambda x: x**2)),
    "profile": lambda: compiled().profile(1.0, 2.0),
    "fit": fit,
    "report": lambda: rz.check(lambda x: np.sum(np.sin(x)), np.array([0.5, 1.0])),
    "diagram": lambda: hessian().diagram(columns=1),
    "picture": lambda: hessian().picture(),
    "display": lambda: rz.display(hessian()),
    "tensor": lambda: rz.outer((np.ones(3), np.ones(2))),
}
FORMULAS = {
    *(
        [
            "set",
            "space",
            "relation",
            "combinator",
            "term",
            "derivation",
            "family",
            "value",
            "closed",
            "form",
            "map",
            "Hessian",
        ]
    ),
    *("closed form", "closed Hessian", "view", "weighted space", "transpose", "blocks"),
}
PICTURES = {
    "map",
    "blocks",
    "Hessian",
    "transpose",
    "diagram",
    "picture",
    "display",
    "hostile map",
    "relation",
    "pairs",
}


@pytest.fixture(scope="module")
def objects():
    return {name: make() for name, make in OBJECTS.items()}


def read(html: str) -> ET.Element:
    assert "$" not in html
    assert not re.search(r"<script|javascript:|\son\w+=|#[0-9a-f]{6}", html.replace("#3b6ea5", ""))
    return ET.fromstring(html.replace("&nbsp;", " "))


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_has_a_bundle(objects, name):
    thing = objects[name]
    bundle = thing._repr_mimebundle_()
    assert {"text/plain", "text/html"} <= bundle.keys() <= {"text/plain", "text/html", "text/latex", "image/svg+xml"}
    assert bundle["text/plain"] == repr(thing)
    root = read(bundle["text/html"])
    assert root.tag == "div" and {"tex2jax_ignore", "mathjax_ignore"} <= set(root.get("class").split())
    assert thing._repr_html_() == bundle["text/html"]
    if name in FORMULAS:
        assert bundle["text/latex"].startswith("$$") and list(root.iter(MATH)), bundle["text/html"]
    if "text/latex" not in bundle:
        assert not list(root.iter(MATH)) or name == "explanation"
    assert ("image/svg+xml" in bundle) == (name in PICTURES)
    if "image/svg+xml" in bundle:
        assert ET.fromstring(bundle["image/svg+xml"])[0].text


@pytest.mark.parametrize("name", ["Hessian", "space", "plan", "diagram", "report"])
def test_include_and_exclude_are_honoured(objects, name):
    ask = objects[name]._repr_mimebundle_
    assert set(ask(include=["text/plain"])) == {"text/plain"}
    assert set(ask(include={"text/html", "application/pdf"})) == {"text/html"}
    assert "text/html" not in ask(exclude=["text/html"]) and "text/plain" in ask(exclude=["text/html"])
    assert ask(include=[]) == {}
    assert set(ask(include=["text/plain", "text/html"], exclude=["text/html"])) == {"text/plain"}


@pytest.mark.parametrize("name", OBJECTS)
def test_displays_are_data(objects, name):
    d = rz.display(objects[name])
    assert isinstance(d, Display) and rz.display(d) is d and d.kind
    data = json.loads(json.dumps(d.json()))
    assert data["kind"] == d.kind
    assert d.unicode() == repr(objects[name])


def test_the_kinds_of_displays(objects):
    kinds = {name: rz.display(x).kind for name, x in objects.items()}
    wanted = {"derivation": "derivation", "explanation": "explanation", "structure": "structure", "cost": "cost"}
    wanted |= {"plan": "plan", "diagram": "diagram", "picture": "picture", "closed form": "formula", "map": "map"}
    assert {name: kinds[name] for name in wanted} == wanted


def test_a_map_shows_formula_structure_picture_and_diagram(objects):
    shown = objects["Hessian"]._repr_html_()
    root = read(shown)
    assert "4 × 4 · symmetric · dense" in shown and "numbers stored" in shown
    svgs = list(root.iter("{http://www.w3.org/2000/svg}svg"))
    assert len(svgs) == 2 and all([s[0].tag.endswith("title") for s in svgs])
    (details,) = root.iter("details")
    assert details[0].tag == "summary" and "diagram" in details[0].text


def test_long_formulas_are_folded():
    from riesz.show.display.display_objects import Formula

    long = Formula(lambda: "x + " * 5000, lambda: "x", lambda ids: "<math/>").html()
    (details,) = read(long).iter("details")
    assert "20,000 characters" in details[0].text
    deep = rz.derive(lambda x: [x := np.sin(x) * x for _ in range(400)][-1], rz.R**2)
    assert "×400" in deep._repr_html_() and len(deep._repr_html_()) < 200_000


def test_relations_show_their_pairs():
    R = rz.relation(rz.seg(3), rz.seg(4), [(0, 1), (2, 3)])
    picture = rz.display(R).json()["picture"]
    assert np.array_equal(
        np.array(picture["share"]) > 0, rz.jacobian(rz.red(R).at(rz.R**3))(np.zeros(3)).to_dense() != 0
    )
    large = rz.display(rz.relations.window(rz.seg(10**8), 5))
    assert large.svg() is None and "pairs" in large.html()


def test_formulas_of_many_lines_are_folded(objects):
    html = rz.display(objects["long map"]).html()
    assert re.search(r"<details><summary[^>]*>a formula of \d+ lines</summary><div[^>]*><div[^>]*><math", html)
    assert "lines</summary>" not in rz.display(objects["Hessian"]).html()


def test_factored_gradients_show_their_factors(objects):
    found = rz.display(objects["factored"]).json()
    assert found["rows"][0] == ["size", "4 × 2"] and any(["U₀ 20 × 4, V₀ 20 × 2" in row for row in found["rows"]])


def test_names_stay_names(objects):
    for name in ("hostile map", "named space"):
        shown = objects[name]._repr_html_()
        assert "<script" not in shown and "&lt;script" in shown


def test_tables_have_heads_and_the_code_is_folded(objects):
    root = read(objects["plan"]._repr_html_())
    assert [th.text for th in root.iter("th")] == ["way", "once", "each", "together", "numbers"]
    root = read(objects["compiled"]._repr_html_())
    assert "def " in "".join(next(root.iter("details")).itertext())


def test_the_picture_of_a_map_is_svg_without_matplotlib(objects, tmp_path):
    L = rz.jacobian(lambda x: x[1:] - x[:-1])(np.ones(5))
    root = ET.fromstring(L.picture().svg())
    paths = [p.get("d") for p in root.iter("{http://www.w3.org/2000/svg}path")]
    assert sum([p.count("h2") for p in paths]) == 4  # two numbers side by side in each row
    assert ET.fromstring(L.spy(svg=True)).get("viewBox") == root.get("viewBox")
    L.picture().save(tmp_path / "J.svg")
    assert (tmp_path / "J.svg").read_text(encoding="utf-8") == L.picture().svg()
    data = L.picture().json()
    np.testing.assert_array_equal(np.array(data["share"]) > 0, L.to_dense() != 0)


def test_what_is_not_ours_is_refused():
    with pytest.raises(TypeError, match=r"rz\.display takes what riesz made"):
        rz.display(3)


def test_ipython_shows_the_bundle(objects):
    formatters = pytest.importorskip("IPython.core.formatters")
    data, _ = formatters.DisplayFormatter().format(objects["Hessian"])
    assert "<math" in data["text/html"] and data["text/latex"].startswith("$$") and "image/svg+xml" in data
