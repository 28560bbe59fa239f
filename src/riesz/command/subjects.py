"""What a command or the page works on: a text or a function of a file, the shapes of its arguments, a point."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import math
import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import ExpressionError, RieszError
from ..functions.calling import function
from ..functions.deriving import derive, parameter_names
from ..functions.jacobians import hessian, jacobian
from ..maps.derivation import Derivation
from ..maps.linear_map import LinearMap
from ..runtime.generated_source import executed
from ..spaces.space import R, Space
from ..terms.term import Arrow, Term
from .arguments import UsageError

Shape = tuple[int, ...]
NUMBER = ("scalar", "()", ".", "")
"""How the shape of a number is written."""
MOST_ARGUMENTS = 100
_NUMBERS = "lam mu alpha beta gamma sigma eps tau s t c k λ μ α β γ σ ε τ"
"""Names that mostly stand for numbers."""
_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*(\.[^\W\d]\w*)*)")


def shape_of(text: str) -> Shape:
    """A shape as people write it.

    >>> shape_of("2,3"), shape_of("4"), shape_of("scalar")
    ((2, 3), (4,), ())
    """
    plain = text.strip().strip("()").strip()
    if text.strip() in NUMBER or not plain:
        return ()
    lengths = [part.strip() for part in re.split(r"[,x×]", plain.rstrip(","))]
    if not all([part.isascii() and part.isdigit() and len(part) < 12 for part in lengths]) or len(lengths) > 32:
        raise UsageError(f"{_cut(text)!r} is no shape; write 3 for a vector, 2,3 for a matrix, scalar for a number")
    return tuple([int(part) for part in lengths])


def written(shape: Shape) -> str:
    """A shape as it is written after --shapes."""
    return ",".join(map(str, shape)) or "scalar"


def space_of_shape(shape: Shape) -> Space:
    """ℝ to some shape."""
    lengths: tuple[int, ...] = shape
    return R ** (lengths[0] if len(shape) == 1 else shape) if shape else R


def guesses(names: Sequence[str]) -> Iterator[list[Shape]]:
    """Shapes to try where none are given: numbers; then capital letters are matrices and small ones vectors."""
    yield [()] * len(names)
    for few in (set(_NUMBERS.split()), set[str]()):
        yield [(3, 3) if name[0].isupper() else () if name in few else (3,) for name in names]
    yield [(3,) for _ in names]


class Subject:
    """A function with shapes; derived when first asked for."""

    def __init__(self, f: Any, shapes: Sequence[Shape] | None = None, title: str = "", seed: int = 0) -> None:
        self.function, self.title, self.seed = f, title, seed
        self.combinator = isinstance(f, Arrow)
        names, needed = ([], 0) if self.combinator else _parameters(getattr(f, "function", f), shapes)
        if len(names) > MOST_ARGUMENTS:
            raise UsageError(f"{len(names)} arguments are too many here; the most are {MOST_ARGUMENTS}")
        count = needed if shapes is None else len(shapes)
        if not self.combinator and not (max(needed, 1) <= count <= len(names)):
            given = "" if shapes is None else f"; given are {count}: {' '.join([written(s) for s in shapes]) or 'none'}"
            raise UsageError(f"{_takes(names[:needed] or names)}{given}")
        self.names, self.guessed = names[:count], shapes is None
        self._shapes = None if shapes is None else list(shapes)

    @cached_property
    def derivation(self) -> Derivation:
        """Value, derivative and adjoint at every point."""
        return self._derived[1]

    @property
    def shapes(self) -> list[Shape]:
        """The shape of each argument, given or guessed."""
        return self._derived[0]

    @cached_property
    def _derived(self) -> tuple[list[Shape], Derivation]:
        if self.combinator and self._shapes is None:
            if not isinstance(self.function, Term):
                raise UsageError(f"{self.function} fits many spaces; write --shapes for the shape of its argument")
            found = derive(self.function)
            return [tuple(leaf.shape) for leaf in found.function.domain.leaves], found
        if self._shapes is not None:
            return self._shapes, derive(self.function, *[space_of_shape(s) for s in self._shapes])
        first: Exception | None = None
        for shapes in guesses(self.names):
            try:
                return shapes, derive(self.function, *[space_of_shape(s) for s in shapes])
            except (RieszError, ValueError, TypeError, IndexError) as problem:
                first = problem if first is None else first
        assert first is not None
        first.add_note(f"no shapes were given, and those that were tried do not fit; {_takes(self.names)}")
        raise first

    @property
    def real(self) -> bool:
        """Whether it is a function into ℝ."""
        return self.derivation.function.codomain is R

    @property
    def kind(self) -> str:
        """The closed form that is asked for unless another is named."""
        return "gradient" if self.real else "jacobian"

    @cached_property
    def point(self) -> list[Any]:
        """A point where most functions are smooth: numbers around 1, square matrices with a large diagonal."""
        rng = np.random.default_rng(self.seed)
        found: list[Any] = []
        for shape in self.shapes:
            x = rng.uniform(0.5, 1.5, shape)
            if len(shape) == 2 and shape[0] == shape[1]:
                x = x + shape[0] * np.eye(shape[0])
            found.append(x if shape else float(x))
        return found

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The point, as the function takes it."""
        if not self.combinator:
            return tuple(self.point)
        V = self.derivation.function.domain
        return (V.wrap([np.asarray(x) for x in self.point]),)

    @property
    def size(self) -> int:
        """How many numbers go in."""
        return sum([math.prod(s) for s in self.shapes])

    def map(self, second: bool = False) -> LinearMap:
        """The Jacobian, or the Hessian, at the point."""
        made: Callable[..., Any] = hessian if second else jacobian
        if self.combinator or len(self.point) == 1:
            return made(self.function)(*self.arguments)
        return made(self.function, tuple(range(len(self.point))))(*self.point)


