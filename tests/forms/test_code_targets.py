"""Code of closed forms runs in its language and gives the derivative. NumPy and texts are in test_textbook.py."""

from __future__ import annotations

import functools
import inspect
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from sampling import sampled
from textbook import Row, rows

import riesz as rz

TABLE = rows()
OCTAVE = shutil.which("octave-cli") or shutil.which("octave")


@functools.cache
def row(k: int) -> Row:
    return Row(*TABLE[k])


def code(k: int, target: str) -> str | None:
    """The code of a form; None where the language lacks something, which is said."""
    try:
        return None if row(k).form.written().problem else row(k).form.code(target)
    except rz.ExpressionError as problem:
        assert re.search(f"{target}|closed form", str(problem))
        return None


def run(text: str, kind: str, arguments):
    space: dict = {}
    exec(compile(text, "<closed form>", "exec"), space)
    return space[kind](*arguments)


def same(k: int, found) -> None:
    several = row(k).kind == "gradient" and len(row(k).at) > 1
    for one, other in zip(found if several else [found], row(k).expected(), strict=True):
        np.testing.assert_allclose(np.asarray(one, float).reshape(other.shape), other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("k", sampled(range(len(TABLE)), 12))
def test_jax(k):
    jax = pytest.importorskip("jax")
    text = code(k, "jax")
    if text is not None:
        with jax.enable_x64(True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same(k, run(text, row(k).kind, [jax.numpy.asarray(v) for v in row(k).arguments]))


@pytest.mark.parametrize("k", sampled(range(len(TABLE)), 4))
def test_torch(k):
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extra bench")
    text = code(k, "torch")
    if text is not None:
        places = dict(row(k).form.written().reader.selections.indices).values()  # those of rows stay whole numbers
        given = [np.asarray(v) if any([v is i for i in places]) else np.asarray(v, float) for v in row(k).arguments]
        same(k, run(text, row(k).kind, [torch.as_tensor(v) for v in given]))


def matlab(value) -> str:
    value = np.atleast_1d(np.asarray(value, float))
    lines = [" ".join([f"{x:.17g}" for x in np.atleast_1d(line)]) for line in value]
    return f"[{'; '.join(lines)}]"


@pytest.mark.skipif(OCTAVE is None, reason="Octave is not installed (Debian: apt-get install octave)")
def test_matlab_code_in_octave(tmp_path):
    shown, script, tried = [], ["warning off;"], sampled(range(len(TABLE)), 6)
    for k in tried:
        given = row(k)
        text = code(k, "matlab")
        finite = all([np.isfinite(v).all() for v in given.expected()])
        if text is None or not finite or any([np.ndim(v) > 2 for v in given.arguments]):
            continue
        name = f"form_{k}"
        (tmp_path / f"{name}.m").write_text(text.replace(f"= {given.kind}(", f"= {name}(", 1))
        outputs = [f"r{i}" for i in range(len(given.at) if given.kind == "gradient" else 1)]
        call = f"[{', '.join(outputs)}] = {name}({', '.join(map(matlab, given.arguments))});"
        printing = " ".join([f"printf(' %.17g', {r}');" for r in outputs])
        script.append(f"try {call} printf('{k}'); {printing} catch e, printf('{k} %s', e.message); end; printf('\\n');")
        shown.append(k)
    (tmp_path / "all_forms.m").write_text("\n".join(script))
    found = subprocess.run(
        [OCTAVE, "--norc", "--quiet", "all_forms.m"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    lines = found.stdout.splitlines()
    wrong = []
    for k, line in zip(shown, lines, strict=True):
        try:
            numbers = [float(v) for v in line.split()[1:]]
            expected = np.concatenate([np.ravel(v) for v in row(k).expected()])
            np.testing.assert_allclose(numbers, expected, rtol=1e-8, atol=1e-8)
        except (ValueError, AssertionError):
            wrong.append((k, row(k).text, line, code(k, "matlab")))
    assert not wrong
    assert len(shown) > 0.85 * len(tried)


TIED = [
    lambda x, y: np.sum(np.where(y > 0, x**2, x)),
    lambda x, y: np.sum(np.where(y >= 0, x**2, 3 * x) * np.where(y < 0, x, 1.0)),
    lambda x, y: np.sum(np.where(y <= 1, x, 2 * x) * np.where(~(y > 0), x, 1.0)),
    lambda x, y: np.sum(np.where((y > 0) & (x >= 1), x**3, y * x)),
    lambda x, y: np.sum(np.maximum(x * y, 0.0) + np.where(x < y, x, 2 * y)),
    lambda x, y: np.sum(np.where(np.abs(x - y) <= 1, (x - y) ** 2 / 2, np.abs(x - y) - 0.5)),
]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("k", range(len(TIED)))
def test_code_is_exact_where_compared_numbers_are_equal(k, captured):
    """Labels and masks have many such places; at a maximum each side has one half."""
    x, y = np.array([0.0, 1.0, 1.0, 2.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0, -1.0])
    f = (lambda x: TIED[k](x, y)) if captured else TIED[k]
    form = rz.derive(f, *((x,) if captured else (x, y))).gradient
    found: dict = {}
    exec(form.code("numpy"), found)
    result = found["gradient"](
        **({"x": x, "y": y} if "y" in inspect.signature(found["gradient"]).parameters else {"x": x})
    )
    np.testing.assert_allclose(result if captured else result[0], rz.grad(TIED[k])(x, y), atol=1e-14)
