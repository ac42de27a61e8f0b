"""A source that grows: its parts, and the fingerprints that tell which parts changed.

A part is a row block of a Zarr array, or a file. Its name gives its position in the source. Its
fingerprint is another one whenever its rows may be others. No rows are read to find it.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from daskcoreset.constructions.tree.shape import digest_of
from daskcoreset.core.messages import warn_user
from daskcoreset.core.validation import a_type, as_int, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError, MissingPathError
from daskcoreset.inputs.filesystems import (
    Place,
    is_glob,
    is_of,
    opening,
    reading,
)
from daskcoreset.inputs.open import ZARR_FILES, is_path, is_web_store, open_all
from daskcoreset.inputs.options import DEFAULTS, ReadOptions, Rows
from daskcoreset.inputs.parquet import SUFFIXES, ParquetFiles, data_files, parquet_files
from daskcoreset.inputs.zarr import is_store
from daskcoreset.storage.locations import locate, path_of, store_name

if TYPE_CHECKING:
    from zarr.storage import StorePath

# The branch of Icechunk that is followed.
_BRANCH = "main"


@dataclass(frozen=True)
class SourceRecord:
    """A source as it was when a tree last read it, and how it is read.

    Attributes
    ----------
    name : str
        Name that identifies the source, without secrets.
    options : mapping
        `SourceView.options`.
    keep : int or None
        Versions of the tree that are kept. None for all.
    mark : str or None
        Snapshot of Icechunk.
    """

    name: str
    options: Mapping[str, Any]
    keep: int | None
    mark: str | None = None


def check_same(where: str, known: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error if a view is followed now in another way than it was created.

    Raises
    ------
    InvalidInputError
    """
    for key, value in now.items():
        if value != known[key]:
            name = "random_state" if key == "seed" else key
            raise InvalidInputError(
                f"{name} is {value!r}, but the view at {where} was created with {known[key]!r}",
                argument=name,
                remedy="pass that value, or another path for another view",
            )


class Part(NamedTuple):
    """Rows of a source that are read together.

    Attributes
    ----------
    name : str
        The path of a file, or the number of a row block.
    fingerprint : str or None
        None if the file system does not tell when it changes.
    data : callable
        Returns X, y and sample_weight as `row_blocks` takes them. Nothing is opened before.
    """

    name: str
    fingerprint: str | None
    data: Callable[[], tuple[Any, Any, Any]]


class Look(NamedTuple):
    """A source as it is now.

    Attributes
    ----------
    record : SourceRecord
        What a tree that has read it records.
    parts : sequence of Part
        In the order of the rows.
    n_rows : int or None
        Rows of an array. Files are counted when they are read.
    """

    record: SourceRecord
    parts: Sequence[Part]
    n_rows: int | None = None


