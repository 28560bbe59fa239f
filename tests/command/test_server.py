"""The server of the page: who may ask, what is refused, what is ended, and that hostile texts do nothing."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from riesz.command import serving
from riesz.command.arguments import parser
from riesz.command.playing import prepared
from riesz.command.serving import MOST_BYTES, PAGE, Answers, PageServer
from riesz.command.workers import WorkerPool


@contextmanager
def running(seconds=20.0, setup=None, count=2):
    pool = WorkerPool(setup or {"code": False, "file": ""}, seconds, count)
    server = PageServer(pool, start={"text": "", "shapes": ""})
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        assert pool.started.wait(60)
        yield server
    finally:
        server.shutdown()
        server.server_close()
        pool.close()
        thread.join()


@pytest.fixture(scope="module")
def server():
    with running() as found:
        yield found


def connect(server, timeout=30):
    return http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=timeout)


def asked(server, what="view", body=None, method="POST", path=None, headers=None, raw=None):
    """The status, headers and JSON of an answer."""
    wire = connect(server)
    own = {"Content-Type": "application/json"} | (headers or {})
    data = raw if raw is not None else json.dumps(body or {}).encode() if method == "POST" else None
    wire.request(method, f"/{server.token}/api/{what}" if path is None else path, body=data, headers=own)
    reply = wire.getresponse()
    text = reply.read()
    wire.close()
    kind = reply.headers.get_content_type()
    return SimpleNamespace(
        status=reply.status, headers=reply.headers, data=json.loads(text) if kind == "application/json" else text
    )


LAYER = {"text": "x, W, b -> tanh(W @ x + b)", "shapes": "3 2,3 2"}


# -- what is answered -------------------------------------------------------------------------------------------


def test_a_function_is_answered_with_everything(server):
    found = asked(server, body=LAYER)
    assert found.status == 200
    v = found.data
    assert "error" not in v and v["type"] == "ℝ^3 ⊕ ℝ^(2×3) ⊕ ℝ^2 → ℝ^2" and v["kind"] == "jacobian"
    assert v["form"]["unicode"].startswith("∂f/∂x = EW")
    parts = ("form", "term", "derivative", "adjoint", "steps", "structure", "diagram")
    assert [k for k in parts if "error" in v[k]] == []
    assert "def jacobian(x, W, b)" in v["code"]["numpy"] and [c["name"] for c in v["structure"]["columns"]] == [
        "x",
        "W",
        "b",
    ]


def test_second_derivatives_and_numbers(server):
    body = {"text": "x, y -> (1 - x) ** 2 + 100 * (y - x ** 2) ** 2", "shapes": ""}
    second = asked(server, "second", body).data
    assert "1200" in second["form"]["unicode"] and second["structure"]["shape"] == [2, 2]
    there = asked(server, "numbers", {**body, "point": [1.0, 1.0]}).data
    assert float(there["value"]) == 0.0 and there["matrix"] == [[0.0, 0.0]] and there["check"]["passed"]
    assert there["plot"]["kind"] == "field" and len(there["plot"]["values"]) == there["plot"]["side"] ** 2
    assert "2 numbers" in asked(server, "numbers", {**body, "point": [1.0]}).data["error"]
    assert "error" in asked(server, "numbers", {**body, "point": [1.0, "x"]}).data
    line = asked(server, "numbers", {"text": "x -> log(x)"}).data
    assert line["plot"]["kind"] == "line" and None in line["plot"]["values"]
    assert "only functions into ℝ" in asked(server, "second", LAYER).data["error"]


def test_parts_that_are_asked_for(server):
    body = {"text": "A, x, b -> sum((A @ x - b) ** 2)", "shapes": "5,3 3 5"}
    assert "#include <math.h>" in asked(server, "part", {**body, "part": "c"}).data["code"]
    assert "hessian" in asked(server, "part", {**body, "part": "c", "second": True}).data["code"]
    assert "for 3 right-hand sides" in asked(server, "part", {**body, "part": "order", "columns": 3}).data["svg"]
    for other in ("spy", None, 3, ["c"], {"c": 1}):
        assert "parts are c and order" in asked(server, "part", {**body, "part": other}).data["error"]


def test_every_example_of_the_gallery_works():
    from riesz.command.views import Views

    examples = json.loads((PAGE / "gallery.json").read_text())
    assert len(examples) >= 40 and len({e["text"] for e in examples}) == len(examples)
    views = Views({"code": False, "file": ""})
    for e in examples:
        found = views.answer({"what": "view", **e})
        assert "error" not in found, (e, found)
        assert not [k for k, part in found.items() if isinstance(part, dict) and "error" in part], e
        there = views.answer({"what": "numbers", **e})
        assert there["check"]["passed"], e
        json.dumps([found, there], allow_nan=False)


def test_the_page_is_small_and_asks_nobody_else():
    import gzip
    import re

    files = sorted(serving.FILES.values())
    assert sum(len(gzip.compress(f.read_bytes())) for f in files) < 80_000
    for file in files:
        text = file.read_text().replace("http://www.w3.org/", "")
        assert not re.search(
            r"https?://|//[a-z]|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(",
            re.sub(r"(^|\s)//.*", "", text),
        ), file


# -- who may ask ------------------------------------------------------------------------------------------------


def test_files_and_headers(server):
    wire = connect(server)
    wire.request("GET", f"/{server.token}/")
    reply = wire.getresponse()
    assert reply.status == 200 and b"riesz play" in reply.read()
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff" and reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["Referrer-Policy"] == "no-referrer" and "Access-Control-Allow-Origin" not in reply.headers
    assert asked(server, method="GET", path=f"/{server.token}/start.json").data == {"text": "", "shapes": ""}
    for path in (
        "none.js",
        "../serving.py",
        "%2e%2e/serving.py",
        "..",
        "page.css/..",
        "/etc/passwd",
        "page/../index.html",
    ):
        assert asked(server, method="GET", path=f"/{server.token}/{path}").status == 404


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/wrong/", "/{short}/", "/{token}x/", "/ü/", "/{token}x", "/x/{token}/"]
)
def test_a_wrong_token_is_refused(server, path):
    path = path.format(token=server.token, short=server.token[:-1])
    for method in ("GET", "POST"):
        found = asked(
            server, method=method, path=path.replace("ü", "%FC") + ("api/view" if method == "POST" else ""), body=LAYER
        )
        assert found.status == 403 and "riesz play printed" in found.data["error"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", "", "0.0.0.0"]
)
def test_a_foreign_host_is_refused(server, host):
    assert asked(server, body=LAYER, headers={"Host": host}).status == 403
    assert asked(server, method="GET", path=f"/{server.token}/", headers={"Host": host}).status == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "file://"]
)
def test_a_foreign_origin_is_refused(server, origin):
    assert asked(server, body=LAYER, headers={"Origin": origin}).status == 403
    own = f"http://127.0.0.1:{server.server_address[1]}"
    assert asked(server, body=LAYER, headers={"Origin": own}).status == 200
    assert asked(server, body=LAYER, headers={"Sec-Fetch-Site": "cross-site"}).status == 403


def test_two_hosts_are_refused(server):
    own = f"127.0.0.1:{server.server_address[1]}"
    with socket.create_connection(server.server_address, timeout=10) as wire:
        wire.sendall(f"GET /{server.token}/ HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n".encode())
        assert wire.recv(100).split()[1] == b"403"


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1" and len(server.token) >= 32
    with PageServer(server.pool) as other:
        assert other.token != server.token


# -- malformed, huge, slow, many --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"\xff\xfe",
        b"[" * 20000,
        b'{"text": 1}',
        b'{"text": "x -> x", "shapes": 3}',
        b'{"text": null}',
        b'{"text": "x -> x", "columns": 1e999}',
        b'{"text": "x -> x", "point": [NaN]}',
        b"{}",
    ],
)
def test_malformed_requests(server, raw):
    found = asked(server, raw=raw)
    assert found.status in (200, 400) and "error" in found.data and "ended" not in found.data


def test_other_kinds_of_requests(server):
    assert asked(server, "nothing", LAYER).status == 404
    assert asked(server, body=LAYER, headers={"Content-Type": "text/plain"}).status == 415
    assert asked(server, body=LAYER, headers={"Content-Type": "application/x-www-form-urlencoded"}).status == 415
    assert asked(server, raw=b"x" * (MOST_BYTES + 1)).status == 413
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert asked(server, method=method).status == 501
    for line in (
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST " + b"/" * 70000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n" * 50,
    ):
        with socket.create_connection(server.server_address, timeout=10) as wire:
            wire.sendall(line)
            wire.shutdown(socket.SHUT_WR)
            wire.recv(100)
    for length in ("-1", "many", "99999999999", "1e3", ""):
        with socket.create_connection(server.server_address, timeout=10) as wire:
            host = f"127.0.0.1:{server.server_address[1]}"
            head = f"POST /{server.token}/api/view HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}"
            wire.sendall(head.encode())
            assert wire.recv(100).split()[1] in (b"411", b"413")
    assert asked(server, body=LAYER).status == 200


def test_slow_requests_are_cut_off(server, monkeypatch):
    monkeypatch.setattr(serving, "READING", 0.4)
    start = time.monotonic()
    with socket.create_connection(server.server_address, timeout=10) as wire, pytest.raises(OSError):
        for _ in range(100):  # a byte every 20 ms: each is in time, all of them are not
            wire.sendall(b"G")
            time.sleep(0.02)
        raise ConnectionError if wire.recv(10) == b"" else AssertionError
    assert time.monotonic() - start < 5
    monkeypatch.undo()
    assert asked(server, body=LAYER).status == 200


def test_connections_are_bounded(server):
    held = [socket.create_connection(server.server_address, timeout=10) for _ in range(serving.CONNECTIONS)]
    assert waited(lambda: server.room._value == 0)
    with socket.create_connection(server.server_address, timeout=10) as wire:
        assert b"503" in wire.recv(100)
    for wire in held:
        wire.close()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            assert asked(server, body=LAYER).status == 200
            return
        except (OSError, http.client.HTTPException, AssertionError):
            time.sleep(0.05)
    raise AssertionError("no room after the connections were closed")


def test_concurrent_requests_get_their_own_answers(server):
    found = {}

    def one(k):
        found[k] = asked(
            server, "numbers", {"text": f"x -> {k} * x", "shapes": "scalar", "point": [1.0], "page": str(k)}
        )

    threads = [threading.Thread(target=one, args=(k,)) for k in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {k: float(r.data["value"]) for k, r in found.items()} == {k: float(k) for k in range(12)}


# -- ended computations -----------------------------------------------------------------------------------------

ENDLESS = "def f(x):\n    while True:\n        pass\n"


def test_an_endless_computation_is_ended_and_the_next_one_works():
    with running(seconds=0.8, setup={"code": True, "file": ""}, count=1) as server:
        start = time.monotonic()
        found = asked(server, body={"text": ENDLESS, "shapes": "scalar"})
        assert (
            found.status == 200
            and found.data["ended"] == "slow"
            and "longer than 0.8 s and was ended" in found.data["error"]
        )
        assert time.monotonic() - start < 10
        server.pool.seconds = 20.0
        assert "error" not in asked(server, body=LAYER).data
        code = {"text": "def f(x):\n    print('hello')\n    return np.sin(x)\n", "shapes": "3"}
        assert asked(server, body=code).data["form"]["unicode"] == "diag(cos(x))"
        dying = {"text": "def f(x):\n    import os\n    os._exit(3)\n", "shapes": "3"}
        assert asked(server, body=dying).data["ended"] == "broken"
        assert "error" not in asked(server, body=LAYER).data


COPIES = "import os\ndef f(x):\n    os.fork()\n    return x * x"
CHILD = """import subprocess, sys
def f(x):
    with open({place!r}, "w") as file:
        file.write(str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"]).pid))
    while True:
        pass"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not copy processes")
