"""Where the files of version 0.1 are now. Their old names still work, in pickles and in imports, with a
DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

_FILES = """
riesz to checking: checking=derivative_check taylor
riesz to functions: api=derivatives
riesz to ops: convolution fourier=discrete_fourier opaque ops=op
riesz to relations: sets=index_sets
riesz to runtime: buffers interning lingering=spin_wait quietly=warnings_off stackless threads=pool unlocked=nogil
riesz to spaces: contractions=contraction layout paths=contraction_order spaces=space vectors=formal_vectors
backends to backends: applied=small_maps called=small_functions code=common compiled=entry torch_code=torch_functions
backends to backends.jax: jax_citizen=jax_primitive jax_code=jax_backend jax_functions jax_host jax_lines jax_maps
backends to backends.jax: jax_ops jax_steps rolled=repeated_steps
backends to backends.numba: accesses grouping loop_code loop_forms loops=loop_op numba_code=numba_backend vector_math
backends to backends.numpy: array_code numpy_code=numpy_backend round_code tiled_code
backends to backends.python: number_code=python_backend scalar_code unrolled
backends to programs.passes: folded=folding
backends to runtime: defining=generated_source
calculus to calculus: blocks=block_rules dual=dual_numbers guard=domain_check linear=linearity mapped=batching
calculus to calculus: rounds=loop_splitting
calculus to calculus.interpretation: interpret products=product_rules structure=structural_rules trees=value_trees
calculus to ops: domains=number_domains
maps to maps: sources=instances
maps to maps.gradients: factored factoring placed
maps to maps.matrices: filling materialise matrix_programs parts patterns=matrix_patterns
maps to maps.normal_form: coefficients edges entries indexing=index_maps merging network reach=sparsity rebuilt
maps to maps.normal_form: structure symmetric=network_values values=network_values
maps to maps.solvers: composite_solvers=composite krylov solvers=factorised solving=choice sparse_solvers=sparse
maps.normal_form to maps.normal_form: symmetric_products=network_values
programs to programs: blocks=sub_programs terms=program_to_term
programs to programs.axis: along components scalars tiled=slices tiles=component_code tiling
programs to programs.passes: collecting deferring fusing hoisting ordering
relations to relations: core=base makers=constructors
relations to relations.cpu: compiled=numba_loops groups running=pair_sums strips
relations to relations.jax: in_jax=reduction_in_jax rows_on_gpu=gpu_rows
show to show.display: notebook=map_picture
show to show: networks=network_text patterns=notation programs=program_text terms=term_text
simplify to simplify: patterns=term_patterns
syntax to functions: control custom functions=function points remade
syntax to functions.traces: comparing
syntax to functions.versions: answering
syntax to maps: symbolic=leaves
syntax to text: text=parsing text_limits text_table
syntax to tracing: classes mistakes operators registry ruled=differentials sharing traced tracing=trace
syntax to tracing: trees=argument_trees
syntax to tracing.rules: coverage elementwise fourier=fft indexing products=array_products rearranging reductions
syntax to tracing.rules: rules=all_rules scipy_names scipy_signal sorting special statistics
syntax to tracing.rules.complex: complex_arrays complex_functions complexes=complex_pairs
syntax to tracing.rules.linalg: determinants linalg=numpy_linalg matrices=matrix_ops norms scipy_linalg
syntax to tracing.surroundings: contents outside watching
terms to terms: applied=bilinear applied_op=bilinear core=term makers=open open_makers=open
terms to terms.named: named_declared named_products named_sums named_unitary
testing to testing: checks=law_checks linear=random_linear spaces=random_spaces terms=random_terms
"""
_CLASSES = """
backends.accesses.Entry=TableEntry  backends.array_code.Value=ArrayValue  backends.compiled.Maps=CompiledMaps
backends.grouping.Call=SingleStep  backends.grouping.Grouping=StepGroups  backends.jax_lines.Lines=JaxLines
backends.jax_ops.Steps=JaxSteps  backends.jax_ops.Unfit=NoJaxCode  backends.jax_ops.Value=JaxValue
backends.loop_forms.Total=Accumulation  backends.scalar_code.Lines=ScalarLines  backends.torch_code.Node=TensorFunction
calculus.blocks.Turned=TransposedBlock  checking.Row=CheckRow  convolution.Turned=ExchangedLeg
fourier.Symbol=TransformSymbol  maps.composite_solvers.Apart=SeparateSolver  maps.composite_solvers.Steps=ProductSolver
maps.entries.Apart=StaysApart  maps.entries.Cost=EntryCost  maps.factoring.Plan=FactoringPlan
maps.indexing.Table=IndexTable  maps.merging.Sum=EntrySum  maps.patterns.Pattern=MatrixPattern
maps.patterns.Place=LeafPlace  maps.placed.Term=PlacedTerm  maps.solvers.Blocks=BlockDiagonalSolver
maps.solvers.Diagonal=DiagonalSolver  maps.solvers.Triangular=TriangularSolver  maps.sources.Source=Instance
maps.sparse_solvers.Arrow=ArrowSolver  opaque.Form=DeclaredForm  programs.along.Rows=ComponentNodes
programs.along.Source=AxisRead  programs.along.Unfit=MixesPositions  programs.ordering.Network=ProductNetwork
programs.ordering.Plan=OrderedStep  programs.tiled.Sum=Mode  programs.tiles.Place=TargetPlace
programs.tiles.Task=ComponentTask  programs.tiling.Loop=TileLoop  relations.compiled.Numbers=RowVector
relations.in_jax.Code=ReductionCode  relations.in_jax.Rows=GroupSums  relations.in_jax.Table=PairTable
show.patterns.Pattern=ProductName  syntax.control.Mapped=MappedFunction  syntax.functions.Function=TracedFunction
syntax.points.Point=FunctionPoint  syntax.remade.Derived=DerivedFunction  syntax.text.Step=TextStep
syntax.text_limits.Meter=TextMeter  syntax.text_table.Row=TextFunction  syntax.trees.Node=Container
testing.linear.Multilinear=RandomForm  vectors.Product=FormalProduct
"""


def _moved() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _FILES.strip().splitlines():
        rooms, _, names = line.partition(": ")
        room, _, now = rooms.partition(" to ")
        for old, _, new in [name.partition("=") for name in names.split()]:
            found[f"{room}.{old}".removeprefix("riesz.")] = f"{now}.{new or old}"
    return found


MOVED = _moved()
"""Old names of files, and new ones; relative to riesz."""
RENAMED = {old: new for old, _, new in [pair.partition("=") for pair in _CLASSES.split()]}
"""Classes with another name: "old file.Name", and the new name."""
SPLIT = {"tracing.rules.rearranging": "tracing.rules.gathering", "tracing.rules.sorting": "tracing.rules.quantiles"}
"""Files of which a part is now a file of its own."""


def found(old: str, name: str) -> Any:
    """What was called `name` in the file `old`."""
    now, name = MOVED[old], RENAMED.get(f"{old}.{name}", name)
    home = importlib.import_module(f"riesz.{now}")
    return getattr(home if hasattr(home, name) else importlib.import_module(f"riesz.{SPLIT.get(now, now)}"), name)


def names_of(package: str) -> Callable[[str], Any]:
    """`__getattr__` of a package that was a file: what was in the file."""
    old = package.removeprefix("riesz.")

    def look(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return found(old, name)

    return look


class _Old(ModuleType):
    """A file that moved, under its old name."""

    def __getattr__(self, name: str) -> Any:
        old = self.__name__.removeprefix("riesz.")
        if name.startswith("__") or old not in MOVED:  # a package of files that moved has none of its own
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found(old, name)


class _Finder:
    """A finder and its loader. importlib.abc has classes for them, which take longer to import than riesz."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        old = fullname.removeprefix("riesz.")
        if old == "syntax":
            return ModuleSpec(fullname, cast(Any, self), is_package=True)
        return ModuleSpec(fullname, cast(Any, self)) if old in MOVED and fullname != old else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        old = spec.name.removeprefix("riesz.")
        if old in MOVED:
            warnings.warn(f"{spec.name} is now riesz.{MOVED[old]}", DeprecationWarning, stacklevel=2)
        return _Old(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Old names of riesz's files are found from now on."""
    if not any([type(f) is _Finder for f in sys.meta_path]):
        sys.meta_path.append(_Finder())
