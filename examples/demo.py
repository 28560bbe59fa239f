"""NumPy code, and the examples of the paper: derived, printed, explained and evaluated. Run with `make demo`."""

import time

import numpy as np

import riesz as rz

rng = np.random.default_rng(0)
x, y = rz.proj(0), rz.proj(1)


def title(text: str) -> None:
    """A heading."""
    print(f"\n── {text} {'─' * max(0, 96 - len(text))}\n")


title("0. Plain NumPy code: a chain of springs in a periodic field")


def energy(x):
    """Neighbours pull, each feels a cosine; square roots only where they exist."""
    return np.sum((x[1:] - x[:-1]) ** 2) + np.sum(np.cos(x)) + np.sum(np.where(x > 0, np.sqrt(x), 0.0))


point = np.array([0.0, 0.5, 2.0, 1.0])
print(rz.derive(energy, rz.R ** rz.seg(4)))
print(f"\n∇f at {point} = {rz.grad(energy)(point)}   (no nan from the branch not taken)")
print(f"its Hessian\n{rz.hessian(energy)(point).to_dense().round(3)}")
print(rz.check(energy, np.array([0.3, 0.5, 2.0, 1.0])))

title("1. ln ∘ sin: the derivative is an object you can look at")
f = rz.ln @ rz.sin
print(rz.derive(f))
print(
    f"\nf'(1.0) as a map sends 1 to {rz.linearize(f, 1.0)[1](1.0):.6f};  cos 1 / sin 1 = {np.cos(1.0) / np.sin(1.0):.6f}"
)

title("2. ln x₀ + x₀·x₁ − sin x₁, rule by rule")
f = rz.ln @ x + x * y - rz.sin @ y
print(rz.explain(f, rz.R * rz.R))
print(f"\n∇f(2, 5) = {rz.grad(f)((2.0, 5.0))}")

title("   the same function in the paper's second, point-free version")
mul = rz.scalar_mul
g = rz.add @ rz.par(rz.add, -rz.sin) @ rz.fork(rz.fork(rz.ln @ x, mul), y)
print(g)
print(f"∇g(2, 5) = {rz.grad(g)((2.0, 5.0))}")

title("3. The Jacobi derivative of (x₀ + x₁, x₀·x₂) at (4, 0, −2)")
f = rz.fork(x + y, x * rz.proj(2))
L = rz.jacobian(f)((4.0, 0.0, -2.0))
print(L)
print(L.to_dense())

title("4. A layer of a neural network, tanh(W ⋆ v + b)")
m, n = 3, 4
W, b, v = rz.proj("W"), rz.proj("b"), rz.proj("v")
layer = rz.tanh ** rz.seg(m) @ (rz.matvec @ rz.fork(W, v) + b)
space = rz.direct_sum(W=rz.R ** (rz.seg(m) * rz.seg(n)), b=rz.R ** rz.seg(m), v=rz.R ** rz.seg(n))
print(rz.derive(layer, space))

title("5. Griewank's b·sin(aᵀx), n = m = 1,000,000: c · (b ⊗ a), never a matrix")
a, b = rng.normal(size=(2, 1_000_000)) / 1000
f = rz.right(rz.scalar_mul, b) @ rz.sin @ rz.left(rz.inner, a)
point = rng.normal(size=1_000_000)
start = time.perf_counter()
value, L = rz.linearize(f, point)
built = time.perf_counter()
image = L(point)
applied = time.perf_counter()
back = L.H(value)
print(L)
print(
    f"linearize {1e3 * (built - start):.1f} ms, apply {1e3 * (applied - built):.1f} ms, adjoint {1e3 * (time.perf_counter() - applied):.1f} ms"
)
print("the matrix would take 8,000 GB")

title("6. The k-layer network N_k = l ∘ g_k ∘ … ∘ g_1, its derivative and its adjoint")


def network(widths):
    """N_k on ℝ^m₀ ⊕ ℝ^(m₁×m₀) ⊕ ℝ^m₁ ⊕ … ⊕ ℝ^mₖ in the paper's point-free form: each layer passes the later parameters on."""
    k = len(widths) - 1
    spaces = [rz.R ** rz.seg(widths[0])]
    for i in range(1, k + 1):
        spaces += [rz.R ** (rz.seg(widths[i]) * rz.seg(widths[i - 1])), rz.R ** rz.seg(widths[i])]
    spaces.append(rz.R ** rz.seg(widths[k]))
    net = rz.id(rz.direct_sum(*spaces))
    for i in range(1, k + 1):
        rest = [rz.proj(j) for j in range(3, 2 * (k + 2 - i))]
        activation = rz.tanh ** rz.seg(widths[i])
        net = rz.fork(activation @ (rz.matvec @ rz.fork(rz.proj(1), rz.proj(0)) + rz.proj(2)), *rest) @ net
    return rz.inner @ rz.dup @ (rz.proj(0) - rz.proj(1)) @ net


net = network([4, 5, 3])
D = rz.derive(net)
print(D)
arguments = D.function.domain.random(rng)
loss, gradient = rz.value_and_grad(net)(arguments)
step, direction = 1e-6, D.function.domain.random(rng)
V = D.function.domain
ahead, behind = [net(V.add(arguments, V.scale(s * step, direction))) for s in (1.0, -1.0)]
numeric, exact = (ahead - behind) / (2 * step), V.inner(gradient, direction)
print(f"\nloss {loss:.6f};  ⟨∇N, d⟩ = {exact:.9f}, finite differences {numeric:.9f}")
assert abs(numeric - exact) <= 1e-6 * max(1.0, abs(exact)), "the gradient disagrees with finite differences"
print("the gradient agrees with finite differences ✓")

title("7. Implicit functions: where a chain in a field comes to rest, as a function of the field")


def rest(field):
    """The minimum of an energy; its derivative is that of ∇E = 0, with the tridiagonal Hessian of E."""
    return rz.argmin(lambda u: np.sum((u[1:] - u[:-1]) ** 2) + np.sum(np.cosh(u - field)), np.zeros(6))


sensitivity = rz.jacobian(rest)(np.arange(6.0)).to_dense()
print(f"at rest {rest(np.arange(6.0)).round(3)}, and its derivative in the field\n{sensitivity.round(3)}")
moved = [(rest(np.arange(6.0) + 1e-5 * e) - rest(np.arange(6.0) - 1e-5 * e)) / 2e-5 for e in np.eye(6)]
assert np.allclose(sensitivity, np.transpose(moved), atol=1e-8), "the derivative disagrees with finite differences"
