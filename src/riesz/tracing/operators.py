"""The operators of arrays, handed to `operate` and, in place, to `change`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .trace import refuse


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
        raise refuse(
            "SymPy cannot compute with a traced array: it stands for numbers, not for a symbol; write np.sin(x) for "
            "sympy.sin(x)"
        )

    def operate(self, ufunc: Any, left: Any, right: Any) -> Any:
        """An operator's ufunc."""
        raise NotImplementedError

    def operate_alone(self, ufunc: Any) -> Any:
        """The ufunc of an operator with one operand."""
        raise NotImplementedError

    def change(self, ufunc: Any, other: Any) -> Any:
        """An in-place operator's ufunc."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self.operate(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self.operate(np.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return self.operate(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.operate(np.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return self.operate(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.operate(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.operate(np.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.operate(np.divide, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.operate(np.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.operate(np.floor_divide, other, self)

    def __mod__(self, other: Any) -> Any:
        return self.operate(np.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.operate(np.remainder, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return self.__rfloordiv__(other), self.__rmod__(other)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return self.operate(np.power, self, other) if modulus is None else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return self.operate(np.power, other, self)

    def __matmul__(self, other: Any) -> Any:
        return self.operate(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.operate(np.matmul, other, self)

    def __iadd__(self, other: Any) -> Any:
        return self.change(np.add, other)

    def __isub__(self, other: Any) -> Any:
        return self.change(np.subtract, other)

    def __imul__(self, other: Any) -> Any:
        return self.change(np.multiply, other)

    def __itruediv__(self, other: Any) -> Any:
        return self.change(np.divide, other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self.change(np.floor_divide, other)

    def __imod__(self, other: Any) -> Any:
        return self.change(np.remainder, other)

    def __ipow__(self, other: Any) -> Any:
        return self.change(np.power, other)

    def __imatmul__(self, other: Any) -> Any:
        return self.change(np.matmul, other)

    def __iand__(self, other: Any) -> Any:
        return self.change(np.bitwise_and, other)

    def __ior__(self, other: Any) -> Any:
        return self.change(np.bitwise_or, other)

    def __ixor__(self, other: Any) -> Any:
        return self.change(np.bitwise_xor, other)

    def __neg__(self) -> Any:
        return self.operate_alone(np.negative)

    def __pos__(self) -> Any:
        return self.operate_alone(np.positive)

    def __abs__(self) -> Any:
        return self.operate_alone(np.absolute)

    def __invert__(self) -> Any:
        return self.operate_alone(np.invert)

    def __and__(self, other: Any) -> Any:
        return self.operate(np.bitwise_and, self, other)

    def __or__(self, other: Any) -> Any:
        return self.operate(np.bitwise_or, self, other)

    def __xor__(self, other: Any) -> Any:
        return self.operate(np.bitwise_xor, self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Any:
        return self.operate(np.left_shift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self.operate(np.left_shift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return self.operate(np.right_shift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self.operate(np.right_shift, other, self)

    def __lt__(self, other: Any) -> Any:
        return self.operate(np.less, self, other)

    def __le__(self, other: Any) -> Any:
        return self.operate(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return self.operate(np.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return self.operate(np.greater_equal, self, other)

    def __eq__(self, other: Any) -> Any:
        return self.operate(np.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return self.operate(np.not_equal, self, other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]
