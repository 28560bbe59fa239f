"""The unknowns of a fit: a tree of arrays, each flat or on a manifold, with bounds, fixed parts and scales."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..errors import VectorError
from ..manifolds.prefix_trees import spread
from ..tracing.argument_trees import flatten, unflatten


def names_of(x: Any) -> list[str]:
    """Names of the leaves of a tree, as one would write them after x: "['a']", "[0].b", or ""."""
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", x)]
    while waiting:
        name, part = waiting.pop()
        leaves, _ = flatten(part)
        if part is None or not leaves:
            continue
        if leaves == [part] if leaves[0] is part else False:
            found.append(name)
        elif isinstance(part, Mapping):
            waiting += [(f"{name}[{k!r}]", v) for k, v in reversed(list(cast("Mapping[Any, Any]", part).items()))]
        elif hasattr(part, "_fields"):
            waiting += [(f"{name}.{k}", getattr(part, k)) for k in reversed(part._fields)]
        elif isinstance(part, (tuple, list)):
            waiting += [(f"{name}[{k}]", v) for k, v in reversed(list(enumerate(cast("list[Any]", part))))]
        else:  # a dataclass, or another container
            inner = [k for k, v in vars(part).items() if v is not None] if hasattr(part, "__dict__") else []
            waiting += [(f"{name}.{k}", getattr(part, k)) for k in reversed(inner)]
    return found


class Unknowns:
    """What a fit varies. `n` coordinates, those of the tangent space; `free` are those that move, or None for all."""

    def __init__(self, x0: Any, manifold: Any, fixed: Any, bounds: Any, x_scale: Any) -> None:
        leaves, self.tree = flatten(x0)
        kinds = [np.asarray(x).dtype.kind for x in leaves]
        self.moving = [kind == "f" for kind in kinds]
        count = len(leaves)
        self.manifolds: list[Any] = spread(manifold, self.tree, count, "manifold")
        for M, leaf in [pair for pair in zip(self.manifolds, leaves, strict=True) if pair[0] is not None]:
            if not all([hasattr(M, name) for name in ("tangent", "retract")]):
                raise VectorError(f"manifold: {M!r} has no methods tangent(x) and retract(x, v)")
            if hasattr(M, "contains") and not M.contains(leaf):
                raise VectorError(f"x0 is not on {M!r}: {np.asarray(leaf).reshape(-1)[:12]!r}")
        self.curved = any([M is not None for M in self.manifolds])
        self.sizes = [int(np.size(t)) for t in self._zeros(leaves)]
        self.ends = np.cumsum([0, *self.sizes])
        self.n = int(self.ends[-1])
        self.free = self._free(spread(fixed, self.tree, count, "fixed"), leaves)
        self.lower, self.upper = self._bounds(bounds, leaves)
        scaled = x_scale is not None and not isinstance(x_scale, str)
        self.scale: Any = self._flat(spread(x_scale, self.tree, count, "x_scale"), leaves, 1.0) if scaled else None
        if scaled and not (self.scale > 0).all():
            raise VectorError("x_scale: positive numbers are due, the typical size of each unknown, or 'jac'")

    def shapes_of(self, x: Any) -> list[tuple[int, ...]]:
        """The shape of the tangent vectors of each leaf."""
        return [np.shape(zero) for zero in self._zeros(flatten(x)[0])]

    def _zeros(self, leaves: list[Any]) -> list[Any]:
        """The zero tangent vector of each leaf."""
        return [np.zeros_like(x) if M is None else M.tangent(x) for M, x in zip(self.manifolds, leaves, strict=True)]

    def tangent(self, x: Any) -> Any:
        """The zero tangent vector at x, a tree."""
        return unflatten(self.tree, self._zeros(flatten(x)[0]))

    def moved(self, x: Any, step: Any) -> Any:
        """The same for flat coordinates; every array keeps its type, and stays between its bounds."""
        found: list[Any] = []
        for M, a, i, j in zip(self.manifolds, flatten(x)[0], self.ends, self.ends[1:], strict=False):
            given = np.asarray(a)
            if M is not None:
                v = step[i:j].reshape(np.shape(M.tangent(given)))
                found.append(np.asarray(M.retract(given, v), given.dtype))
                continue
            to = (given.reshape(-1) + step[i:j]).reshape(given.shape)
            if self.lower is not None:
                to = np.clip(to, self.lower[i:j].reshape(given.shape), self.upper[i:j].reshape(given.shape))
            to = np.asarray(to, given.dtype)[()]
            found.append(float(to) if np.ndim(to) == 0 and to.dtype == float else to)
        return unflatten(self.tree, found)

    def coordinates(self, x: Any) -> Any:
        """The coordinates of flat parts; 1 for those on manifolds, whose steps are small beside that."""
        parts = [
            np.ravel(a).astype(float) if M is None else np.ones(size)
            for M, a, size in zip(self.manifolds, flatten(x)[0], self.sizes, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])

    def parts(self, flat: Any) -> Any:
        """Flat coordinates as a tree of tangent vectors."""
        return [flat[i:j] for i, j in zip(self.ends, self.ends[1:], strict=False)]

    def _flat(self, said: list[Any], leaves: list[Any], default: float) -> Any:
        zeros = self._zeros(leaves)
        parts: list[Any] = [np.zeros(0)]
        for s, zero in zip(said, zeros, strict=True):
            try:
                parts.append(
                    np.broadcast_to(default if s is None else np.asarray(s, float), np.shape(zero)).reshape(-1)
                )
            except ValueError:
                raise VectorError(f"an array of shape {np.shape(zero)} is due; got {np.shape(cast(Any, s))}") from None
        return np.concatenate(parts)

    def _free(self, said: list[Any], leaves: list[Any]) -> Any:
        if all([s is None or s is False for s in said]):
            return None
        parts: list[Any] = []
        for M, s, zero, x in zip(self.manifolds, said, self._zeros(leaves), leaves, strict=True):
            mask = np.asarray(False if s is None else s)
            if mask.dtype != bool:
                raise VectorError(f"fixed: truth values are due, True for what stays; got {s!r}")
            if M is not None and mask.ndim:  # a mask of points
                lead = np.ndim(x) - getattr(M, "axes", 1)
                mask = mask.reshape(*mask.shape[:lead], *[1] * (np.ndim(zero) - lead)) if mask.ndim == lead else mask
            elif mask.ndim < np.ndim(zero) and mask.shape == np.shape(zero)[: mask.ndim] and mask.ndim:
                mask = mask.reshape(*mask.shape, *[1] * (np.ndim(zero) - mask.ndim))  # a mask of rows
            try:
                parts.append(~np.broadcast_to(mask, np.shape(zero)).reshape(-1))
            except ValueError:
                raise VectorError(f"fixed: a mask of shape {np.shape(zero)} is due; got {mask.shape}") from None
        return np.concatenate([np.zeros(0, bool), *parts])

    def _bounds(self, bounds: Any, leaves: list[Any]) -> tuple[Any, Any]:
        if bounds is None:
            return None, None
        if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
            bounds = (bounds.lb, bounds.ub)
        if not isinstance(bounds, (tuple, list)) or len(cast("list[Any]", bounds)) != 2:
            raise VectorError(f"bounds: a pair is due, lower and upper, numbers or trees like x0; got {bounds!r}")
        count = len(leaves)
        sides = [spread(side, self.tree, count, "bounds") for side in cast("list[Any]", bounds)]
        if any([M is not None and s is not None for side in sides for M, s in zip(self.manifolds, side, strict=True)]):
            raise VectorError("bounds are for flat unknowns; those on a manifold have none")
        lower, upper = [self._flat(s, leaves, d) for s, d in zip(sides, (-np.inf, np.inf), strict=True)]
        if not (lower <= upper).all():
            raise VectorError(
                f"bounds: the lower one is above the upper one at coordinate {int(np.argmin(lower <= upper))}"
            )
        return lower, upper
