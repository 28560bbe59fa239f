"""How hard the generated tests try: as much as `make check` or `make test` has time for (RIESZ_TESTS, see support/sampling.py), or
HYPOTHESIS_PROFILE=thorough, with new random examples each time.

Every LaTeX string that riesz writes in a test, wherever that is, is read by KaTeX, and the same thing in MathML by an XML reader.
"""

from __future__ import annotations

import os
from functools import wraps

import browser
import katex
import mathml
from hypothesis import HealthCheck, settings
from sampling import LEVEL

from riesz.runtime import later

collect_ignore = ["conftest.py", "browser/conftest.py"]
collect_ignore_glob = ["support/*_devices.py", "support/in_several_processes.py", "support/failing_process.py"]
"""Files that are not looked through for examples: those of one name, and those that are run in a process of their own."""

patient = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("core", max_examples=10, deadline=None, derandomize=True, suppress_health_check=patient)
settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True, suppress_health_check=patient)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "core" if LEVEL == "core" else "quick"))


def pytest_report_header() -> list[str]:
    """What is left out is said."""
    tables = "large tables: every case" if LEVEL == "all" else "large tables: sampled; RIESZ_TESTS=all runs every case"
    return [tables, *([f"browser tests: left out, {why}"] if (why := browser.left_out()) else [])]


def _read_by_katex(write):
    @wraps(write)
    def written(thing):
        text = write(thing)
        katex.parse(text)
        mathml.parse(later.mathml(thing, ids=len(text) % 2 == 0))
        return text

    return written


later.latex = _read_by_katex(later.latex)
