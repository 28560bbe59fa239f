"""What languages write differently: names of functions, operators, helpers."""

from __future__ import annotations

from .dialect import Dialect
from .matrix_languages import JULIA, MATLAB

_SAME = "exp log sin cos tan tanh sinh cosh sqrt abs sign log1p expm1 maximum minimum mean arcsin arccos arctan hypot"
_OTHERS = {"zeros": "zeros", "pow": "power", "Σ": "sum", "tr": "trace", "step": "heaviside"}
_OTHERS |= {"outer": "outer", "diag": "diag", "kron": "kron", "tril": "tril", "triu": "triu"}
_OTHERS |= {"prod": "prod", "einsum": "einsum", "clip": "clip", "var": "var", "std": "std"}
_LINALG = {"det": "det", "inverse": "inv", "norm": "norm", "power": "matrix_power", "eigh": "eigh"}
_LINALG |= {name: name for name in ("svd", "qr", "pinv", "cholesky")}
_SOFTMAX = """def softmax(z):
    e = {0}.exp(z - {0}.max(z, axis=-1, keepdims=True))
    return e / {0}.sum(e, axis=-1, keepdims=True)
"""
_AT_MAX = """def at_max(z, axis=None):
    e = z == {0}.max(z, axis=axis, keepdims=True)
    return e / {0}.sum(e, axis=axis, keepdims=True)
"""
_SIGMOID = "def sigmoid(z):\n    return 1 / (1 + {0}.exp(-z))\n"


def _python(prefix: str, linalg: str = "linalg.", **more: str) -> dict[str, str]:
    """The functions of a library with NumPy's names."""
    plain = {name: name for name in _SAME.split()} | _OTHERS | {"ones": "ones", "eye": "eye"}
    found = {k: f"{prefix}{v}" for k, v in plain.items()}
    for name in ("max", "min"):
        found[name] = f"{prefix}{name}({{0}})"
        sign = "-" if name == "min" else ""
        found[f"at {name}"] = f"at_max({sign}({{0}}))" if sign else "at_max({0})"
        for axis in (0, 1):
            found[f"{name}{axis}"] = f"{prefix}{'a' if prefix == 'torch.' else ''}{name}({{0}}, {axis})"
            found[f"at {name}{axis}"] = f"{found[f'at {name}'][:-1]}, {axis})"
    return found | {k: f"{prefix}{linalg}{v}" for k, v in _LINALG.items()} | more


_TEXT = _python("", "", logabs="log(abs({0}))", sigmoid="sigmoid", softmax="softmax({0}, -1)")
_TEXT |= {"turned": "transpose({0})", "rows": "sum({0}, 1)", "columns": "sum({0}, 0)", "vec": "ravel({0})"}
_TEXT |= {f"{name}{axis}": f"{name}({{0}}, axis={axis})" for name in ("max", "min") for axis in (0, 1)}
_TEXT = {k: v for k, v in _TEXT.items() if k not in ("power", "eigh", "svd", "qr", "zeros") and not k.startswith("at ")}
_TEXT |= {"erf": "erf", "hypot": "hypot", "cbrt": "cbrt", "psi": "digamma", "erfc": "erfc", "gammaln": "gammaln"}
_TEXT |= {name: name for name in ("expm", "logm", "sqrtm", "sinm", "cosm", "logaddexp", "arctan2", "log2", "log10")}
for _peak in ("max", "min"):
    _TEXT[f"at {_peak}"] = "where({0} == PEAK({0}), 1, 0) / sum(where({0} == PEAK({0}), 1, 0))".replace("PEAK", _peak)
_TORCH = {"softmax": "torch.softmax({0}, -1)", "sigmoid": "torch.sigmoid", "pow": "torch.pow"}
_TORCH |= {name: f"torch.{name}({{0}}, correction=0)" for name in ("var", "std")}
_TORCH |= {"expm": "torch.linalg.matrix_exp", "logabs": "torch.log(torch.abs({0}))"}
_TORCH |= {"step": "torch.heaviside({0}, torch.tensor({1}, dtype={like}.dtype))"}
_TORCH |= {name: f"torch.{name}({{0}}, dtype={{like}}.dtype)" for name in ("eye", "ones", "zeros")}
_MORE = "logaddexp arctan2 exp2 log2 log10 arcsinh arccosh arctanh sinc copysign"
_SPECIAL = "erf erfc erfinv expit gammaln i0e i1 i1e log_ndtr logit ndtr ndtri xlog1py xlogy"
_TORCH |= {name: f"torch.{name}" for name in _MORE.split()} | {"psi": "torch.special.psi"}
_TORCH |= {name: f"torch.special.{name}" for name in _SPECIAL.split()}
_JAX = {name: f"jnp.{name}" for name in [*_MORE.split(), "cbrt"]}
_JAX |= {name: f"jax.scipy.special.{name}" for name in _SPECIAL.split()}
_JAX |= {"psi": "jax.scipy.special.digamma", "polygamma": "jax.scipy.special.polygamma"}
_TORCH["polygamma"] = "torch.special.polygamma"
_TORCH_AT_MAX = """def at_max(z, axis=None):
    e = z == (z.max() if axis is None else z.amax(axis, keepdim=True))
    return e / (e.sum() if axis is None else e.sum(axis, keepdim=True))
"""


def _numpy(name: str, prefix: str, header: str, expm: str) -> Dialect:
    """A library that has NumPy's functions."""
    given = {"softmax": _SOFTMAX, "sigmoid": _SIGMOID, "at_max": _AT_MAX}
    helpers = {k: v.format(prefix[:-1]) for k, v in given.items()}
    calls = _python(prefix, logabs=f"{prefix}log({prefix}abs({{0}}))", expm=expm)
    if name == "numpy":
        calls |= {f"{k}m": f"scipy.linalg.{k}m" for k in ("sin", "cos", "log", "sqrt")}
        calls["polygamma"] = "scipy.special.polygamma({0}, {1})"
        calls["polar"] = "scipy.linalg.polar({0})[0]"
    else:
        calls |= _JAX
    return Dialect(name, calls, helpers, header=header)


DIALECTS = {
    "numpy": _numpy("numpy", "np.", "import numpy as np", "scipy.linalg.expm"),
    "jax": _numpy("jax", "jnp.", "import jax.numpy as jnp", "jax.scipy.linalg.expm"),
    "torch": Dialect("torch", _python("torch.") | _TORCH, {"at_max": _TORCH_AT_MAX}, header="import torch"),
    "text": Dialect("text", _TEXT),
    "matlab": MATLAB,
    "julia": JULIA,
}
EVERY_INDEX = {*_SAME.split(), "sigmoid", "pow"} - {"mean"}
"""Functions of numbers, at every index."""
