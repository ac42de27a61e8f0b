"""Input and parameters that were answered wrongly once: what they get now.

Every answer is either right, by an independent computation, or an error before anything is
stored that names the argument, what was found and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from daskcoreset import (
    SVM,
    ActiveMaxMargin,
    BregmanLightweight,
    Coreset,
    CoresetStream,
    CoresetTree,
    Coverage,
    Logistic,
    MaxMarginCoreset,
    MixtureCoreset,
    OutlierMaxMargin,
    StrongBregman,
    StrongKMeans,
    WeightedPoints,
    build,
    datasets,
)
from daskcoreset.cli.main import main
from daskcoreset.core.blocks import plain_labels
from daskcoreset.core.errors import (
    CoresetError,
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
)
from daskcoreset.estimators import (
    AVMClassifier,
    CoresetBregman,
    CoresetGaussianMixture,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
    CSVRGClassifier,
    LinearSVM,
    MaxMarginClassifier,
    ODMClassifier,
    OutlierMaxMarginClassifier,
)
from daskcoreset.estimators.margin.soft import uniform_rows
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.metrics.costs import distortion, svm_cost, svm_sensitivity
from daskcoreset.metrics.sizing import auto_size, theory_size
from daskcoreset.objectives import QuantizationError
from daskcoreset.solvers.divergences import SquaredMahalanobis
from daskcoreset.solvers.linear import solve_svm
from tests.tools.margins import by_force

# --- build(X) and nothing else ------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__needs_nothing_but_the_data(strategy: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(30_000, 3))
    for data in (rows, da.from_array(rows, chunks=(5000, 3))):
        found = build(data, strategy=strategy)
        assert len(found) == found.provenance["size"] == 10_000
        assert found.provenance["size_rule"] == {"rule": "default"}
        assert found.provenance["complete"] is False
        assert found.total_weight == pytest.approx(30_000, rel=0.05)
    lazy: Any = build(rows, strategy=strategy, compute=False)
    assert len(lazy.compute()) == 10_000
    assert build(rows, strategy=strategy, dry_run=True).reads == 1
    given = build(rows, strategy=strategy, size=10_000)
    assert "size_rule" not in given.provenance


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
@pytest.mark.parametrize(("n", "said"), [(1, "1 row"), (300, "300 rows"), (10_000, "10,000 rows")])
def test_build__small_data_come_back_whole_and_it_is_said(strategy: Any, n: int, said: str) -> None:
    rows = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.warns(
        CoresetWarning, match=f"^nothing was reduced: X has {said}, and up to 10,000"
    ):
        found = build(rows, strategy=strategy)
    np.testing.assert_array_equal(found.points, rows)
    np.testing.assert_array_equal(found.weights, np.ones(n))
    assert found.provenance["complete"] is True
    assert repr(found).startswith(f"Coreset(lightweight, nothing reduced: {n:,} of {n:,} rows")


def test_build__default_size_follows_the_clusters() -> None:
    rows = np.random.default_rng(0).normal(size=(16_000, 2))
    found = build(rows, method="kmeans", n_clusters=150)
    assert found.provenance["size"] == 15_000
    labels = rows[:, 0] > 0
    # Its clusters are cells of the classes, of which solutions know nothing.
    assert build(rows, labels, method=SVM(n_clusters=150)).provenance["size"] == 10_000


def test_cli__build_needs_no_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(12_000, 2)))
    assert main(["build", str(tmp_path / "a.npz"), str(tmp_path / "c.zarr")]) == 0
    capsys.readouterr()
    assert len(Coreset.from_zarr(tmp_path / "c.zarr")) == 10_000


# --- OutlierMaxMargin(method="subsets") ---------------------------------------------------


def _subsets_case(seed: int) -> tuple[Any, Any, int, bool, float]:
    """Rows of which k have the wrong label, near the origin or far from it."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(6, 9)), int(rng.integers(1, 5)), int(rng.integers(0, 3))
    rows = rng.normal(size=(n, d)) + rng.choice([0.0, 1.0, 3.0])
    intercept = bool(rng.integers(2))
    scores = rows @ rng.normal(size=d)
    signs = np.where(scores > (np.median(scores) if intercept else 0.0), 1, -1)
    signs[rng.choice(n, k, replace=False)] *= -1
    return rows, signs, k, intercept, [0.05, 0.1, 0.5][seed % 3]


@pytest.mark.nightly_beyond(1)
@pytest.mark.parametrize("batch", range(4))
def test_subsets__normals_have_length_one_and_the_margin_is_the_best(batch: int) -> None:
    tried = 0
    for seed in range(30 * batch, 30 * batch + 30):
        rows, signs, k, intercept, epsilon = _subsets_case(seed)
        if len(set(signs.tolist())) < 2:
            continue
        best = by_force(rows, signs, k, intercept=intercept)
        search = OutlierMaxMargin(k, epsilon, intercept, "subsets", chunks=4)
        if best <= 1e-9:
            continue
        found = search.run(rows, signs)
        tried += 1
        assert np.linalg.norm(found.w) == pytest.approx(1.0, rel=1e-12)
        assert (1.0 - epsilon) * best <= found.margin <= best * (1.0 + 1e-9)
        kept = np.setdiff1d(np.arange(len(rows)), found.outliers)
        reached = (signs[kept] * (rows[kept] @ found.w + found.b)).min()
        assert found.margin == pytest.approx(reached, rel=1e-9)
    assert tried >= 20


# --- values whose squares overflow --------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(600, 3))
SIDES = (ROWS[:, 0] > 0).astype(np.int64)
ROWS[:, 0] += 2 * SIDES
OVERFLOW = r"^X is -?[0-9.]+e\+[0-9]+ in column \d at row \d+, and of values so large squared"


