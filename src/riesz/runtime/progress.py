"""Long work shows itself: a line on a terminal or in a notebook, once it has taken a second. Nothing where the output
goes elsewhere, unless `rz.verbose` asks for it.

Whoever works only says how far he is (`Work.say` stores two values); a thread of its own looks a few times a second and
draws. So what takes less than a second costs next to nothing, and compilers that never call back show up too.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, TextIO

DELAY, EVERY = 1.0, 0.2
"""Seconds until work is shown, and between drawings."""


class Verbosity:
    """What was chosen for this process: True, False, or None for terminals and notebooks only."""

    on: bool | None = {"1": True, "0": False}.get(os.environ.get("RIESZ_VERBOSE", ""))


class verbose:
    """Chooses whether long work (solvers, fits, compilation) shows how far it is, until it is called again; in a
    `with`, until its end. True: always, on stderr, one line after another where that is no terminal; False: never;
    None, as it is at first: on terminals and in notebooks, after a second. RIESZ_VERBOSE=1 or 0 chooses from outside.

    >>> import riesz as rz
    >>> with rz.verbose(False):
    ...     pass
    """

    def __init__(self, on: bool | None = True) -> None:
        self.on, self._before = on, Verbosity.on
        Verbosity.on = on

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *_: Any) -> None:
        Verbosity.on = self._before

    def __repr__(self) -> str:
        return f"rz.verbose({self.on})"


# -- where it is shown -----------------------------------------------------------------------------------------


class Terminal:
    """One line of a terminal, written over and taken away at the end."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def draw(self, line: str) -> None:
        """Show a line in the place of the one before."""
        from shutil import get_terminal_size  # slow to import

        width = get_terminal_size().columns - 1
        self._write(f"\r\x1b[2K{line if len(line) <= width else line[: max(width - 1, 0)] + '…'}")

    def clear(self, last: str) -> None:
        """Take the line away; `last` stays."""
        self._write("\r\x1b[2K" + (f"{last}\n" if last else ""))

    def _write(self, text: str) -> None:
        try:
            self.file.write(text)
            self.file.flush()
        except (OSError, ValueError, UnicodeError):  # closed, or of another alphabet: work goes on
            pass


class Lines(Terminal):
    """A file: one line after another, each second at the most."""

    def __init__(self, file: TextIO) -> None:
        super().__init__(file)
        self.next = 0.0

    def draw(self, line: str) -> None:
        """Add a line."""
        now = time.perf_counter()
        if now >= self.next:
            self.next = now + 1.0
            self._write(f"{line}\n")

    def clear(self, last: str) -> None:
        """Add the last line."""
        if last:
            self._write(f"{last}\n")


class Notebook:
    """An output of a cell that changes."""

    def __init__(self, display: Any) -> None:
        self.display, self.handle = display, None

    def draw(self, line: str) -> None:
        """Show a line in the place of the one before."""
        if self.handle is None:
            self.handle = self.display({"text/plain": line}, raw=True, display_id=True)
        else:
            self.handle.update({"text/plain": line}, raw=True)

    def clear(self, last: str) -> None:
        """Take the line away; `last` stays."""
        if self.handle is not None:  # HTML without words takes no room, a text without words does
            self.handle.update({"text/plain": last} | ({} if last else {"text/html": "<span></span>"}), raw=True)


def _screen() -> Terminal | Notebook | None:
    """Where progress is shown now; None: nowhere."""
    if Verbosity.on is False:
        return None
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import display  # pyright: ignore

        return Notebook(display)
    file = sys.stderr
    if file is None:  # pyright: ignore[reportUnnecessaryComparison]  (as under pythonw)
        return None
    if file.isatty() and os.environ.get("TERM") != "dumb":
        return Terminal(file)
    return Lines(file) if Verbosity.on else None


# -- what is done ----------------------------------------------------------------------------------------------


class Work:
    """Something that may take long; true where somebody may be watching."""

    def __init__(self, title: str, total: int | None, screen: Terminal | Notebook) -> None:
        self.title, self.total, self.screen = title, total, screen
        self.done, self.text, self.drawn = 0, "", False
        self.begun = time.perf_counter()

    def say(self, done: int, text: str = "") -> None:
        """How far it is, and how that looks."""
        self.done, self.text = done, text

    def line(self) -> str:
        """What is shown."""
        count = f" {self.done:,}" + (f" of {self.total:,}" if self.total else "") if self.done else ""
        parts = [self.title + count, self.text, f"{time.perf_counter() - self.begun:.0f} s"]
        return "  ".join(["".join([c if c.isprintable() else "?" for c in part]) for part in parts if part])

    def __enter__(self) -> Work:
        with _lock:
            _active.append(self)
        _watched()
        return self

    def __exit__(self, *_: Any) -> None:
        with _lock:
            if self in _active:
                _active.remove(self)
            if self.drawn:
                self.screen.clear(f"{self.line()}, done" if Verbosity.on else "")

    def __bool__(self) -> bool:
        return True


class Quiet:
    """Work that nobody watches."""

    def say(self, done: int, text: str = "") -> None:
        """Nothing."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __bool__(self) -> bool:
        return False


_QUIET = Quiet()
_lock = threading.Lock()
_active: list[Work] = []
_wake = threading.Event()
_thread: threading.Thread | None = None


def working(title: str, total: int | None = None) -> Work | Quiet:
    """Work that shows itself, in a `with`; `total`: how many rounds there are at most.

    >>> with working("counting", 3) as work:
    ...     for k in range(3):
    ...         work.say(k + 1, "fine so far")
    """
    screen = _screen()
    return _QUIET if screen is None else Work(title, total, screen)


def _watched() -> None:
    """See to it that there is somebody who looks."""
    global _thread
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_look, name="riesz progress", daemon=True)
        _thread.start()
    _wake.set()


def _look() -> None:
    while True:
        _wake.wait()
        time.sleep(EVERY if Verbosity.on is not True else 0.01)
        with _lock:
            if not _active:
                _wake.clear()
                continue
            outer, now = _active[0], time.perf_counter()
            if outer.drawn or now - outer.begun >= (DELAY if Verbosity.on is not True else 0.0):
                outer.drawn = True
                try:
                    outer.screen.draw("  ·  ".join([w.line() for w in _active[:3]]))
                except Exception:  # a notebook that is gone: nobody watches any more
                    _active.clear()
        if Verbosity.on is True:
            time.sleep(EVERY)


def _reset() -> None:
    """In a forked process nobody looks yet."""
    global _thread, _lock
    _thread, _lock = None, threading.Lock()
    _active.clear()
    _wake.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
