"""exp and tanh as arithmetic, for several lanes or several rounds of a nest at a time: calls of a library are not.

Both are right to about one unit in the last place, with underflow, overflow and nan as in the library.
"""

from __future__ import annotations

import math
import struct


def bits(x: float) -> str:
    """A number as LLVM reads it."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


SHIFT = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to a whole number, which stands in the last bits
LN2 = 0.6931471803691238, 1.9082149292705877e-10  # the first with zeros at its end, so that k·ln 2 is exact
DEGREE = 13


class MachineMath:
    """Lines of LLVM's assembly, on single numbers or on as many as there are lanes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0
        self.width = 1

    @property
    def real(self) -> str:
        """The type of a number."""
        return self.typed("double")

    @property
    def flag(self) -> str:
        """The type of a truth value."""
        return self.typed("i1")

    def typed(self, kind: str) -> str:
        """A type, in lanes."""
        return kind if self.width == 1 else f"<{self.width} x {kind}>"

    def line(self, text: str) -> str:
        """A new variable."""
        self.names += 1
        self.lines.append(f"%x{self.names} = {text}")
        return f"%x{self.names}"

    def literal(self, x: float) -> str:
        """A number, in all lanes."""
        return bits(x) if self.width == 1 else f"splat (double {bits(x)})"

    def whole(self, k: int) -> str:
        """A whole number, in all lanes."""
        return str(k) if self.width == 1 else f"splat (i64 {k})"

    def _two(self, op: str, a: str, b: str) -> str:
        return self.line(f"{op} {self.typed('i64') if op in ('add', 'sub', 'shl', 'ashr') else self.real} {a}, {b}")

    def _at_least(self, x: str, low: float) -> str:
        below = self.line(f"fcmp olt {self.real} {x}, {self.literal(low)}")
        return self.line(f"select {self.flag} {below}, {self.real} {self.literal(low)}, {self.real} {x}")

    def _reduced(self, x: str) -> tuple[str, str]:
        """k as a whole number and r with x = k·ln 2 + r."""
        shifted = self._two("fadd", self._two("fmul", x, self.literal(1 / math.log(2.0))), self.literal(SHIFT))
        k = self._two("fsub", shifted, self.literal(SHIFT))
        r = self._two("fsub contract", x, self._two("fmul contract", k, self.literal(LN2[0])))
        r = self._two("fsub contract", r, self._two("fmul contract", k, self.literal(LN2[1])))
        at = self.line(f"bitcast {self.real} {shifted} to {self.typed('i64')}")
        return self._two("sub", at, self.whole(int(bits(SHIFT), 16))), r

    def _power_of_two(self, k: str) -> str:
        moved = self._two("shl", self._two("add", k, self.whole(1023)), self.whole(52))
        return self.line(f"bitcast {self.typed('i64')} {moved} to {self.real}")

    def _series(self, r: str, first: int) -> str:
        """Σ rⁿ / (n + first)!, from n = 0 on."""
        total = self.literal(1 / math.factorial(DEGREE))
        for n in range(DEGREE - 1, first - 1, -1):
            product = self._two("fmul contract", total, r)
            total = self._two("fadd contract", product, self.literal(1 / math.factorial(n)))
        return total

    def exp(self, x: str) -> str:
        """The text of eˣ."""
        x = self._at_least(x, -746.0)
        above = self.line(f"fcmp ogt {self.real} {x}, {self.literal(710.0)}")
        x = self.line(f"select {self.flag} {above}, {self.real} {self.literal(710.0)}, {self.real} {x}")
        k, r = self._reduced(x)
        half = self._two("ashr", k, self.whole(1))
        scaled = self._two("fmul", self._series(r, 0), self._power_of_two(half))
        return f"fmul {self.real} {scaled}, {self._power_of_two(self._two('sub', k, half))}"

    def tanh(self, x: str, size: str, signed: str) -> str:
        """The text of tanh x, from |x|: with e = exp(−2|x|) − 1 it is −e / (2 + e). `signed` gives a number a sign."""
        k, r = self._reduced(self._at_least(self._two("fmul", size, self.literal(-2.0)), -44.0))
        scale, part = self._power_of_two(k), self._two("fmul", self._series(r, 1), r)
        less = self._two("fadd", scale, self.literal(-1.0))
        e = self._two("fadd contract", self._two("fmul contract", scale, part), less)
        found = self._two("fdiv", e, self._two("fadd", e, self.literal(2.0)))
        return f"call {self.real} @{signed}({self.real} {found}, {self.real} {x})"
