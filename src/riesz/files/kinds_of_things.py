"""What a file may hold: each kind by name, how it is taken apart, and how it is put together again.

The table is all there is. A name that is not in it is refused, and so is everything that would be code: functions of
users, their classes, primitives declared by them. What is put together goes through the constructors of riesz, which
check it.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..backends.entry import Compiled
from ..backends.entry import compile as compiled
from ..errors import FileError
from ..functions.function import TracedFunction
from ..functions.remade import DerivedFunction
from ..functions.traces.records import Aval, Record, Static
from ..maps.derivation import Derivation, Family, Value
from ..maps.gradients.factored import Factored
from ..maps.gradients.placed import PlacedTerm
from ..maps.instances import Instance
from ..maps.linear_map import LinearMap
from ..maps.solvers.factorised import Solver
from ..ops.opaque import DeclaredForm, Smooth
from ..programs.sub_programs import OwnDerivative
from ..relations.index_algebra import Affine, IndexTable
from ..runtime.interning import Interned, Node
from ..spaces.formal_vectors import Formal, FormalProduct
from ..spaces.layout import Form
from ..spaces.mass import MapMass, Mass
from ..spaces.space import Space, Weighted
from ..terms.primitives import RULES, Rule
from ..tracing.argument_trees import Container
from ..tracing.rules.special import primitive_named
from .replayed import Replayed, replayed


class SavedKind(NamedTuple):
    """How things of one class are taken apart into parts, and put together."""

    parts: Callable[[Any], tuple[Any, ...]]
    made: Callable[..., Any]


_ROOMS = ("relations", "spaces", "ops", "terms", "programs", "maps", "tracing", "functions")


@lru_cache(maxsize=1)
def nodes() -> dict[str, type]:
    """The classes of interned nodes, by name: sets, spaces, relations, terms, ops."""
    package = importlib.import_module(__name__.split(".")[0])
    for room in _ROOMS:
        inside = importlib.import_module(f".{room}", package.__name__)
        for module in pkgutil.walk_packages(inside.__path__, inside.__name__ + "."):
            if ".jax" not in module.name and ".numba" not in module.name:
                importlib.import_module(module.name)
    return {name: kind for name, kind in _below(Node).items() if kind not in (DeclaredForm, Form)}


@lru_cache(maxsize=8)
def _below(kind: Any) -> dict[str, Any]:
    """The classes of riesz's own below one, by name."""
    if kind is not Node:
        nodes()
    found: dict[str, Any] = {}
    waiting: list[Any] = [kind]
    while waiting:
        this = waiting.pop()
        waiting.extend(this.__subclasses__())
        if this.__module__.startswith("riesz."):
            found[this.__name__] = this
    return found


def _record(name: Any, program: Any, captured: Any, avals: Any, results: Any, tree: Any) -> Record:
    return Record(str(name), program, list(captured), list(avals), list(results), tree)


def _captured(record: Record) -> Record:
    if record.guards is not None:
        raise FileError(
            f"{record.name} takes another way at other numbers (a condition on values was decided while it was "
            "traced); save it with rz.cond or np.where in the place of the condition"
        )
    return record.settled()


def _instance(L: Any) -> Any:
    """The family a map is of, and the point, where it was made from one."""
    return L.instance if L._instance is not None and L.leaves is None else None


def _map(domain: Any, codomain: Any, program: Any, dtype: Any, facts: Any, simplified: Any, instance: Any) -> LinearMap:
    if instance is not None and not isinstance(instance, Instance):
        raise FileError("the family of a linear map is due")
    found = LinearMap(domain, codomain, program, dtype, None, [str(f) for f in facts], bool(simplified))
    program_ = found.program
    due = [[leaf.shape for leaf in V.leaves] for V in (domain, codomain)]
    have = [[program_.shapes[s] for s in slots] for slots in (program_.inputs, program_.outputs)]
    if [list(map(tuple, h)) for h in have] != [list(map(tuple, d)) for d in due]:
        raise FileError(f"the program of a linear map goes from {have[0]} to {have[1]}; its spaces want {due}")
    if instance is not None:
        found._instance = lambda: instance
    return found


def _family(program: Any, point: Any, domain: Any, codomain: Any, names: Any) -> Family:
    return Family(program, point, domain, codomain, names)


def _placed(scale: Any, factors: Any, index: Any, sizes: Any, axes: Any) -> PlacedTerm:
    return PlacedTerm(scale, factors, index, sizes, axes)


def _derived_parts(f: Any) -> tuple[Any, ...]:
    make, parts = f.recipe()
    return (make.__name__, *parts)


