"""What is checked of a random program: value, derivatives, structure, backends; against plain NumPy, JAX and central differences.

A check raises `Wrong`, or `Skip` where there is nothing to compare with. What riesz refuses with an error of its own is no failure; any other
exception is.

Who is right about a derivative (`judged`): JAX counts where its value is NumPy's and its derivative is finite; central differences count where two
step widths agree. riesz is right if it agrees with JAX to rounding; if it does not, with differences. It is wrong if a reference that counts says so
and no other reference agrees with it. Where the references disagree with each other and with riesz, the point is skipped, counted and reported.
"""

from __future__ import annotations

import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import riesz as rz
from riesz.errors import RieszError, SolveError

from .eager import by_numpy
from .libraries import JAX, PLAIN, RIESZ, leaves, mapped
from .programs import Program, is_float, random_program

CONVENTIONS = {
    "JAX has nan or inf, differences are finite": "a branch not taken, |0|, a norm or standard deviation at 0: riesz follows docs/conventions.md",
    "JAX differs, differences agree with riesz": "JAX has another convention at a tie, or rounds differently",
    "differences differ, JAX agrees with riesz": "a step crosses a kink or a jump; or a tie among several, which shares equally",
    "JAX does not know the program": "no such function, or another convention, in jax.numpy or jax.scipy; differences decide",
    "JAX's value differs": "signs of eigenvectors, or another method; differences decide",
}


class Wrong(Exception):
    """riesz is not right: what was computed, and what was expected."""

    def __init__(self, what: str, found: Any = None, expected: Any = None) -> None:
        super().__init__(what)
        self.what, self.found, self.expected = what, found, expected


class Skip(Exception):
    """There is nothing to compare with."""


@dataclass
class Failure:
    """A check that failed. `signature` is the same for the same cause, as far as can be told."""

    check: str
    signature: str
    detail: str
    found: str = ""
    expected: str = ""


@dataclass
class Report:
    failures: list[Failure] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # checks made, conventions met, references missing
    skips: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


# -- comparing ---------------------------------------------------------------------------------------------------


def flat(tree: Any) -> Any:
    """The numbers of a tree, one after the other."""
    parts = [np.ravel(np.asarray(x)).astype(float) for x in leaves(tree)]
    return np.concatenate(parts) if parts else np.zeros(0)


