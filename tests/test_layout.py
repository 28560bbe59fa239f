"""The picture of docs/design.md: imports point one way, also those inside functions; rooms and files stay small; names are used once."""

import ast
import importlib
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from riesz.runtime import later

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "riesz"
FILES = sorted(SRC.rglob("*.py"))

ROOMS = (
    *("errors", "moved", "runtime", "relations", "spaces", "ops", "terms", "simplify", "programs", "calculus"),
    *(
        "tracing",
        "maps",
        "text",
        "manifolds",
        "functions",
        "show",
        "forms",
        "backends",
        "importing",
        "files",
        "exporting",
        "queries",
        "checking",
        "least_squares",
        "constrained",
        "testing",
        "__init__",
        "command",
        "__main__",
    ),
)
"""From the ground up: a file imports from its own room and those before it."""

CYCLES = (
    {
        "algebra",
        "arrangements",
        "base",
        "compound",
        "halo_exchange",
        "kinds",
        "mesh_plan",
        "plans",
        "reduction_in_jax",
        "spanned",
    },  # methods of Relation
    {"formal_vectors", "layout", "space"},  # methods of Space
    {"leaves", "multiples", "traced_pairs", "traced_solves"},  # methods of Leaves
    {
        "bilinear",
        "named_sums",
        "open",
        "pointwise",
        "primitives",
        "sums",
        "term",
        "unitary",
        "weights",
    },  # operators of terms
    {"affine", "block_rules", "derive", "reverse"},  # programs inside programs
    {"classes", "mistakes", "traced"},  # what a traced array says it is
    {"jax_lines", "jax_ops"},
    {"entry", "placed_function", "torch_functions"},
    {"jax_maps", "jax_primitive", "on_mesh"},  # code on one device, and on a mesh
)
"""Files that import each other, from inside functions: no others may."""


def name_of(file: Path) -> tuple[str, ...]:
    """("terms", "term") for src/riesz/terms/term.py; packages by their own name."""
    parts = file.relative_to(SRC).with_suffix("").parts
    return parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts


MODULES = {name_of(f): f for f in FILES}
RANK = {room: rank for rank, room in enumerate(ROOMS)}


def statements(tree: ast.AST):
    """All statements that are not for type checkers alone."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        inside = [
            child
            for field in ("body", "orelse", "finalbody", "handlers", "cases")
            for child in getattr(node, field, ())
        ]
        found = [child for child in inside if not (types and child in node.body)]
        yield from found
        waiting += found


def imports(file: Path) -> set[tuple[str, ...]]:
    """The modules of riesz that a file imports, anywhere in it."""
    package = name_of(file) if file.name == "__init__.py" and file.parent != SRC else name_of(file)[:-1]
    found: set[tuple[str, ...]] = set()
    for statement in statements(ast.parse(file.read_text())):
        if isinstance(statement, ast.Import):
            names = [a.name.split(".") for a in statement.names]
            found.update([tuple(parts[1:]) or ("__init__",) for parts in names if parts[0] == "riesz"])
        elif isinstance(statement, ast.ImportFrom) and (
            statement.level or (statement.module or "").split(".")[0] == "riesz"
        ):
            up = package[: len(package) - statement.level + 1] if statement.level else ()
            base = (*up, *[p for p in (statement.module or "").split(".") if p][0 if statement.level else 1 :])
            inside = [(*base, a.name) for a in statement.names if (*base, a.name) in MODULES]
            found.update(inside if inside else [base or ("__init__",)])
    return found


GRAPH = {name: imports(file) - {name} for name, file in MODULES.items()}


def test_every_module_has_a_room():
    assert {name[0] for name in MODULES} <= set(ROOMS)
    assert all(target in MODULES for targets in GRAPH.values() for target in targets)


@pytest.mark.parametrize("name", sorted(MODULES), ids=".".join)
def test_imports_point_one_way(name):
    backwards = [".".join(there) for there in GRAPH[name] if RANK[there[0]] > RANK[name[0]]]
    assert not backwards, f"{'.'.join(name)} imports later rooms: {backwards} (see runtime/later.py)"


def test_the_normal_form_is_entered_through_its_face():
    inside = {name for name in MODULES if name[:2] == ("maps", "normal_form") and len(name) > 2}
    found = {name: there & inside for name, there in GRAPH.items() if name[0] != "maps" and there & inside}
    assert not found, "other rooms import from maps/normal_form/__init__.py"
    assert ("maps", "normal_form") in GRAPH["show", "network_text"]


def test_imports_are_found():
    """The analysis sees what is there: relative, nested, inside functions and from the package itself."""
    assert ("terms", "term") in GRAPH["terms", "sums"]
    assert ("terms", "sums") in GRAPH["terms", "term"]  # in a function
    assert ("errors",) in GRAPH["terms", "term"]
    assert ("maps", "linear_map") not in GRAPH["terms", "term"]  # under TYPE_CHECKING only
    assert ("relations",) in GRAPH[("__init__",)]


@pytest.mark.parametrize("name", sorted(later.TABLE))
def test_what_is_reached_in_later_rooms_is_there(name):
    file = tuple(later.TABLE[name].split("."))
    assert file in MODULES
    found = getattr(importlib.import_module("riesz." + later.TABLE[name]), name)
    assert found in (getattr(later, name), getattr(getattr(later, name), "__wrapped__", None))  # conftest.py wraps one
    used = [f for f in FILES if f"later.{name}" in f.read_text()]
    assert used, f"nobody calls later.{name}"
    assert all(RANK[name_of(f)[0]] < RANK[file[0]] for f in used), (
        f"later.{name} is called from rooms that may import it"
    )


def cycles(graph: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[set[tuple[str, ...]]]:
    """Sets of files that reach each other."""
    reached = {name: _reached(name, graph) for name in graph}
    found = {frozenset({b for b in reached[a] if a in reached[b]} | {a}) for a in graph}
    return [set(c) for c in found if len(c) > 1]


def _reached(start: tuple[str, ...], graph: dict[tuple[str, ...], set[tuple[str, ...]]]) -> set[tuple[str, ...]]:
    seen: set[tuple[str, ...]] = set()
    stack = [start]
    while stack:
        for there in graph[stack.pop()] - seen:
            seen.add(there)
            stack.append(there)
    return seen


def test_files_in_cycles_are_listed():
    found = [{name[-1] for name in c} for c in cycles(GRAPH)]
    assert not [c for c in found if not any(c <= known for known in CYCLES)], "files import each other that did not"
    assert max([len(c) for c in CYCLES]) <= 12
    assert cycles({("a",): {("b",)}, ("b",): {("a",)}, ("c",): {("a",)}}) == [{("a",), ("b",)}]


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(SRC)) for f in FILES])
def test_no_file_is_longer_than_650_lines(file: Path):
    assert len(file.read_text().splitlines()) <= 650


def test_rooms_have_at_most_16_files():
    rooms = Counter([f.parent for f in FILES])
    assert max(rooms.values()) <= 16, rooms.most_common(1)


def test_names_are_used_once():
    files = Counter([f.name for f in FILES if f.name != "__init__.py"])
    assert [name for name, n in files.items() if n > 1] == []
    classes = defaultdict(set)
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].add(file.name)
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}


IMPORT = """
import sys, time
import numpy
start = time.process_time()
import riesz
spent = time.process_time() - start
print(spent, *[name for name in ("scipy", "hypothesis", "pytest", "matplotlib") if name in sys.modules])
"""


def test_import_is_quick_and_light():
    """Under 0.3 s of processor time beyond NumPy's own import, best of five; SciPy and Hypothesis wait until they are needed."""
    command = [sys.executable, "-c", IMPORT]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    assert min([float(run[0]) for run in runs]) < 0.3
    assert runs[0][1:] == []