def _derived(name: Any, *parts: Any) -> Any:
    """What rz.grad(f), rz.hessian(f), rz.vmap(f), … gave."""
    if name not in _below(DerivedFunction):
        raise FileError(f"{name!r} is no function that riesz makes of another")
    return _below(DerivedFunction)[name](*parts)


def _solver_parts(S: Any) -> tuple[Any, ...]:
    args, named = S._given
    return (type(S).__name__, args, named)


def _solver(name: Any, args: Any, named: Any) -> Any:
    if name not in _below(Solver):
        raise FileError(f"{name!r} is no solver of riesz's")
    return _below(Solver)[name](*args, **named)


def _function_parts(f: Any) -> tuple[Any, ...]:
    inner = f.function
    if isinstance(inner, Replayed):
        return (f.name, inner.names, inner.records)
    if isinstance(inner, Node) or kind_of(inner) is not None:
        return (f.name, None, inner)
    records = [_captured(record) for record, _ in f._records.values()]
    if f._guarded:
        _captured(next(iter(f._guarded.values()))[0][0])
    if not records:
        raise FileError(
            f"{f.name} is a Python function that has not been called yet: a file holds what it computes for arguments "
            "of some shapes, not its code; call it once, or give examples: rz.save(path, f, x)"
        )
    return (f.name, _names(f), records)


def _names(f: Any) -> Any:
    from ..functions.points import argument_names

    count = max([len(r.derived.get("count", ())) for r, _ in f._records.values()], default=0)
    return tuple(argument_names(f.function, count))


def _function(name: Any, names: Any, inside: Any) -> TracedFunction:
    if isinstance(inside, Node) or (callable(inside) and kind_of(inside) is not None):
        return TracedFunction(inside, name=str(name))
    return TracedFunction(replayed(str(name), names, inside), name=str(name))


def _own(rule: OwnDerivative) -> tuple[Any, ...]:
    return (rule.program,)


def _form(kind: Any, names: Any) -> Form:
    if kind not in ("list", "dict"):
        raise FileError(f"{kind!r} is no container that a file may hold")
    return Form(list if kind == "list" else dict, names, ())


def _weighted(base: Any, weights: Any, matrix: Any) -> Weighted:
    """A weight for each leaf, or one matrix for all; what a weight is made of was checked when it was read."""
    if not (isinstance(base, Space) and base.plain and isinstance(weights, tuple) and isinstance(matrix, bool)):
        raise FileError("weights belong to a plain space")
    shapes = [(base.dim, base.dim)] if matrix else [leaf.shape for leaf in base.leaves]
    sizes = [(leaf.size, leaf.size) for leaf in base.leaves]
    have = [w.shape if isinstance(w, (np.ndarray, Mass)) else None for w in weights]
    due = [sizes[k] if k < len(sizes) and isinstance(w, Mass) else None for k, w in enumerate(weights)]
    if have != [mass or shape for mass, shape in zip(due, shapes, strict=False)] or len(have) != len(shapes):
        raise FileError(f"weights of shapes {have}; the space has leaves of shapes {shapes}")
    return Weighted.rebuilt(base, weights, matrix)


def _form_parts(form: Form) -> tuple[Any, ...]:
    if form.kind is list or form.kind is dict:
        return ("list" if form.kind is list else "dict", form.names)
    raise FileError(
        f"{form.kind.__name__} is a class of your own, which a file does not hold: its code would have to be run to "
        "read it; use dicts, lists and tuples"
    )


