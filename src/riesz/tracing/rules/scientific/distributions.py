"""Distributions of scipy.stats on the line: a table of formulas, and how SciPy's methods follow from them.

A formula is of the standard distribution: x is (x − loc)/scale (k, a whole number, where it is discrete), q a
probability, the other names are the shape parameters; `open`: there is no density at the ends. What is not in the table
follows: pdf from logpdf, sf from cdf, logsf from sf, isf from ppf; of a symmetric distribution sf(x) = cdf(−x).
"""

from __future__ import annotations

import ast
import math
import re
from functools import lru_cache
from typing import Any

import numpy as np

from ....runtime.generated_source import defined
from ...trace import refuse
from ...traced import FLOAT, holds_traced, typed
from ..elementwise import unmoving
from .further_distributions import GENERAL, HELPERS, MORE
from .gamma_functions import s
from .precision import double

_TABLE = """
norm: ; symmetric
  logpdf -x*x/2 - LN_ROOT_2PI
  cdf ndtr(x) ; logcdf log_ndtr(x) ; ppf ndtri(q)
  mean 0*one ; var one ; entropy (0.5 + LN_ROOT_2PI)*one
t: df>0 ; symmetric
  logpdf -log(df)/2 - betaln(0.5, df/2) - (df + 1)/2*log1p(x*x/df)
  cdf stdtr(df, x) ; ppf stdtrit(df, q)
  mean where(df > 1, 0., inf) ; var where(df > 2, df/(df - 2), where(df > 1, inf, nan))
  entropy (df + 1)/2*(psi((df + 1)/2) - psi(df/2)) + log(df)/2 + betaln(df/2, 0.5)
beta: a>0 b>0 ; 0 1
  logpdf xlog1py(b - 1, -x) + xlogy(a - 1, x) - betaln(a, b)
  cdf betainc(a, b, x) ; sf betaincc(a, b, x) ; ppf betaincinv(a, b, q) ; isf betainccinv(a, b, q)
  mean a/(a + b) ; var a*b/((a + b)**2*(a + b + 1))
  entropy betaln(a, b) - (a - 1)*psi(a) - (b - 1)*psi(b) + (a + b - 2)*psi(a + b)
gamma: a>0 ; 0 inf
  logpdf xlogy(a - 1, x) - x - gammaln(a)
  cdf gammainc(a, x) ; sf gammaincc(a, x) ; ppf gammaincinv(a, q) ; isf gammainccinv(a, q)
  mean a ; var a ; entropy a + gammaln(a) + (1 - a)*psi(a)
chi2: df>0 ; 0 inf
  logpdf xlogy(df/2 - 1, x) - x/2 - gammaln(df/2) - df*LN_2/2
  cdf gammainc(df/2, x/2) ; sf gammaincc(df/2, x/2) ; ppf 2*gammaincinv(df/2, q) ; isf 2*gammainccinv(df/2, q)
  mean df ; var 2*df ; entropy df/2 + LN_2 + gammaln(df/2) + (1 - df/2)*psi(df/2)
chi: df>0 ; 0 inf
  logpdf LN_2 - df*LN_2/2 - gammaln(df/2) + xlogy(df - 1, x) - x*x/2
  cdf gammainc(df/2, x*x/2) ; sf gammaincc(df/2, x*x/2)
  ppf sqrt(2*gammaincinv(df/2, q)) ; isf sqrt(2*gammainccinv(df/2, q))
  mean sqrt(2)*exp(gammaln(df/2 + 0.5) - gammaln(df/2)) ; var df - 2*exp(2*(gammaln(df/2 + 0.5) - gammaln(df/2)))
  entropy gammaln(df/2) + (df - LN_2 - (df - 1)*psi(df/2))/2
expon: ; 0 inf
  logpdf -x ; cdf -expm1(-x) ; sf exp(-x) ; logsf -x ; ppf -log1p(-q) ; isf -log(q)
  mean one ; var one ; entropy one
lognorm: s>0 ; 0 inf ; open
  logpdf -log(x)**2/(2*s*s) - log(s*x) - LN_ROOT_2PI
  cdf ndtr(log(x)/s) ; logcdf log_ndtr(log(x)/s) ; sf ndtr(-log(x)/s) ; logsf log_ndtr(-log(x)/s)
  ppf exp(s*ndtri(q)) ; isf exp(-s*ndtri(q))
  mean exp(s*s/2) ; var expm1(s*s)*exp(s*s) ; entropy 0.5 + LN_ROOT_2PI + log(s)
laplace: ; symmetric
  logpdf -abs(x) - LN_2
  cdf where(x > 0, 1 - exp(-abs(x))/2, exp(-abs(x))/2)
  logcdf where(x > 0, log1p(-exp(-abs(x))/2), x - LN_2)
  ppf where(q > 0.5, -log(2*(1 - q)), log(2*q))
  mean 0*one ; var 2*one ; entropy (1 + LN_2)*one
logistic: ; symmetric
  logpdf -abs(x) - 2*log1p(exp(-abs(x)))
  cdf expit(x) ; logcdf log_expit(x) ; ppf logit(q)
  mean 0*one ; var PI**2/3*one ; entropy 2*one
uniform: ; 0 1
  logpdf 0*x ; cdf x ; sf 1 - x ; ppf q ; mean 0.5*one ; var one/12 ; entropy 0*one
pareto: b>0 ; 1 inf
  logpdf log(b) - (b + 1)*log(x)
  cdf -expm1(-b*log(x)) ; sf exp(-b*log(x)) ; logsf -b*log(x)
  ppf exp(-log1p(-q)/b) ; isf exp(-log(q)/b)
  mean where(b > 1, b/(b - 1), inf) ; var where(b > 2, b/((b - 2)*(b - 1)**2), inf) ; entropy 1 + 1/b - log(b)
lomax: c>0 ; 0 inf
  logpdf log(c) - (c + 1)*log1p(x)
  cdf -expm1(-c*log1p(x)) ; sf exp(-c*log1p(x)) ; logsf -c*log1p(x)
  ppf expm1(-log1p(-q)/c) ; isf expm1(-log(q)/c)
  mean where(c > 1, 1/(c - 1), inf) ; var where(c > 2, c/((c - 2)*(c - 1)**2), inf) ; entropy 1 + 1/c - log(c)
weibull_min: c>0 ; 0 inf
  logpdf log(c) + xlogy(c - 1, x) - x**c
  cdf -expm1(-x**c) ; sf exp(-x**c) ; logsf -x**c
  ppf (-log1p(-q))**(1/c) ; isf (-log(q))**(1/c)
  mean gamma(1 + 1/c) ; var gamma(1 + 2/c) - gamma(1 + 1/c)**2 ; entropy EULER*(1 - 1/c) - log(c) + 1
weibull_max: c>0 ; -inf 0
  logpdf log(c) + xlogy(c - 1, -x) - (-x)**c
  cdf exp(-(-x)**c) ; logcdf -(-x)**c ; sf -expm1(-(-x)**c)
  ppf -(-log(q))**(1/c) ; isf -(-log1p(-q))**(1/c)
  mean -gamma(1 + 1/c) ; var gamma(1 + 2/c) - gamma(1 + 1/c)**2 ; entropy EULER*(1 - 1/c) - log(c) + 1
exponweib: a>0 c>0 ; 0 inf
  logpdf log(a) + log(c) + xlogy(a - 1, -expm1(-x**c)) - x**c + xlogy(c - 1, x)
  cdf exp(a*log1mexp(-x**c)) ; sf -expm1(a*log1mexp(-x**c)) ; ppf (-log1p(-q**(1/a)))**(1/c)
cauchy: ; symmetric
  logpdf -LN_PI - log1p(x*x)
  cdf arctan2(1., -x)/PI ; ppf where(q < 0.25, -1/tan(PI*q), tan(PI*(q - 0.5)))
  mean nan*one ; var nan*one ; entropy log(4*PI)*one
halfcauchy: ; 0 inf
  logpdf LN_2 - LN_PI - log1p(x*x) ; cdf 2/PI*arctan(x) ; sf 2/PI*arctan2(1., x)
  ppf tan(PI/2*q) ; isf 1/tan(PI/2*q) ; mean inf*one ; var inf*one ; entropy log(2*PI)*one
halfnorm: ; 0 inf
  logpdf LN_2 - LN_ROOT_2PI - x*x/2
  cdf erf(x/sqrt(2)) ; sf 2*ndtr(-x) ; logsf LN_2 + log_ndtr(-x) ; ppf ndtri((1 + q)/2) ; isf -ndtri(q/2)
  mean sqrt(2/PI)*one ; var (1 - 2/PI)*one ; entropy (0.5 + LN_ROOT_2PI - LN_2)*one
halflogistic: ; 0 inf
  logpdf LN_2 - x - 2*log1p(exp(-x)) ; cdf tanh(x/2) ; sf 2*expit(-x) ; ppf 2*arctanh(q)
  isf -logit(q/2) ; mean 2*LN_2*one ; var (PI**2/3 - 4*LN_2**2)*one ; entropy (2 - LN_2)*one
gumbel_r:
  logpdf -x - exp(-x)
  cdf exp(-exp(-x)) ; logcdf -exp(-x) ; sf -expm1(-exp(-x)) ; ppf -log(-log(q)) ; isf -log(-log1p(-q))
  mean EULER*one ; var PI**2/6*one ; entropy (EULER + 1)*one
gumbel_l:
  logpdf x - exp(x)
  cdf -expm1(-exp(x)) ; sf exp(-exp(x)) ; logsf -exp(x) ; ppf log(-log1p(-q)) ; isf log(-log(q))
  mean -EULER*one ; var PI**2/6*one ; entropy (EULER + 1)*one
invgamma: a>0 ; 0 inf ; open
  logpdf -(a + 1)*log(x) - gammaln(a) - 1/x
  cdf gammaincc(a, 1/x) ; sf gammainc(a, 1/x) ; ppf 1/gammainccinv(a, q) ; isf 1/gammaincinv(a, q)
  mean where(a > 1, 1/(a - 1), inf) ; var where(a > 2, 1/((a - 2)*(a - 1)**2), inf)
  entropy a - (a + 1)*psi(a) + gammaln(a)
invgauss: mu>0 ; 0 inf ; open
  logpdf -LN_ROOT_2PI - 1.5*log(x) - ((x - mu)/mu)**2/(2*x)
  cdf ndtr((x/mu - 1)/sqrt(x)) + exp(2/mu + log_ndtr(-(x/mu + 1)/sqrt(x)))
  sf ndtr((1 - x/mu)/sqrt(x)) - exp(2/mu + log_ndtr(-(x/mu + 1)/sqrt(x)))
  mean mu ; var mu**3
f: dfn>0 dfd>0 ; 0 inf
  logpdf dfn/2*log(dfn) + dfd/2*log(dfd) + xlogy(dfn/2 - 1, x) - (dfn + dfd)/2*log(dfd + dfn*x) - betaln(dfn/2, dfd/2)
  cdf betainc(dfn/2, dfd/2, dfn*x/(dfd + dfn*x)) ; sf betainc(dfd/2, dfn/2, dfd/(dfd + dfn*x))
  ppf odds(betaincinv(dfn/2, dfd/2, q))*dfd/dfn ; isf dfd/dfn/odds(betaincinv(dfd/2, dfn/2, q))
  mean where(dfd > 2, dfd/(dfd - 2), inf)
  var where(dfd > 4, 2*dfd**2*(dfn + dfd - 2)/(dfn*(dfd - 2)**2*(dfd - 4)), inf)
rayleigh: ; 0 inf ; open
  logpdf log(x) - x*x/2
  cdf -expm1(-x*x/2) ; sf exp(-x*x/2) ; logsf -x*x/2 ; ppf sqrt(-2*log1p(-q)) ; isf sqrt(-2*log(q))
  mean sqrt(PI/2)*one ; var (4 - PI)/2*one ; entropy (EULER/2 + 1 - LN_2/2)*one
maxwell: ; 0 inf
  logpdf LN_2 - LN_ROOT_2PI + xlogy(2., x) - x*x/2
  cdf gammainc(1.5, x*x/2) ; sf gammaincc(1.5, x*x/2) ; ppf sqrt(2*gammaincinv(1.5, q))
  isf sqrt(2*gammainccinv(1.5, q)) ; mean 2*sqrt(2/PI)*one ; var (3 - 8/PI)*one
  entropy (EULER + LN_ROOT_2PI - 0.5)*one
nakagami: nu>0 ; 0 inf
  logpdf LN_2 + nu*log(nu) - gammaln(nu) + xlogy(2*nu - 1, x) - nu*x*x
  cdf gammainc(nu, nu*x*x) ; sf gammaincc(nu, nu*x*x)
  ppf sqrt(gammaincinv(nu, q)/nu) ; isf sqrt(gammainccinv(nu, q)/nu)
  mean exp(gammaln(nu + 0.5) - gammaln(nu))/sqrt(nu) ; var 1 - exp(2*(gammaln(nu + 0.5) - gammaln(nu)))/nu
levy: ; 0 inf ; open
  logpdf -LN_ROOT_2PI - 1.5*log(x) - 0.5/x ; cdf erfc(sqrt(0.5/x)) ; sf erf(sqrt(0.5/x)) ; ppf 1/ndtri(q/2)**2
  isf 0.5/erfinv(q)**2 ; mean inf*one ; var inf*one
powerlaw: a>0 ; 0 1
  logpdf log(a) + xlogy(a - 1, x) ; cdf x**a ; logcdf a*log(x) ; ppf q**(1/a)
  mean a/(a + 1) ; var a/((a + 2)*(a + 1)**2) ; entropy 1 - 1/a - log(a)
gengamma: a>0 c!=0 ; 0 inf
  logpdf log(abs(c)) + xlogy(c*a - 1, x) - x**c - gammaln(a)
  cdf where(c > 0, gammainc(a, x**c), gammaincc(a, x**c)) ; sf where(c > 0, gammaincc(a, x**c), gammainc(a, x**c))
  ppf where(c > 0, gammaincinv(a, q), gammainccinv(a, q))**(1/c)
  isf where(c > 0, gammainccinv(a, q), gammaincinv(a, q))**(1/c)
gennorm: beta>0 ; symmetric
  logpdf log(beta/2) - gammaln(1/beta) - abs(x)**beta
  cdf 0.5 + 0.5*sign(x) - 0.5*sign(x)*gammaincc(1/beta, abs(x)**beta)
  mean 0*beta ; var exp(gammaln(3/beta) - gammaln(1/beta)) ; entropy 1/beta - log(beta/2) + gammaln(1/beta)
fisk: c>0 ; 0 inf
  logpdf log(c) + xlogy(c - 1, x) - 2*log1p(x**c) ; cdf expit(c*log(x)) ; logcdf log_expit(c*log(x))
  sf expit(-c*log(x)) ; logsf log_expit(-c*log(x)) ; ppf odds(q)**(1/c) ; isf odds(q)**(-1/c) ; entropy 2 - log(c)
genpareto: c==c ; 0 where(c < 0, -1/where(c < 0, c, -1.), inf)
  logpdf -log1p_over(c, x) - log1p(c*x)
  cdf -expm1(-log1p_over(c, x)) ; sf exp(-log1p_over(c, x)) ; logsf -log1p_over(c, x)
  ppf expm1_over(-log1p(-q), c) ; isf expm1_over(-log(q), c)
  mean where(c < 1, 1/(1 - c), inf) ; var where(c < 0.5, 1/((1 - c)**2*(1 - 2*c)), inf) ; entropy 1 + c
gompertz: c>0 ; 0 inf
  logpdf log(c) + x - c*expm1(x)
  cdf -expm1(-c*expm1(x)) ; sf exp(-c*expm1(x)) ; ppf log1p(-log1p(-q)/c) ; isf log1p(-log(q)/c)
loggamma: c>0
  logpdf c*x - exp(x) - gammaln(c) ; cdf gammainc(c, exp(x)) ; sf gammaincc(c, exp(x))
  ppf log(gammaincinv(c, q)) ; isf log(gammainccinv(c, q)) ; mean psi(c) ; var trigamma(c)
  entropy gammaln(c) - c*psi(c) + c
genlogistic: c>0
  logpdf log(c) + c*log_expit(x) + log_expit(-x)
  cdf exp(c*log_expit(x)) ; logcdf c*log_expit(x) ; sf -expm1(c*log_expit(x)) ; ppf logit(q**(1/c))
  mean psi(c) + EULER ; var trigamma(c) + PI**2/6
hypsecant: ; symmetric
  logpdf -LN_PI - logaddexp(x, -x) + LN_2 ; cdf 2/PI*arctan(exp(x)) ; ppf log(tan(PI*q/2))
  mean 0*one ; var PI**2/4*one ; entropy log(2*PI)*one
moyal:
  logpdf -(x + exp(-x))/2 - LN_ROOT_2PI ; cdf erfc(exp(-x/2)/sqrt(2)) ; sf erf(exp(-x/2)/sqrt(2))
  ppf -log(2*erfcinv(q)**2) ; isf -log(2*erfinv(q)**2) ; mean (LN_2 + EULER)*one ; var PI**2/2*one
skewnorm: a==a
  logpdf LN_2 - LN_ROOT_2PI - x*x/2 + log_ndtr(a*x)
  cdf ndtr(x) - 2*owens_t(x, a) ; sf ndtr(-x) + 2*owens_t(x, a)
  mean sqrt(2/PI)*a/sqrt(1 + a*a) ; var 1 - 2/PI*a*a/(1 + a*a)
exponnorm: K>0
  logpdf 0.5/K**2 - x/K - log(K) + log_ndtr(x - 1/K)
  cdf ndtr(x) - exp(0.5/K**2 - x/K + log_ndtr(x - 1/K)) ; sf ndtr(-x) + exp(0.5/K**2 - x/K + log_ndtr(x - 1/K))
  mean K ; var 1 + K*K
johnsonsu: a==a b>0
  logpdf log(b) - log1p(x*x)/2 - LN_ROOT_2PI - (a + b*arcsinh(x))**2/2
  cdf ndtr(a + b*arcsinh(x)) ; sf ndtr(-(a + b*arcsinh(x))) ; ppf sinh((ndtri(q) - a)/b) ; isf sinh((-ndtri(q) - a)/b)
johnsonsb: a==a b>0 ; 0 1 ; open
  logpdf log(b) - log(x) - log1p(-x) - LN_ROOT_2PI - (a + b*logit(x))**2/2
  cdf ndtr(a + b*logit(x)) ; sf ndtr(-(a + b*logit(x))) ; ppf expit((ndtri(q) - a)/b) ; isf expit((-ndtri(q) - a)/b)
vonmises: kappa>=0 ; -inf inf
  logpdf kappa*cosm1(x) - LN_2PI - log(i0e(kappa))
  mean 0*kappa ; entropy LN_2PI + log(i0e(kappa)) + kappa - kappa*i1e(kappa)/i0e(kappa)
arcsine: ; 0 1
  logpdf -LN_PI - log(x)/2 - log1p(-x)/2 ; cdf 2/PI*arcsin(sqrt(x)) ; ppf sin(PI/2*q)**2
  mean 0.5*one ; var one/8 ; entropy log(PI/4)*one
truncnorm: a<b b==b ; a b
  logpdf -x*x/2 - LN_ROOT_2PI - log_mass(a, b)
  cdf exp(log_mass(a, x) - log_mass(a, b)) ; logcdf log_mass(a, x) - log_mass(a, b)
  sf exp(log_mass(x, b) - log_mass(a, b)) ; logsf log_mass(x, b) - log_mass(a, b)
  ppf trunc_ppf(log(q), log1p(-q), a, b) ; isf trunc_ppf(log1p(-q), log(q), a, b)
  mean trunc_mean(a, b) ; var trunc_var(a, b)
poisson: mu>=0 ; 0 inf ; discrete
  logpmf xlogy(k, mu) - gammaln(k + 1) - mu
  cdf gammaincc(k + 1, mu) ; sf gammainc(k + 1, mu) ; mean mu ; var mu
binom: n>=0 n==floor(n) p>=0 p<=1 ; 0 n ; discrete
  logpmf gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)
  cdf betaincc(k + 1, n - k, p) ; sf betainc(k + 1, n - k, p) ; mean n*p ; var n*p*(1 - p)
bernoulli: p>=0 p<=1 ; 0 1 ; discrete
  logpmf xlogy(k, p) + xlog1py(1 - k, -p)
  cdf 1 - p ; sf p + 0*k ; mean p ; var p*(1 - p) ; entropy entr(p) + entr(1 - p)
nbinom: n>0 p>0 p<=1 ; 0 inf ; discrete
  logpmf gammaln(n + k) - gammaln(k + 1) - gammaln(n) + n*log(p) + xlog1py(k, -p)
  cdf betainc(n, k + 1, p) ; sf betaincc(n, k + 1, p) ; mean n*(1 - p)/p ; var n*(1 - p)/p**2
geom: p>0 p<=1 ; 1 inf ; discrete
  logpmf xlog1py(k - 1, -p) + log(p)
  cdf -expm1(xlog1py(k, -p)) ; sf exp(xlog1py(k, -p)) ; logsf xlog1py(k, -p) ; mean 1/p ; var (1 - p)/p**2
  entropy -log(p) - xlog1py(1 - p, -p)/p
betabinom: n>=0 n==floor(n) a>0 b>0 ; 0 n ; discrete
  logpmf -log(n + 1) - betaln(n - k + 1, k + 1) + betaln(k + a, n - k + b) - betaln(a, b)
  mean n*a/(a + b) ; var n*a*b*(a + b + n)/((a + b)**2*(a + b + 1))
logser: p>0 p<1 ; 1 inf ; discrete
  logpmf k*log(p) - log(k) - log(-log1p(-p)) ; mean -p/((1 - p)*log1p(-p))
"""


