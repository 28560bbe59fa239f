"""What is said of the parts of a tree: by a tree with the same containers, whose leaves may stand for whole parts."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..errors import VectorError
from ..tracing.argument_trees import flatten, unflatten


def spread(given: Any, tree: Any, count: int, what: str) -> list[Any]:
    """For each of the leaves of a tree what is said of it: a container of the same kind with something for each part,
    missing keys and None being None; anything else is said of all leaves below."""
    found: list[Any] = [None] * count
    waiting: list[tuple[Any, Any]] = [(given, unflatten(tree, list(range(count))))]
    while waiting:
        said, part = waiting.pop()
        said = getattr(said, "parts", said)  # of a product of manifolds
        if said is None or part is None:
            continue
        if isinstance(part, int):
            found[part] = said
        elif isinstance(said, Mapping) and isinstance(part, Mapping):
            parts = cast("Mapping[Any, Any]", part)
            if unknown := [k for k in cast("Mapping[Any, Any]", said) if k not in parts]:
                raise VectorError(f"{what} names {unknown[0]!r}; the unknowns are {', '.join(map(repr, parts))}")
            waiting += [(x, parts[k]) for k, x in cast("Mapping[Any, Any]", said).items()]
        elif isinstance(said, Mapping) and hasattr(part, next(iter(cast("Mapping[Any, Any]", said)), "")):
            waiting += [(x, getattr(part, k)) for k, x in cast("Mapping[Any, Any]", said).items()]
        elif isinstance(said, (tuple, list)) and isinstance(part, (tuple, list)):
            several, parts = cast("list[Any]", said), cast("list[Any]", part)
            if len(several) != len(parts):
                raise VectorError(f"{what} has {len(several)} parts, the unknowns have {len(parts)}")
            waiting += list(zip(several, parts, strict=True))
        elif np.ndim(cast(Any, said)) == 0:
            for k in flatten(part)[0]:
                found[k] = said
        else:
            raise VectorError(f"{what}: a tree like the unknowns is due, or one number for all; got {said!r}")
    return found
