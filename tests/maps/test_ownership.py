"""What is returned belongs to the caller: whatever somebody writes into it, everything the library computes afterwards is what it was."""

import io
import os
import subprocess
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sparse

import riesz as rz
from riesz import relations, seg

N = 12
"""Small, with repeated rows and zeros; `LARGE` arrays are those that traces read where they are."""
LARGE = 300


FORMS = ("csr", "csc", "coo", "bsr", "lil", "dia", "dok")


def point(n: int = N) -> np.ndarray:
    return np.cos(np.arange(n) * 0.7) * (np.arange(n) % 3 != 0)


class World:
    """Functions, maps and relations of their own, with caches of their own; the numbers are the same each time."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.X, self.K, self.C = rng.normal(size=(LARGE, N)), rng.normal(size=LARGE), rng.normal(size=N)
        self.index = rng.integers(0, N, 3 * N)
        X, K, C, index = self.X, self.K, self.C, self.index
        self.functions = {
            "stencil": lambda x: x[1:] * x[:-1],
            "dense": lambda x: np.tanh(X @ x) * K,
            "pointwise": lambda x: C * np.sin(x),
            "gather": lambda x: x[index] ** 2,
            "scatter": lambda x: np.bincount(index, x[index] * 2.0, N),
            "running": lambda x: np.cumsum(x * x),
            "low rank": lambda x: x * 3.0 + C * np.sum(C * x),
            "loop": lambda x: rz.fori_loop(0, 3, lambda i, h: np.sin(h) * C, x),
            "nothing": lambda x: x[:0],
            "zero": lambda x: 0.0 * x[:3],
        }
        self.losses = {
            "logistic": lambda x: np.sum(np.logaddexp(0.0, X @ x)),
            "chain": lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum(x**2),
            "constant": lambda x: np.sum(C * x),
            "outer": lambda x: np.sum(np.sin(X[:5] @ x)),
        }
        self.tensors = {
            "matrix": lambda W: np.sum(np.sin(X @ W)),
            "rows": lambda W: np.sum(W[index % 4] ** 2),
        }
        self.jacobians = {k: rz.jacobian(f) for k, f in self.functions.items()}
        self.hessians = {k: rz.hessian(f) for k, f in self.losses.items()}
        self.maps = {k: J(point()) for k, J in self.jacobians.items()} | {
            f"∇² {k}": H(point()) for k, H in self.hessians.items()
        }
        self.relations = {
            "edges": relations.edges(seg(N), seg(5), index, index % 5),
            "function": relations.function(seg(N), seg(4), np.arange(N) % 4),
            "gather": relations.gather(seg(N), seg(3 * N), index),
            "segments": relations.segments([0, 3, 3, N]),
            "window": relations.window(seg(N), 3),
            "triangular": relations.triangular(seg(N)),
            "grouped": relations.group_by(index).relation,
            "joined": relations.join(index[:N], index[N : 2 * N]),
            "union": relations.diagonal(seg(N)) | relations.shift(seg(N), 1),
            "empty": relations.empty(seg(N), seg(3)),
        }
        self.plans = {k: r.plan() for k, r in self.relations.items()}
        V = rz.R ** seg(N)
        self.terms = {
            "product": rz.left(rz.hadamard, C.copy()).at(V),
            "inner": rz.left(rz.inner, C.copy()).at(V),
            "red": rz.red(self.relations["edges"]).at(V),
        }
        self.derivations = {k: rz.derive(f, V) for k, f in self.functions.items() if k not in ("nothing",)}
        self.compiled = {k: rz.compile(f) for k, f in self.functions.items()} | {
            f"∇ {k}": rz.compile(rz.grad(f)) for k, f in self.losses.items()
        }
        self.factored = {k: rz.grad(f, factored=True)(np.ones((N, 4))) for k, f in self.tensors.items()}
        self.solvers = {k: self.maps[k].solver() for k in ("pointwise", "low rank")} | {
            f"∇² {k}": self.maps[f"∇² {k}"].solver() for k in ("logistic", "chain")
        }
        self.solvers["lsmr"] = self.maps["dense"].solver("lsmr")
        self.fit = rz.levenberg_marquardt(self.functions["dense"], point())
        self.backs = {k: rz.vjp(f, point())[1] for k, f in self.functions.items()}

    def results(self) -> dict[str, object]:
        """What the library gives away."""
        found: dict[str, object] = {}
        for k, L in self.maps.items():
            found |= {f"{k} as {form}": L.to_sparse(form) for form in (FORMS if k == "stencil" else FORMS[:3])}
            found |= {
                f"{k}": L,
                f"{k}ᵀ": L.T,
                f"{k} simplified": L.simplify(),
                f"{k} gram": L.gram(),
                f"{k} dense": L.to_dense(),
            }
            found |= {
                f"{k} structure": L.structure,
                f"{k} sparsity": L.sparsity(),
                f"{k} plan": L.plan(),
                f"{k} cost": L.cost(),
                f"{k} names": L.names,
            }
            found |= {
                f"{k} norms": L.column_norms(),
                f"{k} rows": L.row_norms(),
                f"{k} operator": L.as_operator(),
                f"{k} applied": L(point()),
            }
            if L.shape[0] == L.shape[1]:
                found |= {f"{k} diagonal": L.diagonal()}
            if L.structure.__str__().startswith(("diagonal", "block")):
                found |= {f"{k} blocks": L.blocks()}
        for k, r in self.relations.items():
            found |= {
                f"{k} relation": r,
                f"{k} pairs": r.pairs(),
                f"{k} matrix": r.matrix(),
                f"{k} converse": r.converse,
                f"{k} image": r.image(),
            }
            found |= {
                f"{k} plan of": self.plans[k],
                f"{k} groups": r.groups,
                f"{k} reduced": self.plans[k](point(r.source.size)),
                f"{k} weights": r.weights(float),
            }
        for k, f in self.functions.items():
            found |= {
                f"{k} value": rz.function(f)(point()),
                f"{k} linearized": rz.linearize(f, point()),
                f"{k} jvp": rz.jvp(f, (point(),), (point(),)),
            }
            found |= {
                f"{k} vjp": rz.vjp(f, point())[0],
                f"{k} compiled": self.compiled[k],
                f"{k} called": self.compiled[k](point()),
            }
        for k, f in self.losses.items():
            found |= {
                f"{k} ∇": rz.value_and_grad(f)(point()),
                f"{k} hvp": rz.hvp(f, (point(),), (point(),)),
                f"{k} compiled": self.compiled[f"∇ {k}"],
            }
        found |= {f"{k} derived": D for k, D in self.derivations.items()} | {
            f"{k} there": D.derivative(point()) for k, D in self.derivations.items()
        }
        return (
            found
            | dict(self.solvers)
            | {"fit": self.fit}
            | {f"{k} factored": G for k, G in self.factored.items()}
            | dict(self.terms)
        )

    def numbers(self) -> dict[str, np.ndarray]:
        """What the library computes, with everything it has."""
        found: dict[str, object] = {}
        x = 0.5 + np.sin(np.arange(N))
        for k, J in (self.jacobians | {f"∇² {k}": H for k, H in self.hessians.items()}).items():
            for which, L in (("then", self.maps[k]), ("now", J(x))):
                w = np.cos(np.arange(L.shape[0]) + 1.0)
                found |= {
                    f"{k} {which} applied": L(x),
                    f"{k} {which} back": L.H(w),
                    f"{k} {which} dense": L.to_dense(),
                    f"{k} {which} sparse": L.to_sparse().toarray(),
                }
                found |= {
                    f"{k} {which} norms": L.column_norms(),
                    f"{k} {which} simplified": L.simplify().to_dense(),
                    f"{k} {which} gram": L.gram().to_dense(),
                }
                found |= {
                    f"{k} {which} columns": L.matmat(np.eye(N)),
                    f"{k} {which} structure": np.frombuffer(str(L.structure).encode(), np.uint8),
                }
                if L.shape[0] == N:
                    found[f"{k} {which} diagonal"] = L.diagonal()
        for k, r in self.relations.items():
            found |= {
                f"{k} matrix": r.matrix().toarray(),
                f"{k} converse": r.converse.matrix().toarray(),
                f"{k} reduced": self.plans[k](np.arange(1.0, 1.0 + r.source.size)),
            }
            found |= {
                f"{k} adjoint": self.plans[k].adjoint(np.arange(1.0, 1.0 + r.target.size)),
                f"{k} degrees": r.in_degrees,
                f"{k} out": r.out_degrees,
            }
        for k, f in self.functions.items():
            found |= {
                f"{k} value": rz.function(f)(x),
                f"{k} compiled": self.compiled[k](x),
                f"{k} vjp": self.backs[k](np.ones(len(f(x))))[0],
            }
        for k, f in self.losses.items():
            found |= {
                f"{k} ∇": rz.grad(f)(x),
                f"{k} compiled": self.compiled[f"∇ {k}"](x),
                f"{k} hvp": rz.hvp(f, (x,), (x,)),
            }
        for k, D in self.derivations.items():
            found |= {
                f"{k} derived": D.derivative(x).to_dense(),
                f"{k} adjoint": D.adjoint(x).to_dense(),
                f"{k} at": D.value(x),
            }
        for k, S in self.solvers.items():
            found |= {
                f"{k} solved": S.solve(np.sin(np.arange(S.shape[0]) + 1.0)),
                f"{k} times": S.apply(np.sin(np.arange(S.shape[1]) + 1.0)),
            }
        for k, G in self.factored.items():
            found |= {
                f"{k} factored": G.to_dense(),
                f"{k} again": rz.grad(self.tensors[k], factored=True)(np.full((N, 4), 0.3)).to_dense(),
            }
        for k, t in self.terms.items():
            found |= {f"{k} term": rz.LinearMap.of(t).to_dense()}
        found["fit"] = rz.levenberg_marquardt(self.functions["dense"], x).x
        return {k: np.array(v, float) for k, v in found.items()}


SKIPPED = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
    np.dtype,
    str,
    bytes,
    int,
    float,
)


DEPTH = 9
"""How many names one after the other are looked at."""


def reached(*starts: object) -> list[object]:
    """Arrays and sparse matrices that can be reached by public names and items."""
    seen: dict[int, object] = {}
    found: list[object] = []
    stack = list(starts)
    for _ in range(DEPTH):
        now, stack = stack, []
        for x in now:
            if id(x) in seen or x is None or isinstance(x, SKIPPED):
                continue
            seen[id(x)] = x
            if isinstance(x, np.ndarray) or sparse.issparse(x):
                found.append(x)
            if sparse.issparse(x):
                stack += [
                    getattr(x, name, None)
                    for name in ("data", "indices", "indptr", "coords", "row", "col", "offsets", "rows")
                ]
            elif isinstance(x, dict):
                stack += list(x.values())
            elif isinstance(x, (list, tuple, set, frozenset)):
                stack += list(x)
            if not isinstance(x, (np.ndarray, dict, list, set, frozenset)) and not sparse.issparse(x):
                for name in dir(x):
                    if not name.startswith("_"):
                        try:
                            stack.append(getattr(x, name))
                        except Exception:
                            continue
    return found


IN_PLACE = ("eliminate_zeros", "sum_duplicates", "sort_indices", "prune", "setdiag", "resize")


def scribble(x: object) -> bool:
    """Write into an array or a sparse matrix whatever can be written; whether something could."""
    if isinstance(x, np.ndarray):
        if x.flags.writeable and x.size:
            x[...] = {"b": True, "f": -77.25, "O": 0}.get(x.dtype.kind, 0)
        return bool(x.flags.writeable and x.size)
    for name in IN_PLACE:
        try:
            {"setdiag": lambda: x.setdiag(5.0), "resize": lambda: x.resize((1, 1))}.get(
                name, getattr(x, name, lambda: None)
            )()
        except Exception:
            continue
    return True


def owners(world: World) -> list[np.ndarray]:
    return [world.X, world.K, world.C, world.index]


def test_nothing_that_is_written_into_a_result_is_seen_by_what_is_computed_afterwards():
    world = World()
    before = world.numbers()
    found = reached(*world.results().values())
    for x in found:
        assert not (isinstance(x, np.ndarray) and any(np.shares_memory(x, a) for a in owners(world))), (
            "an array of the function's own is handed out"
        )
    assert sum([scribble(x) for x in found]) > 300
    after, fresh = world.numbers(), World().numbers()
    for k, value in before.items():
        assert np.array_equal(after[k], value, equal_nan=True), k
        assert np.array_equal(fresh[k], value, equal_nan=True), k


def test_a_fresh_process_computes_the_same_after_everything_was_written_to():
    world = World()
    for x in reached(*world.results().values()):
        scribble(x)
    here = world.numbers()
    code = (
        "import sys, io, numpy as np; sys.path.insert(0, sys.argv[1]); import test_ownership as t; found = t.World().numbers().values();"
        "b = io.BytesIO(); np.savez(b, **{str(i): v for i, v in enumerate(found)}); sys.stdout.buffer.write(b.getvalue())"
    )
    run = subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__)], capture_output=True, check=True)
    there = np.load(io.BytesIO(run.stdout))
    for i, (k, value) in enumerate(here.items()):
        np.testing.assert_allclose(value, there[str(i)], rtol=1e-12, atol=1e-12, err_msg=k)


@pytest.mark.parametrize("method", ["eliminate_zeros", "sum_duplicates", "sort_indices", "prune"])
def test_methods_of_sparse_matrices_change_the_callers_matrix_only(method):
    J = rz.jacobian(lambda x: x[1:] * x[:-1])
    at = np.array([1.0, 0.0, 3.0, 0.0, 5.0])
    fresh = J(np.arange(1.0, 6.0)).to_sparse().toarray()
    mine = J(at).to_sparse()
    mine.indices[:] = mine.indices[::-1].copy()
    mine.has_sorted_indices = mine.has_canonical_format = False
    getattr(mine, method)()
    assert np.array_equal(J(np.arange(1.0, 6.0)).to_sparse().toarray(), fresh)
    assert np.array_equal(J(at).to_dense(), J(at).to_sparse().toarray())


@pytest.mark.parametrize(
    "f", [lambda x: np.cumsum(x * x), lambda x: np.sin(x) * 2.0, lambda x: x * 3.0 + np.arange(1.0, 4.0) * np.sum(x)]
)
def test_what_the_arrays_of_a_solver_are_parts_of_cannot_be_written_to_either(f):
    L = rz.jacobian(f)(np.arange(1.0, 4.0))
    expected = L.solve(np.ones(3))
    waiting, seen = [L.solver()], []
    while waiting:
        x = waiting.pop()
        if isinstance(x, np.ndarray):
            seen.append(x)
            assert not x.flags.writeable
            waiting.append(x.base)
        elif isinstance(x, (list, tuple)):
            waiting += x
        elif hasattr(x, "solve"):
            waiting += vars(x).values()
    assert seen
    np.testing.assert_array_equal(L.solve(np.ones(3)), expected)
