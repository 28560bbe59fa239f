"""The rows of the scoreboard at small sizes: riesz computes what is written by hand, and the table says what was measured."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from riesz.relations.cpu.pair_sums import numba_installed

BENCH = Path(__file__).parents[1] / "bench"
SMALL = {
    "bundle_adjustment": {"observations": 40},
    "chain": {"n": 6},
    "elementwise": {"n": 10_000},
    "gmm": {"n": 150, "d": 3, "k": 4},
    "griewank": {"n": 7},
    "kmeans": {"n": 30, "d": 8, "k": 3, "each": 4},
    "layers": {"layers": 5},
    "logistic": {"n": 6},
    "low_rank": {"n": 20, "rank": 3},
    "lstm": {"time": 4, "batch": 3, "size": 2},
    "matfact": {"n": 8, "k": 2},
    "mlp": {"width": 4, "batch": 3, "layers": 3},
    "physics": "quick",
    "posteriors": "quick",
    "per_example": {"layers": 3, "width": 4, "batch": 5},
    "relations": {"pairs": 100, "width": 3},
    "small_loops": "quick",
    "small_matrices": "quick",
    "sparse": None,
    "structured_solve": {"n": 50},
    "tiny": {},
    "writes": {"n": 50},
}


@pytest.fixture
def bench(monkeypatch):
    """Imports from bench/, without the peers."""
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setenv("BENCH_WITHOUT", "jax torch autograd casadi asdex sparsejac")
    numba_installed()  # remembered: one row takes Numba away
    numba = sys.modules.get("numba")
    yield importlib.import_module
    sys.modules.pop("numba", None)
    if numba is not None:
        sys.modules["numba"] = numba
    for name in [m for m in sys.modules if m in ("contest", "scoreboard", "rows") or m.startswith("rows.")]:
        del sys.modules[name]


def test_every_file_of_rows_is_tried():
    assert {p.stem for p in (BENCH / "rows").glob("*.py")} - {"__init__"} == set(SMALL)


@pytest.mark.parametrize("module", SMALL)
def test_riesz_agrees_with_hand(bench, module):
    contest = bench("contest")
    for row in bench(f"rows.{module}").ROWS:
        known = {"quick": row.quick, None: dict.fromkeys(row.quick, 50)}
        size = SMALL[module] if isinstance(SMALL[module], dict) else known[SMALL[module]]
        results = {name: row.compared(name, work()) for name, work in row.contestants(**size).items()}
        assert set(row.aims) <= set(results)
        assert row.title.format(**row.full) and row.title.format(**row.quick)
        first = next(iter(results.values()))
        for name, found in results.items():
            assert contest.difference(found, results.get("hand", first)) <= row.tolerance, f"{row.title}: {name}"


def test_a_wrong_result_is_seen(bench):
    difference = bench("contest").difference
    assert difference((np.ones(3), 2.0), (np.ones(3), 2.0)) == 0.0
    assert difference((np.ones(3), 2.0), (np.ones(3), 2.2)) > 0.05
    with pytest.raises(AssertionError):
        difference(np.ones(3), np.ones(4))


def test_the_table(bench):
    board, contest = bench("scoreboard"), bench("contest")
    row = contest.Row("work, n = {n}", dict, {"riesz": 3.0, "riesz, other": 2.0}, {"n": 5}, {"n": 1})
    found = board.lines(row, {"n": 5}, {"riesz": 1e-3, "riesz, other": 4e-3, "JAX": 4e-3, "hand": 2e-3, "torch": 1.5})
    assert [line["met"] for line in found] == [True, False]
    text = board.table(found).splitlines()
    assert text[2] == "| work, n = 5 | 1 ms | 4 ms | 2 ms | torch 1.5 s | 4.00 | 2.00 | ≥ 3 | yes | – |  |"
    assert text[3] == "| work, n = 5, other | 4 ms | 4 ms | 2 ms | torch 1.5 s | 1.00 | 0.50 | ≥ 2 | **no** | – |  |"
    (failed, _) = board.lines(row, {"n": 5}, {"failed": "MemoryError"})
    assert "failed: MemoryError" in board.table([failed])
    assert board.amount(3 * 2**20, "memory") == "3 MiB" and board.amount(2.5e-6, "time") == "2.5 µs"


def test_turns_are_taken(bench):
    calls = []
    work = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    times = bench("contest").take_turns(work, 1e-4, rounds=3)
    assert set(times) == {"a", "b"} and all([t > 0 for t in times.values()])
    assert "".join(calls).count("ab") >= 4


PEAK = """
import subprocess
import sys
sys.path.insert(0, sys.argv[1])
import contest, numpy as np
peak, result = contest.peak_during(lambda: np.ones(1 << 22).sum())
print(peak, result)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux")
def test_peaks_are_measured():
    """In a process of its own, as on the scoreboard: one that has freed memory before would take that again."""
    run = subprocess.run([sys.executable, "-c", PEAK, str(BENCH)], capture_output=True, text=True, check=True)
    peak, result = run.stdout.split()
    assert float(result) == 1 << 22 and 30e6 < float(peak) < 60e6
