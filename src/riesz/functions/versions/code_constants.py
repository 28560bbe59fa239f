"""The code of a function with constants in the place of some of its global names and imported modules.

The code stays as long as it was, so that its lines, jumps and exceptions are where they were: an instruction that looks
up a global name is followed by room for Python's caches, and an import by two constants.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

_NAMES = "CACHE LOAD_GLOBAL STORE_GLOBAL LOAD_CONST PUSH_NULL NOP EXTENDED_ARG IMPORT_NAME"
_CACHE, _GLOBAL, _STORE, _CONST, _NULL, _NOP, _MORE, _IMPORT = [dis.opmap[name] for name in _NAMES.split()]
_NUMBER = dis.opmap.get("LOAD_SMALL_INT", _CONST)
_NULL_FIRST = sys.version_info < (3, 13)
"""Whether the empty place beside a function that is called lies below it on the stack."""


def with_constants(
    code: types.CodeType, names: Mapping[str, Any], module: Callable[[str, bool], Any]
) -> types.CodeType:
    """Code, and code written inside it, that finds other values under global names, but for those it stores itself.

    `module`: what stands for an imported module, given its name and whether it is the package that is wanted (import
    a.b gives a); None for the module itself."""
    consts = [with_constants(c, names, module) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    text, places = bytearray(code.co_code), dict[int, int]()
    if _STORE in text[::2]:
        own = _stored(code)
        names = {k: v for k, v in names.items() if k not in own}

    def put(value: Any, start: int, end: int, called: bool = False) -> None:
        """A constant from one place to another."""
        at = places.setdefault(id(value), len(consts))
        if at == len(consts):
            consts.append(value)
        loads = [*[(_MORE, (at >> k) & 255) for k in (16, 8) if at >> k], (_CONST, at & 255)]
        units = [(_NULL, 0), *loads] if called and _NULL_FIRST else [*loads, (_NULL, 0)] if called else loads
        units += [(_NOP, 0)] * ((end - start) // 2 - len(units))
        text[start:end] = bytes([b for unit in units for b in unit])

    before: list[tuple[int, int, int]] = []  # the instructions before: code, argument, and where they start
    i = start = arg = 0
    while i < len(text):
        op, arg = text[i], arg << 8 | text[i + 1]
        i += 2
        if op == _MORE:
            continue
        if op == _GLOBAL and (name := code.co_names[arg >> 1]) in names:
            end = i
            while text[end] == _CACHE:
                end += 2
            put(names[name], start, end, bool(arg & 1))
            i = end
        elif op == _IMPORT and [b[0] for b in before[-2:]] in ([_CONST, _CONST], [_NUMBER, _CONST]):
            (first, level, begin), (_, wanted, _) = before[-2:]
            if not (level if first != _CONST else code.co_consts[level]):
                value = module(code.co_names[arg], code.co_consts[wanted] is None)
                if value is not None:
                    put(value, begin, i)
        if op != _CACHE:
            before.append((op, arg, start))
        start, arg = i, 0
    if len(consts) == len(code.co_consts) and all(map(is_, consts, code.co_consts)):
        return code
    return code.replace(co_code=bytes(text), co_consts=tuple(consts))


def _stored(code: types.CodeType) -> set[str]:
    """The global names that code stores."""
    return {i.argval for i in dis.get_instructions(code) if i.opcode == _STORE}