def one_value(value: float, row: int = 477) -> Any:
    rows = ROWS.copy()
    rows[row, 1] = value
    return rows


TOO_LARGE = [
    pytest.param(ROWS * 1e200, id="all"),
    pytest.param(one_value(1e200), id="one 1e200"),
    pytest.param(one_value(-1e300), id="one 1e300"),
    pytest.param(one_value(1.5e154), id="one 1.5e154"),
    pytest.param(sp.csr_array(one_value(1e200)), id="sparse"),
]
METHODS = ["lightweight", "uniform", StrongKMeans(3), StrongBregman(3), MixtureCoreset(2)]


@pytest.mark.parametrize("rows", TOO_LARGE)
@pytest.mark.parametrize("strategy", ["sampling", "tree"])
@pytest.mark.parametrize("method", [*METHODS, "svm", "logistic"], ids=str)
def test_build__overflow_is_one_clear_error(rows: Any, strategy: Any, method: Any) -> None:
    y = SIDES if method in ("svm", "logistic") else None
    with pytest.raises(InvalidInputError, match=OVERFLOW):
        build(rows, y, size=50, method=method, strategy=strategy, chunks=200)
    with pytest.raises(InvalidInputError, match=OVERFLOW):
        build(rows, y, size=50, method=method, strategy=strategy, on_invalid="drop")


@pytest.mark.parametrize("rows", TOO_LARGE)
def test_stream__a_batch_that_overflows_is_not_taken(rows: Any, tmp_path: Path) -> None:
    good = sp.csr_array(ROWS) if sp.issparse(rows) else ROWS
    options: dict[str, Any] = {"leaf_size": 400, "random_state": 0}
    stream = CoresetStream("lightweight", 50, store=tmp_path / "s.zarr", **options)
    stream.partial_fit(good)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            stream.partial_fit(rows)
    assert stream.n_rows == 600
    assert CoresetStream.load(tmp_path / "s.zarr").n_rows == 600
    plain = CoresetStream("lightweight", 50, **options).partial_fit(good)
    assert stream.coreset().equals(plain.coreset())
    stream.partial_fit(good)
    assert stream.coreset().provenance["n"] == 1200


@pytest.mark.parametrize("rows", TOO_LARGE)
def test_tree__a_leaf_that_overflows_is_not_stored(rows: Any, tmp_path: Path) -> None:
    good = sp.csr_array(ROWS) if sp.issparse(rows) else ROWS
    tree = CoresetTree.create(tmp_path / "t.zarr", size=50, random_state=0)
    tree.append(good, name="a")
    before = tree.coreset()
    changes: list[Any] = [tree.append, lambda X: tree.replace("a", X)]
    for change in changes:
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            change(rows)
    assert CoresetTree.open(tmp_path / "t.zarr").version == tree.version == 1
    assert CoresetTree.open(tmp_path / "t.zarr").coreset().equals(before)


