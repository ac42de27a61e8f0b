"""Classifiers with the largest margin, for any number of rows: of all, and of all but a few."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.constructions.margin.core_set import MarginCoreset
from daskcoreset.constructions.margin.examples import survey
from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset, Violators
from daskcoreset.constructions.margin.outlier import (
    METHODS,
    Method,
    OutlierMargin,
    OutlierMaxMargin,
)
from daskcoreset.constructions.margin.problems import MultiClassProblem
from daskcoreset.constructions.margin.rows import FirstRead
from daskcoreset.constructions.margin.separators import KERNELS, Kernel, Separator
from daskcoreset.constructions.margin.structured import structured_margin
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import concatenate
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators.classifier import MARGIN_CONSTRAINTS, SeparatorDecision
from daskcoreset.estimators.kernel.kernels import resolve_gamma
from daskcoreset.estimators.margin.hard import HardMarginModel
from daskcoreset.estimators.margin.soft import soft_separators
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import HUGE_BYTES, RowBlocks

# The epsilon of data in one block of memory, where reading costs nothing.
_EXACT = 1e-9

# The same for more than two classes, where steps are smaller.
_EXACT_CLASSES = 1e-6


class MaxMarginClassifier(HardMarginModel):
    r"""Classifier with the largest margin, up to ``1 - epsilon``, found on a few core rows.

    For two classes the hyperplane farthest from the nearest rows, through the origin or with a
    true intercept (`daskcoreset.MaxMarginCoreset`); for more, one vector a class
    so that every row's own class is ahead of all others by the largest margin (Crammer and
    Singer). Rows are read a few times whatever their number, and the result comes with a
    certificate: `factor_` times the largest margin there is.

    Parameters
    ----------
    epsilon : float, default=0.1
        Up to which the margin is the largest. Data that fit in one block of memory are solved
        exactly, for reading them costs nothing.
    fit_intercept : bool, default=True
    kernel : {"linear", "rbf", "poly", "sigmoid"} or callable, default="linear"
        As in `sklearn.svm.SVC`. With a kernel and more than two classes each class is
        separated from all others.
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
        Of the kernel.
    on_inseparable : {"soft", "raise"}, default="soft"
        What becomes of rows that nothing separates: a soft margin with a warning, or an error.
        Both tell the evidence, a convex combination of a few rows.
    C : float, default=1.0
        Weight of the squared hinge loss in the soft margin.
    violators : {"auto", "block"} or int, default="auto"
    max_passes : int, default=200
        As in `daskcoreset.MaxMarginCoreset`.
    verbose : bool or int, default=False
        Whether every read prints a line, for two classes.
    random_state : int, Generator, RandomState or None, default=None
        For the soft margin alone, of more than 10,000 rows, of which it takes so many. The
        largest margin is found without chance.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity when `fit` reads them, as in `daskcoreset.build`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
        Without a kernel; for two classes of length one, so that decision values are distances.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
        Labels of rows with a positive weight.
    separable_ : bool
    margin_ : float
        Of all rows; zero if they are not separable.
    factor_ : float
        Certified share of the largest margin; zero if the rows are not separable.
    coreset_ : Coreset
        The rows that were chosen, of all classes, each once and of weight one: a margin has no
        weights, and these rows stand for all in no sum of costs. What it promises is measured, in
        `margin_` and `factor_`, and by `audit`. Of rows that are not separable those that the
        soft margin is fitted to: up to 10,000 drawn uniformly, whose weights make them stand for
        all; `audit` compares losses then.
    core_indices_ : ndarray of shape (m,), int64
        Row numbers of the core set; empty if the rows are not separable.
    dual_coef_ : ndarray of shape (m,), float64
        Coefficients of the core rows, for two classes times +1 or -1.
    trace_ : tuple
        Of every read the size of the core set, the margin on it and on the data.
    core_ : MarginCoreset, tuple of such, or StructuredMargin, or None
        All that was found; a tuple with a kernel and more than two classes.
    evidence_ : InvalidInputError or None
        Why the rows are not separable, with `indices` and `coefficients` of a combination.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    CoresetWarning
        If the rows are not separable, or `max_passes` ends the work.

    See Also
    --------
    OutlierMaxMarginClassifier : With some wrong labels.

    Notes
    -----
    A margin does not depend on weights: rows with a ``sample_weight`` of zero are left out, and all
    others count the same; the soft margin weighs them.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).random(size=(20_000, 2), chunks=(5_000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = MaxMarginClassifier(epsilon=0.01).fit(X, y)
    >>> model.score(X, y), model.factor_ >= 0.99, len(model.core_indices_) < 200
    (1.0, True, True)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and section 6.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Real],
        "violators": [StrOptions({"auto", "block"}), Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    core_: Any
    trace_: tuple[Any, ...]
    evidence_: Any

    def __init__(
        self,
        epsilon: float = 0.1,
        *,
        fit_intercept: bool = True,
        kernel: Any = "linear",
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        violators: Violators = "auto",
        max_passes: int = 200,
        verbose: bool | int = False,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.on_inseparable = on_inseparable
        self.C = C
        self.violators = violators
        self.max_passes = max_passes
        self.verbose = verbose
        self.random_state = random_state
        self.on_invalid = on_invalid

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels; a string where `daskcoreset.build` takes names.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out.

        Returns
        -------
        MaxMarginClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or there is one class only; with
            ``on_inseparable="raise"`` if the rows are not separable.
        """
        return self._fit(X, y, sample_weight)

    def _separate(self, blocks: RowBlocks, first: BlockResults[FirstRead]) -> None:
        exact = blocks.are_views and blocks.memory_bytes <= HUGE_BYTES
        epsilon = min(self.epsilon, _EXACT) if exact else self.epsilon
        several = len(self.classes_) > 2
        if several and self.kernel == "linear":
            if first.value.n_used < first.n_kept:
                raise InvalidInputError(
                    "sample_weight is zero for some rows out of core, which only two classes or "
                    "a kernel can take; leave such rows out."
                )
            self._separate_classes(blocks, first.value.classes, max(epsilon, _EXACT_CLASSES))
            return
        coreset = MaxMarginCoreset(
            epsilon=epsilon,
            intercept=self.fit_intercept,
            kernel=self.kernel,
            gamma=self._gamma(blocks),
            degree=self.degree,
            coef0=self.coef0,
            violators=self.violators,
            max_passes=self.max_passes,
            progress=bool(self.verbose),
        )
        cores = [
            replace(coreset, positive=label).run_blocks(blocks, first)
            for label in (first.value.classes if several else first.value.classes[1:])
        ]
        if self.kernel == "linear":
            w = cores[0].w
            assert w is not None  # noqa: S101 - without a kernel
            self._set_hyperplanes(w[None], np.array([cores[0].b]))
        else:
            self._set_separators(tuple(core.separator for core in cores))
        self.core_ = tuple(cores) if several else cores[0]
        self.margin_ = min(core.margin for core in cores)
        self.factor_ = min(core.factor for core in cores)
        self.core_indices_ = self._in_data(np.concatenate([core.indices for core in cores]))
        self.dual_coef_ = np.concatenate([core.dual * core.signs for core in cores])
        self.trace_ = tuple(step for core in cores for step in core.trace)
        self.evidence_ = None
        self._keep_cores(cores, first.value.classes)

    def _keep_cores(self, cores: list[MarginCoreset], block_classes: AnyArray) -> None:
        """Keep the rows of the core sets, one for every class of several, each once."""
        core, facts = cores[0].core, cores[0].describe()
        if len(cores) > 1:
            core = concatenate([found.core for found in cores])
            core = core.take(np.unique(core.indices, return_index=True)[1])
            facts = {"core_margin": min(found.core_margin for found in cores)}
        labels = self._named(core.labels, block_classes)
        core = replace(core, indices=self._in_data(core.indices), labels=labels)
        self._keep_core("max_margin", core, cores[0].n_rows, facts)

    def _separate_classes(self, blocks: RowBlocks, labels: AnyArray, epsilon: float) -> None:
        center, bias = None, 0.0
        if self.fit_intercept:
            # Weighted: a row twice is a row of weight two.
            summary = survey(blocks)
            center, bias = summary.moments.mean, summary.spread
        problem = MultiClassProblem(blocks.schema.n_features, len(labels), center, bias)
        core = structured_margin(
            blocks, problem, epsilon, classes=labels, max_passes=self.max_passes
        )
        self._set_hyperplanes(*problem.planes_of_rows(core.w))
        self.core_, self.margin_, self.factor_ = core, core.data_margin, core.factor
        self.core_indices_, self.dual_coef_ = self._in_data(core.examples), core.dual
        self.trace_, self.evidence_ = core.trace, None
        rows = core.core_rows(self.classes_)
        rows = replace(rows, indices=self._in_data(rows.indices))
        self._keep_core("max_margin", rows, core.n_examples, core.describe())

    def _set_separators(self, separators: tuple[Separator, ...]) -> None:
        """Set the attributes of a classifier with a kernel, and its decision function."""
        if hasattr(self, "coef_"):
            del self.coef_  # of an earlier fit
        self.intercept_ = np.array([separator.intercept for separator in separators])
        self._decision = SeparatorDecision(separators, self.classes_)

    def _gamma(self, blocks: RowBlocks) -> float:
        if self.kernel == "linear" or callable(self.kernel):
            return 1.0
        variance = summarise_classes(blocks).variance if self.gamma == "scale" else 1.0
        return resolve_gamma(self.gamma, blocks.schema.n_features, variance)

    def _soften(self, blocks: RowBlocks, classes: AnyArray, error: InvalidInputError) -> None:
        if self.kernel == "linear":
            self._set_soft_planes(blocks, classes)
        else:
            rows = self._soft_rows(blocks, classes)
            kernel = Kernel(self.kernel, self._gamma(blocks), self.degree, self.coef0)
            self._set_separators(soft_separators(rows, classes, self.C, kernel))
            self._soft_kernel = kernel
        self.core_, self.margin_, self.factor_ = None, 0.0, 0.0
        self.core_indices_, self.dual_coef_ = np.zeros(0, dtype=np.int64), np.zeros(0)
        self.trace_, self.evidence_ = (), error


class OutlierMaxMarginClassifier(HardMarginModel):
    r"""Classifier of two classes with the largest margin when k rows may be left out.

    Parameters
    ----------
    k : int, default=1
        Rows left out, those of least margin.
    epsilon : float, default=0.1
    fit_intercept : bool, default=True
    method : {"auto", "exact", "random", "subsets"}, default="auto"
    confidence : float, default=0.99
    max_problems : int, default=2000
    max_passes : int, default=100
        As in `daskcoreset.constructions.margin.outlier.OutlierMaxMargin`.
    on_inseparable : {"soft", "raise"}, default="soft"
        What becomes of rows that nothing separates when k are left out: a soft margin with a
        warning, or an error.
    C : float, default=1.0
        Weight of the squared hinge loss in the soft margin.
    random_state : int, Generator, RandomState or None, default=None
        For "random", and for the soft margin of more than 10,000 rows, of which it takes so
        many.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity when `fit` reads them, as in `daskcoreset.build`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d), float64
        Of length one, so that decision values are distances.
    intercept_ : ndarray of shape (1,), float64
    classes_ : ndarray of shape (2,)
    separable_ : bool
        When k rows are left out.
    margin_ : float
        Of all rows but k; zero if they are not separable.
    coreset_ : Coreset
        The rows that determine the separator when the k are left out, of weight one, as a margin
        has no weights. Of rows that are not separable those that the soft margin is fitted to, as
        in `MaxMarginClassifier`.
    outliers_ : ndarray of shape (k,), int64
        Numbers of the rows left out, in increasing order; empty if they are not separable.
    probability_ : float
        With which `margin_` is at least ``1 - epsilon`` of the largest there is.
    result_ : OutlierMargin or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    CoresetWarning
        If the rows are not separable, or the probability wanted is not reached.

    See Also
    --------
    MaxMarginClassifier : Where all labels are right.

    Notes
    -----
    `fit` takes no weights, since a margin has none, and a row that is left out counts once.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 2))
    >>> X = X[np.abs(X[:, 0]) > 0.1]
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[[3, 14]] = 1 - y[[3, 14]]
    >>> model = OutlierMaxMarginClassifier(k=2).fit(X, y)
    >>> model.outliers_, model.probability_, bool(model.margin_ > 0.09)
    (array([ 3, 14]), 1.0, True)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "k": [Interval(Integral, 0, None, closed="left")],
        "method": [StrOptions(set(METHODS))],
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
            Two labels; a string where `daskcoreset.build` takes names.

        Returns
        -------
        OutlierMaxMarginClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or there are not two classes; with
            ``on_inseparable="raise"`` if the rows are not separable when k are left out.
        """
        return self._fit(X, y, None)

    def _separate(self, blocks: RowBlocks, first: BlockResults[FirstRead]) -> None:
        if len(first.value.classes) > 2:
            raise InvalidInputError(
                "Only binary classification is supported. The type of the target is multiclass; "
                "select two classes."
            )
        search = OutlierMaxMargin(
            k=self.k,
            epsilon=self.epsilon,
            intercept=self.fit_intercept,
            method=self.method,
            confidence=self.confidence,
            max_problems=self.max_problems,
            max_passes=self.max_passes,
            random_state=self.random_state,
        )
        result = search.run_blocks(blocks, first)
        self._set_hyperplanes(result.w[None], np.array([result.b]))
        self.result_, self.outliers_ = result, result.outliers
        self.margin_, self.probability_ = result.margin, result.probability
        core = replace(result.core, labels=self._named(result.core.labels, first.value.classes))
        facts = {"core_margin": result.core_margin, "margin": result.margin, "k": int(self.k)}
        self._keep_core("outlier_max_margin", core, result.n_rows, facts)

    def _n_left_out(self) -> int:
        return int(self.k)

    def _soften(self, blocks: RowBlocks, classes: AnyArray, error: InvalidInputError) -> None:
        del error  # it was a warning, and there is no evidence
        self._set_soft_planes(blocks, classes)
        self.result_, self.outliers_ = None, np.zeros(0, dtype=np.int64)
        self.margin_, self.probability_ = 0.0, 0.0
