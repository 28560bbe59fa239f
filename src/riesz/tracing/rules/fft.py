"""np.fft: linear, unitary up to scale (F* = n·F⁻¹). Real arrays go through the transform of half their spectrum;
padding is relational reduction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.discrete_fourier import TURNED, Fourier, HermitianFourier, Norm, RealFourier
from ...ops.op import Reduction
from ...relations import Range
from ...relations.index_sets import Seg
from ..traced import FLOAT, NOTES, Traced, answers, convert, refuse, step, tidy
from .complex.complex_functions import conjugate
from .complex.complex_pairs import ComplexTraced, complex_answers, joined, paired, parts_of
from .gathering import along, roll
from .rearranging import axes_of, concatenate

_ENTERED: list[Any] = []


def _transform(
    *functions: Any, what: str, rule: str = "the same of dx; adjoint: n times the inverse (unitary up to scale)"
) -> Any:
    """Enter a rule for real and for complex arrays."""

    def enter(code: Any) -> Any:
        _ENTERED.extend(functions)
        complex_answers(*functions, what=what)(code)
        return answers(*functions, what=what, rule=rule)(code)

    return enter


def _array(a: Any) -> Any:
    """A traced array, of floats where it is real."""
    x = tidy(a)
    if type(x) is Traced and (x.dtype.kind != "f" or x.weak or x.dtype.itemsize < 4):
        return convert(
            x, FLOAT if x.dtype.kind != "f" else np.result_type(x.dtype, np.float32)
        )  # float16 is transformed in float32
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


def _axes(x: Any, s: Any, axes: Any) -> tuple[list[int | None], tuple[int, ...]]:
    """Sizes (None: as they are) and axes counted from the front, as NumPy reads them."""
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    at = axes_of(tuple(axes), x.ndim)
    sizes: list[int | None] = [None] * len(at) if s is None else [None if n is None else int(n) for n in s]
    if len(sizes) != len(at):
        raise ValueError("Shape and axes have different lengths.")
    return [x.shape[a] if n == -1 else n for n, a in zip(sizes, at, strict=True)], at


# -- the transforms, along axes counted from the front ----------------------------------------------------


def _real_transform(x: Traced, at: int, norm: Norm) -> Traced:
    """F_ℝ of a real array, as pairs."""
    return step(RealFourier(at - x.ndim, norm), x)


def _complex_transform(pairs: Traced, axes: tuple[int, ...], forward: bool, norm: Norm) -> Traced:
    """F of an array of pairs."""
    return step(Fourier(tuple([a - pairs.ndim + 1 for a in axes]), forward, norm), pairs) if axes else pairs


def _whole(x: Any, sizes: list[int | None], axes: tuple[int, ...], forward: bool, norm: Norm) -> Any:
    """The whole spectrum of a real or complex array."""
    re, im = parts_of(x)
    if not axes:  # a number, or no axis named
        return joined(re, im)
    if im is None:
        return _of_real(re, sizes, axes, norm) if forward else conjugate(_of_real(re, sizes, axes, TURNED[norm]))
    if re is None:
        turned = _whole(im, sizes, axes, forward, norm)  # F(i·y) = i·F(y)
        return joined(-turned.im, turned.re)
    pairs = x.pairs()
    for n, a in zip(sizes, axes, strict=True):
        pairs = _fitted(pairs, a, _length(pairs.shape[a] if n is None else n))
    return paired(_complex_transform(pairs, axes, forward, norm))


def _of_real(x: Traced, sizes: list[int | None], axes: tuple[int, ...], norm: Norm) -> Any:
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


def _halves(x: Traced, sizes: list[int | None], axes: tuple[int, ...], norm: Norm) -> ComplexTraced:
    """rfftn."""
    for n, a in zip(sizes, axes, strict=True):
        x = _fitted(x, a, _length(x.shape[a] if n is None else n))
    return paired(_complex_transform(_real_transform(x, axes[-1], norm), axes[:-1], True, norm))


def _from_halves(x: Any, sizes: list[int | None], axes: tuple[int, ...], norm: Norm) -> Traced:
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


def _real(x: Any, name: str) -> Traced:
    if type(x) is ComplexTraced:
        raise refuse(f"np.fft.{name} takes real arrays; for this complex one take its real part, z.real, or np.fft.fft")
    return x


# -- one axis ---------------------------------------------------------------------------------------------


@_transform(np.fft.fft, what="Fourier transform F; of real arrays F_ℝ and its mirror image")
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Σ_j a_j · e^{−2πi jk/n}."""
    x = _array(a)
    return _whole(x, [n], axes_of(axis, x.ndim), True, _norm(norm))


