"""Weights of classes, as in scikit-learn, with which coresets are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, find_bad_label, labels_of
from daskcoreset.core.coreset import CLASS_WEIGHT, Coreset
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.labels import as_label, plain_labels
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import as_float
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks

# Labels and factors that weights contain, as a provenance has them.
Factors: TypeAlias = "Iterable[tuple[Any, float]]"


def contained_factors(coreset: Coreset | None) -> Factors:
    """Return the factors of the classes that the weights of a coreset contain."""
    return () if coreset is None else coreset.provenance.get(CLASS_WEIGHT) or ()


def weigh_rows(
    class_weight: Any,
    labels: AnyArray,
    sample_weight: FloatArray | None,
    contained: Factors = (),
) -> FloatArray | None:
    """Multiply the weights of rows in memory by those of their classes.

    Parameters
    ----------
    class_weight : mapping of label to number, "balanced" or None
        Classes that are not in the mapping weigh one. "balanced" gives all classes the same total
        weight, :math:`U / (K U_c)` to the rows of class c of K.
    labels : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,), float64, or None
    contained : iterable of (label, factor)
        Factors that the weights contain, which the new ones replace.

    Returns
    -------
    ndarray of shape (n,), float64, or None
        None if there are neither weights nor class weights.

    Raises
    ------
    InvalidInputError
        If a factor that the weights contain is zero, and the new one is not.

    Examples
    --------
    >>> weigh_rows("balanced", np.array(["a", "a", "a", "b"]), None).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    >>> weigh_rows({"b": 6.0}, np.array(["a", "b"]), np.array([1.0, 2.0]), [("b", 2.0)]).tolist()
    [1.0, 6.0]
    """
    if class_weight is None:
        return sample_weight
    weights = np.ones(len(labels)) if sample_weight is None else sample_weight
    classes, codes = np.unique(labels, return_inverse=True)
    before = unweighed(weights, labels, contained)
    wanted = _factors_of_rows(class_weight, classes, codes, before, contained)
    for label, factor in contained:
        lost = np.array([as_label(label, plain_labels(classes))])
        if factor == 0.0 and _of_classes(wanted, lost).any():
            raise InvalidInputError(
                f"class_weight is positive for {label!r}, but the coreset was built with weight 0 "
                "for this class and lacks its rows",
                argument="class_weight",
                remedy="pass 0 for it, or class_weight=None to keep the weights of the coreset",
            )
    ratios = _of_classes(wanted, classes) / _of_classes(contained, classes, zero=1.0)
    return np.asarray(weights * ratios[codes])


def unweighed(weights: FloatArray, labels: AnyArray, contained: Factors) -> FloatArray:
    """Divide weights of rows by the factors of their classes that they contain.

    Examples
    --------
    >>> unweighed(np.array([3.0, 8.0]), np.array(["a", "b"]), [("b", 4.0)]).tolist()
    [3.0, 2.0]
    """
    classes, codes = np.unique(labels, return_inverse=True)
    return np.asarray(weights / _of_classes(contained, classes, zero=1.0)[codes])


def weights_for(solver: Any, coreset: Coreset, labels: AnyArray, weights: FloatArray) -> FloatArray:
    """Return weights for a solver, without class factors if it has a ``class_weight`` itself.

    Parameters
    ----------
    solver : estimator object
    coreset : Coreset
        Its provenance has the factors.
    labels : ndarray of shape (n,)
    weights : ndarray of shape (n,), float64
        Weights of the rows of the coreset.
    """
    given = [
        value
        for name, value in solver.get_params(deep=True).items()
        if name.rpartition("__")[2] == "class_weight"
    ]
    if all(value is None for value in given):
        return weights
    return unweighed(weights, labels, contained_factors(coreset))


def _of_classes(factors: Factors, classes: AnyArray, zero: float = 0.0) -> FloatArray:
    """Factor of every class. The default is one, and `zero` replaces a factor of zero."""
    plain = plain_labels(classes)
    known = {as_label(label, plain): factor or zero for label, factor in factors}
    return np.array([known.get(label, 1.0) for label in plain.tolist()])


def remember_factors(
    coreset: Coreset, class_weight: Any, rows: RowBlocks | tuple[AnyArray, FloatArray | None] | None
) -> Coreset:
    """Write the factors of the classes into the provenance of a coreset whose weights contain them.

    An audit of the coreset weighs all rows by them, too.

    Parameters
    ----------
    coreset : Coreset
    class_weight : mapping of label to number, "balanced" or None
    rows : RowBlocks, tuple of labels and sample_weight, or None
        Rows from which the coreset was drawn: blocks that `weigh_blocks` has opened, or rows in
        memory. A mapping needs no rows, so None.
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
        known = contained_factors(coreset)
        factors = _factors_of_rows(class_weight, classes, codes, weights, known)
    labels = [plain_labels(np.array([label])).item() for label, _ in factors]
    record = [[label, factor] for label, (_, factor) in zip(labels, factors, strict=True)]
    return replace(coreset, provenance={**coreset.provenance, CLASS_WEIGHT: record})


