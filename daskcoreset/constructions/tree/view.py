"""The source of a tree that follows one: how it is looked at, and whether it is still the same."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.source_record import SourceRecord
from daskcoreset.core.errors import InvalidInputError, StoreError, warn_user
from daskcoreset.core.locations import locate
from daskcoreset.core.validation import as_int
from daskcoreset.inputs.followed import FollowOptions, SourceState, look
from daskcoreset.inputs.options import is_path
from daskcoreset.inputs.places import from_root, is_glob

if TYPE_CHECKING:
    from daskcoreset.constructions.tree.manifest import Manifest
    from daskcoreset.constructions.tree.places import Place

# Leaves that are read at a time: each holds a block, and on a cluster waits for its workers.
_MAX_THREADS = 8


@dataclass(frozen=True, eq=False)
class SourceView:
    """A source, and how it is followed.

    Attributes
    ----------
    source : object
        As `CoresetTree.follow` takes it.
    options : FollowOptions
    keep : int or None
    """

    source: Any
    options: FollowOptions
    keep: int | None

    def __post_init__(self) -> None:
        if self.keep is not None:
            as_int("keep", self.keep, remedy="pass a larger int, or None to keep all versions")
        object.__setattr__(self, "source", _from_here(self.source))

    @property
    def n_threads(self) -> int:
        """Leaves that are read at a time."""
        return max(1, min(_MAX_THREADS, os.cpu_count() or 1))

    def look(self, manifest: Manifest | None) -> tuple[SourceState, SourceRecord]:
        """Return the source as it is, and what is remembered of how it is read.

        Raises
        ------
        InvalidInputError
            It is not the one that the tree follows.
        """
        before = None if manifest is None else manifest.source
        mark, stamps = (None, None) if before is None else (before.mark, before.stamps)
        try:
            state = look(self.source, self.options, mark, stamps)
        except (InvalidInputError, StoreError) as error:
            # Of files the error names one.
            if manifest and before is not None and before.kind != "files" and error.args:
                where, said = manifest.place.name, str(error.args[0]).rstrip(".")
                follows = f"source does not open as {before.name!r}, which {where} follows"
                error.args = (f"{follows}: {said}; the view is as it was.", *error.args[1:])
            raise
        if manifest is not None:
            if before is not None:
                before.check(manifest.place.name, state, self.options)
            elif manifest.next_uid:
                raise InvalidInputError(
                    f"{manifest.place.name} is a tree that follows no source; choose another path."
                )
        keep = None if self.keep is None else int(self.keep)
        options = SourceRecord.options_of(state, self.options)
        return state, SourceRecord(state.kind, state.name, options, keep)

    def refuse_among_data(self, place: Place) -> None:
        """Refuse a place among the data, where the view would be read, or be lost with them.

        Raises
        ------
        InvalidInputError
            A glob matches it, or it is inside the store or folder that is followed.
        """
        sources = self.source if isinstance(self.source, (list, tuple)) else [self.source]
        if not isinstance(place.path, Path):
            return
        path = Path(os.path.realpath(place.path))
        for source in (one for one in sources if isinstance(one, (str, os.PathLike))):
            given = locate("source", source)
            if not isinstance(given, Path):  # a URL
                continue
            if is_glob(source) and path.match(str(given)):
                raise InvalidInputError(
                    f"path {place.name!r} matches source {os.fspath(source)!r}, which would list "
                    f"the view as a file; choose a path outside of it, or a narrower glob, such as "
                    f'"*.npy".'
                )
            if path.is_relative_to(given):
                raise InvalidInputError(
                    f"path {place.name!r} is inside source {os.fspath(source)!r}, and would be "
                    f"lost when that is written anew; choose a path outside of it."
                )

    def warn_of_no_match(self) -> None:
        """Warn that patterns match no file, of a view without leaves."""
        sources = self.source if isinstance(self.source, (list, tuple)) else [self.source]
        if patterns := [os.fspath(source) for source in sources if is_glob(source)]:
            named = " and ".join(map(repr, patterns))
            warn_user(
                f"source matches no file: {named}; the view is empty until refresh() finds some. "
                f"Check the pattern."
            )

    def check_settings(
        self, place: Place, settings: Settings, wanted: Settings, random_state: Any
    ) -> None:
        """Check that a view that is there has the settings that are asked for.

        Raises
        ------
        InvalidInputError
            It has others.
        """
        if random_state is None:  # which asks for no particular seed
            wanted = replace(wanted, seed=settings.seed)
        for name in ("size", "inner_size", "seed", "n_clusters", "on_invalid", "metric"):
            asked, known = getattr(wanted, name), getattr(settings, name)
            if asked != known:
                title = "random_state" if name == "seed" else name
                raise InvalidInputError(
                    f"{title} is {asked!r}, and the view at {place.name} was made with {known!r}; "
                    f"pass that, or another path."
                )
        asked, known = (getattr(one.reducer, "sampling", None) for one in (wanted, settings))
        if asked != known:
            raise InvalidInputError(
                f"sampling is {asked!r}, and the view at {place.name} was made with {known!r}; "
                f"pass that, or another path."
            )


def _from_here(source: Any) -> Any:
    """Return a source whose relative paths mean the same when the process goes elsewhere."""
    if not is_path(source):
        return source
    if isinstance(source, (list, tuple)):
        return [_from_here(one) for one in source]
    text = os.fspath(source)
    return source if "://" in text else from_root(text)
