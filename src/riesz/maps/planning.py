"""What a linear map costs to apply, and which way is cheapest for a number of right-hand sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import SpaceError
from ..programs.cost import Cost, cost
from ..programs.passes.fusing import ready
from ..runtime.displayed import Displayed
from ..spaces.contraction_order import path
from .normal_form.coefficients import Coefficients
from .normal_form.entries import Entry
from .normal_form.network import Network
from .normal_form.rebuilt import rebuilt

if TYPE_CHECKING:
    from .linear_map import LinearMap


class Way(NamedTuple):
    """A way of applying a map: operations once and for each right-hand side, and the numbers it keeps."""

    name: str
    once: int
    each: int
    numbers: int

    def total(self, columns: int) -> int:
        """The operations for some right-hand sides."""
        return self.once + columns * self.each


class MapPlan(Displayed):
    """The ways of applying a map to some right-hand sides; `chosen` takes the fewest operations. Printed as a table."""

    def __init__(self, columns: int, ways: list[Way], words: str) -> None:
        self.columns, self.ways, self.words = columns, ways, words
        self.chosen = min(ways, key=lambda w: w.total(columns))

    @property
    def flops(self) -> int:
        """The operations of the chosen way."""
        return self.chosen.total(self.columns)

    def __repr__(self) -> str:
        head = f"{self.words}; {self.columns:,} right-hand side{'s' if self.columns != 1 else ''}"
        width = max([len(w.name) for w in self.ways])
        rows = [f"  {'':{width + 2}}{'once':>12}{'each':>12}{'together':>12}{'numbers':>12}"]
        for w in self.ways:
            mark = "→" if w is self.chosen else " "
            counts = (w.once, w.each, w.total(self.columns), w.numbers)
            rows.append(f"{mark} {w.name:{width + 2}}{''.join([f'{_short(n):>12}' for n in counts])}")
        return "\n".join([head, *rows])


Plan = MapPlan  # its name in pickles of 0.1.0


def _short(n: int) -> str:
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**4, "k")):
        if n >= size:
            return f"{n / (size if letter != 'k' else 1000):.1f}{letter}"
    return f"{n:,}"


def plan_of(L: LinearMap, columns: int) -> MapPlan:
    """The ways of applying a map: step by step, in normal form, or as a matrix."""
    if columns < 0:
        raise SpaceError(f"columns={columns}: the number of right-hand sides is 0 or more")
    m, n = L.shape
    v, flat = L.values, L.flat
    derived = cost(ready(L.program))
    ways = [Way("step by step", 0, derived.flops, derived.numbers)]
    ways.append(Way("in normal form", _coefficients(v.net), cost(ready(rebuilt(v))).flops, v.numbers))
    made = n * derived.flops
    if flat is not None:
        positions = flat.positions()
        made = _coefficients(flat.net) + sum([_multiplied(flat.net.c, e) for e in flat.net.entries]) + positions
        if positions < m * n:
            ways.append(Way("as a sparse matrix", made, 2 * positions, positions))
    ways.append(Way("as a dense matrix", made, 2 * m * n, m * n))
    return MapPlan(columns, ways, str(L.structure))


def _multiplied(c: Coefficients, e: Entry) -> int:
    """The operations that make one array of the factors of an entry."""
    have = {k for f in e.factors for k in f.labels}
    out = tuple([k for k in e.outer if k in have])
    return path([f.labels for f in e.factors], out, c.sizes).flops if e.factors else 0


def _coefficients(net: Network) -> int:
    """The operations that compute the coefficients of a network."""
    wanted = sorted({f.slot for e in net.entries for f in e.factors})
    return cost(net.c.program.prune(net.params, wanted)).flops


def cost_of(L: LinearMap, columns: int) -> Cost:
    """Operations and stored numbers of the cheapest way."""
    plan = plan_of(L, columns)
    return Cost(plan.flops, plan.chosen.numbers)
