"""How quick the page is: from `riesz play` to an answer, from a request to its answer, from a key to what is shown.

python bench/page.py [--rounds N]; the last part needs a browser (make test-browser gets one).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import browser

TEXTS = [
    ("x, W, b -> tanh(W @ x + b)", "3 2,3 2"),
    ("A, x, b -> sum((A @ x - b) ** 2)", "5,3 3 5"),
    ("x, y -> (1 - x) ** 2 + 100 * (y - x ** 2) ** 2", "scalar scalar"),
    ("x -> x[1:] * x[:-1]", "12"),
    ("X -> log(det(X))", "3,3"),
]


def ask(address: str, what: str, body: dict[str, object]) -> dict[str, object]:
    """One request."""
    host, token = address.removeprefix("http://").rstrip("/").split("/")
    wire = http.client.HTTPConnection(host, timeout=60)
    wire.request("POST", f"/{token}/api/{what}", json.dumps(body), {"Content-Type": "application/json"})
    found = json.loads(wire.getresponse().read())
    wire.close()
    return found


def shown(name: str, seconds: list[float], aim: str) -> None:
    best, middle = [f"{1e3 * t:.0f} ms" for t in (min(seconds), statistics.median(seconds))]
    print(f"{name:58}  median {middle:>8}  best {best:>8}  of {len(seconds):>3}  (aim {aim})", flush=True)


def requests(address: str, rounds: int) -> None:
    times: list[float] = []
    for k in range(rounds):
        for text, shapes in TEXTS:
            start = time.perf_counter()
            assert "error" not in ask(
                address, "view", {"text": f"{text} + {k}.5", "shapes": shapes}
            )  # not a known answer
            times.append(time.perf_counter() - start)
    shown("a request for all that is shown of a small function", times, "150 ms")


def typing(address: str, rounds: int) -> None:
    """From the input event of the last key to the frame after the result is in the page."""
    from playwright.sync_api import sync_playwright

    code = """([text, shapes]) => new Promise((done) => {
        const panel = document.querySelector('.panel'), input = panel.querySelector('textarea');
        panel.querySelector('.shapes input').value = shapes;
        input.value = text;
        const start = performance.now(), before = panel.dataset.done;
        const watch = new MutationObserver(() => {
            if (panel.dataset.done === before) return;
            watch.disconnect();
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
        });
        watch.observe(panel, { attributes: true });
        input.dispatchEvent(new Event('input', { bubbles: true }));
    })"""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.executable(), args=browser.FLAGS)
        page = chromium.new_page()
        page.goto(address)
        page.wait_for_selector(".panel[data-settled]")
        times: list[float] = []
        for k in range(rounds):
            for text, shapes in TEXTS:
                times.append(page.evaluate(code, [f"{text} + {k}.25", shapes]) / 1e3)
                page.wait_for_selector(".panel[data-settled]")
        shown("from a key to the result in the browser, 30 ms of it a pause", times, "150 ms")
        chromium.close()


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--rounds", type=int, default=10)
    rounds = given.parse_args().rounds
    ready: list[float] = []
    for k in range(3):
        start = time.perf_counter()
        command = [sys.executable, "-m", "riesz", "play", "--no-browser"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
        )
        try:
            address = process.stdout.readline().strip()
            assert "error" not in ask(address, "view", {"text": TEXTS[0][0], "shapes": TEXTS[0][1]})
            ready.append(time.perf_counter() - start)
            if k == 2:
                shown("from riesz play to its first answer", ready, "1.5 s")
                requests(address, rounds)
                if why := browser.left_out():
                    print(f"in the browser: left out, {why}")
                else:
                    typing(address, rounds)
        finally:
            process.terminate()
            process.wait()
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "riesz", "--help"], stdout=subprocess.DEVNULL, check=True)
    shown("riesz --help", [time.perf_counter() - start], "500 ms")


if __name__ == "__main__":
    main()
