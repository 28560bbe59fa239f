"""`check`: is the derivative of f the derivative of f, and its adjoint the adjoint? Taylor and adjoint tests at a
point, with a report.

The Taylor test looks at ‖f(x + h·dx) − f(x) − h·f'(x)dx‖ as h gets smaller: of order h² where f'(x) is right, of order
h where it is wrong. The adjoint test compares ⟨f'(x)v, w⟩ with ⟨v, f'(x)*w⟩. Second derivatives are those of x ↦
f'(x)*w, and are symmetric.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..calculus.dual_numbers import forward
from ..errors import TraceError, VectorError
from ..functions import derivatives as api
from ..functions.function import TracedFunction
from ..functions.traces.comparing import uncompared
from ..maps.linear_map import LinearMap, as_element
from ..runtime.displayed import Displayed
from ..spaces.formal_vectors import dense
from ..spaces.space import Space, container
from ..terms.bilinear import Inner, Section
from ..terms.open import fit, frozen
from ..terms.term import Arrow
from ..tracing.argument_trees import flatten, unflatten
from .taylor import PLAIN, Called, Leaves, Slope, largest_eps, slopes

Moved = Callable[[Leaves], Leaves]
_EACH = 8
"""Up to so many arrays, each is moved by itself; of more, those of one argument together."""


class CheckRow(NamedTuple):
    """One line of a report."""

    what: str
    where: str
    observed: str
    expected: str
    ok: bool
    note: str = ""


class Report(Displayed):
    """What `check` found: true where everything passed; printed, it is a table."""

    def __init__(self, name: str, rows: Sequence[CheckRow]) -> None:
        self.name = name
        self.rows = tuple(rows)

    @property
    def failures(self) -> tuple[CheckRow, ...]:
        """The lines that failed."""
        return tuple([r for r in self.rows if not r.ok])

    def __bool__(self) -> bool:
        passed = not self.failures
        if not passed and "PYTEST_CURRENT_TEST" in os.environ:
            print(self)  # pytest shows what a failed test has printed; of `assert report` it shows one shortened line
        return passed

    def raise_if_failed(self) -> None:
        """An AssertionError with the table, if something failed."""
        __tracebackhide__ = True
        if self.failures:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        columns = [r[:4] for r in self.rows]
        widths = [max([len(c[i]) for c in columns], default=0) for i in range(4)]
        bad, count = len(self.failures), len(self.rows)
        lines = [f"rz.check of {self.name}: {f'{bad} of {count} FAILED' if bad else f'all {count} passed'}"]
        for r, cells in zip(self.rows, columns, strict=True):
            shown = [c.ljust(w) for c, w in zip(cells, widths, strict=True)]
            lines.append("  ".join(["", *shown, "ok" if r.ok else "FAILED"]))
            lines.extend([f"      {r.note}"] if r.note else [])
        return "\n".join(lines)

    __repr__ = __str__

    def displayed(self) -> Any:
        """What a notebook shows."""
        from ..show.display.display_objects import FactTable

        rows = [(*r[:4], "ok" if r.ok else "FAILED", r.note or "") for r in self.rows]
        head = ("what", "where", "found", "expected", "", "")
        return FactTable("report", str(self), rows, head, str(self).partition("\n")[0])


def check(
    f: Any,
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    orders: int | None = None,
    draws: int = 2,
    tolerance: float | None = None,
    seed: int = 0,
) -> Report:
    """Check the derivative of f at a point by Taylor and adjoint tests in random directions; a Report, true where all
    passed.

    f is a Python function, a combinator, a text or an rz.function; args hold floats, nested as one likes. `argnums`
    chooses arguments; otherwise all that hold floats are moved. `orders=2` checks the second derivative too, `orders=1`
    leaves it out; by default it is checked where there is one. `draws` directions are tried, and `tolerance` is the
    relative error an adjoint may have.

    >>> import numpy as np, riesz as rz
    >>> print(rz.check(lambda x: np.sum(np.sin(x)), np.array([0.5, 1.0]), orders=1))  # doctest: +ELLIPSIS
    rz.check of <lambda>: all 3 passed
      value                        0           ≤ 1e-09  ok
      derivative   argument 0 (x)  order 2.00  order 2    ok
      adjoint      argument 0 (x)  ...         ≤ 1e-09  ok
    """
    if orders not in (None, 1, 2):
        raise ValueError(f"orders={orders!r}: check knows orders 1 and 2")
    if draws < 1:
        raise ValueError(f"draws={draws!r}: at least one direction is needed")
    if isinstance(f, str):
        f = api.function(f)
    chosen = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    with np.errstate(all="ignore"), uncompared():  # the report says what differs
        subject = _TermSubject(f, args) if isinstance(f, Arrow) else _FunctionSubject(f, args, chosen)
        checker = _Checker(subject, draws, tolerance, np.random.default_rng(seed))
        checker.first()
        if orders != 1:
            checker.second(required=orders == 2)
    return Report(subject.name, checker.rows)


# -- functions at a point, as lists of arrays -------------------------------------------------------------


# Two classes with the same attributes. `leaves`: the arrays that move, called by `labels`; `arguments`: which of them
# belong together. `here`: f(x), as the derivation computes it, its arrays called by `results`. `direct`: f runs as it
# is, so that both values can be compared; `other`: how they differ in form. `gradient`: x ↦ f'(x)*w, its derivative.


class _FunctionSubject:
    """A Python function, in some of its arguments."""

    def __init__(self, f: Any, args: tuple[Any, ...], argnums: tuple[int, ...] | None) -> None:
        self.f, self.args, count = f, args, len(args)
        self.name = getattr(f, "name", None) or getattr(f, "__name__", type(f).__name__)
        moving = [i for i, a in enumerate(args) if any([_is_float(x) for x in flatten(a)[0]])]
        chosen = moving if argnums is None else [i % count if -count <= i < count else i for i in argnums]
        self.argnums = tuple(chosen)
        if not self.argnums:
            advice = f"none of {count} holds floats; write 2.0 instead of 2"
            raise VectorError(f"{self.name} has no argument to differentiate in: {advice}")
        self.derivative = api.jacobian(f, self.argnums)(*args)
        names = _parameter_names(f, count)
        self.given: list[Any] = []
        self.trees: list[Any] = []
        self.labels: list[str] = []
        self.arguments: list[tuple[str, list[int]]] = []
        for i in self.argnums:
            (inside, tree), name = flatten(args[i]), f"argument {i}{names[i]}"
            self.trees.append(tree)
            self.arguments.append((name, [len(self.given) + k for k in range(len(inside))]))
            self.given.extend(inside)
            self.labels.extend([name + p for p in _paths(args[i])])
        self.types = [np.asarray(x).dtype for x in self.given]
        self.leaves = [np.asarray(x, float) for x in self.given]
        traced = api.evaluate(f, *args)
        self.results = [f"result{p}" for p in _paths(traced)]
        self.here = self._numbers(traced)
        self.types.extend([np.asarray(x).dtype for x in flatten(traced)[0]])
        self.raw = f.function if isinstance(f, TracedFunction) else f
        try:  # NumPy itself, not what riesz made of it
            shapes = [x.shape for x in self._numbers(self.raw(*_copied(args)))]
        except Exception:
            shapes = None
        derived = [x.shape for x in self.here]
        self.direct = shapes == derived
        differ = f"f(x) has arrays of shapes {shapes}, but {derived} where it is derived"
        self.other = "" if self.direct or shapes is None else differ

    def _numbers(self, result: Any) -> Leaves:
        shown = result.to_dense() if isinstance(result, LinearMap) else result
        return [np.asarray(x.to_dense() if isinstance(x, LinearMap) else x, float) for x in flatten(shown)[0]]

    def element(self, leaves: Leaves) -> Any:
        given = [_like(old, new) for old, new in zip(self.given, leaves, strict=True)]
        places = [where for _, where in self.arguments]
        return tuple([unflatten(t, [given[k] for k in at]) for t, at in zip(self.trees, places, strict=True)])

    def _replaced(self, leaves: Leaves) -> list[Any]:
        args = list(self.args)
        for i, part in zip(self.argnums, self.element(leaves), strict=True):
            args[i] = part
        return args

    def value(self, leaves: Leaves) -> Leaves:
        args = self._replaced(leaves)
        return self._numbers(self.raw(*_copied(args)) if self.direct else api.evaluate(self.f, *args))

    def gradient(self, w: Any) -> tuple[Moved, LinearMap]:
        weights = flatten(w)[0]

        def weighed(*args: Any) -> Any:
            result = self.f(*args)
            found = flatten(result.to_dense() if hasattr(result, "to_dense") else result)[0]
            return sum([np.sum(a * b) for a, b in zip(weights, found, strict=True)], 0.0)

        gradient = api.grad(weighed, self.argnums)
        H = api.hessian(weighed, self.argnums)(*self.args)
        return lambda leaves: [np.asarray(x, float) for x in flatten(gradient(*self._replaced(leaves)))[0]], H


class _TermSubject:
    """A combinator at an element of its domain."""

    def __init__(self, f: Arrow, args: tuple[Any, ...]) -> None:
        y, self.derivative = api.linearize(f, *args)
        self.term = fit(f, self.derivative.domain)
        self.name = str(f)
        V, W = self.derivative.domain, self.derivative.codomain
        x = as_element(args, V)
        leaves = V.open(x)
        self.types = [np.asarray(dense(a)).dtype for a in (*leaves, *W.open(y))]
        self.leaves = opened(V, x)
        self.labels = _names("component", x, len(leaves))
        self.arguments = [("", list(range(len(leaves))))]
        self.results = _names("result", y, len(W.leaves))
        self.here = opened(W, y)
        self.direct, self.other = True, ""

    def element(self, leaves: Leaves) -> Any:
        return self.derivative.domain.wrap(_typed(leaves, self.types[: len(leaves)]))

    def value(self, leaves: Leaves) -> Leaves:
        return opened(self.derivative.codomain, api.evaluate(self.term, self.element(leaves)))

    def forward_error(self, d: Leaves) -> float:
        """How much f'(x)dx by dual numbers differs."""
        V, W, dx = self.derivative.domain, self.derivative.codomain, self.element(d)
        _, moved = forward(self.term, V.open(self.element(self.leaves)), V.open(dx))
        pairs = zip([np.asarray(dense(m), float) for m in moved], opened(W, self.derivative(dx)), strict=True)
        return max([_relative(a, b) for a, b in pairs], default=0.0)

    def gradient(self, w: Any) -> tuple[Moved, LinearMap]:
        V, W = self.derivative.domain, self.derivative.codomain
        weighed = Section(Inner(W), 1, frozen(W.open(w))) @ self.term
        gradient = api.grad(weighed)
        return lambda leaves: opened(V, gradient(self.element(leaves))), api.hessian(weighed)(self.element(self.leaves))


