"""`CoresetStream`: the sequence of rows decides, whatever brings them and whatever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from tests.acceptance.face import (
    CoresetStream,
    CoresetTree,
    create_tree,
    errors,
    stream as make_stream,
)

N = 1500


def data(n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 3)) * rng.lognormal(size=(n, 1))).astype(np.float32)
    y = np.array(["no", "perhaps"])[rng.integers(0, 2, n)]
    return X, y, rng.integers(0, 3, n) * rng.random(n)


def made(**options: Any) -> CoresetStream:
    given_options: dict[str, Any] = {"size": 20, "leaf_size": 90, "random_state": 3, **options}
    return make_stream(**given_options)


WHOLE = made().partial_fit(*data()).coreset()


# --- the sequence of rows decides ----------------------------------------------------------


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
    for n in (1, 17, 70, 90, 280):
        batches = ((X[i : i + n], y[i : i + n], w[i : i + n]) for i in range(0, N, n))
        assert made().partial_fit(batches).coreset().equals(WHOLE)
    assert made().partial_fit(iter([X])).n_rows == N
    with pytest.raises(errors.InvalidInputError, match="iterator of batches"):
        made().partial_fit(iter([X]), y)


@pytest.mark.parametrize("options", [{}, {"size": 4, "leaf_size": 12}])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_partial_fit__does_not_hold_or_change_what_it_was_given(
    form: Any, options: dict[str, Any]
) -> None:
    """Neither in rows that wait, nor in small leaves, which may be kept as they are."""
    X, y, w = data(100)
    rows, w = form(X), w + 1.0
    expected = made(**options).partial_fit(rows.copy(), y, w.copy()).rows()
    stream = made(**options).partial_fit(rows, y, w)
    values = rows.data if sp.issparse(rows) else rows
    values[:] = np.nan
    w[:] = 0
    assert stream.rows().equals(expected)
    assert stream.total_weight > 0


# --- what it promises ----------------------------------------------------------------------


def named(n: int = 40, columns: str = "abc") -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(n).normal(size=(n, 3)), columns=list(columns))


def test_columns__are_those_of_the_first_rows_that_have_any(tmp_path: Path) -> None:
    stream = make_stream(size=20, random_state=0, store=tmp_path / "s")
    tree = create_tree(tmp_path / "t", size=20, random_state=0)
    for kept in (stream, tree):
        kept.partial_fit(named().to_numpy())
        with pytest.warns(
            errors.CoresetWarning, match=r"columns \['a', 'b', 'c'\], and .* had no names"
        ):
            kept.partial_fit(named())
        kept.partial_fit(named()).partial_fit(named().to_numpy())  # without further words
    for kept in (
        stream,
        tree,
        CoresetStream.load(tmp_path / "s"),
        CoresetTree.open(tmp_path / "t"),
    ):
        for other in (named(columns="bac"), named(columns="abd")):
            with pytest.raises(errors.InvalidInputError, match="select these, in this order"):
                kept.partial_fit(other)
        assert kept.coreset().provenance["columns"] == ("a", "b", "c")


# --- bad input: nothing is lost, nothing counted ------------------------------------------


def _bad(**changes: Any) -> tuple[Any, Any, Any]:
    X, y, w = data(200, 1)
    return changes.get("X", X), changes.get("y", y), changes.get("w", w)


NAN = data(200, 1)[0]
NAN[150, 1] = np.nan


@pytest.mark.parametrize(
    ("batch", "match"),
    [
        (_bad(X=np.ones((200, 4), dtype="f4")), "X has 4 features instead of 3"),
        (_bad(X=np.ones((200, 3))), "X is float64 instead of float32"),
        (_bad(X=sp.csr_array(np.ones((200, 3), dtype="f4"))), "X is sparse"),
        (_bad(X=NAN), "X contains NaN in column 1 at row 150"),
        (_bad(y=None), "y is missing instead of given"),
        (_bad(y=np.arange(200)), "y holds integers instead of text"),
        (_bad(w=np.full(200, -1.0)), "sample_weight is -1.0 at row 0"),
        (_bad(y=np.zeros(3)), "y has"),
    ],
)
def test_partial_fit__a_bad_batch_changes_nothing(batch: Any, match: str, tmp_path: Path) -> None:
    X, y, w = data()
    for options in ({}, {"store": tmp_path / "s"}):
        stream = made(**options).partial_fit(X[:1000], y[:1000], w[:1000])
        with pytest.raises(errors.InvalidInputError, match=match):
            stream.partial_fit(*batch)
        assert stream.n_rows == 1000
        assert stream.partial_fit(X[1000:], y[1000:], w[1000:]).coreset().equals(WHOLE)


def test_partial_fit__out_of_core_says_what_was_taken() -> None:
    X = data()[0].astype(float)
    X[1100, 0] = np.inf
    stream = made()
    with pytest.raises(errors.InvalidInputError, match="at row 1100"):
        stream.partial_fit(da.from_array(X, chunks=(500, 3)))
    assert stream.n_rows == 1000
    X[1100, 0] = 0.0
    assert stream.partial_fit(X[1000:]).coreset().equals(made().partial_fit(X).coreset())


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
    with pytest.raises(errors.StoreError, match="another writer has changed it"):
        stream.save()
    loaded.save(tmp_path / "copy")
    assert CoresetStream.load(tmp_path / "copy").coreset().equals(WHOLE)


def test_save__refuses_what_is_there(tmp_path: Path) -> None:
    stream = made().partial_fit(data()[0])
    with pytest.raises(errors.InvalidInputError, match="never saved"):
        stream.save()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    stream.save(tmp_path / "s")
    with pytest.raises(errors.StoreError, match="load goes on with a stream"):
        made(store=tmp_path / "s")
    with pytest.raises(errors.StoreError):
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
    with pytest.raises(errors.StoreError, match="another writer"):
        stream.partial_fit(X[:10], y[:10], w[:10])
    assert stream.n_rows == 710
