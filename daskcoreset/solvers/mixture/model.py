r"""Gaussian mixtures: their parameters, what is derived from them, and samples.

The parametrisation is scikit-learn's: ``precisions_cholesky`` holds an upper-triangular U
with :math:`U U^T = \Sigma^{-1}`, so that :math:`(x - \mu)^T \Sigma^{-1} (x - \mu) =
|(x - \mu) U|^2` needs no solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray

CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]
"""One matrix for each component, one for all, a diagonal or a single variance for each."""


@dataclass(frozen=True, eq=False)
class Mixture:
    r"""Parameters of :math:`p(x) = \sum_k \pi_k \mathcal N(x; \mu_k, \Sigma_k)`.

    Make one with `mixture_from_covariances` or `mixture_from_precisions`, which check the
    matrices; immutable, picklable, and small enough to be sent to every block.

    Attributes
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}
    weights : ndarray of shape (k,), float64
        Non-negative, of sum one.
    means : ndarray of shape (k, d), float64
    covariances : ndarray, float64
        Of shape (k, d, d), (d, d), (k, d) or (k,), in the order of the types.
    precisions_cholesky : ndarray, float64
        Upper-triangular factors of the inverse covariances, or inverse standard
        deviations; of the shape of `covariances`.

    References
    ----------
    Pedregosa et al. (2011), `sklearn.mixture.GaussianMixture`, for the parametrisation.
    """

    covariance_type: CovarianceType
    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    precisions_cholesky: FloatArray

    @property
    def precisions(self) -> FloatArray:
        """Inverse covariances, of the shape of `covariances`."""
        factor = self.precisions_cholesky
        if self.covariance_type in ("full", "tied"):
            return np.asarray(factor @ factor.swapaxes(-1, -2))
        return np.asarray(factor**2)

    @property
    def n_parameters(self) -> int:
        """Free parameters: those of the covariances, k d means and k - 1 weights."""
        k, d = self.means.shape
        symmetric = d * (d + 1) // 2
        free = {"full": k * symmetric, "tied": symmetric, "diag": k * d, "spherical": k}
        return int(free[self.covariance_type] + k * d + k - 1)


def as_covariance_type(name: str) -> CovarianceType:
    """Return `name`, checked.

    Examples
    --------
    >>> as_covariance_type("diag")
    'diag'
    """
    if name not in get_args(CovarianceType):
        raise InvalidInputError(
            f"covariance_type must be one of {', '.join(get_args(CovarianceType))}, got {name!r}."
        )
    return cast("CovarianceType", name)


def covariance_shape(kind: CovarianceType, k: int, d: int) -> tuple[int, ...]:
    """Shape of the covariances of k components in d dimensions."""
    return {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]


def mixture_from_covariances(
    covariance_type: CovarianceType, weights: FloatArray, means: FloatArray, covariances: FloatArray
) -> Mixture:
    """Mixture with given covariances, whose factors are computed.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}
    weights : ndarray of shape (k,), float64
    means : ndarray of shape (k, d), float64
    covariances : ndarray, float64
        Of the shape that belongs to the type; see `Mixture`.

    Returns
    -------
    Mixture

    Raises
    ------
    InvalidInputError
        If a covariance is not positive definite, or so nearly singular that its Cholesky
        factorisation fails in float64.

    Examples
    --------
    >>> mixture = mixture_from_covariances(
    ...     "diag", np.ones(1), np.zeros((1, 2)), np.full((1, 2), 4.0)
    ... )
    >>> mixture.precisions_cholesky, mixture.n_parameters
    (array([[0.5, 0.5]]), 4)
    """
    try:
        if covariance_type == "full":
            factors = np.stack([_inverse_factor(one) for one in covariances])
        elif covariance_type == "tied":
            factors = _inverse_factor(covariances)
        else:
            if not (covariances > 0.0).all():
                raise np.linalg.LinAlgError  # noqa: TRY301  # one message for all types
            factors = 1.0 / np.sqrt(covariances)
    except np.linalg.LinAlgError:
        raise singular_error(covariance_type, covariances) from None
    return Mixture(covariance_type, weights, means, covariances, factors)


def mixture_from_precisions(
    covariance_type: CovarianceType, weights: FloatArray, means: FloatArray, precisions: FloatArray
) -> Mixture:
    """Mixture with given inverse covariances, as ``precisions_init`` states them.

    Arguments are those of `mixture_from_covariances`, with inverses for the covariances.

    Raises
    ------
    InvalidInputError
        If a precision is not positive definite.

    Examples
    --------
    >>> mixture = mixture_from_precisions(
    ...     "spherical", np.ones(1), np.zeros((1, 2)), np.full(1, 4.0)
    ... )
    >>> mixture.covariances, mixture.precisions_cholesky
    (array([0.25]), array([2.]))
    """
    if covariance_type in ("diag", "spherical"):
        if not (precisions > 0.0).all():
            raise InvalidInputError("precisions must be positive; pass positive precisions.")
        return Mixture(covariance_type, weights, means, 1.0 / precisions, np.sqrt(precisions))
    try:
        # With J the reversal of rows, J P J = L L^T gives P = (J L J)(J L J)^T, where J L J
        # is upper triangular: the factor that the inverse covariance would have given.
        factors = np.linalg.cholesky(precisions[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError:
        raise InvalidInputError(
            "precisions must be positive definite; pass inverse covariances."
        ) from None
    inverse = np.linalg.inv(factors)
    covariances = inverse.swapaxes(-1, -2) @ inverse
    return Mixture(covariance_type, weights, means, covariances, np.ascontiguousarray(factors))


def sample(
    mixture: Mixture, n_samples: int = 1, random_state: RandomState = None
) -> tuple[FloatArray, IndexArray]:
    """Draw rows from the mixture.

    Parameters
    ----------
    mixture : Mixture
    n_samples : int, default=1
        Rows to draw, at least one.
    random_state : int, Generator, RandomState or None, default=None
        An int gives the same rows on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, d), float64
        Ordered by component, as scikit-learn's are.
    labels : ndarray of shape (n_samples,), int64
        Component of every row.

    Raises
    ------
    InvalidInputError
        If `n_samples` is less than one.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> X, labels = sample(mixture, 3, random_state=0)
    >>> X.shape, labels
    ((3, 2), array([0, 0, 1]))
    """
    import scipy.linalg

    if n_samples < 1:
        raise InvalidInputError(f"n_samples must be at least 1, got {n_samples}.")
    rng = np.random.default_rng(resolve_seed(random_state))
    # Normalised again: the generator refuses sums that exceed one by rounding.
    counts = rng.multinomial(n_samples, mixture.weights / mixture.weights.sum())
    labels = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    normal = rng.standard_normal((n_samples, mixture.means.shape[1]))
    factor = mixture.precisions_cholesky
    if mixture.covariance_type == "diag":
        normal /= factor[labels]
    elif mixture.covariance_type == "spherical":
        normal /= factor[labels, np.newaxis]
    else:
        # Rows z U^{-1} of standard normal z have the covariance U^{-T} U^{-1}.
        for one in range(len(counts)):
            rows = labels == one
            upper = factor[one] if mixture.covariance_type == "full" else factor
            drawn = scipy.linalg.solve_triangular(upper, normal[rows].T, trans="T")
            normal[rows] = drawn.T
    return normal + mixture.means[labels], labels


def _inverse_factor(covariance: FloatArray) -> FloatArray:
    import scipy.linalg

    lower = np.linalg.cholesky(covariance)
    identity = np.eye(len(covariance))
    inverse = scipy.linalg.solve_triangular(lower, identity, lower=True, check_finite=False)
    return np.ascontiguousarray(inverse.T)


def singular_error(kind: CovarianceType, covariances: FloatArray) -> InvalidInputError:
    """Error for covariances that cannot be factored, with the remedy."""
    matrices = kind in ("full", "tied")
    variances = np.diagonal(covariances, axis1=-2, axis2=-1) if matrices else covariances
    return InvalidInputError(
        f"covariances of type {kind!r} are not positive definite in float64: a component has "
        f"collapsed onto a point or a plane (variances from {variances.min():.3g} to "
        f"{variances.max():.3g}). Increase reg_covar, to 1e-6 times the largest variance for "
        f"instance, decrease n_components, or scale the columns alike."
    )
