"""Code that runs alone: compiled with all warnings as errors, run, and compared with the function it came from."""

import importlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from sampling import LEVEL

import riesz as rz
from riesz.errors import TraceError
from riesz.exporting.exporters import opened
from riesz.runtime import tuning
from riesz.tracing.argument_trees import flatten

x, A = np.ones(4), np.arange(12.0).reshape(3, 4)
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"]
gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="a C compiler")


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def arm(q, target):
    """The squared distance of a hand of three joints from a target."""
    angle = np.cumsum(q)
    return (np.sum(np.cos(angle)) - target[0]) ** 2 + (np.sum(np.sin(angle)) - target[1]) ** 2


def kalman(m, P, z):
    """A step of an extended Kalman filter."""
    F = np.array([[1.0, 0.1], [0.0, 1.0]])
    m = F @ m
    P = F @ P @ F.T + 0.01 * np.eye(2)
    h, H = np.sqrt(1.0 + m[0] ** 2), np.stack([m[0] / np.sqrt(1.0 + m[0] ** 2), 0.0 * m[1]])[None]
    S = H @ P @ H.T + 0.1 * np.eye(1)
    K = np.linalg.solve(S, H @ P).T
    return m + K @ (z - h), P - K @ S @ K.T


def newton(u):
    """A step of Newton's method for a banded system."""
    lower = np.zeros(len(u) - 1) - 1.0
    diagonal, r = 2.0 + np.cosh(u), 2.0 * u + np.sinh(u) - 1.0
    J = np.diag(diagonal) + np.diag(lower, 1) + np.diag(lower, -1)
    return u - np.linalg.solve(J, r - np.concatenate([u[1:], [0.0]]) - np.concatenate([[0.0], u[:-1]]))


def network(W, b, V, x):
    return np.sum(V @ np.maximum(np.tanh(W @ x + b), 0.1))


def residual(u):
    """Of a nonlinear chain; its Jacobian is tridiagonal."""
    return 2.5 * u + u**3 - 1.0 - np.concatenate([u[1:], [0.0]]) - np.concatenate([[0.0], u[:-1]])


def likelihood(a, b):
    """Of a normal distribution, by a Cholesky factor."""
    L = np.linalg.cholesky(a @ a.T + np.eye(3))
    return np.sum(scipy.linalg.solve_triangular(L, b, lower=True) ** 2) + 2 * np.sum(np.log(np.diag(L)))


