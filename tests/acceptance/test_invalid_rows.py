"""The first row that cannot be used is named, by its number in all the data.

And what looks bad but is ordinary: constant data, fewer rows than `size`, weights of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from tests.acceptance import face
from tests.acceptance.tools.refusals import refused
from tests.pairs import each, pairs

N, D, CHUNK = 900, 3, 150
X = np.random.default_rng(0).normal(size=(N, D))
CLASSES = (X[:, 1] > 0).astype(int)
WAYS = [face.Draw(), face.Draw(passes=2), face.Draw("multinomial", 2), face.MergeReduce()]


def in_memory(array: Any) -> Any:
    return array


def by_column(array: Any) -> Any:
    return np.asfortranarray(array)


def known(array: Any) -> Any:
    return da.from_array(array, chunks=(CHUNK, *array.shape[1:]))


def unknown(array: Any) -> Any:
    """Chunks of unknown sizes."""
    return known(array)[da.ones(len(array), chunks=CHUNK, dtype=bool)]


def as_frame(array: Any) -> Any:
    frame = pd.DataFrame(array) if array.ndim == 2 else pd.Series(array)
    return dd.from_pandas(frame, npartitions=6, sort=False)


def stored(array: Any) -> Any:
    return zarr.array(array, chunks=(100, *array.shape[1:]))


def sparse(array: Any) -> Any:
    return sp.csr_array(array)


Form = Callable[[Any], Any]
FORMS: list[Form] = [in_memory, known, unknown, as_frame]


# --- rows that are not finite ------------------------------------------------------------


@pairs(
    form=[*FORMS, by_column, stored, sparse],
    draw=WAYS,
    method=["lightweight", face.StrongKMeans(3), "svm"],
    bad=[("f2", np.nan), ("f4", np.inf), ("f8", -np.inf)],
)
def test_build__first_bad_row_is_named(
    form: Form, draw: Any, method: Any, bad: tuple[str, float]
) -> None:
    dtype, value = bad
    rows = X.astype("f4" if form is sparse else dtype)  # SciPy has no sparse rows of two bytes
    rows[[700, 412], [0, 2]] = value
    beside = in_memory if form is sparse else form
    found = "NaN" if np.isnan(value) else f"infinity ({value})"
    with refused("X", f"X contains {found} in column 2 at row 412", "on_invalid=", kind=ValueError):
        face.build(form(rows), beside(CLASSES), method=method, size=30, draw=draw)


@pairs(form=[*FORMS, by_column], draw=WAYS, size=[10, N], dtype=["f4", "f8"])
@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_build__bad_rows_dropped_and_indices_stay(
    form: Form, draw: Any, size: int, dtype: str
) -> None:
    bad = X.astype(dtype)
    bad[:335] = np.nan  # two blocks and a part of one
    bad[570, 0] = -np.inf
    found = face.build(form(bad), size=size, on_invalid="drop", random_state=0, draw=draw)
    assert found.indices.min() >= 335
    assert 570 not in found.indices
    np.testing.assert_array_equal(found.points, bad[found.indices])
    assert found.provenance["n_dropped"] == 336
    assert found.provenance["n"] == N - 336
    assert len(found) == N - 336 or size == 10


@pairs(form=FORMS, draw=WAYS, size=[10, N])
def test_build__no_row_that_is_finite_or_has_a_weight(form: Form, draw: Any, size: int) -> None:
    with refused("X", f"none of the {N} rows of X is finite"):
        face.build(form(X * np.nan), size=size, on_invalid="drop", draw=draw)
    with refused("sample_weight", "sample_weight is zero on every row"):
        face.build(form(X), sample_weight=form(np.zeros(N)), size=size, draw=draw)


@each(name=["CoresetKMeans", "CoresetSVC", "CoresetRidge", "MaxMarginClassifier",
            "CoresetKernelClassifier"], form=[in_memory, known])  # fmt: skip
def test_fit__names_the_row(name: str, form: Form) -> None:
    bad = X.copy()
    bad[[700, 412], [0, 2]] = np.nan
    with refused("X", "at row 412"):
        getattr(face.estimators, name)().fit(form(bad), CLASSES)


@pytest.mark.parametrize("divergence", ["kl", "itakura_saito"])
def test_build__rows_outside_the_domain_are_named(divergence: str) -> None:
    bad = np.abs(X) + 0.1
    bad[[500, 240], 1] = -0.5
    for method in (face.LightweightBregman(divergence), face.StrongBregman(3, divergence)):
        with refused("X", "240"):
            face.build(known(bad), method=method, size=20)


# --- lengths that only the blocks know ---------------------------------------------------


@pairs(draw=WAYS, size=[10, N], name=["y", "sample_weight"])
def test_build__lengths_differ_in_a_block(name: str, size: int, draw: Any) -> None:
    short = known(np.arange(N) != 350)
    sizes = (CHUNK, CHUNK, CHUNK - 1, CHUNK, CHUNK, CHUNK)
    for beside in (da.ones(N, chunks=CHUNK)[short], da.ones(N - 1, chunks=(sizes,))):
        with refused(name, f"{name} has shape (149,) in block ", "(150,)"):
            face.build(unknown(X), size=size, **{name: beside}, draw=draw)


def test_build__unknown_sizes_and_known_partners() -> None:
    remedy = "call X.compute_chunk_sizes() first, or X.to_dask_array(lengths=True)"
    for rows in (unknown(X), as_frame(X)):
        for y in (np.ones(N), zarr.array(np.ones(N)), pd.Series(np.ones(N))):
            with refused("X", "rows of y", remedy):
                face.plan(rows, y, size=10)
        with refused("X", "X has 6 blocks of unknown chunk sizes", "rows of y"):
            face.plan(rows, da.ones(N, chunks=N // 2), size=10)
        with refused("X", "chunks=7, but X has unknown", remedy):
            face.plan(rows, size=10, chunks=7)
    assert face.plan(unknown(X), known(np.ones(N)), size=10) is not None


def test_build__blocks_of_another_width() -> None:
    wrong = da.map_blocks(lambda b: b[:, :2], known(X), chunks=(CHUNK, D), dtype=X.dtype)
    with refused("X", "X has shape (150, 2) in block ", "(150, 3)"):
        face.build(wrong, size=10)


# --- weights and labels ------------------------------------------------------------------

WEIGHTS: dict[str, tuple[Any, str]] = {
    "negative": (-1.0, "333"),
    "nan": (np.nan, "333"),
    "infinite": (np.inf, "333"),
    "sum of a block": (1e307, "sums to "),
    "sum of all": (3e305, "sums to "),
}


@pairs(what=WEIGHTS.values(), form=[in_memory, known], size=[10, N])
def test_build__weights_that_cannot_be_used(what: tuple[Any, str], form: Form, size: int) -> None:
    value, said = what
    u = np.ones(N)
    u[[333, 600] if said == "333" else slice(None)] = value
    with refused(None, "sample_weight", said):
        face.build(form(X), sample_weight=u, size=size)


@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_build__all_rows_are_a_copy_though_a_block_was_dropped() -> None:
    rows = X.copy()
    rows[: N // 2] = np.nan
    found = face.build(rows, size=N, chunks=N // 2, on_invalid="drop", random_state=0)
    assert len(found) == N - N // 2
    assert not np.shares_memory(np.asarray(found.points), rows)


@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
@pytest.mark.parametrize("draw", WAYS)
def test_build__all_rows_of_unknown_chunks_one_of_which_has_no_weight(draw: Any) -> None:
    u = np.ones(N)
    u[CHUNK : 2 * CHUNK] = 0.0
    found = face.build(unknown(X), sample_weight=unknown(u), size=2 * N, random_state=0, draw=draw)
    np.testing.assert_array_equal(found.weights, u[found.indices])
    assert found.weights.sum() == N - CHUNK


@pytest.mark.parametrize("method", ["svm", "logistic"])
def test_build__a_regression_target_is_no_label(method: Any) -> None:
    options: dict[str, Any] = {"size": 50, "method": method, "chunks": 60}
    rows, numbers = X[:200], np.arange(200)
    for y, said in (
        (X[:200, 0], ("at row 0", "a number and no class")),
        (np.where(numbers == 150, 0.5, numbers % 2), ("y is 0.5 at row 150", "no class")),
        *((names, ("y holds 200 different labels for 200 rows",))
          for names in (numbers, numbers.astype(str), numbers.astype(float))),
    ):  # fmt: skip
        with refused("y", *said):
            face.build(rows, y, **options)
    # Whole numbers are classes, also as floats, and few of a row each are no names.
    for labels in (numbers % 2.0, np.repeat([0, 1], 100)):
        assert len(face.build(rows, labels, **options)) == 50


# --- values whose squares overflow -------------------------------------------------------

METHODS = ["lightweight", "uniform", face.StrongKMeans(3), face.StrongBregman(3), face.Mixture(2)]
OVERFLOW = ("X is ", " at row ", "values so large squared distances overflow", "scale the columns")


def one_value(value: float) -> Any:
    rows = X.copy()
    rows[477, 1] = value
    return rows


@pairs(
    rows={"all": X * 1e200, "largest": np.sign(X) * 1.7e308, "one": one_value(-1e300),
          "least": one_value(1.5e154)},
    form=[*FORMS, sparse], draw=WAYS,
)  # fmt: skip
def test_build__values_whose_squares_overflow(rows: Any, form: Form, draw: Any) -> None:
    with refused("X", *OVERFLOW):
        face.build(form(rows), size=10, draw=draw)


@pytest.mark.parametrize("form", [in_memory, sparse])
def test_overflow__is_found_in_trees_and_predictions(form: Form, tmp_path: Path) -> None:
    large = form(one_value(1e300))
    tree = face.create_tree(tmp_path / "t", size=50, random_state=0)
    tree.append(form(X), name="a")
    before = tree.coreset()
    model = face.estimators.CoresetKMeans(2, random_state=0).fit(form(X))
    calls: list[Callable[[], Any]] = [
        lambda: tree.append(large),
        lambda: tree.replace("a", large),
        lambda: model.predict(large),
        lambda: model.transform(da.from_array(one_value(1e300), chunks=200)).compute(),
    ]
    for call in calls:
        with refused("X", *OVERFLOW):
            call()
    assert face.CoresetTree.open(tmp_path / "t").version == tree.version == 1
    assert face.CoresetTree.open(tmp_path / "t").coreset().equals(before)


@each(method=METHODS, draw=[face.Draw(), face.MergeReduce()])
def test_build__scale_below_the_bound_changes_no_draw(method: Any, draw: Any) -> None:
    """A power of two changes no digit: the largest that float32 holds, and far above it."""
    forms: list[Any] = [(np.float32, 2.0**120), (np.float64, 2.0**400)]
    for dtype, scale in forms:
        rows = X.astype(dtype)
        options: dict[str, Any] = {"size": 50, "method": method, "draw": draw, "random_state": 0}
        plain, large = (face.build(one, **options) for one in (rows, rows * dtype(scale)))
        assert large.points.dtype == dtype
        np.testing.assert_array_equal(large.indices, plain.indices)
        np.testing.assert_allclose(large.weights, plain.weights, rtol=1e-9)


def test_build__weights_that_make_squares_overflow_are_blamed() -> None:
    rows, heavy = X * 1e100, np.full(N, 1e120)
    with refused("X", "sample_weight sums to 9e+122, and weighted"):
        face.build(rows, sample_weight=heavy, size=50)
    stream = face.stream(method="lightweight", size=50, leaf_size=400).partial_fit(rows)
    with refused("X", "scale sample_weight down"):
        stream.partial_fit(rows, sample_weight=heavy)
    assert stream.coreset().provenance["n"] == N
    # Without a weight a row may hold any number, and is never drawn.
    weight = (np.arange(N) != 477).astype(float)
    found = face.build(one_value(1e300), sample_weight=weight, size=50, random_state=0)
    assert 477 not in found.indices
    assert np.isfinite(found.weights).all()


# --- ordinary, though it looks bad -------------------------------------------------------


@pairs(form=FORMS, draw=WAYS, size=[N, N + 1, 10**9], method=["lightweight", "uniform"])
def test_build__size_not_below_n_returns_everything(
    form: Form, draw: Any, size: int, method: str
) -> None:
    weight = np.linspace(0, 3, N)
    options: dict[str, Any] = {"size": size, "method": method, "draw": draw}
    with pytest.warns(
        face.CoresetWarning, match=f"size={size} is not below .*, {N}\\. .*own weight"
    ):
        found = face.build(form(X), form(np.arange(N)), sample_weight=form(weight), **options)
    np.testing.assert_array_equal(found.points, X)
    np.testing.assert_array_equal(found.weights, weight)
    np.testing.assert_array_equal(found.indices, np.arange(N))
    np.testing.assert_array_equal(found.labels, np.arange(N))
    assert found.provenance["m"] == found.provenance["n"] == N


@pairs(form=FORMS, draw=WAYS, value=[0.0, 1e6, 1e100])
def test_build__constant_data_is_sampled_uniformly(form: Form, draw: Any, value: float) -> None:
    found = face.build(form(np.full((N, D), value)), size=30, random_state=0, draw=draw)
    assert found.total_weight == pytest.approx(N)
    if draw.sampling == "systematic":
        np.testing.assert_allclose(found.weights, N / 30)


@pytest.mark.parametrize("form", [in_memory, sparse])
def test_kernels__warn_of_columns_of_other_scales(form: Form) -> None:
    rows, model = form(abs(X[:120]) * [1, 1, 1e6]), face.estimators.CoresetKernelClassifier(size=30)
    with pytest.warns(face.CoresetWarning, match="features are not scaled"):
        model.fit(rows, X[:120, 0] > 0)
