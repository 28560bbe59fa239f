"""Names for what a function computes with: a second trace in which captured arrays and numbers are arguments.

What NumPy computes from captured arrays (−y, V.T, x − mu) is then seen as steps, and numbers keep their names. The
function's own local variables are results beside its value, so that a part that needs a name gets the user's. Printed
forms come from this trace; numbers come from the first one.
"""

from __future__ import annotations

import argparse
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import numpy as np

from ..errors import VectorError
from ..maps.leaves import any_traced
from ..tracing.argument_trees import flatten
from ..tracing.deciding import known
from ..tracing.surroundings.watching import users
from ..tracing.traced import Traced

LISTED = 32
"""Lists of more entries keep their values."""
NUMBERS = 512
"""Lists of more numbers do."""
_ASSUMED: ContextVar[list[tuple[Any, tuple[str, ...]]] | None] = ContextVar("assumed", default=None)
FACTS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "symmetric": lambda a: (a, a.T),
    "orthogonal": lambda a: (a.T @ a, np.eye(len(a)) if a.shape[0] == a.shape[1] else np.nan),
    "stochastic": lambda a: (a.sum(-1), np.ones(a.shape[:-1])),
    "diagonal": lambda a: (a, a * np.eye(*a.shape)),
    "lower": lambda a: (a, np.tril(a)),
    "upper": lambda a: (a, np.triu(a)),
    "positive": lambda a: (np.sign(a), np.ones(np.shape(a))),
    "mask": lambda a: (a, np.where(a == 0, 0.0, 1.0)),
}
"""What can be assumed of a matrix, or of other arrays where that says something: two arrays that are then the same."""
AXES = {"stochastic": (1, 2), "positive": range(64), "mask": range(64)}
"""How many axes an array may have; two for other facts."""


def holds(fact: str, a: Any, tolerance: float = 1e-14) -> bool:
    """Whether a fact holds of numbers, up to rounding: forms are true to all digits."""
    if a.ndim not in AXES.get(fact, (2,)) or not a.size:
        return False
    one, other = FACTS[fact](a)
    return np.shape(one) == np.shape(other) and bool(np.abs(one - other).max() <= tolerance * np.abs(one).max())


def assume(a: Any, **facts: bool) -> Any:
    """The array itself, with facts that closed forms may use: symmetric, orthogonal, diagonal, lower or upper
    (triangular), stochastic (rows, or a vector, sum to 1), positive (all numbers), mask (zeros and ones).

    Numbers are checked, also those of the point where a derivative is taken; a fact that does not hold is an error.

    >>> import numpy as np, riesz as rz
    >>> print(rz.derive(lambda S, x: x @ rz.assume(S, symmetric=True) @ x, np.eye(2), np.ones(2)).gradient["x"])
    2Sx
      where Sᵀ = S
    """
    noted, traced = _ASSUMED.get(), isinstance(a, Traced)
    for name, claimed in facts.items():
        if name not in FACTS:
            raise VectorError(f"assume({name}=…): the facts are {', '.join([f'{k}=True' for k in FACTS])}")
        if not claimed or (traced and noted is not None):  # a trace for all points at once
            continue
        if not (_holds_here(name, a) if traced else holds(name, np.asarray(a), 1e-8)):
            raise VectorError(f"assume({name}=True): the array of shape {np.shape(a)} is not {name}")
    if noted is not None and traced:
        noted.append((a, tuple([name for name, claimed in facts.items() if claimed])))
    return a


def _holds_here(fact: str, a: Any) -> bool:
    """Whether a fact holds at the point that a function is traced at; a trace for all points is not kept for points."""
    if a.ndim not in AXES.get(fact, (2,)):
        return False
    one, other = FACTS[fact](a)
    if np.shape(one) != np.shape(other):
        return False
    seen = known(np.max(np.abs(one - other)) <= 1e-8 * np.max(np.abs(one)))
    a.home.outside.unchecked |= seen is None
    return seen is not False


