"""Cases: ufuncs, operators, functions that choose, reductions, methods of arrays and of ufuncs."""

from __future__ import annotations

from cases import N, P, U, case, names, texts

EMPTY = ((0,), (3, 0), (0, 1), (1,), (1, 1))
PAIRS = (((0,), (0,)), ((0,), (1,)), ((3, 0), (0,)), ((1, 4), (3, 1)), ((1,), ()), ((0, 3), (1, 3)))

# -- ufuncs of one argument -------------------------------------------------------------------------------

for name in names("""
    sin cos tan sinh cosh tanh arctan arcsinh exp exp2 expm1 cbrt reciprocal absolute fabs sign square negative positive conjugate sinc
    deg2rad radians rad2deg degrees floor ceil rint trunc nan_to_num real imag angle round around i0
"""):
    case(f"np.{name}(x)", N(3, 4), shapes=EMPTY)
for name in names("arcsin arccos arctanh log1p"):
    case(f"np.{name}(x)", U(3, 4), shapes=EMPTY)
for name in names("log log2 log10 sqrt"):
    case(f"np.{name}(x)", P(3, 4), shapes=EMPTY)
case("np.arccosh(x + 1.0)", P(3, 4), shapes=EMPTY)
for name in names("isnan isfinite isinf signbit isposinf isneginf isreal iscomplex"):
    case(f"np.{name}(x)", N(3, 4), shapes=EMPTY)
case("np.sin(x)", N())
case("np.exp(x) * np.cos(x)", N())
case("np.fix(x)", N(3), differences=True)
case("np.real_if_close(x)", N(3), differences=True)
case("np.angle(x, deg=True)", N(3))
case("np.round(x, 1)", N(3))
case("np.modf(x)", N(4), shapes=((0,), (1,)))
case("np.sqrt(x * x + 1.0)", N(2, 3, 4))
case("np.tanh(np.sin(np.exp(x)))", N(4))
case("np.nan_to_num(x + onp.array([onp.nan, 0.0, onp.inf, -onp.inf]), nan=1.0, posinf=2.0, neginf=-3.0)", N(4))
case("np.zeros_like(x) + np.ones_like(x) * x + np.full_like(x, 2.5)", N(3, 4), shapes=EMPTY)
case("np.zeros_like(x, shape=(2,)) + x[0]", N(3))
case("np.full_like(onp.zeros((2, 3)), x)", N(), differences=True)
case("np.empty_like(x)[:0] + x[:0]", N(3))
case("np.full((2, 3), x)", N(3))
case("np.full((2, 3), x, dtype=onp.float64)", N())
case("np.full(3, x[1])", N(3))
case("np.linspace(0.0, x, 5)", N())
case("np.linspace(x, y, 4)", N(3), N(2, 1), shapes=(((0,), (1,)), ((1,), ())))
case("np.linspace(x, 2, 4, endpoint=False)", N(3))
case("np.linspace(x, y, 5, axis=-1)", N(3), N(3))
case("np.linspace(x, y, 3, retstep=True)", N(), N())
case("np.linspace(x, 1.0, 1)", N(2))

# -- ufuncs of two arguments ------------------------------------------------------------------------------

for name in names("add subtract multiply divide maximum minimum fmax fmin logaddexp logaddexp2 hypot arctan2 copysign"):
    case(f"np.{name}(x, y)", N(3, 4), N(3, 4), shapes=PAIRS)
    case(f"np.{name}(x, y)", N(3, 1), N(4))
    case(f"np.{name}(x, y)", N(3), N())
    case(f"np.{name}(x, 1.5)", N(3))
    case(f"np.{name}(1.5, x)", N(3))
    case(f"np.{name}(x, onp.array([[1.5], [-0.5]]))", N(3))
for name in names("power float_power"):
    case(f"np.{name}(x, y)", P(3, 4), N(3, 4), shapes=PAIRS)
    case(f"np.{name}(x, y)", P(3, 1), N(4))
    case(f"np.{name}(x, 3)", N(3), single=name == "power")
    case(f"np.{name}(x, 2.5)", P(3), single=name == "power")
    case(f"np.{name}(2.0, x)", N(3), single=name == "power")
