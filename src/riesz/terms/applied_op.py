"""A step of a program as a term: how what NumPy code does beyond the combinators of the paper appears in combinatory
form."""

from __future__ import annotations

from typing import Any

from ..ops.op import Op, Single
from ..spaces.space import Space, direct_sum, real_space
from .term import Term


class Applied(Term):
    """op : ⊕ ℝ^Xᵢ → ⊕ ℝ^Yⱼ, an operation on arrays of the given shapes; linear where the op is."""

    op: Op
    shapes: tuple[tuple[int, ...], ...]

    def check(self) -> None:
        found: Any = self.op.shape_of(self.shapes)
        target: Space = direct_sum(*[real_space(s) for s in found]) if self.several else real_space(found)
        spaces = [real_space(s) for s in self.shapes]
        self._type(spaces[0] if len(spaces) == 1 else direct_sum(*spaces), target, isinstance(self.op, Single))

    @property
    def several(self) -> bool:
        """Whether the op has a tuple of results."""
        found: Any = self.op.shape_of(self.shapes)
        return bool(found) and type(found[0]) is tuple

    @property
    def turned(self) -> Term:
        """The adjoint, of a linear op with one argument."""
        assert isinstance(self.op, Single)
        return Applied(self.op.turned(self.shapes[0]), (self.op.result(self.shapes),))
