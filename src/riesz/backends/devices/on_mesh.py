"""A program on a mesh of JAX devices: what `partition.Partition` says each device runs, under `jax.shard_map`.

Nothing is left to XLA's own partitioning: what travels is what the partition says. So axes of the mesh may be automatic
or explicit.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from ...errors import SolveError, SpaceError, VectorError
from ...programs.program import Program
from ...relations.jax.halo_exchange import halo_applied, rims_given
from ...relations.jax.mesh_plan import applied, constants, summed
from ...runtime import later, tuning
from ..jax.jax_backend import InJax
from ..jax.jax_maps import JaxLeaves
from ..jax.jax_ops import LINES, JaxSteps, JaxValue
from ..jax.jax_primitive import Citizen, allowed
from .communication import Communication, Exchange, Rims, block
from .partition import Partition, Spec, by_sets
from .placing import Placing


def spec_in_jax(spec: Spec) -> PartitionSpec:
    """A placement as JAX writes it."""
    return PartitionSpec(*[None if not names else names[0] if len(names) == 1 else names for names in spec])


def spec_from_jax(spec: Any, rank: int) -> Spec:
    """A placement from JAX's."""
    given = [() if s is None else (s,) if isinstance(s, str) else tuple(s) for s in spec]
    return (*given, *[()] * (rank - len(given)))


def put(x: Any, place: NamedSharding) -> Any:
    """An array where it belongs; arrays of one process go to devices of several by way of NumPy."""
    here = isinstance(x, jax.Array) and x.is_fully_addressable and not place.is_fully_addressable
    return jax.device_put(np.asarray(x) if here else x, place)


def place_of(shardings: Sequence[Any], xs: Sequence[Any]) -> Placing:
    """Where arrays on explicit axes of a mesh are, by their types."""
    found = [s if s is not None and AxisType.Explicit in s.mesh.axis_types else None for s in shardings]
    arrays = [x.sharding.mesh for x, s in zip(xs, found, strict=True) if s is not None and not isinstance(x, Tracer)]
    mesh = arrays[0] if arrays else next(s.mesh for s in found if s is not None)
    specs = [((),) * np.ndim(x) if s is None else spec_from_jax(s.spec, x.ndim) for s, x in zip(found, xs, strict=True)]
    return Placing(mesh, tuple(specs), {})


