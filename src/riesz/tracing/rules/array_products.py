"""Products: every one of them a labelled contraction."""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any, cast

import numpy as np

from ...ops.op import Contraction, Reduction, contraction
from ...ops.opaque import Discrete
from ...relations import Function, Gather, freeze
from ...relations.index_sets import Seg
from ..traced import Traced, answers, convert, lifted, operands, result_dtype, step, tidy
from .elementwise import is_discrete
from .rearranging import axes_of, moveaxis

PRODUCT = "contraction"
RULE = "one summand per factor"


def contracted(
    labels: tuple[tuple[int, ...], ...], out: tuple[int, ...], *xs: Any, extra: dict[int, int] | None = None
) -> Traced:
    """A contraction of arrays; axes of size 1 against longer ones get labels of their own."""
    whole = is_discrete(xs[0]) and all([is_discrete(x) for x in xs])
    if whole and len(set(out)) < len(out):
        return _spread_out(labels, out, xs)
    trace, slots, dtype, _ = operands(*xs, floating=not whole)
    shapes = tuple([trace.shapes[s] for s in slots])
    op = _fitted(labels, shapes, out, tuple(extra.items()) if extra else ())
    if whole:  # integers: exact, and without a derivative
        return Traced(
            trace, trace.step(Discrete(_whole, (("labels", labels), ("out", out)), _whole_shape), slots), dtype
        )
    return Traced(trace, trace.step(op, slots), dtype)


def _spread_out(labels: tuple[tuple[int, ...], ...], out: tuple[int, ...], xs: tuple[Any, ...]) -> Traced:
    """A contraction of integers with a label twice in its result: products with the identity."""
    sizes = {k: n for x, ls in zip(xs, labels, strict=True) for k, n in zip(ls, np.shape(x), strict=True)}
    kept: list[int] = []
    for k in out:
        if k in kept:
            new = max(*sizes, *kept) + 1
            labels, xs = (*labels, (k, new)), (*xs, np.eye(sizes[k], dtype=result_dtype([tidy(x) for x in xs])[0]))
            sizes[new], k = sizes[k], new
        kept.append(k)
    return contracted(labels, tuple(kept), *xs)


@lru_cache(maxsize=4096)
def _fitted(
    labels: tuple[tuple[int, ...], ...],
    shapes: tuple[tuple[int, ...], ...],
    out: tuple[int, ...],
    extra: tuple[Any, ...],
) -> Contraction:
    """The contraction for arrays of these shapes."""
    sizes: dict[int, int] = {}
    for ls, shape in zip(labels, shapes, strict=True):
        if len(set(zip(ls, shape, strict=True))) > len(set(ls)):
            raise ValueError(f"a diagonal needs axes of one length; got an array of shape {shape}")
        for label, n in zip(ls, shape, strict=True):
            known = sizes.setdefault(label, n)
            if known != n:
                if 1 not in (known, n):
                    raise ValueError(
                        f"operands do not fit together: axes of length {known} and {n} meet (shapes "
                        f"{', '.join(map(str, shapes))})"
                    )
                sizes[label] = max(known, n) if min(known, n) == 1 else min(known, n)
    fresh = max([0, *sizes, *out]) + 1
    renamed: list[tuple[int, ...]] = []
    for ls, shape in zip(labels, shapes, strict=True):
        row: list[int] = []
        for label, n in zip(ls, shape, strict=True):
            if n == sizes[label]:
                row.append(label)
            else:
                row.append(fresh)
                fresh += 1
        renamed.append(tuple(row))
    return contraction(tuple(renamed), out, dict(extra))


def _whole(*xs: Any, labels: Any, out: Any) -> Any:
    names = {k: i for i, k in enumerate(dict.fromkeys([k for ls in (*labels, out) for k in ls]))}
    given: list[Any] = [part for x, ls in zip(xs, labels, strict=True) for part in (x, [..., *[names[k] for k in ls]])]
    return cast(Any, np.einsum)(*given, [..., *[names[k] for k in out]])


