"""Classes, weights, moments and ranges of labelled rows, from one read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.labels import MAX_LABELS
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Numbers of rows that are gone through together.
_TILE_NUMBERS = 4_096


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """Labels, weights and spread of rows.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels of rows with a positive weight, sorted.
    class_weights : ndarray of shape (k,), float64
    weights : dict of int to float
        Weight of every block, by its number.
    n_rows : int
        Rows that can be used.
    moments : Moments
    low, high : ndarray of shape (d,), float64
        Least and largest number of every column, over rows with a positive weight.
    """

    classes: AnyArray
    class_weights: FloatArray
    weights: dict[int, float]
    n_rows: int
    moments: Moments
    low: FloatArray
    high: FloatArray

    @property
    def weight(self) -> float:
        """Total weight M."""
        return self.moments.weight

    @property
    def variance(self) -> float:
        """Weighted variance of all numbers, as ``X.var()`` has it."""
        within = self.moments.m2.sum() / self.weight
        return float((within / len(self.low)) + self.moments.mean.var())

    @property
    def total_variance(self) -> float:
        """Sum of the variances of the columns: half the mean squared distance of two rows."""
        return float(self.moments.m2.sum() / self.weight)


def summarise_classes(
    blocks: RowBlocks, *, weighted: bool = True, progress: bool | None = False
) -> ClassSummary:
    """Read all rows once.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    weighted : bool, default=True
        False to count every row once, whatever weights the blocks have.
    progress : bool or None, default=False
        As in `daskcoreset.build`.

    Returns
    -------
    ClassSummary

    Raises
    ------
    InvalidInputError
        If labels are missing, a label is not finite, there are more than 10,000 of them, or
        all weights are zero.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> found = summarise_classes(row_blocks([[0.0], [2.0], [4.0]], ["a", "b", "a"]))
    >>> found.classes, found.class_weights, found.high
    (array(['a', 'b'], dtype='<U1'), array([2., 1.]), array([4.]))
    """
    if not blocks.has_labels:
        raise InvalidInputError("y is missing", argument="y", remedy="pass the labels of the rows")
    work = partial(_of_block, weighted=weighted)
    found = map_reduce(blocks, work, _merge, progress=progress)
    summary: ClassSummary = found.value
    if not summary.weight:
        raise InvalidInputError(
            "sample_weight is zero on every row",
            argument="sample_weight",
            remedy="give at least one row a positive weight",
        )
    return summary


def _of_block(
    block: Block, block_index: int, _: object, *, weighted: bool
) -> ClassSummary | InvalidRow:
    if not weighted:
        block = replace(block, weights=np.ones(len(block)))
    labels = labels_of(block)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        bad = int(np.flatnonzero(~np.isfinite(labels))[0])
        value = "NaN" if np.isnan(labels[bad]) else labels[bad]
        problem = f"y is {value}{{row}}"
        return InvalidRow(problem, block.number_of(bad), "y", "leave such rows out")
    used = block.weights > 0
    classes, codes = np.unique(labels[used], return_inverse=True)
    if len(classes) > MAX_LABELS:
        return _too_many(len(classes))
    points: Any = block.points if used.all() else block.points[used]
    low, high = _range(points)
    return ClassSummary(
        classes,
        np.bincount(codes, weights=block.weights[used], minlength=len(classes)).astype(np.float64),
        {block_index: float(block.weights.sum())},
        len(block),
        moments_of(block.points, block.weights),
        np.asarray(low, dtype=np.float64),
        np.asarray(high, dtype=np.float64),
    )


def _range(points: Any) -> tuple[AnyArray, AnyArray]:
    """Minimum and maximum of every column."""
    n, d = points.shape
    if not n:
        return np.full(d, np.inf), np.full(d, -np.inf)
    if not isinstance(points, np.ndarray):
        return points.min(axis=0).toarray().ravel(), points.max(axis=0).toarray().ravel()
    # NumPy goes through a narrow array a row at a time; several rows beside one another
    # take a fifteenth of the time.
    beside = max(1, min(n, _TILE_NUMBERS // d))
    stop = n // beside * beside
    wide, tail = points[:stop].reshape(-1, beside * d), points[stop:]
    ends = [wide.min(axis=0).reshape(-1, d), tail], [wide.max(axis=0).reshape(-1, d), tail]
    return np.concatenate(ends[0]).min(axis=0), np.concatenate(ends[1]).max(axis=0)


def _merge(first: ClassSummary, second: ClassSummary) -> ClassSummary:
    parts = [part.classes for part in (first, second) if len(part.classes)]
    labels = np.concatenate(parts) if parts else first.classes
    weights = np.concatenate([first.class_weights, second.class_weights])
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) > MAX_LABELS:
        raise _too_many(len(classes)).error(0)
    return ClassSummary(
        classes,
        np.bincount(codes, weights=weights, minlength=len(classes)).astype(np.float64),
        first.weights | second.weights,
        first.n_rows + second.n_rows,
        merge_moments(first.moments, second.moments),
        np.minimum(first.low, second.low),
        np.maximum(first.high, second.high),
    )


def _too_many(count: int) -> InvalidRow:
    return InvalidRow(
        f"y has {count} classes or more, as if it held the numbers of a regression",
        argument="y",
        remedy="pass labels",
    )
