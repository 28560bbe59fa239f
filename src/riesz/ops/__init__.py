"""The operations a program is made of, and the domain of numbers they run on."""

from ..moved import names_of

__getattr__ = names_of(__name__)
