"""Input and parameters that were answered wrongly once: what they get now.

Every answer is either right, by an independent computation, or an error before anything is
stored that names the argument, what was found and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.cli import main
from daskcoreset.coreset import Coreset
from daskcoreset.errors import CoresetWarning
from daskcoreset.margin.outlier import OutlierMaxMargin
from tests.test_margin_outlier import by_force

# --- build(X) and nothing else ------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__needs_nothing_but_the_data(strategy: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(30_000, 3))
    for data in (rows, da.from_array(rows, chunks=(5000, 3))):
        found = build(data, strategy=strategy)
        assert len(found) == found.provenance["size"] == 10_000
        assert found.provenance["size_rule"] == {"rule": "default"}
        assert found.provenance["complete"] is False
        assert found.total_weight == pytest.approx(30_000, rel=0.05)
    lazy: Any = build(rows, strategy=strategy, compute=False)
    assert len(lazy.compute()) == 10_000
    assert build(rows, strategy=strategy, dry_run=True).reads == 1
    given = build(rows, strategy=strategy, size=10_000)
    assert "size_rule" not in given.provenance


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
@pytest.mark.parametrize("n", [1, 300, 10_000])
def test_build__small_data_come_back_whole_and_it_is_said(strategy: Any, n: int) -> None:
    rows = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.warns(CoresetWarning, match=f"^nothing was reduced: X has {n} rows, and up to"):
        found = build(rows, strategy=strategy)
    np.testing.assert_array_equal(found.points, rows)
    np.testing.assert_array_equal(found.weights, np.ones(n))
    assert found.provenance["complete"] is True
    assert repr(found).startswith(f"Coreset(lightweight, nothing reduced: {n:,} of {n:,} rows")


def test_build__default_size_follows_the_clusters() -> None:
    rows = np.random.default_rng(0).normal(size=(16_000, 2))
    found = build(rows, method="kmeans", n_clusters=150)
    assert found.provenance["size"] == 15_000
    labels = rows[:, 0] > 0
    # Its clusters are cells of the classes, of which solutions know nothing.
    from daskcoreset import SVM  # noqa: PLC0415 - beside the sentence about it

    assert build(rows, labels, method=SVM(n_clusters=150)).provenance["size"] == 10_000


def test_cli__build_needs_no_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(12_000, 2)))
    assert main(["build", str(tmp_path / "a.npz"), str(tmp_path / "c.zarr")]) == 0
    capsys.readouterr()
    assert len(Coreset.from_zarr(tmp_path / "c.zarr")) == 10_000


# --- OutlierMaxMargin(method="subsets") ---------------------------------------------------


def _subsets_case(seed: int) -> tuple[Any, Any, int, bool, float]:
    """Rows of which k have the wrong label, near the origin or far from it."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(6, 9)), int(rng.integers(1, 5)), int(rng.integers(0, 3))
    rows = rng.normal(size=(n, d)) + rng.choice([0.0, 1.0, 3.0])
    intercept = bool(rng.integers(2))
    scores = rows @ rng.normal(size=d)
    signs = np.where(scores > (np.median(scores) if intercept else 0.0), 1, -1)
    signs[rng.choice(n, k, replace=False)] *= -1
    return rows, signs, k, intercept, [0.05, 0.1, 0.5][seed % 3]


@pytest.mark.parametrize("batch", range(4))
def test_subsets__normals_have_length_one_and_the_margin_is_the_best(batch: int) -> None:
    tried = 0
    for seed in range(30 * batch, 30 * batch + 30):
        rows, signs, k, intercept, epsilon = _subsets_case(seed)
        if len(set(signs.tolist())) < 2:
            continue
        best = by_force(rows, signs, k, intercept=intercept)
        search = OutlierMaxMargin(k, epsilon, intercept, "subsets", chunks=4)
        if best <= 1e-9:
            continue
        found = search.run(rows, signs)
        tried += 1
        assert np.linalg.norm(found.w) == pytest.approx(1.0, rel=1e-12)
        assert (1.0 - epsilon) * best <= found.margin <= best * (1.0 + 1e-9)
        kept = np.setdiff1d(np.arange(len(rows)), found.outliers)
        reached = (signs[kept] * (rows[kept] @ found.w + found.b)).min()
        assert found.margin == pytest.approx(reached, rel=1e-9)
    assert tried >= 20
