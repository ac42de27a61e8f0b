"""Ways to draw, and clusters of rows in uneven blocks."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from daskcoreset.core.typing import FloatArray, Sampling

MODES: list[tuple[Sampling, Literal[1, 2]]] = [
    ("systematic", 1),
    ("systematic", 2),
    ("multinomial", 1),
    ("multinomial", 2),
]


modes = pytest.mark.parametrize(("sampling", "passes"), MODES)


def clusters() -> tuple[FloatArray, FloatArray, list[int]]:
    """Rows sorted by cluster, so that blocks differ; heavy-tailed weights; block sizes."""
    rng = np.random.default_rng(9)
    centers = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 30.0, 0.0]])
    X = np.repeat(centers, [240, 100, 20], axis=0) + rng.normal(size=(360, 3))
    u = rng.lognormal(size=360) * (rng.random(360) < 0.9)
    return X, u, [150, 0, 90, 1, 99, 20]
