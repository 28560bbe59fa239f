"""Cost against size for rows of the scoreboard: riesz, JAX and by hand, on logarithmic axes. Writes scaling.png.

Each size runs in a process of its own, as in the scoreboard. Run: python bench/scaling.py [--quick] [--cores 1] [rows …]
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

from scoreboard import HERE, played

PANELS = {
    "gmm": ("n", [100, 300, 1_000, 3_000, 10_000], {"d": 32, "k": 50}, "riesz"),
    "matfact": ("n", [100, 300, 1_000, 3_000], {"k": 5}, "riesz, compiled hvp"),
    "chain": ("n", [30, 100, 300, 1_000], {}, "riesz, factored"),
    "low_rank": ("n", [100, 300, 1_000, 3_000], {"rank": 10}, "riesz"),
    "relations": ("pairs", [1_000, 10_000, 100_000, 1_000_000], {"width": 16}, "riesz"),
    "layers": ("layers", [10, 30, 100, 300], {}, "riesz"),
    "logistic": ("n", [30, 100, 300, 1_000], {}, "riesz"),
    "bundle_adjustment": ("observations", [1_000, 10_000, 100_000], {}, "riesz"),
    "elementwise": ("n", [1_000, 10_000, 100_000, 1_000_000], {}, "riesz"),
}
"""The size that grows, its values, the other sizes, and which of ours is shown."""
STYLE = {"riesz": ("#3b6ea8", "o"), "JAX": ("#b03a2e", "s"), "hand": ("#c9a227", "^")}


def drawn(found: dict[str, dict[str, list[tuple[int, float]]]], titles: dict[str, str], path: Path) -> None:
    """A panel for each workload."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    columns = 3
    rows = -(-len(found) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(4.2 * columns, 3.3 * rows), layout="constrained", squeeze=False
    )
    for ax in axes.flat[len(found) :]:
        ax.set_visible(False)
    for ax, (module, lines) in zip(axes.flat, found.items(), strict=False):
        for name, points in lines.items():
            colour, mark = STYLE[name]
            ax.plot(*zip(*points, strict=True), color=colour, marker=mark, ms=4, label=name)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(titles[module], fontsize=9)
        ax.set_xlabel(PANELS[module][0], fontsize=8)
        ax.set_ylabel("seconds", fontsize=8)
        ax.grid(alpha=0.3)
        ax.tick_params(labelsize=8)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
    axes.flat[0].legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"some of: {', '.join(PANELS)}")
    parser.add_argument("--quick", action="store_true", help="without the largest sizes")
    parser.add_argument("--cores", type=int, help="how many cores each contestant may use; all by default")
    parser.add_argument("--out", type=Path, default=HERE / "scaling.png")
    given = parser.parse_args()
    unknown = set(given.rows) - set(PANELS)
    if unknown:
        parser.error(f"no panels named {', '.join(sorted(unknown))}; there are {', '.join(PANELS)}")
    os.environ["BENCH_WITHOUT"] = "torch autograd casadi asdex sparsejac"
    sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    titles: dict[str, str] = {}
    start = time.perf_counter()
    for module in given.rows or PANELS:
        parameter, sizes, others, ours = PANELS[module]
        row = importlib.import_module(f"rows.{module}").ROWS[0]
        titles[module] = _title(row.title, parameter, others)
        lines = found[module] = {}
        for size in sizes[:-1] if given.quick else sizes:
            times = played(module, 0, row, {parameter: size, **others}, 0.3, given.cores)
            shown = (
                "  ".join([f"{name} {1e3 * t:.3f} ms" for name, t in times.items()])
                if "failed" not in times
                else times["failed"]
            )
            print(
                f"[{time.perf_counter() - start:4.0f} s] {module}, {parameter} = {size:,}: {shown}",
                file=sys.stderr,
                flush=True,
            )
            for name, key in (("riesz", ours), ("JAX", "JAX"), ("hand", "hand")):
                if key in times:
                    lines.setdefault(name, []).append((size, times[key]))
        drawn(found, titles, given.out)


def _title(text: str, parameter: str, others: dict[str, int]) -> str:
    """The title of a row with its growing size left open."""
    for form in (f"{{{parameter}:,}}", f"{{{parameter}}}"):
        text = text.replace(form, "…")
    return text.format(**others)


if __name__ == "__main__":
    main()
