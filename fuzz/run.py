"""make fuzz N=1000: random programs, on several processes, with what is found written down.

python -m fuzz.run --n 1000 --seed 0 --jobs 2     programs 0 … 999 of seed 0; those that are done already are not run again
python -m fuzz.run --one 123 --seed 0             program 123 of seed 0, as code, with what its checks found
"""

# ruff: noqa: E402  (threads are set before anything is imported)
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RIESZ_THREADS"):
    os.environ[_name] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import json
import multiprocessing
import re
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STATE = HERE / ".state"
CASES = HERE.parent / "tests" / "fuzz_cases"
CHUNK = 25
"""Programs that a process takes at a time: what is done is written down after each."""
FRESH = 1000
"""Programs after which a process ends and another takes its place, so that no cache grows without end."""


def chunk(seed: int, numbers: list[int], shrink: bool) -> dict[str, Any]:
    """Some programs: what was counted, and the failures, each with the shortest program that shows it."""
    from .checks import examined
    from .programs import shown
    from .shrink import shrunk

    counts: dict[str, Counter[str]] = {
        "counts": Counter(),
        "skips": Counter(),
        "refusals": Counter(),
        "families": Counter(),
        "modes": Counter(),
    }
    failures: list[dict[str, Any]] = []
    example: dict[str, int] = {}
    for k in numbers:
        try:
            program, report = examined(seed, k)
        except Exception:
            failures.append(
                {
                    "k": k,
                    "check": "the fuzzer",
                    "signature": "the fuzzer: " + traceback.format_exc().splitlines()[-1][:120],
                    "code": "",
                    "detail": traceback.format_exc(),
                }
            )
            continue
        counts["counts"] += report.counts
        counts["skips"] += Counter(list(report.skips))  # programs, not checks
        counts["refusals"] += report.refusals
        counts["families"] += Counter([line.family for line in program.all_lines()])
        counts["modes"][program.mode] += 1
        for name in (*report.skips, *report.refusals, *report.counts):
            example.setdefault(name, k)
        for f in report.failures:
            short, last = program, f
            if shrink and f.signature not in SEEN:
                SEEN.add(f.signature)
                short, last = shrunk(program, f)
            failures.append(
                {
                    "k": k,
                    "check": f.check,
                    "signature": f.signature,
                    "detail": last.detail,
                    "found": last.found,
                    "expected": last.expected,
                    "code": shown(short),
                }
            )
    return {
        "seed": seed,
        "done": [numbers[0], numbers[-1]],
        "failures": failures,
        "example": example,
        **{name: dict(c) for name, c in counts.items()},
    }


SEEN: set[str] = set()
"""Signatures this process has made short already."""


