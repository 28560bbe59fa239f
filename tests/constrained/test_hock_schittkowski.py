"""Problems of the collection of Hock and Schittkowski (1981), from their published formulas: starts, optima."""

import numpy as np
import pytest

import riesz as rz

exp, log, sqrt, sin, cos, pi = np.exp, np.log, np.sqrt, np.sin, np.cos, np.pi
INF = np.inf
T = 0.01 * np.arange(1.0, 100.0)


def stacked(*parts):
    return lambda x: np.stack([p(x) for p in parts])


def rosen(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


# number: objective, start, optimum, then equality, inequality (≥ 0) and bounds where there are any
PROBLEMS = {
    1: (rosen, [-2, 1], 0.0, {"bounds": ([-INF, -1.5], [INF, INF])}),
    2: (rosen, [-2, 1], 0.0504261879, {"bounds": ([-INF, 1.5], [INF, INF])}),
    3: (lambda x: x[1] + 1e-5 * (x[1] - x[0]) ** 2, [10, 1], 0.0, {"bounds": ([-INF, 0], [INF, INF])}),
    4: (lambda x: (x[0] + 1) ** 3 / 3 + x[1], [1.125, 0.125], 8 / 3, {"bounds": ([1, 0], [INF, INF])}),
    5: (lambda x: sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1, [0, 0], -sqrt(3) / 2 - pi / 3,
        {"bounds": ([-1.5, -3], [4, 3])}),
    6: (lambda x: (1 - x[0]) ** 2, [-1.2, 1], 0.0, {"equality": lambda x: 10 * (x[1] - x[0] ** 2)}),
    7: (lambda x: log(1 + x[0] ** 2) - x[1], [2, 2], -sqrt(3), {"equality": lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4}),
    8: (lambda x: 0.0 * x[0] - 1, [2, 1], -1.0,
        {"equality": stacked(lambda x: x[0] ** 2 + x[1] ** 2 - 25, lambda x: x[0] * x[1] - 9)}),
    9: (lambda x: sin(pi * x[0] / 12) * cos(pi * x[1] / 16), [0, 0], -0.5, {"equality": lambda x: 4 * x[0] - 3 * x[1]}),
    10: (lambda x: x[0] - x[1], [-10, 10], -1.0, {"inequality": lambda x: -3 * x[0] ** 2 + 2 * x[0] * x[1] - x[1] ** 2 + 1}),
    11: (lambda x: (x[0] - 5) ** 2 + x[1] ** 2 - 25, [4.9, 0.1], -8.498464223, {"inequality": lambda x: x[1] - x[0] ** 2}),
    12: (lambda x: x[0] ** 2 / 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1], [0, 0], -30.0,
         {"inequality": lambda x: 25 - 4 * x[0] ** 2 - x[1] ** 2}),
    14: (lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2, [2, 2], 9 - 2.875 * sqrt(7),
         {"equality": lambda x: x[0] - 2 * x[1] + 1, "inequality": lambda x: 1 - x[0] ** 2 / 4 - x[1] ** 2}),
    15: (rosen, [-2, 1], 306.5,
         {"inequality": stacked(lambda x: x[0] * x[1] - 1, lambda x: x[0] + x[1] ** 2), "bounds": (-INF, [0.5, INF])}),
    17: (rosen, [-2, 1], 1.0,
         {"inequality": stacked(lambda x: x[1] ** 2 - x[0], lambda x: x[0] ** 2 - x[1]), "bounds": ([-2, -INF], [0.5, 1])}),
    18: (lambda x: 0.01 * x[0] ** 2 + x[1] ** 2, [2, 2], 5.0,
         {"inequality": stacked(lambda x: x[0] * x[1] - 25, lambda x: x[0] ** 2 + x[1] ** 2 - 25), "bounds": ([2, 0], 50)}),
    21: (lambda x: 0.01 * x[0] ** 2 + x[1] ** 2 - 100, [-1, -1], -99.96,
         {"inequality": lambda x: 10 * x[0] - x[1] - 10, "bounds": ([2, -50], 50)}),
    22: (lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2, [2, 2], 1.0,
         {"inequality": stacked(lambda x: 2 - x[0] - x[1], lambda x: x[1] - x[0] ** 2)}),
    23: (lambda x: x[0] ** 2 + x[1] ** 2, [3, 1], 2.0,
         {"inequality": stacked(lambda x: x[0] + x[1] - 1, lambda x: x[0] ** 2 + x[1] ** 2 - 1,
                                lambda x: 9 * x[0] ** 2 + x[1] ** 2 - 9, lambda x: x[0] ** 2 - x[1],
                                lambda x: x[1] ** 2 - x[0]), "bounds": (-50, 50)}),
    24: (lambda x: ((x[0] - 3) ** 2 - 9) * x[1] ** 3 / (27 * sqrt(3)), [1, 0.5], -1.0,
         {"inequality": stacked(lambda x: x[0] / sqrt(3) - x[1], lambda x: x[0] + sqrt(3) * x[1],
                                lambda x: 6 - x[0] - sqrt(3) * x[1]), "bounds": (0, INF)}),
    26: (lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4, [-2.6, 2, 2], 0.0,
         {"equality": lambda x: (1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3}),
    27: (lambda x: 0.01 * (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2, [2, 2, 2], 0.04, {"equality": lambda x: x[0] + x[2] ** 2 + 1}),
    28: (lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2, [-4, 1, 1], 0.0,
         {"equality": lambda x: x[0] + 2 * x[1] + 3 * x[2] - 1}),
    29: (lambda x: -x[0] * x[1] * x[2], [1, 1, 1], -16 * sqrt(2),
         {"inequality": lambda x: 48 - x[0] ** 2 - 2 * x[1] ** 2 - 4 * x[2] ** 2}),
    30: (lambda x: np.sum(x**2), [1, 1, 1], 1.0,
         {"inequality": lambda x: x[0] ** 2 + x[1] ** 2 - 1, "bounds": ([1, -10, -10], 10)}),
    31: (lambda x: 9 * x[0] ** 2 + x[1] ** 2 + 9 * x[2] ** 2, [1, 1, 1], 6.0,
         {"inequality": lambda x: x[0] * x[1] - 1, "bounds": ([-10, 1, -10], [10, 10, 1])}),
    32: (lambda x: (x[0] + 3 * x[1] + x[2]) ** 2 + 4 * (x[0] - x[1]) ** 2, [0.1, 0.7, 0.2], 1.0,
         {"equality": lambda x: 1 - np.sum(x), "inequality": lambda x: 6 * x[1] + 4 * x[2] - x[0] ** 3 - 3, "bounds": (0, INF)}),
    33: (lambda x: (x[0] - 1) * (x[0] - 2) * (x[0] - 3) + x[2], [0, 0, 3], sqrt(2) - 6,
         {"inequality": stacked(lambda x: x[2] ** 2 - x[0] ** 2 - x[1] ** 2, lambda x: np.sum(x**2) - 4),
          "bounds": (0, [INF, INF, 5])}),
    34: (lambda x: -x[0], [0, 1.05, 2.9], -log(log(10)),
         {"inequality": stacked(lambda x: x[1] - exp(x[0]), lambda x: x[2] - exp(x[1])), "bounds": (0, [100, 100, 10])}),
    35: (lambda x: 9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2 + 2 * x[0] * x[1]
         + 2 * x[0] * x[2], [0.5, 0.5, 0.5], 1 / 9, {"inequality": lambda x: 3 - x[0] - x[1] - 2 * x[2], "bounds": (0, INF)}),
    36: (lambda x: -x[0] * x[1] * x[2], [10, 10, 10], -3300.0,
         {"inequality": lambda x: 72 - x[0] - 2 * x[1] - 2 * x[2], "bounds": (0, [20, 11, 42])}),
    37: (lambda x: -x[0] * x[1] * x[2], [10, 10, 10], -3456.0,
         {"inequality": stacked(lambda x: 72 - x[0] - 2 * x[1] - 2 * x[2], lambda x: x[0] + 2 * x[1] + 2 * x[2]), "bounds": (0, 42)}),
    38: (lambda x: rosen(x[:2]) + 90 * (x[3] - x[2] ** 2) ** 2 + (1 - x[2]) ** 2
         + 10.1 * ((x[1] - 1) ** 2 + (x[3] - 1) ** 2) + 19.8 * (x[1] - 1) * (x[3] - 1), [-3, -1, -3, -1], 0.0, {"bounds": (-10, 10)}),
    39: (lambda x: -x[0], [2, 2, 2, 2], -1.0,
         {"equality": stacked(lambda x: x[1] - x[0] ** 3 - x[2] ** 2, lambda x: x[0] ** 2 - x[1] - x[3] ** 2)}),
    40: (lambda x: -x[0] * x[1] * x[2] * x[3], [0.8, 0.8, 0.8, 0.8], -0.25,
         {"equality": stacked(lambda x: x[0] ** 3 + x[1] ** 2 - 1, lambda x: x[0] ** 2 * x[3] - x[2], lambda x: x[3] ** 2 - x[1])}),
    41: (lambda x: 2 - x[0] * x[1] * x[2], [2, 2, 2, 2], 52 / 27,
         {"equality": lambda x: x[0] + 2 * x[1] + 2 * x[2] - x[3], "bounds": (0, [1, 1, 1, 2])}),
    42: (lambda x: np.sum((x - np.arange(1.0, 5.0)) ** 2), [1, 1, 1, 1], 28 - 10 * sqrt(2),
         {"equality": stacked(lambda x: x[0] - 2, lambda x: x[2] ** 2 + x[3] ** 2 - 2)}),
    43: (lambda x: x[0] ** 2 + x[1] ** 2 + 2 * x[2] ** 2 + x[3] ** 2 - 5 * x[0] - 5 * x[1] - 21 * x[2] + 7 * x[3],
         [0, 0, 0, 0], -44.0,
         {"inequality": stacked(lambda x: 8 - np.sum(x**2) - x[0] + x[1] - x[2] + x[3],
                                lambda x: 10 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - 2 * x[3] ** 2 + x[0] + x[3],
                                lambda x: 5 - 2 * x[0] ** 2 - x[1] ** 2 - x[2] ** 2 - 2 * x[0] + x[1] + x[3])}),
    45: (lambda x: 2 - np.prod(x) / 120, [2, 2, 2, 2, 2], 1.0, {"bounds": (0, [1, 2, 3, 4, 5])}),
    46: (lambda x: (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6,
         [sqrt(2) / 2, 1.75, 0.5, 2, 2], 0.0,
         {"equality": stacked(lambda x: x[0] ** 2 * x[3] + sin(x[3] - x[4]) - 1, lambda x: x[1] + x[2] ** 4 * x[3] ** 2 - 2)}),
    48: (lambda x: (x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2, [3, 5, -3, 2, -2], 0.0,
         {"equality": stacked(lambda x: np.sum(x) - 5, lambda x: x[2] - 2 * (x[3] + x[4]) + 3)}),
    49: (lambda x: (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6, [10, 7, 2, -3, 0.8], 0.0,
         {"equality": stacked(lambda x: x[0] + x[1] + x[2] + 4 * x[3] - 7, lambda x: x[2] + 5 * x[4] - 6)}),
    50: (lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 2 + (x[2] - x[3]) ** 4 + (x[3] - x[4]) ** 2, [35, -31, 11, 5, -5], 0.0,
         {"equality": lambda x: x[:3] + 2 * x[1:4] + 3 * x[2:] - 6}),
    51: (lambda x: (x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2, [2.5, 0.5, 2, -1, 0.5], 0.0,
         {"equality": stacked(lambda x: x[0] + 3 * x[1] - 4, lambda x: x[2] + x[3] - 2 * x[4], lambda x: x[1] - x[4])}),
    52: (lambda x: (4 * x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2, [2, 2, 2, 2, 2], 1859 / 349,
         {"equality": stacked(lambda x: x[0] + 3 * x[1], lambda x: x[2] + x[3] - 2 * x[4], lambda x: x[1] - x[4])}),
    53: (lambda x: (x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2, [2, 2, 2, 2, 2], 176 / 43,
         {"equality": stacked(lambda x: x[0] + 3 * x[1], lambda x: x[2] + x[3] - 2 * x[4], lambda x: x[1] - x[4]), "bounds": (-10, 10)}),
    60: (lambda x: (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4, [2, 2, 2], 0.03256820025,
         {"equality": lambda x: x[0] * (1 + x[1] ** 2) + x[2] ** 4 - 4 - 3 * sqrt(2), "bounds": (-10, 10)}),
    61: (lambda x: 4 * x[0] ** 2 + 2 * x[1] ** 2 + 2 * x[2] ** 2 - 33 * x[0] + 16 * x[1] - 24 * x[2], [0, 0, 0], -143.6461422,
         {"equality": stacked(lambda x: 3 * x[0] - 2 * x[1] ** 2 - 7, lambda x: 4 * x[0] - x[2] ** 2 - 11)}),
    63: (lambda x: 1000 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - x[0] * x[1] - x[0] * x[2], [2, 2, 2], 961.7151721,
         {"equality": stacked(lambda x: 8 * x[0] + 14 * x[1] + 7 * x[2] - 56, lambda x: np.sum(x**2) - 25), "bounds": (0, INF)}),
    64: (lambda x: 5 * x[0] + 50000 / x[0] + 20 * x[1] + 72000 / x[1] + 10 * x[2] + 144000 / x[2], [1, 1, 1], 6299.842428,
         {"inequality": lambda x: 1 - 4 / x[0] - 32 / x[1] - 120 / x[2], "bounds": (1e-5, INF)}),
    65: (lambda x: (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2, [-5, 5, 0], 0.9535288567,
         {"inequality": lambda x: 48 - np.sum(x**2), "bounds": ([-4.5, -4.5, -5], [4.5, 4.5, 5])}),
    66: (lambda x: 0.2 * x[2] - 0.8 * x[0], [0, 1.05, 2.9], 0.5181632741,
         {"inequality": stacked(lambda x: x[1] - exp(x[0]), lambda x: x[2] - exp(x[1])), "bounds": (0, [100, 100, 10])}),
    71: (lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2], [1, 5, 5, 1], 17.0140173,
         {"equality": lambda x: np.sum(x**2) - 40, "inequality": lambda x: np.prod(x) - 25, "bounds": (1, 5)}),
    76: (lambda x: x[0] ** 2 + 0.5 * x[1] ** 2 + x[2] ** 2 + 0.5 * x[3] ** 2 - x[0] * x[2] + x[2] * x[3] - x[0] - 3 * x[1]
         + x[2] - x[3], [0.5, 0.5, 0.5, 0.5], -4.681818181,
         {"inequality": stacked(lambda x: 5 - x[0] - 2 * x[1] - x[2] - x[3], lambda x: 4 - 3 * x[0] - x[1] - 2 * x[2] + x[3],
                                lambda x: x[1] + 4 * x[2] - 1.5), "bounds": (0, INF)}),
    77: (lambda x: (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6,
         [2, 2, 2, 2, 2], 0.24150513,
         {"equality": stacked(lambda x: x[0] ** 2 * x[3] + sin(x[3] - x[4]) - 2 * sqrt(2),
                              lambda x: x[1] + x[2] ** 4 * x[3] ** 2 - 8 - sqrt(2))}),
    78: (lambda x: np.prod(x), [-2, 1.5, 2, -1, -1], -2.91970041,
         {"equality": stacked(lambda x: np.sum(x**2) - 10, lambda x: x[1] * x[2] - 5 * x[3] * x[4],
                              lambda x: x[0] ** 3 + x[1] ** 3 + 1)}),
    79: (lambda x: (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 2 + (x[2] - x[3]) ** 4 + (x[3] - x[4]) ** 4,
         [2, 2, 2, 2, 2], 0.0787768209,
         {"equality": stacked(lambda x: x[0] + x[1] ** 2 + x[2] ** 3 - 2 - 3 * sqrt(2), lambda x: x[1] - x[2] ** 2 + x[3] + 2 - 2 * sqrt(2),
                              lambda x: x[0] * x[4] - 2)}),
    80: (lambda x: exp(np.prod(x)), [-2, 2, 2, -1, -1], 0.0539498478,
         {"equality": stacked(lambda x: np.sum(x**2) - 10, lambda x: x[1] * x[2] - 5 * x[3] * x[4],
                              lambda x: x[0] ** 3 + x[1] ** 3 + 1),
          "bounds": ([-2.3, -2.3, -3.2, -3.2, -3.2], [2.3, 2.3, 3.2, 3.2, 3.2])}),
    81: (lambda x: exp(np.prod(x)) - 0.5 * (x[0] ** 3 + x[1] ** 3 + 1) ** 2, [-2, 2, 2, -1, -1], 0.0539498478,
         {"equality": stacked(lambda x: np.sum(x**2) - 10, lambda x: x[1] * x[2] - 5 * x[3] * x[4],
                              lambda x: x[0] ** 3 + x[1] ** 3 + 1),
          "bounds": ([-2.3, -2.3, -3.2, -3.2, -3.2], [2.3, 2.3, 3.2, 3.2, 3.2])}),
    113: (lambda x: x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 14 * x[0] - 16 * x[1] + (x[2] - 10) ** 2 + 4 * (x[3] - 5) ** 2
          + (x[4] - 3) ** 2 + 2 * (x[5] - 1) ** 2 + 5 * x[6] ** 2 + 7 * (x[7] - 11) ** 2 + 2 * (x[8] - 10) ** 2 + (x[9] - 7) ** 2 + 45,
          [2, 3, 5, 5, 1, 2, 7, 3, 6, 10], 24.3062091,
          {"inequality": stacked(
              lambda x: 105 - 4 * x[0] - 5 * x[1] + 3 * x[6] - 9 * x[7],
              lambda x: -10 * x[0] + 8 * x[1] + 17 * x[6] - 2 * x[7],
              lambda x: 8 * x[0] - 2 * x[1] - 5 * x[8] + 2 * x[9] + 12,
              lambda x: -3 * (x[0] - 2) ** 2 - 4 * (x[1] - 3) ** 2 - 2 * x[2] ** 2 + 7 * x[3] + 120,
              lambda x: -5 * x[0] ** 2 - 8 * x[1] - (x[2] - 6) ** 2 + 2 * x[3] + 40,
              lambda x: -0.5 * (x[0] - 8) ** 2 - 2 * (x[1] - 4) ** 2 - 3 * x[4] ** 2 + x[5] + 30,
              lambda x: -x[0] ** 2 - 2 * (x[1] - 2) ** 2 + 2 * x[0] * x[1] - 14 * x[4] + 6 * x[5],
              lambda x: 3 * x[0] - 6 * x[1] - 12 * (x[8] - 8) ** 2 + 7 * x[9])}),
}  # fmt: skip

OTHER_OPTIMA = {2: (4.94122932,)}
"""Local minima that a method may end in from the published start."""


def solved(number, method):
    f, start, optimum, more = PROBLEMS[number]
    return rz.nlp(f, np.array(start, float), **more).solve(method), optimum


@pytest.mark.parametrize("number", PROBLEMS)
def test_interior_points(number):
    pytest.importorskip("cyipopt")
    found, optimum = solved(number, "ipopt")
    near = [np.isclose(found.value, v, rtol=1e-5, atol=1e-5) for v in (optimum, *OTHER_OPTIMA.get(number, ()))]
    assert found, found
    assert any(near), (found.value, optimum)
    assert found.violation <= 1e-6 and found.stationarity <= 1e-4


@pytest.mark.parametrize("number", [1, 6, 14, 21, 28, 35, 43, 48, 53, 65, 71, 76, 113])
def test_without_ipopt(number):
    found, optimum = solved(number, "slsqp")
    assert found and np.isclose(found.value, optimum, rtol=1e-5, atol=1e-6), found
    assert found.violation <= 1e-6


@pytest.mark.parametrize("number", [6, 21, 28, 35, 48, 71])
def test_by_trust_regions(number):
    found, optimum = solved(number, "trust-constr")
    assert found and np.isclose(found.value, optimum, rtol=1e-3, atol=1e-4), found