MODELS = [
    CoresetKMeans(2),
    CoresetGaussianMixture(2),
    CoresetBregman(2),
    CoresetSVC(),
    CoresetLogisticRegression(),
    CSVRGClassifier(),
    AVMClassifier(),
    ODMClassifier(),
    MaxMarginClassifier(),
    OutlierMaxMarginClassifier(),
    LinearSVM(),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_estimators__overflow_is_one_clear_error(model: Any) -> None:
    lazy = (
        []
        if isinstance(model, (ODMClassifier, LinearSVM))
        else [da.from_array(one_value(1e300), 200)]
    )
    for rows in (ROWS * 1e200, one_value(1e300), *lazy):
        y = SIDES if isinstance(rows, np.ndarray) else da.from_array(SIDES, chunks=200)
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            clone(model).fit(rows, y)


def test_estimators__overflow_is_found_in_prediction_too() -> None:
    model = CoresetKMeans(2, random_state=0).fit(ROWS)
    for method in (model.predict, model.transform):
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            method(one_value(1e300))
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            method(da.from_array(one_value(1e300), chunks=200)).compute()
    linear = LinearSVM().fit(ROWS, SIDES)
    for rows in (one_value(1e200), ROWS * 1e200, sp.csr_array(one_value(-1e300))):
        for answer in (linear.predict, linear.decision_function):
            with pytest.raises(InvalidInputError, match=OVERFLOW):
                answer(rows)
    assert linear.predict(ROWS * 1e100).shape == (600,)


def test_margin__overflow_is_one_clear_error() -> None:
    for search in (MaxMarginCoreset(), OutlierMaxMargin()):
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            search.run(ROWS * 1e200, SIDES)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__scale_below_the_bound_changes_no_draw(method: Any, strategy: Any) -> None:
    """A power of two changes no digit: the largest that float32 holds, and far above it."""
    forms: list[Any] = [(np.float32, 2.0**120), (np.float64, 2.0**400)]
    for dtype, scale in forms:
        rows = ROWS.astype(dtype)
        options: dict[str, Any] = {"size": 50, "method": method, "strategy": strategy}
        plain = build(rows, random_state=0, **options)
        large = build(rows * dtype(scale), random_state=0, **options)
        assert large.points.dtype == dtype
        np.testing.assert_array_equal(large.indices, plain.indices)
        np.testing.assert_allclose(large.weights, plain.weights, rtol=1e-9)


def test_kmeans__large_values_of_float32_are_clustered_as_small_ones() -> None:
    rows = ROWS.astype(np.float32)
    plain = CoresetKMeans(3, random_state=0).fit(rows)
    scale = np.float32(2.0**100)
    for forms in ((rows, rows * scale), (sp.csr_array(rows), sp.csr_array(rows * scale))):
        small, large = (CoresetKMeans(3, random_state=0).fit(form) for form in forms)
        np.testing.assert_array_equal(large.labels_, plain.labels_)
        np.testing.assert_array_equal(small.labels_, plain.labels_)
        np.testing.assert_allclose(large.cluster_centers_ / scale, plain.cluster_centers_)

    def first_rows(X: Any, k: int, random_state: Any) -> Any:
        del random_state
        np.testing.assert_allclose(X.max(), rows.max() * scale, rtol=1e-6)
        return X[:k]

    for init in (first_rows, rows[:3] * scale):
        found = CoresetKMeans(3, init=init, n_init=1, random_state=0).fit(rows * scale)
        assert found.inertia_ == pytest.approx(float(plain.inertia_) * float(scale) ** 2, rel=0.3)


def test_build__weights_that_make_squares_overflow_are_blamed() -> None:
    rows = ROWS * 1e100
    with pytest.raises(InvalidInputError, match=r"sample_weight sums to 6e\+122, and weighted"):
        build(rows, sample_weight=np.full(600, 1e120), size=50)
    stream = CoresetStream("lightweight", 50, leaf_size=400).partial_fit(rows)
    with pytest.raises(InvalidInputError, match="scale sample_weight down"):
        stream.partial_fit(rows, sample_weight=np.full(600, 1e120))
    assert stream.coreset().provenance["n"] == 600
    # Without a weight a row may hold any number, and is never drawn.
    weight = np.ones(600)
    weight[477] = 0.0
    found = build(one_value(1e300), sample_weight=weight, size=50, random_state=0)
    assert 477 not in found.indices
    assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("method", [*METHODS, "svm", "logistic"], ids=str)
@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__rows_without_weight_that_overflow(method: Any, strategy: Any) -> None:
    """They are never drawn, or it is said that no distance from them is known."""
    weight = np.ones(600)
    weight[477] = 0.0
    y = SIDES if method in ("svm", "logistic") else None
    options: dict[str, Any] = {"size": 50, "method": method, "strategy": strategy}
    try:
        found = build(one_value(1e300), y, sample_weight=weight, random_state=0, **options)
    except InvalidInputError as error:
        assert "distances overflow" in str(error)  # noqa: PT017 - either is right
        return
    assert 477 not in found.indices
    assert np.isfinite(found.weights).all()


def test_audit__rows_without_weight_that_overflow() -> None:
    weight = np.ones(600)
    weight[477] = 0.0
    coreset = build(ROWS, size=50, sample_weight=weight, random_state=0)
    far, near = (
        coreset.audit(one_value(value), n_clusters=2, sample_weight=weight, random_state=0)
        for value in (1e300, 0.0)
    )
    assert far.distortion == near.distortion
    np.testing.assert_array_equal(far.differences, near.differences)


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__precision_that_makes_distances_overflow(strategy: Any) -> None:
    method = BregmanLightweight(SquaredMahalanobis(1e290 * np.eye(3)))
    with pytest.raises(InvalidInputError, match="squared distances overflow, or so small"):
        build(ROWS * 1e20, size=50, method=method, strategy=strategy)


def test_build__drop_leaves_out_what_is_not_finite_and_names_what_is_too_large() -> None:
    rows = one_value(1e300)
    rows[10] = np.nan
    with pytest.raises(InvalidInputError, match=r"^X is 1e\+300 in column 1 at row 477, and of"):
        build(rows, size=50, on_invalid="drop")
    assert build(one_value(np.inf), size=50, on_invalid="drop").provenance["n_dropped"] == 1


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, object])
def test_build__labels_that_are_missing(strategy: Any, kind: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2))
    y = (rows[:, 0] > 0).astype(kind)
    y[333] = np.nan
    for method in ("logistic", "svm"):
        with pytest.raises(InvalidInputError, match=r"y is missing or not finite at row 333"):
            build(rows, y, size=50, method=method, strategy=strategy)
    # Methods that ask for no labels carry them along, targets with gaps as well; as text a gap
    # would be a class of its own.
    if kind is object:
        with pytest.raises(InvalidInputError, match=r"y is missing or not finite at row 333"):
            build(rows, y, size=399, method="uniform", strategy=strategy, random_state=0)
    else:
        found = build(rows, y, size=399, method="uniform", strategy=strategy, random_state=0)
        assert found.labels is not None
        np.testing.assert_array_equal(found.labels, plain_labels(y)[found.indices])
    rows[333, 1] = np.inf
    assert build(rows, y, size=50, on_invalid="drop").provenance["n_dropped"] == 1


# --- coresets of what is no number, and arguments of another kind -------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_coreset__refuses_points_that_are_not_finite(bad: float) -> None:
    points = np.ones((4, 3))
    points[2, 1] = bad
    for form in (points, points.astype(np.float32), sp.csr_array(points)):
        with pytest.raises(InvalidInputError, match=f"points holds {bad} at row 2; weighted"):
            Coreset(form, np.ones(4), np.arange(4))
        with pytest.raises(InvalidInputError, match=f"points holds {bad} at row 2; weighted"):
            WeightedPoints(form, np.ones(4), np.arange(4))
    for weights in ([1, 1, 1, bad], [1, 1, 1, -1.0]):
        with pytest.raises(InvalidInputError, match=r"weights is .* at row 3; they must be"):
            Coreset(np.ones((4, 3)), np.array(weights), np.arange(4))
    empty = sp.csr_array((2, 5))
    assert len(Coreset(empty, np.ones(2), np.arange(2))) == 2


