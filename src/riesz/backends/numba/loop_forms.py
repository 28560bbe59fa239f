"""What one step does to numbers, as an expression that Numba compiles.

Types follow NumPy: a Python float takes the type of what it meets, sums of float32 are carried out in float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction
from ...ops.opaque import Discrete, Ruled, Select
from ...programs.axis.along import kind_of
from ...programs.axis.component_code import FORMS, WHOLE, formed, selection, typed, usual
from ...terms.primitives import RULES
from ..source_text import weighted_sum

Kind = Any  # a dtype, or the type float
FLOAT = np.dtype(float)
WIDEST = 1e6
"""Our own sines and cosines are right up to here; beyond it π/2 would be needed to more digits."""

_ONE = (np.exp, np.log, np.expm1, np.log1p, np.tanh, np.sin, np.cos)
VECTORS: dict[Any, str] = {
    **{function: f"{function.__name__}({{0}})" for function in _ONE},
    np.logaddexp: "logaddexp({0}, {1})",
    RULES["sigmoid"].array: "sigmoid({0})",
}
"""Functions with code of our own, which compilers turn into vector instructions (vector_math.py)."""
_FORMS = {
    **FORMS,
    **VECTORS,
    RULES["relu"].array: "np.maximum({0}, 0.0)",
    RULES["inverse"].array: "(0.0 if {0} == 0.0 else 1.0 / {0})",
    RULES["log0"].array: "(0.0 if {0} == 0.0 else log({0}))",
    np.reciprocal: "1.0 / {0}",
    np.square: "{0} * {0}",
}


def has_form(op: Any) -> bool:
    """Whether there is an expression for a step that has `accesses.READS`, if its numbers are of the usual kinds."""
    match op:
        case Elementwise(primitive=p):
            return p.rule is RULES["power"] or (p.parameter is None and p.rule.array in _FORMS)
        case Discrete():
            known = op.function == np.where or op.function.__name__ == "as_type"
            return op.shaped is None and (known or (not op.parameters and op.function in _FORMS))
        case _:
            return True


class Accumulation(NamedTuple):
    """How numbers become one: a function of two, what to begin with, the same along an axis of an array."""

    name: str
    start: str
    along: Any


def total_of(op: Any) -> Accumulation:
    """How a step that adds up, or takes an extremum, does so."""
    if type(op) is not Ruled:
        return Accumulation("plus", "0.0", np.sum)
    return Accumulation("larger", "-np.inf", np.max) if op.title == "max" else Accumulation("smaller", "np.inf", np.min)


def result_kind(op: Any, kinds: Sequence[Kind], shape: Any) -> Kind:
    """The kind of a step's result; the type float where it is a Python float, or one repeated."""
    if all([k is float for k in kinds]) and not isinstance(op, (Discrete, Cast)):
        return float
    if type(op) is Discrete and op.function.__name__ == "as_type":
        return np.dtype(dict(op.parameters)["dtype"])
    kind = np.dtype(kind_of(op, kinds))
    return float if kind == FLOAT and not shape else kind


def expression(op: Any, terms: Sequence[Sequence[tuple[str, Kind]]], kind: Kind) -> str | None:
    """A step at one position, from the numbers that each of its terms reads; None where it has no form for numbers of
    these kinds."""
    dtype = np.dtype(kind)
    if not usual(dtype) or not all([usual(k) for xs in terms for _, k in xs]):
        return None
    floats = dtype.kind == "f"
    if type(op) in (float, Combination, Contraction, Elementwise, Ruled) and not floats:
        return None
    xs = list(terms[0]) if terms else []
    match op:
        case Reduction() if floats or len(terms) == 1:
            return " + ".join([typed(*xs[0], dtype) for xs in terms]) or typed("0.0", FLOAT, dtype)
        case Reduction():
            return None
        case Contraction():
            return " + ".join([_product(op, xs, dtype) for xs in terms]) or typed("0.0", FLOAT, dtype)
        case Ruled():
            each = [typed(*xs[0], dtype) for xs in terms]
            return functools.reduce(lambda a, b: f"{total_of(op).name}({a}, {b})", each)
        case float():
            return f"{literal(op, dtype)} * {typed(*xs[0], dtype)}"
        case Combination(coefficients=ks):
            return weighted_sum(ks, [typed(*x, dtype) for x in xs], lambda k: literal(k, dtype))
        case Elementwise(primitive=p) if p.rule is RULES["power"]:
            return _power(typed(*xs[0], dtype), p.parameter, dtype)
        case Elementwise(primitive=p):
            return _form(p.rule.array, xs, dtype)
        case Discrete(function=f) if f != np.where and f.__name__ != "as_type":
            return _form(f, xs, dtype)
        case Select() | Discrete(function=np.where):
            return selection(xs, dtype)
        case _:
            return typed(*xs[0], dtype)


def turned(op: Any) -> bool:
    """Whether a step is a sine or a cosine: our own are right up to a bound only."""
    return type(op) is Elementwise and op.primitive.rule.array in (np.sin, np.cos)


def literal(k: float, dtype: Any) -> str:
    """A number in code."""
    text = repr(float(k)) if math.isfinite(k) else f"np.{'nan' if math.isnan(k) else 'inf'}"
    text = f"(-{text})" if k == -math.inf else f"({text})" if text[0] == "-" else text
    return text if dtype != np.dtype("f") else f"float32({text})"


def _form(function: Any, xs: Sequence[tuple[str, Kind]], dtype: Any) -> str | None:
    common = dtype if dtype.kind == "f" else np.result_type(*[1.0 if k is float else k for _, k in xs])
    if common.kind not in "fb" and function not in WHOLE and dtype.kind != "b":
        return None
    return formed(_FORMS[function], xs, dtype)


def _power(x: str, k: float, dtype: Any) -> str:
    """x^k: by multiplication where that is short, the root as NumPy takes it."""
    if k == 0.5:
        return typed(f"math.sqrt({x})", FLOAT, dtype)
    if abs(k) not in (1.0, 2.0, 3.0, 4.0):
        return typed(f"{x} ** {literal(k, FLOAT)}", FLOAT, dtype)
    product = f"({x} * {x}) * ({x} * {x})" if abs(k) == 4.0 else " * ".join([x] * int(abs(k)))
    return product if k > 0 else f"{literal(1.0, dtype)} / ({product})"


def _product(op: Contraction, xs: Sequence[tuple[str, Kind]], dtype: Any) -> str:
    """A product; 0 where a strong factor is 0, whatever the others are (Note [Strong] in ops/op.py). Truth values only
    select."""
    masks = [i for i in op.strong if xs[i][1] == np.dtype(bool)]
    factors = [typed(*x, dtype) for i, x in enumerate(xs) if i not in masks] or [literal(1.0, dtype)]
    text = " * ".join(factors)
    for i in op.strong:
        text = f"({text} if {xs[i][0] if i in masks else f'{xs[i][0]} != 0'} else {literal(0.0, dtype)})"
    return text
