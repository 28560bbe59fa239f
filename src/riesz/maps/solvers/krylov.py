"""Krylov: a solver for maps that can only be applied, by conjugate gradients, MINRES, GMRES or LSMR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse.linalg as _sparse_linalg  # pyright: ignore[reportMissingTypeStubs]

from ...errors import SolveError, VectorError
from ...runtime import later
from ...runtime.progress import working
from .factorised import Solver
from .kept_iterations import chained, conjugate_gradients, itself, least_squares

sparse_linalg = cast(Any, _sparse_linalg)

_TITLES = {"cg": "conjugate gradients", "minres": "MINRES", "gmres": "GMRES", "lgmres": "LGMRES", "lsmr": "LSMR"}


class Krylov(Solver):
    """The m × n matrix behind `apply` and `apply_transpose` (functions of flat vectors), solved iteratively, one
    right-hand side after another.

    Conjugate gradients where it is symmetric positive definite, MINRES where symmetric, GMRES where square, LSMR
    otherwise, or `method`. `preconditioner` is a Solver for a matrix near A (for LSMR, one that scales the unknowns),
    such as Diagonal or Blocks. `iterations` and `residual` (relative to b; for LSMR ‖Aᵀr‖ / ‖A‖‖r‖ where r stays) tell
    of the last solve. `checkpoint` is a file that conjugate gradients and LSMR write every so many iterations and go on
    from.
    """

    def __init__(
        self,
        apply: Callable[[Any], Any],
        apply_transpose: Callable[[Any], Any] | None,
        n: int,
        m: int | None = None,
        *,
        symmetric: bool = False,
        definite: bool = False,
        preconditioner: Solver | None = None,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        method: str | None = None,
        dtype: Any = float,
        checkpoint: Any = None,
        every: int = 100,
    ) -> None:
        super().__init__((n if m is None else m, n), dtype)
        self._forward, self._backward = apply, apply if symmetric and apply_transpose is None else apply_transpose
        square, usual = self.shape[0] == n, "cg" if symmetric and definite else "minres" if symmetric else "gmres"
        self.method = method or (usual if square else "lsmr")
        if self.method not in _TITLES or (not square and self.method != "lsmr"):
            due = f"expected one of {', '.join(_TITLES)}; only lsmr takes rectangles"
            raise VectorError(f"method={method!r} for a map of shape {self.shape}: {due}")
        if self.method == "lsmr" and self._backward is None:
            raise VectorError("LSMR needs the transpose too: give apply_transpose")
        if preconditioner is not None and preconditioner.shape != (n, n):
            raise VectorError(f"a preconditioner for {n} unknowns is {n} × {n}; got {preconditioner!r}")
        if checkpoint is not None and self.method not in ("cg", "lsmr"):
            raise SolveError(f"checkpoints are kept by method='cg' and 'lsmr'; this is {_TITLES[self.method]}")
        self.checkpoint, self.every = checkpoint, every
        self.symmetric = symmetric
        self.preconditioner = preconditioner
        self.tolerance = float(np.finfo(self.dtype).eps) ** 0.65 if tolerance is None else tolerance
        self.max_iterations = max(10 * min(self.shape), 100) if max_iterations is None else max_iterations
        self.iterations = 0
        self.residual = 0.0
        helped = "" if preconditioner is None else f", preconditioned by: {preconditioner.name}"
        self.name = f"{_TITLES[self.method]} to a relative residual of {self.tolerance:.1e}{helped}"
        self.flops = float("nan")  # depends on the map and on how many iterations it takes

    def _run(self, b: Any, transposed: bool) -> Any:
        if transposed and self._backward is None:
            raise VectorError(f"{self.name}: a transposed system needs apply_transpose")
        forward, backward = (self._backward, self._forward) if transposed else (self._forward, self._backward)
        shape = self.shape[::-1] if transposed else self.shape
        A = sparse_linalg.LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=self.dtype)
        one = self._least_squares if self.method == "lsmr" else self._square
        if self.checkpoint is not None:
            if b.shape[1] != 1:
                raise SolveError(f"a checkpoint is of one right-hand side; got {b.shape[1]}")
            one = self._kept
        with working(f"{_TITLES[self.method]}, {shape[1]:,} unknowns") as self._work:
            return np.stack([one(A, column, transposed) for column in b.T], axis=1).astype(self.dtype, copy=False)

    def _apply(self, x: Any, transposed: bool) -> Any:
        f = cast(Any, self._backward if transposed else self._forward)
        return np.stack([f(column) for column in x.T], axis=1)

    def _square(self, A: Any, b: Any, transposed: bool) -> Any:
        size = float(np.linalg.norm(b))
        if not size:
            return np.zeros_like(b)
        if not np.isfinite(size):
            raise SolveError(f"{self.name}: the right-hand side is not finite")
        P, near = self.preconditioner, None
        if P is not None:
            solve = partial(P.solve, transposed=transposed)
            near = sparse_linalg.LinearOperator(A.shape, matvec=solve, dtype=self.dtype)
        self.iterations = 0

        def count(_: Any) -> None:
            self.iterations += 1
            self._work.say(self.iterations)

        options: dict[str, Any] = {"rtol": self.tolerance, "maxiter": self.max_iterations, "M": near, "callback": count}
        if self.method == "minres":
            options["rtol"] = self.tolerance / 10.0  # its own estimate is relative to ‖A‖‖x‖
        else:
            options["atol"] = 0.0
        if self.method == "gmres":
            restart = min(len(b), 50)
            cycles = min(-(-self.max_iterations // restart), 20)  # then it is looked whether that has led anywhere
            options |= {"restart": restart, "maxiter": cycles, "callback_type": "pr_norm"}
        x, last = np.zeros_like(b), np.inf
        self.residual = 1.0
        while self.residual > self.tolerance and self.residual < 0.5 * last and self.iterations < self.max_iterations:
            last = self.residual  # SciPy may stop by a measure of its own: go on with what is left
            x = x + getattr(sparse_linalg, self.method)(A, b - A.matvec(x), **options)[0]
            self.residual = float(np.linalg.norm(b - A.matvec(x))) / size
        if not self.residual <= 10.0 * self.tolerance:
            raise SolveError(self._stalled("‖b − A x‖ / ‖b‖"))
        return x

    def _least_squares(self, A: Any, b: Any, transposed: bool) -> Any:
        P = None if transposed else self.preconditioner
        if not np.isfinite(b).all():
            raise SolveError(f"{self.name}: the right-hand side is not finite")
        given = A
        if P is not None:
            back = partial(P.solve, transposed=True)
            given = A @ sparse_linalg.LinearOperator((A.shape[1],) * 2, matvec=P.solve, rmatvec=back)
        limits = {"atol": self.tolerance, "btol": self.tolerance, "conlim": 0.0, "maxiter": self.max_iterations}
        x, stop, self.iterations, norm_r, norm_ar, norm_a = sparse_linalg.lsmr(given, b, **limits)[:6]
        self.residual = float(min(norm_r / (np.linalg.norm(b) or 1.0), norm_ar / ((norm_a * norm_r) or 1.0)))
        if stop == 7 or not np.isfinite(x).all():
            raise SolveError(self._stalled("‖Aᵀr‖ / ‖A‖‖r‖"))
        return x if P is None else P.solve(x)

    def _kept(self, A: Any, b: Any, transposed: bool) -> Any:
        """The solution, round by round, from the checkpoint on."""
        if not np.isfinite(b).all():
            raise SolveError(f"{self.name}: the right-hand side is not finite")
        P, squares = None if transposed and self.method == "lsmr" else self.preconditioner, self.method == "lsmr"
        ahead, back = itself, itself
        if P is not None:
            ahead, back = partial(P.solve, transposed=transposed), partial(P.solve, transposed=transposed != squares)
        of = {"the method": _TITLES[self.method], "the right-hand side": b}
        of["the map"] = A.rmatvec(b) if squares else A.matvec(b)
        of["the preconditioner"] = back(of["the map"])
        file = later.Checkpoint(self.checkpoint, of, self.every)
        if squares:
            states = partial(least_squares, chained(ahead, A.matvec), chained(A.rmatvec, back), b)
        else:
            states = partial(conjugate_gradients, A.matvec, ahead, b)
        first = next(states(None))
        size = float(np.linalg.norm(b))
        found = file.found(first)
        for state in states(first if found is None else found[1]):
            self.iterations = state["k"]
            self._work.say(self.iterations)
            file.keep(self.iterations, state)
            self.residual = state["size"] / (size or 1.0)
            if squares and state["size"]:
                self.residual = min(self.residual, state["slope"] / ((state["norm"] * state["size"]) or 1.0))
            if self.residual <= self.tolerance:
                x = ahead(state["x"]) if squares else state["x"]
                if squares or np.linalg.norm(b - A.matvec(x)) <= 10.0 * self.tolerance * size:
                    return x
                break
            if self.iterations >= self.max_iterations or not np.isfinite(self.residual):
                break
        raise SolveError(self._stalled("‖Aᵀr‖ / ‖A‖‖r‖" if squares else "‖b − A x‖ / ‖b‖"))

    def _stalled(self, what: str) -> str:
        reached = f"{what} = {self.residual:.1e}, {self.tolerance:.1e} is asked for"
        return (
            f"{self.name}: not there after {self.iterations} iterations, {reached}; the map may be singular or badly "
            "conditioned: try a preconditioner, more iterations or a larger tolerance"
        )


class ScipyIterations(Solver):
    """A function of scipy.sparse.linalg as somebody called it, on the matrix of a map; transposed systems, which only
    derivatives ask for, to nearly full precision."""

    def __init__(self, L: Any, *, name: str, said: Any) -> None:
        super().__init__(L.shape, L.dtype, f"scipy.sparse.linalg.{name}")
        self.matrix, self._function, self._said = L.stored(), name, said

    def _run(self, b: Any, transposed: bool) -> Any:
        A: Any = self.matrix.T if transposed else self.matrix
        close = max(1e-12, 10.0 * float(np.finfo(self.dtype).eps))
        named = {"rtol": close, "maxiter": 20 * self.shape[0]} if transposed else self._said.options
        found = [self._column(A, column, named, transposed) for column in b.T]
        return np.stack(found, axis=1).astype(self.dtype, copy=False)

    def _column(self, A: Any, b: Any, named: Any, transposed: bool) -> Any:
        """One system. Some methods break down where the solution is nearly exact; gmres goes on from there."""
        x, info = getattr(sparse_linalg, self._function)(A, b, **named)
        rtol = named.get("rtol", 1e-5)
        if info and np.linalg.norm(A @ x - b) <= 10.0 * rtol * np.linalg.norm(b):
            return x
        if info < 0 or (info and transposed):
            x, info = sparse_linalg.gmres(A, b, x if np.isfinite(x).all() else None, rtol=rtol)
        if info:
            raise SolveError(f"{self.name}: not there after {info} iterations; more (maxiter=…), or spsolve")
        return x