def _odds(q: Any) -> Any:
    return q / (1 - q)


def _log_mass(a: Any, b: Any) -> Any:
    """ln(Φ(b) − Φ(a)), from the side where both are small."""
    right = a > 0
    low, high = np.where(right, -b, a), np.where(right, -a, b)
    tail = np.minimum(high, 0.0)
    left = s.log_ndtr(tail) + _log1mexp(s.log_ndtr(low) - s.log_ndtr(tail))
    return np.where(high <= 0, left, np.log1p(-s.ndtr(low) - s.ndtr(-high)))


def _log1mexp(x: Any) -> Any:
    """ln(1 − eˣ), x ≤ 0."""
    small = x > -0.5
    return np.where(small, np.log(-np.expm1(np.where(small, x, -1.0))), np.log1p(-np.exp(np.where(small, -1.0, x))))


def _trunc_ppf(ln_q: Any, ln_p: Any, a: Any, b: Any) -> Any:
    """The quantile for q = exp(ln_q) = 1 − exp(ln_p), from the side where more digits are left."""
    mass, left = _log_mass(a, b), a < 0
    low, high = np.where(left, a, -b), np.where(left, ln_q, ln_p)
    found = s.ndtri_exp(np.logaddexp(s.log_ndtr(low), high + mass))
    return np.where(left, found, -found)


