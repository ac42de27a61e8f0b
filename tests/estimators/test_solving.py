"""From an estimator to its solver: parameters handed on, seeds, what is refused before a read."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import CoresetLogisticRegression, CoresetSVC, LinearSVM

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
Y = (X @ [2.0, -1.0, 0.5, 0.0, 0.0, 0.0] + RNG.logistic(size=400) > 0).astype(int)


BEFORE_1_8 = LogisticRegression().get_params().get("penalty") == "l2"
"""Whether scikit-learn takes the penalty by name, and three classes with liblinear."""


def twin_of(**options: Any) -> LogisticRegression:
    """Return scikit-learn's model; before 1.8 it takes the penalty by name, not by `l1_ratio`."""
    if BEFORE_1_8:
        ratio = options.pop("l1_ratio", 0.0)
        if np.isinf(options.get("C", 1.0)):
            options |= {"penalty": None, "C": 1.0}
        elif ratio not in (0.0, 1.0):
            options |= {"penalty": "elasticnet", "l1_ratio": ratio}
        elif ratio == 1.0:
            options["penalty"] = "l1"
    return LogisticRegression(**options)


@pytest.mark.parametrize(
    "options",
    [
        *({"solver": name} for name in ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")),
        {"solver": "saga", "l1_ratio": 0.5},
        {"solver": "saga", "l1_ratio": 1.0},
        {"solver": "saga", "C": np.inf},
        {"solver": "liblinear", "l1_ratio": 1.0, "intercept_scaling": 7.0},
        {"solver": "liblinear", "dual": True},
    ],
    ids=str,
)
def test_logistic_regression__all_rows_give_the_twin(options: dict[str, Any]) -> None:
    options = {"C": 0.3, "tol": 1e-9, "max_iter": 20_000, **options}
    twin = twin_of(random_state=0, **options).fit(X, Y)
    model = CoresetLogisticRegression(random_state=0, **options).fit(X, Y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, twin.intercept_, atol=1e-4)
    assert (model.coef_ == 0).any() == (options.get("l1_ratio", 0) == 1)


@pytest.mark.parametrize(
    "options",
    [
        {"l1_ratio": 1.0},
        {"solver": "liblinear", "l1_ratio": 0.5},
        {"solver": "liblinear", "C": np.inf},
        {"dual": True},
    ],
    ids=str,
)
def test_logistic_regression__refused_before_a_read_in_the_words_of_the_twin(
    options: dict[str, Any],
) -> None:
    def unreadable(block: Any) -> Any:
        raise AssertionError(block.shape)

    with pytest.raises(ValueError, match="olver") as theirs:
        twin_of(**options).fit(X, Y)
    lazy = da.from_array(X, chunks=(100, 6)).map_blocks(unreadable, dtype=float, meta=np.empty(0))
    model = CoresetLogisticRegression(**options)
    for fit in (model.fit, model.partial_fit):
        with pytest.raises(InvalidInputError) as ours:
            fit(lazy, da.from_array(Y, chunks=100))
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared_hinge"},
        {"loss": "squared_hinge", "penalty": "l1", "dual": False, "intercept_scaling": 10.0},
        {"dual": True},
        {"multi_class": "crammer_singer"},
    ],
    ids=str,
)
def test_svc__all_rows_give_the_twin(options: dict[str, Any]) -> None:
    options = {"C": 0.1, "tol": 1e-8, "max_iter": 100_000, **options}
    twin = LinearSVC(random_state=0, **{"loss": "hinge", **options}).fit(X, Y)
    model = CoresetSVC(random_state=0, **options).fit(X, Y)
    assert type(model.estimator_) is LinearSVC
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, twin.intercept_, atol=1e-3)
    assert type(CoresetSVC().fit(X, Y).estimator_) is LinearSVM


# scikit-learn 1.7 counts no steps of this solver: their number is whatever the memory held.
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_svc__all_classes_at_once() -> None:
    three = Y + (X[:, 2] > 0.5)
    options: dict[str, Any] = {
        "multi_class": "crammer_singer",
        "C": 0.1,
        "tol": 1e-8,
        "max_iter": 100_000,
    }
    twin = LinearSVC(random_state=0, **options).fit(X, three)
    model = CoresetSVC(random_state=0, **options).fit(X, three)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=1e-3)
    lazy = da.from_array(X, chunks=(100, 6))
    drawn = CoresetSVC(size=200, random_state=0, **options).fit(lazy, da.from_array(three, 100))
    assert (np.asarray(drawn.predict(lazy)) == twin.predict(X)).mean() > 0.85


def test_logistic_regression__a_solver_that_draws_has_a_seed() -> None:
    def coef(model: Any) -> Any:
        with pytest.warns(ConvergenceWarning):
            return model.fit(X, Y).coef_

    def made(seed: int, **options: Any) -> Any:
        return CoresetLogisticRegression(
            solver="saga", max_iter=2, random_state=seed, tol=0.0, **options
        )

    np.testing.assert_array_equal(coef(made(0)), coef(made(0)))
    assert (coef(made(0)) != coef(made(1))).any()  # all rows are taken: it is the solver's
    stream = made(0)
    with pytest.warns(ConvergenceWarning):
        stream.partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    np.testing.assert_array_equal(stream.coef_, coef(made(0)))
