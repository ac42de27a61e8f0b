"""Coresets and weighted rows are values: united, compared, turned into tables, and told."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr

from tests.acceptance import face

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
Y = np.where(X[:, 0] > 0, "b", "a")


def test_coreset__pickles_and_compares_bits() -> None:
    c: Any = face.build(X, Y, size=20, random_state=0)
    assert pickle.loads(pickle.dumps(c)).equals(c)
    other = face.build(X, Y, size=20, random_state=1)
    assert not other.equals(c)
    moved = face.WeightedPoints(c.points, np.nextafter(c.weights, 9e9), c.indices, c.labels)
    same = face.WeightedPoints(c.points, c.weights, c.indices, c.labels)
    assert same.equals(face.WeightedPoints(c.points, c.weights, c.indices, c.labels))
    assert not moved.equals(same)
    for array in (c.points, c.weights, c.indices, c.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_merge__units_labels_coordinates_and_sparse_rows() -> None:
    parts = [face.build(X[:200], Y[:200], size=15, random_state=0),
             face.build(X[200:], Y[200:], size=25, random_state=0)]  # fmt: skip
    both: Any = parts[0].merge(parts[1], offsets=[0, 200])
    assert len(both) == 40
    assert np.array_equal(both.points, X[both.indices])
    assert np.array_equal(both.labels, Y[both.indices])
    assert both.total_weight == pytest.approx(sum(one.total_weight for one in parts))
    assert both.provenance["n"] == 400
    with pytest.raises(face.CoresetError):
        parts[0].merge(face.build(X[:, :2], size=5, random_state=0), offsets=[0, 200])
    thin = [face.build(sp.csr_array(np.round(X[at])), size=9, random_state=0)
            for at in (slice(200), slice(200, 400))]  # fmt: skip
    merged: Any = thin[0].merge(thin[1], offsets=[0, 200])
    assert sp.issparse(merged.points)
    assert np.array_equal(merged.points.toarray(), np.round(X[merged.indices]))


def test_merge__keeps_coordinates_that_all_parts_have() -> None:
    cells = [
        xr.DataArray(X[at], {"x": np.arange(200) + start}, ("x", "f"))
        for start, at in ((0, slice(200)), (200, slice(200, 400)))
    ]
    cells[0] = cells[0].assign_coords(only=("x", np.ones(200)))
    made = [face.build(face.open_rows(one, sample_dims="x"), size=9, random_state=0)
            for one in cells]  # fmt: skip
    both = made[0].merge(made[1], offsets=[0, 200])
    assert set(both.coordinates) == {"x"}
    assert np.array_equal(both.coordinates["x"], both.indices)


def test_tables__have_a_row_for_each_point(tmp_path: Path) -> None:
    c = face.build(X, Y, size=20, random_state=0)
    frame = c.to_dataframe()
    assert len(frame) == 20
    assert np.array_equal(frame["weight"], c.weights)
    assert np.array_equal(
        frame.iloc[:, :3].to_numpy()
        if frame.columns[0] != "weight"
        else frame.drop(columns=["weight", "index", "label"]).to_numpy(),
        c.points,
    )
    made = c.to_xarray()
    assert np.array_equal(made.weights if "weights" in made else made.weight, c.weights)
    c.to_zarr(tmp_path / "c")
    assert face.Coreset.from_zarr(tmp_path / "c").equals(c)
    assert "20 of 400 rows" in repr(c)


@pytest.mark.parametrize("passes", [1, 2])
def test_plan__tells_reads_bytes_and_memory(passes: Any) -> None:
    rows = da.from_array(X.repeat(50, axis=0), chunks=(1000, 3))
    told = face.forecast(rows, size=30, draw=face.Draw(passes=passes))
    assert (told.reads, told.n_blocks, told.n_rows) == (passes, 20, 20_000)
    assert told.bytes_read == passes * 20_000 * 3 * 8
    made = face.build(rows, size=30, draw=face.Draw(passes=passes), random_state=0)
    assert made.provenance["passes"] == passes
    assert told.block_bytes == 1000 * 3 * 8
    assert told.block_bytes < told.peak_bytes
    text = str(told)
    assert f"{passes} read" in text
    assert "20" in text
    assert "merged" not in text
    cut = xr.DataArray(da.ones((8, 6, 10), chunks=(2, 3, 4)), dims=("t", "x", "level"))
    told = face.forecast(face.open_rows(cut, feature_dims="level"), size=10)
    assert told.merged_chunks == 3
    assert "3 chunks" in str(told)


@pytest.mark.parametrize("passes", [1, 2])
def test_build__progress_counts_every_block(passes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tqdm import auto

    moved = [0]

    class Counted(auto.tqdm):  # type: ignore[misc,unused-ignore] # of two classes
        def update(self, n: Any = 1) -> Any:
            moved[0] += n
            return super().update(n)

    monkeypatch.setattr(auto, "tqdm", Counted)
    rows = da.from_array(X, chunks=(50, 3))
    face.build(rows, size=30, draw=face.Draw(passes=passes), progress=True)
    assert moved[0] == 8 * passes


def test_portfolio__moments_are_kept_and_fit_together(tmp_path: Path) -> None:
    members, known = face.build_many(X, methods=["uniform"], sizes=30), face.moments(X)
    face.Portfolio(members, moments=known).to_zarr(tmp_path / "p")
    found = face.Portfolio.from_zarr(tmp_path / "p").moments
    assert found is not None
    assert np.array_equal(found.covariance, known.covariance)
    with pytest.raises(face.errors.InvalidInputError, match="moments"):
        replace(known, scatter=np.eye(9))


def test_plan__of_a_cube_is_what_the_build_returns() -> None:
    cube = xr.DataArray(X.reshape(20, 20, 3), dims=("x", "y", "f"), coords={"x": np.arange(20)})
    rows = face.open_rows(cube.chunk(x=5), sample_dims=("x", "y"))
    lazy = face.plan(rows, size=30, random_state=0)
    made = lazy.compute()
    assert made.equals(face.build(rows, size=30, random_state=0))
    assert np.array_equal(made.coordinates["x"], made.indices // 20)
    found = face.build(X, size=30, n_clusters=3, method="lightweight", random_state=0)
    assert found.provenance["objective"]["n_clusters"] == 3


def test_portfolio__reads_as_the_dearest_and_gives_models_their_member() -> None:
    methods = {"plain": face.Uniform(), "strong": face.StrongKMeans(3), "lines": face.SVM()}
    rows = da.from_array(X, chunks=(100, 3))
    assert face.forecast(rows, Y, method=methods, size=30).reads == 2
    many = face.build_many(rows, Y, methods=methods, sizes=30, random_state=0)
    model = face.estimators.CoresetKMeans(3, method="kmeans", random_state=0).fit(many)
    assert model.coreset_.equals(many["strong"])
    twins = {"one": face.Uniform(), "two": face.Uniform()}
    both = face.build_many(rows, methods=twins, sizes=30, random_state=0)
    with pytest.raises(face.CoresetError, match="'one', 'two'"):
        face.estimators.CoresetKMeans(3, random_state=0).fit(both)


def test_datasets__have_the_dtype_asked_for() -> None:
    for dtype in ("float32", "float64"):
        rows, _ = face.datasets.make_mixture(100, 2, dtype=dtype, random_state=0)
        assert rows.dtype == dtype
    with pytest.raises(face.CoresetError, match="'float32' or 'float64'"):
        face.datasets.make_mixture(100, 2, dtype="int64", random_state=0)


def test_build__divides_rows_by_their_lengths() -> None:
    long = X * np.exp(3.0 * rng.normal(size=(400, 1)))
    unit = long / np.linalg.norm(long, axis=1, keepdims=True)
    rows = face.open_rows(long, unit_length=True)
    for draw in (face.Draw(), face.Draw(passes=2), face.MergeReduce()):
        c = face.build(rows, size=30, n_clusters=3, random_state=0, draw=draw)
        same = face.build(unit, size=30, n_clusters=3, random_state=0, draw=draw)
        assert np.allclose(c.points, unit[c.indices], atol=1e-12)
        assert np.array_equal(c.indices, same.indices)
        assert np.allclose(c.weights, same.weights)
    model = face.estimators.CoresetKMeans(3, metric="cosine", random_state=0).fit(long)
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0)
    zero = long.copy()
    zero[7] = 0.0
    with pytest.raises(face.CoresetError, match="row 7"):
        face.build(face.open_rows(zero, unit_length=True), size=30)
    left = face.build(face.open_rows(zero, unit_length=True), size=30, on_invalid="drop")
    assert left.provenance["n_dropped"] == 1
    huge = face.open_rows(np.array([[3e200, 4e200], [3e-200, 4e-200], [1.0, 0.0]]),
                          unit_length=True)  # fmt: skip
    with pytest.warns(face.CoresetWarning):
        kept = face.build(huge, size=5)
    assert np.allclose(kept.points, [[0.6, 0.8], [0.6, 0.8], [1.0, 0.0]], rtol=1e-14)


def test_n_clusters__is_remembered_wherever_it_was_said(tmp_path: Path) -> None:
    wanted = {"name": "quantization error", "n_clusters": 4}
    options: dict[str, Any] = {"size": 100, "random_state": 0}
    model = face.estimators.CoresetKMeans(4, method="lightweight", **options).fit(X)
    assert model.coreset_.provenance["objective"] == wanted
    assert len(model.coreset_.audit(X).solutions[0]) == 4
    other = face.estimators.CoresetKMeans(4, method=face.StrongKMeans(9), **options).fit(X)
    assert other.coreset_.provenance["objective"] == {**wanted, "n_clusters": 9}
    options |= {"method": "lightweight", "n_clusters": 4}
    stream = face.stream(store=tmp_path / "s", **options).partial_fit(X)
    tree = face.create_tree(tmp_path / "t", **options)
    tree.append(X)
    kept = (stream, face.CoresetStream.load(tmp_path / "s"), tree)
    for one in (*kept, face.CoresetTree.open(tmp_path / "t")):
        assert one.coreset().provenance["objective"] == wanted
    assert len(stream.coreset().audit(X).solutions[0]) == 4
