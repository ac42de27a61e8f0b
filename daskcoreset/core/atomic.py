"""Directories that are complete or absent, whatever interrupts their writing.

A directory is filled under a hidden name beside its target, flushed to the disk, and then
renamed. A rename cannot replace a directory that holds something, so the old one is first
renamed aside, and removed only when the new one stands in its place. An interruption
between those two renames leaves both, complete, under their hidden names.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daskcoreset.core.errors import StoreError

_LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.daskcoreset-(?P<role>partial|previous)")
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
        A sibling of `path` that does not exist yet. It is removed if the block raises; only
        a killed process leaves it behind.

    Raises
    ------
    OSError
        The file system refused. What stood at `path` is still there.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "result"
    >>> with new_directory(target, may_replace=target.exists) as scratch:
    ...     scratch.mkdir()
    ...     _ = (scratch / "data").write_text("all of it")
    >>> (target / "data").read_text()
    'all of it'
    """
    _make_folder(path.parent)
    scratch = _hidden(path, "partial")
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
        shutil.rmtree(scratch, ignore_errors=True)
        raise


@contextmanager
def new_store(path: Path, may_replace: Callable[[], bool]) -> Iterator[Path]:
    """Do as `new_directory`, and turn errors of the file system into a `StoreError`."""
    try:
        with new_directory(path, may_replace=may_replace) as scratch:
            yield scratch
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"could not write {path}: {error}; nothing there was changed") from error


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
    if not path.parent.is_dir():
        return None
    for entry in sorted(path.parent.iterdir()):
        match = _LEFTOVER.fullmatch(entry.name)
        if match and match["role"] == "previous" and match["name"] == path.name[:_NAME_LENGTH]:
            return entry
    return None


def _hidden(path: Path, role: str) -> Path:
    return path.with_name(f".{path.name[:_NAME_LENGTH]}.{uuid.uuid4().hex}.daskcoreset-{role}")


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, each flushed: what is put into it must not go with it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_entry(folder.parent)


def _exchange(scratch: Path, path: Path) -> None:
    previous = _hidden(path, "previous")
    path.rename(previous)
    try:
        scratch.rename(path)
    except BaseException:
        previous.rename(path)
        raise
    _flush_entry(path.parent)
    # The new directory is in place: a file of the old one that stays behind is no failure.
    shutil.rmtree(previous, ignore_errors=True)


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
