"""Row numbers are those in all the data, and rows come back by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from tests.acceptance import face


def numbered(n: int = 2000) -> Any:
    """Rows that say which one they are."""
    return np.stack([np.arange(n, dtype=float), np.random.default_rng(0).normal(size=n)], axis=1)


BLOCKS = (1, 499, 0, 1000, 500)


DRAWS = (face.Draw(), face.Draw(passes=2), face.MergeReduce(), face.Draw("multinomial", 2))


@pytest.mark.parametrize("draw", DRAWS, ids=str)
@pytest.mark.parametrize("unknown", [False, True])
def test_build__of_blocks_of_any_length(draw: Any, unknown: bool) -> None:
    rows = da.from_array(numbered(), chunks=(BLOCKS, 2))
    if unknown:
        rows = rows[rows[:, 0] >= 0]
    c = face.build(rows, size=50, random_state=0, draw=draw)
    assert np.array_equal(c.points[:, 0], c.indices)
    assert (np.diff(c.indices) > 0).all()
    assert c.provenance["n"] == 2000


@pytest.mark.parametrize("method", ["uniform", "kmeans", "coverage"])
def test_build__rows_left_out_are_counted(method: str) -> None:
    X = numbered()
    X[[5, 700, 1999]] = np.nan
    make: Any = face.Coverage(size=30) if method == "coverage" else method
    options: dict[str, Any] = {"n_clusters": 3} if method == "kmeans" else {}
    options |= {"random_state": 0, "size": 30} if method != "coverage" else {}
    rows = da.from_array(X, chunks=(300, 2))
    c = face.build(rows, method=make, on_invalid="drop", **options)
    assert np.array_equal(c.points[:, 0], c.indices)
    assert c.provenance["n_dropped"] == 3


def test_merge__and_source_rows(tmp_path: Path) -> None:
    X = numbered()
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(300, 2))
    c = face.build(str(tmp_path / "X.zarr"), size=40, random_state=0)
    assert np.array_equal(np.asarray(c.source_rows()), X[c.indices])
    some = c.source_rows([3, 0])
    assert np.array_equal(np.asarray(some), X[c.indices[[3, 0]]])
    parts = [face.build(X[:800], size=20, random_state=0), face.build(X[800:], size=20)]
    both = parts[0].merge(parts[1], offsets=[0, 800])
    assert np.array_equal(both.points[:, 0], both.indices)


def test_stream_and_tree__count_from_the_first_row(tmp_path: Path) -> None:
    X = numbered()
    stream = face.stream(size=30, leaf_size=300, random_state=0)
    tree = face.create_tree(tmp_path / "tree", size=30, random_state=0)
    for start in range(0, 2000, 450):
        stream.partial_fit(X[start : start + 450])
        tree.append(X[start : start + 450], name=str(start))
    for c in (stream.coreset(), tree.coreset()):
        assert np.array_equal(c.points[:, 0], c.indices)
    names, rows = tree.locate(np.array([0, 449, 450, 1999]))
    assert names == ["0", "0", "450", "1800"]
    assert rows.tolist() == [0, 449, 0, 199]
    tree.delete("450")
    c = tree.coreset()
    names, rows = tree.locate(c.indices)
    starts = np.array([int(name) for name in names])
    assert np.array_equal(c.points[:, 0], starts + rows)


@pytest.mark.parametrize("name", ["CoresetKMeans", "CoresetSVC", "MaxMarginClassifier"])
def test_models__keep_row_numbers(name: str) -> None:
    X = numbered()
    y = X[:, 0] > 1000
    X[:, 1] += np.where(y, 2000.0, -2000.0)
    model = getattr(face.estimators, name)(random_state=0)
    model.fit(da.from_array(X, chunks=(600, 2)), y)
    c = model.coreset_
    if name != "CoresetKMeans":  # whose coreset may consist of centroids
        assert np.array_equal(c.points, X[c.indices])
