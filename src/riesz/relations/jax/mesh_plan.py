"""red_R on a mesh of JAX devices: blocks of sources and targets, one for each device along an axis of the mesh.

Only rows that another device needs travel, once each: along lists (exchange_lists.py), or as rims of blocks and totals
(halo_exchange.py). The adjoint goes the same way back. Sums of a device's own rows do not wait for those that come.
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
from .exchange_lists import OWNERS, ExchangeLists, Sums, exchange_lists
from .fixed_trees import FixedTrees, fixed_trees
from .halo_exchange import BlockTotals, Halo, halo_applied, running_sums_applied, without_lists
from .sorted_sums import sorted_sums

Form = ExchangeLists | FixedTrees | Halo | BlockTotals
"""How devices apply a relation: each has `devices`, the lengths of blocks of `sources` and `targets`, `rounds` and
`arrays`."""


class MeshPlan:
    """red_R for arrays whose first axis is cut among the devices of a mesh, made by `R.plan(mesh=…, axis=…)`.

    Works on NumPy and JAX arrays, under `jax.jit`, `grad` and `jvp`. Sizes that the number of devices does not divide
    are filled up inside; such a result is whole on every device. `P @ Q` is the plan of one relation after the other:
    each row travels once for both.
    """

    def __init__(
        self, relation: Relation, mesh: Any, axis: str | None, owner: str = "auto", deterministic: str = "fixed"
    ) -> None:
        names = tuple(mesh.axis_names)
        axis = names[0] if axis is None and len(names) == 1 else axis
        if axis not in names:
            raise RelationError(f"axis={axis!r} names no axis of the mesh, which has {', '.join(map(repr, names))}")
        if owner not in OWNERS:
            raise RelationError(f"owner is one of {', '.join(map(repr, OWNERS))}; got {owner!r}")
        if deterministic not in ("fixed", "any"):
            means = "'fixed' (the same bits on the same number of devices) or 'any' (on any number)"
            raise RelationError(f"deterministic is {means}; got {deterministic!r}")
        self.relation, self.mesh, self.axis = relation, mesh, axis
        self.devices = int(mesh.shape[axis])
        self._asked, self.deterministic = owner, deterministic

    @cached_property
    def form(self) -> Form:
        """Who gives which rows to whom."""
        return form_of(self.relation, self.devices, self._asked, self.deterministic)

    @property
    def owner(self) -> str:
        """To whom pairs between two devices belong: to that of their target, of their source, or some to each."""
        return self.form.owner if isinstance(self.form, ExchangeLists) else "target"

    @cached_property
    def _there(self) -> Any:
        cut = NamedSharding(self.mesh, PartitionSpec(self.axis))
        with jax.ensure_compile_time_eval():
            return jax.device_put(self.form.arrays, cut)

    @property
    def arrays(self) -> Any:
        """The lists on the devices that use them, made once."""
        return constants(self.mesh, self._there, self.form.arrays)

    def __call__(self, v: Any) -> Any:
        """red_R v: the result is cut among the devices as the argument is."""
        seen, result = shaped(self.relation, tuple(np.shape(v)))
        v = jnp.asarray(v)
        v = v if jnp.issubdtype(v.dtype, jnp.inexact) else v.astype(float)
        return _shaped(_run(self, _shaped(v, seen[1:])), result)

    def __matmul__(self, first: Any) -> MeshPlan:
        """The plan of `first`, then this one, as one exchange."""
        if not isinstance(first, MeshPlan):
            return NotImplemented
        if (self.mesh, self.axis) != (first.mesh, first.axis):
            raise RelationError(
                f"plans are composed on one axis of one mesh; got {self.axis!r} of {self.mesh} and {first.axis!r} of "
                f"{first.mesh}: plan R.then(S) instead"
            )
        if self.relation.source is not first.relation.target:
            ends, starts = first.relation.target, self.relation.source
            raise RelationError(f"cannot compose plans: the first ends in {ends}, the second starts at {starts}")
        exact = "any" if "any" in (self.deterministic, first.deterministic) else "fixed"
        return MeshPlan(first.relation.then(self.relation), self.mesh, self.axis, "auto", exact)

    @cached_property
    def adjoint(self) -> MeshPlan:
        """The plan of the converse, along the same lists."""
        back = {"target": "source", "source": "target"}.get(self._asked, self._asked)
        turned = MeshPlan(self.relation.converse, self.mesh, self.axis, back, self.deterministic)
        if isinstance(self.form, ExchangeLists):
            turned.__dict__["form"] = self.form.turned
        turned.__dict__["adjoint"] = self
        return turned

    def moved(self, width: int = 1, itemsize: int = 8) -> int:
        """Bytes that travel between devices in one application to rows of `width` numbers."""
        return rows_moved(self.form) * width * itemsize

    def explain(self) -> str:
        """Who owns the pairs, how many rows travel, and how."""
        R, form = self.relation, self.form
        first = f"red : V^{R.source} ⊸ V^{R.target}, {R.count:,} pairs on {self.devices} devices along {self.axis!r}"
        blocks = f"blocks: {-(-R.source.size // self.devices):,} sources, {-(-R.target.size // self.devices):,} targets"
        moved = rows_moved(form)
        if not moved:
            return f"{first}\n{blocks}\nno row travels"
        lists = _lists_of(form)
        owned, sent = "", f"{moved:,} rows travel"
        if isinstance(lists, ExchangeLists):
            owners = "their target or their source" if lists.owner == "both" else f"their {lists.owner}"
            owned = f", pairs owned by {owners}"
            free = f"{moved:,} places" if moved > lists.sent else "no place left free"
            sent = f"{lists.sent:,} rows travel ({free})"
        elif isinstance(form, Halo):
            owned = ", without lists: rims of blocks"
        else:
            owned = ", without lists: totals of blocks"
        times = None if form.rounds is None else len(form.rounds)
        how = "all at once" if times is None else "in one round" if times == 1 else f"in {times} rounds"
        bits = "\nthe same bits on any number of devices" if self.deterministic == "any" else ""
        return f"{first}\n{blocks}{owned}\n{sent}, {8 * moved:,} bytes for numbers of float64, {how}{bits}"

    def __repr__(self) -> str:
        return f"red_{{{self.relation!r}}} on {self.devices} devices: {rows_moved(self.form):,} rows travel"


def form_of(relation: Relation, devices: int, owner: str = "auto", deterministic: str = "fixed") -> Form:
    """How devices apply a relation, made once: without lists where that can be."""
    key = owner, devices, deterministic
    held: Any = relation.__dict__
    known = held.setdefault("_exchanges", {})
    if key not in known:
        known[key] = _form(relation, devices, owner, deterministic)
    return known[key]


def _form(relation: Relation, devices: int, owner: str, deterministic: str) -> Form:
    if deterministic == "any":
        return fixed_trees(relation, devices)
    found = without_lists(relation, devices) if owner == "auto" else None
    return found or exchange_lists(relation.groups, devices, owner)


def rows_moved(form: Form) -> int:
    """Rows that travel between devices, places left free included."""
    if form.rounds is None:
        return _lists_of(form).moved
    return sum([len(one.pairs) * one.room for one in form.rounds])


def room_of(form: Form) -> int:
    """Rows that a device gets, places left free included."""
    if form.rounds is None:
        return _lists_of(form).room
    return sum([one.room for one in form.rounds])


def _lists_of(form: Form) -> Any:
    return form.leaves if isinstance(form, FixedTrees) else form


def constants(mesh: Any, there: Any, held: Any) -> Any:
    """Arrays on the devices of a mesh; where JAX is tracing, and would not take arrays of several processes as
    constants, those of NumPy that they were made of."""
    several = getattr(mesh, "is_multi_process", False)
    return held if several and isinstance(jax.lax.full((), 0), Tracer) else there


def _shaped(v: Any, shape: tuple[int, ...]) -> Any:
    return v if v.shape == shape else v.reshape(shape)


def _run(plan: MeshPlan, v: Any) -> Any:
    """The sum for rows v; its transpose is that of the converse."""
    turned, size = plan.adjoint, plan.relation.target.size
    more = plan.devices * plan.form.sources - len(v)
    filled = _placed(plan, jnp.pad(v, ((0, more), (0, 0))) if more else v, PartitionSpec(plan.axis))
    y = jax.custom_derivatives.linear_call(
        lambda arrays, v: _on_mesh(plan, arrays[0], v),
        lambda arrays, w: _on_mesh(turned, arrays[1], w),
        (plan.arrays, turned.arrays),
        filled,
    )
    return y if len(y) == size else _placed(plan, y, PartitionSpec())[:size]


def _placed(plan: MeshPlan, v: Any, spec: PartitionSpec) -> Any:
    """v cut as a specification says; a mesh leaves shardings to XLA, or has them in types."""
    place = NamedSharding(plan.mesh, spec)
    if AxisType.Explicit in plan.mesh.axis_types:
        return jax.reshard(v, place)
    return jax.lax.with_sharding_constraint(v, place)


def _on_mesh(plan: MeshPlan, arrays: Any, v: Any) -> Any:
    """Each device its blocks."""
    of = PartitionSpec(plan.axis)
    local = partial(applied, plan.form, plan.axis)
    return jax.shard_map(local, mesh=plan.mesh, in_specs=(of, of), out_specs=of, check_vma=False)(v, arrays)


# -- on one device -----------------------------------------------------------------------------------------------------


def applied(form: Form, axis: Any, x: Any, arrays: Any) -> Any:
    """The targets of a device, from its block of sources; `arrays` have one row."""
    if isinstance(form, Halo):
        return halo_applied(form, axis, x)
    if isinstance(form, BlockTotals):
        return running_sums_applied(form, axis, x)
    if isinstance(form, FixedTrees):
        leaves, levels, ends = arrays
        rows = applied(form.leaves, axis, x, leaves)
        for first, second in levels:
            rows = rows_at(rows, first[0]) + rows_at(rows, second[0])
        return rows_at(rows, ends[0])
    send, here, away = jax.tree.map(lambda a: a[0], arrays)
    if not form.room:
        return summed(x, here, form.targets)
    came = _travelled(form, axis, summed(x, send, form.room))
    return summed(x, here, form.targets) + summed(came, away, form.targets)


def rows_at(rows: Any, index: Any) -> Any:
    """Rows at positions, zeros behind the last."""
    return rows.at[index].get(mode="fill", fill_value=0)


def summed(x: Any, sums: Sums, size: int) -> Any:
    """Σ of rows at places in order; the place behind the last takes what fills up."""
    rows = rows_at(x, sums.rows)
    if sums.at is None:
        return rows
    rows = rows if sums.times is None else rows * sums.times.astype(x.dtype)[:, None]
    return sorted_sums(rows, sums.at, size + 1)[:size]


def _travelled(lists: ExchangeLists, axis: Any, rows: Any) -> Any:
    """Rows for others, and those that came."""
    if lists.rounds is None:
        cut = rows.reshape(lists.devices, -1, rows.shape[-1])
        return jax.lax.all_to_all(cut, axis, 0, 0, tiled=True).reshape(rows.shape)
    parts, begin = [], 0
    for one in lists.rounds:
        parts.append(jax.lax.ppermute(rows[begin : begin + one.room], axis, one.pairs))
        begin += one.room
    return jnp.concatenate(parts)
