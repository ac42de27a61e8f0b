"""Streams and stored trees on the disk: settings, rows of one schema, states."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np

from daskcoreset.constructions.tree.chain import Head
from daskcoreset.constructions.tree.job import (
    Settings,
    canonical,
    concatenate_parts,
    with_canonical_labels,
)
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer, resolve_reducer
from daskcoreset.core import storage
from daskcoreset.core.atomic import new_store
from daskcoreset.core.contents import FindProblem, GroupContents, refuse_inconsistent
from daskcoreset.core.coreset import freeze, thaw
from daskcoreset.core.errors import CoresetError, InvalidInputError, StoreError, warn_user
from daskcoreset.core.linalg import csr_rows
from daskcoreset.core.points import WeightedPoints, from_arrays, to_arrays
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_choice, check_flag, names_apart
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import CONSTRUCTIONS

T = TypeVar("T")

# Version of the layout of streams and trees; one higher whenever an older reader would fail. Since
# version 2 there is a chain. Older stores are read, and become version 2 with their next change.
# Of version 3 are the settings of trees that follow a source, of version 4 those by the metric
# cosine, by which an earlier reader would not divide; all else is still version 2.
SCHEMA_VERSION = 4
_FOLLOWING_VERSION = 3
OLDEST_VERSION = 1
_WRITTEN_VERSION = 2


def create_store(  # noqa: PLR0917 - all of them are always given
    path: Path,
    settings: GroupContents,
    fill: Callable[[Path, Head], Head],
    remedy: str,
    overwrite: Any,
    refuse_others: Callable[[], None],
) -> Head:
    """Make a folder with the settings of a stream or tree, complete or not at all.

    Parameters
    ----------
    path : Path
    settings : GroupContents
        Of `settings_contents`.
    fill : callable
        Writes what comes into the folder beside them; ``fill(folder, head)`` gets the head before
        the first version, and returns the one of what it wrote.
    remedy : str
        What to do where something is there.
    overwrite : bool
        Whether to replace a store of this kind that is there.
    refuse_others : callable
        Raises an error where the folder holds anything that is not the store's, and would go
        with it.

    Returns
    -------
    Head
        The one that `fill` returned.
    """

    def may_replace() -> bool:
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return False
        check_flag("overwrite", overwrite)
        if not overwrite:
            raise StoreError(f"{path} exists; {remedy}")
        read_group(path, settings.kind)  # or refuse what it is
        refuse_others()
        return True

    may_replace()  # before the work of writing, and once more after it
    with new_store(path, may_replace) as scratch:
        storage.fill_group(scratch, settings)
        return fill(scratch, Head.before_first(settings.digest))


def settings_contents(settings: Settings, kind: str, *, follows: bool = False) -> GroupContents:
    """Return what is written of the settings of a stream or tree, which may follow a source."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    reducer: Reducer = values.pop("reducer")
    values |= {
        "method": reducer.name,
        "parameters": _parameters(reducer),
        "sampling": getattr(reducer, "sampling", None),
        # So that two stores with the same settings are told apart.
        "identity": uuid4().hex,
    }
    written = _FOLLOWING_VERSION if follows else _WRITTEN_VERSION
    if settings.metric == "euclidean":  # as in stores of before
        del values["metric"]
    else:
        written = SCHEMA_VERSION
    return GroupContents({}, {}, values, kind, written).checked()


def is_view(contents: GroupContents) -> bool:
    """Whether settings say for certain that they are of a tree that follows a source."""
    return contents.schema_version == _FOLLOWING_VERSION


def read_group(path: Path, kind: str, find_problem: FindProblem | None = None) -> GroupContents:
    """Read a group of any version that is known."""
    return storage.read_folder(
        path,
        kind=kind,
        schema_version=SCHEMA_VERSION,
        oldest=OLDEST_VERSION,
        find_problem=find_problem,
    )


class Origin(NamedTuple):
    """The settings as they are stored, from which a chain of versions begins.

    Attributes
    ----------
    digest : str
    chained : bool
        Whether the store was made with a chain.
    """

    digest: str
    chained: bool


def origin_of(contents: GroupContents) -> Origin:
    """Return what the versions of a store begin from, by its settings."""
    return Origin(contents.digest, chained=contents.schema_version > 1)


