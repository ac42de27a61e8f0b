"""Rows as a loader reads them."""

from __future__ import annotations

import pickle

import numpy as np
import scipy.sparse as sp

from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.sources import Source


def read(source: Source, start: int, stop: int) -> AnyArray:
    """Read as a worker does, which gets the loader as a pickle."""
    rows = pickle.loads(pickle.dumps(source.loader(start, stop)))()
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)
