"""Inverse kinematics: a chain of joints in space whose hand shall be at a place, by damped least squares."""

import numpy as np

import riesz as rz


def rotation_x(t):
    """Rotation about the x axis."""
    c, s = np.cos(t), np.sin(t)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_z(t):
    """Rotation about the z axis."""
    c, s = np.cos(t), np.sin(t)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def joints(angles, lengths):
    """The places of all joints: each turns, relative to the one before, about z and then about x."""
    place, frame = np.zeros(3), np.eye(3)
    places = [place]
    for (bend, twist), length in zip(angles, lengths):  # noqa: B905
        frame = frame @ rotation_z(bend) @ rotation_x(twist)
        place = place + frame @ (length * np.array([1.0, 0.0, 0.0]))
        places.append(place)
    return np.stack(places)


def hand(angles, lengths):
    """The place of the last joint."""
    return joints(angles, lengths)[-1]


def cost(angles, lengths, target, rest=0.01):
    """Distance to the target, and comfort: small angles cost less; a joint shall not go below the floor."""
    places = joints(angles, lengths)
    below = np.minimum(places[:, 2] + 1.0, 0.0)
    return np.sum((places[-1] - target) ** 2) + rest * np.sum(angles**2) + 10 * np.sum(below**2)


def data(rng, n=5):
    """Angles, lengths and a target within reach."""
    lengths = rng.uniform(0.6, 1.2, size=n)
    return 0.4 * rng.normal(size=(n, 2)), lengths, hand(0.5 * rng.normal(size=(n, 2)), lengths)


def main():
    """Damped least squares: dq = J* (J J* + λ)⁻¹ e, the smallest change of the angles that helps, towards a target at most 0.7 away."""
    angles, lengths, target = data(np.random.default_rng(4))
    for i in range(12):
        error = target - hand(angles, lengths)
        print(f"step {i:2d}   the hand is {np.linalg.norm(error):.2e} away, cost {cost(angles, lengths, target):.5f}")
        J = rz.jacobian(hand)(angles, lengths)
        if i == 0:
            print(
                f"         J : {J.domain} ⊸ {J.codomain}, singular values {np.array2string(np.linalg.svd(J.to_dense())[1], precision=3)}"
            )
        aim = error * min(1.0, 0.7 / np.linalg.norm(error))
        angles = angles + J.H(np.linalg.solve((J @ J.H).to_dense() + 1e-3 * np.eye(3), aim))


if __name__ == "__main__":
    main()
