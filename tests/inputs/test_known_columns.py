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


@pytest.fixture(params=["path", "dask", "pandas", "polars", "arrow", "batch"])
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


def remedy(table: Any, *, named: bool) -> str:
    if named or isinstance(table, Path):
        return r"columns=\['a', 'b'\]"
    return r"X\.select\(\['a', 'b'\]\)" if is_arrow(table) else r"X\[\['a', 'b'\]\]"


def is_arrow(table: Any) -> bool:
    return type(table).__module__.startswith("pyarrow")


def without(table: Any, name: str) -> Any:
    if is_arrow(table):
        return table.select([column for column in table.schema.names if column != name])
    # Of polars first.
    return table.drop(name) if hasattr(table, "to_arrow") else table.drop(columns=name)


def test_further_columns__of_text_are_told_with_the_remedy(table: Any) -> None:
    options: dict[str, Any] = {"random_state": 0}
    clusters = call(
        estimators.CoresetKMeans(2, **options).fit,
        open_rows(table, columns=["a", "b"]),
    )
    machine = call(estimators.CoresetSVC(**options).fit, open_rows(table, columns=["a", "b"]), "y")
    coreset = build(open_rows(table, columns=["a", "b"]), size=50, **options)
    more = rf"has not: \['name', 'extra', 'y'\]; pass {remedy(table, named=False)}"
    for method in (clusters.predict, clusters.score, clusters.audit):
        with pytest.raises(errors.InvalidInputError, match=more):
            method(table)
    with pytest.raises(errors.InvalidInputError, match=more):
        coreset.audit(table, n_clusters=2)
    more = rf"has not: \['name', 'extra'\]; pass {remedy(table, named=True)}"
    with pytest.raises(errors.InvalidInputError, match=more):
        machine.score(table, "y")
    assert call(machine.score, open_rows(table, columns=["a", "b"]), "y") > 0.9  # as it says


def test_further_columns__of_numbers_beside_named_labels(table: Any) -> None:
    machine = call(
        estimators.CoresetSVC(random_state=0).fit, open_rows(table, columns=["a", "b"]), "y"
    )
    if isinstance(table, Path):
        FRAME.drop(columns="name").to_parquet(table)
    else:
        table = without(table, "name")
    with pytest.raises(errors.InvalidInputError, match=r"\['extra'\]; pass columns=\['a', 'b'\]"):
        machine.score(table, "y")


def test_further_columns__in_memory_are_told_by_every_call(table: Any) -> None:
    if isinstance(table, Path) or hasattr(table, "dask"):
        pytest.skip("out of core")
    numbers = FRAME[["a", "b"]]
    clusters = estimators.CoresetKMeans(2, random_state=0).fit(numbers)
    machine = estimators.CoresetSVC(random_state=0).fit(numbers, FRAME["y"])
    calls: list[Any] = [
        clusters.predict,
        clusters.transform,
        machine.predict,
        machine.decision_function,
        lambda X: machine.score(X, FRAME["y"]),
    ]
    for given in (table, without(without(table, "name"), "y")):
        said = rf"should match .*has not: \[.*\]; pass {remedy(table, named=False)}\.$"
        for method in calls:
            with pytest.raises(errors.InvalidInputError, match=said):
                method(given)
    selected = table.select(["a", "b"]) if is_arrow(table) else table[["a", "b"]]  # as it says
    np.testing.assert_array_equal(clusters.predict(selected), clusters.predict(numbers))
    swapped = table.select(["b", "a"]) if is_arrow(table) else table[["b", "a"]]
    with pytest.raises(errors.InvalidInputError, match="in another order; pass X"):
        clusters.predict(swapped)
    # A fit has no columns that are known.
    with pytest.raises(errors.InvalidTypeError, match=r"hold no real numbers: 'name' \("):
        estimators.CoresetKMeans(2).fit(table)
