"""MathML read as XML, with the rules of MathML Core for the elements that riesz uses."""

from __future__ import annotations

from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
LEAVES = {"mi", "mn", "mo", "mtext", "mspace"}
PARTS = {"msup": 2, "msub": 2, "mfrac": 2, "mrow": None, "msqrt": None, "mtd": None, "math": None}
INSIDE = {"mtable": {"mtr"}, "mtr": {"mtd"}}
ATTRIBUTES = {
    "display",
    "displaystyle",
    "data-id",
    "mathvariant",
    "stretchy",
    "form",
    "fence",
    "largeop",
    "width",
    "style",
}


def parse(text: str) -> ElementTree.Element:
    """The tree of a formula; every element has the parts it must have, and only leaves hold text."""
    root = ElementTree.fromstring(text)
    for e in root.iter():
        tag, kids = e.tag.removeprefix(NAMESPACE), [k.tag.removeprefix(NAMESPACE) for k in e]
        assert set(e.attrib) <= ATTRIBUTES, text
        if tag in LEAVES:
            assert not kids and (bool(e.text) or tag in ("mspace", "mi")), text
        elif tag in INSIDE:
            assert kids and set(kids) <= INSIDE[tag], text
        else:
            assert PARTS[tag] in (None, len(kids)), (tag, text)
        assert tag in LEAVES or not e.text, text
        assert not e.tail, text
        assert not any([0xE000 <= ord(c) <= 0xF8FF or ord(c) >= 0xF0000 for c in e.text or ""]), text
    return root


def symbols(text: str) -> str:
    """What a reader sees, in order, without signs that are not shown."""
    return "".join([e.text or "" for e in parse(text).iter() if e.tag.removeprefix(NAMESPACE) in LEAVES])
