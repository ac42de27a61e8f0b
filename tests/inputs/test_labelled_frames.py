"""Clusters as a column of a Dask frame, beside columns that are no features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from daskcoreset.estimators import CoresetKMeans

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

FEATURES = ["amount", "items", "age"]

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Parquet files with text, dates, categories and missing values, one of a single row."""
    path = tmp_path / "sales"
    path.mkdir()
    rng, start = np.random.default_rng(0), 0
    for part, n in enumerate([300, 17, 1, 450]):
        columns = {
            "customer": rng.choice(["a", "b"], n),
            "when": pd.Timestamp("2026-03-01") + pd.to_timedelta(rng.integers(0, 9999, n), "s"),
            "segment": pd.Categorical(rng.choice(["x", "y"], n)),
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2.0, 10.0, n)),
            "items": rng.integers(1, 100, n).astype("int8"),
            "age": pd.array([None if i % 9 == 4 else i % 70 for i in range(n)], dtype="Int16"),
        }
        index = pd.Index(np.arange(start, start + n), name="id")
        pd.DataFrame(columns, index=index).to_parquet(path / f"{part}.parquet")
        start += n
    return path


def test_predict__is_a_column_of_the_frame(folder: Path, tmp_path: Path) -> None:
    frame = dd.read_parquet(folder).dropna(subset=FEATURES)
    mean, spread = dask.compute(frame[FEATURES].mean(), frame[FEATURES].std())
    scaled = frame[FEATURES].map_partitions(lambda part: (part - mean) / spread)
    model = CoresetKMeans(4, random_state=0).fit(scaled)
    frame.assign(cluster=model.predict(scaled)).to_parquet(tmp_path / "labelled")

    whole = pd.read_parquet(folder).dropna(subset=["amount", "age"])
    labelled = pd.read_parquet(tmp_path / "labelled")
    pd.testing.assert_frame_equal(
        labelled.drop(columns="cluster"), whole, check_categorical=False, check_dtype=False
    )
    assert sorted(labelled["cluster"].unique()) == [0, 1, 2, 3]