@dataclass(frozen=True, eq=False)
class SourceView:
    """A source, and how it is followed.

    Attributes
    ----------
    source : object
        As `CoresetTree.follow` takes it, without the options of `open_rows`.
    reading : ReadOptions
    y, sample_weight : str or None
        Names of columns, or of arrays of the group.
    keep : int or None
    """

    source: Any
    reading: ReadOptions
    y: str | None
    sample_weight: str | None
    keep: int | None

    @classmethod
    def of(cls, source: Any, y: Any, sample_weight: Any, keep: Any) -> SourceView:
        """Check the arguments of `CoresetTree.follow`."""
        source, reading = ReadOptions.of(source)
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidTypeError(
                    f"{name} is {shown(value)}, and the source is a store or files",
                    argument=name,
                    remedy="pass the name of a column or array in it",
                )
        if keep is not None:
            keep = as_int("keep", keep, remedy="pass a larger int, or None to keep all versions")
        return cls(_absolute(source), reading, y, sample_weight, keep)

    @classmethod
    def again(cls, source: Any, record: SourceRecord, before: SourceView | None) -> SourceView:
        """Return the view of a source that is passed to `refresh`.

        It is read as before, unless it is `Rows`.
        """
        source, reading = ReadOptions.of(source)
        known = dict(record.options)
        keys = known.pop("y"), known.pop("sample_weight")
        if reading is DEFAULTS:
            reading = ReadOptions(**known) if before is None else before.reading
        return cls(_absolute(source), reading, *keys, record.keep)

    @property
    def options(self) -> dict[str, Any]:
        """What decides which rows the parts have, in plain JSON values."""
        reading = self.reading
        return {
            "y": self.y,
            "sample_weight": self.sample_weight,
            "columns": reading.columns and list(reading.columns),
            "missing_chunks": reading.missing_chunks,
            "unit_length": reading.unit_length,
        }

    def refuse_inside(self, path: Path | str, name: str) -> None:
        """Refuse a view among the data, where it would be read, or be lost with them.

        Raises
        ------
        InvalidInputError
            A glob matches `path`, or it is inside the store or folder that is followed.
        """
        listed = self.source if isinstance(self.source, (list, tuple)) else [self.source]
        for source in listed if isinstance(path, Path) and is_path(self.source) else ():
            given, place = locate("source", source), Path(os.path.realpath(path))
            if isinstance(given, Path) and (
                place.is_relative_to(given) or (is_glob(source) and place.match(str(given)))
            ):
                raise InvalidInputError(
                    f"path {name!r} is inside source {os.fspath(source)!r}, or matches it: the "
                    "view would be read as data, or be lost with them",
                    argument="path",
                    remedy='choose a path outside of it, or a narrower glob, such as "*.npy"',
                )

    def look(self, before: SourceRecord | None, seen: Mapping[str, str | None]) -> Look:
        """List the parts of the source as they are now.

        Parameters
        ----------
        before : SourceRecord or None
            What was seen last, for a branch of Icechunk.
        seen : mapping of str to str
            Fingerprints of the parts that were seen, by their names.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            The source is of another kind, or cannot be opened.
        """
        source = self.source
        if callable(source) and not hasattr(source, "shape") and not is_store(source):
            source = source()
        time.sleep(_TICK)  # what is written from here on has other times than what was there
        icechunk = sys.modules.get("icechunk")
        if icechunk is not None and isinstance(source, icechunk.Repository):
            return self._look_at_array(_Branch(source, before.mark if before else None, seen))
        if is_path(source):
            return self._look_at_paths(source)
        source = getattr(source, "store_path", source)  # opened again, with the shape it has now
        if is_store(source):
            return self._look_at_array(_Stored(source))
        raise _cannot_be_followed(source)

    def _look_at_paths(self, source: Any) -> Look:
        """Return files as parts, or the row blocks of a Zarr store."""
        listed = isinstance(source, (list, tuple))
        sources = source if listed else [source]
        places: list[Place] = []
        infos: dict[str, Any] = {}
        for one in sources:
            with opening("source", os.fspath(one), "files, a folder or a store"):
                place = Place.of(one, self.reading.storage_options)
                files, path = place.filesystem, place.path
                files.invalidate_cache()  # lists from before the change
                # Of a file, its folder. Of a glob, the folder above the first sign of one.
                base = re.split(r"[*?\[]", path, maxsplit=1)[0].rpartition("/")[0]
                if is_glob(one):
                    places += place.matches()
                    infos |= files.glob(path, detail=True)
                elif not listed and (is_web_store(place) or any(map(place.has, ZARR_FILES))):
                    return self._look_at_array(_Stored(place.url or path))
                elif listed or place.is_file:
                    places.append(place)
                else:
                    places, base = _parquet_folder(place), path
                    infos = files.find(path, detail=True)
        if not places and (patterns := [os.fspath(one) for one in sources if is_glob(one)]):
            warn_user(
                f"source matches no file: {' and '.join(map(repr, patterns))}; the view is empty "
                "until refresh() finds some. Check the pattern."
            )
        start, folder = ("", None) if listed else (base.rstrip("/") + "/", place.at(base))
        parts: dict[str, Part] = {}
        for file in places:
            name = file.path.removeprefix(start) if start else file.name
            data = partial(self._open_file, file, folder)
            parts[name] = Part(name, _file_fingerprint(file, infos), data)
        name = "a list of files" if listed else place.name
        return Look(SourceRecord(name, self.options, self.keep), list(parts.values()))

    def _open_file(self, place: Place, base: Place | None) -> tuple[Any, Any, Any]:
        X: Any = place.url or place.path
        if place.suffix in SUFFIXES:
            X = ParquetFiles([place], base)
        return Rows(X, self.reading), self.y, self.sample_weight

    def _look_at_array(self, stored: _Stored) -> Look:
        """Return the row blocks of an array, or of the arrays of a group, as parts."""
        keys = self.y, self.sample_weight
        opened = open_all(stored.target, *keys, self.reading, allow_empty=True)
        arrays = {name: getattr(part, "array", None) for name, part in opened.parts.items()}
        if not all(hasattr(array, "store_path") for array in arrays.values()):
            raise _cannot_be_followed(stored.target)
        chunks = [(array, stored.chunks(array)) for array in arrays.values()]
        n_rows, step = len(opened.X), opened.X.granularity

        def data(rows: range) -> tuple[Any, Any, Any]:
            cut = {name: part.cut(rows.start, rows.stop) for name, part in opened.parts.items()}
            X = Rows(cut["X"], replace(self.reading, storage_options=None))
            return X, cut.get("y"), cut.get("sample_weight")

        parts = []
        for number, start in enumerate(range(0, n_rows, step)):
            name, rows = f"block-{number}", range(start, min(start + step, n_rows))
            told = [x for array, own in chunks for i in _chunk_rows(array, rows) for x in own[i]]
            fingerprint = stored.fingerprint(name, _form(arrays, rows), told)
            parts.append(Part(name, fingerprint, partial(data, rows)))
        record = SourceRecord(stored.name(arrays["X"]), self.options, self.keep, stored.mark)
        return Look(record, parts, n_rows)


