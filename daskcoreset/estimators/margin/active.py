"""A maximum-margin classifier that asks for few labels."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset.constructions.margin.active import (
    ActiveMargin,
    ActiveOptions,
    ActiveRun,
    Oracle,
    start_run,
)
from daskcoreset.constructions.margin.core_set import refuse_wide
from daskcoreset.constructions.margin.pool import Pool, open_pool
from daskcoreset.core.messages import warn_user
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.core.validation import check_flag
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.checks import refuse_as, require_y
from daskcoreset.estimators.margin.max_margin import MARGIN_CONSTRAINTS, MarginModel, check_binary


class ActiveMaxMarginClassifier(MarginModel):
    """Classifier of two classes with a large margin, from few labels.

    It asks for labels of rows near the boundary and of random rows. See :doc:`/guides/kernels`.

    Parameters
    ----------
    epsilon : float, default=0.1
        Every row nearer to the boundary than ``(1 - epsilon)`` times the margin on the core set
        has its label.
    error : float, default=0.05
        Share of the rows, by weight, that may be misclassified.
    delta : float, default=0.05
        Probability that more are, over the draws of the whole run.
    fit_intercept : bool, default=True
        Whether the boundary may miss the origin.
    batch : int, default=1
        Labels per request. Larger batches need fewer passes and more labels.
    max_labels : int or None, default=None
        Largest number of labels.
    on_inseparable : {"soft", "raise"}, default="soft"
        Action if no separator agrees with the labels: go on with the squared hinge loss and
        warn, or raise.
    C : float, default=1.0
        Weight of that loss.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the random rows.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.build`, for the rows that `fit` reads.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, d) and (1,), float64
    classes_ : ndarray of shape (n_classes,)
    margin_ : float
        Margin on all rows, if rows without a label are classified correctly. NaN if it was not
        measured, infinite if only one class was seen.
    core_margin_ : float
        Margin on the core set: an upper bound of the largest margin there is.
    coreset_ : Coreset
        The rows of the core set, with weight one. Missing if only one class was seen.
    n_labels_, n_labels_by_phase_ : int and dict of str to int
        Labels asked for.
    certificate_ : Certificate
        Share of the rows that may be misclassified, and its probability.
    result_ : ActiveMargin
        The labels, the core set and the trace.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> X = X[np.abs(X[:, 0] + X[:, 1]) > 0.1]
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "above", "below")
    >>> model = ActiveMaxMarginClassifier(random_state=0).fit(X, y)
    >>> model.n_labels_ < 200, model.score(X, y)
    (True, 1.0)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 2, Lemmas 4.1 and 4.2.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "error": [Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "batch": [Interval(Integral, 1, None, closed="left")],
        "max_labels": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        error: float = 0.05,
        delta: float = 0.05,
        fit_intercept: bool = True,
        batch: int = 1,
        max_labels: int | None = None,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.error = error
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.batch = batch
        self.max_labels = max_labels
        self.on_inseparable = on_inseparable
        self.C = C
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        oracle: Oracle | None = None,
    ) -> Self:
        """Ask for labels until the separator passes.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str, optional
            Labels. Only the needed ones are used, and `n_labels_` counts them.
        oracle : callable, optional
            In place of y: ``oracle(rows)`` or ``oracle(rows, indices=...)`` gives labels.

        Returns
        -------
        ActiveMaxMarginClassifier
            The estimator itself.

        Raises
        ------
        OracleError
            If the oracle raises, or returns unusable labels. If the labels cannot be separated and
            `on_inseparable` is "raise". The attribute `asking` holds all labels.
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used. If y is given for rows of more than 2,048 columns, and
            `max_labels` is not below their number.
        """
        self._validate_params()
        if oracle is not None and y is not None:
            raise InvalidInputError("both y and oracle are given", remedy="pass one of them")
        is_asked = oracle is not None  # an oracle labels few rows
        pool, classes, oracle = self._opened(X, y, oracle)
        if not is_asked:
            refuse_wide(pool.blocks, self.max_labels)
        pair = None if classes is None or len(classes) < 2 else classes.tolist()
        run = start_run(pool, self._options(), classes=pair)
        result = run.run(oracle)
        self._keep(result, classes, pool.n_rows, soft=math.isfinite(run.options.C))
        return self

    def start(
        self,
        X: Any,
        *,
        known: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
        classes: tuple[Any, Any] | None = None,
        soft: bool = False,
    ) -> ActiveRun:
        """Open a pool of rows, for questions and answers one by one.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Rows without labels, any input of `daskcoreset.build`.
        known : pair of array-likes or None, default=None
            Row numbers and labels that are already known, at no cost. Pass those of an earlier
            run to continue it.
        sample_weight : array-like of shape (n,), or str, optional
            Random rows are drawn, and the error is measured, by weight. Rows of weight zero are
            never asked for.
        classes : pair of labels or None, default=None
            The two classes. None takes the first two values that are given.
        soft : bool, default=False
            Whether errors are allowed from the first label on.

        Returns
        -------
        ActiveRun
            ``ask()`` returns rows, ``tell(labels)`` takes their labels, ``run(oracle)`` does both
            until the end, and ``result()`` is what is known.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the data or known labels cannot be used.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(1000, 2))
        >>> run = ActiveMaxMarginClassifier(random_state=0).start(X)
        >>> request = run.ask()
        >>> run.tell(["left" if row[0] < 0 else "right" for row in request.rows])
        >>> run.n_labels
        1
        """
        self._validate_params()
        check_flag("soft", soft)
        pool = open_pool(X, None, sample_weight, on_invalid=self.on_invalid)
        return start_run(pool, self._options(soft=soft), known=known, classes=classes)

    def _opened(
        self, X: Any, y: Any, oracle: Oracle | None
    ) -> tuple[Pool, AnyArray | None, Oracle]:
        """Return the pool, the classes if they are known, and the oracle."""
        # What reads the rows drops those that are not finite, and numbers the others as they were.
        data = self._validate_in_memory(X, y, None, fits=oracle is None, finite=False)
        if data is not None:
            pool = open_pool(data.X, on_invalid=self.on_invalid)
            if oracle is not None:
                return pool, None, oracle
            with refuse_as("y"):
                check_classification_targets(data.y)
            classes = np.unique(data.y)
            check_binary(classes)
            return pool, classes, partial(_look_up, data.y)
        if oracle is None:
            require_y(self, y)
        pool = open_pool(X, y, on_invalid=self.on_invalid)
        self._set_features(X, pool.blocks.schema.n_features, pool.blocks.columns)
        return pool, None, oracle or partial(_labels_of_pool, pool)

    def _options(self, *, soft: bool = False) -> ActiveOptions:
        return ActiveOptions(
            epsilon=float(self.epsilon),
            error=float(self.error),
            delta=float(self.delta),
            intercept=bool(self.fit_intercept),
            batch=int(self.batch),
            max_labels=None if self.max_labels is None else int(self.max_labels),
            seed=resolve_seed(self.random_state),
            C=float(self.C) if soft else math.inf,
            fallback=float(self.C) if self.on_inseparable == "soft" else None,
        )

    def _keep(
        self, result: ActiveMargin, classes: AnyArray | None, n_rows: int, *, soft: bool
    ) -> None:
        self.result_ = result
        self.classes_ = np.array(result.classes) if classes is None else classes
        self._set_hyperplanes(result.w[None, :], np.array([result.b]))
        self.margin_, self.core_margin_ = result.margin, result.core_margin
        self.n_labels_, self.n_labels_by_phase_ = result.n_labels, result.n_labels_by_phase
        self.certificate_ = result.certificate
        facts: dict[str, Any] = {"n_labels": result.n_labels}
        if not soft:
            facts["core_margin"] = result.core_margin
        self._keep_core("active_max_margin", result.core, n_rows, facts)
        if len(result.classes) == 1 and (classes is None or len(classes) > 1):
            warn_user(
                f"all {result.n_labels} labels asked for are {result.classes[0]!r}, so this class "
                f"is always predicted; lower error if the other class is rarer than error."
            )


def _look_up(labels: Any, _rows: AnyArray, indices: IndexArray) -> list[Any]:
    return list(labels[indices].tolist())


def _labels_of_pool(pool: Pool, _rows: AnyArray, indices: IndexArray) -> AnyArray | None:
    return pool.fetch(indices).block.labels
