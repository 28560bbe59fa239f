"""The scoreboard: riesz against what people use instead, on every workload of bench/rows. Prints the table; writes RESULTS.md and results.png.

Each row runs in a process of its own. Contestants get the same inputs; their results are compared before anything is timed; then they take turns, and
medians count. Ratios above 1: riesz is faster, or smaller. Run: make bench, or python bench/scoreboard.py [rows …] [--quick] [--cores 1]
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEERS = ("numpy", "scipy", "numba", "jax", "torch", "autograd", "casadi", "asdex", "sparsejac")


def modules() -> list[str]:
    """The names of all files of rows."""
    return sorted([p.stem for p in (HERE / "rows").glob("*.py") if p.stem != "__init__"])


# -- in a process of its own ------------------------------------------------------------------------------


def measured(module: str, number: int, size: dict[str, Any], budget: float, only: str | None) -> dict[str, Any]:
    """One row, or one contestant of it: what each took, in seconds or bytes."""
    import contest
    import numpy as np

    row = importlib.import_module(f"rows.{module}").ROWS[number]
    if row.measure == "time":
        contestants = row.contestants(**size)
        results = {name: row.compared(name, work()) for name, work in contestants.items()}
        wanted = results["hand"] if "hand" in results else next(iter(results.values()))
        for name, found in results.items():
            gap = contest.difference(found, wanted)
            assert gap <= row.tolerance, f"{row.title}: {name} differs by {gap:.2g}"
        del results, wanted
        times = contest.take_turns(contestants, budget)
        there = Path("/proc/self/clear_refs").exists()
        return {**times, "peaks": contest.peaks(contestants)} if there else times
    if only is None:
        return dict.fromkeys(row.contestants(**size), 0.0)
    row.contestants(**row.warm)[only]()
    work = row.contestants(**size)[only]
    if row.measure == "memory":
        amount, result = contest.peak_during(work)
    else:
        start = contest.clock()
        result = work()
        amount = contest.clock() - start
    arrays = contest.leaves(row.compared(only, result))
    rng = np.random.default_rng(0)
    return {only: amount, "print": [float(a.reshape(-1) @ rng.normal(size=a.size)) for a in arrays]}


# -- the table --------------------------------------------------------------------------------------------


def asked(arguments: list[str], cores: int | None) -> dict[str, Any]:
    """What a process of its own answers."""
    environment = dict(
        os.environ, PYTHONPATH=os.pathsep.join([str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
    )
    pinned = None
    if cores is not None:
        for name in (
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "NUMBA_NUM_THREADS",
            "RIESZ_THREADS",
        ):
            environment[name] = str(cores)
        if cores == 1:
            environment["BENCH_CLOCK"] = "cpu"
        first = sorted(os.sched_getaffinity(0))[-cores:]
        pinned = lambda: os.sched_setaffinity(0, first)  # noqa: E731
    command = [sys.executable, str(HERE / "scoreboard.py"), "--measure", *arguments]
    done = subprocess.run(command, env=environment, preexec_fn=pinned, capture_output=True, text=True)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def played(
    module: str, number: int, row: Any, size: dict[str, Any], budget: float, cores: int | None
) -> dict[str, Any]:
    """What each contestant of a row took at a size; `budget`: seconds of timed calls for each."""
    base = [module, str(number), json.dumps(size), str(budget)]
    found = asked(base, cores)
    if row.measure == "time" or "failed" in found:
        return found
    answers = {name: asked([*base, name], cores) for name in found}
    for name in [n for n, answer in answers.items() if "failed" in answer]:
        print(f"  {name}: {answers.pop(name)['failed']}", file=sys.stderr)
    prints = {name: answer["print"] for name, answer in answers.items()}
    wanted = prints.get("hand") or next(iter(prints.values()), [])
    for name, given in prints.items():
        gap = max([abs(a - b) for a, b in zip(given, wanted, strict=True)], default=0.0) / max(
            [abs(x) for x in wanted], default=1.0
        )
        if gap > row.tolerance:
            return {"failed": f"{name} differs by {gap:.2g}"}
    return {name: answer[name] for name, answer in answers.items()}


def played_once(
    module: str, number: int, row: Any, size: dict[str, Any], budget: float, cores: int | None, kept: dict[str, Any]
) -> dict[str, Any]:
    """The same, from what was kept where it is there."""
    key = f"{row.title.format(**size)}, {json.dumps(size)}, {cores}"
    if key not in kept:
        kept[key] = played(module, number, row, size, budget, cores)
    return kept[key]


def lines(
    row: Any, size: dict[str, Any], found: dict[str, Any], alone: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One line of the table for each of ours. `alone`: what each took on one core, where `found` is of several."""
    title, shown = row.title.format(**size), []
    found, peaks = dict(found), found.get("peaks", {})
    found.pop("peaks", None)
    for ours, aim in row.aims.items():
        mine, theirs = found.get(ours), found.get(row.rival)
        name = f"{title}{ours.removeprefix('riesz')}{'' if row.rival == 'JAX' else f' (against {row.rival})'}"
        line: dict[str, Any] = {
            "title": name,
            "aim": aim,
            "aim_text": row.aim_text,
            "measure": row.measure,
            "rival": row.rival,
            "mine": mine,
            "limits": row.limits,
        }
        line["all"], line["peaks"] = found, (peaks.get(ours), peaks.get(row.rival))
        if alone and alone.get(ours) and alone.get(row.rival):
            line["alone"] = alone[row.rival] / alone[ours]
        if mine:
            line["ratios"] = {name: amount / mine for name, amount in found.items() if not name.startswith("riesz")}
            if row.measure == "seconds":
                line["met"] = mine <= aim
            elif theirs and aim:
                line["met"] = theirs / mine >= aim
        shown.append(line)
    return shown


