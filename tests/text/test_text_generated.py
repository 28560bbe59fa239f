"""Texts that are long, deep, random or damaged: they mean what Python means by them, or are an ExpressionError; never anything else."""

import inspect
import random
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import riesz as rz
from riesz import ExpressionError
from riesz.text.parsing import parse, shown

X = np.array([0.3, -1.2, 2.5])
Y = np.array([1.5, 0.7, 0.2])
NAMES = {k: getattr(np, k) for k in dir(np) if not k.startswith("_")}


def python(text, **values):
    """What Python makes of the same expression, with NumPy's names; only here, and only on texts made in this file."""
    return eval(text, {"__builtins__": {}, **NAMES, **values})


# -- depth and size -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 900, 5_000, 100_000])
@pytest.mark.parametrize(
    "nested",
    [
        lambda n: "(" * n + "x" + ")" * n,
        lambda n: "-" * n + "x",
        lambda n: "not " * n + "x",
        lambda n: "x + " * n + "x",
        lambda n: "x ** " * n + "x",
        lambda n: "sin(" * n + "x" + ")" * n,
        lambda n: "[" * n + "x" + "]" * n,
        lambda n: "x" + "[0]" * n,
        lambda n: "x < " * n + "x",
        lambda n: "x and " * n + "x",
        lambda n: "x if x else " * n + "x",
        lambda n: "lambda: " * n + "x",
        lambda n: "x" + ".a" * n,
        lambda n: "x" + "(0)" * n,
        lambda n: "{" * n,
        lambda n: "x, " * n + "x",
        lambda n: "x" * n,
        lambda n: "9" * n,
    ],
)
def test_depth_works_or_is_an_error(n, nested):
    try:
        f = parse("x -> " + nested(n))
    except ExpressionError as problem:
        assert len(str(problem)) < 1000
    else:
        assert callable(f)


def test_a_deep_expression_is_computed():
    n = 800
    assert parse("x -> " + "x + " * n + "x")(1.0) == n + 1
    assert parse("x -> " + "-" * n + "x")(1.0) == 1.0
    assert rz.grad("x -> " + "x + " * n + "x")(1.0) == n + 1


def test_depth_is_an_error_near_the_end_of_the_stack_too():
    """Where Python's stack is nearly used up, and in a thread with a small one: it works, if Python's parser goes that deep, or is an error."""
    text = "x -> " + "-" * 5_000 + "x"
    outcomes = []

    def down(n):
        if n:
            return down(n - 1)
        try:
            outcomes.append(parse(text)(2.0))
        except Exception as problem:
            outcomes.append(type(problem))

    down(sys.getrecursionlimit() - len(inspect.stack()) - 100)
    thread = threading.Thread(target=lambda: down(100))
    thread.start()
    thread.join()
    assert len(outcomes) == 2 and all(found in (2.0, ExpressionError) for found in outcomes), outcomes


def test_reading_is_linear_in_the_length():
    parts = " + ".join([f"sin(é{i % 7} * x)" for i in range(400)])
    names = ", ".join(["x", *[f"é{i}" for i in range(7)]])
    f = parse(f"{names} -> [{', '.join([parts] * 10)}]")
    assert f(1.0, *[0.5] * 7).shape == (10,)


# -- generated --------------------------------------------------------------------------------------------


NUMBER = st.sampled_from(["0", "1", "2", "3", "0.5", "1e-2", "7.25", "pi", "e"])
VALUE = st.sampled_from(["x", "y", "u", "v"])