case("np.power(x, onp.array([0.0, 1.0, 2.0, 3.0]))", P(4))
case("np.power(x, np.array([1.0, 2.0, 3.0]))", N(3))
case("np.true_divide(x, y)", N(3), N(3))
case("np.arctan2(x, y)", N(1), N(2, 1), shapes=PAIRS)
for name in names("less less_equal greater greater_equal equal not_equal floor_divide"):
    case(f"np.{name}(x, y)", N(3, 1), N(4), shapes=PAIRS)
    case(f"np.{name}(x, 1)", N(3))
case("np.heaviside(x, 0.5)", N(3))
case("np.remainder(x, y)", N(3, 1), P(4), shapes=PAIRS)
case("np.remainder(x, 3.0)", N(3))
case("np.mod(x, y)", N(3), N(3))
case("np.fmod(x, y)", N(3, 1), N(4), shapes=PAIRS)
case("np.fmod(x, 0.7)", N(3))
case("np.divmod(x, y)", N(3), N(3))
case("np.floor_divide(x, 0.3) * x", N(3))
case("np.isclose(x, y)", N(3), N(3))
case("np.isclose(x, x + 1e-9)", N(3))
case("np.allclose(x, y)", N(3), N(3))
case("np.where(np.array_equal(x, y), x, 2.0 * y)", N(3), N(3))
case("np.array_equal(x, x)", N(3), shapes=((0,),))
case("x.astype(np.common_type(x, y))", N(3), N(3), differences=True)
case("np.ldexp(x, 3)", N(3), shapes=((0,),))
case("np.ldexp(x, onp.array([1, -2, 0]))", N(2, 3))
case("np.allclose(x, x + 1e-9)", N(3), shapes=((0,),))
for name in names("logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor"):
    case(f"np.{name}(x > 0, x < 1)", N(3, 4))
    case(f"np.where(np.{name}(x > 0, y < 1), x, y)", N(3, 1), N(4))
case("np.logical_not(x > 0)", N(3))
case("np.invert(x > 0)", N(3))
for name in names("gcd lcm left_shift right_shift"):
    case(f"np.{name}(np.argmax(x, axis=0) + 2, 2)", N(3, 4))
    case(f"x * np.{name}(np.argmax(x, axis=0) + 2, 2)", N(3, 4), single=False)

# -- operators --------------------------------------------------------------------------------------------

for text in texts("""
    x + 2; 2 + x; x - 2; 2 - x; x * 2; 2 * x; x / 2; 2 / x; x + 0.5; 0.5 - x; 3.5 * x; x / 3.5; 3.5 / x; -x; +x; abs(x); x % 3.0; 3.0 % x;
    x // 0.5; 3.0 // x; x ** 2; x ** 3; x ** 1; x ** 0; x ** -1; x ** -2.0; x ** 4.0; 2.0 ** x; 2 ** x; divmod(x, 0.7); x > 0; x >= 0; x < 0;
    x <= 0; x == 0; x != 0; 0 < x; (x > 0) & (x < 1); (x > 0) | (x < -1); (x > 0) ^ (x < 1); ~(x > 0)
"""):
    case(text, N(3))
    if "//" not in text:
        case(text, N(3, 4), shapes=((0,), (1, 1)))
for text in ("x ** 0.5", "x ** 1.5", "x ** -0.5", "x ** x", "1.5 ** x"):
    case(text, P(3))
for text in ("x + y", "x - y", "x * y", "x / y", "x % y", "x > y", "x // y"):
    case(text, N(3, 4), N(4))
    case(text, N(3, 1), N(4), shapes=PAIRS)
    case(text, N(), N(3))
    case(text, N(2, 1, 4), N(3, 1))
case("x ** y", P(2, 1, 4), N(3, 1), shapes=PAIRS)
for text in texts("""
    onp.float64(2.0) * x; x * onp.float64(2.0); onp.float64(2.0) - x; x / onp.float64(3.0); onp.float64(3.0) / x; x ** onp.float64(2.0);
    onp.int64(3) * x; x + onp.int64(3); onp.float32(0.5) * x; x - onp.float32(0.5); x ** onp.int64(3); onp.float64(2.0) > x
"""):
    case(text, N(3))
