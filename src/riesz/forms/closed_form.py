"""`D.gradient`, `D.jacobian`, `D.hessian`: derivatives at every point, printed as a textbook writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..calculus.derive import derive_program
from ..errors import ExpressionError, RieszError
from ..functions.directional import hvp
from ..functions.function import filled
from ..functions.gradients import grad
from ..functions.jacobians import hessian, jacobian
from ..functions.point_protocol import AnyPoint, at_one, into_reals
from ..functions.points import argument_names, point
from ..maps.derivation import Derivation, Value
from ..programs.passes.deferring import without_guards
from ..programs.program import Program
from ..show.face import latex, text
from ..show.notation import LATEX, UNICODE, Notation
from ..terms.term import Arrow
from ..tracing.argument_trees import flatten, unflatten
from .expression_trees import Tree
from .familiar import familiar, mirrored
from .form_code import RESERVED, Definitions, function_code
from .form_laws import applied
from .form_text import FormText, shared_parts
from .lifting import Lifting, holds
from .matrix_layout import Layout
from .polynomials import Algebra, Polynomial, Unreadable
from .reading import CUT, Reader

DERIVATIVES: dict[str, Callable[..., Any]] = {"gradient": grad, "jacobian": jacobian, "hessian": hessian}


class ClosedForm:
    """A derivative for every point: call it, print it, take its `latex()` and its `code("numpy")`.

    >>> import numpy as np, riesz as rz
    >>> A, b = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.ones(3)
    >>> D = rz.derive(lambda x: np.sum((A @ x - b) ** 2), rz.R ** 2)
    >>> D.gradient
    2Aᵀ(Ax − b)
    >>> D.hessian
    2AᵀA
    >>> D.gradient(np.zeros(2))
    array([-18., -24.])
    """

    def __init__(self, kind: str, of: Derivation, argument: str | None = None) -> None:
        self.kind, self._of, self._argument = kind, of, argument

    @property
    def _several(self) -> bool:
        return len(self._of.origin().spaces) > 1 and not isinstance(self._of.origin().function, Arrow)

    def __call__(self, *args: Any) -> Any:
        moving: Any = tuple(range(len(self._of.origin().spaces))) if self._several else 0
        if self._argument is not None:
            moving = self.written().arguments.index(self._argument)
        return DERIVATIVES[self.kind](self._of.origin().function, moving)(*args)

    def __getitem__(self, name: str) -> ClosedForm:
        """The derivative in one argument, by its name."""
        if self.kind == "hessian" or name not in self.written().arguments:
            known = ", ".join(self.written().arguments)
            raise ExpressionError(f"{self.kind}[{name!r}]: the {self.kind} of this function is in {known}")
        return ClosedForm(self.kind, self._of, name)

    def written(self) -> WrittenForm:
        """The expressions, laid out when first asked for."""
        known = self._of.origin().forms
        if self.kind not in known:
            known[self.kind] = WrittenForm(self.kind, self._of)
        return known[self.kind]

    def __repr__(self) -> str:
        return self.written().text(UNICODE, self._argument)

    def latex(self) -> str:
        """The same in LaTeX."""
        return self.written().text(LATEX, self._argument)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def code(self, target: str = "numpy") -> str:
        """A function of its own in "numpy", "jax", "torch", "julia" or "matlab"; "text" is for `rz.function`, "latex"
        is the formula.

        >>> import numpy as np, riesz as rz
        >>> A, b = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.ones(3)
        >>> print(rz.derive(lambda x: np.sum((A @ x - b) ** 2), rz.R ** 2).gradient.code("numpy"))
        import numpy as np
        <BLANKLINE>
        <BLANKLINE>
        def gradient(x, A, b):
            \"\"\"2Aᵀ(Ax − b)\"\"\"
            return 2 * A.T @ (A @ x - b)
        <BLANKLINE>
        """
        return self.latex() if target == "latex" else self.written().code(target, self._argument)


def closed_form(kind: str, of: Derivation) -> ClosedForm:
    """One of the closed forms of a derivation."""
    return ClosedForm(kind, of)


def product_with_hessian(of: Derivation) -> Callable[..., Any]:
    """(x, v) ↦ ∇²f(x) v."""
    return hvp(of.origin().function)


@dataclass
class NamedFunction:
    """A function at a point with names: of its arguments, then of what it captures."""

    at: AnyPoint
    arguments: list[str]
    outside: dict[str, Any] = field(default_factory=dict)
    locals: dict[str, int] = field(default_factory=dict)  # outputs of its program
    facts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Of the leaves, in order."""
        return [*self.arguments, *self.outside]


