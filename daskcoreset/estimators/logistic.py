"""Logistic regression on a coreset."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from daskcoreset.estimators.linear_model import LinearCoresetModel
from daskcoreset.core.random import RandomState
from daskcoreset.sensitivities import Logistic

__all__ = ["CoresetLogisticRegression"]


class CoresetLogisticRegression(LinearCoresetModel):
    r"""Logistic regression of data of any size.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against :math:`|w|^2/2`, as in scikit-learn.
    size : int, default=10_000
        Rows of the coreset.
    estimator : estimator object or None, default=None
        What solves on the coreset: any linear classifier of scikit-learn whose ``fit`` takes
        ``sample_weight``, with its own parameters. None takes ``LogisticRegression`` with this
        `C`.
    fit_intercept : bool, default=True
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in scikit-learn; "balanced" gives every class the same
        total weight, and takes one more read of the labels where they are out of core. The draws
        are made for the weighted loss, and the weights of `coreset_` contain the factors: leave
        the ``class_weight`` of `estimator` alone.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`; "multinomial" needs ``passes=2``.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        With the labels of y; those that are objects as text.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = CoresetLogisticRegression(size=500, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape  # nothing is read yet
    (50000, 2)
    >>> model.score(X, y) > 0.98
    True

    References
    ----------
    Munteanu, Schwiegelshohn, Sohler and Woodruff (2018), On Coresets for Logistic Regression.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "size": [Interval(Integral, 1, None, closed="left")],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "sampling": [StrOptions({"systematic", "multinomial"})],
        "passes": [Interval(Integral, 1, 2, closed="both")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        size: int = 10_000,
        estimator: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        sampling: Literal["systematic", "multinomial"] = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state

    def _method(self) -> Logistic:
        return Logistic(intercept=bool(self.fit_intercept))

    def _default_solver(self) -> LogisticRegression:
        return LogisticRegression(C=self.C, fit_intercept=self.fit_intercept, max_iter=1000)

    def predict_proba(self, X: Any) -> Any:
        """Probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "predict_proba")

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of the probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "predict_log_proba")
