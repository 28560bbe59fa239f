"""What may be written in a text: numbers by name, operators, functions; and what to say about the rest."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from ..terms import primitives as p
from ..tracing.rules import scipy_names
from ..tracing.traced import holds_traced

CONSTANTS = {"pi": float(np.pi), "e": float(np.e), "inf": float("inf")}

_WORDS = "Add add Sub sub Mult mul Div truediv FloorDiv floordiv Mod mod Pow pow MatMult matmul USub neg UAdd pos"
_COMPARED = "Lt lt LtE le Gt gt GtE ge Eq eq NotEq ne"
_PAIRS = f"{_WORDS} {_COMPARED}".split()
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    **{getattr(ast, a): getattr(operator, b) for a, b in zip(_PAIRS[::2], _PAIRS[1::2], strict=True)},
    **{ast.Not: np.logical_not, ast.And: np.logical_and, ast.Or: np.logical_or},
}

_NUMBERS = "is not known here; numbers are compared with == < <= > >= !="
NO_OPERATOR: dict[type[ast.AST], str] = {
    ast.BitXor: "^ is not known here; powers are written x ** y",
    ast.BitAnd: "& is not known here; write x > 0 and x < 1",
    ast.BitOr: "| is not known here; write x < 0 or x > 1",
    ast.Invert: "~ is not known here; write not",
    ast.LShift: "<< is not known here; write x * 2 ** n",
    ast.RShift: ">> is not known here; write x / 2 ** n",
    **{ast.Is: f"'is' {_NUMBERS}", ast.IsNot: f"'is not' {_NUMBERS}"},
    **{ast.In: f"'in' {_NUMBERS}", ast.NotIn: f"'not in' {_NUMBERS}"},
}

_GIVEN = "names cannot be given inside an expression; write the value where it is needed, or make it a parameter"
_LOOPS = "loops are not known here; write the operation on the whole array"
NO_NODE: dict[type[ast.AST], str] = {
    ast.IfExp: "a condition is written where(condition, value, other)",
    ast.Lambda: "functions inside an expression are not known here; write another text and call both from Python",
    ast.NamedExpr: _GIVEN,
    ast.Starred: "* before an argument is not known here; write the arguments one by one",
    ast.Tuple: "a tuple stands for several results and cannot be computed with; write [a, b] for a vector",
    ast.Slice: "slices belong inside x[…]",
    ast.Set: "sets are not known here; write [a, b] for a vector",
    ast.Dict: "dicts are not known here; write [a, b] for a vector, or a, b for two results",
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp), _LOOPS),
    ast.JoinedStr: "strings are not known here",
}


class TextFunction(NamedTuple):
    """A function: how many arrays it takes, then its options, which are constants."""

    function: Callable[..., Any]
    least: int
    most: int
    options: tuple[str, ...] = ()
    required: int = 0  # how many of the options have to be there
    by_position: bool = True  # whether options can be given without their names
    elementwise: bool = False
    sequence: bool = False  # the first argument is a list of arrays
    labels: bool = False  # before the arrays there is a string of labels
    advice: str = ""

    def usage(self, name: str) -> str:
        """How it is written."""
        arrays = ["x"] if self.most == 1 else ["x", "y", "z"][: self.least] if self.most <= 3 else ["x", "…"]
        first = ['"ij,j->i"'] if self.labels else []
        shown = ["[x, y]"] if self.sequence else arrays
        needed = self.required if self.by_position else len(self.options)
        options = [f"{k}=…" if i < needed else f"[{k}=…]" for i, k in enumerate(self.options)]
        return f"{name}({', '.join([*first, *shown, *options])})"


def _floats(x: Any) -> Any:
    """Integers as floats, for riesz's own functions."""
    if isinstance(x, (bool, int)):
        return float(x)
    return np.asarray(x, float) if isinstance(x, np.ndarray) and cast(Any, x).dtype.kind in "iub" else cast(Any, x)


def _on_floats(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(_floats(x))


def _round(x: Any, decimals: int = 0) -> Any:
    """np.round takes a second for each 10⁸ decimals."""
    if abs(decimals) > 400:
        raise ValueError(f"a float has no more than some 300 decimals; got decimals={decimals}")
    return np.round(x, decimals)


def _softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x)


def _reshape(x: Any, shape: Any) -> Any:
    return np.reshape(x, shape)


def _special(name: str) -> Callable[..., Any]:
    """A function of scipy.special, imported when it is first called."""

    def function(*xs: Any, **options: Any) -> Any:
        if name in _OWN and holds_traced(xs):
            return getattr(scipy_names, name)(*xs, **options)
        import scipy.special as special  # pyright: ignore[reportMissingTypeStubs]

        return getattr(special, name)(*xs, **options)

    function.__name__ = name
    return function


