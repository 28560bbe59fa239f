"""Linear maps inside traced functions: every operation, in every nesting, gives what it gives on numbers; traces never mix."""

import itertools
import random
import threading
from dataclasses import dataclass

import numpy as np
import pytest

import riesz as rz
from riesz.errors import LinearityError, SolveError, SpaceError, TraceError, VectorError

X = np.array([0.7, 1.2, -0.4])
W = np.array([1.0, -2.0, 0.5])
A = np.array([[2.0, 1.0, 0.5], [0.0, 1.0, -1.0], [0.3, 0.2, 1.5]])
V = rz.R ** rz.seg(3)
N = rz.jacobian(lambda y: A @ y + y * y[::-1])(np.array([0.3, 0.2, 0.1]))  # a map with numbers


def f(x):
    return np.sin(x) * np.sum(x) + x**3 + A @ x


def J(x):
    return rz.jacobian(f)(x)


def M(x):
    return rz.jacobian(lambda y: np.exp(y) * y[::-1] + 3 * y)(x)


def tall(x):
    return rz.jacobian(lambda y: np.concatenate([y * y, y[:2] * y[1:]]))(x)


def diagonal(x):
    return rz.jacobian(lambda y: y**3 + y)(x)


def H(x):
    return rz.hessian(lambda y: np.sum(y**3 * y[::-1]) + np.sum(np.exp(y)))(x)


D = rz.derive(f, V)

OPERATIONS = {
    "L(v)": lambda x: J(x)(x * W),
    "L(numbers)": lambda x: J(x)(W),
    "L @ v": lambda x: J(x) @ (x + 1),
    "v @ L": lambda x: (x * W) @ J(x),
    "numbers @ L": lambda x: W @ J(x),
    "N @ v": lambda x: N @ x,
    "v @ N": lambda x: x @ N,
    "N.T(v)": lambda x: N.T(x),
    "L + M": lambda x: (J(x) + M(x))(W),
    "L - M": lambda x: (J(x) - M(x)).to_dense(),
    "L + N": lambda x: (J(x) + N).to_dense(),
    "N - L": lambda x: (N - J(x)).T(W),
    "2 L": lambda x: (2 * J(x))(W),
    "L / 2": lambda x: (J(x) / 2)(W),
    "-L": lambda x: (-J(x))(W),
    "k L": lambda x: (x[0] * J(x))(W),
    "L k": lambda x: (J(x) * np.sum(x)).to_dense(),
    "L / k": lambda x: (J(x) / (x[1] + 3)).to_dense(),
    "k N": lambda x: (x[0] * N)(W),
    "N / k": lambda x: (N / x[0]).T(x),
    "a NumPy number times L": lambda x: (np.float64(2.0) * J(x))(W),
    "L @ M": lambda x: (J(x) @ M(x))(W),
    "L @ N": lambda x: (J(x) @ N)(W),
    "N @ L @ N": lambda x: (N @ J(x) @ N).H(W),
    "a combinator @ L": lambda x: (rz.proj(1) @ J(x))(W),
    "L + a term": lambda x: (J(x) + rz.id.at(V)).to_dense(),
    "gram": lambda x: J(x).gram().to_dense(),
    "gram of a tall map": lambda x: tall(x).gram()(W),
    "diagonal": lambda x: J(x).diagonal(),
    "diagonal of a diagonal": lambda x: diagonal(x).diagonal(),
    "diagonal of a gram": lambda x: tall(x).gram().diagonal(),
    "trace": lambda x: J(x).trace(),
    "solve": lambda x: J(x).solve(x),
    "solve a diagonal": lambda x: diagonal(x).solve(W),
    "solve in the least-squares sense": lambda x: tall(x).solve(np.arange(5.0)),
    "solve columns": lambda x: J(x).solve(np.outer(x, x)),
    "N.solve(v)": lambda x: N.solve(x),
    "N.T.solve(v)": lambda x: N.T.solve(x * x),
    "N.solve columns": lambda x: N.solve(np.outer(x, x)),
    "to_dense": lambda x: tall(x).to_dense(),
    "H": lambda x: J(x).H(W),
    "adjoint": lambda x: J(x).adjoint().to_dense(),
    "matvec": lambda x: tall(x).matvec(x),
    "rmatvec": lambda x: tall(x).rmatvec(np.arange(5.0)),
    "matmat": lambda x: tall(x).matmat(np.outer(x, x)),
    "rmatmat": lambda x: tall(x).rmatmat(np.ones((5, 2))),
    "N.matvec": lambda x: N.matvec(x),
    "N.rmatvec": lambda x: N.rmatvec(x),
    "N.matmat": lambda x: N.matmat(np.outer(x, x)),
    "L ** X": lambda x: (J(x) ** rz.seg(4))(np.arange(12.0).reshape(4, 3)),
    "N ** X": lambda x: (N ** rz.seg(2))(np.stack([x, x * x])),
    "submatrix": lambda x: J(x).submatrix([0, 2], slice(2)).to_dense(),
    "column_norms": lambda x: tall(x).column_norms(),
    "row_norms": lambda x: tall(x).row_norms(),
    "simplify": lambda x: tall(x).simplify()(W),
    "simplify a gram": lambda x: J(x).gram().simplify().to_dense(),
    "sum": lambda x: sum([J(x), M(x), N]).to_dense(),
    "hessian": lambda x: H(x).to_dense(),
    "hessian solve": lambda x: H(x).solve(x),
    "hessian @ jacobian": lambda x: (H(x) @ J(x)).H(W),
    "dual": lambda x: rz.dual(x)(W),
    "undual": lambda x: rz.undual(rz.jacobian(lambda y: np.sum(y**3))(x)),
    "linearize": lambda x: (rz.linearize(f, x)[1] @ M(x))(W),
    "linearize_adjoint": lambda x: rz.linearize_adjoint(f, x)[1](W),
    "derive": lambda x: D.derivative(x)(W) + D.value(x),
    "derive's adjoint": lambda x: D.adjoint(x).to_dense(),
    "of a combinator": lambda x: rz.jacobian(rz.sin ** rz.seg(3))(x)(W),
    "of trees": lambda x: _trees(x),
    "of numbers": lambda x: (
        rz.jacobian(lambda s: s**3 * x[0])(x[1])(x[2]) + (x[0] * rz.jacobian(np.sin)(x[1])).solve(2.0)
    ),
}


