"""Every example of the paper, and the sizes its claims rest on. Indices count from 0 here: the paper's x₁ is x₀."""

import itertools
import math
import time
import tracemalloc

import numpy as np
import pytest

import riesz as rz
from riesz import R, direct_sum, relations, seg
from riesz.calculus.derive import affine_program, lower
from riesz.ops.number_domains import Counting
from riesz.spaces.formal_vectors import Formal, dense

RNG = np.random.default_rng(11)
x0, x1 = rz.proj(0), rz.proj(1)


def all_modes(f, V, v):
    """f'(v) as a LinearMap, four ways: affine and adjoint affine interpretation, over numbers and over symbols."""
    D = rz.derive(f, V)
    return [rz.linearize(f.at(V), v)[1], rz.linearize_adjoint(f.at(V), v)[1].H, D.derivative(v), D.adjoint(v).H]


def slope(f, V, v, direction, step=1e-6):
    """The directional derivative of a scalar function by central differences."""
    ahead, behind = [f(V.add(v, V.scale(t, direction))) for t in (step, -step)]
    return (ahead - behind) / (2 * step)


# -- Appendix A ----------------------------------------


def test_appendix_a_1_leibniz_derivative_of_the_square():
    """f(x) = x²: 8 at 4, 14 at 7."""
    for square in (rz.power(2), rz.id**2, rz.id * rz.id):
        for x, expected in [(4.0, 8.0), (7.0, 14.0)]:
            assert rz.grad(square)(x) == expected
            assert all(L(1.0) == expected for L in all_modes(square, R, x))


def test_appendix_a_2_jacobi_derivative():
    """f(x₀, x₁, x₂) = (x₀ + x₁, x₀·x₂) at (4, 0, −2)."""
    f = rz.fork(x0 + x1, x0 * rz.proj(2))
    expected = [[1.0, 1.0, 0.0], [-2.0, 0.0, 4.0]]
    for L in all_modes(f, R * R * R, (4.0, 0.0, -2.0)):
        assert L.to_dense().tolist() == expected
    for L in all_modes(f, R ** seg(3), np.array([4.0, 0.0, -2.0])):
        assert L.to_dense().tolist() == expected


def test_power_rule():
    """(_^k)'(x) = ((k·x^(k−1)) ·)."""
    for k in (-3, -1, 2, 3, 7, 0.5, 2.5):
        for x in (0.7, 1.0, 3.2):
            assert rz.grad(rz.power(k))(x) == pytest.approx(k * x ** (k - 1), rel=1e-14)
            assert rz.derive(rz.power(k)).derivative(x)(1.0) == pytest.approx(k * x ** (k - 1), rel=1e-14)


M, N = 4, 3
W, b, v = RNG.standard_normal((M, N)), RNG.standard_normal(M), RNG.standard_normal(N)
layer_at = rz.tanh ** seg(M) @ (rz.contract_left(W) + b)  # g_{W,b} : ℝ^n → ℝ^m
layer = rz.tanh ** seg(M) @ (rz.matvec @ rz.fork(x0, rz.proj(2)) + x1)  # g(W, b, v)
LAYER = direct_sum(R ** (seg(M) * seg(N)), R ** seg(M), R ** seg(N))


def test_example_a_1_layer():
    """g(W, b, v) = map h (W ⋆ v + b)."""
    assert np.allclose(layer_at(v), np.tanh(W @ v + b), rtol=1e-14)
    assert np.allclose(layer(W, b, v), np.tanh(W @ v + b), rtol=1e-14)


def test_example_a_3_layer_derivative():
    """g_{W,b}'(v) = Δ(map h' (W ⋆ v + b)) • (W ⋆) = zipWith (·) (1 − tanh²(W ⋆ v + b)) • (W ⋆)."""
    s = 1 - np.tanh(W @ v + b) ** 2
    zip_with = rz.left(rz.hadamard, s) @ rz.contract_left(W).at(R ** seg(N))
    delta = rz.block_diag([k * rz.id(R) for k in s])
    dv = RNG.standard_normal(N)
    for L in all_modes(layer_at, R ** seg(N), v):
        assert np.allclose(L.to_dense(), np.diag(s) @ W, rtol=1e-12)
        assert np.allclose(L.to_dense(), zip_with.as_map().to_dense(), rtol=1e-12)
        assert np.allclose(L(dv), s * (W @ dv), rtol=1e-12)
        assert np.allclose(L(dv), delta(tuple((W @ dv).tolist())), rtol=1e-12)


