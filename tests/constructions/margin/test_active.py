"""Active learning: few labels, and a guarantee that holds."""

from __future__ import annotations

import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset.estimators import ActiveMaxMarginClassifier

W, B = np.array([1.0, -2.0, 0.5, 0.0]) / np.sqrt(5.25), 0.3


def separable(n: int = 6000, gap: float = 0.06, seed: int = 0) -> np.ndarray[Any, Any]:
    X = np.random.default_rng(seed).normal(size=(n, 4))
    kept: np.ndarray[Any, Any] = X[np.abs(X @ W + B) > gap]
    return kept


def above(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(rows @ W + B > 0, "yes", "no")


def looked_up(y: np.ndarray[Any, Any]) -> Any:
    return lambda rows, indices: y[indices]  # noqa: ARG005 - named by the protocol


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


def test_run__goes_on_in_another_process() -> None:
    X = separable(600)
    run = ActiveMaxMarginClassifier(random_state=0).start(X)
    request = run.ask()
    assert request is not None
    copy = pickle.loads(pickle.dumps(run))
    assert copy.ask().indices.tolist() == request.indices.tolist()
    found = copy.run(above)
    assert found.stopped == "verified"
    assert found.indices[0] == request.indices[0]


def test_ask__goes_on_after_a_read_that_failed() -> None:
    """Labels are all of the state: what was asked begins anew, and nothing is paid for twice."""
    X, failing = separable(600), [False]

    def block(rows: Any) -> Any:
        if failing[0]:
            raise OSError("gone")
        return rows

    lazy = da.from_array(X, chunks=(200, 4)).map_blocks(block, dtype=float)
    run = ActiveMaxMarginClassifier(random_state=0, batch=3).start(lazy)
    for _ in range(4):
        request = run.ask()
        assert request is not None
        run.tell(above(request.rows))
        failing[0] = True
        with pytest.raises(OSError, match="gone"):
            run.ask()
        failing[0] = False
    found = run.run(above)
    assert found.stopped == "verified"
    assert len(set(found.indices.tolist())) == len(found.indices) == found.n_labels
    assert (found.predict(X) == above(X)).all()
