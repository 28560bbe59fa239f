"""`rz.from_torch`: a module or function of PyTorch's as a function of riesz.

What torch.export gives is read as NumPy code on traced arrays.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import copy
import itertools
import logging
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..errors import TraceError
from ..functions.function import TracedFunction
from ..runtime import tuning
from ..tracing.argument_trees import flatten, unflatten
from .aten.aten_registry import known, load, torch_type
from .from_jax import HERE, kind_of_leaf, named_arrays, standing, static_key, written
from .graph_reading import GraphReader, numbers
from .lax.lax_registry import is_traced


def from_torch(f: Any = None, /, *examples: Any, **named: Any) -> Any:
    """A module or function of PyTorch's as a function of riesz: it prints, is differentiated, solved with and compiled
    like NumPy code. Also a decorator of functions.

    A module becomes F(params, *args): `params` is a dict of arrays, with the names that the module gives them, and
    F.parameters the dict to begin with. Buffers are constants, unless the dict has entries of their names. A function
    of tensors takes the same arguments as before. With examples of the arguments it is read at once, so that what
    cannot be taken is said here; otherwise at its first call.

    >>> import numpy as np, riesz as rz, torch
    >>> F = rz.from_torch(torch.nn.Linear(3, 2).double(), np.ones(3))
    >>> F(F.parameters, np.ones(3)).shape
    (2,)
    >>> print(rz.grad(rz.from_torch(lambda x: torch.sum(torch.sin(x) ** 2)))(np.zeros(2)))
    [0. 0.]
    """
    if f is None:
        return from_torch
    try:
        import torch
    except ImportError:
        raise TraceError("rz.from_torch needs PyTorch, which is not installed (pip install 'riesz[torch]')") from None
    if not callable(f) or (isinstance(f, type) and issubclass(f, torch.nn.Module)):
        raise TraceError(f"rz.from_torch takes a module or a function of PyTorch's; got {f!r}")
    source = TorchSource(f)
    if examples or named:
        source.exported(*source.opened(examples if source.module is None else (source.parameters, *examples), named))
    name = type(f).__name__ if source.module is not None else getattr(f, "__name__", type(f).__name__)
    function = TracedFunction(written(source, () if source.module is None else ("params",)), name=name)
    if source.module is not None:
        function.parameters = source.parameters
    return function


class TorchSource:
    """A module or function of PyTorch's, its graphs by kinds of arguments, and the arrays it reads, by name."""

    def __init__(self, function: Any) -> None:
        import torch

        self.module: Any = None
        self.original = function
        self.parameters: dict[str, Any] = {}
        if isinstance(function, torch.nn.Module):
            try:
                self.module = copy.deepcopy(function).cpu()
            except RuntimeError as problem:
                raise TraceError(f"rz.from_torch copies a module, and this one cannot be copied: {problem}") from None
            self.original = self.module.forward
            self.parameters = {name: numbers(p) for name, p in self.module.named_parameters()}
            tensors = {name: b for name, b in self.module.named_buffers() if name.isidentifier()}
        else:
            tensors = named_arrays(function, _is_float_tensor)
        self.arrays: dict[str, Any] = {name: numbers(x) for name, x in tensors.items()}
        self._graphs: OrderedDict[Any, ExportedGraph] = OrderedDict()

    def opened(self, args: Sequence[Any], named: dict[str, Any]) -> tuple[dict[str, Any], list[Any], Any]:
        """The parameters, the leaves of the other arguments, and the tree of these."""
        import torch

        params: dict[str, Any] = {}
        if self.module is not None:
            params, *args = args or [None]
            self._check(params)
        leaves, tree = flatten((tuple(args), named))
        return params, [numbers(x) if isinstance(x, torch.Tensor) else x for x in leaves], tree

    def _check(self, params: Any) -> None:
        """Refuses parameters that are not those of the module."""
        name = type(self.module).__name__
        if not isinstance(params, dict):
            how = f"write F = rz.from_torch(module) and F(F.parameters, …); got {params!r}"
            raise TraceError(f"the first argument of {name} is the dict of its parameters: {how}")
        shapes = {n: tuple(p.shape) for n, p in self.parameters.items()}
        buffers = {n: tuple(b.shape) for n, b in self.module.named_buffers()}
        tied = dict(self.module.named_parameters(remove_duplicate=False)).keys() - shapes.keys()
        for n in [*(shapes.keys() - params.keys()), *(params.keys() - shapes.keys() - buffers.keys())]:
            said = "is missing" if n in shapes else "has another name there" if n in tied else "is not one of them"
            raise TraceError(f"parameters of {name}: {n!r} {said}; they are {', '.join(shapes)}")
        for n, x in params.items():
            wanted = shapes[n] if n in shapes else buffers[n]
            if np.shape(x) != wanted:
                raise TraceError(f"parameters of {name}: {n!r} has shape {np.shape(x)}, not {wanted}")

    def exported(self, params: dict[str, Any], leaves: Sequence[Any], tree: Any) -> ExportedGraph:
        """The graph for such arguments."""
        kinds = [kind_of_leaf(x) for x in leaves]
        types = {n: np.dtype(getattr(x, "dtype", float)) for n, x in params.items()}
        rest = [HERE if k is not None else x for k, x in zip(kinds, leaves, strict=True)]
        key = tree, tuple(kinds), tuple(types.items()), tuple([x if x is HERE else static_key(x) for x in rest])
        if key not in self._graphs:
            self._graphs[key] = exported(self._in_types(types), self.original, kinds, rest, tree)
            if len(self._graphs) > tuning.TRACES_KEPT:
                self._graphs.popitem(last=False)
        return self._graphs[key]

    def _in_types(self, types: dict[str, Any]) -> Any:
        """The module with parameters of these types; buffers follow where all parameters have one."""
        if all([types[n] == p.dtype for n, p in self.parameters.items()]):
            return self.module
        module = copy.deepcopy(self.module)
        for n, p in module.named_parameters():
            p.data = p.data.to(torch_type(types[n]))
        if len(one := {types[n] for n in self.parameters}) == 1:
            for b in module.buffers():
                b.data = b.data.to(torch_type(*one)) if b.is_floating_point() else b.data
        return module

    def __call__(self, args: tuple[Any, ...], named: dict[str, Any], values: tuple[Any, ...]) -> Any:
        """The function at traced arrays or numbers; `values` stand for the arrays it reads."""
        params, leaves, tree = self.opened(args, named)
        graph = self.exported(params, leaves, tree)
        arrays = iter([x if is_traced(x) else np.asarray(x) for x in leaves if kind_of_leaf(x) is not None])
        known = list(zip(self.arrays.values(), values, strict=True))
        given = [
            params[name]
            if name in params or (name and constant is HERE)
            else next(arrays)
            if constant is HERE
            else standing(constant, known)
            for name, constant in graph.inputs
        ]
        found = GraphReader().read(graph.module, given)
        found = iter([found[i] for i in graph.outputs])
        results = [next(found) if x is HERE else x for x in graph.results]
        return unflatten(graph.tree, [x if is_traced(x) or np.ndim(x) else np.asarray(x)[()] for x in results])


