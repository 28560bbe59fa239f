"""What the page shows of a function, as data: forms, derivation, diagram, structure, plan, code; numbers at a point."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from ..checking.derivative_check import check
from ..functions.calling import function
from ..functions.jacobians import linearize
from ..maps.derivation import Derivation
from ..show.derivation_steps import unfolded
from ..show.explain import Explanation
from ..show.latex_alphabet import LATEX
from ..show.mathml_alphabet import MATHML, MathML, typeset
from ..show.notation import UNICODE
from ..show.spy import cells
from ..text.text_limits import Limit
from .answers import alone, film, head, plan_data
from .arguments import TARGETS, UsageError, sentence
from .plots import plot
from .subjects import Subject, function_of_code, shape_of, subject, written

LIMIT = Limit(2e8, 2.0**27)
"""What a text of the page may take, one evaluation."""
LONGEST = 20_000
"""Characters of a text."""
NUMBERS = 10_000_000
"""Numbers of all arguments together."""
SLIDERS = 16
"""Inputs with at most this many numbers have sliders."""
SHOWN = 400
"""Matrices of at most this many numbers are shown."""
HESSIANS = 5_000
"""Functions of more numbers have no picture of their Hessian."""
CLIPPED = 200_000
"""Characters of one part; what is longer is left out."""


class Views:
    """Answers the page's requests. The function asked about last is kept."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.code, self.file = bool(setup["code"]), str(setup["file"])
        self._last: tuple[Any, Subject] | None = None

    def warm(self) -> None:
        """Load and run most of it once, so that the first request is quick."""
        self.answer({"what": "view", "text": "x, W -> tanh(W @ x)", "shapes": "2 2,2"})

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, or an error in a sentence."""
        with np.errstate(all="ignore"):
            try:
                s = self._subject(request)
                return ROUTES[request["what"]](s, request)
            except (Exception, SystemExit) as problem:
                return {"error": sentence(problem)}

    def _subject(self, request: dict[str, Any]) -> Subject:
        text, shapes = request.get("text"), request.get("shapes") or ""
        if not isinstance(text, str) or not isinstance(shapes, str):
            raise UsageError("a request has a text and shapes")
        if len(text) > LONGEST or len(shapes) > LONGEST:
            raise UsageError(f"this text has {len(text):,} characters; the most are {LONGEST:,}")
        if self._last is None or self._last[0] != (text, shapes):
            given = [shape_of(part) for part in shapes.split()] or None
            if given and sum([math.prod(shape) for shape in given]) > NUMBERS:
                raise UsageError(f"the page takes arguments of at most {NUMBERS:,} numbers together")
            self._last = (text, shapes), self._made(text, given)
        return self._last[1]

    def _made(self, text: str, shapes: Any) -> Subject:
        if self.file and text.strip() == self.file:
            found = subject(self.file, None)
            return Subject(found.function, shapes, self.file)
        if "->" not in text and "def " in text:
            if not self.code:
                raise UsageError("this page takes texts such as 'x -> sin(x)'; riesz play --allow-code takes code too")
            return Subject(function_of_code(text), shapes, "code")
        return Subject(function(text, limit=LIMIT), shapes, " ".join(text.split()))


def _or_error(made: Callable[[], Any]) -> Any:
    """A part of an answer, or why there is none."""
    try:
        return made()
    except Exception as problem:
        return {"error": sentence(problem)}


def shown(x: Any) -> dict[str, Any]:
    """Something printed, in three alphabets."""
    unicode = str(x)
    if len(unicode) > CLIPPED:
        return {"error": f"{len(unicode):,} characters are too long to be shown"}
    return {"unicode": unicode, "latex": x.latex(), "mathml": x.mathml(ids=True)}


# -- for every point --------------------------------------------------------------------------------------------


def view(s: Subject, request: dict[str, Any]) -> dict[str, Any]:
    """All that holds at every point, and the structure at one."""
    D = s.derivation
    found = head(s) | {"guessed": s.guessed, "real": s.real, "size": s.size, "kind": s.kind}
    found["form"] = _or_error(lambda: closed(s, s.kind))
    found["code"] = codes(getattr(D, s.kind))
    found["term"] = _or_error(lambda: shown(D.function))
    found["derivative"] = _or_error(lambda: shown(D.derivative) | {"steps": len(D.derivative)})
    found["adjoint"] = _or_error(lambda: shown(D.adjoint) | {"steps": len(D.adjoint)})
    found["steps"] = _or_error(lambda: steps(D))
    found["structure"] = _or_error(lambda: structure(s, False, _columns(request)))
    found["diagram"] = _or_error(lambda: diagrams(s))
    return found


def second(s: Subject, request: dict[str, Any]) -> dict[str, Any]:
    """The second derivative of a function into ℝ."""
    if not s.real:
        raise UsageError("only functions into ℝ have a Hessian")
    few = s.size <= HESSIANS
    return {
        "form": _or_error(lambda: closed(s, "hessian")),
        "code": codes(s.derivation.hessian),
        "structure": _or_error(lambda: structure(s, True, _columns(request))) if few else None,
    }


def _columns(request: dict[str, Any]) -> int:
    columns = request.get("columns")
    return columns if isinstance(columns, int) and 0 <= columns <= 10**9 else 1


def closed(s: Subject, kind: str) -> dict[str, Any]:
    """A closed form; where there is none, why, and the program that computes the derivative."""
    form = getattr(s.derivation, kind)
    problem = form.written().problem
    if problem and kind == "hessian":
        return {"error": f"this Hessian has no closed form ({problem})"}
    return shown(form) | {"problem": problem}


def codes(form: Any) -> dict[str, Any]:
    """A closed form in every language; parts of it are marked by their number."""
    return {target: _or_error(lambda target=target: form.code(target, ids=True)) for target in TARGETS}


def steps(D: Derivation) -> dict[str, Any]:
    """The rules that were used, with the derivative after each; for large functions, the rules alone."""
    found = Explanation(D)
    plain, marked = unfolded(D, UNICODE), unfolded(D, MathML(True))
    if sum([len(step.state) for step in marked]) > CLIPPED // 4:
        plain, marked = [], []
    states = [
        {"equation": a.equation, "reason": a.reason, "state": typeset(b.state), "text": a.state, "part": b.part}
        for a, b in zip(plain, marked, strict=True)
    ]
    rules = [{"equation": a, "reason": b} for a, b in found.rules]
    latex, math = (film(D, LATEX), typeset(film(D, MATHML))) if states else ("", "")
    adjoints = [{"equation": a, "reason": b} for a, b in found.adjoints]
    return {"states": states or rules, "adjoints": adjoints, "latex": latex, "mathml": math}


def diagrams(s: Subject) -> dict[str, Any]:
    """The derivative and the adjoint as string diagrams."""
    D: Any = s.derivation
    return {name: getattr(D, name).diagram().svg() for name in ("derivative", "adjoint")}


def structure(s: Subject, second: bool, columns: int) -> dict[str, Any]:
    """What the Jacobian or Hessian at a point looks like, and what it costs."""
    L = s.map(second)
    rows, across = cells(L, 64)
    names = s.names if len(s.shapes) > 1 and not s.combinator else []

    def parts(found: Any, named: bool) -> list[dict[str, Any]]:
        called = names if named and len(names) == len(found) else [p.name for p in found]
        return [
            {"name": n, "first": p.first, "cells": p.cells, "size": p.size} for n, p in zip(called, found, strict=True)
        ]

    return {
        "svg": L.picture().svg(),
        "shape": list(L.shape),
        "words": str(L.structure),
        "rows": parts(rows, second),
        "columns": parts(across, True),
        "plan": plan_data(L.plan(columns)),
    }


# -- asked for by name ------------------------------------------------------------------------------------------


def part(s: Subject, request: dict[str, Any]) -> dict[str, Any]:
    """What is shown only where somebody looks: code in C, or the order of contraction."""
    match request.get("part"):
        case "c":
            return {"code": in_c(s, "hessian" if request.get("second") and s.real else s.kind)}
        case "order":
            return {"svg": s.map().diagram(columns=_columns(request)).svg()}
        case other:
            raise UsageError(f"there is no part {str(other)[:40]!r}; parts are c and order")


def in_c(s: Subject, kind: str) -> str:
    """A derivative as C that runs alone: its header and its function."""
    with tempfile.TemporaryDirectory() as folder:
        header, source, *_ = alone(s, kind, "c", folder)
        return f"/* {header.name} */\n{header.read_text()}\n/* {source.name} */\n{source.read_text()}"


# -- at a point -------------------------------------------------------------------------------------------------


def numbers(s: Subject, request: dict[str, Any]) -> dict[str, Any]:
    """Value and derivative at a point, tests of them, and a plot of functions of one or two numbers."""
    s = _at(s, request.get("point"))
    y, L = linearize(s.function, *s.arguments)
    matrix: Any = L.to_dense() if L.shape[0] * L.shape[1] <= SHOWN else None
    found: dict[str, Any] = {
        "names": s.names,
        "shapes": [written(shape) for shape in s.shapes],
        "point": [_listed(x) for x in s.point] if s.size <= SLIDERS else None,
        "value": _short(y),
        "matrix": None if matrix is None else _listed(np.atleast_2d(matrix)),
        "shape": list(L.shape),
    }
    found["check"] = _or_error(lambda: _checked(s))
    found["plot"] = _or_error(lambda: plot(s))
    return found


def _at(s: Subject, point: Any) -> Subject:
    """The subject at a point that was given as a flat list of numbers."""
    if not isinstance(point, list) or s.size > SLIDERS:
        return s
    values: list[Any] = point
    if len(values) != s.size or not all([isinstance(x, (int, float)) and abs(x) < 1e150 for x in values]):
        raise UsageError(f"a point of this function has {s.size} numbers")
    there = Subject(s.function, s.shapes, s.title)
    there.__dict__["_derived"] = (s.shapes, s.derivation)
    flat, at, found = np.array(values, float), 0, list[Any]()
    for shape in s.shapes:
        count = math.prod(shape)
        found.append(flat[at : at + count].reshape(shape) if shape else float(flat[at]))
        at += count
    there.__dict__["point"] = found
    return there


def _checked(s: Subject) -> dict[str, Any]:
    report = check(s.function, *s.arguments, draws=1, orders=1)
    return {"passed": not report.failures, "rows": [r._asdict() for r in report.rows]}


def _listed(x: Any) -> Any:
    """Numbers as JSON has them: what is not finite is a word."""
    a = np.asarray(x, float)
    flat = [v if math.isfinite(v) else str(v) for v in a.ravel().tolist()]
    return flat[0] if not a.ndim else _nested(flat, a.shape)


def _nested(flat: list[Any], shape: tuple[int, ...]) -> list[Any]:
    for n in reversed(shape[1:]):
        flat = [flat[k : k + n] for k in range(0, len(flat), n)] if n else []
    return flat


def _short(y: Any) -> str:
    with np.printoptions(precision=5, suppress=True, threshold=20, edgeitems=3):
        text = f"{y:.6g}" if isinstance(y, float) else str(y)
    return text if len(text) <= 2000 else text[:2000] + " …"


ROUTES: dict[str, Callable[[Subject, dict[str, Any]], dict[str, Any]]] = {
    "view": view,
    "second": second,
    "numbers": numbers,
    "part": part,
}
