"""`CoresetStream`: the sequence of rows decides, whatever brings them and whatever dies."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings

from daskcoreset import CoresetStream, CoresetTree, StrongKMeans, build
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.stream import EARLY_LEAVES, is_reduced, lowest_level
from daskcoreset.core.errors import (
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
    StoreError,
)
from daskcoreset.core.points import WeightedPoints
from daskcoreset.testing import assert_mean
from tests.tools import killing
from tests.tools.strategies import chunks_of

N = 1500


def data(n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 3)) * rng.lognormal(size=(n, 1))).astype(np.float32)
    y = np.array(["no", "perhaps"])[rng.integers(0, 2, n)]
    return X, y, rng.integers(0, 3, n) * rng.random(n)


def made(**options: Any) -> CoresetStream:
    given_options: dict[str, Any] = {"size": 20, "leaf_size": 90, "random_state": 3, **options}
    return CoresetStream(**given_options)


WHOLE = made().partial_fit(*data()).coreset()


# --- the sequence of rows decides ----------------------------------------------------------


@given(cuts=chunks_of(N, max_chunks=12, empty=False))
@settings(max_examples=25)
def test_partial_fit__the_cut_into_batches_changes_nothing(cuts: tuple[int, ...]) -> None:
    X, y, w = data()
    stream, start = made(), 0
    for rows in cuts:
        part = slice(start, start + rows)
        stream.partial_fit(X[part], y[part], w[part])
        start += rows
        stream.coreset() if start % 3 == 0 and w[:start].any() else None  # changes nothing
    assert stream.coreset().equals(WHOLE)
    assert stream.n_rows == len(stream) == N


def test_partial_fit__row_by_row() -> None:
    X, y, w = data(400)
    stream = made()
    for i in range(400):
        stream.partial_fit(X[i : i + 1], y[i : i + 1], w[i : i + 1])
        assert len(stream._state.waiting.parts) <= 33  # 31 of one row, two of 32
    assert stream.coreset().equals(made().partial_fit(X, y, w).coreset())


def test_partial_fit__arrays_as_before_are_checked_as_the_first() -> None:
    X, _, _ = data(400)
    one, other = made(), made()
    for start in range(0, 400, 50):
        one.partial_fit(X[start : start + 50])
        other.partial_fit(X[start : start + 50], sample_weight=np.ones(50))
    assert one.coreset().equals(other.coreset())
    for wrong, match in (
        (X[:, :2], "2 features, and the rows before it have 3"),
        (X.astype(float), "float64, and the rows before it are float32"),
        (X[0], "dimension"),
        (np.where(np.arange(400)[:, np.newaxis] == 7, np.nan, X), "at row 7"),
    ):
        array = wrong.astype(np.float32) if "row 7" in match else wrong
        with pytest.raises(InvalidInputError, match=match):
            one.partial_fit(array)
    assert one.partial_fit(X[:0]).partial_fit(X.astype(">f4")).n_rows == 800
    dropping = made(on_invalid="drop").partial_fit(X)
    dropping.partial_fit(np.where(np.arange(400)[:, np.newaxis] < 5, np.nan, X).astype("f4"))
    assert (dropping.n_rows, dropping.n_dropped) == (800, 5)


def test_partial_fit__out_of_core_and_iterators(tmp_path: Path) -> None:
    X, y, w = data()
    stores = {}
    for name, part in (("X", X), ("w", w)):
        stores[name] = zarr.create_array(
            tmp_path / name, shape=part.shape, chunks=(200, *part.shape[1:]), dtype=part.dtype
        )
        stores[name][:] = part
    plain = made().partial_fit(X, None, w).coreset()
    lazy = [da.from_array(part, chunks=(170, *part.shape[1:])) for part in (X, y, w)]
    assert made().partial_fit(stores["X"], None, stores["w"]).coreset().equals(plain)
    assert made().partial_fit(*lazy).coreset().equals(WHOLE)
    batches = ((X[i : i + 70], y[i : i + 70], w[i : i + 70]) for i in range(0, N, 70))
    assert made().partial_fit(batches).coreset().equals(WHOLE)
    assert made().partial_fit(iter([X])).n_rows == N
    with pytest.raises(InvalidInputError, match="iterator of batches"):
        made().partial_fit(iter([X]), y)


def test_partial_fit__does_not_hold_or_change_what_it_was_given() -> None:
    X, y, w = data(100)
    stream = made().partial_fit(X, y, w)
    X[:] = np.nan
    w[:] = 0
    assert np.isfinite(stream.coreset().points).all()
    assert stream.total_weight > 0


class First(Reducer):
    """The first rows, as a view of what it is given."""

    def reduce(self, points: WeightedPoints, size: int, rng: np.random.Generator) -> WeightedPoints:
        del rng
        return points.take(slice(size))


@pytest.mark.parametrize("method", ["uniform", "lightweight", First()])
@pytest.mark.parametrize("sparse", [False, True])
def test_partial_fit__leaves_that_are_left_as_they_are_hold_nothing_of_a_batch(
    method: Any, sparse: bool
) -> None:
    """Of twelve rows no sixteen candidates can be drawn: all of them stay."""
    X, _, w = data(150)
    w += 1.0
    streams = []
    for changes in (False, True):
        stream = CoresetStream(method, 4, leaf_size=12, random_state=0)
        for start in (0, 50, 100):
            part: Any = X[start : start + 50].copy()
            part, weights = sp.csr_array(part) if sparse else part, w[start : start + 50].copy()
            stream.partial_fit(part, sample_weight=weights)
            if changes:
                values = part.data if sparse else part
                values[:] = weights[:] = 77.0
        streams.append(stream)
    assert streams[0].rows().equals(streams[1].rows())


# --- what it promises ----------------------------------------------------------------------


def test_stream__memory_is_logarithmic_and_one_coreset_a_level() -> None:
    X = np.random.default_rng(0).normal(size=(90 * 130, 2))
    stream = made()
    for start in range(0, len(X), 90):
        stream.partial_fit(X[start : start + 90])
        leaves = stream.n_rows // 90
        assert len(set(stream.levels)) == len(stream.levels) == leaves.bit_count()
        candidates = 7 * 80 if leaves > EARLY_LEAVES else 0  # of leaves that wait for an eighth
        assert stream.n_held <= 40 * (1.5 * np.log2(leaves) + 1) + candidates
    assert stream.coreset().provenance["levels"] == 8


@pytest.mark.parametrize("duplicate", [copy, deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies__share_no_memory_for_further_rows(
    duplicate: Callable[[CoresetStream], CoresetStream],
) -> None:
    """Two threads that feed one each may look for places there at the same time."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    stream = made().partial_fit(X[:20])
    assert stream._state.waiting.room is not None
    other = duplicate(stream)
    assert other._state.waiting.room is None
    assert np.array_equal(other.partial_fit(X[30:]).rows().points, np.delete(X, slice(20, 30), 0))
    assert np.array_equal(stream.partial_fit(X[20:]).rows().points, X)


