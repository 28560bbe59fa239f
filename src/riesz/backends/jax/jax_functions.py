"""What the ops of a program are in JAX: a function for every primitive, discrete function and function of matrices that
JAX has one for.

`found` and `primitive` give None for the others; they are called back on the host (jax_host.py), where that is safe.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special as special
import numpy as np

from ...ops.opaque import Discrete, Ruled, _smooth  # pyright: ignore[reportPrivateUsage]
from ...relations.cpu.pair_folds import products_of_others
from ...terms.primitives import RULES, Primitive
from ...tracing.rules.special import SPECIAL
from .jax_steps import letters, mapped

DEGREE = math.pi / 180.0


def _larger(a: Any, b: Any) -> Any:
    return jnp.where(a == b, 0.5, jnp.where(a > b, 1.0, 0.0)).astype(jnp.result_type(a, b))


def _larger_number(a: Any, b: Any) -> Any:
    return jnp.where(jnp.isnan(b) & ~jnp.isnan(a), 1.0, _larger(a, b)).astype(jnp.result_type(a, b))


def _sine_ratio(y: Any) -> Any:
    return jnp.sin(y) / y


def _sinc_derivative(x: Any, n: float) -> Any:
    """By the Taylor series near 0 and by recurrence elsewhere, as in NumPy."""
    z, order = jnp.pi * x, int(n)
    small = jnp.abs(z) < 1.0 + order
    near = jnp.where(small, z, 1.0)
    series = jnp.zeros_like(near)
    for k in range((order + 1) // 2, 30 + order):
        if 2 * k >= order and 2 * k + 1 < 170:
            series = series + (-1.0) ** k / (math.factorial(2 * k - order) * (2 * k + 1)) * near ** (2 * k - order)
    far = jnp.where(small, 1.0, z)
    value = _sine_ratio(far)
    for m in range(1, order + 1):
        value = (jnp.sin(far + m * jnp.pi / 2) - m * value) / far
    return jnp.where(small, series, value) * jnp.pi**order


def _huber(d: Any, r: Any) -> Any:
    size = jnp.abs(r)
    return jnp.where(d < 0, jnp.inf, jnp.where(size <= d, 0.5 * r * r, d * (size - 0.5 * d)))


def _pseudo_huber(d: Any, r: Any) -> Any:
    whole = jnp.where((d == 0) | (r == 0), 0.0, d * d * (jnp.sqrt(1.0 + (r / jnp.where(d == 0, 1.0, d)) ** 2) - 1.0))
    return jnp.where(d < 0, jnp.inf, whole)


_OURS: dict[str, Callable[..., Any]] = {
    "ln": jnp.log,
    "absolute": jnp.abs,
    "sigmoid": jax.nn.sigmoid,
    "relu": lambda x: jnp.maximum(x, 0.0),
    "step": lambda x: jnp.where(jnp.isnan(x), x, jnp.where(x > 0, 1.0, 0.0)).astype(jnp.result_type(x)),
    "root": jnp.sqrt,
    "inverse": lambda x: jnp.where(x == 0, 0, 1 / jnp.where(x == 0, 1, x)),
    "log0": lambda x: jnp.log(jnp.where(x == 0, 1.0, x)),
    "pow": jnp.power,
    "power_slope": lambda a, b: jnp.where(b == 0, 0, b * jnp.power(jnp.where(b == 0, 1.0, a), b - 1.0)),
    "larger": _larger,
    "larger_number": _larger_number,
    "smaller_number": lambda a, b: _larger_number(-a, -b),
    "sinc": lambda x: _sine_ratio(jnp.pi * jnp.where(x == 0, 1e-20, x)),
    "sinc_derivative": _sinc_derivative,
}
PRIMITIVES = {name: getattr(jnp, name) for name in RULES if name not in (*_OURS, "power")} | _OURS
"""riesz's own primitives."""

