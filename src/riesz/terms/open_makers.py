"""How open combinators are made: makers that can be pickled, and that enter a weighted space by forgetting its
weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ..errors import SpaceError
from ..spaces.formal_vectors import freeze_leaf
from ..spaces.space import Space, Weighted
from .open import Combinator
from .term import Compose, Term
from .weights import Forget

MakerT = Callable[..., Term]


def frozen(leaves: Iterable[Any]) -> tuple[Any, ...]:
    """Leaves that nobody can change any more."""
    return tuple([freeze_leaf(x) for x in leaves])


def past_weight(maker: MakerT) -> MakerT:
    """A maker that enters a weighted space through Forget."""

    @wraps(maker)
    def made(space: Space, *parameters: Any) -> Term:
        if isinstance(space, Weighted):
            return Compose(maker(space.base, *parameters), Forget(space))
        return maker(space, *parameters)

    return made


class Maker:
    """A picklable maker: found again by its name."""

    def __init__(self, name: str, maker: MakerT) -> None:
        self.name, self.maker, self.__doc__ = name, maker, maker.__doc__
        _makers[name] = self

    def __call__(self, space: Space, *parameters: Any) -> Term:
        return self.maker(space, *parameters)

    def __reduce__(self) -> Any:
        return _find_maker, (self.name,)


_makers: dict[str, Maker] = {}


def _find_maker(name: str) -> Maker:
    return _makers[name]


def maker(name: str, weights: bool = False) -> Callable[[MakerT], Maker]:
    """A function as a maker of that name; unless it knows `weights`, it enters a weighted space through Forget."""
    return lambda function: Maker(name, function if weights else past_weight(function))


def opened(function: MakerT) -> Combinator:
    """The combinator that a function makes, called as the function is."""
    name = function.__name__
    return Combinator(name, maker(name)(function), ())


def needs(what: str, wanted: str, space: Space) -> SpaceError:
    return SpaceError(f"{what} needs {wanted}; got {space}")
