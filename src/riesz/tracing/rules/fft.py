"""np.fft: linear, unitary up to scale (F* = n·F⁻¹). Real arrays go through the transform of half their spectrum;
padding is relational reduction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...ops.discrete_fourier import TURNED, Fourier, HermitianFourier, Norm, RealFourier
from ...ops.op import Reduction
from ...relations import Range
from ...relations.index_sets import Seg
from ..registry import COMPLEX, NOTES, answer_rows
from ..trace import refuse
from ..traced import FLOAT, Traced, convert, step, tidy
from .complex.complex_functions import conjugate
from .complex.complex_pairs import ComplexTraced, joined, paired, parts_of
from .gathering import along, roll
from .rearranging import axes_of, concatenate

Sizes = list[int | None]
Axes = tuple[int, ...]


def _array(a: Any) -> Any:
    """A traced array, of floats where it is real."""
    x = tidy(a)
    if type(x) is Traced and (x.dtype.kind != "f" or x.weak or x.dtype.itemsize < 4):
        single = np.result_type(x.dtype, np.float32)  # float16 is transformed in float32
        return convert(x, FLOAT if x.dtype.kind != "f" else single)
    return x


def _norm(norm: Any) -> Norm:
    known = "backward" if norm is None else norm
    if known not in TURNED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return known


def _length(n: Any) -> int:
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return int(n)


def _fitted(x: Traced, axis: int, n: int) -> Traced:
    """Cut to n entries along an axis, or filled up with zeros."""
    m = x.shape[axis]
    if n <= m:
        return along(x, axis, np.arange(n))
    return step(Reduction((Range(Seg(m), Seg(n), 0, 1, True),), axis), x)


def _axes(x: Any, s: Any, axes: Any) -> tuple[Sizes, Axes]:
    """Sizes (None: as they are) and axes counted from the front, as NumPy reads them."""
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    at = axes_of(tuple(axes), x.ndim)
    sizes: Sizes = [None] * len(at) if s is None else [None if n is None else int(n) for n in s]
    if len(sizes) != len(at):
        raise ValueError("Shape and axes have different lengths.")
    return [x.shape[a] if n == -1 else n for n, a in zip(sizes, at, strict=True)], at


def _complex_transform(pairs: Traced, axes: Axes, forward: bool, norm: Norm) -> Traced:
    """F of an array of pairs."""
    return step(Fourier(tuple([a - pairs.ndim + 1 for a in axes]), forward, norm), pairs) if axes else pairs


def _whole(x: Any, sizes: Sizes, axes: Axes, norm: Norm, *, forward: bool) -> Any:
    """The whole spectrum of a real or complex array."""
    re, im = parts_of(x)
    if not axes:  # a number, or no axis named
        return joined(re, im)
    if im is None:
        return _of_real(re, sizes, axes, norm) if forward else conjugate(_of_real(re, sizes, axes, TURNED[norm]))
    if re is None:
        turned = _whole(im, sizes, axes, norm, forward=forward)  # F(i·y) = i·F(y)
        return joined(-turned.im, turned.re)
    pairs = x.pairs()
    for n, a in zip(sizes, axes, strict=True):
        pairs = _fitted(pairs, a, _length(pairs.shape[a] if n is None else n))
    return paired(_complex_transform(pairs, axes, forward, norm))


def _of_real(x: Traced, sizes: Sizes, axes: Axes, norm: Norm) -> Any:
    """F of a real array: half of it by F_ℝ, the other half is its mirror image, conjugated: F(x)₋ₖ = conj F(x)ₖ."""
    half = _halves(x, sizes, axes, norm)
    last = axes[-1]
    n = x.shape[last] if sizes[-1] is None else sizes[-1]
    m = half.shape[last]
    if n == m:
        return half
    parts: list[Any] = []
    for part, sign in ((half.re, 1.0), (half.im, -1.0)):
        image = along(part, last, np.arange(n - m, 0, -1))
        for a in axes[:-1]:
            image = along(image, a, -np.arange(image.shape[a]) % image.shape[a]) if image.shape[a] > 1 else image
        parts.append(concatenate([part, image * sign], last))
    return joined(*parts)


def _halves(x: Any, sizes: Sizes, axes: Axes, norm: Norm, *, name: str = "rfftn") -> ComplexTraced:
    """rfftn."""
    if type(x) is ComplexTraced:
        raise refuse(f"np.fft.{name} takes real arrays; for this complex one take its real part, z.real, or np.fft.fft")
    for n, a in zip(sizes, axes, strict=True):
        x = _fitted(x, a, _length(x.shape[a] if n is None else n))
    return paired(_complex_transform(step(RealFourier(axes[-1] - x.ndim, norm), x), axes[:-1], True, norm))


def _from_halves(x: Any, sizes: Sizes, axes: Axes, norm: Norm) -> Traced:
    """irfftn."""
    if type(x) is not ComplexTraced:
        x = joined(x, None)
    pairs = x.pairs()
    last = axes[-1]
    n = _length(2 * (pairs.shape[last] - 1) if sizes[-1] is None else sizes[-1])
    for size, a in zip([*sizes[:-1], n // 2 + 1], axes, strict=True):
        pairs = _fitted(pairs, a, _length(pairs.shape[a] if size is None else size))
    pairs = _complex_transform(pairs, axes[:-1], False, norm)
    return step(HermitianFourier(last - x.ndim, norm, n), pairs)


_fft, _ifft = partial(_whole, forward=True), partial(_whole, forward=False)


def _hfft(x: Any, sizes: Sizes, axes: Axes, norm: Norm) -> Any:
    return _from_halves(conjugate(x) if type(x) is ComplexTraced else x, sizes, axes, TURNED[norm])


def _ihfft(x: Any, sizes: Sizes, axes: Axes, norm: Norm) -> Any:
    return conjugate(_halves(x, sizes, axes, TURNED[norm], name="ihfft"))


def _one(code: Any) -> Any:
    """A function along one axis."""

    def rule(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        x = _array(a)
        return code(x, [n], axes_of(axis, x.ndim), _norm(norm))

    return rule


def _several(code: Any, usual: Any = None) -> Any:
    """A function along several axes."""

    def rule(a: Any, s: Any = None, axes: Any = usual, norm: Any = None, out: Any = None) -> Any:
        x = _array(a)
        return code(x, *_axes(x, s, axes), _norm(norm))

    return rule


UNITARY = "the same of dx; adjoint: n times the inverse (unitary up to scale)"
HALVED = "the same of dx; adjoint: n times the inverse after halving what has a mirror image"
DOUBLED = "the same of dx; adjoint: 1/n times the transform, what has a mirror image doubled"
_LAST = (-2, -1)
_REAL, _BACK = "F_ℝ, then F along the other axes", "F⁻¹ along the other axes, then F_ℝ⁻¹"
_TRANSFORMS = (
    (np.fft.fft, "Fourier transform F; of real arrays F_ℝ and its mirror image", UNITARY, _one(_fft)),
    (np.fft.ifft, "inverse Fourier transform F⁻¹", UNITARY, _one(_ifft)),
    (np.fft.rfft, "Fourier transform F_ℝ of real arrays", HALVED, _one(partial(_halves, name="rfft"))),
    (np.fft.irfft, "inverse Fourier transform F_ℝ⁻¹ to real arrays", DOUBLED, _one(_from_halves)),
    (np.fft.hfft, "inverse Fourier transform to real arrays, of the conjugate", DOUBLED, _one(_hfft)),
    (np.fft.ihfft, "conjugate of the Fourier transform of real arrays", HALVED, _one(_ihfft)),
    (np.fft.fftn, "Fourier transform F", UNITARY, _several(_fft)),
    (np.fft.fft2, "Fourier transform F", UNITARY, _several(_fft, _LAST)),
    (np.fft.ifftn, "inverse Fourier transform F⁻¹", UNITARY, _several(_ifft)),
    (np.fft.ifft2, "inverse Fourier transform F⁻¹", UNITARY, _several(_ifft, _LAST)),
    (np.fft.rfftn, _REAL, HALVED, _several(_halves)),
    (np.fft.rfft2, _REAL, HALVED, _several(_halves, _LAST)),
    (np.fft.irfftn, _BACK, DOUBLED, _several(_from_halves)),
    (np.fft.irfft2, _BACK, DOUBLED, _several(_from_halves, _LAST)),
)
COMPLEX.update({function: code for function, _, _, code in _TRANSFORMS})


def _shift(sign: int) -> Any:
    def code(x: Any, axes: Any = None) -> Any:
        at = axes_of(axes, x.ndim)
        return roll(x, tuple([sign * (x.shape[a] // 2) for a in at]), at)

    return code


_EXCHANGED = "relational reduction: two slices exchanged"
answer_rows(
    *_TRANSFORMS,
    (np.fft.fftshift, _EXCHANGED, "the same of dx", _shift(1)),
    (np.fft.ifftshift, _EXCHANGED, "the same of dx", _shift(-1)),
)


def _as_scipy(function: Any) -> Any:
    """np.fft's function with the arguments that scipy.fft adds, which are about speed only."""

    def code(x: Any, *args: Any, overwrite_x: bool = False, workers: Any = None, plan: Any = None, **named: Any) -> Any:
        return function(x, *args[:3], **named)

    return code


SCIPY_TRANSFORMS: dict[str, tuple[Any, str, str]] = {
    f.__name__: (_as_scipy(f), *NOTES[f]) for f in (*[row[0] for row in _TRANSFORMS], np.fft.fftshift, np.fft.ifftshift)
}
"""Functions of scipy.fft with a namesake in np.fft, which do not ask their arguments."""
