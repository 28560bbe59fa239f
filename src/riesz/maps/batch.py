"""A linear program on many vectors at once: every slot that depends on the inputs gets one leading axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..calculus.domains import NUMBERS
from ..calculus.mapped import mapped
from ..programs.program import Program
from ..vectors import dense


def batched(program: Program, inputs: Sequence[Any], n: int) -> list[Any]:
    """The outputs of a linear program on inputs with a leading axis of length n."""
    with np.errstate(all="ignore"):
        return [dense(x) for x in mapped(program, NUMBERS, inputs, [True] * len(inputs), n)]
