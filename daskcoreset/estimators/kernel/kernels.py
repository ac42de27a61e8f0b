"""The Gaussian kernel between rows and core points, and decisions by combinations of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense, one_thread, product, tiles
from daskcoreset.core.messages import warn_user
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.estimators.decision import DecisionFunction

# Columns whose ranges differ by more are warned about.
_UNEVEN = 100.0

# Median of the kernel between core points below which rows do not affect each other, the one above
# which they look alike, and core points that are tested.
_VANISHED, _ALIKE, _TESTED = 1e-12, 0.99, 256


def resolve_gamma(gamma: Any, n_features: int, variance: float) -> float:
    """Return gamma as a number, as in `sklearn.svm.SVC`.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
        "scale" is ``1 / (d * variance)``, "auto" ``1 / d``.
    n_features : int
    variance : float
        Variance of all numbers of X.

    Examples
    --------
    >>> resolve_gamma("scale", 4, 0.5), resolve_gamma("auto", 4, 0.5), resolve_gamma(2, 4, 0.5)
    (0.5, 0.25, 2.0)
    """
    if gamma == "scale":
        return 1.0 / (n_features * variance) if variance > 0 else 1.0
    if gamma == "auto":
        return 1.0 / n_features
    return float(gamma)


def warn_of_scales(machine: KernelMap, *, chosen: bool) -> None:
    """Warn if few columns dominate distances, or the kernel is the same between most core points.

    Parameters
    ----------
    machine : KernelMap
    chosen : bool
        Whether the user chose gamma as a number, for which rows may look alike.
    """
    from scipy.spatial.distance import pdist

    squares = pdist(machine.points[:: -(-len(machine) // _TESTED)], "sqeuclidean")
    squares, ranges = squares[squares > 0.0], np.ptp(machine.points, axis=0)
    if not len(squares):
        return
    usual, ranges = float(np.median(np.exp(-machine.gamma * squares))), ranges[ranges > 0.0]
    advice = (
        "scale the features to [0, 1] as the authors do, for example with "
        "sklearn.preprocessing.MinMaxScaler."
    )
    if ranges.max() > _UNEVEN * ranges.min():
        warn_user(
            f"features are not scaled: the range of one column is {ranges.max():.3g}, and of "
            f"another {ranges.min():.3g}, so distances depend on the wide columns alone; {advice}"
        )
    elif usual < _VANISHED:
        warn_user(
            f"gamma={machine.gamma:.3g} is too large for the scale of the features: the median of "
            f"the kernel between core points is {usual:.1e}, so rows do not affect each other. "
            f"Lower gamma, or {advice}"
        )
    if usual > _ALIKE and not chosen:
        warn_user(
            f"gamma={machine.gamma:.3g} is too small for the scale of the features: the median of "
            f"the kernel between core points is {usual:.6f}, so all rows look alike. Outliers, "
            f"columns far from zero or small units can be the cause. Drop or clip outliers, scale "
            f"the features, for example with sklearn.preprocessing.RobustScaler, or raise gamma."
        )


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Core points and the Gaussian kernel between them and any rows.

    Attributes
    ----------
    gamma : float
    points : ndarray of shape (r, d), float64
        Core points.
    """

    gamma: float
    points: FloatArray

    def __len__(self) -> int:
        return len(self.points)

    def values(self, squares: FloatArray) -> FloatArray:
        """Return the kernel of squared distances, in their place."""
        np.multiply(squares, -self.gamma, out=squares)
        return np.exp(squares, out=squares)

    def gram(self) -> FloatArray:
        """Kernel between the core points, of shape (r, r).

        Examples
        --------
        >>> KernelMap(1.0, np.array([[0.0], [1.0]])).gram().round(3)
        array([[1.   , 0.368],
               [0.368, 1.   ]])
        """
        values = self.matrix(self.points)[0]
        np.fill_diagonal(values, 1.0)  # but for rounding
        return values

    @one_thread()
    def matrix(self, rows: Points) -> tuple[FloatArray, IndexArray, float]:
        """Return the kernel between rows and core points, of shape (n, r), and what `nearest` does.

        Parameters
        ----------
        rows : ndarray of shape (n, d) or csr_array
        """
        values, farthest = np.empty((rows.shape[0], len(self))), 0.0
        cells = np.empty(rows.shape[0], dtype=np.int64)
        for part, squares in self.squares(rows):
            check_time("a kernel was being formed", "pass fewer rows or core points")
            cells[part], gap = nearest(squares)
            farthest = max(farthest, gap)
            values[part] = self.values(squares)
        return values, cells, farthest

    def squares(self, rows: Points) -> Iterator[tuple[slice, FloatArray]]:
        """Squared distances between rows and core points, a few rows at a time.

        Parameters
        ----------
        rows : ndarray of shape (n, d) or csr_array

        Yields
        ------
        part : slice
            Part of the rows.
        squares : ndarray of shape (t, r), float64
            Free to be overwritten.
        """
        size, n_features = self.points.shape
        # About their mean, an offset that rows and core points share costs no digits.
        shift = self.points.mean(axis=0)
        centers = self.points - shift
        # One product gives |x|^2 - 2 <x, c> + |c|^2.
        right = np.empty((n_features + 2, size))
        right[:n_features] = -2.0 * centers.T
        right[n_features] = np.einsum("ij,ij->i", centers, centers)
        right[n_features + 1] = 1.0
        for part in tiles(rows.shape[0], max(size, n_features)):
            tile = np.ones((part.stop - part.start, n_features + 2))
            inner = tile[:, :n_features]
            np.subtract(dense(rows[part]), shift, out=inner)
            np.einsum("ij,ij->i", inner, inner, out=tile[:, n_features + 1])
            squares = product(tile, right)
            yield part, np.maximum(squares, 0.0, out=squares)  # rounding


def nearest(squares: FloatArray) -> tuple[IndexArray, float]:
    """Return the nearest core point of every row, and the largest squared distance from it."""
    cells = squares.argmin(axis=1)
    return cells, float(squares[np.arange(len(cells)), cells].max(initial=0.0))


@dataclass(frozen=True, eq=False)
class KernelDecision(DecisionFunction):
    """A combination of core points, or one for each of more than two classes.

    Attributes
    ----------
    core : KernelMap
    beta : ndarray of shape (r, K), float64
    classes : ndarray of shape (n_classes,)
    """

    core: KernelMap
    beta: FloatArray
    classes: AnyArray

    @one_thread()
    def values(self, points: Points) -> FloatArray:
        """Decision values of rows."""
        values = np.empty((points.shape[0], self.beta.shape[1]))
        for part, squares in self.core.squares(points):
            values[part] = product(self.core.values(squares), self.beta)
        return values
