"""`g.profile`: every step has a row, the rows add up, operations are those of the cost model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples

import riesz as rz
from riesz.backends.profile import SHOWN, Profile, Step, peak, waited
from riesz.errors import SpaceError
from riesz.programs.cost import cost


def check(g, *args):
    found = g.profile(*args)
    program = g.code.program
    assert [s.slot for s in found.steps] == sorted({s.slot for s in found.steps})
    assert len(found.steps) == len(program)
    assert found.flops == sum([s.flops for s in found.steps]) == cost(program).flops == g.cost.flops
    assert found.seconds == sum([s.seconds for s in found.steps])
    assert found.bytes == sum([s.bytes for s in found.steps])
    assert all([s.seconds > 0 and s.flops >= 0 and s.bytes >= 0 and 0 <= s.share < 1000 for s in found.steps])
    assert found.whole > 0 and found.backend == g.backend
    return found


@examples(0.3)
@given(st.integers(0, 10**6), st.booleans())
def test_random_programs(seed, single):
    f, args = random_function(seed, inputs=1 + seed % 2, single=single)
    found = check(rz.compile(f), *args)
    text = str(found)
    assert len(text.splitlines()) == 5 + min(len(found.steps), SHOWN) + (len(found.steps) > SHOWN)
    assert all([s.title in text for s in found.steps][:SHOWN]) or len(found.steps) > SHOWN


def test_a_product_of_matrices():
    A, B = np.ones((30, 40)), np.ones((40, 50))
    found = check(rz.compile(lambda A, B: np.tanh(A @ B), backend="numpy"), A, B)
    product, tanh = found.steps
    assert (product.flops, product.bytes, product.shape) == (
        2 * 30 * 40 * 50,
        8 * (30 * 40 + 40 * 50 + 30 * 50),
        (30, 50),
    )
    assert (tanh.title, tanh.flops, tanh.bytes) == ("tanh", 1500, 16 * 1500)
    text = str(found)
    assert "tanh → 30×50" in text and "backend 'numpy'" in text and "all steps" in text and "120 k" in text
    assert found._repr_html_().count("<tr>") == 1 + 3


def test_views_move_nothing_and_repeated_axes_count_once():
    found = check(rz.compile(lambda x: np.sin(np.broadcast_to(x[:, None], (7, 9)).T), backend="numpy"), np.ones(7))
    moved = {s.title: s.bytes for s in found.steps}
    assert moved["sin"] == 8 * (7 + 63) and moved["reshape_{7×1}"] == moved["ij→ji"] == 0


def test_an_argument_used_twice_is_read_once():
    (step,) = check(rz.compile(lambda x: x * x, backend="numpy"), np.ones(10)).steps
    assert step.bytes == 8 * 20


def test_float32_is_half_as_many_bytes():
    g = rz.compile(lambda x: np.sin(x), backend="numpy")
    assert g.profile(np.ones(100)).bytes == 2 * g.profile(np.ones(100, np.float32)).bytes == 1600


def test_loops_count_their_rounds():
    def f(x):
        return rz.fori_loop(0, 20, lambda i, y: np.sin(y) * x, x)

    found = check(rz.compile(f), np.ones(10))
    loop = max(found.steps, key=lambda s: s.flops)
    assert loop.flops == 20 * 20 and "20 rounds" in loop.title and loop.title in str(found)


@pytest.mark.parametrize("backend", ["auto", "python", "numpy", "steps"])
def test_every_backend(backend):
    g = rz.compile(rz.grad(lambda x: np.sum(np.exp(x) * x[0])), backend=backend)
    assert repr(check(g, np.array([1.0, 2.0]))).startswith("grad(<lambda>): backend")


def test_nothing_to_do():
    found = check(rz.compile(lambda x: x, backend="numpy"), np.ones(3))
    assert found.steps == [] and "all steps" in str(found)


def test_no_numbers():
    check(rz.compile(lambda x: np.sum(np.sin(x)), backend="numpy"), np.ones(0))


def test_long_programs_show_the_longest_steps():
    steps = [Step(k, f"step{k}", (), float(k), 10, 20, 0.5) for k in range(1, 101)]
    rows = Profile("f", "steps", steps, 1.0).table()
    assert len(rows) == SHOWN + 2
    assert rows[0][0] == f"step{101 - SHOWN} → ℝ" and rows[-2][0] == f"{100 - SHOWN} other steps"
    assert rows[-1][0] == "all steps" and rows[-1][5] == "50%"


def test_deep_programs():
    def f(x):
        for _ in range(3000):
            x = np.sin(x)
        return x

    found = check(rz.compile(f, backend="steps"), 1.0)
    assert len(found.steps) == 3000


def test_arrays_computed_elsewhere_are_waited_for():
    class Later:
        there = False

        def block_until_ready(self):
            self.there = True

    result = {"a": (Later(), 1.0), "b": [Later()]}
    waited(result)
    assert result["a"][0].there and result["b"][0].there


def test_the_peak_is_measured_once():
    assert peak() is peak() and peak().flops > 0 and peak().bandwidth > 0


def test_linear_maps_have_no_profile():
    with pytest.raises(SpaceError, match="LinearMaps"):
        rz.compile(rz.jacobian(np.sin)).profile(np.ones(3))
