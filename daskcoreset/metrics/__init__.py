"""Costs over all data, audits, comparisons of methods, and sizes by theory."""

from __future__ import annotations

from daskcoreset.metrics.audit import Audit
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.metrics.sizing import theory_size

__all__ = ["Audit", "kmeans_cost", "theory_size"]
