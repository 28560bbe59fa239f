"""Functions from text: the grammar means what Python and NumPy mean by it, and everything else is an error that shows the place."""

import copy
import inspect
import pickle

import numpy as np
import pytest
import scipy.linalg

import riesz as rz
from riesz import ExpressionError
from riesz.text.parsing import parse
from riesz.text.text_table import FUNCTIONS

X = np.array([0.3, -1.2, 2.5])
Y = np.array([1.5, 0.7, 0.2])
A = np.array([[2.0, 0.3, -0.1], [0.4, 1.5, 0.2], [0.1, -0.6, 1.8]])
NAMES = {k: getattr(np, k) for k in dir(np) if not k.startswith("_")} | {
    **{"norm": np.linalg.norm, "inv": np.linalg.inv, "det": np.linalg.det, "solve": np.linalg.solve, "ln": np.log},
    **{"pinv": np.linalg.pinv, "cholesky": np.linalg.cholesky, "slogdet": np.linalg.slogdet},
    **{name: getattr(scipy.linalg, name) for name in ("expm", "logm", "sqrtm", "sinm", "cosm")},
    **{
        "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "relu": lambda x: np.maximum(x, 0.0),
        "softplus": lambda x: np.log1p(np.exp(x)),
    },
    **{
        "logsumexp": lambda x, axis=None: np.log(np.sum(np.exp(x), axis=axis)),
        "softmax": lambda x: np.exp(x) / np.sum(np.exp(x)),
    },
}


def python(text, **values):
    """What Python makes of the same expression, with NumPy's names; only here, and only on texts written in this file."""
    return eval(text, {"__builtins__": {}, **NAMES, **values})


def refused(text, message, place):
    """The text is an error with this message, and the carets stand under `place`."""
    with pytest.raises(ExpressionError) as caught:
        rz.function(text)
    said, line, carets = str(caught.value).rsplit("\n", 2)
    assert message in said, said
    assert line[4:] in text.splitlines()
    assert line[len(carets) - carets.count("^") :][: carets.count("^")] == place, str(caught.value)
    assert set(carets) <= {" ", "^"}


