"""Numbers added up in bins: np.bincount and histograms, with bins that are fixed or depend on the numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....ops.op import Reduction
from ....ops.opaque import Put
from ....relations import Gather, freeze
from ....relations.index_sets import Seg
from ...deciding import whole_number
from ...registry import answers
from ...trace import refuse
from ...traced import FLOAT, INT, Traced, convert, lifted, slot_of, step, tidy, trace_of
from ..elementwise import unmoving


def added(values: Any, at: Any, n: int) -> Any:
    """Values added up at computed places."""
    trace = trace_of(values, at)
    kind = values.dtype
    slots = slot_of(trace, values, kind), slot_of(trace, at, at.dtype)
    return Traced(trace, trace.step(Put(0, 0, 1, n), slots), kind)


def _totals(at: Any, weights: Any, n: int) -> Any:
    """Weights (None: ones, counted as integers) added up at n places, fixed or computed."""
    counted = weights is None
    w: Any = np.ones(np.shape(at)) if counted else weights
    if type(at) is Traced:
        total = added(w if type(w) is Traced else np.asarray(w, FLOAT), at, n)
    elif not np.size(at):
        total = lifted(np.zeros(n), trace_of(w))
    else:
        places = freeze(np.asarray(at, np.intp))
        total = step(Reduction((Gather(Seg(n), Seg(len(places)), places).converse,), 0), w)
    return convert(total, INT) if counted else total


def _counted(x: Any) -> Any:
    if np.any(np.asarray(x) < 0):
        raise ValueError("'list' argument must have no negative elements")
    return x


_BINS = "relational reduction: weights added up per bin"


@answers(np.bincount, what=_BINS, rule="the same of the weights' differential")
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    x = tidy(x)
    if type(x) is Traced:
        if x.ndim != 1:
            raise ValueError("object of too small depth for desired array" if not x.ndim else "object too deep")
        if x.dtype.kind not in "iub":
            raise TypeError(
                "Cannot cast array data from dtype('float64') to dtype('int64') according to the rule 'safe'"
            )
        at, n = unmoving(_counted, INT, x), max(whole_number(np.max(x)) + 1 if x.size else 0, operator.index(minlength))
    else:
        at = np.asarray(x, np.intp)
        n = max(int(at.max(initial=-1)) + 1, operator.index(minlength))
    if weights is None:
        return _totals(at, None, n)
    w = tidy(weights)
    w = convert(lifted(w, trace_of(at, w)), FLOAT)
    if w.shape != at.shape:
        raise ValueError("The weights and list don't have the same length.")
    return _totals(at, w, n)


# -- histograms -------------------------------------------------------------------------------------------


def _edges(a: Any, bins: Any, span: Any) -> Any:
    """The edges of bins: given, or so many equal ones between the ends."""
    if isinstance(bins, str):
        raise refuse(
            f"np.histogram with bins={bins!r} has a number of bins that depends on the numbers; give a number or "
            "edges, as np.histogram_bin_edges of fixed data gives them: bins=10"
        )
    bins = tidy(bins)
    if np.ndim(bins):
        return bins
    if span is not None:
        low, high = span
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
    elif not np.size(a):
        low, high = 0.0, 1.0
    else:
        low, high = np.min(a), np.max(a)
    same = low == high
    low, high = np.where(same, low - 0.5, low), np.where(same, high + 0.5, high)
    return np.linspace(low, high, operator.index(bins) + 1)


def _places(a: Any, edges: Any) -> tuple[Any, Any]:
    """Which bin each number is in, and whether it is in any; the last edge belongs to the last bin."""
    n = len(edges) - 1
    at = np.where(a == edges[-1], n - 1, np.searchsorted(edges, a, side="right") - 1)
    inside = (at >= 0) & (at < n)
    return np.where(inside, at, 0), inside


def _weighed(at: Any, inside: Any, weights: Any, n: int) -> Any:
    w: Any = None if weights is None else np.ravel(tidy(weights))
    if type(at) is not Traced and type(w) is Traced:
        return _totals(at[inside], w[np.flatnonzero(inside)], n)
    if w is None:
        return _totals(at, np.where(inside, 1.0, 0.0), n).astype(int)
    return _totals(at, np.where(inside, w, 0.0), n)


_COUNT = "weights added up per bin; counts are discrete"
_COUNTS = "that of the weights and of the edges; positions have none"


@answers(np.histogram, what=_COUNT, rule=_COUNTS)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    a = np.ravel(tidy(a))
    if weights is not None and np.size(tidy(weights)) != a.size:
        raise ValueError("weights should have the same shape as a.")
    edges = _edges(a, bins, range)
    total = _weighed(*_places(a, edges), weights, len(edges) - 1)
    return (total / np.diff(edges) / np.sum(total) if density else total), edges


@answers(np.histogram_bin_edges, what="a range between the ends", rule="that of the ends")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _edges(np.ravel(tidy(a)), bins, range)


@answers(np.histogramdd, what=_COUNT, rule=_COUNTS)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    sample = tidy(sample) if not isinstance(sample, (list, tuple)) else np.stack(sample, axis=-1)
    sample = sample if sample.ndim > 1 else sample[:, None]
    columns = [sample[:, k] for k in np.arange(sample.shape[1])]
    each = [bins] * len(columns) if np.ndim(bins) == 0 else list(bins)
    if len(each) != len(columns):
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    spans = [None] * len(columns) if range is None else range
    edges = [_edges(c, b, r) for c, b, r in zip(columns, each, spans, strict=True)]
    shape = tuple([len(e) - 1 for e in edges])
    at, inside = 0, True
    for column, e, n in zip(columns, edges, shape, strict=True):
        place, within = _places(column, e)
        at, inside = at * n + place, np.logical_and(inside, within)
    total = np.reshape(_weighed(at, inside, weights, int(np.prod(shape))), shape).astype(float)
    if density:
        total = total / np.sum(total)
        for k, e in enumerate(edges):
            total = total / np.reshape(np.diff(e), [-1 if j == k else 1 for j in np.arange(len(shape))])
    return total, edges


@answers(np.histogram2d, what=_COUNT, rule=_COUNTS)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    x, y = tidy(x), tidy(y)
    if np.size(x) != np.size(y):
        raise ValueError("x and y must have the same length.")
    if np.ndim(bins) == 1 and len(bins) not in (1, 2):
        bins = [bins, bins]
    total, edges = histogramdd([x, y], bins, range, density, weights)
    return total, edges[0], edges[1]
