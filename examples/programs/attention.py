"""A block of a transformer: causal attention with several heads, layer norm, a feed-forward layer, softmax cross entropy."""

import numpy as np
from scipy.special import erf, log_softmax, softmax

import riesz as rz


def layer_norm(x, scale, shift, eps=1e-5):
    """Mean 0 and variance 1 along the last axis, then scaled and shifted."""
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * scale + shift


def attention(x, p, heads):
    """Each position looks at itself and those before."""
    batch, time, width = x.shape
    q, k, v = (np.reshape(x @ p[name], (batch, time, heads, width // heads)) for name in ("Wq", "Wk", "Wv"))
    scores = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(width // heads)
    scores = np.where(np.tril(np.ones((time, time), dtype=bool)), scores, -np.inf)
    mixed = np.einsum("bhts,bshd->bthd", softmax(scores, axis=-1), v)
    return mixed.reshape(batch, time, width) @ p["Wo"]


def gelu(x):
    """x Φ(x)."""
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def block(x, p, heads=2):
    """Attention and a feed-forward layer, each added to what came in."""
    x = x + attention(layer_norm(x, p["s1"], p["b1"]), p, heads)
    return x + gelu(layer_norm(x, p["s2"], p["b2"]) @ p["W1"]) @ p["W2"]


def loss(p, tokens):
    """Mean surprise of each token given those before."""
    x = p["embedding"][tokens[:, :-1]] + p["position"][: tokens.shape[1] - 1]
    log_p = log_softmax(block(x, p) @ p["embedding"].T, axis=-1)
    rows, columns = np.indices(tokens[:, 1:].shape)
    return -np.mean(log_p[rows, columns, tokens[:, 1:]])


def data(rng, batch=2, time=6, width=4, vocabulary=5):
    """Random weights, and sequences that repeat themselves."""

    def matrix(*shape):
        return rng.normal(size=shape) / np.sqrt(shape[0])

    p = {"embedding": matrix(vocabulary, width), "position": 0.1 * matrix(time, width)}
    p |= {name: matrix(width, width) for name in ("Wq", "Wk", "Wv", "Wo")}
    p |= {"W1": matrix(width, 2 * width), "W2": matrix(2 * width, width)}
    p |= {"s1": np.ones(width), "b1": np.zeros(width), "s2": np.ones(width), "b2": np.zeros(width)}
    pattern = rng.integers(vocabulary, size=(batch, (time + 1) // 2))
    return p, np.tile(pattern, (1, 2))[:, :time]


def main():
    """Trains with Adam to continue sequences that repeat themselves."""
    rng = np.random.default_rng(0)
    p, tokens = data(rng, batch=32, time=12, width=16, vocabulary=8)
    V = rz.space_of(p)
    train = rz.value_and_grad(loss)
    x, first, second = V.flatten(p), np.zeros(V.dim), np.zeros(V.dim)
    for t in range(1, 202):
        value, slope = train(V.unflatten(x), tokens)
        g = V.flatten(slope)
        first, second = 0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g**2
        x = x - 0.01 * first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.99**t)) + 1e-8)
        if t % 50 == 1:
            print(f"step {t - 1:4d}   {value:.4f} nats per token   |gradient| {np.linalg.norm(g):.4f}")
    H = rz.hessian(loss)(V.unflatten(x), tokens)
    direction = V.flatten(V.random(rng))
    for _ in range(20):
        image = H.matvec(direction)
        direction = image / np.linalg.norm(image)
    print(
        f"{V.dim} parameters; sharpness, the largest eigenvalue of the Hessian: {direction @ H.matvec(direction):.3f}"
    )


if __name__ == "__main__":
    main()
