"""Costs over all data, audits, sizes, and pictures of them."""

from __future__ import annotations

from daskcoreset.metrics.costs import (
    SVMReport,
    accuracy,
    distortion,
    hinge_loss,
    kmeans_cost,
    relative_error,
    svm_cost,
    svm_report,
    svm_sensitivity,
)

__all__ = [
    "SVMReport",
    "accuracy",
    "distortion",
    "hinge_loss",
    "kmeans_cost",
    "relative_error",
    "svm_cost",
    "svm_report",
    "svm_sensitivity",
]
