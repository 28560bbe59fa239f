"""A function at a point, whatever it was written in: what `grad`, `jacobian`, … need of it.

A `TermPoint` is a combinator at a value; a `Point` a Python function at arguments, differentiated in some of them. Both have a domain, a codomain,
`affine()` (value and linear program, over numbers), `gradient()` (the program of ∇f), `source()` (the program of f') and `home`: the innermost trace
among the leaves, None where all are numbers. With a home, `value()` and `gradient_value()` write into it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ..calculus.derive import Derivative, affine_numbers, affine_program, derive_program, lower, one, swept
from ..calculus.products import metric
from ..errors import SpaceError, VectorError
from ..layout import INVERSE, describe, hint
from ..maps.linear_map import as_element
from ..maps.sources import Source
from ..programs.fusing import in_order
from ..programs.program import Constant, Program, outputs
from ..spaces import Copower, R, Space, direct_sum, real_space, space_of
from ..terms.core import Arrow, Term
from ..terms.open import fit
from .functions import Aval, Function, Given, Record, Static, as_function, evaluated, home_of, innermost, numbers_of, result_space, written
from .symbolic import any_traced, fixed, opened, present, traced_space
from .symbolic import written as written_at
from .traced import FLOAT, Trace
from .trees import LEAF, NOTHING, Node, Tree, tree_space, unflatten


class TermPoint:
    """A combinator at a value."""

    def __init__(self, f: Arrow, args: tuple[Any, ...], space: Space | None) -> None:
        value = args[0] if len(args) == 1 else tuple(args)
        traced = any_traced(value)
        if space is None:
            space = f.domain if isinstance(f, Term) else traced_space(value) if traced else space_of(value)
        self.term = fit(f, space)
        self.domain: Space = self.term.domain
        self.codomain: Space = self.term.codomain
        element = as_element(args, self.domain)
        self.leaves = [x if _floats(x) else x * 1.0 for x in opened(self.domain, element)] if traced else self.domain.open(element)
        self.home = innermost(self.leaves) if traced else None
        self.moving = None
        self.name = str(self.term)

    @property
    def gradient_dtype(self) -> Any:
        """float32 where all of the point is."""
        single = [getattr(x, "dtype", None) == np.float32 for x in self.leaves]
        return np.dtype(np.float32 if single and all(single) else float)

    @property
    def dtype(self) -> Any:
        """float32 where all of the point and of the constants is."""
        if self.gradient_dtype.itemsize == 8:
            return FLOAT
        held = [op.value for op in lower(self.term).ops if type(op) is Constant]
        return np.result_type(np.float32, *[x.dtype for x in held if isinstance(x, np.ndarray)])

    def settle(self) -> None:
        """A combinator's numbers are its own."""

    @property
    def inputs(self) -> list[Any]:
        """What the program is run on."""
        return self.leaves

    def affine(self) -> tuple[list[Any], Program]:
        """f^[1] over numbers."""
        return affine_numbers(self.term, self.leaves)

    def program(self) -> Program:
        """f as a program."""
        return lower(self.term)

    def wrap(self, values: list[Any]) -> Any:
        """The value f(x)."""
        if self.home is not None:
            return present(self.codomain, values)
        return self.codomain.wrap(values, [id(x) for x in self.leaves])

    def value(self) -> list[Any]:
        """f(x), in the trace."""
        return written_at(self.program(), self.leaves, [], self.dtype)

    def gradient_value(self) -> Any:
        """∇f(x), in the trace."""
        return present(self.domain, written_at(self.gradient(), self.leaves, [], self.gradient_dtype))

    def gradient(self) -> Program:
        """∇f as a program."""
        return gradient_program(lower(self.term), self.domain, self.codomain, self.name)

    def source(self) -> Source:
        """f' as a program of the point and a vector."""
        return self.derived_from(lower(self.term))

    def derived_from(self, program: Program) -> Source:
        """The derivative of a program at this point."""
        return Source(derive_program(program).derivative, tuple(self.leaves) if self.home is None else fixed(self.leaves))


def _floats(x: Any) -> bool:
    return isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"


def gradient_program(program: Program, domain: Space, codomain: Space, name: str, moving: Sequence[bool] | None = None) -> Program:
    """∇f as a program, for a function into ℝ: the adjoint program at dy = 1, raised by the domain's inner product."""
    into_reals(codomain, name)
    return at_one(derive_program(program, moving), domain)


