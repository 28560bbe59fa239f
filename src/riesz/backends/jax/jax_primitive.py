"""Compiled functions inside JAX: a program as an operation of JAX's own, under jit, vmap, jvp and grad, to any order.

Its derivative is the program of f^[1], which is linear in the tangents; the transpose of that is the program of the
adjoint. Both are derived by riesz, so selections stay selections (no nan from a branch not taken) and products are in
riesz's order. A batch is one more axis of some inputs.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AxisType

from ...calculus.derive import derive_program, transpose_linear
from ...calculus.loop_splitting import apart
from ...errors import SpaceError, VectorError
from ...functions.function import TracedFunction
from ...functions.traces.given import Given
from ...ops.number_domains import OTHER
from ...programs.passes.folding import folded
from ...programs.passes.fusing import ready
from ...runtime import tuning
from ...tracing.traced import Traced
from ..unpacking import opens, unpacked
from .jax_backend import InJax
from .jax_ops import NoJaxCode

ARRAY = type(jnp.zeros(()))
"""The type of JAX's arrays that hold numbers."""


class Citizen:
    """A program inside JAX, linear in its inputs from `fixed` on (None: in none); with what was derived from it."""

    def __init__(
        self,
        program: Any,
        given: Sequence[Any],
        kinds: Sequence[Any],
        title: str,
        fixed: int | None = None,
        place: Any = None,
    ) -> None:
        self.program, self.fixed, self.title, self.place = program, fixed, title, place
        try:
            self.code = self._code(folded(ready(apart(program))), given, kinds)
        except NoJaxCode as problem:
            raise VectorError(f"{title} has no JAX code: {problem}; give it NumPy arrays") from None
        self.count = len(given)
        self._derived: dict[Any, Citizen] = {}

    def _code(self, program: Any, given: Sequence[Any], kinds: Sequence[Any]) -> Any:
        if self.place is None:
            return InJax(program, given, kinds, self.title)
        from ..devices.on_mesh import OnMesh

        return OnMesh(program, given, kinds, self.title, self.place)

    def on(self, place: Any) -> Citizen:
        """The same on the devices of a mesh."""
        key = place.mesh, place.specs
        if key not in self._derived:
            given, kinds = self.code.given, self.code.kinds
            self._derived[key] = Citizen(self.program, given, kinds, self.title, self.fixed, place)
        return self._derived[key]

    def differential(self, moving: tuple[bool, ...]) -> Citizen:
        """(x, dx) ↦ dy, for the inputs that move."""
        if moving not in self._derived:
            given, kinds = self.code.given, self.code.kinds
            program = derive_program(self.program, moving).derivative
            more = [k for k, m in zip(given, moving, strict=True) if m]
            place = self.place and self.place.moving(moving)
            self._derived[moving] = Citizen(program, [*given, *more], kinds, f"{self.title}'", self.count, place)
        return self._derived[moving]

    def transposed(self) -> Citizen:
        """(x, dy) ↦ dx."""
        if "T" not in self._derived:
            given, kinds, fixed = self.code.given, self.code.kinds, self.fixed
            program = transpose_linear(self.program, fixed)
            place = self.place and self.place.turned(fixed, self.code.ends)
            every = [*given[:fixed], *kinds]
            self._derived["T"] = Citizen(program, every, given[fixed:], f"{self.title}*", fixed, place)
        return self._derived["T"]

    def at(self, xs: Sequence[Any]) -> list[Any]:
        """The outputs at JAX arrays and numbers; an operation of JAX's own only where JAX is looking."""
        if self.place is None and (place := explicit_place(xs)) is not None:
            return self.on(place).at(xs)
        if any([isinstance(x, Tracer) for x in xs]):
            return self.bind([jnp.asarray(x) for x in xs])
        return self.code.presented(self.code.function(*self.code.taken(xs, _stack), *self.code.arrays()))

    def bind(self, xs: Sequence[Any], maps: Any = ()) -> list[Any]:
        """The operation on JAX arrays."""
        xs = xs if self.place is None else self.code.given_places(xs, len(maps))
        return RUN.bind(*_alike([*xs, *jax.tree.leaves(self.code.arrays())]), citizen=self, maps=maps)

    def __call__(self, *flat: Any) -> list[Any]:
        """The outputs from inputs and held arrays, all flat: what the operation does."""
        arrays = jax.tree.unflatten(jax.tree.structure(self.code.arrays()), flat[self.count :])
        return self.code.presented(self.code.nested(*self.code.taken(flat[: self.count], _stack), *arrays))


