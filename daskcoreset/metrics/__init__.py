"""Costs over all data, audits, sizes, and pictures of them."""

from __future__ import annotations

from daskcoreset.metrics.costs import kmeans_cost

__all__ = ["kmeans_cost"]
