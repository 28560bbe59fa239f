"""The programs in examples/programs: plain NumPy, differentiated as they stand, against JAX running the same code."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
import pytest

import riesz as rz
from riesz.testing.law_checks import check_adjoint, check_derivatives
from riesz.tracing.argument_trees import flatten, unflatten

jax.config.update("jax_enable_x64", True)

EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))
NAMES = sorted([p.stem for p in (EXAMPLES / "programs").glob("[a-z]*.py")])


class Case(NamedTuple):
    """A function of a program, and the arguments that move."""

    program: str
    function: str
    argnums: tuple[int, ...] = (0,)
    tolerance: float = 1e-12  # relative to the largest number of each result
    curvature: float = 1e-12  # the same for second derivatives
    more: tuple[Any, ...] = ()  # arguments after those of `data`: fewer steps, since JAX unrolls Python loops


CASES = [
    Case("gaussian_mixture", "log_posterior", (0, 1, 2)),
    Case("gaussian_mixture", "adbench_objective", (0, 1, 2)),
    Case("bundle_adjustment", "residuals", (0, 1, 2)),
    Case("bundle_adjustment", "cost", (0, 1, 2)),
    Case("lstm", "loss"),
    Case("lstm", "loss_looped"),
    Case("k_means", "cost"),
    Case("k_means", "cost_by_labels"),
    Case("logistic_regression", "loss"),
    Case("matrix_factorisation", "residual", (0, 1)),
    Case("matrix_factorisation", "loss", (0, 1)),
    Case("burgers", "misfit", (0, 1), more=(4,)),
    Case("heat_equation", "misfit", (0, 1)),
    Case("lotka_volterra", "orbit", (0, 1), more=(3,)),
    Case("lotka_volterra", "final", (0, 1)),
    Case("kalman_filter", "log_likelihood", (0, 1)),
    Case("graph_smoothing", "energy", (0, 3)),
    Case("graph_smoothing", "robust_energy", (0, 2, 3)),
    Case("inverse_kinematics", "hand", (0, 1)),
    Case("inverse_kinematics", "cost", (0, 1, 2)),
    Case("gaussian_process", "negative_log_likelihood", (0, 1, 2)),
    Case("camera_exposure", "photographs", (0, 1, 2)),
    Case("camera_exposure", "loss", (0, 1, 2)),
    Case("lens", "spot", (0, 1, 3)),
    Case("attention", "loss"),
    Case("total_variation", "loss", (0, 1)),
    Case("total_variation", "anisotropic_loss", (0, 1)),
    Case("deconvolution", "blur", (0, 1)),
    Case("deconvolution", "loss", (0, 1)),
    Case("hidden_markov", "log_likelihood", (0, 1, 2, 3)),
    Case("black_scholes", "portfolio", (0, 1)),
    Case("molecule", "energy"),
]


def program(name: str) -> Any:
    """The module."""
    return importlib.import_module(f"programs.{name}")


def taken(case: Case) -> tuple[Any, tuple[Any, ...]]:
    """The function and its arguments."""
    module = program(case.program)
    f = getattr(module, case.function)
    return f, (*module.data(np.random.default_rng(7)), *case.more)[: len(inspect.signature(f).parameters)]


JAX = types.SimpleNamespace(loop=jax.lax.scan, fori_loop=jax.lax.fori_loop)
NAMED = {"np": jnp, "rz": JAX} | {
    name: getattr(home, name)
    for home, names in (
        (jax.scipy.special, ("logsumexp", "expit", "erf", "ndtr")),
        (jax.nn, ("softmax", "log_softmax")),
        (jax.scipy.linalg, ("solve_triangular",)),
    )
    for name in names
}


def in_jax(module: Any, name: str) -> Any:
    """The same code with np, rz and what comes from SciPy meaning JAX's."""
    names = vars(module) | {k: v for k, v in NAMED.items() if k in vars(module)}
    for k, f in vars(module).items():
        if isinstance(f, types.FunctionType) and f.__module__ == module.__name__:
            names[k] = types.FunctionType(f.__code__, names, k, f.__defaults__, f.__closure__)
    return names[name]


def moved_only(f: Any, args: tuple[Any, ...], argnums: tuple[int, ...]) -> Any:
    """f as a function of the arguments that move."""

    def g(*moving: Any) -> Any:
        given = list(args)
        for i, x in zip(argnums, moving, strict=True):
            given[i] = x
        return f(*given)

    return g


