"""Deep and long work in Python: recursion without the stack, and quiet from the cycle collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Rule = Generator[Any, Any, Any]


def solve(problem: Any, rule: Callable[..., Rule], memo: dict[Hashable, Any] | None = None) -> Any:
    """Recursion where a rule is a generator that yields subproblems and returns its answer.

    Run rule(*problem), answering each yielded problem (a tuple) by the rule again; each problem is solved once.
    """
    known: dict[Hashable, Any] = {} if memo is None else memo
    stack: list[tuple[Any, Rule]] = [(problem, rule(*problem))]
    answer: Any = None
    while stack:
        current, running = stack[-1]
        try:
            asked = running.send(answer)
        except StopIteration as done:
            answer = known[current] = done.value
            stack.pop()
            continue
        if asked in known:
            answer = known[asked]
        else:
            stack.append((asked, rule(*asked)))
            answer = None
    return answer


# Note [Quiet]: writing a long program makes many small tuples and no cycles. Python's cycle collector walks all of them
# again and again, which makes linear work look worse than linear (13 times the time for 10 times the steps); so it
# rests meanwhile.
def quiet(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, with the cycle collector at rest while it runs."""

    @wraps(function)
    def rested(*args: P.args, **named: P.kwargs) -> T:
        if not gc.isenabled():
            return function(*args, **named)
        gc.disable()
        try:
            return function(*args, **named)
        finally:
            gc.enable()

    return rested
