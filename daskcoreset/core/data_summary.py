"""Exact moments of all rows, as a pass over the data leaves them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError

# Above this a covariance matrix (8 MiB) is not gathered from the blocks.
MAX_COLUMNS = 1024


@dataclass(frozen=True, eq=False, repr=False)
class DataSummary:
    r"""Moments of all rows, exact but for rounding.

    Attributes
    ----------
    count : int
        Rows of positive weight, without those that were dropped.
    weight : float
        Their total weight, W.
    mean : ndarray of shape (d,), float64
        Weighted means.
    scatter : ndarray of shape (d, d) or (d + 1, d + 1), float64
        :math:`\sum_i u_i (x_i - \mu)(x_i - \mu)^T`. With numbers as labels, y is the last column.
    y_mean : float or None
        Mean of the labels, where there is a number for every row.
    columns : tuple of str or None

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> portfolio = daskcoreset.build_many(X, methods=["uniform"], sizes=500)
    >>> bool(np.allclose(portfolio.moments.covariance, np.cov(X.T)))
    True
    """

    count: int
    weight: float
    mean: FloatArray
    scatter: FloatArray
    y_mean: float | None = None
    columns: tuple[str, ...] | None = None

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the columns, as ``numpy.cov`` of rows of equal weight: (d, d)."""
        d = len(self.mean)
        # n - 1 for weights of one, whatever their unit is.
        degrees = self.weight * (1.0 - 1.0 / self.count) if self.count > 1 else np.nan
        return self.scatter[:d, :d] / degrees

    def __repr__(self) -> str:
        return f"DataSummary({self.count:,} rows, {len(self.mean):,} columns)"

    def equals(self, other: object) -> bool:
        """Return whether all is the same, bit for bit."""
        return isinstance(other, DataSummary) and all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    def check(self) -> None:
        """Raise `InvalidInputError` if the arrays do not fit together."""
        d = len(self.mean)
        wide = d + (self.y_mean is not None)
        n_names = d if self.columns is None else len(self.columns)
        if (self.mean.shape, self.scatter.shape, n_names) != ((d,), (wide, wide), d):
            raise InvalidInputError("arrays of a summary have other shapes")
