"""Products: every one of them a labelled contraction."""

from __future__ import annotations

from functools import cache, lru_cache
from operator import index
from typing import Any, cast

import numpy as np

from ...ops.convolution import Convolution
from ...ops.op import Contraction, Reduction, contraction
from ...ops.opaque import Discrete
from ...relations import Function, Gather, freeze
from ...relations.index_sets import Seg
from ..registry import answer_rows, answers
from ..traced import Shape, Traced, convert, lifted, of_types, operands, result_dtype, step, tidy
from .elementwise import is_discrete
from .rearranging import axes_of, moveaxis, raised_front

Labels = tuple[Shape, ...]
PRODUCT = "contraction"
RULE = "one summand per factor"


def contracted(labels: Labels, out: Shape, *xs: Any) -> Traced:
    """A contraction of arrays; axes of size 1 against longer ones get labels of their own."""
    whole = is_discrete(*xs)
    if whole and len(set(out)) < len(out):
        return _spread_out(labels, out, xs)
    trace, slots, dtype, _ = operands(*xs, floating=not whole)
    op: Any = _fitted(labels, tuple([trace.shapes[s] for s in slots]), out)
    if whole:  # integers: exact, and without a derivative
        op = Discrete(_whole, (("labels", labels), ("out", out)), _whole_shape)
    return Traced(trace, trace.step(op, slots), dtype)


def _spread_out(labels: Labels, out: Shape, xs: tuple[Any, ...]) -> Traced:
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
def _fitted(labels: Labels, shapes: Labels, out: Shape) -> Contraction:
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
            row.append(label if n == sizes[label] else fresh)
            fresh += n != sizes[label]
        renamed.append(tuple(row))
    return contraction(tuple(renamed), out)


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
def _matrix_labels(one: Shape, other: Shape) -> tuple[Labels, Shape]:
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


def _vectors(one: str, other: str, out: str) -> Any:
    """A product of the last axes of two arrays."""

    def code(a: Any, b: Any) -> Traced:
        summed = "j" if out == "i" else "i"
        m, n = [np.shape(x)[np.ndim(x) - len(ls) :][ls.index(summed)] for x, ls in ((a, one), (b, other))]
        if m != n:
            raise ValueError(f"shapes {np.shape(a)} and {np.shape(b)} do not fit: {m} is not {n}")
        return einsum(f"...{one},...{other}->...{out}", a, b)

    return code


_vecdot = _vectors("i", "i", "")


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
    xs = of_types(*args[1:])
    for name in named:
        if name not in ("optimize", "out", "order", "casting", "dtype"):
            raise TypeError(f"einsum() got an unexpected keyword argument {name!r}")
    xs = xs if named.get("dtype") is None else [convert(x, np.dtype(named["dtype"])) for x in xs]
    rows, out = _subscripts(args[0], [np.ndim(x) for x in xs])
    low = 1 - min([0, *[c for row in rows for c in row]])
    return contracted(tuple([tuple([c + low for c in row]) for row in rows]), tuple([c + low for c in out]), *xs)


@answers(np.tensordot, np.linalg.tensordot, what=PRODUCT, rule=RULE)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Traced:
    a, b = of_types(a, b)
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


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = of_types(a, b)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    return tensordot(a, b, ([np.ndim(a) - 1], [max(np.ndim(b) - 2, 0)]))


def _inner(a: Any, b: Any) -> Any:
    a, b = of_types(a, b)
    return a * b if not np.ndim(a) or not np.ndim(b) else tensordot(a, b, ([-1], [-1]))


def _flat_product(a: Any, b: Any, axes: int) -> Traced:
    return tensordot(np.ravel(tidy(a)), np.ravel(tidy(b)), axes)


def _linalg_outer(a: Any, b: Any, /) -> Traced:
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={np.ndim(a)} and x2.ndim={np.ndim(b)}."
        )
    return _flat_product(a, b, 0)


def _kron(a: Any, b: Any) -> Any:
    a, b = tidy(a), tidy(b)
    rank = max(np.ndim(a), np.ndim(b))
    a, b = raised_front(a, rank), raised_front(b, rank)
    la, lb = tuple(range(0, 2 * rank, 2)), tuple(range(1, 2 * rank, 2))
    product = contracted((la, lb), tuple(range(2 * rank)), a, b)
    return np.reshape(product, tuple([m * n for m, n in zip(np.shape(a), np.shape(b), strict=True)]))


def _trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(np.diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Traced:
    if x.ndim < 2:
        raise ValueError("diagonal needs an array of at least two axes")
    i, j = axes_of((axis1, axis2), x.ndim)
    moved = np.moveaxis(x, (i, j), (-2, -1))
    rows, columns = moved.shape[-2:]
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    square = moved[..., max(-offset, 0) : max(-offset, 0) + n, max(offset, 0) : max(offset, 0) + n]
    labels, k = tuple(range(square.ndim - 2)), square.ndim
    return contracted(((*labels, k, k),), (*labels, k), square)


@answers(np.diag, what="contraction with one label twice, or its transpose", rule="diag of dx")
def diag(x: Any, k: int = 0) -> Any:
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("diag needs an array of one or two axes")
    square = contracted(((0,),), (0, 0), x)
    return np.pad(square, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0)))) if k else square


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


