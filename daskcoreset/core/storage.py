"""Named arrays in Zarr version 3, written whole or not at all, with a digest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from daskcoreset.core.atomic import find_previous, is_leftover, new_store
from daskcoreset.core.contents import (
    HEADER,
    JSON,
    NAME,
    Explain,
    FindProblem,
    GroupContents,
    find_header_problem,
    refuse_inconsistent,
)
from daskcoreset.core.errors import (
    InvalidInputError,
    MissingPathError,
    OutOfTimeError,
    StoreError,
)
from daskcoreset.core.inside import refuse_inside
from daskcoreset.core.plain_files import hold_folder
from daskcoreset.core.stored_arrays import check_stored, read_arrays, write_arrays
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_flag
from daskcoreset.core.zarr_places import (
    Location,
    check_bucket,
    clear_place_errors,
    place_name,
    resolve,
)

if TYPE_CHECKING:
    import zarr
    from zarr.storage import StorePath

# Times that a store is read anew while others go on replacing it.
_N_READS = 100

# Looks for a store, and for one that is being replaced, before nothing is there: an overwrite is
# seldom between both, and never at each of them.
_N_LOOKS = 8


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
    target, path = resolve(store, storage_options)
    if target.read_only or not target.store.supports_deletes:
        what = f"store {place_name(target)} is read-only or cannot delete"
        msg = f"{what}; write to a directory and copy that"
        raise InvalidInputError(msg)
    refuse_inside(store if path is None else path, storage_options)
    with clear_place_errors(target, "written"):
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


def read_group(
    store: Location,
    *,
    kind: str,
    schema_version: int,
    oldest: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    explain: Explain | None = None,
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Read a group written by `write_group`, and check it.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Where the group is.
    kind : str
        The kind it must be of.
    schema_version : int
        The newest version the caller reads.
    oldest : int, optional
        The oldest; `schema_version` by default.
    storage_options : mapping, optional
        As in `write_group`.
    explain : callable, optional
        ``explain(attributes, problem)`` says what is wrong with an array in the words of the
        caller, by attributes that may be damaged, too.

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
    daskcoreset.errors.MissingPathError: ...: no Zarr version 3 group; check the path
    """
    target, path = resolve(store, storage_options)
    if path is not None:
        contents = read_folder(
            path, kind=kind, schema_version=schema_version, oldest=oldest, explain=explain
        )
    else:
        contents = read_contents(
            target, place_name(target), kind, schema_version, oldest, explain=explain
        )
    return dict(contents.arrays), dict(contents.attributes)


def read_folder(
    path: Path,
    *,
    kind: str,
    schema_version: int,
    oldest: int | None = None,
    find_problem: FindProblem | None = None,
    explain: Explain | None = None,
) -> GroupContents:
    """Read a group on a local disk as `read_group` does, with its version and its digest.

    Others may replace it meanwhile: then one of those that had its name is read, whole. Links are
    not followed, and refused.

    Parameters
    ----------
    path : Path
    kind, schema_version, oldest
        As in `read_group`.
    find_problem : callable, optional
        Returns what else is wrong with a header, or None.
    explain : callable, optional
        As in `read_group`.
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
                        place_in,
                        str(path),
                        kind,
                        schema_version,
                        oldest,
                        find_problem,
                        explain=explain,
                    )
                except StoreError:
                    if not folder.is_replaced():
                        raise
        except (FileNotFoundError, NotADirectoryError) as error:
            if _is_missing(path):
                found = "" if os.path.lexists(path) else "nothing is there, and "
                kind_of_error = MissingPathError if found else StoreError
                raise kind_of_error(
                    f"{path}: {found}no Zarr version 3 group; check the path"
                ) from error
    raise StoreError(f"{path} was replaced at each of {_N_READS} reads; read it again")


def _is_missing(path: Path) -> bool:
    """Whether no directory is at a path, and none that an overwrite has moved away from it.

    Looked at several times, since an overwrite that ends between the two is seen by neither.
    """
    return not any(path.is_dir() or find_previous(path) for _ in range(_N_LOOKS))


def read_contents(  # noqa: PLR0917 - all of them are always given
    target: StorePath,
    where: str,
    kind: str,
    schema_version: int,
    oldest: int | None,
    find_problem: FindProblem | None = None,
    *,
    explain: Explain | None = None,
) -> GroupContents:
    """Read a group of a Zarr store as `read_folder` does one on a disk; `where` is its name."""
    try:
        with clear_place_errors(target, "read"):
            check_stored(target / "zarr.json")
            group = _open(target, "r")
    except FileNotFoundError as error:
        check_bucket(target)
        from daskcoreset.core.plain_store import PlainStore

        # The folder of a plain store is there.
        kind_of_error = StoreError if isinstance(target.store, PlainStore) else MissingPathError
        raise kind_of_error(f"{where}: no Zarr version 3 group; check the path") from error
    except (StoreError, OutOfTimeError):
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
        with clear_place_errors(target, "read"):
            for name, array, axes in read_arrays(group, header["arrays"]):
                arrays[name], dims[name] = array, axes
    except (StoreError, OutOfTimeError):
        raise
    except Exception as error:
        said = str(error) if explain is None else explain(attributes, str(error))
        raise StoreError(f"{where}: {said}; restore or rebuild the store") from error
    contents = GroupContents(arrays, dims, attributes, kind, header["schema_version"])
    if contents.header(complete=True) != header:
        msg = f"{where}: changed or damaged since it was written (its digest does not match)"
        raise StoreError(f"{msg}; restore it from a copy or rebuild it")
    return contents


def _check_header(header: Mapping[str, Any], where: str, find_problem: FindProblem | None) -> None:
    if wrong := [name for name in header["arrays"] if not NAME.fullmatch(name)]:
        raise StoreError(
            f"{where}: no array has a name such as {wrong[0]!r}; restore it from a copy"
        )
    with refuse_inconsistent(f"{where}: its header is damaged"):
        if find_problem is not None and (problem := find_problem(header)):
            raise StoreError(f"{where}: {problem}; restore it from a copy")


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
    try:
        header = _open(place, "r" if place.read_only else "r+").attrs.asdict()[HEADER]
    except OutOfTimeError:
        raise
    except Exception:  # noqa: BLE001, S110 - as above
        pass
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
