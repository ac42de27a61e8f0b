"""Folders of our own stores, in which nothing but plain files and folders is used.

A symbolic link in a store would let it read, and a sweep delete, what lies outside; a named pipe or
a device would let its reader wait for ever. None is ever written, so that all are refused. A folder
is held by its descriptor, so that no link can take its place after it was looked at; where a system
has no such descriptors, as Windows, every name is looked at before it is used. Hard links are plain
files: no file of a store is written in place, and removing a name leaves the others.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from daskcoreset.core.errors import StoreError

_HAS_DESCRIPTORS = (
    {os.open, os.stat, os.unlink, os.rmdir} <= os.supports_dir_fd
    and {os.listdir} <= os.supports_fd
    and shutil.rmtree.avoids_symlink_attacks
)

# Not of Windows. Without waiting: the other end of a pipe may never come.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def refused_error(path: Path, mode: int) -> StoreError:
    """Return the error of something in a store that is no plain file or folder."""
    what = "a symbolic link" if stat.S_ISLNK(mode) else "no plain file or folder"
    return StoreError(
        f"{path} is {what}, and a store of daskcoreset has none; look where it comes from, and "
        f"restore the store from a copy"
    )


@dataclass(frozen=True)
class PlainFolder:
    """A folder that is held open.

    Attributes
    ----------
    path : Path
        Its name when it was opened.
    descriptor : int or None
        None where the system has none for folders.
    identity : tuple of int
        Device and number of the folder.
    """

    path: Path
    descriptor: int | None

    @cached_property
    def identity(self) -> tuple[int, int]:  # noqa: D102 - an attribute
        here = self.path if self.descriptor is None else self.descriptor
        found = os.stat(here)  # noqa: PTH116 - of a descriptor
        return found.st_dev, found.st_ino

    def mode(self, name: str) -> int | None:
        """Return the mode of an entry, links not followed; None where there is none."""
        try:
            return self._stat(name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self) -> list[str]:
        """Return the names of all entries, in order."""
        here = self.path if self.descriptor is None else self.descriptor
        return sorted(os.listdir(here))  # noqa: PTH208 - of a descriptor

    def is_folder(self, name: str) -> bool:
        """Whether an entry is a folder; False for a file, and for nothing.

        Raises
        ------
        StoreError
            It is something else.
        """
        mode = self.mode(name)
        if mode is None or stat.S_ISREG(mode):
            return False
        if not stat.S_ISDIR(mode):
            raise refused_error(self.path / name, mode)
        return True

    @contextmanager
    def hold(self, name: str) -> Iterator[PlainFolder]:
        """Hold a folder in this one."""
        if self.descriptor is None:
            if not self.is_folder(name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path / name)
            yield PlainFolder(self.path / name, None)
            return
        descriptor = self._open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield PlainFolder(self.path / name, descriptor)
        finally:
            os.close(descriptor)

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a plain file in this folder, and return its descriptor.

        Raises
        ------
        FileNotFoundError
            There is none.
        StoreError
            It is something else.
        """
        descriptor = self._open(name, flags | _BINARY)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise refused_error(self.path / name, mode)
        return descriptor

    def open_below(self, key: str) -> int:
        """Open a plain file in a folder below, given by names with slashes between them."""
        name, _, rest = key.partition("/")
        if not rest:
            return self.open(name)
        with self.hold(name) as folder:
            return folder.open_below(rest)

    def is_replaced(self) -> bool:
        """Whether another folder, or nothing, has this one's name by now."""
        try:
            now = self.path.stat(follow_symlinks=False)
        except OSError:
            return True
        return (now.st_dev, now.st_ino) != self.identity

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; leave anything else."""
        mode = self.mode(name)
        if mode is not None and stat.S_ISDIR(mode):
            if self.descriptor is None:
                shutil.rmtree(self.path / name, ignore_errors=True)
            else:
                shutil.rmtree(name, ignore_errors=True, dir_fd=self.descriptor)
        elif mode is not None and stat.S_ISREG(mode):
            with suppress(OSError):  # as of a folder, what stays behind is the next one's to remove
                os.unlink(*self._named(name), dir_fd=self.descriptor)

    def remove_empty(self, name: str) -> None:
        """Remove a folder if nothing is in it."""
        with suppress(OSError):
            os.rmdir(*self._named(name), dir_fd=self.descriptor)

    def _named(self, name: str) -> tuple[str]:
        return (name if self.descriptor is not None else str(self.path / name),)

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(*self._named(name), dir_fd=self.descriptor, follow_symlinks=False)

    def _open(self, name: str, flags: int) -> int:
        # Looked at first, since to open a device may do something.
        mode = self.mode(name)
        if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise refused_error(self.path / name, mode)
        try:
            return os.open(*self._named(name), flags | _NO_FOLLOW, 0o666, dir_fd=self.descriptor)
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link by now
                raise refused_error(self.path / name, stat.S_IFLNK) from error
            raise


@contextmanager
def hold_folder(path: Path) -> Iterator[PlainFolder]:
    """Hold a folder open.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        It is none.
    StoreError
        It is a link, or no plain folder.

    Examples
    --------
    >>> import tempfile
    >>> with hold_folder(Path(tempfile.mkdtemp())) as folder:
    ...     folder.names()
    []
    """
    parent = PlainFolder(path.parent, None)
    if not _HAS_DESCRIPTORS:
        with parent.hold(path.name) as folder:
            yield folder
        return
    descriptor = parent._open(path.name, os.O_RDONLY | os.O_DIRECTORY)  # noqa: SLF001 - its own class
    try:
        yield PlainFolder(path, descriptor)
    finally:
        os.close(descriptor)
