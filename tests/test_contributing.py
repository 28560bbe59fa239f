"""CONTRIBUTING.md, followed to the letter: its code is put where it says, in a copy of the tree, and its tests are run there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = {  # tests that are there already and pick up what is added: words for -k, and how many tests there are to be
    "tests/tracing/test_coverage.py": ("polyder", 12),
    "tests/simplify/test_simplify.py": ("add-dup", 2),
}


class Block(NamedTuple):
    """Some code of the page: the file it belongs into, where in it ("": it is the whole file; "at the end";
    "after" or "before" the line that starts with some text), and the code."""

    path: str
    where: str
    line: str
    code: str


def blocks() -> list[Block]:
    """The code of the page, in order."""
    found = []
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        head, _, code = text.partition("\n")
        place = re.fullmatch(r"# (\S+?)(?:, (at the end|after|before)(?: (.+))?)?", head)
        assert place, f"the first line of a block says where it goes; got {head!r}"
        found.append(Block(place[1], place[2] or "", place[3] or "", code))
    return found


def written(block: Block, root: Path) -> None:
    """Put some code where it belongs."""
    file = root / block.path
    if not block.where:
        assert not file.exists(), f"{block.path} is there already"
        file.write_text(block.code, encoding="utf-8")
        return
    text = file.read_text(encoding="utf-8")
    if block.where == "at the end":
        file.write_text(f"{text}\n\n{block.code}", encoding="utf-8")
        return
    lines = text.splitlines(keepends=True)
    (at,) = [i + (block.where == "after") for i, line in enumerate(lines) if line.strip().startswith(block.line)]
    file.write_text("".join([*lines[:at], block.code, *lines[at:]]), encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The tree with everything that the page adds."""
    root = tmp_path_factory.mktemp("riesz")
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for block in blocks():
        written(block, root)
    return root


def run(root: Path, *command: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(root / "src"), "RIESZ_TESTS": "all", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *command], cwd=root, env=env, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_each_section_has_code_and_a_test():
    sections = dict(re.findall(r"^## (Add .*?)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M))
    assert list(sections) == [
        "Add an op",
        "Add a NumPy rule",
        "Add a law of the simplifier",
        "Add a backend",
        "Add a solver",
    ]
    for title, text in sections.items():
        heads = re.findall(r"```python\n# ([^\s,]+)", text)
        assert any([h.startswith("src/") for h in heads]) and any([h.startswith("tests/") for h in heads]), title


def test_the_tests_of_the_page_pass(copy: Path):
    own = [b.path for b in blocks() if b.path.startswith("tests/") and not b.where]
    assert len(own) == 3
    assert " passed" in run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *own)


@pytest.mark.parametrize("file", NAMED)
def test_the_tables_test_what_is_added(copy: Path, file: str):
    words, count = NAMED[file]
    assert f"{count} passed" in run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", file, "-k", words)


def test_the_pages_are_written_from_what_is_added(copy: Path):
    assert "np.polyder" in run(copy, "-m", "riesz.tracing.rules.coverage")
    assert "add-dup" in run(copy, "-m", "riesz.simplify.page")


def test_paths_and_commands_are_there():
    made = {b.path for b in blocks()}
    for path in re.findall(r"`((?:src|tests|docs|bench)/[\w/.]+)`", PAGE):
        assert path in made or (ROOT / path).exists(), path
    for path in re.findall(r"\]\(([^):]+)\)", PAGE):
        assert (ROOT / path).exists(), path
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"check", "test"} <= set(re.findall(r"(?:`|^)(?:\w+=\w+ )?make ([\w-]+)", PAGE, re.M)) <= targets
