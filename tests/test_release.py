"""Ready to publish: metadata, what is in wheel and source archive, the conda recipe, badges and pictures of the README."""

import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest

import riesz as rz

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
sys.path.insert(0, str(ROOT / "release"))
import check_dist  # noqa: E402
import draw  # noqa: E402


def test_the_metadata_is_complete():
    assert {
        "description",
        "readme",
        "license",
        "keywords",
        "classifiers",
        "authors",
        "urls",
        "scripts",
    } <= PROJECT.keys()
    assert len(PROJECT["description"]) < 200
    versions = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert versions == re.findall(r"[\d.]+", re.search(r"python: \[(.*?)\]", ci)[1])  # those that are tested
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= PROJECT["urls"].keys()


def test_the_conda_recipe_says_what_pyproject_says():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "release" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == rz.__version__
    assert recipe["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    needed = [r.replace(" ", "") for r in recipe["requirements"]["run"] if not r.startswith("python ")]
    assert needed == PROJECT["dependencies"]
    ((name, target),) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}"]
    assert recipe["about"]["summary"] == PROJECT["description"] and recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["homepage"] == PROJECT["urls"]["Homepage"]


def test_badges_are_true():
    shown = re.findall(r"docs/pictures/badge-(\w+)\.svg", (ROOT / "README.md").read_text(encoding="utf-8"))
    true = draw.badges()
    assert shown and set(shown) <= set(true)
    for name, value in true.items():
        text = (draw.PICTURES / f"badge-{name}.svg").read_text(encoding="utf-8")
        assert text == draw.badge(name, value), "python release/draw.py writes them again"
        assert ET.fromstring(text)[0].text == f"{name}: {value}"


def test_the_pictures_of_the_readme_are_there():
    named = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(named) >= 3
    for words, path in named:
        assert words and (ROOT / path).is_file(), path
    for name in ("diagram", "structure"):
        assert ET.fromstring((draw.PICTURES / f"{name}.svg").read_text(encoding="utf-8"))[0].text


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_wheel_and_source_archive_are_whole(built):
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert check_dist.wheel_problems(wheel) == []
    assert check_dist.sdist_problems(archive) == []


def test_what_is_missing_is_found(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    poor = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(poor, "w") as new:
        for name in old.namelist():
            if not name.endswith(("py.typed", "index.html")):
                new.writestr(name, old.read(name))
    problems = check_dist.wheel_problems(poor)
    assert len(problems) == 2 and "py.typed" in " ".join(problems) and "index.html" in " ".join(problems)


def test_the_wheel_works_away_from_the_source(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import riesz; assert riesz.__file__.startswith({str(tmp_path)!r})"
    run = [sys.executable, "-c", code + check_dist.USED]
    done = subprocess.run(
        run, cwd=tmp_path, capture_output=True, text=True, env={"PATH": "", "PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
