"""Ops with a function of somebody else inside: declared (bi)linear functions, functions with a differential, functions
without a derivative."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numpy as np

from ..errors import PositionError
from ..relations.cpu.pair_sums import add_rows
from ..relations.index_sets import box_set
from ..runtime import later
from ..runtime.interning import Node
from ..runtime.warnings_off import quietly
from ..spaces.contraction import number
from ..spaces.formal_vectors import dense
from ..spaces.layout import Branch, build
from ..spaces.space import Copower
from .op import Multilinear, Op, Shape


class DeclaredForm(Node):
    """A user's linear or bilinear function by its form: ⟨f(v), w⟩, or ⟨u ⋄ v, w⟩. `solve[i]` computes leg i from the
    others.

    The legs of a bilinear function are u, v, w; those of a linear one v, w. All transposes are other legs of the same
    form.
    """

    name: str
    legs: tuple[Any, ...]  # one space per leg
    solve: tuple[Any, ...]  # one Python function per leg (None: cannot be computed)
    batched: bool  # whether the functions accept leading axes


class Declared(Op):
    """Leg `target` of a declared form as a function of the others; its leaves are fetched with `Get`."""

    form: DeclaredForm
    target: int

    @property
    def sources(self) -> tuple[int, ...]:
        """The legs given as arguments."""
        return tuple([i for i in range(len(self.form.legs)) if i != self.target])

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        lead = self.lead(shapes)
        return tuple([(*lead, *leaf.shape) for leaf in self.form.legs[self.target].leaves])

    def lead(self, shapes: tuple[Shape, ...]) -> Shape:
        """The leading axes of the arguments."""
        leaves = [leaf for leg in self.sources for leaf in self.form.legs[leg].leaves]
        return shapes[0][: len(shapes[0]) - len(leaves[0].shape)] if shapes else ()

    def leg_slices(self) -> list[tuple[int, slice]]:
        """Which of the flat arguments belong to which leg."""
        found: list[tuple[int, slice]] = []
        at = 0
        for leg in self.sources:
            n = len(self.form.legs[leg].leaves)
            found.append((leg, slice(at, at + n)))
            at += n
        return found

    def run(self, *xs: Any) -> Any:
        solve = self.form.solve[self.target]
        if solve is None:
            give = "give the adjoints of both sections"
            raise TypeError(f"{self.form.name} was declared without what its adjoint needs: {give}")
        flat = [dense(x) for x in xs]
        shapes = tuple([np.shape(x) for x in flat])
        lead = self.lead(shapes)
        if lead and not self.form.batched:  # one after the other
            each = [[x[at] if np.ndim(x[at]) else number(x[at]) for x in flat] for at in np.ndindex(*lead)]
            results = self.result(shapes)
            columns = zip(*[self.run(*x) for x in each], strict=True) if each else [np.zeros(s) for s in results]
            return tuple([np.reshape(cast(Any, c), s) for c, s in zip(columns, results, strict=True)])
        legs, make = self.form.legs, Branch.make
        given = [build(legs[leg].code, flat[where], make) for leg, where in self.leg_slices()]
        space = Copower(legs[self.target], box_set(lead)) if lead else legs[self.target]
        found: list[Any] = space.open(solve(*given))
        return tuple([x.copy() if type(x) is np.ndarray else x for x in found])  # its memory may be used again


class Get(Op):
    """One leaf of a declared function's result."""

    at: int

    def result(self, shapes: tuple[Any, ...]) -> Shape:
        return shapes[0][self.at]

    def run(self, *xs: Any) -> Any:
        return xs[0][self.at]


class Select(Op):
    """where(c, a, b), broadcast as in NumPy; linear in a and b, and what was not chosen leaves no trace."""

    hushes = True  # its branches are computed without warnings

    @property
    def title(self) -> str:
        return "where"

    def run(self, *xs: Any) -> Any:
        with quietly():  # a product of its branches may not be multiplied out before
            chosen = cast(Any, np.where)(*[dense(x) for x in xs])
        return chosen if chosen.ndim else number(chosen)


