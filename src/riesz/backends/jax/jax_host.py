"""Ops that JAX has no function for, called back on the host."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


# Note [Words]: what JAX gives to the host, and takes from it, goes through a thread of its own, where 64-bit types are
# off unless the user has switched them on. So numbers of 64 bits travel as pairs of words of 32.
def _words(x: Any) -> Any:
    return jax.lax.bitcast_convert_type(x, jnp.uint32) if x.dtype.itemsize == 8 else x


def _numbers(words: Any, kind: Any) -> Any:
    array = np.asarray(words)
    return np.ascontiguousarray(array).view(kind)[..., 0] if kind.itemsize == 8 else array


def called_back(op: Any, shapes: Any, elementwise: bool) -> Callable[..., Any]:
    """An op that runs on the host, on NumPy arrays; its results have the type of its arguments. See Note [Words]."""
    several = bool(shapes) and type(shapes[0]) is tuple

    def function(*xs: Any) -> Any:
        given = [jnp.asarray(x) for x in (jnp.broadcast_arrays(*xs) if elementwise else xs)]
        types = [np.dtype(x.dtype) for x in given]
        kind = np.dtype(jnp.result_type(*[x for x in given if x.dtype.kind == "f"] or [1.0]))
        wide = kind.itemsize == 8

        def host(*words: Any) -> Any:
            with np.errstate(all="ignore"):
                y = op.run(*[_numbers(w, t) for w, t in zip(words, types, strict=True)])
            found = [np.array(v, kind, order="C") for v in (y if several else (y,))]
            return tuple([v[..., None].view(np.uint32) if wide else v for v in found])

        words = [((*s, 2), np.uint32) if wide else (s, kind) for s in (shapes if several else [shapes])]
        like = tuple([jax.ShapeDtypeStruct(*word) for word in words])
        how = "broadcast_all" if elementwise else "sequential"
        words = jax.pure_callback(host, like, *map(_words, given), vmap_method=how)
        results = tuple([jax.lax.bitcast_convert_type(w, kind) if wide else w for w in words])
        return results if several else results[0]

    return function
