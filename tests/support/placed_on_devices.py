"""Run by tests/backends/test_placed_functions.py in a process of its own, with eight devices: workloads whose
communication is known, and random programs with random placements."""

import re
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import riesz as rz

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from fuzz.libraries import PLAIN, leaves
from fuzz.programs import random_program, shown

jax.config.update("jax_enable_x64", True)
KIND, WHAT = AxisType[sys.argv[1]], sys.argv[2]
line, square = [jax.make_mesh(s, a, axis_types=(KIND,) * len(s)) for s, a in [((8,), ("d",)), ((4, 2), ("d", "m"))]]
cube = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(KIND,) * 3)
rng = np.random.default_rng(0)
SIZES = {"f64": 8, "s64": 8, "f32": 4, "s32": 4, "u32": 4, "pred": 1}


def moved(function, *args):
    """Bytes that come to each device, by kind of communication, in the code that XLA made."""
    found = {}
    for row in jax.jit(function).lower(*args).compile().as_text().splitlines():
        m = re.search(r"= (.*?) (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(", row)
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", m.group(1)) if m else []:
            size = SIZES[kind] * int(np.prod([int(k) for k in shape.split(",") if k]))
            found[m.group(2)] = found.get(m.group(2), 0) + size
    return found


def close(found, wanted):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype or a.dtype.kind != "f", (a.dtype, b.dtype)
        rounding = 1e-4 if a.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(a, b, rtol=rounding, atol=rounding)


def checked(f, args, place, most, mesh=line):
    """Equal to one device; XLA's code moves what explain() says, no more than `most` bytes, by sums alone."""
    g = rz.compile(f, *args, mesh=mesh, place=place)
    if KIND is AxisType.Explicit:
        jax.set_mesh(mesh)
    found = g(*args)
    close(found, f(*args))
    tree = jax.tree.structure(args)
    there = [jax.device_put(x, s) for x, s in zip(jax.tree.leaves(args), g.shardings, strict=True)]
    by_kind = moved(lambda *xs: g(*jax.tree.unflatten(tree, xs)), *there)
    assert sum(by_kind.values()) == g.cost.moved <= most, (by_kind, g.explain())
    assert not by_kind.keys() & {"all-gather", "all-to-all"}, by_kind
    assert f"{g.cost.moved:,} bytes come to each device" in g.explain() or not g.cost.moved
    return g, found


def loss(w, X, y):
    return np.sum(np.log1p(np.exp(X @ w)) - y * (X @ w))


def mixture(weights, means, scales, X):
    squares = np.sum(((X[:, None, :] - means) * np.exp(scales)) ** 2, -1)
    s = weights - 0.5 * squares + np.sum(scales, -1)
    top = np.max(s, 1, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(s - top), 1)) + top[:, 0])


def network(layers, X, Y):
    for W, b in layers[:-1]:
        X = np.tanh(X @ W + b)
    W, b = layers[-1]
    return np.mean((X @ W + b - Y) ** 2)


def attention(Q, K, V, Out, x):
    heads, width = 4, Q.shape[1] // 4
    q, k, v = [(x @ W).reshape(*x.shape[:2], heads, width) for W in (Q, K, V)]
    s = np.einsum("bthe,bshe->bhts", q, k) / np.sqrt(width)
    a = np.exp(s - np.max(s, -1, keepdims=True))
    a = a / np.sum(a, -1, keepdims=True)
    return np.sum(np.sin(np.einsum("bhts,bshe->bthe", a, v).reshape(x.shape) @ Out))


