"""Functions mapped over an axis: vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ...calculus.batching import lifted, mapped
from ...calculus.domain_check import guard
from ...errors import SpaceError
from ...ops.number_domains import NUMBERS
from ...programs.program import Program
from ...runtime import later
from ...spaces.formal_vectors import dense
from ...spaces.layout import container
from ...tracing.argument_trees import LEAF, Container, Tree, flatten, numbers_of, unflatten
from ...tracing.rules.rearranging import moveaxis
from ...tracing.trace import refuse
from ...tracing.traced import BOOL, FLOAT, Traced, slot_of, tidy
from ..function import as_function
from ..remade import DerivedFunction
from ..traces.records import Aval, Record, home_of, owned
from .bodies import element


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """f^X: f at every index of an axis of its arguments, as array operations over that axis; what f closes over is the
    same everywhere.

    `in_axes` is the axis of each argument (None: not mapped), one number for all or one per argument, or a tree of
    them; `out_axes` that of the results. Fits over an axis, `rz.vmap(rz.levenberg_marquardt, (None, 0, 0))`, are damped
    and stopped each by itself.

    >>> import numpy as np, riesz as rz
    >>> rz.vmap(lambda x: x @ x)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([ 5., 25.])
    """
    over_an_axis = getattr(f, "over_an_axis", None)  # of fits
    return MappedFunction(f, in_axes, out_axes) if over_an_axis is None else over_an_axis(in_axes, out_axes)


class MappedFunction(DerivedFunction):
    """What `vmap` gives."""

    what = "vmap"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        in_axes, out_axes = self.options
        names = sorted(kwargs)
        axes = [*_axes(in_axes, args), *[_spread(0, flatten(kwargs[k])[1]) for k in names]]
        elements: list[Any] = []
        arrays: list[Any] = []
        flags: list[bool] = []
        sizes: set[int] = set()
        for value, wanted in zip((*args, *[kwargs[k] for k in names]), axes, strict=True):
            leaves, tree = flatten(value)
            for i, (x, axis) in enumerate(zip(leaves, wanted, strict=True)):
                moves = axis is not None and _is_array(x)
                if moves:
                    x = np.moveaxis(tidy(x), axis, 0) if axis else tidy(x)
                    sizes.add(x.shape[0])
                    leaves[i] = element(x)
                if moves or _is_array(x) or isinstance(x, (float, np.floating)):
                    arrays.append(x)
                    flags.append(moves)
            elements.append(unflatten(tree, leaves))
        if not sizes:
            raise SpaceError("rz.vmap: no argument is mapped; give in_axes")
        if len(sizes) > 1:
            raise SpaceError(f"rz.vmap maps over one axis; the arguments have axes of lengths {sorted(sizes)}")
        function = as_function(self.function)
        given = function.given(tuple(elements[: len(args)]), dict(zip(names, elements[len(args) :], strict=True)))
        return _mapped(function.record(given), arrays, flags, sizes.pop(), out_axes)


def _is_array(x: Any) -> bool:
    return type(x) is Traced or isinstance(x, np.ndarray) or (hasattr(type(x), "__array__") and np.ndim(x) > 0)


def _axes(in_axes: Any, args: tuple[Any, ...]) -> list[list[Any]]:
    given = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    if len(given) != len(args):
        raise SpaceError(f"rz.vmap: in_axes={in_axes!r} names {len(given)} arguments, but {len(args)} were given")
    return [_spread(axis, flatten(a)[1], a) for axis, a in zip(given, args, strict=True)]


def _spread(axis: Any, tree: Tree, value: Any = None) -> list[Any]:
    """An axis for each leaf of an argument, from one axis or a tree of them."""
    if axis is None or isinstance(axis, int):
        return [axis] * tree.count(LEAF)
    parts, others = container(axis), container(value)
    if parts is None or others is None or len(parts[1]) != len(others[1]):
        raise SpaceError(f"rz.vmap: in_axes {axis!r} does not fit the structure of its argument")
    return [a for part, x in zip(parts[1], others[1], strict=True) for a in _spread(part, flatten(x)[1], x)]


def _mapped(record: Record, arrays: list[Any], flags: list[bool], n: int, out_axes: Any) -> Any:
    home, program = home_of(record, arrays), record.program
    if record.guards is not None:
        _same_everywhere(record, arrays, flags, n)
    every = [*flags, *[False] * len(record.captured)]
    if home is None:
        given = numbers_of([*arrays, *record.captured])
        found: list[Any] | None = later.native_mapped(program, every, n, given)
        if found is None:
            found = [np.asarray(dense(x)) for x in mapped(program, NUMBERS, given, every, n)]
        guard(lambda: lifted(program, every, n), given, found)
        rows = [Aval((n, *a.shape), a.dtype, False) for a in record.outputs]
        found = owned(found, rows, record.held, [*arrays, *given])
    else:
        slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in (*arrays, *record.captured)]
        results = zip(mapped(program, home, slots, every, n), record.outputs, strict=True)
        found = [Traced(home, s, a.dtype) for s, a in results]
    if out_axes is None:
        moving = program.dependent([s for s, moves in zip(program.inputs, every, strict=True) if moves])
        if any([moving[s] for s in program.outputs]):
            raise SpaceError("rz.vmap: out_axes=None is for results that are the same at every index; this one is not")
        return record.wrap([x[0] for x in found])
    result = record.wrap(found)
    leaves, tree = flatten(result)
    one = isinstance(out_axes, tuple) and not isinstance(result, tuple)
    wanted = _spread(cast(Any, out_axes)[0] if one else out_axes, tree, result)
    return unflatten(tree, [_back(x, axis) for x, axis in zip(leaves, wanted, strict=True)])


def _same_everywhere(record: Record, arrays: list[Any], flags: list[bool], n: int) -> None:
    """An error where a condition that the function decides by has other answers at other indices."""
    again = Record(record.name, cast(Program, record.guards), record.captured, record.avals, [], record.tree)
    again.results = [Aval((), BOOL, False)] * len(record.answers)
    again.tree = (*(LEAF,) * len(record.answers), Container(len(record.answers), None))
    for found, wanted in zip(_mapped(again, arrays, flags, n, 0), record.answers, strict=True):
        if not np.all(found == wanted):
            raise refuse(
                f"rz.vmap: a condition in {record.name} holds at some indices and not at others, so if and while "
                "cannot decide by it; write rz.cond(c, lambda: a, lambda: b), np.where(c, a, b) or rz.while_loop there"
            )


def _back(x: Any, axis: Any) -> Any:
    """A result with its first axis in another place."""
    if not axis or not _is_array(x):
        return x
    return moveaxis(x, 0, axis) if type(x) is Traced else np.moveaxis(x, 0, axis)
