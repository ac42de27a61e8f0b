from typing import Any

import numpy as np
import pytest

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.solvers.kmeans import nearest
from daskcoreset.solvers.kmeans_large import solve_in_parts

RNG = np.random.default_rng(0)

CENTERS = 20.0 * RNG.normal(size=(150, 6))

ROWS = np.repeat(CENTERS, 20, axis=0) + RNG.normal(size=(3000, 6)) + 1e6

WEIGHTS = RNG.uniform(0.5, 2.0, len(ROWS))


def test_solve_in_parts__costs_little_more_than_the_clusters_do() -> None:
    found = solve_in_parts(ROWS, WEIGHTS, 150, 0)
    assert found.centers.shape == (150, 6)
    cost = WEIGHTS @ nearest(ROWS, found.centers)[1]
    assert cost < 2.5 * WEIGHTS @ nearest(ROWS, CENTERS + 1e6)[1]
    again = solve_in_parts(ROWS, WEIGHTS, 150, 0)
    np.testing.assert_array_equal(found.centers, again.centers)


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
