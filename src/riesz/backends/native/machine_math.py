"""exp, tanh, log, sine and cosine as arithmetic, for several lanes or several rounds of a nest at a time: calls of a
library are not.

All are right to about one unit in the last place. exp and tanh underflow, overflow and keep nan as the library does;
for numbers that are not positive or finite log calls it, and for large angles sine and cosine do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable


def bits(x: float) -> str:
    """A number as LLVM reads it."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


SHIFT = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to a whole number, which stands in the last bits
LN2 = 0.6931471803691238, 1.9082149292705877e-10  # the first with zeros at its end, so that k·ln 2 is exact
DEGREE = 13
QUARTER = 1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21  # π/2, 33 bits in each
WIDEST = 1e6  # of larger angles too few bits would be left
ROOT_HALF = 0x3FE6A09E667F3BCD  # √½


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

    def _sum(self, z: str, terms: list[float]) -> str:
        """terms[0] + terms[1]·z + terms[2]·z² + …"""
        total = self.literal(terms[-1])
        for c in terms[-2::-1]:
            total = self._two("fadd contract", self._two("fmul contract", total, z), self.literal(c))
        return total

    def _label(self) -> str:
        self.names += 1
        return f"l{self.names}"

    def _unless(self, far: Callable[[], str], fast: Callable[[], str], library: Callable[[], str]) -> str:
        """The text of what `fast` computes, or `library` where `far` is so in some lane."""
        near, other, end = self._label(), self._label(), self._label()
        self.lines += [f"br label %{near}", f"{near}:"]
        test, found = far(), fast()
        if self.width > 1:
            test = self.line(f"bitcast {self.flag} {test} to i{self.width}")
            test = self.line(f"icmp ne i{self.width} {test}, 0")
        self.lines += [f"br i1 {test}, label %{other}, label %{end}", f"{other}:"]
        called = self.line(library())
        self.lines += [f"br label %{end}", f"{end}:"]
        return f"phi {self.real} [{found}, %{near}], [{called}, %{other}]"

    def turned(self, x: str, quarters: int, size: str, library: Callable[[], str]) -> str:
        """The text of sin(x + quarters·π/2), from |x|."""
        return self._unless(
            lambda: self.line(f"fcmp ugt {self.real} {size}, {self.literal(WIDEST)}"),
            lambda: self._turned(x, quarters),
            library,
        )

    def _turned(self, x: str, quarters: int) -> str:
        shifted = self._two("fadd", self._two("fmul", x, self.literal(2.0 / math.pi)), self.literal(SHIFT))
        k, r = self._two("fsub", shifted, self.literal(SHIFT)), x
        for part in QUARTER:
            r = self._two("fsub contract", r, self._two("fmul contract", k, self.literal(part)))
        z = self._two("fmul", r, r)
        odd = self._sum(z, [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, 8)])
        sine = self._two("fadd contract", self._two("fmul contract", self._two("fmul", z, r), odd), r)
        even = self._sum(z, [(-1) ** n / math.factorial(2 * n) for n in range(2, 9)])
        first = self._two("fadd contract", self._two("fmul contract", z, self.literal(-0.5)), self.literal(1.0))
        cosine = self._two("fadd contract", self._two("fmul contract", self._two("fmul", z, z), even), first)
        whole = self.typed("i64")
        n = self._two("add", self.line(f"bitcast {self.real} {shifted} to {whole}"), self.whole(quarters))
        other = self.line(f"trunc {whole} {n} to {self.flag}")
        y = self.line(f"select {self.flag} {other}, {self.real} {cosine}, {self.real} {sine}")
        sign = self._two("shl", self.line(f"and {whole} {n}, {self.whole(2)}"), self.whole(62))
        y = self.line(f"xor {whole} {self.line(f'bitcast {self.real} {y} to {whole}')}, {sign}")
        y = self.line(f"bitcast {whole} {y} to {self.real}")
        if quarters:
            return y
        zero = self.line(f"fcmp oeq {self.real} {x}, {self.literal(0.0)}")  # −0 stays
        return self.line(f"select {self.flag} {zero}, {self.real} {x}, {self.real} {y}")

    def log(self, x: str, library: Callable[[], str]) -> str:
        """The text of ln x = k·ln 2 + ln m, m between √½ and √2."""
        return self._unless(lambda: self._odd(x), lambda: self._log(x), library)

    def _odd(self, x: str) -> str:
        """Whether a number is not positive, not normal or not finite."""
        ordinary = self.line(f"fcmp oge {self.real} {x}, {self.literal(2.2250738585072014e-308)}")
        finite = self.line(f"fcmp olt {self.real} {x}, {self.literal(math.inf)}")
        both = self.line(f"and {self.flag} {ordinary}, {finite}")
        true = "true" if self.width == 1 else "splat (i1 true)"
        return self.line(f"xor {self.flag} {both}, {true}")

    def _log(self, x: str) -> str:
        whole = self.typed("i64")
        at = self.line(f"bitcast {self.real} {x} to {whole}")
        e = self._two("ashr", self._two("sub", at, self.whole(ROOT_HALF)), self.whole(52))
        m = self._two("sub", at, self._two("shl", e, self.whole(52)))
        f = self._two("fadd", self.line(f"bitcast {whole} {m} to {self.real}"), self.literal(-1.0))
        k = self._two("add", e, self.whole(int(bits(SHIFT), 16)))
        k = self._two("fsub", self.line(f"bitcast {whole} {k} to {self.real}"), self.literal(SHIFT))
        s = self._two("fdiv", f, self._two("fadd", f, self.literal(2.0)))
        z, half = self._two("fmul", s, s), self._two("fmul", self._two("fmul", f, self.literal(0.5)), f)
        series = self._two("fmul", z, self._sum(z, [2.0 / (2 * n + 1) for n in range(1, 11)]))
        tail = self._two("fmul contract", s, self._two("fadd", half, series))
        low = self._two("fsub", half, tail)
        low = self._two("fsub contract", low, self._two("fmul contract", k, self.literal(LN2[1])))
        high = self._two("fsub", f, low)
        return self._two("fadd contract", self._two("fmul contract", k, self.literal(LN2[0])), high)

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
