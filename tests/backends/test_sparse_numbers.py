"""rz.sparse_jacobian and rz.sparse_hessian: patterns for all points, numbers without matrices, and who uses them."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import riesz as rz
from riesz.errors import SpaceError
from riesz.runtime import tuning

rng = np.random.default_rng(0)


def chain(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rotated(s):
    """A step function of ten lines, pointwise along the first axis."""
    x, v, a, w = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
    den = 1.0 + 0.3 * np.sin(a) ** 2
    return np.stack([v, (x + 0.3 * np.sin(a) * w * w) / den, w, -x * np.cos(a) / den], axis=1)


def turned(s):
    return np.stack([s[:, 1], -np.sin(s[:, 0]) * s[:, 2], s[:, 3] * s[:, 2], -s[:, 1]], axis=1)


def collocated(z):
    F = rotated(z["x"])
    return z["x"][1:] - z["x"][:-1] - 0.05 * (F[1:] + F[:-1]) + z["u"][:, None] ** 2


def shot(z):
    """Runge and Kutta: products of maps."""
    s, h = z["x"][:-1], 0.1
    k = turned(s) + z["u"][:, None]
    return z["x"][1:] - s - h * turned(s + 0.5 * h * k)


def tree(n):
    return {"x": rng.normal(size=(n + 1, 4)), "u": rng.normal(size=n)}


EDGES = rng.integers(0, 9, (2, 30))
CASES = {
    "tridiagonal": (lambda x: x[1:] ** 2 * x[:-1], [np.ones(7), rng.normal(size=7)]),
    "dense columns": (lambda p: p[0] * np.exp(-p[1] * np.arange(5.0)) + p[2], [np.ones(3), rng.normal(size=3)]),
    "edges": (lambda x: np.bincount(EDGES[0], np.sin(x[EDGES[0]] * x[EDGES[1]]), 9), [np.ones(9), rng.normal(size=9)]),
    "two results": (lambda x: (np.sum(x**2), x[::2] * x[1::2]), [np.ones(6), rng.normal(size=6)]),
    "matrix": (lambda x: x @ x.T, [np.ones((3, 2)), rng.normal(size=(3, 2))]),
    "constant": (lambda x: 2.0 * x[:2], [np.ones(3), rng.normal(size=3)]),
    "zero": (lambda x: 0.0 * x, [np.ones(3), rng.normal(size=3)]),
    "running sums": (lambda x: np.cumsum(x**2), [np.ones(5), rng.normal(size=5)]),
    "sorted": (lambda x: np.sort(x) ** 2, [np.arange(4.0), rng.normal(size=4)]),
    "collocation": (collocated, [tree(6), tree(6)]),
    "Runge-Kutta": (shot, [tree(5), tree(5)]),
    "single numbers": (lambda x: np.sin(x) * x, [1.0, 2.0]),
    "float32": (lambda x: x[1:] * x[:-1], [np.ones(4, np.float32), np.arange(4, dtype=np.float32)]),
    "branches not taken": (lambda x: np.where(x > 0, np.sqrt(x), x), [np.ones(3), np.array([-1.0, 0.0, 4.0])]),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_jacobians(name):
    f, points = CASES[name]
    S = rz.sparse_jacobian(f, points[0])
    rows, columns = S.pattern
    for x in points:
        with np.errstate(all="ignore"):
            expected = rz.jacobian(f)(x).to_dense()
        values = S.values(x)
        found = np.zeros(S.shape)
        np.add.at(found, (rows, columns), values)
        np.testing.assert_allclose(found, expected, atol=1e-6 if name == "float32" else 1e-13)
        np.testing.assert_allclose(S(x).toarray(), expected, atol=1e-6 if name == "float32" else 1e-13)
        assert np.all(np.asarray(S.pattern)[expected != 0])
        assert values.flags.owndata or values.base is None or values.flags.writeable


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("name", ["tridiagonal", "edges", "matrix", "collocation", "Runge-Kutta", "running sums"])
def test_numbers_of_hessians(name, lower):
    f, points = CASES[name]
    y = f(points[0])

    def lagrangian(x, s, weights):
        return s * np.sum(f(x) ** 3) + np.sum(weights * f(x))

    S = rz.sparse_hessian(lagrangian, points[0], 1.0, np.ones(np.shape(y)), lower=lower)
    for x in points:
        s, weights = 0.7, rng.normal(size=np.shape(y))
        expected = rz.hessian(lagrangian)(x, s, weights).to_dense()
        found = S(x, s, weights).toarray()
        np.testing.assert_allclose(found, np.tril(expected) if lower else expected, atol=1e-11)
        rows, columns = S.pattern
        assert not lower or np.all(rows >= columns)
        assert np.all(np.diff(rows) >= 0)


def test_patterns_are_exact_where_the_structure_is():
    S = rz.sparse_hessian(chain, np.zeros(50))
    assert S.pattern.nnz == 3 * 50 - 2
    assert rz.sparse_hessian(chain, np.zeros(50), lower=True).pattern.nnz == 2 * 50 - 1
    z = tree(10)
    J = rz.sparse_jacobian(shot, z)
    dense = sum([np.abs(rz.jacobian(shot)(tree(10)).to_dense()) for _ in range(3)])
    assert J.pattern.nnz == np.count_nonzero(dense)


def test_casadi_has_the_same_patterns():
    casadi = pytest.importorskip("casadi")
    n = 8
    x = casadi.SX.sym("x", n)
    f = casadi.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    H = casadi.hessian(f, x)[0].sparsity()
    rows, columns = np.array(H.row()), np.array(H.get_col())
    order = np.lexsort((columns, rows))
    mine = rz.sparse_hessian(chain, np.zeros(n)).pattern
    np.testing.assert_array_equal(mine.rows, rows[order])
    np.testing.assert_array_equal(mine.columns, columns[order])


def test_argnums_and_order_of_arguments():
    f = lambda x, k, y: np.concatenate([k * x * y, y**2])  # noqa: E731
    x, y = rng.normal(size=(2, 3))
    for argnums in (0, 2, (0, 2), (2, 0)):
        S = rz.sparse_jacobian(f, x, 2.0, y, argnums=argnums)
        expected = rz.jacobian(f, argnums)(2 * x, 3.0, y).to_dense()
        np.testing.assert_allclose(S(2 * x, 3.0, y).toarray(), expected)
        np.testing.assert_allclose(S(2 * x, np.float64(3.0), y).toarray(), expected)


def test_combinators():
    x = rz.proj
    f = rz.fork(x(0) + x(1), x(0) * x(2))
    S = rz.sparse_jacobian(f, (4.0, 0.0, -2.0))
    np.testing.assert_allclose(S((1.0, 5.0, 3.0)).toarray(), [[1, 1, 0], [3, 0, 1]])


def test_other_arguments_are_refused():
    S = rz.sparse_jacobian(lambda x: x**2, np.ones(3))
    with pytest.raises(SpaceError, match=r"arguments like those it was made with \(float64\[3\]\); got float64\[4\]"):
        S.values(np.ones(4))
    with pytest.raises(SpaceError, match="a condition on values"):
        rz.sparse_jacobian(lambda x: x**2 if x[0] > 0 else x, np.ones(3)).values(-np.ones(3))


def test_the_caller_owns_what_it_gets():
    S = rz.sparse_jacobian(lambda x: 2.0 * x[1:], np.ones(4))
    a = S.values(np.ones(4))
    a[:] = 7.0
    np.testing.assert_array_equal(S.values(np.ones(4)), 2.0)
    M = S(np.ones(4))
    M.data[0] = 0.0
    M.eliminate_zeros()
    assert S.pattern.nnz == 3
    with pytest.raises(ValueError):
        S.pattern.columns[0] = 1


def test_without_machine_code(monkeypatch):
    from riesz.backends.native import native_backend

    monkeypatch.setattr(native_backend, "machine_code_here", lambda: False)
    f, points = CASES["Runge-Kutta"]
    S = rz.sparse_jacobian(f, points[0])
    assert S.backend != "native"
    np.testing.assert_allclose(S(points[1]).toarray(), rz.jacobian(f)(points[1]).to_dense(), atol=1e-13)


def test_nan_and_infinity_come_out_as_they_are():
    S = rz.sparse_jacobian(lambda x: np.log(x), np.ones(3))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(S.values(np.array([0.0, np.nan, 2.0])), [np.inf, np.nan, 0.5])


def test_products_with_too_many_pairs():
    f, points = CASES["Runge-Kutta"]
    make = lambda z: np.sum(f(z) ** 2)  # noqa: E731
    with tuning.override(LISTED_PAIRS=10):
        S = rz.sparse_hessian(make, points[0])
        np.testing.assert_allclose(S(points[1]).toarray(), rz.hessian(make)(points[1]).to_dense(), atol=1e-12)


# -- at point after point ------------------------------------------------------------------------------------


def test_matrices_at_further_points_see_what_changes():
    k = np.ones(3)
    f = lambda v: k * v**2  # noqa: E731
    J = rz.jacobian(f)
    for _ in range(3):
        np.testing.assert_array_equal(J(np.ones(3)).diagonal(), 2.0)
    L = J(np.ones(3))
    k *= 10
    np.testing.assert_array_equal(J(np.ones(3)).to_dense(), 20.0 * np.eye(3))
    np.testing.assert_array_equal(L.to_dense(), 2.0 * np.eye(3))


def test_maps_keep_the_point_they_were_made_at():
    J, x = rz.jacobian(lambda v: np.exp(v)), np.zeros(3)
    J(x).to_dense()
    L = J(x)
    x += 1.0
    np.testing.assert_array_equal(L.to_sparse().toarray(), np.eye(3))
    np.testing.assert_array_equal(L(np.ones(3)), 1.0)
    np.testing.assert_allclose(L.T(np.ones(3)), 1.0)
    np.testing.assert_allclose(J(x).solve(np.ones(3)), np.exp(-1.0))


def test_maps_at_further_points_in_traces_and_of_other_kinds():
    J = rz.jacobian(lambda v: v**3)
    for _ in range(2):
        J(np.ones(2)).to_dense()
    np.testing.assert_allclose(rz.grad(lambda v: np.sum(J(v)(np.ones(2))))(np.array([1.0, 2.0])), [6.0, 12.0])
    assert J(np.ones(5)).shape == (5, 5)
    assert J(np.ones(2, np.float32)).dtype == np.float32
    np.testing.assert_allclose(rz.vmap(lambda v: J(v)(v))(np.ones((4, 2))), 3.0)


def test_large_matrices_are_compiled_at_the_third_point():
    H, n = rz.hessian(lambda x: np.sum(np.cos(x[1:] * x[:-1]) + x[1:] ** 4)), 6000
    for _ in range(4):
        x = rng.normal(size=n)
        d = H(x).to_sparse()
        e = np.zeros(n)
        e[17] = 1.0
        np.testing.assert_allclose(d @ e, H(x)(e), atol=1e-12)


# -- who uses them -------------------------------------------------------------------------------------------


def test_adapter_for_ipopt():
    """Callbacks of cyipopt.Problem."""
    ipopt = pytest.importorskip("cyipopt")
    f, g = chain, lambda x: x[:-1] * x[1:] - 0.5
    lagrangian = lambda x, s, m: s * f(x) + m @ g(x)  # noqa: E731
    x0 = np.full(6, 0.5)

    class Callbacks:
        J, H = rz.sparse_jacobian(g, x0), rz.sparse_hessian(lagrangian, x0, 1.0, np.ones(5), lower=True)
        objective, gradient, constraints = staticmethod(f), staticmethod(rz.grad(f)), staticmethod(g)
        jacobianstructure, jacobian = lambda self: tuple(self.J.pattern), lambda self, x: self.J.values(x)
        hessianstructure = lambda self: tuple(self.H.pattern)  # noqa: E731
        hessian = lambda self, x, m, s: self.H.values(x, s, m)  # noqa: E731

    problem = ipopt.Problem(n=6, m=5, problem_obj=Callbacks(), cl=np.zeros(5), cu=np.full(5, 10.0))
    problem.add_option("print_level", 0)
    x, info = problem.solve(x0)
    assert info["status"] == 0 and np.all(g(x) > -1e-6)


def test_adapter_for_ceres():
    """The Evaluate of a ceres::CostFunction: residuals and, where asked for, row-major Jacobians of each block."""
    residual = lambda camera, p: camera[:2] * p[:2] / (p[2] + 4.0) - camera[2]  # noqa: E731
    examples = np.ones(3), np.ones(3)
    J = [rz.sparse_jacobian(residual, *examples, argnums=i) for i in range(2)]

    def evaluate(parameters, residuals, jacobians):
        residuals[:] = residual(*parameters)
        for S, block in zip(J, jacobians or (), strict=False):
            if block is not None:
                block.reshape(S.shape)[tuple(S.pattern)] = S.values(*parameters)
        return True

    blocks, r = [np.zeros(6), None], np.zeros(2)
    at = [np.array([1.0, 2.0, 0.5]), np.array([1.0, -1.0, 2.0])]
    assert evaluate(at, r, blocks)
    np.testing.assert_allclose(blocks[0].reshape(2, 3), rz.jacobian(residual)(*at).to_dense())


def test_adapter_for_gtsam():
    """The error function of a gtsam.CustomFactor: H[i] receives the Jacobian in the i-th variable."""
    error = lambda a, b: b[:2] - a[:2] - np.stack([np.cos(a[2]), np.sin(a[2])])  # noqa: E731
    J = [rz.sparse_jacobian(error, np.zeros(3), np.zeros(3), argnums=i) for i in range(2)]

    def factor(this, values, H):
        at = [values[key] for key in this["keys"]]
        if H is not None:
            for i, S in enumerate(J):
                H[i] = S(*at).toarray()
        return error(*at)

    H, values = [None, None], {0: np.array([0.0, 0.0, 0.3]), 1: np.array([1.0, 0.1, 0.2])}
    assert factor({"keys": (0, 1)}, values, H).shape == (2,)
    np.testing.assert_allclose(H[0], rz.jacobian(error)(values[0], values[1]).to_dense())


def test_adapter_for_gtsam_in_a_graph_of_its_own():
    """A ring of points by gtsam.CustomFactor, against our own fit."""
    gtsam = pytest.importorskip("gtsam")
    n = 6
    error = lambda a, b, z: b - a - z * np.stack([np.cos(a[1]), np.sin(b[0])])  # noqa: E731
    J = [rz.sparse_jacobian(error, np.zeros(2), np.zeros(2), 1.0, argnums=i) for i in range(2)]
    sizes, start = rng.uniform(0.5, 1.0, n), rng.normal(size=(n, 2))

    def between(z):
        def factor(this, values, H):
            at = [values.atVector(this.keys()[i]) for i in range(2)]
            if H is not None:
                for i, S in enumerate(J):
                    H[i] = np.asfortranarray(S(*at, z).toarray())
            return error(*at, z)

        return factor

    graph, values, unit = gtsam.NonlinearFactorGraph(), gtsam.Values(), gtsam.noiseModel.Unit.Create(2)
    for k, z in enumerate(sizes):
        graph.add(gtsam.CustomFactor(unit, [k, (k + 1) % n], between(z)))
        values.insert(k, start[k])
    graph.add(gtsam.PriorFactorVector(0, np.zeros(2), unit))
    found = gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()

    def residual(p):
        b = np.roll(p, -1, axis=0)
        turned = np.stack([np.cos(p[:, 1]), np.sin(b[:, 0])], axis=1)
        return b - p - sizes[:, None] * turned, p[0]

    mine = rz.levenberg_marquardt(residual, np.stack([found.atVector(k) for k in range(n)]))
    np.testing.assert_allclose(graph.error(found), mine.cost, rtol=1e-4)


def test_adapter_for_ceres_in_a_problem_of_its_own():
    """A pyceres.CostFunction whose residuals and Jacobians are ours."""
    pyceres = pytest.importorskip("pyceres")
    t = np.linspace(0.0, 1.0, 12)
    y = 2.0 * np.exp(0.7 * t)
    residual = lambda a, b: a[0] * np.exp(b[0] * t) - y  # noqa: E731
    J = [rz.sparse_jacobian(residual, np.ones(1), np.ones(1), argnums=i) for i in range(2)]

    class Curve(pyceres.CostFunction):
        def __init__(self):
            super().__init__()
            self.set_num_residuals(len(t))
            self.set_parameter_block_sizes([1, 1])

        def Evaluate(self, parameters, residuals, jacobians):
            residuals[:] = residual(*parameters)
            for S, block in zip(J, jacobians or (), strict=False):
                if block is not None:
                    np.reshape(block, S.shape)[tuple(S.pattern)] = S.values(*parameters)
            return True

    a, b, problem, options = np.ones(1), np.zeros(1), pyceres.Problem(), pyceres.SolverOptions()
    problem.add_residual_block(Curve(), None, [a, b])
    options.logging_type = pyceres.LoggingType.SILENT
    pyceres.solve(options, problem, pyceres.SolverSummary())
    np.testing.assert_allclose([a[0], b[0]], [2.0, 0.7], atol=1e-6)


def test_adapter_for_casadi():
    """A casadi.Callback whose Jacobian is ours, inside an expression of CasADi."""
    ca = pytest.importorskip("casadi")
    f, n = lambda x: x[1:] * np.sin(x[:-1]), 5
    S = rz.sparse_jacobian(f, np.ones(n))
    pattern = ca.Sparsity.triplet(n - 1, n, S.pattern.rows.tolist(), S.pattern.columns.tolist())

    class Slopes(ca.Callback):
        def get_n_in(self):
            return 2

        def get_sparsity_in(self, i):
            return ca.Sparsity.dense((n, n - 1)[i], 1)

        def get_sparsity_out(self, i):
            return pattern

        def eval(self, args):
            return [ca.DM(S(np.array(args[0]).ravel()).tocsc())]

    class Values(ca.Callback):
        def get_sparsity_in(self, i):
            return ca.Sparsity.dense(n, 1)

        def get_sparsity_out(self, i):
            return ca.Sparsity.dense(n - 1, 1)

        def eval(self, args):
            return [f(np.array(args[0]).ravel())]

        def has_jac_sparsity(self, result, argument):
            return True

        def get_jac_sparsity(self, result, argument, symmetric):
            return pattern

        def has_jacobian(self):
            return True

        def get_jacobian(self, name, inames, onames, opts):
            self.slopes = Slopes()
            self.slopes.construct(name, opts)
            return self.slopes

    values, x = Values(), ca.MX.sym("x", n)
    values.construct("f", {})
    g = ca.Function("g", [x], [ca.jacobian(ca.exp(values(x)), x)])
    at = rng.normal(size=n)
    np.testing.assert_allclose(g(at).full(), rz.jacobian(lambda x: np.exp(f(x)))(at).to_dense(), atol=1e-12)
    assert g.sparsity_out(0).nnz() == S.pattern.nnz


def test_adapter_for_scipy():
    n = 20
    x0 = np.full(n, 1.5)
    S = rz.sparse_hessian(chain, x0)
    found = scipy.optimize.minimize(
        chain, x0, jac=rz.grad(chain), hess=S, method="trust-constr", options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)
    r = lambda x: np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x])  # noqa: E731
    fit = scipy.optimize.least_squares(r, x0, jac=rz.sparse_jacobian(r, x0), tr_solver="lsmr")
    np.testing.assert_allclose(fit.x, 1.0, atol=1e-6)
    assert scipy.sparse.issparse(S(x0))


def test_large_arrays_from_outside_are_those_of_the_moment():
    K, x = np.ones(400), np.ones(400)
    J = rz.jacobian(lambda v: K * v**2)
    for k in (1.0, 3.0, 2.0):
        K[:] = k
        np.testing.assert_array_equal(J(x).diagonal(), 2.0 * k)
        np.testing.assert_array_equal(J(x).to_sparse().data, 2.0 * k)
