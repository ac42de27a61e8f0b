"""Linear support vector machines on a coreset."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from daskcoreset.estimators.linear_model import LinearCoresetModel
from daskcoreset.estimators.linear_svm import LinearSVM
from daskcoreset.core.random import RandomState
from daskcoreset.sensitivities import SVM

if TYPE_CHECKING:
    from daskcoreset.sensitivities.svm import Variant

__all__ = ["CoresetSVC"]


class CoresetSVC(LinearCoresetModel):
    r"""Linear support vector machine of data of any size.

    Builds a coreset for the objective :math:`F(w, b) = |w|^2/2 + C \sum_x u(x) [1 - y(x)
    (\langle x, w \rangle + b)]_+`, solves on it, and predicts for all rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, as in scikit-learn; the paper's :math:`\lambda`.
    size : int, default=2000
        Rows of the coreset. ``benchmarks/results/svm_offline.md`` says how far the cost over all
        data is from the optimum then: little with some ten columns, and several times the optimum
        on w8a, which has 300 and few positives.
    estimator : estimator object or None, default=None
        What solves on the coreset: any linear classifier of scikit-learn whose ``fit`` takes
        ``sample_weight``, with its own parameters. None takes `LinearSVM` with this `C`, which
        leaves the intercept without penalty, as the objective does. ``LinearSVC`` penalises it
        unless its ``intercept_scaling`` is large.
    fit_intercept : bool, default=True
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in scikit-learn; "balanced" gives every class the same
        total weight, and takes one more read of the labels where they are out of core. The draws
        are made for the weighted loss, and the weights of `coreset_` contain the factors: leave
        the ``class_weight`` of `estimator` alone.
    variant : {"auto", "pilot_mix", "calibrated", "systematic", "paper"}, default="auto"
        As in `daskcoreset.SVM`.
    n_clusters : int or None, default=None
        As in `daskcoreset.SVM`.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`; "multinomial" needs ``passes=2``.
    passes : {1, 2}, default=1
        As in `daskcoreset.build`: with 1 the data are read twice in all.
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

    See Also
    --------
    daskcoreset.metrics.svm_cost : The objective over all data.

    Notes
    -----
    A coreset is one for the features as they are, and so is the penalty: scale them first
    where their units differ. scikit-learn's ``StandardScaler`` in a pipeline does so in
    memory; out of core, scale the array by its means and deviations.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = CoresetSVC(size=500, random_state=0).fit(X, y)
    >>> model.predict(X)  # nothing is read yet
    dask.array<..., shape=(50000,), dtype=int64, chunksize=(25000,), chunktype=numpy.ndarray>
    >>> model.score(X, y) > 0.98
    True

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), On Coresets for Support Vector Machines.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "size": [Interval(Integral, 1, None, closed="left")],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "variant": [StrOptions({"auto", "pilot_mix", "calibrated", "systematic", "paper"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "sampling": [StrOptions({"systematic", "multinomial"})],
        "passes": [Interval(Integral, 1, 2, closed="both")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        size: int = 2000,
        estimator: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        variant: Variant = "auto",
        n_clusters: int | None = None,
        sampling: Literal["systematic", "multinomial"] = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.variant = variant
        self.n_clusters = n_clusters
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state

    def _method(self) -> SVM:
        return SVM(float(self.C), self.n_clusters, self.variant, bool(self.fit_intercept))

    def _default_solver(self) -> LinearSVM:
        return LinearSVM(C=self.C, fit_intercept=self.fit_intercept)
