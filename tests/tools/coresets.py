"""Coresets of a few rows, with a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from daskcoreset.core.coreset import Coreset

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray


RECORD = {
    "method": "lightweight",
    "parameters": {"sampling": "systematic", "alpha": 0.1},
    "size": 4,
    "m": 4,
    "n": 1000,
    "d": 3,
    "seed": 2**100,
    "total_weight": 1000.0,
    "versions": {"numpy": np.__version__},
    "source": None,
    "columns": ["height", "width", "<b>"],
}


def rows(m: int = 4, d: int = 3, *, sparse: bool = False) -> Any:
    points = np.random.default_rng(0).normal(size=(m, d))
    points[points < 0.0] = 0.0
    return sp.csr_array(points) if sparse else points


def make_coreset(
    *, sparse: bool = False, labels: AnyArray | None = None, **changes: Any
) -> Coreset:
    record = {**RECORD, **changes}
    weights = np.array([100.0, 200.0, 300.5, 399.5])
    return Coreset(rows(sparse=sparse), weights, np.array([5, 7, 7, 999]), labels, record)
