"""While a function is traced, a few functions that convert their arguments to plain arrays answer for traced ones.

np.array([x[0], x[1]]), np.asarray(x) and functions of SciPy written in Python do not ask their arguments first. For the
time of a trace, code of the user's finds versions that do under the names it uses; given anything else they are the
originals. NumPy and SciPy are left as they are: what changes is the code of the functions that the traced one reaches
(code_constants.py), in which a version is a constant, and modules are stand-ins that give versions. So do functions
held as values: in closures, defaults, partial applications, attributes, lists, dictionaries, tuples, and among the
arguments.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from operator import is_
from threading import RLock
from typing import Any, cast

import numpy as np

from ...tracing.mistakes import OTHERS
from ...tracing.registry import FUNCTIONS, PARTS
from ...tracing.rules.complex.complex_pairs import COMPLEX
from ...tracing.rules.elementwise import full
from ...tracing.rules.scientific.fits import series_fit
from ...tracing.rules.scientific.stand_ins import counterpart, loaded, of_libraries
from ...tracing.sharing import moved
from ...tracing.surroundings.outside import note
from ...tracing.surroundings.watching import Cell, Standing, held, mentioned, reached, spoken, users
from ...tracing.trace import refuse
from ...tracing.traced import (
    HOLDERS,
    TRACED,
    WRITTEN,
    call_function,
    convert,
    holds_traced,
    is_complex,
    tidy,
    typed,
    witness,
)
from ...tracing.writing.written import found_outside, made
from .code_constants import with_constants

_lock = RLock()
_depth = 0
_arrays = False  # whether arrays from outside have versions
_changed: list[tuple[Any, Any, Any, Any]] = []
_standing: dict[int, tuple[Any, Any]] = {}
_made: list[int] = []  # the identities of stand-ins for partial applications and tuples
_versions: dict[Any, Any] = {}
_known: set[int] = set()  # the identities of what there are versions of


class _Version:
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


class _Asking(_Version):
    """A function that looks whether something in its arguments is traced, and then is our own."""

    __slots__ = ("noted", "own")

    def __init__(self, original: Any, own: Callable[..., Any], noted: bool = True) -> None:
        super().__init__(original)
        self.own, self.noted = own, noted

    def __call__(self, *args: Any, **named: Any) -> Any:
        if any([holds_traced(a) for a in args]) or any([holds_traced(a) for a in named.values()]):
            if self.noted:
                note((*args, *named.values()), True)
            return self.own(*args, **named)
        found = self.original(*args, **named)
        kind = type(found)
        return _answered(found) if of_libraries(cast(Any, kind)) or kind is types.BuiltinMethodType else found


class _Making(_Asking):
    """A function that makes an array of its own, which the traced function may write to."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        return made(super().__call__(*args, **named), (*args, *named.values()))


class _Solving(_Version):
    """A function of SciPy's that is given a function, which may use something traced."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        from ...tracing.rules.scipy_names import solved

        return solved(self.original, args, named)


class _Looking(_Making):
    """np.asarray and its kin: the same array, where it is one that the traced function made."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        if args and type(args[0]) in WRITTEN and args[0].ndim:
            return self._of_written(*args, **named)
        if args and getattr(args[0], "leaves", None) is not None:  # a linear map at a traced point
            args = (args[0].to_dense(), *args[1:])
        held = bool(args) and hasattr(args[0], "__array__")  # its memory may be that of somebody else
        return _Asking.__call__(self, *args, **named) if held else super().__call__(*args, **named)

    def _of_written(self, x: Any, dtype: Any = None, order: Any = None, copy: Any = None, **named: Any) -> Any:
        order = {np.ascontiguousarray: "C", np.asfortranarray: "F"}.get(self.original, order)
        laid = order not in ("C", "F") or x.flags[f"{order}_CONTIGUOUS"]
        if laid and not copy and (dtype is None or np.dtype(dtype) == x.dtype):
            return x
        return x.astype(x.dtype if dtype is None else dtype, order or "K")


