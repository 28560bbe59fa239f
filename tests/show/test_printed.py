"""What is printed is true: adjoints look like adjoints, LaTeX is LaTeX whatever things are called, expressions have the value of what they show."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import runpy
import sys
import warnings
from collections import namedtuple
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import cases_pointwise  # noqa: F401  (the tables enter themselves)
import cases_structure  # noqa: F401
import katex
import numpy as np
import pytest
import scipy.linalg
from cases import CASES
from hypothesis import assume, given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz import R, seg
from riesz.show.notation import UNICODE
from riesz.testing import functions, index_sets, linear_terms, spaces

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(0)
X5 = rng.normal(size=(5, 5)) + 5.0 * np.eye(5)
SPD = X5 @ X5.T
B5 = rng.normal(size=5)
X6 = rng.uniform(0.5, 2.0, 6)


# -- adjoints ---------------------------------------------------------------------------------------------


def same_on_any_shape(text: str) -> bool:
    """Whether a text means a map that is its own adjoint but for the shapes: 0, parts of the same number, transposes that undo themselves."""
    parts = text.split("\n")[0].split(" + ")
    if all([re.fullmatch(r"\[([ijk, ]+) ← ([ijk, ]+)\] 1|ι\[[^]]*\] · π\[[^]]*\]", part) for part in parts]):
        return all([_undoes_itself(part) for part in parts])
    bare = text.replace(" • ", "").replace("red_{∅}", "0")
    swaps = re.sub(r"contract\[(\w)(\w)(\w)→(\1\3\2|\2\1\3|\3\2\1)\]|\(_\)ᵀ", "", bare)
    return not swaps or set(swaps) <= {"0"}


def _undoes_itself(text: str) -> bool:
    """Whether [i, j ← j, i] 1 is a transpose that undoes itself; ι[0] · π[0] and parts of index arrays are so both ways."""
    found = re.fullmatch(r"\[([ijk, ]+) ← ([ijk, ]+)\] 1", text)
    if found is None:
        return True
    rows, columns = [side.split(", ") for side in found.groups()]
    turn = [columns.index(k) if k in columns else -1 for k in rows]
    return len(rows) == len(columns) and [turn[k] for k in turn] == list(range(len(turn)))


def check_adjoint_text(L: Any) -> None:
    """The adjoint of a map does not look like the map, unless it is the same; its adjoint does."""
    assert str(L.H.H) == str(L)
    assert L.H.H.latex() == L.latex()
    for one, other in ((L, L.H), (L.simplify(), L.H.simplify())):
        if str(one) != str(other) or same_on_any_shape(str(one)):
            continue
        matrix = L.to_dense()
        assert matrix.shape[0] == matrix.shape[1], f"the adjoint of {one} prints as the map itself"
        np.testing.assert_allclose(
            matrix, matrix.T, atol=1e-12, err_msg=f"the adjoint of {one} prints as the map itself"
        )


def arrays(value: Any) -> list[Any]:
    """The arrays of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [leaf for part in value for leaf in arrays(part)]
        if isinstance(value, (list, tuple))
        else []
        if value is None
        else [value]
    )


BATCHES = 24


@pytest.mark.parametrize("batch", range(BATCHES))
def test_adjoints_of_every_numpy_function_print_as_adjoints(batch):
    for c in CASES[batch::BATCHES]:
        xs = c.sample()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            moving = [i for i, y in enumerate(arrays(c.function(np, *xs))) if np.asarray(y).dtype.kind == "f"]

            def code(*xs, c=c, moving=moving):
                found = arrays(c.function(np, *xs))
                return tuple([found[i] for i in moving])

            for k in range(len(xs) if moving else 0):
                L = rz.jacobian(code, argnums=k)(*xs)
                for M in (L, L.simplify()) if k == 0 else (L,):
                    check_adjoint_text(M)
                    assert M.H.latex()


@rz.custom_derivative
def running(x):
    return np.sqrt(x)


@running.derivative
def _(x):
    return lambda dx: np.cumsum(dx) / x


@running.adjoint
def _(x):
    return lambda dy: np.cumsum((dy / x)[::-1])[::-1]


def long_function(x):
    for _ in range(6):
        x = np.cumsum(np.sin(x) * np.roll(x, 1)) / (1.0 + x * x)
    return x


