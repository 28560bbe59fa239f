"""The page in a real browser: typing, pointing, keys, links, copies, hostile texts, screen readers, narrow screens."""

import importlib.resources
import json
import time
import urllib.parse

import pytest

LAYER = "x, W, b -> tanh(W @ x + b)"


def until(page, condition, argument=None):
    """Wait for a condition in the page; the page's own policy forbids what wait_for_function does."""
    end = time.monotonic() + 30
    while not page.evaluate(condition, argument):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(15)


def fragment(**parts):
    return "#" + urllib.parse.urlencode(parts)


def typed(page, text, shapes="", panel=0):
    """Type a function and wait for its result."""
    root = page.locator(".panel").nth(panel)
    root.locator(".shapes input").fill(shapes)
    root.locator("textarea").fill(text)
    until(
        page, "([k, of]) => document.querySelectorAll('.panel')[k].dataset.settled === of", [panel, f"{text}\n{shapes}"]
    )
    return root


def test_the_first_view_shows_everything(open_page):
    page = open_page()
    assert page.locator("textarea").input_value() == LAYER
    assert page.locator(".type").text_content() == "f : ℝ3 ⊕ ℝ2×3 ⊕ ℝ2 → ℝ2"
    assert page.locator(".form math").count() == 1 and page.locator("[data-name=adjoint] math").count() == 1
    assert page.locator(".steps li").count() > 5
    assert page.locator(".diagram svg").count() == 1 and page.locator(".structure svg").count() == 1
    assert "def jacobian(x, W, b)" in page.locator(".source").inner_text()
    assert "✓ all" in page.locator(".point summary").inner_text()
    assert page.locator(".none:visible").count() == 0


def test_typing_gives_results_and_mistakes_are_shown(open_page):
    page = open_page()
    page.locator("textarea").fill("")
    page.locator(".shapes input").fill("")
    page.locator("textarea").type("x, y -> x ** 2 * y", delay=5)
    until(page, "document.querySelector('.source')?.textContent.includes('2 * x * y')")
    assert page.locator(".type").text_content().startswith("f : ℝ ⊕ ℝ → ℝ")
    page.locator("textarea").type(" + q", delay=5)
    until(page, "document.querySelector('.problem').textContent.includes('unknown name q')")
    assert page.locator(".problem").is_visible() and "^" in page.locator(".problem").inner_text()
    assert "stale" in page.locator(".panel").get_attribute("class")
    typed(page, "x -> sin(x)", "5")
    assert page.locator(".problem").is_hidden() and "diag(cos" in page.locator(".form math").text_content().replace(
        "⁡", ""
    )


def test_shapes_follow_the_arguments_unless_they_were_typed(open_page):
    page = open_page()
    page.locator("textarea").fill("x, W -> tanh(W @ x)")
    until(page, "document.querySelector('.type').textContent.includes('ℝ3 ⊕ ℝ2×3 → ℝ2')")
    assert page.locator(".shapes input").input_value() == "3 2,3"
    page.locator("textarea").fill("z -> sin(z)")
    until(page, "document.querySelector('.type').textContent.includes('shapes guessed')")
    page.locator(".shapes input").fill("4")
    until(page, "document.querySelector('.type').textContent.includes('ℝ4 → ℝ4')")
    page.locator("textarea").fill("z, y -> sin(z) * y")
    page.get_by_role("button", name="Fit the shapes").click()
    until(page, "document.querySelector('.type').textContent.includes('shapes guessed')")


def test_hessian_code_and_structure_by_tabs(open_page):
    page = open_page(fragment(f="A, x, b -> sum((A @ x - b) ** 2)", s="5,3 3 5"))
    for name, sign in [
        ("Julia", "function gradient"),
        ("MATLAB", "= gradient("),
        ("JAX", "jnp"),
        ("LaTeX", "\\frac"),
        ("Text", "->"),
    ]:
        page.get_by_role("button", name=name, exact=True).click()
        assert sign in page.locator(".source").inner_text()
    typed(page, "x -> sum(x ** 3)", "4")
    page.locator(".form").get_by_role("button", name="Hessian").click()
    until(page, "document.querySelector('.form math')?.textContent.includes('diag')")
    assert "Hessian" in page.locator(".code h2").inner_text().title()
    page.locator(".structure").get_by_role("button", name="Hessian").click()
    assert (
        "4 × 4 matrix" in page.locator(".structure").inner_text()
        and "diagonal" in page.locator(".structure").inner_text()
    )
    page.locator(".columns input").fill("1000")
    until(page, "location.hash.includes('k=1000')")


