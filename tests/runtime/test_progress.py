"""Progress: on terminals and in notebooks after a while, nothing where output goes elsewhere, nothing left behind."""

import io
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

import riesz as rz
from riesz.runtime import progress
from riesz.runtime.progress import working


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.03)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setattr(progress.Verbosity, "on", None)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)


@pytest.fixture
def terminal(monkeypatch):
    screen = Screen()
    written_to(monkeypatch, screen)
    return screen


def written_to(monkeypatch, file):
    """pytest has a stderr of its own for each phase of a test: ours is that of the module."""
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=file, modules=sys.modules))


def counted(seconds=0.15, rounds=10):
    with working("counting sheep", rounds) as work:
        for k in range(rounds):
            work.say(k + 1, f"{k + 1} legs")
            time.sleep(seconds / rounds)


def test_a_terminal_shows_a_line_and_is_clean_afterwards(terminal):
    counted()
    text = terminal.getvalue()
    assert "counting sheep" in text and "of 10" in text and "legs" in text
    assert "\n" not in text and text.endswith("\r\x1b[2K")


def test_short_work_shows_nothing(terminal):
    with working("short") as work:
        work.say(1)
    time.sleep(0.08)
    assert terminal.getvalue() == ""


def test_what_is_piped_stays_quiet(monkeypatch):
    file = io.StringIO()
    written_to(monkeypatch, file)
    counted()
    assert file.getvalue() == "" and not working("x")
    written_to(monkeypatch, None)
    counted()


def test_verbose_chooses(monkeypatch, terminal):
    with rz.verbose(False):
        counted()
        assert terminal.getvalue() == "" and repr(rz.verbose(False)) == "rz.verbose(False)"
    progress.Verbosity.on = None
    file = io.StringIO()
    written_to(monkeypatch, file)
    with rz.verbose():
        counted()
    assert progress.Verbosity.on is None
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("counting sheep") and lines[-1].endswith("done") and "\x1b" not in file.getvalue()


def test_dumb_terminals_get_nothing(monkeypatch, terminal):
    monkeypatch.setenv("TERM", "dumb")
    counted()
    assert terminal.getvalue() == ""


def test_names_cannot_command_the_terminal(terminal):
    with working("evil \x1b[31m\n\r name"):
        time.sleep(0.1)
    shown = terminal.getvalue().replace("\r\x1b[2K", "")
    assert "evil ?[31m?? name" in shown and "\x1b" not in shown and "\n" not in shown


def test_long_lines_are_cut(monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", "40")
    with working("x" * 500):
        time.sleep(0.1)
    assert max([len(line) for line in terminal.getvalue().split("\r\x1b[2K")]) <= 39


def test_work_within_work_is_one_line(terminal):
    with working("outer") as work, working("inner"):
        work.say(3)
        time.sleep(0.1)
    assert "outer 3" in terminal.getvalue() and "·  inner" in terminal.getvalue()


def test_errors_leave_the_terminal_clean(terminal):
    with pytest.raises(ZeroDivisionError), working("failing"):
        time.sleep(0.1)
        _ = 1 / 0
    assert terminal.getvalue().endswith("\r\x1b[2K") and not progress._active


def test_a_terminal_that_is_gone_does_no_harm(terminal):
    terminal.close()
    counted()


def test_many_threads(terminal):
    threads = [threading.Thread(target=counted) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not progress._active and terminal.getvalue().endswith("\r\x1b[2K")


def test_a_notebook_shows_an_output_that_changes(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data)

    def display(data, raw, display_id):
        shown.append(data)
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: shell
    fake.display = types.ModuleType("IPython.display")
    fake.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    counted()
    assert len(shown) > 2 and "counting sheep" in shown[0]["text/plain"]
    assert shown[-1] == {"text/plain": "", "text/html": "<span></span>"}  # no empty block is left


def test_fits_solvers_and_compilation_show_themselves(terminal, monkeypatch):
    t = np.linspace(0.0, 1.0, 20)

    def residual(p):
        time.sleep(0.04)
        return p["a"] * np.exp(p["k"] * t) - 2.0 * np.exp(-t)

    rz.levenberg_marquardt(rz.function(residual), {"a": 1.0, "k": 0.0})
    assert "compiling" not in terminal.getvalue()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    n = 400
    L = rz.jacobian(lambda x: 4.0 * x - np.roll(x, 1) - np.roll(x, -1))(np.ones(n))
    L.solver(method="cg")
    seen = []
    real = progress.Work.__enter__
    monkeypatch.setattr(progress.Work, "__enter__", lambda self: [seen.append(self.title), real(self)][1])
    L.solve(np.ones(n), method="cg")
    L.solve(np.ones(n), method="dense")
    rz.gauss_newton(lambda p: p**2 - 2.0, 1.0)
    rz.compile(lambda x: np.sin(x) * x, np.ones(3))
    assert any(["conjugate gradients, 400 unknowns" in s for s in seen])
    assert any(["factorising a 400 × 400 map" in s for s in seen])
    assert "Gauss–Newton" in seen
    assert any([s.startswith("compiling <lambda>, ") and "steps" in s for s in seen])


def test_first_runs_of_compiled_code_are_shown_once(terminal, monkeypatch):
    pytest.importorskip("numba")
    seen = []
    real = progress.Work.__enter__
    monkeypatch.setattr(progress.Work, "__enter__", lambda self: [seen.append(self.title), real(self)][1])
    g = rz.compile(lambda x: np.sum(np.sin(x) * x), np.ones(5000), backend="numba")
    for _ in range(3):
        g(np.ones(5000))
    assert len(seen) == 2 and all(["backend 'numba'" in s for s in seen])


def test_quiet_work_costs_next_to_nothing(monkeypatch):
    written_to(monkeypatch, io.StringIO())
    start = time.perf_counter()
    for _ in range(1000):
        with working("x") as work:
            work.say(1)
    assert time.perf_counter() - start < 0.1  # microseconds each


def test_a_process_that_is_piped_writes_nothing():
    code = "import riesz as rz, numpy as np; rz.levenberg_marquardt(lambda x: x - 1.0, np.zeros(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "" and done.stdout == ""
