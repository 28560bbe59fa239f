"""While a trace runs, NumPy and SciPy are as they are: the user's own code alone finds versions of their functions that answer."""

from __future__ import annotations

import functools
import pickle
import sys
import threading
import traceback
import types
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.special
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial import polynomial as polynomials

import riesz as rz
from riesz.functions.versions.code_constants import with_constants

X = np.array([0.3, 0.7, -0.4])
MODULES = (
    np,
    np.linalg,
    np.fft,
    np.polynomial,
    scipy,
    scipy.special,
    scipy.linalg,
    scipy.fft,
    scipy.signal,
    scipy.integrate,
)


def module(name: str, text: str) -> Any:
    """A module from text."""
    made = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(made))
    sys.modules[name] = made
    return made


HELPER = module(
    "helper_of_a_user",
    "import numpy as np\nfrom numpy import asarray\nfrom scipy.special import logsumexp as smooth\n"
    "def pair(x):\n    return asarray([x[0], x[1]])\n"
    "def table(x):\n    return np.array([[x[0], x[1]], [x[1], x[2]]])\n",
)
LIBRARY = module(
    "library_of_others",
    "import numpy as np\nfrom numpy import array, asarray, stack\nfrom scipy.special import logsumexp\n",
)


def changes(found: list[str]) -> Generator[None]:
    """At each step, the names that are others than in the beginning: a generator that runs already has the code it had."""
    homes = [*MODULES, LIBRARY, HELPER]
    before = [(home, dict(vars(home))) for home in homes]
    while True:
        yield
        found += [
            f"{home.__name__}.{k}" for home, names in before for k, v in names.items() if vars(home).get(k) is not v
        ]
        found += [f"{home.__name__}.{k}" for home, names in before for k in vars(home) if k not in names]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.array([x[0], x[1]])) + np.mean([x[0], x[1]]),
        lambda x: scipy.special.logsumexp(x) + scipy.linalg.norm(x) + np.linalg.norm([x[0], x[1]]),
        lambda x: np.sum(HELPER.table(x)) + HELPER.smooth(x) + scipy.optimize.rosen(x),
        lambda x: rz.grad(lambda y: np.sum(np.r_[y, np.asarray(y)]))(x)[0] * np.sum(np.int64(x)),
    ],
)
def test_names_in_numpy_and_scipy_stay_what_they_are(f: Any) -> None:
    found: list[str] = []
    look = changes(found)
    next(look)

    def looking(x: Any) -> Any:
        next(look)
        value = f(x)
        next(look)
        return value

    rz.grad(looking)(X)
    next(look)
    assert found == []


def test_another_thread_finds_numpys_own_functions() -> None:
    own = np.asarray, np.array, np.stack, np.sum, np.r_, np.int64, scipy.special.logsumexp
    traced, over, rounds, wrong = threading.Event(), threading.Event(), threading.Semaphore(0), list[Any]()

    def hammer() -> None:
        traced.wait()
        while not over.is_set():
            now = np.asarray, np.array, np.stack, np.sum, np.r_, np.int64, scipy.special.logsumexp
            wrong.extend([b for a, b in zip(own, now, strict=True) if a is not b])
            wrong.extend(
                [x for x in (np.asarray([1.0]), np.array((1.0,)), np.stack([1.0])) if type(x) is not np.ndarray]
            )
            rounds.release()

    thread = threading.Thread(target=hammer)
    thread.start()
    meet = iter(
        lambda: (traced.set(), [rounds.acquire() for _ in range(3)]), None
    )  # two rounds at least lie within the trace
    try:
        for n in range(1, 20):
            rz.grad(
                lambda x: (next(meet), np.sum(np.array([x[0], x[-1]])) + scipy.special.logsumexp(np.asarray(x)))[1]
            )(np.ones(n))
    finally:
        traced.set()
        over.set()
        thread.join()
    assert wrong == []


def shared(x: Any) -> Any:
    return np.sum(np.array([x[0], 2.0 * x[1]]))


def test_another_thread_may_run_what_is_being_traced() -> None:
    ready, done, found = threading.Event(), threading.Event(), list[Any]()
    thread = threading.Thread(target=lambda: (ready.wait(), found.append(shared(X)), done.set()))
    thread.start()
    meet = iter(lambda: (ready.set(), done.wait(10)), None)
    np.testing.assert_array_equal(rz.grad(lambda x: (next(meet), shared(x))[1])(X), [1.0, 2.0, 0.0])
    thread.join()
    assert type(found[0]) is np.float64 and found[0] == shared(X)


