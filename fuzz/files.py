"""Mutated files: python fuzz/files.py 100000 [--seed 0]. Each must load or be refused with a FileError, in a second of
processor time and in BYTES + RATIO × its size of memory.

Files that are mutated: the golden ones of tests/data, the things in them one by one, and random terms, relations and
spaces. Mutations: bytes; the end cut off; numbers of arrays; parts of the description exchanged, changed, dropped or
made large; entries written again and again, each made of the last one twice, so that what they stand for grows
exponentially. Memory is limited by the system while a file is read, so that asking for more fails.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import resource
import signal
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

import riesz as rz
from riesz.errors import FileError
from riesz.testing.random_terms import Builder

DATA = Path(__file__).parent.parent / "tests" / "data"
SECONDS, BYTES, RATIO = 1.0, 1 << 26, 64
NUMBERS = [-1, 0, 1, 2, 3, 5, 2**15, 2**31, 2**40, 2**62, 2**63, 10**30, -(2**40), 1e300]
WORDS = ["", "Seg", "Real", "Product", "Gather", "Program", "numpy:sort", "scipy.special:gamma", "rule:sin", "<f8", "O"]
SMALL = [None, True, [], {}, {"t": []}, {"i": "9" * 40}, {"f": "inf"}, {"a": 0}, {"e": 0}, {"b": "list"}, {"y": "<c16"}]


class TooLong(BaseException):
    """A file took more time than it may."""


def random_things(count, seed=0):
    """Terms, functions, relations and spaces."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        b = Builder(lambda n, rng=rng: int(rng.integers(n)))
        match k % 6:
            case 0:
                yield b.linear(b.space())
            case 1:
                yield b.function(b.space())
            case 2:
                yield b.scalar(b.space())
            case 3:
                yield b.relation(b.index_set(), b.index_set())
            case 4:
                yield b.bilinear()
            case _:
                yield b.space()


def corpus(random=60):
    """Files as bytes."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.rz"
        things = list(random_things(random))
        for golden in sorted(DATA.glob("*.rz")):
            found.append(golden.read_bytes())
            saved = rz.load(golden)
            things += saved.values() if isinstance(saved, dict) else saved
        for thing in things:
            try:
                rz.save(path, thing)
            except FileError:  # functions of the test's own
                continue
            found.append(path.read_bytes())
    return [members(data) for data in found if len(data) < 1 << 17], found


def members(data):
    """The description of a file, and its arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    return json.loads(parts.pop("riesz.json")), parts


