"""What `rz.from_torch` knows of PyTorch, as a page: `python -m riesz.importing.torch_page > docs/torch.md`."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from .aten.aten_registry import REFUSED, load
from .jax_page import table

HEAD = """# What is known of PyTorch

Generated from the code by `python -m riesz.importing.torch_page`. `rz.from_torch(f)` reads what `torch.export` gives of
a module or function. An operation with a line below becomes that NumPy code on traced arrays, so values, derivatives of
every order and structure are those of such code ([what is supported](coverage.md)); others are first written in these
by PyTorch's own decompositions (core ATen). What depends on no argument is computed by PyTorch while the function is
read. Operations that draw random numbers are refused. `rz.torch_rule` adds one of your own.
"""


def page() -> str:
    """The page."""
    return table(HEAD, "operation", load(), REFUSED)


if __name__ == "__main__":
    print(page(), end="")