def convolved(a: Any, v: Any, mode: str) -> Any:
    """Along the last axis a ∗ v; along the others sums over windows of a, with v turned round."""
    trace, slots, dtype, _ = operands(a, v)
    x, y = [Traced(trace, slot, dtype) for slot in slots]
    n, m = x.shape, y.shape
    lead = tuple(range(x.ndim - 1))
    if not x.size:  # sums of nothing
        longer = {"full": 1, "valid": -1, "same": 0}[mode]
        return np.zeros([max(i + longer * (j - 1), 0) for i, j in zip(n, m, strict=True)], dtype)
    if lead:
        around = [(0, 0) if mode == "valid" else (k - 1, k - 1) for k in m[:-1]]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [*around, (0, 0)]), m[:-1], axis=lead)
        x = np.moveaxis(windows, len(lead), -1)
        y = np.broadcast_to(np.flip(y, lead), (*x.shape[:-1], m[-1]))
    full = Traced(trace, trace.step(Convolution(2), (cast(Any, x).slot, cast(Any, y).slot)), dtype)
    full = np.sum(full, tuple([len(lead) + i for i in lead])) if lead else full
    if mode == "full":
        return full
    if mode == "valid":
        return full[..., m[-1] - 1 : n[-1]]
    return full[tuple([slice((j - 1) // 2, (j - 1) // 2 + i) for i, j in zip(n, m, strict=True)])]


@answers(np.convolve, what="bilinear op convolution", rule=RULE)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = tidy(a), tidy(v)
    if np.ndim(a) > 1 or np.ndim(v) > 1:
        raise ValueError("convolve takes arrays of one axis")
    a, v = [np.reshape(x, (1,)) if np.ndim(x) == 0 else x for x in (a, v)]
    if not np.size(a) or not np.size(v):
        raise ValueError("convolve: the arrays must not be empty")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve mode is 'full', 'same' or 'valid'; got {mode!r}")
    kind, swapped = result_dtype([a, v])[0], np.size(v) > np.size(a)
    found = convolved(v, a, mode) if swapped else convolved(a, v, mode)
    return found if kind.kind == "f" else convert(found, kind)  # whole numbers stay whole


@answers(np.correlate, what="bilinear op convolution with one argument turned round", rule=RULE)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = tidy(a), tidy(v)
    swapped = np.shape(v)[0] > np.shape(a)[0] and mode != "full"
    return convolve(np.flip(a), v, mode)[::-1] if swapped else convolve(a, np.flip(v), mode)


@answers(np.linalg.multi_dot, what="contractions, cheapest order first", rule=RULE)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """A chain of matrix products, in the order of least work."""
    xs = [tidy(x) for x in arrays]
    if len(xs) == 2:
        return _dot(xs[0], xs[1])
    dims = [
        np.shape(xs[0])[0] if np.ndim(xs[0]) == 2 else 1,
        *[np.shape(x)[0] for x in xs[1:]],
        np.shape(xs[-1])[-1] if np.ndim(xs[-1]) == 2 else 1,
    ]

    @cache
    def cheapest(i: int, j: int) -> tuple[int, int]:
        """The cost of the factors i to j, and behind which one to split them."""
        costs = [cheapest(i, k)[0] + cheapest(k + 1, j)[0] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j)]
        return min([(cost, k) for k, cost in enumerate(costs, i)], default=(0, i))

    def product(i: int, j: int) -> Any:
        k = cheapest(i, j)[1]
        return xs[i] if i == j else _dot(product(i, k), product(k + 1, j))

    return product(0, len(xs) - 1)


_TWICE = "contraction with one label twice"
answer_rows(
    (np.linalg.matmul, PRODUCT, RULE, matmul),
    (
        np.linalg.vecdot,
        PRODUCT,
        RULE,
        lambda a, b, axis=-1: _vecdot(np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)),
    ),
    (np.dot, PRODUCT, RULE, _dot),
    (np.inner, PRODUCT, RULE, _inner),
    (np.vdot, PRODUCT, RULE, lambda a, b: _flat_product(a, b, 1)),
    (np.outer, PRODUCT, RULE, lambda a, b, out=None: _flat_product(a, b, 0)),
    (np.linalg.outer, PRODUCT, RULE, _linalg_outer),
    (np.kron, "contraction and a reshape", RULE, _kron),
    (np.trace, PRODUCT, "trace of dx", _trace),
    (np.linalg.trace, PRODUCT, "trace of dx", lambda x, /, *, offset=0, dtype=None: _trace(x, offset, -2, -1, dtype)),
    (np.diagonal, _TWICE, "diagonal of dx", diagonal),
    (np.linalg.diagonal, _TWICE, "diagonal of dx", lambda x, /, *, offset=0: diagonal(x, offset, -2, -1)),
    (np.diagflat, _TWICE, "diagflat of dx", lambda x, k=0: diag(np.ravel(x), k)),
)
for _name, _code in (("vecdot", _vecdot), ("matvec", _vectors("ij", "j", "i")), ("vecmat", _vectors("i", "ij", "j"))):
    if hasattr(np, _name):
        answer_rows((getattr(np, _name), PRODUCT, RULE, _code))