def test_processes_that_code_has_started_answer_nothing_and_end_with_it(tmp_path):
    place = tmp_path / "pid"
    with running(seconds=1.5, setup={"code": True, "file": ""}, count=1) as server:
        assert asked(server, body={"text": COPIES, "shapes": "3"}).data["type"] == "ℝ^3 → ℝ^3"
        for k in range(1, 5):  # each answer is that of its own request
            found = asked(server, body={"text": f"x -> sin(x[:{k}])", "shapes": "9"})
            assert found.data["type"] == f"ℝ^9 → ℝ^{k}"
        assert (
            "SystemExit"
            in asked(server, body={"text": "def f(x):\n    raise SystemExit(7)", "shapes": "3"}).data["error"]
        )
        assert asked(server, body={"text": CHILD.format(place=str(place)), "shapes": "3"}).data["ended"] == "slow"
        child, end = int(place.read_text()), time.monotonic() + 10
        while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2]:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_newer_request_of_a_page_ends_its_older_one():
    with running(seconds=30.0, setup={"code": True, "file": ""}, count=1) as server:
        answers = []
        old = threading.Thread(
            target=lambda: answers.append(asked(server, body={"text": ENDLESS, "shapes": "scalar", "page": "me"}))
        )
        old.start()
        assert waited(lambda: any(j.worker for j in server.pool._jobs))
        assert "error" not in asked(server, body={**LAYER, "page": "me"}).data
        old.join(10)
        assert answers[0].data["ended"] == "old"


