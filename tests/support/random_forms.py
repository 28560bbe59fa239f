"""Random functions of a vector and a matrix, written in NumPy as text: what closed forms are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

SIZE = 4
NUMBERS = "lam;k;(x @ a);x[0];x[2];np.sum(x);X[0, 1];np.trace(X);(x @ x)"
NUMBER = (
    "(N + n);(N * n);(V @ v);np.sum(V);np.mean(V);np.sum(V ** 2);np.sum(M);np.trace(M);np.sum(M * m);np.sin(N);"
    "np.exp(-N ** 2);np.log(1 + N ** 2);np.sqrt(1 + N ** 2);(N / (2 + np.sin(n)));np.linalg.norm(1 + V ** 2);"
    "sp.logsumexp(V);np.linalg.slogdet(P)[1];V[1];np.var(V);np.max(V);np.prod(1.5 + np.tanh(V));"
    "np.einsum('i,ij,j', V, m, v);sum(V[i] * v[i] for i in range(4));a @ np.linalg.solve(P, v)"
)
VECTORS = "x;x;x;a;b;X[0];X[:, 1];lab"
VECTOR = (
    "(V + v);(V - v);(V * v);(V / (1 + v ** 2));(M @ V);(V @ M);(N * V);F(V);np.log(1 + V ** 2);np.maximum(V, lam);"
    "np.abs(V);np.diag(M);np.linalg.solve(P, V);np.sum(M, axis=0);np.sum(M, axis=1);np.where(V > v, V, b);"
    "(1 / (1 + np.exp(-V)));sp.softmax(V);np.cumsum(V);np.roll(V, 1);V[::-1];np.concatenate([V[1:], v[:1]]);"
    "(V - np.mean(V));np.clip(V, -1, 1);(V ** 2);(V ** 3);np.array([V[i] * v[3 - i] for i in range(4)]);V[[2, 0, 3, 1]]"
)
MATRICES = "X;X;A;S;np.outer(x, a);np.diag(x);(B @ B.T)"
MATRIX = (
    "(M + m);(M - m);(M * m);(M @ M);M.T;np.outer(V, V);np.diag(V);F(M);np.linalg.inv(P);(N * M);(M + V);"
    "(V[:, None] * M);sp.softmax(M, axis=0);sp.softmax(M, axis=1);(M - M.mean(axis=0));(V[:, None] - v[None, :]);"
    "np.tril(M);(M + np.eye(4));np.maximum(M, 0);M[[2, 0, 3, 1]]"
)
DEFINITE = "S;(S + np.outer(x, x));(S + X @ X.T);(S + np.diag(x ** 2));(S + np.exp(x[0] / 10) * np.eye(4))"
FUNCTIONS = "np.sin;np.tanh;np.exp;sp.expit;np.cos;np.square;np.arctan"
RULES = {"N": (NUMBER, NUMBERS), "V": (VECTOR, VECTORS), "M": (MATRIX, MATRICES)}


def function(seed: int, kind: str, depth: int) -> tuple[str, Any]:
    """The text of a body and the function of x; it captures X, A, B, S, a, b, lam, k and lab."""
    rng, numbers = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    names: dict[str, Any] = {k: numbers.normal(size=SIZE) for k in "ab"} | {"lam": 0.3, "k": 1.7}
    names |= {"A": numbers.normal(size=(SIZE, SIZE)), "B": numbers.normal(size=(SIZE, 3))}
    names |= {"X": 0.5 * numbers.normal(size=(SIZE, SIZE)), "lab": np.array([1, 2, 1, 1])}
    names |= {"S": names["A"] @ names["A"].T + SIZE * np.eye(SIZE), "np": np, "sp": scipy.special, "sl": scipy.linalg}
    body = _written(rng, "V" if kind == "jacobian" else "N", depth)
    return body, eval(f"lambda x: {body}", names)


def _written(rng: np.random.Generator, kind: str, depth: int) -> str:
    """A random expression of a kind: N a number, V a vector, M a matrix; small letters have less depth."""
    deep, flat = [some.split(";") for some in RULES[kind]]
    if depth <= 0:
        return str(rng.choice(flat))
    made: list[str] = []
    chosen = str(rng.choice(deep))
    for k, c in enumerate(chosen):
        alone = not (k and (chosen[k - 1].isalnum() or chosen[k - 1] in "._'")) and not chosen[k + 1 : k + 2].isalnum()
        if alone and c in "NVMnvm":
            made.append(_written(rng, c.upper(), depth - 1 - c.islower()))
        elif alone and c in "PF":
            made.append(str(rng.choice((DEFINITE if c == "P" else FUNCTIONS).split(";"))))
        else:
            made.append(c)
    return "".join(made)