def limits(found: list[dict[str, Any]]) -> str:
    """What stands in the way of rows that fall short."""
    short = [f"- {line['title']}: {line['limits']}\n" for line in found if line.get("met") is False and line["limits"]]
    return f"What limits rows that fall short:\n\n{''.join(short)}\n" if short else ""


def amount(x: float | None, measure: str) -> str:
    """Seconds or bytes for people."""
    if x is None:
        return "–"
    units = (
        [(2**30, "GiB"), (2**20, "MiB"), (0, "KiB")] if measure == "memory" else [(1.0, "s"), (1e-3, "ms"), (0.0, "µs")]
    )
    scale, unit = next((s, u) for s, u in units if x >= s)
    x /= scale or (1024 if unit == "KiB" else 1e-6)
    return f"{x:.3g} {unit}" if x < 1000 else f"{x:,.0f} {unit}"


def ratio(x: float | None) -> str:
    return "–" if x is None else f"{x:.2f}" if x < 10 else f"{x:,.0f}"


def aim_of(line: dict[str, Any]) -> str:
    return line["aim_text"] or (f"≥ {line['aim']:,g}" if line["aim"] else "–")


def table(found: list[dict[str, Any]]) -> str:
    """The table in Markdown."""
    out = [
        "| workload | riesz | JAX | hand | others | JAX ÷ riesz | hand ÷ riesz | aim | met | on one core | peak memory |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for line in found:
        if "failed" in line["all"]:
            out.append(f"| {line['title']} | failed: {line['all']['failed']} | | | | | | {aim_of(line)} | no | | |")
            continue
        kind, ratios = line["measure"], line.get("ratios", {})
        rest = ", ".join(
            f"{n} {amount(x, kind)}"
            for n, x in line["all"].items()
            if n not in ("JAX", "hand") and not n.startswith("riesz")
        )
        met = {True: "yes", False: "**no**", None: ""}[line.get("met")]
        cells = [
            amount(line["mine"], kind),
            amount(line["all"].get("JAX"), kind),
            amount(line["all"].get("hand"), kind),
            rest,
        ]
        cells += [ratio(ratios.get("JAX")), ratio(ratios.get("hand")), aim_of(line), met]
        mine, theirs = [x and amount(x, "memory") for x in line.get("peaks", (None, None))]
        cells += [ratio(line.get("alone")), f"{mine or '–'}, {line['rival']} {theirs or '–'}" if mine or theirs else ""]
        out.append(f"| {line['title']} | {' | '.join(cells)} |")
    return "\n".join(out)


def picture(found: list[dict[str, Any]], path: Path) -> None:
    """Bars of ratios on a logarithmic axis, with the aims."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [line for line in found if line.get("ratios", {}).get(line["rival"])][::-1]
    figure, axes = pyplot.subplots(figsize=(11, 1.2 + 0.42 * len(shown)), layout="constrained")
    axes.set_axisbelow(True)
    axes.grid(axis="x", alpha=0.3)

    def bar(at: float, x: float, colour: str, label: str) -> None:
        axes.barh(at, x - 1.0, 0.36, left=1.0, color=colour, label=label if not k else None)
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        axes.text(
            x * (1.1 if x >= 1 else 0.91),
            at,
            ratio(x),
            va="center",
            ha="left" if x >= 1 else "right",
            fontsize=8,
            color=colour,
            bbox=box,
        )

    for k, line in enumerate(shown):
        bar(k + 0.19, line["ratios"][line["rival"]], "#3b6ea8", "JAX ÷ riesz")
        if line["ratios"].get("hand"):
            bar(k - 0.19, line["ratios"]["hand"], "#a8861c", "hand ÷ riesz")
        if line["aim"] and line["measure"] != "seconds":
            axes.plot([line["aim"]] * 2, [k - 0.42, k + 0.42], color="#b03a2e", lw=2, label="aim" if not k else None)
    axes.set_xscale("log")
    low = min([min(line["ratios"].get("hand", 1.0), line["ratios"][line["rival"]]) for line in shown], default=0.1)
    axes.set_xlim(left=min(0.1, 0.4 * low))
    axes.axvline(1.0, color="black", lw=0.8)
    axes.set_yticks(range(len(shown)), [line["title"] for line in shown], fontsize=9)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_xlabel("times faster (or smaller) than the other; above 1: riesz is ahead")
    axes.legend(loc="lower right", fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)


def machine(cores: int | None) -> str:
    """Where and with what."""
    have = {d: importlib.metadata.version(d) for d in PEERS if importlib.util.find_spec(d)}
    missing = [d for d in PEERS if d not in have]
    used = cores or len(os.sched_getaffinity(0))
    name = next(
        (x.split(":")[1].strip() for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")),
        platform.machine(),
    )
    versions = ", ".join(f"{d} {v}" for d, v in have.items())
    return f"{name}, {used} {'core' if used == 1 else 'cores'}, Python {platform.python_version()}, {versions}" + (
        f"; not installed: {', '.join(missing)}" if missing else ""
    )


def main() -> None:
    """All rows, or those asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"some of: {', '.join(modules())}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, a few minutes in all")
    parser.add_argument(
        "--cores",
        type=int,
        nargs="+",
        help="how many cores each contestant may use, all by default; with 1, the time it had that core counts. Of "
        "several the last fills the table, and the ratio on one core has a column.",
    )
    parser.add_argument("--budget", type=float, help="seconds of timed calls for each contestant")
    parser.add_argument("--keep", type=Path, help="a file of results: rows that are there are not measured again")
    parser.add_argument(
        "--without",
        nargs="*",
        metavar="PEER",
        help=f"peers to leave out ({', '.join(PEERS[3:])}); quick: torch, slow to start",
    )
    parser.add_argument("--out", type=Path, default=HERE, help="where RESULTS.md and results.png go")
    parser.add_argument("--measure", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        module, number, size, budget, *only = given.measure
        print(json.dumps(measured(module, int(number), json.loads(size), float(budget), only[0] if only else None)))
        return
    unknown = set(given.rows) - set(modules())
    if unknown:
        parser.error(f"no rows named {', '.join(sorted(unknown))}; there are {', '.join(modules())}")
    os.environ["BENCH_WITHOUT"] = " ".join(
        given.without if given.without is not None else ["torch"] if given.quick else []
    )
    sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
    found: list[dict[str, Any]] = []
    budget = given.budget or (0.3 if given.quick else 4.0)
    kept = json.loads(given.keep.read_text(encoding="utf-8")) if given.keep and given.keep.exists() else {}
    start = time.perf_counter()
    from riesz.runtime.progress import working

    every = [
        (m, k, r) for m in given.rows or modules() for k, r in enumerate(importlib.import_module(f"rows.{m}").ROWS)
    ]
    with working("scoreboard", len(every)) as work:
        for done, (module, number, row) in enumerate(every):
            size = dict(row.quick if given.quick else row.full)
            work.say(done + 1, row.title.format(**size))
            measures = [played_once(module, number, row, size, budget, c, kept) for c in given.cores or [None]]
            if given.keep:
                given.keep.write_text(json.dumps(kept), encoding="utf-8")
            one = measures[given.cores.index(1)] if given.cores and 1 in given.cores[:-1] else None
            added = lines(row, size, measures[-1], one)
            if work:  # somebody looks on
                told = "\n".join(table(added).splitlines()[2:])
                print(f"\r\x1b[2K[{time.perf_counter() - start:4.0f} s] {told}", file=sys.stderr, flush=True)
            found += added
    found.sort(key=lambda line: -line.get("ratios", {}).get(line["rival"], 0.0))
    header = f"{'Quick sizes; aims are for full ones' if given.quick else 'Full sizes'}; {datetime.date.today()}. {machine(given.cores[-1] if given.cores else None)}."
    print(f"{header}\n\n{table(found)}")
    if not given.rows:
        note = "Written by `python bench/scoreboard.py`. Medians of calls taken in turns; ratios above 1: riesz is faster, or takes less memory. Peak memory is what a call takes beyond what the process holds between calls."
        (given.out / "RESULTS.md").write_text(
            f"# Scoreboard\n\n{note}\n{header}\n\n{table(found)}\n\n{limits(found)}![ratios](results.png)\n",
            encoding="utf-8",
        )
        picture(found, given.out / "results.png")


if __name__ == "__main__":
    main()
