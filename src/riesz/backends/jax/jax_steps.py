"""The functions that generated JAX code calls: products by labels, reductions, loops, branches, and ops that take more
than a call."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Fourier, HermitianFourier, RealFourier
from ...ops.opaque import Put, Take
from ...relations.jax.reduction_in_jax import RED
from ...relations.jax.sorted_sums import sorted_sums

einsum = functools.partial(jnp.einsum, precision="highest")
Labels = tuple[int, ...]


def letters(labels: Sequence[Labels], out: Labels, lead: str = "") -> str:
    """Labels as einsum writes them, behind others in front."""
    every = dict.fromkeys([k for ls in (*labels, out) for k in ls])
    names = {k: chr(97 + i) if i < 26 else chr(39 + i) for i, k in enumerate(every)}
    texts = [lead + "".join([names[k] for k in ls]) for ls in (*labels, out)]
    return f"{','.join(texts[:-1])}->{texts[-1]}"


def mapped(function: Callable[..., Any], axes: int) -> Callable[..., Any]:
    """A function at every index of some leading axes."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function


# -- contractions -----------------------------------------------------------------------------------------------------


def product(xs: Sequence[Any], labels: Sequence[Labels], out: Labels, sizes: dict[int, int]) -> Any:
    """A contraction in general: axes of ones, diagonals in an argument and in the result."""
    seen = {k for ls in labels for k in ls}
    distinct = tuple(dict.fromkeys(out))
    inner = tuple([k for k in distinct if k in seen])
    y = einsum(letters(labels, inner), *xs)
    y = jnp.expand_dims(y, [i for i, k in enumerate(distinct) if k not in seen])
    y = jnp.broadcast_to(y, [sizes[k] for k in distinct])
    if len(distinct) < len(out):  # onto a diagonal
        y = jnp.expand_dims(y, [axis for axis, k in enumerate(out) if k in out[:axis]])
        at = [jnp.expand_dims(jnp.arange(sizes[k]), [i for i in range(len(out)) if i != j]) for j, k in enumerate(out)]
        same = [at[out.index(k)] == at[j] for j, k in enumerate(out) if k in out[:j]]
        y = jnp.where(functools.reduce(jnp.logical_and, same), y, 0)
    return y


def strong_product(
    xs: Sequence[Any], labels: Sequence[Labels], out: Labels, strong: Sequence[int], sizes: dict[int, int]
) -> Any:
    """A contraction in which zeros of some arguments annihilate what they meet (Note [Strong] in ops/op.py)."""
    xs, labels, strong = [jnp.asarray(x) for x in xs], list(labels), list(strong)
    masks = [i for i in strong if xs[i].dtype == bool]
    for i in masks if len(xs) - len(masks) == 1 else []:  # a mask selects from one factor
        wider = [j for j, ls in enumerate(labels) if j != i and set(labels[i]) <= set(ls) and len(set(ls)) == len(ls)]
        if wider:
            at = wider[0]
            xs[at] = jnp.where(_spread(xs[i], labels[i], labels[at]), xs[at], 0)
            labels[i], xs[i] = (), None
            strong.remove(i)
    kept = [i for i, x in enumerate(xs) if x is not None]
    strong, labels, xs = [kept.index(i) for i in strong], [labels[i] for i in kept], [xs[i] for i in kept]
    if not strong:
        return product(xs, labels, out, sizes)
    kind = jnp.result_type(*[x for x in xs if x.dtype != bool] or [float])
    xs = [x.astype(kind) if x.dtype == bool else x for x in xs]
    every = tuple(dict.fromkeys([k for ls in labels for k in ls]))

    def careful(*xs: Any) -> Any:
        orders = [tuple([k for k in every if k in ls]) for ls in labels]
        plain = [product([x], [ls], order, sizes) for x, ls, order in zip(xs, labels, orders, strict=True)]
        wide = [_spread(x, order, every) for x, order in zip(plain, orders, strict=True)]
        dead = functools.reduce(jnp.logical_or, [wide[i] == 0 for i in strong])
        return product([jnp.where(dead, 0, functools.reduce(jnp.multiply, wide))], [every], out, sizes)

    if set(every) <= set(out) or any([set(ls) == set(every) for ls in labels]):  # no larger than a factor: XLA fuses it
        return careful(*xs)
    plain = functools.reduce(jnp.logical_and, [jnp.isfinite(x).all() for x in xs])
    return jax.lax.cond(plain, lambda *xs: product(xs, labels, out, sizes), careful, *xs)


