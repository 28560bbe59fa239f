"""The subcommands: what each prints."""

from __future__ import annotations

import html
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ..checking.derivative_check import check as checked
from ..functions.gradients import grad
from ..maps.derivation import Derivation
from ..show.derivation_steps import unfolded
from ..show.display.displays import display
from ..show.explain import Explanation
from ..show.face import written as written_in
from ..show.latex_alphabet import LATEX
from ..show.mathml_alphabet import MATHML, typeset
from ..show.notation import UNICODE, Notation
from .arguments import FOLDERS, TARGETS, UsageError
from .subjects import Subject, subject, written

LATER = {"cuda": "CUDA", "rust": "Rust", "fortran": "Fortran", "lean": "Lean", "onnx": "ONNX"}
"""Targets that people ask for, and that are not there yet."""


def _subject(given: Any) -> Subject:
    found = subject(given.subject, given.shapes, getattr(given, "seed", 0))
    if found.guessed and not found.combinator:
        shapes = " ".join([written(s) for s in found.shapes])
        print(f"riesz: no --shapes given, taken as {shapes}", file=sys.stderr)
    return found


def _write(given: Any, text: str) -> int:
    """A result to its file, or to standard output."""
    text = text if text.endswith("\n") else text + "\n"
    if getattr(given, "output", None):
        try:
            Path(given.output).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise UsageError(f"cannot write {given.output}: {problem.strerror}") from None
        print(f"riesz: wrote {given.output}", file=sys.stderr)
    else:
        given.out.write(text)
    return 0


def _json(given: Any, data: Any) -> int:
    return _write(given, json.dumps(data, ensure_ascii=False, indent=2))


def head(s: Subject) -> dict[str, Any]:
    """The function of an answer, as data."""
    f = s.derivation.function
    shapes = [written(shape) for shape in s.shapes]
    return {"function": s.title, "arguments": s.names, "shapes": shapes, "type": f"{f.domain} → {f.codomain}"}


def document(title: str, body: str) -> str:
    """A page of its own, without scripts."""
    style = "body{font:16px/1.5 system-ui;margin:2em auto;max-width:60em;padding:0 1em;color-scheme:light dark}"
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{style}math{{font-size:1.15em}}</style>\n<h1>{html.escape(title)}</h1>\n{body}\n</html>"
    )


# -- derivations -----------------------------------------------------------------------------------------------


def derive(given: Any) -> int:
    """Value, derivative and adjoint, and the closed form."""
    s = _subject(given)
    D, form = s.derivation, getattr(s.derivation, s.kind)
    parts = {"matrix": (s.kind, form), "paper": ("derivation", D)}
    chosen = [parts[k] for k in ("matrix", "paper") if given.notation in (k, "both")]
    match given.format:
        case "unicode":
            shown = [
                f"{title} =\n{_indented(str(x))}" if len(chosen) > 1 and x is form else str(x) for title, x in chosen
            ]
            return _write(given, "\n\n".join(shown))
        case "latex":
            return _write(given, "\n\n".join([x.latex() for _, x in chosen]))
        case "mathml":
            return _write(given, "\n".join([x.mathml() for _, x in chosen]))
        case "html":
            return _write(given, document(s.title, "\n".join([f"<h2>{t}</h2>\n{x.mathml()}" for t, x in chosen])))
        case _:
            both = {t: {"unicode": str(x), "latex": x.latex(), "mathml": x.mathml()} for t, x in chosen}
            maps = {"value": D.value, "derivative": D.derivative, "adjoint": D.adjoint}
            programs = {name: {"unicode": str(x), "steps": len(x)} for name, x in maps.items()}
            return _json(given, head(s) | both | programs)


def _indented(text: str) -> str:
    return "\n".join([f"  {line}" for line in text.splitlines()])


def explain(given: Any) -> int:
    """The derivation, rule by rule."""
    s = _subject(given)
    found = Explanation(s.derivation)
    match given.format:
        case "unicode":
            return _write(given, str(found))
        case "latex":
            return _write(given, film(s.derivation, LATEX))
        case "mathml":
            return _write(given, typeset(film(s.derivation, MATHML)))
        case "html":
            return _write(given, document(s.title, typeset(film(s.derivation, MATHML)) + display(found).html()))
        case _:
            states = [step._asdict() for step in unfolded(s.derivation, UNICODE)]
            rows = {"rules": found.rules, "adjoints": found.adjoints}
            lists = {k: [{"equation": a, "reason": b} for a, b in v] for k, v in rows.items()}
            return _json(given, head(s) | lists | {"states": states})


def film(D: Derivation, n: Notation) -> str:
    """The derivative after each rule, line by line; of large functions only the derivative."""
    steps = unfolded(D, n)
    lines = [f"{step.state} {n.prose(f'   ({step.reason})')}" for step in steps]
    return n.lines(lines) if lines else written_in(n, D.derivative)


