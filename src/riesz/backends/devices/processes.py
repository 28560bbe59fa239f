"""Several processes that compute together, by `jax.distributed`: how they find each other, and how they end."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import Any, NamedTuple

from ...errors import SpaceError

VARIABLES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


class Processes(NamedTuple):
    """Which process this is, and of how many."""

    rank: int
    count: int


def distributed(
    address: str | None = None,
    count: int | None = None,
    rank: int | None = None,
    *,
    wait: float = 300.0,
    silence: float = 100.0,
) -> Processes:
    """Make this process one of several that compute together; before JAX is used. All of them run the same script.

    `address` is host:port of the first process, `count` how many there are, `rank` which one this is. Without them the
    variables JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID say it, or Slurm, Open MPI, Kubernetes or a
    Cloud TPU; where nothing does, the process is alone.

    `wait`: seconds until all must be there; `silence`: seconds after which a process that says nothing counts as dead,
    and the others end. A process that ends by an exception says so and does not wait for the others.

    >>> import riesz as rz
    >>> rz.distributed()  # doctest: +SKIP
    Processes(rank=0, count=4)
    """
    import jax

    if jax.distributed.is_initialized():
        raise SpaceError("the processes are together already: rz.distributed() is called once, in the first lines")
    said = [os.environ.get(name) for name in VARIABLES]
    if address is None and all(said):
        address, count, rank = str(said[0]), int(str(said[1])), int(str(said[2]))
    elif address is None and (missing := [n for n, x in zip(VARIABLES, said, strict=True) if not x]) and any(said[1:]):
        there = ", ".join([n for n in VARIABLES if n not in missing])
        raise SpaceError(f"{', '.join(VARIABLES)} belong together; there is {there} only")
    given = [name for name, x in (("address", address), ("count", count), ("rank", rank)) if x is not None]
    if 0 < len(given) < 3:
        due = "address, count and rank belong together, as in rz.distributed('host:1234', 4, rank)"
        raise SpaceError(f"{due}; got {' and '.join(given)} only")
    if given and (int(count or 0) < 1 or not 0 <= int(rank or 0) < int(count or 0)):
        raise SpaceError(f"rank is one of 0 to count − 1; got rank={rank}, count={count}")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    limits: Any = {"initialization_timeout": int(wait) + 60, "heartbeat_timeout_seconds": max(1, int(silence))}
    whose = f"process {rank} of {count} at {address}" if given else "this process"
    late = threading.Timer(wait, _ended, [f"{whose} ends: the others were not there after {wait:g} seconds."])
    late.daemon = True
    late.start()  # JAX would say that another process died
    try:
        jax.distributed.initialize(address, count, rank, **limits)
    except ValueError as problem:
        if given or "coordinator_address should be defined" not in str(problem):
            raise
        return Processes(0, 1)
    except RuntimeError as problem:
        if "must be called before" in str(problem):
            raise SpaceError(f"rz.distributed() comes before anything that uses JAX: {problem}") from None
        raise
    finally:
        late.cancel()
    found = Processes(jax.process_index(), jax.process_count())
    _end_together(found, silence)
    return found


def _end_together(mine: Processes, silence: float) -> None:
    """Exceptions end the process at once: with JAX's own end it would wait for the others, and they for it."""
    before = sys.excepthook

    def ended(kind: Any, problem: Any, trace: Any) -> None:
        before(kind, problem, trace)
        what = traceback.format_exception_only(kind, problem)[-1].strip().partition("\n")[0][:300].rstrip(".")
        lost = ("Gloo", "closed by peer", "Connection", "NCCL", "heartbeat", "UNAVAILABLE")
        other = "; another process ended first, its output says why" if any([t in str(problem) for t in lost]) else ""
        others = f"The others end too, within {silence:g} seconds" if mine.count > 1 else "It was alone"
        _ended(f"process {mine.rank} of {mine.count} ends: {what}{other}. {others}.")

    sys.excepthook = ended


def _ended(why: str) -> None:
    """The end of this process, with a sentence."""
    print(f"riesz: {why}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
