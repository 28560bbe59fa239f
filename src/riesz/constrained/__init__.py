"""Minimisation under constraints: `nlp`, and what it gives."""

from .nlp_result import NlpResult
from .nonlinear_program import NonlinearProgram, nlp

__all__ = ["NlpResult", "NonlinearProgram", "nlp"]
