"""Kernel classifiers on core points: labelled data, core points, fit and partial_fit."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.spatial import cKDTree
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from daskcoreset.constructions.class_summary import ClassSummary, summarise_classes
from daskcoreset.constructions.coverage.cover import Coverage, cover
from daskcoreset.constructions.coverage.result import Cover
from daskcoreset.core.blocks import Block, concatenate, labels_of, plain_labels
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, package_versions
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import Stage, resolve_seed, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.estimators.base import BUILD_CONSTRAINTS
from daskcoreset.estimators.checks import InMemoryData, refuse_as
from daskcoreset.estimators.classifier import DecisionModel, announced_classes
from daskcoreset.estimators.kernel.cost import KernelCost
from daskcoreset.estimators.kernel.decision import KernelDecision
from daskcoreset.estimators.kernel.kernels import (
    Isotropic,
    KernelMap,
    resolve_gamma,
    resolve_kernel,
    warn_alike,
    warn_unscaled,
)
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_lambda, resolve_loss
from daskcoreset.estimators.kernel.metric import PILOT_POINTS, PILOT_ROWS, learned_scales
from daskcoreset.estimators.kernel.objective import n_problems
from daskcoreset.estimators.kernel.rows import (
    CorePoints,
    KernelProblem,
    LabelledBlocks,
    Solution,
    TrainingRows,
    quotas_of,
    sample_classes,
    sample_core_points,
    training_rows,
)
from daskcoreset.estimators.kernel.sgd import approximation_bound
from daskcoreset.execution.progress import count_reads
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.objectives.linear import LinearCost

# Address of the order in which small data are covered.
_ARRANGE = 2**31 + 2

# Rows in memory at most that are ordered by value, with equal ones merged.
_SMALL = 10_000

# Core points when neither their number nor the diameter is given.
MAX_POINTS = 500

# What the parameters of all kernel classifiers may be.
KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [str, callable],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
    "lam": [Interval(Real, 0, None, closed="neither"), None],
    "C": [Interval(Real, 0, None, closed="neither"), None],
    "mu": [Real],
    "theta": [Real],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}

# What the parameters of all kernel classifiers on core points may be.
CORE_POINT_CONSTRAINTS: dict[str, list[Any]] = {
    "loss": [StrOptions(set(LOSSES))],
    **KERNEL_CONSTRAINTS,
    "diameter": [Real, None],
    "max_points": [Interval(Integral, 1, None, closed="left"), None],
    "cells": [StrOptions({"euclidean", "chebyshev"})],
    "strategy": [StrOptions({"auto", "drawn", "online", "farthest"})],
    "verbose": ["verbose"],
    "progress": ["boolean", None],
}


def check_two_classes(classes: AnyArray) -> None:
    """Check that there are two classes."""
    if len(classes) < 2:
        raise InvalidInputError(
            f"y has one class only, {classes[:1]}, among the rows with a positive weight; pass "
            f"rows of two classes or more."
        )


def _check_announced(labels: AnyArray, names: AnyArray) -> None:
    """Check that all classes are among `names`."""
    with refuse_as("y"):
        unknown = labels[~np.isin(labels, names)]
    if len(unknown):
        raise InvalidInputError(
            f"y has the class {unknown[0]}, which is not among {names}; pass all classes in the "
            f"first call of partial_fit."
        )


def _arranged(data: InMemoryData, codes: AnyArray, seed: int) -> RowBlocks:
    """Rows in memory as blocks; up to 10,000 in an order that depends on their values alone.

    The result is then independent of the order of the rows and of the split of their weight.
    """
    if data.X.shape[0] <= _SMALL:
        points, weights, labels = deduplicate(data.X, data.weights, codes)
        order = stream(seed, Stage.DESCENT, _ARRANGE).permutation(len(weights))
        return row_blocks(points[order], labels[order], weights[order])  # type: ignore[index] # given
    return row_blocks(data.X, codes, data.sample_weight)


def first_equal(given: InMemoryData, points: Points, labels: AnyArray) -> IndexArray:
    """Return the numbers of the first given rows that are equal to `points`, labels included."""
    rows: dict[tuple[bytes, Any], int] = {}
    used = np.flatnonzero(given.weights > 0)
    X: Any = dense_rows(given.X[used]) + 0.0  # there is one zero
    for i, row, label in zip(used.tolist(), X, given.y[used].tolist(), strict=True):
        rows.setdefault((row.tobytes(), label), i)
    wanted = zip(dense_rows(points) + 0.0, labels.tolist(), strict=True)
    return np.array([rows[row.tobytes(), label] for row, label in wanted], dtype=np.int64)


def _larger(quotas: dict[Any, int] | None, others: dict[Any, int]) -> dict[Any, int]:
    """Return the larger of two numbers of rows for every class."""
    return {label: max(count, (quotas or {}).get(label, 0)) for label, count in others.items()}


class KernelModel(DecisionModel):
    """Base of the kernel classifiers.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_problems, r), float64
    objective_ : float, or ndarray of shape (n_problems,)
    gap_ : ndarray of shape (n_problems,) or None
    n_iter_ : int
    """

    dual_coef_: FloatArray
    gamma_: float
    lam_: float
    _decision: KernelDecision
    _loss: MarginLoss

    kernel: Any
    gamma: Any
    lam: Any
    C: Any
    mu: Any
    theta: Any
    random_state: Any

    def _set_solution(self, core: KernelMap, solution: Solution) -> None:
        """Set the attributes of a solution."""
        self.dual_coef_ = np.ascontiguousarray(solution.beta.T)
        self.objective_: Any = solution.objectives
        if len(solution.objectives) == 1:
            self.objective_ = float(solution.objectives[0])
        self.gap_, self.n_iter_ = solution.gaps, solution.n_iter
        self._decision = KernelDecision(core, solution.beta, self.classes_)

    def _keep(self, rows: Block, weights: FloatArray, facts: dict[str, Any]) -> None:
        """Set `coreset_` to rows, with labels and numbers as given."""
        record = {
            **facts,
            "m": len(rows),
            "d": int(rows.points.shape[1]),
            "versions": package_versions(),
        }
        if self._column_names is not None:
            record["columns"] = self._column_names
        numbers: Any = rows.rows
        self.coreset_ = Coreset(rows.points, weights, numbers, rows.labels, record)

    def _solutions(self) -> dict[str, FloatArray] | None:
        """Return what an audit compares; None for what the cost proposes."""
        return None

    def audit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Compare costs of kernel machines on `coreset_` with those on all rows, in one read.

        Solutions are coefficients of the rows that the model is made of: by default its own, those
        of models fitted to few of the rows, and random ones; of `ODMClassifier` its own alone.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            What the model was fitted on.
        y : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional
        **options
            As in `daskcoreset.audit`.

        Returns
        -------
        Audit
            Core points, few as they are, rarely stand for all rows as a sample drawn by ``size``
            does: the differences say by how much.
        """
        check_is_fitted(self, "dual_coef_")
        cost = KernelCost(
            self._decision.core, self._loss, self.lam_ / self.coreset_.provenance["total_weight"],
            self.classes_, self._decision.beta,
        )  # fmt: skip
        known: dict[str, Any] = {"objective": cost, "solutions": self._solutions()}
        return super().audit(X, y, sample_weight, **{**known, **options})


