"""A few hundred calls of PyTorch's library: values, gradients, directional derivatives and Hessians are PyTorch's."""

import numpy as np
import pytest
from cases_torch import CASES
from sampling import sampled

import riesz as rz

torch = pytest.importorskip("torch")


def argument(text, rng):
    """An argument from its text: a shape, and what its numbers are like."""
    kind = "".join([c for c in text if c in "+us"])
    shape = tuple([int(n) for n in text.split("+")[0].strip("us").split(",") if n])
    if kind == "+":
        return rng.uniform(1.1, 2.0, shape) if text.endswith("+2") else rng.uniform(0.5, 1.5, shape)
    if kind == "u":
        return rng.uniform(0.1, 0.9, shape)
    if kind == "s":
        a = rng.normal(size=shape)
        return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])
    return rng.normal(size=shape)


def written(x):
    y = x.clone()
    y[1:] += x[:-1] ** 2
    y.mul_(2)[0] = x[3]
    return y


def masked(x):
    y = x**2
    y[x > 0] = 1.0
    return y * x


def still(x):
    with torch.no_grad():
        y = x * x
        with torch.enable_grad():
            pass
    return y * x


def looped(x):
    from torch._higher_order_ops.while_loop import while_loop

    if not torch.compiler.is_exporting():  # second derivatives are wrong in PyTorch 2.13
        return x.sin().sin().sin()
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin()), (torch.tensor(0), x))[1]


def scanned(x):
    if not torch.compiler.is_exporting():  # second derivatives of scan are wrong in PyTorch 2.13
        rows, c = [], x[0]
        for v in x:
            rows.append(c + v)
            c = c * v.sin()
        return torch.stack(rows)
    from torch._higher_order_ops.scan import scan

    return scan(lambda c, v: (c * v.sin(), c + v), x[0], x)[1]


def function(code, count):
    names = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
    names |= {f.__name__: f for f in (written, masked, still, looped, scanned)}
    return eval(f"lambda {', '.join('xyz'[:count])}: {code}", names)


def agree(found, wanted, tolerance, what):
    found, wanted = np.asarray(found), wanted.detach().numpy()
    assert found.shape == wanted.shape, what
    scale = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=what)


ROUGH = {"torch.digamma": 1e-8, "torch.polygamma": 1e-8, "torch.mvlgamma": 1e-8, "F.hardsigmoid": 1e-6}
"""Of what PyTorch's own numbers are less exact: its polygamma, and 1/6 of single precision."""


def checked(code, kinds):
    rough = ROUGH.get(code.split("(")[0], 0.0)
    rng = np.random.default_rng(len(code))
    args = [argument(k, rng) for k in kinds]
    f = function(code, len(args))
    given = [torch.tensor(x) for x in args]
    wanted = f(*given)
    g = rz.from_torch(f, *args)
    agree(g(*args), wanted, max(rough, 1e-12), f"value of {code}")
    w = rng.normal(size=wanted.shape)
    moving = [x.clone().requires_grad_() for x in given]
    loss = (f(*moving) * torch.tensor(w)).sum()
    wants = torch.autograd.grad(loss, moving, create_graph=True, allow_unused=True)
    mine = lambda *xs: np.sum(w * g(*xs))  # noqa: E731
    moves = [rng.normal(size=x.shape) for x in args]
    _, L = rz.linearize(mine, *args)
    due = sum([(v.detach() * torch.tensor(m)).sum() for v, m in zip(wants, moves, strict=True) if v is not None])
    agree(L(*moves), due, max(rough, 1e-9), f"directional derivative of {code}")
    for i, want in enumerate(wants):
        want = torch.zeros_like(given[i]) if want is None else want
        agree(rz.grad(mine, i)(*args), want, max(rough, 1e-10), f"gradient of {code} in {'xyz'[i]}")
        if args[i].size <= 12 and want.requires_grad:
            try:
                parts = [
                    torch.autograd.grad(v, moving[i], retain_graph=True, allow_unused=True)[0] for v in want.flatten()
                ]
            except (RuntimeError, NotImplementedError) as problem:
                assert "not implemented" in str(problem)  # PyTorch has no second derivative
                continue
            hessian = torch.stack([torch.zeros_like(given[i]) if p is None else p for p in parts])
            hessian = hessian.reshape(args[i].size, -1)
            if torch.isfinite(hessian).all():
                agree(
                    rz.hessian(mine, i)(*args).to_dense(), hessian, max(rough, 1e-9), f"Hessian of {code} in {'xyz'[i]}"
                )


@pytest.mark.parametrize(("code", "kinds"), sampled(CASES, 40), ids=str)
def test_calls_of_pytorch_have_its_values_and_derivatives(code, kinds):
    checked(code, kinds)