def _factors_of_rows(
    class_weight: Any,
    classes: AnyArray,
    codes: IndexArray,
    weights: FloatArray,
    contained: Factors,
) -> list[tuple[Any, float]]:
    """Return the factors of classes. Classes in `contained` may have no rows."""
    sums = {as_label(label, plain_labels(classes)): 0.0 for label, _ in contained}
    sums |= zip(classes.tolist(), np.bincount(codes, weights), strict=True)
    if isinstance(class_weight, Mapping) and classes.dtype.kind == "U":  # perhaps of a coreset
        class_weight = {as_label(label, classes): each for label, each in class_weight.items()}
    return _factors(class_weight, sums)


def check_drawn(class_weight: Any, coreset: Coreset) -> None:
    """Check the labels of a mapping against those of the rows drawn, for labels out of core."""
    if isinstance(class_weight, Mapping):
        classes = plain_labels(np.unique(np.asarray(coreset.labels)))
        given = {as_label(label, classes): factor for label, factor in class_weight.items()}
        left_out = [label for label, factor in given.items() if factor == 0.0]
        known = [*classes.tolist(), *left_out]
        _check_labels(given, known, "the rows drawn", ", or raise size to draw a rare class")


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
        "balanced" takes one pass over `y` and `sample_weight`. It also reads X if they are parts
        of it, or if its number of rows is unknown.
    X, y, sample_weight
        As for `daskcoreset.build`.
    on_invalid : {"raise", "drop"} or None, default=None
        As for `daskcoreset.build`. Dropped rows do not count in any class.
    """
    blocks = row_blocks(X, y, sample_weight, on_invalid=on_invalid)
    if class_weight is None:
        return blocks
    sums: dict[Any, float] = {}
    if class_weight == "balanced":
        sums = map_reduce(
            _labels_alone(blocks, y, sample_weight), _sums_by_label, _merge_sums
        ).value
    factors = _factors(class_weight, sums)
    return replace(blocks, schema=replace(blocks.schema, class_weight=tuple(factors)))


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
        as_float(f"class_weight of {label!r}", factor, "1.0", maximum=math.inf, closed=True)
    if sums:
        _check_labels(class_weight, list(sums), "y")
    return [
        (label.item() if isinstance(label, np.generic) else label, float(factor))
        for label, factor in class_weight.items()
    ]


def _check_labels(
    class_weight: Mapping[Any, Any], known: list[Any], home: str, also: str = ""
) -> None:
    """Check that a mapping has only known labels, or all of them. `home` names their place."""
    unknown = [label for label in class_weight if label not in known]
    missing = [label for label in known if label not in class_weight]
    if unknown and missing:
        raise InvalidInputError(
            f"class_weight has {unknown[0]!r}, which is not a label of {home}, and leaves out "
            f"{missing[0]!r}",
            argument="class_weight",
            remedy=f"use the labels of {home}: {', '.join(map(repr, known[:5]))}{also}",
        )


def _merge_sums(first: dict[Any, Any], second: dict[Any, Any]) -> dict[Any, Any]:
    """Add up sums over the rows of every label, some of which are in one part only."""
    return {label: first.get(label, 0.0) + second.get(label, 0.0) for label in {**first, **second}}


def _sums_by_label(
    block: Block, _block_index: int, _broadcast: object
) -> dict[Any, float] | InvalidRow:
    problem = find_bad_label(block)
    if problem is not None:
        return problem
    classes, codes = np.unique(labels_of(block), return_inverse=True)
    sums = np.bincount(codes, block.weights, minlength=len(classes))
    return dict(zip(classes.tolist(), sums.tolist(), strict=True))
