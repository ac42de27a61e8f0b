"""Pools of rows that can be separated, and oracles for them."""

from __future__ import annotations

from typing import Any

import numpy as np

W, B = np.array([1.0, -2.0, 0.5, 0.0]) / np.sqrt(5.25), 0.3


def separable(n: int = 6000, gap: float = 0.06, seed: int = 0) -> np.ndarray[Any, Any]:
    X = np.random.default_rng(seed).normal(size=(n, 4))
    kept: np.ndarray[Any, Any] = X[np.abs(X @ W + B) > gap]
    return kept


def above(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(rows @ W + B > 0, "yes", "no")


def looked_up(y: np.ndarray[Any, Any]) -> Any:
    return lambda rows, indices: y[indices]  # noqa: ARG005 - named by the protocol