_Subject = _FunctionSubject | _TermSubject


def opened(space: Space, value: Any) -> Leaves:
    """An element of a space as arrays."""
    return [np.asarray(dense(x), float) for x in space.open(value)]


def _copied(args: Sequence[Any]) -> list[Any]:
    """Arguments of the function's own: it may write to them."""
    leaves, tree = flatten(list(args))
    return unflatten(tree, [x.copy() if type(x) is np.ndarray else x for x in leaves])


def _typed(leaves: Leaves, types: Sequence[Any]) -> Leaves:
    return [a.astype(t) if a.ndim else t.type(a) for a, t in zip(leaves, types, strict=True)]


def _is_float(x: Any) -> bool:
    return isinstance(x, (float, np.floating)) or getattr(getattr(x, "dtype", None), "kind", "") == "f"


def _like(old: Any, new: Any) -> Any:
    """Numbers in the type of what stood there."""
    if isinstance(old, np.generic):
        return cast(Any, old).dtype.type(new)
    return new.astype(old.dtype) if hasattr(old, "dtype") else float(new)


def _parameter_names(f: Any, count: int) -> list[str]:
    try:
        given = inspect.signature(f).parameters.values()
        found = [f" ({p.name})" for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        found = []
    return [*found, *[""] * count][:count]


def _paths(value: Any) -> list[str]:
    """How to get at each leaf of a value: "", "[0]['W']", ".rate"."""
    found: list[str] = []
    stack: list[tuple[Any, str]] = [(value, "")]
    while stack:
        v, path = stack.pop()
        parts = None if v is None else container(v)
        if parts is None:
            found.extend([] if v is None else [path])
            continue
        form, inside = parts
        names = (form.names if form is not None else None) or range(len(inside))
        named = isinstance(names, tuple) and not isinstance(v, dict)
        keys = [f".{n}" if named else f"[{n!r}]" for n in names]
        stack.extend(reversed([(p, path + k) for p, k in zip(inside, keys, strict=True)]))
    return found


def _names(what: str, value: Any, count: int) -> list[str]:
    paths = _paths(value)
    if len(paths) != count:
        paths = [f" {i} of {count}" for i in range(count)]
    return [what + p if p else "" for p in paths] if what == "component" else [what + p for p in paths]


# -- the tests ----------------------------------------------------------------------------------------------


class _Checker:
    """Runs the tests and writes down what they find."""

    def __init__(self, subject: _Subject, draws: int, tolerance: float | None, rng: np.random.Generator) -> None:
        self.subject, self.draws, self.rng = subject, draws, rng
        self.eps = largest_eps(subject.types)
        self.tolerance = tolerance if tolerance is not None else 1e-9 if self.eps < 1e-10 else 1e-3
        self.rows: list[CheckRow] = []
        self.scales = [_scale(x) for x in subject.leaves]
        each = [(label, [k]) for k, label in enumerate(subject.labels)]
        self.groups = each if len(each) <= _EACH else subject.arguments

    def direction(self, group: Sequence[int]) -> Leaves:
        """A random move of some of the arrays, as large as they are."""
        sizes = [s if k in group else 0.0 for k, s in enumerate(self.scales)]
        return [s * self.normal(x.shape) for x, s in zip(self.subject.leaves, sizes, strict=True)]

    def normal(self, shape: tuple[int, ...]) -> Any:
        """Independent standard normal numbers."""
        return np.asarray(self.rng.standard_normal(shape))

    def covector(self) -> Any:
        """A random element of the codomain, in the types of the result."""
        W, types = self.subject.derivative.codomain, self.subject.types[len(self.subject.leaves) :]
        draws = [self.normal(leaf.shape) for leaf in W.leaves]
        return W.wrap(_typed(draws, types))

    def bounded(self, what: str, where: str, measured: Sequence[tuple[float, str]]) -> None:
        """A line for the largest of some relative errors."""
        error, note = max(measured, key=lambda m: math.inf if math.isnan(m[0]) else m[0], default=(0.0, ""))
        ok, observed = error <= self.tolerance, f"{error:.1e}" if error else "0"
        self.rows.append(CheckRow(what, where, observed, f"≤ {self.tolerance:.0e}", ok, "" if ok else note))

    def first(self) -> None:
        """Value, derivative, adjoint."""
        subject = self.subject
        y = subject.here
        if subject.other:
            self.rows.append(CheckRow("value", "", "other shapes", "the same", False, subject.other))
        if subject.direct:  # whether the derivation computes f
            rows = zip(subject.results, subject.value(subject.leaves), y, strict=True)
            said = "{}: f(x) is {}, but {} where it is derived"
            errors = [(_relative(a, b), said.format(n, _shown(a), _shown(b))) for n, a, b in rows]
            self.bounded("value", "", errors)
        self.taylor("derivative", subject.value, y, subject.derivative, subject.results, PLAIN)
        for name, group in self.groups:
            self.bounded("adjoint", name, [self.adjoint(group) for _ in range(self.draws)])
        if isinstance(subject, _TermSubject):
            moves = [self.direction(range(len(subject.leaves))) for _ in range(self.draws)]
            note = "dual numbers and linearize give different f'(x)dx"
            self.bounded("forward mode", "", [(subject.forward_error(d), note) for d in moves])

    def taylor(self, what: str, f: Moved, y: Leaves, L: LinearMap, results: Sequence[str], called: Called) -> None:
        """The Taylor test, a line for each group of arrays; where one fails, for those of it that fail alone."""

        def line(name: str, found: Slope) -> CheckRow:
            more = [] if found.ok else [f"direction {found.draw}", results[found.result] if len(results) > 1 else ""]
            where = ", ".join([p for p in (name, *more) if p])
            return CheckRow(what, where, str(found), "order 2", found.ok, found.note)

        for name, group in self.groups:
            found = self.slope(f, y, L, group, called)
            alone = [] if found.ok or len(group) < 2 else [(k, self.slope(f, y, L, [k], called)) for k in group]
            culprits = [line(self.subject.labels[k], s) for k, s in alone if not s.ok]
            self.rows.extend(culprits or [line(name, found)])

    def slope(self, f: Moved, y: Leaves, L: LinearMap, group: Sequence[int], called: Called) -> Slope:
        """The worst of several directions and results."""
        subject = self.subject
        worst = Slope(math.inf, True)
        d: Leaves = []
        for draw in range(self.draws):
            # there and back: a kink shows on one of the two sides
            d = [-v for v in d] if draw % 2 else self.direction(group)
            dy = opened(L.codomain, L(subject.element(d)))
            moves = [*zip(subject.leaves, d, strict=True)]
            found = slopes(lambda h, moves=moves: f([x + h * v for x, v in moves]), y, dy, self.eps, called)
            for j, slope in enumerate(found):
                if (slope.ok, slope.order) < (worst.ok, worst.order):
                    worst = slope._replace(draw=draw, result=j)
        return worst

    def adjoint(self, group: Sequence[int]) -> tuple[float, str]:
        """⟨L v, w⟩ = ⟨v, L* w⟩."""
        v = self.subject.element(self.direction(group))
        error, there, here = adjoint_error(self.subject.derivative, v, self.covector())
        return error, f"⟨f'(x)v, w⟩ = {there:.6g}, but ⟨v, f'(x)*w⟩ = {here:.6g}"

    def second(self, required: bool) -> None:
        """The derivative of x ↦ f'(x)*w, and that it is symmetric."""
        subject = self.subject
        if not any([x.size for x in subject.leaves]):
            return
        try:
            gradient, H = subject.gradient(self.covector())
            g = gradient(subject.leaves)
        except Exception as problem:
            fine = isinstance(problem, TraceError) and not required  # there need not be one
            expected, advice = ("not needed", "") if fine else ("order 2", " (orders=1 leaves it out)")
            note = f"{type(problem).__name__}: {problem}{advice}"
            self.rows.append(CheckRow("second derivative", "", "none", expected, fine, note))
            return
        called = Called("f'*w", "f'(x)*w", "f'(x + h·dx)*w", "f''(x)dx")
        self.taylor("second derivative", gradient, g, H, subject.labels, called)
        self.bounded("symmetry", "", [self.symmetry(H, g) for _ in range(self.draws)])

    def symmetry(self, H: LinearMap, gradient: Leaves) -> tuple[float, str]:
        """⟨H u, v⟩ = ⟨u, H v⟩; where curvature vanishes, terms as large as the gradient cancel."""
        V, everything = H.domain, range(len(self.subject.leaves))
        u, v = [self.subject.element(self.direction(everything)) for _ in range(2)]
        Hu, Hv = H(u), H(v)
        there, here = V.inner(Hu, v), V.inner(u, Hv)
        terms = math.hypot(*[float(np.linalg.norm(np.ravel(a))) for a in gradient]) * min(V.norm(u), V.norm(v))
        scale = max(V.norm(Hu) * V.norm(v), V.norm(u) * V.norm(Hv)) + terms
        return _gap(there, here, scale), f"⟨f''(x)u, v⟩ = {there:.6g}, but ⟨u, f''(x)v⟩ = {here:.6g}"


def _scale(x: Any) -> float:
    """How large the numbers of an array are; 1 for zeros."""
    size = float(np.linalg.norm(np.ravel(x))) / math.sqrt(max(x.size, 1))
    return size if 0.0 < size < math.inf else 1.0


def _relative(a: Any, b: Any) -> float:
    if np.array_equal(a, b, equal_nan=True):
        return 0.0
    return float(np.linalg.norm(np.ravel(a - b)) / max(np.linalg.norm(np.ravel(a)), np.linalg.norm(np.ravel(b))))


def _shown(x: Any) -> str:
    flat = np.ravel(x)
    return f"{flat[0]:.6g}" if flat.size == 1 else f"an array of norm {float(np.linalg.norm(flat)):.6g}"


def adjoint_error(L: Any, v: Any, w: Any) -> tuple[float, float, float]:
    """|⟨L v, w⟩ − ⟨v, L* w⟩| relative to the norms of the four of them, and the two numbers."""
    V, W = L.domain, L.codomain
    Lv, Lw = L(v), L.H(w)
    there, here = W.inner(Lv, w), V.inner(v, Lw)
    return _gap(there, here, max(W.norm(Lv) * W.norm(w), V.norm(v) * V.norm(Lw))), there, here


def _gap(a: float, b: float, scale: float) -> float:
    return 0.0 if a == b else abs(a - b) / scale if scale else math.inf