def products():
    n, d, k, h = 800, 8, 16, 24
    X, y, w = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)
    many = {rz.seg(n): "d"}
    checked(rz.grad(loss), (w, X, y), many, 8 * d)
    checked(lambda w, v, X, y: rz.hvp(lambda w: loss(w, X, y))(w, v), (w, y[:d], X, y), many, 8 * d)
    means, scales = rng.normal(size=(k, d)), 0.1 * rng.normal(size=(k, d))
    gradient = rz.grad(mixture, argnums=(0, 1, 2))
    checked(gradient, (rng.normal(size=k), means, scales, X), many, 8 * (k + 2 * k * d))
    layers = [(rng.normal(size=(d, h)), np.zeros(h)), (rng.normal(size=(h, d)), np.zeros(d))]
    Y, count = rng.normal(size=(n, d)), 2 * d * h + h + d
    checked(rz.grad(network), (layers, X, Y), many, 8 * count)
    checked(rz.grad(network), (layers, X, Y), {rz.seg(h): "d"}, 8 * n * d)
    both = {rz.seg(n): "d", rz.seg(h): "m"}
    _, slopes = checked(rz.grad(network), (layers, X, Y), both, 8 * (n // 4 * d + d + (count - d) // 2), square)
    assert spec(slopes[0][0]) == (None, "m") and spec(slopes[1][0])[:1] == ("m",)
    Ws, x, e = [0.2 * rng.normal(size=(32, 32)) for _ in range(4)], rng.normal(size=(8, 6, 32)), (None, "m")
    gradient = rz.grad(attention, argnums=(0, 1, 2, 3))
    checked(gradient, (*Ws, x), {"x": "d"}, 8 * 4 * 32 * 32)
    heads = {"Q": e, "K": e, "V": e, "Out": "m", "x": PartitionSpec("d")}
    checked(gradient, (*Ws, x), heads, 8 * (2 * 6 * 32 + 4 * 32 * 16), square)


def along_axes():
    n, d = 800, 8
    u, many = rng.normal(size=n), {rz.seg(n): "d"}
    checked(rz.grad(loss), (u[:d], rng.normal(size=(n, d)), u), many, 8 * d)
    checked(rz.grad(lambda u: np.sum((u[1:] - u[:-1]) ** 2 * u[1:])), (u,), many, 8 * 4)
    checked(rz.grad(lambda u: np.sum((u[2:] - 2 * u[1:-1] + u[:-2]) ** 2)), (u,), many, 8 * 4)
    U = rng.normal(size=(40, 6))
    checked(rz.grad(lambda U: np.sum(np.sin(U[3:] - 2 * U[:-3] * U[1:-2]))), (U,), {rz.seg(40): "d"}, 8 * 6 * (3 + 9))
    back = rz.red(rz.relations.triangular(rz.seg(n)).converse)
    checked(lambda u: back(u) + np.cumsum(np.sin(u)), (u,), many, 8 * 2 * 4)
    checked(rz.grad(lambda u: np.sum(np.cumsum(u) ** 2)), (u,), many, 8 * 8)
    g, _ = checked(lambda u: 2 * u - np.roll(u, 1) - np.roll(u, -1), (u,), many, 8 * 6)
    assert spec(g(u)) == ("d",)
    ends = (np.arange(n)[:, None] + np.array([-2, -1, 1, 2])).clip(0, n - 1)
    R = rz.relation(rz.seg(n), rz.seg(n), np.stack([ends.ravel(), np.repeat(np.arange(n), 4)], 1))
    checked(rz.grad(lambda v: np.sum(np.sin(rz.red(R)(v)) ** 2)), (rng.normal(size=(n, 3)),), many, 2 * 4 * 3 * 8)
    total, A, B = rz.red(R), 0.3 * rng.normal(size=(3, 3)), 0.3 * rng.normal(size=(3, 3))

    def two_rounds(A, B, v):
        return np.sum(np.tanh(total(np.tanh(total(v) @ A)) @ B) ** 2)

    rows = 2 * 2 * 3 * 8  # two on each side, each of three numbers
    checked(rz.grad(two_rounds, argnums=(0, 1)), (A, B, rng.normal(size=(n, 3))), many, 3 * rows + 2 * 9 * 8)
    camera, point = rng.integers(0, 5, 4 * n), np.repeat(np.arange(n), 4)

    def projected(cameras, points, seen):
        return np.sum((np.sum(cameras[camera] * points[point], 1) / (3.0 + points[point, 0] ** 2) - seen) ** 2)

    given = rng.normal(size=(5, 3)), rng.normal(size=(n, 3)), rng.normal(size=4 * n)
    seen = {rz.seg(n): "d", rz.seg(4 * n): "d"}
    checked(rz.grad(projected, argnums=(0, 1)), given, seen, 5 * 3 * 8)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sort = rz.compile(np.sort, u, mesh=line, place=many)
    assert "sort needs it whole: 6,400 bytes come to each device along d" in str(said[0].message), said
    close(sort(u), np.sort(u))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rz.compile(lambda u: u[2:] - u[:-2], u, mesh=line, place=many)
    assert "a result of shape (798,), which devices do not divide, needs it whole: 6,384" in str(said[0].message), said


def spec(x):
    return tuple(x.sharding.spec)


def maps():
    if KIND is AxisType.Explicit:
        jax.set_mesh(line)
    n, d = 400, 8
    X, y, w, u = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d), rng.normal(size=n)
    many, v, cut = {rz.seg(n): "d"}, w + 1, NamedSharding(line, PartitionSpec("d"))

    def residual(w, X, y):
        return np.tanh(X @ w) - y

    J, one = rz.compile(rz.jacobian(residual), w, X, y, mesh=line, place=many)(w, X, y), rz.jacobian(residual)(w, X, y)
    H, other = rz.compile(rz.hessian(loss), w, X, y, mesh=line, place=many)(w, X, y), rz.hessian(loss)(w, X, y)
    for found, wanted in [
        (J(v), one(v)),
        (J.T(u), one.T(u)),
        (J.to_dense(), one.to_dense()),
        (J.gram().to_dense(), one.gram().to_dense()),
        (H(v), other(v)),
        (H.to_dense(), other.to_dense()),
        (H.diagonal(), other.diagonal()),
        (jax.jit(lambda v: J.T(J(v)))(v), one.T(one(v))),
    ]:
        close(found, wanted)
    assert spec(J(v)) == ("d",) and spec(J.to_dense())[:1] == ("d",)
    assert (
        moved(lambda v: J.gram()(v), jnp.asarray(v)) == moved(lambda v: H(v), jnp.asarray(v)) == {"all-reduce": 8 * d}
    )

    normal, b = J.gram(), one.T(u)
    wanted = np.linalg.solve(one.gram().to_dense(), b)
    close((normal.solve(b, method="cg"), J.solve(u, method="lsmr"), normal.solve(b)), (wanted,) * 3)
    close(jax.jit(lambda b: normal.solve(b, method="cg"))(b), wanted)
    assert moved(lambda b: normal.solve(b, method="cg"), jnp.asarray(b)) == {"all-reduce": 8 * d}  # in one iteration
    close(J.to_jax()(w), one(w))
    assert spec(J.to_jax()(w)) == ("d",)

    def energy(x):
        return np.sum(np.sin(x) ** 2)

    D, alone = rz.compile(rz.hessian(energy), u, mesh=line, place=many)(u), rz.hessian(energy)(u)
    there = jax.device_put(u, cut)
    assert moved(lambda v: D(v), there) == {} and spec(D(there)) == ("d",) == spec(D.diagonal())
    close((D(there), D.diagonal(), D.solve(there)), (alone(u), alone.diagonal(), alone.solve(u)))

    M = rng.normal(size=(d, d))

    def apart(X):
        return np.sum(np.log(np.sum(np.exp(X @ M), 1)) + np.sum(X**2, 1))

    B, alone = rz.compile(rz.hessian(apart), X, mesh=line, place=many)(X), rz.hessian(apart)(X)
    solution = B.solve(2.0 * X)  # blocks of X's rows, each where its row is
    close(solution, alone.solve(2.0 * X))
    assert spec(solution)[:1] == ("d",), solution.sharding
    Z = X[:40]  # blocks of two rows are not those of devices

    def by_two(Z):
        return np.sum(np.log(np.sum(np.exp(Z.reshape(-1, 16)), 1))) + np.sum(Z**2)

    K = rz.compile(rz.hessian(by_two), Z, mesh=line, place={rz.seg(40): "d"})(Z)
    few = rz.hessian(by_two)(Z)
    close((K.solve(Z), K.logdet(), K.eigvalsh()), (few.solve(Z), few.logdet(), few.eigvalsh()))
    close((J.lstsq(u), J.pinv()(u)), (one.lstsq(u), one.pinv()(u)))

    g = rz.compile(rz.grad(loss), w, X, y, mesh=line, place=many)
    close(jax.jit(lambda w, v: jax.jvp(lambda w: g(w, X, y), (w,), (v,))[1])(w, v), other(v))
    rows = rz.compile(residual, w, X, y, mesh=line, place=many)
    close(jax.jit(lambda w, u: jax.vjp(lambda w: rows(w, X, y), w)[1](u)[0])(w, u), one.T(u))
    if KIND is AxisType.Explicit:  # arrays say where they are: no placement is given
        plain = rz.compile(residual, w, X, y, backend="jax")
        put = [jax.device_put(x, NamedSharding(line, PartitionSpec(*p))) for x, p in [(w, ()), (X, "d"), (y, "d")]]
        close((plain(*put), jax.jit(lambda *xs: 2 * plain(*xs))(*put)), (residual(w, X, y), 2 * residual(w, X, y)))
        assert spec(plain(*put)) == ("d",)


def random_programs(count):
    said, placed = 0, 0
    for k in range(count):
        program = random_program(17, k)
        f, args, place = program.function(PLAIN), list(program.args.values()), {}
        for i, x in enumerate(args):
            names = [str(s) for s in rng.permutation(["a", "b", "c"])] if isinstance(x, np.ndarray) else []
            axes = [
                names.pop() if n % 2 == 0 and names and rng.random() < 0.7 else None for n in getattr(x, "shape", ())
            ]
            if any(axes):
                place[i] = tuple(axes)
        one = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
        f = rz.grad(lambda *xs, f=f: sum([np.sum(np.sin(y)) for y in leaves(f(*xs))])) if k % 2 else f
        try:
            wanted = rz.compile(f, backend="jax")(*one)
        except rz.RieszError:  # it has no form in JAX
            continue
        if place:
            g = rz.compile(f, mesh=cube, place=place)
            try:
                close(g(*args), wanted)
            except Exception as problem:
                raise AssertionError(f"program {k} placed {place}:\n{shown(program)}") from problem
            placed, said = placed + 1, said + bool(g.cost.moved)
    assert placed > count // 3 and said > count // 6, (placed, said)


warnings.simplefilter("ignore")
match WHAT:
    case "products":
        products()
    case "axes":
        along_axes()
    case "maps":
        maps()
    case _:
        random_programs(int(WHAT))
