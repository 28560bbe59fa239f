"""np.add.at and its kin, and positions that depend on the numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...ops.op import Reduction
from ...relations import Function, freeze
from ...relations.index_sets import Seg
from ..registry import BY_NAME
from ..rules.relational.bins import added
from ..rules.relational.folds import fold
from ..sharing import SUMS, writable
from ..trace import inmost, refuse
from ..traced import TRACED, Traced, convert, lifted, tidy
from .masked import MaskedPart
from .noted_sums import add_at, allowed
from .waiting import added_slot
from .written import WrittenArray, bare, bare_all, is_traced, settled


def places_in(x: Any, key: Any) -> Any:
    """The places in x, by rows, of x[key] with positions that depend on the numbers."""
    parts = settled(key if type(key) is tuple else (key,))
    if any([type(k) is Traced and k.dtype.kind == "b" for k in parts]):
        raise refuse("x[key] = … with a mask that depends on the numbers beside positions is not known; use np.where")
    numbered = np.arange(x.size).reshape(x.shape)
    return lifted(numbered, cast(Any, inmost()))[parts if type(key) is tuple else parts[0]]


def put_places(x: Any, at: Any, value: Any) -> None:
    """x.flat[at] = value at computed places; where one comes up twice, the last counts."""
    flat, shape, at = np.ravel(settled(x)), at.shape, np.ravel(at)
    if np.ndim(value):
        value = np.ravel(np.broadcast_to(tidy(value), shape))
        order = np.argsort(at, kind="stable")
        at, value = at[order], value[order]
        last = np.concatenate([at[1:] != at[:-1], np.ones(min(1, at.size), bool)])
        value = added(np.where(last, value, np.zeros((), x.dtype)), at, x.size)
    touched = added(np.ones(at.shape), at, x.size) > 0
    x[...] = np.reshape(np.where(touched, value, flat), x.shape)


def at_positions(ufunc: Any, x: Any, key: Any, values: Any = None) -> None:
    """np.add.at and its kin: each position as often as it comes up."""
    if not is_traced((x, key, values)):
        ufunc.at(bare_all(x), bare(key), *(() if values is None else (settled(values),)))
        return
    if is_traced(key):
        return _at_computed(ufunc, x, key, values)
    if ufunc in SUMS and values is not None and _sums_noted(ufunc, x, bare(key), tidy(settled(values))):
        return
    positions = np.arange(x.size).reshape(x.shape)[bare(key)]
    touched, group = np.unique(positions, return_inverse=True)
    group = group.reshape(-1)
    at = np.unravel_index(touched, x.shape)
    if values is None:
        return _in_turn(ufunc, x, positions.ravel(), None)
    given = np.ravel(np.broadcast_to(tidy(settled(values)), positions.shape))
    if len(touched) == positions.size:  # each position once
        x[at] = ufunc(x[at], given[np.argsort(group)])
    elif ufunc in SUMS:
        total = _summed(convert(given, x.dtype), group, len(touched))
        x[at] = ufunc(x[at], total)
    elif ufunc is np.divide:
        x[at] = x[at] / _folded("prod", given, group, len(touched))
    elif ufunc in _FOLDS:  # what is there and what comes are one group: ties share equally
        both = np.concatenate([x[at], convert(given, x.dtype)])
        x[at] = _folded(_FOLDS[ufunc], both, np.concatenate([np.arange(len(touched)), group]), len(touched))
    else:
        _in_turn(ufunc, x, positions.ravel(), given)


def _in_turn(ufunc: Any, x: Any, positions: Any, given: Any) -> None:
    """One time after the other, as NumPy does it: the first time a position comes up, then the second."""
    order = np.argsort(positions, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(positions[order]) != 0])
    turn = np.empty(len(order), np.intp)
    turn[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    for k in range(int(turn.max(initial=-1)) + 1):
        now = np.flatnonzero(turn == k)
        at = np.unravel_index(positions[now], x.shape)
        x[at] = ufunc(x[at]) if given is None else ufunc(x[at], given[now])


def _sums_noted(ufunc: Any, x: Any, key: Any, value: Any) -> bool:
    """Whether np.add.at of real numbers is noted as a sum."""
    real = type(value) is Traced or (type(value) not in TRACED and np.asarray(value).dtype.kind in "fiub")
    if x.dtype.kind != "f" or not real or not np.size(x):
        return False
    if type(x) is WrittenArray:
        if x.home.owner.dtype != x.dtype:
            return False
        trace = allowed(x, True)
    else:
        trace = writable(x)
    shape = np.arange(x.size).reshape(x.shape)[key].shape
    if np.broadcast_shapes(np.shape(value), shape) != shape:
        return False  # NumPy's own error
    add_at(x, key, added_slot(trace, (ufunc, value), x.dtype), trace)
    return True


def _at_computed(ufunc: Any, x: Any, key: Any, values: Any) -> None:
    if ufunc not in SUMS and ufunc is not np.divide and ufunc not in _FOLDS:
        known = ", ".join([f"np.{f.__name__}.at" for f in (*SUMS, np.divide, *_FOLDS)])
        raise refuse(f"np.{ufunc.__name__}.at at positions that depend on the numbers is not known; {known} are")
    k = settled(key)
    if type(k) is MaskedPart or (type(k) is Traced and k.dtype.kind == "b"):  # each position once
        x[k] = ufunc(x[k], settled(values))
        return
    at = places_in(x, key)
    given = np.ravel(np.broadcast_to(tidy(settled(values)), at.shape))
    given = convert(lifted(given, cast(Any, inmost())), x.dtype)
    if ufunc in SUMS:
        x[...] = ufunc(settled(x), np.reshape(added(given, np.ravel(at), x.size), x.shape))
        return
    given = 1.0 / given if ufunc is np.divide else given
    folded = _folded_at(np.multiply if ufunc is np.divide else ufunc, np.ravel(settled(x)), np.ravel(at), given)
    x[...] = np.reshape(folded, x.shape)


def _folded_at(ufunc: Any, x: Any, at: Any, given: Any) -> Any:
    """x[at[i]] = ufunc(x[at[i]], given[i]) for computed positions, one after the other: x and what comes, sorted by
    position, and combined in rounds that reach twice as far each time."""
    n = len(x)
    where, values = np.concatenate([np.arange(n), at]), np.concatenate([lifted(x, cast(Any, inmost())), given])
    order = np.argsort(where, kind="stable")
    where, values = where[order], values[order]
    found, far = values, 1
    while far < len(where):
        same = where[far:] == where[:-far]
        found = np.concatenate([found[:far], np.where(same, ufunc(found[:-far], found[far:]), found[far:])])
        far *= 2
    found = found[np.searchsorted(where, np.arange(n), "right") - 1]
    if ufunc is not np.maximum and ufunc is not np.minimum:
        return found
    best = np.where(values == found[where], 1.0, 0.0)  # ties share equally
    share = best / added(best, where, n)[where]
    return added(np.where(best > 0, values, 0.0) * share, where, n)


_FOLDS = {np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logaddexp: "logsumexp"}


def _folded(how: str, values: Any, group: Any, n: int) -> Any:
    relation = Function(Seg(len(group)), Seg(n), freeze(np.asarray(group, np.intp)))
    return fold(lifted(values), relation, how, 0)


def _summed(values: Any, group: Any, n: int) -> Any:
    """Sums of values by group."""
    if type(values) is not Traced:
        if type(values) not in TRACED:
            return np.bincount(group, values, n)
        return BY_NAME["joined"](*[None if v is None else _summed(v, group, n) for v in BY_NAME["parts_of"](values)])
    relation = Function(Seg(len(group)), Seg(n), freeze(np.asarray(group, np.intp)))
    trace = values.home
    return Traced(trace, trace.step(Reduction((relation,), 0), (values.slot,)), values.dtype)
