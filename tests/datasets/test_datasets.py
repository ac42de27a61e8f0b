from __future__ import annotations

import functools
import itertools
import math
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset import datasets
from daskcoreset.core import random as randomness
from daskcoreset.core.errors import (
    DataUnavailableError,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.datasets import lazy
from daskcoreset.testing import shared_pool

if TYPE_CHECKING:
    from pathlib import Path

    from daskcoreset.core.typing import AnyArray

Arrays = tuple[da.Array, ...]
Make = Callable[..., Arrays]

ALARM = 1e-6  # false-alarm rate of every statistical test here; the seeds are fixed besides


def _benchmark(**options: Any) -> Arrays:
    return (datasets.make_benchmark(3, 5, **options),)


def _rows(make: Callable[..., Arrays]) -> Make:
    def made(**options: Any) -> Arrays:
        return make(250, 4, **({"random_state": 0} | options))

    return made


def _pathological(**options: Any) -> Arrays:
    return datasets.make_svm_pathological(250, **({"random_state": 0} | options))


def _outliers(**options: Any) -> Arrays:
    options = {"random_state": 0, "outliers": 0.1, "dof": 3.0} | options
    return datasets.make_mixture(250, 4, **options)


def _lower_bound(**options: Any) -> Arrays:
    return datasets.make_svm_lower_bound(10, **options)


RANDOM: dict[str, Make] = {
    "mixture": _rows(datasets.make_mixture),
    "outliers": _outliers,
    "imbalanced": _rows(datasets.make_imbalanced),
    "heavy-tailed": _rows(datasets.make_heavy_tailed),
    "near-mean": _rows(datasets.make_near_mean),
    "geometric": _rows(datasets.make_geometric),
    "giants": _rows(datasets.make_giants),
    "hidden": _rows(functools.partial(datasets.make_hidden, hidden_rows=5)),
    "svm-pathological": _pathological,
}
ALL = RANDOM | {"benchmark": _benchmark, "svm-lower-bound": _lower_bound}

every_generator = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
every_random_generator = pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM.keys())


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("something was computed while the arrays were defined")


# What all generators promise


@every_generator
def test_definition__computes_nothing_and_has_one_task_per_block(make: Make) -> None:
    with dask.config.set(scheduler=_refuse):
        arrays = make(chunks=100)
    for array in arrays:
        assert array.npartitions == 3
        assert len(dict(array.__dask_graph__())) == 3


@every_generator
def test_blocks__fuse_with_blockwise_work(make: Make) -> None:
    points = make(chunks=100)[0]
    (optimised,) = dask.optimize(points * 2 + 1)
    assert len(dict(optimised.__dask_graph__())) == 3


@every_generator
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks__are_what_the_array_announces(make: Make, dtype: str) -> None:
    for array in make(chunks=100, dtype=dtype):
        value = array.compute(scheduler="synchronous")
        assert isinstance(value, np.ndarray)
        assert (value.shape, value.dtype) == (array.shape, array.dtype)
        assert len(value) == len(make()[0])
        assert np.isfinite(value).all()
    assert make(dtype=dtype)[0].dtype == np.dtype(dtype)
    assert make()[0].dtype == np.float32