def _edge(a: Any, b: Any, x: Any) -> Any:
    """The density at an end."""
    return np.exp(-x * x / 2 - 0.5 * math.log(2 * math.pi) - _log_mass(a, b))


def _finite_times(x: Any, y: Any) -> Any:
    far = np.isinf(x)
    return np.where(far, 0.0, np.where(far, 0.0, x) * y)


def _trunc_mean(a: Any, b: Any) -> Any:
    return _edge(a, b, a) - _edge(a, b, b)


def _trunc_var(a: Any, b: Any) -> Any:
    low, high = _edge(a, b, a), _edge(a, b, b)
    return 1 + _finite_times(a, low) - _finite_times(b, high) - (low - high) ** 2


def _log1p_over(c: Any, x: Any) -> Any:
    """ln(1 + cx)/c, and x where c = 0; near it by a function that is smooth there."""
    near = np.abs(c * x) < 0.1
    series = x * s.hyp2f1(1.0, 1.0, 2.0, np.where(near, -c * x, 0.0))
    return np.where(near, series, np.log1p(np.where(near, 1.0, c * x)) / np.where(near, 1.0, c))


def _expm1_over(t: Any, c: Any) -> Any:
    """(e^(ct) − 1)/c, t where c = 0."""
    return t * s.exprel(c * t)


