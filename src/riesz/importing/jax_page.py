"""What primitives of JAX `rz.from_jax` knows, as a page: `python -m riesz.importing.jax_page > docs/jax.md`."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

from .lax.lax_registry import REFUSED, load

HEAD = """# What is known of JAX

Generated from the code by `python -m riesz.importing.jax_page`. `rz.from_jax(f)` reads the jaxpr of a function of JAX.
Each primitive becomes NumPy code on traced arrays, so values, derivatives of every order and structure are those of
such code ([what is supported](coverage.md)). What depends on no argument is computed by JAX while the function is read.
Steps between whole numbers without a rule (keys and bits of random numbers) are steps without a derivative, computed by
JAX; primitives of jax.experimental.sparse are read as the code they stand for. `rz.jax_rule` adds one of your own.
"""


def page() -> str:
    """The page."""
    return table(HEAD, "primitive", load(), REFUSED)


def table(head: str, title: str, known: dict[str, Any], refused: dict[str, str]) -> str:
    """A page with what each name becomes, and the names that are refused."""
    lines = [head, f"| {title} | becomes |", "|---|---|"]
    lines += [f"| `{name}` | {entry.what.replace('|', chr(92) + '|')} |" for name, entry in sorted(known.items())]
    lines += ["", "Refused by name:", "", f"| {title} | why |", "|---|---|"]
    return "\n".join([*lines, *[f"| `{name}` | {why} |" for name, why in sorted(refused.items())]]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