@_transform(np.fft.ifft, what="inverse Fourier transform F⁻¹")
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of fft."""
    x = _array(a)
    return _whole(x, [n], axes_of(axis, x.ndim), False, _norm(norm))


HALVED = "the same of dx; adjoint: n times the inverse after halving what has a mirror image"


@_transform(np.fft.rfft, what="Fourier transform F_ℝ of real arrays", rule=HALVED)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Half the spectrum of a real array."""
    x = _real(_array(a), "rfft")
    return _halves(x, [n], axes_of(axis, x.ndim), _norm(norm))


DOUBLED = "the same of dx; adjoint: 1/n times the transform, what has a mirror image doubled"


@_transform(np.fft.irfft, what="inverse Fourier transform F_ℝ⁻¹ to real arrays", rule=DOUBLED)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The real array of half a spectrum."""
    x = _array(a)
    return _from_halves(x, [n], axes_of(axis, x.ndim), _norm(norm))


@_transform(np.fft.hfft, what="inverse Fourier transform to real arrays, of the conjugate", rule=DOUBLED)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The real spectrum of half a Hermitian array."""
    return irfft(conjugate(_array(a)) if type(a) is ComplexTraced else a, n, axis, TURNED[_norm(norm)])


@_transform(np.fft.ihfft, what="conjugate of the Fourier transform of real arrays", rule=HALVED)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of hfft."""
    x = _real(_array(a), "ihfft")
    return conjugate(rfft(x, n, axis, TURNED[_norm(norm)]))


# -- several axes -----------------------------------------------------------------------------------------


def _several(code: Any, pair: bool) -> Any:
    """One of the functions of several axes, or its namesake for two."""

    def rule(a: Any, s: Any = None, axes: Any = (-2, -1) if pair else None, norm: Any = None, out: Any = None) -> Any:
        x = _array(a)
        return code(x, *_axes(x, s, axes), _norm(norm))

    return rule


def _fftn(x: Any, sizes: Any, axes: Any, norm: Norm) -> Any:
    return _whole(x, sizes, axes, True, norm)


def _ifftn(x: Any, sizes: Any, axes: Any, norm: Norm) -> Any:
    return _whole(x, sizes, axes, False, norm)


def _rfftn(x: Any, sizes: Any, axes: Any, norm: Norm) -> Any:
    return _halves(_real(x, "rfftn"), sizes, axes, norm)


for _pair, _names in ((False, ("fftn", "ifftn", "rfftn", "irfftn")), (True, ("fft2", "ifft2", "rfft2", "irfft2"))):
    _functions = [getattr(np.fft, name) for name in _names]
    _transform(_functions[0], what="Fourier transform F")(_several(_fftn, _pair))
    _transform(_functions[1], what="inverse Fourier transform F⁻¹")(_several(_ifftn, _pair))
    _transform(_functions[2], what="F_ℝ, then F along the other axes", rule=HALVED)(_several(_rfftn, _pair))
    _transform(_functions[3], what="F⁻¹ along the other axes, then F_ℝ⁻¹", rule=DOUBLED)(_several(_from_halves, _pair))


# -- shifts -----------------------------------------------------------------------------------------------


def _shift(function: Any, sign: int) -> None:
    @answers(function, what="relational reduction: two slices exchanged", rule="the same of dx")
    def code(x: Any, axes: Any = None) -> Any:
        at = axes_of(axes, x.ndim)
        return roll(x, tuple([sign * (x.shape[a] // 2) for a in at]), at)


_shift(np.fft.fftshift, 1)
_shift(np.fft.ifftshift, -1)


# -- scipy.fft --------------------------------------------------------------------------------------------


def _as_scipy(function: Any) -> Any:
    """np.fft's function with the arguments that scipy.fft adds, which are about speed only."""

    def code(x: Any, *args: Any, overwrite_x: bool = False, workers: Any = None, plan: Any = None, **named: Any) -> Any:
        return function(x, *args[:3], **named)

    return code


SCIPY_TRANSFORMS: dict[str, tuple[Any, str, str]] = {
    f.__name__: (_as_scipy(f), *NOTES[f]) for f in (*_ENTERED, np.fft.fftshift, np.fft.ifftshift)
}
"""Functions of scipy.fft with a namesake in np.fft, which do not ask their arguments."""
