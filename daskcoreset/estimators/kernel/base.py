"""Kernel classifiers on core points: validation of labelled data, fit and partial_fit."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset.constructions.class_summary import ClassSummary, summarise_classes
from daskcoreset.constructions.coverage.cover import cover
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import Stage, resolve_seed, stream
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.base import InMemoryData
from daskcoreset.estimators.classifier import announced_classes
from daskcoreset.estimators.kernel.kernels import resolve_gamma, resolve_kernel
from daskcoreset.estimators.kernel.losses import LOSSES, resolve_loss
from daskcoreset.estimators.kernel.model import (
    KERNEL_CONSTRAINTS,
    check_two_classes,
    resolve_lambda,
    warn_unscaled,
)
from daskcoreset.estimators.kernel.objective import n_problems
from daskcoreset.estimators.kernel.training import CorePoints, TrainedModel, nearest_gaps, thinned
from daskcoreset.estimators.kernel.training_rows import (
    sample_classes,
    sample_core_points,
    training_rows,
)
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

_ARRANGE = 2**31 + 2

"""Address of the order in which small data are covered."""

_SMALL = 10_000

"""So many rows in memory are ordered by value, and equal ones merged, at no cost."""


def check_known(labels: AnyArray, names: AnyArray) -> None:
    """Refuse classes that are not among `names`."""
    unknown = labels[~np.isin(labels, names)]
    if len(unknown):
        raise InvalidInputError(
            f"y has the class {unknown[0]}, which is not among {names}; pass all classes in the "
            f"first call of partial_fit."
        )


def arranged(data: InMemoryData, codes: AnyArray, seed: int) -> RowBlocks:
    """Rows in memory as blocks; a few of them in an order that depends on their values alone.

    Neither the order of the rows nor how their weight is split then matters.
    """
    if data.X.shape[0] <= _SMALL:
        points, merged, labels = deduplicate(data.X, data.weights, codes)
        order = stream(seed, Stage.DESCENT, _ARRANGE).permutation(len(merged))
        return row_blocks(points[order], labels[order], merged[order])  # type: ignore[index] # given
    return row_blocks(data.X, codes, data.sample_weight)


MAX_POINTS = 500

"""Core points when neither their number nor the diameter is given."""

COVER_CONSTRAINTS: dict[str, list[Any]] = {
    "loss": [StrOptions(set(LOSSES))],
    **KERNEL_CONSTRAINTS,
    "diameter": [Real, None],
    "max_points": [Interval(Integral, 1, None, closed="left"), None],
    "cells": [StrOptions({"euclidean", "chebyshev"})],
    "strategy": [StrOptions({"auto", "drawn", "online", "farthest"})],
    "verbose": ["verbose"],
    "progress": ["boolean", None],
}

"""What the parameters of all subclasses may be."""


class CoverModel(TrainedModel):
    """Covers the rows, and trains coefficients of the core points; subclasses say how."""

    gamma_: float

    kernel: Any
    gamma: Any
    diameter: Any
    max_points: Any
    cells: Any
    strategy: Any
    random_state: Any

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        classes: Any = None,
        warm: bool = False,
        resume: bool = False,
    ) -> Self:
        """Train on rows: from new core points, from those of before, or on top of the past."""
        self._validate_params()
        self._check_early()
        seed = resolve_seed(self.random_state)
        names = announced_classes(classes, self.classes_ if resume else None)
        blocks, in_memory_names = self._labelled(X, y, sample_weight, seed, names, reset=not resume)
        summary = summarise_classes(blocks, progress=self.progress)
        labels = summary.classes
        if in_memory_names is not None:
            labels = in_memory_names[labels]
        if names is None:
            names, block_classes = labels, summary.classes
        else:
            check_known(labels, names)
            block_classes = names if in_memory_names is None else np.arange(len(names))
        self.classes_ = names
        check_two_classes(names)
        if resume:
            core, start = self._extended(blocks, summary, seed)
        else:
            core, start = self._initial(blocks, summary, seed, warm=warm)
        self._train(blocks, block_classes, summary, core, start=start, seed=seed)
        return self

    def _initial(
        self, blocks: RowBlocks, summary: ClassSummary, seed: int, *, warm: bool
    ) -> tuple[CorePoints, FloatArray | None]:
        """Set the kernel, and return core points and, of an earlier fit, coefficients."""
        self.gamma_ = resolve_gamma(self.gamma, self.n_features_in_, summary.variance)
        self._kernel = resolve_kernel(self.kernel, self.gamma_)
        warn_unscaled(summary, self._kernel)
        if not warm or self.core_points_.shape[1] != self.n_features_in_:
            return self._covered(blocks, summary, seed), None
        core, start = CorePoints(self.core_points_, self.diameter_), self.dual_coef_.T
        return core, start if start.shape[1] == n_problems(len(self.classes_)) else None

    def _check_early(self) -> None:
        """Refuse what can be refused before the data are read."""
        resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        resolve_lambda(self.lam, self.C, 1.0)
        resolve_kernel(self.kernel, 1.0)
        if self.diameter is not None and not (np.isfinite(self.diameter) and self.diameter > 0):
            raise InvalidInputError(
                f"diameter={self.diameter} is not positive; pass how far apart rows of one cell "
                f"may be, or max_points."
            )
        if self.strategy == "drawn" and self.diameter is not None:
            raise InvalidInputError(
                f'strategy="drawn" keeps no diameter, got diameter={self.diameter}; pass '
                f'max_points alone, or strategy="online".'
            )

    def _labelled(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        seed: int,
        names: AnyArray | None,
        *,
        reset: bool = True,
    ) -> tuple[RowBlocks, AnyArray | None]:
        """Open data that a cover can take; in memory labels become positions in the names."""
        data = self._validate_in_memory(X, y, sample_weight, reset=reset)
        if data is None:
            self._require_labels(y)
            if reset:
                blocks = row_blocks(X, y, sample_weight)
                self._set_features(X, blocks.rules.n_features, blocks.columns)
            else:
                blocks = self._open(X, y, sample_weight)
            blocks.refuse_zeros()
            return blocks, None
        check_classification_targets(data.y)
        if names is None:
            names, codes = np.unique(data.y, return_inverse=True)
        else:
            check_known(np.unique(data.y), names)
            codes = np.searchsorted(names, data.y)
        blocks = arranged(data, codes, seed)
        blocks.refuse_zeros()
        return blocks, names

    @property
    def _max_points(self) -> int | None:
        """Core points at most; None where the diameter alone decides."""
        if self.max_points is None and self.diameter is None:
            return MAX_POINTS
        return self.max_points  # type: ignore[no-any-return]

    def _covered(self, blocks: RowBlocks, summary: ClassSummary, seed: int) -> CorePoints:
        """Find core points; of drawn ones the diameter is known once the solver has read."""
        max_points = self._max_points
        strategy = self.strategy
        if strategy == "auto":
            strategy = "drawn" if self.diameter is None else "online"
        if strategy == "drawn":
            assert max_points is not None  # noqa: S101 - checked
            quotas = self._quotas(summary, max_points)
            strata = sample_classes(
                blocks, summary.classes, points=max_points, quotas=quotas, seed=seed
            )
            drawn = None if quotas is None else training_rows(strata, quotas)
            return CorePoints(sample_core_points(strata, max_points), drawn=drawn)
        covered = cover(
            blocks,
            self.diameter,
            max_points=max_points,
            cells=self.cells,
            strategy=strategy,
            progress=self.progress,
        )
        return CorePoints(covered.points, covered.diameter, measured=False)

    def _extended(
        self, blocks: RowBlocks, summary: ClassSummary, seed: int
    ) -> tuple[CorePoints, FloatArray | None]:
        """Add the core points that further rows need; what is known of the past stays."""
        old, half = self.core_points_, self._cell / 2.0
        if half > 0:
            new = cover(blocks, self._cell, cells=self.cells, progress=self.progress).points
        else:  # every row was a core point
            new = self._covered(blocks, summary, seed).points
        added = new[nearest_gaps(new, old, self.cells) > half]
        points = np.concatenate([old, added.astype(old.dtype)])
        table = np.concatenate([self._table, np.zeros((len(added), self._table.shape[1]))])
        start = np.concatenate([self.dual_coef_.T, np.zeros((len(added), len(self.dual_coef_)))])
        max_points = self._max_points
        if max_points is None or len(points) <= max_points:
            return CorePoints(points, self.diameter_, table=table), start
        if self.diameter is not None:
            raise InvalidInputError(
                f"max_points={max_points}, but with these rows cells of diameter={self.diameter} "
                f"need {len(points)} core points; raise one of them, or give max_points alone."
            )
        fewer, diameter, carried = thinned(points, table, start, max_points, self.cells)
        self._cell = max(self._cell, diameter)
        return replace(fewer, diameter=self.diameter_ + diameter), carried