_GAMMA = ("gammaln", "gammainc", "gammaincc", "betainc", "betaln", "beta", "gamma", "gammasgn")
_ERROR = ("erf", "erfc", "erfinv", "logit", "ndtr", "ndtri", "log_ndtr", "i0", "i0e", "i1", "i1e")
_ENTROPY = ("xlogy", "xlog1py", "entr", "rel_entr", "kl_div")
SPECIALS: dict[str, Callable[..., Any]] = {
    **{name: getattr(special, name) for name in (*_GAMMA, *_ERROR, *_ENTROPY)},
    "psi": special.digamma,
    "log_expit": jax.nn.log_sigmoid,
    "ratio": lambda a, b: jnp.where(a == 0, 0.0, a / jnp.where(a == 0, 1.0, b)),
    "exp10": lambda x: jnp.power(10.0, x),
    "cosm1": lambda x: -2.0 * jnp.sin(0.5 * x) ** 2,
    "radian": lambda d, m, s: DEGREE * (d + m / 60.0 + s / 3600.0),
    "huber": _huber,
    "pseudo_huber": _pseudo_huber,
}
"""Those of scipy.special that JAX has, to about the same accuracy."""


# -- functions without a derivative -------------------------------------------------------------------------------


def _rowwise(function: Callable[..., Any], a: Any, v: Any) -> Any:
    """A function of sorted numbers and queries, at every index of the leading axes of a."""
    return mapped(function, jnp.ndim(a) - 1)(jnp.asarray(a), jnp.asarray(v))


def _find(a: Any, v: Any, side: str) -> Any:
    return _rowwise(partial(jnp.searchsorted, side=side), a, v)


def _shares(x: Any, peak: Any, *, axis: Any) -> Any:
    at = x == peak
    return at.astype(x.dtype) / jnp.maximum(jnp.sum(at, axis=axis, keepdims=True), 1).astype(x.dtype)


def _order(x: Any) -> Any:
    return jnp.argsort(x, axis=-1, stable=True)


def _order_or_nan(x: Any) -> Any:
    order = _order(x)
    last = order[..., -1:]
    return jnp.where(jnp.isnan(jnp.take_along_axis(x, last, -1)), last, order)


def _share(a: Any, lower: bool) -> Any:
    n = a.shape[-1]
    read = jnp.tri(n, dtype=a.dtype) - jnp.eye(n, dtype=a.dtype) / 2
    gap, size = [jnp.max(jnp.abs(x), axis=(-2, -1), keepdims=True, initial=0) for x in (a - a.mT, a)]
    return jnp.where(gap <= jnp.finfo(a.dtype).eps ** 0.5 * size, 0.5, read if lower else read.T).astype(a.dtype)


def _apart(w: Any, sign: int) -> Any:
    error = 4 * w.shape[-1] * jnp.finfo(w.dtype).eps * jnp.max(jnp.abs(w), axis=-1, initial=0)
    return ~(jnp.abs(w[..., None, :] + sign * w[..., :, None]) <= error[..., None, None])


def _mirrored(a: Any, *, lower: bool) -> Any:
    read = jnp.tri(a.shape[-1], dtype=bool)
    return jnp.where(read if lower else read.T, a, a.mT)


def _chosen(which: Any, n: int, mode: str, shape: tuple[int, ...]) -> Any:
    return _spread(jnp.clip(which, 0, n - 1) if mode == "clip" else jnp.remainder(which, n), shape)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    return jnp.broadcast_to(x, (*jnp.shape(x)[: jnp.ndim(x) - len(shape)], *shape))


