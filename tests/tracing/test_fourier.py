"""np.fft and complex intermediate values: values as NumPy's, derivatives as JAX's, adjoints by their defining identity."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft

import riesz as rz
from riesz.errors import TraceError, VectorError
from riesz.ops.discrete_fourier import TURNED, Fourier, HermitianFourier, RealFourier, as_complex, as_pairs

jax.config.update("jax_enable_x64", True)

NORMS = ("backward", "ortho", "forward")
RNG = np.random.default_rng(3)


def parts(z: Any) -> Any:
    """A result that may be complex, as real arrays."""
    return (z.real, z.imag) if np.iscomplexobj(z) else (z,)


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    """Equal shapes, and equal numbers relative to the largest."""
    a, b = np.asarray(a.to_dense() if hasattr(a, "to_dense") else a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    assert np.allclose(a, b, rtol=0, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0.0))), equal_nan=True), (
        a,
        b,
    )


# -- the ops ----------------------------------------------------------------------------------------------


def ops(n: int, norm: str) -> list[tuple[Any, tuple[int, ...]]]:
    """Each transform along an axis of length n in the middle or at the end, with the shape it takes."""
    return [
        (Fourier((-1,), True, norm), (3, n, 2)),
        (Fourier((-2, -1), False, norm), (2, n, 3, 2)),
        (RealFourier(-1, norm), (3, n)),
        (RealFourier(-2, norm, True), (n, 3)),
        (HermitianFourier(-1, norm, n), (3, n // 2 + 1, 2)),
        (HermitianFourier(-2, norm, n, True), (n // 2 + 1, 3, 2)),
    ]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_the_adjoint_of_a_transform_pushes_across_the_inner_product(n: int, norm: str) -> None:
    for op, shape in ops(n, norm):
        x = RNG.normal(size=shape)
        y = op.run(x)
        w = RNG.normal(size=y.shape)
        back = op.turned(shape)
        assert y.shape == op.result((shape,)) and op.lifted(5) is op
        assert back.turned(y.shape) is op, "F** = F"
        close(np.sum(y * w), np.sum(x * back.run(w)))


@pytest.mark.parametrize("norm", NORMS)
def test_the_complex_transform_is_unitary_up_to_scale(norm: str) -> None:
    x = RNG.normal(size=(6, 2))
    F = Fourier((-1,), True, norm)
    round_trip = F.turned(x.shape).run(F.run(x))
    close(round_trip, x * {"backward": 6.0, "ortho": 1.0, "forward": 1 / 6.0}[norm])  # F*F = n
    assert F.turned(x.shape) is Fourier((-1,), False, TURNED[norm])


@pytest.mark.parametrize("norm", NORMS)
def test_the_real_transform_composed_with_its_inverse_is_the_identity(norm: str) -> None:
    for n in (1, 4, 5):
        x = RNG.normal(size=n)
        close(HermitianFourier(-1, norm, n).run(RealFourier(-1, norm).run(x)), x)


def test_pairs_are_views_of_complex_numbers() -> None:
    z = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
    assert np.array_equal(as_complex(as_pairs(z)), z) and np.shares_memory(as_pairs(z), z)
    assert as_complex(as_pairs(z.astype(np.complex64))).dtype == np.complex64


# -- every function of np.fft -----------------------------------------------------------------------------

ONE = [
    (name, kind)
    for name, kind in (("fft", "rc"), ("ifft", "rc"), ("rfft", "r"), ("irfft", "rc"), ("hfft", "rc"), ("ihfft", "r"))
]
MANY = [
    ("fft2", "rc"),
    ("ifft2", "rc"),
    ("fftn", "rc"),
    ("ifftn", "rc"),
    ("rfft2", "r"),
    ("irfft2", "rc"),
    ("rfftn", "r"),
    ("irfftn", "rc"),
]

CALLS: list[tuple[str, bool, tuple[int, ...], dict[str, Any]]] = []
for _name, _kinds in ONE:
    for _kind in _kinds:
        for _shape, _given in (
            *[((n,), {}) for n in (2, 3, 4, 5)],
            *[((5,), {"n": n}) for n in (1, 2, 3, 4, 7, 8)],
            *[((4,), {"norm": norm}) for norm in NORMS],
            ((3, 4, 2), {"axis": 0, "n": 5}),
            ((3, 4, 2), {"axis": -2, "norm": "ortho"}),
        ):
            CALLS.append((_name, _kind == "c", _shape, _given))
for _name, _kinds in MANY:
    for _kind in _kinds:
        for _shape, _given in (
            *[((3, 4), {"norm": norm}) for norm in NORMS],
            ((4, 3), {}),
            ((2, 3, 4), {}),
            ((2, 3, 4), {"axes": (0, 2)}),
            ((2, 3, 4), {"axes": (2, 1)}),
            ((3, 4), {"s": (5, 2), "axes": (0, 1)}),
            ((3, 4), {"s": (2, 7), "axes": (1, 0)}),
            ((3, 4), {"s": (-1, 5), "axes": (0, 1)}),
            ((1, 5), {}),
        ):
            CALLS.append((_name, _kind == "c", _shape, _given))
for _name in ("fft", "ifft", "rfft", "ihfft"):
    CALLS.append((_name, False, (1,), {}))


def called(name: str, given: dict[str, Any]) -> Any:
    """The function on a real array, or on a real and an imaginary part."""
    function = getattr(np.fft, name)

    def code(*xs: Any) -> Any:
        return parts(function(xs[0] if len(xs) == 1 else xs[0] + 1j * xs[1], **given))

    return code


@pytest.mark.parametrize(("name", "of_complex", "shape", "given"), CALLS, ids=str)
def test_a_transform_has_numpys_values_and_a_true_adjoint(
    name: str, of_complex: bool, shape: tuple[int, ...], given: dict[str, Any]
) -> None:
    xs = tuple([RNG.normal(size=shape) for _ in range(1 + of_complex)])
    f = called(name, given)
    wanted = f(*xs)
    found = rz.function(f)(*xs)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        close(a, b, 1e-13)
    # f is linear: its derivative is f itself, and the vjp must be the adjoint of that
    dxs = tuple([RNG.normal(size=shape) for _ in xs])
    _, dy = rz.jvp(f, xs, dxs)
    for a, b in zip(dy, f(*dxs), strict=True):
        close(a, b, 1e-13)
    ws = tuple([RNG.normal(size=np.shape(y)) for y in wanted])
    back = rz.vjp(f, *xs)[1](ws)
    close(
        sum([np.sum(a * b) for a, b in zip(dy, ws, strict=True)]),
        sum([np.sum(a * b) for a, b in zip(dxs, back, strict=True)]),
    )


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("axes", [None, 0, (0, 1), -1])
def test_shifts_of_real_and_complex_arrays(name: str, axes: Any) -> None:
    x = RNG.normal(size=(3, 4))
    shift = getattr(np.fft, name)
    close(rz.function(lambda x: shift(x, axes))(x), shift(x, axes))
    close(rz.function(lambda x: shift(np.fft.fft(x), axes).imag)(x), shift(np.fft.fft(x), axes).imag)
    w = RNG.normal(size=(3, 4))
    turned = np.fft.ifftshift if name == "fftshift" else np.fft.fftshift
    close(rz.grad(lambda x: np.sum(w * shift(x, axes)))(x), turned(w, axes))


def test_frequencies_are_plain_numpy() -> None:
    x = RNG.normal(size=6)
    d = rz.function(lambda x: np.fft.irfft(2j * np.pi * np.fft.rfftfreq(6) * np.fft.rfft(x)))(x)
    close(d, np.fft.irfft(2j * np.pi * np.fft.rfftfreq(6) * np.fft.rfft(x)))


# -- against JAX ------------------------------------------------------------------------------------------

H4 = np.array([1.0 + 0.5j, -0.3 + 1.2j, 0.8 - 0.4j, 0.2 + 0.1j])
PLACES = np.array([1, 1, 4])
W6 = np.array([0.3, -1.2, 0.7, 2.0, -0.4, 1.1])
M64 = RNG.normal(size=(6, 4)) + 1j * RNG.normal(size=(6, 4))

REAL_SCALARS: dict[str, Any] = {
    "power spectrum": lambda np, x: np.sum(W6 * np.abs(np.fft.fft(x)) ** 2),
    "power of the half spectrum, logarithmic": lambda np, x: np.sum(np.log(1.0 + np.abs(np.fft.rfft(x)) ** 2)),
    "amplitudes": lambda np, x: np.sum(W6[:4] * np.abs(np.fft.rfft(x))),
    "spectral convolution": lambda np, x: np.sum(np.fft.irfft(np.fft.rfft(x) * H4) ** 3),
    "convolution with itself": lambda np, x: np.sum(W6 * np.fft.ifft(np.fft.fft(x) * np.fft.fft(x**2)).real ** 2),
    "padded convolution": lambda np, x: np.sum(np.fft.irfft(np.fft.rfft(x, 11) * np.fft.rfft(x[:3], 11), 11)[2:8] ** 2),
    "phase": lambda np, x: np.sum(np.angle(np.fft.fft(x)[1:3]) ** 2),
    "cross correlation": lambda np, x: np.sum(np.fft.ifft(np.conj(np.fft.fft(x)) * np.fft.fft(np.sin(x))).real ** 2),
    "phase factors": lambda np, x: np.sum(np.fft.ifft(np.fft.fft(x) * np.exp(1j * W6 * x)).imag ** 2),
    "quotient of spectra": lambda np, x: np.sum((np.fft.fft(x) / (2.0 + np.fft.fft(np.tanh(x)))).real ** 2),
    "powers": lambda np, x: np.sum((np.fft.fft(x) ** 3 + (3.0 + np.fft.fft(x)) ** -2).imag ** 2),
    "root and logarithm": lambda np, x: np.sum(
        np.sqrt(np.fft.rfft(x) + 3j).real + np.log(np.fft.rfft(x) + 5j).imag ** 2
    ),
    "sine and tangens": lambda np, x: np.sum(
        np.abs(np.sin(0.1 * np.fft.rfft(x))) ** 2 + np.tanh(0.1 * np.fft.rfft(x) + 0.3).real
    ),
    "two axes": lambda np, x: np.sum(np.abs(np.fft.fft2(x.reshape(2, 3))) ** 4),
    "half the spectrum in two axes": lambda np, x: np.sum(
        np.fft.irfft2(np.fft.rfft2(x.reshape(2, 3)) ** 2, s=(2, 3)) ** 2
    ),
    "inverse of a real array": lambda np, x: np.sum(W6 * np.fft.ifft(x, norm="ortho").imag ** 2),
    "Hermitian": lambda np, x: np.sum(np.fft.hfft(np.fft.ihfft(x) ** 2) ** 2),
    "where in the spectrum": lambda np, x: np.sum(np.fft.ifft(np.where(W6 > 0, np.fft.fft(x), 0.0)).real ** 4),
    "pieces of the spectrum": lambda np, x: np.sum(
        np.abs(np.concatenate([np.fft.fft(x)[::-2], np.fft.fft(x)[PLACES]])) ** 2 * W6
    ),
    "complex matrix": lambda np, x: np.sum(np.abs(x @ M64) ** 2) + np.sum(np.abs(np.fft.fft(x) @ M64) ** 4) * 0.01,
    "einsum": lambda np, x: np.abs(np.einsum("i,ij,j->", np.fft.fft(x), M64, np.fft.rfft(x))) ** 2,
    "roll and mean": lambda np, x: np.mean(np.roll(np.fft.fft(x), 2) * np.fft.fft(x).conj()).imag ** 2,
    "shifted": lambda np, x: np.sum(np.fft.fftshift(np.fft.fft(x * W6)).real[1:4] ** 3),
}


def jax_code(f: Any) -> Any:
    """Constants are NumPy arrays; JAX takes them as they are."""
    return lambda x: f(jnp, x)


@pytest.mark.parametrize("name", REAL_SCALARS)
def test_values_gradients_and_hessians_agree_with_jax(name: str) -> None:
    f = REAL_SCALARS[name]
    x = np.array([0.7, -1.3, 0.4, 2.1, -0.6, 1.7])
    dx = np.array([0.2, 0.5, -1.0, 0.3, 0.9, -0.4])
    own, other = (lambda x: f(np, x)), jax_code(f)
    wanted = jax.jit(lambda x: (other(x), jax.grad(other)(x), jax.hessian(other)(x)))(x)
    close(rz.function(own)(x), wanted[0])
    close(rz.grad(own)(x), wanted[1])
    close(rz.jvp(own, (x,), (dx,))[1], np.asarray(wanted[1]) @ dx)
    close(rz.hessian(own)(x), wanted[2])
    close(rz.grad(lambda x: np.sum(dx * rz.grad(own)(x)))(x), np.asarray(wanted[2]) @ dx)


# -- complex values ---------------------------------------------------------------------------------------

X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
K = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))

EXPRESSIONS = [
    *(
        "z + K",
        "K - z",
        "1j * x",
        "x * 1j + 2",
        "z * K",
        "K / z",
        "z / K",
        "z / 2",
        "x / z",
        "z ** 2",
        "z ** 0",
        "z ** -3",
        "z ** 0.5",
        "z ** K",
        "2.0 ** z",
        "x ** 2j",
    ),
    *(
        "-z",
        "+z",
        "z.conj()",
        "np.conj(z)",
        "np.abs(z)",
        "abs(z)",
        "np.absolute(z)",
        "np.angle(z)",
        "np.angle(z, deg=True)",
        "np.real(z)",
        "np.imag(z)",
        "z.T",
        "z.mT",
    ),
    *(
        "np.exp(z)",
        "np.exp(1j * x)",
        "np.log(z)",
        "np.log2(z)",
        "np.log10(z)",
        "np.sqrt(z)",
        "np.sin(z)",
        "np.cos(z)",
        "np.tan(z)",
        "np.sinh(z)",
        "np.cosh(z)",
    ),
    *(
        "np.tanh(z)",
        "np.square(z)",
        "np.reciprocal(z)",
        "np.sign(z)",
        "z[1]",
        "z[:, ::-1]",
        "z[..., None, 2]",
        "z[[0, 2], [1, 1]]",
        "z[0] + z[1][:, None]",
    ),
    *(
        "z.reshape(4, 3)",
        "z.reshape(-1)",
        "z.ravel()",
        "z.flatten()",
        "z.transpose(1, 0)",
        "z.sum()",
        "z.sum(axis=0)",
        "z.mean(1, keepdims=True)",
        "np.cumsum(z, 0)",
    ),
    *(
        "np.sum(z, axis=-1)",
        "np.add.reduce(z)",
        "np.multiply.outer(z[0], z[1])",
        "np.diff(z)",
        "np.trace(z)",
        "np.diagonal(z)",
        "z.var()",
        "np.std(z, axis=0)",
    ),
    *(
        "np.linalg.norm(z)",
        "np.linalg.norm(z, axis=1)",
        "z @ z.T",
        "K.T @ z",
        "z @ K.T",
        "x @ K.T",
        "np.dot(K.T, x)",
        "x.dot(K.T)",
        "np.vdot(z, K)",
        "np.vdot(K, x)",
    ),
    *(
        "np.inner(z, K)",
        "np.outer(z, x)",
        "np.kron(z, K)",
        "np.tensordot(z, K, 2)",
        "np.einsum('ij,kj->ik', z, K)",
        "np.einsum('ij,ij,ij->j', z, K, z)",
    ),
    *(
        "np.convolve(z[0], K[1])",
        "np.correlate(z[0], K[1, :2])",
        "np.correlate(K[0], z[1, :2], 'full')",
        "np.concatenate([z, x, K])",
        "np.stack([x, z], axis=-1)",
    ),
    *(
        "np.hstack([z, x])",
        "np.vstack([z, x])",
        "np.block([[z, x], [K, z]])",
        "np.append(z, K)",
        "np.where(x > 0, z, K)",
        "np.where(x > 0, x, 1j)",
        "np.where(K.real > 0, z, 0)",
    ),
    *(
        "np.select([x > 1, x > 0], [z, K], 1j)",
        "np.roll(z, 1, axis=0)",
        "np.flip(z)",
        "np.tile(z, 2)",
        "np.repeat(z, 2, axis=0)",
        "np.pad(z, 1)",
        "np.moveaxis(z, 0, 1)",
    ),
    *(
        "np.expand_dims(z, 1)",
        "np.broadcast_to(z, (2, 3, 4))",
        "np.take(z, [0, 2], axis=1)",
        "np.triu(z)",
        "np.split(z, 2, axis=1)[1]",
        "np.squeeze(z[:1])",
    ),
    *(
        "x.astype(complex)",
        "np.asarray(z)",
        "np.array([z[0, 0], x[0, 1], 1.0])",
        "np.array([[z[0, 0], z[1, 0]], [1j, x[0, 0]]])",
        "np.zeros_like(z) + x",
        "np.full_like(z, 2j) * x",
    ),
    *(
        "np.full_like(K, x[0, 0])",
        "np.full((2, 2), z[0, 0])",
        "np.atleast_2d(z[0])",
        "np.where(z == z, x, 0)",
        "np.where(np.isnan(z) | np.isinf(z), 0, z)",
        "sum(z)",
        "z - z.real",
        "np.exp(1j * K.real) * x",
    ),
    *(
        "x + 0j",
        "(x + 0j) * (1j * y) + z",
        "np.fft.ifft(np.fft.fft(1j * x))",
        "np.fft.fft(K.real + 1j * x)",
        "np.fft.fft(x.astype(complex))",
        "np.vecdot(z, K)",
        "np.matvec(z, K[0])",
    ),
    "np.permute_dims(z, (1, 0))",
    "np.matrix_transpose(z)",
    "np.linalg.matrix_transpose(z)",
    "np.swapaxes(z, 0, 1)",
    "np.rollaxis(z, 1)",
    "np.array_split(z, 2)[0]",
    "np.vsplit(z, 3)[1]",
    "np.hsplit(z, 2)[0]",
    "np.dsplit(z[None], 2)[1]",
    "np.fliplr(z)",
    "np.flipud(z)",
    "np.rot90(z)",
    "np.resize(z, (2, 2))",
    "np.compress([True, False, True], z, axis=0)",
    "np.delete(z, 1, axis=0)",
    "np.tril(z)",
    "np.copy(z)",
    "z.copy()",
    "np.linalg.trace(z)",
    "np.linalg.diagonal(z)",
    "np.diag(z)",
    "np.diagflat(z[0])",
    "np.unstack(z)[1]",
    "np.linalg.matmul(z, K.T)",
    "np.linalg.tensordot(z, K, axes=2)",
    "np.linalg.outer(z[0], K[0])",
    "np.cross(z[:, :3], K[:, :3])",
    "np.linalg.vecdot(z, K)",
    "np.vecmat(K[:, 0], z)",
    "np.linalg.multi_dot([z, K.T, x])",
    "np.dstack([z, x])",
    "np.column_stack([z[0], x[0]])",
    "np.concat([z, K])",
    "np.broadcast_arrays(z, x[0])[0]",
    "np.atleast_1d(z[0, 0])",
    "np.atleast_3d(z)",
    "np.ones_like(z) * x",
    "np.empty_like(z) * 0 + x",
    "np.where(z != K, z, 0)",
    "np.where(np.isfinite(z), z, 0)",
    "np.shape(z)[0] * z + np.ndim(z) + np.size(z)",
    "np.mean(z)",
    "z.trace()",
    "z.swapaxes(0, 1)",
    "z.repeat(2)",
    "z.take([0, 5])",
    "z.dot(K.T)",
    "z.std()",
    "z.squeeze()",
    "z.diagonal()",
    "z.cumsum(1)",
    "z * [1j, 2, x[0, 0], 3]",
]


def expression(text: str) -> Any:
    """The parts of an expression in x, y, z = x + iy and a constant K."""
    code = compile(text, text, "eval")
    return lambda x, y: parts(eval(code, {"np": np, "K": K, "sum": sum}, {"x": x, "y": y, "z": x + 1j * y}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_complex_arithmetic_has_numpys_values_and_the_right_derivative(text: str) -> None:
    if not all(
        [hasattr(np, name) for name in ("vecdot", "matvec", "vecmat", "unstack", "concat") if f"np.{name}" in text]
    ):
        pytest.skip("not in this NumPy")
    f = expression(text)
    wanted = f(X, Y)
    found = rz.function(f)(X, Y)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        close(a, b)
    dx, dy = RNG.normal(size=(2, 3, 4))
    h = 1e-3
    _, moved = rz.jvp(f, (X, Y), (dx, dy))
    steps = [
        (k, c, f(X + k * h * dx, Y + k * h * dy))
        for k, c in ((1, 3 / 4), (-1, -3 / 4), (2, -3 / 20), (-2, 3 / 20), (3, 1 / 60), (-3, -1 / 60))
    ]
    for i, a in enumerate(moved):
        close(a, sum([c * v[i] for _, c, v in steps]) / h, 2e-8)
    ws = tuple([RNG.normal(size=np.shape(v)) for v in wanted])
    back = rz.vjp(f, X, Y)[1](ws)
    close(sum([np.sum(a * w) for a, w in zip(moved, ws, strict=True)]), np.sum(dx * back[0]) + np.sum(dy * back[1]))


def test_the_derivative_of_the_absolute_value_at_zero_is_zero() -> None:
    x = np.ones(4)  # all but the first Fourier coefficient vanish
    close(rz.grad(lambda x: np.sum(np.abs(np.fft.fft(x))))(x), np.ones(4))
    assert np.all(np.isfinite(rz.hessian(lambda x: np.sum(np.abs(np.fft.rfft(x))))(x).to_dense()))


def test_a_factor_that_is_zero_by_construction_costs_nothing() -> None:
    turn = rz.function(lambda x: np.sum(np.exp(1j * x).real))
    record, _ = turn.at((X,))
    assert len(record.program) == 2  # cos and Σ


def test_a_real_array_costs_half_a_transform() -> None:
    ops = [type(op) for op in rz.function(lambda x: np.abs(np.fft.fftn(x))).at((X,))[0].program.ops]
    assert RealFourier in ops
    around = rz.function(lambda x: np.fft.irfft(np.fft.rfft(x) * H4)).at((W6,))[0].program.ops
    assert Fourier not in [type(op) for op in around]


def test_transforms_one_after_the_other_do_not_take_complex_numbers_apart() -> None:
    record, _ = rz.function(lambda x, y: np.fft.ifft(np.fft.fft(np.fft.ifft(x + 1j * y))).real).at((W6, W6))
    assert len(record.program) == 5  # the parts put together, three transforms, the real part


# -- types and sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.abs(np.fft.fft(x)) ** 2,
        lambda x: np.fft.irfft(np.fft.rfft(x) * (1.0 + 2j), 5),
        lambda x: np.fft.ifft(np.exp(1j * x) * x + 2).real,
        lambda x: np.angle(np.where(x > 0, np.fft.fft(x), 1j)),
        lambda x: np.fft.fft(np.fft.ifft(x.astype(np.complex64)), norm="ortho").imag,
        lambda x: np.concatenate([np.fft.rfft(x), x]).real,
    ],
)
def test_float32_stays_float32(f: Any) -> None:
    x = RNG.normal(size=5).astype(np.float32)
    y = rz.function(f)(x)
    assert y.dtype == np.float32
    close(y, f(x), 1e-5)
    y, back = rz.vjp(f, x)
    found = back(np.ones(y.shape, np.float32))
    found = found[0] if isinstance(found, tuple) else found
    assert found.dtype == np.float32


def test_complex_types_are_numpys() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        z = np.fft.fft(x)
        seen.extend(
            [
                z.dtype,
                (1j * x).dtype,
                (np.complex128(1j) * x).dtype,
                (z * np.ones(3)).dtype,
                np.result_type(z, 1.0),
                z.shape,
                z.ndim,
                len(z),
                z.size,
            ]
        )
        seen.extend([np.iscomplexobj(z), np.iscomplexobj(x), z.real.dtype])
        return z.real

    x = np.ones(3, np.float32)
    f(x)
    wanted, seen = seen, []
    rz.function(f)(x)
    assert seen == wanted


def test_an_axis_of_length_one_and_no_batches() -> None:
    for f in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.ihfft):
        close(rz.jacobian(lambda x, f=f: f(x).real)(np.ones((2, 1))), np.eye(2))
    empty = np.ones((0, 4))
    assert rz.function(lambda x: np.abs(np.fft.fft(x)))(empty).shape == (0, 4)
    assert rz.grad(lambda x: np.sum(np.abs(np.fft.rfft(x))))(empty).shape == (0, 4)


def test_integers_become_floats() -> None:
    close(rz.function(lambda x: np.fft.fft((x > 0).astype(int)).real)(W6), np.fft.fft((W6 > 0).astype(int)).real)


# -- composed with the rest -------------------------------------------------------------------------------


def test_vmap_and_jacobian_of_transforms() -> None:
    def f(x: Any) -> Any:
        return np.fft.irfft(np.fft.rfft(x) * H4 * x[0]) + np.abs(np.fft.fft(x))

    batch = RNG.normal(size=(3, 6))
    close(rz.vmap(f)(batch), np.stack([f(x) for x in batch]))
    J = rz.jacobian(f)(batch[0])
    close(
        J,
        np.asarray(
            jax.jacobian(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * H4 * x[0]) + jnp.abs(jnp.fft.fft(x)))(batch[0])
        ),
    )
    close(
        rz.vmap(rz.grad(lambda x: np.sum(f(x) ** 2)))(batch),
        np.stack([rz.grad(lambda x: np.sum(f(x) ** 2))(x) for x in batch]),
    )


def test_a_computed_index_into_a_spectrum() -> None:
    def f(x: Any) -> Any:
        z = np.fft.fft(x)
        return np.abs(z[np.argmax(x)]) ** 2

    close(rz.function(f)(W6), f(W6))
    close(rz.grad(f)(W6), np.asarray(jax.grad(lambda x: jnp.abs(jnp.fft.fft(x)[jnp.argmax(x)]) ** 2)(W6)))


def test_scipys_transforms() -> None:
    def f(x: Any) -> Any:
        return np.sum(scipy.fft.irfft(scipy.fft.rfft(x, workers=1) * H4) ** 2) + np.sum(
            np.abs(scipy.fft.fftshift(scipy.fft.fft(x, 8, norm="ortho"))) ** 4
        )

    close(rz.function(f)(W6), f(W6))
    h = 1e-5
    slopes = [(f(W6 + h * e) - f(W6 - h * e)) / (2 * h) for e in np.eye(6)]
    close(rz.grad(f)(W6), slopes, 1e-8)


def test_an_array_of_an_outer_function_inside_an_inner_one() -> None:
    def f(x: Any) -> Any:
        z = np.fft.rfft(x)
        return rz.grad(lambda t: np.sum(np.fft.irfft(z * t) ** 2))(2.0)

    close(rz.function(f)(W6), 4.0 * np.sum(W6**2))
    close(rz.grad(f)(W6), 8.0 * W6)


# -- what is printed, what is refused ---------------------------------------------------------------------


def test_the_derivative_prints_its_transforms() -> None:
    _, L = rz.linearize(lambda x: np.fft.irfft(np.fft.rfft(x) * np.array([1.0, 0.5, 0.25, 0.0])), W6)
    assert str(L).startswith("F_ℝ⁻¹ • ") and "= F_ℝ\n" in str(L)
    assert str(L.H).startswith("F_ℝ* • ") and "= F_ℝ⁻¹*\n" in str(L.H)
    _, L = rz.linearize(lambda x: np.fft.ifft(x * H4.repeat(2)[1:7], norm="ortho").real, W6)
    assert "U*" in str(L) and "U •" in str(L.H)
    _, L = rz.linearize(lambda x: np.fft.irfft(np.fft.rfft(x, axis=0, norm="forward"), axis=0, norm="forward"), X)
    assert str(L) == "(n · F_{ℝ,-2}⁻¹) • d\n  where d = (F_{ℝ,-2} / n)" or str(L) == "(n · F_{ℝ,-2}⁻¹) • (F_{ℝ,-2} / n)"


REFUSED = {
    "complex result": (lambda x: np.fft.fft(x), "real and imaginary part"),
    "order": (lambda x: np.fft.fft(x) > 0, "no order"),
    "unknown function": (lambda x: np.sort(np.fft.fft(x)), "z.real"),
    "unknown ufunc": (lambda x: np.arcsin(np.fft.fft(x)), "z.real"),
    "rfft of complex": (lambda x: np.fft.rfft(1j * x).real, "real"),
    "conversion to float": (lambda x: np.fft.fft(x).astype(float), "z.real"),
    "number": (lambda x: complex(np.fft.fft(x)[0]), "traced"),
    "ordering function": (lambda x: np.max(np.fft.fft(x)), "z.real"),
    "start of a sum": (lambda x: np.sum(np.fft.fft(x), initial=2.0).real, "initial"),
    "border": (lambda x: np.pad(np.fft.fft(x), 1, constant_values=2.0).real, "constant_values"),
    "type of a sum": (lambda x: np.sum(np.fft.fft(x), None, float), "further"),
    "complex shift": (lambda x: np.roll(x, 1j), "first argument only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_a_way_out(name: str) -> None:
    f, words = REFUSED[name]
    with pytest.raises(TraceError, match=words):
        rz.function(f)(W6)


def test_complex_arguments_are_refused() -> None:
    with pytest.raises(VectorError, match="real and imaginary"):
        rz.function(lambda x: np.abs(x))(K)


def test_numpys_own_complaints() -> None:
    with pytest.raises(ValueError, match="norm"):
        rz.function(lambda x: np.fft.fft(x, norm="half").real)(W6)
    with pytest.raises(ValueError, match="data points"):
        rz.function(lambda x: np.fft.fft(x, 0).real)(W6)
    with pytest.raises(ValueError, match="different lengths"):
        rz.function(lambda x: np.fft.fftn(x, s=(2, 2), axes=(0,)).real)(W6)
    with pytest.raises(np.exceptions.AxisError):
        rz.function(lambda x: np.fft.fft(x, axis=1).real)(W6)
