"""Weighted solvers that scikit-learn lacks: NumPy in, NumPy out, one problem per file."""

from __future__ import annotations
