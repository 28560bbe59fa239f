"""What `make check` and `make test` leave out: chosen by name, said aloud, never a whole room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sampling
from sampling import examples, sampled
from test_layout import ROOMS, SRC

TESTS = Path(__file__).parent
CORE = (TESTS / "core.txt").read_text().split()
CASES = [f"case {i}" for i in range(2000)]


@pytest.mark.parametrize(("level", "few"), [("core", (10, 60)), ("some", (250, 420)), ("all", (2000, 2000))])
def test_a_sample_is_a_share(monkeypatch, level, few):
    monkeypatch.setattr(sampling, "LEVEL", level)
    found = sampled(CASES, 6)
    assert few[0] <= len(found) <= few[1]
    assert found == [c for c in CASES if c in set(found)]
    assert set(sampled(CASES[::2], 6)) == set(CASES[::2]) & set(found)  # whatever else there is


def test_levels_contain_each_other(monkeypatch):
    sets = []
    for level in sampling.LEVELS:
        monkeypatch.setattr(sampling, "LEVEL", level)
        sets.append(set(sampled(CASES, 6)))
    assert sets[0] < sets[1] < sets[2] == set(CASES)


def test_there_is_always_an_example():
    assert examples(0.0001).max_examples == 1


def test_other_levels_are_refused():
    run = subprocess.run(
        [sys.executable, "-c", "import sampling"],
        env={**os.environ, "RIESZ_TESTS": "most", "PYTHONPATH": str(TESTS / "support")},
        capture_output=True,
        text=True,
    )
    assert "RIESZ_TESTS='most': expected one of core, some, all" in run.stderr


def test_the_core_is_there_and_touches_every_room():
    assert sorted(CORE) == CORE and len(set(CORE)) == len(CORE)
    assert all([(TESTS.parent / path).exists() for path in CORE])
    rooms = {room for room in ROOMS if (SRC / room).is_dir()} - {"testing"}  # what it is for: the other tests use it
    assert {path.split("/")[1] for path in CORE if path.count("/") == 2} >= rooms


def test_tests_are_laid_out_like_the_source():
    folders = {f.name for f in TESTS.iterdir() if f.is_dir() and not f.name.startswith(("_", "."))}
    assert folders <= {*ROOMS, "support", "data", "paper", "fuzz_cases", "browser"}
    names = [f.name for f in TESTS.rglob("*.py") if f.name != "conftest.py"]
    assert len(set(names)) == len(names), "names of test files are used once"
