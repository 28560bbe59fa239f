"""docs/design.md and docs/design/ describe the tree that is there: names, files, links and journeys are right.

What is in code font is checked by its form:

    room/file.py, file.py, docs/page.md    a file
    file.function, file.Class.method       a name of that file
    Class.method                           an attribute of that class
    rz.name                                a public name
    L.solve, V.leaves                      an attribute of the class that the letter stands for (LETTERS)
    name                                   a name defined somewhere in src, or one of Python's own
    anything else                          an expression: only the `rz.name` in it are checked
"""

import ast
import builtins
import keyword
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from test_layout import FILES, ROOMS, ROOT, SRC

import riesz as rz

ENTRANCE = ROOT / "docs" / "design.md"
DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
OTHERS = [p for folder in ("notes", "decisions") for p in sorted((ROOT / "docs" / folder).glob("*.md"))]
PAGES = [ENTRANCE, *DESIGN, *OTHERS]

ON_PAGE = {
    "errors": "runtime",
    "moved": "runtime",
    "text": "functions",
    "testing": "checking",
    "__main__": "command",
}
"""Rooms that share a page with another."""
INNER = {("backends", "devices"): "devices"}
"""Folders inside a room that have a page of their own."""
LETTERS = {"L": "LinearMap", "D": "Derivation", "V": "Space", "R": "Relation", "t": "Term", "g": "Compiled"}
FOREIGN = ("np", "scipy", "jax", "jnp", "lax", "math", "gc", "sys", "os")


def ids(paths: list[Path]) -> list[str]:
    return [str(p.relative_to(ROOT / "docs")) for p in paths]


def room_of(file: Path) -> str:
    parts = file.relative_to(SRC).with_suffix("").parts
    return INNER.get(parts[:2], parts[0])


@cache
def stems() -> dict[str, Path]:
    return {f.stem: f for f in FILES if f.name != "__init__.py"}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = defaultdict(list)
    for node in [n for f in FILES for n in ast.walk(tree(f)) if isinstance(n, ast.ClassDef)]:
        found[node.name].append(node)
    return found


def assigned(target: ast.AST) -> set[str]:
    """Names and attributes of `self` that a statement sets."""
    found = [n for n in ast.walk(target) if isinstance(getattr(n, "ctx", None), ast.Store)]
    return {n.id for n in found if isinstance(n, ast.Name)} | {n.attr for n in found if isinstance(n, ast.Attribute)}


@cache
def attributes(name: str) -> set[str]:
    """What a class has, its bases in src included."""
    found: set[str] = set()
    for node in classes()[name]:
        found |= {n.name for n in node.body if isinstance(n, ast.FunctionDef)} | assigned(node)
        for base in [b.id for b in node.bases if isinstance(b, ast.Name)]:
            found |= attributes(base) if base in classes() and base != name else set()
    return found


@cache
def top(file: Path) -> set[str]:
    """What a file defines at its top."""
    found: set[str] = set()
    for node in tree(file).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            found |= assigned(node)
    return found


