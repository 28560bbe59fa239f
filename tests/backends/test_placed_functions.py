"""Compiled functions on a mesh of eight virtual devices: the same numbers as one, and no more communication than the
placement needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import riesz as rz
from riesz import seg
from riesz.errors import IndexSetError, SpaceError

jax = pytest.importorskip("jax")
CODE = Path(__file__).parent.parent / "support" / "placed_on_devices.py"


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("Auto", "products"),
        ("Auto", "axes"),
        ("Auto", "maps"),
        ("Explicit", "axes"),
        ("Explicit", "maps"),
        ("Auto", "12"),
    ],
)
def test_eight_devices_compute_what_one_does(kind, what):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, CODE, kind, what], capture_output=True, text=True, env={**os.environ, **flags}
    )
    assert not done.returncode, done.stderr[-3000:]


def loss(w, X, y):
    return np.sum((X @ w - y) ** 2)


W, X, Y = np.ones(6), np.ones((80, 6)), np.ones(80)
MESH = jax.make_mesh((1,), ("data",))


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ({seg(77): "data"}, IndexSetError, r"no argument has an axis over seg\(77\): arguments are \(6,\), \(80, 6\)"),
        ({seg(80) + seg(1): "data"}, IndexSetError, "no product of segments"),
        ({seg(80): "model"}, SpaceError, "'model', which is no axis of the mesh: it has 'data'"),
        ({seg(80): ("data", "data")}, SpaceError, "each axis of the mesh may come once"),
        ({5: "data"}, SpaceError, r"the arguments are 0 \(w\), 1 \(X\), 2 \(y\)"),
        ({0: ("data", None)}, SpaceError, "place has 2 axes for it"),
        ({"X": ("data", "data")}, SpaceError, "cuts one axis of an array only"),
        ("data", SpaceError, "place is a dict"),
    ],
)
def test_placements_that_cannot_be_are_refused(place, error, says):
    with pytest.raises(error, match=says):
        rz.compile(rz.grad(loss), W, X, Y, mesh=MESH, place=place)


def test_lengths_that_devices_do_not_divide_are_refused():
    mesh = type("Mesh", (), {"shape": {"data": 8}})()
    says = "axis 0 of argument w has 6 elements, and 8 devices along 'data': fill it up by 2 to 8"
    with pytest.raises(SpaceError, match=says):
        rz.compile(rz.grad(loss), W, X, Y, mesh=mesh, place={"w": "data"})


def test_mesh_and_place_belong_together():
    with pytest.raises(SpaceError, match="needs mesh, as in"):
        rz.compile(loss, place={seg(80): "data"})
    with pytest.raises(SpaceError, match="needs place, as in"):
        rz.compile(loss, mesh=MESH)
    with pytest.raises(SpaceError, match="backend='jax'"):
        rz.compile(loss, mesh=MESH, place={seg(80): "data"}, backend="numpy")
    with pytest.raises(SpaceError, match="mesh is a mesh of JAX devices"):
        rz.compile(loss, W, X, Y, mesh=8, place={seg(80): "data"})


def test_the_cheapest_placement_is_proposed_without_devices():
    n = 80_000
    given = W, np.ones((n, 6)), np.ones(n)
    plan = rz.compile(rz.grad(loss), *given, mesh=MESH, place={seg(n): "data"}).plan(devices=8)
    assert plan.place == {seg(n): "a"} and plan.axes == {"a": 8}
    assert plan.rows == rz.compile(rz.grad(loss), *given, backend="steps").plan(devices=8).rows
    by_place = {tuple(place): cost for _, place, cost, _ in plan.rows}
    assert by_place[seg(n),].moved == 8 * 6 and by_place[()].moved == 0
    assert by_place[()].flops > 7 * by_place[seg(n),].flops
    assert str(plan).startswith("grad(loss) on 8 devices") and "everything everywhere" in str(plan)
