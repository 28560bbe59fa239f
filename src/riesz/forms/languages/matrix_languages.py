"""MATLAB (and Octave) and Julia: vectors are columns, so that inner and outer products are products."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .dialect import Dialect

_COMMON = "exp log sin cos tan tanh sinh cosh sqrt abs sign log1p expm1 diag kron det expm hypot tril triu pinv"
_NAMES = {name: name for name in _COMMON.split()} | {"inverse": "inv", "logabs": "log(abs({0}))"}
_NAMES |= {f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
_NAMES |= {
    "at max": "at_max({0})",
    "at min": "at_max(-({0}))",
    "power": "({0})^({1})",
    "commutation": "commutation",
    "entry": "entry",
}
_PEAKS = [(name, sign, k) for name, sign in (("max", ""), ("min", "-")) for k in (0, 1)]
_NAMES |= {f"at {name}{k}": f"at_max({sign}({{0}}), {k + 1})" for name, sign, k in _PEAKS}

_MATLAB = {"maximum": "max", "minimum": "min", "max": "max(max({0}))", "min": "min(min({0}))", "pow": "power"}
_MATLAB |= {"max0": "max({0}, [], 1)'", "max1": "max({0}, [], 2)"}
_MATLAB |= {"min0": "min({0}, [], 1)'", "min1": "min({0}, [], 2)"}
_MATLAB |= {"tr": "trace", "eye": "eye", "ones": "ones({0}, 1)", "zeros": "zeros({0}, {1})", "norm": 'norm({0}, "fro")'}
_MATLAB |= {"Σ": "sum(sum({0}))", "mean": "mean(mean({0}))", "vec": "reshape(({0}).', [], 1)"}
_MATLAB |= {"var": "mean(mean(({0} - mean(mean({0}))) .^ 2))", "std": "sqrt(mean(mean(({0} - mean(mean({0}))) .^ 2)))"}
_MATLAB |= {"step": "(({0} > 0) + {1} * ({0} == 0))", "clip": "min(max({0}, {1}), {2})", "cbrt": "nthroot({0}, 3)"}
_MATLAB |= {"sinm": "imag(expm(1i * ({0})))", "cosm": "real(expm(1i * ({0})))", "logm": "logm", "sqrtm": "sqrtm"}
_MATLAB |= {"cholesky": 'chol({0}, "lower")', "arctan2": "atan2", "erf": "erf", "erfc": "erfc"}
_MATLAB |= {"gammaln": "gammaln", "psi": "psi", "log2": "log2", "log10": "log10", "exp2": "2 .^ ({0})"}

_JULIA = {"maximum": "max", "minimum": "min", "max": "maximum", "min": "minimum", "pow": "({0}) .^ ({1})"}
_JULIA |= {f"{name}{k}": f"vec({name}imum({{0}}; dims={k + 1}))" for name in ("max", "min") for k in (0, 1)}
_JULIA |= {"tr": "tr", "eye": "Matrix(1.0I, {0}, {0})", "ones": "ones({0})", "zeros": "zeros", "norm": "norm"}
_JULIA |= {"Σ": "sum", "mean": "mean", "vec": "vec(permutedims({0}))", "diag": "diagonal"}
_JULIA |= {"var": "var({0}; corrected=false)", "std": "std({0}; corrected=false)", "clip": "clamp.({0}, {1}, {2})"}
_JULIA |= {"step": "((({0}) .> 0) .+ {1} .* (({0}) .== 0))", "cholesky": "cholesky(Symmetric({0})).L", "expm": "exp"}
_JULIA |= {"sinm": "sin", "cosm": "cos", "logm": "log", "sqrtm": "sqrt", "arctan2": "atan", "cbrt": "cbrt"}
_JULIA |= {"log2": "log2", "log10": "log10", "exp2": "exp2"}

_MATLAB_HELPERS = {
    "sigmoid": "function s = sigmoid(z)\n  s = 1 ./ (1 + exp(-z));\nend\n",
    "softmax": """function s = softmax(z)
  d = 2 - (size(z, 2) == 1);
  e = exp(z - max(z, [], d));
  s = e ./ sum(e, d);
end
""",
    "at_max": """function e = at_max(z, d)
  if nargin < 2
    e = z == max(max(z));
    e = e / sum(sum(e));
  else
    e = z == max(z, [], d);
    e = e ./ sum(e, d);
  end
end
""",
    "polar": 'function U = polar(X)\n  [P, ~, Q] = svd(X, "econ");\n  U = P * Q\';\nend\n',
    "entry": "function x = entry(A, varargin)\n  x = A(varargin{:});\nend\n",
    "unit_rows": "function P = unit_rows(n, k)\n  P = eye(n);\n  P = P(k, :);\nend\n",
    "commutation": """function K = commutation(n, m)
  K = eye(n * m);
  k = reshape(1:n * m, m, n)';
  K = K(k(:), :);
end
""",
}
_JULIA_HELPERS = {
    "sigmoid": "sigmoid(z) = 1 / (1 + exp(-z))\n",
    "softmax": """function softmax(z)
    d = ndims(z)
    e = exp.(z .- maximum(z; dims=d))
    return e ./ sum(e; dims=d)
