"""Functions of scipy.linalg on stacks of matrices: as in SciPy leading axes are broadcast, and several results come as
a list."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from ....runtime import later
from ...traced import tidy


def over_batch(*ranks: int | str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of single arrays at every index of the leading axes. Its first arguments have so many axes each;
    "1|2": a vector or a matrix."""

    def decorate(own: Callable[..., Any]) -> Callable[..., Any]:
        names = list(signature(own).parameters)[: len(ranks)]

        @wraps(own)
        def code(*args: Any, **named: Any) -> Any:
            given = [*args, *[named.pop(name) for name in names[len(args) :] if name in named]]
            arrays: list[Any] = [None if x is None else tidy(x) for x in given[: len(ranks)]]
            rest = given[len(ranks) :]
            cores = [
                min(max(np.ndim(x), 1), 2) if rank == "1|2" else int(rank)
                for x, rank in zip(arrays, ranks, strict=False)
            ]
            leads = [
                () if x is None else np.shape(x)[: max(0, np.ndim(x) - core)]
                for x, core in zip(arrays, cores, strict=True)
            ]
            lead = np.broadcast_shapes(*leads)
            if not lead:
                return own(*arrays, *rest, **named)
            places = [i for i, x in enumerate(arrays) if x is not None]
            shapes = [np.shape(arrays[i])[-cores[i] :] for i in places]
            flat = [
                np.reshape(np.broadcast_to(arrays[i], (*lead, *s)), (_length(lead), *s))
                for i, s in zip(places, shapes, strict=True)
            ]

            def single(*xs: Any) -> Any:
                at = dict(zip(places, xs, strict=True))
                return own(*[at.get(i) for i in range(len(arrays))], *rest, **named)

            found = later.vmap(single)(*flat)
            parts = [
                np.reshape(y, (*lead, *np.shape(y)[1:])) for y in (found if isinstance(found, tuple) else (found,))
            ]
            return parts if isinstance(found, tuple) else parts[0]

        return code

    return decorate


def _length(lead: tuple[int, ...]) -> int:
    return int(np.prod(lead))
