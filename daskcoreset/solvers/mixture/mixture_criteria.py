"""How well a Gaussian mixture fits weighted rows: likelihood, BIC and AIC."""

from __future__ import annotations

import numpy as np

from daskcoreset.solvers.mixture.mixture_density import score_samples
from daskcoreset.solvers.mixture.model import Mixture
from daskcoreset.core.typing import FloatArray, Points

__all__ = ["aic", "bic", "log_likelihood"]


def log_likelihood(mixture: Mixture, X: Points, sample_weight: FloatArray | None = None) -> float:
    r"""Weighted log-likelihood of a block, :math:`\sum_i u_i \log p(x_i)`.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Rows, finite where their weight is not zero.
    sample_weight : ndarray of shape (n,), float64, optional
        Weights u, ones by default. Rows of weight zero do not count, whatever they hold.

    Returns
    -------
    float
        Additive over blocks.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(log_likelihood(mixture, np.array([[0.0], [1.0]]), np.array([2.0, 0.0])), 6)
    -1.837877
    """
    if sample_weight is None:
        return float(score_samples(mixture, X).sum())
    counted = sample_weight > 0.0
    if not counted.all():
        X, sample_weight = X[counted], sample_weight[counted]
    return float(sample_weight @ score_samples(mixture, X))


def bic(mixture: Mixture, X: Points, sample_weight: FloatArray | None = None) -> float:
    r"""Bayesian information criterion, :math:`-2 \sum_i u_i \log p(x_i) + f \log \sum_i u_i`.

    f is the number of free parameters. The total weight stands where n stands without
    weights: the weights of a coreset sum to the number of rows of the data, so its BIC
    estimates that of the data. It follows that the scale of the weights matters here.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
    sample_weight : ndarray of shape (n,), float64, optional
        Weights u, ones by default.

    Returns
    -------
    float
        The lower, the better.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(bic(mixture, np.zeros((4, 1))), 6)
    10.124097

    References
    ----------
    Schwarz (1978), Estimating the Dimension of a Model.
    """
    total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    fit = -2.0 * log_likelihood(mixture, X, sample_weight)
    return float(fit + mixture.n_parameters * np.log(total))


def aic(mixture: Mixture, X: Points, sample_weight: FloatArray | None = None) -> float:
    r"""Akaike's information criterion, :math:`-2 \sum_i u_i \log p(x_i) + 2 f`.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
    sample_weight : ndarray of shape (n,), float64, optional
        Weights u, ones by default; as in `bic`, their scale matters.

    Returns
    -------
    float
        The lower, the better.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(aic(mixture, np.zeros((4, 1))), 6)
    11.351508

    References
    ----------
    Akaike (1974), A New Look at the Statistical Model Identification.
    """
    return -2.0 * log_likelihood(mixture, X, sample_weight) + 2.0 * mixture.n_parameters