class OnMesh(InJax):
    """A program as a function on JAX arrays that are placed on a mesh."""

    def __init__(
        self,
        program: Program,
        given: Sequence[Any],
        kinds: Sequence[Any],
        title: str,
        place: Placing,
    ) -> None:
        self.mesh = mesh = place.mesh
        specs, sets = place.specs, place.sets
        floats = [np.dtype(k).itemsize for k in (*given, *kinds) if np.dtype(k).kind == "f"]
        self.partition = part = Partition(program, specs, dict(mesh.shape), max(floats, default=8), sets=sets)
        self.specs, self.ends = list(specs), part.ends
        extra = [array for array, _ in part.extra]
        super().__init__(part.local, [*given, *[a.dtype for a in extra]], kinds, title)
        self._constants = [array for array, _ in part.extra]
        self.given = tuple(given)  # as others see it
        self._specs = [spec_in_jax(spec) for spec in specs]
        self._fixed = [PartitionSpec(names) if names else PartitionSpec() for names in self._cut]
        self._fixed += [spec_in_jax(spec) for _, spec in part.extra]
        out: dict[int, PartitionSpec] = {}
        for (k, row), end in zip(self._places, part.ends, strict=True):
            spec = spec_in_jax(end) if row is None else PartitionSpec(None, *spec_in_jax(end))
            if out.setdefault(k, spec) != spec:
                raise VectorError(f"{title}: equal results must be placed alike")
        ends = tuple([out[k] for k in range(len(out))])
        mine, specs_in = self.plain, (*self._specs, *self._fixed)

        def on_each(*flat: Any) -> Any:
            """What a device runs: its parts of the arguments, then of fixed arrays."""
            count, held = len(given), len(self._held)
            fixed = flat[count:]
            return mine(*InJax.taken(self, [*flat[:count], *fixed[held:]], jnp.stack), *fixed[:held])

        self.plain = jax.shard_map(on_each, mesh=mesh, in_specs=specs_in, out_specs=ends, check_vma=False)

    def taken(self, xs: Sequence[Any], stack: Any) -> list[Any]:
        """The arguments where devices expect them."""
        return [self._there(x, spec) for x, spec in zip(xs, self._specs, strict=True)]

    def given_places(self, xs: Sequence[Any], maps: int) -> Sequence[Any]:
        """Arguments of JAX's operation on the mesh, so that JAX sees which devices take part, and the types of results
        where axes are explicit."""
        if maps:
            return xs
        there = jax.reshard if AxisType.Explicit in self.mesh.axis_types else jax.lax.with_sharding_constraint
        return [there(x, NamedSharding(self.mesh, spec)) for x, spec in zip(xs, self._specs, strict=True)]

    def _there(self, x: Any, spec: PartitionSpec) -> Any:
        place = NamedSharding(self.mesh, spec)
        if isinstance(x, Tracer):
            return jax.reshard(x, place) if AxisType.Explicit in self.mesh.axis_types else x
        if isinstance(self.mesh, AbstractMesh):
            how = "jax.make_mesh makes one of devices; without them jax.jit(g).trace(…).lower(…) and g.forecast(…) work"
            raise SpaceError(f"the mesh is abstract, it has no devices to run on: {how}")
        return put(x, place)

    def shardings(self, lead: int) -> list[Any]:
        """Where results are, under leading axes; None where axes of the mesh are automatic."""
        if AxisType.Explicit not in self.mesh.axis_types:
            return [None] * len(self.ends)
        mesh = getattr(self.mesh, "abstract_mesh", self.mesh)
        return [NamedSharding(mesh, spec_in_jax((*((),) * lead, *end))) for end in self.ends]

    def arrays(self) -> list[Any]:
        """The arrays the program holds, on their devices."""
        wide, held = bool(jax.config.jax_enable_x64), [*self._held, *self._constants]
        if isinstance(self.mesh, AbstractMesh):  # no devices: the code is looked at, not run
            return jax.tree.map(np.asarray, held)
        if wide not in self._arrays:
            every = zip(held, self._fixed, strict=True)
            with jax.ensure_compile_time_eval():
                self._arrays[wide] = [
                    jax.device_put(jax.tree.map(jnp.asarray, a), NamedSharding(self.mesh, s)) for a, s in every
                ]
        return constants(self.mesh, self._arrays[wide], held)


def explicit_spec(x: Any) -> PartitionSpec | None:
    """Along which explicit axes of a mesh the type of an array says it is cut; None if it is not."""
    spec: Any = jax.typeof(x).sharding.spec if isinstance(x, jax.Array) else ()
    return spec if any(spec) else None


def brought(x: Any, mesh: Any, spec: PartitionSpec) -> Any:
    """An array cut as said, inside of `jax.jit` too."""
    place = NamedSharding(mesh, spec)
    return jax.reshard(x, place) if isinstance(x, Tracer) else jax.device_put(x, place)


class WholeLinalg:
    """jnp.linalg, whose functions take no arrays that are cut along explicit axes of a mesh: they get them whole."""

    def __init__(self, mesh: Any) -> None:
        self.mesh = mesh

    def whole(self, x: Any) -> Any:
        """An array as every device has it."""
        return x if explicit_spec(x) is None else brought(x, self.mesh, PartitionSpec())

    def __getattr__(self, name: str) -> Any:
        function = getattr(jnp.linalg, name)
        return lambda *xs, **options: function(*[self.whole(x) for x in xs], **options)


class WholeArrays:
    """jnp, with `WholeLinalg`."""

    def __init__(self, mesh: Any) -> None:
        self.linalg = WholeLinalg(mesh)

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)