LOADED = """
import sys, numpy
before = {*sys.modules}
import riesz as rz
light = {*sys.modules} - before
rz.grad(lambda x: numpy.sum(numpy.sin(x) ** 2))(numpy.ones(3))
first = {*sys.modules} - before
rz.compile(rz.grad(lambda x: x[0] * x[1]))(numpy.ones(2))
compiled = {*sys.modules} - before
print(*sorted(light), ";", *sorted(first - light), ";", *sorted(compiled - first))
"""
AT_ONCE = """
riesz: errors moved
calculus: affine batching derive domain_check linearity reached reverse
calculus.interpretation: interpret product_rules structural_rules value_trees
functions: calling function function_types gradients jacobians point_protocol points remade
functions.traces: comparing given recognised records
maps: as_matrix decomposed instances leaves linear_map structured
maps.matrices: written_maps
ops: convolution discrete_fourier domain number_domains op op_rules opaque
programs: cost program rewriting sub_programs
programs.axis: along axis_labels scalars
programs.passes: collecting deferring fusing hoisting
relations: algebra base compound constructors index_algebra index_sets kinds spanned spans
relations.cpu: groups pair_sums strips
runtime: displayed buffers interning later pool stackless tuning warnings_off
spaces: contraction contraction_order formal_vectors layout mass space
terms: bilinear declared open primitives sums term unitary weights
tracing: argument_trees array_methods classes deciding layouts mistakes operators registry sharing trace traced
tracing.surroundings: contents outside watching
"""
WITH_THE_FIRST_GRADIENT = """
backends: common entry small_functions source_text unpacking
backends.python: python_backend scalar_code unrolled
functions.versions: answering array_makers code_constants version_kinds
programs.passes: folding ordering
runtime: generated_source settings
tracing: calls differentials
tracing.rules: all_rules array_products elementwise gathering indexing rearranging reductions
tracing.rules.scientific: stand_ins
tracing.writing: memory rows waiting written
"""


def files(text: str) -> set[str]:
    rows = [row.split(": ") for row in text.replace("\n  ", " ").strip().split("\n")]
    return {".".join([*["riesz", room][room == "riesz" :], name]) for room, names in rows for name in names.split()}


def test_what_is_slow_to_load_waits_until_somebody_needs_it():
    printed = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    light, first, compiled = [set(part.split()) for part in printed.split(";")]
    packages = {".".join(("riesz", *path.relative_to(SRC).parent.parts)) for path in SRC.rglob("__init__.py")}
    own = {m for m in light | first if m.split(".")[0] == "riesz"} - packages
    assert light & own <= files(AT_ONCE), "import riesz loads more than it did: import it where it is used"
    assert own <= files(AT_ONCE) | files(WITH_THE_FIRST_GRADIENT), "a plain gradient loads rules that it does not use"
    assert {m for m in light | first if m.split(".")[0] in ("scipy", "numba", "jax", "torch", "pandas")} == set()
    assert light & {"importlib.abc", "tempfile", "dataclasses", "numpy.random", "numpy.fft", "traceback"} == set()
    assert first & {"numpy.random", "numpy.polynomial"} == set()
    assert compiled & {"shutil", "numba", "tempfile"} == set()
    assert "riesz.functions.gradients" in light and "riesz.backends.entry" in first  # the lists are not empty


def test_names_that_are_loaded_later_are_there():
    import riesz

    for module in (riesz, riesz.relations):
        assert {*module.__all__} <= {*dir(module)}
        assert all([getattr(module, name) is not None for name in module.__all__])
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = module.nothing