def _trees(x):
    given = {"a": x, "b": (x[0], x * x)}
    L = rz.jacobian(lambda p: {"u": p["a"] * p["b"][0], "v": [np.sum(p["b"][1] * p["a"])]})(given)
    G = L.gram() + 2.0 * L.H @ L + rz.id.at(L.domain)
    r, s = G({"b": (1.0, x), "a": x}), G.solve(given)
    return np.concatenate([r["a"], r["b"][1] * x, s["a"], s["b"][1]]) + r["b"][0]


def number(operation):
    """An operation as a function into ℝ that weighs each number it gives differently."""

    def F(x):
        r = operation(x)
        n = int(np.prod(np.shape(r)))
        return np.sum(np.reshape(r, (n,)) * np.cos(np.arange(n) + 1.0))

    return F


def differences(F, x, h=1e-6):
    return np.array([(F(x + h * e) - F(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_on_maps_works_in_a_trace(name):
    F = number(OPERATIONS[name])
    value, gradient = F(X), differences(F, X)
    close = {"rtol": 1e-5, "atol": 1e-6}
    assert np.isclose(rz.function(F)(X), value, rtol=1e-12)
    assert np.allclose(rz.grad(F)(X), gradient, **close)
    assert np.isclose(rz.jvp(F, (X,), (W,))[1], gradient @ W, **close)
    assert np.allclose(rz.vmap(F)(np.stack([X, X + 0.1])), [value, F(X + 0.1)], rtol=1e-12)
    assert np.allclose(rz.grad(lambda x: np.sum(rz.vmap(lambda s: s * F(x))(np.arange(3.0))))(X), 3 * gradient, **close)
    assert np.allclose(rz.grad(lambda x: rz.fori_loop(0, 2, lambda i, s: s + F(x), 0.0))(X), 2 * gradient, **close)
    assert np.allclose(rz.grad(lambda x: rz.cond(x[0] > 0, lambda: F(x), lambda: 0.0))(X), gradient, **close)
    assert np.allclose(rz.grad(lambda x: rz.checkpoint(lambda s: s * F(x))(2.0))(X), 2 * gradient, **close)
    assert np.isclose(rz.compile(F)(X), value, rtol=1e-10)


@pytest.mark.parametrize("name", ["L + M", "k L", "N @ L @ N", "gram", "solve", "diagonal", "L ** X", "column_norms"])
def test_second_derivatives_go_through_operations_on_maps(name):
    F = number(OPERATIONS[name])
    gradient = rz.grad(F)
    assert np.allclose(rz.hessian(F)(X)(W), differences(lambda x: gradient(x) @ W, X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_compiled_functions_may_work_with_maps(backend):
    pytest.importorskip(backend)
    for name in ("L + M", "k L", "N @ L @ N", "gram", "diagonal", "solve", "of trees"):
        F = OPERATIONS[name]
        assert np.allclose(rz.compile(F, backend=backend)(X), F(X), rtol=1e-10), name


# -- nesting ----------------------------------------------------------------------------------------------

NESTED = {
    "grad": lambda g, x: rz.grad(lambda y: np.sum(g(y)))(x),
    "jacobian": lambda g, x: rz.jacobian(g)(x) @ W,
    "map": lambda g, x: (rz.jacobian(g)(x) + 2.0 * rz.jacobian(g)(x).T @ rz.jacobian(lambda y: y * x)(x))(x),
    "hessian": lambda g, x: rz.hessian(lambda y: np.sum(g(y) * y))(x) @ W,
    "hvp": lambda g, x: rz.hvp(lambda y: np.sum(g(y) * y), (x,), (x * W,)),
    "jvp": lambda g, x: rz.jvp(g, (x,), (x * W,))[1],
    "vjp": lambda g, x: rz.vjp(g, x)[1](x * W)[0],
    "linearize": lambda g, x: rz.linearize(g, x)[1](x),
    "vmap": lambda g, x: np.sum(rz.vmap(g)(np.stack([x, 0.5 * x])), 0),
    "vmap of vectors": lambda g, x: rz.vmap(lambda v: np.sum(rz.jvp(g, (x,), (v,))[1]))(np.eye(3)),
    "loop": lambda g, x: rz.loop(lambda c, t: (0.1 * c + g(x) * t, c), x, np.array([0.5, 0.7]))[0],
    "fori_loop": lambda g, x: rz.fori_loop(0, 2, lambda i, c: 0.1 * g(c) + x, x),
    "cond": lambda g, x: rz.cond(x[0] > 0, g, lambda y: -y * x, x),
    "checkpoint": lambda g, x: rz.checkpoint(lambda s: s * g(x))(2.0),
    "function": lambda g, x: rz.function(g)(x),
}


def nested(names):
    """The transformations one inside the other; the innermost function uses the arguments of all of them."""

    def at(level, xs):
        if level < len(names):
            return NESTED[names[level]](lambda y: at(level + 1, (*xs, y)), xs[-1])
        s = xs[-1]
        r = np.sin(s) * s + A @ (s * s * s)
        for i, y in enumerate(xs[:-1]):
            r = r * np.cos(0.3 * y + i) + y * s[::-1]
        return r

    return lambda x: np.sum(at(0, (x,)) * W)


def agrees(names, compiled):
    F = nested(names)
    value, point = F(X), np.array([0.7, 0.4, -0.3])
    assert np.isclose(rz.function(F)(X), value, rtol=1e-9), names
    assert np.isclose(rz.vmap(F)(np.stack([point, X]))[1], value, rtol=1e-9), names
    slope = (F(point + 1e-6 * W) - F(point - 1e-6 * W)) / 2e-6
    assert np.isclose(rz.grad(F)(point) @ W, slope, rtol=1e-4, atol=1e-4), names
    if compiled:
        assert np.isclose(rz.compile(F)(X), value, rtol=1e-8), names


@pytest.mark.parametrize("outer", NESTED)
def test_two_transformations_nest_over_arrays_of_outer_functions(outer):
    for i, inner in enumerate(NESTED):
        agrees((outer, inner), i % 4 == 0)


def test_three_transformations_nest_over_arrays_of_outer_functions():
    every = list(itertools.product(NESTED, repeat=3))
    for names in random.Random(0).sample(every, 15):
        agrees(names, False)


def test_a_map_of_an_outer_function_meets_one_of_an_inner_function():
    def outer(x):
        L = rz.jacobian(lambda x: x**3)(x)
        return np.sum(rz.grad(lambda y: np.sum((rz.jacobian(lambda y: y**2)(y) @ L)(np.ones(2))))(2.0 * x))

    x = np.array([1.0, 2.0])
    assert rz.function(outer)(x) == 30.0  # Σ 2·3x²
    assert rz.grad(outer)(x).tolist() == [12.0, 24.0]


def test_hessian_products_of_an_outer_point_in_a_mapped_function():
    def f(x):
        return rz.vmap(lambda v: rz.hvp(lambda y: np.sum(y**3), (x,), (v,)))(np.eye(3))

    for g in (f, rz.function(f), rz.compile(f)):
        assert np.allclose(g(X), np.diag(6 * X))


# -- foreign traces ---------------------------------------------------------------------------------------


def kept_maps():
    kept = []

    def leaks(x):
        kept.extend([rz.jacobian(np.sin)(x), x * 2.0])
        return np.sum(x)

    rz.grad(leaks)(X)
    return kept


@pytest.mark.parametrize(
    "use",
    [
        lambda L, t: L(X),
        lambda L, t: L.to_dense(),
        lambda L, t: L.diagonal(),
        lambda L, t: L.solve(X),
        lambda L, t: (L + N)(X),
        lambda L, t: (N @ L)(X),
        lambda L, t: (t[0] * N)(X),
        lambda L, t: N(t),
        lambda L, t: N.solve(t),
        lambda L, t: rz.grad(lambda y: np.sum(L(y)))(X),
        lambda L, t: rz.grad(lambda y: np.sum((L @ rz.jacobian(np.cos)(y))(y)))(X),
        lambda L, t: rz.grad(lambda y: np.sum(rz.vmap(lambda s: s * L(y))(np.ones(2))))(X),
        lambda L, t: rz.function(lambda y: L)(X),
        lambda L, t: rz.grad(lambda y: np.sum(y * y))(t),
        lambda L, t: rz.jacobian(np.sin)(t),
        lambda L, t: rz.grad(rz.total @ (rz.power(3) ** rz.seg(3)))(t),
        lambda L, t: rz.vmap(lambda y: y * y)(t),
        lambda L, t: rz.jvp(np.sin, (X,), (t,)),
        lambda L, t: rz.vjp(np.sin, X)[1](t),
        lambda L, t: rz.hvp(lambda y: np.sum(y**3), (X,), (t,)),
        lambda L, t: rz.loop(lambda c, s: (c, c), t, np.ones(2)),
    ],
)
def test_what_outlived_its_trace_is_refused(use):
    with pytest.raises(TraceError, match="after its trace has ended"):
        use(*kept_maps())


def test_a_map_of_a_sibling_trace_is_refused():
    def siblings(x):
        box = []
        rz.grad(lambda y: box.append(rz.jacobian(np.sin)(y)) or np.sum(y))(x)
        return np.sum(rz.grad(lambda z: np.sum(box[0](z)))(x))

    with pytest.raises(TraceError, match="after its trace has ended"):
        rz.grad(siblings)(X)


def test_a_rule_that_uses_an_array_of_the_function_around_it_is_refused():
    def made(x):
        square = rz.custom_derivative(lambda y: y * y, lambda y: lambda dy: 2 * x * dy)
        return rz.jvp(square, (x,), (x,))[1]

    with pytest.raises(TraceError, match=r"uses a traced array of made.*pass the array as an argument"):
        rz.function(made)(X)
    assert np.allclose(made(X), 2 * X * X)


def test_an_array_of_another_thread_is_refused():
    said = []

    def run(x):
        try:
            rz.grad(lambda y: np.sum(y * x))(X)
        except TraceError as problem:
            said.append(str(problem))

    def f(x):
        other = threading.Thread(target=run, args=(x,))
        other.start()
        other.join()
        return np.sum(x)

    rz.grad(f)(X)
    assert len(said) == 1
    assert "another function that is being traced" in said[0]


def test_maps_keep_the_arrays_of_the_moment_they_were_made():
    def f(x):
        h = x * 1.0
        L, M = rz.jacobian(np.sin)(h), rz.jacobian(lambda u: u * h)(x)
        _, back = rz.vjp(lambda u: u * h, x)
        K = h[0] * L
        h += 5.0
        return np.sum(L(x)) + np.sum(M(x)) + np.sum(back(x)[0]) + np.sum(K(x))

    expected = np.sum(np.cos(X) * X) * (1 + X[0]) + 2 * np.sum(X * X)
    assert np.isclose(rz.function(f)(X), expected)


def test_an_array_changed_after_it_was_captured_is_captured_as_it_was():
    def f(x):
        h = [x * 1.0]

        def g(y):
            a = np.sum(h[0] * y)
            h[0] = h[0] + y
            return a + np.sum(h[0] * y)

        return rz.grad(g)(x)

    assert np.allclose(rz.function(f)(X), 4 * X)


def test_an_array_of_the_outer_function_is_not_changed_in_an_inner_one():
    def f(x):
        h = x * 1.0

        def g(y):
            nonlocal h
            h += y
            return np.sum(h * y)

        return rz.grad(g)(x)

    with pytest.raises(rz.TraceError, match="return the new array instead"):
        rz.function(f)(X)


# -- what they are ----------------------------------------------------------------------------------------


def inside(look):
    """What is seen of maps while a function is traced."""
    seen = []
    rz.function(lambda x: seen.append(look(x)) or np.sum(x))(X)
    return seen[0]


def test_maps_at_traced_points_are_linear_maps_and_tell_their_structure():
    functions = [
        lambda w: np.tanh(A @ w),
        lambda x: x - np.mean(x),
        lambda x: x[1:] * x[:-1],
        lambda x: np.cumsum(x * x),
        f,
    ]
    for g in functions:
        L = rz.jacobian(g)(X)
        assert inside(lambda x, g=g: isinstance(rz.jacobian(g)(x), rz.LinearMap))
        assert inside(lambda x, g=g: rz.jacobian(g)(x).shape) == L.shape
        assert inside(lambda x, g=g: str(rz.jacobian(g)(x).structure)) == str(L.structure)
        assert inside(lambda x, g=g: repr(rz.jacobian(g)(x).simplify())) == repr(L.simplify())
        assert inside(lambda x, g=g: rz.jacobian(g)(x).simplify().latex()) == L.simplify().latex()
    assert inside(lambda x: repr(rz.jacobian(lambda y: y**3)(x))) == "Δ((3 · y²) ·)"
    assert inside(lambda x: rz.hessian(lambda y: np.sum(y**3))(x).facts) == {"symmetric"}


def test_what_needs_numbers_says_what_works_instead():
    for name in ("to_sparse", "sparsity", "blocks", "solver", "plan", "cost", "spy", "as_operator"):
        with pytest.raises(TraceError, match=rf"L\.{name}\(\) needs the numbers .* L\.to_dense\(\).* in <lambda>"):
            inside(lambda x, name=name: getattr(J(x), name)())


def test_mistakes_with_maps_in_a_trace_are_named_as_with_numbers():
    for error, use in [
        (SpaceError, lambda x: J(x) @ rz.jacobian(np.sum)(x)),
        (SpaceError, lambda x: J(x) + rz.jacobian(np.sum)(x)),
        (LinearityError, lambda x: J(x) + x),
        (LinearityError, lambda x: J(x) * J(x)),
        (SpaceError, lambda x: x * J(x)),
        (VectorError, lambda x: J(x)(x[:2])),
        (SpaceError, lambda x: tall(x).diagonal()),
        (SpaceError, lambda x: J(x) ** 3),
    ]:
        with pytest.raises(error):
            inside(use)


def test_vectors_with_names_go_by_name_not_by_order():
    L = rz.jacobian(lambda p: 2 * p["a"] + 3 * p["b"])({"a": X, "b": X})
    assert np.allclose(rz.function(lambda x: L({"b": x, "a": 0 * x}))(X), 3 * X)
    term = rz.derive(lambda p: 2 * p["a"] + 3 * p["b"], L.domain).function
    assert np.allclose(rz.function(lambda x: term({"b": x, "a": 0 * x}))(X), 3 * X)
    with pytest.raises(VectorError, match="expected a dict with a, b"):
        rz.function(lambda x: L({"c": x, "a": x}))(X)


def test_vectors_in_containers_of_ones_own():
    @dataclass
    class Pair:
        a: object
        b: object

    L = rz.jacobian(lambda p: p.a * p.b)(Pair(X, X + 1))
    assert np.allclose(rz.function(lambda x: L(Pair(x, x * x)))(X), L(Pair(X, X * X)))
    assert np.allclose(rz.function(lambda x: L.H(x).a)(X), L.H(X).a)


def test_adjoints_in_a_trace_follow_the_inner_products():
    weighted = V.weighted(np.array([1.0, 2.0, 3.0]))

    def F(x):
        L = rz.jacobian(lambda y: np.sin(y) * y[::-1], space=weighted)(x)
        return np.sum((L.H + 2.0 * L.H)(W) * x) + np.sum(
            rz.grad((rz.total @ (rz.power(3) ** rz.seg(3))).at(weighted))(x)
        )

    assert np.isclose(rz.function(F)(X), F(X))
    assert np.allclose(rz.grad(F)(X), differences(F, X), rtol=1e-6)


def test_float32_stays_float32():
    def F(x):
        L = rz.jacobian(lambda y: y**3)(x)
        return L(x), (2.0 * L @ L)(x), L.to_dense(), L.gram().diagonal(), L.solve(x), (x[0] * L)(x), L(np.ones(3))

    x = X.astype(np.float32)
    kinds = [r.dtype for r in rz.function(F)(x)]
    assert kinds == [np.float32] * 6 + [np.float64]


def test_maps_on_nothing():
    def F(x):
        L = rz.jacobian(lambda y: y[:0])(x)
        return L.to_dense(), L.H(np.zeros(0)), L(x), L.column_norms(), L.gram().diagonal()

    assert [r.shape for r in rz.function(F)(X)] == [(0, 3), (3,), (0,), (3,), (3,)]


def test_maps_with_positions_computed_from_the_point():
    def F(x):
        L = rz.jacobian(lambda y: np.sort(y) * y)(x)
        return np.sum((L + L.T).to_dense() * A) + np.sum(L.gram().diagonal()) + np.sum(L.simplify()(W))

    assert np.isclose(rz.function(F)(X), F(X))
    assert np.allclose(rz.grad(F)(X), differences(F, X), rtol=1e-5)


# -- combinators, and derivations ---------------------------------------------------------------------------

COMBINATOR = rz.ln @ rz.proj(0) + rz.proj(0) * rz.proj(1) * rz.proj(0) - rz.sin @ rz.proj(1)
TRANSFORMED = {
    "grad": lambda f: rz.grad(f),
    "value_and_grad": lambda f: lambda p: rz.value_and_grad(f)(p),
    "jacobian": lambda f: lambda p: rz.jacobian(f)(p)((0.3, -0.7)),
    "hessian": lambda f: lambda p: rz.hessian(f)(p)((0.3, -0.7)),
    "jvp": lambda f: lambda p: rz.jvp(f, (p,), ((0.3, -0.7),)),
    "vjp": lambda f: lambda p: (lambda found: found[0] if len(found) == 1 else found)(rz.vjp(f, p)[1](1.0)),
    "hvp": lambda f: lambda p: rz.hvp(f, (p,), ((0.3, -0.7),)),
    "linearize": lambda f: lambda p: rz.linearize(f, p)[1]((0.3, -0.7)),
    "derive": lambda f: lambda p: rz.derive(f, rz.R * rz.R).adjoint(p)(1.0),
    "function": lambda f: lambda p: rz.function(f)(p),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_what_is_made_of_a_combinator_is_differentiated_as_that_of_a_function(name):
    point, space = (2.0, 5.0), rz.R * rz.R
    ours = TRANSFORMED[name](COMBINATOR)
    same = TRANSFORMED[name](lambda p: np.log(p[0]) + p[0] * p[1] * p[0] - np.sin(p[1]))
    expected = rz.jacobian(same)(point).to_dense()
    assert np.allclose(rz.jacobian(ours)(point).to_dense(), expected)
    assert np.allclose(rz.derive(ours, space).derivative(point).to_dense(), expected)
    assert np.allclose(rz.function(lambda p: rz.jacobian(ours)(p))(point), expected)
    twice = rz.jacobian(lambda p: rz.jacobian(ours)(p).to_dense())(point).to_dense()
    assert np.allclose(twice, rz.jacobian(lambda p: rz.jacobian(same)(p).to_dense())(point).to_dense())


def test_the_derivation_of_a_combinators_gradient():
    g = rz.grad(rz.proj(0) * rz.proj(1))
    assert rz.jacobian(g)((2.0, 3.0)).to_dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert rz.derive(g, rz.R * rz.R).derivative((2.0, 3.0)).to_dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_combinators_take_their_arguments_in_a_trace_as_outside():
    for argnums in (None, 0, 1, (0, 1)):
        g = rz.grad(COMBINATOR, argnums)
        assert np.allclose(rz.function(lambda a, b, g=g: g(a, b))(2.0, 5.0), g(2.0, 5.0))
        assert np.allclose(rz.function(lambda a, g=g: g(a, 5.0))(2.0), g(2.0, 5.0))


RELATION = np.array([2, 0, 1, 5, 5, 3])
DERIVED = {
    "a layer": (lambda w: np.tanh(MATRIX @ w), (rz.R ** rz.seg(4),)),
    "diagonal": (lambda x: x**2 * np.sin(x), (rz.R ** rz.seg(6),)),
    "rank one": (lambda x: x - np.mean(x), (rz.R ** rz.seg(6),)),
    "banded": (lambda x: x[1:] * x[:-1], (rz.R ** rz.seg(6),)),
    "gather": (lambda x: x[RELATION] * 2, (rz.R ** rz.seg(6),)),
    "two arguments": (lambda x, z: np.outer(x, z) @ z, (rz.R ** rz.seg(6), rz.R ** rz.seg(6))),
    "a loop": (lambda x: rz.fori_loop(0, 3, lambda i, y: y * x, x), (rz.R ** rz.seg(6),)),
    "a choice": (lambda x: np.where(x > 0, x * x, 3 * x), (rz.R ** rz.seg(6),)),
    "sorted": (lambda x: np.sort(x) * 2, (rz.R ** rz.seg(6),)),
    "trees": (lambda p: {"u": p["a"] * p["b"], "v": p["a"]}, (rz.space_of({"a": np.ones(3), "b": np.ones(3)}),)),
    "weighted": (lambda x: x[1:] * x[:-1], ((rz.R ** rz.seg(6)).weighted(np.arange(1.0, 7.0)),)),
}
MATRIX = np.random.default_rng(0).normal(size=(9, 4))


def chosen_solver(L):
    try:
        return L.solver().name
    except SolveError as problem:
        return str(problem)


@pytest.mark.parametrize("name", DERIVED)
def test_the_maps_of_a_derivation_have_the_structure_of_those_of_jacobian(name):
    g, spaces = DERIVED[name]
    rng = np.random.default_rng(1)
    point = [s.unflatten(rng.normal(size=s.dim)) for s in spaces]
    derivation = rz.derive(g, *spaces)
    chosen = (
        {"space": spaces[0]}
        if not spaces[0].plain
        else {"argnums": tuple(range(len(spaces)))}
        if len(spaces) > 1
        else {}
    )
    for ours, theirs in [
        (derivation.derivative(*point), rz.jacobian(g, **chosen)(*point)),
        (derivation(*point)[1], rz.jacobian(g, **chosen)(*point)),
        (derivation.adjoint(*point), rz.jacobian(g, **chosen)(*point).H),
    ]:
        assert (ours.domain, ours.codomain) == (theirs.domain, theirs.codomain)
        assert repr(ours.structure) == repr(theirs.structure)
        assert repr(ours.simplify()) == repr(theirs.simplify())
        assert [label for label, _ in ours.names] == [label for label, _ in theirs.names]
        a, b = ours.to_sparse(), theirs.to_sparse()
        assert np.array_equal(a.indices, b.indices)
        assert np.array_equal(a.indptr, b.indptr)
        assert np.allclose(a.toarray(), b.toarray())
        assert chosen_solver(ours) == chosen_solver(theirs)
    assert np.allclose(derivation.adjoint(*point).H.to_dense(), derivation.derivative(*point).to_dense())


def test_the_maps_of_a_combinators_derivation_have_the_structure_of_those_of_jacobian():
    t = rz.sin ** rz.seg(4)
    x = np.arange(4.0)
    ours, theirs = rz.derive(t).derivative(x), rz.jacobian(t)(x)
    assert repr(ours.structure) == repr(theirs.structure) == "diagonal"
    assert repr(ours.simplify()) == repr(theirs.simplify())
    assert ours.solver().name == theirs.solver().name


def test_maps_with_loops_inside_are_solved_with():
    L = rz.jacobian(lambda x: rz.fori_loop(0, 3, lambda i, y: y * x, x))(np.array([1.0, 2.0]))
    assert np.allclose(L.solve(np.array([4.0, 32.0])), [1.0, 1.0])


def test_long_sums_and_compositions_of_maps_are_written_at_once():
    def F(x):
        maps = [rz.jacobian(lambda y: y**2)(x + i) for i in range(1200)]
        total = sum(maps) - (maps[0] - (maps[1] - maps[2]))
        chain = maps[0] * 0.1
        for _ in range(1200):
            chain = chain @ (maps[0] * 0.5)
        return total(W) + 2.0 * chain(W)

    x = np.ones(3)
    expected = W * (2 * np.sum(1.0 + np.arange(1200)) - 2 + (4 - 6) + 0.4)
    assert np.allclose(F(x), expected)
    assert np.allclose(rz.function(F)(x), expected)


def test_a_map_added_to_itself():
    for L in (J(X), H(X), tall(X)):
        for k, M in ((2, L + L), (1, L - (L - L)), (3, 2 * L + (L - (L - L))), (2, L + L + L - L)):
            assert np.allclose(M.to_dense(), k * L.to_dense())
            assert np.allclose(M(W), k * L(W))
    assert repr((diagonal(X) + diagonal(X)).structure) == "diagonal"
    assert inside(lambda x: repr((diagonal(x) + diagonal(x)).simplify())) == repr(
        (lambda L: (L + L).simplify())(diagonal(X))
    )