def test_a_chosen_tab_can_be_read_under_the_pointer(open_page):
    page = open_page(fragment(f="x -> sum(x ** 3)", s="4"))
    tab = page.locator(".form").get_by_role("button", name="Gradient")
    tab.hover()
    colour, back = tab.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]")
    assert colour != back


def test_c_and_the_order_of_contraction_are_made_when_asked_for(open_page):
    page = open_page(fragment(f="A, B, x -> A @ (B @ x)", s="4,3 3,5 5", k="6"))
    page.locator(".code").get_by_role("button", name="C", exact=True).click()
    until(page, "document.querySelector('.source')?.textContent.includes('#include <math.h>')")
    page.locator(".diagram").get_by_role("button", name="Contraction").click()
    until(page, "document.querySelector('.diagram desc')?.textContent.includes('for 6 right-hand sides')")
    page.locator(".columns input").fill("7")
    until(page, "document.querySelector('.diagram desc')?.textContent.includes('for 7 right-hand sides')")
    page.locator("textarea").fill("X -> log(det(X))")
    until(page, "document.querySelector('.code .none')?.textContent.includes('not known in C')")
    until(page, "document.querySelector('.diagram svg')")


def test_a_point_without_a_value_is_told(open_page):
    page = open_page(fragment(f="x -> log(x - 10)"))
    assert "choose another point" in page.locator(".point summary").inner_text()


def test_pointing_at_a_part_marks_it_everywhere(open_page):
    page = open_page()
    page.locator(".form math [data-id]", has_text="W").last.hover()
    lit = page.eval_on_selector_all(".lit", "all => all.map(e => e.closest('.card').dataset.name)")
    assert {"form", "code", "derivative", "adjoint", "diagram", "structure"} <= {*lit}
    whole = page.locator(".source [data-id]", has_text="np.tanh(W @ x + b)").last
    whole.hover(position={"x": 5, "y": 5})
    texts = page.eval_on_selector_all(
        ".form .lit", "all => all.map(e => e.textContent.replace(/[\\s\\u2061\\u2062]/g, ''))"
    )
    assert any("tanh(Wx+b)" in t for t in texts)
    page.mouse.move(2, 2)
    until(page, "!document.querySelector('.lit')")
    page.locator(".block[data-text=W]").hover(force=True)
    assert "form" in page.eval_on_selector_all(".lit", "all => all.map(e => e.closest('.card').dataset.name)")


def test_the_derivation_is_stepped_through(open_page):
    page = open_page()
    now = page.locator(".steps li.now")
    first = now.inner_text()
    assert page.locator(".film .made").count() == 1
    made = page.locator(".film .made").text_content()
    page.get_by_role("button", name="Next step").click()
    assert page.locator(".film .made").text_content() != made
    assert now.inner_text() != first and page.locator(".steps li.past").count() == 1
    page.keyboard.press("ArrowRight")
    assert page.locator(".steps .count").inner_text().startswith("3 of")
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Previous step").click()
    assert now.inner_text() == first


def test_sliders_move_the_point_and_the_plot(open_page):
    page = open_page(fragment(f="x, y -> x ** 2 + y ** 2"))
    page.wait_for_selector(".plot svg .contour")
    page.locator(".sliders input").first.focus()
    page.keyboard.press("Home")
    until(page, "document.querySelector('.matrix td').textContent === '-6'")
    assert "at=-3" in page.evaluate("location.hash")
    typed(page, "x -> exp(-x ** 2)")
    page.wait_for_selector(".plot svg path.slope")
    typed(page, "x -> sum(x)", "40")
    page.wait_for_selector(".plot", state="hidden")
    assert "40 numbers go in" in page.locator(".point").inner_text()


