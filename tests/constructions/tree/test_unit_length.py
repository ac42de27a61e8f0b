"""Trees and streams of unit length: as of rows that were divided by their lengths before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset import CoresetStream, CoresetTree, open_rows
from daskcoreset.core.linalg import unit_rows
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError

RNG = np.random.default_rng(0)

# Rows of five directions, whose lengths say nothing.
DIRECTIONS = np.eye(8)[:5]

ROWS = DIRECTIONS[RNG.integers(0, 5, 3000)] + 0.2 * RNG.normal(size=(3000, 8))

ROWS = ROWS * RNG.lognormal(0.0, 1.0, size=(3000, 1))

OPTIONS: dict[str, Any] = {"size": 150, "random_state": 0}


def unit(X: AnyArray) -> AnyArray:
    """Return rows as a user would divide them, in the dtype that blocks have."""
    X = X.astype(np.result_type(X.dtype, np.float32))
    return np.asarray(unit_rows(X)[0])


def assert_same(one: Any, other: Any) -> None:
    for name in ("points", "weights", "indices"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(("dtype", "method"), [("f2", "lightweight"), ("f8", "kmeans")])
def test_tree__has_the_bits_of_rows_divided_before(tmp_path: Path, dtype: str, method: str) -> None:
    X = ROWS.astype(dtype)
    options = {**OPTIONS, "n_clusters": 5}
    tree = CoresetTree.create(tmp_path / "t", method=method, **options)
    other = CoresetTree.create(tmp_path / "o", method=method, **options)
    tree.append(open_rows(X[:1000], unit_length=True))
    other.append(unit(X[:1000]))
    tree = CoresetTree.open(tmp_path / "t")  # which keeps dividing
    tree.append(da.from_array(X[1000:1800], chunks=(400, 8)))
    other.append(da.from_array(unit(X[1000:1800]), chunks=(400, 8)))
    tree.replace("leaf-1", X[2000:])
    other.replace("leaf-1", unit(X[2000:]))
    coreset = tree.coreset()
    assert_same(coreset, other.coreset())
    assert (coreset.metric, other.coreset().metric) == ("cosine", "euclidean")
    assert_same(tree[-1:].coreset(), other[-1:].coreset())


def test_follow__reads_what_is_new_by_the_metric(tmp_path: Path) -> None:
    folders = [tmp_path / "rows", tmp_path / "divided"]
    for folder in folders:
        folder.mkdir()
    views: list[CoresetTree] = []
    for day in range(2):
        part = ROWS[1000 * day : 1000 * (day + 1)]
        views = []
        for folder, rows in zip(folders, (part, unit(part)), strict=True):
            np.save(folder / f"{day}.npy", rows)
            source = open_rows(f"{folder}/*.npy", unit_length=folder is folders[0])
            views.append(CoresetTree.follow(source, tmp_path / f"{folder.name}-view", **OPTIONS))
        assert views[0].last_refresh is not None
        assert views[0].last_refresh.added == (f"{day}.npy",)
    assert_same(views[0].coreset(), views[1].coreset())
    with pytest.raises(InvalidInputError, match=r"unit_length is False, but .* with True"):
        CoresetTree.follow(f"{folders[0]}/*.npy", tmp_path / "rows-view", **OPTIONS)


MAKERS: dict[str, Callable[..., Any]] = {
    "stream": lambda _, **options: CoresetStream(**options),
    "tree": lambda path, **options: CoresetTree.create(path / "t", **options),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_rows_of_zeros__are_refused_or_left_out(kind: str, tmp_path: Path) -> None:
    X = ROWS.copy()
    X[[7, 2000]] = 0.0
    kept, rows = MAKERS[kind](tmp_path, **OPTIONS), open_rows(X, unit_length=True)
    with pytest.raises(InvalidInputError, match=r"zero in all columns at row 7, .*cosine"):
        kept.partial_fit(rows)
    weights = np.ones(3000)
    weights[[7, 2000]] = 0.0
    assert kept.partial_fit(rows, sample_weight=weights).coreset().total_weight > 2900
    dropping = MAKERS[kind](tmp_path / "d", on_invalid="drop", **OPTIONS)
    coreset = dropping.partial_fit(rows).coreset()
    assert (coreset.provenance["n"], coreset.provenance["n_dropped"]) == (2998, 2)
    plain = MAKERS[kind](tmp_path / "e", **OPTIONS).partial_fit(ROWS)
    with pytest.raises(InvalidInputError, match="unit_length is True"):
        plain.partial_fit(rows)
