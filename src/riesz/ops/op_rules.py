"""What an op means in one interpretation of programs, as a table from classes of ops to rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Rule = TypeVar("Rule", bound=Callable[..., Any])

LATE = "refused: made to run"


class OpRules(dict[type, Rule], Generic[Rule]):
    """One interpretation: a rule for each class of ops, with a few words for docs/ops.md. `where` names the table.

    There is no default. A class has the rule of its nearest parent that has one; a class without is refused. Ops that
    are made to run (`Op.made_to_run`) need no word in tables of interpretations that come before.

    >>> BITS = OpRules("numbers.BITS")
    >>> _ = BITS("as many as its logarithm", int)(lambda n: n.bit_length())
    >>> BITS[type(5)](5), BITS.word(bool), BITS.word(float)
    (3, 'as many as its logarithm', None)
    """

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.words: dict[type, str] = {}

    def __call__(self, words: str, *kinds: type) -> Callable[[Rule], Rule]:
        """Enter a function as the rule of some classes."""

        def entered(rule: Rule) -> Rule:
            for kind in kinds:
                self[kind], self.words[kind] = rule, words
            return rule

        return entered

    def word(self, kind: type) -> str | None:
        """What is said of a class; None where nothing is."""
        late = LATE if getattr(kind, "made_to_run", False) else None
        return next((self.words[parent] for parent in kind.__mro__ if parent in self.words), late)

    def __missing__(self, kind: type) -> Rule:
        for parent in kind.__mro__[1:]:
            if parent in self.words:
                self[kind] = self[parent]
                return self[kind]
        raise NotImplementedError(self.lacking(kind))

    def lacking(self, kind: type) -> str:
        """What to write for a class that has no rule."""
        file, _, name = self.where.rpartition(".")
        entry = f'@{name}("a few words", {kind.__name__})'
        path = f"src/riesz/{file.replace('.', '/')}.py"
        return f"{kind.__name__} has no rule in {self.where}: put {entry} over one, in {path} or beside the class"
