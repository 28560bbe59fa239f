"""Functions made of functions (grad, jacobian, vmap, compile, …): copied and pickled as what they are made of, without
what they keep."""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
import types
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, cast

from ..tracing.surroundings.watching import Wrapper


class Remade:
    """Something that can be made again: pickled by module and name where it has one, otherwise by its recipe."""

    def recipe(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What makes it, and of what."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        place = _found(self)
        if place is not None:
            return looked_up, place
        make, parts = self.recipe()
        return make, tuple([_portable(part, self) for part in parts])

    def __copy__(self) -> Any:
        make, parts = self.recipe()
        return make(*parts)

    def __deepcopy__(self, memo: Any) -> Any:
        make, parts = self.recipe()
        from copy import deepcopy

        return make(*deepcopy(parts, memo))


class DerivedFunction(Remade, Wrapper):
    """What grad, jacobian, vmap, … of a function give: called with its arguments."""

    gives_maps = False
    what: str

    def __init__(self, f: Any, *options: Any) -> None:
        self.function, self.options = f, options  # a Function, a combinator, or any callable
        inner = getattr(f, "function", f)
        if callable(inner) and not hasattr(type(inner), "domain"):
            self.__wrapped__ = inner
        self.__doc__ = getattr(inner, "__doc__", None)
        self.__name__ = self.__qualname__ = f"{self.what}({getattr(f, 'name', None) or getattr(f, '__name__', f)})"

    def recipe(self) -> Any:
        return type(self), (self.function, *self.options)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"rz.{self.__name__}"


def looked_up(module: str, path: str) -> Any:
    """What a module calls by a name."""
    return attrgetter(path)(importlib.import_module(module))


def _found(x: Any) -> tuple[str, str] | None:
    """The module in which something is found under its own name."""
    inner: Any = inspect.unwrap(x)
    module, path = sys.modules.get(getattr(inner, "__module__", None) or ""), getattr(inner, "__qualname__", "<")
    try:
        found = module is not None and "<" not in path and attrgetter(path)(module) is x
    except AttributeError:
        found = False
    return (cast(Any, module).__name__, path) if found else None


def _portable(part: Any, whole: Any) -> Any:
    """A part of a recipe; an error that says what to write where it is a function that Python cannot pickle."""
    f = cast(Any, part).func if isinstance(part, partial) else part
    if isinstance(f, types.FunctionType) and _found(f) is None and not _by_value():
        place = f"{f.__code__.co_filename}:{f.__code__.co_firstlineno}"
        kind = "a lambda" if f.__name__ == "<lambda>" else "not found there under its name"
        raise pickle.PicklingError(
            f"{whole!r} cannot be pickled: Python pickles functions by module and name, and {f.__name__} ({place}) "
            f"is {kind}. Write it with def at the top of a module, or as a text: rz.function('x -> sin(x)')"
        )
    return part


def _by_value() -> bool:
    """Whether a pickler is at work that writes functions out (cloudpickle, dill)."""
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] in ("cloudpickle", "dill"):
            return True
        frame = frame.f_back
    return False
