"""`riesz play`: the server, its processes, and a browser that opens the page."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from typing import Any

from .arguments import UsageError
from .serving import PageServer
from .workers import WorkerPool


def prepared(given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the processes are told, and what the page starts with."""
    if not given.seconds > 0:
        raise UsageError(f"--seconds {given.seconds:g}: a time limit is more than 0")
    if not 0 <= given.port < 1 << 16:
        raise UsageError(f"--port {given.port}: ports go from 0 (any that is free) to 65535")
    text: str = given.subject or ""
    path, found, _ = text.rpartition(":")
    file = text if "->" not in text and found and path.endswith(".py") else ""
    if text and not file and "->" not in text:
        raise UsageError(f"{text!r} is neither a text such as 'x -> sin(x)' nor file.py:f")
    if file and not os.path.isfile(path):
        raise UsageError(f"there is no file {path}")
    setup = {"code": given.allow_code, "file": file}
    shapes = " ".join(given.shapes) if given.shapes is not None else ""
    return setup, {"text": file or text, "shapes": shapes, "code": given.allow_code, "seconds": given.seconds}


def _has_screen() -> bool:
    """Whether a browser would open a window: one in the terminal would take it over."""
    named = any([os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")])
    return named or sys.platform in ("darwin", "win32")


def play(given: Any) -> int:
    """Serve the page until the command is interrupted."""
    setup, start = prepared(given)
    pool = WorkerPool(setup, given.seconds)
    try:
        server = PageServer(pool, given.port, start)
    except OSError as problem:
        pool.close()
        raise UsageError(f"port {given.port} cannot be had: {problem.strerror}") from None
    print(server.address, flush=True)
    print("riesz: the page is at this address, for this machine only; Ctrl-C ends it", file=sys.stderr)
    if given.allow_code:
        print("riesz: --allow-code: the page may run Python code with your rights", file=sys.stderr)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown, daemon=True).start())
    if not given.no_browser and _has_screen():
        threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
    try:
        server.serve_forever(0.2)
    except KeyboardInterrupt:
        print("", file=sys.stderr)
    finally:
        pool.close()
        server.server_close()
    return 0