class Lifting:
    """A function rebuilt so that what it computes with can be other values: float arrays and numbers that it, its
    helper functions, the objects they read and partial applications hold. `known` are their values, by name."""

    def __init__(self, f: Any, given: int = 1) -> None:
        self.known: dict[str, Any] = {}
        self.indices: dict[str, Any] = {}  # arrays of whole numbers, and others that keep their values
        self._watched: Any = None  # the function whose local variables are seen
        self._places: dict[str, list[tuple[Any, Any]]] = {}
        self._rebuilt: dict[int, tuple[Any, Any]] = {}  # what was rebuilt, kept alive, and what it is now
        self._around: dict[int, dict[str, Any]] = {}
        self._tuples: list[tuple[list[Any], Callable[[list[Any]], None]]] = []
        self._arrays: dict[int, tuple[Any, Any]] = {}  # lists of numbers, and these as arrays
        self._listed: set[str] = set()  # names of such
        self._looked: set[tuple[int, int]] = set()  # objects, and the code whose attributes were looked at
        self._given = given  # how many arguments the function itself is given
        self.function = self._callable(f)

    def lifted(self, count: int, small: bool) -> Callable[..., Any]:
        """A function of its first arguments and of what is known. Its result is a pair: the value, and (local
        variables, assumptions). Local variables are seen in small functions only: a trace takes longer then."""
        function, watched, names = self.function, self._watched if small else None, list(self.known)

        def run(args: Any) -> Any:
            if not any([isinstance(v, Traced) for v in flatten(list(args))[0]]):
                raise TypeError("local variables are seen in a trace only")
            for name, value in zip(names, args[count:], strict=True):
                self._put(name, value)
            self._settle()
            with _watching(watched and watched.__code__) as seen:  # a trace may give it other code
                value = function(*args[:count])
            for name, array in seen.arrays.items():
                self.indices.setdefault(name, array)
            return value, seen.found()

        def opened(*args: Any) -> Any:
            return function and run(args)  # a trace looks into the function, and not into what runs it

        around = {"__name__": "__main__", "__builtins__": __builtins__}
        return types.FunctionType(opened.__code__, around, "f", None, opened.__closure__)

    def drop(self) -> None:
        """The name found last is not open any more."""
        name, value = self.known.popitem()
        self._put(name, value)
        self._settle()
        if np.size(value) > 1:
            self.indices.setdefault(name, value)

    def _put(self, name: str, value: Any) -> None:
        for holder, key in self._places[name]:
            self._place(holder, key, _entries(value) if name in self._listed else value)

    def _settle(self) -> None:
        """Tuples are made again of what is in them now."""
        for parts, put in self._tuples:
            put(parts)

    def _callable(self, f: Any) -> Any:
        """A function, method, partial application, closed form or object with a __call__; None for others."""
        if hasattr(f, "rebuilt_with"):
            new = f.rebuilt_with(self._callable)
            self._watched = None  # its variables belong to a trace inside
            return new
        if isinstance(f, types.FunctionType):
            new = self._function(f)
            self._watched = self._watched or new
            return new
        if isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType):
            return types.MethodType(self._callable(f.__func__), self._object(f.__self__, f.__func__.__code__))
        if isinstance(f, functools.partial):
            given, named = list(f.args), dict(f.keywords)
            words = f.func.__code__.co_varnames if isinstance(f.func, types.FunctionType) else ()
            for k, value in enumerate(given[: len(words)]):
                self._note(words[k], value, given, k)
            for name, value in named.items():
                self._note(name, value, named, name)
            function = self._callable(f.func)
            return function and (lambda *args: function(*given, *args, **named))
        call = next((vars(kind)["__call__"] for kind in type(f).__mro__ if "__call__" in vars(kind)), None)
        return self._callable(types.MethodType(call, f)) if isinstance(call, types.FunctionType) else None

    def _function(self, f: types.FunctionType) -> types.FunctionType:
        if id(f) in self._rebuilt:
            return self._rebuilt[id(f)][1]
        around = self._around.setdefault(id(f.__globals__), dict(f.__globals__))
        inner = f.__code__.co_freevars
        cells = [types.CellType() for _ in inner]
        new = types.FunctionType(f.__code__, around, f.__name__, f.__defaults__, tuple(cells) or None)
        new.__module__ = f.__module__
        self._rebuilt[id(f)] = f, new
        self._defaults(f, new)
        for name in _names(f.__code__):
            if name in f.__globals__:
                around[name] = self._held(name, f.__globals__[name], around, name, f.__code__)
        for name, cell, old in zip(inner, cells, f.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self._held(name, old.cell_contents, cell, None, f.__code__)
            except ValueError:  # not given yet
                continue
        return new

    def _defaults(self, f: types.FunctionType, new: types.FunctionType) -> None:
        """Default values of parameters that are not given."""
        code, values = f.__code__, list(f.__defaults__ or ())
        first, given = code.co_argcount - len(values), 0 if self._watched else self._given
        self._watched = self._watched or new
        for k, value in enumerate(values):
            if first + k >= given:
                values[k] = self._held(code.co_varnames[first + k], value, values, k, code)
        named = dict(f.__kwdefaults__ or {})
        for name, value in named.items():
            named[name] = self._held(name, value, named, name, code)
        new.__kwdefaults__ = named or None
        self._tuples.append((values, lambda parts: setattr(new, "__defaults__", tuple(parts) or None)))
        self._settle()

    def _held(self, name: str, value: Any, holder: Any, key: Any, code: types.CodeType, suffix: str = "") -> Any:
        """What stands for a value that a function reads; `suffix`: of names inside of lists."""
        if self._note(name, value, holder, key):
            return value
        if isinstance(value, types.FunctionType) and users(value.__module__ or ""):
            return self._function(value)
        if type(value) is dict:
            new = dict[Any, Any](value)
            for k, v in value.items():
                if isinstance(k, str) and k.isidentifier():
                    new[k] = self._held(k + suffix, v, new, k, code, suffix)
            return new
        if isinstance(value, (list, tuple)) and 0 < len(value) <= LISTED:
            parts, fields = list(value), getattr(value, "_fields", None)
            for k, v in enumerate(value):
                within = fields[k] + suffix if fields else f"{name}{k}"
                parts[k] = self._held(within, v, parts, k, code, suffix if fields else f"{suffix}{k}")
            if type(value) is list or (all([a is b for a, b in zip(parts, value, strict=True)]) and not fields):
                return parts if type(value) is list else value
            make = cast(Any, type(value))._make if fields else tuple
            self._tuples.append((parts, lambda parts: self._place(holder, key, make(parts))))
            return make(parts)
        return self._object(value, code) if _is_object(value) else value

    @staticmethod
    def _place(holder: Any, key: Any, value: Any) -> None:
        if isinstance(holder, types.CellType):
            holder.cell_contents = value
        else:
            holder[key] = value

    def _object(self, x: Any, code: types.CodeType) -> Any:
        """A copy of an object, with the attributes that code reads open and the methods that it calls rebuilt."""
        if not _is_object(x):
            return x
        try:
            make = type(x).__new__ if isinstance(x, types.SimpleNamespace) else object.__new__
            new = self._rebuilt[id(x)][1] if id(x) in self._rebuilt else make(type(x))
        except TypeError:  # it is a number or a container too
            return x
        if id(x) not in self._rebuilt:
            vars(new).update(vars(x))
            self._rebuilt[id(x)] = x, new
        if (id(x), id(code)) in self._looked:
            return new
        self._looked.add((id(x), id(code)))
        for name in _names(code, attributes=True):
            method = inspect.getattr_static(type(x), name, None)
            if name in vars(x):
                vars(new)[name] = self._held(name, vars(x)[name], vars(new), name, code)
            elif isinstance(method, (property, functools.cached_property)):
                inner = method.fget if isinstance(method, property) else method.func
                if isinstance(inner, types.FunctionType):
                    self._object(x, inner.__code__)
            elif isinstance(method, (types.FunctionType, staticmethod, classmethod)) and name not in vars(new):
                inner = method if isinstance(method, types.FunctionType) else method.__func__
                if not isinstance(inner, types.FunctionType):
                    continue
                vars(new)[name] = None  # it may call itself
                rebuilt = self._function(inner)
                whose = type(x) if isinstance(method, classmethod) else new
                vars(new)[name] = rebuilt if isinstance(method, staticmethod) else types.MethodType(rebuilt, whose)
                self._object(x, inner.__code__)
        return new

    def _note(self, name: str, value: Any, holder: Any, key: Any) -> bool:
        """Remembers where a float array or number, or a list of such, stands; two of one name are told apart."""
        listed = False
        if type(value) in (list, tuple) and 1 < len(value) <= NUMBERS:
            if id(value) not in self._arrays:
                self._arrays[id(value)] = value, _array_of(value)
            value = self._arrays[id(value)][1]
            listed = value is not None
        if isinstance(value, np.ndarray) and value.dtype.kind in "iub" and value.size:
            self.indices.setdefault(name, value)
        if not _floats(value):
            return False
        while name in self.known and self.known[name] is not value:
            name += "_"
        self.known[name] = value
        if listed:
            self._listed.add(name)
        self._places.setdefault(name, []).append((holder, key))
        return True


def _array_of(listed: Any) -> Any:
    """A list of floats, or of whole numbers, or of lists of them, as an array; None where it is another."""
    rows = [row if type(row) in (list, tuple) else (row,) for row in listed]
    kinds, lengths = {type(v) for row in rows for v in row}, {len(row) for row in rows}
    nested = {type(row) in (list, tuple) for row in listed}
    one = len(kinds) == len(lengths) == len(nested) == 1 and kinds <= {float, int} and lengths != {0}
    return np.array(listed) if one else None


def _entries(value: Any) -> list[Any]:
    """An array as a list of its numbers, or of lists of them."""
    whole = isinstance(value, np.ndarray)
    return value.tolist() if whole else [_entries(v) if v.ndim else v for v in value]


def _is_object(x: Any) -> bool:
    """An object of a user's class, or a namespace."""
    return isinstance(x, (types.SimpleNamespace, argparse.Namespace)) or (
        hasattr(x, "__dict__")
        and not isinstance(x, (type, types.ModuleType, types.FunctionType))
        and users(type(x).__module__)
    )


class _watching:
    """Sees the local variables of a function when it returns, and what it assumes of arrays."""

    def __init__(self, code: types.CodeType | None) -> None:
        self.code = code
        self.locals: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}
        self.noted: list[tuple[Any, tuple[str, ...]]] = []

    def __enter__(self) -> _watching:
        self._before = sys.getprofile()
        self._token = _ASSUMED.set(self.noted)
        if self.code is not None:
            sys.setprofile(self._profile)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.code is not None:
            sys.setprofile(self._before)
        _ASSUMED.reset(self._token)

    def _profile(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "return" and frame.f_code is self.code:
            mine = frame.f_locals
            self.locals = {k: v for k, v in mine.items() if isinstance(v, Traced) and v.dtype.kind == "f"}
            numbers = {k: v for k, v in mine.items() if isinstance(v, np.ndarray) and not any_traced(v)}
            self.arrays = {k: v.copy() for k, v in numbers.items() if v.dtype.kind in "iubf"}

    def found(self) -> Any:
        """Local variables by name, and assumed arrays by number and facts."""
        assumed = {f"{k} {' '.join(facts)}": a for k, (a, facts) in enumerate(self.noted)}
        return dict(self.locals), assumed


def _floats(v: Any) -> bool:
    return isinstance(v, float) or (isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size > 0)


def _names(code: types.CodeType, attributes: bool = False) -> list[str]:
    """The names that code looks up, those of inner functions included; or the attributes that it reads."""
    kinds = ("LOAD_ATTR", "LOAD_METHOD") if attributes else ("LOAD_GLOBAL", "LOAD_NAME")
    found, waiting = list[str](), [code]
    while waiting:
        c = waiting.pop()
        found += [i.argval for i in dis.get_instructions(c) if i.opname in kinds]
        waiting += [k for k in c.co_consts if isinstance(k, types.CodeType)]
    return list(dict.fromkeys(found))
