"""A linear support vector machine on rows in memory, with an intercept that is not penalised."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from daskcoreset.core.blocks import unusable_row
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators.base import refuse_missing
from daskcoreset.solvers.linear import solve_svm

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["LinearSVM"]


class LinearSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    r"""Minimises :math:`|w|^2/2 + C \sum_i u_i [1 - y_i (\langle x_i, w \rangle + b)]_+`.

    The objective is that of ``SVC(kernel="linear")``; the intercept is not penalised, as it is
    by ``LinearSVC``. Newton's method on a hinge that is rounded off less and less, until the
    dual problem shows that the cost is within `tol` of the optimum: milliseconds for thousands
    of rows, whatever C and the units of the features are. For rows in memory; more than two
    classes go one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    fit_intercept : bool, default=True
    tol : float, default=1e-5
        Share of the optimal cost by which the cost may lie above it.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    n_iter_ : ndarray of shape (1,) or (n_classes,), int64
        Newton steps taken.

    Examples
    --------
    >>> model = LinearSVM().fit([[-2.0], [2.0]], ["left", "right"])
    >>> model.predict([[0.5], [-0.5]]).tolist()
    ['right', 'left']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(self, *, C: float = 1.0, fit_intercept: bool = True, tol: float = 1e-5) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve one problem for two classes, or one for each of more.

        Parameters
        ----------
        X : array-like or sparse of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        LinearSVM
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used: there is one class only, or squared distances overflow.
        """
        self._validate_params()
        refuse_missing(y)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], accept_sparse="csr")
        check_classification_targets(y)
        u = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        _check_usable(X, u)
        used = np.flatnonzero(u > 0.0)
        self.classes_, codes = np.unique(y[used], return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y holds {len(self.classes_)} class of positive weight, and a classifier needs "
                f"two; pass rows of two classes."
            )
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else (1,)
        fits = [
            solve_svm(
                X[used],
                np.where(codes == code, 1.0, -1.0),
                u[used],
                self.C,
                intercept=self.fit_intercept,
                tol=self.tol,
            )
            for code in positive
        ]
        self.coef_ = np.stack([fit.coef for fit in fits])
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.n_iter_ = np.array([max(fit.steps, 1) for fit in fits])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distances, times the length of w: of shape (n,), or (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], accept_sparse="csr", reset=False)
        _check_usable(X, np.ones(X.shape[0]))
        values: FloatArray = np.asarray(X @ self.coef_.T) + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> AnyArray:
        """Class of every row."""
        values = self.decision_function(X)
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        found: AnyArray = self.classes_[best]
        return found


def _check_usable(points: Any, weights: FloatArray) -> None:
    problem = unusable_row(points, weights)
    if problem is not None:
        raise problem.error(0)
