"""Which traced arrays share their numbers, as NumPy's do: views, copies, and operators in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from .operators import Operators
from .trace import refuse

_TRACED: Any = Operators  # the operators of traced arrays, and of nothing else
ARGUMENT = "argument"
"""How an array is shared that the caller of the function has."""
_NAMES = """reshape ravel transpose permute_dims swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to
broadcast_arrays diagonal split array_split vsplit hsplit dsplit atleast_1d atleast_2d atleast_3d flip fliplr flipud
rot90 real real_if_close matrix_transpose unstack"""
_VIEWS = {getattr(np, name) for name in _NAMES.split() if hasattr(np, name)}  # unstack is new
VIEWS = _VIEWS | {np.linalg.matrix_transpose, np.linalg.diagonal}
"""Functions whose results look into their argument; what others do inside does not make an array shared."""
_USERS = "dot einsum tensordot inner outer where concatenate stack vstack hstack vdot kron"
OPERANDS = {getattr(np, name) for name in _USERS.split()}
"""Functions that use the arrays they are given as they use traced ones: as arguments of steps, whose numbers are read
when the program runs."""


def traced_in(xs: Sequence[Any]) -> list[Any]:
    """The traced arrays among some values, and in lists and tuples of them."""
    found: list[Any] = []
    for x in xs:
        if isinstance(x, _TRACED):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found.extend(traced_in(cast("list[Any]", x)))
    return found


def rearranges(args: tuple[Any, ...]) -> bool:
    """Whether np.einsum of one array only moves its axes: then it gives a view."""
    if len(args) != 2 or not isinstance(args[0], str):
        return False
    before, arrow, after = args[0].replace(" ", "").partition("->")
    return set(before) <= set(after) if arrow else len(set(before)) == len(before)


def fresh(result: Any, args: Sequence[Any]) -> Any:
    """What a function that gives no view gives: an array on its own, also where it has the numbers of an argument."""
    if isinstance(result, _TRACED):
        for x in args:
            if result is x:
                return result.copy()
        result.shared = False
    elif isinstance(result, (list, tuple)):
        for part in cast("list[Any]", result):
            if isinstance(part, _TRACED) and not any([part is x for x in args]):
                part.shared = False
    return result


def in_place(ufunc: Any, x: Any, other: Any) -> Any:
    """x += other and its kin: of a number, a new number; of an array, the array changes for all who hold it, unless
    views of it are about."""
    from .traced import Traced, operator, slot_of

    if not x.shape and x.weak is not None:
        return operator(ufunc, x, other)
    if x.shared == ARGUMENT:
        raise refuse(
            f"an in-place operator ({ufunc.__name__}) on an array that the function was given would change the "
            "caller's array; write x = x + … instead, or copy it first: x = x.copy()"
        )
    if x.shared:
        raise refuse(
            f"an in-place operator ({ufunc.__name__}) on an array that shares its numbers with a view of it (x[...], "
            "x.T, x.reshape, …) is not possible while tracing: the view would have to change with it; write x = x + … "
            "(or copy one of the two first)"
        )
    result = operator(ufunc, x, other)
    if result is NotImplemented:
        return result
    cannot = f"cannot cast the result of {ufunc.__name__} from"
    if not isinstance(result, _TRACED):
        raise TypeError(f"{cannot} complex numbers to {x.dtype} in place; write x = x + … instead")
    if result.shape != x.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast shape {result.shape}"
        )
    if result.dtype.kind == "f" and x.dtype.kind != "f":
        raise TypeError(f"{cannot} {result.dtype} to {x.dtype} in place; write x = x.astype(float) first")
    if result.home is not x.home:  # the array of an outer trace becomes one of the inner trace
        x.home, result = result.home, Traced(result.home, result.slot, result.dtype)
    x.slot = slot_of(x.home, result, x.dtype)
    return x


def viewed(x: Any, part: Any) -> Any:
    """A view of x: from now on neither changes in place."""
    if isinstance(part, _TRACED) and isinstance(x, _TRACED) and part is not x and part.shape:
        x.shared = part.shared = x.shared or part.shared or True
    return part