def _alike(xs: Sequence[Any]) -> list[Any]:
    """Arrays inside jax.shard_map that vary along the same axes of a mesh: JAX wants that of one operation."""
    kinds = [getattr(jax.typeof(x), "manual_axis_type", None) for x in xs]
    axes = [getattr(kind, "varying", frozenset()) for kind in kinds]
    every = frozenset[Any]().union(*axes)
    if all([a == every for a in axes]):
        return list(xs)
    pairs = zip(xs, axes, strict=True)
    return [x if a == every else jax.lax.pcast(x, tuple(every - a), to="varying") for x, a in pairs]


def _stack(xs: Sequence[Any]) -> Any:
    parts, most, join = [jnp.asarray(x) for x in xs], tuning.JAX_STACKED_AT_ONCE, jnp.stack
    while join is jnp.stack or len(parts) > 1:
        parts = [join(parts[i : i + most]) for i in range(0, len(parts), most)]
        join = jnp.concatenate
    return parts[0]


# -- the operation. `maps`: for each vmap, the innermost first, which inputs have the axis, and its length -------------

RUN = Primitive("riesz")
RUN.multiple_results = True


def _run(*flat: Any, citizen: Citizen, maps: Any) -> list[Any]:
    function: Any = citizen
    for flags, size in maps:
        axes = [0 if f else None for f in flags] + [None] * (len(flat) - len(flags))
        function = jax.vmap(function, in_axes=axes, axis_size=size)
    return function(*flat)


def _shapes(*flat: Any, citizen: Citizen, maps: Any) -> list[Any]:
    lead = tuple([size for _, size in reversed(maps)])
    p, more = citizen.program, [{}] * len(citizen.program.outputs)
    if citizen.place is not None:
        more = [{"sharding": s} for s in citizen.code.shardings(len(lead))]
    elif flat and getattr(axes := getattr(flat[0], "manual_axis_type", None), "varying", None):
        where = {"sharding": flat[0].sharding.update(spec=jax.sharding.PartitionSpec()), "manual_axis_type": axes}
        more = [where] * len(more)
    each = zip(p.outputs, citizen.code.kinds, more, strict=True)
    return [ShapedArray((*lead, *p.shapes[s]), np.dtype(k), **known) for s, k, known in each]


def _tangent(primals: Any, tangents: Any, *, citizen: Citizen, maps: Any) -> Any:
    xs, dxs = primals[: citizen.count], tangents[: citizen.count]
    ys = citizen.bind(xs, maps)
    given, kinds = [[np.dtype(k).kind == "f" for k in ks] for ks in (citizen.code.given, citizen.code.kinds)]
    moving = tuple([type(d) is not ad.Zero and floats for d, floats in zip(dxs, given, strict=True)])
    zeros = [ad.Zero(y.aval.to_tangent_aval()) for y in ys]
    if not any(moving):
        return ys, zeros
    moved = [i for i, m in enumerate(moving) if m]
    wider = tuple([((*flags, *[flags[i] for i in moved]), size) for flags, size in maps])
    dys = citizen.differential(moving).bind([*xs, *[dxs[i] for i in moved]], wider)
    return ys, [dy if floats else zero for dy, zero, floats in zip(dys, zeros, kinds, strict=True)]


def _transpose(cotangents: Any, *flat: Any, citizen: Citizen, maps: Any) -> Any:
    fixed, xs = citizen.fixed, flat[: citizen.count]
    asked = [i for i, x in enumerate(xs) if ad.is_undefined_primal(x)]
    if fixed is None or asked != list(range(fixed, len(xs))):
        raise SpaceError(f"{citizen.title} is not linear in what JAX asks to transpose it in")
    seeds = [jnp.zeros(c.aval.shape, c.aval.dtype) if type(c) is ad.Zero else c for c in cotangents]
    wider = tuple([((*flags[:fixed], *[True] * len(seeds)), size) for flags, size in maps])
    found = citizen.transposed().bind([*xs[:fixed], *seeds], wider)
    summed: list[Any] = []
    for i, x in enumerate(found):  # an input without the axis of a batch has the sum of the cotangents of all
        gone = tuple([len(maps) - 1 - level for level, (flags, _) in enumerate(maps) if not flags[fixed + i]])
        summed.append(x.sum(gone) if gone else x)
    return [*[None] * fixed, *summed, *[None] * (len(flat) - citizen.count)]


