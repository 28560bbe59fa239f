"""Fits with equations c(x) = 0: a sequence of fits without (augmented Lagrangian)."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SpaceError
from ..tracing.argument_trees import flatten
from .fit_loop import Damping, Fit, Residual, Settings, start_of
from .fit_result import LeastSquaresResult
from .unknowns import Unknowns
from .whitening import whitened

ROUNDS = 30
"""How often multipliers are moved."""


def with_equations(residual: Any, x0: Any, args: Any, policy: Any, settings: Settings, work: Any) -> LeastSquaresResult:
    """min ½‖r(x)‖² where c(x) = 0, by fits of (r, √μ (c + y/μ)); multipliers y move after each, μ grows where the
    equations do not come nearer. r + Jcᵀy has gradient 0 at the solution."""
    start, equality = start_of(x0), settings.equality
    if settings.weights is not None or settings.information is not None:
        residual = whitened(residual, settings.weights, settings.information)
    parts = [np.ravel(c) for c in flatten(equality(start, *args))[0]]
    if not parts:
        raise SpaceError("equality gives no numbers: a function c(x, *args) with c = 0 is due")

    def both(x: Any, root: Any, shift: Any, *rest: Any) -> Any:
        c = [np.ravel(part) for part in flatten(equality(x, *rest))[0]]
        return residual(x, *rest), root * (np.concatenate(c) if len(c) > 1 else c[0]) + shift

    inner = Settings(settings.most, settings.tolerance, None, settings.method)
    inner.__dict__.update({k: v for k, v in vars(settings).items() if k not in ("equality", "weights", "information")})
    inner.weights = inner.information = inner.equality = None
    losses, plain = settings.loss, settings.loss is None or settings.loss == "linear"
    inner.loss = None if plain else (losses, None)
    unknowns = Unknowns(start, settings.manifold, settings.fixed, settings.bounds, settings.x_scale)
    start = start if unknowns.lower is None else unknowns.moved(start, np.zeros(unknowns.n))
    f = Residual(both, unknowns, inner)
    c = np.concatenate(parts)
    y, number, history = np.zeros(len(c)), 0, None
    x, found, size, before = start, None, np.inf, np.inf
    first = flatten(residual(start, *args))[0]
    scale = sum([float(np.sum(np.square(leaf))) for leaf in first])
    mu = max(1.0, 10.0 * scale / max(float(c @ c), 1e-300)) if c.any() else 10.0
    mu = min(mu, 1e6)
    for _ in range(ROUNDS):
        root = np.sqrt(mu)
        fit = Fit(f, f.at(x, (float(root), y / root, *args)), policy, inner, work)
        found = fit.run()
        number, x = number + found.iterations, found.x
        history = found.history if history is None else [*history, *found.history[1:]]
        c = np.concatenate([np.ravel(part) for part in flatten(equality(x, *args))[0]])
        y, size = y + mu * c, float(np.linalg.norm(c))
        if size <= 1e-10 * (1.0 + float(np.linalg.norm(y)) / mu):
            break
        mu, before = mu * (10.0 if size > 0.1 * before and mu < 1e10 else 1.0), size
        if isinstance(policy, Damping):
            policy.value, policy.growth = max(policy.value, 1e-8), 2.0
    assert found is not None and history is not None
    found.multipliers, found.history, found.iterations = y, history, number
    found.residual = found.residual[0]
    r = np.concatenate([np.zeros(0), *[np.ravel(leaf) for leaf in flatten(found.residual)[0]]])
    found.cost = 0.5 * float(r @ r) if fit.robust is None else fit.robust.cost(np.append(r, np.zeros(len(c))))  # pyright: ignore
    if size > 1e-8 * (1.0 + float(np.linalg.norm(y)) / mu):
        found.converged, found.message = False, f"the equations are off by {size:.2e}"
    return found
