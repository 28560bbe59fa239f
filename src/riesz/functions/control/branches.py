"""Control flow on traced values: one of several functions, recomputation, constants.

Outside a trace these run the Python functions they are given as they are. Inside one, a body is traced apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from ...ops.opaque import Discrete
from ...tracing.argument_trees import flatten, unflatten
from ...tracing.rules.elementwise import discrete
from ...tracing.trace import current_level, refuse
from ...tracing.traced import INT, Traced, innermost, slot_of
from ..function_types import V
from ..remade import DerivedFunction
from .bodies import Body, call_step, union

P = ParamSpec("P")


def stop_gradient(x: V) -> V:
    """x as a constant: its derivative is zero. Any tree of arrays.

    >>> import riesz as rz
    >>> rz.grad(lambda x: x * rz.stop_gradient(x))(3.0)
    3.0
    """
    leaves, tree = flatten(x)
    for i, v in enumerate(leaves):
        if type(v) is Traced:
            leaves[i] = Traced(v.home, v.home.step(Discrete(_same), (v.slot,)), v.dtype, v.weak)
    return unflatten(tree, leaves)


def _same(x: Any) -> Any:
    return x


def cond(pred: Any, true_fun: Callable[..., V], false_fun: Callable[..., V], *operands: Any) -> V:
    """true_fun(*operands) where pred holds, false_fun(*operands) otherwise; only one of the two is computed.

    >>> import numpy as np, riesz as rz
    >>> f = lambda x: rz.cond(x > 1.0, lambda x: x * x, lambda x: 3.0 * x, x)
    >>> rz.grad(f)(2.0), rz.grad(f)(0.5)
    (4.0, 3.0)
    """
    if type(pred) is not Traced:
        return (true_fun if pred else false_fun)(*operands)
    if pred.shape:
        choice = "To choose element by element write np.where(c, a, b)"
        raise refuse(f"rz.cond needs one truth value; got an array of shape {pred.shape}. {choice}")
    truth = pred if pred.dtype.kind == "b" else discrete(np.not_equal, pred, 0.0)
    index = Traced(pred.home, pred.home.step(Discrete(_number), (truth.slot,)), INT)
    return switch(index, (true_fun, false_fun), *operands)


def _number(pred: Any) -> Any:
    return np.where(pred, 0, 1)


def switch(index: Any, branches: Sequence[Callable[..., V]], *operands: Any) -> V:
    """branches[index](*operands), for an index that may be traced; only one is computed. An index outside counts as the
    nearest inside.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x, i: rz.switch(i, [lambda x: x, lambda x: x**2], x))(3.0, np.array(1))
    6.0
    """
    if type(index) is not Traced:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    bodies = [Body(f, operands, f"branch {i}", branch=True) for i, f in enumerate(branches)]
    first = bodies[0]
    for body in bodies[1:]:
        if body.tree != first.tree or [a.shape for a in body.results] != [a.shape for a in first.results]:
            shapes = [[a.shape for a in b.results] for b in (first, body)]
            different = f"arrays of shapes {shapes[0]} and {shapes[1]}; both must give the same structure"
            raise refuse(f"the branches of rz.cond give different things: {different}")
    kinds = [np.result_type(*[b.results[i].dtype for b in bodies]) for i in range(len(first.results))]
    home = innermost((index, *first.given.arrays, *union(*bodies)))
    assert home is not None
    at = discrete(np.clip, index, 0, len(branches) - 1, dtype=INT) if len(branches) != 2 else index
    return call_step(home, bodies, kinds, (slot_of(home, at, INT),))


def checkpoint(f: Callable[P, V]) -> Callable[P, V]:
    """The same function, whose derivative keeps the arguments only and computes what is inside again: less memory for
    more time.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x: np.sum(rz.checkpoint(np.sin)(x)))(np.array([0.0]))
    array([1.])
    """
    return Again(f)


class Again(DerivedFunction):
    """What `checkpoint` gives."""

    what = "checkpoint"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        f = self.function
        if not current_level():
            return f(*args, **kwargs)
        body = Body(lambda args, kwargs: f(*args, **kwargs), (args, kwargs), getattr(f, "__name__", "f"), always=True)
        home = innermost((*body.given.arrays, *union(body)))
        return f(*args, **kwargs) if home is None else call_step(home, [body], [a.dtype for a in body.results])