def _batched(values: Any, axes: Any, *, citizen: Citizen, maps: Any) -> Any:
    xs, at = values[: citizen.count], axes[: citizen.count]
    size = next(x.shape[a] for x, a in zip(xs, at, strict=True) if a is not None)
    moved = [x if a is None else jnp.moveaxis(x, a, 0) for x, a in zip(xs, at, strict=True)]
    ys = citizen.bind(moved, (*maps, (tuple([a is not None for a in at]), size)))
    return ys, [0] * len(ys)


RUN.def_impl(_run)
RUN.def_abstract_eval(_shapes)
ad.primitive_jvps[RUN] = _tangent
ad.primitive_transposes[RUN] = _transpose
batching.primitive_batchers[RUN] = _batched
mlir.register_lowering(RUN, mlir.lower_fun(_run, multiple_results=True))


# -- calls -------------------------------------------------------------------------------------------------------------


def explicit_place(xs: Sequence[Any]) -> Any:
    """Where arrays are whose types say it (explicit axes of a mesh); None where none says anything."""
    kinds = [getattr(getattr(x, "aval", None), "sharding", None) for x in xs]
    if not any([k is not None and AxisType.Explicit in k.mesh.axis_types and any(k.spec) for k in kinds]):
        return None
    from ..devices.on_mesh import place_of

    return place_of(kinds, xs)


def called(known: OrderedDict[Any, Any], function: TracedFunction, given: Given) -> Any:
    """The result of a function at arguments of which some are JAX arrays; `known`: traces and citizens by kind."""
    record, citizen = citizen_of(known, function, given)
    allowed_in(record, citizen)
    return record.wrap(citizen.at(given.arrays))


def citizen_of(
    known: OrderedDict[Any, Any], function: TracedFunction, given: Given, place: Any = None
) -> tuple[Any, Citizen]:
    """The trace for arguments of a kind and its program in JAX; `place(given)`: where arguments are on a mesh."""
    found = known.get(given.key)
    if found is None:
        record = function.record(given)
        if any([type(x) is Traced for x in record.captured]):
            traced = "arrays that are being traced by riesz; it cannot take JAX arrays at the same time"
            raise VectorError(f"{record.name} closes over {traced}")
        guarded = record.guards is not None and not record.captured  # then it holds at some points only
        kept = record.derived if guarded else dict[Any, Any]()
        record = record.settled()
        key = "citizen", place
        if key not in kept:
            given_kinds, kinds = [a.dtype for a in record.avals], [a.dtype for a in record.outputs]
            own = None if place is None else place(given)
            kept[key] = record, Citizen(record.program, given_kinds, kinds, record.name, place=own)
        found = kept[key]
        if function.keeps(given):
            known[given.key] = found
            if len(known) > tuning.TRACES_KEPT:
                known.popitem(last=False)
    return found


def again(known: OrderedDict[Any, Any], given: Given) -> Callable[[tuple[Any, ...]], Any] | None:
    """Calls with JAX arrays of a known kind, without taking arguments apart; None where they hold something else."""
    found = known.get(given.key)
    if found is None or not opens(given) or any([type(x) is not ARRAY for x in given.arrays]):
        return None
    (record, citizen), kinds = found, [(a.shape, a.dtype) for a in given.avals]

    def quick(leaves: tuple[Any, ...]) -> Any:
        if len(leaves) != len(kinds):
            return OTHER
        for x, (shape, dtype) in zip(leaves, kinds, strict=True):
            if type(x) is not ARRAY or x.shape != shape or x.dtype != dtype:
                return OTHER
        return record.wrap(citizen.at(leaves))

    return unpacked(given, quick)


def allowed_in(record: Any, citizen: Citizen) -> None:
    """Refuse a trace in float64 where JAX has it switched off."""
    allowed(record.name, [a.dtype for a in (*record.avals, *record.outputs) if not a.weak], citizen)


def allowed(name: str, kinds: Sequence[Any], citizen: Citizen) -> None:
    """Refuse float64 where JAX has it switched off: it would be computed in float32 without a word."""
    if not jax.config.jax_enable_x64 and (np.dtype(float) in kinds or citizen.code.wide):
        how = (
            "write jax.config.update('jax_enable_x64', True), or make all its arrays float32, those it closes over too"
        )
        raise VectorError(f"{name} computes in float64, which is off in JAX: {how}")
