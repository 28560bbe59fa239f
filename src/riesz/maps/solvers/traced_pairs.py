"""Some eigenvalues or singular values inside a traced function, with their vectors: one step, whose arguments are the
leaves of the point.

    A V = V diag(w)        dw = diag(VᵀdA V)        dV = V (F ∘ VᵀdA V) − (A − w)⁺(1 − V Vᵀ)dA V,   Fᵢⱼ = 1 / (wⱼ − wᵢ)

At the numbers of a point the map finds its pairs as `L.eigh(k)` and `L.svd(k)` do. (A − w)⁺ outside of V is a solve
with A − wⱼ + s V Vᵀ, by the structure of A and the step of traced_solves.py; so derivatives of every order follow.
Singular values are eigenvalues of [[0, A], [Aᵀ, 0]], with the vectors (u, v)/√2.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops.op import Shape
from ...ops.opaque import Get, Ruled, Smooth
from ...programs.program import Program, outputs
from ...spaces.space import real_space
from ...terms.named.named_sums import id as identity
from ...tracing.traced import FLOAT, Traced, slot_of, trace_of
from ..multiples import Multiple
from .traced_solves import Solving, solving

if TYPE_CHECKING:
    from ..linear_map import LinearMap


def pairs(L: LinearMap, what: str, k: int, which: str) -> tuple[Any, Any]:
    """k eigenvalues (what="eigh") or singular values ("svd"), and their vectors as columns."""
    point = L.instance.point
    home = trace_of(*point)
    slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in point]
    op = Ruled(PAIRS, (("family", solving(L, "auto", {})), ("k", k), ("what", what), ("which", which)))
    found = home.step(op, slots)
    return tuple([Traced(home, home.step(Get(i), (found,)), L.dtype) for i in (0, 1)])  # pyright: ignore


class _Pairs(Smooth):
    """Pickled by its name in this file."""

    def __reduce__(self) -> Any:
        return "PAIRS"


def _array(*point: Any, family: Solving, k: int, what: str, which: str) -> Any:
    L = family.map_at(point)
    if what == "eigh":
        values, vectors = L.eigh(k, which)
        return np.asarray(values), _signed(vectors.to_dense())
    left, values, right = L.svd(k)
    return np.asarray(values), _signed(np.concatenate([left.to_dense(), right.to_dense().T]) * np.sqrt(0.5))


def _signed(V: Any) -> Any:
    """Vectors whose largest component is positive: the same at points that are near."""
    if not V.size:
        return V
    sign = np.sign(np.take_along_axis(V, np.abs(V).argmax(0)[None], 0))
    return V * np.where(sign == 0, 1.0, sign)


def _shapes(*shapes: Shape, family: Solving, k: int, what: str, which: str) -> Any:
    m, n = family.shape
    return (k,), (n if what == "eigh" else m + n, k)


def _differential(d: Any, y: Any, *point: Any, family: Solving, k: int, what: str, which: str) -> Any:
    w, V = y
    live = tuple([i for i, dp in enumerate(d) if dp is not None])
    home, (m, n) = trace_of(*point), family.shape

    def moved(X: Any, transposed: bool = False) -> Any:
        program: Program = family.moved(transposed, k, live)
        slots = [slot_of(home, a, FLOAT) for a in (*point, X, *[d[i] for i in live])]
        return Traced(home, outputs(program, home, slots)[0])

    A: Any = family.traced_at(point) if what == "eigh" else _both(family.traced_at(point), m, n)
    dAV = moved(V) if what == "eigh" else np.concatenate([moved(V[m:]), moved(V[:m], True)])
    M = V.T @ dAV
    dw = np.diagonal(M)
    gaps = w - np.reshape(w, (k, 1))  # the gap between columns and rows
    equal = gaps == 0
    inside = np.where(equal, 0.0, M / np.where(equal, 1.0, gaps))
    dV = V @ inside
    if len(A) > k:
        beside = dAV - V @ M
        size = 1.0 + 2.0 * np.max(np.abs(w))
        near = A + A._from_code(lambda x: size * (V @ (V.T @ x)), A.domain, A.domain, ("symmetric",))
        shifted = [near + Multiple(((-w[j], identity),)) for j in range(k)]
        X = np.concatenate([B.leaves.inverted(B, beside[:, j : j + 1], "auto", {}) for j, B in enumerate(shifted)], 1)
        dV = dV - (X - V @ (V.T @ X))
    return dw, dV


def _both(A: Any, m: int, n: int) -> Any:
    """[[0, A], [Aᵀ, 0]] on coordinates."""
    space = real_space((m + n,))
    turned = A.T

    def code(x: Any) -> Any:
        return np.concatenate([A.leaves.matvec(A, x[m:]), A.leaves.matvec(turned, x[:m])])

    return A._from_code(code, space, space, ("symmetric",))


PAIRS = _Pairs("some_pairs", _array, _shapes, _differential, None, batched=False)