def _trigamma(c: Any) -> Any:
    from ..special import PYTHON_FUNCTIONS

    return PYTHON_FUNCTIONS["polygamma"][0](1, c) if holds_traced(c) else s.polygamma(1, c)


_FUNCTIONS = """exp log log1p expm1 sqrt abs sign where tan arctan arctan2 tanh arctanh sin cos sinh arcsin arcsinh
logaddexp floor"""
_NAMES: dict[str, Any] = {
    "inf": np.inf,
    "nan": np.nan,
    "PI": math.pi,
    "LN_PI": math.log(math.pi),
    "LN_2": math.log(2.0),
    "LN_2PI": math.log(2 * math.pi),
    "LN_ROOT_2PI": 0.5 * math.log(2 * math.pi),
    "EULER": np.euler_gamma,
    "odds": _odds,
    "log_mass": _log_mass,
    "trunc_ppf": _trunc_ppf,
    "trunc_mean": _trunc_mean,
    "trunc_var": _trunc_var,
    "log1p_over": _log1p_over,
    "expm1_over": _expm1_over,
    "log1mexp": _log1mexp,
    "trigamma": _trigamma,
    **{k: getattr(np, k) for k in _FUNCTIONS.split()},
    **HELPERS,
}


class Formulas:
    """One distribution of the table: shape parameters, what they must be, the support, formulas."""

    def __init__(self, head: str, lines: list[str]) -> None:
        self.name, _, rest = head.partition(":")
        checks, *flags = [part.strip() for part in rest.split(";")]
        self.checks = checks.split()
        words = re.findall(r"[A-Za-z]\w*", checks)
        self.shapes = [w for w in dict.fromkeys(words) if w not in _NAMES]
        self.symmetric, self.discrete, self.open = [word in flags for word in ("symmetric", "discrete", "open")]
        ends = [flag for flag in flags if " " in flag]
        self.low, self.high = ends[0].split(" ", 1) if ends else ("-inf", "inf")
        parts = [part.strip().partition(" ") for line in lines for part in line.split(" ; ")]
        self.formulas = {method: formula for method, _, formula in parts}

    def has(self, method: str) -> bool:
        """Whether a method is known."""
        other = {"std": "var", "median": "ppf", "interval": "ppf", "isf": "ppf", "stats": "mean", "logcdf": "cdf"}
        other |= {"sf": "cdf", "logsf": "cdf", "pdf": "logpdf", "pmf": "logpmf"}
        return method in self.formulas or other.get(method) in self.formulas

    def compute(self, formula: str, **values: Any) -> Any:
        """A formula at values of its names."""
        return _function(formula, tuple(values))(*values.values())


