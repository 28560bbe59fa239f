"""Training by Adam: a transformer block that adds digits, written in NumPy; gradients of single examples."""

import numpy as np

import riesz as rz


def layer_norm(x, scale, shift):
    """Mean 0 and variance 1 along the last axis, then scaled and shifted."""
    m = x.mean(-1, keepdims=True)
    return (x - m) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


def softmax(x):
    """exp x / Σ exp x along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def block(p, x, heads=2):
    """Attention and two layers, each beside the identity. x: examples × places × width."""
    n, t, d = x.shape
    q, k, v = np.split(layer_norm(x, *p["norm1"]) @ p["qkv"], 3, axis=-1)
    q, k, v = (a.reshape(n, t, heads, d // heads).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(d // heads)
    x = x + (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(n, t, d) @ p["out"]
    h = layer_norm(x, *p["norm2"]) @ p["up"]
    return x + (0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))) @ p["down"]


def loss(p, tokens, labels):
    """Mean cross entropy of the last place."""
    x = p["embed"][tokens] + p["place"]
    logits = block(p, x)[:, -1] @ p["head"]
    logits = logits - logits.max(-1, keepdims=True)
    chosen = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return np.mean(np.log(np.sum(np.exp(logits), -1)) - chosen)


def parameters(rng, symbols=5, places=3, d=8):
    """Small random weights."""
    shapes = {"embed": (symbols, d), "place": (places, d), "qkv": (d, 3 * d), "out": (d, d)}
    shapes |= {"up": (d, 2 * d), "down": (2 * d, d), "head": (d, symbols)}
    p = {k: rng.normal(size=s) / np.sqrt(s[0]) for k, s in shapes.items()}
    return p | {k: (np.ones(d), np.zeros(d)) for k in ("norm1", "norm2")}


def adam(f, p, batches, rate=1e-2, b1=0.9, b2=0.999):
    """Adam on a tree of parameters. Gives the parameters and the losses."""
    step = rz.value_and_grad(f)
    space = rz.space_of(p)
    m = v = np.zeros(space.dim)
    losses = []
    for i, batch in enumerate(batches, 1):
        value, g = step(p, *batch)
        g = space.flatten(g)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        move = rate * m / (1 - b1**i) / (np.sqrt(v / (1 - b2**i)) + 1e-8)
        p = space.unflatten(space.flatten(p) - move)
        losses.append(value)
    return p, losses


def example_norms(p, tokens, labels):
    """The length of the gradient of each example, as clipping for privacy needs it."""
    g = rz.vmap(rz.grad(lambda p, t, y: loss(p, t[None], y[None])), in_axes=(None, 0, 0))(p, tokens, labels)
    return np.sqrt(sum(np.sum(a.reshape(len(tokens), -1) ** 2, axis=1) for a in leaves(g)))


def leaves(tree):
    """The arrays of a tree."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return [a for t in tree for a in leaves(t)] if isinstance(tree, tuple) else [tree]


def batches(rng, count, size=32, symbols=5, places=3):
    """Sums modulo the number of symbols."""
    for _ in range(count):
        tokens = rng.integers(symbols, size=(size, places))
        yield tokens, tokens.sum(1) % symbols


def main():
    """A few hundred steps."""
    rng = np.random.default_rng(0)
    p, losses = adam(loss, parameters(rng), batches(rng, 300))
    print("loss", [round(float(x), 3) for x in losses[::60]], "→", round(float(losses[-1]), 3))
    print("lengths of gradients of examples", np.round(example_norms(p, *next(batches(rng, 1, 5))), 4))


if __name__ == "__main__":
    main()
