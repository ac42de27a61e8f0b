from typing import Any

import numpy as np
import pytest

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import CoresetKMeans

RNG = np.random.default_rng(0)

CENTERS = 20.0 * RNG.normal(size=(150, 6))

ROWS = np.repeat(CENTERS, 20, axis=0) + RNG.normal(size=(3000, 6)) + 1e6


def test_coreset_kmeans__solver() -> None:
    options: dict[str, Any] = {"size": 1000, "random_state": 0}
    model = CoresetKMeans(150, solver="parts", **options).fit(ROWS)
    assert model.cluster_centers_.shape == (150, 6)
    assert model.coreset_.provenance["parameters"]["n_centers"] == 150
    plain = CoresetKMeans(150, n_init=1, **options).fit(ROWS)
    assert model.inertia_ < 3.0 * plain.inertia_  # of plain k-means++, where that is greedy
    with pytest.raises(InvalidInputError, match="has no use for"):
        CoresetKMeans(3, solver="parts", init="random").fit(ROWS)
    with pytest.raises(ValueError, match="solver"):
        CoresetKMeans(3, solver="exact").fit(ROWS)  # type: ignore[arg-type]
