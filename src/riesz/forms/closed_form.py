"""`D.gradient`, `D.jacobian`, `D.hessian`: derivatives at every point, printed as a textbook writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..calculus.derive import derive_program
from ..errors import RieszError, SpaceError
from ..functions.directional import hvp
from ..functions.gradients import grad
from ..functions.jacobians import hessian, jacobian
from ..functions.point_protocol import at_one, into_reals
from ..functions.points import argument_names, point
from ..maps.derivation import Derivation
from ..programs.passes.deferring import without_guards
from ..programs.program import Program
from ..show.notation import LATEX, UNICODE, Notation
from ..spaces.space import Space
from ..terms.term import Arrow
from .familiar import familiar, mirrored
from .form_code import function_code
from .form_laws import applied
from .form_text import FormText, lines, shared_parts
from .layout import Layout, Tree
from .lifting import captured, lifted, plain_function
from .polynomials import Algebra, Form, Unreadable
from .reading import Reader


class ClosedForm:
    """A derivative for every point: call it, print it, take its `latex()` and its `code("numpy")`."""

    def __init__(self, kind: str, of: Derivation) -> None:
        self.kind, self._of = kind, of
        self._written: Written | None = None

    def __call__(self, *args: Any) -> Any:
        return self._run(*args)

    @property
    def _run(self) -> Callable[..., Any]:
        f, several = self._of.source, len(_spaces(self._of)) > 1 and not isinstance(self._of.source, Arrow)
        moving = tuple(range(len(_spaces(self._of)))) if several else 0
        return {"gradient": grad, "jacobian": jacobian, "hessian": hessian}[self.kind](f, moving)

    @property
    def written(self) -> Written:
        """The expressions, laid out when first asked for."""
        if self._written is None:
            self._written = Written(self.kind, self._of)
        return self._written

    def __repr__(self) -> str:
        return self.written.text(UNICODE)

    def latex(self) -> str:
        """The same in LaTeX."""
        return self.written.text(LATEX)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def code(self, target: str = "numpy") -> str:
        """A function of its own: "numpy", "jax", "torch", or "latex"."""
        return self.latex() if target == "latex" else self.written.code(target)


def closed_form(kind: str, of: Derivation) -> ClosedForm:
    """One of the closed forms of a derivation."""
    return ClosedForm(kind, of)


def product_with_hessian(of: Derivation) -> Callable[..., Any]:
    """(x, v) ↦ ∇²f(x) v."""
    return hvp(of.source)


def _spaces(of: Derivation) -> tuple[Space, ...]:
    return of.spaces


class Written:
    """The expressions of a closed form: a head for each argument, parts with names, and what the arguments are."""

    def __init__(self, kind: str, of: Derivation) -> None:
        self.kind = kind
        self.algebra = Algebra()
        self.algebra.laws = applied
        self.layout = Layout(self.algebra)
        self.arguments, self.names, forms, self.reader = self._forms(of)
        heads = [self._tree(x) for x in forms]
        parts = [(name, self._tree(x)) for name, x in self.reader.parts]
        self.heads: list[tuple[str, Tree]] = list(zip(self._titles(), heads, strict=True))
        roots = [*heads, *[t for _, t in parts]]
        self.spectra = [(values, vectors, self._tree(x)) for x, (values, vectors) in self.reader.spectra.items()]
        roots += [t for *_, t in self.spectra]
        self.where = [*shared_parts(roots, [*self.reader.taken, *self.reader.constants], {}), *parts]

    def _tree(self, x: Form) -> Tree:
        return self.layout.folded(self.layout.tree(x))

    def _titles(self) -> list[str]:
        count = len(self.arguments)
        if count == 1:
            return [""]
        if self.kind == "hessian":
            return [f"∂²f/∂{a}∂{b}" for a in self.arguments for b in self.arguments]
        return [f"∂f/∂{a}" for a in self.arguments]

    # -- from the function to forms -----------------------------------------------------------------------

    def _forms(self, of: Derivation) -> tuple[list[str], list[str], list[Form], Reader]:
        """Read from a trace in which captured arrays are arguments; without those that prevent it."""
        f, spaces = of.source, _spaces(of)
        rng = np.random.default_rng(0)
        example = [V.random(rng) for V in spaces]
        if isinstance(f, Arrow):
            names = ["x"] if len(spaces) == 1 else [f"x{i}" for i in range(len(spaces))]
            return self._read(f, [example[0] if len(example) == 1 else tuple(example)], names, 1, {})
        names = argument_names(f, len(spaces))
        plain = plain_function(f)
        known = captured(plain) if plain is not None else {}
        while known and plain is not None:
            try:
                opened = lifted(plain, list(known), len(spaces))
                return self._read(opened, [*example, *known.values()], names, len(spaces), known)
            except (RieszError, TypeError, ValueError, AttributeError):
                known.popitem()
        return self._read(f, example, names, len(spaces), {})

    def _read(
        self, f: Any, values: list[Any], names: list[str], count: int, outside: dict[str, Any]
    ) -> tuple[list[str], list[str], list[Form], Reader]:
        at = point(f, tuple(values), {}, tuple(range(count)) if not isinstance(f, Arrow) else 0, None, False, "a closed form")
        at.settle()
        arguments = _leaf_names(names[:count], at)
        every = [*arguments, *outside]
        facts = {name: np.asarray(v) for name, v in outside.items()}
        self.algebra.stochastic |= {k for k, v in facts.items() if v.ndim == 2 and np.allclose(v.sum(1), 1)}
        reader = Reader(self.algebra, facts, every)
        program = familiar(at.plain)
        self.symmetric = [every[k] for k in mirrored(at.plain) if every[k] not in outside]
        inputs = [
            self.algebra.array(k, np.shape(v), k in self.symmetric or _symmetric(facts.get(k)))
            for k, v in zip(every, at.leaves, strict=True)
        ]
        moving = [k for k, moves in enumerate(at.moving) if moves]
        read = lambda program, xs: reader.read(without_guards(program), xs)  # noqa: E731
        if self.kind != "jacobian":
            into_reals(at)
            both = at_one(derive_program(program, at.moving), at.domain)
            program = both.prune(both.inputs, both.outputs[1:])
        if self.kind == "gradient":
            return arguments, every, read(program, inputs), reader
        derivative: Program = derive_program(program, at.moving).derivative
        found: list[Form] = []
        for k in moving:
            directions = [self.algebra.array(f"∂{arguments[j]}", np.shape(at.leaves[j])) for j in moving]
            given = [d if j == k else self.algebra.form(d.shape, []) for j, d in zip(moving, directions, strict=True)]
            one = directions[moving.index(k)].single
            assert one is not None
            for y in read(derivative, [*inputs, *given]):
                self.layout.rows = y.rank
                found.append(self.algebra.coefficient(y, one.atom))
        if self.kind == "hessian" and len(moving) > 1:
            n = len(moving)
            found = [found[j * n + i] for i in range(n) for j in range(n)]
        return arguments, every, found, reader

    # -- output -------------------------------------------------------------------------------------------

    def text(self, notation: Notation) -> str:
        """In a notation: one line for each head, then the parts that have names."""
        heads, parts = lines(self.layout, notation, self.heads, self.where)
        shown = [f"{title} = {text}" if title else text for title, text in heads]
        if notation.latex:
            where = [f"{notation.variable(name)} = {text}" for name, text in parts]
            body = r" \\ ".join(shown)
            body = rf"\begin{{gathered}} {body} \end{{gathered}}" if len(shown) > 1 else body
            return body + (r" \quad\text{where } " + r",\; ".join(where) if where else "")
        where = [f"{name} = {text}" for name, text in parts]
        writer = FormText(notation, {t.id: name for name, t in self.where})
        where += [f"{writer.text(t)} = {V} diag({values}) {V}ᵀ" for values, V, t in self.spectra]
        where += [f"{name} = I{'₀₁₂₃₄₅₆₇₈₉'[n] if n < 10 else ''}[{rows}]" for name, (n, rows) in self.reader.chosen.items()]
        where += [f"{name}ᵀ = {name}" for name in self.symmetric]
        return "\n".join(shown) + ("\n  where " + "\n        ".join(where) if where else "")

    def code(self, target: str) -> str:
        """As a function in a language."""
        arguments = [*self.names, *self.reader.constants]
        return function_code(target, self.kind, arguments, [t for _, t in self.heads], self.where, self.text(UNICODE), self.reader.chosen, self.spectra)


def _leaf_names(names: list[str], at: Any) -> list[str]:
    """A name for each leaf of the arguments."""
    owners = getattr(at, "owners", None)
    if owners is None:
        return names if len(at.leaves) == 1 else [f"x{i}" for i in range(len(at.leaves))]
    found: list[str] = []
    for name, mine in zip(names, owners, strict=False):
        found += [name] if len(mine) == 1 else [f"{name}{i}" for i in range(len(mine))]
    return found


def _symmetric(value: Any) -> bool:
    return value is not None and value.ndim == 2 and value.shape[0] == value.shape[1] and np.allclose(value, value.T)


__all__ = ["ClosedForm", "SpaceError", "Unreadable", "closed_form", "product_with_hessian"]
