"""Branches and loops of PyTorch's, and parts of graphs."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...functions.control.branches import stop_gradient, switch
from ...functions.control.loops import loop, while_loop
from ..lax.lax_registry import is_traced
from .aten_registry import aten
from .aten_shapes import whole


@aten("`rz.switch`", "cond")
def _cond(e: Any, which: Any, yes: Any, no: Any, xs: Sequence[Any]) -> Any:
    if not is_traced(which):
        return e.reader.read(yes if which else no, list(xs))
    branches = [lambda *given, g=g: tuple(map(whole, e.reader.read(g, list(given)))) for g in (no, yes)]
    return list(switch(which.astype(int), branches, *xs))


@aten("`rz.while_loop`", "while_loop")
def _while(e: Any, test: Any, body: Any, start: Sequence[Any], more: Sequence[Any]) -> Any:
    return list(
        while_loop(
            lambda c: e.reader.read(test, [*c, *more])[0],
            lambda c: tuple(map(whole, e.reader.read(body, [*c, *more]))),
            tuple(map(whole, start)),
        )
    )


@aten("`rz.loop`", "scan")
def _scan(e: Any, step: Any, start: Sequence[Any], xs: Sequence[Any], more: Sequence[Any]) -> Any:
    count = len(start)

    def body(carry: Any, row: Any) -> Any:
        found = list(map(whole, e.reader.read(step, [*carry, *row, *more])))
        return tuple(found[:count]), tuple(found[count:])

    rows = tuple(map(whole, xs))
    carry, ys = loop(body, tuple(map(whole, start)), rows, length=np.shape(rows[0])[0])
    return [*carry, *ys]


@aten("its steps, without a derivative inside `torch.no_grad`", "wrap_with_set_grad_enabled")
def _grad_mode(e: Any, enabled: bool, inner: Any, *xs: Any) -> Any:
    found = e.reader.read(inner, list(xs))
    return found if enabled else [stop_gradient(x) if is_traced(x) else x for x in found]
