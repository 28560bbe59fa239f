"""What every benchmark here does: medians of runs, one line per result."""

from __future__ import annotations

import gc
import statistics
import time


def timed(work, repeat=7, collect=True):
    """Median seconds, and the last result."""
    times, result = [], None
    for _ in range(repeat):
        if collect:
            gc.collect()
        result = None
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def row(name, seconds, note=""):
    """One line of the table."""
    shown = f"{1e3 * seconds:>10.2f} ms" if seconds > 1e-3 else f"{1e6 * seconds:>10.2f} µs"
    print(f"{name:<64} {shown}  {note}", flush=True)
