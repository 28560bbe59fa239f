"""Conjugate gradients and LSMR round by round, with a state that a checkpoint keeps."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import SolveError

Apply = Callable[[Any], Any]
State = dict[str, Any]


def itself(x: Any) -> Any:
    """No preconditioner."""
    return x


def chained(first: Apply, then: Apply) -> Apply:
    """One after the other."""
    return lambda x: then(first(x))


def conjugate_gradients(apply: Apply, near: Apply, b: Any, state: State | None) -> Iterator[State]:
    """States of conjugate gradients for A x = b, `near` about A⁻¹, the first or those after `state`."""
    if state is None:
        z = near(b)
        state = {"k": 0, "x": np.zeros_like(b), "r": b, "p": z, "rz": float(b @ z), "size": float(np.linalg.norm(b))}
    yield state
    x, r, p, rz, k = [state[name] for name in ("x", "r", "p", "rz", "k")]
    while True:
        Ap = apply(p)
        curvature = float(p @ Ap)
        if not curvature > 0.0:
            raise SolveError(f"conjugate gradients: the map is not positive definite (pᵀAp = {curvature:.1e})")
        step = rz / curvature
        x, r, k = x + step * p, r - step * Ap, k + 1
        z = near(r)
        new = float(r @ z)
        p, rz = z + (new / rz) * p, new
        yield {"k": k, "x": x, "r": r, "p": p, "rz": rz, "size": float(np.linalg.norm(r))}


def _turned(a: float, b: float) -> tuple[float, float, float]:
    """The rotation (c, s) that takes (a, b) to (r, 0)."""
    r = math.hypot(a, b)
    return (1.0, 0.0, 0.0) if not r else (a / r, b / r, r)


def _unit(v: Any) -> tuple[float, Any]:
    size = float(np.linalg.norm(v))
    return size, v / size if size else v


def least_squares(apply: Apply, turned: Apply, b: Any, state: State | None) -> Iterator[State]:
    """States of LSMR for min ‖A x − b‖ (Fong and Saunders): bidiagonalisation, and two rotations in each round. `size`
    is ‖r‖, `slope` ‖Aᵀr‖ and `norm` ‖A‖, as they are estimated."""
    if state is None:
        beta, u = _unit(b)
        alpha, v = _unit(turned(u))
        state = {"k": 0, "u": u, "v": v, "h": v, "hbar": 0.0 * v, "x": 0.0 * v, "alpha": alpha, "alphabar": alpha}
        state |= {"zetabar": alpha * beta, "rho": 1.0, "rhobar": 1.0, "cbar": 1.0, "sbar": 0.0, "squares": alpha**2}
        state |= {"betadd": beta, "betad": 0.0, "rhodold": 1.0, "tau": 0.0, "thetatilde": 0.0, "zeta": 0.0}
        state |= {"size": beta, "slope": alpha * beta, "norm": alpha}
    yield state
    s = dict(state)
    while True:
        beta, u = _unit(apply(s["v"]) - s["alpha"] * s["u"])
        alpha, v = _unit(turned(u) - beta * s["v"])
        c, sn, rho = _turned(s["alphabar"], beta)
        theta, alphabar = sn * alpha, c * alpha
        thetabar, rhotemp, rhobarold, zetaold = s["sbar"] * rho, s["cbar"] * rho, s["rhobar"], s["zeta"]
        cbar, sbar, rhobar = _turned(rhotemp, theta)
        zeta, zetabar = cbar * s["zetabar"], -sbar * s["zetabar"]
        hbar = s["h"] - (thetabar * rho / (s["rho"] * rhobarold)) * s["hbar"]
        x = s["x"] + (zeta / (rho * rhobar)) * hbar
        h = v - (theta / rho) * s["h"]
        betahat, betadd = c * s["betadd"], -sn * s["betadd"]
        ctilde, stilde, rhotilde = _turned(s["rhodold"], thetabar)
        thetatilde, rhod = stilde * rhobar, ctilde * rhobar
        betad = -stilde * s["betad"] + ctilde * betahat
        tau = (zetaold - s["thetatilde"] * s["tau"]) / rhotilde
        taud = (zeta - thetatilde * tau) / rhod if rhod else 0.0
        size = math.sqrt((betad - taud) ** 2 + betadd**2)
        norm2 = s["squares"] + beta**2
        s = {"k": s["k"] + 1, "u": u, "v": v, "h": h, "hbar": hbar, "x": x, "alpha": alpha, "alphabar": alphabar}
        s |= {"zetabar": zetabar, "rho": rho, "rhobar": rhobar, "cbar": cbar, "sbar": sbar}
        s |= {"betadd": betadd, "betad": betad, "rhodold": rhod, "tau": tau, "thetatilde": thetatilde, "zeta": zeta}
        s |= {"size": size, "slope": abs(zetabar), "norm": math.sqrt(norm2), "squares": norm2 + alpha**2}
        yield s
