"""Real processes of a Dask cluster, and what befalls them.

A `RealCluster` starts ``dask scheduler`` and ``dask worker`` as a user does: each a process of its
own in a folder of its own, on a free port that the system chooses. They are ended however the
body ends; should this process be killed, they end of themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import importlib
import ipaddress
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]

# Seconds for anything to happen that will happen: machines may be busy.
PATIENCE = 120.0

# Processes that nobody waits for any more end after so many seconds.
_ORPHAN = "300"

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    # Their ends are what is tested; nothing is told by the minutes that some of them take.
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s",
    "DASK_DISTRIBUTED__WORKER__LIFETIME__RESTART": "False",
}


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until a condition holds; return what it gave."""
    end = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {patience:g} s")
        time.sleep(0.01)
    return value


@dataclass(frozen=True)
class Certificates:
    """Files of TLS: an authority and a certificate that it signed, for 127.0.0.1."""

    ca: Path
    cert: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Make them, valid for a day."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID

        def named(name: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

        def signed(subject: str, public: Any, *, authority: bool) -> x509.Certificate:
            start = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
            builder = (
                x509.CertificateBuilder()
                .subject_name(named(subject))
                .issuer_name(named("authority"))
                .public_key(public)
                .serial_number(x509.random_serial_number())
                .not_valid_before(start)
                .not_valid_after(start + dt.timedelta(days=1))
                .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            )
            if not authority:
                here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
                builder = builder.add_extension(x509.SubjectAlternativeName([here]), critical=False)
            return builder.sign(signer, hashes.SHA256())

        signer, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        folder.mkdir(parents=True, exist_ok=True)
        files = cls(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
        pem = serialization.Encoding.PEM
        files.ca.write_bytes(
            signed("authority", signer.public_key(), authority=True).public_bytes(pem)
        )
        files.cert.write_bytes(signed("node", key.public_key(), authority=False).public_bytes(pem))
        files.key.write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return files

    @property
    def options(self) -> list[str]:
        """Options of the command line."""
        return [
            "--tls-ca-file", str(self.ca), "--tls-cert", str(self.cert), "--tls-key", str(self.key),
        ]  # fmt: skip

    @property
    def security(self) -> Any:
        """What a client needs."""
        from distributed.security import Security

        return Security(
            tls_ca_file=str(self.ca),
            tls_client_cert=str(self.cert),
            tls_client_key=str(self.key),
            require_encryption=True,
        )


class Proxy:
    """A TCP proxy on a free port that can stop forwarding, as a broken network does.

    Nothing is closed then: who waits for an answer waits, and what was sent arrives when the
    proxy forwards again.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition("//")[2].rpartition(":")
        self._target = host, int(port)
        self._loop = asyncio.new_event_loop()
        self._forwards: asyncio.Event = asyncio.Event()
        self._ports: list[int] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        self.address = f"{target.partition('//')[0]}//127.0.0.1:{self._ports[0]}"

    def cut(self) -> None:
        """Forward nothing, in either direction."""
        self._loop.call_soon_threadsafe(self._forwards.clear)

    def mend(self) -> None:
        """Forward what was held back, and go on."""
        self._loop.call_soon_threadsafe(self._forwards.set)

    def close(self) -> None:
        """Close all connections."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._forwards.set()
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self._ports.append(server.sockets[0].getsockname()[1])
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._forwards.wait()
            there, back = await asyncio.open_connection(*self._target)
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._forwards.wait()
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@dataclass(eq=False)
class Node:
    """A process of the cluster, in a session of its own."""

    name: str
    process: subprocess.Popen[bytes]
    folder: Path

    def send(self, number: int) -> None:
        """Send a signal to the process and those that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it at once, with all that it started."""
        if self.process.returncode is None:  # else its number may be another's by now
            self.send(signal.SIGKILL)
            self.process.wait(PATIENCE)

    @property
    def log(self) -> str:
        """What it printed."""
        return (self.folder / "log").read_text(errors="replace")


@dataclass(eq=False)
class RealCluster:
    """Scheduler and workers as processes; use it in a ``with`` statement.

    Attributes
    ----------
    folder : Path
        Where the folders of the processes go.
    tls : Certificates or None
    settings : mapping
        Environment of the processes, such as settings of Dask.
    """

    folder: Path
    tls: Certificates | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    address: str = ""
    _clients: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._clients.close()
        finally:
            for node in self.nodes.values():
                node.kill()  # stopped processes die of it as well

    def scheduler(self, address: str | None = None) -> Node:
        """Start a scheduler, at any port or at the address of one before it."""
        file = self.folder / f"scheduler-{len(self.nodes)}.json"
        port = "0" if address is None else address.rpartition(":")[2]
        protocol = ["--protocol", "tls", *self.tls.options] if self.tls else []
        node = self._start(
            "scheduler",
            ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard",
             "--scheduler-file", str(file), "--idle-timeout", _ORPHAN, *protocol],
        )  # fmt: skip
        until(lambda: file.is_file() and file.read_text().endswith("}"), "a scheduler starts")
        self.address = json.loads(file.read_text())["address"]
        return node

    def worker(
        self,
        name: str,
        *,
        nanny: bool = False,
        memory: str = "1GiB",
        contact: str | None = None,
        settings: Mapping[str, str] | None = None,
        path: Sequence[Path] = (),
    ) -> Node:
        """Start a worker of one thread.

        Parameters
        ----------
        contact : str, optional
            The scheduler's address as the worker sees it.
        path : sequence of Path, optional
            Folders that its Python looks into before all others.
        """
        return self._start(
            name,
            ["worker", contact or self.address, "--name", name, "--nthreads", "1",
             "--host", "127.0.0.1", "--memory-limit", memory, "--no-dashboard",
             "--nanny" if nanny else "--no-nanny", "--death-timeout", _ORPHAN,
             "--local-directory", str(self.folder / name / "spill"),
             *(self.tls.options if self.tls else [])],
            settings or {},
            path,
        )  # fmt: skip

    def joined(self, client: Any, **options: Any) -> Node:
        """Start a worker under a name of its own, and wait until it has joined."""
        count = len(client.nthreads()) + 1
        node = self.worker(f"worker-{len(self.nodes)}", **options)
        client.wait_for_workers(count, timeout=PATIENCE)
        return node

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Yield a client that is the current one; the workers that were started are ended."""
        client = self.client()
        try:
            with client.as_current():
                yield client
        finally:
            for name, node in self.nodes.items():
                if name != "scheduler":
                    node.kill()
            until(lambda: not client.nthreads(), "the workers are gone")
            client.close()

    def client(self, n_workers: int = 0, address: str | None = None) -> Any:
        """Connect, wait for workers, and be closed with the cluster."""
        from distributed import Client

        client = self._clients.enter_context(
            Client(
                address or self.address,
                security=self.tls.security if self.tls else None,
                timeout=PATIENCE,
                set_as_default=False,
            )
        )
        # It imports the package when it is first asked, which may take seconds.
        client.run_on_scheduler(_import)
        if n_workers:
            client.wait_for_workers(n_workers, timeout=PATIENCE)
        return client

    def _start(
        self,
        name: str,
        words: list[str],
        settings: Mapping[str, str] | None = None,
        path: Sequence[Path] = (),
    ) -> Node:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = os.pathsep.join(filter(None, [*map(str, path), str(ROOT), *before]))
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                cwd=folder,  # of its own: none sees what lies beside another
                env={
                    **os.environ,
                    **SETTINGS,
                    "PYTHONPATH": folders,
                    **self.settings,
                    **(settings or {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        node = self.nodes[name] = Node(name, process, folder)
        return node


@contextmanager
def real_cluster(
    folder: Path, n_workers: int = 2, *, nanny: bool = False, memory: str = "1GiB", **options: Any
) -> Iterator[RealCluster]:
    """Start a scheduler and workers, named "worker-0" and so on."""
    with RealCluster(folder, **options) as cluster:
        cluster.scheduler()
        for number in range(n_workers):
            cluster.worker(f"worker-{number}", nanny=nanny, memory=memory)
        yield cluster


# --- rows whose reads wait ---------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    """A read that waits: it says who has come, and lets nobody through until it is opened.

    Attributes
    ----------
    folder : Path
        Seen by all processes. Each that waits has a file there, named by its number.
    """

    folder: Path

    def close(self, *extra: str) -> None:
        """Let reads wait from now on, those excepted that wait already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.iterdir():
            file.unlink()
        for name in extra:
            (self.folder / name).touch()
        (self.folder / f"shut-{time.monotonic_ns()}").touch()

    def open(self) -> None:
        """Let all go on."""
        for file in self.folder.glob("shut-*"):
            file.unlink()

    def waiting(self) -> int | None:
        """Return the number of a process that waits, if there is one."""
        return next((int(file.name) for file in self.folder.iterdir() if file.name.isdigit()), None)

    def wait(self) -> None:
        """Wait until the gate is open; called where a block is read."""
        for shut in self.folder.glob("shut-*"):
            (self.folder / str(os.getpid())).touch()
            until(partial(_is_gone, shut), "the gate opens")


def _import() -> None:
    importlib.import_module("daskcoreset.estimators")


def _is_gone(file: Path) -> bool:
    return not file.exists()


@dataclass(frozen=True, eq=False)
class GatedRows:
    """Rows of a Zarr array on disk, where those of the second half pass a gate.

    Attributes
    ----------
    path : Path
    gate : Gate
    greed : int
        Bytes that a read of the second half takes before it gives anything back, if a file
        called "greed" lies in the gate's folder; "greed-once" is removed by the first one.
    """

    path: Path
    gate: Gate
    greed: int = 0

    def _array(self) -> Any:
        import zarr

        return zarr.open_array(self.path, mode="r")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array().shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return self._array().dtype

    def __getitem__(self, index: Any) -> Any:
        array = self._array()
        first = index[0] if isinstance(index, tuple) else index
        if first.start is not None and first.start >= array.shape[0] // 2:
            self._take_memory()
            self.gate.wait()
        return array[index]

    def __dask_tokenize__(self) -> Any:
        return str(self.path)

    def _take_memory(self) -> None:
        once = self.gate.folder / "greed-once"
        if (self.gate.folder / "greed").exists() or once.exists():
            once.unlink(missing_ok=True)
            taken = bytearray(self.greed)
            taken[::4096] = b"x" * len(taken[::4096])  # pages that are written to are there
            time.sleep(PATIENCE)  # the nanny looks ten times a second
            raise AssertionError(f"nobody ended a worker with {len(taken)} bytes too many")
