"""Errors name the argument, the finding and the remedy, and are of the types that one expects."""

from __future__ import annotations

import pickle
import time
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)

BAD: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("size", {"size": 0}, ValueError),
    ("size", {"size": 2.5}, TypeError),
    ("size", {"size": "many"}, ValueError),
    ("size", {"size": True}, TypeError),
    ("method", {"method": "k-means"}, ValueError),
    ("method", {"method": 7}, TypeError),
    ("random_state", {"random_state": "seed"}, TypeError),
    ("random_state", {"random_state": -1}, ValueError),
    ("chunks", {"chunks": 0}, ValueError),
    ("on_invalid", {"on_invalid": "ignore"}, ValueError),
    ("n_clusters", {"n_clusters": 0, "method": "kmeans"}, ValueError),
    ("n_clusters", {"method": "kmeans"}, TypeError),
    ("sampling", {"draw": partial(face.Draw, sampling="random")}, ValueError),  # type: ignore[arg-type]
    ("passes", {"draw": partial(face.Draw, passes=3)}, ValueError),  # type: ignore[arg-type]
    ("normalize", {"draw": partial(face.Draw, normalize="no")}, TypeError),  # type: ignore[arg-type]
    ("split_every", {"draw": partial(face.Draw, split_every=1)}, ValueError),
    ("inner_size", {"draw": face.MergeReduce(inner_size=3), "size": 10}, ValueError),
    ("sample_weight", {"sample_weight": np.ones(3)}, ValueError),
    ("sample_weight", {"sample_weight": -np.ones(200)}, ValueError),
    ("y", {"method": "svm"}, ValueError),
    ("diameter", {"method": partial(face.Coverage, diameter=-1.0)}, ValueError),
]


@pytest.mark.parametrize(("argument", "options", "kind"), BAD, ids=lambda one: str(one)[:40])
def test_build__names_the_argument(
    argument: str, options: dict[str, Any], kind: type[Exception]
) -> None:
    for rows in (X, da.from_array(X, chunks=(60, 3))):
        with pytest.raises(face.CoresetError) as caught:
            face.build(rows, **options)
        text = str(caught.value)
        assert argument in text
        assert caught.value.argument == argument
        assert text == f"{caught.value.problem}; {caught.value.remedy}."
        assert isinstance(caught.value, (kind, ValueError, TypeError))


PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    ("CoresetKMeans", {"n_clusters": 0}),
    ("CoresetKMeans", {"max_iter": 0}),
    ("CoresetBregman", {"divergence": "hellinger"}),
    ("CoresetGaussianMixture", {"n_components": 0}),
    ("CoresetGaussianMixture", {"covariance_type": "round"}),
    ("CoresetSVC", {"C": 0.0}),
    ("CoresetLogisticRegression", {"C": -1.0}),
    ("CoresetRidge", {"alpha": -1.0}),
    ("CoresetElasticNet", {"l1_ratio": 2.0}),
    ("ODMClassifier", {"theta": 1.0}),
    ("ODMClassifier", {"mu": 0.0}),
    ("MaxMarginClassifier", {"epsilon": 0.0}),
    ("MaxMarginClassifier", {"epsilon": 1.0}),
    ("OutlierMaxMarginClassifier", {"k": -1}),
    ("OutlierMaxMarginClassifier", {"confidence": 1.0}),
    ("ActiveMaxMarginClassifier", {"delta": 0.0}),
    ("ActiveMaxMarginClassifier", {"error": 1.5}),
    ("StructuredMaxMargin", {"epsilon": -0.1}),
]


@pytest.mark.parametrize(("name", "options"), PARAMETERS, ids=str)
def test_fit__names_the_parameter(name: str, options: dict[str, Any]) -> None:
    model = getattr(face.estimators, name)(**options)
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        model.fit(X, Y)


def test_typing_errors__get_a_suggestion() -> None:
    for options in ({"method": "k-means"}, {"method": "K means"}, {"method": "kmean"}):
        with pytest.raises(face.CoresetError, match='did you mean "kmeans"'):
            face.build(X, **options)
    with pytest.raises(face.CoresetError, match='did you mean "systematic"'):
        face.Draw(sampling="systematical")  # type: ignore[arg-type]


def test_errors__come_back_from_a_pickle_with_their_fields() -> None:
    with pytest.raises(face.CoresetError) as caught:
        face.build(X, size=0)
    again = pickle.loads(pickle.dumps(caught.value))
    fields = ("problem", "argument", "remedy")
    assert [getattr(again, name) for name in fields] == [
        getattr(caught.value, name) for name in fields
    ]
    assert str(again) == str(caught.value)


METHODS: list[tuple[Any, dict[str, Any]]] = [
    (face.StrongKMeans, {"n_clusters": 0}),
    (face.StrongBregman, {"n_clusters": 3, "divergence": "none"}),
    (face.Mixture, {"n_components": 0}),
    (face.Logistic, {"lam": -1.0}),
    (face.LeastSquares, {"alpha": -1.0}),
    (face.LightweightBregman, {"divergence": "none"}),
]


@pytest.mark.parametrize(("make", "options"), METHODS, ids=str)
def test_method__names_the_parameter(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(face.CoresetError, match=list(options)[-1]):
        make(**options)


def test_time_limit__ends_a_read() -> None:
    def slow(block: Any) -> Any:
        time.sleep(0.2)
        return block

    rows = da.from_array(X, chunks=(2, 3)).map_blocks(slow, meta=np.empty((0, 3)))
    begun = time.monotonic()
    with pytest.raises(face.errors.OutOfTimeError) as caught, face.time_limit(0.5):
        face.build(rows, size=20)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - begun < 8


def test_time_limit__lets_work_end_that_is_in_time() -> None:
    """One of several builds, for a busy machine may have no time for the first."""
    for attempt in range(20):
        try:
            with face.time_limit(0.9):
                assert len(face.build(X, size=20)) == 20
        except face.errors.OutOfTimeError:
            assert attempt < 19
        else:
            break


def test_errors__of_the_library_have_one_base() -> None:
    for name in ("InvalidInputError", "InvalidTypeError", "StoreError", "OutOfTimeError",
                 "MissingDependencyError"):  # fmt: skip
        assert issubclass(getattr(face.errors, name), face.CoresetError)
    assert issubclass(face.errors.InvalidInputError, ValueError)
    assert issubclass(face.errors.InvalidTypeError, TypeError)
    assert issubclass(face.errors.MissingDependencyError, ImportError)
    assert issubclass(face.CoresetWarning, UserWarning)