class CorePointModel(KernelModel):
    """Base of the classifiers on core points; subclasses define the solver of the coefficients.

    Attributes
    ----------
    core_points_ : ndarray of shape (n_core_points_, d)
    dual_coef_ : ndarray of shape (n_problems, n_core_points_), float64
    """

    core_points_: AnyArray
    diameter_: float
    _core_rows: Block
    # Rows of earlier calls as read, those of the last call that can be used, and of all calls.
    _n_before: int
    _n_given: int
    _n_rows: int
    _seed: int
    _cell: float
    _kernel: Isotropic
    _table: Any

    # Whether distances are learned; of estimators without the parameter they are Euclidean.
    metric: Any = "euclidean"
    # The part of `max_points` that is drawn before the others cover; likewise none.
    drawn_share: Any = 0.0
    loss: Any
    diameter: Any
    max_points: Any
    cells: Any
    strategy: Any
    verbose: Any
    progress: Any

    @property
    def n_core_points_(self) -> int:
        """Number of core points, the size of the model."""
        return len(self.core_points_)

    @abstractmethod
    def _solve(self, problem: KernelProblem, start: FloatArray, seed: int) -> Solution:
        """Find coefficients."""

    @abstractmethod
    def _max_reads(self) -> int:
        """Return the reads of `_solve`, at most, for the progress bar."""

    def _size(self, _n_points: int) -> int | None:
        """Rows to train on, for so many core points; None for all of them."""
        return None

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
        """Train on rows: on new core points, on earlier ones, or in addition to earlier rows."""
        self._validate_params()
        self._check_parameters()
        seed = resolve_seed(self.random_state)
        names = announced_classes(classes, self.classes_ if resume else None)
        given = self._validate_in_memory(X, y, sample_weight, reset=not resume, fits=True)
        if given is None:
            blocks, code_names = self._opened(X, y, sample_weight, reset=not resume), None
        else:
            blocks, code_names = self._coded(given, seed, names)
        blocks.refuse_zeros()
        summary = summarise_classes(blocks, progress=self.progress)
        labels = summary.classes if code_names is None else code_names[summary.classes]
        if names is None:
            names = labels
        else:
            _check_announced(labels, names)
        check_two_classes(names)
        self.classes_ = names
        block_classes = names if code_names is None else np.searchsorted(code_names, names)
        if not resume:
            self._n_before = self._n_rows = 0
        self._seed = seed
        self._n_given = summary.n_rows if given is None else given.X.shape[0]
        self._n_rows += self._n_given
        as_given = partial(self._as_given, block_classes, given)
        data = LabelledBlocks(blocks, block_classes, summary, as_given)
        if resume:
            core_points = self._extended(data, seed)
        else:
            # A gamma that is learned takes the place of this one.
            gamma = "scale" if self.gamma == "learned" else self.gamma
            self._set_kernel(resolve_gamma(gamma, self.n_features_in_, summary.variance))
            warn_unscaled(summary.low, summary.high, summary.total_variance, self._kernel)
            if warm and self.core_points_.shape[1] == self.n_features_in_:
                core_points = self._earlier()
            else:
                self.__dict__.pop("scales_", None)  # of an earlier fit
                core_points = self._covered(data, seed)
                if isinstance(self.gamma, str) and isinstance(self.kernel, str):
                    scales = getattr(self, "scales_", None)
                    machine = KernelMap(self._kernel, core_points.points, scales)
                    warn_alike(machine, may_learn=True)
        self._train(data, core_points, seed)
        self._n_before += summary.n_read if given is None else given.n_given or given.X.shape[0]
        self._calibrate(data, seed)
        return self

    def _as_given(self, classes: AnyArray, given: InMemoryData | None, rows: Block) -> Block:
        """Return rows of blocks with the labels and numbers of the data."""
        labels = self.classes_[np.searchsorted(classes, labels_of(rows))]
        numbers: Any = rows.rows
        if given is not None:
            if given.X.shape[0] <= _SMALL:
                numbers = first_equal(given, rows.points, labels)
            numbers = given.numbers_of(numbers)
        return replace(rows, labels=plain_labels(labels), rows=numbers)

    def _keep_rows(self, core_points: CorePoints, drawn: Block | None, rows: TrainingRows) -> None:
        """Set `coreset_`: the rows drawn to train on, or the core points."""
        facts: dict[str, Any] = {"method": "drawn by class", "n": self._n_given}
        if drawn is not None:
            kept, weights = drawn, drawn.weights
        else:
            kept, shares, table = core_points.rows, core_points.shares, rows.table
            assert table is not None  # noqa: S101 - it was asked for
            weights = table.sum(axis=1) if shares is None else shares
            facts = {
                "method": "core points",
                "strategy": self._strategy,
                "weights": "of the nearest rows" if shares is None else "of the draw",
                "diameter": self.diameter_,
                "n": self._n_rows,
            }
        facts |= {"seed": self._seed, "total_weight": float(weights.sum())}
        self._keep(kept, weights, {**facts, "objective": LinearCost().record()})

    def _calibrate(self, data: LabelledBlocks, seed: int) -> None:
        """Fit what turns decision values into probabilities, where the model has such."""

    def _check_parameters(self) -> None:
        """Check arguments before the data are read."""
        resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        resolve_lambda(self.lam, self.C, 1.0)
        resolve_kernel(self.kernel, 1.0)
        if self.diameter is not None and not 0.0 < self.diameter < np.inf:
            raise InvalidInputError(
                f"diameter={self.diameter} is not positive; pass how far apart rows of one cell "
                f"may be, or max_points."
            )
        if self.metric == "learned" and (
            self.diameter is not None or self.strategy in {"online", "farthest"}
        ):
            raise InvalidInputError(
                'metric="learned" takes drawn core points, and covers are of Euclidean distances; '
                'leave diameter out and pass strategy="drawn", or metric="euclidean".'
            )
        if self.gamma == "learned" and (self.metric != "learned" or self.kernel != "rbf"):
            raise InvalidInputError(
                'gamma="learned" is learned with the metric, for the kernel "rbf"; pass '
                'metric="learned" and kernel="rbf", or another gamma.'
            )
        if self.strategy == "drawn" and self.diameter is not None:
            raise InvalidInputError(
                f'strategy="drawn" keeps no diameter, got diameter={self.diameter}; pass '
                f'max_points alone, or strategy="online".'
            )

    def _coded(
        self, given: InMemoryData, seed: int, names: AnyArray | None
    ) -> tuple[RowBlocks, AnyArray]:
        """Arrange data in memory for a cover; labels become codes of the names returned."""
        with refuse_as("y"):
            check_classification_targets(given.y)
        if names is None:
            names = np.unique(given.y)
        else:
            _check_announced(np.unique(given.y), names)
        return _arranged(given, np.searchsorted(names, given.y), seed), names

    def _opened(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> RowBlocks:
        """Open data out of core."""
        self._require_labels(y)
        if not reset:
            return self._open_more(X, y, sample_weight)
        blocks = row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)
        self._set_features(X, blocks.schema.n_features, blocks.columns, blocks.cube)
        return blocks

    # --- core points

    @property
    def _max_points(self) -> int | None:
        """Core points at most; None where the diameter alone decides."""
        if self.max_points is None and self.diameter is None:
            return MAX_POINTS
        return self.max_points  # type: ignore[no-any-return]

    def _earlier(self) -> CorePoints:
        """Return the core points of an earlier fit, with coefficients if problems are as many."""
        beta = self.dual_coef_.T
        same = beta.shape[1] == n_problems(len(self.classes_))
        return CorePoints(self._core_rows, self.diameter_, beta=beta if same else None)

    @property
    def _strategy(self) -> str:
        """How core points are chosen."""
        if self.strategy == "auto":
            return "drawn" if self.diameter is None else "online"
        return str(self.strategy)

    def _covered(self, data: LabelledBlocks, seed: int) -> CorePoints:
        """Find core points; of drawn ones the diameter is known once the solver has read."""
        max_points = self._max_points
        strategy: Any = self._strategy
        if strategy == "drawn":
            assert max_points is not None  # noqa: S101 - checked
            quotas, classes = self._quotas(data.summary, max_points), data.summary.classes
            pilot = self._pilot_quotas(data.summary)
            wanted = quotas if pilot is None else _larger(quotas, pilot)
            most = max_points if pilot is None else max(max_points, PILOT_POINTS)
            strata = sample_classes(data.blocks, classes, points=most, quotas=wanted, seed=seed)
            drawn = None if quotas is None else training_rows(strata, quotas)
            rows = sample_core_points(strata, max_points)
            if pilot is not None:
                # Fewer core points want a wider kernel.
                learns_gamma = self.gamma == "learned"
                count = min(max_points, PILOT_POINTS) if learns_gamma else PILOT_POINTS
                few = sample_core_points(strata, count).points
                self._learn(training_rows(strata, pilot), few, data)
            return CorePoints(data.as_given(rows), shares=rows.weights, drawn=drawn)
        coverage = Coverage(self.diameter, max_points, self.cells, strategy)
        # How many core points a diameter takes is not known before.
        given = int(self.drawn_share * (max_points or 0)) if self.diameter is None else 0
        if given:
            return self._covered_beside_drawn(data, coverage, given, seed)
        covered = coverage.cover(data.blocks, progress=self.progress)
        return CorePoints(data.as_given(_rows_of(covered)), covered.diameter, measured=False)

    def _covered_beside_drawn(
        self, data: LabelledBlocks, coverage: Coverage, given: int, seed: int
    ) -> CorePoints:
        """Draw core points, cover the rows that are far from them, and draw what is left over.

        A cover opens most cells for single far rows, and one for nearly all others; which class
        rows of that one have is told by those that are drawn.
        """
        assert coverage.max_points is not None  # noqa: S101 - without a diameter there is one
        max_points, classes = coverage.max_points, data.summary.classes
        quotas = self._quotas(data.summary, max_points)
        strata = sample_classes(data.blocks, classes, points=max_points, quotas=quotas, seed=seed)
        first = sample_core_points(strata, given)
        covered = coverage.cover(data.blocks, given=first, progress=self.progress)
        core = covered.points
        more = sample_core_points(strata, max_points - len(core), beside=core)
        drawn = None if quotas is None else training_rows(strata, quotas)
        rows = data.as_given(concatenate([_rows_of(covered), more]))
        return CorePoints(rows, covered.diameter, measured=False, drawn=drawn)

    def _pilot_quotas(self, summary: ClassSummary) -> dict[Any, int] | None:
        """Rows of every class to learn the metric from; None where it is not learned."""
        if self.metric != "learned":
            return None
        return quotas_of(PILOT_ROWS, summary.classes, summary.class_weights)

    def _set_kernel(self, gamma: float) -> None:
        self.gamma_, self._kernel = gamma, resolve_kernel(self.kernel, gamma)

    def _learn(self, rows: Block, points: AnyArray, data: LabelledBlocks) -> None:
        """Learn the factors of the columns in distances from few rows, and gamma where asked."""
        loss = resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        # C of a row of the pilot, not of all rows that it stands for: a pilot that is fitted more
        # closely than its rows bear learns their noise.
        lam = resolve_lambda(self.lam, self.C, len(rows) / 2.0)
        self.scales_, gamma = learned_scales(rows, points, loss, classes=data.classes, lam=lam)
        if self.gamma == "learned":
            self._set_kernel(gamma)

    def _extended(self, data: LabelledBlocks, seed: int) -> CorePoints:
        """Add the core points that further rows need, and keep the earlier ones."""
        old, half = self._core_rows, self._cell / 2.0
        points: Any = old.points
        if half > 0:
            found = cover(data.blocks, self._cell, cells=self.cells, progress=self.progress)
            new = data.as_given(_rows_of(found))
        else:  # every row was a core point
            new = self._covered(data, seed).rows
        gaps, _ = cKDTree(points.astype(np.float64)).query(
            dense_rows(new.points).astype(np.float64), p=np.inf if self.cells == "chebyshev" else 2
        )
        added = new.take(np.flatnonzero(gaps > half))
        numbers: Any = added.rows
        added = replace(
            added,
            points=dense_rows(added.points).astype(points.dtype),
            rows=numbers + self._n_before,
        )
        core_points = CorePoints(
            concatenate([old, added]),
            self.diameter_,
            beta=_with_zeros(self.dual_coef_.T, len(added)),
            table=_with_zeros(self._table, len(added)),
        )
        n_points, max_points = len(core_points.points), self._max_points
        if max_points is None or n_points <= max_points:
            return core_points
        if self.diameter is not None:
            raise InvalidInputError(
                f"max_points={max_points}, but with these rows cells of diameter={self.diameter} "
                f"need {n_points} core points; raise one of them, or give max_points alone."
            )
        core_points, diameter = core_points.thinned(max_points, self.cells)
        self._cell = max(self._cell, diameter)
        return core_points

    # --- training

    def _quotas(self, summary: ClassSummary, n_points: int) -> dict[Any, int] | None:
        """Rows of every class to train on; None for all rows."""
        size = self._size(n_points)
        if size is None or size >= summary.n_rows:
            return None
        return quotas_of(size, summary.classes, summary.class_weights)

    def _train(self, data: LabelledBlocks, core_points: CorePoints, seed: int) -> None:
        """Run the solver, and set the attributes."""
        drawn, quotas = core_points.drawn, self._quotas(data.summary, len(core_points.points))
        if drawn is None and quotas is not None:
            strata = sample_classes(data.blocks, data.summary.classes, quotas=quotas, seed=seed)
            drawn = training_rows(strata, quotas)
        rows = TrainingRows.of(data, drawn, core_points.past(data.classes))
        self.lam_ = resolve_lambda(self.lam, self.C, rows.weight)
        loss = self._loss = resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        start = core_points.beta
        if start is None:
            start = np.zeros((len(core_points.points), n_problems(len(data.classes))))
        points = np.asarray(core_points.points, dtype=np.float64)
        core = KernelMap(self._kernel, points, getattr(self, "scales_", None))
        with count_reads(self.progress, self._max_reads(), unit="read") as advance:
            rows.report = partial(self._report, advance)
            solution = self._solve(KernelProblem(rows, core, loss, self.lam_), start, seed)
        if solution.converged is False:
            assert solution.gaps is not None  # noqa: S101 - it was asked for
            above = float((solution.gaps / solution.objectives).max())
            warnings.warn(
                f"{type(self).__name__} stopped after {solution.n_iter} iterations before tol was "
                f"reached: the objective may be up to {above:.2g} of itself above the least one. "
                f'Raise max_iter or tol, or take solver="exact".',
                ConvergenceWarning,
                stacklevel=4,
            )
        self._core_rows, self.core_points_ = core_points.rows, core_points.points
        measured = 2.0 * rows.radius if core_points.measured else 0.0
        self.diameter_ = max(core_points.diameter, measured)
        if rows.past is None:
            self._cell = self.diameter_
        self._set_solution(core, solution)
        self.converged_, self.trace_ = solution.converged, rows.trace
        self.approximation_bound_ = approximation_bound(
            self._kernel, self.diameter_, loss, self.lam_
        )
        # What partial_fit keeps of these rows; those of the past stood at core points already.
        self._table = rows.table
        self._keep_rows(core_points, None if drawn is None else data.as_given(drawn), rows)

    def _report(self, advance: Any, entry: dict[str, Any]) -> None:
        """Advance the progress bar, and print an entry of the trace where `verbose` is set."""
        advance(1)
        if self.verbose:
            facts = ", ".join(f"{key} {value:.6g}" for key, value in entry.items())
            sys.stdout.write(f"[{type(self).__name__}] {facts}\n")


def _rows_of(covered: Cover) -> Block:
    """Core points of a cover as rows."""
    return Block(covered.points, covered.weights, covered.labels, covered.indices)


def _with_zeros(values: FloatArray, count: int) -> FloatArray:
    """Append rows of zeros."""
    return np.concatenate([values, np.zeros((count, values.shape[1]))])
