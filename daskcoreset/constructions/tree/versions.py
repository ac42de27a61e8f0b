"""Versions of streams and stored trees on a local disk: added whole, in a chain, and swept.

A store is a folder with the settings, the record of its newest version, and a folder of versions.
What is recorded, and how a chain is checked, says `chain`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from daskcoreset.constructions.tree.chain import Head, check_newest, overtaken_error
from daskcoreset.constructions.tree.persistence import Origin
from daskcoreset.core.atomic import is_leftover, new_store
from daskcoreset.core.contents import refuse_inconsistent
from daskcoreset.core.errors import StoreError

T = TypeVar("T")

_NAME = re.compile(r"\d{12}")

_HEAD = "head.json"
_LOCK = ".lock"

# Times that the newest version is looked for while others go on writing.
_N_LOOKS = 100


def folder_of(root: Path, version: int) -> Path:
    """Return the directory of a version.

    Examples
    --------
    >>> folder_of(Path("states"), 7).name
    '000000000007'
    """
    return root / f"{version:012d}"


def newest(root: Path) -> int:
    """Return the highest version; 0 where there is none.

    Raises
    ------
    StoreError
        If the folder, or what has the name of a version, is no folder.

    Examples
    --------
    >>> newest(Path("nowhere"))
    0
    """
    return max(_versions_in(root), default=0)


def others(folder: Path, known: set[str]) -> set[str]:
    """Return names in a folder of a store that neither it nor a writer of it has given."""
    names = set(_names_in(folder))
    return {
        name
        for name in names - known - {_HEAD, _LOCK}
        if not _NAME.fullmatch(name) and not is_leftover(folder / name)
    }


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder, in order; none if it is not there."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(
            f"{folder} does not read ({error.strerror}); restore the store from a copy"
        ) from error


def _versions_in(root: Path) -> list[int]:
    names = [name for name in _names_in(root) if _NAME.fullmatch(name)]
    for name in names:
        if (root / name).is_file():
            raise StoreError(f"{root / name} is no folder; restore the store from a copy")
    return [int(name) for name in names]


def read_head(root: Path) -> Head | None:
    """Return the record of the newest version, which lies beside the versions; None for none.

    Raises
    ------
    StoreError
        It is damaged.
    """
    path = root.parent / _HEAD
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} does not read ({error}); restore it from a copy") from error
    with refuse_inconsistent(f"{path}: damaged"):
        return Head.from_json(json.loads(data))


def write_head(root: Path, head: Head) -> None:
    """Record the newest version, in place of the one before it."""
    path = root.parent / _HEAD
    for name in _names_in(root.parent):  # of writers that were killed
        if name.startswith(f".{_HEAD}.") and is_leftover(path.with_name(name)):
            _remove(path.with_name(name))
    scratch = path.with_name(f".{_HEAD}.{uuid4().hex}.daskcoreset-partial")
    try:
        with scratch.open("x", encoding="utf-8") as file:
            json.dump(head.to_json(), file)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def read_newest(
    root: Path, origin: Origin, read: Callable[[int], tuple[T, Mapping[str, str] | None, str]]
) -> tuple[T | None, Head]:
    """Read the newest version, and check that it is the newest one that was written.

    Parameters
    ----------
    root : Path
    origin : Origin
    read : callable
        ``read(version)`` returns what is wanted of a version, its link and its digest.

    Returns
    -------
    value : object or None
        What `read` returned; None before the first version.
    head : Head

    Raises
    ------
    StoreError
        A version is damaged, missing or of another store.
    """
    for look in range(_N_LOOKS):
        # In this order: versions may be added between the two, and the record is never ahead.
        recorded, version = read_head(root), newest(root)
        try:
            value, link, digest = read(version) if version else (None, None, origin.digest)
            found = Head(origin.digest, version, digest)
            check_newest(str(root.parent), found, link, recorded, chained=origin.chained)
        except StoreError:
            # Two changes may have been made in the meantime, and this version swept away.
            if look == _N_LOOKS - 1 or (read_head(root), newest(root)) == (recorded, version):
                raise
        else:
            return value, found
    raise AssertionError("not reached")  # pragma: no cover


def check_current(root: Path, head: Head) -> None:
    """Check that a version is the newest one.

    Raises
    ------
    StoreError
        Another process has made a later one, or replaced the store.
    """
    # In the order of `read_newest`.
    recorded, version = read_head(root), newest(root)
    if version != head.version or not head.may_follow(recorded):
        raise overtaken_error(str(root.parent), version, head)


def commit(root: Path, head: Head, fill: Callable[[Path], str]) -> Head:
    """Write a version after another one; an error where that is not the newest.

    Parameters
    ----------
    root : Path
        The folder; made if missing.
    head : Head
        The version that the new one is based on.
    fill : callable
        Writes into the directory that it is given, and returns the digest of the version.

    Returns
    -------
    Head
        The new version.

    Raises
    ------
    StoreError
        Another process was first, or the disk refused. What was there is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp()) / "versions"
    >>> def fill(path):
    ...     path.mkdir(exist_ok=True)
    ...     _ = (path / "data").write_text("all of it")
    ...     return "sha256:1"
    >>> head = commit(root, Head.before_first("sha256:0"), fill)
    >>> newest(root), read_head(root) == head
    (1, True)
    """
    check_current(root, head)  # before the work of writing, and once more after it
    with ExitStack() as turn:

        def nothing_there() -> bool:
            turn.enter_context(locked(root))
            check_current(root, head)
            if read_head(root) != head:  # whose writer was killed before it recorded it
                write_head(root, head)
            return False

        try:
            with new_store(folder_of(root, head.version + 1), nothing_there) as scratch:
                digest = fill(scratch)
        except StoreError:
            # Whoever is first also clears away what the others were writing.
            check_current(root, head)
            raise
        after = head.followed_by(digest)
        # The change is made, and the next writer mends what cannot be recorded now.
        with suppress(OSError):  # errors of stores among them
            write_head(root, after)
    return after


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold a lock, so that one process at a time finds the highest version and adds the next.

    Without it a writer that was stopped between the two for so long that its number was
    made and swept away again would find the number free. The system frees the lock of a process
    that dies. Where there are no such locks, the rename alone decides.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover
        yield
        return
    with (root / _LOCK).open("a") as file:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sweep(root: Path, keep: Callable[[int, str], bool]) -> None:
    """Remove unused members of versions, and leftovers of killed processes.

    Links are not followed.

    Parameters
    ----------
    root : Path
    keep : callable
        ``keep(version, name)`` says whether a member of a version is still needed. Asked of
        versions up to the highest one that was there when the sweep began.
    """
    if root.is_symlink():
        return
    versions = _versions_in(root)
    last = max(versions, default=0)
    for version in versions:
        folder = folder_of(root, version)
        if folder.is_symlink():
            continue
        names = _names_in(folder)
        gone = [member for member in names if not keep(version, member)]
        for member in gone:
            _remove(folder / member)
        # Also if an earlier sweep was killed between the last member and the folder.
        if len(gone) == len(names) and version < last:
            with suppress(OSError):
                folder.rmdir()
    for name in _names_in(root):
        # A change that would have made a version which is there can no longer succeed.
        digits = name[1:13]
        if is_leftover(root / name) and _NAME.fullmatch(digits) and int(digits) <= last:
            _remove(root / name)


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; what stays is the next one's."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