class _Drawing:
    """A generator of random numbers whose arrays the traced function may write to."""

    __slots__ = ("original",)

    def __init__(self, original: Any) -> None:
        self.original = original

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return type(self.original)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.original, name)
        return _Making(found, found, noted=False) if callable(found) else found


class _Generating(_Version):
    """np.random.default_rng and its kin."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        return _Drawing(self.original(*args, **named))

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self.original)


class _Filling(_Making):
    """np.empty and np.empty_like: what is in memory by chance is 0."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        found = super().__call__(*args, **named)
        if isinstance(found, np.ndarray):
            found[...] = 0
        return found


def _rule(original: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for real or for complex arguments."""

    def own(*given: Any, **named: Any) -> Any:
        args = tuple([_opened(a) for a in given])
        return COMPLEX[original](*args, **named) if is_complex(args) else call_function(original, args, named)

    return own


def _array(a: Any, dtype: Any = None, order: Any = None, *, ndmin: int = 0, **named: Any) -> Any:
    x = tidy(a)
    x = x if hasattr(x, "ndim") else np.asarray(x)
    x = x if dtype is None else convert(x, np.dtype(dtype))
    if type(x) in TRACED and (order == "F" or (order == "C" and moved(x))):
        x = x.copy(order)
    return np.reshape(x, (*(1,) * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else typed(x, None)


def _copied(a: Any, dtype: Any = None, *, copy: Any = True, **named: Any) -> Any:
    """np.array: a copy, unless copy=False, None or "if needed" and there is nothing to convert."""
    always = getattr(copy, "value", copy) == 1  # SciPy gives members of an enumeration
    if type(a) in WRITTEN and not always and a.ndim:
        return _versions[np.asarray](a, dtype, named.get("order"))
    x = _array(a, dtype, **named)
    return x.copy(named.get("order", "K")) if always and hasattr(x, "copy") else x


def _enumerated(a: Any) -> Any:
    """np.ndenumerate: pairs of an index and the number there."""
    x = tidy(a)
    return iter([(i, x[i]) for i in np.ndindex(x.shape)])


def _no_iterator(*args: Any, **named: Any) -> Any:
    memory = "np.nditer goes through the memory of an array, which a traced one does not have"
    raise refuse(f"{memory}; write for v in x.ravel(), or np.ndenumerate(x)")


class _Joining(_Version):
    """np.r_ and np.c_ on traced arrays, by NumPy's rules; on anything else the originals."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        items = list(cast("tuple[Any, ...]", key)) if isinstance(key, tuple) else [key]
        if not any([holds_traced([k.start, k.stop, k.step] if isinstance(k, slice) else k) for k in items]):
            return made(self.original[key], items)
        axis, ndmin, turned = self.original.axis, self.original.ndmin, self.original.trans1d
        if isinstance(items[0], str):
            axis, ndmin, turned = _directive(items.pop(0), axis, ndmin, turned)
        parts = [_joined(k, ndmin, turned) for k in items]
        dtype = np.result_type(*[witness(p) for p in parts])
        return np.concatenate([_array(p, None if is_complex(p) else dtype, ndmin=ndmin) for p in parts], axis=axis)


def _directive(text: str, axis: int, ndmin: int, turned: int) -> tuple[int, int, int]:
    """The axis to join along, the least number of axes, where the axes of an array with fewer go: "-1", "0,2,-1"."""
    if text in ("r", "c"):
        matrix = f"np.r_[{text!r}, …] gives a matrix, which riesz does not know for traced arrays"
        raise refuse(f"{matrix}; write np.concatenate or np.stack")
    numbers = [int(n) for n in text.split(",")]
    return (*numbers, *(axis, ndmin, turned)[len(numbers) :])[:3]  # pyright: ignore[reportReturnType]


def _joined(item: Any, ndmin: int, turned: int) -> Any:
    """One entry of np.r_: a range from a slice, a number, or an array with at least so many axes."""
    if isinstance(item, str):
        raise ValueError("special directives must be the first entry.")
    if isinstance(item, slice):
        start, stop, step = item.start or 0, item.stop, 1 if item.step is None else item.step
        counted = isinstance(step, (complex, np.complexfloating))
        x = np.linspace(start, stop, int(abs(step))) if counted else np.arange(start, stop, step)
        if ndmin < 2:
            return x
        return _array(x, ndmin=ndmin) if turned == -1 else np.swapaxes(_array(x, ndmin=ndmin), -1, turned)
    if type(item) in np.ScalarType or (type(item) in TRACED and not item.shape and item.weak is not None):
        return item
    x = tidy(item)
    y = _array(x, ndmin=ndmin)
    if turned == -1 or x.ndim >= ndmin:
        return y
    more = ndmin - x.ndim
    at = turned if turned >= 0 else turned + more + 1
    axes = list(range(ndmin))
    return np.transpose(y, [*axes[:at], *axes[more:], *axes[at:more]])


def _opened(x: Any) -> Any:
    """A list that holds traced numbers as an array; anything else as it is."""
    return tidy(x) if (type(x) is list or type(x) is tuple) and holds_traced(x) else x


def _listing(f: Any, opened: Callable[[Any], Any] = _opened) -> _Version:
    """A function of arrays that may be given lists of traced numbers, np.mean([x, y])."""

    def own(*args: Any, **named: Any) -> Any:
        return f(*[opened(a) for a in args], **{k: opened(a) for k, a in named.items()})

    return _Making(f, own, noted=False)


def _opened_parts(x: Any) -> Any:
    """A list of arrays, np.concatenate([x, [y, z]]): each of them may be a list."""
    return type(x)([_opened(part) for part in x]) if type(x) in (list, tuple) else x


class _Ufunc(_Version):
    """A ufunc that may be given lists of traced numbers, as may its methods: np.sin([x, y]), np.add.reduce([x, y])."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        lists = any([type(a) is list or type(a) is tuple for a in args])
        return self.original(*([_opened(a) for a in args] if lists else args), **named)

    def __getattr__(self, name: str) -> Any:
        found, first = getattr(self.original, name), _UFUNC_METHODS.get(name)
        if first is None:
            return found
        return lambda *args, **named: found(*args[:first], *map(_opened, args[first:]), **named)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return np.ufunc

    def __repr__(self) -> str:
        return repr(self.original)


_UFUNC_METHODS = {"reduce": 0, "accumulate": 0, "reduceat": 0, "outer": 0, "at": 2}
"""From which argument on lists are arrays: x.at[(i, j)] is an index."""


class _Object(_Version):
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

        return _Asking(found, own)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return type(self.original)

    def __repr__(self) -> str:
        return repr(self.original)


class _Class(type):
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


def _class(kind: Any, own: Any) -> Any:
    bases = (kind,) if type(kind) is type else ()  # abstract classes ask those below them
    return _Class(kind.__name__, bases, {"original": kind, "own": staticmethod(own)})


def _whole(kind: Any, x: Any) -> Any:
    return convert(tidy(x), np.dtype(kind))


class _Counterpart(_Class):
    """A class of SciPy's: of traced arguments it makes our own counterpart, of others an object that answers."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if holds_traced(args) or holds_traced(tuple(named.values())):
            note((*args, *named.values()), True)
            return cls.own(*args, **named)
        return _answered(cls.original(*args, **named))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (cls.original, cast(Any, cls.own)))

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)


