"""Solvers made of solvers: reordered unknowns, a base plus low rank (Woodbury), Kronecker products and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import SolveError, VectorError
from ...runtime.warnings_off import quietly
from .factorised import Dense, Solver, care, least, linalg, numbers, parity, square

Shape = tuple[int, ...]


class Composite(Solver):
    """A solver that goes the same way through others whether it solves or applies."""

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        """`method` of the others, "solve" or "apply", on columns."""
        raise NotImplementedError

    def _run(self, b: Any, transposed: bool) -> Any:
        return self._through(b, "solve", transposed)

    def _apply(self, x: Any, transposed: bool) -> Any:
        return self._through(x, "apply", transposed)


class Reordered(Composite):
    """Unknown i is unknown place[i] of another solver, whose other unknowns are padding."""

    def __init__(self, inner: Solver, place: Any, how: str = "reordered") -> None:
        self.inner, self.place = inner, np.asarray(place, np.intp)
        n = len(self.place)
        super().__init__((n, n), inner.dtype, f"{how}, {inner.name}", inner.flops, inner.rcond)

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        padded = np.zeros((self.inner.shape[0], x.shape[1]), self.dtype)
        padded[self.place] = x
        return getattr(self.inner, method)(padded, transposed=transposed)[self.place]

    def _slogdet(self) -> tuple[Any, Any]:
        return self.inner.slogdet()  # rows and columns change places alike


class LowRankPlus(Solver):
    """A + U Vᵀ with A a solver and U, V of shape (n, k) (V = U if not given).

    (A + U Vᵀ)⁻¹ = A⁻¹ − A⁻¹U (I + VᵀA⁻¹U)⁻¹ VᵀA⁻¹   (Woodbury).

    Solutions are refined, since the formula by itself loses digits where A is small beside U Vᵀ: once, twice where it
    loses half of them, and as long as it helps where it loses more.
    """

    refinements = 2

    def __init__(self, base: Solver, U: Any, V: Any = None, rcond: float | None = None) -> None:
        self.base = base
        self.U = _matrix(U, "U", base.dtype)
        self.V = self.U if V is None else _matrix(V, "V", base.dtype)
        n, k = self.U.shape
        if self.V.shape != (n, k) or n != base.shape[0]:
            given = f"A is {base.shape[0]} × {base.shape[1]}, U has shape {self.U.shape}, V {self.V.shape}"
            raise VectorError(f"A + U Vᵀ: {given}; (n, k) for both is due")
        flops = (k + 1.0) * base.flops + 2.0 * n * k**2 + 2.0 / 3.0 * k**3 + 8.0 * n * k
        super().__init__(base.shape, base.dtype, f"{base.name}; plus rank {k}: Woodbury", flops)
        if care() == "parts":
            return
        with quietly():
            self.left = base._refined(self.U, False)
            small = np.eye(k, dtype=self.dtype) + self.V.T @ self.left
        if not np.isfinite(small).all():  # what is not finite in U or V is not finite here: say where it is
            self.left = base.solve(numbers(self.U, "U", 2))
            numbers(self.V, "V", 2)
        try:
            self.capacitance = Dense(small, rcond)
        except SolveError as error:
            raise SolveError(f"{self.name}: A + U Vᵀ is singular, since I + VᵀA⁻¹U ({k} × {k}) is: {error}") from None
        eps = float(np.finfo(self.dtype).eps)
        due = least(self.dtype, rcond)
        with quietly():
            terms = 1.0 + _norms(self.V).sum() * _norms(self.left)  # at least the sizes in a column, added up
            known = self.capacitance.rcond * _share(small, terms)
            if not known > due:
                terms = 1.0 + (np.abs(self.V).T @ np.abs(self.left)).sum(axis=0)
                known = self.capacitance.rcond * _share(small, terms)
        if not known > due:
            lost = f"all digits of I + VᵀA⁻¹U ({k} × {k}) cancel"
            raise SolveError(f"{self.name}: A + U Vᵀ is singular to working precision: {lost}")
        self.rcond = min(base.rcond, known)
        # errors grow by size / digits; one refinement leaves about the square
        size, digits = float(terms.max(initial=1.0)), base.rcond * known
        self.refinements = 1 if eps * size * size < digits * digits else 2 if eps**0.6 * size < digits else 20
        if self.refinements > 2:
            self._try(eps)

    def _try(self, eps: float) -> None:
        """Whether solutions can be refined, by one right-hand side for each side; if not, other ways may do."""
        b = np.cos(np.arange(self.shape[0], dtype=self.dtype))[:, None]
        with quietly():
            for transposed in (False, True):
                rest = np.abs(b - self._apply(self._refined(b, transposed), transposed)).max(initial=0.0)
                if not rest <= eps**0.6:
                    raise SolveError(f"{self.name}: all digits are lost where A is small beside U Vᵀ")

    def _refined(self, b: Any, transposed: bool) -> Any:
        if self.refinements < 3:
            return super()._refined(b, transposed)
        x, before = self._scaled(b, transposed), math.inf
        for _ in range(self.refinements):
            rest = b - self._apply(x, transposed)
            size = float(np.abs(rest).max(initial=0.0))
            if not size < 0.5 * before:
                break
            x, before = x + self._scaled(rest, transposed), size
        return x

    def _slogdet(self) -> tuple[Any, Any]:
        # det(A + U Vᵀ) = det A · det(I + VᵀA⁻¹U)
        return _multiplied([self.base, self.capacitance])

    @cached_property
    def right(self) -> Any:
        """A⁻ᵀV, for transposed solutions."""
        return self.base.solve(self.V, transposed=True)

    def _run(self, b: Any, transposed: bool) -> Any:
        first = self.base._refined(b, transposed)
        if transposed:
            return first - self.right @ self.capacitance._scaled(self.U.T @ first, True)
        return first - self.left @ self.capacitance._scaled(self.V.T @ first, False)

    def _apply(self, x: Any, transposed: bool) -> Any:
        left, right = (self.V, self.U) if transposed else (self.U, self.V)
        return self.base._apply(x, transposed) + left @ (right.T @ x)


def _multiplied(solvers: list[Solver], times: Any = None) -> tuple[float, float]:
    """Sign and size of a product of determinants, each so often."""
    found = [s.slogdet() for s in solvers]
    often = [1] * len(found) if times is None else times
    signs = [sign if k % 2 else abs(sign) for (sign, _), k in zip(found, often, strict=True)]
    return math.prod(signs), sum([k * size for (_, size), k in zip(found, often, strict=True)])


def _norms(a: Any) -> Any:
    """The norms of columns, without a temporary as large as the matrix."""
    return np.sqrt(np.einsum("ij,ij->j", a, a))


def _share(small: Any, terms: Any) -> float:
    """How much of its terms is left in the column where the most has cancelled."""
    return float((np.abs(small).sum(axis=0) / terms).min(initial=1.0))


def _matrix(array: Any, what: str, dtype: Any) -> Any:
    """An array with two axes in a given precision; whether its numbers are finite is seen later."""
    found = np.asarray(array)
    return (found if found.ndim == 2 and found.dtype.kind == "f" else numbers(found, what, 2)).astype(dtype, copy=False)


def _along(f: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """A function of columns along one axis of an array."""
    moved = np.moveaxis(x, axis, 0)
    found = f(moved.reshape(moved.shape[0], moved.size // max(moved.shape[0], 1)))
    return np.moveaxis(found.reshape(found.shape[0], *moved.shape[1:]), 0, axis)


class Kronecker(Composite):
    """A₁ ⊗ A₂ ⊗ …, solved factor by factor; the factors are solvers or square matrices."""

    def __init__(self, *factors: Any) -> None:
        if not factors:
            raise VectorError("a Kronecker product needs at least one factor")
        self.factors: list[Solver] = []
        for i, f in enumerate(factors):
            try:
                self.factors.append(f if isinstance(f, Solver) else Dense(f))
            except SolveError as error:
                raise SolveError(f"Kronecker product: factor {i} is singular: {error}") from None
        self.sizes = tuple([f.shape[0] for f in self.factors])
        n = math.prod(self.sizes)
        super().__init__((n, n), np.result_type(*[f.dtype for f in self.factors]))
        shown = "; ".join([f"{f.shape[0]} × {f.shape[0]} {f.name}" for f in self.factors])
        self.name = f"Kronecker product, factor by factor: {shown}"
        self.flops = sum([f.flops * (n / max(k, 1)) for f, k in zip(self.factors, self.sizes, strict=True)])
        self.rcond = math.prod([f.rcond for f in self.factors])

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        found = x.reshape(*self.sizes, x.shape[1])
        for axis, factor in enumerate(self.factors):
            step = getattr(factor, method)
            found = _along(lambda c, step=step: step(c, transposed=transposed), found, axis)
        return found.reshape(x.shape)

    def _slogdet(self) -> tuple[Any, Any]:
        return _multiplied(self.factors, [self.shape[0] // k for k in self.sizes])

    def _apply(self, x: Any, transposed: bool) -> Any:
        return super()._apply(x, transposed).astype(self.dtype, copy=False) if x.size else x


class KroneckerSum(Solver):
    """A₁ ⊗ I ⊗ … + I ⊗ A₂ ⊗ … + …: by eigenvectors if all are symmetric, by Sylvester's equation if two."""

    refinements = 1

    def __init__(self, *matrices: Any, rcond: float | None = None) -> None:
        self.matrices = [square(a, f"matrix {i} of a Kronecker sum") for i, a in enumerate(matrices)]
        self.sizes = tuple([len(a) for a in self.matrices])
        n = math.prod(self.sizes)
        super().__init__((n, n), np.result_type(*[a.dtype for a in self.matrices]) if matrices else float)
        shown = " + ".join([f"{k} × {k}" for k in self.sizes])
        self.symmetric = all([np.array_equal(a, a.T) for a in self.matrices])
        if not matrices or (len(matrices) != 2 and not self.symmetric):
            takes = "any number of symmetric matrices, or two of any kind"
            raise VectorError(f"a Kronecker sum takes {takes}; got {len(matrices)}, not all symmetric")
        how = "eigenvectors of the summands" if self.symmetric else "Sylvester equation by Schur forms"
        self.name = f"Kronecker sum of {shown}: {how}"
        self.flops = sum([(9.0 if self.symmetric else 25.0) * k**3 + 4.0 * n * k for k in self.sizes])
        if not n or care() == "parts":
            return
        if self.symmetric:
            found = [linalg.eigh(a, check_finite=False) for a in self.matrices]
            values = [w for w, _ in found]
        else:
            found = [linalg.schur(a, output="real", check_finite=False) for a in self.matrices]
            values = [linalg.eigvals(t) for t, _ in found]
            self.triangles = [t for t, _ in found]
        self.bases = [q for _, q in found]
        axes = range(len(values))
        self.sums: Any = sum([w.reshape([-1 if i == j else 1 for j in axes]) for i, w in enumerate(values)])
        sizes = np.abs(self.sums)
        self.rcond = float(sizes.min() / sizes.max()) if sizes.max() else 0.0
        if not self.rcond > least(self.dtype, rcond):
            where = np.unravel_index(int(np.argmin(sizes)), sizes.shape)
            zero = " + ".join([f"{w[i]:.3g}" for w, i in zip(values, where, strict=True)])
            raise SolveError(f"{self.name}: singular, the eigenvalues {zero} of the summands add up to 0")
        if not self.symmetric:  # eigenvalues of matrices far from normal say little
            self._inspect(sum([float(np.abs(a).sum(axis=0).max()) for a in self.matrices]), rcond)

    def _slogdet(self) -> tuple[Any, Any]:
        turns = np.cos(np.angle(self.sums).sum(dtype=float))  # of complex pairs nothing is left
        return float(np.sign(turns)), np.log(np.abs(self.sums)).sum(dtype=float)

    def _rotate(self, x: Any, back: bool) -> Any:
        for axis, q in enumerate(self.bases):
            x = _along(lambda c, q=q: (q if back else q.T) @ c, x, axis)
        return x

    def _run(self, b: Any, transposed: bool) -> Any:
        turned = self._rotate(b.reshape(*self.sizes, b.shape[1]), False)
        if self.symmetric:
            found = turned / self.sums[..., None]
        else:
            trsyl = linalg.get_lapack_funcs("trsyl", (turned, *self.triangles))
            ways = ("T", "N") if transposed else ("N", "T")  # A X + X Bᵀ = C, or Aᵀ X + X B = C
            found = np.empty_like(turned)
            for k in range(turned.shape[2]):
                x, scale, _ = trsyl(*self.triangles, turned[:, :, k], trana=ways[0], tranb=ways[1])
                found[:, :, k] = x / scale
        return self._rotate(found, True).reshape(b.shape).astype(self.dtype, copy=False)

    def _apply(self, x: Any, transposed: bool) -> Any:
        cube = x.reshape(*self.sizes, x.shape[1])
        found: Any = np.zeros(cube.shape, self.dtype)
        for i, a in enumerate(self.matrices):
            found += _along(lambda c, a=a: (a.T if transposed else a) @ c, cube, i)
        return found.reshape(x.shape)