def written(content, arrays):
    """A file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        new.writestr(zipfile.ZipInfo("riesz.json"), json.dumps(content))
        for name, body in arrays.items():
            new.writestr(zipfile.ZipInfo(name), bytes(body))
    return out.getvalue()


def places(content):
    """Where everything in a description is: what holds it, and its key there."""
    found, stack = [], [content]
    while stack:
        x = stack.pop()
        inside = list(x.items()) if isinstance(x, dict) else list(enumerate(x))[:200] if isinstance(x, list) else []
        found += [(x, k) for k, _ in inside]
        stack += [v for _, v in inside if isinstance(v, (dict, list))]
    return found


def changed(content, rng):
    """A few parts exchanged, changed or gone."""
    for _ in range(int(rng.integers(1, 4))):
        spots = places(content)
        holder, key = spots[int(rng.integers(len(spots)))]
        old, how = holder[key], int(rng.integers(6))
        other_holder, other = spots[int(rng.integers(len(spots)))]
        if how == 0:
            holder[key] = copy.deepcopy(other_holder[other])
        elif how == 1 and isinstance(holder, list):
            holder.pop(key) if rng.random() < 0.5 else holder.insert(key, copy.deepcopy(old))
        elif isinstance(old, bool) or not isinstance(old, (int, str)) or how == 2:
            holder[key] = copy.deepcopy(SMALL[int(rng.integers(len(SMALL)))])
        elif isinstance(old, int):
            holder[key] = old + int(rng.integers(-3, 4)) if how < 5 else NUMBERS[int(rng.integers(len(NUMBERS)))]
        else:
            entries = content.get("entries")
            words = [e.get("k") for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
            words += WORDS
            holder[key] = copy.deepcopy(words[int(rng.integers(len(words)))])
    return content


def doubled(content, rng):
    """An entry written again and again, each made of the last one in all places where it was made of one like it."""
    entries = content["entries"]
    last = len(entries) - 1 if rng.random() < 0.5 else int(rng.integers(len(entries)))
    model = json.dumps(entries[last])
    if not isinstance(entries[last], dict) or '{"r"' not in model:
        entries[last] = {"k": entries[last].get("k"), "v": [{"t": [{"r": max(last - 1, 0)}] * 2}]}
        model = json.dumps(entries[last])
    where = [at for at in places(json.loads(model)) if at[1] == "r"]
    inside = {at[0]["r"] for at in where} & {k for k, e in enumerate(entries) if e.get("k") == entries[last].get("k")}
    at = last
    for _ in range(int(rng.integers(20, 60))):
        again = json.loads(model)
        for holder, key in places(again):
            if key == "r" and (holder[key] in inside or not inside):
                holder[key] = at
        wider = again.get("v")
        for part in wider if isinstance(wider, list) else ():
            if isinstance(part, dict) and isinstance(part.get("t"), list) and {"r": at} in part["t"]:
                part["t"].append({"r": at})
        entries.append(again)
        at = len(entries) - 1
    content["root"] = {"r": at}
    return content


def mutated(file, data, rng):
    """A file with something wrong in it."""
    how = rng.random()
    if how < 0.05:
        return data[: int(rng.integers(len(data)))]
    if how < 0.15:
        found = bytearray(data)
        for _ in range(int(rng.integers(1, 20))):
            found[int(rng.integers(len(found)))] = int(rng.integers(256))
        return bytes(found)
    content, arrays = json.loads(json.dumps(file[0])), dict(file[1])
    if how < 0.3 and arrays:
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        body = bytearray(arrays[name])
        for _ in range(int(rng.integers(1, 4))):
            body[int(rng.integers(len(body) // 2, len(body))) if rng.random() < 0.8 else 0] = int(rng.integers(256))
        arrays[name] = body
    elif how < 0.4 and content["entries"]:
        content = doubled(content, rng)
    else:
        content = changed(content, rng)
    return written(content, arrays)


def limited(size):
    """Limit the memory of this process to what it has now and what a file of some size may take."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES + RATIO * size, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _late(*_):
    raise TooLong


def run(count, seed=0, keep=None, random=60):
    """How many loaded, and what the others were refused with; the first that was neither is raised, or all are kept."""
    files, datas = corpus(random)
    rng, said, found = np.random.default_rng(seed), Counter(), Counter()
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    old = signal.signal(signal.SIGPROF, _late)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.rz"
        for i in range(count):
            k = int(rng.integers(len(files)))
            data = mutated(files[k], datas[k], rng)
            path.write_bytes(data)
            problem = None
            try:
                limited(len(data))
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                rz.load(path)
                said["loaded"] += 1
            except FileError as refused:
                inside = refused.__context__
                said[type(inside).__name__ if inside is not None else "FileError"] += 1
                if isinstance(inside, MemoryError):
                    problem = inside
            except BaseException as other:
                problem = other
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                resource.setrlimit(resource.RLIMIT_AS, unlimited)
            if isinstance(problem, KeyboardInterrupt):
                raise problem
            if problem is not None:
                if keep is None:
                    signal.signal(signal.SIGPROF, old)
                    raise AssertionError(f"file {i} of seed {seed}") from problem
                last = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename != __file__][-1]
                at = f"{Path(last.filename).name}:{last.lineno}"
                found[f"{type(problem).__name__} at {at}"] += 1
                (Path(keep) / f"{seed}-{i}.rz").write_bytes(data)
                print(i, type(problem).__name__, at, str(problem)[:100], flush=True)
    signal.signal(signal.SIGPROF, old)
    return said, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder: do not stop at a failure, keep the file there")
    given = parser.parse_args()
    results, failures = run(given.count, given.seed, given.keep)
    print(results)
    print(failures)
    sys.exit(bool(failures))
