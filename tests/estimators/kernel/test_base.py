"""What all classifiers on core points have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators import AVMClassifier, CSVRGClassifier, ODMClassifier
from tests.pairs import each
from tests.tools.kernel_rows import CLASSES, ROWS

# The certificate of "csvrg" is rarely below its tolerance, and fits say so.
pytestmark = pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)


MODELS = [
    CSVRGClassifier(max_points=40, lam=200.0, gamma=5.0, random_state=0),
    CSVRGClassifier(max_points=40, lam=20.0, gamma=5.0, solver="csvrg", tol=1e-3, random_state=0),
    AVMClassifier(max_points=40, lam=200.0, gamma=5.0, random_state=0),
]


TWO_CLASSES = np.where(CLASSES == "in", "in", "out")


def name_of(model: Any) -> str:
    return f"{type(model).__name__}-{getattr(model, 'solver', '')}"


@each(y={"two": TWO_CLASSES, "three": CLASSES}, model=MODELS)
def test_fit__accurate_with_few_core_points(model: Any, y: AnyArray) -> None:
    model = clone(model).fit(ROWS, y)
    assert model.score(ROWS, y) > (0.93 if y is TWO_CLASSES else 0.85)
    assert model.n_core_points_ == len(model.core_points_) == 40
    k = 1 if y is TWO_CLASSES else 3
    assert model.dual_coef_.shape == (k, 40)
    assert np.shape(model.objective_) == (() if k == 1 else (3,))
    decided = model.decision_function(ROWS)
    assert decided.shape == ((len(ROWS),) if k == 1 else (len(ROWS), 3))
    best = (decided > 0).astype(int) if k == 1 else decided.argmax(axis=1)
    assert np.array_equal(model.classes_[best], model.predict(ROWS))
    gaps = np.sqrt(((ROWS[:, np.newaxis] - model.core_points_) ** 2).sum(axis=2)).min(axis=1)
    assert gaps.max() <= model.diameter_ / 2 * (1 + 1e-6)
    assert model.trace_[-1]["reads"] >= model.trace_[0]["reads"]


@pytest.mark.parametrize(
    "model",
    [
        CSVRGClassifier(gamma=5.0, max_points=30, random_state=0),
        AVMClassifier(gamma=5.0, max_points=30, random_state=0),
        ODMClassifier(gamma=5.0, random_state=0),
    ],
    ids=name_of,
)
def test_cost__times_the_total_weight_is_lambda(model: Any) -> None:
    """Not times the number of rows: a row twice counts as a row of weight two."""
    rows, labels, u = ROWS[:200], TWO_CLASSES[:200], np.random.default_rng(0).uniform(0.1, 9.0, 200)
    by_cost = clone(model).set_params(C=0.3).fit(rows, labels, sample_weight=u)
    by_lambda = clone(model).set_params(lam=0.3 * u.sum()).fit(rows, labels, sample_weight=u)
    assert by_cost.lam_ == pytest.approx(0.3 * u.sum())
    assert np.allclose(by_cost.decision_function(ROWS), by_lambda.decision_function(ROWS))
