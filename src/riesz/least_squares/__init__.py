"""Nonlinear least squares: `gauss_newton`, `levenberg_marquardt`, and what they give."""

from .fit_result import Iteration, LeastSquaresResult
from .levenberg_marquardt import gauss_newton, levenberg_marquardt

__all__ = ["Iteration", "LeastSquaresResult", "gauss_newton", "levenberg_marquardt"]
