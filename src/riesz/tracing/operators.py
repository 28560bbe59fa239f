"""The operators of arrays, handed to `operate` and, in place, to `change`."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from .trace import refuse


def _operator(ufunc: Any) -> tuple[Any, Any, Any]:
    """x ∘ y, x ∘= y and y ∘ x."""

    def left(self: Operators, other: Any) -> Any:
        return self.operate(ufunc, self, other)

    def in_place(self: Operators, other: Any) -> Any:
        return self.change(ufunc, other)

    def right(self: Operators, other: Any) -> Any:
        return self.operate(ufunc, other, self)

    return left, in_place, right


def _alone(ufunc: Any) -> Any:
    return lambda self: self.operate_alone(ufunc)


class Operators:
    """+ − * / // % ** @, comparisons and the like, as ufuncs."""

    __slots__ = ()

    @property
    def __pandas_priority__(self) -> int:
        """Tables leave operators to us; those in place write into the table, which they must not."""
        frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        for _ in range(4):
            if frame is not None and frame.f_code.co_name == "_inplace_method":
                raise refuse("a traced array cannot be added to a table in place (s += x); write s.to_numpy() + x")
            frame = frame and frame.f_back
        return 10_000

    def _sympy_(self) -> Any:
        symbol = "it stands for numbers, not for a symbol; write np.sin(x) for sympy.sin(x)"
        raise refuse(f"SymPy cannot compute with a traced array: {symbol}")

    def operate(self, ufunc: Any, left: Any, right: Any) -> Any:
        """An operator's ufunc."""
        raise NotImplementedError

    def operate_alone(self, ufunc: Any) -> Any:
        """The ufunc of an operator with one operand."""
        raise NotImplementedError

    def change(self, ufunc: Any, other: Any) -> Any:
        """An in-place operator's ufunc."""
        raise NotImplementedError

    __add__, __iadd__, __radd__ = _operator(np.add)
    __sub__, __isub__, __rsub__ = _operator(np.subtract)
    __mul__, __imul__, __rmul__ = _operator(np.multiply)
    __truediv__, __itruediv__, __rtruediv__ = _operator(np.divide)
    __floordiv__, __ifloordiv__, __rfloordiv__ = _operator(np.floor_divide)
    __mod__, __imod__, __rmod__ = _operator(np.remainder)
    __matmul__, __imatmul__, __rmatmul__ = _operator(np.matmul)
    __ipow__, __rpow__ = _operator(np.power)[1:]
    __lshift__, __rlshift__ = _operator(np.left_shift)[::2]
    __rshift__, __rrshift__ = _operator(np.right_shift)[::2]
    __and__, __iand__ = _operator(np.bitwise_and)[:2]
    __or__, __ior__ = _operator(np.bitwise_or)[:2]
    __xor__, __ixor__ = _operator(np.bitwise_xor)[:2]
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __lt__, __le__, __gt__ = _operator(np.less)[0], _operator(np.less_equal)[0], _operator(np.greater)[0]
    __ge__, __eq__, __ne__ = _operator(np.greater_equal)[0], _operator(np.equal)[0], _operator(np.not_equal)[0]
    __neg__, __pos__ = _alone(np.negative), _alone(np.positive)
    __abs__, __invert__ = _alone(np.absolute), _alone(np.invert)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return self.operate(np.power, self, other) if modulus is None else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return self.__rfloordiv__(other), self.__rmod__(other)


class ChangesItself:
    """Methods that change an array in place, by writing to it."""

    __slots__ = ()

    def sort(self, axis: int = -1, **named: Any) -> None:
        """Sorted in place."""
        cast(Any, self)[...] = np.sort(cast(Any, self), axis, **named)

    def partition(self, kth: Any, axis: int = -1, **named: Any) -> None:
        """Smaller numbers before the kth, others after it."""
        cast(Any, self)[...] = np.partition(cast(Any, self), kth, axis, **named)

    def put(self, *args: Any, **named: Any) -> None:
        """As np.put."""
        np.put(cast(Any, self), *args, **named)

    def fill(self, value: Any) -> None:
        """All elements become one number."""
        cast(Any, self)[...] = value
