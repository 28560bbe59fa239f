"""Processes that compute for the page, one request at a time each. One that takes too long is ended and replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

from .worker import receive, send

COUNT = 2
"""Processes at a time."""
WAITING = 16
"""Requests that may wait; more are refused at once."""
STARTING = 30.0
"""Seconds that a request waits for a process, which may have to start first."""
PATIENCE = 0.3
"""Seconds after which a request that a newer one of the same page has made useless is ended for it."""


class Outcome(NamedTuple):
    """What became of a request: "done", "slow", "busy", "old", "broken" or "hopeless", and the answer."""

    kind: str
    answer: Any = None


class Worker:
    """One process; `ask` blocks until it answers or is ended."""

    def __init__(self, setup: dict[str, Any]) -> None:
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            environment.setdefault(name, "1")
        command = [sys.executable, "-m", f"{__package__}.worker"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        with contextlib.suppress(OSError):
            send(self._in, setup)
        self.ended = False

    def listen(self) -> Any:
        """The next message; None if the process is gone."""
        try:
            return receive(self._out)
        except (OSError, ValueError):
            return None

    def ask(self, request: Any) -> Any:
        """The answer to a request; None if the process is gone."""
        try:
            send(self._in, request)
        except (OSError, ValueError):
            return None
        return self.listen()

    def end(self) -> None:
        """End the process and those that it has started, whatever they are doing."""
        self.ended = True
        if self.process.returncode is None:
            with contextlib.suppress(OSError):
                self.process.kill() if sys.platform == "win32" else os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it and wait until it is gone."""
        self.end()
        self.process.wait()
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()


class _Job:
    """A request on its way."""

    def __init__(self, lane: str) -> None:
        self.lane, self.old = lane, False
        self.worker: Worker | None = None
        self.since = time.monotonic()


class WorkerPool:
    """Some processes, and who waits for them."""

    def __init__(self, setup: dict[str, Any], seconds: float = 10.0, count: int = COUNT) -> None:
        self.setup, self.seconds = setup, seconds
        self._changed = threading.Condition()
        self._free: list[Worker] = []
        self._jobs: list[_Job] = []
        self._all: set[Worker] = set()
        self._closed = self._hopeless = False  # hopeless: processes end before they are ready
        self.started = threading.Event()
        self._hire(count)

    def _hire(self, count: int = 1) -> None:
        """Start a process; it takes requests when it has said that it is ready. Others start after it, so that the
        first answer waits for one alone."""
        threading.Thread(target=self._prepare, args=(count - 1,), daemon=True).start()

    def _prepare(self, others: int) -> None:
        worker = Worker(self.setup)
        with self._changed:
            self._all.add(worker)
        ready = worker.listen() is not None
        with self._changed:
            self._hopeless = not ready
            if ready and not self._closed:
                self._free.append(worker)
            self._changed.notify_all()
        self.started.set()
        if not ready or self._closed:
            self._dismiss(worker)
        elif others:
            self._hire(others)

    def _dismiss(self, worker: Worker) -> None:
        with self._changed:
            self._all.discard(worker)
        worker.close()

    def run(self, request: Any, lane: str = "") -> Outcome:
        """Have a request computed. A newer one of the same lane makes an older one useless."""
        job = _Job(lane)
        with self._changed:
            if len([j for j in self._jobs if j.worker is None]) >= WAITING:
                return Outcome("busy")
            for other in self._jobs:
                other.old |= bool(lane) and other.lane == lane
            self._jobs.append(job)
            self._changed.notify_all()
            try:
                end = time.monotonic() + max(self.seconds, STARTING)
                while not (self._free or job.old or self._closed or self._hopeless) and time.monotonic() < end:
                    self._make_room()
                    self._changed.wait(0.05)
                if job.old or self._closed:
                    return Outcome("old" if job.old else "broken")
                if not self._free:
                    return Outcome("hopeless" if self._hopeless else "busy")
                job.worker, job.since = self._free.pop(), time.monotonic()
            finally:
                if job.worker is None:
                    self._jobs.remove(job)
        return self._computed(job, request)

    def _make_room(self) -> None:
        """End what nobody waits for any more."""
        now = time.monotonic()
        for j in self._jobs:
            if j.old and j.worker is not None and now - j.since > PATIENCE:
                j.worker.end()

    def _computed(self, job: _Job, request: Any) -> Outcome:
        worker = job.worker
        assert worker is not None
        timer = threading.Timer(self.seconds, worker.end)
        timer.daemon = True
        timer.start()
        answer = worker.ask(request)
        timer.cancel()
        with self._changed:
            self._jobs.remove(job)
            alive = answer is not None and not worker.ended
            if alive and not self._closed:
                self._free.append(worker)
            self._changed.notify_all()
        ended = worker.ended
        if not alive:
            self._dismiss(worker)
            if not self._closed:
                self._hire()
        if answer is not None:
            return Outcome("done", answer)
        return Outcome("old" if job.old else "slow" if ended else "broken")

    def close(self) -> None:
        """End all processes."""
        with self._changed:
            self._closed = True
            waiting = list(self._all)
            self._changed.notify_all()
        for worker in waiting:
            worker.close()