def into_reals(codomain: Space, name: str) -> None:
    """Gradients are of functions into ℝ; an array that holds one number, of shape (1,) or (1, 1), is that number."""
    if codomain is R or (codomain.dim == 1 and codomain.plain and isinstance(codomain, Copower) and codomain.base is R):
        return
    raise SpaceError(f"a gradient needs a function into ℝ; {name} ends in {codomain} (jacobian takes any codomain, np.sum makes one number)")


def at_one(parts: Derivative, domain: Space) -> Program:
    """x ↦ f'(x)*(1)."""
    fixed = Program()
    adjoint = parts.adjoint
    xs = [fixed.input(adjoint.shapes[s]) for s in adjoint.inputs[:-1]]
    slots = outputs(adjoint, fixed, [*xs, fixed.const(one(adjoint.shapes[adjoint.inputs[-1]]))])
    return fixed.prune(xs, metric(slots, domain, INVERSE, fixed))


class Point:
    """A Python function at arguments: differentiated in those numbered by `argnums` (None: all that hold floats)."""

    def __init__(
        self,
        f: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Any,
        space: Space | None = None,
        has_aux: bool = False,
        what: str = "a derivative",
    ) -> None:
        given = f.given(args, kwargs)
        self.given = given
        self.function = f.function
        self.name = f.name
        chosen = _chosen(given, argnums, len(args), f.name)
        for i in chosen:
            _differentiable(given, i, given.owners[i], f.name)
        self.record: Record = f.record(given)
        self.leaves: list[Any] = given.arrays
        self.owners: list[list[int]] = given.owners
        self.single = not isinstance(argnums, (tuple, list)) and (argnums is not None or len(chosen) == 1)
        self.trees = [given.trees[i] for i in chosen]
        self.avals = [given.avals[k] for i in chosen for k in given.owners[i]]
        if any([i > j for i, j in pairwise(chosen)]):
            self._reorder([k for i in chosen for k in given.owners[i]])
        self.owned = [self.owners[i] for i in chosen]
        flags = [False] * (len(self.leaves) + len(self.record.captured))
        for owned in self.owned:
            for k in owned:
                flags[k] = True
        self.moving = flags
        spaces = [tree_space(t, [real_space(self.record.avals[k].shape) for k in o]) for t, o in zip(self.trees, self.owned, strict=True)]
        natural = spaces[0] if self.single else direct_sum(*spaces)
        self.domain = _fitting(natural, space)
        self.main, self.more, self.main_tree, self.aux_tree = _aux(self.record, has_aux)
        self.has_aux = has_aux
        shown = Record(f.name, self.record.program, [], [], self.record.results[: self.main], self.main_tree)
        self.codomain = result_space(shown, what)
        self.home: Trace | None = home_of(self.record, self.leaves)

    def _reorder(self, moving: list[int]) -> None:
        """argnums=(1, 0): the leaves differentiated in come in the order asked for."""
        order = list(range(len(self.leaves)))
        for at, k in zip(sorted(moving), moving, strict=True):
            order[at] = k
        self.record = self.record.reordered(tuple(order))
        self.leaves = [self.leaves[k] for k in order]
        where = {k: at for at, k in enumerate(order)}
        self.owners = [[where[k] for k in owned] for owned in self.owners]

    def program(self) -> Program:
        """f as a program."""
        return self.record.program

    def settle(self) -> None:
        """From now on with the numbers that arrays from outside have now: a map is made, and they may change later."""
        if self.record.captured:
            self.record, self.moving = self.record.settled(), self.moving[: len(self.leaves)]

    @property
    def inputs(self) -> list[Any]:
        """What the program is run on: the array leaves of the arguments, and arrays from outside."""
        return numbers_of([*self.leaves, *self.record.captured])

    @property
    def _plain(self) -> Program:
        """The program without what is beside the value."""
        program = self.record.program
        return program if self.main == len(program.outputs) else program.prune(program.inputs, program.outputs[: self.main])

    def affine(self, keep: bool = True) -> tuple[list[Any], Program]:
        """f^[1] over numbers; the values include the auxiliary ones. Without `keep` the linear program is used at once."""
        values, tape = affine_program(in_order(self.record.program), self.inputs, self.moving, keep=keep)
        tape.outputs = tape.outputs[: self.main]
        return values, tape

    def swept(self) -> tuple[list[Any], list[Any]] | None:
        """f(x) and f'(x)*(1) in two sweeps, for most programs; None for others."""
        return swept(in_order(self.record.program), self.inputs, self.moving)

    def gradient(self) -> Program:
        """∇f as a program, from all array leaves of the arguments."""
        key = ("∇", tuple(self.moving), self.domain, self.main)
        known = self.record.derived
        if key not in known:
            known[key] = gradient_program(in_order(self._plain), self.domain, self.codomain, self.name, self.moving)
        return known[key]

    def derivative(self) -> Derivative:
        """f^[1] and f^[1r] as programs."""
        key = ("d", tuple(self.moving), self.main)
        if key not in self.record.derived:
            self.record.derived[key] = derive_program(self._plain, self.moving)
        return self.record.derived[key]

    def source(self) -> Source:
        """f' as a program of the point and a vector."""
        return self._at(self.derivative().derivative, self.leaves if self.home is not None else numbers_of(self.leaves))

    def _at(self, program: Program, leaves: Sequence[Any]) -> Source:
        """A program at this point, and its arrays with names, for print: the arguments, and what the function closes over."""
        outside = [x if isinstance(x, np.ndarray) else fixed((x,))[0] for x in self.record.captured]  # read by the trace around
        point = tuple(leaves) if self.home is None else (*fixed(leaves), *outside)
        return Source(program, point, named_arrays(self.function, self.owners, self.leaves if self.home is None else point, self.record))

    def derived_from(self, program: Program) -> Source:
        """The derivative of a program of the same arguments, at this point."""
        key = ("d of", id(program), tuple(self.moving))
        known = self.record.derived
        if key not in known:
            known[key] = (derive_program(program, self.moving).derivative, program)
        return self._at(known[key][0], self.leaves)

    def gradient_value(self) -> Any:
        """∇f(x), in the trace."""
        assert self.home is not None
        return self.presented(written(self.gradient(), self.record, self.leaves, self.home, self.avals))

    def value(self) -> list[Any]:
        """The outputs, auxiliary ones included."""
        return evaluated(self.record, self.leaves)

    def wrap(self, values: list[Any]) -> Any:
        """f(x), or (f(x), aux)."""
        main = unflatten(self.main_tree, _leaves(self.record.results[: self.main], values[: self.main]))
        if not self.has_aux:
            return main
        return main, unflatten(self.aux_tree, _leaves(self.record.results[self.main :], values[self.main :]))

    def main_value(self, leaves: Sequence[Any]) -> Any:
        """Leaves of the codomain → the containers of the value."""
        return unflatten(self.main_tree, list(leaves[: self.main]))

    @property
    def dtype(self) -> Any:
        """float32 where all arguments differentiated in and all results are."""
        kinds = [a.dtype for a in (*self.avals, *self.record.outputs[: self.main])]
        return np.result_type(*kinds) if kinds and not any([a.weak for a in self.avals]) else np.dtype(float)

    @property
    def gradient_dtype(self) -> Any:
        """That of the arguments differentiated in: a gradient has the types of what it is the gradient in."""
        return np.result_type(*[a.dtype for a in self.avals]) if self.avals and not any([a.weak for a in self.avals]) else np.dtype(float)

    def presented(self, leaves: Sequence[Any]) -> Any:
        """Leaves of the domain → what the user sees: the tree of the argument, or a tuple of them."""
        rest = iter(leaves)
        found = [unflatten(t, [next(rest) for _ in o]) for t, o in zip(self.trees, self.owned, strict=True)]
        return found[0] if self.single else tuple(found)