def _library(f: types.FunctionType) -> _Version:
    """A function of NumPy's or SciPy's in Python: given traced arrays, a copy runs whose code finds versions."""

    def copy(*args: Any, **named: Any) -> Any:
        cells = [(cell, Cell(cell).get()) for cell in f.__closure__ or ()]
        versions = [(cell, value, _answered(value)) for cell, value in cells]
        closure = tuple([cell if new is old else types.CellType(new) for cell, old, new in versions])
        found = types.FunctionType(_answering_code(f), f.__globals__, f.__name__, f.__defaults__, closure)
        found.__kwdefaults__ = f.__kwdefaults__
        return found(*args, **named)

    return _Making(f, copy, noted=False)


class _Module(_Version):
    """A module whose functions answer."""

    __slots__ = ()

    def __init__(self, original: Any) -> None:
        object.__setattr__(self, "original", original)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return types.ModuleType

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.original, name)
        return _stand_in(found) if isinstance(found, types.ModuleType) else _answered(found)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.original, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.original)

    def __repr__(self) -> str:
        return repr(self.original)


def _stand_in(module: Any) -> Any:
    """What stands for a module of NumPy, SciPy or the user's, or a module as it is."""
    new = id(module) not in _known and type(module) is not _Module
    if new and (_has_versions(module.__name__) or users(module.__name__)):
        _enter(module, _Module(module))
        _enter_scipy()  # it may have been loaded just now
    return _versions[module] if id(module) in _known else module


