"""Closed forms of random functions are their derivatives: as code that runs alone, and as a text that is read again."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import random_forms
from sampling import sampled

import riesz as rz

SEEDS = [("gradient", 3, k) for k in range(60)] + [("jacobian", 2, k) for k in range(30)]
SEEDS += [("hessian", 2, k) for k in range(30)]


def close(found, expected):
    expected = np.asarray(expected, float)
    found = np.broadcast_to(np.asarray(found, float).reshape(np.shape(found)), expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize(("kind", "depth", "seed"), sampled(SEEDS, 3))
def test_a_random_form_is_the_derivative(kind, depth, seed):
    body, f = random_forms.function(seed, kind, depth)
    x = 0.7 * np.random.default_rng(seed).normal(size=random_forms.SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = rz.grad(f)(x) if kind == "gradient" else getattr(rz, kind)(f)(x).to_dense()
        form = getattr(rz.derive(f, np.ones_like(x)), kind)
        assert not form.problem, (body, form.problem)
        given = [v for _, v in form.written().given()]
        space: dict = {}
        exec(form.code("numpy"), space)
        close(space[kind](x, *given), expected)
        try:
            text = form.code("text")
        except rz.ExpressionError:
            return
        close(rz.function(text)(x, *given), expected)
