"""Generated source becomes a function; Python can show its lines in a traceback for as long as the function lives."""

from __future__ import annotations

import builtins
import itertools
import linecache
import weakref
from typing import Any

_numbers = itertools.count()


def defined(source: str, name: str, space: dict[str, Any], title: str = "") -> Any:
    """The function `name` that a text defines, with its names in `space`."""
    file = f"<riesz {title or f'{name} {next(_numbers)}'}>"
    exec(builtins.compile(source, file, "exec"), space)
    function = space[name]
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
    return function
