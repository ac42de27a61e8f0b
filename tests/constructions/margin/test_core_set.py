"""Two classes: certificates on inputs that lead astray, soft margins, and what is recorded."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskcoreset import estimators
from daskcoreset.errors import CoresetWarning, NotSeparableError
from daskcoreset.estimators import MaxMarginClassifier
from daskcoreset.solvers.hard_margin import hard_margin
from tests.tools.margins import rows


def test_float32_with_a_large_offset() -> None:
    X, y = rows(6, 500, 3, 1.0)
    X = (X + 1e4).astype(np.float32)
    model = MaxMarginClassifier(0.01).fit(da.from_array(X, chunks=(100, 3)), y)
    largest = hard_margin(X, y, intercept=True).margin
    reached = (y * model.decision_function(X)).min()
    assert model.margin_ == pytest.approx(reached, rel=1e-9)
    assert model.margin_ >= 0.99 * largest * (1 - 1e-9)
    assert model.core_margin_ >= largest * (1 - 1e-9)
    assert model.coreset_.provenance["radius"] < 100


def test_a_class_that_is_rare_within_a_block() -> None:
    X, y = rows(20, 6000)
    plus = np.flatnonzero(y > 0)
    # Two thousand rows are looked at for a guess, at even steps: not this one.
    rare = np.r_[plus[:2], np.flatnonzero(y < 0)[:1], plus[2:]]
    rare = np.r_[rare, plus, plus]
    assert len(rare) > 8000
    data = da.from_array(X[rare], chunks=(len(rare), 4)), y[rare]
    model = MaxMarginClassifier().fit(*data)
    assert model.margin_ >= 0.9 * hard_margin(X[rare], y[rare], intercept=True).margin


def test_epsilon_that_was_used_is_recorded() -> None:
    """In memory reads cost nothing, and a tighter certificate is reached."""
    X, y = rows(1, 300)
    lazy = da.from_array(X, chunks=(100, 4))
    three = MaxMarginClassifier(0.3).fit(np.eye(3), [0, 1, 2])
    assert three.coreset_.provenance["epsilon"] == 1e-6
    assert MaxMarginClassifier(0.3).fit(X, y).coreset_.provenance["epsilon"] == 1e-9
    assert MaxMarginClassifier(0.3).fit(lazy, y).coreset_.provenance["epsilon"] == 0.3


@pytest.mark.parametrize("name", ["MaxMarginClassifier", "OutlierMaxMarginClassifier"])
def test_a_fit_that_fails_leaves_the_model_as_it_is(name: str) -> None:
    X, y = rows(2, 60)
    model = getattr(estimators, name)(on_inseparable="raise").fit(X, np.where(y > 0, "a", "b"))
    margin, predicted = model.margin_, model.predict(X)
    with pytest.raises(NotSeparableError):
        model.fit(X, np.where(np.arange(60) % 2, "c", "d"))
    assert model.classes_.tolist() == ["a", "b"]
    assert model.margin_ == margin
    assert (model.predict(X) == predicted).all()


def test_soft_margin_of_more_columns_than_rows() -> None:
    """Every minimum has a gradient of zero, in columns of mean zero and unit spread."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 80)), rng.choice([-1.0, 1.0], 30)
    X[1], y[1] = X[0], -y[0]
    with pytest.warns(CoresetWarning, match="soft"):
        model = MaxMarginClassifier(C=0.7).fit(X, y)
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / spread
    w, b = model.coef_[0] * spread, model.intercept_[0] + model.coef_[0] @ X.mean(axis=0)
    forces = -1.4 * y * np.maximum(0.0, 1.0 - y * (scaled @ w + b))
    assert np.abs(w + forces @ scaled).max() < 1e-9
    assert abs(forces.sum()) < 1e-9
