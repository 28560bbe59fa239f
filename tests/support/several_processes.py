"""Processes that compute together on this machine, for tests: started with the variables that a user or Slurm sets,
and killed at the end whatever happens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

SUPPORT = Path(__file__).parent
PORTS_OF_SLURM = 65536 - 4096


class Ended(NamedTuple):
    """How a process ended; None: it was killed by the test."""

    code: int | None
    said: str


def _free(port: int) -> bool:
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port(slurm: bool) -> int:
    if slurm:
        return next(p for p in range(PORTS_OF_SLURM + os.getpid() % 4000, 65536) if _free(p))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(script: Path, args: list[str], count: int, devices: int, folder: Path, slurm: bool = False) -> list[Ended]:
    """Run a script in so many processes with so many devices each; an hour at most, where others work on the machine."""
    port = _free_port(slurm)
    known = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "JAX_COORD", "JAX_NUM", "JAX_PROC"))}
    known |= {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    processes, files = [], []
    try:
        for rank in range(count):
            if slurm:
                own = {"SLURM_JOB_ID": str(port - PORTS_OF_SLURM), "SLURM_STEP_NODELIST": "127.0.0.1"}
                own |= {"SLURM_NTASKS": str(count), "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}
            else:
                own = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}"}
                own |= {"JAX_NUM_PROCESSES": str(count), "JAX_PROCESS_ID": str(rank)}
            files.append(open(folder / f"said-{rank}.txt", "w+"))  # noqa: SIM115
            command = [sys.executable, str(script), *args]
            processes.append(
                subprocess.Popen(command, stdout=files[-1], stderr=subprocess.STDOUT, env={**known, **own})
            )
        end = time.monotonic() + 3600
        while time.monotonic() < end and any([p.poll() is None for p in processes]):
            time.sleep(0.2)
        codes = [p.poll() for p in processes]
    finally:
        for p in processes:
            p.kill()
            p.wait()
    found = []
    for code, file in zip(codes, files, strict=True):
        file.seek(0)
        found.append(Ended(code, file.read()))
        file.close()
    return found
