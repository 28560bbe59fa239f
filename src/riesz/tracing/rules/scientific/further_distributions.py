"""More distributions of scipy.stats, in the table's language of distributions.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .gamma_functions import s

MORE = """
alpha: a>0 ; 0 inf ; open
  logpdf -2*log(x) - LN_ROOT_2PI - (a - 1/x)**2/2 - log_ndtr(a)
  cdf ndtr(a - 1/x)/ndtr(a) ; ppf 1/(a - ndtri(q*ndtr(a))) ; mean inf*a ; var inf*a
anglit: ; -PI/4 PI/4
  logpdf log(cos(2*x)) ; cdf sin(x + PI/4)**2 ; sf cos(x + PI/4)**2 ; ppf arcsin(sqrt(q)) - PI/4
  mean 0*one ; var (PI**2/16 - 0.5)*one ; entropy (1 - LN_2)*one
argus: chi>0 ; 0 1
  logpdf 3*log(chi) - LN_ROOT_2PI - log(gammainc(1.5, chi*chi/2)/2) + log(x) + log1p(-x*x)/2 - chi*chi*(1 - x*x)/2
  cdf 1 - gammainc(1.5, chi*chi*(1 - x*x)/2)/gammainc(1.5, chi*chi/2)
  sf gammainc(1.5, chi*chi*(1 - x*x)/2)/gammainc(1.5, chi*chi/2)
betaprime: a>0 b>0 ; 0 inf
  logpdf xlogy(a - 1, x) - xlog1py(a + b, x) - betaln(a, b)
  cdf betainc(a, b, x/(1 + x)) ; sf betaincc(a, b, x/(1 + x)) ; ppf odds(betaincinv(a, b, q))
  mean where(b > 1, a/(b - 1), inf) ; var where(b > 2, a*(a + b - 1)/((b - 2)*(b - 1)**2), inf)
bradford: c>0 ; 0 1
  logpdf log(c) - log1p(c*x) - log(log1p(c)) ; cdf log1p(c*x)/log1p(c) ; ppf expm1(q*log1p(c))/c
  mean (c - log1p(c))/(c*log1p(c)) ; var ((c + 2)*log1p(c) - 2*c)/(2*c*log1p(c)**2)
  entropy log1p(c)/2 - log(c/log1p(c))
burr: c>0 d>0 ; 0 inf ; open
  logpdf log(c) + log(d) - (c + 1)*log(x) - (d + 1)*log1p(x**-c)
  cdf (1 + x**-c)**-d ; logcdf -d*log1p(x**-c) ; sf -expm1(-d*log1p(x**-c)) ; ppf (q**(-1/d) - 1)**(-1/c)
burr12: c>0 d>0 ; 0 inf
  logpdf log(c) + log(d) + xlogy(c - 1, x) - (d + 1)*log1p(x**c)
  cdf -expm1(-d*log1p(x**c)) ; sf exp(-d*log1p(x**c)) ; logsf -d*log1p(x**c)
  ppf expm1(-log1p(-q)/d)**(1/c) ; isf expm1(-log(q)/d)**(1/c)
cosine: ; -PI PI
  logpdf log1p(cos(x)) - LN_2PI ; cdf (PI + x + sin(x))/(2*PI) ; sf (PI - x - sin(x))/(2*PI)
  mean 0*one ; var (PI**2/3 - 2)*one ; entropy (log(4*PI) - 1)*one
crystalball: beta>0 m>1
  logpdf where(x > -beta, -x*x/2, crystal_tail(x, beta, m)) - log(crystal_total(beta, m))
dgamma: a>0 ; symmetric
  logpdf xlogy(a - 1, abs(x)) - abs(x) - LN_2 - gammaln(a)
  cdf where(x > 0, 0.5 + gammainc(a, abs(x))/2, gammaincc(a, abs(x))/2)
  ppf where(q > 0.5, gammainccinv(a, 2*(1 - q)), -gammainccinv(a, where(q < 0.5, 2*q, 0.5))*(q != 0.5))
  mean 0*a ; var a*(a + 1)
