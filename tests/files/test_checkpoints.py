"""Long solves in files: stopped in the middle, they go on to the same bits; files of other work are refused."""

from __future__ import annotations

import numpy as np
import pytest

import riesz as rz
from riesz.errors import FileError, SolveError, VectorError
from riesz.files.checkpoints import Checkpoint

RNG = np.random.default_rng(7)
M = RNG.normal(size=(40, 24))
B = RNG.normal(size=40)


class Stopped(Exception):
    pass


def symmetric(x):
    return M.T @ (M @ x) + 0.5 * x + np.concatenate([x[1:], x[:1]]) + np.concatenate([x[-1:], x[:-1]])


SPD = rz.jacobian(symmetric)(np.zeros(24))
TALL = rz.jacobian(lambda x: M @ x)(np.zeros(24))


@pytest.mark.parametrize(("L", "b", "method"), [(SPD, B[:24], "cg"), (TALL, B, "lsmr"), (TALL.T, B[:24], "lsmr")])
def test_solves_go_on_to_the_same_bits(tmp_path, L, b, method):
    once = L.solver(method=method, checkpoint=tmp_path / "once.rz", every=4)
    x = once.solve(b)
    np.testing.assert_allclose(x, np.linalg.lstsq(L.to_dense(), b)[0], rtol=1e-6, atol=1e-8)
    plain = L.solver(method=method)
    plain.solve(b)
    assert abs(once.iterations - plain.iterations) <= 3 and once.iterations > 10
    path = tmp_path / "stopped.rz"
    with pytest.raises(SolveError, match="not there after 9 iterations"):
        L.solve(b, method=method, checkpoint=path, every=4, max_iterations=9)
    (tmp_path / "stopped.rz.new").write_bytes(b"killed while this was written")
    calls = []
    again = L.solver(method=method, checkpoint=path, every=4)
    forward = again._forward
    again._forward = lambda v: (calls.append(1), forward(v))[1]
    assert np.array_equal(again.solve(b), x) and again.iterations == once.iterations
    assert len(calls) <= once.iterations - 8 + 2  # rounds 1 to 8 are not run again


def test_preconditioned_solves_are_kept_too(tmp_path):
    near = rz.jacobian(lambda x: np.diag(SPD.to_dense()) * x)(np.zeros(24)).solver()
    for L, b, method in [(SPD, B[:24], "cg"), (TALL, B, "lsmr")]:
        given = {"method": method, "preconditioner": near, "every": 3}
        x = L.solve(b, checkpoint=tmp_path / f"{method}.rz", **given)
        np.testing.assert_allclose(x, np.linalg.lstsq(L.to_dense(), b)[0], rtol=1e-6, atol=1e-8)
        with pytest.raises(SolveError):
            L.solve(b, checkpoint=tmp_path / "part.rz", max_iterations=7, **given)
        assert np.array_equal(L.solve(b, checkpoint=tmp_path / "part.rz", **given), x)
        (tmp_path / "part.rz").unlink()


def test_lsmr_is_that_of_scipy(tmp_path):
    from scipy.sparse.linalg import lsmr

    from riesz.maps.solvers.kept_iterations import least_squares

    states = least_squares(lambda x: M @ x, lambda y: M.T @ y, B, None)
    for k, state in zip(range(12), states, strict=False):
        x, _, _, size, slope, norm = lsmr(M, B, atol=0, btol=0, conlim=0, maxiter=k)[:6]
        np.testing.assert_allclose(state["x"], x, rtol=1e-9, atol=1e-12)
        if k:
            np.testing.assert_allclose([state["size"], state["slope"], state["norm"]], [size, slope, norm], rtol=1e-9)
        np.testing.assert_allclose(state["size"], np.linalg.norm(B - M @ x), rtol=1e-9)


T = np.linspace(0.0, 2.0, 30)
Y = 2.0 * np.exp(-1.3 * T) + 0.1 * np.cos(9 * T)


def curve(p, y):
    return p["a"] * np.exp(p["k"] * T) + p["c"][0] * T * p["c"][1] - y


def fitted(fit, path, y=Y, **more):
    start = {"a": 1.0, "k": 0.7, "c": np.array([0.3, 0.4])}
    return fit(curve, start, y, checkpoint=path, **more)


@pytest.mark.parametrize("fit", [rz.levenberg_marquardt, rz.gauss_newton])
@pytest.mark.parametrize("more", [{}, {"loss": "huber", "loss_scale": 0.05}, {"method": "iterative"}])
def test_fits_go_on_to_the_same_bits(tmp_path, fit, more):
    plain, once = fitted(fit, None, **more), fitted(fit, tmp_path / "once.rz", **more)

    def same(found):
        assert found.cost == plain.cost and found.iterations == plain.iterations and found.history == plain.history
        for name in plain.x:
            assert np.array_equal(found.x[name], plain.x[name]), name

    same(once)
    assert len(plain.history) > 4

    def stop(said):
        seen.append(said)
        if len(seen) == 3:
            raise Stopped

    seen = []
    with pytest.raises(Stopped):
        fitted(fit, tmp_path / "part.rz", callback=stop, **more)
    steps = []
    same(fitted(fit, tmp_path / "part.rz", callback=lambda said: steps.append(said) and None, **more))
    assert steps[0].number == seen[2].number  # two steps were kept: the third comes first
    same(fitted(fit, tmp_path / "part.rz", **more))  # from the last step on


