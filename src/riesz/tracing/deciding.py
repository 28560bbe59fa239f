"""Conditions on traced values: where the numbers are known, what Python's `if` gets; where they are not, an error that
shows the user's own lines with rz.cond or rz.while_loop in place."""

from __future__ import annotations

import ast
import linecache
from typing import Any

import numpy as np

from .trace import refuse, user_frame


def decided(x: Any) -> bool:
    """The truth of a traced value at the point its function is traced at. It becomes a guard of the trace, which is not
    used where the answer is another (Note [Guards] in functions/function.py)."""
    if x.size > 1:
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
    try:
        return x.home.decide(x.slot)
    except LookupError:
        raise refuse(
            "the truth of a traced value decides here, but its number is not known: the function is traced for all "
            "points at once (rz.compile(f) without arguments decides at each call), or this is the body of a loop or "
            "a branch. To choose between numbers write np.where(c, a, b); min() and max() of traced numbers are "
            "np.minimum and np.maximum; an argument that only steers can be made static: rz.function(f, "
            f"static_argnums=…). {_advice()}"
        ) from None


def known(x: Any) -> bool | None:
    """As `decided`, and None where the number is not known."""
    try:
        return x.home.decide(x.slot)
    except LookupError:
        return None


def whole_number(x: Any) -> int:
    """A traced integer as an index of a list or the end of a range, at the point: that it is this one is a guard."""
    if x.shape or x.dtype.kind not in "iub":
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    try:
        found = int(x.home.number(x.slot, True))
        decided(np.equal(x, found))
    except LookupError:
        raise refuse(
            "a traced integer cannot be an index of a list or a range where its number is not known: to index an array "
            "write np.take(a, i), for a loop rz.fori_loop(0, n, body, start), or make it static: rz.function(f, "
            "static_argnums=…)"
        ) from None
    return found


def whole_part(x: Any) -> int | None:
    """int(x) at the point: that the whole part is this one is a guard. None where the number is not known."""
    try:
        found = x.home.number(x.slot, True)
        if x.size != 1 or not np.isfinite(found).all():
            return int(found)  # Python's own error
        whole = int(np.reshape(found, ()))
        decided(np.equal(np.trunc(x.reshape(())), whole))
    except LookupError:
        return None
    return whole


def one_number(x: Any, at: tuple[Any, ...]) -> Any:
    """x.item(*at): a number of Python's, which takes the type of what it meets; a whole number or a truth value as it
    is at the point."""
    if not at and x.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    at = at[0] if at and type(at[0]) is tuple else at
    found = x.reshape(()) if not at else x.ravel()[at[0]] if len(at) == 1 else x[at]
    if found.shape:
        raise ValueError("incorrect number of indices for array")
    kind = found.dtype.kind
    return whole_number(found) if kind in "iu" else decided(found) if kind == "b" else found


def _advice() -> str:
    """What to write instead of the statement that asked, from its source where that is known."""
    frame = user_frame()
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    usual = "Write rz.cond(c, lambda: a, lambda: b) for if, rz.while_loop(condition, body, start) for while"
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return usual
    here = frame.f_lineno
    kinds = (ast.If, ast.While, ast.IfExp)
    found = [n for n in ast.walk(tree) if isinstance(n, kinds) and n.test.lineno <= here <= (n.test.end_lineno or 0)]
    if not found:
        return usual
    asked = found[-1]
    said = _loop(asked) if isinstance(asked, ast.While) else _choice(tree, asked)
    return usual if said is None else f"Instead of\n{_indented(ast.unparse(asked))}\nwrite\n{_indented(said)}\nhere"


def _indented(text: str) -> str:
    return "\n".join([f"    {line}" for line in text.splitlines()])


def _choice(tree: ast.AST, asked: ast.If | ast.IfExp) -> str | None:
    """rz.cond for one of two values: `a if c else b`, or two branches that assign to the same name, or return."""
    if isinstance(asked, ast.IfExp):
        return _cond(asked.test, asked.body, asked.orelse)
    blocks = [b for n in ast.walk(tree) for b in (getattr(n, "body", None), getattr(n, "orelse", None))]
    after = [b[b.index(asked) + 1 :] for b in blocks if isinstance(b, list) and asked in b]
    other = asked.orelse or (after[0][:1] if after else [])
    if len(asked.body) != 1 or len(other) != 1:
        return None
    match asked.body[0], other[0]:
        case ast.Return(value=ast.expr() as a), ast.Return(value=ast.expr() as b):
            return f"return {_cond(asked.test, a, b)}"
        case ast.Assign(targets=[ast.Name(id=name)], value=a), ast.Assign(targets=[ast.Name(id=same)], value=b):
            return f"{name} = {_cond(asked.test, a, b)}" if name == same and asked.orelse else None
        case _:
            return None


def _test(test: ast.expr) -> str:
    """A condition as NumPy code: `and`, `or` and `not` ask for truth values."""
    match test:
        case ast.BoolOp(op=op, values=values):
            parts = [_test(v) for v in values]
            name = "np.logical_and" if isinstance(op, ast.And) else "np.logical_or"
            return f"{name}({parts[0]}, {parts[1]})" if len(parts) == 2 else f"{name}.reduce([{', '.join(parts)}])"
        case ast.UnaryOp(op=ast.Not(), operand=x):
            return f"np.logical_not({_test(x)})"
        case _:
            return ast.unparse(test)


def _cond(test: ast.expr, a: ast.expr, b: ast.expr) -> str:
    return f"rz.cond({_test(test)}, lambda: {ast.unparse(a)}, lambda: {ast.unparse(b)})"


def _loop(asked: ast.While) -> str | None:
    """rz.while_loop with the names that the body assigns to as its state."""
    inside = [n for statement in asked.body for n in ast.walk(statement)]
    if asked.orelse or any([isinstance(n, (ast.Break, ast.Continue, ast.Return, ast.Yield)) for n in inside]):
        return None
    names = dict.fromkeys([n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)])
    if not names:
        return None
    state, body = ", ".join(names), "\n".join([_indented(ast.unparse(s)) for s in asked.body])
    one = len(names) == 1
    opened, head = (state, f"body({state})") if one else (f"({state})", "body(state)")
    test = f"lambda {state}: {_test(asked.test)}"
    test = test if one else f"lambda state: ({test})(*state)"
    first = "" if one else f"    {state} = state\n"
    return f"def {head}:\n{first}{body}\n    return {state}\n{state} = rz.while_loop({test}, body, {opened})"