end
""",
    "at_max": """function at_max(z, d=:)
    e = z .== maximum(z; dims=d)
    return e ./ sum(e; dims=d)
end
""",
    "polar": "polar(X) = (F = svd(X); F.U * F.Vt)\n",
    "unit_rows": "unit_rows(n, k) = Matrix(1.0I, n, n)[k, :]\n",
    "diagonal": "diagonal(v) = v isa AbstractVector ? Diagonal(v) : diag(v)\n",
    "commutation": "commutation(n, m) = Matrix(1.0I, n * m, n * m)[vec(permutedims(reshape(1:n*m, m, n))), :]\n",
}


def _language(name: str, calls: dict[str, str], helpers: dict[str, str], header: str = "") -> Dialect:
    entry = "[{}]" if name == "julia" else "({})"
    return Dialect(
        name, _NAMES | calls, helpers, " * ", " .* ", " ./ ", " .^ ", "'", entry, header, True, name == "julia"
    )


MATLAB = _language("matlab", _MATLAB, _MATLAB_HELPERS)
JULIA = _language("julia", _JULIA, _JULIA_HELPERS, "using LinearAlgebra, Statistics")
_KEYWORDS = "end function if else for while do global persistent return break continue case switch try catch let"
_OTHERS = " begin struct module using import export quote const local true false pi i e I Inf NaN eye inv svd eig qr"


def spelled(dialect: Dialect, words: Iterable[str]) -> dict[str, str]:
    """Names that a language allows and that hide none of its functions: lambda for λ, norm_ for norm."""
    functions = {known.split("(")[0].strip(".") for known in dialect.calls.values()}
    taken, given = {*functions, *dialect.helpers, *(_KEYWORDS + _OTHERS).split()}, list(dict.fromkeys(words))
    plain = {w for w in given if w.isascii() and w not in taken and w[0] != "_"}
    found: dict[str, str] = {}
    for word in given:
        if word not in plain:
            new = word if dialect.name == "julia" else "".join([c if c.isascii() else _letter(c) for c in word])
            new = new.lstrip("_") or "x"
            while new in taken or new in plain or new in found.values():
                new += "_"
            found[word] = new
    return found


def _letter(c: str) -> str:
    """lambda for λ, 1 for ₁."""
    digit = unicodedata.normalize("NFKC", c)
    name = unicodedata.name(c, f"u{ord(c)}").split()[-1]
    return digit if digit.isascii() else name.lower().replace("lamda", "lambda") if c.isalpha() else f"u{ord(c)}"


def unit_rows(dialect: Dialect, n: int, rows: str, index: Any) -> str:
    """I_n[rows]: rows of an identity, or one as a column. `rows` is the name of an array of places, or `index` says
    which."""
    if rows.isidentifier():
        return f"unit_rows({n}, {rows} {'.' if dialect.dotted else ''}+ 1)"
    at = np.arange(1, n + 1)[index]
    if at.ndim == 0:
        return f"unit_rows({n}, {at})" + ("" if dialect.name == "julia" else "'")
    steps = np.diff(at)
    if len(at) > 1 and len(set(steps.tolist())) == 1 and steps[0]:
        middle = "" if steps[0] == 1 else f"{steps[0]}:"
        return f"unit_rows({n}, {at[0]}:{middle}{at[-1]})"
    return f"unit_rows({n}, [{', '.join(map(str, at.tolist()))}])"


def decomposed(dialect: Dialect, kind: str, names: Sequence[str], matrix: str) -> list[str]:
    """Eigenvectors, singular vectors or an orthogonal factor."""
    if dialect.name == "julia":
        call = {"eigh": f"eigen(Symmetric({matrix}))", "svd": f"svd({matrix})", "qr": f"qr({matrix})"}[kind]
        return [f"{', '.join(names)} = {call}", *([f"{names[0]} = Matrix({names[0]})"] if kind == "qr" else [])]
    if kind == "eigh":
        values, vectors = names
        return [f"[{vectors}, {values}] = eig({matrix})", f"{values} = diag({values})"]
    middle = [f"{names[1]} = diag({names[1]})"] if kind == "svd" else []
    return [f"[{', '.join(names)}] = {kind}({matrix}, 0)", *middle]


def function_text(
    dialect: Dialect, name: str, arguments: Sequence[str], body: list[str], results: list[str], formula: str
) -> str:
    """A function with its formula, parts and results."""
    given = ", ".join(arguments)
    if dialect.name == "julia":
        shown = [f"# {line}" for line in formula.splitlines()]
        lines = [f"    {line}" for line in (*body, f"return {', '.join(results)}")]
        return "\n".join([*shown, f"function {name}({given})", *lines, "end", ""])
    outputs = [f"g{k + 1}" for k in range(len(results))]
    steps = [*body, *[f"{g} = {r}" for g, r in zip(outputs, results, strict=True)]]
    lines = [f"  {line}" for line in (*[f"% {line}" for line in formula.splitlines()], *[f"{s};" for s in steps])]
    return "\n".join([f"function [{', '.join(outputs)}] = {name}({given})", *lines, "end", ""])