@every_generator
def test_bits__are_the_same_on_every_scheduler(make: Make) -> None:
    arrays = make(chunks=100)
    expected = dask.compute(*arrays, scheduler="synchronous")
    found = dask.compute(*arrays, scheduler="threads", num_workers=2)
    for one, other in zip(expected, found, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.slow
def test_bits__are_the_same_in_processes() -> None:
    arrays = [array for make in ALL.values() for array in make(chunks=100)]
    expected = dask.compute(*arrays, scheduler="synchronous")
    found = dask.compute(*arrays, scheduler="processes", pool=shared_pool())
    for one, other in zip(expected, found, strict=True):
        assert one.tobytes() == other.tobytes()


@every_generator
def test_block__read_alone_equals_its_part_of_the_whole(make: Make) -> None:
    for array in make(chunks=100):
        whole = array.compute(scheduler="synchronous")
        alone = array.blocks[1].compute(scheduler="synchronous")
        np.testing.assert_array_equal(alone, whole[100:200])


@every_generator
def test_array__pickles_and_has_a_deterministic_name(make: Make) -> None:
    for array, again in zip(make(chunks=100), make(chunks=100), strict=True):
        assert array.name == again.name
        copy = pickle.loads(pickle.dumps(array))
        assert copy.name == array.name
        np.testing.assert_array_equal(copy.compute(), array.compute())
    assert make(chunks=100)[0].name != make(chunks=50)[0].name


@every_random_generator
def test_random_state__changes_points_and_names(make: Make) -> None:
    one, other = make(random_state=1)[0], make(random_state=2)[0]
    assert one.name != other.name
    assert not np.array_equal(one.compute(), other.compute())


@every_random_generator
def test_random_state__none_is_drawn_once(make: Make) -> None:
    points = make(random_state=None)[0]
    np.testing.assert_array_equal(points.compute(), points.compute())
    assert points.name != make(random_state=None)[0].name


def test_block_stream__differs_from_the_streams_of_a_build() -> None:
    addresses = itertools.product(lazy.Part, range(3))
    ours = {lazy.block_stream(0, part, block).integers(2**63) for part, block in addresses}
    theirs = {
        randomness.stream(0, stage, block).integers(2**63)
        for stage, block in itertools.product(randomness.Stage, range(3))
    }
    assert len(ours) == 9
    assert not ours & theirs


@given(n=st.integers(1, 60), chunks=st.integers(1, 70), d=st.integers(1, 4))
def test_chunks__cover_the_rows(n: int, chunks: int, d: int) -> None:
    points, labels = datasets.make_mixture(n, d, chunks=chunks, random_state=0)
    rows = min(n, chunks)
    assert points.chunks == ((rows,) * (n // rows) + ((n % rows,) if n % rows else ()), (d,))
    assert labels.chunks == points.chunks[:1]
    assert points.compute(scheduler="synchronous").shape == (n, d)


def test_chunks__auto_means_about_16_mib() -> None:
    points, _ = datasets.make_mixture(10**7, 20, random_state=0)
    assert points.chunks[0][0] * 20 * 4 == pytest.approx(2**24, rel=1e-4)
    single = np.dtype("float32")
    assert lazy.rows_per_block("auto", n=10, d=10**8, dtype=single) == 1
    assert lazy.rows_per_block("auto", n=10, d=1, dtype=single) == 10


# Mixtures


@pytest.mark.statistical
def test_mixture__clusters_have_the_shares_asked_for() -> None:
    _, labels = datasets.make_mixture(
        100_000, 1, n_clusters=5, imbalance=16, chunks=7_000, random_state=3
    )
    shares = 16.0 ** -np.linspace(0, 1, 5)
    counts = np.bincount(labels.compute(), minlength=5)
    assert scipy.stats.chisquare(counts, 100_000 * shares / shares.sum()).pvalue > ALARM


@pytest.mark.statistical
def test_mixture__rows_scatter_normally_about_their_centre() -> None:
    X, y = datasets.make_mixture(
        20_000, 3, n_clusters=2, center_scale=0, spread=2.5, offset=7, chunks=3_000, random_state=1
    )
    points = (X.compute().astype(np.float64) - 7) / 2.5
    assert scipy.stats.kstest(points.ravel(), "norm").pvalue > ALARM
    # Columns and neighbouring rows are independent: correlations are about N(0, 1/n).
    limit = scipy.stats.norm.isf(ALARM / 12) / math.sqrt(20_000)
    correlations = np.corrcoef(points.T)[np.triu_indices(3, 1)]
    assert (np.abs(correlations) < limit).all()
    assert (np.abs((points[1:] * points[:-1]).mean(axis=0)) < limit).all()
    assert set(y.compute()) == {0, 1}


def test_mixture__blocks_do_not_repeat_each_other() -> None:
    points = datasets.make_mixture(3_000, 2, chunks=1_000, random_state=0)[0].compute()
    assert len(np.unique(points, axis=0)) == 3_000


@pytest.mark.statistical
def test_mixture__outliers_are_as_many_and_as_far_as_asked_for() -> None:
    X, y = datasets.make_mixture(
        50_000, 4, outliers=0.02, outlier_scale=30, center_scale=2, chunks=9_000, random_state=0
    )
    points, labels = dask.compute(X, y)
    far = labels == -1
    assert scipy.stats.binomtest(int(far.sum()), 50_000, 0.02).pvalue > ALARM
    assert scipy.stats.kstest(points[far].ravel() / 60, "norm").pvalue > ALARM


@pytest.mark.statistical
def test_mixture__dof_gives_students_t() -> None:
    X, _ = datasets.make_heavy_tailed(20_000, 3, n_clusters=1, dof=2.5, random_state=5)
    centered = datasets.make_mixture(20_000, 3, n_clusters=1, center_scale=0, dof=2.5)[0].compute()
    # The squared length of a multivariate t vector over d follows F(d, dof).
    radii = (centered.astype(np.float64) ** 2).sum(axis=1) / 3
    assert scipy.stats.kstest(radii, scipy.stats.f(3, 2.5).cdf).pvalue > ALARM
    assert X.shape == (20_000, 3)


def test_mixture__offset_is_rounded_once() -> None:
    options: dict[str, Any] = {"n_clusters": 3, "offset": 1e6, "random_state": 0}
    single = datasets.make_mixture(1_000, 2, **options)[0].compute()
    assert np.abs(single - 1e6).max() < 100
    # float32 has a spacing of 1/16 at 1e6, and no rounding leaves more than half of it behind.
    centers = 10 * lazy.block_stream(0, lazy.Part.CENTERS).standard_normal((3, 2)) + 1e6
    labels = datasets.make_mixture(1_000, 2, **options)[1].compute()
    noise = lazy.block_stream(0, lazy.Part.POINTS).standard_normal((1_000, 2), dtype=np.float32)
    assert np.abs(single - (noise + centers[labels])).max() <= 1 / 32


def test_mixture__unshuffled_rows_are_sorted_by_cluster() -> None:
    _, labels = datasets.make_mixture(1_000, 2, n_clusters=4, shuffle=False, chunks=300)
    np.testing.assert_array_equal(labels.compute(), np.repeat([0, 1, 2, 3], 250))


@pytest.mark.statistical
def test_imbalanced__smallest_cluster_is_rare() -> None:
    labels = datasets.make_imbalanced(200_000, 1, random_state=0)[1].compute()
    counts = np.bincount(labels, minlength=60)
    shares = 1000.0 ** -np.linspace(0, 1, 60)
    assert scipy.stats.chisquare(counts, 200_000 * shares / shares.sum()).pvalue > ALARM


@pytest.mark.statistical
def test_near_mean__lightweight_scores_overlook_the_small_clusters() -> None:
    X, y = datasets.make_near_mean(100_000, 10, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    distances = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    chances = 0.5 / len(points) + 0.5 * distances / distances.sum()
    small = labels >= 40
    assert scipy.stats.binomtest(int(small.sum()), 100_000, 0.02).pvalue > ALARM
    assert chances[small].sum() == pytest.approx(0.01, rel=0.1)
    assert np.sqrt(distances[small]).max() < 12
    assert np.sqrt(distances[~small]).min() > 50


def test_hidden__a_sample_of_a_block_expects_less_than_a_row_of_a_cluster() -> None:
    X, y = datasets.make_hidden(1_000_000, 5, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    sizes = np.bincount(labels)
    assert len(sizes) == 12
    assert sizes[2:].min() > 20
    assert sizes[2:].max() < 90
    center = points.mean(axis=0)
    distances = ((points - center) ** 2).sum(axis=1)
    chances = 0.5 / len(points) + 0.5 * distances / distances.sum()
    assert 16_384 * np.bincount(labels, chances)[2:].max() < 1
    planted = np.array([points[labels == j].mean(axis=0) for j in range(12)])
    best = ((points - planted[labels]) ** 2).sum()
    without = sizes[2] * ((planted[2] - planted[3:]) ** 2).sum(axis=1).min()
    assert without > best / 2


def test_giants__each_holds_its_share_of_what_is_left() -> None:
    X, y = datasets.make_giants(100_000, 5, share=0.9, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    squares = np.sort(((points - np.median(points, axis=0)) ** 2).sum(axis=1))
    assert (labels == -1).sum() == 5
    shares = squares / squares.cumsum()
    np.testing.assert_allclose(shares[-5:], 0.9, atol=0.02)
    assert squares[-6] < 100


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (datasets.make_hidden, {"hidden_rows": 30}, "n must be at least n_hidden"),
        (datasets.make_giants, {"n_giants": 250}, "n_giants must be below n=250"),
        (datasets.make_giants, {"share": 1.0}, "share must be below 1"),
    ],
)
def test_hard__bad_arguments(make: Make, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make(250, 4, **options)


def test_geometric__every_cluster_contributes_alike() -> None:
    X, y = datasets.make_geometric(200_000, 5, n_clusters=6, ratio=3, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    costs = np.array(
        [points[labels == j].var(axis=0).sum() * (labels == j).mean() for j in range(6)]
    )
    np.testing.assert_allclose(costs / costs[0], 1, rtol=0.2)
    norms = [np.linalg.norm(points[labels == j].mean(axis=0)) for j in range(6)]
    np.testing.assert_allclose(norms, math.sqrt(3) ** np.arange(6), rtol=0.02)


def test_geometric__growth_is_free() -> None:
    X, y = datasets.make_geometric(10_000, 5, n_clusters=3, growth=10, spread=0.001, random_state=0)
    points, labels = dask.compute(X, y)
    norms = [np.linalg.norm(points[labels == j].mean(axis=0)) for j in range(3)]
    np.testing.assert_allclose(norms, [1, 10, 100], rtol=1e-3)


# Instances from the literature


def _benchmark_by_definition(k: int, alpha: int, beta: float) -> AnyArray:
    rows = []
    for number in range(k**alpha):
        row: list[float] = []
        for place in range(alpha):
            digit = number // k**place % k
            row.extend((float(j == digit) - 1 / k) / beta**place for j in range(k))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(
    ("k", "alpha", "beta"), [(2, 1, 1.0), (2, 4, 1.0), (3, 3, 2.0), (5, 2, 1.5)]
)
def test_benchmark__follows_the_definition(k: int, alpha: int, beta: float) -> None:
    X = datasets.make_benchmark(k, alpha, beta=beta, chunks=4, dtype="float64")
    np.testing.assert_allclose(X.compute(), _benchmark_by_definition(k, alpha, beta), atol=1e-15)


def test_benchmark__every_digit_groups_at_the_same_cost() -> None:
    k, alpha = 4, 3
    points = datasets.make_benchmark(k, alpha, dtype="float64").compute()
    n = k**alpha
    for place in range(alpha):
        digit = np.arange(n) // k**place % k
        cost = sum(points[digit == value].var(axis=0).sum() * (n / k) for value in range(k))
        assert cost == pytest.approx(n * (alpha - 1) * (k - 1) / k)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-15)
    assert np.ptp((points**2).sum(axis=1)) < 1e-12


@pytest.mark.parametrize("n", [4, 7, 1000])
def test_svm_pathological__has_two_close_rows_of_opposite_labels(n: int) -> None:
    X, y = datasets.make_svm_pathological(n, chunks=3, dtype="float64", random_state=0)
    points, labels = dask.compute(X, y)
    assert labels.dtype == np.int8
    assert labels[-2:].tolist() == [1, -1]
    assert abs(int(labels.sum())) <= 1
    np.testing.assert_array_equal(points[-2:], [[0.05, 0], [-0.05, 0]])
    # Separable, and the two close rows are the support of the widest margin.
    signed = labels * points[:, 0]
    assert signed[-2:].max() < signed[:-2].min()


@pytest.mark.statistical
def test_svm_pathological__gap_separation_and_spread_are_free() -> None:
    X, y = datasets.make_svm_pathological(
        10_000, separation=6, spread=0.5, gap=2, dtype="float64", random_state=0
    )
    points, labels = dask.compute(X, y)
    assert points[-2:, 0].tolist() == [1, -1]
    noise = (points[:-2] - labels[:-2, None] * [3, 0]) / 0.5
    assert scipy.stats.kstest(noise.ravel(), "norm").pvalue > ALARM


@pytest.mark.parametrize("d", [2, 4, 6, 10])
def test_svm_lower_bound__holds_every_choice_once(d: int) -> None:
    X, y = datasets.make_svm_lower_bound(d, chunks=7, dtype="float64")
    points, labels = dask.compute(X, y)
    choices = [tuple(np.flatnonzero(row)) for row in points]
    assert choices == list(itertools.combinations(range(d), d // 2))
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    signs = points[points != 0].reshape(len(points), -1)
    np.testing.assert_allclose(signs, labels[:, None] * np.full_like(signs, math.sqrt(2 / d)))


@pytest.mark.parametrize("lam", [0.01, 1.0, 1e4])
def test_svm_lower_bound__every_row_has_the_sensitivity_of_the_lemma(lam: float) -> None:
    d = 6
    points, labels = dask.compute(*datasets.make_svm_lower_bound(d, dtype="float64"))
    n = len(points)
    for row in points:
        w = np.where(row == 0, math.sqrt(d / 2), 0)
        hinge = np.maximum(0, 1 - labels * (points @ w))
        costs = w @ w / (2 * n) + lam * hinge
        worst = (costs / costs.sum()).max()
        assert worst >= (n * lam + d**2) / (n * (lam + d**2))
        assert np.isclose(hinge, 1).sum() == 1


# Arguments


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        ("mixture", {"chunks": 0}, InvalidInputError, "chunks must be at least 1, got 0"),
        ("mixture", {"chunks": "big"}, InvalidInputError, "chunks must be 'auto' or a number"),
        ("mixture", {"chunks": 1.5}, InvalidTypeError, "chunks must be an integer, got 1.5"),
        ("mixture", {"chunks": True}, InvalidTypeError, "chunks must be an integer, got True"),
        ("mixture", {"dtype": "int32"}, InvalidInputError, "dtype must be float32 or float64"),
        ("mixture", {"dtype": "no such"}, InvalidTypeError, "dtype must name a dtype"),
        ("mixture", {"n_clusters": 0}, InvalidInputError, "n_clusters must be at least 1"),
        ("mixture", {"imbalance": 0.5}, InvalidInputError, r"imbalance must be .* \[1, inf\]"),
        ("mixture", {"spread": -1}, InvalidInputError, "spread must be a finite number"),
        ("mixture", {"spread": "wide"}, InvalidTypeError, "spread must be a number, got 'wide'"),
        ("mixture", {"offset": math.nan}, InvalidInputError, "offset must be a finite number"),
        ("mixture", {"outliers": 1.5}, InvalidInputError, r"outliers must be .* \[0, 1\]"),
        ("mixture", {"dof": 0.5}, InvalidInputError, r"dof must be .* \[1, inf\]"),
        ("mixture", {"random_state": -1}, InvalidInputError, "random_state must"),
        ("near-mean", {"n_clusters": 11}, InvalidInputError, "n_clusters must exceed n_near=10"),
        ("near-mean", {"near_share": 2}, InvalidInputError, r"near_share must be .* \[0, 1\]"),
        ("geometric", {"ratio": 0.9}, InvalidInputError, "ratio must be"),
        ("geometric", {"growth": 0.9}, InvalidInputError, "growth must be"),
        ("benchmark", {"beta": 0.5}, InvalidInputError, "beta must be"),
        ("svm-pathological", {"gap": -0.1}, InvalidInputError, "gap must be"),
    ],
)
def test_arguments__bad_ones_are_named(
    make: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ALL[make](**options)


@pytest.mark.parametrize("n", [0, -3])
def test_arguments__no_rows(n: int) -> None:
    with pytest.raises(InvalidInputError, match=f"n must be at least 1, got {n}"):
        datasets.make_mixture(n, 2)


@pytest.mark.parametrize("d", [3, 66])
def test_svm_lower_bound__odd_or_large_d(d: int) -> None:
    with pytest.raises(InvalidInputError, match=f"d must be even and at most 64, got {d}"):
        datasets.make_svm_lower_bound(d)


def test_arguments__too_many_blocks() -> None:
    with pytest.raises(InvalidInputError, match="chunks must give at most 10,000,000 blocks"):
        datasets.make_benchmark(10, 30)


# Files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DASKCORESET_DATA", str(tmp_path))
    return tmp_path


def test_load__dense(folder: Path) -> None:
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    y = np.array([1, -1, 1], dtype=np.int8)
    np.savez_compressed(folder / "small.npz", X=X, y=y, columns=["a", "b"], n_train=2)
    dataset = datasets.load("small")
    assert isinstance(dataset.X, np.ndarray)
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.y is not None
    np.testing.assert_array_equal(dataset.y, y)
    assert dataset.columns == ("a", "b")
    assert dict(dataset.extras) == {"n_train": 2}
    assert repr(dataset) == "Dataset('small', 3 x 2 float32, labels int8)"


def test_load__without_labels(folder: Path) -> None:
    np.savez(folder / "bare.npz", X=np.zeros((3, 2), np.float32))
    dataset = datasets.load("bare")
    assert (dataset.y, dataset.columns, dict(dataset.extras)) == (None, None, {})
    assert repr(dataset) == "Dataset('bare', 3 x 2 float32, no labels)"


def test_load__sparse(folder: Path) -> None:
    matrix = sp.random_array((5, 4), density=0.5, format="csr", dtype=np.float32, rng=0)
    np.savez(
        folder / "thin.npz",
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.array(matrix.shape),
        y=np.ones(5, np.int8),
    )
    dataset = datasets.load("thin")
    assert isinstance(dataset.X, sp.csr_array)
    np.testing.assert_array_equal(dataset.X.toarray(), matrix.toarray())
    assert "float32 sparse" in repr(dataset)
    assert pickle.loads(pickle.dumps(dataset)).X.shape == (5, 4)


def test_available__lists_the_folder(folder: Path) -> None:
    for name in ("b", "a"):
        np.savez(folder / f"{name}.npz", X=np.zeros((1, 1)))
    (folder / "README.md").touch()
    assert datasets.available() == ("a", "b")


def test_available__is_empty_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DASKCORESET_DATA", raising=False)
    assert datasets.available() == ()
    with pytest.raises(DataUnavailableError, match=r"DASKCORESET_DATA is not set.*set this"):
        datasets.load("htru2")


def test_available__variable_names_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASKCORESET_DATA", str(folder / "gone"))
    with pytest.raises(DataUnavailableError, match="DASKCORESET_DATA must name a folder, got"):
        datasets.available()


@pytest.mark.parametrize("name", ["gone", "../small", ""])
def test_load__unknown_name(folder: Path, name: str) -> None:
    np.savez(folder / "small.npz", X=np.zeros((1, 1)))
    with pytest.raises(DataUnavailableError, match=r"\(small\), got") as caught:
        datasets.load(name)
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros(3)}, "X has 1 dimensions"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(2)}, r"y has the shape \(2,\), not \(3,\)"),
        ({"X": np.zeros((3, 2)), "columns": ["a"]}, r"columns has the shape \(1,\), not \(2,\)"),
        ({"X": np.array([[None]])}, "allow_pickle=False"),
        ({"data": np.zeros(3)}, "indices"),
        (
            {
                "data": np.ones(1, np.float32),
                "indices": np.array([7]),
                "indptr": np.array([0, 1]),
                "shape": np.array([1, 2]),
            },
            "indices",
        ),
    ],
)
def test_load__damaged(folder: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(folder / "bad.npz", **arrays)
    with pytest.raises(StoreError, match=f"name='bad' .*{message}.*replace the file"):
        datasets.load("bad")


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut off"])
def test_load__not_an_archive(folder: Path, content: bytes) -> None:
    (folder / "bad.npz").write_bytes(content)
    with pytest.raises(StoreError, match="cannot be read as a set"):
        datasets.load("bad")


@pytest.mark.parametrize(
    ("name", "shape", "positive"), [("htru2", (17_898, 8), 1_639), ("a9a", (48_842, 123), 11_687)]
)
def test_load__real_sets(name: str, shape: tuple[int, int], positive: int) -> None:
    if name not in datasets.available():
        pytest.skip(f"DASKCORESET_DATA has no {name}")
    dataset = datasets.load(name)
    assert dataset.X.shape == shape
    assert dataset.X.dtype == np.float32
    assert dataset.y is not None
    assert (dataset.y == 1).sum() == positive


# What scikit-learn carries


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("breast_cancer", (569, 30)),
        ("diabetes", (442, 10)),
        ("digits", (1797, 64)),
        ("iris", (150, 4)),
        ("wine", (178, 13)),
    ],
)
def test_load_bundled__tables(name: str, shape: tuple[int, int]) -> None:
    dataset = datasets.load_bundled(name)
    assert isinstance(dataset.X, np.ndarray)
    assert (dataset.X.shape, dataset.X.dtype) == (shape, np.float32)
    assert dataset.X.flags.c_contiguous
    assert dataset.y is not None
    assert dataset.y.shape == shape[:1]
    assert dataset.columns is not None
    assert len(dataset.columns) == shape[1]


@pytest.mark.parametrize("name", ["china", "flower"])
def test_load_bundled__pictures(name: str) -> None:
    dataset = datasets.load_bundled(name)
    assert isinstance(dataset.X, np.ndarray)
    assert (dataset.X.shape, dataset.X.dtype) == ((273_280, 3), np.float32)
    assert dataset.X.min() >= 0
    assert 200 < dataset.X.max() <= 255
    assert math.prod(dataset.extras["shape"].tolist()) == 273_280
    assert dataset.y is None


def test_load_bundled__unknown_name() -> None:
    with pytest.raises(InvalidInputError, match="name must be one of breast_cancer, china"):
        datasets.load_bundled("mnist")


def test_load_bundled__picture_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("sklearn.datasets.load_sample_image", fail)
    with pytest.raises(MissingDependencyError, match="needs Pillow"):
        datasets.load_bundled("china")


def test_bundled__names_are_complete() -> None:
    assert datasets.BUNDLED == (
        "breast_cancer",
        "china",
        "diabetes",
        "digits",
        "flower",
        "iris",
        "wine",
    )
