"""The online rule against a plain loop, and its promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.constructions.coverage import metric as cover_cells
from daskcoreset.constructions.coverage.metric import Metric
from daskcoreset.constructions.coverage.online import doubling, online
from tests.tools.covers import distances, gonzalez, near_a_surface, one_pass

CELLS = ("euclidean", "chebyshev")


@pytest.mark.parametrize("cells", CELLS)
def test_online__is_the_rule_read_row_by_row(cells: str) -> None:
    X = near_a_surface(500)
    rows, full = online(X, 0.1, Metric(cells == "chebyshev"), max_points=10_000)
    assert rows.tolist() == one_pass(X, 0.2, cells)
    assert not full
    some, full = online(X, 0.1, Metric(cells == "chebyshev"), max_points=7)
    assert some.tolist() == rows[:7].tolist()
    assert full
    known, _ = online(X[100:], 0.1, Metric(cells == "chebyshev"), earlier=X[rows], max_points=0)
    assert not len(known)


def test_online__makes_more_room_as_it_goes() -> None:
    X = np.arange(5000.0)[:, None]
    rows, full = online(X, 0.5, Metric(boxes=False), max_points=10_000)
    assert rows.tolist() == list(range(5000))
    assert not full


def test_doubling__sparse_rows_tile_by_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover_cells, "_TILE_BYTES", 8 * 3 * 7)  # seven rows
    X = np.random.default_rng(0).random((100, 3))
    dense, sparse = (doubling(one, 9, Metric(boxes=False)) for one in (X, sp.csr_array(X)))

    assert sparse[0].tolist() == dense[0].tolist()
    assert sparse[1:] == dense[1:]


@pytest.mark.parametrize("boxes", [False, True])
def test_doubling__holds_no_more_and_covers_what_it_says(boxes: bool) -> None:
    X = near_a_surface(3000)
    metric = Metric(boxes)
    for most in (1, 5, 64, 1000):
        rows, radius, apart = doubling(X, most, metric)
        assert 0 < len(rows) <= most
        assert (np.diff(rows) > 0).all()
        farthest = distances(X, X[rows], "chebyshev" if boxes else "euclidean").min(axis=1).max()
        assert farthest <= 3 * radius
        _, gaps = gonzalez(X, min(most // 2 + 2, 40), "chebyshev" if boxes else "euclidean")
        # No more rows than `gaps` can be farther apart than twice the radius of that traversal.
        assert apart <= 2 * gaps[-1] or most > 80
