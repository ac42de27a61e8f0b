"""Weighted solvers that scikit-learn lacks, in NumPy."""

from __future__ import annotations
