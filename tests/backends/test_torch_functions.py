"""Compiled functions on tensors: under torch.func and torch.compile, and what they refuse."""

import numpy as np
import pytest

import riesz as rz
from riesz.errors import VectorError

torch = pytest.importorskip("torch")
x = torch.arange(4.0, dtype=torch.float64)


def model(x):
    c, ys = rz.loop(lambda c, r: (np.tanh(c * r + 0.1), np.sum(c)), x, np.arange(4.0))
    return {"a": c[::-1], "b": ys}


def test_torch_func_goes_through_to_any_order():
    f = rz.compile(lambda x: np.sum(np.sin(x) ** 2)).to_torch()
    torch.testing.assert_close(torch.func.grad(f)(x), torch.sin(2 * x))
    second = torch.func.grad(lambda x: torch.func.grad(f)(x).sum())(x)
    torch.testing.assert_close(second, 2 * torch.cos(2 * x))
    torch.testing.assert_close(torch.func.vjp(f, x)[1](torch.tensor(2.0).double())[0], 2 * torch.sin(2 * x))


def test_what_torch_compiles_around_it_computes_the_same():
    f = rz.compile(model).to_torch()
    whole = lambda x: ((f(x * 2)["a"] + 1) * f(x)["b"].sum()).sum()  # noqa: E731
    one, other = [v.clone().requires_grad_() for v in (x, x)]
    compiled = torch.compile(whole, backend="aot_eager")
    torch.testing.assert_close(compiled(one), whole(other))
    compiled(one).backward()
    whole(other).backward()
    torch.testing.assert_close(one.grad, other.grad)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="model is code that riesz compiled"):
        torch.compile(whole, backend="eager", fullgraph=True)(x)


def test_results_are_memory_of_their_own_and_types_without_numpy_are_refused():
    f = rz.compile(lambda x: (x, np.broadcast_to(x, (2, 4)), np.ones(3))).to_torch()
    for k in range(3):
        first = f(x)[k].clone()
        f(x)[k].add_(1)
        torch.testing.assert_close(f(x)[k], first)
    conjugate = torch.imag(torch.conj(torch.complex(x, x)))  # negative by a bit, not by its numbers
    torch.testing.assert_close(rz.compile(lambda x: 2 * x).to_torch()(conjugate), -2 * x)
    with pytest.raises(VectorError, match=r"torch\.bfloat16.*x\.float\(\)"):
        f(x.bfloat16())
