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
    names = [
        *[f"c{i}_" for i in range(n)],
        *[f"k{i}_" for i in range(k)],
        *[f"x{i}_" for i in range(len(shapes) - n - k)],
    ]
    kinds = [
        float if not shape and (x.kind == FLOAT or x.kind is float) else FLOAT if x.kind is float else x.kind
        for x, shape in zip(xs, shapes, strict=True)
    ]
    if any([kind is None for kind in kinds]):
        return None
    code = type_checked(op, names, shapes, kinds, not late)
    if code is None:
        return None
    looked: list[str] = []
    if code.born:
        places = None if op.keep else reached_outputs(code.program, code.born, code.program.inputs[n : n + k])
        if places is None:
            return loop_function(name, op, xs, read, late=False)
        looked = [names[n + j] if j < k else f"y{j - k}_" for j in places if j < k or j in read]
    outs = [code.outputs[j] for j in range(len(code.outputs))]
    texts = [v.text if not v.repeated else f"{code.wide}({v.text}, {v.shape})" for v in outs]
    space = code.names | {"empty_": buffers.empty, "as_array_": as_array}
    stacked = [FLOAT if v.kind is float else v.kind for v in outs[k:]]
    kept = [FLOAT if kind is float else kind for kind in kinds[n : n + k]] if op.keep else []
    for i, kind in enumerate([*stacked, *kept]):
        space[f"kind{i}_"] = kind
    results = op.result(())[k:]
    lines = [f"given_ = {', '.join(names)}"] if looked else []
    lines += [
        f"{c} = as_array_({c})" for c, shape in zip(names[n:], shapes[n:], strict=True) if shape or c.startswith("x")
    ]
    lines += [
        f"{c} = float({c})"
        for c, shape, kind in zip(names[n : n + k], shapes[n:], kinds[n:], strict=False)
        if not shape and kind is float
    ]
    lines += [f"y{i}_ = empty_({shape}, kind{i}_)" for i, shape in enumerate(results) if k + i in read]
    lines.append(f"for t_ in {f'range({op.length - 1}, -1, -1)' if op.reverse else f'range({op.length})'}:")
    inner: list[str] = []
    for x, shape, kind in zip(names[n + k :], shapes[n + k :], kinds[n + k :], strict=True):
        inner.append(f"{x}t = {x}[t_]" if shape else f"{x}t = {x}.item(t_)" if kind is float else f"{x}t = {x}[t_]")
    inner += code.lines
    inner += [
        f"y{i}_[t_] = {text}"
        for i, text in enumerate([*texts[k:], *(names[n : n + k] if op.keep else [])])
        if k + i in read
    ]
    if k:
        inner.append(f"{', '.join(names[n : n + k])}, = {', '.join(texts[:k])},")
    lines += [f"    {line}" for line in inner or ["pass"]]
    if looked:
        space |= {
            "has_nan_": has_nan,
            "exact_": cache(lambda: cast(Found, loop_function(name, op, xs, read, late=False))[1]),
        }
        lines += [f"if {' or '.join([f'has_nan_({x})' for x in looked])}:", "    return exact_()(*given_)"]
    given = ", ".join(names)
    ends = ", ".join([*names[n : n + k], *[f"y{i}_" if k + i in read else "None" for i in range(len(results))]])
    source = "\n".join([f"def {name}({given}):", *[f"    {line}" for line in [*lines, f"return ({ends},)"]]])
    return source, defined(source, name, space), (*kinds[n : n + k], *stacked, *kept), code


def type_checked(op: Loop, names: list[str], shapes: Sequence[Any], kinds: Sequence[Any], look: bool) -> Arrays | None:
    """The code of the body, where each carry comes out as it went in."""
    n, k = op.consts, op.carries
    inputs = [
        ArrayValue(f"{x}t" if i >= n + k else x, shape, kind)
        for i, (x, shape, kind) in enumerate(zip(names, shapes, kinds, strict=True))
    ]
    code = Arrays(op.body, inputs, look)
    same = [
        v.kind is kind
        or (v.kind is not None and v.kind is not float and kind is not float and v.kind == kind)
        or (v.repeated and kind == FLOAT)
        for v, kind in zip(code.outputs[:k], kinds[n:], strict=False)
    ]
    return code if all(same) and not any([v.kind is None for v in code.outputs]) else None


def as_array(x: Any) -> Any:
    """What a step of the interpreter gives, as an array."""
    return np.asarray(dense(x))
