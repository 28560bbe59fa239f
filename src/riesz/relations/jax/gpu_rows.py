"""Sums over groups of rows as one GPU kernel (Pallas, Triton): a block of targets at a time, pair after pair, every sum
in one thread's registers."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from ...runtime import tuning


def row_sums(starts: Any, lengths: Any, index: Any, times: Any, v: Any, interpret: bool = False) -> Any:
    """y[a, i] = Σ times[e]·v[a, index[e]] over starts[i] ≤ e < starts[i] + lengths[i]; no index: e; no times: once."""
    targets, (a, _, b) = lengths.shape[0], v.shape
    if not a * targets * b * v.shape[1] or (index is not None and not index.shape[0]):
        return jnp.zeros((a, targets, b), v.dtype)
    columns = min(1 << (b - 1).bit_length() if b > 1 else 1, tuning.GPU_BLOCK_COLUMNS)
    height = max(min(tuning.GPU_BLOCK_NUMBERS // columns, tuning.GPU_BLOCK_TARGETS), 1)
    at_once = tuning.GPU_PAIRS_AT_ONCE if columns > 8 else tuning.GPU_PAIRS_AT_ONCE // 2
    given = [x for x in (starts, lengths, index, None if times is None else times.astype(v.dtype), v) if x is not None]

    def kernel(*refs: Any) -> None:
        starts_ref, lengths_ref, *between, v_ref, out = refs
        batch, i = pl.program_id(2), pl.program_id(0) * height + jnp.arange(height)
        column = pl.program_id(1) * columns + jnp.arange(columns)
        inside = (i < targets)[:, None] & (column < b)[None, :]
        start = triton.load(starts_ref.at[i], mask=i < targets, other=0)
        length = triton.load(lengths_ref.at[i], mask=i < targets, other=0)

        def some(step: Any, total: Any) -> Any:
            pairs = [step * at_once + k for k in range(at_once)]

            def of_pair(ref: Any, k: Any) -> Any:
                return triton.load(ref.at[start + k], mask=k < length, other=0)

            def row(j: Any, k: Any) -> Any:
                here = (k < length)[:, None] & inside
                return triton.load(v_ref.at[batch, j[:, None], column[None, :]], mask=here, other=0)

            sources = [start + k if index is None else of_pair(between[0], k) for k in pairs]
            values = [row(j, k) for j, k in zip(sources, pairs, strict=True)]
            for k, x in zip(pairs, values, strict=True):
                total += x if times is None else x * of_pair(between[-1], k)[:, None]
            return total

        longest = jnp.max(length)
        total = jax.lax.fori_loop(0, (longest + at_once - 1) // at_once, some, jnp.zeros((height, columns), v.dtype))
        triton.store(out.at[batch, i[:, None], column[None, :]], total, mask=inside)

    warps = max(height * columns // 128, 1)
    how = None if interpret else triton.CompilerParams(num_warps=warps, num_stages=2)
    result = jax.ShapeDtypeStruct((a, targets, b), v.dtype)
    grid = (pl.cdiv(targets, height), pl.cdiv(b, columns), a)
    return pl.pallas_call(kernel, result, grid=grid, compiler_params=how, interpret=interpret)(*given)
