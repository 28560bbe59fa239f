"""What can be written after `riesz`: subcommands, options, help with examples. Standard library only."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

FORMATS = ("unicode", "latex", "mathml", "html", "json")
TARGETS = ("numpy", "jax", "torch", "julia", "matlab", "latex", "text")
FOLDERS = ("c", "wasm")
"""Targets that are several files."""
SHELLS = ("bash", "zsh", "fish")
KINDS = ("gradient", "jacobian", "hessian")

DESCRIPTION = "Derivatives as symbolic linear maps: print, explain, check and export them."

SUBJECT = """
what to differentiate:
  TEXT        'x, W, b -> tanh(W @ x + b)': parsed, never evaluated, refused where it would take too much
  file.py:f   the function f of a Python file of yours, which is imported
  --shapes    one for each argument: 3 is a vector, 2,3 a matrix, scalar a number
"""

EXAMPLES = {
    "derive": (
        "riesz derive 'x, W, b -> tanh(W @ x + b)' --shapes 3 2,3 2",
        "riesz derive 'A, x, b -> sum((A @ x - b) ** 2)' --shapes 5,3 3 5 --format latex",
        "riesz derive model.py:loss --shapes 4 4,2 --format json",
    ),
    "explain": ("riesz explain 'x -> sum(sin(x) ** 2)' --shapes 3",),
    "check": ("riesz check 'x, y -> sin(x) * y'", "riesz check model.py:loss --shapes 4 4,2 --seed 7"),
    "spy": (
        "riesz spy 'x -> x[1:] * x[:-1]' --shapes 12",
        "riesz spy 'x -> sum(x[1:] ** 2 * x[:-1])' --shapes 40 --hessian -o H.svg",
    ),
    "diagram": (
        "riesz diagram 'x, W -> tanh(W @ x)' --shapes 3 2,3 -o map.svg",
        "riesz diagram 'x, A -> A @ (A @ x)' --shapes 20 20,20 --columns 5 -o order.svg",
    ),
    "cost": ("riesz cost 'x, A -> A @ (A @ x)' --shapes 200 200,200 --columns 1 100",),
    "export": (
        "riesz export 'A, x, b -> sum((A @ x - b) ** 2)' --shapes 5,3 3 5 --to numpy -o gradient.py",
        "riesz export 'X -> log(det(X))' --shapes 3,3 --kind hessian --to julia",
        "riesz export 'A, x, b -> sum((A @ x - b) ** 2)' --shapes 5,3 3 5 --to c -o gradient",
    ),
    "bench": ("riesz bench 'x -> sum(tanh(x) ** 2)' --shapes 100000",),
    "play": ("riesz play", "riesz play model.py:loss --shapes 4 4,2 --no-browser"),
    "doctor": ("riesz doctor", "riesz doctor --format json"),
    "completion": (
        "riesz completion bash > ~/.local/share/bash-completion/completions/riesz",
        "riesz completion zsh > ~/.zfunc/_riesz",
        "riesz completion fish > ~/.config/fish/completions/riesz.fish",
    ),
}
"""Shown by --help; every line of them is run by the tests."""


class UsageError(Exception):
    """What was written after `riesz` cannot be meant: exit code 2."""


def sentence(problem: BaseException) -> str:
    """An error as riesz says it, with its notes; of others, by their name."""
    from ..errors import RieszError

    kind = "" if isinstance(problem, (RieszError, UsageError)) else f"{type(problem).__name__}: "
    return "\n".join([f"{kind}{problem}", *getattr(problem, "__notes__", ())])


def seed(text: str) -> int:
    """The number of a random point."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; write 0, 1, 2, …")
    return int(text)


class CommandParser(argparse.ArgumentParser):
    """A parser whose mistakes are sentences of ours."""

    def error(self, message: str) -> NoReturn:
        """A mistake, with where help is."""
        raise UsageError(f"{message}; {self.prog} --help has examples")


