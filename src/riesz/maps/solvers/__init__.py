"""Solvers: which one fits a map, and one file for each family."""

from ...moved import names_of

__getattr__ = names_of(__name__)
