"""Calls of jax.numpy, jax.lax, jax.scipy and jax.nn as people write them: the text of a function of x (and y, z), and
shapes. Numbers are of both signs, "+" positive ones, "u" between 0.1 and 0.9, "s" symmetric positive definite."""

UNARY = """sin cos tan arcsin:u arccos:u arctan sinh cosh tanh arcsinh arccosh:+2 arctanh:u exp exp2 expm1 log:+ log2:+
log10:+ log1p:+ sqrt:+ cbrt:+ square abs sign floor ceil rint trunc negative reciprocal:+ sinc degrees radians deg2rad
nan_to_num positive i0 conj real angle"""

NUMPY = """
x + y | 4 4
x - 2.0 * y | 3,4 4
x * y | 3,1 4
x / y | 4 4+
x ** 3 | 4
x ** 2.5 | 4+
x ** y | 4+ 4
2.0 ** x | 4
jnp.power(x, -2) | 4+
x // 0.7 | 4+
x % 0.7 | 4+
jnp.maximum(x, y) | 4 4
jnp.minimum(x, 0.3) | 4
jnp.fmax(x, y) | 4 4
jnp.hypot(x, y) | 4 4
jnp.arctan2(x, y) | 4 4
jnp.logaddexp(x, y) | 4 4
jnp.logaddexp2(x, y) | 4 4
jnp.heaviside(x, 0.5) * x | 4
jnp.copysign(x, y) | 4 4
jnp.clip(x, -0.5, 0.5) | 6
jnp.where(x > 0, x * x, jnp.sin(x)) | 6
jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0) | 6
jnp.select([x > 1, x > 0], [x ** 2, x], -x) | 6
jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v ** 2]) | 6
jnp.sum(x) | 3,4
jnp.sum(x, axis=0) | 3,4
jnp.sum(x, axis=(0, 2), keepdims=True) | 2,3,4
jnp.mean(x, 1) | 3,4
jnp.prod(x, axis=1) | 3,4
jnp.max(x, axis=0) | 3,4
jnp.min(x) | 3,4
jnp.std(x, axis=0) | 4,3
jnp.var(x, ddof=1) | 4
jnp.ptp(x, axis=0) | 4,3
jnp.median(x) | 5
jnp.quantile(x, 0.3) | 7
jnp.percentile(x, jnp.array([20.0, 60.0])) | 7
jnp.average(x, weights=y) | 4 4+
jnp.cumsum(x) | 5
jnp.cumsum(x, axis=1) | 3,4
jnp.cumprod(x, axis=0) | 3,4
jnp.nansum(x) | 4
jnp.linalg.norm(x) | 4
jnp.linalg.norm(x, axis=1) | 3,4
jnp.linalg.norm(x, 1) | 4
jnp.linalg.norm(x, jnp.inf) | 4
x @ y | 4 4
x @ y | 3,4 4
x @ y | 3,4 4,2
x @ y | 2,3,4 2,4,2
x @ y | 2,3,4 4,2
jnp.dot(x, y) | 3,4 4,2
jnp.vdot(x, y) | 3,2 3,2
jnp.inner(x, y) | 3,4 2,4
jnp.outer(x, y) | 3 4
jnp.kron(x, y) | 2,2 2,3
jnp.tensordot(x, y, 2) | 2,3,4 3,4,2
jnp.tensordot(x, y, ((1,), (0,))) | 2,3 3,4
jnp.einsum('ij,jk->ik', x, y) | 2,3 3,4
jnp.einsum('bij,bj->bi', x, y) | 2,3,4 2,4
jnp.einsum('ii->i', x) | 3,3
jnp.einsum('ij,ij->', x, y) | 3,4 3,4
jnp.einsum('i,ij,j->', x, y, z) | 3 3,4 4
jnp.trace(x) | 4,4
jnp.diag(x) | 4
jnp.diag(x, 1) | 4
jnp.diag(x) | 4,4
jnp.diagonal(x, offset=1) | 3,4
jnp.tril(x) | 4,4
jnp.triu(x, 1) | 4,4
jnp.matrix_power(x, 3) if hasattr(jnp, 'matrix_power') else jnp.linalg.matrix_power(x, 3) | 3,3
jnp.cross(x, y) | 3 3
jnp.vander(x, 3) | 4
jnp.polyval(x, y) | 3 4
jnp.convolve(x, y) | 5 3
jnp.convolve(x, y, mode='valid') | 6 3
jnp.correlate(x, y, mode='same') | 6 3
jnp.reshape(x, (2, 6)) | 3,4
x.T | 3,4
jnp.transpose(x, (2, 0, 1)) | 2,3,4
jnp.swapaxes(x, 0, 1) | 2,3,4
jnp.moveaxis(x, 0, -1) | 2,3,4
x.ravel() | 3,4
jnp.squeeze(x) | 1,4,1
x[:, None] * x[None] | 4
jnp.expand_dims(x, 1) | 4
jnp.broadcast_to(x, (3, 4)) | 4
jnp.concatenate([x, y]) | 3,2 2,2
jnp.stack([x, y], axis=1) | 4 4
jnp.hstack([x, y]) | 3 4
jnp.vstack([x, y]) | 4 4
jnp.dstack([x, y]) | 2,3 2,3
jnp.column_stack([x, y]) | 3 3
jnp.split(x, 3)[1] | 6
jnp.array_split(x, 4)[0] | 7
jnp.flip(x) | 3,4
jnp.flip(x, 0) | 3,4
jnp.roll(x, 2) | 5
jnp.roll(x, 1, axis=1) | 3,4
jnp.rot90(x) | 3,4
jnp.tile(x, (2, 3)) | 2,2
jnp.repeat(x, 3) | 4
jnp.repeat(x, jnp.array([1, 2, 0, 3]), total_repeat_length=6) | 4
jnp.pad(x, 2) | 4
jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0) | 3,4
jnp.pad(x, 2, mode='edge') | 4
jnp.pad(x, 2, mode='reflect') | 5
jnp.pad(x, 2, mode='wrap') | 5
jnp.diff(x) | 5
jnp.diff(x, n=2, axis=0) | 5,2
jnp.ediff1d(x) | 5
jnp.gradient(x) | 6
jnp.trapezoid(x) | 6
jnp.interp(y, jnp.linspace(-3.0, 3.0, 6), x) | 6 4
jnp.sort(x) | 6
jnp.sort(x, axis=0) | 4,3
jnp.argsort(x) * x | 6
x[jnp.argsort(y)] | 5 5
jnp.partition(x, 2)[:3].sum() | 6
jnp.take(x, jnp.array([0, 2, 2])) | 4
jnp.take(x, jnp.array([2, 0]), axis=1) | 3,4
jnp.take(x, jnp.array([[2, 0], [1, 1]]), axis=0) | 3,4
jnp.take(x, jnp.array([1, 9, -1]), mode='clip') | 4
jnp.take_along_axis(x, jnp.array([[0], [2], [1]]), axis=1) | 3,4
jnp.choose(jnp.array([0, 1, 0]), [x, y]) | 3 3
jnp.compress(jnp.array([True, False, True]), x) | 3
x[1] | 4
x[-1] | 4
x[1:3] | 5
x[::-1] | 5
x[::2, 1:] | 4,3
x[..., 0] | 2,3,4
x[:, -2:, ::2] | 2,3,4
x[jnp.array([3, 0, 0])] | 4
x[jnp.array([-1, -2])] | 4
x[jnp.array([[0, 1], [2, 2]])] | 4
x[jnp.array([0, 1]), jnp.array([2, 0])] | 3,4
x[:, jnp.array([0, 2])] | 3,4
x[jnp.array([0, 2]), 1:3] | 3,4
x[1, jnp.array([0, 2])] | 3,4
x[jnp.array([0, 1])[:, None], jnp.array([1, 2])] | 3,4
x[jnp.array([0, 1]), :, jnp.array([2, 0])] | 2,3,4
x[jnp.array([True, False, True, True])] | 4
x[jnp.argmax(x)] | 5
x[jnp.argmax(x, axis=0), jnp.arange(3)] | 4,3
x.at[1].set(2.0) | 4
x.at[1].set(y) | 4 s
x.at[jnp.array([0, 2])].set(y) | 4 2
x.at[jnp.array([0, 0])].add(y) | 4 2
x.at[1:3].add(y) | 4 2
x.at[1:3].multiply(y) | 4 2
x.at[:, 1].set(y) | 3,4 3
x.at[:, 1].add(y) | 3,4 3
x.at[jnp.array([0, 1]), jnp.array([1, 2])].set(y) | 3,4 2
x.at[jnp.array([0, 0, 1]), jnp.array([1, 1, 2])].add(y) | 3,4 3
x.at[jnp.array([0, 2])].mul(y, unique_indices=True) | 4 2
x.at[jnp.array([0, 2])].max(y) | 4 2
x.at[jnp.array([0, 2])].min(y) | 4 2
x.at[jnp.array([0, 0])].max(y) | 4 2
x.at[jnp.array([0, 9])].add(y) | 4 2
x.at[jnp.array([0, 9])].set(y) | 4 2
x.at[jnp.array([0, 9])].get(mode='fill', fill_value=1.0) | 4
x.at[::2].set(0.0) | 5
x.at[1, 1:].set(y) | 3,4 3
x.at[jnp.argmax(x)].set(y) | 5 s
x.at[jnp.argsort(x)[:2]].add(y) | 5 2
x.at[2:].divide(y) | 5 3+
x.at[1].power(2.0) | 4+
jnp.zeros(5).at[jnp.array([0, 3, 3])].add(x) | 3
jnp.zeros((3, 3)).at[jnp.diag_indices(3)].set(x) | 3
jnp.zeros((4, 4)).at[jnp.triu_indices(4)].set(x) | 10
x[jnp.tril_indices(3)] | 3,3
jnp.bincount(jnp.array([0, 1, 1, 3]), weights=x, length=5) | 4
jnp.signbit(x) * x | 4
jnp.fill_diagonal(x, y, inplace=False) | 3,3 3
jnp.insert(x, 1, y) | 4 s
jnp.delete(x, 1) | 4
jnp.append(x, y) | 4 2
jnp.linspace(0.0, 1.0, 4) * x | 4
jnp.meshgrid(x, y)[0] | 3 4
jnp.vectorize(lambda a: a * jnp.sin(a))(x) | 4
jax.vmap(lambda v: v @ v)(x) | 3,4
jax.vmap(lambda v, w: v[w.astype(int)] * 2, (0, None))(x, jnp.abs(y) * 0) | 3,4 2
jax.vmap(lambda v: v.at[1].add(v[0]))(x) | 3,4
jax.vmap(lambda v, i: v[i])(x, jnp.array([0, 2, 1])) | 3,4
jax.vmap(lambda v, i: v.at[i].set(0.0))(x, jnp.array([0, 2, 1])) | 3,4
jax.vmap(lambda v, i: jax.lax.dynamic_slice(v, (i,), (2,)))(x, jnp.array([0, 2, 1])) | 3,4
jax.jit(lambda v: jnp.sin(v) * v)(x) | 4
jax.grad(lambda v: jnp.sum(v ** 3))(x) | 4
jax.jvp(lambda v: jnp.sin(v), (x,), (x,))[1] | 4
jax.hessian(lambda v: jnp.prod(v))(x) | 3
jax.jacfwd(lambda v: v ** 2)(x) | 3
jax.checkpoint(lambda v: jnp.sin(v) ** 2)(x) | 4
jax.lax.stop_gradient(x) * x | 4
jnp.unwrap(x) | 5
jnp.nanmax(x) | 5
jnp.all(x > -9) * x | 4
jnp.isclose(x, y) * x | 4 4
jnp.float_power(x, 2.0) | 4+
jnp.cov(x) | 3,5
jnp.corrcoef(x) | 3,5
jnp.histogram(x, bins=3, range=(-2.0, 2.0), weights=y)[0] | 6 6
jnp.apply_along_axis(lambda v: v @ v, 1, x) | 3,4
jnp.block([[x, x], [x, y]]) | 2,2 2,2
jnp.atleast_2d(x) | 4
jnp.array([x[0], 2.0, x[1] * x[2]]) | 4
jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), x) * x | 5
jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])) * x | 5
jnp.nonzero(jnp.array([1, 0, 1]))[0] * x | 2
jnp.unique(jnp.array([3, 1, 3]))[0] * x | 2
jnp.dot(jnp.arange(3.0), x) | 3
jnp.astype(x, jnp.float32).astype(jnp.float64) * 1.0 | 4
jnp.round(x, 1) + x | 4
jnp.sum(x, where=jnp.array([True, False, True])) | 3
jnp.max(x, initial=-9.0) | 4
jnp.logspace(0.0, 1.0, 3) * x | 3
jnp.tri(3) @ x | 3
jnp.eye(3) * x | 3
jnp.toeplitz(x) if hasattr(jnp, 'toeplitz') else jax.scipy.linalg.toeplitz(x) | 4
"""

