"""The server of the page: this machine only, one secret token, few routes, every request checked before it is read.

    GET  /TOKEN/, /TOKEN/FILE      the page and its files
    POST /TOKEN/api/WHAT           JSON in, JSON out; computed by a process of `workers.WorkerPool`

A request is refused unless it names this machine as its host, comes from the page itself where a browser says where it
comes from, and knows the token. Connections are bounded in number, bytes and seconds.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
from collections import OrderedDict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .workers import WorkerPool

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
FILES = {file.name: file for file in sorted(PAGE.iterdir()) if file.suffix in TYPES} if PAGE.is_dir() else {}
"""What is served: the files that are there, by name; no path is ever put together from a request."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ROUTES = ("view", "second", "numbers", "part")
MOST_BYTES = 1 << 16
"""Of a request."""
CONNECTIONS = 32
READING = 10.0
"""Seconds in which a request must have arrived."""
CACHED, CACHED_BYTES = 64, 16 << 20
SENTENCES = {
    "slow": (HTTPStatus.OK, "this took longer than {seconds:g} s and was ended; smaller shapes may do"),
    "busy": (HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at once; try again"),
    "old": (HTTPStatus.OK, "a newer request took the place of this one"),
    "hopeless": (HTTPStatus.OK, "the process that computes does not start; the terminal of riesz play says why"),
    "broken": (
        HTTPStatus.OK,
        "the process that computes has ended, mostly because it took more memory than it may; smaller shapes may do",
    ),
}


class Answers:
    """Answers that were given, the oldest forgotten first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """A known answer."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer, within limits."""
        with self._lock:
            if key in self._kept or len(answer) > CACHED_BYTES // 4:
                return
            self._kept[key] = answer
            self._bytes += len(answer)
            while len(self._kept) > CACHED or self._bytes > CACHED_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1])


def _packed(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class PageServer(ThreadingHTTPServer):
    """The server; `address` is what a browser opens."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, pool: WorkerPool, port: int = 0, start: dict[str, Any] | None = None) -> None:
        super().__init__(("127.0.0.1", port), PageHandler)
        self.pool, self.start = pool, start or {}
        self.token = secrets.token_urlsafe(24)
        self.answers = Answers()
        own = self.server_address[1]
        self.hosts = {f"127.0.0.1:{own}", f"localhost:{own}"}
        self.room = threading.BoundedSemaphore(CONNECTIONS)

    @property
    def address(self) -> str:
        """With the token: who knows it may ask."""
        return f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"

    def server_bind(self) -> None:
        """Bind, and ask no name server for this machine's name."""
        self.socket.bind(self.server_address)  # HTTPServer would look the name up
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each of a bounded number of connections; others are closed."""
        if not self.room.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The connection, and room for another after it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke off is no news."""


class PageHandler(BaseHTTPRequestHandler):
    """One request of one connection."""

    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "riesz", ""
    timeout = READING

    def setup(self) -> None:
        """All of a request must arrive within a time, however slowly its bytes drip."""
        super().setup()
        self._clock = threading.Timer(READING, self._cut_off)
        self._clock.daemon = True
        self._clock.start()

    def _cut_off(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """The end of the connection."""
        self._clock.cancel()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""

    def version_string(self) -> str:
        """Nothing about versions."""
        return "riesz"

    # -- who may ask -------------------------------------------------------------------------------------------

    def _path(self) -> str | None:
        """The path after the token; None where the request has been refused."""
        named = self.headers.get_all("Host") or []
        if len(named) != 1 or named[0].lower() not in self.server.hosts:
            return self._refuse(HTTPStatus.FORBIDDEN, "this server is for this machine only")
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in self.server.hosts}:
            return self._refuse(HTTPStatus.FORBIDDEN, "requests of other pages are refused")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return self._refuse(HTTPStatus.FORBIDDEN, "requests of other pages are refused")
        token, _, rest = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode("latin-1", "replace"), self.server.token.encode()):
            return self._refuse(HTTPStatus.FORBIDDEN, "open the address that riesz play printed")
        return rest

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        self._reply(status, {"error": words})

    def _reply(self, status: HTTPStatus, data: Any, kind: str = "application/json") -> None:
        body = data if isinstance(data, bytes) else _packed(data)
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    # -- what they get -----------------------------------------------------------------------------------------

    def do_GET(self) -> None:
        """A file of the page, or what it starts with."""
        path = self._path()
        if path is None:
            return
        if path == "start.json":
            return self._reply(HTTPStatus.OK, self.server.start)
        file = FILES.get(path or "index.html")
        if file is None:
            return self._refuse(HTTPStatus.NOT_FOUND, "there is no such file")
        self._reply(HTTPStatus.OK, file.read_bytes(), TYPES[file.suffix])

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Something to compute."""
        path = self._path()
        if path is None:
            return
        what = path.removeprefix("api/")
        if path == what or what not in ROUTES:
            return self._refuse(HTTPStatus.NOT_FOUND, f"there is no {path[:40]!r} here")
        request = self._request()
        if request is None:
            return
        self._clock.cancel()
        page = request.pop("page", "")
        lane = f"{what} {request.get('part')} {page}" if page else ""
        key = json.dumps([what, request], sort_keys=True)
        known = self.server.answers.get(key)
        if known is not None:
            return self._reply(HTTPStatus.OK, known)
        outcome = self.server.pool.run({**request, "what": what}, lane)
        if outcome.kind == "done":
            body = _packed(outcome.answer)
            self.server.answers.put(key, body)
            return self._reply(HTTPStatus.OK, body)
        status, words = SENTENCES[outcome.kind]
        self._reply(status, {"error": words.format(seconds=self.server.pool.seconds), "ended": outcome.kind})

    def _request(self) -> dict[str, Any] | None:
        """The JSON of a request; None where it has been refused."""
        if self.headers.get_content_type() != "application/json" or self.headers.get("Transfer-Encoding"):
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "requests are JSON with a Content-Length")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 9:
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "requests have a Content-Length")
        if int(length) > MOST_BYTES:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {MOST_BYTES:,} bytes")
        body = self.rfile.read(int(length))
        try:
            found: Any = json.loads(body) if len(body) == int(length) else None
            json.dumps(found, allow_nan=False)  # 1e999 is no number here
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            return self._refuse(HTTPStatus.BAD_REQUEST, "this is not a JSON object of finite numbers")
        return dict(found)  # pyright: ignore