class ExportedGraph(NamedTuple):
    """A graph, the name and the constant behind each of its inputs (HERE: an argument), which of its outputs are
    results, and these in their containers."""

    module: Any
    inputs: list[tuple[str, Any]]
    outputs: list[int]
    results: list[Any]
    tree: Any


def exported(module: Any, function: Any, kinds: Sequence[Any], rest: Sequence[Any], tree: Any) -> ExportedGraph:
    """What torch.export makes of a module or a function, in operations that have rules."""
    import torch

    results: list[Any] = []

    class Flat(torch.nn.Module):
        """The function from tensors to tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *tensors: Any) -> Any:
            given = iter(tensors)
            args, named = unflatten(tree, [next(given) if x is HERE else x for x in rest])
            leaves, form = flatten((function if module is None else module)(*args, **named))
            tensors = tuple([x for x in leaves if isinstance(x, torch.Tensor)])
            results[:] = [form, [HERE if isinstance(x, torch.Tensor) else _plain(x) for x in leaves]]
            return tensors

    examples = tuple([torch.zeros(k[0], dtype=torch_type(k[1])) for k in kinds if k is not None])
    name = getattr(function, "__name__", "the function") if module is None else type(module).__name__
    with _quietly(), torch.enable_grad(), _watched():
        try:
            program = torch.export.export(Flat(), examples)
            _keep_no_grad(program.graph_module)
            program = program.run_decompositions(_table())
        except TraceError:
            raise
        except Exception as problem:  # what torch.export says, in the words of its first lines
            said = str(problem).strip().split("\n\n")[0][:400]
            raise TraceError(f"torch.export cannot read {name}: {said}{_ADVICE}") from problem
    _no_writes(program, name)
    outputs = [i for i, s in enumerate(program.graph_signature.output_specs) if s.kind.name == "USER_OUTPUT"]
    return ExportedGraph(program.graph_module, _inputs(program, module), outputs, results[1], results[0])


_ADVICE = (
    ". Branches and loops that depend on numbers are torch.cond, torch.where and torch.while_loop there; derivatives "
    "inside are rz.grad, rz.vjp, rz.jacobian of the function imported without them"
)


def _plain(x: Any) -> Any:
    import torch

    if isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise TraceError("the function returns a number that depends on tensors (x.item()); return the tensor itself")
    return x


def _table() -> Any:
    """How operations without a rule are written in those that have one."""
    import torch

    load()
    table = torch.export.default_decompositions()
    for op, written_out in torch._decomp.decomposition_table.items():  # also of what is not core ATen
        if op not in table and isinstance(op, torch._ops.OpOverload):
            table[op] = written_out
    for op in list(table.keys()):
        tensors = any(["Tensor" in str(a.type) for a in op._schema.arguments]) if hasattr(op, "_schema") else True
        if known(op) or not tensors:  # what makes constants is run as it is
            table.pop(op)
    return table


def _inputs(program: Any, module: Any) -> list[tuple[str, Any]]:
    """The name and the constant behind each input of a graph. Tied parameters have the first of their names."""
    from torch.export.graph_signature import InputKind

    found: list[tuple[str, Any]] = []
    first: dict[int, str] = {}
    names: dict[str, str] = {}
    if module is not None:
        named = [m(remove_duplicate=False) for m in (module.named_parameters, module.named_buffers)]
        names = {n: first.setdefault(id(x), n) for n, x in itertools.chain(*named)}
    for spec in program.graph_signature.input_specs:
        name = spec.target or ""
        if spec.kind == InputKind.USER_INPUT:
            found.append(("", HERE))
        elif spec.kind == InputKind.TOKEN:
            found.append(("", None))
        else:
            held, name = program.state_dict.get(name, program.constants.get(name)), name.removeprefix("inner.")
            found.append((names.get(name, ""), HERE if spec.kind == InputKind.PARAMETER else numbers(held)))
    return found


def _keep_no_grad(module: Any) -> None:
    """Ends derivatives where `torch.no_grad` ends: its block is taken apart by decompositions."""
    import torch

    for node in [n for n in module.graph.nodes if getattr(n.target, "__name__", "") == "wrap_with_set_grad_enabled"]:
        inner = getattr(module, node.args[1].target)
        _keep_no_grad(inner)
        (output,) = [n for n in inner.graph.nodes if n.op == "output"]
        if node.args[0]:
            continue
        for value in dict.fromkeys(output.all_input_nodes):
            if value.meta["val"].dtype.is_floating_point:
                with inner.graph.inserting_before(output):
                    held = inner.graph.call_function(torch.ops.aten.detach.default, (value,))
                held.meta.update(value.meta)
                output.replace_input_with(value, held)
        inner.recompile()


def _no_writes(program: Any, name: str) -> None:
    """Refuses functions that write to their buffers or arguments."""
    kept = [s for s in program.graph_signature.output_specs if s.kind.name not in ("USER_OUTPUT", "TOKEN")]
    if any([s.kind.name == "BUFFER_MUTATION" for s in kept]):
        names = ", ".join([s.target.removeprefix("inner.") for s in kept])
        raise TraceError(
            f"{name} writes to its buffers ({names}), as BatchNorm does in training: call module.eval() before "
            "rz.from_torch, or make the layers with track_running_stats=False to use the statistics of each batch"
        )
    if kept:
        raise TraceError(f"{name} writes to its arguments; write to copies, as in x = x.clone()")


@contextmanager
def _quietly() -> Iterator[None]:
    """What torch.export logs and warns of is said in its errors too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextmanager
