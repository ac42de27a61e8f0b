"""Named arrays in Zarr version 3, written whole or not at all, with a digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from daskcoreset.core.atomic import find_previous, is_leftover, new_store
from daskcoreset.core.errors import (
    CoresetError,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.core.inside import HEADER, refuse_inside
from daskcoreset.core.locations import locate, scheme_of
from daskcoreset.core.objects import (
    ObjectFolder,
    RefusedError,
    clear_errors,
    connect,
    is_remote,
    name_of,
)
from daskcoreset.core.plain_files import hold_folder
from daskcoreset.core.secrets import without_secrets
from daskcoreset.core.stored_arrays import (
    find_padding_problem,
    read_arrays,
    spell_dtype,
    write_arrays,
)
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_flag

if TYPE_CHECKING:
    import zarr
    from zarr.abc.store import Store
    from zarr.storage import StorePath

# What an attribute can be; tuples come back as lists.
JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class GroupContents:
    """Arrays and attributes of a group.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        The arrays.
    dims : mapping of str to tuple of str
        Dimension names of each array.
    attributes : mapping of str to JSON
        Attributes without the header.
    kind : str
        What the group is.
    schema_version : int
        Version of its layout.
    """

    arrays: Mapping[str, AnyArray]
    dims: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, JSON]
    kind: str
    schema_version: int

    def checked(self) -> GroupContents:
        """Return the contents with attributes in plain JSON; anything else is an error.

        Raises
        ------
        InvalidInputError
            A name, dimension, string or attribute has a value that cannot be stored.
        InvalidTypeError
            An array's dtype or an attribute's type cannot be stored.
        """
        lengths: dict[str, int] = {}
        for name, array in self.arrays.items():
            if not _NAME.fullmatch(name):
                msg = f"array name {name!r}: use letters, digits, '_' and '-', a letter first"
                raise InvalidInputError(msg)
            axes = self.dims.get(name, ())
            if len(axes) != array.ndim or len(set(axes)) != len(axes):
                msg = f"array {name!r} of shape {array.shape} has dims {axes}; name each axis once"
                raise InvalidInputError(msg)
            for dim, length in zip(axes, array.shape, strict=True):
                if lengths.setdefault(dim, length) != length:
                    msg = f"dimension {dim!r} has lengths {lengths[dim]} and {length}"
                    raise InvalidInputError(f"{msg}; use two names")
            _check_dtype(name, array)
        if HEADER in self.attributes:
            raise InvalidInputError(f"attribute {HEADER!r} is reserved; use another name")
        if self.schema_version < 1:
            raise InvalidInputError(f"schema_version is {self.schema_version}; versions start at 1")
        return replace(self, attributes=_plain(self.attributes))

    def header(self, *, complete: bool) -> dict[str, JSON]:
        """Describe the contents; only a complete header has the digest that lets a store open."""
        header: dict[str, JSON] = {
            "kind": self.kind,
            "schema_version": self.schema_version,
            "arrays": self.specs(),
        }
        return {**header, "digest": self.digest} if complete else header

    @cached_property
    def digest(self) -> str:
        """What tells the contents from any others: kind, version, names, attributes and bits."""
        header = self.header(complete=False)
        names = sorted(self.arrays)
        described = [header, self.attributes, {name: self.dims[name] for name in names}]
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        for name in names:
            digest.update(_bits(self.arrays[name]))
        return f"sha256:{digest.hexdigest()}"

    def specs(self) -> dict[str, JSON]:
        """Describe the arrays: name to ``dtype`` and ``shape``."""
        return {
            name: {"dtype": spell_dtype(array), "shape": list(array.shape)}
            for name, array in self.arrays.items()
        }


def find_header_problem(
    header: Any, kind: str, schema_version: int, oldest: int | None = None
) -> str | None:
    """Return what is wrong with a header: the library, the kind, completeness; or None.

    Parameters
    ----------
    header : object
        What the group has under `HEADER`, or None.
    kind : str
    schema_version : int
        Kind and version that it must have.
    oldest : int, optional
        The oldest version that will do; `schema_version` by default.
    """
    if not isinstance(header, dict):
        return "a Zarr group, but not one of daskcoreset; check the path"
    version = header.get("schema_version")
    problem = None
    if header.get("kind") != kind:
        problem = f"holds a {header.get('kind')!r}, not a {kind!r}; check the path"
    elif isinstance(version, int) and version > schema_version:
        newer = f"schema version {version} is newer than {schema_version}, the newest known"
        problem = f"{newer}; upgrade daskcoreset"
    elif not isinstance(version, int) or version < (oldest or schema_version):
        problem = f"schema version {version!r} instead of {schema_version}; build it again"
    elif "digest" not in header:
        problem = "incomplete, its writing was interrupted; write it with overwrite=True"
    elif not isinstance(header.get("arrays"), dict):
        problem = "its header names no arrays; restore it from a copy or build it again"
    return problem


def _bits(array: AnyArray) -> bytes:
    if array.dtype.kind == "T":
        # Lengths first, or ["a", "bc"] and ["ab", "c"] would be the same bytes.
        texts = [text.encode() for text in array.ravel().tolist()]
        return json.dumps([len(text) for text in texts]).encode() + b"".join(texts)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _plain(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    try:
        plain: dict[str, JSON] = json.loads(json.dumps(dict(attributes), allow_nan=False))
    except TypeError as error:
        msg = f"attributes must be plain JSON: {error}; convert them first"
        raise InvalidTypeError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"attributes must be plain JSON: {error}; drop or replace the value"
        raise InvalidInputError(msg) from error
    return plain


def _check_dtype(name: str, array: AnyArray) -> None:
    dtype = array.dtype
    if dtype.kind == "U":
        try:
            "".join(array.ravel().tolist()).encode()
        except ValueError as error:
            msg = f"array {name!r} holds text that is not Unicode ({error}); clean it first"
            raise InvalidInputError(msg) from error
        n_characters = sum(map(len, array.ravel().tolist()))
        if problem := find_padding_problem(array.size, dtype.itemsize // 4, n_characters):
            raise InvalidInputError(f"array {name!r}: {problem}; shorten it with .astype(str)")
    elif dtype.kind == "T":
        if hasattr(dtype, "na_object"):
            raise InvalidTypeError(f"array {name!r} may hold missing strings; fill them first")
    elif dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        msg = f"array {name!r} has dtype {dtype}, which has no plain form in Zarr; convert it, "
        raise InvalidTypeError(msg + "text with .astype(str) and numbers to 64 bits or fewer")


# A path, a ``file://`` or other fsspec URL, or a Zarr store with or without a path in it.
Location: TypeAlias = "str | os.PathLike[str] | Store | StorePath"

# Times that a store is read anew while others go on replacing it.
_N_READS = 100


def write_group(
    store: Location,
    arrays: Mapping[str, AnyArray],
    dims: Mapping[str, tuple[str, ...]],
    attributes: Mapping[str, JSON],
    *,
    kind: str,
    schema_version: int,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write named arrays and attributes as one Zarr version 3 group, whole or not at all.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Where the group goes. Missing parent directories are made.
    arrays : mapping of str to ndarray
        Arrays of any shape; booleans, integers, floats up to 64 bits, complex up to 128
        bits, and strings (fixed width or `numpy.dtypes.StringDType` without a missing
        value). Numbers are stored in little-endian order.
    dims : mapping of str to tuple of str
        Dimension names of each array, one an axis; a name has one length in all arrays.
    attributes : mapping of str to JSON
        Attributes of the group, without NaN or infinity, which JSON does not have.
    kind : str
        What the group is; only the same kind reads or overwrites it.
    schema_version : int
        Version of the layout, 1 or more, chosen by the caller.
    overwrite : bool, default False
        Replace a group of the same kind. False by default because what is replaced is
        gone; anything that this library did not write is refused either way.
    storage_options : mapping, optional
        For a URL, as in `daskcoreset.core.objects.connect`, or those of its fsspec file system.

    Raises
    ------
    InvalidInputError
        A name, dimension, string or attribute cannot be stored.
    InvalidTypeError
        The store, an array's dtype or an attribute's type is not supported.
    MissingDependencyError
        The URL needs a package that is not installed.
    StoreError
        Something is there already, or the disk refused. Nothing was changed.

    Examples
    --------
    >>> import numpy as np
    >>> from zarr.storage import MemoryStore
    >>> store = MemoryStore()
    >>> ages = np.array([31, 45])
    >>> write_group(store, {"age": ages}, {"age": ("row",)}, {}, kind="demo", schema_version=1)
    >>> read_group(store, kind="demo", schema_version=1)
    ({'age': array([31, 45])}, {})
    """
    contents = GroupContents(arrays, dims, attributes, kind, schema_version).checked()
    target, path = _resolve(store, storage_options)
    if target.read_only or not target.store.supports_deletes:
        msg = f"store {target} is read-only or cannot delete; write to a directory and copy that"
        raise InvalidInputError(msg)
    refuse_inside(store if path is None else path, storage_options)
    with _clear_errors(target, "written"):
        members = _replaceable(target, path, kind, overwrite=overwrite)
        if path is None:
            _fill(target, contents, members)
            return
    # Asked again when all is written: something may have appeared meanwhile.
    with new_store(
        path, lambda: _replaceable(target, path, kind, overwrite=overwrite) is not None
    ) as scratch:
        fill_group(scratch, contents)