def _has_versions(module: str) -> bool:
    return module.split(".")[0] in ("numpy", "scipy")


def _enter(original: Any, version: Any) -> None:
    _versions[original] = version
    _known.add(id(original))
    _standing[id(version)] = original, version


_WORDS = "concatenate stack vstack hstack dstack column_stack select piecewise choose lexsort ravel_multi_index"
_PARTS = (*[getattr(np, word) for word in _WORDS.split()], np.linalg.multi_dot)
_KEPT = "block broadcast_shapes result_type can_cast einsum_path ix_ apply_along_axis apply_over_axes"
_AS_GIVEN = {getattr(np, word) for word in _KEPT.split()}
"""Functions whose lists are no arrays."""


def _enter_scipy() -> None:
    """Enter the rules for functions of SciPy's modules that are loaded by now."""
    if "scipy" in sys.modules:
        from ...tracing.rules.scipy_names import counterparts, solvers

        for original, own in counterparts().items():
            if id(original) not in _known:
                _enter(original, (_class if isinstance(original, type) else _Making)(original, own))
        for original in solvers():
            if id(original) not in _known:
                _enter(original, _Solving(original))
        if (special := sys.modules.get("scipy.special")) is not None and id(
            getattr(special, "erf", None)
        ) not in _known:
            for f in [f for f in vars(special).values() if isinstance(f, np.ufunc) and id(f) not in _known]:
                _enter(f, _Ufunc(f))
        for kind in loaded():
            _answered(kind)


_MAKERS = "zeros ones zeros_like ones_like arange linspace eye identity tri logspace geomspace copy fromiter"


def _load() -> None:
    """Enter the versions of what is loaded by now."""
    if not _versions:
        found: dict[Any, Any] = {f: _listing(f) for f in FUNCTIONS if type(f) is type(np.mean) and f not in _AS_GIVEN}
        found.update({f: _listing(f, _opened_parts) for f in _PARTS})
        own: dict[Any, Any] = {np.asarray: _array, np.asanyarray: _array}
        own |= {np.ascontiguousarray: partial(_array, order="C", ndmin=1)}
        own |= {np.asfortranarray: partial(_array, order="F", ndmin=1)}
        found.update({original: _Looking(original, version) for original, version in own.items()})
        found |= {np.ndenumerate: _Asking(np.ndenumerate, _enumerated), np.nditer: _Asking(np.nditer, _no_iterator)}
        makers = [getattr(np, name) for name in _MAKERS.split()]
        making: dict[Any, Any] = {f: _rule(f) if f in FUNCTIONS else f for f in makers}
        making |= {f: _rule(f) for f in (np.take, np.full_like)}  # their rules are asked for the first argument only
        making |= {np.array: _copied, np.full: full}
        found.update({original: _Making(original, version) for original, version in making.items()})
        for original in (np.empty, np.empty_like):
            found[original] = _Filling(original, _rule(original) if original in FUNCTIONS else original)
        found.update({original: _Joining(original) for original in (np.r_, np.c_)})
        fit: Any = np.polynomial.polyutils._fit  # pyright: ignore
        found[fit] = _Making(fit, series_fit)
        found.update({f: _Ufunc(f) for f in vars(np).values() if isinstance(f, np.ufunc)})
        whole = {np.dtype(code).type for code in np.typecodes["AllInteger"]}
        found.update({kind: _class(kind, partial(_whole, kind)) for kind in whole})
        for original, version in found.items():
            _enter(original, version)
        Standing.numpy = _stand_in(np)
    if (random := sys.modules.get("numpy.random")) is not None and id(random.default_rng) not in _known:
        for name in [name for name in random.__all__ if name[0].islower() and callable(getattr(random, name))]:
            _enter(getattr(random, name), _Making(getattr(random, name), getattr(random, name), noted=False))
        for original in (random.default_rng, random.RandomState):
            _enter(original, _Generating(original))
    _enter_scipy()
    for name in ("numpy.linalg", "numpy.fft", "scipy", *PARTS):  # found where they are held
        if name in sys.modules:
            _stand_in(sys.modules[name])


