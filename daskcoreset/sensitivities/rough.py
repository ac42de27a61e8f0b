r"""Rough k-means solutions by folds: k-means|| and, as its smallest case, k-means++.

Every fold proposes rows with probability proportional to :math:`u\, d(x, C)^2`, C the centers so
far, uniformly in the first. A proposal carries the key :math:`E / (u\, d(x, C)^2)` with E
exponential; the rows with the smallest keys of all blocks are a sample without replacement,
and keeping the smallest is associative (Efraimidis and Spirakis 2006). With one row a fold that
is k-means++ on data of any size; with about 2 k rows a fold, and five folds, k-means||.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.clusters import assign, dense_rows
from daskcoreset.typing import FloatArray

if TYPE_CHECKING:
    from daskcoreset.blocks import Block

__all__ = ["Seeds", "merge_seeds", "propose", "settle_seeds"]


@dataclass(frozen=True, eq=False)
class Seeds:
    """Centers so far, and proposals of a fold that is under way.

    Attributes
    ----------
    centers : ndarray of shape (s, d), float64
    proposals : ndarray of shape (l, d), float64
    keys : ndarray of shape (l,), float64
        Increasing.
    folds : int
        Folds whose proposals have become centers.
    """

    centers: FloatArray
    proposals: FloatArray
    keys: FloatArray
    folds: int = 0


def propose(block: Block, previous: Seeds | None, count: int, rng: np.random.Generator) -> Seeds:
    """Propose `count` rows of a block as further centers.

    Parameters
    ----------
    block : Block
    previous : Seeds or None
        Centers so far; None for the first, which are drawn by weight alone.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    Seeds
        Fewer than `count` proposals where fewer rows have a distance to every center.

    References
    ----------
    Bahmani et al. (2012), Algorithm 2, steps 3 to 5, with a fixed number of rows a round.
    """
    n_features = block.points.shape[1]
    centers = np.empty((0, n_features)) if previous is None else previous.centers
    mass = block.weights
    if len(centers) and len(block):
        mass = mass * assign(block.points, centers)[1]
    able = np.flatnonzero(mass > 0)
    keys = rng.standard_exponential(len(mass))[able] / mass[able]
    first = np.argsort(keys, kind="stable")[:count]
    rows = dense_rows(block.points[able[first]]).astype(np.float64)
    return Seeds(centers, rows, keys[first], 0 if previous is None else previous.folds)


def merge_seeds(first: Seeds, second: Seeds, count: int) -> Seeds:
    """Keep the `count` proposals with the smallest keys."""
    keys = np.concatenate([first.keys, second.keys])
    rows = np.concatenate([first.proposals, second.proposals])
    kept = np.argsort(keys, kind="stable")[:count]
    return Seeds(first.centers, rows[kept], keys[kept], first.folds)


def settle_seeds(found: Seeds) -> Seeds:
    """Make the proposals centers."""
    centers = np.concatenate([found.centers, found.proposals])
    nothing = found.proposals[:0]
    return Seeds(centers, nothing, found.keys[:0], found.folds + 1)
