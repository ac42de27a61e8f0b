"""Estimators in scikit-learn's manner: they fit on a coreset and predict on all the data."""

from __future__ import annotations

from daskcoreset.estimators.general import CoresetEstimator
from daskcoreset.estimators.kmeans import CoresetKMeans

__all__ = ["CoresetEstimator", "CoresetKMeans"]
