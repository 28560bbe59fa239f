"""Modules and functions of PyTorch as functions of riesz: weights taken over, containers, types, structure, errors."""

import numpy as np
import pytest

import riesz as rz
from riesz.errors import TraceError

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
x = np.array([0.5, -1.0, 2.0])


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second, self.out = nn.Conv2d(4, 4, 3, stride=2, groups=2), nn.Linear(4, 3)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.norm(self.first(x))), 2, ceil_mode=True)
        return {"logits": self.out(self.second(x).flatten(1)), "features": (x,)}


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 8, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
        self.register_buffer("mask", torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1))

    def forward(self, tokens):
        return self.block(self.embedding(tokens), src_mask=self.mask) @ self.embedding.weight.T


def network(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*layers) if len(layers) > 1 else layers[0]


TOKENS = np.array([[1, 2, 0, 3, 6], [4, 4, 5, 1, 2]])
MODELS = {
    "mlp": (lambda: network(nn.Linear(3, 8), nn.GELU(), nn.Dropout(), nn.Linear(8, 2)), [(5, 3)]),
    "convolutions": (ConvNet, [(2, 2, 7, 7)]),
    "transformer": (Transformer, TOKENS),
    "lstm": (lambda: nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), [(2, 6, 3)]),
    "lstm with projections": (lambda: nn.LSTM(3, 4, proj_size=2), [(6, 2, 3)]),
    "gru": (lambda: nn.GRU(3, 4, bias=False), [(6, 2, 3)]),
    "rnn": (lambda: nn.RNN(3, 4, nonlinearity="relu"), [(6, 3)]),
    "cell": (lambda: nn.LSTMCell(3, 4), [(2, 3)]),
    "attention": (lambda: nn.MultiheadAttention(4, 2), [(3, 2, 4)] * 3),
}


def leaves(tree):
    if isinstance(tree, (dict, tuple, list)):
        return [v for part in (tree.values() if isinstance(tree, dict) else tree) for v in leaves(part)]
    return [] if tree is None else [tree]


@pytest.mark.parametrize("name", MODELS)
def test_modules_keep_their_values_and_gradients(name):
    make, shapes = MODELS[name]
    torch.manual_seed(1)
    module = make().double().eval()
    rng = np.random.default_rng(0)
    args = [shapes] if isinstance(shapes, np.ndarray) else [rng.normal(size=s) for s in shapes]
    f = rz.from_torch(module, *args)
    assert {*f.parameters} == {n for n, _ in module.named_parameters()}
    wanted = leaves(module(*map(torch.tensor, args)))
    found = f(f.parameters, *args)
    weights = [rng.normal(size=tuple(w.shape)) for w in wanted]
    for one, other in zip(leaves(found), wanted, strict=True):
        np.testing.assert_allclose(one, other.detach(), rtol=1e-12, atol=1e-12)
    sum([(v * torch.tensor(w)).sum() for v, w in zip(wanted, weights, strict=True)]).backward()
    loss = lambda p: sum([np.sum(v * w) for v, w in zip(leaves(f(p, *args)), weights, strict=True)])  # noqa: E731
    slope = rz.grad(loss)(f.parameters)
    for n, p in module.named_parameters():
        np.testing.assert_allclose(slope[n], p.grad, rtol=1e-10, atol=1e-10, err_msg=n)


def test_a_recurrent_layer_is_a_loop():
    lstm = nn.LSTM(3, 4).double()
    f = rz.from_torch(lstm)
    rows = [len(f.at((f.parameters, np.ones((n, 2, 3))))[0].program) for n in (5, 500)]
    assert rows[0] == rows[1] < 20