# -- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x + y * 2 - 3 / y",
        "-x ** 2 + (+y)",
        "x // 2 + x % 0.7",
        "A @ x + y",
        "x @ y",
        "2 ** x",
        "y ** 3 ** 0.5",
        "1 - 2 - 3 + x",
        "2 / 3 * x",
        "where(x > 0, x, y)",
        "where(logical_and(x > 0, y < 1), x, 2)",
        "sin(x) + exp(-y) * tanh(x * y)",
        "ln(y) + log(y) + log1p(y) + log2(y) + log10(y)",
        "sqrt(2) * x + pi * e",
        "abs(x) + absolute(y) + fabs(x)",
        "arctan2(x, y) + hypot(x, y)",
        "maximum(x, 0) + minimum(x, y) + clip(x, 0, 1)",
        "sum(x) + mean(x) + prod(x) + max(x) + min(x) + var(x) + std(x)",
        "sum(A, axis=0) + sum(A, 1)",
        "sum(A, axis=(0, 1), keepdims=True)",
        "mean(A, axis=-1, keepdims=True) * A",
        "max(A, axis=0) - min(A, axis=1)",
        "var(A, axis=0, ddof=1)",
        "cumsum(x) + cumprod(y)",
        "norm(x) + norm(x, 1) + norm(x, ord=inf) + norm(A)",
        "dot(A, x) + inner(x, y) + vdot(x, y)",
        "outer(x, y) + matmul(A, A)",
        'einsum("ij,j->i", A, x)',
        "einsum('ij,jk', A, A)",
        "tensordot(A, x, axes=1)",
        "trace(A) + det(A) + diag(A)",
        "inv(A) @ x - solve(A, x)",
        "transpose(A) @ x + transpose(A, (1, 0)) @ y",
        "A.T @ x + (A @ A.T).T @ y",
        "tril(A) + triu(A, k=1)",
        "reshape(A, (9,)) + reshape(A, shape=-1) + ravel(A)",
        "concatenate([x, y, x[:2]])",
        "concatenate((A, A), axis=1)",
        "stack([x, y], axis=-1) + stack((x, y), 1)",
        "hstack([x, y])",
        "vstack([x, y])",
        "x[0] + x[-1] + x[1:3] * x[:-1]",
        "A[0, 1] + A[..., 0] + A[:, None, 1][::-1, 0]",
        "A[1:, ::2] + A[-1, 0]",
        "x[[0, 2, 2]]",
        "x[2 - 1] + x[-(1)]",
        "roll(x, 1) + flip(y) + sort(x)",
        "squeeze(expand_dims(x, 0)) + swapaxes(A, 0, 1) + moveaxis(A, 0, 1)",
        "softplus(x) + sigmoid(y) + relu(x)",
        "softmax(x) * logsumexp(y)",
        "1e-3 * x + .5 + 1_000",
        "2 ** 10 * x + 7 // 2 + 7 % 4 - 2 ** -1",
        "round(x) + floor(y) + ceil(x) + rint(y) + trunc(x)",
        "power(x, 2) + float_power(y, 1.5) + square(x) + reciprocal(y) + cbrt(x)",
    ],
)
def test_a_text_means_what_it_means_in_numpy(text):
    f = parse("x, y, A -> " + text)
    expected = python(text, x=X, y=Y, A=A)
    np.testing.assert_allclose(f(X, Y, A), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_of_the_table_is_that_of_numpy_or_scipy(name):
    import scipy.special

    row = FUNCTIONS[name]
    original = NAMES.get(name) or getattr(scipy.special, name)
    arguments = {
        "where": ((X > 0, X, Y), "x, y, z -> where(x, y, z)"),
        "clip": ((X, 0.0, 1.0), "x, y, z -> clip(x, y, z)"),
        "einsum": ((A,), "x -> einsum('ij->j', x)"),
        "reshape": ((A,), "x -> reshape(x, (1, 9))"),
        "swapaxes": ((A,), "x -> swapaxes(x, 0, 1)"),
        "moveaxis": ((A,), "x -> moveaxis(x, 0, 1)"),
        "expand_dims": ((A,), "x -> expand_dims(x, 0)"),
        "roll": ((A,), "x -> roll(x, 1)"),
    }
    options = {
        "einsum": ("ij->j",),
        "reshape": ((1, 9),),
        "swapaxes": (0, 1),
        "moveaxis": (0, 1),
        "expand_dims": (0,),
        "roll": (1,),
    }
    if name in arguments:
        given, text = arguments[name]
    elif row.sequence:
        given, text = (A, A), f"x, y -> {name}([x, y])"
    else:
        matrices = name in (
            "det",
            "inv",
            "pinv",
            "cholesky",
            "slogdet",
            "trace",
            "diag",
            "tril",
            "triu",
            "transpose",
            "solve",
            "kron",
            "tensordot",
            "expm",
            "logm",
            "sqrtm",
            "sinm",
            "cosm",
        )
        value = A @ A.T if matrices else np.array([0.3, 0.8, 0.5])
        value = 1.0 / value if name in ("arccosh", "acosh") else value
        given = (value, value + 0.1)[: row.least]
        text = f"{', '.join('xyz'[: row.least])} -> {name}({', '.join('xyz'[: row.least])})"
    plain = (
        ([*given],)
        if row.sequence
        else (options[name][0], *given)
        if name == "einsum"
        else (*given, *options.get(name, ()))
    )
    np.testing.assert_allclose(
        np.asarray(parse(text)(*given)[1] if name == "slogdet" else parse(text)(*given)),
        np.asarray(original(*plain)[1] if name == "slogdet" else original(*plain)),
        rtol=1e-12,
    )


def test_comparisons_chain_and_logic_works_on_arrays():
    f = parse("x, y -> 0 < x < y")
    np.testing.assert_array_equal(f(X, Y), (X > 0) & (X < Y))
    np.testing.assert_array_equal(parse("x, y -> x > 0 and y < 1 or not x > -1")(X, Y), ((X > 0) & (Y < 1)) | ~(X > -1))
    np.testing.assert_array_equal(parse("x, y -> x == x != y")(X, Y), X != Y)
    assert parse("x -> 1 < 2 < 3 and not 1 > 2")(0.0) is True


def test_lists_are_stacks_of_floats():
    np.testing.assert_array_equal(parse("x -> [x[0], 2, x[1] * x[2]]")(X), [X[0], 2.0, X[1] * X[2]])
    np.testing.assert_array_equal(parse("x -> [[1, 2], [3, x]]")(4.0), [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(parse("x -> [x, x]")(X), np.stack([X, X]))
    assert parse("x -> [1, 2]")(X).dtype == float


def test_several_results_are_a_tuple():
    a, (b, c), (d,) = parse("x, y -> x + y, (x, 2), (y,)")(1.0, 2.0)
    assert (a, b, c, d) == (3.0, 1.0, 2, 2.0)


def test_parameters_with_parentheses_trailing_comma_none_and_over_lines():
    assert parse("(x, y) -> x - y")(3.0, 1.0) == 2.0
    assert parse(" ( x , ) -> x")(3.0) == 3.0
    assert parse("x, -> x")(3.0) == 3.0
    assert parse("-> 2 * pi")() == parse("() -> 2 * pi")() == 2 * np.pi
    assert parse("x,\n  y ->\n  x\n\t+ y\r\n")(3.0, 1.0) == 4.0


def test_parameters_come_before_numbers_of_the_same_name():
    assert parse("e, pi -> e * pi")(2.0, 3.0) == 6.0
    assert parse("sum -> sum + 1")(2.0) == 3.0


def test_names_are_compared_as_python_compares_them():
    assert parse("ﬁ -> fi + ﬁ")(2.0) == 4.0
    assert parse("λ, x_1 -> λ * x_1")(2.0, 3.0) == 6.0


def test_numbers_stay_python_floats_so_that_float32_stays_float32():
    x = np.float32([1.0, 2.0])
    for text in (
        "x -> sqrt(2) * x",
        "x -> x * pi + 1 / 3",
        "x -> sin(1) ** 2 * x",
        "x -> x * maximum(1, 2.5)",
        "x -> sigmoid(1) * x",
    ):
        assert parse(text)(x).dtype == np.float32, text
        assert rz.function(text)(x).dtype == np.float32, text


def test_arguments_by_name_and_in_the_wrong_number():
    f = parse("x, y -> x - y")
    assert f(3.0, y=1.0) == f(y=1.0, x=3.0) == 2.0
    for args, named in (
        ((1.0,), {}),
        ((1.0, 2.0, 3.0), {}),
        ((), {}),
        ((1.0, 2.0), {"y": 1.0}),
        ((1.0,), {"z": 1.0}),
        ((1.0,), {"x": 1.0}),
    ):
        with pytest.raises(TypeError, match=r"x, y -> x - y: takes 2 arguments, x, y; got"):
            f(*args, **named)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        rz.function("x, y -> x - y")(1.0)


def test_the_function_can_be_looked_at_copied_and_pickled():
    f = parse("x,  W -> W @ x")
    assert f.__name__ == "x, W -> W @ x" and f.__doc__ == "The function x, W -> W @ x."
    assert str(inspect.signature(f)) == str(inspect.signature(rz.function("x, W -> W @ x"))) == "(x, W)"
    assert "x, W -> W @ x" in repr(f) and "x, W -> W @ x" in repr(rz.function("x, W -> W @ x"))
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        np.testing.assert_array_equal(g(X, A), A @ X)


# -- derivatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("x -> sum(x ** 2)", lambda x: 2 * x),
        ("x -> sum(sin(x) * exp(x))", lambda x: np.exp(x) * (np.sin(x) + np.cos(x))),
        ("x -> sum(where(x > 0, x ** 3, -x))", lambda x: np.where(x > 0, 3 * x**2, -1.0)),
        ("x -> sum(sigmoid(x))", lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
        ("x -> sum(softplus(x) + relu(x))", lambda x: 1 / (1 + np.exp(-x)) + (x > 0)),
        ("x -> logsumexp(x)", lambda x: np.exp(x) / np.exp(x).sum()),
        ("x -> softmax(x)[0]", lambda x: (s := np.exp(x) / np.exp(x).sum())[0] * (np.eye(3)[0] - s)),
        ("x -> log_softmax(x, axis=0)[1]", lambda x: np.eye(3)[1] - np.exp(x) / np.exp(x).sum()),
        ("x -> [x[0], 2, x[1] * x[2]] @ [1, 2, 3]", lambda x: np.array([1.0, 3 * x[2], 3 * x[1]])),
        ("x -> concatenate([x, 2 * x, x[:1]]) @ concatenate([x, x, x[:1]])", lambda x: 6 * x + 2 * x * np.eye(3)[0]),
        ("x -> sum(x * (x > 0 and x < 1))", lambda x: ((x > 0) & (x < 1)) * 1.0),
        ('x -> einsum("i,i", x, x)', lambda x: 2 * x),
    ],
)
def test_texts_are_differentiated(text, gradient):
    np.testing.assert_allclose(rz.grad(text)(X), gradient(X), rtol=1e-12)
    np.testing.assert_allclose(rz.grad(rz.function(text))(X), gradient(X), rtol=1e-12)


def test_texts_are_functions_like_others():
    f = rz.function("x, W, b -> tanh(W @ x + b)")
    W, b = A, np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(f(X, W, b), np.tanh(W @ X + b), rtol=1e-14)
    L = rz.jacobian(f, argnums=0)(X, W, b)
    np.testing.assert_allclose(L.to_dense(), (1 - np.tanh(W @ X + b) ** 2)[:, None] * W, rtol=1e-12)
    assert rz.hessian("x, y -> x ** 2 * y", (0, 1))(3.0, 2.0).to_dense().tolist() == [[4.0, 6.0], [6.0, 0.0]]
    assert rz.grad(lambda x: rz.function("y -> y ** 3")(2 * x))(1.0) == 24.0
    assert rz.function("x, n -> x ** n")(2.0, 3) == 8.0


# -- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("x -> sine(x)", "unknown function sine; did you mean sin?", "sine"),
        ("x -> 1 + tahn(x)", "did you mean tanh?", "tahn"),
        ("x, weight -> wieght * x", "unknown name wieght; did you mean weight?", "wieght"),
        ("x -> y", "known here are x, pi, e, inf", "y"),
        ("x -> sin", "sin is a function: write sin(…)", "sin"),
        ("x -> x(2)", "x is a parameter, not a function; a product is written x * (…)", "x"),
        ("x -> pi(x)", "pi is a number", "pi"),
        ("x -> x.mT", "write x.T", "x.mT"),
        ("x -> 2.5.T * x", "a number has no transpose", "2.5.T"),
        ("x -> np.T", "without the name of a module", "np.T"),
        ("x -> x.T.sum()", "write sum(x)", "x.T.sum"),
        ("x -> x.sum()", "write sum(x)", "x.sum"),
        ("x -> np.sin(x)", "write sin", "np.sin"),
        ("x -> np.linalg.norm(x)", "write norm", "np.linalg.norm"),
        ("x -> np.foo", "without the name of a module", "np.foo"),
        ("x -> x.__class__", ".__class__", "x.__class__"),
        ("x -> ().__class__.__bases__[0].__subclasses__()", "attributes", "().__class__.__bases__[0].__subclasses__"),
        ("x -> __import__('os')", "unknown function __import__", "__import__"),
        ("x -> (lambda: x)()", "only functions by name", "lambda: x"),
        ("x -> x[0](1)", "only functions by name", "x[0]"),
        ("x -> sin(cos)(x)", "only functions by name", "sin(cos)"),
        ("x -> lambda: x", "functions inside an expression", "lambda: x"),
        ("x -> [i for i in x]", "loops are not known", "[i for i in x]"),
        ("x -> sum(i for i in x)", "loops are not known", "(i for i in x)"),
        ("x -> {1, 2}", "sets are not known", "{1, 2}"),
        ("x -> {1: 2}", "dicts are not known", "{1: 2}"),
        ("x -> f'{x}'", "strings are not known", "f'{x}'"),
        ("x -> (y := x)", "names cannot be given", "y := x"),
        ("x -> x if x > 0 else 0", "where(condition, value, other)", "x if x > 0 else 0"),
        ("x -> sum(*x)", "* before an argument", "*x"),
        ("x -> sum(**x)", "sum is written sum(x, [axis=…], [keepdims=…])", "sum(**x)"),
        ("x -> sum(x, **x)", "** before an argument", "x"),
        ("x -> [*x]", "* before an argument", "*x"),
        ("x -> x ^ 2", "powers are written x ** y", "x ^ 2"),
        ("x -> x & x", "write x > 0 and x < 1", "x & x"),
        ("x -> ~x", "write not", "~x"),
        ("x -> x is 1", "compared with ==", "x is 1"),
        ("x -> x in [1]", "compared with ==", "x in [1]"),
        ("x -> x << 1", "<< is not known", "x << 1"),
        ("x -> 1j * x", "complex numbers are not supported", "1j"),
        ("x -> 'a'", "strings are not known", "'a'"),
        ("x -> b'a'", "strings are not known", "b'a'"),
        ("x -> norm(x, 'fro')", "strings are not known", "'fro'"),
        ("x -> True", "True is not a number", "True"),
        ("x -> x + None", "None is not a number", "None"),
        ("x -> ...", "belongs inside x[…]", "..."),
        ("x -> (x, x) + x", "a tuple stands for several results", "(x, x)"),
        ("x -> ()", "a tuple stands for", "()"),
        ("x -> []", "an empty list has no shape", "[]"),
        ("x -> x[x]", "an index is a constant", "x"),
        ("x -> x[0.5]", "an index is a constant", "0.5"),
        ("x -> x[True]", "True is not a number", "True"),
        ("x -> x['a']", "strings are not known", "'a'"),
        ("x -> x[::0]", "the step of a slice cannot be 0", "0"),
        ("x -> x[x:]", "an index is a constant", "x"),
        ("x -> x[[]]", "an empty list", "[]"),
        ("x -> pi[0]", "a number has no components", "pi[0]"),
        ("x -> sin(x, x)", "sin is written sin(x)", "sin(x, x)"),
        ("x -> sin()", "sin is written sin(x)", "sin()"),
        ("x -> arctan2(x)", "arctan2 is written arctan2(x, y)", "arctan2(x)"),
        ("x -> max(x, 0)", "the larger of two values is maximum(x, y)", "max(x, 0)"),
        ("x -> min(x, x)", "the smaller of two values is minimum(x, y)", "min(x, x)"),
        ("x -> sum(x, axis=x)", "an option of a function is a constant", "x"),
        ("x -> sum(x, axs=0)", "sum has no option axs; did you mean axis?", "0"),
        ("x -> sum(x, out=0)", "sum has no option out", "0"),
        ("x -> sum(x, 0, axis=1)", "sum is given axis twice", "1"),
        ("x -> sum(x, axis=0, axis=1)", "sum is given axis twice", "1"),
        ("x -> reshape(x)", "reshape needs shape", "reshape(x)"),
        ("x -> reshape(x, x)", "an option of a function is a constant", "x"),
        ("x -> einsum(x, x)", 'einsum("ij,j->i", A, x)', "x"),
        ("x -> einsum()", 'einsum("ij,j->i", A, x)', "einsum()"),
        ("x -> einsum('ij; import os', x)", "string of labels", "'ij; import os'"),
        ("x -> einsum('ij')", "einsum is written", "einsum('ij')"),
        ("x -> 9 ** 9 ** 9", "too large", "9 ** 9 ** 9"),
        ("x -> (-9) ** 10 ** 9 * x", "too large", "(-9) ** 10 ** 9"),
        ("x -> 2.0 ** 1e9", "too large", "2.0 ** 1e9"),
        ("x -> 10 ** 18 * 10 ** 18", "too large", "10 ** 18 * 10 ** 18"),
        ("x -> 123456789012345678901234567890", "too large", "123456789012345678901234567890"),
        ("x -> x + 1 / (2 - 2)", "division by zero", "1 / (2 - 2)"),
        ("x -> (-1) ** 0.5", "not a real number", "(-1) ** 0.5"),
        ("x -> 1 @ 2", "cannot be computed", "1 @ 2"),
        ("x -> x # why", "comments", "#"),
        ("x -> x +* 2", "not an expression", "*"),
        ("x -> x ** (y", "was never closed", "("),
        ("x -> x)", "not an expression", ")"),
        ("x -> x) + (x", "not an expression", ")"),
        ("x -> x = 2", "not an expression", "="),
        ("x -> x; x", "not an expression", ";"),
        ("x -> 2x", "not an expression", "2"),
        ("x -> x²", "invalid character", "²"),
        ("x -> await x", "Await is not known here", "await x"),
        ("x x", "there is no -> here", "x x"),
        ("x y -> x", "a parameter is a name", "x y"),
        ("1 -> x", "a parameter is a name", "1"),
        ("x, 2y -> x", "a parameter is a name", "2y"),
        ("x=1 -> x", "a parameter is a name", "x=1"),
        ("*x -> x", "a parameter is a name", "*x"),
        ("x.a -> x", "a parameter is a name", "x.a"),
        ("x, lambda -> x", "lambda is a word of Python", "lambda"),
        ("x, x -> x", "there are two parameters x", "x"),
        ("λ, ξ -> λ * ξξ + 1", "unknown name ξξ; did you mean ξ?", "ξξ"),
        ("é, ö, x -> é * ö + sine(é)", "unknown function sine", "sine"),
        ("𝛼x -> x + 𝛼x * β", "unknown name x", "x"),
        ("x ->\n  x +\n    sine(x)", "unknown function sine", "sine"),
        ("x,\n  1 -> x", "a parameter is a name", "1"),
    ],
)
def test_what_is_not_in_the_grammar_is_shown(text, message, place):
    refused(text, message, place)


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("x ->", "    x ->\n        ^"),
        ("x -> x +", "    x -> x +\n            ^"),
        ("x,, y -> x", "    x,, y -> x\n      ^"),
        ("", "    \n    ^"),
        ("x -> 中中 + 1", "    x -> 中中 + 1\n         ^^^^"),  # two columns each
        ("x -> 1 + 中 + foo", "    x -> 1 + 中 + foo\n             ^^"),
        ("\tx -> foo", "    \tx -> foo\n    \t     ^^^"),
        ("x -> a\x00b", "    x -> a�b\n          ^"),
        ("x -> \ud800", "    x -> �\n         ^"),
    ],
)
def test_where_the_caret_stands(text, shows):
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert str(caught.value).endswith("\n" + shows), str(caught.value)


def test_a_long_line_is_clipped_around_the_place():
    text = "x -> " + "x + " * 500 + "sine(x)" + " + x" * 500
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    line, carets = str(caught.value).splitlines()[-2:]
    assert len(line) < 160 and line.startswith("    …") and line.endswith("…")
    assert line[carets.index("^") : carets.rindex("^") + 1] == "sine"


def test_an_error_while_computing_shows_the_place_too():
    f = parse("x, y -> x + sin(x @ y)")
    with pytest.raises(ValueError) as caught:
        f(np.ones(2), np.ones(3))
    assert caught.value.__notes__ == ["in the text\n    x, y -> x + sin(x @ y)\n                    ^^^^^"]


def test_the_error_is_a_riesz_error_and_a_value_error():
    with pytest.raises(rz.RieszError):
        rz.function("x -> nope")
    with pytest.raises(ValueError):
        rz.grad("x -> nope")
