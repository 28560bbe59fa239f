"""`D.gradient`, `D.jacobian`, `D.hessian`: derivatives at every point, printed as a textbook writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from ..calculus.derive import derive_program
from ..errors import ExpressionError, RieszError
from ..functions.directional import hvp
from ..functions.gradients import grad
from ..functions.jacobians import hessian, jacobian
from ..functions.point_protocol import AnyPoint, at_one, into_reals
from ..functions.points import argument_names, point
from ..functions.traces.records import filled
from ..maps.derivation import Derivation, Family, Value
from ..maps.structured import Shown
from ..programs.passes.deferring import without_guards
from ..programs.program import Program
from ..show.face import NOTATIONS, PRINTERS, written
from ..show.notation import ATOM, UNICODE, Notation
from ..terms.term import Arrow
from ..tracing.argument_trees import flatten, unflatten
from .expression_trees import Tree, symbols_of
from .familiar import familiar, mirrored
from .form_code import RESERVED, Decomposition, Definitions, function_code
from .form_text import FormText, shared_parts
from .laws.all_laws import applied, applied_to_sums
from .lifting import Lifting, holds
from .matrix_layout import Layout
from .polynomials import Algebra, Atom, Polynomial, Unreadable
from .reading import CUT, Reader
from .selections import Selected

DERIVATIVES: dict[str, Callable[..., Any]] = {"gradient": grad, "jacobian": jacobian, "hessian": hessian, "hvp": hvp}


class ClosedForm(Shown):
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

    def __init__(self, kind: str, of: Derivation, argument: str | tuple[str, str] | None = None) -> None:
        self.kind, self._of, self.argument = kind, of, argument

    @property
    def problem(self) -> str:
        """Why there is no closed form, and the derivative is shown as a program; empty where there is one.

        >>> import numpy as np, riesz as rz
        >>> rz.derive(lambda x: np.sort(x)[0], rz.R ** 3).gradient.problem
        'a step argsort'
        """
        return self.written().problem

    @property
    def _several(self) -> bool:
        return len(self._of.origin().spaces) > 1 and not isinstance(self._of.origin().function, Arrow)

    def __call__(self, *args: Any) -> Any:
        return self._derivative(self._of.origin().function)(*args)

    def _derivative(self, f: Any) -> Any:
        """The derivative of a function in what this form is in."""
        if self.kind == "hvp":
            count = len(self._of.origin().spaces)
            whole = lambda *args: hvp(f, args[:count], args[count:])  # noqa: E731
            if self.argument is None:
                return whole
            place = self.written().arguments.index(str(self.argument))
            return lambda *args: flatten(whole(*args))[0][place]
        every: Any = tuple(range(len(self._of.origin().spaces))) if self._several else 0
        if self.argument is None:
            return DERIVATIVES[self.kind](f, every)
        names = self.written().arguments
        if len(names) == len(self._of.origin().spaces):
            if isinstance(self.argument, tuple):
                rows, columns = [names.index(name) for name in self.argument]
                return jacobian(grad(f, rows), columns)
            return DERIVATIVES[self.kind](f, names.index(self.argument))
        if self.kind != "gradient":
            whole = f"{self.kind}(…) is in all arguments together"
            raise ExpressionError(f"{self.argument!r} is a part of an argument: {whole}, and code() has this part")
        at = names.index(str(self.argument))
        return lambda *args: flatten(grad(f, every)(*args))[0][at]

    def rebuilt_with(self, make: Callable[[Any], Any]) -> Any:
        """The same derivative of the function that `make` makes of this one's; None where it makes none."""
        f = make(self._of.origin().function)
        return f and (lambda *args: self._derivative(lambda *xs: f(*xs))(*args))  # a new one for each trace

    def __getitem__(self, name: str | tuple[str, str]) -> ClosedForm:
        """The derivative in one argument, by its name; a Hessian in two."""
        names = name if isinstance(name, tuple) else (name, name)
        wrong = isinstance(name, tuple) and (self.kind != "hessian" or len(names) != 2)
        if wrong or any([n not in self.written().arguments for n in names]):
            known = ", ".join(self.written().arguments)
            raise ExpressionError(f"{self.kind}[{name!r}]: the {self.kind} of this function is in {known}")
        return ClosedForm(self.kind, self._of, names if self.kind == "hessian" else name)

    def written(self) -> WrittenForm:
        """The expressions, laid out when first asked for."""
        known = self._of.origin().forms
        if self.kind not in known:
            known[self.kind] = WrittenForm(self.kind, self._of)
        return known[self.kind]

    def code(self, target: str = "numpy", ids: bool = False) -> str:
        """A function of its own in "numpy", "jax", "torch", "julia" or "matlab"; "text" is for `rz.function`, "latex"
        is the formula. With `ids`, characters for private use mark the parts of the expression (`form_code.OPENED`).

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
        return self.latex() if target == "latex" else self.written().code(target, self.argument, ids)


def _shown(n: Notation, form: ClosedForm) -> str:
    return form.written().text(n, form.argument)


PRINTERS[ClosedForm] = _shown
NOTATIONS["paper"][ClosedForm] = lambda n, form: form.written().program_text(n)


def closed_form(kind: str, of: Derivation) -> ClosedForm:
    """One of the closed forms of a derivation."""
    return ClosedForm(kind, of)


def product_with_hessian(of: Derivation) -> ClosedForm:
    """(x, v) ↦ ∇²f(x) v; of several arguments (x, y, v_x, v_y)."""
    return ClosedForm("hvp", of)


@dataclass
class NamedFunction:
    """A function at a point with names: of its arguments, then of what it captures."""

    at: AnyPoint
    arguments: list[str]
    outside: dict[str, Any] = field(default_factory=dict)
    locals: dict[str, int] = field(default_factory=dict)  # outputs of its program
    facts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    indices: dict[str, Any] = field(default_factory=dict)  # captured arrays of whole numbers

    @property
    def names(self) -> list[str]:
        """Of the leaves, in order."""
        return [*self.arguments, *self.outside]


class WrittenForm:
    """The expressions of a closed form: a head for each argument, and parts with names. A derivative that has no closed
    form is written as the program that computes it."""

    def __init__(self, kind: str, of: Derivation) -> None:
        self.kind, self.of = kind, of
        self.algebra = self.made_algebra()
        self.eigenvectors: dict[tuple[str, str], str] = {}  # names of single ones: matrix, unit vector
        self.layout = self._new_layout()
        self.function = _named(of)
        self.arguments = self.function.arguments
        self.heads: list[Tree] = []
        self.chosen: dict[str, Selected] = {}
        self.vectors: list[str] = []
        self.problem = ""
        try:
            self._lay_out()
        except Unreadable as problem:
            self.problem = str(problem)

    def made_algebra(self) -> Algebra:
        """The algebra of its forms, with the laws."""
        found = Algebra()
        found.laws, found.sum_laws = applied, applied_to_sums
        return found

    def _new_layout(self) -> Layout:
        found = Layout(self.algebra)
        found.trees.column = self._eigenvector
        return found

    def _eigenvector(self, matrix: str, unit: str) -> str | None:
        """A name for one column of the eigenvectors or singular vectors of a matrix."""
        places = {"eigh": (1,), "svd": (0, 2)}
        every = self.reader.decompositions.items()
        if not any([matrix == names[k] for (kind, _), names in every for k in places.get(kind, ())]):
            return None
        letter = matrix.lower()
        if (matrix, unit) not in self.eigenvectors:
            self.eigenvectors[matrix, unit] = self.reader.fresh_name((letter,), f"{letter}{self.algebra.units[unit]}")
        return self.eigenvectors[matrix, unit]

    def _lay_out(self) -> None:
        facts = {name: np.asarray(v) for name, v in (self.function.outside | self.function.indices).items()}
        self.reader = Reader(self.algebra, facts, self.function.names, dict(self.function.indices))
        forms = self._forms()
        self.layout.preferred = {x.id for _, x in self._named_forms()}
        try:
            self._lay_out_trees(forms)
        except Unreadable:  # without sums over indices
            self.layout = self._new_layout()
            self.layout.indices = True
            self._lay_out_trees(forms)

    def _lay_out_trees(self, forms: list[tuple[tuple[Polynomial, ...], int]]) -> None:
        self.heads = [min([self._tree(x, rows) for x in some], key=lambda t: t.weight) for some, rows in forms]
        parts = [(name, self._tree(x, rows)) for name, x, rows in self.reader.parts]
        known_names = symbols_of([*self.heads, *[t for _, t in parts]])
        trees = self.layout.trees
        for (matrix, unit), name in self.eigenvectors.items():
            if name in known_names:
                pair = trees.node("symbol", value=matrix, rank=2), trees.node("symbol", value=unit, rank=1)
                parts.append((name, trees.node("chain", pair, rank=1)))
        roots = [*self.heads, *[t for _, t in parts]]
        self.decompositions: list[Decomposition] = []
        for (kind, x), names in self.reader.decompositions.items():
            if symbols_of(roots) & {*names}:
                self.decompositions.append(Decomposition(kind, names, self._tree(x)))
        roots += [d.matrix for d in self.decompositions]
        self.seen = seen = symbols_of(roots)
        chosen = self.reader.selections.chosen
        self.chosen = {name: rows for name, rows in chosen.items() if name in seen}
        known = {t.id for _, t in parts}
        shared = [(name, t) for name, t in shared_parts(roots, self.reader.taken, self._locals()) if t.id not in known]
        self.where = _in_order([*shared, *parts])

    def _tree(self, x: Polynomial, rows: int = 0) -> Tree:
        self.layout.rows = rows
        return self.layout.trees.folded(self.layout.tree(x))

    # -- from the function to forms -----------------------------------------------------------------------

    def _inputs(self) -> list[Polynomial]:
        """The arguments and captured arrays as forms, with what is known of them."""
        at, outside = self.function.at, self.function.outside
        facts = {name: set(known) for name, known in self.function.facts.items()}
        for k in mirrored(at.plain):
            facts.setdefault(self.function.names[k], set()).add("symmetric")
        told = [name for name, known in facts.items() if known & {"symmetric", "diagonal"} and name not in outside]
        self.symmetric = told
        for name, value in outside.items():
            told = ("symmetric", "stochastic", "lower", "upper", "mask") if np.ndim(value) else ()
            told = (*told, "positive")
            seen = [fact for fact in told if holds(fact, np.asarray(value))]
            facts.setdefault(name, set()).update(seen)
        having = lambda fact: {name for name, known in facts.items() if fact in known}  # noqa: E731
        self.algebra.stochastic |= having("stochastic")
        self.algebra.orthogonal |= having("orthogonal")
        self.algebra.positive |= having("positive")
        self.algebra.masks |= having("mask")
        self.algebra.triangular |= {name: half for half in ("lower", "upper") for name in having(half)}
        symmetric = having("symmetric") | having("diagonal")
        found: list[Polynomial] = []
        for name, v in zip(self.function.names, at.leaves, strict=True):
            value = np.asarray(outside.get(name, 0.0))
            unit = value.ndim == 2 and len(value) > 1 and np.array_equal(value, np.eye(len(value)))
            known = self.algebra.array(name, np.shape(v), name in symmetric)
            found.append(self.algebra.of(self.algebra.identity(len(value))) if unit else known)
        return found

    def _read(self, program: Program, inputs: list[Polynomial], direction: Atom | None = None) -> list[Polynomial]:
        return self.reader.read(without_guards(program), inputs, direction)

    def _forms(self) -> list[tuple[tuple[Polynomial, ...], int]]:
        """The heads, each in some ways, with how many of its axes are rows of a matrix."""
        at, inputs = self.function.at, self._inputs()
        program = familiar(at.plain)
        if self.kind == "gradient" and not any([np.ndim(at.leaves[k]) for k, moves in enumerate(at.moving) if moves]):
            into_reals(at)
            forward = self._slopes(program, inputs)
            if len(program) > CUT:
                return [((x,), 0) for x in forward]
            both = at_one(derive_program(program, at.moving), at.domain)
            try:
                backward = self._read(both.prune(both.inputs, both.outputs[1:]), inputs)
            except Unreadable:
                backward = forward
            return [((one, other), 0) for one, other in zip(backward, forward, strict=True)]
        if self.kind != "jacobian":
            into_reals(at)
            both = at_one(derive_program(program, at.moving), at.domain)
            program = both.prune(both.inputs, both.outputs[1:])
        if self.kind == "gradient":
            return [((x,), 0) for x in self._read(program, inputs)]
        derivative: Program = derive_program(program, at.moving).derivative
        if self.kind == "hvp":
            shapes = [np.shape(v) for v, moves in zip(at.leaves, at.moving, strict=True) if moves]
            given = [self.algebra.array(v, shape) for v, shape in zip(self._vectors(), shapes, strict=True)]
            return [((x,), 0) for x in self._read(derivative, [*inputs, *given])]
        moving = [k for k, moves in enumerate(at.moving) if moves]
        if not moving:
            raise Unreadable("it has no argument to differentiate in")
        directions = [self.algebra.array(f"∂{self.arguments[k]}", np.shape(at.leaves[k])) for k in moving]
        columns: list[list[tuple[tuple[Polynomial, ...], int]]] = []
        for direction in directions:
            given = [d if d is direction else self.algebra.form(d.shape, []) for d in directions]
            one = direction.single
            assert one is not None
            found = self._read(derivative, [*inputs, *given], one.atom)
            columns.append([((self.algebra.coefficient(y, one.atom),), y.rank) for y in found])
        return [column[i] for i in range(len(columns[0])) for column in columns]

    def _vectors(self) -> list[str]:
        """Names for what a Hessian is multiplied by: v, or v_x for each argument x."""
        if self.vectors:
            return self.vectors
        count = len([k for k, moves in enumerate(self.function.at.moving) if moves])
        wanted = ["v"] if count == 1 else [f"v_{name}" for name in self.arguments]
        for name in wanted:
            self.vectors.append(self.reader.fresh_name((), name))
        return self.vectors

    def _slopes(self, program: Program, inputs: list[Polynomial]) -> list[Polynomial]:
        """The derivatives in arguments that are numbers, forward."""
        derivative: Program = derive_program(program, self.function.at.moving).derivative
        count = len(derivative.inputs) - len(inputs)
        units = [[self.algebra.constant(int(i == k)) for i in range(count)] for k in range(count)]
        return [self._read(derivative, [*inputs, *given])[0] for given in units]

    def _named_forms(self) -> list[tuple[str, Polynomial]]:
        """The user's own names for parts, with the forms of these."""
        at, named = self.function.at, self.function.locals
        if not named:
            return []
        program, count = at.program(), len(self.reader.parts)
        try:
            small = program.prune(program.inputs, [program.outputs[k] for k in named.values()])
            forms = self._read(small, self._inputs())
        except Unreadable:
            return []
        finally:
            cut = len(self.reader.parts) > count
            del self.reader.parts[count:]
        names = zip(named, forms, strict=True)
        return [] if cut else [(name, x) for name, x in names if name not in self.reader.taken | RESERVED]

    def _locals(self) -> dict[int, str]:
        """The user's own names for parts, by the trees of these."""
        found: dict[int, str] = {}
        for name, x in self._named_forms():
            try:
                found[self._tree(x).id] = name
            except Unreadable:
                continue
        return found

    # -- output -------------------------------------------------------------------------------------------

    def titles(self) -> list[str]:
        """What each head is."""
        if len(self.heads) == 1:
            return [""]
        if self.kind == "hvp":  # of f_v = f'(x) v
            return [f"∂f_v/∂{a}" for a in self.arguments]
        if self.kind == "hessian":
            return [f"∂²f/∂{a}∂{b}" for a in self.arguments for b in self.arguments]
        rows = len(self.heads) // len(self.arguments)
        names = ["f"] if rows == 1 else [f"f{i}" for i in range(rows)]
        return [f"∂{f}/∂{a}" for f in names for a in self.arguments]

    def _chosen(self, argument: str | tuple[str, str] | None) -> list[tuple[str, Tree]]:
        rows = list(zip(self.titles(), self.heads, strict=True))
        if argument is None:
            return rows
        count = len(self.arguments)
        if isinstance(argument, tuple):
            i, j = [self.arguments.index(name) for name in argument]
            return [("", rows[count * i + j][1])]
        k = self.arguments.index(argument)
        kept = [t for i, (_, t) in enumerate(rows) if i % count == k]
        return [("", t) for t in kept]

    def text(self, notation: Notation, argument: str | tuple[str, str] | None = None) -> str:
        """In a notation: one line for each head, then the parts that have names."""
        if self.problem:
            shown = self.program_text(notation)
            return f"{shown}\n  (no closed form: {self.problem})" if notation is UNICODE else shown
        names = {t.id: name for name, t in self.where}
        heads = self._chosen(argument)
        everything = [*[t for _, t in heads], *[t for _, t in self.where], *[d.matrix for d in self.decompositions]]
        writer = FormText(notation, names, symbols_of(everything) | {*names.values()})
        shown = [f"{_title(notation, title)} = {writer.text(t)}" if title else writer.text(t) for title, t in heads]
        used = _used([t for _, t in heads], dict(self.where))
        where = [f"{notation.variable(name)} = {writer.text(t, top=True)}" for name, t in self.where if name in used]
        where += [f"{writer.text(d.matrix)} = {_product(notation, d)}" for d in self.decompositions]
        where += [f"{notation.variable(name)} = {_rows(notation, rows)}" for name, rows in self.chosen.items()]
        symmetric = [notation.variable(name) for name in self.symmetric]
        where += [f"{notation.turned((name, ATOM))} = {name}" for name in symmetric]
        return notation.where(notation.lines(shown), where)

    def program_text(self, notation: Notation) -> str:
        """As a program, in the combinators of the paper."""
        if self.kind == "jacobian":
            return written(notation.plain, self.of.derivative, "paper")
        at = self.function.at if isinstance(self.of.origin().function, Arrow) else _traced_once(self.of)
        program, V, names = at.gradient(), at.domain, tuple(self.arguments)
        if self.kind == "gradient":
            return written(notation.plain, Value(program, V, V, names), "paper")
        return written(notation.plain, Family(derive_program(program).derivative, V, V, V, names), "paper")

    def given(self) -> list[tuple[str, Any]]:
        """What code takes beside the arguments: captured arrays, constants without a name, arrays of places."""
        used = {rows for selected in self.chosen.values() for _, rows in selected.parts}
        indices = [(name, v) for name, v in self.reader.selections.indices.items() if name in used]
        arrays = {**self.function.outside, **self.function.indices, **self.reader.constants}
        return [*[(name, v) for name, v in arrays.items() if name in self.seen], *indices]

    def code(self, target: str, argument: str | tuple[str, str] | None = None, ids: bool = False) -> str:
        """As a function in a language."""
        if self.problem:
            raise ExpressionError(
                f"this {self.kind} has no closed form ({self.problem}); rz.compile(rz.grad(f), x).source is code"
            )
        arguments = [*self.arguments, *self.vectors, *[name for name, _ in self.given()]]
        heads = [t for _, t in self._chosen(argument)]
        formula = self.text(UNICODE, argument)
        given = Definitions(self.where, self.chosen, self.decompositions, self.reader.selections.indices)
        return function_code(target, self.kind, arguments, heads, given, formula, ids)


