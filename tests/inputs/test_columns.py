"""Options of reading: the same keywords at every public door, columns of frames, no secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from tests.acceptance.face import Draw, MergeReduce, build, errors, estimators, open_rows

FRAME = pd.DataFrame(
    np.random.default_rng(0).normal(size=(300, 3)), columns=["a", "b", "c"]
).assign(y=np.arange(300) % 2, t="text")


@pytest.mark.parametrize("kind", ["pandas", "dask", "arrow", "batch", "polars", "parquet"])
def test_columns__are_chosen_and_keep_their_order(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pandas(FRAME)
    pq.write_table(table, tmp_path / "a.parquet")
    X = {
        "pandas": FRAME,
        "dask": dd.from_pandas(FRAME, npartitions=2),
        "arrow": table,
        "batch": table.to_batches()[0],
        "polars": pl.from_pandas(FRAME),
        "parquet": tmp_path / "a.parquet",
    }[kind]
    with pytest.warns(errors.CoresetWarning, match=r"columns has \['y'\], which y, .* not as a"):
        coreset = build(open_rows(X, columns=["c", "a", "y"]), "y", size=20, random_state=0)
    assert build(open_rows(X, columns=["c", "a"]), "y", size=20, random_state=0).equals(coreset)
    assert coreset.provenance["columns"] == ("c", "a")
    rows = FRAME.iloc[coreset.indices]
    np.testing.assert_array_equal(coreset.points, rows[["c", "a"]])
    np.testing.assert_array_equal(coreset.labels, rows["y"])
    with pytest.raises(
        errors.InvalidInputError, match=r"columns has \['z'\], but X has .*'a', 'b', 'c'"
    ):
        build(open_rows(X, columns=["a", "z"]), "y")


@pytest.mark.parametrize("draw", [Draw(), MergeReduce()])
def test_labels__that_are_missing_have_a_way_to_be_named(draw: Any) -> None:
    frame = FRAME.drop(columns="t")
    for X in (frame, frame.to_numpy()):
        with pytest.raises(errors.InvalidInputError, match="y is missing, and method 'svm' needs"):
            build(X, method="svm", size=20, draw=draw)
        with pytest.raises(errors.InvalidInputError, match='such as y="label"'):
            estimators.CoresetSVC().fit(X)


def test_columns__of_a_group_of_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", X=np.ones((5, 2)), y=np.ones(5))
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("X", data=np.ones((5, 2)))
    for X in (tmp_path / "g.npz", group, group["X"], tmp_path / "g.zarr" / "X"):
        with pytest.raises(errors.InvalidInputError, match=r"columns selects.* leave columns out"):
            build(open_rows(X, columns=["a"]))


@pytest.mark.parametrize("kind", ["path", "dask", "polars"])
def test_columns__that_are_further_are_told_with_the_remedy(kind: str, tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "rows.parquet")
    table: Any = {
        "path": tmp_path / "rows.parquet",
        "dask": dd.from_pandas(FRAME, npartitions=2),
        "polars": pl.from_pandas(FRAME),
    }[kind]
    model = estimators.CoresetKMeans(2, random_state=0).fit(open_rows(table, columns=["a", "b"]))
    for method in (model.predict, model.score, model.audit):
        with pytest.raises(errors.CoresetError, match=r"X has .*'t'.*open_rows\(X, columns=\["):
            method(table)
        method(open_rows(table, columns=["a", "b"]))
