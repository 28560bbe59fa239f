"""Calls, loops, branches, and functions with a derivative of their own."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special as sp

from ...calculus.block_rules import linear_steps
from ...calculus.derive import derive_program, transpose_linear
from ...calculus.linearity import moves_linearly
from ...errors import LinearityError, TraceError
from ...functions.control.bodies import Body
from ...functions.control.branches import checkpoint, switch
from ...functions.control.loops import loop, while_loop
from ...programs.program import Program, outputs
from ...programs.sub_programs import Loop, OwnDerivative
from ...tracing.traced import innermost
from ..jaxpr_reading import bound, call_with_rule, precision, source_line
from .lax_registry import REFUSED, is_traced, lax

REFUSED["shard_map"] = (
    "it says where arrays are, which riesz decides when a function is compiled; import the function inside it, and "
    "give rz.compile a mesh"
)
REFUSED["xla_pmap"] = "write jax.vmap, and give rz.compile a mesh"
REFUSED |= dict.fromkeys(
    ("pure_callback", "io_callback"),
    "it calls Python; give that function a derivative with rz.custom_derivative, or register a rule with rz.jax_rule",
)


@lax("the function inside, written out; a block where it is called often", "pjit", "jit", "closed_call", "core_call")
def _call(reader: Any, e: Any, *args: Any) -> Any:
    return reader.called(e.params.get("jaxpr", e.params.get("call_jaxpr")), args)


@lax("the function inside; `jax.vmap` has taken the rule where it meets one", "custom_vmap_call")
def _custom_vmap(reader: Any, e: Any, *args: Any) -> Any:
    return reader.called(e.params["call"], args)


@lax("nothing", "debug_callback", "debug_print")
def _nothing(reader: Any, e: Any, *args: Any) -> Any:
    return []


@lax("`rz.checkpoint`", "checkpoint", "remat", "remat2")
def _remat(reader: Any, e: Any, *args: Any) -> Any:
    places = [i for i, x in enumerate(args) if is_traced(x)]

    def inside(*xs: Any) -> Any:
        given = list(args)
        for i, x in zip(places, xs, strict=True):
            given[i] = x
        return tuple(reader.closed(e.params["jaxpr"], given))

    return list(checkpoint(inside)(*[args[i] for i in places]))


@lax("`rz.cond`, `rz.switch`", "cond")
def _cond(reader: Any, e: Any, index: Any, *args: Any) -> Any:
    branches = e.params["branches"]
    if not is_traced(index):
        return reader.closed(branches[min(max(int(index), 0), len(branches) - 1)], args)
    index = index.astype(int) if index.dtype.kind == "b" else index
    functions = [lambda *xs, b=b: tuple([_float(x) for x in reader.closed(b, xs)]) for b in branches]
    return list(switch(index, functions, *args))


def _float(x: Any) -> Any:
    return x if is_traced(x) else np.asarray(x)


def _counters(jaxpr: Any, consts: int, init: Sequence[Any]) -> dict[int, int]:
    """Carries that only count: their numbers, and what is added in each round."""
    from jax.extend.core import Literal

    found: dict[int, int] = {}
    for k, start in enumerate(init):
        v, out = jaxpr.invars[consts + k], jaxpr.outvars[k]
        if is_traced(start) or np.ndim(start) or np.dtype(v.aval.dtype).kind not in "iu":
            continue
        made = next((e for e in jaxpr.eqns if out in e.outvars), None)
        if made is None or made.primitive.name != "add":
            continue
        one = [x for x in made.invars if isinstance(x, Literal)]
        if len(one) == 1 and any([x is v for x in made.invars]):
            found[k] = int(one[0].val)
    return found


@lax("`rz.loop`; counters are arrays of numbers", "scan")
def _scan(reader: Any, e: Any, *args: Any) -> Any:
    p = e.params
    consts, count = p["num_consts"], p["num_carry"]
    return rounds(
        *(reader, p["jaxpr"], args[:consts], args[consts : consts + count], args[consts + count :]),
        *(p["length"], p["reverse"]),
    )


def rounds(
    reader: Any, jaxpr: Any, consts: Any, init: Sequence[Any], xs: Sequence[Any], length: int, reverse: bool
) -> list[Any]:
    """A loop of so many rounds; carries that only count are known beforehand."""
    count = len(init)
    counts = _counters(jaxpr.jaxpr, len(consts), init)
    rest = [k for k in range(count) if k not in counts]
    steps = np.arange(length)[:: -1 if reverse else 1]
    rows = [int(init[k]) + by * steps for k, by in counts.items()]

    def body(carry: Any, row: Any) -> Any:
        whole: list[Any] = [None] * count
        for k, x in zip(rest, carry, strict=True):
            whole[k] = x
        numbers, others = (row[: len(counts)], row[len(counts) :]) if row is not None else ((), ())
        for k, x in zip(counts, numbers, strict=True):
            whole[k] = x
        found = reader.closed(jaxpr, [*consts, *whole, *others])
        return tuple([_float(found[k]) for k in rest]), tuple([_float(x) for x in found[count:]])

    stacked = (*rows, *[_float(x) for x in xs])
    carry, ys = loop(body, tuple([_float(init[k]) for k in rest]), stacked or None, length=length, reverse=reverse)
    last: list[Any] = [None] * count
    for k, x in zip(rest, carry, strict=True):
        last[k] = x
    for k, by in counts.items():
        last[k] = np.asarray(int(init[k]) + by * length, np.asarray(init[k]).dtype)
    return [*last, *ys]


@lax("`rz.loop` where the number of rounds is known, else `rz.while_loop`", "while")
def _while(reader: Any, e: Any, *args: Any) -> Any:
    p = e.params
    a, b = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts, init = args[:a], args[a : a + b], list(args[a + b :])
    length = _known_length(p, cond_consts, init)
    if length is not None:
        return rounds(reader, p["body_jaxpr"], body_consts, init, (), length, False)
    lanes = p["cond_jaxpr"].out_avals[0].shape  # of jax.vmap: each goes on as long as its own condition holds

    def going(c: Any) -> Any:
        return reader.closed(p["cond_jaxpr"], [*cond_consts, *c])[0]

    def body(c: Any) -> Any:
        found = [_float(x) for x in reader.closed(p["body_jaxpr"], [*body_consts, *c])]
        if lanes:
            on = going(c)
            wide = [np.reshape(on, (*lanes, *(1,) * (np.ndim(x) - len(lanes)))) for x in c]
            found = [np.where(w, x, old) for w, x, old in zip(wide, found, c, strict=True)]
        return tuple(found)

    start = tuple([_float(x) for x in init])
    return list(while_loop((lambda c: np.any(going(c))) if lanes else going, body, start))


def _known_length(p: Any, consts: Sequence[Any], init: Sequence[Any]) -> int | None:
    """How many rounds a loop has that counts up to a number; None for others."""
    from jax.extend.core import Literal

    counts = _counters(p["body_jaxpr"].jaxpr, p["body_nconsts"], init)
    test, outer = p["cond_jaxpr"].jaxpr, p["cond_nconsts"]
    if len(test.eqns) != 1 or test.eqns[0].primitive.name != "lt" or test.outvars[0] is not test.eqns[0].outvars[0]:
        return None
    left, right = test.eqns[0].invars
    k = next((k for k in counts if left is test.invars[outer + k]), None)
    if k is None or counts[k] <= 0:
        return None
    if isinstance(right, Literal):
        end: Any = right.val
    else:
        at = next((i for i, v in enumerate(test.invars) if v is right), None)
        fixed = {v: i for i, v in enumerate(p["body_jaxpr"].jaxpr.invars[p["body_nconsts"] :])}
        if at is None:
            return None
        if at < outer:
            end = consts[at]
        else:  # the bound is carried along unchanged
            out = p["body_jaxpr"].jaxpr.outvars[at - outer]
            if isinstance(out, Literal) or fixed.get(out) != at - outer:
                return None
            end = init[at - outer]
    return None if is_traced(end) else max(0, -((int(init[k]) - int(end)) // counts[k]))


_KNOWN: dict[str, Any] = {
    "logaddexp": (np.logaddexp, 2),
    "logaddexp2": (np.logaddexp2, 2),
    "xlogy": (sp.xlogy, 2),
    "xlog1py": (sp.xlog1py, 2),
    "_det": (np.linalg.det, 1),
    "_slogdet_lu": (np.linalg.slogdet, 1),
    "_slogdet_qr": (np.linalg.slogdet, 1),
}
"""Functions of JAX's library whose derivative of their own is the derivative here too."""


