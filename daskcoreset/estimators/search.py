"""The choice of parameters on a coreset: of a number of clusters, or of a penalty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold

from daskcoreset.core.coreset import CLASS_WEIGHT, Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.tables import html_table, text_table
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import a_type, as_int, check_choice, shown
from daskcoreset.estimators.base import (
    CoresetModel,
    coreset_for,
    of_known_names,
    refuse_centroids,
)
from daskcoreset.estimators.search_scores import agreement, bic, silhouettes, spherical_likelihood
from daskcoreset.inputs.options import ReadKeywords, takes_reading

Criterion: TypeAlias = Literal["auto", "silhouette", "bic", "stability", "cross_validation"]

# The parameter that is a number of clusters.
_CLUSTERS = ("n_clusters", "n_components")


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What `coreset_search` found.

    Attributes
    ----------
    criterion : str
    candidates : tuple of dict
        Parameters that were tried, in the order of the grid.
    scores : ndarray of shape (n_candidates,), float64
        The higher, the better; of "bic" it is minus the criterion.
    spreads : ndarray of shape (n_candidates,), float64
        Standard deviation over folds or repeats; NaN where there is one value only.
    best : int
        Position of the candidate of the highest score, the first of several.
    model : estimator object
        Fitted with these parameters on the whole coreset.
    coreset : Coreset
        What was searched on.
    """

    criterion: str
    candidates: tuple[dict[str, Any], ...]
    scores: FloatArray
    spreads: FloatArray
    best: int
    model: Any
    coreset: Coreset

    @property
    def best_parameters(self) -> dict[str, Any]:
        """Parameters of the best candidate."""
        return dict(self.candidates[self.best])

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                ", ".join(f"{name}={value!r}" for name, value in candidate.items()),
                f"{score:.6g}",
                "" if np.isnan(spread) else f"{spread:.2g}",
                "best" if i == self.best else "",
            )
            for i, (candidate, score, spread) in enumerate(
                zip(self.candidates, self.scores, self.spreads, strict=True)
            )
        ]

    def __repr__(self) -> str:
        title = f"SearchResult({self.criterion}, on {len(self.coreset):,} rows)"
        lines = text_table([("parameters", "score", "spread", ""), *self._rows()])
        return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        heads = ("parameters", "score", "spread", "")
        return html_table(self._rows(), heads, f"{self.criterion}, on {len(self.coreset):,} rows")