dweibull: c>0 ; symmetric
  logpdf log(c) - LN_2 + xlogy(c - 1, abs(x)) - abs(x)**c
  cdf where(x > 0, 1 - exp(-abs(x)**c)/2, exp(-abs(x)**c)/2)
  ppf where(q > 0.5, (-log(2*(1 - q)))**(1/c), -(-log(2*q))**(1/c)) ; mean 0*c ; var gamma(1 + 2/c)
erlang: a>0 ; 0 inf
  logpdf xlogy(a - 1, x) - x - gammaln(a)
  cdf gammainc(a, x) ; sf gammaincc(a, x) ; ppf gammaincinv(a, q) ; isf gammainccinv(a, q)
  mean a ; var a ; entropy a + gammaln(a) + (1 - a)*psi(a)
exponpow: b>0 ; 0 inf
  logpdf 1 + log(b) + xlogy(b - 1, x) + x**b - exp(x**b)
  cdf -expm1(-expm1(x**b)) ; sf exp(-expm1(x**b)) ; logsf -expm1(x**b)
  ppf log1p(-log1p(-q))**(1/b) ; isf log1p(-log(q))**(1/b)
fatiguelife: c>0 ; 0 inf ; open
  logpdf log1p(x) - (x - 1)**2/(2*x*c*c) - log(2*c) - LN_ROOT_2PI - 1.5*log(x)
  cdf ndtr((sqrt(x) - 1/sqrt(x))/c) ; sf ndtr((1/sqrt(x) - sqrt(x))/c)
  ppf (c*ndtri(q) + sqrt((c*ndtri(q))**2 + 4))**2/4 ; mean c*c/2 + 1 ; var c*c*(5*c*c + 4)/4
foldcauchy: c>=0 ; 0 inf
  logpdf log(1/(1 + (x - c)**2) + 1/(1 + (x + c)**2)) - LN_PI ; cdf (arctan(x - c) + arctan(x + c))/PI
  sf (arctan2(1., x - c) + arctan2(1., x + c))/PI ; mean inf*c ; var inf*c
foldnorm: c>=0 ; 0 inf
  logpdf logaddexp(c*x, -c*x) - LN_ROOT_2PI - (x*x + c*c)/2 ; cdf ndtr(x - c) - ndtr(-x - c)
  sf ndtr(c - x) + ndtr(-x - c) ; mean sqrt(2/PI)*exp(-c*c/2) + c*erf(c/sqrt(2))
  var c*c + 1 - (sqrt(2/PI)*exp(-c*c/2) + c*erf(c/sqrt(2)))**2
genextreme: c==c ; where(c<0,1/where(c<0,c,-1.),-inf) where(c > 0, 1/where(c > 0, c, 1.), inf)
  logpdf -log1p_over(-c, x) - exp(-log1p_over(-c, x)) - log1p(-c*x)
  cdf exp(-exp(-log1p_over(-c, x))) ; logcdf -exp(-log1p_over(-c, x)) ; sf -expm1(-exp(-log1p_over(-c, x)))
  ppf -expm1_over(log(-log(q)), c) ; isf -expm1_over(log(-log1p(-q)), c)
genhalflogistic: c>0 ; 0 1/c
  logpdf LN_2 + xlog1py(1/c - 1, -c*x) - 2*log1p((1 - c*x)**(1/c))
  cdf (1 - (1 - c*x)**(1/c))/(1 + (1 - c*x)**(1/c)) ; ppf (1 - ((1 - q)/(1 + q))**c)/c ; entropy 2 - (2*c + 1)*LN_2