def named_arrays(f: Any, owners: Sequence[Sequence[int]], leaves: Sequence[Any], record: Record) -> tuple[tuple[str, Any], ...]:
    """The arrays a function closes over, as a trace of it has them, and those of its arguments, with their names."""
    found = [(name, copy) for name, x in closed_over(f) if (copy := record.copy_of(x)) is not None]
    for label, owned in zip(argument_names(f, len(owners)), owners, strict=False):
        found += [(label if len(owned) == 1 else f"{label}_{i}", leaves[k]) for i, k in enumerate(owned)]
    return tuple(found)


def closed_over(f: Any) -> list[tuple[str, Any]]:
    """The arrays a function can see by name: of its closure, and of the globals its code names."""
    code = getattr(f, "__code__", None)
    if code is None:
        return []
    cells = dict(zip(code.co_freevars, [c.cell_contents for c in f.__closure__ or () if _filled(c)], strict=False))
    seen = {name: f.__globals__[name] for name in code.co_names if name in f.__globals__} | cells
    return [(name, x) for name, x in seen.items() if type(x) is np.ndarray]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def argument_names(f: Any, count: int) -> list[str]:
    """The names of a function's arguments, as far as they are known."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    known = list(code.co_varnames[: code.co_argcount]) if code is not None else []
    return known if len(known) >= count else ["x", "y", "z"][:count] if count <= 3 else [f"x{i}" for i in range(count)]


def _leaves(results: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    rest = iter(values)
    return [r.value if isinstance(r, Static) else next(rest) for r in results]


def _chosen(given: Given, argnums: Any, count: int, name: str) -> list[int]:
    if argnums is None:
        found = [i for i in range(count) if any([given.avals[k].dtype.kind == "f" for k in given.owners[i]])]
        if not found:
            raise VectorError(f"{name} has no argument to differentiate in: none of {count} holds floats; write 2.0 instead of 2")
        return found
    chosen: list[int] = []
    several: Any = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    if len(set(several)) < len(several):
        raise SpaceError(f"argnums={argnums!r} names an argument twice")
    for a in several:
        if isinstance(a, bool) or not isinstance(a, (int, np.integer)):
            raise SpaceError(f"argnums={argnums!r}: the number of an argument, or a tuple of them, is due")
        if not -count <= a < count:
            raise SpaceError(f"argnums={argnums!r}, but {name} was called with {count} argument{'s' if count != 1 else ''} by position")
        chosen.append(int(a) % count)
    return chosen


def _differentiable(given: Given, i: int, owned: list[int], name: str) -> None:
    for leaf in given.leaves[i]:
        if type(leaf) is not Aval:
            raise VectorError(f"argument {i} of {name} is differentiated, but holds {describe(leaf)}{hint(leaf)}")
    for k in owned:
        if given.avals[k].dtype.kind != "f":
            raise VectorError(
                f"argument {i} of {name} is differentiated, but holds an array of {given.avals[k].dtype}: use floats (x.astype(float)), "
                "or choose other arguments with argnums"
            )


def _fitting(natural: Space, space: Space | None) -> Space:
    if space is None:
        return natural
    if not isinstance(cast(Any, space), Space):
        raise SpaceError(f"space=… takes a space, such as V.weighted(w); got {space!r}")
    if [leaf.shape for leaf in space.leaves] != [leaf.shape for leaf in natural.leaves]:
        raise SpaceError(f"space={space}, but the argument lies in {natural}")
    return space


def _aux(record: Record, has_aux: bool) -> tuple[int, int, Tree, Tree]:
    """How many leaves belong to the value and to the rest, and their trees."""
    if not has_aux:
        return len(record.results), 0, record.tree, ()
    last = record.tree[-1]
    if type(last) is not Node or last.arity != 2 or last.form is not None:
        raise SpaceError(f"has_aux=True: {record.name} must return a pair (value, aux)")
    cut = first_part(record.tree)
    main = record.tree[:cut]
    return sum([e == LEAF for e in main]), len(record.results), main, record.tree[cut:-1]


def first_part(tree: Tree) -> int:
    """Where the first of the two parts of a pair ends."""
    sizes: list[int] = []
    for entry in tree[:-1]:
        if entry in (LEAF, NOTHING):
            sizes.append(1)
        else:
            n = cast(Node, entry).arity
            inside = sum(sizes[len(sizes) - n :])
            del sizes[len(sizes) - n :]
            sizes.append(inside + 1)
    return sizes[0]


def point(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any, space: Space | None, has_aux: bool, what: str) -> TermPoint | Point:
    """A function at a point: a combinator at a value, or a Python function at arguments."""
    if isinstance(f, Arrow):
        if kwargs or has_aux:
            raise SpaceError("a combinator takes vectors only: no keyword arguments, no has_aux")
        return TermPoint(f, args, space)
    return Point(as_function(f), args, kwargs, argnums, space, has_aux, what)
