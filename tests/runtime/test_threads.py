"""Work spread over threads: every part once, errors to the caller; threads that stay awake only where that is asked for;
matrix products on one core."""

import importlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from riesz.runtime import blas_threads, tuning
from riesz.runtime import pool as threads

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")


POOLS: dict[str, tuple[object, list[int]]] = {"asleep": (None, []), "awake": (None, [])}
"""The queue and the workers of each kind of pool."""


@pytest.fixture(params=["asleep", pytest.param("awake", marks=needs_numba)], autouse=True)
def between(request, monkeypatch):
    """Between two calls threads sleep, or stay awake for a moment as RIESZ_SPIN=1 asks for."""
    spin = importlib.import_module("riesz.runtime.spin_wait") if request.param == "awake" else None
    monkeypatch.setattr(threads, "_spinning", lambda: spin)
    calls, workers = POOLS[request.param]
    monkeypatch.setattr(threads, "_calls", calls)
    monkeypatch.setattr(threads, "_workers", workers)
    threads._hire(1)
    POOLS[request.param] = threads._calls, workers


asleep = pytest.mark.parametrize("between", ["asleep"], indirect=True)


def test_spread_does_every_part_once():
    for count in (0, 1, 2, 5, 40):
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


@asleep
def test_nobody_waits_for_a_thread_that_comes_too_late(monkeypatch):
    """Workers that are busy elsewhere take no part: the caller does all of it, and is not held up."""
    monkeypatch.setattr(threads, "_calls", SimpleQueue())
    monkeypatch.setattr(threads, "_workers", [-1, -1])
    given = [np.zeros(3), np.zeros(3), np.zeros(3)]
    before = [sys.getrefcount(x) for x in given]
    done: list[str] = []
    threads.spread(lambda x: done.append(threading.current_thread().name), [(x,) for x in given])
    assert done == [threading.current_thread().name] * 3
    assert before == [sys.getrefcount(x) for x in given]  # though calls are still in the queue
    while not threads._calls.empty():
        threads._calls.get().help()
    assert len(done) == 3
    with tuning.override(WAITING_CALLS=5):
        for _ in range(100):
            threads.spread(done.append, [("",), ("",), ("",)])
            assert threads._calls.qsize() <= 5 + 2  # nothing piles up
    assert len(done) == 303


@asleep
def test_calls_that_have_parts_are_not_dropped(monkeypatch):
    monkeypatch.setattr(threads, "_calls", SimpleQueue())
    others = [threads._Call(print, [(k,)] * (k % 2)) for k in range(6)]
    for call in others:
        threads._calls.put(call)
    threads._drop_what_is_over()
    assert [threads._calls.get() for _ in range(threads._calls.qsize())] == others[1::2]


@asleep
def test_the_number_of_threads_is_given(monkeypatch):
    own = threads.count() if "RIESZ_THREADS" not in os.environ else None
    for given_text, want in (("3", 3), ("1", 1), ("0", own), ("many", own), ("", own)):
        monkeypatch.setenv("RIESZ_THREADS", given_text)
        assert threads.count() == want or want is None


@asleep
def test_threads_are_worth_their_beginning(monkeypatch):
    monkeypatch.setenv("RIESZ_THREADS", "16")
    assert [threads.worth(n) for n in (-1, 0, 1, 2, 3, 4, 15, 61, 244, 10**6)] == [1, 1, 1, 2, 2, 3, 4, 8, 16, 16]
    monkeypatch.setenv("RIESZ_THREADS", "2")
    assert [threads.worth(n) for n in (0, 1, 2, 3, 100)] == [1, 1, 2, 2, 2]


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
    """When spread is over, no thread holds the arrays, so their memory can be used again; after an error neither."""

    def work(x: object, bad: bool) -> None:
        if bad:
            raise ZeroDivisionError

    for bad in (False, True) * 10:
        given = [np.zeros(3), np.zeros(3)]
        before = [sys.getrefcount(x) for x in given]
        with suppress(ZeroDivisionError):
            threads.spread(work, [(x, bad and k == 1) for k, x in enumerate(given)])
        assert before == [sys.getrefcount(x) for x in given]


def test_an_interrupt_waits_for_the_parts(monkeypatch):
    """Ctrl-C ends a sum when nobody writes any more, not before."""
    going, done = threading.Event(), []

    class Interrupted:
        """A queue where the wait is interrupted twice."""

        asked = 0

        def __init__(self) -> None:
            self.things: SimpleQueue[None] = SimpleQueue()

        def put(self, thing: None) -> None:
            self.things.put(thing)

        def get(self) -> None:
            Interrupted.asked += 1
            if Interrupted.asked < 3:
                going.set()
                raise KeyboardInterrupt
            self.things.get()

    threads.spread(lambda _: None, [(0,), (1,)])  # there are workers
    monkeypatch.setattr(threads, "_queue", Interrupted)
    begun, caller = threading.Event(), threading.current_thread()

    def work(_: int) -> None:
        if threading.current_thread() is caller:
            begun.wait(30)
        else:
            begun.set()
            going.wait(30)
            time.sleep(0.05)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        threads.spread(work, [(0,), (1,)])
    assert done == [1] and Interrupted.asked >= 3


