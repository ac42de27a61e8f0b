"""Folders and files that are complete or absent, whatever interrupts their writing.

A folder is filled under a hidden name beside its target, flushed to the disk, and renamed. A rename
cannot replace a folder that holds something, so the old one is first renamed aside, and removed
only when the new one stands in its place. A process that is killed leaves hidden folders. After a
kill between the two renames both are there, complete.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daskcoreset.storage.locations import clear_errors

_LEFTOVER = re.compile(r"\..+\.daskcoreset-(?:partial|previous)(?:\.\w+)?")
_ELSEWHERE = "choose another path"

# Leaves room for the rest of a hidden name within the 255 bytes that file systems allow.
_NAME_LENGTH = 40


@contextmanager
def new_store(path: Path, may_replace: Callable[[], bool]) -> Iterator[Path]:
    """Yield a scratch folder that becomes `path` when the block ends without an error.

    Parameters
    ----------
    path : Path
        The target, without symbolic links in it. Its parents are made if missing.
    may_replace : callable
        Called immediately before the target is touched. Returns True if the target is to be
        replaced, False if nothing (or an empty folder) is there. Raises to refuse.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "result"
    >>> with new_store(target, target.exists) as scratch:
    ...     _ = (scratch / "data").write_text("all of it")
    >>> (target / "data").read_text()
    'all of it'
    """
    scratch = path.with_name(f".{_tag(path)}.{uuid.uuid4().hex}.daskcoreset-partial")
    previous = scratch.with_suffix(".daskcoreset-previous")
    with clear_errors(str(path), "written", _ELSEWHERE, OSError):
        make_folder(path.parent)
        scratch.mkdir()
        try:
            yield scratch
            _flush(scratch)
            if may_replace():
                path.rename(previous)
            elif path.is_dir():  # Windows renames onto nothing only
                path.rmdir()
            scratch.rename(path)
            flush_entry(path.parent)
        finally:
            if previous.is_dir() and not path.exists():
                previous.rename(path)
            # Links in them are removed, and not followed.
            for folder in (previous, scratch):
                with suppress(OSError):  # of a descriptor that an interrupt left closed
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a scratch file that takes the place of `path` when the block ends without an error.

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
    scratch = target.with_name(f".{target.stem}.{uuid.uuid4().hex}.daskcoreset-partial")
    scratch = scratch.with_name(scratch.name + target.suffix)
    with clear_errors(str(path), "written", _ELSEWHERE, OSError):
        try:
            yield scratch
            _fsync(scratch, os.O_RDWR)
            scratch.replace(target)
            flush_entry(target.parent)
        finally:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Return whether a path has a hidden name of `new_store` or `new_file`."""
    return _LEFTOVER.fullmatch(path.name) is not None


def find_previous(path: Path) -> Path | None:
    """Return the folder that was at `path` before a replacement was killed between its renames."""
    pattern = f".{glob.escape(_tag(path))}.*.daskcoreset-previous"
    names = glob.glob(pattern, root_dir=path.parent)  # noqa: PTH207 - of no error
    hidden = [path.with_name(name) for name in names]
    # Without the one that was to take its place, it has been replaced.
    found = [one for one in hidden if one.with_suffix(".daskcoreset-partial").is_dir()]
    return min(found, default=None)


def _tag(path: Path) -> str:
    """Return the form of a name in hidden names: itself, or its digest if it is long."""
    if len(path.name) <= _NAME_LENGTH:
        return path.name
    return hashlib.sha256(path.name.encode(errors="surrogatepass")).hexdigest()[:_NAME_LENGTH]


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each flushed: what is put into it must not go with it."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_entry(folder.parent)


def _flush(root: Path) -> None:
    """Flush a folder to the disk, files first: a rename must not outlive its data."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            # Windows flushes only what is open for writing.
            _fsync(Path(folder, name), os.O_RDWR)
        flush_entry(Path(folder))


def flush_entry(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    with suppress(OSError):  # Windows and some network file systems flush no folders
        _fsync(folder, os.O_RDONLY)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