def distance(a: Any, b: Any) -> float:
    """The largest difference relative to 1 + the largest number; infinite where one is not finite and the other is another."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape:
        return np.inf
    odd = ~np.isfinite(a) | ~np.isfinite(b)
    if not np.array_equal(a[odd], b[odd], equal_nan=True):
        return np.inf
    a, b = a[~odd], b[~odd]
    return float(np.abs(a - b).max(initial=0.0) / (1.0 + np.abs(b).max(initial=0.0)))


def finite(x: Any) -> bool:
    return x is not None and bool(np.isfinite(x).all())


def brief(x: Any) -> str:
    with np.printoptions(precision=10, threshold=60, linewidth=140):
        return str(x)


def step(tree: Any, direction: Any, h: float) -> Any:
    """tree + h·direction, leaf by leaf, with the types there were."""

    def moved(x: Any, d: Any) -> Any:
        found = x + h * np.asarray(d)
        return found if isinstance(x, np.ndarray) else type(x)(found)

    return mapped(moved, tree, direction)


def shaken(x: Any, size: float, draw: np.random.Generator) -> Any:
    """Numbers changed by so much, relatively and absolutely."""
    found = np.asarray(x) * (1 + size * draw.normal(size=np.shape(x))) + size * draw.normal(size=np.shape(x))
    return found.astype(x.dtype) if isinstance(x, np.ndarray) else type(x)(found)


# -- a program at its point ----------------------------------------------------------------------------------------


class Point:
    """A program with its arguments, its references and its derivative, each computed when first asked for."""

    def __init__(self, program: Program, rng: np.random.Generator, report: Report) -> None:
        self.program = program
        self.rng = rng
        self.report = report
        self.args = program.values()
        self.f = program.function(RIESZ)
        self.plain = program.function(PLAIN)
        draw = np.random.default_rng(11)
        self.moving = program.moving
        self.here = tuple([self.args[i] for i in self.moving])
        self.direction = mapped(lambda x: self._like(x, draw), self.here)
        self.value = self.at(self.plain, self.args)
        self.single = program.mode == "float32" or any([np.asarray(y).dtype == np.float32 for y in leaves(self.value)])
        self.tolerance = 3e-4 if self.single else 1e-9
        self.weights = mapped(lambda y: self._like(y, draw), self.value)
        self.curves = mapped(lambda y: self._like(y, draw), self.value)
        self.other = mapped(lambda x: x + self._like(x, draw) * 0.3 if is_float(x) else x, self.args)

    @staticmethod
    def _like(x: Any, draw: np.random.Generator) -> Any:
        found = draw.normal(size=np.shape(x))
        return (
            found.astype(np.asarray(x).dtype)
            if isinstance(x, (np.ndarray, np.generic)) and is_float(x)
            else float(found)
            if not np.ndim(x)
            else found
        )

    @staticmethod
    def at(f: Any, args: Any) -> Any:
        """f without NumPy's warnings."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return f(*args)

    def whole(self, moving: Any) -> Any:
        """All arguments, from those that move."""
        found = list(self.args)
        for i, x in zip(self.moving, moving, strict=True):
            found[i] = x
        return tuple(found)

    def moved(self, f: Any) -> Any:
        """f as a function of the arguments that move."""
        return f if len(self.moving) == len(self.args) else lambda *moving: f(*self.whole(moving))

    def functional(self, f: Any, module: Any) -> Any:
        """Σ w·y + ½ v·y²: a number made of the result, curved even where f is linear."""
        given = [(w, 0.5 * v) for w, v in zip(leaves(self.weights), leaves(self.curves), strict=True)]
        if self.single:
            given = [(np.float32(w), np.float32(v)) for w, v in given]

        def g(*args: Any) -> Any:
            total = 0.0
            for (w, v), y in zip(given, leaves(f(*args)), strict=True):
                total = total + module.sum(w * y) + module.sum(v * y * y)
            return total

        return g

    # -- riesz

    @cached_property
    def derivative(self) -> Any:
        return rz.linearize(self.f, *self.args)[1]

    @cached_property
    def dense(self) -> Any:
        return np.asarray(self.derivative.to_dense(), float)

    @cached_property
    def forward(self) -> Any:
        return flat(rz.jvp(self.moved(self.f), self.here, self.direction)[1])

    @cached_property
    def backward(self) -> Any:
        return flat(rz.vjp(self.moved(self.f), *self.here)[1](self.weights))

    @cached_property
    def g(self) -> Any:
        return self.functional(self.f, np)

    @cached_property
    def gradient(self) -> Any:
        return rz.grad(self.g, self.moving)(*self.args)

    # -- references

    @cached_property
    def in_jax(self) -> Any:
        """The program in JAX as a function of the moving arguments, and where they are; None where JAX does not know it or has another value."""
        if not self.program.known_to_jax():
            self.report.counts["JAX does not know the program"] += 1
            return None
        exact = mapped(lambda x: x.astype(float) if isinstance(x, np.ndarray) and is_float(x) else x, self.args)
        f = self.program.function(JAX)
        here = tuple([mapped(lambda x: np.asarray(x, float), exact[i]) for i in self.moving])
        rest = [None if i in self.moving else mapped(np.asarray, a) for i, a in enumerate(exact)]

        def g(*moving: Any) -> Any:
            found = list(rest)
            for i, x in zip(self.moving, moving, strict=True):
                found[i] = x
            return mapped(lambda y: jnp.asarray(y, float), f(*found))

        moves = mapped(lambda d: np.asarray(d, float), self.direction)
        try:
            with by_numpy():
                value, self._jax_forward = [
                    flat(mapped(lambda _, x: x, self.value, v)) for v in jax.jvp(g, here, moves)
                ]
        except Exception:
            self.report.counts["JAX does not know the program"] += 1
            return None
        if distance(flat(self.value), value) > (1e-3 if self.single else 1e-9):
            self.report.counts["JAX's value differs"] += 1
            return None
        return g, here

    def by_jax(self, way: Callable[[Any, Any], Any]) -> Any:
        """Numbers from JAX; None where it has none."""
        if self.in_jax is None:
            return None
        try:
            with by_numpy():
                found = way(*self.in_jax)
            return flat(mapped(lambda _, x: x, self.here, found))  # JAX sorts the keys of dicts
        except Exception:
            self.report.counts["JAX does not know the program"] += 1
            self.in_jax = None
            return None

    @property
    def jax_forward(self) -> Any:
        return self._jax_forward if self.in_jax is not None else None

    @cached_property
    def jax_backward(self) -> Any:
        weights = mapped(lambda w: np.asarray(w, float), self.weights)
        return self.by_jax(lambda g, here: jax.vjp(g, *here)[1](weights))

    @cached_property
    def jax_second(self) -> Any:
        moves = mapped(lambda d: np.asarray(d, float), self.direction)

        def way(g: Any, here: Any) -> Any:
            return jax.jvp(jax.grad(self.functional(g, jnp), tuple(range(len(here)))), here, moves)[1]

        return self.by_jax(way)

    def differences(self, f: Any, h: float = 4e-4) -> Any:
        """The derivative of f along the direction by central differences, extrapolated; None where step widths disagree."""
        exact = mapped(lambda x: x.astype(float) if isinstance(x, (np.ndarray, np.generic)) else x, self.here)
        moves = mapped(lambda d: np.asarray(d, float), self.direction)

        def central(h: float) -> Any:
            ahead, behind = flat(self.at(f, step(exact, moves, h))), flat(self.at(f, step(exact, moves, -h)))
            with np.errstate(all="ignore"):
                return (ahead - behind) / (2 * h)

        if not finite(flat(exact)):  # ∞ + h is ∞
            return None
        try:
            a, b, c = central(h), central(h / 2), central(h / 4)
        except Exception:  # a step leaves the domain: an index moves, a matrix is not definite
            return None
        coarse, fine = (4 * b - a) / 3, (4 * c - b) / 3
        return fine if finite(fine) and distance(coarse, fine) < 1e-7 else None

    @cached_property
    def steps(self) -> Any:
        return self.differences(self.moved(self.plain))

    @cached_property
    def smooth(self) -> bool:
        """Whether one-sided differences agree: where they do not, central ones are the middle of them, which is only one convention."""
        if self.program.mode in ("smooth", "float32"):
            return True
        f, h = self.moved(self.plain), 1e-6
        exact = mapped(lambda x: x.astype(float) if isinstance(x, (np.ndarray, np.generic)) else x, self.here)
        moves = mapped(lambda d: np.asarray(d, float), self.direction)
        with np.errstate(all="ignore"):
            try:
                behind, here, ahead = [flat(self.at(f, step(exact, moves, k))) for k in (-h, 0.0, h)]
            except Exception:
                return False
            return bool(distance((ahead - here) / h, (here - behind) / h) < 1e-3)

    def noise(self, f: Any) -> float:
        """How much f changes, relatively, where its arguments change by rounding."""
        size = 1e-6 if self.single else 1e-13
        draw = np.random.default_rng(5)
        here = f(*self.here)
        return max([distance(f(*mapped(lambda x: shaken(x, size, draw), self.here)), here) for _ in range(4)])

    # -- deciding

    def same(self, what: str, found: Any, expected: Any, again: Any = None, tolerance: float | None = None) -> None:
        """Equal up to rounding; `again`: a function of the moving arguments that tells how much rounding is magnified."""
        tolerance = self.tolerance if tolerance is None else tolerance
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape:
            raise Wrong(f"{what}: shape {found.shape}, not {expected.shape}", found, expected)
        if (off := distance(found, expected)) <= tolerance:
            return
        if again is not None and np.isfinite(off) and off < 100 * self.noise(again):
            raise Skip("badly conditioned")
        raise Wrong(
            f"{what}: off by {off:.1e}"
            if np.isfinite(off)
            else f"{what}: not finite where it should be, or the other way round",
            found,
            expected,
        )

    def judged(self, what: str, found: Any, by_jax: Any, by_steps: Any, again: Any) -> None:
        """Whether a derivative is right, by the rule at the top of this file."""
        if not finite(flat(self.value)):
            raise Skip("value not finite")
        loose = 1e-3 if self.single else 2e-6
        near_jax = by_jax is not None and distance(found, by_jax) <= self.tolerance
        near_steps = by_steps is not None and distance(found, by_steps) <= loose
        counts = self.report.counts
        if near_jax:
            if by_steps is not None and not near_steps:
                counts["differences differ, JAX agrees with riesz"] += 1
            return
        if near_steps:
            if by_jax is not None and not finite(by_jax):
                counts["JAX has nan or inf, differences are finite"] += 1
            elif by_jax is not None and distance(found, by_jax) > loose:
                counts["JAX differs, differences agree with riesz"] += 1
            elif by_jax is not None:  # too close to JAX for differences to tell
                self.same(f"{what} (JAX)", found, by_jax, again)
            return
        if by_jax is None and by_steps is None:
            raise Skip("no reference")
        if not self.smooth:
            raise Skip(
                "a kink, where no reference has riesz's convention" if finite(found) else "derivative not finite"
            )
        if by_jax is not None and by_steps is not None and finite(by_jax) and distance(by_jax, by_steps) > loose:
            raise Skip("JAX and differences disagree")
        if by_jax is not None and not finite(by_jax):
            if by_steps is None:
                raise Skip("JAX not finite, no differences")
            self.same(f"{what} (differences)", found, by_steps, again, loose)
        self.same(
            f"{what} ({'JAX' if by_jax is not None else 'differences'})",
            found,
            by_steps if by_jax is None else by_jax,
            again,
        )


