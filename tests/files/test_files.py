"""Files: what was saved comes back, golden files can still be read, and anything else is refused."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import riesz as rz
from riesz.errors import FileError
from riesz.ops.op import Combination
from riesz.programs.program import Program
from riesz.terms.primitives import sin

DATA = Path(__file__).parent.parent / "data"
x = np.array([1.0, 2.0, 3.0, 4.0])
A, index = np.arange(12.0).reshape(3, 4), np.array([0, 0, 1, 3])

FUNCTIONS = {
    "entries": lambda x: np.sum(np.where(x > 2, np.sin(x) ** 2, 0.0) * x[index]) + np.sort(x)[0],
    "matrix": lambda x: np.sum(np.logaddexp(0.0, A @ x)) + np.linalg.norm(x),
    "loop": lambda x: rz.loop(lambda c, v: (np.tanh(c * v), c), 1.0, x)[0],
    "branch": lambda x: rz.cond(x[0] > 0.0, np.sum, np.prod, x),
    "while": lambda x: rz.while_loop(lambda s: np.sum(s) < 50.0, lambda s: 2.0 * s, x).sum(),
    "solve": lambda x: np.sum(np.linalg.solve(np.eye(4) + np.outer(x, x), x)),
    "tree": lambda x: {"a": np.cumsum(x), "b": (x[0], x[:2] * x[2:])},
    "folds": lambda x: np.max(x) + np.prod(x) + np.convolve(x, x[:2]).sum(),
}


@pytest.fixture
def again(tmp_path):
    def there_and_back(thing, *examples):
        rz.save(tmp_path / "a.rz", thing, *examples)
        return rz.load(tmp_path / "a.rz")

    return there_and_back


def equal(a, b):
    if isinstance(a, (tuple, list)):
        assert type(a) is type(b)
        [equal(v, w) for v, w in zip(a, b, strict=True)]
    elif isinstance(a, dict):
        equal(list(a.items()), list(b.items()))
    elif isinstance(a, str):
        assert a == b
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_come_back_with_value_and_derivatives(again, name):
    f = FUNCTIONS[name]
    g = again(f, x)
    equal(g(x), rz.function(f)(x))
    equal(rz.jacobian(g)(x).to_dense(), rz.jacobian(f)(x).to_dense())
    assert str(rz.jacobian(g)(x).structure) == str(rz.jacobian(f)(x).structure)
    if np.ndim(f(x) if name != "tree" else x) == 0:
        np.testing.assert_allclose(rz.hessian(g)(x).to_dense(), rz.hessian(f)(x).to_dense(), rtol=1e-14, atol=1e-14)
    with pytest.raises(rz.SpaceError, match="was saved for arrays of shapes"):
        g(np.ones(7))


def test_functions_of_functions_and_compiled_ones(again):
    f = FUNCTIONS["matrix"]
    for make in (rz.grad, rz.value_and_grad):
        equal(again(make(f), x)(x), make(f)(x))
    g, at = rz.function(f), np.stack([x, x + 1])
    g(x)
    equal(again(rz.vmap(rz.grad(g)))(at), rz.vmap(rz.grad(f))(at))
    equal(again(rz.hessian(f), x)(x).to_dense(), rz.hessian(f)(x).to_dense())
    g = again(rz.compile(rz.grad(f), x, backend="numpy"))
    equal(g(x), rz.compile(rz.grad(f), x, backend="numpy")(x))
    assert g.backend == "numpy"
    equal(again(rz.function("x, y -> x * sin(y)"), 2.0, 3.0)(2.0, 3.0), 2.0 * np.sin(3.0))


THINGS = {
    "terms": lambda: (rz.sin @ rz.exp, (rz.total @ rz.power(3) ** rz.seg(4)).at(rz.R**4), rz.const(x).at(rz.R)),
    "spaces": lambda: (rz.R**3 * rz.R, (rz.R**3).weighted(np.array([1.0, 2.0, 3.0])), rz.space_of({"a": x, "b": 1.0})),
    "relations": lambda: [
        rz.relations.window(rz.seg(10), 3),
        rz.relations.gather(rz.seg(5), rz.seg(3), np.array([1, 1, 2])),
        rz.relations.triangular(rz.seg(4)),
        rz.relation(rz.seg(2), rz.seg(3), [(0, 1), (1, 2)]),
    ],
    "values": lambda: {"a": [1, 2.5, None, x, (True, "word")], "b": np.float32(2.0), "n": np.nan, "k": 2**70},
}


@pytest.mark.parametrize("name", THINGS)
def test_terms_spaces_relations_and_values(again, name):
    thing = THINGS[name]()
    found = again(thing)
    if name == "values":
        equal(found, thing)
    else:
        assert [str(a) for a in found] == [str(a) for a in thing]
        if name == "relations":
            [equal(a.matrix().toarray(), b.matrix().toarray()) for a, b in zip(found, thing, strict=True)]


def test_maps_derivations_factored_gradients_and_solvers(again):
    f = lambda x: np.sum((x[1:] - x[:-1]) ** 2) + np.sum(x**4)  # noqa: E731
    L = rz.hessian(f)(x)
    M = again(L)
    equal(M.to_dense(), L.to_dense())
    assert (str(M), str(M.structure)) == (str(L), str(L.structure))
    equal(M.solve(x), L.solve(x))
    equal(again(L.solver()).solve(x), L.solver().solve(x))
    J = rz.jacobian(lambda p: {"y": p["w"] @ p["b"]})({"w": A, "b": x})
    equal(again(J).T.to_dense(), J.T.to_dense())
    D = rz.derive(rz.total @ rz.power(3) ** rz.seg(4), rz.R**4)
    assert str(again(D)) == str(D)
    E = rz.derive(lambda x: np.sum(A @ x), rz.R**4)
    equal(again(E).derivative(x).to_dense(), E.derivative(x).to_dense())
    G = rz.grad(lambda E: np.sum(E[np.array([7, 3, 7])] ** 2), factored=True)(np.ones((100, 2)))
    H = again(G)
    equal(np.asarray(H), np.asarray(G))
    assert H.is_row_sparse


def test_a_long_program_is_saved_and_loaded_in_time(again, tmp_path):
    program = Program(share=False)
    slot = program.input((3,))
    for _ in range(20_000):
        slot = program.step(Combination((1.0, 0.5)), (slot, program.step(sin.op, (slot,))))
    program.outputs = [slot]
    found = again(program)
    assert found.args == program.args
    assert found.ops == program.ops
    assert found.shapes == program.shapes
    term = rz.sin
    for _ in range(3_000):
        term = rz.sin @ term
    assert again(term) is term


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rz.function(lambda x: 2.0 * x), "has not been called yet"),
        (lambda: rz.primitive("mine", np.sin, None, lambda x, y: x), "cannot be saved"),
        (lambda: np.array([object()]), "cannot be saved"),
        (lambda: object, "cannot be saved|has not been called"),
    ],
)
def test_what_is_code_of_others_is_not_saved(again, make, said, tmp_path):
    with pytest.raises(FileError, match=said):
        again(make())
    assert not list(tmp_path.iterdir())


def with_text(source, target, change):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            body = old.read(info)
            if info.filename == "riesz.json":
                content = json.loads(body)
                change(content)
                body = json.dumps(content).encode()
            new.writestr(zipfile.ZipInfo(info.filename), body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(version=99), "version 99"),
        (lambda c: c.update(format="other"), "no file of riesz"),
        (lambda c: c.update(root={"c": "os:system"}), "may not call 'os:system'"),
        (lambda c: c.update(root={"c": "riesz.runtime.generated_source:defined"}), "may not call"),
        (lambda c: c.update(root={"c": "numpy:load"}), "may not call"),
        (lambda c: c.update(root={"r": 10**6}), "does not come before"),
        (lambda c: c.update(root={"a": 99}), "there is no a99.npy"),
        (lambda c: c["entries"].insert(0, {"k": "Popen", "v": []}), "'Popen' is nothing"),
        (lambda c: c["entries"].insert(0, {"k": "Seg", "v": [-1]}), "a segment has a number"),
        (lambda c: c.update(root={"z": 1}), "unknown value"),
    ],
)
def test_files_with_something_else_in_them_are_refused(tmp_path, change, said):
    rz.save(tmp_path / "a.rz", rz.hessian(FUNCTIONS["matrix"])(x))
    with_text(tmp_path / "a.rz", tmp_path / "b.rz", change)
    with pytest.raises(FileError, match=said):
        rz.load(tmp_path / "b.rz")


def test_files_that_are_none_and_compressed_ones(tmp_path):
    (tmp_path / "a.rz").write_bytes(b"not a zip archive, but long enough to be one")
    (tmp_path / "c.rz").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "b.rz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("riesz.json", "x" * 10**6)
    for name in "abc":
        with pytest.raises(FileError):
            rz.load(tmp_path / f"{name}.rz")
    with pytest.raises(FileNotFoundError):
        rz.load(tmp_path / "nothing.rz")


def test_golden_files_of_every_version_are_read():
    golden = sorted(DATA.glob("saved-*.rz"))
    assert golden
    for path in golden:
        found = rz.load(path)
        at = found["at"]
        np.testing.assert_allclose(found["function"](at), found["value"], rtol=1e-14)
        np.testing.assert_allclose(rz.grad(found["function"])(at), found["gradient"], rtol=1e-13)
        np.testing.assert_allclose(found["map"].to_dense(), found["matrix"], rtol=1e-13)
        assert str(found["relation"]) == str(rz.relations.window(rz.seg(10), 3))
        assert str(found["term"]) == "sin ∘ exp"


def test_loading_imports_nothing_that_a_file_names_and_runs_nothing(tmp_path):
    rz.save(tmp_path / "a.rz", FUNCTIONS["matrix"], x)
    code = f"import sys, riesz as rz; f = rz.load({str(tmp_path / 'a.rz')!r}); print('jax' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_mutated_files_are_refused_or_read():
    sys.path.insert(0, str(DATA.parent.parent / "fuzz"))
    try:
        import files
    finally:
        sys.path.pop(0)
    said, _ = files.run(400, seed=1, random=12)
    assert said["loaded"] > 10
    assert said["FileError"] > 100
    assert sum(said.values()) == 400


@pytest.mark.parametrize("kind", ["Tensor", "Product", "Plus"])
def test_files_that_grow_when_they_are_read_are_refused(kind, tmp_path):
    """Each entry is made of the last one twice: seventy entries stand for 2⁷⁰ parts."""

    def change(content):
        first = {"k": "Real", "v": []} if kind == "Tensor" else {"k": "Seg", "v": [1]}
        content["entries"] = [first]
        for i in range(70):
            two = [{"r": i}, {"r": i}]
            content["entries"].append({"k": kind, "v": two if kind == "Tensor" else [{"t": two}]})
        content["root"] = {"r": 70}

    rz.save(tmp_path / "a.rz", rz.seg(3))
    with_text(tmp_path / "a.rz", tmp_path / "b.rz", change)
    with pytest.raises(FileError, match="65,536 parts"):
        rz.load(tmp_path / "b.rz")


@pytest.mark.parametrize("weights", [(), (np.ones(3), np.ones(3)), (np.ones(2),), (np.ones((3, 3)),)])
def test_weights_that_do_not_fit_their_space_are_refused(weights, tmp_path):
    from riesz.spaces.space import Weighted

    rz.save(tmp_path / "a.rz", V := (rz.R**3).weighted(np.arange(1.0, 4.0)))
    assert rz.load(tmp_path / "a.rz").inner(np.ones(3), np.ones(3)) == V.inner(np.ones(3), np.ones(3)) == 6.0
    rz.save(tmp_path / "a.rz", Weighted(rz.R**3, weights, False))
    with pytest.raises(FileError, match="weights of shapes"):
        rz.load(tmp_path / "a.rz")


def test_a_trace_with_more_leaves_than_results_is_refused(tmp_path):
    def change(content):
        (record,) = [e for e in content["entries"] if e["k"] == "Record"]
        record["v"][5]["t"] *= 2

    rz.save(tmp_path / "a.rz", lambda x: np.sin(x), x)  # traced once: its own function
    with_text(tmp_path / "a.rz", tmp_path / "b.rz", change)
    with pytest.raises(FileError, match="is broken"):
        rz.load(tmp_path / "b.rz")
