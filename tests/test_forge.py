"""The files that a public forge reads: the workflows, the citation, what pyproject.toml and the changelog say of a release."""

import re
import tomllib
from pathlib import Path

import pytest

import riesz as rz

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def workflow(name: str):
    """A workflow; YAML reads the word `on` as a truth value."""
    found = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return found | {"on": found.pop(True)}


def steps(job):
    return (
        job["steps"],
        " ".join([s.get("run", "") for s in job["steps"]]),
        [s["uses"] for s in job["steps"] if "uses" in s],
    )


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda f: f.name)
def test_workflows_are_valid(file: Path):
    found = workflow(file.name)
    assert set(found) <= {"name", "on", "permissions", "concurrency", "jobs"}
    assert found["permissions"] == {"contents": "read"}
    for name, job in found["jobs"].items():
        assert {"runs-on", "steps", "timeout-minutes"} <= set(job), name
        needs = job.get("needs", [])
        assert {*([needs] if isinstance(needs, str) else needs)} <= set(found["jobs"]), name
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
        assert all([re.fullmatch(r"[\w-]+/[\w-]+@[\w/.]+", used) for used in steps(job)[2]]), name


def test_ci_runs_lint_types_and_tests_everywhere():
    jobs = workflow("ci.yml")["jobs"]
    assert "make lint" in steps(jobs["lint"])[1] and "pyright" in (ROOT / "Makefile").read_text(encoding="utf-8")
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert matrix["python"][0] == PROJECT["requires-python"].removeprefix(">=")
    assert {os.split("-")[0] for os in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert {"os": "ubuntu-latest", "level": "all"} in matrix["include"]
    assert "pytest" in steps(jobs["tests"])[1]
    assert "RIESZ_TESTS=all" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_a_tag_is_built_checked_and_published_without_a_password():
    found = workflow("release.yml")
    assert found["on"] == {"push": {"tags": ["v*"]}}
    jobs = found["jobs"]
    assert [jobs[name]["needs"] for name in ("check", "publish", "announce")] == ["build", "check", "publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and jobs["publish"]["environment"] == "pypi"
    assert any([used.startswith("pypa/gh-action-pypi-publish@") for used in steps(jobs["publish"])[2]])
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert [j for j, job in jobs.items() if "write" in str(job.get("permissions"))] == ["publish", "announce"]


def test_the_citation_has_its_fields():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "license", "repository-code"} <= set(found)
    assert found["cff-version"] == "1.2.0" and found["type"] == "software"
    assert str(found["version"]) == rz.__version__ and found["license"] == PROJECT["license"]
    assert all(
        [
            "name" in a or {"family-names", "given-names"} <= set(a)
            for a in (*found["authors"], *found["references"][0]["authors"])
        ]
    )


def test_the_version_has_a_section_in_the_changelog():
    assert re.search(rf"^## {re.escape(rz.__version__)} \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def test_addresses_are_given():
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} == set(PROJECT["urls"])
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        assert re.search(r"\w+@\w+\.\w+", (ROOT / name).read_text(encoding="utf-8"))