CASES = {
    "rosenbrock": (rz.value_and_grad(rosenbrock), (np.ones(10),)),
    "arm": (rz.grad(arm), (np.ones(3), np.ones(2))),
    "kalman": (kalman, (np.ones(2), np.eye(2), np.ones(1))),
    "kalman gradient": (
        rz.grad(lambda m, P, z: np.sum(kalman(m, P, z)[0] ** 2), (0, 1)),
        (np.ones(2), np.eye(2), x[:1]),
    ),
    "newton": (newton, (np.ones(6),)),
    "network": (rz.grad(network, (0, 1, 2)), (A, np.ones(3), np.ones((2, 3)), x)),
    "loop": (rz.grad(lambda x: rz.loop(lambda c, v: (np.tanh(c * v), c), 1.0, x)[0]), (x,)),
    "branch": (rz.grad(lambda x: rz.cond(x[0] > 0.5, np.sum, lambda x: np.prod(x), x)), (x,)),
    "gather": (rz.grad(lambda x: np.sum(np.where(x > 0.5, np.sin(x), x**2) * x[np.array([0, 0, 3, 1])])), (x,)),
    "tree": (lambda x: {"a": np.diag(x) * 2, "b": [x[0], np.where(x > 0.5, np.sin(x), 1 / x)]}, (x,)),
    "logs": (rz.grad(lambda x: np.sum(np.logaddexp(0.0, A @ x)) + np.linalg.norm(x)), (x,)),
    "blocks": (
        rz.grad(lambda a, b: np.sum(np.linalg.solve(a + 3 * np.eye(2), b[..., None]) ** 3), (0, 1)),
        (np.ones((3, 2, 2)), np.ones((3, 2))),
    ),
    "band": (lambda d, b: scipy.linalg.solve_banded((2, 1), np.stack([b, d + 1, b, d]), b), (np.ones(6), np.ones(6))),
    "band gradient": (
        rz.grad(lambda d, b: np.sum(scipy.linalg.solve_banded((2, 1), np.stack([b, d + 1, b, d]), b) ** 2), (0, 1)),
        (np.ones(6), np.ones(6)),
    ),
    "map": (lambda u: u - rz.jacobian(residual)(u).solve(residual(u)), (np.ones(7),)),
    "low rank": (lambda d, b: rz.jacobian(lambda v: d * v + A.T @ (A @ v) / 99)(b).solve(b), (x, x)),
    "cholesky": (rz.value_and_grad(likelihood), (np.ones((3, 3)), np.ones(3))),
    "determinants": (
        lambda a: (np.linalg.det(a), np.linalg.slogdet(a - np.eye(3)), np.linalg.inv(a)),
        (np.ones((2, 3, 3)),),
    ),
    "softmax": (rz.value_and_grad(lambda x: scipy.special.logsumexp(3 * x) - scipy.special.softmax(x)[1]), (x,)),
    "extrema": (rz.value_and_grad(lambda a: np.sum(np.max(a, 0) * np.min(a, 1)[0]) + a[0, np.argmax(a[0])]), (A,)),
    "order": (lambda x: (np.sort(x), np.argsort(-x), np.median(x), x[np.argmin(x) - 1]), (np.ones(7),)),
    "places": (
        rz.grad(lambda x, y: np.sum(np.interp(x, np.linspace(0, 1, 6), y) ** 2), (0, 1)),
        (x, np.ones(6)),
    ),
    "convolution": (rz.grad(lambda x, w: np.sum(np.convolve(x, w) ** 2), (0, 1)), (np.ones(9), np.ones(3))),
    "types": (
        lambda x: ((x - x).astype(bool) + (9 * x).astype(int) + (x > 0.5), (9 * x) // 0.3, x % 0.3, np.round(x, 1)),
        (x,),
    ),
    "masks": (
        lambda a: (np.where(~(a > 0.5), a, 2 * a), np.cumsum(a > 0.5, 0), np.cumsum((9 * a).astype(int), 1)),
        (A,),
    ),
    "special": (
        rz.grad(lambda x: np.sum(scipy.special.gammaln(x) + scipy.special.xlogy(x, x) * scipy.special.erf(x))),
        (x,),
    ),
    "rounds": (
        rz.value_and_grad(lambda x: np.sum(rz.fori_loop(0, 4, lambda i, c: np.tanh(c * x + 0.1 * i) + c, x))),
        (x,),
    ),
    "one of two": (lambda x: rz.cond(x[0] > 0.5, lambda x: (x**2, x[0]), lambda x: (np.sin(x), x[1]), x)[0], (x,)),
    "far": (lambda x: np.where(x > 2, 1e300, x) + np.where(x > 3, np.finfo(float).tiny, 1.0), (x,)),
}


def printed(folder):
    subprocess.run(["gcc", *STRICT, *map(str, folder.glob("*.c")), "-o", str(folder / "a"), "-lm"], check=True)
    out = subprocess.run([str(folder / "a")], capture_output=True, text=True, check=True).stdout
    return np.array([float(v) for v in out.split()])


def example(g):
    return [v if v.ndim else float(v) for v in opened(g).example]


def flat(value):
    return np.concatenate([np.ravel(v) for v in flatten(value)[0]])


@gcc
@pytest.mark.parametrize("name", CASES)
def test_c_gives_what_numpy_gives(name, tmp_path):
    f, args = CASES[name]
    g = rz.compile(f, *args)
    wanted = flat(g(*example(g)))
    for dtype, most, tolerance in (("double", 4000, 1e-14), ("float", 4000, 1e-5), ("double", 0, 1e-14)):
        with tuning.override(C_OPERATIONS=most):
            g.export("c", tmp_path / f"{dtype}{most}", dtype=dtype)
        found = printed(tmp_path / f"{dtype}{most}")
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def equations(a, b):
    """Two and three equations, with rows that change places, and the transposed ones."""
    scaled = a * np.array([1e-3, 1.0, 10.0])[:, None]
    first = np.linalg.solve(scaled[:, :2, :2], b[:, :2, None])
    return first, np.linalg.solve(np.swapaxes(scaled, 1, 2), b[..., None]), np.linalg.solve(scaled, a)


def sums(x, A):
    """Running sums from both ends and along both axes, means, differences of what is one number."""
    y = np.cumsum(A * x, 1) + np.cumsum(A, 0)[::-1]
    return y, np.cumsum(x[::-1])[::-1] ** 4, np.mean(y) - np.prod(x), x[::2], np.where(A > 0.5, A, -A) ** -2


@gcc
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (equations, (np.ones((2, 3, 3)), np.ones((2, 3)))),
        (
            rz.grad(lambda a, b: sum([np.sum(y**2) for y in equations(a, b)]), (0, 1)),
            (np.ones((2, 3, 3)), np.ones((2, 3))),
        ),
        (sums, (x, A)),
        (rz.grad(lambda x, A: sum([np.sum(y**2) for y in sums(x, A)]), (0, 1)), (x, A)),
    ],
)
def test_small_programs_have_no_loops(f, args, tmp_path):
    g = rz.compile(f, *args)
    source = next(p for p in g.export("c", tmp_path) if p.suffix == ".c" and p.name != "main.c").read_text()
    assert "for (" not in source and "static" not in source
    wanted = flat(g(*example(g)))
    np.testing.assert_allclose(printed(tmp_path), wanted, rtol=1e-12, atol=1e-14 * np.abs(wanted).max())


