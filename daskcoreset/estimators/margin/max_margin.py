"""Classifiers with the largest margin, for any number of rows: of all, and of all but a few."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.constructions.margin.core_set import MarginCoreset, Pass, Violators, max_margin
from daskcoreset.constructions.margin.outlier import (
    Method,
    OutlierMargin,
    OutlierOptions,
    outlier_margin,
)
from daskcoreset.constructions.margin.problems import MultiClassProblem, centering
from daskcoreset.constructions.margin.rows import FirstRead
from daskcoreset.constructions.margin.structured import (
    StructuredMargin,
    StructuredStep,
    structured_margin,
)
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError, NotSeparableError
from daskcoreset.estimators.margin.hard import MARGIN_CONSTRAINTS, HardMarginModel
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.cuts import HUGE_BYTES

# The epsilon of data in one block of memory, where reading costs nothing.
_EXACT = 1e-9

# The same for more than two classes, where steps are smaller.
_EXACT_CLASSES = 1e-6


class MaxMarginClassifier(HardMarginModel):
    r"""Classifier with the largest margin, up to ``1 - epsilon``, found on a few core rows.

    Two classes are separated by the hyperplane farthest from the nearest rows. More classes have
    one vector each, so that every row's own class is ahead of the others (Crammer and Singer).
    `factor_` certifies the share of the largest margin. See :doc:`/guides/kernels`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The margin is at least ``1 - epsilon`` of the largest. One block in memory gets it all.
    fit_intercept : bool, default=True
        False for hyperplanes through the origin.
    on_inseparable : {"soft", "raise"}, default="soft"
        Action if nothing separates the rows: fit a soft margin to 10,000 uniform rows and warn, or
        raise. Both name a convex combination of a few rows as proof.
    C : float, default=1.0
        Weight of the squared hinge loss in the soft margin.
    violators : "auto" or int, default="auto"
        Rows added to the core set after a pass. 1 is Fig. 1 of the paper. "auto" is the larger of
        20 and twice the number of columns.
    max_passes : int, default=200
        Passes after which to stop, with a warning.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the rows of the soft margin. The largest margin needs no seed.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.build`, for the rows that `fit` reads.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, d) or (n_classes, d), and (1,) or (n_classes,)
        With two classes, of length one, so that decision values are distances.
    classes_ : ndarray of shape (n_classes,)
        Labels of rows with a positive weight.
    separable_ : bool
    margin_, core_margin_ : float
        Margin on all rows, and on the core set, an upper bound of the largest margin there is.
    factor_ : float
        ``margin_ / core_margin_``. All three are zero if the rows are not separable.
    coreset_ : Coreset
        Rows of the core set, with weight one, or of the soft margin if not separable.
    core_indices_, dual_coef_ : ndarray of shape (m,)
        Row numbers of the core set, and coefficients.
    trace_ : tuple
        Per pass: the size of the core set, and the margin on it and on the data.
    result_ : MarginCoreset, StructuredMargin or None
    evidence_ : daskcoreset.errors.NotSeparableError or None

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).random(size=(20_000, 2), chunks=(5_000, 2))
    >>> model = MaxMarginClassifier(epsilon=0.01).fit(X, X[:, 0] > X[:, 1])
    >>> model.factor_ >= 0.99, len(model.coreset_) < 200
    (True, True)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and section 6.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "violators": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    result_: MarginCoreset | StructuredMargin | None
    trace_: tuple[Pass, ...] | tuple[StructuredStep, ...]
    evidence_: NotSeparableError | None

    def __init__(
        self,
        epsilon: float = 0.1,
        *,
        fit_intercept: bool = True,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        violators: Violators = "auto",
        max_passes: int = 200,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.on_inseparable = on_inseparable
        self.C = C
        self.violators = violators
        self.max_passes = max_passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels, or their name in X.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out, and all others count the same. The soft margin uses
            the weights.

        Returns
        -------
        MaxMarginClassifier
            The estimator itself.

        Raises
        ------
        NotSeparableError
            If the rows are not separable, and `on_inseparable` is "raise".
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or y has one class.
        """
        return self._fit(X, y, sample_weight)

    def _separate(self, blocks: RowBlocks, first: BlockResults[FirstRead]) -> None:
        exact = blocks.are_views and (blocks.stored_bytes or 0) <= HUGE_BYTES
        epsilon = min(self.epsilon, _EXACT) if exact else self.epsilon
        if len(self.classes_) > 2:
            self._separate_classes(blocks, first.value.classes, max(epsilon, _EXACT_CLASSES))
            return
        found = max_margin(
            blocks,
            first,
            epsilon=epsilon,
            intercept=self.fit_intercept,
            violators=self.violators,
            max_passes=self.max_passes,
        )
        separator, core = found.separator, found.core
        self._set_hyperplanes(separator.w[None], np.array([separator.intercept]))
        self._keep(found)
        self.core_indices_ = self._in_data(core.indices)
        self.dual_coef_ = found.dual * found.signs
        labels = self._named(core.labels, first.value.classes)
        core = replace(core, indices=self.core_indices_, labels=labels)
        self._keep_core("max_margin", core, found.n_rows, found.describe())

    def _separate_classes(self, blocks: RowBlocks, labels: AnyArray, epsilon: float) -> None:
        center, bias = None, 0.0
        if self.fit_intercept:
            # Weighted: a row twice is a row of weight two.
            center, bias = centering(summarise_classes(blocks))
        problem = MultiClassProblem(blocks.schema.n_features, len(labels), center, bias)
        found = structured_margin(
            blocks, problem, epsilon, classes=labels, max_passes=self.max_passes
        )
        self._set_hyperplanes(*problem.planes_of_rows(found.w))
        self._keep(found)
        self.core_indices_, self.dual_coef_ = self._in_data(found.examples), found.dual
        rows = found.core_rows(self.classes_)
        rows = replace(rows, indices=self._in_data(rows.indices))
        self._keep_core("max_margin", rows, found.n_examples, found.describe())

    def _keep(self, found: MarginCoreset | StructuredMargin) -> None:
        facts = found.describe()
        self.result_, self.evidence_, self.trace_ = found, None, found.trace
        self.margin_, self.core_margin_ = facts["margin"], facts["core_margin"]
        self.factor_ = found.factor

    def _keep_soft(self, error: NotSeparableError) -> None:
        self.result_, self.evidence_, self.trace_ = None, error, ()
        self.margin_, self.core_margin_, self.factor_ = 0.0, 0.0, 0.0
        self.core_indices_, self.dual_coef_ = np.zeros(0, dtype=np.int64), np.zeros(0)


class OutlierMaxMarginClassifier(HardMarginModel):
    r"""Classifier of two classes with the largest margin when k rows may be left out.

    See :doc:`/guides/kernels`.

    Parameters
    ----------
    k : int, default=1
        Number of rows to leave out: those with the least margin.
    epsilon : float, default=0.1
        The margin is at least ``1 - epsilon`` of the largest over all choices of k rows.
    fit_intercept : bool, default=True
    method : {"auto", "exact", "random"}, default="auto"
        "exact" leaves out one row after another that may matter (Matousek). "random" separates
        random subsets, and finds the largest margin with a probability. "auto" takes "exact" if it
        needs at most `max_problems`.
    confidence : float, default=0.99
        Probability required of "random".
    max_problems : int, default=2000
        Largest number of hard-margin problems. If "random" needs more draws, it warns.
    max_passes : int, default=100
        Largest number of passes per batch of problems.
    on_inseparable : {"soft", "raise"}, default="soft"
    C : float, default=1.0
        As in `MaxMarginClassifier`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of "random", and of the rows of the soft margin.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.build`, for the rows that `fit` reads.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d), float64
        Normal of length one. Decision values are distances.
    intercept_ : ndarray of shape (1,), float64
    classes_ : ndarray of shape (2,)
    separable_ : bool
        Whether the rows are separable when k are left out.
    margin_, core_margin_ : float
        Margin on all rows but k, and on the core set without these. Zero if not separable.
    coreset_ : Coreset
        Rows that determine the separator, with weight one. If they are not separable, the rows of
        the soft margin.
    outliers_ : ndarray of shape (k,), int64
        Numbers of the rows left out, in increasing order. Empty if not separable.
    probability_ : float
        Probability that `margin_` is at least ``1 - epsilon`` of the largest one.
    result_ : OutlierMargin or None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.0], [-2.0, 1.0], [-3.0, 0.0]])
    >>> model = OutlierMaxMarginClassifier(k=1, fit_intercept=False).fit(X, [1, 1, 0, 0, 1])
    >>> model.outliers_, round(model.margin_, 6)
    (array([4]), 1.0)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2. Matousek (1995) for "exact".
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "k": [Interval(Integral, 0, None, closed="left")],
        "method": [StrOptions({"auto", "exact", "random"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "max_problems": [Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    result_: OutlierMargin | None

    def __init__(
        self,
        k: int = 1,
        *,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        method: Method = "auto",
        confidence: float = 0.99,
        max_problems: int = 2000,
        max_passes: int = 100,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.method = method
        self.confidence = confidence
        self.max_problems = max_problems
        self.max_passes = max_passes
        self.on_inseparable = on_inseparable
        self.C = C
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels of two classes, or their name in X.

        Returns
        -------
        OutlierMaxMarginClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or y does not have two classes. If the rows stay
            inseparable without k rows and `on_inseparable` is "raise".
        """
        return self._fit(X, y, None)

    def _separate(self, blocks: RowBlocks, first: BlockResults[FirstRead]) -> None:
        if len(first.value.classes) > 2:
            raise InvalidInputError(
                "Only binary classification is supported. The type of the target is multiclass",
                remedy="select two classes",
            )
        options = OutlierOptions(
            k=self.k,
            epsilon=self.epsilon,
            intercept=self.fit_intercept,
            method=self.method,
            confidence=self.confidence,
            max_problems=self.max_problems,
            max_passes=self.max_passes,
            random_state=self.random_state,
        )
        found = outlier_margin(blocks, first, options)
        separator, core = found.separator, found.core
        self._set_hyperplanes(separator.w[None], np.array([separator.intercept]))
        self.result_, self.outliers_ = found, found.outliers
        self.margin_, self.core_margin_ = found.margin, found.core_margin
        self.probability_ = found.probability
        core = replace(core, labels=self._named(core.labels, first.value.classes))
        facts = {"core_margin": found.core_margin, "margin": found.margin, "k": int(self.k)}
        self._keep_core("outlier_max_margin", core, found.n_rows, facts)

    def _keep_soft(self, error: NotSeparableError) -> None:
        del error  # it was a warning, and there is no evidence
        self.result_, self.outliers_ = None, np.zeros(0, dtype=np.int64)
        self.margin_, self.core_margin_, self.probability_ = 0.0, 0.0, 0.0
