"""Work spread over threads: every part once, errors to the caller, threads that stay awake for a moment and keep off the caller's core."""

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

import numpy as np
import pytest

from riesz import threads

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")


@pytest.fixture(params=["asleep", pytest.param("awake", marks=needs_numba)], autouse=True)
def between(request, monkeypatch):
    """Between two calls threads sleep, or stay awake as they do once compiled loops are in use."""
    if request.param == "awake":
        from riesz import lingering

        monkeypatch.setattr(threads, "_lingering", lingering)
    else:
        monkeypatch.setattr(threads, "_lingering", None)


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


@pytest.mark.parametrize("between", ["asleep"], indirect=True)
def test_the_number_of_threads_is_given(monkeypatch):
    own = threads.count() if "RIESZ_THREADS" not in os.environ else None
    for given_text, want in (("3", 3), ("1", 1), ("0", own), ("many", own), ("", own)):
        monkeypatch.setenv("RIESZ_THREADS", given_text)
        assert threads.count() == want or want is None


@pytest.mark.parametrize("between", ["asleep"], indirect=True)
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

    class Interrupted(SimpleQueue):  # type: ignore[type-arg]
        asked = 0

        def get(self, *args):
            Interrupted.asked += 1
            if Interrupted.asked < 3:
                going.set()
                raise KeyboardInterrupt
            return super().get(*args)

    monkeypatch.setattr(threads, "SimpleQueue", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.spread(lambda k: k and (going.wait(30), time.sleep(0.05), done.append(k)), [(0,), (1,), (2,)])
    assert sorted(done) == [1, 2]


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


@needs_numba
@pytest.mark.parametrize("between", ["asleep"], indirect=True)
def test_looking_at_numbers():
    from riesz import lingering

    over, bell = lingering.number(), lingering.number()
    start = time.perf_counter()
    lingering.rest(over, bell, 0)
    lingering.finish(over, 2)
    assert over[0] == 1 and bell[0] == 0 and time.perf_counter() - start < 1  # nobody rang; it does not wait for ever
    lingering.rest(over, bell, 5)
    assert over[0] == 2
    several = [threading.Thread(target=lambda: [lingering.rest(over, bell, -1) for _ in range(1000)]) for _ in range(4)]
    for t in several:
        t.start()
    for t in several:
        t.join()
    assert over[0] == 4002


@needs_numba
@pytest.mark.parametrize(("cores", "awake"), [(1, False), (2, False), (3, False), (4, True)])
def test_with_few_cores_threads_sleep(cores, awake, monkeypatch):
    """Three workers that stay awake would take the cores from those that work."""
    from riesz import lingering

    rests: list[int] = []
    rest = lingering.rest
    monkeypatch.setattr(threads, "_cores", lambda: range(cores))
    monkeypatch.setattr(threads, "_core", lambda: None)
    monkeypatch.setattr(threads, "_workers", [*threads._workers, -1, -1, -1][:3])
    monkeypatch.setattr(lingering, "rest", lambda *given: (rests.append(1), rest(*given)))
    threads.spread(lambda _: None, [(0,), (1,)])
    assert bool(rests) == (awake and threads._lingering is not None)


@pytest.fixture
def told(monkeypatch):
    """Which cores workers were told, with one worker on a machine of four cores, and where the caller is."""
    where: dict[str, object] = {"core": 0, "cores": {0, 1, 2, 3}}
    found: list[set[int]] = []
    monkeypatch.setattr(threads, "_apart", None)
    monkeypatch.setattr(threads, "_workers", [7])
    monkeypatch.setattr(threads, "_core", lambda: lambda: where["core"])
    monkeypatch.setattr(threads, "_cores", lambda: where["cores"])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: found.append(set(cores)), raising=False)

    def call(**now: object) -> list[set[int]]:
        where.update(now)
        found.clear()
        threads._keep_apart()
        return list(found)

    return call


@pytest.mark.parametrize("between", ["asleep"], indirect=True)
def test_workers_keep_off_the_callers_core(told, monkeypatch):
    assert told() == [{1, 2, 3}] and not told()  # told once
    assert told(core=2) == [{0, 1, 3}] and not told()
    assert told(core=0, cores={0}) == [{0}]  # a caller that may use one core only
    assert told(cores={0, 1, 2, 3}) == [{1, 2, 3}]
    monkeypatch.setattr(threads, "_workers", [7, 8, 9])
    assert told() == [{1, 2, 3}] * 3
    monkeypatch.setattr(threads, "_workers", [7, 8, 9, 10])  # as many as there are cores
    assert told() == [{0, 1, 2, 3}] * 4
    assert told(cores=set(range(64))) == [set(range(1, 64))] * 4
    monkeypatch.setattr(threads, "SMALL", 4)
    assert told(core=1) == [set(range(64))] * 4 and not told(core=5)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be told cores here")
def test_the_callers_cores_are_its_own():
    before = os.sched_getaffinity(0)
    threads.spread(lambda _: None, [(0,), (1,)])
    assert os.sched_getaffinity(0) == before
    assert all(os.sched_getaffinity(w) <= before for w in threads._workers)


@needs_numba
@pytest.mark.parametrize("between", ["asleep"], indirect=True)
@pytest.mark.parametrize("first", [True, False])
def test_the_end_of_a_program(first):
    """Threads that are awake when it ends, and callers in atexit handlers, do no harm."""
    program = ["threads.linger()", "atexit.register(lambda: threads.spread(lambda k: sys.stdout.write(f'part {k}\\n'), [(0,), (1,)]))"]
    program = [
        "import atexit, sys",
        "from riesz import threads",
        *program[:: 1 if first else -1],
        "threads.spread(lambda _: None, [(0,), (1,), (2,)])",
    ]
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0 and sorted(ended.stdout.split("\n")) == ["", "part 0", "part 1"] and not ended.stderr


@pytest.mark.parametrize("between", ["asleep"], indirect=True)
def test_numba_that_may_not_compile():
    lines = ["import numpy as np", "from riesz import relations, seg", "index = np.ones(1 << 20, int)"]
    program = "\n".join([*lines, "print(relations.gather(seg(2), seg(1 << 20), index).plan()(np.ones(2)).sum())"])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert ended.stdout == f"{float(1 << 20)}\n", ended.stderr
