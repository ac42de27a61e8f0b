"""The base of classifiers that separate all rows where they can, and else soften the margin."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from daskcoreset.constructions.margin.outlier import InseparableRestError
from daskcoreset.constructions.margin.rows import FirstRead, find_classes, refuse_wide
from daskcoreset.constructions.margin.separators import InseparableError, Kernel
from daskcoreset.core.blocks import MAX_LABELS, Block, plain_labels
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, package_versions, warn_user
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators.classifier import MarginModel
from daskcoreset.estimators.margin.soft import SOFT_ROWS, draw_uniform, soft_planes
from daskcoreset.estimators.margin.soft_cost import SoftMarginCost
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.cubes import refuse_cube
from daskcoreset.objectives import LinearCost, Objective

# Rows of each class that the first read brings, at most.
_STARTS = 64


class HardMarginModel(MarginModel):
    """Base of the classifiers that separate all rows where they can, and else soften the margin."""

    fit_intercept: bool
    on_inseparable: str
    C: float
    random_state: RandomState
    # Of the soft margin; None without one.
    _soft_kernel: Kernel | None = None

    @abstractmethod
    def _separate(self, blocks: RowBlocks, first: BlockResults[FirstRead]) -> None:
        """Find the separator and keep it."""

    @abstractmethod
    def _soften(self, blocks: RowBlocks, classes: AnyArray, error: InvalidInputError) -> None:
        """Fit a soft margin, to a uniform sample or to all rows where they are few."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._validate_params()
        refuse_cube(type(self).__name__, X)
        blocks, names = self._labelled_blocks(X, y, sample_weight)
        if getattr(self, "kernel", "linear") == "linear":
            refuse_wide(blocks)
        first = find_classes(blocks, max_classes=MAX_LABELS, n_keep=_STARTS)
        labels = first.value.classes
        self.classes_ = labels if names is None else names[labels]
        self.separable_ = True
        try:
            self._separate(blocks, first)
        except (InseparableError, InseparableRestError) as error:
            if self.on_inseparable == "raise":
                raise
            warn_user(f"a soft margin is fitted, for {error}")
            self.separable_ = False
            self._soften(blocks, labels, error)
        return self

    def _soft_rows(self, blocks: RowBlocks, classes: AnyArray) -> Block:
        """Take the rows of a soft margin, which become `coreset_`: a sample, or all if few."""
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
        return rows

    def _set_soft_planes(self, blocks: RowBlocks, classes: AnyArray) -> None:
        rows = self._soft_rows(blocks, classes)
        self._set_hyperplanes(*soft_planes(rows, classes, self.C, intercept=self.fit_intercept))
        self._soft_kernel = None

    def _named(self, labels: Any, block_classes: AnyArray) -> AnyArray:
        """Return the labels as given; those of data in memory are codes in blocks."""
        codes = np.searchsorted(plain_labels(block_classes), labels)
        return np.asarray(plain_labels(self.classes_)[codes])

    def _judged_by(self) -> Objective[Any] | None:
        if self.separable_:
            return None
        return SoftMarginCost(self._decision, self._soft_kernel, self.C, self.fit_intercept)
