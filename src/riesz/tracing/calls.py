"""NumPy's functions, ufuncs and operators on traced arrays: how a call reaches its rule, and what its result is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .classes import (
    INTEGER,
    is_integer,
    of_python,
)
from .mistakes import raise_explained
from .registry import BY_NAME, FUNCTIONS, MASKED, UFUNCS, by_name
from .registry import NOTES as NOTES
from .registry import answers as answers
from .sharing import (
    OPERANDS,
    SUMS,
    VIEWS,
    fresh,
    places_of,
    rearranges,
    traced_in,
    views,
    without_out,
    writable,
)
from .surroundings.outside import note
from .trace import inmost, refuse
from .traced import FLOAT, INT, Traced, convert, is_complex, settle, slot_of, typed

_OPERATING = {np.where, np.clip, np.round, np.around}  # to these Python's numbers are what they are to operators
KINDS: dict[Any, Any] = {
    **dict.fromkeys((np.tensordot, np.linalg.tensordot, np.full, np.piecewise, np.i0, np.cross, np.roll), None),
    **dict.fromkeys((np.interp, np.nan_to_num), False),
}
"""What a result without axes is: an array (None), or a number (False). Others keep what their rules make."""


@by_name
def call_function(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The rule of a NumPy function."""
    if len(args) > 2 or "out" in named:
        args, named, target = without_out(function, args, named)
        if target is not None:
            target[...] = call_function(function, args, named)
            return target
    if (home := inmost()) is not None and home.marked:
        args, named = settle(args), {k: settle(v) for k, v in named.items()}
    if any([is_integer(x) for x in args]) and function not in _OPERATING:
        args = tuple([convert(x, INT) if is_integer(x) else x for x in args])
    given = traced_in(args)
    note((*args, *named.values()), function not in OPERANDS)
    try:
        result = FUNCTIONS[function](*args, **named)
    except Exception as problem:
        raise_explained(problem, function, args, named)
    if function in VIEWS or (function == np.einsum and rearranges(args)):
        return views(function, result, args, named, given)
    result = fresh(result, function, args, named, given)  # of a Python number too it is one of NumPy, but for its parts
    if function in KINDS and type(result) is Traced:
        return typed(result, KINDS[function])
    return typed(result, False) if type(result) is Traced and result.weak and function is not np.imag else result


_INTEGRAL = {np.add, np.subtract, np.multiply, np.floor_divide, np.remainder}
_BITWISE = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.invert}


@by_name
def integers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integers of Python's among arguments of NumPy's functions: integers of NumPy's, where no array gives the type."""
    if not any([is_integer(x) for x in args]) or not all([of_python(x) for x in args]):
        return args
    return tuple([convert(x, INT) if is_integer(x) else x for x in args])


@by_name
def of_integers(ufunc: Any, left: Any, right: Any) -> Any:
    """An operator of two integers of Python's."""
    if ufunc in _BITWISE:
        return call_ufunc(ufunc, integers((left, right)), {})
    whole = ufunc in _INTEGRAL or (ufunc is np.power and type(right) is int and right >= 0)
    return typed(call_ufunc(ufunc, (typed(left, True), typed(right, True)), {}), INTEGER if whole else True)


@by_name
def operator(ufunc: Any, left: Any, right: Any) -> Any:
    """An operator's ufunc; what refuses ufuncs gets its own turn."""
    for other in (left, right):
        kind: Any = type(other)
        if kind is not Traced and (kind in MASKED or getattr(kind, "__array_ufunc__", 0) is None):
            return NotImplemented
        if hasattr(kind, "tocoo") and ufunc is not np.matmul:
            return BY_NAME["with_numbers"](ufunc, left, right)
    second = ufunc is np.power and type(right) is int and right == 2
    if second and left.dtype.kind == "b" and (left.shape or left.weak is None):
        return call_ufunc(np.square, (left,), {})  # so does NumPy, and it matters for the type
    return call_ufunc(ufunc, (left, right), {})


