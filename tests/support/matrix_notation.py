"""Reads matrix notation as a person would: counts its symbols, and computes what it says with NumPy.

Columns are matrices with one column, ᵀ is the transpose, side by side is the matrix product, ∘ and / act at every index,
numbers beside arrays are the same at every index. I and 𝟏 have the size that fits. What is written after `where` has
a name. Nothing of riesz is used.
"""

from __future__ import annotations

import re

import numpy as np
import scipy.linalg as sl
import scipy.special as sp

SUBSCRIPT = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
TOKEN = re.compile(
    r"\s*(?:(?P<place>[₀₁₂₃₄₅₆₇₈₉]+(?:,[₀₁₂₃₄₅₆₇₈₉]+)?)|(?P<number>[0-9]+(?:\.[0-9]+)?(?:e−?[0-9]+)?|½)|(?P<raised>⁻ᵀ|ᵀ|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<under>[ᵢⱼₖₗₘₙₚᵣₛₜ,]*[ᵢⱼₖₗₘₙₚᵣₛₜ])|(?P<word>[A-Za-zΑ-Ωα-ω_][A-Za-zΑ-Ωα-ω_0-9]*|𝟏)"
    r"|(?P<mark>\^\(∘?|[-+−∘⊗/>≥=,()\[\]‖|]))"
)


def _softmax(z):
    return sp.softmax(z, axis=0 if z.shape[1] == 1 else 1)


def _diag(z):
    return np.diag(z[:, 0]) if z.shape[1] == 1 else np.diag(z)[:, None]


