"""What riesz remembers is bounded: thousands of different functions leave nothing behind but what the caches may hold."""

from __future__ import annotations

import gc
import linecache
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import riesz as rz
from riesz.functions.function import as_function


def remembered() -> dict[str, int]:
    """The sizes of all tables of riesz's modules and classes, of their caches, and of Python's cache of source lines."""
    found = {"lines": len([k for k in linecache.cache if k.startswith("<riesz")])}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "riesz":
            held = list(vars(module).items())
            held += [
                (f"{c}.{k}", v)
                for c, kind in held
                if isinstance(kind, type) and kind.__module__ == name
                for k, v in vars(kind).items()
            ]
            for key, value in held:
                if hasattr(value, "cache_info"):
                    found[f"{name}.{key}"] = value.cache_info().currsize
                    assert value.cache_info().maxsize is not None or value.cache_info().currsize < 100, (
                        f"{name}.{key} has no bound"
                    )
                elif (
                    isinstance(value, (dict, list, set, weakref.WeakValueDictionary, weakref.WeakKeyDictionary))
                    and "__" not in key
                ):
                    found[f"{name}.{key}"] = len(value)
    return found


def used(i: int) -> None:
    """A function like no other, in many ways."""
    c = i + 0.5
    x = np.linspace(0.1, 1.0, 3)
    f = lambda x: np.sum(np.sin(x * c) * x) + c  # noqa: E731
    rz.grad(f)(x) if i % 2 else rz.function(f)(x)
    if i % 20:
        return
    rz.compile(f, backend="numpy")(x)
    rz.grad(f"x -> sin({c}*x) + {c}")(2.0)
    L = rz.jacobian(lambda x: x * c + np.roll(x, 1))(x)
    L.to_sparse(), L.to_dense(), L(x), L.solve(x), str(L)
    rz.hessian(f)(x).to_dense()
    rz.vmap(lambda a: a * c)(x)
    rz.jacobian((c * rz.sin) ** rz.seg(3))(x)
    rz.grad(rz.compile(lambda a: rz.fori_loop(0, 2, lambda k, y: y * a * c, 1.0)))(1.0)


def rounds(first: int, last: int) -> dict[str, int]:
    for i in range(first, last):
        used(i)
    gc.collect()
    return remembered()


@pytest.mark.long
def test_two_thousand_functions_leave_nothing_behind():
    rounds(0, 600)  # caches of a few hundred entries are full then
    before = rounds(600, 1200), sys.getallocatedblocks()
    after = rounds(1200, 2000), sys.getallocatedblocks()
    grown = {k: (before[0].get(k), n) for k, n in after[0].items() if n > before[0].get(k, 0) + 40}
    assert not grown
    assert after[1] < before[1] + 10_000  # objects in memory: 800 functions would leave a hundred times as many


def test_source_lines_last_as_long_as_their_function():
    def lines() -> int:
        gc.collect()
        return len([k for k in linecache.cache if k.startswith("<riesz")])

    start = lines()
    kept: list[Any] = []
    for i in range(20):
        g = rz.compile(lambda x, i=i: np.sin(x) * i, backend="numpy")
        g(np.ones(3))
        kept.append(g)
    assert lines() >= start + 20
    assert "sin(" in "".join(linecache.getlines(kept[0].code.run.__code__.co_filename))
    del kept[:], g
    assert lines() <= start + 1


def test_builtin_functions_are_kept_by_themselves_not_by_their_address():
    made = [np.frompyfunc(lambda a, k=k: a + k, 1, 1) for k in range(50)]
    assert len({id(as_function(u)) for u in made}) == 50
    assert all([as_function(u).function is u for u in made])
