"""The base of estimators of the largest margin, and of those that else soften the margin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset.constructions.margin.rows import (
    FirstRead,
    SelectedRows,
    concatenate_rows,
    find_classes,
    mark,
    refuse_wide,
    row_numbers,
    select_rows,
    smallest,
)
from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.deadline import check_time
from daskcoreset.core.invalid import finite_rows
from daskcoreset.core.labels import plain_labels
from daskcoreset.core.linalg import dense_rows, one_thread
from daskcoreset.core.messages import package_versions, warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import NotSeparableError
from daskcoreset.estimators.base import BUILD_CONSTRAINTS
from daskcoreset.estimators.checks import refuse_as
from daskcoreset.estimators.decision import DecisionModel
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube
from daskcoreset.objectives import MARGIN, LinearCost

# What the parameters of all estimators of the largest margin may be.
MARGIN_CONSTRAINTS: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, 0, 1, closed="neither")],
    "fit_intercept": ["boolean"],
    "on_inseparable": [StrOptions({"soft", "raise"})],
    "C": [Interval(Real, 0, None, closed="neither")],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}

# Rows of each class that the first read brings, at most.
_STARTS = 64

# Rows that a soft margin is fitted to; more rows hardly change a few coefficients.
_SOFT_ROWS = 10_000

# Columns up to which a matrix of second derivatives is formed.
_MAX_COLUMNS = 2000

# Rows drawn; how many have a weight, and the sum of these.
_RowSample: TypeAlias = tuple[SelectedRows, FloatArray]


class MarginModel(DecisionModel):
    """Base of the estimators that keep a core set for a margin.

    Attributes
    ----------
    coreset_ : Coreset
        The core set, with weights of one. For a soft margin that is fitted to a sample, the sample
        with its weights. Missing if no row is on a boundary, as with one class.
    """

    # Why `fit` refuses coresets.
    _no_coreset = (
        "needs all rows: the largest margin depends on the rows next to the boundary, and a "
        "coreset may lack them. Pass the data, or fit CoresetSVC or CoresetKernelClassifier to the "
        "coreset."
    )

    epsilon: float
    on_invalid: Any

    def _keep_core(
        self, method: str, core: WeightedPoints, n_rows: int, facts: Mapping[str, Any]
    ) -> None:
        """Set `coreset_`, if there are any rows."""
        self.__dict__.pop("coreset_", None)  # of an earlier fit
        if not len(core):
            return
        record = {
            "method": method,
            "m": len(core),
            "n": n_rows,
            "d": core.n_features,
            "versions": package_versions(),
            "objective": MARGIN,
            "epsilon": float(self.epsilon),
            **facts,
        }
        if self._column_names is not None:
            record["columns"] = self._column_names
        self.coreset_ = Coreset(core.points, core.weights, core.indices, core.labels, record)


class HardMarginModel(MarginModel):
    """Base of the classifiers that separate all rows if they can, and else soften the margin."""

    fit_intercept: bool
    on_inseparable: str
    C: float
    random_state: RandomState
    # Rows of data in memory that have a weight; None if all have.
    _used: IndexArray | None
    # Finite rows in memory that were left out since they have no weight.
    _n_unused = 0

    @abstractmethod
    def _separate(self, blocks: RowBlocks, first: BlockResults[FirstRead]) -> None:
        """Find the separator and keep it."""

    @abstractmethod
    def _keep_soft(self, error: NotSeparableError) -> None:
        """Set the attributes of rows that are not separable."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._validate_params()
        refuse_cube(type(self).__name__, X)
        blocks, names = self._labelled_blocks(X, y, sample_weight)
        refuse_wide(blocks)
        first = find_classes(blocks, n_keep=_STARTS)
        labels = first.value.classes
        self.classes_ = labels if names is None else names[labels]
        self.separable_ = True
        try:
            self._separate(blocks, first)
        except NotSeparableError as error:
            if self.on_inseparable == "raise":
                raise
            warn_user(
                f"a soft margin is fitted, because {error.problem}; "
                f'pass on_inseparable="raise" to stop.'
            )
            self.separable_ = False
            self._soften(blocks, labels)
            self._keep_soft(error)
        return self

    def _soften(self, blocks: RowBlocks, classes: AnyArray) -> None:
        """Fit a soft margin, to a uniform sample or to all rows if they are few."""
        seed = resolve_seed(self.random_state)
        n_rows = blocks.n_rows
        blocks.refuse_zeros(_SOFT_ROWS if n_rows is None else min(_SOFT_ROWS, n_rows))
        read = map_reduce(blocks, partial(_draw, seed=seed), _merge_draws)
        sample, (n_used, weight) = read.value
        numbers = row_numbers(read, sample.indices)
        weights = sample.block.weights * (n_used / max(1, len(sample)))
        rows = replace(sample.block, weights=weights, rows=numbers)
        record = {
            "method": "uniform",
            "m": len(rows),
            "n": read.n_kept + self._n_unused,
            "n_dropped": read.n_rows - read.n_kept,
            "d": blocks.schema.n_features,
            "total_weight": float(weight),
            "seed": seed,
            "versions": package_versions(),
            "source": blocks.name,
            "columns": self._column_names,
            "objective": LinearCost(lam=float(self.C), intercept=self.fit_intercept).record(),
        }
        self.coreset_ = Coreset(
            rows.points,
            rows.weights,
            self._in_data(numbers),
            self._named(rows.labels, classes),
            record,
        )
        points, labels = dense_rows(rows.points).astype(np.float64), labels_of(rows)
        fits = [
            soft_margin(
                points,
                np.where(labels == one, 1.0, -1.0),
                rows.weights,
                self.C,
                intercept=self.fit_intercept,
            )
            for one in (classes[1:] if len(classes) == 2 else classes)
        ]
        self._set_hyperplanes(np.stack([w for w, _ in fits]), np.array([b for _, b in fits]))

    def _named(self, labels: Any, block_classes: AnyArray) -> AnyArray:
        """Return the labels as given. Data in memory have codes for labels in blocks."""
        codes = np.searchsorted(plain_labels(block_classes), labels)
        return np.asarray(plain_labels(self.classes_)[codes])

    def _in_data(self, indices: IndexArray) -> IndexArray:
        """Return row numbers in the data as given, in which rows of weight zero count."""
        return indices if self._used is None else self._used[indices]

    def _labelled_blocks(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[RowBlocks, AnyArray | None]:
        """Open the data. Data in memory have codes for labels, and the names are returned."""
        # What reads the rows drops those that are not finite, and numbers the others as they were.
        data = self._validate_in_memory(X, y, sample_weight, finite=False)
        self._used, self._n_unused = None, 0
        if data is not None:
            with refuse_as("y"):
                check_classification_targets(data.y)
            names, codes = np.unique(np.asarray(data.y), return_inverse=True)
            if data.sample_weight is None or data.sample_weight.all():
                return self._blocks(data.X, codes, data.sample_weight), names
            used = np.flatnonzero(data.sample_weight)
            self._used = used
            unused = np.flatnonzero(data.sample_weight == 0.0)
            self._n_unused = len(finite_rows(data.X[unused]))
            return self._blocks(data.X[used], codes[used], data.sample_weight[used]), names
        self._require_labels(y)
        blocks = self._blocks(X, y, sample_weight)
        self._set_features(X, blocks.schema.n_features, blocks.columns, blocks.cube)
        return blocks, None

    def _blocks(self, X: Any, y: Any, sample_weight: Any) -> RowBlocks:
        return row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)


