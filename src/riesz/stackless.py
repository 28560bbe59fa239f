"""Recursion without the stack: a rule is a generator that yields subproblems and returns its answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import Any

Rule = Generator[Any, Any, Any]


def solve(problem: Any, rule: Callable[..., Rule], memo: dict[Hashable, Any] | None = None) -> Any:
    """Run rule(*problem), answering each yielded problem (a tuple) by the rule again; each problem is solved once."""
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
