"""What notebooks ask of an object: the same answer for all of ours, given in show/."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from . import later


def mimebundle(
    self: Any, include: Container[str] | None = None, exclude: Container[str] | None = None, **_: Any
) -> dict[str, Any]:
    """The object in every form a notebook may want, by MIME type; `include` and `exclude` choose among them."""
    return later.bundle(self, include, exclude)


def html(self: Any) -> str:
    """The object in HTML, for notebooks that ask for nothing else."""
    return later.bundle(self, ("text/html",), None)["text/html"]


class Displayed:
    """Something that notebooks show with formulas and pictures."""

    _repr_mimebundle_ = mimebundle
    _repr_html_ = html
