"""Any estimator of scikit-learn on a coreset."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from daskcoreset.core.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.estimators.base import InMemoryData, solver_seed
from daskcoreset.estimators.delegation import DelegatingModel
from daskcoreset.sensitivities import Sensitivity, resolve_method

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, Sampling

__all__ = ["CoresetEstimator"]


class CoresetEstimator(DelegatingModel):
    """Fits any estimator that takes weights on a coreset, and applies it to all rows.

    Parameters
    ----------
    estimator : estimator object
        A classifier, regressor, clusterer or transformer whose ``fit`` takes
        ``sample_weight``. In a pipeline, put `CoresetEstimator` around the last step.
    size : int, default=10_000
        Rows of the coreset: what most solvers fit within seconds.
    method : str or Sensitivity, default="lightweight"
        Construction of the coreset, as in `daskcoreset.build`. "lightweight" keeps rows far
        from the mean, which clusterers and transformers that square distances need. For
        linear models of rows that are all alike, "uniform" may serve as well.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    random_state : int, Generator, RandomState or None, default=None
        Determines the coreset, and every ``random_state`` of `estimator` that is None.

    Attributes
    ----------
    estimator_ : estimator object
        The clone of `estimator` that was fitted on the coreset.
    coreset_ : Coreset
        What it was fitted on, with the labels of its rows.
    classes_ : ndarray
        Classes in the coreset, of a classifier.
    labels_ : ndarray of shape (n,)
        Cluster of every row, of a clusterer with ``predict`` and data in memory.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    CoresetWarning
        When rows of a class are among the labels in memory, but none is in the coreset.

    See Also
    --------
    CoresetKMeans : k-means, with a coreset made for it.

    Notes
    -----
    Weights add up to those of the data, so that terms of regularisation keep their balance
    with the loss. Methods of `estimator` (``predict``, ``predict_proba``, ``transform`` and
    others) are there where it has them; on data out of core they return Dask arrays.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = CoresetEstimator(LogisticRegression(), size=1000, random_state=0).fit(X, y)
    >>> model.predict(X)  # nothing is read yet
    dask.array<..., shape=(50000,), dtype=int64, chunksize=(25000,), chunktype=numpy.ndarray>
    >>> model.score(X, y) > 0.95
    True

    References
    ----------
    Bachem, Lucic and Krause (2018), Scalable k-means clustering via lightweight coresets.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods("fit")],
        "size": [Interval(Integral, 1, None, closed="left")],
        "method": [str, Sensitivity],
        "sampling": [StrOptions({"systematic", "multinomial"})],
        "passes": [Interval(Integral, 1, 2, closed="both")],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        size: int = 10_000,
        method: str | Sensitivity[Any] = "lightweight",
        sampling: Sampling = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.size = size
        self.method = method
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), deepcopy(get_tags(self.estimator))
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags"):
            setattr(tags, name, getattr(inner, name))
        # A coreset keeps one label for a row, and no distances between rows.
        tags.target_tags = replace(inner.target_tags, multi_output=False, single_output=True)
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.non_deterministic = inner.non_deterministic
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the coreset, and fit a clone of `estimator` on it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str, optional
            Labels of a classifier or regressor; others ignore it. A string where
            `daskcoreset.build` knows names.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows.

        Returns
        -------
        CoresetEstimator
            The estimator itself.

        Raises
        ------
        InvalidTypeError
            If the ``fit`` of `estimator` takes no ``sample_weight``.
        InvalidInputError, ValueError, TypeError
            If another argument cannot be used.
        """
        self._validate_params()
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise InvalidTypeError(
                f"estimator is a {type(self.estimator).__name__}, whose fit takes no "
                f"sample_weight, so that it cannot be fitted on a coreset; pass one that does, "
                f"in a pipeline its last step, in a search what is searched."
            )
        method, wants_y = resolve_method(self.method), self._wants_y()
        y = y if wants_y else None
        held = self._check(X, y, sample_weight)
        if held is None and wants_y and y is None:
            raise InvalidInputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                f"is None; pass the labels."
            )
        seed = resolve_seed(self.random_state)
        data = held or (X, y, sample_weight)
        self.coreset_ = self._coreset_of(data, size=self.size, method=method, seed=seed)
        labels = self.coreset_.labels if held is None else self._labels_of(held)
        points, weights, labels = deduplicate(self.coreset_.points, self.coreset_.weights, labels)
        self.estimator_ = _seeded(clone(self.estimator), solver_seed(seed))
        target = (labels,) if wants_y else ()
        self.estimator_.fit(points, *target, sample_weight=weights)
        clusters = held is not None and is_clusterer(self) and hasattr(self.estimator_, "predict")
        self._labels = self.estimator_.predict(held.X) if held is not None and clusters else None
        return self

    def _wants_y(self) -> bool:
        tags = get_tags(self.estimator)
        return bool(
            is_classifier(self.estimator)
            or is_regressor(self.estimator)
            or tags.target_tags.required
        )

    def _check(self, X: Any, y: Any, sample_weight: Any) -> InMemoryData | None:
        numeric = {"y_numeric": True} if y is not None and is_regressor(self.estimator) else {}
        held = self._hold(X, y, sample_weight, **numeric)
        if held is not None and held.y is not None and is_classifier(self.estimator):
            check_classification_targets(held.y)
        return held

    def _labels_of(self, held: InMemoryData) -> AnyArray | None:
        """Labels of the coreset's rows as the user has them: a coreset stores objects as text."""
        if held.y is None:
            return None
        labels: AnyArray = held.y[self.coreset_.indices]
        if is_classifier(self.estimator):
            lost = np.setdiff1d(held.y, labels)
            if len(lost):
                warnings.warn(
                    f"{len(lost)} of the {len(np.unique(held.y))} classes of y have no row in the "
                    f"coreset: {', '.join(map(str, lost[:5]))}. They will never be predicted; "
                    f"raise size.",
                    CoresetWarning,
                    stacklevel=3,
                )
        return labels


def _seeded(estimator: Any, seed: int) -> Any:
    """Give every random_state inside that is None a seed of its own."""
    names = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    seeds = np.random.SeedSequence(seed).generate_state(len(names))
    return estimator.set_params(**dict(zip(names, map(int, seeds), strict=True)))