first_sums = rz.linear(
    np.cumsum, lambda w: np.cumsum(w[::-1])[::-1], domain=R ** seg(6), codomain=R ** seg(6), name="first_sums"
)
SHIFT = np.eye(6, k=1)
form = rz.bilinear(
    lambda u, v: u * (SHIFT @ v),
    lambda u, w: SHIFT.T @ (u * w),
    lambda v, w: w * (SHIFT @ v),
    spaces=(R ** seg(6), R ** seg(6)),
    codomain=R ** seg(6),
    name="form",
)

OPAQUE = {
    "solve": (lambda b: np.linalg.solve(X5, b), B5),
    "solve, the matrix": (lambda a: np.linalg.solve(a, B5), X5),
    "solve_triangular": (lambda b: scipy.linalg.solve_triangular(X5, b), B5),
    "solve_triangular, lower": (lambda b: scipy.linalg.solve_triangular(X5, b, lower=True, trans=1), B5),
    "solve_banded": (
        lambda b: scipy.linalg.solve_banded((1, 0), np.array([[1.0, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.1, 0]]), b),
        B5,
    ),
    "solve_sylvester": (lambda q: scipy.linalg.solve_sylvester(X5, np.diag(B5) + SPD, q), X5),
    "expm": (lambda a: scipy.linalg.expm(a), X5 / 9),
    "sinm": (lambda a: scipy.linalg.sinm(a), X5 / 9),
    "logm": (lambda a: scipy.linalg.logm(a), X5),
    "expm twice": (lambda a: rz.grad(lambda a: np.sum(scipy.linalg.expm(a) * X5))(a) @ X5, X5 / 9),
    "inv": (np.linalg.inv, X5),
    "pinv": (np.linalg.pinv, X5[:, :3]),
    "cholesky": (np.linalg.cholesky, SPD),
    "eigh": (lambda a: np.linalg.eigh(a)[1], SPD),
    "svd": (lambda a: np.linalg.svd(a)[0], X5),
    "qr": (lambda a: np.linalg.qr(a)[1], X5),
    "lstsq": (lambda b: np.linalg.lstsq(X5[:, :3], b, rcond=None)[0], B5),
    "det": (np.linalg.det, X5),
    "kron": (lambda b: np.kron(b, np.arange(3.0)), B5),
    "interp, the values": (lambda b: np.interp(np.linspace(0.1, 3.9, 7), np.arange(5.0), b), B5),
    "cumprod": (np.cumprod, X6),
    "sort": (np.sort, np.array([3.0, 1.0, 2.0, 6.0])),
    "take": (lambda x: x[np.argsort(-x)[:3]], X6),
    "take by row": (lambda x: np.take_along_axis(x, np.argsort(x, axis=1)[:, :2], axis=1), X5),
    "convolve": (lambda x: np.convolve(x, B5), X6),
    "correlate": (lambda x: np.correlate(x, B5, "same"), X6),
    "convolve twice": (lambda x: rz.grad(lambda x: np.sum(np.convolve(x, x) ** 3))(x), X6),
    "rfft": (lambda x: np.fft.rfft(x).imag, X6),
    "ifft": (lambda x: np.fft.ifft(x).real + np.fft.fft(x).imag, X6),
    "fft2": (lambda x: np.fft.fft2(x).real, X5[:3]),
    "max": (lambda x: np.max(x, axis=0), X5),
    "fori_loop": (lambda x: rz.fori_loop(0, 4, lambda i, c: np.cumsum(c) * x[0], x), X6),
    "loop": (lambda x: rz.loop(lambda c, u: (c * u, c + u), 1.0, x), X6),
    "loop, backwards": (lambda x: rz.loop(lambda c, u: (X5 @ c * u, c + u), B5, x, reverse=True), X6),
    "loop of a matrix": (lambda x: rz.fori_loop(0, 3, lambda i, c: X5 @ c, x), B5),
    "cond": (lambda x: rz.cond(x[0] > 0, np.cumsum, lambda x: x * x, x), X6),
    "cond, long": (lambda x: rz.cond(x[0] > 0, long_function, np.cumsum, x), X6),
    "checkpoint": (rz.checkpoint(long_function), X6),
    "vmap of a loop": (lambda x: rz.vmap(lambda r: rz.fori_loop(0, 3, lambda i, c: X5 @ c, r))(x), X5),
    "custom derivative": (running, X6),
    "linear": (lambda x: first_sums(np.sin(x)), X6),
    "bilinear, left": (lambda x: form((np.sin(x), X6)), X6),
    "bilinear, right": (lambda x: form((X6, np.sin(x))), X6),
    "bilinear, both": (lambda x: form((x, x)), X6),
    "where": (lambda x: np.where(X5 > 5.0, np.cumsum(x), 0.0), B5),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_adjoints_of_steps_that_are_no_contractions_print_as_adjoints(name):
    f, x = OPAQUE[name]
    L = rz.jacobian(f)(x)
    once = name in ("custom derivative", "linear") or name.startswith("bilinear")
    G = L if once else rz.hessian(lambda v: np.sum((f(v)[-1] if name.startswith("loop") else f(v)) ** 3))(x)
    for M in (L, L.simplify(), L.H.simplify(), 2.0 * L, L @ L.H @ L, G, G.simplify()):
        check_adjoint_text(M)
    assert str(L.T) == str(L.H)
    D = rz.derive(f, rz.space_of(x))
    if str(L) != str(L.H):
        forward, backward = str(D).split("f^[1r]")
        assert str(D.derivative) != str(D.adjoint) and forward.split("in ")[-1] not in backward
    assert D.latex() and D.derivative.latex() and D.adjoint.latex()


E4, G4, B6 = rng.normal(size=(4, 5, 5)), rng.normal(size=(4, 3, 5)), rng.normal(size=(100, 5))
SIMPLE = {
    "blocks": (lambda x: np.einsum("eij,ej->ei", E4, x), X5[:4], "blocks(E4)", "blocks(E4)ᵀ"),
    "transposed blocks": (lambda x: np.einsum("eji,ej->ei", E4, x), X5[:4], "blocks(E4)ᵀ", "blocks(E4)"),
    "oblong blocks": (lambda x: np.einsum("eij,ej->ei", G4, x), X5[:4], "blocks(G4)", "blocks(G4)ᵀ"),
    "a sum": (np.sum, X5, "(1 ⊗ 1)ᵀ", "1 ⊗ 1"),
    "a form": (lambda x: B5 @ x @ B5, X5, "(B5 ⊗ B5)ᵀ", "B5 ⊗ B5"),
    "a vector times a form": (lambda x: B5 * (B5 @ x @ B5), X5, "B5 ⊗ (B5 ⊗ B5)", "(B5 ⊗ B5) ⊗ B5"),
    "a vector": (lambda x: B5 * (B5 @ x), B5 + 1, "B5 ⊗ B5", "B5 ⊗ B5"),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_simplified_maps_print_apart_from_their_adjoints(name):
    f, x, forward, backward = SIMPLE[name]
    L = rz.jacobian(f)(x)
    assert str(L.simplify()).split("\n")[0] == forward
    assert str(L.H.simplify()).split("\n")[0] == backward
    check_adjoint_text(L)


def test_linear_algebra_at_many_rows_prints_apart_from_its_adjoint():
    L = rz.jacobian(lambda x: np.linalg.solve(X5, x.T).T)(B6)
    assert str(L.simplify()) != str(L.H.simplify())


def test_a_solve_and_its_adjoint():
    L = rz.jacobian(lambda b: np.linalg.solve(X5, b))(B5)
    assert "solve(a, _)" in str(L) and "solve(aᵀ, _)" in str(L.H)
    assert "solve(X5, h₀)" in str(L.simplify()) and "solve(X5ᵀ, h₀)" in str(L.H.simplify())
    L = rz.jacobian(scipy.linalg.expm)(X5)
    assert "expm'(a, _)" in str(L) and "expm'(aᵀ, _)" in str(L.H)


def test_a_loop_runs_backwards_in_the_adjoint():
    L = rz.jacobian(lambda x: rz.fori_loop(0, 3, lambda i, c: X5 @ c, x))(B5)
    assert "loop(" in str(L) and "loop*(" in str(L.H)
    D = rz.derive(lambda x: rz.loop(lambda c, u: (c * u, c + u), 1.0, x, reverse=True), R ** seg(3))
    assert "reverse_loop(" in str(D.derivative) and "reverse_loop*(" in str(D.adjoint)


def test_explanations_have_a_line_for_the_adjoint_of_every_step():
    for name, (f, x) in OPAQUE.items():
        rows = rz.explain(f, rz.space_of(x)).adjoints
        assert len(rows) > 0, name
    equations = [left for left, _ in rz.explain(lambda b: np.linalg.solve(X5, b), R ** seg(5)).adjoints]
    assert "solve(a, _)* = solve(aᵀ, _)" in equations


@given(linear_terms())
@examples(0.6)
def test_adjoints_of_terms_print_as_adjoints(t):
    if t.domain.dim and t.codomain.dim:
        assert str(t.H.H) == str(t)
        if str(t) == str(t.H) and not same_on_any_shape(str(t)):
            matrix = rz.jacobian(t)(t.domain.zero()).to_dense()
            np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert all([thing.latex() for thing in (t, t.H, t.domain, t.codomain)])  # read by KaTeX in conftest.py


# -- LaTeX ------------------------------------------------------------------------------------------------


def test_the_reader_of_latex_refuses_what_is_wrong():
    for text in ("y_{1}_{0}", "\\mathrm{a", "a & b", "x^2^3", "50%", "\\foo", "😀"):
        assert katex.problem(text) is not None
        with pytest.raises(AssertionError):
            katex.parse(text)
    assert katex.problem("\\mathrm{my\\_var}_{0}") is None


def check_latex(thing: Any) -> int:
    """Everything of a thing that is LaTeX; how much there was."""
    found = [thing.latex()]
    if hasattr(thing, "_repr_latex_"):  # diagrams show themselves as SVG
        katex.parse(thing._repr_latex_().strip("$"))
    if isinstance(thing, rz.LinearMap):
        found += [m.latex() for m in (thing.H, thing.simplify(), thing.H.simplify())]
        assert "$" not in thing._repr_html_()
    for part in ("derivative", "adjoint", "domain", "codomain"):
        found += [x.latex() for x in [getattr(thing, part, None)] if hasattr(x, "latex")]
    return len(found)


def printed(run: Any) -> list[Any]:
    """What a piece of code prints and has LaTeX."""
    seen: list[Any] = []

    def note(*things: Any, **_: Any) -> None:
        seen.extend([x for x in things if hasattr(x, "latex") and not isinstance(x, type)])

    run(note)
    return seen


@pytest.mark.parametrize("page", ["README.md", "docs/structure.md"])
def test_everything_shown_in_the_docs_has_latex_that_parses(page):
    examples = doctest.DocTestParser().get_examples((ROOT / page).read_text(encoding="utf-8"))
    space: dict[str, Any] = {"__name__": "__main__"}

    def run(note):
        old, sys.displayhook = sys.displayhook, note
        try:
            with redirect_stdout(io.StringIO()):
                space["print"] = note
                for example in examples:
                    exec(compile(example.source, page, "single"), space)
        finally:
            sys.displayhook = old

    things = printed(run) + [x for x in space.values() if hasattr(x, "latex") and not isinstance(x, type)]
    assert sum(map(check_latex, things)) > 5


def test_everything_the_demo_prints_has_latex_that_parses(monkeypatch):
    things = printed(lambda note: runpy.run_path(str(ROOT / "examples" / "demo.py"), init_globals={"print": note}))
    assert sum(map(check_latex, things)) > 20


PROGRAMS = [m.name for m in pkgutil.iter_modules([str(ROOT / "examples" / "programs")]) if not m.name.startswith("_")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_the_example_programs_have_latex_that_parses(name):
    module = importlib.import_module(f"programs.{name}")
    given = module.data(np.random.default_rng(0)) if hasattr(module, "data") else ()
    args = given if isinstance(given, tuple) else (given,)
    found = 0
    for f in vars(module).values():
        if inspect.isfunction(f) and f.__module__ == module.__name__ and f.__name__ not in ("data", "main"):
            try:
                L = rz.jacobian(f)(*args)
            except Exception:  # a part of the program, with other arguments
                continue
            found += bool(L.latex()) + bool(L.H.latex())
    assert found or not args


@given(functions(), index_sets(), spaces())
@examples(0.4)
def test_random_terms_have_latex_that_parses(f, index, space):
    D = rz.derive(f)
    for thing in (f, f.simplify(), D, D.derivative, D.adjoint, space, space**index):
        assert thing.latex()


def test_latex_of_our_own_words_is_ascii():
    f = rz.ln @ rz.proj(0) + rz.proj(0) * rz.proj(1) - rz.sin @ rz.proj(1)
    things = [
        rz.derive(f, R * R),
        *[rz.jacobian(g)(x).simplify() for g, x in OPAQUE.values()],
        *[rz.jacobian(g)(x) for g, x in OPAQUE.values()],
    ]
    for thing in things:
        assert thing.latex().isascii(), thing.latex()


HOSTILE = [
    *[
        "my_var",
        "a&b",
        "50%",
        "#1",
        "$x$",
        "{",
        "}",
        "~",
        "^",
        "\\",
        "a b",
        "_",
        "__x__",
        "x_{1}_{0}",
        "\\frac{",
        "%",
        "--",
        "`",
        '"',
        "'",
        "a'b",
        "*",
    ],
    *[
        "α",
        "αβ_γ",
        "Ω_2",
        "é",
        "straße",
        "变量",
        "переменная",
        "😀",
        "x😀y",
        "a\nb",
        "\x07",
        "\u202eabc",
        "",
        " ",
        "<lambda>",
        "x'",
        "f*",
        "x₁",
        "x²",
    ],
    *[
        "\ud800",
        "\U000f0000",
        "\uf8ff",
        "&amp;",
        "$$",
        "\\end{aligned}",
        "a, b: c",
        "(",
        "]",
        "⟨",
        "I",
        "π",
        "y",
        "a",
        "0",
        "=",
        "\t",
        "\u200b",
        "٣",
    ],
]


def lines(thing: Any) -> int:
    return str(thing).count("\n")


def apart(texts: list[str]) -> None:
    """Different names are different on paper too."""
    assert len(set(texts)) == len(texts), sorted([t for t in texts if texts.count(t) > 1])


def test_any_key_can_be_printed():
    def f(d):
        first, second = d.values()
        return np.sum(first * np.sin(second))

    texts, formulas = [], []
    for name in HOSTILE:
        plain, point = [{key: 1.0, "m": np.ones(3)} for key in ("k" * len(UNICODE.name(name)), name)]
        V, D, L = rz.space_of(point), rz.derive(f, rz.space_of(point)), rz.jacobian(f)(point)
        assert [lines(x) for x in (V, D, L)] == [
            lines(x) for x in (rz.space_of(plain), rz.derive(f, rz.space_of(plain)), rz.jacobian(f)(plain))
        ]
        assert all([str(x).replace("\n", "").isprintable() for x in (V, D, L)])
        for thing in (D, L, L.simplify(), rz.proj(name), rz.proj(name).at(V), rz.inj(name, V)):
            assert thing.latex()
        texts.append(str(V))
        formulas.append(V.latex())
    apart(texts)
    apart(formulas)


def test_keys_need_not_be_texts():
    V = rz.space_of({0: 1.0, "0": 2.0, (1, 2): 3.0, 1.5: 4.0})
    assert str(V) == "{0: ℝ, '0': ℝ, (1, 2): ℝ, 1.5: ℝ}"
    assert V.latex()


@pytest.mark.parametrize("name", HOSTILE)
def test_functions_of_any_name_can_be_printed(name):
    mine = rz.primitive(name + " ", np.sin, None, lambda x, y: rz.cos(x))  # not one of ours

    def call(x):
        return np.sqrt(x)

    call.__name__ = name
    custom = rz.custom_derivative(
        call, lambda x: lambda dx: np.cumsum(dx), lambda x: lambda dy: np.cumsum(dy[::-1])[::-1]
    )
    line = rz.linear(
        np.cumsum, lambda w: np.cumsum(w[::-1])[::-1], domain=R ** seg(6), codomain=R ** seg(6), name=name or "f"
    )
    any_line = rz.linear(np.cumsum, lambda w: np.cumsum(w[::-1])[::-1], name=name or "f")
    times = rz.bilinear(
        np.multiply, np.multiply, np.multiply, spaces=(R ** seg(6), R ** seg(6)), codomain=R ** seg(6), name=name or "f"
    )
    for thing in (
        mine,
        line,
        line.H,
        any_line,
        times,
        rz.left(times, X6),
        rz.left(times, X6).H,
        rz.derive(mine),
        rz.derive(mine @ mine),
    ):
        assert thing.latex() and str(thing).replace("\n", "").isprintable()
    for f in (custom, lambda x: line(np.sin(x)), lambda x: times((x, np.sin(x)))):
        L = rz.jacobian(f)(X6)
        for thing in (L, L.H, L.simplify(), L.H.simplify()):
            assert thing.latex() and str(thing).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "name", ["my_var", "α", "Ωmega", "é", "变量", "x_1", "_", "__x__", "I", "y", "h", "d", "a", "index", "π", "ſ", "ª"]
)
def test_arguments_and_captured_arrays_of_any_name_can_be_printed(name):
    space: dict[str, Any] = {"np": np, "A": rng.normal(size=(4, 6))}
    exec(
        f"def f({name}): return np.sin(A @ {name})\ndef g(x):\n    return np.tanh({name} @ x)\n{name} = A + 1.0", space
    )
    for f in (space["f"], space["g"]):
        D, L = rz.derive(f, R ** seg(6)), rz.jacobian(f)(X6)
        for thing in (D, L, L.simplify(), L.H.simplify()):
            assert thing.latex() and lines(thing) < 30
    assert rz.jacobian(space["g"])(X6).simplify().latex()


def test_fields_of_dataclasses_and_named_tuples_can_be_printed():
    made = dataclasses.make_dataclass("Point_&", ["my_x", "α", "变量"])
    tuples = namedtuple("Pair_", ["my_x", "α", "变量"])

    def f(p):
        return np.sin(p.my_x) * p.α + np.sum(p.变量)

    for make in (made, tuples):
        point = make(1.0, 2.0, np.ones(3))
        L = rz.jacobian(f)(point)
        assert check_latex(L) and check_latex(rz.space_of(point)) and check_latex(rz.derive(f, rz.space_of(point)))


# -- names ------------------------------------------------------------------------------------------------


def test_an_array_called_as_the_identity_is_not_it():
    I = rng.normal(size=(5, 5))  # noqa: E741
    text = str(rz.jacobian(lambda x: I @ x)(B5).simplify())
    assert text.split("\n")[0] == "I′"
    assert str(rz.jacobian(lambda x: 1.0 * x)(B5).simplify()) == "I"


def test_two_arrays_never_share_a_name():
    def maker(A):
        return lambda x: A @ np.sin(x)

    f, g = maker(rng.normal(size=(5, 5))), maker(rng.normal(size=(5, 5)))
    text = str((rz.jacobian(f)(B5) + rz.jacobian(g)(B5)).simplify()).split("\n")[0]
    assert re.fullmatch(r"A · diag\(\w\) \+ A′ · diag\(\w\)", text), text


def test_names_of_lets_and_of_unnamed_arrays_are_free():
    unnamed = [rng.normal(size=7) for _ in range(3)]

    def f(a, y, energy):
        return np.sum(np.sin(a * y) * np.sin(a * y) * unnamed[0] + energy * unnamed[1])

    text = str(rz.derive(f, R ** seg(7), R ** seg(7), R ** seg(7)))
    names = re.findall(r"(?:let|      ) ?(\w+) [=∈]", text)
    assert names and not {"a", "y", "energy"} & set(names)
    for half in text.split("f^[1r]"):
        names = re.findall(r"(?:let|      ) ?(\w+) [=∈]", half)
        assert len(set(names)) == len(names)


def test_the_variables_of_a_loop_are_its_own():
    def f(x, c, u):
        return rz.fori_loop(0, 3, lambda i, v: v * c + u, x)

    text = str(rz.derive(f, R ** seg(4), R ** seg(4), R ** seg(4)))
    inner = re.search(r"loop\[\((.*?)\) ↦ (.*?)\]", text)
    assert inner and not {"c", "u", "x"} & set(re.split(", ", inner[1]))
    assert {"c", "u"} <= set(re.findall(r"\w", inner[2]))


# -- numbers and precedence -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "text"),
    [
        (1.0, "1"),
        (0.99999, "0.99999"),
        (-1.00001, "−1.00001"),
        (1234.5, "1234.5"),
        (0.333333, "0.3333"),
        (1e-9, "1e−09"),
        (np.inf, "∞"),
        (2.0**40, "1099511627776"),
    ],
)
def test_a_number_that_is_not_whole_does_not_look_so(k, text):
    assert str(rz.const(k)) == f"K({text})"
    assert rz.const(k).latex()


SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?(?:e[−+]?\d+)?)|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)|\^(-?\d+(?:\.\d+)?)|([^\W\d]\w*?[₀-₉]*)(?![\w])|(.))"
)
FUNCTIONS = {
    "sin": np.sin, "cos": np.cos, "exp": np.exp, "tanh": np.tanh, "arctan": np.arctan, "maximum": np.maximum, "ln": np.log, "log": np.log,
    "sqrt": np.sqrt, "absolute": np.abs, "hypot": np.hypot, "sinh": np.sinh, "cosh": np.cosh, "sign": np.sign, "reciprocal": np.reciprocal,
}  # fmt: skip


