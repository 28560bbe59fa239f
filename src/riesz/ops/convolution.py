"""Convolution in one axis as a bilinear op: the three legs of the form Σ aᵢ vⱼ wᵢ₊ⱼ, each the transpose of the
others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..spaces.formal_vectors import dense
from .op import Multilinear, Op, Shape


class Convolution(Multilinear):
    """One leg of ⟨a ∗ v, w⟩ = Σ aᵢ vⱼ wᵢ₊ⱼ from the two others; along the last axis, leading axes together.

    leg 2: w = a ∗ v, the full convolution; leg 0: a from (w, v); leg 1: v from (a, w).
    """

    leg: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        lead = np.broadcast_shapes(shapes[0][:-1], shapes[1][:-1])
        x, y = shapes[0][-1], shapes[1][-1]
        return (*lead, x + y - 1 if self.leg == 2 else x - y + 1 if self.leg == 0 else y - x + 1)

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        # Argument k's place is taken by the cotangent. With the legs (a, v, w) the arguments of leg 2 are (a, v), of
        # leg 0 (w, v), of leg 1 (a, w).
        match self.leg, k:
            case (2, 0) | (2, 1):
                return Convolution(k)  # (w, v) → a, (a, w) → v
            case (0, 0) | (1, 1):
                return Convolution(2)  # (a, v) → w
            case 0, 1:
                return ExchangedLeg(1)  # (w, a) → v
            case _:
                return ExchangedLeg(0)  # (v, w) → a

    def run(self, *xs: Any) -> Any:
        x, y = [np.asarray(dense(v)) for v in xs]
        if self.leg == 1:
            x, y = y, x  # (w, a) → v is as (w, v) → a
        if x.ndim == y.ndim == 1:
            return np.convolve(x, y) if self.leg == 2 else np.correlate(x, y, "valid")
        if self.leg == 2:
            if x.shape[-1] < y.shape[-1]:
                x, y = y, x
            pad = y.shape[-1] - 1
            x, y = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(pad, pad)]), y[..., ::-1]
        windows = np.lib.stride_tricks.sliding_window_view(x, y.shape[-1], axis=-1)
        return np.einsum("...ij,...j->...i", windows, y)


class ExchangedLeg(Multilinear):
    """A leg of the convolution form with its two arguments exchanged."""

    leg: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return Convolution(self.leg).result(shapes[::-1])

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        inner: Any = Convolution(self.leg).transpose(1 - k, shapes[::-1])
        return Convolution(inner.leg) if isinstance(inner, ExchangedLeg) else ExchangedLeg(inner.leg)

    def run(self, *xs: Any) -> Any:
        return Convolution(self.leg).run(*xs[::-1])
