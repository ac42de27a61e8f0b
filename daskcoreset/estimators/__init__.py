"""Estimators in scikit-learn's manner: they fit on a coreset and predict on all the data."""

from __future__ import annotations

from daskcoreset.estimators.active_margin import ActiveMaxMarginClassifier
from daskcoreset.estimators.avm import AVMClassifier
from daskcoreset.estimators.bregman import CoresetBregman
from daskcoreset.estimators.csvrg import CSVRGClassifier
from daskcoreset.estimators.general import CoresetEstimator
from daskcoreset.estimators.kmeans import CoresetKMeans
from daskcoreset.estimators.linear_svm import LinearSVM
from daskcoreset.estimators.logistic import CoresetLogisticRegression
from daskcoreset.estimators.margin import MaxMarginClassifier
from daskcoreset.estimators.mixture import CoresetGaussianMixture
from daskcoreset.estimators.odm import ODMClassifier
from daskcoreset.estimators.outlier_margin import OutlierMaxMarginClassifier
from daskcoreset.estimators.structured_margin import StructuredMaxMargin
from daskcoreset.estimators.svc import CoresetSVC

__all__ = [
    "AVMClassifier",
    "ActiveMaxMarginClassifier",
    "CSVRGClassifier",
    "CoresetBregman",
    "CoresetEstimator",
    "CoresetGaussianMixture",
    "CoresetKMeans",
    "CoresetLogisticRegression",
    "CoresetSVC",
    "LinearSVM",
    "MaxMarginClassifier",
    "ODMClassifier",
    "OutlierMaxMarginClassifier",
    "StructuredMaxMargin",
]