def export(given: Any) -> int:
    """The closed form as code."""
    if given.to in FOLDERS:
        return _export_alone(given)
    if given.to not in TARGETS:
        known = ", ".join((*TARGETS, *FOLDERS))
        later = f"{LATER[given.to]} is not written yet" if given.to in LATER else f"{given.to!r} is not known"
        raise UsageError(f"--to {given.to}: {later}; the targets are {known}")
    s = _subject(given)
    return _write(given, getattr(s.derivation, given.kind or s.kind).code(given.to))


def _export_alone(given: Any) -> int:
    """C or WebAssembly: a folder."""
    if not given.output:
        raise UsageError(f"--to {given.to} writes a folder: give its name with -o")
    s = _subject(given)
    for file in alone(s, given.kind or s.kind, given.to, given.output):
        print(f"riesz: wrote {file}", file=sys.stderr)
    return 0


def alone(s: Subject, kind: str, to: str, folder: str) -> list[Path]:
    """A derivative as files of another language."""
    from ..backends.entry import compile as compiled
    from ..functions.jacobians import hessian, jacobian

    make: Any = {"gradient": grad, "jacobian": jacobian, "hessian": hessian}[kind]
    arguments = s.arguments
    every = tuple(range(len(arguments))) if len(arguments) > 1 else 0
    return compiled(make(s.function, every), *arguments).export(to, folder)


# -- maps at a point -------------------------------------------------------------------------------------------


def check(given: Any) -> int:
    """Taylor and adjoint tests at a random point; 1 where one fails."""
    s = _subject(given)
    report = checked(s.function, *s.arguments)
    if given.format == "json":
        _json(given, head(s) | {"passed": not report.failures, "rows": [r._asdict() for r in report.rows]})
    else:
        _write(given, _coloured(str(report), given.out))
    return 1 if report.failures else 0


def _coloured(table: str, out: IO[str]) -> str:
    if not out.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return table
    marks = {"ok": "\x1b[32mok\x1b[0m", "FAILED": "\x1b[31mFAILED\x1b[0m"}
    lines: list[str] = []
    for line in table.splitlines():
        end = next((k for k in marks if line.endswith(f"  {k}")), None)
        lines.append(line[: -len(end)] + marks[end] if end else line)
    return "\n".join(lines)


def spy(given: Any) -> int:
    """Where the numbers of the Jacobian or Hessian are."""
    s = _subject(given)
    L = s.map(given.hessian)
    if given.output is None:
        return _write(given, str(L.spy(text=True)))
    return _write(given, L.picture().svg())


def diagram(given: Any) -> int:
    """The derivative, or its adjoint, as a string diagram."""
    if given.columns is not None and given.columns < 0:
        raise UsageError(f"--columns {given.columns}: the number of right-hand sides is 0 or more")
    L = _subject(given).map()
    return _write(given, (L.H if given.adjoint else L).diagram(columns=given.columns).svg(alone=True))


def cost(given: Any) -> int:
    """The ways of applying the derivative, and which is cheapest."""
    s = _subject(given)
    if min(given.columns) < 0:
        raise UsageError(f"--columns {min(given.columns)}: the number of right-hand sides is 0 or more")
    L = s.map()
    plans = [L.plan(k) for k in given.columns]
    if given.format == "json":
        return _json(given, head(s) | {"structure": str(L.structure), "plans": [plan_data(p) for p in plans]})
    return _write(given, "\n\n".join([str(p) for p in plans]))


def plan_data(plan: Any) -> dict[str, Any]:
    """A plan as data."""
    ways = [{**w._asdict(), "together": w.total(plan.columns), "chosen": w is plan.chosen} for w in plan.ways]
    return {"columns": plan.columns, "structure": plan.words, "ways": ways}


# -- times -----------------------------------------------------------------------------------------------------


def bench(given: Any) -> int:
    """How long value, gradient and products take; medians."""
    s = _subject(given)
    args = s.arguments
    L = s.map()
    v, w = L.domain.wrap([*map(_ones, L.domain.leaves)]), L.codomain.wrap([*map(_ones, L.codomain.leaves)])
    rows: list[tuple[str, Callable[[], Any]]] = [("value", lambda: s.function(*args))]
    if s.real:
        moving = 0 if s.combinator else tuple(range(len(s.point)))
        gradient = grad(s.function, moving)
        rows.append(("gradient", lambda: gradient(*args)))
    rows += [("Jacobian at a point", s.map), ("its product with a vector", lambda: L(v))]
    H = L.H
    rows.append(("its adjoint's product", lambda: H(w)))
    found = [(name, *_median(f, given.seconds)) for name, f in rows]
    if given.format == "json":
        return _json(given, head(s) | {"times": [{"what": n, "seconds": t, "runs": k} for n, t, k in found]})
    width = max([len(name) for name, *_ in found])
    return _write(given, "\n".join([f"{name:{width}}  {_shown(t):>10}  median of {k:,} runs" for name, t, k in found]))


def _ones(leaf: Any) -> Any:
    import numpy as np

    return np.ones(leaf.shape) if leaf.shape else 1.0


def _median(f: Callable[[], Any], seconds: float) -> tuple[float, int]:
    f()
    times: list[float] = []
    end = time.perf_counter() + max(seconds, 0.0)
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return statistics.median(times), len(times)


def _shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