class WrittenForm:
    """The expressions of a closed form: a head for each argument, and parts with names. A derivative that has no closed
    form is written as the program that computes it."""

    def __init__(self, kind: str, of: Derivation) -> None:
        self.kind, self.of = kind, of
        self.algebra = Algebra()
        self.algebra.laws = applied
        self.layout = Layout(self.algebra)
        self.function = _named(of)
        self.arguments = self.function.arguments
        self.heads: list[Tree] = []
        self.problem = ""
        try:
            self._lay_out()
        except Unreadable as problem:
            self.problem = str(problem)

    def _lay_out(self) -> None:
        facts = {name: np.asarray(v) for name, v in self.function.outside.items()}
        self.reader = Reader(self.algebra, facts, self.function.names)
        forms = self._forms()
        self.heads = [self._tree(x) for x in forms]
        parts = [(name, self._tree(x)) for name, x in self.reader.parts]
        self.spectra = [(values, vectors, self._tree(x)) for x, (values, vectors) in self.reader.spectra.items()]
        roots = [*self.heads, *[t for _, t in parts], *[t for *_, t in self.spectra]]
        self.where = _in_order([*shared_parts(roots, self.reader.taken, self._locals()), *parts])

    def _tree(self, x: Polynomial) -> Tree:
        return self.layout.trees.folded(self.layout.tree(x))

    # -- from the function to forms -----------------------------------------------------------------------

    def _inputs(self) -> list[Polynomial]:
        """The arguments and captured arrays as forms, with what is known of them."""
        at, outside = self.function.at, self.function.outside
        facts = {name: set(known) for name, known in self.function.facts.items()}
        for k in mirrored(at.plain):
            facts.setdefault(self.function.names[k], set()).add("symmetric")
        self.symmetric = [name for name, known in facts.items() if "symmetric" in known and name not in outside]
        for name, value in outside.items():
            seen = [fact for fact in ("symmetric", "stochastic") if holds(fact, np.asarray(value))]
            facts.setdefault(name, set()).update(seen)
        self.algebra.stochastic |= {name for name, known in facts.items() if "stochastic" in known}
        self.algebra.orthogonal |= {name for name, known in facts.items() if "orthogonal" in known}
        leaves = zip(self.function.names, at.leaves, strict=True)
        return [self.algebra.array(k, np.shape(v), "symmetric" in facts.get(k, ())) for k, v in leaves]

    def _read(self, program: Program, inputs: list[Polynomial]) -> list[Polynomial]:
        return self.reader.read(without_guards(program), inputs)

    def _forms(self) -> list[Polynomial]:
        at, inputs = self.function.at, self._inputs()
        program = familiar(at.plain)
        if self.kind != "jacobian":
            into_reals(at)
            both = at_one(derive_program(program, at.moving), at.domain)
            program = both.prune(both.inputs, both.outputs[1:])
        if self.kind == "gradient":
            return self._read(program, inputs)
        derivative: Program = derive_program(program, at.moving).derivative
        moving = [k for k, moves in enumerate(at.moving) if moves]
        directions = [self.algebra.array(f"∂{self.arguments[k]}", np.shape(at.leaves[k])) for k in moving]
        columns: list[list[Polynomial]] = []
        for direction in directions:
            given = [d if d is direction else self.algebra.form(d.shape, []) for d in directions]
            one = direction.single
            assert one is not None
            column: list[Polynomial] = []
            for y in self._read(derivative, [*inputs, *given]):
                self.layout.rows = y.rank
                column.append(self.algebra.coefficient(y, one.atom))
            columns.append(column)
        return [column[i] for i in range(len(columns[0])) for column in columns]

    def _locals(self) -> dict[int, str]:
        """The user's own names for parts, by the trees of these."""
        at, named = self.function.at, self.function.locals
        if not named:
            return {}
        found: dict[int, str] = {}
        program = at.program()
        try:
            small = program.prune(program.inputs, [program.outputs[k] for k in named.values()])
            reader = Reader(self.algebra, self.reader.known, self.function.names)
            forms = reader.read(without_guards(small), self._inputs())
            for name, x in zip(named, forms, strict=True):
                if not reader.chosen and not reader.parts and name not in self.reader.taken | RESERVED:
                    found[self._tree(x).id] = name
        except Unreadable:
            return found
        return found

    # -- output -------------------------------------------------------------------------------------------

    def titles(self) -> list[str]:
        """What each head is."""
        if len(self.heads) == 1:
            return [""]
        if self.kind == "hessian":
            return [f"∂²f/∂{a}∂{b}" for a in self.arguments for b in self.arguments]
        rows = len(self.heads) // len(self.arguments)
        names = ["f"] if rows == 1 else [f"f{i}" for i in range(rows)]
        return [f"∂{f}/∂{a}" for f in names for a in self.arguments]

    def _chosen(self, argument: str | None) -> list[tuple[str, Tree]]:
        rows = list(zip(self.titles(), self.heads, strict=True))
        if argument is None:
            return rows
        k, count = self.arguments.index(argument), len(self.arguments)
        kept = [t for i, (_, t) in enumerate(rows) if i % count == k]
        return [("", t) for t in kept]

    def text(self, notation: Notation, argument: str | None = None) -> str:
        """In a notation: one line for each head, then the parts that have names."""
        if self.problem:
            return self._program_text(notation)
        names = {t.id: name for name, t in self.where}
        writer = FormText(notation, names)
        heads = self._chosen(argument)
        shown = [f"{_title(notation, title)} = {writer.text(t)}" if title else writer.text(t) for title, t in heads]
        used = _used([t for _, t in heads], dict(self.where))
        where = [f"{notation.variable(name)} = {writer.text(t, top=True)}" for name, t in self.where if name in used]
        where += [f"{writer.text(t)} = {V} {_diag(notation, k)} {notation.turned((V, 4))}" for k, V, t in self.spectra]
        for name, (n, rows) in self.reader.chosen.items():
            where.append(f"{notation.variable(name)} = {notation.sub('I', n)}[{rows}]")
        where += [
            f"{notation.turned((notation.variable(name), 4))} = {notation.variable(name)}" for name in self.symmetric
        ]
        if notation.latex:
            body = r" \\ ".join(shown)
            body = rf"\begin{{gathered}} {body} \end{{gathered}}" if len(shown) > 1 else body
            return body + (r" \quad\text{where } " + r",\; ".join(where) if where else "")
        return "\n".join(shown) + ("\n  where " + "\n        ".join(where) if where else "")

    def _program_text(self, notation: Notation) -> str:
        at = self.function.at if isinstance(self.of.origin().function, Arrow) else _traced_once(self.of)
        program = at.gradient() if self.kind != "jacobian" else at.plain
        if self.kind == "gradient":
            shown: Any = Value(program, at.domain, at.domain, tuple(self.arguments))
        else:
            shown = self.of.derivative if self.kind == "jacobian" else program
        return latex(shown) if notation.latex else text(shown)

    def code(self, target: str, argument: str | None = None) -> str:
        """As a function in a language."""
        if self.problem:
            raise ExpressionError(
                f"this {self.kind} has no closed form ({self.problem}); rz.compile(rz.grad(f), x).source is code"
            )
        arguments = [*self.function.names, *self.reader.constants]
        heads = [t for _, t in self._chosen(argument)]
        formula = self.text(UNICODE, argument)
        given = Definitions(self.where, self.reader.chosen, self.spectra)
        return function_code(target, self.kind, arguments, heads, given, formula)


