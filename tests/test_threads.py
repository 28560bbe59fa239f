"""Work spread over threads: every part once, errors to the caller, threads that stay awake for a moment and keep off the caller's core."""

import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from riesz import threads

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")


@pytest.fixture(params=["asleep", pytest.param("awake", marks=needs_numba)], autouse=True)
def _between(request, monkeypatch):
    """Between two calls threads sleep, or stay awake as they do once compiled loops are in use."""
    if request.param == "awake":
        from riesz import lingering

        monkeypatch.setattr(threads, "_lingering", lingering)
    else:
        monkeypatch.setattr(threads, "_lingering", None)


def test_spread_does_every_part_once():
    for count in (1, 2, 5, 40):
        done: list[int] = []
        threads.spread(done.append, [(k,) for k in range(count)])
        assert sorted(done) == list(range(count))


def test_spread_uses_other_threads():
    """Two parts that wait for each other both come to an end."""
    meet = threading.Barrier(2, timeout=30)
    names = []
    threads.spread(lambda _: (meet.wait(), names.append(threading.current_thread().name)), [(0,), (1,)])
    assert len(set(names)) == 2


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_an_error_in_one_part_is_the_callers(bad):
    def work(k: int) -> None:
        if k == bad:
            raise ZeroDivisionError(f"part {k}")

    with pytest.raises(ZeroDivisionError, match=f"part {bad}"):
        threads.spread(work, [(k,) for k in range(4)])
    threads.spread(work, [(4,), (5,), (6,)])  # and the workers are still there


@pytest.mark.parametrize("bad", [0, 1])
def test_no_part_runs_on_after_an_error(bad):
    """When spread is over, by an error as well, nobody writes to the arrays any more."""
    going, done = threading.Event(), []

    def work(k: int) -> None:
        if k == bad:
            raise ZeroDivisionError
        going.wait(0.2)
        done.append(k)

    with pytest.raises(ZeroDivisionError):
        threads.spread(work, [(0,), (1,), (2,)])
    seen = len(done)
    going.set()
    threads.spread(lambda _: None, [(0,), (1,), (2,), (3,), (4,)])
    assert seen == len(done) == 2


def test_the_number_of_threads_is_given(monkeypatch):
    own = threads.count() if "RIESZ_THREADS" not in os.environ else None
    for given_text, want in (("3", 3), ("1", 1), ("0", own), ("many", own), ("", own)):
        monkeypatch.setenv("RIESZ_THREADS", given_text)
        assert threads.count() == want or want is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_threads_after_a_fork():
    """A child has no threads of its parent's pool, and makes its own."""
    threads.spread(lambda _: None, [(0,), (1,)])
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            done: list[int] = []
            threads.spread(done.append, [(0,), (1,), (2,)])
            os.write(write, str(sorted(done)).encode())
        finally:
            os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], 30)
    answer = os.read(read, 100) if ready else b"it waits for ever"
    os.close(read)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert answer == b"[0, 1, 2]"


def test_many_callers():
    """Each gets what it asked for, and all of it."""
    found: dict[int, list[int]] = {k: [] for k in range(6)}

    def call(k: int) -> None:
        for _ in range(50):
            threads.spread(found[k].append, [(i,) for i in range(5)])

    callers = [threading.Thread(target=call, args=(k,)) for k in found]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert all(sorted(done) == sorted(list(range(5)) * 50) for done in found.values())


def test_what_was_given_is_let_go():
    """When spread is over, no thread holds the arrays: their memory can be used again."""
    for _ in range(20):
        given = [np.zeros(3), np.zeros(3)]
        before = [sys.getrefcount(x) for x in given]
        threads.spread(lambda x: None, [(x,) for x in given])
        for _ in range(1000):  # without Numba a worker may still be on its way
            if before == [sys.getrefcount(x) for x in given] or threads._lingering is not None:
                break
            time.sleep(0.001)
        assert before == [sys.getrefcount(x) for x in given]


@needs_numba
def test_looking_at_numbers():
    from riesz import lingering

    over, bell = lingering.number(), lingering.number()
    start = time.perf_counter()
    lingering.rest(over, bell, 0)
    assert over[0] == 1 and bell[0] == 0 and time.perf_counter() - start < 1  # nobody rang; it does not wait for ever
    lingering.rest(over, bell, 5)
    assert over[0] == 2
    assert lingering.finished(over, 2) and not lingering.finished(over, 3)
    both = [threading.Thread(target=lambda: [lingering.rest(over, bell, 5) for _ in range(1000)]) for _ in range(4)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    assert over[0] == 4002


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be told cores here")
def test_workers_keep_off_the_callers_core(monkeypatch):
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(threads, "SMALL", len(threads._workers) + 8)
    monkeypatch.setattr(threads, "_workers", threads._workers[: max(len(cores) - 1, 1)])
    if not threads._workers:
        threads.spread(lambda _: None, [(0,), (1,)])
    for here in [*cores[:2], *cores[:2]]:
        monkeypatch.setattr(threads, "_core", lambda here=here: lambda: here)
        threads.spread(lambda _: None, [(0,), (1,)])
        assert os.sched_getaffinity(threads._workers[0]) == set(cores) - ({here} if len(cores) > 1 else set())
    monkeypatch.setattr(threads, "_workers", threads._workers[:1] * (len(cores) + 1))  # more than there are cores: anywhere
    monkeypatch.setattr(threads, "_apart_from", None)
    threads._keep_apart()
    assert os.sched_getaffinity(threads._workers[0]) == set(cores)
    assert os.sched_getaffinity(0) == set(cores)  # the caller's own cores are not touched
    monkeypatch.undo()
    threads._apart_from = None


@needs_numba
def test_the_end_of_a_program():
    """Threads that are awake when it ends, and callers in atexit handlers, do no harm."""
    program = """
import atexit
import sys
from riesz import lingering, threads
atexit.register(lambda: threads.spread(lambda k: sys.stdout.write(f"part {k}\\n"), [(0,), (1,)]))
threads.spread(lambda _: None, [(0,), (1,), (2,)])
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0 and sorted(ended.stdout.split("\n")) == ["", "part 0", "part 1"] and not ended.stderr
