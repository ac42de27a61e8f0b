"""How many starts "auto" stands for; what it is for a size says `daskcoreset.asked`."""

from __future__ import annotations

__all__ = ["auto_starts"]


def auto_starts(n_clusters: int) -> int:
    """Return the runs of k-means for ``n_init="auto"``.

    Measured on coresets of uneven mixtures, by the cost over all data: with 10 clusters the best
    of ten runs gains 2.4 % on one; with 100 clusters in one to a thousand, single runs lie 2
    to 9 % above the best of three; with 500 three gain 0.2 %. A run on a coreset takes a
    fraction of a read, so that three at least cost little; many clusters average their luck.

    Parameters
    ----------
    n_clusters : int

    Returns
    -------
    int

    Examples
    --------
    >>> [auto_starts(k) for k in (2, 8, 30, 100, 500)]
    [10, 10, 10, 5, 3]
    """
    return min(10, max(3, 500 // n_clusters))
