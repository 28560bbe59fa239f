"""docs/laws.md, written from the laws: `python -m riesz.simplify.page > docs/laws.md`."""

from __future__ import annotations

from .laws import LAWS
from .writing import text

MEANING = {
    "nodes": "terms in the DAG",
    "families": "Π, Δ, ⟨⟩, [], f^X and sums",
    "members": "parts of terms, counted as often as they occur",
    "names": "red_R, regroup and labelled contractions, which have better names at times; (⋄ v) for (v ⋄); (v ⊙) and "
    "(v ∗) for (v ·)",
    "scalings": "k · f inside a composition",
    "transposes": "contractions inside of a transpose",
    "between": "dimensions between the factors of compositions",
    "nesting": "(h ∘ g) ∘ f",
}
"""What laws make less of, in the order in which it counts: a law may make more of what comes after."""

_HEAD = """# The laws of the simplifier

`t.simplify()` rewrites a term by these laws, from left to right, until none applies. Both sides are data
(`src/riesz/simplify/laws.py`); this page is written from them. Every law keeps value and spaces and makes less of
something, said in the last column: the first of these that it changes.

{measure}

L and M are linear maps, f, g and h any functions.
"""


def page() -> str:
    """The laws as a Markdown page."""
    lines = [_HEAD.format(measure="\n".join([f"* {name}: {words}" for name, words in MEANING.items()]))]
    for group in dict.fromkeys([law.group for law in LAWS]):
        lines += [f"## {group}", "", "| law | left | right | where | less |", "|---|---|---|---|---|"]
        for law in [x for x in LAWS if x.group == group]:
            cells = [_cell(text(law.left)), _cell(text(law.right)), _cell(law.note, "")]
            lines.append(f"| {law.name} | {' | '.join(cells)} | {law.less} |")
        lines.append("")
    return "\n".join(lines)


def _cell(words: str, quote: str = "`") -> str:
    return quote + words.replace("|", "\\|") + quote if words else ""


if __name__ == "__main__":
    print(page(), end="")