for text in texts("""
    x + [1.0, 2.0, 3.0]; [1.0, 2.0, 3.0] - x; [1, 2, 3] * x; x / [1.0, 2.0, 4.0]; [[1.0], [2.0]] * x; (1.0, 2.0, 3.0) + x; x > [0.0, 1.0, -1.0];
    x ** [1.0, 2.0, 3.0]
"""):
    case(text, P(3), differences=True)
for text in texts("""
    onp.array([1.0, 2.0, 3.0]) * x; x @ onp.arange(3.0); onp.eye(3) @ x; onp.array([1, 2, 3]) + x; x - onp.array([[1], [2]]);
    x / onp.array([2, 4, 8]); onp.array([1, 2, 3]) / x; onp.array([True, False, True]) * x; x + True; onp.arange(3) ** x; x * onp.ones((2, 1, 3));
    x ** onp.array([1, 2, 3]); x * 1.0 * onp.array(2.0); onp.arange(3) * x + 1
"""):
    case(text, P(3))
case("x @ y", N(3), N(3))
case("x * x + x", N())
case("2.0 * x + 1", N())
case("x * y", N(), N())
case("x + y * z", N(3), N(), N(2, 1))

# -- functions that choose --------------------------------------------------------------------------------

BRANCHES = (((0,), (0,)), ((1, 4), (3, 1)), ((), (2,)), ((3, 0), (1,)))
case("np.where(x > 0, x, y)", N(3, 4), N(3, 4), shapes=BRANCHES)
case("np.where(x > y, x * y, y ** 2)", N(3, 1), N(4), shapes=BRANCHES)
case("np.where(onp.array([True, False, True]), x, 0.0)", N(2, 3), shapes=((0, 3), (1, 3)))
case("np.where(onp.array([[True], [False]]), x, y)", N(3), N())
case("np.where([True, False, True], x, 1)", N(3), differences=True)
case("np.where(x > 0, 1.0, 0.0) * x", N(3))
case("np.where(x > 0, 1, 2)", N(3))
case("np.where(x > 0, np.sqrt(np.abs(x)), -x)", N(3))
case("np.where(x > 0, np.where(x > 1, x ** 2, x), 0)", N(3, 4))
case("np.where(True, x, 2 * x)", N(3))
case("np.where(x, x, 1.0)", N(3))
case("np.where(np.argmax(x, axis=0), x[0], x[1])", N(2, 4))
case("np.where(x > 0, np.log(x), 0.0)", N(3, fixed={1: -1.0}), differences=True)
case("np.where(x > 0, np.sqrt(x), 0.0)", N(3, fixed={1: -1.0}), differences=True)
case("np.where(onp.array([True, False]), onp.array([1.0, 2.0]), x)", N(2))
case("np.select([x > 1, x > 0], [x, x ** 2])", N(3, 4), shapes=((0,), (1,)))
case("np.select([x > 1, x > 0], [x, x ** 2], default=-1.0)", N(3, 4))
case("np.select([x > 0, x < -1], [x * y, y], default=x)", N(3), N(3))
case("np.select([x > 0, x < -1], [1.0, 2.0], 0.5) * x", N(4), differences=True)
case("np.clip(x, -1.0, 1.0)", N(3, 4), shapes=EMPTY)
case("np.clip(x, None, 1.0)", N(3, 4))
case("np.clip(x, -0.5, None)", N(3, 4))
case("np.clip(x, 0, 1)", N(3))
case("np.clip(x, y, y + 1.0)", N(3, 4), N(4))
case("np.clip(x, onp.array([-1.0, 0.0, 0.5]), 1.0)", N(3))
case("np.clip(x, min=-0.5, max=0.5)", N(3))
case("x.clip(-0.5, 0.5)", N(3))
case("np.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v ** 2, 0.5])", N(6))
case("np.piecewise(x, [x < 0, x >= 0], [-1.0, lambda v: v])", N(6))
case("np.piecewise(x, [x > 0], [lambda v, k: k * v], 3.0)", N(4))
case("np.maximum(x, 0.0)", N(3, 4), shapes=EMPTY)
case("np.minimum(np.maximum(x, -1), 1)", N(3, 4))
case("np.abs(x) + np.maximum(x, y) * np.minimum(x, 2 * y)", N(3), N(3))
case("np.maximum(np.argmax(x, axis=0), 1)", N(3, 4))

# -- reductions -------------------------------------------------------------------------------------------

