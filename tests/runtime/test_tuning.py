"""Constants in one module: each says its unit and where it was measured, and a test can change it for a while."""

import ast
import itertools
import re
import timeit
from pathlib import Path

import pytest

from riesz.runtime import tuning

SRC = Path(tuning.__file__).parent.parent
BODY = ast.parse(Path(tuning.__file__).read_text()).body
CONSTANTS = [s.targets[0].id for s in BODY if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)]
NOTES = {
    s.targets[0].id: following.value.value
    for s, following in itertools.pairwise(BODY)
    if isinstance(s, ast.Assign)
    and isinstance(s.targets[0], ast.Name)
    and isinstance(following, ast.Expr)
    and isinstance(following.value, ast.Constant)
}
UNITS = {
    "arrays",
    "axes",
    "buffers",
    "bytes",
    "calls",
    "characters",
    "columns",
    "compositions",
    "containers",
    "devices",
    "diagonals",
    "entries",
    "factors",
    "groups",
    "kinds",
    "functions",
    "levels",
    "lines",
    "looks",
    "loops",
    "multiplications",
    "neighbours",
    "networks",
    "numbers",
    "offsets",
    "operations",
    "orders",
    "pairs",
    "parts",
    "pieces",
    "products",
    "ratio",
    "rounds",
    "rows",
    "seconds",
    "slots",
    "statements",
    "steps",
    "summands",
    "sums",
    "sweeps",
    "targets",
    "terms",
    "things",
    "threads",
    "times",
    "traces",
    "unknowns",
    "uses",
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_says_its_unit_and_where_it_was_measured(name):
    assert name.isupper() and isinstance(getattr(tuning, name), int | float | tuple)
    note = NOTES[name]
    assert note.split(":")[0].split()[0].rstrip(";") in UNITS, (
        f"{name}: begin with the unit, one of {', '.join(sorted(UNITS))}"
    )
    assert ("Measured: " in note) != ("Chosen" in note)
    for file in re.findall(r"(?:docs|bench)/[\w/]+\.(?:md|py)", note):
        assert (SRC.parent.parent / file).exists(), f"{name} was measured in {file}, which is not there"


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_read_where_it_is_used(name):
    files = [f for f in SRC.rglob("*.py") if f"tuning.{name}" in f.read_text()]
    assert files, f"nobody reads {name}"


def test_constants_are_not_copied_when_a_module_is_loaded():
    """`from tuning import NAME`, or `X = tuning.NAME` at the top of a file, would not see `override`."""
    for file in SRC.rglob("*.py"):
        tree = ast.parse(file.read_text())
        froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").endswith("tuning")]
        assert not froms, file
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                assert "tuning." not in ast.unparse(statement.value), f"{file}: {ast.unparse(statement)}"


def test_override_is_for_a_while_also_after_an_error():
    before = tuning.CACHE_LINE_BYTES
    with pytest.raises(ZeroDivisionError), tuning.override(CACHE_LINE_BYTES=1, KEPT_BUFFERS_SEARCHED=2):
        assert (tuning.CACHE_LINE_BYTES, tuning.KEPT_BUFFERS_SEARCHED) == (1, 2)
        with tuning.override(CACHE_LINE_BYTES=3):
            assert tuning.CACHE_LINE_BYTES == 3
        assert tuning.CACHE_LINE_BYTES == 1
        raise ZeroDivisionError
    assert before == tuning.CACHE_LINE_BYTES and tuning.KEPT_BUFFERS_SEARCHED == 64


@pytest.mark.parametrize("name", ["CACHE_LINE", "override", "Generator"])
def test_override_knows_its_constants(name):
    with pytest.raises(AttributeError, match=f"no constant {name}"), tuning.override(**{name: 1}):
        pass


def test_reading_a_constant_is_reading_an_attribute():
    """No `__getattr__`, no descriptor: a plain entry of the module."""
    assert "__getattr__" not in vars(tuning) and type(tuning) is type(ast)
    assert all(type(vars(tuning)[name]) in (int, float, tuple) for name in CONSTANTS)
    assert min(timeit.repeat("t.CACHE_LINE_BYTES", globals={"t": tuning}, number=1000, repeat=5)) < 1e-3
