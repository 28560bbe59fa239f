"""A server and a browser for the tests of the page. Nothing but this machine may be asked."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import browser
import pytest

collect_ignore_glob = ["test_*.py"] if browser.left_out() else []


@contextmanager
def playing(*words):
    """A running `riesz play`: its process and its address."""
    command = [sys.executable, "-m", "riesz", "play", "--no-browser", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def address():
    """The address of a `riesz play` for all tests."""
    with playing("--seconds", "20") as (_, found):
        yield found


@pytest.fixture
def limited():
    """A `riesz play` that takes code and few seconds for it."""
    with playing("--seconds", "3", "--allow-code") as found:
        yield found


@pytest.fixture(scope="session")
def chromium():
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=browser.executable(), args=browser.FLAGS)
        yield found
        found.close()


@pytest.fixture
def open_page(chromium, address):
    """Open the page; at the end there were no errors, and no request left the machine."""
    contexts, wrong = [], []

    def opened(fragment="", ready=True, at=None, quiet=False, **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") and not quiet else None)
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.on("dialog", lambda d: wrong.append(f"dialog {d.message}"))
        page.on(
            "request", lambda r: None if r.url.startswith((at or address).rsplit("/", 2)[0]) else wrong.append(r.url)
        )
        page.goto((at or address) + fragment)
        if ready:
            page.wait_for_selector(".panel[data-done] .value")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
