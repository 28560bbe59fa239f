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
api=functions.derivatives  backends.accesses=backends.numba.accesses  backends.applied=backends.small_maps
backends.array_code=backends.numpy.array_code  backends.called=backends.small_functions  backends.code=backends.common
backends.compiled=backends.entry  backends.defining=runtime.generated_source  backends.folded=programs.passes.folding
backends.grouping=backends.numba.grouping  backends.jax_citizen=backends.jax.jax_primitive
backends.jax_code=backends.jax.jax_backend  backends.jax_functions=backends.jax.jax_functions
backends.jax_lines=backends.jax.jax_lines
backends.jax_maps=backends.jax.jax_maps  backends.jax_ops=backends.jax.jax_ops
backends.jax_steps=backends.jax.jax_steps  backends.loop_code=backends.numba.loop_code
backends.loop_forms=backends.numba.loop_forms  backends.loops=backends.numba.loop_op
backends.numba_code=backends.numba.numba_backend  backends.number_code=backends.python.python_backend
backends.numpy_code=backends.numpy.numpy_backend  backends.rolled=backends.jax.repeated_steps
backends.scalar_code=backends.python.scalar_code
backends.tiled_code=backends.numpy.tiled_code  backends.torch_code=backends.torch_functions
backends.vector_math=backends.numba.vector_math  buffers=runtime.buffers
calculus.blocks=calculus.block_rules  calculus.domains=ops.number_domains  calculus.dual=calculus.dual_numbers
calculus.guard=calculus.domain_check  calculus.interpret=calculus.interpretation.interpret
calculus.linear=calculus.linearity  calculus.mapped=calculus.batching
calculus.products=calculus.interpretation.product_rules  calculus.rounds=calculus.loop_splitting
calculus.structure=calculus.interpretation.structural_rules  calculus.trees=calculus.interpretation.value_trees
checking=checking.derivative_check  contractions=spaces.contraction  convolution=ops.convolution
fourier=ops.discrete_fourier  interning=runtime.interning  layout=spaces.layout  lingering=runtime.spin_wait
maps.coefficients=maps.normal_form.coefficients  maps.composite_solvers=maps.solvers.composite
maps.edges=maps.normal_form.edges  maps.entries=maps.normal_form.entries  maps.factored=maps.gradients.factored
maps.factoring=maps.gradients.factoring  maps.filling=maps.matrices.filling  maps.indexing=maps.normal_form.index_maps
maps.krylov=maps.solvers.krylov  maps.materialise=maps.matrices.materialise
maps.matrix_programs=maps.matrices.matrix_programs  maps.merging=maps.normal_form.merging
maps.network=maps.normal_form.network  maps.parts=maps.matrices.parts  maps.patterns=maps.matrices.matrix_patterns
maps.placed=maps.gradients.placed  maps.reach=maps.normal_form.sparsity  maps.rebuilt=maps.normal_form.rebuilt
maps.solvers=maps.solvers.factorised  maps.solving=maps.solvers.choice  maps.sparse_solvers=maps.solvers.sparse
maps.structure=maps.normal_form.structure  maps.symmetric=maps.normal_form.symmetric_products
maps.values=maps.normal_form.network_values  opaque=ops.opaque  ops=ops.op  paths=spaces.contraction_order
programs.along=programs.axis.along  programs.blocks=programs.sub_programs
programs.components=programs.axis.components
programs.fusing=programs.passes.fusing
programs.hoisting=programs.passes.hoisting  programs.ordering=programs.passes.ordering
programs.scalars=programs.axis.scalars  programs.terms=programs.program_to_term  programs.tiled=programs.axis.slices
programs.tiles=programs.axis.component_code  programs.tiling=programs.axis.tiling  quietly=runtime.warnings_off
relations.compiled=relations.cpu.numba_loops  relations.core=relations.base  relations.groups=relations.cpu.groups
relations.in_jax=relations.jax.reduction_in_jax  relations.makers=relations.constructors
relations.rows_on_gpu=relations.jax.gpu_rows  relations.running=relations.cpu.pair_sums
sets=relations.index_sets  show.networks=show.network_text
show.patterns=show.contraction_names  show.programs=show.program_text  show.terms=show.term_text
simplify.patterns=simplify.term_patterns  spaces=spaces.space  stackless=runtime.stackless
syntax.answering=functions.versions.answering  syntax.classes=tracing.classes  syntax.comparing=functions.comparing
syntax.complex_arrays=tracing.rules.complex.complex_arrays
syntax.complex_functions=tracing.rules.complex.complex_functions  syntax.complexes=tracing.rules.complex.complex_pairs
syntax.contents=tracing.surroundings.contents  syntax.control=functions.control
syntax.coverage=tracing.rules.coverage  syntax.custom=functions.custom
syntax.determinants=tracing.rules.linalg.determinants  syntax.elementwise=tracing.rules.elementwise
syntax.fourier=tracing.rules.fft  syntax.functions=functions.function  syntax.indexing=tracing.rules.indexing
syntax.linalg=tracing.rules.linalg.numpy_linalg  syntax.matrices=tracing.rules.linalg.matrix_ops
syntax.mistakes=tracing.mistakes  syntax.norms=tracing.rules.linalg.norms  syntax.operators=tracing.operators
syntax.outside=tracing.surroundings.outside  syntax.points=functions.points
syntax.products=tracing.rules.array_products  syntax.rearranging=tracing.rules.rearranging
syntax.reductions=tracing.rules.reductions  syntax.registry=tracing.registry  syntax.remade=functions.remade
syntax.ruled=tracing.differentials  syntax.rules=tracing.rules.all_rules
syntax.scipy_linalg=tracing.rules.linalg.scipy_linalg  syntax.scipy_names=tracing.rules.scipy_names
syntax.scipy_signal=tracing.rules.scipy_signal  syntax.sharing=tracing.sharing  syntax.sorting=tracing.rules.sorting
syntax.special=tracing.rules.special  syntax.statistics=tracing.rules.statistics
syntax.symbolic=maps.leaves  maps.sources=maps.instances
syntax.text=text.parsing  syntax.text_limits=text.text_limits  syntax.text_table=text.text_table
syntax.traced=tracing.traced  syntax.tracing=tracing.trace  syntax.trees=tracing.argument_trees
syntax.watching=tracing.surroundings.watching  taylor=checking.taylor  terms.applied=terms.applied_op
terms.core=terms.term  terms.makers=terms.open_makers  terms.named_declared=terms.named.named_declared
terms.named_products=terms.named.named_products  terms.named_sums=terms.named.named_sums
terms.named_unitary=terms.named.named_unitary  threads=runtime.pool  unlocked=runtime.nogil
vectors=spaces.formal_vectors  testing.checks=testing.law_checks  testing.linear=testing.random_linear
testing.spaces=testing.random_spaces  testing.terms=testing.random_terms
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


def _pairs(table: str) -> dict[str, str]:
    return {old: new for old, _, new in [pair.partition("=") for pair in table.split()]}


MOVED = _pairs(_FILES)
"""Old names of files, and new ones; relative to riesz."""
RENAMED = _pairs(_CLASSES)
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
