"""Texts from strangers: what one takes is known from shapes, before anything is computed; reading one is linear in its length."""

import json
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import riesz as rz
from riesz.text.parsing import parse
from riesz.text.text_limits import LIMIT

x = np.linspace(0.1, 1.0, 300)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x -> sum(kron(kron(x, x), kron(x, x)))", "kron(kron(x, x), kron(x, x))"),
        ("x -> sin(x) + diag(kron(x, x))[0, :300]", "diag(kron(x, x))"),
        (
            "x -> x + sum(x[:, None, None, None] * x[:, None, None] * x[:, None] * x)",
            "x[:, None, None, None] * x[:, None, None] * x[:, None] * x",
        ),
        ("x -> inv(outer(kron(x, x[:20]), kron(x, x[:20])))", "outer(kron(x, x[:20]), kron(x, x[:20]))"),
        ("x -> einsum('a,b,c,d->abcd', x, x, x, x)", "einsum('a,b,c,d->abcd', x, x, x, x)"),
    ],
)
def test_what_would_take_too_much_is_refused_and_shown(text, part):
    with pytest.raises(rz.ExpressionError, match="limit") as problem:
        rz.function(text)(x)
    line, carets = str(problem.value).splitlines()[-2:]
    assert line[carets.index("^") : carets.rindex("^") + 1] == part


def test_matrices_cost_the_cube_of_their_order():
    text = "A -> solve(A @ A, A)"
    A = np.eye(60)
    n = 60**3
    rz.function(text, limit=(20 * n, 1e9))(A)
    with pytest.raises(rz.ExpressionError, match="operations"):
        rz.function("A -> inv(A)", limit=(n // 4, 1e9))(A)


def test_a_limit_is_a_number_a_pair_or_none():
    text = "x -> sum(outer(x, x))"
    assert np.isclose(rz.function(text, limit=None)(x), np.sum(x) ** 2)
    assert np.isclose(rz.function(text, limit=1e7)(x), np.sum(x) ** 2)
    for limit, what in ((1e4, "operations"), ((1e9, 1e4), "bytes"), ((1e4, 1e9), "operations")):
        with pytest.raises(rz.ExpressionError, match=what):
            rz.function(text, limit=limit)(x)
    for wrong in ("much", (1, 2, 3), -1, True):
        with pytest.raises(rz.ExpressionError, match=r"limit=… takes None"):
            rz.function(text, limit=wrong)
    with pytest.raises(rz.SpaceError, match="for functions given as texts"):
        rz.function(np.sin, limit=1e6)


def test_the_limit_goes_along_into_derivatives_and_pickles():
    f = rz.function("x -> sum(outer(x, x))", limit=1e4)
    for g, at in ((rz.grad(f), x), (rz.hessian(f), x), (rz.vmap(f), np.stack([x, x]))):
        with pytest.raises(rz.ExpressionError, match="operations"):
            g(at)
    assert pickle.loads(pickle.dumps(parse("x -> x", LIMIT._replace(bytes=7.0)))).limit.bytes == 7.0


def test_arguments_and_what_was_there_before_do_not_count():
    big = np.ones((1000, 400))
    assert rz.function("X, w -> sum(X @ w)", limit=(2e6, 1e5))(big, np.ones(400)) == 400_000.0
    inner = rz.function("x -> sum(x * x)", limit=(1e4, 1e4))
    assert np.isclose(
        rz.grad(lambda v: inner(np.sin(v)[:10]) + np.sum(np.outer(v, v)))(x)[0], np.sin(2 * x[0]) + 2 * np.sum(x)
    )


HOSTILE = [
    "x -> tensordot(x, x, 2*10**7)",
    "x -> tensordot(x, x, -1)",
    "x -> round(x, 10**9)",
    "x -> round(1.5, 10**9) * x",
    "x -> round(x, -10**9)",
    "x -> reshape(x, (10**9, 10**9))",
    "x -> expand_dims(x, 10**9)",
    "x -> stack([x, x], 10**9)",
    "x -> 9**9**9 * x",
    "x -> x[" + ",".join(["None"] * 50_000) + "]",
    "x -> transpose(x, (" + "0," * 50_000 + "))",
    "x -> einsum('" + "a" * 100_000 + "', x)",
    "x -> einsum('"
    + ",".join("abcdefghijklmnopqrstuvwxyz")
    + "->abcdefghijklmnopqrstuvwxyz', "
    + ",".join(["x"] * 26)
    + ")",
    "x -> " + "[" * 80 + "x" + "]" * 80,
    "x -> x" + "[None]" * 90,
    "x -> " + "-" * 100_000 + "x",
    "x -> " + "(" * 100_000 + "x",
    "x -> " + "+".join(["x"] * 100_000),
    ",".join(f"p{i}" for i in range(20_000)) + " -> p0 + q",
]


def test_hostile_texts_are_refused_at_once_and_in_little_memory():
    """In a process of its own, whose memory is bounded: each is refused with a sentence, all of them within seconds."""
    code = """
import json, resource, sys, numpy as np, riesz as rz
rz.function("x -> sum(x)")(np.ones(3))
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for text in json.load(sys.stdin):
    try:
        rz.function(text)(np.linspace(0.1, 1.0, 300))
    except (rz.errors.RieszError, ValueError, IndexError) as problem:
        assert len(str(problem)) < 1000, str(problem)[:200]
    else:
        raise SystemExit(f"computed: {text[:60]}")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert int(run.stdout) < 400_000  # kB: the tree that Python's parser makes of 300 kB of text


@pytest.mark.parametrize("text", ["tensordot(x, x, 2 * 10 ** 7)", "sum(x, axis=10 ** 9)", "tensordot(x, x, axes=-65)"])
def test_an_axis_is_one_that_arrays_can_have(text):
    """Also for numbers, where NumPy would write a list of as many axes first."""
    with pytest.raises(rz.errors.ExpressionError, match="at most 64 axes"):
        rz.function(f"x -> {text}")


@pytest.mark.parametrize(
    "text",
    [
        lambda n: ",".join([f"p{i}" for i in range(n)]) + f" -> p0 + p{n - 1}",
        lambda n: "x -> [" + "x, " * n + "x]",
        lambda n: "x -> x" + " and x" * n,
        lambda n: "x -> x[[" + "0, " * n + "0]]",
        lambda n: "α -> concatenate([" + "α, " * n + "α])",
    ],
)
def test_reading_is_linear_in_the_text(text):
    def seconds(n):
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            parse(text(n))
            best = min(best, time.process_time() - start)
        return best

    assert seconds(32_000) < 30 * seconds(4_000)  # 8 times the text; a quadratic part would take 64 times as long
