"""Generated source becomes a function: the one place where text is executed."""

from __future__ import annotations

import itertools
import linecache
import weakref
from typing import Any

_numbers = itertools.count()


def executed(source: str, file: str, space: dict[str, Any]) -> None:
    """Run a text as the code of a file; nothing else in riesz does. It was written here, or the user allowed it.

    >>> space = {}
    >>> executed("x = 2 + 3", "<code>", space)
    >>> space["x"]
    5
    """
    exec(compile(source, file, "exec"), space)


def defined(source: str, name: str, space: dict[str, Any]) -> Any:
    """The function `name` that a text defines; it reads its names from `space`, where it is put too.

    Python can show its lines, in a traceback or a debugger, for as long as it lives.

    >>> defined("def twice(x):\\n    return number * x", "twice", {"number": 2})(21)
    42
    """
    file = f"<riesz {name} {next(_numbers)}>"
    executed(source, file, space)
    function = space[name]
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
    return function
