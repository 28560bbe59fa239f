"""Laws of matrices in products: inverses, orthogonal matrices, functions of eigenvalues and singular
values."""

from __future__ import annotations

from fractions import Fraction

from ..polynomials import Algebra, Atom, Monomial, Polynomial, Power, SpectralParts, chained
from .form_laws import law, without


@law("array")
def orthogonal(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """QᵀQ = I and Q Qᵀ = I."""
    f = product.factors[k]
    if f.atom.kind != "array" or f.atom.name not in algebra.orthogonal:
        return None
    for at, g in enumerate(product.factors):
        if at != k and g.atom is f.atom and f.power == g.power == 1:
            for i in (0, 1):
                label = f.labels[i]
                if g.labels[i] == label in product.sizes and sum([label in h.labels for h in product.factors]) == 2:
                    unit = Power(algebra.identity(f.atom.shape[0]), (f.labels[1 - i], g.labels[1 - i]))
                    sizes = {key: n for key, n in product.sizes.items() if key != label}
                    return Monomial(product.scale, (*without(product, k, at), unit), sizes)
    return None


@law("inverse")
def inverse_times_matrix(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """M⁻¹ M = I and M M⁻¹ = I."""
    f = product.factors[k]
    if f.atom.kind != "inverse" or f.power != 1 or f.labels[0] == f.labels[1]:
        return None
    inner = f.atom.args[0]
    one = inner.single
    if one is not None and one.power != 1:
        return None
    atom, flipped = (one.atom, one.labels == (1, 0)) if one is not None else (algebra.together(inner)[1].atom, False)
    for at, g in enumerate(product.factors):
        if g.atom is not atom or g.power != 1 or at == k:
            continue
        rows = g.labels[::-1] if flipped else g.labels
        turns = ((f.labels, rows), (f.labels[::-1], rows)) if f.atom.symmetric else ((f.labels, rows),)
        for (i, j), (p, q) in (*turns, *[(a, b[::-1]) for a, b in turns if g.atom.symmetric]):
            for summed, left, right in ((j, i, q), (i, p, j)):
                meets = j == p if summed == j else i == q
                if meets and summed in product.sizes and sum([summed in h.labels for h in product.factors]) == 2:
                    sizes = {key: n for key, n in product.sizes.items() if key != summed}
                    unit = Power(algebra.identity(f.atom.shape[0]), (left, right))
                    return Monomial(product.scale, (*without(product, k, at), unit), sizes)
    return None


@law("inverse")
def inverse_times_product(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """(A B)⁻¹ A B = I and A B (A B)⁻¹ = I."""
    f = product.factors[k]
    inner = f.atom.args[0]
    if f.power != 1 or f.labels[0] == f.labels[1] or len(inner.products) != 1:
        return None
    links = chained(inner.products[0].factors, 0, 1)
    if links is None or len(links) < 2 or inner.products[0].scale != 1:
        return None
    back = [(atom, not flipped) for atom, flipped in reversed(links)]
    i, j = f.labels
    for way, start, end in ((links, j, i), (back, i, j)):  # M⁻¹[i, j] M[j, …], and Mᵀ[i, …] behind M⁻ᵀ
        found = _followed(product, k, way, start)
        if found is not None:
            used, last, gone = found
            sizes = {key: n for key, n in product.sizes.items() if key not in gone}
            unit = Power(algebra.identity(f.atom.shape[0]), (end, last))
            return Monomial(product.scale, (*without(product, k, *used), unit), sizes)
    return None


def _followed(
    product: Monomial, k: int, links: list[tuple[Atom, bool]], at: int
) -> tuple[list[int], int, list[int]] | None:
    """The places of matrices that follow one another from a label on, the label where they end, and those between."""
    used, gone = list[int](), list[int]()
    for atom, flipped in links:
        if at not in product.sizes or sum([g.labels.count(at) for g in product.factors]) != 2:
            return None
        here = [
            m
            for m, g in enumerate(product.factors)
            if m != k
            and m not in used
            and g.atom is atom
            and g.power == 1
            and len(g.labels) == 2
            and (g.labels[flipped] == at or (atom.symmetric and at in g.labels))
        ]
        if not here:
            return None
        labels = product.factors[here[0]].labels
        gone.append(at)
        used.append(here[0])
        at = labels[1] if labels[0] == at else labels[0]
    return used, at, gone


@law("cholesky", "inverse")
def cholesky_factors(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """L Lᵀ = M and L⁻ᵀ L⁻¹ = M⁻¹ for L = cholesky(M)."""
    f = product.factors[k]
    one = f.atom.args[0].single if f.atom.kind == "inverse" else f
    if one is None or one.atom.name != "cholesky" or one.power != 1 or f.power != 1:
        return None
    side = 1 if f.atom.kind == "whole" else 0  # where L meets Lᵀ, and L⁻ᵀ meets L⁻¹
    label, i = f.labels[side], f.labels[1 - side]
    others = [m for m, g in enumerate(product.factors) if m != k and label in g.labels]
    if len(others) != 1 or label not in product.sizes:
        return None
    g = product.factors[others[0]]
    if g.atom is not f.atom or g.power != 1 or g.labels[side] != label or g.labels[1 - side] == label or i == label:
        return None
    (M,) = one.atom.args
    scale, whole = algebra.together(M if f.atom.kind == "whole" else algebra.inverse(M))
    sizes = {key: n for key, n in product.sizes.items() if key != label}
    found = whole.at((i, g.labels[1 - side]).__getitem__)
    return Monomial(product.scale * scale, (*without(product, k, *others), found), sizes)


MATRIX_FUNCTIONS = {"exp": "expm", "log": "logm", "sin": "sinm", "cos": "cosm"}


@law("array")
def functions_of_spectra(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """V Vᵀ = I, V diag(λ) Vᵀ = M, V diag(1 / λ) Vᵀ = M⁻¹, V diag(exp λ) Vᵀ = expm M; U Vᵀ = polar M, U diag(s) Vᵀ = M,
    U diag(1 / s) Vᵀ = M⁻ᵀ for singular values."""
    f = product.factors[k]
    if f.atom.kind != "array" or f.atom.name not in algebra.spectra or f.power != 1:
        return None
    spectrum, (i, a) = algebra.spectra[f.atom.name], f.labels
    on = [at for at, g in enumerate(product.factors) if a in g.labels and at != k]
    right = [at for at in on if product.factors[at].atom.name == spectrum.right and product.factors[at].labels[1] == a]
    rest = [product.factors[at] for at in on if at not in right]
    if len(right) != 1 or a not in product.sizes or any([g.labels != (a,) for g in rest]) or rest[1:]:
        return None
    j = product.factors[right[0]].labels[0]
    M = _of_spectrum(algebra, spectrum, f.atom.name == spectrum.right, rest[0] if rest else None)
    if M is None or i == a or j == a:
        return None
    first, *others = M.products
    scale, one = algebra.together(M)
    p = Monomial(scale, (one.at((i, j).__getitem__),), {}) if others else algebra.renamed(first, (i, j))
    sizes = {key: n for key, n in product.sizes.items() if key != a}
    return Monomial(product.scale * p.scale, (*without(product, k, *on), *p.factors), sizes | p.sizes)


def _of_spectrum(algebra: Algebra, spectrum: SpectralParts, eigen: bool, f: Power | None) -> Polynomial | None:
    """The matrix with a function of eigenvalues, or of singular values; None where it has no name."""
    M, n = spectrum.matrix, spectrum.matrix.shape[0]
    if f is None:
        return algebra.of(algebra.identity(n)) if eigen else algebra.whole("polar", (M,), M.shape)
    if f.atom.name == spectrum.values and f.power.denominator == 1:
        if f.power == 1:
            return M
        if not eigen:
            square = M.shape[0] == M.shape[1]
            return algebra.permuted(algebra.inverse(M), (1, 0)) if f.power == -1 and square else None
        base, times = (M, int(f.power)) if f.power > 0 else (algebra.inverse(M), -int(f.power))
        labels = [(t, t + 1) for t in range(times)]
        return algebra.contracted(labels, (0, times), [base] * times) if times < 5 else None
    if not eigen or f.power.denominator > 2:
        return None
    if f.atom.name == spectrum.values and abs(f.power) == Fraction(1, 2):
        root = algebra.whole("sqrtm", (M,), M.shape, True)
        return root if f.power > 0 else algebra.inverse(root)
    if f.atom.kind == "call" and f.atom.name in MATRIX_FUNCTIONS and f.power == 1:
        p = f.atom.args[0].products[0] if len(f.atom.args[0].products) == 1 else None
        if p is not None and len([g for g in p.factors if g.labels]) == 1:
            inner = next(g for g in p.factors if g.labels)
            if inner.atom.name == spectrum.values and inner.power == 1:
                others = tuple([g for g in p.factors if g is not inner])
                number = algebra.form((), [p._replace(factors=others)])
                return algebra.whole(MATRIX_FUNCTIONS[f.atom.name], (algebra.times(number, M),), M.shape, True)
    return None
