"""The form that all rows of a stream or a stored tree share, fixed by the first of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import WeightedPoints

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray
    from daskcoreset.inputs.blocks import RowBlocks

_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "floats", "U": "text"}


@dataclass(frozen=True)
class RowSchema:
    """What rows that come later must agree with.

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
    def of(cls, blocks: RowBlocks) -> RowSchema:
        """Return the form of data that have not been read."""
        return cls(
            n_features=blocks.schema.n_features,
            dtype=blocks.schema.dtype.name,
            sparse=blocks.sparse,
            has_labels=blocks.has_labels,
            columns=blocks.columns,
        )

    @classmethod
    def read(cls, attributes: dict[str, Any]) -> RowSchema:
        """Return the form that `write` wrote."""
        columns = attributes["columns"]
        return cls(**{**attributes, "columns": None if columns is None else tuple(columns)})

    def write(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    def check(self, other: RowSchema) -> None:
        """Refuse data of another form than this, before they are read.

        Raises
        ------
        InvalidInputError
            Which says what differs.
        """
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
            found, wanted = ("given", "none") if other.has_labels else ("missing", "labels")
            raise InvalidInputError(
                f"y is {found}, and the rows before have {wanted}; give labels to all rows or to "
                f"none."
            )

    def fit(self, points: WeightedPoints) -> tuple[WeightedPoints, RowSchema]:
        """Bring rows that were read to the form; return it with the kind of labels filled in.

        Raises
        ------
        InvalidInputError
            If the labels are of another kind.
        """
        labels, form = points.labels, self
        if labels is not None and len(labels):
            labels = canonical(labels)
            kind = labels.dtype.kind
            if self.labels is None:
                form = replace(self, labels=kind)
            elif kind != self.labels:
                raise InvalidInputError(
                    f"y holds {_KINDS[kind]}, and the labels before are {_KINDS[self.labels]}; "
                    f"convert it."
                )
        rows: Any = points.points
        if sp.issparse(rows) != self.sparse:  # Dask does not always know that blocks are sparse
            rows = sp.csr_array(rows) if self.sparse else rows.toarray()
        rows = rows.astype(self.dtype, copy=False)
        return WeightedPoints(rows, points.weights, points.indices, labels), form


def canonical(labels: AnyArray) -> AnyArray:
    """Give labels a dtype that depends on their kind and values alone.

    Examples
    --------
    >>> canonical(np.array([1, 2], dtype=np.int8)).dtype.name
    'int64'
    >>> canonical(np.array(["a", "b"], dtype="U9")).dtype.str[1:]
    'U1'
    """
    if labels.dtype.kind == "U":
        return np.array(labels.tolist(), dtype=str)
    if labels.dtype.kind in "iu" and np.can_cast(labels.dtype, np.int64):
        return labels.astype(np.int64, copy=False)
    return labels.astype(np.float64, copy=False) if labels.dtype.kind == "f" else labels