genexpon: a>0 b>0 c>0 ; 0 inf
  logpdf log(a - b*expm1(-c*x)) - (a + b)*x - b*expm1(-c*x)/c
  cdf -expm1(-(a + b)*x - b*expm1(-c*x)/c) ; sf exp(-(a + b)*x - b*expm1(-c*x)/c) ; logsf -(a + b)*x - b*expm1(-c*x)/c
geninvgauss: p==p b>0 ; 0 inf ; open
  logpdf (p - 1)*log(x) - b*(x + 1/x)/2 + b - LN_2 - log(kve(p, b))
gibrat: ; 0 inf ; open
  logpdf -log(x)**2/2 - log(x) - LN_ROOT_2PI ; cdf ndtr(log(x)) ; sf ndtr(-log(x)) ; ppf exp(ndtri(q))
  mean exp(0.5)*one ; var expm1(1.)*exp(1.)*one ; entropy (0.5 + LN_ROOT_2PI)*one
halfgennorm: beta>0 ; 0 inf
  logpdf log(beta) - gammaln(1/beta) - x**beta
  cdf gammainc(1/beta, x**beta) ; sf gammaincc(1/beta, x**beta) ; ppf gammaincinv(1/beta, q)**(1/beta)
  isf gammainccinv(1/beta, q)**(1/beta) ; entropy 1/beta - log(beta) + gammaln(1/beta)
invweibull: c>0 ; 0 inf ; open
  logpdf log(c) - (c + 1)*log(x) - x**-c ; cdf exp(-x**-c) ; logcdf -x**-c ; sf -expm1(-x**-c)
  ppf (-log(q))**(-1/c) ; isf (-log1p(-q))**(-1/c) ; entropy 1 + EULER + EULER/c - log(c)
kappa3: a>0 ; 0 inf
  logpdf log(a) - (1/a + 1)*log(a + x**a) ; cdf x*(a + x**a)**(-1/a) ; ppf (a/(q**-a - 1))**(1/a)
laplace_asymmetric: kappa>0
  logpdf -abs(x)*where(x >= 0, kappa, 1/kappa) - log(kappa + 1/kappa)
  cdf where(x >= 0, 1 - exp(-abs(x)*kappa)/(1 + kappa**2), exp(-abs(x)/kappa)*kappa**2/(1 + kappa**2))
  sf where(x >= 0, exp(-abs(x)*kappa)/(1 + kappa**2), 1 - exp(-abs(x)/kappa)*kappa**2/(1 + kappa**2))
  mean 1/kappa - kappa ; var 1/kappa**2 + kappa**2 ; entropy 1 + log(kappa + 1/kappa)
levy_l: ; -inf 0 ; open
  logpdf -LN_ROOT_2PI - 1.5*log(-x) + 0.5/x ; cdf erf(sqrt(-0.5/x)) ; sf erfc(sqrt(-0.5/x)) ; ppf -0.5/erfinv(q)**2
  mean inf*one ; var inf*one
loglaplace: c>0 ; 0 inf ; open
  logpdf log(c/2) - log(x) - c*abs(log(x))
  cdf where(x < 1, exp(-c*abs(log(x)))/2, 1 - exp(-c*abs(log(x)))/2)
  sf where(x < 1, 1 - exp(-c*abs(log(x)))/2, exp(-c*abs(log(x)))/2)
  ppf where(q < 0.5, (2*q)**(1/c), (2*(1 - q))**(-1/c)) ; entropy log(2/c) + 1
loguniform: a>0 b>a ; a b
  logpdf -log(x) - log(log(b) - log(a)) ; cdf (log(x) - log(a))/(log(b) - log(a))
  ppf exp(log(a) + q*(log(b) - log(a))) ; mean (b - a)/(log(b) - log(a))
  var (b*b - a*a)/(2*(log(b) - log(a))) - ((b - a)/(log(b) - log(a)))**2
  entropy (log(a) + log(b))/2 + log(log(b) - log(a))
