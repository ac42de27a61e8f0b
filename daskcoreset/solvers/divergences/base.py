"""The base of Bregman divergences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.linalg import dense, one_thread, tiles
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

# A difference below this share of its terms has lost more than four digits.
_CANCELLED = 1e-4


class Divergence(ABC):
    r"""Base class of Bregman divergences between the rows of a matrix and centers.

    See :doc:`/guides/clusters`.

    .. math:: d_\phi(x, y) = \phi(x) - \phi(y) - \langle \nabla\phi(y), x - y \rangle

    with a strictly convex generator :math:`\phi`. It is :math:`\mu`-similar on a box of its domain
    if a matrix A and :math:`0 < \mu \le 1` exist with :math:`\mu\, d_A \le d_\phi \le d_A`, where
    :math:`d_A(x, y) = (x - y)^T A (x - y)`.

    Subclasses are frozen dataclasses. They take float32 or float64 points inside their domain,
    which `find_invalid_row` checks, and compute in float64.

    Attributes
    ----------
    name : str
        Name for the `divergence` argument of methods and models.
    title : str
        Name in messages.
    citation : str
        Key of the source in ``references.bib``, and the place in it.
    domain : str
        The condition on every entry of a row, for messages.
    remedy : str
        The remedy for rows outside the domain, for messages.
    translation_invariant : bool
        Whether :math:`d(x + t, y + t) = d(x, y)` for all t. Rows may then be shifted before sums
        are computed.

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman Divergences, definition 1.
    Bachem, Lucic and Krause (2018), section 6.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    domain: ClassVar[str]
    remedy: ClassVar[str] = "leave such rows out"
    translation_invariant: ClassVar[bool] = False

    @abstractmethod
    def generator(self, points: Points) -> FloatArray:
        r"""Return :math:`\phi` of every row, float64 of shape (n,)."""

    @abstractmethod
    def between(self, points: AnyArray, others: AnyArray) -> FloatArray:
        """Return the divergence of each row of `points` to the same row of `others`.

        Parameters
        ----------
        points : ndarray of shape (n, d)
        others : ndarray of shape (n, d) or (d,)

        Returns
        -------
        ndarray of shape (n,), float64
            Computed from differences. It is exact to rounding, however close two rows are.
        """

    @abstractmethod
    def valid(self, points: AnyArray) -> AnyArray:
        """Return whether each entry lies in the domain, bool of the shape of `points`."""

    @abstractmethod
    def dominating(self, low: Any, high: Any) -> Divergence:
        r"""Return a squared Mahalanobis distance :math:`d_A \ge d_\phi` on a box.

        Parameters
        ----------
        low, high : array-like of shape (d,)
            Smallest and largest value of every column. The box contains all rows and their weighted
            means.

        Returns
        -------
        Divergence
            `SquaredEuclidean` or `SquaredMahalanobis`. Both have ``whiten``.

        Raises
        ------
        InvalidInputError
            If the box is empty, or not inside the domain.
        """

    @abstractmethod
    def similarity(self, low: Any, high: Any) -> FloatArray:
        r"""Return the largest :math:`\mu_j` with :math:`\mu_j d_{A,j} \le d_{\phi,j}` on a box.

        Parameters
        ----------
        low, high : array-like of shape (d,)

        Returns
        -------
        ndarray of shape (d,), float64
            In (0, 1]. The divergence is :math:`\mu`-similar with :math:`\mu = \min_j \mu_j`. The
            sample size grows with :math:`1/\mu^2`.
        """

    def fitted(self, points: Points, weights: FloatArray) -> Divergence:
        """Return the divergence with open parameters estimated from weighted rows."""
        del points, weights
        return self

    def check_domain(self, points: Points) -> int:
        """Return the number of the first row outside the domain, or -1."""
        for rows in tiles(points.shape[0], points.shape[1]):
            bad = ~self.valid(dense(points[rows])).all(axis=1)
            if bad.any():
                return int(rows.start + bad.argmax())
        return -1

    def find_invalid_row(self, points: Points, name: str = "X") -> InvalidRow | None:
        """Return the problem of the first row outside the domain, or None.

        Parameters
        ----------
        points : ndarray or csr_array of shape (n, d)
        name : str, default="X"
            The argument that contains the rows.
        """
        row = self.check_domain(points)
        if row < 0:
            return None
        values = dense(points[row : row + 1])
        column = int((~self.valid(values[0])).argmax())
        problem = (
            f"{name} is {values[0, column]} in column {column}{{row}}, and the {self.title} is for "
            f"{self.domain} entries"
        )
        return InvalidRow(problem, row, name, f"{self.remedy}, or take another divergence")

    def to_mean(self, points: Points, mean: FloatArray) -> FloatArray:
        """Return the divergence of every row to one center.

        Parameters
        ----------
        points : ndarray or csr_array of shape (n, d)
        mean : ndarray of shape (d,), float64

        Returns
        -------
        ndarray of shape (n,), float64
        """
        out = np.empty(points.shape[0])
        for rows in tiles(points.shape[0], points.shape[1]):
            out[rows] = self.between(dense(points[rows]), mean)
        return out

    def divergence(self, points: Points, centers: FloatArray) -> FloatArray:
        r"""Return the divergence of every row to every center.

        One matrix product by the law of cosines of Bregman divergences,

        .. math:: d(x, c) = d(x, o) + d(o, c) - \langle \nabla\phi(c) - \nabla\phi(o), x - o
            \rangle,

        about the mean o of the centers. Entries in which digits cancel are computed again from
        differences. Every entry has a relative error of about ``1e-11``.

        Parameters
        ----------
        points : ndarray or csr_array of shape (n, d)
            A few rows, because the result has n x k entries. `nearest` goes over many rows.
        centers : ndarray of shape (k, d), float64

        Returns
        -------
        ndarray of shape (n, k), float64
            Non-negative. The number of threads does not change the result.

        References
        ----------
        Banerjee et al. (2005), section 2.2, appendix A, property 7.
        """
        rows = dense(points)
        terms, correlations = self._expanded(rows, centers, centers.mean(axis=0))
        out: FloatArray = terms - correlations
        # Also true of NaN, from infinite terms.
        of_row, of_center = np.nonzero(~(out > _CANCELLED * terms))
        for part in tiles(len(of_row), rows.shape[1]):
            i, j = of_row[part], of_center[part]
            out[i, j] = self.between(rows[i], centers[j])
        return out

    @one_thread()
    def nearest(self, points: Points, centers: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Return the center of smallest divergence for every row, and the divergence to it.

        Parameters
        ----------
        points : ndarray or csr_array of shape (n, d)
            Any number of rows, which are processed a few at a time.
        centers : ndarray of shape (k, d), float64

        Returns
        -------
        labels : ndarray of shape (n,), int64
            The first of equally near centers.
        divergences : ndarray of shape (n,), float64
        """
        labels = np.empty(points.shape[0], dtype=np.int64)
        smallest = np.empty(points.shape[0])
        for rows in tiles(points.shape[0], max(centers.shape)):
            table = self.divergence(points[rows], centers)
            labels[rows] = table.argmin(axis=1)
            smallest[rows] = np.take_along_axis(table, labels[rows, None], axis=1)[:, 0]
        return labels, smallest

    @abstractmethod
    def _expanded(
        self, rows: FloatArray, centers: FloatArray, origin: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return the two parts of the law of cosines, each of shape (n, k).

        :math:`d(x, o) + d(o, c)`, and :math:`\langle \nabla\phi(c) - \nabla\phi(o), x - o
        \rangle` exact to rounding of the first.
        """