def test_stream__late_leaves_are_thinned_and_four_then_eight_reduced_together() -> None:
    X, y, w = data(60 * (EARLY_LEAVES + 11))
    w += 1.0
    one = made(size=4, leaf_size=60).partial_fit(X, y, w)
    other = made(size=4, leaf_size=60)
    for start in range(0, len(X), 130):
        batch = slice(start, start + 130)
        other.partial_fit(X[batch], y[batch], w[batch])

    # Of 15 leaves 8 were reduced to 8 rows, by four, and the others thinned to 16 candidates each.
    assert [lowest_level(leaf) for leaf in range(17)] == [0] * 4 + [2] * 4 + [3] * 9
    assert [*filter(is_reduced, range(10))] == [0, 2, 3, 5, 7, 9]
    assert one.levels == (3, 2, 1, 0)
    assert [len(part) for part in one._state.parts] == [8, 64, 32, 16]
    assert one.rows().equals(other.rows())
    assert one.coreset().equals(other.coreset())
    assert len(one.partial_fit(X[:60], y[:60], w[:60])._state.parts) == 1


@pytest.mark.parametrize("bad", [0, 29, 30, 119, 120, 389, 399])
def test_partial_fit__a_bad_row_in_any_leaf_of_an_array_refuses_all_of_it(bad: int) -> None:
    X = data()[0]
    stream, other = made().partial_fit(X[:60]), made().partial_fit(X[:60])
    batch = X[60:460].copy()
    batch[bad, 1] = np.nan
    with pytest.raises(InvalidInputError, match=rf"at row {bad}\b"):
        stream.partial_fit(batch)
    assert stream.n_rows == 60
    assert stream.rows().equals(other.rows())
    for kept in (stream, other):
        kept.partial_fit(X[60:460]).partial_fit(X[460:])
    assert stream.rows().equals(other.rows())
    assert stream.rows().equals(made().partial_fit(X).rows())


