"""Predictions for data frames."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import (
    CoresetKMeans,
)

FRAME = pd.DataFrame(
    np.random.default_rng(0).normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None],
    columns=["a", "b"],
    index=np.arange(100, 160),
)


def test_predict__of_a_dask_frame_names_the_bad_row() -> None:
    model = CoresetKMeans(2, random_state=0).fit(FRAME)
    broken = FRAME.copy()
    broken.loc[135, "b"] = np.nan
    with pytest.raises(InvalidInputError, match=r"column 1 \('b'\) at the index 135"):
        model.predict(dd.from_pandas(broken, npartitions=6)).compute()


def test_predict__of_a_polars_frame_is_a_series_of_polars() -> None:
    pl = pytest.importorskip("polars")
    model = CoresetKMeans(2, random_state=0).fit(FRAME)
    frame = pl.from_pandas(FRAME)
    clustered = frame.with_columns(model.predict(frame))
    assert clustered.columns == ["a", "b", "cluster"]
    np.testing.assert_array_equal(clustered["cluster"].to_numpy(), model.predict(FRAME))


def test_fit_predict__of_a_frame_is_a_series_with_its_index() -> None:
    model = CoresetKMeans(2, random_state=0)
    clusters = model.fit_predict(FRAME)
    assert clusters.index.equals(FRAME.index)
    np.testing.assert_array_equal(clusters, model.labels_)
