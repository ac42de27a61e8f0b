"""Directories that are complete or absent, whatever interrupts their writing.

A directory is filled under a hidden name beside its target, flushed to the disk, and then
renamed. A rename cannot replace a directory that holds something, so the old one is first
renamed aside, and removed only when the new one stands in its place. An interruption
between those two renames leaves both, complete, under their hidden names.

What killed writers leave is removed by the next writer of the same path. A writer holds a lock on
the directory that it fills, which the system frees when its process dies: what is locked has a
writer that lives. Where a system or a disk has no such locks, leftovers stay.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from operator import itemgetter
from pathlib import Path

from daskcoreset.core.errors import CoresetError, StoreError

_LEFTOVER = re.compile(
    r"\.(?P<name>.+)\.(?P<number>[0-9a-f]{32})\.daskcoreset-(?P<role>partial|previous)"
)
# Seconds after which a directory of another machine, in which nothing was made, has no writer.
_ABANDONED = 24 * 3600
# Leaves room for the rest of a hidden name within the 255 bytes that file systems allow.
_NAME_LENGTH = 40


@contextmanager
def new_directory(path: Path, *, may_replace: Callable[[], bool]) -> Iterator[Path]:
    """Yield a scratch directory that becomes `path` when the block ends without an error.

    Parameters
    ----------
    path : Path
        The target, without symbolic links in it. Its parents are made if missing.
    may_replace : callable
        Called immediately before the target is touched. Returns True if the target is to
        be replaced, False if nothing (or an empty directory) is there; raises to refuse.

    Yields
    ------
    Path
        A sibling of `path`, which is empty. It is removed if the block raises; only a killed
        process leaves it behind, for the next one to remove.

    Raises
    ------
    OSError
        The file system refused. What stood at `path` is still there.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "result"
    >>> with new_directory(target, may_replace=target.exists) as scratch:
    ...     _ = (scratch / "data").write_text("all of it")
    >>> (target / "data").read_text()
    'all of it'
    """
    _make_folder(path.parent)
    _sweep(path)
    scratch, lock = _claim(path)
    try:
        yield scratch
        _flush(scratch)
        if may_replace():
            _exchange(scratch, path)
        else:
            # Windows renames onto nothing only; elsewhere this merely repeats the check.
            if path.is_dir():
                path.rmdir()
            scratch.rename(path)
            _flush_entry(path.parent)
    except BaseException:
        _take_back(scratch, path)
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    with suppress(OSError):  # it is in its place, and the next writer removes what is left
        _sweep(path)


@contextmanager
def new_store(path: Path, may_replace: Callable[[], bool]) -> Iterator[Path]:
    """Do as `new_directory`, and turn errors of the file system into a `StoreError`."""
    try:
        with new_directory(path, may_replace=may_replace) as scratch:
            yield scratch
    except StoreError:
        raise
    except OSError as error:
        if (interrupt := _interrupt_behind(error)) is not None:
            raise interrupt from None
        raise StoreError(
            f"could not write {path}: {error.strerror or error}; nothing there was changed; choose "
            f"another path"
        ) from error


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt that an error came up after, if any.

    `shutil.rmtree` closes a descriptor twice where it is interrupted in between.
    """
    behind = error.__context__
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__context__
    return behind


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a scratch file that takes the place of `path` when the block ends without an error.

    Raises
    ------
    StoreError
        The file system refused. What stood at `path` is still there.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> with new_file(target) as scratch:
    ...     _ = scratch.write_text("all of it")
    >>> [path.name for path in target.parent.iterdir()]
    ['rows.csv']
    """
    target = Path(os.path.realpath(path))
    scratch = target.with_name(f".{target.stem}.{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        yield scratch
        scratch.replace(target)
    except CoresetError:  # of what the body reads, though some are errors of the system as well
        raise
    except OSError as error:
        reason = str(error.strerror or error).replace(str(scratch), str(path))
        raise StoreError(f"{path} cannot be written: {reason}; choose another path.") from error
    finally:
        with suppress(NotADirectoryError):  # a file is in place of the folder
            scratch.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Return whether a path has one of the hidden names of `new_directory`.

    Examples
    --------
    >>> is_leftover(Path("result"))
    False
    """
    return _LEFTOVER.fullmatch(path.name) is not None