LAX = """
lax.add(x, y) | 4 4
lax.integer_pow(x, 3) | 4
lax.rsqrt(x) | 4+
lax.clamp(-0.5, x, 0.5) | 6
lax.select(x > 0, x, y) | 4 4
lax.select_n(jnp.array([0, 2, 1]), x, y, z) | 3 3 3
lax.dot(x, y) | 3,4 4,2
lax.dot_general(x, y, (((1,), (2,)), ((0,), (0,)))) | 2,4,3 2,5,4
lax.batch_matmul(x, y) | 2,3,4 2,4,2
lax.slice(x, (1, 0), (3, 4), (1, 2)) | 4,5
lax.slice_in_dim(x, 1, 3, axis=1) | 3,4
lax.dynamic_slice(x, (1, 2), (2, 2)) | 4,5
lax.dynamic_slice(x, (9,), (2,)) | 4
lax.dynamic_slice(x, (jnp.argmax(x),), (2,)) | 5
lax.dynamic_index_in_dim(x, 1, axis=0) | 3,4
lax.dynamic_update_slice(x, y, (1, 1)) | 4,4 2,2
lax.dynamic_update_slice(x, y, (jnp.argmin(x),)) | 5 2
lax.dynamic_update_slice(x, y, (jnp.argmax(x[0]), 1)) | 4,4 2,2
lax.concatenate([x, y], 0) | 3 2
lax.pad(x, 0.0, ((1, 2, 1),)) | 4
lax.pad(x, 1.5, ((1, 2, 2), (0, 1, 0))) | 3,2
lax.pad(x, 0.0, ((-1, 2, 0),)) | 5
lax.rev(x, (0,)) | 5
lax.transpose(x, (1, 0)) | 3,4
lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)) | 3,4
lax.reshape(x, (6, 2)) | 3,4
lax.reduce(x, 0.0, lax.add, (0,)) | 3,4
lax.reduce_window(x, 0.0, lax.add, (2,), (1,), 'VALID') | 6
lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), 'SAME') | 5,5
lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 2, 1), 'SAME') | 2,5,4
lax.reduce_window(x, 0.0, lax.add, (2,), (1,), ((1, 1),), window_dilation=(2,)) | 6
lax.cumsum(x, axis=0) | 4,2
lax.cumsum(x, axis=0, reverse=True) | 5
lax.cumprod(x, axis=0, reverse=True) | 4
lax.cummax(x, axis=0) | 6
lax.cummin(x, axis=0) | 6
lax.cumlogsumexp(x, axis=0) | 5
lax.sort(x) | 6
lax.sort((x, y), num_keys=1)[1] | 5 5
lax.sort((jnp.round(x), x, y), num_keys=2)[2] | 5 5
lax.top_k(x, 2)[0] | 5
lax.top_k(x, 2)[0] | 3,5
lax.top_k(x, 2)[1] * 1.0 * x[:, :2] | 3,5
lax.argmax(x, 0, jnp.int32) * x | 5
lax.conv(x, y, (1, 1), 'SAME') | 2,3,5,5 4,3,3,3
lax.conv(x, y, (2, 1), 'VALID') | 1,2,6,5 3,2,2,3
lax.conv_general_dilated(x, y, (1,), 'SAME') | 2,3,8 4,3,3
lax.conv_general_dilated(x, y, (1, 1), ((1, 0), (2, 1)), rhs_dilation=(2, 1)) | 1,2,6,6 2,2,2,2
lax.conv_general_dilated(x, y, (1,), ((2, 2),), lhs_dilation=(2,)) | 1,2,5 3,2,3
lax.conv_general_dilated(x, y, (1,), 'SAME', feature_group_count=2) | 1,4,6 6,2,3
lax.conv_general_dilated(x, y, (1,), 'SAME', batch_group_count=2) | 4,2,6 6,2,3
lax.conv_general_dilated(x, y, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')) | 1,5,5,2 3,3,2,3
lax.conv_transpose(x, y, (2,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC')) | 1,4,2 3,2,2
lax.scan(lambda c, v: (c * v + 1.0, c), 1.0, x)[0] | 5
lax.scan(lambda c, v: (jnp.tanh(y @ c + v), c[0]), jnp.zeros(3), x)[1] | 5,3 3,3
lax.scan(lambda c, v: (c + v, c * v), 0.0, x, reverse=True)[1] | 5
lax.scan(lambda c, _: (c * x, None), jnp.ones(3), None, length=4)[0] | 3
lax.scan(lambda c, v: ((c[0] + 1, c[1] * v + c[0]), c[1]), (0, x[0]), x)[0][1] | 5
lax.fori_loop(0, 4, lambda i, c: c * x[i], 1.0) | 4
lax.fori_loop(1, 4, lambda i, c: c.at[i].add(c[i - 1] ** 2), x) | 4
lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x) | 4
lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, jnp.ones(3)))[1] | 3
lax.while_loop(lambda c: jnp.sum(c) < 10.0, lambda c: c * 2.0, x) | 3+
lax.cond(x[0] > 0, lambda v: v ** 2, lambda v: -v, x) | 3
lax.cond(True, lambda v: v ** 2, lambda v: -v, x) | 3
lax.switch(jnp.argmax(x), [lambda v: v, lambda v: v ** 2, lambda v: jnp.sin(v)], x) | 3
lax.map(lambda v: v @ v, x) | 4,3
lax.associative_scan(jnp.add, x) | 6
lax.associative_scan(lambda a, b: a * b, x) | 6
lax.custom_linear_solve(lambda v: (y + y.T) @ v, x, lambda _, b: jnp.linalg.solve(y + y.T, b), symmetric=True) | 3 3,3s
lax.erf(x) | 4
lax.erfc(x) | 4
lax.erf_inv(x) | 4u
lax.lgamma(x) | 4+
lax.digamma(x) | 4+
lax.bessel_i0e(x) | 4
lax.bessel_i1e(x) | 4
lax.logistic(x) | 4
lax.is_finite(x) * x | 4
lax.population_count(lax.bitcast_convert_type(jnp.arange(4), jnp.uint64)) * x | 4
lax.optimization_barrier(x) * 2.0 | 4
lax.reduce_precision(x, 11, 52) | 4
lax.expand_dims(x, (0,)) | 4
lax.squeeze(x, (0,)) | 1,4
lax.full_like(x, 2.0) * x | 4
lax.iota(jnp.float64, 4) * x | 4
lax.exp2(x) | 4
lax.square(x) | 4
lax.tan(x) | 4
lax.round(x) + x | 4
lax.round(x * 0.0 + jnp.array([0.49999999999999994, 0.5, -2.5, 2.0**52 + 1])) + x | 4
jnp.ravel(x, order='F') * x.reshape(-1) | 3,4
x.reshape((2, 6), order='F') | 3,4
lax.rem(x, y) | 4+ 4+
lax.linalg.triangular_solve(y, x, left_side=True, lower=True) | 3,2 3,3s
lax.linalg.triangular_solve(y, x, left_side=False, lower=False, transpose_a=True) | 2,3 3,3s
lax.linalg.cholesky(x) | 3,3s
lax.linalg.tridiagonal_solve(jnp.array([0.0, 0.1, 0.2, 0.1]), x + 3.0, jnp.array([0.3, 0.1, 0.2, 0.0]), y) | 4+ 4,2
"""

