"""What a row of the scoreboard is made of, and how it is measured: same inputs, results compared, turns taken, medians."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Contestants = dict[str, Callable[[], Any]]
clock = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
"""On one core the time the process had it, whatever else the machine does; otherwise the clock on the wall."""


@dataclass(frozen=True)
class Row:
    """A workload. `contestants(**size)` makes a callable for each; those whose names begin with riesz are ours, and each has a line in the table.

    `aims`: for each of ours, how many times faster than the rival it is meant to be; for measure "seconds", the time it may take.
    `measure`: "time" of a call once it has run; "first", time of the first call in a process of its own; "seconds", the same without a rival;
    "memory", the peak of the first call in a process of its own. For these, a call at the small size `warm` loads all libraries before it counts.
    `compared` takes what is to be equal out of a result. `limits`: what stands in the way where the aim is not met.
    """

    title: str
    contestants: Callable[..., Contestants]
    aims: Mapping[str, float]
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    measure: str = "time"
    rival: str = "JAX"
    tolerance: float = 1e-7
    compared: Callable[[str, Any], Any] = field(default=lambda name, result: result)
    aim_text: str = ""
    warm: Mapping[str, Any] = field(default_factory=dict)
    limits: str = ""


def installed(*names: str) -> bool:
    """Whether all of these can be imported, and are not to be left out."""
    left_out = os.environ.get("BENCH_WITHOUT", "").split()
    return all([name not in left_out and importlib.util.find_spec(name) is not None for name in names])


def jax() -> Any:
    """JAX in double precision, or None."""
    if not installed("jax"):
        return None
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def torch() -> Any:
    """PyTorch, or None."""
    if not installed("torch"):
        return None
    import torch

    return torch


def in_jax(f: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """A call of a jitted function on arrays that are there already, waited for."""
    import jax

    there = jax.tree.map(jax.numpy.asarray, args)
    jitted = jax.jit(f)
    return lambda: jax.block_until_ready(jitted(*there))


def leaves(x: Any) -> list[np.ndarray]:
    """The arrays of a result, in order; keys of dicts sorted."""
    if isinstance(x, dict):
        return [a for key in sorted(x) for a in leaves(x[key])]
    if isinstance(x, (tuple, list)):
        return [a for part in x for a in leaves(part)]
    if hasattr(x, "to_dense"):
        x = x.to_dense()
    if hasattr(x, "detach"):
        x = x.detach().numpy()
    return [np.asarray(x)]


def difference(found: Any, wanted: Any) -> float:
    """The largest difference of two results, relative to the size of each array."""
    a, b = leaves(found), leaves(wanted)
    assert [x.size for x in a] == [x.size for x in b], (
        f"arrays of shapes {[x.shape for x in a]} and {[x.shape for x in b]}"
    )
    gaps = [
        np.abs(x.reshape(-1) - y.reshape(-1)).max(initial=0.0) / (np.abs(y).max(initial=0.0) + 1e-300)
        for x, y in zip(a, b, strict=True)
    ]
    return float(max(gaps, default=0.0))


def take_turns(contestants: Contestants, budget: float, rounds: int = 11) -> dict[str, float]:
    """Median seconds of a call of each; in every round each has its turn, of many calls where one is short. `budget`: seconds for each."""
    once: dict[str, float] = {}
    for name, work in contestants.items():
        start = clock()
        work()
        once[name] = clock() - start
        if once[name] < 0.05:
            start = clock()
            calls = 0
            while clock() - start < 0.01:
                work()
                calls += 1
            once[name] = (clock() - start) / calls
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds):
        for name, work in contestants.items():
            if turn >= 3 and sum(times[name]) > budget:
                continue
            calls = max(1, min(int(budget / rounds / once[name]), 100_000))
            gc.collect()
            time.sleep(0.01)  # threads of the one before stop spinning
            work()  # and its caches are its own again
            start = clock()
            for _ in range(calls):
                work()
            times[name].append((clock() - start) / calls)
    return {name: statistics.median(found) for name, found in times.items()}


def peaks(contestants: Contestants) -> dict[str, float]:
    """How many bytes more than between calls the process has at the peak of a call of each; Linux."""
    free = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
    found = dict[str, float]()
    for name, work in contestants.items():
        work()
        gc.collect()
        free(0)  # what was freed is given back, so that the next call has to take it again
        found[name] = max(peak_during(work)[0], 0.0)
    return found


def peak_during(work: Callable[[], Any]) -> tuple[float, Any]:
    """How many bytes more the process had at its peak than before; Linux."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    before = _status("VmRSS")
    result = work()
    return _status("VmHWM") - before, result


def _status(key: str) -> int:
    with open("/proc/self/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith(f"{key}:"))