class PlacedLeaves(JaxLeaves):
    """JAX arrays on a mesh: points and vectors of a map whose function is placed. What is not there yet goes where an
    argument or result of its shape is."""

    def __init__(self, name: str, place: Placing, shapes: Sequence[tuple[int, ...]]) -> None:
        super().__init__(name)
        self.arrays = WholeArrays(place.mesh)
        self.place, self._like = place, dict(zip(reversed(shapes), reversed(place.specs), strict=True))

    def spec(self, x: Any) -> Spec:
        """Where an array is, or is to go."""
        shape, sharding = np.shape(x), getattr(x, "sharding", None)
        if isinstance(x, Tracer):
            sharding = sharding if AxisType.Explicit in self.place.mesh.axis_types else None
        if isinstance(sharding, NamedSharding) and sharding.mesh.axis_names == self.place.mesh.axis_names:
            return spec_from_jax(sharding.spec, len(shape))
        return self._like.get(shape) or by_sets(shape, self.place.sets)

    def there(self, xs: Sequence[Any]) -> list[Any]:
        """Arrays where they belong."""
        mesh = self.place.mesh
        place = [NamedSharding(mesh, spec_in_jax(self.spec(x))) for x in xs]
        return [x if isinstance(x, Tracer) else put(x, p) for x, p in zip(xs, place, strict=True)]

    def inverted(self, L: Any, right: Any, method: str, options: dict[str, Any]) -> Any:
        """L⁻¹ of flat coordinates: of a block-diagonal map each device solves its blocks; by conjugate gradients where
        these are asked for ("lsmr": on LᵀL x = Lᵀb) or no matrix of that size is made; each iteration applies L where
        the numbers are."""
        large = min(L.shape) > tuning.DENSE_UNKNOWNS and L.structure.kind not in ("diagonal", "identity")
        found = self._by_blocks(L, right) if method == "auto" and not options else None
        if found is not None:
            return found
        iterated = method in ("cg", "lsmr") or (method == "auto" and large)
        if not iterated or np.ndim(right) != 1:
            if L.structure.kind in ("diagonal", "identity"):
                d = L.diagonal()
                spec = explicit_spec(d)
                right = right if spec is None else brought(jnp.asarray(right), self.place.mesh, spec)
                return (right.T / d).T
            return super().inverted(L, self.arrays.linalg.whole(right), method, options)
        known = {"tolerance": 1e-10, "max_iterations": 10 * L.shape[1], "checkpoint": None, "every": 100}
        if wrong := set(options) - set(known):
            raise SolveError(f"method={method!r} on a mesh has the options {', '.join(known)}; got {', '.join(wrong)}")
        square = L.shape[0] == L.shape[1] and method != "lsmr" and (method == "cg" or "definite" in L.facts)
        A, b = (L, jnp.asarray(right)) if square else (L.T @ L, L.T.matvec(right))
        chosen = {**known, **options}
        path, every, file = chosen.pop("checkpoint"), chosen.pop("every"), None
        if path is not None:
            if isinstance(b, Tracer):
                raise SolveError("a checkpoint is a file; inside jax.jit there are no numbers to write: solve outside")
            whole = NamedSharding(self.place.mesh, PartitionSpec())
            b = b if isinstance(b.sharding, NamedSharding) else put(b, whole)
            of = {"the method": "conjugate gradients", "the right-hand side": b, "the map": A.matvec(b)}
            file = later.Checkpoint(path, of, every)
        return mesh_gradients(A.matvec, b, file=file, **chosen)

    def _by_blocks(self, L: Any, right: Any) -> Any:
        """The solution where L has a block for each element of the first axis of one array, found from as many
        products as a block has columns; None where it has not, which one more product says."""
        shapes = [[leaf.shape for leaf in V.leaves] for V in (L.domain, L.codomain)]
        if L.structure.kind != "block-diagonal" or shapes[0] != shapes[1] or len(shapes[0]) != 1:
            return None
        shape = shapes[0][0]
        n, k = shape[0], math.prod(shape[1:])
        if isinstance(right, Tracer) or np.ndim(right) != 1 or n * k * k > tuning.BLOCKS_RATIO * L.structure.nonzeros:
            return None
        names = (self._like.get(shape) or by_sets(shape, self.place.sets))[0]
        if not names:
            return None
        cut = PartitionSpec(names)
        there = NamedSharding(self.place.mesh, cut)
        unit = np.eye(k, dtype=L.dtype)
        columns = [jax.device_put(jnp.reshape(L.matvec(np.tile(e, n)), (n, k)), there) for e in unit]
        blocks = jnp.stack(columns, 2)
        if isinstance(blocks, Tracer):
            return None
        test = np.cos(np.arange(n * k)).astype(L.dtype)
        wanted = jnp.reshape(L.matvec(test), (n, k))
        missing = wanted - jnp.einsum("nab,nb->na", blocks, jax.device_put(test.reshape(n, k), there))
        if not float(jnp.max(jnp.abs(missing))) <= tuning.SAME_PRODUCT * float(jnp.max(jnp.abs(wanted))):
            return None

        def solved(B: Any, b: Any) -> Any:
            return jnp.linalg.solve(B, b[..., None])[..., 0]

        local = jax.shard_map(solved, mesh=self.place.mesh, in_specs=(cut, cut), out_specs=cut, check_vma=False)
        return local(blocks, jax.device_put(jnp.reshape(right, (n, k)), there)).reshape(-1)

    def found(self, citizen: Citizen, xs: Sequence[Any], dtype: Any) -> list[Any]:
        placed = citizen.on(self.place._replace(specs=tuple([self.spec(x) for x in xs])))
        allowed(self.name, [dtype], placed)
        return placed.at(self.there(xs))


