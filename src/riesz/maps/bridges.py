"""Linear maps in JAX and in lineax, on flat arrays. SciPy's bridges are `L.as_operator()` and `L.to_sparse()`."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RieszError
from ..runtime import tuning

if TYPE_CHECKING:
    from .linear_map import LinearMap


def jax_function(L: LinearMap) -> Callable[[Any], Any]:
    """v ↦ L v on flat JAX arrays, linear for JAX too, so that it can be transposed: a product with the sparse or dense
    matrix; where that would be too large, calls of `L.matvec` from compiled code, which JAX cannot vmap."""
    try:
        import jax
        import jax.numpy as jnp
        from jax.experimental.sparse import BCOO
    except ImportError:
        raise RieszError("L.to_jax() needs JAX, which is not installed: pip install 'riesz[jax]'") from None
    numbers = L.shape[0] * L.shape[1]
    reached = numbers if L.positions is None else L.positions
    if reached <= min(tuning.JAX_MATRIX_NUMBERS, numbers // 4):
        found = L.to_sparse("coo")
        positions = jnp.stack([jnp.asarray(c) for c in found.coords], 1)
        matrix: Any = BCOO((jnp.asarray(found.data), positions), shape=L.shape)
        return lambda v: matrix @ v
    if numbers <= tuning.JAX_MATRIX_NUMBERS:
        full = jnp.asarray(L.to_dense())
        return lambda v: full @ v

    def call(M: LinearMap, v: Any) -> Any:
        result = jax.ShapeDtypeStruct((M.shape[0],), v.dtype)
        return jax.pure_callback(lambda x: np.asarray(M.matvec(np.asarray(x)), v.dtype), result, v)

    forward, backward = [lambda _, x, M=M: call(M, x) for M in (L, L.T)]
    return lambda v: jax.custom_derivatives.linear_call(forward, backward, (), jnp.asarray(v))


def lineax_operator(L: LinearMap) -> Any:
    """A lineax.FunctionLinearOperator of `L.to_jax()`."""
    try:
        import jax
        import lineax
    except ImportError:
        raise RieszError("L.as_lineax() needs lineax, which is not installed: pip install lineax") from None
    facts = L.facts if L.domain.plain and L.domain is L.codomain else frozenset()
    known = {"symmetric": lineax.symmetric_tag, "definite": lineax.positive_semidefinite_tag}
    tags = [tag for fact, tag in known.items() if fact in facts]
    given = jax.ShapeDtypeStruct((L.shape[1],), jax.dtypes.canonicalize_dtype(L.dtype))
    return lineax.FunctionLinearOperator(jax_function(L), given, tags)
