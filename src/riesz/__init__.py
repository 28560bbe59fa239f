"""riesz: the derivative of a function is an object you can look at.

>>> import riesz as rz
>>> print(rz.derive(rz.ln @ rz.sin).derivative)
((sin x)⁻¹ ·) • (cos x ·)
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import relations
from .api import derive, dual, function, grad, hessian, hvp, jacobian, jvp, linearize, linearize_adjoint, undual, value_and_grad, vjp
from .calculus.guard import check_domain
from .errors import (
    DomainError,
    ExpressionError,
    IndexSetError,
    LinearityError,
    RelationError,
    RieszError,
    SolveError,
    SpaceError,
    TraceError,
    VectorError,
)
from .maps.linear_map import LinearMap
from .relations import Relation, relation
from .sets import Set, seg
from .spaces import R, Space, direct_sum, space_of
from .spaces import zero_space as Zero
from .syntax.control import checkpoint, cond, fori_loop, loop, stop_gradient, switch, vmap
from .syntax.custom import custom_derivative
from .terms.named_declared import bilinear, linear
from .terms.named_products import contract, contract_left, contract_right, hadamard, inner, left, matmul, matvec, outer, right, scalar_mul
from .terms.named_sums import (
    add,
    block_diag,
    const,
    dup,
    fork,
    id,
    inj,
    join,
    par,
    proj,
    red,
    rep,
    scan,
    total,
    total_over,
    unzip,
    zero,
    zip,
)
from .terms.named_unitary import assoc, bra, distrib, ket, transpose, unassoc, unbra, undistrib, unket
from .terms.primitives import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    divide,
    exp,
    expm1,
    ln,
    log,
    log1p,
    power,
    primitive,
    reciprocal,
    relu,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    step,
    tan,
    tanh,
)

if TYPE_CHECKING:
    from .backends.compiled import compile
    from .checking import check
    from .least_squares import gauss_newton, levenberg_marquardt
    from .maps.factored import Factored
    from .show.explain import explain
    from .simplify.laws import laws

_LATER = {
    "Factored": "maps.factored",
    "check": "checking",
    "compile": "backends.compiled",
    "explain": "show.explain",
    "gauss_newton": "least_squares",
    "laws": "simplify.laws",
    "levenberg_marquardt": "least_squares",
}


def __getattr__(name: str) -> Any:
    """What is not needed at once is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'riesz' has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])


__version__ = "0.1.0"

__all__ = [
    "DomainError",
    "ExpressionError",
    "Factored",
    "IndexSetError",
    "LinearMap",
    "LinearityError",
    "R",
    "Relation",
    "RelationError",
    "RieszError",
    "Set",
    "SolveError",
    "Space",
    "SpaceError",
    "TraceError",
    "VectorError",
    "Zero",
    "absolute",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "assoc",
    "bilinear",
    "block_diag",
    "bra",
    "check",
    "check_domain",
    "checkpoint",
    "compile",
    "cond",
    "const",
    "contract",
    "contract_left",
    "contract_right",
    "cos",
    "cosh",
    "custom_derivative",
    "derive",
    "direct_sum",
    "distrib",
    "divide",
    "dual",
    "dup",
    "exp",
    "explain",
    "expm1",
    "fori_loop",
    "fork",
    "function",
    "gauss_newton",
    "grad",
    "hadamard",
    "hessian",
    "hvp",
    "id",
    "inj",
    "inner",
    "jacobian",
    "join",
    "jvp",
    "ket",
    "laws",
    "left",
    "levenberg_marquardt",
    "linear",
    "linearize",
    "linearize_adjoint",
    "ln",
    "log",
    "log1p",
    "loop",
    "matmul",
    "matvec",
    "outer",
    "par",
    "power",
    "primitive",
    "proj",
    "reciprocal",
    "red",
    "relation",
    "relations",
    "relu",
    "rep",
    "right",
    "scalar_mul",
    "scan",
    "seg",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "space_of",
    "sqrt",
    "step",
    "stop_gradient",
    "switch",
    "tan",
    "tanh",
    "total",
    "total_over",
    "transpose",
    "unassoc",
    "unbra",
    "undistrib",
    "undual",
    "unket",
    "unzip",
    "value_and_grad",
    "vjp",
    "vmap",
    "zero",
    "zip",
]