mielke: k>0 s>0 ; 0 inf
  logpdf log(k) + xlogy(k - 1, x) - log1p(x**s)*(1 + k/s) ; cdf x**k*exp(-k/s*log1p(x**s))
  ppf odds(q**(s/k))**(1/s)
ncx2: df>0 nc>0 ; 0 inf ; open
  logpdf (df/2 - 1)/2*log(x/nc) - (sqrt(x) - sqrt(nc))**2/2 + log(ive(df/2 - 1, sqrt(x*nc))) - LN_2
  mean df + nc ; var 2*(df + 2*nc)
norminvgauss: a>0 a>abs(b)
  logpdf log(a) - LN_PI + log(k1e(a*sqrt(1 + x*x))) + b*x - a*sqrt(1 + x*x) + sqrt(a*a - b*b) - log1p(x*x)/2
  mean b/sqrt(a*a - b*b) ; var a*a/(a*a - b*b)**1.5
pearson3: skew==skew
  logpdf pearson_logpdf(skew, x) ; cdf pearson_cdf(skew, x) ; mean 0*skew ; var one
powerlognorm: c>0 s>0 ; 0 inf ; open
  logpdf log(c) - log(x) - log(s) - LN_ROOT_2PI - (log(x)/s)**2/2 + (c - 1)*log_ndtr(-log(x)/s)
  cdf -expm1(c*log_ndtr(-log(x)/s)) ; sf exp(c*log_ndtr(-log(x)/s)) ; logsf c*log_ndtr(-log(x)/s)
  ppf exp(-s*ndtri((1 - q)**(1/c))) ; isf exp(-s*ndtri(q**(1/c)))
powernorm: c>0
  logpdf log(c) - x*x/2 - LN_ROOT_2PI + (c - 1)*log_ndtr(-x) ; cdf -expm1(c*log_ndtr(-x)) ; sf exp(c*log_ndtr(-x))
  logsf c*log_ndtr(-x) ; ppf -ndtri((1 - q)**(1/c)) ; isf -ndtri(q**(1/c))
rdist: c>0 ; -1 1
  logpdf (c/2 - 1)*(log1p(-x*x) - 2*LN_2) - betaln(c/2, c/2) - LN_2
  cdf betainc(c/2, c/2, (x + 1)/2) ; sf betaincc(c/2, c/2, (x + 1)/2) ; ppf 2*betaincinv(c/2, c/2, q) - 1
  mean 0*c ; var 1/(c + 1)
recipinvgauss: mu>0 ; 0 inf ; open
  logpdf -(1 - mu*x)**2/(2*x*mu**2) - LN_ROOT_2PI - log(x)/2
  cdf ndtr((x - 1/mu)/sqrt(x)) - exp(2/mu + log_ndtr(-(1/mu + x)/sqrt(x)))
  sf ndtr((1/mu - x)/sqrt(x)) + exp(2/mu + log_ndtr(-(1/mu + x)/sqrt(x)))
reciprocal: a>0 b>a ; a b
  logpdf -log(x) - log(log(b) - log(a)) ; cdf (log(x) - log(a))/(log(b) - log(a))
  ppf exp(log(a) + q*(log(b) - log(a))) ; mean (b - a)/(log(b) - log(a))
  entropy (log(a) + log(b))/2 + log(log(b) - log(a))
rice: b>=0 ; 0 inf ; open
  logpdf log(x) - (x - b)**2/2 + log(i0e(x*b))
semicircular: ; -1 1
  logpdf LN_2 - LN_PI + log1p(-x*x)/2 ; cdf 0.5 + (x*sqrt(1 - x*x) + arcsin(x))/PI
  mean 0*one ; var 0.25*one ; entropy (LN_PI - 0.5)*one
skewcauchy: a>-1 a<1
  logpdf -LN_PI - log1p((x/(1 + a*sign(x)))**2)
  cdf where(x <= 0, (1 - a)/2 + (1 - a)/PI*arctan(x/(1 - a)), (1 - a)/2 + (1 + a)/PI*arctan(x/(1 + a)))
