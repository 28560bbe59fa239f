"""scipy.spatial.distance: each metric is one formula along the last axis; cdist and pdist broadcast it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import as_array, holds_traced, typed
from .gamma_functions import s
from .precision import as_given, double


def _root(total: Any) -> Any:
    """√ of a sum of squares; where that is 0 the derivative is 0, as of np.linalg.norm."""
    zero = total == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, total)))


def _weighted(x: Any, w: Any) -> Any:
    return x if w is None else x * double(w)


def _sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(_weighted((u - v) ** 2, w), axis=-1)


def _euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return _root(_sqeuclidean(u, v, w))


def _cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(_weighted(np.abs(u - v), w), axis=-1)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    far = np.abs(u - v)
    return np.max(far if w is None else np.where(np.asarray(w) > 0, far, 0.0), axis=-1)


def _minkowski(u: Any, v: Any, p: float = 2, w: Any = None) -> Any:
    if p == 1:
        return _cityblock(u, v, w)
    if p == 2:
        return _euclidean(u, v, w)
    if np.isinf(p):
        return _chebyshev(u, v, w)
    total = np.sum(_weighted(np.abs(u - v) ** p, w), axis=-1)
    zero = total == 0
    return np.where(zero, 0.0, np.where(zero, 1.0, total) ** (1.0 / p))


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    products = [np.sum(_weighted(a * b, w), axis=-1) for a, b in ((u, v), (u, u), (v, v))]
    return 1.0 - products[0] / np.sqrt(products[1] * products[2])


def _correlation(u: Any, v: Any, w: Any = None) -> Any:
    whole = np.shape(u)[-1] if w is None else np.sum(double(w))
    centred = [x - np.sum(_weighted(x, w), axis=-1, keepdims=True) / whole for x in (u, v)]
    return _cosine(centred[0], centred[1], w)


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    size = np.abs(u) + np.abs(v)
    none = size == 0
    return np.sum(_weighted(np.where(none, 0.0, np.abs(u - v) / np.where(none, 1.0, size)), w), axis=-1)


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(_weighted(np.abs(u - v), w), axis=-1) / np.sum(_weighted(np.abs(u + v), w), axis=-1)


def _seuclidean(u: Any, v: Any, V: Any = None) -> Any:
    return _root(np.sum((u - v) ** 2 / double(V), axis=-1))


def _mahalanobis(u: Any, v: Any, VI: Any = None) -> Any:
    y = u - v
    return _root(np.sum((y @ double(VI)) * y, axis=-1))


def _jensenshannon(p: Any, q: Any, base: Any = None) -> Any:
    p, q = [x / np.sum(x, axis=-1, keepdims=True) for x in (p, q)]
    m = 0.5 * (p + q)
    total = np.sum(s.rel_entr(p, m), axis=-1) + np.sum(s.rel_entr(q, m), axis=-1)
    return _root(0.5 * total if base is None else 0.5 * total / np.log(base))


METRICS: dict[str, Callable[..., Any]] = {
    "euclidean": _euclidean,
    "sqeuclidean": _sqeuclidean,
    "cityblock": _cityblock,
    "chebyshev": _chebyshev,
    "minkowski": _minkowski,
    "cosine": _cosine,
    "correlation": _correlation,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "seuclidean": _seuclidean,
    "mahalanobis": _mahalanobis,
    "jensenshannon": _jensenshannon,
}
_SHORT = """l2=euclidean e=euclidean eu=euclidean sqe=sqeuclidean l1=cityblock manhattan=cityblock c=cityblock
cb=cityblock linf=chebyshev ch=chebyshev cos=cosine co=correlation mi=minkowski m=minkowski js=jensenshannon
mahal=mahalanobis mah=mahalanobis se=seuclidean"""
_OTHER_NAMES = {short: name for short, _, name in [pair.partition("=") for pair in _SHORT.split()]}


def _metric(metric: Any, function: str) -> Callable[..., Any]:
    if callable(metric):
        name = getattr(metric, "__name__", "")
        return METRICS[name] if name in METRICS and "scipy" in (getattr(metric, "__module__", "") or "") else metric
    name = _OTHER_NAMES.get(str(metric).lower(), str(metric).lower())
    if name not in METRICS:
        known = ", ".join(METRICS)
        raise refuse(f"{function} with metric={metric!r} is not known to riesz for traced arrays; there are {known}")
    return METRICS[name]


def _tables(*xs: Any) -> list[Any]:
    found = [double(x) for x in xs]
    for x, name in zip(found, ("XA", "XB"), strict=False):
        if np.ndim(x) != 2:
            raise ValueError(f"{name} must be a 2-dimensional array.")
    if len(found) == 2 and np.shape(found[0])[1] != np.shape(found[1])[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return found


def _filled(metric: Any, options: dict[str, Any], tables: list[Any]) -> dict[str, Any]:
    """Variances and covariances that are not given are those of all the rows."""
    missing = {_seuclidean: "V", _mahalanobis: "VI"}.get(metric)
    if missing is None or options.get(missing) is not None:
        return {k: v for k, v in options.items() if v is not None}
    rows = np.concatenate(tables) if len(tables) > 1 else tables[0]
    if metric is _seuclidean:
        return {**options, "V": np.var(rows, axis=0, ddof=1)}
    return {**options, "VI": np.linalg.inv(np.atleast_2d(np.cov(rows.T))).T}


def _between(metric: Any, a: Any, b: Any, options: dict[str, Any]) -> Any:
    if metric in METRICS.values():
        return metric(a, b, **options)
    rows = [metric(u, v, **options) for u, v in zip(a, b, strict=True)]  # the user's own, on vectors
    return np.stack(rows) if rows else np.zeros(0)


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """The distances between the rows of two matrices."""
    a, b = _tables(XA, XB)
    found = _metric(metric, "scipy.spatial.distance.cdist")
    options = _filled(found, options, [a, b])
    if found in METRICS.values():
        result = found(a[:, None, :], b[None, :, :], **options)
    else:
        i, j = [k.ravel() for k in np.indices((np.shape(a)[0], np.shape(b)[0]))]
        result = np.reshape(_between(found, a[i], b[j], options), (np.shape(a)[0], np.shape(b)[0]))
    return _into(out, result)


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """The distances between the rows of one matrix, each pair once."""
    (x,) = _tables(X)
    found = _metric(metric, "scipy.spatial.distance.pdist")
    i, j = np.triu_indices(np.shape(x)[0], 1)
    return _into(out, _between(found, x[i], x[j], _filled(found, options, [x])))


def _into(out: Any, result: Any) -> Any:
    if out is not None:
        out[...] = result
        return out
    return result


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """A vector of pairs as a symmetric matrix with zeros on the diagonal, or back."""
    x = as_array(X)
    if np.ndim(x) == 1 and force.lower() != "tovector":
        n = int(np.ceil(np.sqrt(2 * np.shape(x)[0]))) or 1
        if n * (n - 1) != 2 * np.shape(x)[0]:
            raise ValueError(
                "Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2."
            )
        places = np.zeros((n, n), int)
        places[np.triu_indices(n, 1)] = np.arange(1, np.shape(x)[0] + 1)
        return np.concatenate([np.zeros(1, x.dtype), x])[places + places.T]
    if np.ndim(x) == 2 and force.lower() != "tomatrix":
        return x[np.triu_indices(np.shape(x)[0], 1)]
    raise ValueError("The first argument must be one or two dimensional array.")


_IN_GIVEN_TYPE = {"sqeuclidean", "cityblock", "chebyshev", "minkowski", "cosine", "correlation", "jensenshannon"}


def _of_vectors(name: str) -> Callable[..., Any]:
    metric = METRICS[name]

    def distance(u: Any, v: Any, *args: Any, **named: Any) -> Any:
        keep = named.pop("keepdims", False)
        axis = named.pop("axis", 0 if name == "jensenshannon" else -1)
        given = u, v
        u, v = double(u), double(v)
        if name == "jensenshannon":
            u, v = np.moveaxis(u, axis, -1), np.moveaxis(v, axis, -1)
        elif np.ndim(u) != 1 or np.ndim(v) != 1:
            raise ValueError("Input vector should be 1-D.")
        found = metric(u, v, *args, **named)
        found = as_given(found, *given) if name in _IN_GIVEN_TYPE else found
        return np.expand_dims(found, axis) if keep else typed(found, False) if holds_traced(found) else found

    return distance


def distance_matrix(x: Any, y: Any, p: float = 2, threshold: int = 1000000) -> Any:
    """As scipy.spatial.distance_matrix."""
    return _minkowski(double(x)[:, None, :], double(y)[None, :, :], p)


_WHAT, _RULE = "differences of rows, by broadcasting", "that of the formula; 0 where a root is taken of 0"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "cdist": (cdist, _WHAT, _RULE),
    "pdist": (pdist, _WHAT, _RULE),
    "squareform": (squareform, "relational reduction: a gather", "the same on dx"),
    **{name: (_of_vectors(name), "a formula of two vectors", _RULE) for name in METRICS},
}
SPATIAL = {"distance_matrix": (distance_matrix, _WHAT, _RULE)}
