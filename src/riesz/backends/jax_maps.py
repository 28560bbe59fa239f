"""Linear maps in JAX: what a compiled `jacobian` or `hessian` gives for JAX arrays, or with backend="jax".

A map is a template (a LinearMap, from which structure and programs come, derived once) and a point. L(v), the matrix and the diagonal are
programs of the point, compiled by XLA; on JAX arrays they work under jit, vmap and grad.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..errors import SpaceError, TraceError
from ..layout import build
from ..maps.linear_map import LinearMap, as_element
from ..maps.matrix_programs import diagonal, matrix
from ..maps.sources import Source, adjoint, turned
from ..programs.program import Program
from ..spaces import Space
from ..syntax.functions import KEPT, Function, Given
from ..syntax.tracing import forgive, refused
from .jax_citizen import Citizen, allowed


def mapped_in(known: OrderedDict[Any, Any], function: Function, given: Given) -> JaxMap:
    """The linear map at arguments of which some may be JAX arrays."""
    if given.key not in known:
        point = [
            np.ones(a.shape, a.dtype) if isinstance(x, jax.core.Tracer) else np.asarray(x) for x, a in zip(given.arrays, given.avals, strict=True)
        ]
        args, kwargs = given.rebuilt([x if x.shape else x[()] for x in point])
        found = function.function(*args, **kwargs)
        if not isinstance(found, LinearMap):
            raise SpaceError(f"{function.name} with has_aux=True has no form in JAX; leave has_aux out, or give NumPy arrays to rz.jacobian itself")
        known[given.key] = found, _source(found, function.name, len(point))
        if len(known) > KEPT:
            known.popitem(last=False)
    template, source = known[given.key]
    return JaxMap(source, template.domain, template.codomain, template.dtype, given.arrays, function.name)


def _source(template: LinearMap, name: str, count: int) -> Source:
    """The program of a point and a vector that a map is an instance of."""
    refusals = refused()
    try:
        source = template._source() if template._source is not None else None
    except TraceError:
        forgive(refusals)
        source = None
    if source is None or len(source.point) != count:
        raise SpaceError(f"{name} has no program for all points (a derivative in it is code of its own); give NumPy arrays to rz.jacobian itself")
    return source


class JaxMap:
    """A linear map at a point, in JAX: `L(v)`, `L @ v`, `L.T`, `L.H`, `L.to_dense()`, `L.diagonal()`, `L.shape`."""

    def __init__(self, source: Source, domain: Space, codomain: Space, dtype: Any, point: Sequence[Any], name: str) -> None:
        self.source, self.domain, self.codomain, self.dtype, self.point, self.name = source, domain, codomain, np.dtype(dtype), list(point), name

    @property
    def shape(self) -> tuple[int, int]:
        """(dim of the codomain, dim of the domain)."""
        return self.codomain.dim, self.domain.dim

    @property
    def T(self) -> JaxMap:
        """The transpose."""
        return JaxMap(turned(self.source), self.codomain, self.domain, self.dtype, self.point, f"{self.name}ᵀ")

    @property
    def H(self) -> JaxMap:
        """The adjoint."""
        if self.domain.plain and self.codomain.plain:
            return self.T
        source = adjoint(turned(self.source), self.domain, self.codomain)
        return JaxMap(source, self.codomain, self.domain, self.dtype, self.point, f"{self.name}*")

    def __call__(self, *vectors: Any) -> Any:
        """L(v)."""
        leaves = self.domain.open(as_element(vectors, self.domain), lambda leaf, *where: leaf)
        shapes = [np.shape(x) for x in leaves]
        if shapes != [leaf.shape for leaf in self.domain.leaves]:
            raise SpaceError(f"not an element of {self.domain}: got arrays of shapes {shapes}")
        found = self._run("apply", self.source.program, leaves)
        return build(self.codomain.code, found, lambda branch, parts: branch.contain(parts))

    __matmul__ = __call__

    def to_dense(self) -> Any:
        """The matrix, components flattened row-major, in order."""
        return self._run("matrix", matrix(self.source))[0]

    def diagonal(self) -> Any:
        """The diagonal of the matrix, flat."""
        if self.shape[0] != self.shape[1]:
            raise SpaceError(f"the diagonal of a map needs as many rows as columns; this one has shape {self.shape}")
        program = diagonal(self.source)
        return self.to_dense().diagonal() if program is None else self._run("diagonal", program)[0]

    def _run(self, what: str, program: Program, more: Sequence[Any] = ()) -> list[Any]:
        known, xs = program.__dict__.setdefault("_in_jax", {}), [*self.point, *more]
        kinds = tuple([np.dtype(getattr(x, "dtype", float)) for x in xs])
        if kinds not in known:
            fixed = len(self.point) if what == "apply" else None
            known[kinds] = Citizen(program, kinds, [self.dtype] * len(program.outputs), f"{self.name} {what}", fixed)
        citizen: Citizen = known[kinds]
        if not any([isinstance(x, jax.Array) for x in xs]):
            return citizen.code.run(*xs)
        allowed(self.name, [self.dtype], citizen)
        return citizen.at(xs)

    def __repr__(self) -> str:
        return f"{self.name} in JAX: {self.domain} ⊸ {self.codomain}"
