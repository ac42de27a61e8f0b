from typing import Any

import numpy as np
import pytest

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import deduplicate
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.solvers import kmeans_large as module
from daskcoreset.solvers.kmeans import nearest
from daskcoreset.solvers.kmeans_large import solve_in_parts
from tests.pairs import each
from tests.solvers.test_hartigan import HOSTILE, cost_of

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


def _start(monkeypatch: pytest.MonkeyPatch, *given: Any) -> tuple[AnyArray, FloatArray, FloatArray]:
    """Rows that the passes are made over, their weights, and the centers before the first one."""
    seen: list[Any] = []

    def keep(*rows: Any, **_: Any) -> tuple[FloatArray, int]:
        seen.extend(rows)
        return rows[2], 0

    with monkeypatch.context() as patch:
        patch.setattr(module, "hartigan", keep)
        solve_in_parts(*given)
    return seen[0], seen[1], seen[2]


@each(n_clusters=[None, 4], name=list(HOSTILE))
def test_solve_in_parts__passes_never_add_cost(
    name: str, n_clusters: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, weights, k = HOSTILE[name]
    rows, weights, _ = deduplicate(rows, weights)
    k = min(k, n_clusters or k)
    for seed in range(3):
        solved, u, start = _start(monkeypatch, rows, weights, k, seed)
        assert len(solved) <= max(4 * k, len(start))
        found, again = (solve_in_parts(rows, weights, k, seed).centers for _ in range(2))
        np.testing.assert_array_equal(found, again)
        assert found.shape == (k, rows.shape[1])
        assert np.isfinite(found).all()
        scale = float(abs(solved).max())
        before, after = (
            cost_of(solved / scale, u / u.max(), centers / scale) for centers in (start, found)
        )
        # Of an offset the coordinates themselves keep eight digits.
        slack = 1e-9 if name != "offset of 1e8" else 1e-6
        assert after <= before * (1 + slack) + 1e-24


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