MATRICES = ((0, 4), (3, 0), (1, 4), (3, 1), (1, 1))
AXES = ("", ", axis=0", ", axis=-1", ", axis=(0, 1)", ", axis=1, keepdims=True", ", keepdims=True")
for name in names("sum mean prod var std nansum nanmean nanprod"):
    for rest in AXES:
        case(f"np.{name}(x{rest})", N(3, 4), shapes=MATRICES if rest in ("", ", axis=0") else ((1, 4), (3, 0)))
    case(f"np.{name}(x, axis=(0, -1))", N(2, 3, 4), shapes=((0, 3, 4), (1, 3, 1)))
    case(f"np.{name}(x, (1, 2), keepdims=True)" if name != "prod" else "np.prod(x, axis=1)", N(2, 3, 4))
    case(f"np.{name}(x)", N(4), shapes=((0,), (1,)))
for name in names("max min amax amin ptp nanmax nanmin"):
    for rest in AXES:
        case(f"np.{name}(x{rest})", N(3, 4), shapes=MATRICES)
    case(f"np.{name}(x, axis=(0, -1))", N(2, 3, 4))
    case(f"np.{name}(x)", N(4), shapes=((0,), (1,)))
for name in names("sum mean prod max min"):
    case(f"np.{name}(x)", N())
case("np.sum(x, axis=())", N(2, 3), differences=True)
case("np.sum(x, dtype=onp.float64)", N(3))
case("np.sum(x, initial=2.0)", N(3), shapes=((0,),))
case("np.sum(x, where=onp.array([True, False, True]))", N(2, 3))
case("np.sum(x, axis=0, where=x > 0)", N(2, 3))
case("np.sum(x > 0)", N(3, 4))
case("np.sum(x > 0, axis=0, keepdims=True)", N(3, 4))
case("sum(x)", N(3))
case("sum([x[i] * y[i] for i in range(3)])", N(3), N(3))
case("np.mean(x, where=onp.array([True, False, True]))", N(2, 3))
case("np.mean(x, axis=0, where=onp.array([[True, False, True], [True, True, True]]))", N(2, 3))
case("np.mean(x > 0)", N(3, 4), differences=True)
case("np.mean(x, axis=-2)", N(2, 3, 4))
case("np.mean(x, dtype=onp.float64)", N(3))
for rest in ("", ", axis=0", ", axis=1"):
    case(f"np.average(x{rest})", N(3, 4), shapes=((1, 4),))
case("np.average(x, axis=0, weights=onp.array([1.0, 2.0, 3.0]))", N(3, 4))
case("np.average(x, axis=0, weights=y)", N(3, 4), P(3))
case("np.average(x, weights=y)", N(3, 4), P(3, 4))
case("np.average(x, axis=1, weights=y, returned=True)", N(3, 4), P(4))
case("np.average(x, axis=1, weights=y, keepdims=True)", N(3, 4), P(4))
for name in names("var std"):
    case(f"np.{name}(x, ddof=1)", N(3, 4), shapes=((1, 1), (2, 1)))
    case(f"np.{name}(x, axis=0, ddof=1, keepdims=True)", N(3, 4), shapes=((2, 0), (2, 1)))
    case(f"np.{name}(x, axis=1, correction=1)", N(3, 4))
    case(f"np.{name}(x, axis=0, mean=np.mean(x, axis=0, keepdims=True))", N(3, 4), differences=True)
    case(f"x.{name}(axis=1, ddof=1)", N(3, 4))
case("np.var(x, where=onp.array([True, False, True]))", N(2, 3))
case("np.max(x, initial=0.5)", N(3, 4), shapes=((0,), (0, 3)))
case("np.min(x, axis=0, initial=0.5)", N(3, 4), shapes=((0, 3),))
case("np.max(x, axis=0, where=onp.array([[True], [False], [True]]), initial=-10.0)", N(3, 4))
case("np.max(x > 0)", N(3))
case("np.max(np.stack([x, x]), axis=0)", N(3))
case("np.max(x) + np.min(y)", N(3, fixed={0: 5.0, 1: 5.0}), N(4, fixed={0: -5.0, 2: -5.0, 3: -5.0}))
case("np.maximum(x, y)", N(3, fixed={0: 1.0}), N(3, fixed={0: 1.0}))
for name in names("argmax argmin"):
    for rest in ("", ", axis=0", ", axis=-1", ", axis=1, keepdims=True"):
        case(f"np.{name}(x{rest})", N(3, 4), shapes=((1, 4), (3, 1)))