# -- the checks ------------------------------------------------------------------------------------------------------


CHECKS: dict[str, tuple[int, Callable[[Point], None]]] = {}


def check(every: int) -> Any:
    """A check, made for one program in so many."""

    def entered(f: Any) -> Any:
        CHECKS[f.__name__.replace("_", " ")] = every, f
        return f

    return entered


def same_kinds(p: Point, what: str, found: Any, expected: Any) -> None:
    if p.single and any([re.search(r"\bs\.|rz\.cond|rz\.switch", line.text) for line in p.program.all_lines()]):
        return  # scipy.special stays float32 in riesz, where SciPy's own leaves it; branches have one type in riesz, each its own in Python
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        if np.asarray(a).dtype != np.asarray(b).dtype:
            raise Wrong(f"{what}: dtype {np.asarray(a).dtype}, not {np.asarray(b).dtype}", a, b)
        if np.shape(a) != np.shape(b):
            raise Wrong(f"{what}: shape {np.shape(a)}, not {np.shape(b)}", a, b)


@check(1)
def value(p: Point) -> None:
    f = rz.function(p.f)
    found = f(*p.args)
    if type(found) is not type(p.value) and isinstance(p.value, (dict, list, tuple)):
        raise Wrong(f"a {type(found).__name__}, not a {type(p.value).__name__}", found, p.value)
    same_kinds(p, "value", found, p.value)
    p.same("value", flat(found), flat(p.value), lambda *m: flat(p.at(p.moved(p.plain), m)), 1e-4 if p.single else 1e-12)
    fresh = p.program.values()
    if distance(flat(p.args), flat(fresh)) > 0:
        raise Wrong("the arguments were changed", p.args, fresh)
    for y in leaves(found):
        if isinstance(y, np.ndarray) and any(
            [isinstance(x, np.ndarray) and np.shares_memory(x, y) for x in leaves(p.args)]
        ):
            raise Wrong("the result shares memory with an argument", y)


