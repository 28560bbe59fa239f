"""Sums of rows at places in order, with the same bits every run."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def sorted_sums(rows: Any, at: Any, size: int) -> Any:
    """Σ of the rows with the same place, places in order. XLA scatters in order on a CPU; on a GPU a scan that starts
    anew at each place does it."""
    if jax.default_backend() == "cpu" or not rows.shape[0]:
        return jax.ops.segment_sum(rows, at, size, indices_are_sorted=True)
    new = jnp.concatenate([jnp.ones(1, bool), at[1:] != at[:-1]]).reshape((-1, *(1,) * (rows.ndim - 1)))

    def join(a: Any, b: Any) -> Any:
        return a[0] | b[0], jnp.where(b[0], b[1], a[1] + b[1])

    _, sums = jax.lax.associative_scan(join, (new, rows))
    last = jnp.searchsorted(at, jnp.arange(size), side="right") - 1
    there = (last >= 0) & (at[jnp.maximum(last, 0)] == jnp.arange(size))
    return jnp.where(there.reshape((-1, *(1,) * (rows.ndim - 1))), sums[jnp.maximum(last, 0)], 0)
