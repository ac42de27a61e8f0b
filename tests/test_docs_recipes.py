"""The recipes of the guide that write files, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "recipes.md"


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's reader, with new pandas
def test_recipe__labels_of_a_parquet_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sales").mkdir()
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
        pd.DataFrame(columns, index=index).to_parquet(f"sales/{part}.parquet")
        start += n
    found = re.search(r"<!-- test:parquet -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    namespace: dict[str, object] = {}
    exec(found[1], namespace)  # noqa: S102 - the page of this project
    whole = pd.read_parquet("sales").dropna(subset=["amount", "age"])
    labelled = pd.read_parquet("labelled")
    pd.testing.assert_frame_equal(
        labelled.drop(columns="cluster"), whole, check_categorical=False, check_dtype=False
    )
    assert sorted(labelled["cluster"].unique()) == [0, 1, 2, 3]

    found = re.search(r"test:parquet-rest -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    exec(found[1], namespace)  # noqa: S102 - likewise
    everything, labelled = pd.read_parquet("sales"), pd.read_parquet("all_rows")
    missing = everything[["amount", "age"]].isna().any(axis=1)
    assert labelled.index.equals(everything.index)
    assert labelled["cluster"].isna().equals(missing)