def close(found: Any, expected: Any, tolerance: float) -> None:
    """Each array equal up to a multiple of its largest number."""
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(expected)  # JAX sorts the keys of dictionaries
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert np.isfinite(b).all()
        assert np.max(np.abs(a - b), initial=0.0) <= tolerance * np.max(np.abs(b), initial=1e-300)


def directions(like: Any, seed: int) -> Any:
    """Normal numbers in the shape of a tree."""
    rng = np.random.default_rng(seed)
    leaves, tree = flatten(like)
    return unflatten(tree, [rng.normal(size=np.shape(x)) if np.ndim(x) else float(rng.normal()) for x in leaves])


@pytest.mark.parametrize("case", CASES, ids=[f"{c.program}-{c.function}" for c in CASES])
def test_value_and_derivatives_of_a_program_are_those_of_jax(case: Case) -> None:
    f, args = taken(case)
    plain = f(*args)
    close(rz.function(f)(*args), plain, 1e-14 if case.tolerance < 1e-11 else case.tolerance)
    moving = tuple([args[i] for i in case.argnums])
    d = directions(moving, 1)
    w = directions(plain, 2)

    def everything(moving: Any, d: Any, w: Any) -> Any:
        there = moved_only(
            in_jax(program(case.program), case.function),
            tuple([jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]),
            case.argnums,
        )

        def pulled(*moving: Any) -> Any:
            return jax.vjp(there, *moving)[1](w)

        y, dy = jax.jvp(there, moving, d)
        bent = jax.jvp(pulled, moving, d)
        return y, dy, *bent

    given = (moving, d, jax.tree.map(jnp.asarray, w))
    quick = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
    }  # it is compiled to be run once
    y, dy, back, second = jax.jit(everything).lower(*given).compile(compiler_options=quick)(*given)
    close(plain, y, case.tolerance)

    ours = moved_only(f, args, case.argnums)
    found, pull = rz.vjp(ours, *moving)
    close(found, plain, 1e-14 if case.tolerance < 1e-11 else case.tolerance)
    close(pull(w), back, case.tolerance)
    close(rz.jvp(ours, moving, d)[1], dy, case.tolerance)
    L = rz.jacobian(f, case.argnums)(*args)
    close(L(*d) if len(d) > 1 else L((d[0],)), dy, case.tolerance)

    weights = flatten(w)[0]

    def weighed(*args: Any) -> Any:
        return sum([np.sum(a * b) for a, b in zip(weights, flatten(f(*args))[0], strict=True)], 0.0)

    close(rz.grad(weighed, case.argnums)(*args), back, case.tolerance)
    H = rz.hessian(weighed, case.argnums)(*args)
    close(H(*d) if len(d) > 1 else H((d[0],)), second, case.curvature)
    close(
        rz.hvp(moved_only(weighed, args, case.argnums), moving, d), second if len(d) > 1 else second[0], case.curvature
    )
    check_adjoint(L, draws=2)
    check_adjoint(H, draws=2)


@pytest.mark.parametrize("case", CASES, ids=[f"{c.program}-{c.function}" for c in CASES])
def test_taylor_remainders_of_a_program_are_of_second_order(case: Case) -> None:
    f, args = taken(case)
    check_derivatives(f, *args, argnums=case.argnums, draws=1, orders=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_runs_and_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program(name).main()
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) >= 2
    assert "nan" not in printed.replace("nano", "")


def test_every_program_is_compared() -> None:
    assert {c.program for c in CASES} == set(NAMES)


# -- what the programs are good for -------------------------------------------------------------------------


def test_bundle_adjustment_has_a_derivative_where_a_camera_is_not_turned() -> None:
    """There the axis is 0/0 in the branch not taken; JAX gives nan."""
    module = program("bundle_adjustment")
    cameras, *rest = module.data(np.random.default_rng(7))
    cameras[0, :3] = 0.0
    with np.errstate(all="ignore"):
        found = rz.grad(module.cost)(cameras, *rest)
    assert np.isfinite(found).all()
    h = 1e-6
    for k in range(3):
        ahead, behind = cameras.copy(), cameras.copy()
        ahead[0, k], behind[0, k] = h, -h
        numeric = (module.cost(ahead, *rest) - module.cost(behind, *rest)) / (2 * h)
        assert abs(numeric - found[0, k]) <= 1e-6 * np.max(np.abs(found))


