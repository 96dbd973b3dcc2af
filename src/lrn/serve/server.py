"""The HTTP server behind the page: one model, one machine, one user.

It listens on 127.0.0.1 alone. Pages of others cannot use it by way of the user's browser: the Host header
must be this server's (or a name that somebody lets point at 127.0.0.1 would do), so must the Origin, and only
JSON is taken, for which a browser would ask first.
"""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lrn.report.views import to_json
from lrn.serve import page
from lrn.share import TrainedModel
from lrn.tasks.asking import Slider, checked

HOST = "127.0.0.1"
FIRST_PORT, LAST_PORT = 8000, 8099  # tried one after the other where none is given
MOST = 1 << 20  # bytes of a request's body
SECONDS = 20.0  # that a request may take to arrive


def bind(port: int | None = None) -> Server:
    """A server on a port, which must be free; without one on the first that is, from 8000."""
    ports = range(FIRST_PORT, LAST_PORT + 1) if port is None else (port,)
    for candidate in ports:
        try:
            return Server(candidate)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            reason = "is taken" if error.errno == errno.EADDRINUSE else "is not for everybody to use"
    if port is None:
        raise ValueError(f"the ports {FIRST_PORT} to {LAST_PORT} are all taken; choose another: --port")
    raise ValueError(f"port {port} {reason}; choose another: --port")


class Server(ThreadingHTTPServer):
    """A server for one model; it has none before :meth:`show`."""

    daemon_threads = True
    allow_reuse_port = False

    def __init__(self, port: int) -> None:
        super().__init__((HOST, port), Handler)
        self.model: TrainedModel | None = None
        self.page, self.policy = b"", page.policy()
        self._one_at_a_time = threading.Lock()
        port = self.server_port
        self.names = {f"{name}:{port}" for name in (HOST, "localhost")}
        if port == 80:  # which browsers leave out
            self.names |= {HOST, "localhost"}

    def server_bind(self) -> None:
        """Bind, without looking up a name for the address, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}"

    def show(self, model: TrainedModel) -> None:
        """Serve this model, whose example is tried first: what is missing is said now."""
        example = model.task.example(model.loaded)
        if all(example):
            model.predict([example], details=True)
        self.model = model
        self.page = page.render(about(model, example)).encode()

    def answer(self, content: Any, wanted: Callable[[], bool] = lambda: True) -> dict[str, Any] | None:
        """What the model says to a request, as the page shows it; None if it is no longer ``wanted``."""
        assert self.model is not None
        texts, options = asked(content, self.model)
        with self._one_at_a_time:
            if not wanted():  # whoever types on has asked again by now
                return None
            began = time.perf_counter()
            (found,) = self.model.predict([texts], details=True, **options)
            seconds = time.perf_counter() - began
        views = [to_json(view) for view in self.model.task.views(found)]
        return {"views": views, "milliseconds": round(1e3 * seconds, 1)}

    def run(self) -> None:
        """Serve until Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt):
            self.serve_forever()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away before it is answered is no error; others are ours, and shown."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def about(model: TrainedModel, example: list[str]) -> dict[str, Any]:
    """What the page says of a model, and what it asks for."""
    task, parameters = model.task, sum(weight.numel() for weight in model.parameters())
    return {
        "title": task.title,
        "said": f"{model.config.unit}, {parameters:,} parameters; {model.source.name or model.source}",
        "fields": [vars(field) for field in task.fields],
        "options": [{"name": name, **vars(s)} for name, s in task.choices.items() if s is not None],
        "example": example,
    }


