"""What linear classifiers on coresets share: classes, fitting, lazy answers and streams."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from daskcoreset.core.blocks import plain_labels
from daskcoreset.core.classes import check_classes
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.estimators.awaiting import Awaiting, known_classes
from daskcoreset.estimators.base import CoresetModel, Held
from daskcoreset.core.canonical import canonical
from daskcoreset.estimators.class_weights import weigh_blocks, weigh_rows
from daskcoreset.estimators.delegation import Ask
from daskcoreset.estimators.scoring import accuracy
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.constructions.tree.stream import CoresetStream

if TYPE_CHECKING:
    from daskcoreset.sensitivities import Sensitivity
    from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["LinearCoresetModel"]


class LinearCoresetModel(ClassifierMixin, CoresetModel):  # type: ignore[misc] # no annotations
    """Base of the linear classifiers; a subclass says which construction and which solver.

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
    """

    size: int
    random_state: RandomState
    class_weight: Any
    estimator: Any
    estimator_: Any
    classes_: AnyArray
    _stream: CoresetStream | None
    _known: AnyArray | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _method(self) -> Sensitivity[Any]:
        """Return the construction."""

    @abstractmethod
    def _default_solver(self) -> Any:
        """Return what is fitted where `estimator` is None."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Build the coreset, and solve on it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels. A string where `daskcoreset.build` knows names.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows.

        Returns
        -------
        LinearCoresetModel
            The estimator itself.

        Raises
        ------
        InvalidTypeError
            If the ``fit`` of `estimator` takes no ``sample_weight``.
        InvalidInputError, ValueError, TypeError
            If another argument cannot be used; if y is of one class.
        """
        self._check_solver()
        held = self._hold(X, y, sample_weight)
        if held is None and y is None:
            raise InvalidInputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                f"is None; pass the labels."
            )
        data: Held | tuple[Any, Any, Any] = (X, y, sample_weight)
        classes = None
        if held is not None:
            check_classification_targets(held.y)
            assert held.y is not None  # noqa: S101 - scikit-learn has asked for it
            # Counted from zero: a coreset turns labels that are objects into text.
            classes, codes = np.unique(held.y, return_inverse=True)
            weights = weigh_rows(self.class_weight, held.y, held.sample_weight)
            if weights is not None and len(used := np.unique(codes[weights > 0.0])) == 1:
                check_classes(classes[used], len(codes))  # with the label of y, not its place
            data = Held(held.X, codes, weights)
        elif self.class_weight is not None:
            data = (weigh_blocks(self.class_weight, X, y, sample_weight), None, None)
        seed = resolve_seed(self.random_state)
        coreset = self._coreset_of(data, size=self.size, method=self._method(), seed=seed)
        self._stream, self._known = None, None
        if held is None:
            self._note_features(X, coreset)
        return self._solve(coreset, classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take further rows into the coreset, and solve again.

        Goes on from earlier calls, and from what `fit` was given: its coreset stands for those
        rows. Memory is that of `daskcoreset.CoresetStream`.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
        classes : array-like of shape (n_classes,), optional
            All labels there will be, remembered from the first call that gives them. Rows of
            one class are enough then, and `classes_` are these; what was not seen yet is not
            predicted. Without it, classes are those seen so far, at least two: a new one may come
            at any time, also after `fit`, which `CSVRGClassifier` refuses.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        LinearCoresetModel
            The estimator itself.

        Raises
        ------
        InvalidInputError
            If rows do not fit those before, or a label is not among `classes`. Nothing was
            taken then.
        """
        self._check_solver()
        if self.class_weight == "balanced":
            raise InvalidInputError(
                'class_weight="balanced" needs the labels of all rows, which partial_fit does not '
                "have; pass the weights of the classes as a dict."
            )
        stream = getattr(self, "_stream", None)
        fresh = stream is None and not hasattr(self, "coreset_")
        known = known_classes(classes, getattr(self, "_known", None))
        held = self._hold(X, y, sample_weight, reset=fresh)
        if held is not None:
            check_classification_targets(held.y)
            assert held.y is not None  # noqa: S101 - scikit-learn has asked for it
            X, y = held.X, held.y
            sample_weight = weigh_rows(self.class_weight, held.y, held.sample_weight)
        elif not fresh:
            self._open(X)
        if stream is None:
            stream = CoresetStream(self._method(), self.size, random_state=self.random_state)
            if not fresh:
                old = self.coreset_
                stream.partial_fit(old.points, old.labels, old.weights)
        if held is None and self.class_weight is not None:
            rows: tuple[Any, ...] = (weigh_blocks(self.class_weight, X, y, sample_weight),)
        else:
            rows = (X, y, sample_weight)
        # A copy shares what is never changed, so that a refusal leaves all as it was.
        stream = copy(stream).partial_fit(*rows)
        coreset, seen = _answer_of(stream, known)
        self._stream, self._known = stream, known
        if held is None:
            self._note_features(X, coreset)
        if known is None or len(seen) == len(known):
            return self._solve(coreset, None)
        self.coreset_, inner = coreset, None
        if len(seen) > 1:
            inner = self._solve(coreset, None).estimator_
        self.estimator_ = Awaiting(inner, known, seen, coreset.n_features)
        self.classes_ = known
        return self

    def _check_solver(self) -> None:
        self._validate_params()
        if self.estimator is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise InvalidTypeError(
                f"estimator is a {type(self.estimator).__name__}, whose fit takes no "
                f"sample_weight, so that it cannot be fitted on a coreset; pass one that does."
            )

    def _solve(self, coreset: Coreset, classes: AnyArray | None) -> Self:
        """Solve on a coreset; with `classes`, its labels are places among these."""
        points, weights, labels = canonical(coreset.points, coreset.weights, coreset.labels)
        assert labels is not None  # noqa: S101 - constructions ask for them
        if classes is not None:
            labels = classes[labels]
            coreset = replace(coreset, labels=plain_labels(classes)[coreset.labels])
        self.coreset_ = coreset
        found = np.unique(labels)
        check_classes(found[:2], len(labels))
        if classes is not None and len(found) < len(classes) and not coreset_is_all(coreset):
            lost = np.setdiff1d(classes, found)
            warnings.warn(
                f"{len(lost)} of the {len(classes)} classes of y have no row in the coreset: "
                f"{', '.join(map(str, lost[:5]))}. They will never be predicted; raise size.",
                CoresetWarning,
                stacklevel=3,
            )
        solver = self._default_solver() if self.estimator is None else clone(self.estimator)
        self.estimator_ = solver.fit(points, labels, sample_weight=weights)
        self.classes_ = self.estimator_.classes_
        return self

    @property
    def coef_(self) -> FloatArray:
        """Coefficients w, of shape (1, d), or (n_classes, d)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.coef_  # type: ignore[no-any-return]

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts b, of shape (1,), or (n_classes,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.intercept_  # type: ignore[no-any-return]

    def _ask(self, X: Any, method: str) -> Any:
        check_is_fitted(self, "estimator_")
        ask = getattr(self.estimator_, method)

        def shape(dtype: np.dtype[Any]) -> tuple[Any, int | None]:
            answer = ask(self.coreset_.points[:1].astype(dtype))
            return answer.dtype, answer.shape[1] if answer.ndim == 2 else None

        return self._map(X, Ask(self.estimator_, method), ask, shape)

    def predict(self, X: Any) -> Any:
        """Class of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy where X is out of core.
        """
        return self._ask(X, "predict")

    def decision_function(self, X: Any) -> Any:
        """Signed distance from the boundary, times the length of w.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "decision_function")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy over all rows, in one read.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        check_is_fitted(self, "estimator_")
        held = self._hold(X, y, sample_weight, reset=False)
        if held is not None:
            found = self.estimator_.predict(held.X)
            return float(accuracy_score(held.y, found, sample_weight=held.sample_weight))
        return accuracy(self.estimator_, self._open(X, y, sample_weight))


def _answer_of(stream: CoresetStream, known: AnyArray | None) -> tuple[Coreset, AnyArray]:
    """Coreset of a stream, and the classes that it has rows of; refuses unknown classes."""
    rows = stream.rows()
    assert rows.labels is not None  # noqa: S101 - constructions ask for them
    seen = np.unique(rows.labels[rows.weights > 0.0])
    wrong = np.setdiff1d(seen, seen if known is None else known)
    if len(wrong):
        raise InvalidInputError(f"y holds {wrong[0]!r}, which is not among classes, {known}.")
    if known is None or len(seen) != 1:
        coreset = stream.coreset(normalize=True)
        return coreset, np.unique(coreset.labels)  # type: ignore[arg-type] # there are labels
    # No construction draws from rows of one class: all that is held stands for them.
    record = {"m": len(rows), "n": stream.n_rows - stream.n_dropped, "d": rows.n_features}
    return Coreset(rows.points, rows.weights, rows.indices, rows.labels, record), seen


def coreset_is_all(coreset: Coreset) -> bool:
    """Whether a coreset holds every row of its data: what is not in it has no weight."""
    return int(coreset.provenance["m"]) >= int(coreset.provenance["n"])
