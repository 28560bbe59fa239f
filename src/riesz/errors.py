"""What can go wrong, by name. Every message says what was given, what was expected and what to do."""

import numpy as np


class RieszError(Exception):
    """Any error raised by riesz on purpose."""


class SpaceError(RieszError, TypeError):
    """Two spaces that should be the same are not, or a combinator does not exist at a space."""


class VectorError(RieszError, TypeError):
    """A value is not an element of the space it was given for."""


class LinearityError(RieszError, TypeError):
    """Something that is not linear was given where a linear map is due."""


class RelationError(RieszError, ValueError):
    """A relation mentions something outside the sets it is a relation on."""


class TraceError(RieszError, TypeError):
    """NumPy code does something with a traced array that has no derivative, or that riesz does not know."""


class ExpressionError(RieszError, ValueError):
    """A text is not an expression riesz can read; the message shows the place."""


class DomainError(RieszError, ValueError):
    """A primitive was evaluated outside its domain, inside `check_domain()`."""


class IndexSetError(RieszError, ValueError):
    """An index is not an element of the index set it was given for."""


class SolveError(RieszError, ValueError):
    """A linear system has no unique solution that can be computed, or an iteration has not arrived; the message says where."""


class SingularError(SolveError, np.linalg.LinAlgError):
    """A matrix that is to be solved with is singular; NumPy's own error for that, too."""
