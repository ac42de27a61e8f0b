"""Labelled rows for classifiers on core points, and such classifiers."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from daskcoreset.core.typing import AnyArray


def labelled(n: int = 3000, seed: int = 0) -> tuple[AnyArray, AnyArray]:
    rng = np.random.default_rng(seed)
    ROWS = rng.random((n, 2), dtype=np.float32)
    ring = np.hypot(ROWS[:, 0] - 0.5, ROWS[:, 1] - 0.5)
    return ROWS, np.array(["in", "out", "rim"])[np.digitize(ring, [0.25, 0.5])]


ROWS, CLASSES = labelled()


def chunked(y: AnyArray = CLASSES) -> tuple[Any, Any]:
    return da.from_array(ROWS, chunks=(700, 2)), da.from_array(y, chunks=700)