def _watched() -> Iterator[None]:
    """Refuses functions with a backward pass of their own, which torch.export would lose, and keeps the user's lines,
    of which it keeps those of modules."""
    import torch
    from torch.fx.proxy import TracerBase

    def refused(cls: Any, *args: Any, **named: Any) -> Any:
        raise TraceError(
            f"{cls.__name__} is a torch.autograd.Function with a backward pass of its own, which torch.export would "
            "leave out; write the function in NumPy code with rz.custom_derivative"
        )

    def lines(self: Any, stack: Any) -> Any:
        inside = max([i for i, frame in enumerate(stack) if frame.filename == __file__], default=-1)
        return traceback.StackSummary.from_list(stack[inside + 1 :])

    # f = MyFunction.apply may be bound already: what it calls is patched too
    patched: list[Any] = [(home, "apply", classmethod(refused)) for home in torch.autograd.Function.__mro__[:2]]
    patched.append((TracerBase, "_filter_traceback_frames", lines))  # a private name, good for messages only
    before = [(home, name, home.__dict__.get(name)) for home, name, _ in patched]
    for home, name, value in patched:
        setattr(home, name, value)
    try:
        yield
    finally:
        for home, name, value in before:
            delattr(home, name) if value is None else setattr(home, name, value)


def _is_float_tensor(x: Any) -> bool:
    import torch

    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() > 0