def test_example_a_3_layer_derivative_in_all_its_arguments():
    s = 1 - np.tanh(W @ v + b) ** 2
    dW, db, dv = RNG.standard_normal((M, N)), RNG.standard_normal(M), RNG.standard_normal(N)
    w = RNG.standard_normal(M)
    for L in all_modes(layer, LAYER, (W, b, v)):
        assert np.allclose(L(dW, db, dv), s * (dW @ v + db + W @ dv), rtol=1e-12)
        gW, gb, gv = L.H(w)
        assert np.allclose(gW, np.outer(s * w, v), rtol=1e-12) and np.allclose(gb, s * w, rtol=1e-12)
        assert np.allclose(gv, W.T @ (s * w), rtol=1e-12)


# -- Appendix B ----------------------------------------


def test_example_b_1_ln_sin():
    """h = ln ∘ sin, h'(x) = (1/sin x ·) • (cos x ·) = (cos x / sin x ·)."""
    h = rz.ln @ rz.sin
    for x in (0.5, 1.0, 2.0):
        assert h(x) == math.log(math.sin(x))
        chain = ((1 / math.sin(x)) * rz.id(R)) @ (math.cos(x) * rz.id(R))
        for L in all_modes(h, R, x):
            assert L(1.0) == pytest.approx(math.cos(x) / math.sin(x), rel=1e-14)
            assert L(1.0) == pytest.approx(chain(1.0), rel=1e-14)
    assert len(rz.derive(h).value) == 2


STANDARD = {  # ln x₀ + x₀·x₁ − sin x₁, in both versions of the paper
    "readable": rz.ln @ x0 + x0 * x1 - rz.sin @ x1,
    "unreadable": rz.add @ rz.par(rz.add, (-rz.id) @ rz.sin) @ rz.fork(rz.fork(rz.ln @ x0, rz.scalar_mul), x1),
}


@pytest.mark.parametrize("f", STANDARD.values(), ids=STANDARD)
def test_example_b_2_standard(f):
    """∂f/∂x₀ = 1/x₀ + x₁ and ∂f/∂x₁ = x₀ − cos x₁."""
    for a, c in [(2.0, 5.0), (0.3, -1.0)]:
        assert f((a, c)) == pytest.approx(math.log(a) + a * c - math.sin(c), rel=1e-14)
        expected = [1 / a + c, a - math.cos(c)]
        for L in all_modes(f, R * R, (a, c)):
            assert np.allclose(L.to_dense(), [expected], rtol=1e-14)
        assert rz.grad(f)((a, c)) == pytest.approx(tuple(expected), rel=1e-14)
        assert rz.grad(f, argnums=(0, 1))(a, c) == pytest.approx(tuple(expected), rel=1e-14)


def test_example_b_2_the_two_derivatives_as_the_paper_writes_them():
    a, c = 2.0, 5.0
    V, one = R * R, rz.id(R)
    readable = (1 / a * one) @ x0.at(V) + (a * one) @ x1.at(V) + (c * one) @ x0.at(V) - (math.cos(c) * one) @ x1.at(V)
    inside = rz.fork(rz.fork((1 / a * one) @ x0, rz.add @ rz.par(c * one, a * one)), x1)
    unreadable = rz.add @ rz.par(rz.add, (-one) @ (math.cos(c) * one)) @ inside
    expected = [[1 / a + c, a - math.cos(c)]]
    assert readable.linear and np.allclose(readable.as_map().to_dense(), expected)
    assert unreadable.at(V).linear and np.allclose(unreadable.at(V).as_map().to_dense(), expected)
    assert np.allclose(readable.H.as_map().to_dense().T, expected)


# -- §8: Griewank's b·sin(aᵀx) ----------------------------------------


def griewank(a, b):
    """(·b) ∘ sin ∘ (a ⊙) : ℝ^n → ℝ^m."""
    return rz.right(rz.scalar_mul, b) @ rz.sin @ rz.left(rz.inner, a)


