"""A camera: exposure, vignetting, saturation and the sRGB curve; several exposures of one scene give back the light."""

import numpy as np

import riesz as rz


def srgb(linear):
    """The transfer curve of sRGB: linear near black, a power above."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def vignetting(coefficients, shape):
    """How much light reaches each pixel: 1 + a r² + b r⁴."""
    rows, columns = np.meshgrid(np.linspace(-1, 1, shape[0]), np.linspace(-1, 1, shape[1]), indexing="ij")
    r2 = rows**2 + columns**2
    return 1 + coefficients[0] * r2 + coefficients[1] * r2**2


def photographs(log_light, log_exposures, coefficients):
    """One picture per exposure time."""
    arriving = np.exp(log_exposures)[:, None, None] * np.exp(log_light) * vignetting(coefficients, log_light.shape)
    return srgb(np.clip(arriving, 0.0, 1.0))


def loss(log_light, log_exposures, coefficients, pictures, smoothness=1e-3):
    """Errors where a picture is neither black nor white, a smooth scene, and a mean exposure of one."""
    errors = photographs(log_light, log_exposures, coefficients) - pictures
    trusted = np.exp(-20 * (pictures - 0.5) ** 4)
    rough = np.sum(np.diff(log_light, axis=0) ** 2) + np.sum(np.diff(log_light, axis=1) ** 2)
    return np.sum(trusted * errors**2) + smoothness * rough + np.mean(log_exposures) ** 2


def data(rng, shape=(6, 7), count=3):
    """A scene with bright and dark parts, and pictures of it with noise."""
    log_light = np.cumsum(0.3 * rng.normal(size=shape), axis=1) - 1.5
    log_exposures = np.linspace(-1.5, 1.5, count)
    coefficients = np.array([-0.2, 0.03])
    pictures = photographs(log_light, log_exposures, coefficients) + 0.01 * rng.normal(size=(count, *shape))
    return (
        log_light + 0.2 * rng.normal(size=shape),
        log_exposures + 0.1 * rng.normal(size=count),
        coefficients + 0.01 * rng.normal(size=2),
        pictures,
    )


def main():
    """Gauss-Newton in all unknowns together, with the derivative of the pictures."""
    log_light, log_exposures, coefficients, pictures = data(np.random.default_rng(0), shape=(12, 16), count=4)
    unknowns = (log_light, log_exposures, coefficients)
    for i in range(8):
        value, slope = rz.value_and_grad(loss, (0, 1, 2))(*unknowns, pictures)
        J = rz.jacobian(photographs, (0, 1, 2))(*unknowns)
        V = J.domain
        print(f"step {i}   loss {value:.6f}   gradient {V.norm(slope):.2e}")
        matrix = J.to_dense()
        step = np.linalg.solve(2 * matrix.T @ matrix + 0.05 * np.eye(V.dim), V.flatten(slope))
        unknowns = tuple(a - b for a, b in zip(unknowns, V.unflatten(step), strict=True))
    saturated = np.mean(photographs(*unknowns) > 0.999999)
    print(
        f"{saturated:.0%} of the pixels are saturated: rows of the Jacobian that are zero, {np.mean(~matrix.any(axis=1)):.0%}"
    )


if __name__ == "__main__":
    main()