@takes_reading
def coreset_search(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    parameters: Mapping[str, Sequence[Any]],
    criterion: Criterion = "auto",
    sample_weight: Any = None,
    n_folds: int = 5,
    n_repeats: int = 10,
    scoring: str | Callable[[Any, Any, Any, FloatArray], float] | None = None,
    random_state: RandomState = None,
    **_reading: Unpack[ReadKeywords],
) -> SearchResult:
    r"""Choose parameters of an estimator on one coreset, with its weights honoured throughout.

    Many values of k or C from one read: the data are read for the coreset, if at all, and every
    candidate is fitted and scored on its rows. Weights stand for the rows of the data in the fits
    and in the scores, so that a parameter which depends on the number of rows, such as C, is chosen
    for all rows, and a rare cluster that the coreset keeps counts as what it is.

    Parameters
    ----------
    estimator : CoresetModel
        One of `daskcoreset.estimators` that build a coreset, such as `CoresetKMeans`; it is cloned.
    X : Coreset, Portfolio, CoresetTree, TreeWindow, array-like of shape (n, d), or path
        A coreset, or a portfolio with one member that `estimator` is made for, or a tree or a
        window of one; or any input of `daskcoreset.build`, of which the estimator builds one with
        the largest of the clusters that are tried.
    y : array-like of shape (n,), or str, optional
        Labels, where X are data.
    parameters : mapping of str to sequence
        Values to try, every combination, as in scikit-learn's grid search; ``estimator__C``
        reaches into an inner estimator.
    criterion : {"auto", "silhouette", "bic", "stability", "cross_validation"}, default="auto"
        "silhouette" compares distances within and between clusters. "bic" is minus the Bayesian
        information criterion of a mixture, or of k-means as one of equal spheres, of as many rows
        as the weighted ones are worth: where all rows would tell a small component apart, so few
        may not, and fewer are chosen. "stability" clusters two random halves of the rows
        `n_repeats` times, and compares what they say of all rows by the adjusted Rand index; few
        clusters are more stable than many, so that it tells where structure ends rather than
        how many clusters serve best. "cross_validation" fits on all folds but one and scores on
        that. "auto" is cross-validation for estimators with labels, "bic" for those that have it,
        and "silhouette" for others.
    sample_weight : array-like of shape (n,), or str, optional
        Weights, where X are data.
    n_folds : int, default=5
        Of the cross-validation; with classes each fold has its part of each.
    n_repeats : int, default=10
        Of "stability".
    scoring : str or callable, optional
        For the cross-validation: the name of a scorer of scikit-learn that takes weights, such as
        "roc_auc", or ``scoring(model, points, labels, weights)``, the higher the better; by default
        the ``score`` of the estimator, with weights.
    random_state : int, Generator, RandomState or None, default=None
        Of folds and halves, and of fits whose own is None.
    storage_options, columns, missing_chunks
        As in `daskcoreset.build`.

    Returns
    -------
    SearchResult

    Raises
    ------
    InvalidInputError, InvalidTypeError
        An argument cannot be used, or the criterion does not fit the estimator.

    Notes
    -----
    A uniform sample of few rows, taken as if they were all, is no safe substitute: a parameter
    that depends on n need not transfer. With weights the same sample lost less of what the best C
    of an SVM with a kernel gains on the worst, and less than a coreset of the linear SVM, which is
    no coreset of that one; ``docs/guide/portfolio.md`` has the table. Folds of a coreset are not
    independent of the draw that made it: scores compare candidates, and are no estimate of what a
    model will do on new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.estimators import CoresetKMeans, coreset_search
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) + 9.0 * rng.integers(0, 2, size=(20_000, 2))
    >>> model = CoresetKMeans(size=500, n_init=3, random_state=0)
    >>> coreset_search(model, X, parameters={"n_clusters": [2, 3, 4, 5]}).best_parameters
    {'n_clusters': 4}
    """
    if not isinstance(estimator, CoresetModel):
        raise InvalidTypeError(
            f"estimator is {shown(estimator)}; pass one that builds a coreset, such as "
            f"CoresetKMeans(), or CoresetEstimator around any of scikit-learn."
        )
    check_choice("criterion", criterion, *get_args(Criterion))
    candidates = _candidates(estimator, parameters)
    n_folds = as_int("n_folds", n_folds, 2)
    n_repeats = as_int("n_repeats", n_repeats, 1)
    scorer = _scorer(scoring)
    seed = resolve_seed(random_state)
    model = clone(estimator)
    if model.random_state is None:
        model.set_params(random_state=seed)
    coreset = _searched(model, candidates, X, y, sample_weight)
    if criterion == "auto":
        criterion = _default_criterion(model)
    models = [clone(model).set_params(**candidate) for candidate in candidates]
    with of_known_names():
        if criterion == "cross_validation":
            values = _cross_validated(models, coreset, n_folds, seed, scorer)
        elif criterion == "stability":
            values = _stabilities(models, coreset, n_repeats, seed)
        else:
            values = _of_fits(models, coreset, criterion)
    scores = values.mean(axis=1)
    spreads = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.full(len(scores), np.nan)
    if np.isnan(scores).all():
        raise InvalidInputError(f"criterion={criterion!r} gave no number; choose another one.")
    best = int(np.nanargmax(scores))
    fitted = clone(models[best]).fit(coreset)
    return SearchResult(criterion, candidates, scores, spreads, best, fitted, coreset)


