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

from ...tracing.registry import FUNCTIONS, OTHERS, PARTS
from ...tracing.rules.elementwise import full
from ...tracing.rules.scientific.stand_ins import counterpart, loaded, of_libraries
from ...tracing.surroundings.watching import Cell, Standing, held, mentioned, reached, spoken, users
from ...tracing.writing.written import found_outside
from .array_makers import AS_ARRAY, Iterating, Joining, array_copied, array_of, enumerated, no_iterator
from .code_constants import with_constants
from .version_kinds import (
    Answering,
    Asking,
    CounterpartVersion,
    DrawingVersion,
    FillingVersion,
    Generating,
    Looking,
    Making,
    ObjectVersion,
    SolvingVersion,
    UfuncVersion,
    Version,
    class_version,
    listing,
    opened_parts,
    rule_of,
    whole_of,
)

_lock = RLock()
_depth = 0
_arrays = False  # whether arrays from outside have versions
_changed: list[tuple[Any, Any, Any, Any]] = []
_standing: dict[int, tuple[Any, Any]] = {}
_made: list[int] = []  # the identities of stand-ins for partial applications and tuples
_versions: dict[Any, Any] = {}
_known: set[int] = set()  # the identities of what there are versions of


def _library(f: types.FunctionType) -> Version:
    """A function of NumPy's or SciPy's in Python: given traced arrays, a copy runs whose code finds versions."""

    def copy(*args: Any, **named: Any) -> Any:
        cells = [(cell, Cell(cell).get()) for cell in f.__closure__ or ()]
        versions = [(cell, value, _answered(value)) for cell, value in cells]
        closure = tuple([cell if new is old else types.CellType(new) for cell, old, new in versions])
        found = types.FunctionType(_answering_code(f), f.__globals__, f.__name__, f.__defaults__, closure)
        found.__kwdefaults__ = f.__kwdefaults__
        return found(*args, **named)

    return Making(f, copy, noted=False)


class _Module(Version):
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
        _enter_loaded()  # it may have been loaded just now
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


def _enter_loaded() -> None:
    """Enter the rules for functions of SciPy's modules, and of np.polynomial, that are loaded by now."""
    utils: Any = sys.modules.get("numpy.polynomial.polyutils")
    if (fit := getattr(utils, "_fit", None)) is not None and id(fit) not in _known:
        from ...tracing.rules.scientific.fits import series_fit

        _enter(fit, Making(fit, series_fit))
    if "scipy" in sys.modules:
        from ...tracing.rules.scipy_names import counterparts, solvers

        for original, own in counterparts().items():
            if id(original) not in _known:
                _enter(original, (class_version if isinstance(original, type) else Making)(original, own))
        for original in solvers():
            if id(original) not in _known:
                _enter(original, SolvingVersion(original))
        if (special := sys.modules.get("scipy.special")) is not None and id(
            getattr(special, "erf", None)
        ) not in _known:
            for f in [f for f in vars(special).values() if isinstance(f, np.ufunc) and id(f) not in _known]:
                _enter(f, UfuncVersion(f))
        for kind in loaded():
            _answered(kind)


_MAKERS = "zeros ones zeros_like ones_like arange linspace eye identity tri logspace geomspace copy"


def _load() -> None:
    """Enter the versions of what is loaded by now."""
    if not _versions:
        found: dict[Any, Any] = {f: listing(f) for f in FUNCTIONS if type(f) is type(np.mean) and f not in _AS_GIVEN}
        found.update({f: listing(f, opened_parts) for f in _PARTS})
        own: dict[Any, Any] = {np.asanyarray: array_of}
        own |= {np.ascontiguousarray: partial(array_of, order="C", ndmin=1)}
        own |= {np.asfortranarray: partial(array_of, order="F", ndmin=1)}
        found.update({original: Looking(original, version) for original, version in own.items()})
        found[np.asarray] = AS_ARRAY
        found |= {np.ndenumerate: Asking(np.ndenumerate, enumerated), np.nditer: Asking(np.nditer, no_iterator)}
        makers = [getattr(np, name) for name in _MAKERS.split()]
        making: dict[Any, Any] = {f: rule_of(f) if f in FUNCTIONS else f for f in makers}
        making |= {f: rule_of(f) for f in (np.take, np.full_like)}  # their rules are asked for the first argument only
        making |= {np.array: array_copied, np.full: full}
        found.update({original: Making(original, version) for original, version in making.items()})
        for original in (np.empty, np.empty_like):
            found[original] = FillingVersion(original, rule_of(original) if original in FUNCTIONS else original)
        found.update({original: Joining(original) for original in (np.r_, np.c_)})
        found[np.fromiter] = Iterating(np.fromiter, np.fromiter)
        found.update({f: UfuncVersion(f) for f in vars(np).values() if isinstance(f, np.ufunc)})
        whole = {np.dtype(code).type for code in np.typecodes["AllInteger"]}
        found.update({kind: class_version(kind, partial(whole_of, kind)) for kind in whole})
        for original, version in found.items():
            _enter(original, version)
        Standing.numpy = _stand_in(np)
    if (random := sys.modules.get("numpy.random")) is not None and id(random.default_rng) not in _known:
        for name in [name for name in random.__all__ if name[0].islower() and callable(getattr(random, name))]:
            _enter(getattr(random, name), Making(getattr(random, name), getattr(random, name), noted=False))
        for original in (random.default_rng, random.RandomState):
            _enter(original, Generating(original))
    _enter_loaded()
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
        return _standing_for(x, DrawingVersion(x))
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


Answering.now = _answered


def _generators() -> tuple[Any, ...]:
    """The classes of generators of random numbers, if anybody has loaded them."""
    found = sys.modules.get("numpy.random")
    return () if found is None else (found.Generator, found.RandomState)


def _scipys(x: Any, kind: type) -> Any:
    """A class of SciPy's or an object of one, or what stands for it."""
    own = counterpart(kind)
    if own is None or type(x) is CounterpartVersion:
        return x
    if x is kind:
        _enter(x, CounterpartVersion(kind.__name__, (), {"original": kind, "own": own}))
        return _versions[x]
    if getattr(sys.modules.get(kind.__module__), getattr(x, "name", None) or "", None) is x:  # scipy.stats.norm
        _enter(x, ObjectVersion(x, own.of))
        return _versions[x]
    return _standing_for(x, ObjectVersion(x, own.of))


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
