"""`rz.compile(f, …, mesh=mesh, place=…)`: a compiled function on many devices; what it says of its placement."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import math
from copy import copy
from typing import Any

from jax.sharding import NamedSharding

from ...errors import SpaceError
from ...functions.function import TracedFunction
from ...functions.traces.given import Given
from ...functions.traces.records import Record
from ...tracing.traced import Traced
from ..entry import Compiled, CompiledMaps
from ..jax.jax_maps import mapped_in
from ..jax.jax_primitive import Citizen, allowed_in, citizen_of
from .forecasts import Forecast, forecast
from .loading_parts import loaded
from .machines import Machine, as_machine
from .on_mesh import PlacedLeaves, spec_in_jax
from .partition import Partition
from .placement_reports import PlacedCost, PlacementPlan, compared, explained, placed_cost, warned
from .placing import Placing, Seen, names_in, placed


class PlacedFunction(Compiled):
    """A compiled function on a mesh of JAX devices. Arguments go where the placement says, unless they are there;
    results are JAX arrays that stay where they are computed."""

    def __init__(self, function: TracedFunction, mesh: Any, place: Any) -> None:
        super().__init__(function, "jax")
        self.mesh, self._place = mesh, place
        self._trace: Record | None = None
        self._owners: list[list[int]] = []
        self._of: Citizen | None = None
        self._given: Given | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given = self.function.given(args, kwargs)
        if any([type(x) is Traced for x in given.arrays]):
            return self.function(*args, **kwargs)
        record, citizen = self._ready(given)
        allowed_in(record, citizen)
        return record.wrap(citizen.at(given.arrays))

    def _ready(self, given: Given) -> tuple[Record, Citizen]:
        found = citizen_of(self._citizens, self.function, given, self._placed)
        if found[0] is not self._trace:
            self._given = copy(given)
            self._given.arrays = []  # of what kind they are is enough
        self._trace, self._of = found
        self._owners = given.owners
        return found

    def _placed(self, given: Given) -> Placing:
        return placed(self._place, given, names_in(self.function, given), self.mesh)

    def start(self, given: Given) -> None:
        """Say how arguments of a kind are placed, before they are there."""
        given.point = False
        warned(self.name, self._ready(given)[1].code.partition)

    @property
    def _partition(self) -> Partition:
        if self._of is None:
            raise SpaceError(f"nothing is placed yet: call {self.name}, or give examples to rz.compile")
        return self._of.code.partition

    @property
    def backend(self) -> str:
        """What runs it."""
        return "jax"

    @property
    def cost(self) -> PlacedCost:
        """What one run costs a device."""
        return placed_cost(self._partition)

    @property
    def shardings(self) -> list[Any]:
        """Where each array of the arguments goes, for `jax.device_put`."""
        return [NamedSharding(self.mesh, spec_in_jax(spec)) for spec in self._partition.given]

    def load(self, *sources: Any) -> tuple[Any, ...]:
        """The arguments, on the devices: `g(*g.load(w, "X.npy", ("rows.parquet", "y")))`. A source is an array (also a
        memory map), a .npy file, Parquet files with a column or a list of columns, or a function that gets a slice of
        each axis and gives that part. Each process reads the parts of its own devices only."""
        if self._given is None:
            raise SpaceError(f"nothing is placed yet: call {self.name}, or give examples to rz.compile")
        return loaded(self._given, sources, self.shardings, names_in(self.function, self._given))

    def explain(self) -> str:
        """Who has which part of each value, and what travels."""
        part = self._partition
        axes = ", ".join([f"{n} along {name!r}" for name, n in part.sizes.items()])
        return f"{self.name} on {axes} devices{_processes(self.mesh)}\n{explained(part)}"

    def plan(self, devices: int | None = None, machine: Machine | str | None = None) -> PlacementPlan:
        known = None if machine is None else as_machine(machine)
        count = devices or math.prod(dict(self.mesh.shape).values())
        return compared(self.name, self._seen()[0], count, known)

    def forecast(self, machine: Machine | str, mesh: Any = None, place: Any = None) -> Forecast:
        """How long a run takes on devices of a machine, and how much memory: on the mesh it is compiled for, or on
        another one."""
        if mesh is None and place is None:
            return forecast(self._partition, as_machine(machine))
        return super().forecast(machine, self.mesh if mesh is None else mesh, self._place if place is None else place)

    def _seen(self) -> tuple[Record, Seen]:
        if self._trace is None:
            raise SpaceError(f"nothing is known of the arguments: call {self.name}, or give examples to rz.compile")
        return self._trace, Seen(self._trace.avals, self._owners)

    def recipe(self) -> Any:
        raise SpaceError(f"{self.name} is compiled for devices of this process and is not pickled; pickle the function")

    def __repr__(self) -> str:
        return f"rz.compile({self.name}, mesh=…)"


class PlacedMaps(CompiledMaps):
    """What `jacobian` and `hessian` give, with points and vectors on a mesh of JAX devices."""

    def __init__(self, function: TracedFunction, mesh: Any, place: Any) -> None:
        super().__init__(function, "jax")
        self.mesh, self._place = mesh, place

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given = self.function.given(args, kwargs)
        if any([type(x) is Traced for x in given.arrays]):
            return self.function(*args, **kwargs)
        place = self._placed(given)
        leaves = PlacedLeaves(self.name, place, [a.shape for a in given.avals])
        given.arrays = leaves.there(given.arrays)
        return mapped_in(self._citizens, self.function, given, leaves)

    def start(self, given: Given) -> None:
        """Nothing is written; the placement is looked at."""
        self.example = given
        self._placed(given)

    def _placed(self, given: Given) -> Placing:
        return placed(self._place, given, names_in(self.function, given), self.mesh)

    @property
    def shardings(self) -> list[Any]:
        """Where each array of the arguments goes, for `jax.device_put`."""
        return [NamedSharding(self.mesh, spec_in_jax(spec)) for spec in self._placed(self._like).specs]

    @property
    def _like(self) -> Given:
        if self.example is None:
            raise SpaceError(f"nothing is placed yet: give examples to rz.compile of {self.name}")
        return self.example

    def load(self, *sources: Any) -> tuple[Any, ...]:
        """The arguments, on the devices, each process its parts; see `PlacedFunction.load`."""
        return loaded(self._like, sources, self.shardings, names_in(self.function, self._like))


def _processes(mesh: Any) -> str:
    """How many processes the devices of a mesh are in, if several."""
    devices = getattr(mesh, "devices", None)
    found = [] if devices is None else [d.process_index for d in devices.flat]
    count = len(set(found))
    return f", {len(found) // count} in each of {count} processes" if count > 1 else ""
