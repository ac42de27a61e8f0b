"""Further columns of tables, of text and of numbers, are told once: with which ones to select."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from tests.acceptance.face import build, call, errors, estimators, open_rows

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(900, 2)), columns=["a", "b"])
FRAME["name"], FRAME["extra"], FRAME["y"] = "x", 1.0, (FRAME["a"] > 0).astype(int)

REMEDY = r"open_rows\(X, columns=\['a', 'b'\]\)"


@pytest.fixture(params=["path", "dask", "polars", "arrow"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "polars":
        return pytest.importorskip("polars").from_pandas(FRAME)
    if request.param in {"arrow", "batch"}:
        pa = pytest.importorskip("pyarrow")
        kind = pa.Table if request.param == "arrow" else pa.RecordBatch
        return kind.from_pandas(FRAME, preserve_index=False)
    if request.param == "path":
        FRAME.to_parquet(tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"
    return dd.from_pandas(FRAME, npartitions=2) if request.param == "dask" else FRAME


def test_further_columns__of_text_are_told_with_the_remedy(table: Any) -> None:
    options: dict[str, Any] = {"random_state": 0}
    clusters = call(
        estimators.CoresetKMeans(2, **options).fit,
        open_rows(table, columns=["a", "b"]),
    )
    machine = call(estimators.CoresetSVC(**options).fit, open_rows(table, columns=["a", "b"]), "y")
    coreset = build(open_rows(table, columns=["a", "b"]), size=50, **options)
    more = rf"has not: \['name', 'extra', 'y'\]; pass {REMEDY}"
    for method in (clusters.predict, clusters.score, clusters.audit):
        with pytest.raises(errors.InvalidInputError, match=more):
            method(table)
    with pytest.raises(errors.InvalidInputError, match=more):
        coreset.audit(table, n_clusters=2)
    more = rf"has not: \['name', 'extra'\]; pass {REMEDY}"
    with pytest.raises(errors.InvalidInputError, match=more):
        machine.score(table, "y")
    assert call(machine.score, open_rows(table, columns=["a", "b"]), "y") > 0.9  # as it says
