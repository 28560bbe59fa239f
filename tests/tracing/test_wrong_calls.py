"""Wrong calls: whatever is wrong with the arguments of a NumPy function, the error is NumPy's own or a sentence of riesz; and no call is wrong to
riesz alone. Calls are made from the tables of cases: other shapes, other numbers, arguments left out, added or misspelt."""

from __future__ import annotations

import ast
import random
import warnings
from typing import Any

import cases_pointwise  # noqa: F401  (the tables enter themselves)
import cases_structure  # noqa: F401
import numpy as np
import pytest
from cases import CASES, Case

import riesz as rz
from riesz.errors import RieszError

SHAPES = [(), (0,), (2,), (3,), (5,), (1, 3), (3, 4), (3, 3), (0, 3), (2, 2, 2), (1, 1), (2, 3, 4, 1)]
AXES = ["9", "-7", "(0, 0)", "1.5", "'a'", "(0, 5)", "0", "None", "(0, 1)"]
ROUNDS = 2
PARTS = 8


def changed(text: str, rng: random.Random) -> str:
    """A call with one thing other than it should be."""
    tree = ast.parse(text, mode="eval")
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    numbers = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and not isinstance(n.value, str)]
    ways = [*["word", "less", "more", "axis"] * bool(calls), *["number"] * 3 * bool(numbers)]
    way = rng.choice(ways) if ways else ""
    if way == "number":
        rng.choice(numbers).value = rng.choice([7, -9, 1.5, True, 0, -1, 2])
    elif way:
        call = rng.choice(calls)
        if way == "word":
            call.keywords.append(ast.keyword("banana", ast.Constant(1)))
        elif way == "axis" and not any(k.arg == "axis" for k in call.keywords):
            call.keywords.append(ast.keyword("axis", ast.parse(rng.choice(AXES), mode="eval").body))
        elif way == "less" and call.args:
            call.args.pop(rng.randrange(len(call.args)))
        elif way == "more":
            call.args.insert(
                rng.randrange(len(call.args) + 1), ast.parse(rng.choice(["x", "3", "(1, 2)"]), mode="eval").body
            )
    return ast.unparse(tree)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (dict, list, tuple)):
        return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in leaves(part)]
    return [] if value is None else [value]


def outcome(f: Any, xs: list[Any]) -> Any:
    try:
        return leaves(f(*xs))
    except Exception as problem:
        return problem


def complaint(text: str, xs: list[Any], numpys: Any, ours: Any) -> str:
    """What is wrong with our answer; empty if nothing is."""
    call = f"{text} at {[np.shape(x) for x in xs]}: NumPy {numpys!r:.100}, riesz {ours!r:.150}"
    if isinstance(ours, RieszError):
        return ""
    if isinstance(ours, Exception):
        if type(ours) is type(numpys) or "lambda" in text:  # functions have their own errors
            return ""
        known = isinstance(ours, (ValueError, TypeError, IndexError)) and isinstance(numpys, Exception)
        stray = type(ours) is IndexError and "[" not in text and "take" not in text
        return "" if known and not stray else call
    if (
        isinstance(numpys, Exception) or "empty" in text or "gradient" in text
    ):  # numbers that nobody wrote; divisions by a distance of 0
        return ""
    same = len(numpys) == len(ours) and all([alike(a, b) for a, b in zip(numpys, ours, strict=True)])
    return "" if same else call


def alike(a: Any, b: Any) -> bool:
    """Whether two answers have the same shape and nearly the same numbers; words (np.ravel("F")) are the same."""
    if np.asarray(a).dtype.kind == "U":
        return np.array_equal(a, b)
    return np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-6, 1e-6, True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_wrong_calls_are_wrong_in_numpys_words(part: int):
    rng = random.Random(part)
    found: list[str] = []

    def tried(c: Case) -> None:
        text = c.text if rng.random() < 0.5 else changed(c.text, rng)
        xs = c.sample()
        if text == c.text or rng.random() < 0.3:
            i = rng.randrange(len(xs))
            xs[i] = c.inputs[i].at(rng.choice(SHAPES)).sample(np.random.default_rng(0))
        f = eval(f"lambda {', '.join('xyzu'[: len(xs)])}: {text}", {"np": np, "onp": np})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            problem = complaint(text, xs, outcome(f, xs), outcome(rz.function(f), [np.array(x) for x in xs]))
        if problem and "flat[" not in text:
            found.append(problem)

    for _ in range(ROUNDS):
        for c in CASES[part::PARTS]:
            tried(c)
    assert not found, "\n".join(found)