SCIPY = """
jss.expit(x) | 4
jss.logit(x) | 4u
jss.logsumexp(x) | 5
jss.logsumexp(x, axis=1, b=y) | 3,4 3,4+
jss.softmax(x) if hasattr(jss, 'softmax') else jnn.softmax(x) | 5
jss.erf(x) | 4
jss.erfinv(x) | 4u
jss.gammaln(x) | 4+
jss.gamma(x) | 4+
jss.digamma(x) | 4+
jss.polygamma(1, x) | 4+
jss.betaln(x, y) | 4+ 4+
jss.betainc(1.5, 2.5, x) | 4u
jss.gammainc(2.0, x) | 4+
jss.gammaincc(2.0, x) | 4+
jss.xlogy(x, y) | 4+ 4+
jss.xlog1py(x, y) | 4+ 4+
jss.entr(x) | 4+
jss.rel_entr(x, y) | 4+ 4+
jss.kl_div(x, y) | 4+ 4+
jss.i0(x) | 4
jss.i0e(x) | 4
jss.i1(x) | 4
jss.ndtr(x) | 4
jss.ndtri(x) | 4u
jss.log_ndtr(x) | 4
jss.multigammaln(x + 3.0, 2) | 4+
jss.factorial(x) | 4+
jst.norm.logpdf(x, y, 2.0) | 4 4
jst.norm.cdf(x) | 4
jst.norm.ppf(x) | 4u
jst.gamma.logpdf(x, 2.0) | 4+
jst.beta.logpdf(x, 2.0, 3.0) | 4u
jst.t.logpdf(x, 4.0) | 4
jst.laplace.logpdf(x) | 4
jst.cauchy.logpdf(x) | 4
jst.expon.logpdf(x) | 4+
jst.logistic.logpdf(x) | 4
jst.poisson.logpmf(jnp.array([0, 1, 2, 3]), x) | 4+
jst.bernoulli.logpmf(jnp.array([0, 1, 1, 0]), x) | 4u
jst.multivariate_normal.logpdf(x, jnp.zeros(3), y) | 3 3,3s
jst.dirichlet.logpdf(x / jnp.sum(x), jnp.array([2.0, 3.0, 1.5])) | 3+
jsl.solve(y, x) | 3 3,3s
jsl.solve(y, x) | 3,2 3,3s
jsl.solve(y + y.T, x, assume_a='pos') | 3 3,3s
jnp.linalg.solve(y, x) | 3 3,3s
jnp.linalg.solve(y, x) | 3,2 3,3s
jnp.linalg.solve(y, x) | 2,3,1 2,3,3s
jnp.linalg.inv(x) | 3,3s
jnp.linalg.det(x) | 2,2
jnp.linalg.det(x) | 3,3
jnp.linalg.det(x) | 5,5s
jnp.linalg.slogdet(x)[1] | 4,4s
jnp.linalg.cholesky(x) | 3,3s
jnp.linalg.eigh(x)[0] | 3,3s
jnp.linalg.eigvalsh(x) | 3,3s
jnp.linalg.svd(x, compute_uv=False) | 3,4
jnp.linalg.qr(x)[1] | 4,3
jnp.linalg.pinv(x) | 4,3
jnp.linalg.lstsq(x, y)[0] | 4,3 4
jnp.linalg.matrix_power(x, 3) | 3,3
jnp.linalg.multi_dot([x, y, z]) | 2,3 3,4 4,2
jsl.cho_solve(jsl.cho_factor(y + y.T), x) | 3 3,3s
jsl.lu_solve(jsl.lu_factor(y), x) | 3 3,3s
jsl.solve_triangular(y, x, lower=True) | 3 3,3s
jsl.expm(x * 0.3) | 3,3
jsl.block_diag(x, y) | 2,2 2,3
jnp.fft.fft(x).real | 6
jnp.abs(jnp.fft.rfft(x)) ** 2 | 6
jnp.fft.irfft(jnp.fft.rfft(x) * 2.0) | 6
jnp.fft.fft2(x).imag | 3,4
jax.scipy.signal.convolve(x, y) | 6 3
jax.scipy.ndimage.map_coordinates(x, [y], order=1) | 6 3u
jax.scipy.integrate.trapezoid(x) | 6
jax.scipy.cluster.vq.vq(x, y)[1] | 4,2 3,2
"""

