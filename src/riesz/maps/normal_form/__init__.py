"""The normal form of a linear map: entries between arrays, a network of them, and what can be read off it.

This is the face of the folder: other rooms (printing, diagrams, the table of ops) import from here.
"""

from .coefficients import Coefficients, Factor
from .edges import ENTRIES
from .entries import Entry
from .index_maps import Sizes, distinct, size_of, whole
from .network import Network
from .rebuilt import laid_out
from .sparsity import PATTERNS
from .structure import Structure

__all__ = ["ENTRIES", "PATTERNS", "Coefficients", "Entry", "Factor", "Network", "Sizes", "Structure", "distinct"]
__all__ += ["laid_out", "size_of", "whole"]
