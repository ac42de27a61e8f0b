"""Active learning: few labels, and a guarantee that holds."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.constructions.margin.active import OracleError
from daskcoreset.errors import CoresetWarning
from daskcoreset.estimators import ActiveMaxMarginClassifier
from daskcoreset.solvers.hard_margin import hard_margin, hard_margin_bias
from tests.pairs import each
from tests.tools.active_pools import W, above, looked_up, separable


@each(batch=[1, 4], intercept=[True, False])
def test_active__finds_nearly_the_largest_margin_with_few_labels(
    intercept: bool, batch: int
) -> None:
    X = np.random.default_rng(3).normal(size=(6000, 4)) + (0 if not intercept else 10)
    height = (X - (10 if intercept else 0)) @ W
    X, height = X[np.abs(height) > 0.05], height[np.abs(height) > 0.05]
    y = np.where(height > 0, 1, -1)
    model = ActiveMaxMarginClassifier(fit_intercept=intercept, batch=batch, random_state=0)
    model.fit(da.from_array(X, chunks=(1500, 4)), oracle=looked_up(y))
    found = model.result_
    assert found.stopped == "verified"
    assert found.n_labels < len(X) / 15
    assert (found.predict(X) == y).all()
    # On everything, by the solver itself: rows within the margin of the best are what counts.
    near = np.argsort(np.abs(height))[:400]
    whole = (
        hard_margin_bias(X[near], y[near]) if intercept else hard_margin(X[near] * y[near, None])
    )
    least = (y * (X @ found.w + found.b)).min()
    assert np.isclose(np.linalg.norm(found.w), 1.0)
    assert np.isclose(model.margin_, least)
    assert 0.9 * found.margin - 1e-9 <= least <= whole.margin * (1 + 1e-6)
    assert least >= 0.9 * whole.margin * (1 - 1e-6)
    rows = X[found.core_indices]
    reach = np.square(rows - (rows.mean(axis=0) if intercept else 0)).sum(axis=1).max()
    assert len(found.core_indices) <= 2 + 4 * reach / (0.1 * found.margin) ** 2
    assert np.array_equal(found.core_labels, y[found.core_indices])


@pytest.mark.statistical
def test_active__guarantee_holds_over_seeds() -> None:
    """Error above 0.2 with chance 0.2 at most; 24 runs, false alarm below 1e-6.

    A Binomial(24, 0.2) passes 16 with chance 1e-7. A far group of rows that the first
    separators have on the wrong side is never close to the boundary: only verification sees it.
    """
    rng = np.random.default_rng(0)
    bulk = rng.uniform(-1, 1, size=(400, 3)) * [1, 1, 0]
    bulk = bulk[np.abs(bulk[:, 0]) > 0.05]
    X = np.concatenate([bulk, rng.normal([40, 40, 30], 0.1, (150, 3))])
    y = np.where((X[:, 0] > 0) & (X[:, 2] < 20), 1, -1)
    wrong = 0
    for seed in range(24):
        model = ActiveMaxMarginClassifier(error=0.2, delta=0.2, random_state=seed)
        found = model.fit(X, oracle=looked_up(y)).result_
        assert found.stopped == "verified"
        wrong += bool((found.predict(X) != y).mean() > 0.2)
    assert wrong <= 16


@pytest.mark.nightly
def test_soft__wrong_labels_are_forgiven() -> None:
    X = separable(3000)
    y = above(X)
    flipped = np.random.default_rng(1).choice(len(X), 30, replace=False)
    y[flipped] = np.where(y[flipped] == "yes", "no", "yes")
    model = ActiveMaxMarginClassifier(error=0.01, random_state=0, max_labels=300)
    with pytest.warns(CoresetWarning, match="errors are allowed"):
        model.fit(X, y)
    assert model.score(X, above(X)) > 0.97
    with pytest.raises(OracleError, match="contradict") as caught:
        model.set_params(on_inseparable="raise").fit(X, y)
    assert caught.value.asking is not None
    assert caught.value.asking.n_labels > 0
    found = model.start(X, soft=True).run(looked_up(y))
    assert (found.predict(X) == above(X)).mean() > 0.97


def test_start__goes_on_from_the_labels_alone() -> None:
    X = separable(2000)
    model = ActiveMaxMarginClassifier(random_state=0)
    whole = model.start(X).run(above)
    run = model.start(X)
    for _ in range(6):
        request = run.ask()
        assert request is not None
        run.tell(above(request.rows))
    part = run.result()
    again = model.start(X, known=(part.indices, part.labels)).run(above)
    assert again.stopped == whole.stopped == "verified"
    assert (again.predict(X) == above(X)).all()
    assert again.indices.tolist()[: len(part.indices)] == part.indices.tolist()
    assert again.n_labels == len(again.indices) - len(part.indices)
    assert 0.9 * again.margin - 1e-9 <= again.data_margin <= again.margin + 1e-9


def test_tell__keeps_a_label_that_softens_the_margin() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    run = ActiveMaxMarginClassifier(random_state=0, C=5.0).start(X, known=([0, 4], [0, 1]))
    with pytest.warns(CoresetWarning, match="errors are allowed from here on, with C=5"):
        found = run.run(lambda rows: (rows[:, 0] % 2).astype(int) if len(rows) else rows)
    assert found.stopped in {"exhausted", "stalled", "verified"}
    assert len(set(found.indices.tolist())) == len(found.indices) == found.n_labels + 2


def test_inputs__agree(tmp_path: Path) -> None:
    import zarr

    X = separable(2000)
    model = ActiveMaxMarginClassifier(random_state=0)
    whole = model.start(X).run(above)
    stored = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, chunks=(300, 4), dtype="f8")
    stored[:] = X
    unknown = da.from_array(X, chunks=(300, 4))
    unknown = unknown[unknown[:, 0] > -np.inf]
    empty = da.concatenate([da.zeros((0, 4)), unknown])
    spoilt = np.insert(X, 5, np.nan, axis=0)
    for data in (str(tmp_path / "X.zarr"), unknown, empty, sp.csr_array(X)):
        found = model.start(data).run(above)
        assert np.array_equal(found.indices, whole.indices)
        assert np.allclose(found.w, whole.w)
    lazy = da.from_array(spoilt, chunks=(100, 4))
    found = model.set_params(on_invalid="drop").start(lazy).run(above)
    shifted = whole.indices + (whole.indices >= 5)
    assert np.array_equal(found.indices, shifted)