for name in names("any all count_nonzero"):
    for rest in ("", ", axis=0", ", axis=(0, 1)", ", axis=1, keepdims=True"):
        case(f"np.{name}(x > 0{rest})", N(3, 4), shapes=((0, 4), (1, 4), (3, 0)))
case("np.any(x)", N(3))
case("np.where(np.all(x > -5, axis=0), x, 0.0)", N(3, 4))
ZEROS = N(5, fixed={2: 0.0}), N(5, fixed={1: 0.0, 3: 0.0}), N(4, fixed={0: 0.0, 1: 0.0, 3: 0.0})
for zeros in ZEROS:
    case("np.prod(x)", zeros)
    case("np.cumprod(x)", zeros, differences=True)
case("np.prod(x, axis=0)", N(3, 4, fixed={(1, 2): 0.0, (0, 1): 0.0, (2, 1): 0.0}))
case("np.prod(x, initial=2.0)", N(3), shapes=((0,),))
case("np.prod(x, axis=0, where=onp.array([True, False, True]))", N(2, 3))
case("np.prod(x)", N(7))
for name in names("cumsum cumprod"):
    for rest in ("", ", axis=0", ", axis=-1"):
        case(f"np.{name}(x{rest})", N(3, 4), shapes=((0, 4), (3, 0), (1, 4), (3, 1)))
    case(f"np.{name}(x, axis=1)", N(2, 3, 4))
    case(f"np.{name}(x)", N(5), shapes=((0,), (1,)))
case("np.cumsum(x > 0)", N(4))
case("np.nancumsum(x)", N(4), shapes=((0,), (1,)))
case("np.nancumsum(x, axis=1)", N(2, 3))
case("np.nancumsum(np.where(x > 0, x, np.nan) * y)", N(4), N(4), differences=True)
case("np.nancumprod(x)", N(4), shapes=((0,), (1,)))
case("np.nancumprod(np.where(x > 0, x, np.nan) * y)", N(4), N(4), differences=True)
case("np.cumsum(x, dtype=onp.float64)", N(4))
for name in names("cumulative_sum cumulative_prod"):
    case(f"np.{name}(x)", N(4), shapes=((0,), (1,)))
    case(f"np.{name}(x, axis=1, include_initial=True)", N(3, 4), shapes=((3, 1), (2, 0)))
    case(f"np.{name}(x, axis=-2)", N(3, 4))
for rest in ("", ", n=2", ", axis=0", ", n=2, axis=0", ", n=0", ", n=4"):
    case(f"np.diff(x{rest})", N(3, 5), shapes=((3, 1), (1, 4), (2, 0)))
case("np.diff(x, prepend=0.0)", N(5))
case("np.diff(x, prepend=x[:1], append=1)", N(5))
case("np.diff(x, axis=0, prepend=y, append=onp.ones((1, 4)))", N(3, 4), N(2, 4))
case("np.diff(x, n=2, prepend=0, append=0)", N(3, 4))
case("np.ediff1d(x)", N(3, 4), shapes=((0,), (1,)))
case("np.ediff1d(x, to_begin=1.0, to_end=onp.array([2.0, 3.0]))", N(4))
case("np.ediff1d(x, to_end=y)", N(4), N(2))
case("np.gradient(x)", N(5))
case("np.gradient(x)", N(2))
case("np.gradient(x)", N(3, 4))
case("np.gradient(x, 0.5)", N(5))
case("np.gradient(x, 0.5, axis=1)", N(3, 5))
case("np.gradient(x, 0.5, 2.0)", N(4, 5))
case("np.gradient(x, axis=(0, 1))", N(4, 5))
case("np.gradient(x, axis=-1, edge_order=2)", N(3, 5), differences=True)
case("np.gradient(x, onp.array([0.0, 0.3, 1.0, 1.5, 3.0]))", N(5), differences=True)
case("np.gradient(x, onp.array([0.0, 0.3, 1.0, 1.5]), axis=0)", N(4, 2), differences=True)
case("np.nansum(x + onp.array([onp.nan, 0.0, 0.0]), axis=0)", N(2, 3))
case("np.nanmean(x + onp.array([onp.nan, 0.0, 0.0]))", N(2, 3), differences=True)
case("np.nanmax(np.where(onp.array([True, False, False]), onp.nan, x), axis=1)", N(2, 3), differences=True)
case("np.nanmin(np.where(onp.array([True, False, False]), onp.nan, x))", N(2, 3), differences=True)
case("np.trapezoid(x)", N(5), shapes=((1,), (0,)))
case("np.trapezoid(x, dx=0.5, axis=0)", N(3, 4))
case("np.trapezoid(x, onp.array([0.0, 1.0, 1.5, 3.0]))", N(3, 4))
case("np.trapezoid(x, y)", N(4), N(4))
case("np.trapezoid(x, y, axis=0)", N(3, 4), N(3, 4))
case("np.trapezoid(x, y, axis=0)", N(3, 4), N(3))

