"""What a user chooses for the whole process: how plain calls run."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

PLAIN = ("numpy", "auto", "steps")


class ProcessSettings:
    """The choices of a process; `help(rz.settings)` says what they are."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {"plain": "numpy", "loops": os.environ.get("RIESZ_NATIVE", "1") != "0"}

    @property
    def plain(self) -> str:
        """The code of plain calls: "numpy", "auto" or "steps"."""
        return self._values["plain"]

    @plain.setter
    def plain(self, value: str) -> None:
        if value not in PLAIN:
            raise ValueError(f"settings.plain is one of {', '.join(map(repr, PLAIN))}; got {value!r}")
        self._values["plain"] = value

    @property
    def loops(self) -> bool:
        """Whether loops on small states run as functions of numbers."""
        return self._values["loops"]

    @loops.setter
    def loops(self, value: bool) -> None:
        if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"settings.loops is True or False; got {value!r}")
        self._values["loops"] = value

    @contextmanager
    def __call__(self, **values: Any) -> Generator[ProcessSettings]:
        """Other values until the end of a `with`."""
        if unknown := [name for name in values if name not in self._values]:
            known = ", ".join(self._values)
            raise TypeError(f'rz.settings has no {unknown[0]}; it has {known}: with rz.settings(plain="steps")')
        before = dict(self._values)
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield self
        finally:
            self._values = before

    def __repr__(self) -> str:
        return f"rz.settings({', '.join([f'{name}={value!r}' for name, value in self._values.items()])})"


settings = ProcessSettings()
settings.__doc__ = """How plain calls run: `rz.grad(f)(x)`, `rz.hvp`, `rz.vjp`, `L(v)` without `rz.compile`.

It is decided at the first call for arguments of a kind, from the program alone, so equal arguments give equal bits at
every call. What is written by then stays: `rz.function(f).clear()` forgets it.

`plain`: "numpy": generated NumPy code where writing it takes as long as a few calls, at most; otherwise the
interpreter. "auto": the same, by the backends of `rz.compile`: Numba too, where it is installed and the work is
large, which takes a second at the first call. "steps": always the interpreter.

`loops`: True: loops on small states run as functions of numbers: machine code where llvmlite is installed (Numba
brings it) and the work is worth it, Python on floats otherwise. False: on arrays. RIESZ_NATIVE=0 says so too.

Called with new values it is for a `with`.

>>> import riesz as rz
>>> rz.settings
rz.settings(plain='numpy', loops=True)
>>> with rz.settings(plain="auto"):
...     rz.settings.plain
'auto'
>>> rz.settings.loops = True
"""
