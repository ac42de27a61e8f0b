"""Bases of the estimators: they build or take a coreset, and solve on it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from daskcoreset._build import build
from daskcoreset.constructions.draws import Draw
from daskcoreset.constructions.sampling.size_rule import SizeRule
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import warn_user
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import a_type
from daskcoreset.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.estimators.checks import InMemoryData, require_y
from daskcoreset.estimators.lazy import LazyModel
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.objectives import Objective, QuantizationError
from daskcoreset.sensitivities import (
    Sensitivity,
    construction_for,
    resolve_method,
    takes_parts,
)

# Spawn key of the solver's numbers; those of a build have two, a stage and a block.
_SOLVER = 2**31


def solver_seed(seed: int) -> int:
    """Return the seed of the solver that belongs to the seed of a fit.

    Parameters
    ----------
    seed : int
        Seed of the coreset, from `daskcoreset.core.random.resolve_seed`.

    Returns
    -------
    int
        Below 2**32, as scikit-learn requires. It is independent of the draws of rows.
    """
    return int(np.random.SeedSequence(seed, spawn_key=(_SOLVER,)).generate_state(1)[0])


def check_size(size: int, n_parts: int, part: str) -> None:
    """Check that a coreset has at least one row per cluster or component."""
    if size < n_parts:
        raise InvalidInputError(
            f"size={size} is below n_{part}s={n_parts}",
            argument="size",
            remedy=f"raise size, for example to 100 rows per {part}",
        )


def resolve_for(
    method: str | Sensitivity[Any], n_clusters: int | None, own: Sensitivity[Any] | None = None
) -> Sensitivity[Any]:
    """Resolve the method of an estimator, with its number of clusters if the method takes one.

    The name of `own` selects `own`, with the parameters that the estimator gave it.
    """
    if own is not None and method == own.name:
        return own
    try:
        return construction_for(method, n_clusters)
    except InvalidInputError:  # it takes no number of clusters, or is unknown
        return resolve_method(method)


def is_for_any_k(coreset: Coreset) -> bool:
    """Whether the method of a coreset is for any number of clusters."""
    return bool(coreset.provenance.get("objective") == QuantizationError().record())


def require_weighted_fit(estimator: Any, remedy: str) -> None:
    """Check that an estimator can be fitted on rows with weights, such as a coreset."""
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InvalidTypeError(
            f"estimator is {a_type(estimator)}, whose fit takes no sample_weight, which a coreset "
            "needs",
            argument="estimator",
            remedy=remedy,
        )


def coreset_is_all(coreset: Coreset) -> bool:
    """Whether a coreset holds every row of positive weight."""
    return int(coreset.provenance["m"]) >= int(coreset.provenance["n"])


def warn_lost_classes(classes: AnyArray, labels: AnyArray) -> None:
    """Warn if a class has no row in the coreset, by these labels."""
    lost = np.setdiff1d(classes, labels)
    if len(lost):
        warn_user(
            f"{len(lost)} of the {len(classes)} classes of y have no row in the coreset and are "
            f"never predicted: {', '.join(map(str, lost[:5]))}; raise size."
        )


# Constraints of the parameters that `daskcoreset.build` is called with.
BUILD_CONSTRAINTS: dict[str, list[Any]] = {
    "size": [Interval(Integral, 1, None, closed="left")],
    "method": [str, Sensitivity],
    "on_invalid": [StrOptions({"raise", "drop"}), None],
}

# Constraints of a size, or a number of starts, that may be "auto".
AUTO_SIZE = [*BUILD_CONSTRAINTS["size"], StrOptions({"auto"})]


class CoresetModel(LazyModel):
    """Base of the estimators that have a coreset.

    Attributes
    ----------
    coreset_ : Coreset
    """

    coreset_: Coreset

    def audit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Compare costs on `coreset_` with those on all rows, in one pass over the data.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            The data that the estimator was fitted on.
        y : array-like of shape (n,), or str, optional
            The labels that it was fitted on, if any.
        sample_weight : array-like of shape (n,), or str, optional
        **options
            As in `Coreset.audit`.

        Returns
        -------
        Audit
            Costs, the largest relative difference, and intervals for any other solution.

        Raises
        ------
        InvalidInputError
            As `Coreset.audit`.

        Examples
        --------
        >>> from daskcoreset.estimators import CoresetKMeans
        >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> model = CoresetKMeans(5, size=1000, random_state=0).fit(X)
        >>> model.audit(X, random_state=0).distortion < 0.2
        True
        """
        check_is_fitted(self, "coreset_")
        known: dict[str, Any] = {"on_invalid": self.on_invalid}
        if not {"n_clusters", "objective"} & options.keys():
            known["objective"] = self._judged_by()
        return self.coreset_.audit(
            self._as_fitted(X), y, **{"sample_weight": sample_weight, **known, **options}
        )

    def _judged_by(self) -> Objective[Any] | None:
        """Return the cost that audits compare, or None for that of the method."""
        return None


@dataclass(frozen=True, eq=False)
class Problem:
    """A coreset, and what a solver takes beside it.

    Attributes
    ----------
    coreset : Coreset
    labels : ndarray of shape (m,) or None
        Labels of its rows, in the form of y.
    seed : int
        Seed of the solver.
    root_seed : int
        Seed of the fit, from which that of the solver comes.
    beside : object
        What `SolvedModel._built` returned beside the coreset.
    """

    coreset: Coreset
    labels: Any
    seed: int = 0
    root_seed: int = 0
    beside: Any = None


