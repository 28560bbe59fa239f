"""Linear maps at JAX arrays: what a compiled `jacobian` or `hessian` gives for them, or with backend="jax".

The family comes from a template, a map at numbers, once for each kind of arguments. L(v), the matrix and the diagonal
are programs of the point, compiled by XLA; on JAX arrays they work under jit, vmap and grad.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import SpaceError, TraceError
from ...functions.function import TracedFunction
from ...functions.traces.given import Given
from ...maps.instances import Instance
from ...maps.leaves import Leaves
from ...maps.linear_map import LinearMap
from ...programs.program import Program
from ...runtime import tuning
from ...spaces.space import Space
from ...tracing.trace import forgive, refused
from .jax_primitive import Citizen, allowed


def mapped_in(
    known: OrderedDict[Any, Any], function: TracedFunction, given: Given, leaves: JaxLeaves | None = None
) -> LinearMap:
    """The linear map at arguments of which some may be JAX arrays; `leaves`: those on a mesh."""
    if given.key not in known:
        point = [_stand_in(x, a) for x, a in zip(given.arrays, given.avals, strict=True)]
        args, kwargs = given.rebuilt([x if x.shape else x[()] for x in point])
        found = function.function(*args, **kwargs)
        if not isinstance(found, LinearMap):
            how = "leave has_aux out, or give NumPy arrays to rz.jacobian itself"
            raise SpaceError(f"{function.name} with has_aux=True has no form in JAX; {how}")
        known[given.key] = found, _program(found, function.name, len(point)), leaves or JaxLeaves(function.name)
        if len(known) > tuning.TRACES_KEPT:
            known.popitem(last=False)
    like, program, leaves = known[given.key]
    instance = Instance(program, tuple(given.arrays))
    return LinearMap(like.domain, like.codomain, None, like.dtype, lambda: instance, like.facts, leaves=leaves)


def _stand_in(x: Any, aval: Any) -> Any:
    """An array where a template is made: its numbers, or ones where there are none, in this process."""
    if isinstance(x, jax.core.Tracer):
        return np.ones(aval.shape, aval.dtype)
    if not getattr(x, "is_fully_addressable", True):
        return np.broadcast_to(aval.dtype.type(1), aval.shape)
    return np.asarray(x)


def _program(template: LinearMap, name: str, count: int) -> Program:
    """The program of a point and a vector that a map is an instance of."""
    refusals = refused()
    try:
        found = template._instance() if template._instance is not None else None
    except TraceError:
        forgive(refusals)
        found = None
    if found is None or len(found.point) != count:
        why = "(a derivative in it is code of its own); give NumPy arrays to rz.jacobian itself"
        raise SpaceError(f"{name} has no program for all points {why}")
    return found.program


class JaxLeaves(Leaves):
    """JAX arrays, tracers included; and NumPy arrays for code that XLA compiled. `name`: the function a map is of."""

    arrays = jnp

    def __init__(self, name: str) -> None:
        self.name = name

    def owns(self, value: Any) -> bool:
        return isinstance(value, jax.Array)

    def opened(self, space: Space, value: Any) -> list[Any]:
        leaves = space.open(value, lambda leaf, *where: leaf)
        shapes = [np.shape(x) for x in leaves]
        if shapes != [leaf.shape for leaf in space.leaves]:
            raise SpaceError(f"not an element of {space}: got arrays of shapes {shapes}")
        return leaves

    def computed(self, program: Program, point: Sequence[Any], vector: Sequence[Any], dtype: Any) -> list[Any]:
        known, xs = program.__dict__.setdefault("_in_jax", {}), [*point, *vector]
        kinds = tuple([np.dtype(getattr(x, "dtype", float)) for x in xs])
        if (kinds, dtype) not in known:
            fixed = len(point) if vector else None
            known[kinds, dtype] = Citizen(program, kinds, [dtype] * len(program.outputs), self.name, fixed)
        return self.found(known[kinds, dtype], xs, dtype)

    def found(self, citizen: Citizen, xs: Sequence[Any], dtype: Any) -> list[Any]:
        """What a program of point and vector gives."""
        if not any([isinstance(x, jax.Array) for x in xs]):
            return citizen.code.run(*xs)
        allowed(self.name, [dtype], citizen)
        return citizen.at(xs)

    def taken(self, x: Any) -> Any:
        return x if isinstance(x, jax.Array) else np.asarray(x)

    def kept(self, x: Any) -> Any:
        return x

    def refusal(self, what: str) -> Exception:
        methods = [f"L.{name}()" for name in ("gram", "diagonal", "trace")]
        methods += ["L.solve(b)", "L.to_dense()", "L.column_norms()", "L.structure", "L.simplify()"]
        works = ", ".join(["L(v), L.T, L.H, L @ M, L + M, k * L", *methods])
        rest = "rz.jacobian and rz.hessian of NumPy arrays give a map with all the rest"
        needs = f"{what} needs the numbers of {self.name}, a linear map in JAX"
        return SpaceError(f"{needs}. What works there: {works}; {rest}")