@pytest.mark.statistical
def test_coreset__is_unbiased() -> None:
    """Total weight and two costs at seven leaves and a rest; fails by chance at 1e-6."""
    X, y, w = data(700)

    def costs(X: Any, y: Any, w: Any) -> list[float]:
        return [w.sum(), w @ (X**2).sum(axis=1), w[y == "no"].sum()]

    found = []
    for seed in range(300):
        c = made(random_state=seed).partial_fit(X, y, w).coreset()
        found.append(costs(c.points, c.labels, c.weights))
    assert_mean(np.array(found), np.array(costs(X, y, w)))


@pytest.mark.statistical
def test_coreset__of_a_permuted_stream_is_as_good() -> None:
    """Mean squared errors of sorted and of permuted rows within a factor of 2; 80 seeds.

    The ratio of two such means is F-distributed, if at all, with 80 degrees of freedom each
    for a single query; the probability of 3 is below 1e-6.
    """
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(4000, 1)) ** 3, axis=0) * np.ones(2)
    permuted = X[rng.permutation(len(X))]
    true = (X**2).sum()

    def error(rows: Any) -> float:
        cs = (
            made(size=50, random_state=s, leaf_size=250).partial_fit(rows).coreset()
            for s in range(80)
        )
        return float(np.mean([(c.weights @ (c.points**2).sum(axis=1) / true - 1) ** 2 for c in cs]))

    one, other = error(X), error(permuted)
    assert 1 / 3 < one / other < 3


def test_coreset__rows_belong_together_and_provenance() -> None:
    X, y, w = data()
    c = WHOLE
    assert (c.points == X[c.indices]).all()
    assert (c.labels == y[c.indices]).all()
    assert len(c) == 20
    said = c.provenance
    assert (said["n"], said["m"], said["d"], said["seed"], said["strategy"]) == (
        N,
        20,
        3,
        3,
        "stream",
    )
    assert (said["leaf_size"], said["inner_size"], said["n_dropped"]) == (90, 40, 0)
    np.testing.assert_allclose(said["total_weight"], w.sum())
    exact = made().partial_fit(X, y, w).coreset(normalize=True)
    np.testing.assert_allclose(exact.weights.sum(), w.sum())


def test_coreset__few_rows_come_back_as_they_are() -> None:
    X, y, w = data(15)
    c = made().partial_fit(X, y, w).coreset()
    assert (c.weights == w).all()
    assert c.indices.tolist() == list(range(15))


def named(n: int = 40, columns: str = "abc") -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(n).normal(size=(n, 3)), columns=list(columns))


def test_columns__are_those_of_the_first_rows_that_have_any(tmp_path: Path) -> None:
    stream = CoresetStream(size=20, random_state=0, store=tmp_path / "s")
    tree = CoresetTree.create(tmp_path / "t", size=20, random_state=0)
    for kept in (stream, tree):
        kept.partial_fit(named().to_numpy())
        with pytest.warns(CoresetWarning, match=r"columns \['a', 'b', 'c'\], and .* had no names"):
            kept.partial_fit(named())
        kept.partial_fit(named()).partial_fit(named().to_numpy())  # without further words
    for kept in (
        stream,
        tree,
        CoresetStream.load(tmp_path / "s"),
        CoresetTree.open(tmp_path / "t"),
    ):
        for other in (named(columns="bac"), named(columns="abd")):
            with pytest.raises(InvalidInputError, match="select these, in this order"):
                kept.partial_fit(other)
        assert kept.coreset().provenance["columns"] == ("a", "b", "c")