def mesh_gradients(apply: Any, b: Any, tolerance: float, max_iterations: int, file: Any = None) -> Any:
    """The x with A x = b for a positive definite A, to a residual of `tolerance`·‖b‖; where it is not reached an error,
    inside `jax.jit` nan. `file`: a checkpoint."""
    least = tolerance**2 * jnp.sum(b * b)

    def goes_on(state: Any) -> Any:
        *_, rr, k, until = state
        return (rr > least) & (k < until)

    def step(state: Any) -> Any:
        x, r, p, rr, k, until = state
        Ap = apply(p)
        a = rr / jnp.sum(p * Ap)
        x, r = x + a * p, r - a * Ap
        new = jnp.sum(r * r)
        return x, r, r + (new / rr) * p, new, k + 1, until

    def rounds(state: Any, until: int) -> Any:
        return jax.lax.while_loop(goes_on, step, (*state, until))[:-1]

    state = jnp.zeros_like(b), b, b, jnp.sum(b * b), 0
    if file is None:
        state = rounds(state, max_iterations)
    else:
        whole = NamedSharding(b.sharding.mesh, PartitionSpec())
        places = (b.sharding,) * 3 + (whole,) * 2
        state = jax.device_put(state, places)
        done, state = file.found(state) or (0, state)
        while state[3] > least and done < max_iterations:
            done = min(done - done % file.every + file.every, max_iterations)
            state = jax.device_put(rounds(state, done), places)
            file.keep(int(state[4]), state)
    x, _, _, rr, k = state
    if isinstance(rr, Tracer):
        return jnp.where(rr <= least, x, jnp.nan)
    if not rr <= least:
        more = f"the residual is {float(jnp.sqrt(rr)):.1e}; is the map positive definite? max_iterations= allows more"
        raise SolveError(f"conjugate gradients are not there after {int(k)} iterations: {more}")
    return x


# -- steps -------------------------------------------------------------------------------------------------------------


@LINES("collectives of a mesh", Communication)
def _communicated(self: JaxSteps, op: Communication, xs: list[JaxValue]) -> JaxValue:
    return self._applied(op.kind, partial(communicated, op), xs)


