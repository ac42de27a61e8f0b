"""What a tree that follows a source remembers of it: a part of every version, under its digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.followed import FollowOptions, SourceState, detect_of


@dataclass(frozen=True)
class SourceRecord:
    """The source as it was when it was last looked at, and how it is read.

    Attributes
    ----------
    kind, name : str
        Of `SourceState`.
    options : mapping
        ``FollowOptions.record``: a source is followed in one way. Of an array also its dtypes.
    keep : int or None
        Versions of the tree that are kept; None for all.
    mark : str or None
        Snapshot or version of the source.
    stamps : mapping of str to str
        Of the parts, by the names of their leaves.
    """

    kind: str
    name: str
    options: Mapping[str, Any]
    keep: int | None = None
    mark: str | None = None
    stamps: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> SourceRecord | None:
        """Return the record of `to_json`; None of a tree that follows nothing."""
        if values is None:
            return None
        record = cls(**values)
        if not all(isinstance(stamp, str) for stamp in record.stamps.values()):
            raise ValueError("a stamp is no text")
        return record

    def check(self, where: str, state: SourceState, options: FollowOptions) -> None:
        """Check that a state is one of the same source, opened in the same way.

        Raises
        ------
        InvalidInputError
            It is another source; the error names both.
        """
        remedy = "pass that, or another path for a view of this one"
        if (state.kind, state.name) != (self.kind, self.name):
            raise InvalidInputError(
                f"source is {state.name!r} ({state.kind}), and {where} follows {self.name!r} "
                f"({self.kind}); {remedy}."
            )
        for name, value in options.record.items():
            if (known := self.options.get(name)) != value:
                raise InvalidInputError(
                    f"{name} is {value!r}, and {where} follows {self.name!r} with {known!r}; "
                    f"{remedy}."
                )
        self._check_dtypes(where, state)
        self._check_detect(where, state, options)
        names = {part.name for part in state.parts}
        if self.stamps and names.isdisjoint(self.stamps):
            listed = state.name == "a list of files" and names
            if listed:
                raise InvalidInputError(
                    f"source lists {min(names)!r} and no file that {where} follows, such as "
                    f"{min(self.stamps)!r}; {remedy}."
                )

    @staticmethod
    def options_of(state: SourceState, options: FollowOptions) -> dict[str, Any]:
        """Return what is remembered of how a source is read."""
        return {**options.record, "dtypes": dict(state.dtypes)}

    def _check_dtypes(self, where: str, state: SourceState) -> None:
        """Refuse an array that was written anew with another dtype, whatever its rows count as."""
        known: Mapping[str, str] = self.options.get("dtypes", {})  # which earlier views have not
        for name, dtype in state.dtypes.items():
            before = known.get(name, dtype)
            if dtype != before:
                raise InvalidInputError(
                    f"{name} is {dtype}, and {where} follows {self.name!r} with {before}; the view "
                    f"is as it was. Write the array with {before}, or follow it from another path."
                )

    def _check_detect(self, where: str, state: SourceState, options: FollowOptions) -> None:
        """Refuse stamps of another kind: every part would look changed, and be read again."""
        known = {kind for kind in map(detect_of, self.stamps.values()) if kind is not None}
        now = {kind for kind in (detect_of(part.stamp) for part in state.parts) if kind is not None}
        if known and now and known.isdisjoint(now):
            before = min(known)
            raise InvalidInputError(
                f"detect is {options.detect!r}, and {where} follows {self.name!r} with {before!r}: "
                f"all of the source would be read again; pass detect={before!r}, or another path "
                f"for a view by {options.detect!r}."
            )