def test_coreset__large_values_are_kept_and_refused_where_costs_are_computed(
    tmp_path: Path,
) -> None:
    """Stores of older versions may hold them: loading computes nothing."""
    made = Coreset(ROWS[:50] * 1e200, np.full(50, 12.0), np.arange(50))
    made.to_zarr(tmp_path / "c.zarr")
    assert Coreset.from_zarr(tmp_path / "c.zarr").equals(made)
    with pytest.raises(InvalidInputError, match=OVERFLOW.replace("X", "coreset.points")):
        made.audit(ROWS, objective=QuantizationError(3))
    for of_coreset in (lambda: distortion(made, ROWS, [ROWS[:2]]), lambda: made.cost(ROWS[:2])):
        with pytest.raises(InvalidInputError, match=OVERFLOW.replace("X", "coreset.points")):
            of_coreset()
    for use in (
        lambda: CoresetStream().partial_fit(made.points, None, made.weights),
        lambda: build(made.points, size=10, sample_weight=made.weights),
        lambda: CoresetKMeans(2).fit(made.points, sample_weight=made.weights),
    ):
        with pytest.raises(InvalidInputError, match=OVERFLOW):
            use()


@pytest.mark.parametrize(
    ("points", "weights", "indices", "labels"),
    [
        (np.ones(4), np.ones(4), np.arange(4), None),
        (np.ones((4, 3)), np.ones(3), np.arange(4), None),
        (np.ones((4, 3)), np.ones((4, 1)), np.arange(4), None),
        (np.ones((4, 3)), np.ones(4), np.arange(5), None),
        (np.ones((4, 3)), np.ones(4), np.arange(4), np.arange(3)),
    ],
)
def test_coreset__refuses_shapes_that_disagree(
    points: Any, weights: Any, indices: Any, labels: Any
) -> None:
    with pytest.raises(InvalidInputError, match="has shape"):
        Coreset(points, weights, indices, labels)


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalize": "x"}, "normalize is 'x'; pass True or False"),
        ({"normalize": 1}, "normalize is 1; pass True or False"),
        ({"compute": "x"}, "compute is 'x'; pass True or False"),
        ({"compute": None}, "compute is None; pass True or False"),
        ({"dry_run": "x"}, "dry_run is 'x'; pass True or False"),
        ({"progress": "x"}, "progress is 'x'; pass True or False"),
        ({"passes": True}, "passes"),
        ({"passes": "1"}, "passes"),
        ({"passes": 1.0}, r"passes.*1\.0"),
        ({"epsilon": "x"}, "epsilon must be a number, got 'x'"),
        ({"epsilon": True}, "epsilon must be a number, got True"),
        ({"epsilon": None}, "epsilon must be a number, got None"),
        ({"epsilon": 2.0}, "epsilon must lie between 0 and 1, got 2.0"),
        ({"delta": [0.1]}, "delta must be a number"),
        ({"delta": 0}, "delta must lie between 0 and 1, got 0"),
        ({"size": True}, "size must be an integer, got True"),
        ({"split_every": True}, "split_every must be an integer"),
        ({"chunks": True}, "chunks must be a number of rows"),
        ({"random_state": True}, "random_state must be None, an int"),
        ({"random_state": "x"}, "random_state must be None, an int"),
        ({"sampling": True}, "sampling must be"),
        ({"on_invalid": True}, "on_invalid must be"),
        ({"method": True}, "method must be"),
        ({"diameter": True}, "diameter=True"),
    ],
    ids=str,
)
def test_build__arguments_of_another_kind(strategy: Any, options: Any, message: str) -> None:
    given = {"size": 50, "strategy": strategy, **options}
    with pytest.raises(CoresetError, match=message):
        build(ROWS, **given)


FLAGS: list[Any] = [
    lambda flag: SVM(intercept=flag),
    lambda flag: Logistic(intercept=flag),
    lambda flag: MaxMarginCoreset(intercept=flag),
    lambda flag: MaxMarginCoreset(drop=flag),
    lambda flag: OutlierMaxMargin(intercept=flag),
    lambda flag: ActiveMaxMargin(intercept=flag),
    lambda flag: CoresetStream("uniform", 50).partial_fit(ROWS).coreset(normalize=flag),
    lambda flag: svm_sensitivity(ROWS, SIDES, provable=flag),
    lambda flag: svm_sensitivity(ROWS, SIDES, intercept=flag),
    lambda flag: datasets.make_mixture(100, 2, shuffle=flag),
    lambda flag: build(ROWS, method="coverage", size=5, progress=flag),
]
"""Public flags beside those of `build`."""

NUMBERS: list[Any] = [
    lambda number: SVM(lam=number),
    lambda number: SVM(n_clusters=number),
    StrongKMeans,
    lambda number: StrongKMeans(3, number),
    StrongBregman,
    MixtureCoreset,
    lambda number: Coverage(diameter=number).cover(row_blocks(ROWS)),
    lambda number: Coverage(max_points=number).cover(row_blocks(ROWS)),
    lambda number: MaxMarginCoreset(epsilon=number),
    lambda number: MaxMarginCoreset(max_passes=number),
    lambda number: MaxMarginCoreset(violators=number),
    lambda number: MaxMarginCoreset(kernel="rbf", gamma=number).run(ROWS, SIDES),
    lambda number: MaxMarginCoreset(kernel="poly", degree=number).run(ROWS, SIDES),
    lambda number: MaxMarginCoreset(kernel="poly", coef0=number).run(ROWS, SIDES),
    OutlierMaxMargin,
    lambda number: OutlierMaxMargin(confidence=number),
    lambda number: OutlierMaxMargin(max_problems=number),
    lambda number: ActiveMaxMargin(C=number),
    lambda number: ActiveMaxMargin(batch=number),
    lambda number: ActiveMaxMargin(error=number),
    lambda number: CoresetStream("uniform", number),
    lambda number: CoresetStream("uniform", 50, number),
    lambda number: CoresetStream("uniform", 50, inner_size=number),
    lambda number: build(ROWS, size=50, strategy="tree", inner_size=number),
    lambda number: svm_sensitivity(ROWS, SIDES, lam=number),
    lambda number: svm_cost(ROWS, SIDES, np.ones(3), lam=number),
    lambda number: theory_size(number, 3, epsilon=0.1, delta=0.1),
    lambda number: theory_size(3, 3, epsilon=number, delta=0.1),
    lambda number: auto_size(ROWS, n_clusters=number),
    lambda number: build(ROWS, size=50).audit(ROWS, n_clusters=number),
    lambda number: build(ROWS, size=50).audit(ROWS, n_clusters=2, sample_size=number),
    lambda number: build(ROWS, size=50).audit(ROWS, n_clusters=2, confidence=number),
    lambda number: build(ROWS, size=50).merge(build(ROWS, size=50), offsets=[0, number]),
    lambda number: datasets.make_mixture(number, 2),
    lambda number: datasets.make_mixture(100, 2, spread=number),
]
"""Public numbers beside those of `build`."""