trapezoid: c>=0 d>=c d<=1 ; 0 1
  logpdf LN_2 - log(d - c + 1) + log(ramp(x, c, d))
  cdf where(x < c, x*x/nonzero(c), where(x <= d, 2*x - c, d - c + 1 - (1 - x)**2/nonzero(1 - d)))/(d - c + 1)
triang: c>=0 c<=1 ; 0 1
  logpdf LN_2 + log(ramp(x, c, c))
  cdf where(x < c, x*x/nonzero(c), 1 - (1 - x)**2/nonzero(1 - c))
  ppf where(q < c, sqrt(c*q), 1 - sqrt((1 - c)*(1 - q))) ; mean (c + 1)/3 ; var (1 - c + c*c)/18
  entropy (0.5 - LN_2)*one
truncexpon: b>0 ; 0 b
  logpdf -x - log(-expm1(-b)) ; cdf expm1(-x)/expm1(-b) ; sf (exp(-x) - exp(-b))/-expm1(-b)
  ppf -log1p(q*expm1(-b)) ; mean (1 - (b + 1)*exp(-b))/-expm1(-b)
truncpareto: b!=0 c>1 ; 1 c
  logpdf log(b/-expm1(-b*log(c))) - (b + 1)*log(x) ; cdf expm1(-b*log(x))/expm1(-b*log(c))
  ppf exp(-log1p(q*expm1(-b*log(c)))/b)
truncweibull_min: c>0 a>=0 b>a ; a b
  logpdf log(c) + xlogy(c - 1, x) - x**c - log(exp(-a**c) - exp(-b**c))
  cdf (exp(-a**c) - exp(-x**c))/(exp(-a**c) - exp(-b**c)) ; sf (exp(-x**c) - exp(-b**c))/(exp(-a**c) - exp(-b**c))
  ppf (-log((1 - q)*exp(-a**c) + q*exp(-b**c)))**(1/c)
vonmises_line: kappa>=0 ; -PI PI
  logpdf kappa*cosm1(x) - LN_2PI - log(i0e(kappa)) ; mean 0*kappa
wald: ; 0 inf ; open
  logpdf -LN_ROOT_2PI - 1.5*log(x) - (x - 1)**2/(2*x)
  cdf ndtr((x - 1)/sqrt(x)) + exp(2 + log_ndtr(-(x + 1)/sqrt(x)))
  sf ndtr((1 - x)/sqrt(x)) - exp(2 + log_ndtr(-(x + 1)/sqrt(x))) ; mean one ; var one
wrapcauchy: c>0 c<1 ; 0 2*PI
  logpdf log1p(-c*c) - LN_2PI - log(1 + c*c - 2*c*cos(x))
  cdf where(x < PI, arctan((1 + c)/(1 - c)*tan(x/2))/PI, 1 - arctan((1 + c)/(1 - c)*tan(PI - x/2))/PI)
  entropy log(2*PI*(1 - c*c))
randint: low==floor(low) high==floor(high) high>low ; low high-1 ; discrete
  logpmf -log(high - low) + 0*k ; cdf (k - low + 1)/(high - low) ; mean (high + low - 1)/2
  var ((high - low)**2 - 1)/12 ; entropy log(high - low)
planck: lambda_>0 ; 0 inf ; discrete
  logpmf log(-expm1(-lambda_)) - lambda_*k ; cdf -expm1(-lambda_*(k + 1)) ; sf exp(-lambda_*(k + 1))
  logsf -lambda_*(k + 1) ; mean 1/expm1(lambda_) ; var exp(-lambda_)/expm1(-lambda_)**2
boltzmann: lambda_>0 N>0 ; 0 N-1 ; discrete
  logpmf log(expm1(-lambda_)/expm1(-lambda_*N)) - lambda_*k ; cdf expm1(-lambda_*(k + 1))/expm1(-lambda_*N)
