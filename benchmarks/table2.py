"""Sets, splits and sizes of Table 2 of the CSVRG paper: Tan, Zhang and Wang (2019)."""

from __future__ import annotations

import common
import numpy as np
from sets import load

# LIBSVM, ODM, AVM and CSVRG in %, and core points of CSVRG.
PAPER = {
    "magic04": (87.00, 86.55, 82.05, 84.43, 359),
    "a9a": (84.79, 85.29, 81.46, 84.26, 128),
    "w8a": (98.67, 98.57, 97.09, 97.14, 213),
    "cod_rna": (95.52, 95.57, 91.32, 94.22, 275),
    "ijcnn1": (99.31, None, 90.45, 91.33, 296),
    "covtype": (None, None, 70.25, 73.22, 132),
}
DIAMETERS = {
    "magic04": 0.62, "a9a": 7.0, "w8a": 12.5, "cod_rna": 0.534, "ijcnn1": 0.857,
    "covtype": 2.036,
}  # fmt: skip
"""Of covers with nearly as many core points as the paper's."""


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load a set, dense."""
    found = load(name)
    X, y = common.dense(found.X, np.float32), np.asarray(found.y)
    stop = int(found.extras["n_train"]) if name == "cod_rna" else len(X)
    return X[:stop], y[:stop]


def split(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Split at random, and scale by the training rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: int(0.8 * len(X))], order[int(0.8 * len(X)) :]
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    scale = np.where(high > low, high - low, 1)
    return (X[train] - low) / scale, y[train], (X[test] - low) / scale, y[test]
