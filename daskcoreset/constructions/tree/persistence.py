"""Settings, weighted rows and numbered versions of streams and trees on disk."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from daskcoreset.constructions.tree.job import INNER_FACTOR, concatenate_parts
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer, resolve_reducer
from daskcoreset.constructions.tree.schema import canonical
from daskcoreset.core.atomic import is_leftover, new_directory
from daskcoreset.core.coreset import freeze, thaw
from daskcoreset.core.errors import CoresetError, InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.core.points import WeightedPoints, from_arrays, to_arrays
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.core.typing import Sampling
from daskcoreset.core.validation import is_choice, is_int
from daskcoreset.sensitivities import CONSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zarr.storage import StorePath

LEAF_FACTOR = 32

"""Rows of a leaf of a stream for each row of a coreset that is asked of it."""


@dataclass(frozen=True)
class Settings:
    """How a stream or a stored tree grows; what is decided once.

    Attributes
    ----------
    reducer : Reducer
    size, inner_size : int
        Rows of a coreset that is asked for, and of the nodes.
    seed : int
    on_invalid : {"raise", "drop"}
    leaf_size : int or None
        Rows of a leaf of a stream.
    save_every : int or None
        Batches of a stream after which it is saved.
    n_clusters : int or None
        Clusters that the coresets are for, where the construction does not say.
    """

    reducer: Reducer
    size: int
    inner_size: int
    seed: int
    on_invalid: Literal["raise", "drop"] = "raise"
    leaf_size: int | None = None
    save_every: int | None = None
    n_clusters: int | None = None

    @classmethod
    def checked(
        cls,
        method: Any,
        sizes: Mapping[str, Any],
        *,
        n_clusters: int | None,
        random_state: RandomState,
        sampling: Sampling,
        on_invalid: Any,
    ) -> Settings:
        """Check what was asked for, and fill in what was left out.

        Parameters
        ----------
        method, n_clusters, random_state, sampling, on_invalid
            As in `daskcoreset.build`.
        sizes : mapping
            ``size`` and ``inner_size``; of a stream also ``leaf_size`` and ``save_every``.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If something cannot be used.
        """
        reducer = resolve_reducer(method, sampling, n_clusters)
        found = {name: _whole(name, value) for name, value in sizes.items()}
        size, inner, leaf = (found.get(name) for name in ("size", "inner_size", "leaf_size"))
        if size is None:
            raise InvalidTypeError("size must be an integer, got None; pass an int.")
        if inner is None:
            inner = INNER_FACTOR * size
        elif inner < size:
            raise InvalidInputError(
                f"inner_size={inner} is below size={size}: a node cannot give more rows than it "
                f"keeps; pass at least {size}, or leave it out."
            )
        if leaf is None:
            leaf = max(LEAF_FACTOR * size, inner + 1) if "leaf_size" in sizes else None
        elif leaf <= inner:
            raise InvalidInputError(
                f"leaf_size={leaf} is not above inner_size={inner}: a leaf would not be reduced; "
                f"pass more, or a smaller inner_size."
            )
        if not is_choice(on_invalid, ("raise", "drop")):
            raise InvalidInputError(
                f'on_invalid must be "raise" or "drop", got {on_invalid!r}; pass one of these.'
            )
        every = found.get("save_every")
        seed, k = resolve_seed(random_state), None if n_clusters is None else int(n_clusters)
        return cls(reducer, size, inner, seed, on_invalid, leaf, every, k)

    def write(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "method": self.reducer.name,
            "parameters": thaw(freeze(self.reducer.parameters(), "parameters")),
            "sampling": getattr(self.reducer, "sampling", None),
            "size": self.size,
            "inner_size": self.inner_size,
            "seed": self.seed,
            "on_invalid": self.on_invalid,
            "leaf_size": self.leaf_size,
            "save_every": self.save_every,
            **({} if self.n_clusters is None else {"n_clusters": self.n_clusters}),
        }

    @classmethod
    def read(cls, where: str, attributes: Mapping[str, Any], method: Any) -> Settings:
        """Return the settings that `write` wrote, with the method given or its own.

        Raises
        ------
        InvalidInputError
            If the method is not that of the store, or cannot be made from what is written.
        StoreError
            If the settings are not consistent.
        """
        try:
            return cls(
                reducer=_reducer(where, attributes, method),
                size=int(attributes["size"]),
                inner_size=int(attributes["inner_size"]),
                seed=int(attributes["seed"]),
                on_invalid=attributes["on_invalid"],
                leaf_size=attributes["leaf_size"],
                save_every=attributes["save_every"],
                n_clusters=attributes.get("n_clusters"),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CoresetError):
                raise
            msg = f"{where}: its settings are not consistent ({error!r}); restore it from a copy"
            raise StoreError(msg) from error


def _whole(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not is_int(value):
        raise InvalidTypeError(f"{name} must be an integer, got {value!r}; pass an int.")
    if value < 1:
        raise InvalidInputError(f"{name} must be at least 1, got {value}; pass a larger int.")
    return int(value)


def _reducer(where: str, attributes: Mapping[str, Any], method: Any) -> Reducer:
    name, parameters = attributes["method"], attributes["parameters"]
    sampling = attributes["sampling"]
    if method is not None:
        found = resolve_reducer(method, sampling or "systematic")
        if found.name != name or _plain(found) != parameters:
            raise InvalidInputError(
                f"method is {found.name!r} with {_plain(found)}, and {where} was made with "
                f"{name!r} and {parameters}; pass that, or leave method out."
            )
        return found
    remedy = f"method {name!r} with {parameters} cannot be made from what {where} says; pass method"
    if name not in CONSTRUCTIONS or sampling is None:
        raise InvalidInputError(f"{remedy}, the object that it was made with.")
    try:
        made = SensitivityReducer(CONSTRUCTIONS[name](**parameters), sampling)
    except (CoresetError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"{remedy} ({error}).") from error
    if _plain(made) != parameters:
        raise InvalidInputError(f"{remedy}, the object that it was made with.")
    return made


def _plain(reducer: Reducer) -> Any:
    # As they come back from a store: tuples have become lists.
    return json.loads(json.dumps(thaw(freeze(reducer.parameters(), "parameters"))))


def inside(path: Path) -> StorePath:
    """Return a place in a directory that is being filled, and will be flushed as a whole.

    `write_group` completes and flushes what it writes to a path, which would be done twice.
    """
    from zarr.storage import LocalStore, StorePath, WrapperStore

    return StorePath(WrapperStore(LocalStore(path)))


def write_points(
    path: Path,
    parts: Sequence[WeightedPoints],
    attributes: dict[str, Any],
    *,
    kind: str,
    schema_version: int,
) -> None:
    """Write weighted rows as one Zarr group, in a directory that is being filled."""
    arrays: dict[str, Any] = {}
    dims: dict[str, tuple[str, ...]] = {}
    lengths = [len(part) for part in parts]
    layout: dict[str, Any] = {}
    if parts:
        union = concatenate_parts(parts)
        labels = None if union.labels is None else canonical(union.labels)
        union = WeightedPoints(union.points, union.weights, union.indices, labels)
        arrays, dims, layout = to_arrays(union)
    # Nested, so that no key of the layout can be one of ours.
    said = {**layout, "lengths": lengths, "state": attributes}
    write_group(inside(path), arrays, dims, said, kind=kind, schema_version=schema_version)


def read_points(
    path: Path, *, kind: str, schema_version: int
) -> tuple[list[WeightedPoints], dict[str, Any]]:
    """Read what `write_points` wrote, or refuse it.

    Raises
    ------
    StoreError
        It is missing, incomplete, damaged, of another version, or inconsistent.
    """
    arrays, attributes = read_group(path, kind=kind, schema_version=schema_version)
    try:
        lengths, state = list(attributes["lengths"]), dict(attributes["state"])
        if not lengths:
            return [], state
        union = from_arrays(arrays, attributes)
        stops = np.cumsum(lengths).tolist()
        if stops[-1] != len(union):
            raise ValueError(f"{len(union)} rows instead of {stops[-1]}")  # noqa: TRY301
        starts = [0, *stops[:-1]]
        return [union.take(slice(i, j)) for i, j in zip(starts, stops, strict=True)], state
    # The digest was right, so this is a writer that does not keep to the layout.
    except (CoresetError, KeyError, TypeError, ValueError) as error:
        msg = f"{path}: not consistent ({error}); restore it from a copy"
        raise StoreError(msg) from error


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
        import fcntl
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
