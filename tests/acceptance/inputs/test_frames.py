"""Data frames of pandas, polars, Arrow and Dask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.acceptance.face import build, errors, estimators, open_rows
from tests.acceptance.tools.models import MODELS, rows, targets
from tests.pairs import each

# A file has ten rows, and the one of this number has nulls.
NULL = 25

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Leave no task behind an error, whose thread would put back the filters of warnings."""
    with dask.config.set(scheduler="synchronous"):
        yield


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
        by_path = build(open_rows(folder, columns=names), size=8, on_invalid="drop", random_state=0)
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


@pytest.mark.filterwarnings("ignore:nothing was reduced")
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


def _columns_of_three() -> pd.DataFrame:
    rng = np.random.default_rng(17)
    table = pd.DataFrame(rng.normal(size=(900, 3)), columns=["a", "b", "c"])
    table["k"] = rng.integers(0, 3, 900)
    return table.assign(word=np.array(["one", "two"])[(table.c > 0.3).astype(int)])


def _from_pandas(table: pd.DataFrame, _folder: Path) -> Any:
    return dd.from_pandas(table, npartitions=4)


def _from_files(table: pd.DataFrame, folder: Path) -> Any:
    for part in range(3):
        table.iloc[300 * part : 300 * part + 300].to_parquet(folder / f"part-{part}.parquet")
    return dd.read_parquet(folder)


def _filtered(table: pd.DataFrame, _folder: Path) -> Any:
    frame = dd.from_pandas(table, npartitions=5).assign(more=lambda d: d.a)
    return frame[frame.a < 9.0].drop(columns="more")


def _mapped(table: pd.DataFrame, _folder: Path) -> Any:
    return dd.from_map(lambda part: table.iloc[300 * part : 300 * part + 300], range(3))


# X, y and weights made of one frame.
PARTS: dict[str, Any] = {
    "labels": lambda d: (d[["a", "b"]], d.a > 0, None),
    "weights": lambda d: (d[["a", "b", "c", "k"]], None, d.b.abs()),
    "text": lambda d: (d.drop(columns="word"), d.word, d.a**2),
    "floats": lambda d: ((d[["b", "c"]] * 2).astype("float32"), d.k, d.k + 1),
    "one column": lambda d: (d[["a"]], (d.b + d.c > 0).astype(int), d.a.clip(0, 1) + 0.5),
    "a name": lambda d: (d[["a", "b", "c", "k"]], "k", d["c"].abs()),
}


@each(
    made={"pandas": _from_pandas, "files": _from_files, "filtered": _filtered, "map": _mapped},
    parts=PARTS,
)
def test_build__of_columns_and_expressions_of_one_dask_frame(
    made: Any, parts: Any, tmp_path: Path
) -> None:
    table = _columns_of_three()
    X, y, weights = parts(made(table, tmp_path))
    coreset = build(X, y, size=200, method="uniform", sample_weight=weights, random_state=0)
    X, y, weights = parts(table)
    drawn = coreset.indices
    if isinstance(y, str):
        X, y = X.drop(columns=y), X[y]
    np.testing.assert_array_equal(coreset.points, X.to_numpy()[drawn])
    assert coreset.points.dtype == np.asarray(X).dtype
    if y is not None:
        assert np.asarray(coreset.labels).tolist() == y.to_numpy()[drawn].tolist()
    total = len(table) if weights is None else weights.sum()
    assert coreset.provenance["total_weight"] == pytest.approx(total)


def test_estimators__of_columns_and_expressions_of_one_dask_frame(tmp_path: Path) -> None:
    table = _columns_of_three()
    d = _from_files(table, tmp_path)
    model = estimators.CoresetLogisticRegression(size=200, random_state=0)
    model.fit(d[["a", "b"]], d.c + d.a > 0, d.b.abs())
    truth = table.c + table.a > 0
    score = model.score(d[["a", "b"]], d.c + d.a > 0, d.b.abs())
    assert score == pytest.approx(model.score(table[["a", "b"]], truth, table.b.abs()))
    report = model.audit(d[["a", "b"]], d.c + d.a > 0, sample_weight=d.b.abs(), random_state=0)
    assert report.distortion < 0.5
    clusters = estimators.CoresetKMeans(3, size=200, random_state=0)
    clusters.fit(d[["a", "b"]], sample_weight=d.k + 1)
    score = clusters.score(d[["a", "b"]], sample_weight=d.k + 1)
    assert score == pytest.approx(clusters.score(table[["a", "b"]], sample_weight=table.k + 1))


@pytest.mark.parametrize("name", ["svm", "ridge", "any regressor", "kernel", "margin"])
def test_estimators__of_a_dask_frame_of_one_column_as_y(name: str) -> None:
    make, kind = MODELS[name]
    X = rows()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=targets(kind, X))
    d = dd.from_pandas(table, npartitions=3)
    models = make().fit(d[["a", "b"]], d[["y"]]), make().fit(d[["a", "b"]], d.y)
    first, second = (model.predict(d[["a", "b"]]).compute() for model in models)
    pd.testing.assert_series_equal(first, second)
    score = models[0].score(d[["a", "b"]], d[["y"]])
    assert score == pytest.approx(models[1].score(table[["a", "b"]], table.y))
    weighed = build(d[["a", "b"]], sample_weight=d[["b"]].abs(), size=50, method="uniform")
    assert weighed.provenance["total_weight"] == pytest.approx(table.b.abs().sum())


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_build__of_a_table_of_one_column_as_y(make: Callable[..., Any]) -> None:
    X, y = rows(), np.arange(len(rows())) % 2
    weights = 1.0 + y
    found = build(X, make({"y": y}), sample_weight=make({"w": weights}), size=50, random_state=0)
    assert found.equals(build(X, y, sample_weight=weights, size=50, random_state=0))
    with pytest.raises(errors.CoresetError, match="y"):
        build(X, make({"y": y, "z": y}), size=50)


@pytest.mark.parametrize("name", ["ridge", "elastic net", "svm", "kmeans"])
def test_estimators__warn_of_no_names_of_columns(name: str) -> None:
    make, kind = MODELS[name]
    X = rows()
    table = pd.DataFrame(X, columns=["a", "b"])
    y = targets(kind, X)
    d = dd.from_pandas(table, npartitions=3)
    lazy = None if y is None else dd.from_pandas(pd.Series(y), npartitions=3)
    for model in (make().fit(d, lazy), make().fit(table, y)):
        assert model.score(d, lazy) == pytest.approx(model.score(table, y))
        np.testing.assert_allclose(model.predict(d).compute(), model.predict(table))
