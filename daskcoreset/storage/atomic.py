"""Folders and files that are complete or absent, whatever interrupts their writing.

A folder is filled under a hidden name beside its target, flushed to the disk, and renamed. A rename
cannot replace a folder that holds something, so the old one is first renamed aside, and removed
only when the new one stands in its place. A process that is killed leaves hidden folders. After a
kill between the two renames both are there, complete, and `standing` is the old one.
"""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from daskcoreset.errors import StoreError
from daskcoreset.storage.locations import RefusedError, clear_errors

# The ends of the hidden names of what is being written, and of what it replaces.
_PARTIAL, _BEFORE = ".daskcoreset-partial", ".daskcoreset-previous"

# The files that killed writers leave.
LEFTOVERS = f".*{_PARTIAL}.*"

_ELSEWHERE = "choose another path"


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
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
    before = scratch.with_suffix(_BEFORE)
    with clear_errors(str(path), "written", _ELSEWHERE, OSError, kind=RefusedError):
        make_folder(path.parent)
        scratch.mkdir()
        try:
            yield scratch
            _flush(scratch)
            if may_replace():
                path.rename(before)
            elif path.is_dir():  # Windows renames onto nothing only
                path.rmdir()
            scratch.rename(path)
            flush_entry(path.parent)
        finally:
            recover(path)
            # Links in them are removed, and not followed.
            for folder in (before, scratch):
                with suppress(OSError):  # of a descriptor that an interrupt left closed
                    shutil.rmtree(folder, ignore_errors=True)


def standing(path: Path) -> Path:
    """Return a folder, or the one before, if a replacement was killed between its renames."""
    if not path.exists():
        for before in path.parent.glob(f".{glob.escape(path.name)}.*{_BEFORE}"):
            # Without the one that was to take its place, it has been replaced.
            if before.with_suffix(_PARTIAL).is_dir():
                return before
    return path


def recover(path: Path) -> None:
    """Put the folder before back in place, if a replacement ended between its renames."""
    if (there := standing(path)) != path:
        there.rename(path)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths in a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


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
    scratch = target.with_name(f".{target.stem}.{uuid.uuid4().hex}{_PARTIAL}{target.suffix}")
    with clear_errors(str(path), "written", _ELSEWHERE, OSError, kind=RefusedError):
        try:
            yield scratch
            _fsync(scratch, os.O_RDWR)
            scratch.replace(target)
            flush_entry(target.parent)
        finally:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Check, before the work, that a file or folder can be made at a path."""
    above = next(one for one in (path, *path.parents) if one.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise StoreError(f"nothing can be written in {above}", remedy=_ELSEWHERE)


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