def _cannot_be_followed(source: Any) -> InvalidTypeError:
    return InvalidTypeError(
        f"source is {a_type(source)}, or holds rows that are neither Zarr nor files",
        argument="source",
        remedy="pass a path, URL, glob or list of paths, a Zarr array, group or store, an "
        "Icechunk repository, or a function that returns one of these",
    )


def _absolute(source: Any) -> Any:
    """Return a source whose relative paths mean the same when the process goes elsewhere."""
    if isinstance(source, (list, tuple)):
        return [_absolute(one) for one in source]
    if not isinstance(source, (str, os.PathLike)):
        return source
    return os.fspath(locate("source", source, follow=False))


def _parquet_folder(place: Place) -> list[Place]:
    """Return the Parquet files of a folder. There may be none yet, but no other data."""
    is_there = place.exists
    files = parquet_files(place) if is_there else []
    if not is_there or (not files and data_files(place)):
        made = InvalidInputError if is_there else MissingPathError
        raise made(
            f"source has no Parquet files: {place.name!r}",
            argument="source",
            remedy=f'check the path, or pass a glob, such as "{place.name.rstrip("/")}/*.npy"',
        )
    return files


# --- fingerprints of files --------------------------------------------------------------------

# A file that is written twice within one tick of the clock of its disk has the same times. Disks
# that store whole seconds have ticks of one or two.
_TICK, _COARSE_TICK = 0.01, 2.0

# What stays the same when a file is written again with as many bytes.
_CONSTANT = {"name", "size", "type", "url", "mimetype", "partial", "Last-Modified"}


def _fingerprint(info: Mapping[str, Any]) -> str | None:
    """Return a digest of what a file system says of a file.

    None if that may be the same after a change, so that the file has to be read.
    """
    times = [info[key] for key in ("mtime", "created") if isinstance(info.get(key), float)]
    young = any(time.time() - at < (_TICK if at % 1 else _COARSE_TICK) for at in times)
    return None if young or info.keys() <= _CONSTANT else _digest(sorted(map(str, info.items())))


