"""Roots and implicit functions inside a differentiated function: prices that clear markets, orbits by Kepler's equation."""

import numpy as np
from scipy import optimize

import riesz as rz


def kepler(M, e):
    """Eccentric anomalies by Newton's method, until it does not move."""
    E = M + e * np.sin(M)
    while np.max(np.abs(E - e * np.sin(E) - M)) > 1e-13:
        E = E - (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def positions(a, e, t, period):
    """Places on an orbit at times t."""
    E = kepler(2 * np.pi * t / period, e)
    return np.stack([a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E)], axis=1)


def demand(price, income, taste):
    """What consumers of given incomes and tastes want at prices."""
    shares = taste * price ** (-0.5)
    shares = shares / shares.sum(1, keepdims=True)
    return np.sum(income[:, None] * shares / price, axis=0)


def clearing(income, taste, supply):
    """Prices at which demand meets supply, by scipy.optimize.root."""
    start = np.ones(len(supply))
    return optimize.root(lambda q: np.log(demand(np.exp(q), income, taste) / supply), np.log(start), tol=1e-13).x


def welfare(tax, income, taste, supply):
    """A planner's aim: utility after a tax that is paid back in equal parts."""
    paid = (1 - tax) * income + tax * income.mean()
    price = np.exp(clearing(paid, taste, supply))
    return np.mean(np.log(paid)) - np.mean(taste @ np.log(price))


def yield_to_maturity(price, coupons):
    """The rate at which coupons are worth a price, by brentq."""
    years = np.arange(1, len(coupons) + 1)
    return optimize.brentq(lambda r: np.sum(coupons / (1 + r) ** years) - price, -0.5, 2.0, xtol=1e-14)


def ridge(log_weight, A, b, A_test, b_test):
    """The error on test data of a ridge fit, which an inner minimisation finds."""
    fit = rz.argmin(lambda w: np.sum((A @ w - b) ** 2) + np.exp(log_weight) * np.sum(w**2), np.zeros(A.shape[1]))
    return np.sum((A_test @ fit - b_test) ** 2)


def economy(rng, consumers=6, goods=4):
    """Incomes, tastes and supplies."""
    return rng.uniform(1, 3, consumers), rng.uniform(0.2, 1, (consumers, goods)), rng.uniform(1, 2, goods)


def main():
    """Derivatives through each of them."""
    print("dr/dprice", rz.grad(yield_to_maturity)(100.0, np.array([5.0] * 9 + [105.0])))
    print("orbit\n", rz.jacobian(lambda e: positions(1.0, e, np.array([0.1, 0.4]), 1.0))(0.3).to_dense().round(4))
    setting = economy(np.random.default_rng(0))
    best = optimize.minimize_scalar(lambda tax: -welfare(tax, *setting), bounds=(0, 0.9), method="bounded")
    print(f"best tax {best.x:.4f}, where the derivative is {rz.grad(welfare)(best.x, *setting):.1e}")


if __name__ == "__main__":
    main()