def test_no_thread_can_be_had(monkeypatch):
    """Then the caller does all of it."""

    def start(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_workers", [])
    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[int] = []
    threads.spread(done.append, [(0,), (1,), (2,)])
    assert done == [0, 1, 2]


def test_work_that_is_spread_has_one_thread():
    counts: list[int] = []
    threads.spread(lambda _: counts.append(threads.count()), [(k,) for k in range(4)])
    assert counts == [1] * 4


# -- RIESZ_SPIN=1 -------------------------------------------------------------------------------------------


def asked(environment: str, program: str) -> str:
    """What a program prints where RIESZ_SPIN is so."""
    given = {**os.environ, "RIESZ_SPIN": environment, "RIESZ_THREADS": "2"}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=given)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


PLAIN = """
import sys
import numpy as np
from riesz import relations, seg
from riesz.runtime import pool
import os
told = []
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity = lambda *given: told.append(given)
index = np.arange(1 << 20) % 1000
plan = relations.function(seg(1 << 20), seg(1000), index).plan()
for _ in range(3):
    plan(np.ones(1 << 20))
pool.spread(lambda _: None, [(0,), (1,)])
print(len(pool._workers), type(pool._calls).__name__, "riesz.runtime.spin_wait" in sys.modules, bool(told))
"""


@asleep
@pytest.mark.parametrize("environment", ["", "0", "yes"])
def test_threads_neither_spin_nor_are_pinned_unless_asked_for(environment):
    assert asked(environment, PLAIN) == "1 SimpleQueue False False\n"


@needs_numba
@asleep
def test_threads_spin_when_asked_for():
    wanted = "True" if hasattr(os, "sched_setaffinity") else "False"
    assert asked("1", PLAIN) == f"1 SpinQueue True {wanted}\n"


@asleep
def test_spinning_without_numba_is_said():
    found = asked("1", "import sys\nsys.modules['numba'] = None\n" + PLAIN)
    assert "RIESZ_SPIN=1 has no effect" in found and "1 SimpleQueue False False\n" in found


@needs_numba
@asleep
def test_looking_at_numbers():
    from riesz.runtime import spin_wait

    bell = np.zeros(1, np.int64)
    start = time.perf_counter()
    spin_wait.wait(bell, 0, 1 << 16, 1 << 12)
    assert time.perf_counter() - start < 1  # nobody rang; it does not wait for ever
    queue = spin_wait.SpinQueue()
    found: list[int] = []
    taker = threading.Thread(target=lambda: found.extend([queue.get() for _ in range(4000)]))
    givers = [threading.Thread(target=lambda: [queue.put(k) for k in range(1000)]) for _ in range(4)]
    for t in (taker, *givers):
        t.start()
    for t in (taker, *givers):
        t.join()
    assert sorted(found) == sorted([*range(1000)] * 4)


@needs_numba
@pytest.mark.parametrize("between", ["awake"], indirect=True)
@pytest.mark.parametrize(("cores", "awake"), [(1, False), (2, False), (3, False), (4, True)])
def test_with_few_cores_threads_sleep(cores, awake, monkeypatch):
    """Three workers that stay awake would take the cores from those that work."""
    from riesz.runtime import spin_wait

    waits: list[int] = []
    wait = spin_wait.wait
    monkeypatch.setattr(threads, "cores", lambda: range(cores))
    monkeypatch.setattr(spin_wait, "_core", lambda: None)
    monkeypatch.setenv("RIESZ_THREADS", "4")
    threads.spread(lambda _: time.sleep(0.01), [(k,) for k in range(4)])
    assert len(threads._workers) == 3
    time.sleep(0.05)
    monkeypatch.setattr(spin_wait, "wait", lambda *given: (waits.append(1), wait(*given)))
    threads.spread(lambda _: time.sleep(0.01), [(k,) for k in range(4)])
    time.sleep(0.05)
    assert bool(waits) == awake


@pytest.fixture
def told(monkeypatch):
    """Which cores workers were told, with one worker on a machine of four cores, and where the caller is."""
    from riesz.runtime import spin_wait

    now: dict[str, Any] = {"core": 0, "cores": {0, 1, 2, 3}, "workers": [7]}
    found: list[set[int]] = []
    monkeypatch.setattr(spin_wait, "_settled", None)
    monkeypatch.setattr(spin_wait, "_calls", None)
    monkeypatch.setattr(spin_wait, "_awake", True)
    monkeypatch.setattr(spin_wait, "_core", lambda: lambda: now["core"])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: found.append(set(cores)), raising=False)

    def call(**more: Any) -> list[set[int]]:
        now.update(more)
        found.clear()
        spin_wait.settle(spin_wait.SpinQueue(), now["workers"], now["cores"])
        return list(found)

    return call