@gcc
def test_large_constants_beside_small_steps_are_tables(tmp_path):
    table = np.sin(np.arange(30_000.0))
    g = rz.compile(lambda x: (x[0] * table[np.floor(9 * x).astype(int)], table[::2] ** 2, x[:2]), x)
    g.export("c", tmp_path)
    np.testing.assert_allclose(printed(tmp_path), flat(g(*example(g))), rtol=1e-14)


@gcc
@pytest.mark.parametrize("most", [0, 4000])
def test_what_is_not_finite_is_as_in_numpy(most, tmp_path):
    """0 * inf is nan, 0 where it is chosen, a maximum keeps nan."""
    B = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])

    def f(x):
        y = np.log(np.round(x[:3])) / (x[:3] - x[:3])
        return B @ (1 / (x[:3] - x[:3])), y, np.where(y > 0, y, 0.0), np.maximum(y - y, 1.0), 0.0 * (1 / (x - x))

    g = rz.compile(f, x)
    with tuning.override(C_OPERATIONS=most):
        g.export("c", tmp_path)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(printed(tmp_path), flat(f(*example(g))))


@gcc
@pytest.mark.parametrize("make", [rz.hessian, rz.jacobian])
def test_sparse_matrices_keep_their_pattern(make, tmp_path):
    f = rosenbrock if make is rz.hessian else lambda x: x[1:] * x[:-1] ** 2
    g = rz.compile(make(f), np.ones(30))
    g.export("c", tmp_path)
    what = opened(g)
    S = make(f)(what.example[0]).to_sparse()
    np.testing.assert_allclose(printed(tmp_path), S.data, rtol=1e-14, atol=1e-12)
    offsets, columns, shape = what.pattern
    np.testing.assert_array_equal(columns, S.indices)
    np.testing.assert_array_equal(offsets, S.indptr)
    assert shape == S.shape
    header = next(tmp_path.glob("*.h")).read_text()
    assert f"_OUT0_SIZE {S.nnz}" in header
    assert "_columns[" in header
    assert sum([type(op).__name__ == "Reduction" for op in what.program.ops]) < 10  # no coloured products


@gcc
@pytest.mark.parametrize("make", [rz.grad, rz.jacobian])
def test_arguments_keep_their_names_where_c_allows_them(make, tmp_path):
    def f(A, exp, a3, t1, real, I, out0, x1, x0, b):  # noqa: E741
        """Names of C, of math.h, of a macro, and of what is written inside."""
        return np.sum(np.exp(A @ b - exp) * a3) + t1 * np.sin(real) + I * out0 * x1 / x0

    rng = np.random.default_rng(0)
    given = (rng.normal(size=(3, 2)), *rng.uniform(1, 2, (2, 3)), 1.5, 0.5, 2.0, 3.0, 0.25, 4.0, rng.normal(size=2))
    g = rz.compile(make(f, tuple(range(10))), *given)
    g.export("c", tmp_path)
    header = next(tmp_path.glob("*.h")).read_text()
    assert "const real *A, " in header and "const real *b" in header
    expected = flat(g(*example(g))) if make is rz.grad else g(*example(g)).to_sparse().data
    np.testing.assert_allclose(printed(tmp_path), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_numpy_modules_run_alone(name, tmp_path):
    f, args = CASES[name]
    g = rz.compile(f, *args)
    (path,) = g.export("numpy", tmp_path / "module.py")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, module\n"
    names = [n for n in path.read_text().splitlines() if n.startswith("def ") and not n.startswith("def _")]
    call = names[0].removeprefix("def ").split("(")[0]
    values = [v.tolist() if isinstance(v, np.ndarray) else v for v in example(g)]
    code += f"found = module.{call}(*[np.array(v) for v in {values!r}])\n"
    code += "def leaves(v): return sum([leaves(w) for w in (v.values() if isinstance(v, dict) else v)], []) if "
    code += "isinstance(v, (dict, list, tuple)) else [v]\n"
    code += "print(*[float(w).hex() for v in leaves(found) for w in np.ravel(v)]); assert 'riesz' not in sys.modules"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout
    wanted = flat(g(*example(g)))
    found = np.array([float.fromhex(v) for v in out.split()])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14 * max(1.0, np.abs(wanted).max()))


