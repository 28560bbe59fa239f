"""Symbolic derivatives: derive, for every point at once."""

from __future__ import annotations

from typing import Any, cast

from ..errors import SpaceError, VectorError
from ..maps.derivation import Derivation
from ..programs.program_to_term import to_term
from ..spaces.space import Space, direct_sum, space_of
from ..terms.open import bridged, fit
from ..terms.term import Arrow, Term
from .calling import as_callable
from .function import TracedFunction, as_function
from .function_types import AnyFunction
from .points import named_arrays, parameter_names
from .traces.records import result_space


def derive(f: AnyFunction, *spaces: Any) -> Derivation:
    """The symbolic derivation of f: value, derivative and adjoint for every point at once.

    Several spaces are the spaces of several arguments; none are needed where f has a domain already. A value stands for
    its space.

    >>> import riesz as rz, numpy as np
    >>> print(rz.derive(np.sin, np.ones(3)).derivative)
    Δ(cos x ·)
    >>> D = rz.derive(rz.ln @ rz.sin)
    >>> D.derivative(1.0)(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)
    True
    """
    spaces = tuple([_space(s) for s in spaces])
    term = typed(f, *spaces)
    if isinstance(f, Arrow):
        return Derivation(term, source=f if isinstance(f, Term) else term)
    python = as_function(as_callable(f))
    record, given = python.record_at(spaces)
    settled = record.settled()
    names = lambda leaves: named_arrays(python.function, given.owners, leaves, settled)  # noqa: E731
    return Derivation(term, parameter_names(python.function), names, python.function, spaces)


def _space(s: Any) -> Space:
    """A space, or that of a value."""
    try:
        return s if isinstance(s, Space) else space_of(s)
    except VectorError as problem:
        raise SpaceError(f"expected a space, such as rz.R ** 3, or an example value; got {s!r} ({problem})") from None


def typed(f: Any, *spaces: Space) -> Term:
    """A function as a term with the given domain; a Python function is traced there."""
    for s in spaces:
        if not isinstance(cast(Any, s), Space):
            hint = "rz.space_of(value) is the space of a value"
            raise SpaceError(f"expected a space, such as rz.R ** rz.seg(3); got {s!r} ({hint})")
    if not isinstance(f, Arrow):
        return _term_of(as_function(as_callable(f)), spaces)
    if not spaces:
        if not isinstance(f, Term):
            raise SpaceError(f"{f} fits many spaces: say which, as in derive(f, rz.R ** rz.seg(3))")
        return f
    return fit(f, spaces[0] if len(spaces) == 1 else direct_sum(*spaces))


def _term_of(f: TracedFunction, spaces: tuple[Space, ...]) -> Term:
    """A Python function in combinatory form."""
    if not spaces:
        raise SpaceError(f"{f.name} is a Python function: say at which spaces, as in derive(f, rz.R ** rz.seg(3))")
    record = f.record_at(spaces)[0].settled()
    codomain = result_space(record.name, record.results, record.tree, "a derivative")
    term = to_term(record.program)
    domain = spaces[0] if len(spaces) == 1 else direct_sum(*spaces)
    inner = term if term.domain is domain else bridged(domain, term.domain)
    whole = term if inner is term else term @ inner
    return whole if whole.codomain is codomain else bridged(whole.codomain, codomain) @ whole
