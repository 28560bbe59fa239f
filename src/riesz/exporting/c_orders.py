"""Extrema, orders and places in sorted arrays in C, and convolutions."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import TraceError
from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.opaque import Ruled, Strongly
from ..relations.index_sets import Seg
from ..relations.kinds import Triangular
from .c_formulas import HELPERS
from .c_program import ORDERED, C, CProgram, Ref, Shape, flat, running


def _over(
    c: CProgram, x: Shape, axis: Any, write: Callable[[list[str], Callable[[Callable[[str], None]], None]], None]
):
    """Loops over the indices of the axes that stay around what `write` writes; it is given them, with 0 along the
    others, and a function that writes loops over these others around a line for the flat place in x."""
    gone = [k % len(x) for k in (axis if isinstance(axis, tuple) else (axis,))] if x else []
    names = ["0" if k in gone else c.name("i") for k in range(len(x))]
    kept = [k for k in range(len(x)) if k not in gone]
    for k in kept:
        c.loop(names[k], x[k])

    def inner(line: Callable[[str], None]) -> None:
        whole = list(names)
        for k in gone:
            whole[k] = c.name("j")
            c.loop(whole[k], x[k])
        line(_place(whole, x))
        c.close(len(gone))

    write(names, inner)
    c.close(len(kept))


def _place(names: list[str], shape: Shape) -> str:
    text = "0"
    for name, n in zip(names, shape, strict=True):
        text = name if text == "0" else f"({text}) * {n} + {name}"
    return text


def _narrow(names: list[str], x: Shape, axis: Any) -> str:
    """The place in an array without the axes that are gone."""
    return flat(names, tuple([1 if n == "0" else k for n, k in zip(names, x, strict=True)]), x)


def _folded(c: CProgram, x: Ref, shape: Shape, axis: Any, start: str, step: str) -> Ref:
    """A fold along axes; {0} is what there is, {1} the next number."""
    found = c.new(shape)

    def write(names: list[str], inner: Any) -> None:
        at = found.at(_narrow(names, x.shape, axis))
        c.line(f"{at} = {start};")
        inner(lambda place: c.line(f"{at} = {step.format(at, x.at(place))};"))

    _over(c, x.shape, axis, write)
    return found


_FOLDS = {
    "max": ("(-(real)INFINITY)", "{0} > {1} || {0} != {0} ? {0} : {1}"),
    "min": ("(real)INFINITY", "{0} < {1} || {0} != {0} ? {0} : {1}"),
    "sum": ("0", "{0} + {1}"),
    "prod": ("1", "{0} * {1}"),
    "any": ("0", "{0} != 0 || {1} != 0"),
    "all": ("1", "{0} != 0 && {1} != 0"),
    "count_nonzero": ("0", "{0} + ({1} != 0)"),
}


def extremum(c: CProgram, xs: list[Ref], shape: Shape, axis: Any, keepdims: bool, title: str) -> Ref:
    """The largest or smallest along axes."""
    return _folded(c, xs[0], shape, axis, *_FOLDS[title])


def _fold(name: str) -> Callable[..., Ref]:
    def code(c: CProgram, xs: list[Ref], shape: Shape, axis: Any, keepdims: bool = False) -> Ref:
        return _folded(c, xs[0], shape, axis, *_FOLDS[name])

    return code


def _best(largest: bool) -> Callable[..., Ref]:
    """The first place of the largest or smallest along an axis; of the first nan, where there is one."""

    def code(c: CProgram, xs: list[Ref], shape: Shape, axis: int, keepdims: bool = False) -> Ref:
        x, found = xs[0], c.new(shape)
        step = math.prod(x.shape[axis % len(x.shape) + 1 :])

        def write(names: list[str], inner: Any) -> None:
            at, base = found.at(_narrow(names, x.shape, axis)), _place(names, x.shape)
            j, best = c.name("j"), f"{x.text}[{base} + (int){at} * {step}]"
            c.line(f"{at} = 0;")
            c.loop(j, x.shape[axis])
            this = f"{x.text}[{base} + {j} * {step}]"
            c.line(
                f"if ({this} {'>' if largest else '<'} {best} || ({this} != {this} && {best} == {best})) {at} = {j};"
            )
            c.close()

        _over(c, x.shape, axis, write)
        return found

    return code


def _shares(c: CProgram, xs: list[Ref], shape: Shape, axis: Any) -> Ref:
    """1 / k at the k places that attain an extremum."""
    x, peak = xs
    found = c.new(shape)

    def write(names: list[str], inner: Any) -> None:
        count, top = c.name("t"), peak.at(_narrow(names, x.shape, axis))
        c.line(f"real {count} = 0;")
        inner(lambda place: c.line(f"{count} += {x.at(place)} == {top};"))
        inner(lambda place: c.line(f"{found.at(place)} = {x.at(place)} == {top} ? 1 / {count} : 0;"))

    _over(c, x.shape, axis, write)
    return found


def _order(nan: int) -> Callable[..., Ref]:
    """The order of each row; `nan`: where there is a nan, its place everywhere."""

    def code(c: CProgram, xs: list[Ref], shape: Shape, kind: str = "stable") -> Ref:
        x, found, n = xs[0], c.new(shape), shape[-1]
        work, i = c.new((n,)), c.name("i")
        c.helpers.add("riesz_order")
        c.loop(i, math.prod(shape[:-1]))
        c.line(f"riesz_order({n}, {nan}, {x.text} + {i} * {n}, {work.text}, {found.text} + {i} * {n});")
        c.close()
        return found

    return code


def _found(c: CProgram, xs: list[Ref], shape: Shape, text: str) -> Ref:
    edges, x = xs
    if len(edges.shape) != 1:
        raise TraceError("places in sorted arrays that differ from row to row are not known in C; export to numpy")
    c.helpers.add("riesz_find")
    place = f"riesz_find({edges.shape[0]}, {edges.text}, {{0}}, {text}"
    return c.pointwise([x], shape, lambda t: place.format(t[0]))


def _find(c: CProgram, xs: list[Ref], shape: Shape, side: str) -> Ref:
    return _found(c, xs, shape, f"{int(side == 'right')})")


def _interval(c: CProgram, xs: list[Ref], shape: Shape, last: int) -> Ref:
    found = _found(c, xs, shape, "1) - 1")
    return c.pointwise([found], shape, lambda t: f"{t[0]} < 0 ? 0 : {t[0]} > {last} ? {last} : {t[0]}")


def _share(c: CProgram, xs: list[Ref], shape: Shape, lower: bool) -> Ref:
    """What an entry of a symmetric matrix counts."""
    n, found, i = shape[-1], c.new(shape), c.name("i")
    c.helpers.add("riesz_share")
    c.loop(i, math.prod(shape[:-2]))
    c.line(f"riesz_share({n}, {int(lower)}, {xs[0].text} + {i} * {n * n}, {found.text} + {i} * {n * n});")
    c.close()
    return found


def _cumsum(c: CProgram, xs: list[Ref], shape: Shape, axis: int) -> Ref:
    """Running sums of integers."""
    n, found = Seg(shape[axis]), c.new(shape)
    sizes = math.prod(shape[:axis]), n.size, math.prod(shape[axis:]) // max(n.size, 1)
    running(c, Triangular(n, n), xs[0], found, sizes, "=")
    return found


ORDERED["cumsum"] = _cumsum
ORDERED |= {name: _fold(name) for name in _FOLDS}
ORDERED |= {"_top": _fold("max"), "amax": _fold("max"), "amin": _fold("min"), "argmax": _best(True)}
ORDERED |= {"argmin": _best(False), "shares": _shares, "_argsort": _order(0), "_order_or_nan": _order(1)}
ORDERED |= {"_find": _find, "_interval": _interval, "_share": _share}


@C("the op; a zero annihilates what is nan", Strongly)
def _strongly(c: CProgram, op: Strongly, xs: list[Ref], shape: Shape) -> Ref:
    found, given = C.of(op.op)(c, op.op, xs, shape), xs[op.k]
    mixes = (isinstance(op.op, Ruled) and op.op.smooth.mixes) or tuple(range(len(given.shape)))
    gone = [k % len(given.shape) for k in mixes]
    some = _folded(c, given, tuple([1 if k in gone else n for k, n in enumerate(given.shape)]), mixes, *_FOLDS["any"])
    return c.pointwise([found, some], shape, lambda t: f"{t[1]} != 0 || {t[0]} == {t[0]} ? {t[0]} : 0")


@C("loops over both arrays", Convolution, ExchangedLeg)
def _convolved(c: CProgram, op: Any, xs: list[Ref], shape: Shape) -> Ref:
    x, y = xs[::-1] if isinstance(op, ExchangedLeg) else xs
    p, q, found = x.shape[-1], y.shape[-1], c.new(shape)
    names = [c.name("i") for _ in shape[:-1]]
    for name, n in zip(names, shape[:-1], strict=True):
        c.loop(name, n)

    def at(ref: Ref, last: str) -> str:
        lead = ref.shape[:-1]
        return ref.at(flat([*names[len(names) - len(lead) :], last], ref.shape, ref.shape) if lead else last)

    k, j = c.name("i"), c.name("j")
    c.loop(k, shape[-1])
    total = c.name("t")
    c.line(f"real {total} = 0;")
    if op.leg == 2:
        c.line(f"for (int {j} = {k} < {q} ? 0 : {k} - {q - 1}; {j} < {p} && {j} <= {k}; {j}++) {{")
        c.depth += 1
        parts = at(x, j), at(y, f"({k} - {j})")
    else:
        c.loop(j, q if op.leg == 0 else p)
        parts = (at(x, f"({k} + {j})"), at(y, j)) if op.leg == 0 else (at(x, j), at(y, f"({k} + {j})"))
    c.line(f"{total} += {parts[0]} * {parts[1]};")
    c.close()
    c.line(f"{at(found, k)} = {total};")
    c.close(len(names) + 1)
    return found


HELPERS |= {
    "riesz_order": """/* the order of n numbers, equal ones as they stand, nan last; work: n numbers */