@pytest.mark.parametrize("ask", FLAGS, ids=range(len(FLAGS)))
@pytest.mark.parametrize("wrong", ["x", 1, 0.0, [True]], ids=str)
def test_flags__are_true_or_false(ask: Any, wrong: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"; pass True or False"):
        ask(wrong)


@pytest.mark.parametrize("ask", NUMBERS, ids=range(len(NUMBERS)))
@pytest.mark.parametrize("wrong", ["x", True, [1], np.nan], ids=str)
def test_numbers__are_numbers(ask: Any, wrong: Any) -> None:
    with pytest.raises(CoresetError):
        ask(wrong)


def test_coverage__passes_is_no_float() -> None:
    with pytest.raises(InvalidInputError, match=r"passes=1\.0 has no use"):
        build(ROWS, size=10, method="coverage", passes=1.0)  # type: ignore[call-overload]
    assert len(build(ROWS, size=10, passes=np.int64(1))) == 10  # type: ignore[call-overload]


def test_stream__arguments_of_another_kind(tmp_path: Path) -> None:
    for store in (None, tmp_path / "a"):
        with pytest.raises(InvalidInputError, match="save_every must be at least 1, got 0"):
            CoresetStream(save_every=0, store=store)
        with pytest.raises(InvalidTypeError, match="save_every must be an integer, got 'x'"):
            CoresetStream(save_every="x", store=store)  # type: ignore[arg-type]
    number: Any = 5
    with pytest.raises(InvalidTypeError, match="store is an int; pass the path of a folder"):
        CoresetStream(store=number)
    for ask in (CoresetStream().save, CoresetStream.load, CoresetTree.create, CoresetTree.open):
        with pytest.raises(InvalidTypeError, match="path is an int; pass the path of a folder"):
            ask(number)
    # Where nobody gave a store, `save` makes one that is not saved by itself.
    stream = CoresetStream(size=10, save_every=1)
    stream.save(tmp_path / "b")
    stream.partial_fit(ROWS)
    assert CoresetStream.load(tmp_path / "b").n_rows == 0


# --- the number of clusters, wherever it is said ------------------------------------------


def test_n_clusters__is_remembered_wherever_it_was_said(tmp_path: Path) -> None:
    wanted = {"name": "quantization error", "n_clusters": 4}
    model = CoresetKMeans(4, method="lightweight", size=100, random_state=0).fit(ROWS)
    assert model.coreset_.provenance["objective"] == wanted
    assert len(model.coreset_.audit(ROWS).solutions[0]) == 4
    assert CoresetKMeans(4, size=100).fit(ROWS).coreset_.provenance["objective"] == wanted
    other = CoresetKMeans(4, size=100, method=StrongKMeans(9)).fit(ROWS).coreset_
    assert other.provenance["objective"] == {**wanted, "n_clusters": 9}

    stream = CoresetStream("lightweight", 100, n_clusters=4, store=tmp_path / "s")
    stream.partial_fit(ROWS)
    for one in (stream, CoresetStream.load(tmp_path / "s")):
        assert one.coreset().provenance["objective"] == wanted
    assert len(stream.coreset().audit(ROWS).solutions[0]) == 4
    tree = CoresetTree.create(tmp_path / "t", "uniform", 100, n_clusters=4)
    tree.append(ROWS)
    for made in (tree, CoresetTree.open(tmp_path / "t")):
        assert made.coreset().provenance["objective"] == wanted


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_n_clusters__beside_a_construction_that_says_the_same(strategy: Any) -> None:
    for method in (StrongKMeans(4), StrongBregman(4), MixtureCoreset(4)):
        found = build(ROWS, size=50, method=method, n_clusters=4, strategy=strategy, random_state=0)
        assert found.equals(build(ROWS, size=50, method=method, strategy=strategy, random_state=0))
        with pytest.raises(InvalidInputError, match="n_clusters=5 has no use beside"):
            build(ROWS, size=50, method=method, n_clusters=5, strategy=strategy)
        assert CoresetStream(method, 50, n_clusters=4).partial_fit(ROWS).n_rows == 600
        with pytest.raises(InvalidInputError, match="n_clusters=5 has no use beside"):
            CoresetStream(method, 50, n_clusters=5)
    found = build(ROWS, size=50, method="mixture", n_clusters=4, strategy=strategy)
    assert found.provenance["parameters"] == {"n_components": 4}
    with pytest.raises(InvalidInputError, match="'mixture' needs n_components; pass n_clusters"):
        build(ROWS, size=50, method="mixture", strategy=strategy)


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__values_too_small_are_not_called_large(strategy: Any) -> None:
    rng = np.random.default_rng(0)
    rows = np.zeros((300, 1))
    rows[:150, 0] = 1e-153 * rng.normal(size=150)
    weights = rng.choice([0.0, 1.0, 1e-9, 1e9], size=300)
    with pytest.raises(InvalidInputError, match=r"or so small that quotients by them do; scale"):
        build(
            rows,
            size=100,
            method=StrongKMeans(60),
            sample_weight=weights,
            strategy=strategy,
            random_state=0,
        )


