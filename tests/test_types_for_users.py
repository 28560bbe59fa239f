"""What an editor knows of a program that uses riesz: pyright infers the types below, and flags the wrong lines only.

A line of PROGRAM that ends in `# wrong: rule` must be flagged by that rule.
A line `reveal_type(x)  # type` must show that type.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"

PROGRAM = """
import numpy as np

import riesz as rz

x = np.array([1.0, 2.0])


def f(x):
    return np.sum(x**3)


def aux(x):
    return np.sum(x), {"norm": np.sqrt(np.sum(x**2))}


# gradients have the type of the argument
reveal_type(rz.grad(f)(x))  # ndarray
reveal_type(rz.grad(f)(3.0))  # float
reveal_type(rz.grad(f)({"w": 1.0}))  # dict[str, float]
reveal_type(rz.grad(f)(x, 2.0, flag=True))  # ndarray
reveal_type(rz.grad(aux, has_aux=True)(x))  # tuple[ndarray, Any]
reveal_type(rz.value_and_grad(f)(x))  # tuple[Any, ndarray]
reveal_type(rz.value_and_grad(f, (0, 1))(x, x))  # tuple[Any, Any]
reveal_type(rz.hvp(f, (x,), (x,)))  # ndarray
reveal_type(rz.grad("x -> sin(x)")(1.0))  # float
reveal_type(rz.jvp(f, (x,), (x,)))  # tuple[Any, Any]
reveal_type(rz.jvp(aux, (x,), (x,), has_aux=True))  # tuple[Any, Any, Any]
y, back = rz.vjp(f, x)
y, back, more = rz.vjp(aux, x, has_aux=True)
rz.gard(f)  # wrong: reportAttributeAccessIssue
rz.grad(f, argnum=0)  # wrong: reportCallIssue
rz.grad(3.0)  # wrong: reportArgumentType
rz.grad(f)(x).shap  # wrong: reportAttributeAccessIssue
rz.jvp(f, x, x)  # wrong: reportArgumentType

# maps
L = rz.jacobian(f)(x)
H = rz.hessian(f)(x)
reveal_type(L)  # LinearMap
reveal_type(H)  # LinearMap
reveal_type(rz.jacobian(aux, has_aux=True)(x))  # tuple[LinearMap, Any]
reveal_type(rz.linearize(f, x))  # tuple[Any, LinearMap]
reveal_type(H.to_dense())  # ndarray
reveal_type(H.to_sparse())  # csr_array
reveal_type(H.to_sparse("csc"))  # csc_array
reveal_type(H.to_sparse().toarray())  # ...
reveal_type(H.diagonal())  # ndarray
reveal_type(H.T)  # LinearMap
reveal_type(H.H)  # LinearMap
reveal_type(L @ H)  # LinearMap
reveal_type(2.0 * L.H @ L + H)  # LinearMap
reveal_type(H.simplify())  # LinearMap
reveal_type(H.shape)  # tuple[int, int]
reveal_type(H.structure)  # Structure
reveal_type(H.plan())  # MapPlan
reveal_type(H.cost())  # Cost
reveal_type(H.sparsity())  # Sparsity
reveal_type(H.solver())  # Solver
reveal_type(H.domain)  # Space
reveal_type(H.latex())  # str
step = H.solve(-rz.grad(f)(x))
H.to_dens()  # wrong: reportAttributeAccessIssue
H.solver().nam  # wrong: reportAttributeAccessIssue
H.to_sparse().toaray()  # wrong: reportAttributeAccessIssue
L.plan(colums=3)  # wrong: reportCallIssue
rz.jacobian(f)(x)(x).foo.bar  # an element of a space may be anything

# spaces, sets, relations
X = rz.seg(3)
reveal_type(X)  # Seg
reveal_type(X * rz.seg(4))  # Product
reveal_type(rz.R)  # Real
reveal_type(rz.R**X)  # Copower
reveal_type(rz.R * rz.R**X)  # DirectSum
reveal_type((rz.R**X).dim)  # int
reveal_type(rz.space_of(x))  # Space
reveal_type(rz.relations.shift(X, 1))  # Relation
space: rz.Space = rz.R**X
index: rz.Set = X
rz.R.dimension  # wrong: reportAttributeAccessIssue
rz.seg("3")  # wrong: reportArgumentType
rz.relations.shfit(X, 1)  # wrong: reportAttributeAccessIssue

# combinators
reveal_type(rz.sin)  # Primitive
reveal_type(rz.sin @ rz.cos)  # Term
reveal_type(rz.total @ rz.sin)  # Term
reveal_type(rz.sin @ rz.proj(0))  # Arrow
reveal_type(rz.sin + rz.cos * 2.0)  # Term
reveal_type(-(1.0 - rz.sin))  # Term
reveal_type(rz.proj(0) * rz.proj(1))  # Arrow
reveal_type(rz.sin**X)  # Term
reveal_type(rz.fork(rz.sin, rz.cos))  # Term
reveal_type(rz.fork(rz.sin, rz.proj(0)))  # Arrow
reveal_type(rz.total(rz.R**X))  # Term
reveal_type(rz.total.at(rz.R**X).H)  # Term
reveal_type(rz.dup(rz.R).as_map())  # LinearMap
reveal_type(rz.total.at(rz.R**X) @ H)  # LinearMap
rz.sin @ 3.0  # wrong: reportOperatorIssue
rz.sin.coodomain  # wrong: reportAttributeAccessIssue

