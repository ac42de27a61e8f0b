r"""A sample of bounded size from every class, made of blocks in one read.

Every row of input weight u carries the key :math:`E / u` with E exponential; the rows of a class
with the smallest keys are a weighted sample without replacement, and keeping the smallest of
two sets is associative. Given the next key :math:`\tau`, a row is in the sample with
probability :math:`1 - e^{-u \tau}`, which makes its weight (Cohen and Kaplan 2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.blocks import Block, concatenate
from daskcoreset.core.classes import plain_labels
from daskcoreset.core.tiles import (dense_rows)
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["Pilot", "Sizes", "Stratum", "merge_strata", "pilot_of", "sample_strata"]

Sizes: TypeAlias = int | Mapping[Any, int]
"""Rows of every class, or of each by its label."""


@dataclass(frozen=True, eq=False)
class Stratum:
    """A class in some of the rows, and a sample of it.

    Attributes
    ----------
    count : int
        Rows of positive weight.
    weight : float
    keys : ndarray of shape (s,), float64
        Increasing.
    rows : Block
        Of s sampled rows, with their input weights.
    """

    count: int
    weight: float
    keys: FloatArray
    rows: Block

    def smallest(self, size: int) -> Stratum:
        """Keep the rows with the `size` smallest keys, in the order of their keys."""
        first = np.argsort(self.keys, kind="stable")[:size]
        return replace(self, keys=self.keys[first], rows=self.rows.take(first))

    def stand_ins(self, size: int) -> FloatArray:
        """Weights of the first `size` rows that stand for all rows of the class.

        They add up to its weight.

        References
        ----------
        Cohen and Kaplan (2007), rank conditioning.
        """
        u = self.rows.weights[:size]
        if len(self.keys) > size:
            u = u / -np.expm1(-u * self.keys[size])
        return np.asarray(u * (self.weight / u.sum()))


class Pilot(NamedTuple):
    """A sample stratified by class, with weights that stand for all rows.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    codes : ndarray of shape (s,), int64
        Class of every row.
    points : ndarray of shape (s, d), float64
    weights : ndarray of shape (s,), float64
        In every class they add up to its weight in the data.
    n_rows : int
        Rows of positive weight in the data.
    """

    classes: AnyArray
    codes: IndexArray
    points: FloatArray
    weights: FloatArray
    n_rows: int


def sample_strata(block: Block, size: Sizes, rng: np.random.Generator) -> dict[Any, Stratum]:
    """Sample every class of a block.

    Parameters
    ----------
    block : Block
        With labels.
    size : int or mapping of label to int
        Rows of a class; one more is kept, for its key.
    rng : numpy.random.Generator
        Asked for one number for every row.

    Returns
    -------
    dict of label to Stratum

    Examples
    --------
    >>> from daskcoreset.core.blocks import Block
    >>> block = Block(np.zeros((9, 1)), np.ones(9), np.array(["a", "b", "a"] * 3))
    >>> {
    ...     label: (found.count, len(found.keys))
    ...     for label, found in sample_strata(block, 2, np.random.default_rng(0)).items()
    ... }
    {'a': (6, 3), 'b': (3, 3)}
    """
    coins = rng.standard_exponential(len(block))
    used = np.flatnonzero(block.weights > 0.0)
    labels = plain_labels(block)[used]
    found: dict[Any, Stratum] = {}
    for label in np.unique(labels):
        rows = used[labels == label]
        keys = coins[rows] / block.weights[rows]
        wanted = _of(size, label.item())
        if len(keys) > wanted + 1:
            few = np.sort(np.argpartition(keys, wanted)[: wanted + 1])
        else:
            few = np.arange(len(keys))
        weight = float(block.weights[rows].sum())
        whole = Stratum(len(rows), weight, keys[few], block.take(rows[few]))
        found[label.item()] = whole.smallest(wanted + 1)
    return found


def _of(size: Sizes, label: Any) -> int:
    return size if isinstance(size, int) else size[label]


def merge_strata(
    first: dict[Any, Stratum], second: dict[Any, Stratum], size: Sizes
) -> dict[Any, Stratum]:
    """Sample the union of two sets of rows; associative."""
    merged = dict(first)
    for label, other in second.items():
        if label not in merged:
            merged[label] = other
            continue
        one = merged[label]
        merged[label] = Stratum(
            one.count + other.count,
            one.weight + other.weight,
            np.concatenate([one.keys, other.keys]),
            concatenate([one.rows, other.rows]),
        ).smallest(_of(size, label) + 1)
    return merged


def pilot_of(strata: dict[Any, Stratum], size: int) -> Pilot:
    """Weigh the samples of all classes.

    Parameters
    ----------
    strata : dict of label to Stratum
        At least one.
    size : int
        As they were sampled with.
    """
    labels = sorted(strata)
    parts = [strata[label] for label in labels]
    weights = [part.stand_ins(size) for part in parts]
    return Pilot(
        np.array(labels),
        np.repeat(np.arange(len(labels)), [len(u) for u in weights]),
        np.concatenate([dense_rows(part.rows.points[:size]) for part in parts]).astype(np.float64),
        np.concatenate(weights),
        sum(part.count for part in parts),
    )
