"""Inverses and determinants of maps at points that are no numbers, as NumPy code on what the structure gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..linear_map import LinearMap


def inverse_code(L: LinearMap) -> Any:
    """x ↦ L⁻¹x on coordinates."""
    assert L.leaves is not None
    kind = L.leaves

    def code(x: Any) -> Any:
        return kind.flat(L.solve(kind.presented(L.codomain, kind.parted(L.codomain, x))))

    return code


def slogdet_in_traces(L: LinearMap) -> Any:
    """Sign and logarithm of the determinant."""
    assert L.leaves is not None
    return L.leaves.arrays.linalg.slogdet(L.to_dense())