@LINES("collectives of a mesh, gathers and sums", Exchange)
def _exchanged(self: JaxSteps, op: Exchange, xs: list[JaxValue]) -> JaxValue:
    function, self.light = partial(reduced, op), False
    given = ", ".join([self.array(x) for x in xs])
    if op.arrays:
        held = self.shared.array(op.arrays)
        self.shared.cut[held] = op.names
        given = f"{given}, {held}"
    return JaxValue(self.set(f"{self.shared.name('along', function)}({given})"), self.shape)


@LINES("a slice to each neighbour", Rims)
def _rims(self: JaxSteps, op: Rims, xs: list[JaxValue]) -> JaxValue:
    self.light = False
    return JaxValue(self.set(f"{self.shared.name('along', partial(rims, op))}({self.array(xs[0])})"), self.shape)


def communicated(op: Communication, x: Any) -> Any:
    """What travels, on each device."""
    names, axis = op.names, op.axis
    match op.kind:
        case "all-reduce":
            return jax.lax.psum(x, names)
        case "reduce-scatter":
            return jax.lax.psum_scatter(x, names, scatter_dimension=axis, tiled=True)
        case "all-gather":
            y = jax.lax.all_gather(x, names, axis=axis, tiled=True)
            return jax.lax.slice_in_dim(y, 0, op.length, axis=axis)
        case "all-to-all":
            y = jax.lax.all_to_all(x, names, op.to, axis, tiled=True)
            return jax.lax.slice_in_dim(y, 0, op.length, axis=axis)
    at = jax.lax.axis_index(names)
    if op.kind == "clear":
        size = x.shape[axis]
        mine = at * size + jnp.arange(size) < op.length
        return jnp.where(jnp.expand_dims(mine, [i for i in range(x.ndim) if i != axis]), x, jnp.zeros((), x.dtype))
    size = block(op.length, op.count)
    more = size * op.count - op.length
    x = jnp.pad(x, [(0, more if i == axis else 0) for i in range(x.ndim)]) if more else x
    return jax.lax.dynamic_slice_in_dim(x, at * size, size, axis)


def _rows(op: Exchange, x: Any) -> tuple[Any, Any, Any]:
    """x with what a relation reduces first, and the shapes before and behind it."""
    rank = len(op.relation.source.box or ())
    front, back = x.shape[: op.axis], x.shape[op.axis + rank :]
    rows = math.prod(x.shape[op.axis : op.axis + rank])
    wide = x.reshape((math.prod(front), rows, math.prod(back)))
    return jnp.moveaxis(wide, 1, 0).reshape((rows, -1)), front, back


def _back(op: Exchange, y: Any, shape: Any, front: Any, back: Any) -> Any:
    wide = y.reshape((len(y), math.prod(front), math.prod(back)))
    return jnp.moveaxis(wide, 0, 1).reshape(shape)


def rims(op: Rims, x: Any) -> Any:
    """Rows at the ends of blocks, given to neighbours."""
    rows = jnp.moveaxis(x, op.axis, 0)
    y = rims_given(op.rims, op.size, op.names, rows.reshape((len(rows), -1)))
    return jnp.moveaxis(y.reshape((len(y), *rows.shape[1:])), 0, op.axis)


def reduced(op: Exchange, x: Any, arrays: Any = ()) -> Any:
    """red_R of blocks to blocks, or of what a device has to what it needs, or to its part of a sum."""
    shape = op.result((x.shape,))
    rows, front, back = _rows(op, x)
    if op.rims:
        y = halo_applied(op.form, op.names, rows, op.rims, _rows(op, arrays)[0])
    elif op.how == "exchange":
        y = applied(op.form, op.names, rows, arrays)
    else:
        size = math.prod(shape[op.axis : len(shape) - len(back)])
        y = summed(rows, jax.tree.map(lambda a: a[0], arrays), size)
    return _back(op, y, shape, front, back)