def _digest(texts: Iterable[str | None]) -> str | None:
    """Return the digest of texts. None if one of them is."""
    known = list(texts)
    return None if None in known else digest_of(repr(known))


def _file_fingerprint(place: Place, infos: Mapping[str, Any]) -> str | None:
    """Return the fingerprint of a file; of a folder, such as a Zarr store, that of all in it."""
    if is_web_store(place):  # whose folders look like files
        return None
    info = infos.get(place.path, {})
    if info.get("size") is None or info.get("islink"):  # lists of web servers say less
        with reading(f"the file {place.name!r}"):
            info = place.filesystem.info(place.path)
    if info["type"] != "directory":
        return _fingerprint(info)
    files = place.files()
    names = [file.path for file in files]
    return _digest([*names, *(_file_fingerprint(file, infos) for file in files)])


# --- fingerprints of the blocks of Zarr arrays ---------------------------------------------------


# Metadata of an array that say nothing of how its chunks are read.
_CHANGING = dict.fromkeys(("attributes", "consolidated_metadata", "dimension_names"))


class _Stored:
    """A Zarr store, whose blocks are known by the files of their chunks.

    Attributes
    ----------
    target : object
        The store, or its path or URL.
    mark : str or None
        What is recorded of the state of the store.
    """

    mark: str | None = None

    def __init__(self, target: Any) -> None:
        self.target = target

    def name(self, array: Any) -> str:
        """Return the name of an array, which is the same for all ways to open it."""
        return str(path_of(array.store_path) or store_name(array.store_path))

    def chunks(self, array: Any) -> Mapping[int, list[str | None]]:
        """Return the fingerprints of chunks, by their numbers along the rows."""
        found = defaultdict[int, list[str | None]](list)
        with reading(store_name(array.store_path)):
            listed = _listed(array.store_path)
        if listed is None:
            return defaultdict(lambda: [None])
        for key in sorted(listed):
            numbers = tuple(map(int, re.findall(r"\d+", key)))
            if len(numbers) == array.ndim and key == array.metadata.encode_chunk_key(numbers):
                found[numbers[0]].append(listed[key])
        return found

    def fingerprint(self, name: str, form: str, told: Sequence[str | None]) -> str | None:
        """Return the fingerprint of a block by what is told of its chunks."""
        del name
        return _digest([form, *told])


def _form(arrays: Mapping[str, Any], rows: range) -> str:
    """Return a digest of what decides how the chunks of a block are read, beside their bytes."""
    known = [
        sorted({**array.metadata.to_dict(), **_CHANGING, "shape": array.shape[1:]}.items())
        for array in arrays.values()
    ]
    return str(_digest(map(str, [rows, *known])))


