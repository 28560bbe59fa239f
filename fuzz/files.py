"""Mutated files: python fuzz/files.py 100000. Each must load or be refused with a FileError, in time and memory."""

from __future__ import annotations

import io
import json
import resource
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

import riesz as rz
from riesz.errors import FileError

GOLDEN = sorted((Path(__file__).parent.parent / "tests" / "data").glob("saved-*.rz"))
SECONDS, BYTES = 10.0, 1 << 29


def json_parts(x, found, path=()):
    """The places of all numbers, words and lists in a description."""
    stack = [(x, path)]
    while stack:
        v, at = stack.pop()
        found.append(at)
        if isinstance(v, dict):
            stack += [(w, (*at, k)) for k, w in v.items()]
        elif isinstance(v, list):
            stack += [(w, (*at, i)) for i, w in enumerate(v[:200])]
    return found


def mutated_text(text, rng):
    """A description with one or more parts exchanged, changed or gone."""
    content = json.loads(text)
    places = [p for p in json_parts(content, []) if p]
    for _ in range(int(rng.integers(1, 4))):
        at, other = [places[int(rng.integers(len(places)))] for _ in range(2)]
        try:
            holder, source = content, content
            for k in at[:-1]:
                holder = holder[k]
            for k in other:
                source = source[k]
            choices = [source, -1, 2**40, 0, None, "", "Seg", [], {}, {"r": int(rng.integers(-2, 50))}, 1e300]
            holder[at[-1]] = json.loads(json.dumps(choices[int(rng.integers(len(choices)))]))
        except (KeyError, IndexError, TypeError):
            continue
    return json.dumps(content).encode()


def mutated(data, rng):
    """A file with something wrong in it."""
    how = int(rng.integers(4))
    if how == 0:  # bytes
        found = bytearray(data)
        for _ in range(int(rng.integers(1, 20))):
            found[int(rng.integers(len(found)))] = int(rng.integers(256))
        return bytes(found)
    if how == 1:  # cut
        return data[: int(rng.integers(len(data)))]
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            body = old.read(info)
            if info.filename == "riesz.json":
                body = mutated_text(body, rng)
            elif how == 3 and rng.random() < 0.3:
                body = bytearray(body)
                body[int(rng.integers(len(body)))] = int(rng.integers(256))
            new.writestr(zipfile.ZipInfo(info.filename), bytes(body))
    return out.getvalue()


def run(count, seed=0, golden=GOLDEN):
    """How many loaded and how many were refused; anything else is raised."""
    rng, loaded = np.random.default_rng(seed), 0
    originals = [p.read_bytes() for p in golden]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.rz"
        for p in golden:
            rz.load(p)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(count):
            data = mutated(originals[int(rng.integers(len(originals)))], rng)
            path.write_bytes(data)
            start = time.perf_counter()
            try:
                rz.load(path)
                loaded += 1
            except FileError:
                pass
            except BaseException:
                Path(tempfile.gettempdir(), "riesz-fuzz-found.rz").write_bytes(data)
                raise
            assert time.perf_counter() - start < SECONDS, f"file {i} took too long"
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
            assert grown < BYTES, f"file {i} took {grown:,} bytes"
    return loaded, count - loaded


if __name__ == "__main__":
    print("loaded, refused:", run(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
