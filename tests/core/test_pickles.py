"""Pickles of results have a version: newer ones are refused in words, those of before load."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskcoreset import Coreset, CoresetStream, CoresetTree, Portfolio
from daskcoreset.core.errors import StoreError
from daskcoreset.core.points import WeightedPoints
from tests.pairs import each

KINDS = [Coreset, Portfolio, CoresetStream, CoresetTree]


def portfolio() -> Portfolio:
    rows = np.array([[0.0, 1.0], [2.0, 3.0]], dtype=np.float32)
    cells = WeightedPoints(rows + 1, np.array([5.0, 5.0]), np.array([4, 8]))
    record = {
        "method": "kmeans",
        "n": 10,
        "seed": 0,
        "representatives": "centroids",
        "objective": {"name": "quantization error", "n_clusters": 1},
    }
    where = {"year": np.array([2001, 2002])}
    one = Coreset(rows, np.full(2, 5.0), np.array([3, 7]), None, record, where, 1.5, cells)
    return Portfolio({"one": one}, {"n": 10}, None, one)


def made(kind: type, folder: Path) -> Any:
    if kind is CoresetTree:
        tree = CoresetTree.create(folder / "tree", size=5, random_state=0)
        tree.append(np.arange(8.0).reshape(4, 2))
        return tree
    if kind is CoresetStream:
        return CoresetStream(size=5, random_state=0).partial_fit(np.arange(8.0).reshape(4, 2))
    return portfolio() if kind is Portfolio else portfolio()["one"]


@each(protocol=[2, 5], kind=KINDS)
def test_pickle__of_a_newer_version_says_who_wrote_it(
    kind: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(kind, tmp_path)
    known = kind._pickle_version
    assert type(pickle.loads(pickle.dumps(one, protocol))) is kind
    with monkeypatch.context() as newer:
        newer.setattr(kind, "_pickle_version", known + 1)
        newer.setattr("daskcoreset.core.pickles.package_versions", lambda: {"daskcoreset": "9.8"})
        stored = pickle.dumps(one, protocol)
    message = (
        rf"pickled {kind.__name__} was written by daskcoreset 9\.8 in layout {known + 1}, and "
        rf"daskcoreset [0-9].* knows none above {known}; upgrade daskcoreset, or build"
    )
    with pytest.raises(StoreError, match=message):
        pickle.loads(stored)