@pytest.mark.parametrize(("n", "m"), [(5, 7), (100, 3), (3, 100), (1000, 1000)])
def test_griewank_takes_n_multiplications_to_build_and_n_plus_one_to_apply(n, m):
    a, b, x, dx, dy = [RNG.standard_normal(k) for k in (n, m, n, n, m)]
    f = griewank(a, b).at(R ** seg(n))
    building, applying, back = Counting(), Counting(), Counting()
    (y,), tape = affine_program(lower(f), [x], base=building)
    L = rz.LinearMap(f.domain, f.codomain, tape)
    assert building.multiplications == n and np.allclose(dense(y), b * np.sin(a @ x))
    (applied,) = L.apply([dx], applying)
    c = np.cos(a @ x)
    assert applying.multiplications == n + 1
    assert isinstance(applied, Formal) and applied.numbers == m  # d · b, with d = c·(a ⊙ dx) unevaluated
    assert np.allclose(dense(applied), c * (a @ dx) * b, rtol=1e-12)
    (pulled,) = L.H.apply([dy], back)
    assert back.multiplications == m + 1
    assert isinstance(pulled, Formal) and pulled.numbers == n
    assert np.allclose(dense(pulled), c * (b @ dy) * a, rtol=1e-12)
    if n * m <= 1000:
        assert np.allclose(L.to_dense(), c * np.outer(b, a), rtol=1e-12)


def test_griewank_written_pointwise():
    a, b, x = [RNG.standard_normal(k) for k in (5, 7, 5)]
    f = rz.const(b) * (rz.sin @ rz.left(rz.inner, a))
    for L in all_modes(f, R ** seg(5), x):
        assert np.allclose(L.to_dense(), np.cos(a @ x) * np.outer(b, a), rtol=1e-12)


