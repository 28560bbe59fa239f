"""Which function a line of the user's code calls, read from its source: for error messages. Nothing is run."""

from __future__ import annotations

import ast
import linecache
from itertools import islice
from types import ModuleType
from typing import Any


def called_at(frame: Any, at: int) -> tuple[str, str]:
    """The function that the instruction `at` of a frame calls, as its author wrote it and with the names of modules in
    full, and the library it is of; "" for what is not known."""
    spot = next(islice(frame.f_code.co_positions(), at // 2, None), (None,) * 4)
    first, last, start, stop = spot
    if first is None or start is None:
        return "", ""
    lines = [line.encode() for line in linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]]
    if not lines:
        return "", ""
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return "", ""
    if not isinstance(call, ast.Call):
        return "", ""
    written = ast.unparse(call.func)
    root, *names = written.split(".")
    found = frame.f_locals.get(root, frame.f_globals.get(root))
    library = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None) or ""
    while names and isinstance(found, ModuleType):
        root = found.__name__
        found = vars(found).get(names.pop(0))
        written = f"{root}.{written.rpartition('.')[2]}" if not names else written
    return written, library.split(".")[0]
