"""The reference: a page for each group of public names, made of their docstrings and signatures."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from pathlib import Path

import riesz as rz
from riesz.backends.entry import Compiled
from riesz.backends.profile import Profile
from riesz.backends.sparse_numbers import SparseDerivative, SparsePattern
from riesz.checking.derivative_check import Report
from riesz.constrained.nlp_result import NlpResult
from riesz.constrained.nonlinear_program import NonlinearProgram
from riesz.forms.closed_form import ClosedForm
from riesz.least_squares.fit_result import LeastSquaresResult
from riesz.maps.derivation import Derivation, Family
from riesz.maps.normal_form import Structure
from riesz.maps.planning import MapPlan
from riesz.maps.solvers.factorised import Solver
from riesz.show.diagrams.diagram import Diagram
from riesz.show.display.display_objects import Display
from riesz.show.explain import Explanation

GROUPS = {
    "derivatives": "Derivatives",
    "maps": "Linear maps",
    "combinators": "Combinators",
    "primitives": "Functions of numbers",
    "spaces": "Spaces, index sets and relations",
    "loops": "Loops, branches and batches",
    "implicit": "Implicit functions, least squares, constraints",
    "manifolds": "Manifolds, rotations and poses",
    "showing": "Showing, checking and compiling",
    "libraries": "JAX and other libraries",
    "errors": "Errors",
}
CHOSEN = {
    "derivatives": "grad value_and_grad jacobian jacfwd jacrev hessian hvp jvp vjp derive function custom_derivative "
    "dual undual sparse_jacobian sparse_hessian linearize linearize_adjoint stop_gradient Factored",
    "maps": "LinearMap",
    "spaces": "R Zero Space Set seg direct_sum space_of Relation relation relations",
    "loops": "cond switch loop fori_loop while_loop resumed_loop vmap checkpoint",
    "implicit": "root fixed_point argmin nlp gauss_newton levenberg_marquardt",
    "manifolds": "manifolds",
    "showing": "explain notation assume check check_domain compile display distributed laws verbose",
    "libraries": "from_jax jax_rule from_torch torch_rule",
}
ROOMS = {
    "terms": "combinators",
    "functions": "derivatives",
    "calculus": "derivatives",
    "maps": "maps",
    "relations": "spaces",
    "spaces": "spaces",
    "least_squares": "implicit",
    "importing": "libraries",
}
"""Where names go that are not listed, by the room they come from."""


_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", flags=re.M | re.S)


HELD = {
    "derivatives": [Derivation, ClosedForm, Family, SparseDerivative, SparsePattern],
    "maps": [Solver, Structure, MapPlan],
    "implicit": [LeastSquaresResult, NonlinearProgram, NlpResult],
    "showing": [Explanation, Display, Diagram, Compiled, Profile, Report],
}
"""What users hold and do not call by name."""


def group_of(name: str) -> str:
    """The page a name is on."""
    for group, names in CHOSEN.items():
        if name in names.split():
            return group
    if name in rz.errors.__all__:
        return "errors"
    if name in rz.primitives.__all__:
        return "primitives"
    return ROOMS.get(str(getattr(getattr(rz, name), "__module__", "")).split(".")[1:2][0], "showing")


def write(folder: Path) -> None:
    """Writes the pages."""
    folder.mkdir(exist_ok=True)
    pages: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in sorted(set(rz.__all__), key=str.lower):
        pages[group_of(name)].append(entry(f"rz.{name}", getattr(rz, name)))
    for group, things in HELD.items():
        pages[group] += [entry(thing.__name__, thing) for thing in things]
    for group, title in GROUPS.items():
        _put(folder / f"{group}.md", f"# {title}\n\n" + "\n".join(pages[group]))
    listed = "\n".join(GROUPS)
    lead = "Every public name of `import riesz as rz`, with its signature and an example; `help` says the same."
    _put(folder / "index.md", f"# Reference\n\n{lead}\n\n```{{toctree}}\n{listed}\n```\n")


def _put(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def entry(name: str, thing: object) -> str:
    """A heading, the signature, the docstring, and the public methods of a class."""
    lines = [f"## {name}", ""]
    signature = _signature(name, thing)
    lines += ["```python", signature, "```", ""] if signature else []
    lines += [prose(inspect.getdoc(thing) or ""), ""]
    for key, member in _members(thing):
        shown = _signature(key, member)
        lines += [f"### {name}.{key}", "", *(["```python", shown, "```", ""] if shown else [])]
        lines += [prose(inspect.getdoc(member) or ""), ""]
    return "\n".join(lines)


def _members(thing: object) -> list[tuple[str, object]]:
    """The public names of a module, or methods and properties of a class."""
    if inspect.ismodule(thing):
        return [(key, getattr(thing, key)) for key in sorted(thing.__all__, key=str.lower)]
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return []
    known: dict[str, object] = {}
    for kind in reversed(thing.__mro__):
        if kind.__module__.startswith("riesz"):
            known.update(vars(kind))
    kinds = (property, cached_property, classmethod, staticmethod)
    methods = [(key, x) for key, x in sorted(known.items()) if callable(x) or isinstance(x, kinds)]
    return [
        (key, x)
        for key, x in methods
        if key[0] != "_" and key != "displayed" and inspect.getdoc(x) and not inspect.isclass(x)
    ]


def _signature(name: str, thing: object) -> str:
    try:
        found = str(inspect.signature(thing)) if callable(thing) else ""  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    found = re.sub(r"<(\w[\w.]*)[^<>]*>", r"\1", found).replace("'", "")
    return f"{name}{found}" if found and len(found) < 400 else ""


def prose(doc: str) -> str:
    """A docstring in Markdown: examples as blocks, other signs as they are."""
    parts: list[str] = []
    example = False
    for block in re.split(r"\n\s*\n", doc):
        text = block.strip("\n")
        lead = text.lstrip()
        if lead.startswith(">>>") or (example and lead.startswith(("...", ">>>"))):
            dedented = inspect.cleandoc(text)
            parts.append("```pycon\n" + re.sub(r"\s*# doctest:.*", "", dedented.replace("<BLANKLINE>", "")) + "\n```")
            example = True
        elif re.search(r"^\s{2,}\S", text, flags=re.M) and "\n" in text:
            parts.append("```text\n" + inspect.cleandoc(text) + "\n```")
        else:
            said = _CODE.split(inspect.cleandoc(text))
            parts.append("".join([x if k % 2 else re.sub(r"([*_<|$\\])", r"\\\1", x) for k, x in enumerate(said)]))
    return "\n\n".join(parts)


_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s]*)\)")
_SOURCE = re.compile(r"(\.\./)*(bench|src|tests|examples|README|CONTRIBUTING|CHANGELOG|SECURITY)\b")


def with_links_inside(text: str) -> str:
    """Links to files that are no pages of the site become their words, and f[i](x) is no link."""
    parts = _CODE.split(text)
    return "".join([part if k % 2 else _LINK.sub(_kept, part) for k, part in enumerate(parts)])


def _kept(match: re.Match[str]) -> str:
    words, target = match[1], match[2]
    if re.fullmatch(r"\w*", target):
        return f"\\[{words}\\]({target})"
    page = target.startswith("http") or ((".md" in target or target.startswith("#")) and not _SOURCE.match(target))
    return match[0] if page or re.search(r"\.(png|svg)$", target) else words