@dataclass(frozen=True, eq=False)
class _Objective:
    rows: FloatArray
    signs: FloatArray
    weights: FloatArray
    intercept: bool

    def __call__(self, v: FloatArray) -> tuple[float, FloatArray]:
        check_time("a soft margin was being fitted", "pass fewer columns")
        w, b = v[:-1], v[-1] if self.intercept else 0.0
        short = np.maximum(0.0, 1.0 - self.signs * (self.rows @ w + b))
        pull = -2.0 * self.weights * self.signs * short
        gradient = np.append(w + self.rows.T @ pull, pull.sum() if self.intercept else 0.0)
        return float(w @ w) / 2 + float(self.weights @ short**2), gradient


@one_thread()
def soft_margin(
    rows: FloatArray, signs: FloatArray, weights: FloatArray, C: float, *, intercept: bool
) -> tuple[FloatArray, float]:
    r"""Minimise :math:`|w|^2/2 + C \sum_i u_i \max(0, 1 - y_i(\langle w, x_i\rangle + b))^2`.

    Columns are standardized first. Without an intercept, they keep their means. The penalty is on
    these columns, so the units of a column do not matter.

    Parameters
    ----------
    rows : ndarray of shape (n, d), float64
    signs : ndarray of shape (n,), float64
    weights : ndarray of shape (n,), float64
        Positive. A weight of two counts as two rows.
    C : float
    intercept : bool

    Returns
    -------
    w : ndarray of shape (d,), float64
    b : float
        For rows as they are.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> w, b = soft_margin(rows, np.array([-1.0, 1, -1, 1]), np.ones(4), 1.0, intercept=True)
    >>> bool(w[0] > 0), round(float(-b / w[0]), 6)
    (True, 1.5)
    """
    share = weights / weights.sum()
    center = share @ rows if intercept else np.zeros(rows.shape[1])
    spread = np.sqrt(share @ (rows - center) ** 2)
    spread[spread == 0.0] = 1.0
    scaled = (rows - center) / spread
    objective = _Objective(scaled, signs, C * weights, intercept)
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    v = np.zeros(rows.shape[1] + 1)
    v = minimize(objective, v, jac=True, method="L-BFGS-B", options=options).x
    if rows.shape[1] <= _MAX_COLUMNS:
        v = _polished(objective, v)
    w = v[:-1] / spread
    b = float(v[-1] - w @ center) if intercept else 0.0
    return w, b


def _polished(objective: _Objective, v: FloatArray) -> FloatArray:
    """Take Newton steps while the objective falls. Near the solution, no row changes sides."""
    d = len(v) - 1
    rows = np.column_stack([objective.rows, np.full(len(objective.rows), objective.intercept)])
    gradient = objective(v)[1]
    while True:
        active = objective.signs * (rows @ v) < 1.0
        weighted = rows[active] * (2.0 * objective.weights[active])[:, None]
        hessian = rows[active].T @ weighted
        hessian[np.arange(d), np.arange(d)] += 1.0
        hessian[d, d] += 1e-12
        after = v - np.linalg.solve(hessian, gradient)
        gradient_after = objective(after)[1]
        if np.abs(gradient_after).max() >= np.abs(gradient).max():
            return v
        v, gradient = after, gradient_after


def _draw(block: Block, block_index: int, _broadcast: object, *, seed: int) -> _RowSample:
    # The rows of smallest coins, of the block and of all: a sample without replacement.
    coins = stream(seed, Stage.DRAWS, block_index).random(len(block))
    used = block.weights > 0.0
    drawn = smallest(np.where(used, coins, np.inf), _SOFT_ROWS)
    totals = np.array([np.count_nonzero(used), block.weights.sum()], dtype=np.float64)
    return select_rows(block, drawn, coins[drawn], mark(block_index)), totals


def _merge_draws(first: _RowSample, second: _RowSample) -> _RowSample:
    return concatenate_rows(first[0], second[0]).smallest(_SOFT_ROWS), first[1] + second[1]