WRONG = {
    "np.concatenate([x, x[0]])": ValueError,
    "np.concatenate([x, x], axis=5)": np.exceptions.AxisError,
    "np.stack([x, x[0]])": ValueError,
    "np.hstack([x, x[0]])": ValueError,
    "np.vstack([x, x.T])": ValueError,
    "np.column_stack([x, x[:2]])": ValueError,
    "np.block([[x, x[0]]])": ValueError,
    "np.reshape(x, (5, 5))": ValueError,
    "np.transpose(x, (0, 0))": ValueError,
    "np.transpose(x, (0,))": ValueError,
    "np.moveaxis(x, 5, 0)": np.exceptions.AxisError,
    "np.swapaxes(x, 0, 7)": np.exceptions.AxisError,
    "np.broadcast_to(x, (2, 2))": ValueError,
    "np.split(x, 5)": ValueError,
    "np.einsum('ij,jk->ik', x, x)": ValueError,
    "np.einsum('ii', x)": ValueError,
    "np.einsum('ij->ijk', x)": ValueError,
    "np.sum(x, axis=1.5)": TypeError,
    "np.sum(x, axis=True)": TypeError,
    "np.matvec(x, x[0, :1])": ValueError,
    "np.vecdot(x, x[:, :1])": ValueError,
    "x[0, 0, 0]": IndexError,
    "x[7]": IndexError,
    "x['a']": IndexError,
    "x[[0, 1], [0, 1, 2]]": IndexError,
    "x @ x": ValueError,
    "x + x.T": ValueError,
    "np.linalg.inv(x)": np.linalg.LinAlgError,
    "np.take(x, 99)": IndexError,
    "np.repeat(x, [1, 2])": ValueError,
    "np.cumulative_sum(x)": ValueError,
    "np.diff(x, n=-1)": ValueError,
    "np.linspace(x, x, -1)": ValueError,
    "np.argmax(x[:0], axis=0)": ValueError,
}


@pytest.mark.parametrize("text", WRONG)
def test_the_error_is_of_numpys_type(text: str):
    f = eval(f"lambda x: {text}", {"np": np})
    with pytest.raises(WRONG[text]):
        f(np.ones((3, 4)))
    with pytest.raises((WRONG[text], RieszError)) as caught:
        rz.function(f)(np.ones((3, 4)))
    assert len(str(caught.value)) > 10


IGNORED_BEFORE = [
    "np.nansum(x, where=onp.array([True, False, True]))",
    "np.nansum(x, initial=2.0)",
    "np.nanmean(x, where=onp.array([True, False, True]))",
    "np.nanmax(x, axis=0, initial=9.0)",
    "np.nanmax(onp.nan * x)",
    "np.any(x > 0.5, where=onp.array([False, False, True]))",
    "np.all(x > 0.5, where=onp.array([False, False, True]))",
    "np.var(x, ddof=7)",
    "np.max(x[0], initial=9.0)",
    "np.argmax(x, keepdims=True)",
    "np.add.reduce(x[0])",
    "np.logaddexp.reduce(x[:0])",
    "np.add.reduce(x, initial=5.0)",
    "np.take(x, True)",
    "np.ascontiguousarray(x[0])",
    "np.diff(x, n=0, prepend=1.0)",
    "np.clip(x, 0.0, 1.0, dtype=float)",
    "np.cov(x[:1])",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", IGNORED_BEFORE)
def test_no_argument_is_ignored(text: str):
    f = eval(f"lambda x: {text}", {"np": np, "onp": np})
    x = np.array([0.25, 0.75, 1.25])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rz.function(f)(x), f(x))
        assert np.shape(rz.function(f)(x)) == np.shape(f(x))


@pytest.mark.parametrize("text", ["np.matmul(x, x, axes=[(0, 1), (0, 1), (0, 1)])"])
def test_what_is_not_known_is_refused(text: str):
    with pytest.raises(rz.TraceError, match="not known"):
        rz.function(eval(f"lambda x: {text}", {"np": np}))(np.ones((3, 3)))