def _title(notation: Notation, title: str) -> str:
    above, below = title.split("/")
    names = [notation.variable(name) for name in below.split("∂") if name]
    return notation.partial(notation.variable(above.lstrip("∂²")), names)


def _rows(notation: Notation, selected: Selected) -> str:
    """I₄[1:] − I₄[:3]."""
    text = ""
    for k, rows in selected.parts:
        mark = "" if not text and k > 0 else notation["−"] if not text else " + " if k > 0 else f" {notation['−']} "
        times = notation.number(abs(k)) if abs(k) != 1 else ""
        shown = notation.variable(rows) if rows.isidentifier() else rows
        text += f"{mark}{times}{notation.sub('I', selected.n)}" + (f"[{shown}]" if shown else "")
    return text


def _product(notation: Notation, d: Decomposition) -> str:
    """V diag(λ) Vᵀ, U diag(s) Vᵀ or Q R."""
    names = [notation.variable(name) for name in d.names]
    if d.kind == "qr":
        return notation.beside(names)
    left, values, right = (names[1], names[0], names[1]) if d.kind == "eigh" else names
    return notation.beside([left, f"{notation.function('diag')}({values})", notation.turned((right, ATOM))])


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
        names = ["x"] if len(at.leaves) == 1 else [f"x{i}" for i in range(len(at.leaves))]
        return NamedFunction(at, list(of.names) if of.names is not None and len(of.names) == len(names) else names)
    count = len(spaces)
    names = list(of.names) if of.names is not None and len(of.names) == count else argument_names(f, count)
    if isinstance(f, ClosedForm) and len(f.written().arguments) == count:
        names = f.written().arguments
    names = names[:count]
    opened = Lifting(f, count)
    known = opened.known
    while opened.function is not None:
        try:
            values = (*example, *known.values())
            function = opened.lifted(count, len(of.programs.value) <= CUT)
            at = point(function, values, {}, tuple(range(count)), None, True, "a closed form")
            at.settle()
            found = _with_locals(at, _leaf_names(names, example, known), known)
            found.indices = {k: v for k, v in opened.indices.items() if k not in found.names}
            return found
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
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _paths(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value)}
    if isinstance(value, (tuple, list)):
        return [_paths(v, f"{path}.{k}") for k, v in enumerate(value)]  # type: ignore[misc]
    return path
