"""The cost of linear regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.invalid import InvalidRow, find_inexact, find_unusable_row
from daskcoreset.core.labels import find_unusable_label
from daskcoreset.core.linalg import dense_rows, inner_products, one_thread
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives.base import Objective
from daskcoreset.objectives.linear import coefficients


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    r"""The prediction :math:`\langle x, w \rangle + b`.

    See :doc:`/guides/labels`.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
        The coefficients w.
    intercept : float
        The intercept b.
    """

    coef: FloatArray
    intercept: float


@dataclass(frozen=True)
class LeastSquaresCost(Objective[LinearPredictor]):
    r"""The cost :math:`\sum_x u(x) (y(x) - \langle x, w \rangle - b)^2 + \alpha |w|^2`.

    See :doc:`/guides/trust`.

    Parameters
    ----------
    intercept : bool, default=True
        Whether the solutions of an audit have an intercept.
    alpha : float, default=0.0
        Weight of the penalty.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(10_000, 2))
    >>> y = X[:, 0] + rng.normal(size=10_000)
    >>> coreset = daskcoreset.build(X, y, size=500, method="uniform", random_state=0)
    >>> coreset.audit(X, y, objective=LeastSquaresCost(), random_state=0).distortion < 0.3
    True
    """

    intercept: bool = True
    alpha: float = 0.0

    name: ClassVar[str] = "least squares"

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a number as its label."""
        return find_bad_number(block)

    def seed(self, block: Block, rng: np.random.Generator) -> LinearPredictor:
        """Return the solution on some of the rows, drawn by weight."""
        count = max(10, 2 * (1 + int(block.points.shape[1])))
        share = block.weights / block.weights.sum()
        rows = np.unique(rng.choice(len(block), min(count, len(block)), p=share))
        return self.solve(block.take(rows), rng)

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, LinearPredictor]]:
        """Yield the solution, three that are fitted to few rows, and the mean alone."""
        yield "fitted", self.solve(block, rng)
        for i in range(1, 4):
            yield f"fitted to few rows {i}", self.seed(block, rng)
        mean = float(np.average(targets_of(block), weights=block.weights))
        yield "mean", LinearPredictor(np.zeros(block.points.shape[1]), mean)

    def read(self, solution: Any, n_features: int, name: str) -> LinearPredictor:
        """Return a `LinearPredictor`, or that of a fitted linear regressor."""
        return LinearPredictor(*coefficients(solution, n_features, name))

    def constant(self, solution: LinearPredictor) -> float:
        """Return the penalty."""
        return self.alpha * float(solution.coef @ solution.coef)

    def losses(self, block: Block, solution: LinearPredictor) -> FloatArray:
        """Squared residuals of the rows."""
        return np.square(residuals_of(block, solution))

    @one_thread()
    def solve(self, block: Block, rng: np.random.Generator) -> LinearPredictor:
        """Return the solution of the normal equations, of least norm."""
        del rng
        rows = dense_rows(block.points).astype(np.float64)
        y, u = targets_of(block), block.weights
        center, shift = np.zeros(rows.shape[1]), 0.0
        if self.intercept:
            center, shift = np.average(rows, axis=0, weights=u), float(np.average(y, weights=u))
        root = np.sqrt(u)[:, np.newaxis]
        targets, scaled = (y - shift) * root[:, 0], (rows - center) * root
        if self.alpha:
            penalty = np.sqrt(self.alpha) * np.eye(rows.shape[1])
            scaled = np.concatenate([scaled, penalty])
            targets = np.append(targets, np.zeros(rows.shape[1]))
        solution: Any = np.linalg.lstsq(scaled, targets, rcond=None)
        coef: FloatArray = solution[0]
        return LinearPredictor(coef, shift - float(coef @ center))


def residuals_of(block: Block, solution: LinearPredictor) -> FloatArray:
    """Residuals of the rows."""
    values = inner_products(block.points, solution.coef[np.newaxis])[:, 0]
    return targets_of(block) - values - solution.intercept


def find_bad_number(block: Block) -> InvalidRow | None:
    """Return the first label that is missing, not a number, or too large for its square, or None.

    Examples
    --------
    >>> from daskcoreset.core.block import Block
    >>> find_bad_number(Block(np.zeros((2, 1)), np.ones(2), np.array(["1", "b"]))).row
    0
    """
    if block.labels is None:
        return InvalidRow(
            "y is missing",
            argument="y",
            remedy="pass the number of every row that is to be predicted",
        )
    missing = find_unusable_label(block.labels, block.rows)
    if missing is not None or not len(block):
        return missing
    if labels_of(block).dtype.kind not in "biuf":
        problem = f"y is {labels_of(block)[0].item()!r}" + "{row}, and regression needs numbers"
        remedy = "convert y, or take a method for classes"
        invalid: InvalidRow | None = InvalidRow(problem, 0, "y", remedy)
    elif (invalid := find_inexact("y", labels_of(block))) is None:
        invalid = find_unusable_row(targets_of(block)[:, np.newaxis], block.weights, name="y")
    if invalid is None or block.rows is None:
        return invalid
    return replace(invalid, row=int(block.rows[invalid.row or 0]))


def targets_of(block: Block) -> FloatArray:
    """Return the labels of a block as float64."""
    return labels_of(block).astype(np.float64)
