"""docs/paper-map.md covers the paper: every labelled item and every defined thing has a source and a test, and they exist."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent

# The paper's definitions, rules, propositions, theorems, figures (line by line) and examples, in its order.
ITEMS = [
    # §1 Introduction
    "Definition 1.1",
    # §2 Sets and spaces
    "§2 inner product space",
    "§2 linear function",
    "§2 bilinear function",
    "§2.1 index sets",
    "§2.2 spaces",
    "§2.2.1 atomic spaces",
    "§2.2.2 direct sum",
    "§2.2.2 ι and π",
    "§2.2.2 Π",
    "§2.2.2 Π between ι and π",
    "§2.2.2 Δ",
    "§2.2.3 copower",
    "§2.2.3 red_R",
    "§2.2.3 f^X",
    "§2.2.3 rep",
    "§2.2.3 Σ",
    "§2.2.3 +",
    "§2.2.3 dup",
    "§2.2.3 scan",
    "§2.2.3 fork",
    "§2.2.3 join",
    "§2.2.4 formal terms",
    "§2.2.4 bilinearity",
    "§2.2.4 universal property",
    "§2.2.4 inner product",
    # §3 Functions in combinatory form
    "§3.1 ⊛",
    "§3.2 bra",
    "§3.2 ket",
    "§3.2 transpose",
    "§3.2 assoc",
    "§3.2 distrib",
    "§3.2 zip",
    "§3.2 matrices",
    "§3.2 rank-1 matrices",
    "§3.2 ⊗ and ⊙ from ⊛",
    "§3.3 linear functions",
    "§3.4 constant functions",
    "§3.5 primitive functions",
    "§3.5 power",
    "§3.6 composition",
    # §4 Fréchet differential calculus
    "Theorem 4.1",
    "Rule (1)",
    "Rule (2)",
    "Rule (3)",
    "Rule (4)",
    "Rule (5)",
    "§4 pairs and copowers",
    # §5 Affine interpretation
    "§5 affine function",
    "Proposition 5.1",
    "Figure 1: g ∘ f",
    "Figure 1: K_w",
    "Figure 1: h",
    "Figure 1: ⋄",
    "Figure 1: Π",
    "Theorem 5.2",
    "§5.1 eval^[1] and eval^(0)",
    "§5.1 eval^(f)",
    "§5.2 symbolic differentiation",
    # §6 Adjoints
    "§6 dual",
    "§6 gradient",
    "§6 transpose",
    "Definition 6.1",
    "Proposition 6.2",
    "Proposition 6.3",
    "Proposition 6.4",
    "Theorem 6.5: id* = id",
    "Theorem 6.5: (g • f)* = f* • g*",
    "Theorem 6.5: 0* = 0",
    "Theorem 6.5: (v⊛)* = (vᵀ⊛)",
    "Theorem 6.5: (⊛w)* = (⊛wᵀ)",
    "Theorem 6.5: ι* = π",
    "Theorem 6.5: (Π f)* = Π f*",
    "Theorem 6.5: red_R* = red_Rᵀ",
    "Theorem 6.5: unitary operators",
    "Theorem 6.5: forgotten rules",
    "§6.1 scaling",
    "§6.2 adjoint derivative",
    "Figure 2: g ∘ f",
    "Figure 2: K_w",
    "Figure 2: h",
    "Figure 2: ⋄",
    "Figure 2: Π",
    # §7 Applications
    "Example 7.1: g_i and l",
    "Example 7.1: N_k",
    # §8 Discussion
    "§8 Griewank",
    # Appendix A: derivatives
    "§A.1 Leibniz derivative",
    "§A.2 Jacobi derivative",
    "Example A.1",
    "Definition A.2",
    "Example A.3",
    "Definition A.4",
    "§A.5 dual numbers",
    # Appendix B: applications
    "Example B.1",
    "Example B.2: readable",
    "Example B.2: unreadable",
]


class Row(NamedTuple):
    """One line of the map."""

    item: str
    sources: list[tuple[str, str]]
    tests: list[tuple[str, str]]


def rows() -> list[Row]:
    found: list[Row] = []
    for line in (ROOT / "docs" / "paper-map.md").read_text().splitlines():
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0] not in ("paper", "---"):
            sources, tests = [[tuple(t.split("::")) for t in re.findall(r"`([^`]+)`", cell)] for cell in cells[2:]]
            found.append(Row(cells[0], sources, tests))
    return found


@cache
def names(file: Path) -> set[str]:
    """What a file defines at the top: functions, classes, constants; attributes of classes as Class.name."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.FunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name, body=body):
                found.add(name)
                found.update([f"{name}.{part.name}" for part in body if isinstance(part, ast.FunctionDef)])
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return found


def test_the_map_is_complete():
    assert [row.item for row in rows()] == ITEMS
    assert len(set(ITEMS)) == len(ITEMS)


def test_the_numbers_of_the_paper_are_all_there():
    """4 definitions, 4 propositions, 3 theorems, 5 rules, 2 figures, 5 numbered examples, and the sections that define things."""

    def numbered(kind: str) -> set[str]:
        return {m.group(1) for item in ITEMS if (m := re.match(rf"{kind} \(?([\w.]+)\)?", item))}

    assert numbered("Definition") == {"1.1", "6.1", "A.2", "A.4"}
    assert numbered("Proposition") == {"5.1", "6.2", "6.3", "6.4"}
    assert numbered("Theorem") == {"4.1", "5.2", "6.5"}
    assert numbered("Rule") == {"1", "2", "3", "4", "5"}
    assert numbered("Example") == {"7.1", "A.1", "A.3", "B.1", "B.2"}
    for figure in ("Figure 1", "Figure 2"):
        assert [item.split(": ")[1] for item in ITEMS if item.startswith(figure)] == ["g ∘ f", "K_w", "h", "⋄", "Π"]
    sections = {item.split()[0].removeprefix("§") for item in ITEMS if item.startswith("§")}
    defining = "2.1 2.2 2.2.1 2.2.2 2.2.3 2.2.4 3.1 3.2 3.3 3.4 3.5 3.6 5.1 5.2 6.1 6.2 A.1 A.2 A.5"
    assert sections >= set(defining.split())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.item)
def test_targets_exist(row: Row):
    assert row.sources and row.tests
    for path, symbol in row.sources:
        file = ROOT / "src" / "riesz" / path
        assert file.is_file(), f"no source {path}"
        assert symbol in names(file), f"no {symbol} in {path}"
    for path, function in row.tests:
        file = ROOT / path
        assert file.is_file() and file.name.startswith("test_"), f"no test file {path}"
        assert function.startswith("test_") and function in names(file), f"no {function} in {path}"


def test_every_test_of_the_paper_is_on_the_map():
    """Tests named after a statement are pointed to from it."""
    mapped = {function for row in rows() for _, function in row.tests}
    for file in (ROOT / "tests" / "paper").glob("test_*.py"):
        named = {
            name
            for name in names(file)
            if re.match(
                r"test_(definition|rule|proposition|theorem|figure|example|section|appendix|griewank_takes)_?", name
            )
        }
        assert named <= mapped, f"not on the map: {sorted(named - mapped)}"
