"""A disk that fails where a test says: killed at a call, without power, full, or with a rival.

The calls that change files are counted while the disk is armed. At the n-th one the process
"dies": that call and all later ones raise `Killed`, so that nothing cleans up, as after SIGKILL,
and thousands of deaths take seconds. A cut of power also takes what was not flushed: the
contents of files without an ``fsync``, and entries of folders and renames without one of the
folder.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from hypothesis import strategies as st

Kind = Literal["none", "killed", "data lost", "power cut", "full", "broken", "rival", "interrupted"]


class Killed(BaseException):
    """The process is dead from here on."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and at which of the calls that change files.

    Attributes
    ----------
    kind : str
        "killed" loses nothing that was written; "data lost" also the contents of files that were
        not flushed; "power cut" also entries of folders; "full" fails one call that needs space,
        "broken" one that removes something; "rival" calls another writer before the call.
        "interrupted" raises `KeyboardInterrupt` once in the main thread, before the call or after
        it, and all goes on.
    position : float
        The call, as a part of those of the change before. Where there are fewer calls, the change
        comes to its end first; then the power is cut.
    """

    kind: Kind = "none"
    position: float = 0.0


def faults(*kinds: Kind) -> st.SearchStrategy[Fault]:
    """Faults of some kinds; half of the time there is none."""
    places = st.integers(0, 40).map(lambda part: part / 32 if part < 32 else 99.0)
    return st.one_of(st.just(Fault()), st.builds(Fault, st.sampled_from(kinds), places))


NEED_SPACE = ("write", "mkdir", "fsync", "rename", "replace", "link")

REMOVE = ("unlink", "rmdir", "remove")


def is_after(fault: Fault) -> bool:
    """Whether an interrupt comes after its call: every other one does."""
    return bool(int(fault.position * 32) // 2 % 2)


@dataclass
class Failing:
    """Calls, of which one fails where it is told to.

    Attributes
    ----------
    calls : int
        Calls of the last change.
    finished : bool
        Whether it came to its end, or was refused, before the process died.
    """

    calls: int = 20
    finished: bool = False
    rival: Callable[[], None] | None = None
    _fault: Fault = field(default_factory=Fault)
    _at: int = -1
    _armed: bool = False
    _dead: bool = False
    _count: int = 0

    @contextmanager
    def armed(self, _: Path, fault: Fault, rival: Callable[[], None]) -> Iterator[None]:
        """Let the fault happen among the calls of the block."""
        self._fault, self.rival, self._count, self.finished = fault, rival, 0, False
        self._at = 1 + int(fault.position * self.calls) if fault.kind != "none" else -1
        self._armed = True
        try:
            yield
            self.finished = True
        finally:
            self._armed = self._dead = False
            self.calls = max(self._count, 4)

    def _let_rival(self) -> None:
        """Let another writer change what it likes, whose calls do not fail."""
        self._armed = False
        try:
            if self.rival is not None:
                self.rival()
        finally:
            self._armed = True


@dataclass
class Disk(Failing):
    """Patches the functions that change files, and fails one of them where it is told to."""

    _pressed: bool = False
    _root: Path = Path()
    _names: dict[int, set[str]] = field(default_factory=dict)
    _contents: dict[int, tuple[int, int]] = field(default_factory=dict)
    # From, to, and the contents of a file that was there before.
    _renamed: list[tuple[Path, Path, bytes | None]] = field(default_factory=list)

    @contextmanager
    def installed(self) -> Iterator[Disk]:
        """Patch the functions; without a fault they do as ever, but flush nothing for real."""
        names = ("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "link", "symlink")
        patches: dict[str, Any] = {name: self._counted(name, getattr(os, name)) for name in names}
        with (
            mock.patch.multiple(os, **patches),
            mock.patch.object(os, "fsync", self._fsync),
            mock.patch.object(io, "open", self._open),
        ):
            yield self

    @contextmanager
    def armed(self, root: Path, fault: Fault, rival: Callable[[], None]) -> Iterator[None]:
        """Let the fault happen among the calls of the block, which changes files below `root`.

        Raises
        ------
        Killed
            From the block, or after it, where the process is dead.
        """
        self._root, self._renamed, self._pressed = root, [], False
        loses = fault.kind in {"data lost", "power cut"}
        if loses:
            self._remember()
        try:
            with super().armed(root, fault, rival):
                try:
                    yield
                finally:
                    _wait_for_writers()
            if loses:
                raise Killed
        finally:
            if loses:
                self._lose()

    def _step(self, name: str) -> None:
        if not self._armed:
            return
        if self._dead:
            raise Killed
        self._count += 1
        kind = self._fault.kind
        if self._at < 0 or self._count < self._at:
            return
        # Every other rival comes between the last look at what is there and the rename.
        if kind == "rival" and int(self._fault.position * 32) % 2 and name != "rename":
            return
        if kind in {"killed", "data lost", "power cut"}:
            self._dead = True
            raise Killed
        if (kind == "full" and name in NEED_SPACE) or (kind == "broken" and name in REMOVE):
            self._at = -1
            number = errno.ENOSPC if kind == "full" else errno.EIO
            raise OSError(number, os.strerror(number))
        if kind == "interrupted" and threading.current_thread() is threading.main_thread():
            self._at, self._pressed = -1, is_after(self._fault)
            if not self._pressed:
                raise KeyboardInterrupt
        if kind == "rival":
            self._at = -1
            self._let_rival()

    def _after_step(self) -> None:
        if self._pressed and threading.current_thread() is threading.main_thread():
            self._pressed = False
            raise KeyboardInterrupt

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if not self._armed or (kwargs.get("dir_fd") is None and not self._has(args[0])):
                return function(*args, **kwargs)
            self._step(name)
            if name not in {"rename", "replace"}:
                result = function(*args, **kwargs)
            else:
                old, new = Path(args[0]), Path(args[1])
                replaced = new.read_bytes() if new.is_file() else None
                result = function(*args, **kwargs)
                self._renamed.append((old, new, replaced))
            self._after_step()
            return result

        return counted

    def _has(self, path: Any) -> bool:
        """Whether a path is on this disk; caches of compiled loops are not."""
        return Path(os.fspath(path)).resolve().is_relative_to(self._root.resolve())

    def _fsync(self, descriptor: int) -> None:
        self._step("fsync")
        if not self._armed:
            return
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = set(os.listdir(descriptor))
            self._renamed = [
                renamed
                for renamed in self._renamed
                if not _is_folder(renamed[1].parent, status.st_ino)
            ]
        else:
            self._contents[status.st_ino] = (status.st_mtime_ns, status.st_size)
        self._after_step()

    def _open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if self._armed and isinstance(file, (str, os.PathLike)) and set(mode) & set("wxa+"):
            if not self._has(file):
                return _OPEN(file, mode, *args, **kwargs)
            self._step("open")
            if "b" in mode:
                return _File(self._step, io.FileIO(os.fspath(file), mode.replace("b", "")))
        return _OPEN(file, mode, *args, **kwargs)

    # --- a cut of power ------------------------------------------------------------------

    def _remember(self) -> None:
        self._names, self._contents = {}, {}
        for folder, below, files in os.walk(self._root):
            self._names[Path(folder).stat().st_ino] = {*below, *files}
            for name in files:
                status = Path(folder, name).stat()
                self._contents[status.st_ino] = (status.st_mtime_ns, status.st_size)

    def _lose(self) -> None:  # noqa: C901 - renames, then entries, then contents
        if self._fault.kind == "power cut":
            for old, new, replaced in reversed(self._renamed):
                if new.exists() and not old.exists() and old.parent.exists():
                    new.rename(old)
                    if replaced is not None:
                        self._restore(new, replaced)
        for folder, below, files in os.walk(self._root):
            known = self._names.get(Path(folder).stat().st_ino, set())
            for name in [*below, *files] if self._fault.kind == "power cut" else ():
                if name not in known:
                    path = Path(folder, name)
                    shutil.rmtree(path) if name in below else path.unlink()
            below[:] = [name for name in below if Path(folder, name).exists()]
            for name in files:
                path = Path(folder, name)
                if path.exists():
                    status = path.stat()
                    if self._contents.get(status.st_ino) != (status.st_mtime_ns, status.st_size):
                        os.truncate(path, 0)

    def _restore(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        status = path.stat()
        self._contents[status.st_ino] = (status.st_mtime_ns, status.st_size)


@dataclass
class Connection(Failing):
    """Requests to an object store that fail, with the faults of a disk turned into those.

    "killed" comes before a request, and "power cut" after it; of "data lost" the answer is lost,
    once; "broken" cuts the connection once before a request is done, and "full" for good.
    "interrupted" raises `KeyboardInterrupt` once before or after a request.
    """

    @contextmanager
    def installed(self) -> Iterator[Connection]:
        """Patch the requests, and wait for nothing."""
        import obstore

        names = ("put", "get", "head", "delete", "list")
        patches: dict[str, Any] = {name: self._request(getattr(obstore, name)) for name in names}
        with (
            mock.patch.multiple(obstore, **patches),
            mock.patch("time.sleep", return_value=None),
        ):
            yield self

    def _request(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def request(*args: Any, **kwargs: Any) -> Any:
            if not self._armed:
                return function(*args, **kwargs)
            self._count += 1
            if self._dead:
                raise self._error()
            if self._at < 0 or self._count < self._at:
                return function(*args, **kwargs)
            return self._failed(lambda: function(*args, **kwargs))

        return request

    def _failed(self, send: Callable[[], Any]) -> Any:
        kind = self._fault.kind
        self._at = -1
        self._dead = kind in {"killed", "power cut", "full"}
        if kind in {"power cut", "data lost"} or (kind == "interrupted" and is_after(self._fault)):
            send()
        if kind == "rival":
            self._let_rival()
            return send()
        raise self._error()

    def _error(self) -> BaseException:
        from obstore.exceptions import GenericError

        if self._fault.kind == "interrupted":
            return KeyboardInterrupt()
        return Killed() if self._fault.kind in {"killed", "power cut"} else GenericError("cut")


def _wait_for_writers() -> None:
    """Let what Zarr writes beside the call that died come to its own end, while all calls fail."""
    from zarr.core.sync import sync

    async def others() -> None:
        if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks, timeout=30)

    sync(others())


def _is_folder(path: Path, number: int) -> bool:
    return path.exists() and path.stat().st_ino == number


class _File(io.BufferedWriter):
    """A file whose writes are steps: one that fails leaves half of its bytes."""

    def __init__(self, step: Callable[[str], None], raw: io.FileIO) -> None:
        super().__init__(raw)
        self._step = step

    def write(self, data: Any) -> int:
        try:
            self._step("write")
        except BaseException:
            super().write(bytes(data)[: len(data) // 2])
            self.flush()
            raise
        return super().write(data)


_OPEN = io.open
