"""A stream on the disk: what was decided once, and the newest state in versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskcoreset.core.validation import check_flag
from daskcoreset.core.atomic import new_directory
from daskcoreset.core.errors import StoreError
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.constructions.tree.buckets import Buckets, Waiting
from daskcoreset.constructions.tree.feeding import State
from daskcoreset.constructions.tree.schema import Form
from daskcoreset.constructions.tree.nodes import unite
from daskcoreset.constructions.tree.saved import Settings, inside, read_points, write_points
from daskcoreset.constructions.tree.versions import commit, folder_of, newest, sweep

__all__ = ["Kept"]

SCHEMA_VERSION = 1
"""Version of the layout of a stored stream; one higher whenever an older reader would fail."""

_KIND = "coreset-stream"
_STATE = "coreset-stream-state"


@dataclass(frozen=True)
class Kept:
    """Where a stream is kept, and the version of its state that was written or read last.

    Attributes
    ----------
    path : Path
    version : int
    """

    path: Path
    version: int

    @classmethod
    def create(cls, path: Path, settings: Settings, state: State, *, overwrite: bool) -> Kept:
        """Make the folder, complete or not at all."""

        def may_replace() -> bool:
            if not path.exists() or (path.is_dir() and not any(path.iterdir())):
                return False
            check_flag("overwrite", overwrite)
            if not overwrite:
                msg = f"{path} exists; CoresetStream.load goes on with a stream that is there, or "
                raise StoreError(f"{msg}choose another path, or save with overwrite=True")
            read_group(path, kind=_KIND, schema_version=SCHEMA_VERSION)  # or refuse what it is
            return True

        may_replace()
        try:
            with new_directory(path, may_replace=may_replace) as scratch:
                kinds: Any = {"kind": _KIND, "schema_version": SCHEMA_VERSION}
                write_group(inside(scratch), {}, {}, settings.write(), **kinds)
                commit(scratch / "states", 1, _writer(state))
        except StoreError:
            raise
        except OSError as error:
            msg = f"could not write {path}: {error}; nothing there was changed"
            raise StoreError(msg) from error
        return cls(path, 1)

    @classmethod
    def open(cls, path: Path, method: Any) -> tuple[Kept, Settings, State]:
        """Read the newest state, or refuse what is there."""
        _, attributes = read_group(path, kind=_KIND, schema_version=SCHEMA_VERSION)
        settings = Settings.read(str(path), attributes, method)
        version = newest(path / "states")
        if not version:
            raise StoreError(f"{path}: its states are missing; restore it from a copy")
        return cls(path, version), settings, _read(folder_of(path / "states", version))

    def write(self, state: State) -> Kept:
        """Write a further state; the one before stays until this one is complete."""
        version = self.version + 1
        commit(self.path / "states", version, _writer(state))
        # One more than is needed, for who is reading it.
        sweep(self.path / "states", lambda number, _: number >= version - 1)
        return Kept(self.path, version)


def _writer(state: State) -> Callable[[Path], None]:
    buckets, form = state.buckets, state.form
    waiting = [unite(buckets.waiting.parts)] if buckets.waiting.parts else []
    said = {
        "levels": list(buckets.levels),
        "n_leaves": buckets.n_leaves,
        "weight": buckets.weight,
        "n_rows": state.n_rows,
        "n_dropped": state.n_dropped,
        "form": None if form is None else form.write(),
    }

    def fill(path: Path) -> None:
        parts = [*buckets.held, *waiting]
        write_points(path, parts, said, kind=_STATE, schema_version=SCHEMA_VERSION)

    return fill


def _read(path: Path) -> State:
    parts, said = read_points(path, kind=_STATE, schema_version=SCHEMA_VERSION)
    try:
        form = None if said["form"] is None else Form.read(said["form"])
        levels = tuple(int(level) for level in said["levels"])
        if len(parts) - len(levels) not in (0, 1) or sorted(levels, reverse=True) != [*levels]:
            raise ValueError(f"{len(parts)} parts on levels {levels}")  # noqa: TRY301
        waiting = Waiting(tuple(parts[len(levels) :]))
        held = tuple(parts[: len(levels)])
        buckets = Buckets(levels, held, waiting, said["n_leaves"], said["weight"])
        return State(buckets, form, said["n_rows"], said["n_dropped"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path}: not consistent ({error!r}); restore it from a copy"
        raise StoreError(msg) from error