class SolvedModel(CoresetModel):
    """Base of the estimators that solve on a coreset, which they build or are given.

    `fit` opens the rows, builds or takes a coreset, solves on it, and evaluates the solution.
    """

    random_state: RandomState

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the coreset, and solve on it.

        Parameters
        ----------
        X : array-like of shape (n, d), path, Coreset, Portfolio, CoresetTree or TreeWindow
            Any input of `daskcoreset.build`. If it is a `Coreset`, the solver runs on its rows,
            labels and weights. A portfolio is replaced by its only member, or by the only one of
            the estimator's method. A `CoresetTree`, or a window such as ``tree[-7:]``, is replaced
            by its coreset.
        y : array-like of shape (n,), or str, optional
            Labels or numbers, or their name in X. Estimators without labels ignore it.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows, or their name in X.

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used.
        """
        self._check()
        data, blocks = self._opened(X, y, sample_weight)
        method, size, n_clusters = self._construction(blocks)
        seed, beside = resolve_seed(self.random_state), None
        if data is not None and data.coreset is not None:
            rows = len(data.coreset)
            record = {"m": rows, "n": rows, **data.coreset.provenance}
            coreset = self._taken(replace(data.coreset, provenance=record))
        else:
            coreset, beside = self._drawn(
                blocks, size=size, method=method, n_clusters=n_clusters, random_state=seed
            )
        if data is None:
            self._set_features(X, blocks.schema.n_features, blocks.columns, blocks.cube)
        elif data.coreset is None:
            coreset = self._as_given(coreset, data)
        labels = self._labels_as_given(coreset, data)
        self._solve(Problem(coreset, labels, solver_seed(seed), seed, beside))
        self.coreset_ = coreset
        self._evaluate(data, (X, sample_weight))
        return self

    def _check(self) -> None:
        """Check the parameters before data are read."""
        self._validate_params()

    @abstractmethod
    def _construction(
        self, blocks: RowBlocks
    ) -> tuple[Sensitivity[Any], int | SizeRule, int | None]:
        """Return construction, size and clusters, after the checks that need no coreset."""

    @abstractmethod
    def _solve(self, problem: Problem) -> None:
        """Solve on the coreset, and set the attributes of the solution."""

    def _evaluate(self, data: InMemoryData | None, given: tuple[Any, Any]) -> None:
        """Set the attributes that need all rows, if they are in memory, or X and weights."""

    def _wants_y(self) -> bool:
        """Whether the solver takes labels or numbers."""
        return bool(get_tags(self).target_tags.required)

    def _opened(self, X: Any, y: Any, sample_weight: Any) -> tuple[InMemoryData | None, RowBlocks]:
        """Check and open what `fit` was given."""
        y = y if self._wants_y() else None
        data = self._validate_in_memory(X, y, sample_weight)
        if data is not None:
            return data, data.blocks
        if self._wants_y():
            require_y(self, y)
        rows = row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)
        return None, rows.by(getattr(self, "metric", "euclidean"))

    def _drawn(
        self, blocks: RowBlocks, *, method: Sensitivity[Any], n_clusters: int | None, **options: Any
    ) -> tuple[Coreset, Any]:
        """Build the coreset, which stores `n_clusters` if the method takes it."""
        if method.labels is not None and not blocks.has_labels:
            raise InvalidInputError(
                f"method {method.name!r} needs labels, which {type(self).__name__} does not use",
                argument="method",
                remedy='pass a method without labels, for example "lightweight"',
            )
        if n_clusters is not None and not takes_parts(method, n_clusters):
            n_clusters = None
        with warnings.catch_warnings():
            # To users of an estimator it is no surprise that all of few rows are taken.
            warnings.filterwarnings("ignore", "nothing was reduced", CoresetWarning)
            # Classifiers say it themselves, by the names of the classes.
            warnings.filterwarnings("ignore", r"the coreset has no row of", CoresetWarning)
            normalized = Draw(normalize=True)
            return self._built(
                blocks, method=method, n_clusters=n_clusters, draw=normalized, **options
            )

    def _as_given(self, coreset: Coreset, data: InMemoryData) -> Coreset:
        """Return a coreset of rows in memory with their numbers and columns as given."""
        if self._column_names is None and data.numbers is None:
            return coreset
        record = dict(coreset.provenance)
        if self._column_names is not None:  # lost where scikit-learn made an array
            record["columns"] = self._column_names
        if data.numbers is not None:
            record["n_dropped"] = data.n_given - len(data.numbers)
        numbers = data.numbers_of(coreset.indices)
        return replace(coreset, indices=numbers, provenance=record)

    def _built(self, blocks: RowBlocks, **options: Any) -> tuple[Coreset, Any]:
        """Build the coreset, and what else a model takes from the same pass."""
        return build(blocks, **options), None

    def _taken(self, coreset: Coreset) -> Coreset:
        """Return a coreset that was passed as X in the form in which the model takes it."""
        return coreset

    def _labels_as_given(self, coreset: Coreset, data: InMemoryData | None) -> Any:
        """Labels of the coreset as the user has them: a coreset stores objects as text."""
        if data is None or data.y is None or data.coreset is not None:
            return coreset.labels
        places = coreset.indices
        if data.numbers is not None:
            places = np.searchsorted(data.numbers, places)
        labels: AnyArray = data.y[places]
        if is_classifier(self) and not coreset_is_all(coreset):
            warn_lost_classes(np.unique(data.y), labels)
        return labels

    def _open_fitted(self, X: Any, sample_weight: Any) -> RowBlocks:
        """Open rows without labels, for a fitted model."""
        data = self._validate_in_memory(X, None, sample_weight, reset=False)
        return self._open(X, None, sample_weight) if data is None else data.blocks