@lru_cache(1024)
def _function(formula: str, names: tuple[str, ...]) -> Any:
    """A formula of the table as a function of its names; the others are functions."""
    known = dict(_NAMES)
    others = [n.id for n in ast.walk(ast.parse(formula)) if isinstance(n, ast.Name) and n.id not in (*names, *known)]
    known |= {name: getattr(s, name) for name in others}
    return defined(f"def formula({', '.join(names)}):\n    return {formula}", "formula", known)


@lru_cache(1)
def rows() -> dict[str, Formulas]:
    """The table, by name."""
    blocks = [block.splitlines() for block in re.split(r"\n(?=\S)", (_TABLE + MORE).strip().replace("\n\n", "\n"))]
    return {row.name: row for row in [Formulas(head, lines) for head, *lines in blocks]}


_LOGS = {"pdf": "logpdf", "pmf": "logpmf", "cdf": "logcdf", "sf": "logsf"}
_NOTHING = {"pdf": 0.0, "pmf": 0.0, "logpdf": -np.inf, "logpmf": -np.inf}
_ENDS = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-np.inf, 0.0), "logsf": (0.0, -np.inf)}
_MOMENTS = ("mean", "var", "std", "entropy", "median", "stats")
METHODS = (*_NOTHING, *_ENDS, "ppf", "isf", *_MOMENTS, "interval")


