"""Estimators in scikit-learn's manner: they fit on a coreset and predict on all the data."""

from __future__ import annotations

from daskcoreset.constructions.margin.structured import StructuredProblem
from daskcoreset.estimators.bregman import CoresetBregman
from daskcoreset.estimators.kernel.classifier import CoresetKernelClassifier
from daskcoreset.estimators.kernel.odm import ODMClassifier
from daskcoreset.estimators.kmeans import CoresetKMeans
from daskcoreset.estimators.linear import CoresetLogisticRegression, CoresetSVC
from daskcoreset.estimators.margin.active import ActiveMaxMarginClassifier
from daskcoreset.estimators.margin.max_margin import (
    MaxMarginClassifier,
    OutlierMaxMarginClassifier,
)
from daskcoreset.estimators.margin.structured import StructuredMaxMargin
from daskcoreset.estimators.meta import CoresetEstimator
from daskcoreset.estimators.mixture import CoresetGaussianMixture
from daskcoreset.estimators.regression import (
    CoresetElasticNet,
    CoresetRidge,
)

__all__ = [
    "ActiveMaxMarginClassifier",
    "CoresetBregman",
    "CoresetElasticNet",
    "CoresetEstimator",
    "CoresetGaussianMixture",
    "CoresetKMeans",
    "CoresetKernelClassifier",
    "CoresetLogisticRegression",
    "CoresetRidge",
    "CoresetSVC",
    "MaxMarginClassifier",
    "ODMClassifier",
    "OutlierMaxMarginClassifier",
    "StructuredMaxMargin",
    "StructuredProblem",
]
