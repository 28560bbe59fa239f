"""Problems of the collection of Hock and Schittkowski (1981), from their published formulas: starts, optima."""

import numpy as np

exp, log, sqrt, sin, cos, pi = np.exp, np.log, np.sqrt, np.sin, np.cos, np.pi
INF = np.inf
T = 0.01 * np.arange(1.0, 100.0)


def stacked(*parts):
    return lambda x: np.stack([p(x) for p in parts])


def rosen(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def between(values, above):
    """0 ≤ values ≤ above."""
    return np.concatenate([values, above - values])


def powers(a, optimum):
    """74 and 75: two generators and the angles of a line."""

    def flow(x):
        p, q = x[2], x[3]
        return np.stack([
            1000 * (sin(-p - 0.25) + sin(-q - 0.25)) + 894.8 - x[0],
            1000 * (sin(p - 0.25) + sin(p - q - 0.25)) + 894.8 - x[1],
            1000 * (sin(q - 0.25) + sin(q - p - 0.25)) + 1294.8,
        ])  # fmt: skip

    def cost(x):
        return 3 * x[0] + 1e-6 * x[0] ** 3 + 2 * x[1] + 2e-6 / 3 * x[1] ** 3

    near = stacked(lambda x: x[3] - x[2] + a, lambda x: x[2] - x[3] + a)
    return (
        cost,
        [0, 0, 0, 0],
        optimum,
        {"equality": flow, "inequality": near, "bounds": ([0, 0, -a, -a], [1200, 1200, a, a])},
    )


def himmelblau(least, optimum):
    """95 to 98."""

    def held(x):
        a, b, c, d, e, f = x
        return np.stack([
            17.1 * a + 38.2 * b + 204.2 * c + 212.3 * d + 623.4 * e + 1495.5 * f
            - 169 * a * c - 3580 * c * e - 3810 * d * e - 18500 * d * f - 24300 * e * f,
            17.9 * a + 36.8 * b + 113.9 * c + 169.7 * d + 337.8 * e + 1385.2 * f
            - 139 * a * c - 2450 * d * e - 16600 * d * f - 17200 * e * f,
            -273 * b - 70 * d - 819 * e + 26000 * d * e,
            159.9 * a - 311 * b + 587 * d + 391 * e + 2198 * f - 14000 * a * f,
        ]) - np.array(least)  # fmt: skip

    def cost(x):
        return np.array([4.3, 31.8, 63.3, 15.8, 68.5, 4.7]) @ x

    return cost, [0] * 6, optimum, {"inequality": held, "bounds": (0, [0.31, 0.046, 0.068, 0.042, 0.028, 0.0134])}


# Colville's first problem (86), and its dual (117)
E, D = np.array([-15.0, -27, -36, -18, -12]), np.array([4.0, 8, 10, 6, 2])
C = np.array(
    [
        [30.0, -20, -10, 32, -10],
        [-20, 39, -6, -31, 32],
        [-10, -6, 10, -6, -10],
        [32, -31, -6, 39, -20],
        [-10, 32, -10, -20, 30],
    ]
)
A = np.array([[-16.0, 2, 0, 1, 0], [0, -2, 0, 0.4, 2], [-3.5, 0, 2, 0, 0], [0, -2, 0, -4, -1], [0, -9, -2, 1, -2.8],
              [2, 0, -4, 0, 0], [-1, -1, -1, -1, -1], [-1, -2, -3, -2, -1], [1, 2, 3, 4, 5], [1, 1, 1, 1, 1]])  # fmt: skip
B = np.array([-40.0, -2, -0.25, -4, -4, -1, -40, -60, 5, 1])

# the free energies of 111 and 112, and their balances
GIBBS = np.array([-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179])
ATOMS = np.array([[1.0, 2, 2, 0, 0, 1, 0, 0, 0, 1], [0, 0, 0, 1, 2, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0, 1, 1, 2, 1]])


def elements(amounts):
    return ATOMS @ amounts - np.array([2.0, 1.0, 1.0])


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
         {"inequality": stacked(lambda x: x[1] ** 2 - x[0], lambda x: x[0] ** 2 - x[1]), "bounds": ([-0.5, -INF], [0.5, 1])}),
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
    16: (rosen, [-2, 1], 0.25,
         {"inequality": stacked(lambda x: x[0] + x[1] ** 2, lambda x: x[0] ** 2 + x[1]), "bounds": ([-0.5, -INF], [0.5, 1])}),
    19: (lambda x: (x[0] - 10) ** 3 + (x[1] - 20) ** 3, [20.1, 5.84], -6961.81381,
         {"inequality": stacked(lambda x: (x[0] - 5) ** 2 + (x[1] - 5) ** 2 - 100, lambda x: 82.81 - (x[1] - 5) ** 2 - (x[0] - 6) ** 2),
          "bounds": ([13, 0], 100)}),
    20: (rosen, [-2, 1], 81.5 - 25 * sqrt(3),
         {"inequality": stacked(lambda x: x[0] + x[1] ** 2, lambda x: x[0] ** 2 + x[1], lambda x: np.sum(x**2) - 1),
          "bounds": ([-0.5, -INF], [0.5, INF])}),
    25: (lambda x: np.sum((exp(-((25 + (-50 * log(T)) ** (2 / 3) - x[1]) ** x[2]) / x[0]) - T) ** 2), [100, 12.5, 3], 0.0,
         {"bounds": ([0.1, 0, 0], [100, 25.6, 5])}),
    44: (lambda x: x[0] - x[1] - x[2] - x[0] * x[2] + x[0] * x[3] + x[1] * x[2] - x[1] * x[3], [0, 0, 0, 0], -15.0,
         {"inequality": stacked(lambda x: 8 - x[0] - 2 * x[1], lambda x: 12 - 4 * x[0] - x[1], lambda x: 12 - 3 * x[0] - 4 * x[1],
                                lambda x: 8 - 2 * x[2] - x[3], lambda x: 8 - x[2] - 2 * x[3], lambda x: 5 - x[2] - x[3]),
          "bounds": (0, INF)}),
    55: (lambda x: x[0] + 2 * x[1] + 4 * x[4] + exp(x[0] * x[3]), [1, 2, 0, 0, 0, 2], 19 / 3,
         {"equality": stacked(lambda x: x[0] + 2 * x[1] + 5 * x[4] - 6, lambda x: x[0] + x[1] + x[2] - 3, lambda x: x[3] + x[4] + x[5] - 2,
                              lambda x: x[0] + x[3] - 1, lambda x: x[1] + x[4] - 2, lambda x: x[2] + x[5] - 2),
          "bounds": (0, [1, INF, INF, 1, INF, INF])}),
    56: (lambda x: -x[0] * x[1] * x[2], [1, 1, 1, *[np.arcsin(sqrt(1 / 4.2))] * 3, np.arcsin(sqrt(5 / 7.2))], -3.456,
         {"equality": lambda x: np.concatenate([x[:3] - 4.2 * sin(x[3:6]) ** 2,
                                                np.stack([x[0] + 2 * x[1] + 2 * x[2] - 7.2 * sin(x[6]) ** 2])])}),
    62: (lambda x: -32.174 * (255 * log((np.sum(x) + 0.03) / (0.09 * x[0] + x[1] + x[2] + 0.03))
                              + 280 * log((x[1] + x[2] + 0.03) / (0.07 * x[1] + x[2] + 0.03))
                              + 290 * log((x[2] + 0.03) / (0.13 * x[2] + 0.03))), [0.7, 0.2, 0.1], -26272.51448,
         {"equality": lambda x: np.sum(x) - 1, "bounds": (0, 1)}),
    72: (lambda x: 1 + np.sum(x), [1, 1, 1, 1], 727.67937,
         {"inequality": stacked(lambda x: 0.0401 - 4 / x[0] - 2.25 / x[1] - 1 / x[2] - 0.25 / x[3],
                                lambda x: 0.010085 - 0.16 / x[0] - 0.36 / x[1] - 0.64 / x[2] - 0.64 / x[3]),
          "bounds": (0.001, [4e5, 3e5, 2e5, 1e5])}),
    73: (lambda x: np.array([24.55, 26.75, 39.0, 40.5]) @ x, [1, 1, 1, 1], 29.894378,
         {"equality": lambda x: np.sum(x) - 1,
          "inequality": stacked(lambda x: np.array([2.3, 5.6, 11.1, 1.3]) @ x - 5,
                                lambda x: np.array([12.0, 11.9, 41.8, 52.1]) @ x - 21
                                - 1.645 * sqrt(np.array([0.28, 0.19, 20.5, 0.62]) @ x**2)), "bounds": (0, INF)}),
    74: powers(0.55, 5126.4981),
    75: powers(0.48, 5174.41288),
    83: (lambda x: 5.3578547 * x[2] ** 2 + 0.8356891 * x[0] * x[4] + 37.293239 * x[0] - 40792.141, [78, 33, 27, 27, 27], -30665.53867,
         {"inequality": lambda x: between(np.stack([
             85.334407 + 0.0056858 * x[1] * x[4] + 0.0006262 * x[0] * x[3] - 0.0022053 * x[2] * x[4],
             80.51249 + 0.0071317 * x[1] * x[4] + 0.0029955 * x[0] * x[1] + 0.0021813 * x[2] ** 2 - 90,
             9.300961 + 0.0047026 * x[2] * x[4] + 0.0012547 * x[0] * x[2] + 0.0019085 * x[2] * x[3] - 20]), np.array([92.0, 20.0, 5.0])),
          "bounds": ([78, 33, 27, 27, 27], [102, 45, 45, 45, 45])}),
    86: (lambda x: E @ x + x @ (C @ x) + D @ x**3, [0, 0, 0, 0, 1], -32.34867897,
         {"inequality": lambda x: A @ x - B, "bounds": (0, INF)}),
    93: (lambda x: 0.0204 * x[0] * x[3] * (x[0] + x[1] + x[2]) + 0.0187 * x[1] * x[2] * (x[0] + 1.57 * x[1] + x[3])
         + 0.0607 * x[0] * x[3] * x[4] ** 2 * (x[0] + x[1] + x[2]) + 0.0437 * x[1] * x[2] * x[5] ** 2 * (x[0] + 1.57 * x[1] + x[3]),
         [5.54, 4.4, 12.02, 11.82, 0.702, 0.852], 135.075961,
         {"inequality": stacked(lambda x: 0.001 * np.prod(x) - 2.07,
                                lambda x: 1 - 0.00062 * x[0] * x[3] * x[4] ** 2 * (x[0] + x[1] + x[2])
                                - 0.00058 * x[1] * x[2] * x[5] ** 2 * (x[0] + 1.57 * x[1] + x[3])), "bounds": (0, INF)}),
    95: himmelblau([4.97, -1.88, -29.08, -78.02], 0.015619514),
    96: himmelblau([4.97, -1.88, -69.08, -118.02], 0.015619514),
    97: himmelblau([32.97, 25.12, -29.08, -78.02], 3.1358091),
    98: himmelblau([32.97, 25.12, -124.08, -173.02], 3.1358091),
    100: (lambda x: (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2 + 10 * x[4] ** 6 + 7 * x[5] ** 2
          + x[6] ** 4 - 4 * x[5] * x[6] - 10 * x[5] - 8 * x[6], [1, 2, 0, 4, 0, 1, 1], 680.6300573,
          {"inequality": stacked(lambda x: 127 - 2 * x[0] ** 2 - 3 * x[1] ** 4 - x[2] - 4 * x[3] ** 2 - 5 * x[4],
                                 lambda x: 282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4],
                                 lambda x: 196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6],
                                 lambda x: -4 * x[0] ** 2 - x[1] ** 2 + 3 * x[0] * x[1] - 2 * x[2] ** 2 - 5 * x[5] + 11 * x[6])}),
    104: (lambda x: 0.4 * (x[0] / x[6]) ** 0.67 + 0.4 * (x[1] / x[7]) ** 0.67 + 10 - x[0] - x[1], [6, 3, 0.4, 0.2, 6, 6, 1, 0.5],
          3.9511634396,
          {"inequality": lambda x: np.concatenate([
              1 - 0.0588 * x[4:6] * x[6:] - 0.1 * np.cumsum(x[:2]),
              1 - 4 * x[2:4] / x[4:6] - 2 * x[2:4] ** -0.71 / x[4:6] - 0.0588 * x[2:4] ** -1.3 * x[6:]]), "bounds": (0.1, 10)}),
    106: (lambda x: x[0] + x[1] + x[2], [5000, 5000, 5000, 200, 350, 150, 225, 425], 7049.248,
          {"inequality": stacked(lambda x: 1 - 0.0025 * (x[3] + x[5]), lambda x: 1 - 0.0025 * (x[4] + x[6] - x[3]),
                                 lambda x: 1 - 0.01 * (x[7] - x[4]), lambda x: x[0] * x[5] - 833.33252 * x[3] - 100 * x[0] + 83333.333,
                                 lambda x: x[1] * x[6] - 1250 * x[4] - x[1] * x[3] + 1250 * x[3],
                                 lambda x: x[2] * x[7] - 1250000 - x[2] * x[4] + 2500 * x[4]),
           "bounds": ([100, 1000, 1000, 10, 10, 10, 10, 10], [1e4] * 3 + [1e3] * 5)}),
    108: (lambda x: -0.5 * (x[0] * x[3] - x[1] * x[2] + x[2] * x[8] - x[4] * x[8] + x[4] * x[7] - x[5] * x[6]), [1] * 9, -sqrt(3) / 2,
          {"inequality": stacked(lambda x: 1 - x[2] ** 2 - x[3] ** 2, lambda x: 1 - x[8] ** 2, lambda x: 1 - x[4] ** 2 - x[5] ** 2,
                                 lambda x: 1 - x[0] ** 2 - (x[1] - x[8]) ** 2, lambda x: 1 - (x[0] - x[4]) ** 2 - (x[1] - x[5]) ** 2,
                                 lambda x: 1 - (x[0] - x[6]) ** 2 - (x[1] - x[7]) ** 2, lambda x: 1 - (x[2] - x[4]) ** 2 - (x[3] - x[5]) ** 2,
                                 lambda x: 1 - (x[2] - x[6]) ** 2 - (x[3] - x[7]) ** 2, lambda x: 1 - x[6] ** 2 - (x[7] - x[8]) ** 2,
                                 lambda x: x[0] * x[3] - x[1] * x[2], lambda x: x[2] * x[8], lambda x: -x[4] * x[8],
                                 lambda x: x[4] * x[7] - x[5] * x[6]), "bounds": ([-INF] * 8 + [0], INF)}),
    110: (lambda x: np.sum(log(x - 2) ** 2 + log(10 - x) ** 2) - np.prod(x) ** 0.2, [9] * 10, -45.77846971, {"bounds": (2.001, 9.999)}),
    111: (lambda x: np.sum(exp(x) * (GIBBS + x - log(np.sum(exp(x))))), [-2.3] * 10, -47.7610909,
          {"equality": lambda x: elements(exp(x)), "bounds": (-100, 100)}),
    112: (lambda x: np.sum(x * (GIBBS + log(x / np.sum(x)))), [0.1] * 10, -47.7610909, {"equality": lambda x: elements(x), "bounds": (1e-6, INF)}),
    117: (lambda x: -B @ x[:10] + x[10:] @ (C @ x[10:]) + 2 * D @ x[10:] ** 3, [0.001] * 6 + [60] + [0.001] * 8, 32.34867897,
          {"inequality": lambda x: 2 * C @ x[10:] + 3 * D * x[10:] ** 2 + E - A.T @ x[:10], "bounds": (0, INF)}),
    118: (lambda x: np.sum(np.tile([2.3, 1.7, 2.2], 5) * x + np.tile([1e-4, 1e-4, 1.5e-4], 5) * x**2), [20, 55, 15] + [20, 60, 20] * 4,
          664.82045,
          {"inequality": lambda x: np.concatenate([
              between(x[3:] - x[:-3] + 7, np.tile([13.0, 14.0, 13.0], 4)),
              np.sum(np.reshape(x, (5, 3)), axis=1) - np.array([60.0, 50.0, 70.0, 85.0, 100.0])]),
           "bounds": ([8, 43, 3] + [0] * 12, [21, 57, 16] + [90, 120, 60] * 4)}),
}  # fmt: skip