def test_to_zarr__overwrite_is_true_or_false(tmp_path: Path) -> None:
    coreset = build(ROWS, size=50, random_state=0)
    stream = CoresetStream("uniform", 50, random_state=0).partial_fit(ROWS)
    coreset.to_zarr(tmp_path / "c.zarr")
    CoresetStream("uniform", 50, store=tmp_path / "s.zarr")
    wrong: Any = "no"
    with pytest.raises(InvalidTypeError, match="overwrite is 'no'"):
        coreset.to_zarr(tmp_path / "c.zarr", overwrite=wrong)
    with pytest.raises(InvalidTypeError, match="overwrite is 'no'"):
        stream.save(tmp_path / "s.zarr", overwrite=wrong)


# --- dense and sparse rows ----------------------------------------------------------------


def _sparse_mixture(seed: int, dtype: Any) -> Any:
    rng = np.random.default_rng(seed)
    centers = 3.0 * rng.normal(size=(6, 12))
    rows = centers[rng.integers(6, size=20_000)] + rng.normal(size=(20_000, 12))
    return (rows * (rng.random(rows.shape) < 0.3)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["uniform", "lightweight", StrongKMeans(6)], ids=str)
def test_build__dense_and_sparse_rows_are_drawn_alike(dtype: Any, method: Any) -> None:
    rows = _sparse_mixture(0, dtype)
    for data in ((rows, sp.csr_array(rows)), (da.from_array(rows, chunks=(4000, 12)), None)):
        sparse = data[1] if data[1] is not None else data[0].map_blocks(sp.csr_array)
        options: dict[str, Any] = {"size": 500, "method": method, "random_state": 1}
        dense, other = build(data[0], **options), build(sparse, **options)
        np.testing.assert_array_equal(dense.indices, other.indices)
        np.testing.assert_allclose(dense.weights, other.weights, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kmeans__dense_and_sparse_rows_have_the_same_clusters(dtype: Any) -> None:
    for seed in range(2):
        rows = _sparse_mixture(seed, dtype)
        for size in (500, "auto"):
            dense, sparse = (
                # By default dense rows have centroids, which of sparse rows would be dense.
                CoresetKMeans(
                    6, size=size, n_init=2, representatives="rows", random_state=seed
                ).fit(form)
                for form in (rows, sp.csr_array(rows))
            )
            np.testing.assert_array_equal(dense.labels_, sparse.labels_)
            np.testing.assert_allclose(
                dense.cluster_centers_, sparse.cluster_centers_, rtol=1e-6, atol=1e-6
            )
            np.testing.assert_array_equal(dense.predict(rows), sparse.predict(sp.csr_array(rows)))


# --- partial_fit(X, y, classes=...) -------------------------------------------------------


def _three_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 300)
    return rng.normal(size=(900, 3)) + 6.0 * np.eye(3)[y], y


PARTIAL: list[Any] = [CoresetSVC, CoresetLogisticRegression, CSVRGClassifier]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("names", [np.arange(3), np.array(["a", "b", "c"])], ids=["int", "str"])
@pytest.mark.parametrize("make", PARTIAL)
def test_partial_fit__classes_may_come_one_by_one(make: Any, names: Any, lazy: bool) -> None:
    rows, y = _three_classes()
    model = make(random_state=0)
    for start, stop, classes in [(0, 200, names[::-1]), (200, 300, None), (300, 600, names)]:
        part, labels = rows[start:stop], names[y[start:stop]]
        if lazy:
            part, labels = da.from_array(part, chunks=(100, 3)), da.from_array(labels, chunks=100)
        model.partial_fit(part, labels, classes=classes)
        assert model.classes_.tolist() == names.tolist()
        values = np.asarray(model.decision_function(rows))
        assert values.shape == (900, 3)
        assert np.isfinite(values).all()
        found = np.asarray(model.predict(rows))
        np.testing.assert_array_equal(found, names[values.argmax(axis=1)])
        assert (found == names[y])[:stop].mean() > 0.97
        assert not np.isin(found, names[y[stop - 1] + 1 :]).any()
    model.partial_fit(rows[600:], names[y[600:]])
    assert model.score(rows, names[y]) > 0.97
    with pytest.raises(InvalidInputError, match="differ from those of the first call"):
        model.partial_fit(rows, names[y], classes=names[:2])
    assert model.score(rows, names[y]) > 0.97


@pytest.mark.parametrize("make", PARTIAL[:2])
def test_partial_fit__shapes_are_those_of_all_classes(make: Any) -> None:
    rows, y = _three_classes()
    for kinds, shape in (([0, 1], (1, 3)), ([0, 1, 2], (3, 3))):
        for label in kinds:
            model = make(random_state=0).partial_fit(rows[y == label], y[y == label], kinds)
            assert model.coef_.shape == shape
            assert model.intercept_.shape == shape[:1]
            assert (model.predict(rows) == label).all()
            values = model.decision_function(rows)
            assert values.shape == ((900,) if len(kinds) == 2 else (900, 3))
            wanted = np.sign(label - 0.5) if len(kinds) == 2 else label
            assert ((np.sign(values) if len(kinds) == 2 else values.argmax(1)) == wanted).all()
            if make is CoresetLogisticRegression:
                shares = model.predict_proba(rows)
                np.testing.assert_array_equal(shares, np.eye(len(kinds))[[label] * 900])
                assert np.isneginf(model.predict_log_proba(rows)).any()
    model = make(random_state=0).partial_fit(rows[:600], y[:600], classes=[0, 1, 2])
    assert model.coef_.shape == (3, 3)
    linear = rows @ model.coef_.T + model.intercept_
    np.testing.assert_array_equal(linear.argmax(axis=1), model.predict(rows))
    # Four classes, of which three were seen: their hyperplanes are as they were found.
    model = make(random_state=0).partial_fit(rows, y, classes=[0, 1, 2, 3])
    whole = make(random_state=0).partial_fit(rows, y)
    np.testing.assert_array_equal(model.coef_[:3], whole.coef_)
    np.testing.assert_array_equal(model.predict(rows), whole.predict(rows))


