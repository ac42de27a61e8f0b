"""The page of a coreset: its size, its figures, and that no text of the data is taken for HTML."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import daskcoreset
from daskcoreset import Coreset
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.metrics.explore import _contents, clusters_of, explore
from daskcoreset.metrics.explore_page import _MARKERS, _plots

pytest.importorskip("bokeh", reason="exploring needs bokeh")

RNG = np.random.default_rng(0)
PARTS = RNG.choice(3, 20_000, p=[0.7, 0.25, 0.05])
X = np.array([[0.0, 0, 0], [8, 0, 1], [0, 9, 2]])[PARTS] + RNG.normal(size=(20_000, 3))


def coreset_of(m: int, d: int = 3, labels: Any = None, **provenance: Any) -> Coreset:
    rows = RNG.normal(size=(m, d))
    weights = RNG.uniform(1, 9, size=m)
    return Coreset(rows, weights, np.arange(m) * 7, labels, provenance)


def test_explore__is_two_megabytes_whatever_the_size(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    labels = RNG.choice(["a", "b"], 9_000)
    for coreset in (coreset_of(9_000, 40, labels), coreset_of(500, 60)):
        page = coreset.explore(path, max_clusters=2)
        assert path.read_text(encoding="utf-8") == page.html
        assert path.stat().st_size < 2_000_000
        # Nothing is asked of the network.
        assert not [part for part in page.html.split("<script")[1:] if " src=" in part[:200]]
    assert repr(page).startswith("Exploration(1.")
    assert page._repr_html_().startswith("<iframe ")
    with pytest.raises(StoreError, match="cannot be written"):
        page.save(tmp_path / "none" / "page.html")


def test_explore__begins_with_ranges() -> None:
    # Of plots without rows bokeh warns, in the browser, until the script has filled them.
    _, _, models = _plots()
    sources = [models[name].data for name in ("shown", "centers", "shares")]
    assert all(len(column) == 1 for source in sources for column in source.values())
    assert all(source["color"] == [None] for source in sources)


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
    assert len(coreset.explore(max_clusters=3).html) < 2_000_000


@pytest.mark.nightly
def test_clusters_of__whiskers_hold_what_all_data_have() -> None:
    """At 95 % a figure; of 12 figures for 30 seeds fewer than 300 are inside with 1e-12."""
    inside = 0
    for seed in range(30):
        coreset = daskcoreset.build(
            X,
            size=400,
            method="kmeans",
            n_clusters=3,
            passes=2,
            sampling="multinomial",
            random_state=seed,
        )
        found = clusters_of(
            coreset.points, coreset.weights, np.asarray(coreset.points, dtype=np.float64), 3, 0
        )
        centers = found.means
        nearest = ((X[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
        shares = np.bincount(nearest, minlength=3) / len(X)
        means = np.array([X[nearest == j].mean(axis=0) for j in range(3)])
        inside += int((abs(shares - found.shares) <= found.share_errors).sum())
        inside += int((abs(means - found.means) <= found.mean_errors).sum())
        assert (np.diff(found.shares) <= 0).all()  # the heaviest first
    assert inside >= 300


@pytest.mark.nightly
def test_clusters_of__nothing_is_uncertain_where_all_rows_are_there() -> None:
    whole = coreset_of(40, complete=True)
    contents = _contents(whole, 2, None, 0)
    assert not contents.clusters[1].share_errors.any()
    assert not contents.clusters[1].mean_errors.any()


@pytest.mark.nightly
def test_explore__shows_the_columns_asked_for() -> None:
    coreset = daskcoreset.build(pd.DataFrame(X, columns=["a", "b", "c"]), size=50)
    assert _contents(coreset, 2, ["c", 0], 0).names[2:] == ["c", "a"]
    for columns, problem in (
        (["d"], "has 'd', and the coreset has the columns"),
        ([], "is empty"),
        (["a", 0], "names one twice"),
        ([3], "has 3"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            coreset.explore(columns=columns)
    with pytest.raises(InvalidInputError, match="room for 300"):
        explore(coreset_of(5, 400), columns=list(range(301)))
    with pytest.raises(InvalidTypeError, match="list of names"):
        coreset.explore(columns="a")
    with pytest.raises(InvalidTypeError, match="title is"):
        coreset.explore(title=3)
    with pytest.raises(InvalidInputError, match="has room for 20"):
        coreset.explore(max_clusters=21)
    with pytest.raises(InvalidTypeError, match="pass a Coreset"):
        explore(X)  # type: ignore[arg-type]
    light = Coreset(X[:2], np.zeros(2), np.arange(2))
    with pytest.raises(InvalidInputError, match="no row of positive weight"):
        light.explore()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("built_for", "most", "shown", "opens"),
    [(3, None, 10, 3), (None, None, 10, 4), (12, None, 12, 12), (12, 6, 6, 6), (50, None, 20, 20)],
)
def test_explore__opens_with_the_clusters_asked_for(
    built_for: int | None, most: int | None, shown: int, opens: int
) -> None:
    coreset = daskcoreset.build(X, size=60, n_clusters=built_for, random_state=0)
    page = coreset.explore(max_clusters=most).html
    found = re.findall(r'"title":"clusters","start":1,"end":(\d+),"value":(\d+)', page)
    assert found == [(str(shown), str(opens))]


@pytest.mark.nightly
def test_explore__names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(MissingDependencyError, match=r"daskcoreset\[explore\]"):
        coreset_of(3).explore()


@contextmanager
def in_browser(path: Path, width: int = 1200) -> Iterator[tuple[Any, list[str]]]:
    """Open a page without a network; give it, and what it asked for or did wrong."""
    browser = pytest.importorskip("playwright.sync_api", reason="needs the hands of a browser")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip("needs chromium")
    with browser.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            page = opened.new_context(
                viewport={"width": width, "height": 900}, offline=True
            ).new_page()
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda asked: problems.append(asked.url))
            page.goto(f"file://{path}")
            page.wait_for_function("window.Bokeh && Bokeh.documents.length == 1")
            page.wait_for_function(
                "Bokeh.documents[0].get_model_by_name('scatter').renderers[0]"
                ".data_source.data.x.length > 0"
            )
            yield page, problems
        finally:
            opened.close()


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1200])
def test_explore__works_in_a_browser_without_a_network(tmp_path: Path, width: int) -> None:
    evil = "<img src=x onerror=document.title='evil'>"
    frame = pd.DataFrame(X, columns=[evil, "$$b$$", "c"])
    coreset = daskcoreset.build(frame, np.array([evil, "b", "c"])[PARTS], size=200, random_state=0)
    coreset.explore(tmp_path / "page.html", max_clusters=6)
    script = """() => {
        const page = Bokeh.documents[0], named = (name) => page.get_model_by_name(name);
        const drawn = named("scatter").renderers[0].data_source;
        const before = named("legend").text.split("<br>").length;
        named("k").value = 6; named("color").value = "label"; named("y").value = "2";
        drawn.selected.indices = [0, 1, 2];
        return [drawn.data.x.length, before, named("details").text, named("legend").text];
    }"""
    with in_browser(tmp_path / "page.html", width) as (page, problems):
        points, clusters, _, _ = page.evaluate(script)
        page.wait_for_timeout(300)
        details = page.evaluate("Bokeh.documents[0].get_model_by_name('details').text")
        assert (points, clusters) == (200, 4)
        for row in coreset.indices[:3]:
            assert f"{row:,}" in details
        assert "coreset.source_rows([0, 1, 2])" in details
        assert "<img" not in details
        assert "<img" not in page.evaluate("Bokeh.documents[0].get_model_by_name('legend').text")
        assert page.title() != "evil"
        assert problems == [f"file://{tmp_path}/page.html"]
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.nightly
@pytest.mark.slow
def test_explore__axes_of_constant_columns_have_room(tmp_path: Path) -> None:
    # With weights by which a mean of ones is not one.
    coreset = daskcoreset.build(np.ones((500, 2)), size=30, random_state=0)
    coreset.explore(tmp_path / "page.html")
    ends = """() => {
        const drawn = Bokeh.documents[0].get_model_by_name("scatter");
        return [drawn.x_range, drawn.y_range].map((range) => range.end - range.start);
    }"""
    with in_browser(tmp_path / "page.html") as (page, _):
        page.wait_for_timeout(500)
        assert min(page.evaluate(ends)) >= 0.5


@pytest.mark.nightly
def test_explore__knows_which_label_stands_for_many() -> None:
    for n_labels, known in ((30, '["others",9]'), (3, '["others",null]')):
        coreset = coreset_of(200, 2, np.array([f"label {i % n_labels}" for i in range(200)]))
        html = coreset.explore(max_clusters=2).html
        assert known in html
    # Without colours they are told apart by a marker that no label has.
    assert 'rest(code) ? \\"dash\\"' in html
    assert "dash" not in _MARKERS.values()


@pytest.mark.nightly
def test_explore__rows_of_rare_labels_keep_their_own() -> None:
    names = np.array(["a"] * 60 + [f"frequent {i % 8}" for i in range(120)] + ["rare", "no one's"])
    coreset = coreset_of(182, 2, names)
    contents = _contents(coreset, 2, None, 0)
    assert contents.classes == ["a", *(f"frequent {i}" for i in range(8)), "others"]
    assert contents.rare == [None] * 180 + ["rare", "no one's"]
    html = coreset.explore(max_clusters=2).html
    assert '"rare"' in html
    assert "config.rare[i] ??" in html
    few = _contents(coreset_of(30, 2, names[:30]), 2, None, 0)
    assert few.rare == []


@pytest.mark.nightly
def test_explore__has_room_for_long_rare_labels() -> None:
    names = np.array([f"{i:06d}" + 90 * "n" for i in range(6000)])
    html = coreset_of(6000, 4, names).explore(max_clusters=2).html
    assert len(html) < 2_000_000
    assert "0" * 3 in html