def _chunk_rows(array: Any, rows: range) -> range:
    outer = (array.shards or array.chunks)[0]
    return range(rows.start // outer, -(-rows.stop // outer))


def _listed(place: StorePath) -> dict[str, str | None] | None:
    """Return the fingerprints of the files below a place in a Zarr store, by their keys.

    None if there is no list, as on servers of the web.
    """
    import fsspec
    from zarr.core.sync import sync
    from zarr.storage import FsspecStore, LocalStore, ObjectStore

    store: Any = place.store
    root, found = f"{place.path}/" if place.path else "", dict[str, str | None]()
    if isinstance(store, ObjectStore):
        import obstore

        pages = obstore.list(store.store, prefix=root or None)
        found = {one["path"]: _fingerprint(one) for page in pages for one in page}
    elif isinstance(store, LocalStore):
        root, info = f"{store.root}/{root}", fsspec.filesystem("file").info
        for folder, _, names in os.walk(root, followlinks=True):
            for file in (str(Path(folder, name)) for name in names):
                with suppress(FileNotFoundError):  # of a writer that is at work
                    found[file] = _fingerprint(info(file))
    elif isinstance(store, FsspecStore) and not is_of(store.fs, "http"):
        root = f"{store.path.rstrip('/')}/{root}"
        store.fs.invalidate_cache()
        infos = sync(store.fs._find(root, detail=True))  # noqa: SLF001 - its asynchronous form
        found = {name: _fingerprint(info) for name, info in infos.items()}
    else:
        return None
    return {name.removeprefix(root): known for name, known in found.items()}


class _Branch(_Stored):
    """The newest snapshot of a branch of Icechunk, which knows what has changed since another one.

    Parameters
    ----------
    repository : icechunk.Repository
    since : str or None
        The other snapshot.
    seen : mapping of str to str
        Fingerprints of then.
    """

    def __init__(self, repository: Any, since: str | None, seen: Mapping[str, str | None]) -> None:
        with opening("source", "the repository", f"the branch {_BRANCH!r} of Icechunk"):
            self.session = repository.readonly_session(branch=_BRANCH)
        super().__init__(self.session.store)
        self.mark = str(self.session.snapshot_id)
        self.since, self.seen = since, seen
        self.before = self.diff = None  # of which all may have changed
        # Icechunk has one error for all: here it has no snapshot `since`, or that is not an
        # ancestor of the newest one.
        with suppress(Exception):
            self.before = repository.readonly_session(snapshot_id=since)
            self.diff = repository.diff(from_snapshot_id=since, to_snapshot_id=self.mark)

    def name(self, array: Any) -> str:
        """Return the name of an array. A repository has none."""
        return f"Icechunk branch {_BRANCH!r}/{array.store_path.path}"

    def chunks(self, array: Any) -> Mapping[int, list[str | None]]:
        """Return the snapshot for chunks that changed, and nothing for others."""
        rows = self._changed_rows(array.path)
        if rows is None:
            return defaultdict(lambda: [self.mark])
        return defaultdict(list, {row: [self.mark] for row in rows})

    def fingerprint(self, name: str, form: str, told: Sequence[str | None]) -> str:
        """Return that of before for a block without a changed chunk, else one of the snapshot."""
        last = self.seen.get(name) or ""
        return last if not told and last.startswith(f"{form}:") else f"{form}:{self.mark}"

    def _changed_rows(self, path: str) -> set[int] | None:
        """Return the rows of chunks that changed. None for all."""
        if self.since == self.mark:
            return set()
        path = f"/{path.strip('/')}"
        if self.diff is None or path in self.diff.new_arrays | self.diff.deleted_arrays:
            return None
        rows = {int(number[0]) for number in self.diff.updated_chunks.get(path, ())}
        if path in self.diff.updated_arrays:
            # Chunks that one commit cut off, and that are empty since the next, are not in it.
            rows |= _stored_rows(self.before, path) - _stored_rows(self.session, path)
        return rows


def _stored_rows(session: Any, path: str) -> set[int]:
    from zarr.core.sync import sync

    async def rows() -> set[int]:
        return {int(number[0]) async for number in session.chunk_coordinates(path)}

    return sync(rows())


# --- times ------------------------------------------------------------------------------------

_DATE = re.compile(
    r"(?<!\d)\d{4}-?\d\d-?\d\d(?:[T_-](?:[01]\d|2[0-3]):?[0-5]\d(?::?[0-5]\d)?)?(?!\d)"
)

# Writers of tables put one into the names of files: in one of some hundred its digits are a date.
_UUID = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}(?:\1[0-9a-f]{4}){2}\1[0-9a-f]{12}", re.IGNORECASE)


def time_in_name(name: str) -> str | None:
    """Return the last date in a name, with the time of the day where there is one. None for none.

    Examples
    --------
    >>> time_in_name("date=2026-03-01/part-0.parquet"), time_in_name("x-20260301T0930.npy")
    ('2026-03-01', '2026-03-01T09:30:00')
    """
    for text in reversed(_DATE.findall(_UUID.sub("*", name))):
        kind = dt.date if len(text) <= len("2026-03-01") else dt.datetime
        with suppress(ValueError):  # the 31st of June
            return kind.fromisoformat(text).isoformat()
    return None
