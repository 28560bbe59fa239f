"""The pictures of the README that code draws: `python release/draw.py` writes them to docs/pictures.

Badges say what pyproject.toml and CI say; `tests/test_release.py` holds them to it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np

import riesz as rz
from riesz.show.diagrams.layered import text_width

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"


def badges() -> dict[str, str]:
    """What each badge says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    versions = re.search(r"python: \[(.*?)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert versions is not None
    tested = re.findall(r"[\d.]+", versions[1])
    mode = project["tool"]["pyright"]["typeCheckingMode"]
    return {
        "license": project["project"]["license"],
        "python": f"{tested[0]} – {tested[-1]}",
        "types": f"pyright {mode}",
        "version": rz.__version__,
    }


def badge(name: str, value: str) -> str:
    """A badge: a name and a value side by side."""
    left, right = text_width(name, 11.0) + 14.0, text_width(value, 11.0) + 14.0
    texts = [
        f'<text x="{x:.1f}" y="14" fill="#fff" text-anchor="middle">{word}</text>'
        for x, word in ((left / 2, name), (left + right / 2, value))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{left + right:.0f}" height="20" '
        f'font-family="system-ui,\'DejaVu Sans\',sans-serif" font-size="11"><title>{name}: {value}</title>'
        f'<rect width="{left:.1f}" height="20" fill="#444"/><rect x="{left:.1f}" width="{right:.1f}" height="20" '
        f'fill="#2f5f95"/>{"".join(texts)}</svg>\n'
    )


def diagram() -> rz.LinearMap:
    """The Hessian of logistic regression, whose diagram is shown."""
    X = np.random.default_rng(0).normal(size=(500, 40))
    return rz.hessian(lambda w: np.sum(np.logaddexp(0, X @ w)))(np.zeros(40))


def structure() -> rz.LinearMap:
    """A Jacobian with blocks of several kinds."""

    def residual(p: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        u, a = p["state"], p["control"]
        return {"dynamics": u[1:] - u[:-1] * np.cos(u[:-1]) - a, "cost": np.tanh(a), "ends": u[[0, -1]]}

    return rz.linearize(residual, {"state": np.linspace(0, 1, 41), "control": np.ones(40)})[1]


def main() -> None:
    for name, value in badges().items():
        (PICTURES / f"badge-{name}.svg").write_text(badge(name, value), encoding="utf-8")
    diagram().diagram(columns=1).save(PICTURES / "diagram.svg")
    structure().picture(cells=120, side=300).save(PICTURES / "structure.svg")


if __name__ == "__main__":
    main()
