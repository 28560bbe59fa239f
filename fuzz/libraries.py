"""What the names of a program stand for: riesz on NumPy, plain NumPy with Python's control flow, or JAX with Python's control flow.

A program is one text. It is run with `np`, `rz`, `s` and `sl` bound to the members of a library.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import types
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
import scipy.linalg
import scipy.special

import riesz as rz

jax.config.update("jax_enable_x64", True)


def mapped(f: Any, trees: Any, *rest: Any) -> Any:
    """f at every leaf of trees of one form."""
    if isinstance(trees, dict):
        return {k: mapped(f, trees[k], *[r[k] for r in rest]) for k in trees}
    if isinstance(trees, (tuple, list)):
        return type(trees)([mapped(f, *row) for row in zip(trees, *rest, strict=True)])
    return f(trees, *rest)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in the order in which they stand."""
    if isinstance(tree, dict):
        return [x for k in tree for x in leaves(tree[k])]
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in leaves(part)]
    return [tree]


class PythonControl:
    """Control flow that is Python's own, over arrays of the module `np`."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def checkpoint(self, f: Any) -> Any:
        return f

    def function(self, f: Any) -> Any:
        return f

    def cond(self, pred: Any, yes: Any, no: Any, *operands: Any) -> Any:
        return (yes if bool(pred) else no)(*operands)

    def switch(self, index: Any, branches: Any, *operands: Any) -> Any:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    def loop(
        self,
        f: Any,
        init: Any,
        xs: Any = None,
        length: int | None = None,
        *,
        reverse: bool = False,
        checkpoint: Any = None,
    ) -> Any:
        n = length if xs is None else len(leaves(xs)[0])
        carry, rows = init, {}
        for t in range(n)[:: -1 if reverse else 1]:
            carry, rows[t] = f(carry, None if xs is None else mapped(lambda x, t=t: x[t], xs))
        return carry, mapped(lambda *parts: self.module.stack(parts), *[rows[t] for t in range(n)])

    def fori_loop(self, lower: int, upper: int, body: Any, init: Any, *, checkpoint: Any = None) -> Any:
        for i in range(lower, upper):
            init = body(i, init)
        return init

    def vmap(self, f: Any, in_axes: Any = 0, out_axes: int = 0) -> Any:
        def over(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            n = next(a.shape[k] for a, k in zip(args, axes, strict=True) if k is not None)
            at = [
                [a if k is None else self.module.take(a, i, axis=k) for a, k in zip(args, axes, strict=True)]
                for i in range(n)
            ]
            return self.module.stack([f(*row) for row in at], out_axes)

        return over


class PlainControl(PythonControl):
    """For plain NumPy. Derivatives inside are riesz's own: differences of what they give check the next order."""

    def __init__(self) -> None:
        super().__init__(np)
        for name in ("grad", "value_and_grad", "jvp", "vjp", "jacobian", "hvp", "linearize"):
            setattr(self, name, getattr(rz, name))


class Matrix:
    """A linear map of JAX: applied, transposed, made a matrix."""

    def __init__(self, f: Any, x: Any) -> None:
        self.f, self.x = f, x

    def __call__(self, v: Any) -> Any:
        return jax.jvp(self.f, (self.x,), (v,))[1]

    def H(self, w: Any) -> Any:
        return jax.vjp(self.f, self.x)[1](w)[0]

    def to_dense(self) -> Any:
        y, back = jax.vjp(self.f, self.x)
        return jnp.stack([jnp.ravel(back(jnp.asarray(e).reshape(jnp.shape(y)))[0]) for e in np.eye(int(np.size(y)))])


class JaxControl(PythonControl):
    """For JAX: not compiled, so that Python's control flow sees numbers."""

    grad, value_and_grad, jvp = staticmethod(jax.grad), staticmethod(jax.value_and_grad), staticmethod(jax.jvp)

    def __init__(self) -> None:
        super().__init__(jnp)

    def vjp(self, f: Any, *args: Any) -> Any:
        return jax.vjp(f, *args)

    def hvp(self, f: Any, primals: Any, tangents: Any) -> Any:
        found = jax.jvp(jax.grad(f, tuple(range(len(primals)))), primals, tangents)[1]
        return found[0] if len(primals) == 1 else found

    def jacobian(self, f: Any) -> Any:
        return lambda x: Matrix(f, x)

    def linearize(self, f: Any, x: Any) -> Any:
        return f(x), Matrix(f, x)


class JaxNumpy(types.ModuleType):
    """jax.numpy, with NumPy's spelling where the two differ in what they take (never in what they compute)."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)

    @staticmethod
    def array(value: Any, dtype: Any = None, **rest: Any) -> Any:
        """Constants stay NumPy's, so that they can be indices and masks."""
        if any([isinstance(x, jax.Array) for x in leaves(value)]):
            return jnp.array(value, dtype, **rest)
        return np.array(value, dtype, **rest)


RIESZ = {"np": np, "onp": np, "rz": rz, "s": scipy.special, "sl": scipy.linalg}
PLAIN = {"np": np, "onp": np, "rz": PlainControl(), "s": scipy.special, "sl": scipy.linalg}
JAX = {"np": JaxNumpy("jax_numpy"), "onp": np, "rz": JaxControl(), "s": jax.scipy.special, "sl": jax.scipy.linalg}
