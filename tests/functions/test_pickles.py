"""What riesz makes of functions can be copied and pickled, and works in a process that knows nothing of it."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pickled_functions as here
import pytest
import scipy.sparse.linalg
import scipy.special

import riesz as rz


def plain(value: Any) -> Any:
    """Nested lists of arrays."""
    if hasattr(value, "to_dense"):
        return value.to_dense()
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return [plain(v) for v in value.values()]
    return value.w if isinstance(value, here.Weights) else np.asarray(value)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-13, atol=1e-15))


@pytest.mark.parametrize("kind", here.CALLED)
def test_pickles_and_copies_compute_the_same(kind: str):
    f, args = here.CALLED[kind]
    before = pickle.loads(pickle.dumps(f))
    wanted = plain(f(*args))
    for g in (
        before,
        pickle.loads(pickle.dumps(f)),
        copy.copy(f),
        copy.deepcopy(f),
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(f)))),
    ):
        assert same(plain(g(*args)), wanted) and same(plain(g(*args)), wanted)
        assert getattr(g, "__name__", None) == getattr(f, "__name__", None)


@pytest.mark.parametrize("kind", here.HELD)
def test_what_is_held_pickles(kind: str):
    held = here.HELD[kind]
    for again in (pickle.loads(pickle.dumps(held)), copy.deepcopy(held)):
        assert (type(again) is type(held) and repr(again) == repr(held)) or "solver" in kind
        if "solver" in kind:
            np.testing.assert_allclose(again.solve(here.x), held.solve(here.x))


LOAD = """
import pickle, sys
for kind, (written, args, wanted) in pickle.load(open(sys.argv[1], "rb")).items():
    f = pickle.loads(written)
    import test_pickles
    assert test_pickles.same(test_pickles.plain(f(*args)), wanted), kind
"""


def test_pickles_work_in_a_fresh_process(tmp_path: Path):
    rows = {k: (pickle.dumps(f), args, plain(f(*args))) for k, (f, args) in here.CALLED.items()}
    with open(tmp_path / "rows", "wb") as file:
        pickle.dump(rows, file)
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "rows")], check=True, env={**os.environ, "PYTHONPATH": paths}
    )


FIRST = """
import os, pickle, sys, warnings
import riesz
warnings.simplefilter("ignore", DeprecationWarning)
for name, written in pickle.load(sys.stdin.buffer).items():
    child = os.fork()
    if not child:
        repr(pickle.loads(written))
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""
OLD = pickle.loads((Path(__file__).parents[1] / "data" / "pickles-0.1.0-names.pkl").read_bytes())
A, X = np.diag([3.0, 4.0, 5.0]) + np.ones((3, 3)), np.array([0.1, 0.2, 0.3])
MAPS = {
    "solve_banded": lambda x: scipy.linalg.solve_banded((1, 1), np.stack([x, x + 3, x]), x),
    "solve_continuous_are": lambda x: scipy.linalg.solve_continuous_are(A, np.eye(3), np.diag(x), np.eye(3)),
    "spsolve": lambda x: scipy.sparse.linalg.spsolve(scipy.sparse.diags_array(x + 1).tocsc(), x),
    "map": lambda x: rz.jacobian(lambda y: y**3 + np.cumsum(y * x))(x).solve(x),
    "logdet": lambda x: rz.jacobian(lambda y: y**3 + x * y)(x).logdet(),
    "reduceat": lambda x: np.maximum.reduceat(x, [0, 1]),
    "expm": lambda x: scipy.linalg.expm(A * x),
    "gammainc": lambda x: scipy.special.gammainc(x, 1.0),
    "eigh": lambda x: np.linalg.eigh(A + np.diag(x)),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each, forked from one that has loaded nothing")
def test_each_pickle_is_read_first_in_a_process():
    """What its file would have entered is found, though that was not loaded; also pickles of version 0.1.0."""
    names = {
        f"rz.{name}": pickle.dumps(getattr(rz, name))
        for name in rz.__all__
        if name != "laws" and not inspect.ismodule(getattr(rz, name))
    }
    maps = {name: pickle.dumps(rz.jacobian(f)(X)) for name, f in MAPS.items()}
    given = pickle.dumps({**{f"old {name}": written for name, written in OLD.items()}, **names, **maps})
    run = subprocess.run([sys.executable, "-c", FIRST], input=given, capture_output=True, check=True)
    assert run.stdout.decode().split("\n") == [""], run.stderr.decode()[-2000:]


def test_other_processes_take_gradients():
    work = [here.CALLED[k][0] for k in ("grad", "compile", "decorated twice")]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for f in work:
            assert same(plain(pool.map(f, [here.x, 2 * here.x])), plain([f(here.x), f(2 * here.x)]))


@pytest.mark.parametrize(
    "make",
    [
        rz.function,
        rz.grad,
        rz.value_and_grad,
        rz.jacobian,
        rz.hessian,
        rz.vmap,
        rz.checkpoint,
        rz.compile,
        lambda f: rz.compile(rz.grad(f)),
    ],
)
def test_lambdas_are_refused_with_a_sentence(make: Any):
    def inner(x: Any) -> Any:
        return x * 2.0

    for f, name in ((lambda x: x * 2.0, "a lambda"), (inner, "not found")):
        with pytest.raises(
            pickle.PicklingError,
            match=r"Python pickles functions by module and name.*" + name + r".*def at the top of a module",
        ):
            pickle.dumps(make(f))
        assert callable(copy.deepcopy(make(f)))


def test_derived_functions_look_like_functions():
    g = rz.grad(here.powers)
    assert g.__name__ == "grad(powers)" and inspect.signature(g) == inspect.signature(here.powers)
    assert g.__wrapped__ is here.powers and repr(rz.jacobian(here.loss)) == "rz.jacobian(loss)"

    class Holder:
        slope = rz.grad(lambda self, x: x**2 * self.k, 1)
        k = 3.0

    assert Holder().slope(2.0) == 12.0


def test_a_change_under_a_derived_function_is_seen():
    scale = [2.0]
    g = rz.grad(lambda x: scale[0] * x)
    h = rz.function(lambda x: g(x) * 10.0)
    assert h(1.0) == 20.0
    scale[0] = 3.0
    assert (g(1.0), h(1.0)) == (3.0, 30.0)


def test_pickled_derivations_of_several_arguments_have_closed_forms():
    D = rz.derive("w, X, y -> sum((X @ w - y) ** 2)", rz.R**3, rz.R ** (4, 3), rz.R**4)
    again = pickle.loads(pickle.dumps(D))
    assert str(again.gradient) == str(D.gradient) and "∂f/∂w = 2Xᵀe" in str(again.gradient)
    assert again.gradient.code("numpy") == D.gradient.code("numpy")
