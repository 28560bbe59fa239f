"""Are the wheel and the source archive whole? `python release/check_dist.py dist`, or `make dist`.

Looks into both, installs the wheel into a new virtual environment, and uses it there: a derivative, a display, the
command, the page's files. `--no-install` leaves the second half out.
"""

from __future__ import annotations

import argparse
import email
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
USED = """
import numpy as np, riesz as rz
from importlib.metadata import metadata, entry_points
from importlib.resources import files
L = rz.jacobian(lambda x: np.sin(x) * x[0])(np.ones(3))
assert np.allclose(L.H(np.ones(3)), L.to_dense().T @ np.ones(3))
assert "<math" in L._repr_html_() and L.diagram().svg().startswith("<svg") and L.picture().svg().startswith("<svg")
assert (files("riesz") / "py.typed").is_file()
page = files("riesz") / "command" / "page"
assert (page / "index.html").is_file() and (page / "gallery.json").is_file()
assert [e.value for e in entry_points(group="console_scripts", name="riesz")] == ["riesz.command.command_line:main"]
assert metadata("riesz")["Version"] == rz.__version__
print("riesz", rz.__version__, "works")
"""
"""What a new user could do first."""


def package_files() -> set[str]:
    """What git has of the package: code, and what the page needs."""
    listed = subprocess.run(["git", "ls-files", "src/riesz"], cwd=ROOT, capture_output=True, text=True)
    found = listed.stdout.split("\n") if listed.returncode == 0 else []
    every = found or [str(p.relative_to(ROOT)) for p in (ROOT / "src" / "riesz").rglob("*") if p.is_file()]
    return {p.removeprefix("src/") for p in every if p and "__pycache__" not in p}


def wheel_problems(path: Path) -> list[str]:
    """What is missing from a wheel, or too much in it."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        (info,) = {n.split("/")[0] for n in names if n.split("/")[0].endswith(".dist-info")}
        said = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    wanted = package_files()
    problems = [f"{path.name} has no {name}" for name in sorted(wanted - names)]
    problems += [
        f"{path.name} has {n}, which is no file of the package" for n in sorted(names - wanted) if info not in n
    ]
    due = ("Summary", "License-Expression", "Requires-Python", "Keywords", "Project-URL", "Description-Content-Type")
    problems += [f"{path.name} does not say {field}" for field in due if not said.get(field)]
    if f"{info}/licenses/LICENSE" not in names or f"{info}/entry_points.txt" not in names:
        problems.append(f"{path.name} has no licence or no command")
    return problems


def sdist_problems(path: Path) -> list[str]:
    """What is missing from a source archive."""
    with tarfile.open(path) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    wanted = {f"src/{name}" for name in package_files()}
    wanted |= {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "pyproject.toml",
        "Makefile",
        "tests/conftest.py",
    }
    wanted |= {str(p.relative_to(ROOT)) for p in (ROOT / "docs" / "pictures").iterdir()}
    return [f"{path.name} has no {name}" for name in sorted(wanted - names)]


def used(wheel: Path) -> None:
    """Install the wheel into a new environment and use it there, away from the source."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        run = [str(bin / "python"), "-m", "pip", "install", "--quiet", str(wheel.resolve())]
        subprocess.run(run, check=True, cwd=folder)
        subprocess.run([str(bin / "python"), "-c", USED], check=True, cwd=folder)
        subprocess.run([str(bin / "riesz"), "doctor"], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--no-install", action="store_true", help="look into the files only")
    given = parser.parse_args()
    wheels, archives = sorted(given.folder.glob("riesz-*.whl")), sorted(given.folder.glob("riesz-*.tar.gz"))
    if not wheels or not archives:
        sys.exit(f"{given.folder} has no wheel or no source archive; write python -m build")
    problems = [p for w in wheels for p in wheel_problems(w)] + [p for a in archives for p in sdist_problems(a)]
    if problems:
        sys.exit("\n".join(problems))
    if not given.no_install:
        used(wheels[-1])
    print(f"{wheels[-1].name} and {archives[-1].name} are whole")


if __name__ == "__main__":
    main()
