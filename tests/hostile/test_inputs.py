"""Input and parameters that were answered wrongly once: what they get now.

Every answer is either right, by an independent computation, or an error before anything is
stored that names the argument, what was found and what to do.
"""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset import CoresetStream, CoresetTree, StrongKMeans, build
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import (
    CoresetKMeans,
)
from daskcoreset.solvers.linear import solve_svm

ROWS = np.random.default_rng(0).normal(size=(600, 3))
SIDES = (ROWS[:, 0] > 0).astype(np.int64)
ROWS[:, 0] += 2 * SIDES


def test_kmeans__large_values_of_float32_are_clustered_as_small_ones() -> None:
    rows = ROWS.astype(np.float32)
    plain = CoresetKMeans(3, random_state=0).fit(rows)
    scale = np.float32(2.0**100)
    for forms in ((rows, rows * scale), (sp.csr_array(rows), sp.csr_array(rows * scale))):
        small, large = (CoresetKMeans(3, random_state=0).fit(form) for form in forms)
        np.testing.assert_array_equal(large.labels_, plain.labels_)
        np.testing.assert_array_equal(small.labels_, plain.labels_)
        np.testing.assert_allclose(large.cluster_centers_ / scale, plain.cluster_centers_)

    init = rows[:3] * scale
    found = CoresetKMeans(3, init=init, n_init=1, random_state=0).fit(rows * scale)
    assert found.inertia_ == pytest.approx(float(plain.inertia_) * float(scale) ** 2, rel=0.3)


def test_n_clusters__is_remembered_wherever_it_was_said(tmp_path: Path) -> None:
    wanted = {"name": "quantization error", "n_clusters": 4}
    model = CoresetKMeans(4, method="lightweight", size=100, random_state=0).fit(ROWS)
    assert model.coreset_.provenance["objective"] == wanted
    assert len(model.coreset_.audit(ROWS).solutions[0]) == 4
    assert CoresetKMeans(4, size=100).fit(ROWS).coreset_.provenance["objective"] == wanted
    other = CoresetKMeans(4, size=100, method=StrongKMeans(9)).fit(ROWS).coreset_
    assert other.provenance["objective"] == {**wanted, "n_clusters": 9}

    stream = CoresetStream("lightweight", size=100, n_clusters=4, store=tmp_path / "s")
    stream.partial_fit(ROWS)
    for one in (stream, CoresetStream.load(tmp_path / "s")):
        assert one.coreset().provenance["objective"] == wanted
    assert len(stream.coreset().audit(ROWS).solutions[0]) == 4
    tree = CoresetTree.create(tmp_path / "t", method="uniform", size=100, n_clusters=4)
    tree.append(ROWS)
    for made in (tree, CoresetTree.open(tmp_path / "t")):
        assert made.coreset().provenance["objective"] == wanted


def test_build__a_million_clusters_are_refused_or_found() -> None:
    rows = da.zeros((2_000_000, 5), chunks=(1_000_000, 5))
    with pytest.raises(InvalidInputError, match=r"1,000,000 centers of 1,000,000 rows take 5e\+12"):
        build(rows, size=1_000_000, method=StrongKMeans(1_000_000))
    with pytest.raises(InvalidInputError, match="1,000,000 centers of"):
        CoresetKMeans(10**6).fit(np.zeros((1_000_000, 3), dtype=np.float32))


def test_solve_svm__of_more_columns_than_rows_is_the_same_solution() -> None:
    rng = np.random.default_rng(0)
    rows, signs = rng.normal(size=(30, 20)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    wide = np.hstack([rows, np.zeros((30, 40))]) @ np.linalg.qr(rng.normal(size=(60, 60)))[0]
    for intercept in (True, False):
        few = solve_svm(rows, signs, np.ones(30), intercept=intercept)
        many = solve_svm(wide, signs, np.ones(30), intercept=intercept)
        assert many.cost == pytest.approx(few.cost, rel=1e-5)
        assert many.coef.shape == (60,)
        values = wide @ many.coef + many.intercept
        cost = 0.5 * many.coef @ many.coef + np.maximum(1 - signs * values, 0).sum()
        assert cost == pytest.approx(many.cost, rel=1e-9)
        start = np.append(many.coef, many.intercept) if intercept else many.coef
        again = solve_svm(wide, signs, np.ones(30), intercept=intercept, start=start)
        assert again.cost <= many.cost * (1 + 1e-9)


def test_kmeans__clusters_far_apart_and_small_in_float32() -> None:
    """Two clusters 20,000 apart beside eight that are one apart: float32 holds the rows."""
    rng = np.random.default_rng(1)
    centers = np.zeros((10, 4))
    centers[0, 0], centers[1, 0], centers[2:, 1] = 1e4, -1e4, 1e4
    centers[2:] += rng.normal(size=(8, 4))
    labels = np.r_[rng.integers(2, size=60_000), np.repeat(2 + np.arange(8), 50)]
    X = (centers[labels] + 0.003 * rng.normal(size=(len(labels), 4))).astype(np.float32)
    means = np.array([X[labels == k].astype(float).mean(axis=0) for k in range(10)])
    best = float(((X - means[labels]) ** 2).sum())
    model = CoresetKMeans(10, size=800, random_state=0).fit(X)
    found = model.cluster_centers_
    gaps = (((rows[:, np.newaxis] - found) ** 2).sum(axis=2) for rows in np.array_split(X, 20))
    cost = sum(float(gap.min(axis=1).sum()) for gap in gaps)
    assert cost < 1.05 * best