class Discrete(Op):
    """A function without a derivative (comparisons, argmax, rounding, integers): what it computes does not move."""

    function: Any
    parameters: tuple[tuple[str, Any], ...] = ()
    shaped: Any = None  # shapes → shape; None: elementwise

    def check(self) -> None:
        # while a function is traced, np.where is another one
        self._set(function=getattr(self.function, "original", self.function))

    @property
    def title(self) -> str:
        name: str = self.function.__name__.strip("_")
        return {"logical_not": "¬", "as_type": "float"}.get(name, name)

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return super().result(shapes) if self.shaped is None else self.shaped(shapes, dict(self.parameters))

    def run(self, *xs: Any) -> Any:
        found = self.function(*[dense(x) for x in xs], **dict(self.parameters))
        return found if np.ndim(found) else number(found)


NOT = Discrete(np.logical_not)


def anywhere(x: Any) -> int:
    """0 if something is true, else 1: the number of a branch. Under a mapped axis it is one number for all indices."""
    return 0 if np.any(x) else 1


def _no_axes(shapes: Any, named: Any) -> Shape:
    return ()


ANYWHERE = Discrete(anywhere, (), _no_axes)


class Take(Multilinear):
    """x gathered along one axis at computed positions. The first `batch` axes of x and of the index array run together.

    x : B × P × (n) × Q and index : B × I give B × P × I × Q. Linear in x; static positions are relations, not this.
    """

    batch: int
    axis: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        x, index = shapes
        return (*x[: self.axis], *index[self.batch :], *x[self.axis + 1 :])

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        return Put(self.batch, self.axis, len(shapes[1]) - self.batch, shapes[0][self.axis])

    def run(self, *xs: Any) -> Any:
        x, index = np.asarray(dense(xs[0])), np.asarray(xs[1])
        try:
            taken = self._taken(x, index)
        except IndexError:
            n = x.shape[self.axis]
            wrong = index[(index < -n) | (index >= n)].flat[0]
            raise PositionError(
                f"a computed index is {wrong}, outside an axis of length {n}. Under rz.vmap all branches of rz.cond "
                "are computed for every element: keep the index inside, np.clip(i, 0, n - 1), where its branch may "
                "not be taken"
            ) from None
        return taken if taken.ndim else number(taken)

    def _taken(self, x: Any, index: Any) -> Any:
        if not self.batch:
            return np.take(x, index, axis=self.axis)
        parts = _parts(x.shape, self.batch, self.axis)
        flat = x.reshape(parts)
        at = index.reshape(parts[0], math.prod(index.shape[self.batch :]))
        taken = flat[np.arange(parts[0])[:, None], :, at].transpose(0, 2, 1, 3)
        return taken.reshape(self.result((x.shape, index.shape)))


class Put(Multilinear):
    """The transpose of `Take`: numbers added up at computed positions of an axis; `rank` index axes go."""

    batch: int
    axis: int
    rank: int
    size: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return (*shapes[0][: self.axis], self.size, *shapes[0][self.axis + self.rank :])

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        return Take(self.batch, self.axis)

    def run(self, *xs: Any) -> Any:
        y, index = np.asarray(dense(xs[0])), np.asarray(xs[1])
        shape = self.result((y.shape, index.shape))
        outer, before, _, after = _parts(shape, self.batch, self.axis)
        at = index.reshape(outer, math.prod(index.shape[self.batch :]))
        rows = y.reshape(outer, before, at.shape[1], after).transpose(0, 2, 1, 3).reshape(at.size, before * after)
        flat = (np.arange(outer)[:, None] * self.size + np.where(at < 0, at + self.size, at)).reshape(-1)
        total = add_rows(flat, outer * self.size, rows).reshape(outer, self.size, before, after)
        return total.transpose(0, 2, 1, 3).reshape(shape)


def _parts(shape: Shape, batch: int, axis: int) -> tuple[int, int, int, int]:
    return math.prod(shape[:batch]), math.prod(shape[batch:axis]), shape[axis], math.prod(shape[axis + 1 :])


