"""Old names of files still work: in pickles of version 0.1.0 before its files moved (tests/data), and in imports."""

import importlib
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import riesz as rz
from riesz.moved import MOVED, RENAMED, SPLIT

WRITTEN = pickle.loads((Path(__file__).parent / "data" / "pickles-0.1.0.pkl").read_bytes())
X = np.array([1.0, 2.0, 3.0])
SIN = rz.function("x -> sum(sin(x))")
WANTED = {
    "map": lambda L: np.allclose(L.to_dense(), np.diag(np.cos(X) * 6) + np.sin(X)[:, None]),
    "map_simplified": lambda L: np.allclose(L(X), np.cos(X) * 6 * X + np.sin(X) * 6),
    "term": lambda t: t is (rz.ln @ rz.sin).at(rz.R),
    "space": lambda V: V is (rz.R ** rz.seg(3)) * rz.R,
    "relation": lambda R: R.count == 3,
    "derivation": lambda D: D.derivative(1.0)(1.0) == rz.grad(rz.ln @ rz.sin)(1.0),
    "text": lambda f: f(X) == SIN(X),
    "grad": lambda g: np.array_equal(g(X), np.cos(X)),
    "jac": lambda J: np.allclose(J(X).to_dense(), np.diag(np.cos(X))),
    "solver": lambda s: np.allclose((np.diag(np.exp(X)) + 1) @ s.solve(X), X),
    "factored": lambda G: np.allclose(G.to_dense(), np.outer((1 - np.tanh(6) ** 2) * np.ones(2), X)),
    "compiled": lambda g: np.isclose(g(X), SIN(X)),
    "weighted": lambda V: V.inner(X, X) == np.sum(X * X * X),
    "hess": lambda H: np.allclose(H(X), rz.hessian(lambda x: np.sum(np.sin(x)) * np.sum(x))(X)(X)),
}


def test_every_pickle_is_looked_at():
    assert set(WANTED) == set(WRITTEN)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted(WANTED))
def test_old_pickles_are_read(name):
    assert WANTED[name](pickle.loads(WRITTEN[name]))


@pytest.mark.parametrize("old", sorted(MOVED))
def test_old_names_lead_to_new_files(old):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        before = importlib.import_module(f"riesz.{old}")
    after = importlib.import_module(f"riesz.{MOVED[old]}")
    own = [name for name, value in vars(after).items() if getattr(value, "__module__", "") == after.__name__]
    assert [
        name for name in own if not name.startswith("__") and getattr(before, name) is not getattr(after, name)
    ] == []


def test_contractions_were_terms_of_a_class_of_their_own():
    from riesz.terms.bilinear import Labelled

    matvec = Labelled(((0, 1), (1,)), (0,), ((2, 3), (3,)), ())
    assert np.array_equal(matvec((np.ones((2, 3)), X)), [6.0, 6.0])


def test_a_word_says_where_something_moved():
    sys.modules.pop("riesz.paths", None)
    with pytest.warns(DeprecationWarning, match="riesz.paths is now riesz.spaces.contraction_order"):
        importlib.import_module("riesz.paths")


@pytest.mark.parametrize("old", sorted(RENAMED) or ["none"])
def test_classes_with_another_name_are_found(old):
    if old != "none":
        file, _, name = old.rpartition(".")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            assert getattr(importlib.import_module(f"riesz.{file}"), name).__name__ == RENAMED[old]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("old", "name"), [("syntax.sorting", "_order_or_nan"), ("syntax.rearranging", "along")])
def test_what_is_in_a_file_split_off_is_found(old, name):
    now = importlib.import_module(f"riesz.{SPLIT[MOVED[old]]}")
    assert getattr(importlib.import_module(f"riesz.{old}"), name) is getattr(now, name)


def test_a_package_whose_files_moved_has_nothing_of_its_own():
    assert not hasattr(importlib.import_module("riesz.syntax"), "nothing")
