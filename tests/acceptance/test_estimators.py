"""Estimators: what they are fitted to, and what is left alone when they predict."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.acceptance import face
from tests.acceptance.tools.models import MODELS, fitted, methods_of, rows, targets

E = face.estimators


def _three_classes(n: int = 1_500) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 3))
    far = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), [0.5, 1.4])
    return X, np.array(["few", "most", "some"])[(far + 1) % 3]


FACTORS = {"few": 0.5, "most": 1.0, "some": 7.0}


def _as_itself(coreset: Any, _folder: Path) -> Any:
    return coreset


def _as_member(coreset: Any, _folder: Path) -> Any:
    return face.Portfolio({"one": coreset})


def _stored(coreset: Any, folder: Path) -> Any:
    coreset.to_zarr(folder / "coreset")
    return face.Coreset.from_zarr(folder / "coreset")


@pytest.mark.parametrize(
    ("make", "factors", "passed"),
    [
        (E.CoresetSVC, FACTORS, _as_itself),
        (E.CoresetSVC, "balanced", _stored),
        (E.CoresetLogisticRegression, FACTORS, _as_member),
        (E.CoresetLogisticRegression, {"some": 7.0, "few": 0.0}, _as_itself),
    ],
)
@pytest.mark.filterwarnings("ignore:1 of the 3 classes:UserWarning")
def test_class_weight__counts_once_in_a_coreset_that_contains_it(
    make: Any, factors: Any, passed: Any, tmp_path: Path
) -> None:
    X, y = _three_classes()
    model = make(size=200, class_weight=factors, random_state=0).fit(X, y)
    again = make(class_weight=factors, random_state=0).fit(passed(model.coreset_, tmp_path))
    np.testing.assert_allclose(again.coreset_.weights, model.coreset_.weights, rtol=1e-12)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6)
    plain = make(random_state=0).fit(passed(model.coreset_, tmp_path / "more"))
    np.testing.assert_allclose(plain.coef_, model.coef_, rtol=1e-6)


def test_class_weight__other_than_that_in_the_coreset_takes_its_place() -> None:
    X, y = _three_classes()
    totals = {label: float((y == label).sum()) for label in FACTORS}
    drawn = E.CoresetSVC(size=200, class_weight=FACTORS, random_state=0).fit(X, y).coreset_
    model = E.CoresetLogisticRegression(class_weight={"few": 3.0}, random_state=0).fit(drawn)
    for label, factor in {"few": 3.0, "most": 1.0, "some": 1.0}.items():
        held = model.coreset_.weights[model.coreset_.labels == label].sum()
        assert held == pytest.approx(factor * totals[label], rel=1e-9)
    even = E.CoresetSVC(class_weight="balanced", random_state=0).fit(drawn).coreset_
    for label in totals:
        assert even.weights[even.labels == label].sum() == pytest.approx(len(X) / 3, rel=1e-9)
    lost = {"few": 0.0, "most": 1.0, "some": 1.0}
    with pytest.warns(face.CoresetWarning, match="few"):
        drawn = E.CoresetSVC(size=200, class_weight=lost, random_state=0).fit(X, y).coreset_
    with pytest.raises(
        face.CoresetError, match="positive for 'few', but the coreset was built with weight 0"
    ):
        E.CoresetSVC(class_weight="balanced").fit(drawn)


@pytest.mark.parametrize("solver", [LogisticRegression, RidgeClassifier])
def test_class_weight__of_the_solver_counts_once(solver: Any) -> None:
    X, y = _three_classes()
    drawn = E.CoresetSVC(size=200, class_weight=FACTORS, random_state=0).fit(X, y).coreset_
    plain = E.CoresetEstimator(solver()).fit(drawn)
    for factors in (FACTORS, "balanced"):
        own = E.CoresetEstimator(solver(class_weight=factors)).fit(drawn)
        inside = E.CoresetSVC(estimator=solver(class_weight=factors)).fit(drawn)
        np.testing.assert_allclose(own.coef_, inside.coef_, rtol=1e-6)
        same = np.allclose(own.coef_, plain.coef_, rtol=1e-6)
        assert same if factors is FACTORS else not same


@pytest.mark.parametrize("place", ["coreset", "member", "tree", "window"])
def test_class_weight__counts_once_where_the_coreset_has_none(place: str, tmp_path: Path) -> None:
    X, y = _three_classes()
    total = sum(FACTORS[label] for label in y.tolist())
    given: Any = face.build(X, y, size=200, method="svm", random_state=0)
    if place == "member":
        given = face.Portfolio({"svm": given})
    elif place != "coreset":
        given = face.create_tree(tmp_path / "tree", method="svm", size=200, random_state=0)
        given.append(X, y)
        given = given[:] if place == "window" else given
    for model in (E.CoresetSVC, E.CoresetLogisticRegression):
        weighed = model(class_weight=FACTORS, random_state=0).fit(given)
        assert weighed.coreset_.total_weight == pytest.approx(total, rel=0.05)
        again = model(class_weight=FACTORS, random_state=0).fit(weighed.coreset_)
        np.testing.assert_allclose(again.coef_, weighed.coef_, rtol=1e-6)
        if place == "coreset":
            assert again.audit(X, y, random_state=0).distortion < 0.5


def test_class_weight__counts_once_in_partial_fit_and_merges() -> None:
    X, y = _three_classes()
    total = sum(FACTORS[label] for label in y.tolist())
    options = {"size": 200, "class_weight": FACTORS, "random_state": 0}
    first = E.CoresetSVC(**options).fit(X[:700], y[:700])
    rest = E.CoresetLogisticRegression(**options).fit(X[700:], y[700:])
    both = first.coreset_.merge(rest.coreset_)
    assert E.CoresetSVC(**options).fit(both).coreset_.total_weight == pytest.approx(total)
    grown = E.CoresetSVC(**options).fit(first.coreset_).partial_fit(rest.coreset_)
    assert grown.coreset_.total_weight == pytest.approx(total)
    grown = E.CoresetSVC(**options).partial_fit(first.coreset_).partial_fit(X[700:], y[700:])
    assert grown.coreset_.total_weight == pytest.approx(total)
    with pytest.raises(face.CoresetError, match="different class_weight"):
        first.coreset_.merge(face.build(X, y, size=200, method="svm"))
    with pytest.raises(face.CoresetError, match="pass this class_weight"):
        E.CoresetSVC(size=200).partial_fit(first.coreset_)


@pytest.mark.parametrize("make", [E.CoresetSVC, E.CoresetLogisticRegression])
def test_partial_fit__of_classes_one_after_another(make: Any) -> None:
    """Rows of one class are enough at first, and more than `size` rows are never kept."""
    X, y = _three_classes()
    X[y == "few"] += 9.0
    model = make(size=150, random_state=0)
    for label in ("few", "most", "some"):
        own = y == label
        model.partial_fit(X[own], y[own], classes=["few", "most", "some"])
        seen = np.isin(y, np.unique(model.coreset_.labels))
        assert set(np.unique(model.predict(X[seen]))) <= set(y[seen])
        assert label == "few" or len(model.coreset_) <= 150
        assert model.coreset_.total_weight == pytest.approx(np.count_nonzero(seen))
    assert model.score(X, y) > 0.6
    assert model.classes_.tolist() == ["few", "most", "some"]


def test_class_weight__of_labels_that_are_objects() -> None:
    da = pytest.importorskip("dask.array")
    X, y = _three_classes()
    numbers = np.array([3 if label == "some" else 4 for label in y], dtype=object)
    lazy = da.from_array(X, chunks=(500, 3)), da.from_array(numbers, chunks=500)
    options = {"size": 200, "class_weight": {3: 6.0}, "random_state": 0}
    model = E.CoresetSVC(**options).fit(*lazy)
    total = len(X) + 5.0 * (y == "some").sum()
    assert model.coreset_.total_weight == pytest.approx(total)
    again = E.CoresetSVC(**options).fit(model.coreset_)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_predicting__writes_nothing_on_the_model(name: str) -> None:
    model, X, y = fitted(name, lazy=True)
    coreset = face.Coreset(X, np.ones(len(X)), np.arange(len(X)), y, {"method": "uniform"})
    before, held = dict(vars(model)), pickle.dumps(model)
    names = methods_of(model) + ["score"] * (hasattr(model, "score") and name != "any density")
    expected = {each: getattr(model, each)(X) for each in names if each != "score"}

    def ask(each: str) -> Any:
        return getattr(model, each)(coreset)

    with ThreadPoolExecutor(8) as threads:
        for each, answer in zip(6 * names, threads.map(ask, 6 * names), strict=True):
            if each in expected:
                np.testing.assert_array_equal(answer, expected[each])
    for attribute in ("labels_", "inertia_", "lower_bound_"):
        getattr(model, attribute, None)
    after = vars(model)
    assert after.keys() == before.keys()
    assert all(after[each] is before[each] for each in before)
    if name != "any density":  # its tree counts what it is asked
        assert pickle.dumps(model) == held


def _same_answers(got: Any, expected: Any) -> None:
    """Check values, shape and dtype, also those announced."""
    assert got.dtype == expected.dtype
    answer = got.compute()
    assert answer.dtype == expected.dtype
    assert answer.shape == expected.shape
    same = np.testing.assert_allclose if answer.dtype.kind == "f" else np.testing.assert_array_equal
    same(answer, expected)


@pytest.mark.parametrize("name", MODELS)
def test_predicting__of_blocks_without_rows(name: str) -> None:
    da = pytest.importorskip("dask.array")
    model, X, y = fitted(name)
    sizes = (0, 100, 0, 200, 0)
    lazy = da.from_array(X, chunks=(sizes, (2,)))
    kept, none = X[:, 0] > 5.0, X[:, 0] > 1e9
    parts = da.from_array(X, chunks=(60, 2))
    few, nothing = (parts[da.from_array(mask, chunks=60)] for mask in (kept, none))
    for method in methods_of(model):
        ask = getattr(model, method)
        expected = np.asarray(ask(X))
        _same_answers(ask(lazy), expected)
        _same_answers(ask(few), expected[kept])
        _same_answers(ask(nothing), expected[none])
    if not hasattr(model, "score") or name in {"any clusterer", "any density"}:
        return  # scores of these do not add up
    targets = None if y is None else da.from_array(y, chunks=(sizes,))
    assert model.score(lazy, targets) == pytest.approx(model.score(X, y))
    if y is not None:
        targets = da.from_array(y, chunks=60)[da.from_array(kept, chunks=60)]
        assert model.score(few, targets) == pytest.approx(model.score(X[kept], y[kept]))


@pytest.mark.parametrize("name", MODELS)
def test_predicting__of_partitions_without_rows(name: str) -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    _, X, _ = fitted(name)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(len(X)) + 7)
    model, _, _ = fitted(name, frame)
    lazy = dd.from_pandas(frame, npartitions=5)
    for limit in (5.0, 1e9):
        for method in methods_of(model):
            expected = getattr(model, method)(frame)
            expected = expected[frame.a > limit]
            answer = getattr(model, method)(lazy[lazy.a > limit])
            if method == "predict":
                pd.testing.assert_series_equal(answer.compute(), expected)
            else:
                _same_answers(answer, np.asarray(expected))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_pickle__has_neither_data_nor_graph_nor_secrets(name: str) -> None:
    pd = pytest.importorskip("pandas")
    X = rows(600 if name in {"odm", "active"} else 3_000)
    make, kind = MODELS[name]
    models = [fitted(name, X)[0]]
    if name != "odm":  # which takes rows in memory
        table = pd.DataFrame(X, columns=["a", "b"]).assign(y=targets(kind, X)).dropna(axis=1)
        table.to_parquet("memory://pickles/table.parquet", row_group_size=1_000)
        options = {"secret": "not for others"}
        stored = face.open_rows("memory://pickles/table.parquet", storage_options=options)
        models.append(fitted(name, X, lazy=True)[0])
        models.append(face.call(make().fit, stored, None if kind == "none" else "y"))
    for model in models:
        for attribute in ("labels_", "inertia_"):
            getattr(model, attribute, None)
        text = pickle.dumps(model)
        assert b"not for others" not in text
        assert b"dask." not in text
        again = pickle.loads(text)
        labels = 4 * len(X) if isinstance(getattr(model, "labels_", 0), np.ndarray) else 0
        if name != "odm":  # whose support vectors are many
            assert len(text) < 20_000 + labels
        for method in methods_of(model):
            asked = table[["a", "b"]] if hasattr(model, "feature_names_in_") else X
            expected = getattr(model, method)(asked)
            np.testing.assert_array_equal(getattr(again, method)(asked), expected)


class _Failing(LogisticRegression):  # type: ignore[misc] # scikit-learn has no annotations
    """Fails in its first fit, as with a parameter that is wrong for the data."""

    fits: ClassVar[list[int]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.fits.append(len(X))
        if len(self.fits) == 1:
            raise ValueError("the first fit knows what is wrong")
        return super().fit(X, y, sample_weight)


def test_any_estimator__is_fitted_once_and_its_error_is_shown() -> None:
    X = np.repeat(rows(40), 5, axis=0)
    y = np.repeat(np.arange(40) % 2, 5)
    _Failing.fits.clear()
    with pytest.raises(ValueError, match="the first fit") as raised:
        E.CoresetEstimator(_Failing(), size=150, random_state=0).fit(X, y)
    assert len(_Failing.fits) == 1
    assert raised.value.__context__ is None


def test_any_clusterer__of_fewer_distinct_rows_than_clusters() -> None:
    X = np.repeat(rows(4), 50, axis=0)
    model = E.CoresetEstimator(KMeans(6, n_init=1), size=80, random_state=0)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model.fit(X)
    assert len(np.unique(model.predict(X))) == 4


def _all_inputs(X: Any, folder: Path) -> dict[str, Any]:
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    pd, zarr = pytest.importorskip("pandas"), pytest.importorskip("zarr")
    table = pd.DataFrame(X, columns=["a", "b"])
    table.assign(other=1.0).to_parquet(folder / "rows.parquet")
    zarr.save_array(folder / "rows.zarr", X)
    return {
        "array": X,
        "dask": da.from_array(X, chunks=(70, 1)),
        "zarr path": str(folder / "rows.zarr"),
        "frame": table,
        "dask frame": dd.from_pandas(table, npartitions=3),
        "rows": face.open_rows(str(folder / "rows.parquet"), columns=["a", "b"]),
        "coreset": face.Coreset(X, np.ones(len(X)), np.arange(len(X))),
    }


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
def test_frozen__a_fitted_model_predicts_for_rows_of_any_input(named: bool, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X = rows(300)
    known = pd.DataFrame(X, columns=["a", "b"]) if named else X
    y = np.where(X[:, 0] > 0.0, "right", "left")
    inputs = _all_inputs(X, tmp_path)
    models = (
        (KMeans(3, n_init=1, random_state=0).fit(known), ("predict", "transform", "score")),
        (
            LogisticRegression().fit(known, y),
            ("predict", "predict_proba", "decision_function", "score"),
        ),
        (make_pipeline(StandardScaler(), Ridge()).fit(known, X[:, 1]), ("predict", "score")),
    )
    for model, methods in models:
        frozen = E.CoresetEstimator(FrozenEstimator(model))
        truth = {"LogisticRegression": (y,), "Pipeline": (X[:, 1],)}.get(type(model).__name__, ())
        before = dict(vars(frozen))
        for copied in (frozen, pickle.loads(pickle.dumps(frozen))):
            for kind, given in inputs.items():
                for method in methods:
                    if method == "score" and truth and kind in ("rows", "dask frame", "coreset"):
                        continue  # which need y beside them
                    of_score = truth if method == "score" else ()
                    expected = getattr(model, method)(known, *of_score)
                    answer = getattr(copied, method)(given, *of_score)
                    in_memory = kind in ("array", "frame", "coreset")
                    assert in_memory or method == "score" or hasattr(answer, "__dask_graph__")
                    if np.asarray(expected).dtype.kind == "f":
                        np.testing.assert_allclose(np.asarray(answer), expected, rtol=1e-9)
                    else:
                        np.testing.assert_array_equal(np.asarray(answer), expected)
        assert vars(frozen) == before
    with pytest.raises(face.CoresetError, match="2 features"):
        frozen.predict(X[:, :1])
    with pytest.raises(NotFittedError):
        E.CoresetEstimator(FrozenEstimator(KMeans(3))).predict(X)
    with pytest.raises(NotFittedError):
        E.CoresetEstimator(KMeans(3)).predict(X)
