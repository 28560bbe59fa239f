"""Loops as NumPy source: a function with a `for` over the rounds, and a line of array code for each step of the
body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from ...programs.passes.deferring import has_nan, reached_outputs
from ...programs.sub_programs import Loop
from ...runtime import buffers
from ...runtime.generated_source import defined
from ...spaces.formal_vectors import dense
from ..source_text import inside
from .array_code import FLOAT, Arrays, ArrayValue

Found = tuple[str, Callable[..., Any], tuple[Any, ...], Arrays]


def loop_function(name: str, op: Loop, xs: Sequence[ArrayValue], read: set[int], late: bool = True) -> Found | None:
    """Source and function of a loop, the types of its results, and the code of its body; None where carries change
    their type, or have none.

    What the rounds leave behind is kept where it is `read`, and None otherwise. If `late`, guards are left out where a
    nan stays until the end: it is looked for once, and if there is one the rounds begin anew, with guards.
    """
    body, n, k = op.body, op.consts, op.carries
    shapes = [body.shapes[s] for s in body.inputs]
    letters = ["c"] * n + ["k"] * k + ["x"] * (len(shapes) - n - k)
    names = [f"{letter}{i - letters.index(letter)}_" for i, letter in enumerate(letters)]
    kinds = [
        float if not shape and (x.kind is float or x.kind == FLOAT) else _stored(x.kind)
        for x, shape in zip(xs, shapes, strict=True)
    ]
    code = None if any([kind is None for kind in kinds]) else type_checked(op, names, shapes, kinds, not late)
    if code is None:
        return None
    looked: list[str] = []
    if code.born:
        places = None if op.keep else reached_outputs(code.program, code.born, code.program.inputs[n : n + k])
        if places is None:
            return loop_function(name, op, xs, read, late=False)
        looked = [names[n + j] if j < k else f"y{j - k}_" for j in places if j < k or j in read]
    texts = [code.array(v).text for v in code.outputs]
    carries = list(zip(names[n : n + k], shapes[n : n + k], kinds[n : n + k], strict=True))
    rows = list(zip(names[n + k :], shapes[n + k :], kinds[n + k :], strict=True))
    results = op.result(())[k:]
    stacked = [*[v.kind for v in code.outputs[k:]], *[kind for _, _, kind in carries if op.keep]]
    stacked = [_stored(kind) for kind in stacked]
    written = [*texts[k:], *[c for c, _, _ in carries if op.keep]]
    kept = [i for i in range(len(results)) if k + i in read]
    space = code.names | {f"kind{i}_": kind for i, kind in enumerate(stacked)}
    space |= {"empty_": buffers.empty, "as_array_": as_array}
    lines = [f"given_ = {', '.join(names)}"] if looked else []
    lines += [f"{c} = as_array_({c})" for c, shape, _ in carries if shape]
    lines += [f"{x} = as_array_({x})" for x, _, _ in rows]
    lines += [f"{c} = float({c})" for c, shape, kind in carries if not shape and kind is float]
    lines += [f"y{i}_ = empty_({results[i]}, kind{i}_)" for i in kept]
    inner = [f"{x}t = {x}.item(t_)" if not shape and kind is float else f"{x}t = {x}[t_]" for x, shape, kind in rows]
    inner += [*code.lines, *[f"y{i}_[t_] = {written[i]}" for i in kept]]
    if k:
        inner.append(f"{', '.join(names[n : n + k])}, = {', '.join(texts[:k])},")
    times = f"{op.length - 1}, -1, -1" if op.reverse else f"{op.length}"
    lines += inside(f"for t_ in range({times}):", inner or ["pass"])
    if looked:
        exact = cache(lambda: cast(Found, loop_function(name, op, xs, read, late=False))[1])
        space |= {"has_nan_": has_nan, "exact_": exact}
        lines += [f"if {' or '.join([f'has_nan_({x})' for x in looked])}:", "    return exact_()(*given_)"]
    ends = ", ".join([*names[n : n + k], *[f"y{i}_" if i in kept else "None" for i in range(len(results))]])
    source = "\n".join(inside(f"def {name}({', '.join(names)}):", [*lines, f"return ({ends},)"]))
    return source, defined(source, name, space), (*kinds[n : n + k], *stacked), code


def _stored(kind: Any) -> Any:
    """The type of an array of such numbers."""
    return FLOAT if kind is float else kind


def type_checked(op: Loop, names: list[str], shapes: Sequence[Any], kinds: Sequence[Any], look: bool) -> Arrays | None:
    """The code of the body, where each carry comes out as it went in."""
    n, k = op.consts, op.carries
    called = [f"{x}t" if i >= n + k else x for i, x in enumerate(names)]
    code = Arrays(op.body, [ArrayValue(*value) for value in zip(called, shapes, kinds, strict=True)], look)
    same = [
        v.kind is kind
        or (v.repeated and kind == FLOAT)
        or (v.kind is not float and kind is not float and v.kind == kind)
        for v, kind in zip(code.outputs[:k], kinds[n:], strict=False)
    ]
    return code if all(same) and not any([v.kind is None for v in code.outputs]) else None


def as_array(x: Any) -> Any:
    """What a step of the interpreter gives, as an array."""
    return np.asarray(dense(x))
