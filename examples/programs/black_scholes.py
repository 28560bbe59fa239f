"""Prices of options by Black and Scholes; the Greeks are derivatives, of first and second order."""

import numpy as np
from scipy.special import ndtr

import riesz as rz


def call_price(spot, strike, time, rate, volatility):
    """The price of a European call."""
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / (volatility * np.sqrt(time))
    d2 = d1 - volatility * np.sqrt(time)
    return spot * ndtr(d1) - strike * np.exp(-rate * time) * ndtr(d2)


def portfolio(market, positions, strikes, times):
    """The value of a book of calls."""
    spot, rate, volatility = market
    return positions @ call_price(spot, strikes, times, rate, volatility)


def data(rng, n=8):
    """A market and a book."""
    return (
        np.array([100.0, 0.02, 0.25]),
        rng.normal(size=n),
        rng.uniform(80, 120, size=n),
        rng.uniform(0.2, 2.0, size=n),
    )


def main():
    """All Greeks of a book from one gradient and one Hessian, and an implied volatility by Newton's method."""
    market, positions, strikes, times = data(np.random.default_rng(0), n=1000)
    delta, rho, vega = rz.grad(portfolio)(market, positions, strikes, times)
    H = rz.hessian(portfolio)(market, positions, strikes, times).to_dense()
    print(
        f"value {portfolio(market, positions, strikes, times):.4f}   delta {delta:.4f}   rho {rho:.3f}   vega {vega:.3f}"
    )
    print(f"gamma {H[0, 0]:.5f}   vanna {H[0, 2]:.4f}   volga {H[2, 2]:.3f}")
    price, sigma = call_price(100.0, 110.0, 1.0, 0.02, 0.3), 0.1
    for i in range(6):
        error = call_price(100.0, 110.0, 1.0, 0.02, sigma) - price
        print(f"implied volatility, step {i}: {sigma:.10f}   error of the price {error:.1e}")
        sigma = sigma - error / rz.grad(call_price, 4)(100.0, 110.0, 1.0, 0.02, sigma)


if __name__ == "__main__":
    main()
