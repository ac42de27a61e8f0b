r"""Rows drawn from every class: core points, and rows to train on.

Whatever the core points are, they are a delta-cover, with delta twice the largest distance of a
row from the nearest. A cover with the least delta has its core points at the rim of the data;
drawn ones lie where rows are, so that most rows are nearer to one, and on skewed classes half
of them lie in the small class.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from daskcoreset.core.blocks import Block, concatenate
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import StratifiedReservoir, merge_reservoirs, sample_strata
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.execution.engine import map_reduce

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

Strata: TypeAlias = dict[Any, StratifiedReservoir]
"""A sample of every class, by its label."""

_FOLD = 2**30 - 2
"""Address of the keys of rows."""

_SPARE = 2
"""Candidates for every core point wanted: equal rows are of no use twice."""


def _sample_block(
    block: Block, block_index: int, _broadcast: object, *, sizes: dict[Any, int], seed: int
) -> Strata:
    return sample_strata(block, sizes, stream(seed, Stage.DESCENT, block_index, _FOLD))


def quotas_of(size: int, classes: AnyArray, weights: FloatArray) -> dict[Any, int]:
    """Split rows to train on over the classes: half evenly, half in proportion to weights.

    On skewed classes the loss on further rows of what is trained on them is lower than with
    either alone, on even ones it is the same (w8a, ijcnn1, htru2 and credit, cod_rna).

    Examples
    --------
    >>> quotas_of(100, np.array(["a", "b"]), np.array([9.0, 1.0]))
    {'a': 70, 'b': 30}
    """
    shares = 0.5 / len(weights) + 0.5 * weights / weights.sum()
    counts = np.maximum(1, np.round(size * shares)).astype(np.int64)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def sample_classes(
    blocks: RowBlocks,
    classes: AnyArray,
    *,
    points: int = 0,
    quotas: dict[Any, int] | None = None,
    seed: int,
) -> Strata:
    """Sample every class in one read, for core points and for rows to train on.

    Within its class a row is drawn without replacement in proportion to its weight: it has an
    exponential key with its weight for a rate, and the smallest keys win.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    classes : ndarray of shape (k,)
        All labels there are.
    points : int, default=0
        Core points wanted from `sample_core_points`.
    quotas : dict of label to int, optional
        Rows wanted from `training_rows`.
    seed : int

    Returns
    -------
    dict of label to StratifiedReservoir

    References
    ----------
    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir.
    """
    n_rows = quotas or {}
    sizes = {label: max(_SPARE * points, n_rows.get(label, 0)) for label in classes.tolist()}
    sample_block = partial(_sample_block, sizes=sizes, seed=seed)
    strata: Strata = map_reduce(blocks, sample_block, partial(merge_reservoirs, size=sizes)).value
    return strata


def sample_core_points(strata: Strata, count: int) -> AnyArray:
    """Return distinct rows, as many of every class unless one has fewer.

    Parameters
    ----------
    strata : dict of label to StratifiedReservoir
    count : int
        Rows wanted.

    Returns
    -------
    ndarray of shape (r, d), float32 or float64
        In the order of class and key; r is `count` unless fewer rows are distinct.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X, classes = np.arange(100.0).reshape(-1, 1), np.array([False, True])
    >>> strata = sample_classes(row_blocks(X, X[:, 0] < 10), classes, points=8, seed=0)
    >>> found = sample_core_points(strata, 8)
    >>> found.shape, int((found < 10).sum())
    ((8, 1), 4)
    """
    few = [strata[label].smallest(_SPARE * count).rows for label in sorted(strata)]
    points = dense_rows(concatenate(few).points)
    of_class = np.repeat(np.arange(len(few)), [len(rows) for rows in few])
    # Of equal rows, whatever their class, the first counts.
    first = np.sort(np.unique(points, axis=0, return_index=True)[1])
    codes = of_class[first]
    quotas = split_evenly(count, np.bincount(codes, minlength=len(few)))
    rows = [first[codes == k][:quota] for k, quota in enumerate(quotas)]
    return np.ascontiguousarray(points[np.concatenate(rows)])


def training_rows(strata: Strata, quotas: dict[Any, int]) -> Block:
    """Return rows that stand for all: in every class their weights add up to its own.

    Parameters
    ----------
    strata : dict of label to StratifiedReservoir
        Sampled with these quotas.
    quotas : dict of label to int
        Rows of every class, or all there are.

    Returns
    -------
    Block
        In the order of class and key.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X, classes = np.arange(1000.0).reshape(-1, 1), np.array([False, True])
    >>> quotas = {False: 40, True: 20}
    >>> strata = sample_classes(row_blocks(X, X[:, 0] < 100), classes, quotas=quotas, seed=0)
    >>> found = training_rows(strata, quotas)
    >>> len(found), int(found.labels.sum()), round(float(found.weights[found.labels].sum()))
    (60, 20, 100)
    """
    taken = []
    for label in sorted(strata):
        part, quota = strata[label], quotas[label]
        rows = part.rows.take(np.arange(min(quota, len(part.rows))))
        taken.append(replace(rows, weights=part.stand_ins(quota)))
    return concatenate(taken)


def split_evenly(count: int, limits: IndexArray) -> IndexArray:
    """Split a number as evenly as upper limits allow.

    Examples
    --------
    >>> split_evenly(10, np.array([2, 100, 100]))
    array([2, 4, 4])
    """
    shares = np.zeros(len(limits), dtype=np.int64)
    while True:
        rest, free = count - int(shares.sum()), np.flatnonzero(shares < limits)
        if rest <= 0 or not len(free):
            return shares
        if rest < len(free):
            shares[free[:rest]] += 1
            return shares
        shares[free] = np.minimum(limits[free], shares[free] + rest // len(free))
