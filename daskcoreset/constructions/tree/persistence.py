"""Streams and stored trees on the disk: settings, rows of one schema, versions."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from daskcoreset.constructions.tree.job import (
    Settings,
    canonical,
    concatenate_parts,
    with_canonical_labels,
)
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer, resolve_reducer
from daskcoreset.core import storage
from daskcoreset.core.atomic import is_leftover, new_store
from daskcoreset.core.coreset import freeze, thaw
from daskcoreset.core.errors import CoresetError, InvalidInputError, StoreError
from daskcoreset.core.points import WeightedPoints, from_arrays, to_arrays
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_flag
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import CONSTRUCTIONS

T = TypeVar("T")

# Version of the layout of streams and trees; one higher whenever an older reader would fail.
SCHEMA_VERSION = 1


def create_store(  # noqa: PLR0917 - all of them are always given
    path: Path,
    kind: str,
    settings: Settings,
    fill: Callable[[Path], None],
    remedy: str,
    overwrite: Any,
) -> None:
    """Make a folder with the settings of a stream or tree, complete or not at all.

    Parameters
    ----------
    path : Path
    kind : str
        What the Zarr group is.
    settings : Settings
    fill : callable
        Writes what comes into the folder beside them.
    remedy : str
        What to do where something is there.
    overwrite : bool
        Whether to replace a store of this kind that is there.
    """

    def may_replace() -> bool:
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return False
        check_flag("overwrite", overwrite)
        if not overwrite:
            raise StoreError(f"{path} exists; {remedy}")
        storage.read_group(path, kind=kind, schema_version=SCHEMA_VERSION)  # or refuse what it is
        return True

    may_replace()  # before the work of writing, and once more after it
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    reducer: Reducer = values.pop("reducer")
    values |= {
        "method": reducer.name,
        "parameters": _parameters(reducer),
        "sampling": getattr(reducer, "sampling", None),
    }
    with new_store(path, may_replace) as scratch:
        storage.fill_group(
            scratch, storage.GroupContents({}, {}, values, kind, SCHEMA_VERSION).checked()
        )
        fill(scratch)


def read_settings(path: Path, kind: str, method: Any) -> Settings:
    """Read the settings of a stream or tree, with the method passed or the stored one.

    Raises
    ------
    InvalidInputError
        If the method is not that of the store, or cannot be made from what is written.
    StoreError
        If there is no such store, or the settings are not consistent.
    """
    _, attributes = storage.read_group(path, kind=kind, schema_version=SCHEMA_VERSION)
    attributes.setdefault("n_clusters", None)  # which earlier versions did not write
    with storage.refuse_inconsistent(f"{path}: its settings are not consistent"):
        names = [field.name for field in fields(Settings) if field.name != "reducer"]
        values = {name: attributes[name] for name in names}
        made_with = (attributes["method"], attributes["parameters"], attributes["sampling"])
    return Settings(_stored_reducer(path, *made_with, method), **values)


def _stored_reducer(path: Path, name: str, parameters: Any, sampling: Any, method: Any) -> Reducer:
    if method is not None:
        reducer = resolve_reducer(method, sampling or "systematic")
        if (reducer.name, _parameters(reducer)) != (name, parameters):
            raise InvalidInputError(
                f"method is {reducer.name!r} with {_parameters(reducer)}, and {path} was made with "
                f"{name!r} and {parameters}; pass that, or leave method out."
            )
        return reducer
    remedy = f"method {name!r} with {parameters} cannot be made from what {path} says; pass method"
    made = None
    if name in CONSTRUCTIONS and sampling is not None:
        try:
            made = SensitivityReducer(CONSTRUCTIONS[name](**parameters), sampling)
        except (CoresetError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(f"{remedy} ({error}).") from error
    if made is None or _parameters(made) != parameters:
        raise InvalidInputError(f"{remedy}, the object that it was made with.")
    return made


def _parameters(reducer: Reducer) -> Any:
    # As they come back from a store: tuples have become lists.
    return json.loads(json.dumps(thaw(freeze(reducer.parameters(), "parameters"))))


_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "floats", "U": "text"}


@dataclass(frozen=True)
class RowSchema:
    """Columns, dtype and kind of labels that later rows must agree with.

    Attributes
    ----------
    n_features : int
    dtype : {"float32", "float64"}
    sparse : bool
    has_labels : bool
    labels : {"b", "i", "u", "f", "U"} or None
        Kind of the labels; None where there are none, or none was seen yet.
    columns : tuple of str or None
    """

    n_features: int
    dtype: str
    sparse: bool
    has_labels: bool
    labels: str | None = None
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, blocks: RowBlocks, before: RowSchema | None) -> RowSchema:
        """Return the schema of rows to come: that of the rows before, which they must agree with.

        Raises
        ------
        InvalidInputError
            Which says what differs.
        """
        schema = cls(
            n_features=blocks.schema.n_features,
            dtype=blocks.schema.dtype.name,
            sparse=blocks.sparse,
            has_labels=blocks.has_labels,
            columns=blocks.columns,
        )
        if before is not None:
            before.check(schema)
        return before or schema

    @classmethod
    def from_json(cls, values: dict[str, Any] | None) -> RowSchema | None:
        """Return the schema of a stored dictionary; None where the store has none."""
        if values is None:
            return None
        columns = values["columns"]
        return cls(**{**values, "columns": None if columns is None else tuple(columns)})

    def check(self, other: RowSchema) -> None:
        """Check that further rows have this schema."""
        if other.n_features != self.n_features:
            raise InvalidInputError(
                f"X has {other.n_features} features, and the rows before it have "
                f"{self.n_features}; pass the same columns."
            )
        if self.columns and other.columns and self.columns != other.columns:
            raise InvalidInputError(
                f"X has the columns {list(other.columns)}, and the rows before it have "
                f"{list(self.columns)}; select these, in this order."
            )
        if other.sparse != self.sparse:
            words = {True: "sparse", False: "dense"}
            raise InvalidInputError(
                f"X is {words[other.sparse]}, and the rows before it are {words[self.sparse]}; "
                f"convert it."
            )
        if np.dtype(other.dtype).itemsize > np.dtype(self.dtype).itemsize:
            raise InvalidInputError(
                f"X is {other.dtype}, and the rows before it are {self.dtype}, which would lose "
                f"digits; convert it with .astype({self.dtype!r}), or begin with {other.dtype}."
            )
        if other.has_labels != self.has_labels:
            now, before = ("given", "none") if other.has_labels else ("missing", "labels")
            raise InvalidInputError(
                f"y is {now}, and the rows before have {before}; give labels to all rows or to "
                f"none."
            )

    def fit(self, points: WeightedPoints) -> tuple[WeightedPoints, RowSchema]:
        """Bring rows that were read to the schema; return it with the kind of labels filled in.

        Raises
        ------
        InvalidInputError
            If the labels are of another kind.
        """
        labels, schema = points.labels, self
        if labels is not None and len(labels):
            labels = canonical(labels)
            kind = labels.dtype.kind
            if self.labels is None:
                schema = replace(self, labels=kind)
            elif kind != self.labels:
                raise InvalidInputError(
                    f"y holds {_KINDS[kind]}, and the labels before are {_KINDS[self.labels]}; "
                    f"convert it."
                )
        rows: Any = points.points
        if sp.issparse(rows) != self.sparse:  # Dask does not always know that blocks are sparse
            rows = sp.csr_array(rows) if self.sparse else rows.toarray()
        rows = rows.astype(self.dtype, copy=False)
        return replace(points, points=rows, labels=labels), schema


def write_state(
    path: Path, kind: str, state: dict[str, Any], parts: Sequence[WeightedPoints] = ()
) -> None:
    """Write plain JSON values and weighted rows as a Zarr group, in a directory being filled."""
    union = with_canonical_labels(concatenate_parts(parts)) if parts else None
    arrays, dims, layout = ({}, {}, {}) if union is None else to_arrays(union)
    # Nested, so that no key of the layout can be one of ours.
    attributes = {**layout, "lengths": [len(part) for part in parts], "state": state}
    storage.fill_group(
        path, storage.GroupContents(arrays, dims, attributes, kind, SCHEMA_VERSION).checked()
    )


def read_state(
    path: Path, kind: str, build: Callable[[dict[str, Any], list[WeightedPoints]], T]
) -> T:
    """Return ``build(state, parts)`` of the contents that `write_state` wrote.

    Raises
    ------
    StoreError
        It is missing, incomplete, damaged, of another version, or inconsistent.
    """
    arrays, attributes = storage.read_group(path, kind=kind, schema_version=SCHEMA_VERSION)
    with storage.refuse_inconsistent(f"{path}: not consistent"):
        return build(attributes["state"], _parts(arrays, attributes))


def _parts(arrays: Mapping[str, AnyArray], attributes: Mapping[str, Any]) -> list[WeightedPoints]:
    lengths = attributes.get("lengths", [])  # manifests of earlier versions have none
    if not lengths:
        return []
    union = from_arrays(arrays, attributes)
    if sum(lengths) != len(union):
        raise ValueError(f"{len(union)} rows instead of {sum(lengths)}")
    stops = np.cumsum(lengths).tolist()
    return [
        union.take(slice(stop - length, stop)) for length, stop in zip(lengths, stops, strict=True)
    ]


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
    """Write a version; an error where it exists already, or a later one.

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
    if newest(root) >= version:  # before the work of writing, and once more after it
        raise overtaken_error(root, version)
    with ExitStack() as turn:

        def nothing_there() -> bool:
            turn.enter_context(_locked(root))
            if newest(root) >= version:
                raise overtaken_error(root, version)
            return False

        try:
            with new_store(target, nothing_there) as scratch:
                fill(scratch)
        except StoreError as error:
            # Whoever is first also clears away what the others were writing.
            if newest(root) >= version:
                raise overtaken_error(root, version) from error
            raise


