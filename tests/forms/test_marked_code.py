"""Code with the numbers of its parts: without them it is the code, and the formula knows the same numbers."""

import re

import numpy as np
import pytest

import riesz as rz
from riesz.forms.form_code import CLOSED, NUMBERED, OPENED

A, b = np.arange(6.0).reshape(3, 2), np.ones(3)
FORMS = [
    rz.derive(lambda x: np.sum((A @ x - b) ** 2), rz.R**2).gradient,
    rz.derive("x, W -> tanh(W @ x)", rz.R**3, rz.R ** (2, 3)).jacobian,
    rz.derive("X -> log(det(X))", rz.R ** (3, 3)).gradient,
    rz.derive("x -> sum(sqrt(x ** 2 + 1))", rz.R**3).hessian,
    rz.derive("x -> x[1:] * x[:-1]", rz.R**4).jacobian,
    rz.derive("x -> norm(x) / (1 + sum(exp(x)))", rz.R**3).gradient,
]


@pytest.mark.parametrize("target", ["numpy", "jax", "torch", "julia", "matlab", "text", "latex"])
@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_marks_are_beside_the_code(form, target):
    try:
        plain = form.code(target)
    except rz.ExpressionError:
        with pytest.raises(rz.ExpressionError):
            form.code(target, ids=True)
        return
    marked = form.code(target, ids=True)
    assert re.sub(f"{OPENED}\\d+{NUMBERED}|{CLOSED}", "", marked) == plain
    assert marked.count(OPENED) == marked.count(NUMBERED) == marked.count(CLOSED)
    in_code = {int(k) for k in re.findall(f"{OPENED}(\\d+){NUMBERED}", marked)}
    in_formula = {int(k) for k in re.findall(r'data-id="(\d+)"', form.mathml(ids=True))}
    assert target == "latex" or len(in_code & in_formula) >= 2