def _spread(x: Any, labels: Labels, out: Labels) -> Any:
    """Axes in the order of `out`, of size 1 where a label is missing."""
    turned = jnp.transpose(x, [labels.index(k) for k in out if k in labels])
    return jnp.expand_dims(turned, [i for i, k in enumerate(out) if k not in labels])


# -- relations --------------------------------------------------------------------------------------------------------


def red(code: Any, arrays: Any, x: Any, shape: tuple[int, int, int], result: tuple[int, ...]) -> Any:
    """red_R along the middle axis of x seen in a shape."""
    flat, tree = jax.tree.flatten(arrays)
    return RED.bind(jnp.reshape(x, shape), *flat, codes=(code, None), trees=(tree, None)).reshape(result)


def put_rows(xs: Any, at: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Rows at places of an axis, all different, zeros elsewhere; xs are stacked along a first axis."""
    y = jnp.zeros(shape, xs.dtype)
    return y.at[(slice(None),) * axis + (at,)].set(jnp.moveaxis(xs, 0, axis), unique_indices=True)


def padded(x: Any, room: tuple[int, int, int]) -> Any:
    """Zeros before, behind and between along the middle axis: XLA fuses that with what comes before and after."""
    beside = (0, 0, 0)
    return jax.lax.pad(x, np.zeros((), x.dtype), (beside, room, beside))


def take(op: Take) -> Callable[..., Any]:
    """x gathered along an axis at computed positions."""
    axis = op.axis - op.batch

    def one(x: Any, index: Any) -> Any:
        if not x.size:  # jnp.take gives a wrong shape
            return jnp.zeros((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype)
        return jnp.take(x, index, axis, mode="wrap")

    return mapped(one, op.batch)


def put(op: Put) -> Callable[..., Any]:
    """Numbers added up at computed positions: sorted first, so that the order of sums does not depend on the run."""

    def one(y: Any, index: Any) -> Any:
        axis = op.axis - op.batch
        at = jnp.where(index < 0, index + op.size, index).reshape(-1)
        rows = jnp.moveaxis(y.reshape((*y.shape[:axis], at.shape[0], *y.shape[axis + op.rank :])), axis, 0)
        order = jnp.argsort(at, stable=True)
        return jnp.moveaxis(sorted_sums(rows[order], at[order], op.size), 0, axis)

    return mapped(one, op.batch)


# -- loops and branches -----------------------------------------------------------------------------------------------


def loop(
    body: Callable[..., Any],
    carry: tuple[Any, ...],
    xs: tuple[Any, ...],
    length: int,
    reverse: bool = False,
    at_once: int = 1,
    weak: Sequence[int] = (),
) -> tuple[Any, ...]:
    """A scan; its results are the last carry and the stacked outputs. The carry has the type that a round gives it;
    Python's numbers for each round (`weak`, which of xs) have that of the other arrays.

    On a GPU XLA copies the carry and waits in every round, and fuses within a round only: there several rounds are
    taken `at_once`. On a CPU it may fuse for minutes what is written out.
    """
    carry, xs = tuple([jnp.asarray(c) for c in carry]), tuple([jnp.asarray(x) for x in xs])
    strong = [x for i, x in enumerate((*xs, *carry)) if i not in weak]
    kind = jnp.result_type(*strong) if strong else jnp.result_type(float)
    xs = tuple([x.astype(kind) if i in weak and jnp.issubdtype(kind, jnp.floating) else x for i, x in enumerate(xs)])
    row = tuple([jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in xs])
    for _ in range(3):
        after, _ = jax.eval_shape(body, carry, row)
        kinds = [jnp.result_type(c, a) for c, a in zip(carry, after, strict=True)]
        if all([c.dtype == kind for c, kind in zip(carry, kinds, strict=True)]):
            break
        carry = tuple([c.astype(kind) for c, kind in zip(carry, kinds, strict=True)])

    def round_(carry: Any, x: Any) -> Any:
        after, y = body(carry, x)
        kept = [jnp.asarray(a, c.dtype).reshape(c.shape) for a, c in zip(after, carry, strict=True)]
        return tuple(kept), tuple([jnp.asarray(v) for v in y])

    turns = -(-length // max(1, at_once)) if jax.default_backend() == "gpu" else length
    unroll = max(1, -(-length // max(1, turns)))
    last, ys = jax.lax.scan(round_, carry, xs, length=length, reverse=reverse, unroll=unroll)
    return (*last, *ys)


def choose(index: Any, *branches: Callable[[], Any]) -> tuple[Any, ...]:
    """The results of one of the branches, in the types that all of them have room in."""
    found = [jax.eval_shape(b) for b in branches]
    kinds = [jnp.result_type(*column) for column in zip(*found, strict=True)]

    def typed(branch: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: tuple([jnp.asarray(y, kind) for y, kind in zip(branch(), kinds, strict=True)])

    return tuple(jax.lax.switch(jnp.asarray(index, int), [typed(b) for b in branches]))


def again(*xs: Any) -> tuple[Any, ...]:
    """The same values; the compiler does not know that, and what is computed from them is computed again."""
    return tuple(jax.lax.optimization_barrier(tuple([jnp.asarray(x) for x in xs])))


# -- transforms and convolutions -------------------------------------------------------------------------------------


def _complex(x: Any) -> Any:
    return jax.lax.complex(x[..., 0], x[..., 1])


def _pairs(z: Any) -> Any:
    return jnp.stack([z.real, z.imag], axis=-1)


def _weighted(x: Any, n: int, axis: int, k: float) -> Any:
    """A half spectrum, k times what stands for two entries of the whole one."""
    found = np.ones(n // 2 + 1)
    found[1 : (n + 1) // 2] = k
    return x * jnp.asarray(found.reshape((-1, *(1,) * -axis)), x.dtype)


def _whole(op: Fourier, x: Any) -> Any:
    z = _complex(x)
    for axis in op.axes:  # one by one: any number of axes
        z = (jnp.fft.fft if op.forward else jnp.fft.ifft)(z, axis=axis, norm=op.norm)
    return _pairs(z)


def _half(op: RealFourier, x: Any) -> Any:
    y = _pairs(jnp.fft.rfft(x, axis=op.axis, norm=op.norm))
    return _weighted(y, x.shape[op.axis], op.axis, 2.0) if op.doubled else y


def _back(op: HermitianFourier, x: Any) -> Any:
    x = _weighted(x, op.n, op.axis, 0.5) if op.halved else x
    return jnp.fft.irfft(_complex(x), op.n, axis=op.axis, norm=op.norm)


TRANSFORMS: dict[type, Callable[..., Any]] = {Fourier: _whole, RealFourier: _half, HermitianFourier: _back}
"""Transforms of real arrays with an axis of parts, by the class of the op."""


def convolution(op: Convolution | ExchangedLeg) -> Callable[..., Any]:
    """A leg of the convolution form along the last axis, leading axes together."""
    turned, leg = isinstance(op, ExchangedLeg), op.leg

    row = jnp.convolve if leg == 2 else functools.partial(jnp.correlate, mode="valid")

    def function(x: Any, y: Any) -> Any:
        x, y = (y, x) if turned else (x, y)
        x, y = (y, x) if leg == 1 else (x, y)
        lead = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        flat = [jnp.broadcast_to(v, (*lead, v.shape[-1])).reshape((math.prod(lead), v.shape[-1])) for v in (x, y)]
        found = jax.vmap(functools.partial(row, precision="highest"))(*flat)
        return found.reshape((*lead, found.shape[-1]))

    return function