def _parameters(f: Any, shapes: Sequence[Shape] | None) -> tuple[list[str], int]:
    """The names of a function's arguments, and how many of them have no default."""
    names = list(parameter_names(f) or ())
    if not names and shapes:  # f(*xs), or a function that does not say
        return [f"x{i}" for i in range(len(shapes))], len(shapes)
    with contextlib.suppress(TypeError, ValueError):
        found = inspect.signature(f).parameters
        return names, len([name for name in names if found[name].default is inspect.Parameter.empty])
    return names, len(names)


def _takes(names: Sequence[str]) -> str:
    if not names:
        return "this function has no arguments: there is nothing to differentiate in"
    return f"this function takes {len(names)} shape{'s' if len(names) != 1 else ''} ({', '.join(names[:12])})"


def subject(given: str, shapes: Sequence[str] | None, seed: int = 0) -> Subject:
    """What is written after a command."""
    taken = None if shapes is None else [shape_of(s) for s in shapes]
    if not (named := _FILE.fullmatch(given)):
        if "->" not in given and given.endswith(".py"):
            raise UsageError(f"{given}: which function? write {given}:f")
        return Subject(function(given), taken, " ".join(given.split()), seed)
    return Subject(function_of_file(named["path"], named["name"]), taken, given, seed)


def function_of_file(path: str, name: str) -> Any:
    """A function of a Python file, which is imported: it is the user's own."""
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _found_beside(file):
        sys.modules.setdefault(file.stem, module)
        try:
            spec.loader.exec_module(module)
        except SystemExit:
            raise UsageError(
                f"{path} ends Python when it is imported; put that behind if __name__ == '__main__':"
            ) from None
        except Exception as problem:
            problem.add_note(f"while {path} was imported")
            raise
    return _named(vars(module), name, path)


def function_of_code(source: str) -> Any:
    """The last function of some Python code, which is run: only where the user has allowed that."""
    names: dict[str, Any] = {"np": np, "numpy": np, "rz": sys.modules["riesz"], "__name__": "code"}
    executed(source, "<code>", names)
    found = [v for v in names.values() if inspect.isfunction(v) and v.__module__ == "code"]
    if not found:
        raise ExpressionError("this code defines no function; write def f(x): …")
    return found[-1]


@contextlib.contextmanager
def _found_beside(file: Path) -> Generator[None]:
    """The file's folder is where its imports are found, as where it is run as a script."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _named(names: dict[str, Any], name: str, path: str) -> Any:
    found: Any = SimpleNamespace(**names)
    for k, part in enumerate(name.split(".")):
        if not hasattr(found, part):
            inside: list[str] = [n for n in (names if k == 0 else dir(found)) if n[0] != "_"]
            known = [n for n in inside if callable(v := getattr(found, n)) and not inspect.isclass(v)]
            whose = ":".join([path, *[".".join(name.split(".")[:k])][:k]])
            raise UsageError(f"{whose} has no {part}; it has {', '.join(known[:12]) or 'no functions'}")
        found = getattr(found, part)
    if inspect.isclass(found) or not callable(found):
        raise UsageError(f"{path}:{name} is {_cut(repr(found))}, which is no function")
    return found


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