def test_links_restore_the_page(open_page):
    page = open_page()
    typed(page, "x -> sum(tanh(x))", "7")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector(".versus")
    typed(page, "x -> sum(exp(x))", "7", panel=1)
    until(page, "location.hash.includes('exp')")
    again = open_page(page.evaluate("location.hash"))
    again.wait_for_selector(".versus")
    assert [again.locator("textarea").nth(k).input_value() for k in range(2)] == [
        "x -> sum(tanh(x))",
        "x -> sum(exp(x))",
    ]
    assert again.locator(".shapes input").nth(1).input_value() == "7"
    again.get_by_role("button", name="Compare").click()
    assert again.locator(".panel").count() == 1 and again.locator(".versus").count() == 0


def test_links_restore_what_was_chosen(open_page):
    page = open_page(fragment(f="x -> sum(x ** 3)", s="4"))
    page.locator(".form").get_by_role("button", name="Hessian").click()
    page.get_by_role("button", name="Julia", exact=True).click()
    page.locator(".diagram").get_by_role("button", name="Adjoint").click()
    page.get_by_role("button", name="Next step").click()
    again = open_page(page.evaluate("location.hash"))
    until(again, "document.querySelector('.source')?.textContent.includes('function hessian')")
    pressed = again.eval_on_selector_all("[aria-pressed=true]", "all => all.map((e) => e.textContent)")
    assert pressed == ["Hessian", "Adjoint", "Jacobian", "Julia"]
    assert again.locator(".steps .count").inner_text().startswith("2 of")
    other = open_page(
        fragment(f="x -> sum(x ** 3)", s="4", v="target.__proto__ kind.7 step.-1 side.<b> x constructor.a")
    )
    assert other.locator(".steps .count").inner_text().startswith("1 of")


def test_two_functions_are_compared(open_page):
    page = open_page(fragment(f="x -> sum(x ** 2)", s="6", f2="x -> dot(x, x)", s2="6"))
    page.wait_for_selector(".versus")
    until(page, "document.querySelector('.versus').textContent.includes('the same value and derivative')")


