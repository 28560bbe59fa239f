"""The rules: which code answers for which function of NumPy and SciPy, and what the coverage table says of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from itertools import takewhile
from typing import Any

import numpy as np

PARTS = (
    *("scipy.special", "scipy.linalg", "scipy.fft", "scipy.signal", "scipy.sparse", "scipy.sparse.linalg"),
    *("scipy.optimize", "scipy.integrate", "scipy.spatial", "scipy.spatial.distance"),
    *("scipy.interpolate", "scipy.ndimage", "scipy.stats"),
)
"""The parts of SciPy that there are rules for."""
UFUNCS: dict[Any, Callable[..., Any]] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
NOTES: dict[Any, tuple[str, str]] = {}
"""What each supported function becomes, and its derivative rule: the coverage table."""

NOT_SAID: Any = np._NoValue  # pyright: ignore
"""What NumPy passes on for an argument that it was not given."""
UNREAD = {
    *("out", "order", "device", "subok", "writeable", "disp", "blocksize", "lwork", "lapack_driver", "check_finite"),
    *("overwrite_input", "overwrite_a", "overwrite_b", "overwrite_ab"),
}
"""Arguments that say nothing of the result, or were looked at before."""


MASKED: set[Any] = set()
"""The class of what a mask that depends on the numbers selects; entered by writing/masked.py."""
WRITERS: dict[Any, Callable[..., None]] = {}
"""Functions of NumPy's that write into their first argument."""
BY_NAME: dict[str, Callable[..., Any]] = {}
"""What traced arrays call: code of files that are loaded with the rules, or when it is first called."""


class Later:
    """Stands for a rule in its table until it is first called. Then its file is loaded, and enters the rule itself."""

    __slots__ = ("file", "key", "table")

    def __init__(self, table: dict[Any, Any], key: Any, file: str) -> None:
        self.table, self.key, self.file = table, key, file
        table.setdefault(key, self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        import_module(self.file)
        return self.table[self.key](*args, **named)


class Loading(dict[Any, Callable[..., Any]]):
    """A table whose files are loaded when something is looked for that is not there."""

    files: tuple[str, ...] = ()

    def __missing__(self, key: Any) -> Any:
        if not self.files:
            raise KeyError(key)
        for file in self.files:
            import_module(file)
        self.files = ()
        return self[key]

    def find(self, key: Any) -> Any:
        """The rule, or None."""
        try:
            return self[key]
        except KeyError:
            return None


COMPLEX = Loading()
"""NumPy function or ufunc → its rule where an argument is complex."""


def by_name(code: Any) -> Any:
    """Enter a function, under its name, among those that traced arrays call."""
    BY_NAME[code.__name__] = code
    return code


def answers(*functions: Any, what: str, rule: str) -> Callable[[Any], Any]:
    """Enter a rule for NumPy functions: the code below writes the steps; the rest is for the coverage table."""

    def enter(code: Any) -> Any:
        for f in functions:
            (UFUNCS if isinstance(f, np.ufunc) else FUNCTIONS)[f] = code
            NOTES[f] = (what, rule)
        return code

    return enter


def answer_rows(*rows: tuple[Any, str, str, Any]) -> None:
    """Enter rules of one expression each: a function (or several), what it becomes, its derivative rule, the code."""
    for functions, what, rule, code in rows:
        several = functions if isinstance(functions, tuple) else (functions,)
        code.__qualname__ = several[0].__name__  # Python's errors name it
        answers(*several, what=what, rule=rule)(code)


def as_called(function: Any, code: Any) -> Any:
    """Code that is called as a function of NumPy or SciPy is, and hears of all its own arguments by name; of those not
    said, the default that they have there (None where they have none)."""
    from inspect import signature  # slow to import

    theirs, own = signature(function), signature(code).parameters
    usual: dict[str, Any] = {k: None for k, p in own.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
    for k, p in theirs.parameters.items():
        if k in own and p.default is not p.empty and p.default is not NOT_SAID:
            usual[k] = p.default
    places = [k for k, p in theirs.parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = {k for k in places if theirs.parameters[k].default is theirs.empty}

    @wraps(code)
    def rule(*args: Any, **named: Any) -> Any:
        said = dict(zip(places, args, strict=False)) | named  # as theirs.bind has it, which takes ten times as long
        if len(said) < len(args) + len(named) or not needed <= said.keys() <= theirs.parameters.keys():
            try:
                theirs.bind(*args, **named)
            except TypeError as problem:
                raise TypeError(f"{function.__name__}() {problem}") from None
        return code(**usual | {k: v for k, v in said.items() if v is not NOT_SAID and (k in own or k not in UNREAD)})

    return rule


def answers_called(*functions: Any, what: str, rule: str) -> Callable[[Any], Any]:
    """As `answers`, for code that is called by the names of NumPy's arguments."""

    def enter(code: Any) -> Any:
        return answers(*functions, what=what, rule=rule)(as_called(functions[0], code))

    return enter


_NAMES = "pandas polars pyarrow xarray sympy mpmath torch tensorflow dask networkx statsmodels sklearn"
OTHERS = set(_NAMES.split())
"""Libraries that know numbers only."""
STRANGERS = OTHERS | {"jax"}


def public_name(function: Any) -> str:
    """What users call a function of NumPy's or SciPy's: np.sum, np.linalg.solve, scipy.special.erf, norm.logpdf."""
    whose = getattr(function, "__self__", None)
    if whose is not None and type(whose).__module__.startswith("scipy."):
        return f"{getattr(whose, 'name', None) or type(whose).__name__}.{function.__name__}"
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", str(function))
    if isinstance(function, np.ufunc):
        numpys = getattr(np, name, None) is function or name in ("absolute", "conjugate", "divide", "remainder")
        return f"{'np' if numpys else 'scipy.special'}.{name}"
    if module.startswith("scipy"):
        public = [*takewhile(lambda part: part[0] != "_", module.split("."))]
        return ".".join([*(public if len(public) > 1 else ["scipy", "sparse"]), name])
    part = module.split(".")
    return "np." + ".".join([*[p for p in part[1:2] if not p.startswith("_")], name])