def parser() -> CommandParser:
    """The parser of the whole command.

    >>> parser().parse_args(["derive", "x -> sin(x)", "--shapes", "3"]).shapes
    ['3']
    """
    shown = "\n".join([f"  {EXAMPLES[name][0]}" for name in ("derive", "explain", "export", "play")])
    top = CommandParser(
        prog="riesz",
        description=DESCRIPTION,
        epilog=f"examples:\n{shown}\n\nriesz COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="store_true", help="print the version")
    top.add_argument("--traceback", action="store_true", help="show where in the code an error was raised")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)

    def command(name: str, words: str, subject: bool = True, needed: bool = True) -> Any:
        lines = "\n".join([f"  {line}" for line in EXAMPLES[name]])
        made = commands.add_parser(
            name,
            help=words,
            description=f"{words[0].upper()}{words[1:]}.",
            epilog=(SUBJECT if subject else "") + f"\nexamples:\n{lines}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if subject:
            made.add_argument("subject", metavar="TEXT|file.py:f", nargs=None if needed else "?")
            made.add_argument("--shapes", nargs="*", metavar="SHAPE", help="the shape of each argument")
        return made

    def output(made: Any, what: str) -> None:
        made.add_argument("-o", "--output", metavar="FILE", help=f"write {what} to a file instead of standard output")

    def drawn(made: Any) -> None:
        made.add_argument("--seed", type=seed, default=0, metavar="N", help="another random point (default 0)")

    def formatted(made: Any, formats: Sequence[str] = FORMATS) -> None:
        made.add_argument("--format", choices=formats, default=formats[0], help=f"default {formats[0]}")

    made = command("derive", "value, derivative and adjoint, with the closed form")
    made.add_argument("--notation", choices=("both", "matrix", "paper"), default="both", help="default both")
    formatted(made)
    output(made, "the result")

    made = command("explain", "the derivation rule by rule")
    formatted(made)
    output(made, "the result")

    made = command("check", "test the derivative and its adjoint at a random point")
    drawn(made)
    formatted(made, ("unicode", "json"))

    made = command("spy", "where the numbers of the Jacobian are")
    made.add_argument("--hessian", action="store_true", help="of the Hessian instead")
    drawn(made)
    output(made, "an SVG picture")

    made = command("diagram", "the derivative as a string diagram, in SVG")
    made.add_argument("--adjoint", action="store_true", help="of the adjoint instead")
    made.add_argument("--columns", type=int, metavar="K", help="with the order of contraction for K right-hand sides")
    drawn(made)
    output(made, "the picture")

    made = command("cost", "what the derivative costs to apply, and the cheapest way")
    made.add_argument("--columns", nargs="+", type=int, default=[1], metavar="K", help="right-hand sides (default 1)")
    drawn(made)
    formatted(made, ("unicode", "json"))

    made = command("export", "the closed form as code that runs alone")
    made.add_argument("--to", required=True, metavar="TARGET", help=", ".join((*TARGETS, *FOLDERS)))
    made.add_argument("--kind", choices=KINDS, help="default: gradient of functions into ℝ, else jacobian")
    output(made, "the code")

    made = command("bench", "time value, gradient and products with the Jacobian")
    made.add_argument("--seconds", type=float, default=0.2, metavar="S", help="for each line (default 0.2)")
    drawn(made)
    formatted(made, ("unicode", "json"))

    made = command("play", "a page on this machine to try functions on", needed=False)
    made.add_argument("--port", type=int, default=0, metavar="N", help="default: any that is free")
    made.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    made.add_argument(
        "--allow-code", action="store_true", help="the page may send Python code, which runs with your rights"
    )
    made.add_argument("--seconds", type=float, default=10.0, metavar="S", help="time limit of a request (default 10)")

    made = command("doctor", "versions, threads, linear algebra, GPU, extras", subject=False)
    formatted(made, ("unicode", "json"))

    made = command("completion", "completion for a shell", subject=False)
    made.add_argument("shell", choices=SHELLS)
    return top
