"""What an op is in the language of an export: a table from classes of ops to writers; what is not in it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TraceError


class OpWriters(dict[type, Callable[..., Any]]):
    """Writers by classes of ops; a class has that of its nearest parent."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language

    def __call__(self, words: str, *kinds: type) -> Callable[[Any], Any]:
        """Enter a writer for some classes; `words` say what they become."""

        def entered(writer: Any) -> Any:
            for kind in kinds:
                self[kind] = writer
            return writer

        return entered

    def of(self, op: Any) -> Callable[..., Any]:
        """The writer of an op."""
        for kind in type(op).__mro__:
            if kind in self:
                return self[kind]
        raise TraceError(f"{op.title} is not known in {self.language}: write it with products, sums and gathers")
