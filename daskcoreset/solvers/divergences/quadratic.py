"""Squared Euclidean and squared Mahalanobis distances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.linalg import dense, one_thread, product
from daskcoreset.core.moments import distances_to, scatter_of
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.core.validation import as_numbers
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.divergences.base import Divergence

# Smallest eigenvalue, at unit diagonal, that leaves an inverse four correct digits.
_SINGULAR = 1e-12

# Rounding allowed between mirrored entries, at unit diagonal.
_ASYMMETRY = 1e-8


class _Quadratic(Divergence):
    """Base of the squared distances, which dominate themselves everywhere."""

    domain: ClassVar[str] = "finite"
    translation_invariant: ClassVar[bool] = True

    def valid(self, points: AnyArray) -> AnyArray:
        """Whether each entry is finite."""
        return np.isfinite(points)

    def dominating(self, low: Any, high: Any) -> Divergence:
        """Return the distance itself: A is its own matrix, whatever the box."""
        del low, high
        return self

    def similarity(self, low: Any, high: Any) -> FloatArray:
        r""":math:`\mu_j = 1`, whatever the box."""
        del high
        return np.ones_like(low, dtype=np.float64)

    @abstractmethod
    def whiten(self, points: Points) -> Points:
        """Map rows so that squared Euclidean distances become these distances.

        Parameters
        ----------
        points : ndarray or csr_array of shape (n, d)

        Returns
        -------
        ndarray or csr_array of shape (n, d)
            What is known of k-means holds for these rows.
        """

    def _expanded(
        self, rows: FloatArray, centers: FloatArray, origin: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        # Shifted first, so that an offset of the data is gone before it is scaled; mapped
        # before they are multiplied, so that an ill-conditioned precision cancels nothing.
        white, targets = dense(self.whiten(rows - origin)), dense(self.whiten(centers - origin))
        terms = np.add.outer(_squares(white), _squares(targets))
        return terms, 2.0 * product(white, targets.T)


@dataclass(frozen=True)
class SquaredEuclidean(_Quadratic):
    r"""Squared Euclidean distance :math:`|x - y|^2`, with :math:`\phi(x) = |x|^2`.

    See :doc:`/guides/clusters`.

    Hard clustering with it is k-means. Soft clustering fits Gaussians of variance 1/2. It is its
    own dominating distance, with A the identity and :math:`\mu = 1`.

    Examples
    --------
    >>> SquaredEuclidean().divergence(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 3.0]]))
    array([[25.,  1.]])

    References
    ----------
    Banerjee et al. (2005), table 1.
    """

    name: ClassVar[str] = "squared_euclidean"
    title: ClassVar[str] = "squared Euclidean distance"
    citation: ClassVar[str] = "bachem2018scalable, section 2"

    def generator(self, points: Points) -> FloatArray:
        """Return :math:`|x|^2`."""
        return _squares(dense(points))

    def between(self, points: AnyArray, others: AnyArray) -> FloatArray:
        """Return :math:`|x - y|^2`."""
        return _squares(dense(points) - others)

    def to_mean(self, points: Points, mean: FloatArray) -> FloatArray:
        """Squared distance of every row to `mean`, by the compiled kernel."""
        return distances_to(points, mean)

    def whiten(self, points: Points) -> Points:
        """Return `points`: distances between them are Euclidean already."""
        return points


@dataclass(frozen=True, eq=False)
class SquaredMahalanobis(_Quadratic):
    r"""Squared Mahalanobis distance :math:`(x - y)^T P (x - y)`, with :math:`\phi(x) = x^T P x`.

    See :doc:`/guides/clusters`.

    It is its own dominating distance, with A = P and :math:`\mu = 1`.

    Parameters
    ----------
    precision : array-like of shape (d, d) or (d,), optional
        Symmetric positive definite matrix P, or the diagonal of a diagonal P. Default: the inverse
        of the covariance of the data, estimated when a coreset is built.

    Raises
    ------
    InvalidInputError
        If `precision` is not finite, not symmetric, not positive definite or singular. Columns are
        first scaled to a unit diagonal, so their units do not matter.

    Examples
    --------
    >>> distance = SquaredMahalanobis([[1.0, 0.0], [0.0, 4.0]])
    >>> distance.divergence(np.array([[1.0, 1.0]]), np.zeros((1, 2)))
    array([[5.]])
    >>> SquaredMahalanobis().estimated([[0.25]]).precision
    array([[4.]])

    References
    ----------
    Banerjee et al. (2005), table 1. Bachem, Lucic and Krause (2018), section 6.
    """

    precision: Any = None

    name: ClassVar[str] = "mahalanobis"
    title: ClassVar[str] = "squared Mahalanobis distance"
    citation: ClassVar[str] = "bachem2018scalable, section 6"

    def __post_init__(self) -> None:
        if self.precision is not None:
            precision = _positive_definite("precision", self.precision)
            precision.flags.writeable = False
            object.__setattr__(self, "precision", precision)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SquaredMahalanobis):
            return NotImplemented
        if self.precision is None or other.precision is None:
            return self.precision is other.precision
        return np.array_equal(self.precision, other.precision)

    def __hash__(self) -> int:
        return hash(None if self.precision is None else self.precision.tobytes())

    @classmethod
    @one_thread()
    def estimated(cls, covariance: Any) -> SquaredMahalanobis:
        """Return the distance whose precision is the inverse of a covariance.

        Parameters
        ----------
        covariance : array-like of shape (d, d) or (d,)
            Covariance matrix, or variances for a diagonal precision.

        Returns
        -------
        SquaredMahalanobis

        Raises
        ------
        InvalidInputError
            If `covariance` is not a valid covariance, or is singular.
        """
        matrix = _positive_definite("covariance", covariance)
        if matrix.ndim == 1:
            return cls(1.0 / matrix)
        scale = np.sqrt(matrix.diagonal())
        inverse = np.linalg.inv(matrix / scale / scale[:, None]) / scale / scale[:, None]
        return cls((inverse + inverse.T) / 2.0)

    def fitted(self, points: Points, weights: FloatArray) -> SquaredMahalanobis:
        """Return the distance with the inverse covariance of weighted rows, if P is not given.

        Raises
        ------
        InvalidInputError
            If the covariance is singular.
        """
        if self.precision is not None:
            return self
        return self.estimated(scatter_of(points, weights).covariance)

    @cached_property
    @one_thread()
    def factor(self) -> FloatArray:
        """L with :math:`P = L L^T`, of shape (d, d), or (d,) for a diagonal precision."""
        if self.precision is None:
            raise InvalidInputError(
                "precision is not known yet",
                remedy="pass a precision, or take the distance that estimated(covariance) returns",
            )
        if self.precision.ndim == 1:
            return np.asarray(np.sqrt(self.precision))
        return np.asarray(np.linalg.cholesky(self.precision))

    def whiten(self, points: Points) -> FloatArray:
        """Return ``points @ factor``, float64 of shape (n, d)."""
        rows = dense(points)
        if len(self.factor) != rows.shape[1]:
            raise InvalidInputError(
                f"precision has shape {self.precision.shape} but the data have {rows.shape[1]} "
                "columns",
                remedy="pass a precision with one row per column",
            )
        return rows * self.factor if self.factor.ndim == 1 else product(rows, self.factor)

    def generator(self, points: Points) -> FloatArray:
        """Return :math:`x^T P x`."""
        return _squares(self.whiten(points))

    def between(self, points: AnyArray, others: AnyArray) -> FloatArray:
        """Return :math:`(x - y)^T P (x - y)`."""
        return _squares(self.whiten(dense(points) - others))


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


@one_thread()
def _positive_definite(name: str, value: Any) -> FloatArray:
    """Return a float64 copy of a positive definite matrix or diagonal, after checks."""
    matrix = as_numbers(name, value)
    if matrix.ndim not in (1, 2) or not matrix.size or len(set(matrix.shape)) > 1:
        raise InvalidInputError(
            f"{name} has shape {matrix.shape}",
            argument=name,
            remedy="pass a square matrix, or its diagonal",
        )
    if not np.isfinite(matrix).all():
        raise InvalidInputError(
            f"{name} is not finite", argument=name, remedy="pass finite numbers"
        )
    scale = np.sqrt(np.abs(matrix if matrix.ndim == 1 else matrix.diagonal()))
    scale[scale == 0.0] = 1.0
    if matrix.ndim == 1:
        smallest = float((matrix / scale / scale).min())
    else:
        matrix = _symmetric(name, matrix, scale)
        smallest = float(np.linalg.eigvalsh(matrix / scale / scale[:, None])[0])
    if smallest < -_SINGULAR:
        raise InvalidInputError(
            f"{name} is not positive definite: with its columns brought to unit diagonal the "
            f"smallest eigenvalue is {smallest:.3g}",
            argument=name,
            remedy="pass a positive definite matrix",
        )
    if smallest <= _SINGULAR:
        raise InvalidInputError(
            f"{name} is singular",
            argument=name,
            remedy="leave out columns that are constant or combinations of others, take more "
            "rows than columns, or add to the diagonal",
        )
    return matrix


def _symmetric(name: str, matrix: FloatArray, scale: FloatArray) -> FloatArray:
    gap = np.abs(matrix - matrix.T) / scale / scale[:, None]
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    if gap[i, j] > _ASYMMETRY:
        raise InvalidInputError(
            f"{name} is not symmetric: entry ({i}, {j}) is {matrix[i, j]} and entry ({j}, {i}) "
            f"is {matrix[j, i]}",
            argument=name,
            remedy="pass a symmetric matrix",
        )
    return np.asarray((matrix + matrix.T) / 2.0)
