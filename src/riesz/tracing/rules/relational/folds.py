"""Maximum, minimum, product, ln Σ exp and mean along a relation: y_y = max over (x, y) ∈ R of v_x, and so on.

A fold runs along a relation in which each source has one target. Another relation is first gathered, pair by pair.
Differentials are reductions again: dy = red_R (w ⊛ dv), with shares, products of the others or softmax as w.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ....errors import RelationError
from ....ops.op import Reduction
from ....ops.opaque import Ruled, Smooth
from ....programs.program import Program
from ....relations import Diagonal, Full, Function, Relation, Segments, freeze
from ....relations.compound import Both
from ....relations.cpu.pair_folds import folded, folded_shape, products_of_others, shares
from ....relations.index_sets import Seg, boxes
from ...differentials import chosen
from ...registry import by_name
from ...trace import Trace, refuse
from ...traced import Traced, convert, lifted, slot_of, step
from ..elementwise import floating, unmoving
from ..gathering import along
from ..rearranging import axes_of, broadcast_to, concatenate, reshape

MOST_PAIRS = 1 << 28


def fold(x: Traced, relation: Relation, how: str, axis: int) -> Any:
    """A fold along one axis, which has the elements of the source in order."""
    ours = how in UNMOVING and x.dtype.kind != "f"
    x = x if ours else floating(x)
    match relation:
        case Diagonal():
            return x
        case Both(first=Relation() as first, second=Diagonal(source=rest)):
            return _inside(x, first, how, axis, (first.source.size, rest.size), axis)
        case Both(first=Diagonal(source=rest), second=Relation() as second):
            return _inside(x, second, how, axis, (rest.size, second.source.size), axis + 1)
        case Full(target=target) if target.size != 1:
            small = fold(x, Full(relation.source, Seg(1), relation.times), how, axis)
            return broadcast_to(small, (*x.shape[:axis], target.size, *x.shape[axis + 1 :]))
        case _:
            pass
    if how == "sum":
        return _reduced(x, relation, axis)
    if how == "mean":
        return _mean(x, relation, axis)
    x, onto = _gathered(x, relation, axis)
    if type(x) is not Traced:  # of nothing
        return folded(x, relation=onto, behind=x.ndim - axis - 1, title=how)
    parameters = ("relation", onto), ("behind", x.ndim - axis - 1), ("title", how)
    if ours:
        return unmoving(folded, x.dtype, x, shaped=_unmoving_shape, **dict(parameters))
    return step(Ruled(_SMOOTH[how], parameters), x)


UNMOVING = ("max", "min", "prod")
"""Folds of whole numbers."""


def _inside(x: Traced, relation: Relation, how: str, axis: int, sizes: tuple[int, int], at: int) -> Any:
    """A fold along one of two axes that are one axis here."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    found = fold(reshape(x, (*before, *sizes, *after)), relation, how, at)
    return reshape(found, (*before, found.shape[axis] * found.shape[axis + 1], *after))


def _reduced(x: Any, relation: Relation, axis: int) -> Any:
    """red_R along one axis."""
    source, target = relation.source.box, relation.target.box
    if source is None or target is None:
        x, relation = _gathered(x, relation, axis)
        source, target = relation.source.box, relation.target.box
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    found = step(Reduction((relation,), axis), reshape(x, (*before, *(source or ()), *after)))
    return reshape(found, (*before, relation.target.size, *after))


def _mean(x: Any, relation: Relation, axis: int) -> Any:
    count = np.reshape(relation.in_degrees, (-1, *(1,) * (x.ndim - axis - 1))).astype(x.dtype)
    found = _reduced(x, relation, axis) * (1 / np.maximum(count, 1)).astype(x.dtype)
    return found if count.all() else found + np.where(count, 0, np.nan).astype(x.dtype)


def _gathered(x: Any, relation: Relation, axis: int) -> tuple[Any, Relation]:
    """The sources pair by pair, each as often as it counts, and the function from pairs to targets."""
    single = isinstance(relation, Function) or (isinstance(relation, Segments) and not relation.turned)
    if single and relation.source.box is not None and relation.target.box is not None:
        return x, relation
    known = cast("dict[str, Any]", relation.__dict__)
    if "_pair_by_pair" not in known:
        if relation.count > MOST_PAIRS:
            raise RelationError(
                f"{relation} holds {relation.count:,} pairs; a maximum, minimum, product or logsumexp goes through all "
                f"of them, at most {MOST_PAIRS:,}. Running ones are np.maximum.accumulate, np.cumprod, "
                "np.logaddexp.accumulate"
            )
        rows, cols, times = relation.pairs()
        if not (times == 1).all():
            rows, cols = np.repeat(rows, times), np.repeat(cols, times)
        onto = Function(Seg(len(rows)), Seg(relation.target.size), freeze(np.asarray(cols, np.intp)))
        known["_pair_by_pair"] = rows, onto
    rows, onto = known["_pair_by_pair"]
    return along(x, axis, rows), onto


def _unmoving_shape(shapes: Any, parameters: dict[str, Any]) -> Any:
    return folded_shape(shapes[0], **parameters)


# -- differentials ----------------------------------------------------------------------------------------


def _back(y: Any, relation: Any, axis: int) -> Any:
    """The value at the target of each source."""
    return along(y, axis, relation.index if isinstance(relation, Function) else relation.ids)


