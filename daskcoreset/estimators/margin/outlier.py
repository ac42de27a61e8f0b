"""The classifier with the largest margin when the labels of a few rows may be wrong."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.constructions.margin.outlier import (
    METHODS,
    InseparableRestError,
    Method,
    OutlierMaxMargin,
)
from daskcoreset.constructions.margin.rows import find_classes
from daskcoreset.core.blocks import MAX_LABELS
from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.estimators.classifier import MARGIN_CONSTRAINTS, MarginModel
from daskcoreset.estimators.margin.soft import soft_planes

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.outlier import OutlierMargin
    from daskcoreset.core.typing import FloatArray


class OutlierMaxMarginClassifier(MarginModel):
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
    `fit` takes no weights: a margin knows none, and a row that is left out counts once.

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
            Two labels; a string where `daskcoreset.build` knows names.

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
        self._validate_params()
        blocks, names = self._labelled_blocks(X, y, None)
        survey = find_classes(blocks, max_classes=MAX_LABELS, n_keep=16)
        labels = survey.value.classes
        if len(labels) > 2:
            raise InvalidInputError(
                "Only binary classification is supported. The type of the target is multiclass; "
                "select two classes."
            )
        self.classes_ = labels if names is None else names[labels]
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
        try:
            result = search.run_blocks(blocks, survey)
        except InseparableRestError as error:
            if self.on_inseparable == "raise":
                raise
            warn_user(f"a soft margin is fitted, for {error}")
            seed = resolve_seed(self.random_state)
            planes = soft_planes(blocks, labels, self.C, intercept=self.fit_intercept, seed=seed)
            self._keep(None, *planes)
            return self
        self._keep(result, result.w[None], np.array([result.b]))
        return self

    def _keep(self, result: OutlierMargin | None, coef: FloatArray, intercept: FloatArray) -> None:
        self._set_hyperplanes(coef, intercept)
        self.result_ = result
        self.separable_ = result is not None
        self.margin_ = result.margin if result else 0.0
        self.probability_ = result.probability if result else 0.0
        self.outliers_ = result.outliers if result else np.zeros(0, dtype=np.int64)