class Axes(Composite):
    """A solver on arrays whose axes are in another order: those of rows and columns as the given lists say."""

    def __init__(self, inner: Solver, row: Shape, down: list[int], column: Shape, across: list[int]) -> None:
        super().__init__(inner.shape, inner.dtype, inner.name, inner.flops, inner.rcond)
        self.inner, self.sides = inner, ((row, down), (column, across))

    def _moved(self, x: Any, side: int, back: bool) -> Any:
        shape, order = self.sides[side]
        if order == list(range(len(order))):
            return x
        now = [shape[i] for i in order] if back else list(shape)
        turn = [order.index(i) for i in range(len(order))] if back else order
        return x.reshape(*now, x.shape[1]).transpose([*turn, len(turn)]).reshape(x.shape)

    def _slogdet(self) -> tuple[Any, Any]:
        sign, size = self.inner.slogdet()
        places = np.arange(self.shape[0])[:, None]
        orders = [self._moved(places, side, False)[:, 0] for side in (0, 1)]
        return sign if np.array_equal(*orders) else sign * parity(orders[0]) * parity(orders[1]), size

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        given = int(transposed == (method == "solve"))
        found = getattr(self.inner, method)(self._moved(x, given, False), transposed=transposed)
        return self._moved(found, 1 - given, True)


