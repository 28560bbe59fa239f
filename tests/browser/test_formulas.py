"""MathML in a browser: exponents are raised and small, fractions have two floors, lines are below each other, and nothing is empty,
outside or on top of something else. Pictures of the same formula are the same, those of others differ."""

import hashlib
import json

import numpy as np
import pytest

import riesz as rz
from riesz.command.serving import PAGE
from riesz.command.subjects import Subject, shape_of
from riesz.functions.calling import function

EXAMPLES = json.loads((PAGE / "gallery.json").read_text())
CHECK = """() => [...document.querySelectorAll('math')].map((math) => {
    const box = (e) => e.getBoundingClientRect(), wrong = [], all = box(math), near = 1.5;
    const size = (e) => parseFloat(getComputedStyle(e).fontSize);
    const leaves = [...math.querySelectorAll('mi, mn, mo, mtext')].filter((e) => /[^\\s\\u2061\\u2062]/.test(e.textContent));
    if (!leaves.length) wrong.push('empty');
    for (const e of leaves) {
        const b = box(e);
        if (b.width <= 0 || b.height <= 0) wrong.push(`no size: ${e.textContent}`);
        if (b.left < all.left - near || b.right > all.right + near) wrong.push(`outside: ${e.textContent}`);
    }
    for (const e of math.querySelectorAll('msup')) {
        const [base, raised] = [...e.children].map(box);
        if (!(raised.bottom < base.bottom + near && raised.left >= base.right - 4)) wrong.push('superscript not raised');
        if (!(size(e.children[1]) <= size(e.children[0]))) wrong.push('superscript large');
    }
    for (const e of math.querySelectorAll('msub')) {
        const [base, low] = [...e.children].map(box);
        if (!(low.top > base.top - near)) wrong.push('subscript not lowered');
    }
    for (const e of math.querySelectorAll('mfrac')) {
        const [above, below] = [...e.children].map(box);
        if (!(above.bottom <= below.top + near)) wrong.push('fraction on one floor');
    }
    for (const e of math.querySelectorAll('mtable')) {
        const rows = [...e.children].map(box);
        rows.slice(1).forEach((r, k) => { if (!(r.top >= rows[k].bottom - near)) wrong.push('rows overlap'); });
    }
    for (const e of math.querySelectorAll('mrow, mtd')) {
        const inside = [...e.children].filter((c) => box(c).width > 0).map(box);
        inside.slice(1).forEach((b, k) => { if (b.left < inside[k].right - 3) wrong.push(`overlap in ${e.textContent.slice(0, 40)}`); });
    }
    if (math.scrollWidth === 0 || all.height < 10) wrong.push('flat');
    return wrong;
})"""


@pytest.fixture(scope="module")
def formulas():
    """Gradients, Jacobians, derivatives and adjoints of the examples, and other things that print."""
    found = []
    for e in EXAMPLES:
        s = Subject(function(e["text"]), [shape_of(x) for x in e["shapes"].split()])
        D = s.derivation
        found += [getattr(D, s.kind).mathml(), D.derivative.mathml(ids=True), D.adjoint.mathml(), D.function.mathml()]
    found += [x.mathml() for x in (rz.R ** (2, 3) * rz.R, rz.ln @ rz.sin)]
    return found


def test_formulas_are_laid_out(chromium, formulas):
    page = chromium.new_page()
    page.set_content(
        "<!doctype html><style>math{font-size:20px;width:max-content}</style>"
        + "".join([f"<div>{m}</div>" for m in formulas])
    )
    wrong = page.evaluate(CHECK)
    assert len(wrong) == len(formulas) > 100
    assert {formulas[k][:300]: w for k, w in enumerate(wrong) if w} == {}
    page.close()


def test_twenty_pictures(chromium, formulas):
    page = chromium.new_page(viewport={"width": 1200, "height": 400})
    chosen = list(dict.fromkeys(formulas[::4]))[:20]
    pictures = []
    for m in [*chosen, chosen[0]]:
        page.set_content(f"<!doctype html><style>math{{font-size:24px;width:max-content}}</style>{m}")
        pictures.append(hashlib.sha256(page.locator("math").screenshot()).hexdigest())
    assert pictures[0] == pictures[-1] and len({*pictures}) == len(chosen) == 20
    page.close()


def test_index_sets_are_bold(chromium):
    """tanh over an index set of two is not the square of tanh. MathML Core has no mathvariant for numbers."""
    page = chromium.new_page()
    page.set_content(f"<!doctype html>{rz.derive(lambda x: np.tanh(x) ** 2, rz.R**2).function.mathml()}")
    weights = page.evaluate(
        "[...document.querySelectorAll('mn')].map((e) => [e.parentElement.firstChild.textContent, getComputedStyle(e).fontWeight])"
    )
    assert ["tanh", "700"] in weights
    page.close()
