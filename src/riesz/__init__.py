"""riesz: the derivative of a function is an object you can look at.

>>> import riesz as rz
>>> print(rz.derive(rz.ln @ rz.sin).derivative)
((sin x)⁻¹ ·) • (cos x ·)
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import moved, relations
from .calculus.domain_check import check_domain
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
from .functions.derivatives import (
    derive,
    dual,
    function,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    linearize_adjoint,
    undual,
    value_and_grad,
    vjp,
)
from .maps.linear_map import LinearMap
from .relations import Relation, relation
from .relations.index_sets import Set, seg
from .spaces.space import R, Space, direct_sum, space_of
from .spaces.space import zero_space as Zero
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
    from .backends.entry import compile
    from .checking.derivative_check import check
    from .functions.control import checkpoint, cond, fori_loop, loop, stop_gradient, switch, vmap
    from .functions.custom import custom_derivative
    from .least_squares import gauss_newton, levenberg_marquardt
    from .maps.gradients.factored import Factored
    from .show.explain import explain
    from .simplify.laws import laws
    from .terms.named.named_declared import bilinear, linear
    from .terms.named.named_products import (
        contract,
        contract_left,
        contract_right,
        hadamard,
        inner,
        left,
        matmul,
        matvec,
        outer,
        right,
        scalar_mul,
    )
    from .terms.named.named_sums import (
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
    from .terms.named.named_unitary import assoc, bra, distrib, ket, transpose, unassoc, unbra, undistrib, unket

_LATER = {
    name: file
    for file, names in {
        "backends.entry": "compile",
        "checking.derivative_check": "check",
        "functions.control": "checkpoint cond fori_loop loop stop_gradient switch vmap",
        "functions.custom": "custom_derivative",
        "least_squares": "gauss_newton levenberg_marquardt",
        "maps.gradients.factored": "Factored",
        "show.explain": "explain",
        "simplify.laws": "laws",
        "terms.named.named_declared": "bilinear linear",
        "terms.named.named_products": (
            "contract contract_left contract_right hadamard inner left matmul matvec outer right scalar_mul"
        ),
        "terms.named.named_sums": (
            "add block_diag const dup fork id inj join par proj red rep scan total total_over unzip zero zip"
        ),
        "terms.named.named_unitary": "assoc bra distrib ket transpose unassoc unbra undistrib unket",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # a type checker that sees it takes every name for one of ours

    def __getattr__(name: str) -> Any:
        """What is not needed at once is imported when it is asked for."""
        if name not in _LATER:
            raise AttributeError(f"module 'riesz' has no attribute {name!r}")
        found = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


moved.install()

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
