"""Is the derivative of f the derivative of f? Taylor and adjoint tests at a point."""

from ..moved import names_of

__getattr__ = names_of(__name__)
