"""Logistic regression with a ridge, fitted by Newton's method; the Hessian is a linear map one can look at."""

import numpy as np

import riesz as rz


def loss(w, X, y, ridge=0.1):
    """−ln p(y | X, w) for labels ±1, plus the penalty."""
    return np.sum(np.logaddexp(0, -y * (X @ w))) + 0.5 * ridge * w @ w


def data(rng, n=50, d=4):
    """Labels drawn from the model, and weights to start with."""
    X = np.column_stack([np.ones(n), rng.normal(size=(n, d - 1))])
    truth = 2.0 * rng.normal(size=d)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    return 0.1 * rng.normal(size=d), X, y


def main():
    """Newton's method, and standard errors from the Hessian."""
    w, X, y = data(np.random.default_rng(1), n=200)
    for i in range(20):
        value, slope = rz.value_and_grad(loss)(w, X, y)
        print(f"step {i}   loss {value:.8f}   gradient {np.linalg.norm(slope):.2e}")
        if np.linalg.norm(slope) < 1e-10:
            break
        H = rz.hessian(loss)(w, X, y)
        w = w - np.linalg.solve(H.to_dense(), slope)
    errors = np.sqrt(np.diag(np.linalg.inv(H.to_dense())))
    print("weights", np.array2string(w, precision=3), "±", np.array2string(errors, precision=3))
    print("\nthe Hessian:", H, sep="\n")


if __name__ == "__main__":
    main()
