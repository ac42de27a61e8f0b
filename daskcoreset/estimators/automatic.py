"""What "auto" stands for, one rule a function."""

from __future__ import annotations

__all__ = ["auto_size", "auto_starts"]


def auto_size(n_clusters: int) -> int:
    """Return the rows of the coreset for ``size="auto"``.

    A hundred rows a cluster tell where its center is, within a tenth of its width; ten
    thousand cost a solver next to nothing, however few clusters there are.

    Parameters
    ----------
    n_clusters : int

    Returns
    -------
    int

    Examples
    --------
    >>> auto_size(8), auto_size(500)
    (10000, 50000)
    """
    return max(10_000, 100 * n_clusters)


def auto_starts(n_clusters: int) -> int:
    """Return the runs of k-means for ``n_init="auto"``.

    Measured on coresets of uneven mixtures, by the cost over all data of the best of several
    runs against one: with 10 clusters three runs gain 1 % and ten 2.4 %, with 100 clusters ten
    gain 0.2 %, with 500 three gain 0.2 %. Many clusters average their luck, and are what
    takes time, so that the total of clusters solved for stays about the same.

    Parameters
    ----------
    n_clusters : int

    Returns
    -------
    int

    Examples
    --------
    >>> [auto_starts(k) for k in (2, 8, 30, 100, 500)]
    [10, 10, 3, 1, 1]
    """
    return min(10, max(1, 100 // n_clusters))
