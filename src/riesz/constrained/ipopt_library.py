"""Ipopt where a shared library of it is found, through its C interface: the one in CasADi's wheel, or the system's."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, c_char_p, c_double, c_int, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS = INDICES = c_void_p
VALUE = CFUNCTYPE(c_int, c_int, NUMBERS, c_int, NUMBERS, c_void_p)
HELD = CFUNCTYPE(c_int, c_int, NUMBERS, c_int, c_int, NUMBERS, c_void_p)
JACOBIAN = CFUNCTYPE(c_int, c_int, NUMBERS, c_int, c_int, c_int, INDICES, INDICES, NUMBERS, c_void_p)
HESSIAN = CFUNCTYPE(
    c_int, c_int, NUMBERS, c_int, c_double, c_int, NUMBERS, c_int, c_int, INDICES, INDICES, NUMBERS, c_void_p
)
STEP = CFUNCTYPE(c_int, c_int, c_int, *[c_double] * 8, c_int, c_void_p)

SAID = {
    0: "Optimal Solution Found.", 1: "Solved To Acceptable Level.",
    2: "Converged to a point of local infeasibility. Problem may be infeasible.",
    3: "Search Direction is becoming Too Small.", 4: "Iterates diverging; problem might be unbounded.",
    5: "Stopping optimization at current point as requested by user.", 6: "Feasible point for square problem found.",
    -1: "Maximum Number of Iterations Exceeded.", -2: "Restoration Failed!", -3: "Error in step computation!",
    -4: "Maximum CPU time exceeded.", -5: "Maximum wallclock time exceeded.",
    -10: "Problem has too few degrees of freedom.",
    -11: "Problem has inconsistent variable bounds or constraint sides.",
    -12: "Invalid option encountered.", -13: "Invalid number in NLP function or derivative detected.",
}  # fmt: skip
"""What Ipopt's return codes mean, in its own words."""


@cache
def library() -> Any:
    """The library; None where there is none."""
    names: list[str] = []
    spec = find_spec("casadi")
    if spec is not None and spec.origin:
        beside = Path(spec.origin).parent
        names = [str(p) for kind in ("libipopt.so.3", "libipopt.3.dylib", "libipopt-3.dll") for p in beside.glob(kind)]
    from ctypes.util import find_library

    names += [name for name in [find_library("ipopt")] if name]
    for name in names:
        try:
            found = ctypes.CDLL(name)
            found.CreateIpoptProblem.restype = c_void_p
        except (OSError, AttributeError):
            continue
        ends = [c_int, NUMBERS, NUMBERS]
        found.CreateIpoptProblem.argtypes = [*ends, *ends, c_int, c_int, c_int, VALUE, HELD, VALUE, JACOBIAN, HESSIAN]
        found.FreeIpoptProblem.argtypes = [c_void_p]
        found.SetIntermediateCallback.argtypes = [c_void_p, STEP]
        found.IpoptSolve.argtypes = [c_void_p, *[NUMBERS] * 6, c_void_p]
        for kind, value in (("Str", c_char_p), ("Num", c_double), ("Int", c_int)):
            add = getattr(found, f"AddIpopt{kind}Option")
            add.argtypes, add.restype = [c_void_p, c_char_p, value], c_int
        return found
    return None


def _array(at: int, n: int, kind: Any = np.float64) -> Any:
    """The numbers at an address."""
    return np.frombuffer((ctypes.c_byte * (n * kind().itemsize)).from_address(at), kind) if n else np.zeros(0, kind)