@check(2)
def value_at_another_point(p: Point) -> None:
    """The same trace, other numbers."""
    f = rz.function(p.f)
    f(*p.args)
    try:
        expected = flat(p.at(p.plain, p.other))
    except Exception:
        raise Skip("another point is outside the domain") from None
    if not finite(expected) or np.abs(expected).max(initial=0.0) > 1e4:
        raise Skip("another point is outside the domain")
    there = [p.other[i] for i in p.moving]
    off = distance(flat(f(*p.other)), expected)
    if off > (1e-3 if p.single else 1e-11):
        draw = np.random.default_rng(5)
        near = [
            flat(p.at(p.moved(p.plain), mapped(lambda x: shaken(x, p.tolerance * 1e-4, draw), there))) for _ in range(4)
        ]
        if off < 100 * max([distance(y, expected) for y in near]):
            raise Skip("badly conditioned")
        raise Wrong(f"value at another point: off by {off:.1e}", flat(f(*p.other)), expected)


@check(1)
def jvp(p: Point) -> None:
    p.judged("jvp", p.forward, p.jax_forward, p.steps, lambda *m: flat(rz.jvp(p.moved(p.f), m, p.direction)[1]))


@check(1)
def vjp(p: Point) -> None:
    again = lambda *m: flat(rz.vjp(p.moved(p.f), *m)[1](p.weights))  # noqa: E731
    if p.rng.random() < 0.7 and finite(
        p.forward
    ):  # by its definition: ⟨w, L dx⟩ = ⟨L* w, dx⟩; JAX's own for the others
        found, expected = p.backward @ flat(p.direction), flat(p.weights) @ p.forward
        if np.isfinite(found):
            return p.same("⟨L* w, dx⟩ and ⟨w, L dx⟩", found, expected, lambda *m: again(*m) @ flat(p.direction))
    if not finite(flat(p.value)):
        raise Skip("value not finite")
    steps = None if p.steps is None else np.array([p.steps @ flat(p.weights)])
    if p.jax_backward is not None and distance(p.backward, p.jax_backward) <= p.tolerance:
        return
    found = np.array([p.backward @ flat(p.direction)])
    if p.jax_backward is None or not finite(p.jax_backward):
        p.judged("vjp", found, None, steps, lambda *m: np.array([again(*m) @ flat(p.direction)]))
    elif steps is not None and distance(found, steps) <= (1e-3 if p.single else 2e-6) < distance(
        p.backward, p.jax_backward
    ):
        p.report.counts["JAX differs, differences agree with riesz"] += 1
    elif steps is not None and distance(np.array([p.jax_backward @ flat(p.direction)]), steps) > 1e-3:
        raise Skip("JAX and differences disagree")
    elif not p.smooth:
        raise Skip("a kink, where no reference has riesz's convention")
    else:
        p.same("vjp (JAX)", p.backward, p.jax_backward, again)


