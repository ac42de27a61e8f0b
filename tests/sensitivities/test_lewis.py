"""Lewis weights for l1 regression: a method that is not part of the package, as an example.

Cohen and Peng (2015), Lp row sampling by Lewis weights. With the rows a = (x, 1, y), the weight of
a row is w(a) = sqrt(a^T M^-1 a) with M = sum u(a) a a^T / w(a). Each pass halves the logarithm of
the error of w. A row has at most the share w(a) in any sum of absolute residuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.block import Block
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import LeastSquaresCost
from daskcoreset.sensitivities import Sensitivity, Uniform
from daskcoreset.sensitivities.least_squares import leverages, total_leverage, with_targets
from daskcoreset.testing import SensitivityContract

# --- the example: one file of daskcoreset/sensitivities -----------------------------------


@dataclass(frozen=True)
class AbsoluteCost(LeastSquaresCost):
    """The cost sum u(x) |y(x) - <x, w> - b|, judged at least squares solutions."""

    name: ClassVar[str] = "absolute deviations"

    def losses(self, block: Block, solution: Any) -> FloatArray:
        """Absolute residuals of the rows."""
        return np.sqrt(super().losses(block, solution))


@dataclass(frozen=True)
class LewisWeights(Sensitivity[Scatter]):
    """Coresets for l1 regression, by approximate Lewis weights of the rows (x, 1, y)."""

    n_passes: int = 4

    name: ClassVar[str] = "lewis"
    citation: ClassVar[str] = "Cohen and Peng (2015), section 3"
    labels: ClassVar[Literal["numbers"]] = "numbers"
    max_columns: ClassVar[int] = 2**12
    total_scores_exact: ClassVar[bool] = False

    @property
    def objective(self) -> AbsoluteCost:
        return AbsoluteCost()

    @property
    def n_folds(self) -> int:
        return self.n_passes

    def block_summary(
        self, block: Block, previous: Scatter | None, rng: np.random.Generator
    ) -> Scatter:
        """Return M of the block, with the weights of the pass before."""
        del rng
        shares = block.weights
        if previous is not None:
            shares = shares / np.maximum(self._weights(block, previous), 1e-300)
        return scatter_of(with_targets(block), shares)

    def merge(self, first: Scatter, second: Scatter) -> Scatter:
        return merge_scatters(first, second)

    def scores(self, block: Block, summary: Scatter) -> FloatArray:
        return block.weights * self._weights(block, summary)

    def total_scores(self, local: Scatter, summary: Scatter) -> float:
        """Estimate the sum by that of a^T M^-1 a / w(a), which it is once w no longer changes."""
        return total_leverage(local, summary, intercept=True)

    def _weights(self, block: Block, summary: Scatter) -> FloatArray:
        if summary.weight == 0.0:
            return np.zeros(len(block))
        rows = with_targets(block)
        return np.sqrt(leverages(rows, block.weights, summary, intercept=True))


# --- its tests -----------------------------------------------------------------------------


class TestLewisWeights(SensitivityContract):
    def construction(self) -> LewisWeights:
        return LewisWeights()


def data(n: int = 4000) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * rng.lognormal(size=(n, 1))
    y = X @ [1.0, -2.0, 0.5] + rng.laplace(size=n)
    y[:20] += 500.0
    return X, y


def test_scores__are_those_of_a_plain_reading_of_the_fixed_point() -> None:
    X, y = data(300)
    rows, w = np.column_stack([X, np.ones(300), y]), np.ones(300)
    for _ in range(60):
        inverse = np.linalg.inv(rows.T @ (rows / w[:, np.newaxis]))
        w = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
    assert w.sum() == pytest.approx(5.0)
    method, known = LewisWeights(n_passes=12), None
    block = Block(X, np.ones(300), y)
    for _ in range(method.n_folds):
        known = method.block_summary(block, known, np.random.default_rng(0))
    assert known is not None
    assert np.allclose(method.scores(block, known), w, rtol=1e-2)


def test_build__by_its_name_costs_are_closer_than_those_of_uniform_rows() -> None:
    X, y = data()
    errors = {}
    for method in ("lewis", Uniform()):
        found = [build(X, y, size=200, method=method, random_state=seed) for seed in range(5)]
        audits = [one.audit(X, y, objective=AbsoluteCost(), random_state=0) for one in found]
        errors[found[0].provenance["method"]] = np.mean([one.distortion for one in audits])
    assert errors["lewis"] < 0.5 * errors["uniform"]


def test_name__of_a_built_in_method_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="has the name 'uniform' of the method Uniform"):
        type("Other", (Uniform,), {"name": "uniform"})
