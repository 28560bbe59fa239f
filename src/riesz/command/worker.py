"""A process that computes what the page shows: requests come in and answers go out as JSON, each after its length.

Nothing of the page runs in the server itself. A process that takes too long is ended from outside (`workers.py`); its
memory is limited from inside.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import struct
import sys
import threading
import time
from typing import IO, Any

LENGTH = struct.Struct(">I")
IDLE = 1.0
"""Seconds after which a process that is ready loads more."""
MOST_MEMORY = 6 << 30
"""Bytes of address space, where the system can limit that; code of the user's own is not limited."""


def send(out: IO[bytes], data: Any) -> None:
    """One message."""
    packed = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
    out.write(LENGTH.pack(len(packed)) + packed)
    out.flush()


def receive(source: IO[bytes]) -> Any:
    """One message; None at the end."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = source.read(length)
    return json.loads(body) if len(body) == length else None


def _limited() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with(parent: int) -> None:
    """A server that is gone, however it ended, leaves no computation behind."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _load() -> None:
    """What some functions need: loaded while nobody waits for it."""
    for name in ("scipy.special", "scipy.linalg", "scipy.sparse.linalg"):
        importlib.import_module(name)


def serve() -> None:
    """Answer requests until there are no more. The first message says what may be asked."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what code prints is no answer
    setup = receive(source)
    if setup is None:
        return
    if not setup["code"] and not setup["file"]:
        _limited()
    from .views import Views

    views = Views(setup)
    views.warm()
    send(out, {"ready": True})
    rest = threading.Timer(IDLE, _load)
    rest.daemon = True
    rest.start()
    me = os.getpid()
    while (request := receive(source)) is not None:
        answer = views.answer(request)
        if os.getpid() != me:  # a copy that a user's code has made: answers come from one process
            os._exit(0)
        try:
            send(out, answer)
        except ValueError as problem:  # what JSON has no word for
            send(out, {"error": f"this cannot be shown: {problem}"})


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        serve()
