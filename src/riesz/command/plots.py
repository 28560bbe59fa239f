"""Functions of one or two numbers on a grid around a point: values, and arrows of the gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..functions.control import vmap
from ..functions.gradients import grad
from .subjects import Subject

LINE, GRID, ARROWS = 161, 49, 13


def plot(s: Subject) -> dict[str, Any] | None:
    """A curve or a map of heights; None for other functions."""
    if not s.real or s.combinator or s.size not in (1, 2) or any([len(shape) > 1 for shape in s.shapes]):
        return None
    centre = np.concatenate([np.ravel(x) for x in s.point])
    reach = np.maximum(2.0, 1.5 * np.abs(centre))
    ends = [(float(c - r), float(c + r)) for c, r in zip(centre, reach, strict=True)]
    f, slope = vmap(s.function), vmap(grad(s.function, tuple(range(len(s.point)))))
    if s.size == 1:
        xs = np.linspace(*ends[0], LINE)
        return {
            "kind": "line",
            "ends": ends,
            "values": _finite(f(*_arguments(s, [xs]))),
            "slopes": _finite(_columns(slope(*_arguments(s, [xs])))[0]),
        }
    across, up = np.meshgrid(*[np.linspace(*e, GRID) for e in ends])
    few = [m.ravel() for m in np.meshgrid(*[np.linspace(*e, ARROWS + 2)[1:-1] for e in ends])]
    return {
        "kind": "field",
        "ends": ends,
        "names": s.names if len(s.names) == 2 else [f"{s.names[0]}[{i}]" for i in range(2)],
        "side": GRID,
        "values": _finite(f(*_arguments(s, [across.ravel(), up.ravel()]))),
        "at": [_finite(x) for x in few],
        "arrows": [_finite(x) for x in _columns(slope(*_arguments(s, few)))],
    }


def _arguments(s: Subject, columns: list[Any]) -> list[Any]:
    """Points as arguments for all of them at once: numbers, or one vector of two."""
    found, at = list[Any](), 0
    for shape in s.shapes:
        n = math.prod(shape)
        found.append(np.stack(columns[at : at + n], axis=1) if shape else columns[at])
        at += n
    return found


def _columns(gradient: Any) -> list[Any]:
    parts = gradient if isinstance(gradient, tuple) else (gradient,)
    found: list[Any] = []
    for part in parts:
        a: Any = np.asarray(part, float)
        found += [a] if a.ndim == 1 else list(a.reshape(len(a), -1).T)
    return found


def _finite(values: Any) -> list[float | None]:
    """Four digits are enough for a picture; None where there is no number."""
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in np.asarray(values, float).ravel().tolist()]
