"""Brackets bound every row that there may be, for every objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.mixture import GaussianMixture

from daskcoreset.core.block import Block
from daskcoreset.objectives import (
    Distortion,
    LinearClassifier,
    LinearCost,
    MixtureCost,
    Objective,
    QuantizationError,
)
from tests.pairs import each
from tests.tools.heavy_tails import X

if TYPE_CHECKING:
    import pytest


@each(
    weighted=[False, True],
    name=["centers", "kl", "mahalanobis", "mixture", "tied", "diag", "svm", "wide", "logistic"],
)
def test_brackets__bound_every_row_there_may_be(
    name: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the coreset, of the data, and far from both; of labels that it has not seen."""
    if name == "wide":  # more columns than a matrix is made for
        monkeypatch.setattr("daskcoreset.objectives.cells._MAX_COLUMNS", 2)
    rng = np.random.default_rng(8)
    own = np.abs(X[rng.integers(len(X), size=300)]) + 0.1
    rows = np.abs(np.concatenate([X[::7], 40 * X[:50], rng.normal(size=(50, 3)) * 1e-3])) + 1e-4
    u = rng.random(len(rows)) if weighted else np.ones(len(rows))
    block = Block(own, np.ones(300) * 20, rng.integers(2, size=300))
    far = Block(rows, u, rng.integers(3, size=len(rows)))
    objectives: dict[str, Objective[Any]] = {
        "centers": QuantizationError(5),
        "kl": Distortion(5, "kl"),
        "mahalanobis": Distortion(5, "mahalanobis"),
        "mixture": MixtureCost(3),
        "tied": MixtureCost(3),
        "diag": MixtureCost(3),
        "wide": LinearCost("hinge"),
        "svm": LinearCost("hinge", 0.5),
        "logistic": LinearCost("logistic"),
    }
    objective = objectives[name].fitted(block)
    cells = objective.cells(block, 5, rng)
    cells = cells.scored(cells.sums(block, cells.place(block)), 20.0)
    others = [objective.seed(block, rng) for _ in range(3)]
    if name in ("tied", "diag"):
        fitted: Any = GaussianMixture(3, covariance_type=name, random_state=0).fit(own)
        others = [objective.read(fitted, 3, "solution")]
    if isinstance(objective, LinearCost):  # of a class that the coreset has no row of
        others.append(LinearClassifier(rng.normal(size=3), 0.5, 2))
    placed, score = cells.place(far), cells.score(cells.place(far))
    assert (score > 0).all()
    farthest = np.full(len(cells), -1.0)
    np.maximum.at(farthest, placed.cells, placed.z[1])
    assert cells.scores is not None
    for solution in (objective.solve(block, rng), *others):
        losses = objective.losses(far, solution)
        found = list(objective.brackets(cells, solution, others))
        assert found
        for bracket, known in found:
            held = losses - (bracket.control[:, placed.cells] * placed.z).sum(axis=0)
            if known is not None:
                held -= objective.losses(far, others[known])
            rounding = 1e-9 * losses.max()
            for sign, bounds in ((1, bracket.high), (-1, bracket.low)):
                most = (bounds[:, :, placed.cells] * placed.z).sum(axis=1)
                assert (sign * held <= most.min(axis=0) + rounding).all()
                for reach in (farthest, np.full(len(cells), np.inf)):
                    largest = cells.ratio(bounds, cells.scores, reach)
                    assert (most.min(axis=0) <= largest * score * (1 + 1e-9)).all()
