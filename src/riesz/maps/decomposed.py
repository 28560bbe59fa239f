"""What is done with matrices, each by structure: inverse, determinant, least squares, eigenvalues, singular values,
square roots. Results are maps where they are matrices."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import SolveError, SpaceError
from ..runtime import later, tuning
from ..spaces.space import Space
from ..terms.declared import declare_linear
from .as_matrix import AsMatrix, flat_space
from .matrices.written_maps import spread

if TYPE_CHECKING:
    from .linear_map import LinearMap
    from .solvers.factorised import Solver


_DIAGONAL = ("diagonal", "identity")


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


class Eigh(NamedTuple):
    """A = V diag(values) Vᵀ: eigenvalues in ascending order, and V as a map from their coordinates."""

    values: Any
    vectors: LinearMap


class Svd(NamedTuple):
    """A = U diag(values) Vᵀ: singular values in descending order; U from their coordinates, Vᵀ to them."""

    left: LinearMap
    values: Any
    right: LinearMap


class Decomposed(AsMatrix):
    """The part of a LinearMap that needs a factorisation of its matrix."""

    _inverse: Any = None
    _inverts: Any = None

    # -- inverse and determinant ----------------------------------------------------------------------------

    def inv(self) -> LinearMap:
        """The inverse, a map that solves by structure; L.inv().inv() is L. A singular map is a SolveError.

        >>> import numpy as np, riesz as rz
        >>> L = rz.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
        >>> L.inv()(np.array([2.0, 8.0])), L.inv().inv() is L
        (array([1., 2.]), True)
        """
        self._square("an inverse")
        if self._inverse is None:
            facts = self.facts if self.domain is self.codomain else ()
            code = self._solved_code if self.leaves is not None else _solving(self.factorised("auto", {}))
            found = self._from_code(code, self.codomain, self.domain, facts)
            found._inverse, self._inverse = self, found
            found._inverts = self
        return self._inverse

    def factorised(self, method: str, options: dict[str, Any]) -> Solver:
        if self._inverts is None or method != "auto":
            return super().factorised(method, options)
        from .solvers.composite import InverseSolver

        return InverseSolver(self._inverts.factorised(method, options))

    def _solved_code(self, x: Any) -> Any:
        """L⁻¹x on traced coordinates."""
        if self.structure.kind in ("diagonal", "identity"):
            return x * (1.0 / self.diagonal())  # a product can be transposed
        return cast(Any, self.leaves).inverted(self, x, "auto", {})

    def slogdet(self) -> Slogdet:
        """The sign of the determinant and the logarithm of its size, by structure: (0, −inf) for a singular map.

        >>> import numpy as np, riesz as rz
        >>> L = rz.jacobian(lambda x: np.exp(x) + np.sum(x))(np.zeros(10**5))
        >>> sign, size = L.slogdet()
        >>> sign, round(size, 4)  # det(I + 1 1ᵀ) = 1 + n
        (1.0, 11.5129)
        """
        self._square("a determinant")
        if self.leaves is not None:
            from .matrices.traced_determinants import slogdet_at

            return Slogdet(*slogdet_at(cast(Any, self), self.leaves))
        from .solvers.factorised import NotFinite
        from .solvers.krylov import Krylov

        try:
            found = self.factorised("auto", {})
        except NotFinite:
            raise
        except SolveError:  # singular to working precision, or without a doubt
            try:
                found = self._for_factors()
            except NotFinite:
                raise
            except SolveError:
                return Slogdet(0.0, -np.inf)
        if isinstance(found, Krylov):
            from .solvers.spectra import small_enough

            small_enough(self.shape, "the determinant")
            sign, size = np.linalg.slogdet(self.to_dense())
            return Slogdet(float(sign), float(size))
        return Slogdet(*found.slogdet())

    def _for_factors(self) -> Solver:
        """The factors of what may be singular."""
        from .solvers.choice import solver_of
        from .solvers.factorised import caring_for

        with caring_for("factors"):
            return solver_of(cast(Any, self), "dense" if len(self) <= tuning.DENSE_UNKNOWNS else "auto")

    def _parts(self) -> Solver:
        """The matrix by its parts, not factorised."""
        from .solvers.choice import solver_of
        from .solvers.factorised import Solver, caring_for

        if self.shape[0] != self.shape[1]:
            return Solver(self.shape, self.dtype)
        if "parts" not in self._solvers:
            with caring_for("parts"):
                self._solvers["parts"] = solver_of(cast(Any, self))
        return self._solvers["parts"]

    def logdet(self) -> Any:
        """The logarithm of the determinant; −inf for a singular map. A negative determinant is an error (nan inside a
        traced function): L.slogdet() gives its sign.

        >>> import numpy as np, riesz as rz
        >>> round(rz.jacobian(lambda x: x**2)(np.array([1.0, 2.0])).logdet(), 4)
        2.0794
        """
        sign, size = self.slogdet()
        if self.leaves is not None:
            return self.leaves.arrays.where(sign < 0, np.nan, size)
        if sign < 0:
            raise SolveError("the determinant is negative and has no logarithm; L.slogdet() gives its sign and size")
        return size

    def det(self) -> Any:
        """The determinant.

        >>> import numpy as np, riesz as rz
        >>> rz.jacobian(lambda x: x[::-1] * 2.0)(np.ones(2)).det()
        -4.0
        """
        sign, size = self.slogdet()
        xp = np if self.leaves is None else self.leaves.arrays
        found = sign * xp.exp(size)
        return float(found) if self.leaves is None else found

    # -- least squares --------------------------------------------------------------------------------------

    def lstsq(self, b: Any) -> Any:
        """The shortest x that makes ‖L x − b‖ smallest, in coordinates; also of singular maps.

        >>> import numpy as np, riesz as rz
        >>> L = rz.jacobian(lambda x: np.array([1.0, 1.0, 1.0]) * x)(0.0)
        >>> round(L.lstsq(np.array([1.0, 2.0, 6.0])), 4)
        3.0
        """
        if self.leaves is not None:
            return cast(Any, self.pinv())._solution(b)
        from .solvers.factorised import NotFinite

        try:
            return self.solve(b)
        except NotFinite:
            raise
        except SolveError:
            return cast(Any, self.pinv())._solution(b)

    def _solution(self, b: Any) -> Any:
        """L(b), or of each column where b is a matrix of a map from ℝⁿ."""
        several = hasattr(b, "shape") and len(b.shape) == 2 and [x.shape for x in self.domain.leaves] == [b.shape[:1]]
        return self.matmat(b) if several else self(b)

    def pinv(self) -> LinearMap:
        """The pseudoinverse (Moore, Penrose), a map: by the parts of a square map, by its solver where it has full
        rank, by a dense matrix or iterations otherwise.

        >>> import numpy as np, riesz as rz
        >>> rz.jacobian(lambda x: x * np.array([0.0, 2.0]))(np.ones(2)).pinv().to_dense().tolist()
        [[0.0, 0.0], [0.0, 0.5]]
        """
        if self.leaves is not None:
            code = self.leaves.pseudoinverse(cast(Any, self))
            return self._from_code(code, self.codomain, self.domain)
        from .solvers.factorised import NotFinite

        try:
            if self.shape[0] == self.shape[1]:
                return self.inv()
            return self._from_code(_solving(self.factorised("auto", {})), self.codomain, self.domain)
        except NotFinite:
            raise
        except SolveError:
            pass
        try:
            left, s, right = self._singular()
        except SolveError:
            return self._from_code(_solving(self.factorised("lsmr", {})), self.codomain, self.domain)
        kept = s > max(self.shape) * np.finfo(self.dtype).eps * s.max(initial=0.0)
        values = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0).astype(self.dtype)
        return right @ _diagonal(right, values) @ left.T

    # -- spectra --------------------------------------------------------------------------------------------

    def eigvalsh(self) -> Any:
        """The eigenvalues of a symmetric map in ascending order, by structure.

        >>> import numpy as np, riesz as rz
        >>> rz.hessian(lambda x: np.sum(x**3))(np.array([2.0, 1.0])).eigvalsh()
        array([ 6., 12.])
        """
        self._symmetric("eigvalsh")
        if self.leaves is not None:
            if self.structure.kind in _DIAGONAL:
                return self.leaves.arrays.sort(self.diagonal())
            return self.leaves.arrays.linalg.eigvalsh(self.to_dense())
        from .solvers.spectra import eigenvalues

        return eigenvalues(self._parts(), self.to_dense).astype(self.dtype, copy=False)

    def eigh(self, k: int | None = None, which: str = "LM") -> Eigh:
        """Eigenvalues and eigenvectors of a symmetric map: L = V diag(w) Vᵀ with w ascending and V a map. All of them
        by structure (diagonal, blocks, Kronecker products and sums, bands), or k, chosen as in
        scipy.sparse.linalg.eigsh ("LM", "SM", "LA", "SA").

        >>> import numpy as np, riesz as rz
        >>> w, V = rz.hessian(lambda x: x[0] * x[1])(np.ones(2)).eigh()
        >>> w, np.abs(V[:, 1]).round(4)
        (array([-1.,  1.]), array([0.7071, 0.7071]))
        """
        self._symmetric("eigh")
        if self.leaves is not None:
            _count(k, len(self), "eigenvalues")
            if k is None and self.structure.kind in _DIAGONAL:
                d = self.diagonal()
                order = self.leaves.arrays.argsort(d)
                back = self.leaves.arrays.argsort(order)
                return Eigh(d[order], self._from_code(lambda x: x[back], flat_space(len(self)), self.domain))
            kind = self.leaves
            w, V = (
                kind.arrays.linalg.eigh(self.to_dense())
                if k is None
                else kind.some_pairs(cast(Any, self), "eigh", k, which)
            )
            return Eigh(w, self._from_code(lambda x: V @ x, flat_space(w.shape[0]), self.domain))
        from .solvers import spectra

        _count(k, len(self), "eigenvalues")
        try:
            if k is not None and _generic(self._parts()) and len(self) > tuning.DENSE_UNKNOWNS and 4 * k <= len(self):
                raise SolveError("iterations")
            values, code, _ = spectra.symmetric_spectrum(self._parts(), self.to_dense)
        except SolveError:
            if k is None or k >= len(self):
                raise
            values, vectors = self._eigsh(k, which)
            return Eigh(values, self._from_code(lambda x: vectors @ x, flat_space(k), self.domain))
        order = spectra.chosen(values, k, which)
        return Eigh(values[order].astype(self.dtype, copy=False), self._from(code, order, len(values), self.domain))

    def _eigsh(self, k: int, which: str) -> Any:
        """Some eigenpairs by ARPACK, the smallest by shift and invert where there is a solver."""
        import scipy.sparse.linalg as linalg  # pyright: ignore[reportMissingTypeStubs]

        from .solvers.spectra import chosen, ends_of

        ends = ends_of(self._parts(), k, which)
        if ends is not None:
            order = chosen(ends[0], k, which)
            return ends[0][order], ends[1][:, order]
        start = np.random.default_rng(0).standard_normal(len(self)).astype(self.dtype)
        given: dict[str, Any] = {"k": k, "which": which, "v0": start, "maxiter": 1000}
        if which == "SM":
            try:
                near = self.inv().as_operator()
                given |= {"which": "LM", "sigma": 0.0, "OPinv": near}
            except SolveError:
                pass
        try:
            return _ordered(*cast(Any, linalg).eigsh(self.as_operator(), **given))
        except cast(Any, linalg).ArpackNoConvergence as error:
            raise SolveError(f"L.eigh({k}): {error}; ask for more of them, or for all") from None

    def svd(self, k: int | None = None) -> Svd:
        """Singular values, descending, with U and Vᵀ as maps: L = U diag(s) Vᵀ. All of them by structure, or the k
        largest; a map of rank r that is too large to be dense has r of them.

        >>> import numpy as np, riesz as rz
        >>> U, s, Vt = rz.jacobian(lambda x: x * np.array([3.0, -4.0]))(np.ones(2)).svd()
        >>> s, np.allclose(U @ np.diag(s) @ Vt, np.diag([3.0, -4.0]))
        (array([4., 3.]), True)
        """
        if self.leaves is not None:
            _count(k, min(self.shape), "singular values")
            if k is None:
                u, s, vt = self.leaves.arrays.linalg.svd(self.to_dense(), full_matrices=False)
            else:
                s, both = self.leaves.some_pairs(cast(Any, self), "svd", k, "LM")
                u, vt = both[: self.shape[0]] * np.sqrt(2.0), both[self.shape[0] :].T * np.sqrt(2.0)
            few = flat_space(s.shape[0])
            return Svd(
                self._from_code(lambda x: u @ x, few, self.codomain),
                s,
                self._from_code(lambda x: vt @ x, self.domain, few),
            )
        _count(k, min(self.shape), "singular values")
        large = tuning.DENSE_UNKNOWNS < min(self.shape) <= 8 * self.structure.rank
        if k is not None and large and 4 * k <= min(self.shape) and _generic(self._parts()):
            import scipy.sparse.linalg as linalg  # pyright: ignore[reportMissingTypeStubs]

            start = np.random.default_rng(0).standard_normal(min(self.shape)).astype(self.dtype)
            u, s, vt = cast(Any, linalg).svds(self.as_operator(), k, v0=start)
            order = np.argsort(-s)
            u, s, vt = u[:, order], s[order], vt[order]
            ends = flat_space(k)
            left, right = self._from_code(lambda x: u @ x, ends, self.codomain), vt.T
            return Svd(left, s, self._from_code(lambda x: right @ x, ends, self.domain).T)
        left, s, right = self._singular(k)
        return Svd(left, s, right.T)

    def _singular(self, k: int | None = None) -> tuple[LinearMap, Any, LinearMap]:
        """U, s and V, the largest first."""
        from .solvers import spectra

        few = self.structure.rank
        if min(self.shape) > max(tuning.DENSE_UNKNOWNS, 8 * few):
            return self._of_rank(few, k)
        found = spectra.singular_spectrum(self._parts(), self.to_dense)
        n = len(found.values)
        order = np.argsort(-found.values, kind="stable")[:k]
        left, right = self._from(found.left, order, n, self.codomain), self._from(found.right, order, n, self.domain)
        return left, found.values[order].astype(self.dtype, copy=False), right

    def _of_rank(self, r: int, k: int | None) -> tuple[LinearMap, Any, LinearMap]:
        """U, s and V of a map whose range has at most r dimensions: it is what L makes of some more random vectors."""
        Q, _ = np.linalg.qr(
            self.matmat(np.random.default_rng(0).standard_normal((self.shape[1], r)).astype(self.dtype))
        )
        u, s, vt = np.linalg.svd(self.T.matmat(Q).T, full_matrices=False)
        left, right, ends = (Q @ u)[:, :k], vt[:k].T, flat_space(len(s[:k]))
        U, V = [
            self._from_code(lambda x, a=a: a @ x, ends, W) for a, W in ((left, self.codomain), (right, self.domain))
        ]
        return U, s[:k], V

    def _from(self, code: Any, order: Any, n: int, space: Space) -> LinearMap:
        """The map from some coordinates of a spectrum."""
        places = None if np.array_equal(order, np.arange(n)) else order

        def placed(x: Any) -> Any:
            if places is None:
                return x[:, None]
            return x[np.argsort(places)][:, None] if len(places) == n else spread(x[:, None], places, n)

        return self._from_code(lambda x: code(placed(x)).reshape(-1), flat_space(len(order)), space)

    def cholesky(self) -> LinearMap:
        """The lower triangular C with C Cᵀ = L, a map, for a symmetric positive definite map; by structure.

        >>> import numpy as np, riesz as rz
        >>> C = rz.hessian(lambda x: np.sum((x[1:] - x[:-1]) ** 2) + x @ x)(np.zeros(1000)).cholesky()
        >>> C.structure
        bidiagonal
        """
        self._symmetric("cholesky")
        if self.leaves is not None:
            if self.structure.kind in _DIAGONAL:
                root = self.leaves.arrays.sqrt(self.diagonal())
                return self._from_code(lambda x: root * x, self.domain, self.codomain)
            matrix = self.leaves.arrays.linalg.cholesky(self.to_dense())
            return self._from_code(lambda x: matrix @ x, self.domain, self.codomain)
        from .solvers.spectra import cholesky_code

        few = self.positions is not None and self.positions <= 64 * len(self)
        code = cholesky_code(self._parts(), self.to_dense, self.stored if few else None)
        return self._from_code(lambda x: code(x[:, None]).reshape(-1), self.domain, self.codomain)

    def sqrt(self) -> LinearMap:
        """The symmetric S with S S = L, a map, for a symmetric map without negative eigenvalues; by structure.

        >>> import numpy as np, riesz as rz
        >>> rz.hessian(lambda x: np.sum(x**2))(np.zeros(3)).sqrt().to_dense()[0]
        array([1.41421356, 0.        , 0.        ])
        """
        self._symmetric("sqrt")
        facts = ("symmetric", "definite")
        if self.leaves is not None:
            if self.structure.kind in _DIAGONAL:
                root = self.leaves.arrays.sqrt(self.diagonal())
                return self._from_code(lambda x: root * x, self.domain, self.codomain, facts)
            w, v = self.leaves.arrays.linalg.eigh(self.to_dense())
            root = (v * self.leaves.arrays.sqrt(w)) @ v.T
            return self._from_code(lambda x: root @ x, self.domain, self.codomain, facts)
        from .solvers import spectra
        from .solvers.composite import LowRankPlus

        S = self._parts()
        if isinstance(S, LowRankPlus) and (shift := spectra.multiple(S)) is not None:
            Q, small = spectra.low_rank_form(S)
            w, v = np.linalg.eigh(small)
            roots, rows = _roots(np.append(w + shift, shift)), Q @ v
            few, base = roots[:-1] - roots[-1], roots[-1]
            return self._from_code(lambda x: base * x + rows @ (few * (rows.T @ x)), self.domain, self.codomain, facts)
        values, code, _ = spectra.symmetric_spectrum(S, self.to_dense)
        V = self._from(code, np.arange(len(values)), len(values), self.domain)
        found = V @ _diagonal(V, _roots(values)) @ V.T
        found.facts = frozenset(facts)
        return found

    def norm(self, ord: Any = "fro") -> Any:
        """A norm of the matrix: "fro" (the default), 2, 1 or inf, as in np.linalg.norm.

        >>> import numpy as np, riesz as rz
        >>> L = rz.jacobian(lambda x: x * np.array([3.0, -4.0]))(np.ones(2))
        >>> float(L.norm()), float(L.norm(2)), float(L.norm(1))
        (5.0, 4.0, 4.0)
        """
        if self.leaves is not None:
            return self.leaves.arrays.linalg.norm(self.to_dense(), ord)
        if ord == "fro" or ord is None:
            return np.linalg.norm(self.column_norms())
        if ord == 2:
            return self.svd(1).values[0]
        if ord in (1, np.inf) and self.positions is not None:
            return abs(self.stored()).sum(axis=0 if ord == 1 else 1).max()
        return np.linalg.norm(self.to_dense(), ord)

    def cond(self) -> Any:
        """The condition number: the largest singular value over the smallest.

        >>> import numpy as np, riesz as rz
        >>> float(rz.jacobian(lambda x: x * np.array([3.0, -6.0]))(np.ones(2)).cond())
        2.0
        """
        if not self.size:
            raise SpaceError(f"a map of shape {self.shape} has no condition number")
        if self.leaves is not None:
            return self.leaves.arrays.linalg.cond(self.to_dense())
        try:
            s = self.svd().values
        except SolveError:  # too large to have all: the smallest by way of the inverse
            self._square("the condition number of a huge map")
            return self.norm(2) * self.inv().norm(2)
        return s[0] / s[-1] if s[-1] else np.inf

    def _square(self, what: str) -> None:
        if self.shape[0] != self.shape[1]:
            raise SpaceError(f"{what} needs as many rows as columns; this map has shape {self.shape}")

    def _symmetric(self, what: str) -> None:
        self._square(f"L.{what}()")
        if "symmetric" in self.facts or self.leaves is not None:
            return
        from .solvers.spectra import looks_symmetric

        if not looks_symmetric(self.matvec, *self.shape, self.dtype):
            advice = "0.5 * (L + L.T) is its symmetric part, L.svd() takes any map"
            raise SpaceError(f"L.{what}() needs a symmetric matrix, Lᵀ = L in coordinates; this one is not: {advice}")


def _diagonal(L: Any, values: Any) -> LinearMap:
    """diag(values) on the coordinates that L starts from."""
    return L._from_code(lambda x: values * x, L.domain, L.domain, ("symmetric",))


def _roots(values: Any) -> Any:
    """Square roots of eigenvalues, those that are negative by rounding are 0."""
    least = values.min(initial=0.0)
    if least < -1e3 * np.finfo(values.dtype).eps * np.abs(values).max(initial=0.0):
        raise SolveError(f"a square root needs a map without negative eigenvalues; the smallest is {least:.3g}")
    return np.sqrt(np.maximum(values, 0))


def _ordered(values: Any, vectors: Any) -> Any:
    order = np.argsort(values)
    return values[order], vectors[:, order]


def _count(k: Any, n: int, what: str) -> None:
    if k is not None and (not isinstance(k, (int, np.integer)) or not 0 < k <= n):
        raise SpaceError(f"k counts {what}, 1 to {n}; got {k!r}")


def _generic(S: Solver) -> bool:
    """Whether a matrix has no parts with spectra of their own."""
    from .solvers import composite, factorised

    kinds = (factorised.DiagonalSolver, factorised.BlockDiagonalSolver, composite.SeparateSolver, composite.Kronecker)
    inner = S.inner if isinstance(S, (composite.Reordered, composite.Axes)) else S
    return not isinstance(inner, (*kinds, composite.KroneckerSum))


def _solution(solver: Solver, transposed: bool, b: Any) -> Any:
    rows = b.reshape(-1, b.shape[-1])
    return solver.solve(rows.T, transposed=transposed).T.reshape(*b.shape[:-1], -1)


def _solving(solver: Solver) -> Any:
    """x ↦ A⁻¹x as code; its transpose solves with the transpose."""
    ways = [partial(_solution, solver, transposed) for transposed in (False, True)]
    m, n = solver.shape
    term = declare_linear(ways[0], ways[1], flat_space(m), flat_space(n), "solve", True)
    return lambda x: later.evaluate(term, x)