# derivations, compiled functions, what wraps functions
D = rz.derive(f, rz.R**X)
reveal_type(D)  # Derivation
reveal_type(D.derivative(x))  # LinearMap
reveal_type(D.adjoint)  # Family
reveal_type(D.size)  # int
reveal_type(D.gradient)  # ClosedForm
reveal_type(D.hessian.code("jax"))  # str
reveal_type(D.jacobian(x))  # Any
reveal_type(D.hvp(x, x))  # Any
reveal_type(D.show("paper"))  # View
reveal_type(D.diagram().svg())  # str
g = rz.compile(rz.grad(f), x)
reveal_type(g)  # Compiled
reveal_type(g.source)  # str
reveal_type(rz.function(f))  # TracedFunction
reveal_type(rz.levenberg_marquardt(f, x).jacobian)  # LinearMap
reveal_type(rz.check(f, x))  # Report
D.derivativ(x)  # wrong: reportAttributeAccessIssue
D.jacobian.latx()  # wrong: reportAttributeAccessIssue
D.gradient.code(3)  # wrong: reportArgumentType
D.hesian  # wrong: reportAttributeAccessIssue
L.show().mathm()  # wrong: reportAttributeAccessIssue
g.sorce  # wrong: reportAttributeAccessIssue
rz.R ** "3"  # wrong: reportOperatorIssue


@rz.function(static_argnums=1)
def static(x, n):
    return x**n


@rz.custom_derivative
def own(x):
    return x


@own.derivative
def _(x):
    return lambda dx: dx


@rz.primitive
def cube(x):
    return x**3


@cube.derivative
def _(x, y):
    return 3.0 * x * x


@rz.checkpoint
def again(x: float, n: int) -> float:
    return x * n


reveal_type(static)  # TracedFunction
reveal_type(own)  # CustomDerivative
reveal_type(cube)  # Primitive
reveal_type(again(1.0, 2))  # float
reveal_type(rz.stop_gradient(x))  # ndarray
reveal_type(rz.cond(True, lambda: 1.0, lambda: 2.0))  # float
again("1", 2)  # wrong: reportArgumentType
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[int, list[tuple[str, str]]]:
    """What pyright says about each line: (rule or "reveal", message)."""
    pyright = Path(sys.executable).parent / "pyright"
    if not pyright.exists():
        pytest.skip("pyright is not installed: pip install riesz[dev]")
    folder = tmp_path_factory.mktemp("user")
    (folder / "program.py").write_text(PROGRAM)
    settings = {"include": ["program.py"], "extraPaths": [str(SRC)], "reportAttributeAccessIssue": "error"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(pyright), "--pythonpath", sys.executable, "--outputjson", "--project", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if not run.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {(run.stdout + run.stderr)[-300:]}")
    said: dict[int, list[tuple[str, str]]] = {}
    for d in json.loads(run.stdout)["generalDiagnostics"]:
        rule = "reveal" if d["severity"] == "information" else d.get("rule", d["severity"])
        said.setdefault(d["range"]["start"]["line"] + 1, []).append((rule, d["message"]))
    return said


LINES = dict(enumerate(PROGRAM.splitlines(), 1))
REVEALED = {
    n: line.split("  # ")[1] for n, line in LINES.items() if line.startswith("reveal_type") and not line.endswith("...")
}
WRONG = {n: line.split("  # wrong: ")[1] for n, line in LINES.items() if "  # wrong: " in line}


def test_wrong_lines_are_flagged_and_no_others(found):
    flagged = {n: [rule for rule, _ in said if rule != "reveal"] for n, said in found.items()}
    flagged = {n: rules for n, rules in flagged.items() if rules}
    assert {LINES[n]: rules for n, rules in flagged.items() if n not in WRONG} == {}
    assert {LINES[n]: rule for n, rule in WRONG.items() if rule not in flagged.get(n, [])} == {}
    assert len(WRONG) > 15


def test_types_are_known(found):
    def shown(n: int) -> str:
        (message,) = [m for rule, m in found[n] if rule == "reveal"]
        known = re.fullmatch(r'Type of "(?:.*)" is "(.*)"', message, re.DOTALL).group(1)
        return re.sub(r"ndarray\[[^,]*(?:, \.\.\.\])?, dtype\[\w*\]\]|NDArray\[\w*\]", "ndarray", known)

    assert {LINES[n].split("  # ")[0]: shown(n) for n in REVEALED} == {
        LINES[n].split("  # ")[0]: wanted for n, wanted in REVEALED.items()
    }