@check(1)
def the_matrix_is_the_map(p: Point) -> None:
    """L(dx), rz.jvp, rz.vjp, L.H and the matrix agree."""
    L, D = p.derivative, p.dense
    if not (finite(D) and finite(p.forward) and finite(p.backward)):
        raise Skip("derivative not finite")
    here, back = flat(p.direction), flat(p.weights)
    again = lambda *m: rz.linearize(p.moved(p.f), *m)[1].to_dense()  # noqa: E731
    p.same("to_dense() @ dx and rz.jvp", D @ here, p.forward, again)
    p.same("to_dense().T @ w and rz.vjp", D.T @ back, p.backward, again)
    p.same("L(dx) and rz.jvp", flat(L(L.domain.unflatten(here))), p.forward, again)
    p.same("L.H(w) and rz.vjp", flat(L.H(L.codomain.unflatten(back))), p.backward, again)


@check(1)
def structure_is_true(p: Point) -> None:
    D, L = p.dense, p.derivative
    s = L.structure
    if not finite(D):
        raise Skip("derivative not finite")
    n = np.count_nonzero(D)
    if n > s.nonzeros:
        raise Wrong(f"structure {s.words!r} says at most {s.nonzeros} nonzeros", D, n)
    if D.size and D.any():
        values = np.linalg.svd(D, compute_uv=False)
        rank = int((values > (1e-4 if p.single else 1e-9) * values[0]).sum())
        if rank > s.rank:
            raise Wrong(f"structure {s.words!r} says rank at most {s.rank}", D, rank)
    i, j = np.nonzero(D)
    off = j - i
    one = len(L.domain.leaves) == len(L.codomain.leaves) == 1
    words = s.words
    good = True
    match s.kind:
        case "zero":
            good = not D.any()
        case "identity":
            good = np.array_equal(D, D[0, 0] * np.eye(len(D))) and (words != "identity" or D[0, 0] == 1.0)
        case "diagonal":
            good = not off.any()
        case "permutation":
            good = (
                (np.count_nonzero(D, 0) <= 1).all()
                and (np.count_nonzero(D, 1) <= 1).all()
                and np.unique(D[D != 0]).size <= 1
            )
        case "banded" if one:
            if "diagonal, at" in words:
                good = (off == int(words.split("at ")[1].replace(",", ""))).all()
            elif words == "tridiagonal":
                good = (np.abs(off) <= 1).all()
            elif words == "bidiagonal":
                good = (np.abs(off) <= 1).all() and np.unique(off).size <= 2
            elif found := re.search(r"(\d+) below and (\d+) above", words):
                good = (
                    (off >= -int(found[1])).all()
                    and (off <= int(found[2])).all()
                    and np.unique(off).size <= int(words.split()[0])
                )
            elif found := re.search(r"(\d+) to (\d+) (above|below)", words):
                sign = 1 if found[3] == "above" else -1
                good = (sign * off >= int(found[1])).all() and (sign * off <= int(found[2])).all()
    if not good:
        raise Wrong(f"structure {words!r} ({s.kind})", D)
    if "symmetric" in L.facts:
        p.same("symmetric", D, D.T)


