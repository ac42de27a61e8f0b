"""Streams and stored trees on the disk: settings, rows of one schema, states."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.tree.job import (
    Settings,
    concatenate_parts,
    with_canonical_labels,
)
from daskcoreset.constructions.tree.place import Files, Place
from daskcoreset.constructions.tree.reducer import method_for
from daskcoreset.core.coreset import freeze, thaw
from daskcoreset.core.linalg import csr_rows
from daskcoreset.core.messages import warn_user
from daskcoreset.core.points import WeightedPoints, from_arrays, to_arrays
from daskcoreset.core.typing import Metric
from daskcoreset.core.validation import columns_error, shown
from daskcoreset.errors import CoresetError, InvalidInputError
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube
from daskcoreset.sensitivities import CONSTRUCTIONS
from daskcoreset.storage.group import GroupContents, group_files, read_files


def settings_values(settings: Settings) -> dict[str, Any]:
    """Return what is written of the settings of a stream or tree, as plain JSON values."""
    return {**settings.values, **_named(settings.method)}


def settings_from(stored: Mapping[str, Any], path: str, method: Any) -> Settings:
    """Return the settings that were written, with the method passed or the stored one.

    Raises
    ------
    InvalidInputError
        If the method is not that of the store, or cannot be made from what is written.
    """
    made_with = {name: stored[name] for name in ("method", "parameters")}
    values = {name: value for name, value in stored.items() if name not in made_with}
    name, parameters = made_with.values()
    given, n_clusters = method, values["n_clusters"] if isinstance(method, str) else None
    if method is None and name in CONSTRUCTIONS:
        with suppress(CoresetError, TypeError, ValueError, AttributeError):
            method = CONSTRUCTIONS[name](**parameters)
    if method is not None:
        method = method_for(method, n_clusters)
        if _named(method) == made_with:
            return Settings(method, **values)
    raise InvalidInputError(
        f"method is {shown(given)}, and {path} was made with {name!r} and {parameters}",
        argument="method",
        remedy="pass method, the object that it was created with",
    )


def _named(method: Any) -> dict[str, Any]:
    """Return name and parameters of a method as they come back: tuples have become lists."""
    parameters = thaw(freeze(method.parameters(), "parameters"))
    return {"method": method.name, "parameters": json.loads(json.dumps(parameters))}


# X, y and sample_weight.
Data: TypeAlias = tuple[Any, Any, Any]

_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "floats", "U": "text"}


def _refuse_other(text: str, before: Any, now: Any, remedy: str) -> None:
    if now != before:
        raise InvalidInputError(
            f"{text.format(now)} instead of {before}, unlike the rows before",
            argument=text.partition(" ")[0],
            remedy=remedy,
        )


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
        Kind of the labels. None where there are none, or none was seen yet.
    columns : sequence of str or None
    metric : {"euclidean", "cosine"}
        By "cosine" rows are divided by their lengths, as the first rows are.
    keys : dict of str to str
        Names of labels and weights, by the names of the arguments; of a stored tree those of the
        last leaves that had any. Rows of other names agree as well.
    """

    n_features: int
    dtype: str
    sparse: bool
    has_labels: bool
    labels: str | None = None
    columns: Sequence[str] | None = None
    metric: Metric = "euclidean"
    keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: RowBlocks) -> RowSchema:
        """Return the schema of rows that are not read yet."""
        return cls(
            n_features=blocks.schema.n_features,
            dtype=blocks.schema.dtype.name,
            sparse=blocks.sparse,
            has_labels=blocks.has_labels,
            columns=blocks.columns,
            metric=blocks.schema.metric,
            keys=dict(blocks.keys),
        )

    def followed_by(self, other: RowSchema) -> RowSchema:
        """Return the schema after further rows, which must agree with it.

        Names of columns are those of the first rows that have any.
        """
        self.check(other)
        if self.columns is None and other.columns is not None:
            warn_user(
                f"X has the columns {list(other.columns)}, and the rows before it had no names: "
                "they are taken to be in this order. Pass data frames from the first batch on, or "
                "none."
            )
        columns = self.columns or other.columns
        return replace(self, columns=columns, keys=self.keys | other.keys)

    def check(self, other: RowSchema) -> None:
        """Check that further rows have this schema, before they are read.

        Raises
        ------
        InvalidInputError
            Which says what differs.
        """
        if self.columns and other.columns and [*self.columns] != [*other.columns]:
            raise columns_error(other.columns, self.columns, "the tree")
        forms, given = ("dense", "sparse"), ("missing", "given")
        is_unit = self.metric == "cosine"
        for text, before, now, remedy in (
            ("X has {} features", self.n_features, other.n_features, "pass the same columns"),
            ("X is {}", forms[self.sparse], forms[other.sparse], "convert it"),
            # Narrower rows fit, and rows that will be divided by their lengths.
            ("X is {}", self.dtype, max(self.dtype, other.dtype), "convert it, or begin with it"),
            ("unit_length is {}", is_unit, is_unit or other.metric == "cosine", "leave it out"),
            ("y is {}", given[self.has_labels], given[other.has_labels], "pass y always or never"),
        ):
            _refuse_other(text, before, now, remedy)

    def fit(self, points: WeightedPoints) -> tuple[WeightedPoints, RowSchema]:
        """Bring rows that were read to the schema. Return it with the kind of labels filled in.

        Raises
        ------
        InvalidInputError
            If the labels are of another kind.
        """
        points, schema = with_canonical_labels(points), self
        if points.labels is not None and len(points):
            kind = points.labels.dtype.kind
            known = self.labels or kind
            schema = replace(self, labels=known)
            _refuse_other("y holds {}", _KINDS.get(known), _KINDS.get(kind), "convert it")
        rows: Any = points.points
        # Dask does not always know that blocks are sparse.
        if isinstance(rows, np.ndarray) == self.sparse:
            rows = csr_rows(rows) if self.sparse else rows.toarray()
        rows = rows.astype(self.dtype, copy=False)
        return points if rows is points.points else replace(points, points=rows), schema