class Distribution:
    """As scipy.stats.norm and its like, for traced arguments."""

    def __init__(self, given: Any) -> None:
        self.given, self.name = given, given.name
        known = given.__class__.__name__ == GENERAL.get(self.name, f"{self.name}_gen")  # it may be one that answers
        self.row: Any = rows().get(self.name) if known else None

    @classmethod
    def of(cls, given: Any) -> Distribution:
        """That of a distribution of SciPy's."""
        return cls(given)

    def __call__(self, *args: Any, **named: Any) -> FrozenDistribution:
        return FrozenDistribution(self, args, named)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS and hasattr(self.given, name):
            return lambda *args, **named: self._method(name, args, named)
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **named: self._unknown(name)

    def freeze(self, *args: Any, **named: Any) -> FrozenDistribution:
        """The distribution at fixed parameters."""
        return FrozenDistribution(self, args, named)

    def _unknown(self, method: str) -> Any:
        own = "its formula in NumPy and scipy.special, or a function with rz.custom_derivative"
        drawn = "draw standard numbers outside, and transform them: loc + scale * z"
        instead = drawn if method == "rvs" else f"write {own}"
        raise refuse(f"scipy.stats.{self.name}.{method} is not known to riesz for traced arrays; {instead}")

    def _method(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self.row is None:
            return self._unknown(name)
        if name == "interval":
            level, *rest = args if args else (named.pop("confidence"),)
            return tuple([self._method("ppf", (q, *rest), named) for q in ((1 - level) / 2, (1 + level) / 2)])
        if name == "median":
            return self._method("ppf", (0.5, *args), named)
        moments = named.pop("moments", "mv") if name == "stats" else ""
        first, shapes, loc, scale = self._parameters(args, named, int(name not in _MOMENTS))
        good = [self.row.compute(check, **shapes) for check in self.row.checks] + [scale > 0]
        if name == "stats":
            if not set(moments) <= set("mv"):
                self._unknown("stats(moments='sk')")
            parts = [self._moment({"m": "mean", "v": "var"}[m], shapes, loc, scale) for m in moments]
            return tuple([_checked(part, good) for part in parts])
        if name in _MOMENTS:
            found = self._moment(name, shapes, loc, scale)
        elif name in ("ppf", "isf"):
            found = self._quantile(name, first[0], shapes, loc, scale)
        else:
            found = self._value(name, first[0], shapes, loc, scale)
            good.append(first[0] == first[0])
        return _checked(found, good)

    def _parameters(self, args: tuple[Any, ...], named: dict[str, Any], count: int) -> Any:
        """The point (or none), the shape parameters by name, loc and scale, all of double precision as in SciPy."""
        places = [*["x", *self.row.shapes][1 - count :], "loc", *([] if self.row.discrete else ["scale"])]
        names = {"k": "x", "q": "x"}
        said = dict(zip(places, args, strict=False)) | {names.get(k, k): v for k, v in named.items()}
        missing = [k for k in places if k not in said and k not in ("loc", "scale")]
        if missing or not said.keys() <= set(places) or len(said) < len(args) + len(named):
            wanted = f"{', '.join(places)}; got {len(args)} arguments{''.join([f', {k}=…' for k in named])}"
            raise TypeError(f"scipy.stats.{self.name} takes {wanted}")
        values = {k: double(v) for k, v in said.items()}
        shapes = {k: values[k] for k in self.row.shapes}
        return [values[k] for k in places[:count]], shapes, values.get("loc", 0.0), values.get("scale", 1.0)

    def _moment(self, name: str, shapes: Any, loc: Any, scale: Any) -> Any:
        formula = self.row.formulas.get("var" if name == "std" else name)
        if formula is None:
            self._unknown(name)
        one = 1.0
        for value in shapes.values():
            one = one + 0.0 * value
        found = self.row.compute(formula, one=one, **shapes)
        if name == "mean":
            return found * scale + loc
        if name == "entropy":
            return found + np.log(scale) + 0.0 * loc
        return (np.sqrt(found) * scale if name == "std" else found * scale * scale) + 0.0 * loc

    def _standard(self, name: str, x: Any, shapes: Any) -> Any:
        """A method of the standard distribution, inside its support."""
        row = self.row
        if name in row.formulas:
            return row.compute(row.formulas[name], **{"x": x, "k": x, "q": x} | shapes)
        if name in _NOTHING and name in _LOGS:
            return np.exp(self._standard(_LOGS[name], x, shapes))
        if row.symmetric and name in ("sf", "logsf"):
            return self._standard("cdf" if name == "sf" else "logcdf", -x, shapes)
        if row.symmetric and name == "isf":
            return -self._standard("ppf", x, shapes)
        if name in ("logcdf", "logsf"):
            return np.log(self._standard(name[3:], x, shapes))
        other = {"sf": "cdf", "cdf": "sf", "isf": "ppf"}.get(name, "")
        if other not in row.formulas:
            self._unknown(name)
        return 1.0 - self._standard(other, x, shapes) if name != "isf" else self._standard("ppf", 1.0 - x, shapes)

    def _value(self, name: str, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
        """A density or a distribution function, as SciPy has them outside the support."""
        row, density = self.row, name in _NOTHING
        y = (x - loc) / scale
        ends = [row.compute(end, **shapes) for end in (row.low, row.high)]
        if row.discrete:
            y, whole = np.floor(y), np.floor(y) == y
            inside: Any = (y >= ends[0]) & (y <= ends[1] if density else y < ends[1])
            inside = inside & whole if density else inside
        else:
            closed = density and not row.open
            inside = (y >= ends[0]) & (y <= ends[1]) if closed else (y > ends[0]) & (y < ends[1])
        bounded = not (row.low == "-inf" and row.high == "inf")
        found = self._standard(name, np.where(inside, y, _within(*ends)) if bounded else y, shapes)
        if density and not row.discrete:
            found = found / scale if name == "pdf" else found - np.log(scale)
        elif not bounded:
            return found
        if density:
            return np.where(inside, found, _NOTHING[name]) if bounded else found
        low, high = _ENDS[name]
        return np.where(inside, found, np.where(y >= ends[1], high, low))

    def _quantile(self, name: str, q: Any, shapes: Any, loc: Any, scale: Any) -> Any:
        if self.row.discrete:
            values = [*shapes.values(), loc]
            return unmoving(_Quantile(self.name, name), FLOAT, *_together(q, *values))
        inside = (q > 0) & (q < 1)
        low, high = [self.row.compute(end, **shapes) for end in (self.row.low, self.row.high)]
        low, high = (low, high) if name == "ppf" else (high, low)
        found = self._standard(name, np.where(inside, q, 0.5), shapes)
        ends = np.where(q == 0, low, np.where(q == 1, high, np.nan))
        if not holds_traced(q) and np.all(inside):
            return found * scale + loc
        return np.where(inside, found, ends) * scale + loc


class _Quantile:
    """The quantiles of a discrete distribution: whole numbers, which do not move."""

    def __init__(self, name: str, method: str) -> None:
        self.name, self.method = name, method
        self.__name__ = f"{name}_{method}"

    def __call__(self, *xs: Any) -> Any:
        from importlib import import_module

        return getattr(getattr(import_module("scipy.stats"), self.name), self.method)(*xs)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Quantile and (other.name, other.method) == (self.name, self.method)

    def __hash__(self) -> int:
        return hash((self.name, self.method))


def _together(*xs: Any) -> list[Any]:
    shape = np.broadcast_shapes(*[np.shape(x) for x in xs])
    return [np.broadcast_to(x, shape) for x in xs]


def _within(low: Any, high: Any) -> Any:
    """A point inside the support."""
    if not holds_traced((low, high)) and np.all(np.isinf(high)):
        return low + 1.0
    if not holds_traced((low, high)) and np.all(np.isinf(low)):
        return high - 1.0
    down, up = np.isinf(low), np.isinf(high)
    start, stop = (
        np.where(down, np.where(up, -1.0, high - 2.0), low),
        np.where(up, np.where(down, 1.0, low + 2.0), high),
    )
    return 0.5 * (start + stop)


def _checked(found: Any, good: list[Any]) -> Any:
    """nan where a parameter is wrong, or the point is nan."""
    for test in good:
        if holds_traced(test) or not np.all(test):
            found = np.where(test, found, np.nan)
    return typed(found, False) if holds_traced(found) else found


class FrozenDistribution:
    """As scipy.stats.norm(loc, scale), for traced arguments or parameters."""

    def __init__(self, dist: Distribution, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, named

    @classmethod
    def of(cls, given: Any) -> FrozenDistribution:
        """That of a frozen distribution of SciPy's."""
        return cls(Distribution(given.dist), given.args, given.kwds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self.dist, name)
        count = 0 if name in _MOMENTS else 1

        def call(*given: Any, **named: Any) -> Any:
            return method(*given[:count], *self.args, *given[count:], **named, **self.kwds)

        return call


CLASSES = {
    "rv_continuous": Distribution,
    "rv_discrete": Distribution,
    "rv_continuous_frozen": FrozenDistribution,
    "rv_discrete_frozen": FrozenDistribution,
}
