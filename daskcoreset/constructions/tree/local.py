"""A place in a folder on a disk, in which a version is a folder that is renamed when complete.

It has the settings, the record of its newest version, and a folder of versions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from daskcoreset.constructions.tree.persistence import SCHEMA_VERSION
from daskcoreset.constructions.tree.places import (
    MAIN,
    Head,
    Layout,
    Members,
    Place,
    overtaken_error,
)
from daskcoreset.core.errors import StoreError
from daskcoreset.core.validation import check_flag
from daskcoreset.storage import group
from daskcoreset.storage.atomic import is_leftover, new_store
from daskcoreset.storage.group import GroupContents, refuse_inconsistent

_NAME = re.compile(r"\d{12}")

_HEAD = "head.json"
_LOCK = ".lock"


class LocalPlace(Place):
    """A folder on a disk.

    Parameters
    ----------
    path : Path
    layout : Layout
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path = path
        self.layout = layout

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def root(self) -> Path:
        """The folder of the versions."""
        return self.path / self.layout.part

    def _folder(self, version: int) -> Path:
        return self.root / f"{version:012d}"

    def _member(self, version: int, member: str) -> Path:
        return self._folder(version) / member

    # --- reading -------------------------------------------------------------------------

    def is_free(self) -> bool:
        """Look for a folder with anything in it."""
        return not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir()))

    def settings(self) -> GroupContents:
        """Return the Zarr group that the folder is."""
        return _read_group(self.path, self.layout.kind)

    def newest(self) -> int:
        """Return the highest number of a folder."""
        return max(_versions_in(self.root), default=0)

    def newest_and_head(self) -> tuple[int, Head | None]:
        """Return the highest number of a folder, and the record beside them."""
        head = self._read_head()  # first, for versions may be added between the two
        return self.newest(), head

    def _read_head(self) -> Head | None:
        path = self.path / _HEAD
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read ({error})", remedy="restore it from a copy"
            ) from error
        with refuse_inconsistent(f"{path}: damaged"):
            return Head.from_json(json.loads(data))

    def where(self, version: int, member: str) -> str:
        """Return its path."""
        return str(self._member(version, member))

    def read(self, version: int, member: str, kind: str) -> GroupContents:
        """Read a Zarr group."""
        return _read_group(self._member(version, member), kind)

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look for the Zarr groups one by one."""
        for version, member in sorted(needed):
            if not (self._member(version, member) / "zarr.json").is_file():
                return version, member
        return None

    # --- writing -------------------------------------------------------------------------

    def first_head(self, settings: GroupContents) -> Head:
        """Begin from the settings."""
        return Head(settings.digest, 0, settings.digest)

    def create(
        self,
        settings: GroupContents,
        remedy: str,
        *,
        head: Head | None = None,
        members: Members | None = None,
        overwrite: bool = False,
        replaced: Head | None = None,
    ) -> Head:
        """Make the folder under another name, and rename it when all of it is there."""
        head = self.first_head(settings)
        with ExitStack() as turn:

            def may_replace() -> bool:
                if self.is_free():
                    return False
                check_flag("overwrite", overwrite)
                if not overwrite:
                    raise StoreError(f"{self.path} exists", remedy=remedy)
                self.settings()  # or refuse what it is
                self._refuse_others()
                if replaced is not None:  # and nobody follows it until this one stands there
                    turn.close()  # of the call before the work of writing
                    turn.enter_context(_locked(self.root))
                    self._check_current(replaced)
                return True

            may_replace()  # before the work of writing, and once more after it
            with new_store(self.path, may_replace) as scratch:
                group.fill_group(scratch, settings)
                place = LocalPlace(scratch, self.layout)
                if members:
                    return place.commit(head, members)
                place._write_head(head)
        return head

    def check_writable(self, remedy: str) -> None:  # noqa: ARG002 - `create` looks for others
        """Look at the folder above it, or the first one above that which is there."""
        above = next(folder for folder in self.path.absolute().parents if folder.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            what = "cannot be written" if above.is_dir() else "is no folder"
            raise StoreError(
                f"{self.path} cannot be created: {above} {what}", remedy="choose another path"
            )

    def _refuse_others(self) -> None:
        """Refuse a folder with anything that neither a store nor a writer of one has made."""
        others = {
            name
            for folder in (self.path, self.root)
            for name in _names_in(folder)
            if not (_NAME.fullmatch(name) or is_leftover(folder / name))
        } - {"zarr.json", self.layout.part, _HEAD, _LOCK}
        if others:
            raise StoreError(
                f"{self.path} also holds {min(others)!r}, so it is never overwritten",
                remedy="choose another path, or move that away",
            )

    def _check_current(self, head: Head) -> None:
        version, recorded = self.newest_and_head()
        follows = recorded == head or (
            recorded is not None
            and recorded.settings == head.settings
            and recorded.version < head.version
        )
        if version != head.version or not (follows or recorded is None):
            raise overtaken_error(self.name, version, head)

    def _commit(self, head: Head, members: Members, keep: int | None) -> Head:
        """Fill a folder under another name, and rename it."""
        del keep  # a folder is there until it is swept
        self._check_current(head)  # before the work of writing, and once more after it
        with ExitStack() as turn:

            def nothing_there() -> bool:
                turn.enter_context(_locked(self.root))
                self._check_current(head)
                if self._read_head() != head:  # whose writer was killed before it recorded it
                    self._write_head(head)
                return False

            try:
                with new_store(self._folder(head.version + 1), nothing_there) as scratch:
                    for name, contents in members.items():
                        group.fill_group(scratch / name, contents)
            except StoreError:
                # Whoever is first also clears away what the others were writing.
                self._check_current(head)
                raise
            after = head.followed_by(members[MAIN].digest)
            # The change is made, and the next writer mends what cannot be recorded now.
            with suppress(OSError):  # errors of stores among them
                self._write_head(after)
        return after

    def _write_head(self, head: Head) -> None:
        """Record the newest version, in place of the one before it."""
        path = self.path / _HEAD
        for name in _names_in(self.path):  # of writers that were killed
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

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Remove folders of members; links are not followed."""
        root = self.root
        if root.is_symlink():
            return
        versions = _versions_in(root)
        last = max(versions, default=0)
        for version in versions:
            folder = self._folder(version)
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


def _read_group(path: Path, kind: str) -> GroupContents:
    return group.read_folder(path, kind=kind, schema_version=SCHEMA_VERSION)


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder, in order. None if it is not there."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be read ({error.strerror})", remedy="restore the store from a copy"
        ) from error


def _versions_in(root: Path) -> list[int]:
    names = [name for name in _names_in(root) if _NAME.fullmatch(name)]
    for name in names:
        if (root / name).is_file():
            raise StoreError(
                f"{root / name} is not a folder", remedy="restore the store from a copy"
            )
    return [int(name) for name in names]


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold a lock, so that one process at a time finds the highest version and adds the next.

    Without it a writer that was stopped between the two for so long that its number was
    made and swept away again would find the number free. The system frees the lock of a process
    that dies. Without such locks, the rename alone decides.
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


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; what stays is the next one's."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
