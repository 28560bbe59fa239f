"""Matrix products on one core each, for work that is spread over cores already: threads of BLAS inside threads of ours
wait for each other."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

_lock = threading.Lock()
_users = 0
_changed: list[tuple[Any, int]] = []
"""Libraries that were told to use one thread, and how many they used before."""


# Note [One BLAS thread]: the number of threads of a BLAS library is one for the whole process. So users are counted:
# the first one changes the number, the last one to leave restores it, under a lock. Another library may do the same at
# the same time. If it has set one thread before us, we change nothing and restore nothing: its own number stays. If it
# has set another number while we were inside, that number stays as well. One case is left: it comes and finds the one
# thread that we have set, we leave, and it restores that one. Only a number per thread could mend that.
@contextmanager
def one_blas_thread() -> Generator[None]:
    """NumPy's and SciPy's matrix products inside use one core, in this and all other threads. See Note [One BLAS
    thread].

    >>> with one_blas_thread():
    ...     pass
    """
    global _users
    with _lock:
        if not _users:
            _set_one()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _restore()


def _set_one() -> None:
    try:
        for library in _libraries():
            threads = library.get_num_threads()
            if threads is not None and threads > 1:
                _changed.append((library, threads))
                library.set_num_threads(1)
    except BaseException:
        _restore()
        raise


def _restore() -> None:
    while _changed:
        library, threads = _changed.pop()
        if library.get_num_threads() == 1:
            library.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries that are loaded when this is first asked: NumPy's, and SciPy's if that is in use."""
    from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

    return cast(Any, ThreadpoolController()).select(user_api="blas").lib_controllers


def _forget() -> None:
    global _lock, _users
    _lock, _users = threading.Lock(), 0  # what is in `_changed` is restored by the next one who leaves


if hasattr(os, "register_at_fork"):  # those who were inside in other threads do not survive a fork
    os.register_at_fork(after_in_child=_forget)