def test_a_black_pixel_has_the_slope_of_the_linear_part() -> None:
    """The power of the sRGB curve has an infinite slope at 0, in the branch not taken."""
    srgb = program("camera_exposure").srgb
    with np.errstate(all="ignore"):
        assert np.array_equal(rz.jacobian(srgb)(np.zeros(3)).to_dense(), 12.92 * np.eye(3))


def test_newton_on_k_means_is_lloyds_algorithm() -> None:
    module = program("k_means")
    centres, points = module.data(np.random.default_rng(7))
    labels = np.argmin(np.sum((points[:, None] - centres) ** 2, axis=-1), axis=1)
    means = np.array([points[labels == k].mean(axis=0) for k in range(len(centres))])
    H = rz.hessian(module.cost)(centres, points).to_dense()
    step = np.linalg.solve(H, rz.grad(module.cost)(centres, points).ravel())
    np.testing.assert_allclose(centres - step.reshape(centres.shape), means, rtol=1e-12)


def test_the_hessian_of_the_graph_energy_is_the_laplacian() -> None:
    module = program("graph_smoothing")
    x, edges, weights, measured = module.data(np.random.default_rng(7))
    incidence = np.zeros((len(edges), len(x)))
    incidence[np.arange(len(edges)), edges[:, 0]] = 1.0
    incidence[np.arange(len(edges)), edges[:, 1]] = -1.0
    laplacian = incidence.T @ (weights[:, None] * incidence)
    H = rz.hessian(module.energy)(x, edges, weights, measured)
    np.testing.assert_allclose(H.to_dense(), np.kron(laplacian + np.eye(len(x)), np.eye(3)), atol=1e-13)


def test_the_greeks_are_those_of_the_textbook() -> None:
    module = program("black_scholes")
    S, K, T, r, sigma = 100.0, 110.0, 0.7, 0.03, 0.2
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
    density = np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
    delta, vega = rz.grad(module.call_price, (0, 4))(S, K, T, r, sigma)
    gamma = rz.hessian(module.call_price)(S, K, T, r, sigma).to_dense()[0, 0]
    np.testing.assert_allclose(
        [delta, vega, gamma],
        [module.ndtr(d1), S * density * np.sqrt(T), density / (S * sigma * np.sqrt(T))],
        rtol=1e-12,
    )


def test_forces_in_a_molecule_sum_to_zero_and_turning_it_costs_nothing() -> None:
    module = program("molecule")
    (x,) = module.data(np.random.default_rng(7))
    forces = rz.grad(module.energy)(x)
    assert np.max(np.abs(forces.sum(axis=0))) <= 1e-12 * np.max(np.abs(forces))
    assert np.max(np.abs(np.cross(x, forces).sum(axis=0))) <= 1e-12 * np.max(np.abs(forces))


def helper_module(source: str) -> Any:
    """A module as an import would make it."""
    module = types.ModuleType("helpers")
    exec(source, vars(module))
    return module


def test_a_program_may_call_helpers_of_another_module_that_imports_names_from_numpy_and_scipy() -> None:
    imports = "from numpy import array\nfrom scipy.linalg import expm\nfrom scipy.special import logsumexp\n"
    helpers = helper_module(imports + "def f(x): return logsumexp(array([x[0], 2 * x[1]]))")
    x = np.array([1.0, 0.5])
    np.testing.assert_allclose(rz.grad(lambda x: helpers.f(x))(x), [0.5, 1.0], rtol=1e-14)
    np.testing.assert_allclose(rz.grad(lambda x: np.trace(helpers.expm(np.diag(x))))(x), np.exp(x), rtol=1e-13)


def test_a_setting_in_another_module_is_read_again_when_it_changes() -> None:
    settings = helper_module("rate = 2.0")
    square = rz.function(lambda x: settings.rate * x * x)
    assert rz.grad(square)(1.0) == 4.0
    settings.rate = 5.0
    assert rz.grad(square)(1.0) == 10.0


def test_python_loop_and_rz_loop_give_the_same_lstm() -> None:
    module = program("lstm")
    params, text = module.data(np.random.default_rng(7))
    close(rz.grad(module.loss)(params, text), rz.grad(module.loss_looped)(params, text), 1e-14)
