"""NumPy's warnings off and on again, in a tenth of a microsecond where NumPy lets us: code of microseconds has no time
for np.errstate."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar as _state  # pyright: ignore
    from numpy._core.umath import _make_extobj as _make  # pyright: ignore

    _QUIET: Any = _make(all="ignore")  # pyright: ignore

    hush: Any = partial(_state.set, _QUIET)  # pyright: ignore
    """No warnings from here on; what it gives is for `restore`."""
    restore: Any = _state.reset  # pyright: ignore
    """As it was before."""
except ImportError:  # another NumPy

    def hush() -> Any:
        """No warnings from here on; what it gives is for `restore`."""
        return np.seterr(all="ignore")

    def restore(token: Any) -> None:
        """As it was before."""
        np.seterr(**token)


class quietly:  # as np.errstate(all="ignore"), which takes ten times as long
    """Inside `with quietly():` NumPy warns of nothing."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = hush()

    def __exit__(self, *problem: object) -> None:
        restore(self._token)
