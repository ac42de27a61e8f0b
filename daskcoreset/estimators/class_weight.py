"""Weights of classes, as in scikit-learn, with which coresets are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.core.coreset import CLASS_WEIGHT, Coreset
from daskcoreset.core.labels import as_label, plain_labels
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import as_float
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.blocks import RowBlocks

# Labels and factors of weights, as a provenance has them.
Factors: TypeAlias = "Iterable[tuple[Any, float]]"


def contained_factors(coreset: Coreset) -> Factors:
    """Return the factors of the classes that the weights of a coreset contain."""
    return coreset.provenance.get(CLASS_WEIGHT) or ()


def weigh_blocks(class_weight: Any, blocks: RowBlocks) -> RowBlocks:
    """Return blocks that are read with the weights of the classes.

    Parameters
    ----------
    class_weight : mapping of label to number, "balanced" or None
        Classes that are not in the mapping weigh one. "balanced" gives all classes the same total
        weight, :math:`U / (K U_c)` to the rows of class c of K. It takes one pass over the labels
        and weights, which also reads X if its number of rows is unknown or rows are dropped.
    blocks : RowBlocks
    """
    if class_weight is None:
        return blocks
    sums: dict[Any, float] = {}
    if isinstance(class_weight, str):
        summary = summarise_classes(_labels_alone(blocks))
        sums = dict(zip(summary.classes.tolist(), summary.class_weights.tolist(), strict=True))
    factors = tuple(_factors(class_weight, sums))
    return replace(blocks, schema=replace(blocks.schema, class_weight=factors))


def _labels_alone(blocks: RowBlocks) -> RowBlocks:
    """Return the blocks with zeros in place of X, which may be far larger, if they can do."""
    drops = blocks.schema.on_invalid == "drop"
    if drops or blocks.sizes is None or blocks.cube is not None or blocks.are_views:
        return blocks
    import dask.array as da

    zeros = da.zeros((blocks.n_rows, 1), dtype=np.float32, chunks=(blocks.sizes, (1,)))
    schema = replace(
        blocks.schema, n_features=1, dtype=zeros.dtype, columns=None, metric="euclidean"
    )
    return replace(blocks, arrays={**blocks.arrays, "X": zeros}, schema=schema)


def weigh_coreset(class_weight: Any, coreset: Coreset) -> Coreset:
    """Return a coreset whose weights contain these weights of the classes, and no others.

    Raises
    ------
    InvalidInputError
        If a factor that the weights contain is zero, and the new one is not.

    Examples
    --------
    >>> record = {"class_weight": [("b", 2.0)]}
    >>> held = Coreset(np.eye(2), np.ones(2), np.arange(2), np.array(["a", "b"]), record)
    >>> weigh_coreset({"b": 6.0}, held).weights.tolist()
    [1.0, 3.0]
    """
    if class_weight is None or coreset.labels is None:
        return coreset
    contained = contained_factors(coreset)
    classes, codes = np.unique(coreset.labels, return_inverse=True)
    before = unweighed(coreset.weights, coreset.labels, contained)
    # Classes that the coreset contains with a weight of zero have no rows.
    sums = {as_label(label, classes): 0.0 for label, _ in contained}
    sums |= zip(classes.tolist(), np.bincount(codes, before).tolist(), strict=True)
    wanted = _factors(class_weight, sums)
    for label, factor in contained:
        lost = np.array([as_label(label, classes)])
        if factor == 0.0 and _of_classes(wanted, lost).any():
            raise InvalidInputError(
                f"class_weight is positive for {label!r}, but the coreset was built with weight 0 "
                "for this class and lacks its rows",
                argument="class_weight",
                remedy="pass 0 for it, or class_weight=None to keep the weights of the coreset",
            )
    ratios = _of_classes(wanted, classes) / _of_classes(contained, classes, zero=1.0)
    record = dict(coreset.provenance)
    if (ratios != 1.0).any():
        record.pop("total_weight", None)
    weighed = replace(coreset, weights=coreset.weights * ratios[codes], provenance=record)
    return remember_factors(weighed, wanted)


def unweighed(weights: FloatArray, labels: AnyArray, contained: Factors) -> FloatArray:
    """Divide weights of rows by the factors of their classes that they contain.

    Examples
    --------
    >>> unweighed(np.array([3.0, 8.0]), np.array(["a", "b"]), [("b", 4.0)]).tolist()
    [3.0, 2.0]
    """
    classes, codes = np.unique(labels, return_inverse=True)
    return np.asarray(weights / _of_classes(contained, classes, zero=1.0)[codes])


def weights_for(
    solver: Any, coreset: Coreset, labels: AnyArray | None, weights: FloatArray
) -> FloatArray:
    """Return weights for a solver, without class factors if it has a ``class_weight`` itself.

    Parameters
    ----------
    solver : estimator object
    coreset : Coreset
        Its provenance has the factors.
    labels : ndarray of shape (n,), or None
    weights : ndarray of shape (n,), float64
        Weights of the rows of the coreset.
    """
    given = [
        value
        for name, value in solver.get_params(deep=True).items()
        if name.rpartition("__")[2] == "class_weight"
    ]
    if labels is None or all(value is None for value in given):
        return weights
    return unweighed(weights, labels, contained_factors(coreset))


def _of_classes(factors: Factors, classes: AnyArray, zero: float = 0.0) -> FloatArray:
    """Factor of every class. The default is one, and `zero` replaces a factor of zero."""
    plain = plain_labels(classes)
    known = {as_label(label, plain): factor or zero for label, factor in factors}
    return np.array([known.get(label, 1.0) for label in plain.tolist()])


def remember_factors(coreset: Coreset, factors: Factors) -> Coreset:
    """Write the factors that the weights contain into the provenance, where audits find them."""
    record = [[plain_labels(np.array([label])).item(), float(factor)] for label, factor in factors]
    if not record:
        return coreset
    return replace(coreset, provenance={**coreset.provenance, CLASS_WEIGHT: record})


def check_labels(class_weight: Any, known: AnyArray, home: str, also: str = "") -> None:
    """Check that a mapping has only known labels, or all of them. `home` names their place."""
    if not isinstance(class_weight, Mapping):
        return
    plain = plain_labels(known)
    # A class without weight has no rows.
    given = {as_label(label, plain): factor for label, factor in class_weight.items()}
    there = [*plain.tolist(), *(label for label, factor in given.items() if factor == 0.0)]
    unknown = [label for label in given if label not in there]
    missing = [label for label in there if label not in given]
    if unknown and missing:
        raise InvalidInputError(
            f"class_weight has {unknown[0]!r}, which is not a label of {home}, and leaves out "
            f"{missing[0]!r}",
            argument="class_weight",
            remedy=f"use the labels of {home}: {', '.join(map(repr, there[:5]))}{also}",
        )


def _factors(class_weight: Any, sums: Mapping[Any, float]) -> list[tuple[Any, float]]:
    """Return the factors of classes, for "balanced" by the weights of their rows."""
    if isinstance(class_weight, str):  # "balanced": no other was let in
        positive = {label: float(weight) for label, weight in sums.items() if weight > 0.0}
        total = sum(positive.values())
        return [(label, total / (len(positive) * weight)) for label, weight in positive.items()]
    for label, factor in class_weight.items():
        as_float(f"class_weight of {label!r}", factor, "1.0", maximum=math.inf, closed=True)
    return [(label, float(factor)) for label, factor in class_weight.items()]