def find_previous(path: Path) -> Path | None:
    """Return the directory that was at `path` before a replacement was killed between its renames.

    Returns
    -------
    Path or None
        The hidden directory to rename back, or None, which is the usual case.

    Examples
    --------
    >>> find_previous(Path("result")) is None
    True
    """
    leftovers = _leftovers_of(path)
    # Without the one that was to take its place, it has been replaced.
    previous = [
        entry
        for entry, role in leftovers.items()
        if role == "previous" and _with_role(entry, "partial") in leftovers
    ]
    return min(previous, default=None)


def _leftovers_of(path: Path) -> dict[Path, str]:
    """Return the hidden directories of a path, each with its role."""
    found = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path.parent) as entries:
        for entry in entries:
            match = _LEFTOVER.fullmatch(entry.name)
            if match and match["name"] == _tag(path) and entry.is_dir(follow_symlinks=False):
                found[path.with_name(entry.name)] = match["role"]
    return found


def _with_role(hidden: Path, role: str) -> Path:
    return hidden.with_suffix(f".daskcoreset-{role}")


def _tag(path: Path) -> str:
    """Return what stands for a name in hidden names: itself, or its digest where it is long."""
    if len(path.name) <= _NAME_LENGTH:
        return path.name
    return hashlib.sha256(path.name.encode(errors="surrogatepass")).hexdigest()[:_NAME_LENGTH]


def _hidden(path: Path) -> Path:
    number = _machine() + uuid.uuid4().hex[len(_machine()) :]
    return path.with_name(f".{_tag(path)}.{number}.daskcoreset-partial")


@cache
def _machine() -> str:
    """Return digits that stand for this machine."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _claim(path: Path) -> tuple[Path, int | None]:
    """Make a scratch directory, and hold a lock on it that tells others that its writer lives."""
    while True:
        scratch = _hidden(path)
        scratch.mkdir()
        try:
            lock = _lock(scratch)
            if lock is None or (
                scratch.exists() and os.path.samestat(os.fstat(lock), scratch.stat())
            ):
                return scratch, lock
            os.close(lock)
        except (BlockingIOError, FileNotFoundError):  # swept before it was locked
            continue


def _lock(folder: Path) -> int | None:
    """Lock a directory, and return its descriptor; None where there are no such locks.

    Raises
    ------
    BlockingIOError
        Another process holds the lock.
    FileNotFoundError
        There is no directory.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # of some network file systems
        os.close(descriptor)
        return None
    return descriptor


def _sweep(path: Path) -> None:
    """Remove what killed writers of a path left, and what they had replaced."""
    # Those that were to replace something first: what is without one of these has been replaced.
    for leftover, role in sorted(_leftovers_of(path).items(), key=itemgetter(1)):
        if _with_role(leftover, "previous").is_dir() and not path.is_dir():
            continue  # nothing is removed that no other directory stands for
        if role == "previous":
            shutil.rmtree(leftover, ignore_errors=True)
            continue
        with suppress(OSError):  # its writer lives, or another process removes it
            lock = _lock(leftover)
            if lock is not None:
                if _is_abandoned(leftover):
                    shutil.rmtree(leftover, ignore_errors=True)
                os.close(lock)


def _is_abandoned(leftover: Path) -> bool:
    """Whether a directory that nobody has locked has no writer on another machine."""
    # Locks of some network file systems do not reach other machines.
    match = _LEFTOVER.fullmatch(leftover.name)
    here = match is not None and match["number"].startswith(_machine())
    return here or time.time() - leftover.stat().st_mtime > _ABANDONED


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, each flushed: what is put into it must not go with it."""
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is no folder")
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_entry(folder.parent)


def _exchange(scratch: Path, path: Path) -> None:
    previous = _with_role(scratch, "previous")
    path.rename(previous)
    scratch.rename(path)
    _flush_entry(path.parent)
    # The new directory is in place: a file of the old one that stays behind is no failure.
    shutil.rmtree(previous, ignore_errors=True)


def _take_back(scratch: Path, path: Path) -> None:
    """Put what was renamed aside back, where what was to take its place has not."""
    previous = _with_role(scratch, "previous")
    if previous.is_dir() and not path.exists():
        previous.rename(path)


def _flush(root: Path) -> None:
    """Flush a directory to the disk, files first: a rename must not outlive its data."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            # Windows flushes only what is open for writing.
            _fsync(Path(folder, name), os.O_RDWR)
        _flush_entry(Path(folder))


def _flush_entry(folder: Path) -> None:
    # Windows and some network file systems flush no directories; their renames are durable
    # or nothing can make them so.
    with suppress(OSError):
        _fsync(folder, os.O_RDONLY)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