@needs_numba
@asleep
def test_workers_keep_off_the_callers_core(told):
    assert told() == [{1, 2, 3}] and not told()  # told once
    assert told(core=2) == [{0, 1, 3}] and not told()
    assert told(core=0, cores={0}) == [{0}]  # a caller that may use one core only
    assert told(cores={0, 1, 2, 3}) == [{1, 2, 3}]
    assert told(workers=[7, 8, 9]) == [{1, 2, 3}] * 3
    assert told(workers=[7, 8, 9, 10]) == [{0, 1, 2, 3}] * 4  # as many as there are cores
    assert told(cores=set(range(64))) == [set(range(1, 64))] * 4
    with tuning.override(PINNED_WORKERS_BELOW=4):
        assert told(core=1) == [set(range(64))] * 4 and not told(core=5)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be told cores here")
def test_the_callers_cores_are_its_own():
    before = os.sched_getaffinity(0)
    threads.spread(lambda _: None, [(0,), (1,)])
    assert os.sched_getaffinity(0) == before
    assert all(os.sched_getaffinity(w) <= before for w in threads._workers)


@needs_numba
@asleep
@pytest.mark.parametrize("environment", ["0", "1"])
def test_the_end_of_a_program(environment):
    """Threads that are awake when it ends, and callers in atexit handlers, do no harm."""
    program = """
import atexit, sys
from riesz.runtime import pool
atexit.register(lambda: pool.spread(lambda k: sys.stdout.write(f"part {k}\\n"), [(0,), (1,)]))
pool.spread(lambda _: None, [(0,), (1,), (2,)])
atexit.register(lambda: pool.spread(lambda k: sys.stdout.write(f"part {k}\\n"), [(2,), (3,)]))
"""
    for _ in range(3):
        assert sorted(asked(environment, program).split()) == sorted(["part"] * 4 + list("0123"))


@asleep
def test_numba_that_may_not_compile():
    lines = ["import numpy as np", "from riesz import relations, seg", "index = np.ones(1 << 20, int)"]
    program = "\n".join([*lines, "print(relations.gather(seg(2), seg(1 << 20), index).plan()(np.ones(2)).sum())"])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert ended.stdout == f"{float(1 << 20)}\n", ended.stderr


# -- BLAS ---------------------------------------------------------------------------------------------------


class Library:
    """A BLAS library that uses some threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def get_num_threads(self) -> int:
        return self.threads

    def set_num_threads(self, threads: int) -> None:
        self.threads = threads


@pytest.fixture
def libraries(monkeypatch):
    found = [Library(4), Library(3)]
    monkeypatch.setattr(blas_threads, "_libraries", lambda: found)
    return found


def numbers(libraries: list[Library]) -> list[int]:
    return [library.threads for library in libraries]


@asleep
def test_matrix_products_run_on_one_core_and_then_as_before(libraries):
    with blas_threads.one_blas_thread():
        assert numbers(libraries) == [1, 1]
        with blas_threads.one_blas_thread():
            assert numbers(libraries) == [1, 1]
        assert numbers(libraries) == [1, 1]
    assert numbers(libraries) == [4, 3]
    with pytest.raises(ZeroDivisionError), blas_threads.one_blas_thread():
        raise ZeroDivisionError
    assert numbers(libraries) == [4, 3]


@asleep
def test_a_library_that_cannot_be_told(libraries):
    def refuse(threads: int) -> None:
        raise OSError("no")

    libraries[1].set_num_threads = refuse
    for _ in range(2):
        with pytest.raises(OSError, match="no"), blas_threads.one_blas_thread():
            raise AssertionError("entered")
        assert numbers(libraries) == [4, 3]


@asleep
def test_the_last_of_several_threads_restores(libraries):
    entered, leave, seen = threading.Event(), threading.Event(), []

    def other() -> None:
        with blas_threads.one_blas_thread():
            entered.set()
            leave.wait(30)
            seen.append(numbers(libraries))

    thread = threading.Thread(target=other)
    with blas_threads.one_blas_thread():
        thread.start()
        entered.wait(30)
    assert numbers(libraries) == [1, 1]  # the other one is still inside
    leave.set()
    thread.join()
    assert seen == [[1, 1]] and numbers(libraries) == [4, 3]


@asleep
def test_another_library_sets_its_own_number(libraries):
    """Its number stays, whether it was set before or meanwhile, in whatever order the two leave."""
    own = numbers(libraries)
    for library in libraries:
        library.threads = 1  # the other one is inside
    with blas_threads.one_blas_thread():
        for library, before in zip(libraries, own, strict=True):
            library.threads = before  # and leaves first
    assert numbers(libraries) == own
    with blas_threads.one_blas_thread():
        libraries[0].threads = 2
    assert numbers(libraries) == [2, 3]


@asleep
def test_numpys_own_library_is_told():
    threadpoolctl = importlib.import_module("threadpoolctl")

    def now() -> list[int]:
        return [lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]

    before = now()
    if not before:
        pytest.skip("this NumPy's BLAS cannot be told")
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        with blas_threads.one_blas_thread():
            assert set(now()) == {1}
        assert set(now()) == {3}
    assert now() == before
