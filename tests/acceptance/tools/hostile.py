"""Data that broke a promise once, or would break one that is kept: one table for all tests.

Every instance has few rows, so that all constructions can be tried on it in every mode. What needs
many rows to break is in the file of its theme.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

N = 2500
N_ORDERED = 50_000
"""Five hundred rows for every row of a coreset of a hundred: a walk of even steps through these
meets one value again and again, for any period that divides fifty. More rows than candidates."""


_rows, _few = np.arange(N_ORDERED), np.arange(N)


@dataclass(frozen=True, eq=False)
class Instance:
    """Rows, labels that any method may be given, weights, and how the rows lie in blocks."""

    X: Any
    y: Any
    weights: Any
    chunks: tuple[int, ...]


def _instance(X: Any, y: Any = None, weights: Any = None, chunks: Any = None) -> Instance:
    n = X.shape[0]
    if y is None:  # with the first column, and one label of five wrong
        first = X[:, [0]].toarray()[:, 0] if sp.issparse(X) else X[:, 0]
        rng = np.random.default_rng(n)
        y = (first > np.median(first)) ^ (rng.random(n) < 0.2)
        y[:2] = 0, 1
    weights = np.ones(n) if weights is None else weights
    chunks = (n // 2, 0, 1, n - n // 2 - 1) if chunks is None else chunks
    return Instance(X, np.asarray(y).astype(np.int64), weights, chunks)


def _column(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)[:, np.newaxis]


def _normal(n: int = N, d: int = 3, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


def _angle() -> Any:
    angle = 2 * np.pi * (_rows % 25) / 25
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _interleaved() -> Any:
    return 5 * _normal(10, seed=1)[_rows % 10] + 0.05 * _normal(N_ORDERED)


def _hidden() -> Any:
    """Two far clusters, and ten of five rows near the mean."""
    X = 0.01 * _normal()
    X[:, 0] += np.where(np.arange(N) % 2, 100.0, -100.0)
    for k, place in enumerate(_normal(10, seed=2)):
        X[7 + 240 * k : 12 + 240 * k] = place + 0.001 * _normal(5)
    return X


def _one_row(share: float = 0.995) -> Any:
    """One row with 99.5 % of the variance."""
    X = _normal()
    X[N // 3] = np.sqrt(share / (1 - share) * 3 * N) / np.sqrt(3)
    return X


def _long_row() -> Any:
    """A row far longer than many others: by the root of its leverage it is hardly drawn."""
    X = _normal(N_ORDERED, 4)
    X[N_ORDERED // 3] *= 1e4
    return X


def _half_heavy() -> Any:
    X = _normal(d=4)
    X[:, 2:] = np.random.default_rng(0).standard_cauchy((N, 2))
    return X


def _all_of_the_cost() -> Any:
    X = np.zeros((N, 2))
    X[N - 1] = 1.0, -1.0
    return X


def _light_and_far() -> Any:
    X = _normal()
    X[0] = 1e12
    return X


def _rare(positives: int) -> tuple[Any, Any]:
    X, y = _normal(d=4), np.zeros(N, dtype=np.int64)
    y[np.random.default_rng(1).choice(N, positives, replace=False)] = 1
    X[y == 1, :2] += 1.5
    return X, y


def _separable() -> tuple[Any, Any]:
    X = _normal()
    X[:, 0] += 3 * np.sign(X[:, 0])
    return X, X[:, 0] > 0


def uneven_categories(n: int, n_categories: int) -> Any:
    """One column of categories in one-hot form, a few of which most rows have."""
    drawn = np.random.default_rng(5).zipf(1.5, n) - 1
    return np.eye(n_categories)[np.minimum(drawn, n_categories - 1)]


def _sparse() -> Any:
    return sp.random_array((N, 12), density=0.2, format="csr", rng=np.random.default_rng(0))


INSTANCES: dict[str, Callable[[], Instance]] = {
    # order
    "remainder of 50": lambda: _instance(_column(_rows % 50)),
    "alternating signs": lambda: _instance(_column(np.where(_rows % 2, 1.0, -1.0))),
    "angle of 25 steps": lambda: _instance(_angle()),
    "one-hot of ten": lambda: _instance(np.eye(10)[_rows % 10]),
    "one-hot of uneven counts": lambda: _instance(uneven_categories(N, 30)),
    "ten interleaved clusters": lambda: _instance(_interleaved()),
    "sorted by class": lambda: _instance(np.sort(_normal(), axis=0), _few >= N - 40),
    # a few rows with nearly all of the cost
    "hidden clusters": lambda: _instance(_hidden()),
    "one row with 99.5 % of the variance": lambda: _instance(_one_row()),
    "one row with all of the cost": lambda: _instance(_all_of_the_cost()),
    "one row of 20,000 times 10,000": lambda: _instance(_long_row()),
    "half of the columns with heavy tails": lambda: _instance(_half_heavy()),
    "heavy tails": lambda: _instance(np.random.default_rng(0).standard_cauchy((N, 2))),
    "lognormal clusters": lambda: _instance(np.exp(4 * _normal(d=2))),
    # labels
    "0.4 % positives": lambda: _instance(*_rare(10)),
    "a class of five rows": lambda: _instance(*_rare(5)),
    "separable classes": lambda: _instance(*_separable()),
    # places and scales
    "offset of 1e8": lambda: _instance(_normal() + 1e8),
    "columns of unlike scale": lambda: _instance(_normal() * [1e-6, 1.0, 1e6]),
    "a constant column": lambda: _instance(np.c_[_normal(d=2), np.full(N, 7.0)]),
    "three distinct rows": lambda: _instance(_normal(3)[_few**2 % 3]),
    "more columns than rows": lambda: _instance(_normal(40, 60)),
    "sparse": lambda: _instance(_sparse()),
    "float32": lambda: _instance((_normal() + 1e3).astype(np.float32)),
    # weights and blocks
    "weights of all scales": lambda: _instance(_normal(), weights=np.exp(3 * _normal()[:, 0])),
    "a light row far away comes first": lambda: _instance(
        _light_and_far(), weights=np.where(_few, 1.0, 1e-30)
    ),
    "hardly any row with a weight": lambda: _instance(_normal(), weights=(_few % 9 == 4) * 1.5),
    "a long block and one row": lambda: _instance(_normal(), chunks=(N - 1, 1)),
    "many short blocks": lambda: _instance(_normal(1000), chunks=(1, 2) * 20 + (940,)),
}
