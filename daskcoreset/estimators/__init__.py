"""Estimators in scikit-learn's manner: they fit on a coreset and predict on all the data."""

from __future__ import annotations

from daskcoreset.estimators.bregman import CoresetBregman
from daskcoreset.estimators.general import CoresetEstimator
from daskcoreset.estimators.kmeans import CoresetKMeans
from daskcoreset.estimators.mixture import CoresetGaussianMixture

__all__ = ["CoresetBregman", "CoresetEstimator", "CoresetGaussianMixture", "CoresetKMeans"]