def _candidates(estimator: Any, parameters: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(parameters, Mapping) or not parameters:
        raise InvalidTypeError(
            f"parameters is {shown(parameters)}; pass a mapping of names to values, such as "
            f'{{"n_clusters": [2, 4, 8]}}.'
        )
    known = estimator.get_params()
    for name, values in parameters.items():
        if name not in known:
            raise InvalidInputError(
                f"parameters names {name!r}, and {type(estimator).__name__} has no such "
                f"parameter; pass some of {', '.join(known)}."
            )
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
            raise InvalidTypeError(f"parameters[{name!r}] is {shown(values)}; pass a list.")
        if not len(values):
            raise InvalidInputError(f"parameters[{name!r}] is empty; pass one value at least.")
    grid = {name: list(values) for name, values in parameters.items()}
    return tuple(dict(candidate) for candidate in ParameterGrid(grid))


def _searched(
    model: Any, candidates: Sequence[dict[str, Any]], X: Any, y: Any, sample_weight: Any
) -> Coreset:
    """Return the coreset that was given, or build one that serves all candidates."""
    X = coreset_for(model, X)
    if isinstance(X, Coreset):
        refuse_centroids(X, model)
        if y is not None or sample_weight is not None:
            raise InvalidInputError(
                "X is a coreset, which has labels and weights of its own; leave out y and "
                "sample_weight."
            )
        return X
    largest = max(candidates, key=lambda one: max(one.get(name, 0) for name in _CLUSTERS))
    builder = clone(model).set_params(**largest)
    if builder.get_params().get("representatives") == "auto":
        builder.set_params(representatives="rows")  # centroids have lost the spread of clusters
    built: Coreset = builder.fit(X, y, sample_weight).coreset_
    refuse_centroids(built, model)
    return built


def _default_criterion(model: Any) -> Criterion:
    if hasattr(model, "bic"):
        return "bic"
    if any(name in model.get_params() for name in _CLUSTERS) and not is_classifier(model):
        return "silhouette"
    return "cross_validation"


def _of_fits(models: Sequence[Any], coreset: Coreset, criterion: str) -> FloatArray:
    """Score every model by its own fit on all rows."""
    points, weights = coreset.points, coreset.weights
    fitted = [model.fit(coreset) for model in models]
    if criterion == "bic":
        return np.array([[-_bic(model, coreset)] for model in fitted])
    labels = [_labels(model, coreset) for model in fitted]
    # One cluster has no other to be compared with.
    several = [i for i, each in enumerate(labels) if len(np.unique(each)) > 1]
    values = np.full((len(models), 1), np.nan)
    if several:
        values[several, 0] = silhouettes(points, weights, [labels[i] for i in several])
    return values


def _bic(model: Any, coreset: Coreset) -> float:
    points, weights = coreset.points, coreset.weights
    if hasattr(model, "bic"):
        aic = float(model.aic(points, sample_weight=weights))
        n_parameters = model._fitted.n_parameters  # noqa: SLF001 - of the same layer
        return bic(n_parameters - aic / 2.0, n_parameters, weights)
    centers = getattr(model, "cluster_centers_", None)
    if centers is None or not hasattr(model, "coreset_inertia_"):
        raise InvalidInputError(
            f'criterion="bic" is for mixtures and k-means, and estimator is a '
            f'{type(model).__name__}; choose another one, such as "cross_validation".'
        )
    return bic(*spherical_likelihood(points, weights, centers, _labels(model, coreset)), weights)


def _labels(model: Any, coreset: Coreset) -> IndexArray:
    if is_classifier(model) or not hasattr(model, "predict"):
        raise InvalidInputError(
            f"the criterion compares clusters, and estimator is {a_type(model)}; choose "
            f'criterion="cross_validation".'
        )
    return np.asarray(model.predict(coreset.points), dtype=np.int64)


def _stabilities(models: Sequence[Any], coreset: Coreset, n_repeats: int, seed: int) -> FloatArray:
    """Agreement of fits on random halves, the same ones for all models."""
    values = np.empty((len(models), n_repeats))
    for j in range(n_repeats):
        order = stream(seed, Stage.SUBSETS, 0, j).permutation(len(coreset))
        halves = [np.sort(half) for half in np.array_split(order, 2)]
        for i, model in enumerate(models):
            first, second = (
                _labels(clone(model).fit(_part(coreset, half)), coreset) for half in halves
            )
            values[i, j] = agreement(first, second, coreset.weights)
    return values


def _scorer(scoring: Any) -> Callable[[Any, Any, Any, FloatArray], float] | None:
    if isinstance(scoring, str):
        check_choice("scoring", scoring, *get_scorer_names())
        scoring = get_scorer(scoring)
    if hasattr(scoring, "_score_func"):  # a scorer of scikit-learn, which takes weights by name
        return lambda model, *rows: scoring(model, *rows[:-1], sample_weight=rows[-1])
    if scoring is None or callable(scoring):
        return scoring  # type: ignore[no-any-return] # as it was given
    raise InvalidTypeError(
        f"scoring is {shown(scoring)}; pass the name of a scorer of scikit-learn, such as "
        f'"roc_auc", or a function of model, points, labels and weights.'
    )


def _cross_validated(
    models: Sequence[Any],
    coreset: Coreset,
    n_folds: int,
    seed: int,
    scoring: Callable[[Any, Any, Any, FloatArray], float] | None,
) -> FloatArray:
    """Weighted scores on the rows that a fit has not seen, the same folds for all models."""
    labels = coreset.labels
    by_class = labels is not None and is_classifier(models[0])
    folds = (StratifiedKFold if by_class else KFold)(
        n_folds, shuffle=True, random_state=int(stream(seed, Stage.SUBSETS).integers(2**32))
    )
    if by_class and labels is not None:
        _, codes = np.unique(labels, return_inverse=True)
        fewest = int(np.bincount(codes).min())
        if fewest < n_folds:
            raise InvalidInputError(
                f"n_folds={n_folds}, and a class has {fewest} rows in the coreset; pass fewer "
                f"folds, or a larger coreset."
            )
    values = np.empty((len(models), n_folds))
    for j, (train, test) in enumerate(folds.split(np.zeros(len(coreset)), labels)):
        seen, unseen = _part(coreset, train), _part(coreset, test)
        for i, model in enumerate(models):
            fitted = clone(model).fit(seen)
            given = unseen.points, unseen.labels, unseen.weights
            values[i, j] = fitted.score(*given) if scoring is None else scoring(fitted, *given)
    return values


def _part(coreset: Coreset, rows: IndexArray) -> Coreset:
    labels = None if coreset.labels is None else coreset.labels[rows]
    known = ("columns", "metric", CLASS_WEIGHT)
    record = {key: coreset.provenance[key] for key in known if key in coreset.provenance}
    return Coreset(
        coreset.points[rows], coreset.weights[rows], coreset.indices[rows], labels, record
    )