def _extremum(d: Any, y: Any, x: Any, *, relation: Relation, behind: int, title: str) -> Any:
    """The differential of the sources that attain it, in equal shares for each pair."""
    part = unmoving(shares, x.dtype, x, y, shaped=_first_shape, relation=relation, behind=behind)
    return _reduced(chosen(part, d[0]), relation, x.ndim - behind - 1)


def _first_shape(shapes: Any, parameters: dict[str, Any]) -> Any:
    return shapes[0]


def _product(d: Any, y: Any, x: Any, *, relation: Relation, behind: int, title: str) -> Any:
    """Each differential with the product of the others."""
    rest = step(Ruled(_OTHERS, (("relation", relation), ("behind", behind))), x)
    return _reduced(rest * d[0], relation, x.ndim - behind - 1)


def _others_differential(d: Any, y: Any, x: Any, **parameters: Any) -> Any:
    return products_of_others(x, d[0], **parameters)[1]


def _others_shape(shape: Any, **_: Any) -> Any:
    return shape


def _log_sum(d: Any, y: Any, x: Any, *, relation: Relation, behind: int, title: str) -> Any:
    """softmax on dx; 0 where all is −∞."""
    axis = x.ndim - behind - 1
    weight = np.exp(x - _back(np.where(y == -np.inf, 0.0, y), relation, axis))
    return _reduced(weight * d[0], relation, axis)


def _others(x: Any, **parameters: Any) -> Any:
    return products_of_others(np.asarray(x), **parameters)[0]


_OTHERS = Smooth("others", _others, _others_shape, _others_differential, linear_time=True)


def _smooth(how: str, differential: Any) -> Smooth:
    return Smooth(f"{how}_along", folded, folded_shape, differential, linear_time=True)


_SMOOTH = {
    "max": (_extreme := _smooth("extremum", _extremum)),
    "min": _extreme,
    "prod": _smooth("product", _product),
    "logsumexp": _smooth("logsumexp", _log_sum),
}


# -- between indices --------------------------------------------------------------------------------------


_BETWEEN = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logaddexp: "logsumexp"}


@by_name
def reduceat(ufunc: Any, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """np.add.reduceat and its kin: from each index to the next one; alone where the next one is not larger."""
    if ufunc not in _BETWEEN:
        known = ", ".join([f"np.{f.__name__}" for f in _BETWEEN])
        raise refuse(f"np.{ufunc.__name__}.reduceat is not known to riesz for traced arrays; reduceat of {known} is")
    x = lifted(array) if dtype is None else convert(lifted(array), np.dtype(dtype))
    (at,), starts = axes_of(axis, x.ndim), np.asarray(indices, np.intp)
    n = x.shape[at]
    if starts.size and not 0 <= starts.min() <= starts.max() < n:
        wrong = starts[(starts < 0) | (starts >= n)][0]
        raise IndexError(f"index {wrong} out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")
    if x.dtype.kind != "f":
        kind = ufunc.reduceat(np.zeros(1, x.dtype), [0]).dtype
        given = {"ufunc": ufunc, "indices": freeze(starts), "along": at - x.ndim}
        return unmoving(_numbers_between, kind, x, shaped=_shape_between, **given)
    lengths = np.maximum(np.diff(starts, append=n), 1)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    relation = Segments(Seg(len(rows)), Seg(len(starts)), freeze(offsets), False)
    return fold(along(x, at, rows), relation, _BETWEEN[ufunc], at)


def _numbers_between(x: Any, *, ufunc: Any, indices: Any, along: int) -> Any:
    return ufunc.reduceat(x, indices, axis=along)


def _shape_between(shapes: Any, parameters: dict[str, Any]) -> Any:
    at = len(shapes[0]) + parameters["along"]
    return (*shapes[0][:at], len(parameters["indices"]), *shapes[0][at + 1 :])


# -- as a program -----------------------------------------------------------------------------------------


def fold_program(relation: Relation, how: str, lead: tuple[int, ...], shape: tuple[int, ...]) -> Program:
    """The fold of arrays over the boxes of the source, with leading axes and axes behind, to those of the target."""
    known: dict[Any, Program] = cast(Any, relation.__dict__).setdefault("_fold_programs", {})
    if (how, lead, shape) not in known:
        with Trace(how) as trace:
            source, axis = boxes(relation.source), len(lead)
            xs = [Traced(trace, trace.input((*lead, *(box.box or ()), *shape))) for box, _ in source]
            flat: list[Any] = [reshape(x, (*lead, b.size, *shape)) for x, (b, _) in zip(xs, source, strict=True)]
            flat = flat or [lifted(np.zeros((*lead, 0, *shape)), trace)]
            whole = flat[0] if len(flat) == 1 else concatenate(flat, axis)
            order = [at for _, at in source if at is not None]
            whole = along(whole, axis, np.argsort(np.concatenate(order))) if order else whole
            found = fold(whole, relation, how, axis)
            parts: list[int] = []
            for box, at in boxes(relation.target):
                part = found if at is None else along(found, axis, at)
                part = reshape(part, (*lead, *(box.box or ()), *shape))
                parts.append(slot_of(trace, part, part.dtype))
        known[how, lead, shape] = trace.prune([x.slot for x in xs], parts)
    return known[how, lead, shape]
