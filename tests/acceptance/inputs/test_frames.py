"""Data frames of pandas, polars, Arrow and Dask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.acceptance.face import build, errors, estimators

# A file has ten rows, and the one of this number has nulls.
NULL = 25

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return files without metadata of pandas, as Spark, DuckDB and polars write them."""

    def column(values: Any, kind: Any) -> Any:
        return pa.array([None if i == NULL else v for i, v in enumerate(values)], kind)

    numbers = range(40)
    table = pa.table(
        {
            "long": column(numbers, pa.int64()),
            "short": column(numbers, pa.int16()),
            "byte": column(numbers, pa.uint8()),
            "flag": column([bool(i % 3) for i in numbers], pa.bool_()),
            "real": np.linspace(0.0, 1.0, 40),
        }
    )
    for part in range(4):
        pq.write_table(table.slice(10 * part, 10), tmp_path / f"{part}.parquet")
    return tmp_path


COLUMNS = pytest.mark.parametrize("column", ["long", "short", "byte", "flag"])


@COLUMNS
def test_build__nulls_that_a_dask_frame_declares_as_numbers(folder: Path, column: str) -> None:
    frame = dd.read_parquet(folder)
    for names in ([column], ["real", column]):
        with pytest.raises(errors.InvalidInputError, match=rf"NaN.*'{column}'.*row {NULL}\b"):
            build(frame[names], size=8)
        kept = build(frame[names], size=8, on_invalid="drop", random_state=0)
        by_path = build(folder, columns=names, size=8, on_invalid="drop", random_state=0)
        np.testing.assert_array_equal(kept.points, by_path.points)
        np.testing.assert_allclose(kept.weights, by_path.weights, rtol=1e-12)


@COLUMNS
def test_build__null_labels_and_weights_of_a_dask_frame(folder: Path, column: str) -> None:
    frame = dd.read_parquet(folder)[["real", column]]
    with pytest.raises(errors.InvalidInputError, match=rf"y is missing.* at row {NULL}\b"):
        build(frame, y=column, method="svm", size=8)
    with pytest.raises(errors.InvalidInputError, match=rf"sample_weight is nan at row {NULL}\b"):
        build(frame, sample_weight=column, size=8)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_build__nulls_of_extension_dtypes_in_a_dask_frame(folder: Path, backend: str) -> None:
    frame = dd.read_parquet(folder, dtype_backend=backend)
    with pytest.raises(errors.InvalidInputError, match=rf"NaN.*'flag'.*row {NULL}\b"):
        build(frame[["real", "flag"]], size=8)
    with pytest.raises(errors.InvalidInputError, match=rf"sample_weight is nan at row {NULL}\b"):
        build(frame[["real", "byte"]], sample_weight="byte", size=8)


def test_predict__nulls_that_a_dask_frame_declares_as_numbers(folder: Path) -> None:
    model = estimators.CoresetKMeans(2, size=8, random_state=0).fit(np.arange(20.0)[:, None])
    with pytest.raises(errors.InvalidInputError, match="NaN"):
        model.predict(dd.read_parquet(folder)[["byte"]].rename(columns={"byte": 0})).compute()


def partitions(*parts: Any) -> Any:
    """Return a Dask frame that declares the dtype of its first partition."""
    frames = [pd.DataFrame({"a": part}) for part in parts]
    return dd.from_map(lambda i: frames[i], range(len(frames)), meta=frames[0].iloc[:0])


@pytest.mark.filterwarnings("ignore:size=20 is not below")
def test_build__partitions_of_other_dtypes_keep_their_values() -> None:
    first = np.array([1, 2], dtype=np.int8)
    frame = partitions(first, np.array([3.0, 4.0]), [], np.array([300, 5], dtype=np.int64))
    coreset = build(frame, size=20)
    np.testing.assert_array_equal(np.sort(coreset.points.ravel()), [1, 2, 3, 4, 5, 300])
    labels = build(frame.assign(b=1.0), y="a", size=20, method="uniform").labels
    assert labels is not None
    assert sorted(labels.tolist()) == [1, 2, 3, 4, 5, 300]


def test_build__a_partition_of_nothing_but_nulls_or_text() -> None:
    flags = np.array([True, False])
    empty = partitions(flags, np.array([None, None], dtype=object))
    with pytest.raises(errors.InvalidInputError, match=r"NaN.*row 2"):
        build(empty, size=2)
    with pytest.raises(errors.InvalidInputError, match="dtype object in block 1"):
        build(partitions(np.array([1, 2]), np.array(["3", "4"], dtype=object)), size=2)