# -- methods of arrays ------------------------------------------------------------------------------------

for text in texts("""
    x.sum(); x.sum(axis=0); x.sum(1, keepdims=True); x.mean(axis=0); x.mean(); x.prod(axis=1); x.max(); x.min(axis=0);
    x.max(axis=1, keepdims=True); x.var(); x.std(axis=0); x.reshape(-1); x.reshape(4, 3); x.reshape((2, -1)); x.reshape(2, 6, order='F');
    x.ravel(); x.ravel(order='F'); x.flatten(); x.T; x.transpose(); x.transpose(1, 0); x.transpose((1, 0)); x.mT; x.dot(x.T); x.dot(onp.ones(4));
    x.cumsum(axis=1); x.cumprod(0); x.cumsum(); x.diagonal(); x.diagonal(1); x.repeat(2); x.repeat(2, axis=1); x.take(onp.array([0, 2]), axis=1);
    x.swapaxes(0, 1); x[:, :1].squeeze(); x[:, :1].squeeze(axis=1); x.clip(0.0, 1.0); x.clip(min=0.0); x.round(); x.round(1); x.argmax();
    x.argmin(axis=1); (x > 0).any(); (x > 0).all(axis=0); x.copy(); x.conj(); x.real; x.astype(onp.float64); x.astype(float).sum(); x.astype(int);
    (x > 0).astype(float) * x; x.ndim * x; x.size * x.sum(); x.shape[0] * x; len(x) * x; (x > 0).sum(axis=0); x.imag; x.conjugate()
"""):
    case(text, N(3, 4))
case("(x > 0).mean(axis=0) * x", N(3, 4), differences=True)
case("x.compress([True, False, True], axis=0)", N(3, 4), differences=True)
case("list(x.flat)", N(2, 2), differences=True)
case("x.flat[1]", N(2, 2), differences=True)

# -- methods of ufuncs ------------------------------------------------------------------------------------

for rest in ("", ", axis=0", ", axis=1", ", axis=None", ", axis=-1, keepdims=True"):
    for name in names("add multiply maximum minimum"):
        case(f"np.{name}.reduce(x{rest})", N(3, 4))
case("np.add.reduce(x)", N(3), shapes=((0,), (1,)))
case("np.add.reduce(x, (0, 1))", N(3, 4))
case("np.logaddexp.reduce(x)", N(3, 4))
case("np.logaddexp.reduce(x, axis=1)", N(3, 4))
case("np.logical_and.reduce(x > 0)", N(3, 4))
case("np.logical_or.reduce(x > 0, axis=1)", N(3, 4))
case("np.add.accumulate(x)", N(3, 4))
case("np.add.accumulate(x, axis=1)", N(3, 4))
case("np.multiply.accumulate(x, axis=-1)", N(3, 4))
case("np.maximum.accumulate(x)", N(5), differences=True)
case("np.minimum.accumulate(x, axis=1)", N(3, 4), differences=True)
for name in names("add subtract multiply divide maximum arctan2 hypot"):
    case(f"np.{name}.outer(x, y)", N(3), N(4), differences=name in ("divide", "arctan2", "hypot"))
case("np.multiply.outer(x, onp.array([1.0, 2.0]))", N(2, 3))
case("np.subtract.outer(onp.array([1.0, 2.0]), x)", N(2, 3))
case("np.power.outer(x, y)", P(3), N(2), differences=True)
case("np.less.outer(x, y)", N(3), N(2), differences=True)