def asked(content: Any, model: TrainedModel) -> tuple[list[str], dict[str, Any]]:
    """The texts and the options of a request; a ValueError or TypeError says what is wrong with it."""
    if not isinstance(content, dict) or not set(content) <= {"texts", "options"} or "texts" not in content:
        raise TypeError('expected {"texts": […], "options": {…}}')
    fields, texts, options = model.task.fields, content["texts"], content.get("options", {})
    if not isinstance(texts, list) or not isinstance(options, dict):
        raise TypeError("texts must be a list and options an object")
    checked([texts], fields)
    for field, text in zip(fields, texts, strict=True):
        if len(text) > field.most:
            raise ValueError(
                f"the {field.name} may have {field.most:,} characters here, and has {len(text):,}; "
                "for more: lrn predict"
            )
    for name, value in options.items():
        slider = model.task.choices.get(name)
        if isinstance(slider, Slider) and type(value) in (int, float):
            if not slider.least <= value <= slider.most:
                raise ValueError(f"{name} must be from {slider.least} to {slider.most} here, got {value}")
        else:
            raise ValueError(f"{name!r:.40} cannot be {value!r:.40} here")
    return texts, options


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "lrn", ""
    timeout = SECONDS

    def do_GET(self) -> None:
        if self._refused("/", "GET"):
            return
        self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if self._refused("/answer", "POST"):
            return
        body = self._body()
        if body is None:
            return
        try:
            found = self.server.answer(json.loads(body), lambda: not self._gone())
            said = b"" if found is None else json.dumps(found, allow_nan=False).encode()
        except RecursionError:
            self.send_error(HTTPStatus.BAD_REQUEST, "the request is nested too deeply")
        except (ValueError, TypeError) as error:
            self.send_error(HTTPStatus.BAD_REQUEST, " ".join(str(error).split())[:500])
        except Exception as error:
            traceback.print_exc()
            self.send_error(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"this did not work ({type(error).__name__}): {error!s:.200}",
            )
        else:
            if found is None:
                self.close_connection = True
                return
            self._send(HTTPStatus.OK, said, "application/json")

    def _refused(self, path: str, method: str) -> bool:
        """Whether a request was refused, by where it comes from or what it asks for."""
        hosts, origins = (self.headers.get_all(name, []) for name in ("Host", "Origin"))
        if [host.lower() for host in hosts] not in [[name] for name in self.server.names]:
            self.send_error(HTTPStatus.FORBIDDEN, f"this server is {self.server.address} and no other")
        elif any(origin.lower().removeprefix("http://") not in self.server.names for origin in origins):
            self.send_error(HTTPStatus.FORBIDDEN, "another page may not ask this server")
        elif self.path not in ("/", "/answer"):
            self.send_error(HTTPStatus.NOT_FOUND, "there is nothing here; the page is /")
        elif self.path != path:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, f"{self.path} takes no {method}")
        else:
            return False
        return True

    def _body(self) -> bytes | None:
        """The body of a request for JSON; None if it was refused."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json":
            self.send_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "only application/json is taken")
        elif "Transfer-Encoding" in self.headers or not length:
            self.send_error(HTTPStatus.LENGTH_REQUIRED, "a request must say its Content-Length")
        elif not (length.isascii() and length.isdigit()):
            self.send_error(HTTPStatus.BAD_REQUEST, "the Content-Length is no number")
        elif len(length) > 15 or int(length) > MOST:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have {MOST:,} bytes")
        else:
            return self._read(int(length))
        return None

    def _read(self, length: int) -> bytes | None:
        """So many bytes; None if they do not come in time."""
        until, found = time.monotonic() + SECONDS, bytearray()
        while len(found) < length:
            self.connection.settimeout(max(0.01, until - time.monotonic()))
            try:
                part = self.rfile.read1(length - len(found))
            except TimeoutError:
                part = b""
            if not part:
                self.send_error(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive whole")
                return None
            found += part
        self.connection.settimeout(SECONDS)
        return bytes(found)

    def _gone(self) -> bool:
        """Whether the other side has closed the connection."""
        try:
            self.connection.settimeout(0)
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(SECONDS)

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", self.server.policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send every error as JSON, and end the connection: the rest of a request is no other request."""
        self.close_connection = True
        said = message or HTTPStatus(code).phrase
        self._send(code, json.dumps({"error": said}).encode(), "application/json")
        self.wfile.flush()
        self._drain()

    def _drain(self) -> None:
        """Read on for a moment: closed with something unread, a connection may lose what was answered."""
        until, left = time.monotonic() + 1, 8 * MOST
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while left > 0 and time.monotonic() < until:
                self.connection.settimeout(max(0.01, until - time.monotonic()))
                part = self.connection.recv(65_536)
                if not part:
                    return
                left -= len(part)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: whoever types sees what is answered."""


HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
