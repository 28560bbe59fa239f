"""One-line instructions for random programs: the tables of the tests, line by line, and some of our own.

A template is an expression in `np` (NumPy, or what stands for it), `onp` (NumPy always, for constants), `s` (scipy.special), `sl` (scipy.linalg) and
the names x, y, z, u, with what each name stands for: a shape (None: any), an interval, a kind of number, or a kind of matrix.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0"
)  # the tables are written for it: many tiny programs

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"


class Given(NamedTuple):
    """What an argument of a template is: numbers of a kind ("f", "i", "b") and a shape within an interval, or a matrix with a property."""

    shape: tuple[int, ...] | None = None
    low: float = -2.5
    high: float = 2.5
    kind: str = "f"
    matrix: str = ""  # "regular", "positive"


class Template(NamedTuple):
    """An expression with {0}, {1}, … for its arguments; for JAX, the same or another; None: JAX has no such function, or another convention."""

    family: str
    text: str
    given: tuple[Given, ...]
    jax: str | None


def holes(text: str, count: int) -> str:
    """x, y, z, u as {0}, {1}, {2}, {3}."""
    names = "xyzu"[:count]
    escaped = text.replace("{", "{{").replace("}", "}}")
    return re.sub(rf"(?<![\w.'\"])([{names}])(?![\w'\"=])", lambda m: f"{{{names.index(m[1])}}}", escaped)


FAMILIES = {  # words, one of which is in the text; the first family that has one
    "special functions": r"\bs\.",
    "linear algebra": r"linalg\.|sl\.",
    "fourier": r"fft",
    "sorting and statistics": r"sort|median|quantile|percentile|partition|searchsorted|digitize|interp|choose|bincount|cov\(|corrcoef|polyval",
    "products": r"einsum|matmul|@|dot\(|inner\(|outer\(|kron|cross\(|convolve|correlate|vecdot|matvec|vecmat",
    "indexing": r"^x\[|\[.*arg(max|min)|take|compress|delete|insert|\.flat",
    "reductions": r"\.(sum|mean|prod|var|std|max|min|amax|amin|ptp|average|any|all|count_nonzero|cumsum|cumprod|cumulative_\w+|nan\w+|"
    r"argmax|argmin|trapezoid|reduce|accumulate|diff|ediff1d|gradient|trace)\(",
    "choosing": r"where|select|clip|piecewise|maximum|minimum|fmax|fmin",
    "rearranging": r"reshape|ravel|transpose|swapaxes|moveaxis|rollaxis|expand_dims|squeeze|atleast|broadcast|flip|roll|rot90|tile|repeat|"
    r"resize|stack|concatenate|concat\(|append|block|split|pad|meshgrid|diag|tri[lu]|copy|array|permute_dims|flatten|\.T|\.mT|sliding|"
    r"for .* in|list\(|tuple\(",
}


def family(text: str) -> str:
    """The family of the coverage table an expression belongs to."""
    return next((name for name, pattern in FAMILIES.items() if re.search(pattern, text)), "elementwise")


def entered(text: str, given: tuple[Given, ...], jax: str | None) -> Template:
    return Template(family(text), holes(text, len(given)), given, None if jax is None else holes(jax, len(given)))


def from_tables() -> list[Template]:
    """The cases that the tests of the NumPy front end are made of."""
    for folder in (TESTS / "support", TESTS / "tracing"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    import cases_pointwise  # noqa: F401  (the tables enter themselves)
    import cases_structure  # noqa: F401
    import test_fourier
    import test_linalg
    import test_sorting
    import test_special
    from cases import CASES

    found: dict[tuple[Any, ...], Template] = {}

    def enter(t: Template) -> None:
        found.setdefault((t.text, t.given), t)

    for c in CASES:
        given = tuple([Given(d.shape, d.low, d.high) for d in c.inputs])
        enter(entered(c.text, given, c.text))  # where JAX has another convention, differences decide
    for text, intervals, source in test_special.LINES:
        enter(entered(text, tuple([Given(None, *i) for i in intervals]), text if source == "jax" else None))
    for c in test_linalg.CASES:
        enter(
            entered(
                c.text, tuple([_matrix(x) for x in c.inputs]), None if c.jax is None or "dense_band" in c.jax else c.jax
            )
        )
    for name, is_complex, shape, named in test_fourier.CALLS:
        rest = "".join([f", {k}={v!r}" for k, v in named.items()])
        call = f"np.fft.{name}({'x + 1j * y' if is_complex else 'x'}{rest})"
        text = (
            call if name.startswith(("irfft", "hfft")) else f"np.real({call})" if len(rest) % 2 else f"np.imag({call})"
        )
        enter(entered(text, (Given(shape),) * (1 + is_complex), None if "-1" in rest else text))
    constants = {
        "KNOTS": "onp.array([-2.0, -1.0, 0.5, 2.0])",
        "NAN": "onp.array([[0.0, onp.nan, 0.0, 0.0], [onp.nan, 0.0, 0.0, onp.nan], [0.0, 0.0, 0.0, 0.0]])",
        "INDEX": "onp.array([[2, 0, 0], [1, -1, 2]])",
    }
    for text, *rest in test_sorting.LINES:
        for name, value in constants.items():
            text = re.sub(rf"\b{name}\b", value, text)
        shapes = tuple([Given(r) for r in rest if r != "steps"])
        enter(entered(text, shapes, text))
    return list(found.values())


def _matrix(x: Any) -> Given:
    """What kind of matrix an example of the table of linear algebra is."""
    square = x.ndim >= 2 and x.shape[-1] == x.shape[-2]
    if square and np.array_equal(x, np.swapaxes(x, -1, -2)):
        return Given(x.shape, matrix="positive")
    return Given(x.shape, matrix="regular" if square else "")


ANY, POSITIVE, INSIDE, INTEGERS, TRUTHS = (
    Given(),
    Given(None, 0.3, 3.0),
    Given(None, -0.9, 0.9),
    Given(kind="i"),
    Given(kind="b"),
)
OURS = {  # kinds of arguments: expressions separated by semicolons; * before one: JAX does not know it
    (ANY,): """
        np.sin({0}); np.tanh({0}) * {0}; np.exp(0.5 * {0}); np.log1p({0} ** 2); 1.0 / (1.5 + {0} ** 2); {0} * {0}; {0} - 0.5; 2 * {0}; {0} / 3;
        -{0}; {0} ** 3; abs({0}); np.sum({0}); np.sum({0} ** 2) * {0}; np.mean({0}) + {0}; np.cumsum({0}); {0}.sum(); {0}.T * 2.0; {0}[::-1];
        {0}[1:] * {0}[:-1]; {0}[..., ::2]; {0}[None]; {0}[..., None] * {0}; np.ravel({0})[::-1]; {0}[0]; {0}[-1:]; np.max({0});
        np.min({0}, axis=-1); np.exp({0} - np.max({0})) / np.sum(np.exp({0} - np.max({0}))); np.where({0} > 0, {0}, 0.1 * {0});
        np.where({0} > 0.3, {0} ** 2, -1.0); np.linalg.norm({0}); np.sqrt(1 + {0} ** 2); np.concatenate([{0}, np.cos({0})]);
        np.stack([{0}, 2 * {0}], axis=-1); np.diff({0}, axis=0); np.outer({0}, {0}); np.maximum({0}, 0.25); np.tile({0}, 2); np.pad({0}, 1);
        np.roll({0}, 1); np.flip({0}); np.expand_dims({0}, 0); {0} * True; {0} + 1j.imag; {0} * onp.float32(2.0); onp.float64(0.5) + {0};
        {0} // 0.5; {0} % 0.75; np.prod(np.tanh({0}) + 0.2, axis=0); np.argmax({0}, axis=0); np.argsort({0}, axis=0); {0} > 0.2;
        ({0} > -0.5) & ({0} < 1.0); np.floor({0}).astype(int); np.sign({0}); np.zeros_like({0}) + {0}; np.ones_like({0});
        np.full_like({0}, 0.5) * {0}; np.einsum("...i,...i->...", {0}, {0}); np.einsum("i...,i...->...", {0}, np.sin({0}));
        np.einsum("...i->i...", {0}); np.tensordot({0}, {0}, {0}.ndim); {0} @ np.swapaxes({0}, -1, -2); np.sort({0}, axis=0)[-2:];
        np.take({0}, np.argmax({0}, axis=0), axis=0); np.var({0}, axis=0); np.std({0}, axis=-1, keepdims=True) * {0};
        np.broadcast_to({0}, (2, *{0}.shape)); np.linspace({0}, 1.0, 3); np.real(np.fft.fft({0})); np.imag(np.fft.fft({0}, axis=0));
        np.abs(np.fft.rfft({0})) ** 2; np.fft.irfft(np.fft.rfft({0}), n={0}.shape[-1]); np.real(np.fft.ifft({0} * np.exp(1j * {0})));
        np.fft.fftshift({0}); np.real(np.fft.fft2({0})); np.fft.hfft({0}); np.imag(np.fft.ihfft({0})); np.fft.irfft({0} + 0.5j * {0});
        np.abs(np.fft.fftn({0}, norm="ortho")) ** 2; np.real(np.exp(1j * {0})); np.real(np.conj({0} + 1j) * (1.0 + 2.0j));
        np.angle(1.5 + {0} ** 2 + 1j); *np.cov({0}); *np.corrcoef({0}); np.polyval(onp.array([1.0, -0.5, 0.2]), {0});
        *np.polyval([1.0, 2.0], {0}); (lambda t: t * t)({0}); sum([{0}, 2.0 * {0}]); [{0}, {0} ** 2][1];
        np.array([np.sum({0}), 1.0, np.max({0})]); np.nan_to_num({0}); np.nansum(np.where({0} > 0, {0}, onp.nan), axis=0);
        np.where({0} > 0, np.log(np.where({0} > 0, {0}, 1.0)), {0}); np.trace({0} @ {0}.T); np.dot({0}, {0}.T); np.inner({0}, {0});
        np.vdot({0}, {0}); np.kron({0}, {0}); np.diag({0}); np.tril({0}, -1); np.triu({0}, 1);
        np.convolve({0}, onp.array([1.0, -2.0, 1.0]), "same"); np.sum({0}, where=onp.arange({0}.shape[-1]) % 2 == 0, initial=0.5);
        np.nansum({0}, axis=0, initial=1.5); np.nanmax({0}, initial=0.3); np.max({0}, initial=0.4); np.add.reduce({0}, axis=-1, initial=2.0);
        np.prod({0}, where=onp.arange({0}.shape[-1]) > 0); np.mean({0}, where={0} > 0.0 - 3.0); np.maximum.reduce({0}, axis=None, initial=0.2);
        np.nanmean({0}, axis=0, keepdims=True); np.stack([{0}, {0}], dtype=onp.float64);
        np.logaddexp.reduce({0}); np.add.outer({0}, {0}); np.square({0}).mean(axis=0)
    """,
    (ANY, ANY): """
        {0} + {1}; {0} - {1}; {0} * {1}; {0} / (1.5 + {1} ** 2); {0} @ {1}; np.maximum({0}, {1}); np.minimum({0}, {1});
        np.where({0} > {1}, {0}, {1}); np.where({0} > {1}, np.sin({0}), {1} * {0}); np.logaddexp({0}, {1}); np.hypot({0}, 1.0 + {1} ** 2);
        np.arctan2({0}, 2.0 + np.tanh({1})); (1.5 + np.tanh({0})) ** np.tanh({1}); np.outer({0}, {1}); np.dot({0}, {1});
        np.tensordot({0}, {1}, 1); np.einsum("...i,...i->...", {0}, {1}); np.einsum("i,j->ij", {0}, {1}); np.einsum("ij,j->i", {0}, {1});
        np.einsum("ij,kj->ik", {0}, {1}); np.concatenate([{0}, {1}]); np.stack([{0}, {1}]); np.append({0}, {1}); np.hstack([{0}, {1}]);
        np.convolve({0}, {1}); np.kron({0}, {1}); np.subtract.outer({0}, {1}); {0}[..., None] - {1}; np.clip({0}, -0.5, 0.5 + {1} ** 2);
        np.fmax({0}, {1}); np.select([{0} > 1.0, {1} > 0.0], [{0}, {1}], 0.5); np.take({0}, np.argmax({1}) % {0}.shape[0], axis=0);
        {0}[np.argmin({1}) % len({0})]; np.interp({0}, onp.array([-1.0, 0.0, 2.0]), {1}[:3]);
        np.broadcast_to({0}, np.broadcast_shapes({0}.shape, {1}.shape)) + {1}; np.vstack([{0}, {1}]); np.column_stack([{0}, {1}]);
        np.polyval({0}, {1}); np.cross({0}, {1}); np.inner({0}, {1}); np.mod({0}, 1.3 + np.tanh({1})); np.copysign({0}, {1}); {0} + {1}.T;
        np.linalg.solve({0} @ {0}.T + 2.0 * onp.eye({0}.shape[0]), {1}); np.block([[{0}, {1}]]); np.insert({0}, 1, {1});
        {0} * (0.5 + ({1} > 0)); np.real(np.fft.ifft(np.fft.fft({0}) * np.fft.fft({1}))); np.average({0}, weights=0.5 + {1} ** 2);
        np.abs({0} + 1j * {1}); np.power(1.0 + {0} ** 2, {1})
    """,
    (ANY, ANY, ANY): """
        np.where({0} > 0, {1}, {2}); {0} * {1} + {2}; np.clip({0}, {1} - 2.0, {1} + {2} ** 2); np.einsum("i,i,i->", {0}, {1}, {2});
        np.stack([{0}, {1}, {2}], axis=-1); {0} @ {1} + {2}; np.select([{0} > 0.5, {0} < -0.5], [{1}, {2}], {0});
        np.linalg.multi_dot([{0}, {1}, {2}]); np.einsum("ij,j,i->i", {0}, {1}, {2}); np.sum({0} * {1} * {2}, axis=0)
    """,
    (ANY, INTEGERS): """
        {0} * {1}; {0} ** np.abs({1}); np.take({0}, np.abs({1}) % {0}.shape[0], axis=0); {0}[np.abs({1}) % len({0})]; {0} + {1} // 2;
        np.where({1} > 0, {0}, -{0}); np.choose(np.abs({1}) % 2, [{0}, {0} ** 2]); {0} / (1 + np.abs({1}));
        np.take_along_axis({0}, np.abs({1}) % {0}.shape[-1], -1)
    """,
    (ANY, TRUTHS): """
        {0} * {1}; np.where({1}, {0}, 0.5); np.where({1}, np.sin({0}), {0}); np.sum({0}, where={1}); np.where(~{1}, {0}, {0} ** 2);
        {0} + {1}.sum(); np.where({1} & ({0} > 0), {0}, 1.0); np.any({1}) * {0}; {0} - {1}.mean();
        np.where(np.logical_not({1}), 1.0 / (2.0 + {0} ** 2), {0})
    """,
    (POSITIVE,): """
        np.log({0}); np.sqrt({0}); {0} ** 1.5; {0} ** {0}; 1 / {0}; {0} ** -0.5; np.log2({0}); np.cumprod({0}); np.log({0}).sum(axis=0);
        s.gammaln({0})
    """,
    (POSITIVE, ANY): "{0} ** {1}; np.log({0}) * {1}; {1} / {0}; {1} % {0}; s.xlogy({1}, {0})",
    (INSIDE,): "np.arcsin({0}); np.arctanh({0}); np.log1p({0}); s.erfinv({0}); np.arccos({0}); np.sqrt(1 - {0} ** 2)",
    (TRUTHS,): "~{0}; np.where({0}, 1.0, -0.5); {0}.astype(float); np.logical_and({0}, True); np.count_nonzero({0})",
    (
        INTEGERS,
    ): "{0} + 1; {0} * 0.5; {0} % 3; np.abs({0}) // 2; {0} ** 2; {0}.astype(float); {0} > 1; np.cumsum({0}); {0} / 2; -{0}; np.max({0})",
}
SINGULAR = """
    np.where({0} > 0, np.log({0}), 0.0); np.where({0} > 0.1, np.sqrt({0}), {0}); np.where({0} != 0, 1.0 / {0}, 0.0);
    np.where({0} > 0, {0} ** 0.5 * {0}, 1.0); np.where({0} > 0, {0}, onp.inf * {0}); np.where({0} < 0, {0} ** 2, onp.nan * {0});
    np.sum(np.where({0} > 0, np.sqrt({0}) * np.log({0}), 0.0)); np.where({0} > 0, {0} / np.sqrt({0}), -1.0) * {0};
    np.where(np.abs({0}) < 1, np.arctanh({0}), 0.0); np.select([{0} > 0.5, {0} > 0], [np.log({0}), np.sqrt({0})], {0});
    np.nanmax(np.where({0} > 0, np.sqrt({0}), onp.nan)); np.where(onp.isfinite(np.exp(800.0 * np.sign({0}))), {0}, 1.0);
    np.where({0} > 0, {0} ** {0}, 1.0); np.piecewise({0}, [{0} > 0], [lambda t: np.log(t), 0.5]);
    np.maximum({0}, 0.1) * np.where({0} > 0.1, 1 / np.sqrt({0} - 0.1), 1.0)
"""  # nan or infinite in the branch not taken; JAX has nan there


def parted(block: str) -> list[str]:
    """Expressions between semicolons, which may stand in braces."""
    return [" ".join(part.split()) for part in block.split(";") if part.strip()]


@cache
def templates() -> dict[str, tuple[Template, ...]]:
    """All templates, by family."""
    found: dict[str, list[Template]] = {}
    for t in from_tables():
        found.setdefault(t.family, []).append(t)
    for given, block in OURS.items():
        for text in parted(block):
            plain = text.removeprefix("*")
            where = "computed and mixed" if given[-1].kind != "f" else family(re.sub(r"\{\d\}", "x", plain))
            found.setdefault(where, []).append(Template(where, plain, given, None if text.startswith("*") else plain))
    for text in parted(SINGULAR):
        found.setdefault("branches not taken", []).append(Template("branches not taken", text, (ANY,), text))
    return {name: tuple(found[name]) for name in sorted(found)}