NN = """
jnn.relu(x) | 6
jnn.relu6(x * 5) | 6
jnn.sigmoid(x) | 6
jnn.softplus(x) | 6
jnn.silu(x) | 6
jnn.gelu(x) | 6
jnn.gelu(x, approximate=False) | 6
jnn.elu(x) | 6
jnn.selu(x) | 6
jnn.celu(x) | 6
jnn.leaky_relu(x) | 6
jnn.hard_tanh(x) | 6
jnn.hard_swish(x) if hasattr(jnn, 'hard_swish') else x | 6
jnn.hard_sigmoid(x) | 6
jnn.mish(x) | 6
jnn.soft_sign(x) | 6
jnn.log_sigmoid(x) | 6
jnn.log_softmax(x) | 6
jnn.softmax(x) | 3,4
jnn.softmax(x, axis=0) | 3,4
jnn.logsumexp(x) | 6
jnn.glu(x) | 6
jnn.standardize(x) | 6
jnn.one_hot(jnp.array([0, 2]), 3) @ x | 3
jnn.squareplus(x) | 6
jnn.sparse_plus(x) | 6
jax.nn.initializers.zeros(jax.random.key(0), (3,)) + x | 3
jax.random.normal(jax.random.key(3), (4,)) * x | 4
jax.random.uniform(jax.random.PRNGKey(1), (4,)) * x | 4
jax.random.bernoulli(jax.random.key(0), 0.5, (4,)) * x | 4
jax.random.permutation(jax.random.key(0), x) | 5
jax.random.choice(jax.random.key(0), x, (3,)) | 5
jax.ops.segment_sum(x, jnp.array([0, 1, 1, 2]), 3) | 4
jax.ops.segment_sum(x, jnp.array([0, 1, 1, 2]), 3) | 4,2
jax.ops.segment_max(x, jnp.array([0, 1, 1, 2]), 3) | 4
jax.flatten_util.ravel_pytree({'a': x, 'b': y})[0] | 3 2,2
"""


def rows(text: str):
    """(text of the function, texts of the arguments)."""
    for line in text.strip().splitlines():
        code, _, shapes = line.rpartition(" | ")
        yield code, tuple(shapes.split())


CASES = [
    *[(f"jnp.{name.partition(':')[0]}(x)", (f"4{name.partition(':')[2]}",)) for name in UNARY.split()],
    *[row for text in (NUMPY, LAX, SCIPY, NN) for row in rows(text)],
]
