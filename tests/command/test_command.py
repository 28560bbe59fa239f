"""The command: results on standard output, messages on standard error, exit codes, help, completion."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import katex
import numpy as np
import pytest

import riesz as rz
from riesz.command.arguments import EXAMPLES, FOLDERS, TARGETS, parser
from riesz.command.command_line import main
from riesz.command.completion import script, subcommands

LAYER = ["x, W, b -> tanh(W @ x + b)", "--shapes", "3", "2,3", "2"]
SQUARES = ["A, x, b -> sum((A @ x - b) ** 2)", "--shapes", "5,3", "3", "5"]


@pytest.fixture
def riesz(capsys):
    """Run the command in this process: exit code, standard output, standard error."""

    def run(*words):
        code = main(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


def process(*words, **more):
    return subprocess.run([sys.executable, "-m", "riesz", *words], capture_output=True, text=True, check=False, **more)


# -- derive, explain, export ------------------------------------------------------------------------------------


def test_derive_in_each_format(riesz):
    code, out, err = riesz("derive", *LAYER)
    assert code == 0 and err == ""
    assert "∂f/∂x = EW" in out and "f^[1r](x, W, b) =" in out
    assert "\\frac" in riesz("derive", *LAYER, "--format", "latex")[1]
    found = json.loads(riesz("derive", *LAYER, "--format", "json")[1])
    assert found["shapes"] == ["3", "2,3", "2"] and found["arguments"] == ["x", "W", "b"]
    assert found["jacobian"]["unicode"].startswith("∂f/∂x = EW") and found["adjoint"]["steps"] > 0
    math = riesz("derive", *LAYER, "--format", "mathml", "--notation", "matrix")[1]
    assert ElementTree.fromstring(math).tag.endswith("math")
    page = riesz("derive", *LAYER, "--format", "html")[1]
    assert page.startswith("<!doctype html>") and "<math" in page and "$$" not in page and "<script" not in page


@pytest.mark.parametrize(
    "text", ["x -> sin(x) / x", "x, y -> where(x >= y, x * y, -y)", "x -> [x[0] + x[1], x[0] * x[2]]"]
)
def test_derivations_in_latex_are_read_by_katex(riesz, text):
    """Reasons too, with their angles and products."""
    katex.parse(riesz("explain", text, "--format", "latex")[1])
    katex.parse(riesz("derive", text, "--format", "latex", "--notation", "matrix")[1])


def test_titles_in_html_are_escaped(riesz):
    page = riesz("derive", "x, y -> where(x < y, x, y > x)", "--format", "html")[1]
    assert "x &lt; y" in page


@pytest.mark.parametrize("form", ["unicode", "latex", "mathml", "html", "json"])
def test_explain(riesz, form):
    code, out, _ = riesz("explain", "x -> sum(sin(x) ** 2)", "--shapes", "3", "--format", form)
    assert code == 0 and "chain rule" in out and "$$" not in out


@pytest.mark.parametrize("target", TARGETS)
def test_export(riesz, target, tmp_path):
    file = tmp_path / "code"
    assert riesz("export", *SQUARES, "--to", target, "-o", str(file)) == (0, "", f"riesz: wrote {file}\n")
    form = rz.derive("A, x, b -> sum((A @ x - b) ** 2)", rz.R ** (5, 3), rz.R**3, rz.R**5).gradient
    assert file.read_text().strip() == form.code(target).strip()


def test_exported_code_runs_alone(riesz):
    names = {}
    exec(riesz("export", *SQUARES, "--to", "numpy")[1], names)
    A, x, b = np.arange(15.0).reshape(5, 3), np.ones(3), np.arange(5.0)
    np.testing.assert_allclose(names["gradient"](A, x, b)[1], 2 * A.T @ (A @ x - b))


def test_targets_that_are_not_there_are_refused_by_name(riesz):
    code, out, err = riesz("export", *SQUARES, "--to", "rust")
    assert (code, out) == (2, "") and "Rust is not written yet; the targets are numpy, jax" in err
    assert "'basic' is not known" in riesz("export", *SQUARES, "--to", "basic")[2]


def test_export_to_c_writes_a_folder(riesz, tmp_path):
    code, _, err = riesz("export", *SQUARES, "--to", "c", "-o", str(tmp_path / "code"))
    assert code == 0 and "main.c" in err
    assert sorted([p.suffix for p in (tmp_path / "code").iterdir()]) == [".c", ".c", ".h", ".txt"]
    assert "give its name with -o" in riesz("export", *SQUARES, "--to", "c")[2]


# -- at a point -------------------------------------------------------------------------------------------------


def test_check_passes_and_fails(riesz, tmp_path):
    code, out, _ = riesz("check", *SQUARES)
    assert code == 0 and "all 11 passed" in out
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import riesz as rz\nf = rz.custom_derivative(lambda x: x * x, lambda x: lambda v: 3 * x * v)\n"
        "def g(x):\n    return f(x)\n"
    )
    code, out, _ = riesz("check", f"{wrong}:g", "--shapes", "scalar", "--format", "json")
    found = json.loads(out)
    assert code == 1 and not found["passed"]
    assert any(not row["ok"] for row in found["rows"])


def test_spy_and_cost(riesz, tmp_path):
    bands = ["x -> x[1:] * x[:-1]", "--shapes", "12"]
    assert "⠑" in riesz("spy", *bands)[1] or riesz("spy", *bands)[1].strip()
    picture = tmp_path / "J.svg"
    assert riesz("spy", *bands, "-o", str(picture))[0] == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert riesz("spy", "x -> sum(x ** 3)", "--shapes", "9", "--hessian")[0] == 0
    code, out, _ = riesz("cost", *bands, "--columns", "1", "50", "--format", "json")
    plans = json.loads(out)["plans"]
    assert code == 0 and [p["columns"] for p in plans] == [1, 50]
    assert all(sum(w["chosen"] for w in p["ways"]) == 1 for p in plans)
    assert riesz("cost", *bands, "--columns", "-1")[0] == 2


def test_the_order_of_contraction(riesz):
    product = ["x, A -> A @ (A @ x)", "--shapes", "20", "20,20"]
    code, out, _ = riesz("diagram", *product, "--columns", "5")
    assert code == 0 and "for 5 right-hand sides" in out and "for 5" not in riesz("diagram", *product)[1]
    code, out, err = riesz("diagram", *product, "--columns", "-5")
    assert code == 2 and not out and "0 or more" in err


@pytest.mark.parametrize("more", [[], ["--adjoint"]])
def test_diagram(riesz, more):
    code, out, _ = riesz("diagram", *LAYER, *more)
    assert code == 0 and ElementTree.fromstring(out).tag.endswith("svg")


def test_bench(riesz):
    code, out, _ = riesz("bench", "x -> sum(tanh(x))", "--shapes", "10", "--seconds", "0", "--format", "json")
    rows = json.loads(out)["times"]
    assert code == 0 and [r["what"] for r in rows][:2] == ["value", "gradient"] and all(r["seconds"] > 0 for r in rows)


# -- files of the user's ----------------------------------------------------------------------------------------


def test_a_function_of_a_file_with_its_neighbours(riesz, tmp_path):
    (tmp_path / "neighbour.py").write_text("import numpy as np\ndef square(x):\n    return np.sum(x * x)\n")
    model = tmp_path / "model.py"
    model.write_text(
        "from neighbour import square\nclass A:\n    f = staticmethod(square)\ndef loss(x):\n    return 3 * square(x)\n"
    )
    code, out, _ = riesz("derive", f"{model}:loss", "--shapes", "4", "--notation", "matrix")
    assert (code, out) == (0, "6x\n")
    assert riesz("derive", f"{model}:A.f", "--shapes", "4", "--notation", "matrix")[1] == "2x\n"
    sys.modules.pop("neighbour"), sys.modules.pop("model")


def test_arguments_with_defaults_need_no_shapes(riesz, tmp_path):
    file = tmp_path / "defaults.py"
    file.write_text("def f(x, y, n=3):\n    return x * y ** n\n\ndef g(*xs):\n    return xs[0] * xs[1]\n")
    assert riesz("export", f"{file}:f", "--shapes", "scalar", "scalar", "--to", "text")[1].startswith("x, y -> ")
    assert riesz("derive", f"{file}:f")[0] == 0
    assert riesz("derive", f"{file}:f", "--shapes", "2", "2", "2", "2")[0] == 2
    assert "x0" in riesz("derive", f"{file}:g", "--shapes", "2", "2", "--format", "json")[1]
    sys.modules.pop("defaults")


def test_combinators_of_a_file_know_their_space(riesz, tmp_path):
    file = tmp_path / "terms_of_mine.py"
    file.write_text("import riesz as rz\nf = rz.ln @ rz.sin\nx = rz.proj(0) * rz.proj(1)\n")
    assert riesz("derive", f"{file}:f", "--notation", "paper")[0] == 0
    code, _, err = riesz("derive", f"{file}:x")
    assert code == 2 and "fits many spaces" in err
    sys.modules.pop("terms_of_mine")


def test_mistakes_in_files_are_sentences(riesz, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    code, _, err = riesz("derive", f"{broken}:f", "--shapes", "3")
    assert code == 1 and "ZeroDivisionError" in err and "was imported" in err
    assert riesz("derive", f"{tmp_path}/none.py:f")[0] == 2
    assert "it has no functions" in riesz("derive", f"{broken}:f")[2] or riesz("derive", f"{broken}:f")[0] == 1
    good = tmp_path / "good.py"
    good.write_text("def g(x):\n    return x\n")
    assert "good.py has no f; it has g" in riesz("derive", f"{good}:f")[2]
    assert "which function?" in riesz("derive", str(good))[2]
    for name in ("broken", "good"):
        sys.modules.pop(name, None)


# -- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["derive", "x -> sin(y)"], 1, "unknown name y"),
        (["derive", "x -> __import__('os')"], 1, "unknown function __import__"),
        (["derive", "x -> sin(x)", "--shapes", "3", "4"], 2, "takes 1 shape (x); given are 2: 3 4"),
        (["derive", "x, y -> x * y", "--shapes", "3"], 2, "takes 2 shapes (x, y); given are 1: 3"),
        (["derive", " -> 1"], 2, "nothing to differentiate in"),
        (["derive", "x -> sin(x)", "--shapes", "three"], 2, "'three' is no shape"),
        (["derive", "x -> sin(x)", "--shapes", "-3"], 2, ""),
        (["derive", "x -> sin(x)", "--format", "word"], 2, "invalid choice"),
        (["derive"], 2, "riesz derive --help has examples"),
        (["differentiate", "x"], 2, "invalid choice"),
        (["derive", "x -> sum(x)", "-o", "/nowhere/at/all"], 2, "cannot write"),
        (["play", "nonsense"], 2, "neither a text"),
        (["play", "--seconds", "0"], 2, "a time limit is more than 0"),
        (["play", "--seconds", "nan"], 2, "a time limit is more than 0"),
        (["play", "--port", "70000"], 2, "ports go from 0"),
        (["check", "x -> sin(x)", "--seed", "-1"], 2, "is no seed"),
        (["derive", "x -> outer(x, x) @ outer(x, x)", "--shapes", "100000"], 1, "the limit is"),
    ],
)
def test_mistakes_say_what_to_write(riesz, words, code, said):
    found, out, err = riesz(*words)
    assert found == code and out == "" and err.startswith("riesz: ") and said in err


@pytest.mark.parametrize(
    "name, said",
    [
        ("three", "is 3, which is no function"),
        ("Model", "which is no function"),
        ("model.gone", "model has no gone; it has loss"),
        ("gone", "it has speaks"),
    ],
)
def test_what_is_no_function_of_a_file_is_named(riesz, tmp_path, name, said):
    file = tmp_path / "model.py"
    file.write_text(
        "class Model:\n    def loss(self, x):\n        return x\n\n"
        "def speaks(x):\n    print('traced')\n    return 2 * x\n\nmodel, three = Model(), 3\nprint('imported')\n"
    )
    code, out, err = riesz("derive", f"{file}:{name}")
    assert code == 2 and out == "" and said in err


def test_what_a_file_prints_is_no_result(riesz, tmp_path):
    file = tmp_path / "speaking.py"
    file.write_text("print('imported')\ndef f(x):\n    print('traced')\n    return 2 * x\n")
    code, out, err = riesz("derive", f"{file}:f", "--shapes", "3", "--format", "json")
    assert code == 0 and json.loads(out)["jacobian"]["unicode"] == "2I" and "imported" in err and "traced" in err


def test_a_file_that_ends_python_is_a_mistake(riesz, tmp_path):
    file = tmp_path / "script.py"
    file.write_text("def f(x):\n    return x\n\nraise SystemExit(0)\n")
    code, out, err = riesz("derive", f"{file}:f")
    assert code == 2 and out == "" and "__main__" in err


def test_traceback_before_or_behind_the_subcommand(riesz):
    for words in (["--traceback", "derive", "x -> y"], ["derive", "x -> y", "--traceback"]):
        found = process(*words)
        assert found.returncode == 1 and "Traceback" in found.stderr and found.stdout == ""


def test_guessed_shapes_are_told(riesz):
    assert riesz("derive", "x, y -> x * y")[2] == "riesz: no --shapes given, taken as scalar scalar\n"
    assert "taken as 3 3,3" in riesz("derive", "x, A -> A @ x")[2]
    code, _, err = riesz("derive", "x -> reshape(x, [5, 5])")
    assert code == 1 and "no shapes were given" in err


def test_without_words_help_is_a_message(riesz):
    code, out, err = riesz()
    assert code == 2 and out == "" and "examples:" in err


# -- help, completion, doctor -----------------------------------------------------------------------------------


def test_help_has_examples_for_each_subcommand(riesz):
    assert {w.name for w in subcommands()} == {*EXAMPLES}
    for name in EXAMPLES:
        code, out, _ = riesz(name, "--help")
        assert code == 0 and all(line in out for line in EXAMPLES[name])


@pytest.mark.parametrize("line", [e for name in EXAMPLES for e in EXAMPLES[name] if "file.py" not in e])
def test_examples_of_the_help_are_understood(line):
    import shlex

    words = shlex.split(line.split(" > ")[0])
    assert words[0] == "riesz" and parser().parse_args(words[1:]).command == words[1]


def test_completion_in_bash(tmp_path):
    file = tmp_path / "riesz.bash"
    file.write_text(script("bash"))
    ask = f'source {file}; COMP_WORDS=(riesz export x --to ""); COMP_CWORD=4; _riesz; echo "${{COMPREPLY[@]}}"'
    found = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    assert found == [*TARGETS, *FOLDERS]
    ask = f'source {file}; COMP_WORDS=(riesz de); COMP_CWORD=1; _riesz; echo "${{COMPREPLY[@]}}"'
    assert subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.split() == ["derive"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_read_by_their_shells(shell, tmp_path):
    text = script(shell)
    assert all(w.name in text for w in subcommands()) and "julia" in text and "SUPPRESS" not in text
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(text)
    subprocess.run([shell, "-n", str(file)], check=True)


def test_doctor(riesz):
    code, out, _ = riesz("doctor")
    assert code == 0 and np.__version__ in out and "threads" in out and "[jax]" in out
    assert json.loads(riesz("doctor", "--format", "json")[1])["riesz"] == rz.__version__


# -- as a process -----------------------------------------------------------------------------------------------


def test_the_process_its_streams_and_its_light_start():
    found = process("--version")
    assert (found.returncode, found.stdout) == (0, f"riesz {rz.__version__}\n")
    code = "import sys; from riesz.command.command_line import main; main(['--help']); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"scipy", "jax", "numba", "matplotlib", "asyncio", "http.server", "riesz.forms", "riesz.show.face"}
    assert heavy & {*loaded} == set() and "riesz.command.arguments" in loaded


def test_the_first_view_loads_no_scipy():
    code = (
        "import sys; from riesz.command.views import Views; v = Views({'code': False, 'file': ''}); v.warm(); "
        "v.answer({'what': 'view', 'text': 'x, W, b -> tanh(W @ x + b)', 'shapes': '3 2,3 2'}); "
        "print(*[m for m in sys.modules if m.startswith('scipy')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == []


def test_a_closed_pipe_is_no_mistake():
    command = f"{sys.executable} -m riesz explain 'x -> sum(sin(x) ** 2)' --shapes 3 | head -n 1"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in found.stderr and found.stdout.count("\n") == 1


def test_no_colour_in_pipes(riesz):
    assert "\x1b" not in riesz("check", "x -> sin(x)")[1]


def test_colour_on_terminals_unless_refused():
    if not hasattr(os, "openpty"):
        pytest.skip("no terminals here")
    for refused in (False, True):
        outer, inner = os.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
        environment |= {"NO_COLOR": "1"} if refused else {}
        words = [sys.executable, "-m", "riesz", "check", "x -> sin(x)"]
        subprocess.run(words, stdout=inner, env=environment, stderr=subprocess.DEVNULL, check=True)
        os.close(inner)
        shown = os.read(outer, 1 << 16).decode()
        os.close(outer)
        assert ("\x1b[32mok" in shown) is not refused


def test_the_script_is_declared():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'riesz = "riesz.command.command_line:main"' in text


def test_browser_tests_say_that_they_are_left_out(monkeypatch):
    import browser

    monkeypatch.delenv("RIESZ_BROWSER", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert browser.left_out().endswith("chromium not found; make test-browser gets them")
    monkeypatch.setenv("RIESZ_BROWSER", "no")
    assert browser.left_out() == "as RIESZ_BROWSER=no says"