def test_too_many_waiting_requests_are_refused_at_once(server):
    pool = server.pool
    with pool._changed:  # nobody can be served while this is held
        free, pool._free[:] = list(pool._free), []
    kinds = []
    threads = [
        threading.Thread(target=lambda: kinds.append(pool.run({"what": "view", **LAYER}).kind)) for _ in range(20)
    ]
    for t in threads:
        t.start()
    assert waited(lambda: kinds.count("busy") == 4)
    with pool._changed:
        pool._free[:] = free
        pool._changed.notify_all()
    for t in threads:
        t.join()
    assert kinds.count("done") == 16


def test_a_computation_ends_with_a_server_that_was_killed(tmp_path):
    file = tmp_path / "endless.py"
    file.write_text("import os\ndef f(x):\n    print(os.getpid(), flush=True)\n    while True:\n        pass\n")
    command = [sys.executable, "-m", "riesz", "play", f"{file}:f", "--shapes", "2", "--no-browser", "--seconds", "60"]
    with (
        open(tmp_path / "said", "w") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        try:
            host, token = process.stdout.readline().strip().removeprefix("http://").rstrip("/").split("/")
            wire = http.client.HTTPConnection(host, timeout=60)
            body = json.dumps({"text": f"{file}:f", "shapes": "2"})
            wire.request("POST", f"/{token}/api/view", body, {"Content-Type": "application/json"})
            numbers = waited(lambda: [int(w) for w in (tmp_path / "said").read_text().split() if w.isdigit()])
        finally:
            process.kill()
    wire.close()
    assert numbers and waited(lambda: not still_running(numbers[-1]))


def waited(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def still_running(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def test_the_processes_end_with_the_server():
    with running(count=1) as server:
        process = next(iter(server.pool._all)).process
        assert process.poll() is None
    assert process.poll() is not None


def test_answers_are_kept_within_limits(monkeypatch):
    kept = Answers()
    for k in range(100):
        kept.put(str(k), b"x" * 10)
    assert kept.get("99") == b"x" * 10 and kept.get("0") is None and len(kept._kept) == serving.CACHED
    monkeypatch.setattr(serving, "CACHED_BYTES", 100)
    kept.put("more", b"y" * 20)
    assert sum(map(len, kept._kept.values())) <= 100 and kept._bytes <= 100
    kept.put("large", b"z" * 90)
    assert kept.get("large") is None


# -- hostile texts ----------------------------------------------------------------------------------------------

HOSTILE = [
    "__import__('os').system('touch /tmp/riesz-was-here')",
    "x -> __import__('os')",
    "x -> x.__class__.__mro__",
    "x -> (lambda: 1)()",
    "x -> [y for y in x]",
    "x -> open('/etc/passwd')",
    "x -> x" + " + x" * 5000,
    "x -> " + "(" * 5000 + "x" + ")" * 5000,
    "x -> x ** 10 ** 10 ** 10",
    "x -> tensordot(x, x, 2 * 10 ** 7)",
    "<script>alert(1)</script> -> 1",
    "x -> '<img src=x onerror=alert(1)>'",
    "x -> x[" + "9" * 500 + "]",
    "x -> \x00",
    "x -> \ud800",
    "def f(x):\n    return x",
    ", ".join(f"a{i}" for i in range(2000)) + " -> a0",
    "x" * 19_999 + " -> 1",
    "x " * 30_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_do_nothing(server, text):
    for what in ("view", "numbers"):
        found = asked(server, what, {"text": text, "shapes": ""})
        assert found.status in (200, 413) and ("error" in found.data or text.startswith("x -> x +"))
        assert "broken" not in found.data.get("ended", "")


@pytest.mark.parametrize(
    "shapes",
    [
        "9" * 11,
        "100000,100000",
        "1,2,3,4,5,6,7,8",
        "-1",
        "1e9",
        "0",
        "nan",
        ",".join(["1"] * 40),
        "3 " * 900,
        "()" * 50,
    ],
)
def test_hostile_shapes_do_nothing(server, shapes):
    found = asked(server, body={"text": "x -> sum(x)", "shapes": shapes})
    assert found.status == 200 and found.data.get("ended") is None


def test_huge_results_are_refused(server):
    found = asked(server, body={"text": "x -> outer(x, x)", "shapes": "1000000"})
    assert "the limit is" in found.data["error"]


def test_code_is_refused_unless_allowed(server):
    assert "--allow-code" in asked(server, body={"text": "def f(x):\n    return x\n", "shapes": "3"}).data["error"]
    assert "error" in asked(server, body={"text": "model.py:f", "shapes": "3"}).data


def test_what_a_play_starts_with(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import numpy as np\ndef f(x):\n    return np.sum(x ** 2)\n")
    given = parser().parse_args(["play", f"{file}:f", "--shapes", "3"])
    setup, start = prepared(given)
    assert setup == {"code": False, "file": f"{file}:f"} and start["text"] == f"{file}:f" and start["shapes"] == "3"
    with running(setup=setup, count=1) as server:
        assert asked(server, body=start).data["form"]["unicode"] == "2x"
        assert "error" in asked(server, body={"text": f"{file}:g", "shapes": "3"}).data  # this one function only
