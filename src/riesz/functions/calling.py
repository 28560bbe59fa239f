"""Functions riesz can look into, evaluated: `rz.function`, and f(x) of a combinator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, overload

from ..errors import SpaceError
from ..terms.term import Arrow
from .function import TracedFunction, as_function
from .function_types import AnyFunction
from .points import TermPoint


@overload
def function(
    f: AnyFunction, *, static_argnums: Any = (), static_argnames: Any = (), limit: Any = ...
) -> TracedFunction: ...
@overload
def function(
    f: None = None, *, static_argnums: Any = (), static_argnames: Any = (), limit: Any = ...
) -> Callable[[AnyFunction], TracedFunction]: ...
def function(f: Any = None, *, static_argnums: Any = (), static_argnames: Any = (), limit: Any = ...) -> Any:
    """A function riesz can look into: from a Python function (NumPy code inside), a combinator, or a text. Also a
    decorator.

    It runs once per kind of arguments on arrays that are not known yet; results are computed from the program that
    leaves behind. Arguments named static, and those that are neither floats nor arrays, are part of the kind.

    A text is read, never evaluated. What it takes at given shapes is counted before anything is computed: a text that
    would take more than `limit` is refused, and the error shows which part of it does. `limit=(operations, bytes)`, one
    number for both, or None; it is (1e9, 2**28) unless you say otherwise.

    >>> import numpy as np, riesz as rz
    >>> @rz.function
    ... def f(x):
    ...     return np.sum(np.sin(x) ** 2)
    >>> rz.grad(f)(np.array([0.0, np.pi / 4]))
    array([0., 1.])
    >>> rz.function("x, y -> x * sin(y)")(2.0, 0.0)
    0.0
    """
    if f is None:
        return partial(function, static_argnums=static_argnums, static_argnames=static_argnames, limit=limit)
    if limit is not ... and not isinstance(f, str):
        raise SpaceError(f"limit=… is for functions given as texts, such as 'x -> sin(x)'; got {f!r}")
    if isinstance(f, TracedFunction) and not static_argnums and not static_argnames:
        return f
    if isinstance(f, str):
        from ..text.parsing import parse
        from ..text.text_limits import LIMIT, as_limit

        return TracedFunction(parse(f, LIMIT if limit is ... else as_limit(limit)), name=f)
    if isinstance(f, Arrow):
        return TracedFunction(f, name=str(f))
    if not static_argnums and not static_argnames and static_argnums != 0:
        return as_function(as_callable(f))
    _check_static(as_callable(f), static_argnums, static_argnames)
    return TracedFunction(as_callable(f), static_argnums, static_argnames)


def _check_static(f: Any, nums: Any, names: Any) -> None:
    """Static arguments must be arguments."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return
    kinds, called = {p.kind for p in parameters}, getattr(f, "__name__", f)
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY, p.POSITIONAL_ONLY)]
    for name in (names,) if isinstance(names, str) else names or ():
        if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds:
            has = f"has no argument {name!r}; it has {', '.join(known) or 'none'}"
            raise SpaceError(f"static_argnames={names!r}: {called} {has}")
    count = len([p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)])
    for k in (nums,) if isinstance(nums, int) else nums or ():
        if not -count <= k < count and inspect.Parameter.VAR_POSITIONAL not in kinds:
            raise SpaceError(f"static_argnums={nums!r}: {called} takes {count} arguments by position")


def as_callable(f: Any) -> Any:
    """A function as it was given, text read; anything else is refused."""
    if isinstance(f, str):
        return function(f)
    if not callable(f):
        kinds = "a Python function, a combinator such as rz.sin @ rz.proj(0), or a text such as 'x -> sin(x)'"
        raise SpaceError(f"expected a function: {kinds}; got {f!r}")
    return f


def differentiable(f: Any) -> Any:
    """A function that has points: a combinator, or a Python function with its traces."""
    return f if isinstance(f, Arrow) else as_function(as_callable(f))


def evaluate(f: Any, *args: Any) -> Any:
    """f(x)."""
    if not isinstance(f, Arrow):
        return as_function(as_callable(f))(*args)
    at = TermPoint(f, args)
    return at.wrap(at.value())
