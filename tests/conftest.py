"""How hard the generated tests try: as much as `make test` has time for, or HYPOTHESIS_PROFILE=thorough, with new random examples each time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

patient = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True, suppress_health_check=patient)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
