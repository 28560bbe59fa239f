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

_python: Any = operator
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _python.truediv,
    ast.FloorDiv: _python.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _python.pow,
    ast.MatMult: _python.matmul,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: np.logical_not,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

NO_OPERATOR: dict[type[ast.AST], str] = {
    ast.BitXor: "^ is not known here; powers are written x ** y",
    ast.BitAnd: "& is not known here; write x > 0 and x < 1",
    ast.BitOr: "| is not known here; write x < 0 or x > 1",
    ast.Invert: "~ is not known here; write not",
    ast.LShift: "<< is not known here; write x * 2 ** n",
    ast.RShift: ">> is not known here; write x / 2 ** n",
    ast.Is: "'is' is not known here; numbers are compared with == < <= > >= !=",
    ast.IsNot: "'is not' is not known here; numbers are compared with == < <= > >= !=",
    ast.In: "'in' is not known here; numbers are compared with == < <= > >= !=",
    ast.NotIn: "'not in' is not known here; numbers are compared with == < <= > >= !=",
}

NO_NODE: dict[type[ast.AST], str] = {
    ast.IfExp: "a condition is written where(condition, value, other)",
    ast.Lambda: "functions inside an expression are not known here; write another text and call both from Python",
    ast.NamedExpr: "names cannot be given inside an expression; write the value where it is needed, or make it a "
    "parameter",
    ast.Starred: "* before an argument is not known here; write the arguments one by one",
    ast.Tuple: "a tuple stands for several results and cannot be computed with; write [a, b] for a vector",
    ast.Slice: "slices belong inside x[…]",
    ast.Set: "sets are not known here; write [a, b] for a vector",
    ast.Dict: "dicts are not known here; write [a, b] for a vector, or a, b for two results",
    ast.ListComp: "loops are not known here; write the operation on the whole array",
    ast.GeneratorExp: "loops are not known here; write the operation on the whole array",
    ast.SetComp: "loops are not known here; write the operation on the whole array",
    ast.DictComp: "loops are not known here; write the operation on the whole array",
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
        options = [
            f"{k}=…" if i < self.required or not self.by_position else f"[{k}=…]" for i, k in enumerate(self.options)
        ]
        return f"{name}({', '.join([*first, *shown, *options])})"


def _floats(x: Any) -> Any:
    """Integers as floats, for riesz's own functions."""
    if isinstance(x, (bool, int)):
        return float(x)
    return np.asarray(x, float) if isinstance(x, np.ndarray) and cast(Any, x).dtype.kind in "iub" else cast(Any, x)


def _sigmoid(x: Any) -> Any:
    return p.sigmoid(_floats(x))


def _relu(x: Any) -> Any:
    return p.relu(_floats(x))


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
            return _OWN[name](*xs, **options)
        import scipy.special as special  # pyright: ignore[reportMissingTypeStubs]

        return getattr(special, name)(*xs, **options)

    function.__name__ = name
    return function


_OWN: dict[str, Callable[..., Any]] = {
    "logsumexp": scipy_names.logsumexp,
    "softmax": scipy_names.softmax,
    "log_softmax": scipy_names.log_softmax,
}

_UNARY = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "asinh", "acosh", "atanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "square", "reciprocal"),
    *(
        "absolute",
        "abs",
        "fabs",
        "sign",
        "negative",
        "positive",
        "deg2rad",
        "rad2deg",
        "degrees",
        "radians",
        "sinc",
        "i0",
    ),
    *("floor", "ceil", "rint", "trunc", "logical_not", "isnan", "isfinite", "isinf", "nan_to_num"),
)
_BINARY = (
    *(
        "add",
        "subtract",
        "multiply",
        "divide",
        "true_divide",
        "floor_divide",
        "power",
        "pow",
        "float_power",
        "remainder",
        "mod",
        "fmod",
    ),
    *(
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "arctan2",
        "atan2",
        "hypot",
        "logaddexp",
        "logaddexp2",
        "copysign",
        "heaviside",
    ),
    *(
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
    ),
)
_SPECIAL = {"erf": 1, "erfc": 1, "gamma": 1, "gammaln": 1, "digamma": 1, "expit": 1, "logit": 1, "xlogy": 2}
_REDUCED = ("axis", "keepdims")
_LARGER = "; the {} of two values is {}(x, y)"