class Problem:
    """A problem as cyipopt has it: the same constructor, `add_option` and `solve`."""

    def __init__(self, n: int, m: int, problem_obj: Any, lb: Any, ub: Any, cl: Any, cu: Any) -> None:
        self._n, self._m, self._calls, self._error = n, m, problem_obj, None
        self._ends = [np.ascontiguousarray(a, float) for a in (lb, ub, cl, cu)]
        self._options: dict[str, Any] = {}

    def add_option(self, name: str, value: Any) -> None:
        """Set an option, a text or a number, for `solve`."""
        self._options[name] = value

    def _guarded(self, kind: Any, act: Any) -> Any:
        """A callback: what goes wrong in it ends the solution and is raised after it."""

        def call(*given: Any) -> int:
            try:
                return int(act(*given) is not False)
            except BaseException as error:  # it must not pass through C
                self._error = error
                return 0

        return kind(call)

    def _callbacks(self) -> tuple[list[Any], int, int]:
        n, m, calls = self._n, self._m, self._calls
        jacobian_at, hessian_at = calls.jacobianstructure(), calls.hessianstructure()

        def objective(_n, x, _new, value, _user):
            _array(value, 1)[0] = calls.objective(_array(x, n))

        def constraints(_n, x, _new, _m, held, _user):
            _array(held, m)[:] = calls.constraints(_array(x, n))

        def gradient(_n, x, _new, slopes, _user):
            _array(slopes, n)[:] = calls.gradient(_array(x, n))

        def placed(pattern, rows, columns):
            for target, given in zip((rows, columns), pattern, strict=True):
                _array(target, len(given), np.int32)[:] = given

        def jacobian(_n, x, _new, _m, count, rows, columns, numbers, _user):
            if not numbers:
                return placed(jacobian_at, rows, columns)
            _array(numbers, count)[:] = calls.jacobian(_array(x, n))

        def hessian(_n, x, _new, sigma, _m, multipliers, _newer, count, rows, columns, numbers, _user):
            if not numbers:
                return placed(hessian_at, rows, columns)
            _array(numbers, count)[:] = calls.hessian(_array(x, n), _array(multipliers, m), sigma)

        kinds = (VALUE, HELD, VALUE, JACOBIAN, HESSIAN)
        acts = (objective, constraints, gradient, jacobian, hessian)
        found = [self._guarded(kind, act) for kind, act in zip(kinds, acts, strict=True)]
        return found, len(jacobian_at[0]), len(hessian_at[0])

    def solve(self, x: Any, lagrange: Any = None, zl: Any = None, zu: Any = None) -> tuple[Any, dict[str, Any]]:
        """The solution and what is known of it."""
        ipopt, n, m = library(), self._n, self._m
        callbacks, jacobian_size, hessian_size = self._callbacks()
        low, high, below, above = [a.ctypes.data for a in self._ends]
        made = ipopt.CreateIpoptProblem(n, low, high, m, below, above, jacobian_size, hessian_size, 0, *callbacks)
        if not made:
            raise ValueError("Ipopt refuses this problem: its bounds or its sizes make no sense")
        try:
            self._set(ipopt, made)
            step = self._guarded(STEP, lambda *given: self._calls.intermediate(*given[:-1]))  # pyright: ignore
            ipopt.SetIntermediateCallback(made, step)
            x, g, value = np.array(x, float), np.zeros(m), np.zeros(1)
            sizes = ((lagrange, m), (zl, n), (zu, n))
            held = [np.zeros(k) if a is None else np.array(a, float) for a, k in sizes]
            status = ipopt.IpoptSolve(made, *[a.ctypes.data for a in (x, g, value, *held)], None)
        finally:
            ipopt.FreeIpoptProblem(made)
        if self._error is not None:
            raise self._error
        names = ("mult_g", "mult_x_L", "mult_x_U")
        said = SAID.get(status, f"Ipopt ended with the code {status}.")
        return x, {"status": status, "status_msg": said, **dict(zip(names, held, strict=True))}

    def _set(self, ipopt: Any, made: Any) -> None:
        for name, value in self._options.items():
            code = name.encode()
            if isinstance(value, str):
                fine = ipopt.AddIpoptStrOption(made, code, value.encode())
            elif isinstance(value, (int, np.integer)):
                fine = ipopt.AddIpoptIntOption(made, code, int(value))
                fine = fine or ipopt.AddIpoptNumOption(made, code, float(value))
            else:
                fine = ipopt.AddIpoptNumOption(made, code, float(value))
            if not fine & 255:  # a bool of C
                raise TypeError(f"Ipopt knows no option {name!r} with the value {value!r}")