def test_structure_and_closed_forms_are_those_of_numpy_code():
    A, b = torch.arange(15.0).double().reshape(5, 3), torch.ones(5, dtype=torch.float64)
    f = rz.from_torch(lambda w: torch.sum((A @ w - b) ** 2))
    assert str(rz.derive(f, rz.R**3).gradient) == "2Aᵀ(Aw − b)"
    linear = rz.from_torch(nn.Linear(3, 2).double())
    J = rz.jacobian(lambda W: linear({"weight": W, "bias": np.zeros(2)}, np.eye(3)))(np.ones((2, 3)))
    assert "Kronecker product" in str(J.structure)
    pairs = [
        (lambda x: torch.sum((x[1:] - x[:-1]) ** 2), lambda x: np.sum((x[1:] - x[:-1]) ** 2)),
        (lambda x: torch.sum(torch.exp(x) * torch.roll(x, 1)), lambda x: np.sum(np.exp(x) * np.roll(x, 1))),
        (lambda x: torch.sum(x[torch.tensor([0, 2, 2])] ** 3), lambda x: np.sum(x[np.array([0, 2, 2])] ** 3)),
        (lambda x: torch.sum(torch.where(x > 0, x**3, x.sin())), lambda x: np.sum(np.where(x > 0, x**3, np.sin(x)))),
    ]
    for one, other in pairs:
        mine, plain = [rz.hessian(h)(np.linspace(-1, 1, 6)) for h in (rz.from_torch(one), other)]
        np.testing.assert_allclose(mine.to_dense(), plain.to_dense(), atol=1e-12)
        assert mine.to_sparse().nnz == plain.to_sparse().nnz and str(mine.structure) == str(plain.structure)


def test_containers_keywords_types_and_batches():
    f = rz.from_torch(lambda a, b=None, *, s=1: {"u": a["x"] * s, "v": [a["y"][0], b]})
    found = f({"x": x, "y": (x,)}, s=3)
    np.testing.assert_array_equal(found["u"], 3 * x)
    assert found["v"][1] is None
    assert rz.grad(rz.from_torch(lambda x, h: torch.sum(x * h)), 1)(x, 2.0) == 1.5
    linear = nn.Linear(3, 2)
    g = rz.from_torch(linear, x.astype(np.float32))
    assert g(g.parameters, x.astype(np.float32)).dtype == np.float32
    wide = {n: p.astype(float) for n, p in g.parameters.items()}
    np.testing.assert_allclose(g(wide, x), linear.double()(torch.tensor(x)).detach(), rtol=1e-14)
    many = rz.vmap(rz.grad(rz.from_torch(lambda x: torch.sum(torch.sin(x) * x))))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(many[1], np.sin(2 * x) + 2 * x * np.cos(2 * x), rtol=1e-14)
    loss = rz.grad(lambda p: np.sum(g(p, x) ** 2))
    np.testing.assert_allclose(rz.compile(loss, wide)(wide)["bias"], loss(wide)["bias"], rtol=1e-14)


def test_buffers_are_constants_or_arguments_and_tied_parameters_one():
    norm = nn.BatchNorm1d(3).double().eval()
    f, rows = rz.from_torch(norm), np.stack([x, x**2])
    moved = f({**f.parameters, "running_mean": x}, rows)
    np.testing.assert_allclose(moved, (rows - x) / np.sqrt(1 + 1e-5), rtol=1e-14)
    norm.running_mean += 1.0
    np.testing.assert_allclose(f(f.parameters, rows), rows / np.sqrt(1 + 1e-5), rtol=1e-14)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).double()
    tied[1].weight = tied[0].weight
    g = rz.from_torch(tied, x)
    assert [*g.parameters] == ["0.weight", "0.bias", "1.bias"]
    tied(torch.tensor(x)).sum().backward()
    slope = rz.grad(lambda p: np.sum(g(p, x)))(g.parameters)
    np.testing.assert_allclose(slope["0.weight"], tied[0].weight.grad, rtol=1e-12)
    with pytest.raises(TraceError, match=r"'1\.weight' has another name there"):
        g({**g.parameters, "1.weight": np.ones((3, 3))}, x)


