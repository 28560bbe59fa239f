"""`riesz doctor`: versions, threads, linear algebra, GPU and extras, for a report or to see what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from typing import Any

EXTRAS = {
    "numba": ("numba", "compiled loops"),
    "jax": ("jax", "arrays on the GPU, code inside jax.jit"),
    "torch": ("torch", "rz.from_torch, g.to_torch()"),
    "plot": ("matplotlib", "L.spy() with Matplotlib"),
    "browser": ("playwright", "tests of the page in a browser"),
}
"""What each extra brings, and what for."""


def _version(name: str) -> str | None:
    """The version of a package, without importing it."""
    try:
        return importlib.metadata.version(name) if importlib.util.find_spec(name) else None
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpus() -> list[str]:
    """What nvidia-smi lists; nothing where there is none."""
    found = shutil.which("nvidia-smi")
    if found is None:
        return []
    try:
        listed = subprocess.run([found, "-L"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.split(" (UUID")[0] for line in listed.stdout.splitlines() if line.startswith("GPU")]


def facts() -> dict[str, Any]:
    """All of it as data.

    >>> facts()["riesz"] == __import__("riesz").__version__
    True
    """
    import numpy as np
    import threadpoolctl  # pyright: ignore[reportMissingTypeStubs]

    from .. import __version__
    from ..runtime.pool import count

    pools: list[dict[str, Any]] = threadpoolctl.threadpool_info()  # pyright: ignore
    blas = [
        f"{p['internal_api']} {p.get('version') or ''}, {p['num_threads']} threads"
        for p in pools
        if p["user_api"] == "blas"
    ]
    return {
        "riesz": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "numpy": np.__version__,
        "scipy": _version("scipy"),
        "threadpoolctl": _version("threadpoolctl"),
        "threads": count(),
        "settings": {k: v for k, v in sorted(os.environ.items()) if k.startswith("RIESZ_")},
        "blas": blas,
        "gpu": _gpus(),
        "extras": {name: _version(package) for name, (package, _) in EXTRAS.items()},
    }


def doctor(given: Any) -> int:
    """Print it; 1 where something that riesz needs is missing."""
    found = facts()
    missing = [name for name in ("scipy", "threadpoolctl") if found[name] is None]
    if given.format == "json":
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return 1 if missing else 0
    rows = [
        (k, str(found[k]) if found[k] is not None else "MISSING")
        for k in ("riesz", "python", "machine", "numpy", "scipy", "threadpoolctl")
    ]
    rows.append(("threads", f"{found['threads']} (RIESZ_THREADS changes that)"))
    rows += [(name, value) for name, value in found["settings"].items()]
    rows += [("BLAS", text) for text in found["blas"]] or [("BLAS", "not known")]
    rows += [("GPU", text) for text in found["gpu"]] or [("GPU", "none seen")]
    for name, (package, use) in EXTRAS.items():
        version = found["extras"][name]
        rows.append(
            (f"[{name}]", f"{package} {version}" if version else f"not installed: pip install 'riesz[{name}]' ({use})")
        )
    width = max([len(k) for k, _ in rows])
    print("\n".join([f"{k:{width}}  {v}" for k, v in rows]))
    return 1 if missing else 0
