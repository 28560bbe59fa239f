"""Pages with cells as notebooks that open in Jupyter as they are. Programs that a page quotes are written by a cell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACE = HERE / "_build" / "notebooks"

_CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```\n", flags=re.M | re.S)
_QUOTED = re.compile(r"^```\{literalinclude\} (\S+)\n(?::pyobject: (\w+)\n)?(?:^:.*\n)*^```\n", flags=re.M)
_TABLE = re.compile(r"^```\{toctree\}.*?^```\n", flags=re.M | re.S)
_TASK = re.compile(r"^from tasks import (\w+)$", flags=re.M)


def has_cells(text: str) -> bool:
    """Whether a page has cells that are run."""
    return text.startswith("---\nfile_format: mystnb\n")


def notebook(page: Path) -> dict[str, Any]:
    """A page with cells in the format of Jupyter."""
    text = page.read_text(encoding="utf-8").split("---\n", 2)[2]
    text = _TABLE.sub("", _QUOTED.sub(lambda found: _part(page, found), text))
    cells: list[dict[str, Any]] = []
    for k, part in enumerate(_CELL.split(text)):
        source = re.sub(r"^:.*\n", "", part, flags=re.M).strip("\n") if k % 2 else part.strip()
        for name in _TASK.findall(source) if k % 2 else ():
            program = (HERE.parent / "examples" / "tasks" / f"{name}.py").read_text(encoding="utf-8")
            cells.append(_cell("code", f"%%writefile {name}.py\n{program}", len(cells)))
        if source:
            cells.append(_cell("code" if k % 2 else "markdown", _TASK.sub(r"import \1", source), len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _part(page: Path, found: re.Match[str]) -> str:
    """What a page quotes: a function of a program; whole programs are written by a cell where they are used."""
    path, name = found[1], found[2]
    if name is None:
        return "A cell above writes it.\n"
    lines = (page.parent / path).read_text(encoding="utf-8")
    body = re.search(rf"^def {name}\b.*?(?=^\S(?<!\)))", f"{lines}\nend", flags=re.M | re.S)
    assert body is not None, f"{path} has no {name}"
    return f"```python\n{body[0].strip()}\n```\n"


def _cell(kind: str, source: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
    return found | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def place(page: str) -> Path:
    """Where the notebook of a page is, by the page's name."""
    return PLACE / f"{page}.ipynb"


def write() -> None:
    """Writes the notebooks of all pages with cells."""
    for page in sorted(HERE.rglob("*.md")):
        name = page.relative_to(HERE).with_suffix("").as_posix()
        if not name.startswith(("_build/", "api/")) and has_cells(page.read_text(encoding="utf-8")):
            path = place(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(notebook(page), ensure_ascii=False, indent=1), encoding="utf-8")


def offered(page: str) -> str:
    """The line at the end of a page that gives its notebook."""
    up = "../" * page.count("/")
    return f"\n\n{{download}}`This page as a notebook <{up}_build/notebooks/{page}.ipynb>`\n"
