"""Trees, streams and views: tables of leaves, counts, times, schemas and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tests.acceptance import face
from tests.acceptance.test_merge_reduce import Recorder, days, grown, rows, shapes

pytestmark = pytest.mark.usefixtures("light_trees")


@pytest.fixture
def calls() -> Any:
    Recorder.calls.clear()
    yield Recorder.calls
    Recorder.calls.clear()


def remote_place() -> Any:
    obstore = pytest.importorskip("obstore")
    from zarr.storage import ObjectStore

    return ObjectStore(obstore.store.MemoryStore())


# --- nodes ---------------------------------------------------------------------------------


def test_stream__groups_of_four_and_eight_leaves_are_reduced_together(calls: Any) -> None:
    """Four leaves alone, four thinned ones together, and then eight at a time."""
    stream = face.stream(method=Recorder(), size=5, leaf_size=40, random_state=0)
    held = {4: 10, 6: 10 + 20, 8: 10, 12: 10 + 40, 16: 10 + 10, 24: 10 + 20, 32: 10}
    for leaves in range(1, 33):
        stream.partial_fit(rows(40 * leaves)[40 * (leaves - 1) :])
        if leaves in held:
            assert stream.n_held == held[leaves]
    expected = {
        ("reduce", 40, 10): 4 + 2 + 1,  # leaves, two groups of four, and four of eight leaves
        ("thin", 40, 10): 28,
        ("reduce", 20, 10): 1,
        ("reduce", 80, 10): 3,
    }
    assert Counter(shapes(calls)) == expected
    assert stream.coreset().provenance["levels"] == 6
    assert stream.coreset().provenance["leaf_size"] == 40


def test_stream__thinned_leaves_hold_twice_the_rows_of_a_node() -> None:
    for sampling in ("systematic", "multinomial"):
        draw = face.MergeReduce(sampling=sampling)
        stream = face.stream(
            method=face.Uniform(), size=20, leaf_size=400, random_state=0, draw=draw
        )
        stream.partial_fit(np.random.default_rng(0).normal(size=(6 * 400 + 5, 2)))
        if sampling == "systematic":
            assert stream.n_held == 40 + 2 * 80 + 5
        assert stream.rows().total_weight == pytest.approx(2405, rel=1e-9)
        copy = pickle.loads(pickle.dumps(stream))
        assert copy.coreset().equals(stream.coreset())
        copy.partial_fit(np.ones((400, 2)))
        assert (copy.n_rows, stream.n_rows) == (2805, 2405)
        assert stream.coreset().total_weight == pytest.approx(2405, rel=1e-9)
        assert stream.coreset().provenance["sampling"] == sampling


@pytest.mark.parametrize(("window", "n_nodes"), [
    (None, 1), (slice(0, 4), 1), (slice(1, 8), 3), (slice(1, 7), 4), (3, 1),
    (["d0", "d2", "d3", "d7"], 3), (slice(None, None, 2), 4),
], ids=str)  # fmt: skip
def test_window__is_answered_from_the_fewest_nodes(
    window: Any, n_nodes: int, calls: Any, tmp_path: Path
) -> None:
    tree = grown(tmp_path / "t", days(8), method=Recorder())
    calls.clear()
    tree.coreset(window)
    assert shapes(calls) == [("finish", 20 * n_nodes, 10)]


def test_view__is_answered_from_up_to_sixteen_nodes(calls: Any, tmp_path: Path) -> None:
    for i, part in enumerate(days(17, 24)):
        np.save(tmp_path / f"{i:02d}.npy", part)
    view = face.follow(f"{tmp_path}/*.npy", tmp_path / "v", method=Recorder(), size=10)
    assert 5 <= view.depth <= 7
    calls.clear()
    view.coreset()
    assert shapes(calls) == [("finish", 16 * 20, 10)]
    calls.clear()
    view.coreset(slice(4, 7))
    assert shapes(calls) == [("finish", 3 * 20, 10)]


def test_build__provenance_says_how_blocks_were_merged() -> None:
    X = da.from_array(rows(350), chunks=(50, 2))
    for split, levels in ((2, 3), (3, 2), (16, 1)):
        draw = face.MergeReduce(split_every=split, inner_size=12)
        c = face.build(X, size=9, random_state=0, draw=draw)
        facts = c.provenance
        assert (facts["levels"], facts["n_blocks"], facts["split_every"]) == (levels, 7, split)
        assert (facts["inner_size"], facts["passes"], facts["complete"]) == (12, 1, False)
    with pytest.warns(face.CoresetWarning):
        whole = face.build(rows(20), size=30, random_state=0, draw=face.MergeReduce())
    assert whole.provenance["complete"]
    assert np.array_equal(whole.points, rows(20))
    with pytest.raises(face.CoresetError, match="positive weight"):
        face.build(rows(20), size=3, sample_weight=np.zeros(20), draw=face.MergeReduce())


# --- the table of leaves -------------------------------------------------------------------


def test_leaves__names_times_and_row_numbers(tmp_path: Path) -> None:
    tree = face.create_tree(tmp_path / "t", size=10, random_state=0)
    assert (len(tree), tree.depth, tree.version, bool(tree)) == (0, 0, 0, True)
    with pytest.raises(face.CoresetError, match="no leaves"):
        tree.coreset()
    with pytest.raises(face.CoresetError, match=r"'d9'.* none"):
        tree.replace("d9", rows(9))
    assert tree.append(rows(30)).name == "leaf-0"
    assert tree.append(rows(7), time=dt.date(2026, 1, 2)).name == "2026-01-02"
    assert tree.append(rows(5), name="x", time="2026-01-03").time == "2026-01-03"
    tree.delete("2026-01-02")
    assert tree.append(rows(4)).name == "leaf-3"
    leaves = tree.leaves
    assert leaves.names == list(tree) == ["leaf-0", "x", "leaf-3"]
    assert leaves.offsets == [0, 30, 35]
    names_too: Any = leaves
    assert ("x" in tree, "x" in names_too, leaves[0] in leaves, "y" in names_too) == (
        True, True, True, False)  # fmt: skip
    assert (leaves["x"].rows, leaves[-1].name, leaves[1:].names) == (5, "leaf-3", ["x", "leaf-3"])
    frame = leaves.to_dataframe()
    assert frame.columns.tolist() == ["name", "rows", "time", "weight", "n_dropped"]
    assert frame["rows"].tolist() == [30, 5, 4]
    assert repr(leaves).splitlines() == [
        "name    rows  time        weight",
        "leaf-0    30  -               30",
        "x          5  2026-01-03       5",
        "leaf-3     4  -                4",
    ]
    assert "size 10" in repr(tree)
    assert "3 leaves" in repr(tree)
    assert "version 5" in repr(tree)
    names, numbers = tree.locate(np.array([0, 29, 30, 34, 35, 38]))
    assert names == ["leaf-0", "leaf-0", "x", "x", "leaf-3", "leaf-3"]
    assert numbers.tolist() == [0, 29, 0, 4, 0, 3]
    assert tree.locate(np.array([], dtype=np.int64))[0] == []
    wrong: Any
    for wrong in ([39], [-1], [0.5], [[1]]):
        with pytest.raises(face.CoresetError, match="indices"):
            tree.locate(wrong)
    facts = tree.coreset(["x", "leaf-3"]).provenance
    assert list(map(dict, facts["leaves"])) == [
        {"name": "x", "offset": 30, "rows": 5},
        {"name": "leaf-3", "offset": 35, "rows": 4},
    ]
    assert (facts["n"], facts["total_weight"], facts["version"]) == (9, 9.0, 5)
    assert facts["levels"] == tree.depth == 2
    assert tree.as_of(4).leaves.names == ["leaf-0", "x"]
    with pytest.raises(face.CoresetError, match="oldest one there is 4"):
        tree.as_of(3)
    kept = tree.replace("x", rows(6))
    assert (kept.time, kept.rows) == ("2026-01-03", 6)
    assert tree.replace("x", rows(6), time="2026-01-09").time == "2026-01-09"
    with pytest.raises(face.CoresetError, match="times of one kind"):
        tree.replace("leaf-3", rows(4), time=7)
    assert tree.leaves["x"].time == "2026-01-09"


def test_leaves__many_are_shortened_in_notebooks(tmp_path: Path) -> None:
    for n in range(31):
        np.save(tmp_path / f"{n:02d}.npy", rows(2))
    tree = face.follow(f"{tmp_path}/*.npy", tmp_path / "v", size=2, random_state=0)
    table = tree.leaves.to_html()
    assert "1 more" in table
    assert [name in table for name in ("14.npy", "15.npy", "16.npy")] == [True, False, True]
    assert "more" not in tree.leaves[:30].to_html()
    assert "15.npy" in tree.leaves[:30].to_html()


WRONG_LEAVES: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "empty"),
    ({"name": 3}, "name is"),
    ({"name": "d1"}, "'d1' already"),
    ({"time": np.datetime64("NaT", "s")}, "no time"),
    ({"time": "monday"}, "no date and no number"),
    ({"time": True}, "time is"),
    ({"time": 7}, "times of one kind"),
    ({"on_invalid": "ignore"}, "on_invalid"),
]


@pytest.mark.parametrize(("options", "match"), WRONG_LEAVES, ids=str)
def test_append__what_a_leaf_cannot_be_called_is_refused(
    options: dict[str, Any], match: str, tmp_path: Path
) -> None:
    tree = grown(tmp_path / "t", days(3))
    with pytest.raises(face.CoresetError, match=match):
        tree.append(days(1)[0], **options)
    assert (len(tree), tree.version) == (3, 3)


WRONG_WINDOWS: list[tuple[Any, str]] = [
    (["d1", "d1"], "'d1' twice"),
    ([], "empty"),
    ([1], "positions as"),
    (1.5, "names"),
    ("d7", "such as 'd0', 'd1', 'd2'"),
    (slice("d0", "d2", 2), "step 2"),
    (slice("d2", "d0"), "back to"),
    (slice(dt.date(2026, 3, 3), dt.date(2026, 3, 1)), "back to"),
    (slice(0, "d2"), "leaf is 0"),
    (slice("2026-04", None), "no leaf lies"),
]


@pytest.mark.parametrize(("window", "match"), WRONG_WINDOWS, ids=str)
def test_window__that_names_no_leaves_says_why(window: Any, match: str, tmp_path: Path) -> None:
    tree = grown(tmp_path / "t", days(3))
    for use in (tree.coreset, tree.delete, tree.__getitem__):
        with pytest.raises(face.CoresetError, match=match):
            use(window)
    assert len(tree) == 3
    with pytest.raises(face.CoresetError, match="None"):
        tree.delete(None)


def test_window__times_of_days_and_months(tmp_path: Path) -> None:
    tree = face.create_tree(tmp_path / "t", size=5, random_state=0)
    times = ["2026-01-31T23:59", "2026-02-01", "2026-02-28T23:59:59+00:00",
             "2026-03-01T00:30+02:00", "2026-03-01T12:00"]  # fmt: skip
    for i, time in enumerate(times):
        tree.append(rows(3), time=time, name=f"n{i}")

    def of(window: Any) -> list[str]:
        return list(tree[window].names)

    assert of(slice("2026-02", "2026-02")) == ["n1", "n2", "n3"]  # the third is in UTC of February
    assert of(slice(None, "2026-01")) == ["n0"]
    assert of(slice(dt.date(2026, 3, 1), None)) == ["n4"]
    assert of(dt.date(2026, 2, 28)) == ["n2", "n3"]
    assert of(slice(dt.datetime(2026, 2, 28, 23, tzinfo=dt.UTC), "2026-02")) == ["n2"]
    assert of(np.datetime64("2026-02-01")) == ["n1"]
    assert of(slice("n1", "n2")) == ["n1", "n2"]
    assert of(slice(None, "n0")) == ["n0"]
    assert of(slice("n4", None)) == ["n4"]


# --- rows ----------------------------------------------------------------------------------


def test_append__rows_out_of_core_keep_their_numbers_where_some_are_dropped(tmp_path: Path) -> None:
    X = np.arange(800.0).reshape(400, 2)
    X[[5, 130, 399]] = np.nan
    tree = face.create_tree(tmp_path / "t", size=30, random_state=0, on_invalid="drop")
    tree.append(rows(11), name="before")
    leaf = tree.append(da.from_array(X, chunks=(20, 2)), name="big")
    assert (leaf.rows, leaf.n_dropped, leaf.weight) == (400, 3, 397.0)
    c = tree.coreset("big")
    names, numbers = tree.locate(c.indices)
    assert set(names) == {"big"}
    assert np.array_equal(c.points, X[numbers])
    facts = tree.coreset().provenance
    assert (facts["n"], facts["n_dropped"], facts["total_weight"]) == (408, 3, 408.0)
    with pytest.raises(face.CoresetError, match=r"NaN in column 0 at row 5"):
        tree.append(da.from_array(X, chunks=(20, 2)), on_invalid="raise")
    strict = face.create_tree(tmp_path / "s", size=30, random_state=0)
    with pytest.raises(face.CoresetError, match="at row 5"):
        strict.append(X)
    assert strict.append(X, on_invalid="drop").n_dropped == 3


def frame(n: int, names: str = "ab") -> Any:
    return pd.DataFrame(rows(n), columns=list(names))


WRONG_ROWS: list[tuple[Any, Any, str]] = [
    (np.ones((5, 3)), np.zeros(5, int), "X has 3 features, .* have 2"),
    (sp.csr_array(np.ones((5, 2))), np.zeros(5, int), "X is sparse"),
    (frame(5, "ba"), np.zeros(5, int), "X has the columns"),
    (frame(5), None, "y is missing"),
    (frame(5), np.array(list("abcde")), "y holds text"),
    (frame(5), np.linspace(0.5, 1, 5), "y holds floats"),
]


@pytest.mark.parametrize(("X", "y", "match"), WRONG_ROWS)
def test_append__rows_of_another_schema_are_refused(
    X: Any, y: Any, match: str, tmp_path: Path
) -> None:
    tree = face.create_tree(tmp_path / "t", size=5, random_state=0)
    tree.append(frame(9), np.arange(9, dtype=np.int8) % 2, name="a")
    tree.append(frame(9), np.arange(9) % 2, name="b")
    with pytest.raises(face.CoresetError, match=match):
        tree.append(X, y)
    with pytest.raises(face.CoresetError, match=match):
        tree.replace("a", X, y)
    assert tree.version == 2
    c: Any = tree.coreset()
    assert c.labels.dtype == np.int64
    assert tuple(c.provenance["columns"]) == ("a", "b")
    narrow = face.create_tree(tmp_path / "n", size=5, random_state=0)
    narrow.append(np.ones((3, 2), np.float32))
    with pytest.raises(face.CoresetError, match="lose"):
        narrow.append(np.ones((3, 2)))
    wide = face.create_tree(tmp_path / "w", size=5, random_state=0)
    wide.append(np.ones((3, 2)))
    wide.append(np.ones((3, 2), np.float32))
    assert wide.coreset().points.dtype == np.float64
    with pytest.warns(face.CoresetWarning, match="had no names"):
        wide.append(frame(3))
    assert tuple(wide.coreset().provenance["columns"]) == ("a", "b")


def test_tree__labels_weights_sparse_rows_and_unit_length(tmp_path: Path) -> None:
    X = sp.csr_array(np.random.default_rng(0).random((60, 4)) * (np.arange(4) != 2))
    tree = face.create_tree(tmp_path / "t", size=12, random_state=0, metric="cosine")
    for i, text in enumerate(("a", "long")):
        part = X[30 * i : 30 * i + 30]
        tree.append(part, np.full(30, text), np.full(30, 2.0 + i), name=text)
    c: Any = face.CoresetTree.open(tmp_path / "t").coreset()
    assert sp.issparse(c.points)
    assert np.allclose(sp.linalg.norm(c.points, axis=1), 1.0)
    assert set(c.labels) == {"a", "long"}
    assert c.provenance["total_weight"] == 30 * 2 + 30 * 3
    scaled = face.CoresetTree.open(tmp_path / "t").coreset(normalize=True)
    assert scaled.total_weight == pytest.approx(150)
    zero = X[:9].copy()
    zero.data[zero.indptr[4] : zero.indptr[5]] = 0.0
    with pytest.raises(face.CoresetError, match="row 4"):
        tree.append(zero, np.full(9, "a"))
    again = face.CoresetTree.open(tmp_path / "t")
    again.append(X[:9] * 5.0, np.full(9, "a"), name="more")
    assert np.allclose(sp.linalg.norm(again.coreset("more").points, axis=1), 1.0)
    stream = face.stream(size=12, random_state=0, metric="cosine", leaf_size=25)
    stream.partial_fit(X.toarray()[:40]).partial_fit(X.toarray()[40:])
    assert np.allclose(np.linalg.norm(stream.rows().points, axis=1), 1.0)
    assert np.allclose(stream.coreset().points, (X.toarray() / np.linalg.norm(
        X.toarray(), axis=1, keepdims=True))[stream.coreset().indices])  # fmt: skip


# --- streams -------------------------------------------------------------------------------


def test_stream__small_batches_of_any_kind_hold_what_came() -> None:
    rng = np.random.default_rng(0)
    stream = face.stream(size=50, leaf_size=200, random_state=0, on_invalid="drop")
    assert (len(stream), stream.n_held, stream.levels, bool(stream)) == (0, 0, (), True)
    with pytest.raises(face.CoresetError, match="no rows yet"):
        stream.rows()
    came, weights = [], []
    batches: list[Any] = [
        rng.normal(size=(3, 2)),
        rng.normal(size=(1, 2)),
        np.asfortranarray(rng.normal(size=(20, 2))),
        rng.normal(size=(40, 2))[::2],
        rng.normal(size=(5, 2)).astype(np.float32),
        np.empty((0, 2)),
        rng.normal(size=(30, 2)),
        rng.normal(size=(2, 2)),
    ]
    batches[6][4, 1] = np.inf
    for i, batch in enumerate(batches):
        u = np.full(len(batch), 2.0) if i == 3 else None
        stream.partial_fit(batch, sample_weight=u)
        came.append(np.array(batch, dtype=float))
        weights.append(np.ones(len(batch)) if u is None else u)
        batch[:] = 99.0  # what the user does with it later
        copy = pickle.loads(pickle.dumps(stream))
    everything, u = np.concatenate(came), np.concatenate(weights)
    fine = np.isfinite(everything).all(axis=1)
    assert (stream.n_rows, stream.n_dropped, stream.n_held) == (81, 1, 80)
    assert stream.total_weight == u[fine].sum() == 100
    held = stream.rows()
    assert np.array_equal(held.indices, np.flatnonzero(fine))
    assert np.array_equal(held.points, everything[fine])
    assert np.array_equal(held.weights, u[fine])
    copy.partial_fit(rng.normal(size=(4, 2)))
    stream.partial_fit(np.zeros((3, 2)))
    assert (copy.n_rows, stream.n_rows) == (85, 84)
    assert np.array_equal(stream.rows().points[-3:], np.zeros((3, 2)))
    assert np.array_equal(copy.rows().indices[-4:], np.arange(81, 85))
    assert stream.coreset().provenance["n_dropped"] == 1
    assert stream.coreset().provenance["n"] == 83
    assert "84 rows seen, 83 held, size 50" in repr(stream)


def test_stream__invalid_rows_are_named_and_nothing_is_taken() -> None:
    stream = face.stream(size=10, leaf_size=40, random_state=0)
    stream.partial_fit(rows(15))
    for at, n in ((3, 5), (0, 1), (60, 90)):
        X = rows(n)
        X[at, 0] = np.nan
        with pytest.raises(face.CoresetError, match=f"NaN in column 0 at row {at}"):
            stream.partial_fit(X)
        assert (stream.n_rows, stream.n_held) == (15, 15)
    positive = face.stream(method=face.LightweightBregman("kl"), size=10, leaf_size=99)
    positive.partial_fit(rows(15) + 1.0)
    for n in (9, 5):
        with pytest.raises(face.CoresetError, match="row 2"):
            positive.partial_fit(rows(n) - 3.0 * (np.arange(n) == 2)[:, np.newaxis] + 0.5)
        assert positive.n_rows == 15
    stream.partial_fit(iter([rows(5), (rows(6), None, np.full(6, 3.0)), (rows(2),)]))
    assert (stream.n_rows, stream.total_weight) == (28, 15 + 5 + 18 + 2)
    with pytest.raises(face.CoresetError, match="iterator"):
        stream.partial_fit(iter([rows(5)]), sample_weight=np.ones(5))
    whole = face.stream(size=10, leaf_size=40, random_state=0)
    whole.partial_fit(rows(15)).partial_fit(rows(5))
    whole.partial_fit(rows(6), sample_weight=np.full(6, 3.0)).partial_fit(rows(2))
    assert stream.coreset().equals(whole.coreset())
    with pytest.raises(face.CoresetError, match="3 features"):
        stream.partial_fit(np.ones((2, 3)))
    with pytest.raises(face.CoresetError, match="labels"):
        face.stream(method=face.SVM(), size=9).partial_fit(rows(9))


# --- stores and views ----------------------------------------------------------------------


def test_open__needs_the_method_that_no_store_can_make(tmp_path: Path) -> None:
    tree = grown(tmp_path / "t", days(2), method=Recorder())
    stream = face.stream(method=Recorder(), size=5, random_state=0, store=tmp_path / "s")
    stream.partial_fit(rows(7))
    for opened, path in (
        (face.CoresetTree.open, tmp_path / "t"),
        (face.CoresetStream.load, tmp_path / "s"),
    ):
        with pytest.raises(face.CoresetError, match="pass method"):
            opened(path)
        with pytest.raises(face.CoresetError, match="was made with 'Recorder'"):
            opened(path, "uniform")
        assert opened(path, Recorder()).coreset().provenance["method"] == "Recorder"
    draw = face.MergeReduce(sampling="multinomial")
    grown(tmp_path / "m", days(1), draw=draw)
    face.CoresetTree.open(tmp_path / "m", "lightweight")
    with pytest.raises(face.CoresetError, match="made with 'lightweight'"):
        face.CoresetTree.open(tmp_path / "m", "uniform")
    assert tree.version == 2


VIEW: dict[str, Any] = {"size": 10, "random_state": 3, "on_invalid": "drop"}


@pytest.mark.parametrize(("changed", "match"), [
    ({"size": 11, "draw": face.MergeReduce(inner_size=20)}, "size is 11"),
    ({"draw": face.MergeReduce(inner_size=25)}, "inner_size is 25"),
    ({"random_state": 4}, "random_state is 4"),
    ({"on_invalid": "raise"}, "on_invalid is 'raise'"),
    ({"draw": face.MergeReduce(sampling="multinomial")}, "sampling"),
    ({"metric": "cosine"}, "metric is 'cosine'"),
    ({"method": "uniform"}, "method is 'uniform'"),
    ({"detect": "content"}, "detect is 'content'"),
    ({"keep": 0}, "keep"),
], ids=str)  # fmt: skip
def test_follow__again_with_other_settings_is_refused(
    changed: dict[str, Any], match: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", rows(40))
    source = f"{tmp_path}/*.npy"
    view = face.follow(source, tmp_path / "v", **VIEW)
    with pytest.raises(face.CoresetError, match=match):
        face.follow(source, tmp_path / "v", **VIEW | changed)
    again = face.follow(source, tmp_path / "v", **VIEW | {"random_state": None})
    assert again.coreset().equals(view.coreset())
    done: Any = again.last_refresh
    assert not done
    assert (done.n_leaves, done.rows) == (1, 0)
    with pytest.raises(face.CoresetError, match="follows"):
        again.append(rows(3))
    with pytest.raises(face.CoresetError, match="follows"):
        again.delete("a.npy")
    with pytest.raises(face.CoresetError, match="opened as it is"):
        face.CoresetTree.open(tmp_path / "v").refresh()
    plain = grown(tmp_path / "t", days(1))
    with pytest.raises(face.CoresetError, match="follows no source"):
        plain.refresh()
    with pytest.raises(face.CoresetError):
        face.follow(source, tmp_path / "t", size=10, random_state=0)
    with pytest.raises(face.CoresetError, match="allow_shrink"):
        face.call(view.refresh, None, allow_shrink="yes")


@pytest.mark.parametrize("remote", [False, True])
def test_follow__a_view_that_never_had_a_leaf_takes_other_settings(
    remote: bool, tmp_path: Path
) -> None:
    place = remote_place() if remote else tmp_path / "v"
    source = f"{tmp_path}/*.npy"
    with pytest.warns(face.CoresetWarning, match="no file"):
        face.follow(source, place, size=5, random_state=0)
    with pytest.warns(face.CoresetWarning, match="no file"):
        face.follow(source, place, size=7, random_state=1)
    np.save(tmp_path / "a.npy", rows(40))
    view = face.follow(source, place, size=9, random_state=2)
    assert len(view.coreset()) == 9
    with pytest.raises(face.CoresetError, match="size is 5"):
        face.follow(source, place, size=5, random_state=2)
    view.verify()


@pytest.mark.parametrize("keep", [None, 1, 3])
def test_as_of__has_as_many_versions_as_are_kept(keep: int | None, tmp_path: Path) -> None:
    source = f"{tmp_path}/*.npy"
    np.save(tmp_path / "a.npy", rows(30))
    view = face.follow(source, tmp_path / "v", keep=keep, **VIEW)
    coresets = {1: view.coreset()}
    for version in range(2, 6):
        np.save(tmp_path / f"b{version}.npy", rows(30) * version)
        view.refresh()
        coresets[version] = view.coreset()
    first = {None: 1, 1: 4, 3: 3}[keep]
    for version in range(1, 6):
        if version < first:
            with pytest.raises(face.CoresetError, match=f"oldest one there is {first}"):
                view.as_of(version)
            continue
        old = view.as_of(version)
        assert (old.version, len(old)) == (version, version)
        assert old.coreset().equals(coresets[version])
    for wrong in (0, 6, -1):
        with pytest.raises(face.CoresetError, match="version"):
            view.as_of(wrong)


def test_open__a_root_that_was_put_back_is_refused(tmp_path: Path) -> None:
    """Later versions are there, which an old root does not name."""
    place = remote_place()
    store = place.store
    np.save(tmp_path / "a.npy", rows(30))
    view = face.follow(f"{tmp_path}/*.npy", place, keep=None, **VIEW)
    root = bytes(store.get("zarr.json").bytes())
    for version in range(3):
        np.save(tmp_path / f"b{version}.npy", rows(30))
        view.refresh()
    face.CoresetTree.open(place).verify()
    store.put("zarr.json", root)
    with pytest.raises(face.CoresetError, match="newest, and there are members of version"):
        face.CoresetTree.open(place)


def test_follow__a_view_inside_its_source_is_refused(tmp_path: Path) -> None:
    frame(9).to_parquet(tmp_path / "part.parquet")
    with pytest.raises(face.CoresetError, match="is inside source"):
        face.follow(tmp_path, tmp_path / "view", **VIEW)
    with pytest.raises(face.CoresetError, match="is inside source"):
        face.follow([str(tmp_path)], tmp_path / "deep" / "view", **VIEW)
    outside = tmp_path.parent / f"{tmp_path.name}-view"
    view = face.follow(tmp_path, outside, y="b", **VIEW)
    assert view.coreset().points.shape == (9, 1)
    with pytest.raises(face.CoresetError, match="y is"):
        face.follow(tmp_path, outside, **VIEW)
    shutil.rmtree(outside)