def work(seed: int, tasks: Any, results: Any, seen: list[str], shrink: bool) -> None:
    """A process: chunks until there are none, or it has done its share."""
    import warnings

    warnings.simplefilter("ignore")
    SEEN.update(seen)
    for _ in range(FRESH // CHUNK):
        numbers = tasks.get()
        if numbers is None:
            return
        results.put(("began", os.getpid(), numbers))
        results.put(("done", os.getpid(), chunk(seed, numbers, shrink)))
    results.put(("rest", os.getpid(), None))


def case_file(failure: dict[str, Any]) -> Path:
    """Where a failure is written as a test case."""
    name = re.sub(r"[^a-z0-9]+", "_", failure["signature"].lower()).strip("_")[:90]
    return CASES / f"{name}.py"


def written(failure: dict[str, Any], seed: int) -> str:
    """A failure as a file that tests/test_fuzz_programs.py runs."""
    quoted = failure["detail"].strip().splitlines()[0][:140].replace('"""', "'''").replace("\\", "/")
    lines = [
        f'"""{failure["check"]}: {quoted}',
        "",
        f"Program {failure['k']} of seed {seed}, made short.",
        '"""',
        "",
        failure["code"],
        "",
        f"CHECK = {failure['check']!r}",
        "",
    ]
    return "\n".join(lines)


class Record:
    """What was run for a seed: one line of JSON for each chunk in a file that is only ever added to."""

    def __init__(self, seed: int, fresh: bool) -> None:
        STATE.mkdir(exist_ok=True)
        self.path = STATE / f"seed-{seed}.jsonl"
        self.seed = seed
        if fresh:
            self.path.unlink(missing_ok=True)
        self.done: set[int] = set()
        self.totals: dict[str, Counter[str]] = {}
        self.failures: dict[str, list[dict[str, Any]]] = {}
        self.example: dict[str, int] = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            self.take(json.loads(line))

    def take(self, found: dict[str, Any]) -> None:
        first, last = found["done"]
        self.done.update(range(first, last + 1))
        for name in ("counts", "skips", "refusals", "families", "modes"):
            self.totals.setdefault(name, Counter()).update(found[name])
        for f in found["failures"]:
            self.failures.setdefault(f["signature"], []).append(f)
        for name, k in found["example"].items():
            self.example.setdefault(name, k)

    def add(self, found: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(found) + "\n")
        self.take(found)


def told(shown: Any, done: int, of: int, start: float, before: int, failures: int) -> None:
    """How far it is, on a terminal."""
    rate = (done - before) / max(time.monotonic() - start, 1e-9)
    left = (of - done) / max(rate, 1e-9)
    shown.say(done, f"{rate:.1f}/s  {failures} kinds of failure  {left / 60:.0f} min left")


def run(n: int, seed: int, jobs: int, fresh: bool, shrink: bool) -> Record:
    record = Record(seed, fresh)
    numbers = [k for k in range(n) if k not in record.done]
    of, before, start = n, n - len(numbers), time.monotonic()
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    waiting = parted(numbers)
    for c in waiting:
        tasks.put(c)
    for _ in range(jobs):
        tasks.put(None)
    workers: dict[int, Any] = {}
    busy: dict[int, list[int]] = {}

    def begin() -> None:
        p = context.Process(target=work, args=(seed, tasks, results, list(record.failures), shrink), daemon=True)
        p.start()
        workers[p.pid or 0] = p

    from riesz.runtime.progress import working

    for _ in range(min(jobs, max(len(waiting), 1))):
        begin()
    left, ready = len(waiting), before
    with working("fuzzing", of) as shown:
        while left:
            try:
                what, pid, found = results.get(timeout=1.0)
            except Exception:
                for pid, p in list(workers.items()):
                    if not p.is_alive():  # a process that died, died of a program
                        del workers[pid]
                        if pid in busy:
                            died = busy.pop(pid)
                            record.add(lost(seed, died, p.exitcode))
                            left -= 1
                        if left:
                            begin()
                continue
            if what == "began":
                busy[pid] = found
            elif what == "rest":
                workers.pop(pid, None)
                begin()
            else:
                busy.pop(pid, None)
                record.add(found)
                left -= 1
                ready += found["done"][1] - found["done"][0] + 1
                told(shown, ready, of, start, before, len(record.failures))
    for p in workers.values():
        p.join(timeout=2.0)
    return record


def lost(seed: int, numbers: list[int], code: Any) -> dict[str, Any]:
    failure = {
        "k": numbers[0],
        "check": "the process",
        "signature": f"a process died with exit code {code}",
        "detail": f"programs {numbers[0]} to {numbers[-1]}",
        "code": "",
    }
    return {
        "seed": seed,
        "done": [numbers[0], numbers[-1]],
        "failures": [failure],
        "example": {},
        "counts": {},
        "skips": {},
        "refusals": {},
        "families": {},
        "modes": {},
    }


def parted(numbers: list[int]) -> list[list[int]]:
    """Runs of numbers that follow each other, at most CHUNK each."""
    found: list[list[int]] = []
    for k in numbers:
        if found and found[-1][-1] == k - 1 and len(found[-1]) < CHUNK:
            found[-1].append(k)
        else:
            found.append([k])
    return found


def summary(record: Record) -> str:
    from .checks import CHECKS, CONVENTIONS

    t = record.totals
    n = max(len(record.done), 1)
    lines = [f"{len(record.done):,} programs of seed {record.seed}", ""]

    def table(title: str, rows: Any, note: Any = None) -> None:
        lines.append(title)
        for name, count in rows:
            at = f"  (program {record.example[name]})" if name in record.example else ""
            lines.append(
                f"  {count:>9,}  {100 * count / n:5.1f} %  {name}{at}{'  – ' + note[name] if note and name in note else ''}"
            )
        lines.append("")

    counts = t.get("counts", Counter())
    table(
        "checks made (one program in so many)",
        [(f"{name} (1 in {CHECKS[name][0]})", counts[f"check: {name}"]) for name in CHECKS],
    )
    table("modes", t.get("modes", Counter()).most_common())
    table("lines by family", t.get("families", Counter()).most_common())
    table("references", [(k, v) for k, v in counts.most_common() if not k.startswith("check: ")], CONVENTIONS)
    table("programs with a check that had nothing to compare with", t.get("skips", Counter()).most_common())
    table("refused by riesz with a sentence", t.get("refusals", Counter()).most_common(60))
    lines.append(f"kinds of failure: {len(record.failures)}")
    for signature, found in sorted(record.failures.items(), key=lambda item: -len(item[1])):
        lines.append(f"  {len(found):>6}  {signature}  (programs {', '.join([str(f['k']) for f in found[:5]])})")
    return "\n".join(lines)


def report(record: Record, keep: bool) -> None:
    text = summary(record)
    (STATE / f"seed-{record.seed}.txt").write_text(
        text + "\n\n" + "\n\n".join([detailed(f) for f in shortest(record)]) + "\n"
    )
    print(text)
    for f in shortest(record):
        print("\n" + detailed(f))
        if keep and f["code"]:
            CASES.mkdir(exist_ok=True)
            case_file(f).write_text(written(f, record.seed))


def shortest(record: Record) -> list[dict[str, Any]]:
    """One failure of each kind."""
    return [min(found, key=lambda f: len(f["code"]) or 10**9) for found in record.failures.values()]


def detailed(f: dict[str, Any]) -> str:
    parts = [
        f"# {f['signature']}  (program {f['k']}, {f['check']})",
        f["code"],
        f"# {f['detail'].strip()}".replace("\n", "\n# "),
    ]
    if f.get("found"):
        parts.append(f"# computed: {f['found']}".replace("\n", "\n#   "))
    if f.get("expected") and f["expected"] != "None":
        parts.append(f"# expected: {f['expected']}".replace("\n", "\n#   "))
    return "\n".join(parts)


def one(seed: int, k: int) -> None:
    found = chunk(seed, [k], True)
    from .programs import random_program, shown

    print(shown(random_program(seed, k)))
    print({name: found[name] for name in ("counts", "skips", "refusals")})
    for f in found["failures"]:
        print("\n" + detailed(f))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--one", type=int)
    parser.add_argument("--fresh", action="store_true", help="forget what was run before")
    parser.add_argument("--keep", action="store_true", help="write each failure to tests/fuzz_cases, as a test case")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    if given.one is not None:
        one(given.seed, given.one)
        return
    record = run(given.n, given.seed, given.jobs, given.fresh, not given.no_shrink)
    report(record, given.keep)
    sys.exit(1 if record.failures else 0)


if __name__ == "__main__":
    main()