@pytest.mark.parametrize("make", PARTIAL[:2])
def test_partial_fit__a_refusal_takes_nothing(make: Any) -> None:
    rows, y = _three_classes()
    model = make(random_state=0).partial_fit(rows[:300], y[:300], classes=[0, 1])
    for data in ((rows, y), (da.from_array(rows, chunks=300), da.from_array(y, chunks=300))):
        with pytest.raises(InvalidInputError, match=r"y holds .*2.* not among classes"):
            model.partial_fit(*data)
    model.partial_fit(rows[300:600], y[300:600])
    assert model.coreset_.total_weight == pytest.approx(600)
    with pytest.raises(InvalidInputError, match="fewer than two"):
        make().partial_fit(rows, y, classes=[0])
    fresh = make(random_state=0)
    with pytest.raises(InvalidInputError, match="one class only"):
        fresh.partial_fit(rows[:300], y[:300])
    fresh.partial_fit(rows[:600], y[:600])
    assert fresh.coreset_.total_weight == pytest.approx(600)


@pytest.mark.parametrize("make", PARTIAL)
@pytest.mark.parametrize(
    "classes", [[0, 1, np.nan], [0.0, np.inf, 1.0], np.array([0, 1, None], dtype=object)]
)
def test_partial_fit__classes_that_are_none(make: Any, classes: Any) -> None:
    rows, y = _three_classes()
    with pytest.raises(InvalidInputError, match=r"classes holds .* which is no class"):
        make().partial_fit(rows[:600], y[:600], classes=classes)


# --- labels that are none, and more columns or clusters than can be done ------------------


