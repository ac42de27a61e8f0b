"""An S3 server that counts, answers one request at a time, and fails when it is told to.

Run as a program it serves on a free port of the loopback interface, prints the port, and stops when
its standard input ends. moto checks a condition and writes in two steps, between which another
request may come; S3 does both at once, and so does this server, by answering one request at a time.

A `fault` is what happens to a request of the methods given, with some probability:

- ``403``, ``409``, ``412`` and ``503``: it is not done, and the answer says so;
- ``503 done``: it is done, and the answer says that it was not;
- ``cut``: the connection is cut before it is done;
- ``cut done``: it is done, and the connection cut before the answer;
- ``half``: it is done, and the connection cut in the middle of the answer;
- ``ignored``: the conditions of the request are taken no notice of, as by some servers.
"""

from __future__ import annotations

import io
import json
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

KEY, SECRET = "some-key", "a-secret-of-the-tests"


@dataclass(frozen=True)
class Objects:
    """The objects of a store of obstore."""

    store: Any

    def names(self) -> list[str]:
        """Return the names of all of them."""
        import obstore

        return sorted(each["path"] for some in obstore.list(self.store) for each in some)

    def read(self, name: str) -> bytes:
        """Return what one holds."""
        import obstore

        return bytes(obstore.get(self.store, name).bytes())

    def write(self, name: str, content: bytes) -> None:
        """Write one."""
        import obstore

        obstore.put(self.store, name, content)

    def remove(self, *names: str) -> None:
        """Remove some."""
        import obstore

        obstore.delete(self.store, list(names))


@dataclass(frozen=True)
class ObjectServer:
    """A server that runs.

    Attributes
    ----------
    endpoint : str
        Its URL.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        """What it takes to reach it, by fsspec's names."""
        client = {"endpoint_url": self.endpoint, "region_name": "eu-west-1"}
        # Files of one name come and go while tests run, so that no listing may be kept.
        return {"key": KEY, "secret": SECRET, "client_kwargs": client, "use_listings_cache": False}

    def _ask(self, path: str, method: str = "GET", data: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.endpoint + path, data, method=method)  # noqa: S310 - http
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - likewise
            body: bytes = answer.read()
        return body

    def bucket(self, name: str | None = None) -> str:
        """Make a bucket, and return its URL."""
        name = name or f"bucket-{uuid.uuid4().hex[:12]}"
        self._ask(f"/{name}", "PUT", b"")
        return f"s3://{name}"

    def filesystem(self) -> Any:
        """Return a file system of s3fs of its own; skip the test where that is not installed."""
        import pytest

        s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
        return s3fs.S3FileSystem(**self.options, skip_instance_cache=True)

    def folder(self, url: str) -> Objects:
        """Return the objects below a URL."""
        return Objects(store_at(self.endpoint, *url.removeprefix("s3://").split("/", 1)))

    def counts(self) -> dict[str, int]:
        """Return requests by method since this was last asked."""
        counts: dict[str, int] = json.loads(self._ask("/_counts"))
        return counts

    def slow_down(self, seconds: float) -> None:
        """Answer requests so much later, each, until there are other faults."""
        self._ask("/_faults", "POST", json.dumps({"seconds": seconds}).encode())

    @contextmanager
    def faults(self, *kinds: str, rate: float = 1.0, methods: str = "", seed: int = 0,
               limit: int = 10**9, skip: int = 0) -> Iterator[None]:  # fmt: skip
        """Fail: at most `limit` requests of `methods`, after the first `skip` of them."""
        told = {"kinds": kinds, "rate": rate, "methods": methods.split(), "seed": seed}
        self._ask("/_faults", "POST", json.dumps({**told, "limit": limit, "skip": skip}).encode())
        try:
            yield
        finally:
            self._ask("/_faults", "POST", b"{}")


def store_at(endpoint: str, bucket: str, prefix: str = "") -> Any:
    """Return a store of obstore at a server, as users open it."""
    from obstore.store import S3Store

    return S3Store(
        bucket, prefix=prefix, endpoint=endpoint, region="eu-west-1",
        access_key_id=KEY, secret_access_key=SECRET, client_options={"allow_http": True},
    )  # fmt: skip


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Run a server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield ObjectServer(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


App = Callable[[dict[str, Any], Any], Iterable[bytes]]


class _Faulty:
    """A server of one request at a time."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.lock = threading.Lock()
        self.counts: dict[str, int] = {}
        self.told: dict[str, Any] = {}
        self.random = random.Random(0)  # noqa: S311 - which requests fail

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        environ["wsgi.input"] = io.BytesIO(body)
        time.sleep(self.told.get("seconds", 0.0))
        with self.lock:
            return self._answered(environ, start, body)

    def _answered(self, environ: dict[str, Any], start: Any, body: bytes) -> Iterable[bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == "/_counts":
            answer, self.counts = json.dumps(self.counts).encode(), {}
            start("200 OK", [("Content-Length", str(len(answer)))])
            return [answer]
        if path == "/_faults":
            self.told = json.loads(body)
            self.random.seed(self.told.get("seed", 0))
            start("200 OK", [("Content-Length", "0")])
            return []
        self.counts[method] = self.counts.get(method, 0) + 1
        fault = self._fault(method)
        if fault in {"403", "409", "412", "503"}:
            return self._refused(start, fault)
        if fault == "cut":
            return self._cut(environ)
        if fault == "ignored":
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        held: list[Any] = []
        answer = b"".join(self.app(environ, lambda *args: held.extend(args)))
        return self._told(fault, environ, start, held, answer)

    def _told(
        self, fault: str | None, environ: dict[str, Any], start: Any, held: list[Any], answer: bytes
    ) -> Iterable[bytes]:
        """Answer a request that was done."""
        if fault == "503 done":
            return self._refused(start, "503")
        if fault == "cut done":
            return self._cut(environ)
        start(*held[:2])
        return self._halved(environ, answer) if fault == "half" else [answer]

    def _fault(self, method: str) -> str | None:
        told = self.told
        if not told.get("kinds") or (told["methods"] and method not in told["methods"]):
            return None
        if told["skip"] > 0:
            told["skip"] -= 1
            return None
        if told["limit"] <= 0 or self.random.random() >= told["rate"]:
            return None
        told["limit"] -= 1
        return str(self.random.choice(told["kinds"]))

    @staticmethod
    def _refused(start: Any, status: str) -> list[bytes]:
        start(f"{status} No", [("Content-Length", "0")])
        return []

    @staticmethod
    def _cut(environ: dict[str, Any]) -> list[bytes]:
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError

    @staticmethod
    def _halved(environ: dict[str, Any], answer: bytes) -> Iterator[bytes]:
        yield answer[: len(answer) // 2]
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


def _main() -> None:
    import logging

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    app: Any = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, _Faulty(app), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201 - the answer
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    _main()