OURS: dict[tuple[str, str], Callable[..., Any]] = {
    ("sorting", "_argsort"): lambda x, kind: _order(x),
    ("sorting", "_argpartition"): lambda x, kth: _order(x),
    ("sorting", "_partition_order"): lambda x, kth: _order(x),
    ("sorting", "_lexsort"): lambda *keys: jnp.lexsort(keys, axis=-1),
    ("sorting", "_find"): _find,
    ("sorting", "_bin"): lambda bins, v, right: _rowwise(lambda a, x: jnp.digitize(x, a, right=right), bins, v),
    ("sorting", "_interval"): lambda knots, x, last: jnp.clip(_find(knots, x, "right") - 1, 0, last),
    ("sorting", "_spread"): _spread,
    ("quantiles", "_order_or_nan"): _order_or_nan,
    ("array_products", "_whole"): lambda *xs, labels, out: jnp.einsum(letters(labels, out, "..."), *xs),
    ("reductions", "shares"): _shares,
    ("pair_folds", "shares"): lambda *xs, **named: _shares_along(*xs, **named),
    ("pair_folds", "folded"): lambda x, **named: _folded(x, **named),
    ("scipy_names", "_top"): partial(jnp.max, initial=-jnp.inf),
    ("matrix_ops", "_share"): _share,
    ("matrix_ops", "_apart"): _apart,
    ("traced", "as_type"): lambda x, dtype: jnp.asarray(x).astype(dtype),
    ("indexing", "_wrap"): lambda at, n: jnp.where(at < 0, at + n, at),
    ("branches", "_same"): lambda x: x,
    ("opaque", "anywhere"): lambda x: jnp.where(jnp.any(x), 0, 1),
    ("branches", "_number"): lambda pred: jnp.where(pred, 0, 1),
    ("edges", "_floats"): lambda x: x if jnp.result_type(x).kind == "f" else jnp.asarray(x).astype(float),
}
"""Discrete functions of riesz's own, by file and name."""
_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    **{"max": jnp.max, "amax": jnp.max, "min": jnp.min, "amin": jnp.min, "round": jnp.round, "around": jnp.round},
    "count_nonzero": jnp.count_nonzero,
}


def _discrete(op: Discrete) -> Callable[..., Any] | None:
    function = op.function
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", "") or ""
    if module.startswith("riesz."):
        raises = dict(op.parameters).get("mode") == "raise"
        return _chosen if name == "_chosen" and not raises else OURS.get((module.rsplit(".", 1)[-1], name))
    if isinstance(function, np.ufunc) or module.split(".")[0] == "numpy":
        same = getattr(np, name, None) is function or name in _OTHER_NAMES
        return _OTHER_NAMES.get(name) or getattr(jnp, name, None) if same else None
    return None


# -- functions with a differential: only their values are computed here ------------------------------------------------


_SEGMENTS = {"max": jax.ops.segment_max, "min": jax.ops.segment_min, "prod": jax.ops.segment_prod}


def _folded(x: Any, *, relation: Any, behind: int, title: str) -> Any:
    at, ids = _along(x, relation, behind)
    fold = partial(_SEGMENTS.get(title, jax.ops.segment_max), segment_ids=ids, num_segments=relation.target.size)
    y = fold(jnp.moveaxis(x, at, 0))
    if title == "logsumexp":
        top, rows = jnp.where(jnp.isfinite(y), y, 0.0), jnp.moveaxis(x, at, 0)
        y = jnp.log(jax.ops.segment_sum(jnp.exp(rows - top[ids]), ids, relation.target.size)) + top
    return jnp.moveaxis(y, 0, at)


def _along(x: Any, relation: Any, behind: int) -> tuple[int, Any]:
    """The axis of the source, and the target of each source."""
    return jnp.ndim(x) - behind - 1, relation.index if hasattr(relation, "index") else relation.ids


def _shares_along(x: Any, y: Any, *, relation: Any, behind: int) -> Any:
    at, ids = _along(x, relation, behind)
    hit = (jnp.moveaxis(x, at, 0) == jnp.moveaxis(y, at, 0)[ids]).astype(x.dtype)
    count = jax.ops.segment_sum(hit, ids, relation.target.size)
    return jnp.moveaxis(hit / jnp.maximum(count, 1)[ids], 0, at)


