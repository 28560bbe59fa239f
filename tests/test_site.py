"""The site in docs/: every page is reached, every public name has an entry, cells are code. `make docs` runs them."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import riesz as rz

DOCS = Path(__file__).parent.parent / "docs"
sys.path.append(str(DOCS))
import api_pages  # noqa: E402
import notebooks  # noqa: E402

PAGES = [p for p in sorted(DOCS.rglob("*.md")) if not {"_build", "api"} & {*p.relative_to(DOCS).parts}]


def test_every_public_name_has_an_entry(tmp_path):
    api_pages.write(tmp_path)
    text = "\n".join([p.read_text() for p in tmp_path.glob("*.md")])
    assert {f"rz.{name}" for name in rz.__all__} <= set(re.findall(r"^## (rz\.\w+)$", text, flags=re.M))
    assert len(list(tmp_path.glob("*.md"))) == len(api_pages.GROUPS) + 1
    assert text.count("```") % 2 == 0 and "<BLANKLINE>" not in text
    assert {"rz.add", "rz.bra"} <= set(
        re.findall(r"^## (rz\.\w+)$", (tmp_path / "combinators.md").read_text(), flags=re.M)
    )
    for held in ("LeastSquaresResult", "Solver", "Diagram", "Compiled", "MapPlan"):
        assert f"\n## {held}\n" in text
    known = [name for names in api_pages.CHOSEN.values() for name in names.split()]
    assert set(known) <= set(rz.__all__) and len(known) == len(set(known))


def test_every_page_is_in_a_table_of_contents():
    reached = {DOCS / "index.md", DOCS / "api" / "index.md"}
    for page in PAGES:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), flags=re.M | re.S):
            for line in [x for x in block.splitlines() if x and not x.startswith(":")]:
                reached |= {p.resolve() for p in page.parent.glob(f"{line}.md")} if "*" in line else set()
                reached.add((page.parent / f"{line}.md").resolve())
    assert not [p for p in PAGES if p.resolve() not in reached]


@pytest.mark.parametrize("page", [p for p in PAGES if "{code-cell}" in p.read_text()], ids=lambda p: p.stem)
def test_cells_and_what_they_quote_are_there(page):
    text = page.read_text()
    assert text.startswith("---\nfile_format: mystnb\n")
    for cell in re.findall(r"^```\{code-cell\}\n(.*?)^```", text, flags=re.M | re.S):
        ast.parse(re.sub(r"^:.*$", "", cell, flags=re.M))
    for name, part in re.findall(r"\{literalinclude\} (\S+)\n:pyobject: (\w+)", text):
        assert re.search(rf"^def {part}\b", (page.parent / name).read_text(), flags=re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if "{code-cell}" in p.read_text()], ids=lambda p: p.stem)
def test_pages_with_cells_are_notebooks_that_run_alone(page):
    """Every cell is code or text without directives, and the programs that are imported are written before."""
    found = notebooks.notebook(page)
    written = set()
    for cell in found["cells"]:
        text = cell["source"]
        assert cell["cell_type"] in ("code", "markdown") and text
        if cell["cell_type"] == "markdown":
            assert not re.search(r"```\{|^:\w+:", text, flags=re.M) or "{toctree}" in text
        elif named := re.match(r"%%writefile (\w+)\.py\n", text):
            written.add(named[1])
            ast.parse(text[named.end() :])
        else:
            ast.parse(text)
            assert "from tasks" not in text
    needed = set(re.findall(r"^from tasks import (\w+)$", page.read_text(), flags=re.M))
    assert written == needed and len({c["id"] for c in found["cells"]}) == len(found["cells"]) > 2
    assert found["nbformat"] == 4 and found["metadata"]["kernelspec"]["name"] == "python3"
    assert notebooks.has_cells(page.read_text()) and page.stem in notebooks.offered(page.stem)


def test_pictures_and_files_of_pages_are_there():
    for page in PAGES:
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)|\{(?:include|literalinclude)\} (\S+)", page.read_text()):
            name = "".join(target)
            if not name.startswith("http"):
                assert (page.parent / name).is_file(), (page.name, name)


def test_links_that_are_none():
    inside = api_pages.with_links_inside
    assert inside("[f](x) and [a](b.md) `[f](x)`") == "\\[f\\](x) and [a](b.md) `[f](x)`"
    assert inside("see [it](../src/riesz/a.py) or [them](../README.md#a)") == "see it or them"
    assert (
        inside("[web](https://example.org) ![p](pictures/a.png)") == "[web](https://example.org) ![p](pictures/a.png)"
    )
