"""The calculus at size: long chains, sharing, deep networks, Griewank. PyTorch and autograd where they are installed.

Each row: medians of several runs, every contestant on the same input in the same process, results compared. Run: make bench
"""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
from timing import row, timed

import riesz as rz


def chain(n):
    """sin ∘ … ∘ sin, n times."""
    f = rz.sin
    for _ in range(n - 1):
        f = rz.sin @ f
    return f


def chains(sizes=(10_000, 100_000)):
    """A composition of n sines: first gradient, symbolic derivation; growth from 10,000 to 100,000."""
    seconds = {}
    for n in sizes:
        f = chain(n)
        seconds["grad", n], g = timed(lambda f=f: rz.grad(f)(0.7))
        seconds["derive", n], D = timed(lambda f=f: rz.derive(f), 3)
        assert abs(D.adjoint(0.7)(1.0) - g) <= 1e-12 * abs(g)
        row(f"first gradient of {n:,} sines", seconds["grad", n])
        row(f"symbolic derivation of {n:,} sines", seconds["derive", n], f"{D.size:,} steps")
    for what in ("grad", "derive"):
        print(
            f"    {what}: {seconds[what, sizes[1]] / seconds[what, sizes[0]]:.1f} times the time for {sizes[1] // sizes[0]} times the length"
        )
    return seconds


def chain_torch(n=100_000):
    """The same gradient by PyTorch's tape."""
    import torch

    def gradient():
        x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(n):
            y = torch.sin(y)
        y.backward()
        return float(x.grad)

    seconds, g = timed(gradient, 3)
    ours = rz.grad(chain(n))(0.7)
    assert abs(g - ours) <= 1e-9 * abs(ours)
    row(f"PyTorch: gradient of {n:,} sines", seconds)


def chain_autograd(n=100_000):
    """The same gradient by autograd."""
    import autograd
    import autograd.numpy as anp

    def f(x):
        for _ in range(n):
            x = anp.sin(x)
        return x

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * n))
    seconds, g = timed(lambda: autograd.grad(f)(0.7), 3)
    ours = rz.grad(chain(n))(0.7)
    assert abs(g - ours) <= 1e-9 * abs(ours)
    row(f"autograd: gradient of {n:,} sines", seconds)


def squarings(depth=60):
    """Sixty nested squarings of sums: 2^60 paths."""
    f = rz.id(rz.R)
    for _ in range(depth):
        s = f + f
        f = 0.25 * (s * s)
    seconds, _ = timed(lambda: rz.grad(f)(0.999))
    row(f"gradient of {depth} nested squarings of sums", seconds, f"{rz.derive(f).size} steps for 2^{depth} paths")


def network(k, width):
    """N_k with nested environments (x, ((W, b), rest)): a term of size O(k)."""
    x = rz.R ** rz.seg(width)
    parameters = rz.R ** (rz.seg(width) * rz.seg(width)) * x
    rest = x
    for _ in range(k):
        rest = rz.direct_sum(parameters, rest)
    W, b = rz.proj(0) @ rz.proj(1), rz.proj(1) @ rz.proj(1)
    layer = rz.tanh ** rz.seg(width) @ (rz.matvec @ rz.fork(W, rz.proj(0)) + b)
    regroup = rz.fork(rz.fork(rz.proj(0), rz.proj(0) @ rz.proj(1)), rz.proj(1) @ rz.proj(1))
    net = rz.id(rz.direct_sum(x, rest))
    for _ in range(k):
        net = rz.par(layer, rz.id) @ regroup @ net
    return rz.inner @ rz.dup @ (rz.proj(0) - rz.proj(1)) @ net


def networks(sizes=(500, 1000, 2000), width=8):
    """N_k: sizes and time of derivation and gradient."""
    rng = np.random.default_rng(0)
    for k in sizes:
        net = network(k, width)
        derive, D = timed(lambda net=net: rz.derive(net), 1)
        V = D.function.domain
        x = V.wrap([0.3 * rng.normal(size=leaf.shape) for leaf in V.leaves])
        grad, g = timed(lambda net=net, x=x: rz.grad(net)(x), 3)
        assert V.norm(V.add(g, V.scale(-1.0, D.adjoint(x)(1.0)))) <= 1e-9 * max(1.0, V.norm(g))
        row(
            f"N_k, k = {k:,}, width {width}: derivation",
            derive,
            f"{len(D.value)}, {len(D.derivative)}, {len(D.adjoint)} steps",
        )
        row(f"N_k, k = {k:,}, width {width}: first gradient", grad)


def griewank(n=1_000_000):
    """b·sin(aᵀx): linearize, apply, adjoint, against hand-written NumPy."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n)) / n**0.5
    x = rng.normal(size=n)
    f = rz.right(rz.scalar_mul, b) @ rz.sin @ rz.left(rz.inner, a)
    build, (_, L) = timed(lambda: rz.linearize(f, x), 11)
    apply, image = timed(lambda: L(x), 11)
    back, pulled = timed(lambda: L.H(x), 11)
    hand, expected = timed(lambda: (np.cos(a @ x) * (a @ x)) * b, 11)
    assert np.allclose(image, expected, rtol=1e-12)
    assert np.allclose(pulled, (np.cos(a @ x) * (b @ x)) * a, rtol=1e-12)
    row(f"Griewank n = m = {n:,}: linearize", build)
    row(f"Griewank n = m = {n:,}: apply", apply, f"{apply / hand:.2f} × hand")
    row(f"Griewank n = m = {n:,}: adjoint", back, f"{back / hand:.2f} × hand")
    row(f"Griewank n = m = {n:,}: NumPy by hand", hand)


def imports():
    """Time of `import riesz` beyond NumPy's own."""
    import subprocess

    def seconds(code):
        return min([float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)])

    head = "import time; t = time.perf_counter(); "
    numpy = seconds(head + "import numpy; print(time.perf_counter() - t)")
    both = seconds(head + "import numpy, riesz; print(time.perf_counter() - t)")
    row("import riesz, beyond NumPy", both - numpy)


def calls():
    """Microseconds of a small gradient, interpreted."""
    f = rz.ln @ rz.proj(0) + rz.proj(0) * rz.proj(1) - rz.sin @ rz.proj(1)
    g = rz.grad(f.at(rz.R * rz.R))
    seconds, _ = timed(lambda: [g((2.0, 5.0)) for _ in range(1000)])
    row("gradient of ln x₀ + x₀·x₁ − sin x₁, a call", seconds / 1000)


if __name__ == "__main__":
    imports()
    calls()
    chains()
    for name, peer in (("torch", chain_torch), ("autograd", chain_autograd)):
        if importlib.util.find_spec(name):
            peer()
        else:
            print(f"({name} is not installed)")
    squarings()
    networks()
    griewank()
