"""The command from its words to its exit code: 0 done, 1 riesz says no, 2 the words cannot be meant."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from .arguments import UsageError, parser, sentence

CLOSED = 141
"""The exit code of a process whose reader has gone, as the shell has it."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; the exit code.

    >>> main(["derive", "x -> sin(x) ** 2", "--notation", "matrix"])
    2 sin(x) cos(x)
    0
    """
    try:
        return _run(list(sys.argv[1:] if words is None else words))
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:  # the reader of a pipe has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED


def _run(words: list[str]) -> int:
    try:
        given = parser().parse_args(words)
    except UsageError as problem:
        _say(str(problem))
        return 2
    except SystemExit as end:  # --help
        return int(end.code or 0)
    if given.version:
        from .. import __version__

        print(f"riesz {__version__}")
        return 0
    if given.command is None:
        parser().print_help(sys.stderr)
        return 2
    try:
        code = _answer(given)
        sys.stdout.flush()
        return code
    except UsageError as problem:
        _say(str(problem))
        return 2
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        if given.traceback:
            raise
        _say(sentence(problem))
        return 1


def _answer(given: Any) -> int:
    if given.command == "completion":
        from .completion import script

        print(script(given.shell), end="")
        return 0
    if given.command == "doctor":
        from .doctor import doctor

        return doctor(given)
    if given.command == "play":
        from .playing import play

        return play(given)
    from . import answers

    given.out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # what the user's own file prints is no result
        return getattr(answers, given.command)(given)


def _say(message: str) -> None:
    print(f"riesz: {message}", file=sys.stderr)