def recursive(x: Any, n: int) -> Any:
    return np.sum(np.array([x[0], x[1]])) if not n else recursive(x, n - 1)


def parts(x: Any) -> Any:
    for i in range(2):
        yield np.array([x[i]])


def twice(f: Any) -> Any:
    @functools.wraps(f)
    def wrapper(x: Any) -> Any:
        return 0.5 * (f(x) + f(x))

    return wrapper


@twice
def decorated(x: Any) -> Any:
    return np.sum(np.array([x[0], x[1]]))


@functools.lru_cache
def cached(n: int) -> Any:
    return lambda x: np.sum(np.array([x[0], x[1]])) + 0 * n


class Model:
    def __init__(self, x: Any) -> None:
        self.x = np.array([x[0], x[1]])

    @property
    def total(self) -> Any:
        return np.sum(np.asarray([self.x[0], self.x[1]]))

    @staticmethod
    def fixed(x: Any) -> Any:
        return np.sum(np.asarray([x[0], x[1]]))

    @classmethod
    def of(cls, x: Any) -> Any:
        return cls(np.asarray([x[0], x[1]])).total

    def __add__(self, other: Any) -> Any:
        return np.sum(np.asarray([self.x[0], self.x[1]])) + other

    def by_name(self, name: str, x: Any) -> Any:
        return getattr(self, f"way_{name}")(x)

    def way_first(self, x: Any) -> Any:
        return np.sum(np.asarray([x[0], x[1]]))


MODEL = Model(np.ones(2))
BY_NAME = {"first": lambda x: np.sum(np.array([x[0], x[1]]))}
FROM_TEXT: dict[str, Any] = {"np": np}
exec("def made(x):\n    return np.sum(np.array([x[0], x[1]]))\n", FROM_TEXT)


def imports(x: Any) -> Any:
    import numpy
    import numpy.linalg
    import scipy.special as special
    from helper_of_a_user import pair  # pyright: ignore
    from numpy import array, linalg

    return (
        np.sum(pair(x))
        + numpy.sum(array([x[0]]))
        + 0.0 * (linalg.norm([x[0], x[1]]) + special.logsumexp(x))
        - numpy.linalg.norm([x[0]])
    )


def namespace(x: Any, xp: Any = np) -> Any:
    assert (
        xp is np and x.__array_namespace__() is np and isinstance(np, types.ModuleType) and vars(np)["array"] == ARRAY
    )
    return xp.sum(xp.array([x[0], x[1]]))


def closing() -> Any:
    import numpy as inner

    return lambda x: inner.sum(inner.array([x[0], x[1]]))


ARRAY = np.array
WAYS = {
    "a helper of another module": lambda x: np.sum(HELPER.pair(x)),
    "a name of another module": lambda x: np.sum(HELPER.asarray([x[0], x[1]])),
    "NumPy as another module knows it": lambda x: np.sum(HELPER.np.asarray([x[0], x[1]])),
    "recursion": lambda x: recursive(x, 3),
    "a generator": lambda x: sum([np.sum(p) for p in parts(x)]),
    "a decorator": decorated,
    "a cached function": lambda x: cached(1)(x),
    "a partial application": functools.partial(recursive, n=1),
    "an object made inside": lambda x: Model(x).total,
    "an operator of an object": lambda x: Model(x) + 0.0,
    "a static method": lambda x: Model.fixed(x),
    "a method of a class": lambda x: Model.of(x),
    "a method by its name": lambda x: MODEL.by_name("first", x),
    "a function in a dictionary": lambda x: BY_NAME["first"](x),
    "a function from text": lambda x: FROM_TEXT["made"](x),
    "imports inside": imports,
    "NumPy as an argument": namespace,
    "NumPy in a closure": closing(),
    "a comprehension": lambda x: sum([np.sum(np.array([v])) for v in (x[0], x[1])]),
    "a function made inside": lambda x: (lambda y: np.sum(np.array([y[0], y[1]])))(x),
}


@pytest.mark.parametrize("way", WAYS)
def test_functions_are_found_by_way_of(way: str) -> None:
    f = WAYS[way]
    code = getattr(f, "__code__", None)
    np.testing.assert_allclose(rz.grad(f)(X), [1.0, 1.0, 0.0], atol=1e-15)
    assert getattr(f, "__code__", None) is code


