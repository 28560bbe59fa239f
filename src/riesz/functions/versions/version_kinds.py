"""What stands for functions, classes and objects of NumPy and SciPy while a function is traced: it looks whether
something among its arguments is traced."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ...maps.leaves import IN_TRACES
from ...tracing.calls import call_function
from ...tracing.mistakes import raise_explained
from ...tracing.registry import COMPLEX, public_name
from ...tracing.rules.scientific.stand_ins import of_libraries
from ...tracing.surroundings.outside import note
from ...tracing.trace import asked_for
from ...tracing.traced import (
    HOLDERS,
    WRITTEN,
    convert,
    holds_traced,
    is_complex,
    tidy,
)
from ...tracing.writing.written import made


class Answering:
    """x ↦ what stands for it; answering.py says it."""

    now: Callable[[Any], Any] = staticmethod(lambda x: x)


class Version:
    """What stands for a function; equal to it, so that tables by function find it."""

    __slots__ = ("original",)

    def __init__(self, original: Any) -> None:
        self.original = original

    def __eq__(self, other: Any) -> bool:
        return other is self or other is self.original

    def __hash__(self) -> int:
        return hash(self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __reduce__(self) -> Any:
        return _itself, (self.original,)


def _itself(x: Any) -> Any:
    return x


_UNKNOWN = (TypeError, AttributeError, AssertionError, IndexError, KeyError, NotImplementedError)
"""What code raises that meets something it does not know."""


class Asking(Version):
    """A function that looks whether something in its arguments is traced, and then is our own."""

    __slots__ = ("noted", "own")

    def __init__(self, original: Any, own: Callable[..., Any], noted: bool = True) -> None:
        super().__init__(original)
        self.own, self.noted = own, noted

    def __call__(self, *args: Any, **named: Any) -> Any:
        maps = [getattr(a, "leaves", None) is IN_TRACES for a in args]
        if any(maps) and not str(getattr(self.original, "__module__", "")).startswith("scipy.sparse"):  # of matrices
            args = tuple([a.to_dense() if m else a for a, m in zip(args, maps, strict=True)])
        if any(maps) or any([holds_traced(a) for a in args]) or any([holds_traced(a) for a in named.values()]):
            if self.noted:
                note((*args, *named.values()), True)
            try:
                return self.own(*args, **named)
            except _UNKNOWN as problem:
                if asked_for(self.original):
                    raise_explained(problem, self.original, args, named, public_name(self.original))
                raise
        found = self.original(*args, **named)
        kind = type(found)
        return Answering.now(found) if of_libraries(cast(Any, kind)) or kind is types.BuiltinMethodType else found


class Making(Asking):
    """A function that makes an array of its own, which the traced function may write to."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        return made(super().__call__(*args, **named), (*args, *named.values()))


class SolvingVersion(Version):
    """A function of SciPy's that is given a function, which may use something traced."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        from ...tracing.rules.scipy_names import solved

        return solved(self.original, args, named)


class Looking(Making):
    """np.asarray and its kin: the same array, where it is one that the traced function made."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        if args and type(args[0]) in WRITTEN and args[0].ndim:
            return self._of_written(*args, **named)
        if args and getattr(args[0], "leaves", None) is not None:  # a linear map at a traced point
            args = (args[0].to_dense(), *args[1:])
        held = bool(args) and hasattr(args[0], "__array__")  # its memory may be that of somebody else
        return Asking.__call__(self, *args, **named) if held else super().__call__(*args, **named)

    def _of_written(self, x: Any, dtype: Any = None, order: Any = None, copy: Any = None, **named: Any) -> Any:
        order = {np.ascontiguousarray: "C", np.asfortranarray: "F"}.get(self.original, order)
        laid = order not in ("C", "F") or x.flags[f"{order}_CONTIGUOUS"]
        if laid and not copy and (dtype is None or np.dtype(dtype) == x.dtype):
            return x
        return x.astype(x.dtype if dtype is None else dtype, order or "K")


class DrawingVersion:
    """A generator of random numbers whose arrays the traced function may write to."""

    __slots__ = ("original",)

    def __init__(self, original: Any) -> None:
        self.original = original

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return type(self.original)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.original, name)
        return Making(found, found, noted=False) if callable(found) else found