def settings_from(contents: GroupContents, path: str, method: Any) -> tuple[Settings, Origin]:
    """Return the settings that were written, with the method passed or the stored one.

    Raises
    ------
    InvalidInputError
        If the method is not that of the store, or cannot be made from what is written.
    StoreError
        If the settings are not consistent.
    """
    # Earlier versions did not write the clusters.
    attributes: dict[str, Any] = {"n_clusters": None, "metric": "euclidean", **contents.attributes}
    with refuse_inconsistent(f"{path}: its settings are not consistent"):
        names = [field.name for field in fields(Settings) if field.name != "reducer"]
        values = {name: attributes[name] for name in names}
        check_choice("metric", values["metric"], "euclidean", "cosine")
        made_with = (attributes["method"], attributes["parameters"], attributes["sampling"])
    return Settings(_stored_reducer(path, *made_with, method), **values), origin_of(contents)


def _stored_reducer(path: str, name: str, parameters: Any, sampling: Any, method: Any) -> Reducer:
    if method is not None:
        reducer = resolve_reducer(method, sampling or "systematic")
        if (reducer.name, _parameters(reducer)) != (name, parameters):
            raise InvalidInputError(
                f"method is {reducer.name!r} with {_parameters(reducer)}, and {path} was made with "
                f"{name!r} and {parameters}; pass that, or leave method out."
            )
        if (drawn := getattr(reducer, "sampling", None)) != sampling:
            raise InvalidInputError(
                f"method has sampling {drawn!r}, and {path} was made with {sampling!r}; pass that, "
                f"or leave method out."
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
    keys : dict of str to str
        Names of labels and weights, by the names of the arguments; of a stored tree those of the
        last leaves that had any. Rows of other names agree as well.
    """

    n_features: int
    dtype: str
    sparse: bool
    has_labels: bool
    labels: str | None = None
    columns: tuple[str, ...] | None = None
    keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: RowBlocks, before: RowSchema | None) -> RowSchema:
        """Return the schema of rows to come: that of the rows before, which they must agree with.

        Names of columns are those of the first rows that have any.

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
        if before is None:
            return schema
        before.check(schema)
        return before.with_columns(schema.columns)

    def with_columns(self, columns: tuple[str, ...] | None) -> RowSchema:
        """Return the schema with the names that later rows have, where it has none."""
        if self.columns is not None or columns is None:
            return self
        warn_user(
            f"X has the columns {list(columns)}, and the rows before it had no names: they are "
            f"taken to be in this order. Pass data frames from the first batch on, or none."
        )
        return replace(self, columns=columns)

    def followed_by(self, other: RowSchema) -> RowSchema:
        """Return the schema with the names of columns, labels and weights of a further leaf."""
        return replace(self.with_columns(other.columns), keys=self.keys | other.keys)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, without names of labels and weights where there are none."""
        return {name: value for name, value in asdict(self).items() if name != "keys" or value}

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
            found, expected = names_apart(other.columns, self.columns)
            raise InvalidInputError(
                f"X has the columns {found}, and the rows before it have {expected}; select "
                f"these, in this order."
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
        # Dask does not always know that blocks are sparse.
        if isinstance(rows, np.ndarray) == self.sparse:
            rows = csr_rows(rows) if self.sparse else rows.toarray()
        rows = rows.astype(self.dtype, copy=False)
        if rows is points.points and labels is points.labels:
            return points, schema
        return replace(points, points=rows, labels=labels), schema


def state_contents(
    kind: str,
    state: dict[str, Any],
    parts: Sequence[WeightedPoints] = (),
    link: Mapping[str, str] | None = None,
) -> GroupContents:
    """Return plain JSON values and weighted rows as the contents of a Zarr group.

    Parameters
    ----------
    kind : str
    state : dict
        Plain JSON values.
    parts : sequence of WeightedPoints
    link : mapping, optional
        `Head.link` of the version before, where the group is a version.
    """
    union = with_canonical_labels(concatenate_parts(parts)) if parts else None
    arrays, dims, layout = ({}, {}, {}) if union is None else to_arrays(union)
    # Nested, so that no key of the layout can be one of ours.
    attributes = {**layout, "lengths": [len(part) for part in parts], "state": state}
    if link is not None:
        attributes["link"] = dict(link)
    return GroupContents(arrays, dims, attributes, kind, _WRITTEN_VERSION).checked()


def state_from(
    contents: GroupContents,
    path: str,
    build: Callable[[dict[str, Any], list[WeightedPoints]], T],
) -> T:
    """Return ``build(state, parts)`` of contents that `state_contents` made.

    Raises
    ------
    StoreError
        They are not consistent.
    """
    with refuse_inconsistent(f"{path}: not consistent"):
        attributes: Mapping[str, Any] = contents.attributes
        return build(attributes["state"], _parts(contents.arrays, attributes))


def link_of(contents: GroupContents) -> Mapping[str, str] | None:
    """Return the link of a version; None for one of before there was a chain."""
    link: Any = contents.attributes.get("link")
    return link if isinstance(link, Mapping) and contents.schema_version > 1 else None


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