def test_everything_copies(open_page):
    page = open_page(fragment(f="x, y -> sin(x) * y"), permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_selector(".plot svg .contour")
    expected = {
        "form": ["TeX", "MathML", "text"],
        "derivative": ["TeX", "MathML", "text"],
        "adjoint": ["TeX", "MathML", "text"],
    }
    expected |= {
        "steps": ["TeX", "MathML", "text"],
        "diagram": ["SVG"],
        "structure": ["SVG"],
        "code": ["code"],
        "point": ["point"],
        "plot": ["SVG"],
    }
    starts = {"TeX": "", "MathML": "<math", "SVG": "<svg", "code": "import numpy", "text": "", "point": "1."}
    for card, names in expected.items():
        for name in names:
            page.evaluate("navigator.clipboard.writeText('nothing').then(() => true)")
            page.locator(f"[data-name={card}] [data-key='copy {name}']").click()
            until(page, "navigator.clipboard.readText().then(t => t !== 'nothing')")
            found = page.evaluate("navigator.clipboard.readText()")
            assert found.startswith(starts[name]) and found.strip() and "\ue000" not in found
    page.get_by_role("button", name="Copy link").click()
    until(page, "navigator.clipboard.readText().then(t => t.startsWith('http'))")


def test_keys_alone_are_enough(open_page):
    page = open_page()
    page.locator("body").press("Tab")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("e")
    page.wait_for_selector("dialog[open]")
    page.keyboard.type("rosenbrock")
    page.keyboard.press("Enter")
    page.wait_for_selector(".plot svg .contour")
    assert page.locator("dialog[open]").count() == 0
    page.locator(".form .formula").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.locator(".form .lit").count() >= 1
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    seen = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('.card')?.dataset.name ?? document.activeElement.id"))
    assert {"form", "derivative", "adjoint", "steps", "diagram", "structure", "code", "point", "plot"} <= seen
    page.keyboard.press("Shift+Tab")


HOSTILE = [
    "<img src=x onerror=alert(1)> -> 1",
    "x -> '<script>alert(1)</script>'",
    "x -> sin(<svg onload=alert(1)>)",
    "constructor, __proto__ -> constructor * __proto__",
    "x\u202e, \u200by -> x",
    "ﬁ, x -> ﬁ * x",
    "a" * 3000 + " -> 1",
    "ü, é -> ü * é",
    'x -> \\"`${alert(1)}',
]


def test_hostile_texts_and_keys_do_nothing(open_page):
    page = open_page()
    for text in HOSTILE:
        typed(page, text)
        assert page.evaluate("document.querySelectorAll('script').length") == 1
        assert page.locator("img").count() == 1 and page.locator("iframe, object, embed").count() == 0
    for hash_ in (
        "#f=<script>alert(1)</script>",
        "#f=x->x&s=<b>&at=NaN&k=-5",
        "#__proto__=1&f=x",
        "#%",
        "#f=" + "a" * 30_000,
    ):
        page.evaluate("h => { location.hash = h }", hash_)
        page.wait_for_timeout(80)
    typed(page, "x -> sin(x)")
    assert page.locator(".problem").is_hidden()


def test_an_endless_computation_is_ended_and_the_page_says_so(open_page, limited):
    page = open_page(at=limited[1])
    typed(page, "def f(x):\n    while True:\n        pass", "3")
    until(page, "document.querySelector('.problem').textContent.includes('was ended')")
    typed(page, "x -> sin(x)")
    assert page.locator(".problem").is_hidden()


def test_a_server_that_is_gone_is_told(open_page, limited):
    process, address = limited
    page = open_page(at=address, quiet=True)
    process.terminate()
    process.wait(20)
    page.locator("textarea").fill("x -> cos(x)")
    until(page, "document.querySelector('.problem').textContent.includes('still running')")


def test_a_screen_reader_finds_its_way(open_page):
    source = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()
    views = [
        ("light", fragment(f=LAYER, s="3 2,3 2")),
        ("dark", fragment(f="x, y -> sin(x) * cos(y)")),
        ("light", fragment(f="x -> sum(x ** 2)", f2="x -> nothing")),
        ("light", fragment(f="x -> sum(x ** 2)", f2="x -> dot(x, x)")),
        (
            "dark",
            fragment(f="A, x, b -> sum((A @ x - b) ** 2)", s="5,3 3 5", v="kind.1 side.order target.c matrix.1 step.3"),
        ),
    ]
    for scheme, part in views:
        page = open_page(part, color_scheme=scheme)
        until(page, "[...document.querySelectorAll('.panel')].every((p) => p.dataset.settled)")
        page.evaluate(source)
        for where in ("page", "gallery"):
            if where == "gallery":
                page.get_by_role("button", name="Examples").click()
                page.wait_for_selector("dialog[open] li")
            found = page.evaluate(
                "axe.run().then(r => r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))]))"
            )
            assert found == [], (scheme, where, json.dumps(found, indent=1))


@pytest.mark.parametrize("width", [320, 390, 768])
def test_narrow_screens(open_page, width):
    page = open_page(viewport={"width": width, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Examples").click()
    page.wait_for_selector("dialog[open] li button")
    page.locator("dialog li button").nth(11).click()
    until(page, "document.querySelector('.panel').dataset.settled")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [320, 390])
def test_a_comparison_on_a_phone_shows_both(open_page, width):
    page = open_page(
        fragment(f="x -> sum(x ** 2)", s="6", f2="x -> sum(exp(x))", s2="6"), viewport={"width": width, "height": 800}
    )
    until(page, "document.querySelector('.versus')")
    box = page.locator(".versus")
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_colours_can_be_chosen(open_page):
    page = open_page(color_scheme="light")
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.locator("#theme").click()
    assert page.evaluate(back) == light
    page.locator("#theme").click()
    assert page.evaluate(back) != light
    page.reload()
    page.wait_for_selector(".panel[data-done]")
    assert page.evaluate(back) != light


def test_it_works_with_the_network_cut(open_page):
    """The page asks only its own server: with every other address unreachable it is complete."""
    page = open_page(ready=False)
    page.context.route(lambda url: "127.0.0.1" not in url, lambda route: route.abort())
    page.reload()
    page.wait_for_selector(".panel[data-done] .value")
    assert page.evaluate("performance.getEntriesByType('resource').every(r => r.name.startsWith(location.origin))")
