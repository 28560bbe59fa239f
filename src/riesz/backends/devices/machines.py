"""Machines on paper: how fast devices compute, how much they hold, and how fast they talk to each other.

Times of collectives are those of the usual algorithms (Thakur, Rabenseifner, Gropp: Optimization of collective
communication operations in MPICH, 2005), first among devices that are close together, then between such groups.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...errors import SpaceError


class Link(NamedTuple):
    """From a device to others: bytes a second in one direction, and seconds until the first one is there."""

    bandwidth: float
    latency: float


class Machine(NamedTuple):
    """Devices of one kind. `together` of them are joined by `near`, such groups by `far`."""

    name: str
    products: float  # operations a second in products of matrices
    numbers: float  # results a second of other operations
    bandwidth: float  # bytes a second, to and from the memory of a device
    memory: float  # bytes a device holds
    near: Link
    far: Link
    together: int
    sector: int = 32  # bytes that are read at the least where rows lie anywhere
    start: float = 0.0  # seconds before each kernel
    message: float = 0.0  # seconds before each collective

    def scaled(self, share: float) -> Machine:
        """The machine where programs reach this share of what it is sold with."""
        rates = {k: share * getattr(self, k) for k in ("products", "numbers", "bandwidth")}
        links = {k: getattr(self, k)._replace(bandwidth=share * getattr(self, k).bandwidth) for k in ("near", "far")}
        return self._replace(**rates, **links)

    def collective(self, kind: str, size: int, count: int, inside: int, messages: int | None = None) -> float:
        """Seconds of a communication among `count` devices, `inside` of them close to each other; `size`: the bytes
        that come to each, as in XLA's code (for a reduce-scatter what is kept)."""
        if count < 2:
            return 0.0
        inside, outside = min(inside, count), -(-count // min(inside, count))
        hops = math.ceil(math.log2(inside)) * self.near.latency + math.ceil(math.log2(outside)) * self.far.latency
        whole = size * count if kind == "reduce-scatter" else size
        # what leaves a device: all but its own part inside its group, then a part of that between groups
        leaves = whole * (inside - 1) / inside / self.near.bandwidth
        leaves += whole / inside * (outside - 1) / outside / self.far.bandwidth
        match kind:
            case "all-reduce":
                seconds = 2 * (hops + leaves)
            case "all-gather" | "reduce-scatter":
                seconds = hops + leaves
            case "all-to-all" | "exchange":
                seconds = self._each_to_each(size, count, inside, outside, messages)
            case _:
                raise SpaceError(f"no communication is called {kind!r}")
        return self.message + seconds

    def _each_to_each(self, size: int, count: int, inside: int, outside: int, messages: int | None) -> float:
        """Every device has something for others: a message for each, or, in fewer and longer ones, passed on."""
        link = self.near if outside == 1 else self.far
        if messages is not None and messages < count - 1:  # neighbours: at the border of a group they are far
            return messages * link.latency + size / link.bandwidth
        near = size * (inside - 1) / count / self.near.bandwidth
        far = size * (count - inside) / count / self.far.bandwidth
        direct = (inside - 1) * self.near.latency + (count - inside) * self.far.latency + near + far
        rounds = math.ceil(math.log2(count))
        return min(direct, rounds * (link.latency + size / 2 / link.bandwidth))


GB, TB, MICROSECOND = 1e9, 1e12, 1e-6

MACHINES = {
    m.name: m
    for m in (
        # nvidia.com/h100: TF32 products without sparsity, 32 bits elsewhere, 80 GB at 3.35 TB/s, NVLink 900 GB/s both
        # ways together. DGX H100: 8 of them, a network card of 400 Gb/s each. Assumed: latencies and
        # starts, and that all clusters have these cards.
        Machine(
            "H100",
            products=494e12,
            numbers=67e12,
            bandwidth=3.35 * TB,
            memory=80 * GB,
            near=Link(450 * GB, 0.5 * MICROSECOND),
            far=Link(50 * GB, 5.0 * MICROSECOND),
            together=8,
            start=3 * MICROSECOND,
            message=4.4 * MICROSECOND,
        ),
        # The same with 141 GB at 4.8 TB/s: nvidia.com/h200.
        Machine(
            "H200",
            products=494e12,
            numbers=67e12,
            bandwidth=4.8 * TB,
            memory=141 * GB,
            near=Link(450 * GB, 0.5 * MICROSECOND),
            far=Link(50 * GB, 5.0 * MICROSECOND),
            together=8,
            start=3 * MICROSECOND,
            message=4.4 * MICROSECOND,
        ),
        # cloud.google.com/tpu/docs/v5p: products in bfloat16, 95 GiB at 2765 GB/s, links 1200 GB/s both ways together,
        # in a torus that holds them all. Other operations: 2 × 8 × 128 lanes of 4 units at 1.75 GHz:
        # jax-ml.github.io/scaling-book. Assumed: a hop and the starts take a microsecond.
        Machine(
            "TPU v5p",
            products=459e12,
            numbers=14e12,
            bandwidth=2.765 * TB,
            memory=95 * 2**30,
            near=Link(600 * GB, 1.0 * MICROSECOND),
            far=Link(600 * GB, 1.0 * MICROSECOND),
            together=8960,
            sector=512,
            start=1 * MICROSECOND,
            message=1 * MICROSECOND,
        ),
    )
}
"""Published rates, which programs reach a share of; latencies and starts are assumptions."""


def as_machine(given: Machine | str) -> Machine:
    """A machine, or a known one by its name."""
    if isinstance(given, Machine):
        return given
    if given in MACHINES:
        return MACHINES[given]
    known = ", ".join(map(repr, MACHINES))
    how = "riesz.backends.devices.machines.Machine describes another one"
    raise SpaceError(f"machine is one of {known}, or a Machine; got {given!r}: {how}")
