"""Spaces, how their vectors are laid out as trees of arrays, formal vectors, and the contraction of labelled arrays."""

from ..moved import names_of

__getattr__ = names_of(__name__)
