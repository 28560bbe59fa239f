"""`rz.compile`: a function as generated Python source, one for each kind of arguments.

    function ──► Program ── ordered, fused, folded ──► one of these

    "python"  numbers one by one: floats and `math`
    "numpy"   a line of array code for each step; tiles along a long axis where that pays
    "numba"   groups of steps as compiled loop nests, the others as in "numpy"
    "native"  loops on small states as functions of numbers: machine code, or floats
    "jax"     a line of jnp for each step, compiled by XLA for the CPU or the GPU
    "steps"   run step by step: programs too long to be worth a compiler's time

A backend is a file with a function `written(task)` that gives Code, or says why it has none; `BACKENDS` names it.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import SpaceError, VectorError
from ..functions.function import TracedFunction, as_function, other, stand_in
from ..functions.remade import Remade
from ..functions.traces.given import Given
from ..functions.traces.records import Record, evaluated, home_of
from ..ops.number_domains import OTHER
from ..ops.op import Contraction
from ..programs.cost import Cost
from ..programs.passes.folding import folded
from ..programs.passes.fusing import large, ready
from ..programs.passes.ordering import ordered
from ..programs.program import Program
from ..programs.sub_programs import Block, Loop
from ..runtime import later, tuning
from ..runtime.displayed import Displayed
from ..runtime.stackless import quiet
from ..spaces.space import Space
from ..tracing.traced import Traced
from .common import Code, Run, Task, method, names_of
from .python.unrolled import FLOAT
from .unpacking import opens, unpacked

if TYPE_CHECKING:
    from .devices.forecasts import Forecast
    from .devices.machines import Machine
    from .devices.placement_reports import PlacementPlan
    from .devices.placing import Seen
    from .profile import Profile

BACKENDS = {name: f"{name}.{name}_backend" for name in ("python", "native", "numba", "numpy", "jax")}
"""The file of each."""
COMPILED_LATER = {"numba", "jax", "native"}
"""Backends whose code is compiled when it first runs."""
AUTO = ("python", "numba", "numpy")
"""The first of these that has code is taken."""


class Compiled(Remade, Displayed):
    """A function with generated code. Called like the function; arrays and names it closes over are taken as they were
    when the code was written, which is once for each kind of arguments: what is written into such an array later is not
    seen."""

    def __init__(self, function: TracedFunction, backend: str) -> None:
        self.function = function
        self.name = self.__name__ = function.name
        self.__wrapped__ = function.function
        self.__doc__ = getattr(function.function, "__doc__", None)
        self._asked = backend
        self._codes: OrderedDict[Any, Code] = OrderedDict()
        self._guarded: dict[Any, list[tuple[Code, tuple[bool, ...], Code]]] = {}  # that holds at some arguments only
        self._citizens: OrderedDict[Any, Any] = OrderedDict()  # for JAX arrays
        self._again: Run | None = None
        self._first: Run = other  # of the last code written for plain arguments

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = OTHER if kwargs else self._first(args)
        return self.otherwise(args, kwargs) if found is OTHER else found

    def otherwise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The ordinary way: arguments are taken apart, and code is found by their kind."""
        found = OTHER if self._again is None or kwargs else self._again(args)
        if found is not OTHER:
            return found
        given = self.function.given(args, kwargs)
        if _in_jax(given):
            from .jax.jax_primitive import again, called

            with self._compiling() if not self._citizens else nullcontext():
                result = called(self._citizens, self.function, given)
            self._again = again(self._citizens, given)
            return result
        code = self._codes.get(given.key)
        if code is None and given.key in self._guarded:
            code = self._where_it_holds(given)
        if code is None:
            record = self.function.record(given)
            traced = home_of(record, given.arrays) is not None
            if record.guards is not None and not traced and self.function.keeps_some(given, record):
                return self._guard(given, record)(given.arrays)
            if traced or not self.function.keeps(given):  # random numbers are not kept
                return record.wrap(evaluated(record, given.arrays))
            code = self.prepare(given, record.settled())
        return code(given.arrays)

    def _guard(self, given: Given, record: Record) -> Code:
        """Code for arguments where all conditions have the answers they have here; the conditions are code too."""
        names, some = names_of(self.function, given), self._guarded.setdefault(given.key, [])
        asked = written(record.conditions().settled(), "jax" if self._asked == "jax" else "auto", names)
        some.insert(0, (asked, record.answers, written(record.settled(), self._asked, names)))
        del some[tuning.GUARDED_TRACES_KEPT :]
        if len(self._guarded) > tuning.TRACES_KEPT:
            del self._guarded[next(iter(self._guarded))]
        return some[0][2]

    def _where_it_holds(self, given: Given) -> Code | None:
        """The code whose conditions have their answers at some arguments; None where they have others."""
        if any([type(x) is Traced for x in given.arrays]):
            return None
        for asked, answers, code in self._guarded[given.key]:
            with np.errstate(all="ignore"):
                try:
                    found = asked(given.arrays)
                except Exception:  # the function itself will say it
                    continue
            if all([bool(x) == wanted for x, wanted in zip(found, answers, strict=True)]):
                return code
        return None

    def start(self, given: Given) -> None:
        """Write code for arguments of a kind before they are there."""
        given.point = False
        self.prepare(given, self.function.record(given).settled())

    def prepare(self, given: Given, record: Record) -> Code:
        """Write code for arguments of a kind, of which there is a trace."""
        names = names_of(self.function, given)
        with self._compiling(record):
            code = written(record, self._asked, names)
        code.names, code.owners = names, given.owners
        self._codes[given.key] = code
        if len(self._codes) > tuning.TRACES_KEPT:
            self._codes.popitem(last=False)
        if code.run is not None and opens(given):
            self._first = unpacked(given, code.run)
            if code.backend in COMPILED_LATER:
                self._first = self._shown_once(self._first, record)
            if code.backend == "python" and self._first is code.run:
                own = {"__call__": method(code, names), "__doc__": Compiled.__doc__}
                cast(Any, self).__class__ = type("Compiled", (Compiled,), own)
        return code

    def _compiling(self, record: Record | None = None) -> Any:
        """What is being compiled, to be shown if it takes long."""
        from ..runtime.progress import working

        steps = "" if record is None else f" {len(record.program):,} steps,"
        return working(f"compiling {self.name},{steps} backend {self._asked!r}")

    def _shown_once(self, run: Run, record: Record) -> Run:
        """Code whose first run compiles it, and says so if that takes long."""

        def first(args: tuple[Any, ...]) -> Any:
            with self._compiling(record):
                found = run(args)
            if self._first is first:
                self._first = run
            return found

        return first

    @property
    def code(self) -> Code:
        """The code written last, for JAX arrays where it was given no others."""
        if not self._codes and self._citizens:
            record, citizen = next(reversed(self._citizens.values()))
            return Code(record, citizen.code.program, "jax", citizen.code.why, None, citizen.code.source)
        if not self._codes and self._guarded:
            return next(reversed(self._guarded.values()))[0][2]
        if not self._codes:
            how = f"call {self.name}, or give spaces or arguments, as in rz.compile(f, rz.R ** rz.seg(3))"
            raise SpaceError(f"nothing is compiled yet: {how}")
        return next(reversed(self._codes.values()))

    @property
    def source(self) -> str:
        """The generated source.

        >>> import numpy as np, riesz as rz
        >>> g = rz.compile(rz.grad(lambda x: np.sum(np.sin(x))), np.ones(3))
        >>> print(g.source.splitlines()[0])
        def grad__lambda(args):
        """
        return self.code.source

    @property
    def backend(self) -> str:
        """What runs it.

        >>> import numpy as np, riesz as rz
        >>> g = rz.compile(rz.grad(lambda x: np.sum(np.sin(x))), np.ones(3))
        >>> g(np.zeros(3)), g.backend
        (array([1., 1., 1.]), 'python')
        """
        return self.code.backend

    @property
    def cost(self) -> Cost:
        """Operations of one run, and numbers kept.

        >>> import numpy as np, riesz as rz
        >>> g = rz.compile(rz.grad(lambda x: np.sum(np.sin(x))), np.ones(3))
        >>> g.cost.flops
        3
        """
        return self.code.cost

    def plan(self, devices: int, machine: Machine | str | None = None) -> PlacementPlan:
        """Placements on so many devices compared, by what each device computes, gets from others and holds; the
        cheapest comes first. `plan.place` and `plan.axes` are what to give to `rz.compile` and `jax.make_mesh`; no
        device is needed for that. With a machine ("H100", "H200", "TPU v5p" or a `Machine`) time and memory are told,
        and what fits and takes least time comes first."""
        from .devices.machines import as_machine
        from .devices.placement_reports import compared

        return compared(self.name, self.code.record, devices, None if machine is None else as_machine(machine))

    def forecast(self, machine: Machine | str, mesh: Any, place: Any) -> Forecast:
        """How long a run takes on devices of a machine ("H100", "H200", "TPU v5p" or a `Machine`), and how much memory:
        `mesh` is a mesh, or how many devices lie along each of its axes, `place` as for `rz.compile`. No device is
        needed, and no data: examples may be `np.broadcast_to(0.0, shape)`, which takes no memory.

        >>> import numpy as np, riesz as rz
        >>> X = np.broadcast_to(np.float32(0), (2**30, 64))
        >>> g = rz.compile(lambda w, X: np.mean(np.tanh(X @ w)), X[0], X, backend="steps")
        >>> g.forecast("H100", {"data": 1024}, {rz.seg(2**30): "data"})
        166 µs (88.6 µs computing, 77.4 µs communicating), 273 MB on each device
        """
        from .devices.forecasts import forecast
        from .devices.machines import as_machine
        from .devices.placement_reports import partition
        from .devices.placing import names_in, placed

        record, given = self._seen()
        placing = placed(place, given, names_in(self.function, given), mesh)
        return forecast(partition(record, placing), as_machine(machine))

    def _seen(self) -> tuple[Record, Seen]:
        """The trace of the arguments seen last."""
        from .devices.placing import Seen

        return self.code.record, Seen(self.code.record.avals, self.code.owners)

    def to_torch(self) -> Callable[..., Any]:
        """The same function on PyTorch tensors (on the CPU, whose memory is shared), differentiable there any number of
        times: its backward pass is the adjoint, compiled. torch.compile runs it as it is, between what it compiles;
        with fullgraph=True it says so."""
        from .torch_functions import on_tensors

        return on_tensors(self)

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """Where the time goes at some arguments: time, operations, bytes and share of the machine's peak of each
        step."""
        from .profile import profiled

        self(*args, **kwargs)
        given = self.function.given(args, kwargs)
        code = self._codes.get(given.key) or self.code
        return profiled(self.name, code, given.arrays, lambda: self(*args, **kwargs))

    def explain(self) -> str:
        """What was chosen, and why.

        >>> import numpy as np, riesz as rz
        >>> g = rz.compile(rz.grad(lambda x: np.sum(np.sin(x))), np.ones(3))
        >>> print(g.explain().splitlines()[0])
        grad(<lambda>): backend 'python'. Its arrays are small enough to be taken apart: 3 operations on Python floats.
        """
        return f"{self.name}: backend {self.code.backend!r}. {self.code.why}"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def export(self, kind: str, path: Any, dtype: str = "double") -> Any:
        """Write this function as code that runs without riesz; gives the files.

        "c" is a folder with C99 that needs math.h alone, a header with sizes, an example and a CMake file (`dtype` is
        "double" or "float"), for a Jacobian or Hessian the numbers of its sparse matrix, with the pattern as constants;
        "wasm" is that as a WebAssembly module (`pip install ziglang`) with a JavaScript module; "numpy" is a module
        that imports NumPy alone; "stablehlo" is what jax.export writes.

        >>> import tempfile, numpy as np, riesz as rz
        >>> g = rz.compile(rz.grad(lambda x: np.sum(np.sin(x) ** 2)), np.ones(3))
        >>> [file.name for file in g.export("c", tempfile.mkdtemp())]
        ['grad_lambda.h', 'grad_lambda.c', 'main.c', 'CMakeLists.txt']
        """
        return later.exported(self, kind, path, dtype)

    def recipe(self) -> Any:
        return compile_with, (self.function, self._asked)

    def __repr__(self) -> str:
        return f"rz.compile({self.name})"

    def displayed(self) -> Any:
        """What a notebook shows: what was chosen, what it costs, and the code."""
        from ..show.display.display_objects import FactTable

        if not self._codes and not self._citizens:
            return FactTable("compiled", repr(self), [], title=f"{self!r}: nothing is compiled yet")
        code = self.code
        rows = [("backend", code.backend), ("why", code.why), ("operations", f"{code.cost.flops:,}")]
        return FactTable("compiled", repr(self), rows, title=repr(self), code=[("code", code.source)])