_codes: dict[int, tuple[types.CodeType, Any, types.CodeType]] = {}
"""By the identity of code: itself, what its names mean, and the code that has versions of it as constants."""


def _answering_code(f: types.FunctionType) -> types.CodeType:
    """The code of a function, or with versions that answer in the place of its global names and imports."""
    code, names = f.__code__, mentioned(f.__code__)
    found = {k: (f.__globals__.get(k), _said(f.__globals__.get(k), names)) for k in names}
    meant = {k: version for k, (value, version) in found.items() if version is not value}
    imports = tuple([k in sys.modules for k in names if _has_versions(k)])
    if not meant and not imports:
        return code
    key = (*imports, *meant, *map(id, meant.values()))
    known = _codes.get(id(code))
    if known is None or known[1] != key:
        if len(_codes) > 4096:
            _codes.clear()
        known = _codes[id(code)] = code, key, with_constants(code, meant, _imported)
    return known[2]


def _is_users(f: types.FunctionType) -> bool:
    home, generated = f.__module__ or "", f.__code__.co_filename.startswith("<riesz")  # which looks at types itself
    return not generated and users(home) and home.split(".")[0] not in OTHERS


def _said(value: Any, names: Iterable[str], deep: int = 4) -> Any:
    """What stands for a value in code that mentions names; a user's module that has nothing that answers stays."""
    if not isinstance(value, types.ModuleType):
        return _answered(value)
    mine = [vars(value)[k] for k in names if k in vars(value)] if deep and users(value.__name__) else []
    answers = _has_versions(value.__name__) or any(_said(v, names, deep - 1) is not v for v in mine)
    return _stand_in(value) if answers else value


def _imported(name: str, package: bool) -> Any:
    """What an import inside a function gives: a module, or its package, if it is loaded and has versions."""
    if name not in sys.modules or not _has_versions(name):
        return None
    return _stand_in(sys.modules[name.split(".")[0] if package else name])


_HOLDERS = (partial, tuple, staticmethod)
_METHODS = (types.MethodType, types.BuiltinMethodType)


def _answered(x: Any, deep: int = 8) -> Any:
    """A function or a module, or the version of it that answers; a partial application or a tuple of such, too."""
    if id(x) in _known:
        return _versions[x]
    if type(x) is types.FunctionType and _has_versions(x.__module__ or ""):
        _enter(x, _library(x))
        return _versions[x]
    if _arrays and type(x) is np.ndarray:
        return _standing_for(x, found_outside(x))
    if _arrays and isinstance(x, _generators()):
        return _standing_for(x, _Drawing(x))
    if of_libraries(kind := x if isinstance(x, type) else type(x)):
        return _scipys(x, kind)
    if kind in _METHODS and of_libraries(cast(Any, type(whose := cast(Any, x).__self__))):
        name = cast(Any, x).__name__
        return getattr(_answered(whose), name) if getattr(whose, name, None) == x else x
    if not deep or not isinstance(x, _HOLDERS):
        return x
    kind, parts, make = _opener(x)
    found = [_answered(part, deep - 1) for part in parts]
    if all(map(is_, found, parts)) or type(x) is not kind:
        return x
    return _standing_for(x, make(found))