FUNCTIONS = {
    "σ": sp.expit,
    "softmax": _softmax,
    "diag": _diag,
    "tr": np.trace,
    "det": np.linalg.det,
    "Σ": np.sum,
    "mean": np.mean,
    "std": np.std,
    "var": np.var,
    "prod": np.prod,
    "vec": lambda z: z.reshape(-1, 1),
    "max": lambda *z: np.maximum(*z) if len(z) > 1 else np.max(z),
    "min": lambda *z: np.minimum(*z) if len(z) > 1 else np.min(z),
    "expm": sl.expm,
    "sinm": sl.sinm,
    "cosm": sl.cosm,
    "logm": sl.logm,
    "sqrtm": sl.sqrtm,
    "polar": lambda z: sl.polar(z)[0],
    "pinv": np.linalg.pinv,
    "clip": np.clip,
    "hypot": np.hypot,
    "erf": sp.erf,
    "relu": lambda z: np.maximum(z, 0),
    "logsumexp": sp.logsumexp,
    "softplus": lambda z: np.logaddexp(0, z),
    "psi": sp.psi,
    "gammaln": sp.gammaln,
    "inverse": np.linalg.inv,
    "chol": np.linalg.cholesky,
    "cholesky": np.linalg.cholesky,
    "rowmax": lambda z: np.max(z, 1, keepdims=True),
    "colmax": lambda z: np.max(z, 0, keepdims=True).T,
    "pow": np.power,
    "tril": lambda z, k=0: np.tril(z, int(k)),
    "triu": lambda z, k=0: np.triu(z, int(k)),
    "cumsum": lambda z: np.cumsum(z, 0),
}
FUNCTIONS |= {
    k: getattr(np, k)
    for k in ["exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "sign", "abs", "log1p", "expm1"]
}
FUNCTIONS |= {k: getattr(np, k) for k in ["arctan", "arcsin", "arccos", "arctan2", "cbrt"]}


def lines_of(text: str) -> tuple[list[str], list[str]]:
    """The formulas, without titles, and what is defined after them."""
    head, _, tail = text.partition("\n  where ")
    heads = [line.split(" = ", 1)[1] if line.startswith("∂") else line for line in head.split("\n")]
    return heads, [line.strip() for line in tail.split("\n") if line.strip()]


def tokens(text: str, words) -> list[tuple[str, str]]:
    """Kinds and texts; a run of letters that is no known word is a product of its letters."""
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        m = TOKEN.match(text, at)
        if m is None:
            raise ValueError(f"{text[at:]!r} in {text!r}")
        kind, at = m.lastgroup, m.end()
        word = m[kind]
        if kind == "word" and word not in words and word not in FUNCTIONS and not re.fullmatch(r".[0-9]*_*", word):
            found += [("word", letter) for letter in re.findall(r"[^0-9_][0-9]*_*", word)]
        else:
            found.append((kind, word))
    return found


def symbols(text: str, words) -> int:
    """How many symbols a formula has: names, numbers, functions, operators and marks one each; brackets none, and a
    pair of bars one. What is defined counts with its name and sign; facts (Sᵀ = S) and what the letters of an
    eigendecomposition mean do not."""
    heads, defined = lines_of(text)
    lines = [*heads, *[line for line in defined if not re.match(r"(\w+)ᵀ = \1$", line) and "diag(λ)" not in line]]
    words, count = {*words, *[line.partition(" = ")[0] for line in defined]}, 0
    for line in lines:
        line = re.sub(r"I([₀-₉]+)\[(\[[\d, ]*\]|[^\]]*)\]", "I", line)
        for _, word in tokens(line, words):
            count += 0 if word in "()[],^(∘" else 1
        count -= line.count("‖") // 2 + line.count("|") // 2
    return count


class Eye:
    """k times an identity of a size that is not said."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def of(self, n):
        return self.scale * np.eye(n)


class Ones:
    """A column of ones, or a row, of a length that is not said."""

    def __init__(self, row=False):
        self.row = row


class Indexed:
    """A product of arrays with an index letter for each axis."""

    def __init__(self, scale, factors):
        self.scale, self.factors = scale, factors

    def array(self, under, shape):
        """Its entries at indices; a comma parts rows from columns."""
        out = under.replace(",", "")
        sizes = {}
        for a, ks in self.factors:
            if isinstance(a, np.ndarray):
                sizes |= dict(zip(ks, a.shape, strict=True))
        for a, ks in self.factors:
            if isinstance(a, Eye):
                known = [sizes[k] for k in ks if k in sizes]
                sizes |= dict.fromkeys(ks, known[0]) if known else {}
        if shape and len(shape) == len(out):
            sizes |= {k: n for k, n in zip(out, shape, strict=True) if k not in sizes}
        open_ = [k for k in out if k not in sizes]
        if shape and open_:  # what is left of rows and columns
            total = int(np.prod(shape)) // int(np.prod([sizes[k] for k in out if k in sizes]))
            sizes |= dict.fromkeys(open_, round(total ** (1 / len(open_))))
        made = [
            a.of(sizes[ks[0]]) if isinstance(a, Eye) else np.ones(sizes[ks]) if isinstance(a, Ones) else a
            for a, ks in self.factors
        ]
        letters = "ᵢⱼₖₗₘₙₚᵣₛₜ"
        plain = str.maketrans(letters, "ijklmnprst")
        text = ",".join([ks.translate(plain) for _, ks in self.factors]) + "->" + out.translate(plain)
        found = self.scale * np.einsum(text, *made)
        if "," in under:
            rows = int(np.prod(found.shape[: under.index(",")]))
            return found.reshape(rows, -1)
        return column(found)


class Reader:
    """Computes a formula from the values of names."""

    def __init__(self, values, shape=None, commuting=None):
        self.values = {k: column(v) for k, v in values.items()}
        self.shape, self.commuting = shape, commuting

    def value(self, text):
        """The number or matrix that a formula stands for."""
        self.left, self.bars = [*tokens(text, self.values), ("end", "")], [None]
        found = self.sum(self.shape)
        if self.left[0][0] != "end":
            raise ValueError(f"{self.left} is left of {text!r}")
        return fitted(found, self.shape) if self.shape else found

    def next(self, word=None):
        kind, found = self.left.pop(0)
        if word is not None and found != word:
            raise ValueError(f"{found!r} for {word!r}")
        return kind, found

    def at(self, *words):
        return self.left[0][0] in ("mark", "end") and self.left[0][1] in words

    def sum(self, shape=None):
        terms = []
        sign = -1.0 if self.at("−", "-") and self.next() else 1.0
        while True:
            terms.append((sign, self.term(shape)))
            if not self.at("+", "−", "-"):
                break
            sign = 1.0 if self.next()[1] == "+" else -1.0
        if len(terms) == 1 and sign > 0:
            return terms[0][1]
        sizes = [
            max(t.shape) for _, t in terms if isinstance(t, np.ndarray) and (1 in t.shape or t.shape[0] == t.shape[1])
        ]
        n = sizes[0] if sizes else shape[0] if shape else None
        total = 0.0
        if all(isinstance(t, Eye) for _, t in terms):
            return Eye(sum(k * t.scale for k, t in terms))
        for k, t in terms:
            if isinstance(t, Eye) and n is None:
                raise ValueError("the size of I is not known")
            total = total + k * (t.of(n) if isinstance(t, Eye) else 1.0 if isinstance(t, Ones) else t)
        return total

    def term(self, shape):
        found = self.chain(shape)
        while self.at("∘", "/", "⊗"):
            mark = self.next()[1]
            other = self.chain(None) if mark != "/" else self.factor(None)
            if mark == "⊗":
                found = kronecker(found, other, shape)
            elif mark == "∘":
                if isinstance(found, Eye) or isinstance(other, Eye):
                    array = other if isinstance(found, Eye) else found
                    found = np.diag(np.diag(array))
                else:
                    found = plain(found) * plain(other)
            elif isinstance(found, Eye):
                found = Eye(found.scale / other)
            else:
                found = plain(found) / plain(other)
        return found

    def chain(self, shape):
        parts = []
        while True:
            parts.append(self.factor(shape))
            kind, word = self.left[0]
            if kind == "end" or word in ("+", "−", "-", "∘", "⊗", "/", ">", "≥", "=", ",", ")", "]"):
                break
            if word in ("‖", "|") and self.bars[-1] == word:
                break
        return product(parts)

    def factor(self, shape):
        found = self.atom(shape)
        while self.left[0][0] in ("raised", "under", "place") or self.at("^(", "^(∘"):
            kind, word = self.next()
            if kind == "place":
                places = word.translate(SUBSCRIPT)
                parts = places.split(",") if found.shape[1] == 1 or "," in places else list(places)
                found = float(found[tuple([int(k) for k in (*parts, "0")][:2])])
            elif kind == "under" and isinstance(found, Indexed):
                found = found.array(word, shape)
            elif kind == "under":
                flat = found[:, 0] if isinstance(found, np.ndarray) and found.shape[1:] == (1,) else found
                found = Indexed(1.0, [(flat, word)])
            elif word == "ᵀ":
                found = Ones(not found.row) if isinstance(found, Ones) else found if np.ndim(found) < 2 else found.T
            elif word in ("⁻¹", "⁻ᵀ"):
                found = 1 / found if np.ndim(found) == 0 or found.shape[1] == 1 else np.linalg.inv(found)
                found = found.T if word == "⁻ᵀ" else found
            elif kind == "raised":
                power = int(word.translate(SUPERSCRIPT))
                square = np.ndim(found) == 2 and found.shape[1] > 1
                found = np.linalg.matrix_power(found, power) if square else found**power
            else:
                self.bars.append(None)
                power = self.sum()
                self.bars.pop()
                self.next(")")
                found = found**power
        return found

    def atom(self, shape):
        kind, word = self.next()
        if kind == "number":
            return 0.5 if word == "½" else float(word.replace("−", "-"))
        if word in ("(", "["):
            self.bars.append(None)
            found = self.sum(shape)
            if word == "[":
                sign = self.next()[1]
                other = plain(self.sum())
                equal = plain(found) == other
                found = equal if sign == "=" else (plain(found) > other) + (0.5 if sign == ">" else 1.0) * equal
                found = found / np.sum(found) if sign == "=" else found
            self.bars.pop()
            self.next(")" if word == "(" else "]")
            return found
        if word in ("‖", "|"):
            self.bars.append(word)
            found = self.sum()
            self.bars.pop()
            self.next(word)
            return np.sqrt(np.sum(np.square(found))) if word == "‖" else np.abs(found)
        if word in self.values:
            return self.values[word]
        if word == "vec" and self.left[1] == ("word", "I"):
            self.left[:3] = []
            return np.eye(self.commuting[0]).reshape(-1, 1)
        if word == "Σ" and self.left[0][0] == "under":
            self.next()
            return self.chain(None)
        if word in FUNCTIONS:
            self.next("(")
            self.bars.append(None)
            given = [plain(self.sum())]
            while self.at(","):
                self.next()
                given.append(plain(self.sum()))
            self.bars.pop()
            self.next(")")
            return number(FUNCTIONS[word](*given))
        if word == "π":
            return np.pi
        if word == "I":
            return Eye()
        if word == "K":
            p, q = self.commuting
            return np.eye(p * q).reshape(p, q, p * q).swapaxes(0, 1).reshape(p * q, p * q)
        if word == "𝟏":
            return Ones()
        raise ValueError(f"{word!r} is not known")


def column(v):
    """A vector as a column."""
    v = np.asarray(v, float)
    return v[:, None] if v.ndim == 1 else v if v.ndim else float(v)


def number(v):
    v = np.asarray(v, float)
    return float(v.reshape(())) if v.size == 1 else v


def plain(v):
    return 1.0 if isinstance(v, Ones) else v


def product(parts):
    """A product side by side: numbers, then matrices; ones sum what they stand beside."""
    scale, arrays = 1.0, []
    if any(isinstance(v, Indexed) for v in parts):
        inside = [v for v in parts if isinstance(v, Indexed)]
        factors = [f for v in inside for f in v.factors]
        return Indexed(np.prod([v.scale if isinstance(v, Indexed) else v for v in parts]), factors)
    for v in parts:
        if isinstance(v, Eye):
            scale = scale * v.scale
            arrays.append(v)
        elif np.ndim(v) == 0 and not isinstance(v, Ones):
            scale = scale * v
        else:
            arrays.append(v)
    real = [v for v in arrays if not isinstance(v, Eye)]
    if not real:
        return Eye(scale) if arrays else scale
    for k in reversed(range(len(real))):
        v = real[k]
        if isinstance(v, Ones) and v.row and k + 1 < len(real) and not isinstance(real[k + 1], Ones):
            real[k : k + 2] = [real[k + 1].sum(0, keepdims=True)]
    k = 1
    while k < len(real):
        v = real[k]
        if isinstance(v, Ones) and not v.row and not isinstance(real[k - 1], Ones):
            real[k - 1 : k + 1] = [real[k - 1].sum(1, keepdims=True)]
        else:
            k += 1
    found, real = real[0], real[1:]
    for v in real:
        if isinstance(found, Ones):
            found = v if not isinstance(v, Ones) else 1.0
        elif isinstance(v, Ones):
            pass
        elif np.ndim(found) == 0:
            found = found * v
        else:
            found = number(found @ v)
    return found if isinstance(found, Ones) and scale == 1 else scale * plain(found)


def kronecker(a, b, shape):
    """a ⊗ b; an identity has the size that is left."""
    rows = shape[0] if shape else None
    if isinstance(a, Ones) or isinstance(b, Ones):
        raise ValueError("the size of 𝟏 is not known")
    if isinstance(a, Eye) and isinstance(b, Eye):
        return Eye(a.scale * b.scale)
    if isinstance(a, Eye):
        a = a.of(_left(rows, shape and shape[1], b))
    if isinstance(b, Eye):
        b = b.of(_left(rows, shape and shape[1], a))
    return np.kron(a, b)


def _left(rows, columns, other):
    sizes = [total // n for total, n in ((rows, other.shape[0]), (columns, other.shape[1])) if total]
    return min(sizes)


def fitted(v, shape):
    """A value under a shape."""
    if isinstance(v, Eye):
        return v.of(shape[0])
    v = plain(v)
    if np.ndim(v) == 2 and v.shape != tuple(shape) and v.size == shape[0] * shape[1] and 1 in (*v.shape, *shape):
        v = v.reshape(shape)
    return np.broadcast_to(v, shape)


def computed(text: str, values, shapes, commuting=None):
    """What each formula of a text says."""
    heads, defined = lines_of(text)
    values = dict(values)
    waiting = []
    for line in defined:
        name, _, body = line.partition(" = ")
        rows = re.fullmatch(r"\w+ = ((?:[ −+]*\d*I[₀-₉]+(?:\[(?:\[[\d, −-]*\]|[^\]]*)\])?)+)", line)
        if re.fullmatch(rf"{name[:-1]}ᵀ = {name[:-1]}", line):
            continue
        spectrum = re.fullmatch(r"(.*) = (\w+) diag\((\w+)\) \2ᵀ", line)
        if spectrum:
            matrix = Reader(values).value(spectrum[1])
            values[spectrum[3]], values[spectrum[2]] = np.linalg.eigh(matrix)
        elif rows:
            total = 0.0
            for sign, times, n, index in re.findall(r"([−+]?) ?(\d*)I([₀-₉]+)(?:\[(\[[\d, −-]*\]|[^\]]*)\])?", rows[1]):
                eye = np.eye(int(n.translate(str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789"))))
                index = index.replace("−", "-")
                if not index:
                    key = slice(None)
                elif index in values:
                    key = np.asarray(values[index])
                elif ":" in index:
                    key = slice(*[int(k) if k else None for k in index.split(":")])
                else:
                    key = [int(k) for k in index.strip("[]").split(",")] if index.startswith("[") else int(index)
                total = total + (-1 if sign == "−" else 1) * int(times or 1) * eye[key]
            values[name] = total
        else:
            waiting.append((name, body))
    while waiting:
        later = []
        for name, body in waiting:
            try:
                values[name] = Reader({**values}, None, commuting).value(body)
            except (ValueError, TypeError, AttributeError) as problem:
                later.append((name, body))
                last = problem
        if len(later) == len(waiting):
            raise ValueError(f"{later}: {last}")
        waiting = later
    return [Reader(values, shape, commuting).value(h) for h, shape in zip(heads, shapes, strict=True)]
