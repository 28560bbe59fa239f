"""The picture of docs/design.md: imports at module level point one way, files stay short, importing stays quick."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "riesz"
FILES = sorted(SRC.rglob("*.py"))

# Rooms from the ground up; a module imports from its own room and those before it.
ROOMS = [
    (
        "errors",
        "interning",
        "stackless",
        "unlocked",
        "threads",
        "lingering",
        "buffers",
        "quietly",
        "sets",
        "relations",
        "paths",
        "contractions",
        "layout",
        "spaces",
        "vectors",
        "ops",
        "opaque",
        "convolution",
        "fourier",
    ),
    ("terms",),
    ("simplify",),
    ("programs",),
    ("calculus",),
    ("maps",),
    ("syntax",),
    ("backends",),
    ("show",),
    ("api", "taylor", "checking", "least_squares", "testing"),
    ("__init__", "__main__"),
]
RANK = {name: rank for rank, room in enumerate(ROOMS) for name in room}


def name_of(file: Path) -> tuple[str, ...]:
    """("terms", "core") for src/riesz/terms/core.py; packages by their own name."""
    parts = file.relative_to(SRC).with_suffix("").parts
    return parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts


MODULES = {name_of(f): f for f in FILES}


def module_level(body: list[ast.stmt]):
    """Statements that run on import: not those in functions, nor under TYPE_CHECKING."""
    for statement in body:
        yield statement
        match statement:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=rest):
                yield from module_level(rest)
            case ast.ClassDef() | ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                for part in ("body", "orelse", "finalbody"):
                    yield from module_level(getattr(statement, part, []))
                for handler in getattr(statement, "handlers", []):
                    yield from module_level(handler.body)


def imports(file: Path) -> set[tuple[str, ...]]:
    """The modules of riesz that a file imports when it is imported."""
    package = name_of(file) if file.name == "__init__.py" and file.parent != SRC else name_of(file)[:-1]
    found: set[tuple[str, ...]] = set()
    for statement in module_level(ast.parse(file.read_text()).body):
        if isinstance(statement, ast.Import):
            found.update([tuple(a.name.split(".")[1:]) or ("__init__",) for a in statement.names if a.name.split(".")[0] == "riesz"])
        elif isinstance(statement, ast.ImportFrom) and (statement.level or (statement.module or "").split(".")[0] == "riesz"):
            up = package[: len(package) - statement.level + 1] if statement.level else ()
            base = (*up, *[p for p in (statement.module or "").split(".") if p][0 if statement.level else 1 :])
            inside = [(*base, a.name) for a in statement.names if (*base, a.name) in MODULES]
            found.update(inside if inside else [base or ("__init__",)])
    return found


def test_every_module_has_a_room():
    assert {name[0] for name in MODULES} <= set(RANK)
    assert all(target in MODULES for file in FILES for target in imports(file))


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(SRC)) for f in FILES])
def test_imports_point_one_way(file: Path):
    here = name_of(file)
    backwards = [".".join(there) for there in imports(file) if RANK[there[0]] > RANK[here[0]]]
    assert not backwards, f"{'.'.join(here)} imports later rooms at module level: {backwards}"


def test_imports_are_found():
    """The analysis sees what is there: relative, nested and from the package itself."""
    assert ("terms", "core") in imports(SRC / "terms" / "sums.py")
    assert ("errors",) in imports(SRC / "terms" / "core.py")
    assert ("maps", "linear_map") in imports(SRC / "api.py")
    assert ("maps", "linear_map") not in imports(SRC / "terms" / "core.py")  # under TYPE_CHECKING and in methods only
    assert ("relations",) in imports(SRC / "__init__.py")


def test_no_cycles_between_modules():
    done: set[tuple[str, ...]] = set()
    left = {name: imports(file) - {name} for name, file in MODULES.items()}
    while ready := {name for name, needs in left.items() if name not in done and needs <= done}:
        done |= ready
    assert done == set(MODULES), f"a cycle among {sorted(set(MODULES) - done)}"


def test_the_picture_shows_the_rooms_in_this_order():
    picture = (ROOT / "docs" / "design.md").read_text().split("```")[1]
    shown = [word.rstrip("/") for word in re.findall(r"(?:└── )([\w/, ]+?)(?:  |\n|$)", picture)]
    rooms = [tuple(names.split(", ")) for names in shown]
    assert rooms == [
        ("terms",),
        ("simplify",),
        ("programs",),
        ("calculus",),
        ("maps",),
        ("syntax",),
        ("backends",),
        ("show",),
        ("api", "checking", "testing"),
    ]
    assert set(picture.splitlines()[1].split()[:4]) <= set(ROOMS[0])


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(SRC)) for f in FILES])
def test_no_file_is_longer_than_600_lines(file: Path):
    assert len(file.read_text().splitlines()) <= 600


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
    runs = [subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    assert min([float(run[0]) for run in runs]) < 0.3
    assert runs[0][1:] == []
