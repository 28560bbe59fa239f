"""How an array would lie in memory: by rows, or as NumPy lays out what it computes from transposed arrays.

It decides whether a reshape is a view or a copy, so it is asked for when one is written to. NumPy itself answers: the
function that made the array runs on stand-ins that lie in memory as its arguments do.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .operators import Operators
from .trace import refuse

_TRACED: Any = Operators
REORDERS = {np.einsum, np.cross, np.delete, np.insert, np.linspace, np.asfortranarray, np.array, np.copy, np.append}
"""Functions that may lay out their results by other than rows, though their arguments lie so."""
_UNKNOWN = object()
_MOST = 1 << 24  # numbers in stand-ins; larger ones are not made


class Made:
    """How an array was made: a function of NumPy's, or x[key], and its arguments."""

    __slots__ = ("args", "function", "named")

    def __init__(self, function: Any, args: Any, named: dict[str, Any] | None = None) -> None:
        self.function, self.args, self.named = function, args, named or {}


def frame_of(memory: Any) -> Any:
    """An array that lies as the elements of a memory do; None where that is not known."""
    stack = [memory]
    while stack:
        now = stack[-1]
        how = now.odd
        if not isinstance(how, Made):
            stack.pop()
            continue
        behind = [m for m in map(_memory, _leaves((how.args, how.named))) if m is not None and isinstance(m.odd, Made)]
        if behind:
            stack.extend(behind)
            continue
        now.odd = _run(how, now.shape)
        stack.pop()
    if memory.odd is _UNKNOWN:
        return None
    return memory.odd if memory.odd is not None else np.empty(memory.shape, np.int8)


def _run(how: Made, shape: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            found = how.function(*_standing(how.args), **{k: _standing(v) for k, v in how.named.items()})
    except Exception:  # NumPy's answer, whatever it is, is none
        return _UNKNOWN
    fits = isinstance(found, np.ndarray) and found.shape == shape
    return np.empty_like(found, np.float32, "K", subok=False) if fits else _UNKNOWN


def _memory(x: Any) -> Any:
    return None if not isinstance(x, _TRACED) or x.look is None or x.look.waits else root_of(x).look.memory


def root_of(x: Any) -> Any:
    """The array at the root of a view."""
    while x.look is not None and x.look.parent is not None:
        x = x.look.parent
    return x


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(cast("dict[Any, Any]", x).values())
    if isinstance(x, (list, tuple)):
        return [leaf for part in cast("list[Any]", x) for leaf in _leaves(part)]
    return [x]


def _standing(x: Any) -> Any:
    """What stands for arguments."""
    if isinstance(x, (list, tuple)):
        return type(x)([_standing(part) for part in cast("list[Any]", x)])  # pyright: ignore
    return standing(x) if isinstance(x, _TRACED) else x


def standing(x: Any) -> Any:
    """An array that lies in memory as a traced one does."""
    chain = [x]
    while chain[-1].look is not None and chain[-1].look.parent is not None:
        chain.append(chain[-1].look.parent)
    memory = _memory(x)
    found = None if memory is None else frame_of(memory)
    if memory is not None and found is None:
        raise LookupError
    shape = x.shape if memory is None else memory.shape
    found = _filled(np.empty(shape, np.float32) if found is None else found)
    for y in reversed(chain[:-1]):
        found = y.look.how(found)
    return found


def axes_in_memory(x: Any) -> tuple[int, ...]:
    """The axes of a traced array, those with the longest strides first, as np.ravel(x, "K") reads them."""
    found = _lying(x)
    if found is None:
        return tuple(range(len(x.shape)))
    return tuple(sorted(range(found.ndim), key=lambda i: (-abs(found.strides[i]), i)))


def lies_by_columns(x: Any) -> bool:
    """Whether order="A" means columns first."""
    found = _lying(x)
    return found is not None and found.flags.f_contiguous and not found.flags.c_contiguous


def _lying(x: Any) -> Any:
    if getattr(x, "look", None) is None or not x.look.moved:
        return None
    try:
        return standing(x)
    except LookupError:
        raise refuse(
            "how NumPy lays this array out in memory is not known, and order='K' or 'A' asks for it; write order='C', "
            "or copy it first: x = x.copy()"
        ) from None


def like(x: Any, order: Any = "K", shape: Any = None) -> Any:
    """An array for np.zeros_like and its kin: it lies as x does, or as asked for."""
    size = x.shape if shape is None else shape
    if order == "F" or (order != "C" and shape is None and getattr(x, "look", None) is not None and x.look.moved):
        try:
            return np.empty_like(standing(x), order=order, shape=shape)
        except LookupError:
            pass
    return np.empty(size, np.float32)


def _filled(like: Any) -> Any:
    """A stand-in that lies so: the identity where it is a matrix, so that most functions can be asked."""
    if like.size > _MOST:
        raise LookupError
    found = np.zeros_like(like, np.float32)
    if found.ndim > 1:
        n = min(found.shape[-2:])
        found[..., np.arange(n), np.arange(n)] = 1.0
    else:
        found[...] = 1.0
    return found
