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
from .functions.calling import function
from .functions.gradients import grad, value_and_grad
from .functions.jacobians import dual, hessian, jacfwd, jacobian, jacrev, linearize, linearize_adjoint, undual
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
        "backends.devices.processes": "distributed",
        "backends.entry": "compile",
        "backends.sparse_numbers": "sparse_hessian sparse_jacobian",
        "checking.derivative_check": "check",
        "constrained": "nlp",
        "files.checkpoints": "resumed_loop",
        "files.loading": "load",
        "files.saving": "save",
        "forms.lifting": "assume",
        "functions.control": "checkpoint cond fori_loop loop stop_gradient switch vmap while_loop",
        "functions.custom": "custom_derivative",
        "functions.deriving": "derive",
        "functions.directional": "hvp jvp vjp",
        "functions.implicit.implicit_functions": "argmin fixed_point root",
        "importing.aten.aten_registry": "torch_rule",
        "importing.from_jax": "from_jax",
        "importing.from_torch": "from_torch",
        "importing.lax.lax_registry": "jax_rule",
        "importing.to_jax": "to_jax",
        "least_squares": "gauss_newton levenberg_marquardt",
        "manifolds": "manifolds",
        "maps.gradients.factored": "Factored",
        "runtime.progress": "verbose",
        "runtime.settings": "settings",
        "show.chosen_notation": "notation",
        "show.display.displays": "display",
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

__all__: list[str] = ["LinearMap", "R", "Relation", "Set", "Space", "Zero", "check_domain", "direct_sum", "dual"]
__all__ += ["function", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "linearize", "linearize_adjoint"]
__all__ += ["relation", "relations", "seg", "space_of", "undual", "value_and_grad"]
__all__ += errors.__all__
__all__ += primitives.__all__

if TYPE_CHECKING:
    from . import manifolds
    from .backends.devices.processes import distributed
    from .backends.entry import compile
    from .backends.sparse_numbers import sparse_hessian, sparse_jacobian
    from .checking.derivative_check import check
    from .constrained import nlp
    from .files.checkpoints import resumed_loop
    from .files.loading import load
    from .files.saving import save
    from .forms.lifting import assume
    from .functions.control import checkpoint, cond, fori_loop, loop, stop_gradient, switch, vmap, while_loop
    from .functions.custom import custom_derivative
    from .functions.deriving import derive
    from .functions.directional import hvp, jvp, vjp
    from .functions.implicit.implicit_functions import argmin, fixed_point, root
    from .importing.aten.aten_registry import torch_rule
    from .importing.from_jax import from_jax
    from .importing.from_torch import from_torch
    from .importing.lax.lax_registry import jax_rule
    from .importing.to_jax import to_jax
    from .least_squares import gauss_newton, levenberg_marquardt
    from .maps.gradients.factored import Factored
    from .runtime.progress import verbose
    from .runtime.settings import settings
    from .show.chosen_notation import notation
    from .show.display.displays import display
    from .show.explain import explain
    from .simplify.laws import laws
    from .terms.named import named_products, named_sums, named_unitary
    from .terms.named.named_declared import bilinear, linear
    from .terms.named.named_products import *
    from .terms.named.named_sums import *
    from .terms.named.named_unitary import *

    __all__ += ["Factored", "argmin", "assume", "bilinear", "check", "checkpoint", "compile", "cond"]
    __all__ += [
        "custom_derivative",
        "derive",
        "display",
        "distributed",
        "explain",
        "fixed_point",
        "fori_loop",
        "from_jax",
        "from_torch",
        "gauss_newton",
    ]
    __all__ += [
        "hvp",
        "jax_rule",
        "jvp",
        "laws",
        "levenberg_marquardt",
        "linear",
        "load",
        "loop",
        "manifolds",
        "nlp",
        "notation",
        "resumed_loop",
        "root",
        "save",
        "sparse_hessian",
        "sparse_jacobian",
        "stop_gradient",
        "switch",
        "to_jax",
        "torch_rule",
    ]
    __all__ += ["settings", "verbose", "vjp", "vmap", "while_loop"]
    __all__ += named_products.__all__
    __all__ += named_sums.__all__
    __all__ += named_unitary.__all__
else:  # a type checker that sees __getattr__ takes every name for one of ours
    __all__ += _LATER

    _ELSEWHERE = {
        "jit": "write rz.compile(f)",
        "lax": "write rz.cond, rz.switch, rz.fori_loop, or rz.loop for lax.scan",
        "numpy": "write import numpy as np: functions of NumPy itself are differentiated",
        "value_and_jacobian": "write y, L = rz.linearize(f, x)",
        "pmap": "write rz.vmap(f)",
        **dict.fromkeys(("custom_jvp", "custom_vjp"), "write rz.custom_derivative"),
    }

    def __getattr__(name: str) -> Any:
        """What is not needed at once is imported when it is asked for."""
        if name not in _LATER:
            from difflib import get_close_matches

            near = get_close_matches(name, __all__, 1)
            meant = _ELSEWHERE.get(name) or (f"did you mean rz.{near[0]}?" if near else "")
            raise AttributeError(f"module 'riesz' has no attribute {name!r}{meant and '; '}{meant}")
        home = importlib.import_module(f".{_LATER[name]}", __name__)
        found = home if _LATER[name] == name else getattr(home, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


moved.install()

__version__ = "0.1.0"
