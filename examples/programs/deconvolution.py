"""Deblurring with the fast Fourier transform: the Hessian is a convolution, and conjugate gradients need nothing but its action."""

import numpy as np
from scipy.sparse.linalg import cg

import riesz as rz


def blur(image, kernel):
    """Circular convolution of an image with a kernel of its size."""
    return np.fft.irfft2(np.fft.rfft2(image) * np.fft.rfft2(kernel), s=image.shape)


def roughness(image):
    """Energy of the spectrum, weighted by squared frequency."""
    rows = np.fft.fftfreq(image.shape[0])[:, None]
    columns = np.fft.fftfreq(image.shape[1])[None, :]
    return np.sum((rows**2 + columns**2) * np.abs(np.fft.fft2(image)) ** 2) / image.size


def loss(image, kernel, blurred, smoothness=0.01):
    """Squared error of the blurred image, and the roughness of the sharp one."""
    return 0.5 * np.sum((blur(image, kernel) - blurred) ** 2) + smoothness * roughness(image)


def gaussian(shape, width):
    """A kernel centred at pixel (0, 0)."""
    rows, columns = np.fft.fftfreq(shape[0], 1 / shape[0])[:, None], np.fft.fftfreq(shape[1], 1 / shape[1])[None, :]
    kernel = np.exp(-0.5 * (rows**2 + columns**2) / width**2)
    return kernel / np.sum(kernel)


def blind_loss(image, log_width, blurred, smoothness=0.01):
    """The width of the blur is unknown too."""
    return loss(image, gaussian(image.shape, np.exp(log_width)), blurred, smoothness)


def data(rng, shape=(8, 9)):
    """A few bright squares, blurred, in noise."""
    image = np.kron(rng.random((shape[0] // 4 + 1, shape[1] // 4 + 1)) > 0.5, np.ones((4, 4)))[: shape[0], : shape[1]]
    kernel = gaussian(shape, 1.0)
    return image + 0.3 * rng.normal(size=shape), kernel, blur(image, kernel) + 0.01 * rng.normal(size=shape)


def main():
    """One solve with the Hessian deblurs; the derivative in the width says how wrong it was."""
    rng = np.random.default_rng(0)
    _, kernel, blurred = data(rng, (32, 40))
    slope, H = rz.grad(loss)(blurred, kernel, blurred, 1e-3), rz.hessian(loss)(blurred, kernel, blurred, 1e-3)
    step = cg(H.as_operator(), -slope.ravel(), rtol=1e-10, maxiter=400)[0].reshape(blurred.shape)
    sharp = blurred + step
    left = np.linalg.norm(rz.grad(loss)(sharp, kernel, blurred, 1e-3))
    print(
        f"loss {loss(blurred, kernel, blurred, 1e-3):.4f} → {loss(sharp, kernel, blurred, 1e-3):.4f}, gradient {left:.1e}"
    )
    for width in (0.8, 1.0, 1.2):
        print(
            f"width {width}: d loss / d ln width = {rz.grad(blind_loss, 1)(sharp, np.log(width), blurred, 1e-3):9.5f}"
        )
    print("\nthe derivative of the blur:", rz.jacobian(blur)(blurred, kernel), sep="\n")


if __name__ == "__main__":
    main()