KINDS: dict[type, tuple[str, SavedKind]] = {
    LinearMap: (
        "LinearMap",
        SavedKind(
            lambda L: (L.domain, L.codomain, L.program, L.dtype, tuple(sorted(L.facts)), L.simplified, _instance(L)),
            _map,
        ),
    ),
    Instance: ("Instance", SavedKind(lambda s: (s.program, s.point, s.names), Instance)),
    Family: ("Family", SavedKind(lambda f: (f.program, f.point, f.domain, f.codomain, f.names), _family)),
    Value: ("Value", SavedKind(lambda f: (f.program, f.domain, f.codomain, f.names), Value)),
    Derivation: ("Derivation", SavedKind(lambda d: (d.function, d.names), Derivation)),
    TracedFunction: ("Function", SavedKind(_function_parts, _function)),
    Compiled: ("Compiled", SavedKind(lambda g: (g.function, g._asked), lambda f, how: compiled(f, backend=str(how)))),
    DerivedFunction: ("DerivedFunction", SavedKind(_derived_parts, _derived)),
    Record: ("Record", SavedKind(lambda r: (r.name, r.program, (), r.avals, r.results, r.tree), _record)),
    Aval: ("Aval", SavedKind(lambda a: (a.shape, a.dtype, a.weak), Aval)),
    Static: ("Static", SavedKind(lambda s: (s.value,), Static)),
    Container: ("Container", SavedKind(lambda c: (c.arity, c.form), Container)),
    Form: ("Form", SavedKind(_form_parts, _form)),
    Affine: ("Affine", SavedKind(tuple, Affine)),
    IndexTable: ("IndexTable", SavedKind(tuple, IndexTable)),
    Formal: ("Formal", SavedKind(lambda v: (v.shape, v.terms), Formal)),
    FormalProduct: ("FormalProduct", SavedKind(tuple, FormalProduct)),
    Factored: ("Factored", SavedKind(lambda G: (G.shape, G.dtype, G.terms), Factored)),
    PlacedTerm: ("PlacedTerm", SavedKind(lambda t: (t.scale, t.factors, t.index, t.sizes, t.axes), _placed)),
    Weighted: ("Weighted", SavedKind(lambda V: (V.base, V.weights, V.matrix), _weighted)),
    Mass: ("Mass", SavedKind(lambda m: (m.matrix,), Mass)),
    MapMass: ("MapMass", SavedKind(lambda m: (m.linear,), MapMass)),
    OwnDerivative: ("OwnDerivative", SavedKind(_own, lambda program: OwnDerivative(lambda: program))),
}
BY_NAME = dict(KINDS.values())
BY_NAME["Solver"] = SavedKind(_solver_parts, _solver)


def kind_of(thing: Any) -> tuple[str, SavedKind] | None:
    """The name and the kind of a thing; None for others."""
    for of in type(thing).__mro__:
        if of in KINDS:
            return KINDS[of]
    return ("Solver", BY_NAME["Solver"]) if isinstance(thing, Solver) else None


# -- names of functions and rules -------------------------------------------------------------------------

_MODULES = ("riesz.tracing.", "riesz.ops.", "riesz.relations.cpu.pair_folds", "riesz.functions.control.")


def name_of(f: Any) -> str | None:
    """What a file calls a function that steps are made of; None for functions of others."""
    if isinstance(f, Rule):
        return f"rule:{f.name}" if RULES.get(f.name) is f else None
    if isinstance(f, Smooth):
        return f"smooth:{f.differential.__module__}:{f.name}" if f.ours else None
    if isinstance(f, Interned):
        return None
    f = getattr(f, "original", f)
    if isinstance(f, np.ufunc):
        for package in ("numpy", "scipy.special"):
            if getattr(importlib.import_module(package), f.__name__, None) is f:
                return f"{package}:{f.__name__}"
        return None
    if isinstance(f, types.FunctionType):
        name = f"{f.__module__}:{f.__name__}"
        return name if _ours(f.__module__) and f.__qualname__ == f.__name__ and f.__name__.isidentifier() else None
    name = getattr(f, "__name__", "")
    return f"numpy:{name}" if name in _NUMPY and getattr(np, name, None) is f else None


_NUMPY = {"argmax", "argmin", "argsort", "lexsort", "searchsorted", "digitize", "all", "any", "sort", "round", "around"}
_NUMPY |= {"isclose", "allclose", "count_nonzero", "where", "clip", "array_equal", "array_equiv"}


def _ours(module: str) -> bool:
    return module.startswith(_MODULES[:2]) or module == _MODULES[2] or module.startswith(_MODULES[3])


def named(name: Any) -> Any:
    """The function that a file calls by a name."""
    if not isinstance(name, str) or len(name) > 200:
        raise FileError("a function has a name")
    where, _, own = name.partition(":")
    if where == "rule" and own in RULES:
        return RULES[own]
    if where == "rule" and (found := primitive_named(own)) is not None:
        return found.rule
    if where == "smooth":
        from ..ops.opaque import smooth_named

        module, _, title = own.partition(":")
        if (found := smooth_named(title, module if module in _module_names() else "")) is not None:
            return found
    if where in ("numpy", "scipy.special") and own.isidentifier():
        found = getattr(importlib.import_module(where), own, None)
        if isinstance(found, np.ufunc) or (where == "numpy" and own in _NUMPY):
            return found
    if _ours(where) and own.isidentifier() and where in _module_names():
        found = getattr(importlib.import_module(where), own, None)
        if isinstance(found, types.FunctionType) and name_of(found) == name:
            return found
    raise FileError(f"a file may not call {name!r}: it is no function that steps of riesz are made of")


@lru_cache(maxsize=1)
def _module_names() -> frozenset[str]:
    """The modules of riesz there are: no others are imported because a file names them."""
    package = importlib.import_module("riesz")
    return frozenset([m.name for m in pkgutil.walk_packages(package.__path__, "riesz.") if _ours(m.name)])
