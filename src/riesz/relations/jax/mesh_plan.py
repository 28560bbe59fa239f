"""red_R on a mesh of JAX devices: blocks of sources and targets, one for each device along an axis of the mesh.

Only rows that another device needs travel, once each (exchange_lists.py); the adjoint goes along the same lists the
other way. Sums of a device's own rows do not wait for those that come.
"""

# pyright: basic, reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from ...errors import RelationError
from ..base import Relation
from ..plans import shaped
from .exchange_lists import ExchangeLists, Sums, exchange_lists
from .sorted_sums import sorted_sums

OWNERS = ("auto", "target", "source")


class MeshPlan:
    """red_R for arrays whose first axis is cut among the devices of a mesh, made by `R.plan(mesh=…, axis=…)`.

    Works on NumPy and JAX arrays, under `jax.jit`, `grad` and `jvp`. Sizes that the number of devices does not divide
    are filled up inside; such a result is whole on every device.
    """

    def __init__(self, relation: Relation, mesh: Any, axis: str | None, owner: str = "auto") -> None:
        names = tuple(mesh.axis_names)
        axis = names[0] if axis is None and len(names) == 1 else axis
        if axis not in names:
            raise RelationError(f"axis={axis!r} names no axis of the mesh, which has {', '.join(map(repr, names))}")
        if owner not in OWNERS:
            raise RelationError(f"owner is one of {', '.join(map(repr, OWNERS))}; got {owner!r}")
        self.relation, self.mesh, self.axis = relation, mesh, axis
        self.devices = int(mesh.shape[axis])
        if owner == "auto":
            lists = {by: _lists(relation, by, self.devices) for by in OWNERS[1:]}
            owner = min(lists, key=lambda by: lists[by].moved)
        self.owner = owner

    @cached_property
    def lists(self) -> ExchangeLists:
        """Who gives which rows to whom."""
        return _lists(self.relation, self.owner, self.devices)

    @cached_property
    def _there(self) -> Any:
        cut = NamedSharding(self.mesh, PartitionSpec(self.axis))
        with jax.ensure_compile_time_eval():
            return jax.device_put((self.lists.send, *self.lists[-5:]), cut)

    @property
    def arrays(self) -> Any:
        """The lists on the devices that use them, made once."""
        return constants(self.mesh, self._there, (self.lists.send, *self.lists[-5:]))

    def __call__(self, v: Any) -> Any:
        """red_R v: the result is cut among the devices as the argument is."""
        seen, result = shaped(self.relation, tuple(np.shape(v)))
        v = jnp.asarray(v)
        v = v if jnp.issubdtype(v.dtype, jnp.inexact) else v.astype(float)
        return _shaped(_run(self, _shaped(v, seen[1:])), result)

    @cached_property
    def adjoint(self) -> MeshPlan:
        """The plan of the converse, along the same lists."""
        turned = MeshPlan(
            self.relation.converse, self.mesh, self.axis, "source" if self.owner == "target" else "target"
        )
        turned.__dict__["lists"], turned.__dict__["_there"] = self.lists, self._there
        turned.__dict__["adjoint"] = self
        return turned

    def moved(self, width: int = 1, itemsize: int = 8) -> int:
        """Bytes that travel between devices in one application to rows of `width` numbers."""
        return self.lists.moved * width * itemsize

    def explain(self) -> str:
        """Who owns the pairs, how many rows travel, and how."""
        R, lists = self.relation, self.lists
        first = f"red : V^{R.source} ⊸ V^{R.target}, {R.count:,} pairs on {self.devices} devices along {self.axis!r}"
        blocks = f"blocks: {-(-R.source.size // self.devices):,} sources, {-(-R.target.size // self.devices):,} targets"
        if not lists.sent:
            return f"{first}\n{blocks}\nno row travels"
        free = f"{lists.moved:,} places" if lists.moved > lists.sent else "no place left free"
        if lists.shifts is None:
            how = "all at once"
        else:
            how = f"by shifts of {', '.join([str(k) for k, _ in lists.shifts])} devices"
        rows = f"{lists.sent:,} rows travel ({free}), {8 * lists.moved:,} bytes for numbers of float64, {how}"
        return f"{first}\n{blocks}, pairs owned by their {self.owner}\n{rows}"

    def __repr__(self) -> str:
        return f"red_{{{self.relation!r}}} on {self.devices} devices: {self.lists.sent:,} rows travel"


