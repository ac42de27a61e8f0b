"""Servers on free ports of the loopback interface: files by HTTP, and ones that answer nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class FileServer:
    """A folder, served by HTTP with ranges of bytes.

    Attributes
    ----------
    url : str
        Of the folder, with no slash at its end.
    folder : Path
    failing : dict of str to int
        Status codes to answer with, by parts of paths.
    requests : list of str
        What was asked for: method, path and query.
    pages : dict of str to bytes
        Answers in HTML, such as lists of folders, by paths.
    silent : bool
        Whether requests wait for an answer until the server ends.
    tagged : bool
        Whether files have entity tags.
    """

    url: str
    folder: Path
    failing: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)
    silent: bool = False
    tagged: bool = False
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def file_server(folder: Path) -> Iterator[FileServer]:
    """Serve a folder by HTTP."""
    served = FileServer("", folder)
    with _QuietServer(("127.0.0.1", 0), partial(_FileHandler, served)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield served
        finally:
            served.ended.set()
            server.shutdown()
            thread.join(10)


@contextmanager
def deaf_server(*, drips: bool = False) -> Iterator[str]:
    """Yield the address of a server that accepts connections, and answers nothing.

    Parameters
    ----------
    drips : bool
        Whether it answers with one byte a second in place of nothing.
    """
    connections: list[socket.socket] = []
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:

        def serve() -> None:
            with suppress(OSError):  # it is closed
                while True:
                    connections.append(listening.accept()[0])
                    if drips:
                        threading.Thread(target=drip, args=connections[-1:], daemon=True).start()

        def drip(connection: socket.socket) -> None:
            with suppress(OSError):
                for sign in b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 1000:
                    connection.sendall(bytes([sign]))
                    if ended.wait(1.0):
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in connections:
                connection.close()


@contextmanager
def refusing_port() -> Iterator[str]:
    """Yield an address at which connections are refused."""
    with socket.socket() as held:  # nobody else gets the port, and nothing listens at it
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        pass  # clients that go away leave their connections open


class _FileHandler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"

    def __init__(self, served: FileServer, *args: Any) -> None:
        self.served = served
        super().__init__(*args)

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.served.requests.append(f"{self.command} {self.path}")
        if self.served.silent:
            self.served.ended.wait()
            return
        if (page := self.served.pages.get(self.path)) is not None:
            html = {"Content-Type": "text/html"}
            self._send(200, page, len(page), with_body=with_body, **html)
            return
        status = next((code for part, code in self.served.failing.items() if part in self.path), 0)
        file = self.served.folder / self.path.partition("?")[0].lstrip("/")
        if status or not file.is_file():
            self._send(status or 404, b"", 0, with_body=False)
            return
        data, spec = file.read_bytes(), self.headers.get("Range")
        if not spec:
            known, tag = file.stat(), {}
            if self.served.tagged:
                tag = {"ETag": f'"{known.st_mtime_ns:x}-{known.st_ino:x}"'}
            self._send(200, data, len(data), with_body=with_body, **tag)
            return
        first, _, last = spec.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(len(data), int(last) + 1) if first and last else len(data)
        if start >= len(data):
            self._send(416, b"", 0, with_body=False)
            return
        extra = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
        self._send(206, data[start:stop], stop - start, with_body=with_body, **extra)

    def _send(
        self, status: int, body: bytes, length: int, *, with_body: bool, **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if with_body:
            self.wfile.write(body)