@check(1)
def the_sparse_matrix_is_the_matrix(p: Point) -> None:
    sparse = p.derivative.to_sparse()
    if not finite(p.dense):
        raise Skip("derivative not finite")
    p.same("to_sparse()", sparse.toarray(), p.dense)
    if sparse.nnz > max(p.derivative.structure.nonzeros, 0) and p.derivative.structure.kind != "product":
        raise Wrong("to_sparse() stores more than structure.nonzeros", sparse.nnz, p.derivative.structure.nonzeros)


@check(6)
def the_pattern_is_that_of_every_point(p: Point) -> None:
    """Nonzeros at another point lie in the pattern of this one."""
    if not p.derivative.sparsity().derived:
        raise Skip("pattern of this point")
    sparse = p.derivative.to_sparse()
    pattern = np.zeros(sparse.shape, bool)
    sparse = sparse.tocoo()
    pattern[sparse.coords] = True
    there = np.asarray(rz.linearize(p.f, *p.other)[1].to_dense())
    if finite(there) and (there[~pattern] != 0).any():
        raise Wrong("a nonzero outside the pattern at another point", there, pattern)


@check(3)
def matrices_made_of_the_map(p: Point) -> None:
    L, D = p.derivative, p.dense
    if not finite(D):
        raise Skip("derivative not finite")
    p.same("simplify()", L.simplify().to_dense(), D)
    p.same("simplify()(dx)", flat(L.simplify()(L.domain.unflatten(flat(p.direction)))), D @ flat(p.direction))
    p.same("H.to_dense()", L.H.to_dense(), D.T)
    p.same("column_norms()", L.column_norms(), np.linalg.norm(D, axis=0))
    gram = L.gram()
    p.same("gram().to_dense()", gram.to_dense(), D.T @ D)
    p.same("gram().diagonal()", gram.diagonal(), np.sum(D * D, axis=0))


@check(6)
def other_matrices_made_of_the_map(p: Point) -> None:
    L, D = p.derivative, p.dense
    if not finite(D):
        raise Skip("derivative not finite")
    p.same("row_norms()", L.row_norms(), np.linalg.norm(D, axis=1))
    p.same("H.to_sparse()", L.H.to_sparse().toarray(), D.T)
    p.same("2 L − L", (2.0 * L - L).to_dense(), D)
    p.same("L @ L.H", (L @ L.H).to_dense(), D @ D.T)
    p.same("trace of L.H @ L", (L.H @ L).trace(), np.sum(D * D))
    if D.shape[0] == D.shape[1]:
        p.same("diagonal()", L.diagonal(), np.diagonal(D))
        p.same("trace()", L.trace(), np.trace(D))
    try:
        blocks = L.blocks()
    except RieszError:
        return
    sum_of = np.zeros(D.shape)
    np.add.at(sum_of, (np.asarray(blocks.rows)[:, :, None], np.asarray(blocks.columns)[:, None, :]), blocks.values)
    p.same("blocks()", sum_of, D)


@check(2)
def solving(p: Point) -> None:
    L, D = p.derivative, p.dense
    if D.shape[0] != D.shape[1] or not D.size or not finite(D) or p.single:
        return
    condition = np.linalg.cond(D)
    b = np.cos(np.arange(len(D)))
    if condition > 1e7:
        with suppress(SolveError):
            L.solve(L.codomain.unflatten(b))
        return
    p.same("solve(b)", D @ flat(L.solve(L.codomain.unflatten(b))), b, tolerance=1e-14 * condition + 1e-10)


@check(2)
def gradient(p: Point) -> None:
    """∇ of a functional, from its sweep, its generated code and the adjoint."""
    value, found = rz.value_and_grad(p.g, p.moving)(*p.args)
    p.same(
        "value of value_and_grad",
        flat(value),
        flat(p.at(p.functional(p.plain, np), p.args)),
        lambda *m: flat(p.at(p.moved(p.functional(p.plain, np)), m)),
    )
    same_kinds(p, "gradient", found, p.here)
    if not finite(flat(p.value)):
        raise Skip("value not finite")
    w = flat(p.weights) + flat(p.curves) * flat(p.value)
    if finite(p.dense) and finite(w) and finite(flat(found)):
        p.same("gradient", flat(found), p.dense.T @ w, lambda *m: flat(rz.grad(p.moved(p.g), tuple(range(len(m))))(*m)))
    else:
        raise Skip("derivative not finite")


