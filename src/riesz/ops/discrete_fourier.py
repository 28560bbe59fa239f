"""The discrete Fourier transform as linear ops, unitary up to scale: F* = n·F⁻¹.

An array of complex numbers is an array of real ones with a last axis of length 2, real and imaginary part; ℂ ≅ ℝ², and
the inner product is that of ℝ². `norm` is NumPy's word for where the factor 1/n stands: "backward" at the inverse,
"forward" at the transform, "ortho" half at each. Taking the adjoint turns the direction round and leaves the factor
where it was, so "backward" and "forward" change places.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import numpy as np

from ..spaces.formal_vectors import dense
from .op import Op, Shape, Single

Norm = Literal["backward", "ortho", "forward"]
TURNED: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm of the adjoint: no factor stays no factor, 1/n stays 1/n."""


def as_complex(x: Any) -> Any:
    """ℝ^{…×2} as ℂ^…, without a copy where the numbers lie side by side."""
    pairs = np.ascontiguousarray(dense(x))
    return pairs.view(np.complex64 if pairs.dtype == np.float32 else np.complex128)[..., 0]


def as_pairs(z: Any) -> Any:
    """ℂ^… as ℝ^{…×2}, the inverse of `as_complex`."""
    whole = np.ascontiguousarray(z)
    return whole[..., None].view(np.float32 if whole.dtype == np.complex64 else np.float64)


class TransformSymbol(NamedTuple):
    """How a transform is written: F, F*, F⁻¹ without a factor, adjoint, inverse; U is the unitary one."""

    letter: str
    below: str
    inverse: bool
    adjoint: bool
    factor: str = ""  # "n" or "1/n" beside what the letter says


class Transform(Single):
    """A transform along axes counted from the end, without the axis of parts, so that leading axes may come."""

    def lifted(self, n: int) -> Op:
        return self

    @property
    def symbol(self) -> TransformSymbol:
        """How it is written."""
        raise NotImplementedError


class Fourier(Transform):
    """F : ℂⁿ ⊸ ℂⁿ,  (F z)_k = Σ_j z_j · e^{∓2πi jk/n} along each of the axes; − is forward. F* = n·F⁻¹: the other
    direction, unitary up to scale."""

    axes: tuple[int, ...]
    forward: bool
    norm: Norm

    def run(self, *xs: Any) -> Any:
        transform = np.fft.fftn if self.forward else np.fft.ifftn
        return as_pairs(transform(as_complex(xs[0]), axes=self.axes, norm=self.norm))

    def turned(self, shape: Shape) -> Op:
        return Fourier(self.axes, not self.forward, TURNED[self.norm])  # F* = n·F⁻¹, (F⁻¹)* = F/n

    @property
    def symbol(self) -> TransformSymbol:
        below = "" if self.axes == (-1,) else ",".join(map(str, self.axes))
        if self.norm == "ortho":
            return TransformSymbol("U", below, False, not self.forward)
        inverse = self.forward == (self.norm == "forward")  # where the factor 1/n is
        return TransformSymbol("F", below, inverse, self.forward == inverse)


class RealFourier(Transform):
    """F_ℝ : ℝⁿ ⊸ ℂ^{⌊n/2⌋+1}, the transform of a real array, of which one half says all.

    F_ℝ* = n·F_ℝ⁻¹ • H, where H halves what has a mirror image in the other half (all but k = 0 and k = n/2): unitary up
    to scale and these weights. `doubled`: followed by H⁻¹, as in the adjoint of F_ℝ⁻¹.
    """

    axis: int
    norm: Norm
    doubled: bool = False

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return (*_resized(shapes[0], self.axis, shapes[0][self.axis] // 2 + 1), 2)

    def run(self, *xs: Any) -> Any:
        x = dense(xs[0])
        z = np.fft.rfft(x, axis=self.axis, norm=self.norm)
        if self.doubled:
            z[_mirrored(x.shape[self.axis], self.axis)] *= 2
        return as_pairs(z)

    def turned(self, shape: Shape) -> Op:
        return HermitianFourier(self.axis, TURNED[self.norm], shape[self.axis], not self.doubled)

    @property
    def symbol(self) -> TransformSymbol:
        return _half(self.axis, self.norm, self.doubled, self.doubled, self.norm == "forward")


class HermitianFourier(Transform):
    """F_ℝ⁻¹ : ℂ^{⌊n/2⌋+1} ⊸ ℝⁿ, the inverse of `RealFourier`. (F_ℝ⁻¹)* = H⁻¹ • F_ℝ / n. `halved`: after H, as in the
    adjoint of F_ℝ."""

    axis: int
    norm: Norm
    n: int
    halved: bool = False

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return _resized(shapes[0][:-1], self.axis, self.n)

    def run(self, *xs: Any) -> Any:
        z = as_complex(xs[0])
        if self.halved:
            z = z.copy()
            z[_mirrored(self.n, self.axis)] *= 0.5
        return np.fft.irfft(z, self.n, axis=self.axis, norm=self.norm)

    def turned(self, shape: Shape) -> Op:
        return RealFourier(self.axis, TURNED[self.norm], not self.halved)

    @property
    def symbol(self) -> TransformSymbol:
        return _half(self.axis, self.norm, not self.halved, self.halved, self.norm == "backward")


def _half(axis: int, norm: Norm, inverse: bool, adjoint: bool, divided: bool) -> TransformSymbol:
    """F_ℝ has no factor, F_ℝ⁻¹ the factor 1/n; another is written beside them."""
    below = "ℝ" if axis == -1 else f"ℝ,{axis}"
    factor = "" if norm == "ortho" or divided == inverse else "1/n" if divided else "n"
    return TransformSymbol("U" if norm == "ortho" else "F", below, inverse, adjoint, factor)


def _resized(shape: Shape, axis: int, n: int) -> Shape:
    at = axis % len(shape)
    return (*shape[:at], n, *shape[at + 1 :])


def _mirrored(n: int, axis: int) -> tuple[Any, ...]:
    """What stands for two entries of the whole spectrum: 0 < k < n/2."""
    return (..., slice(1, (n + 1) // 2), *(slice(None),) * (-axis - 1))


def mixed_axes(op: Transform, source: Shape, target: Shape) -> tuple[int, set[int]]:
    """How many axes there are besides that of the parts of a number, and which of them a transform goes along."""
    rank = max(len(source), len(target)) - 1
    axes = op.axes if isinstance(op, Fourier) else (cast(Any, op).axis,)
    return rank, {a % rank for a in axes}