def _library_function(e: Any) -> Any:
    """The counterpart of a function of JAX's own library; None for others."""
    import jax

    info = getattr(e.params["call_jaxpr"].jaxpr, "debug_info", None)
    said = str(getattr(info, "func_src_info", "") or "")
    name, _, place = said.partition(" at ")
    found, count = _KNOWN.get(name, (None, 0))
    ours = place.startswith(os.path.dirname(jax.__file__) + os.sep)
    return found if ours and len(e.invars) - e.params["num_consts"] == count else None


@lax("its steps with its own rule", "custom_jvp_call")
def _custom_jvp(reader: Any, e: Any, *args: Any) -> Any:
    known = _library_function(e)
    if known is not None:
        found = known(*args[e.params["num_consts"] :])
        return list(found) if isinstance(found, tuple) else [found]
    return with_rule(reader, e, args, by_tangents, e.params["call_jaxpr"])


@lax("its steps with its own rule, transposed", "custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom_vjp(reader: Any, e: Any, *args: Any) -> Any:
    return with_rule(reader, e, args, _by_cotangents, e.params.get("call_jaxpr") or e.params["fun_jaxpr"])


def with_rule(
    reader: Any, e: Any, args: Sequence[Any], rule_of: Any, code: Any, inputs: Sequence[Any] | None = None
) -> list[Any]:
    """A function with a derivative of its own: a step of its value whose derivative is the rule. `code` computes it, of
    all arguments or of some `inputs` among them."""
    order = None if inputs is None else [next(k for k, a in enumerate(args) if a is x) for x in inputs]
    places = [i for i, x in enumerate(args) if is_traced(x)]
    xs, kinds = [args[i] for i in places], [(np.shape(args[i]), np.dtype(args[i].dtype), False) for i in places]
    plain = [None if is_traced(x) else x for x in args]

    def whole(given: Sequence[Any]) -> list[Any]:
        found = list(plain)
        for i, x in zip(places, given, strict=True):
            found[i] = x
        return found

    def value_of(*given: Any) -> Any:
        found = whole(given)
        return tuple(map(_float, reader.closed(code, found if order is None else [found[k] for k in order])))

    value = Body(value_of, tuple(xs), "a function with a derivative of its own")

    def rule() -> Program:
        with precision(kinds):
            return rule_of(reader, e, whole, [np.zeros(shape, dtype) for shape, dtype, _ in kinds])

    home = innermost(xs)
    assert home is not None
    return call_with_rule(home, value, OwnDerivative(rule), xs)


def moving_places(things: Sequence[Any]) -> list[int]:
    """Those of floats."""
    return [i for i, x in enumerate(things) if np.dtype(getattr(x, "dtype", float)).kind == "f"]


def _in_jax(e: Any, whole: Any, xs: Sequence[Any], moving: Sequence[int]) -> Any:
    """The equation as a function of the arrays that move, for JAX."""

    def function(*moved: Any) -> Any:
        given = list(xs)
        for i, x in zip(moving, moved, strict=True):
            given[i] = x
        found = bound(e, whole(given))
        found = found if e.primitive.multiple_results else [found]
        return [found[i] for i in moving_places([v.aval for v in e.outvars])]

    return function


def _traced_rule(reader: Any, jaxpr: Any, args: Sequence[Any]) -> Program:
    """A jaxpr as a program of its arguments."""
    body = Body(lambda *given: tuple(map(_float, reader.closed(jaxpr, given))), tuple(args), "a rule of JAX's")
    return body.program(())


def by_tangents(reader: Any, e: Any, whole: Any, xs: Sequence[Any]) -> Program:
    """(xs, dxs) ↦ dys as jax.jvp has it."""
    import jax

    moving = moving_places(xs)

    def tangents(given: Sequence[Any], dxs: Sequence[Any]) -> Any:
        return jax.jvp(_in_jax(e, whole, given, moving), [given[i] for i in moving], list(dxs))[1]

    dxs = [xs[i] for i in moving]
    inner = _traced_rule(reader, jax.make_jaxpr(tangents)(list(xs), dxs), [*xs, *dxs])
    return completed(inner, e, xs, moving)


def _by_cotangents(reader: Any, e: Any, whole: Any, xs: Sequence[Any]) -> Program:
    """(xs, dxs) ↦ dys, the transpose of what jax.vjp has."""
    import jax

    moving = moving_places(xs)

    def cotangents(given: Sequence[Any], dys: Sequence[Any]) -> Any:
        return list(jax.vjp(_in_jax(e, whole, given, moving), *[given[i] for i in moving])[1](list(dys)))

    dys = [np.zeros(v.aval.shape, v.aval.dtype) for v in e.outvars if np.dtype(v.aval.dtype).kind == "f"]
    back = _traced_rule(reader, jax.make_jaxpr(cotangents)(list(xs), dys), [*xs, *dys])
    return completed(_transposed(back, len(xs), e), e, xs, moving)


def _transposed(program: Program, still: int, e: Any) -> Program:
    """The transpose of a rule that is linear in its inputs after the first."""
    try:
        flags = program.dependent(program.inputs[still:])
        if not any([isinstance(op, Loop) and moves for op, moves in zip(program.ops, flags, strict=True)]):
            return transpose_linear(linear_steps(program, still), still)
        moving = [i >= still for i in range(len(program.inputs))]
        moves_linearly(program, moving)
        adjoint = derive_program(program, moving).adjoint  # at 0: carries of a loop may be fixed and linear ones
        whole, (xs, ws) = Program(), (program.inputs[:still], program.inputs[still:])
        fixed = whole.like(xs, program)
        cotangents = whole.like(program.outputs, program)
        zeros = [whole.zeros(program.shapes[s]) for s in ws]
        whole.outputs = outputs(adjoint, whole, [*fixed, *zeros, *cotangents])
        return whole
    except LinearityError as problem:
        raise TraceError(
            f"the backward rule of jax.custom_vjp at {source_line(e)} is not linear in the cotangents ({problem}), so "
            "it is the adjoint of no derivative; clip or scale gradients after rz.grad has computed them"
        ) from None


def completed(inner: Program, e: Any, xs: Sequence[Any], moving: Sequence[int]) -> Program:
    """A rule of all arguments and results, where some of them are whole numbers."""
    program = Program()
    given = [program.input(np.shape(x)) for x in xs]
    dxs = [program.input(np.shape(x)) for x in xs]
    found = iter(outputs(inner, program, [*given, *[dxs[i] for i in moving]]))
    floats = set(moving_places([v.aval for v in e.outvars]))
    program.outputs = [next(found) if i in floats else program.zeros(v.aval.shape) for i, v in enumerate(e.outvars)]
    return program