def test_columns__of_a_view_of_files_with_and_without_names(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", named().to_numpy())
    files = [tmp_path / "a.npy", tmp_path / "b.parquet"]
    named().to_parquet(files[1])
    with pytest.warns(CoresetWarning, match="had no names"):
        view = CoresetTree.follow(files, tmp_path / "view", size=20, random_state=0)
    assert view.coreset().provenance["columns"] == ("a", "b", "c")
    named(columns="bac").to_parquet(tmp_path / "c.parquet")
    with pytest.raises(InvalidInputError, match=r"c\.parquet: X has the columns \['b', 'a', 'c'\]"):
        view.refresh([*files, tmp_path / "c.parquet"])


def test_coreset__columns_and_dropped_rows() -> None:
    frame = pd.DataFrame(data()[0].astype(float), columns=["a", "b", "c"])
    frame.iloc[[5, 800]] = np.nan
    stream = made(on_invalid="drop").partial_fit(frame[:700]).partial_fit(frame[700:])
    c = stream.coreset()
    assert c.provenance["columns"] == ("a", "b", "c")
    assert (stream.n_rows, stream.n_dropped) == (N, 2)
    assert (c.points == frame.to_numpy()[c.indices]).all()
    with pytest.raises(InvalidInputError, match="has the columns"):
        stream.partial_fit(frame[["b", "a", "c"]])


def test_stream__folds_repr_pickle() -> None:
    stream = made(method=StrongKMeans(3, rough="kmeans||")).partial_fit(data()[0])
    assert "kmeans: 1,500 rows seen" in repr(stream)
    table = stream._repr_html_()
    assert ">CoresetStream</caption>" in table
    for fact in ("rows seen", "1,500", "features", "kmeans"):
        assert f">{fact}</" in table
    assert "unknown" in made()._repr_html_()
    assert pickle.loads(pickle.dumps(stream)).coreset().equals(stream.coreset())
    assert bool(made())


def test_stream__sparse_and_wide_text() -> None:
    X = sp.random_array((400, 6), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = np.array(["a", "a much longer word"], dtype=object)[np.arange(400) // 395]
    one = made().partial_fit(X, y).coreset()
    two = made().partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).coreset()
    assert sp.issparse(one.points)
    assert one.equals(two)


# --- bad input: nothing is lost, nothing counted ------------------------------------------


def _bad(**changes: Any) -> tuple[Any, Any, Any]:
    X, y, w = data(200, 1)
    return changes.get("X", X), changes.get("y", y), changes.get("w", w)


NAN = data(200, 1)[0]
NAN[150, 1] = np.nan


@pytest.mark.parametrize(
    ("batch", "match"),
    [
        (_bad(X=np.ones((200, 4), dtype="f4")), "X has 4 features, and the rows before it have 3"),
        (_bad(X=np.ones((200, 3))), "X is float64, and the rows before it are float32"),
        (_bad(X=sp.csr_array(np.ones((200, 3), dtype="f4"))), "X is sparse"),
        (_bad(X=NAN), "X contains NaN in column 1 at row 150"),
        (_bad(y=None), "y is missing, and the rows before have labels"),
        (_bad(y=np.arange(200)), "y holds integers, and the labels before are text"),
        (_bad(w=np.full(200, -1.0)), "sample_weight is -1.0 at row 0"),
        (_bad(y=np.zeros(3)), "y has"),
    ],
)
def test_partial_fit__a_bad_batch_changes_nothing(batch: Any, match: str, tmp_path: Path) -> None:
    X, y, w = data()
    for options in ({}, {"store": tmp_path / "s"}):
        stream = made(**options).partial_fit(X[:1000], y[:1000], w[:1000])
        with pytest.raises(InvalidInputError, match=match):
            stream.partial_fit(*batch)
        assert stream.n_rows == 1000
        assert stream.partial_fit(X[1000:], y[1000:], w[1000:]).coreset().equals(WHOLE)


def test_partial_fit__labels_that_come_late_and_narrow_rows() -> None:
    X, y, _ = data()
    with pytest.raises(InvalidInputError, match="y is given, and the rows before have none"):
        made().partial_fit(X).partial_fit(X, y)
    wide = made().partial_fit(X.astype(float)).partial_fit(X)  # float32 fits into float64
    assert wide.coreset().points.dtype == np.float64


def test_partial_fit__out_of_core_says_what_was_taken() -> None:
    X = data()[0].astype(float)
    X[1100, 0] = np.inf
    stream = made()
    with pytest.raises(InvalidInputError, match="at row 1100"):
        stream.partial_fit(da.from_array(X, chunks=(500, 3)))
    assert stream.n_rows == 1000
    X[1100, 0] = 0.0
    assert stream.partial_fit(X[1000:]).coreset().equals(made().partial_fit(X).coreset())


def test_coreset__without_rows_or_weight() -> None:
    with pytest.raises(InvalidInputError, match="no rows yet"):
        made().coreset()
    stream = made().partial_fit(data()[0], sample_weight=np.zeros(N))
    with pytest.raises(InvalidInputError, match="zero on every row"):
        stream.coreset()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"size": 0}, InvalidInputError, "size must be at least 1"),
        ({"size": None}, InvalidTypeError, "size must be an integer"),
        ({"leaf_size": True}, InvalidTypeError, "leaf_size must be an integer"),
        ({"leaf_size": 40}, InvalidInputError, "is not above inner_size=40"),
        ({"inner_size": 10}, InvalidInputError, "inner_size=10 is below size=20"),
        ({"on_invalid": "keep"}, InvalidInputError, "on_invalid must be"),
        ({"method": "nothing"}, InvalidInputError, "unknown"),
        ({"store": "x", "save_every": 0}, InvalidInputError, "save_every must be at least 1"),
    ],
)
def test_stream__bad_arguments(options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        made(**options)


# --- saving --------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 37, 90, 1234])
def test_save__goes_on_with_the_same_bytes(tmp_path: Path, rows: int) -> None:
    X, y, w = data()
    stream = made()
    if rows:
        stream.partial_fit(X[:rows], y[:rows], w[:rows])
    stream.save(tmp_path / "s")
    loaded = CoresetStream.load(tmp_path / "s")
    assert loaded.n_rows == rows
    assert loaded.partial_fit(X[rows:], y[rows:], w[rows:]).coreset().equals(WHOLE)
    loaded.save(tmp_path / "s")  # where it came from
    assert CoresetStream.load(tmp_path / "s").coreset().equals(WHOLE)
    loaded.save()
    with pytest.raises(StoreError, match="another writer has changed it"):
        stream.save()
    loaded.save(tmp_path / "copy")
    assert CoresetStream.load(tmp_path / "copy").coreset().equals(WHOLE)


def test_save__refuses_what_is_there(tmp_path: Path) -> None:
    stream = made().partial_fit(data()[0])
    with pytest.raises(InvalidInputError, match="never saved"):
        stream.save()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    stream.save(tmp_path / "s")
    with pytest.raises(StoreError, match="load goes on with a stream"):
        made(store=tmp_path / "s")
    with pytest.raises(StoreError):
        made().save(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "file").exists()
    made().save(tmp_path / "s", overwrite=True)
    assert CoresetStream.load(tmp_path / "s").n_rows == 0


def test_store__keeps_every_batch_or_every_few(tmp_path: Path) -> None:
    X, y, w = data()
    stream = made(store=tmp_path / "s", save_every=3)
    for start in range(0, 700, 100):
        part = slice(start, start + 100)
        stream.partial_fit(X[part], y[part], w[part])
        assert CoresetStream.load(tmp_path / "s").n_rows == (start // 100 + 1) // 3 * 300
    again = CoresetStream.load(tmp_path / "s")
    for start in range(again.n_rows, N, 100):
        part = slice(start, start + 100)
        again.partial_fit(X[part], y[part], w[part])
    assert again.coreset().equals(WHOLE)
    assert len(list((tmp_path / "s" / "states").glob("0*"))) == 2
    # The one that was left behind must not overwrite what went on.
    stream.partial_fit(X[:10], y[:10], w[:10])  # not saved yet
    with pytest.raises(StoreError, match="another writer"):
        stream.partial_fit(X[:10], y[:10], w[:10])
    assert stream.n_rows == 710


def test_load__damage_and_other_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made().partial_fit(data()[0]).save(tmp_path / "s")
    states = tmp_path / "s" / "states"
    files = sorted(path for path in states.rglob("*") if path.is_file() and path.name != ".lock")
    assert len(files) > 4
    for file in files:
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(tmp_path / "s", tmp_path / "t")
        target = tmp_path / "t" / file.relative_to(tmp_path / "s")
        content = target.read_bytes()
        target.write_bytes(content[: len(content) // 2])
        with pytest.raises(StoreError):
            CoresetStream.load(tmp_path / "t")
        target.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        with pytest.raises(StoreError):
            CoresetStream.load(tmp_path / "t")
    shutil.rmtree(states)
    with pytest.raises(StoreError, match="version 1 is missing, and there is none"):
        CoresetStream.load(tmp_path / "s")
    with pytest.raises(StoreError):
        CoresetStream.load(tmp_path / "nowhere")
    for name in ("SCHEMA_VERSION", "OLDEST_VERSION"):
        monkeypatch.setattr(f"daskcoreset.constructions.tree.persistence.{name}", 3)
    with pytest.raises(StoreError, match="schema version 2 instead of 3"):
        CoresetStream.load(tmp_path / "s")


KILLED = """
import hashlib
from pathlib import Path
import numpy as np
from daskcoreset import CoresetStream

X = np.random.default_rng(0).normal(size=(600, 3))

# Compiled loops are loaded here, once, and not by every process that is killed.
CoresetStream("lightweight", 20, 90, random_state=3).partial_fit(X).coreset()

def work(path):
    if Path(path).exists():
        stream = CoresetStream.load(path)
    else:
        stream = CoresetStream("lightweight", 20, 90, random_state=3, store=path)
    for start in range(stream.n_rows, len(X), 40):
        stream.partial_fit(X[start : start + 40])

def report(path):
    import os
    os.fsync = lambda *_: None  # what is compared with need not last
    if not Path(path).exists():
        return None
    stream = CoresetStream.load(path)
    again = CoresetStream("lightweight", 20, 90, random_state=3)
    if stream.n_rows:
        again.partial_fit(X[: stream.n_rows])
        assert stream.coreset().equals(again.coreset())
    return stream.n_rows
"""


@pytest.mark.slow
@pytest.mark.parametrize("timed", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_store__a_stream_that_is_killed_ends_with_the_same_bytes(
    tmp_path: Path, timed: bool
) -> None:
    """`report` compares, after every kill, with a stream that was never killed."""
    found = killing.run(KILLED, tmp_path, seed=1, timed=timed, step=29)
    seen = [rows for rows in found["reports"] if rows is not None]
    assert found["kills"] >= (1 if timed else 3)  # how often, decides the machine
    assert seen == sorted(seen)
    assert seen[-1] == 600


def test_stream__agrees_with_a_build_from_all_rows() -> None:
    """Costs of a good size are close to those of all rows: the forms do the same."""
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    stream = CoresetStream(size=500, random_state=0).partial_fit(X).coreset()
    tree = build(X, size=500, strategy="tree", chunks=2000, random_state=0)
    true = float((X**2).sum())
    for c in (stream, tree):
        assert abs(float(c.weights @ (np.asarray(c.points) ** 2).sum(axis=1)) / true - 1) < 0.05


@pytest.mark.parametrize("place", ["notes.txt", "states/notes.txt"])
def test_save__replaces_no_folder_that_holds_anything_else(place: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    stream = CoresetStream(size=20, random_state=0, store=tmp_path / "s").partial_fit(rows)
    other = CoresetStream(size=20, random_state=1).partial_fit(rows)
    (tmp_path / "s" / place).write_text("dear")
    with pytest.raises(StoreError, match=r"also holds 'notes\.txt', so it is never overwritten"):
        other.save(tmp_path / "s", overwrite=True)
    assert (tmp_path / "s" / place).read_text() == "dear"
    assert CoresetStream.load(tmp_path / "s").n_rows == stream.n_rows

    (tmp_path / "s" / place).unlink()
    other.save(tmp_path / "s", overwrite=True)
    assert CoresetStream.load(tmp_path / "s").coreset().equals(other.coreset())
