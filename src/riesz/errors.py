"""What can go wrong, by name. Every message says what was given, what was expected and what to do."""

import numpy as np

__all__: list[str] = ["DomainError", "ExpressionError", "FileError", "IndexSetError", "LinearityError", "RelationError"]
__all__ += ["RieszError", "SolveError", "SpaceError", "TraceError", "VectorError"]


class RieszError(Exception):
    """Any error raised by riesz on purpose.

    >>> import riesz as rz
    >>> try:
    ...     rz.seg(3).position(7)
    ... except rz.RieszError as error:
    ...     print(type(error).__name__)
    IndexSetError
    """


class SpaceError(RieszError, TypeError):
    """Two spaces that should be the same are not, or a combinator does not exist at a space.

    >>> import riesz as rz
    >>> rz.proj(3)((1.0, 2.0))
    Traceback (most recent call last):
    ...
    riesz.errors.SpaceError: there is no component 3 in ℝ ⊕ ℝ: it has components 0 to 1
    """


class VectorError(RieszError, TypeError):
    """A value is not an element of the space it was given for.

    >>> import riesz as rz
    >>> rz.jacobian(rz.sin)("one")
    Traceback (most recent call last):
    ...
    riesz.errors.VectorError: not an element of ℝ: expected a float, got the str 'one'
    """


class LinearityError(RieszError, TypeError):
    """Something that is not linear was given where a linear map is due.

    >>> import riesz as rz
    >>> rz.LinearMap.of(rz.sin)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    riesz.errors.LinearityError: a LinearMap needs a linear map; sin : ℝ → ℝ is not linear ...
    """


class RelationError(RieszError, ValueError):
    """A relation mentions something outside the sets it is a relation on.

    >>> import riesz as rz
    >>> rz.relations.pairs(rz.seg(2), rz.seg(2), [(0, 5)])
    Traceback (most recent call last):
    ...
    riesz.errors.RelationError: the second of the pairs holds 5, which is outside 2: its positions are 0 to 1 (first at
    0)
    """


class TraceError(RieszError, TypeError):
    """NumPy code does something with a traced array that has no derivative, or that riesz does not know.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x: np.sum(np.unique(x)))(np.ones(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    riesz.errors.TraceError: np.unique: the result's length depends on the numbers, ...
    """


class ExpressionError(RieszError, ValueError):
    """A text is not an expression riesz can read; the message shows the place.

    >>> import riesz as rz
    >>> rz.function("x -> sin(")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    riesz.errors.ExpressionError: not an expression: '(' was never closed...
    """


class DomainError(RieszError, ValueError):
    """A primitive was evaluated outside its domain, inside `check_domain()`.

    >>> import numpy as np, riesz as rz
    >>> with rz.check_domain():
    ...     rz.grad(lambda x: np.log(x))(-2.0)
    Traceback (most recent call last):
    ...
    riesz.errors.DomainError: ln is defined for x > 0; it was evaluated at -2.0, and the result is nan
    """


class IndexSetError(RieszError, ValueError):
    """An index is not an element of the index set it was given for.

    >>> import riesz as rz
    >>> rz.seg(3).position(3)
    Traceback (most recent call last):
    ...
    riesz.errors.IndexSetError: 3 is not an element of the index set 3: its elements are the integers 0 to 2
    """


class PositionError(RieszError, IndexError):
    """A computed index is outside the axis it indexes; NumPy's own error for that, too."""


class SolveError(RieszError, ValueError):
    """A linear system has no unique solution that can be computed, or an iteration has not arrived.

    >>> import numpy as np, riesz as rz
    >>> rz.jacobian(lambda x: 0.0 * x)(np.ones(2)).solve(np.ones(2))
    Traceback (most recent call last):
    ...
    riesz.errors.SolveError: the map is zero: no right-hand side other than 0 of 2 numbers can be reached
    """


class SingularError(SolveError, np.linalg.LinAlgError):
    """A matrix that is to be solved with is singular; NumPy's own error for that, too."""


class FileError(RieszError, ValueError):
    """Something cannot be saved, or a file is not one of riesz's, of an unknown version, or broken.

    >>> import riesz as rz
    >>> rz.save("f.rz", print)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    riesz.errors.FileError: ...
    """