@pytest.mark.parametrize("method", ["svm", "logistic"])
@pytest.mark.parametrize("strategy", ["sampling", "tree"])
def test_build__a_regression_target_is_no_label(method: Any, strategy: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.raises(InvalidInputError, match=r"^y is -?0\.\d+ at row 0, a number and no class"):
        build(rows, rows[:, 0], size=20, method=method, strategy=strategy)
    mixed = np.where(np.arange(200) == 150, 0.5, np.arange(200) % 2)
    with pytest.raises(InvalidInputError, match=r"^y is 0\.5 at row 150, a number and no class"):
        build(rows, mixed, size=20, method=method, strategy=strategy, chunks=60)
    for names in (np.arange(200), np.arange(200).astype(str), np.arange(200.0)):
        with pytest.raises(InvalidInputError, match="y holds 200 different labels for 200 rows"):
            build(rows, names, size=20, method=method, strategy=strategy)
    # Whole numbers are classes, also as floats, and few of a row each are no names.
    for labels in (np.arange(200) % 2.0, np.repeat([0, 1], 100)):
        assert len(build(rows, labels, size=50, method=method, strategy=strategy)) == 50


WIDE = sp.csr_array((np.ones(20_000), (np.arange(20_000), np.arange(20_000))), (20_000, 100_000))


@pytest.mark.parametrize("strategy", ["sampling", "tree"])
@pytest.mark.parametrize(
    ("method", "found"),
    [
        ("svm", "74.5 GiB for every d rows; pass 16,384 columns at most"),
        ("logistic", "a matrix of d x d numbers takes 74.5 GiB.*; pass 4,096 columns at most"),
        (StrongKMeans(10), "a sample of 16,384 rows, zeros included, takes 12.2 GiB; pass fewer"),
        (StrongBregman(10), "16,384 rows, zeros included, takes 12.2 GiB"),
        (MixtureCoreset(10), "16,384 rows, zeros included, takes 12.2 GiB"),
    ],
    ids=str,
)
def test_build__wide_sparse_rows_are_refused_at_once(
    method: Any, found: str, strategy: Any
) -> None:
    y = np.arange(20_000) % 2 if method in ("svm", "logistic") else None
    with pytest.raises(InvalidInputError, match=f"^X has 100,000 columns, and with .*{found}"):
        build(WIDE, y, size=100, method=method, strategy=strategy, compute=False)


def test_build__no_cover_of_wide_sparse_rows() -> None:
    with pytest.raises(InvalidInputError, match=r"zeros of sparse rows.*pass 16,384 columns at"):
        build(WIDE, size=100, method="coverage")


@pytest.mark.parametrize(
    "model",
    [
        CSVRGClassifier(),
        AVMClassifier(),
        AVMClassifier(max_points=20, strategy="online"),
        ODMClassifier(),
        MaxMarginClassifier(kernel="rbf"),
    ],
    ids=str,
)
def test_estimators__no_kernel_of_wide_sparse_rows(model: Any) -> None:
    with pytest.raises(
        InvalidInputError,
        match=r"^X has 100,000 columns, and distances .*zeros of sparse.*pass 16,384 columns at",
    ):
        clone(model).fit(WIDE, np.arange(20_000) % 2)


def test_partial_fit__no_kernel_of_wide_sparse_rows() -> None:
    y = np.arange(20_000) % 2
    model = CSVRGClassifier(max_points=5, random_state=0, max_iter=1, tol=1.0)
    with pytest.raises(InvalidInputError, match="zeros of sparse rows"):
        model.partial_fit(WIDE, y)
    # Few rows are no trouble, however wide they are.
    assert model.fit(WIDE[:200], y[:200]).n_core_points_ == 5


def test_soft_margin__no_sample_of_wide_sparse_rows() -> None:
    with pytest.raises(InvalidInputError, match="zeros of sparse rows"):
        uniform_rows(row_blocks(WIDE, np.arange(20_000) % 2), 10_000, 0)


def test_stream__wide_sparse_rows_are_refused_at_once() -> None:
    stream = CoresetStream(StrongKMeans(10), 1000)
    with pytest.raises(InvalidInputError, match=r"zeros included, takes 12\.2 GiB"):
        stream.partial_fit(WIDE)


@pytest.mark.parametrize("method", ["uniform", "lightweight"])
def test_build__wide_sparse_rows_stay_as_they_are(method: Any) -> None:
    found = build(WIDE, size=100, method=method, random_state=0)
    assert len(found) == 100
    assert found.total_weight == pytest.approx(20_000, rel=0.2)


def test_build__a_million_clusters_are_refused_or_found() -> None:
    rows = da.zeros((2_000_000, 5), chunks=(1_000_000, 5))
    with pytest.raises(InvalidInputError, match=r"1,000,000 centers of 1,000,000 rows take 5e\+12"):
        build(rows, size=1_000_000, method=StrongKMeans(1_000_000), compute=False)
    with pytest.warns(CoresetWarning, match="nothing was reduced"):
        assert len(build(ROWS, method=StrongKMeans(1_000_000))) == 600
    with pytest.raises(InvalidInputError, match="n_samples=600 should be >= n_clusters=1000000"):
        CoresetKMeans(10**6).fit(ROWS)
    with pytest.raises(InvalidInputError, match="in every step of k-means 1,000,000 centers of"):
        CoresetKMeans(10**6).fit(np.zeros((1_000_000, 3), dtype=np.float32))


def test_solve_svm__of_more_columns_than_rows_is_the_same_solution() -> None:
    rng = np.random.default_rng(0)
    rows, signs = rng.normal(size=(30, 20)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    wide = np.hstack([rows, np.zeros((30, 40))]) @ np.linalg.qr(rng.normal(size=(60, 60)))[0]
    for intercept in (True, False):
        few = solve_svm(rows, signs, np.ones(30), intercept=intercept)
        many = solve_svm(wide, signs, np.ones(30), intercept=intercept)
        assert many.cost == pytest.approx(few.cost, rel=1e-5)
        assert many.coef.shape == (60,)
        values = wide @ many.coef + many.intercept
        cost = 0.5 * many.coef @ many.coef + np.maximum(1 - signs * values, 0).sum()
        assert cost == pytest.approx(many.cost, rel=1e-9)
        start = np.append(many.coef, many.intercept) if intercept else many.coef
        again = solve_svm(wide, signs, np.ones(30), intercept=intercept, start=start)
        assert again.cost <= many.cost * (1 + 1e-9)


# --- the same rows, dense and sparse, float32 and float64 -----------------------------------


def on_a_grid(kind: str, seed: int) -> Any:
    """Rows that lie on a grid, so that cuts through them are decided by the last digits."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        return (rng.random((3000, 30)) < 0.1).astype(float)
    if kind == "wide":
        return (rng.random((3000, 200)) < 0.03).astype(float)
    if kind == "counts":
        return rng.poisson(0.3, (3000, 20)).astype(float)
    return np.eye(40)[rng.integers(40, size=3000)]


@pytest.mark.parametrize("kind", ["binary", "wide", "counts", "one-hot"])
@pytest.mark.parametrize(
    "options",
    [{}, {"passes": 2}, {"strategy": "tree"}, {"method": "uniform", "strategy": "tree"}],
    ids=str,
)
def test_build__draws_the_same_rows_dense_and_sparse(kind: str, options: dict[str, Any]) -> None:
    for seed in range(3):
        X = on_a_grid(kind, seed)
        found = [
            build(rows, size=300, chunks=1000, random_state=seed, **options)
            for rows in (X, sp.csr_matrix(X))
        ]
        assert (found[0].indices == found[1].indices).all()


def test_kmeans__clusters_far_apart_and_small_in_float32() -> None:
    """Two clusters 20,000 apart beside eight that are one apart: float32 holds the rows."""
    rng = np.random.default_rng(1)
    centers = np.zeros((10, 4))
    centers[0, 0], centers[1, 0], centers[2:, 1] = 1e4, -1e4, 1e4
    centers[2:] += rng.normal(size=(8, 4))
    labels = np.r_[rng.integers(2, size=60_000), np.repeat(2 + np.arange(8), 50)]
    X = (centers[labels] + 0.003 * rng.normal(size=(len(labels), 4))).astype(np.float32)
    means = np.array([X[labels == k].astype(float).mean(axis=0) for k in range(10)])
    best = float(((X - means[labels]) ** 2).sum())
    model = CoresetKMeans(10, size=800, random_state=0).fit(X)
    found = model.cluster_centers_
    gaps = (((rows[:, np.newaxis] - found) ** 2).sum(axis=2) for rows in np.array_split(X, 20))
    cost = sum(float(gap.min(axis=1).sum()) for gap in gaps)
    assert cost < 1.05 * best


def test_tree__refuses_leaves_and_row_numbers_that_are_none(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "tree.zarr", size=50, random_state=0)
    tree.append(np.random.default_rng(0).normal(size=(200, 2)), name="a")
    for wrong in (None, True):
        with pytest.raises(InvalidTypeError):
            tree.delete(wrong)
    with pytest.raises(InvalidInputError, match="leaves is 5, and there are 1"):
        tree.delete(5)
    for numbers in (None, "x", [2.7], [True], 5):
        with pytest.raises(InvalidTypeError, match="indices is"):
            tree.locate(numbers)  # type: ignore[arg-type]
    assert tree.leaves.names == ["a"]