class Generating(Version):
    """np.random.default_rng and its kin."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        return DrawingVersion(self.original(*args, **named))

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self.original)


class FillingVersion(Making):
    """np.empty and np.empty_like: what is in memory by chance is 0."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        found = super().__call__(*args, **named)
        if isinstance(found, np.ndarray):
            found[...] = 0
        return found


def rule_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for real or for complex arguments."""

    def own(*given: Any, **named: Any) -> Any:
        args = tuple([opened(a) for a in given])
        return COMPLEX[original](*args, **named) if is_complex(args) else call_function(original, args, named)

    return own


def opened(x: Any) -> Any:
    """A list that holds traced numbers as an array; anything else as it is."""
    return tidy(x) if (type(x) is list or type(x) is tuple) and holds_traced(x) else x


def listing(f: Any, opened: Callable[[Any], Any] = opened) -> Version:
    """A function of arrays that may be given lists of traced numbers, np.mean([x, y])."""

    def own(*args: Any, **named: Any) -> Any:
        return f(*[opened(a) for a in args], **{k: opened(a) for k, a in named.items()})

    return Making(f, own, noted=False)


def opened_parts(x: Any) -> Any:
    """A list of arrays, np.concatenate([x, [y, z]]): each of them may be a list."""
    return type(x)([opened(part) for part in x]) if type(x) in (list, tuple) else x


class UfuncVersion(Version):
    """A ufunc that may be given lists of traced numbers, as may its methods: np.sin([x, y]), np.add.reduce([x, y])."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        lists = any([type(a) is list or type(a) is tuple for a in args])
        return self.original(*([opened(a) for a in args] if lists else args), **named)

    def __getattr__(self, name: str) -> Any:
        found, first = getattr(self.original, name), _UFUNC_METHODS.get(name)
        if first is None:
            return found
        return lambda *args, **named: found(*args[:first], *map(opened, args[first:]), **named)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return np.ufunc

    def __repr__(self) -> str:
        return repr(self.original)


_UFUNC_METHODS = {"reduce": 0, "accumulate": 0, "reduceat": 0, "outer": 0, "at": 2}
"""From which argument on lists are arrays: x.at[(i, j)] is an index."""


class ObjectVersion(Version):
    """An object of SciPy's (a spline, a distribution): given traced arguments, its methods are those of our own
    counterpart of it (rules/scientific/stand_ins.py)."""

    __slots__ = ("own",)

    def __init__(self, original: Any, own: Callable[[Any], Any]) -> None:
        super().__init__(original)
        self.own = own

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.__getattr__("__call__")(*args, **named)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.original, name)
        if (name.startswith("_") and name != "__call__") or not callable(found):
            return found

        def own(*args: Any, **named: Any) -> Any:
            return getattr(self.own(self.original), name)(*args, **named)

        return Asking(found, own)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return type(self.original)

    def __repr__(self) -> str:
        return repr(self.original)


class ClassVersion(type):
    """A class, as the original, that may be called on traced arrays: np.int64(x), csr_array((x, i, p))."""

    original: Any
    own: Callable[..., Any]

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if any([holds_traced(a) for a in args]):
            note((*args, *named.values()), True)
            return cls.own(*args, **named)
        return cls.original(*args, **named)

    def __instancecheck__(cls, instance: Any) -> bool:
        kind: Any = instance.kind if type(instance) in HOLDERS else type(instance)
        return isinstance(instance, cls.original) or issubclass(kind, cls.original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.original)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)


def class_version(kind: Any, own: Any) -> Any:
    bases = (kind,) if type(kind) is type else ()  # abstract classes ask those below them
    return ClassVersion(kind.__name__, bases, {"original": kind, "own": staticmethod(own)})


def whole_of(kind: Any, x: Any) -> Any:
    return convert(tidy(x), np.dtype(kind))


class CounterpartVersion(ClassVersion):
    """A class of SciPy's: of traced arguments it makes our own counterpart, of others an object that answers."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if holds_traced(args) or holds_traced(tuple(named.values())):
            note((*args, *named.values()), True)
            return cls.own(*args, **named)
        return Answering.now(cls.original(*args, **named))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (cls.original, cast(Any, cls.own)))

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)