@contextmanager
def _locked(root: Path) -> Iterator[None]:
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
    with (root / ".lock").open("w") as file:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def overtaken_error(root: Path, version: int) -> StoreError:
    """Return the error of a change that would have made `version`, where another came first."""
    return StoreError(
        f"{root.parent}: another writer has changed it since it was opened (version "
        f"{newest(root)} is there, this change is based on {version - 1}); nothing was written; "
        f"open it again and repeat the change"
    )


def sweep(root: Path, keep: Callable[[int, str], bool]) -> None:
    """Remove unused members of versions, and leftovers of killed processes.

    Parameters
    ----------
    root : Path
    keep : callable
        ``keep(version, name)`` says whether a member of a version is still needed. Asked of
        versions up to the highest one that was there when the sweep began.
    """
    versions = versions_in(root)
    last = max(versions, default=0)
    for version in versions:
        folder = folder_of(root, version)
        members = _entries(folder)
        gone = [path for path in members if not keep(version, path.name)]
        for path in gone:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                # The change is made: what stays behind is no failure, and the next one's to clear.
                with suppress(OSError):
                    path.unlink()
        # Also where an earlier sweep was killed between the last member and the folder.
        if len(gone) == len(members) and version < last:
            with suppress(OSError):  # where a member could not be removed
                folder.rmdir()
    for path in _entries(root):
        # A change that would have made a version which is there can no longer succeed.
        digits = path.name[1:13]
        if is_leftover(path) and _NAME.fullmatch(digits) and int(digits) <= last:
            shutil.rmtree(path, ignore_errors=True)


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