def constants(mesh: Any, there: Any, held: Any) -> Any:
    """Arrays on the devices of a mesh; where JAX is tracing, and would not take arrays of several processes as
    constants, those of NumPy that they were made of."""
    several = getattr(mesh, "is_multi_process", False)
    return held if several and isinstance(jax.lax.full((), 0), Tracer) else there


def _lists(relation: Relation, owner: str, devices: int) -> ExchangeLists:
    known = relation.__dict__.get("_exchanges")
    if known is None:
        known = relation.__dict__["_exchanges"] = {}
    if (owner, devices) not in known:
        R = relation if owner == "target" else relation.converse
        groups = R.groups
        known[owner, devices] = exchange_lists(groups.size, groups.offsets, groups.index, groups.times, devices)
    return known[owner, devices]


def _shaped(v: Any, shape: tuple[int, ...]) -> Any:
    return v if v.shape == shape else v.reshape(shape)


def _run(plan: MeshPlan, v: Any) -> Any:
    """The sum for rows v; its transpose is that of the converse."""
    pulled, turned = plan.owner == "target", plan.adjoint
    lists = plan.lists
    block, size = (lists.sources if pulled else lists.targets), plan.relation.target.size
    more = plan.devices * block - len(v)
    filled = _placed(plan, jnp.pad(v, ((0, more), (0, 0))) if more else v, PartitionSpec(plan.axis))
    y = jax.custom_derivatives.linear_call(
        lambda arrays, v: _on_mesh(plan, pulled, arrays, v),
        lambda arrays, w: _on_mesh(turned, not pulled, arrays, w),
        plan.arrays,
        filled,
    )
    return y if len(y) == size else _placed(plan, y, PartitionSpec())[:size]


def _placed(plan: MeshPlan, v: Any, spec: PartitionSpec) -> Any:
    """v cut as a specification says; a mesh leaves shardings to XLA, or has them in types."""
    place = NamedSharding(plan.mesh, spec)
    if AxisType.Explicit in plan.mesh.axis_types:
        return jax.reshard(v, place)
    return jax.lax.with_sharding_constraint(v, place)


def _on_mesh(plan: MeshPlan, pulled: bool, arrays: Any, v: Any) -> Any:
    """Each device its blocks; `pulled`: rows come to the pairs, else sums go to their places."""
    of = PartitionSpec(plan.axis)
    local = partial(_pulled if pulled else _pushed, plan.lists, plan.axis)
    return jax.shard_map(local, mesh=plan.mesh, in_specs=(of, of), out_specs=of)(v, arrays)


def _pulled(lists: ExchangeLists, axis: str, x: Any, arrays: Any) -> Any:
    """On one device: rows that others need go, those needed come, and are added up."""
    send, here, away, *_ = jax.tree.map(lambda a: a[0], arrays)
    came = _exchanged(lists, axis, x.at[send].get(mode="fill", fill_value=0), 1)
    return _summed(x, here, lists.targets) + _summed(came, away, lists.targets)


def _pushed(lists: ExchangeLists, axis: str, w: Any, arrays: Any) -> Any:
    """The way back: sums for rows of others go to them, and are added to what is here."""
    _, _, _, here, away, added = jax.tree.map(lambda a: a[0], arrays)
    came = _exchanged(lists, axis, _summed(w, away, lists.room), -1)
    return _summed(w, here, lists.sources) + _summed(came, added, lists.sources)


def _summed(x: Any, sums: Sums, size: int) -> Any:
    """Σ of rows at places in order; the place behind the last takes what fills up."""
    rows = x.at[sums.rows].get(mode="fill", fill_value=0)
    rows = rows if sums.times is None else rows * sums.times.astype(x.dtype)[:, None]
    return sorted_sums(rows, sums.at, size + 1)[:size]


def _exchanged(lists: ExchangeLists, axis: str, rows: Any, way: int) -> Any:
    """Rows for others, and those that came; way −1: back to where they came from."""
    D = lists.devices
    if lists.shifts is None:
        cut = rows.reshape(D, -1, rows.shape[-1])
        return jax.lax.all_to_all(cut, axis, 0, 0, tiled=True).reshape(rows.shape)
    parts, begin = [], 0
    for k, room in lists.shifts:
        circle = [(p, (p + way * k) % D) for p in range(D)]
        parts.append(jax.lax.ppermute(rows[begin : begin + room], axis, circle))
        begin += room
    return jnp.concatenate(parts) if parts else rows
