"""A pendulum is swung up: collocation, and a loop of predictive control that solves from each measured state anew."""

import numpy as np

import riesz as rz

H, N = 0.1, 20


def field(x, u):
    """Angle and turning rate of a pendulum with a motor in its joint."""
    return np.stack([x[..., 1], u - np.sin(x[..., 0]) - 0.1 * x[..., 1]], axis=-1)


def cost(z, state):
    """Torque, and the distance from upright, more so at the end."""
    away = (z["x"] - np.array([np.pi, 0.0])) ** 2
    return H * (np.sum(away) + 0.1 * np.sum(z["u"] ** 2)) + 10.0 * np.sum(away[-1])


def motion(z, state):
    """Trapezoids from the state that is measured."""
    v = field(z["x"], z["u"])
    return {"start": z["x"][0] - state, "steps": z["x"][1:] - z["x"][:-1] - 0.5 * H * (v[1:] + v[:-1])}


def program():
    """The problem; the measured state is a parameter, so that nothing is traced again."""
    z = {"x": np.linspace([0.0, 0.0], [np.pi, 0.0], N + 1), "u": np.zeros(N + 1)}
    return rz.nlp(cost, z, equality=motion, bounds=({"u": -1.5}, {"u": 1.5}), parameters=np.zeros(2))


def step(x, u, parts=10):
    """The real motion over one interval, by small steps."""
    for _ in range(parts):
        middle = x + 0.5 * H / parts * field(x, u)
        x = x + H / parts * field(middle, u)
    return x


def control(rounds, method="auto", noise=0.01, seed=0):
    """States and torques; each solution starts where the last one ended."""
    rng, problem, found = np.random.default_rng(seed), program(), None
    states, torques = [np.zeros(2)], []
    for _ in range(rounds):
        seen = states[-1] + noise * rng.normal(size=2)
        found = problem.solve(method, start=found, parameters=seen)
        torques.append(float(np.mean(found.x["u"][:2])))
        states.append(step(states[-1], torques[-1]))
    return np.array(states), np.array(torques)


def main():
    """Sixty intervals."""
    states, torques = control(60)
    print(
        "upright within",
        np.abs(states[-1] - [np.pi, 0.0]).max().round(3),
        "torques up to",
        np.abs(torques).max().round(2),
    )


if __name__ == "__main__":
    main()
