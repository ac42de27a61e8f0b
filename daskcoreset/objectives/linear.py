"""Costs of linear classifiers: the objectives of the SVM and of logistic regression."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from daskcoreset.core.block import Block, find_bad_label, labels_of
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.linalg import dense_rows, one_thread
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.objectives.base import Objective
from daskcoreset.objectives.cells import Bracket, Cells, bracket_below, cells_by_class
from daskcoreset.solvers.linear import solve_svm


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    r"""One class against the rest: positive if :math:`\langle x, w \rangle + b > 0`.

    See :doc:`/guides/labels`.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
        The normal w.
    intercept : float
        The intercept b.
    positive : object
        Label of the positive class.
    """

    coef: FloatArray
    intercept: float
    positive: Any


def coefficients(solution: Any, n_features: int, name: str) -> tuple[FloatArray, float]:
    """Return the coefficients and the intercept of a linear solution, or of a fitted model."""
    parts = [getattr(solution, part, None) for part in ("coef", "intercept")]
    if parts[0] is None:
        parts = [getattr(solution, part, None) for part in ("coef_", "intercept_")]
    if any(part is None for part in parts):
        raise not_linear(solution, name, "linear model")
    coef, intercept = (np.ravel(np.asarray(part, dtype=np.float64)) for part in parts)
    if len(coef) != n_features:
        raise InvalidInputError(
            f"{name} has {len(coef)} coefficients",
            argument=name,
            remedy=f"pass a model of the {n_features} columns of X",
        )
    return coef, float(intercept[0])


def not_linear(solution: Any, name: str, wanted: str) -> InvalidTypeError:
    """Return the error of a solution of another kind."""
    return InvalidTypeError(
        f"{name} must be a fitted {wanted}, got {type(solution).__name__}",
        argument=name,
        remedy="fit one, or pass a solution of daskcoreset.objectives",
    )


@dataclass(frozen=True)
class LinearCost(Objective[LinearClassifier]):
    r"""The cost :math:`|w|^2/2 + \lambda \sum_x u(x) \ell(y(x) (\langle x, w \rangle + b))`.

    See :doc:`/guides/trust`.

    The loss is the hinge :math:`[1 - z]_+`, or the logistic loss :math:`\ln(1 + e^{-z})`. The
    intercept is not penalized. Each class is compared with the rest. With two classes, the larger
    label is positive.

    Parameters
    ----------
    loss : {"hinge", "logistic"}, default="hinge"
        The loss.
    lam : float, default=1.0
        :math:`\lambda`, equal to the C of scikit-learn.
    intercept : bool, default=True
        Whether the solutions of an audit have an intercept.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(10_000, 2))
    >>> y = X[:, 0] + rng.normal(size=10_000) > 0
    >>> coreset = daskcoreset.build(X, y, size=500, method="uniform", random_state=0)
    >>> coreset.audit(X, y, objective=LinearCost("logistic"), random_state=0).distortion < 0.2
    True

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), section 2.
    """

    loss: Literal["hinge", "logistic"] = "hinge"
    lam: float = 1.0
    intercept: bool = True

    name: ClassVar[str] = "cost of a linear classifier"

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a label."""
        return find_bad_label(block)

    def constant(self, solution: LinearClassifier) -> float:
        """Return the penalty."""
        return 0.5 * float(solution.coef @ solution.coef)

    def losses(self, block: Block, solution: LinearClassifier) -> FloatArray:
        """Losses of the rows, times lambda."""
        signs = _signs(block, solution.positive)
        points: Any = block.points
        values: FloatArray = np.asarray(points @ solution.coef, dtype=np.float64)
        z = signs * (values + solution.intercept)
        return self.lam * self.margin_loss(z)

    def cells(self, block: Block, n_parts: int, rng: np.random.Generator) -> Cells:
        """One cell for every class."""
        del n_parts, rng
        return cells_by_class(block)

    def brackets(
        self, cells: Cells, solution: LinearClassifier, others: Sequence[LinearClassifier]
    ) -> Iterator[tuple[Bracket, int | None]]:
        """Yield bounds by the margin m of the center of a class, and by other solutions.

        A row at distance d has a margin of at least :math:`m - v d`. Its losses by two solutions
        differ by at most the difference of its margins.
        """
        assert cells.labels is not None  # noqa: S101 - they are by class
        is_positive = np.append(cells.labels == solution.positive, False)
        has_positive = bool(is_positive.any())
        margin = cells.centers @ solution.coef + solution.intercept
        margin = np.where(is_positive, margin, -margin)
        if not has_positive:  # rows of other labels may be of the positive class
            margin[-1] = -abs(margin[-1])
        v = cells.slope(solution.coef)
        zero, full = np.zeros_like(margin), np.full_like(margin, v)
        plain = np.stack([self.margin_loss(margin), full, zero, zero])
        if self.loss == "hinge":
            slack = margin - 1.0
            curved = np.stack([zero, zero, v * v / (4.0 * np.maximum(slack, 1e-300)), zero])
            curved[0, slack <= 0.0] = np.inf
        else:
            pull = np.exp(-np.logaddexp(0.0, margin))
            curved = np.stack([plain[0], pull * v, np.full_like(margin, v * v / 8.0), zero])
        yield bracket_below(self.lam * plain, self.lam * curved), None
        for i, other in enumerate(others):
            if other.positive == solution.positive:
                coef = solution.coef - other.coef
                move = np.abs(cells.centers @ coef + solution.intercept - other.intercept)
                apart = np.stack([move, np.full_like(move, cells.slope(coef)), zero, zero])
                either = self.lam * apart[np.newaxis]
                yield Bracket(np.zeros_like(apart), either, either), i

    def margin_loss(self, z: FloatArray) -> FloatArray:
        """Loss of rows whose decision value times their label is z."""
        return np.maximum(1.0 - z, 0.0) if self.loss == "hinge" else np.logaddexp(0.0, -z)

    def solve(self, block: Block, rng: np.random.Generator) -> LinearClassifier:
        """Classifier of the last class, fitted to the rows."""
        del rng
        return self.fit(block, positives(block)[-1])

    def seed(self, block: Block, rng: np.random.Generator) -> LinearClassifier:
        """Classifier fitted to some of the rows, drawn by weight."""
        positive = rng.choice(np.array(positives(block))).item()
        few = max(10, min(len(block) // 4, 10 * (1 + int(block.points.shape[1]))))
        rows = np.unique(rng.choice(len(block), few, p=block.weights / block.weights.sum()))
        signs = _signs(block, positive)
        # Both classes, even where one is rare.
        rows = np.union1d(rows, [np.flatnonzero(signs == sign)[0] for sign in (-1.0, 1.0)])
        return self.fit(block.take(rows), positive)

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, LinearClassifier]]:
        """Fitted classifiers, three that are fitted to few rows, and three at random."""
        for positive in positives(block):
            yield f"fitted, {positive!r} against the rest", self.fit(block, positive)
        for i in range(1, 4):
            yield f"fitted to few rows {i}", self.seed(block, rng)
        rows = dense_rows(block.points).astype(np.float64)
        mean = np.average(rows, axis=0, weights=block.weights)
        for i in range(1, 4):
            coef = np.asarray(rng.normal(size=rows.shape[1]))
            coef /= max(float(np.abs((rows - mean) @ coef).mean()), 1e-300)
            shift = -float(coef @ mean) if self.intercept else 0.0
            yield f"random direction {i}", LinearClassifier(coef, shift, positives(block)[-1])

    def read(self, solution: Any, n_features: int, name: str) -> LinearClassifier:
        """Return a `LinearClassifier`, or that of a fitted estimator of two classes."""
        if isinstance(solution, LinearClassifier):
            classes = [None, solution.positive]
        else:
            classes = np.ravel(getattr(solution, "classes_", ())).tolist()
        if len(classes) < 2:
            raise not_linear(solution, name, "linear classifier of two classes")
        if len(classes) > 2:
            raise InvalidTypeError(
                f"{name} has {len(classes)} classes, and costs are of one class against the rest",
                argument=name,
                remedy=f"pass each by itself, for example that of {classes[0]!r}: "
                "daskcoreset.objectives.LinearClassifier(model.coef_[0], model.intercept_[0], "
                "model.classes_[0])",
            )
        return LinearClassifier(*coefficients(solution, n_features, name), classes[1])

    def labelled(self, solution: LinearClassifier, block: Block, name: str) -> LinearClassifier:
        """Find the positive class among the labels, even if numbers have become text."""
        labels = [label.item() for label in np.unique(labels_of(block))]
        if solution.positive in labels and isinstance(solution.positive, str) == isinstance(
            labels[0], str
        ):
            return solution
        if str(solution.positive) in labels:  # a coreset keeps objects as text
            return replace(solution, positive=str(solution.positive))
        raise InvalidInputError(
            f"{name} has the positive class {solution.positive!r}, and the labels of the coreset "
            f"are {labels[:5]}",
            argument=name,
            remedy="fit it on these labels, or build the coreset with its own",
        )

    @one_thread()
    def fit(self, block: Block, positive: Any) -> LinearClassifier:
        """Return the classifier of one class against the rest, fitted to the rows."""
        signs = _signs(block, positive)
        if self.loss == "hinge":
            fit = solve_svm(
                block.points, signs, block.weights, self.lam, tol=1e-4, intercept=self.intercept
            )
            return LinearClassifier(fit.coef, fit.intercept, positive)
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=self.lam, fit_intercept=self.intercept, max_iter=1000, tol=1e-6
        )
        with warnings.catch_warnings():  # any solution will do, if not the very best
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(block.points, signs, sample_weight=block.weights)
        return LinearClassifier(model.coef_[0], float(np.ravel(model.intercept_)[0]), positive)


def _signs(block: Block, positive: Any) -> FloatArray:
    return np.where(labels_of(block) == positive, 1.0, -1.0)


def positives(block: Block) -> list[Any]:
    """Classes that are compared with the rest: all, or of two the larger label."""
    labels = [label.item() for label in np.unique(labels_of(block))]
    if len(labels) < 2:
        raise InvalidInputError(
            f"y has one class, {labels[0]!r}, and classifiers need two",
            argument="y",
            remedy="pass labels of two, or n_clusters in place of them",
        )
    return labels[1:] if len(labels) == 2 else labels
