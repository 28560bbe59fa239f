"""scipy.stats in traced code against SciPy: every method of every distribution of the table."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.stats as stats
from sampling import sampled

import riesz as rz
from riesz.errors import TraceError
from riesz.tracing.rules.scientific.distributions import METHODS, rows

pytestmark = [pytest.mark.filterwarnings("ignore")]
SHAPES: dict[str, tuple[float, ...]] = {
    "t": (3.3,),
    "beta": (1.7, 2.6),
    "gamma": (2.3,),
    "chi2": (3.4,),
    "chi": (2.7,),
    "lognorm": (0.8,),
    "pareto": (4.6,),
    "lomax": (3.5,),
    "weibull_min": (1.8,),
    "weibull_max": (1.8,),
    "exponweib": (1.4, 1.7),
    "invgamma": (3.6,),
    "invgauss": (0.9,),
    "f": (5.5, 6.7),
    "nakagami": (1.6,),
    "powerlaw": (1.9,),
    "gengamma": (1.6, 1.3),
    "gennorm": (1.6,),
    "fisk": (2.6,),
    "genpareto": (0.15,),
    "gompertz": (0.9,),
    "loggamma": (1.4,),
    "genlogistic": (1.6,),
    "skewnorm": (1.2,),
    "exponnorm": (1.3,),
    "johnsonsu": (0.4, 1.3),
    "johnsonsb": (0.4, 1.3),
    "vonmises": (1.4,),
    "truncnorm": (-0.7, 1.6),
    "poisson": (2.4,),
    "binom": (7, 0.37),
    "bernoulli": (0.37,),
    "nbinom": (3.6, 0.42),
    "geom": (0.37,),
    "betabinom": (7, 1.6, 2.3),
    "logser": (0.6,),
    **{"alpha": (1.4,), "argus": (1.3,), "betaprime": (1.7, 4.6), "bradford": (0.8,), "burr": (2.1, 1.4)},
    **{"burr12": (2.1, 1.4), "crystalball": (0.9, 2.3), "dgamma": (1.7,), "dweibull": (1.8,), "erlang": (2.0,)},
    **{"exponpow": (1.3,), "fatiguelife": (0.9,), "foldcauchy": (0.7,), "foldnorm": (0.7,), "genextreme": (0.2,)},
    **{"genhalflogistic": (0.3,), "genexpon": (0.7, 0.9, 1.2), "geninvgauss": (1.3, 0.9), "halfgennorm": (1.6,)},
    **{"invweibull": (2.3,), "kappa3": (1.4,), "laplace_asymmetric": (1.3,), "loglaplace": (2.6,)},
    **{"loguniform": (0.2, 3.0), "reciprocal": (0.2, 3.0), "mielke": (1.6, 2.2), "ncx2": (3.3, 1.2)},
    **{"norminvgauss": (1.4, 0.6), "pearson3": (0.7,), "powerlognorm": (1.4, 0.8), "powernorm": (1.4,)},
    **{"rdist": (2.7,), "recipinvgauss": (0.9,), "rice": (0.8,), "skewcauchy": (0.4,), "trapezoid": (0.3, 0.7)},
    **{"triang": (0.4,), "truncexpon": (3.0,), "truncpareto": (1.6, 6.0), "truncweibull_min": (1.6, 0.2, 3.0)},
    **{"vonmises_line": (1.4,), "wrapcauchy": (0.4,), "randint": (0, 6), "planck": (0.6,), "boltzmann": (0.6, 9.0)},
    **{"dlaplace": (0.7,), "skellam": (2.1, 1.3), "yulesimon": (2.4,), "betanbinom": (5, 2.6, 1.3)},
}
NAMES = sorted(rows())
POINTS = {"weibull_max": np.array([-2.1, -0.7, -0.3])}
POINTS |= {name: np.array([1.0, 2.0, 4.0]) for name in NAMES if rows()[name].discrete}
POINTS |= {"bernoulli": np.array([0.0, 1.0])}
POINTS |= dict.fromkeys(("beta", "uniform", "powerlaw", "arcsine", "johnsonsb"), np.array([0.2, 0.55, 0.9]))
POINTS |= {"pareto": np.array([1.2, 1.9, 4.0]), "truncpareto": np.array([1.2, 1.9, 4.0])}
POINTS |= dict.fromkeys(("argus", "bradford", "trapezoid", "triang"), np.array([0.2, 0.55, 0.9]))
POINTS |= dict.fromkeys(("anglit", "rdist", "semicircular"), np.array([-0.6, 0.1, 0.7]))
POINTS |= {"levy_l": np.array([-2.1, -0.7, -0.3])}
WHOLE = {"binom": 1, "betabinom": 1, "randint": 2, "betanbinom": 1}
FIXED = {"ncx2": 0, "geninvgauss": 0, "boltzmann": 1}
"""How many of the shape parameters are whole numbers."""


def known(name: str) -> list[str]:
    """The methods that the table has formulas for."""
    row = rows()[name]
    found = {*row.formulas}
    found |= {m for m in ("pdf", "logpdf") if "logpdf" in found} | {m for m in ("pmf", "logpmf") if "logpmf" in found}
    found |= {m for m in ("sf", "logcdf", "logsf") if "cdf" in found} | ({"std"} if "var" in found else set())
    found |= {"isf", "median"} if "ppf" in found else set()
    return [m for m in METHODS if m in found]


def arguments(name: str, method: str) -> list[Any]:
    """A point where there is one, shape parameters, loc and scale."""
    row = rows()[name]
    shapes = [np.float64(v) for v in SHAPES.get(name, ())]
    loc = (np.float64(0.0),) if row.discrete else (np.float64(0.3), np.float64(1.4))
    if method in ("mean", "var", "std", "entropy", "median"):
        return [*shapes, *loc]
    if method in ("ppf", "isf"):
        return [np.array([0.12, 0.48, 0.83]), *shapes, *loc]
    x = POINTS.get(name, np.array([0.4, 1.1, 2.3]))
    if name == "truncnorm":
        x = np.array([-0.4, 0.3, 1.2])
    return [x if row.discrete else x * loc[1] + loc[0], *shapes, *loc]


def slope(f: Any, xs: list[Any], i: int, h: float = 1e-4) -> Any:
    """∂f/∂xᵢ by differences of sixth order."""
    total = 0.0
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        up, down = [[x + sign * k * h if j == i else x for j, x in enumerate(xs)] for sign in (1, -1)]
        total = total + weight / h * (np.asarray(f(*up)) - np.asarray(f(*down)))
    return total


@pytest.mark.parametrize("name", sampled(NAMES, 4, str))
def test_values_and_derivatives_in_all_arguments(name: str) -> None:
    dist, row = getattr(stats, name), rows()[name]
    for method in known(name):
        xs = arguments(name, method)
        f = lambda *xs: getattr(dist, method)(*xs)  # noqa: B023, E731
        wanted = f(*xs)
        found = rz.function(f)(*xs)
        assert np.shape(found) == np.shape(wanted), method
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-14, err_msg=method)
        finite = np.isfinite(wanted)
        if (row.discrete and method in ("ppf", "isf", "median")) or not finite.any():
            continue
        first = int(method not in ("mean", "var", "std", "entropy", "median"))
        whole = {*range(first), *range(first, first + WHOLE.get(name, 0)), *([len(xs) - 1] if first else [])}
        fixed = whole if row.discrete else set()
        fixed |= {first + FIXED[name]} if name in FIXED else set()
        moving = tuple([i for i in range(len(xs)) if i not in fixed])
        w = np.linspace(0.5, 1.5, np.size(wanted)).reshape(np.shape(wanted))
        total = lambda *xs: np.sum(w * np.where(finite, f(*xs), 0.0))  # noqa: B023, E731
        gradients = rz.grad(total, moving)(*xs)
        values = lambda *xs: np.where(finite, f(*xs), 0.0)  # noqa: B023, E731
        for i, g in zip(moving, gradients, strict=True):
            wanted_slope = w * slope(values, xs, i)
            wanted_slope = wanted_slope if np.shape(xs[i]) else np.sum(wanted_slope)
            np.testing.assert_allclose(g, wanted_slope, rtol=2e-8, atol=2e-9, err_msg=f"{method} in argument {i}")
        if len(moving) > 1 or np.shape(xs[0]):
            dxs = tuple([np.full(np.shape(xs[i]), 0.3 + 0.2 * k) for k, i in enumerate(moving)])
            at = lambda *ys: total(*[ys[moving.index(i)] if i in moving else x for i, x in enumerate(xs)])  # noqa: B023, E731
            points = tuple([xs[i] for i in moving])
            second = rz.hvp(at, points, dxs)
            gradient = rz.grad(at, tuple(range(len(moving))))
            line = lambda t: gradient(*[x + t * d for x, d in zip(points, dxs, strict=True)])  # noqa: B023, E731
            for k in range(len(moving)):
                expected = slope(lambda t: line(t)[k], [0.0], 0)  # noqa: B023
                second_k = second[k] if len(moving) > 1 else second
                np.testing.assert_allclose(second_k, expected, rtol=1e-6, atol=1e-7, err_msg=f"{method}, second order")


def test_outside_the_support_and_wrong_parameters() -> None:
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, np.nan, np.inf])
    for name, shapes in (
        ("beta", (2.0, 3.0)),
        ("uniform", ()),
        ("gamma", (2.0,)),
        ("expon", ()),
        ("truncnorm", (-0.5, 1.0)),
        ("lognorm", (0.7,)),
        ("invgamma", (2.5,)),
        ("invgauss", (0.8,)),
        ("levy", ()),
        ("johnsonsb", (0.3, 1.5)),
        ("rayleigh", ()),
        ("exponweib", (1.5, 2.0)),
    ):
        dist = getattr(stats, name)
        for method in ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"):
            f = lambda x: getattr(dist, method)(x, *shapes)  # noqa: B023, E731
            np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-12, err_msg=f"{name}.{method}")
        gradient = rz.grad(lambda x: np.sum(getattr(dist, "pdf")(x, *shapes)[:5]))(x)  # noqa: B009, B023
        assert gradient[0] == 0.0 and gradient[-1] == 0.0
    q = np.array([-0.1, 0.0, 0.3, 1.0, 1.5])
    np.testing.assert_allclose(rz.function(lambda q: stats.gamma.ppf(q, 2.0))(q), stats.gamma.ppf(q, 2.0))
    np.testing.assert_allclose(rz.function(lambda q: stats.norm.isf(q))(q), stats.norm.isf(q))
    for scale in (1.0, 0.0, -1.0):
        f = lambda s: stats.norm.pdf(0.3, 0.0, s)  # noqa: E731
        np.testing.assert_allclose(rz.function(f)(scale), f(scale))
    k = np.array([-1.0, 0.0, 1.5, 3.0, 7.0, 8.0])
    for method in ("pmf", "logpmf", "cdf", "sf"):
        f = lambda p: getattr(stats.binom, method)(k, 7, p)  # noqa: B023, E731
        np.testing.assert_allclose(rz.function(f)(0.3), f(0.3), rtol=1e-12)


def test_frozen_distributions() -> None:
    data = np.array([0.3, -0.2, 1.1])
    wanted = rz.grad(lambda m, s: np.sum(stats.norm.logpdf(data, m, s)), (0, 1))(0.2, 1.3)
    found = rz.grad(lambda m, s: np.sum(stats.norm(m, s).logpdf(data)), (0, 1))(0.2, 1.3)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(
        rz.grad(lambda m, s: np.sum(stats.norm(loc=m, scale=s).logpdf(x=data)), (0, 1))(0.2, 1.3), wanted
    )
    outside = stats.gamma(2.0, scale=3.0)
    np.testing.assert_allclose(rz.grad(lambda x: outside.logpdf(x))(1.5), 1 / 1.5 - 1 / 3)
    model = type("Model", (), {"prior": stats.norm(0.0, 2.0), "__call__": lambda self, x: self.prior.logpdf(x)})()
    np.testing.assert_allclose(rz.grad(model)(1.0), -0.25)
    np.testing.assert_allclose(rz.grad(lambda a: stats.gamma(a, scale=2.0).mean())(1.5), 2.0)
    low, high = rz.jvp(lambda s: stats.norm(0.0, s).interval(0.9), (1.0,), (1.0,))[1]
    np.testing.assert_allclose([low, high], stats.norm.ppf([0.05, 0.95]))
    mean, var = rz.function(lambda a: stats.gamma.stats(a))(2.0)
    assert (mean, var) == (2.0, 2.0)


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(TraceError, match=r"scipy.stats.norm.rvs .* loc \+ scale \* z"):
        rz.grad(lambda m: stats.norm(m, 1.0).rvs())(0.5)
    with pytest.raises(TraceError, match=r"scipy.stats.tukeylambda.logpdf is not known"):
        rz.grad(lambda x: stats.tukeylambda.logpdf(x, 0.3))(0.5)


def test_numbers_go_to_scipy_itself() -> None:
    def f(x: Any) -> Any:
        assert isinstance(stats.norm, stats.rv_continuous)
        weights = stats.norm.pdf(np.array([0.0, 1.0]))
        assert type(weights) is np.ndarray or isinstance(weights, np.ndarray)
        return np.sum(weights * x)

    np.testing.assert_allclose(rz.grad(f)(np.ones(2)), stats.norm.pdf([0.0, 1.0]))


def test_single_precision_broadcasting_batches_and_backends() -> None:
    x, m = np.linspace(-1, 2, 4, dtype=np.float32), np.array([[0.1], [0.7]])
    f = lambda x, m: stats.norm.logpdf(x, m, 1.5)  # noqa: E731
    found = rz.function(f)(x, m)
    assert found.dtype == f(x, m).dtype and found.shape == (2, 4)
    assert rz.grad(lambda x: np.sum(stats.norm.logpdf(x)))(x).dtype == np.float32
    g = rz.grad(lambda x, s: np.sum(stats.gamma.logpdf(x, s, scale=2.0)), (0, 1))
    at = np.array([0.5, 1.5, 2.5]), 1.7
    for backend in ("numpy", "numba", "jax"):
        for a, b in zip(rz.compile(g, *at, backend=backend)(*at), g(*at), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    np.testing.assert_allclose(rz.vmap(lambda x: stats.t.logpdf(x, 3.0))(at[0]), stats.t.logpdf(at[0], 3.0), rtol=1e-12)
    J = rz.jacobian(lambda x: stats.norm.logpdf(x, 0.2, 1.1))(np.linspace(-1, 1, 5))
    np.testing.assert_allclose(J.to_dense(), np.diag((0.2 - np.linspace(-1, 1, 5)) / 1.21))
    assert stats.norm.logpdf(np.zeros(0)).shape == rz.function(stats.norm.logpdf)(np.zeros(0)).shape


M = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.1]])
VECTORS = [
    ("multivariate_normal.logpdf(x, y, m)", (np.ones((2, 3)) * 0.3, np.arange(3.0), M)),
    ("multivariate_normal.pdf(x, y, m)", (np.array([0.3, 0.1, 0.7]), np.arange(3.0), M)),
    ("multivariate_normal.logpdf(x)", (np.array([0.3, 0.1, 0.7]),)),
    ("multivariate_normal.logpdf(x, mean=y)", (np.array([0.3, 0.1, 0.7]), np.arange(3.0))),
    ("multivariate_normal.logpdf(x, np.zeros(3), y)", (np.array([0.3, 0.1, 0.7]), np.arange(1.0, 4.0))),
    ("multivariate_normal(y, m).logpdf(x)", (np.ones((2, 3)) * 0.3, np.arange(3.0), M)),
    ("multivariate_normal(np.zeros(3), M).logpdf(x)", (np.array([0.3, 0.1, 0.7]),)),
    ("multivariate_normal.entropy(y, m)", (np.zeros(3), M)),
    ("multivariate_t.logpdf(x, y, m, 3.5)", (np.ones((2, 3)) * 0.3, np.arange(3.0), M)),
    ("multivariate_t.logpdf(np.ones(3), np.zeros(3), M, df=x)", (3.5,)),
    ("multivariate_t(np.zeros(3), M, df=3.0).logpdf(x)", (np.array([0.3, 0.1, 0.7]),)),
    ("dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), x)", (np.array([1.5, 2.5, 0.7]),)),
    ("dirichlet.logpdf(x, y)", (np.array([[0.2, 0.1], [0.3, 0.5]]), np.array([1.5, 2.5, 0.7]))),
    ("dirichlet(x).logpdf(np.array([0.2, 0.3, 0.5]))", (np.array([1.5, 2.5, 0.7]),)),
    ("dirichlet.entropy(x)", (np.array([1.5, 2.5, 0.7]),)),
    ("dirichlet.mean(x)", (np.array([1.5, 2.5, 0.7]),)),
    ("dirichlet.var(x)", (np.array([1.5, 2.5, 0.7]),)),
    ("wishart.logpdf(M, x, m)", (4.5, M)),
    ("wishart(5, M).logpdf(m)", (M,)),
    ("wishart.logpdf(np.stack([M, 2 * M], axis=-1), x, M)", (4.5,)),
    ("invwishart.logpdf(M, x, m)", (4.5, M)),
    ("matrix_normal.logpdf(x, rowcov=M, colcov=m)", (np.arange(9.0).reshape(3, 3) / 5, M)),
    ("multinomial.logpmf([1, 2, 1], 4, x)", (np.array([0.2, 0.3, 0.5]),)),
    ("multinomial.pmf([[1, 2, 1], [4, 0, 0]], 4, x)", (np.array([0.2, 0.3, 0.5]),)),
    ("dirichlet_multinomial.logpmf([1, 2, 1], x, 4)", (np.array([1.5, 2.5, 0.7]),)),
    ("gaussian_kde(np.array([0.1, 0.7, 2.0])).logpdf(x)", (np.array([0.3, 0.1, 0.7]),)),
    ("gaussian_kde(np.array([0.1, 0.7, 2.0]))(x)", (np.array([0.3, 0.1, 0.7]),)),
]


SOME = sampled(VECTORS, 3, lambda case: case[0])


@pytest.mark.parametrize(("text", "xs"), SOME, ids=[text for text, _ in SOME])
def test_distributions_of_vectors(text: str, xs: tuple[Any, ...]) -> None:
    names = sorted(set(re.findall(r"\b[xym]\b", text)), key="xym".index)
    code = eval(f"lambda {', '.join(names)}: {text}", {**vars(stats), "np": np, "M": M})
    turned = [k == "m" for k in names]
    f = lambda *xs: code(*[(x + x.T) / 2 if turn else x for turn, x in zip(turned, xs, strict=True)])  # noqa: E731
    wanted = f(*xs)
    found = rz.function(f)(*xs)
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    rng = np.random.default_rng(0)
    dxs = tuple([rng.normal(size=np.shape(x)) if np.shape(x) else 0.7 for x in xs])
    line = lambda t: np.asarray(f(*[x + t * d for x, d in zip(xs, dxs, strict=True)]))  # noqa: E731
    np.testing.assert_allclose(rz.jvp(f, xs, dxs)[1], slope(line, [0.0], 0), rtol=1e-7, atol=1e-8)
    total = lambda *xs: np.sum(np.sin(f(*xs)))  # noqa: E731
    gradient = rz.grad(total, tuple(range(len(xs))))
    there = sum([float(np.sum(g * d)) for g, d in zip(gradient(*xs), dxs, strict=True)])
    np.testing.assert_allclose(there, slope(lambda t: np.sum(np.sin(line(t))), [0.0], 0), rtol=1e-7, atol=1e-8)
    second = rz.hvp(total, xs, dxs)
    second = second if len(xs) > 1 else (second,)
    for k in range(len(xs)):
        expected = slope(lambda t: gradient(*[x + t * d for x, d in zip(xs, dxs, strict=True)])[k], [0.0], 0)  # noqa: B023
        np.testing.assert_allclose(second[k], expected, rtol=1e-6, atol=1e-6)