class Strongly(Multilinear):
    """A multilinear op in which a zero argument k annihilates the rest, nan included (Note [Strong] in ops/op.py)."""

    op: Any
    k: int

    @property
    def title(self) -> str:
        return self.op.title

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return self.op.result(shapes)

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        turned = self.op.transpose(k, shapes)
        return turned if k == self.k or not isinstance(turned, Multilinear) else Strongly(turned, self.k)

    def run(self, *xs: Any) -> Any:
        given = dense(xs[self.k])
        if np.any(given):
            found: Any = self.op.run(*xs)
            mixes = self.op.smooth.mixes if isinstance(self.op, Ruled) else None
            if mixes is not None and np.isnan(found).any():  # so it is in each part
                found = cast(Any, np.where)(np.any(given, axis=mixes, keepdims=True), found, found.dtype.type(0))
            return found
        shape = self.op.result(tuple([np.shape(dense(x)) for x in xs]))
        return np.zeros(shape, np.result_type(dense(xs[self.k]))) if shape else 0.0


class Smooth:
    """What is known about a function with a differential: its name, its array code, the shapes it gives, dy from dx,
    and transposes.

    `differential(dxs, y, *xs, **parameters)` is NumPy code, linear in the dxs (None: does not move); y is a tuple where
    there are several results. `transpose(k, **parameters)`, for functions linear in argument k, gives the transpose in
    it as an op on the same arguments.
    """

    def __init__(
        self,
        name: str,
        array: Callable[..., Any],
        shapes: Callable[..., Any],
        differential: Callable[..., Any],
        transpose: Callable[..., Op] | None = None,
        batched: bool = True,  # whether the array code accepts leading axes
        ours: bool = True,  # whether its results are new each time
        linear_time: bool = False,  # whether its work grows with its numbers, not with the cube of a matrix's order
        mixes: tuple[int, ...] | None = None,  # linear in an argument: the axes, from the last, whose numbers it mixes
        lead: int = 0,  # mixes is None: all but so many of the first
    ) -> None:
        self.name, self.array, self.shapes, self.differential = name, array, shapes, differential
        self.transpose, self.batched, self.ours, self.linear_time = transpose, batched, ours, linear_time
        self.mixes, self.lead = mixes, lead
        if ours and name in _smooth:
            raise AssertionError(f"two functions are called {name}")
        if ours:
            _smooth[name] = self

    def __reduce__(self) -> Any:
        if _smooth.get(self.name) is not self:
            raise TypeError(f"{self.name} cannot be pickled: its derivative was given by code of your own")
        return _known, (self.name, self.differential.__module__)


_smooth: dict[str, Smooth] = {}
"""Our own functions with a differential, by name: pickled by it."""


def smooth_named(name: str, file: str = "") -> Smooth | None:
    """Our own function with a differential by its name, once its file is loaded: that of its differential, or one of
    rules; None if there is none."""
    if name not in _smooth and file:
        import_module(file)
    if name not in _smooth:
        later.load_rules()
    return _smooth.get(name)


def _known(name: str, file: str = "") -> Smooth:
    found = smooth_named(name, file)
    if found is None:
        raise KeyError(name)
    return found


class Ruled(Multilinear):
    """A function with a differential, neither elementwise nor multilinear: linear algebra, extrema, users' own."""

    smooth: Smooth
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        names = [v for k, v in self.parameters if k == "title"]
        return names[0] if names else self.smooth.name

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        return self.smooth.shapes(*shapes, **dict(self.parameters))

    def run(self, *xs: Any) -> Any:
        found = self.smooth.array(*[dense(x) for x in xs], **dict(self.parameters))
        if type(found) is tuple:
            return tuple([_leaf(f, self.smooth.ours) for f in cast("tuple[Any, ...]", found)])
        return _leaf(found, self.smooth.ours)

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        if self.smooth.transpose is None:
            raise AssertionError(f"{self.smooth.name} is not linear in an argument")
        return self.smooth.transpose(k, **dict(self.parameters))

    @cached_property
    def rules(self) -> dict[Any, Any]:
        """The differential as programs, by shapes and by which arguments move."""
        return {}


def _leaf(x: Any, ours: bool) -> Any:
    """A result; others may keep theirs and write to it."""
    return number(np.asarray(x)) if not np.ndim(x) else x if ours else np.array(x)