def _of_matrices(name: str) -> Callable[[Any], Any]:
    """A function of scipy.linalg, imported when it is first called."""

    def function(x: Any) -> Any:
        import scipy.linalg as linalg  # pyright: ignore[reportMissingTypeStubs]

        original = getattr(linalg, name)
        return (scipy_names.counterparts()[original] if holds_traced((x,)) else original)(_floats(x))

    function.__name__ = name
    return function


_OWN = ("logsumexp", "softmax", "log_softmax")
_REDUCED = ("axis", "keepdims")
_LARGER = "; the {} of two values is {}(x, y)"


def _all(names: str, arrays: int, *options: Any, of: Any = np, **more: Any) -> dict[str, TextFunction]:
    """Functions with as many arrays and the same options, from a module or by a function that finds them."""
    by_name = of in (_special, _of_matrices)
    found = {name: of(name) if by_name else getattr(of, name) for name in names.split()}
    return {name: TextFunction(f, arrays, arrays, *options, **more) for name, f in found.items()}


_TURNS = "sin cos tan arcsin arccos arctan asin acos atan sinh cosh tanh arcsinh arccosh arctanh asinh acosh atanh"
_POWERS = "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal"
_SIGNS = "absolute abs fabs sign negative positive deg2rad rad2deg degrees radians sinc i0"
_ROUNDED = "floor ceil rint trunc logical_not isnan isfinite isinf nan_to_num"
_ARITHMETIC = "add subtract multiply divide true_divide floor_divide power pow float_power remainder mod fmod"
_PAIRED = "maximum minimum fmax fmin arctan2 atan2 hypot logaddexp logaddexp2 copysign heaviside"
_RELATED = "less less_equal greater greater_equal equal not_equal logical_and logical_or logical_xor"

FUNCTIONS: dict[str, TextFunction] = {
    **_all(f"{_TURNS} {_POWERS} {_SIGNS} {_ROUNDED}", 1, elementwise=True),
    **_all(f"{_ARITHMETIC} {_PAIRED} {_RELATED}", 2, elementwise=True),
    **_all("erf erfc gamma gammaln digamma expit logit", 1, of=_special, elementwise=True),
    **_all("xlogy", 2, of=_special, elementwise=True),
    "ln": TextFunction(np.log, 1, 1, elementwise=True),
    "sigmoid": TextFunction(_on_floats(p.sigmoid), 1, 1, elementwise=True),
    "relu": TextFunction(_on_floats(p.relu), 1, 1, elementwise=True),
    "softplus": TextFunction(_softplus, 1, 1, elementwise=True),
    "round": TextFunction(_round, 1, 1, ("decimals",), elementwise=True),
    **_all("where", 3),
    **_all("clip", 3, elementwise=True),
    # reductions
    **_all("sum mean prod", 1, _REDUCED),
    "max": TextFunction(np.max, 1, 1, _REDUCED, by_position=False, advice=_LARGER.format("larger", "maximum")),
    "min": TextFunction(np.min, 1, 1, _REDUCED, by_position=False, advice=_LARGER.format("smaller", "minimum")),
    **_all("var std", 1, (*_REDUCED, "ddof"), by_position=False),
    **_all("cumsum cumprod", 1, ("axis",)),
    **_all("diff", 1, ("axis",), by_position=False),
    **_all("norm", 1, ("ord", *_REDUCED), of=np.linalg),
    **_all("logsumexp", 1, _REDUCED, of=_special),
    **_all("softmax log_softmax", 1, ("axis",), of=_special),
    # products
    **_all("dot inner vdot outer matmul cross kron", 2),
    **_all("tensordot", 2, ("axes",)),
    "einsum": TextFunction(np.einsum, 1, 50, labels=True),
    # linear algebra
    **_all("trace diag", 1),
    **_all("tril triu", 1, ("k",)),
    **_all("inv pinv det slogdet cholesky", 1, of=np.linalg),
    **_all("solve", 2, of=np.linalg),
    **_all("expm logm sqrtm sinm cosm", 1, of=_of_matrices),
    # rearranging
    **_all("transpose", 1, ("axes",)),
    **_all("swapaxes", 1, ("axis1", "axis2"), 2),
    **_all("moveaxis", 1, ("source", "destination"), 2),
    "reshape": TextFunction(_reshape, 1, 1, ("shape",), 1),
    **_all("ravel", 1),
    **_all("squeeze flip sort", 1, ("axis",)),
    **_all("expand_dims", 1, ("axis",), 1),
    **_all("roll", 1, ("shift", "axis"), 1),
    **_all("concatenate stack", 1, ("axis",), sequence=True),
    **_all("hstack vstack", 1, sequence=True),
}
"""All of them. Nothing here makes an array whose size is a number in the text; what the text makes of its arguments is
counted (`text.Limit`)."""