def _triangular(t: Any, b: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    named = {"lower": lower, "transpose_a": transposed, "unit_diagonal": unit}
    return jax.lax.linalg.triangular_solve(t, b, left_side=True, **named)


def _polar(a: Any, *, strict: bool) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return jnp.matmul(u if strict else u * jnp.sign(s)[..., None, :], vh, precision="highest")


def _eigh(a: Any, **named: Any) -> tuple[Any, Any]:
    return tuple(jnp.linalg.eigh(a, symmetrize_input=False, **named))


def _halved(p: Any, q: Any, *, strict: bool) -> Any:
    product = partial(jnp.matmul, precision="highest")
    w, v = _eigh(p)
    sums = jnp.where(_apart(w, 1), w[..., None, :] + w[..., :, None], 0.0 if strict else jnp.inf)
    return product(v, product(product(product(v.mT, q), v) / sums, v.mT))


def _split(*xs: Any) -> tuple[Any, ...]:
    """Complex results as two parts each, real ones as they are."""
    return tuple([part for x in xs for part in ((x.real, x.imag) if jnp.iscomplexobj(x) else (x,))])


def _svd_complex(a: Any, b: Any) -> Any:
    u, s, vh = jnp.linalg.svd(a + 1j * b, full_matrices=False)
    return _split(u, s, jnp.conj(vh.mT))


def tridiagonal(ab: Any, b: Any, *, lower: int, upper: int, transposed: bool) -> Any:
    """A⁻¹b for a matrix by its diagonals in LAPACK's order."""
    none = jnp.zeros_like(ab[0])
    above, middle, below = ab[0] if upper else none, ab[upper], ab[-1] if lower else none
    if transposed:
        above, below = jnp.roll(below, 1), jnp.roll(above, -1)
    return jax.lax.linalg.tridiagonal_solve(
        jnp.roll(below, 1).at[0].set(0), middle, jnp.roll(above, -1).at[-1].set(0), b
    )


SMOOTH: dict[str, Callable[..., Any]] = {
    "extremum": lambda x, *, title, **named: (jnp.max if title == "max" else jnp.min)(x, **named),
    **dict.fromkeys(("extremum_along", "product_along", "logsumexp_along"), _folded),
    "others": lambda x, **named: products_of_others(x, **named, xp=jnp)[0],
    "solve": lambda a, b, *, transposed: jnp.linalg.solve(a.mT if transposed else a, b),
    "solve_triangular": _triangular,
    "inv": lambda a, *, strict: jnp.linalg.inv(a),
    "pinv": lambda a, *, cutoff, hermitian: jnp.linalg.pinv(a, rtol=cutoff, hermitian=hermitian),
    "cholesky": jnp.linalg.cholesky,
    "mirrored": _mirrored,
    "eigh": lambda a, *, lower, **named: _eigh(a, UPLO="L" if lower else "U"),
    "eigh_complex": lambda a, b: _split(*jnp.linalg.eigh(a + 1j * b)),
    "eig_complex": lambda a, b: _split(*jnp.linalg.eig(a + 1j * b)),
    "slogdet_complex": lambda a, b: _split(*jnp.linalg.slogdet(a + 1j * b)),
    "svd_complex": _svd_complex,
    "svd": lambda a, *, full: tuple(jnp.linalg.svd(a, full_matrices=full)),
    "polar": _polar,
    "solve_symmetric_sylvester": _halved,
    "nuclear": lambda a: jnp.sum(jnp.linalg.svd(a, compute_uv=False), axis=-1),
    "qr": lambda a, *, full: tuple(jnp.linalg.qr(a, mode="complete" if full else "reduced")),
    "det": jnp.linalg.det,
    "slogdet": lambda a: tuple(jnp.linalg.slogdet(a)),
}
"""By the name of the function; errors of NumPy (a singular matrix) are nan here."""


_NAMED = ("extremum", "extremum_along", "product_along", "logsumexp_along")
"""Those that several functions of NumPy's are, told apart by their title."""


def found(op: Any) -> Callable[..., Any] | None:
    """An op as a function of JAX arrays."""
    match op:
        case Discrete():
            function = _discrete(op)
            return None if function is None else _with(function, dict(op.parameters))
        case Ruled(smooth=smooth) if _smooth.get(smooth.name) is smooth and smooth.name in SMOOTH:
            named = {k: v for k, v in op.parameters if k != "title" or smooth.name in _NAMED}
            return _with(SMOOTH[smooth.name], named)
        case _:
            return None


def primitive(p: Primitive) -> Callable[..., Any] | None:
    """A primitive as a function of JAX arrays."""
    table = PRIMITIVES if RULES.get(p.name) is p.rule else SPECIALS if SPECIAL.get(p.name) is p.rule else {}
    return table.get(p.name)


def _with(function: Callable[..., Any], named: dict[str, Any]) -> Callable[..., Any]:
    return (lambda *xs: function(*xs, **named)) if named else function