def _generators() -> tuple[Any, ...]:
    """The classes of generators of random numbers, if anybody has loaded them."""
    found = sys.modules.get("numpy.random")
    return () if found is None else (found.Generator, found.RandomState)


def _scipys(x: Any, kind: type) -> Any:
    """A class of SciPy's or an object of one, or what stands for it."""
    own = counterpart(kind)
    if own is None or type(x) is _Counterpart:
        return x
    if x is kind:
        _enter(x, _Counterpart(kind.__name__, (), {"original": kind, "own": own}))
        return _versions[x]
    if getattr(sys.modules.get(kind.__module__), getattr(x, "name", None) or "", None) is x:  # scipy.stats.norm
        _enter(x, _Object(x, own.of))
        return _versions[x]
    return _standing_for(x, _Object(x, own.of))


def _standing_for(x: Any, version: Any) -> Any:
    """Enter a version that is there for one trace only."""
    _standing[id(version)] = x, version
    _made.append(id(version))
    return version


def _opener(x: Any) -> tuple[Any, list[Any], Callable[[list[Any]], Any]]:
    """The kind of a holder, what it holds, and how one is made of other things."""
    if isinstance(x, staticmethod):
        return staticmethod, [cast(Any, x).__func__], lambda found: staticmethod(found[0])
    if isinstance(x, partial):
        names, count = list(x.keywords), 1 + len(x.args)
        make = lambda found: partial(*found[:count], **dict(zip(names, found[count:], strict=True)))  # noqa: E731
        return partial, [x.func, *x.args, *x.keywords.values()], make
    kind = cast(Any, type(x))
    return (kind if hasattr(kind, "_make") else tuple), list(x), getattr(kind, "_make", tuple)


def _put(where: Any, name: Any, value: Any, instead: Any) -> None:
    """Into a list, a dictionary, a cell, a function, an object or a class, `instead` of what is there."""
    if isinstance(where, list):  # which may have grown or shrunk
        where[:] = [value if x is instead else x for x in cast("list[Any]", where)]
    elif isinstance(where, dict):
        if where.get(name) is instead:
            where[name] = value
    elif isinstance(where, type):
        if vars(where).get(name) is instead:
            type.__setattr__(where, name, value)
    elif getattr(where, name, None) is instead:
        object.__setattr__(where, name, value)


@contextmanager
def answering(
    function: Any, things: Iterable[Any] | None = None, arrays: bool = False
) -> Generator[Callable[[Any], Any]]:
    """For the time of a trace; gives x ↦ x, or its version. `things`: what the function reaches, where it is known.
    `arrays`: what it makes of arrays from outside (u0.copy()) may be written to."""
    global _depth, _arrays
    with _lock:
        _depth += 1
    try:
        with _lock:
            _load()
            Standing.now = _standing
            seen = list(reached(function)) if things is None else list(things)
            _arrays = arrays
            library = [np.ndarray, *_generators()] if arrays else []
            kinds = (*_HOLDERS, *_METHODS, types.FunctionType, types.ModuleType, *library, *loaded())
            own = [x for x in seen if not of_libraries(cast(Any, type(x)))]  # SciPy's objects stay as they are
            places = held(own, _known, kinds)
            among = [f for f in (*seen, *[value for _, _, value in places]) if isinstance(f, types.FunctionType)]
            functions = {id(f): f for f in among if _is_users(f)}.values()
            rows = [(f, "__code__", f.__code__, _answering_code(f)) for f in functions]
            names = spoken(functions)
            rows += [(where, name, value, _said(value, names)) for where, name, value in places]
            for where, name, value, version in rows:
                if version is not value:
                    _changed.append((where, name, value, version))
                    _put(where, name, version, value)
            _arrays = False
        yield _answered
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                while _changed:
                    where, name, value, version = _changed.pop()
                    _put(where, name, value, version)
                Standing.now = {}
                while _made:
                    del _standing[_made.pop()]
