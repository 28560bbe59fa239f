"""A character model: two LSTM layers, written once with a Python loop over the text and once with rz.loop."""

import numpy as np
from scipy.special import expit, logsumexp

import riesz as rz


def cell(layer, state, x):
    """One LSTM cell: the new hidden and cell state."""
    h, c = state
    gates = np.concatenate([x, h], axis=-1) @ layer["W"] + layer["b"]
    forget, admit, emit, change = np.split(gates, 4, axis=-1)
    c = expit(forget + 1.0) * c + expit(admit) * np.tanh(change)
    return expit(emit) * np.tanh(c), c


def predict(params, states, x):
    """One step of the network: new states, and the logits of the next character."""
    new = []
    for layer, state in zip(params["layers"], states):  # noqa: B905
        h, c = cell(layer, state, x)
        new.append((h, c))
        x = h
    return new, x @ params["V"] + params["c"]


def cross_entropy(logits, targets):
    """Mean surprise of the targets, in nats."""
    log_p = logits - logsumexp(logits, axis=-1, keepdims=True)
    return -np.mean(np.take_along_axis(log_p, targets[..., None], axis=-1))


def loss(params, text):
    """Mean surprise of each character given those before; text has shape (time, batch)."""
    size = params["V"].shape[0]
    states = [(np.zeros((text.shape[1], size)), np.zeros((text.shape[1], size))) for _ in params["layers"]]
    logits = []
    for x in params["embedding"][text[:-1]]:
        states, out = predict(params, states, x)
        logits.append(out)
    return cross_entropy(np.stack(logits), text[1:])


def loss_looped(params, text):
    """The same with the loop over time as one step of the program."""
    size = params["V"].shape[0]
    states = [(np.zeros((text.shape[1], size)), np.zeros((text.shape[1], size))) for _ in params["layers"]]
    _, logits = rz.loop(lambda states, x: predict(params, states, x), states, params["embedding"][text[:-1]])
    return cross_entropy(logits, text[1:])


def data(rng, alphabet=6, size=5, time=5, batch=3, layers=2):
    """Random weights, and texts in which the next letter is likely the next of the alphabet."""
    params = {
        "embedding": 0.5 * rng.normal(size=(alphabet, size)),
        "layers": [
            {"W": rng.normal(size=(2 * size, 4 * size)) / np.sqrt(2 * size), "b": np.zeros(4 * size)}
            for _ in range(layers)
        ],
        "V": rng.normal(size=(size, alphabet)) / np.sqrt(size),
        "c": np.zeros(alphabet),
    }
    text = (np.cumsum(rng.random((time, batch)) < 0.9, axis=0) + rng.integers(alphabet, size=batch)) % alphabet
    return params, text


def main():
    """Trains by gradient descent with momentum."""
    rng = np.random.default_rng(0)
    params, text = data(rng, time=14, batch=8, size=12)
    V = rz.space_of(params)
    train = rz.value_and_grad(loss_looped)
    velocity = V.zero()
    for t in range(121):
        value, slope = train(params, text)
        velocity = V.add(V.scale(0.9, velocity), slope)
        params = V.add(params, V.scale(-0.1, velocity))
        if t % 30 == 0:
            print(f"step {t:4d}   {value:.4f} nats per character   |gradient| {np.sqrt(V.inner(slope, slope)):.4f}")
    a, b = V.flatten(rz.grad(loss)(params, text)), V.flatten(rz.grad(loss_looped)(params, text))
    print(f"{V.dim} parameters; Python loop and rz.loop differ by {np.max(np.abs(a - b)):.1e}")


if __name__ == "__main__":
    main()