def _whole_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    labels, out = parameters["labels"], parameters["out"]
    lead = np.broadcast_shapes(*[s[: len(s) - len(ls)] for s, ls in zip(shapes, labels, strict=True)])
    sizes: dict[int, int] = {}
    for s, ls in zip(shapes, labels, strict=True):
        for n, k in zip(s[len(s) - len(ls) :], ls, strict=True):
            sizes[k] = max(n, sizes.get(k, 1)) if n != 0 else 0
    return (*lead, *[sizes[k] for k in out])


@answers(np.matmul, what=PRODUCT, rule=RULE)
def matmul(a: Any, b: Any) -> Traced:
    if type(a) is type(b) is Traced:
        return contracted(*_matrix_labels(a.shape, b.shape), a, b)
    if is_sparse(a):
        return sparse_product(a, lifted(b))
    if is_sparse(b):
        return moveaxis(sparse_product(b.T, moveaxis(lifted(a), -1, 0)), 0, -1)
    a, b = tidy(a), tidy(b)
    left, right = [x.shape if type(x) is Traced else np.shape(x) for x in (a, b)]
    return contracted(*_matrix_labels(left, right), a, b)


@lru_cache(maxsize=4096)
def _matrix_labels(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The labels of a @ b, from shapes."""
    m, n = len(one), len(other)
    if not m or not n:
        raise ValueError("matmul: numbers are not allowed; use * instead")
    rank = max(m, n, 2) - 2
    batch = tuple(range(rank))
    row, inner, column = rank, rank + 1, rank + 2
    left = (*batch[rank - (m - 2) :], row, inner) if m > 1 else (inner,)
    right = (*batch[rank - (n - 2) :], inner, column) if n > 1 else (inner,)
    if one[-1] != other[-2 if n > 1 else -1]:
        raise ValueError(f"matmul: shapes {one} and {other} do not fit: {one[-1]} is not {other[-2 if n > 1 else -1]}")
    return (left, right), (*batch, *((row,) if m > 1 else ()), *((column,) if n > 1 else ()))


def is_sparse(x: Any) -> bool:
    """Whether this is a matrix of scipy.sparse."""
    return hasattr(x, "tocoo") and hasattr(x, "nnz")


def sparse_product(matrix: Any, x: Traced) -> Any:
    """A ⋆ x for a fixed sparse matrix: entries times a gather of x, added up by row; nothing is made dense."""
    if not 1 <= x.ndim <= 2 or x.shape[0] != matrix.shape[1]:
        raise ValueError(f"matmul: shapes {matrix.shape} and {x.shape} do not fit")
    entries = matrix.tocsr().tocoo()
    rows, columns = [freeze(np.asarray(k, np.intp)) for k in (entries.row, entries.col)]
    taken = step(Reduction((Gather(Seg(matrix.shape[1]), Seg(len(columns)), columns),), 0), x)
    weighted = contracted(((0,), tuple(range(x.ndim))), tuple(range(x.ndim)), entries.data, taken)
    return step(Reduction((Function(Seg(len(rows)), Seg(matrix.shape[0]), rows),), 0), weighted)


def _vectors(labels: tuple[str, str, str]) -> Any:
    def code(a: Any, b: Any) -> Traced:
        core = [
            np.shape(x)[np.ndim(x) - len(ls) :][ls.index("i" if labels[2] != "i" else "j")]
            for x, ls in zip((a, b), labels, strict=False)
        ]
        if core[0] != core[1]:
            raise ValueError(f"shapes {np.shape(a)} and {np.shape(b)} do not fit: {core[0]} is not {core[1]}")
        return einsum(f"...{labels[0]},...{labels[1]}->...{labels[2]}", a, b)

    return code


for _name, _labels in (("vecdot", ("i", "i", "")), ("matvec", ("ij", "j", "i")), ("vecmat", ("i", "ij", "j"))):
    if hasattr(np, _name):
        answers(getattr(np, _name), what=PRODUCT, rule=RULE)(_vectors(_labels))
answers(np.linalg.vecdot, what=PRODUCT, rule=RULE)(
    lambda a, b, axis=-1: _vectors(("i", "i", ""))(np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1))
)
answers(np.linalg.matmul, what=PRODUCT, rule=RULE)(matmul)


def _subscripts(spec: str, ranks: list[int]) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """The labels of an einsum string, with … written out."""
    inputs, arrow, result = spec.replace(" ", "").partition("->")
    names = inputs.split(",")
    if len(names) != len(ranks):
        raise ValueError(f"einsum {spec!r} names {len(names)} operands, but {len(ranks)} were given")
    longest = max([r - len(n.replace("...", "")) for n, r in zip(names, ranks, strict=True) if "..." in n], default=0)
    rows: list[tuple[int, ...]] = []
    for name, rank in zip(names, ranks, strict=True):
        bare = name.replace("...", "")
        dots = rank - len(bare)
        if dots < 0 or (dots and "..." not in name):
            raise ValueError(f"einsum {spec!r}: {name!r} does not fit an operand with {rank} axes")
        before, _, after = name.partition("...")
        hidden = tuple([-(k + 1) for k in range(dots)][::-1])
        rows.append((*map(ord, before), *hidden, *map(ord, after)) if "..." in name else tuple(map(ord, name)))
    hidden = tuple([-(k + 1) for k in range(longest)][::-1])
    if arrow:
        before, dots_given, after = result.partition("...")
        out = (*map(ord, before), *(hidden if dots_given else ()), *map(ord, after))
    else:
        letters = [c for row in rows for c in row if c > 0]
        out = (*hidden, *sorted([c for c in set(letters) if letters.count(c) == 1]))
    missing = [chr(c) for c in out if c > 0 and not any([c in row for row in rows])]
    if missing:
        raise ValueError(f"einsum {spec!r}: {', '.join(missing)} in the result occurs in no operand")
    return rows, out


def _letters(labels: Any) -> str:
    """A list of numbers and … as subscripts."""
    return "".join(["..." if k is Ellipsis else chr(ord("A") + int(k)) for k in labels])


@answers(np.einsum, what=PRODUCT, rule=RULE)
def einsum(*args: Any, **named: Any) -> Traced:
    if not isinstance(args[0], str):  # einsum(a, [0, 1], b, [1, 2], [0, 2])
        pairs, result = (args[:-1], args[-1]) if len(args) % 2 else (args, None)
        spec = ",".join([_letters(ls) for ls in pairs[1::2]])
        args = (spec if result is None else f"{spec}->{_letters(result)}", *pairs[::2])
    xs = [tidy(x) for x in args[1:]]
    for name in named:
        if name not in ("optimize", "out", "order", "casting", "dtype"):
            raise TypeError(f"einsum() got an unexpected keyword argument {name!r}")
    xs = xs if named.get("dtype") is None else [convert(x, np.dtype(named["dtype"])) for x in xs]
    rows, out = _subscripts(args[0], [np.ndim(x) for x in xs])
    low = 1 - min([0, *[c for row in rows for c in row]])
    return contracted(tuple([tuple([c + low for c in row]) for row in rows]), tuple([c + low for c in out]), *xs)


@answers(np.tensordot, np.linalg.tensordot, what=PRODUCT, rule=RULE)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Traced:
    a, b = tidy(a), tidy(b)
    m, n = np.ndim(a), np.ndim(b)
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(m, n):
            raise ValueError(f"tensordot: axes={axes}, but the arrays have {m} and {n} axes")
        left, right = list(range(m - axes, m)), list(range(axes))
    else:
        left, right = [[index(i) for i in np.atleast_1d(side)] for side in axes]
    left, right = list(axes_of(tuple(left), m)), list(axes_of(tuple(right), n))
    if len(left) != len(right) or any([np.shape(a)[i] != np.shape(b)[j] for i, j in zip(left, right, strict=False)]):
        raise ValueError(
            f"tensordot: axes {left} of shape {np.shape(a)} do not fit axes {right} of shape {np.shape(b)}"
        )
    la = tuple(range(m))
    lb = [m + j for j in range(n)]
    for i, j in zip(left, right, strict=True):
        lb[j] = i
    return contracted((la, tuple(lb)), (*[i for i in la if i not in left], *[x for x in lb if x >= m]), a, b)


@answers(np.dot, what=PRODUCT, rule=RULE)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = tidy(a), tidy(b)
    return (
        a * b if np.ndim(a) == 0 or np.ndim(b) == 0 else tensordot(a, b, ([np.ndim(a) - 1], [max(np.ndim(b) - 2, 0)]))
    )


@answers(np.inner, what=PRODUCT, rule=RULE)
def inner(a: Any, b: Any) -> Any:
    a, b = tidy(a), tidy(b)
    return a * b if not np.ndim(a) or not np.ndim(b) else tensordot(a, b, ([-1], [-1]))


@answers(np.vdot, what=PRODUCT, rule=RULE)
def vdot(a: Any, b: Any) -> Any:
    return tensordot(np.ravel(tidy(a)), np.ravel(tidy(b)), 1)


@answers(np.linalg.outer, what=PRODUCT, rule=RULE)
def _linalg_outer(a: Any, b: Any, /) -> Traced:
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={np.ndim(a)} and x2.ndim={np.ndim(b)}."
        )
    return outer(a, b)


@answers(np.outer, what=PRODUCT, rule=RULE)
def outer(a: Any, b: Any, out: Any = None) -> Traced:
    return tensordot(np.ravel(tidy(a)), np.ravel(tidy(b)), 0)


@answers(np.kron, what="contraction and a reshape", rule=RULE)
def kron(a: Any, b: Any) -> Any:
    a, b = tidy(a), tidy(b)
    rank = max(np.ndim(a), np.ndim(b))
    sa, sb = [(*(1,) * (rank - np.ndim(x)), *np.shape(x)) for x in (a, b)]
    la, lb = tuple(range(0, 2 * rank, 2)), tuple(range(1, 2 * rank, 2))
    product = contracted((la, lb), tuple(range(2 * rank)), np.reshape(a, sa), np.reshape(b, sb))
    return np.reshape(product, tuple([m * n for m, n in zip(sa, sb, strict=True)]))


@answers(np.trace, what="contraction", rule="trace of dx")
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(np.diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


answers(np.linalg.trace, what="contraction", rule="trace of dx")(
    lambda x, /, *, offset=0, dtype=None: trace(x, offset, -2, -1, dtype)
)


@answers(np.diagonal, what="contraction with one label twice", rule="diagonal of dx")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Traced:
    if x.ndim < 2:
        raise ValueError("diagonal needs an array of at least two axes")
    i, j = axes_of((axis1, axis2), x.ndim)
    moved = np.moveaxis(x, (i, j), (-2, -1))
    rows, columns = moved.shape[-2:]
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    square = moved[..., max(-offset, 0) : max(-offset, 0) + n, max(offset, 0) : max(offset, 0) + n]
    labels = tuple(range(square.ndim - 2))
    k = square.ndim
    return contracted(((*labels, k, k),), (*labels, k), square)


answers(np.linalg.diagonal, what="contraction with one label twice", rule="diagonal of dx")(
    lambda x, /, *, offset=0: diagonal(x, offset, -2, -1)
)


@answers(np.diag, what="contraction with one label twice, or its transpose", rule="diag of dx")
def diag(x: Any, k: int = 0) -> Any:
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("diag needs an array of one or two axes")
    square = contracted(((0,),), (0, 0), x)
    return np.pad(square, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0)))) if k else square


@answers(np.diagflat, what="contraction with one label twice", rule="diagflat of dx")
def diagflat(x: Any, k: int = 0) -> Any:
    return diag(np.ravel(x), k)


@answers(np.cross, np.linalg.cross, what="products of the components", rule=RULE)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(tidy(a), axisa, -1), np.moveaxis(tidy(b), axisb, -1)
    sizes = (np.shape(a)[-1], np.shape(b)[-1])
    if not set(sizes) <= {2, 3}:
        raise ValueError(f"cross products are of vectors with 2 or 3 components; got {sizes}")
    found = [_component(a, b, *pair) for pair in (((1, 2), (2, 0), (0, 1)) if sizes != (2, 2) else ((0, 1),))]
    return found[0] if sizes == (2, 2) else np.moveaxis(np.stack(found, -1), -1, axisc)


def _component(a: Any, b: Any, i: int, j: int) -> Any:
    """aᵢ·bⱼ − aⱼ·bᵢ; a component that is not there is 0 and is not multiplied."""
    n, m = np.shape(a)[-1], np.shape(b)[-1]
    left = a[..., i] * b[..., j] if i < n and j < m else None
    right = a[..., j] * b[..., i] if j < n and i < m else None
    return left if right is None else -right if left is None else left - right


@answers(np.convolve, what="bilinear op convolution", rule=RULE)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return _convolved(a, v, mode)


@answers(np.correlate, what="bilinear op convolution with one argument turned round", rule=RULE)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = tidy(a), tidy(v)
    result = _convolved(a, np.flip(v), mode)
    swapped = np.shape(v)[0] > np.shape(a)[0] and mode != "full"
    return _convolved(np.flip(a), v, mode)[::-1] if swapped else result


def _convolved(a: Any, v: Any, mode: str) -> Any:
    from ...ops.convolution import Convolution

    a, v = tidy(a), tidy(v)
    if np.ndim(a) > 1 or np.ndim(v) > 1:
        raise ValueError("convolve takes arrays of one axis")
    a, v = [np.reshape(x, (1,)) if np.ndim(x) == 0 else x for x in (a, v)]
    n, m = np.shape(a)[0], np.shape(v)[0]
    if not n or not m:
        raise ValueError("convolve: the arrays must not be empty")
    if m > n:
        a, v, n, m = v, a, m, n
    trace, slots, dtype, _ = operands(a, v)
    kind = result_dtype([a, v])[0]
    full = convert(
        Traced(trace, trace.step(Convolution(2), slots), dtype), dtype if kind.kind == "f" else kind
    )  # whole numbers stay whole
    match mode:
        case "full":
            return full
        case "same":
            return full[(m - 1) // 2 : (m - 1) // 2 + n]
        case "valid":
            return full[m - 1 : n]
        case _:
            raise ValueError(f"convolve mode is 'full', 'same' or 'valid'; got {mode!r}")


@answers(np.linalg.multi_dot, what="contractions, cheapest order first", rule=RULE)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """A chain of matrix products, in the order of least work."""
    xs = [tidy(x) for x in arrays]
    if len(xs) == 2:
        return dot(xs[0], xs[1])
    dims = [
        np.shape(xs[0])[0] if np.ndim(xs[0]) == 2 else 1,
        *[np.shape(x)[0] for x in xs[1:]],
        np.shape(xs[-1])[-1] if np.ndim(xs[-1]) == 2 else 1,
    ]
    count = len(xs)
    cost = np.zeros((count, count))
    split = np.zeros((count, count), int)
    for width in range(1, count):
        for i in range(count - width):
            j = i + width
            options = [cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j)]
            split[i, j] = i + int(np.argmin(options))
            cost[i, j] = min(options)

    def product(i: int, j: int) -> Any:
        return xs[i] if i == j else dot(product(i, int(split[i, j])), product(int(split[i, j]) + 1, j))

    return product(0, count - 1)
