"""Index sets  X, Y ::= n | X × Y | X + Y   (§2.1). Elements count from 0."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast, overload

import numpy as np

from ..errors import IndexSetError
from ..runtime import displayed, later
from ..runtime.interning import Node, derived

Array = np.ndarray[Any, Any]
Indices = np.ndarray[Any, np.dtype[np.intp]]


class Set(Node):
    """A finite index set. `X * Y` is the product, `X + Y` the disjoint union; `len(X)` its size.

    >>> import riesz as rz
    >>> list(rz.seg(2) * rz.seg(2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> len(rz.seg(2) + rz.seg(3))
    5
    """

    size: int = derived()
    box: tuple[int, ...] | None = derived()  # the array's axes, where the set is a product of segments

    def __len__(self) -> int:
        return self.size

    def __mul__(self, other: object) -> Product:
        """X × Y; `X * Y * Z` is one product of three."""
        if not isinstance(other, Set):
            write = "write seg(n) for the set of n elements"
            raise TypeError(f"cannot multiply the index set {self} by {other!r}: {write}")
        left = self.factors if isinstance(self, Product) else (self,)
        return Product((*left, other))

    def __add__(self, other: object) -> Plus:
        """X + Y; `X + Y + Z` is one union of three."""
        if not isinstance(other, Set):
            raise TypeError(f"cannot add {other!r} to the index set {self}: write seg(n) for the set of n elements")
        left = self.summands if isinstance(self, Plus) else (self,)
        return Plus((*left, other))

    def __iter__(self) -> Iterator[Any]:
        """The elements, in order: ints, tuples for ×, (which, element) for +."""
        return (self.element(i) for i in range(self.size))

    def __contains__(self, element: object) -> bool:
        try:
            self.position(element)
        except IndexSetError:
            return False
        return True

    def element(self, position: int) -> Any:
        """The element at a position of the enumeration.

        >>> (seg(2) * seg(3)).element(4)
        (1, 1)
        """
        if not 0 <= position < self.size:
            raise IndexSetError(f"position {position} is outside the index set {self} of {self.size} elements")
        return self._element(position)

    def _element(self, position: int) -> Any:
        raise NotImplementedError

    def position(self, element: Any) -> int:
        """Where an element stands in the enumeration (row-major).

        >>> (seg(2) + seg(3)).position((1, 0))
        2
        """
        raise NotImplementedError

    def _refuse(self, element: Any, hint: str) -> IndexSetError:
        return IndexSetError(f"{element!r} is not an element of the index set {self}: {hint}")

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html


class Seg(Set):
    """n = {0, …, n−1}, an initial segment."""

    n: int

    def check(self) -> None:
        if type(cast(Any, self.n)) is not int or self.n < 0:
            raise IndexSetError(f"seg({self.n!r}): a segment has a number of elements, an integer ≥ 0")
        self._set(size=self.n, box=(self.n,))

    def _element(self, position: int) -> int:
        return position

    def position(self, element: Any) -> int:
        if not _whole(element) or not 0 <= element < self.n:
            raise self._refuse(element, f"its elements are the integers 0 to {self.n - 1}" if self.n else "it is empty")
        return int(element)


def _whole(k: Any) -> bool:
    return isinstance(k, (int, np.integer)) and not isinstance(k, bool)


class Product(Set):
    """X₁ × … × Xₙ; the empty product has one element, ()."""

    factors: tuple[Set, ...]

    def check(self) -> None:
        boxes = [f.box for f in self.factors]
        box = None if None in boxes else tuple([n for b in boxes for n in cast("tuple[int, ...]", b)])
        self._set(size=math.prod([f.size for f in self.factors]), box=box)

    def _element(self, position: int) -> tuple[Any, ...]:
        digits: list[Any] = []
        for factor in reversed(self.factors):
            position, digit = divmod(position, factor.size)
            digits.append(factor.element(digit))
        return tuple(reversed(digits))

    def position(self, element: Any) -> int:
        if not isinstance(element, tuple) or len(cast("tuple[Any, ...]", element)) != len(self.factors):
            raise self._refuse(element, f"its elements are tuples of {len(self.factors)}")
        at = 0
        for factor, part in zip(self.factors, cast("tuple[Any, ...]", element), strict=True):
            at = at * factor.size + factor.position(part)
        return at


class Plus(Set):
    """X₁ + … + Xₙ, the disjoint union; elements are (which, element)."""

    summands: tuple[Set, ...]

    def check(self) -> None:
        self._set(size=sum([s.size for s in self.summands]), box=None)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each summand begins in the enumeration."""
        return tuple(itertools.accumulate([0, *[s.size for s in self.summands]]))[:-1]

    def _element(self, position: int) -> tuple[int, Any]:
        which = max([i for i, start in enumerate(self.offsets) if start <= position and self.summands[i].size])
        return which, self.summands[which].element(position - self.offsets[which])

    def position(self, element: Any) -> int:
        pair: tuple[Any, ...] = cast("tuple[Any, ...]", element) if isinstance(element, tuple) else ()
        if len(pair) == 2 and _whole(pair[0]) and 0 <= pair[0] < len(self.summands):
            which = int(pair[0])
            return self.offsets[which] + self.summands[which].position(pair[1])
        raise self._refuse(element, f"its elements are pairs (which, element), which < {len(self.summands)}")


unit = Product(())
"""The set with one element, (), and no axis."""


@overload
def seg(n: int, /) -> Seg: ...
@overload
def seg(*lengths: int) -> Set: ...
def seg(*lengths: int) -> Set:
    """The index set n = {0, …, n−1}; of several lengths, their product, seg(2, 3) = seg(2) * seg(3).

    >>> import riesz as rz
    >>> rz.seg(3) * rz.seg(4)
    3×4
    >>> list(rz.seg(3))
    [0, 1, 2]
    """
    if not lengths:
        raise IndexSetError("seg() needs a number of elements: seg(3), or seg(2, 3) for pairs")
    return box_set(tuple([int(n) if isinstance(cast(Any, n), np.integer) else n for n in lengths]))


def box_set(axes: tuple[int, ...]) -> Set:
    """The index set of an array's axes.

    >>> box_set((2, 3)), box_set((4,)), len(box_set(()))
    (2×3, 4, 1)
    """
    return Seg(axes[0]) if len(axes) == 1 else Product(tuple([Seg(n) for n in axes]))


def remaining(index: Set, first: Set) -> Set | None:
    """Z, if an index set is X × Z.

    >>> remaining(seg(2) * seg(3) * seg(4), seg(2))
    3×4
    """
    have = first.factors if isinstance(first, Product) else (first,)
    if not isinstance(index, Product) or index.factors[: len(have)] != have or len(index.factors) == len(have):
        return None
    rest = index.factors[len(have) :]
    return rest[0] if len(rest) == 1 else Product(rest)


def boxes(index: Set) -> list[tuple[Set, Array | None]]:
    """The products of segments an index set falls into, with the positions of their elements (None: all, in order).

    V^X has one array per box: V^(X+Y) = V^X ⊕ V^Y and V^(X×Y) = (V^Y)^X.
    """
    if index.box is not None:
        return [(index, None)]
    found: list[tuple[Set, Array | None]] = []
    # A partial box: the factors met so far, the positions they reach, and the sets still to be multiplied in.
    stack: list[tuple[tuple[Set, ...], Array, tuple[Set, ...]]] = [((), np.zeros(1, np.intp), (index,))]
    while stack:
        done, at, rest = stack.pop()
        if not rest:
            found.append((Product(done), at))
            continue
        first, rest = rest[0], rest[1:]
        tail = math.prod([r.size for r in rest])
        match first:
            case Seg():
                grown = (at[:, None] + np.arange(first.n)[None, :] * tail).ravel()
                stack.append(((*done, first), grown, rest))
            case Product():
                stack.append((done, at, (*first.factors, *rest)))
            case Plus():
                parts = list(zip(first.offsets, first.summands, strict=True))
                stack.extend([(done, at + o * tail, (s, *rest)) for o, s in reversed(parts)])
            case _:
                raise TypeError(f"not an index set: {first!r}")
    return found
