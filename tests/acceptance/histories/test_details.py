"""Trees, streams and views: tables of leaves, counts, times, schemas and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance import face
from tests.acceptance.tools.trees import Recorder, days, grown, rows

pytestmark = pytest.mark.usefixtures("quick_disk")


# --- the table of leaves -------------------------------------------------------------------


def test_leaves__names_times_and_row_numbers(tmp_path: Path) -> None:
    tree = face.create_tree(tmp_path / "t", size=10, random_state=0)
    assert (len(tree), tree.depth, tree.version, bool(tree)) == (0, 0, 0, True)
    with pytest.raises(face.CoresetError, match="no leaves"):
        tree.coreset()
    with pytest.raises(face.CoresetError, match=r"'d9'.* none"):
        tree.replace("d9", rows(9))
    assert tree.append(rows(30)).name == "leaf-0"
    with pytest.raises(face.CoresetError, match="leaf-0"):
        tree.append(rows(9), name="leaf-0")
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
    for wrong in ([0, 39], [-1, 0], [0.5], [[1]]):
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
    with pytest.raises(face.CoresetError, match="oldest one is 4"):
        tree.as_of(3)
    kept = tree.replace("x", rows(6))
    assert (kept.time, kept.rows) == ("2026-01-03", 6)
    assert tree.replace("x", rows(6), time="2026-01-09").time == "2026-01-09"
    with pytest.raises(face.CoresetError, match="times of one kind"):
        tree.replace("leaf-3", rows(4), time=7)
    assert tree.leaves["x"].time == "2026-01-09"


def test_window__times_of_days(tmp_path: Path) -> None:
    tree = face.create_tree(tmp_path / "t", size=5, random_state=0)
    times = ["2026-01-31T23:59", "2026-02-01", "2026-02-28T23:59:59+00:00",
             "2026-03-01T00:30+02:00", "2026-03-01T12:00"]  # fmt: skip
    for i, time in enumerate(times):
        tree.append(rows(3), time=time, name=f"n{i}")

    def of(window: Any) -> list[str]:
        return list(tree[window].names)

    assert of(slice(dt.date(2026, 2, 1), dt.date(2026, 2, 28))) == ["n1", "n2", "n3"]
    assert of(slice(None, dt.date(2026, 1, 31))) == ["n0"]
    assert of(slice(dt.date(2026, 3, 1), None)) == ["n4"]
    assert of(dt.date(2026, 2, 28)) == ["n2", "n3"]
    assert of(slice(dt.datetime(2026, 2, 28, 23, tzinfo=dt.UTC), dt.date(2026, 2, 28))) == ["n2"]
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


def test_tree__labels_weights_sparse_rows_and_unit_length(tmp_path: Path) -> None:
    X = sp.csr_array(np.random.default_rng(0).random((60, 4)) * (np.arange(4) != 2))
    tree = face.create_tree(tmp_path / "t", size=12, random_state=0)
    for i, text in enumerate(("a", "long")):
        part = X[30 * i : 30 * i + 30]
        unit = face.open_rows(part, unit_length=True)
        tree.append(unit, np.full(30, text), np.full(30, 2.0 + i), name=text)
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
    stream = face.stream(size=12, random_state=0, leaf_size=25)
    stream.partial_fit(face.open_rows(X.toarray()[:40], unit_length=True)).partial_fit(
        X.toarray()[40:]
    )
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


def test_stream__takes_no_row_outside_the_domain_and_batches_of_an_iterator() -> None:
    positive = face.stream(method=face.LightweightBregman("kl"), size=10, leaf_size=99)
    positive.partial_fit(rows(15) + 1.0)
    for n in (9, 5):
        with pytest.raises(face.CoresetError, match="row 2"):
            positive.partial_fit(rows(n) - 3.0 * (np.arange(n) == 2)[:, np.newaxis] + 0.5)
        assert positive.n_rows == 15
    stream = face.stream(size=10, leaf_size=40, random_state=0).partial_fit(rows(15))
    stream.partial_fit(iter([rows(5), (rows(6), None, np.full(6, 3.0)), (rows(2),)]))
    assert (stream.n_rows, stream.total_weight) == (28, 15 + 5 + 18 + 2)
    with pytest.raises(face.CoresetError, match="iterator"):
        stream.partial_fit(iter([rows(5)]), sample_weight=np.ones(5))
    whole = face.stream(size=10, leaf_size=40, random_state=0)
    whole.partial_fit(rows(15)).partial_fit(rows(5))
    whole.partial_fit(rows(6), sample_weight=np.full(6, 3.0)).partial_fit(rows(2))
    assert stream.coreset().equals(whole.coreset())
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