def compile_with(f: Any, backend: str) -> Compiled:
    """A compiled function from what it is of: pickled so, without its code."""
    return compile(f, backend=backend)


class CompiledMaps(Compiled):
    """What `jacobian` and `hessian` give: functions into LinearMaps, whose programs the trace of f keeps."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._asked == "jax" or "jax" in sys.modules:
            given = self.function.given(args, kwargs)
            if _in_jax(given) or (self._asked == "jax" and not any([type(x) is Traced for x in given.arrays])):
                from .jax.jax_maps import mapped_in

                return mapped_in(self._citizens, self.function, given)
        return self.function.function(*args, **kwargs)

    example: Given | None = None

    def start(self, given: Given) -> None:
        """Nothing is written; an export wants to know the shapes."""
        self.example = given

    @property
    def code(self) -> Code:
        none = "each with its own program; there is no code, nor a cost, for all of them"
        raise SpaceError(f"{self.name} gives LinearMaps, {none}")

    @property
    def backend(self) -> str:
        return "jax" if self._asked == "jax" else "steps"

    def displayed(self) -> Any:
        from ..show.display.display_objects import FactTable

        return FactTable("compiled", repr(self), [("backend", self.backend)], title=self.explain())

    def explain(self) -> str:
        what = "It gives LinearMaps, whose programs and structure are derived once."
        return f"{self.name}: backend {self.backend!r}. {what}"


def _in_jax(given: Given) -> bool:
    """Whether some argument is a JAX array."""
    array = getattr(sys.modules.get("jax"), "Array", None)  # not there while another thread imports JAX
    return array is not None and any([isinstance(x, array) for x in given.arrays])


def compile(f: Any, *spaces_or_arguments: Any, backend: str = "auto", mesh: Any = None, place: Any = None) -> Compiled:
    """A function as generated code: f is a Python function, a combinator, or what grad, value_and_grad, … give.

    Code is written at once for the kind of arguments given, as spaces or as examples, and for other kinds when they
    turn up. `g.source` is the code, `g.explain()` says what was chosen and why. What f closes over is taken as it is
    when code is written; what changes belongs in the arguments.

    On many devices: `mesh` is a mesh of JAX devices, `place` says which axes of it cut which index set,
    `{rz.seg(8000): "data"}`, or the axes of an argument, `{1: ("data", None)}`. All that follows from it is derived:
    `g.explain()` lists where each step is computed and what travels, `g.cost` adds that up, `g.plan(devices=8)`
    compares placements.

    >>> import riesz as rz
    >>> g = rz.compile(rz.grad(lambda x, y: x * y + y**2), 1.0, 2.0)
    >>> g(3.0, 5.0), g.backend
    (5.0, 'python')
    """
    known = ("auto", *BACKENDS, "steps")
    if backend not in known:
        raise VectorError(f"a backend is one of {', '.join(map(repr, known))}; got {backend!r}")
    if not callable(f):
        what = "a Python function, a combinator, or what rz.grad(f) gives"
        raise SpaceError(f"compile takes a function: {what}; got {f!r}")
    function = f.function if isinstance(f, Compiled) else as_function(f)
    maps = bool(getattr(f, "gives_maps", False))
    if mesh is not None or place is not None:
        g = _on_devices(function, maps, backend, mesh, place)
    else:
        g = (CompiledMaps if maps else Compiled)(function, backend)
    if spaces_or_arguments:
        args = tuple([stand_in(s) if isinstance(s, Space) else s for s in spaces_or_arguments])
        g.start(g.function.given(args, {}))
    return g


def _on_devices(function: TracedFunction, maps: bool, backend: str, mesh: Any, place: Any) -> Compiled:
    """A function on the devices of a mesh."""
    if mesh is None or place is None:
        what = "mesh, as in jax.make_mesh((8,), ('data',))" if mesh is None else "place, as in {rz.seg(1000): 'data'}"
        raise SpaceError(f"a function on many devices needs {what}")
    if backend not in ("auto", "jax"):
        raise SpaceError(f"a function on many devices is compiled by backend='jax'; got {backend!r}")
    if find_spec("jax") is None:
        raise SpaceError("a function on many devices needs JAX, which is not installed: pip install 'riesz[jax]'")
    from .devices.placed_function import PlacedFunction, PlacedMaps

    return (PlacedMaps if maps else PlacedFunction)(function, mesh, place)


def _on_numbers(record: Record, asked: str, names: list[str]) -> tuple[Code | Program, str]:
    """Code for a program with loops as one function of numbers: loops are not taken apart for that. Where there is
    none, the program whose loops are such functions by themselves or taken apart, and why."""
    from ..calculus.loop_splitting import apart

    if asked not in ("auto", "native") or record.captured:
        return apart(record.program), ""
    from .native.native_backend import written as native
    from .native.native_loops import by_themselves

    found = native(Task(record, record.program, names, [], True))
    if isinstance(found, Code):
        return found, ""
    program = by_themselves(record.program, [a.dtype for a in record.avals])
    loops = [op for op in program.ops if isinstance(op, Loop)]
    alone = sum(["alone" in op.known for op in loops])
    some = f", but {alone} of {len(loops)} loops do by themselves" if alone else ""
    return apart(program), f" It does not run on numbers as a whole: {found}{some}."


@quiet
def written(record: Record, asked: str, names: list[str]) -> Code:
    """Code for a trace, by the backend asked for."""
    program = record.program
    found, why = "", ""
    if any([isinstance(op, Block) for op in program.ops]):
        program, why = _on_numbers(record, asked, names)
        if isinstance(program, Code):
            return program
    program = ready(program)
    steps = len(program)
    native = all([a.dtype.isnative for a in (*record.avals, *record.outputs)])
    longest = tuning.COMPILED_STEPS * (10 if asked == "jax" else 1)  # repeated steps are written once there
    if asked == "steps" or steps > longest or record.captured or not native:
        reason = ""
        if asked != "steps" and not native:
            reason = ": its arrays are in another machine's byte order (x.astype(float) has this one's)"
        elif asked != "steps" and steps > longest:
            reason = f": {steps:,} steps are more than the {longest:,} that source is written for"
        return Code(record, program, "steps", f"It is run step by step{reason}.")
    kinds = [float if not a.shape and a.dtype == FLOAT else a.dtype for a in record.avals]
    if sum([type(op) is Contraction for op in program.ops]) > 1 and not large(program):
        program = ordered(program)  # the interpreter leaves small products as they are
    task = Task(record, folded(program), names, kinds, asked != "auto")
    for name in AUTO if asked == "auto" else (asked,):
        found = import_module(f".{BACKENDS[name]}", __package__).written(task)
        if isinstance(found, Code):
            found.why += why
            return found
        why += f" Not {name!r}: {found}."
    raise VectorError(f"{record.name} cannot be compiled with backend={asked!r}: {found}; use backend='auto'")