@pytest.mark.skipif(LEVEL != "all", reason="the first module takes the compiler's own library a while")
def test_webassembly_runs_in_node(tmp_path):
    pytest.importorskip("ziglang")
    if shutil.which("node") is None:
        pytest.skip("node")
    g = rz.compile(rz.grad(rosenbrock), np.ones(5))
    module, script, *_ = g.export("wasm", tmp_path)
    at = np.linspace(0.1, 0.5, 5)
    code = f'import fs from "fs"; import {{load}} from "./{script.name}";\n'
    code += f'const f = await load(fs.readFileSync("{module.name}")); console.log(...f({at.tolist()})[0]);'
    (tmp_path / "run.mjs").write_text(code)
    out = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose([float(v) for v in out.split()], g(at), rtol=1e-13)


@pytest.mark.skipif(LEVEL != "all", reason="a compiler for other machines")
@pytest.mark.parametrize("name", CASES)
def test_c_is_compiled_for_a_microcontroller(name, tmp_path):
    pytest.importorskip("ziglang")
    f, args = CASES[name]
    g = rz.compile(f, *args)
    for dtype in ("float", "double"):
        files = g.export("c", tmp_path / dtype, dtype=dtype)
        (source,) = [p for p in files if p.suffix == ".c" and p.name != "main.c"]
        command = [sys.executable, "-m", "ziglang", "cc", "-target", "thumb-linux-musleabihf", "-mcpu=cortex_m4"]
        subprocess.run([*command, *STRICT, "-c", str(source), "-o", str(tmp_path / "a.o")], check=True)


@gcc
def test_single_precision_inside_is_rounded_as_numpy_rounds(tmp_path):
    g = rz.compile(lambda x: x.astype(np.float32) * 1.0 + np.float32(0.1) * x, x)
    g.export("c", tmp_path)
    np.testing.assert_allclose(printed(tmp_path), g(*example(g)), rtol=1e-15)


def test_names_of_functions_of_c_are_not_used(tmp_path):
    def floor(exp, tanh):
        return np.floor(exp) + np.tanh(tanh) + np.exp(exp)

    g = rz.compile(floor, 0.5, 0.25)
    for dtype in ("float", "double"):
        g.export("c", tmp_path, dtype=dtype)
        assert "tgmath" not in "".join([p.read_text() for p in tmp_path.glob("*.c")])
        if shutil.which("gcc"):
            np.testing.assert_allclose(printed(tmp_path), g(*example(g)), rtol=1e-6)


def test_what_cannot_be_exported_is_said(tmp_path):
    with pytest.raises(TraceError, match="no code yet"):
        rz.compile(np.sin).export("c", tmp_path)
    with pytest.raises(TraceError, match="'c', 'numpy'"):
        rz.compile(np.sin, x).export("cobol", tmp_path)
    with pytest.raises(TraceError, match="not known in C"):
        rz.compile(lambda x: np.linalg.svd(np.outer(x, x), compute_uv=False), x).export("c", tmp_path)
    with pytest.raises(TraceError, match="double and float"):
        rz.compile(np.sin, x).export("c", tmp_path, dtype="half")


def test_stablehlo_runs_in_jax(tmp_path):
    jax = pytest.importorskip("jax")
    pytest.importorskip("flatbuffers")

    g = rz.compile(rz.grad(rosenbrock), np.ones(5))
    (path,) = g.export("stablehlo", tmp_path / "g.bin")
    with jax.enable_x64(True):
        again = importlib.import_module("jax.export").deserialize(path.read_bytes()).call
        at = np.linspace(0.1, 1.0, 5)
        np.testing.assert_allclose(again(at), g(at), rtol=1e-12)
