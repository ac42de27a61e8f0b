"""The base of estimators of the largest margin, and of those that else soften the margin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset.constructions.margin.rows import FirstRead, find_classes, refuse_wide
from daskcoreset.core.blocks import finite_rows, plain_labels
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import NotSeparableError, package_versions, warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.estimators.base import BUILD_CONSTRAINTS
from daskcoreset.estimators.checks import refuse_as
from daskcoreset.estimators.classifier import DecisionModel
from daskcoreset.estimators.margin.soft import SOFT_ROWS, draw_uniform, soft_planes
from daskcoreset.execution.engine import BlockResults
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


class MarginModel(DecisionModel):
    """Base of the estimators that keep a core set for a margin.

    Attributes
    ----------
    coreset_ : Coreset
        Of weight one; of a soft margin that is fitted to a sample, this sample with its weights.
        Not there if no row is on a boundary, as of one class.
    """

    # Why `fit` refuses coresets.
    _no_coreset = (
        "separates all rows by the largest margin, which the few rows next to the boundary decide: "
        "the rows of a coreset are drawn, and need not be these, and their weights say nothing of "
        "a margin. Pass the data, of which it finds these rows itself; or fit CoresetSVC or "
        "CoresetKernelClassifier to the coreset, with its weights."
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
            warn_user(f"a soft margin is fitted, for {error}")
            self.separable_ = False
            self._soften(blocks, labels)
            self._keep_soft(error)
        return self

    def _soften(self, blocks: RowBlocks, classes: AnyArray) -> None:
        """Fit a soft margin, to a uniform sample or to all rows if they are few."""
        seed = resolve_seed(self.random_state)
        drawn = draw_uniform(blocks, SOFT_ROWS, seed)
        rows = drawn.rows
        numbers: Any = rows.rows
        record = {
            "method": "uniform",
            "m": len(rows),
            "n": drawn.n_rows + self._n_unused,
            "n_dropped": drawn.n_dropped,
            "d": blocks.schema.n_features,
            "total_weight": drawn.weight,
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
        self._set_hyperplanes(*soft_planes(rows, classes, self.C, intercept=self.fit_intercept))

    def _named(self, labels: Any, block_classes: AnyArray) -> AnyArray:
        """Return the labels as given; those of data in memory are codes in blocks."""
        codes = np.searchsorted(plain_labels(block_classes), labels)
        return np.asarray(plain_labels(self.classes_)[codes])

    def _in_data(self, indices: IndexArray) -> IndexArray:
        """Row numbers in the data as given: rows in memory without a weight were left out."""
        return indices if self._used is None else self._used[indices]

    def _labelled_blocks(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[RowBlocks, AnyArray | None]:
        """Open the data; those in memory have codes for labels, whose names come along."""
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
