"""Statements as machine code, by LLVM (llvmlite, which Numba brings along).

All sizes are known and arguments are addresses, so nothing is inferred or boxed. Sums over arrays may be reordered by
the compiler, and x·y + z may be rounded once, nothing else: nan and inf are those of the statements.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Generator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from ...runtime import tuning
from .machine_math import MachineMath, bits
from .statements import (
    Assign,
    Buffer,
    Fail,
    For,
    Helper,
    If,
    Invoke,
    Lanes,
    Locate,
    Pick,
    Position,
    Read,
    SetNumber,
    Statements,
    Update,
    Value,
)

LANES = (8, 4, 2)
"""How many indices of a mapped loop run at a time: the first that there are enough of."""
_BINARY = {
    **{"add": "fadd contract", "subtract": "fsub contract", "multiply": "fmul contract", "divide": "fdiv"},
    "plus": "fadd reassoc contract",
}
_COMPARE = {
    **{"less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge", "equal": "oeq"},
    "not_equal": "une",
}
_LOGIC = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_INTRINSICS = {
    **{f: f for f in ("sqrt", "exp", "log", "sin", "cos", "exp2", "log2", "log10", "floor", "ceil", "trunc", "rint")},
    **{"power": "pow", "absolute": "fabs", "copysign": "copysign"},
}
_LIBRARY = {
    **{f"arc{f}": f"a{f}" for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    **{f: f for f in ("tan", "sinh", "cosh", "tanh", "expm1", "log1p", "cbrt", "hypot", "erf", "erfc", "fmod")},
    "gammaln": "lgamma",
}
_TRUTHS = {*_COMPARE, *_LOGIC, "logical_not", "isnan", "isfinite"}


class _Function(MachineMath):
    """The text of one function. Names of variables are those of the statements."""

    def __init__(self, declared: dict[str, str], helpers: dict[str, Helper]) -> None:
        super().__init__()
        self.declared, self.helpers = declared, helpers
        self.entry: list[str] = []
        self.types: dict[str, str] = {}
        self._changing: set[str] = set()
        self.suffix = ""
        self.lane, self.inner = "", set[str]()  # inside `Lanes`: its counter, and the variables of its body

    def text(self, name: str, buffers: Sequence[Buffer], local: Sequence[Buffer], body: list[Any]) -> str:
        """The whole function: its arguments are addresses of buffers; it gives 1 where it failed."""
        for b in local:
            self.entry.append(f"%{b.name} = alloca [{max(b.size, 1)} x double], align 64")
        self._block(body)
        self.lines.append("ret i32 0")
        given = ", ".join([f"ptr noalias nocapture %{b.name}" for b in buffers])
        head = [f"define i32 @{name}({given}) nounwind {{", "entry:", *self.entry, "br label %begin", "begin:"]
        return "\n".join([*head, *self.lines, "failed:", "ret i32 1", "}", ""])

    # -- values ------------------------------------------------------------------------------------------

    def _number(self, value: Value) -> str:
        if not isinstance(value, str):
            return self.literal(float(value))
        if value[0] == "k":
            own = value in self.inner or not self.lane
            found = self.line(f"load {self.real if own else 'double'}, ptr {self._slot(value)}")
            return found if own else self._splat("double", found)
        text = self._own(value, "i1" if self.types[value] == "b" else "double")
        return self.line(f"uitofp {self.flag} {text} to {self.real}") if self.types[value] == "b" else text

    def _truth(self, value: Value) -> str:
        if not isinstance(value, str):
            return f"splat (i1 {str(bool(value)).lower()})" if self.lane else str(bool(value)).lower()
        if self.types.get(value) == "b":
            return self._own(value, "i1")
        return self.line(f"fcmp une {self.real} {self._number(value)}, {self.literal(0.0)}")

    def _own(self, name: str, kind: str) -> str:
        """A variable; in lanes, one from outside is the same in all of them."""
        return f"%{name}{self.suffix}" if name in self.inner or not self.lane else self._splat(kind, f"%{name}")

    def _splat(self, kind: str, text: str) -> str:
        wide = self.typed(kind)
        one = self.line(f"insertelement {wide} poison, {kind} {text}, i32 0")
        return self.line(f"shufflevector {wide} {one}, {wide} poison, {self.typed('i32')} zeroinitializer")

    def _slot(self, name: str, kind: str = "") -> str:
        name = f"{name}{self.suffix}" if name in self.inner and name[0] == "k" else name
        if name not in self._changing:
            self._changing.add(name)
            self.entry.append(f"%{name}.slot = alloca {kind or self.real}")
        return f"%{name}.slot"

    def _position(self, at: Position) -> str:
        total = str(at.offset)
        for name, stride in at.terms:
            if name[0] == "n":
                one = f"%{name}{self.suffix if name in self.inner else ''}"
            else:
                one = self.line(f"load i64, ptr {self._slot(name, 'i64')}")
            one = one if stride == 1 else self.line(f"mul nsw i64 {one}, {stride}")
            total = one if total == "0" else self.line(f"add nsw i64 {total}, {one}")
        return total

    def _address(self, buffer: Buffer, at: Position) -> str:
        place = self._position(at)
        return f"%{buffer.name}" if place == "0" else self.line(
            f"getelementptr inbounds double, ptr %{buffer.name}, i64 {place}"
        )  # fmt: skip

    # -- statements --------------------------------------------------------------------------------------

    def _block(self, body: list[Any]) -> None:
        for statement in body:
            getattr(self, f"_{type(statement).__name__.lower()}")(statement)

    def _read(self, s: Read) -> None:
        self.types[s.name] = "f"
        name, stride = f"%{s.name}{self.suffix}", dict(s.at.terms).get(self.lane, 0)
        address = self._address(s.buffer, s.at)
        if not self.lane or stride == 1:
            self.lines.append(f"{name} = load {self.real}, ptr {address}, align 8")
        elif not stride:
            one = self._splat("double", self.line(f"load double, ptr {address}, align 8"))
            self.lines.append(f"{name} = fadd {self.real} {one}, {self.literal(-0.0)}")
        else:
            found = "poison"
            for i in range(self.width):
                one = self.line(f"load double, ptr {self._further(address, i * stride)}, align 8")
                text = f"insertelement {self.real} {found}, double {one}, i32 {i}"
                found = self.line(text) if i < self.width - 1 else self.lines.append(f"{name} = {text}") or name

    def _further(self, address: str, by: int) -> str:
        return self.line(f"getelementptr inbounds double, ptr {address}, i64 {by}") if by else address

    def _pick(self, s: Pick) -> None:
        address = self._address(s.table, s.at)
        self.lines.append(f"%{s.name}{self.suffix} = load i64, ptr {address}, align 8")

    def _locate(self, s: Locate) -> None:
        number = self._number(s.value)
        if self.lane:  # the same in all of them
            number = self.line(f"extractelement {self.real} {number}, i32 0")
        below = self.line(f"fcmp olt double {number}, {bits(float(s.size))}")
        above = self.line(f"fcmp oge double {number}, {bits(-float(s.size))}")
        self._failed_if(self.line(f"xor i1 {self.line(f'and i1 {below}, {above}')}, true"))
        whole = self.line(f"fptosi double {number} to i64")
        negative = self.line(f"icmp slt i64 {whole}, 0")
        counted = self.line(f"add nsw i64 {whole}, {s.size}")
        self.lines.append(f"%{s.name}{self.suffix} = select i1 {negative}, i64 {counted}, i64 {whole}")

    def _setnumber(self, s: SetNumber) -> None:
        value = self._number(s.value)
        address, stride = self._address(s.buffer, s.at), dict(s.at.terms).get(self.lane, 0)
        if s.adds:
            before = self.line(f"load double, ptr {address}, align 8")
            value = self.line(f"fadd reassoc contract double {before}, {value}")
        if not self.lane or stride == 1:
            self.lines.append(f"store {self.real} {value}, ptr {address}, align 8")
            return
        for i in range(self.width):
            one = self.line(f"extractelement {self.real} {value}, i32 {i}")
            self.lines.append(f"store double {one}, ptr {self._further(address, i * stride)}, align 8")

    def _update(self, s: Update) -> None:
        values = [self._number(v) for v in s.values]
        for name, value in zip(s.names, values, strict=True):
            self.lines.append(f"store {self.real} {value}, ptr {self._slot(name)}")

    def _for(self, s: For, step: int = 1) -> None:
        slot = self._slot(s.name, "i64")
        head, inner, end = self._label(), self._label(), self._label()
        start, stop = self._position(s.start), self._position(s.stop)
        first = self.line(f"sub nsw i64 {stop}, 1") if s.reverse else start
        self.lines += [f"store i64 {first}, ptr {slot}", f"br label %{head}", f"{head}:"]
        now = self.line(f"load i64, ptr {slot}")
        test = self.line(f"icmp {'sge' if s.reverse else 'slt'} i64 {now}, {start if s.reverse else stop}")
        self.lines += [f"br i1 {test}, label %{inner}, label %{end}", f"{inner}:"]
        self._block(s.body)
        now = self.line(f"load i64, ptr {slot}")
        after = self.line(f"{'sub' if s.reverse else 'add'} nsw i64 {now}, {step}")
        self.lines += [f"store i64 {after}, ptr {slot}", f"br label %{head}", f"{end}:"]

    def _lanes(self, s: Lanes) -> None:
        width = next((w for w in LANES if w <= s.times), 1) if _independent(s) else 1
        most = s.times // width * width if width > 1 else 0
        if most:
            self.lane, self.inner, self.suffix, self.width = s.name, _defined(s.body), ".w", width
            self._for(For(s.name, Position(), Position(most), False, s.body), width)
            self.lane, self.inner, self.suffix, self.width = "", set[str](), "", 1
        if most < s.times:
            self._for(For(s.name, Position(most), Position(s.times), False, s.body))

    def _if(self, s: If) -> None:
        yes, no, end = self._label(), self._label(), self._label()
        self.lines += [f"br i1 {self._truth(s.condition)}, label %{yes}, label %{no}", f"{yes}:"]
        self._block(s.yes)
        self.lines += [f"br label %{end}", f"{no}:"]
        self._block(s.no)
        self.lines += [f"br label %{end}", f"{end}:"]

    def _failed_if(self, test: str) -> None:
        go = self._label()
        self.lines += [f"br i1 {test}, label %failed, label %{go}", f"{go}:"]

    def _fail(self, s: Fail) -> None:
        test = self._truth(s.condition)
        if self.lane:
            name = f"llvm.vector.reduce.or.v{self.width}i1"
            self.declared[name] = f"declare i1 @{name}({self.flag})"
            test = self.line(f"call i1 @{name}({self.flag} {test})")
        self._failed_if(test)

    def _invoke(self, s: Invoke) -> None:
        given = ", ".join([f"ptr {self._address(*place)}" for place in s.buffers])
        found = self.line(f"call i32 @{s.helper}({given})")
        self._failed_if(self.line(f"icmp ne i32 {found}, 0"))

    def _assign(self, s: Assign) -> None:
        op, name, args, real = s.op, f"%{s.name}{self.suffix}", s.args, self.real
        self.types[s.name] = "b" if op in _TRUTHS else "f"
        if op in _BINARY:
            text = f"{_BINARY[op]} {real} {self._number(args[0])}, {self._number(args[1])}"
        elif op == "negative":
            text = f"fneg {real} {self._number(args[0])}"
        elif op in _COMPARE:
            text = f"fcmp {_COMPARE[op]} {real} {self._number(args[0])}, {self._number(args[1])}"
        elif op in _LOGIC:
            text = f"{_LOGIC[op]} {self.flag} {self._truth(args[0])}, {self._truth(args[1])}"
        elif op == "logical_not":
            text = f"xor {self.flag} {self._truth(args[0])}, {self._truth(True)}"
        elif op == "isnan":
            x = self._number(args[0])
            text = f"fcmp uno {real} {x}, {x}"
        elif op == "isfinite":
            size = self.line(self._called("absolute", [self._number(args[0])]))
            text = f"fcmp olt {real} {size}, {self.literal(math.inf)}"
        elif op == "where":
            text = self._select(self._truth(args[0]), self._number(args[1]), self._number(args[2]))
        elif op in ("maximum", "minimum"):
            a, b = self._number(args[0]), self._number(args[1])
            better = self.line(f"fcmp {'oge' if op == 'maximum' else 'ole'} {real} {a}, {b}")
            odd = self.line(f"fcmp uno {real} {a}, {a}")
            text = self._select(self.line(f"or {self.flag} {better}, {odd}"), a, b)
        elif op == "number":
            text = f"fadd {real} {self._number(args[0])}, {self.literal(-0.0)}"
        elif op == "exp":
            text = self.exp(self._number(args[0]))
        elif op == "tanh":
            x = self._number(args[0])
            width = f"v{self.width}" if self.lane else ""
            signed = f"llvm.copysign.{width}f64"
            self.declared[signed] = f"declare {real} @{signed}({real}, {real})"
            text = self.tanh(x, self.line(self._called("absolute", [x])), signed)
        elif op in ("sin", "cos"):
            x = self._number(args[0])
            size = self.line(self._called("absolute", [x]))
            text = self.turned(x, int(op == "cos"), size, lambda: self._called(op, [x]))
        elif op == "log":
            x = self._number(args[0])
            text = self.log(x, lambda: self._called(op, [x]))
        else:
            text = self._called(op, [self._number(a) for a in args])
        self.lines.append(f"{name} = {text}")

    def _select(self, c: str, a: str, b: str) -> str:
        return f"select {self.flag} {c}, {self.real} {a}, {self.real} {b}"

    def _called(self, op: str, given: list[str]) -> str:
        """A call of a function; one of the library is called for each lane."""
        ours = op in _INTRINSICS
        kind, width = (self.real, f"v{self.width}" if self.lane else "") if ours else ("double", "")
        name = f"llvm.{_INTRINSICS[op]}.{width}f64" if ours else _LIBRARY[op]
        pure = "" if ours else " nounwind willreturn memory(none)"
        self.declared[name] = f"declare {kind} @{name}({', '.join([kind] * len(given))}){pure}"
        if ours or not self.lane:
            return f"call {kind} @{name}({', '.join([f'{kind} {x}' for x in given])})"
        found = "poison"
        for i in range(self.width):
            one = [self.line(f"extractelement {self.real} {x}, i32 {i}") for x in given]
            one = self.line(f"call double @{name}({', '.join([f'double {x}' for x in one])})")
            text = f"insertelement {self.real} {found}, double {one}, i32 {i}"
            if i == self.width - 1:
                return text
            found = self.line(text)
        raise AssertionError


def _statements(body: list[Any]) -> Generator[Any]:
    """All statements, those inside loops too."""
    stack = list(body)
    while stack:
        s = stack.pop()
        yield s
        if isinstance(s, (For, Lanes)):
            stack.extend(s.body)


def _independent(s: Lanes) -> bool:
    """Whether several indices can run at a time: nothing is decided, each writes to places of its own, and computed
    positions are the same for all."""
    varying = _varying(s)
    for inner in _statements(s.body):
        if isinstance(inner, Locate) and inner.value in varying:
            return False
        if isinstance(inner, (If, Invoke, Lanes)):
            return False
        if isinstance(inner, SetNumber) and (inner.adds or s.name not in dict(inner.at.terms)):
            return False
    return True


def _varying(s: Lanes) -> set[Any]:
    """The variables that differ from index to index."""
    found, before = set[Any](), -1
    while len(found) > before:  # what a round changes is read in the next
        before = len(found)
        for inner in _statements(s.body):
            match inner:
                case Read() if inner.buffer.role == "own" or s.name in dict(inner.at.terms):
                    found.add(inner.name)
                case Assign() if not found.isdisjoint(inner.args):
                    found.add(inner.name)
                case Update() if not found.isdisjoint(inner.values):
                    found.update(inner.names)
                case _:
                    pass
    return found


def _defined(body: list[Any]) -> set[str]:
    """The variables that some statements set."""
    found: set[str] = set()
    for s in _statements(body):
        found.update(
            s.names if isinstance(s, Update) else [s.name] if isinstance(s, (Assign, Read, Pick, Locate)) else []
        )
    return found


def assembly(written: Statements) -> tuple[str, list[Buffer]]:
    """The text of a module, and the buffers whose addresses its function takes, in order."""
    local, rest, room = list[Buffer](), list[Buffer](), tuning.NATIVE_STACK_NUMBERS
    for b in written.own:
        if b.size <= room:
            local.append(b)
            room -= b.size
        else:
            rest.append(b)
    declared: dict[str, str] = {}
    texts: list[str] = []
    for helper in written.helpers.values():
        text = _Function(declared, written.helpers).text(helper.name, helper.buffers, [], helper.body)
        texts.append(text.replace("define i32", "define internal i32", 1))
    given = [*written.arguments, *written.results, *written.fixed, *rest]
    texts.append(_Function(declared, written.helpers).text("native", given, local, written.body))
    return "\n".join([*declared.values(), *texts]), given


_lock = threading.Lock()


@lru_cache(maxsize=256)
def compiled(text: str, arguments: int, joined: bool) -> Any:
    """The function of a module's text; the same text once. `joined`: operations of numbers that lie side by side become
    vector instructions; to find them takes longer than linear time."""
    with _lock:
        llvm: Any = import_module("llvmlite.binding")
        machine = _machine()
        module: Any = llvm.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        options: Any = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization, options.slp_vectorization = True, joined
        builder: Any = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        engine: Any = llvm.create_mcjit_compiler(module, _machine())
        engine.finalize_object()
        address = engine.get_function_address("native")
        function: Any = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * arguments)(address)
        function.kept = engine, module
        return function


def _machine() -> Any:
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target: Any = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2)
