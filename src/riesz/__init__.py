"""riesz: the derivative of a function is an object you can look at.

>>> import riesz as rz
>>> print(rz.derive(rz.ln @ rz.sin).derivative)
((sin x)⁻¹ ·) • (cos x ·)
"""
# ruff: noqa: F403  (the public names of errors, primitives and combinators are listed where they are defined)

import importlib
from typing import TYPE_CHECKING, Any

from . import errors, moved, relations
from .calculus.domain_check import check_domain
from .errors import *
from .functions.derivatives import derive, dual, function, grad, hessian, hvp, jacobian, jvp, linearize, undual, vjp
from .functions.gradients import value_and_grad
from .functions.jacobians import linearize_adjoint
from .maps.linear_map import LinearMap
from .relations import Relation, relation
from .relations.index_sets import Set, seg
from .spaces.space import R, Space, direct_sum, space_of
from .spaces.space import zero_space as Zero
from .terms import primitives
from .terms.primitives import *

_LATER = {
    name: file
    for file, names in {
        "backends.entry": "compile",
        "checking.derivative_check": "check",
        "functions.control": "checkpoint cond fori_loop loop stop_gradient switch vmap",
        "functions.custom": "custom_derivative",
        "forms.lifting": "assume",
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

__all__: list[str] = ["LinearMap", "R", "Relation", "Set", "Space", "Zero", "check_domain", "derive", "direct_sum"]
__all__ += ["dual", "function", "grad", "hessian", "hvp", "jacobian", "jvp", "linearize", "linearize_adjoint"]
__all__ += ["relation", "relations", "seg", "space_of", "undual", "value_and_grad", "vjp"]
__all__ += errors.__all__
__all__ += primitives.__all__

if TYPE_CHECKING:
    from .backends.entry import compile
    from .checking.derivative_check import check
    from .forms.lifting import assume
    from .functions.control import checkpoint, cond, fori_loop, loop, stop_gradient, switch, vmap
    from .functions.custom import custom_derivative
    from .least_squares import gauss_newton, levenberg_marquardt
    from .maps.gradients.factored import Factored
    from .show.explain import explain
    from .simplify.laws import laws
    from .terms.named import named_products, named_sums, named_unitary
    from .terms.named.named_declared import bilinear, linear
    from .terms.named.named_products import *
    from .terms.named.named_sums import *
    from .terms.named.named_unitary import *

    __all__ += [
        "Factored",
        "assume",
        "bilinear",
        "check",
        "checkpoint",
        "compile",
        "cond",
        "custom_derivative",
        "explain",
    ]
    __all__ += ["fori_loop", "gauss_newton", "laws", "levenberg_marquardt", "linear", "loop", "stop_gradient"]
    __all__ += ["switch", "vmap"]
    __all__ += named_products.__all__
    __all__ += named_sums.__all__
    __all__ += named_unitary.__all__
else:  # a type checker that sees __getattr__ takes every name for one of ours
    __all__ += _LATER

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
