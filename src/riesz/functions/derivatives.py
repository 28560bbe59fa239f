"""What people call: function, evaluate, linearize, derive, grad, jvp, vjp, jacobian, hessian, hvp. Combinators and
Python functions alike."""

from .calling import evaluate, function
from .deriving import derive, typed
from .directional import hvp, jvp, vjp
from .gradients import Gradient, GradientAlone, grad, value_and_grad
from .jacobians import Maps, dual, hessian, jacfwd, jacobian, jacrev, linearize, linearize_adjoint, undual

__all__ = ["Gradient", "GradientAlone", "Maps", "derive", "dual", "evaluate", "function", "grad", "hessian", "hvp"]
__all__ += [
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "linearize_adjoint",
    "typed",
    "undual",
    "value_and_grad",
    "vjp",
]