def _title(notation: Notation, title: str) -> str:
    if not notation.latex:
        return title
    above, below = title.split("/")
    over = "".join([f"\\partial {notation.variable(name)}" for name in below.split("∂") if name])
    power = "^2" if above.startswith("∂²") else ""
    return f"\\frac{{\\partial{power} {notation.variable(above.lstrip('∂²'))}}}{{{over}}}"


def _diag(notation: Notation, values: str) -> str:
    return f"\\operatorname{{diag}}({notation.variable(values)})" if notation.latex else f"diag({values})"


def _used(roots: list[Tree], parts: dict[str, Tree]) -> set[str]:
    """The named parts that trees mention, directly or through others."""
    names = {t.id: name for name, t in parts.items()}
    found, waiting = set[str](), list(roots)
    while waiting:
        new = _mentioned(waiting, parts, names) - found
        found |= new
        waiting = [kid for name in new for kid in parts[name].kids or (parts[name],)]
    return found


def _mentioned(roots: Iterable[Tree], parts: dict[str, Tree], names: dict[int, str]) -> set[str]:
    """The named parts that trees mention directly."""
    found, seen, waiting = set[str](), set[int](), list(roots)
    while waiting:
        t = waiting.pop()
        if t.id in seen:
            continue
        seen.add(t.id)
        name = t.value if t.kind == "symbol" and t.value in parts else names.get(t.id)
        if name is not None:
            found.add(name)
        else:
            waiting += t.kids
    return found


