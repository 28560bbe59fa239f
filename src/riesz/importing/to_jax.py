"""`rz.to_jax`: a function of riesz as a function of JAX."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from functools import update_wrapper
from typing import Any

from ..backends.entry import Compiled
from ..backends.entry import compile as compiled
from ..functions.calling import function


def to_jax(f: Any) -> Any:
    """A function of riesz (NumPy code, a text, a combinator, rz.grad(h), a compiled function) as one of JAX: under
    `jax.jit`, `vmap`, `grad`, `jvp`, `jacfwd`, … to any order, with riesz's derivatives. Results are JAX arrays.

    >>> import jax, numpy as np, riesz as rz
    >>> f = rz.to_jax(lambda x: np.sum(np.sin(x) ** 2))
    >>> print(jax.jit(jax.grad(f))(np.zeros(2)))
    [0. 0.]
    """
    g = f if isinstance(f, Compiled) else compiled(function(f) if isinstance(f, str) else f, backend="jax")

    def in_jax(*args: Any, **named: Any) -> Any:
        import jax

        def array(x: Any) -> Any:
            return jax.numpy.asarray(x) if isinstance(x, float) or hasattr(x, "__array__") else x

        return g(*jax.tree_util.tree_map(array, args), **jax.tree_util.tree_map(array, named))

    update_wrapper(in_jax, g, updated=())
    return in_jax
