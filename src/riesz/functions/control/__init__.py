"""Control flow on traced values: branches, loops with a carry, recomputation, maps over an axis, constants."""

from .branches import Again, checkpoint, cond, stop_gradient, switch
from .branches import _number as _number  # pyright: ignore[reportPrivateUsage]  (steps of pickled programs name them)
from .branches import _same as _same  # pyright: ignore[reportPrivateUsage]
from .loops import fori_loop, loop, while_loop
from .mapped_function import MappedFunction, vmap

__all__ = ["Again", "MappedFunction", "checkpoint", "cond", "fori_loop", "loop", "stop_gradient", "switch", "vmap"]
__all__ += ["while_loop"]
