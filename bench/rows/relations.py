"""Relational reduction along random pairs, forward and adjoint: (red_R v)_y = Σ_{(x,y)∈R} v_x."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def contestants(pairs, width) -> Contestants:
    rng = np.random.default_rng(0)
    size = pairs // 10
    rows, columns = rng.integers(0, size, (2, pairs))
    v, w = rng.normal(size=(2, size, width))
    L = rz.LinearMap.of(rz.red(rz.relations.edges(rz.seg(size), rz.seg(size), rows, columns)).at(rz.space_of(v)))
    back = L.H
    matrix = scipy.sparse.coo_array(
        (np.ones(pairs), (columns.astype(np.int32), rows.astype(np.int32))), shape=(size, size)
    ).tocsr()
    turned = matrix.T.tocsr()
    found: Contestants = {"riesz": lambda: (L(v), back(w)), "hand": lambda: (matrix @ v, turned @ w)}
    if j := jax():

        def both(v, w, r, c):
            y, pull = j.vjp(lambda v: j.ops.segment_sum(v[r], c, size), v)
            return y, pull(w)[0]

        found["JAX"] = in_jax(both, v, w, rows, columns)
    if t := torch():
        vt, wt, r, c = [t.from_numpy(a) for a in (v, w, rows, columns)]
        zeros = t.zeros((size, width), dtype=vt.dtype)
        found["torch"] = lambda: (zeros.index_add(0, c, vt[r]), zeros.index_add(0, r, wt[c]))
    return found


ROWS = [
    Row(
        "red_R forward and adjoint, {pairs:,} random pairs, width {width}",
        contestants,
        {"riesz": 8.0},
        {"pairs": 10**6, "width": 16},
        {"pairs": 2 * 10**5, "width": 16},
    )
]