def _in_order(where: list[tuple[str, Tree]]) -> list[tuple[str, Tree]]:
    """Named parts, each after those that it mentions."""
    parts = dict(where)
    names = {t.id: name for name, t in where}
    done: dict[str, Tree] = {}
    for first in parts:
        stack = [(first, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                done[name] = parts[name]
            elif name not in done:
                before = _mentioned(parts[name].kids or (parts[name],), parts, names) - {name, *done}
                stack += [(name, True), *[(other, False) for other in sorted(before)]]
    return list(done.items())


def _named(of: Derivation) -> NamedFunction:
    """The function at an example point, with names for all that can have one."""
    f, spaces, _ = of.origin()
    rng = np.random.default_rng(0)
    example = [V.random(rng) for V in spaces]
    if isinstance(f, Arrow):
        at = point(f, (example[0],), {}, 0, None, False, "a closed form")
        return NamedFunction(at, ["x"] if len(at.leaves) == 1 else [f"x{i}" for i in range(len(at.leaves))])
    count = len(spaces)
    names = list(of.names) if of.names is not None and len(of.names) == count else argument_names(f, count)
    names = names[:count]
    opened = Lifting(f)
    known = opened.known
    while opened.function is not None:
        try:
            values = (*example, *known.values())
            function = opened.lifted(count, len(of.programs.value) <= CUT)
            at = point(function, values, {}, tuple(range(count)), None, True, "a closed form")
            at.settle()
            return _with_locals(at, _leaf_names(names, example, known), known)
        except (RieszError, TypeError, ValueError, AttributeError):
            if not known:
                break
            opened.drop()
    return NamedFunction(_traced_once(of), _leaf_names(names, example))


def _traced_once(of: Derivation) -> AnyPoint:
    """The function as it is, with numbers for what it captures."""
    rng = np.random.default_rng(0)
    example = tuple([V.random(rng) for V in of.origin().spaces])
    try:
        at = point(of.origin().function, example, {}, tuple(range(len(example))), None, False, "a closed form")
    except (RieszError, TypeError, ValueError, AttributeError):  # what it captures is another thing by now
        whole = example[0] if len(example) == 1 else example
        at = point(of.function, (whole,), {}, 0, None, False, "a closed form")
    at.settle()
    return at


def _with_locals(at: Any, names: list[str], outside: dict[str, Any]) -> NamedFunction:
    found = NamedFunction(at, names, outside)
    program = at.program()
    places = range(at.main, len(program.outputs))
    variables, assumed = unflatten(at.aux_tree, filled(at.record.results[at.main :], places))
    inputs = {slot: found.names[k] for k, slot in enumerate(program.inputs)}
    for key, k in assumed.items():
        name = inputs.get(program.outputs[k])
        if name is not None:
            found.facts[name] = (*found.facts.get(name, ()), *key.split()[1:])
    found.locals = {name: k for name, k in variables.items() if program.outputs[k] not in inputs}
    return found


def _leaf_names(names: list[str], example: list[Any], outside: Iterable[str] = ()) -> list[str]:
    """A name for each leaf of the arguments: keys and attributes stand for themselves where no other has that name."""
    taken = {*outside, *RESERVED}
    paths: list[tuple[str, str]] = []
    for name, value in zip(names, example, strict=True):
        below = flatten(_paths(value, ""))[0]
        paths += [(name, path) for path in below] if below != [""] else [(name, "")]
    short = [path.rsplit(".", 1)[-1] or name for name, path in paths]
    found: list[str] = []
    for word, (name, path) in zip(short, paths, strict=True):
        clear = word.isidentifier() and short.count(word) == 1 and word not in taken
        word = word if clear else name + re.sub(r"\W", "_", path)
        while word in taken:
            word += "_"
        taken.add(word)
        found.append(word)
    return found


def _paths(value: Any, path: str) -> Any:
    """The same containers with the path of each leaf in its place."""
    if isinstance(value, dict):
        return {k: _paths(v, f"{path}.{k}") for k, v in value.items()}  # type: ignore[misc]
    if isinstance(value, (tuple, list)):
        return [_paths(v, f"{path}.{k}") for k, v in enumerate(value)]  # type: ignore[misc]
    return path
