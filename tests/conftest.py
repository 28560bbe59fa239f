"""How hard the generated tests try: as much as `make test` has time for, or HYPOTHESIS_PROFILE=thorough, with new random examples each time.

Every LaTeX string that riesz writes in a test, wherever that is, is read by KaTeX.
"""

from __future__ import annotations

import os
from functools import wraps

import katex
from hypothesis import HealthCheck, settings

import riesz.show.latex
import riesz.show.networks
import riesz.show.programs

patient = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True, suppress_health_check=patient)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def _read_by_katex(write):
    @wraps(write)
    def written(thing):
        text = write(thing)
        katex.parse(text)
        return text

    return written


for _module, _names in (
    (riesz.show.latex, ("latex_space", "latex_term")),
    (riesz.show.networks, ("latex_network",)),
    (riesz.show.programs, ("latex_map", "latex_family", "latex_derivation")),
):
    for _name in _names:
        setattr(_module, _name, _read_by_katex(getattr(_module, _name)))