def opened(
    what: str, data: Data, settings: Settings, known: RowSchema | None, **options: Any
) -> tuple[RowBlocks, RowSchema]:
    """Open rows, of which there may be none, for a stream or a leaf of a stored tree.

    `known` is the schema of the rows before. If those are divided by their lengths, so are these.
    """
    refuse_cube(what, data[0])
    blocks = row_blocks(*data, on_invalid=settings.on_invalid, allow_empty=True, **options)
    if known is not None:
        blocks = blocks.by(known.metric)
    return blocks, RowSchema.of(blocks)


def state_files(kind: str, state: dict[str, Any], parts: Sequence[WeightedPoints] = ()) -> Files:
    """Return the files of a Zarr group of plain JSON values and weighted rows."""
    union = concatenate_parts(parts) if parts else None
    arrays, dims, layout = ({}, {}, {}) if union is None else to_arrays(union)
    # Nested, so that no key of the layout can be one of ours.
    attributes = {**layout, "lengths": [len(part) for part in parts], "state": state}
    return group_files(GroupContents(arrays, dims, attributes, kind))


def read_state(place: Place, name: str, kind: str) -> tuple[dict[str, Any], list[WeightedPoints]]:
    """Return the JSON values and the rows of an object that has the files of `state_files`.

    Raises
    ------
    StoreError
        It is missing or damaged.
    """
    contents = read_files(place.get(name), place.where(name), kind)
    attributes: Any = contents.attributes
    lengths = attributes["lengths"]
    if not lengths:
        return attributes["state"], []
    union = from_arrays(contents.arrays, attributes)
    bounds = zip(lengths, np.cumsum(lengths).tolist(), strict=True)
    return attributes["state"], [union.take(slice(stop - n, stop)) for n, stop in bounds]
