"""A step of a program as a term: how what NumPy code does beyond the combinators of the paper appears in combinatory
form."""

from __future__ import annotations

from typing import Any

from ..ops.op import Contraction, Op, Single
from ..spaces.space import Space, direct_sum, real_space
from .term import Term


class Applied(Term):
    """op : ⊕ ℝ^Xᵢ → ⊕ ℝ^Yⱼ, an operation on arrays of the given shapes; linear where the op is, or a contraction of one
    array."""

    op: Op
    shapes: tuple[tuple[int, ...], ...]

    def check(self) -> None:
        found: Any = self.op.shape_of(self.shapes)
        target: Space = direct_sum(*[real_space(s) for s in found]) if self.several else real_space(found)
        spaces = [real_space(s) for s in self.shapes]
        linear = isinstance(self.op, Single) or (self.product is not None and len(spaces) == 1)
        self._type(spaces[0] if len(spaces) == 1 else direct_sum(*spaces), target, linear)

    @property
    def product(self) -> Contraction | None:
        """The op, if it is a contraction and nothing more: Σ over labels of the product of its arguments."""
        return self.op if isinstance(self.op, Contraction) and not self.op.strong else None

    @property
    def several(self) -> bool:
        """Whether the op has a tuple of results."""
        found: Any = self.op.shape_of(self.shapes)
        return bool(found) and type(found[0]) is tuple

    @property
    def turned(self) -> Term:
        """The adjoint, of a linear op with one argument."""
        op: Any = self.op
        turned = op.turned(self.shapes[0]) if isinstance(op, Single) else op.transpose(0, self.shapes)
        return Applied(turned, (op.result(self.shapes),))