@cache
def everything() -> set[str]:
    """All names that src defines, or reads from the environment; names of rooms and files; Python's own."""
    found = {*dir(builtins), *keyword.kwlist, *ROOMS, *stems()}
    for file in FILES:
        for node in ast.walk(tree(file)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(getattr(node, "ctx", None), ast.Store):
                found |= assigned(node)
            elif isinstance(node, ast.Constant) and str(node.value).startswith("RIESZ_"):
                found.add(str(node.value))
    return found


def missing(code: str) -> str | None:
    """What does not exist of a piece of code font; None where all of it does."""
    if re.fullmatch(r"[\w./-]+\.(py|md|toml)", code):
        known = [SRC / code, ROOT / code] if "/" in code else [stems().get(code.removesuffix(".py"), ROOT / code)]
        return None if any([p.is_file() for p in known]) else f"no file {code}"
    dotted = re.fullmatch(r"([A-Za-z_]\w*)((?:\.\w+)*)(\(\))?", code)
    if dotted is None:
        unknown = [name for name in re.findall(r"\brz\.(\w+)", code) if not hasattr(rz, name)]
        return f"no {unknown} in riesz" if unknown else None
    head, *rest = code.removesuffix("()").split(".")
    if head in FOREIGN:
        return None
    if head == "rz" and rest:
        return None if hasattr(rz, rest[0]) and rest[1:] == [] else f"no {code}"
    head = LETTERS.get(head, head) if rest else head
    if not rest:
        return None if head in everything() else f"no name {code} in src"
    if head in stems():
        if rest[0] not in top(stems()[head]):
            return f"no {rest[0]} in {stems()[head].name}"
        head, *rest = rest
    if not rest:
        return None
    if head not in classes():
        return f"{head} of {code} is neither a file nor a class"
    return None if rest[0] in attributes(head) and rest[1:] == [] else f"no {rest} in class {head}"


def prose(page: Path) -> str:
    """A page without its fences."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def rows(page: Path) -> list[str]:
    """The files of the tables that begin with | file |."""
    found: list[str] = []
    inside = False
    for line in page.read_text().splitlines():
        inside = line.startswith("|") and (inside or line.startswith("| file |"))
        if inside and (name := re.match(r"\| `([^`]+)`", line)):
            found.append(name.group(1))
    return found


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_names_in_code_font_exist(page: Path):
    found = [problem for code in re.findall(r"`([^`\n]+)`", prose(page)) if (problem := missing(code))]
    assert not found, found


@pytest.mark.parametrize(
    "code",
    [
        *("calculus/nowhere.py", "nowhere.py", "docs/nowhere.md", "derive.nowhere", "linear_map.LinearMap.nowhere"),
        *("LinearMap.nowhere", "L.nowhere", "rz.gard", "rz.gard(f)(x)", "nowhere_at_all", "Nowhere.at_all"),
    ],
)
def test_names_that_do_not_exist_are_seen(code: str):
    assert missing(code)


def test_every_room_has_a_page():
    rooms = [room for room in ROOMS if room != "__init__"]
    assert {p.stem for p in DESIGN} == {ON_PAGE.get(room, room) for room in rooms} | {"journeys", *INNER.values()}
    linked = re.findall(r"\(design/(\w+)\.md\)", ENTRANCE.read_text())
    assert set(linked) == {p.stem for p in DESIGN}


def test_the_entrance_shows_the_rooms_in_their_order():
    picture = max(re.findall(r"^```\n(.*?)^```$", ENTRANCE.read_text(), flags=re.M | re.S), key=len)
    first = [words[0] for line in picture.splitlines() if (words := line.split())]
    assert [word for word in first if word in ROOMS] == [room for room in ROOMS if not room.startswith("__")]


@pytest.mark.parametrize("page", [p for p in DESIGN if p.stem != "journeys"], ids=lambda p: p.stem)
def test_the_table_of_a_page_lists_the_files_of_its_room(page: Path):
    files = [f for f in FILES if f.name != "__init__.py" and ON_PAGE.get(room_of(f), room_of(f)) == page.stem]
    assert sorted(rows(page)) == sorted([str(f.relative_to(SRC)) for f in files])


PARTS = ["What it gives to others", "Files", "Main data structures", "Who calls whom", "What grows with what", "Why"]


@pytest.mark.parametrize("page", [p for p in DESIGN if p.stem != "journeys"], ids=lambda p: p.stem)
def test_a_page_has_a_picture_and_its_parts(page: Path):
    headings = re.findall(r"^## (.*)$", page.read_text(), flags=re.M)
    assert [heading for heading in headings if heading in PARTS] == PARTS
    assert "```" in page.read_text().split("\n## ")[0]


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_lines_are_short(page: Path):
    long = [line for line in page.read_text().splitlines() if len(line) > 120 and not line.startswith("|")]
    assert not long, long


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_links_resolve(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not target.startswith("http"):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name}: no {target}"


def test_decisions_are_numbered_and_have_their_parts():
    records = [p for p in OTHERS if p.parent.name == "decisions"]
    assert [p.name[:3] for p in records] == [f"{i:03}" for i in range(1, len(records) + 1)]
    for p in records:
        assert re.findall(r"^## (.*)$", p.read_text(), flags=re.M) == ["Context", "Decision", "Consequences"], p.name


def called(code: str, names: dict[str, object]) -> list[str]:
    """The functions of src that some code calls, in order, as file.function or file.Class.method."""
    found: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SRC)):
            found.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        exec(compile(code, "journey", "exec"), names)
    finally:
        sys.setprofile(before)
    return found


def first_call(name: str, calls: list[str]) -> int:
    """When a function was first called; a class, when one was first made."""
    tail = f"{name}.__init__" if name.split(".")[-1] in classes() else name
    return next((i for i, call in enumerate(calls) if call == tail or call.endswith(f".{tail}")), -1)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_journeys_go_where_the_page_says(number: int):
    page = next(p for p in DESIGN if p.stem == "journeys").read_text()
    section = re.split(r"^## ", page, flags=re.M)[number]
    rng = np.random.default_rng(0)
    x = rng.normal(size=300 if number == 3 else 20)
    names: dict[str, object] = {"np": np, "rz": rz, "x": x, "b": np.ones(300)}
    names["Ws"] = [rng.normal(size=(20, 20)) / 5 for _ in range(40)]
    rz.grad(np.sum)(np.ones(3))  # rules and backends are loaded
    calls = called(re.findall(r"^```python\n(.*?)^```$", section, flags=re.M | re.S)[0], names)
    turns = [re.findall(r"`([^`]+)`", row.split("|")[2]) for row in section.splitlines() if re.match(r"\| \d+ \|", row)]
    missed = [name for turn in turns for name in turn if first_call(name, calls) < 0]
    assert len(turns) > 10
    assert not missed, missed
    starts = [first_call(turn[0], calls) for turn in turns]
    assert starts == sorted(starts), list(zip(turns, starts, strict=True))