def test_functions_are_themselves_while_traced_and_afterwards() -> None:
    code = shared.__code__

    def f(x: Any, fail: bool = False) -> Any:
        assert pickle.loads(pickle.dumps(shared)) is shared and globals()["shared"] is shared
        value = shared(x) + rz.grad(lambda y: shared(y) * 2.0)(x)[0]
        if fail:
            raise KeyError("on purpose")
        return value

    before = f.__code__
    rz.grad(f)(X)
    with pytest.raises(KeyError):
        rz.grad(lambda x: f(x, True))(X)
    with pytest.raises(KeyError) as problem:
        rz.grad(lambda x: f(x, True))(X)
    last = traceback.extract_tb(problem.value.__traceback__)[-1]
    assert last.name == "f" and last.line == 'raise KeyError("on purpose")'
    assert f.__code__ is before and shared.__code__ is code


def test_a_global_name_that_a_function_stores_is_looked_up() -> None:
    names: dict[str, Any] = {"np": np, "make": np.array}
    exec(
        "def f(x):\n    global make\n    make = lambda v: 3.0 * np.asarray(v)\n    return np.sum(make([x[0], x[1]]))\n",
        names,
    )
    np.testing.assert_array_equal(rz.grad(names["f"])(X), [3.0, 3.0, 0.0])


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (scipy.optimize.rosen, scipy.optimize.rosen_der),
        (lambda x: scipy.optimize.rosen(x), scipy.optimize.rosen_der),
        ((lambda fs: lambda x: fs[0](x))([scipy.optimize.rosen]), scipy.optimize.rosen_der),
        (lambda x: scipy.integrate.simpson(x), lambda x: [1 / 3, 4 / 3, 1 / 3]),
        (lambda x: scipy.spatial.distance.sqeuclidean(x, np.ones(3)), lambda x: 2.0 * (x - 1.0)),
        (
            lambda x: np.sum(Polynomial([1.0, 2.0, 3.0], domain=[0.0, 2.0])(x)),
            Polynomial([1.0, 2.0, 3.0], domain=[0.0, 2.0]).deriv(),
        ),
        (lambda x: np.sum(Chebyshev([1.0, 2.0, 3.0])(x)), Chebyshev([1.0, 2.0, 3.0]).deriv()),
        (lambda x: np.sum(Polynomial([1.0, 2.0])([x[0], x[1]])), lambda x: [2.0, 2.0, 0.0]),
        (lambda x: polynomials.polyval(2.0, x), lambda x: [1.0, 2.0, 4.0]),
        (lambda x: np.sum(scipy.sparse.linalg.spsolve(scipy.sparse.eye(3).tocsc(), x)), lambda x: [1.0, 1.0, 1.0]),
        (lambda x: np.sum(np.multiply.outer([x[0]], x)), lambda x: [2.0 * x[0] + x[1] + x[2], x[0], x[0]]),
    ],
)
def test_library_code_in_python_computes_with_traced_arrays(f: Any, slope: Any) -> None:
    np.testing.assert_allclose(rz.grad(f)(X), slope(X), rtol=1e-12)


@pytest.mark.parametrize("f", [lambda x: Polynomial(x)(0.5)])
def test_library_code_that_needs_plain_arrays_is_refused(f: Any) -> None:
    with pytest.raises(rz.TraceError, match="cannot become a plain NumPy array"):
        rz.function(f)(X)


def test_constants_in_long_code() -> None:
    """Names and constants with large numbers take several instructions."""
    lines = [f"    a{i} = b{i}.c if x < 0 else {i}.5\n" for i in range(400)]
    end = "    try:\n        y = m(x)\n        import q.r\n        raise m(q)\n    except s as e:\n        return y, e, m\n"
    names: dict[str, Any] = {"m": ValueError, "s": ValueError}
    exec(f"def f(x):\n{''.join(lines)}{end}", names)
    f = names["f"]
    f.__code__ = with_constants(f.__code__, {"m": KeyError, "b1": None}, lambda name, package: (name, package))
    with pytest.raises(KeyError) as problem:
        f(1.0)
    assert problem.value.args == (("q.r", True),)
    assert problem.value.__traceback__ is not None and problem.value.__traceback__.tb_next is not None
    assert problem.value.__traceback__.tb_next.tb_lineno == 405
    names["s"] = KeyError
    assert repr(f(1.0)) == "(KeyError(1.0), KeyError(('q.r', True)), <class 'KeyError'>)"
    assert with_constants(shared.__code__, {}, lambda name, package: None) is shared.__code__
