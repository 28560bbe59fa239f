"""Random NumPy programs, checked in every way there is (docs/reliability.md); cases that failed once. `make fuzz N=…` runs more programs."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fuzz.checks import CHECKS, Point, Report, Wrong, examined, made  # noqa: E402
from fuzz.libraries import JAX, PLAIN, leaves  # noqa: E402
from fuzz.programs import Line, Program, random_program, shown  # noqa: E402
from fuzz.shrink import shrunk  # noqa: E402
from fuzz.templates import templates  # noqa: E402

SEED, COUNT, TOGETHER = 17, 300, 20
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_random_programs_are_right_in_every_way(first):
    for k in range(first, first + TOGETHER):
        program, report = examined(SEED, k)
        assert not report.failures, f"program {k}: {report.failures[0]}\n{shown(program)}"


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "fuzz_cases").glob("*.py")), ids=lambda p: p.stem)
def test_cases_that_failed_once(path):
    """Complete programs written by `make fuzz FLAGS=--keep`: f, its arguments by name, and the check that failed."""
    case = runpy.run_path(str(path))
    names = case["f"].__code__.co_varnames[: case["f"].__code__.co_argcount]
    program = Program({n: case[n] for n in names}, (), "")
    p = Given(program, case["f"])
    failure = made(p, case["CHECK"], CHECKS[case["CHECK"]][1])
    assert failure is None, failure


class Given(Point):
    """A program that is a function already: the same for NumPy and riesz, unknown to JAX."""

    def __init__(self, program, f):
        object.__setattr__(program, "function", lambda library: f)
        object.__setattr__(program, "known_to_jax", lambda: False)
        super().__init__(program, np.random.default_rng(0), Report())


# -- the fuzzer itself -----------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_program():
    for k in range(5):
        assert shown(random_program(3, k)) == shown(random_program(3, k))
    assert shown(random_program(3, 0)) != shown(random_program(4, 0))


def test_every_family_has_templates():
    found = templates()
    assert sum(map(len, found.values())) > 1500
    assert min(map(len, found.values())) >= 15


def test_programs_are_complete_code():
    for k in range(20):
        program = random_program(5, k)
        names: dict = {}
        exec(shown(program).replace("import riesz as rz", ""), {**PLAIN, "rz": PLAIN["rz"]}, names)
        for mine, its in zip(
            leaves(names[next(iter(program.args))]), leaves(next(iter(program.args.values()))), strict=True
        ):
            np.testing.assert_array_equal(mine, its)


def broken(text, jax="", mode="smooth"):
    """A program of one line that JAX reads otherwise: whoever believes JAX finds riesz wrong."""
    return Program(
        {"x": np.array([0.3, -1.2, 2.5]), "y": 2.5},
        (Line("v1", text, ("x", "y"), "test", jax), Line("v2", "{0} + 1.0", ("v1",), "test")),
        "v2",
        mode,
    )


def test_a_wrong_derivative_is_found_and_made_short(monkeypatch):
    """riesz as it is, references that have another derivative: as if riesz were wrong."""
    program = broken("np.sin({0}) * {1}")
    monkeypatch.setattr(Point, "steps", property(lambda self: 1.01 * self.forward))
    monkeypatch.setattr(Point, "jax_forward", property(lambda self: 1.01 * self.forward))
    failure = made(Point(program, np.random.default_rng(0), Report()), "jvp", CHECKS["jvp"][1])
    assert failure is not None and "off by" in failure.detail
    short, again = shrunk(program, failure, 5.0)
    assert again.signature == failure.signature
    assert len(shown(short)) < len(shown(program)) and "v2" not in shown(short)


@pytest.mark.parametrize(
    "check",
    ["value", "vjp", "the matrix is the map", "the sparse matrix is the matrix", "structure is true", "gradient"],
)
def test_each_check_can_fail(check, monkeypatch):
    p = Point(broken("np.sin({0}) * {1}"), np.random.default_rng(0), Report())
    match check:
        case "value":
            p.value = p.value + 1e-6
        case "vjp":
            p.__dict__["backward"] = p.backward * 1.001
        case "structure is true":
            p.__dict__["dense"] = p.dense + np.outer(np.arange(3.0), np.arange(1.0, 5.0))
        case _:
            p.__dict__["dense"] = p.dense * (1 + 1e-6)
    with pytest.raises(Wrong):
        CHECKS[check][1](p)


def test_an_internal_error_is_a_failure_and_a_refusal_is_none():
    program = Program({"x": np.ones(3)}, (Line("v1", "np.unique({0})", ("x",), "test"),), "v1")
    report = Report()
    assert made(Point(program, np.random.default_rng(0), report), "value", CHECKS["value"][1]) is None
    assert report.refusals

    def check(p):
        raise KeyError("inside")

    failure = made(Point(program, np.random.default_rng(0), report), "value", check)
    assert failure is not None and failure.signature.startswith("internal: KeyError")


def test_jax_by_numpy_is_jax():
    """JAX's primitives evaluated by NumPy give what JAX's compiler gives."""
    import jax

    from fuzz.eager import by_numpy

    seen = 0
    for k in range(80):
        program = random_program(8, k)
        if not program.known_to_jax() or program.mode != "smooth" or len(program.moving) < len(program.args):
            continue
        f = program.function(JAX)
        here = jax.tree.map(lambda x: np.asarray(x, float), program.values())
        try:
            with by_numpy():
                quick = jax.tree.leaves(jax.jvp(f, here, here))
        except Exception:
            continue
        if seen == 2:
            break
        seen += 1
        for a, b in zip(quick, jax.tree.leaves(jax.jvp(f, here, here)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert seen == 2