def _more(inside):
    pair = st.tuples(inside, inside)
    return st.one_of(
        st.tuples(inside, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inside).map(
            lambda t: f"{t[0]} {t[1]} {t[2]}"
        ),
        st.tuples(inside, st.sampled_from(["2", "3", "-1", "0.5", "y"])).map(lambda t: f"({t[0]}) ** {t[1]}"),
        st.tuples(st.sampled_from("+-"), inside).map(lambda t: f"{t[0]}{t[1]}"),
        inside.map(lambda s: f"({s})"),
        st.tuples(
            st.sampled_from(["sin", "cos", "tanh", "exp", "arctan", "square", "abs", "floor", "sqrt", "log1p"]), inside
        ).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(st.sampled_from(["maximum", "minimum", "hypot", "arctan2", "add", "multiply"]), pair).map(
            lambda t: f"{t[0]}({t[1][0]}, {t[1][1]})"
        ),
        st.tuples(pair, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), pair).map(
            lambda t: f"where({t[0][0]} {t[1]} {t[0][1]}, {t[2][0]}, {t[2][1]})"
        ),
        st.tuples(st.sampled_from(["sum", "mean", "max", "prod"]), inside).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(inside, st.sampled_from(["[0]", "[-1]", "[1:]", "[::-1]", "[..., None]"])).map(
            lambda t: f"(u + {t[0]}){t[1]}"
        ),
    )


EXPRESSIONS = st.recursive(st.one_of(NUMBER, VALUE), _more, max_leaves=12)


@given(EXPRESSIONS)
def test_random_expressions_agree_with_python(text):
    values = {"x": np.float64(0.7), "y": np.float64(-1.3), "u": X, "v": Y}
    with np.errstate(all="ignore"):
        try:
            expected = python(text, **values)
        except (ArithmeticError, ValueError) as problem:
            assume(
                "negative integer powers" not in str(problem)
            )  # NumPy's integers; here what a function gives is a float
            with pytest.raises((ExpressionError, type(problem))):
                parse("x, y, u, v -> " + text)(*values.values())
            return
        try:
            f = parse("x, y, u, v -> " + text)
        except ExpressionError as problem:  # numbers alone: NumPy's would be inf or nan where Python's are an error
            assert any(s in str(problem) for s in ("division by zero", "not a real number", "too large"))
            assume(False)
        assume(np.asarray(expected).dtype.kind != "c")
        found = f(*values.values())
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-12)


TOKENS = [
    "x",
    "y",
    "sin",
    "sum",
    "(",
    ")",
    "[",
    "]",
    ",",
    "+",
    "-",
    "**",
    "@",
    "1",
    "2.5",
    "->",
    " ",
    ".",
    ":",
    "=",
    "not",
    "and",
    "lambda",
    "if",
    "else",
    "for",
]
TOKENS += [
    "in",
    "'a'",
    '"',
    "\n",
    "\t",
    "\\",
    "é",
    "…",
    "...",
    "{",
    "}",
    "*",
    "<",
    "==",
    ":=",
    "~",
    "None",
    "True",
    "axis",
    "1j",
    "e",
    "0x1",
    "f'",
    "\x00",
    "yield",
    ";",
    "@",
]


def only_expression_errors(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            assert callable(parse(text))
        except ExpressionError as problem:
            assert "^" in str(problem).splitlines()[-1]


@given(st.text(max_size=60))
def test_any_characters_are_read_or_an_expression_error(text):
    only_expression_errors(text)
    only_expression_errors("x -> " + text)
    only_expression_errors(text + " -> x")


@given(st.lists(st.sampled_from(TOKENS), max_size=25))
def test_any_tokens_are_read_or_an_expression_error(tokens):
    only_expression_errors("x, y -> " + "".join(tokens))
    only_expression_errors("x, y -> " + " ".join(tokens))


@given(EXPRESSIONS, st.randoms(use_true_random=False))
def test_damaged_expressions_are_read_or_an_expression_error(text, rng: random.Random):
    letters = list("x, y, u, v -> " + text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(letters))
        letters[at : at + rng.randrange(3)] = rng.choice(
            ["", "(", ")", "[", ",", ".", "\\", "'", "é", "~", "\x00", "#", "**", "0", "_"]
        )
    only_expression_errors("".join(letters))


@given(st.text(max_size=40), st.integers(-5, 60), st.integers(-5, 60))
def test_showing_a_place_never_fails(text, start, end):
    assert len(shown(text, (start, end)).splitlines()[-1].strip()) >= 1
