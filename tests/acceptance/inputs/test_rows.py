"""`open_rows` goes wherever X goes, with names for labels and weights of what was opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.acceptance.face import (
    build,
    build_many,
    create_tree,
    estimators,
    grow,
    metrics,
    open_rows,
    plan,
    stream,
)
from tests.acceptance.tools.input_kinds import (
    KINDS,
    NAMES,
    SIZE,
    WEIGHT,
    Made,
    X,
    Y,
    dask_frame,
    pandas_frame,
    parquet_file,
    parquet_folder,
    table,
)
from tests.pairs import each

OPTIONS: dict[str, Any] = {"size": SIZE, "random_state": 0}


def many(rows: Any, y: Any, w: Any, _: Path) -> Any:
    made = build_many(
        rows, y, methods=["uniform", "lightweight"], sizes=20, random_state=0, sample_weight=w
    )
    return made["lightweight"].points


def grown(rows: Any, y: Any, w: Any, _: Path) -> Any:
    del y
    return grow(rows, n_clusters=2, epsilon=0.5, random_state=0, sample_weight=w).points


def appended(rows: Any, y: Any, w: Any, folder: Path) -> Any:
    tree = create_tree(folder / "tree", **OPTIONS)
    tree.append(rows, y, sample_weight=w)
    return tree.coreset().points


def classified(rows: Any, y: Any, w: Any, _: Path) -> Any:
    model = estimators.CoresetLogisticRegression(**OPTIONS)
    return model.fit(rows, y, sample_weight=w).coef_


def clustered(rows: Any, y: Any, w: Any, _: Path) -> Any:
    del y
    model = estimators.CoresetKMeans(3, **OPTIONS).fit(rows, sample_weight=w)
    return np.asarray(model.predict(rows))


CALLS: dict[str, Callable[[Any, Any, Any, Path], Any]] = {
    "build": lambda rows, y, w, _: build(rows, y, sample_weight=w, **OPTIONS).points,
    "plan": lambda rows, y, w, _: plan(rows, y, sample_weight=w, **OPTIONS).compute().points,
    "build_many": many,
    "grow": grown,
    "append": appended,
    "partial_fit": lambda rows, y, w, _: (
        stream(**OPTIONS).partial_fit(rows, y, sample_weight=w).coreset().points
    ),
    "fit": classified,
    "predict": clustered,
}


@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
@each(kind=[kind for kind in KINDS if "endian" not in kind.__name__], call=CALLS)
def test_rows__are_what_was_opened(
    kind: Callable[[Path], Made], call: Callable[..., Any], tmp_path: Path
) -> None:
    rows, y, weight, _ = kind(tmp_path)
    expected = call(rows, y, weight, tmp_path)
    (tmp_path / "again").mkdir()
    rows, y, weight, _ = kind(tmp_path / "again")
    found = call(open_rows(rows), y, weight, tmp_path / "again")
    np.testing.assert_array_equal(found, expected)


def arrow_table(_: Path) -> Made:
    return table(0, len(X)), "y", "w", {}


def several_files(folder: Path) -> Made:
    parquet_folder(folder)
    return [folder / f"part.{number}.parquet" for number in range(12)], "y", "w", {}


def pattern(folder: Path) -> Made:
    parquet_folder(folder)
    return str(folder / "part.*.parquet"), "y", "w", {}


NAMED = [
    arrow_table, several_files, pattern, dask_frame, pandas_frame, parquet_file, parquet_folder,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
@each(kind=NAMED, call=CALLS)
def test_columns__are_chosen_and_others_named_as_labels_and_weights(
    kind: Callable[[Path], Made], call: Callable[..., Any], tmp_path: Path
) -> None:
    rows, y, weight, _ = kind(tmp_path)
    found = call(open_rows(rows, columns=["f2", "f0"]), y, weight, tmp_path)
    (tmp_path / "again").mkdir()
    chosen: Any = pd.DataFrame(X, columns=NAMES)[["f2", "f0"]]
    beside: Any = (Y, WEIGHT)
    if kind is dask_frame:  # whose partitions are its blocks
        chosen, beside = rows[["f2", "f0"]], (rows["y"], rows["w"])
    expected = call(chosen, *beside, tmp_path / "again")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_columns__of_an_iterator_of_batches() -> None:
    frame = pd.DataFrame(X, columns=NAMES).assign(y=Y, w=WEIGHT)
    batches = [frame[:70], frame[70:150], frame[150:]]
    given = iter([(batch, "y", "w") for batch in batches])
    found = stream(**OPTIONS).partial_fit(open_rows(given, columns=["f0", "f2"]))
    expected = stream(**OPTIONS)
    for batch in batches:
        expected.partial_fit(batch[["f0", "f2"]], batch["y"], sample_weight=batch["w"])
    assert found.coreset().equals(expected.coreset())
    plain = stream(**OPTIONS).partial_fit(open_rows(iter([X[:120], X[120:]])))
    assert plain.n_rows == len(X)


@pytest.mark.parametrize("call", ["build", "plan", "append", "partial_fit"])
def test_rows__of_unit_length(call: str, tmp_path: Path) -> None:
    units = X / np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    found = CALLS[call](open_rows(X, unit_length=True), Y, WEIGHT, tmp_path)
    (tmp_path / "again").mkdir()
    expected = CALLS[call](units.astype(np.float32), Y, WEIGHT, tmp_path / "again")
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-6)
    assert found.shape == expected.shape


def test_rows__in_metrics_and_audits() -> None:
    frame = pd.DataFrame(X, columns=NAMES).assign(y=Y)
    rows = open_rows(frame, columns=NAMES)
    coreset = build(rows, size=SIZE, random_state=0)
    assert coreset.provenance["columns"] == tuple(NAMES)
    cost = metrics.kmeans_cost(rows, X[:2])
    assert cost == pytest.approx(metrics.kmeans_cost(X, X[:2]))
    audit = coreset.audit(rows, n_clusters=2, random_state=0)
    plain = coreset.audit(frame[NAMES], n_clusters=2, random_state=0)
    np.testing.assert_array_equal(audit.on_data, plain.on_data)
    np.testing.assert_array_equal(coreset.source_rows([0, 1], rows), coreset.points[:2])
