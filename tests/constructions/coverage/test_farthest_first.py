"""The farthest-point rule, and covers of a given number of points."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.constructions.coverage.farthest_first import farthest_first
from daskcoreset.constructions.coverage.metric import Metric
from tests.tools.covers import gonzalez, near_a_surface

CELLS = ("euclidean", "chebyshev")


@pytest.mark.parametrize("cells", CELLS)
def test_farthest_first__is_the_traversal_of_gonzalez(cells: str) -> None:
    X = near_a_surface(400)
    rows, gaps = gonzalez(X, 30, cells)
    metric = Metric(cells == "chebyshev")
    found = farthest_first(X, 29, metric)
    assert found.rows.tolist() == rows[:29]
    np.testing.assert_allclose(metric.distances(found.gaps), gaps[:29])
    np.testing.assert_allclose(metric.distance(found.remaining), gaps[29])
    stopped = farthest_first(X, 100, metric, limit=metric.measure(float(gaps[10])))
    assert stopped.rows.tolist() == rows[:10]
