"""Costs and errors over data of any size, one read for any number of solutions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import add
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from daskcoreset.constructions.sampling.block_steps import summarise_block
from daskcoreset.constructions.sampling.messages import BlockReport, merge_reports
from daskcoreset.core.blocks import (
    Block,
    InvalidRow,
    ReadBlock,
    find_bad_label,
    find_unusable_row,
    labels_of,
)
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import dense, tiles
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, FloatArray, Metric
from daskcoreset.core.validation import (
    as_numbers,
    check_flag,
    check_positive,
    how_to_select,
    n_dims,
    names_apart,
    shown,
)
from daskcoreset.execution.engine import BlockResults, Engine, Reduction, map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.known_columns import known_blocks
from daskcoreset.inputs.options import ReadKeywords, takes_reading
from daskcoreset.objectives import LinearCost, QuantizationError, cost_on
from daskcoreset.objectives.clustering import as_centers
from daskcoreset.sensitivities import SVM


@takes_reading
def svm_sensitivity(
    X: Any,
    y: Any,
    *,
    lam: float = 1.0,
    sample_weight: Any = None,
    n_clusters: int | None = None,
    provable: bool = False,
    intercept: bool = True,
    random_state: RandomState = 0,
    **_reading: Unpack[ReadKeywords],
) -> float:
    r"""Total sensitivity t: the sum of the bounds of Lemma 2 over all rows, in three reads.

    The bound of a row is capped at one: no row has more than all of the cost.

    A coreset of m rows has a squared error of the order of t / m (Theorem 1). Where t is of the
    order of the number of rows, no small coreset is known to exist.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        Any input of `daskcoreset.build`.
    y : array-like of shape (n,), or str
    lam : float, default=1.0
    sample_weight : array-like of shape (n,), optional
    n_clusters, intercept
        As in `daskcoreset.SVM`.
    provable : bool, default=False
        Whether the easy case counts as three alpha, as in the proof, or as two, as printed.
    random_state : int, Generator, RandomState or None, default=0
        For the clusters and the rough solution.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As in `daskcoreset.build`.

    Returns
    -------
    float
        ``provenance["total_sensitivity"]`` of a coreset estimates the same from fewer reads.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> 10 < svm_sensitivity(X, X[:, 0] + X[:, 1] ** 2 > 0.5) < 400
    True

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Lemmas 2 and 3, and Table 1.
    """
    check_flag("provable", provable)
    construction = SVM(lam, n_clusters, "paper" if provable else "systematic", intercept)
    engine = Engine.immediate(_labelled_blocks(X, y, sample_weight))
    seed, summary = resolve_seed(random_state), None
    for fold in range(construction.n_folds):
        summarise = partial(summarise_block, construction, seed, fold)
        results = engine.read(Reduction(summarise, partial(merge_reports, construction)), summary)
        summary = engine.apply(partial(_finalized, construction, seed, fold), results)
    add_up: Reduction[float] = Reduction(partial(_total_score, construction), sum)
    return float(engine.compute(engine.read(add_up, summary)).value)


def _finalized(construction: SVM, seed: int, fold: int, results: BlockResults[BlockReport]) -> Any:
    results.check()
    if not results.value.summary:
        raise _no_weight()
    rng = stream(seed, Stage.SETTLING, 0, fold)
    summary = construction.finalize(results.value.summary, rng)
    construction.validate_summary(summary, finalized=True)
    return summary


def _total_score(construction: SVM, rows: ReadBlock, summary: Any) -> float:
    assert rows.block is not None  # noqa: S101 - the engine has seen to it
    return float(np.minimum(construction.scores(rows.block, summary), 1.0).sum())


def _labelled_blocks(X: Any, y: Any, sample_weight: Any) -> RowBlocks:
    blocks = row_blocks(X, y, sample_weight)
    if not blocks.has_labels:
        raise InvalidInputError("y is missing; pass the labels of the rows.")
    return blocks


def _no_weight() -> InvalidInputError:
    return InvalidInputError("sample_weight is zero for every row; give some row a weight.")


class SVMReport(NamedTuple):
    """Result of `svm_report`: numbers for one classifier, arrays for several.

    Attributes
    ----------
    cost : float or ndarray
        F.
    hinge_loss : float or ndarray
        Weighted mean of the hinge.
    accuracy : float or ndarray
        Weighted share of the rows on the right side.
    """

    cost: Any
    hinge_loss: Any
    accuracy: Any


@takes_reading
def svm_report(
    X: Any,
    y: Any,
    w: Any,
    lam: float = 1.0,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
    **_reading: Unpack[ReadKeywords],
) -> SVMReport:
    r"""Cost, hinge loss and accuracy of linear classifiers, in one read.

    .. math::

        F(w, b) = \frac{|w|^2}{2} + \lambda \sum_x u(x) [1 - y(x) (\langle x, w \rangle + b)]_+

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        Any input of `daskcoreset.build`; read once, block by block.
    y : array-like of shape (n,), or str
        Labels of two values; the one that sorts last is +1.
    w : array-like of shape (d,) or (d + 1,), or (n_solutions, d) or (n_solutions, d + 1)
        One classifier or several. A last entry beyond the features is the bias. A fitted
        estimator with ``coef_`` and ``intercept_`` will do, and a list of such.
    lam : float, default=1.0
        :math:`\lambda`, the C of scikit-learn.
    sample_weight : array-like of shape (n,), optional
        Input weights u; ones by default.
    intercept : float or array-like of shape (n_solutions,), optional
        b, where `w` holds none; zero by default.
    classes : sequence of two labels, optional
        Which label is -1 and which +1, in this order; needed where X has rows of one only.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As in `daskcoreset.build`.

    Returns
    -------
    SVMReport

    Raises
    ------
    InvalidInputError
        If shapes disagree, numbers are not finite, or labels are not of two values.

    Examples
    --------
    >>> X, y = np.array([[-2.0], [2.0], [3.0]]), ["a", "b", "a"]
    >>> svm_report(X, np.array(y), [1.0], intercept=0.0)
    SVMReport(cost=4.5, hinge_loss=1.333..., accuracy=0.666...)

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), section 2.
    """
    check_positive("lam", lam)
    blocks = _labelled_blocks(X, y, sample_weight)
    coef, shift, single = _solutions(w, intercept, blocks.schema.n_features)
    sums = map_reduce(blocks, _sums_by_label, merge_sums, broadcast=(coef, shift)).value
    labels = _two_labels(sorted(sums), classes)
    total = sum(float(part[0, 0]) for part in sums.values())
    if not total > 0.0:
        raise _no_weight()
    hinge, right = np.zeros(len(coef)), np.zeros(len(coef))
    for label, (weight, negative, positive, above) in sums.items():
        hinge += positive if label == labels[1] else negative
        right += above if label == labels[1] else weight - above
    cost = np.einsum("pj,pj->p", coef, coef) / 2.0 + lam * hinge
    values = (cost, hinge / total, right / total)
    return SVMReport(*(float(value[0]) if single else value for value in values))


@takes_reading
def svm_cost(
    X: Any,
    y: Any,
    w: Any,
    lam: float = 1.0,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
    **_reading: Unpack[ReadKeywords],
) -> Any:
    """Objective F of linear support vector machines, over all rows; see `svm_report`.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64

    Examples
    --------
    >>> svm_cost(np.array([[-1.0], [1.0]]), np.array([0, 1]), [[1.0], [0.0]])
    array([0.5, 2. ])
    """
    return svm_report(X, y, w, lam, sample_weight, intercept=intercept, classes=classes).cost


@takes_reading
def hinge_loss(
    X: Any,
    y: Any,
    w: Any,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
    **_reading: Unpack[ReadKeywords],
) -> Any:
    """Weighted mean of the hinge loss over all rows; see `svm_report`.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64

    Examples
    --------
    >>> hinge_loss(np.array([[-1.0], [1.0]]), np.array([0, 1]), [0.5])
    0.5
    """
    report = svm_report(X, y, w, 1.0, sample_weight, intercept=intercept, classes=classes)
    return report.hinge_loss


@takes_reading
def accuracy(
    X: Any,
    y: Any,
    w: Any,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
    **_reading: Unpack[ReadKeywords],
) -> Any:
    """Weighted share of the rows whose class a linear classifier predicts; see `svm_report`.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64

    Examples
    --------
    >>> accuracy(np.array([[-1.0], [1.0], [2.0], [0.5]]), np.array([0, 1, 1, 0]), [0.5])
    0.75
    """
    report = svm_report(X, y, w, 1.0, sample_weight, intercept=intercept, classes=classes)
    return report.accuracy


def _sums_by_label(
    block: Block, _index: int, solutions: tuple[FloatArray, FloatArray]
) -> dict[Any, FloatArray] | InvalidRow:
    """Return sums over the rows of every label, whose sign is not known before all rows are read.

    Of shape (4, n_solutions): weight, hinge loss as if the label were -1, hinge loss as if it
    were +1, weight of the rows above zero.
    """
    problem = find_bad_label(block)
    if problem is not None:
        return problem
    coef, shift = solutions
    values = np.empty((len(block), len(coef)))
    points: Any = block.points
    for rows in tiles(len(block), points.shape[1]):
        tile = dense(points[rows])
        # Not by BLAS: a row has one value, in whatever block it comes.
        for i, vector in enumerate(coef):
            values[rows, i] = np.einsum("ij,j->i", tile, vector) + shift[i]
    labels, u = labels_of(block), block.weights
    loss = LinearCost("hinge").margin_loss
    sums = {}
    for label in np.unique(labels):
        members = np.flatnonzero((labels == label) & (u > 0.0))
        if not len(members):
            continue
        margins, weights = values[members], u[members]
        terms = loss(-margins), loss(margins), (margins > 0.0).astype(np.float64)
        weight = np.full(len(coef), float(weights.sum()))
        sums[label.item()] = np.stack(
            [weight, *(np.einsum("i,ip->p", weights, term) for term in terms)]
        )
    return sums


def merge_sums(first: dict[Any, Any], second: dict[Any, Any]) -> dict[Any, Any]:
    """Add up sums over the rows of every label, some of which are in one part only."""
    return {label: first.get(label, 0.0) + second.get(label, 0.0) for label in {**first, **second}}


def _two_labels(present: list[Any], classes: Any) -> list[Any]:
    labels, known = present, set(present)
    if classes is not None:
        if not isinstance(classes, Sequence | np.ndarray) or isinstance(classes, str):
            raise InvalidTypeError(f"classes is {shown(classes)}; pass (negative, positive).")
        try:
            labels = np.ravel(np.array([*classes], dtype=object)).tolist()
            known = set(labels)
        except TypeError as error:  # no labels, or one that cannot be looked up
            problem = f"classes is {shown(classes)}; pass (negative, positive)."
            raise InvalidTypeError(problem) from error
    if len(labels) != 2 or not set(present) <= known:
        found = ", ".join(map(repr, present[:5]))
        raise InvalidInputError(
            f"y holds {len(present)} classes ({found}) where two are wanted; pass classes="
            f"(negative, positive) where one has no rows, and y == label for one of many."
        )
    return labels


def _solutions(w: Any, intercept: Any, d: int) -> tuple[FloatArray, FloatArray, bool]:
    several = isinstance(w, Sequence) and len(w) > 0 and all(hasattr(model, "coef_") for model in w)
    if several or hasattr(w, "coef_"):
        models = list(w) if several else [w]
        rows = [np.append(np.ravel(model.coef_), np.ravel(model.intercept_)) for model in models]
        w = np.array(rows) if several else rows[0]
    array: AnyArray = as_numbers("w", w)
    single, matrix = array.ndim < 2, np.atleast_2d(array)
    if matrix.ndim != 2 or matrix.shape[1] not in (d, d + 1) or not len(matrix):
        raise InvalidInputError(
            f"w has shape {array.shape}; pass one classifier of {d} entries, or of {d + 1} with "
            f"its bias, or a row for each of several."
        )
    if matrix.shape[1] == d + 1 and intercept is not None:
        raise InvalidInputError(
            "w holds a bias already, and intercept is given as well; pass one of both."
        )
    shift = np.zeros(len(matrix))
    if matrix.shape[1] == d + 1:
        shift += matrix[:, d]
    elif intercept is not None:
        intercept = as_numbers("intercept", intercept)
        if np.shape(intercept) not in ((), (1,), (len(matrix),)):
            raise InvalidInputError(
                f"intercept has shape {np.shape(intercept)} beside {len(matrix)} classifiers; pass "
                f"one number for each."
            )
        shift += intercept
    if not (np.isfinite(matrix).all() and np.isfinite(shift).all()):
        raise InvalidInputError("w or intercept is not finite; pass finite numbers.")
    return np.ascontiguousarray(matrix[:, :d]), shift, single


@takes_reading
def kmeans_cost(
    X: Any,
    centers: Any,
    sample_weight: Any = None,
    *,
    metric: Metric = "euclidean",
    **_reading: Unpack[ReadKeywords],
) -> Any:
    r"""Quantization error :math:`\phi_X(Q) = \sum_x u(x) \min_{q \in Q} |x - q|^2`.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        Any input of `daskcoreset.build`; read once, block by block.
    centers : array-like of shape (k, d), or sequence of such
        One solution, or several to be evaluated in the same read.
    sample_weight : array-like of shape (n,), optional
        Input weights u; ones by default.
    metric : {"euclidean", "cosine"}, default="euclidean"
        By "cosine" rows are divided by their lengths, as in `daskcoreset.build`; centers are
        taken as they are.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As in `daskcoreset.build`.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64
        One cost for one solution, else one for each. Distances are formed from
        differences in float64: float32 data with a large offset lose nothing.

    Raises
    ------
    InvalidInputError
        If `centers` has another number of columns than X, or is not finite.

    Examples
    --------
    >>> kmeans_cost(np.array([[0.0], [1.0], [5.0]]), [[0.0], [5.0]])
    1.0
    >>> kmeans_cost(np.array([[0.0], [1.0]]), [np.zeros((1, 1)), np.ones((1, 1))])
    array([1., 1.])

    References
    ----------
    Bachem, Lucic and Krause (2018), section 2.
    """
    blocks = row_blocks(X, None, sample_weight).by(metric)
    solutions, single = _as_solutions(centers, blocks.schema.n_features)
    costs = map_reduce(blocks, _block_costs, add, broadcast=solutions).value
    return float(costs[0]) if single else costs


def relative_error(cost: Any, reference: Any) -> Any:
    r"""Relative error :math:`(\phi - \phi_{\mathrm{ref}}) / \phi_{\mathrm{ref}}`.

    Parameters
    ----------
    cost : float or array-like
        Cost, over all data, of solutions found on coresets.
    reference : float or array-like
        Cost of the solution found on all data.

    Returns
    -------
    float or ndarray, float64
        Negative where the coreset's solution is the better one.

    Raises
    ------
    InvalidInputError
        If `reference` is not positive.

    Examples
    --------
    >>> relative_error(105.0, 100.0)
    0.05

    References
    ----------
    Bachem, Lucic and Krause (2018), section 7.
    """
    reference, cost = as_numbers("reference", reference), as_numbers("cost", cost)
    if not (reference > 0).all():
        raise InvalidInputError(
            f"reference must be positive, found {reference.min()}; a cost of zero has no "
            f"relative error."
        )
    try:
        error = (cost - reference) / reference
    except ValueError as problem:
        raise InvalidInputError(
            f"cost has shape {cost.shape} and reference {reference.shape}; pass as many of each."
        ) from problem
    return float(error) if error.ndim == 0 else error


@takes_reading
def distortion(
    coreset: Coreset,
    X: Any,
    solutions: Any,
    sample_weight: Any = None,
    **_reading: Unpack[ReadKeywords],
) -> float:
    r"""Largest relative difference between costs on the coreset and on all data.

    .. math::

        \max_Q \max\left(\frac{\phi_C(Q)}{\phi_X(Q)}, \frac{\phi_X(Q)}{\phi_C(Q)}\right) - 1

    Parameters
    ----------
    coreset : Coreset
    X : array-like of shape (n, d), or path
        The data it was built from; read once.
    solutions : array-like of shape (k, d), or sequence of such
        Candidate solutions Q: solutions found on the coreset show most, for those are
        where a coreset that misses something is wrong.
    sample_weight : array-like of shape (n,), optional
        Input weights u of the data.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As in `daskcoreset.build`.

    Returns
    -------
    float
        Zero for a coreset that is right on every candidate; infinite where it has cost zero
        and the data have not.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> coreset = daskcoreset.build(X, size=9, random_state=0)
    >>> 0 <= distortion(coreset, X, [X[:2], X[5:7]]) < 1
    True

    References
    ----------
    Schwiegelshohn and Sheikh-Omar (2022), An Empirical Evaluation of k-Means Coresets,
    section 4.
    """
    if not isinstance(coreset, WeightedPoints):
        raise InvalidTypeError(f"coreset is {shown(coreset)}; pass a Coreset.")
    several, _ = _as_solutions(solutions, coreset.points.shape[1], "solutions")
    check_usable(Block(coreset.points, coreset.weights))
    metric: Metric = getattr(coreset, "metric", "euclidean")
    on_all = kmeans_cost(X, several, sample_weight, metric=metric)
    on_coreset = np.array([cost_on(coreset, QuantizationError(), one) for one in several])
    both_zero = (on_all == 0) & (on_coreset == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(both_zero, 1.0, on_coreset / on_all)
        return float(np.maximum(ratio, 1.0 / ratio).max() - 1.0)


def check_usable(rows: Block, name: str = "coreset.points") -> None:
    """Check that no square overflows; coresets made by hand may have such values."""
    problem = find_unusable_row(rows.points, rows.weights)
    if problem is not None:
        message = re.sub(r"^(Input )?X (?=is|contains)", f"{name} ", problem.message)
        raise replace(problem, message=message).error(0)


def _as_solutions(
    centers: Any, n_features: int, name: str = "centers"
) -> tuple[list[FloatArray], bool]:
    several = isinstance(centers, Sequence) and all(n_dims(name, one) == 2 for one in centers)
    several = several or n_dims(name, centers) == 3
    solutions = [
        as_centers(solution, n_features, name) for solution in (centers if several else [centers])
    ]
    if not solutions:
        raise InvalidInputError(f"{name} is empty; pass at least one solution.")
    return solutions, not several


def _block_costs(block: Block, _index: int, solutions: list[FloatArray]) -> FloatArray:
    cost = QuantizationError()
    return np.array([cost.total(block, centers) for centers in solutions])


def data_of(
    coreset: Coreset,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None,
) -> RowBlocks:
    """Open the data that a coreset is of; `on_invalid` is by default what it was built with."""
    if on_invalid is None:
        on_invalid = "drop" if coreset.provenance.get("n_dropped") else None
    known = coreset.provenance.get("columns")
    options = {"chunks": chunks, "on_invalid": on_invalid}
    blocks = known_blocks(known, "the coreset", X, y, sample_weight, **options)
    blocks, columns = blocks.by(coreset.metric), blocks.columns
    if known is None or columns is None or [*known] == [*columns]:
        known = columns = ()
    if columns and (problem := how_to_select(columns, known, "the coreset", blocks.selection)):
        raise InvalidInputError(problem)
    if blocks.schema.n_features != coreset.n_features:
        raise InvalidInputError(
            f"X has {counted(blocks.schema.n_features, 'column')} and the coreset "
            f"{coreset.n_features}; pass the data that it is of."
        )
    if columns:
        found, expected = names_apart(columns, known)
        raise InvalidInputError(
            f"X has the columns {found}, and the coreset is of {expected}; select these, in this "
            f"order."
        )
    return blocks
