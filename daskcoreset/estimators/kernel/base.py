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
from daskcoreset.estimators.awaiting import distinct_classes
from daskcoreset.estimators.base import InMemoryData
from daskcoreset.estimators.kernel.kernels import resolve_gamma, resolve_kernel
from daskcoreset.estimators.kernel.losses import LOSSES, resolve_loss
from daskcoreset.estimators.kernel.model import resolve_lambda, warn_unscaled
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

__all__ = ["SHARED", "CoverModel", "arranged", "check_known"]


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
    points, weights = data.X, data.sample_weight
    if points.shape[0] <= _SMALL:
        ones = np.ones(points.shape[0])
        points, merged, labels = deduplicate(points, ones if weights is None else weights, codes)
        order = stream(seed, Stage.DESCENT, _ARRANGE).permutation(len(merged))
        return row_blocks(points[order], labels[order], merged[order])  # type: ignore[index] # given
    return row_blocks(points, codes, weights)


MOST_POINTS = 500

"""Core points when neither their number nor the diameter is given."""

SHARED: dict[str, list[Any]] = {
    "loss": [StrOptions(set(LOSSES))],
    "kernel": [str, callable],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
    "lam": [Interval(Real, 0, None, closed="neither"), None],
    "C": [Interval(Real, 0, None, closed="neither"), None],
    "mu": [Real],
    "theta": [Real],
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

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, warm: bool) -> Self:
        self._validate_params()
        self._check_early()
        seed = resolve_seed(self.random_state)
        blocks, names = self._labelled(X, y, sample_weight, seed, None)
        found = summarise_classes(blocks, progress=self.progress)
        self.classes_ = found.classes if names is None else names[found.classes]
        self._check_classes()
        self._set_kernel(found)
        start = None
        if warm and self.core_points_.shape[1] == self.n_features_in_:
            given, start = CorePoints(self.core_points_, self.diameter_), self.dual_coef_.T
        else:
            given = self._covered(blocks, found, seed)
        if start is not None and start.shape[1] != n_problems(len(self.classes_)):
            start = None
        self._train(blocks, found.classes, found, given, start=start, seed=seed)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        self._validate_params()
        self._check_early()
        first = not hasattr(self, "_table")
        seed = resolve_seed(self.random_state)
        wanted = None if classes is None else distinct_classes(classes)
        if not first:
            if wanted is not None and not np.array_equal(wanted, self.classes_):
                raise InvalidInputError(
                    f"classes={wanted} differ from those of the first call, {self.classes_}; pass "
                    f"the same, or None."
                )
            wanted = self.classes_
        blocks, names = self._labelled(X, y, sample_weight, seed, wanted, reset=first)
        found = summarise_classes(blocks, progress=self.progress)
        labels = found.classes if names is None else names[found.classes]
        if wanted is None:
            wanted, internal = labels, found.classes
        else:
            check_known(labels, wanted)
            internal = wanted if names is None else np.arange(len(wanted))
        self.classes_ = wanted
        self._check_classes()
        if first:
            self._set_kernel(found)
            given, start = self._covered(blocks, found, seed), None
        else:
            given, start = self._extended(blocks, found, seed)
        self._train(blocks, internal, found, given, start=start, seed=seed)
        return self

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
            if y is None:
                raise InvalidInputError(
                    f"This {type(self).__name__} estimator requires y to be passed, but the "
                    f"target y is None; pass the labels."
                )
            if reset:
                blocks = row_blocks(X, y, sample_weight)
                self._set_features(X, blocks.rules.n_features, blocks.columns)
            else:
                blocks = self._open(X, y, sample_weight)
            blocks.refuse_zeros()
            return blocks, None
        labels: Any = data.y
        check_classification_targets(labels)
        if names is None:
            names, codes = np.unique(labels, return_inverse=True)
        else:
            check_known(np.unique(labels), names)
            codes = np.searchsorted(names, labels)
        blocks = arranged(data, codes, seed)
        blocks.refuse_zeros()
        return blocks, names

    def _check_classes(self) -> None:
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y has one class only, {self.classes_[:1]}, among the rows with a positive "
                f"weight; pass rows of two classes or more."
            )

    def _set_kernel(self, found: ClassSummary) -> None:
        self.gamma_ = resolve_gamma(self.gamma, self.n_features_in_, found.variance)
        self._kernel = resolve_kernel(self.kernel, self.gamma_)
        warn_unscaled(found, self._kernel)

    def _covered(self, blocks: RowBlocks, found: ClassSummary, seed: int) -> CorePoints:
        """Find core points; of drawn ones the diameter is known once the solver has read."""
        most = self.max_points
        if most is None and self.diameter is None:
            most = MOST_POINTS
        strategy = self.strategy
        if strategy == "auto":
            strategy = "drawn" if self.diameter is None else "online"
        if strategy == "drawn":
            assert most is not None  # noqa: S101 - checked
            quotas = self._quotas(found, most)
            strata = sample_classes(blocks, found.classes, points=most, quotas=quotas, seed=seed)
            drawn = None if quotas is None else training_rows(strata, quotas)
            return CorePoints(sample_core_points(strata, most), drawn=drawn)
        covered = cover(
            blocks,
            self.diameter,
            max_points=most,
            cells=self.cells,
            strategy=strategy,
            progress=self.progress,
        )
        return CorePoints(covered.points, covered.diameter, measured=False)

    def _extended(
        self, blocks: RowBlocks, found: ClassSummary, seed: int
    ) -> tuple[CorePoints, FloatArray]:
        """Add the core points that further rows need; what is known of the past stays."""
        old, half = self.core_points_, self._cell / 2.0
        if half > 0:
            new = cover(blocks, self._cell, cells=self.cells, progress=self.progress).points
        else:  # every row was a core point
            new = self._covered(blocks, found, seed).points
        added = new[nearest_gaps(new, old, self.cells) > half]
        points = np.concatenate([old, added.astype(old.dtype)])
        table = np.concatenate([self._table, np.zeros((len(added), self._table.shape[1]))])
        start = np.concatenate([self.dual_coef_.T, np.zeros((len(added), len(self.dual_coef_)))])
        most = self.max_points
        most = MOST_POINTS if most is None and self.diameter is None else most
        if most is None or len(points) <= most:
            return CorePoints(points, self.diameter_, table=table), start
        if self.diameter is not None:
            raise InvalidInputError(
                f"max_points={most}, but with these rows cells of diameter={self.diameter} need "
                f"{len(points)} core points; raise one of them, or give max_points alone."
            )
        fewer, diameter, carried = thinned(points, table, start, most, self.cells)
        self._cell = max(self._cell, diameter)
        return replace(fewer, diameter=self.diameter_ + diameter), carried