@check(4)
def second_derivative(p: Point) -> None:
    n = tuple(range(len(p.here)))
    g = p.moved(p.g)
    found = rz.hvp(g, p.here, p.direction)
    if finite(flat(p.gradient)) and finite(flat(found)):
        same_kinds(p, "hvp", found if len(p.here) > 1 else (found,), p.here)
    elif not finite(flat(p.gradient)):
        raise Skip("derivative not finite")
    by_steps = None if p.single else p.differences(rz.grad(g, n))
    by_jax = (
        p.jax_second if p.rng.random() < 0.5 or by_steps is None or distance(flat(found), by_steps) > 2e-6 else None
    )
    p.judged("hvp", flat(found), by_jax, by_steps, lambda *m: flat(rz.hvp(g, m, p.direction)))


@check(8)
def hessian(p: Point) -> None:
    g, n = p.moved(p.g), tuple(range(len(p.here)))
    product = flat(rz.hvp(g, p.here, p.direction))
    H = rz.hessian(g, n)(*p.here)
    D = np.asarray(H.to_dense(), float)
    if not (finite(D) and finite(product)):
        raise Skip("derivative not finite")
    again = lambda *m: rz.hessian(g, n)(*m).to_dense()  # noqa: E731
    p.same("hessian @ dx and hvp", D @ flat(p.direction), product, again)
    p.same("symmetry of the Hessian", D, D.T, again)
    p.same("hessian.to_sparse()", H.to_sparse().toarray(), D)
    p.same("hessian.diagonal()", H.diagonal(), np.diagonal(D))
    rank_and_count = H.structure
    if np.count_nonzero(D) > rank_and_count.nonzeros:
        raise Wrong(
            f"the Hessian's structure {rank_and_count.words!r} says at most {rank_and_count.nonzeros} nonzeros", D
        )


@check(12)
def orders_of_differentiation(p: Point) -> None:
    """Reverse over forward and reverse over reverse are forward over reverse."""
    n = tuple(range(len(p.here)))
    g = p.moved(p.g)
    found = flat(rz.hvp(g, p.here, p.direction))
    if not finite(found):
        raise Skip("derivative not finite")
    again = lambda *m: flat(rz.hvp(g, m, p.direction))  # noqa: E731
    p.same("reverse over forward", flat(rz.grad(lambda *m: rz.jvp(g, m, p.direction)[1], n)(*p.here)), found, again)
    moves = leaves(p.direction)

    def turned(*m: Any) -> Any:
        return sum([np.sum(d * v) for d, v in zip(leaves(rz.grad(g, n)(*m)), moves, strict=True)])

    p.same("reverse over reverse", flat(rz.grad(turned, n)(*p.here)), found, again)


@check(20)
def derived_symbolically(p: Point) -> None:
    if len(p.moving) < len(p.args) or p.single:
        return
    if not finite(flat(p.gradient)):
        raise Skip("derivative not finite")
    spaces = [rz.space_of(mapped(lambda x: x if np.ndim(x) else float(x), a)) for a in p.args]
    derivation = rz.derive(p.g, *spaces)
    point = mapped(lambda x: x if np.ndim(x) else float(x), p.args)
    found = derivation.adjoint(point if len(point) > 1 else point[0])(1.0)
    p.same("derive(…).adjoint", flat(found), flat(p.gradient), lambda *m: flat(rz.grad(p.g, p.moving)(*m)))
    str(derivation)


@check(16)
def mapped_over_an_axis(p: Point) -> None:
    if p.single:
        return
    rows = [mapped(lambda a, b: np.stack([a, b]), p.here[i], p.other[at]) for i, at in enumerate(p.moving)]
    there = [p.other[at] for at in p.moving]
    try:
        value = flat(p.at(p.moved(p.plain), there))
    except Exception:  # a number outside an interval, or of a type that a list cannot be multiplied by
        value = np.full(1, np.nan)
    if not finite(value):
        raise Skip("another point is outside the domain")
    g = p.moved(p.g)
    n = tuple(range(len(p.here)))
    found = leaves(rz.vmap(rz.grad(g, n))(*rows))
    for k, point in enumerate((p.here, there)):
        expected = flat(rz.grad(g, n)(*point))
        if not finite(expected):
            raise Skip("derivative not finite")
        again = lambda *m: flat(rz.grad(g, n)(*m))  # noqa: E731
        p.same(
            f"vmap(grad), row {k}",
            flat([r[k] for r in found]),
            expected,
            again if k == 0 else None,
            1e-9 if k == 0 else 1e-6,
        )


@check(12)
def printed(p: Point) -> None:
    str(p.derivative)
    str(p.derivative.simplify())
    repr(p.derivative.structure)
    p.derivative.latex()


