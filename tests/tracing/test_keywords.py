"""The keywords of every rule give NumPy's own value: a table of calls, compared with what NumPy and SciPy compute."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import riesz as rz

RNG = np.random.default_rng(5)
A = RNG.normal(size=(4, 3))
S = RNG.normal(size=(4, 4))
T = RNG.normal(size=(2, 3, 4))
SPD = S @ S.T + np.eye(4)
V = RNG.normal(size=7)
STACK = np.stack([SPD, 2 * SPD + np.eye(4)])
P = np.abs(A) + 0.5

TABLE = {
    "S": (
        S,
        """
        np.linalg.eigh(x, UPLO="U"); np.linalg.eigh(x, "L"); np.linalg.eigh(x, UPLO="u"); np.linalg.eigvalsh(x, UPLO="U");
        np.linalg.eigvalsh(x, "L"); np.linalg.svd(x, full_matrices=False); np.linalg.svd(x, compute_uv=False); np.linalg.qr(x, mode="complete");
        np.linalg.qr(x, "r"); np.linalg.pinv(x, rcond=0.3); np.linalg.pinv(x, rtol=0.3); np.linalg.matrix_rank(x, rtol=0.3);
        np.linalg.cond(x, p=1); np.linalg.cond(x, -2); np.linalg.cond(x, p="fro"); np.linalg.norm(x, ord=1); np.linalg.norm(x, "nuc");
        np.linalg.norm(x, 2, axis=(1, 0)); np.linalg.norm(x, 3, axis=1, keepdims=True); np.linalg.norm(x, -np.inf);
        np.linalg.matrix_norm(x, ord=-1, keepdims=True); np.linalg.vector_norm(x, axis=0, ord=np.inf, keepdims=True);
        np.linalg.matrix_power(x, n=-2); np.linalg.lstsq(x, np.ones(4), rcond=1e-3)[0]; np.linalg.tensorinv(x.reshape(2, 2, 4), ind=2);
        np.trace(x, offset=1); np.trace(x, axis1=1, axis2=0); np.tril(x, k=-1); np.triu(x, k=2); np.diagonal(x, offset=-1); np.diag(x, k=1);
        scipy.linalg.eigh(x, lower=False); scipy.linalg.eigh(x, driver="evd"); scipy.linalg.eigh(x, driver="ev", lower=False);
        scipy.linalg.eigh(x, eigvals_only=True, lower=False); scipy.linalg.eigh(x, subset_by_index=[1, 2]);
        scipy.linalg.eigh(x, subset_by_index=[0, 2], lower=False); scipy.linalg.eigvalsh(x, lower=False); scipy.linalg.eigh(x, SPD, lower=False);
        scipy.linalg.eigh(x, SPD, subset_by_index=[1, 3]); scipy.linalg.svd(x, full_matrices=False); scipy.linalg.svd(x, compute_uv=False);
        scipy.linalg.qr(x, mode="economic"); scipy.linalg.qr(x, mode="r"); scipy.linalg.lu(x, permute_l=True);
        scipy.linalg.solve(x, np.ones(4), transposed=True); scipy.linalg.solve(x, np.ones(4), assume_a="sym", lower=True);
        scipy.linalg.solve(x, np.ones(4), assume_a="sym"); scipy.linalg.solve_triangular(x, np.ones(4), trans="T");
        scipy.linalg.solve_triangular(x, np.ones(4), lower=True, unit_diagonal=True);
        scipy.linalg.solve_triangular(x, np.ones(4), trans=1, lower=True)
        """,
    ),
    "SPD": (
        SPD,
        """
        np.linalg.cholesky(x, upper=True); np.linalg.svd(x, hermitian=True); np.linalg.svd(x, hermitian=True, compute_uv=False);
        np.linalg.pinv(x, hermitian=True); np.linalg.matrix_rank(x, hermitian=True); scipy.linalg.cholesky(x, lower=True);
        scipy.linalg.cholesky(x); scipy.linalg.solve(x, np.ones(4), assume_a="pos");
        scipy.linalg.solve(x, np.ones(4), assume_a="pos", lower=True); scipy.linalg.cho_solve(scipy.linalg.cho_factor(x), np.ones(4));
        scipy.linalg.cho_solve(scipy.linalg.cho_factor(x, lower=True), np.ones(4))
        """,
    ),
    "a stack": (
        STACK,
        """
        np.linalg.eigh(x, UPLO="U"); np.linalg.eigvalsh(x, UPLO="U"); np.linalg.cholesky(x, upper=True); np.linalg.svd(x, hermitian=True);
        np.linalg.norm(x, axis=(-2, -1)); np.linalg.norm(x, -2, axis=(0, 2), keepdims=True); np.trace(x, axis1=1, axis2=2);
        np.linalg.qr(x, mode="r"); np.linalg.matrix_norm(x, ord="nuc"); np.diagonal(x, 1, 2, 1)
        """,
    ),
    "A": (
        A,
        """
        np.var(x, ddof=1); np.std(x, axis=0, ddof=2, keepdims=True); np.mean(x, axis=1, keepdims=True); np.sum(x, axis=(0, 1), keepdims=True);
        np.sum(x, where=A > 0); np.max(x, axis=0, initial=0.3); np.min(x, initial=-0.1, where=A > 0);
        np.prod(x, axis=1, where=A > 0, keepdims=True); np.median(x, axis=0, keepdims=True); np.median(x, axis=(0, 1));
        np.quantile(x, 0.3, axis=0); np.quantile(x, [0.2, 0.9], method="lower"); np.quantile(x, 0.4, axis=1, method="nearest", keepdims=True);
        np.quantile(x, 0.4, method="median_unbiased"); np.percentile(x, [5, 50], axis=1); np.percentile(x, 30, method="higher");
        np.nanquantile(x, 0.3, axis=1, keepdims=True); np.nanmedian(x, axis=0); np.nanpercentile(x, 20); np.ptp(x, axis=1, keepdims=True);
        np.argmax(x, axis=1, keepdims=True); np.argmin(x, axis=0); np.argsort(x, axis=0, kind="stable"); np.sort(x, axis=None);
        np.sort(x, axis=0, stable=True); np.partition(x, 1, axis=0)[:1]; np.cumsum(x, axis=1); np.cumprod(x, axis=0); np.diff(x, n=2, axis=0);
        np.diff(x, prepend=0.0, append=1.0, axis=1); np.gradient(x, 0.5, axis=0, edge_order=2); np.gradient(x, axis=(0, 1));
        np.trapezoid(x, dx=0.5, axis=0); np.trapezoid(x, x=np.array([0.0, 1.0, 3.0]), axis=1); np.average(x, axis=0, weights=np.arange(4.0));
        np.average(x, axis=1, weights=np.arange(3.0), returned=True); np.average(x, axis=0, keepdims=True); np.cov(x, rowvar=False);
        np.cov(x, bias=True); np.cov(x, ddof=0); np.cov(x, y=2 * x[:, ::-1]); np.cov(x, fweights=[1, 2, 3]); np.cov(x, aweights=[1.0, 2.0, 0.5]);
        np.corrcoef(x, rowvar=False); np.corrcoef(x, x[::-1]); np.roll(x, 2, axis=0); np.roll(x, (1, 2), axis=(0, 1)); np.flip(x, axis=1);
        np.rot90(x, k=3); np.rot90(x, 1, axes=(1, 0)); np.repeat(x, 2, axis=0); np.repeat(x, [1, 0, 2, 1], axis=0); np.tile(x, (2, 1, 2));
        np.pad(x, 1, mode="edge"); np.pad(x, ((1, 0), (2, 1)), "wrap"); np.pad(x, 2, mode="reflect", reflect_type="odd");
        np.pad(x, 1, mode="symmetric"); np.pad(x, 1, constant_values=3.0); np.pad(x, 1, mode="mean");
        np.pad(x, 2, mode="linear_ramp", end_values=5.0); np.take(x, [0, -1], axis=1); np.take(x, [5, -7], axis=0, mode="wrap");
        np.take(x, [5, -7], axis=0, mode="clip"); np.take_along_axis(x, np.argsort(A, axis=0), axis=0); np.delete(x, [0, 2], axis=0);
        np.insert(x, 1, 9.0, axis=1); np.append(x, x, axis=1); np.compress([True, False, True], x, axis=1); np.expand_dims(x, axis=(0, 3));
        np.squeeze(x[:, None], axis=1); np.moveaxis(x[None], 0, -1); np.rollaxis(x[None], 2, start=0); np.swapaxes(x, axis1=0, axis2=1);
        np.reshape(x, (3, -1), order="F"); np.ravel(x, order="F"); np.split(x, [1, 3], axis=0); np.array_split(x, 2, axis=1);
        np.stack([x, x], axis=-1); np.concatenate([x, x], axis=None); np.concatenate([x, x], axis=1, dtype=np.float32); np.round(x, decimals=1);
        np.around(x, 2); np.clip(x, a_min=-0.5, a_max=None); np.clip(x, None, 0.5); np.clip(x, min=-0.2, max=0.2);
        np.nan_to_num(x, nan=1.0, posinf=2.0); np.full_like(x, 2.0, shape=(2, 2)) * x[:2, :2]; np.isclose(x, A + 1e-4, atol=1e-3);
        np.allclose(x, A, rtol=0.0); np.size(x, axis=1); np.diagflat(x[0], k=1); np.einsum("ij->j", x, optimize=True); np.einsum("ij,kj", x, x);
        np.tensordot(x, x, axes=([0], [0])); np.tensordot(x, x, axes=2); np.cross(x, x[::-1], axis=1);
        np.interp(x, [-1.0, 0.0, 1.0], [3.0, 1.0, 2.0], left=-5.0, right=7.0); np.interp(x, [0.0, 0.5], [1.0, 2.0], period=1.5);
        np.searchsorted(np.sort(V), x, side="right"); np.digitize(x, [-0.5, 0.5], right=True); np.bincount([0, 2, 2], weights=x[0], minlength=5);
        np.linspace(x[0], x[1], num=4, axis=1); np.linspace(x[0], x[1], 3, endpoint=False); np.linspace(x[0, 0], 2.0, 5, retstep=True);
        np.sum(x, dtype=np.float32); np.mean(x, dtype=np.float32); np.lib.stride_tricks.sliding_window_view(x, 2, axis=0);
        np.logspace(x[0], x[1], num=3, base=2.0); np.convolve(x[0], x[1], mode="same"); np.correlate(x[0], x[1], mode="full");
        np.convolve(x[0], [1.0, 2.0], "valid")
        """,
    ),
    "P": (
        P,
        """
        scipy.special.logsumexp(x, axis=0); scipy.special.logsumexp(x, axis=1, keepdims=True); scipy.special.logsumexp(x, b=2.0);
        scipy.special.logsumexp(x, b=np.arange(3.0) + 0.5, axis=1); scipy.special.softmax(x, axis=0); scipy.special.log_softmax(x, axis=1);
        scipy.special.multigammaln(x + 1.0, 2); scipy.special.polygamma(2, x); np.geomspace(x[0], x[1], num=4);
        np.geomspace(x[0], x[1], 3, endpoint=False)
        """,
    ),
    "T": (
        T,
        """
        np.fft.fft(x, n=3, axis=1); np.fft.fft(x, norm="ortho"); np.fft.rfft(x, n=6); np.fft.rfft(x, axis=0, norm="forward");
        np.fft.fft2(x, axes=(0, 2)); np.fft.irfft(np.fft.rfft(x), n=4, norm="backward"); np.fft.fftn(x, s=(2, 2), axes=(0, 1));
        np.fft.ifft(x, axis=0, norm="ortho"); np.fft.rfftn(x, axes=(1, 2)); np.fft.fftshift(x, axes=1); np.fft.ifftshift(x, axes=(0, 2));
        np.fft.hfft(x, n=5); np.fft.ihfft(x, axis=1); np.transpose(x, axes=(2, 0, 1)); np.trace(x, offset=1, axis1=2, axis2=0);
        np.diagonal(x, 0, 1, 2); np.max(x, axis=(0, 2), keepdims=True); np.argsort(x, axis=1); np.cumsum(x, axis=-2);
        np.quantile(x, [[0.1, 0.5]], axis=(0, 1)); np.nanmean(x, axis=(1, 2), keepdims=True); np.count_nonzero(x > 0, axis=1, keepdims=True);
        np.all(x > -3, axis=(0, 1)); np.any(x > 1, axis=2, keepdims=True); np.sort(x, axis=1); np.linalg.cross(x[..., :3], x[..., 1:], axis=-1);
        np.linalg.vecdot(x, x, axis=1); np.linalg.diagonal(x, offset=1); np.linalg.trace(x, offset=-1)
        """,
    ),
}
CASES = [(x, " ".join(t.split())) for x, block in TABLE.values() for t in block.split(";")]
SPACE = {"np": np, "scipy": scipy, "A": A, "V": V, "SPD": SPD}


def parts(result):
    """The arrays of a result; complex ones as two."""
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    return [part for z in found for part in ((np.real(z), np.imag(z)) if np.iscomplexobj(z) else (z,))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("x", "text"), CASES, ids=[text for _, text in CASES])
def test_a_call_with_keywords_gives_numpys_value(x, text):
    f = eval(f"lambda x: {text}", SPACE)
    want = parts(f(x))
    found = rz.function(lambda x: parts(f(x)))(x)
    assert len(found) == len(want)
    for a, b in zip(found, want, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        assert np.asarray(a).dtype == np.asarray(b).dtype