def test_what_ends_derivatives_in_pytorch_ends_them_here():
    def still(x):
        with torch.no_grad():
            y = x * x
        return torch.sum(y * x + x.detach() * x + x.sum().item() * x)

    t = torch.tensor(x, requires_grad=True)
    still(t).backward()
    np.testing.assert_allclose(rz.grad(rz.from_torch(still))(x), t.grad, rtol=1e-14)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 5 * g


def mutated(x):
    x.add_(1)
    return x


REFUSED = [
    (Squared.apply, "Squared is a torch.autograd.Function with a backward pass"),
    (mutated, r"writes to its arguments.*clone"),
    (lambda x: x * torch.rand(3), r"rand \(.*test_from_torch\.py:\d+.*draws random numbers"),
    (lambda x: F.dropout(x), "draws random numbers"),
    (lambda x: x[x > 0], r"torch\.where.*test_from_torch\.py:\d+"),
    (lambda x: x if x.sum() > 0 else -x, r"torch\.cond"),
    (lambda x: x.sum().item(), "return the tensor itself"),
    (lambda x: torch.func.grad(lambda y: (y.sin() * x).sum())(x), r"rz\.grad"),
    (lambda x: x.bfloat16(), "NumPy has no type"),
    (nn.BatchNorm1d(3), r"running_mean.*module\.eval\(\)"),
    (nn.Linear, "takes a module or a function"),
]


@pytest.mark.parametrize(("f", "words"), REFUSED, ids=[words[:20] for _, words in REFUSED])
def test_what_has_no_meaning_here_is_refused_in_words(f, words):
    batch = isinstance(f, nn.Module)
    given = np.ones((4, 3), np.float32) if batch else x
    with pytest.raises(TraceError, match=f"(?s){words}"):
        g = rz.from_torch(f, given)
        g(g.parameters, given) if batch else g(given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: 3.0, "is the dict of its parameters"),
        (lambda p: {"weight": p["weight"]}, "'bias' is missing; they are weight, bias"),
        (lambda p: p | {"b": x}, "'b' is not one of them"),
        (lambda p: p | {"bias": x}, r"'bias' has shape \(3,\), not \(2,\)"),
    ],
)
def test_wrong_parameters_are_named(change, words):
    f = rz.from_torch(nn.Linear(3, 2).double())
    with pytest.raises(TraceError, match=words):
        f(change(f.parameters), x)


def test_an_unknown_operation_is_named_with_its_line_and_can_be_registered():
    @torch.library.custom_op("riesz_tests::cubed", mutates_args=())
    def cubed(x: torch.Tensor, factor: float) -> torch.Tensor:
        return factor * x**3

    cubed.register_fake(lambda x, factor: torch.empty_like(x))
    f = lambda x: torch.sum(cubed(x, 2.0))  # noqa: E731
    with pytest.raises(TraceError, match=r"riesz_tests::cubed, used at .*test_from_torch\.py:\d+.*rz\.torch_rule"):
        rz.from_torch(f)(x)
    rz.torch_rule(cubed, lambda x, factor: factor * x**3)
    np.testing.assert_allclose(rz.grad(rz.from_torch(f))(x), 6 * x**2)
    with pytest.raises(TraceError, match="takes an operation of PyTorch"):
        rz.torch_rule(3.0)


def test_ties_are_shared_as_in_pytorch():
    ties = np.array([0.0, 0.0, 1.0, -1.0])
    for f in (torch.relu, lambda x: x.clamp(0, 1), F.hardtanh, torch.abs, torch.amax, lambda x: x.max(0)[0],
              lambda x: x.cummax(0)[0], F.leaky_relu, lambda x: F.max_pool1d(x[None], 2), F.relu6):  # fmt: skip
        t = torch.tensor(ties, requires_grad=True)
        f(t).sum().backward()
        np.testing.assert_array_equal(rz.grad(rz.from_torch(lambda x, f=f: f(x).sum()))(ties), t.grad)


def test_the_table_of_operations_is_up_to_date():
    from pathlib import Path

    from riesz.importing.torch_page import page

    assert (Path(__file__).parents[2] / "docs" / "torch.md").read_text() == page()