def test_griewank_with_a_million_inputs_and_outputs():
    """Linearize, apply, apply the adjoint: a few vectors of memory, where the Jacobian would take 8·10¹² bytes."""
    n = 10**6
    a, b, x, dx = [RNG.standard_normal(n) for _ in range(4)]
    f = griewank(a, b).at(R ** seg(n))
    tracemalloc.start()
    y, L = rz.linearize(f, x)
    dy = L(dx)
    back = L.H(dy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    c = np.cos(a @ x)
    assert peak < 5 * x.nbytes
    assert np.allclose(dy, c * (a @ dx) * b, rtol=1e-10)
    assert np.allclose(back, c * (b @ dy) * a, rtol=1e-10) and np.allclose(y, np.sin(a @ x) * b, rtol=1e-10)


# -- §7: the k-layer network ----------------------------------------


def point_free_network(widths):
    """N_k = l ∘ g_k ∘ … ∘ g_1 in the paper's point-free form, where every layer propagates what later ones need."""
    k = len(widths) - 1
    spaces = [R ** seg(widths[0])]
    for before, after in itertools.pairwise(widths):
        spaces += [R ** (seg(after) * seg(before)), R ** seg(after)]
    whole = rz.id.at(direct_sum(*spaces, R ** seg(widths[-1])))
    for i in range(1, k + 1):
        n = 2 * (k + 2 - i)
        weigh = rz.matvec @ rz.fork(rz.proj(1), rz.proj(0)) + rz.proj(2)
        whole = rz.fork(rz.tanh ** seg(widths[i]) @ weigh, *[rz.proj(j) for j in range(3, n)]) @ whole
    loss = rz.inner @ rz.dup @ (x0 - x1)
    return loss @ whole


def backpropagation(point, k):
    """Loss and gradient by hand."""
    v, layers, target = point[0], [(point[1 + 2 * i], point[2 + 2 * i]) for i in range(k)], point[-1]
    held = []
    for weight, bias in layers:
        held.append(v)
        v = np.tanh(weight @ v + bias)
    cotangent = 2 * (v - target)
    gradient = [-cotangent]
    for (weight, _), before in zip(reversed(layers), reversed(held), strict=True):
        s = (1 - v**2) * cotangent
        gradient += [s, np.outer(s, before)]
        v, cotangent = before, weight.T @ s
    return (held[0], *layers), tuple(reversed([*gradient, cotangent]))


@pytest.mark.parametrize("widths", [(3, 2), (3, 4, 2), (2, 3, 1, 4, 2)])
def test_example_7_1_network_in_point_free_form(widths):
    k = len(widths) - 1
    f = point_free_network(widths)
    V = f.domain
    assert len(V.summands) == 2 * k + 2 and f.codomain is R
    point = V.random(RNG)
    _, expected = backpropagation(point, k)
    gradients = [rz.grad(f)(point), *[L.H(1.0) for L in all_modes(f, V, point)]]
    for gradient in gradients:
        assert len(gradient) == len(expected)
        assert all(np.allclose(g, e, rtol=1e-10, atol=1e-12) for g, e in zip(gradient, expected, strict=True))
    for seed in range(3):
        direction = V.random(seed)
        assert V.inner(gradients[0], direction) == pytest.approx(slope(f, V, point, direction), rel=1e-6, abs=1e-8)


def test_example_7_1_derivatives_of_layer_and_loss():
    """l'(v, y) = (((v−y)⊙) • π₁ + (⊙(v−y)) • π₀) • dup • (π₀ − π₁), and g_1' as the paper derives it."""
    V = R ** seg(3)
    loss = (rz.inner @ rz.dup @ (x0 - x1)).at(V * V)
    u, y = V.random(0), V.random(1)
    both = V * V
    product = rz.left(rz.inner, u - y) @ x1.at(both) + rz.right(rz.inner, u - y) @ x0.at(both)
    expected = product @ rz.dup @ (x0 - x1).at(both)
    for L in all_modes(loss, both, (u, y)):
        assert np.allclose(L.to_dense(), expected.as_map().to_dense(), rtol=1e-12)

    E = direct_sum(R ** seg(N), R ** (seg(M) * seg(N)), R ** seg(M), R ** seg(2))
    g = rz.fork(rz.tanh ** seg(M) @ (rz.matvec @ rz.fork(x1, x0) + rz.proj(2)), rz.proj(3))
    s = 1 - np.tanh(W @ v + b) ** 2
    pair_space = direct_sum(R ** (seg(M) * seg(N)), R ** seg(N))
    star = rz.left(rz.matvec, W) @ x1.at(pair_space) + rz.right(rz.matvec, v) @ x0.at(pair_space)
    weigh = star @ rz.fork(x1, x0).at(E) + rz.proj(2).at(E)
    expected = rz.fork(rz.left(rz.hadamard, s) @ weigh, rz.proj(3).at(E))
    for L in all_modes(g, E, (v, W, b, np.ones(2))):
        assert np.allclose(L.to_dense(), expected.as_map().to_dense(), rtol=1e-12)


def nested_network(k, m):
    """N_k on (x, ((W₁, b₁), ((W₂, b₂), … y))): a layer takes the head of the environment and hands on its tail, so terms stay linear in k."""
    vector, weight = R ** seg(m), R ** (seg(m) * seg(m))
    rest = vector
    for _ in range(k):
        rest = direct_sum(direct_sum(weight, vector), rest)
    head = x0 @ x1
    g = rz.fork(rz.tanh ** seg(m) @ (rz.matvec @ rz.fork(x0 @ head, x0) + x1 @ head), x1 @ x1)
    whole = rz.id.at(direct_sum(vector, rest))
    for _ in range(k):
        whole = g @ whole
    return rz.inner @ rz.dup @ (x0 - x1) @ whole


def test_example_7_1_network_of_2000_layers_has_linear_size():
    sizes = {}
    for k in (500, 1000, 2000):
        D = rz.derive(nested_network(k, 8))
        sizes[k] = np.array([len(D.value), len(D.derivative), len(D.adjoint)])
    assert (sizes[2000] <= 2.01 * sizes[1000]).all() and (sizes[1000] <= 2.01 * sizes[500]).all()
    assert (sizes[2000] <= 12 * 2000).all()


@pytest.mark.long
def test_example_7_1_gradient_of_2000_layers():
    """Against finite differences in directions through the first layer, the last layer and everything."""
    k, m = 2000, 8
    f = nested_network(k, m)
    V = f.domain
    rotations = [np.linalg.qr(RNG.standard_normal((m, m)))[0] for _ in range(k)]

    def environment(x, weight, bias, y):
        rest = y
        for i in reversed(range(k)):
            rest = ((weight(i), bias(i)), rest)
        return (x, rest)

    nothing, small = np.zeros((m, m)), 0.3 * RNG.standard_normal((k, m))
    point = environment(
        RNG.standard_normal(m), lambda i: 1.05 * rotations[i], lambda i: small[i], RNG.standard_normal(m)
    )
    value, gradient = rz.value_and_grad(f)(point)
    assert value > 0 and V.norm(gradient) > 0
    noise = RNG.standard_normal((m, m))
    directions = [
        environment(np.zeros(m), lambda i: noise if i == k - 1 else nothing, lambda i: np.zeros(m), np.ones(m)),
        environment(np.zeros(m), lambda i: noise if i >= k - 20 else nothing, lambda i: small[i], np.zeros(m)),
        V.scale(1e-2, V.random(1)),
    ]
    for direction in directions:
        assert V.inner(gradient, direction) == pytest.approx(slope(f, V, point, direction), rel=1e-6)


def test_nested_and_point_free_networks_agree():
    point = point_free_network((3, 3, 3)).domain.random(RNG)
    x, w1, b1, w2, b2, y = point
    flat, nested = (
        rz.grad(point_free_network((3, 3, 3)))(point),
        rz.grad(nested_network(2, 3))((x, ((w1, b1), ((w2, b2), y)))),
    )
    (gx, ((gw1, gb1), ((gw2, gb2), gy))) = nested
    assert all(np.allclose(a, c, rtol=1e-12) for a, c in zip(flat, (gx, gw1, gb1, gw2, gb2, gy), strict=True))


# -- functions of a user's own ----------------------------------------


def test_declared_bilinear_functions_follow_the_product_rule():
    """Convolution by its name and the adjoints of its sections: derivative, adjoint and gradient of a composition with it."""
    conv = rz.bilinear(
        np.convolve, lambda u, w: np.correlate(w, u, "valid"), lambda u, w: np.correlate(w, u, "valid"), name="conv"
    )
    U, V = R ** seg(3), R ** seg(5)
    u, v, du, dv = U.random(0), V.random(1), U.random(2), V.random(3)
    for L in all_modes(conv, direct_sum(U, V), (u, v)):
        assert np.allclose(L((du, dv)), np.convolve(u, dv) + np.convolve(du, v), rtol=1e-12)
        w = L.codomain.random(4)
        assert L.codomain.inner(L((du, dv)), w) == pytest.approx(L.domain.inner((du, dv), L.H(w)), rel=1e-12)
    energy = (rz.inner @ rz.dup @ rz.tanh ** seg(7) @ conv @ rz.par(rz.sin ** seg(3), rz.id)).at(direct_sum(U, V))
    gradient = rz.grad(energy)((u, v))
    assert energy.domain.inner(gradient, (du, dv)) == pytest.approx(
        slope(energy, energy.domain, (u, v), (du, dv)), rel=1e-7
    )


def test_declared_bilinear_functions_on_structured_spaces():
    """Complex multiplication on dicts."""
    C = direct_sum(re=R, im=R)

    def times(p, q):
        return {"re": p["re"] * q["re"] - p["im"] * q["im"], "im": p["re"] * q["im"] + p["im"] * q["re"]}

    def conjugate(p):
        return {"re": p["re"], "im": -p["im"]}

    def adjoint(p, w):
        return times(conjugate(p), w)

    product = rz.bilinear(times, adjoint, adjoint, spaces=(C, C), codomain=C, name="complex")
    square = product @ rz.dup.at(C)
    z = {"re": 1.5, "im": -0.5}
    for L in all_modes(square, C, z):
        assert np.allclose(L.to_dense(), [[2 * 1.5, 1.0], [-1.0, 2 * 1.5]], rtol=1e-14)


def test_declared_linear_functions_are_their_own_derivatives():
    flip = rz.linear(lambda v: v[::-1].copy(), lambda w: w[::-1].copy(), name="flip")
    V = R ** seg(4)
    for L in all_modes(flip, V, V.random(0)):
        assert np.array_equal(L.to_dense(), np.eye(4)[::-1])
    mixed = rz.sin ** seg(4) @ flip
    u = V.random(1)
    for L in all_modes(mixed, V, u):
        assert np.allclose(L.to_dense(), np.diag(np.cos(u[::-1])) @ np.eye(4)[::-1], rtol=1e-14)


# -- sharing and depth ----------------------------------------


def squarings(n):
    """n times y ↦ ((y + y)/2)², each with two uses of y and two of the half sum: 2^n paths (and more) to x; y = 1 at x = 1."""
    y = rz.id.at(R)
    for _ in range(n):
        half = 0.5 * (y + y)
        y = half * half
    return y


def test_sixty_nested_squarings_with_sharing():
    f = squarings(60)
    start = time.perf_counter()
    gradient = rz.grad(f)(1.0)
    spent = time.perf_counter() - start
    assert gradient == 2.0**60
    assert spent < 1.0  # milliseconds here; 2^60 paths would take centuries
    D, half = rz.derive(f), rz.derive(squarings(30))
    assert D.derivative(1.0)(1.0) == D.adjoint(1.0)(1.0) == 2.0**60
    for part in ("value", "derivative", "adjoint"):
        assert len(getattr(D, part)) <= 2 * len(getattr(half, part)) + 4
        assert len(getattr(D, part)) <= 8 * 60  # three steps of value and four of derivative a level
    assert rz.hessian(squarings(3))(1.0)(1.0) == pytest.approx(8 * 7)


def test_sixty_linear_forks_with_sharing():
    """⟨f, f⟩ sixty times summed: the adjoint visits a shared map once, where a tree would visit it 2^60 times."""
    f = rz.id.at(R)
    for _ in range(60):
        f = rz.add @ rz.fork(f, f)
    assert f.H(1.0) == f(1.0) == 2.0**60
    assert len(f.as_map()) <= 61 and len(f.as_map().H) <= 61
    assert rz.grad(f)(1.0) == 2.0**60


def chain(n):
    f = rz.sin
    for _ in range(n - 1):
        f = rz.sin @ f
    return f


@pytest.mark.long
def test_a_chain_of_100000_sines():
    """Derived, adjointed and evaluated without recursion; sizes grow linearly."""
    x, expected, y = 0.5, 1.0, 0.5
    for _ in range(100_000):
        expected, y = expected * math.cos(y), math.sin(y)
    small, large = rz.derive(chain(10_000)), rz.derive(chain(100_000))
    for part in ("value", "derivative", "adjoint"):
        assert len(getattr(large, part)) <= 10.01 * len(getattr(small, part))
        assert len(getattr(large, part)) <= 3 * 100_000
    assert large.value(x) == y == chain(100_000)(x)
    for L in (large.derivative(x), large.adjoint(x), *rz.linearize(chain(100_000), x)[1:]):
        assert L(1.0) == pytest.approx(expected, rel=1e-10)
    assert rz.grad(chain(100_000))(x) == pytest.approx(expected, rel=1e-10)
    assert rz.jvp(chain(100_000), (x,), (1.0,))[1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.long
def test_a_linear_chain_of_100000_maps():
    """Adjoint rules on a term 100,000 deep: rotations by a small angle, and their inverses."""
    n, angle = 100_000, 1e-4
    turn = rz.contract_left(np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])).at(
        R ** seg(2)
    )
    f = turn
    for _ in range(n - 1):
        f = turn @ f
    v = np.array([1.0, 0.0])
    assert np.allclose(f(v), [math.cos(n * angle), math.sin(n * angle)], atol=1e-9)
    assert np.allclose(f.H(f(v)), v, atol=1e-9)
    L = f.as_map()
    assert len(L.program) == len(L.H.program) == n and L.H.H is L
    assert np.allclose(L.H(L(v)), v, atol=1e-9)


def test_scans_of_gathers_at_depth():
    """Relational reductions in a long chain: permutations compose, and the adjoint runs them backwards."""
    image = np.array([2, 0, 1])
    cycle = rz.red(relations.function(seg(3), seg(3), image)).at(R ** seg(3))
    f = cycle
    for _ in range(2_999):
        f = cycle @ f
    v = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(f(v), v) and np.array_equal((cycle @ f)(v), cycle(v))
    assert np.array_equal(f.H(v), v) and np.array_equal(cycle.H(cycle(v)), v)