class SeparateSolver(Composite):
    """Solvers for parts of the unknowns that have nothing to do with each other, one after the other."""

    def __init__(self, members: list[Solver]) -> None:
        n = sum([s.shape[0] for s in members])
        super().__init__((n, n), np.result_type(*[s.dtype for s in members]))
        self.members = members
        self.cuts = np.cumsum([s.shape[0] for s in members])[:-1]
        self.name = "block by block: " + "; ".join([s.name for s in members])
        self.flops = sum([s.flops for s in members])
        self.rcond = min([s.rcond for s in members])

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        parts = zip(self.members, np.split(x, self.cuts), strict=True)
        return np.concatenate([getattr(s, method)(part, transposed=transposed) for s, part in parts])

    def _slogdet(self) -> tuple[Any, Any]:
        return _multiplied(self.members)


class RunningSums(Solver):
    """Running sums along the middle one of three axes, forwards or backwards: differences undo them."""

    def __init__(self, box: tuple[int, int, int], backwards: bool, dtype: Any) -> None:
        n = math.prod(box)
        super().__init__((n, n), dtype, "running sums: differences", float(n))
        self.box, self.backwards = box, backwards

    def _run(self, b: Any, transposed: bool) -> Any:
        cube = b.reshape(*self.box, b.shape[1])
        found = cube.copy()
        if self.backwards != transposed:
            found[:, :-1] -= cube[:, 1:]
        else:
            found[:, 1:] -= cube[:, :-1]
        return found.reshape(b.shape)

    def _apply(self, x: Any, transposed: bool) -> Any:
        step = -1 if self.backwards != transposed else 1
        return np.cumsum(x.reshape(*self.box, x.shape[1])[:, ::step], axis=1)[:, ::step].reshape(x.shape)

    def _slogdet(self) -> tuple[Any, Any]:
        return 1.0, 0.0


class ProductSolver(Composite):
    """A product of square matrices, the one applied first named first."""

    def __init__(self, members: list[Solver]) -> None:
        super().__init__(members[0].shape, np.result_type(*[s.dtype for s in members]))
        self.members = members
        self.name = "step by step: " + "; ".join([s.name for s in members])
        self.flops = sum([s.flops for s in members])
        self.rcond = math.prod([s.rcond for s in members])

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        for s in self.members if transposed == (method == "solve") else self.members[::-1]:
            x = getattr(s, method)(x, transposed=transposed)
        return x

    def _slogdet(self) -> tuple[Any, Any]:
        return _multiplied(self.members)


class InverseSolver(Composite):
    """A⁻¹, of a solver for A."""

    def __init__(self, inner: Solver) -> None:
        super().__init__(inner.shape, inner.dtype, f"the inverse of: {inner.name}", inner.flops, inner.rcond)
        self.inner = inner

    def _through(self, x: Any, method: str, transposed: bool) -> Any:
        return getattr(self.inner, "apply" if method == "solve" else "solve")(x, transposed=transposed)

    def _slogdet(self) -> tuple[Any, Any]:
        sign, size = self.inner.slogdet()
        return sign, -size