dlaplace: a>0 ; -inf inf ; discrete
  logpmf log(tanh(a/2)) - a*abs(k) ; cdf where(k >= 0, 1 - exp(-a*abs(k))/(exp(a) + 1), exp(-a*abs(k))/(1 + exp(-a)))
  mean 0*a ; var 2*exp(a)/expm1(a)**2 ; entropy a/sinh(a) - log(tanh(a/2))
skellam: mu1>0 mu2>0 ; -inf inf ; discrete
  logpmf k/2*log(mu1/mu2) - (sqrt(mu1) - sqrt(mu2))**2 + log(ive(abs(k), 2*sqrt(mu1*mu2)))
  mean mu1 - mu2 ; var mu1 + mu2
yulesimon: alpha>0 ; 1 inf ; discrete
  logpmf log(alpha) + betaln(k, alpha + 1) ; cdf 1 - k*exp(betaln(k, alpha + 1)) ; sf k*exp(betaln(k, alpha + 1))
  mean where(alpha > 1, alpha/(alpha - 1), inf)
betanbinom: n>=0 n==floor(n) a>0 b>0 ; 0 inf ; discrete
  logpmf -log(n + k) - betaln(n, k + 1) + betaln(a + n, b + k) - betaln(a, b)
  mean where(a > 1, n*b/(a - 1), inf)
"""
GENERAL = {"loguniform": "reciprocal_gen", "vonmises_line": "vonmises_gen"}
"""Distributions that SciPy has as another one's, by the class."""


def _nonzero(x: Any) -> Any:
    """x, or 1 where it is 0: what divides by it does not count there."""
    return np.where(x > 0, x, 1.0)


def _ramp(x: Any, c: Any, d: Any) -> Any:
    """Up from 0 to c, 1 up to d, down from there to 1."""
    down = (1.0 - x) / _nonzero(1.0 - d)
    return np.where(x < c, x / _nonzero(c), np.where(x <= d, np.where(c == d, down * 0.0 + 1.0, 1.0), down))


def _crystal_tail(x: Any, beta: Any, m: Any) -> Any:
    far = np.where(x > -beta, 1.0, m / beta - beta - x)
    return m * np.log(m / beta) - beta * beta / 2 - m * np.log(far)


def _crystal_total(beta: Any, m: Any) -> Any:
    return m / beta / (m - 1) * np.exp(-beta * beta / 2) + np.sqrt(2 * np.pi) * s.ndtr(beta)


def _pearson(skew: Any, x: Any) -> Any:
    """Whether the skew counts, and the gamma variable with its shape."""
    near = np.abs(skew) < 1.6e-5
    b = 2.0 / np.where(near, 1.0, skew)
    t = b * (x + b)
    return near, b, np.where(near | (t <= 0), 1.0, t), t > 0


def _pearson_logpdf(skew: Any, x: Any) -> Any:
    near, b, t, inside = _pearson(skew, x)
    found = np.log(np.abs(b)) + s.xlogy(b * b - 1.0, t) - t - s.gammaln(b * b)
    return np.where(near, -x * x / 2 - 0.5 * np.log(2 * np.pi), np.where(inside, found, -np.inf))


def _pearson_cdf(skew: Any, x: Any) -> Any:
    near, b, t, inside = _pearson(skew, x)
    up = np.where(inside, s.gammainc(b * b, t), 0.0)
    down = np.where(inside, s.gammaincc(b * b, t), 1.0)
    return np.where(near, s.ndtr(x), np.where(skew > 0, up, down))


HELPERS = {
    "nonzero": _nonzero,
    "ramp": _ramp,
    "crystal_tail": _crystal_tail,
    "crystal_total": _crystal_total,
    "pearson_logpdf": _pearson_logpdf,
    "pearson_cdf": _pearson_cdf,
}
"""Functions that the formulas use."""
