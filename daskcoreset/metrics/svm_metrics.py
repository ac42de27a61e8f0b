"""Costs of linear classifiers over data of any size, one read for any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.blocks import Block, Problem
from daskcoreset.core.validation import check_positive
from daskcoreset.core.classes import label_problem, plain_labels
from daskcoreset.core.tiles import (dense, tiles)
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.gathering import gather
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["SVMReport", "accuracy", "hinge_loss", "svm_cost", "svm_report"]


class SVMReport(NamedTuple):
    """What `svm_report` found; numbers for one classifier, arrays for several.

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


def svm_report(
    X: Any,
    y: Any,
    w: Any,
    lam: float = 1.0,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
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
    blocks = row_blocks(X, y, sample_weight)
    if not blocks.has_labels:
        raise InvalidInputError("y is missing; pass the labels of the rows.")
    coef, shift, single = _solutions(w, intercept, blocks.rules.n_features)
    found = _by_label(blocks, coef, shift)
    labels = _two_labels(found, classes)
    total = sum(part.weight for part in found.values())
    if not total > 0.0:
        raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
    hinge, right = np.zeros(len(coef)), np.zeros(len(coef))
    for label, part in found.items():
        positive = label == labels[1]
        hinge += part.hinge[int(positive)]
        right += part.above if positive else part.weight - part.above
    cost = np.einsum("pj,pj->p", coef, coef) / 2.0 + lam * hinge
    values = (cost, hinge / total, right / total)
    return SVMReport(*(float(value[0]) if single else value for value in values))


def svm_cost(
    X: Any,
    y: Any,
    w: Any,
    lam: float = 1.0,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
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


def hinge_loss(
    X: Any,
    y: Any,
    w: Any,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
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
    found = svm_report(X, y, w, 1.0, sample_weight, intercept=intercept, classes=classes)
    return found.hinge_loss


def accuracy(
    X: Any,
    y: Any,
    w: Any,
    sample_weight: Any = None,
    *,
    intercept: Any = None,
    classes: Any = None,
) -> Any:
    """Weighted share of the rows that a linear classifier has right; see `svm_report`.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64

    Examples
    --------
    >>> accuracy(np.array([[-1.0], [1.0], [2.0], [0.5]]), np.array([0, 1, 1, 0]), [0.5])
    0.75
    """
    found = svm_report(X, y, w, 1.0, sample_weight, intercept=intercept, classes=classes)
    return found.accuracy


@dataclass(frozen=True, eq=False)
class _OfLabel:
    """Sums over the rows of one label: which sign it has is not known before all are read."""

    weight: float
    hinge: FloatArray  # as if the label were -1, and as if it were +1: shape (2, n_solutions)
    above: FloatArray  # weight of the rows above zero

    def __add__(self, other: _OfLabel) -> _OfLabel:
        return _OfLabel(
            self.weight + other.weight, self.hinge + other.hinge, self.above + other.above
        )


def _by_label(blocks: RowBlocks, coef: FloatArray, shift: FloatArray) -> dict[Any, _OfLabel]:
    found: dict[Any, _OfLabel] = gather(blocks, _sums, _joined, given=(coef, shift)).value
    return found


def _sums(
    block: Block, number: int, given: tuple[FloatArray, FloatArray]
) -> dict[Any, _OfLabel] | Problem:
    del number
    problem = label_problem(block)
    if problem is not None:
        return problem
    coef, shift = given
    values = np.empty((len(block), len(coef)))
    points: Any = block.points
    for rows in tiles(len(block), points.shape[1]):
        tile = dense(points[rows])
        for i, one in enumerate(coef):
            values[rows, i] = np.einsum("ij,j->i", tile, one) + shift[i]
    labels, u = plain_labels(block), block.weights
    found = {}
    for label in np.unique(labels):
        own = np.flatnonzero((labels == label) & (u > 0.0))
        if not len(own):
            continue
        mine, weights = values[own], u[own]
        hinge = [
            np.einsum("i,ip->p", weights, np.maximum(1.0 - sign * mine, 0.0)) for sign in (-1, 1)
        ]
        above = np.einsum("i,ip->p", weights, (mine > 0.0).astype(np.float64))
        found[label.item()] = _OfLabel(float(weights.sum()), np.stack(hinge), above)
    return found


def _joined(first: dict[Any, _OfLabel], second: dict[Any, _OfLabel]) -> dict[Any, _OfLabel]:
    merged = dict(first)
    for label, part in second.items():
        merged[label] = merged[label] + part if label in merged else part
    return merged


def _two_labels(found: dict[Any, _OfLabel], classes: Any) -> list[Any]:
    labels = sorted(found) if classes is None else list(np.asarray(classes).tolist())
    if len(labels) != 2 or not set(found) <= set(labels):
        shown = ", ".join(map(repr, sorted(found)[:5]))
        raise InvalidInputError(
            f"y holds {len(found)} classes ({shown}) where two are wanted; pass classes=(negative, "
            f"positive) where one has no rows, and y == label for one of many."
        )
    return labels


def _solutions(w: Any, intercept: Any, d: int) -> tuple[FloatArray, FloatArray, bool]:
    several = isinstance(w, Sequence) and len(w) > 0 and all(hasattr(one, "coef_") for one in w)
    if several or hasattr(w, "coef_"):
        models = list(w) if several else [w]
        rows = [np.append(np.ravel(one.coef_), np.ravel(one.intercept_)) for one in models]
        w = np.array(rows) if several else rows[0]
    given: AnyArray = np.asarray(w, dtype=np.float64)
    single, matrix = given.ndim < 2, np.atleast_2d(given)
    if matrix.ndim != 2 or matrix.shape[1] not in (d, d + 1) or not len(matrix):
        raise InvalidInputError(
            f"w has shape {given.shape}; pass one classifier of {d} entries, or of {d + 1} with "
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
        if np.shape(intercept) not in ((), (1,), (len(matrix),)):
            raise InvalidInputError(
                f"intercept has shape {np.shape(intercept)} beside {len(matrix)} classifiers; pass "
                f"one number for each."
            )
        shift += np.asarray(intercept, dtype=np.float64)
    if not (np.isfinite(matrix).all() and np.isfinite(shift).all()):
        raise InvalidInputError("w or intercept is not finite; pass finite numbers.")
    return np.ascontiguousarray(matrix[:, :d]), shift, single