static void riesz_order(int n, int nan, const real *x, real *work, real *order)
{
    for (int i = 0; i < n; i++) order[i] = (real)i;
    for (int size = 1; size < n; size *= 2) {
        for (int low = 0; low < n; low += 2 * size) {
            int middle = low + size < n ? low + size : n, high = low + 2 * size < n ? low + 2 * size : n;
            for (int i = low, j = middle, k = low; k < high; k++) {
                int right = j < high;
                if (right && i < middle) {
                    real a = x[(int)order[i]], b = x[(int)order[j]];
                    right = b < a || (a != a && b == b);
                }
                work[k] = right ? order[j++] : order[i++];
            }
        }
        for (int i = 0; i < n; i++) order[i] = work[i];
    }
    if (nan && n && x[(int)order[n - 1]] != x[(int)order[n - 1]]) {
        for (int i = 0; i < n - 1; i++) order[i] = order[n - 1];
    }
}
""",
    "riesz_find": """/* how many of n sorted numbers are below v; at most v: after */
static int riesz_find(int n, const real *x, real v, int after)
{
    int low = 0, high = n;
    while (low < high) {
        int m = (low + high) / 2;
        int below = x[m] < v || (v != v && (after || x[m] == x[m])) || (after && x[m] == v);
        if (below) low = m + 1;
        else high = m;
    }
    return low;
}
""",
    "riesz_share": """/* what the entries of n x n A count: half; one triangle counts where A is not symmetric */
static void riesz_share(int n, int lower, const real *A, real *S)
{
    real gap = 0, size = 0;
    const real eps = sizeof(real) == 4 ? (real)1.1920928955078125e-07 : (real)2.220446049250313e-16;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            gap = fmax(gap, fabs(A[i * n + j] - A[j * n + i]));
            size = fmax(size, fabs(A[i * n + j]));
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            real one = lower ? j < i : j > i;
            S[i * n + j] = i == j || gap <= sqrt(eps) * size ? (real)0.5 : one;
        }
    }
}
""",
}
