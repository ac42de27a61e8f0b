"""Weights of classes, as in scikit-learn; coresets are drawn with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from daskcoreset.core.blocks import Block, InvalidRow, find_bad_label, labels_of, plain_labels
from daskcoreset.core.coreset import CLASS_WEIGHT, Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import is_number
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.metrics.costs import merge_sums


def weigh_rows(
    class_weight: Any, labels: AnyArray, sample_weight: FloatArray | None
) -> FloatArray | None:
    """Multiply the weights of rows in memory by those of their classes.

    Parameters
    ----------
    class_weight : mapping of label to number, "balanced" or None
        Classes that are not in the mapping weigh one. "balanced" gives all classes the same total
        weight, :math:`U / (K U_c)` to the rows of class c of K.
    labels : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,), float64, or None

    Returns
    -------
    ndarray of shape (n,), float64, or None
        None where there are no weights at all.

    Examples
    --------
    >>> weigh_rows("balanced", np.array(["a", "a", "a", "b"]), None).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    if class_weight is None:
        return sample_weight
    weights = np.ones(len(labels)) if sample_weight is None else sample_weight
    classes, codes = np.unique(labels, return_inverse=True)
    factors = dict(_factors_of_rows(class_weight, classes, codes, weights))
    return np.asarray(weights * np.array([factors.get(c, 1.0) for c in classes.tolist()])[codes])


def remember_factors(
    coreset: Coreset, class_weight: Any, rows: RowBlocks | tuple[AnyArray, FloatArray | None] | None
) -> Coreset:
    """Write the factors of the classes into the provenance of a coreset drawn with them.

    An audit of the coreset weighs all rows by them, too.

    Parameters
    ----------
    coreset : Coreset
    class_weight : mapping of label to number, "balanced" or None
    rows : RowBlocks, tuple of labels and sample_weight, or None
        Those from which it was drawn: blocks that `weigh_blocks` has opened, or rows in memory;
        None for a mapping, which needs none.
    """
    if class_weight is None:
        return coreset
    if isinstance(rows, RowBlocks):
        factors = list(rows.schema.class_weight)
    elif rows is None:
        factors = _factors(class_weight, {})
    else:
        classes, codes = np.unique(rows[0], return_inverse=True)
        weights = np.ones(len(codes)) if rows[1] is None else rows[1]
        factors = _factors_of_rows(class_weight, classes, codes, weights)
    labels = [plain_labels(np.array([label])).item() for label, _ in factors]
    record = [[label, factor] for label, (_, factor) in zip(labels, factors, strict=True)]
    return replace(coreset, provenance={**coreset.provenance, CLASS_WEIGHT: record})


def _factors_of_rows(
    class_weight: Any, classes: AnyArray, codes: IndexArray, weights: FloatArray
) -> list[tuple[Any, float]]:
    sums = np.bincount(codes, weights, minlength=len(classes))
    return _factors(class_weight, dict(zip(classes.tolist(), sums, strict=True)))


def weigh_blocks(
    class_weight: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    on_invalid: Literal["raise", "drop"] | None = None,
) -> RowBlocks:
    """Open data out of core, to be read with the weights of the classes.

    Parameters
    ----------
    class_weight : mapping of label to number, "balanced" or None
        "balanced" takes a read of `y` and `sample_weight`; of X too where they are parts of it,
        or its number of rows is not known.
    X, y, sample_weight
        As for `daskcoreset.build`.
    on_invalid : {"raise", "drop"} or None, default=None
        As for `daskcoreset.build`; rows that are dropped count in no class.
    """
    blocks = row_blocks(X, y, sample_weight, on_invalid=on_invalid)
    if class_weight is None:
        return blocks
    sums: dict[Any, float] = {}
    if class_weight == "balanced":
        sums = map_reduce(_labels_alone(blocks, y, sample_weight), _sums_by_label, merge_sums).value
    factors = _factors(class_weight, sums)
    return replace(blocks, schema=replace(blocks.schema, class_weight=tuple(factors)))


def count_classes(blocks: RowBlocks, y: Any, sample_weight: Any) -> int | None:
    """Count the classes of data out of core; None where they lie in X, which is read for nothing.

    Parameters
    ----------
    blocks : RowBlocks
    y, sample_weight
        From which they were opened.
    """
    labels = _labels_alone(blocks, y, sample_weight)
    if labels is blocks:
        return None
    return len(map_reduce(labels, _sums_by_label, merge_sums).value)


def _labels_alone(blocks: RowBlocks, y: Any, sample_weight: Any) -> RowBlocks:
    drops = blocks.schema.on_invalid == "drop"
    if drops or blocks.n_rows is None or blocks.cube is not None or isinstance(y, str):
        return blocks
    if isinstance(sample_weight, str):
        return blocks
    import dask.array as da

    # In place of X, which may be far larger: the sums need no more than its number of rows.
    nothing = da.zeros((blocks.n_rows, 1), dtype=np.float32, chunks=(2**20, 1))
    return row_blocks(nothing, y, sample_weight)


def _factors(class_weight: Any, sums: Mapping[Any, float]) -> list[tuple[Any, float]]:
    if isinstance(class_weight, str):  # "balanced": no other was let in
        positive = {label: float(weight) for label, weight in sums.items() if weight > 0.0}
        total = sum(positive.values())
        return [(label, total / (len(positive) * weight)) for label, weight in positive.items()]
    for label, factor in class_weight.items():
        if not is_number(factor):
            raise InvalidTypeError(
                f"class_weight of {label!r} must be a number, got {factor!r}; pass a float."
            )
        if not (np.isfinite(float(factor)) and float(factor) >= 0.0):
            raise InvalidInputError(
                f"class_weight of {label!r} is {factor!r}; pass a finite weight that is not "
                f"negative."
            )
    unknown = [label for label in class_weight if label not in sums]
    if sums and unknown and any(label not in class_weight for label in sums):
        raise InvalidInputError(
            f"class_weight holds {unknown[0]!r}, which is no label of y, and misses another; y "
            f"holds {', '.join(map(repr, list(sums)[:5]))}."
        )
    return [
        (label.item() if isinstance(label, np.generic) else label, float(factor))
        for label, factor in class_weight.items()
    ]


def _sums_by_label(
    block: Block, _block_index: int, _broadcast: object
) -> dict[Any, float] | InvalidRow:
    problem = find_bad_label(block)
    if problem is not None:
        return problem
    classes, codes = np.unique(labels_of(block), return_inverse=True)
    sums = np.bincount(codes, block.weights, minlength=len(classes))
    return dict(zip(classes.tolist(), sums.tolist(), strict=True))