FUNCTIONS: dict[str, TextFunction] = {
    **{name: TextFunction(getattr(np, name), 1, 1, elementwise=True) for name in _UNARY},
    **{name: TextFunction(getattr(np, name), 2, 2, elementwise=True) for name in _BINARY},
    **{name: TextFunction(_special(name), n, n, elementwise=True) for name, n in _SPECIAL.items()},
    "ln": TextFunction(np.log, 1, 1, elementwise=True),
    "sigmoid": TextFunction(_sigmoid, 1, 1, elementwise=True),
    "relu": TextFunction(_relu, 1, 1, elementwise=True),
    "softplus": TextFunction(_softplus, 1, 1, elementwise=True),
    "round": TextFunction(_round, 1, 1, ("decimals",), elementwise=True),
    "where": TextFunction(np.where, 3, 3),
    "clip": TextFunction(np.clip, 3, 3, elementwise=True),
    # reductions
    "sum": TextFunction(np.sum, 1, 1, _REDUCED),
    "mean": TextFunction(np.mean, 1, 1, _REDUCED),
    "prod": TextFunction(np.prod, 1, 1, _REDUCED),
    "max": TextFunction(np.max, 1, 1, _REDUCED, by_position=False, advice=_LARGER.format("larger", "maximum")),
    "min": TextFunction(np.min, 1, 1, _REDUCED, by_position=False, advice=_LARGER.format("smaller", "minimum")),
    "var": TextFunction(np.var, 1, 1, (*_REDUCED, "ddof"), by_position=False),
    "std": TextFunction(np.std, 1, 1, (*_REDUCED, "ddof"), by_position=False),
    "cumsum": TextFunction(np.cumsum, 1, 1, ("axis",)),
    "cumprod": TextFunction(np.cumprod, 1, 1, ("axis",)),
    "diff": TextFunction(np.diff, 1, 1, ("axis",), by_position=False),
    "norm": TextFunction(np.linalg.norm, 1, 1, ("ord", *_REDUCED)),
    "logsumexp": TextFunction(_special("logsumexp"), 1, 1, _REDUCED),
    "softmax": TextFunction(_special("softmax"), 1, 1, ("axis",)),
    "log_softmax": TextFunction(_special("log_softmax"), 1, 1, ("axis",)),
    # products
    "dot": TextFunction(np.dot, 2, 2),
    "inner": TextFunction(np.inner, 2, 2),
    "vdot": TextFunction(np.vdot, 2, 2),
    "outer": TextFunction(np.outer, 2, 2),
    "matmul": TextFunction(np.matmul, 2, 2),
    "cross": TextFunction(np.cross, 2, 2),
    "kron": TextFunction(np.kron, 2, 2),
    "tensordot": TextFunction(np.tensordot, 2, 2, ("axes",)),
    "einsum": TextFunction(np.einsum, 1, 50, labels=True),
    # linear algebra
    "trace": TextFunction(np.trace, 1, 1),
    "diag": TextFunction(np.diag, 1, 1),
    "tril": TextFunction(np.tril, 1, 1, ("k",)),
    "triu": TextFunction(np.triu, 1, 1, ("k",)),
    "inv": TextFunction(np.linalg.inv, 1, 1),
    "pinv": TextFunction(np.linalg.pinv, 1, 1),
    "det": TextFunction(np.linalg.det, 1, 1),
    "slogdet": TextFunction(np.linalg.slogdet, 1, 1),
    "solve": TextFunction(np.linalg.solve, 2, 2),
    "cholesky": TextFunction(np.linalg.cholesky, 1, 1),
    # rearranging
    "transpose": TextFunction(np.transpose, 1, 1, ("axes",)),
    "swapaxes": TextFunction(np.swapaxes, 1, 1, ("axis1", "axis2"), 2),
    "moveaxis": TextFunction(np.moveaxis, 1, 1, ("source", "destination"), 2),
    "reshape": TextFunction(_reshape, 1, 1, ("shape",), 1),
    "ravel": TextFunction(np.ravel, 1, 1),
    "squeeze": TextFunction(np.squeeze, 1, 1, ("axis",)),
    "expand_dims": TextFunction(np.expand_dims, 1, 1, ("axis",), 1),
    "flip": TextFunction(np.flip, 1, 1, ("axis",)),
    "roll": TextFunction(np.roll, 1, 1, ("shift", "axis"), 1),
    "sort": TextFunction(np.sort, 1, 1, ("axis",)),
    "concatenate": TextFunction(np.concatenate, 1, 1, ("axis",), sequence=True),
    "stack": TextFunction(np.stack, 1, 1, ("axis",), sequence=True),
    "hstack": TextFunction(np.hstack, 1, 1, sequence=True),
    "vstack": TextFunction(np.vstack, 1, 1, sequence=True),
}
"""All of them. Nothing here makes an array whose size is a number in the text; what the text makes of its arguments is
counted (`text.Limit`)."""
