"""Is there a browser for the tests of the page? `left_out` says why not, in one line."""

from __future__ import annotations

import importlib.util
import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
FLAGS += ["--disable-component-update", "--disable-sync"]


def executable() -> str | None:
    """Where the browser is."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def left_out() -> str:
    """Why the browser tests are left out; nothing if they are not."""
    if os.environ.get("RIESZ_BROWSER") == "no":
        return "as RIESZ_BROWSER=no says"
    missing = [name for name in ("playwright", "axe_playwright_python") if importlib.util.find_spec(name) is None]
    missing += ["chromium"] if executable() is None else []
    return f"{' and '.join(missing)} not found; make test-browser gets them" if missing else ""
