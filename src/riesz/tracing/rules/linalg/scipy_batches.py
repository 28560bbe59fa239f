"""Functions of scipy.linalg on stacks of matrices: as in SciPy leading axes are broadcast, and several results come as
a list."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from ....runtime import later
from ...traced import tidy


def over_batch(*ranks: int | str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of single arrays at every index of the leading axes. Its first arguments have so many axes each;
    "1|2": a vector or a matrix; None: no array."""

    def decorate(own: Callable[..., Any]) -> Callable[..., Any]:
        names = list(signature(own).parameters)[: len(ranks)]

        @wraps(own)
        def code(*args: Any, **named: Any) -> Any:
            given = [*args, *[named.pop(name) for name in names[len(args) :] if name in named]]
            arrays: list[Any] = [x if x is None or r is None else tidy(x) for x, r in zip(given, ranks, strict=False)]
            rest = given[len(ranks) :]
            places = [i for i, x in enumerate(arrays) if x is not None and ranks[i] is not None]
            cuts = [_leading(np.ndim(arrays[i]), ranks[i]) for i in places]
            lead = np.broadcast_shapes(*[np.shape(arrays[i])[:cut] for i, cut in zip(places, cuts, strict=True)])
            if not lead:
                return own(*arrays, *rest, **named)
            flat: list[Any] = []
            for i, cut in zip(places, cuts, strict=True):
                core = np.shape(arrays[i])[cut:]
                flat.append(np.reshape(np.broadcast_to(arrays[i], (*lead, *core)), (math.prod(lead), *core)))

            def single(*xs: Any) -> Any:
                at = dict(zip(places, xs, strict=True))
                return own(*[at.get(i, x) for i, x in enumerate(arrays)], *rest, **named)

            found = later.vmap(single)(*flat)
            several = isinstance(found, tuple)
            parts = [np.reshape(y, (*lead, *np.shape(y)[1:])) for y in (found if several else (found,))]
            return parts if several else parts[0]

        return code

    return decorate


def _leading(ndim: int, rank: Any) -> int:
    """How many of an array's axes lead."""
    return max(0, ndim - (min(max(ndim, 1), 2) if rank == "1|2" else rank))
