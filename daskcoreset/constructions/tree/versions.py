"""Versions of something in a folder: each is written once, and the highest one counts.

A version is a directory whose name is its number. It is filled under a hidden name, flushed
and renamed, so it is complete or absent; and a rename fails where another process made the
same number first, so of two writers that began with the same version one is told that it lost.
Nothing is ever replaced: a process that is killed leaves the versions as they were, and a
hidden directory that the next commit removes.
"""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from daskcoreset.core.atomic import is_leftover, new_directory
from daskcoreset.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["commit", "folder_of", "newest", "sweep", "versions_in"]

_NAME = re.compile(r"\d{12}")


def folder_of(root: Path, version: int) -> Path:
    """Return the directory of a version.

    Examples
    --------
    >>> folder_of(Path("states"), 7).name
    '000000000007'
    """
    return root / f"{version:012d}"


def versions_in(root: Path) -> list[int]:
    """Return the versions that are there, in order.

    Examples
    --------
    >>> versions_in(Path("nowhere"))
    []
    """
    return sorted(int(path.name) for path in _entries(root) if _NAME.fullmatch(path.name))


def newest(root: Path) -> int:
    """Return the highest version; 0 where there is none.

    Examples
    --------
    >>> newest(Path("nowhere"))
    0
    """
    return max(versions_in(root), default=0)


def commit(root: Path, version: int, fill: Callable[[Path], None]) -> None:
    """Write a version, unless anybody has written it or a later one.

    Parameters
    ----------
    root : Path
        The folder; made if missing.
    version : int
        One more than the version that the new one is based on.
    fill : callable
        Writes into the path that it is given, which it must make.

    Raises
    ------
    StoreError
        Another process was first, or the disk refused. What was there is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> def fill(path):
    ...     path.mkdir()
    ...     _ = (path / "data").write_text("all of it")
    >>> commit(root, 1, fill)
    >>> newest(root)
    1
    """
    target = folder_of(root, version)
    if newest(root) >= version:  # told before the work of writing
        raise _lost(root, version)
    with ExitStack() as turn:

        def nothing_there() -> bool:
            turn.enter_context(_locked(root))
            if newest(root) >= version:
                raise _lost(root, version)
            return False

        try:
            with new_directory(target, may_replace=nothing_there) as scratch:
                fill(scratch)
        except OSError as error:
            # Whoever is first also clears away what the others were writing.
            if newest(root) >= version:
                raise _lost(root, version) from error
            if isinstance(error, StoreError):
                raise
            msg = f"could not write {target}: {error}; nothing there was changed"
            raise StoreError(msg) from error


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Let one process at a time look which version is the highest and add the next.

    Without it a writer that was stopped between the two for so long that its number was
    made and swept away again would find the number free. The system frees the lock of a process
    that dies. Where there are no such locks, the rename alone decides.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:  # pragma: no cover
        yield
        return
    with (root / ".lock").open("w") as file:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lost(root: Path, version: int) -> StoreError:
    return StoreError(
        f"{root.parent}: another writer has changed it since it was opened (version "
        f"{newest(root)} is there, this change is based on {version - 1}); nothing was written; "
        f"open it again and repeat the change"
    )


def sweep(root: Path, keep: Callable[[int, str], bool]) -> None:
    """Remove what no longer counts: members of versions, and what killed processes left.

    Parameters
    ----------
    root : Path
    keep : callable
        ``keep(version, name)`` says whether a member of a version is still needed. Asked of
        versions up to the highest one that was there when the sweep began.
    """
    last = newest(root)
    for version in versions_in(root):
        if version > last:
            continue
        folder = folder_of(root, version)
        gone = [path for path in _entries(folder) if not keep(version, path.name)]
        for path in gone:
            _remove(path)
        if gone and version < last:
            with suppress(OSError):  # where anything is left, which is meant
                folder.rmdir()
    for path in _entries(root):
        # A change that would have made a version which is there can no longer succeed.
        number = path.name[1:13]
        if is_leftover(path) and _NAME.fullmatch(number) and int(number) <= last:
            shutil.rmtree(path, ignore_errors=True)


def _entries(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.iterdir())) if folder.is_dir() else iter(())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
