"""Polynomials by their coefficients, least squares fits of them, and functions applied along axes or at every index."""

from __future__ import annotations

import re
from typing import Any, cast

import numpy as np

from ...deciding import known
from ...registry import answers, answers_called
from ...trace import refuse
from ...traced import as_array, convert, holds_traced, tidy
from .precision import as_given, double

_FIT = "least squares by np.linalg.lstsq"


@answers_called(np.vander, what="powers side by side", rule="that of the powers")
def vander(x: Any, N: Any, increasing: bool) -> Any:
    """Columns of powers."""
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    x = convert(x, np.promote_types(x.dtype, int))
    count = len(x) if N is None else int(N)
    if not count:
        return np.zeros((len(x), 0))
    columns = [np.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return np.stack(columns if increasing else columns[::-1], axis=1)


def fitted(columns: Any, y: Any, w: Any) -> Any:
    """The coefficients of a least squares fit, its columns scaled to length 1, and the columns."""
    left, right = columns, y
    if w is not None:
        left = left * w[:, None]
        right = right * (w[:, None] if np.ndim(y) == 2 else w)
    scale = np.sqrt(np.sum(left * left, axis=0))
    found = np.linalg.lstsq(left / scale, right, rcond=None)[0]
    return (found.T / scale).T, left, right


@answers_called(np.polyfit, what=_FIT, rule="that of the solution")
def polyfit(x: Any, y: Any, deg: int, rcond: Any, full: bool, w: Any, cov: Any) -> Any:
    """The coefficients of the polynomial that fits best, highest power first."""
    if full:
        raise refuse("np.polyfit with full=True is not known to riesz for traced arrays; write np.linalg.lstsq")
    x, y = double(x), double(y)
    c, left, right = fitted(vander(x, int(deg) + 1), y, None if w is None else double(w))
    if cov is False or cov is None:
        return c
    base = np.linalg.inv(left.T @ left)
    if cov == "unscaled":
        return c, base
    free = np.shape(x)[0] - (int(deg) + 1)
    rest = right - left @ c
    factor = np.sum(rest * rest, axis=0) / free
    return c, base * factor if np.ndim(y) == 1 else base[:, :, None] * factor


def series_fit(vander_f: Any, x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None) -> Any:
    """As the function behind np.polynomial's polyfit, chebfit, legfit and their kin."""
    if full or np.ndim(deg):
        raise refuse("fits of np.polynomial with full=True or chosen degrees are not known to riesz for traced arrays")
    return fitted(vander_f(double(x), int(deg)), double(y), None if w is None else double(w))[0]


def _aligned(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = np.atleast_1d(as_array(a)), np.atleast_1d(as_array(b))
    n = max(len(a), len(b))
    return tuple([np.concatenate([np.zeros(n - len(v)), v]) for v in (a, b)])  # pyright: ignore[reportReturnType]


@answers(np.polyadd, what="padding and a sum", rule="dp + dq")
def polyadd(a1: Any, a2: Any) -> Any:
    a, b = _aligned(a1, a2)
    return a + b


@answers(np.polysub, what="padding and a difference", rule="dp − dq")
def polysub(a1: Any, a2: Any) -> Any:
    a, b = _aligned(a1, a2)
    return a - b


@answers(np.polymul, what="bilinear op convolution", rule="dp * q + p * dq")
def polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(np.atleast_1d(as_array(a1)), np.atleast_1d(as_array(a2)))


@answers(np.polyint, what="quotients by fixed numbers", rule="that of dp")
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The coefficients of the integral, with constants k."""
    constants = np.zeros(m) if k is None else np.broadcast_to(double(k), (m,))
    p = np.atleast_1d(as_array(p))
    for i in range(m):
        p = np.concatenate([p / np.arange(len(p), 0, -1), constants[i : i + 1]])
    return p


@answers(np.polydiv, what="long division", rule="that of the steps")
def polydiv(u: Any, v: Any) -> Any:
    """Quotient and remainder; of a traced remainder leading zeros are not dropped."""
    rest, v = [np.atleast_1d(as_array(x) + 0.0) for x in (u, v)]
    n = max(len(rest) - len(v) + 1, 1)
    found = []
    for _ in range(len(rest) - len(v) + 1):
        found.append(rest[0] / v[0])
        rest = np.concatenate([rest[1 : len(v)] - found[-1] * v[1:], rest[len(v) :]])
    return (np.stack(found) if found else np.zeros(n)), rest


@answers(np.poly, what="products of linear factors", rule="that of the products")
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with given zeros."""
    zeros = double(seq_of_zeros)
    if np.ndim(zeros) == 2:
        raise refuse(
            "np.poly of a traced matrix is not known to riesz; np.poly(np.linalg.eigvalsh(A)) is, if A is symmetric"
        )
    found = np.ones(1)
    for z in zeros:
        found = np.concatenate([found, np.zeros(1)]) - np.concatenate([np.zeros(1), found * z])
    return as_given(found, seq_of_zeros)


@answers_called(np.unwrap, what="x plus multiples of the period, a step function", rule="dx")
def unwrap(p: Any, discont: Any, axis: int, period: Any) -> Any:
    p = as_array(p)
    step = np.diff(p, axis=axis)
    half = period / 2.0
    turned = np.mod(step + half, period) - half
    turned = np.where((turned == -half) & (step > 0), half, turned)
    extra = np.where(np.abs(step) < (half if discont is None else max(half, discont)), 0.0, turned - step)
    pad = [(0, 0)] * p.ndim
    pad[axis] = (1, 0)
    return p + np.pad(np.cumsum(extra, axis=axis), pad)


@answers(np.apply_along_axis, what="the function on every slice, stacked", rule="that of the function")
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **named: Any) -> Any:
    x = np.moveaxis(as_array(arr), axis, -1)
    others = x.shape[:-1]
    if 0 in others:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = [as_array(func1d(x[i], *args, **named)) for i in np.ndindex(others)]
    found = np.reshape(np.stack(rows), (*others, *np.shape(rows[0])))
    at, new = axis % (len(others) + 1), np.ndim(rows[0])
    order = [*range(at), *range(len(others), len(others) + new), *range(at, len(others))]
    return np.transpose(found, order)


@answers(np.apply_over_axes, what="the function along one axis after the other", rule="that of the function")
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = as_array(a)
    for axis in np.atleast_1d(axes).tolist():
        found = func(x, axis)
        x = found if np.ndim(found) == x.ndim else np.expand_dims(found, axis)
    return x


class Vectorized:
    """As np.vectorize: a function called at every index, with numbers or the axes that the signature says."""

    def __init__(
        self,
        pyfunc: Any = None,
        otypes: Any = None,
        doc: Any = None,
        excluded: Any = None,
        cache: bool = False,
        signature: Any = None,
    ) -> None:
        np.vectorize(signature=signature)  # NumPy's own error for a text that is no signature
        self.pyfunc, self.excluded, self.signature = pyfunc, set[Any](excluded or ()), signature
        self.otypes = None if otypes is None else [np.dtype(kind) for kind in otypes]

    @classmethod
    def of(cls, given: Any) -> Vectorized:
        """That of an object of NumPy's."""
        return cls(given.pyfunc, given.otypes, excluded=given.excluded, signature=given.signature)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.pyfunc is None:  # a decorator
            self.pyfunc = args[0]
            return self
        moving = [i for i in range(len(args)) if i not in self.excluded]
        by_name = [k for k in named if k not in self.excluded]
        arrays = [as_array(args[i]) for i in moving] + [as_array(named[k]) for k in by_name]
        inner, outer = self._axes(len(arrays))
        sizes: dict[str, int] = {}
        cores = [_core(x, names, sizes) for x, names in zip(arrays, inner, strict=True)]
        loops = [np.shape(x)[: np.ndim(x) - len(core)] for x, core in zip(arrays, cores, strict=True)]
        shape = np.broadcast_shapes(*loops)
        count = int(np.prod(shape))
        flat = [
            np.reshape(np.broadcast_to(x, (*shape, *core)), (count, *core))
            for x, core in zip(arrays, cores, strict=True)
        ]
        if not count and self.otypes is None:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        if not count and any([name not in sizes for names in outer or () for name in names]):
            new = "a signature including new output dimensions"
            raise ValueError(f"cannot call `vectorize` with {new} on size 0 inputs")
        if not count:
            kinds = cast(Any, self.otypes)
            ends = [[sizes[name] for name in names] for names in outer or [()] * len(kinds)]
            empty: Any = [np.zeros((*shape, *end), kind) for end, kind in zip(ends, kinds, strict=False)]
            return tuple(empty) if len(empty) > 1 else empty[0]
        found: list[Any] = []
        for n in range(count):
            values = [x[n] for x in flat]
            places = dict(zip(moving, values, strict=False))
            given = [places.get(i, x) for i, x in enumerate(args)]
            found.append(self.pyfunc(*given, **{**named, **dict(zip(by_name, values[len(moving) :], strict=True))}))
        several = isinstance(found[0], tuple)
        parts = [list(part) for part in zip(*found, strict=True)] if several else [found]
        outer = [list[str]() for _ in parts] if outer is None else outer
        if len(outer) != len(parts):
            raise ValueError(f"wrong number of outputs from pyfunc: expected {len(outer)}, got {len(parts)}")
        kinds = self.otypes or [None] * len(parts)
        results = [
            _shaped(part, (*shape, *_core(part[0], names, sizes, True)), kind)
            for part, names, kind in zip(parts, outer, kinds, strict=True)
        ]
        return tuple(results) if several else results[0]

    def _axes(self, count: int) -> tuple[list[list[str]], list[list[str]] | None]:
        """The names of the axes of what is called, and of its results, if the signature says them."""
        if self.signature is None:
            return [[]] * count, None
        said = [
            [[*filter(None, part.split(","))] for part in re.findall(r"\((.*?)\)", side)]
            for side in re.sub(r"\s", "", self.signature).split("->")
        ]
        if len(said[0]) != count:
            raise TypeError(f"wrong number of positional arguments: expected {len(said[0])}, got {count}")
        return said[0], said[1]


def _core(x: Any, names: list[str], sizes: dict[str, int], whole: bool = False) -> tuple[int, ...]:
    """The last axes of x, which have names, or all of them; each name has one size."""
    shape = np.shape(x)
    if len(shape) < len(names) or (whole and len(shape) > len(names)):
        due = f"dimensions for all core dimensions {tuple(names)}"
        raise ValueError(f"{len(shape)}-dimensional argument does not have enough {due}")
    core = shape[len(shape) - len(names) :]
    for name, size in zip(names, core, strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]}")
    return core


def _shaped(found: list[Any], shape: tuple[int, ...], kind: Any) -> Any:
    whole = np.reshape(tidy(found) if holds_traced(found) else np.asarray(found), shape)
    return whole if kind is None else whole.astype(kind)


def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """As scipy.integrate.fixed_quad, with bounds that may be traced."""
    if any([known(np.isinf(end)) if holds_traced(end) else np.isinf(end) for end in (a, b)]):
        raise ValueError("Gaussian quadrature is only available for finite limits.")
    at, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) / 2.0
    return half * np.sum(weights * func(half * (at + 1.0) + a, *args), axis=-1), None


INTEGRATE = {"fixed_quad": (fixed_quad, "a weighted sum over Gauss's points", "that of the sum")}
CLASSES = {"vectorize": Vectorized}
