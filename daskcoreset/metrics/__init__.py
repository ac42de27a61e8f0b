"""Costs over all data, audits, sizes, and pictures of them."""

from __future__ import annotations

from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.metrics.sizing import theory_size

__all__ = ["kmeans_cost", "theory_size"]