class Reader:
    """Evaluates a printed expression: sums, products, application by juxtaposition or ∘, powers. With `points`, values are functions of a point."""

    def __init__(self, text: str, names: dict[str, Any], points: bool = False) -> None:
        self.tokens = []
        text = re.sub(r"(?<=\w)\(", "⟪", text)  # maximum(a, b) is a call, sin (a + b)² the sine of a square
        for number, above, power, name, other in TOKEN.findall(re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", r" \1 ", text)):
            above = "".join([SUPER[c] for c in above])
            self.tokens.append(
                ("n", float(number.replace("−", "-")))
                if number
                else ("^", float(above or power))
                if above or power
                else ("s", name or other)
            )
        self.names, self.points, self.at = names, points, 0

    def peek(self) -> Any:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", None)

    def take(self, *wanted: str) -> str | None:
        kind, value = self.peek()
        if kind == "s" and value in wanted:
            self.at += 1
            return value
        return None

    def lift(self, f: Any, *args: Any) -> Any:
        return (lambda p: f(*[a(p) for a in args])) if self.points else f(*args)

    def sum(self) -> Any:
        total = self.lift(np.negative, self.product()) if self.take("−") else self.product()
        while sign := self.take("+", "−"):
            total = self.lift(np.add if sign == "+" else np.subtract, total, self.product())
        return total

    def product(self) -> Any:
        total = self.composed()
        while sign := self.take("·", "∗", "/"):
            total = self.lift(np.divide if sign == "/" else np.multiply, total, self.composed())
        return total

    def composed(self) -> Any:
        first = self.power()
        if self.take("∘"):
            rest = self.composed()
            return lambda p: first(rest(p))
        return first

    def power(self) -> Any:
        base = self.atom()
        while True:
            kind, value = self.peek()
            if kind == "^":
                self.at += 1
                base = self.lift(lambda b, e=value: np.power(b, e), base)
            elif self.take("^"):
                base = self.lift(np.power, base, self.atom())
            else:
                return base

    def atom(self) -> Any:
        kind, value = self.peek()
        self.at += 1
        if kind == "n":
            return (lambda p, k=value: k) if self.points else value
        assert kind == "s", self.tokens
        if value == "(":
            if self.take("_"):
                assert self.take(")")
                return lambda p: p
            inside = self.sum()
            assert self.take(")")
            return inside
        if value in self.names:
            return self.names[value]
        if not self.take("⟪"):
            return FUNCTIONS[value] if self.points else FUNCTIONS[value](self.power())
        args = [self.sum()]
        while self.take(","):
            args.append(self.sum())
        assert self.take(")")
        return args[0] if value == "K" else FUNCTIONS[value](*args)


def value_of(text: str, names: dict[str, Any]) -> Any:
    """The value of a text with its definitions: body, where y = …."""
    body, *rest = re.split(r"\n(?:  where |        )(?=\w+ =)", text)
    known = dict(names)
    for line in rest:
        name, definition = line.split(" = ", 1)
        known[name] = Reader(definition, known).sum()
    return Reader(body, known).sum()


CONSTANTS = [1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 1.25, 10.0]


def scalar_trees(leaves: Any, unary: Any, binary: Any, power: Any) -> Any:
    """Random expressions over some leaves."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda f, a: f(a), st.sampled_from(unary), inner),
            st.builds(lambda f, a, b: f(a, b), st.sampled_from(binary), inner, inner),
            st.builds(power, inner, st.sampled_from([2, 3, -1, 0.5, -2, 1.5])),
        ),
        max_leaves=8,
    )


ARITHMETIC = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b]
POINT = (0.7, 1.3, 2.1)


def node(f: Any) -> Any:
    return lambda *parts: lambda x: f(*[p(x) for p in parts])


@given(
    scalar_trees(
        st.one_of(
            st.sampled_from(range(3)).map(lambda i: lambda x: x[i]),
            st.sampled_from(CONSTANTS).map(lambda k: lambda x: k),
        ),
        [node(f) for f in (np.sin, np.exp, np.tanh, np.arctan, np.negative, np.abs)],
        [node(f) for f in (*ARITHMETIC, np.maximum, lambda a, b: np.power(np.abs(a) + 0.5, b))],
        lambda a, k: lambda x: (np.abs(a(x)) + 0.5) ** k if k != 2 else a(x) ** 2,
    )
)
@examples(1.5)
def test_a_printed_expression_has_the_value_of_the_program(tree):
    with np.errstate(all="ignore"):
        try:
            D = rz.derive(lambda x, y, z: tree((x, y, z)) + 0.0 * x, R, R, R)
        except (ZeroDivisionError, OverflowError):  # of numbers alone
            assume(False)
        wanted = D.value(*POINT)
        assume(np.isfinite(wanted) and abs(wanted) < 1e8)
        found = value_of(str(D.value), {**dict(zip("xyz", POINT, strict=True)), "∞": np.inf, "nan": np.nan})
    np.testing.assert_allclose(found, wanted, rtol=5e-3, atol=5e-3, err_msg=str(D.value))


@given(
    scalar_trees(
        st.sampled_from([rz.proj(0), rz.proj(1), rz.proj(2)]),
        [lambda a, f=f: f @ a for f in (rz.sin, rz.exp, rz.tanh, rz.arctan)]
        + [lambda a: -a, lambda a: 2.0 * a, lambda a: a - 3.0, lambda a: 0.5 - a],
        ARITHMETIC,
        lambda a, k: a**k,
    )
)
@examples(1.5)
def test_a_printed_combinator_has_the_value_of_the_function(f):
    term = f.at(R * R * R)
    names = {"π₀": lambda p: p[0], "π₁": lambda p: p[1], "π₂": lambda p: p[2], "∞": lambda p: np.inf}
    with np.errstate(all="ignore"):
        wanted = term(POINT)
        assume(np.isfinite(wanted) and abs(wanted) < 1e8)
        for thing in (f, term, term.simplify()):
            found = Reader(str(thing), names, points=True).sum()(POINT)
            np.testing.assert_allclose(found, wanted, rtol=5e-3, atol=5e-3, err_msg=str(thing))


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x, y: x - (y - x), "x − (y − x)"),
        (lambda x, y: (x - y) - x, "x − y − x"),
        (lambda x, y: -(x**2), "−x²"),
        (lambda x, y: (-x) ** 2, "(−x)²"),
        (lambda x, y: (x + y) ** 3 / (x * y), "(x + y)³ / (x · y)"),
        (lambda x, y: np.power(x, y + 1.0), "x^(y + 1)"),
        (lambda x, y: np.power(x + y, y), "(x + y)^y"),
        (lambda x, y: np.sin(x) ** 3, "(sin x)³"),
        (lambda x, y: np.sin(x**2), "sin x²"),
        (lambda x, y: x + (-2.0), "x − 2"),
        (lambda x, y: -2.0 * (x + y), "−2 · (x + y)"),
    ],
)
def test_precedence(f, text):
    assert str(rz.derive(f, R, R).value) == text


def test_what_is_not_used_is_not_named():
    L = rz.jacobian(lambda x: np.min(np.reshape(x, (3, 4)), axis=1))(np.arange(12.0))
    assert str(L).count("∈") == 1