def test_files_of_other_work_are_refused(tmp_path):
    path = tmp_path / "fit.rz"
    fitted(rz.levenberg_marquardt, path)
    differs = "is the checkpoint of other work: it differs in the residual there, its gradient"
    with pytest.raises(FileError, match=f"{differs}.*Delete the file"):
        fitted(rz.levenberg_marquardt, path, Y + 1e-12)
    with pytest.raises(FileError, match="differs in the method"):
        fitted(rz.gauss_newton, path)
    with pytest.raises(FileError, match="differs in its gradient"):
        fitted(rz.levenberg_marquardt, path, loss="cauchy", loss_scale=0.1)
    with pytest.raises(FileError, match="differs in bounds"):
        fitted(rz.levenberg_marquardt, path, bounds=({"a": -9.0}, {"a": 9.0}))
    solve = tmp_path / "cg.rz"
    SPD.solve(B[:24], method="cg", checkpoint=solve, every=5)
    with pytest.raises(FileError, match="differs in the right-hand side, the map"):
        SPD.solve(B[1:25], method="cg", checkpoint=solve)
    with pytest.raises(FileError, match=r"differs in the map"):
        rz.jacobian(lambda x: 2.0 * symmetric(x))(np.zeros(24)).solve(B[:24], method="cg", checkpoint=solve)
    rz.save(tmp_path / "else.rz", {"kind": "letters"})
    with pytest.raises(FileError, match="is no checkpoint: give another path"):
        SPD.solve(B[:24], method="cg", checkpoint=tmp_path / "else.rz")
    (tmp_path / "broken.rz").write_bytes(solve.read_bytes()[:-300])
    with pytest.raises(FileError, match=r"no file of riesz|broken"):
        SPD.solve(B[:24], method="cg", checkpoint=tmp_path / "broken.rz")


def test_what_keeps_no_checkpoint_says_so(tmp_path):
    path = tmp_path / "x.rz"
    with pytest.raises(SolveError, match="kept by method='cg' and 'lsmr'; this is MINRES"):
        SPD.solve(B[:24], method="minres", checkpoint=path)
    with pytest.raises(rz.RieszError, match="belong to iterations"):
        SPD.solve(B[:24], method="dense", checkpoint=path)
    with pytest.raises(VectorError, match="every=0"):
        SPD.solve(B[:24], method="cg", checkpoint=path, every=0)
    with pytest.raises(SolveError, match="one right-hand side; got 2"):
        SPD.solve(np.ones((24, 2)), method="cg", checkpoint=path)
    with pytest.raises(VectorError, match="not kept of fits with equality"):
        fitted(rz.levenberg_marquardt, path, equality=lambda p, y: p["a"] - 1.0)


def test_loops_of_ones_own(tmp_path):
    path, slope = tmp_path / "adam.rz", rz.grad(lambda w: np.sum(np.sin(M @ w) ** 2))

    def step(k, state):
        calls.append(k)
        if k == stop:
            raise Stopped
        w, m, rate = state["w"], state["m"], state["rate"]
        m = 0.9 * m + 0.1 * slope(w)
        return {"rate": rate * 0.99, "m": m, "w": w - rate * m}  # in another order

    first = {"w": RNG.normal(size=24), "m": np.zeros(24), "rate": 0.01}
    calls, stop = [], None
    whole = first
    for k in range(20):
        whole = step(k, whole)
    calls, stop = [], 13
    with pytest.raises(Stopped):
        rz.resumed_loop(20, step, first, checkpoint=path, every=5)
    calls, stop = [], None
    found = rz.resumed_loop(20, step, first, checkpoint=path, every=5)
    assert calls == list(range(10, 20))
    assert all([np.array_equal(found[name], whole[name]) for name in whole])
    assert rz.resumed_loop(20, step, first, checkpoint=path)["rate"] == whole["rate"] and calls[-1] == 19
    with pytest.raises(FileError, match="at round 20 already; 7 are asked for"):
        rz.resumed_loop(7, step, first, checkpoint=path)
    with pytest.raises(FileError, match=r"holds the parts state\['rate'\], .*; the state of this work has state\[0\]"):
        file = Checkpoint(path, {"the state at first": first}, 1)
        file.found((1.0, 2.0))
    with pytest.raises(FileError, match="differs in the state at first"):
        rz.resumed_loop(20, step, {**first, "rate": 0.02}, checkpoint=path)


def test_conjugate_gradients_on_a_mesh_are_kept(tmp_path):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    J = rz.compile(rz.jacobian(lambda w, M: np.tanh(M @ w)), B[:24], M, mesh=mesh, place={"M": "data"})(B[:24], M)
    A, b, path = J.gram(), np.arange(24.0), tmp_path / "cg.rz"
    x = A.solve(b, method="cg", tolerance=1e-8)
    with pytest.raises(SolveError, match="not there after 10 iterations"):
        A.solve(b, method="cg", tolerance=1e-8, checkpoint=path, every=4, max_iterations=10)
    assert np.array_equal(A.solve(b, method="cg", tolerance=1e-8, checkpoint=path, every=4), x)
    with pytest.raises(FileError, match="differs in the right-hand side"):
        A.solve(b + 1.0, method="cg", checkpoint=path)
    with pytest.raises(SolveError, match="solve outside"):
        jax.jit(lambda b: A.solve(b, method="cg", checkpoint=path))(b)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    with pytest.raises(FileError, match="put the first state there too"):
        begin = np.zeros(4)
        for _ in range(2):
            rz.resumed_loop(2, lambda k, x: jax.device_put(np.ones(4), whole), begin, checkpoint=tmp_path / "loop.rz")