def fill_group(place: Path | StorePath, contents: GroupContents) -> None:
    """Write contents that are checked as a group, in a directory that `new_store` makes whole."""
    from zarr.storage import LocalStore, StorePath

    target = StorePath(LocalStore(place)) if isinstance(place, Path) else place
    _fill(target, contents, None)


@contextmanager
def refuse_inconsistent(subject: str, remedy: str = "restore it from a copy") -> Iterator[None]:
    """Raise a `StoreError` in place of the errors that contradictory contents cause."""
    try:
        yield
    except StoreError:
        raise
    # The digest was right, so this is a writer that does not keep to the layout.
    except (CoresetError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"{subject} ({error!r}); {remedy}") from error


def read_group(
    store: Location,
    *,
    kind: str,
    schema_version: int,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Read a group written by `write_group`, and check it.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Where the group is.
    kind : str
        The kind it must be of.
    schema_version : int
        The version the caller reads.
    storage_options : mapping, optional
        As in `write_group`.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, bit for bit as written, in native byte order.
    attributes : dict
        The attributes as written.

    Raises
    ------
    StoreError
        The group is missing, incomplete, of another kind or version, or differs in any
        bit of its arrays, names or attributes from what was written.
    InvalidTypeError
        `store` is none of the accepted types.

    Examples
    --------
    >>> from zarr.storage import MemoryStore
    >>> read_group(MemoryStore(), kind="demo", schema_version=1)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: ...: no Zarr version 3 group; check the path
    """
    target, path = _resolve(store, storage_options)
    if path is not None:
        contents = read_folder(path, kind=kind, schema_version=schema_version)
    else:
        contents = read_contents(target, _name(target), kind, schema_version, schema_version)
    return dict(contents.arrays), dict(contents.attributes)


# What else is wrong with a header, before anything else is read; None for nothing.
FindProblem: TypeAlias = "Callable[[Mapping[str, Any]], str | None]"


def read_folder(
    path: Path,
    *,
    kind: str,
    schema_version: int,
    oldest: int | None = None,
    find_problem: FindProblem | None = None,
) -> GroupContents:
    """Read a group on a local disk as `read_group` does, with its version and its digest.

    Others may replace it meanwhile: then one of those that had its name is read, whole. Links are
    not followed, and refused.

    Parameters
    ----------
    path : Path
    kind, schema_version
        As in `read_group`.
    oldest : int, optional
        The oldest version that will do; `schema_version` by default.
    find_problem : callable, optional
        Returns what else is wrong with a header, or None.
    """
    from zarr.storage import StorePath

    from daskcoreset.core.plain_store import PlainStore

    if is_leftover(path):
        msg = f"{path} is left over from an interrupted write; if it is wanted, rename it first"
        raise StoreError(msg)
    for _ in range(_N_READS):
        # While an overwrite is between its renames, or where it was killed there, nothing is at
        # the path, and the store of before beside it.
        place = path if os.path.lexists(path) else find_previous(path) or path
        try:
            with hold_folder(place) as folder:
                try:
                    place_in = StorePath(PlainStore(folder))
                    return read_contents(
                        place_in, str(path), kind, schema_version, oldest, find_problem
                    )
                except StoreError:
                    if not folder.is_replaced():
                        raise
        except (FileNotFoundError, NotADirectoryError) as error:
            if not path.is_dir() and find_previous(path) is None:
                raise StoreError(f"{path}: no Zarr version 3 group; check the path") from error
    raise StoreError(f"{path} was replaced at each of {_N_READS} reads; read it again")


def read_contents(  # noqa: PLR0917 - all of them are always given
    target: StorePath,
    where: str,
    kind: str,
    schema_version: int,
    oldest: int | None,
    find_problem: FindProblem | None = None,
) -> GroupContents:
    """Read a group of a Zarr store as `read_folder` does one on a disk; `where` is its name."""
    try:
        with _clear_errors(target, "read"):
            group = _open(target, "r")
    except FileNotFoundError as error:
        _check_bucket(target)
        raise StoreError(f"{where}: no Zarr version 3 group; check the path") from error
    except StoreError:
        raise
    # A damaged store makes zarr, its codecs and the file system raise almost anything.
    except Exception as error:
        msg = f"{where}: its metadata does not read ({error}); restore or rebuild it"
        raise StoreError(msg) from error
    attributes: dict[str, Any] = group.attrs.asdict()
    header = attributes.pop(HEADER, None)
    if problem := find_header_problem(header, kind, schema_version, oldest):
        raise StoreError(f"{where}: {problem}")
    _check_header(header, where, find_problem)
    arrays: dict[str, AnyArray] = {}
    dims: dict[str, tuple[str, ...]] = {}
    try:
        with _clear_errors(target, "read"):
            for name, array, axes in read_arrays(group, header["arrays"]):
                arrays[name], dims[name] = array, axes
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"{where}: {error}; restore or rebuild the store") from error
    contents = GroupContents(arrays, dims, attributes, kind, header["schema_version"])
    if contents.header(complete=True) != header:
        msg = f"{where}: changed or damaged since it was written (its digest does not match)"
        raise StoreError(f"{msg}; restore it from a copy or rebuild it")
    return contents


def _check_header(header: Mapping[str, Any], where: str, find_problem: FindProblem | None) -> None:
    if wrong := [name for name in header["arrays"] if not _NAME.fullmatch(name)]:
        raise StoreError(
            f"{where}: no array has a name such as {wrong[0]!r}; restore it from a copy"
        )
    with refuse_inconsistent(f"{where}: its header is damaged"):
        if find_problem is not None and (problem := find_problem(header)):
            raise StoreError(f"{where}: {problem}; restore it from a copy")


def name_of_location(store: Location) -> str:
    """Return what errors call the location of a group, without secrets."""
    if isinstance(store, str | os.PathLike):
        return without_secrets(os.fspath(store), os.fspath(store))
    from zarr.storage import StorePath

    return _name(store if isinstance(store, StorePath) else StorePath(store))


def _name(target: StorePath) -> str:
    """Return what errors call a place in a Zarr store."""
    from zarr.storage import ObjectStore

    if isinstance(target.store, ObjectStore):
        return "/".join(filter(None, (name_of(target.store.store), target.path)))
    return str(target)


def _clear_errors(target: StorePath, done: str) -> AbstractContextManager[None]:
    from zarr.storage import FsspecStore, ObjectStore

    if isinstance(target.store, ObjectStore):
        return clear_errors(_name(target), done)
    return (
        _clear_foreign(_name(target), done)
        if isinstance(target.store, FsspecStore)
        else nullcontext()
    )


@contextmanager
def _clear_foreign(name: str, done: str) -> Iterator[None]:
    """Turn what file systems of fsspec raise, which is of many packages, into a `StoreError`."""
    from zarr.errors import GroupNotFoundError

    try:
        yield
    except (CoresetError, GroupNotFoundError):
        raise
    except Exception as error:  # noqa: BLE001 - of every file system
        found = without_secrets(" ".join(str(error).split())[:200])
        # Without the cause, whose text may hold a password.
        raise StoreError(
            f"{name} could not be {done} ({type(error).__name__}: {found}); check the URL, "
            f"storage_options and the network"
        ) from None


def _check_bucket(target: StorePath) -> None:
    """Raise an error where there is no bucket; Zarr takes it for one in which nothing is."""
    from zarr.storage import ObjectStore

    if isinstance(target.store, ObjectStore) and not target.read_only:
        try:
            ObjectFolder(target.store.store, _name(target)).keys(most=1)
        except RefusedError:
            raise
        except StoreError:  # it cannot be listed
            return


def _resolve(
    store: object, storage_options: Mapping[str, Any] | None = None
) -> tuple[StorePath, Path | None]:
    """Return the place in a Zarr store and, if it is on a local disk, its path."""
    from zarr.abc.store import Store
    from zarr.storage import LocalStore, ObjectStore, StorePath

    from daskcoreset.core.bounded_objects import BoundedObjects

    if isinstance(store, str | os.PathLike):
        place = locate("store", store)
        store = LocalStore(place) if isinstance(place, Path) else place
    if storage_options and not isinstance(store, str):
        raise InvalidInputError(
            "storage_options belong to a URL, and store is none; leave them out"
        )
    if isinstance(store, str):
        store = _store_at(store, storage_options)
    if isinstance(store, ObjectStore):
        store = BoundedObjects(store.store, read_only=store.read_only)
    if isinstance(store, Store):
        store = StorePath(store)
    if not isinstance(store, StorePath):
        msg = f"store is a {type(store).__name__}; pass a path, a URL or a Zarr store"
        raise InvalidTypeError(msg)
    if not isinstance(store.store, LocalStore):
        return store, None
    # Followed through links, so that a rename replaces the directory and not the link to it.
    path = (store.store.root / store.path).resolve()
    return StorePath(LocalStore(path, read_only=store.read_only)), path


def _store_at(url: str, storage_options: Mapping[str, Any] | None) -> Store:
    """Return the Zarr store at a URL."""
    from zarr.storage import FsspecStore, ObjectStore

    if is_remote(url) and find_spec("obstore"):
        folder = connect(url, storage_options)
        return ObjectStore(folder, read_only=url.lower().startswith("http"))
    scheme = scheme_of(url)
    with _clear_foreign(without_secrets(url, url), "opened"):
        try:
            options = None if storage_options is None else dict(storage_options)
            return FsspecStore.from_url(url, storage_options=options)
        except ImportError as error:
            msg = f"store is a URL ({scheme}) that needs a package ({error}); install it"
            raise MissingDependencyError(msg) from error
        except ValueError as error:
            msg = f"store is a URL of no known protocol ({scheme}); check it"
            raise InvalidInputError(msg) from error


def _open(target: StorePath, mode: Literal["r", "r+"]) -> zarr.Group:
    # Store and path apart, or zarr takes the store to be open already: a zip file would not
    # be read, and a directory that is missing would be made.
    # Without consolidated metadata, which may say something else than the arrays' own.
    import zarr

    return zarr.open_group(
        target.store, path=target.path, mode=mode, zarr_format=3, use_consolidated=False
    )


def _replaceable(
    target: StorePath, path: Path | None, kind: str, *, overwrite: bool
) -> set[str] | None:
    """Return the members of our group there, or None if there is nothing; all else is an error."""
    from zarr.core.sync import sync
    from zarr.storage import StorePath

    from daskcoreset.core.plain_store import PlainStore

    check_flag("overwrite", overwrite)
    if path is None:

        async def listed() -> set[str]:  # obstore begins a list only where a loop runs
            return {entry async for entry in target.store.list_dir(target.path)}

        return _ours(target, sync(listed()), target, kind, overwrite=overwrite)
    try:
        with hold_folder(path) as folder:
            place = StorePath(PlainStore(folder))
            return _ours(place, set(folder.names()), target, kind, overwrite=overwrite)
    except (FileNotFoundError, NotADirectoryError):
        if path.exists():
            raise StoreError(f"{target} is a file; choose another path") from None
        previous = find_previous(path)
        if previous and not overwrite:
            msg = f"{target} exists as {previous}, which an interrupted overwrite left; rename it "
            raise StoreError(f"{msg}back, or pass overwrite=True to replace it") from None
        return None


def _ours(
    place: StorePath, entries: set[str], target: StorePath, kind: str, *, overwrite: bool
) -> set[str] | None:
    if not entries:
        return None
    header: Any = None
    # Whatever does not open as a group with our header is somebody else's.
    with suppress(Exception):
        header = _open(place, "r" if place.read_only else "r+").attrs.asdict()[HEADER]
    specs = header.get("arrays") if isinstance(header, dict) else None
    if not isinstance(specs, dict) or header["kind"] != kind:
        msg = f"{target} exists and is not a {kind} of daskcoreset, so it is never overwritten"
        raise StoreError(f"{msg}; choose another path")
    if foreign := entries - {"zarr.json", *specs}:
        msg = f"{target} also holds {min(foreign)!r}, so it is never overwritten"
        raise StoreError(f"{msg}; move that or choose another path")
    if not overwrite:
        msg = f"{target} exists; pass overwrite=True to replace it or choose another path"
        raise StoreError(msg)
    return entries - {"zarr.json"}


def _fill(target: StorePath, contents: GroupContents, replaced: set[str] | None) -> None:
    """Write a group; until its last step it is recognised as ours and as incomplete."""
    import zarr

    header = contents.header(complete=False)
    if replaced is None:
        group = zarr.create_group(target, zarr_format=3, attributes={HEADER: header})
    else:
        group = _open(target, "r+")
        # Old names too: whatever an interruption leaves of either, a rerun may clear it.
        old = dict.fromkeys(replaced)
        group.attrs.put({HEADER: {**header, "arrays": {**old, **contents.specs()}}})
        for name in replaced:
            del group[name]
    write_arrays(group, contents.arrays, contents.dims)
    group.attrs.put({**contents.attributes, HEADER: contents.header(complete=True)})
