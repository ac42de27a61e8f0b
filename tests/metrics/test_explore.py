"""The page of a coreset: its size, its figures, and that no text of the data is taken for HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import daskcoreset
from daskcoreset import Coreset
from daskcoreset.core.errors import (
    StoreError,
)

pytest.importorskip("bokeh", reason="exploring needs bokeh")

RNG = np.random.default_rng(0)
PARTS = RNG.choice(3, 20_000, p=[0.7, 0.25, 0.05])
X = np.array([[0.0, 0, 0], [8, 0, 1], [0, 9, 2]])[PARTS] + RNG.normal(size=(20_000, 3))


def coreset_of(m: int, d: int = 3, labels: Any = None, **provenance: Any) -> Coreset:
    rows = RNG.normal(size=(m, d))
    weights = RNG.uniform(1, 9, size=m)
    return Coreset(rows, weights, np.arange(m) * 7, labels, provenance)


def test_explore__is_small_whatever_the_size(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    labels = RNG.choice(["a", "b"], 9_000)
    for coreset in (coreset_of(9_000, 40, labels), coreset_of(500, 60)):
        page = coreset.explore(path, max_clusters=2)
        assert path.read_text(encoding="utf-8") == page.html
        assert path.stat().st_size < 2_200_000
        # Nothing is asked of the network.
        assert not [part for part in page.html.split("<script")[1:] if " src=" in part[:200]]
    assert repr(page).startswith("Exploration(1.")
    assert page._repr_html_().startswith("<iframe ")
    with pytest.raises(StoreError, match="cannot be written"):
        page.save(tmp_path / "none" / "page.html")


@pytest.mark.nightly
def test_explore__escapes_names_labels_and_titles() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    frame = pd.DataFrame(X[:500], columns=[evil, "$$x$$", "<b>" * 99])
    coreset = daskcoreset.build(frame, np.array([evil, "b"])[PARTS[:500] % 2], size=50)
    page = coreset.explore(title=evil, max_clusters=2).html
    assert "<img src=x" not in page
    assert "&lt;img" in page
    assert "<b><b>" not in page


@pytest.mark.nightly
@pytest.mark.parametrize(
    "coreset",
    [
        coreset_of(1, 1),
        coreset_of(2, 1),
        coreset_of(3, 2, np.array([np.nan, 1.0, np.nan])),
        coreset_of(300, 3, RNG.choice(np.array(list("abcdefghijklmnop")), 300)),
        coreset_of(300, 3, RNG.normal(size=300)),
        coreset_of(40, 3000),
        Coreset(np.ones((9, 2)), np.ones(9), np.arange(9)),
        Coreset(RNG.normal(size=(9, 2)), np.append(np.zeros(8), 1.0), np.arange(9)),
        Coreset(
            sp.random_array((60, 500), density=0.05, format="csr", rng=0),
            np.ones(60),
            np.arange(60),
        ),
        Coreset(
            RNG.normal(size=(9, 2)),
            np.ones(9),
            np.arange(9),
            coordinates={"time": np.arange(9).astype("M8[D]")},
        ),
    ],
    ids=["one", "two", "nan", "classes", "numbers", "wide", "same", "light", "sparse", "placed"],
)
def test_explore__any_coreset(coreset: Coreset) -> None:
    assert len(coreset.explore(max_clusters=3).html) < 2_200_000
