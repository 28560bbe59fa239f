"""The methods of arrays, handed to `_call`."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .registry import FUNCTIONS


class ArrayMethods:
    """x.sum(), x.T and their kin, for a class that has `_call` and `copy`."""

    __slots__ = ()

    def _call(self, function: Any, *args: Any, **named: Any) -> Any:
        raise NotImplementedError

    def copy(self, order: str | None = "C") -> Any:
        """The same numbers, on their own."""
        raise NotImplementedError

    T: Any = property(lambda self: self._call(np.transpose), doc="The transpose.")
    mT: Any = property(lambda self: self._call(np.swapaxes, -1, -2), doc="The transpose of the last two axes.")

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, **named: Any) -> Any:
        """Σ over axes."""
        return self._call(np.sum, axis, dtype, out, **named)

    def reshape(self, *shape: Any, order: str = "C", **named: Any) -> Any:
        """The same numbers under another shape."""
        return self._call(np.reshape, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Axes permuted."""
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return self._call(np.transpose, given)

    def flatten(self, order: str = "C") -> Any:
        """In one axis, on their own."""
        return self.copy()._call(np.ravel, order).copy()

    def dot(self, other: Any, out: Any = None) -> Any:
        """As np.dot."""
        return np.dot(cast(Any, self), other, out=out)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """As np.compress."""
        return FUNCTIONS[np.compress](condition, self, axis)

    def conj(self) -> Any:
        """The array itself."""
        return self

    conjugate = conj


def _method(name: str) -> Any:
    function = getattr(np, name)

    def method(self: ArrayMethods, *args: Any, **named: Any) -> Any:
        return self._call(function, *args, **named)  # pyright: ignore[reportPrivateUsage]

    method.__name__, method.__doc__ = name, f"As np.{name}."
    return method


_METHODS = """mean prod max min var std any all argmax argmin argsort cumsum cumprod ravel swapaxes squeeze repeat take
clip round trace diagonal searchsorted"""


for _name in _METHODS.split():
    setattr(ArrayMethods, _name, _method(_name))