_VECDOT: Any = getattr(np, "vecdot", None)


@by_name
def call_ufunc(ufunc: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A ufunc on arguments some of which are traced."""
    if (home := inmost()) is not None and home.marked:
        args = settle(args)
    usual = True  # traced floats, no others
    for x in args:
        if type(x) is Traced:
            usual = usual and x.dtype is FLOAT
        else:
            usual = False
            if type(x) is not float and is_complex(x):
                return BY_NAME["call_complex_ufunc"](ufunc, args, named)
    if not usual:
        note(args, False)
    rule = UFUNCS.get(ufunc)
    if rule is None:
        rule = BY_NAME["special_rule"](ufunc)
        if rule is None:
            adds = "rz.primitive or rz.custom_derivative adds it"
            raise refuse(f"the ufunc {ufunc.__name__} is not known to riesz for traced arrays; {adds}")
    if named:
        name = f"np.{ufunc.__name__}"
        if named.get("where", True) is not True:
            raise refuse(f"{name}(…, where=…) is not known to riesz; write np.where(mask, {name}(…), other)")
        if "axis" in named and ufunc is _VECDOT:
            args = tuple([np.moveaxis(x, named["axis"], -1) for x in args])
            named = {k: v for k, v in named.items() if k != "axis"}
        for k in named:
            if k in ("axis", "axes", "keepdims", "signature"):
                axes = "np.moveaxis and np.einsum say which axes"
                raise refuse(f"{name}(…, {k}=…) is not known to riesz for traced arrays; {axes}")
    try:
        found = rule(*args) if usual else rule(*_in_small_types(ufunc, args))
    except Exception as problem:
        raise_explained(problem, ufunc, args)
    found = convert(found, np.dtype(named["dtype"])) if named and named.get("dtype") is not None else found
    return fresh(found, ufunc, args, named)


def _in_small_types(ufunc: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a ufunc: booleans and integers of 8 and 16 bits in the small float type they give."""
    small = any([type(x) is Traced and x.dtype.kind != "f" and x.dtype.itemsize < 4 for x in args])
    if not small or not all([hasattr(x, "dtype") or type(x) in (int, float) for x in args]):
        return args
    kinds = [x.dtype if hasattr(x, "dtype") else type(x) for x in args]
    dtype = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))[-1]
    small = dtype.kind == "f" and dtype != FLOAT
    return tuple([convert(x, dtype) if hasattr(x, "dtype") else x for x in args]) if small else args


@by_name
def in_place(ufunc: Any, x: Any, other: Any) -> Any:
    """x += other and its kin: of a number, a new number; of an array, the array changes for all who hold it."""
    if not x.shape and x.weak is not None:
        return x.operate(ufunc, x, other)
    if x.look is not None and x.look.waits and ufunc in SUMS:
        found = BY_NAME["plus"](ufunc, x, other)
        if found is not None:
            x.look = found.look
            return x
    if x.look is not None or x.maker is not inmost():
        writable(x)
        if ufunc in SUMS and BY_NAME["added_to_view"](ufunc, x, other):
            return x
    result = operator(ufunc, x, other)
    if result is NotImplemented:
        return result
    cannot = f"cannot cast the result of {ufunc.__name__} from"
    if type(result) is not Traced:
        raise TypeError(f"{cannot} complex numbers to {x.dtype} in place; write x = x + … instead")
    if result.shape != x.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast shape {result.shape}"
        )
    if result.dtype.kind == "f" and x.dtype.kind != "f":
        raise TypeError(f"{cannot} {result.dtype} to {x.dtype} in place; write x = x.astype(float) first")
    if x.look is None:  # an array of an outer trace becomes one of the inner trace
        x.home, x.own_slot = result.home, slot_of(result.home, result, x.dtype)
    else:
        x.look.memory.write(places_of(x), ..., slot_of(x.look.memory.trace, result, x.dtype))
    return x