def compiled(p: Point, backend: str) -> None:
    """Value and gradient as generated code."""
    tolerance = 1e-3 if p.single else 1e-10
    c = rz.compile(p.f, *p.args, backend=backend)
    found = c(*p.args)
    if not p.single or backend != "jax":
        same_kinds(p, f"value on {backend}", found, p.value)
    p.same(f"value on {backend}", flat(found), flat(p.value), lambda *m: flat(p.at(p.moved(p.plain), m)), tolerance)
    if not finite(flat(p.gradient)):
        raise Skip("derivative not finite")
    found = rz.compile(rz.grad(p.g, p.moving), *p.args, backend=backend)(*p.args)
    p.same(
        f"gradient on {backend}",
        flat(found),
        flat(p.gradient),
        lambda *m: flat(rz.grad(p.moved(p.g), tuple(range(len(m))))(*m)),
        tolerance,
    )
    same_kinds(p, f"gradient on {backend}", found, p.here)


@check(10)
def compiled_to_numpy(p: Point) -> None:
    compiled(p, "numpy")


@check(10)
def compiled_to_python(p: Point) -> None:
    compiled(p, "python")


@check(100)
def compiled_to_numba(p: Point) -> None:
    compiled(p, "numba")


@check(100)
def compiled_to_jax(p: Point) -> None:
    compiled(p, "jax")


@check(8)
def no_warnings(p: Point) -> None:
    """Where plain NumPy has nothing to warn of, neither value nor derivatives do."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            p.plain(*p.program.values())
        except Exception:
            return
        try:
            rz.function(p.program.function(RIESZ))(*p.program.values())
            rz.grad(p.functional(p.program.function(RIESZ), np), p.moving)(*p.program.values())
        except Warning as w:
            raise Wrong(f"a warning: {w}") from None


# -- all of them -------------------------------------------------------------------------------------------------------


def located(problem: BaseException) -> str:
    """Type of an exception and the last lines of riesz it went through."""
    frames = [
        f for f in traceback.extract_tb(problem.__traceback__) if "riesz" in f.filename and "/fuzz/" not in f.filename
    ]
    at = [f"{f.filename.rsplit('riesz/', 1)[-1]}:{f.name}" for f in frames[-2:]]
    return f"{type(problem).__name__} in {' > '.join(at) or 'no line of riesz'}"


def normal(message: str) -> str:
    """A message without its numbers and names."""
    return re.sub(r"\d+", "#", re.sub(r"\b[fuvw]\d+\b", "…", message.split("\n")[0]))[:160]


def made(p: Point, name: str, run: Callable[[Point], None]) -> Failure | None:
    """One check."""
    report = p.report
    report.counts[f"check: {name}"] += 1
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run(p)
    except Wrong as wrong:
        return Failure(
            name,
            f"{name}: {normal(re.sub(r'off by .*', 'off', wrong.what))}",
            wrong.what,
            brief(wrong.found),
            brief(wrong.expected),
        )
    except Skip as skip:
        report.skips[str(skip)] += 1
    except RieszError as refusal:
        said = ("does not compute the same when it is traced", "gives a result in plain Python, but")
        if any([text in str(refusal) for text in said]):  # these programs ask for no types: riesz is wrong
            return Failure(name, f"value: other than plain Python's, {located(refusal)}", str(refusal))
        report.refusals[f"{type(refusal).__name__}: {normal(str(refusal))}"] += 1
    except Exception as problem:
        text = "".join(traceback.format_exception(problem, limit=-6))
        return Failure(name, f"internal: {located(problem)}", f"{type(problem).__name__}: {problem}", text)
    return None


def point_of(program: Program, report: Report, seed: Any = 0) -> Point:
    return Point(program, np.random.default_rng(seed), report)


def examined(seed: int, k: int) -> tuple[Program, Report]:
    """Program k of a seed, and what its checks found."""
    program, report = random_program(seed, k), Report()
    rng = np.random.default_rng((seed, k, 1))
    p = Point(program, rng, report)
    seen: set[str] = set()
    for name, (every, run) in CHECKS.items():
        if every > 1 and rng.random() * every >= 1.0:
            continue
        failure = made(p, name, run)
        if failure is not None and failure.signature not in seen:
            seen.add(failure.signature)
            report.failures.append(failure)
        if (failure is not None and name == "value") or report.refusals:
            break
    return program, report
